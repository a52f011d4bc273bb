/*
 * The `trail` command: finds the sub-command and runs it. Everything else about a sub-command is in
 * the file named like it. The command knows the public headers of libtrail only.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "commands/version.h"
#include "ui/cli.h"

#define HIDDEN(command)
#define TERMINAL(command) command,
#define VIEWER(command)   command,
#define PAGE(command)     command,
const struct command *const commands[] = {
#define COMMAND(name, group, where, ...) where(&command_##name)
#include "commands.def"
#undef COMMAND
    NULL,
};

static void help(FILE *to)
{
    fputs("trail - read Go execution traces, of Go 1.5 to 1.27\n\n"
          "Usage: trail COMMAND [options] FILE...\n\nCommands:\n",
          to);
    for (const struct command *const *c = commands; *c; c++)
        fprintf(to, "  %-10s  %s\n", (*c)->name, (*c)->summary);
    fputs("\n"
          "  --help      show this text; 'trail COMMAND --help' that of a command\n"
          "  --version   show the version, and which libraries are found\n"
          "\n"
          "A FILE is a path, or - for stdin; plain, gzip or zstd, recognised by content.\n"
          "\n"
          "Exit status: 0 good, 1 the trace is bad, 2 the command line is wrong or the program\n"
          "cannot be recorded, 3 cannot read or write.\n"
          "\n"
          "Examples:\n"
          "  trail info app.trace\n"
          "  trail print --goroutine=18 --from=1.5s --to=+20ms app.trace\n"
          "  curl -s localhost:6060/debug/pprof/trace?seconds=30 | trail print -\n",
          to);
}

/* Also one that is in no help. */
static const struct command *find_command(const char *name)
{
    static const struct command *const all[] = {
#define COMMAND(name, ...) &command_##name,
#include "commands.def"
#undef COMMAND
        NULL,
    };
    const struct command *const *found = all;
    while (*found && strcmp((*found)->name, name) != 0)
        found++;
    return *found;
}

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
        help(stderr);
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help(stdout);
        return EXIT_GOOD;
    }
    if (strcmp(word, "--version") == 0) {
        version_print();
        return EXIT_GOOD;
    }
    if (strcmp(word, "help") == 0 && argc > 2)
        word = argv[2];
    else if (strcmp(word, "help") == 0)
        return help(stdout), EXIT_GOOD;
    const struct command *command = find_command(word);
    if (command && word != argv[1])
        return command_help(command, stdout), EXIT_GOOD;
    if (command)
        return command->run(command, argc - 2, argv + 2);
    if (word[0] == '-')
        return unknown_option(word);
    return unknown_command(word);
}

int main(int argc, char **argv)
{
    /* A reader that went away is told as an error of writing, with the exit status of one. */
    (void)signal(SIGPIPE, SIG_IGN);
    /* So is a limit to the size of files (setrlimit(2)): EFBIG. */
    (void)signal(SIGXFSZ, SIG_IGN);
    terminal_guard();
    return finish_stdout(run(argc, argv));
}
