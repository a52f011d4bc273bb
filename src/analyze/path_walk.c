/*
 * Walking back. At each step the path is on one goroutine, in the state of its entry, up to the
 * time `at`. The state's segment is passed to the visitor; then the entry gives the cause of the
 * state:
 *
 *     woken               the path continues on the waker, at most back to where the wait began; the
 *                         waiter is pushed on a stack of frames with the entry of that wait
 *     created             the same, but there is no waiter to return to
 *     anything else       the path stays on the goroutine, at its previous entry
 *
 * When the path reaches the start of the wait of the topmost frame, it continues on that waiter.
 *
 * Entries are visited in strictly descending order of their numbers, whatever the trace contains: a
 * waker's entry is older than that of the wake-up, and all that are visited above a frame are newer
 * than the frame's. So there are at most as many steps as entries.
 */
#include <stdlib.h>

#include "analyze/part.h"
#include "analyze/path.h"
#include "base/grow.h"
#include "base/order.h"
#include "base/search.h"

struct frame {
    uint64_t entry; /* where the wait began */
    int64_t since_ns;
    uint32_t number; /* of the waiter */
    uint32_t depth;
};

struct walk {
    struct path *path;
    trail_path_visit visit;
    void *context;
    struct frame *frames;
    size_t frame_count, frame_capacity;
    int64_t at;      /* segments after this time have been passed to the visitor */
    uint64_t entry;  /* the state in which the goroutine was */
    uint32_t number; /* of the goroutine */
    uint32_t depth;
    trail_stack stack; /* of what happened next */
    int64_t wakes;     /* the goroutine woken there */
    trail_name awaited;
    trail_stack waited_at;
    int64_t held_ns;
    bool failed;
};

const char *trail_path_state_name(trail_path_state state)
{
    static const char *const names[TRAIL_PATH_STATES] = {
        [TRAIL_PATH_RUNNING] = "running", [TRAIL_PATH_READY] = "ready",
        [TRAIL_PATH_SYSCALL] = "syscall", [TRAIL_PATH_BLOCKED] = "blocked",
        [TRAIL_PATH_UNKNOWN] = "unknown",
    };
    return (unsigned)state < TRAIL_PATH_STATES ? names[state] : "?";
}

/* MARK: Segments */

static void add_total(struct walk *walk, const trail_path_segment *segment)
{
    struct path *path = walk->path;
    bool fresh;
    uint32_t key[4] = {segment->group, segment->reason, segment->function, segment->state};
    uint64_t number = intern_put(&path->totals, key, sizeof key, &fresh);
    if (number == 0 || !GROW(path->rows, path->row_capacity, (size_t)number)) {
        walk->failed = true;
        return;
    }
    trail_path_total *row = &path->rows[number - 1];
    if (fresh) {
        *row = (trail_path_total){
            .group = segment->group,
            .reason = segment->reason,
            .function = segment->function,
            .state = segment->state,
        };
        path->row_count = (size_t)number;
    }
    row->count++;
    ns_add(&row->ns, ns_between(segment->begin_ns, segment->end_ns));
}

static void forget_woken(struct walk *walk)
{
    walk->wakes = TRAIL_NONE;
    walk->awaited = 0;
    walk->waited_at = 0;
    walk->held_ns = 0;
}

/* Passes on the segment from `begin` (or the path's start) to where the walk is. */
static void hand_out(struct walk *walk, int64_t begin, trail_path_segment *segment)
{
    struct path *path = walk->path;
    if (begin < path->span.path.begin_ns)
        begin = path->span.path.begin_ns;
    if (begin < walk->at) {
        segment->begin_ns = begin;
        segment->end_ns = walk->at;
        segment->group = path->who[walk->number].name;
        segment->goroutine = path->who[walk->number].id;
        segment->function = stacks_function(path->stacks, segment->stack);
        segment->depth = walk->depth;
        segment->wakes = walk->wakes;
        segment->awaited = walk->awaited;
        segment->waited_at = walk->waited_at;
        segment->held_ns = walk->held_ns;
        add_total(walk, segment);
        walk->visit(walk->context, segment);
        walk->at = begin;
    }
    forget_woken(walk);
}

static trail_path_state state_of(const struct path_entry *entry)
{
    switch (entry->state) {
    case TRAIL_GO_RUNNING:
        return TRAIL_PATH_RUNNING;
    case TRAIL_GO_RUNNABLE:
        return TRAIL_PATH_READY;
    case TRAIL_GO_SYSCALL:
        return TRAIL_PATH_SYSCALL;
    case TRAIL_GO_WAITING:
        return TRAIL_PATH_BLOCKED;
    default:
        return TRAIL_PATH_UNKNOWN;
    }
}

/* `number` is the entry's. */
static void hand_out_state(struct walk *walk, const struct path_entry *entry, uint64_t number,
                           int64_t begin)
{
    trail_path_segment segment = {.state = state_of(entry), .stack = entry->stack};
    if (segment.state == TRAIL_PATH_RUNNING)
        segment.stack = walk->stack;
    else if (entry->flags & (PATH_WAITED | PATH_CREATED))
        segment.stack = entry->where;
    if (segment.state == TRAIL_PATH_BLOCKED || segment.state == TRAIL_PATH_SYSCALL)
        segment.reason = entry->reason;
    segment.timed_out = idmap_find(&walk->path->expired, number) != NULL;
    hand_out(walk, begin, &segment);
}

/* MARK: Going back */

static struct frame *top(const struct walk *walk)
{
    return walk->frame_count > 0 ? &walk->frames[walk->frame_count - 1] : NULL;
}

static const struct path_entry *get(struct walk *walk, uint64_t number)
{
    const struct path_entry *entry = path_log_get(&walk->path->log, number);
    walk->failed |= !entry;
    return entry;
}

/* The goroutine has no creator in the trace: its waiter waited for no goroutine, else the state is
 * unknown. */
static void go_nowhere(struct walk *walk)
{
    const struct frame *frame = top(walk);
    if (frame) {
        walk->number = frame->number;
        walk->depth = frame->depth;
        const struct path_entry *waits = get(walk, frame->entry);
        if (waits)
            hand_out_state(walk, waits, frame->entry, frame->since_ns);
        return;
    }
    trail_path_segment segment = {.state = TRAIL_PATH_UNKNOWN};
    hand_out(walk, walk->path->span.path.begin_ns, &segment);
}

/* Returns the hold time of what the wait that this entry ends was for; 0: not recorded. */
static int64_t held_of(const struct path *path, uint64_t entry)
{
    size_t at = SEARCH(i, 0, path->held_count, path->held[i].entry < entry);
    return at < path->held_count && path->held[at].entry == entry ? path->held[at].ns : 0;
}

/* Continues on the goroutine that woke or created the entry's goroutine. */
static void go_to_waker(struct walk *walk, const struct path_entry *entry)
{
    const struct frame *frame = top(walk);
    struct frame waiter = {
        .entry = entry->before,
        .number = walk->number,
        .depth = walk->depth,
    };
    walk->wakes = walk->path->who[walk->number].id;
    walk->waited_at = entry->where;
    walk->held_ns = held_of(walk->path, walk->entry);
    walk->stack = entry->stack;
    walk->number = entry->waker;
    walk->entry = entry->waker_entry;
    walk->depth++;
    if (!(entry->flags & PATH_WAITED) || (frame && waiter.entry <= frame->entry))
        return;
    const struct path_entry *waits = get(walk, waiter.entry);
    if (!waits)
        return;
    walk->awaited = waits->reason;
    if (waits->flags & PATH_BEFORE)
        return;
    waiter.since_ns = waits->time_ns;
    if (!GROW(walk->frames, walk->frame_capacity, walk->frame_count + 1))
        walk->failed = true;
    else
        walk->frames[walk->frame_count++] = waiter;
}

/* Passes the entry, when the walk has reached its time. */
static void cross(struct walk *walk, const struct path_entry *entry)
{
    if (entry->flags & PATH_WOKEN) {
        go_to_waker(walk, entry);
    } else if (entry->flags & PATH_CREATED || entry->before == 0) {
        go_nowhere(walk);
    } else {
        walk->stack = entry->flags & PATH_WAITED ? entry->where : entry->stack;
        walk->entry = entry->before;
    }
}

/* Walks through one state, and the entry with which it began, if that is after the topmost wait. */
static void step(struct walk *walk)
{
    const struct frame *frame = top(walk);
    const struct path_entry *found = get(walk, walk->entry);
    if (!found)
        return;
    struct path_entry entry = *found;
    bool before = (entry.flags & PATH_BEFORE) != 0;
    int64_t limit = frame ? frame->since_ns : walk->path->span.path.begin_ns;
    if (!before && entry.time_ns > limit)
        limit = entry.time_ns;
    hand_out_state(walk, &entry, walk->entry, limit);
    if (!frame || (!before && walk->entry > frame->entry)) {
        if (walk->at > walk->path->span.path.begin_ns)
            cross(walk, &entry);
    }
    while (!walk->failed && top(walk) && walk->at <= top(walk)->since_ns &&
           walk->at > walk->path->span.path.begin_ns) {
        const struct frame back = walk->frames[--walk->frame_count];
        walk->number = back.number;
        walk->depth = back.depth;
        found = get(walk, back.entry);
        if (!found)
            return;
        entry = *found;
        forget_woken(walk);
        cross(walk, &entry);
    }
}

static int by_time(const void *a, const void *b)
{
    const trail_path_total *x = a, *y = b;
    return ORDER(y->ns, x->ns) ?: ORDER(x->group, y->group);
}

int path_walk(struct path *path, trail_path_visit visit, void *context)
{
    intern_clear(&path->totals);
    path->row_count = 0;
    if (!path->span.found)
        return 0;
    struct walk walk = {
        .path = path,
        .visit = visit,
        .context = context,
        .at = path->span.path.end_ns,
        .entry = path->span.entry,
        .number = path->span.number,
        .stack = path->span.stack,
        .wakes = TRAIL_NONE,
    };
    while (!walk.failed && walk.at > path->span.path.begin_ns)
        step(&walk);
    free(walk.frames);
    if (path->row_count > 0)
        qsort(path->rows, path->row_count, sizeof *path->rows, by_time);
    return walk.failed ? -1 : 0;
}
