/* Waits for work, and what those do that end: see waits.h. */
#include "diagnose/waits.h"

/* A goroutine that had work for this long is kept as one of those that can hold others up. */
#define BUSY_LEAST_NS 50000000

bool waits_enter_idle(struct waits *waits, const struct goroutine *g, const trail_event *event)
{
    struct names *names = &waits->analysis->names;
    const struct wait_facts *facts =
        wait_facts_of(names, follow_wait(&waits->analysis->goroutines.follow, event));
    enum place_kind kind = PLACE_OTHER;
    if (!facts || !(wire_wait_kinds[facts->kind].traits & WIRE_WAIT_IDLE))
        return true;
    trail_name place = waits_name_place(waits, event->transition.stack, &kind);
    size_t number = idle_place(&waits->idle, g->id, place, facts->kind_name, facts->kind_name);
    return number != 0 && idmap_put(&waits->idle_now, (uint64_t)g->id, (void *)(uintptr_t)number);
}

void waits_leave_idle(struct waits *waits, const struct goroutine *g, int64_t now)
{
    uintptr_t number = (uintptr_t)idmap_remove(&waits->idle_now, (uint64_t)g->id);
    if (number == 0 || !waits->analysis->counting)
        return;
    idle_count(&waits->idle, number, ns_between(g->since_ns, now));
}

struct idle_context {
    const struct names *names;
    struct wait_group *group;
};

static bool count_idle(void *context, const struct idle_place *place)
{
    const struct idle_context *of = context;
    trail_wait *wait = waits_row(of->names, of->group, place->user);
    if (!wait)
        return false;
    wait->idle_count += place->count;
    ns_add(&wait->idle_ns, place->ns);
    return true;
}

bool waits_judge_idle(struct waits *waits, const struct goroutine *g, int64_t now)
{
    int64_t from = waits->analysis->goroutines.counted_from_ns;
    struct idle_context context = {&waits->analysis->names, waits_group(waits, g->name)};
    struct idle_end end = {
        .goroutine = g->id,
        .life = ns_between(g->creation_ns > from ? g->creation_ns : from, now),
        .open = (uintptr_t)idmap_remove(&waits->idle_now, (uint64_t)g->id),
        .open_ns = ns_between(g->since_ns, now),
    };
    return context.group && idle_judge(&waits->idle, &end, count_idle, &context);
}

bool waits_count_served(struct waits *waits, const struct goroutine *sender,
                        const trail_event *event)
{
    uint64_t by = (uint64_t)event->goroutine;
    int64_t busy = sender->exec_ns;
    ns_add(&busy, sender->sched_wait_ns);
    if (event->goroutine < 0 || busy > ns_between(sender->creation_ns, event->time_ns) / 2)
        return true;
    uintptr_t count = (uintptr_t)idmap_find(&waits->served, by);
    return idmap_put(&waits->served, by, (void *)(count + 1));
}

/* This many waits that a goroutine ended soon make up for one that it ended late. */
#define SERVED_FOR_LATE 8

bool waits_count_late(struct waits *waits, int64_t goroutine)
{
    uint64_t by = (uint64_t)goroutine;
    uintptr_t count = waits->served.count > 0 ? (uintptr_t)idmap_find(&waits->served, by) : 0;
    if (count > SERVED_FOR_LATE)
        return idmap_put(&waits->served, by, (void *)(count - SERVED_FOR_LATE));
    if (count > 0)
        (void)idmap_remove(&waits->served, by);
    return true;
}

void waits_note_spinner(struct waits *waits, const struct goroutine *g, int64_t ran)
{
    uintptr_t count =
        waits->served.count > 0 ? (uintptr_t)idmap_remove(&waits->served, (uint64_t)g->id) : 0;
    if (count > 0 && g->block_count == 0 && ran > waits->spinner.exec_ns)
        waits->spinner = (struct spinner){names_kind(&waits->analysis->names, g->name), count,
                                          g->id, g->creation_ns, ran};
}

bool waits_count_worker(struct waits *waits, const struct goroutine *g, int64_t ran, int64_t now)
{
    struct wait_group *group = waits_group(waits, g->name);
    if (!group)
        return false;
    int64_t busy = ran;
    ns_add(&busy, g->sched_wait_ns);
    if (busy >= BUSY_LEAST_NS &&
        !idmap_put(&waits->busy, (uint64_t)g->id, (void *)(uintptr_t)(busy / 1000)))
        return false;
    group->workers++;
    group->last_end_ns = now;
    ns_add(&group->exec_ns, ran);
    ns_add(&group->lived_ns, ns_between(g->creation_ns, now));
    longest_note(&group->busiest, ran, g->creation_ns, g->id);
    if (group->busiest.goroutine == g->id)
        group->life = (trail_longest){ns_between(g->creation_ns, now), g->creation_ns, g->id};
    return true;
}
