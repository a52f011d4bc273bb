/* v1, merge: set-up, repairs and positions; v1/frontier.c has the loop. */
#include "read/v1/merge.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"

/* With up to this many lanes the frontier is an array. */
#define FLAT_MAX 48

void v1_merge_locate(const struct v1_merge *merge, const struct v1_event *event, trail_error *err)
{
    err->offset = (int64_t)event->offset;
    err->batch = v1_index_batch_at(merge->index, event->offset);
    err->proc = event->proc;
    err->goroutine = (int64_t)event->g;
    err->time_ns = event->ticks;
}

void v1_repairs_add(struct v1_repairs *repairs, trail_repair_kind kind,
                    const struct v1_event *event, int64_t shift_ticks)
{
    enum { KEPT = 10000 };
    if (!repairs->record)
        return;
    repairs->count++;
    repairs->by_kind[kind]++;
    if (repairs->list_count >= KEPT)
        return;
    if (!GROW(repairs->list, repairs->list_capacity, repairs->list_count + 1))
        return;
    repairs->list[repairs->list_count++] = (trail_repair){
        .kind = kind,
        .offset = (int64_t)event->offset,
        .proc = event->proc,
        .goroutine = (int64_t)event->g,
        .time_ns = event->ticks,
        .shift_ns = shift_ticks,
    };
}

static bool make_lanes(struct v1_merge *merge)
{
    const struct v1_index *index = merge->index;
    merge->lane_count = index->chain_count + 1;
    merge->flat = merge->lane_count <= FLAT_MAX;
    merge->lanes = calloc(merge->lane_count, sizeof *merge->lanes);
    merge->frontier.entry = malloc(merge->lane_count * sizeof *merge->frontier.entry);
    merge->waiting.capacity = 2 * merge->lane_count + 16;
    if (merge->repairs->enabled)
        merge->waiting.entry = malloc(merge->waiting.capacity * sizeof *merge->waiting.entry);
    if (!merge->lanes || !merge->frontier.entry ||
        (merge->repairs->enabled && !merge->waiting.entry))
        return false;
    for (size_t i = 0; i < merge->lane_count; i++) {
        struct v1_lane *lane = &merge->lanes[i];
        lane->order = (uint32_t)i;
        lane->thread = TRAIL_NONE;
        lane->next_batch = V1_NO_BATCH;
        if (i < index->chain_count) {
            lane->proc = index->chains[i].proc;
            lane->next_batch = index->chains[i].first;
        }
    }
    return true;
}

int v1_merge_init(struct v1_merge *merge, const struct v1_index *index, struct v1_gs *gs,
                  struct v1_repairs *repairs, bool global_keeps_g, bool fast)
{
    *merge = (struct v1_merge){
        .index = index,
        .format = index->format,
        .gs = gs,
        .repairs = repairs,
        .global_keeps_g = global_keeps_g,
        .fast = fast,
        .gc.alive = true,
        .always.alive = true,
    };
    error_clear(&merge->error);
    merge->g0 = v1_gs_get(gs, 0);
    if (!merge->g0 || !make_lanes(merge))
        return error_no_memory(&merge->error);
    merge->next = v1_frontier_next;
#ifdef TRAIL_HAVE_BMI2
    if (__builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2")) {
        merge->next = v1_frontier_next_bmi2;
        return v1_frontier_begin_bmi2(merge);
    }
#endif
    return v1_frontier_begin(merge);
}

void v1_merge_fini(struct v1_merge *merge)
{
    for (size_t i = 0; merge->lanes && i < merge->lane_count; i++)
        free(merge->lanes[i].piece.data);
    free(merge->lanes);
    free(merge->frontier.entry);
    free(merge->waiting.entry);
    free(merge->sequenced);
    merge->lanes = NULL;
    merge->frontier.entry = merge->waiting.entry = NULL;
    merge->sequenced = NULL;
}

uint64_t v1_merge_done_before(const struct v1_merge *merge)
{
    uint64_t done = merge->index->end;
    if (merge->sequenced) {
        for (size_t i = (size_t)merge->position; i < merge->sequenced_count; i++)
            if (merge->sequenced[i].offset < done)
                done = merge->sequenced[i].offset;
        return done;
    }
    for (size_t i = 0; merge->lanes && i + 1 < merge->lane_count; i++) {
        const struct v1_lane *lane = &merge->lanes[i];
        if (lane->place != V1_LANE_DONE && lane->head_number > 0 && lane->head.offset < done)
            done = lane->head.offset;
    }
    return done;
}
