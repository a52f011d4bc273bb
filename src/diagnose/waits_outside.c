/* Sleeps, system calls, connections and timers: see waits.h. */
#include "diagnose/waits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"
#include "words/place.h"

/* An answer arrives at most this long after the same program has written it. */
#define REPLY_MOST_NS 2000000

/* The program's own frame that called the first one of this function; or no frame. */
static trail_place calling(struct waits *waits, const struct stack_row *row, trail_name function)
{
    size_t i = 0;
    while (i < row->count && row->places[i].function != function)
        i++;
    while (++i < row->count)
        if (stacks_rank(&waits->analysis->stacks, &row->places[i]) == FRAME_OWN)
            return row->places[i];
    return (trail_place){0};
}

/* Whether it is a function literal of Go: "main.main.func1", "main.main.func1.2". */
static bool has_no_name(trail_string function)
{
    static const char mark[] = ".func";
    const char *slash = memrchr(function.data, '/', function.size);
    const char *begin = slash ? slash : function.data;
    size_t size = function.size - (size_t)(begin - function.data);
    while (size > 0 && (isdigit((unsigned char)begin[size - 1]) || begin[size - 1] == '.'))
        size--;
    size_t before = size - (size >= strlen(mark) ? strlen(mark) : size);
    /* "main.func1" is a function. */
    return size < function.size - (size_t)(begin - function.data) && before > 0 &&
           memcmp(begin + before, mark, strlen(mark)) == 0 && memchr(begin, '.', before) &&
           begin[before - 1] != ')';
}

/* Returns the name of the place with its caller's: a helper's. */
static trail_name name_helper(struct waits *waits, trail_name function, trail_name place,
                              const trail_place *caller)
{
    struct names *names = &waits->analysis->names;
    char text[2 * PLACE_TEXT_SIZE];
    trail_name by = waits_name_frame(waits, caller);
    trail_string in_text = names_text(names, place), by_text = names_text(names, by);
    (void)snprintf(text, sizeof text, "%.*s, called by %.*s", (int)in_text.size, in_text.data,
                   (int)by_text.size, by_text.data);
    trail_name name = names_of_text(names, text);
    struct helper *helper = objects_get(&waits->helpers, name);
    if (helper)
        *helper = (struct helper){function, place, caller->function, by};
    return helper ? name : 0;
}

/* Returns where a stack waits, of sleeps with the caller, which is found once for each stack; NULL
 * if out of memory. */
static const struct wait_place *place_of_stack(struct waits *waits, trail_stack stack,
                                               enum wire_wait kind)
{
    uint64_t key = (uint64_t)stack << 1 | (kind == WIRE_WAIT_SLEEP);
    struct wait_place *place = objects_find(&waits->wait_places, key);
    if (place)
        return place;
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    trail_place at = stacks_sleeper(&waits->analysis->stacks, stack), caller = {0};
    place = objects_get(&waits->wait_places, key);
    if (!place || at.function == 0)
        return place;
    if (kind == WIRE_WAIT_SLEEP)
        caller = calling(waits, &row, at.function);
    *place = (struct wait_place){
        .function = at.function, .place = waits_name_frame(waits, &at), .caller = caller.function};
    if (caller.function == 0)
        return place;
    place->with_caller = name_helper(waits, at.function, place->place, &caller);
    place->called = !has_no_name(names_text(&waits->analysis->names, caller.function));
    return place->with_caller ? place : NULL;
}

/* Notes that the function sleeps for this caller; 0: it is where its goroutine begins. */
static bool note_caller(struct waits *waits, trail_name sleeps, trail_name caller)
{
    void *known = idmap_find(&waits->callers, sleeps), *its = (void *)((uintptr_t)caller + 1);
    if (known == its || known == &waits->callers)
        return true;
    return idmap_put(&waits->callers, sleeps, known ? (void *)&waits->callers : its);
}

const struct helper *waits_helper(const struct waits *waits, trail_name place)
{
    const struct helper *helper = objects_find(&waits->helpers, place);
    bool several = helper && idmap_find(&waits->callers, helper->function) == &waits->callers;
    return several ? helper : NULL;
}

trail_name waits_sleep_place(const struct waits *waits, trail_name place)
{
    const struct helper *helper = objects_find(&waits->helpers, place);
    return helper && !waits_helper(waits, place) ? helper->place : place;
}

/* Sets the function and place of a wait; of a sleep also the caller, which may be what sleeps. */
static bool place_wait(struct waits *waits, trail_stack stack, struct outside_wait *wait)
{
    const struct wait_place *at = place_of_stack(waits, stack, wait->kind);
    if (!at || at->function == 0)
        return at != NULL;
    wait->function = at->function;
    wait->place = at->place;
    if (at->caller != 0) {
        wait->place = at->with_caller;
        wait->caller = at->caller;
        wait->called = at->called;
    }
    return wait->kind != WIRE_WAIT_SLEEP || note_caller(waits, at->function, at->caller);
}

void waits_settle_sleeps(struct waits *waits)
{
    EACH(struct outside_row, row, waits->outside.rows, waits->outside.count) {
        const struct helper *helper = waits_helper(waits, row->place);
        row->function = helper ? helper->caller : row->function;
        row->place = waits_sleep_place(waits, row->place);
        row->peer.place = waits_sleep_place(waits, row->peer.place);
        row->slept_at.key = waits_sleep_place(waits, (trail_name)row->slept_at.key);
    }
}

/* Whether a sleep is SQLite's, which sleeps only while a database is locked. */
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

bool waits_enter_outside(struct waits *waits, struct goroutine *g, trail_name wait,
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
    struct outside_wait begun = {
        .goroutine = g->id,
        .begin_ns = event->time_ns,
        .exec_ns = goroutine_ran_ns(g, event->time_ns),
        .kind = kind,
        .wait = wait,
        .function = names_kind(&waits->analysis->names, g->name),
        .place = names_kind(&waits->analysis->names, g->name),
        .waiter = names_kind(&waits->analysis->names, g->name),
        .in_sqlite = kind == WIRE_WAIT_SLEEP && is_in_sqlite(waits, stack),
        .of_server = of_server,
    };
    return place_wait(waits, stack, &begun) && !waits->analysis->stacks.failed &&
           outside_begin(&waits->outside, &begun);
}

/* Whether the function belongs to a Go package that calls the system for the program. */
static bool is_of_library(const struct waits *waits, trail_name function)
{
    static const char *const packages[] = {
        "os.",    "os/",  "syscall.", "internal/", "io.",           "net.",     "net/",
        "bufio.", "fmt.", "log.",     "crypto/",   "golang.org/x/", "database/"};
    for (size_t i = 0; i < sizeof packages / sizeof *packages; i++)
        if (text_begins(names_text(&waits->analysis->names, function), packages[i]))
            return true;
    return false;
}

trail_place waits_calling_frame(const struct waits *waits, const struct stack_row *stack)
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
    CONNECTION_REQUEST, /* waits for the answer that another goroutine reads */
    CONNECTION_POOLS    /* waits for a connection or permit of this of waits_pools, ... */
};

const char *const waits_pools[WAITS_POOLS] = {
    [WAITS_POOL_SQL] = "the connection pool of database/sql",
    [WAITS_POOL_SEMAPHORE] = "a semaphore.Weighted",
    [WAITS_POOL_HTTP] = "the connections to a host of net/http (MaxConnsPerHost)",
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
        {"database/sql.(*DB).conn", CONNECTION_POOLS + WAITS_POOL_SQL},
        {"golang.org/x/sync/semaphore.(*Weighted).Acquire",
         CONNECTION_POOLS + WAITS_POOL_SEMAPHORE},
        {"net/http.(*Transport).getConn", CONNECTION_POOLS + WAITS_POOL_HTTP},
    };
    struct stack_row row = stacks_get(&waits->analysis->stacks, stack);
    bool inner = true; /* waits within what a pool calls are not waits for the pool */
    for (size_t n = 0; n < row.count; n++) {
        trail_string function = names_text(&waits->analysis->names, row.places[n].function);
        for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
            if (text_is(function, functions[i].function) &&
                (inner || functions[i].what < CONNECTION_POOLS))
                return functions[i].what;
        inner &= text_begins(function, "runtime.");
    }
    return CONNECTION_NONE;
}

/* The slow path of connection_of. */
static __attribute__((noinline)) enum connection connection_make(struct waits *waits,
                                                                 trail_stack stack)
{
    struct connections *connections = &waits->connections;
    enum connection what = connection_of_frames(waits, stack);
    if (GROW_ZEROED(connections->by_stack, connections->stack_capacity, (size_t)stack + 1))
        connections->by_stack[stack] = (uint8_t)(what + 1);
    return what;
}

static enum connection connection_of(struct waits *waits, trail_stack stack)
{
    const struct connections *connections = &waits->connections;
    if (__builtin_expect(stack < connections->stack_capacity && connections->by_stack[stack] != 0,
                         1))
        return (enum connection)(connections->by_stack[stack] - 1);
    return connection_make(waits, stack);
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
 * Whether the goroutine waits to read an answer that the program needs. A server, too, reads after
 * it has written, but only the next request, which may come at any time. So a read by a goroutine
 * that accepts connections, or that was created by one that does, counts only within a region.
 */
static bool is_answer(const struct waits *waits, const struct goroutine *g)
{
    const struct connections *connections = &waits->connections;
    bool known = g->id == 1 || has_entry(&waits->families.of_member, g->id);
    return g->region || (known && !has_entry(&connections->accepts, g->id) &&
                         !has_entry(&connections->serves, g->id));
}

bool waits_enter_answer(struct waits *waits, struct goroutine *g, const trail_event *event)
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
    trail_place own = waits_calling_frame(waits, &stack);
    struct outside_wait begun = {
        .goroutine = g->id,
        .begin_ns = event->time_ns,
        .exec_ns = goroutine_ran_ns(g, event->time_ns),
        .kind = WIRE_WAIT_READ,
        .wait = waits->network,
        .function = own.function,
        .place = waits_name_frame(waits, &own),
    };
    g->outside = true;
    return outside_begin(&waits->outside, &begun);
}

/* An answer has arrived, from a server if `waker` is known. */
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
    row->start = names_kind(&waits->analysis->names, g->name);
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
    blame_most_add(&row->answered_by, connections->reply_by, ns);
    if (connections->slept_at != 0 && connections->slept_since_ns >= outside->begin_ns)
        blame_most_add(&row->slept_at, connections->slept_at,
                       ns_between(connections->slept_since_ns, connections->slept_until_ns));
}

/* A system call of Go begins. Returns false if out of memory. */
static bool go_call_begins(struct waits *waits, struct goroutine *g, int64_t now)
{
    enum connection what = connection_of(waits, g->outer);
    if (what == CONNECTION_ACCEPT)
        return put_entry(&waits->connections.accepts, g->id);
    g->asked |= what == CONNECTION_WRITE;
    if (what == CONNECTION_WRITE && has_entry(&waits->connections.serves, g->id)) {
        struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
        trail_place own = waits_calling_frame(waits, &stack);
        waits->connections.reply = waits_name_frame(waits, &own);
        waits->connections.reply_ns = now;
        waits->connections.reply_by = names_kind(&waits->analysis->names, g->name);
        const struct outside_now *slept = objects_find(&waits->outside.now, (uint64_t)g->id);
        bool last = slept && slept->row != 0 && !slept->waits && slept->wait == waits->sleep;
        waits->connections.slept_at = last ? slept->place : 0;
        waits->connections.slept_since_ns = last ? slept->begin_ns : 0;
        waits->connections.slept_until_ns = last ? slept->end_ns : 0;
    }
    return true;
}

bool waits_call_begins(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    const struct follow *follow = &waits->analysis->goroutines.follow;
    if (waits->is_go) {
        g->outer = stacks_of(&waits->analysis->stacks, event->transition.stack);
        return go_call_begins(waits, g, event->time_ns) && !waits->analysis->stacks.failed;
    }
    if (!follow->announced.heard || follow->announced.text == 0)
        return true;
    trail_name wait = follow_wait(follow, event);
    return waits_enter_outside(waits, g, wait, event) &&
           idmap_put(&waits->calls, (uint64_t)g->id, (void *)(uintptr_t)wait);
}

/*
 * If no P is idle, a P looks at its timers when a goroutine stops, within this time.
 */
#define LATE_MOST_NS 50000

/* The sleep of a Go goroutine has ended: counts it if another goroutine had just been preempted. */
static void note_late(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    const struct outside_now *now = objects_find(&waits->outside.now, (uint64_t)g->id);
    struct outside_row *row = now && now->row != 0 ? &waits->outside.rows[now->row - 1] : NULL;
    const struct preempted *by =
        event->proc >= 0 ? &waits->preempted[event->proc % PREEMPTED_PROCS] : NULL;
    if (!row || !by || event->goroutine >= 0 || by->proc != event->proc || by->ran_ns == 0 ||
        ns_between(by->ns, event->time_ns) > LATE_MOST_NS)
        return;
    int64_t ns = ns_between(g->since_ns, event->time_ns);
    ns = ns < by->ran_ns ? ns : by->ran_ns;
    row->late++;
    ns_add(&row->late_ns, ns);
    int64_t most = row->late_by.key;
    blame_most_add(&row->late_by, by->name, ns);
    if (row->late_by.key != most)
        row->late_run = (trail_longest){0};
    if (row->late_by.key == by->name)
        longest_note(&row->late_run, by->ran_ns, ns_between(by->ran_ns, by->ns), by->goroutine);
}

/* Whether the time-out of a context ended the wait: a goroutine is created for that. */
static bool is_deadline(const struct waits *waits, const trail_event *event)
{
    return event->goroutine >= 0 &&
           text_begins(names_text(&waits->analysis->names, waits_start(waits, event->goroutine)),
                       "context.WithDeadline");
}

bool waits_leave_outside(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    trail_name call = 0;
    if (g->state != TRAIL_GO_WAITING && g->state != TRAIL_GO_SYSCALL)
        return true;
    if (g->state == TRAIL_GO_SYSCALL)
        call = (trail_name)(uintptr_t)idmap_remove(&waits->calls, (uint64_t)g->id);
    if (call && ns_between(g->since_ns, event->time_ns) >= BLAME_OTHERS_NS &&
        !waits_blame(waits, g, NULL, 0, call, event))
        return false;
    if (!waits->analysis->counting)
        return true;
    if (waits->is_go && is_deadline(waits, event)) { /* no answer: see waits_leave_timed */
        outside_break(&waits->outside, g->id);
        return true;
    }
    const struct goroutine *waker =
        event->goroutine == g->id ? NULL
                                  : goroutines_find(&waits->analysis->goroutines, event->goroutine);
    answer_leave(waits, g, waker, event->time_ns);
    if (waits->is_go && g->reason == waits->sleep)
        note_late(waits, g, event);
    if (waits->owners.map.count > 0 && !waits_leave_owned(waits, g, event->time_ns))
        return false;
    return outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, waker);
}

/* What a system call of Go is for, by the functions that it is called from. */
static enum wire_wait kind_of_call(const struct waits *waits, const struct stack_row *stack)
{
    static const struct {
        const char *part;
        enum wire_wait kind;
    } kinds[] = {
        {"syscall.Flock", WIRE_WAIT_FILE_LOCK},
        {"golang.org/x/sys/unix.Flock", WIRE_WAIT_FILE_LOCK},
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

bool waits_go_call_ends(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    enum wire_wait kind = kind_of_call(waits, &stack);
    const char *title = kind == WIRE_WAIT_KERNEL ? "system call" : wire_wait_kinds[kind].title;
    if (stack.count == 0)
        return true;
    trail_place own = waits_calling_frame(waits, &stack);
    struct outside_wait call = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .exec_ns = g->exec_ns,
        .kind = kind,
        .wait = names_of_text(names, title),
        .function = own.function,
        .place = waits_name_frame(waits, &own),
        .waiter = names_kind(&waits->analysis->names, g->name),
    };
    return outside_begin(&waits->outside, &call) &&
           outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, NULL);
}

/* Whether what the goroutine waits for is needed within a region, or to answer a request. */
static bool is_request(const struct waits *waits, const struct goroutine *g)
{
    return g->region || has_entry(&waits->connections.serves, g->id);
}

bool waits_leave_timed(struct waits *waits, struct goroutine *g, const trail_event *event)
{
    bool deadline = is_deadline(waits, event);
    if (connection_of(waits, g->outer) == CONNECTION_REQUEST && !deadline)
        return true;
    if ((event->goroutine >= 0 && !deadline) || event->transition.to != TRAIL_GO_RUNNABLE) {
        if (g->outside)
            outside_break(&waits->outside, g->id);
        return true;
    }
    struct stack_row stack = stacks_get(&waits->analysis->stacks, g->outer);
    if (stack.count == 0)
        return true;
    g->outside = true;
    trail_place own = deadline ? waits_calling_frame(waits, &stack) : stack.places[stack.own];
    struct outside_wait timed = {
        .goroutine = g->id,
        .begin_ns = g->since_ns,
        .exec_ns = g->exec_ns,
        .kind = deadline ? WIRE_WAIT_NONE : WIRE_WAIT_SLEEP,
        .wait = g->reason,
        .function = own.function,
        .place = waits_name_frame(waits, &own),
        .waiter = names_kind(&waits->analysis->names, g->name),
        .deadline = deadline,
    };
    if (!waits->analysis->counting)
        return true;
    const struct outside_now *now = objects_find(&waits->outside.now, (uint64_t)g->id);
    bool asked = now && now->woke > 0;
    if (!outside_begin(&waits->outside, &timed))
        return false;
    now = objects_find(&waits->outside.now, (uint64_t)g->id);
    struct outside_row *row = now ? &waits->outside.rows[now->row - 1] : NULL;
    if (row && deadline) {
        row->start = names_kind(&waits->analysis->names, g->name);
        row->in_region |= is_request(waits, g);
    } else {
        note_late(waits, g, event);
        if (row)
            row->asked += asked;
    }
    return outside_end(&waits->outside, g->id, event->time_ns, g->exec_ns, NULL);
}

bool waits_asks(struct waits *waits, trail_stack stack)
{
    return connection_of(waits, stack) == CONNECTION_REQUEST;
}

trail_name waits_pool(struct waits *waits, trail_stack stack)
{
    enum connection what = connection_of(waits, stack);
    return what >= CONNECTION_POOLS ? waits->pools[what - CONNECTION_POOLS] : 0;
}

bool waits_is_pool(const struct waits *waits, trail_name wait)
{
    for (size_t i = 0; i < WAITS_POOLS; i++)
        if (wait == waits->pools[i])
            return true;
    return false;
}

bool waits_serves(struct waits *waits, int64_t creator, int64_t goroutine)
{
    return !has_entry(&waits->connections.accepts, creator) ||
           put_entry(&waits->connections.serves, goroutine);
}
