/*
 * Producer: what fills the tables. It takes events in steps, none larger than what the tables that
 * get a row an event have room for, and hands rows out between the steps.
 *
 * Texts and stacks get numbers that outlive generations (analyze/names.h, stacks.h). All stacks of a
 * generation are numbered when it begins, in their order there, so that passes for different tables
 * give them the same numbers.
 */
#ifndef TRAIL_TABLES_PRODUCER_H
#define TRAIL_TABLES_PRODUCER_H

#include <trail/analyze.h>

#include "analyze/follow.h"
#include "analyze/stacks.h"
#include "base/slab.h"
#include "tables/rows.h"

struct trail_tables {
    trail_reader *reader;
    trail_tables_options options;
    trail_values common[TRAIL_TABLE_COMMON];
    struct rows rows[TRAIL_TABLES];
    struct names names;
    trail_string *texts; /* by name, as UTF-8 */
    size_t text_count, text_capacity;
    struct arena arena; /* what is not in `names` as UTF-8 */
    struct stacks stacks;
    uint64_t epoch;                       /* of the two below, once has_epoch */
    size_t string_handles, stack_handles; /* handles of the generation that were looked up */
    size_t stack_rows;                    /* stacks that have got rows */
    trail_analysis *answers;              /* NULL: no table needs them */
    struct follow follow;      /* for states; with names of its own: `names` are numbered */
    struct names follow_names; /* in the order of the trace's strings, which tables show */
    struct slab span_slab;
    int64_t last_ns;             /* of the last event */
    int64_t from_ns, to_ns;      /* the window, edges included; without one all there is */
    const trail_event *at, *end; /* events of the reader that were not taken yet */
    trail_error error;           /* of the trace, if has_error */
    size_t given_count;
    int given; /* the table whose rows were handed out last; -1: none */
    bool has_epoch;
    bool wants_stacks; /* some column has their numbers */
    bool began;
    bool behind; /* the window: nothing more is read */
    bool over;   /* no more events */
    bool failed; /* memory is out */
    bool has_error;
};

/* The text of a handle, valid as long as the tables. */
trail_string text_look_up(struct trail_tables *tables, trail_name name);

static inline trail_string text_of(struct trail_tables *tables, trail_string_handle handle)
{
    if (handle == 0)
        return (trail_string){"", 0};
    trail_name name = names_of(&tables->names, handle);
    if (__builtin_expect(name < tables->text_count, 1))
        return tables->texts[name];
    return text_look_up(tables, name);
}

/* Of a text that is not in the reader. */
trail_string text_of_bytes(struct trail_tables *tables, const char *data, size_t size);

/* A copy as UTF-8; empty when memory is out, which the tables remember. */
trail_string text_clean(struct trail_tables *tables, struct arena *arena, trail_string text);

/* The number of a stack in the tables; 0 for none. */
static inline int32_t stack_of(struct trail_tables *tables, trail_stack_handle handle)
{
    return (int32_t)stacks_of(&tables->stacks, handle);
}

static inline bool wants_table(const struct trail_tables *tables, trail_table_id table)
{
    return tables->rows[table].table != NULL;
}

/* Each fills its tables. There is room for a row an event. */
void events_fill(struct trail_tables *tables, const trail_event *events, size_t count);
void moments_fill(struct trail_tables *tables, const trail_event *event);
/* False when memory is out. */
bool states_fill(struct trail_tables *tables, const trail_event *events, size_t count);
bool states_finish(struct trail_tables *tables);
void states_init(struct trail_tables *tables);
void states_free(struct trail_tables *tables);
bool dictionary_fill(struct trail_tables *tables);
bool answers_fill(struct trail_tables *tables);
unsigned answers_needed(const struct trail_tables *tables);

#endif
