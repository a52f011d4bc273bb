/* Waits that are open when the trace ends, their holders, and cycles of them: see stuck.h. */
#include "diagnose/stuck.h"

#include <stdlib.h>

#include "analyze/holders.h"
#include "analyze/part.h"
#include "base/grow.h"
#include "base/share.h"
#include "base/text.h"
#include "diagnose/waits.h"
#include "wire/waits.h"

/* The most waits, in order of goroutines, for which all others are examined: there may be very
 * many. */
enum { MOST_LOOKS = 64 };

/* MARK: The end */

/* Whether it is a wait for a lock whose kind is known; one for a thread's exit is not. */
static bool is_known_lock(const struct wait_facts *facts)
{
    unsigned traits = wire_wait_kinds[facts->kind].traits;
    return traits & WIRE_WAIT_LOCK && !(traits & WIRE_WAIT_IDLE);
}

/* Returns the place where the goroutine waits; NULL: unknown. */
static const struct place *place_of(const struct stuck *stuck, const struct goroutine *g)
{
    const struct parked *parked =
        stuck->waits_at ? objects_find(&stuck->waits_at->parked, (uint64_t)g->id) : NULL;
    return parked ? parked->place : NULL;
}

/* The only goroutine alive with this start function, or of this kind (names_kind); TRAIL_NONE:
 * there is none, or *several. */
static int64_t only_one(const struct stuck *stuck, trail_name name, bool kind, bool *several)
{
    const struct names *names = &stuck->analysis->names;
    int64_t found = TRAIL_NONE;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        if ((kind ? names_kind(names, g->name) : g->name) != name)
            continue;
        if (found != TRAIL_NONE) {
            *several = true;
            return TRAIL_NONE;
        }
        found = g->id;
    }
    *several = false;
    return found;
}

/*
 * The only goroutine alive of the kind that alone has been seen to use the other end of the pipe
 * that is waited for. A goroutine that never waited there nor ended a wait is not seen, so the
 * result is only used to complete cycles.
 */
static struct holder user_of(const struct stuck *stuck, const struct wait_facts *facts)
{
    const struct blame *blame = stuck->waits_at ? &stuck->waits_at->blame : NULL;
    const struct names *names = &stuck->analysis->names;
    struct holder user = {.goroutine = TRAIL_NONE};
    bool writes = facts->kind == WIRE_WAIT_WRITE, several;
    if (!blame || (!writes && facts->kind != WIRE_WAIT_READ) ||
        !text_begins(names_text(names, facts->object), "pipe:"))
        return user;
    BLAME_EACH(row, blame) {
        const struct wait_facts *other = wait_facts_of(names, row->wait);
        if (!other || other->object != facts->object)
            continue;
        trail_name start = other->kind == facts->kind ? row->start : row->waiter;
        if (start == 0 || (user.name != 0 && user.name != start))
            return (struct holder){.goroutine = TRAIL_NONE};
        user.name = start;
    }
    user.goroutine = user.name ? only_one(stuck, user.name, true, &several) : TRAIL_NONE;
    return user;
}

static enum stuck_for wanted_of(const struct wait_facts *facts)
{
    return facts->kind == WIRE_WAIT_JOIN    ? STUCK_JOIN
           : facts->kind == WIRE_WAIT_READ  ? STUCK_READ
           : facts->kind == WIRE_WAIT_WRITE ? STUCK_WRITE
           : facts->kind == WIRE_WAIT_CHILD ? STUCK_CHILD
                                            : STUCK_LOCK;
}

/*
 * Fills in what a thread waits for, from the name of the wait. Returns false if the wait cannot be
 * a hang.
 */
static bool named_wait(const struct stuck *stuck, const struct wait_facts *facts,
                       struct stuck_wait *wait)
{
    bool joins = facts->kind == WIRE_WAIT_JOIN, several = false;
    struct holder user = user_of(stuck, facts);
    wait->by_use = user.goroutine != TRAIL_NONE;
    if (!joins && facts->kind != WIRE_WAIT_WRITE && !is_known_lock(facts) && !wait->ends &&
        !wait->by_use)
        return false;
    struct holder holder =
        joins ? (struct holder){.goroutine = only_one(stuck, facts->object, false, &several),
                                .name = facts->object}
        : wait->by_use ? user
                       : holders_find(stuck->holders, facts->kind, facts->object);
    wait->kind = facts->kind_name;
    wait->object = facts->object;
    wait->wanted = wanted_of(facts);
    wait->can_be_held = wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD;
    wait->holder = holder.goroutine;
    wait->holder_name = holder.name;
    wait->inferred = holder.inferred;
    wait->by_owner = holder.by_owner;
    wait->ended = holder.ended;
    return !joins || holder.goroutine != TRAIL_NONE || several;
}

/* The pool of a package for which the goroutine waits in Go, if none gave anything back to it
 * meanwhile; else 0. Waits for connections of net/http may be for one that is being made. */
static trail_name drained_pool(struct waits *waits, const struct goroutine *g)
{
    if (!waits || !waits->is_go || (g->reason != waits->receive && g->reason != waits->select))
        return 0;
    trail_name pool = waits_pool(waits, g->outer);
    if (pool == 0 || pool == waits->pools[WAITS_POOL_HTTP])
        return 0;
    BLAME_EACH(row, &waits->blame)
        if (row->wait == pool && row->last_ns > g->since_ns)
            return 0;
    return pool;
}

/* The same for a goroutine of Go, of which only the place is known. */
static bool placed_wait(const struct stuck *stuck, const struct goroutine *g,
                        struct stuck_wait *wait)
{
    const struct waits *waits = stuck->waits_at;
    const struct place *place = place_of(stuck, g);
    if (waits && g->reason == waits->send && g->reason != 0) {
        wait->place = waits_place(stuck->waits_at, g->outer);
        wait->wanted = STUCK_SEND;
        return wait->place != 0;
    }
    wait->object = drained_pool(stuck->waits_at, g);
    if (wait->object != 0) {
        wait->place = waits_calling_place(stuck->waits_at, g->outer);
        wait->wanted = STUCK_POOL;
        return wait->place != 0;
    }
    if (!place || place->kind == PLACE_OTHER || place->kind == PLACE_GROUP ||
        place->kind == PLACE_ONCE || place->name == 0)
        return false;
    wait->place = place->name;
    wait->wanted = place->kind == PLACE_CONDITION ? STUCK_CONDITION : STUCK_LOCK;
    wait->can_be_held = place->kind == PLACE_LOCK;
    wait->unmoved = place->left_ns <= g->since_ns;
    /* Other waits at the place ended: it may be that of workers that wait for work. */
    return wait->wanted == STUCK_LOCK || (place->waits == 0 && place->left_ns == 0);
}

/* The place of a wait for something outside; 0: unknown. */
static trail_name outside_place(const struct stuck *stuck, const struct goroutine *g)
{
    const struct outside_now *now =
        stuck->waits_at ? objects_find(&stuck->waits_at->outside.now, (uint64_t)g->id) : NULL;
    return now && now->waits ? waits_sleep_place(stuck->waits_at, now->place) : 0;
}

/* Where the goroutine waits; 0: unknown. */
static trail_name any_place(const struct stuck *stuck, const struct goroutine *g)
{
    const struct place *place = place_of(stuck, g);
    return place ? place->name : outside_place(stuck, g);
}

/* Returns the place that last ended another one's wait for the lock or condition that the goroutine
 * waits for; 0: none did since its own wait began. */
static trail_name woke_other(const struct stuck *stuck, const struct goroutine *g,
                             const struct wait_facts *facts)
{
    const struct blame *blame = stuck->waits_at ? &stuck->waits_at->blame : NULL;
    const struct blame_row *last = NULL;
    if (!blame || facts->object == 0 ||
        !(facts->kind == WIRE_WAIT_CONDITION || facts->kind == WIRE_WAIT_ATOMIC ||
          wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD))
        return 0;
    trail_name wait = waits_blamed(stuck->waits_at, g->reason);
    BLAME_EACH(row, blame)
        if (row->wait == wait && row->last_ns > g->since_ns &&
            (!last || row->last_ns > last->last_ns))
            last = row;
    return last ? last->place : 0;
}

/* Notes whether what created the goroutine waits for a WaitGroup. */
static void find_creator(const struct stuck *stuck, struct stuck_wait *wait)
{
    const struct family *family =
        stuck->waits_at ? families_of(&stuck->waits_at->families, wait->goroutine) : NULL;
    const struct goroutine *g =
        family ? goroutines_find(&stuck->analysis->goroutines, family->creator) : NULL;
    const struct place *place = g && g->state == TRAIL_GO_WAITING ? place_of(stuck, g) : NULL;
    if (!place || place->kind != PLACE_GROUP)
        return;
    wait->creator = g->id;
    wait->creator_name = g->name;
    wait->creator_place = place->name;
}

/* Returns false if out of memory. */
static bool add_wait(struct stuck *stuck, const struct goroutine *g, int64_t now)
{
    const struct wait_facts *facts = wait_facts_of(&stuck->analysis->names, g->reason);
    struct stuck_wait wait = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .name = g->name,
        .holder = TRAIL_NONE,
        .creator = TRAIL_NONE,
        .asks = TRAIL_NONE,
        .ends = facts ? stuck_endless_ends(stuck, facts->kind, g->id) : NULL,
        .next = SIZE_MAX,
    };
    if (g->state != TRAIL_GO_WAITING ||
        !(facts ? named_wait(stuck, facts, &wait) : placed_wait(stuck, g, &wait)))
        return true;
    if (!GROW(stuck->waits, stuck->capacity, stuck->count + 1))
        return false;
    if (wait.place == 0)
        wait.place = any_place(stuck, g);
    wait.woke_other = facts ? woke_other(stuck, g, facts) : 0;
    wait.read_since = stuck->waits_at ? waits_read_since(stuck->waits_at, g) : 0;
    if (wait.wanted == STUCK_SEND)
        find_creator(stuck, &wait);
    stuck->waits[stuck->count++] = wait;
    return true;
}

/*
 * Whether only goroutines with the start function `from` hand work to those with `to`: they ended
 * all waits of those; or, if those never had to wait, those ended all of their waits for room.
 */
static bool hands_to(const struct blame *blame, trail_name from, trail_name to)
{
    bool handed = false, room = false, others = false;
    PAIRS_EACH(pair, blame) {
        if (pair->waiter == to && pair->waker != from)
            return false;
        handed |= pair->waiter == to;
        room |= pair->waiter == from && pair->waker == to;
        others |= pair->waiter == from && pair->waker != to;
    }
    return handed || (room && !others);
}

/* Whether others than goroutines of that kind ended waits for a lock at the place. */
static bool is_held_by_others(const struct waits *waits, trail_name place, trail_name start)
{
    BLAME_EACH(row, &waits->blame) {
        if (row->lock && row->at == place && row->start != start)
            return true;
    }
    return false;
}

/* Whether goroutines with neither start function were seen to wait for work or results, or to end
 * such a wait. */
static bool are_strangers(const struct blame *blame, trail_name a, trail_name b)
{
    PAIRS_EACH(pair, blame)
        if (pair->waiter == a || pair->waker == a || pair->waiter == b || pair->waker == b)
            return false;
    return true;
}

/* Whether a goroutine at a channel may hold the lock that another kind waits for. */
static bool may_hold(const struct stuck *stuck, const struct stuck_wait *wait,
                     const struct goroutine *g)
{
    const struct names *names = &stuck->analysis->names;
    trail_name name = names_kind(names, g->name);
    return name != names_kind(names, wait->name) &&
           !is_held_by_others(stuck->waits_at, wait->place, name);
}

static void note_asker(const struct stuck *stuck, struct stuck_wait *wait,
                       const struct goroutine *g, int64_t now)
{
    wait->asks = g->id;
    wait->asks_name = g->name;
    wait->asks_place = waits_place(stuck->waits_at, g->outer);
    wait->asks_ns = ns_between(g->since_ns, now);
    wait->asks_sends = g->reason == stuck->waits_at->send;
}

/*
 * Notes the only goroutine that waits to send, if the one that waits for a lock in Go has ended its
 * last wait, and neither kind was seen with others: it may hold the lock.
 */
static void find_stranger(const struct stuck *stuck, struct stuck_wait *wait, int64_t now)
{
    const struct waits *waits = stuck->waits_at;
    const struct names *names = &stuck->analysis->names;
    const struct goroutine *only = NULL;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        if (g->state != TRAIL_GO_WAITING || g->reason != waits->send)
            continue;
        if (only)
            return;
        only = g;
    }
    if (!only || only->waker != wait->goroutine || !may_hold(stuck, wait, only) ||
        !are_strangers(&waits->blame, names_kind(names, only->name), names_kind(names, wait->name)))
        return;
    note_asker(stuck, wait, only, now);
    wait->asks_unseen = true;
}

/* Notes what waits at a channel for the one that waits for a lock in Go, and may hold the lock. */
static void find_asker(const struct stuck *stuck, struct stuck_wait *wait, int64_t now)
{
    const struct waits *waits = stuck->waits_at;
    const struct names *names = &stuck->analysis->names;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        bool sends = g->reason == waits->send;
        trail_name name = names_kind(names, g->name), waiter = names_kind(names, wait->name);
        if (g->state == TRAIL_GO_WAITING && (sends || g->reason == waits->receive) &&
            (wait->asks == TRAIL_NONE || g->id < wait->asks) && may_hold(stuck, wait, g) &&
            hands_to(&waits->blame, sends ? name : waiter, sends ? waiter : name))
            note_asker(stuck, wait, g, now);
    }
}

static void find_askers(struct stuck *stuck, int64_t now)
{
    size_t looked = 0;
    for (size_t i = 0; stuck->waits_at && i < stuck->count && looked < MOST_LOOKS; i++) {
        struct stuck_wait *wait = &stuck->waits[i];
        if (stuck_is_at_lock_of_go(wait)) {
            find_asker(stuck, wait, now);
            if (wait->asks == TRAIL_NONE)
                find_stranger(stuck, wait, now);
            looked++;
        }
    }
}

int stuck_by_goroutine(const void *a, const void *b)
{
    const struct stuck_wait *x = a, *y = b;
    return x->goroutine < y->goroutine ? -1 : x->goroutine > y->goroutine;
}

/* Whether the chain of waits from the one at `at` leads to the one at `end`. */
static bool leads_to(const struct stuck *stuck, size_t at, size_t end)
{
    for (size_t steps = 0; at != end && at != SIZE_MAX && steps < stuck->count; steps++)
        at = stuck->waits[at].next;
    return at == end;
}

/*
 * Links a wait for the exit of one of several goroutines with the same start function if all of
 * them wait for the goroutine that waits: whichever it is, its exit will not come.
 */
static void link_join(struct stuck *stuck, size_t at)
{
    struct stuck_wait *wait = &stuck->waits[at];
    const struct stuck_wait *first = NULL;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        struct stuck_wait key = {.goroutine = g->id};
        if (g->name != wait->object)
            continue;
        const struct stuck_wait *of =
            bsearch(&key, stuck->waits, stuck->count, sizeof key, stuck_by_goroutine);
        if (!of || !leads_to(stuck, (size_t)(of - stuck->waits), at))
            return;
        if (!first || of < first)
            first = of;
    }
    if (!first)
        return;
    wait->next = (size_t)(first - stuck->waits);
    wait->holder = first->goroutine;
}

static void link_waits(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        struct stuck_wait key = {.goroutine = stuck->waits[i].holder};
        const struct stuck_wait *next =
            bsearch(&key, stuck->waits, stuck->count, sizeof key, stuck_by_goroutine);
        if (next)
            stuck->waits[i].next = (size_t)(next - stuck->waits);
    }
    size_t looked = 0;
    for (size_t i = 0; i < stuck->count && looked < MOST_LOOKS; i++) {
        if (stuck->waits[i].wanted != STUCK_JOIN || stuck->waits[i].holder != TRAIL_NONE)
            continue;
        link_join(stuck, i);
        looked++;
    }
}

/* Each waits for at most one holder: a wait that leads back to itself in at most as many steps as
 * there are waits is in a cycle. */
static void find_circles(struct stuck *stuck)
{
    for (size_t i = 0; i < stuck->count; i++) {
        size_t at = stuck->waits[i].next, steps = 0;
        if (stuck->waits[i].circle)
            continue;
        while (at != SIZE_MAX && at != i && steps++ < stuck->count)
            at = stuck->waits[at].next;
        if (at != i)
            continue;
        stuck->circles++;
        do {
            stuck->waits[at].circle = stuck->circles;
            at = stuck->waits[at].next;
        } while (at != i);
    }
}

/* Forgets uses, which only complete cycles, for waits that are in none. */
static void forget_users(struct stuck *stuck)
{
    EACH(struct stuck_wait, wait, stuck->waits, stuck->count) {
        if (!wait->by_use || wait->circle)
            continue;
        wait->holder = TRAIL_NONE;
        wait->holder_name = 0;
        if (!wait->ends) {
            wait->next = SIZE_MAX;
            wait->can_go = true;
        }
    }
}

/*
 * Whether goroutines of the program ended waits of this name: they have the other end of the pipe.
 */
static bool is_served(const struct stuck *stuck, trail_name wait)
{
    const struct blame *blame = stuck->waits_at ? &stuck->waits_at->blame : NULL;
    for (size_t i = 0; blame && i < blame->count; i++)
        if (blame->rows[i].wait == wait && blame->rows[i].goroutine.key >= 0)
            return true;
    return false;
}

/*
 * Returns the facts of a wait that only another thread of the program can end; NULL: another wait.
 */
static const struct wait_facts *waits_for_thread(const struct stuck *stuck,
                                                 const struct goroutine *g)
{
    const struct wait_facts *facts =
        g->state == TRAIL_GO_WAITING ? wait_facts_of(&stuck->analysis->names, g->reason) : NULL;
    trail_string object =
        facts ? names_text(&stuck->analysis->names, facts->object) : (trail_string){0};
    bool pipe = facts && (facts->kind == WIRE_WAIT_READ || facts->kind == WIRE_WAIT_WRITE) &&
                (text_is(object, "[eventfd]") ||
                 (text_begins(object, "pipe:") && is_served(stuck, g->reason)));
    return facts && (pipe || (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_LOCK &&
                              facts->kind != WIRE_WAIT_FILE_LOCK))
               ? facts
               : NULL;
}

/*
 * Whether the wait of `a` explains better why all wait: it was signalled before it waited; or
 * another one was woken meanwhile; or it waits for its own kind; or no such wait has ever ended, so
 * that it is no idle pool; or it is not main, which waits for what others make; or it
 * ran last.
 */
static bool explains_more(const struct stuck_wait *a, const struct stuck_wait *b)
{
    if ((a->signalled != 0) != (b->signalled != 0))
        return a->signalled != 0;
    if ((a->woke_other != 0) != (b->woke_other != 0))
        return a->woke_other != 0;
    if (a->for_own != b->for_own)
        return a->for_own;
    if (a->unmoved != b->unmoved)
        return a->unmoved;
    if ((a->goroutine == 1) != (b->goroutine == 1))
        return b->goroutine == 1;
    return a->begin_ns > b->begin_ns;
}

/* Whether such waits were ended by goroutines with the same start function, as in a pool whose
 * tasks wait for each other. */
static bool is_for_own(const struct stuck *stuck, const struct goroutine *g)
{
    const struct blame *blame = stuck->waits_at ? &stuck->waits_at->blame : NULL;
    bool any = false;
    for (size_t i = 0; blame && i < blame->count; i++) {
        const struct blame_row *row = &blame->rows[i];
        if (row->wait != g->reason)
            continue;
        if (row->start != names_kind(&stuck->analysis->names, g->name) ||
            row->alike_ns != row->direct_ns)
            return false;
        any = true;
    }
    return any;
}

/* Returns another place where the condition variable of `still` is waited for; 0: there is none. */
static trail_name other_place(const struct stuck *stuck)
{
    const struct goroutine *own =
        goroutines_find(&stuck->analysis->goroutines, stuck->still.goroutine);
    const struct wait_facts *facts =
        own ? wait_facts_of(&stuck->analysis->names, own->reason) : NULL;
    trail_name least = 0;
    if (!facts || facts->kind != WIRE_WAIT_CONDITION || facts->object == 0)
        return 0;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        const struct place *place = g->state == TRAIL_GO_WAITING ? place_of(stuck, g) : NULL;
        if (place && g->reason == own->reason && place->name != stuck->still.place &&
            (least == 0 || place->name < least))
            least = place->name;
    }
    return least;
}

/*
 * Of the goroutines that all wait for each other, takes the one that explains most, and among those
 * that wait for a thread to exit the one that has waited longest.
 */
static void still_waits(struct stuck *stuck, const struct goroutine *g,
                        const struct wait_facts *facts, int64_t now)
{
    const struct place *place = place_of(stuck, g);
    struct stuck_wait wait = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .name = g->name,
        .kind = facts->kind_name,
        .object = facts->object,
        .wanted = wanted_of(facts),
        .place = place ? place->name : outside_place(stuck, g),
        .signalled = holders_signalled(stuck->holders, g->id),
        .woke_other = woke_other(stuck, g, facts),
        .holder = TRAIL_NONE,
    };
    bool joins = facts->kind == WIRE_WAIT_JOIN;
    if (g->id == 1)
        stuck->main = wait;
    /* A futex may be a lock, whose holder would end the wait. */
    if (wire_wait_kinds[facts->kind].traits & WIRE_WAIT_HELD || facts->kind == WIRE_WAIT_FUTEX)
        return;
    if (!joins) {
        wait.for_own = is_for_own(stuck, g);
        wait.unmoved = !is_served(stuck, g->reason);
    }
    if (joins ? stuck->has_joiner && stuck->joiner.ns >= wait.ns
              : stuck->has_still && !explains_more(&wait, &stuck->still))
        return;
    *(joins ? &stuck->joiner : &stuck->still) = wait;
    *(joins ? &stuck->has_joiner : &stuck->has_still) = true;
}

/* MARK: Tickers */

#define TICKS_LEAST 3   /* waits that a time limit ended */
#define TICKS_SHARE 0.9 /* of all its waits */
#define TICKS_RUN   0.1 /* of its time */

/* Returns false if out of memory. */
static bool find_wakers(struct stuck *stuck)
{
    const struct blame *blame = stuck->waits_at ? &stuck->waits_at->blame : NULL;
    for (size_t i = 0; blame && i < blame->count; i++)
        if (!idmap_put(&stuck->wakers, blame->rows[i].start, stuck))
            return false;
    for (size_t i = 0; blame && i < blame->pair_count; i++)
        if (!idmap_put(&stuck->wakers, blame->pairs[i].waker, stuck))
            return false;
    return true;
}

bool stuck_is_ticker(const struct stuck *stuck, const struct goroutine *g, int64_t now)
{
    const struct waits *waits = stuck->waits_at;
    const struct wait_group *group = waits ? waits_find_group(waits, g->name) : NULL;
    const struct wait_facts *open = wait_facts_of(&stuck->analysis->names, g->reason);
    bool timer = open && open->kind == WIRE_WAIT_READ &&
                 text_is(names_text(&stuck->analysis->names, open->object), "[timerfd]");
    uint64_t passed = 0, all = 0;
    bool may_pass = g->state != TRAIL_GO_WAITING;
    for (size_t i = 0; group && i < group->row.wait_count; i++) {
        const trail_wait *wait = &group->waits[i];
        const struct wait_facts *facts = wait_facts_of(&stuck->analysis->names, wait->reason);
        bool sleeps =
            wait->reason == waits->sleep || (timer && facts && facts->kind == WIRE_WAIT_READ);
        all += wait->spread.count;
        passed += sleeps ? wait->spread.count : wait->timed_out;
        may_pass |= wait->reason == g->reason && (sleeps || wait->timed_out > 0);
    }
    return may_pass && passed >= TICKS_LEAST && (double)passed >= TICKS_SHARE * (double)all &&
           share_of(g->exec_ns, ns_between(g->creation_ns, now)) <= TICKS_RUN &&
           !idmap_find(&stuck->wakers, names_kind(&stuck->analysis->names, g->name));
}

/* Whether a goroutine with this start function waits for others at the end. */
static bool is_left(const struct stuck *stuck, trail_name name, int64_t now)
{
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        if (g->name == name && !stuck_is_ticker(stuck, g, now))
            return true;
    }
    return false;
}

/* Whether the main goroutine waits forever, too, and not only since there is nothing to do: for
 * the exit of one that waits for others, or since the one of `still` waits. */
static bool keeps_main(const struct stuck *stuck, int64_t now)
{
    const struct stuck_wait *main = &stuck->main;
    if (main->goroutine == 1 && main->wanted == STUCK_JOIN)
        return is_left(stuck, main->object, now);
    return main->goroutine == 1 && main->begin_ns >= stuck->still.begin_ns;
}

/* Finds out whether every goroutine except tickers waits for another one, and since when. */
static void find_still(struct stuck *stuck, int64_t now)
{
    int64_t since_ns = stuck->last_end_ns;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        const struct wait_facts *facts = waits_for_thread(stuck, g);
        if (stuck_is_ticker(stuck, g, now)) {
            stuck->ticks = true;
            continue;
        }
        if (!facts) {
            stuck->has_still = false;
            return;
        }
        since_ns = g->since_ns > since_ns ? g->since_ns : since_ns;
        still_waits(stuck, g, facts, now);
    }
    stuck->has_still = stuck->has_still && (!stuck->ticks || keeps_main(stuck, now));
    stuck->still.other_place = stuck->has_still ? other_place(stuck) : 0;
    stuck->still_ns = ns_between(since_ns, now);
}

/* MARK: Groups of goroutines */

/* Part of the time that a goroutine has work from which on it is one that works. */
#define WORKS_SHARE 0.5

/* Whether the goroutine goes on at the end, or had work most of its time. */
static bool works(const struct goroutine *g, int64_t now)
{
    int64_t busy = g->exec_ns;
    ns_add(&busy, g->sched_wait_ns);
    return (g->state != TRAIL_GO_WAITING && g->state != TRAIL_GO_SYSCALL) ||
           share_of(busy, ns_between(g->creation_ns, now)) > WORKS_SHARE;
}

/* Looks at the goroutines alive of each family. */
static void survey_families(const struct stuck *stuck, int64_t now)
{
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        struct family *family = families_of(&stuck->waits_at->families, g->id);
        if (!family)
            continue;
        family->works |= works(g, now);
        family->receive += g->state == TRAIL_GO_WAITING && g->reason == stuck->waits_at->receive;
        family->signal += g->state == TRAIL_GO_WAITING && g->reason == stuck->waits_at->condition;
        const struct goroutine *left = goroutines_find(&stuck->analysis->goroutines, family->left);
        if (!left || g->since_ns < left->since_ns ||
            (g->since_ns == left->since_ns && g->id < left->id))
            family->left = g->id;
    }
}

/* Fills in what the member that has not ended does. */
static void describe_left(const struct stuck *stuck, const struct family *family,
                          struct stuck_group *group, int64_t now)
{
    const struct goroutine *g = goroutines_find(&stuck->analysis->goroutines, family->left);
    group->stay = family->stay;
    group->left = group->stay > 0 ? family->stays : family->left;
    group->left_name = family->start;
    if (group->stay > 0 || !g)
        return;
    trail_name asleep = outside_place(stuck, g);
    group->left_name = g->name;
    group->left_ns = ns_between(g->since_ns, now);
    group->left_reason = g->reason;
    group->sleeps = g->reason == stuck->waits_at->sleep;
    group->left_place = asleep ? asleep : waits_place(stuck->waits_at, g->outer);
}

/*
 * Whether none of the family has ended, and each waits to receive from a channel, as workers do
 * that have no more work; or some have ended, and the others wait for a sync.Cond. So far only the
 * goroutine that waits for them has ended such waits; or of those that receive, only themselves.
 */
static bool all_receive(const struct stuck *stuck, const struct goroutine *g,
                        const struct family *family)
{
    const struct waits *waits = stuck->waits_at;
    bool all = (family->ended == 0 && family->receive == family->created) ||
               (family->ended > 0 && family->signal == family->created - family->ended);
    return all && !family->differ &&
           (hands_to(&waits->blame, names_kind(&waits->analysis->names, g->name), family->start) ||
            (family->ended == 0 && hands_to(&waits->blame, family->start, family->start)));
}

/*
 * Takes the wait if nothing will end it, as far as is known: all goroutines that were created for
 * it have ended, or at least half have, and the others do nothing; or all wait for the one that
 * waits.
 */
static void note_group(struct stuck *stuck, const struct goroutine *g, const struct place *place,
                       int64_t now)
{
    const struct family *family = families_last(&stuck->waits_at->families, g->id);
    uint64_t left = family ? family->created - family->ended : 0;
    bool receive = family && all_receive(stuck, g, family);
    if (!family || family->lost || family->created < 2 || (left > family->ended && !receive) ||
        (left > 0 && family->works))
        return;
    int64_t since = g->since_ns > family->ended_ns ? g->since_ns : family->ended_ns;
    since = since > family->created_ns ? since : family->created_ns;
    struct stuck_group group = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .ns = ns_between(g->since_ns, now),
        .quiet_ns = ns_between(since, now),
        .name = g->name,
        .place = place->name,
        .start = family->start,
        .created_at = family->place,
        .created = family->created,
        .ended = family->ended,
        .left = TRAIL_NONE,
        .receive = receive,
        .own = receive && hands_to(&stuck->waits_at->blame, family->start, family->start),
    };
    if (left > 0)
        describe_left(stuck, family, &group, now);
    if (stuck->has_group &&
        (stuck->group.quiet_ns > group.quiet_ns ||
         (stuck->group.quiet_ns == group.quiet_ns && stuck->group.goroutine < g->id)))
        return;
    stuck->has_group = true;
    stuck->group = group;
}

static void find_groups(struct stuck *stuck, int64_t now)
{
    if (!stuck->waits_at || stuck->waits_at->families.of_creator.count == 0)
        return;
    survey_families(stuck, now);
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        const struct place *place = g->state == TRAIL_GO_WAITING ? place_of(stuck, g) : NULL;
        if (place && place->kind == PLACE_GROUP)
            note_group(stuck, g, place, now);
    }
}

static bool goroutine_ends(void *part, struct goroutine *g, int64_t now, int64_t end_ns)
{
    struct stuck *stuck = part;
    (void)g;
    (void)now;
    if (end_ns > stuck->last_end_ns)
        stuck->last_end_ns = end_ns;
    return true;
}

static bool window_ends(void *part, int64_t now)
{
    struct stuck *stuck = part;
    if (stuck->analysis->counting && !(find_wakers(stuck) && stuck_endless_take(stuck, now)))
        return false;
    if (stuck->analysis->counting)
        IDMAP_EACH(slot, &stuck->analysis->goroutines.follow.alive)
            if (!add_wait(stuck, slot->value, now))
                return false;
    if (stuck->count > 0)
        qsort(stuck->waits, stuck->count, sizeof *stuck->waits, stuck_by_goroutine);
    if (stuck->analysis->counting)
        find_askers(stuck, now);
    link_waits(stuck);
    if (!stuck_endless_find(stuck, now))
        return false;
    find_circles(stuck);
    forget_users(stuck);
    if (stuck->analysis->counting)
        find_still(stuck, now);
    if (stuck->analysis->counting)
        find_groups(stuck, now);
    return true;
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct stuck *stuck = part;
    stuck->waits_at = analysis_object(analysis, &waits_part);
    stuck->holders = analysis_object(analysis, &holders_part);
    stuck->analysis = analysis;
    return true;
}

static void drop(void *part)
{
    struct stuck *stuck = part;
    free(stuck->waits);
    idmap_free(&stuck->ends);
    idmap_free(&stuck->wakers);
}

const struct analysis_part stuck_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct stuck),
    .uses_goroutines = true,
    .init = init,
    .free = drop,
    .window_ends = window_ends,
    .ends = goroutine_ends,
};
