/*
 * Options of a sub-command, as a table: the parser, --help, suggestions for mistyped words and
 * shell completions all use the same rows. A row ends with the destination of its value: a member
 * of the command's request, or a function.
 *
 *     static const struct option rows[] = {
 *         {'q', "quiet", NULL, "no summary", TO_FLAG(struct request, quiet)},
 *         {0, "idle", "TIME", "end this time after the last request (300s)",
 *          TO_TIME(struct request, idle_ns), .expects = "a time like 300s"},
 *         {'f', "format", "FORM", "the form of the output: ...", TAKE(OPT_FORMAT)},
 *         {0},
 *     };
 *
 *     static int take(void *context, int id, const char *value)
 *     {
 *         switch (id) { case OPT_FORMAT: ... }
 *     }
 *
 *     int code = options_each(&options, command, argc, argv, take, &request);
 *
 * Accepted: --opt=value, --opt value, -n value, -nvalue, -ab for flags, and --, after which
 * everything is an argument. Options and arguments may be mixed, except in a command whose
 * arguments are another command. Every command has --help.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
    OPTION_TAKE,       /* passed to the command's function */
    OPTION_FLAG,       /* a bool that is set to true */
    OPTION_TEXT,       /* the value itself, valid as long as argv */
    OPTION_NUMBER,     /* decimal */
    OPTION_LIMIT,      /* a number; 0: no limit, stored as the maximum */
    OPTION_SIZE,       /* see parse_size */
    OPTION_SIZE_LIMIT, /* a size; 0: no limit, stored as the maximum */
    OPTION_TIME,       /* in ns, see parse_time */
    OPTION_WORD,       /* one of `words`, stored as its number */
    OPTION_WORDS,      /* several, separated by commas: their numbers ORed */
    OPTION_IDS,        /* numbers, added to a struct id_list */
    OPTION_PARSED,     /* by a function of its own */
};

struct option_word {
    const char *word; /* NULL ends a list */
    uint32_t number;
};

struct command;

struct option {
    char short_name;      /* 0: none */
    const char *name;     /* without the dashes; NULL ends the table */
    const char *argument; /* name of its value; NULL: a flag. FILE and DIR complete file names */
    const char *help;

    /* Set by one of the macros below. */
    enum option_type type;
    int id;          /* of OPTION_TAKE */
    size_t at, size; /* of the other types: the destination member */
    const struct option_word *words;
    const char *letters; /* for OPTION_IDS: any of these may precede a number */
    /* Stores the value in the member. Returns EXIT_GOOD, or an exit code after a message. */
    int (*parse)(const struct command *command, void *member, const char *value);

    /* Any value if both are 0. */
    uint64_t least, most; /* of a number, size or time; most 0: any */
    const char *expects;  /* described in errors: "a time like 300s" */
    const char *values;   /* words for completion, separated by spaces; NULL: all of `words` */
};

#define TAKE(number) .type = OPTION_TAKE, .id = (number)

/* `member` belongs to the struct that options_each gets as its context; a wrong type does not
 * compile. */
#define TO_FLAG(request, member) OPTION_TO(OPTION_FLAG, request, member, bool : 1)
#define TO_TEXT(request, member) OPTION_TO(OPTION_TEXT, request, member, const char * : 1)
#define TO_NUMBER(request, member)                                                                 \
    OPTION_TO(OPTION_NUMBER, request, member, unsigned : 1, unsigned long : 1,                     \
              unsigned long long : 1)
#define TO_LIMIT(request, member)                                                                  \
    OPTION_TO(OPTION_LIMIT, request, member, unsigned : 1, unsigned long : 1,                      \
              unsigned long long : 1)
#define TO_SIZE(request, member)       OPTION_TO(OPTION_SIZE, request, member, uint64_t : 1)
#define TO_SIZE_LIMIT(request, member) OPTION_TO(OPTION_SIZE_LIMIT, request, member, uint64_t : 1)
#define TO_TIME(request, member)       OPTION_TO(OPTION_TIME, request, member, int64_t : 1)
#define TO_WORD(request, member, list)                                                             \
    OPTION_TO(OPTION_WORD, request, member, bool : 1, int : 1, unsigned : 1), .words = (list)
#define TO_WORDS(request, member, list)                                                            \
    OPTION_TO(OPTION_WORDS, request, member, uint32_t : 1), .words = (list)

#define TO_IDS(request, member, any_of)                                                            \
    OPTION_TO(OPTION_IDS, request, member, struct id_list : 1), .letters = (any_of)
#define TO_PARSED(request, member, type, function)                                                 \
    OPTION_TO(OPTION_PARSED, request, member, type : 1), .parse = (function)

#define OPTION_TO(kind, request, member, ...)                                                      \
    .type = (kind), .at = offsetof(request, member),                                               \
    .size = sizeof(((request *)0)->member) * _Generic(((request *)0)->member, __VA_ARGS__)

struct command {
    const char *name;
    const char *summary;    /* one line */
    const char *synopsis;   /* what follows the name: "[options] FILE..." */
    void (*list)(FILE *to); /* prints a paragraph of --help from a table; or NULL */
    const char *details;    /* paragraphs of the help */
    const char *examples;   /* lines of the help */
    const struct option *options;
    int (*run)(const struct command *command, int argc, char **argv);
    bool no_input; /* it reads no trace, and does not accept input_options */
    bool wrapped;  /* on a terminal its lines are broken between words (ui/wrap.h) */
    /* Its arguments are another command line: everything after the first argument, options
     * included, belongs to that. */
    bool has_command;
};

/* What all commands have: their row in commands.def, and `rows` and `run` of their file. */
#define COMMAND_ROW(row) .name = #row, .summary = command_summary_##row, .options = rows, .run = run

#define COMMAND(name, ...) extern const char command_summary_##name[];
#include "commands.def"

/*
 * Options of all commands that read traces: limits on decompressed input, which apply to
 * open_source and input_open; see trail(1).
 */
extern const struct option input_options[];

/* A parsed command line. */
struct options {
    /* Arguments that are not options, in order; points into argv. With has_command, NULL-terminated
     * if it ends argv. */
    char **words;
    int word_count;

    /* Used while parsing. */
    const struct command *command;
    char **argv;
    int argc, at;
    const char *cluster; /* rest of a group of short flags */
    const char *value;   /* of the current option */
};

enum { OPTIONS_HELP = -2 }; /* --help was given, and help printed: success for command_run */

/*
 * Parses the arguments after the command's name. Stores values in `request`, and passes each TAKE
 * option to `take`, which returns EXIT_GOOD or an exit code; it may be NULL if there are none.
 * Returns EXIT_GOOD with the arguments in *options, the exit code of `take`, EXIT_USAGE after a
 * message on stderr, or OPTIONS_HELP.
 */
int options_each(struct options *options, const struct command *command, int argc, char **argv,
                 int (*take)(void *request, int id, const char *value), void *request);

/* Runs the command. Returns its exit code. */
int command_run(const struct command *command, int argc, char **argv);

/* Returns the option after `row`, or the first for NULL; input_options, if the command accepts
 * them, come last. NULL: none left. */
const struct option *option_next(const struct command *command, const struct option *row);

#define OPTION_EACH(row, command)                                                                  \
    for (const struct option *row = NULL; (row = option_next(command, row)) != NULL;)

/*
 * Returns the words that an option accepts, separated by spaces, in `buf` if necessary; NULL: any.
 */
enum { OPTION_VALUES_SIZE = 128 };
const char *option_values(const struct option *row, char *buf);

/* Prints the error in the command line, and a hint to --help, on stderr. Returns EXIT_USAGE. */
int usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Prints that `word` is not a `what` among `names`, which end with NULL, and suggests the nearest.
 * `list` has them as text. Returns EXIT_USAGE.
 */
int unknown_word(const struct command *command, const char *what, const char *word,
                 const char *const *names, const char *list);

/* Prints the hint to --help. Returns EXIT_USAGE. */
int usage_hint(const struct command *command);

void command_help(const struct command *command, FILE *to);

/*
 * Returns the word of a NULL-terminated list that `word` most likely means; NULL if none is near.
 */
const char *nearest_word(const char *word, const char *const *words);

/* Returns the number of insertions, deletions, replacements and swaps between `a` and `b`, ignoring
 * case. */
unsigned edit_distance(const char *a, const char *b);
