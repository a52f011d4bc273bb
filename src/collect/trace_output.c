#include "collect/trace_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "base/error.h"

/* MARK: Files */

char *numbered_path(const char *path, unsigned number)
{
    const char *slash = strrchr(path, '/'), *dot = strchr(slash ? slash : path, '.');
    char *name = NULL;
    int n;
    if (number == 0)
        return strdup(path);
    if (!dot)
        dot = path + strlen(path);
    n = asprintf(&name, "%.*s.%u%s", (int)(dot - path), path, number, dot);
    return n < 0 ? NULL : name;
}

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), n = strlen(end);
    return size >= n && strcmp(text + size - n, end) == 0;
}

static bool raw_write(struct trace_output *t, const void *data, size_t size)
{
    trail_sink sink = output_sink(&t->out);
    return size == 0 || sink.write(sink.context, data, size);
}

/* Compresses and writes the output; `how`: continue, flush, or end the frame. */
static bool zstd_write(struct trace_output *t, const void *data, size_t size, ZSTD_EndDirective how)
{
    ZSTD_inBuffer in = {data, size, 0};
    char room[65536];
    size_t left;
    do {
        ZSTD_outBuffer out = {room, sizeof room, 0};
        left = ZSTD_compressStream2(t->zstd, &out, &in, how);
        if (ZSTD_isError(left)) {
            errno = ENOMEM;
            return false;
        }
        if (!raw_write(t, room, out.pos))
            return false;
    } while (in.pos < in.size || (how != ZSTD_e_continue && left > 0));
    return true;
}

static bool put(struct trace_output *t, const void *data, size_t size)
{
    t->bytes += size;
    return t->zstd ? zstd_write(t, data, size, ZSTD_e_continue) : raw_write(t, data, size);
}

static bool open_file(struct trace_output *t, trail_error *err)
{
    free(t->current);
    t->current = numbered_path(t->path, t->files);
    if (!t->current)
        return output_error(err, t->path, ENOMEM);
    if (ends_with(t->path, ".zst") && !t->zstd && !(t->zstd = ZSTD_createCCtx()))
        return output_error(err, t->current, ENOMEM);
    t->open = output_open(&t->out, t->current, err);
    t->files += t->open;
    t->bytes = 0;
    return t->open;
}

static bool close_file(struct trace_output *t, bool made, trail_error *err)
{
    if (!t->open)
        return true;
    if (t->zstd)
        (void)zstd_write(t, NULL, 0, ZSTD_e_end);
    t->open = false;
    return output_close(&t->out, t->current, made, err);
}

/* MARK: Memory */

/* Makes room for `wanted` elements, at least doubling. */
static bool reserve(void *array, size_t *room, size_t wanted, size_t element)
{
    size_t more = *room * 2 > wanted ? *room * 2 : wanted;
    void *grown;
    if (wanted <= *room)
        return true;
    grown = realloc(*(void **)array, more * element);
    if (!grown)
        return false;
    *(void **)array = grown;
    *room = more;
    return true;
}

static bool keep(struct trace_output *t, const void *data, size_t size)
{
    struct kept *kept = t->kept_count ? &t->kept[t->kept_count - 1] : NULL;
    if (!kept || !reserve(&kept->data, &kept->room, kept->size + size, 1)) {
        errno = ENOMEM;
        return false;
    }
    memcpy(kept->data + kept->size, data, size);
    kept->size += size;
    return true;
}

/* Drops generations that ended before the time that is kept. */
static void forget_old(struct trace_output *t)
{
    size_t old = 0;
    while (old + 1 < t->kept_count && t->kept[old + 1].begin_ns < t->now_ns - t->limits.flight_ns)
        free(t->kept[old++].data);
    t->kept_count -= old;
    memmove(t->kept, t->kept + old, t->kept_count * sizeof t->kept[0]);
}

static void keep_next(struct trace_output *t)
{
    forget_old(t);
    if (!reserve(&t->kept, &t->kept_room, t->kept_count + 1, sizeof t->kept[0])) {
        t->no_memory = true;
        return;
    }
    t->kept[t->kept_count++] = (struct kept){.begin_ns = t->now_ns};
}

bool trace_output_snapshot(struct trace_output *t, trail_error *err)
{
    bool good;
    if (!open_file(t, err))
        return false;
    good = put(t, t->header, t->header_size);
    for (size_t i = 0; good && i < t->kept_count; i++)
        good = put(t, t->kept[i].data, t->kept[i].size);
    return close_file(t, good, err);
}

/* MARK: The sink */

static bool write_trace(void *context, const void *data, size_t size)
{
    struct trace_output *t = context;
    const uint8_t *at = data;
    /* The header comes first, and is written again at the begin of each further file. */
    if (t->header_size < sizeof t->header) {
        size_t rest = sizeof t->header - t->header_size, part = size < rest ? size : rest;
        memcpy(t->header + t->header_size, at, part);
        t->header_size += part;
        if (!t->limits.flight_ns && !put(t, at, part))
            return false;
        at += part;
        size -= part;
    }
    if (size == 0)
        return true;
    return t->limits.flight_ns ? keep(t, at, size) : put(t, at, size);
}

trail_sink trace_output_sink(struct trace_output *t)
{
    return (trail_sink){.write = write_trace, .context = t};
}

static bool is_full(const struct trace_output *t)
{
    return (t->limits.rotate_bytes && t->bytes >= t->limits.rotate_bytes) ||
           (t->limits.rotate_ns && t->now_ns - t->begin_ns >= t->limits.rotate_ns);
}

void trace_output_generation(void *context, int64_t ns)
{
    struct trace_output *t = context;
    t->now_ns = ns;
    if (!t->begin_ns)
        t->begin_ns = ns;
    if (t->limits.flight_ns) {
        keep_next(t);
    } else if (is_full(t) && t->open) {
        if (close_file(t, true, &t->lost) && open_file(t, &t->lost))
            (void)put(t, t->header, t->header_size);
        t->begin_ns = ns;
    } else if (t->zstd) {
        /* A compressed file that is truncated after this can be read up to here. */
        (void)zstd_write(t, NULL, 0, ZSTD_e_flush);
    }
}

bool trace_output_lost(struct trace_output *t, trail_error *err)
{
    *err = t->lost;
    t->lost = no_error();
    return err->code != TRAIL_OK;
}

/* MARK: Opening and closing */

static void release(struct trace_output *t)
{
    for (size_t i = 0; i < t->kept_count; i++)
        free(t->kept[i].data);
    free(t->kept);
    free(t->current);
    ZSTD_freeCCtx(t->zstd);
    *t = (struct trace_output){.out = t->out};
}

bool trace_output_open(struct trace_output *t, const char *path, const struct trace_limits *limits,
                       trail_error *err)
{
    *t = (struct trace_output){.path = path, .limits = *limits, .lost = no_error()};
    if (limits->flight_ns || open_file(t, err))
        return true;
    release(t);
    return false;
}

bool trace_output_close(struct trace_output *t, bool whole, trail_error *err)
{
    bool snapshot = t->limits.flight_ns && whole;
    bool good = snapshot ? trace_output_snapshot(t, err) : close_file(t, true, err);
    release(t);
    return good;
}
