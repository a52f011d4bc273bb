/*
 * The trace generator: a simulated Go scheduler (simulate.c) whose every action is written at once
 * by one of two writers (v1.c, v2.c) into a valid execution trace of any size.
 *
 * The one idea: the simulation keeps the truth (which M has which P, which P runs which G) and
 * passes each action to the writer *before* it takes effect, in global time order. A writer only
 * translates; so one simulation serves every version of the format. All is drawn from one seed:
 * equal options make equal files.
 *
 * Time is in ticks of the file's own clock (v1: 64 cycles of 3 GHz; v2: 64 ns, §5.4).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NO_THREAD UINT64_MAX

/* MARK: Random numbers (splitmix64) */

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Uniform in [0, n); n is at most 2^32 and not 0. */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return ((rng_next(r) >> 32) * n) >> 32;
}

static inline bool rng_chance(struct rng *r, unsigned in_a_thousand)
{
    return rng_below(r, 1000) < in_a_thousand;
}

/* MARK: Names and stacks (names.c): a made-up program, the same for every trace of a seed */

/*
 * Texts that the simulation names; those of functions and files follow. Index 0 is the empty text.
 */
enum text {
    TEXT_EMPTY,
    TEXT_CHAN_SEND,
    TEXT_CHAN_RECEIVE,
    TEXT_SELECT,
    TEXT_SYNC,
    TEXT_COND,
    TEXT_NETWORK,
    TEXT_SLEEP,
    TEXT_ASSIST_WAIT,
    TEXT_SYSTEM,
    TEXT_PREEMPTED,
    TEXT_GOSCHED,
    TEXT_STW_SWEEP,
    TEXT_STW_MARK,
    TEXT_NOT_WORKER,
    TEXT_DEDICATED,
    TEXT_FRACTIONAL,
    TEXT_IDLE,
    TEXT_TASKS,                    /* 8 task types */
    TEXT_REGIONS = TEXT_TASKS + 8, /* 16 region types */
    TEXT_KEYS = TEXT_REGIONS + 16, /* 8 categories of logs */
    TEXT_FUNCTIONS = TEXT_KEYS + 8
};

/* Where in the program an event happens: decides what the innermost frames of its stack are. */
enum site {
    SITE_RECEIVE,
    SITE_SEND,
    SITE_SELECT,
    SITE_SYNC,
    SITE_COND,
    SITE_NETWORK,
    SITE_SLEEP,
    SITE_SYSCALL,
    SITE_CREATE,
    SITE_START, /* one frame: where a goroutine begins */
    SITE_UNBLOCK,
    SITE_PREEMPT,
    SITE_GOSCHED,
    SITE_GC,
    SITE_ASSIST,
    SITE_SWEEP,
    SITE_USER,
    SITE_CPU,
    SITES
};

struct frame {
    uint64_t pc;
    uint32_t function, file; /* texts */
    uint32_t line;
};

struct stack {
    const struct frame *frame;
    unsigned frames;
};

struct text_value {
    char *data;
    size_t size;
};

struct program {
    struct text_value *text;
    size_t texts;
    struct stack *stack; /* [0] is the empty stack */
    size_t stacks;
    size_t first[SITES + 1]; /* stacks first[s] .. first[s+1]-1 belong to site s */
    uint32_t first_message;  /* the texts from here to the last are messages of logs */
    struct frame *frames;
};

void program_make(struct program *program, size_t stacks, struct rng *rng);
void program_free(struct program *program);

/* Numbers given to texts or stacks when they are first used; forgotten by ids_reset. */
struct ids {
    uint32_t *id;    /* by index, 0: none yet */
    uint32_t *order; /* index by number - 1 */
    uint32_t count;
};

void ids_init(struct ids *ids, size_t size);
void ids_reset(struct ids *ids);
void ids_free(struct ids *ids);

static inline uint32_t ids_get(struct ids *ids, size_t index)
{
    if (index == 0)
        return 0;
    if (ids->id[index] == 0) {
        ids->order[ids->count] = (uint32_t)index;
        ids->id[index] = ++ids->count;
    }
    return ids->id[index];
}

/* MARK: The simulated world */

enum g_state { G_RUNNABLE, G_RUNNING, G_SYSCALL, G_WAITING };
enum p_state { P_IDLE, P_FREE, P_RUNNING, P_SYSCALL }; /* FREE: has an M, looks for a goroutine */

struct machine;
struct proc;

struct region {
    uint64_t task;
    uint32_t name;
};

#define MAX_REGIONS 4

struct goroutine {
    uint64_t id;
    uint8_t state;
    bool worker;       /* a GC mark worker: never ends, runs for GC only */
    bool assist;       /* in a mark assist */
    bool exit_pending; /* v1: left a blocking system call; GoSysExit comes with its next start */
    bool block_next;   /* woke another: will block soon */
    uint8_t regions;
    uint32_t start_stack;
    struct region region[MAX_REGIONS];
    uint64_t task; /* begun by it, 0 if none */
    struct machine *m;
    struct goroutine *next; /* in a queue of runnable goroutines, or the free list */
    struct pool *pool;      /* of waiting goroutines */
    size_t pool_index, alive_index;
    /* The writers': */
    uint64_t seq;
    uint64_t status_gen; /* v2 */
    int64_t last_proc;   /* v1 */
    uint64_t exit_ticks; /* v1 */
    uint64_t exit_seq;   /* 1.5 */
};

/* A bag of goroutines; any may leave. */
struct pool {
    struct goroutine **g;
    size_t count, capacity;
};

struct queue {
    struct goroutine *head, *tail;
    size_t count;
};

struct machine {
    uint64_t id;
    struct proc *p;
    struct goroutine *g;
    uint64_t exit_at; /* in a blocking system call: when it ends */
    struct machine *next_idle;
    void *buffer; /* the v2 writer's */
};

struct proc {
    int64_t id;
    uint8_t state;
    bool sweeping;
    struct machine *m;
    uint64_t clock;        /* when it acts next */
    uint64_t syscall_ends; /* P_SYSCALL */
    uint64_t sample_at;    /* next CPU sample */
    struct queue runnable;
    struct pool peers;   /* waiting for another goroutine */
    struct pool outside; /* waiting for a timer or the network */
    struct goroutine *worker;
    /* The writers': */
    uint64_t seq;        /* v2 */
    uint64_t status_gen; /* v2 */
    void *buffer;        /* v1 */
};

/* MARK: Writers */

enum act {
    ACT_PROC_START,  /* p */
    ACT_PROC_STOP,   /* p */
    ACT_PROC_RETAKE, /* p, from the thread `victim`, which is in a system call */
    ACT_GO_CREATE,   /* g, its start_stack */
    ACT_GO_START,    /* g; text: label or 0 */
    ACT_GO_END,
    ACT_GO_BLOCK,   /* text: reason */
    ACT_GO_STOP,    /* text: TEXT_PREEMPTED or TEXT_GOSCHED */
    ACT_GO_UNBLOCK, /* g */
    ACT_GO_SWITCH,  /* g; a: 1 if the current goroutine ends. v2 from 1.23 on */
    ACT_SYSCALL_BEGIN,
    ACT_SYSCALL_END,
    ACT_SYSCALL_EXIT,  /* of one that lost its P */
    ACT_FOREIGN_BEGIN, /* g: a thread of C calls in. v2 */
    ACT_FOREIGN_END,   /* v2 */
    ACT_STW_BEGIN,     /* text */
    ACT_STW_END,
    ACT_GC_BEGIN,
    ACT_GC_END,
    ACT_SWEEP_BEGIN,
    ACT_SWEEP_END, /* a: swept, b: reclaimed */
    ACT_ASSIST_BEGIN,
    ACT_ASSIST_END,
    ACT_HEAP_ALLOC,   /* a */
    ACT_HEAP_GOAL,    /* a */
    ACT_PROCS_CHANGE, /* a */
    ACT_TASK_BEGIN,   /* a: task, b: parent, text */
    ACT_TASK_END,     /* a: task */
    ACT_REGION_BEGIN, /* a: task, text */
    ACT_REGION_END,   /* a: task, text */
    ACT_LOG,          /* a: task, text: key, b: message, a text too */
    ACT_CPU_SAMPLE
};

struct action {
    struct machine *victim;
    struct proc *p;
    struct goroutine *g;
    uint64_t a, b;
    uint32_t text;
    uint32_t stack; /* of the current goroutine, index in the program */
};

struct sim;

struct writer {
    void (*begin)(struct sim *sim); /* the world is stopped, all Ps idle but the first */
    void (*act)(struct sim *sim, struct machine *m, enum act act, const struct action *action);
    void (*advance)(struct sim *sim); /* v2: a generation ends and another begins */
    void (*end)(struct sim *sim);
};

extern const struct writer v1_writer, v2_writer;

struct options {
    int version;
    uint64_t size, events; /* stop at either; 0: no limit */
    uint64_t seed;
    unsigned procs, goroutines, stacks;
    uint64_t rate; /* events a second of trace time */
};

struct sim {
    struct options options;
    struct rng rng;
    struct program program;
    const struct writer *writer;
    void *state; /* the writer's */

    FILE *file;
    uint64_t written, events;
    bool failed; /* writing failed */

    uint64_t now, frequency, step; /* step: ticks between the actions of a P, on average */
    struct proc *proc;
    struct machine **machine;
    size_t machines, machine_capacity;
    struct machine *idle;     /* without P and goroutine */
    struct machine *monitor;  /* sysmon: never has a P */
    struct machine **blocked; /* in system calls, without P */
    size_t blocked_count;
    struct queue global;
    struct goroutine **alive, *free;
    size_t alive_count, alive_capacity;
    uint64_t last_goroutine, last_task;
    size_t runnable; /* in all queues */
    bool marking;
    uint64_t mark_ends, heap, heap_goal, sweep_left, generation_ends;
};

/* Memory for the generator; says so and exits when there is none. */
void *must_alloc(size_t size);
void *must_grow(void *memory, size_t size);

/* Appends to the file and counts. */
void sim_write(struct sim *sim, const void *data, size_t size);

void sim_run(struct sim *sim);
