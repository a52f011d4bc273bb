/*
 * See switches.h. The event counts major page faults, with a sample for each; the kernel adds a
 * record for each switch of its threads, and for the end of each thread, which has no switch.
 */
#include "collect/switches.h"

#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/grow.h"
#include "base/regular_file.h"
#include "base/small_file.h"
#include "collect/perf_ring.h"
#include "collect/perf_stack.h"
#include "collect/wakings.h"

/*
 * The size of all buffers, and of each: 32,000 records on each of up to 8 CPUs, 16,000 on each of
 * 16. A CPU that does nothing but switch makes 30,000 in a step (collect/recorder.c). Any user may
 * lock 516 KiB per CPU, and what ulimit -l allows.
 */
#define ROOM     (8u << 20)
#define CPU_ROOM (1u << 20)

/* Limits the events opened for threads while the program runs: each is a descriptor, and takes some
 * microseconds. */
#define MOST_THREAD_EVENTS 4096

struct switches {
    struct perf_ring_list rings;
    struct wakings *wakings; /* NULL: not recorded */
    uint64_t lost;
    size_t gaps;           /* rings in a gap */
    int64_t found_ns;      /* where the last gap ended, while others go on; 0: none has */
    uint64_t lost_wakings; /* before the last pause */
    uint64_t busiest;      /* records of the busiest CPU: see switches_busiest */
    size_t most_events;    /* of threads that are already running; 0: as many as there may be
                            * descriptors */
    /* Whether a thread may have two events: an inherited one, and one that was opened for it. */
    bool several;
    struct cpu_sample fault; /* of the last record, if that is a fault */
    union perf_record record;
};

/* Bytes of stack for a page fault: buffers have room for several hundred faults between two
 * readings. */
#define FAULT_STACK 4096

/* MARK: Records */

/* Trails each record that is not a sample. */
struct sample_id {
    uint32_t pid, tid;
    uint64_t time;
    uint32_t cpu, unused;
};

/* Of the end of a thread, or of the fork that made it. */
struct task_record {
    struct perf_event_header header;
    uint32_t pid, parent_pid, tid, parent_tid;
    uint64_t time;
};

struct fault_sample {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t time, address;
    uint32_t cpu, unused;
    uint8_t stack[]; /* perf_stack.h */
};

/* MARK: Opening */

static struct perf_event_attr attributes(void)
{
    struct perf_event_attr attr = {
        .size = sizeof(struct perf_event_attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_PAGE_FAULTS_MAJ,
        .sample_period = 1,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU,
        .disabled = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .task = 1,
        .enable_on_exec = 1,
        .sample_id_all = 1,
        .context_switch = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    perf_stack_want(&attr, FAULT_STACK);
    return attr;
}

struct switches *switches_open(void)
{
    struct perf_event_attr attr = attributes();
    struct switches *switches = calloc(1, sizeof *switches);
    if (!switches)
        return NULL;
    if (!perf_rings_open(&switches->rings, &attr, 0, ROOM, CPU_ROOM)) {
        int reason = errno;
        free(switches);
        errno = reason;
        return NULL;
    }
    switches->wakings = wakings_open(attr.clockid);
    return switches;
}

/* MARK: A process that runs */

static bool is_known(const pid_t *known, size_t count, pid_t tid)
{
    for (size_t i = 0; i < count; i++) {
        if (known[i] == tid)
            return true;
    }
    return false;
}

struct listing {
    pid_t *known;
    size_t count, room;
};

/* Opens the events of threads that are not known yet. Returns how many; -1 with errno. */
static int add_threads(struct switches *s, pid_t pid, struct listing *listing)
{
    struct perf_event_attr attr = attributes();
    int added = 0;
    attr.enable_on_exec = 0;
    SMALL_FILE_NUMBERS(task, "/proc/%d/task", (int)pid) {
        if (is_known(listing->known, listing->count, task.at))
            continue;
        if (!APPEND(listing->known, listing->room, listing->count, task.at)) {
            errno = ENOMEM;
            return -1;
        }
        if (s->most_events && s->rings.other_count + s->rings.count > s->most_events) {
            errno = EMFILE;
            return -1;
        }
        /* A thread that has ended in the meantime needs none. */
        if (!perf_rings_add(&s->rings, &attr, task.at) && errno != ESRCH)
            return -1;
        added++;
    }
    return added;
}

/* Opens the events of all threads of a process. False with errno. */
static bool open_process(struct switches *s, pid_t pid)
{
    struct listing listing = {0};
    int added = 0, reason;
    s->several = true;
    regular_files_allow_many();
    /* Threads may be created while the events are being opened. */
    for (int round = 0; round < 5 && (round == 0 || added > 0); round++)
        added = add_threads(s, pid, &listing);
    reason = errno;
    free(listing.known);
    errno = reason;
    return added >= 0;
}

struct switches *switches_open_process(pid_t pid)
{
    struct switches *s = switches_open();
    if (!s || open_process(s, pid))
        return s;
    switches_close(s);
    return NULL;
}

/* MARK: Pauses */

int64_t switches_pause(struct switches *s)
{
    int64_t last_ns = 0;
    for (size_t i = 0; i < s->rings.count; i++) {
        if (s->rings.rings[i].last_ns > last_ns)
            last_ns = s->rings.rings[i].last_ns;
    }
    perf_rings_close(&s->rings);
    s->gaps = 0;
    s->found_ns = 0;
    s->lost_wakings += wakings_lost(s->wakings);
    wakings_close(s->wakings);
    s->wakings = NULL;
    return last_ns;
}

bool switches_resume(struct switches *s, const pid_t *pids, size_t count)
{
    struct perf_event_attr attr = attributes();
    bool opened = perf_rings_open(&s->rings, &attr, 0, ROOM, CPU_ROOM);
    s->most_events = MOST_THREAD_EVENTS;
    for (size_t i = 0; opened && i < count; i++)
        opened = open_process(s, pids[i]);
    if (opened)
        s->wakings = wakings_open(attr.clockid);
    else
        perf_rings_close(&s->rings);
    return opened;
}

uint64_t switches_busiest(struct switches *s)
{
    uint64_t busiest = s->busiest;
    s->busiest = 0;
    return busiest;
}

void switches_close(struct switches *switches)
{
    if (!switches)
        return;
    perf_rings_close(&switches->rings);
    wakings_close(switches->wakings);
    free(switches);
}

int switches_try(void)
{
    struct perf_event_attr attr = attributes();
    struct perf_ring ring;
    int cpu = sched_getcpu();
    if (!perf_ring_open(&ring, &attr, 0, cpu < 0 ? 0 : cpu, 8 * (size_t)sysconf(_SC_PAGESIZE)))
        return errno;
    perf_ring_close(&ring);
    return 0;
}

/* MARK: Reading */

static bool understand_fault(struct switches *s, struct switch_record *record)
{
    const struct fault_sample *sample = (const void *)s->record.bytes;
    size_t fixed = offsetof(struct fault_sample, stack);
    if (sample->header.size < fixed)
        return false;
    *record = (struct switch_record){.ns = (int64_t)sample->time,
                                     .pid = sample->pid,
                                     .tid = sample->tid,
                                     .kind = SWITCH_FAULT,
                                     .address = sample->address};
    s->fault = (struct cpu_sample){.ns = record->ns, .pid = record->pid, .tid = record->tid};
    if (perf_stack_read(sample->stack, sample->header.size - fixed, &s->fault))
        record->sample = &s->fault;
    return true;
}

/* Reads a record; false: not a switch, fault, loss, exit or new process. */
static bool understand(struct switches *s, struct perf_ring *ring, struct switch_record *record)
{
    const struct perf_event_header *header = &s->record.header;
    const struct task_record *task = (const void *)s->record.bytes;
    struct sample_id id = {0};
    if (header->type == PERF_RECORD_SAMPLE)
        return understand_fault(s, record);
    if (header->size < sizeof *header + sizeof id)
        return false;
    memcpy(&id, s->record.bytes + header->size - sizeof id, sizeof id);
    *record = (struct switch_record){.ns = (int64_t)id.time, .pid = id.pid, .tid = id.tid};
    switch (header->type) {
    case PERF_RECORD_SWITCH:
        record->kind = !(header->misc & PERF_RECORD_MISC_SWITCH_OUT)        ? SWITCH_IN
                       : header->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT ? SWITCH_PREEMPTED
                                                                            : SWITCH_OUT;
        return true;
    case PERF_RECORD_EXIT:
    case PERF_RECORD_FORK:
        if (header->size < sizeof *task)
            return false;
        record->pid = task->pid;
        record->tid = task->tid;
        record->kind = header->type == PERF_RECORD_EXIT ? SWITCH_EXIT : SWITCH_WOKEN;
        /* The program records when it creates a thread. */
        return record->kind == SWITCH_EXIT || task->pid != task->parent_pid;
    case PERF_RECORD_LOST:
        /* Lost since the last record that was delivered. */
        *record = (struct switch_record){.ns = ring->last_ns, .kind = SWITCH_LOST};
        return true;
    default:
        return false;
    }
}

/* A thread cannot be switched twice in the same direction on one CPU: the second record belongs to
 * its second event. */
static bool is_repeated(struct perf_ring *ring, const struct switch_record *record)
{
    if (record->kind == SWITCH_FAULT)
        return false;
    bool repeated = record->kind != SWITCH_LOST && ring->last_tid == record->tid &&
                    ring->last_kind == (int)record->kind;
    ring->last_tid = record->tid;
    ring->last_kind = (int)record->kind;
    return repeated;
}

struct taker {
    void (*take)(void *context, const struct switch_record *record);
    void *context;
};

static void take_waking(void *taker, int64_t ns, uint32_t tid, enum waking_kind kind)
{
    static const enum switch_kind kinds[] = {[WAKING] = SWITCH_WOKEN,
                                             [WAKINGS_LOST] = SWITCH_WAKINGS_LOST,
                                             [WAKINGS_FOUND] = SWITCH_WAKINGS_FOUND};
    const struct taker *to = taker;
    to->take(to->context, &(struct switch_record){.ns = ns, .tid = tid, .kind = kinds[kind]});
}

/* Switches of any thread may be lost after the ring's last record, which may be earlier than where
 * the gap of another ring begins. */
static void begin_gap(struct switches *s, struct perf_ring *ring, const struct taker *to)
{
    ring->was_full = false;
    if (ring->in_gap)
        return;
    ring->in_gap = true;
    s->gaps++;
    to->take(to->context, &(struct switch_record){.ns = ring->last_ns, .kind = SWITCH_LOST});
}

static void end_gap(struct switches *s, struct perf_ring *ring, int64_t ns)
{
    if (!ring->in_gap)
        return;
    ring->in_gap = false;
    s->gaps--;
    if (ns > s->found_ns)
        s->found_ns = ns;
}

/* Ends the gaps of all rings, once none is in one. */
static void end_gaps(struct switches *s, const struct taker *to)
{
    if (!s->found_ns || s->gaps)
        return;
    to->take(to->context, &(struct switch_record){.ns = s->found_ns, .kind = SWITCH_FOUND});
    s->found_ns = 0;
}

static void take_record(struct switches *s, struct perf_ring *ring,
                        const struct switch_record *record, const struct taker *to)
{
    if (record->kind == SWITCH_LOST) {
        s->lost += perf_record_lost(&s->record);
        begin_gap(s, ring, to);
        return;
    }
    end_gap(s, ring, record->ns);
    to->take(to->context, record);
    ring->last_ns = record->ns;
}

static void read_ring(struct switches *s, struct perf_ring *ring, int64_t before_ns,
                      const struct taker *to)
{
    struct switch_record record;
    uint64_t taken = 0;
    bool found;
    ring->was_full |= perf_ring_is_full(ring);
    while ((found = perf_ring_peek(ring, &s->record))) {
        bool understood = understand(s, ring, &record);
        /* A gap is read to its end, whatever its time. */
        if (understood && !ring->in_gap && record.ns >= before_ns)
            break;
        perf_ring_skip(ring, &s->record);
        taken++;
        if (understood && !(s->several && is_repeated(ring, &record)))
            take_record(s, ring, &record, to);
    }
    if (ring->was_full && !found)
        begin_gap(s, ring, to);
    s->busiest = taken > s->busiest ? taken : s->busiest;
}

void switches_read(struct switches *s, int64_t before_ns,
                   void (*take)(void *context, const struct switch_record *record), void *context)
{
    struct taker to = {take, context};
    for (size_t i = 0; i < s->rings.count; i++)
        read_ring(s, &s->rings.rings[i], before_ns, &to);
    end_gaps(s, &to);
    wakings_read(s->wakings, before_ns, take_waking, &to);
}

bool switches_have_wakings(const struct switches *switches)
{
    return switches && switches->wakings;
}

uint64_t switches_lost(const struct switches *switches)
{
    return switches ? switches->lost : 0;
}

uint64_t switches_lost_wakings(const struct switches *switches)
{
    return switches ? switches->lost_wakings + wakings_lost(switches->wakings) : 0;
}

/* MARK: Refusals */

/* Whether a seccomp filter applies to this process. */
static bool has_seccomp(void)
{
    char text[8192];
    const char *line =
        small_file_text(text, sizeof text, "/proc/self/status") ? strstr(text, "\nSeccomp:") : NULL;
    return line && atoi(line + strlen("\nSeccomp:")) == 2;
}

void switches_explain(int reason, struct switches_refusal *refusal)
{
    long paranoid = 0;
    bool known = small_file_number("/proc/sys/kernel/perf_event_paranoid", &paranoid);
    if (!known || reason == ENOENT || (reason == ENOSYS && !has_seccomp())) {
        refusal->fix = "a kernel with CONFIG_PERF_EVENTS";
        (void)snprintf(refusal->why, sizeof refusal->why, "the kernel does not report them (%s)",
                       strerror(reason));
    } else if (paranoid > 2 && geteuid() != 0) {
        refusal->fix = "as root: sysctl kernel.perf_event_paranoid=2";
        (void)snprintf(refusal->why, sizeof refusal->why,
                       "the kernel reports them to root only (perf_event_paranoid is %ld)",
                       paranoid);
    } else if (has_seccomp()) {
        refusal->fix = "let the container's seccomp profile allow perf_event_open "
                       "(docker run --security-opt seccomp=PROFILE)";
        (void)snprintf(refusal->why, sizeof refusal->why, "a seccomp filter refuses (%s)",
                       strerror(reason));
    } else {
        refusal->fix = "as root: sysctl kernel.perf_event_paranoid=2";
        (void)snprintf(refusal->why, sizeof refusal->why,
                       "the kernel refuses (%s; perf_event_paranoid is %ld)", strerror(reason),
                       paranoid);
    }
}
