/* What the collector knows: shared by the files that take records, name things and write the trace. */
#ifndef TRAIL_COLLECT_STATE_H
#define TRAIL_COLLECT_STATE_H

#include "base/arena.h"
#include "base/idmap.h"
#include "collect/collect.h"
#include "collect/descriptors.h"
#include "collect/oncpu.h"
#include "collect/process.h"
#include "collect/stack_copy.h"
#include "collect/ticks.h"
#include "write/v2_writer.h"

/* MARK: Ops: what a thread did, in the order of its time */

enum op_kind {
    OP_START,
    OP_CREATE,
    OP_BLOCK,
    OP_RELEASE,
    OP_WAKE,
    OP_EXIT,
    OP_ANNOTATION,
    OP_FORGET,
    OP_NOTHING
};

/* A thread that a release lets in: at which of its waits. */
struct woken {
    struct woken *next;
    uint64_t serial, wait_number;
};

/* A release, from its record until it was written and nobody can be matched with it any more. */
struct release {
    uint64_t time;
    uint64_t object;
    uint64_t serial; /* of the thread */
    uint32_t number;
    uint64_t stack;
    uint32_t skip; /* taken: no release before this one is left over */
    bool all, taken, written;
    struct woken *woken;
    struct release *newer;
};

struct op {
    uint64_t time; /* ticks */
    enum op_kind kind;
    uint8_t wait;
    uint8_t flags;
    uint32_t detail;
    uint64_t stack;           /* stack_key */
    uint64_t object, object2; /* block: object2 is where the lock was taken by who had it */
    uint64_t wait_number;     /* block, wake: which wait of the thread */
    uint64_t pc;              /* where there is no stack */
    const char *name;         /* of the descriptor; NULL: not known */
    struct release *release;
    uint32_t text;  /* annotations: a name in the area */
    uint8_t record; /* enum shm_kind */
    char *message;  /* of a log; the op's own */
};

/* MARK: Threads: M and goroutine in one */

enum g_state { G_NONE, G_RUNNABLE, G_RUNNING, G_WAITING, G_SYSCALL, G_DEAD };

/* What its records have said so far. In this order only, each once; what does not fit is damage. */
enum life { LIFE_ANNOUNCED, LIFE_STARTED, LIFE_EXITED };

/* A region that is open: its end has the same. */
struct open_region {
    uint64_t task;
    uint32_t text; /* the number of its name */
};

struct thread {
    uint64_t serial; /* the goroutine's ID */
    uint64_t tid;    /* the kernel's number of it, in our PID namespace; 0: not known */
    uint64_t m;      /* the M's ID, from its first event on; 0: it has had none */
    enum life life;
    bool counted;    /* among those that live */
    uint64_t handle; /* pthread_t */
    uint64_t started;
    struct thread *older; /* that had the handle before */
    uint32_t slot;        /* 0: none any more */
    struct area_cursor cursor;
    uint64_t last_time; /* of its ops */
    /* Ops that are not written yet: a ring. */
    struct op *ops;
    size_t ops_first, ops_count, ops_room;
    uint64_t ops_written; /* how many are gone from the ring */
    uint64_t wait_numbers;
    uint64_t open_time;    /* of the open call that has become an op already */
    uint64_t waited_until; /* the end of its last wait */
    uint64_t stack_time;   /* of the open call whose stack was read from outside, */
    uint32_t stack_number; /* ... which is this one; 0: it could not be read */
    bool ended;            /* nothing more comes */
    struct woken *joiners;
    char *text; /* of the log whose pieces are coming */
    size_t text_size;
    /* Regions that are open: readers give up at an end that is not the innermost one's. */
    struct open_region *regions;
    size_t region_count, region_room;
    struct thread *next_dead;
    /* The model's. */
    enum g_state state;
    uint64_t g_seq;
    int64_t proc; /* -1: none */
    uint64_t routine;
    uint64_t callable;    /* see SHM_STARTED */
    uint64_t first_stack; /* of its ops: tells what a runtime's trampoline calls */
    char name[16];
    int64_t since_ns;       /* in its state */
    struct wait_site *site; /* of the wait that it is in */
    uint64_t waker_stack;
    uint64_t wait_pc; /* where the wait has no stack */
    uint8_t wait;
    uint64_t current_wait;
    struct oncpu oncpu;
    bool in_call;   /* between a wait's first op and its last */
    struct op call; /* that first op */
    int64_t heap;   /* what of its slot's is among the moves */
    uint64_t holds; /* of its slot, as they were last seen */
    uint32_t short_waits;
};

struct proc {
    uint64_t seq;
    bool known;
    struct thread *running; /* NULL: none */
};

/* Waits at one place, for the summary. */
struct wait_site {
    uint64_t stack; /* stack_key */
    uint8_t wait;
    uint64_t count;
    int64_t total_ns, longest_ns;
    uint64_t waker_stack; /* of the longest */
};

/* A stack of the area in the trace. */
struct named_stack {
    uint64_t generation, id;
    struct v2_frame *frames; /* in the arena; texts too */
    size_t count;
};

struct module {
    trail_module map;
    bool preload; /* our own library: its frames are not shown */
    bool openmp;  /* a run-time library of OpenMP: not shown within the function that called it */
    bool gone;    /* unloaded: other code may lie there */
};

/* A wait that has ended, and whose release is to be found. */
struct ended_wait {
    struct shm_record record;
    uint64_t serial, number; /* the thread, and which of its waits */
    uint64_t op;             /* of a condition: the op that may become the wait for the mutex */
};

/* A CPU sample, from when it was taken to when the model knows what its thread was then. */
struct pending_sample {
    int64_t ns;
    uint64_t tid;
    uint64_t *pcs;
    size_t count;
};

/* The live heap changed by so much. */
struct heap_move {
    uint64_t time; /* ticks */
    int64_t bytes;
};

struct heap {
    struct heap_move *moves;   /* from the first to the last that is not written */
    size_t first, count, room; /* moves[first], up to moves[count] */
    int64_t rest;              /* what of the area's is among them */
    int64_t live;
    int64_t told; /* the last event's value; -1: none in this generation */
};

struct collect {
    struct collect_options options;
    struct area *area;
    struct ticks *ticks; /* the options' */
    struct v2_writer *writer;
    struct arena arena;
    trail_error error;
    bool failed; /* for want of memory: error says so */

    /* When the work is to be interrupted; CLOCK_MONOTONIC, UINT64_MAX: not. See collect_is_late. */
    uint64_t until_ns;
    uint32_t work; /* steps of work since that was looked at */
    bool late;     /* it is past that time */
    bool hurried;  /* the user wants the recording to end: until_ns is soon */

    struct idmap threads; /* by serial */
    struct thread *dead;  /* which the model is done with */
    struct thread *slots[SHM_THREADS];
    struct idmap handles;        /* pthread_t to the newest thread that had it */
    struct idmap tids;           /* the kernel's number to the newest thread that had it */
    struct idmap ms;             /* an M's ID to the thread that lives on it */
    struct idmap tasks;          /* those of annotations that are open */
    struct idmap texts;          /* the name of an annotation, by its numbers */
    struct switch_list switches; /* which no thread has yet */
    struct lost_spans lost;
    struct pending_sample *samples; /* in the order of time: [first, first + count) */
    size_t sample_first, sample_count, sample_room;
    struct heap heap;
    struct unwind_files unwind_files;
    unsigned open_stacks;  /* that were read in this step */
    struct idmap releases; /* by slot and number */
    struct release *oldest_release, *newest_release;
    struct ended_wait *ended;
    size_t ended_count, ended_room;
    struct thread **queue; /* of the merge: a heap */
    size_t queue_count, queue_room;
    uint64_t end_ticks; /* when the program had ended */
    uint64_t watermark; /* ops before are written */
    uint64_t fed_at;    /* the records of before have been taken, and their waits matched */

    uint64_t holds, records; /* that all threads have told of so far */
    struct collect_rates rates;
    uint64_t rates_at;

    struct proc *procs;
    size_t proc_count, proc_room;
    int64_t begin_ns, generation_ns, last_ns;
    uint64_t generation_bytes;
    bool begun;

    /* What the process has executed: each has an area, and stacks and serials of its own. */
    uint32_t image;
    uint64_t serial_base, last_serial;
    bool refused;        /* the kernel does not let us read its memory */
    bool new_generation; /* before the next op */

    struct idmap stacks; /* stack_key to struct named_stack */
    struct idmap sites;
    struct idmap frames;  /* PC to its frames */
    struct idmap objects; /* address to its name */
    struct module *modules;
    size_t module_count, module_room;
    uint32_t modules_version;
    bool gcc_openmp, llvm_openmp; /* it has loaded this library */
    uint64_t next_frame;
    uint64_t maps_ns; /* when the kernel was asked for mappings last */

    struct descriptors *descriptors; /* NULL: none was looked at */

    uint64_t live;
    uint64_t looked_at;   /* ticks: when the threads were looked at before the last time */
    uint64_t short_ticks; /* that threads were in calls whose waits were too short to be recorded */
    int64_t moments_ns;   /* off their CPUs in such calls, and in those that nobody wraps */
    struct collect_summary summary;
};

/* A stack's number, which is its area's, for all of the trace; 0 stays 0. */
static inline uint64_t stack_key(const struct collect *c, uint32_t number)
{
    return number ? (uint64_t)c->image << 32 | number : 0;
}

/* Out of memory: nothing more is taken. */
void collect_no_memory(struct collect *c);

/* What the program told contradicts itself: it is left out. */
void collect_damage(struct collect *c);

/*
 * Whether a step of work has taken so long that signals are to be looked at, or that the end is to come now. Cheap: called
 * for each piece of the work.
 */
bool collect_is_late(struct collect *c);

/* Whether names may be looked for still, which takes the most time of all: not in the last moments of a hurried end. */
bool collect_has_time_for_names(const struct collect *c);

/* feed.c: takes all records; `last` when the program has ended. Sets c->watermark. */
void feed_all(struct collect *c, bool last);
/* The slots are those of another area from now on. */
void feed_forget(struct collect *c);
struct thread *thread_of(struct collect *c, uint64_t serial);
/* Ops that are left are not written any more: they are lost. */
void threads_drop_ops(struct collect *c);
/* Frees those that are dead, and of which nothing more comes. */
void threads_sweep(struct collect *c);
void thread_free(struct thread *thread);
void woken_free(struct woken *woken);

/* oncpu.c: gives the threads their switches before a time. */
void oncpu_feed(struct collect *c, int64_t before_ns);
/* What is next of a thread, an op or a switch; the time of it. It has one. */
bool oncpu_is_next(const struct collect *c, const struct thread *thread);
uint64_t oncpu_next_time(const struct thread *thread);
static inline bool oncpu_has_next(const struct thread *thread)
{
    return thread->ops_count || thread->oncpu.count;
}
/* Whether its next op need not be the thread's own doing at that time. */
bool oncpu_is_told_by_others(const struct thread *thread);
/* Whether a thread goes off its CPU by itself in a call that begins at `begin`, as far as is known. */
bool oncpu_sleeps(const struct collect *c, const struct thread *thread, uint64_t begin);
/* The end of the call that it is in; NULL: not known yet. */
const struct op *oncpu_wake(const struct thread *thread);
/* Whether a thread that was switched in within a call goes on from there to the call's end. */
bool oncpu_is_wake(const struct thread *thread);

/* profile.c: whether a sample was taken before a time: the first, which is the caller's to free, with its PCs. */
/* A sample that the program took itself. */
void profile_record(struct collect *c, const struct thread *thread,
                    const struct shm_record *record);
bool profile_next(struct collect *c, int64_t before_ns, struct pending_sample *sample);
void profile_free(struct collect *c);

/*
 * open_stacks.c: the number of an open call's stack; 0: it has none. What the program has not taken is read from
 * outside when the call has lasted for a while; not more than OPEN_STACKS in a step, which begins anew.
 */
uint32_t open_stack(struct collect *c, struct thread *thread, const struct area_open *open);
void open_stacks_step(struct collect *c);

/* heap.c: the thread has, or had at a time, so much. */
void heap_take(struct collect *c, struct thread *thread, uint64_t time, int64_t bytes);
/* The same of a slot's thread as it is now, and of what no thread has. */
void heap_look(struct collect *c, struct thread *thread, int64_t bytes);
void heap_look_at_rest(struct collect *c);
/* The moves of the last time are in their order from now on. */
void heap_sort(struct collect *c);
/* Whether a move before `before` is to be written: its time; the live heap is what it was then. */
bool heap_next(struct collect *c, uint64_t before, uint64_t *time);
/* Another program runs. */
void heap_forget(struct collect *c);

/* model.c: writes the ops before the watermark. */
void model_run(struct collect *c);
void model_end(struct collect *c);
void model_cut(struct collect *c);
/* All threads are gone, another program runs in the process. */
void model_exec(struct collect *c);

/* names.c */
uint64_t names_stack(struct collect *c, uint64_t key, uint64_t pc);
/* The stack that names a goroutine: the thread's name, or its start routine. */
uint64_t names_thread(struct collect *c, const struct thread *thread);
uint64_t names_routine(struct collect *c, const struct thread *thread);
uint64_t names_string(struct collect *c, const char *text);
void names_place(struct collect *c, uint64_t key, char *text, size_t size);
/* A stack that is not of the area: the trace's ID of it. */
uint64_t names_pcs(struct collect *c, const uint64_t *pcs, size_t count);
/* The module that a PC lies in, or NULL. */
const trail_module *names_module(struct collect *c, uint64_t pc);
/* An object's name, "stats_mu" or "0x7f...": stays. */
const char *names_object(struct collect *c, uint64_t address);
/*
 * The same of a lock. Who has no symbol is called after where it was first seen locked: "0x7f... (first seen locked in
 * Queue::push queue.cc:41)", by a hold that began at `pc` or, if that is not known, by a wait with the stack `key`.
 */
const char *names_lock(struct collect *c, uint64_t address, uint64_t pc, uint64_t key);
/* The object is no more; what comes to lie there is another one. */
void names_forget_object(struct collect *c, uint64_t address);
/* The stack of a lock's acquisition: its PC, within what the stack of the release has in common with it. */
uint64_t names_hold(struct collect *c, uint64_t pc, uint64_t release);
void names_modules(struct collect *c);

/* The clocks at a time of the trace, where its format has no place of its own for them. */
void names_clock(struct collect *c, int64_t ns, int64_t wall_ns);
/* PCs mean something else from now on. */
void names_forget(struct collect *c);

#endif
