/*
 * Two threads that take two locks in opposite order and deadlock in every run. With "wait", main
 * waits for them. With "mutex", "rwlock", "flock" or "range" they are in two processes, and use
 * locks of that kind; if "held" follows, one thread holds the first lock, and the other waits for
 * it. With "private held" the other thread waits for a mutex of its own process at the same
 * address, held by its main thread. The processes print their PIDs and run until they are killed.
 * With "ended", one thread ends while it holds the lock for which the other waits. With "spin", the
 * locks are spin locks side by side.
 */
#include "asleep.h"
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t a_mu = PTHREAD_MUTEX_INITIALIZER, b_mu = PTHREAD_MUTEX_INITIALIZER;
/* To count as a deadlock, waits must last at least 1 ms. */
enum { HOLD_US = 2000 };

/* How many threads have their first lock. They do not sleep until both have: a sleeping thread
 * waits for its second lock. */
static int own_ready, *ready = &own_ready;
static pid_t tids[2];

static pthread_spinlock_t spins[2];

static void lock_spin(int which)
{
    pthread_spin_lock(&spins[which]);
}

static void lock_own(int which)
{
    pthread_mutex_lock(which ? &b_mu : &a_mu);
}

/* MARK: In two processes */

static struct shared {
    pthread_mutex_t mutexes[2];
    pthread_rwlock_t rwlocks[2];
    int ready;
} * shared;

static int shared_fd, files[2];

/* The address differs in each process. */
static void map_shared(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, shared_fd, 0);
    CHECK(shared != MAP_FAILED);
    ready = &shared->ready;
}

static void open_files(void)
{
    for (int i = 0; i < 2; i++) {
        char name[64];
        snprintf(name, sizeof name, "%c.lock", "ab"[i]);
        files[i] = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        CHECK(files[i] >= 0);
    }
}

static void make_shared(void)
{
    pthread_mutexattr_t mutexes;
    pthread_rwlockattr_t rwlocks;
    shared_fd = memfd_create("shared", MFD_CLOEXEC);
    CHECK(shared_fd >= 0 && ftruncate(shared_fd, sizeof *shared) == 0);
    map_shared();
    CHECK(pthread_mutexattr_init(&mutexes) == 0 && pthread_mutexattr_setpshared(&mutexes, 1) == 0);
    CHECK(pthread_rwlockattr_init(&rwlocks) == 0 &&
          pthread_rwlockattr_setpshared(&rwlocks, 1) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_mutex_init(&shared->mutexes[i], &mutexes) == 0);
        CHECK(pthread_rwlock_init(&shared->rwlocks[i], &rwlocks) == 0);
    }
}

static void lock_mutex(int which)
{
    pthread_mutex_lock(&shared->mutexes[which]);
}

/* A separate function, so that the second lock is taken at another place than the first. */
static void lock_second_mutex(int which)
{
    pthread_mutex_lock(&shared->mutexes[which]);
}

static void lock_rwlock(int which)
{
    pthread_rwlock_wrlock(&shared->rwlocks[which]);
}

static void lock_second_rwlock(int which)
{
    pthread_rwlock_wrlock(&shared->rwlocks[which]);
}

static void lock_file(int which)
{
    CHECK(flock(files[which], LOCK_EX) == 0);
}

/* A lock of the open file description: for locks of processes, the kernel would detect the
 * deadlock. */
static void lock_range(int which)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    CHECK(fcntl(files[which], F_OFD_SETLKW, &all) == 0);
}

static const struct kind {
    const char *name;
    void (*lock)(int which);
    void (*second)(int which); /* for a thread that has the other one */
} kinds[] = {
    {"own", lock_own, lock_own},
    {"mutex", lock_mutex, lock_second_mutex},
    {"rwlock", lock_rwlock, lock_second_rwlock},
    {"flock", lock_file, lock_file},
    {"range", lock_range, lock_range},
    {"private", lock_own, lock_own},
};

/* MARK: The threads */

static const struct kind *kind = &kinds[0];
static bool only_held;

static void meet(void)
{
    __atomic_add_fetch(ready, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
}

static void *forward(void *unused)
{
    kind->lock(0);
    tids[0] = gettid();
    meet();
    if (only_held)
        pause();
    kind->second(1);
    return unused;
}

static void *backward(void *unused)
{
    if (!only_held)
        kind->lock(1);
    tids[1] = gettid();
    meet();
    kind->second(0);
    return unused;
}

static void begin(void *(*routine)(void *), pthread_t *thread)
{
    CHECK(pthread_create(thread, NULL, routine, NULL) == 0);
}

static void in_two_processes(void)
{
    pthread_t thread;
    pid_t child;
    make_shared();
    child = fork();
    CHECK(child >= 0);
    map_shared();
    open_files();
    CHECK(signal(SIGTERM, SIG_IGN) != SIG_ERR);
    if (!child && kind->lock == lock_own)
        kind->lock(0);
    begin(child ? forward : backward, &thread);
    if (child) {
        printf("%d %d\n", (int)getpid(), (int)child);
        fflush(stdout);
    }
    while (true)
        pause();
}

static void *ends(void *unused)
{
    lock_own(0);
    meet();
    until_asleep(&tids[1]);
    return unused;
}

/* A wait must last at least 100 ms to be a finding. */
enum { FINDING_US = 200000 };

static void end_with_lock(void)
{
    pthread_t threads[2];
    only_held = true;
    begin(ends, &threads[0]);
    begin(backward, &threads[1]);
    CHECK(pthread_join(threads[0], NULL) == 0);
    usleep(FINDING_US);
    _exit(0);
}

static long cpu_us(pthread_t thread)
{
    clockid_t clock;
    struct timespec now;
    CHECK(pthread_getcpuclockid(thread, &clock) == 0 && clock_gettime(clock, &now) == 0);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Once both threads have met, they only spin. */
static void spin(void)
{
    pthread_t threads[2];
    long since[2];
    kind = &(const struct kind){"spin", lock_spin, lock_spin};
    for (int i = 0; i < 2; i++)
        CHECK(pthread_spin_init(&spins[i], PTHREAD_PROCESS_PRIVATE) == 0);
    begin(forward, &threads[0]);
    begin(backward, &threads[1]);
    while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
    for (int i = 0; i < 2; i++)
        since[i] = cpu_us(threads[i]);
    for (int i = 0; i < 2; i++)
        while (cpu_us(threads[i]) < since[i] + 2 * HOLD_US)
            usleep(HOLD_US);
    _exit(0);
}

int main(int argc, char **argv)
{
    pthread_t threads[2];
    if (argc > 1 && strcmp(argv[1], "spin") == 0)
        spin();
    if (argc > 1 && strcmp(argv[1], "ended") == 0)
        end_with_lock();
    for (size_t i = 1; argc > 1 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(argv[1], kinds[i].name) == 0)
            kind = &kinds[i];
    }
    only_held = argc > 2;
    if (kind != &kinds[0])
        in_two_processes();
    begin(forward, &threads[0]);
    begin(backward, &threads[1]);
    if (argc > 1)
        pthread_join(threads[0], NULL);
    while (__atomic_load_n(ready, __ATOMIC_ACQUIRE) < 2)
        sched_yield();
    for (int i = 0; i < 2; i++)
        until_asleep(&tids[i]);
    usleep(HOLD_US);
    _exit(0);
}
