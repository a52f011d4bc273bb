/* Writes snapshots, within their limits: see recorder_snapshots.h. */
#include "collect/recorder_snapshots.h"

#include <sys/stat.h>

#include "base/text.h"

void recorder_snapshot(struct recorder *r)
{
    r->snapshot_ns = now_ns() + 2 * (int64_t)COLLECT_DELAY_NS;
}

int64_t recorder_snapshots_due_ns(const struct recorder *r)
{
    int64_t requested = r->snapshot_ns, slow = r->slow.to ? r->slow.due_ns : 0;
    return requested && (!slow || requested < slow) ? requested : slow;
}

/* A snapshot that cannot be written does not end the recording. */
static void failed(const struct recorder *r, const trail_error *err)
{
    if (r->options.failed)
        r->options.failed(r->options.failed_context, &(struct recorder_failure){.error = err});
}

/* MARK: Requested ones */

static void write_requested(const struct recorder *r, struct recorded_trace *to)
{
    trail_error err;
    trace_cut(to->trace);
    if (!trace_output_snapshot(&to->out, NULL, &err))
        failed(r, &err);
}

static void write_all_requested(struct recorder *r)
{
    r->snapshot_ns = 0;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        if (p->to != r->shared)
            write_requested(r, p->to);
    }
    if (r->shared && !r->shared->over)
        write_requested(r, r->shared);
}

/* MARK: Snapshots of something slow */

/* How long after the slow event its snapshot ends. */
#define AFTER_NS COLLECT_DELAY_NS

void recorder_found_slow(void *to, const struct slow_event *event)
{
    struct recorder *r = ((struct recorded_trace *)to)->recorder;
    struct slow_snapshots *slow = &r->slow;
    int64_t now = now_ns();
    bool is_same = slow->to == to && slow->event.number == event->number;
    if (!is_same && event->again)
        return;
    if (!is_same && (slow->to || now < slow->next_ns)) {
        slow->too_soon++;
        return;
    }
    slow->to = to;
    slow->event = *event;
    slow->due_ns = now + AFTER_NS;
}

/* Writes the time for the name of a file: "20261127T162301Z", which sorts and needs no quotes. */
static void put_time(char *text, size_t size)
{
    time_t now = time(NULL);
    struct tm utc;
    if (!gmtime_r(&now, &utc) || strftime(text, size, "%Y%m%dT%H%M%SZ", &utc) == 0)
        *text = '\0';
}

static void count_file(struct slow_snapshots *slow, const char *path)
{
    struct stat file;
    slow->written++;
    if (stat(path, &file) == 0)
        slow->bytes += (uint64_t)file.st_size;
}

static void report(const struct recorder *r, const char *path)
{
    if (r->options.snapshot)
        r->options.snapshot(r->options.snapshot_context,
                            &(struct recorder_snapshot){&r->slow.event, path});
}

/* The snapshot itself names what it was written for. */
static void note(struct trace *trace, const struct slow_event *event)
{
    char line[SLOW_LINE];
    trail_recorded row = {.what = TRAIL_RECORDED_SLOW};
    slow_line(event, line);
    row.name = text_from(line);
    if (event->goroutine && event->ended) {
        row.count = event->goroutine;
        row.cpu_ns = event->lasted_ns;
        row.recorder_ns = event->begin_ns;
    }
    trace_recorded(trace, &row);
}

static void write_slow(struct recorder *r)
{
    struct slow_snapshots *slow = &r->slow;
    struct recorded_trace *to = slow->to;
    char time[32];
    trail_error err;
    slow->to = NULL;
    slow->next_ns = now_ns() + r->options.snapshot_every_ns;
    note(to->trace, &slow->event);
    trace_cut(to->trace);
    if (r->options.snapshot_max &&
        slow->bytes + trace_output_kept(&to->out) > r->options.snapshot_max) {
        if (slow->too_large++ == 0)
            report(r, NULL);
        return;
    }
    put_time(time, sizeof time);
    if (!trace_output_snapshot(&to->out, time, &err)) {
        failed(r, &err);
        return;
    }
    count_file(slow, to->out.current);
    report(r, to->out.current);
}

void recorder_write_snapshots(struct recorder *r)
{
    int64_t now = now_ns();
    if (r->snapshot_ns && now >= r->snapshot_ns)
        write_all_requested(r);
    if (r->slow.to && now >= r->slow.due_ns)
        write_slow(r);
}

void recorder_write_last_snapshot(struct recorder *r, const struct recorded_trace *to)
{
    if (r->slow.to == to)
        write_slow(r);
}
