/* Objects by ID. */
#include "base/objects.h"

void *objects_get(struct objects *objects, uint64_t id)
{
    void *object = idmap_find(&objects->map, id);
    if (object)
        return object;
    object = slab_get(&objects->slab);
    return object && idmap_put(&objects->map, id, object) ? object : NULL;
}

void objects_drop(struct objects *objects, uint64_t id)
{
    void *object = idmap_remove(&objects->map, id);
    if (object)
        slab_put(&objects->slab, object);
}

void objects_clear(struct objects *objects)
{
    IDMAP_EACH(slot, &objects->map)
        slab_put(&objects->slab, slot->value);
    idmap_clear(&objects->map);
}

void objects_free(struct objects *objects)
{
    idmap_free(&objects->map);
    slab_free(&objects->slab);
}
