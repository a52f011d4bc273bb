/*
 * A list of facts, each good, worth knowing or in the way, with the one thing to do about it: as
 * lines for people, or as objects of a JSON array.
 */
#ifndef TRAIL_UI_FACTS_H
#define TRAIL_UI_FACTS_H

#include <stdbool.h>

#include "ui/show.h"

enum fact_state {
    FACT_OK,
    FACT_NOTE,   /* it works, but more is possible, or something should be known */
    FACT_PROBLEM /* nothing can be recorded */
};

struct facts {
    bool as_json;
    struct json json;
    unsigned notes, problems;
};

void facts_begin(struct facts *facts, bool as_json);

/* A group of facts; facts_close ends it. */
void facts_open(struct facts *facts, const char *title);
void facts_close(struct facts *facts);

/* Tells one. `todo` is NULL if there is nothing to do. */
void fact(struct facts *facts, enum fact_state state, const char *name, const char *todo,
          const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Prints text that may hold names of files, which must not reach a terminal as they are. */
void facts_put_text(const char *text);

#endif
