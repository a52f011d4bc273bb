/* Finds what a stack waits for: see runtimes.h. */
#include "words/runtimes.h"

#include <stdio.h>

#include "base/text.h"
#include "words/function_name.h"
#include "words/wrappers.h"

#define AT(offset) (offset)
#define PLACE      RUNTIME_PLACE
#define ONLY       RUNTIME_ONLY
#define WHOLE      false
#define PART       true

static const struct runtime_wait rows[] = {
#define WAITS(pattern, wait, object, extent, type) {pattern, WIRE_LOG_##wait, object, extent, type},
#include "words/runtimes.def"
#undef WAITS
};

static const struct runtime_wait *find(trail_string function)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (pattern_covers(rows[i].pattern, function))
            return &rows[i];
    }
    return NULL;
}

const struct runtime_wait *runtime_wait_find(runtime_frame_fn *frame_of, const void *context,
                                             size_t count)
{
    const struct runtime_wait *found = NULL;
    for (size_t i = 0; i < count && (!found || found->is_part); i++) {
        char buf[FUNCTION_NAME_SIZE];
        trail_string file, function = frame_of(context, i, &file);
        const struct runtime_wait *row;
        if (frame_is_go(file) || frame_rank(NULL, function, file) > FRAME_WRAPPER)
            break;
        row = function.size ? find(function_name_short(function, buf)) : NULL;
        found = row ? row : found;
    }
    return found;
}

static bool is_own(runtime_frame_fn *frame_of, const void *context, size_t frame)
{
    trail_string file, function = frame_of(context, frame, &file);
    return frame_rank(NULL, function, file) > FRAME_WRAPPER;
}

size_t runtime_frames_inside(runtime_frame_fn *frame_of, const void *context, size_t count)
{
    size_t frame = 0;
    while (frame < count && !is_own(frame_of, context, frame))
        frame++;
    return frame;
}

/* The function main() that rustc makes, which calls std::rt::lang_start. */
static bool is_made_main(runtime_frame_fn *frame_of, const void *context, size_t frame)
{
    trail_string file, function = frame_of(context, frame, &file);
    if (frame == 0 || file.size > 0 || !text_is(function, "main"))
        return false;
    function = frame_of(context, frame - 1, &file);
    return text_begins(function, "std::rt::lang_start");
}

size_t runtime_frames_outside(runtime_frame_fn *frame_of, const void *context, size_t count)
{
    size_t left = count;
    while (left > 0 &&
           (!is_own(frame_of, context, left - 1) || is_made_main(frame_of, context, left - 1)))
        left--;
    return left ? left : count;
}

void runtime_object_text(const struct runtime_wait *wait, const char *object, const char *place,
                         char *text, size_t size)
{
    if (wait->object == RUNTIME_ONLY)
        (void)snprintf(text, size, "%s", wait->type);
    else if (!object)
        (void)snprintf(text, size, "%s%s%s%s", wait->type, *wait->type && *place ? " " : "",
                       *place ? "in " : "", place);
    else
        (void)snprintf(text, size, "%s%s%s%s", object, *wait->type ? " (" : "", wait->type,
                       *wait->type ? ")" : "");
}
