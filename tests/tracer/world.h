/*
 * A tracer host for tests: four threads with their Ms, Ps, and goroutines that exist in name only.
 * The threads take turns, one call at a time, in the order chosen by the test, so that a history is
 * exact although real threads make it.
 */
#pragma once

#include <pthread.h>
#include <trail/record.h>

enum { THREADS = 4, PROCS = 5, MAX_GOROUTINES = 4096 };

/* Every call of record.h that can occur in a history. */
enum call {
    GO_CREATE,
    GO_CREATE_BLOCKED,
    GO_START,
    GO_START_LABELLED,
    GO_END,
    GO_SCHED,
    GO_PREEMPT,
    GO_BLOCK,
    GO_BLOCK_FUTILE,
    GO_UNBLOCK,
    GO_SWITCH,
    GO_SWITCH_END,
    GO_DESTROY,
    GO_LABEL,
    SYSCALL_ENTER,
    SYSCALL_EXIT,
    SYSCALL_EXIT_BLOCKED,
    SYSCALL_RETURNED,
    GO_CREATE_SYSCALL,
    GO_DESTROY_SYSCALL,
    PROC_START,
    PROC_STOP,
    PROC_STEAL,
    PROCS_CHANGE,
    GC_BEGIN,
    GC_END,
    ASSIST_BEGIN,
    ASSIST_END,
    SWEEP_BEGIN,
    SWEEP_SPAN,
    SWEEP_END,
    STW_BEGIN,
    STW_END,
    HEAP_ALLOC,
    HEAP_GOAL,
    TASK_BEGIN,
    TASK_END,
    REGION_BEGIN,
    REGION_END,
    LOG,
    LOGF,
    LOG_FIELDS,
    CPU_SAMPLE,
    ALLOC_OBJECT,
    ALLOC_SPAN,
    ALLOC_STACK,
    ALLOC_TYPE,
    SCOPE_BEGIN,
    SCOPE_BEGIN_IN,
    SCOPE_END,
    SET_NAME,
    SET_KIND,
    SET_CATEGORIES,
    TIMER_GOROUTINE,
    G_INIT,
    P_INIT,
    P_FINI,
    M_START,
    M_EXIT,
    ADVANCE,
    CALLS
};

/* One call with its arguments; those that it does not take are ignored. */
struct op {
    enum call call;
    trail_m *m; /* instead of the thread's own */
    trail_g *g;
    trail_p *p;
    struct trail_scope_ *scope;
    unsigned kind;        /* of a block or stop-the-world pause; a number of Ps; which function */
    uint64_t task, value; /* also bytes, addresses */
    const char *name, *text, *categories;
    trail_category *category;
    int skip;
    uint64_t result; /* of TASK_BEGIN */
    bool ok;         /* what the call returned; true if it returns nothing */
};

struct worker {
    pthread_t thread;
    trail_m m;
    struct world *world;
    struct op *op;              /* the call to make; NULL: none */
    void (*job)(void *context); /* or this */
    void *context;
    bool quit;
    bool abandons; /* it quits without trail_m_exit */
};

struct world {
    pthread_mutex_t lock;
    pthread_cond_t turn;
    struct worker workers[THREADS];
    trail_p procs[PROCS];
    trail_g *goroutines[MAX_GOROUTINES]; /* created and not ended: for the host's list */
    size_t goroutine_count;
};

/* Starts the threads, with nothing recorded. The world is the tracer's host until world_end. */
void world_begin(struct world *world);
void world_end(struct world *world);

/* Makes a call on the calling thread, which is not one of the world's. */
void world_call(trail_m *m, struct op *op);

/* Makes a thread make a call or run a function, and waits for it. */
void world_do(struct world *world, unsigned thread, struct op *op);
void world_run(struct world *world, unsigned thread, void (*job)(void *context), void *context);

/* Ends a thread without trail_m_exit, and starts another in its place. */
void world_replace(struct world *world, unsigned thread);

/* xorshift64*: the same on every machine. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(0x2545F4914F6CDD1D);
}

static inline unsigned random_below(uint64_t *state, unsigned n)
{
    return (unsigned)((random_next(state) >> 33) % n);
}
