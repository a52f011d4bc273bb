/*
 * The log of a critical path: what every goroutine changed to, in the order of the trace, written
 * once forwards and read backwards. An entry is some six bytes:
 *
 *     state+flags | time since the entry before | distance to the goroutine's entry before
 *     [ distance to the waker's latest entry | the waker ] [ where ]
 *     [ reason | stack ]
 *
 * each but the first a varint. 256 entries are a chunk, which is decoded whole; a table has the place
 * and time of each. Chunks lie in blocks; when there are many, the older ones go to a temporary file
 * that has no name any more.
 *
 * Times never decrease: what runs backwards in a damaged trace is held at the latest before.
 */
#ifndef TRAIL_ANALYZE_PATH_LOG_H
#define TRAIL_ANALYZE_PATH_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PATH_CHUNK = 256 };

enum {
    PATH_BEFORE = 8,   /* the state is older than the log; no entry before */
    PATH_CREATED = 16, /* the goroutine begins here; no entry before */
    PATH_WAITED = 32,  /* it waited until here */
    PATH_WOKEN = 64,   /* somebody did this to it: waker and waker_entry are set */
    PATH_TOLD = 128    /* the log's own: there is a reason or a stack */
};

/* Numbers of entries count from 1; 0 is none. */
struct path_entry {
    int64_t time_ns;
    uint64_t before;      /* the same goroutine's */
    uint64_t waker_entry; /* the latest of who woke or created it */
    uint32_t waker;       /* number of that goroutine */
    uint32_t reason;
    uint32_t stack; /* where it happened: the waker's, if PATH_WOKEN */
    uint32_t where; /* where it had waited, or begins: if PATH_WAITED or PATH_CREATED */
    uint8_t state;  /* trail_go_state */
    uint8_t flags;
};

struct path_chunk {
    int64_t time_ns; /* of what its first entry counts from */
    uint64_t at;     /* block and byte in it */
};

/* Zero-initialised is empty and ready. Not thread-safe. */
struct path_log {
    uint8_t **blocks; /* NULL: in the file, at its number */
    size_t block_count, block_capacity;
    size_t spilled; /* so many blocks are in the file */
    size_t used;    /* bytes of the newest block */
    struct path_chunk *chunks;
    size_t chunk_capacity;
    uint64_t count; /* entries */
    int64_t last_ns;
    int file;        /* descriptor + 1; 0: none yet; -1: there can be none */
    uint8_t *window; /* the block of the file that was read last */
    size_t window_block;
    struct path_entry decoded[PATH_CHUNK];
    uint64_t decoded_chunk; /* + 1; 0: none */
};

/* Adds an entry; its time is raised if need be. Its number, 0 when memory is out. */
uint64_t path_log_add(struct path_log *log, struct path_entry *entry);

/*
 * The entry, valid until the next call; NULL if the file cannot be read. The number must be one that
 * path_log_add gave.
 */
const struct path_entry *path_log_get(struct path_log *log, uint64_t number);

/* Forgets all entries; keeps memory. Numbers begin with 1 again. */
void path_log_clear(struct path_log *log);
void path_log_free(struct path_log *log);

#endif
