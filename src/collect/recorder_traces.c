/* The traces of a recording: which process has which, their files, and their failures. */
#include <stdlib.h>

#include "base/error.h"
#include "collect/account.h"
#include "collect/other_ends.h"
#include "collect/recorder_snapshots.h"
#include "collect/recorder_traces.h"

/* MARK: Failures */

static void hand_on(const struct recorder *r, const struct recorder_failure *failure)
{
    if (r->options.failed)
        r->options.failed(r->options.failed_context, failure);
}

void recorder_fail(struct recorder *r, const char *path, const trail_error *err)
{
    r->failed = true;
    hand_on(r, &(struct recorder_failure){.error = err, .path = path});
}

void recorder_trace_look_for_loss(const struct recorder *r, struct recorded_trace *to)
{
    trail_error err;
    if (trace_output_lost(&to->out, &err))
        hand_on(r, &(struct recorder_failure){.error = &err});
}

/* MARK: Opening */

bool recorder_is_shared(const struct recorder *r)
{
    return (r->options.children || r->options.shm) && !r->options.split;
}

/*
 * Returns the path of a process's trace: out.trace for the program, out.PID.trace for a child,
 * out.PID.2.trace and so on for a later process whose PID the kernel has reused.
 */
static char *path_of(const struct recorder *r, pid_t pid)
{
    char *path = numbered_path(r->options.output, pid == r->root ? 0 : (unsigned)pid), *other;
    unsigned before = 0;
    for (const struct recorded *p = r->processes; p; p = p->next)
        before += p->pid == pid;
    if (!path || before == 0)
        return path;
    other = numbered_path(path, before + 1);
    free(path);
    return other;
}

void recorder_trace_free(struct recorded_trace *to)
{
    if (!to)
        return;
    trace_close(to->trace);
    cpu_limits_dispose(&to->cpus);
    other_ends_free(&to->ends);
    free(to->path);
    free(to);
}

static void write_account(void *to)
{
    const struct recorded_trace *trace = to;
    account_write(trace->recorder, trace);
}

/* Opens a trace and its file; takes ownership of `path`. NULL: the failure was reported. */
static struct recorded_trace *open_trace(struct recorder *r, char *path)
{
    struct recorded_trace *to = calloc(1, sizeof *to);
    struct trace_options options = {.version = r->options.version,
                                    .max_bytes = r->options.max_size,
                                    .switches = r->switches != NULL,
                                    .wakings = switches_have_wakings(r->switches),
                                    .labelled = r->options.outliving || r->options.shm,
                                    .board = &r->board,
                                    .generation = trace_output_generation,
                                    .is_hurried = r->options.is_hurried,
                                    .is_hurried_context = r->options.is_hurried_context};
    trail_error err = no_error();
    if (!to || !path) {
        (void)error_no_memory(&err);
        recorder_fail(r, r->options.output, &err);
        free(path);
        free(to);
        return NULL;
    }
    to->path = path;
    if (!trace_output_open(&to->out, path, &r->options.limits, &err)) {
        recorder_fail(r, NULL, &err);
        recorder_trace_free(to);
        return NULL;
    }
    options.sink = trace_output_sink(&to->out);
    options.generation_context = &to->out;
    to->recorder = r;
    options.slow =
        (struct slow_limits){r->options.slow, r->options.slow_count, recorder_found_slow, to};
    options.ends = write_account;
    options.ends_context = to;
    to->trace = trace_open(&options, &err);
    if (to->trace)
        return to;
    recorder_fail(r, path, &err);
    (void)trace_output_close(&to->out, false, NULL);
    recorder_trace_free(to);
    return NULL;
}

struct recorded_trace *recorder_trace_for(struct recorder *r, pid_t pid)
{
    if (!recorder_is_shared(r))
        return open_trace(r, path_of(r, pid));
    if (!r->shared)
        r->shared = open_trace(r, numbered_path(r->options.output, 0));
    return r->shared;
}

/* MARK: Writing */

void recorder_trace_finish(struct recorder *r, struct recorded_trace *to)
{
    trail_error err = no_error();
    to->over = true;
    /* Losses of the output are found when it is closed. */
    bool whole = trace_finish(to->trace, &err) || to->out.out.reason;
    other_ends_free(&to->ends);
    recorder_trace_look_for_loss(r, to);
    if (!whole)
        recorder_fail(r, to->path, &err);
    if (!trace_output_close(&to->out, whole, &err))
        recorder_fail(r, NULL, &err);
}
