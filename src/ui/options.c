/* Parses command lines by tables of options, and prints help. */
#include "ui/options.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ui/cli.h"
#include "ui/values.h"

const struct option input_options[] = {
    {0, "max-inflated", "SIZE", "limit of decompressed input",
     TO_SIZE_LIMIT(struct input_limits, max_bytes), .expects = "a size like 100G, or 0 for any"},
    {0, "max-ratio", "N", "decompressed input may be N times as large",
     TO_LIMIT(struct input_limits, max_ratio), .expects = "a number like 1000, or 0 for any"},
    {0, "threads", "N", "maximum number of threads that read and process a trace",
     TO_NUMBER(struct input_limits, threads), .least = 1, .most = 1024,
     .expects = "a number from 1 to 1024"},
    {0},
};

#define COMMAND(name, group, where, summary, parameters)                                           \
    const char command_summary_##name[] = summary;
#include "commands.def"

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
    /* Three rows of the distance matrix: of a's prefix of i letters against all prefixes of b. */
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
    /* Up to one difference in three letters counts as a typing error. */
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
    print_message("%s%s%s", command ? command->name : "", command ? ": " : "", message);
    return usage_hint(command);
}

int unknown_word(const struct command *command, const char *what, const char *word,
                 const char *const *names, const char *list)
{
    const char *nearest = nearest_word(word, names);
    return usage_error(command, "no %s '%s'; %s%s%sthere are %s", what, word,
                       nearest ? "did you mean '" : "", nearest ? nearest : "",
                       nearest ? "'? " : "", list);
}

int usage_hint(const struct command *command)
{
    fprintf(stderr, "Try 'trail %s%s--help'.\n", command ? command->name : "", command ? " " : "");
    return EXIT_USAGE;
}

/* MARK: Values */

static const struct option_word *find_word(const struct option_word *words, const char *text,
                                           size_t length)
{
    for (; words->word; words++)
        if (strlen(words->word) == length && strncmp(words->word, text, length) == 0)
            return words;
    return NULL;
}

/* Parses "locks,io". */
static bool parse_words(const struct option_word *words, const char *text, uint64_t *numbers)
{
    bool any = *text != '\0';
    for (*numbers = 0; *text;) {
        size_t length = strcspn(text, ",");
        const struct option_word *word = find_word(words, text, length);
        if (!word)
            return false;
        *numbers |= word->number;
        text += length + (text[length] == ',');
    }
    return any;
}

/* Parses a numeric value, or a word that stands for one. Returns false if it is neither. */
static bool parse_value(const struct option *row, const char *text, uint64_t *value)
{
    const struct option_word *word;
    int64_t number = 0;
    switch (row->type) {
    case OPTION_FLAG:
        *value = true;
        return true;
    case OPTION_SIZE:
    case OPTION_SIZE_LIMIT:
        return parse_size(text, value);
    case OPTION_WORD:
        word = find_word(row->words, text, strlen(text));
        *value = word ? word->number : 0;
        return word != NULL;
    case OPTION_WORDS:
        return parse_words(row->words, text, value);
    default:
        if (!(row->type == OPTION_TIME ? parse_time(text, &number) : parse_id(text, "", &number)))
            return false;
        *value = (uint64_t)number;
        return true;
    }
}

/* Stores the value in the member at `to`. Returns false if it is not valid. */
static bool put_value(const struct option *row, void *to, const char *text)
{
    uint64_t value;
    uint64_t largest = row->size >= sizeof value ? UINT64_MAX : (UINT64_C(1) << 8 * row->size) - 1;
    if (row->type == OPTION_TEXT) {
        memcpy(to, &text, sizeof text);
        return true;
    }
    if (!parse_value(row, text, &value) || value < row->least || value > largest ||
        (row->most > 0 && value > row->most))
        return false;
    if (value == 0 && (row->type == OPTION_LIMIT || row->type == OPTION_SIZE_LIMIT))
        value = largest;
    if (row->size == sizeof(uint64_t))
        memcpy(to, &value, sizeof value);
    else if (row->size == sizeof(uint32_t))
        memcpy(to, &(uint32_t){(uint32_t)value}, sizeof(uint32_t));
    else
        *(bool *)to = value;
    return true;
}

static int take_value(const struct options *options, const struct option *row, void *request)
{
    void *to = (char *)request + row->at;
    if (row->type == OPTION_PARSED)
        return row->parse(options->command, to, options->value);
    if (row->type == OPTION_IDS)
        return parse_id_list(options->value, row->letters, to)
                   ? EXIT_GOOD
                   : usage_error(options->command, "'%s' is not a list of numbers like 18 or 18,22",
                                 options->value);
    if (put_value(row, to, options->value))
        return EXIT_GOOD;
    if (row->expects)
        return usage_error(options->command, "--%s is %s, not '%s'", row->name, row->expects,
                           options->value);
    return usage_error(options->command, "'%s' is not a value for this option", options->value);
}

const char *option_values(const struct option *row, char *buf)
{
    size_t size = 0;
    if (row->values || !row->words)
        return row->values;
    for (const struct option_word *word = row->words; word->word && size < OPTION_VALUES_SIZE;
         word++)
        size += (size_t)snprintf(buf + size, OPTION_VALUES_SIZE - size, "%s%s", size ? " " : "",
                                 word->word);
    return buf;
}

/* MARK: Help */

static const struct option help_row = {'h', "help", NULL, "show this text", TAKE(1)};

/* The column of the options' texts, and the limits of lines and screens. */
enum { HELP_COLUMN = 28, HELP_WIDTH = 80, HELP_LINES = 24, EXPLAINED_ALL = 64 };

/* Prints a text in lines of whole words; all lines but the first are indented by `indent`. */
static void put_text(const char *text, int indent, FILE *to)
{
    for (int at = indent; *text;) {
        int spaces = (int)strspn(text, " "), size = (int)strcspn(text + spaces, " \n");
        if (at > indent && at + spaces + size > HELP_WIDTH) {
            at = indent + size;
            fprintf(to, "\n%*s%.*s", indent, "", size, text + spaces);
        } else {
            at += spaces + size;
            fprintf(to, "%.*s", spaces + size, text);
        }
        text += spaces + size;
        if (*text == '\n') {
            at = indent;
            fprintf(to, "\n%*s", indent, "");
            text++;
        }
    }
    fputc('\n', to);
}

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
    put_text(row->help, HELP_COLUMN, to);
}

static void print_head(const struct command *command, FILE *to)
{
    char head[256];
    (void)snprintf(head, sizeof head, "trail %s - %s", command->name, command->summary);
    put_text(head, 4, to);
    fprintf(to, "\nUsage: trail %s %s\n", command->name, command->synopsis);
}

void command_help(const struct command *command, FILE *to)
{
    print_head(command, to);
    if (command->list) {
        fputc('\n', to);
        command->list(to);
    }
    if (command->details) {
        fputc('\n', to);
        put_text(command->details, 0, to);
    }
    fputs("\nOptions:\n", to);
    for (const struct option *row = command->options; row->name; row++)
        option_help(row, to);
    option_help(&help_row, to);
    if (!command->no_input)
        fputs("\nTo limit decompressed size, see trail(1).\n", to);
    if (command->examples)
        fprintf(to, "\nExamples:\n%s\n", command->examples);
}

/* Prints the names of options. */
static void print_names(const struct option *row, FILE *to)
{
    char names[2048];
    size_t used = 0;
    for (; row->name && used < sizeof names; row++)
        used += (size_t)snprintf(names + used, sizeof names - used, "--%s ", row->name);
    if (used < sizeof names)
        (void)snprintf(names + used, sizeof names - used, "--%s", help_row.name);
    fputs("  and ", to);
    put_text(names, 6, to);
}

/* Prints at most `most` of the examples that fit a line. */
static void print_examples(const char *examples, int most, FILE *to)
{
    fputs("\nExamples:\n", to);
    while (*examples && most > 0) {
        size_t size = strcspn(examples, "\n");
        most -= size <= HELP_WIDTH;
        if (size <= HELP_WIDTH)
            fprintf(to, "%.*s\n", (int)size, examples);
        examples += size + (examples[size] == '\n');
    }
}

/* The same with the texts of `explained` options, the names of the others, and few examples. */
static void print_brief(const struct command *command, int explained, FILE *to)
{
    const struct option *row = command->options;
    print_head(command, to);
    fputs("\nOptions:\n", to);
    for (; explained > 0 && row->name; explained--)
        option_help(row++, to);
    print_names(row, to);
    if (command->examples)
        print_examples(command->examples, 2, to);
    fprintf(to, "\nFor the rest: trail help %s, or man trail-%s\n", command->name, command->name);
}

/* Whether each line and all together fit a screen. */
static bool fits(const char *text)
{
    int lines = 0;
    for (; *text; lines++) {
        size_t size = strcspn(text, "\n");
        if (size > HELP_WIDTH)
            return false;
        text += size + (text[size] == '\n');
    }
    return lines <= HELP_LINES;
}

/* Renders the help: in full, or with the texts of only `explained` options. The caller frees it;
 * NULL: out of memory. */
static char *render_help(const struct command *command, int explained)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    if (explained == EXPLAINED_ALL)
        command_help(command, to);
    else
        print_brief(command, explained, to);
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* Prints as much of the help as fits a screen. Returns OPTIONS_HELP, or EXIT_INOUT. */
static int print_help(const struct command *command)
{
    int explained = EXPLAINED_ALL;
    char *text = render_help(command, explained);
    while (text && explained > 0 && !fits(text)) {
        free(text);
        text = render_help(command, --explained);
    }
    if (!text)
        return exit_no_memory();
    fputs(text, stdout);
    free(text);
    return OPTIONS_HELP;
}

/* MARK: Parsing */

/* Whether a row is one of input_options, whose values are the same for all commands. */
static bool is_input_option(const struct option *row)
{
    for (const struct option *other = input_options; other->name; other++)
        if (row == other)
            return true;
    return false;
}

const struct option *option_next(const struct command *command, const struct option *row)
{
    row = row ? row + 1 : command->options;
    if (row->name || command->no_input)
        return row->name ? row : NULL;
    /* Where the command's rows end; input_options follow, or nothing. */
    const struct option *end = input_options;
    while (end->name)
        end++;
    return row == end ? NULL : input_options;
}

static int unknown_option(const struct options *options, const char *name)
{
    enum { MOST = 64 };
    const char *names[MOST + 2] = {help_row.name};
    size_t count = 1;
    OPTION_EACH(row, options->command)
        if (count < MOST)
            names[count++] = row->name;
    const char *nearest = nearest_word(name, names);
    if (nearest)
        return usage_error(options->command, "unknown option '--%s'; did you mean '--%s'?", name,
                           nearest);
    return usage_error(options->command, "unknown option '--%s'", name);
}

/* Finds the value in the same argument, or in the next. */
static int find_value(struct options *options, const struct option *row, const char *attached)
{
    if (attached)
        options->value = attached;
    if (!row->argument || attached)
        return EXIT_GOOD;
    if (options->at >= options->argc)
        return usage_error(options->command, "'--%s' needs a value: %s", row->name, row->argument);
    options->value = options->argv[options->at++];
    return EXIT_GOOD;
}

static const struct option *find_long(const struct command *command, const char *word,
                                      size_t length)
{
    const struct option *row = NULL;
    while ((row = option_next(command, row)))
        if (strlen(row->name) == length && strncmp(row->name, word, length) == 0)
            break;
    return row;
}

/* Sets *row, and its value in *options, like the functions below. Returns EXIT_GOOD or
 * EXIT_USAGE. */
static int long_option(struct options *options, const char *word, const struct option **row)
{
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    if (length == 4 && strncmp(word, "help", 4) == 0) {
        *row = &help_row;
        return EXIT_GOOD;
    }
    *row = find_long(options->command, word, length);
    if (*row && equals && !(*row)->argument)
        return usage_error(options->command, "'--%s' takes no value", (*row)->name);
    if (*row)
        return find_value(options, *row, equals ? equals + 1 : NULL);
    char name[LONGEST_WORD + 1];
    (void)snprintf(name, sizeof name, "%.*s", (int)(length < 1000 ? length : 1000), word);
    return unknown_option(options, name);
}

static int short_option(struct options *options, const struct option **row)
{
    char c = *options->cluster++;
    if (c == 'h') {
        *row = &help_row;
        return EXIT_GOOD;
    }
    for (*row = NULL; (*row = option_next(options->command, *row));)
        if ((*row)->short_name == c)
            break;
    if (!*row)
        return usage_error(options->command, "unknown option '-%c'", c);
    if (!(*row)->argument)
        return EXIT_GOOD;
    const char *attached = *options->cluster ? options->cluster : NULL;
    options->cluster = NULL;
    return find_value(options, *row, attached);
}

/* Takes the rest of the command line as arguments. */
static void take_words(struct options *options)
{
    if (options->command->has_command)
        options->words = options->argv + options->at;
    while (options->at < options->argc)
        options->words[options->word_count++] = options->argv[options->at++];
}

/* A query may begin with a comment of SQL. */
static bool is_comment(const char *word)
{
    return strncmp(word, "--", 2) == 0 && strspn(word + 2, " \t\n") > 0;
}

/* Sets *row to the next option; NULL: none left. */
static int next_option(struct options *options, const struct option **row)
{
    options->value = "";
    *row = NULL;
    if (options->cluster && *options->cluster)
        return short_option(options, row);
    while (options->at < options->argc) {
        char *word = options->argv[options->at++];
        bool dash = word[0] == '-' && !is_comment(word);
        if (dash && word[1] == '-' && word[2] != '\0')
            return long_option(options, word + 2, row);
        if (dash && word[1] != '\0' && word[1] != '-') {
            options->cluster = word + 1;
            return short_option(options, row);
        }
        if (dash && word[1] == '-') {
            take_words(options);
        } else if (options->command->has_command) {
            options->at--;
            take_words(options);
        } else {
            options->words[options->word_count++] = word;
        }
    }
    return EXIT_GOOD;
}

int options_each(struct options *options, const struct command *command, int argc, char **argv,
                 int (*take)(void *request, int id, const char *value), void *request)
{
    const struct option *row;
    *options = (struct options){.command = command, .argc = argc, .argv = argv, .words = argv};
    for (;;) {
        int wrong = next_option(options, &row);
        if (wrong || !row)
            return wrong;
        if (row == &help_row)
            return print_help(command);
        if (row->type == OPTION_TAKE)
            wrong = take(request, row->id, options->value);
        else
            wrong = take_value(options, row, is_input_option(row) ? &input_limits : request);
        if (wrong)
            return wrong;
    }
}

int command_run(const struct command *command, int argc, char **argv)
{
    int code = command->run(command, argc, argv);
    return code == OPTIONS_HELP ? EXIT_GOOD : code;
}
