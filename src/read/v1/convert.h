/*
 * v1, convert: the checked v1 events, one after another, as the events of v2 (§4). Strings that
 * only the new model has (reasons, names of ranges) are made once; of the state of the trace only
 * the threads of the Ps and the goroutines created before the start-up snapshot ended are kept.
 *
 * For files before 1.11, which no Go converts, the rules are the same; what had to be decided:
 * - events of stopped worlds and the GC keep the goroutine that ran on their P, as from 1.11 on;
 * - a stopped world without a kind (until 1.9) is of kind 0, "GC mark termination";
 * - a FutileWakeup that removed nothing (§3.5) has no counterpart and is left out, where the rules
 * of Go >= 1.23 make it an error;
 * - in 1.5 files the stack where a goroutine starts is the one PC that its creation names.
 */
#ifndef TRAIL_READ_V1_CONVERT_H
#define TRAIL_READ_V1_CONVERT_H

#include "read/v1/order.h"

/* §4.1: kinds of stopped worlds, from 1.21 on as in the file. */
#define V1_STW_REASONS 17

/* Ticks to nanoseconds since the first event, as Go computes them (§1.2). */
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
    const struct idmap *pc_stacks;                 /* 1.5: start PC -> handle of a stack of it */
    trail_string_handle reasons[V1_TYPE_MASK + 1]; /* by type of the event that has it */
    trail_string_handle ranges[TRAIL_RANGES];
    trail_string_handle stw[V1_STW_REASONS];

    trail_event *out; /* what was converted and not yet delivered */
    size_t out_count, out_capacity;
    bool synced; /* the first Sync is out */
    int64_t last_ns;
    uint64_t syncs;
    unsigned stw_reason;
    bool starting;        /* before the first Gomaxprocs */
    struct idmap created; /* before the start ended, and not spoken of since: id -> anything */
    uint64_t *created_order;
    size_t created_count, created_capacity;
    trail_error error;
};

/* Returns false when memory is out. v1_convert_fini always. */
bool v1_convert_init(struct v1_convert *convert, struct tables *tables,
                     const struct v1_notes *notes, const struct v1_clock *clock, int version,
                     bool drop_futile, const struct idmap *pc_stacks);
void v1_convert_fini(struct v1_convert *convert);

/* Appends what becomes of `event` to convert->out. Returns -1: convert->error. */
int v1_convert_event(struct v1_convert *convert, const struct v1_event *event);

/* Appends the Sync at the end. */
int v1_convert_end(struct v1_convert *convert);

/* The handle of an event's stack ID, or of the PC where a goroutine of a 1.5 file starts. */
trail_stack_handle v1_stack_handle(const struct tables *tables, uint64_t id);
trail_stack_handle v1_start_stack(const struct tables *tables, const struct idmap *pc_stacks,
                                  int version, uint64_t id);

/* The text behind a UserLog as a string of the tables. */
trail_string_handle v1_log_text(struct tables *tables, const struct v1_event *event);

#endif
