/*
 * The CPUs that the threads of chains might use by their affinity, which a trace has at its end. If
 * these are fewer than the machine has, the others were not free for them: the stalls are counted
 * again, with the marks.
 */
#include <stdlib.h>

#include "analyze/chains.h"

/* A thread, up to the current mark. */
struct placed {
    int64_t since_ns; /* since when it is ready, */
    double stall_ns;  /* and the clock at that time */
    uint8_t state;    /* MARK_* */
};

struct placing {
    unsigned cpus;
    int running, ready;
    int64_t now_ns;
    int64_t more_ns; /* more threads than there are CPUs ran */
    int64_t late_ns; /* sum of all stalls */
    double stall_ns; /* what each ready thread was stalled */
    bool sets;       /* the marks get the stalls */
    struct placed *threads;
};

static void placing_to(struct placing *p, int64_t now_ns)
{
    int unused = (int)p->cpus - p->running;
    int64_t ns = now_ns - p->now_ns;
    if (unused < 0)
        p->more_ns += ns;
    else if (p->ready > 0)
        p->stall_ns += (double)ns * (unused < p->ready ? unused : p->ready) / p->ready;
    p->now_ns = now_ns;
}

static bool has_cpu(unsigned state)
{
    return state == MARK_RUN || state == MARK_CALL;
}

static void runs(struct placing *p, const struct placed *thread, struct chain_mark *mark)
{
    int64_t ready = mark->time_ns - thread->since_ns;
    int64_t stall = (int64_t)(p->stall_ns - thread->stall_ns);
    stall = stall < ready ? stall : ready;
    p->late_ns += stall;
    if (!p->sets)
        return;
    mark->ns = stall;
    mark->stack = ready - stall < UINT32_MAX ? (uint32_t)(ready - stall) : UINT32_MAX;
}

static void place(struct placing *p, struct chain_mark *mark)
{
    struct placed *thread = &p->threads[mark->thread];
    placing_to(p, mark->time_ns);
    if (mark->op == MARK_RUN && thread->state == MARK_READY)
        runs(p, thread, mark);
    p->running += has_cpu(mark->op) - has_cpu(thread->state);
    p->ready += (mark->op == MARK_READY) - (thread->state == MARK_READY);
    *thread = (struct placed){mark->time_ns, p->stall_ns, mark->op};
}

/* Goes through all states. Returns false if out of memory. */
static bool place_all(const struct chains *chains, struct placing *p)
{
    p->threads = calloc(chains->thread_count + 1, sizeof *p->threads);
    p->now_ns = chains->begin_ns;
    for (size_t i = 0; p->threads && i < chains->mark_count; i++)
        if (chains->marks[i].op >= MARK_RUN && chains->marks[i].op != MARK_SAMPLE)
            place(p, &chains->marks[i]);
    bool good = p->threads != NULL;
    free(p->threads);
    return good;
}

/* Returns how many CPUs the threads that wanted one might use; 0: not known, or of several
 * recordings. */
static unsigned allowed_cpus(const struct chains *chains)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(chains->names->reader, &rows), found = 0;
    uint64_t cpus = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].what == TRAIL_RECORDED_CPUS && ++found == 1)
            cpus = rows[i].count;
    return found == 1 && cpus < 65536 ? (unsigned)cpus : 0;
}

bool chains_take_affinity(struct chains *chains)
{
    /* The threads that were looked at need not be all: if more than these CPUs were in use for a
     * tenth of the time, their affinity does not limit the program. Shorter times come from
     * switches that are seen a little late. */
    int64_t most = (chains->end_ns - chains->begin_ns) / 10;
    struct placing first = {.cpus = allowed_cpus(chains)},
                   second = {.cpus = first.cpus, .sets = true};
    if (first.cpus == 0 || first.cpus >= chains->cpus)
        return true;
    if (!place_all(chains, &first))
        return false;
    if (first.more_ns > most)
        return true;
    chains->cpus = first.cpus;
    chains->late_ns = first.late_ns;
    return place_all(chains, &second);
}
