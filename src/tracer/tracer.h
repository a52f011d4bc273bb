/*
 * The tracer: one a process. What the files of this folder share, and the protocol between the threads
 * that emit, the one that starts, stops and ends generations, and the one that reads.
 *
 * Sections. Every call of a thread with an M is a section: m->busy_ is set, then the generation is read,
 * then states change and events are written, then busy_ is cleared. Whoever changes the generation stores
 * the new one, has the barrier run on all CPUs (barrier.h), and waits until it has seen every M not busy:
 * then all sections of the old generation are over, and no new one can begin. docs/models/section.pml is
 * this protocol with its store buffers.
 *
 * Generations. `generation` is 0 while the tracer is off. It grows by one with every generation of v2 and
 * with every trace of v1, and never comes back, so that "in this trace" is "not below first_generation".
 *
 * States. A trail_state_ is generation << 3 | state: the state of a goroutine or P as a reader knows it,
 * and the generation in which it was last told. Whoever first changes it in a generation claims it by
 * compare-and-swap and writes the status event; the thread that ends the generation claims what nobody
 * touched (generation.c, docs/models/status.pml).
 *
 * Locks, in the order in which they may be taken: control (start, stop, advance, one at a time), threads
 * (the list of Ms), trail_m.lock_ (closing a generation for it), no_proc and others of event calls, lock
 * (buffers and what is pending). An emitter takes `lock` once in 64 KiB; else none, in the common events.
 */
#ifndef TRAIL_TRACER_TRACER_H
#define TRAIL_TRACER_TRACER_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/record.h>

#include "host/clock.h"
#include "tracer/table.h"
#include "wire/maker.h"

/* MARK: Buffers */

#define BUFFER_SIZE 65536

struct trail_buffer_ {
    struct trail_buffer_ *next;
    uint64_t generation;
    uint32_t used;      /* bytes of data, once it is full */
    uint32_t length_at; /* v2: where the size of the open batch goes; 0: no batch is open */
    uint64_t reserved;
    uint8_t data[];
};

#define BUFFER_CAPACITY (BUFFER_SIZE - sizeof(struct trail_buffer_))

/* What a generation has in front of the reader. Guarded by tracer.lock. */
struct pending {
    uint64_t generation;
    uint64_t began_ns; /* CLOCK_MONOTONIC */
    struct trail_buffer_ *first, *last;
    size_t buffers;
    bool complete; /* nothing more comes */
    bool spoiled;  /* something of it was given up: nothing of it is handed out */
    bool started;  /* some of it was handed out */
    bool gap;      /* what came before it was given up */
    bool ended;    /* 1.26: its last byte was handed out */
};

#define MAX_PENDING 256

/* MARK: The tracer */

/* There is one: by what belongs together, not by size. */
struct tracer { /* NOLINT(clang-analyzer-optin.performance.Padding) */
    /* Read by every event; changed by start, stop and advance only. */
    uint64_t generation;       /* atomic; 0: off */
    uint64_t first_generation; /* of the session */
    int format;
    bool v2;
    bool alloc_free;
    bool fence; /* no asymmetric barrier: sections fence themselves */
    trail_unwinder unwinder;
    unsigned max_frames;
    struct clock clock;
    const trail_host *host;
    char maker[MAKER_LINE]; /* the line that names what made the trace */

    /* Tables, by generation & 1 (v1: 0). */
    struct table stacks[2], strings[2];
    bool has_constants[2]; /* the strings that most events name are in it */

    /* What readers must be told once in a generation, by the first thread that can (§7.6, §7.7). */
    uint64_t announced; /* atomic: the newest generation in which it was */
    unsigned procs;     /* atomic: number of Ps, 0: not known */
    uint64_t heap_goal; /* atomic */
    bool gc_active;     /* guarded by gc */
    bool gc_told;       /* of the session: a GCBegin or GCActive was written */
    /* guarded by gc: in this generation readers know whether one is under way */
    uint64_t gc_announced;
    uint64_t gc_sequence; /* guarded by gc */
    pthread_mutex_t gc;
    /* the moment in which the generation changes; guards stopped_worlds */
    pthread_mutex_t switching;
    unsigned stopped_worlds;

    /* Sessions. Guarded by control. */
    uint64_t last_generation; /* the newest that was begun, also when it is over */
    bool active; /* a session is on, or has failed and is not completed; also under lock */
    pthread_mutex_t control;
    pthread_mutex_t threads;
    pthread_key_t thread_exits; /* its destructor ends threads that were not told to end */
    trail_m *ms;                /* guarded by threads */
    trail_p *ps;                /* guarded by threads */

    /* v1: events of threads without a P (§2.3). */
    pthread_mutex_t no_proc;
    struct trail_writer_ no_proc_writer;
    uint64_t start_ticks, start_ns;
    uint64_t timer_goroutines[64]; /* atomic count in front */
    unsigned timers;

    /* Buffers. */
    pthread_mutex_t lock;
    pthread_cond_t room;    /* a buffer came back, or nobody must wait any more */
    pthread_cond_t changed; /* there is something for the reader */
    trail_options options;
    struct trail_buffer_ *free;
    struct trail_buffer_ *reserve; /* for the end of a trace, when the system gives nothing */
    size_t reserved;
    size_t buffers, limit; /* that exist, and may */
    struct pending pending[MAX_PENDING];
    size_t first_pending, pendings;
    bool urgent;       /* a generation or trace is being ended: nobody waits for memory */
    bool failed;       /* it ended by itself, for want of memory */
    trail_stats stats; /* the rare ones; counted with atomics */

    trail_error error; /* of the trace; guarded by lock */
};

extern struct tracer tracer;

/* A trace of this tracer's own; trail_enabled() is true as well while annotations go elsewhere. */
static inline bool trace_is_on(void)
{
    return __atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != 0;
}

/* The value of trail_tracing_ with a trace on or not. */
uint32_t tracing_bits(bool on);
/* Locks, clock, fork handlers: once a process, before anything else. */
void tracer_init(void);

/* MARK: Buffers and what is pending (queue.c) */

/* A buffer for `generation`, as the options say when there is none; NULL: give the event up. */
struct trail_buffer_ *queue_buffer(uint64_t generation);

/* Sets buffers aside for the end of the trace; false: there is no memory. */
bool queue_reserve(void);

/* Hands a full buffer over; its generation's `pending` takes it. */
void queue_put(struct trail_buffer_ *buffer);

/* A generation begins; false if too many wait for the reader already. */
bool queue_open(uint64_t generation);
/* Takes back a generation that was opened and has not begun. */
void queue_withdraw(uint64_t generation);
void queue_complete(uint64_t generation);
void queue_spoil(uint64_t generation);
bool queue_spoiled(uint64_t generation);

/* Everything goes: after a trace that nobody reads any more. */
void queue_clear(void);

/* While set, an emitter that needs a buffer does not wait and may exceed the limit. */
void queue_urgent(bool urgent);

/* MARK: Sessions (control.c, generation.c, v1_session.c) */

/* `frame` is that of the public function that was called: its unwinder is tried there. control is held. */
bool session_begin(const trail_options *options, uintptr_t frame, trail_error *err);
/* Ends it; what is pending is complete after it. */
void session_end(void);

void v1_session_begin(void);
void v1_session_end(void);
void v2_session_begin(void);
void v2_session_end(void);
/* Ends the generation; control is held. */
void v2_advance(void);

/* Waits until every M was seen outside of its section once. `threads` is held. */
void wait_for_sections(void);

/* MARK: Threads (thread.c) */

void thread_exited(void *m);
void threads_after_fork(void);
/* A new P joins the list (proc.c). `threads` is held. */
void proc_register(trail_p *p, int32_t id);

/* Counts one up. */
static inline void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Fills *err; NULL is fine. Returns false. */
bool record_fail(trail_error *err, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
