#include "diagnose/waits.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/text.h"
#include "words/function_name.h"
#include "words/place.h"

/* Go preempts a goroutine after 10 ms; one that keeps a P for longer than this while others are
 * ready is counted. */
#define HELD_LEAST_NS 50000000

/* The same for one that is preempted in the end, perhaps so late because other programs had the
 * CPU. */
#define HELD_PREEMPTED_NS 500000000

/* MARK: Groups */

struct wait_group *waits_make_group(struct waits *waits, trail_name name)
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

/*
 * The slow path of waits_row: there is no row with its own name, but one of its kind, or none yet.
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

trail_wait *waits_row(const struct names *names, struct wait_group *group, trail_name wait)
{
    for (size_t i = 0; i < group->row.wait_count; i++)
        if (group->waits[i].reason == wait)
            return &group->waits[i];
    return wait_make(names, group, wait);
}

/* MARK: What held it up */

trail_name waits_name_frame(struct waits *waits, const trail_place *frame)
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
    trail_name name = names_of_text(names, text);
    (void)idmap_put(&waits->blamed_places, key, (void *)((uintptr_t)name + 1));
    return name;
}

/* Returns the frame that ended a wait. A futex is called by the program's own lock: its caller. */
static trail_place blamed_frame(struct waits *waits, trail_stack stack,
                                const struct wait_facts *facts)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    bool caller = facts && facts->kind == WIRE_WAIT_FUTEX && row.own + 1 < row.count &&
                  stacks_rank(&waits->analysis->stacks, &row.places[row.own + 1]) >=
                      stacks_rank(&waits->analysis->stacks, &row.places[row.own]);
    return row.count > 0 ? row.places[row.own + caller] : (trail_place){0};
}

static trail_place calling_frame(const struct waits *waits, trail_stack stack)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    return row.count > 0 ? waits_calling_frame(waits, &row) : (trail_place){0};
}

/* The place that called a package of Go's, which released a lock at `by`; 0: not such a package. */
static trail_name caller_of(struct waits *waits, trail_stack stack, const struct place *place,
                            const trail_place *by)
{
    bool locks = waits->is_go && place && place->kind == PLACE_LOCK;
    trail_place caller = locks ? calling_frame(waits, stack) : (trail_place){0};
    bool differs = caller.function && caller.function != by->function;
    return differs ? waits_name_frame(waits, &caller) : 0;
}

trail_name waits_place(struct waits *waits, trail_stack stack)
{
    trail_place at = blamed_frame(waits, stack, NULL);
    return at.function ? waits_name_frame(waits, &at) : 0;
}

trail_name waits_calling_place(struct waits *waits, trail_stack stack)
{
    trail_place at = calling_frame(waits, stack);
    return at.function ? waits_name_frame(waits, &at) : 0;
}

static uint64_t lock_key(enum wire_wait kind, trail_name object)
{
    return (uint64_t)object << 32 | (uint64_t)kind;
}

static uint64_t hold_key(trail_name object, trail_name function)
{
    return (uint64_t)object << 32 | function;
}

/*
 * Returns the frame that took a lock. Functions that only lock for others, as their names
 * show, are skipped; if there are no others, the frame has the goroutine's start function.
 */
static trail_place taking_frame(struct waits *waits, int64_t holder, trail_stack stack)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    const struct names *names = &waits->analysis->names;
    trail_name start = waits_start(waits, holder);
    for (size_t i = row.own; i < row.count; i++)
        if (stacks_rank(&waits->analysis->stacks, &row.places[i]) >=
                stacks_rank(&waits->analysis->stacks, &row.places[row.own]) &&
            !function_name_is_of_lock(names_text(names, row.places[i].function)))
            return row.places[i];
    if (row.count == 0 || start == 0)
        return blamed_frame(waits, stack, NULL);
    return (trail_place){.function = start};
}

static bool take_hold(struct waits *waits, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    trail_string message = trail_reader_string(names->reader, event->log.message);
    struct wait_text text = wait_text_of_hold(message);
    if (text.kind == WIRE_WAIT_NONE)
        return true;
    trail_stack stack = stacks_of(&waits->analysis->stacks, event->stack);
    trail_name object = names_put(names, text.object.data, text.object.size);
    int64_t holder = wait_text_holder(text.by, event->goroutine);
    trail_place at = taking_frame(waits, holder, stack);
    struct hold_sum *sum = objects_get(&waits->hold_sums, hold_key(object, at.function));
    struct last_hold *last = objects_get(&waits->last_holds, (uint64_t)event->goroutine);
    if (!sum || !last)
        return false;
    sum->kind = sum->ns == 0 || sum->kind == text.kind ? text.kind : WIRE_WAIT_NONE;
    ns_add(&sum->ns, text.held_ns);
    *last = (struct last_hold){text.kind, object, at, holder};
    if (names->failed || waits->analysis->stacks.failed)
        return false;
    /* Readers share an rwlock: a release by one does not mean that it alone kept others out. */
    if (!waits->given_up || text_begins(message, "rwlock to read"))
        return true;
    struct held held = {
        .goroutine = holder,
        .start = waits_start(waits, holder),
        .function = at.function,
        .place = waits_name_frame(waits, &at),
        .taken_ns = event->time_ns,
        .all_ns = sum->ns,
    };
    ns_add(&held.taken_ns, -text.held_ns);
    return waits_blame_given_up(waits, lock_key(text.kind, object), &held);
}

/* Returns the hold of the lock that the goroutine has logged last; NULL: it was another lock's. */
static const struct last_hold *hold_of(const struct waits *waits, const struct wait_facts *facts,
                                       int64_t goroutine)
{
    const struct last_hold *last = objects_find(&waits->last_holds, (uint64_t)goroutine);
    return facts && last && last->kind == facts->kind && last->object == facts->object ? last
                                                                                       : NULL;
}

/*
 * Returns the program's frame that called a function of its own to release a lock taken by
 * another function; no frame if there is none.
 */
static trail_place unlocking_frame(struct waits *waits, trail_stack stack,
                                   const struct last_hold *hold)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    for (size_t i = row.own; i < row.count; i++) {
        const trail_place *place = &row.places[i];
        trail_string name = names_text(&waits->analysis->names, place->function);
        bool is_own = stacks_rank(&waits->analysis->stacks, place) == FRAME_OWN;
        if (place->function == hold->at.function || (is_own && !function_name_is_of_lock(name)))
            return i > row.own ? *place : (trail_place){0};
    }
    return (trail_place){0};
}

/*
 * Returns the frame that ended a wait; where the lock was taken, if the release shows no function
 * of the program: with optimisation, the release may be a tail call of several functions, which
 * leave no frames.
 */
static trail_place holder_frame(struct waits *waits, trail_stack stack,
                                const struct wait_facts *facts, const struct last_hold *hold)
{
    trail_place by = blamed_frame(waits, stack, facts);
    bool is_known = hold && hold->at.function != 0;
    bool is_own = is_known && stacks_rank(&waits->analysis->stacks, &by) == FRAME_OWN;
    trail_place in = is_own && is_known ? unlocking_frame(waits, stack, hold) : (trail_place){0};
    return in.function ? in : is_known && !is_own ? hold->at : by;
}

/* The stack of a wait at a place whose name is recorded; else 0. */
static trail_stack parked_at(const struct waits *waits, const struct goroutine *g)
{
    const struct parked *parked = objects_find(&waits->parked, (uint64_t)g->id);
    return parked ? parked->stack : 0;
}

/*
 * Returns `by`, the frame that released a file lock; if the same call of fcntl() is where the other
 * one waited, the frame that called its function. (A mutex may be waited for and released in one
 * wait for a condition variable.)
 */
static trail_place caller_if_same(const struct waits *waits, trail_stack stack, trail_stack waited,
                                  trail_place by)
{
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack),
                     other = stacks_get(&waits->analysis->stacks, waited);
    bool same = row.own + 1 < row.count && other.count > 0 && by.pc != 0 &&
                row.places[row.own].pc == by.pc && other.places[other.own].pc == by.pc;
    return same ? row.places[row.own + 1] : by;
}

/*
 * Returns `by`, the frame that released a lock. If the holder's function released it by a tail
 * call, its own frame is missing and `by` is its caller; then returns where the lock was taken.
 * That is so if the waiter entered that function by the same call.
 */
static trail_place taker_if_last(const struct waits *waits, trail_stack waited,
                                 const struct last_hold *hold, trail_place by)
{
    struct stack_row other = stacks_get(&waits->analysis->stacks, waited);
    bool same = hold && hold->at.function != 0 && by.pc != 0 && other.own + 1 < other.count &&
                other.places[other.own].function == hold->at.function &&
                other.places[other.own + 1].pc == by.pc;
    return same ? hold->at : by;
}

/* Returns for how long the function has held the lock in all, if it has logged the hold that ended
 * the wait; 0: not known. */
static int64_t held_ns(const struct waits *waits, const struct last_hold *hold, trail_name function)
{
    const struct hold_sum *sum =
        hold ? objects_find(&waits->hold_sums, hold_key(hold->object, function)) : NULL;
    bool its = sum && hold->at.function == function && sum->kind == hold->kind;
    return its ? sum->ns : 0;
}

/* MARK: Owners */

/* The goroutine holds a lock in the wait that follows. */
static bool take_owner(struct waits *waits, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    struct wait_text text =
        wait_text_of_wait(trail_reader_string(names->reader, event->log.message));
    if (!(wire_wait_kinds[text.kind].traits & WIRE_WAIT_LOCK) || text.object.size == 0)
        return true;
    uint64_t *key = objects_get(&waits->owners, (uint64_t)event->goroutine);
    if (key)
        *key = lock_key(text.kind, names_put(names, text.object.data, text.object.size));
    return key && !names->failed;
}

bool waits_leave_owned(struct waits *waits, const struct goroutine *g, int64_t now)
{
    const struct outside_now *wait = objects_find(&waits->outside.now, (uint64_t)g->id);
    const uint64_t *key = objects_find(&waits->owners, (uint64_t)g->id);
    if (!key || !wait || wait->row == 0 || wait->begin_ns != g->since_ns)
        return true;
    const struct helper *helper = objects_find(&waits->helpers, wait->place);
    struct owned *owned = objects_get(&waits->owned, *key);
    objects_drop(&waits->owners, (uint64_t)g->id);
    if (owned)
        *owned = (struct owned){g->id,
                                g->since_ns,
                                now,
                                names_kind(&waits->analysis->names, g->name),
                                waits->outside.rows[wait->row - 1].function,
                                helper ? helper->place : wait->place};
    return owned != NULL;
}

/* Returns the owner that waited itself for most of a wait for the lock; NULL: not known. */
static const struct owned *owner_in(const struct waits *waits, const struct wait_facts *facts,
                                    int64_t begin_ns, int64_t end_ns)
{
    const struct owned *owned =
        facts ? objects_find(&waits->owned, lock_key(facts->kind, facts->object)) : NULL;
    if (!owned)
        return NULL;
    int64_t begin = owned->begin_ns > begin_ns ? owned->begin_ns : begin_ns,
            end = owned->end_ns < end_ns ? owned->end_ns : end_ns;
    return begin < end && ns_between(begin, end) > ns_between(begin_ns, end_ns) / 2 ? owned : NULL;
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

trail_name waits_start(const struct waits *waits, int64_t id)
{
    const struct goroutine *g = goroutines_find(&waits->analysis->goroutines, id);
    return g ? names_kind(&waits->analysis->names, g->name) : 0;
}

bool waits_hands_over(const struct waits *waits, trail_name wait)
{
    const struct names *names = &waits->analysis->names;
    const struct wait_facts *facts = wait_facts_of(names, wait);
    trail_string text = names_text(names, wait);
    if (facts)
        return facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE ||
               facts->kind == WIRE_WAIT_FUTEX || facts->kind == WIRE_WAIT_ATOMIC ||
               facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_RECEIVE;
    return wait == waits->condition || text_begins(text, "chan ") || text_begins(text, "select");
}

bool waits_for_result(const struct waits *waits, trail_name wait)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    return facts && facts->kind == WIRE_WAIT_FUTURE;
}

/* The place of a wait for something outside that has just ended; 0: it is none. */
static trail_name outside_at(const struct waits *waits, const struct goroutine *g)
{
    const struct outside_now *now =
        g->outside ? objects_find(&waits->outside.now, (uint64_t)g->id) : NULL;
    return now && now->row != 0 && now->begin_ns == g->since_ns ? now->place : 0;
}

/* Whether the wait is for an initialisation that runs once, perhaps of a static variable in C++. */
static bool is_once(const struct waits *waits, const struct wait_facts *facts,
                    const struct place *place)
{
    return facts ? facts->kind == WIRE_WAIT_ONCE ||
                       text_begins(names_text(&waits->analysis->names, facts->object),
                                   "guard variable for ")
                 : place && place->kind == PLACE_ONCE;
}

/* Whether the lock was released for another goroutine that had it, and is not the waiting one. */
static bool is_released_for_holder(const struct last_hold *hold, int64_t releaser, int64_t waiter)
{
    return hold && hold->by != releaser && hold->by != waiter;
}

bool waits_blame(struct waits *waits, const struct goroutine *g, const struct place *place,
                 int64_t serial_at, trail_name wait, const trail_event *event)
{
    bool woken = event->transition.to == TRAIL_GO_RUNNABLE && event->goroutine != g->id &&
                 event->goroutine >= 0;
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    if (woken && waits->outside.now.map.count > 0)
        outside_woke(&waits->outside, event->goroutine);
    trail_stack stack = woken ? stacks_of(&waits->analysis->stacks, event->stack) : 0;
    bool pool = waits_is_pool(waits, wait);
    const struct last_hold *hold = woken ? hold_of(waits, facts, event->goroutine) : NULL;
    trail_place by = pool ? calling_frame(waits, stack) : holder_frame(waits, stack, facts, hold);
    trail_place at = pool ? calling_frame(waits, g->outer) : (trail_place){0};
    /* A goroutine that had the lock itself waits for a signal, whatever that is made with. */
    bool is_lock = place && place->kind == PLACE_LOCK && !is_once(waits, facts, place) &&
                   !(hold && hold->by == g->id);
    int64_t holder = woken ? event->goroutine : TRAIL_NONE;
    if (is_released_for_holder(hold, holder, g->id)) {
        holder = hold->by;
        by = hold->at;
    } else if (is_lock)
        by = facts && facts->kind == WIRE_WAIT_FILE_LOCK
                 ? caller_if_same(waits, stack, parked_at(waits, g), by)
                 : taker_if_last(waits, parked_at(waits, g), hold, by);
    struct blame_wait ended = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .end_ns = event->time_ns,
        .begin_serial = serial_at,
        .end_serial = waits->activity->serial_ns,
        .wait = waits_blamed(waits, wait),
        .at = place         ? place->name
              : at.function ? waits_name_frame(waits, &at)
                            : names_kind(&waits->analysis->names, g->name),
        .waits_in = waits->is_go && !place && !pool ? g->outer : 0,
        .outside_at = outside_at(waits, g),
        .named = facts && facts->object != 0,
        .lock = is_lock,
        .room = facts ? facts->kind == WIRE_WAIT_SEND : wait == waits->send || pool,
        .may_go_on =
            facts && (facts->kind == WIRE_WAIT_SEMAPHORE || facts->kind == WIRE_WAIT_READ ||
                      facts->kind == WIRE_WAIT_INTERPRETER),
        .exec_ns = goroutine_ran_ns(g, event->time_ns),
        .once = is_once(waits, facts, place),
        .held_ns = held_ns(waits, hold, by.function),
        .hands_over = !is_lock && (waits_hands_over(waits, wait) || waits_for_result(waits, wait)),
        .waker = holder,
        .own_start = names_kind(&waits->analysis->names, g->name),
        .start = woken ? waits_start(waits, holder) : 0,
        .function = by.function,
        .place = waits_name_frame(waits, &by),
        .caller = caller_of(waits, stack, place, &by),
    };
    ended.back = waits->is_go && woken && ended.start == ended.own_start &&
                 (wait == waits->receive || wait == waits->select);
    const struct owned *owner = woken ? NULL : owner_in(waits, facts, g->since_ns, event->time_ns);
    if (owner) {
        ended.waker = owner->goroutine;
        ended.start = owner->start;
        ended.function = owner->function;
        ended.place = owner->place;
    }
    bool given_up = ended.waker == TRAIL_NONE && ended.lock && ended.named;
    if (given_up && !waits_give_up(waits, lock_key(facts->kind, facts->object), &ended))
        return false;
    return !waits->analysis->stacks.failed && blame_add(&waits->blame, &ended);
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
    objects_drop(&waits->condition_waits, (uint64_t)g->id);
    objects_drop(&waits->last_holds, (uint64_t)g->id);
    objects_drop(&waits->owners, (uint64_t)g->id);
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
    if (waits->analysis->counting && !waits_count_worker(waits, g, goroutine_ran_ns(g, now), now))
        return false;
    if (end_ns != 0 && waits->is_go) /* if it has not ended yet, it waits forever */
        families_end(&waits->families, g->id, now, FAMILY_STAYS);
    waits_note_spinner(waits, g, goroutine_ran_ns(g, now));
    if (!forget(waits, g))
        return false;
    return waits->idle.first.count == 0 || !waits->analysis->counting ||
           waits_judge_idle(waits, g, now);
}

/* MARK: Transitions */

/* A system call has ended. */
static __attribute__((noinline)) bool call_left(struct waits *waits, struct wait_group *group,
                                                const struct goroutine *g, const trail_event *event)
{
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    if (waits->is_go)
        return waits_go_call_ends(waits, g, event);
    trail_name call = (trail_name)(uintptr_t)idmap_find(&waits->calls, (uint64_t)g->id);
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, call);
    if (facts && facts->kind == WIRE_WAIT_KERNEL) {
        group->unseen++;
        ns_add(&group->unseen_ns, ns);
    }
    return true;
}

/* The goroutine was ready for long, which matters if it holds a lock that others wait for. */
static __attribute__((noinline)) bool note_ready(struct waits *waits, const struct goroutine *g,
                                                 int64_t now)
{
    return waits->activity->lock_waiters == 0 ||
           blame_ready(&waits->blame, g->id, g->since_ns, now, waits->ready);
}

/*
 * Whether the state begins or ends where events are lost: its length is then unknown, and it is not
 * counted. One that begins there is followed at once by the event that needs it.
 */
static inline bool is_inferred(const struct waits *waits, const trail_event *event, int64_t ns)
{
    return __builtin_expect(waits->inferred, 0) &&
           ((event->flags & TRAIL_EVENT_INFERRED) || ns <= 1);
}

/* A goroutine of Go that runs for as long keeps timers waiting. */
#define KEEPS_TIMERS_NS 5000000

static __attribute__((noinline)) void note_preempted(struct waits *waits, const struct goroutine *g,
                                                     const trail_event *event, int64_t ns)
{
    if (waits->is_go && event->proc >= 0)
        waits->preempted[event->proc % PREEMPTED_PROCS] = (struct preempted){
            event->proc, event->time_ns, ns, g->id, names_kind(&waits->analysis->names, g->name)};
}

static bool count_left(struct waits *waits, struct wait_group *group, const struct goroutine *g,
                       const trail_event *event)
{
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    if (is_inferred(waits, event, ns))
        return true;
    if (__builtin_expect(ns >= KEEPS_TIMERS_NS, 0) && g->state == TRAIL_GO_RUNNING &&
        event->transition.to == TRAIL_GO_RUNNABLE)
        note_preempted(waits, g, event, ns);
    if (g->state == TRAIL_GO_RUNNABLE && event->transition.to == TRAIL_GO_RUNNING) {
        longest_note(&group->row.ready_longest, ns, g->since_ns, g->id);
        if (__builtin_expect(ns >= BLAME_OTHERS_NS, 0) && !note_ready(waits, g, event->time_ns))
            return false;
        return trail_histogram_add(&group->row.ready, ns);
    }
    if (g->state == TRAIL_GO_WAITING) {
        trail_wait *wait = waits_row(&waits->analysis->names, group, g->reason);
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

/* A wait ends. Returns false if out of memory. */
static bool wait_leave(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    if (may_be_timed(waits, g->reason) && !waits_leave_timed(waits, g, event))
        return false;
    if (waits->idle_now.count > 0)
        waits_leave_idle(waits, g, event->time_ns);
    if (g->reason == 0 || is_at_place(waits, g->reason))
        return waits_leave_place(waits, g, event);
    if (ns_between(g->since_ns, event->time_ns) < BLAME_OTHERS_NS)
        return g->reason != waits->send || waits_count_served(waits, g, event);
    if (g->reason == waits->send && !waits_count_late(waits, event->goroutine))
        return false;
    trail_name pool = may_be_timed(waits, g->reason) ? waits_pool(waits, g->outer) : 0;
    if (waits->is_go && g->reason == waits->receive && waits->analysis->counting)
        waits_received(waits, g, event);
    return waits_blame(waits, g, NULL, 0, pool ? pool : g->reason, event);
}

/*
 * A goroutine of Go does nothing any more. That is on purpose in an empty select, and often where
 * it receives a single value, as from the Done channel of a context that is never cancelled.
 */
static void note_forever(struct waits *waits, const struct goroutine *g, int64_t now)
{
    struct at_nil_channel *at = &waits->at_nil_channel;
    const struct names *names = &waits->analysis->names;
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    for (size_t i = 0; i < stack.own; i++) {
        trail_string function = names_text(names, stack.places[i].function);
        bool sends = text_is(function, "runtime.chansend1");
        if (!sends && !text_is(function, "runtime.chanrecv2"))
            continue;
        if (at->count++ == 0) {
            at->goroutine = g->id;
            at->begin_ns = now;
            at->name = g->name;
            at->place = waits_place(waits, g->outer);
            at->sends = sends;
        }
        return;
    }
}

/* A wait begins. Returns false if out of memory. */
static bool wait_enter(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    trail_name reason = waits_reason(waits, event);
    if (!waits_enter_place(waits, g, event, reason))
        return false;
    if (waits->is_go)
        g->outer = stacks_of(&waits->analysis->stacks, event->transition.stack);
    if (__builtin_expect(waits->analysis->goroutines.follow.announced.heard, 0))
        return waits_enter_idle(waits, g, event) &&
               waits_enter_outside(waits, g,
                                   follow_wait(&waits->analysis->goroutines.follow, event), event);
    if (reason == waits->analysis->goroutines.follow.forever)
        note_forever(waits, g, event->time_ns);
    if (waits->is_go &&
        (reason == waits->network || (reason == waits->select && waits_asks(waits, g->outer))))
        return waits_enter_answer(waits, g, event);
    return (reason != waits->sleep && reason != waits->collection && !g->outside) ||
           may_be_timed(waits, reason) || waits_enter_outside(waits, g, reason, event);
}

static __attribute__((noinline)) void count_created(struct waits *waits, struct wait_group *group,
                                                    const trail_event *event)
{
    if (waits->outside.now.map.count > 0)
        outside_created(&waits->outside, event->goroutine);
    if (group->creator == 0)
        group->creator = waits_start(waits, event->goroutine);
    if (group->row.created++ == 0)
        group->created_at = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack));
    if (group->row.created > group->row.ended + group->most_alive)
        group->most_alive = group->row.created - group->row.ended;
}

/* Adds a goroutine to those that the same one created there. Returns false if out of memory. */
static bool join_family(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct family of = {
        .place = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack)),
        .start = names_kind(&waits->analysis->names, g->name),
        .created_ns = event->time_ns,
    };
    if (!waits_serves(waits, event->goroutine, g->id))
        return false;
    return event->goroutine < 0 || of.place == 0 ||
           families_add(&waits->families, event->goroutine, g->id, &of);
}

/* It was created, was found, or is in a state again. Returns false if out of memory. */
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
    struct wait_group *group = waits_group(waits, g->name);
    if (!group)
        return false;
    if (waits->watched > 0 && event->goroutine != g->id &&
        (from == TRAIL_GO_WAITING || from <= TRAIL_GO_NOT_EXIST))
        waits_woke(waits, g, event->goroutine);
    if (event->transition.from <= TRAIL_GO_NOT_EXIST && !take_first(waits, group, g, event))
        return false;
    if (waits->analysis->counting) {
        group->row.ended += to <= TRAIL_GO_NOT_EXIST;
        if (from > TRAIL_GO_NOT_EXIST && !count_left(waits, group, g, event))
            return false;
    }
    if (g->outside && !waits_leave_outside(waits, g, event))
        return false;
    if (from == TRAIL_GO_WAITING)
        return wait_leave(waits, g, event) &&
               (to != TRAIL_GO_WAITING || wait_enter(waits, g, event));
    if (to == TRAIL_GO_WAITING)
        return wait_enter(waits, g, event);
    if (to == TRAIL_GO_SYSCALL)
        return waits_call_begins(waits, g, event);
    if (to <= TRAIL_GO_NOT_EXIST) {
        waits_works(waits, g->id);
        if (!waits_sender_ends(waits, g->id))
            return false;
        families_end(&waits->families, g->id, event->time_ns, FAMILY_ENDS);
    }
    return true;
}

/* A log of calls that have no events of their own. Returns false if out of memory. */
static bool take_count(struct waits *waits, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    struct wait_count counted =
        wait_text_of_count(trail_reader_string(names->reader, event->log.message));
    const struct goroutine *g = goroutines_find(&waits->analysis->goroutines, event->goroutine);
    struct wait_group *group = g && counted.count > 0 ? waits_group(waits, g->name) : NULL;
    if (!group)
        return g == NULL || counted.count == 0;
    if (counted.kind == WIRE_WAIT_NONE) {
        group->yields += counted.count;
        ns_add(&group->yield_ns, counted.ns);
        group->yield_at = waits_place(waits, stacks_of(&waits->analysis->stacks, event->stack));
    } else {
        group->brief += counted.count;
        ns_add(&group->brief_ns, counted.ns);
        group->brief_for = names_of_text(names, wire_wait_kinds[counted.kind].title);
    }
    return !names->failed && !waits->analysis->stacks.failed;
}

/* What ended the goroutine's last wait, if it was a time; counts and holds. */
static bool take_log(void *part, const trail_event *event)
{
    struct waits *waits = part;
    const struct names *names = &waits->analysis->names;
    if (waits->analysis->counting && event->goroutine >= 0 &&
        text_is(trail_reader_string(names->reader, event->log.category), WIRE_COUNTED))
        return take_count(waits, event);
    if (event->goroutine >= 0 &&
        text_is(trail_reader_string(names->reader, event->log.category), WIRE_HOLDS_OWNER))
        return take_owner(waits, event);
    if (event->goroutine >= 0 &&
        text_is(trail_reader_string(names->reader, event->log.category), WIRE_HELD_CATEGORY))
        return take_hold(waits, event) &&
               (!waits->analysis->counting || waits_read_rwlock(waits, event));
    if (waits->analysis->counting && wait_log_until(names, event))
        outside_was_until(&waits->outside, event->goroutine);
    const struct goroutine *g =
        waits->analysis->counting ? goroutine_timed_out(waits->analysis, event) : NULL;
    if (!g || !wait_facts_of(names, g->reason))
        return true;
    waits_miss_condition(waits, g->id);
    if (!blame_timed_out(&waits->blame, g->id))
        return false;
    struct wait_group *group = waits_group(waits, g->name);
    trail_wait *wait = group ? waits_row(names, group, g->reason) : NULL;
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
    if (!blame_clear(&waits->blame))
        return false;
    outside_clear(&waits->outside);
    idmap_clear(&waits->callers);
    if (waits->at_nil_channel.count > 0)
        waits->at_nil_channel.begin_ns = ns;
    objects_clear(&waits->condition_waits);
    objects_clear(&waits->conditions);
    objects_clear(&waits->rwlocks);
    objects_clear(&waits->hold_sums);
    if (waits->given_up)
        waits->given_up->count = waits->given_up->locks = 0;
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

/* Returns where a goroutine waits; 0: not known. */
static trail_name waits_now_at(const struct waits *waits, const struct goroutine *g)
{
    const struct parked *parked = objects_find(&waits->parked, (uint64_t)g->id);
    const struct outside_now *now = objects_find(&waits->outside.now, (uint64_t)g->id);
    return parked && parked->place ? parked->place->name
           : now && now->waits     ? waits_sleep_place(waits, now->place)
                                   : 0;
}

static void look_at_blocked(const struct waits *waits, const struct goroutine *g,
                            struct wait_group *group, int64_t now)
{
    trail_name at = waits_now_at(waits, g);
    int64_t begin = waits->analysis->span.begin_ns, length = ns_between(begin, now);
    if (g->state != TRAIL_GO_WAITING || g->creation_ns <= begin ||
        ns_between(g->since_ns, now) < length / 10)
        return;
    group->stuck_for = group->stuck == 0 || group->stuck_for == g->reason ? g->reason : 0;
    group->stuck_at = group->stuck == 0 || group->stuck_at == at ? at : 0;
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
        struct wait_group *group = waits_group(waits, g->name);
        good = group != NULL;
        if (good)
            look_at_blocked(waits, g, group, ns);
    }
    free(by_id);
    if (!good)
        return false;
    waits_settle_sleeps(waits);
    if (waits->count > 0)
        qsort(waits->items, waits->count, sizeof(void *), by_ready);
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct waits *waits = part;
    waits->analysis = analysis;
    waits->activity = analysis_object(analysis, &activity_part);
    blame_init(&waits->blame, &analysis->aside);
    outside_init(&waits->outside);
    families_init(&waits->families);
    waits->stragglers = OBJECTS_OF(struct straggler);
    waits->parked = OBJECTS_OF(struct parked);
    waits->conditions = OBJECTS_OF(struct condition);
    waits->condition_waits = OBJECTS_OF(struct condition_wait);
    waits->rwlocks = OBJECTS_OF(struct rwlock);
    futexes_init(&waits->futexes);
    waits->wait_places = OBJECTS_OF(struct wait_place);
    waits->helpers = OBJECTS_OF(struct helper);
    waits->hold_sums = OBJECTS_OF(struct hold_sum);
    waits->last_holds = OBJECTS_OF(struct last_hold);
    waits->owned = OBJECTS_OF(struct owned);
    waits->owners = OBJECTS_OF(uint64_t);
    waits->network = names_of_text(&analysis->names, "network");
    waits->sync = names_of_text(&analysis->names, "sync");
    waits->condition = names_of_text(&analysis->names, "sync.(*Cond).Wait");
    waits->send = names_of_text(&analysis->names, "chan send");
    waits->receive = names_of_text(&analysis->names, "chan receive");
    waits->select = names_of_text(&analysis->names, "select");
    for (size_t i = 0; i < WAITS_POOLS; i++)
        waits->pools[i] = names_of_text(&analysis->names, waits_pools[i]);
    waits->sleep = names_of_text(&analysis->names, "sleep");
    waits->yield = names_of_text(&analysis->names, "runtime.Gosched");
    waits->ready = names_of_text(&analysis->names, "ready");
    waits->collection = names_of_text(&analysis->names, "wait until GC ends");
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
    free(waits->connections.by_stack);
    idmap_free(&waits->connections.accepts);
    idmap_free(&waits->connections.serves);
    objects_free(&waits->wait_places);
    objects_free(&waits->helpers);
    idmap_free(&waits->callers);
    idmap_free(&waits->blamed_places);
    idmap_free(&waits->calls);
    idmap_free(&waits->served);
    idmap_free(&waits->busy);
    objects_free(&waits->parked);
    objects_free(&waits->conditions);
    objects_free(&waits->condition_waits);
    objects_free(&waits->rwlocks);
    futexes_free(&waits->futexes);
    objects_free(&waits->hold_sums);
    objects_free(&waits->last_holds);
    free(waits->given_up);
    objects_free(&waits->owned);
    objects_free(&waits->owners);
}

const struct analysis_part waits_part = {
    .what = TRAIL_ANALYZE_ACTIVITY,
    .size = sizeof(struct waits),
    .uses_goroutines = true,
    .uses_stacks = true,
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

static bool is_same(const trail_longest *a, const trail_longest *b)
{
    return a->goroutine == b->goroutine && a->begin_ns == b->begin_ns && a->ns == b->ns;
}

trail_string waits_longest_at(const trail_analysis *analysis, const trail_longest *wait)
{
    const struct waits *waits = analysis_object(analysis, &waits_part);
    for (size_t i = 0; waits && i < waits->outside.count; i++)
        if (is_same(&waits->outside.rows[i].longest, wait))
            return names_text(&analysis->names, waits->outside.rows[i].place);
    for (size_t i = 0; waits && i < waits->place_count; i++)
        if (is_same(&waits->all[i]->longest, wait))
            return names_text(&analysis->names, waits->all[i]->name);
    return (trail_string){"", 0};
}

size_t trail_analysis_waits(const trail_analysis *analysis, const trail_wait_group *const **rows)
{
    _Static_assert(offsetof(struct wait_group, row) == 0, "a group begins with its row");
    const struct waits *waits = analysis_object(analysis, &waits_part);
    *rows = waits ? (const trail_wait_group *const *)waits->items : NULL;
    return waits ? waits->count : 0;
}
