/*
 * Producer: fills the tables. It takes events in steps, none larger than the room left in the
 * tables with one row per event, and hands out rows between the steps.
 *
 * Texts and stacks get numbers that outlive generations (analyze/names.h, stacks.h). All stacks of
 * a generation are numbered when it begins, in its order, so that passes for different tables give
 * them the same numbers.
 */
#pragma once

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
    trail_string *texts; /* as UTF-8, by name */
    size_t text_count, text_capacity;
    struct arena arena; /* texts that had to be repaired to UTF-8 */
    struct stacks stacks;
    uint64_t epoch;                       /* the generation of the handles below, if has_epoch */
    size_t string_handles, stack_handles; /* handles of the generation already looked up */
    size_t stack_rows;                    /* stacks that have rows */
    trail_analysis *answers;              /* NULL: not needed by any wanted table */
    struct follow follow; /* for states; with its own names, because the numbers of `names` are */
    struct names follow_names; /* visible in tables and follow the order of the trace's strings */
    struct slab span_slab;
    int64_t last_ns; /* of the last event */
    uint64_t count;  /* of events in the window, from first_ns to until_ns */
    int64_t first_ns, until_ns;
    bool has_wall;
    int64_t wall_offset_ns;      /* if has_wall: Unix time minus the trace's */
    int64_t from_ns, to_ns;      /* the window, edges included; the whole range if not given */
    const trail_event *at, *end; /* events read but not yet taken */
    trail_error error;           /* from the trace, if has_error */
    size_t given_count;
    int given; /* the table whose rows are handed out; -1: none */
    bool has_epoch;
    bool wants_stacks; /* some column holds stack numbers */
    bool began;
    bool behind; /* past the window: reading stops */
    bool over;   /* no more events */
    bool failed; /* out of memory */
    bool has_error;
};

/* Returns the text of a name, valid as long as the tables. */
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

/* Returns the text with these bytes, which need not be in the reader. */
trail_string text_of_bytes(struct trail_tables *tables, const char *data, size_t size);

/* Returns a copy as UTF-8. If out of memory, it is empty and tables->failed is set. */
trail_string text_clean(struct trail_tables *tables, struct arena *arena, trail_string text);

/* Returns the number of a stack in the tables; 0 for none. */
static inline int32_t stack_of(struct trail_tables *tables, trail_stack_handle handle)
{
    return (int32_t)stacks_of(&tables->stacks, handle);
}

static inline bool wants_table(const struct trail_tables *tables, trail_table_id table)
{
    return tables->rows[table].table != NULL;
}

/* Fill the tables. events_fill and moments_fill need room for one row per event. */
void events_fill(struct trail_tables *tables, const trail_event *events, size_t count);
void moments_fill(struct trail_tables *tables, const trail_event *event);
/* These return false if out of memory. */
bool states_fill(struct trail_tables *tables, const trail_event *events, size_t count);
bool states_finish(struct trail_tables *tables);
void states_init(struct trail_tables *tables);
void states_free(struct trail_tables *tables);
bool dictionary_fill(struct trail_tables *tables);
bool answers_fill(struct trail_tables *tables);
bool traces_fill(struct trail_tables *tables);
unsigned answers_needed(const struct trail_tables *tables);
