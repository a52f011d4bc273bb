/* CPU samples wait here, with their stacks walked, until the model has come to their times. */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "collect/state.h"

static const trail_module *find_module(void *context, uint64_t pc)
{
    return names_module(context, pc);
}

/* Those of another CPU may have come first. */
static void insert(struct collect *c, const struct pending_sample *sample)
{
    struct pending_sample *first = c->samples + c->sample_first;
    size_t i = c->sample_count++;
    for (; i > 0 && first[i - 1].ns > sample->ns; i--)
        first[i] = first[i - 1];
    first[i] = *sample;
}

static void add(struct collect *c, int64_t ns, uint64_t tid, const uint64_t *pcs, size_t count)
{
    struct pending_sample pending = {ns, tid, NULL, count};
    if (c->sample_first && c->sample_first + c->sample_count == c->sample_room) {
        memmove(c->samples, c->samples + c->sample_first, c->sample_count * sizeof c->samples[0]);
        c->sample_first = 0;
    }
    pending.pcs = malloc(count * sizeof pcs[0] + 1);
    if (!pending.pcs || !GROW(c->samples, c->sample_room, c->sample_first + c->sample_count + 1)) {
        free(pending.pcs);
        collect_no_memory(c);
        return;
    }
    if (count)
        memcpy(pending.pcs, pcs, count * sizeof pcs[0]);
    insert(c, &pending);
}

void collect_sample(struct collect *c, const struct cpu_sample *sample)
{
    uint64_t pcs[SHM_STACK_FRAMES];
    size_t count;
    if (c->summary.left)
        return;
    count = stack_copy_walk(&c->unwind_files, sample, find_module, c, pcs, SHM_STACK_FRAMES);
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
    if (c->sample_count == 0 || c->samples[c->sample_first].ns >= before_ns)
        return false;
    *sample = c->samples[c->sample_first++];
    c->sample_count--;
    return true;
}

void profile_free(struct collect *c)
{
    for (size_t i = 0; i < c->sample_count; i++)
        free(c->samples[c->sample_first + i].pcs);
    free(c->samples);
    unwind_files_free(&c->unwind_files);
}
