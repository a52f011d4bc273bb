/*
 * The log of a critical path: the state changes of all goroutines, in the order of the trace,
 * written once forwards and read backwards. An entry takes about six bytes:
 *
 *     state+flags | time since the entry before | distance to the goroutine's entry before
 *     [ distance to the waker's latest entry | the waker ] [ where ]
 *     [ reason | stack ]
 *
 * All but the first are varints. 256 entries form a chunk, which is decoded as a whole; a table has
 * the place and time of each chunk. Chunks lie in blocks; when there are many, the older blocks go
 * to an unlinked temporary file.
 *
 * Times never decrease: a time that goes backwards in a damaged trace is raised to the latest
 * before.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { PATH_CHUNK = 256 };

enum {
    PATH_BEFORE = 8,   /* the state began before the log; no previous entry */
    PATH_CREATED = 16, /* the goroutine begins here; no previous entry */
    PATH_WAITED = 32,  /* it waited until here */
    PATH_WOKEN = 64,   /* caused by another goroutine: waker and waker_entry are set */
    PATH_NOTED = 128   /* internal to the log: a reason or a stack follows */
};

/* Numbers of entries begin with 1; 0 is none. */
struct path_entry {
    int64_t time_ns;
    uint64_t before;      /* previous entry of the goroutine */
    uint64_t waker_entry; /* latest entry of the goroutine that woke or created it */
    uint32_t waker;       /* number of that goroutine */
    uint32_t reason;
    uint32_t stack; /* where it happened: the waker's stack, if PATH_WOKEN */
    uint32_t where; /* where it waited or begins, if PATH_WAITED or PATH_CREATED */
    uint8_t state;  /* trail_go_state */
    uint8_t flags;
};

struct path_chunk {
    int64_t time_ns; /* base of its first entry's time */
    uint64_t at;     /* block, and byte in the block */
};

/* Zero-initialised is empty and ready. Not thread-safe. */
struct path_log {
    uint8_t **blocks; /* NULL: in the file, at its number */
    size_t block_count, block_capacity;
    size_t spilled; /* number of blocks in the file */
    size_t used;    /* bytes of the newest block */
    struct path_chunk *chunks;
    size_t chunk_capacity;
    uint64_t count; /* entries */
    int64_t last_ns;
    int file;        /* descriptor + 1; 0: none yet; -1: there can be none */
    uint8_t *window; /* the block that was last read from the file */
    size_t window_block;
    struct path_entry decoded[PATH_CHUNK];
    uint64_t decoded_chunk; /* + 1; 0: none */
};

/* Adds an entry; raises its time if necessary. Returns its number, or 0 if out of memory. */
uint64_t path_log_add(struct path_log *log, struct path_entry *entry);

/*
 * Returns the entry, valid until the next call, or NULL if the file cannot be read. `number` must
 * come from path_log_add.
 */
const struct path_entry *path_log_get(struct path_log *log, uint64_t number);

/* Removes all entries and keeps the memory. Numbers begin with 1 again. */
void path_log_clear(struct path_log *log);
void path_log_free(struct path_log *log);
