/*
 * The threads of the program, each with the ops that the model has not taken yet: what the thread
 * did, in the order of its time. A thread is found by its serial, by its slot in the area, by its
 * handle (pthread_t) and by its TID; of threads that had the same handle or TID the newest is
 * found.
 *
 * A thread lives from its slot's first use until the feed has read its end and the model has
 * written it.
 */
#ifndef TRAIL_COLLECT_THREADS_H
#define TRAIL_COLLECT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idmap.h"
#include "collect/area.h"
#include "collect/oncpu.h"
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
    OP_NOTHING /* no event: a place for a wait that may turn out to be there */
};

struct op {
    uint64_t time; /* ticks */
    enum op_kind kind;
    uint8_t wait;
    uint8_t flags;
    uint32_t detail;
    uint64_t stack; /* of the area */
    /* block: object2 is where the lock's holder took it. wake: the thread that woke it, with the
     * time of the release, 0 if that was written before the two were matched */
    uint64_t object, object2;
    uint64_t wait_number; /* block, wake: which wait of the thread */
    uint64_t pc;          /* used if there is no stack */
    const char *name;     /* of the descriptor; NULL: not known */
    struct release *release;
    uint32_t text;       /* annotations: a name in the area */
    uint8_t record;      /* enum shm_kind */
    bool unmatched;      /* wake: the release is not looked for yet */
    char *message;       /* of a log; owned by the op */
    struct given *given; /* to a thread that is created; NULL: nothing; owned by the op */
};

/* What a thread of libstdc++ is to run: see SHM_CREATED and SHM_RUNS. */
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

/* What the thread's records have shown so far. In this order only, each once; a record that does
 * not fit is damage. */
enum life { LIFE_ANNOUNCED, LIFE_STARTED, LIFE_EXITED };

/* What feed.c, releases.c and open_stacks.c keep of a thread. */
struct thread_feed {
    enum life life;
    struct area_cursor cursor;
    struct given given; /* to the thread that it creates next */
    uint64_t wait_numbers;
    uint64_t written_at;   /* the start of the last step that did not find it writing a record */
    uint64_t open_time;    /* of the open call that is an op already */
    uint64_t waited_until; /* the end of its last wait */
    uint64_t sleep_time;   /* of the open sleep that was seen last, */
    uint64_t sleep_over;   /* ... and when it is over; UINT64_MAX: not known; 0: it is noted */
    uint64_t stack_time;   /* of the open call whose stack was read from outside, */
    uint32_t stack_number; /* ... which is this one; 0: it could not be read */
    uint64_t guards_time;  /* of the open call in which the thread's locks were looked for, */
    struct guarded_lock *guards; /* ... and were these (stack_guards.h) */
    size_t guard_count;
    uint64_t owner_time;           /* of the open call for whose lock an owner was found, */
    uint64_t owner;                /* ... which is the thread with this serial */
    uint64_t name_time;            /* of the open call whose object was read from outside, */
    const char *name;              /* ... and is called this; NULL: it could not be read */
    struct shm_record polled;      /* the last SHM_POLLED, if the next record is its wait */
    struct shm_record interrupted; /* the last SHM_INTERRUPTED */
    bool ended;                    /* nothing more comes */
    char *text;                    /* of the log whose pieces are being read */
    size_t text_size;
    uint64_t holds; /* the slot's counters when they were read last */
    uint32_t short_waits;
};

/* A region that is open: its end has the same task and text. */
struct open_region {
    uint64_t task;
    uint32_t text; /* the number of its name */
};

/* What model.c, states.c, ops.c and annotations.c keep of a thread: its goroutine. */
struct goroutine {
    bool counted; /* among those that are alive */
    enum g_state state;
    int64_t since_ns;       /* in its state */
    struct wait_site *site; /* of the wait that it is in */
    uint64_t waker;         /* the serial of the thread whose release has ended it; 0: not known */
    uint64_t waker_stack;
    int64_t waited_ns; /* for the same before the thread was woken in vain */
    uint64_t
        holder_pc;    /* where the lock was taken by the thread that held it when the wait began */
    uint64_t wait_pc; /* used if the wait has no stack */
    uint8_t wait;
    uint64_t current_wait;
    bool in_call;   /* between a wait's first op and its last */
    struct op call; /* that first op */
    /* Readers reject the end of a region that is not the innermost one. */
    struct open_region *regions;
    size_t region_count, region_room;
};

/* A thread: an M and the goroutine that never leaves it. */
struct thread {
    struct written_thread
        written;               /* first: see state_any_running; `m` is 0 before its first event */
    uint64_t serial;           /* the goroutine's ID */
    struct collect *of;        /* its program's */
    uint64_t tid;              /* in our PID namespace; 0: not known */
    uint64_t handle;           /* pthread_t */
    uint64_t created, started; /* ticks; created 0: not known */
    struct thread *older;      /* that had the handle before */
    uint32_t slot;             /* 0: none any more */
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
    int64_t heap; /* the slot's counter, as far as it is among the heap's moves; as of heap_at */
    uint64_t heap_at; /* ticks */
};

/* Owned by threads.c. Zero-initialised is empty. */
struct threads {
    struct idmap by_serial;
    struct idmap by_handle, by_tid; /* the newest thread that had it */
    struct thread *in_slot[SHM_THREADS];
    struct thread *dead; /* the model is done with them */
    /* The program counts its threads from 1: the goroutines' IDs are behind `base`, and below
     * `limit`. */
    uint64_t base, limit, last_serial;
};

/* A thread in a slot, with the serial that it has in the area; NULL when memory is out. */
struct thread *thread_new(struct collect *c, uint32_t slot, uint32_t number);

/* The thread with a serial, of any program of the trace; NULL: there is none. */
struct thread *thread_of(const struct collect *c, uint64_t serial);

/* The program's thread in a slot, or with a TID; NULL: there is none. */
struct thread *thread_in_slot(const struct collect *c, uint32_t slot);
struct thread *thread_with_tid(const struct collect *c, uint64_t tid);

/* Returns the TID in our namespace. The kernel no longer knows a thread that has ended: it keeps
 * the recorded number. */
uint64_t thread_tid(const struct collect *c, uint32_t tid);

/*
 * Returns the thread that a join waits for: of those with the handle the newest that started no
 * later than `time`. A wait from before the recording has the thread's TID. NULL: not known.
 */
struct thread *thread_joined(const struct collect *c, uint64_t object, uint64_t time);

/* Makes the thread the one that its handle and its TID find. */
void thread_identify(struct collect *c, struct thread *thread);

/* The serial for the whole trace of one in the area; 0: there can be none. */
uint64_t thread_serial(const struct collect *c, uint64_t serial);

/* The thread has left its slot. */
void thread_leave_slot(struct collect *c, struct thread *thread);

/* The model is done with the thread: it is freed when the feed is, too. */
void thread_is_dead(struct collect *c, struct thread *thread);

/* All threads, in no order: *at is 0 for the first. NULL: no more. */
struct thread *threads_next(const struct collect *c, size_t *at);
size_t threads_count(const struct collect *c);

/* Drops the ops that are left, and counts them as lost. */
void threads_drop_ops(struct collect *c);

/* Frees the threads that both the feed and the model are done with. */
void threads_sweep(struct collect *c);

void threads_dispose(struct collect *c);

/* MARK: A thread's ops */

/* Appends an op; NULL when memory is out. */
struct op *op_add(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/*
 * Inserts an op that may be earlier than what the thread's signal handlers did meanwhile; not
 * before the watermark. NULL when memory is out.
 */
struct op *op_insert(struct collect *c, struct thread *thread, enum op_kind kind, uint64_t time);

/* Removes the thread's first op, which the caller owns from now on. There is one. */
struct op op_take(struct thread *thread);
/* Frees what the op owns. */
void op_free(struct op *op);

/* The ops that are in the ring: `i` is below ops.count. */
static inline struct op *op_in_ring(const struct thread *thread, size_t i)
{
    return &thread->ops.at[(thread->ops.first + i) % thread->ops.room];
}

/* The number of the op that comes next; the op with a number, NULL if it has left the ring. */
uint64_t op_number(const struct thread *thread);
struct op *op_at(struct thread *thread, uint64_t number);

#endif
