/*
 * v1, frontier: the part of the merge that runs once per event. The file is compiled twice, the
 * second time for CPUs with BMI2, where one instruction gathers a number (v1_word_number).
 */
#include "base/heap.h"
#include "base/order.h"
#include "read/v1/waiters.h"

#include <stdlib.h>

#include "base/error.h"
#include "read/v1/order.h"

/* MARK: Rules: how an event affects its P (§3.2) and its goroutine (§3.3) */

enum sequence { SEQ_ANY, SEQ_ZERO, SEQ_ONE, SEQ_ARG0, SEQ_ARG1 };

/* The event's own goroutine, and its key: the goroutine whose state it changes. */
enum role {
    ROLE_PLAIN,  /* own: the one on the P; no key */
    ROLE_START,  /* own and key: its argument, which runs on the P from now on */
    ROLE_STOP,   /* own and key: the one on the P, which is empty from now on */
    ROLE_WAKE,   /* own: the one on the P; key: its argument */
    ROLE_ARG_G,  /* own and key: its argument */
    ROLE_GLOBAL, /* own: none in Go <= 1.21; no key */
    ROLE_GC,     /* own: none in Go <= 1.21; key: a counter of GCs */
    ROLE_END,    /* own: the one on the P, which ends; no key */
    ROLE_LOST    /* own: the one on the P, which is empty from now on; no key */
};

struct v1_rule {
    uint8_t role;
    uint8_t sequence;
    uint8_t need; /* enum v1_status */
    uint8_t next;
    uint8_t bump;  /* added to the sequence number */
    uint8_t plain; /* the type it becomes; 0: the same */
};

/* clang-format off */
#define BLOCKS   {ROLE_STOP, SEQ_ANY, V1_RUNNING, V1_WAITING, 0, 0}
#define YIELDS   {ROLE_STOP, SEQ_ANY, V1_RUNNING, V1_RUNNABLE, 0, 0}
#define SNAPSHOT {ROLE_ARG_G, SEQ_ONE, V1_RUNNABLE, V1_WAITING, 1, 0}
#define STARTS   {ROLE_START, SEQ_ARG1, V1_RUNNABLE, V1_RUNNING, 1, 0}
#define GLOBAL   {.role = ROLE_GLOBAL}
#define ENDS     {.role = ROLE_END}
/* clang-format on */

static const struct v1_rule rules[V1_TYPE_MASK + 1] = {
    [V1_GoCreate] = {ROLE_WAKE, SEQ_ZERO, V1_DEAD, V1_RUNNABLE, 1, 0},
    [V1_GoWaiting] = SNAPSHOT,
    [V1_GoInSyscall] = SNAPSHOT,
    [V1_GoStart] = STARTS,
    [V1_GoStartLabel] = STARTS,
    [V1_GoStartLocal] = {ROLE_START, SEQ_ANY, V1_RUNNABLE, V1_RUNNING, 1, V1_GoStart},
    [V1_GoBlock] = BLOCKS,
    [V1_GoBlockSend] = BLOCKS,
    [V1_GoBlockRecv] = BLOCKS,
    [V1_GoBlockSelect] = BLOCKS,
    [V1_GoBlockSync] = BLOCKS,
    [V1_GoBlockCond] = BLOCKS,
    [V1_GoBlockNet] = BLOCKS,
    [V1_GoBlockGC] = BLOCKS,
    [V1_GoSleep] = BLOCKS,
    [V1_GoSysBlock] = BLOCKS,
    [V1_GoSched] = YIELDS,
    [V1_GoPreempt] = YIELDS,
    [V1_GoUnblock] = {ROLE_WAKE, SEQ_ARG1, V1_WAITING, V1_RUNNABLE, 1, 0},
    [V1_GoUnblockLocal] = {ROLE_WAKE, SEQ_ANY, V1_WAITING, V1_RUNNABLE, 1, V1_GoUnblock},
    [V1_GoSysExit] = {ROLE_ARG_G, SEQ_ARG1, V1_WAITING, V1_RUNNABLE, 1, 0},
    [V1_GoSysExitLocal] = {ROLE_WAKE, SEQ_ANY, V1_WAITING, V1_RUNNABLE, 1, V1_GoSysExit},
    [V1_GCStart] = {ROLE_GC, SEQ_ARG0, V1_DEAD, V1_DEAD, 1, 0},
    [V1_GCDone] = GLOBAL,
    [V1_STWStart] = GLOBAL,
    [V1_STWDone] = GLOBAL,
    [V1_GoEnd] = ENDS,
    [V1_GoStop] = ENDS,
    [V1_LOST] = {.role = ROLE_LOST},
};

/* MARK: Heap by (time, order of the lane) */

static inline bool before(const struct v1_ranked *a, const struct v1_ranked *b)
{
    return a->ticks < b->ticks || (a->ticks == b->ticks && a->order < b->order);
}

HEAP(ranked, struct v1_ranked, before)

static void heap_pop(struct v1_heap *heap)
{
    struct v1_ranked last = heap->entry[--heap->count];
    if (heap->count > 0)
        ranked_down(heap->entry, heap->count, 0, last);
}

static struct v1_ranked rank(const struct v1_lane *lane)
{
    return (struct v1_ranked){lane->head.ticks, lane->order, lane->head_number};
}

/* MARK: Frontier: a heap, or for few lanes an array sorted by time; has room for every lane */

/* A new entry is placed after all others of equal time. */
static void flat_insert(struct v1_heap *flat, struct v1_ranked entry)
{
    size_t i = flat->count++;
    for (; i > 0 && entry.ticks < flat->entry[i - 1].ticks; i--)
        flat->entry[i] = flat->entry[i - 1];
    flat->entry[i] = entry;
}

/*
 * Go <= 1.21 replaces the entry that it took from the front with the last one, appends new entries
 * and sorts stably. The last one therefore comes before all others of equal time, each time.
 */
static inline void flat_rotate(struct v1_heap *flat)
{
    size_t last = flat->count - 1;
    struct v1_ranked entry = flat->entry[last];
    if (__builtin_expect(last < 2 || flat->entry[last - 1].ticks != entry.ticks, 1))
        return;
    size_t i = last;
    for (; i > 1 && flat->entry[i - 1].ticks == entry.ticks; i--)
        flat->entry[i] = flat->entry[i - 1];
    flat->entry[i] = entry;
}

static void frontier_push(struct v1_merge *merge, struct v1_lane *lane)
{
    lane->place = V1_LANE_READY;
    if (merge->flat)
        flat_insert(&merge->frontier, rank(lane));
    else
        ranked_up(merge->frontier.entry, merge->frontier.count++, rank(lane));
}

/* Replaces the front entry of a sorted array. */
static inline void flat_replace(struct v1_heap *flat, struct v1_ranked entry)
{
    size_t i = 0;
    for (; i + 1 < flat->count && flat->entry[i + 1].ticks <= entry.ticks; i++)
        flat->entry[i] = flat->entry[i + 1];
    flat->entry[i] = entry;
}

/* Replaces the front entry. */
static inline void frontier_replace(struct v1_merge *merge, const struct v1_lane *lane)
{
    if (merge->flat)
        flat_replace(&merge->frontier, rank(lane));
    else
        ranked_down(merge->frontier.entry, merge->frontier.count, 0, rank(lane));
}

static void frontier_pop(struct v1_merge *merge)
{
    struct v1_heap *frontier = &merge->frontier;
    if (!merge->flat) {
        heap_pop(frontier);
        return;
    }
    frontier->count--;
    memmove(frontier->entry, frontier->entry + 1, frontier->count * sizeof *frontier->entry);
}

/* MARK: Errors */

/* MARK: Decoding */

/* Sets the cursor to [offset, end) and loads these bytes. Returns -1 on an error. */
static int lane_load(struct v1_merge *merge, struct v1_lane *lane, uint64_t offset, uint64_t end)
{
    const struct v1_input *input = &merge->index->input;
    struct v1_bytes *bytes = &lane->bytes;
    if (v1_input_get(input, offset, (size_t)(end - offset), &lane->piece, bytes, &merge->error) < 0)
        return -1;
    lane->at = bytes->data + (offset - bytes->offset);
    lane->end = lane->at + (end - offset);
    lane->origin = (uintptr_t)lane->at - (uintptr_t)offset;
    size_t room = bytes->size + (input->again ? V1_PIECE_SLACK : 0);
    lane->packed_end = bytes->data;
    if (merge->format->version >= 7 && room > V1_PACKED_REACH)
        lane->packed_end += room - V1_PACKED_REACH;
    return 0;
}

/* Returns the offset in the trace of a byte of the lane's batch. */
static inline uint64_t lane_offset(const struct v1_lane *lane, const uint8_t *at)
{
    return (uintptr_t)at - lane->origin;
}

/* Advances to the lane's next batch. Returns 1, 0 if there is none, -1 on an error. */
static int next_batch(struct v1_merge *merge, struct v1_lane *lane)
{
    const struct v1_index *index = merge->index;
    if (lane->next_batch == V1_NO_BATCH)
        return 0;
    uint32_t i = lane->next_batch;
    const struct v1_batch *batch = &index->batches[i];
    if (lane_load(merge, lane, batch->offset, v1_index_batch_end(index, i)) < 0)
        return -1;
    lane->next_batch = batch->next;
    struct v1_record record;
    /* The implied batch of events before any Batch has no Batch record, and begins at time 0. */
    if (lane->at < lane->end && (*lane->at & V1_TYPE_MASK) == V1_Batch &&
        v1_record_read(merge->format, &lane->bytes, lane->at, &record, NULL) == 0) {
        lane->at = record.end;
        lane->sequence = merge->format->version < 7 ? (int64_t)record.number[1] : 0;
        lane->ticks = (int64_t)record.number[record.numbers - 1];
    }
    if (__builtin_expect(batch->hole > 0, 0) && !index->holes[batch->hole - 1].text) {
        lane->end = v1_hole_trusted(&index->holes[batch->hole - 1], merge->format, &lane->bytes,
                                    lane->at, lane->end, lane->ticks);
        lane->damaged = true;
    }
    return 1;
}

static int changed_under_us(struct v1_merge *merge, const struct v1_lane *lane)
{
    error_set(&merge->error, TRAIL_IO, "the trace changed while it was being read");
    merge->error.offset = (int64_t)lane_offset(lane, lane->at);
    return -1;
}

/* Skips a record that is not an event of a P: tables, frequency, CPU samples. */
static int skip_untimed(struct v1_merge *merge, struct v1_lane *lane)
{
    struct v1_record record;
    if (v1_record_read(merge->format, &lane->bytes, lane->at, &record, &merge->error) < 0 ||
        record.end > lane->end)
        return changed_under_us(merge, lane);
    if (record.type == V1_CPUSample && !merge->format->newer_rules)
        lane->ticks = (int64_t)((uint64_t)lane->ticks + record.number[0]);
    lane->at = record.end;
    return 0;
}

static const uint8_t *skip_text(const uint8_t *at, const uint8_t *end)
{
    uint64_t size;
    at = uvarint_get(at, end, &size);
    return at && size <= (uint64_t)(end - at) ? at + size : NULL;
}

/*
 * Decodes the numbers of the event at lane->at into the head, in any form. Returns its end, NULL if
 * it is malformed.
 */
static const uint8_t *decode_any(const struct v1_format *format, struct v1_lane *lane)
{
    const uint8_t *at = lane->at, *end = lane->end;
    struct v1_event *head = &lane->head;
    unsigned type = *at & V1_TYPE_MASK;
    const struct v1_shape *shape = &format->shapes[type];
    uint64_t number;
    if (*at++ >= V1_COUNT_LENGTH << V1_COUNT_SHIFT && !(at = uvarint_get(at, end, &number)))
        return NULL;
    if (format->time_fields == 2) {
        if (!(at = uvarint_get(at, end, &number)))
            return NULL;
        lane->sequence = (int64_t)((uint64_t)lane->sequence + number);
    }
    if (!(at = uvarint_get(at, end, &number)))
        return NULL;
    lane->ticks = (int64_t)((uint64_t)lane->ticks + number);
    head->type = (uint8_t)type;
    head->ticks = lane->ticks;
    head->arg[0] = head->arg[1] = head->arg[2] = head->arg[3] = 0;
    for (unsigned i = 0; i < shape->args; i++)
        if (!(at = uvarint_get(at, end, &head->arg[i])))
            return NULL;
    head->stack = 0;
    if (shape->stack && !(at = uvarint_get(at, end, &head->stack)))
        return NULL;
    head->text = NULL;
    if (__builtin_expect(type == V1_UserLog, 0)) {
        head->text = at;
        at = skip_text(at, end);
    }
    return at;
}

static inline uint64_t mask_if(bool condition)
{
    return -(uint64_t)condition;
}

/*
 * The same for nearly all events from 1.7 on, without a branch on the length of a number: one
 * 64-bit word holds the first three. Returns NULL if decode_any is needed.
 */
static inline const uint8_t *decode_packed(const struct v1_merge *merge, struct v1_lane *lane)
{
    const uint8_t *at = lane->at;
    struct v1_event *head = &lane->head;
    unsigned first = merge->format->first[*at];
    if (__builtin_expect(first == 0 || at >= lane->packed_end, 0))
        return NULL;
    const struct v1_shape *shape = &merge->format->shapes[*at & V1_TYPE_MASK];
    unsigned prefixed = first >> 7, numbers = first & ~(unsigned)V1_FIRST_PREFIXED;
    struct v1_word word;
    /* A length may be present although the first byte could hold the count. */
    const uint8_t *next = v1_word_load(&word, at + 1 + prefixed, numbers < 3 ? numbers : 3);
    if (__builtin_expect(!next || shape->numbers > 4, 0))
        return NULL;
    uint64_t one = v1_word_number(&word, 1), two = v1_word_number(&word, 2);
    bool fourth = shape->numbers == 4;
    uint64_t three = 0;
    if (fourth && !(next = uvarint_get(next, next + UVARINT_MAX_SIZE, &three)))
        return NULL;
    lane->ticks = (int64_t)((uint64_t)lane->ticks + v1_word_number(&word, 0));
    head->type = *at & V1_TYPE_MASK;
    head->ticks = lane->ticks;
    /* Masks instead of branches: which numbers a type has cannot be predicted. */
    uint64_t last = (three & mask_if(shape->numbers == 4)) | (two & mask_if(shape->numbers == 3)) |
                    (one & mask_if(shape->numbers == 2));
    head->arg[0] = one & mask_if(shape->args > 0);
    head->arg[1] = two & mask_if(shape->args > 1);
    head->arg[2] = three & mask_if(shape->args > 2);
    head->arg[3] = 0;
    head->stack = last & mask_if(shape->stack);
    head->text = NULL;
    return next;
}

/* Returns the goroutine on the lane's P, mostly cached in the lane. */
static inline struct v1_g *lane_g(struct v1_merge *merge, struct v1_lane *lane)
{
    if (__builtin_expect(!v1_g_is(lane->last_gs, lane->last_g), 0))
        lane->last_gs = v1_gs_get(merge->gs, lane->last_g);
    return lane->last_gs;
}

static inline void lane_runs(struct v1_merge *merge, struct v1_lane *lane, uint64_t g)
{
    lane->last_g = g;
    lane->last_gs = g == 0 ? merge->g0 : v1_gs_get(merge->gs, g);
}

/* Determines the head's own goroutine and its key. */
static inline int resolve(struct v1_merge *merge, struct v1_lane *lane)
{
    struct v1_event *head = &lane->head;
    const struct v1_rule *rule = &rules[head->type];
    lane->rule = rule;
    switch (rule->role) {
    case ROLE_START:
        lane_runs(merge, lane, head->arg[0]);
        head->gs = head->key = lane->last_gs;
        head->g = lane->key_id = lane->last_g;
        break;
    case ROLE_STOP:
        head->gs = head->key = lane_g(merge, lane);
        head->g = lane->key_id = lane->last_g;
        lane_runs(merge, lane, 0);
        break;
    case ROLE_WAKE:
        head->gs = lane_g(merge, lane);
        head->g = lane->last_g;
        lane->key_id = head->arg[0];
        head->key = v1_gs_get(merge->gs, lane->key_id);
        if (!head->key)
            return error_no_memory(&merge->error);
        break;
    case ROLE_ARG_G:
        head->g = lane->key_id = head->arg[0];
        head->gs = head->key = v1_gs_get(merge->gs, head->g);
        break;
    case ROLE_GLOBAL:
    case ROLE_GC:
        head->gs = merge->global_keeps_g ? lane_g(merge, lane) : merge->g0;
        head->g = merge->global_keeps_g ? lane->last_g : 0;
        lane->key_id = 0;
        head->key = rule->role == ROLE_GC ? &merge->gc : &merge->always;
        break;
    default:
        head->gs = lane_g(merge, lane);
        head->g = lane->last_g;
        lane->key_id = 0;
        head->key = &merge->always;
        if (rule->role == ROLE_END || rule->role == ROLE_LOST)
            lane_runs(merge, lane, 0);
        break;
    }
    if (__builtin_expect(!head->gs, 0))
        return error_no_memory(&merge->error);
    lane->want = rule->sequence == SEQ_ARG1   ? head->arg[1]
                 : rule->sequence == SEQ_ARG0 ? head->arg[0]
                                              : rule->sequence == SEQ_ONE;
    if (rule->plain)
        head->type = rule->plain;
    return 0;
}

static int decode_sample(struct v1_merge *merge, struct v1_lane *lane)
{
    if (merge->next_sample == merge->index->sample_count)
        return 0;
    const struct v1_sample *sample = &merge->index->samples[merge->next_sample++];
    lane->rule = &rules[V1_CPUSample];
    lane->head_number++;
    lane->key_id = 0;
    lane->head = (struct v1_event){
        .key = &merge->always,
        .type = V1_CPUSample,
        .ticks = sample->ticks,
        .offset = sample->offset,
        .proc = sample->proc,
        .g = sample->g,
        .arg = {0, (uint64_t)sample->proc, sample->g},
        .stack = sample->stack,
    };
    return 1;
}

#define FOUND_HOLE 2

/* Whether the P's previous event was its last before damage; true once for each hole. */
static bool at_hole(const struct v1_merge *merge, struct v1_lane *lane)
{
    bool ends = merge->index->cut && lane->next_batch == V1_NO_BATCH && lane->head_number > 0 &&
                lane->head.type != V1_LOST;
    bool result = (lane->damaged || ends) && merge->format->version >= 7;
    lane->damaged = false;
    return result;
}

/*
 * Advances to the lane's next event, across batches and other records. Returns 1, FOUND_HOLE, 0 if
 * there is none, or -1.
 */
static int find_event(struct v1_merge *merge, struct v1_lane *lane)
{
    for (;;) {
        if (lane->at >= lane->end) {
            if (at_hole(merge, lane))
                return FOUND_HOLE;
            int result = next_batch(merge, lane);
            if (result <= 0)
                return result;
            continue;
        }
        unsigned type = *lane->at & V1_TYPE_MASK;
        const struct v1_shape *shape = &merge->format->shapes[type];
        if (shape->ordinary || type == V1_UserLog || type == V1_FutileWakeup)
            return 1;
        if (skip_untimed(merge, lane) < 0)
            return -1;
    }
}

/* Finds and decodes an event that decode_packed could not. */
static __attribute__((noinline)) int decode_slow(struct v1_merge *merge, struct v1_lane *lane,
                                                 const uint8_t **next)
{
    int found = find_event(merge, lane);
    if (found <= 0)
        return found;
    if (found == FOUND_HOLE) {
        lane->head = (struct v1_event){.type = V1_LOST, .ticks = lane->ticks};
        *next = lane->at;
        return 1;
    }
    *next = decode_any(merge->format, lane);
    return *next ? 1 : changed_under_us(merge, lane);
}

/* Decodes the lane's next event into its head. Returns 1, 0 if there is none, -1 on an error. */
static inline int decode(struct v1_merge *merge, struct v1_lane *lane)
{
    const uint8_t *next = NULL;
    if (__builtin_expect(lane->at < lane->end, 1))
        next = decode_packed(merge, lane);
    if (__builtin_expect(!next, 0)) {
        if (lane->order + 1 == merge->lane_count)
            return decode_sample(merge, lane);
        int result = decode_slow(merge, lane, &next);
        if (result <= 0)
            return result;
    }
    if (__builtin_expect(next > lane->end, 0))
        return changed_under_us(merge, lane);
    lane->head.offset = lane_offset(lane, lane->at);
    lane->at = next;
    lane->head.lane = lane;
    lane->head.proc = lane->proc;
    lane->head_number++;
    return resolve(merge, lane) < 0 ? -1 : 1;
}

/* MARK: Readiness */

static inline bool is_ready(const struct v1_lane *lane)
{
    const struct v1_rule *rule = lane->rule;
    const struct v1_g *key = lane->head.key;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): lanes in the frontier have a key */
    return (key->status == rule->need) & ((rule->sequence == SEQ_ANY) | (key->seq == lane->want));
}

static inline void apply(struct v1_lane *lane)
{
    struct v1_g *key = lane->head.key;
    lane->head.previous = key->last;
    key->last = lane->head.type;
    key->status = lane->rule->next;
    key->seq += lane->rule->bump;
}

/* Drops outdated entries, so that the heap stays a small multiple of the lanes. */
static void waiting_compact(struct v1_merge *merge)
{
    struct v1_heap *heap = &merge->waiting;
    size_t kept = 0;
    for (size_t i = 0; i < heap->count; i++) {
        const struct v1_lane *lane = &merge->lanes[heap->entry[i].order];
        if (lane->place == V1_LANE_WAITING && lane->head_number == heap->entry[i].head_number)
            heap->entry[kept++] = heap->entry[i];
    }
    heap->count = kept;
    for (size_t i = kept / 2; i-- > 0;)
        ranked_down(heap->entry, kept, i, heap->entry[i]);
}

static int add_waiter(struct v1_merge *merge, struct v1_lane *lane)
{
    struct v1_g *key = lane->head.key;
    lane->place = V1_LANE_WAITING;
    merge->waiting_count++;
    if (!key->waiters && !(key->waiters = slab_get(&merge->gs->waiters_slab)))
        return error_no_memory(&merge->error);
    if (lane->rule->sequence == SEQ_ANY)
        v1_waiters_add_any(key->waiters, lane, lane->rule->need);
    else
        v1_waiters_add_exact(key->waiters, lane);
    if (!merge->repairs->enabled)
        return 0;
    if (merge->waiting.count == merge->waiting.capacity)
        waiting_compact(merge);
    ranked_up(merge->waiting.entry, merge->waiting.count++, rank(lane));
    return 0;
}

static void remove_waiter(struct v1_merge *merge, struct v1_lane *lane)
{
    struct v1_g *key = lane->head.key;
    /* The lane waits for this key, so it has one: NOLINTBEGIN(clang-analyzer-core.*) */
    if (lane->rule->sequence == SEQ_ANY)
        v1_waiters_remove_any(key->waiters, lane, lane->rule->need);
    else
        v1_waiters_remove_exact(key->waiters, lane);
    if (key->waiters->count == 0) {
        slab_put(&merge->gs->waiters_slab, key->waiters);
        key->waiters = NULL;
    }
    /* NOLINTEND(clang-analyzer-core.*) */
}

/* The lane waits for a state that can no longer occur: only a repair can continue it. */
static void drop_waiter(struct v1_merge *merge, struct v1_lane *lane)
{
    remove_waiter(merge, lane);
    lane->head.key = NULL;
}

static void make_ready(struct v1_merge *merge, struct v1_lane *lane)
{
    remove_waiter(merge, lane);
    merge->waiting_count--;
    frontier_push(merge, lane);
}

/* A goroutine changed: lanes that waited for its new state become ready. */
static void release(struct v1_merge *merge, struct v1_g *key)
{
    while (key->waiters && key->waiters->any[key->status])
        make_ready(merge, key->waiters->any[key->status]);
    while (key->waiters && key->waiters->exact && key->waiters->exact->want < key->seq)
        drop_waiter(merge, key->waiters->exact);
    struct v1_lane *others = NULL; /* the number matches, the status does not yet */
    while (key->waiters && key->waiters->exact && key->waiters->exact->want == key->seq) {
        struct v1_lane *lane = key->waiters->exact;
        if (is_ready(lane)) {
            make_ready(merge, lane);
            continue;
        }
        v1_waiters_remove_exact(key->waiters, lane);
        key->waiters->count++; /* still one of the waiters */
        lane->wait_next = others;
        others = lane;
    }
    while (others) {
        struct v1_lane *next = others->wait_next;
        key->waiters->count--;
        v1_waiters_add_exact(key->waiters, others);
        others = next;
    }
}

static int end_goroutine(struct v1_merge *merge, struct v1_g *g)
{
    for (unsigned status = 0; status < 4; status++)
        while (g->waiters && g->waiters->any[status])
            drop_waiter(merge, g->waiters->any[status]);
    while (g->waiters && g->waiters->exact)
        drop_waiter(merge, g->waiters->exact);
    return v1_gs_end(merge->gs, g) ? 0 : error_no_memory(&merge->error);
}

/* After an emitted event was used: advances its lane, and those that waited for its effect. */
static int finish_emitted(struct v1_merge *merge)
{
    struct v1_lane *lane = merge->emitted;
    struct v1_g *changed = lane->head.key;
    struct v1_g *ended = lane->rule->role == ROLE_END && lane->head.g != 0 ? lane->head.gs : NULL;
    merge->emitted = NULL;
    int result = decode(merge, lane);
    if (result < 0)
        return -1;
    if (merge->flat)
        flat_rotate(&merge->frontier);
    if (result > 0 && is_ready(lane)) {
        frontier_replace(merge, lane);
    } else {
        frontier_pop(merge);
        lane->place = V1_LANE_DONE;
        if (result > 0 && add_waiter(merge, lane) < 0)
            return -1;
    }
    if (changed && changed->waiters)
        release(merge, changed);
    if (__builtin_expect(ended != NULL, 0) && ended->alive)
        return end_goroutine(merge, ended);
    return 0;
}

/* Returns the lane with the earliest waiting head. */
static struct v1_lane *earliest_waiting(const struct v1_merge *merge)
{
    struct v1_lane *best = NULL;
    for (size_t i = 0; i < merge->lane_count; i++) {
        struct v1_lane *lane = &merge->lanes[i];
        if (lane->place == V1_LANE_WAITING && (!best || lane->head.ticks < best->head.ticks))
            best = lane;
    }
    return best;
}

static int fail_stuck(struct v1_merge *merge)
{
    struct v1_lane *lane = earliest_waiting(merge);
    static const char *const names[] = {"dead", "runnable", "running", "waiting"};
    bool counts_gc = lane->rule->role == ROLE_GC;
    const struct v1_g *key = counts_gc ? &merge->gc : v1_gs_get(merge->gs, lane->key_id);
    if (!key)
        return error_no_memory(&merge->error);
    if (counts_gc)
        error_set(
            &merge->error, TRAIL_INCONSISTENT,
            "no consistent ordering of events possible: GCStart needs sequence %llu where %llu "
            "is next",
            (unsigned long long)lane->want, (unsigned long long)key->seq);
    else if (lane->rule->sequence == SEQ_ANY || key->seq == lane->want)
        error_set(
            &merge->error, TRAIL_INCONSISTENT,
            "no consistent ordering of events possible: %s needs goroutine %llu %s, which is %s",
            v1_types[lane->head.type].name, (unsigned long long)lane->key_id,
            names[lane->rule->need], names[key->status]);
    else
        error_set(&merge->error, TRAIL_INCONSISTENT,
                  "no consistent ordering of events possible: %s needs goroutine %llu at sequence "
                  "%llu, which is %s at %llu",
                  v1_types[lane->head.type].name, (unsigned long long)lane->key_id,
                  (unsigned long long)lane->want, names[key->status], (unsigned long long)key->seq);
    v1_merge_locate(merge, &lane->head, &merge->error);
    return -1;
}

/* Forces the head's key into the state that the head needs. */
static int force_state(struct v1_merge *merge, struct v1_lane *lane)
{
    struct v1_event *head = &lane->head;
    if (lane->rule->role == ROLE_GC) {
        head->key = &merge->gc;
    } else if (!v1_g_is(head->key, lane->key_id)) {
        head->key = v1_gs_get(merge->gs, lane->key_id);
        if (!head->key)
            return error_no_memory(&merge->error);
    }
    if (!v1_g_is(head->gs, head->g) && !(head->gs = v1_gs_get(merge->gs, head->g)))
        return error_no_memory(&merge->error);
    lane->forced = lane->head_number;
    head->key->status = lane->rule->need;
    if (lane->rule->sequence != SEQ_ANY)
        head->key->seq = lane->want;
    v1_repairs_add(merge->repairs, TRAIL_REPAIR_SEQUENCE, head, 0);
    return 0;
}

static int repair_stuck(struct v1_merge *merge)
{
    struct v1_lane *lane;
    do {
        lane = &merge->lanes[merge->waiting.entry[0].order];
        uint32_t head_number = merge->waiting.entry[0].head_number;
        heap_pop(&merge->waiting);
        if (lane->place == V1_LANE_WAITING && lane->head_number == head_number)
            break;
    } while (merge->waiting.count > 0);
    if (lane->head.key)
        remove_waiter(merge, lane);
    merge->waiting_count--;
    if (force_state(merge, lane) < 0)
        return -1;
    frontier_push(merge, lane);
    return 0;
}

/* Whether the earliest waiting head is too far behind the earliest ready one. */
static bool overdue(struct v1_merge *merge)
{
    struct v1_heap *waiting = &merge->waiting;
    for (; waiting->count > 0; heap_pop(waiting)) {
        const struct v1_lane *lane = &merge->lanes[waiting->entry[0].order];
        if (lane->place != V1_LANE_WAITING || lane->head_number != waiting->entry[0].head_number)
            continue;
        int64_t ready = merge->frontier.entry[0].ticks, behind = lane->head.ticks;
        return ready > behind &&
               (uint64_t)ready - (uint64_t)behind > (uint64_t)merge->repairs->patience;
    }
    return false;
}

static int fail_impossible(struct v1_merge *merge, struct v1_lane *lane)
{
    error_set(
        &merge->error, TRAIL_INCONSISTENT,
        "encountered impossible goroutine state transition: event sequences are broken: %s of "
        "goroutine %llu",
        v1_types[lane->head.type].name, (unsigned long long)lane->key_id);
    v1_merge_locate(merge, &lane->head, &merge->error);
    return -1;
}

/* MARK: 1.5 */

static int compare_sequenced(const void *a, const void *b)
{
    const struct v1_sequenced *x = a, *y = b;
    return ORDER(x->sequence, y->sequence) ?: ORDER(x->index, y->index);
}

/* A late system call exit is placed at the time the call returned (§3.4). */
static struct v1_sequenced sequenced_head(const struct v1_lane *lane, size_t index)
{
    const struct v1_event *head = &lane->head;
    bool is_exit = head->type == V1_GoSysExit;
    return (struct v1_sequenced){
        .sequence = is_exit ? (int64_t)head->arg[1] : lane->sequence,
        .ticks = is_exit && head->arg[2] != 0 ? (int64_t)head->arg[2] : head->ticks,
        .offset = head->offset,
        .g = head->g,
        .lane = lane->order,
        .index = (uint32_t)index,
    };
}

static int sequence_all(struct v1_merge *merge)
{
    size_t capacity = (size_t)merge->index->timed + 1, count = 0;
    merge->sequenced = malloc(capacity * sizeof *merge->sequenced);
    if (!merge->sequenced)
        return error_no_memory(&merge->error);
    for (size_t i = 0; i + 1 < merge->lane_count; i++) {
        int result;
        while ((result = decode(merge, &merge->lanes[i])) > 0 && count < capacity) {
            merge->sequenced[count] = sequenced_head(&merge->lanes[i], count);
            count++;
        }
        if (result != 0)
            return -1;
    }
    qsort(merge->sequenced, count, sizeof *merge->sequenced, compare_sequenced);
    merge->sequenced_count = count;
    return 0;
}

/* Decodes the event again: only its offset was stored. */
static int next_sequenced(struct v1_merge *merge, struct v1_event **event)
{
    struct v1_event *ev = &merge->sequenced_event;
    if (merge->position > 0 && rules[ev->type].role == ROLE_END && ev->g != 0 && ev->gs->alive &&
        !v1_gs_end(merge->gs, ev->gs))
        return error_no_memory(&merge->error);
    if (merge->position == merge->sequenced_count)
        return 0;
    const struct v1_sequenced *s = &merge->sequenced[merge->position++];
    const struct v1_index *index = merge->index;
    struct v1_lane *lane = &merge->lanes[s->lane];
    if (lane_load(merge, lane, s->offset, index->end) < 0)
        return -1;
    if (!decode_any(merge->format, lane))
        return changed_under_us(merge, lane);
    const struct v1_rule *rule = &rules[lane->head.type];
    *ev = lane->head;
    ev->ticks = s->ticks;
    ev->offset = s->offset;
    ev->g = s->g;
    ev->lane = lane;
    ev->proc = lane->proc;
    ev->sequenced = true;
    ev->gs = v1_gs_get(merge->gs, s->g);
    ev->key = rule->role == ROLE_WAKE ? v1_gs_get(merge->gs, ev->arg[0]) : ev->gs;
    if (!ev->gs || !ev->key)
        return error_no_memory(&merge->error);
    *event = ev;
    return 1;
}

/*
 * Ensures that the event has its own goroutine: a sample has only its ID. Returns false if out of
 * memory.
 */
static inline bool own_g(struct v1_merge *merge, struct v1_event *event)
{
    if (__builtin_expect(!v1_g_is(event->gs, event->g), 0))
        event->gs = v1_gs_get(merge->gs, event->g);
    return event->gs != NULL;
}

/* MARK: Interface */

#include "read/v1/fast_pass.h"

static int first_head(struct v1_merge *merge, struct v1_lane *lane)
{
    int result = decode(merge, lane);
    if (result > 0 && is_ready(lane))
        frontier_push(merge, lane);
    else if (result > 0 && add_waiter(merge, lane) < 0)
        return -1;
    return result;
}

int V1_FRONTIER(begin)(struct v1_merge *merge)
{
    if (merge->format->version < 7)
        return sequence_all(merge);
    if (merge->fast)
        return fast_begin(merge);
    for (size_t i = 0; i < merge->lane_count; i++)
        if (first_head(merge, &merge->lanes[i]) < 0)
            return -1;
    return 0;
}

int V1_FRONTIER(next)(struct v1_merge *merge, struct v1_event **event)
{
    if (merge->sequenced)
        return next_sequenced(merge, event);
    if (merge->fast)
        return fast_next(merge, event);
    if (merge->emitted && finish_emitted(merge) < 0)
        return -1;
    if (__builtin_expect(merge->frontier.count == 0, 0)) {
        if (merge->waiting_count == 0)
            return 0;
        if (!merge->repairs->enabled)
            return fail_stuck(merge);
        if (repair_stuck(merge) < 0)
            return -1;
    } else if (__builtin_expect(merge->repairs->patience > 0, 0) && overdue(merge) &&
               repair_stuck(merge) < 0) {
        return -1;
    }
    struct v1_lane *lane = &merge->lanes[merge->frontier.entry[0].order];
    struct v1_event *head = &lane->head;
    if (!own_g(merge, head))
        return error_no_memory(&merge->error);
    /* The key may have changed, or ended, since the head entered the frontier. */
    if (__builtin_expect(!v1_g_is(head->key, lane->key_id) || !is_ready(lane), 0)) {
        if (!merge->repairs->enabled)
            return fail_impossible(merge, lane);
        if (force_state(merge, lane) < 0)
            return -1;
    }
    if (__builtin_expect(merge->repairs->enabled, 0)) {
        head->sequenced = lane->rule->sequence != SEQ_ANY;
        head->forced = lane->forced == lane->head_number;
    }
    apply(lane);
    merge->emitted = lane;
    merge->position++;
    *event = head;
    return 1;
}
