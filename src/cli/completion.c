#include "cli/cli.h"
static const struct option rows[] = {{0}};
static int run(const struct command *command, int argc, char **argv)
{
    (void)command, (void)argc, (void)argv;
    return 0;
}
const struct command command_completion = {.name = "completion",
                                           .summary = "print completions for a shell",
                                           .synopsis = "[options] SHELL",
                                           .options = rows,
                                           .run = run};
