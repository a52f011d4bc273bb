/*
 * A recorded program made by hand: an area whose threads and records the test writes, a collector
 * that reads it, and the resulting trace, read back.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <trail/read.h>

#include "../lib/unit.h"
#include "collect/collect.h"

#define OPENED UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

static uint64_t now, passes_ns; /* how far each reading of the clock advances it */

static inline uint64_t read_clock(void)
{
    return now += passes_ns;
}

struct world {
    struct shm_area *memory;
    struct ticks ticks;
    struct trace *to;
    struct collect *collect;
    struct collect *next; /* of a program that the process has executed; NULL: none */
    struct collect_summary summary;
    uint8_t *trace;
    size_t size;
    uint32_t chunks;   /* number used so far */
    uint32_t last[32]; /* the last chunk of each slot */
    bool hurried;
    uint64_t counts[64];   /* events by kind */
    uint64_t logged_at[8]; /* the innermost PC of the first logs */
    char logged[8][80];    /* ... and their texts */
    uint64_t threads;      /* different Ms of events */
    uint64_t woken;        /* goroutines whose wait was ended by another one */
    uint64_t wakers[32];   /* ... the goroutine that ended it, by slot */
};

/* MARK: A program by hand */

static inline bool keep(void *context, const void *data, size_t size)
{
    struct world *w = context;
    uint8_t *trace = realloc(w->trace, w->size + size);
    if (!trace)
        return false;
    memcpy(trace + w->size, data, size);
    w->trace = trace;
    w->size += size;
    return true;
}

static inline bool is_hurried(void *context)
{
    return ((struct world *)context)->hurried;
}

/* `switches`, `wakings`: whether the kernel reports them. */
static inline void begin_seen(struct world *w, bool switches, bool wakings)
{
    const struct area_options options = {.groups = UINT32_MAX,
                                         .stacks = SHM_STACKS_UNWIND,
                                         .min_wait_ns = 10000,
                                         .hold_ns = 1000000};
    trail_error err;
    struct area *area;
    *w = (struct world){.ticks = {.clock.injected = read_clock, .count = 1}};
    w->ticks.anchors[0] = (struct ticks_anchor){OPENED, OPENED, 1.0};
    now = OPENED + 500 * MS;
    w->memory = mmap(NULL, sizeof *w->memory, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(w->memory, MAP_FAILED);
    w->memory->header.threads_used = 16;
    area = area_over(w->memory, &options, &w->ticks, OPENED);
    assert_non_null(area);
    w->to = trace_open(&(struct trace_options){.version = 23,
                                               .switches = switches,
                                               .wakings = wakings,
                                               .sink = {keep, w},
                                               .is_hurried = is_hurried,
                                               .is_hurried_context = w},
                       &err);
    assert_non_null(w->to);
    w->collect = collect_open(
        &(struct collect_options){.trace = w->to, .area = area, .ticks = &w->ticks}, &err);
    assert_non_null(w->collect);
}

static inline void begin_with(struct world *w, bool switches)
{
    begin_seen(w, switches, false);
}

static inline void begin(struct world *w)
{
    begin_with(w, false);
}

static inline void step(struct world *w)
{
    collect_step(w->collect);
    trace_step(w->to, UINT64_MAX);
}

/* Appends a record to a thread's chain. */
static inline void put(struct world *w, uint32_t slot, struct shm_record record)
{
    struct shm_thread *thread = &w->memory->threads[slot];
    struct shm_chunk *chunk;
    if (!thread->first)
        w->last[slot] = thread->first = ++w->chunks;
    chunk = shm_chunk(w->memory, w->last[slot]);
    if (chunk->used == SHM_CHUNK_RECORDS) {
        w->last[slot] = chunk->next = ++w->chunks;
        chunk = shm_chunk(w->memory, chunk->next);
    }
    chunk->records[chunk->used++] = record;
}

/* Puts a thread that begins within the first millisecond. */
static inline void put_thread(struct world *w, uint32_t slot)
{
    w->memory->threads[slot].state = SHM_LIVE;
    w->memory->threads[slot].serial = slot;
    w->memory->threads[slot].tid = 100 + slot;
    put(w, slot, (struct shm_record){.kind = SHM_STARTED, .time = OPENED + MS, .object = slot});
}

/* Returns a wait of 2 ms that begins at `ms`. */
static inline struct shm_record wait_at(uint64_t ms)
{
    return (struct shm_record){.kind = SHM_WAITED,
                               .wait = SHM_MUTEX,
                               .time = OPENED + ms * MS,
                               .end = OPENED + (ms + 2) * MS,
                               .object = 0x1000};
}

static inline struct shm_record record_at(uint8_t kind, uint64_t ms)
{
    return (struct shm_record){.kind = kind, .time = OPENED + ms * MS, .object = 7};
}

/* Puts a text at a position of the table. */
static inline void put_text(struct world *w, uint32_t number, const char *text)
{
    w->memory->stack_words[number] = SHM_TEXT_BIT + strlen(text);
    memcpy(&w->memory->stack_words[number + 1], text, strlen(text));
}

static inline bool is_wake(const trail_event *e)
{
    return e->kind == TRAIL_STATE_TRANSITION &&
           e->transition.resource == TRAIL_RESOURCE_GOROUTINE &&
           e->transition.from == TRAIL_GO_WAITING && e->transition.to == TRAIL_GO_RUNNABLE &&
           e->goroutine > 0 && e->goroutine != e->transition.id;
}

/* Call it before the log is counted. */
static inline void note_log(struct world *w, const trail_reader *reader, const trail_event *e)
{
    size_t count, n = (size_t)w->counts[TRAIL_LOG];
    const trail_frame *frames = trail_reader_stack(reader, e->stack, &count);
    if (e->kind != TRAIL_LOG || n >= sizeof w->logged_at / sizeof w->logged_at[0])
        return;
    trail_string text = trail_reader_string(reader, e->log.message);
    w->logged_at[n] = count ? frames[0].pc : 0;
    (void)snprintf(w->logged[n], sizeof w->logged[n], "%.*s", (int)text.size, text.data);
}

/* Completes the trace, which the reader must accept, and counts its events. */
static inline void finish(struct world *w)
{
    uint64_t ms[64] = {0};
    const trail_event *events;
    trail_source *source;
    trail_reader *reader;
    trail_error err;
    long count;
    if (w->next)
        collect_end_with_trace(w->next);
    collect_end_with_trace(w->collect);
    assert_true(trace_finish(w->to, &err));
    collect_summarize(w->collect, &w->summary);
    collect_close(w->collect);
    collect_close(w->next);
    trace_close(w->to);
    munmap(w->memory, sizeof *w->memory);
    source = trail_source_open_memory(w->trace, w->size, &err);
    reader = trail_reader_open(source, NULL, &err);
    assert_non_null(reader);
    while ((count = trail_reader_next_batch(reader, &events)) > 0) {
        for (long i = 0; i < count; i++) {
            uint64_t m = (uint64_t)events[i].thread;
            size_t k = 0;
            note_log(w, reader, &events[i]);
            w->counts[events[i].kind]++;
            w->woken += is_wake(&events[i]);
            w->wakers[(uint64_t)events[i].goroutine % 32] += is_wake(&events[i]);
            while (k < w->threads && ms[k] != m)
                k++;
            if (k == w->threads && k < 64 && events[i].thread >= 0)
                ms[w->threads++] = m;
        }
    }
    if (count < 0)
        fail_msg("%s", trail_reader_error(reader)->message);
    trail_reader_close(reader);
    trail_source_close(source);
    free(w->trace);
}
