/*
 * Classes of waits: lock, condition or channel, I/O, sleep, idle, runtime, not recorded. Each has
 * the same colour wherever states are drawn.
 */
#pragma once

#include <trail/read.h>

/* The values are those of /api/picture. */
enum wait_class {
    WAIT_CLASS_UNKNOWN,
    WAIT_CLASS_LOCK,
    WAIT_CLASS_COND,
    WAIT_CLASS_IO,
    WAIT_CLASS_SLEEP,
    WAIT_CLASS_IDLE,
    WAIT_CLASS_RUNTIME,
    WAIT_CLASSES
};

/* Returns the class of a kind of wait, by its word, or of a reason. */
enum wait_class wait_class_of(trail_string word);
