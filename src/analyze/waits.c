#include "analyze/waits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/text.h"
#include "words/place.h"
#include "words/wrappers.h"

/* Go preempts a goroutine after 10 ms; one that keeps a P for longer than this while others are
 * ready is counted. */
#define HELD_LEAST_NS 50000000

/* The same, of one that is preempted in the end: that it was so late may be since other programs
 * had the CPU. */
#define HELD_PREEMPTED_NS 200000000

/* A goroutine that runs for less than this between two waits at one place, and wakes no other, was
 * woken in vain. */
#define FUTILE_MOST_NS 10000

/* The same, of one that was woken together with others: they take a lock in turn, and a recorder's
 * own time counts. */
#define FUTILE_TOGETHER_NS 30000

/* An answer comes at most so long after it was written by the same program. */
#define REPLY_MOST_NS 2000000

/* A goroutine that had work for this long is kept as one of those that can hold others up. */
#define BUSY_LEAST_NS 50000000

/* MARK: Groups */

static struct wait_group *group_make(struct waits *waits, trail_name name)
{
    if (!GROW_ZEROED(waits->by_name, waits->by_name_capacity, (size_t)name + 1) ||
        !GROW(waits->items, waits->capacity, waits->count + 1))
        return NULL;
    struct wait_group *group = calloc(1, sizeof *group);
    if (!group)
        return NULL;
    group->row.name = name;
    waits->by_name[name] = waits->items[waits->count++] = group;
    return group;
}

static inline struct wait_group *group_get(struct waits *waits, trail_name name)
{
    if (__builtin_expect(name < waits->by_name_capacity && waits->by_name[name], 1))
        return waits->by_name[name];
    return group_make(waits, name);
}

/* The slow path of wait_get: there is no row with its own name, but one of its kind, or none yet.
 */
static __attribute__((noinline)) trail_wait *
wait_make(const struct names *names, struct wait_group *group, trail_name wait_for)
{
    trail_name reason = wait_kind_name(names, wait_for);
    for (size_t i = 0; i < group->row.wait_count; i++)
        if (group->waits[i].reason == reason)
            return &group->waits[i];
    if (!GROW_SMALL(group->waits, group->wait_capacity, group->row.wait_count + 1))
        return NULL;
    trail_wait *wait = &group->waits[group->row.wait_count++];
    *wait = (trail_wait){.reason = reason};
    group->row.waits = group->waits;
    return wait;
}

/* Returns the row of a wait, or of its kind where that is known. */
static trail_wait *wait_get(const struct names *names, struct wait_group *group, trail_name wait)
{
    for (size_t i = 0; i < group->row.wait_count; i++)
        if (group->waits[i].reason == wait)
            return &group->waits[i];
    return wait_make(names, group, wait);
}

/* MARK: Places */

static bool has(trail_string text, const char *part)
{
    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

/* Whether this inner frame waits for something that is not a lock of the program. */
static bool is_in_other(trail_string function)
{
    return has(function, "join") || text_begins(function, "sem_") || has(function, "barrier") ||
           has(function, "Once");
}

/* The lock that a condition variable takes again is part of the wait for the condition variable. */
static bool is_in_condition(trail_string function)
{
    return has(function, "(*Cond)") || has(function, "pthread_cond") ||
           has(function, "condition_variable") || text_begins(function, "cnd_");
}

/* Whether this inner frame of a Go program waits for a lock. */
static bool is_in_lock(trail_string function)
{
    return has(function, "sync.(*Mutex)") || has(function, "sync.(*RWMutex)");
}

/* Whether one of the first frames waits for a lock. */
static bool is_lock_stack(const struct waits *waits, trail_stack_handle stack)
{
    enum { FRAMES = 6 }; /* of the runtime, then of sync */
    size_t count;
    const trail_frame *frame = trail_reader_stack(waits->analysis->reader, stack, &count);
    for (size_t i = 0; i < count && i < FRAMES; i++)
        if (is_in_lock(trail_reader_string(waits->analysis->reader, frame[i].function)))
            return true;
    return false;
}

/* Returns "main.work (main.go:42)" for a frame. */
static trail_name frame_name(struct waits *waits, const trail_frame *frame)
{
    char text[PLACE_TEXT_SIZE];
    (void)place_of_frame(trail_reader_string(waits->analysis->reader, frame->function),
                         trail_reader_string(waits->analysis->reader, frame->file), frame->line,
                         PLACE_PARENTHESES, text, sizeof text);
    return names_put(&waits->analysis->names, text, strlen(text));
}

/* Returns the place of a stack, and what is waited for there. 0: no frame of the program. */
static trail_name place_name(struct waits *waits, trail_stack_handle stack, enum place_kind *kind)
{
    size_t count;
    const trail_frame *frame = trail_reader_stack(waits->analysis->reader, stack, &count);
    const trail_frame *best = NULL;
    enum frame_rank best_rank = FRAME_WRAPPER;
    for (; count > 0 && best_rank < FRAME_OWN; count--, frame++) {
        trail_string function = trail_reader_string(waits->analysis->reader, frame->function);
        trail_string file = trail_reader_string(waits->analysis->reader, frame->file);
        enum frame_rank rank = frame_rank(waits->analysis->options.skip_frames, function, file);
        if (rank > best_rank) {
            best = frame;
            best_rank = rank;
        } else if (rank <= FRAME_WRAPPER && *kind == PLACE_LOCK) {
            *kind = has(function, "WaitGroup")                           ? PLACE_GROUP
                    : has(function, "sync.(*Once)")                      ? PLACE_ONCE
                    : is_in_other(function) || is_in_condition(function) ? PLACE_OTHER
                                                                         : PLACE_LOCK;
        }
    }
    return best ? frame_name(waits, best) : 0;
}

static struct place *place_make(struct waits *waits, trail_name name, enum place_kind kind)
{
    uint64_t key = (uint64_t)name << 3 | kind;
    struct place *place = idmap_find(&waits->places, key);
    if (place)
        return place;
    if (!GROW(waits->all, waits->place_capacity, waits->place_count + 1))
        return NULL;
    place = calloc(1, sizeof *place);
    if (!place)
        return NULL;
    place->name = name;
    place->kind = kind;
    waits->all[waits->place_count++] = place;
    return idmap_put(&waits->places, key, place) ? place : NULL;
}

/* Handles of stacks are valid in one epoch. */
static void check_epoch(struct waits *waits)
{
    uint64_t epoch = trail_reader_epoch(waits->analysis->reader);
    if (waits->epoch == epoch)
        return;
    waits->epoch = epoch;
    idmap_clear(&waits->by_stack);
}

/* What is waited for, as far as the wait itself says: its stack may show that a lock is none. */
static enum place_kind kind_of(const struct waits *waits, trail_name wait, trail_name reason)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    if (reason == waits->condition)
        return PLACE_CONDITION;
    return facts && !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD) ? PLACE_OTHER
                                                                            : PLACE_LOCK;
}

/* Returns NULL on out of memory. */
static struct place *place_of(struct waits *waits, trail_stack_handle stack, enum place_kind kind)
{
    uint64_t key = (uint64_t)stack << 3 | kind;
    check_epoch(waits);
    struct place *place = idmap_find(&waits->by_stack, key);
    if (place)
        return place;
    trail_name name = place_name(waits, stack, &kind);
    place = place_make(waits, name, kind);
    return place && idmap_put(&waits->by_stack, key, place) ? place : NULL;
}

/* MARK: What held it up */

/* Returns the name of a frame's place. */
static trail_name blamed_place(struct waits *waits, const trail_place *frame)
{
    uint64_t key = (uint64_t)frame->function << 32 | (frame->line & UINT32_MAX);
    uintptr_t known = (uintptr_t)idmap_find(&waits->blamed_places, key);
    if (known)
        return (trail_name)(known - 1);
    struct names *names = &waits->analysis->names;
    char text[PLACE_TEXT_SIZE] = "";
    if (frame->function != 0)
        (void)place_of_frame(names_text(names, frame->function), names_text(names, frame->file),
                             frame->line, PLACE_PARENTHESES, text, sizeof text);
    trail_name name = names_put(names, text, strlen(text));
    (void)idmap_put(&waits->blamed_places, key, (void *)((uintptr_t)name + 1));
    return name;
}

/* Returns the frame that ended a wait. A futex is called by the program's own lock: its caller. */
static trail_place blamed_frame(const struct waits *waits, trail_stack stack,
                                const struct wait_facts *facts)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    bool caller = facts && facts->kind == WIRE_WAIT_FUTEX && row.own + 1 < row.count;
    return row.count > 0 ? row.places[row.own + caller] : (trail_place){0};
}

trail_name waits_place(struct waits *waits, trail_stack stack)
{
    trail_place at = blamed_frame(waits, stack, NULL);
    return at.function ? blamed_place(waits, &at) : 0;
}

trail_name waits_blamed(struct waits *waits, trail_name wait)
{
    struct names *names = &waits->analysis->names;
    const struct wait_facts *facts = wait_facts_of(names, wait);
    char text[PLACE_TEXT_SIZE];
    if (!facts || facts->kind != WIRE_WAIT_RWLOCK)
        return wait;
    trail_string object = names_text(names, facts->object);
    int size = snprintf(text, sizeof text, "%s %.*s", wire_wait_kinds[facts->kind].title,
                        (int)(object.size < 400 ? object.size : 400), object.data);
    return names_put(names, text, (size_t)size);
}

/* The start function of a goroutine; 0: unknown. */
static trail_name start_of(const struct waits *waits, int64_t id)
{
    const struct goroutine *g = goroutines_find(&waits->analysis->goroutines, id);
    return g ? g->name : 0;
}

bool waits_hands_over(const struct waits *waits, trail_name wait)
{
    const struct names *names = &waits->analysis->names;
    const struct wait_facts *facts = wait_facts_of(names, wait);
    trail_string text = names_text(names, wait);
    if (facts)
        return facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE ||
               facts->kind == WIRE_WAIT_FUTEX || facts->kind == WIRE_WAIT_READ ||
               facts->kind == WIRE_WAIT_RECEIVE;
    return wait == waits->condition || text_begins(text, "chan ") || text_begins(text, "select");
}

bool waits_for_result(const struct waits *waits, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    return facts && facts->kind == WIRE_WAIT_FUTURE;
}

/* The wait of `g` at `place` (NULL: elsewhere), which was for `wait`, has ended. */
static bool blame(struct waits *waits, const struct goroutine *g, const struct place *place,
                  int64_t serial_at, trail_name wait, const trail_event *event)
{
    bool woken = event->transition.to == TRAIL_GO_RUNNABLE && event->goroutine != g->id &&
                 event->goroutine >= 0;
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    if (woken && waits->outside.now.map.count > 0)
        outside_woke(&waits->outside, event->goroutine);
    trail_stack stack = woken ? stacks_of(&waits->analysis->stacks, event->stack) : 0;
    trail_place by = blamed_frame(waits, stack, facts);
    struct blame_wait ended = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .end_ns = event->time_ns,
        .begin_serial = serial_at,
        .end_serial = waits->activity->serial_ns,
        .wait = waits_blamed(waits, wait),
        .at = place ? place->name : g->name,
        .named = facts && facts->object != 0,
        .lock = place && place->kind == PLACE_LOCK,
        .once = facts ? facts->kind == WIRE_WAIT_ONCE : place && place->kind == PLACE_ONCE,
        .hands_over = waits_hands_over(waits, wait) || waits_for_result(waits, wait),
        .waker = woken ? event->goroutine : TRAIL_NONE,
        .own_start = g->name,
        .start = woken ? start_of(waits, event->goroutine) : 0,
        .function = by.function,
        .place = blamed_place(waits, &by),
    };
    return !waits->analysis->stacks.failed && blame_add(&waits->blame, &ended);
}

/* MARK: Waiting at a place */

/* The goroutine has done some work since it was woken. */
static void watch_end(struct waits *waits, int64_t id)
{
    struct parked *parked = waits->watched > 0 ? objects_find(&waits->parked, (uint64_t)id) : NULL;
    if (!parked || !parked->woken_at)
        return;
    parked->woken_at = NULL;
    waits->watched--;
    if (!parked->place)
        objects_drop(&waits->parked, (uint64_t)id);
}

/* Whether the goroutine waits for a lock: to pass that on is no work. */
static bool waits_for_lock(const struct waits *waits, const struct goroutine *g)
{
    const struct parked *parked =
        g->state == TRAIL_GO_WAITING ? objects_find(&waits->parked, (uint64_t)g->id) : NULL;
    return parked && parked->place && parked->place->kind == PLACE_LOCK;
}

/* The goroutine has woken `g`, or created it. */
static void watch_waker(struct waits *waits, const struct goroutine *g, int64_t id)
{
    const struct parked *parked = objects_find(&waits->parked, (uint64_t)id);
    if (parked && parked->woken_at && !waits_for_lock(waits, g))
        watch_end(waits, id);
}

/* It waits for a condition variable again, where it was woken: in vain if it hardly ran and did no
 * work. */
static void note_futile(struct waits *waits, const struct goroutine *g, struct place *place,
                        int64_t now)
{
    const struct parked *parked = objects_find(&waits->parked, (uint64_t)g->id);
    if (!parked || parked->woken_at != place)
        return;
    int64_t ran = ns_between(parked->woken_exec_ns, g->exec_ns);
    if (g->state == TRAIL_GO_RUNNING)
        ns_add(&ran, ns_between(g->since_ns, now));
    if (ran >= (parked->woken_together ? FUTILE_TOGETHER_NS : FUTILE_MOST_NS))
        return;
    place->futile++;
    place->waiter = g->name;
}

/* Returns the reason of a wait; of one that began before the trace, the one of its stack. */
static trail_name reason_of(const struct waits *waits, const trail_event *event)
{
    trail_name reason = names_of(&waits->analysis->names, event->transition.reason);
    bool early = reason == 0 && event->transition.from == TRAIL_GO_UNDETERMINED;
    return early && is_lock_stack(waits, event->transition.stack) ? waits->sync : reason;
}

/* The wait that begins has the name of its lock in traces that record it. */
static void note_lock(const struct waits *waits, struct place *place, trail_name wait)
{
    trail_name lock = wait_facts_of(&waits->analysis->names, wait) ? wait : 0;
    place->locks_differ |= place->waits + place->waiters > 0 && lock != place->lock;
    place->lock = place->locks_differ ? 0 : lock;
}

static bool place_enter(struct waits *waits, const struct goroutine *g, const trail_event *event,
                        trail_name reason)
{
    if (reason == 0 || (reason != waits->sync && reason != waits->condition)) {
        watch_end(waits, g->id);
        return true;
    }
    trail_name wait = follow_wait(&waits->analysis->goroutines.follow, event);
    struct place *place = place_of(waits, event->transition.stack, kind_of(waits, wait, reason));
    if (!place)
        return false;
    if (place->kind == PLACE_CONDITION) {
        note_futile(waits, g, place, event->time_ns);
        watch_end(waits, g->id);
    }
    struct parked *parked = objects_get(&waits->parked, (uint64_t)g->id);
    if (!parked)
        return false;
    parked->place = place;
    parked->serial_at = waits->activity->serial_ns;
    if (waits->analysis->goroutines.follow.announced.heard)
        note_lock(waits, place, wait);
    if (place->waiters++ == 0)
        place->serial_at = waits->activity->serial_ns;
    if (place->waiters > place->most_waiters)
        place->most_waiters = place->waiters;
    if (place->kind == PLACE_LOCK)
        waits->activity->lock_waiters++;
    return true;
}

static void count_place(const struct goroutine *g, struct place *place, const trail_event *event)
{
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    place->waits++;
    ns_add(&place->ns, ns);
    longest_note(&place->longest, ns, g->since_ns, g->id);
}

/* One that ends this many times as late as all others of its family is a straggler. */
#define STRAGGLES_TIMES 3

/* Whether the goroutine waits for the exit of another one. */
static bool is_join(const struct waits *waits, const struct goroutine *g)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, g->reason);
    return facts && facts->kind == WIRE_WAIT_JOIN;
}

/*
 * A wait for a WaitGroup or an exit has ended. Counts the goroutine that ended it, if it was the
 * last of its family by far. Returns false on out of memory.
 */
static bool note_straggler(struct waits *waits, const struct goroutine *g,
                           const struct place *place, const trail_event *event)
{
    const struct family *family =
        event->goroutine >= 0 ? idmap_find(&waits->families.of_member, (uint64_t)event->goroutine)
                              : NULL;
    if (!family || family->lost || family->differ || family->ended < 2 ||
        family->ended + 1 != family->created)
        return true;
    int64_t since = family->ended_ns > g->since_ns ? family->ended_ns : g->since_ns;
    int64_t others_ns = ns_between(family->created_ns, family->ended_ns);
    int64_t ns = ns_between(since, event->time_ns);
    if (ns < 0 || others_ns < 0 || ns / (STRAGGLES_TIMES - 1) < others_ns)
        return true;
    struct straggler *straggler = objects_get(&waits->stragglers, family->start);
    if (!straggler)
        return false;
    straggler->start = family->start;
    straggler->times++;
    ns_add(&straggler->ns, ns);
    if (ns > straggler->longest.ns) {
        straggler->longest = (trail_longest){ns, since, event->goroutine};
        straggler->created_at = family->place;
        straggler->at = place->name;
    }
    return true;
}

/*
 * After a wait for a condition variable, it is recorded whether the goroutine does some work.
 * Returns false on out of memory.
 */
static bool place_leave(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct parked *parked = objects_find(&waits->parked, (uint64_t)g->id);
    struct place *place = parked ? parked->place : NULL;
    bool ok = true;
    if (!place)
        return true;
    if (ns_between(g->since_ns, event->time_ns) >= BLAME_LEAST_NS)
        ok = blame(waits, g, place, parked->serial_at, g->reason, event);
    if (ok && (place->kind == PLACE_GROUP || is_join(waits, g)) && waits->analysis->counting)
        ok = note_straggler(waits, g, place, event);
    parked->place = NULL;
    bool together = place->left_by == event->goroutine && place->waits > 0 &&
                    ns_between(place->left_ns, event->time_ns) < BLAME_TOGETHER_NS;
    place->left_ns = event->time_ns;
    place->left_by = event->goroutine;
    if (--place->waiters == 0)
        ns_add(&place->serial_ns, ns_between(place->serial_at, waits->activity->serial_ns));
    if (place->kind == PLACE_LOCK)
        waits->activity->lock_waiters--;
    bool woken = event->goroutine >= 0 && event->goroutine != g->id;
    if (waits->analysis->counting) {
        count_place(g, place, event);
        place->woken += woken;
    }
    if (place->kind == PLACE_CONDITION && woken && !parked->woken_at) {
        parked->woken_at = place;
        parked->woken_exec_ns = g->exec_ns;
        parked->woken_together = together;
        waits->watched++;
    }
    if (!parked->woken_at)
        objects_drop(&waits->parked, (uint64_t)g->id);
    return ok;
}

/* MARK: Waits for work */

/* A wait begins that may be for work. Returns false on out of memory. */
static bool idle_enter(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    const struct wait_facts *facts =
        wait_facts_of(names, follow_wait(&waits->analysis->goroutines.follow, event));
    enum place_kind kind = PLACE_OTHER;
    if (!facts || !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_IDLE))
        return true;
    trail_name place = place_name(waits, event->transition.stack, &kind);
    size_t number = idle_place(&waits->idle, g->id, place, facts->kind_name, facts->kind_name);
    return number != 0 && idmap_put(&waits->idle_now, (uint64_t)g->id, (void *)(uintptr_t)number);
}

/* The wait has ended. */
static void idle_leave(struct waits *waits, const struct goroutine *g, int64_t now)
{
    uintptr_t number = (uintptr_t)idmap_remove(&waits->idle_now, (uint64_t)g->id);
    if (number == 0 || !waits->analysis->counting)
        return;
    idle_count(&waits->idle, number, ns_between(g->since_ns, now));
}

struct idle_context {
    const struct names *names;
    struct wait_group *group;
};

static bool count_idle(void *context, const struct idle_place *place)
{
    const struct idle_context *of = context;
    trail_wait *wait = wait_get(of->names, of->group, place->user);
    if (!wait)
        return false;
    wait->idle_count += place->count;
    ns_add(&wait->idle_ns, place->ns);
    return true;
}

static bool judge_idle(struct waits *waits, const struct goroutine *g, int64_t now)
{
    int64_t from = waits->analysis->goroutines.counted_from_ns;
    struct idle_context context = {&waits->analysis->names, group_get(waits, g->name)};
    struct idle_end end = {
        .goroutine = g->id,
        .life = ns_between(g->creation_ns > from ? g->creation_ns : from, now),
        .open = (uintptr_t)idmap_remove(&waits->idle_now, (uint64_t)g->id),
        .open_ns = ns_between(g->since_ns, now),
    };
    return context.group && idle_judge(&waits->idle, &end, count_idle, &context);
}

/*
 * A goroutine has soon ended the wait of `sender` to send. That counts if the sender mostly waits,
 * for something else: one that always has something to send fills a channel's buffer, and those that
 * work on what they take from it never wait, and may end such waits soon as well. A long wait, which
 * the other one did not notice at once, takes back some: it may have had no CPU. Returns false on
 * out of memory.
 */
static bool count_served(struct waits *waits, const struct goroutine *sender,
                         const trail_event *event)
{
    uint64_t by = (uint64_t)event->goroutine;
    int64_t busy = sender->exec_ns;
    ns_add(&busy, sender->sched_wait_ns);
    if (event->goroutine < 0 || busy > ns_between(sender->creation_ns, event->time_ns) / 2)
        return true;
    uintptr_t count = (uintptr_t)idmap_find(&waits->served, by);
    return idmap_put(&waits->served, by, (void *)(count + 1));
}

/* So many waits that a goroutine ended soon make up for one that it ended late. */
#define SERVED_FOR_LATE 8

static bool count_late(struct waits *waits, int64_t goroutine)
{
    uint64_t by = (uint64_t)goroutine;
    uintptr_t count = waits->served.count > 0 ? (uintptr_t)idmap_find(&waits->served, by) : 0;
    if (count > SERVED_FOR_LATE)
        return idmap_put(&waits->served, by, (void *)(count - SERVED_FOR_LATE));
    if (count > 0)
        (void)idmap_remove(&waits->served, by);
    return true;
}

/* Looks whether the goroutine that ends has never waited, but served others. */
static void note_spinner(struct waits *waits, const struct goroutine *g, int64_t ran)
{
    uintptr_t count =
        waits->served.count > 0 ? (uintptr_t)idmap_remove(&waits->served, (uint64_t)g->id) : 0;
    if (count > 0 && g->block_count == 0 && ran > waits->spinner.exec_ns)
        waits->spinner = (struct spinner){g->name, count, g->id, g->creation_ns, ran};
}

/* Counts how long a goroutine that was created in the trace ran. */
static bool count_worker(struct waits *waits, const struct goroutine *g, int64_t ran, int64_t now)
{
    struct wait_group *group = group_get(waits, g->name);
    if (!group)
        return false;
    int64_t busy = ran;
    ns_add(&busy, g->sched_wait_ns);
    if (busy >= BUSY_LEAST_NS &&
        !idmap_put(&waits->busy, (uint64_t)g->id, (void *)(uintptr_t)(busy / 1000)))
        return false;
    group->workers++;
    group->last_end_ns = now;
    ns_add(&group->exec_ns, ran);
    longest_note(&group->busiest, ran, g->creation_ns, g->id);
    if (group->busiest.goroutine == g->id)
        group->busiest_end_ns = now;
    return true;
}

/* What it was doing is over. */
static bool forget(struct waits *waits, const struct goroutine *g)
{
    if (!blame_end(&waits->blame, g->id))
        return false;
    outside_forget(&waits->outside, g->id);
    (void)idmap_remove(&waits->connections.accepts, (uint64_t)g->id);
    (void)idmap_remove(&waits->connections.serves, (uint64_t)g->id);
    (void)idmap_remove(&waits->calls, (uint64_t)g->id);
    return true;
}

static bool goroutine_lost(void *part, struct goroutine *g, int64_t now)
{
    struct waits *waits = part;
    (void)now;
    waits->inferred = true;
    families_lost(&waits->families, g->id);
    return forget(waits, g);
}

static bool goroutine_ends(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct waits *waits = part;
    if (waits->analysis->counting && !count_worker(waits, g, goroutine_ran_ns(g, now), now))
        return false;
    if (end_ns != 0 && waits->is_go) /* if it has not ended yet, it waits for ever */
        families_end(&waits->families, g->id, now, FAMILY_STAYS);
    note_spinner(waits, g, goroutine_ran_ns(g, now));
    if (!forget(waits, g))
        return false;
    return waits->idle.first.count == 0 || !waits->analysis->counting || judge_idle(waits, g, now);
}

/* MARK: Transitions */

/* Returns the frame that called Go's or its own sleep. */
static trail_place sleeping_frame(const struct waits *waits, trail_stack stack)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    size_t own = row.own;
    while (own + 1 < row.count &&
           text_is(names_text(&waits->analysis->names, row.places[own].function), "time.Sleep"))
        own++;
    return row.count > 0 ? row.places[own] : (trail_place){0};
}

/* Whether SQLite waits for the program. All that it sleeps for is a database that is locked. */
static bool is_in_sqlite(const struct waits *waits, trail_stack stack)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    for (size_t i = 0; i < row.own && i < row.count; i++)
        if (text_begins(names_text(&waits->analysis->names, row.places[i].function), "sqlite3_"))
            return true;
    return false;
}

/* Whether it is a wait for what a server sends over a connection that the program made to it. */
static bool is_of_server(const struct waits *waits, const struct wait_facts *facts)
{
    trail_string object = names_text(&waits->analysis->names, facts->object);
    return (facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_POLL) &&
           text_begins(object, WIRE_WAIT_SERVER) && memchr(object.data, ',', object.size) == NULL;
}

/* A wait for `wait` begins that may be for something outside. Returns false on out of memory. */
static bool outside_enter(struct waits *waits, struct goroutine *g, trail_name wait,
                          const trail_event *event)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    enum wire_wait kind = facts                  ? facts->kind
                          : wait == waits->sleep ? WIRE_WAIT_SLEEP
                                                 : WIRE_WAIT_NONE;
    bool of_server = facts && is_of_server(waits, facts);
    if (of_server)
        kind = WIRE_WAIT_READ;
    if (!(wire_wait_kinds[kind].traits & WIRE_WAIT_OUTSIDE) && wait != waits->collection) {
        if (g->outside)
            outside_break(&waits->outside, g->id);
        return true;
    }
    g->outside = true;
    trail_stack stack = stacks_of(&waits->analysis->stacks, event->transition.stack);
    trail_place at = sleeping_frame(waits, stack);
    struct outside_wait begun = {
        .goroutine = g->id,
        .begin_ns = event->time_ns,
        .exec_ns = goroutine_ran_ns(g, event->time_ns),
        .kind = kind,
        .wait = wait,
        .function = at.function ? at.function : g->name,
        .place = at.function ? blamed_place(waits, &at) : g->name,
        .waiter = g->name,
        .in_sqlite = kind == WIRE_WAIT_SLEEP && is_in_sqlite(waits, stack),
        .of_server = of_server,
    };
    return !waits->analysis->stacks.failed && outside_begin(&waits->outside, &begun);
}

/* Whether the function is of a package of Go that calls the system for the program. */
static bool is_of_library(const struct waits *waits, trail_name function)
{
    static const char *const packages[] = {
        "os.",  "os/",  "syscall.", "internal/",         "io.",      "net.", "net/", "bufio.",
        "fmt.", "log.", "crypto/",  "golang.org/x/sys/", "database/"};
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (text_begins(names_text(&waits->analysis->names, function), packages[i]))
            return true;
    return false;
}

/* The frame of the program that calls such packages; of a stack with frames. */
static trail_place calling_frame(const struct waits *waits, const struct stack_row *stack)
{
    size_t own = stack->own;
    while (own + 1 < stack->count && is_of_library(waits, stack->places[own].function))
        own++;
    return stack->places[own];
}

/* MARK: Connections of Go programs */

/* What a stack does with a connection. */
enum connection {
    CONNECTION_NONE,
    CONNECTION_READ,
    CONNECTION_WRITE,
    CONNECTION_ACCEPT,
    CONNECTION_REQUEST /* waits for the answer that another goroutine reads */
};

static enum connection connection_of_frames(const struct waits *waits, trail_stack stack)
{
    static const struct {
        const char *function;
        enum connection what;
    } functions[] = {
        {"net.(*netFD).Read", CONNECTION_READ},
        {"net.(*netFD).Write", CONNECTION_WRITE},
        {"net.(*netFD).writeBuffers", CONNECTION_WRITE},
        {"net.(*netFD).accept", CONNECTION_ACCEPT},
        {"net/http.(*persistConn).roundTrip", CONNECTION_REQUEST},
    };
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    for (size_t n = 0; n < row.count; n++)
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            if (text_is(names_text(&waits->analysis->names, row.places[n].function),
                        functions[i].function))
                return functions[i].what;
    return CONNECTION_NONE;
}

static enum connection connection_of(struct waits *waits, trail_stack stack)
{
    uintptr_t known = (uintptr_t)idmap_find(&waits->connections.stacks, stack);
    if (known)
        return (enum connection)(known - 1);
    enum connection what = connection_of_frames(waits, stack);
    (void)idmap_put(&waits->connections.stacks, stack, (void *)((uintptr_t)what + 1));
    return what;
}

static bool has_entry(const struct idmap *map, int64_t goroutine)
{
    return idmap_find(map, (uint64_t)goroutine) != NULL;
}

static bool put_entry(struct idmap *map, int64_t goroutine)
{
    return idmap_put(map, (uint64_t)goroutine, (void *)1);
}

/*
 * Whether what the goroutine waits to read is an answer, which something in the program needs. A
 * server reads after it wrote, too, but has all the time until the next request comes: that is not
 * one of a goroutine that accepts connections, or that such a one created, but within a region.
 */
static bool is_answer(const struct waits *waits, const struct goroutine *g)
{
    const struct connections *connections = &waits->connections;
    bool known = g->id == 1 || has_entry(&waits->families.of_member, g->id);
    return g->region || (known && !has_entry(&connections->accepts, g->id) &&
                         !has_entry(&connections->serves, g->id));
}

/* A wait of Go begins, perhaps for an answer. Returns false on out of memory. */
static bool answer_enter(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    enum connection what = connection_of(waits, g->outer);
    bool asked = what == CONNECTION_REQUEST || (what == CONNECTION_READ && g->asked);
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    if (what == CONNECTION_ACCEPT && !put_entry(&waits->connections.accepts, g->id))
        return false;
    g->asked = false;
    if (!asked || !is_answer(waits, g)) {
        if (g->outside)
            outside_break(&waits->outside, g->id);
        return true;
    }
    trail_place own = calling_frame(waits, &stack);
    struct outside_wait begun = {
        .goroutine = g->id,
        .begin_ns = event->time_ns,
        .exec_ns = goroutine_ran_ns(g, event->time_ns),
        .kind = WIRE_WAIT_READ,
        .wait = waits->network,
        .function = own.function,
        .place = blamed_place(waits, &own),
    };
    g->outside = true;
    return outside_begin(&waits->outside, &begun);
}

/* An answer has come, of a server if `waker` is known. */
static void answer_leave(struct waits *waits, const struct goroutine *g,
                         const struct goroutine *waker, int64_t now)
{
    const struct outside_now *outside = objects_find(&waits->outside.now, (uint64_t)g->id);
    if (!outside || !outside->waits)
        return;
    const struct connections *connections = &waits->connections;
    struct outside_row *row = &waits->outside.rows[outside->row - 1];
    if (!row->of_server && outside->wait != waits->network)
        return;
    row->start = g->name;
    row->in_region |= g->region != NULL;
    int64_t ns = ns_between(outside->begin_ns, now);
    if (row->of_server) {
        ns_add(&row->answered_ns, waker ? ns : 0);
        blame_most_add(&row->answerer, waker ? waker->name : 0, ns);
        return;
    }
    if (connections->reply == 0 || connections->reply_ns < g->since_ns ||
        ns_between(connections->reply_ns, now) > REPLY_MOST_NS)
        return;
    ns_add(&row->answered_ns, ns);
    blame_most_add(&row->answerer, connections->reply, ns);
}

/* A system call of Go begins. Returns false on out of memory. */
static bool go_call_begins(struct waits *waits, struct goroutine *g, int64_t now)
{
    enum connection what = connection_of(waits, g->outer);
    if (what == CONNECTION_ACCEPT)
        return put_entry(&waits->connections.accepts, g->id);
    g->asked |= what == CONNECTION_WRITE;
    if (what == CONNECTION_WRITE && has_entry(&waits->connections.serves, g->id)) {
        struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
        trail_place own = calling_frame(waits, &stack);
        waits->connections.reply = blamed_place(waits, &own);
        waits->connections.reply_ns = now;
    }
    return true;
}

/* A system call begins; one that a log announced is a wait. Returns false on out of memory. */
static bool call_begins(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    const struct follow *follow = &waits->analysis->goroutines.follow;
    if (waits->is_go) {
        g->outer = stacks_of(&waits->analysis->stacks, event->transition.stack);
        return go_call_begins(waits, g, event->time_ns) && !waits->analysis->stacks.failed;
    }
    if (!follow->announced.heard || follow->announced.text == 0)
        return true;
    trail_name wait = follow_wait(follow, event);
    return outside_enter(waits, g, wait, event) &&
           idmap_put(&waits->calls, (uint64_t)g->id, (void *)(uintptr_t)wait);
}

/* A goroutine that waits for something outside at times goes on. Returns false on out of memory. */
static bool call_or_wait_ends(struct waits *waits, const struct goroutine *g,
                              const trail_event *event)
{
    trail_name call = 0;
    if (g->state != TRAIL_GO_WAITING && g->state != TRAIL_GO_SYSCALL)
        return true;
    if (g->state == TRAIL_GO_SYSCALL)
        call = (trail_name)(uintptr_t)idmap_remove(&waits->calls, (uint64_t)g->id);
    if (call && ns_between(g->since_ns, event->time_ns) >= BLAME_OTHERS_NS &&
        !blame(waits, g, NULL, 0, call, event))
        return false;
    if (!waits->analysis->counting)
        return true;
    const struct goroutine *waker =
        event->goroutine == g->id ? NULL
                                  : goroutines_find(&waits->analysis->goroutines, event->goroutine);
    answer_leave(waits, g, waker, event->time_ns);
    return outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, waker);
}

/* What a system call of Go is for, by the functions that it is called from. */
static enum wire_wait kind_of_call(const struct waits *waits, const struct stack_row *stack)
{
    static const struct {
        const char *part;
        enum wire_wait kind;
    } kinds[] = {
        {"os.(*Process)", WIRE_WAIT_CHILD},
        {"os.(*File)", WIRE_WAIT_FILE},
        {"os.", WIRE_WAIT_FILE},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t n = 0; n < stack->count; n++)
            if (text_begins(names_text(&waits->analysis->names, stack->places[n].function),
                            kinds[i].part))
                return kinds[i].kind;
    return WIRE_WAIT_KERNEL;
}

/* A system call of Go has ended that took long: it waited for something outside. */
static bool go_call_ends(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    enum wire_wait kind = kind_of_call(waits, &stack);
    const char *title = kind == WIRE_WAIT_KERNEL ? "system call" : wire_wait_kinds[kind].title;
    if (stack.count == 0)
        return true;
    trail_place own = calling_frame(waits, &stack);
    struct outside_wait call = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .exec_ns = g->exec_ns,
        .kind = kind,
        .wait = names_put(names, title, strlen(title)),
        .function = own.function,
        .place = blamed_place(waits, &own),
    };
    return outside_begin(&waits->outside, &call) &&
           outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, NULL);
}

/* A system call has ended. */
static __attribute__((noinline)) bool call_left(struct waits *waits, struct wait_group *group,
                                                const struct goroutine *g, const trail_event *event)
{
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    if (waits->is_go)
        return go_call_ends(waits, g, event);
    trail_name call = (trail_name)(uintptr_t)idmap_find(&waits->calls, (uint64_t)g->id);
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, call);
    if (facts && facts->kind == WIRE_WAIT_KERNEL) {
        group->unseen++;
        ns_add(&group->unseen_ns, ns);
    }
    return true;
}

/* The goroutine was ready for long: one that holds a lock then. */
static __attribute__((noinline)) bool note_ready(struct waits *waits, const struct goroutine *g,
                                                 int64_t now)
{
    return waits->activity->lock_waiters == 0 ||
           blame_ready(&waits->blame, g->id, g->since_ns, now, waits->ready);
}

/*
 * Whether the state begins or ends where events are lost: it has no length then, and is none of those
 * that are counted. One that begins there is followed at once by the event that needs it.
 */
static inline bool is_inferred(const struct waits *waits, const trail_event *event, int64_t ns)
{
    return __builtin_expect(waits->inferred, 0) &&
           ((event->flags & TRAIL_EVENT_INFERRED) || ns <= 1);
}

static bool count_left(struct waits *waits, struct wait_group *group, const struct goroutine *g,
                       const trail_event *event)
{
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    if (is_inferred(waits, event, ns))
        return true;
    if (g->state == TRAIL_GO_RUNNABLE && event->transition.to == TRAIL_GO_RUNNING) {
        longest_note(&group->row.ready_longest, ns, g->since_ns, g->id);
        if (__builtin_expect(ns >= BLAME_OTHERS_NS, 0) && !note_ready(waits, g, event->time_ns))
            return false;
        return trail_histogram_add(&group->row.ready, ns);
    }
    if (g->state == TRAIL_GO_WAITING) {
        trail_wait *wait = wait_get(&waits->analysis->names, group, g->reason);
        if (!wait)
            return false;
        longest_note(&wait->longest, ns, g->since_ns, g->id);
        return trail_histogram_add(&wait->spread, ns);
    }
    if (__builtin_expect(g->state == TRAIL_GO_RUNNING && ns >= HELD_LEAST_NS, 0) &&
        (event->transition.to != TRAIL_GO_RUNNABLE || ns >= HELD_PREEMPTED_NS) &&
        event->proc >= 0 && event->proc < ACTIVITY_PROCS) {
        struct activity *activity = waits->activity;
        if (ns_between(activity->queue_at[event->proc], activity->queue_ns) >= ns / 2) {
            group->held++;
            ns_add(&group->held_ns, ns);
            longest_note(&group->held_longest, ns, g->since_ns, g->id);
        }
    }
    if (g->state == TRAIL_GO_SYSCALL)
        return (waits->is_go && ns < BLAME_OTHERS_NS) || call_left(waits, group, g, event);
    if (event->transition.to == TRAIL_GO_RUNNABLE)
        group->yields +=
            names_of(&waits->analysis->names, event->transition.reason) == waits->yield;
    return true;
}

/* Whether waits of this name are tracked by place. */
static inline bool is_at_place(const struct waits *waits, trail_name wait)
{
    trail_name reason = wait_reason(&waits->analysis->names, wait);
    return reason != 0 && (reason == waits->sync || reason == waits->condition);
}

/* Whether a wait of Go for this can be for a timer, as of time.After or a Ticker. */
static inline bool may_be_timed(const struct waits *waits, trail_name reason)
{
    return waits->is_go && (reason == waits->receive || reason == waits->select);
}

/* Whether the time-out of a context ended the wait: a goroutine is created for that. */
static bool is_deadline(const struct waits *waits, const trail_event *event)
{
    return event->goroutine >= 0 &&
           text_begins(names_text(&waits->analysis->names, start_of(waits, event->goroutine)),
                       "context.WithDeadline");
}

/* Whether what the goroutine waits for is needed within a region, or to answer a request. */
static bool is_request(const struct waits *waits, const struct goroutine *g)
{
    return g->region || has_entry(&waits->connections.serves, g->id);
}

/*
 * Such a wait has ended. A timer did that if no goroutine did, or one of a context. Returns false on
 * out of memory.
 */
static bool timed_leave(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    if (connection_of(waits, g->outer) == CONNECTION_REQUEST)
        return true;
    bool deadline = is_deadline(waits, event);
    if ((event->goroutine >= 0 && !deadline) || event->transition.to != TRAIL_GO_RUNNABLE) {
        if (g->outside)
            outside_break(&waits->outside, g->id);
        return true;
    }
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    if (stack.count == 0)
        return true;
    g->outside = true;
    struct outside_wait timed = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .exec_ns = g->exec_ns,
        .kind = deadline ? WIRE_WAIT_NONE : WIRE_WAIT_SLEEP,
        .wait = g->reason,
        .function = stack.function,
        .place = waits_place(waits, g->outer),
        .deadline = deadline,
    };
    if (!waits->analysis->counting)
        return true;
    if (!outside_begin(&waits->outside, &timed))
        return false;
    const struct outside_now *now = objects_find(&waits->outside.now, (uint64_t)g->id);
    struct outside_row *row = now ? &waits->outside.rows[now->row - 1] : NULL;
    if (row && deadline) {
        row->start = g->name;
        row->in_region |= is_request(waits, g);
    }
    return outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, NULL);
}

/* A wait ends. Returns false on out of memory. */
static bool wait_leave(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    if (may_be_timed(waits, g->reason) && !timed_leave(waits, g, event))
        return false;
    if (waits->idle_now.count > 0)
        idle_leave(waits, g, event->time_ns);
    if (g->reason == 0 || is_at_place(waits, g->reason))
        return place_leave(waits, g, event);
    if (ns_between(g->since_ns, event->time_ns) < BLAME_OTHERS_NS)
        return g->reason != waits->send || count_served(waits, g, event);
    if (g->reason == waits->send && !count_late(waits, event->goroutine))
        return false;
    return blame(waits, g, NULL, 0, g->reason, event);
}

/* A wait begins. Returns false on out of memory. */
static bool wait_enter(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    trail_name reason = reason_of(waits, event);
    if (!place_enter(waits, g, event, reason))
        return false;
    if (waits->is_go)
        g->outer = stacks_of(&waits->analysis->stacks, event->transition.stack);
    if (__builtin_expect(waits->analysis->goroutines.follow.announced.heard, 0))
        return idle_enter(waits, g, event) &&
               outside_enter(waits, g, follow_wait(&waits->analysis->goroutines.follow, event),
                             event);
    if (waits->is_go &&
        (reason == waits->network ||
         (reason == waits->select && connection_of(waits, g->outer) == CONNECTION_REQUEST)))
        return answer_enter(waits, g, event);
    return (reason != waits->sleep && reason != waits->collection && !g->outside) ||
           may_be_timed(waits, reason) || outside_enter(waits, g, reason, event);
}

static __attribute__((noinline)) void count_created(struct waits *waits, struct wait_group *group,
                                                    const trail_event *event)
{
    if (group->creator == 0)
        group->creator = start_of(waits, event->goroutine);
    if (group->row.created++ == 0)
        group->created_at = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack));
    if (group->row.created > group->row.ended + group->most_alive)
        group->most_alive = group->row.created - group->row.ended;
}

/* Adds a goroutine to those that the same one created there. Returns false on out of memory. */
static bool join_family(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct family of = {
        .place = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack)),
        .start = g->name,
        .created_ns = event->time_ns,
    };
    if (has_entry(&waits->connections.accepts, event->goroutine) &&
        !put_entry(&waits->connections.serves, g->id))
        return false;
    return event->goroutine < 0 || of.place == 0 ||
           families_add(&waits->families, event->goroutine, g->id, &of);
}

/* It was created, was found, or is in a state again. Returns false on out of memory. */
static __attribute__((noinline)) bool take_first(struct waits *waits, struct wait_group *group,
                                                 const struct goroutine *g,
                                                 const trail_event *event)
{
    bool counts = waits->analysis->counting;
    if (counts)
        waits->inferred |= (event->flags & TRAIL_EVENT_INFERRED) != 0;
    if (g->lost && g->state == TRAIL_GO_UNDETERMINED) {
        /* it has not ended where it was lost */
        group->row.ended -= counts && group->row.ended > 0;
        return true;
    }
    if (event->transition.from != TRAIL_GO_NOT_EXIST || event->flags & TRAIL_EVENT_IMPLIED)
        return true;
    if (counts)
        count_created(waits, group, event);
    return join_family(waits, g, event);
}

static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct waits *waits = part;
    unsigned from = g->state, to = event->transition.to;
    struct wait_group *group = group_get(waits, g->name);
    if (!group)
        return false;
    if (waits->watched > 0 && event->goroutine != g->id &&
        (from == TRAIL_GO_WAITING || from <= TRAIL_GO_NOT_EXIST))
        watch_waker(waits, g, event->goroutine);
    if (event->transition.from <= TRAIL_GO_NOT_EXIST && !take_first(waits, group, g, event))
        return false;
    if (waits->analysis->counting) {
        group->row.ended += to <= TRAIL_GO_NOT_EXIST;
        if (from > TRAIL_GO_NOT_EXIST && !count_left(waits, group, g, event))
            return false;
    }
    if (g->outside && !call_or_wait_ends(waits, g, event))
        return false;
    if (from == TRAIL_GO_WAITING)
        return wait_leave(waits, g, event) &&
               (to != TRAIL_GO_WAITING || wait_enter(waits, g, event));
    if (to == TRAIL_GO_WAITING)
        return wait_enter(waits, g, event);
    if (to == TRAIL_GO_SYSCALL)
        return call_begins(waits, g, event);
    if (to <= TRAIL_GO_NOT_EXIST) {
        watch_end(waits, g->id);
        families_end(&waits->families, g->id, event->time_ns, FAMILY_ENDS);
    }
    return true;
}

/* A log of calls that have no events of their own. Returns false on out of memory. */
static bool take_count(struct waits *waits, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    struct wait_count counted =
        wait_text_of_count(trail_reader_string(names->reader, event->log.message));
    const struct goroutine *g = goroutines_find(&waits->analysis->goroutines, event->goroutine);
    struct wait_group *group = g && counted.count > 0 ? group_get(waits, g->name) : NULL;
    if (!group)
        return g == NULL || counted.count == 0;
    if (counted.kind == WIRE_WAIT_NONE) {
        group->yields += counted.count;
        ns_add(&group->yield_ns, counted.ns);
        group->yield_at = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack));
    } else {
        const char *title = wire_wait_kinds[counted.kind].title;
        group->brief += counted.count;
        ns_add(&group->brief_ns, counted.ns);
        group->brief_for = names_put(names, title, strlen(title));
    }
    return !names->failed && !waits->analysis->stacks.failed;
}

/* The goroutine's last wait timed out. */
static bool take_log(void *part, const trail_event *event)
{
    struct waits *waits = part;
    const struct names *names = &waits->analysis->names;
    if (waits->analysis->counting && event->goroutine >= 0 &&
        text_is(trail_reader_string(names->reader, event->log.category), WIRE_COUNTED))
        return take_count(waits, event);
    const struct goroutine *g =
        waits->analysis->counting ? goroutine_timed_out(waits->analysis, event) : NULL;
    if (!g || !wait_facts_of(names, g->reason))
        return true;
    struct wait_group *group = group_get(waits, g->name);
    trail_wait *wait = group ? wait_get(names, group, g->reason) : NULL;
    if (wait && wait->timed_out < wait->spread.count)
        wait->timed_out++;
    return wait != NULL;
}

/* MARK: Window and end */

static void trace_begins(void *part, int64_t origin_ns)
{
    struct waits *waits = part;
    (void)origin_ns;
    waits->is_go = trail_reader_maker(waits->analysis->reader)->made_by == TRAIL_MADE_BY_GO;
}

static bool window_begins(void *part, int64_t ns)
{
    struct waits *waits = part;
    (void)ns;
    if (!blame_clear(&waits->blame))
        return false;
    outside_clear(&waits->outside);
    idmap_clear(&waits->served);
    waits->spinner = (struct spinner){0};
    idle_clear(&waits->idle);
    idmap_clear(&waits->idle_now);
    for (size_t i = 0; i < waits->place_count; i++) {
        struct place *place = waits->all[i];
        *place = (struct place){.name = place->name,
                                .kind = place->kind,
                                .lock = place->lock,
                                .locks_differ = place->locks_differ,
                                .waiters = place->waiters,
                                .most_waiters = place->waiters,
                                .left_ns = place->left_ns,
                                .serial_at = waits->activity->serial_ns};
    }
    return true;
}

static void look_at_blocked(const struct waits *waits, const struct goroutine *g,
                            struct wait_group *group, int64_t now)
{
    int64_t begin = waits->analysis->span.begin_ns, length = ns_between(begin, now);
    if (g->state != TRAIL_GO_WAITING || g->creation_ns <= begin ||
        ns_between(g->since_ns, now) < length / 10)
        return;
    group->stuck++;
    group->stuck_sends += g->reason == waits->send;
    group->stuck_early += ns_between(begin, g->creation_ns) < length / 2;
    if (group->stuck == 1 || g->since_ns < group->stuck_since_ns) {
        group->stuck_since_ns = g->since_ns;
        group->stuck_goroutine = g->id;
    }
}

static int by_ready(const void *a, const void *b)
{
    const struct wait_group *x = *(struct wait_group *const *)a,
                            *y = *(struct wait_group *const *)b;
    if (x->row.ready.sum_ns != y->row.ready.sum_ns)
        return x->row.ready.sum_ns < y->row.ready.sum_ns ? 1 : -1;
    return x->row.name < y->row.name ? -1 : x->row.name > y->row.name;
}

/* Also finds goroutines that were blocked for long. */
static bool window_ends(void *part, int64_t ns)
{
    struct waits *waits = part;
    const struct idmap *alive = &waits->analysis->goroutines.follow.alive;
    if (!waits->analysis->started)
        return true;
    for (size_t i = 0; i < waits->place_count; i++)
        if (waits->all[i]->waiters > 0)
            ns_add(&waits->all[i]->serial_ns,
                   ns_between(waits->all[i]->serial_at, waits->activity->serial_ns));
    struct idmap_slot *by_id = idmap_sorted(alive);
    bool good = by_id != NULL;
    for (size_t i = 0; good && i < alive->count; i++) {
        const struct goroutine *g = by_id[i].value;
        struct wait_group *group = group_get(waits, g->name);
        good = group != NULL;
        if (good)
            look_at_blocked(waits, g, group, ns);
    }
    free(by_id);
    if (!good)
        return false;
    if (waits->count > 0)
        qsort(waits->items, waits->count, sizeof(void *), by_ready);
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis, void *const *needed)
{
    static const char network[] = "network", sync[] = "sync", condition[] = "sync.(*Cond).Wait",
                      sleep[] = "sleep", send[] = "chan send", receive[] = "chan receive",
                      select[] = "select", yield[] = "runtime.Gosched", ready[] = "ready",
                      collection[] = "wait until GC ends";
    struct waits *waits = part;
    waits->analysis = analysis;
    waits->activity = needed[0];
    blame_init(&waits->blame, &analysis->aside);
    outside_init(&waits->outside);
    families_init(&waits->families);
    waits->stragglers = OBJECTS_OF(struct straggler);
    waits->parked = OBJECTS_OF(struct parked);
    waits->network = names_put(&analysis->names, network, strlen(network));
    waits->sync = names_put(&analysis->names, sync, strlen(sync));
    waits->condition = names_put(&analysis->names, condition, strlen(condition));
    waits->send = names_put(&analysis->names, send, strlen(send));
    waits->receive = names_put(&analysis->names, receive, strlen(receive));
    waits->select = names_put(&analysis->names, select, strlen(select));
    waits->sleep = names_put(&analysis->names, sleep, strlen(sleep));
    waits->yield = names_put(&analysis->names, yield, strlen(yield));
    waits->ready = names_put(&analysis->names, ready, strlen(ready));
    waits->collection = names_put(&analysis->names, collection, strlen(collection));
    return !analysis->names.failed;
}

static void drop(void *part)
{
    struct waits *waits = part;
    for (size_t i = 0; i < waits->count; i++) {
        struct wait_group *group = waits->items[i];
        for (size_t n = 0; n < group->row.wait_count; n++)
            trail_histogram_free(&group->waits[n].spread);
        trail_histogram_free(&group->row.ready);
        free(group->waits);
        free(group);
    }
    for (size_t i = 0; i < waits->place_count; i++)
        free(waits->all[i]);
    free((void *)waits->items);
    free((void *)waits->by_name);
    free((void *)waits->all);
    idle_free(&waits->idle);
    idmap_free(&waits->idle_now);
    idmap_free(&waits->places);
    idmap_free(&waits->by_stack);
    blame_free(&waits->blame);
    outside_free(&waits->outside);
    families_free(&waits->families);
    objects_free(&waits->stragglers);
    idmap_free(&waits->connections.stacks);
    idmap_free(&waits->connections.accepts);
    idmap_free(&waits->connections.serves);
    idmap_free(&waits->blamed_places);
    idmap_free(&waits->calls);
    idmap_free(&waits->served);
    idmap_free(&waits->busy);
    objects_free(&waits->parked);
}

const struct analysis_part waits_part = {
    .what = TRAIL_ANALYZE_ACTIVITY,
    .size = sizeof(struct waits),
    .uses_goroutines = true,
    .uses_stacks = true,
    .needs = {&activity_part},
    .init = init,
    .free = drop,
    .trace_begins = trace_begins,
    .window_begins = window_begins,
    .window_ends = window_ends,
    .kinds = PART_KIND(LOG),
    .event = take_log,
    .leaves = take_transition,
    .ends = goroutine_ends,
    .lost = goroutine_lost,
};

size_t trail_analysis_waits(const trail_analysis *analysis, const trail_wait_group *const **rows)
{
    _Static_assert(offsetof(struct wait_group, row) == 0, "a group begins with its row");
    const struct waits *waits = analysis_object(analysis, &waits_part);
    *rows = waits ? (const trail_wait_group *const *)waits->items : NULL;
    return waits ? waits->count : 0;
}
