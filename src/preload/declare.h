/* The prototypes of all wrapped functions, by the C library's headers and below. */
#pragma once

/* The headers' fortified inline variants would hide the functions that they call. */
#undef _FORTIFY_SOURCE
#include <features.h>
/* Other inline functions would, too. */
#undef __USE_EXTERN_INLINES

#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <syslog.h>
#include <termios.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

/* NOLINTBEGIN(bugprone-reserved-identifier): the C library's names. */
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t room);
ssize_t __recv_chk(int fd, void *buffer, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buffer, size_t size, size_t room, int flags,
                       struct sockaddr *from, socklen_t *length);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
void __syslog_chk(int priority, int flag, const char *format, ...);
void __vsyslog_chk(int priority, int flag, const char *format, va_list arguments);
size_t __fread_chk(void *restrict buffer, size_t room, size_t size, size_t count,
                   FILE *restrict file);
size_t __fread_unlocked_chk(void *restrict buffer, size_t room, size_t size, size_t count,
                            FILE *restrict file);
char *__fgets_chk(char *restrict buffer, size_t room, int size, FILE *restrict file);
char *__fgets_unlocked_chk(char *restrict buffer, size_t room, int size, FILE *restrict file);

int __printf_chk(int flag, const char *restrict format, ...);
int __fprintf_chk(FILE *restrict file, int flag, const char *restrict format, ...);
int __vprintf_chk(int flag, const char *restrict format, va_list list);
int __vfprintf_chk(FILE *restrict file, int flag, const char *restrict format, va_list list);
int __dprintf_chk(int fd, int flag, const char *restrict format, ...);
int __vdprintf_chk(int fd, int flag, const char *restrict format, va_list list);
int __isoc99_scanf(const char *restrict format, ...);
int __isoc99_fscanf(FILE *restrict file, const char *restrict format, ...);
int __isoc99_vscanf(const char *restrict format, va_list list);
int __isoc99_vfscanf(FILE *restrict file, const char *restrict format, va_list list);
int __isoc23_scanf(const char *restrict format, ...);
int __isoc23_fscanf(FILE *restrict file, const char *restrict format, ...);
int __isoc23_vscanf(const char *restrict format, va_list list);
int __isoc23_vfscanf(FILE *restrict file, const char *restrict format, va_list list);

ssize_t __getdelim(char **restrict line, size_t *restrict size, int end, FILE *restrict file);

int pidfd_spawn(int *restrict pidfd, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                char *const environment[restrict]);
int pidfd_spawnp(int *restrict pidfd, const char *restrict file,
                 const posix_spawn_file_actions_t *restrict actions,
                 const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                 char *const environment[restrict]);

/* Functions of libaio and liburing; their types are opaque here. */
struct io_context;
struct io_event;
int io_getevents(struct io_context *context, long least, long most, struct io_event *events,
                 struct timespec *timeout);
struct io_uring;
struct io_uring_cqe;
struct __kernel_timespec;
int __io_uring_get_cqe(struct io_uring *ring, struct io_uring_cqe **entry, unsigned submit,
                       unsigned count, sigset_t *mask);
int io_uring_wait_cqes(struct io_uring *ring, struct io_uring_cqe **entry, unsigned count,
                       struct __kernel_timespec *timeout, sigset_t *mask);
int io_uring_wait_cqe_timeout(struct io_uring *ring, struct io_uring_cqe **entry,
                              struct __kernel_timespec *timeout);
int io_uring_submit_and_wait(struct io_uring *ring, unsigned count);
int io_uring_submit_and_wait_timeout(struct io_uring *ring, struct io_uring_cqe **entry,
                                     unsigned count, struct __kernel_timespec *timeout,
                                     sigset_t *mask);

void __longjmp_chk(jmp_buf to, int value) __attribute__((noreturn));
/* NOLINTEND(bugprone-reserved-identifier) */
