/*
 * Options of a sub-command, as a table: the parser, --help, the suggestion for a mistyped word and
 * the shell completions all come from the same rows. A row ends with where its value goes: into a
 * member of what the command is asked for, or to a function.
 *
 *     static const struct option rows[] = {
 *         {'q', "quiet", NULL, "no summary", TO_FLAG(struct request, quiet)},
 *         {0, "idle", "TIME", "end so long after the last request (300s)",
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
 * Accepted: --opt=value, --opt value, -n value, -nvalue, -ab for flags, and -- after which
 * everything is a word. Options and words may be mixed, but for a command whose words are another
 * command. --help is every command's.
 */
#ifndef TRAIL_UI_OPTIONS_H
#define TRAIL_UI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum option_type {
    OPTION_TAKE,       /* is handed to the command's function */
    OPTION_FLAG,       /* a bool, which becomes true */
    OPTION_TEXT,       /* the value as it is; it lasts as long as argv */
    OPTION_NUMBER,     /* decimal */
    OPTION_LIMIT,      /* a number, or 0: none, which becomes the largest */
    OPTION_SIZE,       /* see parse_size */
    OPTION_SIZE_LIMIT, /* a size, or 0: none, which becomes the largest */
    OPTION_TIME,       /* in ns, see parse_time */
    OPTION_WORD,       /* one of `words`: its number */
    OPTION_WORDS,      /* several, with commas between: their numbers ORed */
};

struct option_word {
    const char *word; /* NULL ends a list */
    uint32_t number;
};

struct option {
    char short_name;      /* 0: none */
    const char *name;     /* without the dashes; NULL ends the table */
    const char *argument; /* name of its value; NULL: a flag. FILE and DIR complete file names */
    const char *help;

    /* One of the macros below. */
    enum option_type type;
    int id;          /* of OPTION_TAKE */
    size_t at, size; /* of the others: the member */
    const struct option_word *words;

    /* Where it is not said, anything. */
    uint64_t least, most; /* of a number, size or time; most 0: any */
    const char *expects;  /* what a value is, where it is none: "a time like 300s" */
    const char *values; /* words that it takes, separated by spaces, for completion, but `words` */
};

#define TAKE(number) .type = OPTION_TAKE, .id = (number)

/* `member` of the struct that options_each has as its context; of the right type, or it does not compile. */
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
    OPTION_TO(OPTION_WORD, request, member, int : 1, unsigned : 1), .words = (list)
#define TO_WORDS(request, member, list)                                                            \
    OPTION_TO(OPTION_WORDS, request, member, uint32_t : 1), .words = (list)

#define OPTION_TO(kind, request, member, ...)                                                      \
    .type = (kind), .at = offsetof(request, member),                                               \
    .size = sizeof(((request *)0)->member) * _Generic(((request *)0)->member, __VA_ARGS__)

struct command {
    const char *name;
    const char *summary;    /* one line */
    const char *synopsis;   /* what follows the name: "[options] FILE..." */
    void (*list)(FILE *to); /* a paragraph of --help that is made from a table; or NULL */
    const char *details;    /* paragraphs of --help */
    const char *examples;   /* lines of --help */
    const struct option *options;
    int (*run)(const struct command *command, int argc, char **argv);
    bool no_input; /* it reads no trace, and has no input_options */
    /* Its words are another command line: all that follows the first word, options included, belongs to that. */
    bool has_command;
};

/* What the row of commands.def says of one: the first of its members. */
#define COMMAND_ROW(row) .name = #row, .summary = command_summary_##row

#define COMMAND(name, ...) extern const char command_summary_##name[];
#include "commands.def"
#undef COMMAND

/*
 * The options of all commands that read traces: how much compressed input may give, which is set for open_source
 * and input_open; trail(1) has them.
 */
extern const struct option input_options[];

/* A command line that was parsed. */
struct options {
    /* The arguments that are not options, in order; points into argv. With has_command, NULL ends it if it ends argv. */
    char **words;
    int word_count;

    /* While it is parsed. */
    const struct command *command;
    char **argv;
    int argc, at;
    const char *cluster; /* rest of a word of short flags */
    const char *value;   /* of the option just found */
};

enum { OPTIONS_HELP = -2 }; /* --help was asked for, and printed */

/*
 * Parses the words after the command's name. Puts values into `request`, and hands each option of TAKE to `take`,
 * which may be NULL if there is none, and returns EXIT_GOOD or an exit code. Returns EXIT_GOOD, what `take`
 * returned, EXIT_USAGE after telling the mistake on stderr, or OPTIONS_HELP; the words are then in *options.
 */
int options_each(struct options *options, const struct command *command, int argc, char **argv,
                 int (*take)(void *request, int id, const char *value), void *request);

/* The words that an option takes, separated by spaces: into `buf`, if they are not there yet. NULL: any. */
enum { OPTION_VALUES_SIZE = 128 };
const char *option_values(const struct option *row, char *buf);

/* Adds the IDs in "18,22"; each may have one of the letters in front. EXIT_GOOD or EXIT_USAGE. */
struct id_list;
int ids_option(const struct command *command, const char *value, const char *letters,
               struct id_list *list);

/* Says on stderr what is wrong with the command line, and where to read more. Returns EXIT_USAGE.
 */
int usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where to read more. Returns EXIT_USAGE. */
int usage_hint(const struct command *command);

void command_help(const struct command *command, FILE *to);

/* Of words, ended by NULL, the one that `word` is most likely a slip of; NULL if none is near. */
const char *nearest_word(const char *word, const char *const *words);

/* The number of insertions, deletions, replacements and swaps that make `a` from `b`, without case.
 */
unsigned edit_distance(const char *a, const char *b);

#endif
