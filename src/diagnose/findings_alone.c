/* Findings: work that one does alone, and waits that are not recorded. */
#include <stdio.h>
#include <string.h>

#include "diagnose/findings.h"
#include "diagnose/findings_waits.h"
#include "diagnose/waits.h"

/* Thresholds. A share is a part of the time. */
#define ALONE_LEAST    INT64_C(50000000)
#define ALONE_SHARE    0.3
#define ALONE_REST     0.1
#define ALONE_PARALLEL 1.3 /* goroutines with work, on average during the rest */
#define EACH_SHARE     0.5
#define EACH_LEAST     4
#define EACH_ALIVE     2 /* the next one is created while the one before ends */
#define UNSEEN_WAITS   50
#define UNSEEN_SHARE   0.2 /* of the time of its threads, but for that without a CPU */

/* Returns the gain if `ns` of serial work were spread over all Ps. */
static int64_t spread_gain(const struct findings *findings, int64_t ns)
{
    uint64_t procs = findings->activity->sums.procs;
    return procs > 1 ? ns - ns / (int64_t)procs : 0;
}

/* For how long goroutines of Go's runtime ran, such as those of the garbage collector. */
static int64_t runtime_ns(const struct findings *findings)
{
    int64_t sum = 0;
    GROUPS_EACH(group, findings->waits)
        if (finding_is_runtime(findings, group->row.name)) {
            ns_add(&sum, group->exec_ns);
            ns_add(&sum, group->row.ready.sum_ns);
        }
    return sum;
}

/* Whether another finding says why one goroutine has work alone. */
static bool is_explained(const struct findings *findings)
{
    static const char *const kinds[] = {"gc-share", "imbalance", "bottleneck", "spins"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (finding_was_said(findings, kinds[i]))
            return true;
    return false;
}

/* The threads of gcc's OpenMP, whose waits are not recorded; NULL: there are none. */
static const struct wait_group *gcc_openmp(const struct findings *findings)
{
    GROUPS_EACH(group, findings->waits)
        if (text_begins(text_of(findings, group->row.name), "libgomp.so"))
            return group;
    return NULL;
}

/* The threads of OpenMP waited while one alone had work. */
static void say_openmp(struct findings *findings, const struct wait_group *openmp,
                       const struct alone_sum *most, int64_t gain_ns)
{
    bool worker = most->name == openmp->row.name;
    const struct finding_of of = {worker ? "imbalance" : "serial-phase", .saves = true,
                                  .gain_ns = gain_ns, .moment = &most->longest,
                                  .function = worker && openmp->created_at ? openmp->created_at
                                                                           : most->name};
    static const trail_string a_worker = {"One of OpenMP's threads", 23};
    trail_string name = worker ? a_worker : text_of(findings, most->name);
    finding_say(findings, &of,
                "%.*s alone had work for %.0f %% of the time, while the others waited", SHOWN(name),
                100 * time_share(findings, most->ns));
    finding_explain(
        findings,
        "%s phase%s of 5 ms or more, %s in all, the longest %s, with the parallel region "
        "at %.*s. %s.",
        counted(most->count).text, plural_s(most->count), duration(most->ns).text,
        duration(most->longest.ns).text, NAMED(findings, openmp->created_at),
        worker
            ? "The work is divided unevenly"
            : "Either the work between two barriers is divided unevenly, or this part is serial");
    finding_advise(findings, "%s--openmp records the waits at barriers.",
                   worker ? "Use a dynamic schedule or smaller pieces; " : "");
}

/*
 * Returns the waits at a barrier of OpenMP, during most of its phases, for the one alone; or NULL.
 */
static const struct blame_row *barrier_behind(const struct findings *findings,
                                              const struct alone_sum *most)
{
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_facts *facts = facts_of(findings, row->wait);
        if (facts && facts->kind == WIRE_WAIT_OMP_BARRIER && row->start == most->name &&
            blame_union_ns(&row->held) > most->ns / 2)
            return row;
    }
    return NULL;
}

/* The threads of a parallel region wait at its barrier for one that has more work. */
static void say_uneven(struct findings *findings, const struct blame_row *barrier,
                       const struct alone_sum *most)
{
    int64_t ns = blame_union_ns(&barrier->held);
    const struct finding_of of = finding_saves("imbalance", spread_gain(findings, ns),
                                               &most->longest, barrier->at, barrier->wait);
    finding_say(findings, &of, "The work of the parallel region at %.*s is divided unevenly",
                NAMED(findings, barrier->at));
    finding_explain(
        findings,
        "Others waited at its barrier for %.0f %% of the time, %s, until %.*s came, which "
        "had work alone.",
        100 * time_share(findings, ns),
        several(barrier->waits, "wait", barrier->ns, barrier->longest.ns).text,
        NAMED(findings, most->name));
    finding_advise(findings, "Divide it evenly, or at run time (schedule(dynamic)).");
}

/* Whether those that could work beside it wait for a lock that it holds, for as long. */
static bool is_with_lock(const struct findings *findings, const struct alone_sum *sum)
{
    BLAME_EACH(row, &findings->waits->blame) {
        if (row->lock && row->start == sum->name && blame_union_ns(&row->serial) >= sum->ns / 2 &&
            finding_names(findings, "lock-serialises", row->function))
            return true;
    }
    return false;
}

/* Whether it is one of several that sleep most of the time, as between attempts: others could work
 * meanwhile. */
static bool is_of_sleepers(const struct findings *findings, const struct alone_sum *sum)
{
    const struct wait_group *group = waits_find_group(findings->waits, sum->name);
    if (!group || group->workers < 2)
        return false;
    struct group_time time = wait_time_of(findings, group);
    return time.most && time.most->reason == findings->waits->sleep &&
           share_of(time.most->spread.sum_ns, time.all) >= BUSY_SHARE;
}

/* The program runs in parallel, but for phases in which one goroutine alone has work. */
void finding_serial_phase(struct findings *findings)
{
    const struct activity *activity = findings->activity;
    const struct alone_sum *most = NULL;
    int64_t alone = 0, length = length_of(findings), work = activity->sums.running_ns;
    ns_add(&work, activity->sums.runnable_ns);
    work = ns_between(runtime_ns(findings), work);
    EACH(const struct alone_sum, sum, activity->alone_sums, activity->alone_count) {
        ns_add(&alone, sum->ns);
        most = most && most->ns >= sum->ns ? most : sum;
    }
    if (!most || most->ns < ALONE_LEAST || time_share(findings, most->ns) < ALONE_SHARE ||
        time_share(findings, ns_between(alone, length)) < ALONE_REST || is_explained(findings) ||
        is_with_lock(findings, most) || is_of_sleepers(findings, most) ||
        share_of(ns_between(alone, work), ns_between(alone, length)) < ALONE_PARALLEL)
        return;
    const struct wait_group *openmp = gcc_openmp(findings);
    if (openmp) {
        say_openmp(findings, openmp, most, spread_gain(findings, most->ns));
        return;
    }
    const struct blame_row *barrier = barrier_behind(findings, most);
    if (barrier) {
        say_uneven(findings, barrier, most);
        return;
    }
    const struct finding_of of = finding_saves("serial-phase", spread_gain(findings, most->ns),
                                               &most->longest, most->name, 0);
    finding_say(
        findings, &of,
        "%.*s alone had work for %.0f %% of the time, in a program that runs in parallel otherwise",
        NAMED(findings, most->name), 100 * time_share(findings, most->ns));
    finding_explain(findings, "%s phase%s of 5 ms or more, %s in all, the longest %s.",
                    counted(most->count).text, plural_s(most->count), duration(most->ns).text,
                    duration(most->longest.ns).text);
    finding_advise(findings, "Divide this work among the %s %s.",
                   counted(activity->sums.procs).text, word(findings, TERM_slots));
}

/*
 * For how long others waited for goroutines with this start function to exit; or for what each of
 * them sends or does once.
 */
static int64_t joined_ns(const struct findings *findings, const struct wait_group *group)
{
    int64_t most = 0;
    BLAME_EACH(row, &findings->waits->blame) {
        const struct wait_facts *facts = facts_of(findings, row->wait);
        int64_t ns = blame_union_ns(&row->held);
        bool joins = facts && facts->kind == WIRE_WAIT_JOIN && row->function == group->row.name;
        bool result = facts ? facts->kind == WIRE_WAIT_FUTURE : !wait_is_for_room(findings, row);
        bool each = result && !row->lock && row->start == group->row.name &&
                    row->waiter == group->creator && share_of(row->alike_ns, row->direct_ns) == 0 &&
                    row->waits * 5 >= group->row.created * 4 && row->waits <= group->row.created;
        if ((each || (joins && group->most_alive == 1)) && ns > most)
            most = ns;
    }
    return most;
}

/* For how long goroutines with this start function had work alone. */
static int64_t alone_ns(const struct activity *activity, trail_name name)
{
    for (size_t i = 0; i < activity->alone_count; i++)
        if (activity->alone_sums[i].name == name)
            return activity->alone_sums[i].ns;
    return 0;
}

/* What `ns` of the work of a group can gain, were it done at the same time on the CPUs that there
 * are. */
static int64_t each_gain(const struct findings *findings, const struct wait_group *group,
                         int64_t ns)
{
    int64_t slots = (int64_t)findings->activity->sums.procs;
    int64_t least = ns / (int64_t)group->row.created;
    int64_t runs = slots > 0 ? group->exec_ns / slots : 0;
    return ns_between(runs > least ? runs : least, ns);
}

/* Workers are created, and each is waited for before the next is created. */
void finding_one_at_a_time(struct findings *findings)
{
    GROUPS_EACH(group, findings->waits) {
        if (group->most_alive > EACH_ALIVE || group->row.created < EACH_LEAST)
            continue;
        int64_t joined = joined_ns(findings, group);
        int64_t alone = group->most_alive == 1 ? alone_ns(findings->activity, group->row.name) : 0;
        int64_t ns = joined > alone ? joined : alone;
        int64_t gain = each_gain(findings, group, ns);
        if (time_share(findings, ns) < EACH_SHARE)
            continue;
        const struct finding_of of =
            finding_saves("one-at-a-time", gain, &group->life, group->row.name, 0);
        finding_say(findings, &of, "%s %s of %s ran one at a time",
                    counted(group->row.created).text, word(findings, TERM_tasks),
                    finding_started(findings, group->row.name).text);
        finding_explain(findings,
                        "Each was created when the one before was done. They had work alone, or "
                        "others waited for them, during %.0f %% of the time.",
                        100 * time_share(findings, ns));
        finding_advise(findings, "Run them at the same time.");
    }
}

/* The library's lock with the most waits where it was seen, with its place; NULL: none was. */
static const struct place *library_lock(const struct findings *findings)
{
    const struct waits *waits = findings->waits;
    const struct place *most = NULL;
    for (size_t i = 0; i < waits->place_count; i++) {
        const struct place *place = waits->all[i];
        trail_string lock = text_of(findings, place->lock);
        if (place->waits > (most ? most->waits : 0) && memmem(lock.data, lock.size, " (in ", 5))
            most = place;
    }
    return most;
}

static void explain_unseen(struct findings *findings, const struct wait_group *group, double share,
                           int64_t known_ns)
{
    const struct place *seen = library_lock(findings);
    char known[120] = "";
    if (known_ns < length_of(findings))
        (void)snprintf(known, sizeof known, " in the %s for which context switches are recorded",
                       duration(known_ns).text);
    finding_explain(findings, "These waits took %s, %.0f %% of the time of its %s %s%s.",
                    duration(group->unseen_ns).text, 100 * share, counted(group->workers).text,
                    word(findings, group->workers == 1 ? TERM_task : TERM_tasks), known);
    if (!seen) {
        finding_explain(findings, "Usually they are for a lock in the C library (of malloc and "
                                  "free, stdio or the loader), or for the kernel's lock of the "
                                  "address space (mmap, munmap, page faults).");
        return;
    }
    finding_explain(findings, "Where the recorder looked, threads waited for %.*s at %.*s.",
                    NAMED(findings, seen->lock), NAMED(findings, seen->name));
}

/* At least which share of the group's time with a CPU or in waits, of that in which context
 * switches are recorded. */
static double unseen_share(const struct findings *findings, const struct wait_group *group,
                           int64_t known_ns)
{
    int64_t all = wait_time_of(findings, group).all;
    ns_add(&all, group->unseen_ns);
    double most = (double)known_ns * (double)group->workers;
    bool less = known_ns < length_of(findings) && group->workers > 0 && most < (double)all;
    return share_of(group->unseen_ns, less ? (int64_t)most : all);
}

/*
 * Threads wait again and again in calls of a library that the recorder does not see. What is
 * inferred, since so many context switches cost too much, shows no such waits: the rest counts.
 */
void finding_unseen(struct findings *findings)
{
    int64_t length = length_of(findings),
            known_ns = ns_between(findings->activity->sums.inferred_ns, length);
    GROUPS_EACH(group, findings->waits) {
        double share = unseen_share(findings, group, known_ns);
        if (group->unseen < UNSEEN_WAITS || share < UNSEEN_SHARE ||
            share_of(group->unseen_ns, known_ns) < UNSEEN_SHARE || group == gcc_openmp(findings) ||
            finding_names(findings, "futile-wakeups", group->row.name))
            continue;
        const struct finding_of of = {
            "unseen-waits", .gain_ns = group->unseen_ns < known_ns ? group->unseen_ns : known_ns,
            .moment = &group->life, .function = group->row.name};
        finding_say(findings, &of,
                    "%s of %s waited in the kernel %s times, in calls that are not recorded",
                    word(findings, TERM_tasks), finding_started(findings, group->row.name).text,
                    counted(group->unseen).text);
        explain_unseen(findings, group, share, known_ns);
        finding_advise(findings, "'perf record -e sched:sched_switch -g' shows in which.");
    }
}
