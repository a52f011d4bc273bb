/* See other_ends.h. */
#include "collect/other_ends.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "base/grow.h"
#include "base/small_file.h"
#include "collect/ends.h"
#include "collect/parts.h"
#include "collect/recorder_state.h"
#include "wire/merged_ids.h"
#include "wire/recorded.h"

/* No event for this long: the model is COLLECT_DELAY_NS behind. */
#define QUIET_NS (COLLECT_DELAY_NS + 300000000)

/* The longest look, of CPU time, which other programs do not shorten: the kernel's tables of
 * connections are read for each socket. */
#define LOOK_NS 100000000

struct look {
    const struct recorder *r;
    const struct recorded_trace *to;
    struct ends ends;
    struct other_ends found;
};

/* Whether the process is recorded in the trace now. */
static bool is_in(const struct recorded *p, const struct recorded_trace *to)
{
    return p->to == to && !p->over && p->process.pid && p->collect && !p->collect->ended;
}

/* MARK: When */

/* Returns since when all threads wait, but for those that sleep, which may only do so periodically;
 * INT64_MAX: one runs or is ready, or none waits for anything else. */
static int64_t quiet_since(const struct recorded_trace *to)
{
    const struct thread *thread;
    int64_t since_ns = INT64_MIN;
    for (const struct collect *c = to->trace->programs; c; c = c->next_in_trace) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;) {
            const struct goroutine *g = &thread->g;
            if (g->state == G_RUNNING || g->state == G_RUNNABLE)
                return INT64_MAX;
            if ((g->state == G_WAITING || g->state == G_SYSCALL) && g->wait != SHM_SLEEP &&
                g->since_ns > since_ns)
                since_ns = g->since_ns;
        }
    }
    return since_ns == INT64_MIN ? INT64_MAX : since_ns;
}

static bool is_quiet(const struct recorded_trace *to, int64_t since_ns)
{
    return since_ns != to->ends.last_ns && since_ns < now_ns() - QUIET_NS;
}

/* A process that ends closes its ends, though its threads are still known to wait. */
static bool are_all_alive(const struct look *look)
{
    for (const struct recorded *p = look->r->live; p; p = p->next_live) {
        if (p->to == look->to && !p->over && !(is_in(p, look->to) && ends_has_any(p->process.pid)))
            return false;
    }
    return true;
}

/* Returns the number of threads. One that is not recorded, for example made by a raw clone(2), may
 * end a wait. */
static uint64_t count_threads(const struct look *look)
{
    uint64_t count = 0;
    for (const struct recorded *p = look->r->live; p; p = p->next_live) {
        if (is_in(p, look->to))
            count += (uint64_t)process_status_number(p->process.pid, "\nThreads:", NULL);
    }
    return count;
}

/* MARK: What a thread waits for */

/*
 * Whether the thread is in a call of this kind, with this first argument (proc(5)). A call that
 * waits for several objects at once, such as splice, does not count.
 */
static bool is_in_call(pid_t pid, uint64_t tid, uint8_t wait, int first)
{
    static const struct {
        long call;
        uint8_t wait;
    } calls[] = {{SYS_read, SHM_READ},    {SYS_readv, SHM_READ},    {SYS_recvfrom, SHM_READ},
                 {SYS_recvmsg, SHM_READ}, {SYS_write, SHM_WRITE},   {SYS_writev, SHM_WRITE},
                 {SYS_sendto, SHM_WRITE}, {SYS_sendmsg, SHM_WRITE}, {SYS_wait4, SHM_CHILD}};
    char text[256];
    uint64_t argument;
    long call;
    if (!small_file_text(text, sizeof text, "/proc/%d/task/%" PRIu64 "/syscall", pid, tid) ||
        sscanf(text, "%ld 0x%" SCNx64, &call, &argument) != 2 || (int)argument != first)
        return false;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (calls[i].call == call && calls[i].wait == wait)
            return true;
    }
    return false;
}

/* Returns the first argument of the call; -1: it waits for nothing that has another end. */
static int argument_of(const struct recorded *p, const struct area_open *open)
{
    if (open->wait == SHM_CHILD)
        return shm_is_process(open->object) && !p->process.nested ? (int)(uint32_t)open->object
                                                                  : -1;
    if ((open->wait != SHM_READ && open->wait != SHM_WRITE) || open->detail > SHM_DESCRIPTORS)
        return -1;
    return (int)open->detail - 1;
}

/* Adds a process; false: it is not recorded in the trace, or there is no room. */
static bool add(const struct look *look, struct other_ends_row *row, pid_t pid)
{
    const struct recorded *p = look->r->live;
    while (p && !(is_in(p, look->to) && p->process.pid == pid))
        p = p->next_live;
    if (!p)
        return false;
    uint64_t number = p->collect->threads.base / ID_BLOCK;
    for (size_t i = 0; i < row->count; i++) {
        if (row->processes[i] == number)
            return true;
    }
    if (row->count == OTHER_ENDS_PROCESSES)
        return false;
    row->processes[row->count++] = number;
    return true;
}

/* Adds processes, `pid` itself last: the others better explain why it waits. */
static bool add_all(const struct look *look, struct other_ends_row *row, const struct peers *peers,
                    pid_t pid)
{
    bool good = peers->is_all && peers->count > 0, has_own = false;
    for (size_t i = 0; i < peers->count; i++) {
        has_own = has_own || peers->pids[i] == pid;
        good = good && (peers->pids[i] == pid || add(look, row, peers->pids[i]));
    }
    return good && (!has_own || add(look, row, pid));
}

/* Adds the processes with the other end. Any process may open a FIFO later; one with the same end
 * of a connection may shut it down. */
static bool add_peers(struct look *look, struct other_ends_row *row, pid_t pid, int fd,
                      bool is_write)
{
    char link[ENDS_LINK_SIZE];
    struct peers peers, same;
    int access = ends_access(pid, fd);
    if (!ends_read_link(pid, fd, link, sizeof link))
        return false;
    if (ends_inode(link, "pipe:["))
        return (access == O_RDONLY || access == O_WRONLY) &&
               ends_peers(&look->ends, pid, fd, &peers) && add_all(look, row, &peers, pid);
    if (!ends_inode(link, "socket:[") || !ends_peers(&look->ends, pid, fd, &peers) ||
        ends_is_limited(pid, fd, is_write))
        return false;
    ends_find(&look->ends, link, -1, &same);
    return add_all(look, row, &peers, pid) && add_all(look, row, &same, pid);
}

/* A thread of the process itself may end the wait by a signal. */
static bool find(struct look *look, const struct recorded *p, const struct thread *thread,
                 struct other_ends_row *row)
{
    pid_t pid = p->process.pid;
    struct area_open open;
    *row = (struct other_ends_row){.thread = thread->serial};
    if (!thread->slot || !area_open_call(p->collect->area, thread->slot, &open))
        return false;
    int first = argument_of(p, &open);
    if (first < 0 || !is_in_call(pid, thread->tid, open.wait, first) || process_catches_alarm(pid))
        return false;
    return (open.wait == SHM_CHILD ? add(look, row, (pid_t)first)
                                   : add_peers(look, row, pid, first, open.wait == SHM_WRITE)) &&
           add(look, row, pid);
}

/* MARK: A look */

static void look_at(struct look *look, const struct recorded *p)
{
    struct other_ends *found = &look->found;
    const struct thread *thread;
    const uint64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + LOOK_NS;
    for (size_t at = 0; (thread = threads_next(p->collect, &at)) != NULL;) {
        if (found->count == OTHER_ENDS || clock_ns(CLOCK_THREAD_CPUTIME_ID) > until_ns ||
            !GROW(found->rows, found->capacity, found->count + 1))
            break;
        found->count += find(look, p, thread, &found->rows[found->count]);
    }
}

void other_ends_look(const struct recorder *r, struct recorded_trace *to, bool always)
{
    struct look look = {.r = r, .to = to, .ends.has_own = true};
    int64_t since_ns = quiet_since(to);
    if (!always && !is_quiet(to, since_ns))
        return;
    to->ends.last_ns = since_ns;
    look.found.last_ns = to->ends.last_ns;
    look.found.at_ns = now_ns();
    for (const struct recorded *p = are_all_alive(&look) ? r->live : NULL; p; p = p->next_live) {
        if (is_in(p, to))
            look_at(&look, p);
    }
    look.found.threads = look.found.count > 0 ? count_threads(&look) : 0;
    if (look.found.count > 0 && are_all_alive(&look)) {
        other_ends_free(&to->ends);
        to->ends = look.found;
    } else {
        other_ends_free(&look.found);
    }
    ends_free(&look.ends);
}

void other_ends_free(struct other_ends *ends)
{
    free(ends->rows);
    ends->rows = NULL;
    ends->count = ends->capacity = 0;
}

void other_ends_write(const struct recorded_trace *to)
{
    for (size_t i = 0; i < to->ends.count; i++) {
        const struct other_ends_row *row = &to->ends.rows[i];
        char text[RECORDED_NAME_MAX];
        size_t used = 0;
        for (size_t j = 0; j < row->count; j++)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%" PRIu64, j ? " " : "",
                                     row->processes[j]);
        trace_recorded(to->trace, &(trail_recorded){.what = TRAIL_RECORDED_ENDS,
                                                    .pid = row->thread,
                                                    .count = to->ends.threads,
                                                    .cpu_ns = to->ends.at_ns,
                                                    .name = {text, used}});
    }
}
