#include "tables/definition.h"

#include <string.h>

#include "wire/wire.h"

static const char *const kind_words[] = {
    "Bad",         "Sync",        "Metric",   "Label",           "StackSample",
    "RangeBegin",  "RangeActive", "RangeEnd", "TaskBegin",       "TaskEnd",
    "RegionBegin", "RegionEnd",   "Log",      "StateTransition", "Experimental",
    NULL,
};

static const char *const resource_words[] = {"none", "goroutine", "proc", "thread", NULL};

static const char *const state_words[] = {
    "Undetermined", "NotExist", "Runnable", "Running", "Waiting", "Syscall", "Idle", NULL,
};

/* All event types of v2. Their numbers have gaps, so each gets its own index. */
static const char *const type_words[] = {
#define V2_EVENT(number, name, ...) #name,
#include "wire/v2.def"
    NULL,
};

enum type_word {
#define V2_EVENT(number, name, ...) TYPE_WORD_##name,
#include "wire/v2.def"
    TYPE_WORDS
};
_Static_assert(TYPE_WORDS <= 255, "an enumeration is a byte");

uint8_t word_of_type(unsigned wire)
{
    static const uint8_t words[V2_TYPES] = {
#define V2_EVENT(number, name, ...) [number] = TYPE_WORD_##name,
#include "wire/v2.def"
    };
    return wire < V2_TYPES ? words[wire] : 0;
}

uint8_t word_of_go_state(unsigned state)
{
    return state < TRAIL_GO_STATES ? (uint8_t)state : 0;
}

uint8_t word_of_proc_state(unsigned state)
{
    static const uint8_t words[TRAIL_PROC_STATES] = {
        [TRAIL_PROC_UNDETERMINED] = 0,
        [TRAIL_PROC_NOT_EXIST] = 1,
        [TRAIL_PROC_RUNNING] = 3,
        [TRAIL_PROC_IDLE] = 6,
    };
    return state < TRAIL_PROC_STATES ? words[state] : 0;
}

/* MARK: The tables */

#define NOT_NULL false
#define NULLABLE true

/* clang-format off */
#define TABLE(table, name, key, meaning) static const trail_table_column table##_definition[] = {
#define COLUMN(table, column, name, cell, nullable, words, meaning) \
    {#name, TRAIL_CELL_##cell, nullable, words, meaning},
#define COMMON(table) \
    {"trace", TRAIL_CELL_TEXT, false, NULL, "ID of the trace: the same for the same content and host, in all tables"}, \
    {"file", TRAIL_CELL_TEXT, false, NULL, "file of the trace"}, \
    {"host", TRAIL_CELL_TEXT, false, NULL, "machine on which it was made"}, \
    {"day", TRAIL_CELL_DATE, false, NULL, "day of the trace"}, \
};
#include "tables/tables.def"

static const trail_table tables[TRAIL_TABLES] = {
#define TABLE(table, name, key, meaning) \
    [TRAIL_TABLE_##table] = {#name, meaning, table##_definition, table##_COLUMNS, key},
#define COLUMN(table, column, name, cell, nullable, words, meaning)
#define COMMON(table)
#include "tables/tables.def"
};
/* clang-format on */

const trail_table *trail_table_get(trail_table_id table)
{
    return &tables[(unsigned)table < TRAIL_TABLES ? table : TRAIL_TABLE_EVENTS];
}

bool trail_table_find(const char *name, trail_table_id *table)
{
    for (int i = 0; i < TRAIL_TABLES; i++) {
        if (strcmp(tables[i].name, name) == 0) {
            *table = (trail_table_id)i;
            return true;
        }
    }
    return false;
}
