/*
 * The spare area and the process that claims it. A process that is recorded already has executed
 * another program; any other is new, if the kernel confirms it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
#include "collect/recorder_claims.h"
#include "collect/recorder_kernel.h"
#include "collect/recorder_traces.h"

/* A claim of an area, by the process's PID in its own namespace. */
struct claim {
    pid_t number;
    struct process process;
};

/* MARK: The spare area */

bool recorder_make_spare(struct recorder *r, trail_error *err)
{
    const struct recorder_options *o = &r->options;
    const struct area_options options = {
        .groups = recorder_is_on(r) ? o->groups : 0,
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

/* MARK: Processes */

void recorder_process_close_pidfd(struct recorded *process)
{
    if (process->pidfd >= 0)
        close(process->pidfd);
    process->pidfd = -1;
}

void recorder_process_free(const struct recorder *r, struct recorded *process)
{
    for (size_t i = 0; i < process->former_count; i++)
        collect_close(process->formers[i]);
    free(process->formers);
    collect_close(process->collect);
    recorder_process_close_pidfd(process);
    if (process->to != r->shared)
        recorder_trace_free(process->to);
    free(process);
}

/* Whether a process with this PID, in its own namespace, is or was recorded. */
static bool was_recorded(const void *recorder, pid_t number)
{
    const struct recorder *r = recorder;
    return idmap_find(&r->numbers, (uint64_t)number);
}

void recorder_process_take_executed(struct recorder *r, struct recorded *process)
{
    executed_take(&r->executed, collect_area(process->collect), was_recorded, r);
}

/* Whether data read earlier by PID belonged to this process: the PID may have been reused. */
static bool has_its_pid(const struct recorded *process)
{
    return process->process.pid &&
           (process->pidfd < 0 || syscall(SYS_pidfd_send_signal, process->pidfd, 0, NULL, 0) == 0 ||
            errno != ESRCH);
}

static void read_title(const struct recorder *r, struct recorded *process)
{
    struct process_name name;
    if (!process_name(process->pid, &name) || !has_its_pid(process))
        return;
    memcpy(process->title, name.title, sizeof process->title);
    if (recorder_is_shared(r))
        memcpy(process->label, name.label, sizeof process->label);
    process->titled = true;
}

void recorder_process_title_by_program(const struct recorder *r, struct recorded *process,
                                       const struct area *area)
{
    char path[PATH_MAX];
    if (process->titled || !area_program(area, path, sizeof path))
        return;
    const char *slash = strrchr(path, '/');
    (void)snprintf(process->title, sizeof process->title, "%.*s", (int)sizeof process->title - 1,
                   path);
    if (recorder_is_shared(r))
        (void)snprintf(process->label, sizeof process->label, "%.*s (%d)",
                       (int)sizeof process->label - 16, slash ? slash + 1 : path,
                       (int)process->pid);
    process->titled = true;
}

void recorder_process_read_cpu(struct recorded *process)
{
    struct timespec cpu;
    clockid_t clock;
    if (process->process.pid && clock_getcpuclockid(process->pid, &clock) == 0 &&
        clock_gettime(clock, &cpu) == 0 && has_its_pid(process))
        process->cpu_ns = (int64_t)cpu.tv_sec * 1000000000 + cpu.tv_nsec;
}

void recorder_process_look_at(const struct recorder *r, struct recorded *process)
{
    read_title(r, process);
    recorder_process_read_cpu(process);
}

/* A zombie has ended, too, and may remain one for long. */
bool recorder_process_has_ended(const struct recorder *r, const struct recorded *process)
{
    struct pollfd end = {.fd = process->pidfd, .events = POLLIN};
    /* The program has not ended until recorder_program_ended is called for it. */
    if (process->pid == r->root && !r->options.shm && !r->options.process && !r->ended)
        return false;
    if (process->pidfd >= 0)
        return poll(&end, 1, 0) > 0;
    if (process->process.pid == 0)
        return true;
    return kill(process->pid, 0) != 0 && errno == ESRCH;
}

/* MARK: Programs */

static struct collect *open_collect(struct recorder *r, struct recorded *process, trail_error *err)
{
    struct collect_options options = {.trace = process->to->trace,
                                      .area = r->spare,
                                      .process = process->process,
                                      .ticks = &r->ticks,
                                      .label = recorder_is_shared(r) ? process->label : NULL,
                                      .pidfd = process->pidfd,
                                      .former = process->collect,
                                      .resolve = modules_resolve,
                                      .object = modules_object,
                                      .guards = modules_guards,
                                      .resolve_context = r->modules,
                                      .skip_frames = r->options.skip_frames};
    struct collect *collect = collect_open(&options, err);
    if (collect && r->switch_pause.paused)
        collect_switch(
            collect, &(struct switch_record){.ns = r->switch_pause.since_ns, .kind = SWITCH_LOST});
    return collect;
}

/* False: the failure was reported. */
static bool open_process(struct recorder *r, struct recorded *process)
{
    trail_error err = no_error();
    if (!process || !idmap_put(&r->numbers, (uint64_t)process->number, r)) {
        (void)error_no_memory(&err);
        recorder_fail(r, r->options.output, &err);
        return false;
    }
    process->to = recorder_trace_for(r, process->pid);
    if (!process->to)
        return false;
    process->collect = open_collect(r, process, &err);
    if (!process->collect)
        recorder_fail(r, process->to->path, &err);
    return process->collect;
}

/* The process has executed another program, which has claimed the spare. */
static void next_program(struct recorder *r, struct recorded *process)
{
    trail_error err = no_error();
    /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers. */
    if (!GROW(process->formers, process->former_room, process->former_count + 1)) {
        (void)error_no_memory(&err);
        recorder_fail(r, process->to->path, &err);
        area_close(r->spare);
        return;
    }
    collect_end(process->collect, r->spare);
    struct collect *next = open_collect(r, process, &err);
    if (!next) {
        recorder_fail(r, process->to->path, &err);
        area_close(r->spare);
        return;
    }
    process->formers[process->former_count++] = process->collect;
    process->collect = next;
    process->titled = false;
    process->why = WIRE_MISSED_UNKNOWN;
    read_title(r, process);
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
        /* There is nothing to wait for from a process that has ended. */
        process->pidfd =
            claim->process.pid ? (int)syscall(SYS_pidfd_open, claim->process.pid, 0) : -1;
        process->began_ns = now_ns();
        if (recorder_is_shared(r))
            (void)snprintf(process->label, sizeof process->label, "(%d)", (int)pid);
        recorder_process_look_at(r, process);
        process->cpu_before_ns = r->options.process || r->options.shm ? process->cpu_ns : 0;
        recorder_process_title_by_program(r, process, r->spare);
    }
    if (!open_process(r, process)) {
        area_close(r->spare);
        if (process)
            recorder_process_free(r, process);
        return;
    }
    process->next = r->processes;
    r->processes = process;
    process->next_live = r->live;
    r->live = process;
    process->next_unwritten = r->unwritten;
    r->unwritten = process;
    executed_arrived(&r->executed, claim->number);
    executed_arrived(&r->executed, pid);
    if (pid != r->root)
        return;
    r->program = process;
    /* A process that was already running is not recorded until it joins. */
    if (r->options.process)
        r->begin_ns = now_ns();
}

/* Returns the process of a claim if it is recorded already: it has executed another program. */
static struct recorded *find_recorded(const struct recorder *r, pid_t pid)
{
    struct recorded *process = r->live;
    while (process && process->pid != pid)
        process = process->next_live;
    return process;
}

static bool is_recorded(const void *recorder, pid_t pid)
{
    const struct recorder *r = recorder;
    return pid == getpid() || find_recorded(r, pid);
}

/* MARK: Programs without the recorder */

static void take_missed(void *recorder, pid_t pid, const char *name)
{
    struct recorder *r = recorder;
    executed_found(&r->executed, pid, name);
}

/* The interval between searches; a program that runs for less is not found. */
#define MISSED_NS 250000000

void recorder_look_for_missed(struct recorder *r)
{
    const struct missed_search search = {is_recorded, take_missed, r};
    int64_t now = now_ns();
    if (!r->options.children || now < r->missed_ns + MISSED_NS)
        return;
    r->missed_ns = now;
    for (struct recorded *p = r->live; p; p = p->next_live) {
        if (!has_its_pid(p))
            continue;
        if (collect_has_left(p->collect) && p->why == WIRE_MISSED_UNKNOWN)
            p->why = missed_why(p->process.pid);
        missed_children(p->process.pid, &search);
    }
}

/* MARK: Claims */

/*
 * Finds the process that has claimed the spare. The kernel must confirm the PID in the claim:
 * either it is our child and was not waited for yet; or the process has mapped the area; or it is a
 * zombie, which has nothing mapped, and a recorded process is its parent; or it had
 * mapped it before its exec and descends from us; or it was given the area by a message with its
 * credentials; or it is the only one below us with this number. The first claim is always the
 * program's, even if the program has overwritten the PID, because no other process was started.
 * False: none of these.
 */
static bool identify(struct recorder *r, struct claim *claim)
{
    const struct process_family ours = {is_recorded, r};
    pid_t descendant;
    if (!r->options.shm && !r->program)
        claim->number = r->root;
    if (!r->options.shm && claim->number == r->root && !r->ended) {
        claim->process = (struct process){.pid = r->root};
        return true;
    }
    if (!r->options.shm && !r->options.children)
        return false;
    enum process_claim found =
        process_look_at(claim->number, area_inode(r->spare), &claim->process);
    if (found == PROCESS_CONFIRMED)
        return true;
    pid_t given = handover_gave(&r->handover, claim->number);
    if (!given && claim->process.zombie && !claim->process.nested &&
        is_recorded(r, claim->process.parent))
        return true;
    if (process_find(claim->number, area_pid_namespace(r->spare), area_inode(r->spare), &ours,
                     &claim->process, &descendant))
        return true;
    claim->process.pid = given;
    claim->process.nested = claim->process.pid && claim->process.pid != claim->number;
    if (!claim->process.pid && process_descends(claim->number, &ours))
        claim->process.pid = claim->number;
    if (!claim->process.pid) {
        claim->process.pid = descendant;
        claim->process.nested = claim->process.pid != 0;
    }
    /* The process may have ended between these checks. */
    return claim->process.pid || found == PROCESS_GONE ||
           (kill(claim->number, 0) != 0 && errno == ESRCH);
}

static void refuse(struct recorder *r, pid_t number)
{
    r->refused_numbers[r->refused++ % RECORDER_REFUSED] = number;
    area_close(r->spare);
    r->spare = NULL;
}

/*
 * A forked daemon that has lost its parent and executes a program before its claim is read looks
 * like a foreign process; but the next claim, by the program that it executes, can be recognised.
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

/* Whether the spare was claimed by a process that reuses the PID of a recorded process that has
 * ended. */
static bool is_other(const struct recorder *r, const struct recorded *process)
{
    /* A forked process is never another program of the same process. Until it has stored its fork,
     * this is not known. */
    return area_fork(r->spare) != 0 ||
           (area_claimed_at(r->spare) == 0 && recorder_process_has_ended(r, process));
}

void recorder_look_at_spare(struct recorder *r)
{
    struct claim claim = {.number = area_claimed(r->spare)};
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
    struct recorded *process = find_recorded(r, claim.process.pid);
    /* It has executed another program and ended, so the kernel no longer confirms it. */
    if (!process && !claim.process.pid) {
        process = find_recorded(r, claim.number);
        if (process && process->process.nested)
            process = NULL;
    }
    if (process && is_other(r, process))
        process = NULL;
    if (process) {
        /* The former program's last records. Once it is gone, they would be the new one's. */
        if (!collect_has_left(process->collect))
            recorder_read_kernel(r, r->claimed_ns);
        recorder_process_take_executed(r, process);
        next_program(r, process);
    } else {
        add_process(r, &claim);
    }
    r->spare = NULL;
}

void recorder_hand_out(struct recorder *r)
{
    trail_error err = no_error();
    pthread_mutex_lock(&r->clock.lock);
    if (r->spare)
        recorder_look_at_spare(r);
    if (!r->spare && !r->failed && !recorder_make_spare(r, &err))
        recorder_fail(r, r->options.output, &err);
    pthread_mutex_unlock(&r->clock.lock);
    if (r->spare)
        handover_serve(&r->handover, r->fd);
}
