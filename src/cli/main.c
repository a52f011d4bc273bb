/*
 * The `trail` command: finds the sub-command and runs it. Everything else about a sub-command is in
 * the file named like it. The command knows the public headers of libtrail only.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#ifndef TRAIL_VERSION
#define TRAIL_VERSION "unknown"
#endif

const struct command *const commands[] = {
    &command_record,
    &command_view,
    &command_summary,
    &command_report,
    &command_info,
    &command_print,
    &command_check,
    &command_goroutines,
    &command_regions,
    &command_tasks,
    &command_gc,
    &command_mmu,
    &command_why,
    &command_profile,
    &command_latency,
    &command_locks,
    &command_find,
    &command_threads,
    &command_procs,
    &command_sql,
    &command_diff,
    &command_symbolize,
    &command_convert,
    &command_merge,
    &command_export,
    &command_assemble,
    &command_doctor,
    &command_env,
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
          "  --version   show the version\n"
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
        puts("trail " TRAIL_VERSION);
        return EXIT_GOOD;
    }
    if (strcmp(word, "help") == 0 && argc > 2)
        word = argv[2];
    else if (strcmp(word, "help") == 0)
        return help(stdout), EXIT_GOOD;
    for (const struct command *const *c = commands; *c; c++) {
        if (strcmp(word, (*c)->name) != 0)
            continue;
        if (word != argv[1])
            return command_help(*c, stdout), EXIT_GOOD;
        return (*c)->run(*c, argc - 2, argv + 2);
    }
    if (strcmp(word, command_completion.name) == 0)
        return command_completion.run(&command_completion, argc - 2, argv + 2);
    if (word[0] == '-')
        return unknown_option(word);
    return unknown_command(word);
}

int main(int argc, char **argv)
{
    /* A reader that went away is told as an error of writing, with the exit status of one. */
    (void)signal(SIGPIPE, SIG_IGN);
    return finish_stdout(run(argc, argv));
}
