#include "cli/cli.h"
static const struct option rows[] = {{0}};
static int run(const struct command *command, int argc, char **argv)
{
    (void)command, (void)argc, (void)argv;
    return 0;
}
const struct command command_assemble = {.name = "assemble",
                                         .summary =
                                             "make a trace from the text form of its records",
                                         .synopsis = "[options] FILE.txt -o FILE",
                                         .options = rows,
                                         .run = run};
