/*
 * trail-bench-unwind: what a call stack costs without frame pointers, beside libunwind's
 * unw_backtrace (if it is installed) and the C library's backtrace, in the same process.
 *
 *     trail-bench-unwind [ROUNDS]
 *
 * A line each, the median of 21 runs of ROUNDS walks, in ns:
 *
 *     frames=10     ten functions that call each other, all PCs known
 *     other=10      the same depth, by one of 1024 ways in turn, so that the processor cannot foresee them
 *     thread        a new thread's first walk, PCs known
 *     first         a PC's first look-up: a walk after unwind_forget less one before it, by its frames
 *     forget        a call of unwind_forget
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "host/unwind.h"

#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif
#define RUNS    21
#define MAX_PCS 64
#define DEPTH   10

typedef void walker(void);

/* What is measured; set before it runs. */
static struct {
    uintptr_t end;
    long rounds;
    size_t frames;
    int (*unw_backtrace)(void **, int);
    walker *walk;
    double ns;
} bench;

static double now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static uintptr_t stack_end(void)
{
    pthread_attr_t attr;
    void *base = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        (void)pthread_attr_getstack(&attr, &base, &size);
        (void)pthread_attr_destroy(&attr);
    }
    return (uintptr_t)base + size;
}

/* MARK: Walkers: DEPTH frames from their caller on */

static NOINLINE void walk_ours(void)
{
    struct unwind_start start = unwind_caller_of(__builtin_frame_address(0));
    uintptr_t pcs[MAX_PCS];
    bench.frames = unwind_stack(&start, bench.end, pcs, DEPTH);
}

static NOINLINE void walk_libunwind(void)
{
    void *pcs[MAX_PCS];
    bench.frames = (size_t)bench.unw_backtrace(pcs, DEPTH);
}

static NOINLINE void walk_libc(void)
{
    void *pcs[MAX_PCS];
    bench.frames = (size_t)backtrace(pcs, DEPTH);
}

/* MARK: Functions that call each other */

/* Of `way` each bit decides by which of two places the next one is called. */
static NOINLINE void descend_0(unsigned way, void (*at_the_end)(void))
{
    (void)way;
    at_the_end();
    __asm__ volatile("");
}

#define DESCEND(n, next)                                                                           \
    static NOINLINE void descend_##n(unsigned way, void (*at_the_end)(void))                       \
    {                                                                                              \
        char room[(n)*16];                                                                         \
                                                                                                   \
        __asm__ volatile("" ::"r"(room) : "memory");                                               \
        if (way & 1) {                                                                             \
            descend_##next(way >> 1, at_the_end);                                                  \
            __asm__ volatile("nop");                                                               \
        } else {                                                                                   \
            descend_##next(way >> 1, at_the_end);                                                  \
        }                                                                                          \
        __asm__ volatile("" ::"r"(room) : "memory");                                               \
    }
DESCEND(1, 0)
DESCEND(2, 1)
DESCEND(3, 2)
DESCEND(4, 3)
DESCEND(5, 4)
DESCEND(6, 5)
DESCEND(7, 6)
DESCEND(8, 7)
DESCEND(9, 8)
DESCEND(10, 9)

static void time_walks(void)
{
    double start = now_ns();
    for (long i = 0; i < bench.rounds; i++)
        bench.walk();
    bench.ns = (now_ns() - start) / (double)bench.rounds;
}

static void walk_once(void)
{
    bench.walk();
}

static void nothing(void)
{
}

static double time_ways(void (*what)(void))
{
    double start = now_ns();
    for (long i = 0; i < bench.rounds; i++)
        descend_10((unsigned)i * 2654435761u >> 22, what);
    return (now_ns() - start) / (double)bench.rounds;
}

static void time_first(void)
{
    double start, known;
    bench.walk();
    start = now_ns();
    bench.walk();
    known = now_ns() - start;
    unwind_forget();
    start = now_ns();
    bench.walk();
    bench.ns = (now_ns() - start - known) / (double)bench.frames;
}

static void *time_thread(void *unused)
{
    double start;
    bench.end = stack_end();
    start = now_ns();
    bench.walk();
    bench.ns = now_ns() - start;
    return unused;
}

/* MARK: Runs */

static double run_frames(void)
{
    descend_10(0, time_walks);
    return bench.ns;
}

static double run_ways(void)
{
    return time_ways(walk_once) - time_ways(nothing);
}

static double run_thread(void)
{
    pthread_t thread;
    uintptr_t end = bench.end;
    if (pthread_create(&thread, NULL, time_thread, NULL) == 0)
        (void)pthread_join(thread, NULL);
    bench.end = end;
    return bench.ns;
}

static double run_first(void)
{
    descend_10(0, time_first);
    return bench.ns;
}

/* A table with what the other runs have left in it. */
static double run_forget(void)
{
    double start = now_ns();
    unwind_forget();
    return now_ns() - start;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(double (*run)(void), walker *walk)
{
    double ns[RUNS];
    bench.walk = walk;
    for (size_t i = 0; i < RUNS; i++)
        ns[i] = run();
    qsort(ns, RUNS, sizeof ns[0], compare);
    return ns[RUNS / 2];
}

static void report(const char *what, double (*run)(void))
{
    double ours = median(run, walk_ours), libc = median(run, walk_libc);
    (void)printf("%-12s ours %8.1f   backtrace %8.1f (%.1f times)", what, ours, libc, libc / ours);
    if (bench.unw_backtrace) {
        double libunwind = median(run, walk_libunwind);
        (void)printf("   libunwind %8.1f (%.1f times)", libunwind, libunwind / ours);
    }
    (void)printf("\n");
}

int main(int argc, char **argv)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    bench.rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 20000;
    bench.end = stack_end();
    if (library)
        *(void **)&bench.unw_backtrace = dlsym(library, "unw_backtrace");
    report("frames=10", run_frames);
    report("other=10", run_ways);
    report("thread", run_thread);
    (void)printf("%-12s ours %8.1f\n", "first", median(run_first, walk_ours));
    (void)printf("%-12s ours %8.1f\n", "forget", median(run_forget, walk_ours));
    return 0;
}
