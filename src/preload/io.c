/*
 * Wrappers for calls on file descriptors. Most are made from the IO rows of symbols.def: each row
 * names one of the macros below, which take the call of the real function. Whether a call blocks is
 * known only afterwards: see call.h.
 */
#include <stdarg.h>
#include <string.h>

#include "preload/connections.h"
#include "preload/file_locks.h"

/* The body of a wrapper of a call on `fd` that wakes no known thread. */
#define FD_CALL(kind, ...) BRIEF_CALL(SHM_GROUP_IO, kind, 0, (uint32_t)fd + 1, __VA_ARGS__)

/* Called after a read, write or accept that was ended by a signal handler rather than by the
 * peer. */
static void interrupted(void)
{
    if (!self_has_slot() || !open_blocked())
        return;
    self.slot->open_object = 0;
    signals_interrupted(NULL);
}

/* Called with the result of any read, write or accept. */
ALWAYS void perhaps_interrupted(bool is_open, int64_t result)
{
    if (UNLIKELY(result < 0) && errno == EINTR && is_open)
        interrupted();
}

/* The body of a wrapper of a call for which threads may wait at the other end of `object`. */
#define END_CALL(kind, object, ...)                                                                \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF =                                                                 \
        brief_begin(&caller, SHM_GROUP_IO, kind, object, (uint32_t)fd + 1);                        \
    __typeof__(__VA_ARGS__) result = BRIEF_RETURNED(__VA_ARGS__);                                  \
    perhaps_interrupted(call.open, result);                                                        \
    return result

/* The same for a call with a time limit. */
#define TIMED_END_CALL(kind, object, ...)                                                          \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, kind, object, (uint32_t)fd + 1, 0);  \
    __typeof__(__VA_ARGS__) result = __VA_ARGS__;                                                  \
    CALL_LIMITED(&call, result < 0 && errno == ETIMEDOUT, 0);                                      \
    perhaps_interrupted(call.open, result);                                                        \
    return result

/* MARK: Reading and writing */

#define READ(...)  END_CALL(SHM_READ, descriptor_reads(fd, &caller), __VA_ARGS__)
#define WRITE(...) END_CALL(SHM_WRITE, descriptor_writes(fd, &caller), __VA_ARGS__)

/* Data sent to an address does not reach the socket's peer. */
#define WRITE_TO(...) END_CALL(SHM_WRITE, to ? 0 : descriptor_writes(fd, &caller), __VA_ARGS__)

/*
 * Calls with an offset fail on pipes and sockets. preadv2 and pwritev2 are not among them: offset
 * -1 makes them ordinary reads and writes.
 */
#define READ_AT(...)  FD_CALL(SHM_READ, __VA_ARGS__)
#define WRITE_AT(...) FD_CALL(SHM_WRITE, __VA_ARGS__)
#define DISK(...)     FD_CALL(SHM_FILE, __VA_ARGS__)

/* Another process may receive descriptors that this one opened. */
static void passes(const struct msghdr *message)
{
    bool has_parts = is_address(message) && is_address(message->msg_control);
    for (struct cmsghdr *part = has_parts ? CMSG_FIRSTHDR(message) : NULL; part;
         part = CMSG_NXTHDR((struct msghdr *)message, part)) {
        size_t size = part->cmsg_len > CMSG_LEN(0) ? part->cmsg_len - CMSG_LEN(0) : 0;
        for (size_t at = 0; part->cmsg_type == SCM_RIGHTS && at + sizeof(int) <= size;
             at += sizeof(int)) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + at, sizeof fd);
            file_locks_shared(fd);
        }
    }
}

EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    passes(message);
    END_CALL(SHM_WRITE,
             is_address(message) && message->msg_name ? 0 : descriptor_writes(fd, &caller),
             REAL(sendmsg)(fd, message, flags));
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned i = 0; is_address(messages) && i < count; i++)
        passes(&messages[i].msg_hdr);
    END_CALL(SHM_WRITE,
             is_address(messages) && count && messages->msg_hdr.msg_name
                 ? 0
                 : descriptor_writes(fd, &caller),
             REAL(sendmmsg)(fd, messages, count, flags));
}

/* MARK: Connections */

#define ACCEPT(...)                                                                                \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_ACCEPT, 0, (uint32_t)fd + 1, 0); \
    int connection = RETURNED(__VA_ARGS__);                                                        \
    descriptor_new(connection);                                                                    \
    perhaps_interrupted(call.open, connection);                                                    \
    if (UNLIKELY(connections_own) && connection >= 0)                                              \
        connection_made(connection, true);                                                         \
    return connection

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct unwind_start caller = CALLER();
    bool own = connection_is_own(address, length);
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_CONNECT, 0, (uint32_t)fd + 1, 0);
    int status = RETURNED(REAL(connect)(fd, address, length));
    bool made = status == 0 || errno == EINPROGRESS;
    descriptor_connected(fd, made);
    if (UNLIKELY(own) && made)
        connection_made(fd, false);
    return status;
}

/* MARK: Readiness */

#define READABLE (POLLIN | POLLRDNORM | POLLHUP | POLLRDHUP | POLLERR)

static void before_poll(const struct pollfd *fds, nfds_t count)
{
    for (nfds_t i = 0; i < count; i++) {
        if (fds[i].events & (POLLIN | POLLRDNORM))
            descriptor_polled(fds[i].fd);
    }
}

/*
 * Returns the object of a wait for several descriptors, which are named if it blocks. If there is
 * only one, it becomes the wait's detail instead.
 */
ALWAYS uint64_t pollfds_object(const struct pollfd *fds, size_t count)
{
    return count > 1 ? SHM_POLLFDS | ((uint64_t)(uintptr_t)fds & UINT64_MAX >> 9) : 0;
}

ALWAYS uint32_t pollfds_detail(const struct pollfd *fds, size_t count)
{
    return count > 1 ? shm_of_several(count) : count == 1 ? (uint32_t)fds->fd + 1 : 0;
}

/* The descriptor that ends the wait becomes its object. */
static void keep_polled(struct call *call, int ready)
{
    call->ready = ready > 0;
    call->polled = self.slot->open_object;
    self.slot->open_object = 0;
}

/*
 * Finds the descriptor that a thread of this process made ready. After an interrupted wait all are
 * tried, because the signal handler may have written to one; the collector decides whether it has.
 */
static void after_poll(struct call *call, const struct pollfd *fds, nfds_t count,
                       const sigset_t *mask, int ready)
{
    if (!call_blocked(call))
        return;
    keep_polled(call, ready);
    if (ready < 0 && errno == EINTR)
        signals_interrupted(mask);
    for (nfds_t i = 0; ready != 0 && i < count; i++) {
        if ((ready < 0 || (fds[i].revents & READABLE)) && descriptor_ready(fds[i].fd, call))
            return;
    }
}

#define POLL_CALL(mask, limit, ...)                                                                \
    struct unwind_start caller = CALLER();                                                         \
    const nfds_t readable = is_address(fds) ? count : 0;                                           \
    before_poll(fds, readable);                                                                    \
    struct call call CALL =                                                                        \
        call_begin(&caller, SHM_GROUP_IO, SHM_POLL, pollfds_object(fds, readable),                 \
                   pollfds_detail(fds, readable), 0);                                              \
    int ready = __VA_ARGS__;                                                                       \
    CALL_LIMITED(&call, ready == 0, limit);                                                        \
    after_poll(&call, fds, readable, mask, ready);                                                 \
    return ready

#define POLL(...)       POLL_CALL(NULL, limit_of_ms(timeout), __VA_ARGS__)
#define POLL_TIMED(...) POLL_CALL(mask, limit_of(timeout), __VA_ARGS__)

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    if (count > room / sizeof *fds)
        return REAL(__poll_chk)(fds, count, timeout, room);
    POLL_CALL(NULL, limit_of_ms(timeout), REAL(__poll_chk)(fds, count, timeout, room));
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    if (count > room / sizeof *fds)
        return REAL(__ppoll_chk)(fds, count, timeout, mask, room);
    POLL_CALL(mask, limit_of(timeout), REAL(__ppoll_chk)(fds, count, timeout, mask, room));
}

/* Sets may be larger than fd_set: their size follows from the number of descriptors. */
static bool is_in(const fd_set *set, int fd)
{
    const unsigned bits = 8 * sizeof(set->fds_bits[0]);
    return (unsigned long)set->fds_bits[(unsigned)fd / bits] >> (unsigned)fd % bits & 1;
}

/* The descriptors passed to select(2), which overwrites its sets; only as many as can be named. */
struct selected {
    size_t count;
    struct pollfd fds[SHM_POLLED_MAX];
};

static void select_from(struct selected *selected, int count, const fd_set *set, short events)
{
    const int bits = 8 * sizeof(set->fds_bits[0]);
    for (int base = 0; base < count; base += bits) {
        unsigned long word = (unsigned long)set->fds_bits[base / bits];
        for (; word; word &= word - 1) {
            int fd = base + __builtin_ctzl(word);
            if (fd >= count)
                return;
            if (events == POLLIN)
                descriptor_polled(fd);
            if (selected->count < SHM_POLLED_MAX)
                selected->fds[selected->count] = (struct pollfd){.fd = fd, .events = events};
            selected->count++;
        }
    }
}

static uint64_t selected_object(const struct selected *selected)
{
    uint64_t object = pollfds_object(selected->fds, selected->count);
    return object ? object | SHM_POLLFDS_FEW : 0;
}

static void before_select(struct selected *selected, int count, const fd_set *reads,
                          const fd_set *writes)
{
    selected->count = 0;
    if (is_address(reads))
        select_from(selected, count, reads, POLLIN);
    if (is_address(writes))
        select_from(selected, count, writes, POLLOUT);
}

static void after_select(struct call *call, struct selected *selected, int count,
                         const fd_set *reads, const fd_set *writes, const sigset_t *mask, int ready)
{
    if (!call_blocked(call))
        return;
    keep_polled(call, ready);
    for (size_t i = 0; ready > 0 && i < selected->count && i < SHM_POLLED_MAX; i++) {
        struct pollfd *at = &selected->fds[i];
        if (is_in(at->events == POLLIN ? reads : writes, at->fd))
            at->revents = at->events;
    }
    if (ready < 0 && errno == EINTR)
        signals_interrupted(mask);
    for (int fd = 0; ready != 0 && is_address(reads) && fd < count; fd++) {
        if (is_in(reads, fd) && descriptor_ready(fd, call))
            return;
    }
}

#define SELECT_CALL(mask, limit, ...)                                                              \
    struct unwind_start caller = CALLER();                                                         \
    struct selected selected;                                                                      \
    before_select(&selected, count, reads, writes);                                                \
    struct call call CALL =                                                                        \
        call_begin(&caller, SHM_GROUP_IO, SHM_POLL, selected_object(&selected),                    \
                   pollfds_detail(selected.fds, selected.count), 0);                               \
    int ready = __VA_ARGS__;                                                                       \
    CALL_LIMITED(&call, ready == 0, limit);                                                        \
    after_select(&call, &selected, count, reads, writes, mask, ready);                             \
    return ready

/* The C library also reads the time before the call; the kernel overwrites it with the remaining
 * time. */
#define SELECT(...)                                                                                \
    const struct timeval full = timeout ? *timeout : (struct timeval){0};                          \
    const struct timespec length = {full.tv_sec, full.tv_usec * 1000};                             \
    SELECT_CALL(NULL, limit_of(&length), __VA_ARGS__)
#define SELECT_TIMED(...) SELECT_CALL(mask, limit_of(timeout), __VA_ARGS__)

/* MARK: Moving data from one descriptor to another */

static void after_move(struct call *call, ssize_t result)
{
    if (!call_blocked(call))
        return;
    keep_polled(call, 0);
    if (result < 0 && errno == EINTR)
        signals_interrupted(NULL);
}

/*
 * The kernel waits for data of `from`, then for room in `fd`, and does not report for which: both
 * are named, and the waker is unknown.
 */
#define MOVE(...)                                                                                  \
    struct unwind_start caller = CALLER();                                                         \
    const struct pollfd both[] = {{.fd = from, .events = POLLIN}, {.fd = fd, .events = POLLOUT}};  \
    (void)descriptor_reads(from, &caller);                                                         \
    (void)descriptor_writes(fd, &caller);                                                          \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_POLL, pollfds_object(both, 2),   \
                                       pollfds_detail(both, 2), 0);                                \
    ssize_t moved = RETURNED(__VA_ARGS__);                                                         \
    after_move(&call, moved);                                                                      \
    return moved

/* A descriptor with an offset is a file, so that only the other one is waited for. */
EXPORT ssize_t splice(int from, off64_t *from_offset, int fd, off64_t *offset, size_t size,
                      unsigned flags)
{
    if (from_offset) {
        WRITE(REAL(splice)(from, from_offset, fd, offset, size, flags));
    }
    if (offset) {
        const int to = fd;
        fd = from;
        READ(REAL(splice)(from, from_offset, to, offset, size, flags));
    }
    MOVE(REAL(splice)(from, from_offset, fd, offset, size, flags));
}

/* MARK: Sets */

/* If none of the events belongs to a known end, the waker is unknown. */
static void after_epoll(struct call *call, int set, const struct epoll_event *events,
                        const sigset_t *mask, int ready)
{
    if (ready < 0 && errno == EINTR && call_blocked(call))
        signals_interrupted(mask);
    if (ready >= 0 && call_blocked(call) && !descriptor_in_events(set, events, ready, call))
        call->flags |= SHM_TIMED_OUT;
}

#define EPOLL_CALL(mask, limit, ...)                                                               \
    struct unwind_start caller = CALLER();                                                         \
    if (UNLIKELY(board_of_several))                                                                \
        descriptor_set_polled(fd);                                                                 \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_POLL,                            \
                                       descriptor_reads(fd, &caller), (uint32_t)fd + 1, 0);        \
    int ready = __VA_ARGS__;                                                                       \
    CALL_LIMITED(&call, ready == 0, limit);                                                        \
    after_epoll(&call, fd, events, mask, ready);                                                   \
    return ready

#define EPOLL(...)        EPOLL_CALL(NULL, limit_of_ms(timeout), __VA_ARGS__)
#define EPOLL_MASKED(...) EPOLL_CALL(mask, limit_of_ms(timeout), __VA_ARGS__)
#define EPOLL_TIMED(...)  EPOLL_CALL(mask, limit_of(timeout), __VA_ARGS__)

/* MARK: Messages */

/* A queue is an end that is its own peer, like an eventfd. */
ALWAYS unsigned queue_end(mqd_t fd)
{
    unsigned end = descriptor_end(fd);
    return end || !board || (unsigned)fd >= DESCRIPTORS ? end : descriptor_look(fd);
}

static uint64_t queue_reads(mqd_t fd, const struct unwind_start *caller)
{
    unsigned end = queue_end(fd);
    return end ? end_reads(end, caller) : 0;
}

static uint64_t queue_writes(mqd_t fd, const struct unwind_start *caller)
{
    unsigned end = queue_end(fd);
    return end ? end_writes(end, caller) : 0;
}

#define QUEUE_READ(...)        END_CALL(SHM_READ, queue_reads(fd, &caller), __VA_ARGS__)
#define QUEUE_WRITE(...)       END_CALL(SHM_WRITE, queue_writes(fd, &caller), __VA_ARGS__)
#define QUEUE_READ_TIMED(...)  TIMED_END_CALL(SHM_READ, queue_reads(fd, &caller), __VA_ARGS__)
#define QUEUE_WRITE_TIMED(...) TIMED_END_CALL(SHM_WRITE, queue_writes(fd, &caller), __VA_ARGS__)

EXPORT int mq_close(mqd_t fd)
{
    struct unwind_start caller = CALLER();
    descriptor_closed(fd, &caller);
    return REAL(mq_close)(fd);
}

#define FOR_WRITERS (UINT64_C(1) << 32)

/*
 * Called before a message is read or written, which wakes a process that waits to do the opposite.
 * Returns the object of a wait.
 */
static uint64_t queue_object(int queue, enum shm_wait kind, const struct unwind_start *caller)
{
    uint64_t reads = SHM_QUEUE | (uint32_t)queue, writes = reads | FOR_WRITERS;
    uint64_t own = kind == SHM_READ ? reads : writes;
    if (UNLIKELY(board != NULL) && is_recorded(SHM_GROUP_IO)) {
        board_waits(own, own);
        board_release(kind == SHM_READ ? writes : reads, kind == SHM_READ ? SHM_WRITE : SHM_READ, 0,
                      caller);
    }
    return own;
}

#define MESSAGE_CALL(kind, ...)                                                                    \
    BRIEF_CALL(SHM_GROUP_IO, kind, queue_object(queue, kind, &caller), 0, __VA_ARGS__)
#define MESSAGE_READ(...)  MESSAGE_CALL(SHM_READ, __VA_ARGS__)
#define MESSAGE_WRITE(...) MESSAGE_CALL(SHM_WRITE, __VA_ARGS__)

/* MARK: Opening: FIFOs, devices and files elsewhere block */

ALWAYS uint64_t path_object(const char *path)
{
    return SHM_PATH | ((uint64_t)(uintptr_t)path & UINT64_MAX >> 8);
}

/*
 * The descriptor is known only after the call. A FIFO is often closed before its name is looked up,
 * so its path is recorded too; recording the path of every file waited for would be too much.
 */
static void opened(const struct call *call, const char *path, int flags, int fd)
{
    bool is_noted = call->open && self_has_slot();
    /* Without rseq any call may have waited. */
    bool waited = is_noted && (!self.has_rseq || switches_happened());
    descriptor_new(fd);
    file_locks_opened(fd);
    bool is_fifo = UNLIKELY(waited || (flags & O_NONBLOCK)) && descriptor_is_of_fifo(fd);
    if (!is_noted)
        return;
    self.slot->open_detail = (uint32_t)fd + 1;
    self.slot->open_object = is_fifo && waited ? SHM_NAME | text_of(path) : 0;
}

/* While the call is open, the recorder can read the path. */
#define OPEN(...)                                                                                  \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_FILE, path_object(path), 0, 0);  \
    int fd = RETURNED(__VA_ARGS__);                                                                \
    opened(&call, path, flags, fd);                                                                \
    return fd

/* A mode is passed only if the flags can create a file. */
#define OPEN_MODE(...)                                                                             \
    mode_t mode = 0;                                                                               \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                   \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }                                                                                              \
    OPEN(__VA_ARGS__)

#define CREATE(...)                                                                                \
    const int flags = O_CREAT | O_WRONLY | O_TRUNC;                                                \
    OPEN(__VA_ARGS__)

/* MARK: The wrappers */

#define IO WRAP
#include "preload/symbols.def"
