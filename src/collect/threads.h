/*
 * The threads of the program, each with the ops that the model has not taken yet: what the thread
 * did, in order of time. A thread is found by its serial, by its slot in the area, by its handle
 * (pthread_t) and by its TID; the last two find the newest thread that has had them.
 *
 * A thread lives from its slot's first use until the feed has read its end and the model has
 * written it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "collect/area.h"
#include "collect/oncpu.h"
#include "collect/open_stacks.h"
#include "collect/slow.h"
#include "collect/stack_guards.h"
#include "write/thread_writer.h"

struct collect;
struct release;
struct woken;
struct wait_site;

/* MARK: Ops */

/* A flag of OP_GONE: the process has executed another program. */
#define OP_EXECUTES 1

enum op_kind {
    OP_START,
    OP_CREATE,
    OP_FORK,
    OP_BLOCK,
    OP_RELEASE,
    OP_WAKE,
    OP_EXIT,
    OP_ANNOTATION,
    OP_FORGET,
    OP_GONE,   /* the program has ended, and the thread with it */
    OP_NOTHING /* no event: reserved for a wait that may turn out to exist */
};

struct op {
    uint64_t time; /* ticks */
    enum op_kind kind;
    uint8_t wait;
    uint8_t flags;
    uint32_t detail; /* as in the record; release: the serial of another thread that had the lock */
    uint64_t stack;  /* of the area */
    /* block: object2 is where the lock's holder took it. wake: the thread that woke it, and the
     * time of the release, 0 if that was written before the two were matched */
    uint64_t object, object2;
    uint64_t wait_number; /* block, wake: the number of the thread's wait */
    uint64_t pc;          /* used if there is no stack */
    const char *name;     /* of the descriptor; NULL: not known */
    struct release *release;
    uint32_t text;  /* annotations: a name in the area */
    uint8_t record; /* enum shm_kind */
    bool unmatched; /* wake: the release has not been looked up yet */
    bool final;     /* wake: if the thread sleeps again after the release, that is another wait */
    bool on_time;   /* wake: from a sleep until an absolute time */
    bool no_holder; /* block: `object2` is where the lock was first read, for its name */
    char *message;  /* of a log; owned by the op */
    struct given *given; /* to a created thread; NULL: nothing; owned by the op */
};

/* What a libstdc++ thread is to run: see SHM_CREATED and SHM_RUNS. */
struct given {
    uint64_t vtable, runs, words[3];
};

/* A ring. Ops are numbered from the thread's first. */
struct op_ring {
    struct op *at;
    size_t first, count, room;
    uint64_t taken;     /* ops that have left the ring */
    uint64_t last_time; /* of the newest */
};

/* MARK: Threads */

enum g_state { G_NONE, G_RUNNABLE, G_RUNNING, G_WAITING, G_SYSCALL, G_DEAD };

/* What the thread's records have shown so far. Only in this order, each once; a record that does
 * not fit is damage. */
enum life { LIFE_ANNOUNCED, LIFE_STARTED, LIFE_EXITED };

/* What feed.c, releases_match.c and open_stacks.c know about a thread. */
struct thread_feed {
    enum life life;
    struct area_cursor cursor;
    struct given given; /* to the thread that it creates next */
    uint64_t wait_numbers;
    uint64_t written_at;         /* the start of the last step that found it not writing a record */
    uint64_t open_time;          /* when the open call began for which there is an op */
    uint64_t waited_until;       /* the end of its last wait */
    uint64_t looked_at;          /* when the recorder last looked whether it has ended; or 0 */
    bool is_gone;                /* ... and whether it had */
    uint64_t sleep_time;         /* of the last open sleep seen, */
    uint64_t sleep_over;         /* ... and when it ends; UINT64_MAX: not known; 0: already noted */
    uint64_t stack_time;         /* of the open call whose stack was read from outside, */
    uint32_t stack_number;       /* ... its number; 0: it could not be read */
    uint64_t guards_time;        /* of the open call in which the thread's locks were looked up, */
    struct guarded_lock *guards; /* ... and the locks (stack_guards.h) */
    size_t guard_count;
    uint64_t owner_time;           /* of the open call whose lock has a known owner, */
    uint64_t owner;                /* ... the owner's serial */
    uint64_t name_time;            /* of the open call whose object was read from outside, */
    const char *name;              /* ... the object's name; NULL: it could not be read */
    struct glances *glances;       /* at its waits outside of wrapped calls; NULL: none */
    int64_t looked_ns;             /* when the last one began, even if it showed nothing */
    uint64_t within_time;          /* of the open call that waits for a lock, */
    struct unwrapped within;       /* ... and the lock */
    struct shm_record polled;      /* the last SHM_POLLED, if the next record is its wait */
    struct shm_record interrupted; /* the last SHM_INTERRUPTED */
    bool ended;                    /* nothing more will come */
    char *text;                    /* of the log whose pieces are being read */
    size_t text_size;
    uint64_t counted_at; /* when the slot's counters were last read; 0: not yet */
    uint64_t holds;      /* ... and what they were */
    uint32_t short_waits;
    uint64_t unwaited; /* ticks of its life that no short wait accounts for */
};

/* An open region: its end has the same task and text. */
struct open_region {
    uint64_t task;
    uint32_t text; /* the number of its name */
    struct slow_span slow;
};

/* What model.c, states.c, ops.c and annotations.c know about a thread: its goroutine. */
struct goroutine {
    bool counted; /* among the live threads */
    enum g_state state;
    int64_t since_ns;       /* when it entered its state */
    struct wait_site *site; /* of the wait that it is in */
    uint64_t waker;         /* the serial of the thread whose release ended the wait; 0: not
                             * known */
    uint64_t waker_stack;
    int64_t waited_ns;  /* time waited for the same object before the thread was woken in vain */
    uint64_t holder_pc; /* where the thread that held the lock when the wait began had taken it */
    uint64_t wait_pc;   /* used if the wait has no stack */
    uint8_t wait;
    uint64_t current_wait;
    bool in_call;          /* between the first op of a wait and the last */
    bool waited_in_call;   /* for the condition variable to whose mutex `call` belongs */
    struct op call;        /* that first op */
    struct slow_span slow; /* of the wait */
    /* Readers reject the end of a region that is not the innermost one. */
    struct open_region *regions;
    size_t region_count, region_room;
};

/* A thread: an M and the goroutine that never leaves it. */
struct thread {
    struct written_thread
        written;               /* first: see state_any_running; `m` is 0 before its first event */
    uint64_t serial;           /* the goroutine's ID */
    struct collect *of;        /* its program's collector */
    uint64_t tid;              /* in our PID namespace; 0: not known */
    uint64_t handle;           /* pthread_t */
    uint64_t created, started; /* ticks; created 0: not known */
    struct thread *older;      /* the previous thread that had the handle */
    uint32_t slot;             /* 0: it has left its slot */
    uint64_t routine;
    struct given given;
    uint64_t first_stack; /* of its ops: shows what a runtime's trampoline calls */
    char name[16];
    struct op_ring ops;
    struct woken *joiners; /* the waits that its end ends */
    struct thread *next_dead;
    struct thread_feed feed;
    struct oncpu oncpu;
    struct goroutine g;
    int64_t heap; /* the part of the slot's counter that was among the heap's moves at heap_at */
    uint64_t heap_at; /* ticks */
};

/* Owned by threads.c. Zero-initialised: empty. */
struct threads {
    struct idmap by_serial;
    struct idmap by_handle, by_tid; /* the newest thread that has had it */
    struct thread **in_slot;        /* grows on demand: most processes of a build have one thread */
    size_t slot_room;
    struct thread *dead; /* the model is done with them */
    /* The program counts its threads from 1: the goroutines' IDs follow `base`, and are below
     * `limit`. */
    uint64_t base, limit, last_serial;
};

/* Returns a new thread for a slot, with its serial in the area; NULL if out of memory. */
struct thread *thread_new(struct collect *c, uint32_t slot, uint32_t number);

/* Returns the thread with a serial, of any program of the trace; NULL: none. */
struct thread *thread_of(const struct collect *c, uint64_t serial);

/* Returns the program's thread in a slot, or with a TID; NULL: none. */
struct thread *thread_in_slot(const struct collect *c, uint32_t slot);
struct thread *thread_with_tid(const struct collect *c, uint64_t tid);

/* Returns the TID in our namespace, or the recorded one for a thread that has ended, which the
 * kernel no longer knows. */
uint64_t thread_tid(const struct collect *c, uint32_t tid);

/*
 * Returns the thread that a join waits for: the newest with the handle that started no later than
 * `time`. A wait from before the recording has the thread's TID. NULL: not known.
 */
struct thread *thread_joined(const struct collect *c, uint64_t object, uint64_t time);

/* Makes its handle and its TID find this thread. */
void thread_identify(struct collect *c, struct thread *thread);

/* Returns the trace-wide serial for a serial in the area; 0: impossible. */
uint64_t thread_serial(const struct collect *c, uint64_t serial);

/* Called when the thread has left its slot. */
void thread_leave_slot(struct collect *c, struct thread *thread);

/* The model is done with the thread, which is freed once the feed is, too. */
void thread_is_dead(struct collect *c, struct thread *thread);

/* Iterates over all threads, unordered: *at is 0 for the first. NULL: no more. */
struct thread *threads_next(const struct collect *c, size_t *at);
size_t threads_count(const struct collect *c);

/* Drops the remaining ops, and counts them as lost. */
void threads_drop_ops(struct collect *c);

/* Frees the threads that both the feed and the model are done with. */
void threads_sweep(struct collect *c);

void threads_dispose(struct collect *c);

/* MARK: A thread's ops */

/* Appends an op; NULL if out of memory. */
struct op *op_add(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/*
 * Inserts an op that may be earlier than what the thread's signal handlers have recorded; not
 * before the watermark. NULL if out of memory.
 */
struct op *op_insert(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/* Removes and returns the thread's first op, which the caller then owns. There must be one. */
struct op op_take(struct thread *thread);
/* Frees what the op owns. */
void op_free(struct op *op);

/* The ops in the ring: `i` is below ops.count. */
static inline struct op *op_in_ring(const struct thread *thread, size_t i)
{
    return &thread->ops.at[(thread->ops.first + i) % thread->ops.room];
}

/* The number that the next op will have; the op with a number, NULL if it has left the ring. */
uint64_t op_number(const struct thread *thread);
struct op *op_at(struct thread *thread, uint64_t number);
