/*
 * A thread pool that can be looked at: a job is a goroutine in the trace, and a worker holds a P
 * while it runs one. So `trail` and `go tool trace` show when each job was handed in, how long it
 * waited, on which worker it ran, and how busy the workers were.
 *
 *     cc -fno-omit-frame-pointer thread_pool.c $(pkg-config --cflags --libs trail-record) -pthread
 *     ./a.out pool.trace && trail print pool.trace
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <trail/record.h>

enum { WORKERS = 4, JOBS = 100 };

struct job {
    trail_g g; /* the job's goroutine */
    void (*run)(struct job *job);
    unsigned number;
    bool done;
};

/* The mutex guards all. The tracer is not called under it, as the tracer itself takes it. */
struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct job jobs[JOBS];
    unsigned listed, submitted, taken; /* for the tracer; for the workers; by them */
    bool closed;
    int workers;
};

/* The tracer asks for the jobs that wait or run, when a trace or a generation of it begins. */
static void each_job(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    struct pool *pool = context;
    pthread_mutex_lock(&pool->mutex);
    for (unsigned i = 0; i < pool->listed; i++)
        if (!pool->jobs[i].done)
            visit(&pool->jobs[i].g, arg);
    pthread_mutex_unlock(&pool->mutex);
}

/* The job is listed before its creation in the trace, and queued after it. One thread adds jobs. */
static void pool_submit(struct pool *pool, trail_m *m, void (*run)(struct job *job))
{
    struct job *job = &pool->jobs[pool->listed];
    job->run = run;
    job->number = pool->listed;
    trail_g_init(&job->g);
    pthread_mutex_lock(&pool->mutex);
    pool->listed++;
    pthread_mutex_unlock(&pool->mutex);
    trail_go_create(m, &job->g, (uintptr_t)run, 0);
    pthread_mutex_lock(&pool->mutex);
    pool->submitted++;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

/* The next job, when there is one; NULL at the end. `done` is the one that the worker has run. */
static struct job *pool_next(struct pool *pool, struct job *done)
{
    struct job *job = NULL;
    pthread_mutex_lock(&pool->mutex);
    if (done)
        done->done = true;
    while (pool->taken == pool->submitted && !pool->closed)
        pthread_cond_wait(&pool->changed, &pool->mutex);
    if (pool->taken < pool->submitted)
        job = &pool->jobs[pool->taken++];
    pthread_mutex_unlock(&pool->mutex);
    return job;
}

static void *work(void *argument)
{
    struct pool *pool = argument;
    struct job *job = NULL;
    trail_m m;
    trail_p p;
    trail_m_start(&m);
    trail_p_init(&p, __atomic_fetch_add(&pool->workers, 1, __ATOMIC_RELAXED));
    while ((job = pool_next(pool, job))) {
        trail_proc_start(&m, &p);
        /* Stacks begin with the job, not with this loop. */
        job->g.stack_root = __builtin_frame_address(0);
        trail_go_start(&m, &job->g);
        job->run(job);
        trail_go_end(&m);
        trail_proc_stop(&m);
    }
    trail_p_fini(&p);
    trail_m_exit(&m);
    return NULL;
}

/* Regions and logs, in whatever function, belong to the job that runs there. */
static void count_primes(struct job *job)
{
    unsigned from = job->number * 1000, primes = 0;
    TRAIL_REGION("count primes");
    for (unsigned n = from; n < from + 1000; n++) {
        unsigned d = 2;
        while (d * d <= n && n % d)
            d++;
        primes += n > 1 && d * d > n;
    }
    trail_logf(0, "primes", "%u from %u on", primes, from);
}

/* Creating a goroutine needs a P, so the main thread has one too. */
static void use(struct pool *pool)
{
    pthread_t threads[WORKERS];
    trail_m m;
    trail_p p;
    for (int i = 0; i < WORKERS; i++)
        if (pthread_create(&threads[i], NULL, work, pool) != 0)
            abort();
    trail_m_start(&m);
    trail_p_init(&p, WORKERS);
    trail_proc_start(&m, &p);
    for (int i = 0; i < JOBS; i++)
        pool_submit(pool, &m, count_primes);
    trail_proc_stop(&m);
    pthread_mutex_lock(&pool->mutex);
    pool->closed = true;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    trail_p_fini(&p);
    trail_m_exit(&m);
}

int main(int argc, char **argv)
{
    struct pool pool = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const trail_host host = {.context = &pool, .each_goroutine = each_job};
    const trail_options options = {.task_word = "job"};
    const char *path = argc > 1 ? argv[1] : "pool.trace";
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    trail_error err = {0};
    trail_host_set(&host);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    if (trail_start_fd(&options, fd, &err)) {
        use(&pool);
        if (trail_stop(&err))
            return 0;
    }
    fprintf(stderr, "%s: %s\n", path, err.message);
    return 1;
}
