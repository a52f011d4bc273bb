/*
 * A thread that waits 100 times for 2 ms, up to the time limit, while other threads use the CPU to
 * which all threads are bound. Prints its time on the run queue as counted by the kernel
 * (/proc/TID/schedstat), in ns, in total and within the waits; by how much the waits were too long;
 * and how much of that the recorder cannot know. late HOW: a way from the table below.
 *
 * late held: the time limit of a wait for a condition variable expires while main() has the mutex.
 * Prints the limit.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static bool is_over;

static void *burn(void *unused)
{
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        continue;
    return unused;
}

/* MARK: How to wait */

static const struct timespec length = {0, 2000000};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t written = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_t burners[2];
static sem_t semaphore;
static uint32_t word;
static int ends[2], set;

static struct timespec until(clockid_t clock)
{
    struct timespec time;
    CHECK(clock_gettime(clock, &time) == 0);
    time.tv_nsec += length.tv_nsec;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    return time;
}

static void by_nanosleep(void)
{
    CHECK(nanosleep(&length, NULL) == 0);
}

static void by_usleep(void)
{
    CHECK(usleep(2000) == 0);
}

static void by_clock(void)
{
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL) == 0);
}

static void by_thrd(void)
{
    CHECK(thrd_sleep(&length, NULL) == 0);
}

static void by_clock_until(void)
{
    struct timespec time = until(CLOCK_MONOTONIC);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == 0);
}

static void by_date(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &time, NULL) == 0);
}

static void by_poll(void)
{
    struct pollfd fd = {ends[0], POLLIN, 0};
    CHECK(poll(&fd, 1, 2) == 0);
}

static void by_poll_of_two(void)
{
    struct pollfd fds[2] = {{ends[0], POLLIN, 0}, {ends[0], POLLIN, 0}};
    CHECK(poll(fds, 2, 2) == 0);
}

static void by_ppoll(void)
{
    struct pollfd fd = {ends[0], POLLIN, 0};
    CHECK(ppoll(&fd, 1, &length, NULL) == 0);
}

static void by_select(void)
{
    struct timeval time = {0, 2000};
    fd_set fds;
    FD_ZERO(&fds);
    FD_SET(ends[0], &fds);
    CHECK(select(ends[0] + 1, &fds, NULL, NULL, &time) == 0);
}

static void by_pselect(void)
{
    fd_set fds;
    FD_ZERO(&fds);
    FD_SET(ends[0], &fds);
    CHECK(pselect(ends[0] + 1, &fds, NULL, NULL, &length, NULL) == 0);
}

static void by_epoll(void)
{
    struct epoll_event event;
    CHECK(epoll_wait(set, &event, 1, 2) == 0);
}

static void by_condition(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_cond_timedwait(&condition, &mutex, &time) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void by_condition_clock(void)
{
    struct timespec time = until(CLOCK_MONOTONIC);
    CHECK(pthread_mutex_lock(&mutex) == 0);
    CHECK(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &time) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void by_semaphore(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(sem_timedwait(&semaphore, &time) == -1 && errno == ETIMEDOUT);
}

static void by_semaphore_clock(void)
{
    struct timespec time = until(CLOCK_MONOTONIC);
    CHECK(sem_clockwait(&semaphore, CLOCK_MONOTONIC, &time) == -1 && errno == ETIMEDOUT);
}

static void by_mutex(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(pthread_mutex_timedlock(&taken, &time) == ETIMEDOUT);
}

static void by_mutex_clock(void)
{
    struct timespec time = until(CLOCK_MONOTONIC);
    CHECK(pthread_mutex_clocklock(&taken, CLOCK_MONOTONIC, &time) == ETIMEDOUT);
}

static void by_rwlock(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(pthread_rwlock_timedrdlock(&written, &time) == ETIMEDOUT);
}

static void by_futex(void)
{
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &length, NULL, 0) == -1 &&
          errno == ETIMEDOUT);
}

static void by_futex_until(void)
{
    struct timespec time = until(CLOCK_MONOTONIC);
    CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &time, NULL, ~0u) == -1 &&
          errno == ETIMEDOUT);
}

static void by_signal(void)
{
    sigset_t signals;
    CHECK(sigemptyset(&signals) == 0 && sigaddset(&signals, SIGUSR1) == 0);
    CHECK(sigtimedwait(&signals, NULL, &length) == -1 && errno == EAGAIN);
}

static void by_join(void)
{
    struct timespec time = until(CLOCK_REALTIME);
    CHECK(pthread_timedjoin_np(burners[0], NULL, &time) == ETIMEDOUT);
}

static const struct {
    const char *name;
    void (*wait)(void);
} ways[] = {
    {"nanosleep", by_nanosleep},
    {"usleep", by_usleep},
    {"clock", by_clock},
    {"thrd", by_thrd},
    {"clock-until", by_clock_until},
    {"date", by_date},
    {"poll", by_poll},
    {"poll-of-two", by_poll_of_two},
    {"ppoll", by_ppoll},
    {"select", by_select},
    {"pselect", by_pselect},
    {"epoll", by_epoll},
    {"condition", by_condition},
    {"condition-clock", by_condition_clock},
    {"semaphore", by_semaphore},
    {"semaphore-clock", by_semaphore_clock},
    {"mutex", by_mutex},
    {"mutex-clock", by_mutex_clock},
    {"rwlock", by_rwlock},
    {"futex", by_futex},
    {"futex-until", by_futex_until},
    {"signal", by_signal},
    {"join", by_join},
};

/* MARK: The program */

static void prepare(void)
{
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(pipe(ends) == 0 && (set = epoll_create1(0)) >= 0);
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(sem_init(&semaphore, 0, 0) == 0);
    CHECK(pthread_mutex_lock(&taken) == 0 && pthread_rwlock_wrlock(&written) == 0);
}

/* A wait that exceeds its limit by this much is written before its end is known. */
#define WRITTEN_NS 150000000

/* By how much a wait has exceeded its limit. */
static long long late_since(struct timespec begin)
{
    struct timespec end;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &end) == 0);
    return (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec -
           length.tv_nsec;
}

/* The kernel's counts for this thread: ns on the run queue, and how often it got the CPU. */
struct counts {
    unsigned long long delay, turns;
};

/* Reads them with a call that the recorder does not wrap. */
static struct counts count(int fd)
{
    struct counts now;
    char text[128] = "";
    CHECK(syscall(SYS_pread64, fd, text, sizeof text - 1, 0L) > 0);
    CHECK(sscanf(text, "%*u %llu %llu", &now.delay, &now.turns) == 2);
    return now;
}

static void *waits(void *how)
{
    struct timespec begin;
    struct counts before, after;
    unsigned long long within = 0;
    long long late = 0, unknown, one;
    char path[64];
    int fd;
    size_t way = 0;
    while (strcmp(ways[way].name, how) != 0)
        CHECK(++way < sizeof ways / sizeof ways[0]);
    CHECK(pthread_setname_np(pthread_self(), "waits") == 0);
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int)gettid());
    CHECK((fd = open(path, O_RDONLY)) >= 0);
    unknown = (long long)count(fd).delay; /* includes the time before the thread started */
    for (int i = 0; i < 100; i++) {
        before = count(fd);
        CHECK(clock_gettime(CLOCK_MONOTONIC, &begin) == 0);
        ways[way].wait();
        one = late_since(begin);
        late += one;
        unknown += one > WRITTEN_NS ? one - WRITTEN_NS : 0;
        after = count(fd);
        within += after.delay - before.delay;
        /* The thread also lost the CPU before it slept, or afterwards. */
        if (after.turns - before.turns != 1)
            unknown += (long long)(after.delay - before.delay);
    }
    printf("%llu %llu %lld %lld\n", after.delay, within, late, unknown);
    return NULL;
}

static struct timespec limit;

static void *waits_here(void *unused)
{
    struct timespec time;
    CHECK(pthread_mutex_lock(&mutex) == 0);
    time = until(CLOCK_MONOTONIC);
    time.tv_sec += 1;
    limit = time;
    printf("%ld%09ld\n", (long)time.tv_sec, time.tv_nsec);
    is_over = true;
    CHECK(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &time) == ETIMEDOUT);
    CHECK(pthread_mutex_unlock(&mutex) == 0);
    return unused;
}

/* Keeps the mutex until the kernel has ended the wait for the condition variable. */
static void sleep_past_limit(void)
{
    const struct timespec more = {0, 20000000};
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &limit, NULL) == 0);
    CHECK(nanosleep(&more, NULL) == 0);
}

static int held(void)
{
    pthread_t thread;
    bool waits = false;
    CHECK(pthread_create(&thread, NULL, waits_here, NULL) == 0);
    while (!waits) {
        CHECK(pthread_mutex_lock(&mutex) == 0);
        waits = is_over;
        if (waits)
            sleep_past_limit();
        CHECK(pthread_mutex_unlock(&mutex) == 0);
    }
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}

/* The recorder must leave an invalid pointer to the kernel. */
static void sleep_wrongly(void)
{
    CHECK(nanosleep(NULL, NULL) == -1 && errno == EFAULT);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    cpu_set_t all, one;
    size_t cpu = 0;
    CHECK(argc == 2);
    if (strcmp(argv[1], "held") == 0)
        return held();
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    if (strcmp(argv[1], "nanosleep") == 0)
        sleep_wrongly();
    prepare();
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&burners[i], NULL, burn, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, waits, argv[1]) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    __atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(burners[i], NULL) == 0);
    return 0;
}
