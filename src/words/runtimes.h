/*
 * Runtimes: what a wait is in the terms of the language or library that makes it. The C library and
 * the kernel only know a futex or a condition variable; runtimes.def lists the functions in the
 * stack that show whether it is a future, a channel, or an interpreter's lock.
 */
#pragma once

#include <stddef.h>
#include <trail/read.h>

#include "wire/waits.h"

/* Where the object is, unless at an offset from the address at which the thread waits. */
#define RUNTIME_PLACE (-1) /* unknown: the place of the wait stands for it */
#define RUNTIME_ONLY  (-2) /* the only one of its type */

/* As described in runtimes.def. */
enum runtime_extent { RUNTIME_WHOLE, RUNTIME_PART, RUNTIME_DIRECT, RUNTIME_WITHIN };

struct runtime_wait {
    const char *pattern;
    enum wire_log wait;
    int object; /* bytes before the address, or one of the above */
    enum runtime_extent extent;
    const char *type; /* "": none */
};

/* Returns the function and file of a frame, 0 being the innermost. */
typedef trail_string runtime_frame_fn(const void *context, size_t frame, trail_string *file);

/* Returns the wait that a stack shows; NULL: one of the C library or the kernel. */
const struct runtime_wait *runtime_wait_find(runtime_frame_fn *frame_of, const void *context,
                                             size_t count);

/* Returns what a wait for the condition variable of this name is for; NULL: the condition
 * variable. */
const struct runtime_wait *runtime_wait_of_object(const char *name);

/*
 * Returns the innermost frame that is not a wrapper, which is the place of a wait; `count`: none.
 * runtime_frames_outside returns how many frames remain without those of the runtime that started
 * the program's outermost function: all, if there are none.
 */
size_t runtime_frames_inside(runtime_frame_fn *frame_of, const void *context, size_t count);
size_t runtime_frames_outside(runtime_frame_fn *frame_of, const void *context, size_t count);

/* Writes how the object is shown: its name with the type; if `object` is NULL, the place. */
void runtime_object_text(const struct runtime_wait *wait, const char *object, const char *place,
                         char *text, size_t size);
