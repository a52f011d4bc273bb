/*
 * Profiles: waits and other uses of time, added up by stack (§9.4). The pass calls it when a
 * goroutine leaves a state; by then it is known what the state counts as, and its stack.
 *
 * Some waits can only be judged later: whether the goroutine has the requested name, whether a wait
 * was inside a requested region, whether the goroutine ever runs (Go leaves out what came before it
 * first ran, if it did). Until then they are pending waits of the goroutine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <trail/analyze.h>

#include "analyze/idle.h"
#include "analyze/part.h"
#include "base/arena.h"
#include "base/grow.h"
#include "base/idmap.h"
#include "base/intern.h"
#include "base/objects.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"

/* Frames of one stack, in the arena of the stacks. */
struct profile_stack {
    const uint32_t *frames;
    uint32_t count;
};

struct profile_rows {
    uint32_t *places; /* of keys that are only a stack: the row, + 1, by its number; 0: not known */
    size_t place_capacity;
    struct intern keys; /* of stack, waker, reason; the number is the index of the row, + 1 */
    trail_profile_sample *items;
    size_t count, capacity;
    /* Set at the end: the sums of all rows. */
    uint64_t sum_count;
    int64_t sum_ns;
    trail_histogram times;
};

struct profiles {
    struct trail_analysis *analysis;
    const trail_profile_options *options;
    struct intern frame_keys, stack_keys;
    struct arena arena; /* the frames of stacks */
    trail_profile_frame *frames;
    size_t frame_count, frame_capacity;
    struct profile_stack *stacks; /* by number; 0 is the empty one */
    size_t stack_count, stack_capacity;
    uint32_t *by_handle; /* numbers + 1, by handle of the epoch; 0: not looked up */
    size_t handles, handle_capacity;
    uint64_t epoch;
    uint8_t *reasons; /* by name: the profile types that a wait with that reason counts for, and
                         REASON_KNOWN */
    size_t reason_capacity;
    struct profile_rows rows[TRAIL_PROFILES];
    struct idmap
        last_sync; /* with by_kind: goroutine -> index of the row of its last wait, as a pointer */
    struct idle idle;             /* with by_kind; the user of a place is the index of its row */
    uint32_t last_place;          /* of the row of SYNC that was counted last, + 1 */
    struct objects pending;       /* goroutine -> struct profile_pending */
    uint64_t goroutines, regions; /* the number that matched so far */
};

/* Go's limit of frames per stack. */
enum { MOST_FRAMES = 128 };

/* The limit of goroutine.stack. */
#define MOST_STACKS ((UINT32_C(1) << 29) - 1)

/* The number of the empty stack, + 1. */
enum { NO_STACK = 1 };

#define TYPE(name)   (1U << TRAIL_PROFILE_##name)
#define GO_TYPES     (TYPE(NET) | TYPE(SYNC) | TYPE(SYSCALL) | TYPE(SCHED))
#define REASON_KNOWN 0x80U

_Static_assert(TRAIL_PROFILES <= 7, "the types fit beside REASON_KNOWN");

/* The key of a row. No padding: it is hashed. */
struct row_key {
    uint32_t stack, waker, reason, woken;
};

struct wait {
    int64_t begin_ns, end_ns;
    struct row_key key; /* the last three members are for OFFCPU only */
    unsigned types;
    bool nameless; /* the stack is one frame without name and PC, and counted as NO_STACK */
};

struct interval {
    int64_t begin_ns, end_ns;
};

/* What cannot be judged yet of a goroutine. */
struct profile_pending {
    struct wait *waits;
    size_t wait_count, wait_capacity;
    struct interval *regions; /* requested regions that have ended */
    size_t region_count, region_capacity;
};

const char *trail_profile_type_name(trail_profile_type type)
{
    static const char *const names[TRAIL_PROFILES] = {
        [TRAIL_PROFILE_NET] = "net",         [TRAIL_PROFILE_SYNC] = "sync",
        [TRAIL_PROFILE_SYSCALL] = "syscall", [TRAIL_PROFILE_SCHED] = "sched",
        [TRAIL_PROFILE_CPU] = "cpu",         [TRAIL_PROFILE_RUNNING] = "running",
        [TRAIL_PROFILE_OFFCPU] = "offcpu",
    };
    return (unsigned)type < TRAIL_PROFILES ? names[type] : "?";
}

/* MARK: Stacks */

/* Sets *index to the index of a frame. Returns false if out of memory. */
static bool frame_put(struct profiles *p, const trail_profile_frame *frame, uint32_t *index)
{
    bool fresh;
    uint64_t number = intern_put(&p->frame_keys, frame, sizeof *frame, &fresh);
    if (number == 0 || number > UINT32_MAX)
        return false;
    if (fresh) {
        if (!APPEND(p->frames, p->frame_capacity, p->frame_count, *frame))
            return false;
    }
    *index = (uint32_t)number - 1;
    return true;
}

/* A frame for a word, not a function. */
static bool frame_of_word(struct profiles *p, const char *word, uint32_t *index)
{
    trail_profile_frame frame = {.function = names_of_text(&p->analysis->names, word)};
    return frame_put(p, &frame, index);
}

/* Returns the number of a stack with these frames, + 1; 0 if out of memory. */
static uint32_t stack_number(struct profiles *p, const uint32_t *frames, uint32_t count)
{
    bool fresh;
    uint64_t number = intern_put(&p->stack_keys, frames, count * sizeof *frames, &fresh);
    if (number == 0 || number > MOST_STACKS)
        return 0;
    if (fresh) {
        uint32_t *own = arena_alloc(&p->arena, count * sizeof *own + 1);
        if (!own || !GROW(p->stacks, p->stack_capacity, p->stack_count + 1))
            return 0;
        if (count > 0)
            memcpy(own, frames, count * sizeof *own);
        p->stacks[p->stack_count++] = (struct profile_stack){own, count};
    }
    return (uint32_t)number;
}

static uint32_t stack_make(struct profiles *p, trail_stack_handle handle)
{
    uint32_t numbers[MOST_FRAMES];
    size_t count;
    const trail_frame *frames = trail_reader_stack(p->analysis->reader, handle, &count);
    count = count < MOST_FRAMES ? count : MOST_FRAMES;
    /* A trace may have empty frames; a stack of only these is treated as no stack. */
    while (count > 0 && frames[count - 1].pc == 0 && frames[count - 1].function == 0)
        count--;
    for (size_t i = 0; i < count; i++) {
        trail_profile_frame frame = {
            .pc = frames[i].pc,
            .function = names_of(&p->analysis->names, frames[i].function),
            .file = names_of(&p->analysis->names, frames[i].file),
            .line = frames[i].line,
        };
        if (!frame_put(p, &frame, &numbers[i]))
            return 0;
    }
    return stack_number(p, numbers, (uint32_t)count);
}

/* The slow path of stack_of. */
static __attribute__((noinline)) uint32_t stack_look_up(struct profiles *p,
                                                        trail_stack_handle handle)
{
    if (handle >= p->handles) {
        size_t old = p->handles, wanted = trail_reader_stack_count(p->analysis->reader);
        wanted = wanted > handle ? wanted : (size_t)handle + 1;
        if (!GROW(p->by_handle, p->handle_capacity, wanted))
            return 0;
        memset(p->by_handle + old, 0, (wanted - old) * sizeof *p->by_handle);
        p->handles = wanted;
    }
    return p->by_handle[handle] = stack_make(p, handle);
}

/* Returns the number of a stack, + 1; 0 if out of memory. */
static uint32_t stack_of(struct profiles *p, trail_stack_handle handle)
{
    uint64_t epoch = trail_reader_epoch(p->analysis->reader);
    if (__builtin_expect(p->epoch != epoch, 0)) {
        if (p->handles > 0)
            memset(p->by_handle, 0, p->handles * sizeof *p->by_handle);
        p->epoch = epoch;
    }
    if (__builtin_expect(handle < p->handles && p->by_handle[handle] != 0, 1))
        return p->by_handle[handle];
    return stack_look_up(p, handle);
}

/* Returns a stack of only the goroutine's start function, for use where no stack is known. */
static uint32_t stack_of_start(struct profiles *p, const struct goroutine *g)
{
    trail_profile_frame frame = {.pc = g->pc, .function = g->name};
    uint32_t index;
    if (g->name == 0)
        return NO_STACK;
    return frame_put(p, &frame, &index) ? stack_number(p, &index, 1) : 0;
}

/* MARK: Rows */

/* Puts the reason and the waker's stack before the waiter's stack. */
static bool row_join(struct profiles *p, const struct row_key *key, trail_profile_sample *row)
{
    trail_string reason = names_text(&p->analysis->names, key->reason);
    char text[256];
    struct profile_stack own = p->stacks[key->stack - 1], waker = {0};
    if (key->waker)
        waker = p->stacks[key->waker - 1];
    uint32_t *frames = arena_alloc(&p->arena, (own.count + waker.count + 2) * sizeof *frames);
    if (!frames)
        return false;
    uint32_t at = 0;
    while (at < waker.count) {
        frames[at] = waker.frames[waker.count - 1 - at];
        at++;
    }
    if (!key->woken && !frame_of_word(p, "[not woken]", &frames[at++]))
        return false;
    if (reason.size == 0)
        reason = text_from("waiting");
    (void)snprintf(text, sizeof text, "[%.*s]", (int)(reason.size < 200 ? reason.size : 200),
                   reason.data);
    if (!frame_of_word(p, text, &frames[at++]))
        return false;
    if (own.count > 0)
        memcpy(frames + at, own.frames, own.count * sizeof *frames);
    row->frames = frames;
    row->frame_count = at + own.count;
    row->own_frames = at;
    return true;
}

/* Returns the index of a new row, + 1; 0 if out of memory. */
static uint32_t row_make(struct profiles *p, struct profile_rows *rows, const struct row_key *key)
{
    bool joined = rows == &p->rows[TRAIL_PROFILE_OFFCPU];
    /* Without a stack: memory was exhausted when the goroutine entered its state. */
    if (key->stack == 0 || !GROW(rows->items, rows->capacity, rows->count + 1))
        return 0;
    trail_profile_sample *row = &rows->items[rows->count++];
    const struct profile_stack *stack = &p->stacks[key->stack - 1];
    *row = (trail_profile_sample){.frames = stack->frames, .frame_count = stack->count};
    row->wait = key->reason;
    return joined && !row_join(p, key, row) ? 0 : (uint32_t)rows->count;
}

static uint32_t row_of_key(struct profiles *p, struct profile_rows *rows, const struct row_key *key)
{
    bool fresh;
    uint64_t number = intern_put(&rows->keys, key, sizeof *key, &fresh);
    return fresh ? row_make(p, rows, key) : (uint32_t)number;
}

/* The slow path of row_of_stack. */
static __attribute__((noinline)) uint32_t row_look_up(struct profiles *p, struct profile_rows *rows,
                                                      uint32_t stack)
{
    if (!GROW_ZEROED(rows->places, rows->place_capacity, p->stack_count + 1))
        return 0;
    return rows->places[stack] = row_of_key(p, rows, &(struct row_key){.stack = stack});
}

/* Returns the row of only a stack. */
static uint32_t row_of_stack(struct profiles *p, struct profile_rows *rows, uint32_t stack)
{
    if (__builtin_expect(stack < rows->place_capacity && rows->places[stack], 1))
        return rows->places[stack];
    return row_look_up(p, rows, stack);
}

/* Returns the row of a stack and kind; of a stack where kinds are not recorded. */
static uint32_t row_of_kind(struct profiles *p, struct profile_rows *rows,
                            const struct row_key *key)
{
    const struct wait_facts *facts = wait_facts_of(&p->analysis->names, key->reason);
    if (!facts)
        return row_of_stack(p, rows, key->stack);
    return row_of_key(p, rows, &(struct row_key){.stack = key->stack, .reason = facts->kind_name});
}

static bool row_add(struct profiles *p, trail_profile_type type, const struct wait *wait,
                    int64_t ns)
{
    const struct row_key *key = &wait->key;
    struct profile_rows *rows = &p->rows[type];
    uint32_t place;
    if (type == TRAIL_PROFILE_OFFCPU)
        place = row_of_key(p, rows, key);
    else if (type == TRAIL_PROFILE_SYNC && p->options->by_kind)
        place = p->last_place = row_of_kind(p, rows, key);
    else
        place = row_of_stack(p, rows, key->stack);
    if (place == 0)
        return false;
    trail_profile_sample *row = &rows->items[place - 1];
    row->nameless = wait->nameless;
    row->count++;
    ns_add(&row->ns, ns);
    return !wants(p->analysis, TRAIL_ANALYZE_DISTRIBUTIONS) || trail_histogram_add(&row->times, ns);
}

/* Counts `ns` of a wait for all its types. */
static bool wait_add(struct profiles *p, const struct wait *wait, int64_t ns)
{
    for (unsigned types = wait->types; types; types &= types - 1) {
        trail_profile_type type = (trail_profile_type)__builtin_ctz(types);
        if ((ns > 0 || type == TRAIL_PROFILE_CPU) && !row_add(p, type, wait, ns))
            return false;
    }
    return true;
}

/* MARK: Selection */

static bool in_list(const int64_t *list, size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == id)
            return true;
    return count == 0;
}

static bool has_name(const struct profiles *p, const struct goroutine *g)
{
    const char *name = p->options->name;
    return !name || text_is(names_text(&p->analysis->names, g->name), name);
}

/* Whether it cannot be judged yet what the goroutine's time counts as, for that type. */
static bool is_early(const struct profiles *p, const struct goroutine *g, unsigned types)
{
    const trail_profile_options *o = p->options;
    return profile_by_region(o) || (o->name && g->name == 0) ||
           (!o->first_waits && !g->ran && (types & GO_TYPES));
}

static uint8_t reason_types(struct profiles *p, trail_name name)
{
    if (!GROW_ZEROED(p->reasons, p->reason_capacity, (size_t)name + 1)) {
        p->analysis->names.failed = true;
        return 0;
    }
    if (p->reasons[name] == 0) {
        const struct names *names = &p->analysis->names;
        trail_string text = names_text(names, wait_reason(names, name));
        unsigned types = TYPE(OFFCPU) | REASON_KNOWN;
        if (text_is(text, "network"))
            types |= TYPE(NET);
        if (memmem(text.data, text.size, "chan", 4) || memmem(text.data, text.size, "sync", 4) ||
            memmem(text.data, text.size, "select", 6))
            types |= TYPE(SYNC);
        p->reasons[name] = (uint8_t)types;
    }
    return p->reasons[name];
}

/* Returns the types that the goroutine's state counts for. */
static inline unsigned state_types(struct profiles *p, const struct goroutine *g)
{
    unsigned types = 0;
    if (g->state == TRAIL_GO_WAITING)
        types = reason_types(p, g->reason);
    else if (g->state == TRAIL_GO_SYSCALL)
        types = TYPE(SYSCALL);
    else if (g->state == TRAIL_GO_RUNNABLE)
        types = TYPE(SCHED);
    else if (g->state == TRAIL_GO_RUNNING)
        types = TYPE(RUNNING);
    return types & p->options->types;
}

/* MARK: Pending waits */

static struct profile_pending *pending_find(const struct profiles *p, const struct goroutine *g)
{
    return g->has_pending ? objects_find(&p->pending, (uint64_t)g->id) : NULL;
}

/* Returns the goroutine's pending waits; NULL if out of memory. */
static struct profile_pending *pending_get(struct profiles *p, struct goroutine *g)
{
    struct profile_pending *pending = objects_get(&p->pending, (uint64_t)g->id);
    if (pending)
        g->has_pending = 1;
    return pending;
}

static void pending_free(const struct profile_pending *pending)
{
    free(pending->waits);
    free(pending->regions);
}

static bool wait_pend(struct profiles *p, struct goroutine *g, const struct wait *wait)
{
    struct profile_pending *pending = pending_get(p, g);
    if (!pending || !GROW(pending->waits, pending->wait_capacity, pending->wait_count + 1))
        return false;
    pending->waits[pending->wait_count++] = *wait;
    return true;
}

static bool wait_take(struct profiles *p, struct goroutine *g, const struct wait *wait)
{
    const trail_profile_options *o = p->options;
    if (!p->analysis->counting || !in_list(o->goroutines, o->goroutine_count, g->id))
        return true;
    if (is_early(p, g, wait->types))
        return wait_pend(p, g, wait);
    return !has_name(p, g) || wait_add(p, wait, ns_between(wait->begin_ns, wait->end_ns));
}

static int by_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return ORDER(x->begin_ns, y->begin_ns) ?: ORDER(x->end_ns, y->end_ns);
}

/* Of nested regions only the outermost count. */
static void keep_outermost(struct profile_pending *pending)
{
    size_t kept = 0;
    int64_t last = INT64_MIN;
    if (pending->region_count > 1)
        qsort(pending->regions, pending->region_count, sizeof *pending->regions, by_begin);
    for (size_t i = 0; i < pending->region_count; i++) {
        if (pending->regions[i].begin_ns < last)
            continue;
        last = pending->regions[i].end_ns;
        pending->regions[kept++] = pending->regions[i];
    }
    pending->region_count = kept;
}

/* Adds the part of a wait that is inside the regions. They do not overlap, so those after the first
 * one that begins too late are not looked at. */
static bool add_inside(struct profiles *p, const struct profile_pending *pending,
                       const struct wait *wait)
{
    size_t at = SEARCH(i, 0, pending->region_count, pending->regions[i].end_ns < wait->begin_ns);
    int64_t ns = 0;
    bool inside = false;
    for (; at < pending->region_count && pending->regions[at].begin_ns <= wait->end_ns; at++) {
        const struct interval *r = &pending->regions[at];
        int64_t from = r->begin_ns > wait->begin_ns ? r->begin_ns : wait->begin_ns;
        int64_t to = r->end_ns < wait->end_ns ? r->end_ns : wait->end_ns;
        ns_add(&ns, ns_between(from, to));
        inside = true;
    }
    return !inside || wait_add(p, wait, ns);
}

/* Counts the pending waits, which can be judged now. */
static bool flush_pending(struct profiles *p, struct goroutine *g)
{
    struct profile_pending *pending = pending_find(p, g);
    bool good = true, by_region = profile_by_region(p->options);
    if (!pending)
        return true;
    if (!has_name(p, g))
        pending->wait_count = 0;
    keep_outermost(pending);
    for (size_t i = 0; good && i < pending->wait_count; i++) {
        const struct wait *wait = &pending->waits[i];
        good = by_region ? add_inside(p, pending, wait)
                         : wait_add(p, wait, ns_between(wait->begin_ns, wait->end_ns));
    }
    pending_free(pending);
    objects_drop(&p->pending, (uint64_t)g->id);
    g->has_pending = 0;
    return good;
}

/* The goroutine runs for the first time: Go does not count its waits before. */
static void forget_first_waits(struct profile_pending *pending)
{
    size_t kept = 0;
    for (size_t i = 0; i < pending->wait_count; i++)
        if (!(pending->waits[i].types & GO_TYPES))
            pending->waits[kept++] = pending->waits[i];
    pending->wait_count = kept;
}

/* MARK: Events */

/* Go writes a stack of which nothing is left as one empty frame. */
static bool is_nameless(const struct profiles *p, uint32_t stack, trail_stack_handle handle)
{
    size_t count = 0;
    if (stack == NO_STACK)
        (void)trail_reader_stack(p->analysis->reader, handle, &count);
    return count > 0;
}

/* Records the state that begins at this event. */
static bool enter(struct profiles *p, struct goroutine *g, const trail_event *event)
{
    unsigned types = state_types(p, g) & ~TYPE(RUNNING);
    g->found = 0;
    if (types == 0)
        return true;
    g->stack = stack_of(p, event->stack) & MOST_STACKS;
    g->nameless = is_nameless(p, g->stack, event->stack);
    return g->stack != 0;
}

static bool leaves_running(struct profiles *p, struct goroutine *g, trail_stack_handle stack,
                           int64_t since, int64_t now)
{
    struct wait wait = {
        .begin_ns = since,
        .end_ns = now,
        .types = TYPE(RUNNING),
        .key.stack = stack ? stack_of(p, stack) : stack_of_start(p, g),
    };
    return wait.key.stack != 0 && wait_take(p, g, &wait);
}

/* Go's own profile types leave out some waits; others are counted individually. */
static bool leaves_wait(struct profiles *p, struct goroutine *g, unsigned types,
                        const struct row_key *key, int64_t now)
{
    int64_t counted = p->analysis->goroutines.counted_from_ns;
    struct wait wait = {
        .begin_ns = g->since_ns,
        .end_ns = now,
        .types = types & GO_TYPES,
        .key = *key,
        .nameless = g->nameless,
    };
    if (wait.types && !wait_take(p, g, &wait))
        return false;
    wait.types = types & ~GO_TYPES;
    wait.nameless = false;
    if (g->found)
        wait.begin_ns = g->creation_ns > counted ? g->creation_ns : counted;
    return !wait.types || wait_take(p, g, &wait);
}

/* Returns the number of the place of the goroutine's wait; 0 if out of memory. */
static size_t idle_place_of(struct profiles *p, const struct goroutine *g,
                            const struct wait_facts *facts, uint32_t row)
{
    return idle_place(&p->idle, g->id, g->stack, facts->kind_name, row);
}

static bool is_idle_kind(const struct wait_facts *facts)
{
    return facts && wire_wait_kinds[facts->kind].traits & WIRE_WAIT_IDLE;
}

/* Records the row of a wait that was just counted, for the log after it and the goroutine's end. */
static bool note_sync(struct profiles *p, const struct goroutine *g, int64_t now)
{
    uintptr_t place = p->last_place;
    const struct wait_facts *facts = wait_facts_of(&p->analysis->names, g->reason);
    if (!facts)
        return true;
    (void)idmap_remove(&p->last_sync, (uint64_t)g->id);
    if (place == 0)
        return true;
    if (is_idle_kind(facts)) {
        size_t number = idle_place_of(p, g, facts, (uint32_t)place - 1);
        if (number == 0)
            return false;
        idle_count(&p->idle, number, ns_between(g->since_ns, now));
    }
    return idmap_put(&p->last_sync, (uint64_t)g->id, (void *)place);
}

static bool count_idle(void *context, const struct idle_place *place)
{
    struct profiles *p = context;
    trail_profile_sample *row = &p->rows[TRAIL_PROFILE_SYNC].items[place->user];
    row->idle_count += place->count;
    ns_add(&row->idle_ns, place->ns);
    return true;
}

/* The goroutine has ended. */
static bool judge_idle(struct profiles *p, const struct goroutine *g, int64_t now)
{
    int64_t from = p->analysis->goroutines.counted_from_ns;
    struct idle_end end = {
        .goroutine = g->id,
        .life = ns_between(g->creation_ns > from ? g->creation_ns : from, now),
        .open_ns = ns_between(g->since_ns, now),
    };
    const struct wait_facts *facts = wait_facts_of(&p->analysis->names, g->reason);
    if (g->state == TRAIL_GO_WAITING && is_idle_kind(facts)) {
        end.open = idle_place_of(p, g, facts, UINT32_MAX);
        if (end.open == 0)
            return false;
    }
    return idle_judge(&p->idle, &end, count_idle, p);
}

static bool leaves(void *part, struct goroutine *g, const trail_event *event)
{
    struct profiles *p = part;
    const trail_profile_options *o = p->options;
    unsigned types = state_types(p, g);
    if (g->has_pending && !is_early(p, g, GO_TYPES) && !flush_pending(p, g))
        return false;
    if (event->transition.to == TRAIL_GO_RUNNING && !g->ran && !o->first_waits &&
        !profile_by_region(o)) {
        types &= ~GO_TYPES;
        if (g->has_pending)
            forget_first_waits(pending_find(p, g));
    }
    if (types == 0)
        return true;
    if (types & TYPE(RUNNING))
        return leaves_running(p, g,
                              event->goroutine == g->id ? event->stack : event->transition.stack,
                              g->since_ns, event->time_ns);
    struct row_key key = {.stack = g->stack, .reason = g->reason, .woken = true};
    if ((types & TYPE(OFFCPU)) && event->stack != 0 && event->goroutine != g->id) {
        key.waker = stack_of(p, event->stack);
        if (key.waker == 0)
            return false;
    }
    if (!o->by_kind)
        return leaves_wait(p, g, types, &key, event->time_ns);
    p->last_place = 0;
    return leaves_wait(p, g, types, &key, event->time_ns) &&
           (g->state != TRAIL_GO_WAITING || note_sync(p, g, event->time_ns));
}

/* The first state of the goroutine in the trace, which may have begun before this event. */
__attribute__((noinline)) static bool enter_first(struct profiles *p, struct goroutine *g,
                                                  const trail_event *event)
{
    int64_t counted = p->analysis->goroutines.counted_from_ns;
    int64_t since = g->creation_ns > counted ? g->creation_ns : counted;
    if (!enter(p, g, event))
        return false;
    if (g->lost) /* nor is anything known of the time before */
        return true;
    g->found = event->transition.from == TRAIL_GO_UNDETERMINED;
    if (since == event->time_ns || !(state_types(p, g) & TYPE(RUNNING)))
        return true;
    return leaves_running(p, g, event->transition.stack, since, event->time_ns);
}

static bool enters(void *part, struct goroutine *g, const trail_event *event)
{
    return event->transition.from <= TRAIL_GO_NOT_EXIST ? enter_first(part, g, event)
                                                        : enter(part, g, event);
}

/* The goroutine's last wait timed out. */
static void take_time_out(struct profiles *p, const trail_event *event)
{
    struct profile_rows *rows = &p->rows[TRAIL_PROFILE_SYNC];
    uintptr_t place = (uintptr_t)idmap_remove(&p->last_sync, (uint64_t)event->goroutine);
    if (place != 0)
        rows->items[place - 1].timed_out++;
}

/* Takes a CPU sample or a log. */
static bool take_event(void *part, const trail_event *event)
{
    struct profiles *p = part;
    const trail_profile_options *o = p->options;
    struct goroutine *g = goroutines_find(&p->analysis->goroutines, event->goroutine);
    if (event->kind == TRAIL_LOG) {
        if (p->options->by_kind && goroutine_timed_out(p->analysis, event))
            take_time_out(p, event);
        return true;
    }
    struct wait wait = {
        .begin_ns = event->time_ns,
        .end_ns = event->time_ns,
        .types = TYPE(CPU),
    };
    bool any = !o->name && !profile_by_region(o) && o->goroutine_count == 0;
    if (!(o->types & TYPE(CPU)) || !p->analysis->counting || (!g && !any))
        return true;
    wait.key.stack = stack_of(p, event->stack);
    if (wait.key.stack == 0)
        return false;
    return any ? wait_add(p, &wait, 0) : wait_take(p, g, &wait);
}

static bool region_ends(void *part, struct goroutine *g, const trail_region *region, int64_t now)
{
    struct profiles *p = part;
    const trail_profile_options *o = p->options;
    if (!profile_by_region(o) || !in_list(o->tasks, o->task_count, (int64_t)region->task) ||
        (o->region && !text_is(names_text(&p->analysis->names, region->name), o->region)))
        return true;
    struct profile_pending *pending = pending_get(p, g);
    if (!pending || !GROW(pending->regions, pending->region_capacity, pending->region_count + 1))
        return false;
    pending->regions[pending->region_count++] = (struct interval){
        region->has_start ? region->start_ns : INT64_MIN,
        region->has_end ? region->end_ns : now,
    };
    return true;
}

/* Counts a state that is open when the window or the trace ends. */
static bool take_open(struct profiles *p, struct goroutine *g, int64_t now)
{
    unsigned types = state_types(p, g);
    if (!p->analysis->over)
        types &= TYPE(RUNNING) | TYPE(OFFCPU);
    if (types == 0)
        return true;
    if (types & TYPE(RUNNING))
        return leaves_running(p, g, 0, g->since_ns, now);
    struct row_key key = {.stack = g->stack, .reason = g->reason};
    return leaves_wait(p, g, types, &key, now);
}

static bool ends(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct profiles *p = part;
    if (p->analysis->counting && has_name(p, g) &&
        in_list(p->options->goroutines, p->options->goroutine_count, g->id)) {
        p->goroutines++;
        const struct profile_pending *pending = pending_find(p, g);
        p->regions += pending ? pending->region_count : 0;
    }
    if (p->idle.first.count > 0 && p->analysis->counting && !judge_idle(p, g, now))
        return false;
    return (end_ns != 0 || take_open(p, g, now)) && flush_pending(p, g);
}

/* MARK: Answers */

static int by_time(const void *a, const void *b)
{
    const trail_profile_sample *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? 1 : -1;
    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    for (uint32_t i = 0; i < x->frame_count && i < y->frame_count; i++)
        if (x->frames[i] != y->frames[i])
            return x->frames[i] < y->frames[i] ? -1 : 1;
    return ORDER(x->frame_count, y->frame_count);
}

/* Adds up the rows and sorts them. Returns false if out of memory. */
static bool finish(void *part, int64_t ns)
{
    struct profiles *profiles = part;
    (void)ns;
    for (int i = 0; i < TRAIL_PROFILES; i++) {
        struct profile_rows *rows = &profiles->rows[i];
        for (size_t n = 0; n < rows->count; n++) {
            rows->sum_count += rows->items[n].count;
            ns_add(&rows->sum_ns, rows->items[n].ns);
            if (!trail_histogram_merge(&rows->times, &rows->items[n].times))
                return false;
        }
        if (rows->count > 0)
            qsort(rows->items, rows->count, sizeof *rows->items, by_time);
    }
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct profiles *p = part;
    p->analysis = analysis;
    p->options = &analysis->options.profile;
    p->pending = OBJECTS_OF(struct profile_pending);
    return stack_number(p, NULL, 0) == NO_STACK;
}

static void drop(void *part)
{
    struct profiles *profiles = part;
    for (int i = 0; i < TRAIL_PROFILES; i++) {
        struct profile_rows *rows = &profiles->rows[i];
        for (size_t n = 0; n < rows->count; n++)
            trail_histogram_free(&rows->items[n].times);
        free(rows->items);
        free(rows->places);
        trail_histogram_free(&rows->times);
        intern_free(&rows->keys);
    }
    IDMAP_EACH(slot, &profiles->pending.map)
        pending_free(slot->value);
    objects_free(&profiles->pending);
    idmap_free(&profiles->last_sync);
    idle_free(&profiles->idle);
    intern_free(&profiles->frame_keys);
    intern_free(&profiles->stack_keys);
    arena_free(&profiles->arena);
    free(profiles->frames);
    free(profiles->stacks);
    free(profiles->by_handle);
    free(profiles->reasons);
}

const struct analysis_part profile_part = {
    .what = TRAIL_ANALYZE_PROFILES,
    .size = sizeof(struct profiles),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .finish = finish,
    .kinds = PART_KIND(STACK_SAMPLE) | PART_KIND(LOG),
    .event = take_event,
    .leaves = leaves,
    .enters = enters,
    .ends = ends,
    .region_ends = region_ends,
};

void trail_analysis_profile(const trail_analysis *analysis, trail_profile_type type,
                            trail_profile *profile)
{
    const struct profiles *p = analysis_object(analysis, &profile_part);
    *profile = (trail_profile){.type = type};
    if (!p)
        return;
    const struct profile_rows *rows = &p->rows[type];
    profile->frames = p->frames;
    profile->frame_count = p->frame_count;
    profile->samples = rows->items;
    profile->sample_count = rows->count;
    profile->count = rows->sum_count;
    profile->ns = rows->sum_ns;
    profile->goroutines = p->goroutines;
    profile->regions = p->regions;
    profile->times = rows->times;
}
