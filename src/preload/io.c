/* Wrappers for calls on file descriptors. Whether one blocks is known only afterwards: see call.h. */
#include <stdarg.h>
#include <string.h>

#include "preload/connections.h"
#include "preload/file_locks.h"

/* The body of a wrapper of a call on `fd` for which no other end is known to wait. */
#define FD_CALL(kind, ...) BRIEF_CALL(SHM_GROUP_IO, kind, 0, (uint32_t)fd + 1, __VA_ARGS__)

/* Called after a read, a write or an accept that a signal's handler ended, and no other end. */
static void interrupted(void)
{
    if (!self_has_slot() || !open_blocked())
        return;
    self.slot->open_object = 0;
    signals_interrupted(NULL);
}

/* The same after each, with its result. */
ALWAYS void perhaps_interrupted(bool is_open, int64_t result)
{
    if (UNLIKELY(result < 0) && errno == EINTR && is_open)
        interrupted();
}

/* The body of a wrapper of a call for which the other end of `object` waits. */
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
    call_expired(&call, result < 0 && errno == ETIMEDOUT);                                         \
    perhaps_interrupted(call.open, result);                                                        \
    return result

#define READ_CALL(kind, ...)  END_CALL(kind, descriptor_reads(fd, &caller), __VA_ARGS__)
#define WRITE_CALL(kind, ...) END_CALL(kind, descriptor_writes(fd, &caller), __VA_ARGS__)

/* MARK: Reading */

EXPORT ssize_t read(int fd, void *buffer, size_t size)
{
    READ_CALL(SHM_READ, REAL(read)(fd, buffer, size));
}

EXPORT ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room)
{
    READ_CALL(SHM_READ, REAL(__read_chk)(fd, buffer, size, room));
}

EXPORT ssize_t pread(int fd, void *buffer, size_t size, off_t offset)
{
    FD_CALL(SHM_READ, REAL(pread)(fd, buffer, size, offset));
}

EXPORT ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset)
{
    FD_CALL(SHM_READ, REAL(pread64)(fd, buffer, size, offset));
}

EXPORT ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room)
{
    FD_CALL(SHM_READ, REAL(__pread_chk)(fd, buffer, size, offset, room));
}

EXPORT ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room)
{
    FD_CALL(SHM_READ, REAL(__pread64_chk)(fd, buffer, size, offset, room));
}

EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
    READ_CALL(SHM_READ, REAL(readv)(fd, parts, count));
}

EXPORT ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
    FD_CALL(SHM_READ, REAL(preadv)(fd, parts, count, offset));
}

EXPORT ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    FD_CALL(SHM_READ, REAL(preadv64)(fd, parts, count, offset));
}

EXPORT ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    READ_CALL(SHM_READ, REAL(preadv2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    READ_CALL(SHM_READ, REAL(preadv64v2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    READ_CALL(SHM_READ, REAL(recv)(fd, buffer, size, flags));
}

EXPORT ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags)
{
    READ_CALL(SHM_READ, REAL(__recv_chk)(fd, buffer, size, room, flags));
}

EXPORT ssize_t recvfrom(int fd, void *restrict buffer, size_t size, int flags,
                        struct sockaddr *restrict from, socklen_t *restrict length)
{
    READ_CALL(SHM_READ, REAL(recvfrom)(fd, buffer, size, flags, from, length));
}

EXPORT ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
                              struct sockaddr *from, socklen_t *length)
{
    READ_CALL(SHM_READ, REAL(__recvfrom_chk)(fd, buffer, size, room, flags, from, length));
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    READ_CALL(SHM_READ, REAL(recvmsg)(fd, message, flags));
}

EXPORT int recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags,
                    struct timespec *timeout)
{
    READ_CALL(SHM_READ, REAL(recvmmsg)(fd, messages, count, flags, timeout));
}

/* MARK: Writing */

EXPORT ssize_t write(int fd, const void *data, size_t size)
{
    WRITE_CALL(SHM_WRITE, REAL(write)(fd, data, size));
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    FD_CALL(SHM_WRITE, REAL(pwrite)(fd, data, size, offset));
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    FD_CALL(SHM_WRITE, REAL(pwrite64)(fd, data, size, offset));
}

EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
    WRITE_CALL(SHM_WRITE, REAL(writev)(fd, parts, count));
}

EXPORT ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    FD_CALL(SHM_WRITE, REAL(pwritev)(fd, parts, count, offset));
}

EXPORT ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset)
{
    FD_CALL(SHM_WRITE, REAL(pwritev64)(fd, parts, count, offset));
}

EXPORT ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
    WRITE_CALL(SHM_WRITE, REAL(pwritev2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags)
{
    WRITE_CALL(SHM_WRITE, REAL(pwritev64v2)(fd, parts, count, offset, flags));
}

EXPORT ssize_t send(int fd, const void *data, size_t size, int flags)
{
    WRITE_CALL(SHM_WRITE, REAL(send)(fd, data, size, flags));
}

/* What is sent to an address is not for the peer. */
EXPORT ssize_t sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                      socklen_t length)
{
    END_CALL(SHM_WRITE, to ? 0 : descriptor_writes(fd, &caller),
             REAL(sendto)(fd, data, size, flags, to, length));
}

/* Descriptors that are passed to other processes, which may then have what this one opened. */
static void passes(const struct msghdr *message)
{
    for (struct cmsghdr *part = message ? CMSG_FIRSTHDR(message) : NULL; part;
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
    END_CALL(SHM_WRITE, message && message->msg_name ? 0 : descriptor_writes(fd, &caller),
             REAL(sendmsg)(fd, message, flags));
}

EXPORT int sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
    for (unsigned i = 0; messages && i < count; i++)
        passes(&messages[i].msg_hdr);
    END_CALL(SHM_WRITE,
             messages && count && messages->msg_hdr.msg_name ? 0 : descriptor_writes(fd, &caller),
             REAL(sendmmsg)(fd, messages, count, flags));
}

EXPORT ssize_t sendfile(int fd, int from, off_t *offset, size_t size)
{
    WRITE_CALL(SHM_WRITE, REAL(sendfile)(fd, from, offset, size));
}

EXPORT ssize_t sendfile64(int fd, int from, off64_t *offset, size_t size)
{
    WRITE_CALL(SHM_WRITE, REAL(sendfile64)(fd, from, offset, size));
}

EXPORT ssize_t splice(int from, off64_t *from_offset, int fd, off64_t *offset, size_t size,
                      unsigned flags)
{
    WRITE_CALL(SHM_WRITE, REAL(splice)(from, from_offset, fd, offset, size, flags));
}

/* MARK: Connections */

#define ACCEPT_CALL(...)                                                                           \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_ACCEPT, 0, (uint32_t)fd + 1, 0); \
    int connection = RETURNED(__VA_ARGS__);                                                        \
    descriptor_new(connection);                                                                    \
    perhaps_interrupted(call.open, connection);                                                    \
    if (UNLIKELY(connections_own) && connection >= 0)                                              \
        connection_made(connection, true);                                                         \
    return connection

EXPORT int accept(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
    ACCEPT_CALL(REAL(accept)(fd, address, length));
}

EXPORT int accept4(int fd, struct sockaddr *restrict address, socklen_t *restrict length, int flags)
{
    ACCEPT_CALL(REAL(accept4)(fd, address, length, flags));
}

EXPORT int connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct unwind_start caller = CALLER();
    bool own = connection_is_own(address, length);
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_CONNECT, 0, (uint32_t)fd + 1, 0);
    int status = RETURNED(REAL(connect)(fd, address, length));
    descriptor_connected(fd);
    if (UNLIKELY(own) && (status == 0 || errno == EINPROGRESS))
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

/* The object of a wait for several descriptors, which are named if it blocks; one is the wait's detail. */
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
 * Finds the descriptor that a thread of this process made ready. After a wait that a signal interrupted all are tried: the
 * handler may have written to one.
 */
static void after_poll(struct call *call, const struct pollfd *fds, nfds_t count,
                       const sigset_t *mask, int ready)
{
    call_expired(call, ready == 0);
    if (!call_blocked(call))
        return;
    keep_polled(call, ready);
    for (nfds_t i = 0; ready != 0 && i < count; i++) {
        if ((ready < 0 || (fds[i].revents & READABLE)) && descriptor_ready(fds[i].fd, call))
            return;
    }
    if (ready < 0 && errno == EINTR)
        signals_interrupted(mask);
}

#define POLL_CALL(mask, ...)                                                                       \
    struct unwind_start caller = CALLER();                                                         \
    before_poll(fds, count);                                                                       \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_POLL,                            \
                                       pollfds_object(fds, count), pollfds_detail(fds, count), 0); \
    int ready = __VA_ARGS__;                                                                       \
    after_poll(&call, fds, count, mask, ready);                                                    \
    return ready

EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    POLL_CALL(NULL, REAL(poll)(fds, count, timeout));
}

EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    if (count > room / sizeof *fds)
        return REAL(__poll_chk)(fds, count, timeout, room);
    POLL_CALL(NULL, REAL(__poll_chk)(fds, count, timeout, room));
}

EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    POLL_CALL(mask, REAL(ppoll)(fds, count, timeout, mask));
}

EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    if (count > room / sizeof *fds)
        return REAL(__ppoll_chk)(fds, count, timeout, mask, room);
    POLL_CALL(mask, REAL(__ppoll_chk)(fds, count, timeout, mask, room));
}

/* Sets may be larger than fd_set: they have the words that `count` needs. */
static bool is_in(const fd_set *set, int fd)
{
    const unsigned bits = 8 * sizeof(set->fds_bits[0]);
    return (unsigned long)set->fds_bits[(unsigned)fd / bits] >> (unsigned)fd % bits & 1;
}

/* The descriptors of a select(2), which overwrites its sets; no more of them than can be named. */
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
    if (reads)
        select_from(selected, count, reads, POLLIN);
    if (writes)
        select_from(selected, count, writes, POLLOUT);
}

static void after_select(struct call *call, struct selected *selected, int count,
                         const fd_set *reads, const fd_set *writes, const sigset_t *mask, int ready)
{
    call_expired(call, ready == 0);
    if (!call_blocked(call))
        return;
    keep_polled(call, ready);
    for (size_t i = 0; ready > 0 && i < selected->count && i < SHM_POLLED_MAX; i++) {
        struct pollfd *at = &selected->fds[i];
        if (is_in(at->events == POLLIN ? reads : writes, at->fd))
            at->revents = at->events;
    }
    for (int fd = 0; ready != 0 && reads && fd < count; fd++) {
        if (is_in(reads, fd) && descriptor_ready(fd, call))
            return;
    }
    if (ready < 0 && errno == EINTR)
        signals_interrupted(mask);
}

#define SELECT_CALL(mask, ...)                                                                     \
    struct unwind_start caller = CALLER();                                                         \
    struct selected selected;                                                                      \
    before_select(&selected, count, reads, writes);                                                \
    struct call call CALL =                                                                        \
        call_begin(&caller, SHM_GROUP_IO, SHM_POLL, selected_object(&selected),                    \
                   pollfds_detail(selected.fds, selected.count), 0);                               \
    int ready = __VA_ARGS__;                                                                       \
    after_select(&call, &selected, count, reads, writes, mask, ready);                             \
    return ready

EXPORT int select(int count, fd_set *restrict reads, fd_set *restrict writes,
                  fd_set *restrict others, struct timeval *restrict timeout)
{
    SELECT_CALL(NULL, REAL(select)(count, reads, writes, others, timeout));
}

EXPORT int pselect(int count, fd_set *restrict reads, fd_set *restrict writes,
                   fd_set *restrict others, const struct timespec *restrict timeout,
                   const sigset_t *restrict mask)
{
    SELECT_CALL(mask, REAL(pselect)(count, reads, writes, others, timeout, mask));
}

/* No event is of a known end: the waker is not known. */
static void after_epoll(struct call *call, int set, const struct epoll_event *events,
                        const sigset_t *mask, int ready)
{
    call_expired(call, ready == 0);
    if (ready < 0 && errno == EINTR && call_blocked(call))
        signals_interrupted(mask);
    if (ready >= 0 && call_blocked(call) && !descriptor_in_events(set, events, ready, call))
        call->flags |= SHM_TIMED_OUT;
}

#define EPOLL_CALL(mask, ...)                                                                      \
    struct unwind_start caller = CALLER();                                                         \
    if (UNLIKELY(board_of_several))                                                                \
        descriptor_set_polled(fd);                                                                 \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_POLL,                            \
                                       descriptor_reads(fd, &caller), (uint32_t)fd + 1, 0);        \
    int ready = __VA_ARGS__;                                                                       \
    after_epoll(&call, fd, events, mask, ready);                                                   \
    return ready

EXPORT int epoll_wait(int fd, struct epoll_event *events, int room, int timeout)
{
    EPOLL_CALL(NULL, REAL(epoll_wait)(fd, events, room, timeout));
}

EXPORT int epoll_pwait(int fd, struct epoll_event *events, int room, int timeout,
                       const sigset_t *mask)
{
    EPOLL_CALL(mask, REAL(epoll_pwait)(fd, events, room, timeout, mask));
}

EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int room,
                        const struct timespec *timeout, const sigset_t *mask)
{
    EPOLL_CALL(mask, REAL(epoll_pwait2)(fd, events, room, timeout, mask));
}

/* MARK: Event descriptors */

/* The C library's calls within these functions are not wrapped. */
EXPORT int eventfd_read(int fd, eventfd_t *value)
{
    READ_CALL(SHM_READ, REAL(eventfd_read)(fd, value));
}

EXPORT int eventfd_write(int fd, eventfd_t value)
{
    WRITE_CALL(SHM_WRITE, REAL(eventfd_write)(fd, value));
}

/* MARK: Messages */

/* A queue is the end of a descriptor that is its own peer, like an eventfd. */
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

EXPORT ssize_t mq_receive(mqd_t fd, char *text, size_t size, unsigned *priority)
{
    END_CALL(SHM_READ, queue_reads(fd, &caller), REAL(mq_receive)(fd, text, size, priority));
}

EXPORT ssize_t mq_timedreceive(mqd_t fd, char *restrict text, size_t size,
                               unsigned *restrict priority, const struct timespec *restrict until)
{
    TIMED_END_CALL(SHM_READ, queue_reads(fd, &caller),
                   REAL(mq_timedreceive)(fd, text, size, priority, until));
}

EXPORT int mq_send(mqd_t fd, const char *text, size_t size, unsigned priority)
{
    END_CALL(SHM_WRITE, queue_writes(fd, &caller), REAL(mq_send)(fd, text, size, priority));
}

EXPORT int mq_timedsend(mqd_t fd, const char *text, size_t size, unsigned priority,
                        const struct timespec *until)
{
    TIMED_END_CALL(SHM_WRITE, queue_writes(fd, &caller),
                   REAL(mq_timedsend)(fd, text, size, priority, until));
}

EXPORT int mq_close(mqd_t fd)
{
    struct unwind_start caller = CALLER();
    descriptor_closed(fd, &caller);
    return REAL(mq_close)(fd);
}

#define QUEUE_WRITE (UINT64_C(1) << 32)

/* Called before a message is read or written, which wakes a process that waits for the other. Returns the object of a wait. */
static uint64_t queue_object(int queue, enum shm_wait kind, const struct unwind_start *caller)
{
    uint64_t reads = SHM_QUEUE | (uint32_t)queue, writes = reads | QUEUE_WRITE;
    uint64_t own = kind == SHM_READ ? reads : writes;
    if (UNLIKELY(board != NULL) && is_recorded(SHM_GROUP_IO)) {
        board_waits(own, own);
        board_release(kind == SHM_READ ? writes : reads, kind == SHM_READ ? SHM_WRITE : SHM_READ, 0,
                      caller);
    }
    return own;
}

#define QUEUE_CALL(kind, ...)                                                                      \
    BRIEF_CALL(SHM_GROUP_IO, kind, queue_object(queue, kind, &caller), 0, __VA_ARGS__)

EXPORT ssize_t msgrcv(int queue, void *message, size_t size, long type, int flags)
{
    QUEUE_CALL(SHM_READ, REAL(msgrcv)(queue, message, size, type, flags));
}

EXPORT int msgsnd(int queue, const void *message, size_t size, int flags)
{
    QUEUE_CALL(SHM_WRITE, REAL(msgsnd)(queue, message, size, flags));
}

/* MARK: Files on disk */

EXPORT int fsync(int fd)
{
    FD_CALL(SHM_FILE, REAL(fsync)(fd));
}

EXPORT int fdatasync(int fd)
{
    FD_CALL(SHM_FILE, REAL(fdatasync)(fd));
}

EXPORT int syncfs(int fd)
{
    FD_CALL(SHM_FILE, REAL(syncfs)(fd));
}

EXPORT int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags)
{
    FD_CALL(SHM_FILE, REAL(sync_file_range)(fd, offset, size, flags));
}

EXPORT int fallocate(int fd, int mode, off_t offset, off_t size)
{
    FD_CALL(SHM_FILE, REAL(fallocate)(fd, mode, offset, size));
}

EXPORT int fallocate64(int fd, int mode, off64_t offset, off64_t size)
{
    FD_CALL(SHM_FILE, REAL(fallocate64)(fd, mode, offset, size));
}

EXPORT int posix_fallocate(int fd, off_t offset, off_t size)
{
    FD_CALL(SHM_FILE, REAL(posix_fallocate)(fd, offset, size));
}

EXPORT int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
    FD_CALL(SHM_FILE, REAL(posix_fallocate64)(fd, offset, size));
}

EXPORT int ftruncate(int fd, off_t size)
{
    FD_CALL(SHM_FILE, REAL(ftruncate)(fd, size));
}

EXPORT int ftruncate64(int fd, off64_t size)
{
    FD_CALL(SHM_FILE, REAL(ftruncate64)(fd, size));
}

EXPORT int tcdrain(int fd)
{
    FD_CALL(SHM_FILE, REAL(tcdrain)(fd));
}

/* MARK: Opening: FIFOs, devices and files elsewhere block */

ALWAYS uint64_t path_object(const char *path)
{
    return SHM_PATH | ((uint64_t)(uintptr_t)path & UINT64_MAX >> 8);
}

/*
 * The descriptor is known only after the call. That of a FIFO is often closed before its name is looked up, so its path is
 * kept as well; not the paths of all files that were waited for, which could be very many.
 */
static void opened(const struct call *call, const char *path, int flags, int fd)
{
    bool is_noted = call->open && self_has_slot();
    /* Without rseq it is not known which calls waited. */
    bool waited = is_noted && (!self.has_rseq || switches_happened());
    bool is_fifo;
    descriptor_new(fd);
    file_locks_opened(fd);
    is_fifo = UNLIKELY(waited || (flags & O_NONBLOCK)) && descriptor_is_of_fifo(fd);
    if (!is_noted)
        return;
    self.slot->open_detail = (uint32_t)fd + 1;
    self.slot->open_object = is_fifo && waited ? SHM_NAME | text_of(path) : 0;
}

/* While the call is open, the recorder can read the path. */
#define OPEN_CALL(flags, ...)                                                                      \
    struct unwind_start caller = CALLER();                                                         \
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_FILE, path_object(path), 0, 0);  \
    int fd = RETURNED(__VA_ARGS__);                                                                \
    opened(&call, path, flags, fd);                                                                \
    return fd

/* There is a mode only if the flags allow that a file is created. */
#define MODE                                                                                       \
    mode_t mode = 0;                                                                               \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {                                   \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode = va_arg(list, mode_t);                                                               \
        va_end(list);                                                                              \
    }

EXPORT int open(const char *path, int flags, ...)
{
    MODE OPEN_CALL(flags, REAL(open)(path, flags, mode));
}

EXPORT int open64(const char *path, int flags, ...)
{
    MODE OPEN_CALL(flags, REAL(open64)(path, flags, mode));
}

EXPORT int openat(int folder, const char *path, int flags, ...)
{
    MODE OPEN_CALL(flags, REAL(openat)(folder, path, flags, mode));
}

EXPORT int openat64(int folder, const char *path, int flags, ...)
{
    MODE OPEN_CALL(flags, REAL(openat64)(folder, path, flags, mode));
}

EXPORT int __open_2(const char *path, int flags)
{
    OPEN_CALL(flags, REAL(__open_2)(path, flags));
}

EXPORT int __open64_2(const char *path, int flags)
{
    OPEN_CALL(flags, REAL(__open64_2)(path, flags));
}

EXPORT int __openat_2(int folder, const char *path, int flags)
{
    OPEN_CALL(flags, REAL(__openat_2)(folder, path, flags));
}

EXPORT int __openat64_2(int folder, const char *path, int flags)
{
    OPEN_CALL(flags, REAL(__openat64_2)(folder, path, flags));
}

EXPORT int creat(const char *path, mode_t mode)
{
    OPEN_CALL(O_CREAT | O_WRONLY | O_TRUNC, REAL(creat)(path, mode));
}

EXPORT int creat64(const char *path, mode_t mode)
{
    OPEN_CALL(O_CREAT | O_WRONLY | O_TRUNC, REAL(creat64)(path, mode));
}
