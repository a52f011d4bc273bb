/*
 * The `trail` command: finds the sub-command and runs it. Everything else about a sub-command is in
 * the file with its name. The command uses only the public headers of libtrail.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands/help.h"
#include "commands/version.h"
#include "ui/cli.h"

#define HIDDEN(command)
#define TERMINAL(command) command,
#define VIEWER(command)   command,
#define PAGE(command)     command,
const struct command *const commands[] = {
#define COMMAND(name, group, where, ...) where(&command_##name)
#include "commands.def"
    NULL,
};

static int unknown_command(const char *word)
{
    const char *names[sizeof commands / sizeof commands[0]] = {0};
    for (size_t i = 0; commands[i]; i++)
        names[i] = commands[i]->name;
    const char *nearest = nearest_word(word, names);
    if (nearest)
        return usage_error(NULL, "unknown command '%s'; did you mean 'trail %s'?", word, nearest);
    return usage_error(NULL, "unknown command '%s'", word);
}

static int unknown_option(const char *word)
{
    static const char *const names[] = {"--help", "--version", NULL};
    const char *nearest = nearest_word(word, names);
    if (nearest)
        return usage_error(NULL, "unknown option '%s'; did you mean '%s'?", word, nearest);
    return usage_error(NULL, "unknown option '%s'", word);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        help_print(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_print(stdout);
        return EXIT_GOOD;
    }
    if (strcmp(word, "--version") == 0) {
        version_print();
        return EXIT_GOOD;
    }
    if (strcmp(word, "help") == 0)
        return help_run(argc - 2, argv + 2);
    const struct command *command = find_command(word);
    if (command && command->wrapped)
        terminal_wrap();
    if (command)
        return command_run(command, argc - 2, argv + 2);
    if (word[0] == '-')
        return unknown_option(word);
    return unknown_command(word);
}

int main(int argc, char **argv)
{
    /* A closed pipe is treated as a write error, so that files and children are cleaned up first
     * (finish_stdout). */
    (void)signal(SIGPIPE, SIG_IGN);
    /* So is a file size limit (setrlimit(2)): EFBIG. */
    (void)signal(SIGXFSZ, SIG_IGN);
    terminal_guard();
    return finish_stdout(run(argc, argv));
}
