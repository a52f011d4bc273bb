#include "cli/recorder.h"

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

#include "cli/machine.h"

/*
 * Between looks at the records, each of which wakes us and so takes time from the program. Descriptors whose calls were
 * recorded are named in the next step: of programs that tell much, or of which the kernel tells much, it comes sooner.
 */
#define STEP_NS      40000000
#define BUSY_STEP_NS 10000000
#define MIN_STEP_NS  1000000
#define BUSY_RECORDS 500

/* So long a child that was forked is waited for after its parent's end. Without a limit: one whose fork has failed. */
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

/* Which calls are recorded: in all processes. */
static void set_groups(const struct recorder *r, uint32_t groups)
{
    if (r->spare)
        r->spare->header.groups = groups;
    for (const struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            collect_set_groups(p->collect, groups);
    }
}

/* MARK: The spare area */

static void set_options(void *recorder, struct shm_area *area)
{
    const struct recorder *r = recorder;
    const struct recorder_options *o = &r->options;
    struct shm_header *header = &area->header;

    header->stacks = o->stacks;
    header->groups = is_on(r) ? o->groups : 0;
    header->children = o->children || o->shm;
    header->heap = o->heap;
    header->all_holds = o->all_holds;
    header->sample_ns = o->cpu_signal ? 1000000000 / o->cpu_samples : 0;
    collect_prepare(area, &r->ticks, o->min_wait_ns, o->all_holds ? 0 : o->hold_ns);
    __atomic_store_n(&header->root_pid, (uint32_t)r->root, __ATOMIC_RELEASE);
}

/* Another spare, under the same descriptor. */
static bool make_spare(struct recorder *r)
{
    trail_error err = no_error();
    int fd = -1;

    if (r->options.shm)
        r->spare = area_make_file(r->options.shm, set_options, r, &err);
    else
        r->spare = area_make(&fd, &err);
    if (!r->spare) {
        r->code = worse_exit(r->code, tell_error(r->options.output, &err));
        return false;
    }
    if (r->options.shm)
        return true;
    set_options(r, r->spare);
    if (r->fd < 0) {
        r->fd = fd;
    } else {
        (void)dup3(fd, r->fd, O_CLOEXEC);
        close(fd);
    }
    return true;
}

/* MARK: What the kernel tells */

/* False after telling: they were asked for, and cannot be had. */
static bool open_switches(struct recorder *r)
{
    struct machine_switches told;

    if (r->options.shm) {
        (void)snprintf(r->why_not, sizeof r->why_not,
                       "the kernel's context switches are those of programs started here");
    } else if (r->options.switches == SWITCHES_OFF) {
        (void)snprintf(r->why_not, sizeof r->why_not, "--switches=off");
    } else if (!(r->switches = switches_open())) {
        machine_tell_switches(errno, &told);
        (void)snprintf(r->why_not, sizeof r->why_not, "%s: %s", told.why, told.fix);
    }
    if (r->switches || r->options.switches != SWITCHES_NEED)
        return true;
    fprintf(stderr, "trail: --switches=need: %s\n", r->why_not);
    r->code = EXIT_USAGE;
    return false;
}

/* False after telling. */
static bool open_samples(struct recorder *r)
{
    struct machine_switches told;

    if (!r->options.cpu_samples || r->options.cpu_signal)
        return true;
    r->samples = r->options.shm ? NULL : samples_open(r->options.cpu_samples);
    if (r->samples)
        return true;
    if (r->options.shm) {
        fprintf(stderr, "trail: --cpu-samples are those of programs started here; --cpu-signal "
                        "takes them in the program\n");
    } else {
        machine_tell_switches(errno, &told);
        fprintf(stderr,
                "trail: --cpu-samples: %s: %s; or --cpu-signal, which takes them in the program\n",
                told.why, told.fix);
    }
    r->code = EXIT_USAGE;
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

/* What is read while nothing is recorded is dropped, and what is of processes that are not known yet. */
static void read_kernel(struct recorder *r, int64_t before_ns)
{
    if (r->switches)
        switches_read(r->switches, before_ns, take_switch, r);
    if (r->samples)
        samples_read(r->samples, take_sample, r);
}

void recorder_summarize(const struct recorder *r, const struct recorded *process,
                        struct collect_summary *summary)
{
    if (process->collect)
        collect_summarize(process->collect, summary);
    else
        *summary = process->summary;
    summary->switches = *r->why_not ? r->why_not : NULL;
    summary->heap_wanted = r->options.heap;
    summary->lost_samples += samples_lost(r->samples);
    summary->lost_switches = switches_lost(r->switches);
}

bool recorder_open(struct recorder *r, const struct recorder_options *options)
{
    *r = (struct recorder){.options = *options, .fd = -1, .handover.fd = -1};
    ticks_init(&r->ticks);
    r->begin_ns = r->claimed_ns = now_ns();
    r->begun = options->delay_ns == 0;
    r->modules = modules_open(NULL, 0, true);
    coarse_clock_init(&r->clock, tick, r);
    if (!open_switches(r) || !open_samples(r) || !r->modules)
        return false;
    ticks_settle(&r->ticks);
    if (!make_spare(r))
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
    __atomic_store_n(&r->spare->header.root_pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
}

/* MARK: Processes */

/* out.trace of a child is out.PID.trace. */
static char *path_of(const struct recorder *r, pid_t pid)
{
    return numbered_path(r->options.output, pid == r->root ? 0 : (unsigned)pid);
}

static struct collect *open_collect(struct recorder *r, struct recorded *process)
{
    struct collect_options options = {.area = r->spare,
                                      .pid = process->pid,
                                      .ticks = &r->ticks,
                                      .version = r->options.version,
                                      .sink = trace_output_sink(&process->out),
                                      .generation = trace_output_generation,
                                      .generation_context = &process->out,
                                      .resolve = modules_resolve,
                                      .object = modules_object,
                                      .resolve_context = r->modules,
                                      .switches = r->switches != NULL};
    trail_error err = no_error();
    struct collect *collect = collect_open(&options, &err);

    if (!collect)
        r->code = worse_exit(r->code, tell_error(process->path, &err));
    return collect;
}

static void close_pidfd(struct recorded *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
    process->pidfd = -1;
}

static void process_free(struct recorded *process)
{
    collect_close(process->collect);
    close_pidfd(process);
    free(process->path);
    free(process);
}

/* A process that was not recorded before has claimed the spare. */
static void add_process(struct recorder *r, pid_t pid)
{
    struct recorded *process = calloc(1, sizeof *process);

    if (process) {
        process->pid = pid;
        process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
        process->path = path_of(r, pid);
    }
    if (!process || !process->path ||
        (r->code = worse_exit(r->code, trace_output_open(&process->out, process->path,
                                                         &r->options.limits))) != EXIT_GOOD ||
        !(process->collect = open_collect(r, process))) {
        r->code = worse_exit(r->code, EXIT_INOUT);
        area_unmap(r->spare);
        if (process)
            process_free(process);
        return;
    }
    process->next = r->processes;
    r->processes = process;
    if (pid == r->root)
        r->program = process;
}

static void look_at_spare(struct recorder *r)
{
    pid_t pid = (pid_t)__atomic_load_n(&r->spare->header.claimed, __ATOMIC_ACQUIRE);
    struct recorded *process = r->processes;

    if (pid == 0)
        return;
    r->claimed_ns = now_ns();
    /* Of those that come by themselves the first is the program. */
    if (r->options.shm && !r->root)
        r->root = pid;
    while (process && (process->pid != pid || process->over))
        process = process->next;
    if (process) {
        /* The last of the former program; of one that is gone already nothing is taken, it would be the new one's. */
        if (!collect_has_left(process->collect))
            read_kernel(r, r->claimed_ns);
        collect_next_area(process->collect, r->spare);
    } else {
        add_process(r, pid);
    }
    r->spare = NULL;
}

/* MARK: Running */

/* Gives the spare to who has claimed it, and makes another. */
static void hand_out(struct recorder *r)
{
    pthread_mutex_lock(&r->clock.lock);
    if (r->spare)
        look_at_spare(r);
    if (!r->spare && r->code == EXIT_GOOD)
        (void)make_spare(r);
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

/* One that nobody has waited for yet has ended, too: it may stay like that for long. */
static bool has_ended(const struct recorder *r, const struct recorded *process)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};

    /* The program's end is told to us, as long as it is looked at. */
    if (process->pid == r->root && !r->options.shm && !r->ended)
        return false;
    if (process->pidfd >= 0)
        return poll(&end, 1, 0) > 0;
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

static void complete(struct recorder *r, struct recorded *process)
{
    trail_error err = no_error();
    int code = EXIT_GOOD;

    pthread_mutex_lock(&r->clock.lock);
    process->over = true;
    process->over_ns = now_ns();
    pthread_mutex_unlock(&r->clock.lock);
    close_pidfd(process);
    if (!collect_finish(process->collect, &err) && !process->out.out.reason)
        code = tell_error(process->path, &err);
    r->code = worse_exit(r->code, trace_output_close(&process->out, true, code));
}

/* The recording is over; the program is not. */
static void stop(struct recorder *r)
{
    read_kernel(r, INT64_MAX);
    r->stopped = true;
    set_groups(r, 0);
    handover_close(&r->handover);
    /* Nobody hands out the next one: who comes now is not to wait for it. */
    if (r->spare)
        __atomic_store_n(&r->spare->header.magic, 0, __ATOMIC_RELAXED);
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            complete(r, p);
    }
}

static void keep_time(struct recorder *r)
{
    int64_t passed = now_ns() - r->begin_ns - r->options.delay_ns;

    if (!r->begun && passed >= 0) {
        r->begun = true;
        set_groups(r, r->options.groups);
    }
    if (r->options.duration_ns && passed >= r->options.duration_ns)
        stop(r);
}

/* Less than `pause` if something is due before: at `ns`, 0 for never. */
static int64_t until(int64_t pause, int64_t ns, int64_t now)
{
    int64_t left = ns - now;

    return ns == 0 || left >= pause ? pause : left > MIN_STEP_NS ? left : MIN_STEP_NS;
}

/* Who starts programs starts further ones soon, which wait for the next area: not for much longer than since the last. */
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

static void write_snapshots(struct recorder *r)
{
    r->snapshot_ns = 0;
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (p->over)
            continue;
        collect_cut(p->collect);
        r->code = worse_exit(r->code, trace_output_snapshot(&p->out));
    }
}

/* What happened since the last step decides when the next one comes, and whether a coarse clock is worth it. */
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
    /* All holds are told with their times. */
    coarse_clock_want(&r->clock, locks && !r->options.all_holds && !r->stopped);
}

/* Whether it has forked a child that has not told of itself; one that takes long never will. */
static bool is_forking(const struct recorded *process)
{
    return process->collect && collect_forking(process->collect) &&
           now_ns() < process->over_ns + FORK_NS;
}

/* Of those that have ended only the summary is kept: a server may have many children. */
static void release_ended(const struct recorder *r)
{
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over || !p->collect || is_forking(p))
            continue;
        collect_summarize(p->collect, &p->summary);
        collect_close(p->collect);
        p->collect = NULL;
    }
}

void recorder_step(struct recorder *r)
{
    int64_t now;

    if (r->stopped)
        return;
    /* In front of all that is read, and of the spare: what they did last, and claimed last, is among it. */
    for (struct recorded *p = r->processes; p; p = p->next)
        p->ended = !p->over && has_ended(r, p);
    now = now_ns();
    hand_out(r);
    keep_time(r);
    /* Who claims the spare from now on is not known yet: what the kernel tells of it is left for the next step. */
    read_kernel(r, now);
    if (r->snapshot_ns && now_ns() >= r->snapshot_ns)
        write_snapshots(r);
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (p->over || r->stopped)
            continue;
        collect_step(p->collect);
        if (r->options.max_size && collect_bytes(p->collect) >= r->options.max_size)
            stop(r);
        if (!p->over && p->ended)
            complete(r, p);
    }
    release_ended(r);
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
    /* A child that has just said that it is. */
    return r->spare && __atomic_load_n(&r->spare->header.claimed, __ATOMIC_RELAXED) != 0;
}

int recorder_finish(struct recorder *r)
{
    coarse_clock_stop(&r->clock);
    if (r->spare && !r->stopped)
        look_at_spare(r);
    read_kernel(r, INT64_MAX);
    set_groups(r, 0);
    for (struct recorded *p = r->processes; p; p = p->next) {
        if (!p->over)
            complete(r, p);
    }
    return r->code;
}

void recorder_close(struct recorder *r)
{
    while (r->processes) {
        struct recorded *process = r->processes;
        r->processes = process->next;
        process_free(process);
    }
    samples_close(r->samples);
    switches_close(r->switches);
    modules_close(r->modules);
    area_unmap(r->spare);
    handover_close(&r->handover);
    if (r->fd >= 0)
        close(r->fd);
    if (r->options.shm)
        (void)unlink(r->options.shm);
}
