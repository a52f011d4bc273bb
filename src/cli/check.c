#include "cli/cli.h"
static const struct option rows[] = {{0}};
static int run(const struct command *command, int argc, char **argv)
{
    (void)command, (void)argc, (void)argv;
    return 0;
}
const struct command command_check = {.name = "check",
                                      .summary = "judge traces: good, or what is wrong and where",
                                      .synopsis = "[options] FILE...",
                                      .options = rows,
                                      .run = run};
