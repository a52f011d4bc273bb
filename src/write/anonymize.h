/*
 * Anonymize: stand-ins for what the texts of a trace tell of a program. What is of the language's own
 * library stays: functions and files of Go's standard library and of the C library, reasons of waits
 * and of stopped worlds that Go's runtime and trail have. Anything else becomes a keyed hash
 * (SipHash-2-4) of itself: equal texts get equal stand-ins, under the same key also in other traces,
 * and who has not the key cannot try guesses. No table is needed, so memory does not follow the texts.
 */
#ifndef TRAIL_WRITE_ANONYMIZE_H
#define TRAIL_WRITE_ANONYMIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <trail/error.h>
#include <trail/read.h>

struct anonymizer {
    uint64_t key[2];
};

/* Room for a stand-in, which is valid as long. */
struct stand_in {
    char text[96];
};

/* A key made of `secret`, or, if that is NULL, drawn by lot. -1: *err. */
int anonymizer_init(struct anonymizer *a, const char *secret, trail_error *err);

/* A name or a text that the program chose. */
trail_string anonymize_text(const struct anonymizer *a, trail_string text, struct stand_in *room);

/* A reason, which is mostly the runtime's. */
trail_string anonymize_reason(const struct anonymizer *a, trail_string text, struct stand_in *room);

/* A function and its file; rooms[0] and rooms[1] are for them. */
void anonymize_frame(const struct anonymizer *a, trail_string *function, trail_string *file,
                     struct stand_in rooms[2]);

#endif
