/*
 * CPU samples: see sample.h. The signal handler takes a slot of a ring with one atomic addition and
 * fills it; the thread that reads, and the one that ends the generation, drain it. Samples that
 * find the ring full are lost and counted.
 */
#include "tracer/sample.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "tracer/event.h"
#include "tracer/memory.h"
#include "tracer/tables.h"

/* Enough for 400 CPUs at 100 samples per second of CPU time between two drains (read.c). */
#define SLOTS 4096

struct sample {
    uint64_t generation; /* atomic, set last; 0: the slot is free, or being filled */
    uint64_t time, thread, proc, goroutine;
    uint32_t n;
    uintptr_t pcs[TRAIL_MAX_FRAMES];
};

static struct sample *ring; /* stays mapped, because a late signal may still write to it */
static uint64_t next_slot;  /* atomic */
static uint64_t drained;    /* atomic; changed by the thread that holds control */
static struct sigaction old_action;
static bool on;

/* MARK: Taking */

/* Returns a free slot, which the caller fills; NULL if the ring is full or missing. */
static struct sample *take_slot(void)
{
    uint64_t at = __atomic_load_n(&next_slot, __ATOMIC_RELAXED);
    if (!ring)
        return NULL;
    do {
        /* Pairs with the store in sample_drain: the slot was read and is free. */
        if (at - __atomic_load_n(&drained, __ATOMIC_ACQUIRE) >= SLOTS)
            return NULL;
    } while (!__atomic_compare_exchange_n(&next_slot, &at, at + 1, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED));
    return &ring[at % SLOTS];
}

static void record(const trail_m *m, uint64_t generation, const uintptr_t *pcs, size_t n)
{
    const trail_p *p = m ? held_p(m) : NULL;
    struct sample *sample = take_slot();
    if (!sample) {
        count(&tracer.stats.lost_samples);
        return;
    }
    sample->time = tracer.v2 ? clock_units(&tracer.clock) : clock_v1_ticks(&tracer.clock);
    sample->thread = m ? m->id : V2_NO_THREAD;
    sample->proc = p ? (uint64_t)(int64_t)p->id : V2_NO_PROC;
    sample->goroutine = m && has_goroutine(m) && (tracer.v2 || is_known(m->g)) ? m->g->id : 0;
    sample->n = (uint32_t)(n < tracer.max_frames ? n : tracer.max_frames);
    memcpy(sample->pcs, pcs, sample->n * sizeof *pcs);
    /* Pairs with the load in sample_drain. */
    __atomic_store_n(&sample->generation, generation, __ATOMIC_RELEASE);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    static const trail_m nobody;
    trail_m *m = current_m;
    /* An interrupted section also protects the sample; otherwise the handler enters its own. */
    bool enters = m && !__atomic_load_n(&m->busy_, __ATOMIC_RELAXED);
    uintptr_t pcs[TRAIL_MAX_FRAMES];
    uint64_t generation;
    int saved = errno;
    (void)number;
    (void)info;
    if (enters) {
        __atomic_store_n(&m->busy_, 1, __ATOMIC_RELAXED);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    if (tracer.fence)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    generation = __atomic_load_n(&tracer.generation, __ATOMIC_ACQUIRE);
    if (generation)
        record(m, generation, pcs,
               stack_of_context(m ? m : &nobody, context, pcs, TRAIL_MAX_FRAMES));
    if (enters)
        section_leave(m);
    errno = saved;
}

bool trail_cpu_sample(const uintptr_t *pcs, size_t n)
{
    uint64_t generation = __atomic_load_n(&tracer.generation, __ATOMIC_ACQUIRE);
    if (!generation)
        return true;
    if (tracer.format < 19) {
        leave_out(TRAIL_LEFT_OUT_SAMPLE);
        return false;
    }
    sample_prepare(); /* needed without cpu_hz */
    record(current_m, generation, pcs, n);
    return true;
}

/* MARK: Writing out */

static bool write_v2(struct trail_writer_ *writer, uint64_t generation, const struct sample *sample)
{
    uint64_t stack = stack_id(stack_put(generation, sample->pcs, sample->n));
    uint64_t args[] = {sample->time, sample->thread, sample->proc, sample->goroutine, stack};
    if (!v2_section_room(writer, generation, V2_CPUSamples, EVENT_MAX))
        return false;
    *writer->at++ = V2_CPUSample;
    for (size_t i = 0; i < sizeof args / sizeof *args; i++)
        writer->at = put(writer->at, args[i]);
    return true;
}

static bool write_v1(struct trail_writer_ *writer, uint64_t generation, const struct sample *sample)
{
    uint64_t stack = stack_id(stack_put(generation, sample->pcs, sample->n));
    uint64_t args[] = {sample->time, sample->proc, sample->goroutine, stack};
    return v1_write_to(writer, 0, generation, V1_CPUSample, 4, args);
}

uint64_t sample_waiting(void)
{
    return __atomic_load_n(&next_slot, __ATOMIC_RELAXED) -
           __atomic_load_n(&drained, __ATOMIC_RELAXED);
}

void sample_drain(uint64_t generation)
{
    bool (*write)(struct trail_writer_ * writer, uint64_t generation, const struct sample *sample) =
        tracer.v2 ? write_v2 : write_v1;
    struct trail_writer_ writer = {0};
    if (!ring || tracer.format < 19)
        return;
    while (sample_waiting()) {
        struct sample *sample = &ring[drained % SLOTS];
        uint64_t of = __atomic_load_n(&sample->generation, __ATOMIC_ACQUIRE);
        if (of == 0 || of > generation) /* being filled, or of the next generation */
            break;
        if (of < generation || !write(&writer, generation, sample))
            count(&tracer.stats.lost_samples);
        __atomic_store_n(&sample->generation, 0, __ATOMIC_RELAXED);
        /* Pairs with the load in take_slot. */
        __atomic_store_n(&drained, drained + 1, __ATOMIC_RELEASE);
    }
    writer_flush(&writer);
}

/* MARK: The timer */

void sample_start(unsigned hz)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct itimerval timer = {0};
    sample_prepare();
    if (hz > 1000)
        hz = 1000;
    sigfillset(&action.sa_mask);
    if (sigaction(SIGPROF, &action, &old_action) != 0)
        return;
    timer.it_interval.tv_usec = (suseconds_t)(1000000 / hz) % 1000000;
    timer.it_interval.tv_sec = hz == 1;
    timer.it_value = timer.it_interval;
    on = setitimer(ITIMER_PROF, &timer, NULL) == 0;
    if (!on)
        sigaction(SIGPROF, &old_action, NULL);
}

void sample_stop(void)
{
    struct itimerval timer = {0};
    if (!on)
        return;
    on = false;
    setitimer(ITIMER_PROF, &timer, NULL);
    /* A pending signal must not end the program, as the default action would. */
    if (old_action.sa_handler == SIG_DFL)
        signal(SIGPROF, SIG_IGN);
    else
        sigaction(SIGPROF, &old_action, NULL);
}

void sample_after_fork(void)
{
    on = false;
    /* A thread of the parent may have been filling a slot. */
    if (ring)
        memory_unmap(ring, SLOTS * sizeof *ring);
    ring = NULL;
    next_slot = drained = 0;
}

/* Maps the ring once; also called from a signal handler of the host's profiler. */
void sample_prepare(void)
{
    struct sample *none = NULL, *mapped;
    if (__atomic_load_n(&ring, __ATOMIC_ACQUIRE))
        return;
    mapped = memory_map(SLOTS * sizeof *mapped);
    if (mapped && !__atomic_compare_exchange_n(&ring, &none, mapped, false, __ATOMIC_RELEASE,
                                               __ATOMIC_RELAXED))
        memory_unmap(mapped, SLOTS * sizeof *mapped);
}
