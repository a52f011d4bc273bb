/*
 * Programs that know the answer: what waits in them where, how long, and what wakes it. They measure each
 * wait by the clock around the call, and print a line a wait, which the trace is compared with:
 *
 *   {"tid":12,"in":"waits_alpha","kind":"mutex","object":4096,"begin":100,"end":900,"waker":11,"by":"holds_alpha","at":850}
 *
 * Times are CLOCK_MONOTONIC in ns; `at` is when the waker let go, 0 where that is not known; waker 0: none,
 * the wait reached its time limit.
 *
 * Nothing is assumed about how long anything takes: a thread that is to find a lock taken is waited for until the
 * kernel reports that it sleeps.
 */
#ifndef TRAIL_TESTS_ANSWERS_H
#define TRAIL_TESTS_ANSWERS_H

#ifdef __cplusplus
#include <atomic>
using std::atomic_int;
#else
#include <stdatomic.h>
#endif
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The function is in stacks under its name. */
#if defined(__clang__)
#define IN_STACKS __attribute__((noinline, unused))
#else
#define IN_STACKS __attribute__((noinline, noclone, unused))
#endif

#define MS 1000000L

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): in the order of what happens. */
struct answer {
    int tid, waker;
    const char *in, *kind;
    const volatile void *object;
    int64_t begin, end;
    const char *by;
    int64_t at;
};

#define MAX_ANSWERS 16384
static struct answer answers[MAX_ANSWERS];
static atomic_int answer_count;

static inline int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline int me(void)
{
    return (int)syscall(SYS_gettid);
}

static inline void tell(struct answer answer)
{
    int i = atomic_fetch_add(&answer_count, 1);
    answer.tid = me();
    if (i < MAX_ANSWERS)
        answers[i] = answer;
}

/* A call that waits. The struct waker is evaluated afterwards. */
#define MEASURED(kind_, object_, who, call)                                                        \
    __extension__({                                                                                \
        int64_t begin_ = now();                                                                    \
        __typeof__(call) result_ = (call);                                                         \
        int64_t end_ = now();                                                                      \
        struct waker waker_ = (who);                                                               \
        tell((struct answer){0, waker_.tid, __func__, kind_, object_, begin_, end_, waker_.in,     \
                             waker_.at});                                                          \
        result_;                                                                                   \
    })

/* The thread that wakes others. Guarded by the lock that it releases, so that the next holder reads the right one. */
struct waker {
    int tid;
    const char *in;
    int64_t at;
};

#define NOBODY ((struct waker){0, NULL, 0})

#define LETS_GO(who) ((who) = (struct waker){me(), __func__, now()})

static inline void print_answers(void)
{
    for (int i = 0; i < answer_count && i < MAX_ANSWERS; i++) {
        const struct answer *a = &answers[i];
        printf("{\"tid\":%d,\"in\":\"%s\",\"kind\":\"%s\",\"object\":%lu,\"begin\":%ld,\"end\":%ld,"
               "\"waker\":%d,\"by\":\"%s\",\"at\":%ld}\n",
               a->tid, a->in, a->kind, (unsigned long)(uintptr_t)a->object, (long)a->begin,
               (long)a->end, a->waker, a->by ? a->by : "", (long)a->at);
    }
    fflush(stdout);
}

/* A wait that has just ended, in the function `in`. */
static inline void tell_end(const char *in, const char *kind, const volatile void *object,
                            int64_t begin, struct waker waker)
{
    struct answer answer = {0, waker.tid, in, kind, object, begin, now(), waker.in, waker.at};
    tell(answer);
}

/* MARK: Threads that are about to wait */

static inline void sleep_ns(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

static inline char state_of(int tid)
{
    char path[64], text[512];
    const char *state;
    ssize_t n;
    int fd;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return '?';
    text[n] = 0;
    state = strrchr(text, ')');
    return state && state[1] ? state[2] : '?';
}

/* A thread says here that its next call will wait. */
typedef atomic_int about_to_wait;

static inline void about(about_to_wait *who)
{
    atomic_store(who, me());
}

/* Returns when the thread has said so, and sleeps. */
static inline void until_it_waits(about_to_wait *who)
{
    while (!atomic_load(who) || state_of(atomic_load(who)) != 'S')
        sleep_ns(MS / 5);
    atomic_store(who, 0);
}

static inline struct timespec after(clockid_t clock, long ns)
{
    struct timespec time;
    clock_gettime(clock, &time);
    ns += time.tv_nsec;
    time.tv_sec += ns / 1000000000;
    time.tv_nsec = ns % 1000000000;
    return time;
}

static inline pthread_t start(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    int status = pthread_create(&thread, NULL, routine, argument);
    if (status != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(status));
        exit(99);
    }
    return thread;
}

#endif
