/* The API below /api/: its paths, and the status. */
#include "serve/api.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "serve/draw.h"
#include "serve/runs.h"
#include "serve/source.h"
#include "words/vocabulary.h"

/* MARK: Text buffer of an answer */

struct text {
    struct out out;
    char *data;
    size_t size, capacity;
};

static bool text_write(void *context, const void *data, size_t size)
{
    struct text *text = context;
    if (!GROW(text->data, text->capacity, text->size + size)) {
        errno = ENOMEM;
        return false;
    }
    memcpy(text->data + text->size, data, size);
    text->size += size;
    return true;
}

/* MARK: Status */

static void put_counts(struct json *json, const struct model_status *status)
{
    json_number(json, "goroutines", status->lane_counts[TRAIL_LANE_GOROUTINE]);
    json_number(json, "procs", status->lane_counts[TRAIL_LANE_PROC]);
    json_number(json, "threads", status->lane_counts[TRAIL_LANE_THREAD]);
    json_open(json, "bars", '{');
    json_number(json, "ranges", status->bars[TRAIL_BAR_RANGE]);
    json_number(json, "regions", status->bars[TRAIL_BAR_REGION]);
    json_number(json, "tasks", status->bars[TRAIL_BAR_TASK]);
    json_close(json, '}');
    json_number(json, "logs", status->logs);
    json_number(json, "samples", status->samples);
}

/* Writes the vocabulary, one member per term. */
static void put_words(struct json *json, const struct api *api, const trail_maker *maker)
{
    struct vocabulary vocabulary;
    vocabulary_init(&vocabulary, maker, api->words);
    json_string(json, "made_by", trail_made_by_name(maker->made_by));
    json_open(json, "words", '{');
    for (enum term name = 0; name < TERMS; name++)
        json_string(json, term_key(name), term(&vocabulary, name));
    json_close(json, '}');
}

static void put_status(struct exchange *exchange, const struct api *api,
                       const struct api_trace *trace)
{
    struct json *json = &exchange->json;
    struct model_status status;
    model_get_status(trace->model, &status);
    json_open(json, NULL, '{');
    json_signed(json, "version", status.version);
    json_string(json, "title", trace->title);
    put_words(json, api, &status.maker);
    json_bool(json, "done", status.done);
    json_bool(json, "live", status.live);
    json_bool(json, "waits", status.waits);
    json_signed(json, "read_bytes", status.read);
    json_signed(json, "size_bytes", status.size);
    json_signed(json, "received_bytes", status.received);
    json_signed(json, "end", status.end_ns);
    json_number(json, "events", status.lanes.events);
    json_number(json, "spans", status.lanes.spans);
    json_number(json, "memory_bytes", status.lanes.bytes);
    put_counts(json, &status);
    if (status.has_wall)
        json_signed(json, "wall_ns", status.wall_ns);
    json_bool(json, "changed", runs_are_stale(trace->runs));
    json_bool(json, "can_run", runs_can_run(trace->runs));
    json_bool(json, "can_sql", runs_can_sql(trace->runs));
    json_bool(json, "can_source", api->source != NULL);
    if (status.damaged)
        json_string(json, "error", status.error.message);
    json_close(json, '}');
}

/* MARK: Paths */

static const struct path {
    const char *path;
    draw_fn draw;
} paths[] = {
    {"lanes", draw_lanes}, {"picture", draw_picture}, {"span", draw_span},
    {"stack", draw_stack}, {"bars", draw_bars},       {"marks", draw_marks},
    {"mark", draw_mark},   {"metrics", draw_metrics}, {"select", draw_select},
    {"spans", draw_spans}, {"waits", draw_waits},     {"like", draw_like},
    {"find", draw_find},   {"group", draw_group},
};

static void draw(struct exchange *exchange, const struct api_trace *trace, draw_fn fn)
{
    const trail_lanes *lanes = model_lock(trace->model);
    if (!lanes) {
        exchange_refuse(exchange, 503, "there is nothing to draw yet");
        return;
    }
    exchange->model = trace->model;
    fn(exchange, lanes);
    model_unlock(trace->model);
}

static void answer_path(struct exchange *exchange, const struct api *api,
                        const struct api_trace *trace, const char *path)
{
    const size_t count = sizeof paths / sizeof *paths;
    size_t drawn = 0;
    while (drawn < count && strcmp(path, paths[drawn].path) != 0)
        drawn++;
    if (drawn < count)
        draw(exchange, trace, paths[drawn].draw);
    else if (strcmp(path, "status") == 0)
        put_status(exchange, api, trace);
    else if (strcmp(path, "run") == 0)
        runs_answer_command(trace->runs, exchange);
    else if (strcmp(path, "source") == 0)
        source_answer(exchange, trace->model, api->source);
    else if (strcmp(path, "sql") == 0)
        runs_answer_sql(trace->runs, exchange);
    else if (strcmp(path, "embed") == 0)
        runs_answer_embed(trace->runs, exchange, trace->title);
    else
        exchange_refuse(exchange, 404, "there is no /api/%.100s", path);
}

/* Replaces the answer so far by {"error": text}. */
static bool put_refusal(struct text *text, const struct exchange *exchange)
{
    free(text->data);
    *text = (struct text){0};
    if (!out_init(&text->out, text_write, text))
        return false;
    struct json json = {.out = &text->out};
    json_open(&json, NULL, '{');
    json_string(&json, "error", exchange->wrong);
    json_close(&json, '}');
    return out_finish(&text->out, NULL) == 0;
}

const struct api_trace *api_find_trace(const struct api *api, const char **path)
{
    const char *name = *path;
    if (api->count < 2 || name[0] != '/' || (name[1] != 'a' && name[1] != 'b') || name[2] != '/')
        return &api->traces[0];
    *path += 2;
    return &api->traces[name[1] - 'a'];
}

void api_answer(const struct api *api, const struct http_request *request,
                struct http_answer *answer)
{
    static const char prefix[] = "/api/";
    const char *path = request->path;
    const struct api_trace *trace = api_find_trace(api, &path);
    struct text text = {0};
    struct exchange exchange = {.request = request, .json = {.out = &text.out, .bare = true}};
    if (!out_init(&text.out, text_write, &text))
        return;
    if (strncmp(path, prefix, sizeof prefix - 1) == 0)
        answer_path(&exchange, api, trace, path + sizeof prefix - 1);
    else
        exchange_refuse(&exchange, 404, "there is no such file");
    bool good = out_finish(&text.out, NULL) == 0;
    if (exchange.status != 0)
        good = put_refusal(&text, &exchange);
    if (!good || !(text.data || (text.data = calloc(1, 1)))) {
        free(text.data);
        return;
    }
    *answer = (struct http_answer){
        .status = exchange.status,
        .type = exchange.type && exchange.status == 0 ? exchange.type : "application/json",
        .data = text.data,
        .size = text.size,
        .free_data = true};
}
