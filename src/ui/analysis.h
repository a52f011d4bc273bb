/*
 * What the commands over analyses share: their common options, and the one pass over the file.
 *
 *     static const struct option rows[] = {
 *         {OPT_OWN, ...},
 *         ANALYSIS_ROWS,
 *         {0},
 *     };
 *
 * A damaged trace gives the answers of its good part, a word on stderr and EXIT_BAD.
 */
#ifndef TRAIL_UI_ANALYSIS_H
#define TRAIL_UI_ANALYSIS_H

#include <trail/analyze.h>

#include "ui/show.h"
#include "ui/skip_frames.h"
#include "ui/window.h"
#include "ui/words.h"

/* Numbers of the common options; a command's own are below. */
enum {
    ANALYSIS_FROM = 1000,
    ANALYSIS_TO,
    ANALYSIS_REPAIR,
    ANALYSIS_BINARY,
    ANALYSIS_JSON,
    ANALYSIS_WORDS,
    ANALYSIS_SKIP
};

/* clang-format off */
#define ANALYSIS_READ_ROWS                                                                         \
    {0, "from", "TIME",                                                                            \
     "only time from here on, counted from the first event:\n1.5s 20ms 300us",                     \
     TAKE(ANALYSIS_FROM)},                                                                         \
    {0, "to", "TIME", "only time up to here; +3ms counts from --from", TAKE(ANALYSIS_TO)},         \
    {0, "repair", NULL, "Go 1.5 to 1.21: repair what has no consistent order",                     \
     TAKE(ANALYSIS_REPAIR)},                                                                       \
    {0, "binary", "FILE", "Go 1.5 and 1.6: the traced program, for names", TAKE(ANALYSIS_BINARY)}, \
        WORDS_ROW(ANALYSIS_WORDS)
#define ANALYSIS_ROWS                                                                              \
    ANALYSIS_READ_ROWS, {'j', "json", NULL, "one JSON object", TAKE(ANALYSIS_JSON)}
/* Of commands that name places. */
#define SKIP_FRAMES_ROW {0, "skip-frames", "FILE", SKIP_FRAMES_HELP, TAKE(ANALYSIS_SKIP)}
/* clang-format on */

struct input;

/* Set `command` and `options.what`, and leave the rest zero. */
struct analysis {
    const struct command *command;
    const char *word;
    trail_analysis_options options;
    struct window window;
    bool repair, json;
    bool streams; /* answers are shown while the trace is read */
    const char *binary;
    const char **skip_frames; /* of --skip-frames */
    struct symbols *symbols;  /* of the binary */
    struct vocabulary vocabulary;
    trail_source *source;
    trail_reader *reader;
    trail_analysis *answers; /* NULL: there are none */
    trail_analysis_span span;
    struct input *input; /* what is opened; NULL: the word. Is the caller's */
    trail_error damage;  /* if the exit code is EXIT_BAD */
};

/* Takes a common option. EXIT_GOOD or EXIT_USAGE. */
int analysis_option(struct analysis *analysis, int id, const char *value);

/* After the options: takes the one word. EXIT_GOOD or EXIT_USAGE. */
int analysis_words(struct analysis *analysis, const struct options *options);

/* The same where there are other words too. */
int analysis_word(struct analysis *analysis, const char *word);

/* The whole command line of a command that has the common options only. EXIT_GOOD, EXIT_USAGE or OPTIONS_HELP. */
int analysis_parse(struct analysis *analysis, int argc, char **argv);

/* Opens the file, which analysis_run does if nobody did: `reader` is there then. The exit code. */
int analysis_open(struct analysis *analysis);

/* Another reader of the same trace, as the command line wants it. NULL: *err says why. */
trail_reader *analysis_reader(const struct analysis *analysis, trail_source *source,
                              trail_error *err);

/* Reads the file. The exit code; `answers` may be there although it is not EXIT_GOOD. */
int analysis_run(struct analysis *analysis);
void analysis_close(struct analysis *analysis);

/*
 * All that a command does once its line is parsed, which gave `code`: reads the file, shows the answers if there are any,
 * closes. The command's exit code.
 */
int analysis_answer(struct analysis *analysis, int code, int (*show)(void *context), void *context);

/* Chooses the vocabulary by what made the trace, which is known once events were read; analysis_run does it. */
void analysis_speak(struct analysis *analysis);

/* A reason of a wait for people; there is one also where the trace gives none. */
trail_string analysis_reason(const struct analysis *analysis, trail_name reason);

/* A name as text: "(unknown)" if there is none. */
trail_string analysis_text(const struct analysis *analysis, trail_name name);

/* The members of a trail_times. */
void analysis_json_times(const struct analysis *analysis, struct json *json,
                         const trail_times *times);

/* A spread as an object: least, mean, quantiles, buckets. */
void analysis_json_histogram(struct json *json, const char *key, const trail_histogram *histogram);

/* The members of a group, with its distributions. */
void analysis_json_group(const struct analysis *analysis, struct json *json,
                         const trail_group *group);

/* Reads the name of a column into *column. EXIT_GOOD or EXIT_USAGE. */
int analysis_column(const struct analysis *analysis, const char *word, trail_column *column);
#define ANALYSIS_COLUMNS "total exec sched-wait block syscall syscall-block"

/* "select 3.2 s, network 1 s": what was waited for, longest first, at most `most` of them. */
/* The members of a wait: "reason", and where they are recorded "wait_kind" and "object". */
void analysis_json_wait(const struct analysis *analysis, struct json *json, trail_name wait);

/* "waiting for mutex stats_mu"; where the kind is not recorded, the reason. Any bytes of the trace. */
enum { WAIT_TEXT_SIZE = 320 };
trail_string analysis_wait_text(const struct analysis *analysis, trail_name wait,
                                char buf[WAIT_TEXT_SIZE]);

const char *analysis_reasons(const struct analysis *analysis, const trail_times *times,
                             unsigned most, char *buf, size_t size);

#endif
