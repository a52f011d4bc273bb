/*
 * Options of a sub-command, as a table: the parser, --help, the suggestion for a mistyped word and
 * the shell completions all come from the same rows.
 *
 *     static const struct option rows[] = {
 *         {OPT_LIMIT, 'n', "limit", "N", "print at most N events", NULL},
 *         {0},
 *     };
 *
 *     static int take(void *context, int id, const char *value)
 *     {
 *         switch (id) { case OPT_LIMIT: ... }
 *     }
 *
 *     int code = options_each(&options, command, argc, argv, take, &request);
 *
 * Accepted: --opt=value, --opt value, -n value, -nvalue, -ab for flags, and -- after which
 * everything is a word. Options and words may be mixed. --help is every command's.
 */
#ifndef TRAIL_CLI_OPTIONS_H
#define TRAIL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct option {
    int id;               /* > 0, unique in its table; 0 ends the table */
    char short_name;      /* 0: none */
    const char *name;     /* without the dashes */
    const char *argument; /* name of its value; NULL: a flag. FILE and DIR complete file names */
    const char *help;
    const char *values; /* the words that it takes, separated by spaces, for completion; or NULL */
};

struct command {
    const char *name;
    const char *summary;  /* one line */
    const char *synopsis; /* what follows the name: "[options] FILE..." */
    const char *details;  /* paragraphs of --help */
    const char *examples; /* lines of --help */
    const struct option *options;
    int (*run)(const struct command *command, int argc, char **argv);
};

/* The state of parsing one command line; set up by options_begin. */
struct options {
    const struct command *command;
    char **argv;
    int argc, at;
    const char *cluster; /* rest of a word of short flags */
    const char *value;   /* of the option just returned */
    char **words;        /* what is no option; in order, in the front of argv */
    int word_count;
};

/* argv[0] is the first word after the command's name. */
void options_begin(struct options *options, const struct command *command, int argc, char **argv);

enum {
    OPTIONS_END = 0,
    OPTIONS_WRONG = -1, /* the mistake was told on stderr: exit with EXIT_USAGE */
    OPTIONS_HELP = -2   /* --help was asked for, and printed */
};

/* The ID of the next option, or one of the above. */
int options_next(struct options *options);

/*
 * Hands each option to `take`, which returns EXIT_GOOD or an exit code. Returns EXIT_GOOD, what `take`
 * returned, EXIT_USAGE or OPTIONS_HELP; the words are then in *options.
 */
int options_each(struct options *options, const struct command *command, int argc, char **argv,
                 int (*take)(void *context, int id, const char *value), void *context);

/* The value of --limit: how many, 0 for all, which is SIZE_MAX. EXIT_GOOD or EXIT_USAGE. */
int limit_option(const struct command *command, const char *value, size_t *limit);

/* Adds the IDs in "18,22"; each may have one of the letters in front. EXIT_GOOD or EXIT_USAGE. */
struct id_list;
int ids_option(const struct command *command, const char *value, const char *letters,
               struct id_list *list);

/* Says on stderr what is wrong with the command line, and where to read more. Returns EXIT_USAGE.
 */
int usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void command_help(const struct command *command, FILE *to);

/* Of words, ended by NULL, the one that `word` is most likely a slip of; NULL if none is near. */
const char *nearest_word(const char *word, const char *const *words);

/* The number of insertions, deletions, replacements and swaps that make `a` from `b`, without case.
 */
unsigned edit_distance(const char *a, const char *b);

#endif
