/* Reads guards in the copy of a stack: see stack_guards.h. */
#include "collect/stack_guards.h"

#include <string.h>

enum { MOST_FRAMES = 256 };

static bool word_at(const struct cpu_sample *sample, uint64_t at, uint64_t *word)
{
    uint64_t offset = at - sample->sp;
    if (at < sample->sp || sample->stack_size < sizeof *word ||
        offset > sample->stack_size - sizeof *word)
        return false;
    memcpy(word, sample->stack + offset, sizeof *word);
    return true;
}

static bool is_known(const struct guarded_lock *locks, size_t count, uint64_t lock)
{
    for (size_t i = 0; i < count; i++)
        if (locks[i].lock == lock)
            return true;
    return false;
}

size_t stack_guards(struct unwind_files *files, const struct cpu_sample *sample,
                    find_module_fn find, void *context, guards_fn *guards, void *guards_context,
                    struct guarded_lock *locks, size_t max)
{
    uint64_t pcs[MOST_FRAMES], sps[MOST_FRAMES];
    size_t frames = stack_copy_frames(files, sample, find, context, pcs, sps, MOST_FRAMES);
    size_t count = 0;
    for (size_t i = 0; i + 1 < frames; i++) {
        const trail_module *module = find(context, pcs[i] - 1);
        struct guard found[GUARDS_MOST];
        size_t n =
            module && module->path.size
                ? guards(guards_context, module, pcs[i] - 1 - module->bias, found, GUARDS_MOST)
                : 0;
        for (size_t j = 0; j < n && count < max; j++) {
            uint64_t lock, frame = found[j].from_cfa ? sps[i + 1] : sps[i];
            if (word_at(sample, frame + (uint64_t)found[j].offset, &lock) && lock &&
                !is_known(locks, count, lock))
                locks[count++] = (struct guarded_lock){lock, sps[i + 1], found[j].wait};
        }
    }
    return count;
}
