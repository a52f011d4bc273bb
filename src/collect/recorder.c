#include "collect/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/grow.h"
#include "collect/account.h"

/*
 * The pauses between steps. Each step wakes the recorder and so takes time from the program; but descriptors are only
 * named in the next step after their calls, so that it comes sooner if there are many records or context switches.
 */
#define STEP_NS      40000000
#define BUSY_STEP_NS 10000000
#define MIN_STEP_NS  1000000
#define BUSY_RECORDS 500

/* How long a forked child is waited for after its parent's end. There is a limit as the fork may have failed. */
#define FORK_NS 1000000000

static void tick(void *recorder, bool going);

/* MARK: On and off */

static int64_t now_ns(void)
{
    return (int64_t)clock_ns(CLOCK_MONOTONIC);
}

static bool is_on(const struct recorder *r)
{
    return r->begun && !r->stopped;
}

/* Sets which calls are recorded, in all processes. */
static void set_groups(const struct recorder *r, uint32_t groups)
{
    if (r->spare)
        area_set_groups(r->spare, groups);
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            collect_set_groups(p->collect, groups);
    }
}

/* MARK: Failures */

/* Whether all processes have one trace. */
static bool is_shared(const struct recorder *r)
{
    return (r->options.children || r->options.shm) && !r->options.split;
}

static void hand_on(const struct recorder *r, const struct recorder_failure *failure)
{
    if (r->options.failed)
        r->options.failed(r->options.failed_context, failure);
}

/* `path` NULL: the message names the file. */
static void fail(struct recorder *r, const char *path, const trail_error *err)
{
    r->failed = true;
    hand_on(r, &(struct recorder_failure){.error = err, .path = path});
}

/* Reports a failure in the change from one file of a trace to the next. */
static void look_for_loss(const struct recorder *r, struct recorded_trace *to)
{
    trail_error err;
    if (trace_output_lost(&to->out, &err))
        hand_on(r, &(struct recorder_failure){.error = &err});
}

/* MARK: The spare area */

/* Makes another spare, under the same descriptor. */
static bool make_spare(struct recorder *r, trail_error *err)
{
    const struct recorder_options *o = &r->options;
    const struct area_options options = {
        .groups = is_on(r) ? o->groups : 0,
        .stacks = o->stacks,
        .children = o->children || o->shm,
        .heap = o->heap,
        .board = r->board.fd > 0 ? r->board.fd : 0,
        .all_holds = o->all_holds,
        .min_wait_ns = o->min_wait_ns,
        .hold_ns = o->all_holds ? 0 : o->hold_ns,
        .sample_ns = o->cpu_signal ? 1000000000 / o->cpu_samples : 0,
    };
    int fd = -1;
    if (o->shm)
        r->spare = area_make_file(o->shm, &options, &r->ticks, err);
    else
        r->spare = area_make(&options, &r->ticks, &fd, err);
    if (!r->spare)
        return false;
    area_set_root(r->spare, r->root);
    if (r->options.shm)
        return true;
    if (r->fd < 0) {
        r->fd = fd;
    } else {
        (void)dup3(fd, r->fd, O_CLOEXEC);
        close(fd);
    }
    return true;
}

/* MARK: What the kernel reports */

/* False with *err: they were asked for, but cannot be recorded. */
static bool open_switches(struct recorder *r, trail_error *err)
{
    struct switches_refusal refusal;
    if (r->options.shm) {
        (void)snprintf(r->why_not, sizeof r->why_not,
                       "the kernel's context switches are those of programs started here");
    } else if (r->options.switches == SWITCHES_OFF) {
        (void)snprintf(r->why_not, sizeof r->why_not, "--switches=off");
    } else if (!(r->switches = r->options.process ? switches_open_process(r->options.process)
                                                  : switches_open())) {
        switches_explain(errno, &refusal);
        (void)snprintf(r->why_not, sizeof r->why_not, "%s: %s", refusal.why, refusal.fix);
    }
    if (r->switches || r->options.switches != SWITCHES_NEED)
        return true;
    (void)error_set(err, TRAIL_USAGE, "--switches=need: %s", r->why_not);
    return false;
}

static bool open_samples(struct recorder *r, trail_error *err)
{
    struct switches_refusal refusal;
    if (!r->options.cpu_samples || r->options.cpu_signal)
        return true;
    r->samples = r->options.shm || r->options.process ? NULL : samples_open(r->options.cpu_samples);
    if (r->samples)
        return true;
    if (r->options.shm || r->options.process) {
        (void)error_set(err, TRAIL_USAGE,
                        "--cpu-samples are those of programs started here; --cpu-signal takes them "
                        "in the program");
    } else {
        switches_explain(errno, &refusal);
        (void)error_set(err, TRAIL_USAGE,
                        "--cpu-samples: %s: %s; or --cpu-signal, which takes them in the program",
                        refusal.why, refusal.fix);
    }
    return false;
}

static void take_sample(void *recorder, const struct cpu_sample *sample)
{
    const struct recorder *r = recorder;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (is_on(r) && !p->over && (uint32_t)p->pid == sample->pid)
            collect_sample(p->collect, sample);
    }
}

static void take_switch(void *recorder, const struct switch_record *record)
{
    const struct recorder *r = recorder;
    bool all = record->kind == SWITCH_LOST || record->kind == SWITCH_FOUND;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (is_on(r) && !p->over && (all || (uint32_t)p->pid == record->pid))
            collect_switch(p->collect, record);
    }
}

/* Records are dropped while recording is off, and those of processes that are not known. */
static void read_kernel(struct recorder *r, int64_t before_ns)
{
    if (r->switches)
        switches_read(r->switches, before_ns, take_switch, r);
    if (r->samples)
        samples_read(r->samples, take_sample, r);
}

/* The events of all processes that are recorded. False: they cannot be opened. */
static bool resume_switches(const struct recorder *r)
{
    pid_t *pids = NULL;
    size_t count = 0, room = 0;
    bool good = true;
    for (const struct recorded *p = r->processes; p && good; p = p->next) {
        if (p->over)
            continue;
        good = GROW(pids, room, count + 1);
        if (good)
            pids[count++] = p->pid;
    }
    good = good && switches_resume(r->switches, pids, count);
    free(pids);
    return good;
}

/*
 * Closes the kernel's events while they cost too much: see switch_pause.h. All records of before `read_ns` were read, and
 * of those behind it the ends of spans whose records were lost.
 */
static void limit_switches(struct recorder *r, int64_t read_ns)
{
    int64_t last_ns;
    if (!r->switches)
        return;
    switch (switch_pause_step(&r->switch_pause, read_ns, switches_busiest(r->switches))) {
    case SWITCH_PAUSE_BEGINS:
        last_ns = switches_pause(r->switches);
        take_switch(r, &(struct switch_record){.ns = last_ns > read_ns ? last_ns : read_ns,
                                               .kind = SWITCH_LOST});
        break;
    case SWITCH_PAUSE_ENDS:
        if (resume_switches(r))
            take_switch(r, &(struct switch_record){.ns = now_ns(), .kind = SWITCH_FOUND});
        else
            switch_pause_again(&r->switch_pause, read_ns);
        break;
    case SWITCH_PAUSE_NOTHING:
        break;
    }
}

/* MARK: Summaries */

static void add_collect(struct collect_summary *summary, struct collect *collect)
{
    struct collect_summary own;
    collect_summarize(collect, &own);
    collect_summary_add(summary, &own);
}

void recorder_summarize(const struct recorder *r, const struct recorded *process,
                        struct collect_summary *summary)
{
    *summary = process->summary;
    for (size_t i = 0; i < process->former_count; i++)
        add_collect(summary, process->formers[i]);
    /* What is true of the program that it executes now. */
    if (process->collect) {
        summary->left = false;
        add_collect(summary, process->collect);
    }
    summary->switches = *r->why_not ? r->why_not : NULL;
    summary->heap_wanted = r->options.heap;
    summary->lost_samples += samples_lost(r->samples);
    summary->lost_switches = switches_lost(r->switches);
}

void recorder_summarize_all(const struct recorder *r, struct collect_summary *summary)
{
    struct collect_summary own;
    *summary = (struct collect_summary){0};
    for (const struct recorded *p = r->processes; p; p = p->next) {
        recorder_summarize(r, p, &own);
        collect_summary_add(summary, &own);
        summary->switches = own.switches;
        summary->heap_wanted = own.heap_wanted;
        summary->lost_switches = own.lost_switches;
    }
    summary->lost_samples = samples_lost(r->samples);
    summary->wall_ns = trace_wall_ns(r->shared->trace);
    summary->most_threads = trace_most_threads(r->shared->trace);
    summary->left = false;
    if (r->program) {
        recorder_summarize(r, r->program, &own);
        summary->left = own.left;
    }
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
    r->modules = modules_open(NULL, 0, true);
    coarse_clock_init(&r->clock, tick, r);
    if (!open_switches(r, err) || !open_samples(r, err))
        return false;
    if (!r->modules) {
        (void)error_set(err, TRAIL_NO_MEMORY, "out of memory");
        return false;
    }
    ticks_settle(&r->ticks);
    if (!r->options.shm && !r->options.split)
        board_open(&r->board);
    if (!make_spare(r, err))
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

void recorder_announce_thread(struct recorder *r, const struct area_waiting *waiting)
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

/* MARK: Processes */

/* The claim of an area, by the PID that the process has in its own namespace. */
struct claim {
    pid_t number;
    struct process process;
};

/*
 * Returns the path of a process's trace: the program's is out.trace, a child's out.PID.trace. What comes later with a PID
 * that is used already, which the kernel gives again, is out.PID.2.trace and so on.
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

static struct collect *open_collect(struct recorder *r, struct recorded *process, trail_error *err)
{
    struct collect_options options = {.trace = process->to->trace,
                                      .area = r->spare,
                                      .process = process->process,
                                      .ticks = &r->ticks,
                                      .label = *process->label ? process->label : NULL,
                                      .pidfd = process->pidfd,
                                      .former = process->collect,
                                      .resolve = modules_resolve,
                                      .object = modules_object,
                                      .resolve_context = r->modules,
                                      .skip_frames = r->options.skip_frames};
    struct collect *collect = collect_open(&options, err);
    if (collect && r->switch_pause.paused)
        collect_switch(
            collect, &(struct switch_record){.ns = r->switch_pause.since_ns, .kind = SWITCH_LOST});
    return collect;
}

static void close_pidfd(struct recorded *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
    process->pidfd = -1;
}

static void trace_free(struct recorded_trace *to)
{
    if (!to)
        return;
    trace_close(to->trace);
    free(to->path);
    free(to);
}

static void process_free(const struct recorder *r, struct recorded *process)
{
    for (size_t i = 0; i < process->former_count; i++)
        collect_close(process->formers[i]);
    free(process->formers);
    collect_close(process->collect);
    close_pidfd(process);
    if (process->to != r->shared)
        trace_free(process->to);
    free(process);
}

static void write_account(void *to)
{
    const struct recorded_trace *trace = to;
    account_write(trace->recorder, trace);
}

/* Opens a trace and its file, whose path it takes over. NULL: the failure was reported. */
static struct recorded_trace *open_trace(struct recorder *r, char *path)
{
    struct recorded_trace *to = calloc(1, sizeof *to);
    struct trace_options options = {.version = r->options.version,
                                    .max_bytes = r->options.max_size,
                                    .switches = r->switches != NULL,
                                    .board = &r->board,
                                    .generation = trace_output_generation,
                                    .is_hurried = r->options.is_hurried,
                                    .is_hurried_context = r->options.is_hurried_context};
    trail_error err = no_error();
    if (!to || !path) {
        (void)error_set(&err, TRAIL_NO_MEMORY, "out of memory");
        fail(r, r->options.output, &err);
        free(path);
        free(to);
        return NULL;
    }
    to->path = path;
    if (!trace_output_open(&to->out, path, &r->options.limits, &err)) {
        fail(r, NULL, &err);
        trace_free(to);
        return NULL;
    }
    options.sink = trace_output_sink(&to->out);
    options.generation_context = &to->out;
    to->recorder = r;
    options.ends = write_account;
    options.ends_context = to;
    to->trace = trace_open(&options, &err);
    if (to->trace)
        return to;
    fail(r, path, &err);
    (void)trace_output_close(&to->out, false, NULL);
    trace_free(to);
    return NULL;
}

/* The trace of a process. NULL: the failure was reported. */
static struct recorded_trace *trace_for(struct recorder *r, pid_t pid)
{
    if (!is_shared(r))
        return open_trace(r, path_of(r, pid));
    if (!r->shared)
        r->shared = open_trace(r, numbered_path(r->options.output, 0));
    return r->shared;
}

/* False: the failure was reported. */
static bool open_process(struct recorder *r, struct recorded *process)
{
    trail_error err = no_error();
    if (!process) {
        (void)error_set(&err, TRAIL_NO_MEMORY, "out of memory");
        fail(r, r->options.output, &err);
        return false;
    }
    process->to = trace_for(r, process->pid);
    if (!process->to)
        return false;
    process->collect = open_collect(r, process, &err);
    if (!process->collect)
        fail(r, process->to->path, &err);
    return process->collect;
}

/* Whether a process with this PID, in its namespace, is recorded, or was. */
static bool was_recorded(const void *recorder, pid_t number)
{
    const struct recorder *r = recorder;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (p->number == number)
            return true;
    }
    return false;
}

static void take_executed(struct recorder *r, struct recorded *process)
{
    executed_take(&r->executed, collect_area(process->collect), was_recorded, r);
}

/* Reads what a process is called, and its CPU time. */
static void look_at_process(const struct recorder *r, struct recorded *process)
{
    struct timespec cpu;
    clockid_t clock;
    process_title(process->pid, process->title, sizeof process->title);
    if (is_shared(r))
        process_label(process->pid, process->label, sizeof process->label);
    if (process->process.pid && clock_getcpuclockid(process->pid, &clock) == 0 &&
        clock_gettime(clock, &cpu) == 0)
        process->cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

/* The process has executed another program, which has claimed the spare. */
static void next_program(struct recorder *r, struct recorded *process)
{
    trail_error err = no_error();
    struct collect *next;
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    if (!GROW(process->formers, process->former_room, process->former_count + 1)) {
        (void)error_set(&err, TRAIL_NO_MEMORY, "out of memory");
        fail(r, process->to->path, &err);
        area_close(r->spare);
        return;
    }
    collect_end(process->collect, r->spare);
    next = open_collect(r, process, &err);
    if (!next) {
        fail(r, process->to->path, &err);
        area_close(r->spare);
        return;
    }
    process->formers[process->former_count++] = process->collect;
    process->collect = next;
    process->began_ns = now_ns();
}

/* Adds a process that has claimed the spare and was not recorded before. */
static void add_process(struct recorder *r, const struct claim *claim)
{
    struct recorded *process = calloc(1, sizeof *process);
    pid_t pid = claim->process.pid ? claim->process.pid : claim->number;
    if (process) {
        process->pid = pid;
        process->number = claim->number;
        process->process = claim->process;
        /* Nothing is waited for from a process that has ended. */
        process->pidfd =
            claim->process.pid ? (int)syscall(SYS_pidfd_open, claim->process.pid, 0) : -1;
        process->began_ns = now_ns();
        if (is_shared(r))
            (void)snprintf(process->label, sizeof process->label, "(%d)", (int)pid);
        look_at_process(r, process);
    }
    if (!open_process(r, process)) {
        area_close(r->spare);
        if (process)
            process_free(r, process);
        return;
    }
    process->next = r->processes;
    r->processes = process;
    executed_arrived(&r->executed, claim->number);
    if (pid != r->root)
        return;
    r->program = process;
    /* Until it could join, a process that runs already was not recorded. */
    if (r->options.process)
        r->begin_ns = now_ns();
}

/* A zombie has ended, too: it may stay one for long. */
static bool has_ended(const struct recorder *r, const struct recorded *process)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
    /* recorder_program_ended is called for the program; until then it has not ended. */
    if (process->pid == r->root && !r->options.shm && !r->options.process && !r->ended)
        return false;
    if (process->pidfd >= 0)
        return poll(&end, 1, 0) > 0;
    if (process->process.pid == 0)
        return true;
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

/* Returns the process of a claim if it is recorded already: it has executed another program. */
static struct recorded *find_recorded(const struct recorder *r, pid_t pid)
{
    struct recorded *process = r->processes;
    while (process && (process->pid != pid || process->over))
        process = process->next;
    return process;
}

static bool is_recorded(const void *recorder, pid_t pid)
{
    const struct recorder *r = recorder;
    return pid == getpid() || find_recorded(r, pid);
}

/*
 * Finds the process that has claimed the spare. The kernel must confirm the PID in the claim: the program is our child,
 * which was not waited for yet; another process has mapped the area, or had done so before its exec and descends from us,
 * or was given the area by a message with its credentials. The first claim is always the program's, even if the program
 * has overwritten the PID, as no other process was started. False: none of these.
 */
static bool identify(const struct recorder *r, struct claim *claim)
{
    enum process_claim found;
    if (!r->options.shm && !r->program)
        claim->number = r->root;
    if (!r->options.shm && claim->number == r->root && !r->ended) {
        claim->process = (struct process){.pid = r->root};
        return true;
    }
    if (!r->options.shm && !r->options.children)
        return false;
    found = process_find(claim->number, area_inode(r->spare), &claim->process);
    if (found == PROCESS_CONFIRMED || found == PROCESS_GONE)
        return true;
    claim->process.pid = handover_gave(&r->handover, claim->number);
    claim->process.nested = claim->process.pid && claim->process.pid != claim->number;
    if (!claim->process.pid && process_descends(claim->number, is_recorded, r))
        claim->process.pid = claim->number;
    return claim->process.pid != 0;
}

static void refuse(struct recorder *r, pid_t number)
{
    r->refused_numbers[r->refused++ % RECORDER_REFUSED] = number;
    area_close(r->spare);
    r->spare = NULL;
}

/*
 * A forked daemon that has lost its parent and executes a program before its claim is read cannot be distinguished from a
 * foreign process; but the claim of the program that it executes, which comes next, can.
 */
static void forgive(struct recorder *r, pid_t number)
{
    for (size_t i = 0; i < RECORDER_REFUSED; i++) {
        if (r->refused_numbers[i] == number) {
            r->refused_numbers[i] = 0;
            r->refused--;
        }
    }
}

/* Whether the spare was claimed by a process that the kernel has given the number of a recorded one, which has ended. */
static bool is_other(const struct recorder *r, const struct recorded *process)
{
    /* What was forked is never another program of the same process. Until it has stored that, this is not known. */
    return area_fork(r->spare) != 0 || (area_claimed_at(r->spare) == 0 && has_ended(r, process));
}

static void look_at_spare(struct recorder *r)
{
    struct claim claim = {.number = area_claimed(r->spare)};
    struct recorded *process;
    /* The program may have overwritten its claim. */
    if (claim.number == 0 &&
        (r->options.shm || r->options.process || r->program || !area_is_in_use(r->spare)))
        return;
    r->claimed_ns = now_ns();
    if (!identify(r, &claim)) {
        refuse(r, claim.number);
        return;
    }
    forgive(r, claim.number);
    /* With --attach-shm the first process is the program. */
    if (r->options.shm && !r->root)
        r->root = claim.process.pid ? claim.process.pid : claim.number;
    process = find_recorded(r, claim.process.pid);
    /* It has executed another program, and ended: the kernel does not confirm it any more. */
    if (!process && !claim.process.pid) {
        process = find_recorded(r, claim.number);
        if (process && process->process.nested)
            process = NULL;
    }
    if (process && is_other(r, process))
        process = NULL;
    if (process) {
        /* The last records of the former program. If it is gone already, they would be the new one's. */
        if (!collect_has_left(process->collect))
            read_kernel(r, r->claimed_ns);
        take_executed(r, process);
        next_program(r, process);
    } else {
        add_process(r, &claim);
    }
    r->spare = NULL;
}

/* MARK: Running */

/* Gives the spare to the process that has claimed it, and makes another. */
static void hand_out(struct recorder *r)
{
    trail_error err = no_error();
    pthread_mutex_lock(&r->clock.lock);
    if (r->spare)
        look_at_spare(r);
    if (!r->spare && !r->failed && !make_spare(r, &err))
        fail(r, r->options.output, &err);
    pthread_mutex_unlock(&r->clock.lock);
    if (r->spare)
        handover_serve(&r->handover, r->fd);
}

static void tick(void *recorder, bool going)
{
    struct recorder *r = recorder;
    uint64_t now = going ? ticks_now(&r->ticks) : 0;
    if (r->spare)
        area_tick(r->spare, now);
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            collect_tick(p->collect, now);
    }
}

static void finish_trace(struct recorder *r, struct recorded_trace *to)
{
    bool whole;
    trail_error err = no_error();
    to->over = true;
    /* Losses of the output are found when it is closed. */
    whole = trace_finish(to->trace, &err) || to->out.out.reason;
    look_for_loss(r, to);
    if (!whole)
        fail(r, to->path, &err);
    if (!trace_output_close(&to->out, whole, &err))
        fail(r, NULL, &err);
}

/* Reads the last records of a process, which ends before its trace or with it. */
static void complete(struct recorder *r, struct recorded *process, bool with_trace)
{
    pthread_mutex_lock(&r->clock.lock);
    process->over = true;
    process->over_ns = now_ns();
    pthread_mutex_unlock(&r->clock.lock);
    close_pidfd(process);
    if (with_trace)
        collect_end_with_trace(process->collect);
    else
        collect_end(process->collect, NULL);
    take_executed(r, process);
}

/* The process has ended. */
static void end_process(struct recorder *r, struct recorded *process)
{
    bool own = process->to != r->shared;
    complete(r, process, own);
    if (own)
        finish_trace(r, process->to);
}

/* The recording of all processes ends. */
static void end_all(struct recorder *r)
{
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            complete(r, p, true);
        if (p->to != r->shared && !p->to->over)
            finish_trace(r, p->to);
    }
    if (r->shared && !r->shared->over)
        finish_trace(r, r->shared);
}

/* The recording ends while the program goes on. */
static void stop(struct recorder *r)
{
    read_kernel(r, INT64_MAX);
    r->stopped = true;
    set_groups(r, 0);
    handover_close(&r->handover);
    /* There is no further area: processes must not wait for one. */
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
        stop(r);
}

/* Shortens `pause` if something is due before its end, at `ns` (0: never). */
static int64_t until(int64_t pause, int64_t ns, int64_t now)
{
    int64_t left = ns - now;
    return ns == 0 || left >= pause ? pause : left > MIN_STEP_NS ? left : MIN_STEP_NS;
}

/* Other claims often follow one, and wait for the next area: the pause is about as long as the time since the last. */
int64_t recorder_pause_ns(const struct recorder *r)
{
    int64_t now = now_ns(), pause = (now - r->claimed_ns) / 4;
    int64_t most = r->busy ? BUSY_STEP_NS : STEP_NS, begin = r->begin_ns + r->options.delay_ns;
    pause = pause < MIN_STEP_NS ? MIN_STEP_NS : pause < most ? pause : most;
    if (!r->begun)
        pause = until(pause, begin, now);
    if (r->options.duration_ns && !r->stopped)
        pause = until(pause, begin + r->options.duration_ns, now);
    return until(pause, r->snapshot_ns, now);
}

void recorder_snapshot(struct recorder *r)
{
    r->snapshot_ns = now_ns() + 2 * (int64_t)COLLECT_DELAY_NS;
}

static void write_snapshot(struct recorder *r, struct recorded_trace *to)
{
    trail_error err;
    trace_cut(to->trace);
    if (!trace_output_snapshot(&to->out, &err))
        fail(r, NULL, &err);
}

static void write_snapshots(struct recorder *r)
{
    r->snapshot_ns = 0;
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over && p->to != r->shared)
            write_snapshot(r, p->to);
    }
    if (r->shared && !r->shared->over)
        write_snapshot(r, r->shared);
}

/* The rates of the last step decide when the next one comes, and whether there is a coarse clock. */
static void look_at_rates(struct recorder *r)
{
    uint64_t records = 0;
    bool locks = r->options.heap || !r->ticks.clock.counter;
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (p->over)
            continue;
        records += collect_rates(p->collect).records;
        locks |= collect_rates(p->collect).many_locks;
    }
    r->busy = records > BUSY_RECORDS || r->samples || r->options.all_holds;
    /* All holds are recorded with exact times. */
    coarse_clock_want(&r->clock, locks && !r->options.all_holds && !r->stopped);
}

/* Whether a forked child has not decided yet whether it is recorded, for less than the limit. */
static bool is_forking(const struct recorded *process)
{
    return process->collect && collect_forking(process->collect) &&
           now_ns() < process->over_ns + FORK_NS;
}

static void fold(struct recorded *process, struct collect *collect)
{
    add_collect(&process->summary, collect);
    collect_close(collect);
}

/* Keeps only the summary of what the traces have: a server may have many children. */
static void release_written(const struct recorder *r)
{
    for (struct recorded *p = r->processes; p; p = p->next) {
        size_t kept = 0;
        for (size_t i = 0; i < p->former_count; i++) {
            if (collect_is_written(p->formers[i]))
                fold(p, p->formers[i]);
            else
                p->formers[kept++] = p->formers[i];
        }
        p->former_count = kept;
        /* It was so of a program that the process has left. */
        if (p->former_count == 0 && p->collect)
            p->summary.left = false;
        if (!p->over || !p->collect || is_forking(p) ||
            !(p->to->over || collect_is_written(p->collect)))
            continue;
        fold(p, p->collect);
        p->collect = NULL;
    }
}

/* Between readings of the processes' titles. A process often sets its own soon after its beginning. */
#define TITLE_NS 500000000

static void read_titles(struct recorder *r, int64_t now)
{
    bool all = now >= r->titled_ns + TITLE_NS;
    if (all)
        r->titled_ns = now;
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over && (all || now < p->began_ns + COLLECT_DELAY_NS))
            look_at_process(r, p);
    }
}

/* Takes the records of a process, and counts what that costs. */
static void step_process(struct recorder *r, struct recorded *process)
{
    int64_t begin = (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID);
    collect_step(process->collect);
    take_executed(r, process);
    if (process->ended)
        end_process(r, process);
    process->cost_ns += (int64_t)clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Writes what is known of all processes of a trace. */
static void step_trace(struct recorder *r, struct recorded_trace *to, uint64_t limit)
{
    if (to->over || r->stopped)
        return;
    trace_step(to->trace, limit);
    look_for_loss(r, to);
    if (trace_is_full(to->trace))
        stop(r);
}

void recorder_step(struct recorder *r)
{
    int64_t now;
    uint64_t limit;
    if (r->stopped)
        return;
    /* Read before all records and the spare: those then have the last records and claims of processes that have ended. */
    for (struct recorded *p = r->processes; p; p = p->next)
        p->ended = !p->over && has_ended(r, p);
    now = now_ns();
    read_titles(r, now);
    /* A process that is not known after this claims its area later. */
    limit = ticks_now(&r->ticks);
    hand_out(r);
    board_answer(&r->board);
    keep_time(r);
    /* A process that claims the spare from now on is not known yet: its kernel records are left for the next step. */
    read_kernel(r, now);
    limit_switches(r, now);
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over && !r->stopped)
            step_process(r, p);
        if (p->to != r->shared)
            step_trace(r, p->to, limit);
    }
    if (r->shared)
        step_trace(r, r->shared, limit);
    if (!r->stopped && r->snapshot_ns && now_ns() >= r->snapshot_ns)
        write_snapshots(r);
    release_written(r);
    look_at_rates(r);
}

void recorder_program_ended(struct recorder *r)
{
    r->ended = true;
    recorder_step(r);
}

bool recorder_goes_on(const struct recorder *r)
{
    if (r->stopped)
        return false;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over || is_forking(p))
            return true;
    }
    /* Takes the claim of a child that came meanwhile. */
    return r->spare && area_claimed(r->spare) != 0;
}

void recorder_finish(struct recorder *r)
{
    coarse_clock_stop(&r->clock);
    if (r->spare && !r->stopped)
        look_at_spare(r);
    read_kernel(r, INT64_MAX);
    set_groups(r, 0);
    end_all(r);
}

void recorder_close(struct recorder *r)
{
    while (r->processes) {
        struct recorded *process = r->processes;
        r->processes = process->next;
        process_free(r, process);
    }
    trace_free(r->shared);
    executed_free(&r->executed);
    samples_close(r->samples);
    switches_close(r->switches);
    modules_close(r->modules);
    area_close(r->spare);
    handover_close(&r->handover);
    if (r->fd >= 0)
        close(r->fd);
    board_close(&r->board);
    if (r->options.shm)
        (void)unlink(r->options.shm);
}
