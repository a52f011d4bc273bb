/*
 * What the analysis commands share: their common options, and the one pass over the file.
 *
 *     static const struct option rows[] = {
 *         {OPT_OWN, ...},
 *         ANALYSIS_ROWS,
 *         {0},
 *     };
 *
 * For a damaged trace, the answers of its good part are shown, a message goes to stderr, and the
 * exit code is EXIT_BAD.
 */
#pragma once

#include <trail/analyze.h>

#include "ui/show.h"
#include "ui/skip_frames.h"
#include "ui/window.h"
#include "ui/words.h"

/* Options of the struct below, which must be the first member of a command's request. */
/* clang-format off */
#define ANALYSIS_READ_ROWS                                                                         \
    {0, "from", "TIME",                                                                            \
     "only time from here on, counted from the first event: 1.5s 20ms 300us",                     \
     TO_WINDOW_FROM(struct analysis, window)},                                                                         \
    {0, "to", "TIME", "only time up to here; +3ms counts from --from",                             \
     TO_WINDOW_TO(struct analysis, window)},                                                       \
    {0, "repair", NULL, "repair inconsistent orders of events",                                     \
     TO_FLAG(struct analysis, repair)},                                                                       \
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names",                         \
     TO_TEXT(struct analysis, binary)},                                                            \
        WORDS_ROW(struct analysis, options.words)
#define ANALYSIS_ROWS                                                                              \
    ANALYSIS_READ_ROWS, {'j', "json", NULL, "one JSON object", TO_FLAG(struct analysis, json)}
/* For commands that name places. */
#define SKIP_FRAMES_ROW                                                                            \
    {0, "skip-frames", "FILE", SKIP_FRAMES_HELP, TO_SKIP_FRAMES(struct analysis, skip_frames)}
/* clang-format on */

struct input;

/* Set `command` and `options.what`; zero-initialise the rest. */
struct analysis {
    const struct command *command;
    const char *word;
    trail_analysis_options options;
    struct window window;
    bool repair, json;
    bool streams; /* answers are printed while the trace is read */
    const char *binary;
    const char **skip_frames; /* of --skip-frames */
    struct symbols *symbols;  /* of the binary */
    struct vocabulary vocabulary;
    trail_source *source;
    trail_reader *reader;
    trail_analysis *answers; /* NULL: none */
    trail_analysis_span span;
    struct input *input; /* the input to read; NULL: the file argument. Owned by the caller */
    trail_error damage;  /* set if the exit code is EXIT_BAD */
};

/* Called after the options: takes the one file argument. Returns EXIT_GOOD or EXIT_USAGE. */
int analysis_words(struct analysis *analysis, const struct options *options);

/* The same for commands that have other arguments as well. */
int analysis_word(struct analysis *analysis, const char *word);

/* Parses the command line into the request that begins with `analysis`: options and one file.
 * Returns EXIT_GOOD, EXIT_USAGE or OPTIONS_HELP. */
int analysis_parse(struct analysis *analysis, int argc, char **argv);

/* Opens the file and sets `reader`. analysis_run does so if the command has not. Returns the exit
 * code. */
int analysis_open(struct analysis *analysis);

/* Returns another reader of the same trace, with the options of the command line; NULL on error,
 * with *err set. */
trail_reader *analysis_reader(const struct analysis *analysis, trail_source *source,
                              trail_error *err);

/* Reads the file. Returns the exit code; `answers` may be set even if that is not EXIT_GOOD. */
int analysis_run(struct analysis *analysis);
void analysis_close(struct analysis *analysis);

/*
 * Runs the rest of a command whose command line was parsed with the result `code`: reads the file,
 * calls `show` if there are answers, and closes. Returns the command's exit code.
 */
int analysis_answer(struct analysis *analysis, int code, int (*show)(void *context), void *context);

/* Selects the vocabulary by what made the trace, which is known once events were read. Called by
 * analysis_run. */
void analysis_speak(struct analysis *analysis);

/* Returns a reason of a wait as shown, even for waits without one. */
trail_string analysis_reason(const struct analysis *analysis, trail_name reason);

/* Prints that the trace has no `kind`, such as goroutines or Ps, so that nothing ran. */
void analysis_nothing_ran(const struct analysis *analysis, enum term kind);

/* Returns the text of a name; "(unknown)" for 0. */
trail_string analysis_text(const struct analysis *analysis, trail_name name);

/* Begins the object that --json prints, with the origin of its times. */
struct json analysis_json_begin(const struct analysis *analysis);
void analysis_json_end(struct json *json);

/* Writes the members of a trail_times. */
void analysis_json_times(const struct analysis *analysis, struct json *json,
                         const trail_times *times);

/* Writes a distribution as an object: minimum, mean, quantiles, buckets. */
void analysis_json_histogram(struct json *json, const char *key, const trail_histogram *histogram);

/* Writes the members of a group, with its distributions. */
void analysis_json_group(const struct analysis *analysis, struct json *json,
                         const trail_group *group);

/* Writes the members of a wait: "reason", and if recorded "wait_kind" and "object". */
void analysis_json_wait(const struct analysis *analysis, struct json *json, trail_name wait);

/* Returns "waiting for mutex stats_mu"; if the kind is not recorded, the reason. May contain any
 * bytes. */
enum { WAIT_TEXT_SIZE = 320 };
trail_string analysis_wait_text(const struct analysis *analysis, trail_name wait,
                                char buf[WAIT_TEXT_SIZE]);

/* Returns "select 3.2 s, network 1 s": the reasons of waits, longest first, at most `most`. */
const char *analysis_reasons(const struct analysis *analysis, const trail_times *times,
                             unsigned most, char *buf, size_t size);
