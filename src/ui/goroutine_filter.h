/*
 * Selecting goroutines: --goroutine and --name, for the commands over analyses. And printing
 * stacks.
 *
 *     static const struct option rows[] = {GOROUTINE_FILTER_ROWS(struct request, filter), ANALYSIS_ROWS, {0}};
 */
#pragma once

#include "ui/analysis.h"
#include "ui/values.h"

/* clang-format off */
#define GOROUTINE_FILTER_ROWS(request, filter)                                                     \
    {0, "name", "FUNCTION", "only goroutines with this start function",                            \
     TO_TEXT(request, filter.name)},                                                               \
    {'g', "goroutine", "N,...", "only these goroutines",                                           \
     TO_IDS(request, filter.goroutines, "gG")}
/* clang-format on */

/* Zero-initialised: selects all goroutines. */
struct goroutine_filter {
    const char *name;
    struct id_list goroutines;
};

/* Returns the selection for the analysis, and adds to analysis->options.what the answers that
 * goroutine_filter_check needs. */
trail_goroutine_filter goroutine_filter_of(const struct goroutine_filter *filter,
                                           struct analysis *analysis);

/* Called after the pass. Returns EXIT_GOOD, or EXIT_USAGE after a message that names what is not in
 * the trace and the nearest name. */
int goroutine_filter_check(const struct goroutine_filter *filter, const struct analysis *analysis);

/*
 * Prints that no goroutine is selected, with the name nearest to `name` (or NULL), which requires
 * TRAIL_ANALYZE_GROUPS. Returns EXIT_USAGE.
 */
int goroutine_filter_no_match(const char *name, const struct analysis *analysis);
void goroutine_filter_free(struct goroutine_filter *filter);

/* Returns the index of a goroutine among rows sorted by ID, or where it would be. */
size_t goroutine_index(const trail_goroutine *rows, size_t count, int64_t id);

/* Returns "main.work (main.go:42) < main.main" in `buf`: the place of a stack, and its caller. */
const char *place_text(const struct analysis *analysis, trail_stack stack, char *buf, size_t size);

/* Appends the innermost frame that differs in another stack: " < ... < main.serve (main.go:7)", or
 * ", calling sync.(*Mutex).Lock (mutex.go:46)". */
void place_add_difference(const struct analysis *analysis, trail_stack stack, trail_stack other,
                          char *buf, size_t size);

/* Returns the index of the frame that called the place: in Go the next, elsewhere the next that is
 * not a wrapper; the number of frames if there is none. */
size_t place_caller(const struct analysis *analysis, trail_stack stack);

/* Prints one line per frame. */
void place_show(const struct analysis *analysis, trail_stack stack, unsigned indent);

/* Writes an array of objects with "function", "file" and "line". */
void place_json(const struct analysis *analysis, struct json *json, const char *key,
                trail_stack stack);
