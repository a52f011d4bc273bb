/*
 * Converts stacks and names to the trace's stacks. Readers keep one frame per PC and generation,
 * and addresses of several processes may be equal: each distinct frame gets a number where no code
 * can be.
 */
#include <stdio.h>

#include "base/hash.h"
#include "base/text.h"
#include "import/threads.h"

#define FIRST_NUMBER (UINT64_C(1) << 48)

/* Frames with equal keyed hashes would share a PC, which does not happen in practice. */
static uint64_t frame_pc(struct import_threads *all, trail_string function, trail_string file)
{
    uint64_t hash =
        hash_keyed_bytes(hash_keyed_bytes(0, function.data, function.size), file.data, file.size);
    uintptr_t number = (uintptr_t)idmap_find(&all->frames, hash);
    if (number == 0) {
        number = all->frames.count + 1;
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): a number, never followed. */
        if (!idmap_put(&all->frames, hash, (void *)number))
            all->failed = true;
    }
    return FIRST_NUMBER + number;
}

uint64_t import_text(struct import_threads *all, const char *text)
{
    return v2_writer_string(all->out.out, text_from(text));
}

uint64_t import_stack_id(struct import_threads *all, const struct import_stack *stack)
{
    struct v2_frame frames[V2_MAX_FRAMES];
    size_t count = stack ? stack->count : 0;
    if (count > V2_MAX_FRAMES)
        count = V2_MAX_FRAMES;
    for (size_t i = 0; i < count; i++) {
        const struct import_frame *from = &stack->frames[i];
        frames[i] = (struct v2_frame){.pc = frame_pc(all, from->function, from->file),
                                      .function = from->function,
                                      .file = from->file};
    }
    return v2_writer_stack(all->out.out, frames, count);
}

uint64_t import_name_stack(struct import_threads *all, const struct import_thread *thread)
{
    char number[32];
    const char *name = objects_find(&all->names, (uint64_t)thread->tid);
    if (!name) {
        (void)snprintf(number, sizeof number, "TID %d", (int)thread->tid);
        name = number;
    }
    struct v2_frame frame = {.function = text_from(name)};
    frame.pc = frame_pc(all, frame.function, frame.file);
    return v2_writer_stack(all->out.out, &frame, 1);
}

void import_frames_forget(struct import_threads *all)
{
    idmap_clear(&all->frames);
}
