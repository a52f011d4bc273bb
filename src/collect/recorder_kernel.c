/* The kernel's reports about the recorded processes: context switches and samples of CPU time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/grow.h"
#include "collect/recorder_kernel.h"

/* MARK: Opening */

bool recorder_open_switches(struct recorder *r, trail_error *err)
{
    struct switches_refusal refusal;
    if (r->options.shm) {
        (void)snprintf(
            r->why_not, sizeof r->why_not,
            "the kernel reports context switches only of programs started by trail record");
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

bool recorder_open_samples(struct recorder *r, trail_error *err)
{
    struct switches_refusal refusal;
    if (!r->options.cpu_samples || r->options.cpu_signal)
        return true;
    r->samples = r->options.shm || r->options.process ? NULL : samples_open(r->options.cpu_samples);
    if (r->samples)
        return true;
    if (r->options.shm || r->options.process) {
        (void)error_set(err, TRAIL_USAGE,
                        "--cpu-samples needs a program started by trail record; use --cpu-signal");
    } else {
        switches_explain(errno, &refusal);
        (void)error_set(err, TRAIL_USAGE,
                        "--cpu-samples: %s: %s; or --cpu-signal, which takes them in the program",
                        refusal.why, refusal.fix);
    }
    return false;
}

/* MARK: Reading */

static void take_sample(void *recorder, const struct cpu_sample *sample)
{
    const struct recorder *r = recorder;
    for (const struct recorded *p = r->live; p; p = p->next_live) {
        if (recorder_is_on(r) && (uint32_t)p->pid == sample->pid)
            collect_sample(p->collect, sample);
    }
}

/* Whether the record is about a thread of the process; a wake-up's record has no PID. */
static bool is_of(const struct recorded *process, const struct switch_record *record)
{
    return record->pid ? (uint32_t)process->pid == record->pid
                       : collect_has_thread(process->collect, record->tid);
}

/* Gives a record to its process; false: none is known. */
static bool give_switch(const struct recorder *r, const struct switch_record *record)
{
    for (const struct recorded *p = r->live; p; p = p->next_live) {
        if (is_of(p, record)) {
            collect_switch(p->collect, record);
            return true;
        }
    }
    return false;
}

/* The number of steps after which the first records of a woken thread have been read. */
#define EARLY_STEPS 3

/* Whether the process of a record may still become known. A process that claims its area later than
 * this is not in time for the model. The machine's wake-ups, mostly of other programs, are many. */
static bool may_be_given(struct early_switch *early, int64_t now)
{
    return early->record.pid ? now - early->record.ns < COLLECT_DELAY_NS
                             : ++early->steps < EARLY_STEPS;
}

static void give_early_switches(struct recorder *r)
{
    struct early_switches *early = &r->early;
    int64_t now = now_ns();
    size_t kept = 0;
    EACH(struct early_switch, at, early->at, early->count) {
        if (!give_switch(r, &at->record) && may_be_given(at, now))
            early->at[kept++] = *at;
    }
    early->count = kept;
}

/* Without memory for an early wake-up, the wait ends when the thread is switched in. */
static void take_switch(void *recorder, const struct switch_record *record)
{
    struct recorder *r = recorder;
    struct early_switches *early = &r->early;
    if (!recorder_is_on(r))
        return;
    if (switch_is_of_all(record->kind)) {
        for (const struct recorded *p = r->live; p; p = p->next_live)
            collect_switch(p->collect, record);
    } else if (!give_switch(r, record) && GROW(early->at, early->room, early->count + 1)) {
        early->at[early->count++] = (struct early_switch){.record = *record};
    }
}

void recorder_read_kernel(struct recorder *r, int64_t before_ns)
{
    give_early_switches(r);
    if (r->switches)
        switches_read(r->switches, before_ns, take_switch, r);
    if (r->samples)
        samples_read(r->samples, take_sample, r);
}

/* MARK: Pauses */

/* Opens the events of all recorded processes again. False: they cannot be opened. */
static bool resume_switches(const struct recorder *r)
{
    pid_t *pids = NULL;
    size_t count = 0, room = 0;
    bool good = true;
    for (const struct recorded *p = r->live; p && good; p = p->next_live) {
        good = GROW(pids, room, count + 1);
        if (good)
            pids[count++] = p->pid;
    }
    good = good && switches_resume(r->switches, pids, count);
    free(pids);
    return good;
}

void recorder_limit_switches(struct recorder *r, int64_t read_ns)
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
