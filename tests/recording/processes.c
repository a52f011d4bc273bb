/*
 * Waits between two processes with one thread each. The child prints nothing; the parent prints
 * both PIDs when the child runs. It runs until it is killed.
 *
 * usage: processes MODE
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static pthread_rwlock_t a_lock = PTHREAD_RWLOCK_INITIALIZER;

static struct shared {
    pthread_mutex_t mutexes[2];
    pthread_barrier_t both;
} * shared;

static const uint64_t no_signals;
static int to_child[2], to_parent[2], pair[2], files[2];
static pid_t child;

static void make_shared(void)
{
    pthread_mutexattr_t mutexes;
    pthread_barrierattr_t barriers;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    CHECK(pthread_mutexattr_init(&mutexes) == 0 && pthread_mutexattr_setpshared(&mutexes, 1) == 0);
    CHECK(pthread_barrierattr_init(&barriers) == 0);
    CHECK(pthread_barrierattr_setpshared(&barriers, 1) == 0);
    CHECK(pthread_barrier_init(&shared->both, &barriers, 2) == 0);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_mutex_init(&shared->mutexes[i], &mutexes) == 0);
}

/* A server listens with IPv6, so that it has the client's address in IPv6 form. */
static void make_mapped_pair(void)
{
    struct sockaddr_in6 server = {.sin6_family = AF_INET6};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof server;
    int listening = socket(AF_INET6, SOCK_STREAM, 0);
    CHECK(inet_pton(AF_INET6, "::ffff:127.0.0.1", &server.sin6_addr) == 1);
    CHECK(bind(listening, (struct sockaddr *)&server, size) == 0 && listen(listening, 1) == 0);
    CHECK(getsockname(listening, (struct sockaddr *)&server, &size) == 0);
    to.sin_port = server.sin6_port;
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(connect(pair[0], (struct sockaddr *)&to, sizeof to) == 0);
    pair[1] = accept(listening, NULL, NULL);
    CHECK(pair[1] >= 0);
    close(listening);
}

static void read_byte(int fd)
{
    char byte;
    CHECK(read(fd, &byte, 1) == 1);
}

static void fill(int fd)
{
    static const char bytes[1 << 16];
    while (1)
        CHECK(write(fd, bytes, sizeof bytes) > 0);
}

/* MARK: The modes */

/* Each process has both ends of both pipes. */
static void pipes(int self)
{
    read_byte(self ? to_child[0] : to_parent[0]);
}

static void sockets(int self)
{
    close(pair[!self]);
    read_byte(pair[self]);
}

/* The parent waits for the end of a child that writes to a pipe that is never read. */
static void full(int self)
{
    close(to_parent[!self]);
    if (self)
        fill(to_parent[1]);
    CHECK(waitpid(child, NULL, 0) == child);
}

/* The reader itself has the write end, so the pipe never ends. */
static void own(int self)
{
    if (self)
        _exit(0);
    read_byte(to_parent[0]);
}

static void mutexes(int self)
{
    pthread_mutex_lock(&shared->mutexes[self]);
    pthread_barrier_wait(&shared->both);
    pthread_mutex_lock(&shared->mutexes[!self]);
}

static void file_locks(int self)
{
    CHECK(flock(files[self], LOCK_EX) == 0);
    pthread_barrier_wait(&shared->both);
    CHECK(flock(files[!self], LOCK_EX) == 0);
}

/* The child only holds the mutex. */
static void held(int self)
{
    if (self)
        pthread_mutex_lock(&shared->mutexes[0]);
    pthread_barrier_wait(&shared->both);
    if (self)
        pause();
    pthread_mutex_lock(&shared->mutexes[0]);
}

/* The child waits for the parent, which waits for a signal: no cycle. */
static void open_end(int self)
{
    if (!self)
        pause();
    read_byte(to_child[0]);
}

/* Both wait, one of them with a time limit: no cycle. */
static void limited(int self)
{
    struct timeval limit = {100000, 0};
    if (self)
        CHECK(setsockopt(pair[1], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0);
    sockets(self);
}

/* Like pipes, but another thread in the child could write. */
static void *wait_for_signal(void *unused)
{
    pause();
    return unused;
}

static void two_threads(int self)
{
    pthread_t thread;
    if (self)
        CHECK(pthread_create(&thread, NULL, wait_for_signal, NULL) == 0);
    pipes(self);
}

static int pause_only(void *unused)
{
    (void)unused;
    while (syscall(SYS_rt_sigsuspend, &no_signals, sizeof no_signals) != 0)
        continue;
    return 0;
}

/* Like two_threads, but unknown to the C library. */
static void raw_thread(int self)
{
    static char stack[1 << 16] __attribute__((aligned(16)));
    const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    if (self)
        CHECK(clone(pause_only, stack + sizeof stack, flags, NULL) > 0);
    pipes(self);
}

/* Like own, but the main thread of the child has ended, and another thread, which could write,
 * lives on. */
static void no_leader(int self)
{
    pthread_t thread;
    if (self) {
        CHECK(pthread_create(&thread, NULL, wait_for_signal, NULL) == 0);
        pthread_exit(NULL);
    }
    read_byte(to_parent[0]);
}

static void *write_lock(void *unused)
{
    pthread_rwlock_wrlock(&a_lock);
    return unused;
}

/* The parent holds a lock for reading, and another of its threads wants to write. */
static void reader(int self)
{
    pthread_t thread;
    if (self)
        _exit(0);
    CHECK(pthread_rwlock_rdlock(&a_lock) == 0);
    CHECK(pthread_create(&thread, NULL, write_lock, NULL) == 0);
    pause();
}

static pthread_mutex_t of_writer = PTHREAD_MUTEX_INITIALIZER;
static int has_mutex;

static void *lock_both(void *unused)
{
    pthread_mutex_lock(&of_writer);
    __atomic_store_n(&has_mutex, 1, __ATOMIC_RELEASE);
    return write_lock(unused);
}

/* The same, but the reader waits for a mutex of the writer. */
static void reader_circle(int self)
{
    pthread_t thread;
    if (self)
        _exit(0);
    CHECK(pthread_rwlock_rdlock(&a_lock) == 0);
    CHECK(pthread_create(&thread, NULL, lock_both, NULL) == 0);
    while (!__atomic_load_n(&has_mutex, __ATOMIC_ACQUIRE))
        continue;
    pthread_mutex_lock(&of_writer);
}

/* MARK: Nothing waits for long: each wakes the other */

static void rally(int in, int out, int first)
{
    if (first)
        CHECK(write(out, "", 1) == 1);
    while (1) {
        read_byte(in);
        CHECK(write(out, "", 1) == 1);
    }
}

static void rally_pipes(int self)
{
    rally(self ? to_child[0] : to_parent[0], self ? to_parent[1] : to_child[1], self);
}

static void rally_sockets(int self)
{
    close(pair[!self]);
    rally(pair[self], pair[self], self);
}

static void *rally_other(void *unused)
{
    rally_pipes(1);
    return unused;
}

/* Two threads of the parent; the child has ended. */
static void rally_threads(int self)
{
    pthread_t thread;
    if (self)
        _exit(0);
    CHECK(pthread_create(&thread, NULL, rally_other, NULL) == 0);
    rally_pipes(0);
}

static sem_t turns[2];

static void *take_turns(void *self)
{
    size_t own = self != NULL;
    while (1)
        CHECK(sem_wait(&turns[own]) == 0 && sem_post(&turns[!own]) == 0);
    return self;
}

static void rally_semaphores(int self)
{
    pthread_t thread;
    if (self)
        _exit(0);
    CHECK(sem_init(&turns[0], 0, 1) == 0 && sem_init(&turns[1], 0, 0) == 0);
    CHECK(pthread_create(&thread, NULL, take_turns, turns) == 0);
    take_turns(NULL);
}

/* A write that has written some of its bytes and waits for a reader. */
static void partial(int self)
{
    static char bytes[1 << 20];
    if (self)
        _exit(0);
    CHECK(write(to_child[1], bytes, sizeof bytes) == sizeof bytes);
    puts("whole");
    fflush(stdout);
    pause();
}

static const struct {
    const char *name;
    void (*run)(int self);
} modes[] = {
    {"pipes", pipes},
    {"sockets", sockets},
    {"mapped_sockets", sockets},
    {"full", full},
    {"own", own},
    {"mutexes", mutexes},
    {"file_locks", file_locks},
    {"held", held},
    {"open_end", open_end},
    {"limited", limited},
    {"two_threads", two_threads},
    {"raw_thread", raw_thread},
    {"no_leader", no_leader},
    {"rally_pipes", rally_pipes},
    {"rally_sockets", rally_sockets},
    {"rally_threads", rally_threads},
    {"rally_semaphores", rally_semaphores},
    {"partial", partial},
    {"reader", reader},
    {"reader_circle", reader_circle},
};

/* Each process opens the files: a child would share its parent's open file description. */
static void open_files(void)
{
    for (int i = 0; i < 2; i++) {
        files[i] = open(i ? "b.lock" : "a.lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(files[i] >= 0);
    }
}

int main(int argc, char **argv)
{
    size_t mode = 0;
    CHECK(argc == 2);
    while (strcmp(modes[mode].name, argv[1]) != 0)
        CHECK(++mode < sizeof modes / sizeof *modes);
    CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
    if (strcmp(argv[1], "mapped_sockets") == 0)
        make_mapped_pair();
    else
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    make_shared();
    child = fork();
    CHECK(child >= 0);
    open_files();
    if (child) {
        printf("%d\n", (int)child);
        fflush(stdout);
    } else {
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
    }
    modes[mode].run(child == 0);
    return 0;
}
