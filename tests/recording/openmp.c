/*
 * OpenMP programs that know which thread waits where, how long and for which thread, and print a
 * line of JSON for each wait. Constructs are in functions of their own, whose names both compilers
 * keep.
 *
 * usage: openmp SCENARIO
 */
#include <errno.h>
#include <inttypes.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Keeps the function in stacks under its own name. */
#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noclone))
#endif

/* Less than the test's own limit, so that a hang ends itself and is reported. */
#define LIMIT_S 100

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int thread_id(void)
{
    return (int)syscall(SYS_gettid);
}

static void sleep_ms(int ms)
{
    struct timespec t = {0, ms * 1000000L};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

/* Waits until another thread has set the flag; the recorder sees this thread sleep. */
static void until(const int *flag)
{
    while (!__atomic_load_n(flag, __ATOMIC_ACQUIRE))
        sleep_ms(1);
}

static void say(int *flag)
{
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
}

/* The parts of a wait known to the waiting thread, and to the thread that ends it. */
struct answer {
    const char *kind, *in, *by;
    int tid, waker;
    int64_t begin, end, at; /* 0: not known */
};

/* How long the thread has waited for a CPU, according to the kernel. */
static int64_t delay_of(int tid)
{
    char path[64];
    int64_t delay = 0;
    FILE *file;
    snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", tid);
    file = fopen(path, "r");
    if (file && fscanf(file, "%*d %" SCNd64, &delay) != 1)
        delay = 0;
    if (file)
        fclose(file);
    return delay;
}

static void tell(const struct answer *a)
{
    printf("{\"kind\": \"%s\", \"in\": \"%s\", \"by\": \"%s\", \"tid\": %d, \"waker\": %d, "
           "\"begin\": %" PRId64 ", \"end\": %" PRId64 ", \"at\": %" PRId64 ", \"delay\": %" PRId64
           "}\n",
           a->kind, a->in, a->by ? a->by : "", a->tid, a->waker, a->begin, a->end, a->at,
           delay_of(a->tid) + delay_of(a->waker));
}

/* MARK: Barriers */

/* One slow iteration: the thread that entered the region waits at its end for the worker. */
static ALONE void slow_worker(void)
{
    struct answer a = {.kind = "OpenMP barrier", .in = __func__, .by = __func__};
#pragma omp parallel for schedule(static) num_threads(2)
    for (int i = 0; i < 2; i++) {
        if (i == 0) {
            sleep_ms(2);
            a.tid = thread_id();
            a.begin = now();
        } else {
            sleep_ms(40);
            a.waker = thread_id();
            a.at = now();
        }
    }
    a.end = now();
    tell(&a);
}

/* The worker waits for the other thread, and then for the next parallel region. */
static ALONE void slow_main(void)
{
    struct answer a = {
        .kind = "OpenMP barrier at the region's end", .in = __func__, .by = __func__};
    struct answer idle = {.kind = "OpenMP work", .in = __func__, .by = __func__};
#pragma omp parallel for schedule(static) num_threads(2)
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            sleep_ms(2);
            a.tid = thread_id();
            a.begin = now();
        } else {
            sleep_ms(30);
            a.waker = thread_id();
            a.at = now();
        }
    }
    idle.tid = a.tid;
    idle.waker = a.waker;
    idle.begin = a.at;
    sleep_ms(300);
    idle.at = now();
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1)
        idle.end = now();
    tell(&a);
    tell(&idle);
}

static ALONE void meet(void)
{
#pragma omp barrier
}

static ALONE void barriers(void)
{
    struct answer a[4] = {{0}};
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 4; i++) {
        a[i].kind = "OpenMP barrier";
        a[i].in = a[i].by = "meet";
        /* They are late in turn. */
        if (omp_get_thread_num() == i % 2) {
            sleep_ms(20);
            a[i].waker = thread_id();
            a[i].at = now();
            meet();
        } else {
            a[i].tid = thread_id();
            a[i].begin = now();
            meet();
            a[i].end = now();
        }
        meet();
    }
    for (int i = 0; i < 4; i++)
        tell(&a[i]);
}

/* MARK: Locks */

static omp_lock_t the_lock;
static omp_nest_lock_t the_nest_lock;

static ALONE void with_critical(int *has, int ms, struct answer *a)
{
#pragma omp critical(a_name)
    {
        if (has) {
            say(has);
            sleep_ms(ms);
            a->at = now();
        } else {
            a->end = now();
        }
    }
}

static ALONE void with_lock(int *has, int ms, struct answer *a)
{
    omp_set_lock(&the_lock);
    if (has) {
        say(has);
        sleep_ms(ms);
        a->at = now();
    } else {
        a->end = now();
    }
    omp_unset_lock(&the_lock);
}

static ALONE void with_nest_lock(int *has, int ms, struct answer *a)
{
    omp_set_nest_lock(&the_nest_lock);
    omp_set_nest_lock(&the_nest_lock);
    if (has) {
        say(has);
        sleep_ms(ms);
    } else {
        a->end = now();
    }
    omp_unset_nest_lock(&the_nest_lock);
    a->at = has ? now() : a->at;
    omp_unset_nest_lock(&the_nest_lock);
}

/* Each thread takes the lock in turn, while the other waits. */
static void contend(const char *kind, const char *in, void (*with)(int *, int, struct answer *))
{
    struct answer a[4] = {{0}};
    int has[4] = {0};
#pragma omp parallel num_threads(2)
    for (int i = 0; i < 4; i++) {
        a[i].kind = kind;
        a[i].in = a[i].by = in;
        if (omp_get_thread_num() == i % 2) {
            a[i].waker = thread_id();
            with(&has[i], 15, &a[i]);
        } else {
            until(&has[i]);
            a[i].tid = thread_id();
            a[i].begin = now();
            with(NULL, 0, &a[i]);
        }
        meet();
    }
    for (int i = 0; i < 4; i++)
        tell(&a[i]);
}

static void criticals(void)
{
    contend("OpenMP critical", "with_critical", with_critical);
}

static void locks(void)
{
    omp_init_lock(&the_lock);
    omp_init_nest_lock(&the_nest_lock);
    contend("OpenMP lock the_lock", "with_lock", with_lock);
    contend("OpenMP lock the_nest_lock", "with_nest_lock", with_nest_lock);
}

/* Testing a lock is no wait: a wait between two tests is recorded as usual. */
static ALONE void tries(void)
{
    struct answer a = {.kind = "", .in = "sleep_ms"};
    int has = 0, tried = 0;
    omp_init_lock(&the_lock);
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 0) {
        omp_set_lock(&the_lock);
        say(&has);
        until(&tried);
        omp_unset_lock(&the_lock);
    } else {
        until(&has);
        a.tid = thread_id();
        if (omp_test_lock(&the_lock))
            abort();
        a.begin = now();
        sleep_ms(20);
        a.end = now();
        say(&tried);
        while (!omp_test_lock(&the_lock))
            sleep_ms(1);
        omp_unset_lock(&the_lock);
    }
    a.waker = a.tid;
    tell(&a);
}

static ALONE void in_order(int i, struct answer *a)
{
#pragma omp ordered
    {
        if (i == 0) {
            sleep_ms(20);
            a->waker = thread_id();
            a->at = now();
        } else {
            a->end = now();
        }
    }
}

static ALONE void ordered(void)
{
    struct answer a = {.kind = "OpenMP ordered", .in = "in_order", .by = "in_order"};
#pragma omp parallel for ordered schedule(static, 1) num_threads(2)
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            a.tid = thread_id();
            a.begin = now();
        }
        in_order(i, &a);
    }
    tell(&a);
}

/*
 * MARK: Tasks
 *
 * The thread that makes a task waits, outside of OpenMP, until another thread runs it. OpenMP does
 * not promise to wake a thread at a barrier for a task, and libomp does not always do it
 * (openmp_window.c). So the other thread reaches the barrier when the task is already queued: it
 * finds the task before it can sleep.
 */

static ALONE void wait_for_tasks(void)
{
#pragma omp taskwait
}

/* Waits for a task that another thread runs, and which itself has a task. */
static ALONE void tasks(void)
{
    struct answer a = {.kind = "OpenMP tasks", .in = "wait_for_tasks"};
    int made = 0, begun = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single nowait
        {
#pragma omp task shared(begun, a)
            {
                say(&begun);
                a.waker = thread_id();
                sleep_ms(10);
#pragma omp task if (0)
                sleep_ms(5);
                wait_for_tasks();
                sleep_ms(10);
                a.at = now();
            }
            say(&made);
            until(&begun);
            a.tid = thread_id();
            a.begin = now();
            wait_for_tasks();
            a.end = now();
        }
        until(&made);
        meet();
    }
    tell(&a);
}

/* Runs one task itself while it waits, and then continues to wait. */
static ALONE void interrupted(void)
{
    struct answer a = {.kind = "OpenMP tasks", .in = "wait_for_tasks"};
    int made = 0, begun = 0, ran = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp single nowait
        {
#pragma omp task shared(begun, ran, a)
            {
                say(&begun);
                a.waker = thread_id();
                until(&ran);
                sleep_ms(10);
                a.at = now();
            }
            say(&made);
            until(&begun);
#pragma omp task shared(ran, a)
            {
                a.tid = thread_id();
                sleep_ms(5);
                say(&ran);
                a.begin = now();
            }
            wait_for_tasks();
            a.end = now();
        }
        until(&made);
        meet();
    }
    tell(&a);
}

static ALONE int fibonacci(int n)
{
    int a, b;
    if (n < 2)
        return n;
#pragma omp task shared(a)
    a = fibonacci(n - 1);
#pragma omp task shared(b)
    b = fibonacci(n - 2);
    wait_for_tasks();
    return a + b;
}

/* Many nested tasks, and all other named constructs. */
static ALONE void many(void)
{
    int result = 0, sum = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum)
    {
#pragma omp single
        result = fibonacci(12);
#pragma omp sections
        {
#pragma omp section
            sum += 1;
#pragma omp section
            sum += 2;
        }
#pragma omp master
        sum += 4;
#pragma omp for schedule(dynamic)
        for (int i = 0; i < 100; i++)
            sum += i;
#pragma omp taskgroup
        {
#pragma omp task
            sleep_ms(1);
        }
#pragma omp single nowait
        {
#pragma omp taskloop
            for (int i = 0; i < 10; i++)
                (void)fibonacci(2);
        }
    }
    printf("%d %d\n", result, sum);
}

/* MARK: Nested parallel regions */

static ALONE void inner(void)
{
#pragma omp parallel num_threads(2)
    sleep_ms(5);
}

static ALONE void nested(void)
{
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    inner();
}

/* MARK: Processes */

static ALONE void count(const char *who)
{
    int n = 0;
#pragma omp parallel num_threads(2)
    {
#pragma omp critical
        n++;
    }
    printf("%s %d\n", who, n);
    fflush(stdout);
}

static void forks(void)
{
    pid_t child;
    int status;
    count("before");
    child = fork();
    if (child == 0) {
        count("child");
        exit(0);
    }
    waitpid(child, &status, 0);
    count("parent");
    printf("%d\n", status);
}

static void execs(const char *self)
{
    count("before");
    (void)execl(self, self, "counts", (char *)NULL);
    abort();
}

/* MARK: Cost */

static ALONE double tight(const char *what, int n)
{
    int64_t begin = 0;
    double ns = 0;
#pragma omp parallel num_threads(2)
    {
        for (int i = 0; i < n + 100; i++) {
            /* The first rounds are a warm-up. */
            if (i == 100 && omp_get_thread_num() == 0)
                begin = now();
            if (*what == 'b') {
#pragma omp barrier
            } else {
#pragma omp critical
                __asm__ volatile("" ::: "memory");
            }
        }
#pragma omp master
        ns = (double)(now() - begin) / n;
    }
    return ns;
}

static ALONE double alone(int n)
{
    int64_t begin = now();
    for (int i = 0; i < n; i++) {
#pragma omp critical
        __asm__ volatile("" ::: "memory");
    }
    return (double)(now() - begin) / n;
}

static void cost(void)
{
    printf("critical, nobody else: %.0f ns\n", alone(200000));
    printf("critical, two threads: %.0f ns\n", tight("critical", 100000));
    printf("barrier, two threads: %.0f ns\n", tight("barrier", 100000));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {
        {"slow-worker", slow_worker},
        {"slow-main", slow_main},
        {"barriers", barriers},
        {"criticals", criticals},
        {"locks", locks},
        {"tries", tries},
        {"ordered", ordered},
        {"tasks", tasks},
        {"interrupted", interrupted},
        {"many", many},
        {"nested", nested},
        {"forks", forks},
        {"cost", cost},
    };
    (void)alarm(LIMIT_S);
    for (size_t i = 0; argc > 1 && i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(argv[1], scenarios[i].name) == 0)
            scenarios[i].run();
    }
    if (argc > 1 && strcmp(argv[1], "counts") == 0)
        count("after");
    if (argc > 1 && strcmp(argv[1], "execs") == 0)
        execs(argv[0]);
    return 0;
}
