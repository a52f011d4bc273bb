/* Threads under load: see load.h. */
#include "load.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <trail/record.h>

#include "world.h"

enum { MAX_LOAD_THREADS = 32, LOAD_GOROUTINES = 200 };

struct queue {
    trail_g *g[LOAD_GOROUTINES];
    size_t count;
};

struct load_thread {
    pthread_t thread;
    trail_m m;
    trail_p p;
    uint64_t random;
    struct load_counts counts; /* atomic */
};

static struct {
    pthread_rwlock_t pause; /* every step holds it for reading */
    pthread_mutex_t lock;   /* guards the next three; no call of the library is made under it */
    struct queue runnable, waiting, unused;
    pthread_mutex_t list; /* guards `alive`; held during the tracer's walk */
    struct queue alive;
    trail_g goroutines[LOAD_GOROUTINES];
    struct load_thread threads[MAX_LOAD_THREADS];
    unsigned announced, count;
    bool quit;
} load;

/* MARK: Queues */

static void push(struct queue *queue, trail_g *g)
{
    pthread_mutex_lock(&load.lock);
    queue->g[queue->count++] = g;
    pthread_mutex_unlock(&load.lock);
}

/* Removes a random goroutine; NULL: there is none. */
static trail_g *pop(struct load_thread *thread, struct queue *queue)
{
    trail_g *g = NULL;
    pthread_mutex_lock(&load.lock);
    if (queue->count) {
        unsigned at = random_below(&thread->random, (unsigned)queue->count);
        g = queue->g[at];
        queue->g[at] = queue->g[--queue->count];
    }
    pthread_mutex_unlock(&load.lock);
    return g;
}

static void list_add(trail_g *g)
{
    pthread_mutex_lock(&load.list);
    load.alive.g[load.alive.count++] = g;
    pthread_mutex_unlock(&load.list);
}

static void list_remove(const trail_g *g)
{
    pthread_mutex_lock(&load.list);
    for (size_t i = 0; i < load.alive.count; i++) {
        if (load.alive.g[i] == g) {
            load.alive.g[i] = load.alive.g[--load.alive.count];
            break;
        }
    }
    pthread_mutex_unlock(&load.list);
}

/* MARK: The host */

static void each_goroutine(void *context, void (*visit)(trail_g *g, void *arg), void *arg)
{
    (void)context;
    pthread_mutex_lock(&load.list);
    for (size_t i = 0; i < load.alive.count; i++)
        visit(load.alive.g[i], arg);
    pthread_mutex_unlock(&load.list);
}

/* No stop_world: the library holds the threads while a v1 trace starts. */
static const trail_host host = {.each_goroutine = each_goroutine};

/* MARK: Steps */

static void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static void annotate(struct load_thread *thread)
{
    static const char *const names[] = {"red", "green", "a longer name of a category", "blue"};
    const char *name = names[random_below(&thread->random, 4)];
    uint64_t task = trail_task_begin(0, name);
    if (task)
        count(&thread->counts.tasks);
    trail_region_begin(task, "region");
    trail_log(task, name, "what the thread has to say");
    count(&thread->counts.logs);
    trail_region_end(task, "region");
    trail_task_end(task);
}

/* Other threads may end a generation meanwhile, which reads the name. */
static void rename_one(struct load_thread *thread, trail_g *g)
{
    static const char *const names[] = {"client", "a client with a longer name", NULL};
    trail_g_set_name(g, names[random_below(&thread->random, 3)]);
    trail_g_set_kind(g, names[random_below(&thread->random, 3)]);
}

static void create(struct load_thread *thread)
{
    trail_g *g = pop(thread, &load.unused);
    bool blocked = random_below(&thread->random, 4) == 0;
    if (!g)
        return;
    trail_g_init(g);
    list_add(g);
    if (blocked)
        trail_go_create_blocked(&thread->m, g, (uintptr_t)annotate, 0);
    else
        trail_go_create(&thread->m, g, (uintptr_t)annotate, 0);
    push(blocked ? &load.waiting : &load.runnable, g);
}

/* Frees an ended goroutine: the tracer must not access it again. */
static void retire(trail_g *g)
{
    list_remove(g);
    memset(g, 0xee, sizeof *g);
    push(&load.unused, g);
}

static void unblock(struct load_thread *thread)
{
    trail_g *g = pop(thread, &load.waiting);
    if (!g)
        return;
    trail_go_unblock(&thread->m, g, 0);
    push(&load.runnable, g);
}

static void leave(struct load_thread *thread, unsigned how)
{
    trail_g *g = thread->m.g;
    if (random_below(&thread->random, 8) == 0)
        rename_one(thread, g);
    if (how == 0) {
        trail_go_end(&thread->m);
        retire(g);
    } else if (how < 4) {
        trail_go_block(&thread->m, how == 1 ? TRAIL_BLOCK_SYNC : TRAIL_BLOCK_CHAN_RECEIVE, 0);
        push(&load.waiting, g);
    } else {
        trail_go_sched(&thread->m, 0);
        push(&load.runnable, g);
    }
}

/* Switches directly to a waiting goroutine. */
static void switch_go(struct load_thread *thread)
{
    trail_g *from = thread->m.g, *to = pop(thread, &load.waiting);
    if (!to)
        return;
    trail_go_switch(&thread->m, to);
    push(&load.waiting, from);
}

static void system_call(struct load_thread *thread)
{
    trail_m *m = &thread->m;
    trail_g *g = m->g;
    trail_syscall_enter(m, 0);
    if (random_below(&thread->random, 3)) {
        trail_syscall_exit(m);
        return;
    }
    trail_proc_stop(m);
    trail_syscall_exit_blocked(m);
    push(&load.runnable, g);
}

static void run(struct load_thread *thread)
{
    switch (random_below(&thread->random, 8)) {
    case 0:
    case 1:
        annotate(thread);
        break;
    case 2:
        create(thread);
        break;
    case 3:
        unblock(thread);
        break;
    case 4:
        system_call(thread);
        break;
    case 5:
        switch_go(thread);
        break;
    default:
        leave(thread, random_below(&thread->random, 6));
    }
}

static void find_work(struct load_thread *thread)
{
    trail_g *g;
    if (!thread->m.p)
        trail_proc_start(&thread->m, &thread->p);
    g = pop(thread, &load.runnable);
    if (g)
        trail_go_start(&thread->m, g);
    else if (random_below(&thread->random, 2))
        unblock(thread);
    else
        create(thread);
}

/* MARK: Threads */

/* Yields: the threads that start and stop traces need CPUs, too. */
static void after_step(struct load_thread *thread)
{
    count(&thread->counts.steps);
    if (random_below(&thread->random, 16) == 0)
        nanosleep(&(struct timespec){0, 20000}, NULL);
}

static bool goes_on(void)
{
    return !__atomic_load_n(&load.quit, __ATOMIC_ACQUIRE);
}

static void *be_announced(void *arg)
{
    struct load_thread *thread = arg;
    trail_m_start(&thread->m);
    while (goes_on()) {
        pthread_rwlock_rdlock(&load.pause);
        if (thread->m.g)
            run(thread);
        else
            find_work(thread);
        pthread_rwlock_unlock(&load.pause);
        after_step(thread);
    }
    if (thread->m.g)
        leave(thread, 0);
    if (thread->m.p)
        trail_proc_stop(&thread->m);
    trail_m_exit(&thread->m);
    return NULL;
}

static void *be_unannounced(void *arg)
{
    struct load_thread *thread = arg;
    while (goes_on()) {
        pthread_rwlock_rdlock(&load.pause);
        annotate(thread);
        pthread_rwlock_unlock(&load.pause);
        after_step(thread);
    }
    return NULL;
}

static void init_locks(void)
{
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&load.pause, &attr);
    pthread_rwlockattr_destroy(&attr);
    pthread_mutex_init(&load.lock, NULL);
    pthread_mutex_init(&load.list, NULL);
}

void load_begin(unsigned announced, unsigned unannounced)
{
    memset(&load, 0, sizeof load);
    init_locks();
    for (size_t i = 0; i < LOAD_GOROUTINES; i++)
        load.unused.g[load.unused.count++] = &load.goroutines[i];
    load.announced = announced;
    load.count = announced + unannounced;
    trail_host_set(&host);
    for (unsigned i = 0; i < load.count; i++) {
        struct load_thread *thread = &load.threads[i];
        thread->random = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        if (i < announced)
            trail_p_init(&thread->p, (int32_t)i);
        if (pthread_create(&thread->thread, NULL, i < announced ? be_announced : be_unannounced,
                           thread) != 0)
            abort();
    }
}

void load_end(void)
{
    __atomic_store_n(&load.quit, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < load.count; i++)
        pthread_join(load.threads[i].thread, NULL);
    for (unsigned i = 0; i < load.announced; i++)
        trail_p_fini(&load.threads[i].p);
    trail_host_set(NULL);
}

struct load_counts load_counts(void)
{
    struct load_counts all = {0};
    for (unsigned i = 0; i < load.count; i++) {
        const struct load_counts *counts = &load.threads[i].counts;
        all.steps += __atomic_load_n(&counts->steps, __ATOMIC_RELAXED);
        all.tasks += __atomic_load_n(&counts->tasks, __ATOMIC_RELAXED);
        all.logs += __atomic_load_n(&counts->logs, __ATOMIC_RELAXED);
    }
    return all;
}

void load_wait(uint64_t steps)
{
    uint64_t from[MAX_LOAD_THREADS] = {0};
    for (unsigned i = 0; i < load.count; i++)
        from[i] = __atomic_load_n(&load.threads[i].counts.steps, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < load.count; i++) {
        while (__atomic_load_n(&load.threads[i].counts.steps, __ATOMIC_RELAXED) < from[i] + steps)
            nanosleep(&(struct timespec){0, 20000}, NULL);
    }
}

void load_pause(void)
{
    pthread_rwlock_wrlock(&load.pause);
}

void load_resume(void)
{
    pthread_rwlock_unlock(&load.pause);
}
