/*
 * trail locks: a row per lock; places of waits and holds, and chains of goroutines that waited for
 * each other.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/match.h"
#include "commands/panels.h"
#include "ui/empty.h"
#include "ui/follow_up.h"
#include "ui/goroutine_filter.h"
#include "ui/lock_name.h"
#include "ui/rows.h"

/* Places printed per lock; --stacks prints all. Locks and chains printed without --limit. */
enum { PLACES = 5, ROWS = 10 };

struct request {
    struct analysis analysis;
    struct goroutine_filter filter;
    size_t limit; /* SIZE_MAX: all; 0: not given */
    bool stacks;
    const char *match;
};

static const struct option rows[] = {
    {'n', "limit", "N", "at most N locks, and N chains (default 10; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    {'s', "stacks", NULL, "show whole stacks, one frame per line", TO_FLAG(struct request, stacks)},
    {'c', "channels", NULL, "waits for channels and select as well",
     TO_FLAG(struct request, analysis.options.locks.channels)},
    {0, "match", "WORDS", "locks whose name, kind or stacks contain all these words, and no -word",
     TO_TEXT(struct request, match)},
    GOROUTINE_FILTER_ROWS(struct request, filter),
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static void panel_want(trail_analysis_options *options)
{
    options->what |= TRAIL_ANALYZE_LOCKS;
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct analysis *analysis = &request->analysis;
    int code = analysis_parse(analysis, argc, argv);
    panel_want(&analysis->options);
    analysis->options.locks.filter = goroutine_filter_of(&request->filter, analysis);
    return code;
}

/* Returns how many of `count` are shown. JSON has all, unless --limit is given. */
static size_t shown_of(const struct request *request, size_t count)
{
    size_t limit = request->limit ? request->limit : request->analysis.json ? SIZE_MAX : ROWS;
    return count < limit ? count : limit;
}

/* MARK: Which */

struct candidate {
    const struct request *request;
    const trail_lock *lock;
};

static bool stack_has(const trail_analysis *answers, trail_stack stack, const char *word)
{
    const trail_place *places;
    size_t count = trail_analysis_stack(answers, stack, &places);
    for (size_t i = 0; i < count; i++)
        if (match_part(trail_analysis_text(answers, places[i].function), word) ||
            match_part(trail_analysis_text(answers, places[i].file), word))
            return true;
    return false;
}

static bool places_have(const trail_analysis *answers, const trail_lock_place *places, size_t count,
                        const char *word)
{
    for (size_t i = 0; i < count; i++)
        if (stack_has(answers, places[i].stack, word))
            return true;
    return false;
}

static bool has_word(const void *context, const char *word)
{
    const struct candidate *candidate = context;
    const trail_analysis *answers = candidate->request->analysis.answers;
    const trail_lock *lock = candidate->lock;
    return match_part(trail_analysis_text(answers, lock->name), word) ||
           match_part(trail_analysis_text(answers, lock->kind), word) ||
           stack_has(answers, lock->waited, word) || stack_has(answers, lock->woken, word) ||
           places_have(answers, lock->waiters, lock->waiter_count, word) ||
           places_have(answers, lock->held, lock->held_count, word);
}

struct listed {
    const trail_lock *lock;
    const char *title; /* of lock_titles */
};

/* The matching locks. */
struct lock_list {
    struct listed *items;
    size_t count;
    char **titles;
};

/* Returns false if out of memory. The caller calls list_free. */
static bool list_wanted(const struct request *request, struct lock_list *list)
{
    const trail_lock *const *locks;
    size_t count = trail_analysis_locks(request->analysis.answers, &locks);
    list->items = calloc(count + 1, sizeof *list->items);
    list->titles = lock_titles(&request->analysis);
    if (!list->items || !list->titles)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!request->match ||
            match_all(request->match, has_word, &(struct candidate){request, locks[i]}))
            list->items[list->count++] = (struct listed){locks[i], list->titles[i]};
    return true;
}

static void list_free(const struct lock_list *list)
{
    free(list->items);
    lock_titles_free(list->titles);
}

/* MARK: Columns */

static void put_longest(struct row *row, const char *key, const trail_longest *longest)
{
    if (longest->ns != 0)
        row_longest(row, key, longest, "goroutine");
}

static void put_place(struct row *row, const void *of)
{
    const trail_lock_place *place = of;
    row_number(row, NULL, "count", place->count);
    row_duration(row, NULL, "ns", place->ns);
    put_longest(row, "longest", &place->longest);
    place_json(row->analysis, row->json, "stack", place->stack);
    if (place->released)
        place_json(row->analysis, row->json, "released", place->released);
}

static void put_places(struct row *row, const char *key, const trail_lock_place *places,
                       size_t count)
{
    if (row->json)
        rows_json(row->analysis, row->json, key, put_place, places, sizeof *places, count);
}

static void put_name(struct row *row, const trail_lock *lock)
{
    const char *kind = trail_analysis_wait_for(row->analysis->answers, lock->kind).kind;
    row_name(row, NULL, "kind", lock->kind);
    if (kind)
        row_word(row, NULL, "wait_kind", kind);
    if (kind && lock->name)
        row_name(row, NULL, "object", lock->name);
    row_name(row, NULL, "name", lock->name);
}

static void put_stacks(struct row *row, const trail_lock *lock)
{
    if (!row->json || (!lock->waited && !lock->woken))
        return;
    place_json(row->analysis, row->json, "waited", lock->waited);
    place_json(row->analysis, row->json, "woken", lock->woken);
}

static void put_holder(struct row *row, const trail_lock *lock)
{
    if (lock->holder == TRAIL_NONE)
        return;
    row_id(row, NULL, "holder", lock->holder);
    row_name(row, NULL, "holder_group", lock->holder_name);
}

static void put_lock(struct row *row, const void *of)
{
    const struct listed *listed = of;
    const trail_lock *lock = listed->lock;
    char identity[LOCK_NAME_SIZE];
    put_name(row, lock);
    if (row->json) {
        row_word(row, NULL, "title", listed->title);
        row_word(row, NULL, "identity", lock_identity(row->analysis, lock, identity));
    }
    row_bool(row, "can_be_held", lock->can_be_held);
    put_stacks(row, lock);
    row_number(row, NULL, "waits", lock->wait.count);
    row_duration(row, NULL, "wait_ns", lock->wait.sum_ns);
    row_spread(row, "waits> total> p50> p95> p99> max>", "wait", &lock->wait);
    put_longest(row, "longest", &lock->longest);
    if (lock->timed_out)
        row_number(row, NULL, "timed_out", lock->timed_out);
    row_number(row, NULL, "unfinished", lock->open);
    row_duration(row, "still>", "unfinished_ns", lock->open_ns);
    put_longest(row, "longest_unfinished", &lock->longest_open);
    put_holder(row, lock);
    row_number(row, "holds>", "holds", lock->hold.count);
    row_duration(row, "held>", "hold_ns", lock->hold.sum_ns);
    if (lock->hold.count > 0)
        row_spread(row, NULL, "hold", &lock->hold);
    put_longest(row, "longest_hold", &lock->longest_hold);
    put_places(row, "waiters", lock->waiters, lock->waiter_count);
    put_places(row, "held", lock->held, lock->held_count);
    if (row->table)
        row_word(row, "lock<", NULL, listed->title);
}

static void put_link(struct row *row, const void *of)
{
    const trail_lock_link *link = of;
    row_id(row, NULL, "goroutine", link->goroutine);
    row_name(row, NULL, "group", link->name);
    put_name(row, link->lock);
    row_time(row, NULL, "begin_ns", link->begin_ns);
    row_time(row, NULL, "end_ns", link->end_ns);
    if (link->holder == TRAIL_NONE)
        row_none(row, NULL, "holder");
    else
        row_id(row, NULL, "holder", link->holder);
    row_name(row, NULL, "holder_group", link->holder_name);
}

static void put_chain(struct row *row, const void *of)
{
    const trail_lock_chain *chain = of;
    row_time(row, NULL, "begin_ns", chain->begin_ns);
    row_time(row, NULL, "end_ns", chain->end_ns);
    row_number(row, NULL, "others", chain->others);
    rows_json(row->analysis, row->json, "links", put_link, chain->links, sizeof *chain->links,
              chain->link_count);
}

/* MARK: JSON */

/* Prints totals even if not all locks are shown. */
static void json_totals(const struct request *request, struct json *json, size_t wanted)
{
    uint64_t open = 0;
    int64_t open_ns = 0;
    const trail_lock *const *locks;
    size_t count = trail_analysis_locks(request->analysis.answers, &locks);
    for (size_t i = 0; i < count; i++) {
        open += locks[i]->open;
        open_ns = (int64_t)((uint64_t)open_ns + (uint64_t)locks[i]->open_ns);
    }
    json_number(json, "all", wanted);
    json_number(json, "unfinished", open);
    json_signed(json, "unfinished_ns", open_ns);
}

static void show_json(const struct request *request, const struct lock_list *list)
{
    struct json json = analysis_json_begin(&request->analysis);
    const trail_lock_chain *chains;
    size_t chain_count = trail_analysis_lock_chains(request->analysis.answers, &chains);
    json_totals(request, &json, list->count);
    rows_json(&request->analysis, &json, "locks", put_lock, list->items, sizeof *list->items,
              shown_of(request, list->count));
    rows_json(&request->analysis, &json, "chains", put_chain, chains, sizeof *chains,
              shown_of(request, chain_count));
    analysis_json_end(&json);
}

/* MARK: For people */

/* Prints the command that shows what these goroutines did at that time. */
static void show_command(const struct request *request, const char *goroutines, int64_t begin_ns,
                         int64_t ns)
{
    char command[FOLLOW_UP_SIZE];
    struct follow_up follow_up = {goroutines, begin_ns - request->analysis.span.origin_ns, ns,
                                  true};
    printf("    %s\n", follow_up_print(&request->analysis, &follow_up, command));
}

/* Prints "thread 4 work"; only the number if it has no name. */
static void put_goroutine(const struct request *request, int64_t id, trail_name name)
{
    trail_string text = analysis_text(&request->analysis, name);
    printf("%s%" PRId64, term(&request->analysis.vocabulary, TERM_task_id), id);
    if (text.size > 0) {
        putchar(' ');
        show_plain(text);
    }
}

static void show_longest(const struct request *request, const char *title,
                         const trail_longest *longest, trail_name name)
{
    char length[SHOW_SIZE], begin[SHOW_SIZE], goroutine[32];
    if (longest->ns == 0)
        return;
    printf("  %s: ", title);
    put_goroutine(request, longest->goroutine, name);
    printf(", %s from %s on\n", show_duration(length, longest->ns),
           show_duration(begin, longest->begin_ns - request->analysis.span.origin_ns));
    (void)snprintf(goroutine, sizeof goroutine, "%" PRId64, longest->goroutine);
    show_command(request, goroutine, longest->begin_ns, longest->ns);
}

/* Returns the text of places[at].stack among the first `count`; if another has the same text, with
 * what differs. */
static void distinct_text(const struct request *request, const trail_lock_place *places,
                          size_t count, size_t at, char *text, size_t size)
{
    char other[400];
    (void)place_text(&request->analysis, places[at].stack, text, size);
    for (size_t i = 0; i < count; i++) {
        if (i == at || places[i].stack == places[at].stack)
            continue;
        (void)place_text(&request->analysis, places[i].stack, other, sizeof other);
        if (strcmp(text, other) != 0)
            continue;
        place_add_difference(&request->analysis, places[at].stack, places[i].stack, text, size);
        return;
    }
}

static void show_place(const struct request *request, const char *word,
                       const trail_lock_place *places, size_t count, size_t at)
{
    const trail_lock_place *place = &places[at];
    char total[SHOW_SIZE], longest[SHOW_SIZE], number[32], text[600];
    distinct_text(request, places, count, at, text, sizeof text);
    printf("    %s x, %s in all, at most %s: %s %s", show_thousands(number, place->count),
           show_duration(total, place->ns), show_duration(longest, place->longest.ns), word, text);
    if (place->released)
        printf(", released in %s",
               place_text(&request->analysis, place->released, text, sizeof text));
    putchar('\n');
    if (!request->stacks)
        return;
    place_show(&request->analysis, place->stack, 10);
    if (!place->released)
        return;
    printf("        released in\n");
    place_show(&request->analysis, place->released, 10);
}

static void show_places(const struct request *request, const char *title, const char *word,
                        const trail_lock_place *places, size_t count)
{
    if (count > 0)
        printf("  %s:\n", title);
    size_t shown = request->stacks || count < PLACES ? count : PLACES;
    for (size_t i = 0; i < shown; i++)
        show_place(request, word, places, shown < PLACES ? shown : PLACES, i);
    if (count > PLACES && !request->stacks)
        printf("    ... and %zu more place%s; --stacks shows all\n", count - PLACES,
               plural_s(count - PLACES));
}

static void show_holder(const struct request *request, const trail_lock *lock)
{
    if (lock->holder == TRAIL_NONE)
        return;
    printf("  still held by: ");
    put_goroutine(request, lock->holder, lock->holder_name);
    putchar('\n');
}

static void show_lock(const struct request *request, const struct listed *listed)
{
    char place[400];
    const trail_lock *lock = listed->lock;
    printf("\n%s\n", listed->title);
    if (lock->waited && !lock->woken) {
        printf("  woken by: not in the trace\n");
    } else if (lock->woken) {
        printf("  woken by: %s\n",
               place_text(&request->analysis, lock->woken, place, sizeof place));
        if (request->stacks)
            place_show(&request->analysis, lock->woken, 10);
    }
    show_places(request, "waited", "in", lock->waiters, lock->waiter_count);
    show_places(request, "held", "taken in", lock->held, lock->held_count);
    show_longest(request, "longest wait", &lock->longest, lock->longest_name);
    show_longest(request, "longest hold", &lock->longest_hold, lock->longest_hold_name);
    show_longest(request, "still waiting", &lock->longest_open, lock->longest_open_name);
    show_holder(request, lock);
}

/* Returns the lock's title, or its name if it has no row. `buf` has LOCK_NAME_SIZE. */
static const char *title_of(const struct request *request, const struct lock_list *list,
                            const trail_lock *lock, char *buf)
{
    const trail_lock *const *locks;
    size_t count = trail_analysis_locks(request->analysis.answers, &locks);
    for (size_t i = 0; i < count; i++)
        if (locks[i] == lock)
            return list->titles[i];
    return lock_name(&request->analysis, lock, buf);
}

static void show_chain(const struct request *request, const struct lock_list *list,
                       const trail_lock_chain *chain)
{
    char length[SHOW_SIZE], begin[SHOW_SIZE], text[LOCK_NAME_SIZE];
    struct goroutine_list goroutines = {0};
    printf("\n%s from %s on", show_duration(length, chain->end_ns - chain->begin_ns),
           show_duration(begin, chain->begin_ns - request->analysis.span.origin_ns));
    if (chain->others > 0)
        printf(", and %" PRIu64 " more in front of it", chain->others);
    printf(":\n");
    for (size_t i = 0; i < chain->link_count; i++) {
        const trail_lock_link *link = &chain->links[i];
        printf("  ");
        put_goroutine(request, link->goroutine, link->name);
        printf(" waits for %s\n", title_of(request, list, link->lock, text));
        (void)goroutine_list_add(&goroutines, link->goroutine);
        if (i + 1 < chain->link_count)
            continue;
        printf("  ");
        if (link->holder == TRAIL_NONE) {
            printf("nothing in the trace");
        } else {
            put_goroutine(request, link->holder, link->holder_name);
            (void)goroutine_list_add(&goroutines, link->holder);
        }
        printf(" ends that\n");
    }
    show_command(request, goroutines.text, chain->begin_ns, chain->end_ns - chain->begin_ns);
}

static void show_chains(const struct request *request, const struct lock_list *list)
{
    const trail_lock_chain *chains;
    size_t count = trail_analysis_lock_chains(request->analysis.answers, &chains);
    if (count > 0)
        printf("\nLongest chains, of which each waits for the next:\n");
    for (size_t i = 0; i < shown_of(request, count); i++)
        show_chain(request, list, &chains[i]);
}

static void show_list(const struct request *request, const struct lock_list *list)
{
    size_t shown = shown_of(request, list->count);
    rows_show(&request->analysis, put_lock, list->items, sizeof *list->items, shown, SIZE_MAX);
    if (shown < list->count)
        printf("... and %zu more\n", list->count - shown);
    for (size_t i = 0; i < shown; i++)
        show_lock(request, &list->items[i]);
    show_chains(request, list);
}

static const char *why_empty(const struct request *request)
{
    if (request->match)
        return "no lock has these words";
    return request->analysis.options.locks.channels ? "No waits for locks or channels."
                                                    : EMPTY_LOCKS;
}

static int show(void *context)
{
    const struct request *request = context;
    struct lock_list list = {0};
    int wrong = goroutine_filter_check(&request->filter, &request->analysis);
    if (wrong)
        return wrong;
    if (!list_wanted(request, &list)) {
        list_free(&list);
        return exit_no_memory();
    }
    if (request->analysis.json)
        show_json(request, &list);
    else if (list.count == 0)
        puts(why_empty(request));
    else
        show_list(request, &list);
    list_free(&list);
    return EXIT_GOOD;
}

static void panel_show(const struct analysis *analysis, size_t limit)
{
    struct request request = {.analysis = *analysis, .limit = limit};
    struct lock_list list = {0};
    if (list_wanted(&request, &list))
        show_json(&request, &list);
    list_free(&list);
}

const struct panel panel_locks = {panel_want, panel_show};

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    goroutine_filter_free(&request.filter);
    return code;
}

const struct command command_locks = {
    COMMAND_ROW(locks),
    .synopsis = "[options] FILE",
    .details =
        "Shows a row for each lock, condition variable or other object whose waits end with a "
        "wake-up, by wait time; then the places of waits and holds, and the longest chains: one "
        "goroutine waits for another, which waits for a third. In recordings of C programs locks "
        "have names or addresses, and hold times; in Go's traces a row is the stack of the wait "
        "with the stack of the waker. 'still' counts waits that did not end.",
    .examples = "  trail locks server.trace\n"
                "  trail locks --channels --stacks --limit=3 app.trace\n"
                "  trail locks --name=main.worker --from=1s --to=+200ms app.trace\n"
                "  trail locks --json app.trace | jq '.locks[0]'",
    .wrapped = true,
};
