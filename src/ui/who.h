/*
 * Which goroutines: --goroutine and --name, for the commands over analyses. And their stacks.
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

/* Zero-initialised is everybody. */
struct who {
    const char *name;
    struct id_list goroutines;
};

/* Takes one of the options above, or a common one. EXIT_GOOD or EXIT_USAGE. */
int who_option(struct who *who, struct analysis *analysis, int id, const char *value);

/* What the analysis is asked for, so that who_check can judge: adds to analysis->options.what. */
trail_who who_wanted(const struct who *who, struct analysis *analysis);

/* After the pass: EXIT_GOOD, or EXIT_USAGE after telling who is not there and whose name is near. */
int who_check(const struct who *who, const struct analysis *analysis);

/*
 * Nobody is asked for: tells whose name is near `name` (or NULL), for which the analysis has to have
 * TRAIL_ANALYZE_GROUPS. Returns EXIT_USAGE.
 */
int who_nobody(const char *name, const struct analysis *analysis);
void who_free(struct who *who);

/* The index of a goroutine among rows by number, or where it would be. */
size_t who_place(const trail_goroutine *rows, size_t count, int64_t id);

/*
 * "main.work (main.go:42) < main.main": where the program's own code is in a stack, and who called
 * it. Into `buf`, which is returned.
 */
const char *place_text(const struct analysis *analysis, trail_stack stack, char *buf, size_t size);

/* The index of the frame that called the place: of Go the next, elsewhere the next that is no wrapper. The count: none. */
size_t place_caller(const struct analysis *analysis, trail_stack stack);

/* A line a frame. */
void place_show(const struct analysis *analysis, trail_stack stack, unsigned indent);

/* A list of objects of "function", "file" and "line". */
void place_json(const struct analysis *analysis, struct json *json, const char *key,
                trail_stack stack);

#endif
