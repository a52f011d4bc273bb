/*
 * Full-text search: everything whose name contains a text, and the goroutine, P, thread or task
 * with that number. The results of each type are limited, so that no type crowds out the others,
 * unless only one type is requested. Those with a word that begins with the text come first.
 *
 * Logs of a recorder are found only if logs are the requested type, as by what draws holds.
 *
 * `from` and `last` serve pages of bars and logs: those that end at `from` or later, and the last
 * ones instead of the first.
 */
#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/grow.h"
#include "base/match.h"
#include "serve/draw.h"
#include "serve/holder.h"

/* Maximum number of spans examined to find where functions occur. */
#define MOST_SPANS (UINT64_C(8) << 20)
enum { MOST_TEXT = 200, YIELD_SPANS = 1 << 19 };

/* How a name contains the text; 0: not examined yet. */
enum match { BEGINS_WORD = 1, WITHIN = 2, NOWHERE = 4 };

struct search {
    struct exchange *exchange;
    const trail_lanes *lanes;
    const char *text, *type; /* NULL: all types */
    int64_t from_ns;
    bool last;
    size_t most, each; /* maximum number of results, in total and per type */
    size_t count, of_type;
    bool more;
    /* What is collected now, and by name, how it contains the text: of enum match. */
    uint8_t pass, *has;
    size_t has_capacity;
};

static enum match match_of(trail_string name, const char *text)
{
    return match_word(name, text) ? BEGINS_WORD : match_part(name, text) ? WITHIN : NOWHERE;
}

/* Whether the name belongs to the current pass. */
static bool has_text(struct search *s, trail_name name)
{
    if (!GROW_ZEROED(s->has, s->has_capacity, (size_t)name + 1))
        return false;
    if (s->has[name] == 0)
        s->has[name] = (uint8_t)match_of(trail_lanes_text(s->lanes, name), s->text);
    return s->has[name] & s->pass;
}

/* Results of one type that is requested keep their order: pages of them continue each other. */
static void begin_type(struct search *s)
{
    s->of_type = 0;
    s->pass = s->type ? BEGINS_WORD | WITHIN : BEGINS_WORD;
}

/* After the last one, s->pass is 0. */
static void next_pass(struct search *s)
{
    s->pass = s->pass == BEGINS_WORD ? WITHIN : 0;
}

static bool wants(const struct search *s, const char *type)
{
    return !s->type || strcmp(s->type, type) == 0;
}

/* Whether another result of this type is allowed. */
static bool has_room(struct search *s)
{
    bool room = s->count < s->most && s->of_type < s->each;
    s->more |= !room;
    return room;
}

struct place {
    trail_lane_kind kind;
    int64_t lane, at_ns, end_ns;
    uint64_t task; /* its number; 0: not a task */
};

static void put_result(struct search *s, const char *type, trail_string text, struct place place)
{
    struct json *json = &s->exchange->json;
    json_open(json, NULL, '{');
    json_string(json, "type", type);
    json_text(json, "text", text);
    json_string(json, "kind", kind_words[place.kind]);
    json_signed(json, "lane", place.lane);
    if (place.lane >= 0) {
        trail_lane row;
        trail_lanes_get(s->lanes, place.kind, (size_t)place.lane, &row);
        json_signed(json, "id", row.id);
    }
    if (place.task != 0)
        json_number(json, "task", place.task);
    json_signed(json, "at", place.at_ns);
    json_signed(json, "end", place.end_ns);
    json_close(json, '}');
    s->count++;
    s->of_type++;
}

static void put_lane(struct search *s, trail_lane_kind kind, size_t lane)
{
    trail_lane row;
    trail_lanes_get(s->lanes, kind, lane, &row);
    put_result(s, kind_words[kind], trail_lanes_text(s->lanes, row.name),
               (struct place){kind, (int64_t)lane, row.begin_ns, row.end_ns, 0});
}

static void put_bar(struct search *s, const trail_bar *bar, const char *type)
{
    int64_t end_ns = bar->open ? trail_lanes_end(s->lanes) : bar->end_ns;
    uint64_t task = bar->kind == TRAIL_BAR_TASK ? bar->task : 0;
    put_result(s, type, trail_lanes_text(s->lanes, bar->name),
               (struct place){TRAIL_LANE_GOROUTINE, bar->lane, bar->begin_ns, end_ns, task});
}

/* MARK: Numbers */

/* Finds the task with the number in "42" or "task 42". */
static void find_task(struct search *s)
{
    const char *digits = s->text;
    if (match_part((trail_string){digits, strnlen(digits, 4)}, "task"))
        digits += 4 + strspn(digits + 4, " ");
    size_t size = strspn(digits, "0123456789");
    if (size == 0 || size > 18 || digits[size] != '\0')
        return;
    uint64_t number = strtoull(digits, NULL, 10);
    const trail_bar *bars;
    size_t count = trail_lanes_bars(s->lanes, &bars);
    begin_type(s);
    for (size_t i = 0; i < count; i++)
        if (bars[i].kind == TRAIL_BAR_TASK && bars[i].task == number && has_room(s))
            put_bar(s, &bars[i], "task");
}

/* Finds the lanes with the number in "18", "G18", "P3" or "M7", of that kind if a letter is
 * given. */
static void find_number(struct search *s)
{
    find_task(s);
    static const char letters[TRAIL_LANE_KINDS] = {'g', 'p', 'm'};
    for (int kind = 0; kind < TRAIL_LANE_KINDS; kind++) {
        const char *digits = s->text + ((s->text[0] | 0x20) == letters[kind]);
        size_t size = strspn(digits, "0123456789");
        if (size == 0 || size > 18 || digits[size] != '\0')
            continue;
        int64_t lane = trail_lanes_find(s->lanes, (trail_lane_kind)kind, strtoll(digits, NULL, 10));
        begin_type(s);
        if (lane >= 0 && has_room(s))
            put_lane(s, (trail_lane_kind)kind, (size_t)lane);
    }
}

/* MARK: Functions */

struct function {
    trail_name name;
    int64_t ns;         /* of the span at its place; -1: none yet */
    struct place place; /* lane -1: not known */
};

struct functions {
    struct function *items;
    size_t count, capacity;
    uint32_t *of_stack; /* index of the function + 1, by stack; 0: none */
};

/* Returns the index of the function + 1; 0 if there are too many. */
static uint32_t add_function(struct search *s, struct functions *functions, trail_name name)
{
    for (size_t i = 0; i < functions->count; i++)
        if (functions->items[i].name == name)
            return (uint32_t)i + 1;
    s->more |= functions->count == s->each;
    if (functions->count == s->each ||
        !GROW(functions->items, functions->capacity, functions->count + 1))
        return 0;
    functions->items[functions->count++] =
        (struct function){.name = name, .ns = -1, .place = {.lane = -1}};
    return (uint32_t)functions->count;
}

/* Collects matching functions from stacks: the innermost one in each stack. */
static void collect_functions(struct search *s, struct functions *functions, size_t stacks)
{
    for (size_t stack = 1; stack < stacks; stack++) {
        if (functions->of_stack[stack])
            continue;
        const trail_place *places;
        size_t count = trail_lanes_stack(s->lanes, (trail_stack)stack, &places), i = 0;
        while (i < count && !has_text(s, places[i].function))
            i++;
        if (i == count)
            continue;
        functions->of_stack[stack] = add_function(s, functions, places[i].function);
    }
}

/* Finds the longest span in each function. Returns false if there are too many spans. */
static bool place_functions(struct search *s, struct functions *functions, size_t stacks)
{
    uint64_t seen = 0, next = YIELD_SPANS;
    size_t count = trail_lanes_count(s->lanes, TRAIL_LANE_GOROUTINE);
    for (size_t lane = 0; lane < count && functions->count > 0; lane++) {
        trail_span_cursor cursor;
        trail_span row;
        trail_lanes_seek(s->lanes, TRAIL_LANE_GOROUTINE, lane, 0, &cursor);
        while (trail_lanes_next(s->lanes, &cursor, &row)) {
            uint32_t number = row.stack < stacks ? functions->of_stack[row.stack] : 0;
            if (++seen >= next) {
                next += YIELD_SPANS;
                model_yield(s->exchange->model);
            }
            struct function *function = number ? &functions->items[number - 1] : NULL;
            if (!function || ns_between(row.begin_ns, row.end_ns) <= function->ns)
                continue;
            function->ns = ns_between(row.begin_ns, row.end_ns);
            function->place =
                (struct place){TRAIL_LANE_GOROUTINE, (int64_t)lane, row.begin_ns, row.end_ns, 0};
        }
        if (seen > MOST_SPANS) {
            s->more = true;
            return false;
        }
    }
    return true;
}

static void find_functions(struct search *s)
{
    struct functions functions = {0};
    size_t stacks = trail_lanes_stack_count(s->lanes);
    bool all = true;
    functions.of_stack = calloc(stacks + 1, sizeof *functions.of_stack);
    begin_type(s);
    if (functions.of_stack) {
        for (; s->pass; next_pass(s))
            collect_functions(s, &functions, stacks);
        all = place_functions(s, &functions, stacks);
    }
    for (size_t i = 0; i < functions.count; i++)
        if ((functions.items[i].ns >= 0 || !all) && has_room(s))
            put_result(s, "function", trail_lanes_text(s->lanes, functions.items[i].name),
                       functions.items[i].place);
    free(functions.items);
    free(functions.of_stack);
}

/* MARK: Bars, logs, goroutines */

static void collect_bars(struct search *s, trail_bar_kind kind, const char *type)
{
    const trail_bar *bars;
    size_t count = trail_lanes_bars(s->lanes, &bars);
    for (size_t i = 0; i < count; i++) {
        const trail_bar *bar = &bars[s->last ? count - 1 - i : i];
        int64_t end_ns = bar->open ? trail_lanes_end(s->lanes) : bar->end_ns;
        if (bar->kind != kind || end_ns < s->from_ns || !has_text(s, bar->name))
            continue;
        if (!has_room(s))
            return;
        put_bar(s, bar, type);
    }
}

static void find_bars(struct search *s, trail_bar_kind kind, const char *type)
{
    for (begin_type(s); wants(s, type) && s->pass; next_pass(s))
        collect_bars(s, kind, type);
}

static void collect_logs(struct search *s)
{
    const trail_mark *marks;
    size_t count = trail_lanes_logs(s->lanes, &marks);
    for (size_t i = 0; i < count; i++) {
        const trail_mark *mark = &marks[s->last ? count - 1 - i : i];
        if (mark->time_ns < s->from_ns || !has_text(s, mark->name) ||
            (!s->type && mark_is_recorders(s->lanes, mark)))
            continue;
        if (!has_room(s))
            return;
        put_result(
            s, "log", trail_lanes_text(s->lanes, mark->name),
            (struct place){TRAIL_LANE_GOROUTINE, mark_lane(mark), mark->time_ns, mark->time_ns, 0});
    }
}

static void find_logs(struct search *s)
{
    for (begin_type(s); wants(s, "log") && s->pass; next_pass(s))
        collect_logs(s);
}

static void collect_goroutines(struct search *s)
{
    for (size_t i = 0; i < trail_lanes_count(s->lanes, TRAIL_LANE_GOROUTINE); i++) {
        if (!has_text(s, trail_lanes_name(s->lanes, TRAIL_LANE_GOROUTINE, i)))
            continue;
        if (!has_room(s))
            return;
        put_lane(s, TRAIL_LANE_GOROUTINE, i);
    }
}

static void find_goroutines(struct search *s)
{
    for (begin_type(s); wants(s, "goroutine") && s->pass; next_pass(s))
        collect_goroutines(s);
}

void draw_find(struct exchange *exchange, const trail_lanes *lanes)
{
    struct json *json = &exchange->json;
    struct search s = {.exchange = exchange, .lanes = lanes};
    s.text = parameter_text(exchange, "text");
    s.most = (size_t)parameter_number(exchange, "most", 1, 1000, 100);
    s.type = parameter_text(exchange, "type");
    s.from_ns = parameter_number(exchange, "from", 0, MOST_TIME_NS, 0);
    s.last = parameter_number(exchange, "last", 0, 1, 0) == 1;
    s.each = s.type ? s.most : s.most < 4 ? 1 : s.most / 4;
    if (!s.text || !*s.text || strlen(s.text) > MOST_TEXT)
        exchange_refuse(exchange, 400, "text is what to find: 1 to %d bytes", MOST_TEXT);
    if (exchange->status || !s.text)
        return;
    json_open(json, NULL, '{');
    json_open(json, "results", '[');
    if (!s.type)
        find_number(&s);
    if (wants(&s, "function"))
        find_functions(&s);
    find_bars(&s, TRAIL_BAR_TASK, "task");
    find_bars(&s, TRAIL_BAR_REGION, "region");
    find_bars(&s, TRAIL_BAR_RANGE, "range");
    find_logs(&s);
    find_goroutines(&s);
    json_close(json, ']');
    json_bool(json, "more", s.more);
    json_close(json, '}');
    free(s.has);
}
