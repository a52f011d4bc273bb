/* The files of a trace: compressed, split, or only the newest kept: see trace_output.h. */
#include "collect/trace_output.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* MARK: Files */

/* Returns NAME.WORD.SUFFIX; the caller frees it. NULL if out of memory. */
static char *marked_path(const char *path, const char *word)
{
    const char *slash = strrchr(path, '/'), *dot = strchr(slash ? slash : path, '.');
    char *name = NULL;
    if (!dot)
        dot = path + strlen(path);
    int n = asprintf(&name, "%.*s.%s%s", (int)(dot - path), path, word, dot);
    return n < 0 ? NULL : name;
}

char *numbered_path(const char *path, unsigned number)
{
    char word[16];
    if (number == 0)
        return strdup(path);
    (void)snprintf(word, sizeof word, "%u", number);
    return marked_path(path, word);
}

static bool put(struct trace_output *t, const void *data, size_t size)
{
    trail_sink sink = packed_sink(&t->packed);
    t->bytes += size;
    return size == 0 || sink.write(sink.context, data, size);
}

/* Opens a file whose name has `word`; NULL: the number of the file. */
static bool open_file(struct trace_output *t, const char *word, trail_error *err)
{
    free(t->current);
    t->current = word ? marked_path(t->path, word) : numbered_path(t->path, t->files);
    if (!t->current)
        return output_error(err, t->path, ENOMEM);
    t->open = output_open(&t->out, t->current, err);
    if (t->open && !packed_open(&t->packed, t->path, output_sink(&t->out))) {
        (void)output_close(&t->out, t->current, false, err);
        t->open = false;
        return output_error(err, t->current, ENOMEM);
    }
    t->files += t->open && !word;
    t->bytes = 0;
    return t->open;
}

static bool close_file(struct trace_output *t, bool made, trail_error *err)
{
    if (!t->open)
        return true;
    if (!packed_close(&t->packed) && !t->out.reason)
        t->out.reason = errno;
    t->open = false;
    return output_close(&t->out, t->current, made, err);
}

/* MARK: Memory */

/* Makes room for `wanted` elements, at least doubling. */
static bool reserve(void *array, size_t *room, size_t wanted, size_t element)
{
    size_t more = *room * 2 > wanted ? *room * 2 : wanted;
    if (wanted <= *room)
        return true;
    void *grown = realloc(*(void **)array, more * element);
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

uint64_t trace_output_kept(const struct trace_output *t)
{
    uint64_t size = t->header_size;
    for (size_t i = 0; i < t->kept_count; i++)
        size += t->kept[i].size;
    return size;
}

bool trace_output_snapshot(struct trace_output *t, const char *word, trail_error *err)
{
    if (!open_file(t, word, err))
        return false;
    bool good = put(t, t->header, t->header_size);
    for (size_t i = 0; good && i < t->kept_count; i++)
        good = put(t, t->kept[i].data, t->kept[i].size);
    return close_file(t, good, err);
}

/* MARK: The sink */

static bool write_trace(void *context, const void *data, size_t size)
{
    struct trace_output *t = context;
    const uint8_t *at = data;
    /* The header comes first, and is repeated at the start of each further file. */
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
        if (close_file(t, true, &t->lost) && open_file(t, NULL, &t->lost))
            (void)put(t, t->header, t->header_size);
        t->begin_ns = ns;
    } else if (t->open) {
        /* A compressed file that is truncated later can be read up to here. */
        (void)packed_flush(&t->packed);
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
    *t = (struct trace_output){.out = t->out};
}

bool trace_output_open(struct trace_output *t, const char *path, const struct trace_limits *limits,
                       trail_error *err)
{
    *t = (struct trace_output){.path = path, .limits = *limits, .lost = no_error()};
    if (limits->flight_ns || open_file(t, NULL, err))
        return true;
    release(t);
    return false;
}

bool trace_output_close(struct trace_output *t, bool whole, trail_error *err)
{
    bool snapshot = t->limits.flight_ns && whole;
    bool good = snapshot ? trace_output_snapshot(t, NULL, err) : close_file(t, true, err);
    release(t);
    return good;
}
