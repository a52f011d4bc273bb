/*
 * Programs with a known answer for `trail record`: wakers CASE. A thread waits in the function
 * wait_here() until another one wakes it, in wake_here(); CASE selects the object. The waker acts
 * once the kernel reports that the waiter sleeps, and first prints "wakes TID NS" on stderr, with
 * the time of CLOCK_MONOTONIC.
 *
 * wakers processes CASE: the same between two processes, one forked by the other.
 * wakers forked CASE: in one process, which forks its first child while the thread waits.
 * wakers others: a pipe between processes. While one child reads it, this process closes it in
 *     close_here(), and another child writes in wake_here().
 * wakers child, wakers any-child: waits until a child ends; child-pselect and others: until the
 *     SIGCHLD for it arrives.
 * wakers flock-killed, range-killed, flock-left: waits for a file lock whose holder is killed.
 * wakers flock-executes, flock-passed, flock-kept, ...: the same, but the holder executes another
 *     program.
 * wakers reads FILE, wakers writes FILE: one side only, reading stdin or writing stdout; the two
 *     synchronize through a page of FILE.
 *
 * If the word "looked" follows CASE, the waker also waits until the recorder has examined the
 * waiter.
 *
 * wakers names FIFO FIFO: waits for each FIFO in turn through the same descriptor, then for a
 * socket; prints the port of its peer.
 */
#include "check.h"
#include "recorder_steps.h"
#include "shm/board.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/poll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define HERE __attribute__((noinline))

static int fds[2], other[2];
static int set;
static uint32_t word, word2;
static char byte = 'x';
static uint64_t one = 1;
static pthread_t waiter;

static void moment(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

/* MARK: Turns */

/* In memory shared by the waiter and the waker. */
static struct turn {
    pid_t waiter; /* the thread whose next call waits; atomic */
    pid_t waited; /* the same thread, once it was seen asleep */
} * turn;

static void make_turn(int fd)
{
    turn =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    CHECK(turn != MAP_FAILED);
}

static void about_to_wait(void)
{
    __atomic_store_n(&turn->waiter, gettid(), __ATOMIC_RELEASE);
}

/* The format is "12 (a name) S 1 ...": see proc(5). */
static bool is_asleep(pid_t tid)
{
    char path[64], line[512] = "";
    const char *name_end;
    FILE *file;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)tid);
    file = fopen(path, "re");
    CHECK(file && fgets(line, sizeof line, file) && fclose(file) == 0);
    name_end = strrchr(line, ')');
    return name_end && strncmp(name_end, ") S", 3) == 0;
}

static pid_t recorder;
static bool looked;
static int shared_fd = -1; /* of memory that contains locks */

/*
 * Returns when the recorder has examined a call that waits now, and its descriptors. The recorder
 * examines calls that have waited for 20 ms, and sleeps between its steps. After many steps it has
 * also written the wait.
 */
static void until_the_recorder_has_looked(void)
{
    bool writes = shared_fd >= 0;
    long before;
    moment(20);
    before = recorder_steps(recorder);
    while (recorder_steps(recorder) < before + (writes ? 20 : 6))
        moment(5);
}

/* Returns when the thread that announced its wait sleeps. The next call waits for another
 * announcement. */
static void until_it_waits(void)
{
    pid_t tid;
    while ((tid = __atomic_load_n(&turn->waiter, __ATOMIC_ACQUIRE)) == 0 || !is_asleep(tid))
        moment(1);
    turn->waited = tid;
    __atomic_store_n(&turn->waiter, 0, __ATOMIC_RELEASE);
    if (looked)
        until_the_recorder_has_looked();
}

/* Call before the call that wakes the waiter. */
static void say_wakes(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    CHECK(dprintf(STDERR_FILENO, "wakes %d %ld%09ld\n", (int)gettid(), (long)now.tv_sec,
                  now.tv_nsec) > 0);
}

/*
 * A process unknown to the recorder, because it is made by _Fork and uses system calls directly. It
 * acts when the pipe has a byte.
 */
static int go[2];

static void make_stranger(void (*act)(void))
{
    pid_t pid;
    CHECK(pipe(go) == 0);
    pid = _Fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        syscall(SYS_close, go[1]);
        if (syscall(SYS_read, go[0], &byte, 1) == 1)
            act();
        syscall(SYS_exit_group, 0);
    }
}

static void let_stranger_act(void)
{
    CHECK(write(go[1], &byte, 1) == 1);
}

/* MARK: How to wait */

static void wait_read(void)
{
    char in[8];
    CHECK(read(fds[0], in, 8) > 0);
}

static void wait_readv(void)
{
    char in;
    struct iovec part = {&in, 1};
    CHECK(readv(fds[0], &part, 1) == 1);
}

static void wait_recv(void)
{
    char in;
    CHECK(recv(fds[0], &in, 1, 0) == 1);
}

static void wait_end(void)
{
    char in;
    CHECK(read(fds[0], &in, 1) == 0);
}

static void wait_eventfd(void)
{
    eventfd_t value;
    CHECK(eventfd_read(fds[0], &value) == 0 && value == 1);
}

static void wait_fgetc(void)
{
    FILE *file = fdopen(fds[0], "r");
    CHECK(file && fgetc(file) == 'x');
}

/* The second pipe becomes ready, the first never does. */
static void wait_poll(void)
{
    struct pollfd polls[2] = {{other[0], POLLIN, 0}, {fds[0], POLLIN, 0}};
    int n;
    do
        n = poll(polls, 2, -1);
    while (n < 0 && errno == EINTR);
    CHECK(n == 1 && polls[1].revents == POLLIN && polls[0].revents == 0);
}

static void wait_select(void)
{
    fd_set reads;
    FD_ZERO(&reads);
    FD_SET(fds[0], &reads);
    FD_SET(other[0], &reads);
    CHECK(select((fds[0] > other[0] ? fds[0] : other[0]) + 1, &reads, NULL, NULL, NULL) == 1);
    CHECK(FD_ISSET(fds[0], &reads) && !FD_ISSET(other[0], &reads));
}

static void wait_epoll(void)
{
    struct epoll_event event;
    CHECK(epoll_wait(set, &event, 1, -1) == 1);
    CHECK(event.data.u64 == 0x1234567890);
}

/* The pipe is full. */
static void wait_room(void)
{
    char page[4096] = {0};
    CHECK(write(fds[1], page, sizeof page) == sizeof page);
}

static void wait_futex(void)
{
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) == 0 ||
              errno == EAGAIN || errno == EINTR);
}

static void wait_futex_bitset(void)
{
    while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0)
        CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 4) == 0 ||
              errno == EAGAIN);
}

static mtx_t mutex;
static cnd_t condition;

static void wait_mtx(void)
{
    CHECK(mtx_lock(&mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
}

static void wait_cnd(void)
{
    CHECK(mtx_lock(&mutex) == thrd_success);
    while (!word)
        CHECK(cnd_wait(&condition, &mutex) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
}

/* MARK: How to wake */

static void wake_write(void)
{
    CHECK(write(fds[1], &byte, 1) == 1);
}

static void wake_writev(void)
{
    struct iovec part = {&byte, 1};
    CHECK(writev(fds[1], &part, 1) == 1);
}

static void wake_send(void)
{
    CHECK(send(fds[1], &byte, 1, MSG_NOSIGNAL) == 1);
}

static void wake_sendmsg(void)
{
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK(sendmsg(fds[1], &message, 0) == 1);
}

static void wake_eventfd(void)
{
    CHECK(eventfd_write(fds[0], 1) == 0);
}

static void wake_eventfd_by_write(void)
{
    CHECK(write(fds[0], &one, 8) == 8);
}

static void wake_close(void)
{
    CHECK(close(fds[1]) == 0);
}

static void wake_shutdown(void)
{
    CHECK(shutdown(fds[1], SHUT_WR) == 0);
}

static void wake_room(void)
{
    char page[8192];
    CHECK(read(fds[0], page, sizeof page) == sizeof page);
}

static void wake_futex(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) == 1);
}

static void wake_futex_bitset(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 4) == 1);
}

/* Adds 5 to word2, which was 0, and wakes one waiter of each word. The call has six arguments
 * besides its number. */
static void wake_futex_op(void)
{
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, (void *)1, &word2,
                  FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)) == 1);
    CHECK(word2 == 5);
}

static void wake_mtx(void)
{
    CHECK(mtx_unlock(&mutex) == thrd_success);
}

static void wake_cnd(void)
{
    CHECK(mtx_lock(&mutex) == thrd_success);
    word = 1;
    CHECK(cnd_signal(&condition) == thrd_success);
    CHECK(mtx_unlock(&mutex) == thrd_success);
}

/* The waiter is woken by its own signal handler. */
static void wake_signal(void)
{
    CHECK(pthread_kill(waiter, SIGUSR1) == 0);
}

/* MARK: What to prepare */

static void make_pipe(void)
{
    CHECK(pipe(fds) == 0 && pipe2(other, O_CLOEXEC) == 0);
}

static char fifo_path[64];

static void *open_to_read(void *unused)
{
    about_to_wait();
    CHECK((fds[0] = open(fifo_path, O_RDONLY)) >= 0);
    return unused;
}

/* The open for reading waits; the open for writing returns at once, as for any file. */
static void make_fifo(void)
{
    pthread_t opener;
    snprintf(fifo_path, sizeof fifo_path, "/tmp/trail-wakers-%d.fifo", (int)getpid());
    CHECK(mkfifo(fifo_path, 0600) == 0);
    CHECK(pthread_create(&opener, NULL, open_to_read, NULL) == 0);
    until_it_waits();
    CHECK((fds[1] = open(fifo_path, O_WRONLY)) >= 0);
    CHECK(pthread_join(opener, NULL) == 0 && unlink(fifo_path) == 0);
}

/* Neither open waits: the first uses O_NONBLOCK. */
static void make_fifo_at_once(void)
{
    snprintf(fifo_path, sizeof fifo_path, "/tmp/trail-wakers-%d.fifo", (int)getpid());
    CHECK(mkfifo(fifo_path, 0600) == 0);
    CHECK((fds[0] = open(fifo_path, O_RDONLY | O_NONBLOCK)) >= 0);
    CHECK((fds[1] = open(fifo_path, O_WRONLY)) >= 0 && fcntl(fds[0], F_SETFL, 0) == 0);
    CHECK(unlink(fifo_path) == 0);
}

static void make_pair(void)
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
}

static void make_set_of(int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u64 = 0x1234567890};
    CHECK((set = epoll_create1(EPOLL_CLOEXEC)) >= 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0);
}

static int listen_at(struct sockaddr_storage *address, socklen_t *size, int family)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    int listener = socket(family, SOCK_STREAM, 0);
    memset(address, 0, sizeof *address);
    *size = family == AF_INET ? sizeof *v4 : sizeof *v6;
    address->ss_family = (sa_family_t)family;
    if (family == AF_INET)
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        v6->sin6_addr = in6addr_loopback;
    CHECK(listener >= 0 && bind(listener, (struct sockaddr *)address, *size) == 0);
    CHECK(listen(listener, 4) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)address, size) == 0);
    return listener;
}

static void connect_both(int family, int kind)
{
    struct sockaddr_storage address;
    socklen_t size;
    int listener = listen_at(&address, &size, family);
    CHECK((fds[1] = socket(family, SOCK_STREAM | kind, 0)) >= 0);
    CHECK(connect(fds[1], (struct sockaddr *)&address, size) == 0 || errno == EINPROGRESS);
    CHECK((fds[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
    CHECK(close(listener) == 0);
}

/* The accepting side waits. */
static void make_tcp(void)
{
    connect_both(AF_INET, 0);
}

static void swap_ends(void)
{
    int first = fds[0];
    fds[0] = fds[1];
    fds[1] = first;
}

/* The connecting side waits. */
static void make_tcp_back(void)
{
    connect_both(AF_INET, 0);
    swap_ends();
}

static void make_tcp_epoll(void)
{
    connect_both(AF_INET, SOCK_NONBLOCK);
    make_set_of(fds[0], EPOLLIN);
}

/* accept() and the wait come before the other end is known: connect() has not returned yet, or ran
 * in another thread. */
static void *connects(void *address)
{
    until_it_waits();
    CHECK(connect(fds[1], address, sizeof(struct sockaddr_in)) == 0);
    return NULL;
}

static void make_tcp_thread(void)
{
    struct sockaddr_storage address;
    socklen_t size;
    pthread_t thread;
    int listener = listen_at(&address, &size, AF_INET);
    CHECK((fds[1] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(pthread_create(&thread, NULL, connects, &address) == 0);
    about_to_wait();
    CHECK((fds[0] = accept(listener, NULL, NULL)) >= 0);
    make_set_of(fds[0], EPOLLIN | EPOLLET);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* The process connects to itself once; the client accepted here is another process. */
static void make_tcp_foreign(void)
{
    struct sockaddr_storage address;
    socklen_t size;
    int listener = listen_at(&address, &size, AF_INET);
    CHECK((fds[1] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
    CHECK(connect(fds[1], (struct sockaddr *)&address, size) == 0);
    CHECK(accept(listener, NULL, NULL) >= 0);
    CHECK(pipe(go) == 0);
    if (fork() == 0) {
        CHECK(close(go[1]) == 0 && (fds[1] = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
        CHECK(connect(fds[1], (struct sockaddr *)&address, size) == 0);
        _exit(read(go[0], &byte, 1) == 1 && write(fds[1], &byte, 1) == 1 ? 0 : 1);
    }
    CHECK((fds[0] = accept(listener, NULL, NULL)) >= 0);
}

static void make_eventfd(void)
{
    make_pipe();
    fds[0] = fds[1] = eventfd(0, EFD_CLOEXEC);
    CHECK(fds[0] >= 0);
}

static void make_epoll_pipe(void)
{
    make_pipe();
    make_set_of(fds[0], EPOLLIN);
}

static void make_epoll_eventfd(void)
{
    make_eventfd();
    make_set_of(fds[0], EPOLLIN | EPOLLET);
}

/* Both ends have new numbers; the old numbers refer to other files now. */
static void make_duplicates(void)
{
    int in, out;
    make_pipe();
    in = dup(fds[0]);
    out = fcntl(fds[1], F_DUPFD_CLOEXEC, 100);
    CHECK(in >= 0 && out >= 100);
    CHECK(dup2(STDERR_FILENO, fds[0]) == fds[0] && dup3(STDERR_FILENO, fds[1], 0) == fds[1]);
    fds[0] = dup2(in, 200);
    fds[1] = out;
    CHECK(close(in) == 0);
}

static void make_full_pipe(void)
{
    char page[4096] = {0};
    int flags;
    make_pipe();
    flags = fcntl(fds[1], F_GETFL);
    CHECK(fcntl(fds[1], F_SETFL, flags | O_NONBLOCK) == 0);
    while (write(fds[1], page, sizeof page) > 0)
        ;
    CHECK(errno == EAGAIN);
    CHECK(fcntl(fds[1], F_SETFL, flags) == 0);
}

/* Called when the waiter waits, if not NULL. */
static void (*before_by)(void);

/* Makes a little room, for which the kernel does not wake the one that waits to write. */
static void read_a_little(void)
{
    char page[4096];
    CHECK(read(fds[0], page, sizeof page) > 0);
    moment(5);
    CHECK(is_asleep(turn->waited));
}

/* A socket whose buffer is full. */
static void make_full_pair(void)
{
    char page[4096] = {0};
    make_pair();
    while (send(fds[1], page, sizeof page, MSG_DONTWAIT) > 0)
        ;
    CHECK(errno == EAGAIN);
    before_by = read_a_little;
}

static void wake_room_of_pair(void)
{
    char page[4096];
    while (recv(fds[0], page, sizeof page, MSG_DONTWAIT) > 0)
        ;
}

static void make_word(void)
{
    word = word2 = 0;
}

static void make_mutex(void)
{
    CHECK(mtx_init(&mutex, mtx_plain) == thrd_success && mtx_lock(&mutex) == thrd_success);
}

static void make_condition(void)
{
    CHECK(mtx_init(&mutex, mtx_plain) == thrd_success && cnd_init(&condition) == thrd_success);
}

static HERE void in_handler(int number)
{
    (void)number;
    wake_write();
}

static void make_signal(void)
{
    struct sigaction action = {.sa_handler = in_handler};
    make_pipe();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void stranger_writes(void)
{
    syscall(SYS_write, fds[1], &byte, 1);
}

/* No thread of this process wakes the waiter; the process writes to another pipe. */
static void make_foreign(void)
{
    make_pipe();
    make_stranger(stranger_writes);
}

static void wake_nobody(void)
{
    int unrelated[2];
    CHECK(pipe(unrelated) == 0 && write(unrelated[1], &byte, 1) == 1);
}

static int timer;

/*
 * The number of the write end now refers to another file, which is written to while the reader
 * waits: that wakes nothing. A timer for which the reader waits too then ends the wait.
 */
static void make_reused(void)
{
    int null, out;
    make_pipe();
    null = open("/dev/null", O_WRONLY);
    out = dup(fds[1]);
    CHECK(null >= 0 && out >= 0 && close(fds[1]) == 0);
    CHECK(open("/dev/null", O_WRONLY | O_CLOEXEC) == fds[1]);
    CHECK((timer = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
}

static void set_timer(void)
{
    struct itimerspec time = {.it_value.tv_nsec = 1};
    CHECK(timerfd_settime(timer, 0, &time, NULL) == 0);
}

/* The pipe is in the set but disarmed; a timer ends the wait. */
static void make_disarmed(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1234567890};
    CHECK((timer = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
    make_pipe();
    make_set_of(fds[0], EPOLLIN);
    event.data.u64 = 1;
    event.events = 0;
    CHECK(epoll_ctl(set, EPOLL_CTL_MOD, fds[0], &event) == 0);
    event.data.u64 = 0x1234567890;
    event.events = EPOLLIN;
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, timer, &event) == 0);
}

static void wait_timer(void)
{
    struct pollfd polls[2] = {{fds[0], POLLIN, 0}, {timer, POLLIN, 0}};
    CHECK(poll(polls, 2, -1) == 1 && polls[1].revents == POLLIN);
}

/* MARK: In memory that processes share */

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    pthread_rwlock_t lock;
    pthread_barrier_t barrier;
    sem_t semaphore;
    uint32_t word;
};

static struct shared *shared;

/* Maps the memory again, at another address. */
static void map_shared(void)
{
    void *here = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    CHECK(here != MAP_FAILED);
    /* Not at the start of the mapping. */
    shared = (struct shared *)(void *)((char *)here + 4096 + 64);
}

static void make_shared(void)
{
    pthread_mutexattr_t mutexes;
    pthread_condattr_t conditions;
    pthread_rwlockattr_t locks;
    pthread_barrierattr_t barriers;
    shared_fd = memfd_create("shared", MFD_CLOEXEC);
    CHECK(shared_fd >= 0 && ftruncate(shared_fd, 8192) == 0);
    map_shared();
    CHECK(pthread_mutexattr_init(&mutexes) == 0 && pthread_mutexattr_setpshared(&mutexes, 1) == 0 &&
          pthread_mutex_init(&shared->mutex, &mutexes) == 0);
    CHECK(pthread_condattr_init(&conditions) == 0 &&
          pthread_condattr_setpshared(&conditions, 1) == 0 &&
          pthread_cond_init(&shared->condition, &conditions) == 0);
    CHECK(pthread_rwlockattr_init(&locks) == 0 && pthread_rwlockattr_setpshared(&locks, 1) == 0 &&
          pthread_rwlock_init(&shared->lock, &locks) == 0);
    CHECK(pthread_barrierattr_init(&barriers) == 0 &&
          pthread_barrierattr_setpshared(&barriers, 1) == 0 &&
          pthread_barrier_init(&shared->barrier, &barriers, 2) == 0);
    CHECK(sem_init(&shared->semaphore, 1, 0) == 0);
}

static void make_shared_mutex(void)
{
    make_shared();
    CHECK(pthread_mutex_lock(&shared->mutex) == 0);
}

static void wait_shared_mutex(void)
{
    CHECK(pthread_mutex_lock(&shared->mutex) == 0 && pthread_mutex_unlock(&shared->mutex) == 0);
}

static void wake_shared_mutex(void)
{
    CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
}

/* Calls the C library directly, past the wrappers, so that no hold is recorded. */
static void call_unseen(const char *function)
{
    void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
    int (*call)(pthread_mutex_t *) = library ? dlsym(library, function) : NULL;
    CHECK(call && call(&shared->mutex) == 0);
}

static void wait_shared_unseen(void)
{
    CHECK(pthread_mutex_lock(&shared->mutex) == 0);
    call_unseen("pthread_mutex_unlock");
}

static void make_shared_unseen(void)
{
    make_shared();
    call_unseen("pthread_mutex_lock");
}

static void wake_shared_unseen(void)
{
    call_unseen("pthread_mutex_unlock");
}

static void make_shared_lock(void)
{
    make_shared();
    CHECK(pthread_rwlock_wrlock(&shared->lock) == 0);
}

static void wait_shared_lock(void)
{
    CHECK(pthread_rwlock_rdlock(&shared->lock) == 0 && pthread_rwlock_unlock(&shared->lock) == 0);
}

static void wake_shared_lock(void)
{
    CHECK(pthread_rwlock_unlock(&shared->lock) == 0);
}

static void wait_shared_condition(void)
{
    CHECK(pthread_mutex_lock(&shared->mutex) == 0);
    while (!shared->word)
        CHECK(pthread_cond_wait(&shared->condition, &shared->mutex) == 0);
    CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
}

static void wake_shared_condition(void)
{
    CHECK(pthread_mutex_lock(&shared->mutex) == 0);
    shared->word = 1;
    CHECK(pthread_cond_signal(&shared->condition) == 0);
    CHECK(pthread_mutex_unlock(&shared->mutex) == 0);
}

static void wait_shared_semaphore(void)
{
    CHECK(sem_wait(&shared->semaphore) == 0);
}

static void wake_shared_semaphore(void)
{
    CHECK(sem_post(&shared->semaphore) == 0);
}

static void arrive(void)
{
    int status = pthread_barrier_wait(&shared->barrier);
    CHECK(status == 0 || status == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void wait_shared_futex(void)
{
    while (__atomic_load_n(&shared->word, __ATOMIC_ACQUIRE) == 0)
        CHECK(syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0 ||
              errno == EAGAIN || errno == EINTR);
}

static void wake_shared_futex(void)
{
    __atomic_store_n(&shared->word, 1, __ATOMIC_RELEASE);
    CHECK(syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
}

/* MARK: A Unix socket with a name */

static int listener;

static void make_named(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t size = sizeof address;
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* The kernel chooses a name. */
    CHECK(listener >= 0 &&
          bind(listener, (struct sockaddr *)&address, sizeof address.sun_family) == 0);
    CHECK(listen(listener, 1) == 0 &&
          getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fds[0] >= 0 && connect(fds[0], (struct sockaddr *)&address, size) == 0);
    fds[1] = accept(listener, NULL, NULL);
    CHECK(fds[1] >= 0);
}

/* The recorder looks up the peer after the first use. */
static void wake_write_again(void)
{
    char in[8];
    CHECK(recv(fds[1], in, sizeof in, MSG_DONTWAIT) < 0);
    until_the_recorder_has_looked();
    wake_write();
}

/* MARK: System V */

static int set_id = -1, queue_id = -1;
static struct sembuf down = {.sem_num = 2, .sem_op = -1}, up = {.sem_num = 2, .sem_op = 1};
static struct sembuf up_other = {.sem_num = 1, .sem_op = 1};

static struct message {
    long type;
    char text[8];
} message = {.type = 1};

static void remove_set(void)
{
    (void)semctl(set_id, 0, IPC_RMID);
}

static void remove_queue(void)
{
    (void)msgctl(queue_id, IPC_RMID, NULL);
}

static void make_set_sysv(void)
{
    set_id = semget(IPC_PRIVATE, 3, 0600);
    CHECK(set_id >= 0);
}

static void wait_semop(void)
{
    CHECK(semop(set_id, &down, 1) == 0);
}

/* Adding to another semaphore of the set wakes nothing. The waiter already has its permit when the
 * set is removed. */
static void wake_semop(void)
{
    CHECK(semop(set_id, &up, 1) == 0);
    remove_set();
}

static void make_queue_sysv(void)
{
    queue_id = msgget(IPC_PRIVATE, 0600);
    CHECK(queue_id >= 0);
}

static void wait_message(void)
{
    CHECK(msgrcv(queue_id, &message, sizeof message.text, 0, 0) == (ssize_t)sizeof message.text);
}

static void wake_message(void)
{
    CHECK(msgsnd(queue_id, &message, sizeof message.text, 0) == 0);
    remove_queue();
}

/* MARK: POSIX message queues */

/* The two descriptors come from separate opens. */
static void make_queue(void)
{
    struct mq_attr shape = {.mq_maxmsg = 1, .mq_msgsize = 8};
    char name[64];
    (void)snprintf(name, sizeof name, "/trail-wakers-%d", (int)getpid());
    fds[0] = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &shape);
    fds[1] = mq_open(name, O_RDWR);
    CHECK(fds[0] >= 0 && fds[1] >= 0 && mq_unlink(name) == 0);
}

static void make_full_queue(void)
{
    make_queue();
    CHECK(mq_send(fds[0], &byte, 1, 0) == 0);
}

static void wait_receive(void)
{
    char text[8];
    CHECK(mq_receive(fds[0], text, sizeof text, NULL) == 1);
}

static void wait_receive_timed(void)
{
    struct timespec late = {INT32_MAX, 0};
    char text[8];
    CHECK(mq_timedreceive(fds[0], text, sizeof text, NULL, &late) == 1);
}

static void wait_room_in_queue(void)
{
    CHECK(mq_send(fds[0], &byte, 1, 0) == 0);
}

static void wake_send_message(void)
{
    CHECK(mq_send(fds[1], &byte, 1, 0) == 0);
}

static void wake_receive_message(void)
{
    char text[8];
    CHECK(mq_receive(fds[1], text, sizeof text, NULL) == 1);
}

static void ignore(int number)
{
    (void)number;
}

/* Signals only the waiter: the other threads block the signal. */
static void stranger_interrupts(void)
{
    syscall(SYS_tkill, turn->waited, SIGALRM);
}

static void make_interrupted(void)
{
    struct sigaction action = {.sa_handler = ignore};
    sigset_t alarm;
    CHECK(sigemptyset(&alarm) == 0 && sigaddset(&alarm, SIGALRM) == 0);
    CHECK(pthread_sigmask(SIG_BLOCK, &alarm, NULL) == 0 && sigaction(SIGALRM, &action, NULL) == 0);
    make_stranger(stranger_interrupts);
}

/* The queue has been used; a signal ends the wait. */
static void make_idle_queue(void)
{
    char text[8];
    make_queue();
    CHECK(mq_send(fds[1], &byte, 1, 0) == 0 && mq_receive(fds[1], text, sizeof text, NULL) == 1);
    make_interrupted();
}

static void wait_no_message(void)
{
    sigset_t alarm;
    char text[8];
    CHECK(sigemptyset(&alarm) == 0 && sigaddset(&alarm, SIGALRM) == 0);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &alarm, NULL) == 0);
    CHECK(mq_receive(fds[0], text, sizeof text, NULL) == -1 && errno == EINTR);
}

/* Neither closing a queue nor a message in another one wakes the waiter. */
static void wake_none_of_queue(void)
{
    CHECK(mq_close(fds[1]) == 0);
    make_queue();
    wake_send_message();
}

/* MARK: Locks of files */

static char lock_path[64];
static int waiter_fd;

static struct flock range(short type, off_t start, off_t length)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static void set_lock(int fd, int command, short type, off_t start, off_t length)
{
    struct flock what = range(type, start, length);
    CHECK(fcntl(fd, command, &what) == 0);
}

static void remove_lock_file(void)
{
    (void)unlink(lock_path);
}

/* Opens the file twice: the waiter has its own open file description. */
static void make_lock_file(void)
{
    (void)snprintf(lock_path, sizeof lock_path, "/tmp/trail-wakers-%d.lock", (int)getpid());
    fds[1] = open(lock_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    waiter_fd = open(lock_path, O_RDWR | O_CLOEXEC);
    CHECK(fds[1] >= 0 && waiter_fd >= 0 && atexit(remove_lock_file) == 0);
}

static void make_flock(void)
{
    make_lock_file();
    CHECK(flock(fds[1], LOCK_EX) == 0);
}

static void make_flock_shared(void)
{
    make_lock_file();
    CHECK(flock(fds[1], LOCK_SH) == 0);
}

static void wait_flock(void)
{
    CHECK(flock(waiter_fd, LOCK_EX) == 0);
}

static void wait_flock_shared(void)
{
    CHECK(flock(waiter_fd, LOCK_SH) == 0 && flock(waiter_fd, LOCK_UN) == 0);
}

static void wake_flock(void)
{
    CHECK(flock(fds[1], LOCK_UN) == 0);
}

static void wake_flock_shared(void)
{
    CHECK(flock(fds[1], LOCK_SH) == 0);
}

/* A lock of the process on bytes 10 to 19. */
static void make_range(void)
{
    make_lock_file();
    set_lock(fds[1], F_SETLKW, F_WRLCK, 10, 10);
}

static void wait_range(void)
{
    set_lock(waiter_fd, F_SETLKW, F_WRLCK, 15, 0);
}

static void wait_range_shared(void)
{
    set_lock(waiter_fd, F_SETLKW, F_RDLCK, 0, 0);
}

/* Unlocks only the bytes that the waiter needs; nothing waits for the rest. */
static void wake_range(void)
{
    set_lock(fds[1], F_SETLK, F_UNLCK, 15, 5);
}

/* The first or last locked byte, unlocked in one call with bytes that are not locked. */
static void wait_first_byte(void)
{
    set_lock(waiter_fd, F_SETLKW, F_WRLCK, 10, 1);
}

static void wake_first_byte(void)
{
    set_lock(fds[1], F_SETLK, F_UNLCK, 5, 6);
}

static void wait_last_byte(void)
{
    set_lock(waiter_fd, F_SETLKW, F_WRLCK, 19, 1);
}

static void wake_last_byte(void)
{
    set_lock(fds[1], F_SETLK, F_UNLCK, 19, 5);
}

static void wake_range_shared(void)
{
    set_lock(fds[1], F_SETLK, F_RDLCK, 10, 10);
}

/* Closing any descriptor of the file releases all locks of the process on it. */
static void wake_by_any_close(void)
{
    int fd = open(lock_path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && close(fd) == 0);
}

static void make_description(void)
{
    make_lock_file();
    set_lock(fds[1], F_OFD_SETLKW, F_WRLCK, 0, 0);
}

static void wait_description(void)
{
    set_lock(waiter_fd, F_OFD_SETLKW, F_WRLCK, 0, 0);
}

static void wake_description(void)
{
    set_lock(fds[1], F_OFD_SETLK, F_UNLCK, 0, 0);
}

static void make_lockf(void)
{
    make_lock_file();
    CHECK(lockf(fds[1], F_TLOCK, 0) == 0);
}

static void wait_lockf(void)
{
    CHECK(lockf(waiter_fd, F_LOCK, 0) == 0);
}

static void wake_lockf(void)
{
    CHECK(lockf(fds[1], F_ULOCK, 0) == 0);
}

/* MARK: Signals */

static pid_t target; /* the process that waits */
static pid_t waiter_tid;

static sigset_t set_of(int number)
{
    sigset_t signals;
    CHECK(sigemptyset(&signals) == 0 && sigaddset(&signals, number) == 0);
    return signals;
}

static void make_blocked(void)
{
    sigset_t signals = set_of(SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &signals, NULL) == 0);
}

static void make_handled(void)
{
    struct sigaction action = {.sa_handler = ignore};
    make_blocked();
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

static void wait_sigwait(void)
{
    sigset_t signals = set_of(SIGUSR1);
    int number;
    CHECK(sigwait(&signals, &number) == 0 && number == SIGUSR1);
}

static void wait_sigwaitinfo(void)
{
    sigset_t signals = set_of(SIGUSR1);
    siginfo_t info;
    CHECK(sigwaitinfo(&signals, &info) == SIGUSR1 && info.si_value.sival_int == 5);
}

static void wait_sigtimedwait(void)
{
    sigset_t signals = set_of(SIGUSR1);
    struct timespec time = {100, 0};
    waiter_tid = (pid_t)syscall(SYS_gettid);
    CHECK(sigtimedwait(&signals, NULL, &time) == SIGUSR1);
}

static void wait_sigsuspend(void)
{
    sigset_t none;
    CHECK(sigemptyset(&none) == 0 && sigsuspend(&none) == -1 && errno == EINTR);
}

static void wait_pause(void)
{
    sigset_t signals = set_of(SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
    CHECK(pause() == -1 && errno == EINTR);
}

/* The recorder and the test must not be in this group. */
static void make_group(void)
{
    CHECK(setpgid(0, 0) == 0);
    make_handled();
    make_pipe();
    CHECK(pipe(other) == 0);
}

static void let_signal_in(void)
{
    sigset_t signals = set_of(SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
}

static void wait_nanosleep(void)
{
    struct timespec time = {100, 0};
    let_signal_in();
    CHECK(nanosleep(&time, NULL) == -1 && errno == EINTR);
}

static void wait_clock_nanosleep(void)
{
    struct timespec time = {100, 0};
    let_signal_in();
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) == EINTR);
}

static void wait_whole_seconds(void)
{
    let_signal_in();
    CHECK(sleep(100) > 90);
}

static void make_pipe_handled(void)
{
    make_handled();
    make_pipe();
    CHECK(pipe(other) == 0);
}

static void wait_poll_interrupted(void)
{
    struct pollfd polls[2] = {{other[0], POLLIN, 0}, {fds[0], POLLIN, 0}};
    let_signal_in();
    CHECK(poll(polls, 2, -1) == -1 && errno == EINTR);
}

/* Replaces the pipe by one that shares a slot of the board with the signals of this process. */
static void make_pipe_alike(void)
{
    struct stat space, status;
    uint64_t signals, reads;
    CHECK(stat("/proc/self/ns/pid", &space) == 0);
    signals = SHM_SIGNALS | board_mix(space.st_ino, (uint64_t)getpid()) << 4;
    do {
        CHECK(close(fds[0]) == 0 && close(fds[1]) == 0);
        CHECK(pipe(fds) == 0 && fstat(fds[0], &status) == 0);
        reads = SHM_SHARED | board_mix(status.st_dev, status.st_ino) << 4;
    } while (shm_object_slot(reads) != shm_object_slot(signals));
}

static void wait_poll_alike(void)
{
    wait_poll_interrupted();
}

static void wait_select_interrupted(void)
{
    fd_set reads;
    let_signal_in();
    FD_ZERO(&reads);
    FD_SET(fds[0], &reads);
    CHECK(select(fds[0] + 1, &reads, NULL, NULL, NULL) == -1 && errno == EINTR);
}

static void wait_epoll_interrupted(void)
{
    struct epoll_event event;
    let_signal_in();
    make_set_of(fds[0], EPOLLIN);
    CHECK(epoll_wait(set, &event, 1, -1) == -1 && errno == EINTR);
}

static void wait_read_interrupted(void)
{
    let_signal_in();
    CHECK(read(fds[0], &byte, 1) == -1 && errno == EINTR);
}

static void make_full_pipe_handled(void)
{
    make_handled();
    make_full_pipe();
}

static void wait_write_interrupted(void)
{
    let_signal_in();
    CHECK(write(fds[1], &byte, 1) == -1 && errno == EINTR);
}

static sem_t no_posts;

static void make_semaphore_handled(void)
{
    make_handled();
    CHECK(sem_init(&no_posts, 0, 0) == 0);
}

static void wait_semaphore_interrupted(void)
{
    let_signal_in();
    CHECK(sem_wait(&no_posts) == -1 && errno == EINTR);
}

static void wait_semaphore_timed_interrupted(void)
{
    struct timespec late = {INT32_MAX, 0};
    let_signal_in();
    CHECK(sem_timedwait(&no_posts, &late) == -1 && errno == EINTR);
}

static void make_queue_handled(void)
{
    make_handled();
    make_queue();
}

static void wait_receive_interrupted(void)
{
    char text[8];
    let_signal_in();
    CHECK(mq_receive(fds[0], text, sizeof text, NULL) == -1 && errno == EINTR);
}

static void wait_receive_timed_interrupted(void)
{
    struct timespec late = {INT32_MAX, 0};
    char text[8];
    let_signal_in();
    CHECK(mq_timedreceive(fds[0], text, sizeof text, NULL, &late) == -1 && errno == EINTR);
}

/* The kernel chooses a name for the socket. */
static void make_listener_handled(void)
{
    const struct sockaddr any = {.sa_family = AF_UNIX};
    make_handled();
    CHECK((fds[0] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) >= 0);
    CHECK(bind(fds[0], &any, sizeof any.sa_family) == 0 && listen(fds[0], 1) == 0);
}

static void wait_accept_interrupted(void)
{
    let_signal_in();
    CHECK(accept(fds[0], NULL, NULL) == -1 && errno == EINTR);
}

static void make_signalfd(void)
{
    sigset_t signals = set_of(SIGUSR1);
    make_pipe();
    make_blocked();
    CHECK((fds[0] = signalfd(-1, &signals, SFD_CLOEXEC)) >= 0);
}

/* An epoll set reports the signals of the process that added the descriptor. */
static void wait_signalfd_epoll(void)
{
    make_set_of(fds[0], EPOLLIN);
    wait_epoll();
}

static void wait_signalfd(void)
{
    struct signalfd_siginfo info;
    CHECK(read(fds[0], &info, sizeof info) == sizeof info && info.ssi_signo == SIGUSR1);
}

/* The other threads must not take the signal. */
static void wake_kill(void)
{
    CHECK(kill(target, SIGUSR1) == 0);
}

/* Includes the waker, which blocks the signal. */
static void wake_own_group(void)
{
    CHECK(kill(0, SIGUSR1) == 0);
}

static void wake_group(void)
{
    CHECK(kill(-getpgrp(), SIGUSR1) == 0);
}

static void wake_killpg(void)
{
    CHECK(killpg(getpgrp(), SIGUSR1) == 0);
}

static void wake_sigqueue(void)
{
    CHECK(sigqueue(target, SIGUSR1, (union sigval){.sival_int = 5}) == 0);
}

static void wake_thread(void)
{
    CHECK(pthread_kill(waiter, SIGUSR1) == 0);
}

static void wake_tgkill(void)
{
    CHECK(tgkill(target, waiter_tid, SIGUSR1) == 0);
}

/* A signal will interrupt the wait. */
static void make_alarm(void)
{
    make_handled();
    make_interrupted();
}

static void wait_alarm_but(int blocked)
{
    sigset_t signals = set_of(blocked);
    CHECK(sigsuspend(&signals) == -1 && errno == EINTR);
}

static void wait_alarm(void)
{
    wait_alarm_but(SIGWINCH);
}

static void wait_alarm_alone(void)
{
    wait_alarm_but(SIGUSR1);
}

static void wake_another_thread(void)
{
    sigset_t signals = set_of(SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &signals, NULL) == 0);
    CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
}

/* The first signal is blocked, the second has no handler. */
static void wake_by_others(void)
{
    CHECK(kill(target, SIGUSR1) == 0 && kill(target, SIGWINCH) == 0);
}

/* MARK: Datagrams, and descriptors passed to other threads */

static void make_datagrams(void)
{
    CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == 0);
}

static struct sockaddr_in bound(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    return address;
}

/* The sockets are used first, then connected to each other. */
static void make_udp(void)
{
    struct sockaddr_in address[2];
    char in;
    for (int i = 0; i < 2; i++) {
        fds[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        address[i] = bound(fds[i]);
        CHECK(recv(fds[i], &in, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    }
    for (int i = 0; i < 2; i++)
        CHECK(connect(fds[i], (struct sockaddr *)&address[1 - i], sizeof address[0]) == 0);
}

static void stranger_sends(void)
{
    syscall(SYS_sendto, fds[1], &byte, 1, 0, NULL, 0);
}

static void make_udp_of_stranger(void)
{
    make_udp();
    make_stranger(stranger_sends);
}

/* Sends to a socket that is not the peer. */
static void wake_elsewhere(void)
{
    struct sockaddr_in third = bound(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    struct iovec part = {&byte, 1};
    struct msghdr parcel = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_name = &third, .msg_namelen = sizeof third};
    CHECK(sendto(fds[1], &byte, 1, 0, (struct sockaddr *)&third, sizeof third) == 1);
    CHECK(sendmsg(fds[1], &parcel, 0) == 1);
}

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

static void make_channel(void)
{
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0);
}

/* The waiter makes the descriptor and passes it to the waker. */
static void wait_passed(void)
{
    union control control = {.header = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr parcel = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    fds[0] = eventfd(0, EFD_CLOEXEC);
    CHECK(fds[0] >= 0);
    memcpy(CMSG_DATA(&control.header), fds, sizeof(int));
    CHECK(sendmsg(other[0], &parcel, 0) == 1);
    wait_eventfd();
}

static void wake_passed(void)
{
    union control control;
    struct iovec part = {&byte, 1};
    struct msghdr parcel = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    int passed;
    CHECK(recvmsg(other[1], &parcel, 0) == 1 && parcel.msg_controllen != 0);
    memcpy(&passed, CMSG_DATA(&control.header), sizeof passed);
    CHECK(eventfd_write(passed, 1) == 0);
}

/* MARK: Cases */

static const struct {
    const char *name;
    void (*make)(void), (*wait)(void), (*wake)(void);
} cases[] = {
    {"pipe", make_pipe, wait_read, wake_write},
    {"pipe-vectors", make_pipe, wait_readv, wake_writev},
    {"pipe-stdio", make_pipe, wait_fgetc, wake_write},
    {"pipe-closed", make_pipe, wait_end, wake_close},
    {"pipe-full", make_full_pipe, wait_room, wake_room},
    {"pair-full", make_full_pair, wait_room, wake_room_of_pair},
    {"fifo", make_fifo, wait_read, wake_write},
    {"fifo-at-once", make_fifo_at_once, wait_read, wake_write},
    {"pair", make_pair, wait_read, wake_write},
    {"pair-send", make_pair, wait_recv, wake_send},
    {"pair-sendmsg", make_pair, wait_recv, wake_sendmsg},
    {"pair-shutdown", make_pair, wait_end, wake_shutdown},
    {"tcp", make_tcp, wait_read, wake_write},
    {"tcp-back", make_tcp_back, wait_recv, wake_send},
    {"tcp-closed", make_tcp, wait_end, wake_close},
    {"tcp-epoll", make_tcp_epoll, wait_epoll, wake_write},
    {"tcp-thread", make_tcp_thread, wait_epoll, wake_write},
    {"tcp-foreign", make_tcp_foreign, wait_read, wake_write},
    {"eventfd", make_eventfd, wait_eventfd, wake_eventfd},
    {"eventfd-write", make_eventfd, wait_read, wake_eventfd_by_write},
    {"poll", make_pipe, wait_poll, wake_write},
    {"poll-eventfd", make_eventfd, wait_poll, wake_eventfd},
    {"select", make_pipe, wait_select, wake_write},
    {"epoll", make_epoll_pipe, wait_epoll, wake_write},
    {"epoll-eventfd", make_epoll_eventfd, wait_epoll, wake_eventfd_by_write},
    {"duplicates", make_duplicates, wait_read, wake_write},
    {"duplicates-poll", make_duplicates, wait_poll, wake_write},
    {"handler", make_signal, wait_poll, wake_signal},
    {"futex", make_word, wait_futex, wake_futex},
    {"futex-bitset", make_word, wait_futex_bitset, wake_futex_bitset},
    {"futex-op", make_word, wait_futex, wake_futex_op},
    {"mtx", make_mutex, wait_mtx, wake_mtx},
    {"cnd", make_condition, wait_cnd, wake_cnd},
    {"foreign", make_foreign, wait_poll, wake_nobody},
    {"disarmed", make_disarmed, wait_epoll, wake_write},
    {"reused", make_reused, wait_timer, wake_write},
    {"named", make_named, wait_read, wake_write_again},
    {"sysv-semaphore", make_set_sysv, wait_semop, wake_semop},
    {"sysv-queue", make_queue_sysv, wait_message, wake_message},
    {"queue", make_queue, wait_receive, wake_send_message},
    {"queue-timed", make_queue, wait_receive_timed, wake_send_message},
    {"queue-full", make_full_queue, wait_room_in_queue, wake_receive_message},
    {"queue-closed", make_idle_queue, wait_no_message, wake_none_of_queue},
    {"flock", make_flock, wait_flock, wake_flock},
    {"flock-shared", make_flock_shared, wait_flock, wake_flock},
    {"flock-weaker", make_flock, wait_flock_shared, wake_flock_shared},
    {"flock-closed", make_flock, wait_flock, wake_close},
    {"range", make_range, wait_range, wake_range},
    {"range-first-byte", make_range, wait_first_byte, wake_first_byte},
    {"range-last-byte", make_range, wait_last_byte, wake_last_byte},
    {"range-weaker", make_range, wait_range_shared, wake_range_shared},
    {"range-closed", make_range, wait_range, wake_by_any_close},
    {"description", make_description, wait_description, wake_description},
    {"description-closed", make_description, wait_description, wake_close},
    {"lockf", make_lockf, wait_lockf, wake_lockf},
    {"sigwait", make_blocked, wait_sigwait, wake_kill},
    {"sigqueue", make_blocked, wait_sigwaitinfo, wake_sigqueue},
    {"sigwait-thread", make_blocked, wait_sigwait, wake_thread},
    {"sigtimedwait", make_blocked, wait_sigtimedwait, wake_tgkill},
    {"sigsuspend", make_handled, wait_sigsuspend, wake_kill},
    {"sigsuspend-thread", make_handled, wait_sigsuspend, wake_thread},
    {"pause", make_handled, wait_pause, wake_kill},
    {"pause-thread", make_handled, wait_pause, wake_thread},
    {"signalfd", make_signalfd, wait_signalfd, wake_kill},
    {"signalfd-poll", make_signalfd, wait_poll, wake_kill},
    {"signalfd-epoll", make_signalfd, wait_signalfd_epoll, wake_kill},
    {"nanosleep-thread", make_handled, wait_nanosleep, wake_thread},
    {"clock-nanosleep-thread", make_handled, wait_clock_nanosleep, wake_thread},
    {"sleep-thread", make_handled, wait_whole_seconds, wake_thread},
    {"sleep", make_handled, wait_whole_seconds, wake_kill},
    {"sleep-group", make_group, wait_whole_seconds, wake_own_group},
    {"pause-group", make_group, wait_pause, wake_group},
    {"sigwait-group", make_group, wait_sigwait, wake_killpg},
    {"poll-interrupted-thread", make_pipe_handled, wait_poll_interrupted, wake_thread},
    {"poll-interrupted", make_pipe_handled, wait_poll_interrupted, wake_kill},
    {"poll-interrupted-alike", make_pipe_handled, wait_poll_alike, wake_kill},
    {"poll-interrupted-group", make_group, wait_poll_interrupted, wake_own_group},
    {"read-interrupted-thread", make_pipe_handled, wait_read_interrupted, wake_thread},
    {"read-interrupted", make_pipe_handled, wait_read_interrupted, wake_kill},
    {"write-interrupted-thread", make_full_pipe_handled, wait_write_interrupted, wake_thread},
    {"queue-interrupted-thread", make_queue_handled, wait_receive_interrupted, wake_thread},
    {"queue-timed-interrupted-thread", make_queue_handled, wait_receive_timed_interrupted,
     wake_thread},
    {"semaphore-interrupted", make_semaphore_handled, wait_semaphore_interrupted, wake_kill},
    {"read-interrupted-group", make_group, wait_read_interrupted, wake_own_group},
    {"epoll-interrupted-group", make_group, wait_epoll_interrupted, wake_own_group},
    {"semaphore-interrupted-thread", make_semaphore_handled, wait_semaphore_interrupted,
     wake_thread},
    {"semaphore-timed-interrupted-thread", make_semaphore_handled, wait_semaphore_timed_interrupted,
     wake_thread},
    {"accept-interrupted-thread", make_listener_handled, wait_accept_interrupted, wake_thread},
    {"select-interrupted-thread", make_pipe_handled, wait_select_interrupted, wake_thread},
    {"epoll-interrupted-thread", make_pipe_handled, wait_epoll_interrupted, wake_thread},
    {"epoll-interrupted", make_pipe_handled, wait_epoll_interrupted, wake_kill},
    {"signal-to-another", make_alarm, wait_alarm, wake_another_thread},
    {"signal-of-others", make_alarm, wait_alarm_alone, wake_by_others},
    {"datagrams", make_datagrams, wait_recv, wake_send},
    {"udp", make_udp, wait_recv, wake_send},
    {"udp-elsewhere", make_udp_of_stranger, wait_recv, wake_elsewhere},
    {"eventfd-passed", make_channel, wait_passed, wake_passed},
    {"shared-mutex", make_shared_mutex, wait_shared_mutex, wake_shared_mutex},
    {"shared-unseen", make_shared_unseen, wait_shared_unseen, wake_shared_unseen},
    {"shared-lock", make_shared_lock, wait_shared_lock, wake_shared_lock},
    {"shared-condition", make_shared, wait_shared_condition, wake_shared_condition},
    {"shared-semaphore", make_shared, wait_shared_semaphore, wake_shared_semaphore},
    {"shared-barrier", make_shared, arrive, arrive},
    {"shared-futex", make_shared, wait_shared_futex, wake_shared_futex},
};

/* What ends the wait in cases where wake_here() does not. */
static const struct {
    const char *name;
    void (*end)(void);
} endings[] = {
    {"foreign", let_stranger_act},
    {"tcp-foreign", let_stranger_act},
    {"disarmed", set_timer},
    {"reused", set_timer},
    {"queue-closed", let_stranger_act},
    {"signal-to-another", let_stranger_act},
    {"signal-of-others", let_stranger_act},
    {"udp-elsewhere", let_stranger_act},
};

static void (*wait_by)(void), (*wake_by)(void), (*end_by)(void);

static HERE void wait_here(void)
{
    about_to_wait();
    wait_by();
    __asm__ volatile("" ::: "memory");
}

static HERE void wake_here(void)
{
    say_wakes();
    wake_by();
    __asm__ volatile("" ::: "memory");
}

static void *waits(void *arg)
{
    wait_here();
    return arg;
}

static bool forked;

/* Forks a child that ends at once. */
static void make_another(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void let_in(void)
{
    CHECK(pthread_create(&waiter, NULL, waits, NULL) == 0);
    until_it_waits();
    if (forked)
        make_another();
    if (before_by)
        before_by();
    wake_here();
    if (end_by)
        end_by();
    CHECK(pthread_join(waiter, NULL) == 0);
}

/* Makes a pair of IPv6 datagram sockets at an address. Returns the port of the second, or 0 if this
 * machine does not have the address. */
static int make_udp6(const char *host)
{
    struct sockaddr_in6 address[2];
    socklen_t size = sizeof address[0];
    for (int i = 0; i < 2; i++) {
        address[i] = (struct sockaddr_in6){.sin6_family = AF_INET6};
        CHECK(inet_pton(AF_INET6, host, &address[i].sin6_addr) == 1);
        fds[i] = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fds[i] < 0 || bind(fds[i], (struct sockaddr *)&address[i], size) != 0)
            return 0;
        CHECK(getsockname(fds[i], (struct sockaddr *)&address[i], &size) == 0);
    }
    for (int i = 0; i < 2; i++)
        CHECK(connect(fds[i], (struct sockaddr *)&address[1 - i], size) == 0);
    return ntohs(address[1].sin6_port);
}

static int names(char **paths)
{
    static const char *const hosts[] = {"::ffff:127.0.0.1", "::1"};
    struct sockaddr_in address = {0}, server = {0};
    socklen_t size = sizeof address;
    int first = 0, ports[2], pairs[2][2];
    wait_by = wait_read;
    wake_by = wake_write;
    looked = true;
    for (int i = 0; i < 2; i++) {
        CHECK((fds[0] = fds[1] = open(paths[i], O_RDWR | O_CLOEXEC)) >= 0);
        CHECK(i == 0 || first == fds[0]);
        first = fds[0];
        let_in();
        CHECK(close(fds[0]) == 0);
    }
    /* Create all of them before the recorder looks at the first: it reads the kernel's tables only
     * now and then. */
    for (int i = 0; i < 2; i++) {
        ports[i] = make_udp6(hosts[i]);
        memcpy(pairs[i], fds, sizeof pairs[i]);
    }
    make_tcp();
    CHECK(getsockname(fds[1], (struct sockaddr *)&address, &size) == 0);
    CHECK(getsockname(fds[0], (struct sockaddr *)&server, &size) == 0);
    printf("%d %d %d %d\n", ntohs(address.sin_port), ntohs(server.sin_port), ports[0], ports[1]);
    let_in();
    swap_ends();
    let_in();
    for (int i = 0; i < 2; i++) {
        memcpy(fds, pairs[i], sizeof pairs[i]);
        if (ports[i] != 0)
            let_in();
    }
    return 0;
}

/* MARK: Several descriptors */

static unsigned long inode_of(int fd)
{
    struct stat status;
    CHECK(fstat(fd, &status) == 0);
    return (unsigned long)status.st_ino;
}

static void wait_seven(void)
{
    struct pollfd polls[7];
    for (int i = 0; i < 7; i++)
        polls[i] = (struct pollfd){i == 6 ? fds[0] : other[0], POLLIN, 0};
    CHECK(poll(polls, 7, -1) == 1 && polls[6].revents == POLLIN);
}

/* The epoll set also has a pidfd, of a process that does not end. */
static void wait_processes(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    int process = (int)syscall(SYS_pidfd_open, getppid(), 0);
    CHECK(process >= 0);
    make_set_of(fds[0], EPOLLIN);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, process, &event) == 0);
    CHECK(epoll_wait(set, &event, 1, -1) == 1);
}

static void wait_forever(void)
{
    struct pollfd polls[2] = {{fds[0], POLLIN, 0}, {other[0], POLLIN, 0}};
    (void)poll(polls, 2, -1);
}

/*
 * Prints the pipe that is read, the one that is not, and the parent; then waits in each way, the
 * last time forever. The recorder examines the pipes in the first wait, the epoll set in its wait,
 * and the last wait.
 */
static int several(void)
{
    void (*const ways[])(void) = {wait_poll, wait_poll, wait_select, wait_seven, wait_processes};
    make_pipe();
    CHECK(pipe(other) == 0);
    printf("%lu %lu %d\n", inode_of(fds[0]), inode_of(other[0]), getppid());
    (void)fflush(stdout);
    wake_by = wake_write;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        wait_by = ways[i];
        looked = i == 0 || ways[i] == wait_processes;
        let_in();
        wait_read();
    }
    wait_by = wait_forever;
    CHECK(pthread_create(&waiter, NULL, waits, NULL) == 0);
    until_it_waits();
    return 0;
}

/* MARK: Several processes */

/* Returns the PID of a process that waits. */
static pid_t fork_waiter(void)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid != 0)
        return pid;
    /* It would otherwise wait for its own end to close. */
    if (wait_by == wait_end)
        CHECK(close(fds[1]) == 0);
    if (wait_by == wait_poll_alike)
        make_pipe_alike();
    if (shared_fd >= 0)
        map_shared();
    wait_here();
    exit(0);
}

static int ended_well(pid_t pid)
{
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return status == 0 ? 0 : 4;
}

static int processes(void)
{
    pid_t pid = target = fork_waiter();
    until_it_waits();
    if (set_id >= 0)
        CHECK(semop(set_id, &up_other, 1) == 0);
    wake_here();
    if (end_by)
        end_by();
    return ended_well(pid);
}

static HERE void close_here(void)
{
    CHECK(close(fds[1]) == 0);
    __asm__ volatile("" ::: "memory");
}

static int others(void)
{
    pid_t pid, third;
    wait_by = wait_read;
    wake_by = wake_write;
    make_pipe();
    CHECK(pipe(go) == 0);
    pid = fork_waiter();
    third = fork();
    CHECK(third >= 0);
    if (third == 0) {
        CHECK(read(go[0], &byte, 1) == 1);
        wake_here();
        exit(0);
    }
    until_it_waits();
    close_here();
    CHECK(write(go[1], &byte, 1) == 1);
    return ended_well(third) + ended_well(pid);
}

static pid_t child;

static void wait_child(void)
{
    CHECK(waitpid(child, NULL, 0) == child);
}

static void wait_any_child(void)
{
    CHECK(wait(NULL) == child);
}

/* Waits for SIGCHLD, in calls that it interrupts or that consume it. The pipe stays empty. */

static sigset_t child_signal;

static void handle_child_signal(void)
{
    struct sigaction action = {.sa_handler = ignore};
    make_pipe();
    CHECK(sigemptyset(&child_signal) == 0 && sigaddset(&child_signal, SIGCHLD) == 0);
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
}

static void wait_child_poll(void)
{
    struct pollfd fd = {fds[0], POLLIN, 0};
    CHECK(poll(&fd, 1, -1) == -1 && errno == EINTR);
    wait_child();
}

static void wait_child_pselect(void)
{
    sigset_t none;
    fd_set reads;
    CHECK(sigemptyset(&none) == 0);
    FD_ZERO(&reads);
    FD_SET(fds[0], &reads);
    CHECK(pselect(fds[0] + 1, &reads, NULL, NULL, NULL, &none) == -1 && errno == EINTR);
    wait_child();
}

static void wait_child_suspended(void)
{
    sigset_t none;
    CHECK(sigemptyset(&none) == 0 && sigsuspend(&none) == -1 && errno == EINTR);
    wait_child();
}

static void wait_child_signal(void)
{
    int number;
    CHECK(sigwait(&child_signal, &number) == 0 && number == SIGCHLD);
    wait_child();
}

static void wait_child_descriptor(void)
{
    struct signalfd_siginfo got;
    CHECK(read(fds[0], &got, sizeof got) == sizeof got && got.ssi_signo == SIGCHLD);
    wait_child();
}

static const struct {
    const char *name;
    void (*wait)(void);
    bool blocks; /* blocks the signal except in the wait */
    bool reads;  /* reads the signal from a descriptor */
} child_waits[] = {
    {"child", wait_child, false, false},
    {"any-child", wait_any_child, false, false},
    {"child-poll", wait_child_poll, false, false},
    {"child-pselect", wait_child_pselect, true, false},
    {"child-suspended", wait_child_suspended, true, false},
    {"child-signal", wait_child_signal, true, false},
    {"child-descriptor", wait_child_descriptor, true, true},
};

static void prepare_child_wait(size_t way)
{
    if (child_waits[way].wait == wait_child || child_waits[way].wait == wait_any_child)
        return;
    handle_child_signal();
    if (child_waits[way].blocks)
        CHECK(sigprocmask(SIG_BLOCK, &child_signal, NULL) == 0);
    if (child_waits[way].reads)
        CHECK((fds[0] = signalfd(-1, &child_signal, SFD_CLOEXEC)) >= 0);
}

static int parent_of(size_t way)
{
    wait_by = child_waits[way].wait;
    prepare_child_wait(way);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        until_it_waits();
        say_wakes();
        _exit(0);
    }
    printf("%d\n", (int)child);
    (void)fflush(stdout);
    wait_here();
    return 0;
}

/* A timer ends the wait; the child ends right afterwards, when it reads a byte. */
static int alarmed(void)
{
    struct sigaction action = {.sa_handler = ignore};
    struct itimerval soon = {.it_value = {0, 50000}};
    struct pollfd fd;
    handle_child_signal();
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && pipe(other) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(read(other[0], &byte, 1) == 1);
        _exit(0);
    }
    fd = (struct pollfd){fds[0], POLLIN, 0};
    CHECK(setitimer(ITIMER_REAL, &soon, NULL) == 0);
    CHECK(poll(&fd, 1, -1) == -1 && errno == EINTR);
    CHECK(write(other[1], &byte, 1) == 1);
    wait_child();
    return 0;
}

/*
 * The holder of a lock for which this process waits is killed. If `left`, the holder locked through
 * a descriptor inherited from this process, which has closed its own copy.
 */
static int holder_ends(bool by_flock, bool left)
{
    int ready[2];
    make_lock_file();
    CHECK(pipe(ready) == 0);
    wait_by = by_flock ? wait_flock : wait_range;
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int fd = left ? fds[1] : open(lock_path, O_RDWR | O_CLOEXEC);
        if (by_flock)
            CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
        else
            set_lock(fd, F_SETLK, F_WRLCK, 0, 0);
        CHECK(write(ready[1], &byte, 1) == 1);
        until_it_waits();
        if (!by_flock) /* the part for which the other process does not wait */
            set_lock(fd, F_SETLK, F_UNLCK, 0, 5);
        say_wakes();
        CHECK(raise(SIGKILL) == 0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    CHECK(!left || close(fds[1]) == 0);
    printf("%d\n", (int)child);
    (void)fflush(stdout);
    wait_here();
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}

static HERE void execute_here(char *path, const char *program)
{
    char *arguments[] = {path, (char *)(uintptr_t)program, NULL};
    (void)execv(path, arguments);
    __asm__ volatile("" ::: "memory");
}

/* What the holder of a lock executes in its place, by program name. If `kept`, the program is
 * missing. */
static const struct execution {
    const char *name;
    const char *program;
    int flags; /* of the open of the lock's file */
    bool by_flock, kept;
} executions[] = {
    {"flock-executes", "ends", O_CLOEXEC, true, false},
    {"flock-executes-long", "ends-late", O_CLOEXEC, true, false},
    {"flock-passed", "ends-late", 0, true, false},
    {"flock-kept", "ends", O_CLOEXEC, true, true},
    {"range-executes", "ends", O_CLOEXEC, false, false},
};

static const char *next_program;

static void wake_execute(void)
{
    execute_here("/proc/self/exe", next_program);
}

/*
 * The holder of a lock for which this process waits executes another program, which closes the
 * lock's descriptor unless it is passed on, and ends at once or later. If `kept`, there is no such
 * program, and the holder is killed.
 */
static int holder_executes(const struct execution *execution)
{
    int ready[2];
    make_lock_file();
    CHECK(pipe(ready) == 0);
    wait_by = execution->by_flock ? wait_flock : wait_range;
    wake_by = wake_execute;
    next_program = execution->program;
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        int fd = open(lock_path, O_RDWR | execution->flags);
        if (execution->by_flock)
            CHECK(fd >= 0 && flock(fd, LOCK_EX) == 0);
        else
            set_lock(fd, F_SETLK, F_WRLCK, 0, 0);
        CHECK(write(ready[1], &byte, 1) == 1);
        until_it_waits();
        if (!execution->kept)
            wake_here();
        say_wakes();
        execute_here("/nonexistent/program", "");
        CHECK(raise(SIGKILL) == 0);
    }
    CHECK(read(ready[0], &byte, 1) == 1);
    printf("%d\n", (int)child);
    (void)fflush(stdout);
    wait_here();
    CHECK(waitpid(child, NULL, 0) == child);
    return 0;
}

static int one_side(bool reads)
{
    fds[0] = STDIN_FILENO;
    fds[1] = STDOUT_FILENO;
    wait_by = wait_read;
    wake_by = wake_write;
    if (reads) {
        wait_here();
        return 0;
    }
    until_it_waits();
    wake_here();
    return 0;
}

int main(int argc, char **argv)
{
    target = getpid();
    recorder = getppid();
    make_turn(-1);
    looked = argc > 2 && strcmp(argv[argc - 1], "looked") == 0;
    argc -= looked;
    bool forks = argc == 3 && strcmp(argv[1], "processes") == 0;
    argv += forks;
    forked = argc == 3 && strcmp(argv[1], "forked") == 0;
    argv += forked;
    if (argc == 2 && strcmp(argv[1], "others") == 0)
        return others();
    if (argc == 2 && strcmp(argv[1], "alarmed") == 0)
        return alarmed();
    for (size_t i = 0; argc == 2 && i < sizeof child_waits / sizeof child_waits[0]; i++) {
        if (strcmp(child_waits[i].name, argv[1]) == 0)
            return parent_of(i);
    }
    if (argc == 2 && strcmp(argv[1], "flock-killed") == 0)
        return holder_ends(true, false);
    if (argc == 2 && strcmp(argv[1], "flock-left") == 0)
        return holder_ends(true, true);
    if (argc == 2 && strcmp(argv[1], "range-killed") == 0)
        return holder_ends(false, false);
    for (size_t i = 0; argc == 2 && i < sizeof executions / sizeof executions[0]; i++) {
        if (strcmp(executions[i].name, argv[1]) == 0)
            return holder_executes(&executions[i]);
    }
    if (argc == 2 && strcmp(argv[1], "ends") == 0)
        return 0;
    if (argc == 2 && strcmp(argv[1], "ends-late") == 0)
        return moment(300), 0;
    if (argc == 3 && (strcmp(argv[1], "reads") == 0 || strcmp(argv[1], "writes") == 0)) {
        make_turn(open(argv[2], O_RDWR | O_CLOEXEC));
        return one_side(argv[1][0] == 'r');
    }
    if (argc == 4 && strcmp(argv[1], "names") == 0)
        return names(argv + 2);
    if (argc == 2 && strcmp(argv[1], "several") == 0)
        return several();
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof cases[0]; i++) {
        if (strcmp(cases[i].name, argv[1]) != 0)
            continue;
        wait_by = cases[i].wait;
        wake_by = cases[i].wake;
        for (size_t j = 0; j < sizeof endings / sizeof endings[0]; j++) {
            if (strcmp(endings[j].name, argv[1]) == 0)
                end_by = endings[j].end;
        }
        cases[i].make();
        if (forks)
            return processes();
        let_in();
        return 0;
    }
    return 2;
}
