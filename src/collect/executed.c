/* See executed.h. */
#include "collect/executed.h"

#include <stdlib.h>

#include "base/grow.h"

/* Of a shell that starts programs for days. */
#define MOST 65536

static struct shm_executed *find(const struct executed_list *list, uint32_t pid)
{
    for (size_t i = list->count; i > 0; i--) {
        if (list->items[i - 1].pid == pid)
            return &list->items[i - 1];
    }
    return NULL;
}

void executed_arrived(struct executed_list *list, pid_t pid)
{
    struct shm_executed *found = find(list, (uint32_t)pid);
    if (found)
        *found = list->items[--list->count];
}

static void add(struct executed_list *list, const struct shm_executed *of)
{
    struct shm_executed *to = find(list, of->pid);
    if (!to && (list->count == MOST || !GROW(list->items, list->capacity, list->count + 1))) {
        list->unknown++;
        return;
    }
    if (!to)
        to = &list->items[list->count++];
    *to = *of;
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
            add(list, &news[i]);
    }
}

void executed_free(struct executed_list *list)
{
    free(list->items);
}
