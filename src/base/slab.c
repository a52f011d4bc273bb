/* Slab: objects of one size with a free list. */
#include "base/slab.h"

#include <string.h>

void *slab_get(struct slab *slab)
{
    void *object = slab->free_list;
    if (object)
        memcpy(&slab->free_list, object, sizeof slab->free_list);
    else
        object = arena_alloc(&slab->arena, slab->object_size);
    if (object)
        memset(object, 0, slab->object_size);
    return object;
}

void slab_put(struct slab *slab, void *object)
{
    memcpy(object, &slab->free_list, sizeof slab->free_list);
    slab->free_list = object;
}

void slab_free(struct slab *slab)
{
    slab->free_list = NULL;
    arena_free(&slab->arena);
}
