/* v1, order: late exits move to their times, futile wake-ups are removed (§3.4, §3.5). */
#include "read/v1/order.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/heap.h"

/* MARK: Futile wake-ups (§3.5) */

static bool is_removed(const struct v1_notes *notes, uint64_t position)
{
    return notes->removed && (notes->removed[position / 8] >> (position % 8) & 1) != 0;
}

static void remove_at(struct v1_notes *notes, uint64_t position)
{
    notes->removed[position / 8] |= (uint8_t)(1u << (position % 8));
    notes->removed_count++;
}

static int wakeup_append(struct v1_order *order, struct v1_futile_list *list, uint64_t position)
{
    return APPEND(list->position, list->capacity, list->count, position)
               ? 0
               : error_no_memory(&order->error);
}

static void wakeup_close(struct v1_order *order, struct v1_futile_list *list, uint64_t position)
{
    if (list->futile) {
        remove_at(order->notes, position);
        for (size_t i = 0; i < list->count; i++)
            remove_at(order->notes, list->position[i]);
    }
    list->count = 0;
    list->futile = false;
}

static int collect_futile(struct v1_order *order, const struct v1_event *ev)
{
    uint64_t position = order->merge.position - 1;
    struct v1_futile_list *own = &ev->gs->wakeup;
    switch (ev->type) {
    case V1_GoUnblock:
        ev->key->wakeup.count = 0;
        ev->key->wakeup.futile = false;
        return wakeup_append(order, &ev->key->wakeup, position);
    case V1_FutileWakeup:
        own->futile = true;
        return wakeup_append(order, own, position);
    case V1_GoStart:
    case V1_GoPreempt:
        return wakeup_append(order, own, position);
    case V1_GoBlock:
    case V1_GoBlockSend:
    case V1_GoBlockRecv:
    case V1_GoBlockSelect:
    case V1_GoBlockSync:
    case V1_GoBlockCond:
        wakeup_close(order, own, position);
        return 0;
    default:
        return 0;
    }
}

/* MARK: Time and exits of system calls */

enum verdict { STAYS, MOVES_UP, MOVES_DOWN, FAILS };

static enum verdict fail_time(struct v1_order *order, const struct v1_event *ev, trail_error *kept,
                              trail_code code, const char *message)
{
    trail_error *err = order->go_on ? kept : &order->error;
    if (err->code == TRAIL_OK) {
        error_set(err, code, "%s", message);
        v1_merge_locate(&order->merge, ev, err);
        order->at_fault = true;
    }
    return order->go_on ? STAYS : FAILS;
}

static enum verdict examine_exit(struct v1_order *order, struct v1_event *ev)
{
    int64_t ticks = (int64_t)ev->arg[2];
    int64_t blocked = ev->gs->blocked_ticks;
    if (ticks == 0)
        return STAYS;
    if (blocked == 0 || ticks < blocked) {
        if (!order->repairs->enabled) {
            return blocked == 0 ? fail_time(order, ev, &order->exit_error, TRAIL_INCONSISTENT,
                                            "stray syscall exit")
                                : fail_time(order, ev, &order->exit_error, TRAIL_TIME_ORDER,
                                            "time stamps out of order: a system call ends before "
                                            "it blocked");
        }
        v1_repairs_add(order->repairs, TRAIL_REPAIR_SYSCALL_EXIT, ev,
                       (int64_t)((uint64_t)ev->ticks - (uint64_t)ticks));
        return STAYS;
    }
    if (ev->previous != V1_GoSysBlock && ev->previous != V1_GoInSyscall)
        order->notes->irregular = true;
    if (ticks == ev->ticks)
        return STAYS;
    if (ticks < ev->ticks)
        return MOVES_UP;
    order->notes->irregular = true;
    return MOVES_DOWN;
}

/* Checks the time of an event of the merge, and decides where it goes. */
static inline enum verdict examine(struct v1_order *order, struct v1_event *ev)
{
    if (__builtin_expect(!order->any, 0)) {
        order->first_ticks = ev->ticks;
        order->any = true;
    } else if (__builtin_expect(ev->ticks < order->last_ticks, 0)) {
        if (!order->repairs->enabled)
            return fail_time(order, ev, &order->time_error, TRAIL_TIME_ORDER,
                             "time stamps out of order");
        int64_t shift = (int64_t)((uint64_t)order->last_ticks - (uint64_t)ev->ticks);
        ev->ticks = order->last_ticks;
        v1_repairs_add(order->repairs, TRAIL_REPAIR_TIME, ev, shift);
    }
    order->last_ticks = ev->ticks;
    if (__builtin_expect(!order->special[ev->type], 1))
        return STAYS;
    if (ev->type == V1_GoSysBlock || ev->type == V1_GoInSyscall)
        ev->gs->blocked_ticks = ev->ticks;
    else if (ev->type == V1_GoSysExit && order->index->format->version >= 7 &&
             order->time_error.code == TRAIL_OK)
        return examine_exit(order, ev);
    return STAYS;
}

/* MARK: Moved exits */

static int note_moved(struct v1_order *order, const struct v1_event *ev)
{
    struct v1_notes *notes = order->notes;
    if (!GROW(notes->moved, notes->moved_capacity, notes->moved_count + 1))
        return error_no_memory(&order->error);
    notes->moved[notes->moved_count++] =
        (struct v1_moved){.ticks = (int64_t)ev->arg[2], .offset = ev->offset};
    return 0;
}

/*
 * Stable merge sort of `count` exits at `first`; `spare` has room for half of them. Exits are
 * nearly sorted by time already, so that most merges have nothing to do.
 */
static void sort_moved(struct v1_moved *first, size_t count, struct v1_moved *spare)
{
    if (count < 2)
        return;
    size_t half = count / 2;
    sort_moved(first, half, spare);
    sort_moved(first + half, count - half, spare);
    if (first[half - 1].ticks <= first[half].ticks)
        return;
    memcpy(spare, first, half * sizeof *spare);
    size_t left = 0, right = half, to = 0;
    while (left < half) {
        if (right < count && first[right].ticks < spare[left].ticks)
            first[to++] = first[right++];
        else
            first[to++] = spare[left++];
    }
}

static int sort_notes(struct v1_order *order)
{
    struct v1_notes *notes = order->notes;
    if (notes->moved_sorted || notes->moved_count < 2)
        return 0;
    struct v1_moved *spare = malloc(notes->moved_count / 2 * sizeof *spare);
    if (!spare)
        return error_no_memory(&order->error);
    sort_moved(notes->moved, notes->moved_count, spare);
    free(spare);
    notes->moved_sorted = true;
    return 0;
}

static bool held_before(const struct v1_held *a, const struct v1_held *b)
{
    int64_t x = (int64_t)a->event.arg[2], y = (int64_t)b->event.arg[2];
    return x < y || (x == y && a->number < b->number);
}

HEAP(held, struct v1_held, held_before)

static int hold(struct v1_order *order, const struct v1_event *ev)
{
    if (!GROW(order->held, order->held_capacity, order->held_count + 1))
        return error_no_memory(&order->error);
    struct v1_held entry = {.event = *ev, .number = order->held_number++};
    held_up(order->held, order->held_count++, entry);
    return 0;
}

static struct v1_event unhold(struct v1_order *order)
{
    struct v1_event event = order->held[0].event;
    struct v1_held last = order->held[--order->held_count];
    if (order->held_count > 0)
        held_down(order->held, order->held_count, 0, last);
    event.ticks = (int64_t)event.arg[2];
    return event;
}

/* The maximum size of an exit: its first byte, a length, four numbers. */
#define V1_MOVED_SIZE 64

/* Reads again an exit whose offset was noted. */
static int read_moved(struct v1_order *order, const struct v1_moved *moved, struct v1_event *event)
{
    const struct v1_index *index = order->index;
    struct v1_bytes bytes;
    struct v1_record record = {0};
    uint64_t left = index->end - moved->offset;
    size_t size = left < V1_MOVED_SIZE ? (size_t)left : V1_MOVED_SIZE;
    if (v1_input_get(&index->input, moved->offset, size, &order->moved, &bytes, &order->error) <
            0 ||
        v1_record_read(index->format, &bytes, bytes.data + (moved->offset - bytes.offset), &record,
                       &order->error) < 0)
        return -1;
    if (record.type != V1_GoSysExit && record.type != V1_GoSysExitLocal)
        return error_set(&order->error, TRAIL_IO, "the trace changed while it was being read");
    *event = (struct v1_event){
        .type = V1_GoSysExit,
        .ticks = moved->ticks,
        .offset = moved->offset,
        .g = record.number[1],
        .arg = {record.number[1], record.number[2], record.number[3]},
    };
    return 0;
}

/*
 * Emits the earliest moved exit that precedes all remaining events of the merge. Returns 1 or 0, -1
 * on an error.
 */
static int put_in(struct v1_order *order, struct v1_event **event)
{
    const struct v1_notes *notes = order->notes;
    const struct v1_moved *moved =
        order->next_moved < notes->moved_count ? &notes->moved[order->next_moved] : NULL;
    const struct v1_event *held = order->held_count > 0 ? &order->held[0].event : NULL;
    if (__builtin_expect(!moved && !held, 0))
        return 0;
    int64_t held_ticks = held ? (int64_t)held->arg[2] : 0;
    int64_t next_ticks = order->merge_ended ? INT64_MAX : order->peeked->ticks;
    if (held && (!moved || held_ticks <= moved->ticks)) {
        if (held_ticks > next_ticks)
            return 0;
        order->put_in = unhold(order);
    } else {
        if (moved->ticks >= next_ticks && !order->merge_ended)
            return 0;
        order->next_moved++;
        if (read_moved(order, moved, &order->put_in) < 0)
            return -1;
    }
    order->put_in.gs = v1_gs_get(order->merge.gs, order->put_in.g);
    if (!order->put_in.gs)
        return error_no_memory(&order->error);
    order->put_in.key = order->put_in.gs;
    *event = &order->put_in;
    return 1;
}

/* MARK: Passes */

/* Notes whether the goroutine's first event after a GoSysCall is a GoSysBlock. */
static void note_call(struct v1_notes *notes, const struct v1_event *ev)
{
    struct v1_g *g = ev->gs;
    if (g->call_open) {
        g->call_open = false;
        if (ev->type == V1_GoSysBlock)
            v1_notes_block(notes, g->call);
    }
    if (ev->type == V1_GoSysCall) {
        g->call_open = true;
        g->call = ev->offset;
    }
}

/* Final changes: lanes that are not Ps. */
static inline int give(struct v1_order *order, struct v1_event *ev, struct v1_event **event)
{
    *event = ev;
    /* One branch for all rare cases. */
    if (__builtin_expect(!(order->special[ev->type] | ev->gs->call_open), 1))
        return 1;
    if (order->note_calls)
        note_call(order->notes, ev);
    if (ev->type == V1_GoSysExit) {
        ev->proc = TRAIL_SYSCALL_PROC;
        ev->lane = NULL;
    } else if (ev->type == V1_GoUnblock && idmap_find(&order->index->timer_gs, ev->g)) {
        ev->proc = TRAIL_TIMER_PROC;
        ev->lane = NULL;
    }
    return 1;
}

static int pass_on_error(struct v1_order *order)
{
    order->error = order->merge.error;
    return -1;
}

static int collect_next(struct v1_order *order, struct v1_event **event)
{
    struct v1_event *ev;
    int result = v1_merge_next(&order->merge, &ev);
    if (result != 1)
        return result < 0 ? pass_on_error(order) : result;
    /* Most events are in time order and do not concern this stage. */
    bool odd = order->special[ev->type] | ev->gs->call_open | order->removes;
    if (__builtin_expect(!odd && ev->ticks >= order->last_ticks && order->any, 1)) {
        order->last_ticks = ev->ticks;
        *event = ev;
        return 1;
    }
    enum verdict verdict = examine(order, ev);
    if (verdict == FAILS)
        return -1;
    if (verdict == MOVES_UP && note_moved(order, ev) < 0)
        return -1;
    if (__builtin_expect(order->removes, 0) && collect_futile(order, ev) < 0)
        return -1;
    return give(order, ev, event);
}

/* Fetches the merge's next event that keeps its place. */
static int replay_peek(struct v1_order *order)
{
    while (!order->peeked && !order->merge_ended) {
        struct v1_event *ev;
        int result = v1_merge_next(&order->merge, &ev);
        if (result < 0)
            return pass_on_error(order);
        if (result == 0) {
            order->merge_ended = true;
            break;
        }
        enum verdict verdict = examine(order, ev);
        if (verdict == FAILS)
            return -1;
        if (verdict == MOVES_DOWN && hold(order, ev) < 0)
            return -1;
        if (verdict == STAYS && !is_removed(order->notes, order->merge.position - 1))
            order->peeked = ev;
    }
    return 0;
}

static int replay_next(struct v1_order *order, struct v1_event **event)
{
    struct v1_event *ev = NULL;
    /* Held events precede an error of the merge, which comes last. */
    bool failed = replay_peek(order) < 0;
    if (failed)
        order->merge_ended = true;
    int result = put_in(order, &ev);
    if (result < 0)
        return -1;
    if (ev)
        return give(order, ev, event);
    if (order->merge_ended)
        return order->error.code == TRAIL_OK ? 0 : -1;
    ev = order->peeked;
    order->peeked = NULL;
    return give(order, ev, event);
}

int v1_order_next(struct v1_order *order, struct v1_event **event)
{
    return order->replay ? replay_next(order, event) : collect_next(order, event);
}

/* Bitmaps for the whole file: calloc's pages cost nothing until they are used. */
static int make_bitmaps(struct v1_order *order)
{
    struct v1_notes *notes = order->notes;
    size_t size = (size_t)(order->index->timed / 8) + 1;
    if (order->removes && !notes->removed && !(notes->removed = calloc(1, size)))
        return error_no_memory(&order->error);
    if (!order->note_calls)
        return 0;
    if (!order->replay) /* a collecting pass starts again */
        notes->moved_count = 0;
    free(notes->blocking);
    notes->blocking = calloc(1, order->index->end / V1_CALL_BYTES / 8 + 1);
    notes->blocking_count = 0;
    return notes->blocking ? 0 : error_no_memory(&order->error);
}

int v1_order_init(struct v1_order *order, const struct v1_order_setup *setup)
{
    *order = (struct v1_order){
        .index = setup->index,
        .repairs = setup->repairs,
        .notes = setup->notes,
        .replay = setup->replay,
        .note_calls = setup->note_calls,
        .removes = setup->removes && setup->index->futile > 0,
        .go_on = setup->go_on,
    };
    order->special[V1_GoSysCall] = order->special[V1_GoSysBlock] = true;
    order->special[V1_GoInSyscall] = order->special[V1_GoSysExit] = true;
    order->special[V1_GoUnblock] = setup->index->timer_gs.count > 0;
    error_clear(&order->error);
    error_clear(&order->time_error);
    error_clear(&order->exit_error);
    v1_gs_reset(setup->gs);
    if (v1_merge_init(&order->merge, setup->index, setup->gs, setup->repairs, setup->global_keeps_g,
                      setup->fast) < 0)
        return pass_on_error(order);
    if (make_bitmaps(order) < 0)
        return -1;
    return setup->replay ? sort_notes(order) : 0;
}

void v1_order_fini(struct v1_order *order)
{
    v1_merge_fini(&order->merge);
    free(order->held);
    free(order->moved.data);
    order->held = NULL;
    order->moved = (struct v1_piece){0};
}

void v1_notes_fini(struct v1_notes *notes)
{
    free(notes->moved);
    free(notes->removed);
    free(notes->blocking);
    *notes = (struct v1_notes){0};
}
