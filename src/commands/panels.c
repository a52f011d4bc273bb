/*
 * trail panels: what the panels of the viewer ask first, from one pass: a line for each of locks, latency, mmu and summary.
 * The viewer's server runs it (serve/ahead.def has the order).
 */
#include "commands/panels.h"
#include "ui/values.h"

struct request {
    struct analysis analysis;
    size_t limit;
};

static const struct option rows[] = {
    {'n', "limit", "N", "at most N locks", TO_LIMIT(struct request, limit), .expects = "a number"},
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

static const struct panel *const panels[] = {
#define PANEL(name, ...) &panel_##name,
#include "serve/ahead.def"
#undef PANEL
};

enum {
#define PANEL(name, ...) AT_##name,
#include "serve/ahead.def"
#undef PANEL
    PANELS
};

static int parse_option(void *context, int id, const char *value)
{
    struct request *request = context;
    return analysis_option(&request->analysis, id, value);
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    int code = options_each(&options, request->analysis.command, argc, argv, parse_option, request);
    if (code != EXIT_GOOD)
        return code;
    for (size_t i = 0; i < PANELS; i++)
        panels[i]->want(&request->analysis.options);
    return analysis_words(&request->analysis, &options);
}

static int show(void *context)
{
    const struct request *request = context;
    for (size_t i = 0; i < PANELS; i++)
        panels[i]->show(&request->analysis, request->limit);
    return EXIT_GOOD;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}, .limit = SIZE_MAX};
    return analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
}

const struct command command_panels = {
    COMMAND_ROW(panels),
    .synopsis = "[options] FILE",
    .options = rows,
    .run = run,
};
