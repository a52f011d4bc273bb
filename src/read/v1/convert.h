/*
 * v1, convert: turns checked v1 events, one by one, into v2 events (§4). Strings that only the new
 * model has (reasons, names of ranges) are created once. The only state kept is the threads of the
 * Ps, and the goroutines created before the end of the start-up snapshot; in a repaired trace also
 * the state of each goroutine, which ends, marked as implied, where the next event requires
 * another.
 *
 * Files before 1.11, which no Go release converts, follow the same rules, with these decisions:
 * - events of stop-the-world pauses and the GC keep the goroutine that ran on their P, as from 1.11
 *   on;
 * - a pause without a kind (until 1.9) has kind 0, "GC mark termination";
 * - a FutileWakeup that removed nothing (§3.5) has no counterpart and is omitted, although it is an
 *   error by the rules of Go >= 1.23;
 * - in 1.5 files the start stack of a goroutine is the one PC of its creation.
 */
#pragma once

#include "read/v1/order.h"
#include "read/v1/shown.h"

/* §4.1: kinds of stop-the-world pauses, from 1.21 on as in the file. */
#define V1_STW_REASONS 17

/* Converts ticks to nanoseconds since the first event, computed as Go does (§1.2). */
struct v1_clock {
    int64_t first_ticks;
    double ns_per_tick;
};

int64_t v1_clock_ns(const struct v1_clock *clock, int64_t ticks);

struct v1_convert {
    struct tables *tables;
    const struct v1_notes *notes;
    const struct v1_clock *clock;
    int version;
    bool drop_futile;
    bool repairs;                                  /* states may contradict those before */
    const struct idmap *pc_stacks;                 /* 1.5: start PC -> handle of its stack */
    trail_string_handle reasons[V1_TYPE_MASK + 1]; /* by type of the event */
    trail_string_handle ranges[TRAIL_RANGES];
    trail_string_handle stw[V1_STW_REASONS];

    trail_event *out; /* converted events that are not delivered yet */
    size_t out_count, out_capacity;
    bool synced; /* the first Sync was written */
    int64_t last_ns;
    uint64_t syncs;
    unsigned stw_reason;
    bool starting; /* before the first Gomaxprocs */
    /* created before the start ended, without events since: id -> handle of the start stack + 1 */
    struct idmap created;
    uint64_t *created_order;
    size_t created_count, created_capacity;
    struct v1_shown *shown;     /* for a trace with lost events; NULL: none are lost */
    struct v1_shown_g *changed; /* by the current event */
    uint64_t open_holes;        /* Ps whose events are lost now, and 1 if the trace was cut */
    trail_error error;
};

/*
 * `shown` is NULL or must outlive it; in its collecting pass the output is meaningless. Returns
 * false if out of memory. Call v1_convert_fini in any case.
 */
bool v1_convert_init(struct v1_convert *convert, struct tables *tables,
                     const struct v1_notes *notes, const struct v1_clock *clock, int version,
                     bool drop_futile, struct v1_shown *shown, const struct idmap *pc_stacks);
void v1_convert_fini(struct v1_convert *convert);

/* Appends the converted `event` to convert->out. Returns -1 with convert->error on an error. */
int v1_convert_event(struct v1_convert *convert, const struct v1_event *event);

/* Appends the final Sync. */
int v1_convert_end(struct v1_convert *convert);

/* Return the handle of an event's stack ID, or of the start PC of a goroutine in a 1.5 file. */
trail_stack_handle v1_stack_handle(const struct tables *tables, uint64_t id);
trail_stack_handle v1_start_stack(const struct tables *tables, const struct idmap *pc_stacks,
                                  int version, uint64_t id);

/* Returns the message of a UserLog as a string of the tables. */
trail_string_handle v1_log_text(struct tables *tables, const struct v1_event *event);
