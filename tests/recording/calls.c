/*
 * Calls whose wrappers do more than pass them on: results, errno and arguments must be the same as
 * without a recorder.
 *
 * usage: calls FOLDER
 */
#include "answers.h"
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/poll.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

/* Whether the C library is glibc 2.MINOR or newer. */
#define SINCE(minor) (atoi(gnu_get_libc_version() + 2) >= (minor))

static mode_t mode_of(int fd)
{
    struct stat status;
    CHECK(fd >= 0 && fstat(fd, &status) == 0 && close(fd) == 0);
    return status.st_mode & 07777;
}

static void opening(void)
{
    int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    umask(0);
    CHECK(folder >= 0 && fcntl(folder, F_GETFD) == FD_CLOEXEC);
    CHECK(mode_of(open("a", O_CREAT | O_EXCL | O_RDWR, 0640)) == 0640);
    CHECK(mode_of(open64("b", O_CREAT | O_RDWR, 0604)) == 0604);
    CHECK(mode_of(openat(folder, "c", O_CREAT | O_RDWR, 04711)) == 04711);
    CHECK(mode_of(openat64(folder, "d", O_CREAT | O_RDWR, 0600)) == 0600);
    CHECK(mode_of(creat("e", 0444)) == 0444);
    CHECK(mode_of(open(".", O_TMPFILE | O_RDWR, 0421)) == 0421);
    errno = 0;
    CHECK(open("nowhere/f", O_RDONLY) == -1 && errno == ENOENT);
    errno = 77;
    CHECK(close(open("a", O_RDONLY)) == 0 && errno == 77);
    CHECK(close(-1) == -1 && errno == EBADF);
    CHECK(close(folder) == 0);
}

static void locks(int fd)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = 4, .l_len = -4};
    int again = open("a", O_RDWR);
    CHECK(again >= 0 && flock(fd, LOCK_EX) == 0 && flock(again, LOCK_SH | LOCK_NB) == -1);
    CHECK(errno == EWOULDBLOCK && flock(fd, LOCK_SH | LOCK_NB) == 0 && flock(again, LOCK_SH) == 0);
    CHECK(flock(fd, LOCK_UN) == 0 && flock(fd, 0) == -1 && errno == EINVAL);
    CHECK(flock(-1, LOCK_EX) == -1 && errno == EBADF && lockf(fd, F_ULOCK, 0) == 0);
    CHECK(fcntl(fd, F_OFD_SETLKW, &lock) == 0 && fcntl(again, F_OFD_SETLK, &lock) == -1);
    CHECK(errno == EAGAIN && lock.l_start == 4 && lock.l_len == -4);
    lock.l_type = F_UNLCK;
    CHECK(fcntl(fd, F_OFD_SETLK, &lock) == 0 && fcntl(fd, F_SETLKW, NULL) == -1 && errno == EFAULT);
    lock.l_whence = 99;
    CHECK(fcntl(fd, F_SETLK, &lock) == -1 && errno == EINVAL);
    CHECK(lockf(fd, F_LOCK, 0) == 0 && lockf(fd, F_TEST, 0) == 0 && lockf(fd, F_ULOCK, 0) == 0);
    CHECK(lockf(fd, F_TLOCK, 0) == 0 && lockf(fd, F_ULOCK, 0) == 0 && lockf(fd, 99, 0) == -1);
    CHECK(errno == EINVAL && close(again) == 0);
}

static void descriptors(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct f_owner_ex owner = {F_OWNER_PID, getpid()}, found;
    int fd = open("a", O_RDWR), copy, fds[2];
    char byte = 1;
    CHECK(fcntl(fd, F_SETLKW, &lock) == 0 && fcntl(fd, F_GETLK, &lock) == 0);
    CHECK(lock.l_type == F_UNLCK);
    locks(fd);
    CHECK(fcntl(fd, F_SETFL, O_APPEND) == 0 && (fcntl(fd, F_GETFL) & O_APPEND));
    CHECK((copy = fcntl(fd, F_DUPFD, 50)) >= 50 && fcntl(copy, F_GETFD) == 0);
    CHECK(dup3(fd, 60, O_CLOEXEC) == 60 && fcntl(60, F_GETFD) == FD_CLOEXEC);
    CHECK(dup3(fd, fd, 0) == -1 && errno == EINVAL && dup2(fd, fd) == fd);
    CHECK(dup2(-1, 61) == -1 && errno == EBADF && dup(-1) == -1);
    CHECK(pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0 && fcntl(fds[0], F_SETOWN_EX, &owner) == 0);
    CHECK(fcntl(fds[0], F_GETOWN_EX, &found) == 0 && found.pid == owner.pid);
    CHECK(read(fds[0], &byte, 1) == -1 && errno == EAGAIN);
    CHECK(pipe2(fds, -1) == -1 && errno == EINVAL);
    CHECK(close_range(50, 70, 0) == 0 && fcntl(60, F_GETFD) == -1 && fcntl(copy, F_GETFD) == -1);
    CHECK(dup2(fd, 80) == 80 && close_range(80, 80, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(fcntl(80, F_GETFD) == FD_CLOEXEC);
    CHECK(socketpair(AF_INET, SOCK_STREAM, 0, fds) == -1 && errno == EOPNOTSUPP);
    CHECK(epoll_ctl(-1, EPOLL_CTL_DEL, 0, NULL) == -1 && errno == EBADF);
    CHECK(epoll_create(0) == -1 && errno == EINVAL && eventfd(0, -1) == -1 && errno == EINVAL);
    CHECK(poll(NULL, 0, 1) == 0);
    closefrom(5);
    CHECK(fcntl(80, F_GETFD) == -1);
}

static void stdio(void)
{
    FILE *file = fopen("text", "w+");
    char text[32], *line = NULL;
    size_t size = 0;
    double real;
    int number;
    CHECK(file && fputs("one\ntwo\nthree", file) >= 0 && fflush(file) == 0);
    rewind(file);
    CHECK(fgetc(file) == 'o' && getc(file) == 'n' && fgets(text, sizeof text, file));
    CHECK(strcmp(text, "e\n") == 0 && getline(&line, &size, file) == 4);
    CHECK(fread_unlocked(text, 1, 5, file) == 5 && fgetc(file) == EOF && feof(file));
    CHECK(fwrite_unlocked("!", 1, 1, file) == 1 && fclose(file) == 0 && fflush(NULL) == 0);
    free(line);
    file = fopen("formatted", "w+");
    CHECK(file && fprintf(file, "%d %s", 5, "x") == 3 && fputc('y', file) == 'y');
    CHECK(putc('\n', file) == '\n' && fflush(file) == 0 && dprintf(fileno(file), "%.1f", 2.5) == 3);
    rewind(file);
    CHECK(fscanf(file, "%d %31s", &number, text) == 2 && number == 5 && strcmp(text, "xy") == 0);
    CHECK(fscanf(file, "%lf", &real) == 1 && real > 2.4 && real < 2.6 &&
          fscanf(file, "%d", &number) == EOF);
    CHECK(fclose(file) == 0);
    /* This stream has no descriptor. */
    file = fmemopen(text, sizeof text, "w+");
    CHECK(file && fputs("x", file) >= 0 && fflush(file) == 0 && fclose(file) == 0);
}

/* Only the newest C libraries have these; the wrappers exist with older ones too. */
int __isoc99_vfscanf(FILE *restrict file, const char *restrict format, va_list list);
int __isoc23_vfscanf(FILE *restrict file, const char *restrict format, va_list list)
    __attribute__((weak));
int pidfd_spawn(int *restrict pidfd, const char *restrict path,
                const posix_spawn_file_actions_t *restrict actions,
                const posix_spawnattr_t *restrict attributes, char *const arguments[restrict],
                char *const environment[restrict]) __attribute__((weak));

static int scan(int standard, FILE *file, const char *format, ...)
{
    va_list list;
    int count;
    va_start(list, format);
    rewind(file);
    count = standard == 23 && __isoc23_vfscanf ? __isoc23_vfscanf(file, format, list)
                                               : __isoc99_vfscanf(file, format, list);
    va_end(list);
    return count;
}

static void standards(void)
{
    FILE *file = fopen("formatted", "w+");
    char *arguments[] = {"true", NULL};
    int number = 0, pidfd = -1, status;
    siginfo_t end;
    CHECK(file && fputs("0b11 12", file) >= 0);
    /* C23 adds binary numbers. */
    CHECK(scan(99, file, "%i", &number) == 1 && number == 0);
    CHECK(scan(23, file, "%i", &number) == 1 && number == (SINCE(38) ? 3 : 0));
    CHECK(fclose(file) == 0);
    if (!pidfd_spawn)
        return;
    status = pidfd_spawn(&pidfd, "/bin/true", NULL, NULL, arguments, NULL);
    CHECK(status == (SINCE(39) ? 0 : ENOSYS));
    CHECK(status || (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED) == 0 && end.si_status == 0 &&
                     close(pidfd) == 0));
}

static void places(void)
{
    char text[] = "ab", found[3] = "";
    struct iovec from = {text, 2}, to = {found, 2};
    int fd = open("placed", O_CREAT | O_RDWR, 0600), ends[2];
    CHECK(fd >= 0 && syncfs(fd) == 0 && syncfs(-1) == -1 && errno == EBADF);
    CHECK(posix_fallocate(fd, 0, 3) == 0 && lseek(fd, 0, SEEK_END) == 3);
    CHECK(posix_fallocate64(fd, -1, 3) == EINVAL);
    CHECK(pwritev2(fd, &from, 1, 4, 0) == 2 && lseek(fd, 0, SEEK_CUR) == 3);
    CHECK(preadv2(fd, &to, 1, 4, 0) == 2 && strcmp(found, "ab") == 0 && close(fd) == 0);
    CHECK(pipe(ends) == 0 && pwritev64v2(ends[1], &from, 1, -1, 0) == 2);
    CHECK(preadv64v2(ends[0], &to, 1, -1, 0) == 2);
    /* qemu-user lacks preadv2(2); without it the C library supports no flags. */
    CHECK(preadv2(ends[0], &to, 1, -1, RWF_NOWAIT) == -1 &&
          (errno == EAGAIN || (errno == EOPNOTSUPP && getenv("QEMU_LD_PREFIX"))));
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
}

static void messages(void)
{
    struct {
        long type;
        char text[4];
    } message = {7, "abc"};
    struct sembuf take = {0, -1, 0}, give = {0, 1, 0};
    struct timespec soon = {0, 1000000};
    int queue = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[32], text[8];
    unsigned priority;
    mqd_t mq;
    CHECK(queue >= 0 && msgsnd(queue, &message, 4, 0) == 0);
    CHECK(msgrcv(queue, &message, 4, 8, IPC_NOWAIT) == -1 && errno == ENOMSG);
    CHECK(msgrcv(queue, &message, 4, 7, 0) == 4 && strcmp(message.text, "abc") == 0);
    CHECK(msgctl(queue, IPC_RMID, NULL) == 0);
    CHECK(set >= 0 && semtimedop(set, &take, 1, &soon) == -1 && errno == EAGAIN);
    CHECK(semop(set, &give, 1) == 0 && semop(set, &take, 1) == 0);
    CHECK(semctl(set, 0, IPC_RMID) == 0);
    snprintf(name, sizeof name, "/trail-%d", (int)getpid());
    mq = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    if (mq == (mqd_t)-1)
        return; /* no message queues here */
    CHECK(mq_unlink(name) == 0 && mq_send(mq, "hi", 3, 5) == 0);
    CHECK(mq_timedsend(mq, "hi", 3, 5, &soon) == -1 && errno == ETIMEDOUT);
    CHECK(mq_receive(mq, text, 8, &priority) == 3 && priority == 5);
    CHECK(mq_timedreceive(mq, text, 8, NULL, &soon) == -1 && errno == ETIMEDOUT);
    CHECK(mq_close(mq) == 0);
}

/* MARK: C11 */

static mtx_t mutex;
static cnd_t condition;
static once_flag once = ONCE_FLAG_INIT;
static int times, ready, tried;

static void count(void)
{
    times++;
}

static int c11_thread(void *arg)
{
    CHECK(mtx_trylock(&mutex) == thrd_busy);
    __atomic_store_n(&tried, 1, __ATOMIC_RELEASE);
    CHECK(mtx_lock(&mutex) == thrd_success);
    ready = 1;
    CHECK(cnd_broadcast(&condition) == thrd_success && mtx_unlock(&mutex) == thrd_success);
    call_once(&once, count);
    return *(int *)arg;
}

static void c11(void)
{
    struct timespec past = {1, 0}, moment = {0, 1000000};
    int number = -5, result = 0;
    mtx_t recursive;
    thrd_t thread;
    CHECK(mtx_init(&mutex, mtx_timed) == thrd_success && cnd_init(&condition) == thrd_success);
    CHECK(mtx_lock(&mutex) == thrd_success && mtx_trylock(&mutex) == thrd_busy);
    CHECK(mtx_timedlock(&mutex, &past) == thrd_timedout);
    CHECK(cnd_timedwait(&condition, &mutex, &past) == thrd_timedout);
    CHECK(thrd_create(&thread, c11_thread, &number) == thrd_success);
    while (!__atomic_load_n(&tried, __ATOMIC_ACQUIRE))
        CHECK(thrd_sleep(&moment, NULL) == 0);
    while (!ready)
        CHECK(cnd_wait(&condition, &mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
    CHECK(thrd_join(thread, &result) == thrd_success && result == -5);
    call_once(&once, count);
    CHECK(times == 1 && cnd_signal(&condition) == thrd_success);
    CHECK(mtx_init(&recursive, mtx_recursive) == thrd_success);
    CHECK(mtx_lock(&recursive) == thrd_success && mtx_lock(&recursive) == thrd_success);
    CHECK(mtx_unlock(&recursive) == thrd_success && mtx_unlock(&recursive) == thrd_success);
}

/* MARK: vfork: the child may close any descriptor; the parent's stay as they were */

static int ends[2];
static about_to_wait reader_is;

static void *read_one(void *arg)
{
    char byte;
    about(&reader_is);
    CHECK(read(ends[0], &byte, 1) == 1);
    return arg;
}

static __attribute__((noinline)) void wake_here(void)
{
    fprintf(stderr, "wakes %d %ld\n", me(), (long)now());
    CHECK(write(ends[1], "x", 1) == 1);
    __asm__ volatile("" ::: "memory");
}

static void vforks(void)
{
    pthread_t thread;
    int status;
    pid_t pid;
    CHECK(pipe(ends) == 0);
    /* NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork): vfork is
     * tested */
    pid = vfork();
    if (pid == 0) {
        dup2(2, ends[0]);
        close(ends[0]);
        close(ends[1]);
        _exit(9);
        /* NOLINTEND(clang-analyzer-security.insecureAPI.vfork, clang-analyzer-unix.Vfork) */
    }
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 9);
    CHECK(pthread_create(&thread, NULL, read_one, NULL) == 0);
    until_it_waits(&reader_is);
    wake_here();
    CHECK(pthread_join(thread, NULL) == 0);
}

/* MARK: A signal handler forks during a read, and its child continues */

static volatile pid_t forked = -1;

static void fork_here(int number)
{
    (void)number;
    forked = fork();
}

static void *interrupt(void *arg)
{
    until_it_waits(&reader_is);
    CHECK(pthread_kill(*(pthread_t *)arg, SIGUSR1) == 0);
    return arg;
}

static void forks_in_handler(void)
{
    struct sigaction action = {.sa_handler = fork_here};
    pthread_t reader = pthread_self(), thread;
    int fds[2], status;
    char byte;
    CHECK(pipe(fds) == 0 && sigaction(SIGUSR1, &action, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, interrupt, &reader) == 0);
    about(&reader_is);
    CHECK(read(fds[0], &byte, 1) == -1 && errno == EINTR);
    if (forked == 0)
        _exit(write(fds[1], "c", 1) == 1 ? 11 : 1);
    CHECK(read(fds[0], &byte, 1) == 1 && byte == 'c');
    CHECK(waitpid(forked, &status, 0) == forked && WIFEXITED(status) && WEXITSTATUS(status) == 11);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* What the kernel cannot read is its error. */
static void unreadable(void)
{
    void *volatile places[] = {NULL, (void *)8, (void *)-8};
    char *const words[] = {"x", NULL};
    int fds[2], set = semget(IPC_PRIVATE, 1, 0600);
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0 && set >= 0);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        void *at = places[i];
        struct msghdr message = {.msg_control = at, .msg_controllen = 64};
        CHECK(poll(at, 1, 0) == -1 && errno == EFAULT);
        CHECK(ppoll(at, 2, &(struct timespec){0}, NULL) == -1 && errno == EFAULT);
        CHECK(!at || (select(3, at, NULL, NULL, &(struct timeval){0}) == -1 && errno == EFAULT));
        CHECK(!at || (select(3, NULL, at, NULL, &(struct timeval){0}) == -1 && errno == EFAULT));
        CHECK(sendmsg(fds[0], at, 0) == -1 && errno == EFAULT);
        CHECK(sendmsg(fds[0], &message, 0) == -1 && (errno == EFAULT || errno == EINVAL));
        CHECK(sendmmsg(fds[0], at, 1, 0) == -1 && errno == EFAULT);
        CHECK(connect(fds[0], at, sizeof(struct sockaddr_un)) == -1 && errno == EFAULT);
        CHECK(semop(set, at, 1) == -1 && errno == EFAULT);
        CHECK(fcntl(fds[0], F_SETLK, at) == -1 && errno == EFAULT);
        CHECK(!at || (execve("/bin/true", words, at) == -1 && errno == EFAULT));
    }
    CHECK(semctl(set, 0, IPC_RMID) == 0 && close(fds[0]) == 0 && close(fds[1]) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    opening();
    descriptors();
    stdio();
    standards();
    places();
    messages();
    c11();
    vforks();
    forks_in_handler();
    unreadable();
    return 0;
}
