/*
 * A place as shown to users: the function in its short form, the file without its folder, and the
 * line.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <trail/read.h>

enum { PLACE_TEXT_SIZE = 512 };

enum place_form {
    PLACE_PARENTHESES, /* "main.work (main.go:42)" */
    PLACE_PLAIN,       /* "main.work main.go:42" */
};

/* Writes at most PLACE_TEXT_SIZE bytes into `buf`, and returns it. Unknown parts (empty, line 0)
 * are omitted. */
char *place_of_frame(trail_string function, trail_string file, uint64_t line, enum place_form form,
                     char *buf, size_t size);
