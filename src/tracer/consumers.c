/*
 * The consumers of a trace: starts and stops streams and the flight recorder. The first one begins
 * a session (control.c), the last one ends it; read.c delivers to them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "tracer/control.h"
#include "tracer/flight.h"
#include "tracer/misuse.h"
#include "tracer/read.h"
#include "tracer/slow.h"

/* A stop waits for the stream, or for the library's thread. Guarded by tracer.lock. */
static bool stopping;

/* MARK: Streams */

/* Whether another thread is stopping a trace, which clears pending buffers. */
static bool is_stopping(trail_error *err)
{
    bool is;
    pthread_mutex_lock(&tracer.lock);
    is = stopping;
    pthread_mutex_unlock(&tracer.lock);
    return is &&
           !record_fail(err, TRAIL_USAGE,
                        "another thread is stopping a trace: start again when it has returned");
}

/*
 * Takes control for a start. Fails at once if `on` returns true, with the reason `already`, or
 * during a stop: it may wait for this thread to read.
 */
static bool lock_for_start(bool (*on)(void), const char *already, trail_error *err)
{
    bool is_on;
    if (is_stopping(err))
        return false;
    pthread_mutex_lock(&tracer.control);
    pthread_mutex_lock(&tracer.lock);
    is_on = on();
    pthread_mutex_unlock(&tracer.lock);
    if (is_on)
        (void)record_fail(err, TRAIL_USAGE, "%s", already);
    else if (!is_stopping(err))
        return true;
    pthread_mutex_unlock(&tracer.control);
    return false;
}

static bool stream_on(void)
{
    return stream.on;
}

#define NO_END "the world stays stopped, or too many generations are unread"

/*
 * Begins generation `first` for a stream beside the flight recorder or vice versa. Its state must
 * be set before, because the reading thread may get the first batch before this returns. control is
 * held.
 */
static bool begin_beside(uint64_t first, trail_error *err)
{
    (void)v2_advance();
    if (tracer.last_generation >= first)
        return true;
    return record_fail(err, TRAIL_USAGE,
                       "no generation can begin now: " NO_END "; try again later");
}

static void set_stream(struct stream wanted, uint64_t first)
{
    pthread_mutex_lock(&tracer.lock);
    stream = wanted;
    stream.on = stream.header_due = true;
    stream.first = first;
    read_restart();
    pthread_mutex_unlock(&tracer.lock);
}

/* Starts a stream with its own session, or beside the flight recorder. control is held. */
static bool start_stream(const trail_options *options, struct stream wanted, uintptr_t frame,
                         trail_error *err)
{
    uint64_t next = tracer.last_generation + 1;
    if (tracer.active) {
        if (options && options->format && options->format != tracer.format)
            return record_fail(
                err, TRAIL_USAGE,
                "the flight recorder is on in format %d: a stream beside it cannot have format %d",
                tracer.format, options->format);
        set_stream(wanted, next);
        return begin_beside(next, err);
    }
    if (!session_begin(options, frame, err))
        return false;
    set_stream(wanted, tracer.last_generation);
    if (wanted.pull || read_start_thread(err))
        return true;
    session_end();
    queue_clear();
    return false;
}

/* Removes a stream whose start failed. */
static void drop_stream(int fd)
{
    pthread_mutex_lock(&tracer.lock);
    stream.on = false;
    stream.fd = fd;
    read_close_fd();
    pthread_mutex_unlock(&tracer.lock);
}

static bool stop_stream(bool (*is_on)(void), bool waits, trail_error *err);

/* Whether the stream has ended by itself. The lock is held. */
static bool stream_over(void)
{
    return stream.on && tracer.failed;
}

static bool start(const trail_options *options, struct stream wanted, uintptr_t frame,
                  trail_error *err)
{
    bool ok;
    tracer_init();
    /* A trace that ended by itself is replaced. */
    if (!read_is_own_thread() && !is_stopping(NULL))
        (void)stop_stream(stream_over, false, NULL);
    if (!lock_for_start(stream_on, "tracing is already enabled", err)) {
        if (wanted.fd >= 0)
            close(wanted.fd);
        return false;
    }
    ok = start_stream(options, wanted, frame, err);
    if (!ok)
        drop_stream(wanted.fd);
    pthread_mutex_unlock(&tracer.control);
    return ok;
}

#define FRAME ((uintptr_t)__builtin_frame_address(0))

bool trail_start(const trail_options *options, trail_error *err)
{
    if (read_refuses_call(err))
        return false;
    return start(options, (struct stream){.pull = true, .fd = -1}, FRAME, err);
}

bool trail_start_fd(const trail_options *options, int fd, trail_error *err)
{
    int own;
    if (read_refuses_call(err))
        return false;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return record_fail(err, TRAIL_IO, "cannot write the trace: %s", strerror(errno));
    return start(options, (struct stream){.fd = own}, FRAME, err);
}

bool trail_start_sink(const trail_options *options, trail_chunk_fn sink, void *context,
                      trail_error *err)
{
    if (read_refuses_call(err))
        return false;
    if (!sink)
        return record_fail(err, TRAIL_USAGE, "the sink is NULL");
    return start(options, (struct stream){.fd = -1, .sink = sink, .context = context}, FRAME, err);
}

/*
 * Reports whether the trace is complete, with the reason in *err: its last generation may not have
 * ended, or not have been read in time. The lock is held.
 */
static bool verdict(bool ended, bool in_time, trail_error *err)
{
    if (stream.error.code != TRAIL_OK) {
        if (err)
            *err = stream.error;
        return false;
    }
    if (tracer.error.code != TRAIL_OK) {
        if (err)
            *err = tracer.error;
        return false;
    }
    if (!ended)
        return record_fail(err, TRAIL_TRUNCATED,
                           "the trace is incomplete: its last generation cannot end now: " NO_END);
    if (!in_time)
        return record_fail(err, TRAIL_TRUNCATED,
                           "the trace is incomplete: its last part was not read in time");
    if (tracer.stats.lost_generations)
        return record_fail(err, TRAIL_TRUNCATED,
                           "%llu generation%s (%llu bytes) dropped, not read in time",
                           (unsigned long long)tracer.stats.lost_generations,
                           tracer.stats.lost_generations == 1 ? "" : "s",
                           (unsigned long long)tracer.stats.lost_bytes);
    if (tracer.stats.misuse)
        return misuse_report(err);
    return true;
}

/*
 * Ends the stream with the current generation; the flight recorder continues. Returns false if that
 * generation cannot end, and true if the trace has already ended by itself. control is held.
 */
static bool end_stream(bool with_flight)
{
    if (!with_flight) {
        session_end();
        return true;
    }
    /* Set before the next generation begins, which the stream does not receive. */
    pthread_mutex_lock(&tracer.lock);
    stream.last = tracer.last_generation;
    pthread_mutex_unlock(&tracer.lock);
    return v2_advance() || !trace_is_on();
}

/* Begins a stop, one at a time; false if there is nothing to stop. The lock is held. */
static bool begin_stop(bool (*is_on)(void))
{
    while (stopping)
        pthread_cond_wait(&tracer.changed, &tracer.lock);
    stopping = is_on();
    return stopping;
}

static void end_stop(bool with_flight)
{
    if (!with_flight)
        queue_clear();
    pthread_mutex_lock(&tracer.lock);
    stopping = false;
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
}

/*
 * Stops the stream if `is_on` returns true. `waits`: gives a program that reads it up to wait_ns;
 * otherwise unread data is dropped.
 */
static bool stop_stream(bool (*is_on)(void), bool waits, trail_error *err)
{
    bool with_flight, ok, ended, in_time, own_thread;
    pthread_mutex_lock(&tracer.lock);
    if (!begin_stop(is_on)) {
        pthread_mutex_unlock(&tracer.lock);
        return true;
    }
    with_flight = flight_on();
    own_thread = !stream.pull;
    pthread_mutex_unlock(&tracer.lock);

    pthread_mutex_lock(&tracer.control);
    ended = end_stream(with_flight);
    pthread_mutex_unlock(&tracer.control);

    pthread_mutex_lock(&tracer.lock);
    pthread_cond_broadcast(&tracer.changed);
    in_time = ended && (waits || own_thread) ? read_wait_for_stream() : stream.ended;
    ok = verdict(ended, in_time, err);
    stream.ended = true;
    read_close_fd();
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
    if (own_thread && !with_flight)
        read_end_thread(!in_time);
    pthread_mutex_lock(&tracer.lock);
    stream.on = false;
    pthread_mutex_unlock(&tracer.lock);
    end_stop(with_flight);
    return ok;
}

bool trail_stop(trail_error *err)
{
    tracer_init();
    if (read_is_own_thread())
        return record_fail(err, TRAIL_USAGE,
                           "a sink cannot stop its own trace: return false from it");
    if (read_refuses_call(err))
        return false;
    return stop_stream(stream_on, true, err);
}

trail_trace_state trail_state(void)
{
    trail_trace_state state = TRAIL_STATE_OFF;
    tracer_init();
    pthread_mutex_lock(&tracer.lock);
    if (stream.on || flight_on())
        state = tracer.failed ? TRAIL_STATE_ENDED : TRAIL_STATE_ON;
    pthread_mutex_unlock(&tracer.lock);
    return state;
}

/* MARK: Flight recorder */

/* Keeps generations from `first` on. control is held. */
static void keep_from(const trail_flight_options *options, uint64_t first)
{
    pthread_mutex_lock(&tracer.lock);
    flight_begin(options, first);
    read_restart();
    pthread_mutex_unlock(&tracer.lock);
}

static bool flight_of_own_session(const trail_flight_options *options, uintptr_t frame,
                                  trail_error *err)
{
    if (options && options->trace.format && options->trace.format < 22)
        return record_fail(err, TRAIL_USAGE,
                           "a flight recorder cannot have format %d: use 22 or newer",
                           options->trace.format);
    if (!session_begin(options ? &options->trace : NULL, frame, err))
        return false;
    keep_from(options, tracer.last_generation);
    if (read_start_thread(err))
        return true;
    session_end();
    queue_clear();
    return false;
}

static bool flight_beside_stream(const trail_flight_options *options, trail_error *err)
{
    uint64_t next = tracer.last_generation + 1;
    if (!tracer.v2)
        return record_fail(err, TRAIL_USAGE,
                           "a trace of format %d is on: a flight recorder needs 22 or newer",
                           tracer.format);
    keep_from(options, next);
    return read_start_thread(err) && begin_beside(next, err);
}

bool trail_flight_start(const trail_flight_options *options, trail_error *err)
{
    bool ok;
    tracer_init();
    if (read_refuses_call(err))
        return false;
    if (!lock_for_start(flight_on, "the flight recorder is already on", err))
        return false;
    ok = tracer.active ? flight_beside_stream(options, err)
                       : flight_of_own_session(options, FRAME, err);
    if (!ok) {
        pthread_mutex_lock(&tracer.lock);
        flight_end();
        pthread_mutex_unlock(&tracer.lock);
    }
    pthread_mutex_unlock(&tracer.control);
    return ok;
}

bool trail_flight_snapshot(int fd, uint64_t *bytes, trail_error *err)
{
    struct timespec until;
    uint64_t wanted;
    bool on, ended, there;
    tracer_init();
    if (read_refuses_call(err))
        return false;
    if (gc_has_stopped_world())
        return record_fail(err, TRAIL_USAGE,
                           "the calling goroutine has stopped the world: no generation can end");
    pthread_mutex_lock(&tracer.control);
    pthread_mutex_lock(&tracer.lock);
    on = flight_on();
    pthread_mutex_unlock(&tracer.lock);
    if (!on) {
        pthread_mutex_unlock(&tracer.control);
        return record_fail(err, TRAIL_USAGE, "the flight recorder is not on");
    }
    wanted = tracer.last_generation;
    ended = v2_advance();
    pthread_mutex_unlock(&tracer.control);
    if (!ended && trace_is_on())
        return record_fail(err, TRAIL_USAGE,
                           "no generation can end now: " NO_END "; try again later");

    until = deadline_after(tracer.options.wait_ns);
    pthread_mutex_lock(&tracer.lock);
    while (flight_on() && flight_newest() < wanted && !read_is_reader()) {
        if (pthread_cond_timedwait(&tracer.changed, &tracer.lock, &until) == ETIMEDOUT)
            break;
    }
    there = flight_newest() != 0;
    pthread_mutex_unlock(&tracer.lock);
    if (!there)
        return record_fail(
            err, TRAIL_TRUNCATED,
            "the flight recorder holds no complete generation: the stream beside it is not read");
    return flight_write(fd, bytes, err);
}

void trail_flight_stop(void)
{
    bool with_stream;
    tracer_init();
    if (read_refuses_call(NULL))
        return;
    slow_stop();
    pthread_mutex_lock(&tracer.lock);
    if (!begin_stop(flight_on)) {
        pthread_mutex_unlock(&tracer.lock);
        return;
    }
    with_stream = stream.on;
    flight_end();
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
    if (!with_stream) {
        pthread_mutex_lock(&tracer.control);
        session_end();
        pthread_mutex_unlock(&tracer.control);
    }
    if (!with_stream || stream.pull)
        read_end_thread(false);
    end_stop(with_stream);
}

void trail_advance(void)
{
    tracer_init();
    if (read_refuses_call(NULL))
        return;
    if (gc_has_stopped_world()) {
        (void)misuse_at(TRAIL_MISUSE_NESTING, FRAME, "trail_advance",
                        "the thread's goroutine has stopped the world");
        return;
    }
    pthread_mutex_lock(&tracer.control);
    if (tracer.active && tracer.v2)
        v2_advance();
    pthread_mutex_unlock(&tracer.control);
}

/* MARK: Fork, exit */

void consumers_after_fork(void)
{
    stopping = false;
}

void consumers_at_exit(void)
{
    if (stream.on && !stream.pull)
        (void)trail_stop(NULL);
}
