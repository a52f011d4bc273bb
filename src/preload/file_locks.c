/* Records waits for locks of files, and what ends them: see file_locks.h. */
#include "preload/file_locks.h"

#include <sys/stat.h>

#include "preload/call.h"

/*
 * A lock, or a range to be locked or unlocked. flock's and fcntl's locks are independent of each
 * other; fcntl's locks by open description and by process conflict.
 */
struct lock {
    uint64_t object;
    uint64_t first, last; /* bytes */
    int32_t fd;           /* BOARD_BY_PROCESS: owned by the process, whatever the descriptor */
    bool exclusive;
    /* For a lock that is held. */
    int32_t by;
    uint32_t serial;
    uint64_t since;
};

enum family { BY_FLOCK, BY_FCNTL };

uint32_t file_locks_held;

/*
 * The value of `inheritance` when the process opened the descriptor. If it is current, no other
 * process or descriptor shares its open file description.
 */
static uint32_t opened_in[SHM_DESCRIPTORS];
static uint32_t inheritance = 1;

static bool is_alone(int fd)
{
    return (unsigned)fd < SHM_DESCRIPTORS && opened_in[fd] == inheritance;
}

/* MARK: Which lock */

static uint64_t object_of(const struct stat *status, enum family family)
{
    return SHM_LOCKED | board_mix(status->st_dev, status->st_ino) << 4 | (uint64_t)family;
}

/*
 * The file that was last locked through a descriptor that has not been duplicated since. It saves
 * an unlock the fstat, which would add half its time. If the descriptor now refers to another file,
 * no lock of this one is held any more: see remove_left.
 */
static uint64_t locked_by[SHM_DESCRIPTORS];

static bool is_wanted_now(void)
{
    return board && is_recorded(SHM_GROUP_LOCKS);
}

/* Keeps errno. False: the file's locks are not tracked. */
static bool stat_quietly(int fd, struct stat *status)
{
    int old_errno = errno;
    bool is_there = !is_confined() && fstat(fd, status) == 0;
    errno = old_errno;
    return is_there;
}

/* Sets the lock's object; false if it is unknown. */
static bool find_object(struct lock *lock, int fd, enum family family, bool unlocks)
{
    struct stat status;
    bool is_kept = (unsigned)fd < SHM_DESCRIPTORS;
    if (unlocks && is_kept && locked_by[fd]) {
        lock->object = locked_by[fd] | (uint64_t)family;
        return true;
    }
    if (!stat_quietly(fd, &status))
        return false;
    lock->object = object_of(&status, family);
    if (is_kept)
        locked_by[fd] = object_of(&status, 0);
    return true;
}

/* Returns the base of a range, in bytes from the start of the file; negative: unknown. */
static off64_t base_of(int fd, int whence)
{
    int old_errno = errno;
    struct stat status;
    off64_t at = 0;
    if (whence == SEEK_CUR)
        at = is_confined() ? -1 : lseek64(fd, 0, SEEK_CUR);
    else if (whence == SEEK_END)
        at = stat_quietly(fd, &status) ? status.st_size : -1;
    errno = old_errno;
    return at;
}

static bool range_of(int fd, const struct flock *range, struct lock *lock)
{
    int64_t first, last, base = base_of(fd, range->l_whence);
    if (base < 0 || __builtin_add_overflow(base, range->l_start, &first))
        return false;
    if (range->l_len == 0)
        last = INT64_MAX;
    else if (__builtin_add_overflow(first, range->l_len - (range->l_len > 0), &last))
        return false;
    /* A negative length means the bytes before the start. */
    if (range->l_len < 0) {
        int64_t end = first - 1;
        first = last;
        last = end;
    }
    if (first < 0 || last < first)
        return false;
    lock->first = (uint64_t)first;
    lock->last = range->l_len == 0 ? UINT64_MAX : (uint64_t)last;
    return true;
}

/* MARK: What is held */

static bool overlaps(const struct board_lock *entry, const struct lock *lock)
{
    return entry->first <= lock->last && lock->first <= entry->last;
}

static struct board_locks *locks_of(uint64_t object)
{
    return &board->locks[shm_object_slot(object) % BOARD_LOCKS];
}

/* The PID that claimed the area; in a child of vfork, the parent's. */
static uint32_t own_pid(void)
{
    return preload.area->header.claimed;
}

/* An earlier program of this process has released it. */
static bool is_given(const struct board_lock *entry)
{
    return __atomic_load_n(&entry->given, __ATOMIC_RELAXED) != 0;
}

static bool is_mine(const struct board_lock *entry, const struct lock *lock)
{
    return __atomic_load_n(&entry->object, __ATOMIC_ACQUIRE) == lock->object &&
           entry->pid == own_pid() && entry->fd == lock->fd && !is_given(entry);
}

/* False: another thread has removed it first. */
static bool remove_entry(struct board_lock *entry, uint64_t object)
{
    if (!__atomic_compare_exchange_n(&entry->object, &object, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    __atomic_store_n(&entry->pid, 0, __ATOMIC_RELEASE);
    return true;
}

static void enter(const struct lock *lock, bool alone)
{
    struct board_locks *at = locks_of(lock->object);
    for (int i = 0; i < BOARD_LOCKS_OF; i++) {
        struct board_lock *entry = &at->of[i];
        uint32_t none = 0;
        if (!__atomic_compare_exchange_n(&entry->pid, &none, own_pid(), false, __ATOMIC_ACQUIRE,
                                         __ATOMIC_RELAXED))
            continue;
        entry->first = lock->first;
        entry->last = lock->last;
        entry->fd = lock->fd;
        entry->by = lock->by;
        entry->serial = lock->serial;
        entry->since = lock->since;
        entry->exclusive = lock->exclusive;
        entry->alone = alone;
        __atomic_store_n(&entry->given, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&entry->object, lock->object, __ATOMIC_RELEASE);
        __atomic_fetch_add(&file_locks_held, 1, __ATOMIC_RELAXED);
        return;
    }
    __atomic_store_n(&at->full, 1, __ATOMIC_RELEASE);
}

static struct lock lock_of(const struct board_lock *entry)
{
    return (struct lock){.object = entry->object,
                         .first = entry->first,
                         .last = entry->last,
                         .fd = entry->fd,
                         .exclusive = entry->exclusive,
                         .by = entry->by,
                         .serial = entry->serial,
                         .since = entry->since};
}

/* Returns the overlap of an entry and a lock. */
static struct lock common(const struct board_lock *entry, const struct lock *lock)
{
    struct lock part = lock_of(entry);
    part.object = lock->object;
    part.first = entry->first > lock->first ? entry->first : lock->first;
    part.last = entry->last < lock->last ? entry->last : lock->last;
    return part;
}

/* Removes a part of an entry and enters the remaining parts again. */
static void cut(struct board_lock *entry, const struct lock *part)
{
    struct lock before = *part, after = *part;
    bool alone = entry->alone, has_before = entry->first < part->first;
    bool has_after = part->last < entry->last;
    before.first = entry->first;
    before.last = part->first - 1;
    after.first = part->last + 1;
    after.last = entry->last;
    if (!remove_entry(entry, part->object))
        return;
    /* Locks left by an earlier program of the process were not counted. */
    if (file_locks_held)
        __atomic_fetch_sub(&file_locks_held, 1, __ATOMIC_RELAXED);
    if (has_before)
        enter(&before, alone);
    if (has_after)
        enter(&after, alone);
}

static void record_release(const struct lock *part, const struct unwind_start *caller)
{
    board_release_of(part->object, SHM_FILE_LOCK, part->since,
                     shm_locked_part(part->first, part->last, part->exclusive), caller);
}

/* Called before the process releases a range of a file: records the releases. */
static void give(const struct lock *lock, const struct unwind_start *caller)
{
    struct board_locks *at = locks_of(lock->object);
    for (int i = 0; i < BOARD_LOCKS_OF; i++) {
        struct board_lock *entry = &at->of[i];
        if (!is_mine(entry, lock) || !overlaps(entry, lock))
            continue;
        struct lock part = common(entry, lock);
        record_release(&part, caller);
        cut(entry, &part);
    }
}

/*
 * An fcntl lock becomes shared, which ends waits for other shared ones. It is entered as shared
 * beforehand, because a thread that gets a lock removes conflicting entries.
 */
static void weaken(const struct lock *lock, const struct unwind_start *caller)
{
    struct board_locks *at = locks_of(lock->object);
    for (int i = 0; i < BOARD_LOCKS_OF && !lock->exclusive; i++) {
        struct board_lock *entry = &at->of[i];
        bool alone = entry->alone;
        if (!is_mine(entry, lock) || !entry->exclusive || !overlaps(entry, lock))
            continue;
        struct lock part = common(entry, lock);
        record_release(&part, caller);
        cut(entry, &part);
        part.exclusive = false;
        enter(&part, alone);
    }
}

/* Enters a newly taken lock, replacing the process's earlier locks of that range. */
static void take(struct lock *lock)
{
    struct board_locks *at = locks_of(lock->object);
    for (int i = 0; i < BOARD_LOCKS_OF && file_locks_held; i++) {
        if (!is_mine(&at->of[i], lock) || !overlaps(&at->of[i], lock))
            continue;
        struct lock part = common(&at->of[i], lock);
        cut(&at->of[i], &part);
    }
    lock->serial = self.slot->serial;
    lock->since = clock_now();
    enter(lock, lock->fd == BOARD_BY_PROCESS || is_alone(lock->fd));
}

/*
 * Called when a lock was taken: removes conflicting entries, whose holders must be gone. Returns
 * the process that held them, if it was a single one. *known: the cause of the wait's end is
 * certain.
 */
static uint32_t remove_left(const struct lock *lock, bool *known)
{
    struct board_locks *at = locks_of(lock->object);
    uint32_t pid = 0;
    *known = !__atomic_load_n(&at->full, __ATOMIC_ACQUIRE);
    for (int i = 0; i < BOARD_LOCKS_OF; i++) {
        struct board_lock *entry = &at->of[i];
        uint32_t of = entry->pid;
        if (__atomic_load_n(&entry->object, __ATOMIC_ACQUIRE) != lock->object ||
            is_mine(entry, lock) || !overlaps(entry, lock) ||
            !(entry->exclusive || lock->exclusive))
            continue;
        if (is_given(entry)) {
            (void)remove_entry(entry, lock->object);
            continue;
        }
        if (!entry->alone || of == own_pid() || (pid && pid != of))
            *known = false;
        if (remove_entry(entry, lock->object))
            pid = of;
    }
    return pid;
}

/* MARK: Taking and waiting */

static struct call wait_begin(const struct lock *lock, const struct unwind_start *caller, int fd)
{
    board_waits(lock->object, lock->object);
    return call_begin(caller, SHM_GROUP_LOCKS, SHM_FILE_LOCK, lock->object, (uint32_t)fd + 1,
                      stack_of(caller));
}

static void wait_ended(struct call *call, const struct lock *lock, bool got)
{
    bool known = false;
    call_returned(call);
    call->object2 = shm_locked_part(lock->first, lock->last, lock->exclusive);
    if (got)
        call->release2 = remove_left(lock, &known);
    if (!known)
        call->flags |= SHM_TIMED_OUT;
}

/* Called after a first try that succeeded without a wait. */
static void taken(struct lock *lock)
{
    bool known;
    (void)remove_left(lock, &known);
    take(lock);
}

/* Tries first, then waits, with the same result. errno is set by the last call. */
#define TAKE(fd, failed, try, wait)                                                                \
    int old_errno = errno;                                                                         \
    int status = try;                                                                              \
    if (status == 0) {                                                                             \
        taken(&lock);                                                                              \
        return 0;                                                                                  \
    }                                                                                              \
    if (!(failed))                                                                                 \
        return status;                                                                             \
    errno = old_errno;                                                                             \
    struct call call CALL = wait_begin(&lock, caller, fd);                                         \
    status = wait;                                                                                 \
    wait_ended(&call, &lock, status == 0);                                                         \
    if (status == 0)                                                                               \
        take(&lock);                                                                               \
    return status

/* Converting a lock releases the old one first, and loses it if the new one fails: flock(2). */
static void convert(const struct lock *lock, const struct unwind_start *caller)
{
    const struct board_locks *at = locks_of(lock->object);
    for (int i = 0; i < BOARD_LOCKS_OF && file_locks_held; i++) {
        if (is_mine(&at->of[i], lock) && at->of[i].exclusive != lock->exclusive) {
            give(lock, caller);
            return;
        }
    }
}

static int flock_as(int fd, int operation, const struct unwind_start *caller)
{
    int what = operation & ~LOCK_NB;
    bool waits = !(operation & LOCK_NB);
    struct lock lock = {.last = UINT64_MAX, .fd = fd, .exclusive = what == LOCK_EX, .by = fd};
    if ((what != LOCK_SH && what != LOCK_EX && what != LOCK_UN) || !is_wanted_now() ||
        !find_object(&lock, fd, BY_FLOCK, what == LOCK_UN))
        return REAL(flock)(fd, operation);
    if (what == LOCK_UN) {
        give(&lock, caller);
        return REAL(flock)(fd, operation);
    }
    convert(&lock, caller);
    TAKE(fd, waits && errno == EWOULDBLOCK, REAL(flock)(fd, operation | LOCK_NB),
         REAL(flock)(fd, operation));
}

EXPORT int flock(int fd, int operation)
{
    struct unwind_start caller = CALLER();
    return flock_as(fd, operation, &caller);
}

/* MARK: fcntl and lockf */

static bool is_waiting(int command)
{
    return command == F_SETLKW || command == F_OFD_SETLKW;
}

bool file_locks_command(int command)
{
    return is_waiting(command) || command == F_SETLK || command == F_OFD_SETLK;
}

int file_locks_fcntl(fcntl_function *function, int fd, int command, void *argument,
                     const struct unwind_start *caller)
{
    const struct flock *range = argument;
    bool by_process = command == F_SETLK || command == F_SETLKW;
    int try = by_process ? F_SETLK : F_OFD_SETLK;
    struct lock lock = {.fd = by_process ? BOARD_BY_PROCESS : fd, .by = fd};
    if (!is_address(range) || !is_wanted_now() || !range_of(fd, range, &lock) ||
        !find_object(&lock, fd, BY_FCNTL, range->l_type == F_UNLCK))
        return function(fd, command, argument);
    if (range->l_type == F_UNLCK) {
        give(&lock, caller);
        return function(fd, command, argument);
    }
    lock.exclusive = range->l_type == F_WRLCK;
    weaken(&lock, caller);
    if (is_waiting(command))
        pthread_testcancel(); /* as the real function does first */
    TAKE(fd, is_waiting(command) && (errno == EAGAIN || errno == EACCES),
         function(fd, try, argument), function(fd, command, argument));
}

static int lockf_as(int fd, int command, off64_t size, const struct unwind_start *caller)
{
    static const struct {
        short type;
        int command;
    } as[] = {[F_ULOCK] = {F_UNLCK, F_SETLK},
              [F_LOCK] = {F_WRLCK, F_SETLKW},
              [F_TLOCK] = {F_WRLCK, F_SETLK}};
    struct flock range = {.l_whence = SEEK_CUR, .l_len = size};
    if (command < 0 || command >= (int)(sizeof as / sizeof as[0]))
        return REAL(lockf64)(fd, command, size);
    range.l_type = as[command].type;
    return file_locks_fcntl(REAL(fcntl64), fd, as[command].command, &range, caller);
}

#define LOCKF(name, offset)                                                                        \
    EXPORT int name(int fd, int command, offset size)                                              \
    {                                                                                              \
        struct unwind_start caller = CALLER();                                                     \
        return lockf_as(fd, command, size, &caller);                                               \
    }

LOCKF(lockf, off_t)
LOCKF(lockf64, off64_t)

/* MARK: Descriptors */

#define ALL_LOCKS ((size_t)BOARD_LOCKS * BOARD_LOCKS_OF)

void file_locks_opened(int fd)
{
    if (board && (unsigned)fd < SHM_DESCRIPTORS)
        opened_in[fd] = inheritance;
}

/* Unmarks locks that a close in this process no longer releases by itself. */
static void no_longer_alone(int fd)
{
    for (size_t i = 0; file_locks_held && preload.area && i < ALL_LOCKS; i++) {
        struct board_lock *entry = &board->locks[i / BOARD_LOCKS_OF].of[i % BOARD_LOCKS_OF];
        if (entry->pid == own_pid() && entry->fd != BOARD_BY_PROCESS && (fd < 0 || entry->fd == fd))
            entry->alone = 0;
    }
}

void file_locks_shared(int fd)
{
    if ((unsigned)fd < SHM_DESCRIPTORS && locked_by[fd])
        locked_by[fd] = 0;
    if (!is_alone(fd))
        return;
    opened_in[fd] = 0;
    no_longer_alone(fd);
}

void file_locks_inherited(void)
{
    __atomic_fetch_add(&inheritance, 1, __ATOMIC_RELAXED);
    no_longer_alone(-1);
}

void file_locks_closed(int fd, const struct unwind_start *caller)
{
    struct stat status;
    struct lock lock = {.last = UINT64_MAX};
    if (!is_wanted_now() || own_pid() != (uint32_t)getpid() || !stat_quietly(fd, &status))
        return;
    lock.fd = BOARD_BY_PROCESS;
    lock.object = object_of(&status, BY_FCNTL);
    give(&lock, caller);
    /* Another descriptor may share the open file description. */
    if (!is_alone(fd))
        return;
    lock.fd = fd;
    give(&lock, caller);
    lock.object = object_of(&status, BY_FLOCK);
    give(&lock, caller);
}

/* Returns the next lock that the process holds, from index *at; NULL: no more. */
static struct board_lock *next_held(size_t *at)
{
    while (file_locks_held && *at < ALL_LOCKS) {
        struct board_lock *entry = &board->locks[*at / BOARD_LOCKS_OF].of[*at % BOARD_LOCKS_OF];
        (*at)++;
        if (entry->pid == own_pid() && __atomic_load_n(&entry->object, __ATOMIC_ACQUIRE))
            return entry;
    }
    return NULL;
}

void file_locks_exit(const struct unwind_start *caller)
{
    size_t at = 0;
    for (const struct board_lock *entry; (entry = next_held(&at)) != NULL;) {
        struct lock lock = lock_of(entry);
        if (entry->alone)
            give(&lock, caller);
    }
}

/* Whether a descriptor is closed on exec; keeps errno. */
static bool is_closed_by_exec(int fd)
{
    int old_errno = errno;
    int flags = REAL(fcntl64)(fd, F_GETFD);
    errno = old_errno;
    return flags >= 0 && flags & FD_CLOEXEC;
}

/* The locks stay entered, because the exec may fail. */
void file_locks_execute(const struct unwind_start *caller)
{
    size_t at = 0;
    for (struct board_lock *entry; is_wanted_now() && (entry = next_held(&at)) != NULL;) {
        struct lock lock = lock_of(entry);
        if (!entry->alone || is_given(entry) || !is_closed_by_exec(entry->by))
            continue;
        record_release(&lock, caller);
        __atomic_store_n(&entry->given, 1, __ATOMIC_RELAXED);
    }
}

void file_locks_kept(void)
{
    size_t at = 0;
    for (struct board_lock *entry; is_wanted_now() && (entry = next_held(&at)) != NULL;)
        __atomic_store_n(&entry->given, 0, __ATOMIC_RELAXED);
}

void file_locks_forget(void)
{
    file_locks_held = 0;
    inheritance++;
}
