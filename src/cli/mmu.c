/*
 * trail mmu: how little of its Ps garbage collection left the program, for windows of any length.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analysis.h"
#include "cli/table.h"
#include "cli/values.h"

enum { OPT_WINDOW = 1, OPT_FLAGS, OPT_WORST };
enum { MOST_WINDOWS = 64, MOST_WORST = 100 };

static const struct option rows[] = {
    {OPT_WINDOW, 'w', "window", "TIME,...", "lengths of windows: 10us,1ms (default: from 10 us on)",
     NULL},
    {OPT_FLAGS, 0, "flags", "WHAT,...",
     "what takes from the program: stw, background, assist, sweep\n"
     "(default stw,background,assist); per-p: each P by itself",
     "stw background assist sweep per-p"},
    {OPT_WORST, 0, "worst", "N", "how many of the worst windows to show of each length (default 3)",
     NULL},
    ANALYSIS_ROWS,
    {0},
};

struct request {
    struct analysis analysis;
    int64_t windows[MOST_WINDOWS];
    size_t window_count;
    size_t worst;
};

/* The next word of a list with commas. False if there is none, or it is too long. */
static bool next_word(const char **list, char *word, size_t size)
{
    size_t length = strcspn(*list, ",");
    if (length >= size)
        return false;
    memcpy(word, *list, length);
    word[length] = '\0';
    *list += length + ((*list)[length] == ',');
    return true;
}

static int parse_windows(struct request *request, const char *list)
{
    char word[64] = "";
    do {
        int64_t ns;
        if (request->window_count == MOST_WINDOWS)
            return usage_error(request->analysis.command, "at most %d windows", MOST_WINDOWS);
        if (!next_word(&list, word, sizeof word) || !parse_time(word, &ns) || ns == 0)
            return usage_error(request->analysis.command,
                               "'%s' is no length of a window; those are like 10us,1ms", word);
        request->windows[request->window_count++] = ns;
    } while (*list);
    return EXIT_GOOD;
}

static int parse_flags(struct request *request, const char *list)
{
    static const char *const names[] = {"stw", "background", "assist", "sweep", "per-p", NULL};
    unsigned flags = 0;
    char word[64] = "";
    do {
        size_t i = 0;
        if (!next_word(&list, word, sizeof word))
            return usage_error(request->analysis.command, "--flags is a list like stw,assist");
        while (names[i] && strcmp(word, names[i]) != 0)
            i++;
        if (!names[i]) {
            const char *nearest = nearest_word(word, names);
            return usage_error(request->analysis.command, "no flag '%s'; %s%s%sthere are %s", word,
                               nearest ? "did you mean '" : "", nearest ? nearest : "",
                               nearest ? "'? " : "", "stw, background, assist, sweep and per-p");
        }
        flags |= 1u << i;
    } while (*list);
    request->analysis.options.mmu_flags[0] = flags;
    return EXIT_GOOD;
}

static int parse_option(void *context, int id, const char *value)
{
    struct request *request = context;
    int64_t number;
    switch (id) {
    case OPT_WINDOW:
        return parse_windows(request, value);
    case OPT_FLAGS:
        return parse_flags(request, value);
    case OPT_WORST:
        if (!parse_id(value, "", &number) || number > MOST_WORST)
            return usage_error(request->analysis.command, "--worst is a number up to %d, not '%s'",
                               MOST_WORST, value);
        request->worst = (size_t)number;
        return EXIT_GOOD;
    default:
        return analysis_option(&request->analysis, id, value);
    }
}

static int parse_request(struct request *request, int argc, char **argv)
{
    struct options options;
    unsigned *flags = request->analysis.options.mmu_flags;
    int code = options_each(&options, request->analysis.command, argc, argv, parse_option, request);
    if (code != EXIT_GOOD)
        return code;
    if (flags[0] & TRAIL_MMU_BACKGROUND)
        flags[1] = flags[0] | TRAIL_MMU_CORRECTED;
    return analysis_words(&request->analysis, &options);
}

/* 10 us, 30 us, 100 us, ... as long as they are shorter than the trace. */
static void default_windows(struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    int64_t length = span->end_ns - span->begin_ns;
    for (int64_t ns = 10000; request->window_count + 2 < MOST_WINDOWS; ns *= 10) {
        for (int64_t factor = 1; factor <= 3; factor += 2)
            if (request->window_count == 0 || ns * factor < length)
                request->windows[request->window_count++] = ns * factor;
        if (ns >= length || ns > INT64_MAX / 100)
            return;
    }
}

static void json_curve(const struct request *request, struct json *json, const char *key,
                       unsigned curve)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < request->window_count; i++)
        json_real(json, NULL,
                  trail_analysis_mmu(request->analysis.answers, curve, request->windows[i]));
    json_close(json, ']');
}

static void show_json(const struct request *request)
{
    struct json json = {0};
    json_open(&json, NULL, '{');
    json_open(&json, "windows_ns", '[');
    for (size_t i = 0; i < request->window_count; i++)
        json_signed(&json, NULL, request->windows[i]);
    json_close(&json, ']');
    json_curve(request, &json, "mmu", 0);
    json_curve(request, &json, "mmu_corrected", request->analysis.options.mmu_flags[1] ? 1 : 0);
    json_close(&json, '}');
    putchar('\n');
}

static void show_curve(const struct request *request)
{
    struct table table;
    char bar[41];
    bool corrected = request->analysis.options.mmu_flags[1] != 0;
    table_begin(&table, "window> MMU> corrected> <");
    for (size_t i = 0; i < request->window_count; i++) {
        double mmu = trail_analysis_mmu(request->analysis.answers, 0, request->windows[i]);
        double right =
            corrected ? trail_analysis_mmu(request->analysis.answers, 1, request->windows[i]) : mmu;
        size_t length = (size_t)(right * 40 + 0.5);
        memset(bar, '#', length < 40 ? length : 40);
        bar[length < 40 ? length : 40] = '\0';
        table_duration(&table, request->windows[i]);
        table_percent(&table, mmu);
        table_percent(&table, right);
        table_word(&table, bar);
    }
    table_print(&table);
}

static void show_worst(const struct request *request)
{
    trail_mmu_window worst[MOST_WORST];
    unsigned curve = request->analysis.options.mmu_flags[1] ? 1 : 0;
    int64_t origin = request->analysis.span.origin_ns;
    struct table table;
    bool any = false;
    char text[160];
    table_begin(&table, "window> from> program's> to_see_it<");
    for (size_t i = 0; i < request->window_count; i++) {
        size_t count = trail_analysis_mmu_worst(request->analysis.answers, curve,
                                                request->windows[i], worst, request->worst);
        for (size_t n = 0; n < count && worst[n].mutator < 1; n++) {
            any = true;
            table_duration(&table, worst[n].end_ns - worst[n].begin_ns);
            table_duration(&table, worst[n].begin_ns - origin);
            table_percent(&table, worst[n].mutator);
            (void)snprintf(text, sizeof text, "trail print --from=%lldns --to=+%lldns %s",
                           (long long)(worst[n].begin_ns - origin),
                           (long long)(worst[n].end_ns - worst[n].begin_ns),
                           request->analysis.word);
            table_word(&table, text);
        }
    }
    if (any) {
        printf("\nworst windows:\n");
        table_print(&table);
    } else {
        table_drop(&table);
    }
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}, .worst = 3};
    request.analysis.options.what = TRAIL_ANALYZE_MMU;
    request.analysis.options.mmu_flags[0] = TRAIL_MMU_DEFAULT;
    int code = parse_request(&request, argc, argv);
    if (code == EXIT_GOOD) {
        code = analysis_run(&request.analysis);
        if (request.analysis.answers && request.window_count == 0)
            default_windows(&request);
        if (request.analysis.answers && request.analysis.json) {
            show_json(&request);
        } else if (request.analysis.answers) {
            show_curve(&request);
            show_worst(&request);
        }
    }
    analysis_close(&request.analysis);
    return code == OPTIONS_HELP ? EXIT_GOOD : code;
}

const struct command command_mmu = {
    .name = "mmu",
    .summary = "how little of the Ps garbage collection left the program",
    .synopsis = "[options] FILE",
    .details =
        "Minimum mutator utilisation: for windows of a length, the least share of its Ps that the\n"
        "program had in any of them. 0 % at 1 ms: for a millisecond it did not run at all. The "
        "first\n"
        "figure is Go's, which counts background workers twice; the second counts them once.",
    .examples = "  trail mmu app.trace\n"
                "  trail mmu --window=1ms,10ms --worst=10 app.trace\n"
                "  trail mmu --flags=stw --json --window=100us app.trace",
    .options = rows,
    .run = run,
};
