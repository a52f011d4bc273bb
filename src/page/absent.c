/*
 * Stubs for functions that no request of a page can reach (see serve/command_line.c), so that the
 * WebAssembly contains no ELF reader and no compressor; and for the reader's other threads, because
 * WebAssembly has no threads.
 */
#include <limits.h>

#include "analyze/aside.h"
#include "base/cpu_quota.h"
#include "base/error.h"
#include "export/profile.h"
#include "read/ahead.h"
#include "read/v2/parallel.h"
#include "serve/shelf.h"
#include "symbols/symbols.h"
#include "timeline/kept.h"
#include "ui/cli.h"
#include "ui/closed_stdout.h"
#include "ui/fit.h"
#include "ui/skip_frames.h"
#include "ui/terminal.h"

#pragma GCC diagnostic ignored "-Wunused-parameter" /* nearly none is used */

/* As on a machine with one processor, so that functions for threads are never called. */
unsigned cpu_quota_usable(void)
{
    return 1;
}

/* A page has no folder in which something could be kept. */
int shelf_open(const struct shelf *shelf, const char *key)
{
    return -1;
}

void shelf_name(const struct shelf *shelf, const char *key, char name[SHELF_NAME])
{
    *name = '\0';
}

trail_lanes *kept_open(trail_reader *reader, int folder)
{
    return NULL;
}

bool kept_finish(trail_lanes *lanes, const void *own, size_t own_size)
{
    return false;
}

bool kept_name(const trail_lanes *lanes, int folder, const char *name)
{
    return false;
}

trail_lanes *kept_read(int fd, void *own, size_t own_size)
{
    return NULL;
}

struct v2_parallel *v2_parallel_open(const trail_source *source, int version, bool strict,
                                     unsigned threads)
{
    return NULL;
}

struct v2_alone *v2_parallel_take(struct v2_parallel *parallel, uint64_t offset,
                                  struct v2_extent *extent)
{
    return NULL;
}

void v2_parallel_close(struct v2_parallel *parallel)
{
}

void ahead_start(trail_reader *reader)
{
}

void ahead_stop(struct ahead *ahead)
{
}

long ahead_next(struct ahead *ahead, const trail_event **events)
{
    return -1;
}

void ahead_lend(struct ahead *ahead, bool (*work)(void *context), void *context)
{
}

void ahead_has_work(struct ahead *ahead)
{
}

struct aside *aside_open(trail_reader *reader)
{
    return NULL;
}

bool aside_put(struct aside *aside, aside_take *take, void *of, const void *item, size_t size)
{
    return take(of, item, NULL);
}

void aside_drop(struct aside *aside)
{
    (void)aside;
}

bool aside_close(struct aside *aside)
{
    return true;
}

const trail_reader_stats *ahead_stats(const struct ahead *ahead)
{
    return NULL;
}

bool ahead_settle(struct ahead *ahead)
{
    return true;
}

/* A page has no pipe. */
bool closed_stdout_is(int reason)
{
    return false;
}

void closed_stdout_end(void)
{
}

/* There is no terminal. */
bool terminal_end(void)
{
    return true;
}

void terminal_unwrap(void)
{
}

bool terminal_colours(void)
{
    return false;
}

void terminal_control(FILE *to, const char *controls)
{
    fputs(controls, to);
}

/* --skip-frames */
int skip_frames_read(const char *path, const char ***patterns)
{
    print_message("%s: a page cannot read files", path);
    return EXIT_USAGE;
}

int skip_frames_take(const struct command *command, void *patterns, const char *path)
{
    return skip_frames_read(path, patterns);
}

void skip_frames_free(const char **patterns)
{
}

/* --binary */
struct symbols *symbols_open(struct symbol_process *process, const char *path, const char *wanted,
                             enum symbols_detail detail, trail_error *err)
{
    (void)error_set(err, TRAIL_USAGE, "%s: a page cannot read programs", path);
    return NULL;
}

void symbols_close(struct symbols *symbols)
{
}

void print_refused_file(void)
{
}

bool symbols_find(void *context, uint64_t pc, const char **function, const char **file,
                  uint64_t *line)
{
    return false;
}

/* --format=pprof */
int profile_write_pprof(const trail_analysis *analysis, const trail_profile *profile,
                        const trail_sink *sink, trail_error *err)
{
    return error_set(err, TRAIL_USAGE, "a page cannot write pprof files");
}

/* Lines in a page are never wrapped. */
int fit_columns(void)
{
    return INT_MAX;
}
