/*
 * Part: finds a trace behind others by walking these, so that a header within their strings is none.
 */
#include <trail/read.h>

#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"
#include "read/source.h"

/* Replaces *err by one that says which part cannot be found. */
static void fail_behind(trail_error *err, unsigned wanted, unsigned damaged)
{
    trail_error cause = *err;
    if (cause.code == TRAIL_IO || cause.code == TRAIL_LIMIT || cause.code == TRAIL_NO_MEMORY)
        return;
    (void)snprintf(err->message, sizeof err->message,
                   "part %u cannot be found, because part %u is damaged: %.200s", wanted, damaged,
                   cause.message);
}

/* Returns the offset of a part; -1 with *err if it cannot be found. */
static int64_t find(trail_source *source, unsigned number, trail_error *err)
{
    trail_batch batch;
    trail_walk *walk = trail_walk_open(source, err);
    if (!walk)
        return -1;
    int64_t offset = 0;
    for (unsigned at = 1; at < number && offset >= 0; at++) {
        int more;
        while ((more = trail_walk_next(walk, &batch)) > 0)
            ;
        offset = trail_walk_next_trace(walk);
        if (more == 0 && offset < 0)
            error_set(err, TRAIL_USAGE, "no part %u: the file has %u trace%s", number, at,
                      at == 1 ? "" : "s");
        if (more == 0 && (offset < 0 || trail_walk_go_on(walk) == 0))
            continue;
        *err = *trail_walk_error(walk);
        if (more < 0 || at + 1 < number)
            fail_behind(err, number, more < 0 ? at : at + 1);
        offset = -1;
    }
    trail_walk_close(walk);
    return offset;
}

static trail_source *open_file(const char *path, uint64_t max_bytes, uint64_t max_ratio,
                               trail_error *err)
{
    trail_source *source = trail_source_open_path(path, err);
    if (source)
        trail_source_limit_inflated(source, max_bytes, max_ratio);
    return source;
}

trail_source *trail_source_open_part(const char *path, unsigned number, uint64_t max_bytes,
                                     uint64_t max_ratio, trail_error *err)
{
    trail_error own;
    struct stat file;
    err = err ? err : &own;
    error_clear(err);
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        error_set(err, TRAIL_USAGE, "a part is read from a file, not from a pipe: save it first");
        return NULL;
    }
    trail_source *source = open_file(path, max_bytes, max_ratio, err);
    int64_t offset = source ? find(source, number, err) : -1;
    trail_source_close(source);
    source = offset >= 0 ? open_file(path, max_bytes, max_ratio, err) : NULL;
    return source && offset > 0 ? source_from(source, offset, err) : source;
}
