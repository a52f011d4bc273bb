#include "analyze/idle.h"

#include <stdlib.h>

#include "analyze/goroutines.h"
#include "base/grow.h"

void idle_free(struct idle *idle)
{
    intern_free(&idle->keys);
    idmap_free(&idle->first);
    free(idle->places);
}

void idle_clear(struct idle *idle)
{
    intern_clear(&idle->keys);
    idmap_clear(&idle->first);
}

size_t idle_place(struct idle *idle, int64_t goroutine, uint32_t place, uint32_t kind,
                  uint32_t user)
{
    bool fresh;
    struct { /* no padding: its bytes are the key */
        int64_t goroutine;
        uint32_t place, kind;
    } key = {goroutine, place, kind};
    size_t number = (size_t)intern_put(&idle->keys, &key, sizeof key, &fresh);
    if (number == 0 || !GROW(idle->places, idle->capacity, number))
        return 0;
    struct idle_place *own = &idle->places[number - 1];
    if (!fresh && own->listed)
        return number;
    uint64_t id = (uint64_t)goroutine;
    *own = (struct idle_place){
        .user = user, .next = (uintptr_t)idmap_find(&idle->first, id), .listed = true};
    return idmap_put(&idle->first, id, (void *)(uintptr_t)number) ? number : 0;
}

void idle_count(struct idle *idle, size_t number, int64_t ns)
{
    idle->places[number - 1].count++;
    ns_add(&idle->places[number - 1].ns, ns);
}

bool idle_judge(struct idle *idle, const struct idle_end *end,
                bool (*found)(void *context, const struct idle_place *place), void *context)
{
    size_t at = (uintptr_t)idmap_remove(&idle->first, (uint64_t)end->goroutine);
    for (; at != 0; at = idle->places[at - 1].next) {
        struct idle_place *place = &idle->places[at - 1];
        bool open = at == end->open;
        int64_t life = ns_between(open ? end->open_ns : 0, end->life);
        if (place->count + open >= IDLE_RETURNS && life / 2 < place->ns && !found(context, place))
            return false;
        place->listed = false;
    }
    return true;
}
