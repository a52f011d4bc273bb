/* Texts of the trace: those of waits and holds are made once per generation. */
#pragma once

#include <stdint.h>

#include "shm/shm.h"

struct collect;
struct trace;

/* A text in the trace, valid in one generation. */
struct known_text {
    uint64_t generation, id;
    const char *name;
    unsigned wait;
};

#define KNOWN_WAITS 256

/* Owned by names.c. Zero-initialised: empty. */
struct names {
    struct known_text waits[KNOWN_WAITS], reasons[SHM_WAITS], wait_category, held_category;
};

/* Returns the trace's ID of a text. */
uint64_t names_string(struct collect *c, const char *text);

/* The text of a wait's log, "read /var/lib/x", and its category. The text is kept for the next wait
 * for an object with the same name. */
uint64_t names_wait(struct collect *c, unsigned wait, const char *name, const char *object);
uint64_t names_wait_category(struct collect *c);

/* The category of a hold's log, and the reason of a wait. */
uint64_t names_held_category(struct collect *c);
uint64_t names_reason(struct collect *c, uint8_t wait);

/* Returns the ID of a kept text; 0: none. `name` must live as long as the collector: its address
 * identifies it. */
uint64_t names_known_wait(const struct collect *c, unsigned wait, const char *name);

/* Writes readings of both clocks at a time of the trace, where the format has no event for them. */
void names_clock(struct trace *t, int64_t ns, int64_t wall_ns);
