/* Reads Chrome's JSON: an array of events, or an object that has one as "traceEvents". */
#include "import/chrome.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
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

/* MARK: Keeping */

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
    chrome_add(chrome, &(struct chrome_event){
                           .time_ns = raw->time_ns,
                           .duration_ns = phase == CHROME_COMPLETE ? raw->duration_ns : 0,
                           .thread = chrome_thread(chrome, raw->pid, raw->tid),
                           .phase = (uint8_t)phase,
                           .name = chrome_keep(chrome, raw->name, strlen(raw->name)),
                           .id = id_of(raw, by_name),
                       });
}

static void put_metadata(struct chrome *chrome, const struct raw *raw)
{
    chrome->stats->events++;
    if (strcmp(raw->name, "thread_name") != 0)
        return;
    chrome_name(chrome, chrome_thread(chrome, raw->pid, raw->tid), text_from(raw->thread_name));
}

static void put_event(struct chrome *chrome, const struct raw *raw)
{
    const struct chrome_letter *letter = chrome_letter((unsigned char)raw->phase[0]);
    char name[16];
    if (letter && !raw->phase[1]) {
        put(chrome, raw, (enum chrome_phase)letter->phase, letter->by_name);
        return;
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
    struct chrome chrome;
    const uint8_t *data;
    size_t size;
    int result = -1;
    if (!chrome_init(&chrome, model))
        (void)error_set(err, TRAIL_NO_MEMORY, "out of memory");
    else if (source_whole(source, &data, &size, err) == 0)
        result = read_json(&chrome, (const char *)data, size, err);
    chrome_free(&chrome);
    return result;
}
