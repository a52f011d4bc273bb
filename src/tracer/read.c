/*
 * The reading side: takes full buffers off the queue and delivers them.
 *
 *   pending -> next_chunk -> the stream: trail_read's caller, a descriptor, a sink
 *                        `-> flight recorder, or the free list, when the next chunk is requested
 *
 * One thread at a time pumps: the caller of trail_read while the host reads a stream, otherwise a
 * thread of the library, which exists only for a descriptor, a sink or the flight recorder. The
 * pumping thread also ends v2's generations when they are due, and completes a trace that ended by
 * itself.
 */
#include "tracer/read.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/control.h"
#include "tracer/flight.h"
#include "tracer/memory.h"
#include "tracer/misuse.h"
#include "tracer/output.h"
#include "tracer/runnable.h"
#include "tracer/sample.h"
#include "tracer/stack.h"
#include "wire/wire.h"

/* Guarded by tracer.lock. */
static struct stream {
    bool on;             /* from the start until the stop is complete */
    bool pull;           /* read by trail_read */
    int fd;              /* a duplicate: a thread may stay stuck in a write to it; -1: none */
    trail_chunk_fn sink; /* NULL: fd */
    void *context;
    uint64_t first, last; /* generations; last 0: not known yet */
    bool header_due;
    bool wrote; /* data followed the header, so a loss leaves a gap */
    /* nothing more is delivered, after an error or a gap that a descriptor cannot express */
    bool cut;
    bool ended; /* everything was delivered */
    trail_error error;
} stream = {.fd = -1};

static struct trail_buffer_ *out; /* the buffer of the chunk last handed out */
static bool pumping;              /* a thread is inside trail_read */
static bool has_puller; /* `puller` is set: a thread has called trail_read in this stream */
static pthread_t puller;
static bool stopping;    /* a stop waits for the stream, or for the library's thread */
static bool thread_on;   /* guarded by control, or by `stopping` */
static bool delivering;  /* the library's thread uses stream.fd or stream.sink */
static uint64_t outside; /* atomic; epoch of the thread that is in a write or a sink; 0: none */
static pthread_t thread;
static pid_t thread_id; /* of the library's thread, which sets it */
static uint64_t taken;  /* chunks that the consumer has requested: its progress */
static __thread bool is_reader
    __attribute__((tls_model("initial-exec"))); /* this is the library's thread */
/* Changes when the library's thread is abandoned, which then only exits. */
static uint64_t epoch = 1;
static bool took; /* a buffer was taken since the reading thread last waited */
static uint64_t advance_due_ns;
static uint64_t drain_due_ns; /* of the CPU samples */
static const uint8_t end_of_generation = V2_EndOfGeneration;

/* MARK: Pumping */

bool read_is_reader(void)
{
    return is_reader ||
           (stream.on && stream.pull && has_puller && pthread_equal(puller, pthread_self()));
}

void read_advance_soon(void)
{
    advance_due_ns = 0;
    pthread_cond_broadcast(&tracer.changed);
}

/*
 * The interval for draining CPU samples: short while samples arrive, because their ring is limited,
 * otherwise the default length of a generation.
 */
#define DRAIN_NS      100000000
#define IDLE_DRAIN_NS 1000000000

static void next_drain(bool found)
{
    bool often = found || tracer.options.cpu_hz;
    drain_due_ns = clock_ns(CLOCK_MONOTONIC) + (often ? DRAIN_NS : IDLE_DRAIN_NS);
}

static void next_advance(void)
{
    advance_due_ns = clock_ns(CLOCK_MONOTONIC) + (uint64_t)tracer.options.generation_ns;
}

/* The consumer is done with the last chunk. */
static void release_out(void)
{
    if (out && !flight_keep(out))
        queue_free(out);
    out = NULL;
}

static bool stream_wants(uint64_t generation)
{
    return stream.on && !stream.ended && !stream.cut && generation >= stream.first &&
           (!stream.last || generation <= stream.last);
}

static bool hand_out(trail_chunk *chunk, const uint8_t *data, size_t size, uint64_t generation,
                     bool new_file)
{
    *chunk = (trail_chunk){data, size, tracer.v2 ? generation : 0, new_file};
    tracer.stats.bytes += size;
    stream.wrote = true;
    return true;
}

static bool hand_out_header(trail_chunk *chunk)
{
    stream.header_due = false;
    (void)hand_out(chunk, wire_header(tracer.format), WIRE_HEADER_SIZE, 0, true);
    stream.wrote = false;
    return true;
}

/* Begins a new file before a generation that follows a lost one, if the consumer can take it. */
static bool begin_file_after_gap(struct pending *head, trail_chunk *chunk)
{
    head->gap = false;
    if (!stream_wants(head->generation) || !stream.wrote)
        return false;
    if (!stream.pull && !stream.sink) {
        stream.cut = true;
        return false;
    }
    return hand_out_header(chunk);
}

enum step { STEP_CHUNK, STEP_AGAIN, STEP_NOTHING };

/* Takes the next step for the oldest pending generation. */
static enum step step_generation(struct pending *head, trail_chunk *chunk)
{
    bool whole = tracer.options.when_full == TRAIL_FULL_DROP_OLDEST;
    if (head->spoiled && head->complete) {
        queue_pop();
        flight_lost();
        if ((head = queue_head()) != NULL)
            head->gap = true;
        return STEP_AGAIN;
    }
    /* A generation that may still be dropped is not started. */
    if (head->spoiled || (whole && !head->complete))
        return STEP_NOTHING;
    if (head->gap && begin_file_after_gap(head, chunk))
        return STEP_CHUNK;
    if (head->first) {
        head->started = took = true;
        out = queue_pop_buffer(head);
        if (stream_wants(head->generation))
            return hand_out(chunk, out->data, out->used, head->generation, false) ? STEP_CHUNK
                                                                                  : STEP_AGAIN;
        if (stream.on && stream.cut)
            tracer.stats.lost_bytes += out->used;
        release_out();
        return STEP_AGAIN;
    }
    if (!head->complete)
        return STEP_NOTHING;
    if (tracer.format >= 26 && !head->ended) {
        head->ended = true;
        if (stream_wants(head->generation) &&
            hand_out(chunk, &end_of_generation, 1, head->generation, false))
            return STEP_CHUNK;
    }
    flight_complete(head->generation, head->began_ns);
    queue_pop();
    return STEP_AGAIN;
}

/* Whether everything that belongs to the stream was delivered. */
static bool stream_is_over(void)
{
    const struct pending *head = queue_head();
    if (!stream.on || stream.ended || stream.header_due)
        return false;
    if (stream.last)
        return !head ? tracer.last_generation >= stream.last : head->generation > stream.last;
    return !tracer.active && !head;
}

/* Reports to the host that the trace ended by itself, with the lock, which is held, released. */
static void report_end(void)
{
    trail_error why = stream.error.code != TRAIL_OK ? stream.error : tracer.error;
    const trail_host *host = live_host();
    if (!host->ended)
        return;
    pthread_mutex_unlock(&tracer.lock);
    host->ended(host->context, &why);
    pthread_mutex_lock(&tracer.lock);
}

/* Whether the current trace may have samples to drain. */
static bool has_samples(void)
{
    return tracer.active && !tracer.failed && tracer.format >= 19;
}

/* Writes waiting CPU samples before the generation ends. control is held. */
static bool drain_samples(void)
{
    bool found = sample_waiting() > 0;
    if (found && tracer.active)
        sample_drain(tracer.last_generation);
    return found;
}

/*
 * Completes a failed trace, ends a generation or drains the samples, whichever is due, with the
 * lock released. Returns whether it did any of these.
 */
static bool chores(void)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool fails = tracer.failed && tracer.active, found = false;
    bool advances = tracer.active && tracer.v2 && !tracer.failed && now >= advance_due_ns;
    if (!fails && !advances && !(has_samples() && now >= drain_due_ns))
        return false;
    pthread_mutex_unlock(&tracer.lock);
    pthread_mutex_lock(&tracer.control);
    if (fails)
        session_end();
    else if (!advances)
        found = drain_samples();
    else if (tracer.active && tracer.v2)
        v2_advance();
    pthread_mutex_unlock(&tracer.control);
    pthread_mutex_lock(&tracer.lock);
    next_drain(found);
    if (fails || advances)
        next_advance();
    if (fails)
        report_end();
    return true;
}

static void wait_for_change(void)
{
    /* While buffers arrive, those that do not wake this thread are taken after this long. */
    uint64_t live_ns = (uint64_t)tracer.options.live_ns;
    uint64_t due = took ? clock_ns(CLOCK_MONOTONIC) + live_ns : UINT64_MAX;
    /* After a while without a buffer, the next one wakes this thread. */
    tracer.reader_idle = !took;
    took = false;
    if (tracer.active && tracer.v2 && advance_due_ns < due)
        due = advance_due_ns;
    if (has_samples() && drain_due_ns < due)
        due = drain_due_ns;
    if (due < UINT64_MAX)
        pthread_cond_timedwait(
            &tracer.changed, &tracer.lock,
            &(struct timespec){(time_t)(due / 1000000000), (long)(due % 1000000000)});
    else
        pthread_cond_wait(&tracer.changed, &tracer.lock);
    tracer.reader_idle = false;
}

/* Whether the calling thread has a consumer to pump for. */
static bool still_needed(bool own_thread)
{
    if (!own_thread)
        return stream.on && stream.pull && !stream.ended;
    return (stream.on && !stream.pull && !stream.ended) || flight_on();
}

/* Returns the next chunk for the stream; false if there are no more. The lock is held. */
static bool next_chunk(bool own_thread, trail_chunk *chunk)
{
    uint64_t mine = epoch;
    taken++;
    for (;;) {
        struct pending *head;
        /* This thread was abandoned while it waited, so the stream now belongs to another. */
        if (own_thread && mine != epoch)
            return false;
        release_out();
        if (!still_needed(own_thread))
            return false;
        if (own_thread && stream.on && stream.pull) {
            /* The host reads now, and keeps buffers for the flight recorder. */
            pthread_cond_wait(&tracer.changed, &tracer.lock);
            continue;
        }
        if (stream.on && stream.header_due)
            return hand_out_header(chunk);
        head = queue_head();
        switch (head ? step_generation(head, chunk) : STEP_NOTHING) {
        case STEP_CHUNK:
            return true;
        case STEP_AGAIN:
            continue;
        case STEP_NOTHING:
            break;
        }
        if (stream_is_over()) {
            stream.ended = true;
            pthread_cond_broadcast(&tracer.changed);
        } else if (!chores()) {
            wait_for_change();
        }
    }
}

/* Fails in a callback that the library made from within a call, where waiting would never end. */
static bool refuse_in_call(trail_error *err)
{
    if (!thread_is_in_call())
        return false;
    (void)record_fail(err, TRAIL_USAGE,
                      "a callback of the tracer, or a signal handler inside a call, cannot start, "
                      "stop or read a trace");
    return true;
}

int trail_read(trail_chunk *chunk, trail_error *err)
{
    bool got;
    tracer_init();
    if (refuse_in_call(err))
        return -1;
    pthread_mutex_lock(&tracer.lock);
    if (stream.on && !stream.pull) {
        pthread_mutex_unlock(&tracer.lock);
        (void)record_fail(err, TRAIL_USAGE,
                          "the trace goes to a descriptor or sink, not to trail_read");
        return -1;
    }
    if (pumping) {
        pthread_mutex_unlock(&tracer.lock);
        (void)record_fail(err, TRAIL_USAGE, "another thread is reading the trace");
        return -1;
    }
    pumping = has_puller = true;
    puller = pthread_self();
    got = next_chunk(false, chunk);
    pumping = false;
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
    return got ? 1 : 0;
}

/* MARK: The library's thread */

/* Returns false with *err if the consumer fails or ends the trace. */
static bool deliver(const struct stream *to, const trail_chunk *chunk, trail_error *err)
{
    if (to->sink) {
        if (is_exiting())
            return record_fail(err, TRAIL_IO, "the program has ended before the trace");
        if (to->sink(to->context, chunk))
            return true;
        return record_fail(err, TRAIL_IO, "the consumer of the trace ended it");
    }
    if (output_write(to->fd, chunk->data, chunk->size))
        return true;
    return record_fail(err, TRAIL_IO, "cannot write the trace: %s", strerror(errno));
}

/* The stream's consumer failed. Without a flight recorder the session ends. */
static void consumer_failed(void)
{
    stream.cut = true;
    tracer.stats.lost_bytes += out ? out->used : 0;
    if (!flight_on())
        session_fail();
}

/* Delivers a chunk. Behind it, the thread waits for nothing but the lock. */
static bool deliver_outside(const struct stream *to, const trail_chunk *chunk, uint64_t mine,
                            trail_error *err)
{
    bool delivered = deliver(to, chunk, err);
    /* An abandoned thread leaves alone what its successor has set. */
    (void)__atomic_compare_exchange_n(&outside, &mine, 0, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    return delivered;
}

static void *pump(void *arg)
{
    uint64_t mine = (uint64_t)(uintptr_t)arg;
    trail_chunk chunk;
    is_reader = true;
    pthread_setname_np(pthread_self(), "trail-reader");
    pthread_mutex_lock(&tracer.lock);
    thread_id = (pid_t)syscall(SYS_gettid);
    while (mine == epoch && next_chunk(true, &chunk)) {
        /* A copy: if this thread is abandoned, `stream` may change before the sink is called. */
        struct stream to = {.fd = stream.fd, .sink = stream.sink, .context = stream.context};
        struct trail_buffer_ *held = out;
        trail_error failure;
        bool delivered;
        delivering = true;
        __atomic_store_n(&outside, mine, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&tracer.lock);
        delivered = deliver_outside(&to, &chunk, mine, &failure);
        pthread_mutex_lock(&tracer.lock);
        if (mine == epoch) {
            delivering = false;
            pthread_cond_broadcast(&tracer.changed);
        }
        if (to.fd >= 0 && stream.fd != to.fd)
            close(to.fd);
        if (mine != epoch) {
            if (held)
                buffer_unmap(held);
        } else if (!delivered) {
            stream.error = failure;
            consumer_failed();
        }
    }
    pthread_mutex_unlock(&tracer.lock);
    return NULL;
}

/* Starts the library's thread with all signals blocked. control is held. */
static bool start_thread(trail_error *err)
{
    sigset_t all, old;
    int status;
    if (thread_on)
        return true;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    status = pthread_create(&thread, NULL, pump, (void *)(uintptr_t)epoch);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0)
        return record_fail(err, TRAIL_NO_MEMORY, "cannot create the thread that reads: %s",
                           strerror(status));
    thread_on = true;
    return true;
}

/*
 * Joins the library's thread, which has no more work, or abandons it with its buffer if it is stuck
 * in a write or sink. No lock is held; `stopping` is set.
 */
static void end_thread(bool stuck)
{
    if (!thread_on)
        return;
    if (stuck) {
        pthread_mutex_lock(&tracer.lock);
        epoch++;
        delivering = false;
        __atomic_store_n(&outside, 0, __ATOMIC_RELAXED);
        if (out) {
            tracer.queued -= out->size;
            out = NULL;
        }
        pthread_mutex_unlock(&tracer.lock);
        pthread_detach(thread);
    } else {
        pthread_join(thread, NULL);
    }
    thread_on = false;
}

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
 * Takes control for a start. Fails at once if `on` returns true, with the reason `already`, or during
 * a stop: it may wait for this thread to read.
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
    has_puller = false;
    next_drain(false);
    stream.first = first;
    next_advance();
    pthread_cond_broadcast(&tracer.changed);
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
    if (wanted.pull || start_thread(err))
        return true;
    session_end();
    queue_clear();
    return false;
}

/* Removes a stream whose start failed. A thread that writes its header closes the descriptor. */
static void drop_stream(int fd)
{
    pthread_mutex_lock(&tracer.lock);
    stream.on = false;
    if (fd >= 0 && !delivering)
        close(fd);
    stream.fd = -1;
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
    if (!is_reader && !is_stopping(NULL))
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
    if (refuse_in_call(err))
        return false;
    return start(options, (struct stream){.pull = true, .fd = -1}, FRAME, err);
}

bool trail_start_fd(const trail_options *options, int fd, trail_error *err)
{
    int own;
    if (refuse_in_call(err))
        return false;
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return record_fail(err, TRAIL_IO, "cannot write the trace: %s", strerror(errno));
    return start(options, (struct stream){.fd = own}, FRAME, err);
}

bool trail_start_sink(const trail_options *options, trail_chunk_fn sink, void *context,
                      trail_error *err)
{
    if (refuse_in_call(err))
        return false;
    if (!sink)
        return record_fail(err, TRAIL_USAGE, "the sink is NULL");
    return start(options, (struct stream){.fd = -1, .sink = sink, .context = context}, FRAME, err);
}

/* A shorter wait would only repeat itself. */
#define LEAST_WAIT_NS 1000000

/* Returns the CPU time of the library's thread. */
static uint64_t thread_cpu_ns(void)
{
    clockid_t its;
    return pthread_getcpuclockid(thread, &its) == 0 ? clock_ns(its) : 0;
}

/*
 * Whether to give up on a consumer that has taken nothing for wait_ns. A consumer inside the
 * library is only waiting for a CPU, perhaps for long on a busy machine; so is a sink that is
 * runnable and has had less CPU time than wait_ns (since `cpu_ns`). The lock is held.
 */
static bool consumer_is_stuck(uint64_t cpu_ns)
{
    if (tracer.options.wait_ns < 0)
        return true;
    if (stream.pull)
        return !pumping;
    return __atomic_load_n(&outside, __ATOMIC_RELAXED) &&
           !(thread_is_runnable(thread_id) &&
             thread_cpu_ns() - cpu_ns < (uint64_t)tracer.options.wait_ns);
}

/* Waits until the stream is complete; false if its consumer is stuck. The lock is held. */
static bool wait_for_stream(void)
{
    int64_t wait_ns = tracer.options.wait_ns;
    while (!stream.ended) {
        struct timespec until = deadline_after(wait_ns > LEAST_WAIT_NS ? wait_ns : LEAST_WAIT_NS);
        uint64_t before = taken, cpu_ns = stream.pull ? 0 : thread_cpu_ns();
        int status = 0;
        while (!stream.ended && taken == before) {
            if (status == ETIMEDOUT && consumer_is_stuck(cpu_ns))
                return false;
            if (status == ETIMEDOUT)
                until = deadline_after(LEAST_WAIT_NS);
            status = pthread_cond_timedwait(&tracer.changed, &tracer.lock, &until);
        }
    }
    return true;
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
    in_time = ended && (waits || own_thread) ? wait_for_stream() : stream.ended;
    ok = verdict(ended, in_time, err);
    stream.ended = true;
    /* A thread that is still writing will close it. */
    if (stream.fd >= 0 && !delivering)
        close(stream.fd);
    stream.fd = -1;
    pthread_cond_broadcast(&tracer.changed);
    pthread_mutex_unlock(&tracer.lock);
    if (own_thread && !with_flight)
        end_thread(!in_time);
    pthread_mutex_lock(&tracer.lock);
    stream.on = false;
    pthread_mutex_unlock(&tracer.lock);
    end_stop(with_flight);
    return ok;
}

bool trail_stop(trail_error *err)
{
    tracer_init();
    if (is_reader)
        return record_fail(err, TRAIL_USAGE,
                           "a sink cannot stop its own trace: return false from it");
    if (refuse_in_call(err))
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
    next_advance();
    next_drain(false);
    pthread_cond_broadcast(&tracer.changed);
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
    if (start_thread(err))
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
    return start_thread(err) && begin_beside(next, err);
}

bool trail_flight_start(const trail_flight_options *options, trail_error *err)
{
    bool ok;
    tracer_init();
    if (refuse_in_call(err))
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
    if (refuse_in_call(err))
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
    if (refuse_in_call(NULL))
        return;
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
        end_thread(false);
    end_stop(with_stream);
}

void trail_advance(void)
{
    tracer_init();
    if (refuse_in_call(NULL))
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

void read_after_fork(void)
{
    if (stream.on && stream.fd >= 0)
        close(stream.fd);
    stream = (struct stream){.fd = -1};
    out = NULL;
    pumping = stopping = thread_on = delivering = is_reader = false;
    outside = 0;
    epoch++;
    flight_after_fork();
}

void read_end_sink(void)
{
    struct timespec until = deadline_after(1000000000);
    pthread_mutex_lock(&tracer.lock);
    while (delivering && stream.sink && !is_reader &&
           pthread_cond_timedwait(&tracer.changed, &tracer.lock, &until) == 0)
        ;
    pthread_mutex_unlock(&tracer.lock);
}

void read_at_exit(void)
{
    if (stream.on && !stream.pull)
        (void)trail_stop(NULL);
}
