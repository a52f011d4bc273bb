/*
 * Locks: waits and holds by lock, and chains of waits.
 *
 * In recordings of C programs a log "wait" before a wait names its lock, and a log "held" gives the
 * holder and the hold time; the row is that lock. Elsewhere a mutex has a row for each
 * stack of a wait, whichever goroutine ends it; other objects, such as a channel, have one for each
 * pair of stacks, of the wait and of the waker.
 *
 * Chains: when a wait ends, its waker is known, and so are the waker's own waits up to then. Each
 * goroutine keeps its last few pieces of time in which it waited, each with a list of links:
 * itself, the goroutine it waited for, the one that that waited for. The lists share their tails
 * and only refer to waits that ended before, so reference counts suffice.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <trail/analyze.h>

#include "analyze/futexes.h"
#include "analyze/holders.h"
#include "analyze/part.h"
#include "base/arena.h"
#include "base/grow.h"
#include "base/intern.h"
#include "base/objects.h"
#include "base/order.h"
#include "base/text.h"

enum { LOCK_PIECES = 8, LOCK_CHAINS = 64 };

struct lock {
    trail_lock row;   /* first: pointers to rows are pointers to it */
    size_t place;     /* index among the rows; set at the end */
    bool for_work;    /* its kind can be a wait for work (WIRE_WAIT_IDLE) */
    trail_name futex; /* of a futex: the name of its waits; 0: another kind */
    /* Of a semaphore: the goroutines that have waited, and the sum of the waits that one of these
     * ended. Users of a lock end each other's waits; a producer of work does not wait for it. */
    bool can_be_lock;
    struct idmap waited;
    int64_t among_ns;
};

/*
 * A wait in a chain. Counted references: from pieces, from kept chains and from the link before it.
 */
struct lock_link {
    struct lock_link *next; /* what the holder waited for meanwhile */
    struct lock *lock;
    trail_lock_link row;
    uint32_t refs, depth; /* depth: number of waits from here on */
};

/* A stretch of time in which a chain held. */
struct lock_piece {
    int64_t begin_ns, end_ns;
    struct lock_link *chain;
};

/* A goroutine alive that has waited, or has logged what it is about to wait for. */
struct lock_waiter {
    bool waits;
    struct lock *announced; /* while `waits`: the lock named by the log before the wait; or NULL */
    struct lock *ended;     /* what it waited for last; NULL: not counted */
    trail_stack stack;      /* of the wait */
    trail_name reason;
    /* The lock of its last log "held", until it is known whether that release wakes a waiter. */
    struct lock *gives_up;
    trail_stack taken, released;
    int64_t held_ns, given_up_ns;
    int64_t held_by; /* the goroutine that took it */
    unsigned piece_count;
    struct lock_piece pieces[LOCK_PIECES];
};

/* The contents of a log of a hold. */
struct lock_text {
    struct lock *lock; /* NULL: not a lock */
    int64_t held_ns;
    int64_t by; /* as in struct wait_text */
};

struct lock_chain {
    struct lock_piece piece;
    uint64_t others;
    int64_t other, other_end_ns; /* the last of these: its goroutine, and the end of its wait */
};

/* What a place is to a lock. LOCK_WOKEN: where waits were ended, for the row's `woken`. */
enum lock_place_kind { LOCK_WAITED, LOCK_HELD, LOCK_WOKEN };

/* Waits or holds of one lock at one place. */
struct lock_place_row {
    struct lock *lock;
    enum lock_place_kind kind;
    trail_lock_place row;
};

struct locks {
    struct trail_analysis *analysis;
    const struct holders *holders;
    struct lock **all;
    size_t row_count; /* how many are rows; set at the end */
    size_t count, capacity;
    struct idmap by_name;    /* kind and name -> struct lock */
    struct idmap by_stacks;  /* of wait and waker -> struct lock */
    struct idmap held_texts; /* name of a log's text -> struct lock_text */
    struct arena texts;
    struct objects waiters; /* of goroutines: struct lock_waiter */
    struct futexes futexes;
    struct slab link_slab;
    struct intern place_keys; /* number: index in `places`, + 1 */
    struct lock_place_row *places;
    size_t place_count, place_capacity;
    struct lock_chain chains[LOCK_CHAINS]; /* longest first */
    size_t chain_count;
    trail_lock_place *place_rows; /* set at the end, as the two below */
    trail_lock_chain *chain_rows;
    trail_lock_link *link_rows;
};

/* MARK: What counts */

/* Whether waits for this reason are waits for locks. */
static bool is_wanted(const struct locks *locks, trail_name reason)
{
    trail_string text = names_text(&locks->analysis->names, reason);
    if (text_begins(text, "sync"))
        return true;
    return locks->analysis->options.locks.channels &&
           (text_begins(text, "chan") || text_begins(text, "select"));
}

/* Whether its waits are selected. */
static bool counts(const struct locks *locks, const struct goroutine *g)
{
    return analysis_asks_for(locks->analysis, &locks->analysis->options.locks.filter, g->id,
                             g->name);
}

/* MARK: Rows */

static struct lock *lock_make(struct locks *locks, struct idmap *map, uint64_t key)
{
    if (!GROW(locks->all, locks->capacity, locks->count + 1))
        return NULL;
    struct lock *lock = calloc(1, sizeof *lock);
    if (!lock)
        return NULL;
    lock->row.holder = TRAIL_NONE;
    locks->all[locks->count++] = lock;
    return idmap_put(map, key, lock) ? lock : NULL;
}

/* Returns the lock of that kind with a name of its own; NULL if out of memory. */
static struct lock *lock_named(struct locks *locks, enum wire_wait of, trail_name kind,
                               trail_name name)
{
    uint64_t key = (uint64_t)kind << 32 | name;
    struct lock *lock = idmap_find(&locks->by_name, key);
    if (lock)
        return lock;
    lock = lock_make(locks, &locks->by_name, key);
    if (lock) {
        lock->row.kind = kind;
        lock->row.name = name;
        lock->row.can_be_held = wire_wait_kinds[of].traits & WIRE_WAIT_HELD;
        lock->for_work = wire_wait_kinds[of].traits & WIRE_WAIT_IDLE;
        lock->can_be_lock = of == WIRE_WAIT_SEMAPHORE;
    }
    return lock;
}

/*
 * Returns "sync.(*RWMutex).RLock" for a stack that begins with its implementation; else the reason.
 */
static trail_name kind_of_stack(const struct locks *locks, trail_stack stack, trail_name reason)
{
    struct stack_row row = stacks_get(&locks->analysis->stacks, stack);
    trail_name kind = reason;
    for (size_t i = 0; i < row.count; i++) {
        trail_string text = names_text(&locks->analysis->names, row.places[i].function);
        if (text_begins(text, "sync."))
            kind = row.places[i].function;
        else if (!text_begins(text, "runtime.") && !text_begins(text, "internal/"))
            break;
    }
    return kind;
}

/* Whether it is a function of Go's sync.Mutex or sync.RWMutex. */
static bool is_mutex(trail_string kind)
{
    static const char mutex[] = "Mutex)";
    return text_begins(kind, "sync.") && memmem(kind.data, kind.size, mutex, strlen(mutex));
}

/* Different releases end the waits for a mutex; for others, other wakers may stand for other
 * objects. */
static struct lock *lock_by_stacks(struct locks *locks, trail_stack waited, trail_stack woken,
                                   trail_name reason)
{
    uint64_t of_mutex = (uint64_t)waited << 32, key = of_mutex | woken;
    struct lock *lock = idmap_find(&locks->by_stacks, of_mutex);
    if (lock && (lock->row.can_be_held || woken == 0))
        return lock;
    lock = woken == 0 ? NULL : idmap_find(&locks->by_stacks, key);
    if (lock)
        return lock;
    trail_name kind = kind_of_stack(locks, waited, reason);
    bool mutex = is_mutex(names_text(&locks->analysis->names, kind));
    lock = lock_make(locks, &locks->by_stacks, mutex ? of_mutex : key);
    if (lock) {
        lock->row.kind = kind;
        lock->row.can_be_held = mutex;
        lock->row.waited = waited;
        lock->row.woken = mutex ? 0 : woken;
    }
    return lock;
}

/* Whether they are the same, as far as is known. */
static bool is_same(const struct lock *a, const struct lock *b)
{
    return a == b || (a->row.waited != 0 && a->row.waited == b->row.waited);
}

/* MARK: Places */

static trail_lock_place *place_get(struct locks *locks, struct lock *lock,
                                   enum lock_place_kind kind, trail_stack stack,
                                   trail_stack released)
{
    struct { /* no padding: its bytes are the key */
        uint64_t lock, kind;
        trail_stack stack, released;
    } key = {(uintptr_t)lock, kind, stack, released};
    bool fresh;
    if (!GROW(locks->places, locks->place_capacity, locks->place_count + 1))
        return NULL;
    uint64_t number = intern_put(&locks->place_keys, &key, sizeof key, &fresh);
    if (number == 0)
        return NULL;
    if (fresh) {
        locks->places[locks->place_count++] = (struct lock_place_row){
            .lock = lock, .kind = kind, .row = {.stack = stack, .released = released}};
    }
    return &locks->places[number - 1].row;
}

static bool place_count(trail_lock_place *place, int64_t ns, int64_t begin_ns, int64_t goroutine)
{
    if (!place)
        return false;
    place->count++;
    ns_add(&place->ns, ns);
    longest_note(&place->longest, ns, begin_ns, goroutine);
    return true;
}

/* MARK: Logs */

/* Returns the contents of a log of a hold, parsed once per text. NULL if out of memory. */
static const struct lock_text *text_of_hold(struct locks *locks, trail_string_handle handle)
{
    struct names *names = &locks->analysis->names;
    trail_name name = names_of(names, handle);
    struct lock_text *known = idmap_find(&locks->held_texts, name);
    if (known)
        return known;
    struct wait_text text = wait_text_of_hold(names_text(names, name));
    known = arena_alloc(&locks->texts, sizeof *known);
    if (!known)
        return NULL;
    *known = (struct lock_text){.held_ns = text.held_ns, .by = text.by};
    if (wire_wait_kinds[text.kind].traits & WIRE_WAIT_LOCK) {
        known->lock = lock_named(locks, text.kind, wait_kind_put(names, text.kind, 0),
                                 names_put(names, text.object.data, text.object.size));
        if (!known->lock)
            return NULL;
    }
    return idmap_put(&locks->held_texts, name, known) ? known : NULL;
}

static struct lock_waiter *waiter_get(struct locks *locks, int64_t goroutine)
{
    return objects_get(&locks->waiters, (uint64_t)goroutine);
}

/* Records a case of length `ns` if it is the longest, with the name of its goroutine. */
static void note_named(const struct locks *locks, trail_longest *longest, trail_name *name,
                       int64_t ns, int64_t begin_ns, int64_t goroutine)
{
    if (ns <= longest->ns)
        return;
    const struct goroutine *g = goroutines_find(&locks->analysis->goroutines, goroutine);
    *name = g ? g->name : 0;
    longest_note(longest, ns, begin_ns, goroutine);
}

/* Counts the hold, once it is known which waiter its release woke. */
static bool count_hold(struct locks *locks, struct lock_waiter *waiter)
{
    struct lock *lock = waiter->gives_up;
    int64_t begin = ns_between(waiter->held_ns, waiter->given_up_ns);
    /* A length is rounded to three digits, and may reach back before the trace. */
    if (begin < locks->analysis->span.origin_ns)
        begin = locks->analysis->span.origin_ns;
    waiter->gives_up = NULL;
    if (!lock || waiter->given_up_ns < locks->analysis->from_ns || !locks->analysis->counting)
        return true;
    note_named(locks, &lock->row.longest_hold, &lock->row.longest_hold_name, waiter->held_ns, begin,
               waiter->held_by);
    return trail_histogram_add(&lock->row.hold, waiter->held_ns) &&
           place_count(place_get(locks, lock, LOCK_HELD, waiter->taken, waiter->released),
                       waiter->held_ns, begin, waiter->held_by);
}

/* The thread's last wait timed out. */
static void take_time_out(struct locks *locks, const trail_event *event)
{
    struct lock_waiter *waiter = objects_find(&locks->waiters, (uint64_t)event->goroutine);
    if (waiter && waiter->ended)
        waiter->ended->row.timed_out++;
    if (waiter)
        waiter->ended = NULL;
}

static bool take_log(void *part, const trail_event *event)
{
    struct locks *locks = part;
    const trail_reader *reader = locks->analysis->reader;
    if (goroutine_timed_out(locks->analysis, event))
        take_time_out(locks, event);
    if (event->goroutine == TRAIL_NONE ||
        !text_is(trail_reader_string(reader, event->log.category), WIRE_HELD_CATEGORY) ||
        !wait_text_of_hold(trail_reader_string(reader, event->log.message)).kind)
        return true;
    const struct lock_text *text = text_of_hold(locks, event->log.message);
    struct lock_waiter *waiter = text ? waiter_get(locks, event->goroutine) : NULL;
    if (!waiter || !count_hold(locks, waiter))
        return false;
    waiter->gives_up = text->lock;
    waiter->held_ns = text->held_ns;
    waiter->held_by = wait_text_holder(text->by, event->goroutine);
    waiter->given_up_ns = event->time_ns;
    waiter->taken = stacks_of(&locks->analysis->stacks, event->stack);
    waiter->released = 0;
    return !locks->analysis->stacks.failed;
}

/* MARK: Chains */

static struct lock_link *link_keep(struct lock_link *link)
{
    if (link)
        link->refs++;
    return link;
}

static void link_drop(struct locks *locks, struct lock_link *link)
{
    while (link && --link->refs == 0) {
        struct lock_link *next = link->next;
        slab_put(&locks->link_slab, link);
        link = next;
    }
}

/* Adds a piece to the goroutine's past, in place of the oldest. Takes the chain's reference. */
static void piece_put(struct locks *locks, struct lock_waiter *waiter, struct lock_piece piece)
{
    size_t oldest = 0;
    if (waiter->piece_count < LOCK_PIECES) {
        waiter->pieces[waiter->piece_count++] = piece;
        return;
    }
    for (size_t i = 1; i < LOCK_PIECES; i++)
        if (waiter->pieces[i].end_ns < waiter->pieces[oldest].end_ns)
            oldest = i;
    link_drop(locks, waiter->pieces[oldest].chain);
    waiter->pieces[oldest] = piece;
}

static int64_t piece_length(const struct lock_piece *piece)
{
    return ns_between(piece->begin_ns, piece->end_ns);
}

static bool is_longer(const struct lock_piece *a, const struct lock_piece *b)
{
    if (a->chain->depth != b->chain->depth)
        return a->chain->depth > b->chain->depth;
    return piece_length(a) > piece_length(b);
}

static bool is_same_wait(const struct lock_link *a, const struct lock_link *b)
{
    return a && b && a->row.goroutine == b->row.goroutine && a->row.end_ns == b->row.end_ns;
}

/* Returns a chain that begins with the same wait, or is the end of this one, or has the same links
 * after its first wait. */
static struct lock_chain *chain_like(struct locks *locks, const struct lock_link *chain)
{
    for (size_t i = 0; i < locks->chain_count; i++) {
        const struct lock_link *other = locks->chains[i].piece.chain;
        if (is_same_wait(other, chain) || is_same_wait(other, chain->next) ||
            is_same_wait(other->next, chain->next))
            return &locks->chains[i];
    }
    return NULL;
}

/* Counts, once, a wait with the same links after it as the chain's first. */
static void count_other(struct lock_chain *like, const struct lock_link *chain)
{
    const struct lock_link *first = like->piece.chain;
    bool known = like->other == chain->row.goroutine && like->other_end_ns == chain->row.end_ns;
    if (known || is_same_wait(first, chain) || is_same_wait(first, chain->next))
        return;
    like->others++;
    like->other = chain->row.goroutine;
    like->other_end_ns = chain->row.end_ns;
}

/* Keeps the chain if it is one of the longest. */
static void chain_note(struct locks *locks, const struct lock_piece *piece)
{
    struct lock_chain chain = {.piece = *piece};
    struct lock_chain *like = chain_like(locks, piece->chain);
    if (like) {
        count_other(like, piece->chain);
        if (!is_longer(piece, &like->piece))
            return;
        chain.others = like->others;
        chain.other = like->other;
        chain.other_end_ns = like->other_end_ns;
        link_drop(locks, like->piece.chain);
        size_t behind = (size_t)(&locks->chains[--locks->chain_count] - like);
        memmove(like, like + 1, behind * sizeof *like);
    }
    size_t at = locks->chain_count;
    while (at > 0 && is_longer(piece, &locks->chains[at - 1].piece))
        at--;
    if (at == LOCK_CHAINS)
        return;
    if (locks->chain_count == LOCK_CHAINS)
        link_drop(locks, locks->chains[--locks->chain_count].piece.chain);
    memmove(&locks->chains[at + 1], &locks->chains[at],
            (locks->chain_count - at) * sizeof *locks->chains);
    (void)link_keep(chain.piece.chain);
    locks->chains[at] = chain;
    locks->chain_count++;
}

/* An ended wait, to be added to chains. */
struct ended {
    const struct goroutine *g;
    struct lock *lock;
    struct lock_waiter *waiter;
    int64_t begin_ns, end_ns;
    int64_t holder;
    trail_name holder_name;
    trail_stack woken; /* of the holder when it ended the wait; 0: not known */
};

/* Puts the wait in front of `next`, from start to end. Returns false if out of memory. */
static bool chain_add(struct locks *locks, const struct ended *ended, int64_t begin_ns,
                      int64_t end_ns, struct lock_link *next)
{
    struct lock_link *link = slab_get(&locks->link_slab);
    if (!link)
        return false;
    *link = (struct lock_link){
        .next = link_keep(next),
        .lock = ended->lock,
        .row = {.goroutine = ended->g->id,
                .name = ended->g->name,
                .lock = &ended->lock->row,
                .begin_ns = ended->begin_ns,
                .end_ns = ended->end_ns,
                .holder = ended->holder,
                .holder_name = ended->holder_name},
        .refs = 1,
        .depth = next ? next->depth + 1 : 1,
    };
    struct lock_piece piece = {begin_ns, end_ns, link};
    if (next && locks->analysis->counting && counts(locks, ended->g))
        chain_note(locks, &piece);
    piece_put(locks, ended->waiter, piece);
    return true;
}

/*
 * Adds what the holder waited for meanwhile. Where that was this same lock, it did not have the
 * lock yet: this wait was then for the goroutine that the holder waited for.
 */
static bool chain_build(struct locks *locks, struct ended *ended)
{
    const struct lock_waiter *holder = objects_find(&locks->waiters, (uint64_t)ended->holder);
    int64_t since = ended->begin_ns;
    const struct ended last = *ended;
    for (unsigned i = 0; holder && i < holder->piece_count; i++) {
        const struct lock_piece *piece = &holder->pieces[i];
        int64_t begin = piece->begin_ns > last.begin_ns ? piece->begin_ns : last.begin_ns;
        int64_t end = piece->end_ns < last.end_ns ? piece->end_ns : last.end_ns;
        struct lock_link *next = piece->chain;
        if (begin >= end)
            continue;
        *ended = last;
        if (is_same(next->lock, last.lock)) {
            ended->holder = next->row.holder;
            ended->holder_name = next->row.holder_name;
            since = end > since ? end : since;
            next = next->next;
        }
        if (!chain_add(locks, ended, begin, end, next))
            return false;
    }
    *ended = last;
    return since >= last.end_ns || chain_add(locks, ended, since, last.end_ns, NULL);
}

/* MARK: Waits */

/*
 * Whether the wait is not for a lock, although another thread ended it: for example for a child
 * process.
 */
static bool is_for_no_lock(const struct wait_facts *facts)
{
    return facts && !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_LOCK);
}

/*
 * Sets *lock to the lock that the wait's log names; NULL: there is no log. Returns false if out of
 * memory.
 */
static bool lock_announced(struct locks *locks, const struct wait_facts *facts, struct lock **lock)
{
    *lock = NULL;
    if (!facts)
        return true;
    *lock = lock_named(locks, facts->kind, facts->kind_name, facts->object);
    return *lock != NULL;
}

static bool wait_begins(struct locks *locks, const struct goroutine *g, const trail_event *event)
{
    trail_name wait = follow_wait(&locks->analysis->goroutines.follow, event);
    trail_name reason = wait_reason(&locks->analysis->names, wait);
    const struct wait_facts *facts = wait_facts_of(&locks->analysis->names, wait);
    if (!is_wanted(locks, reason) || is_for_no_lock(facts))
        return true;
    struct lock_waiter *waiter = waiter_get(locks, g->id);
    if (!waiter || !lock_announced(locks, facts, &waiter->announced))
        return false;
    waiter->ended = NULL;
    waiter->waits = true;
    waiter->reason = reason;
    waiter->stack = stacks_of(&locks->analysis->stacks, event->transition.stack);
    if (futexes_have(facts)) {
        waiter->announced->futex = wait;
        if (!futexes_enter(&locks->futexes, &locks->analysis->stacks, wait, g->id, waiter->stack))
            return false;
    }
    return !locks->analysis->stacks.failed;
}

/* Adds up the waits that a goroutine ended which has waited for the same object. */
static bool note_waker(const struct ended *ended, int64_t ns)
{
    struct lock *lock = ended->lock;
    if (!lock->can_be_lock)
        return true;
    if (ended->holder != TRAIL_NONE && idmap_find(&lock->waited, (uint64_t)ended->holder))
        ns_add(&lock->among_ns, ns);
    return idmap_put(&lock->waited, (uint64_t)ended->g->id, lock);
}

static bool is_mutex_by_stack(const struct lock *lock)
{
    return lock->row.can_be_held && lock->row.waited != 0;
}

static bool count_wait(struct locks *locks, const struct ended *ended)
{
    trail_lock *row = &ended->lock->row;
    int64_t ns = ns_between(ended->begin_ns, ended->end_ns);
    if (!locks->analysis->counting || !counts(locks, ended->g))
        return true;
    ended->waiter->ended = ended->lock;
    if (!note_waker(ended, ns))
        return false;
    note_named(locks, &row->longest, &row->longest_name, ns, ended->begin_ns, ended->g->id);
    return trail_histogram_add(&row->wait, ns) &&
           place_count(place_get(locks, ended->lock, LOCK_WAITED, ended->waiter->stack, 0), ns,
                       ended->begin_ns, ended->g->id) &&
           (!is_mutex_by_stack(ended->lock) || ended->woken == 0 ||
            place_count(place_get(locks, ended->lock, LOCK_WOKEN, ended->woken, 0), ns,
                        ended->begin_ns, ended->g->id));
}

/* The goroutine that ended the wait is the holder; `holder` NULL: none in the trace. */
static bool wait_ends(struct locks *locks, const struct goroutine *g, struct lock_waiter *waiter,
                      const trail_event *event)
{
    bool woken = event->transition.to == TRAIL_GO_RUNNABLE && event->goroutine >= 0 &&
                 event->goroutine != g->id;
    trail_stack stack = woken ? stacks_of(&locks->analysis->stacks, event->stack) : 0;
    const struct goroutine *holder =
        woken ? goroutines_find(&locks->analysis->goroutines, event->goroutine) : NULL;
    struct lock_waiter *giver =
        woken ? objects_find(&locks->waiters, (uint64_t)event->goroutine) : NULL;
    struct ended ended = {
        .g = g,
        .lock = waiter->announced ? waiter->announced
                                  : lock_by_stacks(locks, waiter->stack, stack, waiter->reason),
        .waiter = waiter,
        .begin_ns = g->since_ns,
        .end_ns = event->time_ns,
        .holder = woken ? event->goroutine : TRAIL_NONE,
        .holder_name = holder ? holder->name : 0,
        .woken = stack,
    };
    waiter->waits = false;
    waiter->announced = NULL;
    if (giver && giver->gives_up && giver->gives_up == ended.lock)
        giver->released = stack;
    if (woken && ended.lock && ended.lock->futex &&
        !futexes_leave(&locks->futexes, &locks->analysis->stacks, ended.lock->futex,
                       event->goroutine, stack, event->time_ns))
        return false;
    return ended.lock && !locks->analysis->stacks.failed && count_wait(locks, &ended) &&
           chain_build(locks, &ended);
}

static void waiter_drop(struct locks *locks, int64_t goroutine)
{
    const struct lock_waiter *waiter = objects_find(&locks->waiters, (uint64_t)goroutine);
    if (!waiter)
        return;
    for (unsigned i = 0; i < waiter->piece_count; i++)
        link_drop(locks, waiter->pieces[i].chain);
    objects_drop(&locks->waiters, (uint64_t)goroutine);
}

static bool take_transition(void *part, struct goroutine *g, const trail_event *event)
{
    struct locks *locks = part;
    unsigned to = event->transition.to;
    if (event->transition.from <= TRAIL_GO_NOT_EXIST)
        waiter_drop(locks, g->id); /* another goroutine with the same ID */
    struct lock_waiter *waiter = objects_find(&locks->waiters, (uint64_t)g->id);
    if (waiter && waiter->waits && !wait_ends(locks, g, waiter, event))
        return false;
    if (waiter && waiter->gives_up && !count_hold(locks, waiter))
        return false;
    if (to == TRAIL_GO_WAITING)
        return wait_begins(locks, g, event);
    if (to == TRAIL_GO_NOT_EXIST)
        waiter_drop(locks, g->id);
    return true;
}

/* MARK: The end */

/* Sets the holder of the lock of an open wait. */
static void note_holder(const struct locks *locks, const struct goroutine *g, trail_lock *row)
{
    const struct wait_facts *facts = wait_facts_of(&locks->analysis->names, g->reason);
    struct holder holder = {.goroutine = TRAIL_NONE};
    if (facts)
        holder = holders_find(locks->holders, facts->kind, facts->object);
    row->holder = holder.goroutine;
    row->holder_name = holder.name;
}

/* Counts waits that have not ended. */
static bool count_open(struct locks *locks, const struct goroutine *g, struct lock_waiter *waiter,
                       int64_t now)
{
    int64_t ns = ns_between(g->since_ns, now);
    struct lock *lock = waiter->announced ? waiter->announced
                                          : lock_by_stacks(locks, waiter->stack, 0, waiter->reason);
    if (!lock)
        return false;
    lock->row.open++;
    ns_add(&lock->row.open_ns, ns);
    if (ns > lock->row.longest_open.ns)
        note_holder(locks, g, &lock->row);
    note_named(locks, &lock->row.longest_open, &lock->row.longest_open_name, ns, g->since_ns,
               g->id);
    return true;
}

static bool finish_waiters(struct locks *locks, int64_t now)
{
    struct idmap_slot *waiters = idmap_sorted(&locks->waiters.map);
    bool good = waiters != NULL;
    for (size_t i = 0; good && i < locks->waiters.map.count; i++) {
        struct lock_waiter *waiter = waiters[i].value;
        int64_t id = (int64_t)waiters[i].id;
        const struct goroutine *g = goroutines_find(&locks->analysis->goroutines, id);
        good = count_hold(locks, waiter);
        if (good && g && waiter->waits && locks->analysis->counting && counts(locks, g))
            good = count_open(locks, g, waiter, now);
    }
    free(waiters);
    return good;
}

static int64_t waited_ns(const trail_lock *row)
{
    return (int64_t)((uint64_t)row->wait.sum_ns + (uint64_t)row->open_ns);
}

/*
 * Whether the object delivers work. A semaphore is a lock if mostly its own waiters end the waits.
 */
static bool brings_work(const struct lock *lock)
{
    return lock->for_work && lock->row.hold.count == 0 && !(lock->futex && lock->row.can_be_held) &&
           lock->among_ns <= waited_ns(&lock->row) / 2;
}

/*
 * Conditions and the like, which deliver work, come after locks; so do objects that nothing waited
 * for.
 */
static bool is_behind(const struct lock *lock)
{
    return waited_ns(&lock->row) == 0 || brings_work(lock);
}

static int by_waiting(const void *a, const void *b)
{
    const struct lock *x = *(struct lock *const *)a, *y = *(struct lock *const *)b;
    if (is_behind(x) != is_behind(y))
        return is_behind(x) ? 1 : -1;
    int64_t x_ns = waited_ns(&x->row), y_ns = waited_ns(&y->row);
    return ORDER(y_ns, x_ns) ?: ORDER(y->row.hold.sum_ns, x->row.hold.sum_ns) ?:
           ORDER(x->place, y->place);
}

/* Drops rows without a selected goroutine, and sorts the others. */
static void finish_rows(struct locks *locks)
{
    size_t count = 0;
    for (size_t i = 0; i < locks->count; i++) {
        struct lock *lock = locks->all[i];
        lock->place = i;
        if (lock->row.wait.count == 0 && lock->row.open == 0 && lock->row.hold.count == 0)
            continue;
        lock->row.can_be_held |= lock->futex && futexes_is_lock(&locks->futexes, lock->futex);
        locks->all[i] = locks->all[count];
        locks->all[count++] = lock;
    }
    if (count > 0)
        qsort(locks->all, count, sizeof(void *), by_waiting);
    for (size_t i = 0; i < locks->count; i++)
        locks->all[i]->place = i;
    locks->row_count = count;
}

static int by_lock(const void *a, const void *b)
{
    const struct lock_place_row *x = a, *y = b;
    return ORDER(x->lock->place, y->lock->place) ?: ORDER(x->kind, y->kind) ?:
           ORDER(y->row.ns, x->row.ns) ?: ORDER(x->row.stack, y->row.stack) ?:
           ORDER(x->row.released, y->row.released);
}

static bool finish_places(struct locks *locks)
{
    if (locks->place_count == 0)
        return true;
    qsort(locks->places, locks->place_count, sizeof *locks->places, by_lock);
    locks->place_rows = calloc(locks->place_count, sizeof *locks->place_rows);
    if (!locks->place_rows)
        return false;
    for (size_t i = 0; i < locks->place_count; i++) {
        trail_lock *row = &locks->places[i].lock->row;
        enum lock_place_kind kind = locks->places[i].kind;
        const trail_lock_place **first = kind == LOCK_HELD ? &row->held : &row->waiters;
        size_t *count = kind == LOCK_HELD ? &row->held_count : &row->waiter_count;
        if (kind == LOCK_WOKEN) {
            if (row->woken == 0) /* the first of them ended most of the waiting time */
                row->woken = locks->places[i].row.stack;
            continue;
        }
        locks->place_rows[i] = locks->places[i].row;
        if (*count == 0)
            *first = &locks->place_rows[i];
        ++*count;
    }
    return true;
}

static bool finish_chains(struct locks *locks)
{
    size_t links = 0, used = 0;
    for (size_t i = 0; i < locks->chain_count; i++)
        links += locks->chains[i].piece.chain->depth;
    if (links == 0)
        return true;
    locks->chain_rows = calloc(locks->chain_count, sizeof *locks->chain_rows);
    locks->link_rows = calloc(links, sizeof *locks->link_rows);
    if (!locks->chain_rows || !locks->link_rows)
        return false;
    for (size_t i = 0; i < locks->chain_count; i++) {
        const struct lock_chain *chain = &locks->chains[i];
        locks->chain_rows[i] = (trail_lock_chain){
            .begin_ns = chain->piece.begin_ns,
            .end_ns = chain->piece.end_ns,
            .links = &locks->link_rows[used],
            .link_count = chain->piece.chain->depth,
            .others = chain->others,
        };
        for (const struct lock_link *link = chain->piece.chain; link; link = link->next)
            locks->link_rows[used++] = link->row;
    }
    return true;
}

static bool window_ends(void *part, int64_t now)
{
    struct locks *locks = part;
    if (!finish_waiters(locks, now))
        return false;
    finish_rows(locks);
    return finish_places(locks) && finish_chains(locks);
}

/* MARK: The part */

static bool init(void *part, struct trail_analysis *analysis)
{
    struct locks *locks = part;
    locks->holders = analysis_object(analysis, &holders_part);
    locks->analysis = analysis;
    locks->waiters = OBJECTS_OF(struct lock_waiter);
    futexes_init(&locks->futexes);
    locks->link_slab.object_size = sizeof(struct lock_link);
    return true;
}

static void drop(void *part)
{
    struct locks *locks = part;
    for (size_t i = 0; i < locks->count; i++) {
        trail_histogram_free(&locks->all[i]->row.wait);
        trail_histogram_free(&locks->all[i]->row.hold);
        idmap_free(&locks->all[i]->waited);
        free(locks->all[i]);
    }
    free((void *)locks->all);
    idmap_free(&locks->by_name);
    idmap_free(&locks->by_stacks);
    idmap_free(&locks->held_texts);
    arena_free(&locks->texts);
    objects_free(&locks->waiters);
    futexes_free(&locks->futexes);
    slab_free(&locks->link_slab);
    intern_free(&locks->place_keys);
    free(locks->places);
    free(locks->place_rows);
    free(locks->chain_rows);
    free(locks->link_rows);
}

const struct analysis_part locks_part = {
    .what = TRAIL_ANALYZE_LOCKS,
    .size = sizeof(struct locks),
    .uses_goroutines = true,
    .uses_stacks = true,
    .init = init,
    .free = drop,
    .window_ends = window_ends,
    .kinds = PART_KIND(LOG),
    .event = take_log,
    .leaves = take_transition,
};

size_t trail_analysis_locks(const trail_analysis *analysis, const trail_lock *const **rows)
{
    _Static_assert(offsetof(struct lock, row) == 0, "a lock begins with its row");
    const struct locks *locks = analysis_object(analysis, &locks_part);
    *rows = locks ? (const trail_lock *const *)locks->all : NULL;
    return locks ? locks->row_count : 0;
}

size_t trail_analysis_lock_chains(const trail_analysis *analysis, const trail_lock_chain **rows)
{
    const struct locks *locks = analysis_object(analysis, &locks_part);
    *rows = locks ? locks->chain_rows : NULL;
    return locks && locks->chain_rows ? locks->chain_count : 0;
}
