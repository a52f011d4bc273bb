/*
 * Prints the result of calls and their effect on errno, one line per call: with the recorder it
 * must be the same as without.
 *
 * errno is 77 before each call; the calling thread holds the lock or does not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SHOW(call)                                                                                 \
    do {                                                                                           \
        long result_;                                                                              \
        errno = 77;                                                                                \
        result_ = (long)(call);                                                                    \
        printf("%s: %ld, errno %d\n", #call, result_, errno);                                      \
    } while (0)

static struct timespec soon(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    time.tv_nsec += 3000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

static const struct timespec wrong_time = {0, 2000000000}, past = {1, 0};

/* Runs the routine in another thread, and waits for its end. */
static void elsewhere(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, routine, argument) != 0)
        exit(99);
    pthread_join(thread, NULL);
}

/* MARK: Mutexes of all kinds */

static void *try_mutex(void *mutex_)
{
    pthread_mutex_t *mutex = mutex_;
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SHOW(pthread_mutex_trylock(mutex));
    SHOW(pthread_mutex_timedlock(mutex, &real));
    SHOW(pthread_mutex_timedlock(mutex, &wrong_time));
    SHOW(pthread_mutex_timedlock(mutex, &past));
    SHOW(pthread_mutex_clocklock(mutex, CLOCK_MONOTONIC, &mono));
    SHOW(pthread_mutex_clocklock(mutex, 12345, &past));
    return NULL;
}

static void *unlock_mutex(void *mutex)
{
    SHOW(pthread_mutex_unlock(mutex));
    return NULL;
}

static void *lock_mutex(void *mutex)
{
    SHOW(pthread_mutex_lock(mutex));
    return NULL;
}

static void *lock_and_unlock(void *mutex)
{
    SHOW(pthread_mutex_lock(mutex));
    SHOW(pthread_mutex_unlock(mutex));
    return NULL;
}

static void show_mutex(const char *name, int type, int protocol, int robust)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    struct timespec real;
    printf("-- %s\n", name);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    SHOW(pthread_mutex_init(&mutex, &attributes));
    SHOW(pthread_mutex_clocklock(&mutex, 12345, &past));
    SHOW(pthread_mutex_timedlock(&mutex, &wrong_time));
    SHOW(pthread_mutex_unlock(&mutex));
    SHOW(pthread_mutex_lock(&mutex));
    if (type != PTHREAD_MUTEX_NORMAL) {
        SHOW(pthread_mutex_lock(&mutex));
        real = soon(CLOCK_REALTIME);
        SHOW(pthread_mutex_timedlock(&mutex, &real));
    }
    SHOW(pthread_mutex_trylock(&mutex));
    elsewhere(try_mutex, &mutex);
    if (type == PTHREAD_MUTEX_ERRORCHECK || type == PTHREAD_MUTEX_RECURSIVE)
        elsewhere(unlock_mutex, &mutex);
    SHOW(pthread_mutex_destroy(&mutex));
    SHOW(pthread_mutex_unlock(&mutex));
    if (type == PTHREAD_MUTEX_RECURSIVE) {
        SHOW(pthread_mutex_trylock(&mutex));
        for (int i = 0; i < 4; i++)
            SHOW(pthread_mutex_unlock(&mutex));
    }
    if (type == PTHREAD_MUTEX_ERRORCHECK)
        SHOW(pthread_mutex_unlock(&mutex));
    elsewhere(lock_and_unlock, &mutex);
    if (robust == PTHREAD_MUTEX_ROBUST) {
        elsewhere(lock_mutex, &mutex);
        SHOW(pthread_mutex_trylock(&mutex));
        SHOW(pthread_mutex_consistent(&mutex));
        SHOW(pthread_mutex_unlock(&mutex));
        elsewhere(lock_mutex, &mutex);
        SHOW(pthread_mutex_lock(&mutex));
        SHOW(pthread_mutex_unlock(&mutex));
        SHOW(pthread_mutex_lock(&mutex));
        SHOW(pthread_mutex_trylock(&mutex));
    }
    SHOW(pthread_mutex_destroy(&mutex));
}

static void mutexes(void)
{
    static const struct {
        const char *name;
        int value;
    } types[] = {{"normal", PTHREAD_MUTEX_NORMAL},
                 {"recursive", PTHREAD_MUTEX_RECURSIVE},
                 {"errorcheck", PTHREAD_MUTEX_ERRORCHECK},
                 {"adaptive", PTHREAD_MUTEX_ADAPTIVE_NP}},
      protocols[] = {{"", PTHREAD_PRIO_NONE},
                     {", inherits priority", PTHREAD_PRIO_INHERIT},
                     {", protects priority", PTHREAD_PRIO_PROTECT}},
      robusts[] = {{"", PTHREAD_MUTEX_STALLED}, {", robust", PTHREAD_MUTEX_ROBUST}};
    char name[100];
    for (int t = 0; t < 4; t++) {
        for (int p = 0; p < 3; p++) {
            for (int r = 0; r < 2; r++) {
                /* An adaptive mutex locked again by its owner hangs like a normal one. Robust
                 * mutexes cannot protect priority. */
                if (types[t].value == PTHREAD_MUTEX_ADAPTIVE_NP || (p == 2 && r == 1))
                    continue;
                snprintf(name, sizeof name, "%s%s%s", types[t].name, protocols[p].name,
                         robusts[r].name);
                show_mutex(name, types[t].value, protocols[p].value, robusts[r].value);
            }
        }
    }
}

/* MARK: A robust mutex whose owner dies while another thread waits */

static pthread_mutex_t orphan;
static sem_t orphan_held;

static void *dies_with_it(void *none)
{
    pthread_mutex_lock(&orphan);
    sem_post(&orphan_held);
    usleep(20000);
    return none;
}

static void orphans(void)
{
    pthread_mutexattr_t attributes;
    pthread_t thread;
    sem_init(&orphan_held, 0, 0);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&orphan, &attributes);
    pthread_create(&thread, NULL, dies_with_it, NULL);
    sem_wait(&orphan_held);
    SHOW(pthread_mutex_lock(&orphan));
    SHOW(pthread_mutex_consistent(&orphan));
    SHOW(pthread_mutex_unlock(&orphan));
    pthread_join(thread, NULL);
}

/* MARK: Reader-writer locks */

static void *try_rwlock(void *lock_)
{
    pthread_rwlock_t *lock = lock_;
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SHOW(pthread_rwlock_tryrdlock(lock));
    SHOW(pthread_rwlock_trywrlock(lock));
    SHOW(pthread_rwlock_timedrdlock(lock, &real));
    SHOW(pthread_rwlock_timedwrlock(lock, &real));
    SHOW(pthread_rwlock_timedrdlock(lock, &wrong_time));
    SHOW(pthread_rwlock_timedwrlock(lock, &wrong_time));
    SHOW(pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &mono));
    SHOW(pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &mono));
    SHOW(pthread_rwlock_clockrdlock(lock, 12345, &mono));
    SHOW(pthread_rwlock_clockwrlock(lock, 12345, &mono));
    return NULL;
}

static void rwlocks(void)
{
    pthread_rwlock_t lock;
    SHOW(pthread_rwlock_init(&lock, NULL));
    SHOW(pthread_rwlock_wrlock(&lock));
    SHOW(pthread_rwlock_wrlock(&lock));
    SHOW(pthread_rwlock_rdlock(&lock));
    SHOW(pthread_rwlock_tryrdlock(&lock));
    SHOW(pthread_rwlock_trywrlock(&lock));
    elsewhere(try_rwlock, &lock);
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_timedrdlock(&lock, &wrong_time));
    SHOW(pthread_rwlock_timedwrlock(&lock, &wrong_time));
    SHOW(pthread_rwlock_clockrdlock(&lock, 12345, &past));
    SHOW(pthread_rwlock_clockwrlock(&lock, 12345, &past));
    SHOW(pthread_rwlock_timedrdlock(&lock, &past));
    SHOW(pthread_rwlock_rdlock(&lock));
    SHOW(pthread_rwlock_trywrlock(&lock));
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_trywrlock(&lock));
    SHOW(pthread_rwlock_unlock(&lock));
    SHOW(pthread_rwlock_destroy(&lock));
}

/* MARK: Conditions, semaphores, barriers, once, joins */

static void conditions(void)
{
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mutex, &attributes);
    SHOW(pthread_cond_wait(&condition, &mutex));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &real));
    SHOW(pthread_mutex_lock(&mutex));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &real));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &past));
    SHOW(pthread_cond_timedwait(&condition, &mutex, &wrong_time));
    SHOW(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &mono));
    SHOW(pthread_cond_clockwait(&condition, &mutex, 12345, &mono));
    SHOW(pthread_cond_signal(&condition));
    SHOW(pthread_cond_broadcast(&condition));
    SHOW(pthread_mutex_unlock(&mutex));
    SHOW(pthread_mutex_unlock(&mutex));
}

static void on_signal(int number)
{
    (void)number;
}

static pthread_t interrupted;
static volatile int over;

static void *interrupts(void *none)
{
    while (!over) {
        usleep(5000);
        pthread_kill(interrupted, SIGUSR1);
    }
    return none;
}

static void semaphores(void)
{
    sem_t semaphore;
    struct timespec real = soon(CLOCK_REALTIME), mono = soon(CLOCK_MONOTONIC);
    SHOW(sem_init(&semaphore, 0, 1));
    SHOW(sem_wait(&semaphore));
    SHOW(sem_trywait(&semaphore));
    SHOW(sem_timedwait(&semaphore, &real));
    SHOW(sem_timedwait(&semaphore, &past));
    SHOW(sem_timedwait(&semaphore, &wrong_time));
    SHOW(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &mono));
    SHOW(sem_clockwait(&semaphore, 12345, &mono));
    SHOW(sem_post(&semaphore));
    SHOW(sem_timedwait(&semaphore, &wrong_time));
    SHOW(sem_clockwait(&semaphore, 12345, &past));
    SHOW(sem_timedwait(&semaphore, &past));
    SHOW(sem_init(&semaphore, 0, SEM_VALUE_MAX));
    SHOW(sem_post(&semaphore));
}

/* Calls that a signal interrupts and that are not restarted. */
static void interruptions(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct timespec hour = {3600, 0}, later = {time(NULL) + 3600, 0};
    struct pollfd nothing = {-1, 0, 0};
    pthread_t thread;
    sem_t semaphore;
    fd_set none;
    char byte;
    int ends[2];
    sigaction(SIGUSR1, &action, NULL);
    sem_init(&semaphore, 0, 0);
    interrupted = pthread_self();
    FD_ZERO(&none);
    if (pipe(ends) != 0)
        exit(99);
    pthread_create(&thread, NULL, interrupts, NULL);
    SHOW(sem_wait(&semaphore));
    SHOW(sem_timedwait(&semaphore, &later));
    SHOW(sem_clockwait(&semaphore, CLOCK_REALTIME, &later));
    SHOW(nanosleep(&hour, NULL));
    SHOW(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &later, NULL));
    SHOW(usleep(900000000));
    SHOW(sleep(3600) > 3500);
    SHOW(pause());
    SHOW(poll(&nothing, 1, 1000000));
    SHOW(ppoll(&nothing, 1, &hour, NULL));
    SHOW(select(0, &none, NULL, NULL, &(struct timeval){3600, 0}));
    SHOW(pselect(0, &none, NULL, NULL, &hour, NULL));
    SHOW(read(ends[0], &byte, 1));
    over = 1;
    pthread_join(thread, NULL);
}

static pthread_barrier_t barrier;
static _Atomic int serial, others;

static void *arrives(void *none)
{
    int status = pthread_barrier_wait(&barrier);
    serial += status == PTHREAD_BARRIER_SERIAL_THREAD;
    others += status == 0;
    return none;
}

static int times_once;

static void once_routine(void)
{
    times_once++;
}

static void *returns(void *value)
{
    return value;
}

static void threads(void)
{
    pthread_once_t control = PTHREAD_ONCE_INIT;
    pthread_t all[4], self = pthread_self();
    pthread_attr_t attributes;
    struct timespec real = soon(CLOCK_REALTIME);
    void *value = NULL;
    pthread_barrier_init(&barrier, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, arrives, NULL);
    for (int i = 0; i < 4; i++)
        SHOW(pthread_join(all[i], NULL));
    printf("serial %d, others %d\n", serial, others);
    SHOW(pthread_once(&control, once_routine));
    SHOW(pthread_once(&control, once_routine));
    SHOW(times_once);
    SHOW(pthread_join(self, NULL));
    SHOW(pthread_timedjoin_np(self, NULL, &real));
    pthread_create(&all[0], NULL, returns, &all);
    SHOW(pthread_join(all[0], &value));
    SHOW(value == &all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    SHOW(pthread_create(&all[0], &attributes, returns, NULL));
    SHOW(pthread_setname_np(self, "a name that is too long"));
    SHOW(pthread_setname_np(self, "short"));
}

/* MARK: C11 */

static int c11_thread(void *argument)
{
    struct timespec real = soon(CLOCK_REALTIME);
    SHOW(mtx_trylock(argument));
    SHOW(mtx_timedlock(argument, &real));
    return 5;
}

static void c11(void)
{
    mtx_t mutex;
    cnd_t condition;
    thrd_t thread;
    once_flag flag = ONCE_FLAG_INIT;
    struct timespec real = soon(CLOCK_REALTIME);
    int result = 0;
    SHOW(mtx_init(&mutex, mtx_timed | mtx_recursive));
    SHOW(cnd_init(&condition));
    SHOW(mtx_lock(&mutex));
    SHOW(mtx_lock(&mutex));
    thrd_create(&thread, c11_thread, &mutex);
    SHOW(thrd_join(thread, &result));
    SHOW(result);
    SHOW(mtx_unlock(&mutex));
    SHOW(cnd_timedwait(&condition, &mutex, &real));
    SHOW(cnd_signal(&condition));
    SHOW(cnd_broadcast(&condition));
    SHOW(mtx_unlock(&mutex));
    SHOW((call_once(&flag, once_routine), 0));
    SHOW(thrd_sleep(&(struct timespec){0, 1000}, NULL));
}

/* MARK: Descriptors and children */

static void descriptors(void)
{
    struct pollfd bad = {1000, POLLIN, 0};
    char bytes[4] = "abc";
    int ends[2], pair[2], status = 0;
    if (pipe(ends) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        exit(99);
    SHOW(read(1000, bytes, 1));
    SHOW(write(1000, bytes, 1));
    SHOW(read(ends[0], NULL, 0));
    SHOW(write(ends[1], bytes, 3));
    SHOW(read(ends[0], bytes, 4));
    SHOW(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    SHOW(read(ends[0], bytes, 4));
    SHOW(close(ends[1]));
    SHOW(read(ends[0], bytes, 4));
    SHOW(send(pair[0], bytes, 2, 0));
    SHOW(recv(pair[1], bytes, 4, MSG_DONTWAIT));
    SHOW(recv(pair[1], bytes, 4, MSG_DONTWAIT));
    SHOW(accept(pair[0], NULL, NULL));
    SHOW(connect(pair[0], NULL, 0));
    SHOW(poll(&bad, 1, 0));
    SHOW(bad.revents);
    SHOW(poll(NULL, 0, 5));
    SHOW(fsync(ends[0]));
    SHOW(waitpid(-1, &status, 0));
    SHOW(wait(NULL));
    SHOW(system("exit 3"));
    SHOW(system(NULL) != 0);
    SHOW(nanosleep(&wrong_time, NULL));
    SHOW(clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong_time, NULL));
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    mutexes();
    orphans();
    rwlocks();
    conditions();
    semaphores();
    interruptions();
    threads();
    c11();
    descriptors();
    return 0;
}
