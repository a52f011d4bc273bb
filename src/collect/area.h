/*
 * The collector's side of the area (shm/shm.h); no other file reads it. The area's bytes were
 * written by the recorded program, possibly by mistake, and are as untrusted as a file:
 *
 *   - Everything is copied first and checked in the copy; only the copy leaves this file.
 *   - Indices lie inside their tables; a chunk belongs to one chain at a time; a step visits each
 *     chunk at most once on average, and the last step at most once: the work is bounded by the
 *     area's size.
 *   - Times lie between the creation of the area and now. Kinds, waits and numbers are within their
 *     tables.
 *   - Stacks and texts fit together into the table that they come from.
 *   - Options are the collector's own copies; those in the area are not read again.
 *   - The memory is sealed: it cannot be truncated. A file can: see collect/mapped_files.h.
 *
 * What contradicts these rules is left out and counted (area_damage).
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <trail/error.h>

#include "collect/ticks.h"
#include "shm/attach.h"
#include "shm/shm.h"

/* How often the coarse clock is stored while it is in use. */
#define AREA_TICK_NS 1000000

/* What the program should record. */
struct area_options {
    uint32_t groups; /* bits of enum shm_group */
    uint32_t stacks; /* enum shm_stacks */
    bool children, heap, all_holds;
    int board; /* the recorder's descriptor of the board; 0: none */
    int64_t min_wait_ns;
    int64_t hold_ns;    /* 0: every hold */
    uint64_t sample_ns; /* 0: no samples by a timer */
};

struct area;

/*
 * Makes an area: in memory whose only name is *fd, which the caller closes; or in the file `path`,
 * replacing an existing one once the area is ready. `ticks` is the clock of the area's times and
 * must outlive the area. NULL with *err. area_close accepts NULL.
 */
struct area *area_make(const struct area_options *options, const struct ticks *ticks, int *fd,
                       trail_error *err);
struct area *area_make_file(const char *path, const struct area_options *options,
                            const struct ticks *ticks, trail_error *err);
void area_close(struct area *area);

/* Returns an area over memory that the caller owns; its times are later than `opened`. NULL if out
 * of memory. */
struct area *area_over(struct shm_area *memory, const struct area_options *options,
                       const struct ticks *ticks, uint64_t opened);

/* MARK: What the collector writes */

/* Stores the coarse clock, about every millisecond; 0 turns it off. */
void area_tick(struct area *area, uint64_t ticks);

/* Sets which calls the program records from now on: bits of enum shm_group. */
void area_set_groups(struct area *area, uint32_t groups);
bool area_has_group(const struct area *area, uint32_t group);

/* Sets the only process that may claim the area. */
void area_set_root(struct area *area, pid_t pid);

/* From now on no process can claim the area. */
void area_refuse(struct area *area);

/* MARK: Its life */

/* Returns the PID of the process that has claimed the area, in that process's PID namespace; 0:
 * none. */
pid_t area_claimed(const struct area *area);

/* Whether a process has used the area after claiming it, even if the claim was overwritten. */
bool area_is_in_use(const struct area *area);

/* When the area was claimed; 0: not known yet. */
uint64_t area_claimed_at(const struct area *area);

/* Returns the inode of the process's PID namespace; 0: not known, or not stored yet. */
uint64_t area_pid_namespace(const struct area *area);

/* Where the process has mapped the area; 0: not known yet. */
uint64_t area_mapped_at(const struct area *area);

/* Whether a forked child has yet to decide whether it is recorded. */
bool area_is_forking(const struct area *area);

/* The file or memory that processes map, to compare with /proc/PID/maps. */
struct area_inode {
    dev_t device; /* 0: do not compare, because some file systems show another one in
                   * /proc/PID/maps */
    ino_t inode;
};
struct area_inode area_inode(const struct area *area);

const struct area_options *area_options(const struct area *area);

/* hold_ns of the options, in ticks. */
uint64_t area_hold_ticks(const struct area *area);

/* What the program counted as lost, and what was dropped here because it contradicts the rules. */
struct area_losses {
    uint64_t stacks, threads, samples;
    uint64_t turned_away; /* processes that asked for an area and got none */
    uint64_t confined;    /* processes that could not ask because of a seccomp filter */
};
struct area_losses area_losses(const struct area *area);
uint64_t area_damage(const struct area *area);
/* Counts damage found by comparing records with each other. */
void area_count_damage(struct area *area);

/*
 * Copies to `to`, which has room for SHM_EXECUTED, the programs that child processes have executed
 * since the last call. Returns their number; *missed is the number of entries overwritten before
 * they were read.
 */
size_t area_executed(struct area *area, struct shm_executed *to, uint64_t *missed);

/* MARK: Threads */

/* Adds a thread to an area that has not been claimed yet; drops all that were added. */
void area_announce(struct area *area, const struct shm_waiting *waiting);
void area_forget_announced(struct area *area);

/* Whether the thread in a slot was announced as waiting. */
bool area_waited_before(const struct area *area, uint32_t slot);

/* Returns the number of slots ever used, counting the unused slot 0: valid indices are 1 to one
 * below it. */
uint32_t area_threads(const struct area *area);

/* A copy of a slot. */
struct area_thread {
    enum shm_thread_state state;
    bool writing;
    uint32_t serial, tid, lost, short_waits;
    int64_t heap;
    uint64_t holds;
};
struct area_thread area_thread(const struct area *area, uint32_t slot);

/* Returns the live bytes that belong to no slot: those from before the area, and those of threads
 * that have ended or never had a slot. */
int64_t area_heap_rest(const struct area *area);
/* Keeps the live bytes of a slot that is about to be freed. */
void area_keep_heap(struct area *area, int64_t bytes);

/* How far a thread's chain has been read. Zero-initialised: its beginning. */
struct area_cursor {
    uint32_t chunk; /* 0: none yet */
    uint32_t at;
    bool broken; /* a link is invalid: nothing more is read */
};

/* Begins a step, which reads at most as much as the area can hold; `last`: nothing is read
 * twice. */
void area_begin_step(struct area *area, bool last);

/* Whether the step has reached that limit: there may be more to read. */
bool area_is_exhausted(const struct area *area);

/*
 * Copies the next record of a thread's chain; false: no more for now. Chunks that have been read
 * return to the free list.
 */
bool area_next(struct area *area, uint32_t slot, struct area_cursor *cursor,
               struct shm_record *record);

/* Frees the slot and last chunk of a thread that has ended, once all its records have been read. */
void area_free_thread(struct area *area, uint32_t slot, struct area_cursor *cursor);

/* Copies the call that a thread is in; false: none, or the copy is inconsistent. */
struct area_open {
    uint64_t time, object, pc;
    uint64_t held_pc; /* where the lock's holder took it; 0: not known */
    uint64_t sp, fp;
    uint32_t stack, detail;
    uint8_t wait;
};
bool area_open_call(struct area *area, uint32_t slot, struct area_open *open);

/* A lock that a thread holds, as far as is known: a lock that shares its slot with another may be
 * missing. */
struct area_hold {
    uint64_t object, pc; /* the lock, numbered as in waits for it, and where it was taken */
    uint64_t address;    /* of the lock in the process; 0: none */
    uint64_t since;      /* in ticks; 0: not known */
    uint32_t serial;     /* of the thread */
    uint8_t wait;        /* the lock's kind: the enum shm_wait of a wait for it */
    uint32_t detail;     /* for a file lock, the descriptor + 1 */
    bool is_owner;       /* known from the lock itself: when and where it was taken is not
                          * recorded */
};

/* Copies all holds into holds[SHM_OBJECTS]. Returns their number. */
size_t area_holds(const struct area *area, struct area_hold *holds);

/* MARK: Tables */

/* Copies the PCs of a stack, innermost first, to pcs[SHM_STACK_FRAMES]. Returns their number; 0: no
 * such stack. */
size_t area_stack(struct area *area, uint32_t number, uint64_t *pcs);

/* Adds a stack to the table. Returns its number; 0: no room. */
uint32_t area_add_stack(struct area *area, const uint64_t *pcs, size_t count);

/* Copies the bytes of a text to text[SHM_TEXT_MAX]. Returns their number; 0: no such text. */
size_t area_text(struct area *area, uint32_t number, char *text);

/* Returns the number of the fork that made the process; 0: not known. */
uint32_t area_fork(const struct area *area);

/* Returns how often the descriptor `fd`, below SHM_DESCRIPTORS, was closed. */
uint32_t area_generation(const struct area *area, uint32_t fd);

/* Whether the program made the descriptor's connection, as long as its generation is the same. */
bool area_has_connected(const struct area *area, uint32_t fd);

/*
 * Returns the module lines if their version differs from *version, which is updated.
 * NUL-terminated; the caller frees them. NULL: unchanged, or being written, or out of memory
 * (*no_memory).
 */
char *area_modules(const struct area *area, uint32_t *version, bool *no_memory);

/* Copies the path of the program's file, the first of the modules. Returns false if it is not known
 * (yet). */
bool area_program(const struct area *area, char *path, size_t size);
