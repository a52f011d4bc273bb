/* Reads Chrome's JSON: an array of events, or an object that has one as "traceEvents". */
#include "import/chrome.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/grow.h"
#include "base/hash.h"
#include "import/forms.h"
#include "import/json_read.h"
#include "import/scan.h"
#include "read/source.h"

/* An event as it is read: what is absent is empty. */
struct raw {
    char phase[4], name[CHROME_NAME_MAX], category[CHROME_NAME_MAX], id[CHROME_NAME_MAX],
        scope[CHROME_NAME_MAX], thread_name[CHROME_NAME_MAX];
    uint64_t pid, tid;
    int64_t time_ns, duration_ns;
    bool has_time, has_duration, bad;
};

/* MARK: Values */

/* Takes a string or a bare value as text. */
static bool take_text(struct json_read *json, char *room, size_t size)
{
    trail_string bare;
    if (json_peek(json) == '"')
        return json_take_string(json, room, size);
    if (json_peek(json) == '{' || json_peek(json) == '[') {
        room[0] = '\0';
        return json_skip(json);
    }
    if (!json_take_bare(json, &bare))
        return false;
    (void)snprintf(room, size, "%.*s", (int)(bare.size < size ? bare.size : size - 1), bare.data);
    return true;
}

/* A PID or TID, which may be any number or text: another text is another number. */
static uint64_t number_of(const char *text)
{
    trail_string rest = {text, strlen(text)};
    uint64_t number;
    if (scan_number(&rest, UINT64_MAX / 2, &number) && rest.size == 0)
        return number;
    return hash_bytes(text, strlen(text)) | UINT64_C(1) << 63;
}

/* Microseconds with a fraction, exactly where there is no exponent. */
static bool time_of(const char *text, int64_t *ns)
{
    trail_string rest = {text, strlen(text)};
    uint64_t whole, part = 0;
    unsigned digits = 0;
    char *end;
    double value;
    if (scan_number(&rest, UINT64_C(4000000000000000), &whole)) {
        if (rest.size > 1 && *rest.data == '.') {
            scan_advance(&rest, 1);
            for (; rest.size > 0 && scan_is_digit(*rest.data); digits++) {
                part = digits < 3 ? part * 10 + (uint64_t)(*rest.data - '0') : part;
                scan_advance(&rest, 1);
            }
        }
        for (; digits < 3; digits++)
            part *= 10;
        *ns = (int64_t)(whole * 1000 + part);
        if (rest.size == 0)
            return true;
    }
    value = strtod(text, &end) * 1000;
    if (*end || end == text || !isfinite(value) || value < 0 || value > 4e18)
        return false;
    *ns = (int64_t)value;
    return true;
}

/* MARK: Events */

/* {"name": "worker"} of a thread_name; other arguments are not used. */
static bool take_args(struct json_read *json, struct raw *raw)
{
    char key[16];
    bool first = true;
    if (json_peek(json) != '{')
        return json_skip(json);
    (void)json_take(json, '{');
    while (json_next_member(json, &first, key, sizeof key)) {
        bool good = strcmp(key, "name") == 0
                        ? take_text(json, raw->thread_name, sizeof raw->thread_name)
                        : json_skip(json);
        if (!good)
            return false;
    }
    return !json->bad;
}

/* {"local": "0x1"} or {"global": ...}. */
static bool take_id2(struct json_read *json, struct raw *raw)
{
    char key[16];
    bool first = true;
    if (!json_take(json, '{'))
        return false;
    while (json_next_member(json, &first, key, sizeof key)) {
        if (!take_text(json, raw->id, sizeof raw->id))
            return false;
    }
    return !json->bad;
}

static bool take_time(struct json_read *json, struct raw *raw, int64_t *ns, bool *has)
{
    char text[64];
    if (!take_text(json, text, sizeof text))
        return false;
    *has = time_of(text, ns);
    raw->bad |= !*has;
    return true;
}

static bool take_number(struct json_read *json, uint64_t *number)
{
    char text[CHROME_NAME_MAX];
    if (!take_text(json, text, sizeof text))
        return false;
    *number = number_of(text);
    return true;
}

static bool take_member(struct json_read *json, const char *key, struct raw *raw)
{
    if (strcmp(key, "ph") == 0)
        return take_text(json, raw->phase, sizeof raw->phase);
    if (strcmp(key, "name") == 0)
        return take_text(json, raw->name, sizeof raw->name);
    if (strcmp(key, "cat") == 0)
        return take_text(json, raw->category, sizeof raw->category);
    if (strcmp(key, "id") == 0)
        return take_text(json, raw->id, sizeof raw->id);
    if (strcmp(key, "id2") == 0)
        return take_id2(json, raw);
    if (strcmp(key, "scope") == 0)
        return take_text(json, raw->scope, sizeof raw->scope);
    if (strcmp(key, "pid") == 0)
        return take_number(json, &raw->pid);
    if (strcmp(key, "tid") == 0)
        return take_number(json, &raw->tid);
    if (strcmp(key, "ts") == 0)
        return take_time(json, raw, &raw->time_ns, &raw->has_time);
    if (strcmp(key, "dur") == 0)
        return take_time(json, raw, &raw->duration_ns, &raw->has_duration);
    if (strcmp(key, "args") == 0)
        return take_args(json, raw);
    return json_skip(json);
}

/* MARK: Threads */

/* The TID itself, if it is one and no other process has it, else a free number. */
static int32_t take_tid(struct chrome *chrome, uint64_t tid)
{
    bool usable = tid > 0 && tid <= IMPORT_TID_MAX && !(chrome->numbers[tid / 8] & 1u << tid % 8);
    if (!usable) {
        while (chrome->next_number > 0 &&
               chrome->numbers[chrome->next_number / 8] & 1u << chrome->next_number % 8)
            chrome->next_number--;
        tid = (uint64_t)chrome->next_number;
    }
    chrome->numbers[tid / 8] |= (uint8_t)(1u << tid % 8);
    return (int32_t)tid;
}

static uint32_t add_thread(struct chrome *chrome, uint64_t pid, uint64_t tid, uint64_t hash)
{
    uintptr_t number = chrome->thread_count + 1;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed. */
    if (number >= IMPORT_TID_MAX || !GROW(chrome->threads, chrome->thread_room, number) ||
        !idmap_put(&chrome->thread_map, hash, (void *)number)) {
        chrome->failed = true;
        return 0;
    }
    chrome->threads[chrome->thread_count++] =
        (struct chrome_thread){.pid = pid, .tid = tid, .number = take_tid(chrome, tid)};
    return (uint32_t)(number - 1);
}

/* Threads of equal hash take the next place, as in open addressing. */
static uint32_t thread_of(struct chrome *chrome, uint64_t pid, uint64_t tid)
{
    uint64_t hash = hash_mix(pid, tid);
    for (;; hash++) {
        uintptr_t number = (uintptr_t)idmap_find(&chrome->thread_map, hash);
        if (number == 0)
            return add_thread(chrome, pid, tid, hash);
        const struct chrome_thread *thread = &chrome->threads[number - 1];
        if (thread->pid == pid && thread->tid == tid)
            return (uint32_t)(number - 1);
    }
}

/* MARK: Keeping */

static const char *keep(struct chrome *chrome, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = arena_alloc(&chrome->arena, size);
    if (!copy) {
        chrome->failed = true;
        return "";
    }
    return memcpy(copy, text, size);
}

/* What begins and ends belong together by. */
static uint64_t id_of(const struct raw *raw, bool by_name)
{
    uint64_t hash = hash_mix(number_of(raw->category), number_of(raw->scope));
    hash = hash_mix(hash, number_of(raw->id));
    return by_name ? hash_mix(hash, number_of(raw->name)) : hash;
}

static void put(struct chrome *chrome, const struct raw *raw, enum chrome_phase phase, bool by_name)
{
    if (!raw->has_time || raw->bad || (phase == CHROME_COMPLETE && !raw->has_duration)) {
        import_count_bad(chrome->stats);
        return;
    }
    if (!GROW(chrome->events, chrome->event_room, chrome->event_count + 1)) {
        chrome->failed = true;
        return;
    }
    chrome->stats->events++;
    chrome->events[chrome->event_count] = (struct chrome_event){
        .time_ns = raw->time_ns + (raw->time_ns == 0),
        .duration_ns = phase == CHROME_COMPLETE ? raw->duration_ns : 0,
        .order = chrome->event_count,
        .thread = thread_of(chrome, raw->pid, raw->tid),
        .phase = (uint8_t)phase,
        .name = keep(chrome, raw->name),
        .id = id_of(raw, by_name),
    };
    chrome->event_count++;
}

static void put_metadata(struct chrome *chrome, const struct raw *raw)
{
    chrome->stats->events++;
    if (strcmp(raw->name, "thread_name") != 0)
        return;
    uint32_t thread = thread_of(chrome, raw->pid, raw->tid);
    if (!chrome->failed)
        import_thread_name(&chrome->model->threads, chrome->threads[thread].number,
                           (trail_string){raw->thread_name, strlen(raw->thread_name)});
}

/* docs/importing.md has the same rows. */
static void put_event(struct chrome *chrome, const struct raw *raw)
{
    static const struct {
        char letter;
        uint8_t phase;
        bool by_name;
    } phases[] = {
        {'B', CHROME_BEGIN, false},       {'E', CHROME_END, false},
        {'X', CHROME_COMPLETE, false},    {'i', CHROME_INSTANT, false},
        {'I', CHROME_INSTANT, false},     {'R', CHROME_INSTANT, false},
        {'b', CHROME_ASYNC_BEGIN, false}, {'e', CHROME_ASYNC_END, false},
        {'S', CHROME_ASYNC_BEGIN, true},  {'F', CHROME_ASYNC_END, true},
        {'s', CHROME_FLOW_BEGIN, true},   {'t', CHROME_FLOW_STEP, true},
        {'f', CHROME_FLOW_END, true},
    };
    char name[16];
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        if (raw->phase[0] == phases[i].letter && !raw->phase[1]) {
            put(chrome, raw, phases[i].phase, phases[i].by_name);
            return;
        }
    }
    if (strcmp(raw->phase, "M") == 0) {
        put_metadata(chrome, raw);
        return;
    }
    int size = snprintf(name, sizeof name, "ph %s", *raw->phase ? raw->phase : "(none)");
    import_count_unknown(chrome->stats, (trail_string){name, (size_t)size});
}

/* MARK: The file */

static bool read_event(struct chrome *chrome, struct json_read *json)
{
    struct raw raw = {0};
    char key[32];
    bool first = true;
    chrome->stats->lines++;
    if (chrome->model->progress)
        chrome->model->progress(chrome->model->progress_context);
    if (json_peek(json) != '{') {
        import_count_unreadable(chrome->stats);
        return json_skip(json);
    }
    (void)json_take(json, '{');
    while (json_next_member(json, &first, key, sizeof key)) {
        if (!take_member(json, key, &raw))
            return false;
    }
    if (!json->bad)
        put_event(chrome, &raw);
    return !json->bad;
}

static bool read_events(struct chrome *chrome, struct json_read *json)
{
    bool first = true;
    if (!json_take(json, '['))
        return false;
    while (!chrome->failed && json_next_element(json, &first)) {
        if (!read_event(chrome, json))
            return false;
    }
    return !json->bad;
}

static bool read_file(struct chrome *chrome, struct json_read *json)
{
    char key[32];
    bool first = true;
    if (json_peek(json) == '[')
        return read_events(chrome, json);
    if (!json_take(json, '{'))
        return false;
    while (json_next_member(json, &first, key, sizeof key)) {
        bool events = strcmp(key, "traceEvents") == 0;
        if (!(events ? read_events(chrome, json) : json_skip(json)))
            return false;
    }
    return !json->bad;
}

static void chrome_free(struct chrome *chrome)
{
    for (size_t i = 0; i < chrome->thread_count; i++) {
        free(chrome->threads[i].spans);
        free(chrome->threads[i].open);
    }
    free(chrome->threads);
    free(chrome->events);
    free(chrome->numbers);
    idmap_free(&chrome->thread_map);
    arena_free(&chrome->arena);
}

/* Where the file is damaged or, as after a crash, has no end, the events before that are used. */
static int read_json(struct chrome *chrome, const char *data, size_t size, trail_error *err)
{
    struct json_read json = {.at = data, .end = data + size};
    bool whole = read_file(chrome, &json);
    bool at_end = !whole && json_peek(&json) == '\0';
    if (!chrome->failed)
        chrome_mean(chrome);
    if (chrome->failed)
        return error_set(err, TRAIL_NO_MEMORY, "out of memory");
    if (whole || (at_end && chrome->event_count > 0))
        return 0;
    (void)error_set(err, TRAIL_CORRUPT, "this is not JSON");
    err->offset = json.at - data;
    return -1;
}

int import_chrome(trail_source *source, struct import_model *model, trail_error *err)
{
    struct chrome chrome = {.model = model,
                            .stats = model->threads.stats,
                            .next_number = IMPORT_TID_MAX,
                            .numbers = calloc(IMPORT_TID_MAX / 8 + 1, 1)};
    const uint8_t *data;
    size_t size;
    int result = -1;
    if (!chrome.numbers)
        (void)error_set(err, TRAIL_NO_MEMORY, "out of memory");
    else if (source_whole(source, &data, &size, err) == 0)
        result = read_json(&chrome, (const char *)data, size, err);
    chrome_free(&chrome);
    return result;
}
