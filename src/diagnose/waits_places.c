/* Waits at places: see waits.h. */
#include "diagnose/waits.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "words/place.h"
#include "words/wrappers.h"

/* A goroutine that runs for less than this between two waits at one place, and wakes no other, was
 * woken in vain. */
#define FUTILE_MOST_NS 10000

/* The same, of one that was woken together with others: they take a lock in turn, and a recorder's
 * own time counts. */
#define FUTILE_TOGETHER_NS 30000

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

/* Whether this inner frame of a Go program waits for the end of a collection that it asked for. */
static bool is_in_collection(trail_string function)
{
    return text_is(function, "runtime.gcWaitOnMark");
}

/* Whether this inner frame waits until another goroutine has restarted the world. */
static bool is_in_stop(trail_string function)
{
    return text_begins(function, "runtime.stopTheWorld");
}

/* Whether one of the first frames is such. */
static bool is_stack_of(const struct waits *waits, trail_stack_handle stack,
                        bool (*is_such)(trail_string))
{
    enum { FRAMES = 6 }; /* of the runtime, then of sync */
    size_t count;
    const trail_frame *frame = trail_reader_stack(waits->analysis->reader, stack, &count);
    for (size_t i = 0; i < count && i < FRAMES; i++)
        if (is_such(trail_reader_string(waits->analysis->reader, frame[i].function)))
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
    return names_of_text(&waits->analysis->names, text);
}

trail_name waits_name_place(struct waits *waits, trail_stack_handle stack, enum place_kind *kind)
{
    size_t count;
    const trail_frame *frame = trail_reader_stack(waits->analysis->reader, stack, &count);
    const trail_frame *best = NULL;
    enum frame_rank best_rank = FRAME_WRAPPER;
    for (; count > 0 && best_rank < FRAME_OWN; count--, frame++) {
        trail_string function = trail_reader_string(waits->analysis->reader, frame->function);
        trail_string file = trail_reader_string(waits->analysis->reader, frame->file);
        enum frame_rank rank = frame_rank(waits->analysis->options.skip_frames, function, file);
        if (*kind == PLACE_LOCK && is_in_stop(function))
            *kind = PLACE_OTHER;
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
    if (futexes_have(facts))
        return futexes_is_lock(&waits->futexes, wait) ? PLACE_LOCK : PLACE_OTHER;
    return facts && !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD) ? PLACE_OTHER
                                                                            : PLACE_LOCK;
}

/* Returns NULL if out of memory. */
static struct place *place_of(struct waits *waits, trail_stack_handle stack, enum place_kind kind)
{
    uint64_t key = (uint64_t)stack << 3 | kind;
    check_epoch(waits);
    struct place *place = idmap_find(&waits->by_stack, key);
    if (place)
        return place;
    trail_name name = waits_name_place(waits, stack, &kind);
    place = place_make(waits, name, kind);
    return place && idmap_put(&waits->by_stack, key, place) ? place : NULL;
}

/* MARK: Waiting at a place */

void waits_works(struct waits *waits, int64_t id)
{
    struct parked *parked = waits->watched > 0 ? objects_find(&waits->parked, (uint64_t)id) : NULL;
    if (!parked || !parked->woken_at)
        return;
    parked->woken_at = NULL;
    waits->watched--;
    if (!parked->place)
        objects_drop(&waits->parked, (uint64_t)id);
}

/* Whether the goroutine waits for a lock, such as the mutex of a condition variable: passing it on
 * does not count as work. */
static bool waits_for_lock(const struct waits *waits, const struct goroutine *g)
{
    const struct parked *parked =
        g->state == TRAIL_GO_WAITING ? objects_find(&waits->parked, (uint64_t)g->id) : NULL;
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, g->reason);
    if (parked && facts && facts->kind != WIRE_WAIT_FUTEX)
        return wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD;
    return parked && parked->place && parked->place->kind == PLACE_LOCK;
}

void waits_woke(struct waits *waits, const struct goroutine *g, int64_t id)
{
    const struct parked *parked = objects_find(&waits->parked, (uint64_t)id);
    if (parked && parked->woken_at && !waits_for_lock(waits, g))
        waits_works(waits, id);
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
    blame_union_add(&place->futile_for, parked->woken_ns, now);
    place->waiter = names_kind(&waits->analysis->names, g->name);
}

trail_name waits_reason(const struct waits *waits, const trail_event *event)
{
    trail_name reason = names_of(&waits->analysis->names, event->transition.reason);
    bool early = reason == 0 && event->transition.from == TRAIL_GO_UNDETERMINED;
    if (early && is_stack_of(waits, event->transition.stack, is_in_lock))
        return waits->sync;
    /* Before Go 1.22, traces give no reason for it. */
    bool collects = reason == 0 && waits->is_go &&
                    is_stack_of(waits, event->transition.stack, is_in_collection);
    return collects ? waits->collection : reason;
}

/* The wait that begins has the name of its lock in traces that record it. */
static void note_lock(const struct waits *waits, struct place *place, trail_name wait)
{
    trail_name lock = wait_facts_of(&waits->analysis->names, wait) ? wait : 0;
    place->locks_differ |= place->waits + place->waiters > 0 && lock != place->lock;
    place->lock = place->locks_differ ? 0 : lock;
}

bool waits_enter_place(struct waits *waits, const struct goroutine *g, const trail_event *event,
                       trail_name reason)
{
    if (reason == 0 || (reason != waits->sync && reason != waits->condition)) {
        waits_works(waits, g->id);
        return waits_enter_condition(waits, g, 0);
    }
    trail_name wait = follow_wait(&waits->analysis->goroutines.follow, event);
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, wait);
    trail_stack stack = facts ? stacks_of(&waits->analysis->stacks, event->transition.stack) : 0;
    if (futexes_have(facts) &&
        !futexes_enter(&waits->futexes, &waits->analysis->stacks, wait, g->id, stack))
        return false;
    struct place *place = place_of(waits, event->transition.stack, kind_of(waits, wait, reason));
    if (!place || !waits_enter_condition(waits, g, wait))
        return false;
    if (place->kind == PLACE_CONDITION) {
        note_futile(waits, g, place, event->time_ns);
        waits_works(waits, g->id);
    }
    struct parked *parked = objects_get(&waits->parked, (uint64_t)g->id);
    if (!parked)
        return false;
    parked->place = place;
    parked->serial_at = waits->activity->serial_ns;
    parked->stack = stack;
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

/*
 * Whether the goroutine waits for the exit of another one, at a latch for the last of several, or
 * for what those do that it has created.
 */
static bool is_for_last(const struct waits *waits, const struct goroutine *g, int64_t waker)
{
    const struct wait_facts *facts = wait_facts_of(&waits->analysis->names, g->reason);
    if (facts && (facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_SEMAPHORE ||
                  facts->kind == WIRE_WAIT_FUTEX || facts->kind == WIRE_WAIT_ATOMIC)) {
        const struct family *family = families_of(&waits->families, waker);
        return family && family->creator == g->id;
    }
    return facts && (facts->kind == WIRE_WAIT_JOIN || facts->kind == WIRE_WAIT_LATCH);
}

/* How late the goroutine was that ended the wait of `g`; ns 0: it is not the last of its family by
 * far. */
static struct family_late late_of(const struct family *family, const struct goroutine *g,
                                  const trail_event *event)
{
    struct family_late late = {.goroutine = event->goroutine, .wait = g->reason};
    if (!family || family->lost || family->differ || family->ended < 2 ||
        family->ended + 1 != family->created)
        return late;
    late.since_ns = family->ended_ns > g->since_ns ? family->ended_ns : g->since_ns;
    int64_t others_ns = ns_between(family->created_ns, family->ended_ns);
    int64_t ns = ns_between(late.since_ns, event->time_ns);
    late.ns = others_ns >= 0 && ns / (STRAGGLES_TIMES - 1) >= others_ns ? ns : 0;
    return late;
}

static bool add_straggler(struct waits *waits, const struct family *family,
                          const struct family_late *late)
{
    struct straggler *straggler = objects_get(&waits->stragglers, family->start);
    if (!straggler)
        return false;
    straggler->start = family->start;
    straggler->times++;
    ns_add(&straggler->ns, late->ns);
    if (late->ns > straggler->longest.ns) {
        straggler->longest = (trail_longest){late->ns, late->since_ns, late->goroutine};
        straggler->created_at = family->place;
        straggler->at = late->at;
        straggler->wait = late->wait;
    }
    return true;
}

/* A wait for a WaitGroup, an exit or a latch has ended. Returns false if out of memory. */
static bool note_straggler(struct waits *waits, const struct goroutine *g,
                           const struct place *place, const trail_event *event)
{
    const struct family *family = families_of(&waits->families, event->goroutine);
    struct family_late late = late_of(family, g, event);
    late.at = place->name;
    return late.ns <= 0 || add_straggler(waits, family, &late);
}

void waits_received(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct family *family = families_of(&waits->families, event->goroutine);
    struct family_late late = late_of(family, g, event);
    if (late.ns <= 0 || family->creator != g->id)
        return;
    late.at = waits_place(waits, g->outer);
    family->sent = late;
    family->sends++;
}

bool waits_sender_ends(struct waits *waits, int64_t goroutine)
{
    struct family *family = families_of(&waits->families, goroutine);
    struct family_late late = family ? family->sent : (struct family_late){0};
    if (late.ns <= 0 || late.goroutine != goroutine)
        return true;
    uint64_t sends = family->sends;
    family->sent.ns = 0;
    family->sends = 0;
    return sends > 1 || add_straggler(waits, family, &late);
}

/* The goroutine's wait ends, perhaps one for a futex. */
static bool leave_futex(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct stacks *stacks = &waits->analysis->stacks;
    return !futexes_have(wait_facts_of(&waits->analysis->names, g->reason)) ||
           event->transition.to != TRAIL_GO_RUNNABLE || event->goroutine < 0 ||
           event->goroutine == g->id ||
           futexes_leave(&waits->futexes, stacks, g->reason, event->goroutine,
                         stacks_of(stacks, event->stack), event->time_ns);
}

bool waits_leave_place(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct parked *parked = objects_find(&waits->parked, (uint64_t)g->id);
    struct place *place = parked ? parked->place : NULL;
    bool ok = true;
    if (!place)
        return true;
    if (!leave_futex(waits, g, event))
        return false;
    if (ns_between(g->since_ns, event->time_ns) >= BLAME_LEAST_NS)
        ok = waits_blame(waits, g, place, parked->serial_at, g->reason, event);
    if (ok && (place->kind == PLACE_GROUP || is_for_last(waits, g, event->goroutine)) &&
        waits->analysis->counting)
        ok = note_straggler(waits, g, place, event);
    if (place->kind == PLACE_CONDITION)
        waits_leave_condition(waits, g, place->name, event);
    if (place->kind == PLACE_LOCK)
        ok = waits_leave_rwlock(waits, g, place->name, event) && ok;
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
        parked->woken_ns = event->time_ns;
        parked->woken_exec_ns = g->exec_ns;
        parked->woken_together = together;
        waits->watched++;
    }
    if (!parked->woken_at)
        objects_drop(&waits->parked, (uint64_t)g->id);
    return ok;
}
