/*
 * The tracer, one per process: what the files of this folder share, and the protocol between the
 * threads that write events, the thread that starts, stops and ends generations, and the one that
 * reads.
 *
 * Sections. Every call of a thread with an M is a section: m->busy_ is set, the generation is read,
 * states change and events are written, and busy_ is cleared. A thread that changes the generation
 * stores the new one, runs a barrier on all CPUs (barrier.h), and waits until it has seen every M
 * not busy: all sections of the old generation are then over, and no new one can begin.
 * docs/models/section.pml models this protocol with its store buffers.
 *
 * Held. A v1 trace begins with a snapshot of all states, for which the thread that starts it holds
 * the others: while `held` is set and the generation is 0, a scheduler's call clears busy_ and
 * waits. Annotations see that nothing is recorded, so that a signal handler never waits.
 *
 * Generations. `generation` is 0 while the tracer is off. It grows by one with every generation of
 * v2 and every trace of v1, and no value recurs, so that "in this trace" means "not below
 * first_generation".
 *
 * States. A trail_state_ is generation << 3 | state: the state of a goroutine or P in the trace,
 * and the generation in which it was last written. The thread that first changes it in a generation
 * claims it by compare-and-swap and writes the status event; the thread that ends the generation
 * claims those that no other did (generation.c, docs/models/status.pml).
 *
 * Locks, in the order in which they may be taken: control (start, stop, advance, one at a time),
 * ps_lock (the list of Ps), trail_m.lock_ (closing a generation for it, and its end), walk, no_proc
 * and others of event calls, lock (buffers and pending generations). A writing thread takes `lock`
 * once per buffer, and no other lock in the common events; nor does a thread that begins or ends
 * (roster.h).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/record.h>

#include "host/clock.h"
#include "tracer/table.h"
#include "wire/maker.h"

/* MARK: Buffers */

/*
 * Powers of two. A writer begins with the smallest and doubles with every buffer that it fills, so
 * that a quiet thread costs a page and a busy one takes a lock once per 64 KiB.
 */
#define BUFFER_SIZE    65536 /* the largest */
#define BUFFER_MIN     4096  /* the smallest; larger pages have larger ones */
#define BUFFER_CLASSES 5

/* Whether a buffer's memory belongs to the queue or to a writer, where it is free or in use. */
enum owner { OWNER_QUEUE, OWNER_WRITER, OWNER_WRITER_FREE };

struct trail_buffer_ {
    struct trail_buffer_ *next;
    uint64_t generation;
    uint32_t used;      /* bytes of data in a full buffer */
    uint32_t length_at; /* v2: offset of the open batch's size; 0: no batch is open */
    uint32_t size;      /* with this header */
    uint32_t owner;     /* atomic: enum owner */
    uint8_t data[];
};

/* Bytes of data that the largest buffer holds. */
#define BUFFER_CAPACITY (BUFFER_SIZE - sizeof(struct trail_buffer_))

static inline uint8_t *buffer_end(struct trail_buffer_ *buffer)
{
    return (uint8_t *)buffer + buffer->size;
}

/* Returns the number of bytes that fit after the write position. */
static inline size_t writer_room(const struct trail_writer_ *writer)
{
    return (size_t)(buffer_end(writer->buffer) - writer->at);
}

/* The generation of an M before its first section in a trace; 0 means that the tracer is off. */
#define NO_GENERATION UINT64_MAX

/* An unread generation. Guarded by tracer.lock. */
struct pending {
    uint64_t generation;
    uint64_t began_ns; /* CLOCK_MONOTONIC */
    struct trail_buffer_ *first, *last;
    size_t bytes;  /* sizes of these buffers */
    bool complete; /* no more buffers will follow */
    bool spoiled;  /* a buffer was dropped: none of it is handed out */
    bool started;  /* some of it was handed out */
    bool gap;      /* the preceding generation was dropped */
    bool ended;    /* format 26: its last byte was handed out */
};

#define MAX_PENDING 256

/* MARK: The tracer */

/* One instance: fields are ordered by use, not by size. */
struct tracer { /* NOLINT(clang-analyzer-optin.performance.Padding) */
    /* Read by every event; changed only by start, stop and advance. */
    uint64_t generation;       /* atomic; 0: off */
    uint64_t first_generation; /* of the session */
    int format;
    bool v2;
    bool alloc_free;
    bool fence;            /* membarrier is missing: sections have their own fence */
    bool held;             /* atomic: scheduler's calls wait; annotations are off */
    const trail_m *holder; /* atomic: the M whose calls do not wait; may be NULL */
    trail_unwinder unwinder;
    unsigned max_frames;
    struct clock clock;
    trail_host host; /* a copy */
    bool walked;     /* in this session, the host has listed its goroutines; guarded by control */
    /* atomic: exit() was called. What the host's callbacks and goroutines use may be gone. */
    bool exiting;
    char maker[MAKER_LINE]; /* the line that names what made the trace */

    /* Indexed by generation & 1 (v1: 0). */
    struct table stacks[2], strings[2];
    bool has_constants[2]; /* the strings that most events use are interned */

    /* Written once per generation, by the first thread that can (§7.6, §7.7). */
    uint64_t announced; /* atomic: the newest generation in which they were written */
    unsigned procs;     /* atomic: number of Ps, 0: unknown */
    uint64_t heap_goal; /* atomic */
    bool gc_active;     /* guarded by gc */
    bool gc_recorded;   /* in this session: a GCBegin or GCActive was written */
    /* guarded by gc: the newest generation with a GCBegin or GCActive */
    uint64_t gc_announced;
    uint64_t gc_sequence; /* guarded by gc */
    pthread_mutex_t gc;
    /* guards stopper, stopped_on and the change of the generation */
    pthread_mutex_t switching;
    /*
     * atomic: which goroutine has stopped the world in this session, or the complement of the ID of
     * a thread that ran none (v1); 0: none.
     */
    uint64_t stopper;
    const trail_p *stopped_on; /* format 7: its P */
    /*
     * Held while the loader's list of modules is walked, and by a thread that forks: glibc does not
     * reset the lock of that list in the child, which would wait forever if it was held. Recursive,
     * for a signal handler that forks during the walk.
     */
    pthread_mutex_t walk;

    /* Sessions. Guarded by control. */
    uint64_t last_generation; /* the newest generation begun, even if it is over */
    bool active; /* a session is on, or has failed and is not complete; also under lock */
    pthread_mutex_t control;
    pthread_mutex_t ps_lock;
    pthread_key_t thread_exits; /* its destructor handles threads that exit without trail_m_exit */
    trail_p *ps;                /* atomic: any thread may add one; the rest is guarded by ps_lock */

    /* v1: events of threads without a P (§2.3). */
    pthread_mutex_t no_proc;
    struct trail_writer_ no_proc_writer;
    uint64_t start_ticks, start_ns;
    /* the first `timers` are set; guarded by gc */
    uint64_t timer_goroutines[64];
    unsigned timers;

    /* Buffers. */
    pthread_mutex_t lock;
    pthread_cond_t room;    /* a buffer is free, or waits must end */
    pthread_cond_t changed; /* the reader has something to do */
    trail_options options;
    size_t smallest;      /* size of a writer's first buffer */
    size_t queued, limit; /* bytes of the unread buffers, and their maximum */
    struct trail_buffer_ *free[BUFFER_CLASSES];
    size_t free_bytes; /* of all free lists */
    uint8_t *slab;     /* the rest of a mapping of BUFFER_SIZE, for buffers of the smallest size */
    size_t slab_left;
    /*
     * Buffers of BUFFER_SIZE for the end of generations when the system has no memory; how many
     * exist and should exist.
     */
    struct trail_buffer_ *reserve;
    size_t reserved, to_reserve;
    size_t generation_reserve; /* those for the end of this generation; guarded by control */
    struct pending pending[MAX_PENDING];
    size_t first_pending, pendings;
    bool reader_idle;  /* the reading thread waits, and has seen no buffer for a while */
    bool urgent;       /* a generation or trace is being ended: no thread waits for memory */
    bool failed;       /* atomic: the trace ended by itself, for lack of memory */
    trail_stats stats; /* rare events, counted with atomics */

    trail_error error; /* of the trace; guarded by lock */
};

extern struct tracer tracer;

/* Whether this tracer is on; trail_enabled() is also true while annotations go elsewhere. */
static inline bool trace_is_on(void)
{
    return __atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != 0;
}

/*
 * For a call that has just stored a number with which traces begin: returns whether it must also
 * write an event. If a start has read the old number, the call is held or the trace is on. `held`
 * is loaded first, because it is cleared after the generation is stored.
 */
static inline bool number_needs_event(void)
{
    /* Pairs with the barrier in hold_threads. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&tracer.held, __ATOMIC_ACQUIRE) || trace_is_on();
}

static inline bool is_exiting(void)
{
    return __atomic_load_n(&tracer.exiting, __ATOMIC_ACQUIRE);
}

/* Returns the host's callbacks, without those that may not be called now; never NULL. */
const trail_host *live_host(void);

/* Returns the value of trail_tracing_ with a trace on or off. */
uint32_t tracing_bits(bool on);
/* Initializes locks, clock and fork handlers, once per process, before anything else. */
void tracer_init(void);

/*
 * Registers the handler of exit(): when a session starts, and after its first walk of the host's
 * goroutines, because a callback may create the objects that it uses when it is called first.
 * control is held.
 */
void tracer_watch_exit(void);

/* MARK: Buffers and what is pending (queue.c) */

/*
 * Returns a buffer with room for `need` bytes: the writer's own if it is free, otherwise one of the
 * queue, acting on trail_options.when_full at the limit. NULL: the event is lost. `filled` is the
 * size of the buffer that the writer has just filled; 0: none.
 */
struct trail_buffer_ *queue_buffer(const struct trail_writer_ *writer, uint64_t generation,
                                   size_t filled, size_t need);

/* Gives a writer a buffer of its own, in BUFFER_MIN bytes that stay. */
void writer_own(struct trail_writer_ *writer, void *memory);

/* In the child of a fork: empties the writer. */
void writer_after_fork(struct trail_writer_ *writer);

/* Frees a buffer that is neither pending nor in a list. */
void buffer_unmap(struct trail_buffer_ *buffer);

/* Buffers that the end of any generation needs: samples, statuses, the first batch of the next. */
#define RESERVE_GENERATION 8

/*
 * Reserves `n` more buffers for the end of generations; false, and none, if there is no memory.
 * Only the thread between queue_urgent(true) and queue_urgent(false) uses them.
 */
bool queue_reserve(size_t n);
/* Releases `n` reserved buffers. */
void queue_unreserve(size_t n);

/* Hands a full buffer over to its generation's `pending`. */
void queue_put(struct trail_buffer_ *buffer);

/* Begins a generation; false if too many are unread. */
bool queue_open(uint64_t generation);
/* Removes a generation that was opened but not begun. */
void queue_withdraw(uint64_t generation);
void queue_complete(uint64_t generation);
void queue_spoil(uint64_t generation);
bool queue_spoiled(uint64_t generation);

/* Frees all buffers after a trace that will not be read further. */
void queue_clear(void);

/* While set, threads that need a buffer do not wait and may exceed the limit. */
void queue_urgent(bool urgent);

/* MARK: Sessions (control.c, generation.c, v1_session.c) */

/* Starts a session; the unwinder is tried on `frame`, the public function's. control is held. */
bool session_begin(const trail_options *options, uintptr_t frame, trail_error *err);
/* Ends the session; everything pending is complete afterwards. control is held. */
void session_end(void);
/* Ends the trace early: the system has no memory. The reading thread completes it. */
void session_lacks_memory(void);

void v1_session_begin(void);
void v1_session_end(void);
void v2_session_begin(void);
void v2_session_end(void);
/*
 * Ends the generation and begins the next. Returns false if the world stays stopped, too many
 * generations are unread, or the trace has ended by itself. control is held.
 */
bool v2_advance(void);

/* Holds all other threads outside of sections, or releases them. */
void hold_threads(bool hold);

/* Waits until every M has been outside of a section once. */
void wait_for_sections(void);

/* MARK: Collections (gc.c) */

/* Whether a collection that the session has recorded is under way, without an event in this
 * generation. */
bool gc_is_unannounced(uint64_t generation);

/* Whether the calling thread's goroutine has stopped the world: no generation can end. */
bool gc_has_stopped_world(void);

/* MARK: Threads (thread.c) */

void thread_exited(void *inner);
/* Whether the calling thread is inside a call that writes, that is, in a callback of the host. */
bool thread_is_in_call(void);
/* Whether its M is being set up or removed. */
bool thread_is_changing(void);
void threads_after_fork(void);
/* Returns a P of the library that is always idle. ps_lock is held. */
trail_p *threads_spare_proc(void);

/* MARK: Ps (proc.c) */

/*
 * Initializes an inner P for the host's `outer`, or for the library itself, and adds it to the
 * list. Takes no lock.
 */
void proc_register(trail_p *p, trail_p *outer, int32_t id);

/* Returns the newest P, from which next_ leads to all others. ps_lock is held. */
static inline trail_p *procs_first(void)
{
    /* Pairs with the exchange in proc_register. */
    return __atomic_load_n(&tracer.ps, __ATOMIC_ACQUIRE);
}

/* Increments a counter. */
static inline void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Counts a call for which the format has no event. */
static inline void leave_out(trail_left_out what)
{
    count(&tracer.stats.not_expressible);
    count(&tracer.stats.left_out[what]);
}

/* Fills *err, which may be NULL. Returns false. */
bool record_fail(trail_error *err, trail_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
