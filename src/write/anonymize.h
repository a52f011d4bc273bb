/*
 * Anonymize: replaces texts of a trace that reveal something about its program. Functions and files
 * of Go's standard library and of the C library stay, and so do reasons of waits and of
 * stop-the-world pauses that come from Go's runtime or trail. All other text becomes a keyed hash
 * (SipHash-2-4) of itself: equal texts have equal hashes, across traces with the same key, and
 * without the key guesses cannot be tested. No table is kept, so memory does not grow with the
 * texts.
 */
#pragma once

#include <stdint.h>
#include <trail/error.h>
#include <trail/read.h>

struct anonymizer {
    uint64_t key[2];
};

/* Storage for a replacement, which is valid as long as this. */
struct stand_in {
    char text[96];
};

/* Derives the key from `secret`, or draws a random one if that is NULL. Returns -1 with *err set on
 * error. */
int anonymizer_init(struct anonymizer *a, const char *secret, trail_error *err);

/* Replaces a name or text chosen by the program. */
trail_string anonymize_text(const struct anonymizer *a, trail_string text, struct stand_in *room);

/* Replaces a reason unless it is the runtime's. */
trail_string anonymize_reason(const struct anonymizer *a, trail_string text, struct stand_in *room);

/* Replaces a program's word for what it runs, unless it is a common one such as "fiber". */
void anonymize_maker(trail_maker *maker);

/* Replaces a function and its file; rooms[0] and rooms[1] are their storage. */
void anonymize_frame(const struct anonymizer *a, trail_string *function, trail_string *file,
                     struct stand_in rooms[2]);
