/*
 * The holder of the lock that a span waits for.
 *
 * In recordings of C programs, a log "held: mutex cache_mu 15.1ms" at each release that mattered
 * gives the hold; it ends with "by 7" if another thread than the releasing one held the lock. A log
 * "holds: mutex cache_mu" before a wait names the locks that its thread keeps. For a mutex of Go, the goroutine that ends the wait
 * has just released it. It is taken for the holder since the end of its own last wait for a mutex;
 * before that, the goroutine that ended that wait is.
 */
#include "serve/holder.h"

#include <string.h>

#include "analyze/wait_names.h"
#include "base/search.h"
#include "base/text.h"

/* Limits on the logs, spans and steps examined for one wait. */
enum { MOST_LOGS = 4096, MOST_SPANS = 256, MOST_STEPS = 8 };

/* The release that ends a wait may be logged this much after the wait ends. */
#define LATE_NS 100000

static const struct holder_lane unknown = {.lane = -1};

static int64_t common_ns(int64_t a, int64_t b, int64_t from, int64_t to)
{
    int64_t begin = a > from ? a : from, end = b < to ? b : to;
    return end > begin ? end - begin : 0;
}

static bool is_half(const trail_span *row, int64_t ns)
{
    return ns > 0 && ns >= (row->end_ns - row->begin_ns) / 2;
}

/* Returns the lane that ended the wait `span`; -1: not known. */
static int64_t ender(const trail_lanes *lanes, size_t lane, uint64_t span)
{
    trail_span next;
    if (!trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, lane, span + 1, &next) ||
        next.state != TRAIL_SPAN_RUNNABLE)
        return -1;
    return next.other;
}

/* MARK: Recorded holds */

static bool can_be_held(const trail_wait_for *lock)
{
    for (int kind = WIRE_WAIT_NONE + 1; kind < WIRE_WAITS; kind++)
        if (strcmp(wire_wait_kinds[kind].word, lock->kind) == 0)
            return (wire_wait_kinds[kind].traits & WIRE_WAIT_HELD) != 0;
    return false;
}

/* Whether a log is about the lock, whose kind logs may name by several words: "rwlock to read". */
static bool is_about(const trail_lanes *lanes, const struct wait_text *text,
                     const trail_wait_for *lock)
{
    return text->kind != WIRE_WAIT_NONE &&
           strcmp(wire_wait_kinds[text->kind].word, lock->kind) == 0 &&
           text_equal(text->object, trail_lanes_text(lanes, lock->object));
}

/* Whether the log records the end of a hold of the lock, which is then in *hold. */
static bool is_hold(const trail_lanes *lanes, const trail_mark *log, const trail_wait_for *lock,
                    struct wait_text *hold)
{
    trail_string text = trail_lanes_text(lanes, log->name);
    if (!text_take(&text, "held: "))
        return false;
    *hold = wait_text_of_hold(text);
    return is_about(lanes, hold, lock);
}

/* Returns the lane of the goroutine that held the lock, perhaps not the one that released it. */
static int64_t holder_of_log(const trail_lanes *lanes, const trail_mark *log,
                             const struct wait_text *hold)
{
    trail_lane writer;
    if (hold->by == TRAIL_NONE)
        return log->lane;
    trail_lanes_get(lanes, TRAIL_LANE_GOROUTINE, log->lane, &writer);
    return trail_lanes_find(lanes, TRAIL_LANE_GOROUTINE, wait_text_holder(hold->by, writer.id));
}

/* Whether the log is about a lock that its thread holds while it waits. */
static bool is_held(const trail_lanes *lanes, const trail_mark *log, const trail_wait_for *lock)
{
    trail_string text = trail_lanes_text(lanes, log->name);
    if (!text_take(&text, "holds: "))
        return false;
    struct wait_text held = wait_text_of_wait(text);
    return is_about(lanes, &held, lock);
}

/*
 * Finds the hold that covers the longest part of the wait, by the log at its end. If its waker is
 * not known, the wait may have been given up: the hold may then end at any time after it, and is
 * the first that does.
 */
static struct holder_lane of_ended(const trail_lanes *lanes, size_t lane, uint64_t span,
                                   const trail_span *row, const trail_wait_for *lock)
{
    const bool may_be_given_up = ender(lanes, lane, span) < 0;
    const trail_mark *logs;
    size_t count = trail_lanes_logs(lanes, &logs);
    size_t first = SEARCH(i, 0, count, logs[i].time_ns < row->begin_ns);
    struct holder_lane found = unknown;
    int64_t most = 0;
    for (size_t i = first; i < count && i - first < MOST_LOGS; i++) {
        bool is_late = logs[i].time_ns > row->end_ns + LATE_NS;
        if (is_late && !may_be_given_up)
            break;
        struct wait_text hold;
        if (logs[i].lane != UINT32_MAX && is_hold(lanes, &logs[i], lock, &hold)) {
            int64_t part = common_ns(logs[i].time_ns - hold.held_ns, logs[i].time_ns, row->begin_ns,
                                     row->end_ns);
            if (part > most) {
                most = part;
                found.lane = holder_of_log(lanes, &logs[i], &hold);
            }
            if (is_late)
                break;
        }
    }
    return is_half(row, most) ? found : unknown;
}

/* For a wait still open at the end of the trace: finds the lane that waits, or has ended, after
 * logging that it holds the lock. */
static struct holder_lane of_open(const trail_lanes *lanes, const trail_wait_for *lock)
{
    const trail_mark *logs;
    size_t count = trail_lanes_logs(lanes, &logs);
    for (size_t i = count; i > 0 && count - i < MOST_LOGS; i--) {
        if (logs[i - 1].lane == UINT32_MAX || !is_held(lanes, &logs[i - 1], lock))
            continue;
        uint64_t span =
            trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, logs[i - 1].lane, logs[i - 1].time_ns);
        trail_span row;
        /* The log comes directly before the wait. */
        for (int step = 0; step < 2; step++, span++)
            if (trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, logs[i - 1].lane, span, &row) &&
                row.open && row.state == TRAIL_SPAN_WAITING)
                return (struct holder_lane){.lane = logs[i - 1].lane};
    }
    return unknown;
}

bool mark_is_recorders(const trail_lanes *lanes, const trail_mark *mark)
{
    static const char colon[] = ": ";
    trail_string category = trail_lanes_text(lanes, mark->name);
    const char *end = memmem(category.data, category.size, colon, sizeof colon - 1);
    if (!end)
        return false;
    trail_string message = {end + sizeof colon - 1, 0};
    message.size = (size_t)(category.data + category.size - message.data);
    category.size = (size_t)(end - category.data);
    return log_is_recorders(category, message);
}

/* MARK: Mutexes of Go */

trail_string sync_function_of(const trail_lanes *lanes, const trail_span *row)
{
    const trail_place *places;
    trail_string found = {"", 0};
    size_t count = trail_lanes_stack(lanes, row->stack, &places);
    for (size_t i = 0; row->state == TRAIL_SPAN_WAITING && i < count; i++) {
        trail_string name = trail_lanes_text(lanes, places[i].function);
        if (text_begins(name, "sync."))
            found = name;
        else if (!text_begins(name, "runtime.") && !text_begins(name, "internal/"))
            break;
    }
    return found;
}

/* Whether the wait is in a function of sync.Mutex or sync.RWMutex. */
static bool is_for_mutex(const trail_lanes *lanes, const trail_span *row)
{
    trail_string name = sync_function_of(lanes, row);
    return memmem(name.data, name.size, "Mutex).", 7);
}

/* Finds the last wait for a mutex of a lane that ends in (from_ns, to_ns]. Returns its number, or
 * UINT64_MAX. */
static uint64_t last_wait(const trail_lanes *lanes, size_t lane, int64_t from_ns, int64_t to_ns,
                          trail_span *row)
{
    uint64_t span = trail_lanes_span_at(lanes, TRAIL_LANE_GOROUTINE, lane, to_ns);
    for (int seen = 0; seen < MOST_SPANS; seen++, span--) {
        if (trail_lanes_span(lanes, TRAIL_LANE_GOROUTINE, lane, span, row)) {
            if (row->end_ns <= from_ns)
                return UINT64_MAX;
            if (row->end_ns <= to_ns && is_for_mutex(lanes, row))
                return span;
        }
        if (span == 0)
            return UINT64_MAX;
    }
    return UINT64_MAX;
}

static struct holder_lane of_go(const trail_lanes *lanes, size_t lane, uint64_t span,
                                const trail_span *row)
{
    int64_t to = row->end_ns;
    for (int step = 0; step < MOST_STEPS; step++) {
        int64_t by = ender(lanes, lane, span);
        if (by < 0)
            return unknown;
        trail_span before;
        span = last_wait(lanes, (size_t)by, row->begin_ns, to, &before);
        int64_t since = span == UINT64_MAX ? row->begin_ns : before.end_ns;
        if (is_half(row, to - since))
            return (struct holder_lane){.lane = by, .inferred = true};
        lane = (size_t)by;
        to = since;
        if (span == UINT64_MAX)
            return unknown;
    }
    return unknown;
}

/* MARK: Both */

struct holder_lane holder_of_wait(const trail_lanes *lanes, size_t lane, uint64_t span,
                                  const trail_span *row)
{
    if (row->state != TRAIL_SPAN_WAITING)
        return unknown;
    trail_wait_for lock = trail_lanes_wait_for(lanes, row->reason);
    struct holder_lane found = unknown;
    if (lock.kind && lock.object && can_be_held(&lock))
        found = row->open ? of_open(lanes, &lock) : of_ended(lanes, lane, span, row, &lock);
    else if (!lock.kind && !row->open && is_for_mutex(lanes, row))
        found = of_go(lanes, lane, span, row);
    return found.lane == (int64_t)lane ? unknown : found;
}
