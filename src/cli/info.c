#include "cli/cli.h"
static const struct option rows[] = {{0}};
static int run(const struct command *command, int argc, char **argv)
{
    (void)command, (void)argc, (void)argv;
    return 0;
}
const struct command command_info = {.name = "info",
                                     .summary =
                                         "say what a trace is: version, size, duration, threads",
                                     .synopsis = "[options] FILE...",
                                     .options = rows,
                                     .run = run};
