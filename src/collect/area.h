/*
 * The collector's side of the area (shm/shm.h), and the only place that reads it. What lies there was written by
 * the recorded program, or by whatever overwrote it, and is as untrusted as a file:
 *
 *   - Everything is copied first, checked in the copy, and only that copy leaves this file.
 *   - Indices lie inside their tables; a chunk belongs to one chain at a time; a step visits each chunk at most once
 *     on average, and the last step each chunk at most once: its work is bounded by the area's size.
 *   - Times lie between the making of the area and now. Kinds, waits and numbers are of their tables.
 *   - Stacks and texts fit together into the table that they come from.
 *   - Options are the collector's own copies: what the program has made of them since is not looked at.
 *   - The memory is sealed, so that it cannot become smaller. For a file, which can, see collect/mapped_files.h.
 *
 * What contradicts these rules is left out and counted (area_damage).
 */
#ifndef TRAIL_COLLECT_AREA_H
#define TRAIL_COLLECT_AREA_H

#include <stdbool.h>
#include <sys/types.h>
#include <trail/error.h>

#include "collect/ticks.h"
#include "shm/shm.h"

/* How often the coarse clock is stored while there is one. */
#define AREA_TICK_NS 1000000

/* What the program is asked to do. */
struct area_options {
    uint32_t groups; /* bits of enum shm_group */
    uint32_t stacks; /* enum shm_stacks */
    bool children, heap, all_holds;
    int64_t min_wait_ns;
    int64_t hold_ns;    /* 0: every hold */
    uint64_t sample_ns; /* 0: no samples by a timer */
};

struct area;

/*
 * Makes an area in memory that only *fd names, or in the file `path` if it is not NULL, which appears when the area
 * is ready, in place of one that is there. *fd is to be closed by the caller. `ticks` is the clock of its times, and
 * has to stay. NULL with *err. area_close accepts NULL.
 */
struct area *area_make(const struct area_options *options, const struct ticks *ticks, int *fd,
                       trail_error *err);
struct area *area_make_file(const char *path, const struct area_options *options,
                            const struct ticks *ticks, trail_error *err);
void area_close(struct area *area);

/* An area that is in memory already, and stays there; times are later than `opened`. NULL without memory. */
struct area *area_over(struct shm_area *memory, const struct area_options *options,
                       const struct ticks *ticks, uint64_t opened);

/* MARK: What the collector writes */

/* Stores the coarse clock: every millisecond or so; 0: there is none. A time that is taken from it shows that. */
void area_tick(struct area *area, uint64_t ticks);

/* Which calls the program records from now on. */
void area_set_groups(struct area *area, uint32_t groups);

/* The process that may claim it. */
void area_set_root(struct area *area, pid_t pid);

/* Nobody is to claim it from now on. */
void area_refuse(struct area *area);

/* MARK: Its life */

/* The PID of the process that has claimed it, as that process sees it; 0: none has. */
pid_t area_claimed(const struct area *area);

/* Whether a process has done more with it than claim it, whatever became of the claim. */
bool area_is_in_use(const struct area *area);

/* When it was claimed; 0: not known yet. */
uint64_t area_claimed_at(const struct area *area);

/* Where the process has mapped it; 0: not known yet. */
uint64_t area_mapped_at(const struct area *area);

/* Whether a child that the process has forked has not said yet whether it is recorded. */
bool area_is_forking(const struct area *area);

/* The file or memory that processes map, for comparison with the kernel's lists (/proc/PID/maps). */
struct area_inode {
    dev_t device; /* 0: file systems may show another one there */
    ino_t inode;
};
struct area_inode area_inode(const struct area *area);

const struct area_options *area_options(const struct area *area);

/* min_wait_ns and hold_ns of the options, in ticks. */
uint64_t area_min_wait_ticks(const struct area *area);
uint64_t area_hold_ticks(const struct area *area);

/* What the program counted, and what was left out here because it contradicts the rules. */
struct area_losses {
    uint64_t stacks, threads, samples;
};
struct area_losses area_losses(const struct area *area);
uint64_t area_damage(const struct area *area);
/* One more, found by comparing what was read. */
void area_count_damage(struct area *area);

/* MARK: Threads */

/* The number of slots that were ever used: 1 ... are valid indices. */
uint32_t area_threads(const struct area *area);

/* A slot, copied. */
struct area_thread {
    enum shm_thread_state state;
    bool writing;
    uint32_t serial, tid, lost, short_waits;
    int64_t heap;
    uint64_t holds;
};
struct area_thread area_thread(const struct area *area, uint32_t slot);

/* Bytes that no thread's slot has: of the process's beginning, and of threads without a slot. */
int64_t area_heap_rest(const struct area *area);
/* The slot of a thread that has allocated so much is about to be freed. */
void area_keep_heap(struct area *area, int64_t bytes);

/* Where reading of a thread's chain has come to. Zero-initialised is its beginning. */
struct area_cursor {
    uint32_t chunk; /* 0: none yet */
    uint32_t at;
    bool broken; /* the chain leads nowhere: nothing more is read */
};

/* Begins a step, in which no more is read than the area has room for; `last`: nothing is read twice. */
void area_begin_step(struct area *area, bool last);

/* Whether the step has read so much that there may be more. */
bool area_is_exhausted(const struct area *area);

/*
 * The next record of a thread's chain; false: no more for now. Chunks that were read go back to the free list.
 */
bool area_next(struct area *area, uint32_t slot, struct area_cursor *cursor,
               struct shm_record *record);

/* Gives the slot of a thread that has ended, and was read to its end, back; with its last chunk. */
void area_free_thread(struct area *area, uint32_t slot, struct area_cursor *cursor);

/* The call that a thread is in, as far as it is whole. False: in none. */
struct area_open {
    uint64_t time, object, pc;
    uint64_t held_pc; /* where the lock's holder took it; 0: not known */
    uint64_t sp, fp;
    uint32_t stack, detail;
    uint8_t wait;
};
bool area_open_call(struct area *area, uint32_t slot, struct area_open *open);

/* MARK: Tables */

/* The PCs of a stack, innermost first, copied to pcs[SHM_STACK_FRAMES]; 0 if there is no such stack. */
size_t area_stack(struct area *area, uint32_t number, uint64_t *pcs);

/* Puts a stack into the table; its number, 0 if there is no room. */
uint32_t area_add_stack(struct area *area, const uint64_t *pcs, size_t count);

/* The bytes of a text, copied to text[SHM_TEXT_MAX]; 0 if there is no such text. */
size_t area_text(struct area *area, uint32_t number, char *text);

/* How often the descriptor `fd`, below SHM_DESCRIPTORS, was closed. */
uint32_t area_generation(const struct area *area, uint32_t fd);

/*
 * The lines of modules, if they are not those of *version, which becomes theirs: ended by NUL, to be freed. NULL: they
 * are, or change at the moment, or there is no memory (then *no_memory).
 */
char *area_modules(const struct area *area, uint32_t *version, bool *no_memory);

#endif
