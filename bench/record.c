/*
 * trail-bench-record: what a call of libtrail-record costs. bench/record runs it and prints the table.
 *
 *     trail-bench-record CASE FORMAT THREADS CALLS        e.g.  sched 23 2 1000000
 *
 * Threads with an M, a P and a running goroutine each are set up, the trace is started to a sink that
 * throws everything away, each thread makes CALLS rounds of the case, the trace is stopped. One line:
 *
 *     WALL_NS CPU_NS BYTES ROUNDS EVENTS
 *
 * times of a round, of the thread that took longest; bytes of the whole trace; events of a round; for
 * start-stop, the time of a start and a stop. Exit status 1 if something was lost, 2 for wrong arguments.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trail/record.h>

#define MAX_THREADS 1000
#define SLEEPERS    1000
#define MANY        100000

struct worker {
    pthread_t thread;
    trail_m m;
    trail_p p;
    trail_g g;
    int number;
    uint64_t wall_ns, cpu_ns;
};

struct bench_case {
    const char *name;
    void (*run)(struct worker *w, long rounds);
    unsigned events; /* of a round */
    bool off;
    trail_unwinder unwinder;
    int depth; /* of recursion: with the thread's own frames, stacks of 8 */
    unsigned max_frames;
    size_t sleepers; /* goroutines that wait while traces start and stop */
};

/* What the threads share; set before they begin. */
static struct {
    const struct bench_case *what;
    long rounds;
    int threads;
    pthread_barrier_t barrier;
    struct worker workers[MAX_THREADS];
    trail_g sleepers[MANY];
    size_t sleeping;
    uint64_t bytes;
    uint64_t stopped_at, stopped_ns; /* the world */
} bench;

/* MARK: Cases: no round is known to the compiler to be like the one before */

#define again() __asm__ volatile("" ::: "memory")

static void run_sched(struct worker *w, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        trail_go_sched(&w->m, TRAIL_NO_STACK);
        trail_go_start(&w->m, &w->g);
        again();
    }
}

static void run_sched_stack(struct worker *w, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        trail_go_sched(&w->m, 0);
        trail_go_start(&w->m, &w->g);
        again();
    }
}

static void run_syscall(struct worker *w, long rounds)
{
    for (long i = 0; i < rounds; i++) {
        trail_syscall_enter(&w->m, TRAIL_NO_STACK);
        trail_syscall_exit(&w->m);
        again();
    }
}

static void run_log(struct worker *w, long rounds)
{
    char message[] = "sixteen letters.";
    (void)w;
    for (long i = 0; i < rounds; i++) {
        message[15] = (char)('a' + i % 26);
        trail_log(0, "category", message);
        again();
    }
}

static void run_region(struct worker *w, long rounds)
{
    (void)w;
    for (long i = 0; i < rounds; i++) {
        trail_region_begin(0, "region");
        trail_region_end(0, "region");
        again();
    }
}

static void run_nothing(struct worker *w, long rounds)
{
    (void)w;
    for (long i = 0; i < rounds; i++)
        again();
}

/* What every event begins with: a measure of the machine, and of its day. */
static void run_counter(struct worker *w, long rounds)
{
    (void)w;
    for (long i = 0; i < rounds; i++) {
#if defined(__x86_64__)
        (void)__builtin_ia32_rdtsc();
#else
        struct timespec now;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
#endif
        again();
    }
}

/*
 * Unwinder, recursion, most frames. Tables and libunwind find the thread's own three frames behind `descend`'s; frame
 * pointers do not, libc has none.
 */
#define FRAME_POINTERS TRAIL_UNWIND_FRAME_POINTERS, 8, 8
#define LIBUNWIND      TRAIL_UNWIND_LIBUNWIND, 3, 0
#define TABLES         TRAIL_UNWIND_TABLES, 3, 0
#define NO_STACKS      TRAIL_UNWIND_NONE, 8, 0

static const struct bench_case cases[] = {
    {"loop", run_nothing, 0, true, NO_STACKS, 0},
    {"counter", run_counter, 0, true, NO_STACKS, 0},
    {"off-sched", run_sched, 2, true, NO_STACKS, 0},
    {"off-syscall", run_syscall, 2, true, NO_STACKS, 0},
    {"off-log", run_log, 1, true, NO_STACKS, 0},
    {"off-region", run_region, 2, true, NO_STACKS, 0},
    {"sched", run_sched, 2, false, FRAME_POINTERS, 0},
    {"syscall", run_syscall, 2, false, FRAME_POINTERS, 0},
    {"stack-fp", run_sched_stack, 2, false, FRAME_POINTERS, 0},
    {"stack-tables", run_sched_stack, 2, false, TABLES, 0},
    {"stack-unwind", run_sched_stack, 2, false, LIBUNWIND, 0},
    {"log", run_log, 1, false, FRAME_POINTERS, 0},
    {"region", run_region, 2, false, FRAME_POINTERS, 0},
    {"log-no-stack", run_log, 1, false, NO_STACKS, 0},
    {"region-no-stack", run_region, 2, false, NO_STACKS, 0},
    {"start-stop", NULL, 0, true, FRAME_POINTERS, SLEEPERS},
    {"start-stop-many", NULL, 0, true, FRAME_POINTERS, MANY},
};

/* MARK: The host: no thread is inside a call while a trace starts */

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    for (int i = 0; i < bench.threads; i++)
        visit(&bench.workers[i].g, arg);
    for (size_t i = 0; i < bench.sleeping; i++)
        visit(&bench.sleepers[i], arg);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void stop_world(void *context)
{
    (void)context;
    bench.stopped_at = now_ns(CLOCK_MONOTONIC);
}

static void start_world(void *context)
{
    (void)context;
    bench.stopped_ns += now_ns(CLOCK_MONOTONIC) - bench.stopped_at;
}

static const trail_host host = {
    .each_goroutine = each_goroutine,
    .stop_world = stop_world,
    .start_world = start_world,
};

static bool throw_away(void *context, const trail_chunk *chunk)
{
    (void)context;
    bench.bytes += chunk->size;
    return true;
}

static void start(int format)
{
    trail_options options = {
        .format = format, .unwinder = bench.what->unwinder, .max_frames = bench.what->max_frames};
    trail_error err;
    if (!trail_start_sink(&options, throw_away, NULL, &err)) {
        fprintf(stderr, "trail-bench-record: %s\n", err.message);
        exit(1);
    }
}

static void stop(void)
{
    trail_stats stats;
    trail_error err;
    bool ok = trail_stop(&err);
    trail_stats_get(&stats);
    if (!ok || stats.lost_events || stats.misuse || stats.lost_stacks) {
        fprintf(stderr,
                "trail-bench-record: %s: %" PRIu64 " events lost, %" PRIu64 " misuses, %" PRIu64
                " stacks lost\n",
                ok ? "lost" : err.message, stats.lost_events, stats.misuse, stats.lost_stacks);
        exit(1);
    }
}

/* MARK: Threads */

/* clang makes no copies of functions. */
#if defined(__clang__)
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

NOINLINE static void descend(struct worker *w, long rounds, int depth)
{
    if (depth > 0)
        descend(w, rounds, depth - 1);
    else
        bench.what->run(w, rounds);
    again();
}

static void setup(struct worker *w)
{
    trail_m_start(&w->m);
    trail_p_init(&w->p, w->number);
    trail_g_init(&w->g);
    trail_proc_start(&w->m, &w->p);
    trail_go_create(&w->m, &w->g, 0, TRAIL_NO_STACK);
    trail_go_start(&w->m, &w->g);
}

static void teardown(struct worker *w)
{
    trail_go_end(&w->m);
    trail_proc_stop(&w->m);
    trail_p_fini(&w->p);
    trail_m_exit(&w->m);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    uint64_t wall, cpu;
    setup(w);
    pthread_barrier_wait(&bench.barrier);
    /* The trace is started. */
    pthread_barrier_wait(&bench.barrier);
    descend(w, bench.rounds / 20, bench.what->depth);
    pthread_barrier_wait(&bench.barrier);
    wall = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
    descend(w, bench.rounds, bench.what->depth);
    w->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    w->wall_ns = now_ns(CLOCK_MONOTONIC) - wall;
    pthread_barrier_wait(&bench.barrier);
    /* And stopped. */
    pthread_barrier_wait(&bench.barrier);
    teardown(w);
    return NULL;
}

static void report(uint64_t wall_ns, uint64_t cpu_ns, double rounds)
{
    printf("%.3f %.3f %" PRIu64 " %.0f %u\n", (double)wall_ns / rounds, (double)cpu_ns / rounds,
           bench.bytes, rounds * bench.threads * 1.05, bench.what->events);
}

static void run_threads(int format)
{
    uint64_t wall = 0, cpu = 0;
    pthread_barrier_init(&bench.barrier, NULL, (unsigned)bench.threads + 1);
    for (int i = 0; i < bench.threads; i++) {
        bench.workers[i].number = i;
        pthread_create(&bench.workers[i].thread, NULL, work, &bench.workers[i]);
    }
    pthread_barrier_wait(&bench.barrier);
    if (!bench.what->off)
        start(format);
    pthread_barrier_wait(&bench.barrier);
    pthread_barrier_wait(&bench.barrier);
    pthread_barrier_wait(&bench.barrier);
    if (!bench.what->off)
        stop();
    pthread_barrier_wait(&bench.barrier);
    for (int i = 0; i < bench.threads; i++) {
        struct worker *w = &bench.workers[i];
        pthread_join(w->thread, NULL);
        wall = w->wall_ns > wall ? w->wall_ns : wall;
        cpu = w->cpu_ns > cpu ? w->cpu_ns : cpu;
    }
    report(wall, cpu, (double)bench.rounds);
}

/* MARK: Start and stop with many goroutines that wait */

static void run_start_stop(int format)
{
    struct worker *w = &bench.workers[0];
    uint64_t wall, cpu;
    bench.threads = 1;
    setup(w);
    for (size_t i = 0; i < bench.what->sleepers; i++) {
        trail_g_init(&bench.sleepers[i]);
        trail_go_create_blocked(&w->m, &bench.sleepers[i], 0, TRAIL_NO_STACK);
    }
    bench.sleeping = bench.what->sleepers;
    start(format);
    stop();
    bench.bytes = bench.stopped_ns = 0;
    wall = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (long i = 0; i < bench.rounds; i++) {
        start(format);
        stop();
    }
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = now_ns(CLOCK_MONOTONIC) - wall;
    report(wall, cpu, (double)bench.rounds);
    printf("%.3f\n", (double)bench.stopped_ns / (double)bench.rounds);
}

static const struct bench_case *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!strcmp(cases[i].name, name))
            return &cases[i];
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 5) {
        bench.what = find_case(argv[1]);
        bench.threads = atoi(argv[3]);
        bench.rounds = atol(argv[4]);
    }
    if (!bench.what || bench.threads < 1 || bench.threads > MAX_THREADS || bench.rounds < 1) {
        fputs("usage: trail-bench-record CASE FORMAT THREADS ROUNDS\ncases:", stderr);
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
            fprintf(stderr, " %s", cases[i].name);
        fputc('\n', stderr);
        return 2;
    }
    trail_host_set(&host);
    if (bench.what->run)
        run_threads(atoi(argv[2]));
    else
        run_start_stop(atoi(argv[2]));
    return 0;
}
