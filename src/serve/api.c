#include "serve/api.h"

#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/json.h"
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

static void put_counts(struct out *out, const struct model_status *status)
{
    more_number(out, "goroutines", (int64_t)status->lane_counts[TRAIL_LANE_GOROUTINE]);
    more_number(out, "procs", (int64_t)status->lane_counts[TRAIL_LANE_PROC]);
    more_number(out, "threads", (int64_t)status->lane_counts[TRAIL_LANE_THREAD]);
    out_str(out, ",\"bars\":{");
    put_number(out, "ranges", (int64_t)status->bars[TRAIL_BAR_RANGE]);
    more_number(out, "regions", (int64_t)status->bars[TRAIL_BAR_REGION]);
    more_number(out, "tasks", (int64_t)status->bars[TRAIL_BAR_TASK]);
    out_char(out, '}');
    more_number(out, "logs", (int64_t)status->logs);
    more_number(out, "samples", (int64_t)status->samples);
}

/* The vocabulary, a member a term. */
static void put_words(struct out *out, const struct api *api, const trail_maker *maker)
{
    struct vocabulary vocabulary;
    vocabulary_init(&vocabulary, maker, api->words);
    more_text(out, "made_by", text_from(trail_made_by_name(maker->made_by)));
    out_str(out, ",\"words\":{");
    for (enum term name = 0; name < TERMS; name++) {
        if (name > 0)
            out_char(out, ',');
        json_put_key(out, term_key(name));
        (void)json_put_text(out, text_from(term(&vocabulary, name)));
    }
    out_char(out, '}');
}

static void put_status(struct exchange *exchange, const struct api *api,
                       const struct api_trace *trace)
{
    struct out *out = exchange->out;
    struct model_status status;
    model_get_status(trace->model, &status);
    out_char(out, '{');
    put_number(out, "version", status.version);
    more_text(out, "title", text_from(trace->title));
    put_words(out, api, &status.maker);
    more_bool(out, "done", status.done);
    more_bool(out, "live", status.live);
    more_bool(out, "waits", status.waits);
    more_number(out, "read_bytes", status.read);
    more_number(out, "size_bytes", status.size);
    more_number(out, "received_bytes", status.received);
    more_number(out, "end", status.end_ns);
    more_number(out, "events", (int64_t)status.lanes.events);
    more_number(out, "spans", (int64_t)status.lanes.spans);
    more_number(out, "memory_bytes", (int64_t)status.lanes.bytes);
    put_counts(out, &status);
    if (status.has_wall)
        more_number(out, "wall_ns", status.wall_ns);
    more_bool(out, "can_run", runs_can_run(trace->runs));
    more_bool(out, "can_sql", runs_can_sql(trace->runs));
    more_bool(out, "can_source", api->source != NULL);
    if (status.damaged)
        more_text(out, "error", text_from(status.error.message));
    out_char(out, '}');
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
    fn(exchange, trace->model, lanes);
    model_unlock(trace->model);
}

static void answer_path(struct exchange *exchange, const struct api *api,
                        const struct api_trace *trace, const char *path)
{
    if (strcmp(path, "status") == 0) {
        put_status(exchange, api, trace);
        return;
    }
    if (strcmp(path, "run") == 0) {
        runs_answer_command(trace->runs, exchange);
        return;
    }
    if (strcmp(path, "source") == 0) {
        source_answer(exchange, trace->model, api->source);
        return;
    }
    if (strcmp(path, "sql") == 0) {
        runs_answer_sql(trace->runs, exchange);
        return;
    }
    if (strcmp(path, "embed") == 0) {
        runs_answer_embed(trace->runs, exchange, trace->title);
        return;
    }
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        if (strcmp(path, paths[i].path) == 0) {
            draw(exchange, trace, paths[i].draw);
            return;
        }
    }
    exchange_refuse(exchange, 404, "there is no /api/%.100s", path);
}

/* Replaces the answer so far by {"error": text}. */
static bool put_refusal(struct text *text, const struct exchange *exchange)
{
    free(text->data);
    *text = (struct text){0};
    if (!out_init(&text->out, text_write, text))
        return false;
    out_char(&text->out, '{');
    put_text(&text->out, "error", text_from(exchange->wrong));
    out_str(&text->out, "}\n");
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
    struct exchange exchange = {.request = request, .out = &text.out};
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
