/* A window of time on the command line: --from and --to, relative to the first event. */
#pragma once

#include "ui/cli.h"

/* Zero-initialised: the whole trace. */
struct window {
    bool has_from, has_to, to_is_relative;
    int64_t from_ns, to_ns;
};

#define TO_WINDOW_FROM(request, member) TO_PARSED(request, member, struct window, window_from)
#define TO_WINDOW_TO(request, member)   TO_PARSED(request, member, struct window, window_to)

int window_from(const struct command *command, void *window, const char *word);
int window_to(const struct command *command, void *window, const char *word);

/* Stores a window in options of the library, which name its members as it does. */
#define WINDOW_PUT(options, window)                                                                \
    ((options)->has_from = (window)->has_from, (options)->has_to = (window)->has_to,               \
     (options)->from_ns = (window)->from_ns, (options)->to_ns = (window)->to_ns)

/* Called after all options: makes a --to of +TIME absolute. Returns EXIT_GOOD or EXIT_USAGE. */
int window_finish(struct window *window, const struct command *command);
