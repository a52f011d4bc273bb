/*
 * The collector's side of the area (preload/shm.h): making it, taking records out, giving chunks and slots
 * back. What the program wrote is not trusted: every index is checked before it is used.
 */
#ifndef TRAIL_COLLECT_AREA_H
#define TRAIL_COLLECT_AREA_H

#include <stdbool.h>
#include <trail/error.h>

#include "preload/shm.h"

/*
 * Makes an area in memory that only *fd names, or in the file `path` if it is not NULL, which appears when the area
 * is ready, in place of one that is there. *fd is to be closed by the caller. NULL with *err.
 */
struct shm_area *area_make(int *fd, trail_error *err);
struct shm_area *area_make_file(const char *path,
                                void (*prepare)(void *context, struct shm_area *area),
                                void *context, trail_error *err);
void area_unmap(struct shm_area *area);

/* Stores the coarse clock: every millisecond or so; 0: there is none. A time that is taken from it shows that. */
static inline void area_tick(struct shm_area *area, uint64_t ticks)
{
    __atomic_store_n(&area->header.coarse, ticks & ~SHM_EXACT, __ATOMIC_RELAXED);
}

/* The number of slots that were ever used: 1 ... are valid indices. */
uint32_t area_threads(const struct shm_area *area);

/* Where reading of a thread's chain has come to. */
struct area_cursor {
    uint32_t chunk; /* 0: none yet */
    uint32_t at;
};

/*
 * The next record of a thread's chain, copied; false: no more for now. Chunks that were read go back to
 * the free list.
 */
bool area_next(struct shm_area *area, uint32_t thread, struct area_cursor *cursor,
               struct shm_record *record);

/* Gives the slot of a thread that has ended, and was read to its end, back; with its last chunk. */
void area_free_thread(struct shm_area *area, uint32_t thread, struct area_cursor *cursor);

/* The call that a thread is in, as far as it is whole. False: in none. */
struct area_open {
    uint64_t time, object, pc;
    uint64_t held_pc; /* where who has the lock took it; 0: not known */
    uint64_t sp, fp;
    uint32_t stack, detail;
    uint8_t wait;
};
bool area_open_call(const struct shm_area *area, uint32_t thread, struct area_open *open);

/* The PCs of a stack, innermost first; 0 if there is no such stack. They are in the area. */
size_t area_stack(const struct shm_area *area, uint32_t number, const uint64_t **pcs);

/* The bytes of a text, which are in the area; 0 if there is no such text. */
size_t area_text(const struct shm_area *area, uint32_t number, const char **text);

#endif
