/*
 * The memory that the recorded program and `trail record` share: the area, one memfd that the
 * program maps when it starts. The program only writes raw records into it; it opens no file or
 * socket and starts no thread. `trail record` reads the records while the program runs, and after
 * the program was killed.
 *
 *   struct shm_area
 *     header      the process that may write, the options, the coarse clock, free lists
 *     threads[]   one slot per thread: its chain of chunks, and the call it is in (its open call)
 *     objects[]   one slot for the locks of one hash: the lock taken last, since when, and the last
 * release's number stack_index[], stack_words[]   call stacks, each once; never freed modules text:
 * which code is mapped where (the lines of a trace's module map) chunks[]    pages of records, on
 * the free list or in a thread's chain
 *
 *   thread - first > chunk - next > chunk - next > chunk (the last: the thread writes here)
 *
 * Only the thread that owns a slot writes to the slot and to the last chunk of its chain; only the
 * collector advances `first` and frees. Neither side trusts the other: the collector checks every
 * index, and the program never waits for the collector. A record for which there is no room is
 * counted as lost.
 *
 * Shared numbers are accessed with __atomic; each comment names the store that a load pairs with.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_MAGIC   UINT64_C(0x006c696172742e31) /* "1.trail" */
#define SHM_VERSION 15

/* Environment variable: "pid:PID:FD:WORD", for the area /proc/PID/fd/FD, or asked for by the word;
 * or "path:FILE". */
#define SHM_VARIABLE  "TRAIL_SHM"
#define SHM_WORD_SIZE 32

#define SHM_THREADS      16384 /* at the same time; slot 0 is unused */
#define SHM_OBJECTS      4096
#define SHM_CHUNKS       16384 /* chunk 0 means none */
#define SHM_CHUNK_SIZE   4096
#define SHM_STACK_INDEX  (1u << 18)
#define SHM_STACK_WORDS  (1u << 22)
#define SHM_STACK_FRAMES 128
#define SHM_TEXT_BIT     (UINT64_C(1) << 32)
#define SHM_MODULES_SIZE (1u << 20)
#define SHM_DESCRIPTORS  16384 /* higher ones are not recorded */
#define SHM_EXECUTED     32    /* programs that the collector may not have read yet */

/* MARK: Records */

/* What a thread waits for, or has released. waits.def has the words for each. */
enum shm_wait {
    SHM_NO_WAIT,
#define WAIT(name, ...) SHM_##name,
#include "wire/waits.def"
    SHM_WAITS
};

static inline bool shm_is_openmp_lock(unsigned wait)
{
    return wait == SHM_OMP_LOCK || wait == SHM_OMP_CRITICAL || wait == SHM_OMP_ORDERED;
}

/* Whether a wait is for a lock, which a thread holds. */
static inline bool shm_is_lock(unsigned wait)
{
    return wait == SHM_MUTEX || wait == SHM_RDLOCK || wait == SHM_WRLOCK || wait == SHM_SPIN ||
           shm_is_openmp_lock(wait);
}

enum shm_kind {
    /*
     * time: when the wait began; end; object; object2: of a condition variable the mutex, of a lock
     * the PC where its holder took it, of a wait for several futexes the one whose wake ended it,
     * of a file lock the part (shm_locked_part), of a signal those that may have ended it; release,
     * release2: of a file lock the process that held it and did not give it back, 0: none, of a
     * signal the last one's to the process group, which is `generation`, 0: not known; stack
     */
    SHM_WAITED = 1,
    SHM_RELEASED, /* time; end: when the hold began, 0 unknown; object; object2: PC of the
                   * acquisition, of a file lock the part, of a signal shm_signal_sent. A thread is
                   * cancelled: the object is its pthread_t, `wait` SHM_JOIN. release2: the serial
                   * of the thread that took the lock; 0: this one, or unknown */
    /* time; object: serial of the new thread; object2: its start routine; end: vtable of the object
       that it runs, or 0; stack */
    SHM_CREATED,
    SHM_STARTED, /* time; object: pthread_t; object2: start routine, 0 unknown */
    SHM_EXITED,  /* time */
    SHM_NAMED,   /* time; object, object2: 15 bytes of the name and NUL; end: the pthread_t of the
                  * thread that was named, 0: its own */
    /* The program's annotations; `release` is the number of the name (see stack_words). */
    SHM_TASK_BEGAN,   /* time; object: the task; object2: its parent; name; stack */
    SHM_TASK_ENDED,   /* time; object; stack */
    SHM_REGION_BEGAN, /* time; object: the task; name; stack */
    SHM_REGION_ENDED, /* the same */
    SHM_LOGGED,     /* time; object: the task; name: the category; stack; its message precedes it */
    SHM_TEXT,       /* a piece of the message, `flags` bytes, in `end`, `object`, `object2` */
    SHM_SAMPLED,    /* time; stack: where the thread was on its CPU */
    SHM_HEAP,       /* time; object: `heap` of the thread's slot */
    SHM_IDENTIFIED, /* time; object: pthread_t of a thread whose first record did not have it */
    SHM_FORGOTTEN,  /* time; object: a lock that was destroyed: the next one at its address is
                       another */
    /* Before SHM_CREATED, if that has a vtable: time; end: the function in the vtable that runs the
     * object; object, object2, and release with release2 above it: the words after the vtable in
     * the object, as far as they are in its page. The object may be smaller */
    SHM_RUNS,
    SHM_FORKED, /* time: before it happens; object: the fork's number (header.fork); stack */
    /* Before SHM_WAITED: the descriptors that it was for. detail: shm_of_several; the first `flags`
     * of them (shm_polled) are in `end`, `object` and `object2` */
    SHM_POLLED,
    /* Before SHM_WAITED, which has the same time: a signal may have ended the wait, whatever it was
     * for. object, object2, release, release2 and generation are those of a wait for signals. If no
     * recorded thread has sent one, it may be SIGCHLD */
    SHM_INTERRUPTED,
    /* Calls that have no records of their own, since the last of these: waits in which work is
     * handed over, or yields. time; object: how many; object2: how long in all, in ticks; wait,
     * stack: of the last one, SHM_NO_WAIT: yields */
    SHM_COUNTED,
    /* time; object: a semaphore with waiters, from which the thread took a permit without waiting,
     * for example one posted for a waiter that has not run yet; release */
    SHM_TAKEN,
    SHM_KINDS
};

#define SHM_TEXT_PIECE 24
#define SHM_POLLED_MAX (SHM_TEXT_PIECE / sizeof(uint32_t))
#define SHM_TEXT_MAX   1024

enum shm_flags {
    SHM_ALL = 1,       /* released: all threads that wait, not one */
    SHM_TIMED_OUT = 2, /* waited: it reached its time limit or failed; no release ended it */
    SHM_COARSE = 4,    /* released: `end`, when the hold began, was read from the coarse clock */
    /* waited: longjmp, an exception or a cancellation ended the call; `release` is then a release
       of the thread's own handle */
    SHM_LEFT = 8,
    SHM_WITH_PLACE = 16, /* task: the place of its stack completes its name */
    /* waited: its time limit ended it. `release` and, if it is not for a descriptor, `generation`
       above it are the limit (shm_limit); of a poll its length in us, if it is known */
    SHM_EXPIRED = 32,
    /* waited: the thread with the serial in release2 (0: not known) ended with the lock */
    SHM_OWNER_DIED = 64,
    SHM_CLOSES = 128 /* released: by closing an end, which others may still have open */
};

/* Times are readings of the clock that the header names. 56 bytes; enum shm_kind has the meaning of
 * the fields. */
struct shm_record {
    uint64_t time, end;
    uint64_t object, object2;
    uint32_t stack;
    uint32_t release, release2; /* numbers of releases: see struct shm_object */
    uint8_t kind;               /* enum shm_kind */
    uint8_t wait;               /* enum shm_wait */
    uint8_t flags;              /* enum shm_flags */
    uint8_t unused;
    /*
     * Of calls: the file descriptor + 1; of a sleep: its length in us, of which an open one has the
     * address in open_object; 0: none, not known. The object of a sleep until a time is that limit.
     */
    uint32_t detail;
    uint32_t generation; /* of the descriptor: its `generations` when the call ended */
};

#define SHM_CHUNK_RECORDS ((SHM_CHUNK_SIZE - 8) / sizeof(struct shm_record))

struct shm_chunk {
    uint32_t used; /* complete records: stored with release after each, loaded with acquire */
    /* The index of the thread's next chunk, stored with release by the thread; 0: this is the last.
     * Of a free chunk the next free one. */
    uint32_t next;
    struct shm_record records[SHM_CHUNK_RECORDS];
};

_Static_assert(sizeof(struct shm_chunk) <= SHM_CHUNK_SIZE, "a chunk is a page");

/* MARK: Threads */

enum shm_thread_state {
    SHM_FREE,
    SHM_LIVE,  /* claimed, at first by the creating thread */
    SHM_ENDED, /* has written its last record: the collector reads it, then frees the slot */
};

#define SHM_SHORT 256

/*
 * A reader-writer lock that a thread holds to read. Many threads do at a time, so that each has its
 * own in its slot: in the lock's slot they would overwrite each other's, and pass its cache line
 * around.
 */
struct shm_reading {
    uint64_t object; /* 0: none; stored last */
    uint64_t since, pc,
        shared; /* as in struct shm_object; `shared` is 0 if only this process has the lock */
};

#define SHM_READINGS 4 /* further locks of a thread are not known to be held */

struct shm_thread {
    /* The call that the thread is in. open_time is stored last, with release; 0: in none. */
    uint64_t open_time;
    uint64_t open_object;
    uint64_t open_pc; /* the call's return address */
    uint32_t open_stack;
    uint32_t open_detail;
    uint8_t open_wait;
    /* 1 from the reading of the clock until the record with that time is complete. A signal handler
     * of the thread that finds it set records nothing. */
    uint8_t writing;
    uint8_t unused[2];
    /* The total time in calls that blocked for too short a time to be recorded, in units of
     * SHM_SHORT ticks; wraps around. */
    uint32_t short_waits;
    uint64_t open_sp, open_fp; /* the registers of the call's caller: see struct unwind_start */
    /* Of the slot. */
    uint32_t state; /* enum shm_thread_state; stored with release */
    uint32_t serial;
    uint32_t tid; /* 0: not started yet */
    uint32_t next_free;
    /* Of the chain. Once the slot is live only the collector writes `first`. */
    uint32_t first;
    uint32_t lost; /* records for which there was no room */
    /* Written by the creating thread for the new one. */
    uint64_t routine, argument, stack_size;
    /* Bytes that it has allocated minus those that it has freed: negative if it frees what others
     * allocated. Written only by the thread. The live heap is the sum over all threads and the
     * header's heap_rest. */
    int64_t heap;
    /* Of the open call, if it waits for a lock: the PC where the lock's holder took it; for a
     * condition variable: as first_read. */
    uint64_t open_held_pc;
    uint64_t holds; /* how many locks it has taken, for their rate */
    struct shm_reading reading[SHM_READINGS];
};

_Static_assert(sizeof(struct shm_thread) == 256, "four cache lines");

/* MARK: Objects */

/*
 * The state of the locks with one hash. Two locks that share a slot falsify each other's hold
 * times. The collector checks what a release number refers to: the release's record has the
 * address.
 */
struct shm_object {
    uint64_t held; /* the address of the lock taken last; 0: it was released */
    /* When the hold began, in ticks of the clock. SHM_EXACT is set if the clock was read for it,
     * clear if the time is that of the coarse clock. */
    uint64_t held_since;
    uint64_t held_pc; /* the return address of the call that took it */
    uint32_t hot;     /* a thread has waited here: holds are timed exactly */
    uint32_t release; /* the number of the last release that was recorded */
    /* The number of threads that wait for an object of this slot, where the object itself does not
     * hold it. */
    uint32_t waiters;
    /* For OpenMP's locks: the number of the release that ends, or ended, the hold of the last one
     * taken. */
    uint32_t hold;
    uint64_t holder; /* the thread that took `held`: shm_holder; 0: unknown */
    uint64_t
        shared; /* the name that other processes use for `held`, if `holder` has SHM_HELD_SHARED */
    /* Where a lock was first taken for reading; for a condition variable, the stack of the first
     * signal for which no thread waited: shm_first_read; 0: none. */
    uint64_t first_read;
};

#define SHM_EXACT UINT64_C(1)

_Static_assert(sizeof(struct shm_object) == 64, "a cache line");

/*
 * The thread that took a lock, and how, in one word: serial << 32 | enum shm_wait << 24 | bits of
 * the address. These bits show whether it belongs to the same lock as `held`, which is a separate
 * word. With SHM_HELD_SHARED the lock is shared between processes.
 */
#define SHM_HELD_SHARED 0x80u

static inline uint64_t shm_holder(uint32_t serial, unsigned wait, uint64_t object)
{
    return (uint64_t)serial << 32 | (uint64_t)wait << 24 | (object >> 3 & 0xffffff);
}

/* Returns the serial of the thread that took the lock; 0: `holder` belongs to another lock. */
static inline uint32_t shm_holder_of(uint64_t holder, uint64_t object)
{
    return (holder & 0xffffff) == (object >> 3 & 0xffffff) ? (uint32_t)(holder >> 32) : 0;
}

/* A PC, which has 47 bits, below bits of the lock's address: used to name a lock that only readers
 * hold. */
static inline uint64_t shm_first_read(uint64_t object, uint64_t pc)
{
    return object >> 3 << 48 | (pc & UINT64_MAX >> 16);
}

/* In the PC of a lock's holder: it belongs to the first reader, and only names the lock. */
#define SHM_FIRST_READER (UINT64_C(1) << 63)

/* The smallest objects, spin locks and futexes, have 4 bytes: neighbours get slots of their own. */
static inline size_t shm_object_slot(uint64_t address)
{
    return (size_t)((address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 52) % SHM_OBJECTS;
}

/*
 * Objects that are not addresses have a tag in their upper byte (objects.def): SHM_PATH is a path's
 * tag, shifted into place, and shm_is_path its test.
 */
enum shm_tag {
#define OBJECT(name, is, tag, shared, numbered) SHM_TAG_##name = (tag),
#include "shm/objects.def"
};

#define OBJECT(name, is, tag, shared, numbered)                                                    \
    static const uint64_t SHM_##name = (uint64_t)(tag) << 56;                                      \
    static inline bool shm_is_##is(uint64_t object)                                                \
    {                                                                                              \
        return object >> 56 == (tag);                                                              \
    }
#include "shm/objects.def"

/* Sets of tags, which all begin with 0xf: a bit for the rest. */
enum {
    SHM_SHARED_TAGS = 0
#define OBJECT(name, is, tag, shared, numbered) | (shared) << ((tag)&0xf)
#include "shm/objects.def"
    ,
    SHM_NUMBERED_TAGS = 0
#define OBJECT(name, is, tag, shared, numbered) | (numbered) << ((tag)&0xf)
#include "shm/objects.def"
};

static inline bool shm_is_tagged(uint64_t object, unsigned tags)
{
    return object >> 60 == 0xf && (tags >> (object >> 56 & 0xf) & 1);
}

/* Whether other processes may wait for the object as well: the numbers of its releases are the
 * board's (board.h). */
static inline bool shm_is_shared(uint64_t object)
{
    return shm_is_tagged(object, SHM_SHARED_TAGS);
}

/* Whether the object has a number of the kernel's, or stands for a path. */
static inline bool shm_is_numbered(uint64_t object)
{
    return shm_is_tagged(object, SHM_NUMBERED_TAGS);
}

static inline uint64_t shm_group_signals(uint32_t group)
{
    return SHM_SIGNALS_GROUP | (uint64_t)group << 4;
}

/* A set of signals. SHM_SIGNALS_OF_PROCESS takes the bit of one that the C library uses itself: a
 * signal for the process may end the wait as well. */
static inline uint64_t shm_signal_bit(unsigned number)
{
    return UINT64_C(1) << (number - 1);
}

#define SHM_SIGNALS_OF_PROCESS (UINT64_C(1) << 31)

/* A signal << 56 | what it was sent to: 0, the process; a thread's TID and SHM_SIGNAL_TID, or its
 * pthread_t. */
#define SHM_SIGNAL_TID (UINT64_C(1) << 55)

static inline uint64_t shm_signal_sent(unsigned number, uint64_t thread)
{
    return (uint64_t)number << 56 | (thread & UINT64_MAX >> 8);
}

/* With this in a SHM_POLLFDS, the array has no more than SHM_POLLED_MAX elements. */
#define SHM_POLLFDS_FEW (UINT64_C(1) << 55)

/* The detail of a wait for several descriptors: their number. */
#define SHM_SEVERAL (UINT32_C(1) << 31)

static inline uint32_t shm_of_several(uint64_t count)
{
    return SHM_SEVERAL | (uint32_t)(count < SHM_DESCRIPTORS ? count : SHM_DESCRIPTORS);
}

/* One of them: whether it was ready << 31 | the lower bits of its generation << 14 | the
 * descriptor. */
#define SHM_POLLED_READY       SHM_SEVERAL
#define SHM_POLLED_GENERATIONS UINT32_C(0x1ffff)

static inline uint32_t shm_polled(unsigned fd, uint32_t generation, bool ready)
{
    return (ready ? SHM_POLLED_READY : 0) | (generation & SHM_POLLED_GENERATIONS) << 14 |
           fd % SHM_DESCRIPTORS;
}

/*
 * Which bytes of a file are locked, and how: exclusive << 63 | first << 32 | last. The last may be
 * any from UINT32_MAX on; a first from SHM_LOCKED_FAR on is not known.
 */
#define SHM_LOCKED_FAR UINT64_C(0x7fffffff)

static inline uint64_t shm_locked_part(uint64_t first, uint64_t last, bool exclusive)
{
    return (uint64_t)exclusive << 63 | (first < SHM_LOCKED_FAR ? first : SHM_LOCKED_FAR) << 32 |
           (last < UINT32_MAX ? last : UINT32_MAX);
}

/* Whether two such locks exclude each other; false if that is not known. */
static inline bool shm_locked_conflict(uint64_t a, uint64_t b)
{
    uint64_t first_a = a >> 32 & SHM_LOCKED_FAR, first_b = b >> 32 & SHM_LOCKED_FAR;
    return (a | b) >> 63 && first_a < SHM_LOCKED_FAR && first_b < SHM_LOCKED_FAR &&
           first_a <= (uint32_t)b && first_b <= (uint32_t)a;
}

/*
 * The time limit of a wait, in us: its length, or when it was over by a clock. No address of the
 * program is one of a clock.
 */
enum shm_limit_of { SHM_LIMIT_LENGTH, SHM_LIMIT_REALTIME = 2, SHM_LIMIT_MONOTONIC };

static inline uint64_t shm_limit(enum shm_limit_of of, uint64_t us)
{
    return (uint64_t)of << 62 | (us & UINT64_MAX >> 2);
}

/* MARK: The area */

enum shm_stacks { SHM_STACKS_NONE, SHM_STACKS_UNWIND, SHM_STACKS_FRAME_POINTERS };

/*
 * A program that the process has executed in another one, by vfork or posix_spawn, which may or may
 * not load the recorder. If the vfork's exec has failed, the same PID comes again with
 * SHM_NOT_EXECUTED.
 */
struct shm_executed {
    uint32_t pid;  /* stored last, with release; 0: being written */
    char name[60]; /* of the file, without its folder; shortened; ends with NUL */
};

#define SHM_NOT_EXECUTED (UINT32_C(1) << 31)

/* What changes often has its own cache line. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct shm_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size_check; /* sizeof(struct shm_area) / 4096: both sides have the same layout */
    uint32_t root_pid;   /* the PID of the program; 0: not known yet */
    uint32_t claimed; /* the PID of the process that claimed it, by compare-and-swap; 0: none yet */
    /* Which calls are recorded: a set of enum shm_group. The collector may change it. The threads
     * themselves are always recorded. */
    uint32_t groups;
    /* Options, constant. */
    uint32_t stacks;   /* enum shm_stacks */
    uint32_t children; /* other processes may claim an area, too */
    /* Slots from 1 on that the collector has filled, one for each thread of an already running
     * process: with its TID, an empty chunk, and, if it waits, its open call without the time. */
    uint32_t announced;
    /* The number of forked children for which it is not known yet whether they are recorded. */
    uint32_t forking;
    uint32_t
        turned_away; /* processes that found the area taken and did not wait longer for the next */
    uint32_t confined; /* forked children, and programs executed in place of this one, that were not
                        * recorded because of a seccomp filter */
    uint32_t heap;     /* 1: a forked child counts what its parent had allocated */
    uint32_t board;    /* the recorder's descriptor of the board; 0: none */
    uint64_t min_wait_ticks, hold_ticks;
    uint32_t all_holds;
    uint32_t fork; /* the board's number of the fork that made the process; 0: none; known with
                    * claimed_at */
    /* The CPU time between two samples of the program's own timers, in ns; 0: no samples are taken
     * that way. */
    uint64_t sample_ns;
    uint64_t step_ticks;  /* the time between two stores of the coarse clock */
    uint32_t has_counter; /* 1: the clock is the CPU's counter; 0: CLOCK_MONOTONIC, in ns */
    /* The time in ticks soon after the claim; 0: not stored yet. All records are later. */
    uint64_t claimed_at;
    /* The time in ticks, stored by the collector about once a millisecond while locks are taken so
     * often that reading the real clock each time would cost the program more; else 0. */
    uint64_t coarse;
    /* The inode of its PID namespace (pid_namespaces(7)), stored before claimed_at; 0: unknown. */
    uint64_t pid_namespace;
    uint64_t mapped_at; /* the address of the area in the process; 0: not mapped yet */
    /* The heads of free lists: an index, and in the upper half a tag that changes with each
     * removal, against ABA. */
    uint64_t free_chunks __attribute__((aligned(64)));
    uint64_t free_threads;
    /* The indices of the first chunk and the first thread slot that were never in use. */
    uint32_t chunks_used, threads_used;
    uint32_t serials;
    uint32_t stack_words_used;
    uint32_t lost_stacks, lost_threads, lost_samples;
    uint32_t modules_used; /* bytes of complete lines; stored with release */
    /* The live heap that no thread's `heap` counts, in bytes: from threads without a slot, from the
     * time before there was an area, and from the parent of a forked process. */
    int64_t heap_rest;
    int64_t heap_ended; /* bytes of threads that have ended; the collector's sum */
    /* Grows with each change of the mapped code; odd while `modules` is written. */
    uint32_t modules_version;
    /* Of all ever executed; the newest is at (executed_count - 1) % SHM_EXECUTED. */
    uint32_t executed_count;
    struct shm_executed executed[SHM_EXECUTED];
};

struct shm_area {
    union {
        struct shm_header header;
        uint8_t page[4096];
    };
    struct shm_thread threads[SHM_THREADS];
    struct shm_object objects[SHM_OBJECTS];
    /* Open addressing by hash. A stack's number is the index of its words; 0: free. */
    uint32_t stack_index[SHM_STACK_INDEX];
    /* A stack: its number of frames, then its PCs. A name: its number of bytes + SHM_TEXT_BIT, then
     * the bytes. */
    uint64_t stack_words[SHM_STACK_WORDS];
    /*
     * Lines: "trail.module ..." as in a trace; "trail.unloaded ..." for a module that was unmapped.
     */
    char modules[SHM_MODULES_SIZE];
    /* How often each descriptor was closed: knowledge about a descriptor is valid while its number
     * here is unchanged. */
    uint32_t generations[SHM_DESCRIPTORS];
    /* Whether the process made the connection of each descriptor, by connect(2). */
    uint8_t connected[SHM_DESCRIPTORS];
    uint8_t chunks[SHM_CHUNKS][SHM_CHUNK_SIZE] __attribute__((aligned(4096)));
};

/* The groups of --only. */
enum shm_group {
    SHM_GROUP_LOCKS = 1,
    SHM_GROUP_CONDITIONS = 2,
    SHM_GROUP_IO = 4,
    SHM_GROUP_SLEEP = 8,
    SHM_GROUP_THREADS = 16,
    SHM_GROUP_ANNOTATIONS = 32,
    SHM_GROUP_HEAP = 64, /* needs libtrail-heap.so */
    SHM_GROUP_OPENMP = 128,
};

static inline struct shm_chunk *shm_chunk(struct shm_area *area, uint32_t index)
{
    return (struct shm_chunk *)(void *)area->chunks[index];
}
