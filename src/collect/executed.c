/* See executed.h. */
#include "collect/executed.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"

/* Limits the list for a shell that starts programs for days. */
#define MOST 65536

static struct executed_program *find(const struct executed_list *list, uint32_t pid)
{
    for (size_t i = list->count; i > 0; i--) {
        if (list->items[i - 1].pid == pid)
            return &list->items[i - 1];
    }
    return NULL;
}

void executed_arrived(struct executed_list *list, pid_t pid)
{
    struct executed_program *found = find(list, (uint32_t)pid);
    if (found)
        *found = list->items[--list->count];
}

/* NULL: no room. */
static struct executed_program *add(struct executed_list *list, uint32_t pid, const char *name)
{
    struct executed_program *to = find(list, pid);
    if (!to && (list->count == MOST || !GROW(list->items, list->capacity, list->count + 1))) {
        list->unknown++;
        return NULL;
    }
    if (!to)
        to = &list->items[list->count++];
    *to = (struct executed_program){.pid = pid};
    (void)snprintf(to->name, sizeof to->name, "%s", name);
    return to;
}

void executed_found(struct executed_list *list, pid_t pid, const char *name)
{
    struct executed_program *to = find(list, (uint32_t)pid);
    if (!to)
        to = add(list, (uint32_t)pid, name);
    if (to && to->why == WIRE_MISSED_UNKNOWN)
        to->why = missed_why(pid);
}

void executed_take(struct executed_list *list, struct area *area,
                   bool (*is_recorded)(const void *context, pid_t pid), const void *context)
{
    struct shm_executed news[SHM_EXECUTED];
    uint64_t missed;
    size_t count = area_executed(area, news, &missed);
    list->unknown += missed;
    for (size_t i = 0; i < count; i++) {
        pid_t pid = (pid_t)(news[i].pid & ~SHM_NOT_EXECUTED);
        if (news[i].pid & SHM_NOT_EXECUTED)
            executed_arrived(list, pid);
        else if (!is_recorded(context, pid))
            (void)add(list, news[i].pid, news[i].name);
    }
}

void executed_free(struct executed_list *list)
{
    free(list->items);
}
