/*
 * Runtimes: what a wait is in the words of the language or library that it is made by. The C library
 * and the kernel know a futex or a condition variable; runtimes.def has the functions in the stack
 * that show whether it is a future, a channel, or an interpreter's lock.
 */
#ifndef TRAIL_WORDS_RUNTIMES_H
#define TRAIL_WORDS_RUNTIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <trail/read.h>

#include "wire/waits.h"

/* Where the object is, if not at an offset from the address that the thread waits at. */
#define RUNTIME_PLACE (-1) /* not known: the place of the wait stands for it */
#define RUNTIME_ONLY  (-2) /* there is one of the type */

struct runtime_wait {
    const char *pattern;
    enum wire_log wait;
    int object;       /* bytes in front of the address, or one of the above */
    bool is_part;     /* an outer frame may show more */
    const char *type; /* "": none */
};

/* Returns the function and file of a frame, 0 being the innermost. */
typedef trail_string runtime_frame_fn(const void *context, size_t frame, trail_string *file);

/* Returns the wait that a stack shows; NULL: that of the C library or the kernel. */
const struct runtime_wait *runtime_wait_find(runtime_frame_fn *frame_of, const void *context,
                                             size_t count);

/*
 * Returns the innermost frame that is no wrapper: the place of a wait. `count`: there is none.
 * runtime_frames_outside returns how many frames remain without those of the runtime that the
 * program's outermost function was started by: all, if it has none.
 */
size_t runtime_frames_inside(runtime_frame_fn *frame_of, const void *context, size_t count);
size_t runtime_frames_outside(runtime_frame_fn *frame_of, const void *context, size_t count);

/* Writes what is shown of the object: its name with the type; if `object` is NULL, the place. */
void runtime_object_text(const struct runtime_wait *wait, const char *object, const char *place,
                         char *text, size_t size);

#endif
