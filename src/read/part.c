/*
 * Part: finds a trace that follows others in a file by walking those, so that a header inside their
 * strings does not count.
 */
#include <trail/read.h>

#include <stdio.h>
#include <sys/stat.h>

#include "base/error.h"
#include "read/source.h"

static bool is_damage(const trail_error *err)
{
    return err->code != TRAIL_IO && err->code != TRAIL_LIMIT && err->code != TRAIL_NO_MEMORY &&
           err->code != TRAIL_USAGE && err->code != TRAIL_UNSUPPORTED;
}

/* Replaces *err with one that names the part that cannot be found. */
static void fail_after_damage(trail_error *err, unsigned wanted, unsigned damaged)
{
    trail_error cause = *err;
    if (is_damage(err) || err->code == TRAIL_UNSUPPORTED)
        (void)snprintf(err->message, sizeof err->message,
                       "part %u cannot be found, because part %u is damaged: %.200s", wanted,
                       damaged, cause.message);
}

/*
 * Walks from `offset`, where part *at begins, to part `number`, counting in *at. Returns the offset
 * of the last part found, with *err set if that is not the wanted one.
 */
static int64_t walk_to(trail_source *source, int64_t offset, unsigned number, unsigned *at,
                       trail_error *err)
{
    trail_batch batch;
    trail_walk *walk = trail_walk_open(source, err);
    int more = walk ? 0 : -1;
    int64_t begin = offset;
    while (walk && *at < number && more == 0) {
        while ((more = trail_walk_next(walk, &batch)) > 0)
            ;
        int64_t next = trail_walk_next_trace(walk);
        if (more == 0 && next < 0)
            more = error_set(err, TRAIL_USAGE, "no part %u: the file has %u trace%s", number, *at,
                             *at == 1 ? "" : "s");
        else if (more < 0)
            *err = *trail_walk_error(walk);
        if (more < 0)
            break;
        offset = begin + next;
        ++*at;
        more = trail_walk_go_on(walk);
        if (more < 0)
            *err = *trail_walk_error(walk);
    }
    if (*at == number)
        error_clear(err);
    trail_walk_close(walk);
    return offset;
}

/* Returns the offset of the next trace from the start of a damaged one; -1 if there is none. */
static int64_t read_to_next(trail_source *source)
{
    const trail_reader_options options = {.partial = true, .verdict_only = true};
    const trail_event *events;
    trail_reader_stats stats = {.next_trace = -1};
    trail_reader *reader = trail_reader_open(source, &options, NULL);
    while (reader && trail_reader_next_batch(reader, &events) > 0)
        ;
    if (reader)
        trail_reader_get_stats(reader, &stats);
    trail_reader_close(reader);
    return stats.next_trace;
}

static trail_source *open_at(const char *path, int64_t offset, uint64_t max_bytes,
                             uint64_t max_ratio, trail_error *err)
{
    trail_source *source = trail_source_open_path(path, err);
    if (source)
        trail_source_limit_inflated(source, max_bytes, max_ratio);
    return source && offset > 0 ? source_from(source, offset, err) : source;
}

trail_source *trail_source_open_part(const char *path, unsigned number, uint64_t max_bytes,
                                     uint64_t max_ratio, trail_error *err)
{
    trail_error own = no_error();
    struct stat file;
    int64_t offset = 0;
    unsigned at = 1;
    err = err ? err : &own;
    error_clear(err);
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        error_set(err, TRAIL_USAGE, "a part is read from a file, not from a pipe: save it first");
        return NULL;
    }
    while (at < number) {
        trail_source *source = open_at(path, offset, max_bytes, max_ratio, err);
        if (!source)
            return NULL;
        offset = walk_to(source, offset, number, &at, err);
        trail_source_close(source);
        if (at == number)
            break;
        source = is_damage(err) ? open_at(path, offset, max_bytes, max_ratio, NULL) : NULL;
        int64_t next = source ? read_to_next(source) : -1;
        trail_source_close(source);
        if (next <= 0) {
            fail_after_damage(err, number, at);
            return NULL;
        }
        offset += next;
        at++;
    }
    error_clear(err);
    return open_at(path, offset, max_bytes, max_ratio, err);
}
