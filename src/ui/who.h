/*
 * Selecting goroutines: --goroutine and --name, for the commands over analyses. And printing
 * stacks.
 *
 *     static const struct option rows[] = {WHO_ROWS, ANALYSIS_ROWS, {0}};
 */
#ifndef TRAIL_UI_WHO_H
#define TRAIL_UI_WHO_H

#include "ui/analysis.h"
#include "ui/values.h"

enum { WHO_GOROUTINE = 800, WHO_NAME };

/* clang-format off */
#define WHO_ROWS                                                                                   \
    {0, "name", "FUNCTION", "only goroutines that began in this function", TAKE(WHO_NAME)},        \
    {'g', "goroutine", "N,...", "only these goroutines", TAKE(WHO_GOROUTINE)}
/* clang-format on */

/* Zero-initialised selects all goroutines. */
struct who {
    const char *name;
    struct id_list goroutines;
};

/* Takes one of the options above, or a common one. Returns EXIT_GOOD or EXIT_USAGE. */
int who_option(struct who *who, struct analysis *analysis, int id, const char *value);

/* Returns the selection for the analysis, and adds to analysis->options.what the answers that
 * who_check needs. */
trail_goroutine_filter who_wanted(const struct who *who, struct analysis *analysis);

/* Called after the pass. Returns EXIT_GOOD, or EXIT_USAGE after a message that names what is not in
 * the trace and the nearest name. */
int who_check(const struct who *who, const struct analysis *analysis);

/*
 * Prints that no goroutine is selected, with the name nearest to `name` (or NULL), which requires
 * TRAIL_ANALYZE_GROUPS. Returns EXIT_USAGE.
 */
int who_nobody(const char *name, const struct analysis *analysis);
void who_free(struct who *who);

/* Returns the index of a goroutine among rows sorted by ID, or where it would be. */
size_t who_place(const trail_goroutine *rows, size_t count, int64_t id);

/*
 * Returns "main.work (main.go:42) < main.main" in `buf`: the place of a stack, and its caller.
 */
const char *place_text(const struct analysis *analysis, trail_stack stack, char *buf, size_t size);

/* Returns the index of the frame that called the place: in Go the next, elsewhere the next that is
 * no wrapper; the number of frames if there is none. */
size_t place_caller(const struct analysis *analysis, trail_stack stack);

/* Prints one line per frame. */
void place_show(const struct analysis *analysis, trail_stack stack, unsigned indent);

/* Writes an array of objects with "function", "file" and "line". */
void place_json(const struct analysis *analysis, struct json *json, const char *key,
                trail_stack stack);

#endif
