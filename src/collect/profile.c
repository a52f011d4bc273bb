/* Keeps CPU samples in order of time: see profile.h. */
#include "collect/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/parts.h"

/* Samples of another CPU may have been read first. */
static void insert(struct collect *c, const struct pending_sample *sample)
{
    struct pending_sample *first = c->profile.samples + c->profile.first;
    size_t i = c->profile.count++;
    for (; i > 0 && first[i - 1].ns > sample->ns; i--)
        first[i] = first[i - 1];
    first[i] = *sample;
}

static void add(struct collect *c, int64_t ns, uint64_t tid, const uint64_t *pcs, size_t count)
{
    struct pending_sample pending = {ns, tid, NULL, count};
    if (c->profile.first && c->profile.first + c->profile.count == c->profile.room) {
        memmove(c->profile.samples, c->profile.samples + c->profile.first,
                c->profile.count * sizeof c->profile.samples[0]);
        c->profile.first = 0;
    }
    pending.pcs = malloc(count * sizeof pcs[0] + 1);
    if (!pending.pcs ||
        !GROW(c->profile.samples, c->profile.room, c->profile.first + c->profile.count + 1)) {
        free(pending.pcs);
        collect_no_memory(c);
        return;
    }
    if (count)
        memcpy(pending.pcs, pcs, count * sizeof pcs[0]);
    insert(c, &pending);
    c->trace->waiting_samples++;
}

void collect_sample(struct collect *c, const struct cpu_sample *sample)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    if (c->ended)
        return;
    size_t count = code_walk(c, sample, pcs);
    add(c, sample->ns, sample->tid, pcs, count);
}

void profile_record(struct collect *c, const struct thread *thread, const struct shm_record *record)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count = area_stack(c->area, record->stack, pcs);
    add(c, ticks_to_ns(c->ticks, record->time), thread->tid, pcs, count);
}

bool profile_next(struct collect *c, int64_t before_ns, struct pending_sample *sample)
{
    if (c->profile.count == 0 || c->profile.samples[c->profile.first].ns >= before_ns)
        return false;
    *sample = c->profile.samples[c->profile.first++];
    c->profile.count--;
    c->trace->waiting_samples--;
    return true;
}

void profile_dispose(struct collect *c)
{
    c->trace->waiting_samples -= c->profile.count;
    for (size_t i = 0; i < c->profile.count; i++)
        free(c->profile.samples[c->profile.first + i].pcs);
    free(c->profile.samples);
}
