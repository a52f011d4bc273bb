/*
 * A thread for each object to wait for, named after it, and a child process. All wait until a byte
 * arrives on stdin; then each is woken and checks that its call succeeded, and the program ends
 * with status 0. If a call is interrupted it fails with EINTR, and the program ends with status 3.
 *
 * usage: stuck FILE     a file to lock
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static pthread_mutex_t a_mu = PTHREAD_MUTEX_INITIALIZER, pi_mu, *shared_mu;
static pthread_rwlock_t a_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t a_cond = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t cond_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t a_barrier;
static sem_t a_sem;
static int held[2], locked[2], bytes[2], connection[2], pair[2], semaphore;
static pid_t child;
static bool go;
static volatile bool spinning = true;
static pthread_t holder_thread;

static void *holder(void *unused)
{
    char byte;
    CHECK(pthread_mutex_lock(&a_mu) == 0 && pthread_mutex_lock(&pi_mu) == 0);
    CHECK(pthread_mutex_lock(shared_mu) == 0 && pthread_rwlock_wrlock(&a_lock) == 0);
    CHECK(write(locked[1], "", 1) == 1);
    CHECK(read(held[0], &byte, 1) == 0);
    CHECK(pthread_mutex_unlock(&a_mu) == 0 && pthread_mutex_unlock(&pi_mu) == 0);
    CHECK(pthread_mutex_unlock(shared_mu) == 0 && pthread_rwlock_unlock(&a_lock) == 0);
    return unused;
}

static void *mutex(void *unused)
{
    CHECK(pthread_mutex_lock(&a_mu) == 0 && pthread_mutex_unlock(&a_mu) == 0);
    return unused;
}

static void *timed(void *unused)
{
    struct timespec until;
    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += 3600;
    CHECK(pthread_mutex_timedlock(&a_mu, &until) == 0 && pthread_mutex_unlock(&a_mu) == 0);
    return unused;
}

static void *inheriting(void *unused)
{
    CHECK(pthread_mutex_lock(&pi_mu) == 0 && pthread_mutex_unlock(&pi_mu) == 0);
    return unused;
}

static void *reader(void *unused)
{
    CHECK(pthread_rwlock_rdlock(&a_lock) == 0 && pthread_rwlock_unlock(&a_lock) == 0);
    return unused;
}

static void *writer(void *unused)
{
    CHECK(pthread_rwlock_wrlock(&a_lock) == 0 && pthread_rwlock_unlock(&a_lock) == 0);
    return unused;
}

static void *condition(void *unused)
{
    CHECK(pthread_mutex_lock(&cond_mu) == 0);
    while (!go)
        CHECK(pthread_cond_wait(&a_cond, &cond_mu) == 0);
    CHECK(pthread_mutex_unlock(&cond_mu) == 0);
    return unused;
}

static void *semaphores(void *unused)
{
    CHECK(sem_wait(&a_sem) == 0);
    return unused;
}

static void *barrier(void *unused)
{
    CHECK(pthread_barrier_wait(&a_barrier) <= 0);
    return unused;
}

static void *joiner(void *unused)
{
    CHECK(pthread_join(holder_thread, NULL) == 0);
    return unused;
}

static void *pipes(void *unused)
{
    char byte;
    CHECK(read(bytes[0], &byte, 1) == 1);
    return unused;
}

static void *socket_reader(void *unused)
{
    char byte;
    CHECK(read(connection[0], &byte, 1) == 1);
    return unused;
}

static void *unix_reader(void *unused)
{
    char byte;
    CHECK(read(pair[0], &byte, 1) == 1);
    return unused;
}

static void *selector(void *unused)
{
    fd_set set;
    FD_ZERO(&set);
    FD_SET(held[0], &set);
    FD_SET(connection[0], &set);
    CHECK(select(FD_SETSIZE, &set, NULL, NULL, NULL) >= 1);
    return unused;
}

static void *poller(void *unused)
{
    struct pollfd one = {held[0], POLLIN, 0};
    CHECK(poll(&one, 1, -1) == 1);
    return unused;
}

static void *epoller(void *unused)
{
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, held[0], &event) == 0);
    CHECK(epoll_wait(set, &event, 1, -1) == 1);
    return unused;
}

static void *signals(void *unused)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(sigwaitinfo(&set, NULL) == SIGUSR1);
    return unused;
}

static void *sysv(void *unused)
{
    struct sembuf down = {0, -1, 0};
    CHECK(semop(semaphore, &down, 1) == 0);
    return unused;
}

static void *children(void *unused)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    return unused;
}

static void *locker(void *path)
{
    int own = open(path, O_RDWR);
    CHECK(flock(own, LOCK_EX) == 0);
    return path;
}

static void *sleeper(void *unused)
{
    sleep(100000);
    return unused;
}

static void *spinner(void *unused)
{
    while (spinning)
        continue;
    return unused;
}

/* The compiler does not know the sizes of these frames: only unwinding finds them. */
__attribute__((noinline)) static int deep(int depth)
{
    volatile char *room = __builtin_alloca(8 + (size_t)depth % 3);
    room[0] = 1;
    if (depth == 0)
        condition(NULL);
    return depth == 0 ? room[0] : deep(depth - 1) + room[0];
}

static void *recursion(void *unused)
{
    CHECK(deep(100) == 101);
    return unused;
}

static void make_connection(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, size) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &size) == 0);
    connection[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(connection[0], (struct sockaddr *)&address, size) == 0);
    connection[1] = accept(listener, NULL, NULL);
    CHECK(connection[1] >= 0);
}

static void make_locks(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0);
    CHECK(pthread_mutex_init(&pi_mu, &attributes) == 0);
    pthread_mutexattr_init(&attributes);
    CHECK(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
    shared_mu = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared_mu != MAP_FAILED && pthread_mutex_init(shared_mu, &attributes) == 0);
    CHECK(pthread_barrier_init(&a_barrier, NULL, 2) == 0 && sem_init(&a_sem, 0, 0) == 0);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    CHECK(semaphore >= 0);
}

/* The set outlives a killed program: the test reads here which set to remove. */
static void write_semaphore(const char *path)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "%d", semaphore) > 0 && fclose(file) == 0);
}

/* Locks the file, and waits for a lock held by its parent. */
static void run_child(const char *path, int ready)
{
    int own = open(path, O_RDWR);
    CHECK(flock(own, LOCK_EX) == 0 && write(ready, "", 1) == 1);
    CHECK(pthread_mutex_lock(shared_mu) == 0 && pthread_mutex_unlock(shared_mu) == 0);
    _exit(0);
}

static void start(const char *name, void *(*function)(void *), pthread_t *thread, void *argument)
{
    CHECK(pthread_create(thread, NULL, function, argument) == 0);
    CHECK(pthread_setname_np(*thread, name) == 0);
}

static void let_go(pthread_t signalled)
{
    struct sembuf up = {0, 1, 0};
    close(held[1]);
    CHECK(pthread_mutex_lock(&cond_mu) == 0);
    go = true;
    CHECK(pthread_cond_broadcast(&a_cond) == 0 && pthread_mutex_unlock(&cond_mu) == 0);
    CHECK(sem_post(&a_sem) == 0 && pthread_barrier_wait(&a_barrier) <= 0);
    CHECK(write(bytes[1], "", 1) == 1 && write(connection[1], "", 1) == 1);
    CHECK(write(pair[1], "", 1) == 1);
    CHECK(pthread_kill(signalled, SIGUSR1) == 0 && semop(semaphore, &up, 1) == 0);
    spinning = false;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void *(*function)(void *);
    } all[] = {{"mutex", mutex},          {"inheriting", inheriting}, {"reader", reader},
               {"writer", writer},        {"condition", condition},   {"semaphore", semaphores},
               {"barrier", barrier},      {"joiner", joiner},         {"pipe", pipes},
               {"socket", socket_reader}, {"poll", poller},           {"epoll", epoller},
               {"select", selector},      {"unix", unix_reader},      {"sysv", sysv},
               {"children", children},    {"locker", locker},         {"spinner", spinner},
               {"recursion", recursion},  {"timed", timed},           {"signals", signals},
               {"sleeper", sleeper}};
    enum { THREADS = sizeof all / sizeof *all };
    pthread_t threads[THREADS];
    int ready[2];
    char byte;
    sigset_t set;
    CHECK(argc == 2);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    CHECK(pipe(held) == 0 && pipe(locked) == 0 && pipe(bytes) == 0 && pipe(ready) == 0);
    make_locks();
    write_semaphore(argv[1]);
    child = fork();
    if (child == 0) {
        /* An open write end here would keep the parent's reads waiting. */
        close(held[1]);
        CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        CHECK(read(locked[0], &byte, 1) == 1);
        run_child(argv[1], ready[1]);
    }
    start("holder", holder, &holder_thread, NULL);
    CHECK(read(ready[0], &byte, 1) == 1);
    make_connection();
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    for (int i = 0; i < THREADS; i++)
        start(all[i].name, all[i].function, &threads[i], argv[1]);
    CHECK(read(STDIN_FILENO, &byte, 1) == 1);
    let_go(threads[THREADS - 2]);
    for (int i = 0; i < THREADS - 1; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(semctl(semaphore, 0, IPC_RMID) == 0);
    puts("good");
    return 0;
}
