/* Wrappers for C library functions that block in system calls which no wrapper sees. */
#include <errno.h>
#include <string.h>
#include <sys/single_threaded.h>

#include "preload/descriptors.h"
#include "preload/exec.h"
#include "preload/file_locks.h"
#include "preload/known.h"
#include "preload/streams.h"

#define WAIT_CALL(kind, ...) BRIEF_CALL(SHM_GROUP_IO, kind, 0, 0, __VA_ARGS__)

/* MARK: stdio */

/* Returns the file's descriptor; negative: none. Without the lock, which a reader may hold. */
ALWAYS int descriptor_of(const FILE *file)
{
    return file->_fileno;
}

#define READ_FILE(file, ...)                                                                       \
    BRIEF_CALL(SHM_GROUP_IO, SHM_READ, descriptor_reads(descriptor_of(file), &caller),             \
               (uint32_t)descriptor_of(file) + 1, __VA_ARGS__)

/* Whether the buffer has unwritten data. */
ALWAYS bool is_pending(const FILE *file)
{
    return file->_IO_write_ptr > file->_IO_write_base;
}

/* Called before the buffer is written, which wakes a reader. Returns the object of a wait. */
static uint64_t flushes(const FILE *file, const struct unwind_start *caller)
{
    return file && is_pending(file) ? descriptor_writes(descriptor_of(file), caller) : 0;
}

/* Most writes only fill the buffer; the others matter only to other processes. */
#define WRITE_FILE(file, ...)                                                                      \
    BRIEF_CALL(SHM_GROUP_IO, SHM_WRITE, UNLIKELY(board_of_several) ? flushes(file, &caller) : 0,   \
               (uint32_t)descriptor_of(file) + 1, __VA_ARGS__)

#define FLUSH_FILE(file, ...)                                                                      \
    int fd = file ? descriptor_of(file) : -1;                                                      \
    BRIEF_CALL(SHM_GROUP_IO, SHM_WRITE, flushes(file, &caller), (uint32_t)fd + 1, __VA_ARGS__)

/*
 * Most calls read or write a few bytes in the buffer, where any further check would be noticeable.
 * The wrapper handles only these; otherwise it jumps to a function that starts over, as if the
 * program had called that function.
 */
#define BUFFERED_CALL(result, name, is_there, wrap, arguments, ...)                                \
    NOINLINE result name##_through(__VA_ARGS__)                                                    \
    {                                                                                              \
        wrap(file, REAL(name) arguments);                                                          \
    }                                                                                              \
    EXPORT result name(__VA_ARGS__)                                                                \
    {                                                                                              \
        return LIKELY(is_there) ? REAL(name) arguments : name##_through arguments;                 \
    }

/* The same for a function that takes the lock of the stream. */
#define LOCKING_CALL(result, name, is_there, wrap, arguments, ...)                                 \
    NOINLINE result name##_through(__VA_ARGS__)                                                    \
    {                                                                                              \
        struct unwind_start from = CALLER();                                                       \
        struct stream_taken taken STREAM_TAKEN = stream_take_first(file, false, &from);            \
        wrap(file, REAL(name) arguments);                                                          \
    }                                                                                              \
    EXPORT result name(__VA_ARGS__)                                                                \
    {                                                                                              \
        return LIKELY((is_there) && !stream_is_taken(file)) ? REAL(name) arguments                 \
                                                            : name##_through arguments;            \
    }

/* A line-buffered file reports no room. */
ALWAYS bool is_within(const char *from, const char *end, size_t size, size_t count)
{
    size_t bytes;
    return from < end && !__builtin_mul_overflow(size, count, &bytes) &&
           bytes <= (size_t)(end - from);
}

#define CAN_READ(size, count)  is_within(file->_IO_read_ptr, file->_IO_read_end, size, count)
#define CAN_WRITE(size, count) is_within(file->_IO_write_ptr, file->_IO_write_end, size, count)

LOCKING_CALL(size_t, fread, CAN_READ(size, count), READ_FILE, (buffer, size, count, file),
             void *restrict buffer, size_t size, size_t count, FILE *restrict file)
BUFFERED_CALL(size_t, fread_unlocked, CAN_READ(size, count), READ_FILE, (buffer, size, count, file),
              void *restrict buffer, size_t size, size_t count, FILE *restrict file)
LOCKING_CALL(int, fgetc, CAN_READ(1, 1), READ_FILE, (file), FILE *file)
LOCKING_CALL(int, getc, CAN_READ(1, 1), READ_FILE, (file), FILE *file)
LOCKING_CALL(size_t, fwrite, CAN_WRITE(size, count), WRITE_FILE, (data, size, count, file),
             const void *restrict data, size_t size, size_t count, FILE *restrict file)
BUFFERED_CALL(size_t, fwrite_unlocked, CAN_WRITE(size, count), WRITE_FILE,
              (data, size, count, file), const void *restrict data, size_t size, size_t count,
              FILE *restrict file)

/* Whether the buffer has a line, or `most` bytes of one. The caller must be the only reader. */
ALWAYS bool has_line(const FILE *file, int end, size_t most)
{
    size_t there = (size_t)(file->_IO_read_end - file->_IO_read_ptr);
    return file->_IO_read_ptr < file->_IO_read_end &&
           (there >= most || memchr(file->_IO_read_ptr, end, there) != NULL);
}

#define HAS_STRING (size > 0 && has_line(file, '\n', (size_t)size - 1))
/* The other functions take the file's lock only if there are other threads. */
#define ALONE(is_there) (__libc_single_threaded && (is_there))

LOCKING_CALL(char *, fgets, ALONE(HAS_STRING), READ_FILE, (buffer, size, file),
             char *restrict buffer, int size, FILE *restrict file)
BUFFERED_CALL(char *, fgets_unlocked, HAS_STRING, READ_FILE, (buffer, size, file),
              char *restrict buffer, int size, FILE *restrict file)
LOCKING_CALL(ssize_t, getline, ALONE(has_line(file, '\n', SIZE_MAX)), READ_FILE, (line, size, file),
             char **restrict line, size_t *restrict size, FILE *restrict file)
LOCKING_CALL(ssize_t, getdelim, ALONE(has_line(file, end, SIZE_MAX)), READ_FILE,
             (line, size, end, file), char **restrict line, size_t *restrict size, int end,
             FILE *restrict file)
/* The name under which older <stdio.h> inlined it. */
LOCKING_CALL(ssize_t, __getdelim, ALONE(has_line(file, end, SIZE_MAX)), READ_FILE,
             (line, size, end, file), char **restrict line, size_t *restrict size, int end,
             FILE *restrict file)
LOCKING_CALL(int, fputs, CAN_WRITE(1, strlen(text)), WRITE_FILE, (text, file),
             const char *restrict text, FILE *restrict file)
BUFFERED_CALL(int, fputs_unlocked, CAN_WRITE(1, strlen(text)), WRITE_FILE, (text, file),
              const char *restrict text, FILE *restrict file)

NOINLINE int puts_through(const char *text)
{
    struct unwind_start from = CALLER();
    struct stream_taken taken STREAM_TAKEN = stream_take_first(stdout, false, &from);
    WRITE_FILE(stdout, REAL(puts)(text));
}

EXPORT int puts(const char *text)
{
    const FILE *file = stdout;
    return LIKELY(CAN_WRITE(1, strlen(text) + 1) && !stream_is_taken(file)) ? REAL(puts)(text)
                                                                            : puts_through(text);
}

LOCKING_CALL(int, fputc, CAN_WRITE(1, 1), WRITE_FILE, (byte, file), int byte, FILE *file)
LOCKING_CALL(int, putc, CAN_WRITE(1, 1), WRITE_FILE, (byte, file), int byte, FILE *file)

EXPORT int putchar(int byte)
{
    FILE *file = stdout;
    return LIKELY(CAN_WRITE(1, 1) && !stream_is_taken(file)) ? REAL(putchar)(byte)
                                                             : putc_through(byte, file);
}

EXPORT int getchar(void)
{
    FILE *file = stdin;
    return LIKELY(CAN_READ(1, 1) && !stream_is_taken(file)) ? REAL(getchar)() : getc_through(file);
}

#define READ_CHECKED(...) READ_FILE(file, __VA_ARGS__)

/* MARK: Formatted */

/* With this much left in the buffer, a formatted call is assumed not to reach the file. */
#define FORMATTED 256

/* The functions named _taking may take the stream's lock first. */
ALWAYS struct stream_taken print_begin_taking(FILE *file, const struct unwind_start *caller)
{
    return stream_take_first(file, CAN_WRITE(1, FORMATTED), caller);
}

ALWAYS struct stream_taken scan_begin_taking(FILE *file, const struct unwind_start *caller)
{
    return stream_take_first(file, CAN_READ(1, FORMATTED), caller);
}

/* A descriptor has no lock. */
ALWAYS struct stream_taken print_to_begin_taking(int fd, const struct unwind_start *caller)
{
    (void)fd;
    return stream_take_first(NULL, true, caller);
}

ALWAYS struct brief_call print_begin(const struct unwind_start *caller, const FILE *file)
{
    if (LIKELY(CAN_WRITE(1, FORMATTED)))
        return (struct brief_call){0};
    return brief_begin(caller, SHM_GROUP_IO, SHM_WRITE,
                       UNLIKELY(board_of_several) ? flushes(file, caller) : 0,
                       (uint32_t)descriptor_of(file) + 1);
}

ALWAYS struct brief_call scan_begin(const struct unwind_start *caller, const FILE *file)
{
    if (LIKELY(CAN_READ(1, FORMATTED)))
        return (struct brief_call){0};
    return brief_begin(caller, SHM_GROUP_IO, SHM_READ,
                       descriptor_reads(descriptor_of(file), caller),
                       (uint32_t)descriptor_of(file) + 1);
}

ALWAYS struct brief_call print_to_begin(const struct unwind_start *caller, int fd)
{
    return brief_begin(caller, SHM_GROUP_IO, SHM_WRITE, descriptor_writes(fd, caller),
                       (uint32_t)fd + 1);
}

/*
 * A formatted call, and its variant `vname` with a va_list. `begin` is a function above, `where`
 * the file or descriptor; `parameters` and `arguments` end with the format. Both call
 * `real`, which takes a va_list.
 */
#define FORMATTED_CALLS(name, vname, real, begin, where, parameters, arguments)                    \
    EXPORT int name(EXPAND parameters, ...)                                                        \
    {                                                                                              \
        struct unwind_start caller = CALLER();                                                     \
        va_list list;                                                                              \
        int count;                                                                                 \
        va_start(list, format);                                                                    \
        {                                                                                          \
            struct stream_taken taken STREAM_TAKEN = begin##_taking(where, &caller);               \
            struct brief_call call BRIEF = begin(&caller, where);                                  \
            count = BRIEF_RETURNED(real(EXPAND arguments, list));                                  \
        }                                                                                          \
        va_end(list);                                                                              \
        return count;                                                                              \
    }                                                                                              \
    EXPORT int vname(EXPAND parameters, va_list list)                                              \
    {                                                                                              \
        struct unwind_start caller = CALLER();                                                     \
        struct stream_taken taken STREAM_TAKEN = begin##_taking(where, &caller);                   \
        struct brief_call call BRIEF = begin(&caller, where);                                      \
        return BRIEF_RETURNED(real(EXPAND arguments, list));                                       \
    }

FORMATTED_CALLS(printf, vprintf, REAL(vprintf), print_begin, stdout, (const char *restrict format),
                (format))
FORMATTED_CALLS(__printf_chk, __vprintf_chk, REAL(__vprintf_chk), print_begin, stdout,
                (int flag, const char *restrict format), (flag, format))
FORMATTED_CALLS(fprintf, vfprintf, REAL(vfprintf), print_begin, file,
                (FILE *restrict file, const char *restrict format), (file, format))
FORMATTED_CALLS(__fprintf_chk, __vfprintf_chk, REAL(__vfprintf_chk), print_begin, file,
                (FILE *restrict file, int flag, const char *restrict format), (file, flag, format))
FORMATTED_CALLS(dprintf, vdprintf, REAL(vdprintf), print_to_begin, fd,
                (int fd, const char *restrict format), (fd, format))
FORMATTED_CALLS(__dprintf_chk, __vdprintf_chk, REAL(__vdprintf_chk), print_to_begin, fd,
                (int fd, int flag, const char *restrict format), (fd, flag, format))

/* Falls back to the function of an older C library. */
#define REAL_OR(name, older) (real_has((void **)&real.name, #name) ? real.name : REAL(older))

/* C23 parses numbers differently, under its own names. */
FORMATTED_CALLS(__isoc99_scanf, __isoc99_vscanf, REAL(__isoc99_vscanf), scan_begin, stdin,
                (const char *restrict format), (format))
FORMATTED_CALLS(__isoc99_fscanf, __isoc99_vfscanf, REAL(__isoc99_vfscanf), scan_begin, file,
                (FILE *restrict file, const char *restrict format), (file, format))
FORMATTED_CALLS(__isoc23_scanf, __isoc23_vscanf, REAL_OR(__isoc23_vscanf, __isoc99_vscanf),
                scan_begin, stdin, (const char *restrict format), (format))
FORMATTED_CALLS(__isoc23_fscanf, __isoc23_vfscanf, REAL_OR(__isoc23_vfscanf, __isoc99_vfscanf),
                scan_begin, file, (FILE *restrict file, const char *restrict format),
                (file, format))

/* MARK: Flushed */

EXPORT int fflush(FILE *file)
{
    FLUSH_FILE(file, REAL(fflush)(file));
}

EXPORT int fflush_unlocked(FILE *file)
{
    FLUSH_FILE(file, REAL(fflush_unlocked)(file));
}

/* The buffer is written before the descriptor is closed: that wakes a reader. */
EXPORT int fclose(FILE *file)
{
    struct unwind_start caller = CALLER();
    int fd = descriptor_of(file);
    (void)flushes(file, &caller);
    if (fd >= 0)
        descriptor_closed(fd, &caller);
    if (stream_lock_of(file))
        known_end(stream_lock_of(file));
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_WRITE, 0, (uint32_t)fd + 1, 0);
    return RETURNED(REAL(fclose)(file));
}

/* At exit the C library flushes stdout and the kernel closes all descriptors. */
__attribute__((destructor)) static void exits(void)
{
    struct unwind_start caller = CALLER();
    if (!self_has_slot())
        return;
    file_locks_exit(&caller);
    if (!board_of_several)
        return;
    (void)flushes(stdout, &caller);
    descriptors_exit(&caller);
}

/* MARK: Others */

/* Calls a function if it exists; else the result is `otherwise`. */
#define IF_THERE(name, otherwise, ...)                                                             \
    (real_has((void **)&real.name, #name) ? real.name(__VA_ARGS__) : (otherwise))

EXPORT int getaddrinfo(const char *restrict node, const char *restrict service,
                       const struct addrinfo *restrict hints, struct addrinfo **restrict found)
{
    WAIT_CALL(SHM_LOOKUP, REAL(getaddrinfo)(node, service, hints, found));
}

/*
 * Only one thread at a time writes to the socket: others wait for a lock inside the C library. Both
 * waits are named after the function. A format may use the caller's errno.
 */
#define SYSLOG(...)                                                                                \
    struct unwind_start caller = CALLER();                                                         \
    int old_errno = errno;                                                                         \
    uint64_t name = is_recorded(SHM_GROUP_IO) ? SHM_NAME | text_of("syslog") : 0;                  \
    struct brief_call call BRIEF = brief_begin(&caller, SHM_GROUP_IO, SHM_WRITE, name, 0);         \
    errno = old_errno;                                                                             \
    __VA_ARGS__;                                                                                   \
    call.returned = true

EXPORT void syslog(int priority, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    SYSLOG(REAL(vsyslog)(priority, format, arguments));
    va_end(arguments);
}

EXPORT void __syslog_chk(int priority, int flag, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    SYSLOG(REAL(__vsyslog_chk)(priority, flag, format, arguments));
    va_end(arguments);
}

EXPORT int system(const char *command)
{
    descriptors_inherited();
    WAIT_CALL(SHM_CHILD, REAL(system)(command));
}

/* A PID of 0 or below stands for several processes. */
ALWAYS uint64_t process_object(pid_t pid)
{
    return pid > 0 ? SHM_PROCESS | (uint64_t)pid : 0;
}

/* Names the process that ended the wait; its end is known if it is recorded as well. */
ALWAYS void waited_for(const struct brief_call *call, pid_t pid)
{
    if (UNLIKELY(board_of_several) && call->open && pid > 0 && self_has_slot())
        self.slot->open_object = process_object(pid);
}

#define PROCESS_CALL(pid, ...)                                                                     \
    struct unwind_start caller = CALLER();                                                         \
    struct brief_call call BRIEF =                                                                 \
        brief_begin(&caller, SHM_GROUP_IO, SHM_CHILD, process_object(pid), 0);                     \
    pid_t got = BRIEF_RETURNED(__VA_ARGS__);                                                       \
    waited_for(&call, got);                                                                        \
    return got

#define CHILD(...)    PROCESS_CALL(pid, __VA_ARGS__)
#define CHILDREN(...) PROCESS_CALL(0, __VA_ARGS__)

#define OF_PIDFD ((idtype_t)3) /* P_PIDFD, missing in older C libraries */

EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    struct unwind_start caller = CALLER();
    struct brief_call call BRIEF =
        brief_begin(&caller, SHM_GROUP_IO, SHM_CHILD, process_object(type == P_PID ? (pid_t)id : 0),
                    type == OF_PIDFD ? id + 1 : 0);
    int result = BRIEF_RETURNED(REAL(waitid)(type, id, info, options));
    if (result == 0 && info)
        waited_for(&call, info->si_pid);
    return result;
}

/* Reports a started program to the recorder. Returns the status. */
static int spawned(int status, const pid_t *pid, const char *file)
{
    if (status == 0)
        exec_note((uint32_t)*pid, file);
    return status;
}

/* The call waits until the child has executed its program. */
#define SPAWNS(handle, name, file, ...)                                                            \
    EXPORT int name(handle, const char *restrict file,                                             \
                    const posix_spawn_file_actions_t *restrict actions,                            \
                    const posix_spawnattr_t *restrict attributes, char *const arguments[restrict], \
                    char *const environment[restrict])                                             \
    {                                                                                              \
        descriptors_inherited();                                                                   \
        EXEC_JOINED(environment);                                                                  \
        __VA_ARGS__;                                                                               \
    }

#define SPAWNS_PID(name, file)                                                                     \
    SPAWNS(pid_t *restrict pid, name, file, pid_t own = 0; pid_t *to = pid ? pid : &own;           \
           WAIT_CALL(SHM_CHILD, spawned(REAL(name)(to, file, actions, attributes, arguments,       \
                                                   joined.environment),                            \
                                        to, file)))

#define SPAWNS_PIDFD(name, file)                                                                   \
    SPAWNS(int *restrict pidfd, name, file,                                                        \
           WAIT_CALL(SHM_CHILD, IF_THERE(name, ENOSYS, pidfd, file, actions, attributes,           \
                                         arguments, joined.environment)))

SPAWNS_PID(posix_spawn, path)
SPAWNS_PID(posix_spawnp, file)
SPAWNS_PIDFD(pidfd_spawn, path)
SPAWNS_PIDFD(pidfd_spawnp, file)

EXPORT FILE *popen(const char *command, const char *mode)
{
    descriptors_inherited();
    WAIT_CALL(SHM_CHILD, REAL(popen)(command, mode));
}

EXPORT int pclose(FILE *file)
{
    struct unwind_start caller = CALLER();
    int fd = descriptor_of(file);
    if (fd >= 0)
        descriptor_closed(fd, &caller);
    struct call call CALL = call_begin(&caller, SHM_GROUP_IO, SHM_CHILD, 0, 0, 0);
    return RETURNED(REAL(pclose)(file));
}

/* MARK: System V semaphores */

static uint64_t set_object(int set, const struct sembuf *operation)
{
    return SHM_SET | (uint64_t)operation->sem_num << 32 | (uint32_t)set;
}

/*
 * Called before semaphore operations, whose additions wake other processes. Returns the object of a
 * wait: the first semaphore to be decremented.
 */
static uint64_t sets(int set, const struct sembuf *operations, size_t count,
                     const struct unwind_start *caller)
{
    uint64_t waits = 0;
    for (size_t i = 0; is_address(operations) && i < count && i < 64; i++) {
        uint64_t object = set_object(set, &operations[i]);
        if (operations[i].sem_op > 0)
            board_release(object, SHM_SEMAPHORE, operations[i].sem_op > 1 ? SHM_ALL : 0, caller);
        else if (!waits)
            waits = object;
    }
    if (waits)
        board_waits(waits, waits);
    return waits;
}

/* Without a board, only the set is known. */
#define SET_OBJECT                                                                                 \
    (UNLIKELY(board != NULL) && is_recorded(SHM_GROUP_CONDITIONS)                                  \
         ? sets(set, operations, count, &caller)                                                   \
         : SHM_SET | (uint32_t)set)

#define SEMAPHORE_CALL(...)                                                                        \
    BRIEF_CALL(SHM_GROUP_CONDITIONS, SHM_SEMAPHORE, SET_OBJECT, 0, __VA_ARGS__)

EXPORT int semop(int set, struct sembuf *operations, size_t count)
{
    SEMAPHORE_CALL(REAL(semop)(set, operations, count));
}

EXPORT int semtimedop(int set, struct sembuf *operations, size_t count,
                      const struct timespec *timeout)
{
    TIMED_CALL(EAGAIN, limit_of(timeout), SHM_GROUP_CONDITIONS, SHM_SEMAPHORE, SET_OBJECT, 0,
               REAL(semtimedop)(set, operations, count, timeout));
}

/* MARK: Asynchronous I/O */

#define SUSPEND(...)                                                                               \
    TIMED_CALL(EAGAIN, limit_of(timeout), SHM_GROUP_IO, SHM_POLL, 0, 0, __VA_ARGS__)

/* MARK: libaio and liburing, which make their system calls themselves */

#define WRAP_RING(body, name, parameters, arguments)                                               \
    EXPORT int name parameters                                                                     \
    {                                                                                              \
        body(IF_THERE(name, -ENOSYS, EXPAND arguments));                                           \
    }

#define EVENTS(...) WAIT_CALL(SHM_POLL, __VA_ARGS__)

/* clang-format off */
WRAP_RING(EVENTS, io_getevents,
          (struct io_context *context, long least, long most, struct io_event *events,
           struct timespec *timeout),
          (context, least, most, events, timeout))
/* clang-format on */

/* The place of a ring's `flags` and `ring_fd` in all versions of <liburing.h>. */
struct ring_head {
    char queues[192];
    unsigned flags;
    int fd;
};

/* Flag: the descriptor is an index into the thread's table of registered rings. */
#define ONLY_REGISTERED (1u << 15)

/* Returns the detail of a wait in a ring. */
ALWAYS uint32_t ring_of(const struct io_uring *ring)
{
    const struct ring_head *head = (const void *)ring;
    return head->flags & ONLY_REGISTERED ? 0 : (uint32_t)head->fd + 1;
}

#define RING(...) BRIEF_CALL(SHM_GROUP_IO, SHM_POLL, 0, ring_of(ring), __VA_ARGS__)

/* clang-format off */
WRAP_RING(RING, __io_uring_get_cqe,
          (struct io_uring *ring, struct io_uring_cqe **entry, unsigned submit, unsigned count,
           sigset_t *mask),
          (ring, entry, submit, count, mask))
WRAP_RING(RING, io_uring_wait_cqes,
          (struct io_uring *ring, struct io_uring_cqe **entry, unsigned count,
           struct __kernel_timespec *timeout, sigset_t *mask),
          (ring, entry, count, timeout, mask))
WRAP_RING(RING, io_uring_wait_cqe_timeout,
          (struct io_uring *ring, struct io_uring_cqe **entry, struct __kernel_timespec *timeout),
          (ring, entry, timeout))
WRAP_RING(RING, io_uring_submit_and_wait, (struct io_uring *ring, unsigned count), (ring, count))
WRAP_RING(RING, io_uring_submit_and_wait_timeout,
          (struct io_uring *ring, struct io_uring_cqe **entry, unsigned count,
           struct __kernel_timespec *timeout, sigset_t *mask),
          (ring, entry, count, timeout, mask))
/* clang-format on */

/* MARK: The wrappers in symbols.def */

#define FILES WRAP
#include "preload/symbols.def"
