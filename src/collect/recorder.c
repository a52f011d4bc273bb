/* Schedules the steps of a recording, the pauses between them, and its end. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "collect/account.h"
#include "collect/other_ends.h"
#include "collect/recorder.h"
#include "collect/recorder_claims.h"
#include "collect/recorder_kernel.h"
#include "collect/recorder_traces.h"

/*
 * The pauses between steps. Each step wakes the recorder, which takes time from the program; but
 * descriptors are named only in the step after their calls, so steps come sooner when there are
 * many records or context switches.
 */
#define STEP_NS      40000000
#define BUSY_STEP_NS 10000000
#define MIN_STEP_NS  1000000
#define BUSY_RECORDS 500

/* How long to wait for a forked child after its parent's end: limited, because the fork may have
 * failed. */
#define FORK_NS 1000000000

/* MARK: On and off */

/* Sets which calls are recorded in all processes. */
static void set_groups(const struct recorder *r, uint32_t groups)
{
    if (r->spare)
        area_set_groups(r->spare, groups);
    for (const struct recorded *p = r->live; p; p = p->next_live)
        area_set_groups(collect_area(p->collect), groups);
}

static void tick(void *recorder, bool going)
{
    struct recorder *r = recorder;
    uint64_t now = going ? ticks_now(&r->ticks) : 0;
    if (r->spare)
        area_tick(r->spare, now);
    for (struct recorded *p = r->live; p; p = p->next_live)
        area_tick(collect_area(p->collect), now);
}

/* MARK: Opening */

bool recorder_open(struct recorder *r, const struct recorder_options *options, trail_error *err)
{
    *r = (struct recorder){.options = *options,
                           .root = options->process,
                           .fd = -1,
                           .board.fd = -1,
                           .handover.fd = -1,
                           .switch_pause.rate = options->max_switches};
    ticks_init(&r->ticks);
    r->begin_ns = r->claimed_ns = now_ns();
    r->begun = options->delay_ns == 0;
    r->modules = modules_open(NULL, 0, true, false);
    coarse_clock_init(&r->clock, tick, r);
    if (!recorder_open_switches(r, err) || !recorder_open_samples(r, err))
        return false;
    if (!r->modules) {
        (void)error_no_memory(err);
        return false;
    }
    ticks_settle(&r->ticks);
    if (!r->options.shm && !r->options.split)
        board_open(&r->board);
    if (!recorder_make_spare(r, err))
        return false;
    if (!r->options.shm)
        handover_open(&r->handover, r->fd);
    return true;
}

void recorder_variable(const struct recorder *r, char *text, size_t size)
{
    (void)snprintf(text, size, "pid:%d:%d:%s", (int)getpid(), r->fd, r->handover.word);
}

void recorder_announce(void *recorder)
{
    struct recorder *r = recorder;
    area_set_root(r->spare, getpid());
}

void recorder_announce_thread(struct recorder *r, const struct shm_waiting *waiting)
{
    pthread_mutex_lock(&r->clock.lock);
    if (r->spare && !area_claimed(r->spare))
        area_announce(r->spare, waiting);
    pthread_mutex_unlock(&r->clock.lock);
}

void recorder_forget_threads(struct recorder *r)
{
    pthread_mutex_lock(&r->clock.lock);
    if (r->spare && !area_claimed(r->spare))
        area_forget_announced(r->spare);
    pthread_mutex_unlock(&r->clock.lock);
}

/* MARK: Running */

static void leave_live(struct recorder *r, const struct recorded *process)
{
    struct recorded **link = &r->live;
    while (*link && *link != process)
        link = &(*link)->next_live;
    if (*link)
        *link = process->next_live;
}

/* Reads the last records of a process, which ends before its trace or together with it. */
static void complete(struct recorder *r, struct recorded *process, bool with_trace)
{
    pthread_mutex_lock(&r->clock.lock);
    process->over = true;
    process->over_ns = now_ns();
    leave_live(r, process);
    pthread_mutex_unlock(&r->clock.lock);
    recorder_process_close_pidfd(process);
    if (with_trace)
        collect_end_with_trace(process->collect);
    else
        collect_end(process->collect, NULL);
    recorder_process_take_executed(r, process);
}

static void finish_trace(struct recorder *r, struct recorded_trace *to)
{
    recorder_write_last_snapshot(r, to);
    recorder_trace_finish(r, to);
}

/* Handles the end of a process. */
static void end_process(struct recorder *r, struct recorded *process)
{
    bool own = process->to != r->shared;
    complete(r, process, own);
    if (own)
        finish_trace(r, process->to);
}

/* Ends the recording of all processes. */
static void end_all(struct recorder *r)
{
    for (struct recorded *p = r->processes; p; p = p->next) {
        /* A process that claimed its area since the last step may have ended as well, waking
         * whatever waited for that. */
        if (!p->over)
            complete(r, p, p->to != r->shared || !recorder_process_has_ended(r, p));
        if (p->to != r->shared && !p->to->over)
            finish_trace(r, p->to);
    }
    if (r->shared && !r->shared->over)
        finish_trace(r, r->shared);
}

/* The recorder spends at most one part in this many of its time on this, however many processes
 * there are. */
enum { COST_PART = 20 };

/* The least time between two looks for other ends. */
#define ENDS_NS 200000000

/* Looks for other ends in the traces whose threads have all been quiet; `always`: in all traces. */
static void look_at_ends(struct recorder *r, bool always)
{
    int64_t begin = now_ns(), cost_ns;
    if (!recorder_is_on(r) || (begin < r->ends_ns && !always))
        return;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        if (!p->to->over && (p->to != r->shared || p == r->live))
            other_ends_look(r, p->to, always);
    }
    cost_ns = now_ns() - begin;
    r->ends_ns = begin + (cost_ns * COST_PART > ENDS_NS ? cost_ns * COST_PART : ENDS_NS);
}

/* Reading what was recorded until then may take long on a busy machine. */
static void stop_traces(const struct recorder *r, uint64_t at)
{
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (!p->to->over)
            trace_stop(p->to->trace, at);
    }
}

void recorder_stop(struct recorder *r)
{
    if (r->stopped)
        return;
    look_at_ends(r, true);
    stop_traces(r, ticks_now(&r->ticks));
    set_groups(r, 0);
    recorder_read_kernel(r, INT64_MAX);
    r->stopped = true;
    handover_close(&r->handover);
    /* No spare area is left; do not let processes wait for one. */
    if (r->spare)
        area_refuse(r->spare);
    end_all(r);
}

static void keep_time(struct recorder *r)
{
    int64_t passed = now_ns() - r->begin_ns - r->options.delay_ns;
    if (r->options.process && !r->program)
        return;
    if (!r->begun && passed >= 0) {
        r->begun = true;
        set_groups(r, r->options.groups);
    }
    if (r->options.duration_ns && passed >= r->options.duration_ns)
        recorder_stop(r);
}

/* Shortens `pause` if something is due earlier, at `ns` (0: never). */
static int64_t until(int64_t pause, int64_t ns, int64_t now)
{
    int64_t left = ns - now;
    return ns == 0 || left >= pause ? pause : left > MIN_STEP_NS ? left : MIN_STEP_NS;
}

/* Claims often follow each other, and wait for the next area: the pause is about as long as the
 * time since the last claim. */
int64_t recorder_pause_ns(const struct recorder *r)
{
    int64_t now = now_ns(), pause = (now - r->claimed_ns) / 4;
    int64_t most = r->busy ? BUSY_STEP_NS : STEP_NS, begin = r->begin_ns + r->options.delay_ns;
    pause = pause < MIN_STEP_NS ? MIN_STEP_NS : pause < most ? pause : most;
    if (!r->begun)
        pause = until(pause, begin, now);
    if (r->options.duration_ns && !r->stopped)
        pause = until(pause, begin + r->options.duration_ns, now);
    return until(pause, recorder_snapshots_due_ns(r), now);
}

/* The rates of the last step decide when the next one comes, and whether the coarse clock runs. */
static void look_at_rates(struct recorder *r)
{
    uint64_t records = 0;
    bool locks = r->options.heap || !r->ticks.clock.counter, sleepers = false;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        records += collect_rates(p->collect).records;
        locks |= collect_rates(p->collect).many_locks;
        sleepers |= collect_rates(p->collect).sleepers;
    }
    r->busy = records > BUSY_RECORDS || sleepers || r->samples || r->options.all_holds;
    /* With all_holds, holds need exact times. */
    coarse_clock_want(&r->clock, locks && !r->options.all_holds && !r->stopped);
}

/* Whether a forked child has yet to decide whether it is recorded, within the time limit. */
static bool is_forking(const struct recorded *process)
{
    return process->collect && area_is_forking(collect_area(process->collect)) &&
           now_ns() < process->over_ns + FORK_NS;
}

static void fold(struct recorded *process, struct collect *collect)
{
    account_add(&process->summary, collect);
    collect_close(collect);
}

/* Keeps only the summaries of processes that are completely written: a server may have many
 * children. */
static void release_written(struct recorder *r)
{
    struct recorded *p;
    for (struct recorded **link = &r->unwritten; (p = *link) != NULL;) {
        size_t kept = 0;
        for (size_t i = 0; i < p->former_count; i++) {
            if (collect_is_written(p->formers[i]))
                fold(p, p->formers[i]);
            else
                p->formers[kept++] = p->formers[i];
        }
        p->former_count = kept;
        /* That was true of a program that the process has left. */
        if (p->former_count == 0)
            p->summary.left = false;
        if (!p->over || is_forking(p) || !(p->to->over || collect_is_written(p->collect))) {
            link = &p->next_unwritten;
            continue;
        }
        fold(p, p->collect);
        p->collect = NULL;
        *link = p->next_unwritten;
    }
}

/*
 * The interval between readings of the processes' titles. A process often sets its title soon after
 * it starts.
 */
#define TITLE_NS 500000000
/* The interval between readings of their CPU clocks. CPU time after the last reading is not
 * counted. */
#define CLOCK_NS 50000000

static void look_at_processes(struct recorder *r, int64_t now)
{
    bool titles = now >= r->titled_ns + TITLE_NS, clocks = now >= r->clocks_ns + CLOCK_NS;
    r->titled_ns = titles ? now : r->titled_ns;
    r->clocks_ns = clocks ? now : r->clocks_ns;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        if (!p->ended && (titles || now < p->began_ns + COLLECT_DELAY_NS))
            recorder_process_look_at(r, p);
        else if (p->ended || clocks)
            recorder_process_read_cpu(p);
    }
}

/* The CPU time of all processes that have not ended, and of their children. */
static int64_t recorded_cpu_ns(const struct recorder *r)
{
    int64_t sum = 0;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        if (!p->process.pid)
            continue;
        recorder_process_read_cpu(p);
        sum += p->cpu_ns + cpu_limits_children_ns(p->process.pid);
    }
    return sum;
}

static void look_at_cpus(struct recorder *r, int64_t now)
{
    int64_t recorded_ns, cost_ns, begin_ns = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (now < r->cpus_ns || !recorder_is_on(r))
        return;
    recorded_ns = recorded_cpu_ns(r);
    for (const struct recorded *p = r->live; p; p = p->next_live) {
        if (!p->process.pid || p->to->over)
            continue;
        cpu_limits_look(&p->to->cpus, p->process.pid, p->collect);
        cpu_limits_machine(&p->to->cpus, now, recorded_ns);
    }
    cost_ns = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    r->cpus_ns = now + (cost_ns * COST_PART > CPU_LIMITS_NS ? cost_ns * COST_PART : CPU_LIMITS_NS);
}

/* Takes the records of a process, and measures the cost. */
static void step_process(struct recorder *r, struct recorded *process)
{
    int64_t begin = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
    collect_step(process->collect);
    recorder_process_title_by_program(r, process, collect_area(process->collect));
    recorder_process_take_executed(r, process);
    if (process->ended)
        end_process(r, process);
    process->cost_ns += (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Writes everything known about the processes of a trace. */
static void step_trace(struct recorder *r, struct recorded_trace *to, uint64_t limit)
{
    if (to->over || r->stopped)
        return;
    trace_step(to->trace, limit);
    recorder_trace_look_for_loss(r, to);
    if (trace_is_full(to->trace))
        recorder_stop(r);
}

void recorder_step(struct recorder *r)
{
    uint64_t limit, begin = ticks_now(&r->ticks);
    if (r->stopped)
        return;
    /* Read before all records and the spare, so that these include the last records and claims of
     * processes that have ended. */
    for (struct recorded *p = r->live; p; p = p->next_live) {
        p->ended = recorder_process_has_ended(r, p);
        if (!p->ended)
            collect_seen_alive(p->collect, begin);
    }
    int64_t now = now_ns();
    look_at_processes(r, now);
    /* A process not known after this claims its area later. */
    limit = ticks_now(&r->ticks);
    recorder_hand_out(r);
    board_answer(&r->board);
    recorder_look_for_missed(r);
    keep_time(r);
    /* A process that claims the spare from now on is not known yet: its kernel records are left for
     * the next step. */
    recorder_read_kernel(r, now);
    recorder_limit_switches(r, now);
    for (struct recorded *p = r->live, *next; p; p = next) {
        next = p->next_live; /* it may leave the list */
        if (!r->stopped)
            step_process(r, p);
        if (p->to != r->shared)
            step_trace(r, p->to, limit);
    }
    if (r->shared)
        step_trace(r, r->shared, limit);
    look_at_cpus(r, now);
    look_at_ends(r, false);
    if (!r->stopped)
        recorder_write_snapshots(r);
    release_written(r);
    look_at_rates(r);
}

void recorder_program_ended(struct recorder *r)
{
    r->ended = true;
    recorder_step(r);
}

/*
 * Whether to take the claim of a child that has arrived in the meantime. A child that could not be
 * confirmed is about to claim another area for the program that it executes: see `forgive`.
 */
static bool is_claim_due(const struct recorder *r)
{
    return (r->spare && area_claimed(r->spare) != 0) ||
           (r->refused > 0 && now_ns() < r->claimed_ns + FORK_NS);
}

bool recorder_has_others(const struct recorder *r)
{
    const struct recorded *program = r->program;
    return (r->processes && r->processes->next) || is_claim_due(r) ||
           (program && program->collect && area_is_forking(collect_area(program->collect)));
}

bool recorder_goes_on(const struct recorder *r)
{
    if (r->stopped)
        return false;
    for (const struct recorded *p = r->unwritten; p; p = p->next_unwritten) {
        if (!p->over || is_forking(p))
            return true;
    }
    return is_claim_due(r);
}

void recorder_finish(struct recorder *r)
{
    coarse_clock_stop(&r->clock);
    if (r->spare && !r->stopped)
        recorder_look_at_spare(r);
    look_at_ends(r, true);
    recorder_read_kernel(r, INT64_MAX);
    set_groups(r, 0);
    end_all(r);
}

void recorder_close(struct recorder *r)
{
    while (r->processes) {
        struct recorded *process = r->processes;
        r->processes = process->next;
        recorder_process_free(r, process);
    }
    recorder_trace_free(r->shared);
    executed_free(&r->executed);
    idmap_free(&r->numbers);
    samples_close(r->samples);
    switches_close(r->switches);
    free(r->early.at);
    modules_close(r->modules);
    area_close(r->spare);
    handover_close(&r->handover);
    if (r->fd >= 0)
        close(r->fd);
    board_close(&r->board);
    if (r->options.shm)
        (void)unlink(r->options.shm);
}
