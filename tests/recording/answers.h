/*
 * Programs with known answers: where each thread waits, for how long, and what wakes it. They
 * measure each wait by the clock around the call, and print one line per wait, which is compared
 * with the trace:
 *
 *   {"tid":12,"in":"waits_alpha","kind":"mutex","object":4096,"begin":100,"end":900,"slept":1,
 *    "waker":11,"by":"holds_alpha","at":850,"done":870}
 *
 * and one line per release:
 *
 *   {"release":11,"by":"holds_alpha","at":850,"done":870}
 *
 * Times are CLOCK_MONOTONIC in ns. The waker released the object between `at` and `done`; 0:
 * unknown. Waker 0: none, the wait reached its time limit, not before `at`. `slept`: how often the
 * kernel switched the thread out because it had to wait.
 *
 * Nothing is assumed about how long anything takes: threads take turns. If a thread has to find a
 * lock taken, the holder releases it only after the kernel reports that the thread sleeps, so the
 * wait began before `at`.
 */
#pragma once

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
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Keeps the function in stacks under its own name. */
#if defined(__clang__)
#define IN_STACKS __attribute__((noinline, unused))
#else
#define IN_STACKS __attribute__((noinline, noclone, unused))
#endif

#define MS 1000000L

/* A release. The threads that it wakes read it under the released lock, or when nothing else can
 * have ended their wait. */
struct release {
    int tid;
    const char *in;
    int64_t at, done;
};

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): members are in chronological order */
struct answer {
    int tid;
    const char *in, *kind;
    const volatile void *object;
    int64_t begin, end;
    long slept;
    const struct release *by;
};

#define MAX_ANSWERS 16384
static struct answer answers[MAX_ANSWERS];
static struct release all_releases[MAX_ANSWERS];
static atomic_int answer_count, release_count;

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

/* How often the kernel has switched the calling thread out because it had to wait. */
static inline long times_slept(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static inline void tell(struct answer answer)
{
    int i = atomic_fetch_add(&answer_count, 1);
    answer.tid = me();
    if (i >= MAX_ANSWERS)
        exit(99);
    answers[i] = answer;
}

static inline struct release *new_release(int tid, const char *in, int64_t at)
{
    int i = atomic_fetch_add(&release_count, 1);
    if (i >= MAX_ANSWERS)
        exit(99);
    all_releases[i].tid = tid;
    all_releases[i].in = in;
    all_releases[i].at = at;
    return &all_releases[i];
}

/* A call that waits. The release that woke it is evaluated afterwards. */
#define MEASURED(kind_, object_, release_, call)                                                   \
    __extension__({                                                                                \
        long slept_ = times_slept();                                                               \
        int64_t begin_ = now();                                                                    \
        __typeof__(call) result_ = (call);                                                         \
        int64_t end_ = now();                                                                      \
        slept_ = times_slept() - slept_;                                                           \
        tell((struct answer){0, __func__, kind_, object_, begin_, end_, slept_, release_});        \
        result_;                                                                                   \
    })

/* Makes a call that wakes another thread. */
#define LETS_GO(release_, call)                                                                    \
    do {                                                                                           \
        struct release *this_ = new_release(me(), __func__, now());                                \
        (release_) = this_;                                                                        \
        call;                                                                                      \
        this_->done = now();                                                                       \
    } while (0)

/* For a wait that reached its time limit, which was not before `until`. */
static inline struct release *nobody_before(int64_t until)
{
    return new_release(0, NULL, until);
}

/* Call when all threads have ended. */
static inline void print_answers(void)
{
    for (int i = 0; i < answer_count; i++) {
        const struct answer *a = &answers[i];
        printf("{\"tid\":%d,\"in\":\"%s\",\"kind\":\"%s\",\"object\":%lu,\"begin\":%ld,\"end\":%ld,"
               "\"slept\":%ld,\"waker\":%d,\"by\":\"%s\",\"at\":%ld,\"done\":%ld}\n",
               a->tid, a->in, a->kind, (unsigned long)(uintptr_t)a->object, (long)a->begin,
               (long)a->end, a->slept, a->by->tid, a->by->in ? a->by->in : "", (long)a->by->at,
               (long)a->by->done);
    }
    for (int i = 0; i < release_count; i++) {
        const struct release *r = &all_releases[i];
        printf("{\"release\":%d,\"by\":\"%s\",\"at\":%ld,\"done\":%ld}\n", r->tid,
               r->in ? r->in : "", (long)r->at, (long)r->done);
    }
    fflush(stdout);
}

/* A wait that has just ended, in the function `in`, by a release. */
static inline void tell_end(const char *in, const char *kind, const volatile void *object,
                            int64_t begin, const struct release *by)
{
    struct answer answer = {0, in, kind, object, begin, now(), 1, by};
    tell(answer);
}

/* MARK: Threads that are about to wait */

static inline void sleep_ns(long ns)
{
    struct timespec time = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&time, &time) != 0)
        ;
}

/* Reads a file in the thread's /proc folder. The text is empty if it cannot be read. */
static inline void task_text(int tid, const char *name, char *text, size_t size)
{
    char path[64];
    ssize_t n;
    int fd;
    snprintf(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
}

/*
 * Whether the thread sleeps. Its state is S before it leaves its CPU, and it may be preempted in
 * between; until it has left, /proc shows its system call as "running".
 */
static inline bool sleeps(int tid)
{
    char text[512];
    const char *state;
    task_text(tid, "stat", text, sizeof text);
    state = strrchr(text, ')');
    if (!state || !state[1] || state[2] != 'S')
        return false;
    task_text(tid, "syscall", text, sizeof text);
    return strncmp(text, "running", strlen("running")) != 0;
}

/* Set by a thread whose next call will wait. */
typedef atomic_int about_to_wait;

static inline void about(about_to_wait *who)
{
    atomic_store(who, me());
}

/* Whether the thread has announced a wait, and sleeps. */
static inline bool it_waits(about_to_wait *who)
{
    int tid = atomic_load(who);
    return tid && sleeps(tid);
}

/* Returns the TID of the thread when it waits. */
static inline int until_it_waits(about_to_wait *who)
{
    while (!it_waits(who))
        sleep_ns(MS / 5);
    return atomic_exchange(who, 0);
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
