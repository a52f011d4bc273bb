/* Counts goroutines by creator and place of creation: see families.h. */
#include "diagnose/families.h"

void families_init(struct families *families)
{
    families->slab.object_size = sizeof(struct family);
}

void families_free(struct families *families)
{
    idmap_free(&families->of_creator);
    idmap_free(&families->of_member);
    slab_free(&families->slab);
}

static void drop_if_unused(struct families *families, struct family *family)
{
    if (!family->has_creator && family->ended + family->stay == family->created)
        slab_put(&families->slab, family);
}

/* Returns the family, or NULL with the number of the creator's other ones. */
static struct family *find(const struct families *families, int64_t creator, trail_name place,
                           unsigned *others)
{
    struct family *family = idmap_find(&families->of_creator, (uint64_t)creator);
    for (*others = 0; family && family->place != place; family = family->next)
        ++*others;
    return family;
}

bool families_add(struct families *families, int64_t creator, int64_t member,
                  const struct family *of)
{
    unsigned others;
    struct family *family = find(families, creator, of->place, &others);
    if (!family && others == FAMILIES_OF_ONE)
        return true;
    if (!family) {
        family = slab_get(&families->slab);
        if (!family)
            return false;
        *family = *of;
        family->left = -1;
        family->creator = creator;
        family->has_creator = true;
        family->next = idmap_find(&families->of_creator, (uint64_t)creator);
        if (!idmap_put(&families->of_creator, (uint64_t)creator, family))
            return false;
    }
    family->created++;
    family->differ |= family->start != of->start;
    family->created_ns = of->created_ns;
    return idmap_put(&families->of_member, (uint64_t)member, family);
}

void families_end(struct families *families, int64_t goroutine, int64_t now, enum family_end how)
{
    struct family *family = idmap_remove(&families->of_member, (uint64_t)goroutine);
    if (family) {
        if (how == FAMILY_ENDS) {
            family->ended++;
            family->ended_ns = now;
        } else {
            family->stay++;
            family->stays = goroutine;
        }
        drop_if_unused(families, family);
    }
    family = idmap_remove(&families->of_creator, (uint64_t)goroutine);
    while (family) {
        struct family *next = family->next;
        family->has_creator = false;
        drop_if_unused(families, family);
        family = next;
    }
}

void families_lost(struct families *families, int64_t goroutine)
{
    struct family *family = families_of(families, goroutine);
    if (family)
        family->lost = true;
}

/* The family of `creator` that was completed last, except for that of `not_of`. */
static const struct family *last_of(const struct families *families, int64_t creator,
                                    const struct family *not_of)
{
    const struct family *last = NULL;
    const struct family *family = idmap_find(&families->of_creator, (uint64_t)creator);
    for (; family; family = family->next)
        if (family != not_of && (!last || family->created_ns > last->created_ns))
            last = family;
    return last;
}

const struct family *families_last(const struct families *families, int64_t goroutine)
{
    const struct family *own = families_of(families, goroutine);
    const struct family *last = last_of(families, goroutine, NULL);
    return last || !own || !own->has_creator ? last : last_of(families, own->creator, own);
}
