/* Counts each wait against the function that caused it: see blame.h. */
#include "analyze/blame.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/aside.h"
#include "analyze/goroutines.h"
#include "base/grow.h"
#include "base/share.h"

enum { PIECES = 8 }; /* a power of two */

/* A wait, or a part of one, of a goroutine. */
struct piece {
    int64_t begin_ns, end_ns, begin_serial, end_serial;
    int64_t ready_ns; /* total of several ready times as one piece; 0: a wait */
    int64_t exec_ns;  /* with `in_vain`: how long the goroutine had run */
    uint32_t row;     /* what held it up, + 1; 0: nothing in the trace, or not a lock */
    trail_name wait, outside_at;
    bool room;    /* `row` counts only for waits for room, too */
    bool back;    /* `row` counts only for waits of that row */
    bool in_vain; /* a wait that no other goroutine ended, and that may go on */
};

_Static_assert(sizeof(struct piece) == 64, "a cache line: waits of others look at all pieces");

/* The last waits of a goroutine, in order of their ends; `next` is where the next one goes. */
struct blame_past {
    struct piece pieces[PIECES];
    size_t next;
    bool goes_on; /* perhaps, the last wait in vain */
};

/* A call of one of the functions that count. */
struct call {
    enum { CALL_ADD, CALL_READY, CALL_END, CALL_TIMED_OUT, CALL_CLEAR } function;
    struct blame_wait wait; /* of the others some members: see take */
};

_Static_assert(sizeof(struct call) <= ASIDE_ITEM_SIZE, "a call is an item");

void blame_init(struct blame *blame, struct aside *const *aside)
{
    blame->aside = aside;
    blame->pasts = OBJECTS_OF(struct blame_past);
}

void blame_free(struct blame *blame)
{
    idmap_free(&blame->subjects);
    idmap_free(&blame->row_numbers);
    free(blame->rows);
    idmap_free(&blame->pair_numbers);
    free(blame->pairs);
    objects_free(&blame->pasts);
}

static void clear(struct blame *blame)
{
    objects_clear(&blame->pasts);
    idmap_clear(&blame->pair_numbers);
    blame->pair_count = 0;
    idmap_clear(&blame->subjects);
    idmap_clear(&blame->row_numbers);
    blame->count = 0;
}

static void end(struct blame *blame, int64_t goroutine)
{
    objects_drop(&blame->pasts, (uint64_t)goroutine);
}

/* MARK: Sums */

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t blame_union_ns(const struct blame_union *of)
{
    int64_t sum = of->ns;
    for (size_t i = 0; i < of->count; i++)
        ns_add(&sum, ns_between(of->last[i].begin, of->last[i].end));
    return sum;
}

int64_t blame_held_ns(const struct blame_row *row)
{
    int64_t ns = blame_union_ns(&row->held);
    return row->held_unknown ? ns : earlier(ns, row->most_held_ns);
}

static void stretch_remove(struct blame_union *of, size_t i)
{
    memmove(&of->last[i], &of->last[i + 1], (--of->count - i) * sizeof *of->last);
}

void blame_union_add(struct blame_union *of, int64_t begin, int64_t end)
{
    size_t at = of->count;
    begin = of->ns > 0 ? later(begin, of->since_ns) : begin;
    if (begin >= end)
        return;
    /* Nearly all overlap with the last stretch, and with no other. */
    struct blame_stretch *last = at > 0 ? &of->last[at - 1] : NULL;
    if (last && begin <= last->end && end >= last->begin && (at == 1 || begin > last[-1].end)) {
        *last = (struct blame_stretch){earlier(begin, last->begin), later(end, last->end)};
        return;
    }
    while (at > 0 && of->last[at - 1].end >= begin)
        at--;
    while (at < of->count && of->last[at].begin <= end) {
        begin = earlier(begin, of->last[at].begin);
        end = later(end, of->last[at].end);
        stretch_remove(of, at);
    }
    if (of->count == BLAME_STRETCHES) {
        struct blame_stretch *first = &of->last[0];
        if (at == 0)
            return;
        ns_add(&of->ns, ns_between(first->begin, first->end));
        of->since_ns = first->end;
        stretch_remove(of, 0);
        at--;
    }
    memmove(&of->last[at + 1], &of->last[at], (of->count - at) * sizeof *of->last);
    of->last[at] = (struct blame_stretch){begin, end};
    of->count++;
}

void blame_most_add(struct blame_most *most, int64_t key, int64_t ns)
{
    if (most->key == key) {
        ns_add(&most->ns, ns);
    } else if (most->ns >= ns) {
        most->ns = ns_between(ns, most->ns);
    } else {
        most->key = key;
        most->ns = ns_between(most->ns, ns);
    }
}

/* MARK: Rows */

/* Returns the number of a key, from 1, the next one if it is new; 0 if out of memory. */
static size_t number_of(struct idmap *numbers, uint64_t key)
{
    uintptr_t number = (uintptr_t)idmap_find(numbers, key);
    if (number == 0 && idmap_put(numbers, key, (void *)(numbers->count + 1)))
        number = numbers->count;
    return number;
}

static uint64_t subject_of(const struct blame_wait *wait)
{
    return (uint64_t)wait->wait << 32 | (wait->named ? 0 : wait->at);
}

static uint64_t key_of(const struct blame_wait *wait, size_t subject)
{
    return (uint64_t)subject << 33 | (uint64_t)wait->function << 1 | wait->lock;
}

static uint64_t pair_of(const struct blame_wait *wait)
{
    return (uint64_t)wait->own_start << 32 | wait->start;
}

/* Returns the number of the row, from 1; 0 if out of memory. */
static size_t row_of(struct blame *blame, const struct blame_wait *wait)
{
    size_t subject = number_of(&blame->subjects, subject_of(wait));
    uint64_t key = key_of(wait, subject);
    if (subject == 0 || !GROW(blame->rows, blame->capacity, blame->count + 1))
        return 0;
    size_t number = number_of(&blame->row_numbers, key);
    if (number > blame->count)
        blame->rows[blame->count++] = (struct blame_row){.wait = wait->wait,
                                                         .function = wait->function,
                                                         .at = wait->at,
                                                         .lock = wait->lock,
                                                         .once = wait->once,
                                                         .last_waker = TRAIL_NONE,
                                                         .named = wait->named};
    return number;
}

/* The part of `part_ns` that was spent waiting, where several waits count as one. */
static int64_t waited_ns(const struct blame_wait *wait, int64_t part_ns)
{
    double between =
        (double)wait->between_ns * share_of(part_ns, ns_between(wait->begin_ns, wait->end_ns));
    return between < (double)part_ns ? part_ns - (int64_t)between : 0;
}

/* Counts `part` of the wait. All parts of a wait are counted in order. */
static void row_add(struct blame_row *row, const struct blame_wait *wait, const struct piece *part)
{
    int64_t ns = ns_between(part->begin_ns, part->end_ns);
    if (wait->times > 0)
        ns = waited_ns(wait, ns);
    blame_union_add(&row->held, part->begin_ns, part->end_ns);
    blame_union_add(&row->serial, part->begin_serial, part->end_serial);
    if (row->lock && !wait->lock)
        return;
    ns_add(&row->ns, ns);
    if (row->waits > 0 && row->last.goroutine == wait->goroutine &&
        row->last_begin_ns == wait->begin_ns) {
        ns_add(&row->last.ns, ns);
    } else {
        row->waits += wait->times > 0 ? wait->times : 1;
        row->last =
            (trail_longest){.ns = ns, .begin_ns = part->begin_ns, .goroutine = wait->goroutine};
        row->last_begin_ns = wait->begin_ns;
    }
    if (wait->times > 0) {
        row->last.ns = earlier(row->last.ns, wait->longest_ns);
        row->last.begin_ns = wait->longest_begin_ns;
    }
    if (row->last.ns > row->longest.ns) {
        row->longest = row->last;
        row->at = row->named ? wait->at : row->at;
        row->waited_in = wait->waits_in;
    }
}

/* MARK: Pieces */

static void piece_put(struct blame_past *past, const struct piece *piece)
{
    past->pieces[past->next] = *piece;
    past->next = (past->next + 1) % PIECES;
}

/* The part of `piece` that lies in the wait. Returns false if there is none. */
static bool overlap(const struct piece *piece, const struct blame_wait *wait, struct piece *part)
{
    *part = *piece;
    part->begin_ns = later(piece->begin_ns, wait->begin_ns);
    part->end_ns = earlier(piece->end_ns, wait->end_ns);
    part->begin_serial = later(piece->begin_serial, wait->begin_serial);
    part->end_serial = later(part->begin_serial, earlier(piece->end_serial, wait->end_serial));
    return part->begin_ns < part->end_ns;
}

/*
 * Counts the parts of the wait in which the waker itself waited against those that it waited for.
 * `rest` becomes the part for which the waker is to blame.
 */
static void pass_on(struct blame *blame, const struct blame_wait *wait, struct blame_past *own,
                    const struct blame_past *waker, struct piece *rest)
{
    size_t count = 0;
    struct piece part;
    /* Pieces before the first that ended too early ended even earlier. */
    while (waker && count < PIECES &&
           overlap(&waker->pieces[(waker->next - count - 1) % PIECES], wait, &part))
        count++;
    for (; count > 0; count--) {
        const struct piece *piece = &waker->pieces[(waker->next - count) % PIECES];
        (void)overlap(piece, wait, &part);
        /* A thread that waits for the lock does not hold it, even if nothing in the trace ends
         * that wait. */
        if (!piece->row && wait->lock && piece->wait == wait->wait) {
            rest->begin_ns = later(rest->begin_ns, part.end_ns);
            rest->begin_serial = later(rest->begin_serial, part.end_serial);
        }
        if (!piece->row || (piece->room && !wait->room) || (piece->back && piece->row != rest->row))
            continue;
        row_add(&blame->rows[piece->row - 1], wait, &part);
        piece_put(own, &part);
        rest->begin_ns = later(rest->begin_ns, part.end_ns);
        rest->begin_serial = later(rest->begin_serial, part.end_serial);
    }
}

/* Counts what the waker waited for in that part of the wait for which it is to blame. */
static void count_outside(struct blame_row *row, const struct blame_wait *wait,
                          const struct blame_past *waker, int64_t since_ns)
{
    struct piece part;
    size_t i = 0;
    ns_add(&row->own_ns, ns_between(since_ns, wait->end_ns));
    for (; waker && i < PIECES; i++) {
        const struct piece *piece = &waker->pieces[(waker->next - i - 1) % PIECES];
        if (!overlap(piece, wait, &part) || part.begin_ns < since_ns)
            break;
        int64_t ns = ns_between(part.begin_ns, part.end_ns);
        if (piece->ready_ns > 0)
            ns = (int64_t)((double)ns *
                           share_of(piece->ready_ns, ns_between(piece->begin_ns, piece->end_ns)));
        ns_add(&row->outside_ns, ns);
        if (ns_between(piece->begin_ns, wait->begin_ns) >= BLAME_BEFORE_NS &&
            ns > ns_between(wait->begin_ns, wait->end_ns) / 2)
            ns_add(&row->begun_ns, ns);
        blame_union_add(&row->outside_held, part.begin_ns, part.end_ns);
        blame_most_add(&row->outside, piece->wait, ns);
        blame_most_add(&row->outside_at, piece->outside_at, ns);
    }
    row->outside_least |= i == PIECES;
}

/*
 * Whether the waker had the same kind of wait not long ago: it may be giving back what it got then.
 */
static bool waited_so(const struct blame_past *waker, uint32_t row)
{
    for (size_t i = 0; waker && i < PIECES; i++)
        if (waker->pieces[i].row == row)
            return true;
    return false;
}

static struct blame_past *past_of(struct blame *blame, int64_t goroutine)
{
    return objects_get(&blame->pasts, (uint64_t)goroutine);
}

/* Counts a wait by start functions. Returns false if out of memory. */
static bool pair_add(struct blame *blame, const struct blame_wait *wait)
{
    size_t number = number_of(&blame->pair_numbers, pair_of(wait));
    if (number == 0 || !GROW(blame->pairs, blame->pair_capacity, number))
        return false;
    if (number > blame->pair_count)
        blame->pairs[blame->pair_count++] =
            (struct blame_pair){.waiter = wait->own_start, .waker = wait->start};
    struct blame_pair *pair = &blame->pairs[number - 1];
    int64_t ns = ns_between(wait->begin_ns, wait->end_ns);
    pair->waits++;
    ns_add(&pair->ns, ns);
    blame_union_add(&pair->waiting, wait->begin_ns, wait->end_ns);
    if (ns > pair->longest.ns) {
        pair->longest = (trail_longest){ns, wait->begin_ns, wait->goroutine};
        pair->wait = wait->wait;
        pair->at = wait->at;
    }
    return true;
}

static bool ready(struct blame *blame, int64_t goroutine, int64_t begin_ns, int64_t end_ns,
                  trail_name name)
{
    struct blame_past *past = past_of(blame, goroutine);
    int64_t ns = ns_between(begin_ns, end_ns);
    if (!past || ns <= 0)
        return past != NULL;
    struct piece *last = &past->pieces[(past->next - 1) % PIECES];
    if (last->ready_ns > 0 && last->end_ns <= begin_ns) {
        last->end_ns = end_ns;
        ns_add(&last->ready_ns, ns);
    } else {
        piece_put(past, &(struct piece){
                            .begin_ns = begin_ns, .end_ns = end_ns, .ready_ns = ns, .wait = name});
    }
    return true;
}

/*
 * A wait goes on if the goroutine was woken but another one took the permit, or if it waits again
 * at once after a time limit. The wait then begins when the first one did, which is dropped.
 */
static void resume(struct blame_past *own, struct blame_wait *wait)
{
    own->goes_on = false;
    for (size_t i = 1; i <= PIECES; i++) {
        size_t at = (own->next - i) % PIECES;
        const struct piece *piece = &own->pieces[at];
        bool brief = ns_between(piece->begin_ns, piece->end_ns) < BLAME_OTHERS_NS;
        if (piece->ready_ns > 0 || (brief && !piece->in_vain))
            continue; /* it took a lock again */
        if (!piece->in_vain || piece->wait != wait->wait ||
            ns_between(piece->exec_ns, wait->exec_ns) > BLAME_TOGETHER_NS)
            return;
        wait->begin_ns = piece->begin_ns;
        wait->begin_serial = piece->begin_serial;
        for (; own->next != at; own->pieces[own->next] = (struct piece){0})
            own->next = (own->next - 1) % PIECES;
        return;
    }
}

/* Its last wait ended at a time limit, and may go on. */
static void timed_out(struct blame *blame, int64_t goroutine)
{
    struct blame_past *past = objects_find(&blame->pasts, (uint64_t)goroutine);
    for (size_t i = 1; past && i <= PIECES; i++) {
        struct piece *piece = &past->pieces[(past->next - i) % PIECES];
        if (piece->ready_ns > 0)
            continue;
        piece->in_vain |= piece->row == 0 && piece->wait != 0;
        past->goes_on |= piece->in_vain;
        return;
    }
}

static bool add(struct blame *blame, const struct blame_wait *wait)
{
    struct blame_past late = {.next = 0}; /* its own was put when it ended */
    struct blame_past *own = wait->late ? &late : past_of(blame, wait->goroutine);
    struct blame_wait resumed;
    if (!own)
        return false;
    if (own->goes_on && (!wait->lock || wait->may_go_on)) {
        resumed = *wait;
        resume(own, &resumed);
        wait = &resumed;
    }
    struct piece rest = {.begin_ns = wait->begin_ns,
                         .end_ns = wait->end_ns,
                         .begin_serial = wait->begin_serial,
                         .end_serial = later(wait->begin_serial, wait->end_serial),
                         .room = wait->room,
                         .back = wait->back,
                         .wait = wait->wait,
                         .outside_at = wait->outside_at};
    if (ns_between(wait->begin_ns, wait->end_ns) <= 0)
        return true; /* a damaged clock */
    if (wait->waker == TRAIL_NONE || wait->waker == wait->goroutine) {
        rest.in_vain = wait->may_go_on;
        own->goes_on |= wait->may_go_on;
        rest.exec_ns = wait->exec_ns;
        piece_put(own, &rest);
        return true;
    }
    rest.row = (uint32_t)row_of(blame, wait);
    if (rest.row == 0)
        return false;
    const struct blame_past *waker = objects_find(&blame->pasts, (uint64_t)wait->waker);
    pass_on(blame, wait, own, waker, &rest);
    struct blame_row *row = &blame->rows[rest.row - 1];
    if ((wait->back || (wait->room && row->goroutine.key == wait->waker)) &&
        waited_so(waker, rest.row))
        ns_add(&row->back_ns, ns_between(wait->begin_ns, wait->end_ns));
    count_outside(row, wait, waker, rest.begin_ns);
    if (wait->hands_over && !pair_add(blame, wait))
        return false;
    row->together += row->last_waker == wait->waker &&
                     ns_between(row->last_ns, wait->end_ns) < BLAME_TOGETHER_NS;
    row->last_ns = wait->end_ns;
    row->last_waker = wait->waker;
    row->waiter = wait->own_start;
    ns_add(&row->direct_ns, ns_between(wait->begin_ns, wait->end_ns));
    ns_add(&row->alike_ns,
           wait->start == wait->own_start ? ns_between(wait->begin_ns, wait->end_ns) : 0);
    row->place = wait->place;
    row->caller = wait->caller;
    row->most_held_ns = later(row->most_held_ns, wait->held_ns);
    row->held_unknown |= wait->held_ns == 0;
    if (rest.begin_ns < rest.end_ns) {
        row_add(row, wait, &rest);
        blame_most_add(&row->goroutine, wait->waker, ns_between(rest.begin_ns, rest.end_ns));
        row->start = row->goroutine.key == wait->waker ? wait->start : row->start;
        rest.row = wait->lock || wait->once || wait->room || wait->back ? rest.row : 0;
        piece_put(own, &rest);
    }
    return true;
}

/* MARK: Calls */

static void prefetch(const void *at, size_t size)
{
    for (size_t i = 0; at && i < size; i += 64)
        __builtin_prefetch((const char *)at + i);
}

/*
 * Prefetches what a wait will be counted in. Rows and the past of goroutines are more than a cache
 * holds: without this, waiting for them is half of the time of `add`.
 */
static void expect(const struct blame *blame, const struct blame_wait *wait)
{
    prefetch(objects_find(&blame->pasts, (uint64_t)wait->goroutine), sizeof(struct blame_past));
    prefetch(objects_find(&blame->pasts, (uint64_t)wait->waker), sizeof(struct blame_past));
    size_t subject = (uintptr_t)idmap_find(&blame->subjects, subject_of(wait));
    size_t row = (uintptr_t)idmap_find(&blame->row_numbers, key_of(wait, subject));
    if (row != 0)
        prefetch(&blame->rows[row - 1], sizeof *blame->rows);
    size_t pair = (uintptr_t)idmap_find(&blame->pair_numbers, pair_of(wait));
    if (wait->hands_over && pair != 0)
        prefetch(&blame->pairs[pair - 1], sizeof *blame->pairs);
}

static bool take(void *of, const void *item, const void *coming)
{
    struct blame *blame = of;
    const struct call *call = item;
    const struct blame_wait *wait = &call->wait;
    const struct call *next = coming;
    if (next && next->function == CALL_ADD)
        expect(blame, &next->wait);
    switch (call->function) {
    case CALL_ADD:
        return add(blame, wait);
    case CALL_READY:
        return ready(blame, wait->goroutine, wait->begin_ns, wait->end_ns, wait->wait);
    case CALL_END:
        end(blame, wait->goroutine);
        return true;
    case CALL_TIMED_OUT:
        timed_out(blame, wait->goroutine);
        return true;
    default:
        clear(blame);
        return true;
    }
}

static bool pass(struct blame *blame, const struct call *call)
{
    return *blame->aside ? aside_put(*blame->aside, take, blame, call, sizeof *call)
                         : take(blame, call, NULL);
}

bool blame_clear(struct blame *blame)
{
    return pass(blame, &(struct call){.function = CALL_CLEAR});
}

bool blame_end(struct blame *blame, int64_t goroutine)
{
    return pass(blame, &(struct call){CALL_END, {.goroutine = goroutine}});
}

bool blame_timed_out(struct blame *blame, int64_t goroutine)
{
    return pass(blame, &(struct call){CALL_TIMED_OUT, {.goroutine = goroutine}});
}

bool blame_ready(struct blame *blame, int64_t goroutine, int64_t begin_ns, int64_t end_ns,
                 trail_name name)
{
    return pass(
        blame, &(struct call){
                   CALL_READY,
                   {.goroutine = goroutine, .begin_ns = begin_ns, .end_ns = end_ns, .wait = name}});
}

bool blame_add(struct blame *blame, const struct blame_wait *wait)
{
    return *blame->aside ? pass(blame, &(struct call){CALL_ADD, *wait}) : add(blame, wait);
}
