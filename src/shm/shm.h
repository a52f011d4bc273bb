/*
 * What the traced program and `trail record` share: one memfd, the area, that the program maps when it
 * starts. The program writes raw records into it and does nothing else: no file, socket or thread of its own.
 * `trail record` takes them out, while the program runs and after it was killed.
 *
 *   struct shm_area
 *     header      who may write, the options, the coarse clock, free lists
 *     threads[]   a slot a thread: its chain of chunks, and the call that it is in (its open call)
 *     objects[]   a slot for the locks of one hash: how often it was released, who holds it since when
 *     stack_index[], stack_words[]   call stacks, each once; never freed
 *     modules     text: what code is mapped where (the lines of a trace's module map)
 *     chunks[]    pages of records, on the free list or in a thread's chain
 *
 *   thread - first > chunk - next > chunk - next > chunk (the thread writes here, the last)
 *
 * Only the owner of a thread's slot writes to it and its last chunk; only the collector moves `first` on and
 * frees. Each side distrusts the other: the collector checks every index, and the program never waits for it;
 * a record that has no room is counted as lost.
 *
 * Numbers that are shared are accessed with __atomic; each says which store its loads pair with.
 */
#ifndef TRAIL_SHM_SHM_H
#define TRAIL_SHM_SHM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_MAGIC   UINT64_C(0x006c696172742e31) /* "1.trail" */
#define SHM_VERSION 2

/* The environment: "pid:PID:FD:WORD", the area is /proc/PID/fd/FD, or is asked for by the word; or "path:FILE". */
#define SHM_VARIABLE  "TRAIL_SHM"
#define SHM_WORD_SIZE 32

#define SHM_THREADS      16384 /* at once; slot 0 is nobody's */
#define SHM_OBJECTS      4096
#define SHM_CHUNKS       16384 /* chunk 0 is none */
#define SHM_CHUNK_SIZE   4096
#define SHM_STACK_INDEX  (1u << 18)
#define SHM_STACK_WORDS  (1u << 22)
#define SHM_STACK_FRAMES 128
#define SHM_TEXT_BIT     (UINT64_C(1) << 32)
#define SHM_MODULES_SIZE (1u << 20)
#define SHM_DESCRIPTORS  16384 /* of higher ones nothing is told */

/* MARK: Records */

/* What a thread waits for, or has released. The collector's table (waits.def) has the words for each. */
enum shm_wait {
    SHM_NO_WAIT,
#define WAIT(name, ...) SHM_##name,
#include "shm/waits.def"
#undef WAIT
    SHM_WAITS
};

static inline bool shm_is_openmp_lock(unsigned wait)
{
    return wait == SHM_OMP_LOCK || wait == SHM_OMP_CRITICAL || wait == SHM_OMP_ORDERED;
}

/* Those that somebody holds. */
static inline bool shm_is_lock(unsigned wait)
{
    return wait == SHM_MUTEX || wait == SHM_RDLOCK || wait == SHM_WRLOCK ||
           shm_is_openmp_lock(wait);
}

enum shm_kind {
    SHM_WAITED =
        1, /* time: begin; end; object, object2 (cond: the mutex; locks: PC of who had it); release, release2; stack */
    SHM_RELEASED, /* time; end: when the hold began, 0 unknown; object; object2: PC of the acquisition */
    SHM_CREATED, /* time; object: serial of the new thread; object2: its start routine; stack */
    SHM_STARTED, /* time; object: pthread_t; object2: start routine, 0 unknown; end: vtable of what it is to run, or 0 */
    SHM_EXITED,  /* time */
    SHM_NAMED,   /* time; object, object2: 15 bytes of the name and NUL */
    /* Annotations of the program; the number of a name (struct shm_area's stacks) is in `release`. */
    SHM_TASK_BEGAN,   /* time; object: the task; object2: its parent; name; stack */
    SHM_TASK_ENDED,   /* time; object; stack */
    SHM_REGION_BEGAN, /* time; object: the task; name; stack */
    SHM_REGION_ENDED, /* as that */
    SHM_LOGGED,  /* time; object: the task; name: the category; stack; its message goes before */
    SHM_TEXT,    /* a piece of it, `flags` bytes in `end`, `object`, `object2` */
    SHM_SAMPLED, /* time; stack: where the thread was on its CPU */
    SHM_HEAP, /* time; object: what the thread has allocated and not freed (struct shm_thread's) */
    SHM_FORGOTTEN, /* time; object: a lock that is no more; what comes to lie there is another one */
    SHM_KINDS
};

#define SHM_TEXT_PIECE 24
#define SHM_TEXT_MAX   1024

enum shm_flags {
    SHM_ALL = 1,        /* released: everybody who waits, not one */
    SHM_TIMED_OUT = 2,  /* waited: it ended by its time limit or failed: nobody let it in */
    SHM_COARSE = 4,     /* released: the time that the hold began is that of the coarse clock */
    SHM_LEFT = 8,       /* waited: the call was left by longjmp, exception or cancellation */
    SHM_WITH_PLACE = 16 /* task: its name is to be completed by the place of its stack */
};

/* Times are readings of the clock that the header names. 56 bytes; fields by kind, above. */
struct shm_record {
    uint64_t time, end;
    uint64_t object, object2;
    uint32_t stack;
    uint32_t release, release2; /* numbers of releases: see struct shm_object */
    uint8_t kind;               /* enum shm_kind */
    uint8_t wait;               /* enum shm_wait */
    uint8_t flags;              /* enum shm_flags */
    uint8_t unused;
    uint32_t detail;     /* of calls: the file descriptor + 1; 0: none */
    uint32_t generation; /* of the descriptor: what `generations` had when the call ended */
};

#define SHM_CHUNK_RECORDS ((SHM_CHUNK_SIZE - 8) / sizeof(struct shm_record))

struct shm_chunk {
    uint32_t used; /* records that are whole: stored with release after each, loaded with acquire */
    uint32_t
        next; /* 0: this is the last; stored with release by the owner; the free list's link, too */
    struct shm_record records[SHM_CHUNK_RECORDS];
};

_Static_assert(sizeof(struct shm_chunk) <= SHM_CHUNK_SIZE, "a chunk is a page");

/* MARK: Threads */

enum shm_thread_state {
    SHM_FREE,
    SHM_LIVE,  /* claimed; by its creator first */
    SHM_ENDED, /* wrote its last record: the collector frees the slot when it has read it */
};

#define SHM_SHORT 256

struct shm_thread {
    /* The call that the thread is in. `time` is stored last, with release; 0: in none. */
    uint64_t open_time;
    uint64_t open_object;
    uint64_t open_pc; /* the call's return address */
    uint32_t open_stack;
    uint32_t open_detail;
    uint8_t open_wait;
    uint8_t
        writing; /* between a reading of the clock and the record that has it; also guards against signal
                        handlers of the same thread */
    uint8_t unused[2];
    uint32_t
        short_waits; /* how long it was in calls that blocked for too short a time to be recorded: SHM_SHORT
                           * ticks; goes round */
    uint64_t open_sp, open_fp; /* the registers of the call's caller: see struct unwind_start */
    /* Of the slot. */
    uint32_t state; /* enum shm_thread_state; stored with release */
    uint32_t serial;
    uint32_t tid; /* 0: not started yet */
    uint32_t next_free;
    /* Of the chain. `first` is the collector's once the slot is live. */
    uint32_t first;
    uint32_t lost; /* records that found no room */
    /* The creator's, for the new thread. */
    uint64_t routine, argument, stack_size;
    /* Bytes that it has allocated, less those that it has freed: below 0 of who frees what others allocated. Written by
     * the thread alone; the sum of all threads' and of the header's heap_rest is the live heap. */
    int64_t heap;
    uint64_t open_held_pc; /* of the open call, if it waits for a lock: where who has it took it */
    uint64_t holds;        /* locks that it has taken, for their rate */
};

_Static_assert(sizeof(struct shm_thread) == 128, "two cache lines");

/* MARK: Objects */

/*
 * The state of the locks with one hash. Two locks that share a slot disturb each other's holds; what a
 * release number refers to is checked by the collector, which has the release's record with the address.
 */
struct shm_object {
    uint64_t held; /* the lock that was taken last; 0: it was released */
    uint64_t
        held_since; /* the clock; SHM_EXACT is set where it was read, not set of the coarse clock */
    uint64_t held_pc; /* where: the return address of the call */
    uint32_t hot;     /* somebody has waited here: holds are timed exactly */
    uint32_t release; /* the number of the last release that was recorded */
    uint32_t
        waiters; /* threads that wait for one of these, where the object itself does not tell */
    uint32_t
        hold; /* of OpenMP's locks: the number that the release of the last one taken has, or will have */
    uint32_t unused[6];
};

#define SHM_EXACT UINT64_C(1)

_Static_assert(sizeof(struct shm_object) == 64, "a cache line");

static inline size_t shm_object_slot(uint64_t address)
{
    return (size_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 52) % SHM_OBJECTS;
}

/*
 * Objects that are no addresses: the ends of the process's pipes, socket pairs and eventfds, and its epoll sets.
 * Each has a number of its own; descriptors that were duplicated share it. Who waits to read at one waits for
 * another object than who waits to write. The object of a wait for several is the end that ended it, or 0.
 */
#define SHM_DESCRIPTOR (UINT64_C(0xfd) << 56) /* | the end's number << 4 | 8: to write */

static inline bool shm_is_descriptor(uint64_t object)
{
    return object >> 56 == SHM_DESCRIPTOR >> 56;
}

/* MARK: The area */

enum shm_stacks { SHM_STACKS_NONE, SHM_STACKS_UNWIND, SHM_STACKS_FRAME_POINTERS };

/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): what changes often has its own cache line. */
struct shm_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size_check; /* sizeof(struct shm_area) / 4096: both sides mean the same */
    uint32_t root_pid;   /* the program's: 0 until it is known */
    uint32_t claimed;    /* by the process with this pid, by compare-and-swap; 0: by none yet */
    /* Which calls are recorded: a bit an enum shm_group. The collector may change it; what threads there are is
     * told in any case. */
    uint32_t groups;
    /* Options, constant. */
    uint32_t stacks;   /* enum shm_stacks */
    uint32_t children; /* other processes may claim, too */
    uint32_t
        forking;   /* how many of its forks' children have not said yet whether they are recorded */
    uint32_t heap; /* a forked child is to know what its parent had allocated */
    uint64_t min_wait_ticks, hold_ticks;
    uint32_t all_holds;
    uint64_t
        sample_ns; /* CPU time between samples that a timer of the program takes; 0: none are */
    uint64_t step_ticks;  /* how often the coarse clock is stored */
    uint32_t has_counter; /* the clock is the CPU's counter, else CLOCK_MONOTONIC in ns */
    uint64_t claimed_at;  /* the clock, soon after; 0: not told yet. All records are later */
    /* The clock, stored by the collector every millisecond or so while locks are taken so often that reading the
     * real one each time would cost the program more; else 0. */
    uint64_t coarse;
    uint64_t mapped_at; /* where the process has the area; 0: that is to come */
    /* Free lists of indices: a tag in the upper half, against a head that comes back. */
    uint64_t free_chunks __attribute__((aligned(64)));
    uint64_t free_threads;
    uint32_t chunks_used,
        threads_used; /* never taken from the list yet: from here on; the next to take */
    uint32_t serials;
    uint32_t stack_words_used;
    uint32_t lost_stacks, lost_threads, lost_samples;
    uint32_t modules_used; /* bytes of whole lines; stored with release */
    int64_t
        heap_rest; /* of those who have no slot, of before there was an area, of a forked process's parent */
    int64_t heap_ended; /* of threads that have ended: the collector's sum */
    uint32_t
        modules_version; /* odd while they are written; each change of the mapped code is a new one */
};

struct shm_area {
    union {
        struct shm_header header;
        uint8_t page[4096];
    };
    struct shm_thread threads[SHM_THREADS];
    struct shm_object objects[SHM_OBJECTS];
    /* Open addressing by hash: the number of a stack, which is the index of its words; 0: free. */
    uint32_t stack_index[SHM_STACK_INDEX];
    /* Each stack: its number of frames, then its PCs. Names are here, too: their bytes + SHM_TEXT_BIT, then those. */
    uint64_t stack_words[SHM_STACK_WORDS];
    /* Lines: "trail.module ..." as in a trace; "trail.unloaded ..." for what was mapped there before. */
    char modules[SHM_MODULES_SIZE];
    /* How often a descriptor was closed: what was found out about it holds while this stays as it is. */
    uint32_t generations[SHM_DESCRIPTORS];
    uint8_t chunks[SHM_CHUNKS][SHM_CHUNK_SIZE] __attribute__((aligned(4096)));
};

/* What --only chooses among. */
enum shm_group {
    SHM_GROUP_LOCKS = 1,
    SHM_GROUP_CONDITIONS = 2,
    SHM_GROUP_IO = 4,
    SHM_GROUP_SLEEP = 8,
    SHM_GROUP_THREADS = 16,
    SHM_GROUP_ANNOTATIONS = 32,
    SHM_GROUP_HEAP = 64, /* has effect with libtrail-heap.so only */
    SHM_GROUP_OPENMP = 128,
};

static inline struct shm_chunk *shm_chunk(struct shm_area *area, uint32_t index)
{
    return (struct shm_chunk *)(void *)area->chunks[index];
}

#endif
