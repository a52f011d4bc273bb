/*
 * trail mmu: the share of its Ps that garbage collection left to the program, for windows of any
 * length: the minimum, the worst windows, and the distribution.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/whole.h"
#include "commands/panels.h"
#include "ui/analysis.h"
#include "ui/follow_up.h"
#include "ui/table.h"
#include "ui/values.h"

enum { MOST_WINDOWS = 64, MOST_WORST = 100, MOST_QUANTILES = 8 };
enum { BEST = 0 }; /* curve */

struct windows {
    int64_t ns[MOST_WINDOWS];
    size_t count;
};

struct quantiles {
    double shares[MOST_QUANTILES];
    size_t count;
};

struct request {
    struct analysis analysis;
    unsigned flags;
    struct windows windows;
    size_t worst;
    struct quantiles quantiles;
};

/*
 * Copies the next word of a comma-separated list. Returns false at the end, or if it is too long.
 */
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

static int parse_windows(const struct command *command, void *member, const char *list)
{
    struct windows *windows = member;
    char word[64] = "";
    do {
        int64_t ns;
        if (windows->count == MOST_WINDOWS)
            return usage_error(command, "at most %d windows", MOST_WINDOWS);
        if (!next_word(&list, word, sizeof word) || !parse_time(word, &ns) || ns == 0)
            return usage_error(command, "'%s' is not a window length, as in --window=10us,1ms",
                               word);
        windows->ns[windows->count++] = ns;
    } while (*list);
    return EXIT_GOOD;
}

static int parse_flags(const struct command *command, void *member, const char *list)
{
    static const char *const names[] = {"stw", "background", "assist", "sweep", "per-p", NULL};
    unsigned flags = 0;
    char word[64] = "";
    do {
        size_t i = 0;
        if (!next_word(&list, word, sizeof word))
            return usage_error(command, "--flags is a list like stw,assist");
        while (names[i] && strcmp(word, names[i]) != 0)
            i++;
        if (!names[i])
            return unknown_word(command, "flag", word, names,
                                "stw, background, assist, sweep and per-p");
        flags |= 1u << i;
    } while (*list);
    *(unsigned *)member = flags;
    return EXIT_GOOD;
}

static int parse_quantiles(const struct command *command, void *member, const char *list)
{
    struct quantiles *quantiles = member;
    char word[64] = "", *end;
    do {
        if (quantiles->count == MOST_QUANTILES)
            return usage_error(command, "at most %d quantiles", MOST_QUANTILES);
        bool good = next_word(&list, word, sizeof word);
        double share = good ? strtod(word, &end) : 0;
        good = good && end != word && *end == '\0' && share >= 0 && share <= 1;
        if (!good)
            return usage_error(command,
                               "'%s' is not a share from 0 to 1, as in --quantiles=0.5,0.99", word);
        quantiles->shares[quantiles->count++] = share;
    } while (*list);
    return EXIT_GOOD;
}

static const struct option rows[] = {
    {'w', "window", "TIME,...", "lengths of windows: 10us,1ms (default: from 10us on)",
     TO_PARSED(struct request, windows, struct windows, parse_windows)},
    {0, "flags", "WHAT,...",
     "what counts as taken from the program: stw, background, assist, sweep (default "
     "stw,background,assist); per-p: each P by itself",
     TO_PARSED(struct request, flags, unsigned, parse_flags),
     .values = "stw background assist sweep per-p"},
    {0, "worst", "N", "how many of the worst windows to show of each length (default 3)",
     TO_NUMBER(struct request, worst), .most = MOST_WORST, .expects = "a number up to 100"},
    {'q', "quantiles", "SHARE,...",
     "also what this share of all windows has at least: 0.5,0.99 (at most 8)",
     TO_PARSED(struct request, quantiles, struct quantiles, parse_quantiles)},
    ANALYSIS_ROWS,
    {0},
};

/* The curve that counts background workers once comes first: the summary uses it. */
static void want_curves(trail_analysis_options *options, unsigned flags)
{
    bool is_counted_twice = flags & TRAIL_MMU_BACKGROUND;
    options->what |= TRAIL_ANALYZE_MMU;
    options->mmu_flags[BEST] = is_counted_twice ? flags | TRAIL_MMU_CORRECTED : flags;
    options->mmu_flags[BEST + 1] = is_counted_twice ? flags : 0;
}

static int parse_request(struct request *request, int argc, char **argv)
{
    int code = analysis_parse(&request->analysis, argc, argv);
    want_curves(&request->analysis.options, request->flags);
    return code;
}

/* 10 us, 30 us, 100 us, ... while they are shorter than the trace. */
static void default_windows(struct request *request)
{
    const trail_analysis_span *span = &request->analysis.span;
    int64_t length = span->end_ns - span->begin_ns;
    for (int64_t ns = 10000; request->windows.count + 2 < MOST_WINDOWS; ns *= 10) {
        for (int64_t factor = 1; factor <= 3; factor += 2)
            if (request->windows.count == 0 || ns * factor < length)
                request->windows.ns[request->windows.count++] = ns * factor;
        if (ns >= length || ns > INT64_MAX / 100)
            return;
    }
}

/* Returns Go's curve, which counts background workers twice. */
static unsigned curve_of_go(const struct request *request)
{
    return request->analysis.options.mmu_flags[BEST + 1] ? BEST + 1 : BEST;
}

static void json_curve(const struct request *request, struct json *json, const char *key,
                       unsigned curve)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < request->windows.count; i++)
        json_real(json, NULL,
                  trail_analysis_mmu(request->analysis.answers, curve, request->windows.ns[i]));
    json_close(json, ']');
}

/* Prints a list per window, in the requested order. */
static void json_quantiles(const struct request *request, struct json *json, const char *key,
                           unsigned curve)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < request->windows.count; i++) {
        json_open(json, NULL, '[');
        for (size_t n = 0; n < request->quantiles.count; n++)
            json_real(json, NULL,
                      trail_analysis_mmu_quantile(request->analysis.answers, curve,
                                                  request->windows.ns[i],
                                                  request->quantiles.shares[n]));
        json_close(json, ']');
    }
    json_close(json, ']');
}

static void show_json(const struct request *request)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_open(&json, "windows_ns", '[');
    for (size_t i = 0; i < request->windows.count; i++)
        json_signed(&json, NULL, request->windows.ns[i]);
    json_close(&json, ']');
    json_curve(request, &json, "mmu", curve_of_go(request));
    json_curve(request, &json, "mmu_corrected", BEST);
    if (request->quantiles.count > 0) {
        json_open(&json, "quantiles", '[');
        for (size_t i = 0; i < request->quantiles.count; i++)
            json_real(&json, NULL, request->quantiles.shares[i]);
        json_close(&json, ']');
        json_quantiles(request, &json, "mmu_quantiles", curve_of_go(request));
        json_quantiles(request, &json, "mmu_quantiles_corrected", BEST);
    }
    analysis_json_end(&json);
}

/* Columns of quantiles: "50_%> 99.9_%> ". */
static void quantile_titles(const struct request *request, char *titles, size_t size)
{
    size_t used = 0;
    *titles = '\0';
    for (size_t i = 0; i < request->quantiles.count && used < size; i++)
        used += (size_t)snprintf(titles + used, size - used, "%.6g_%%> ",
                                 request->quantiles.shares[i] * 100);
}

static void put_quantiles(const struct request *request, struct table *table, int64_t window_ns)
{
    for (size_t i = 0; i < request->quantiles.count; i++)
        table_percent(table, trail_analysis_mmu_quantile(request->analysis.answers, BEST, window_ns,
                                                         request->quantiles.shares[i]));
}

static void show_curve(const struct request *request)
{
    struct table table;
    char bar[41], quantiles[200], titles[256];
    quantile_titles(request, quantiles, sizeof quantiles);
    (void)snprintf(titles, sizeof titles, "window> MMU> corrected> %s%s", quantiles,
                   *quantiles ? "" : "<");
    table_begin(&table, titles);
    for (size_t i = 0; i < request->windows.count; i++) {
        double mmu = trail_analysis_mmu(request->analysis.answers, curve_of_go(request),
                                        request->windows.ns[i]);
        double right = trail_analysis_mmu(request->analysis.answers, BEST, request->windows.ns[i]);
        size_t length = (size_t)whole_within(right * 40 + 0.5, 0, 40);
        memset(bar, '#', length);
        bar[length] = '\0';
        table_duration(&table, request->windows.ns[i]);
        table_percent(&table, mmu);
        table_percent(&table, right);
        put_quantiles(request, &table, request->windows.ns[i]);
        if (request->quantiles.count == 0)
            table_word(&table, bar);
    }
    table_print(&table);
    if (request->quantiles.count > 0)
        printf("(50 %%: half of all windows have at least this%s)\n",
               curve_of_go(request) != BEST ? ", workers counted once" : "");
}

static void show_worst(const struct request *request)
{
    trail_mmu_window worst[MOST_WORST];
    int64_t origin = request->analysis.span.origin_ns;
    struct table table;
    bool any = false;
    char text[FOLLOW_UP_SIZE];
    table_begin(&table, "window> from> program's> to_see_it<");
    for (size_t i = 0; i < request->windows.count; i++) {
        size_t count = trail_analysis_mmu_worst(request->analysis.answers, BEST,
                                                request->windows.ns[i], worst, request->worst);
        for (size_t n = 0; n < count && worst[n].mutator < 1; n++) {
            any = true;
            table_duration(&table, worst[n].end_ns - worst[n].begin_ns);
            table_duration(&table, worst[n].begin_ns - origin);
            table_percent(&table, worst[n].mutator);
            table_word(&table, follow_up_of(&request->analysis, TRAIL_NONE, worst[n].begin_ns,
                                            worst[n].end_ns - worst[n].begin_ns, text));
        }
    }
    if (any) {
        printf("\nworst windows:\n");
        table_print(&table);
    } else {
        table_drop(&table);
    }
}

static int show(void *context)
{
    struct request *request = context;
    if (request->windows.count == 0)
        default_windows(request);
    if (request->analysis.json) {
        show_json(request);
        return EXIT_GOOD;
    }
    show_curve(request);
    show_worst(request);
    return EXIT_GOOD;
}

static void panel_want(trail_analysis_options *options)
{
    want_curves(options, TRAIL_MMU_DEFAULT);
}

static void panel_show(const struct analysis *analysis, size_t limit)
{
    (void)limit;
    struct request request = {.analysis = *analysis};
    default_windows(&request);
    show_json(&request);
}

const struct panel panel_mmu = {panel_want, panel_show};

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {
        .analysis = {.command = command}, .flags = TRAIL_MMU_DEFAULT, .worst = 3};
    return analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
}

const struct command command_mmu = {
    COMMAND_ROW(mmu),
    .synopsis = "[options] FILE",
    .details =
        "Minimum mutator utilisation: for windows of a length, the least share of its Ps that the "
        "program had in any of them. 0 % at 1 ms: for a millisecond it did not run at all. The "
        "first figure is Go's, which counts background workers twice; the second counts them "
        "once.\n\n"
        "The minimum belongs to one window; --quantiles is about all of them: with 0.99, what "
        "99 % of all windows of that length have or exceed, wherever they begin.",
    .examples = "  trail mmu app.trace\n"
                "  trail mmu --window=1ms,10ms --worst=10 app.trace\n"
                "  trail mmu --quantiles=0.5,0.99,0.999 app.trace\n"
                "  trail mmu --flags=stw --json --window=100us app.trace",
    .wrapped = true,
};
