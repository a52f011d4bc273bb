/*
 * A list of facts, each good, a note or a problem, with the one action for it: printed as lines, or
 * as objects of a JSON array.
 */
#pragma once

#include <stdbool.h>

#include "ui/show.h"

enum fact_state {
    FACT_OK,
    FACT_NOTE,   /* it works, with limits or something to know */
    FACT_PROBLEM /* nothing can be recorded */
};

struct facts {
    bool as_json;
    struct json json;
    unsigned notes, problems;
    bool no_memory; /* something could not be looked at for lack of memory */
};

void facts_begin(struct facts *facts, bool as_json);

/* Begins a group of facts; facts_close ends it. */
void facts_open(struct facts *facts, const char *title);
void facts_close(struct facts *facts);

/* Prints a fact. `todo` is NULL if there is nothing to do. */
void fact(struct facts *facts, enum fact_state state, const char *name, const char *todo,
          const char *format, ...) __attribute__((format(printf, 5, 6)));
