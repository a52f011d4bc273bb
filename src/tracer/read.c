/*
 * The reading side: takes full buffers off the queue and delivers them.
 *
 *   pending -> next_chunk -> the stream: trail_read's caller, a descriptor, a sink
 *                        `-> flight recorder, or the free list, when the next chunk is requested
 *
 * One thread at a time pumps: the caller of trail_read while the host reads a stream, otherwise a
 * thread of the library, which exists only for a descriptor, a sink or the flight recorder. The
 * pumping thread also ends v2's generations when they are due, and completes a trace that ended by
 * itself. consumers.c starts and stops what it pumps for.
 */
#include "tracer/read.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/control.h"
#include "tracer/flight.h"
#include "tracer/output.h"
#include "tracer/runnable.h"
#include "tracer/sample.h"
#include "wire/wire.h"

struct stream stream = {.fd = -1};

/* Guarded by tracer.lock. */
static struct trail_buffer_ *out; /* the buffer of the chunk last handed out */
static bool pumping;              /* a thread is inside trail_read */
static bool thread_on;            /* guarded by control, or by a stop */
static bool delivering;           /* the library's thread uses stream.fd or stream.sink */
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

bool read_is_own_thread(void)
{
    return is_reader;
}

bool read_is_reader(void)
{
    return is_reader || (stream.on && stream.pull && stream.has_puller &&
                         pthread_equal(stream.puller, pthread_self()));
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

void read_restart(void)
{
    next_drain(false);
    next_advance();
    pthread_cond_broadcast(&tracer.changed);
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

/* Reports to the host that the trace ended by itself. Releases the lock, which the caller holds,
 * for the call of the host. */
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

bool read_refuses_call(trail_error *err)
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
    if (read_refuses_call(err))
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
    pumping = stream.has_puller = true;
    stream.puller = pthread_self();
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

bool read_start_thread(trail_error *err)
{
    if (!thread_on)
        thread_on = library_thread(&thread, pump, (void *)(uintptr_t)epoch, "reads", err);
    return thread_on;
}

void read_end_thread(bool stuck)
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

/* MARK: The end of a stream */

void read_close_fd(void)
{
    if (stream.fd >= 0 && !delivering)
        close(stream.fd);
    stream.fd = -1;
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

bool read_wait_for_stream(void)
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

/* MARK: Fork, exit */

void read_after_fork(void)
{
    if (stream.on && stream.fd >= 0)
        close(stream.fd);
    stream = (struct stream){.fd = -1};
    out = NULL;
    pumping = thread_on = delivering = is_reader = false;
    outside = 0;
    epoch++;
    consumers_after_fork();
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
