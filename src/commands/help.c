#include "commands/help.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "ui/cli.h"

enum { WORD_SIZE = 40, ANSWERS_MOST = 5, NAMES_MOST = 400 };

/* MARK: Commands */

enum group { RECORDING, OVERVIEW, ANALYSIS, WRITING, OTHER, GROUPS };

static const char *const headings[GROUPS] = {
    [RECORDING] = "Record a program:",
    [OVERVIEW] = "Look at a trace:",
    [ANALYSIS] = "Find out what the program did:",
    [WRITING] = "Write traces, and for other tools:",
    [OTHER] = "Other:",
};

static const struct {
    const struct command *command;
    enum group group;
} all[] = {
#define COMMAND(name, group, ...) {&command_##name, group},
#include "commands.def"
};

enum { COMMANDS = sizeof all / sizeof *all };

const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(all[i].command->name, name) == 0)
            return all[i].command;
    return NULL;
}

static bool is_shown(const struct command *command)
{
    for (const struct command *const *c = commands; *c; c++)
        if (*c == command)
            return true;
    return false;
}

static void print_group(FILE *to, enum group group)
{
    bool any = false;
    for (size_t i = 0; i < COMMANDS; i++) {
        if (all[i].group != group || !is_shown(all[i].command))
            continue;
        if (!any)
            fprintf(to, "\n%s\n", headings[group]);
        any = true;
        fprintf(to, "  %-10s  %s\n", all[i].command->name, all[i].command->summary);
    }
}

void help_print(FILE *to)
{
    fputs("trail - record, read, analyse and show execution traces of C and Go programs\n\n"
          "Usage: trail COMMAND [options] FILE...\n",
          to);
    for (enum group group = 0; group < GROUPS; group++)
        print_group(to, group);
    fputs("\n"
          "  --help      show this text; 'trail COMMAND --help' that of a command\n"
          "  help WORD   list the commands for a question, as in 'trail help deadlock'\n"
          "  --version   show the version, and which libraries are found\n"
          "\n"
          "A FILE is a path, or - for stdin; plain, gzip, zstd or xz, recognised by content.\n"
          "\n"
          "Exit status: 0 good, 1 the trace is bad, 2 the command line is wrong or the program\n"
          "cannot be recorded, 3 cannot read or write.\n"
          "\n"
          "Examples:\n"
          "  trail record -- ./server --port=8080\n"
          "  trail summary app.trace\n"
          "  curl -s localhost:6060/debug/pprof/trace?seconds=30 | trail print -\n",
          to);
}

/* MARK: Topics */

struct answer {
    const char *line, *shows;
};

struct topic {
    const char *words;
    struct answer answers[ANSWERS_MOST]; /* the last is followed by a NULL `line` */
};

static const struct topic topics[] = {
#define ANSWER(line, shows) {line, shows},
#define TOPIC(words, ...)   {words, {__VA_ARGS__}},
#include "commands/topics.def"
};

enum { TOPICS = sizeof topics / sizeof *topics };

/* "Deadlocks" -> "deadlock". A word too long for any topic becomes "". */
static void normalise(const char *word, char normal[WORD_SIZE])
{
    size_t size = strlen(word);
    normal[0] = '\0';
    if (size >= WORD_SIZE)
        return;
    for (size_t i = 0; i <= size; i++)
        normal[i] = (char)tolower((unsigned char)word[i]);
    if (size > 3 && normal[size - 1] == 's' && normal[size - 2] != 's')
        normal[size - 1] = '\0';
}

static bool has_word(const char *words, const char *wanted)
{
    size_t size = strlen(wanted);
    for (const char *at = words; *at;) {
        size_t length = strcspn(at, " ");
        if (length == size && strncmp(at, wanted, size) == 0)
            return true;
        at += length + (at[length] == ' ');
    }
    return false;
}

/* Returns how many of the words a topic has. */
static int matches_of(const struct topic *topic, int count, char **words)
{
    int matches = 0;
    for (int i = 0; i < count; i++) {
        char normal[WORD_SIZE];
        normalise(words[i], normal);
        matches += has_word(topic->words, normal) || has_word(topic->words, words[i]);
    }
    return matches;
}

/* Prints the topics that match most of the words. Returns whether there is one. */
static bool print_topics(int count, char **words)
{
    int most = 0;
    for (size_t i = 0; i < TOPICS; i++) {
        int matches = matches_of(&topics[i], count, words);
        most = matches > most ? matches : most;
    }
    bool any = false;
    for (size_t i = 0; most > 0 && i < TOPICS; i++) {
        if (matches_of(&topics[i], count, words) < most)
            continue;
        if (any)
            putchar('\n');
        any = true;
        for (const struct answer *answer = topics[i].answers; answer->line; answer++)
            printf("%s\n    %s\n", answer->line, answer->shows);
    }
    return any;
}

/* MARK: Options */

static void print_option(const struct command *command, const struct option *option)
{
    printf("trail %s --%s%s%s\n", command->name, option->name, option->argument ? "=" : "",
           option->argument ? option->argument : "");
    printf("    %s\n", option->help);
}

/* Prints the options with that name, of all commands. Returns whether there is one. */
static bool print_options(const char *word)
{
    bool any = false;
    word += strspn(word, "-");
    for (size_t i = 0; i < COMMANDS; i++) {
        const struct option *option = all[i].command->options;
        for (; option && option->name; option++) {
            if (strcmp(option->name, word) != 0)
                continue;
            any = true;
            print_option(all[i].command, option);
        }
    }
    return any;
}

/* MARK: The command */

/* Names of commands and words of topics, for suggestions. */
struct help_names {
    char text[8192];
    const char *names[NAMES_MOST + 1];
    size_t size, count;
};

static void names_add(struct help_names *names, const char *word, size_t length)
{
    if (names->count == NAMES_MOST || names->size + length + 1 > sizeof names->text)
        return;
    char *at = names->text + names->size;
    memcpy(at, word, length);
    at[length] = '\0';
    names->size += length + 1;
    names->names[names->count++] = at;
}

static const char *suggestion(struct help_names *names, const char *word)
{
    for (const struct command *const *c = commands; *c; c++)
        names_add(names, (*c)->name, strlen((*c)->name));
    for (size_t i = 0; i < TOPICS; i++) {
        for (const char *at = topics[i].words; *at;) {
            size_t length = strcspn(at, " ");
            names_add(names, at, length);
            at += length + (at[length] == ' ');
        }
    }
    return nearest_word(word, names->names);
}

int help_run(int count, char **words)
{
    struct help_names names = {.size = 0};
    const struct command *command = count == 1 ? find_command(words[0]) : NULL;
    if (count == 0)
        return help_print(stdout), EXIT_GOOD;
    if (command)
        return command_help(command, stdout), EXIT_GOOD;
    if (print_topics(count, words) || (count == 1 && print_options(words[0])))
        return EXIT_GOOD;
    const char *nearest = suggestion(&names, words[0]);
    if (nearest)
        return usage_error(NULL, "no command or topic '%s'; did you mean 'trail help %s'?",
                           words[0], nearest);
    return usage_error(NULL, "no command or topic '%s'", words[0]);
}
