/* Tracks the ends of pipes, socket pairs, eventfds and epoll sets: see descriptors.h. */
#include "preload/descriptors.h"

#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include "preload/file_locks.h"
#include "preload/objects.h"

struct end_set {
    uint32_t serial; /* number of the set's end, which may have been closed */
    uint16_t end;
    uint16_t used;
    uint64_t data; /* the user data of the set's events */
};

struct end {
    uint32_t serial; /* stored last, with release, when the end is taken */
    uint16_t taken;
    uint16_t peer; /* 0: closed */
    uint16_t descriptors;
    uint8_t crowd;     /* more threads have waited than fit into the list */
    uint8_t many_sets; /* it is in more epoll sets than fit into the list */
    uint16_t waiters[END_WAITERS];
    uint64_t released;     /* time of its last release that is not on the board */
    struct board_ends ids; /* set if other processes may have the end, too; 0: none */
    /* When it got its identities, long after it was made; 0: before any wait. Threads that have
     * waited there since before that are not on the board, and have the end's number as their
     * object. */
    uint64_t shared_at;
    uint64_t signals; /* of a signalfd: ids.own is then nonzero but not an identity */
    struct end_set sets[END_SETS];
};

uint16_t of_descriptor[DESCRIPTORS];
bool descriptor_is_plain[DESCRIPTORS];
bool descriptor_fifos;
static struct end ends[ENDS];
static uint32_t ends_used = 1, first_free = 1, next_serial;

enum side { TO_READ = 0, TO_WRITE = 8 };

static uint64_t shared_object(uint64_t id, enum side side)
{
    return SHM_SHARED | id << 4 | (uint64_t)side;
}

static uint64_t own_object(const struct end *end, enum side side)
{
    return SHM_DESCRIPTOR | (uint64_t)end->serial << 4 | (uint64_t)side;
}

static uint64_t object_of(const struct end *end, enum side side)
{
    if (end->signals)
        return signals_object();
    if (end->ids.own)
        return shared_object(end->ids.own, side);
    return own_object(end, side);
}

/* MARK: Making and closing */

static unsigned take_end(void)
{
    uint32_t used = __atomic_load_n(&ends_used, __ATOMIC_RELAXED);
    /*
     * The lowest free end, so that few are searched. None is below first_free, except after races.
     */
    for (uint32_t i = __atomic_load_n(&first_free, __ATOMIC_RELAXED); i < ENDS; i++) {
        struct end *end = &ends[i];
        uint16_t none = 0;
        if (end->taken || !__atomic_compare_exchange_n(&end->taken, &none, 1, false,
                                                       __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        *end = (struct end){.taken = 1};
        __atomic_store_n(&first_free, i + 1, __ATOMIC_RELAXED);
        while (used <= i && !__atomic_compare_exchange_n(&ends_used, &used, i + 1, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            ;
        __atomic_store_n(&end->serial, __atomic_add_fetch(&next_serial, 1, __ATOMIC_RELAXED),
                         __ATOMIC_RELEASE);
        return i;
    }
    return 0;
}

static void give_end(unsigned index)
{
    struct end *end = &ends[index];
    if (end->peer)
        ends[end->peer].peer = 0;
    __atomic_store_n(&end->taken, 0, __ATOMIC_RELEASE);
    if (index && index < __atomic_load_n(&first_free, __ATOMIC_RELAXED))
        __atomic_store_n(&first_free, index, __ATOMIC_RELAXED);
}

/* Adds a descriptor to the end. */
static void share_end(int fd, unsigned index)
{
    if (!index || (unsigned)fd >= DESCRIPTORS)
        return;
    __atomic_fetch_add(&ends[index].descriptors, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&of_descriptor[fd], (uint16_t)index, __ATOMIC_RELEASE);
}

/* False: the caller may be a child of vfork, which shares the memory but not the descriptors. The
 * parent thread waits in the meantime. */
static bool is_this_process(void)
{
    return self.vforks == 0;
}

/* Removes the descriptor from its end, which is returned; *last: it was the end's last one. */
static unsigned forget(int fd, bool *last)
{
    *last = false;
    file_locks_shared(fd);
    if ((unsigned)fd < DESCRIPTORS && descriptor_is_plain[fd])
        descriptor_is_plain[fd] = false;
    if (preload.area && (unsigned)fd < DESCRIPTORS) {
        __atomic_store_n(&preload.area->connected[fd], 0, __ATOMIC_RELAXED);
        /*
         * With the load of area_generation: a reader of another number sees what was stored before.
         */
        __atomic_fetch_add(&preload.area->generations[fd], 1, __ATOMIC_RELEASE);
    }
    if (LIKELY(!descriptor_end(fd)) || !is_this_process())
        return 0;
    unsigned index = __atomic_exchange_n(&of_descriptor[fd], 0, __ATOMIC_ACQ_REL);
    if (index)
        *last = __atomic_sub_fetch(&ends[index].descriptors, 1, __ATOMIC_ACQ_REL) == 0;
    return index;
}

void descriptor_new(int fd)
{
    bool last;
    file_locks_shared(fd);
    if (fd >= 0 && fd < DESCRIPTORS && descriptor_is_plain[fd])
        descriptor_is_plain[fd] = false;
    if (fd >= 0 && UNLIKELY(descriptor_end(fd))) {
        unsigned index = forget(fd, &last);
        if (last)
            give_end(index);
    }
}

static void made_one(int fd, bool is_alone)
{
    bool settled;
    if (fd < 0)
        return;
    descriptor_new(fd);
    unsigned index = fd < DESCRIPTORS ? take_end() : 0;
    share_end(fd, index);
    if (!index || is_alone)
        return;
    ends[index].peer = (uint16_t)index;
    if (board_of_several)
        ends[index].ids = board_identify(fd, &settled);
}

static void made_two(const int fds[2])
{
    descriptor_new(fds[0]);
    descriptor_new(fds[1]);
    if (fds[0] >= DESCRIPTORS || fds[1] >= DESCRIPTORS)
        return;
    unsigned first = take_end();
    unsigned second = take_end();
    if (!first || !second) {
        give_end(first);
        give_end(second);
        return;
    }
    ends[first].peer = (uint16_t)second;
    ends[second].peer = (uint16_t)first;
    if (board_of_several)
        board_identify_pair(fds, &ends[first].ids, &ends[second].ids);
    share_end(fds[0], first);
    share_end(fds[1], second);
}

void descriptor_of_signals(int fd, uint64_t signals, bool changed)
{
    if (!board)
        return;
    if (!changed || !descriptor_end(fd))
        made_one(fd, true);
    if (descriptor_end(fd)) {
        ends[descriptor_end(fd)].signals = signals | SHM_SIGNALS_OF_PROCESS;
        ends[descriptor_end(fd)].ids = (struct board_ends){.own = 1, .endless = true};
    }
}

static bool is_fifo(int fd)
{
    struct stat status;
    return fd >= 0 && !is_confined() && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

bool descriptor_is_of_fifo(int fd)
{
    bool is = is_fifo(fd);
    if (is && board)
        descriptor_fifos = true;
    return is;
}

unsigned descriptor_look(int fd)
{
    bool settled;
    if (!preload.area || !is_this_process())
        return 0;
    struct board_ends ids = board_identify(fd, &settled);
    unsigned index = ids.own ? take_end() : 0;
    descriptor_is_plain[fd] = settled && !index;
    if (!index)
        return 0;
    ends[index].ids = ids;
    share_end(fd, index);
    return index;
}

unsigned descriptor_first_used(int fd)
{
    if (board_of_several || is_fifo(fd))
        return descriptor_look(fd);
    descriptor_is_plain[fd] = true;
    return 0;
}

/* Returns the object that a read or write here makes ready at the peer; 0: unknown. */
static uint64_t shared_peer(struct end *end, enum side side)
{
    if (!end->ids.peer)
        end->ids.peer = board_peer(end->ids.own);
    return end->ids.peer ? shared_object(end->ids.peer, side) : 0;
}

/* Called before a read or write at an end that processes may share. Returns a wait's object. */
static uint64_t use_shared(struct end *end, enum side side, const struct unwind_start *caller)
{
    uint64_t own = object_of(end, side);
    uint64_t other = end->signals ? 0 : shared_peer(end, side == TO_READ ? TO_WRITE : TO_READ);
    self.signals = end->signals;
    board_waits(own, own);
    if (other)
        board_release(other, side == TO_READ ? SHM_WRITE : SHM_READ, 0, caller);
    return own;
}

void descriptor_connected(int fd, bool made)
{
    if (board_of_several)
        descriptor_new(fd);
    if (made && preload.area && (unsigned)fd < DESCRIPTORS && is_this_process())
        __atomic_store_n(&preload.area->connected[fd], 1, __ATOMIC_RELAXED);
}

void descriptor_half(int fd)
{
    if (!descriptor_end(fd))
        made_one(fd, true);
}

void descriptors_meet(int fd, int other)
{
    unsigned first = descriptor_end(fd), second = descriptor_end(other);
    if (!first || !second)
        return;
    ends[first].peer = (uint16_t)second;
    ends[second].peer = (uint16_t)first;
}

/* MARK: Waiting threads */

/* Replaces a thread that has ended; false: all are still alive. */
static bool replace_waiter(struct end *end, uint16_t mine)
{
    for (int i = 0; i < END_WAITERS; i++) {
        uint16_t other = __atomic_load_n(&end->waiters[i], __ATOMIC_RELAXED);
        if (__atomic_load_n(&preload.area->threads[other].state, __ATOMIC_ACQUIRE) != SHM_LIVE &&
            __atomic_compare_exchange_n(&end->waiters[i], &other, mine, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

/* Adds the calling thread to the end's possible waiters. */
static void add_waiter(struct end *end)
{
    uint16_t mine = (uint16_t)self.index;
    for (int i = 0; i < END_WAITERS; i++) {
        uint16_t other = __atomic_load_n(&end->waiters[i], __ATOMIC_RELAXED);
        if (other == mine)
            return;
        if (other == 0 && __atomic_compare_exchange_n(&end->waiters[i], &other, mine, false,
                                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
        if (other == mine)
            return;
    }
    if (!end->crowd && !replace_waiter(end, mine))
        end->crowd = 1;
}

/* Whether the thread of a slot has been waiting, since before a time, for the object or several
 * descriptors. */
static bool waits_for(const struct shm_thread *thread, uint64_t object, uint64_t before)
{
    /* 0 - 1 wraps around: it does not wait. */
    return __atomic_load_n(&thread->open_time, __ATOMIC_ACQUIRE) - 1 < before - 1 &&
           (thread->open_object == object ||
            (thread->open_wait == SHM_POLL &&
             (thread->open_object == 0 || shm_is_pollfds(thread->open_object))));
}

static bool is_awaited(const struct end *end, uint64_t object, uint64_t before)
{
    for (int i = 0; i < END_WAITERS; i++) {
        uint16_t index = __atomic_load_n(&end->waiters[i], __ATOMIC_ACQUIRE);
        if (!index)
            return false;
        if (waits_for(&preload.area->threads[index], object, before))
            return true;
    }
    return end->crowd && !end->shared_at;
}

/* No limit on when the wait began. */
#define EVER UINT64_MAX

/* Records a release by the end's number if a thread has been waiting since before a time. */
static void release(struct end *end, enum side side, uint64_t before,
                    const struct unwind_start *caller)
{
    const void *object = (const void *)(uintptr_t)own_object(end, side);
    if (!is_awaited(end, (uintptr_t)object, before))
        return;
    object_released(object, side == TO_READ ? SHM_READ : SHM_WRITE, 0, caller);
    __atomic_store_n(&end->released, clock_now(), __ATOMIC_RELEASE);
}

/* The end becomes readable, which wakes threads that wait for it, also through epoll sets. */
static void becomes_readable(struct end *end, uint64_t before, const struct unwind_start *caller)
{
    release(end, TO_READ, before, caller);
    for (int i = 0; i < END_SETS; i++) {
        const struct end_set *set = &end->sets[i];
        if (set->used && ends[set->end].serial == set->serial)
            release(&ends[set->end], TO_READ, before, caller);
    }
}

/* The same for an end that processes share, for threads that are not on the board. */
static void peer_becomes_readable(const struct end *end, const struct unwind_start *caller)
{
    if (UNLIKELY(end->shared_at) && end->peer)
        becomes_readable(&ends[end->peer], end->shared_at, caller);
}

/* This may be the end of file: other processes may still have the closed end open. */
static void close_shared(struct end *end, const struct unwind_start *caller)
{
    uint64_t other = end->ids.endless ? 0 : shared_peer(end, TO_READ);
    if (!end->ids.endless)
        peer_becomes_readable(end, caller);
    if (other && other != object_of(end, TO_WRITE))
        board_release(other, SHM_READ, SHM_CLOSES, caller);
}

uint64_t end_reads(unsigned index, const struct unwind_start *caller)
{
    struct end *end = &ends[index], *peer = &ends[end->peer];
    if (!is_recorded(SHM_GROUP_IO))
        return 0;
    if (end->ids.own) {
        if (UNLIKELY(end->shared_at) && end->peer)
            release(peer, TO_WRITE, end->shared_at, caller);
        return use_shared(end, TO_READ, caller);
    }
    add_waiter(end);
    /* With a crowd of writers every read would record a release. */
    if (end->peer && !peer->crowd)
        release(peer, TO_WRITE, EVER, caller);
    return object_of(end, TO_READ);
}

uint64_t end_writes(unsigned index, const struct unwind_start *caller)
{
    struct end *end = &ends[index];
    if (!is_recorded(SHM_GROUP_IO))
        return 0;
    if (end->ids.own) {
        peer_becomes_readable(end, caller);
        return use_shared(end, TO_WRITE, caller);
    }
    add_waiter(end);
    if (end->peer)
        becomes_readable(&ends[end->peer], EVER, caller);
    return object_of(end, TO_WRITE);
}

/* Called before shutdown(2), which wakes threads that wait at the peer. */
static void descriptor_shut(int fd, const struct unwind_start *caller)
{
    unsigned index = descriptor_used(fd);
    if (index && ends[index].ids.own && is_recorded(SHM_GROUP_IO))
        close_shared(&ends[index], caller);
    else if (index && ends[index].peer && is_recorded(SHM_GROUP_IO))
        becomes_readable(&ends[ends[index].peer], EVER, caller);
}

/* The last close of an end is the end of file for threads that read from its peer. */
void descriptor_closed(int fd, const struct unwind_start *caller)
{
    bool last;
    if (UNLIKELY(file_locks_held))
        file_locks_closed(fd, caller);
    unsigned index = forget(fd, &last);
    if (!last)
        return;
    if (ends[index].ids.own && is_recorded(SHM_GROUP_IO))
        close_shared(&ends[index], caller);
    else if (ends[index].peer && ends[index].peer != index && is_recorded(SHM_GROUP_IO))
        becomes_readable(&ends[ends[index].peer], EVER, caller);
    give_end(index);
}

/* MARK: Waiting for several */

void descriptor_polled(int fd)
{
    unsigned index = descriptor_used(fd);
    if (!index || !is_recorded(SHM_GROUP_IO))
        return;
    if (ends[index].ids.own)
        board_waits(object_of(&ends[index], TO_READ), BOARD_POLLS);
    else
        add_waiter(&ends[index]);
}

/* Returns the object as which the end was made readable at or after `since`; 0: it was not. */
static uint64_t released_as(const struct end *end, uint64_t since)
{
    uint64_t object = object_of(end, TO_READ);
    if (__atomic_load_n(&end->released, __ATOMIC_ACQUIRE) >= since)
        return own_object(end, TO_READ);
    return end->ids.own && board_released_since(object, since) ? object : 0;
}

/* Sets the wait's object to what was made readable; false: nothing was. */
static bool was_released(const struct end *end, const struct call *call)
{
    uint64_t object = call->open ? released_as(end, self.slot->open_time) : 0;
    if (!object)
        return false;
    self.slot->open_object = object;
    self.signals = end->signals;
    return true;
}

bool descriptor_ready(int fd, struct call *call)
{
    unsigned index = descriptor_end(fd);
    return index && was_released(&ends[index], call);
}

static bool is_in_set(const struct end_set *of, unsigned set)
{
    return of->used && of->end == set && of->serial == ends[set].serial;
}

static bool is_member(const struct end *end, unsigned set, uint64_t data)
{
    for (int i = 0; i < END_SETS; i++) {
        if (is_in_set(&end->sets[i], set) && end->sets[i].data == data)
            return true;
    }
    return end->many_sets;
}

/* With more ends than this, they are not searched before each epoll_wait. */
#define FEW_ENDS 128

void descriptor_set_polled(int fd)
{
    unsigned set = descriptor_end(fd);
    uint32_t used = __atomic_load_n(&ends_used, __ATOMIC_RELAXED);
    if (!set || !board_of_several || used > FEW_ENDS || !is_recorded(SHM_GROUP_IO))
        return;
    for (uint32_t i = 1; i < used; i++) {
        for (int k = 0; ends[i].taken && ends[i].ids.own && k < END_SETS; k++) {
            if (is_in_set(&ends[i].sets[k], set))
                board_waits(object_of(&ends[i], TO_READ), BOARD_POLLS);
        }
    }
}

/*
 * Whether the wait began before other processes could share the end, and was ended by a release at
 * the epoll set.
 */
static bool was_released_before(const struct end *end, const struct end *set,
                                const struct call *call)
{
    return UNLIKELY(end->shared_at) && call->open && self.slot->open_time < end->shared_at &&
           __atomic_load_n(&set->released, __ATOMIC_ACQUIRE) >= self.slot->open_time;
}

bool descriptor_in_events(int fd, const struct epoll_event *events, int count, struct call *call)
{
    unsigned set = descriptor_end(fd);
    uint32_t used = __atomic_load_n(&ends_used, __ATOMIC_RELAXED);
    for (uint32_t i = 1; set && i < used; i++) {
        if (!ends[i].taken)
            continue;
        for (int k = 0; k < count; k++) {
            if (is_member(&ends[i], set, events[k].data.u64) &&
                (!ends[i].ids.own || was_released_before(&ends[i], &ends[set], call) ||
                 was_released(&ends[i], call)))
                return true;
        }
    }
    return false;
}

static void enter_set(unsigned set, unsigned index, uint64_t data)
{
    struct end *end = &ends[index];
    struct end_set *free = NULL;
    for (int i = 0; i < END_SETS; i++) {
        struct end_set *at = &end->sets[i];
        if (is_in_set(at, set)) {
            at->data = data;
            return;
        }
        if (!at->used || ends[at->end].serial != at->serial)
            free = at;
    }
    if (free)
        *free = (struct end_set){
            .serial = ends[set].serial, .end = (uint16_t)set, .used = 1, .data = data};
    else
        end->many_sets = 1;
}

EXPORT int epoll_ctl(int set, int operation, int fd, struct epoll_event *event)
{
    int status = REAL(epoll_ctl)(set, operation, fd, event);
    unsigned of_set = descriptor_end(set), index = of_set ? descriptor_used(fd) : 0;
    if (status == 0 && UNLIKELY(index != 0) && of_set && operation != EPOLL_CTL_DEL)
        enter_set(of_set, index, event->data.u64);
    return status;
}

/* MARK: Descriptors that are made, duplicated and closed */

#define MAKES_TWO(...)                                                                             \
    int status = __VA_ARGS__;                                                                      \
    if (status == 0)                                                                               \
        made_two(fds);                                                                             \
    return status

#define MAKES_ONE(is_alone, ...)                                                                   \
    int fd = __VA_ARGS__;                                                                          \
    made_one(fd, is_alone);                                                                        \
    return fd

#define MAKES_EVENTFD(...) MAKES_ONE(false, __VA_ARGS__)
#define MAKES_SET(...)     MAKES_ONE(true, __VA_ARGS__)

static int duplicated(int fd, int copy)
{
    if (copy >= 0 && copy != fd) {
        file_locks_shared(fd);
        descriptor_new(copy);
        if (UNLIKELY(descriptor_end(fd)) && is_this_process())
            share_end(copy, descriptor_end(fd));
    }
    return copy;
}

EXPORT int dup(int fd)
{
    return duplicated(fd, REAL(dup)(fd));
}

#define REPLACES(...)                                                                              \
    struct unwind_start caller = CALLER();                                                         \
    if (fd != copy)                                                                                \
        descriptor_closed(copy, &caller);                                                          \
    return duplicated(fd, __VA_ARGS__)

/* The third argument is one word whatever its type. */
#define FCNTL(name)                                                                                \
    EXPORT int name(int fd, int command, ...)                                                      \
    {                                                                                              \
        struct unwind_start caller = CALLER();                                                     \
        va_list list;                                                                              \
        void *argument;                                                                            \
        va_start(list, command);                                                                   \
        argument = va_arg(list, void *);                                                           \
        va_end(list);                                                                              \
        if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)                                      \
            return duplicated(fd, REAL(name)(fd, command, argument));                              \
        if (file_locks_command(command))                                                           \
            return file_locks_fcntl(REAL(name), fd, command, argument, &caller);                   \
        return REAL(name)(fd, command, argument);                                                  \
    }

FCNTL(fcntl)
FCNTL(fcntl64)

EXPORT int close(int fd)
{
    struct unwind_start caller = CALLER();
    descriptor_closed(fd, &caller);
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_FILE, 0, (uint32_t)fd + 1, 0);
    return RETURNED(REAL(close)(fd));
}

/*
 * Gives an end that only this process has used the identity that others compute. Other threads may
 * use it at the same time, so the peer is set first.
 */
static void identify_late(struct end *end, int fd, uint64_t now)
{
    bool settled;
    if (end->ids.own)
        return;
    struct board_ends ids = board_identify(fd, &settled);
    if (!ids.own)
        return;
    end->shared_at = now;
    end->ids.peer = ids.peer;
    end->ids.endless = ids.endless;
    __atomic_store_n(&end->ids.own, ids.own, __ATOMIC_RELEASE);
}

/* Socket pairs: the process that made both ends knows which belong together. */
static void publish_pairs(void)
{
    for (uint32_t i = 1; i < ends_used; i++) {
        const struct end *end = &ends[i], *peer = &ends[end->peer];
        if (!end->taken || !end->shared_at || end->peer <= i || end->ids.own == peer->ids.own)
            continue;
        board_publish(board, end->ids.own, peer->ids.own);
        board_publish(board, peer->ids.own, end->ids.own);
    }
}

void descriptors_inherited(void)
{
    file_locks_inherited();
    if (!board_begins_several())
        return;
    /* Descriptors that are not FIFOs may be shared from now on. */
    if (descriptor_fifos)
        memset(descriptor_is_plain, 0, sizeof descriptor_is_plain);
    if (ends_used == 1)
        return;
    uint64_t now = clock_now();
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (of_descriptor[fd])
            identify_late(&ends[of_descriptor[fd]], fd, now);
    }
    publish_pairs();
}

void descriptors_exit(const struct unwind_start *caller)
{
    for (uint32_t i = 1; i < ends_used && is_recorded(SHM_GROUP_IO); i++) {
        if (ends[i].taken && ends[i].ids.own)
            close_shared(&ends[i], caller);
    }
}

void descriptors_forget(void)
{
    /* Arrays never touched take no memory, and are left alone. */
    if (ends_used > 1)
        memset(of_descriptor, 0, sizeof of_descriptor);
    if (board)
        memset(descriptor_is_plain, 0, sizeof descriptor_is_plain);
    memset(ends, 0, ends_used * sizeof ends[0]);
    ends_used = first_free = 1;
}

static void closed_range(unsigned first, unsigned last, const struct unwind_start *caller)
{
    for (unsigned fd = first; fd <= last && fd < DESCRIPTORS; fd++)
        descriptor_closed((int)fd, caller);
}

EXPORT int close_range(unsigned first, unsigned last, int flags)
{
    struct unwind_start caller = CALLER();
    if (!(flags & (int)CLOSE_RANGE_CLOEXEC))
        closed_range(first, last, &caller);
    return REAL(close_range)(first, last, flags);
}

EXPORT void closefrom(int first)
{
    struct unwind_start caller = CALLER();
    closed_range(first < 0 ? 0 : (unsigned)first, UINT32_MAX, &caller);
    REAL(closefrom)(first);
}

EXPORT int shutdown(int fd, int how)
{
    struct unwind_start caller = CALLER();
    if (how != SHUT_RD)
        descriptor_shut(fd, &caller);
    return REAL(shutdown)(fd, how);
}

/* MARK: The wrappers in symbols.def */

#define FDS WRAP
#include "preload/symbols.def"
