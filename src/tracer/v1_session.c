/*
 * v1: the beginning of a trace, a snapshot while all threads are held (§2.7), and its end:
 * frequency, CPU samples and tables (§2.8, §2.9, in the order of §1.5).
 */
#include "tracer/context.h"
#include "tracer/control.h"
#include "tracer/event.h"
#include "tracer/identity.h"
#include "tracer/roster.h"
#include "tracer/sample.h"
#include "tracer/states.h"
#include "tracer/tables.h"

/* MARK: Snapshot */

/* `p` is the caller's P, in whose buffer the snapshot is written; NULL: none. */
struct snapshot {
    uint64_t generation;
    trail_p *p;
    uint64_t stack;
};

static void write_snapshot(const struct snapshot *to, unsigned type, unsigned n,
                           const uint64_t *args)
{
    if (to->p)
        v1_write_to(&to->p->writer_, (uint64_t)(int64_t)to->p->id, to->generation, type, n, args);
    else
        v1_write_to(&tracer.no_proc_writer, V1_NO_PROC, to->generation, type, n, args);
}

static void snapshot_g(trail_g *g, void *arg)
{
    const struct snapshot *to = arg;
    unsigned state;
    if (!check_g(NULL, g, "each_goroutine"))
        return;
    state = state_load(&g->state_) & STATE_MASK;
    /* The host may list a goroutine twice. */
    if (state == TRAIL_G_NONE_ || state_load(&g->state_) == state_word(to->generation, state))
        return;
    write_snapshot(to, V1_GoCreate, 3,
                   (uint64_t[]){g->id, stack_id(identity_stack(to->generation, g)), to->stack});
    identity_note(current_m, to->generation, g, true);
    g->seq_ = to->generation << 32;
    g->last_p_ = to->p;
    g->syscall_block_ticks_ = g->syscall_exit_ticks_ = 0;
    g->woken_ = false;
    set_shown(g, TRAIL_SHOWN_WAITING_);
    if (state == TRAIL_G_WAITING_)
        write_snapshot(to, V1_GoWaiting, 1, &g->id);
    if (state == TRAIL_G_SYSCALL_)
        write_snapshot(to, V1_GoInSyscall, 1, &g->id);
    /* Both have used one sequence number (§2.10). */
    if (state == TRAIL_G_WAITING_ || state == TRAIL_G_SYSCALL_)
        g->seq_++;
    trail_set_(&g->state_, state_word(to->generation, state));
}

/* Writes that a thread takes its P and runs its goroutine, into that P's buffer. */
static void snapshot_m(trail_m *m, void *arg)
{
    uint64_t generation = ((const struct snapshot *)arg)->generation;
    trail_p *p = m->p;
    trail_g *g = m->g;
    struct snapshot on = {generation, p, 0};
    if (!p || p->m_ != m || (state_load(&p->state_) & STATE_MASK) != TRAIL_P_RUNNING_)
        return;
    write_snapshot(&on, V1_ProcStart, 1, &m->id);
    trail_set_(&p->state_, state_word(generation, TRAIL_P_RUNNING_));
    if (!in_state_g(m, generation, TRAIL_G_RUNNING_))
        return;
    write_snapshot(&on, V1_GoStart, 2, (uint64_t[]){g->id, next_sequence(&g->seq_, generation)});
    m->shown_session_ = generation;
    g->last_p_ = p;
}

static void snapshot_own(trail_m *m, void *to)
{
    snapshot_g(thread_own_goroutine(m), to);
}

/*
 * In the trace every P is idle unless its thread runs. A P whose thread is in a system call counts
 * as taken from it, as when Go stops the world.
 */
static void snapshot_ps(uint64_t generation)
{
    for (trail_p *p = procs_first(); p; p = p->next_) {
        p->abandoned_ =
            !p->m_ && (p->abandoned_ || (state_load(&p->state_) & STATE_MASK) == TRAIL_P_SYSCALL_);
        if ((state_load(&p->state_) & STATE_MASK) != TRAIL_P_RUNNING_)
            trail_set_(&p->state_, state_word(generation, TRAIL_P_IDLE_));
        p->seq_ = 0;
        p->writer_.last_ticks = 0;
    }
}

static unsigned count_procs(void)
{
    unsigned n = __atomic_load_n(&tracer.procs, __ATOMIC_RELAXED);
    if (n)
        return n;
    /* The library's own Ps count while a thread holds them. */
    for (const trail_p *p = procs_first(); p; p = p->next_)
        n += p->id <= TRAIL_MAX_PROC || p->m_;
    return n ? n : 1;
}

/*
 * Waits until the clock has passed everything written, because readers order the buffers of all Ps
 * by time. Gives up if the clock stands still.
 */
static void wait_past_newest(void)
{
    uint64_t newest = tracer.no_proc_writer.last_ticks;
    for (const trail_p *p = procs_first(); p; p = p->next_)
        newest = p->writer_.last_ticks > newest ? p->writer_.last_ticks : newest;
    for (int tries = 0; tries < 1000 && clock_v1_ticks(&tracer.clock) <= newest; tries++)
        ;
}

static void snapshot(const trail_host *host, uint64_t generation)
{
    trail_m *caller = current_m;
    struct snapshot to = {generation,
                          caller && caller->p && caller->p->m_ == caller ? caller->p : NULL, 0};
    uint64_t goal = __atomic_load_n(&tracer.heap_goal, __ATOMIC_RELAXED);
    snapshot_ps(generation);
    if (host->each_goroutine)
        host->each_goroutine(host->context, snapshot_g, &to);
    roster_visit(snapshot_own, &to);
    roster_visit(snapshot_m, &to);
    /* Go's converter of v1 takes the first Gomaxprocs for the end of the snapshot (§4.3). */
    wait_past_newest();
    write_snapshot(&to, V1_Gomaxprocs, 2, (uint64_t[]){count_procs(), 0});
    if (goal && tracer.format >= 21)
        write_snapshot(&to, V1_HeapGoal, 1, &goal);
}

void v1_session_begin(void)
{
    const trail_host *host = live_host();
    uint64_t generation = tracer.first_generation, ticks;
    if (host->stop_world)
        host->stop_world(host->context);
    pthread_mutex_lock(&tracer.ps_lock);
    hold_threads(true);
    tracer.no_proc_writer.last_ticks = 0;
    snapshot(host, generation);
    tracer_pause(PAUSE_LISTED);
    clock_pair(&tracer.clock, &ticks, &tracer.start_ns);
    tracer.start_ticks = ticks / CLOCK_V1_DIVISOR;
    (void)set_generation(0, generation);
    hold_threads(false);
    wait_for_sections();
    pthread_mutex_unlock(&tracer.ps_lock);
    if (host->start_world)
        host->start_world(host->context);
}

/* MARK: End */

#define MAX_FREQUENCY 1e15

static uint64_t frequency(void)
{
    uint64_t ticks, ns;
    double measured;
    do
        clock_pair(&tracer.clock, &ticks, &ns);
    while (ns <= tracer.start_ns);
    ticks /= CLOCK_V1_DIVISOR;
    if (ticks <= tracer.start_ticks)
        return 1;
    measured = (double)(ticks - tracer.start_ticks) * 1e9 / (double)(ns - tracer.start_ns);
    /* The clock may have jumped. */
    return measured < 1               ? 1
           : measured > MAX_FREQUENCY ? (uint64_t)MAX_FREQUENCY
                                      : (uint64_t)measured;
}

/*
 * Restores, for the next trace, Ps that are in a system call but were idle in this trace. Threads
 * are running, so a state that one of them has changed is kept.
 */
static void restore_ps(uint64_t generation)
{
    for (trail_p *p = procs_first(); p; p = p->next_) {
        trail_state_ idle = state_word(generation, TRAIL_P_IDLE_);
        if (__atomic_load_n(&p->abandoned_, __ATOMIC_RELAXED) ||
            __atomic_load_n(&p->m_, __ATOMIC_RELAXED))
            (void)__atomic_compare_exchange_n(&p->state_, &idle, (trail_state_)TRAIL_P_SYSCALL_,
                                              false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

static void flush_all(void)
{
    for (trail_p *p = procs_first(); p; p = p->next_)
        writer_flush(&p->writer_);
    writer_flush(&tracer.no_proc_writer);
}

/* Appends a record without a time. */
static void put_untimed(struct trail_writer_ *writer, unsigned type, uint64_t value)
{
    *writer->at++ = (uint8_t)type;
    writer->at = put(writer->at, value);
}

/* Room for the frequency and all timer goroutines. */
#define FREQUENCY_ROOM ((size_t)64 * EVENT_MAX)

static bool write_frequency(struct trail_writer_ *writer, uint64_t generation)
{
    bool no_batch = tracer.format < 21;
    if (!v1_refill(writer, generation, no_batch ? V1_NO_BATCH : 0, FREQUENCY_ROOM))
        return false;
    put_untimed(writer, V1_Frequency, frequency());
    for (unsigned i = 0; i < tracer.timers && tracer.format < 19; i++)
        put_untimed(writer, V1_TimerGoroutine, tracer.timer_goroutines[i]);
    if (no_batch)
        writer_flush(writer);
    return true;
}

void v1_session_end(void)
{
    uint64_t generation = tracer.first_generation;
    struct trail_writer_ writer = {0};
    (void)set_generation(generation, 0);
    pthread_mutex_lock(&tracer.ps_lock);
    wait_for_sections();
    flush_all();
    restore_ps(generation);
    pthread_mutex_unlock(&tracer.ps_lock);
    sample_drain(generation);
    if (write_frequency(&writer, generation))
        (void)v1_write_tables(&writer, generation);
    writer_flush(&writer);
    queue_complete(generation);
}
