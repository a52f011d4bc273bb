/*
 * Releases by the slot and number of their object, kept until they are written and too old to have
 * ended a wait: see releases.h.
 */
#include "collect/releases.h"

#include <stdlib.h>

#include "collect/parts.h"

/* Numbers count the releases of the object's slot: on the board, or in the program's area. (There
 * are few programs at a time.) */
static uint64_t release_key(const struct collect *c, uint64_t object, uint32_t number)
{
    uint64_t program = shm_is_shared(object) ? 0 : 1 + c->number % ((1u << 18) - 1);
    return program << 45 | (uint64_t)(shm_object_slot(object) + 1) << 32 | number;
}

/* Returns the block of a release's key; NULL: it has no releases. */
static struct release_block *block_of(const struct releases *r, uint64_t key)
{
    return objects_find(&r->blocks, key / RELEASE_BLOCK);
}

static struct release *find_key(const struct releases *r, uint64_t key)
{
    const struct release_block *block = block_of(r, key);
    return block ? block->at[key % RELEASE_BLOCK] : NULL;
}

static bool put_key(struct releases *r, struct release *release)
{
    struct release_block *block;
    r->blocks.slab.object_size = sizeof *block;
    block = objects_get(&r->blocks, release->key / RELEASE_BLOCK);
    if (!block)
        return false;
    block->used += !block->at[release->key % RELEASE_BLOCK];
    block->at[release->key % RELEASE_BLOCK] = release;
    return true;
}

/* A program that overwrites the area may have used a number twice: the newer release then has the
 * place. */
static void remove_key(struct releases *r, const struct release *release)
{
    struct release_block *block = block_of(r, release->key);
    if (!block || block->at[release->key % RELEASE_BLOCK] != release)
        return;
    block->at[release->key % RELEASE_BLOCK] = NULL;
    if (--block->used == 0)
        objects_drop(&r->blocks, release->key / RELEASE_BLOCK);
}

void release_take(struct release *release)
{
    release->taken = true;
    release->skip = release->number + 1;
}

struct release *release_add(struct collect *c, struct thread *thread,
                            const struct shm_record *record)
{
    struct releases *releases = &c->trace->releases;
    struct release *release;
    releases->slab.object_size = sizeof *release;
    release = slab_get(&releases->slab);
    if (!release) {
        collect_no_memory(c);
        return NULL;
    }
    release->key = release_key(c, record->object, record->release);
    if (!put_key(releases, release)) {
        slab_put(&releases->slab, release);
        collect_no_memory(c);
        return NULL;
    }
    release->time = record->time;
    release->object = record->object;
    release->serial = thread->serial;
    release->number = record->release;
    release->stack = record->stack;
    release->all = record->flags & SHM_ALL;
    release->by_reader = record->wait == SHM_RDLOCK;
    release->part = record->object2;
    if (shm_is_shared_end(record->object) && record->flags & SHM_CLOSES) {
        /* Only if no other ended the wait: see release_find. */
        release->closes = true;
        release_take(release);
    }
    if (releases->newest)
        releases->newest->newer = release;
    else
        releases->oldest = release;
    releases->newest = release;
    return release;
}

struct woken *release_is_written(struct release *release)
{
    struct woken *woken = release->woken;
    release->woken = NULL;
    release->written = true;
    return woken;
}

void woken_free(struct woken *woken)
{
    while (woken) {
        struct woken *next = woken->next;
        free(woken);
        woken = next;
    }
}

void releases_drop_old(struct trace *t, uint64_t before)
{
    struct releases *r = &t->releases;
    struct release *oldest;
    while ((oldest = r->oldest) && oldest->written && oldest->time < before) {
        remove_key(r, oldest);
        r->oldest = oldest->newer;
        if (!r->oldest)
            r->newest = NULL;
        slab_put(&r->slab, oldest);
    }
}

struct release *release_at(struct collect *c, uint64_t object, uint32_t number)
{
    return find_key(&c->trace->releases, release_key(c, object, number));
}

/* MARK: Semaphores */

static struct empty_semaphore *empty_of(struct collect *c, uint64_t object, uint64_t *program)
{
    *program = release_key(c, object, 0);
    return &c->trace->releases.empty[shm_object_slot(object) % EMPTY_PLACES];
}

void releases_empty(struct collect *c, uint64_t object, uint64_t time)
{
    uint64_t program;
    struct empty_semaphore *at = empty_of(c, object, &program);
    if (at->object != object || at->program != program)
        *at = (struct empty_semaphore){.object = object, .program = program};
    at->times[at->next++ % EMPTY_TIMES] = time;
}

uint64_t releases_last_empty(struct collect *c, uint64_t object, uint64_t begin, uint64_t end)
{
    uint64_t program, last = begin;
    const struct empty_semaphore *at = empty_of(c, object, &program);
    if (at->object == object && at->program == program)
        for (size_t i = 0; i < EMPTY_TIMES; i++)
            last = at->times[i] > last && at->times[i] < end ? at->times[i] : last;
    return last;
}

void releases_dispose(struct releases *r)
{
    for (struct release *release = r->oldest; release; release = release->newer)
        woken_free(release->woken);
    slab_free(&r->slab);
    objects_free(&r->blocks);
    free(r->ended);
}
