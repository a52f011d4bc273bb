/* Compares the records of switches with the kernel's count of CPU time: see switch_cost.h. */
#include "collect/switch_cost.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/small_file.h"
#include "collect/parts.h"

/* The switches between two readings: of fewer, one that is in one of the counts only would be a large
 * part. */
#define LEAST_SWITCHES 32
#define MOST_SWITCHES  1024

/* A larger cost is another error. */
#define MOST_NS 50000

static void forget(struct switch_cost *cost)
{
    cost->on_since = 0;
    cost->last.ns = 0;
    cost->due = cost->count;
}

static void take_out(struct collect *c, struct thread *thread, int64_t ns)
{
    struct switch_cost *cost = &thread->oncpu.cost;
    if (!cost->on_since)
        return;
    cost->on_ns += ns - cost->on_since;
    cost->on_since = 0;
    if (cost->count > cost->due && !c->switch_costs.serial)
        c->switch_costs.serial = thread->serial;
}

void switch_cost_take(struct collect *c, const struct switch_record *record)
{
    struct thread *thread;
    if (record->kind == SWITCH_LOST) {
        for (size_t at = 0; (thread = threads_next(c, &at)) != NULL;)
            forget(&thread->oncpu.cost);
        return;
    }
    thread = thread_with_tid(c, record->tid);
    if (!thread)
        return;
    if (record->kind == SWITCH_IN) {
        thread->oncpu.cost.on_since = record->ns;
        thread->oncpu.cost.count++;
    } else if (record->kind == SWITCH_OUT || record->kind == SWITCH_PREEMPTED) {
        take_out(c, thread, record->ns);
    }
}

/* Reads the kernel's count; false: the thread has ended, or the kernel does not count. */
static bool read_count(const struct collect *c, const struct thread *thread,
                       struct switch_count *now)
{
    char path[96], text[128];
    *now =
        (struct switch_count){.on_ns = thread->oncpu.cost.on_ns, .count = thread->oncpu.cost.count};
    (void)snprintf(path, sizeof path, "/proc/%d/task/%" PRIu64 "/schedstat",
                   (int)c->options.process.pid, thread->tid);
    return small_file_text(path, text, sizeof text) &&
           sscanf(text, "%" SCNd64 " %*d %" SCNd64, &now->ns, &now->times) == 2;
}

/*
 * Moves the thread's cost, and that of the program, towards that since the last reading. The kernel
 * may have switched to the thread again since the records were read: such times are taken to be as
 * long as the others.
 */
static void compare(struct collect *c, struct switch_cost *cost, const struct switch_count *now)
{
    double count = (double)(now->count - cost->last.count);
    double times = (double)(now->times - cost->last.times);
    double on_ns = (double)(now->on_ns - cost->last.on_ns);
    double ns = times < LEAST_SWITCHES / 2.0 || count < LEAST_SWITCHES
                    ? -1
                    : (double)(now->ns - cost->last.ns) / times - on_ns / count;
    if (ns < 0 || ns > MOST_NS)
        return;
    cost->ns = cost->ns ? (cost->ns + (int64_t)ns) / 2 : (int64_t)ns;
    c->switch_costs.ns += c->switch_costs.ns ? ((int64_t)ns - c->switch_costs.ns) / 4 : (int64_t)ns;
}

static uint64_t clamp(uint64_t count)
{
    return count < LEAST_SWITCHES ? LEAST_SWITCHES : count > MOST_SWITCHES ? MOST_SWITCHES : count;
}

void switch_cost_step(struct collect *c)
{
    struct thread *thread = c->switch_costs.serial ? thread_of(c, c->switch_costs.serial) : NULL;
    struct switch_cost *cost = thread ? &thread->oncpu.cost : NULL;
    struct switch_count now;
    c->switch_costs.serial = 0;
    if (!thread || !c->options.process.pid || !read_count(c, thread, &now))
        return;
    if (cost->last.ns)
        compare(c, cost, &now);
    cost->last = now;
    cost->due = cost->count + clamp(cost->count / 4);
}

int64_t switch_cost_of(const struct collect *c, const struct thread *thread)
{
    return thread->oncpu.cost.ns ? thread->oncpu.cost.ns : c->switch_costs.ns;
}
