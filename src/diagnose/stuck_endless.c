/*
 * Waits that can never end, because all processes that could end them wait as well, for
 * each other: for what one writes or reads at the other end of a pipe or connection, for its exit,
 * for a lock. Tickers do not end them.
 *
 * For this the recorder looked up the processes with the other ends (TRAIL_RECORDED_ENDS). The rows
 * count only if all goroutines waited when they were found and have waited from then to the end.
 */
#include "diagnose/stuck.h"

#include <stdlib.h>

#include "analyze/part.h"
#include "base/grow.h"
#include "base/search.h"
#include "base/text.h"
#include "wire/merged_ids.h"

/* MARK: Rows */

/* Returns since when no goroutine but tickers has acted; INT64_MAX: one does. */
static int64_t quiet_since(const struct stuck *stuck, int64_t now)
{
    int64_t since_ns = stuck->last_end_ns;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        if (stuck_is_ticker(stuck, g, now))
            continue;
        if (g->state != TRAIL_GO_WAITING && g->state != TRAIL_GO_SYSCALL)
            return INT64_MAX;
        since_ns = g->since_ns > since_ns ? g->since_ns : since_ns;
    }
    return since_ns;
}

/* If there were more threads than the trace has goroutines, what the others do is not known: it is
 * a part of a trace, or they were not recorded. */
bool stuck_endless_take(struct stuck *stuck, int64_t now)
{
    const trail_recorded *rows;
    size_t alive = stuck->analysis->goroutines.follow.alive.count;
    size_t count =
        stuck->analysis->over ? 0 : trail_reader_recorded(stuck->analysis->reader, &rows);
    int64_t since_ns = count > 0 ? quiet_since(stuck, now) : 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].what == TRAIL_RECORDED_ENDS && rows[i].count == alive &&
            rows[i].cpu_ns >= since_ns && rows[i].cpu_ns <= now &&
            !idmap_put(&stuck->ends, rows[i].pid, (void *)(uintptr_t)&rows[i]))
            return false;
    return true;
}

const trail_recorded *stuck_endless_ends(const struct stuck *stuck, enum wire_wait kind,
                                         int64_t goroutine)
{
    return kind == WIRE_WAIT_READ || kind == WIRE_WAIT_WRITE || kind == WIRE_WAIT_CHILD
               ? idmap_find(&stuck->ends, (uint64_t)goroutine)
               : NULL;
}

/* Takes the next number of a row's list. Returns false at its end. */
static bool next_process(trail_string *list, uint64_t *process)
{
    size_t digits = 0;
    *process = 0;
    if (list->size == 0)
        return false;
    for (; digits < list->size && digits < 10 && list->data[digits] != ' '; digits++)
        *process = *process * 10 + (uint64_t)(list->data[digits] - '0');
    list->data += digits;
    list->size -= digits;
    (void)text_take(list, " ");
    return digits > 0;
}

/* MARK: The waits that can go on */

/* Returns the index of a process's first wait; SIZE_MAX: none. */
static size_t first_of(const struct stuck *stuck, uint64_t process)
{
    uint64_t first = process * ID_BLOCK;
    size_t at = SEARCH(i, 0, stuck->count, (uint64_t)stuck->waits[i].goroutine < first);
    return at < stuck->count && id_block(stuck->waits[at].goroutine) == process ? at : SIZE_MAX;
}

/* What can go on. */
struct active {
    struct idmap processes; /* + 1 */
    struct idmap names;     /* start functions */
};

/* Notes that a goroutine can go on, and with it its process. */
static bool lets_go(struct active *active, int64_t goroutine, trail_name name)
{
    static char yes;
    return idmap_put(&active->processes, id_block(goroutine) + 1, &yes) &&
           (name == 0 || idmap_put(&active->names, name, &yes));
}

/*
 * Whether a goroutine that can go on may end the wait: any of those processes, for a wait with a
 * row; any with the start function, for the exit of one of several; else the holder.
 */
static bool can_end(const struct stuck *stuck, const struct stuck_wait *wait,
                    const struct active *active)
{
    trail_string list;
    uint64_t process;
    size_t count = 0;
    if (wait->wanted == STUCK_JOIN && wait->holder == TRAIL_NONE)
        return idmap_find(&active->names, wait->object) != NULL;
    if (!wait->ends)
        return wait->next == SIZE_MAX || stuck->waits[wait->next].can_go;
    for (list = wait->ends->name; next_process(&list, &process); count++)
        if (first_of(stuck, process) == SIZE_MAX || idmap_find(&active->processes, process + 1))
            return true;
    return count == 0;
}

/* Longer chains of waits, in an unfortunate order, count as waits that can end. */
#define MOST_ROUNDS 1000

/* Marks waits until those that are left have only each other. */
static bool mark(struct stuck *stuck, struct active *active, int64_t now)
{
    bool changed = true;
    IDMAP_VALUES(const struct goroutine, g, &stuck->analysis->goroutines.follow.alive) {
        struct stuck_wait key = {.goroutine = g->id};
        if (bsearch(&key, stuck->waits, stuck->count, sizeof key, stuck_by_goroutine))
            continue;
        if (stuck_is_ticker(stuck, g, now))
            stuck->ticks_beside = true;
        else if (!lets_go(active, g->id, g->name))
            return false;
    }
    for (size_t round = 0; changed; round++) {
        changed = false;
        EACH(struct stuck_wait, wait, stuck->waits, stuck->count) {
            if (wait->can_go || (round < MOST_ROUNDS && !can_end(stuck, wait, active)))
                continue;
            wait->can_go = changed = true;
            if (!lets_go(active, wait->goroutine, wait->name))
                return false;
        }
    }
    return true;
}

/*
 * Returns the index of the next wait of the process, or of its first after the last. The process
 * has the other end of the wait at `at`, which none of its threads can end.
 */
static size_t next_of_own(const struct stuck *stuck, size_t at)
{
    uint64_t process = id_block(stuck->waits[at].goroutine);
    return at + 1 < stuck->count && id_block(stuck->waits[at + 1].goroutine) == process
               ? at + 1
               : first_of(stuck, process);
}

bool stuck_endless_find(struct stuck *stuck, int64_t now)
{
    struct active active = {0};
    bool good = stuck->ends.count == 0 || mark(stuck, &active, now);
    idmap_free(&active.processes);
    idmap_free(&active.names);
    for (size_t i = 0; good && i < stuck->count; i++) {
        struct stuck_wait *wait = &stuck->waits[i];
        trail_string list = wait->ends ? wait->ends->name : (trail_string){0};
        uint64_t process;
        /* The first one of the row has the other end. */
        if (!wait->can_go && next_process(&list, &process) &&
            !(wait->by_use && wait->next != SIZE_MAX))
            wait->next = process == id_block(wait->goroutine) ? next_of_own(stuck, i)
                                                              : first_of(stuck, process);
    }
    return good;
}
