#include "cli/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/values.h"

/* MARK: Slips of the pen */

#define LONGEST_WORD 40

static unsigned least(unsigned a, unsigned b, unsigned c)
{
    unsigned m = a < b ? a : b;
    return m < c ? m : c;
}

unsigned edit_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    if (n > LONGEST_WORD || m > LONGEST_WORD)
        return LONGEST_WORD;
    /* Three rows of the matrix: of a's prefix of i letters against all prefixes of b. */
    unsigned rows[3][LONGEST_WORD + 1];
    unsigned *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                y == tolower((unsigned char)a[i - 2]) && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        unsigned *oldest = before;
        before = last;
        last = row;
        row = oldest;
    }
    return last[m];
}

const char *nearest_word(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    size_t length = strlen(word);
    /* One slip in three letters is still taken for a slip. */
    unsigned best = (unsigned)(length > LONGEST_WORD ? 0 : length / 3 + 1);
    for (; *words; words++) {
        unsigned distance = edit_distance(word, *words);
        bool begins = length >= 2 && strncmp(*words, word, length) == 0;
        if (begins)
            distance = 1;
        if (distance < best || (!nearest && distance == best && distance < length)) {
            best = distance;
            nearest = *words;
        }
    }
    return nearest;
}

int usage_error(const struct command *command, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(message, sizeof message, format, args);
    va_end(args);
    fprintf(stderr, "trail: %s%s%s", command ? command->name : "", command ? ": " : "", message);
    fprintf(stderr, "\nTry 'trail %s%s--help'.\n", command ? command->name : "",
            command ? " " : "");
    return EXIT_USAGE;
}

/* MARK: Parsing */

void options_begin(struct options *options, const struct command *command, int argc, char **argv)
{
    *options = (struct options){.command = command, .argc = argc, .argv = argv, .words = argv};
}

static int unknown_option(const struct options *options, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST + 2] = {"help"};
    size_t count = 1;
    for (const struct option *row = options->command->options; row->id && count < MOST; row++)
        names[count++] = row->name;
    const char *nearest = nearest_word(name, names);
    if (nearest)
        (void)usage_error(options->command, "unknown option '--%s'; did you mean '--%s'?", name,
                          nearest);
    else
        (void)usage_error(options->command, "unknown option '--%s'", name);
    return OPTIONS_WRONG;
}

static int take_value(struct options *options, const struct option *row, const char *attached)
{
    options->value = attached;
    if (!row->argument || attached)
        return row->id;
    if (options->at >= options->argc) {
        (void)usage_error(options->command, "'--%s' needs a value: %s", row->name, row->argument);
        return OPTIONS_WRONG;
    }
    options->value = options->argv[options->at++];
    return row->id;
}

static int long_option(struct options *options, const char *word)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (length == 4 && strncmp(word, "help", 4) == 0) {
        command_help(options->command, stdout);
        return OPTIONS_HELP;
    }
    for (const struct option *row = options->command->options; row->id; row++) {
        if (strlen(row->name) != length || strncmp(row->name, word, length) != 0)
            continue;
        if (equals && !row->argument) {
            (void)usage_error(options->command, "'--%s' takes no value", row->name);
            return OPTIONS_WRONG;
        }
        return take_value(options, row, equals ? equals + 1 : NULL);
    }
    char name[LONGEST_WORD + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 1000 ? length : 1000), word);
    return unknown_option(options, name);
}

static int short_option(struct options *options)
{
    char c = *options->cluster++;
    if (c == 'h') {
        command_help(options->command, stdout);
        return OPTIONS_HELP;
    }
    for (const struct option *row = options->command->options; row->id; row++) {
        if (row->short_name != c)
            continue;
        if (!row->argument)
            return row->id;
        const char *attached = *options->cluster ? options->cluster : NULL;
        options->cluster = NULL;
        return take_value(options, row, attached);
    }
    (void)usage_error(options->command, "unknown option '-%c'", c);
    return OPTIONS_WRONG;
}

int options_next(struct options *options)
{
    options->value = NULL;
    if (options->cluster && *options->cluster)
        return short_option(options);
    while (options->at < options->argc) {
        char *word = options->argv[options->at++];
        if (strcmp(word, "--") == 0) {
            while (options->at < options->argc)
                options->words[options->word_count++] = options->argv[options->at++];
            break;
        }
        if (word[0] == '-' && word[1] == '-')
            return long_option(options, word + 2);
        if (word[0] == '-' && word[1] != '\0') {
            options->cluster = word + 1;
            return short_option(options);
        }
        options->words[options->word_count++] = word;
    }
    return OPTIONS_END;
}

int options_each(struct options *options, const struct command *command, int argc, char **argv,
                 int (*take)(void *context, int id, const char *value), void *context)
{
    int id;
    options_begin(options, command, argc, argv);
    while ((id = options_next(options)) > 0) {
        int wrong = take(context, id, options->value);
        if (wrong != EXIT_GOOD)
            return wrong;
    }
    if (id == OPTIONS_HELP)
        return OPTIONS_HELP;
    return id == OPTIONS_END ? EXIT_GOOD : EXIT_USAGE;
}

int limit_option(const struct command *command, const char *value, size_t *limit)
{
    int64_t number;
    if (!parse_id(value, "", &number))
        return usage_error(command, "--limit is a number, not '%s'", value);
    *limit = number == 0 ? SIZE_MAX : (size_t)number;
    return EXIT_GOOD;
}

int ids_option(const struct command *command, const char *value, const char *letters,
               struct id_list *list)
{
    if (parse_id_list(value, letters, list))
        return EXIT_GOOD;
    return usage_error(command, "'%s' is no list of numbers like 18 or 18,22", value);
}

/* MARK: Help */

#define HELP_COLUMN 28

static void option_help(const struct option *row, FILE *to)
{
    char left[80];
    int n = 0;
    if (row->short_name)
        n = snprintf(left, sizeof left, "  -%c, --%s", row->short_name, row->name);
    else
        n = snprintf(left, sizeof left, "      --%s", row->name);
    if (row->argument)
        n += snprintf(left + n, sizeof left - (size_t)n, "=%s", row->argument);
    fprintf(to, "%-*s", HELP_COLUMN, left);
    if (n >= HELP_COLUMN)
        fprintf(to, "\n%*s", HELP_COLUMN, "");
    /* A newline in the text goes on in the same column. */
    for (const char *c = row->help; *c; c++) {
        fputc(*c, to);
        if (*c == '\n')
            fprintf(to, "%*s", HELP_COLUMN, "");
    }
    fputc('\n', to);
}

void command_help(const struct command *command, FILE *to)
{
    static const struct option help = {1, 'h', "help", NULL, "show this text", NULL};
    fprintf(to, "trail %s - %s\n\nUsage: trail %s %s\n", command->name, command->summary,
            command->name, command->synopsis);
    if (command->details)
        fprintf(to, "\n%s\n", command->details);
    fputs("\nOptions:\n", to);
    for (const struct option *row = command->options; row->id; row++)
        option_help(row, to);
    option_help(&help, to);
    if (command->examples)
        fprintf(to, "\nExamples:\n%s\n", command->examples);
}
