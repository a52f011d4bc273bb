/*
 * trail panels: the first requests of the viewer's panels, answered in one pass: a line each for
 * locks, latency, mmu and summary. The viewer's server runs it (serve/ahead.def has the order).
 */
#include "commands/panels.h"

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
};

enum {
#define PANEL(name, ...) AT_##name,
#include "serve/ahead.def"
    PANELS
};

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
    for (size_t i = 0; i < PANELS; i++)
        panels[i]->want(&request.analysis.options);
    return analysis_answer(&request.analysis, analysis_parse(&request.analysis, argc, argv), show,
                           &request);
}

const struct command command_panels = {
    COMMAND_ROW(panels),
    .synopsis = "[options] FILE",
};
