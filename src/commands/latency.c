/*
 * trail latency: times from ready to running, waits for locks, and durations of system calls; each
 * as a histogram, and by stack.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/panels.h"
#include "ui/analysis.h"
#include "ui/follow_up.h"
#include "ui/goroutine_filter.h"
#include "ui/table.h"
#include "ui/values.h"
#include "words/function_name.h"
#include "words/wrappers.h"

/* In the order of output. */
static const struct kind {
    trail_profile_type type;
    /* Both with terms in braces (words_text). */
    const char *key, *title;
    const char *pattern; /* of trail find */
} kinds[] = {
    {TRAIL_PROFILE_SCHED, "scheduling", "from ready to running, by waker", "ready"},
    {TRAIL_PROFILE_SYNC, "locks", "waits for {lock_waits}", "{lock_pattern}"},
    {TRAIL_PROFILE_SYSCALL, "syscalls", "system calls", "syscall"},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Stacks per kind, unless --limit is given. */
enum { ROWS = 10 };

struct request {
    struct analysis analysis;
    struct goroutine_filter filter;
    size_t limit;
    bool idle;
};

static const struct option rows[] = {
    {'n', "limit", "N", "at most N stacks of each kind (default 10; 0: all)",
     TO_LIMIT(struct request, limit), .expects = "a number"},
    {0, "idle", NULL, "show waits for work among the others, not last",
     TO_FLAG(struct request, idle)},
    GOROUTINE_FILTER_ROWS(struct request, filter),
    SKIP_FRAMES_ROW,
    ANALYSIS_ROWS,
    {0},
};

/* MARK: Command line */

static void panel_want(trail_analysis_options *options)
{
    options->what |= TRAIL_ANALYZE_PROFILES | TRAIL_ANALYZE_DISTRIBUTIONS;
    options->profile.first_waits = options->profile.by_kind = true;
    for (size_t i = 0; i < KINDS; i++)
        options->profile.types |= 1U << kinds[i].type;
}

static int parse_request(struct request *request, int argc, char **argv)
{
    int code = analysis_parse(&request->analysis, argc, argv);
    panel_want(&request->analysis.options);
    if (request->filter.name)
        request->analysis.options.what |= TRAIL_ANALYZE_GROUPS;
    request->analysis.options.profile.name = request->filter.name;
    request->analysis.options.profile.goroutines = request->filter.goroutines.ids;
    request->analysis.options.profile.goroutine_count = request->filter.goroutines.count;
    return code;
}

/* MARK: JSON */

static void json_stack(const struct request *request, struct json *json,
                       const trail_profile *profile, const trail_profile_sample *sample)
{
    const trail_analysis *answers = request->analysis.answers;
    json_open(json, "stack", '[');
    for (uint32_t i = 0; i < sample->frame_count; i++) {
        const trail_profile_frame *frame = &profile->frames[sample->frames[i]];
        json_open(json, NULL, '{');
        json_text(json, "name", trail_analysis_text(answers, frame->function));
        json_text(json, "file", trail_analysis_text(answers, frame->file));
        json_number(json, "line", frame->line);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void json_kind(const struct request *request, struct json *json, const struct kind *kind)
{
    trail_profile profile;
    trail_analysis_profile(request->analysis.answers, kind->type, &profile);
    json_open(json, kind->key, '{');
    json_number(json, "count", profile.count);
    json_signed(json, "ns", profile.ns);
    analysis_json_histogram(json, "times", &profile.times);
    json_open(json, "stacks", '[');
    for (size_t i = 0; i < profile.sample_count && i < request->limit; i++) {
        const trail_profile_sample *sample = &profile.samples[i];
        json_open(json, NULL, '{');
        if (sample->wait)
            analysis_json_wait(&request->analysis, json, sample->wait);
        if (sample->timed_out)
            json_number(json, "timed_out", sample->timed_out);
        if (sample->idle_count) {
            json_number(json, "idle_count", sample->idle_count);
            json_signed(json, "idle_ns", sample->idle_ns);
        }
        json_number(json, "count", sample->count);
        json_signed(json, "ns", sample->ns);
        analysis_json_histogram(json, "times", &sample->times);
        json_stack(request, json, &profile, sample);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
}

static void show_json(const struct request *request)
{
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    for (size_t i = 0; i < KINDS; i++)
        json_kind(request, &json, &kinds[i]);
    analysis_json_end(&json);
}

/* MARK: For people */

/* Returns the first frame to show: in Go the leaf, elsewhere the place. */
static uint32_t first_frame(const struct request *request, const trail_profile *profile,
                            const trail_profile_sample *sample)
{
    const trail_analysis *answers = request->analysis.answers;
    enum frame_rank best = FRAME_NAMELESS;
    uint32_t first = 0;
    for (uint32_t i = 0; i < sample->frame_count && best < FRAME_OWN; i++) {
        const trail_profile_frame *frame = &profile->frames[sample->frames[i]];
        trail_string file = trail_analysis_text(answers, frame->file);
        enum frame_rank rank = frame_rank(request->analysis.options.skip_frames,
                                          trail_analysis_text(answers, frame->function), file);
        if (frame_is_go(file))
            break;
        if (rank > best) {
            best = rank;
            first = i;
        }
    }
    return first;
}

/* Whether most of its waits are waits for work. */
static bool is_idle(const trail_profile_sample *sample)
{
    return sample->idle_ns > sample->ns / 2;
}

/* "mutex: ", "condition variable for work (2 timed out): " */
static size_t put_kind(const struct request *request, const trail_profile_sample *sample,
                       char *text, size_t size)
{
    trail_string kind = trail_analysis_text(request->analysis.answers, sample->wait);
    int length = (int)(kind.size < 100 ? kind.size : 100);
    const char *work = is_idle(sample) ? " for work" : "";
    if (sample->timed_out)
        return (size_t)snprintf(text, size, "%.*s%s (%" PRIu64 " timed out): ", length, kind.data,
                                work, sample->timed_out);
    return (size_t)snprintf(text, size, "%.*s%s: ", length, kind.data, work);
}

/* Prints the leaf and its callers, "sync.(*Mutex).Lock < main.work < main.main"; by kind, "mutex:
 * work < main". */
static void put_stack(const struct request *request, struct table *table,
                      const trail_profile *profile, const trail_profile_sample *sample)
{
    enum { MOST = 4 };
    char text[512], short_name[FUNCTION_NAME_SIZE];
    size_t used = 0;
    uint32_t first = first_frame(request, profile, sample);
    *text = '\0';
    if (sample->wait)
        used = put_kind(request, sample, text, sizeof text);
    for (uint32_t i = first; i < sample->frame_count && i < first + MOST && used < sizeof text;
         i++) {
        const trail_profile_frame *frame = &profile->frames[sample->frames[i]];
        trail_string name = function_name_short(
            trail_analysis_text(request->analysis.answers, frame->function), short_name);
        const char *between = i > first ? " < " : "";
        int size = name.size > 0 ? snprintf(text + used, sizeof text - used, "%s%.*s", between,
                                            (int)(name.size < 100 ? name.size : 100), name.data)
                                 : snprintf(text + used, sizeof text - used, "%s0x%" PRIx64,
                                            between, frame->pc);
        used += size > 0 ? (size_t)size : 0;
    }
    if (sample->frame_count > first + MOST && used < sizeof text)
        (void)snprintf(text + used, sizeof text - used, " < ...");
    if (sample->frame_count == 0 && used < sizeof text)
        (void)snprintf(text + used, sizeof text - used, "(no stack)");
    table_word(table, text);
}

/* Prints the command that shows the longest ones: goroutine, place, time, and waker. */
static void show_command(const struct request *request, const struct kind *kind,
                         const trail_histogram *times)
{
    const struct window *window = &request->analysis.window;
    char file[FOLLOW_UP_SIZE], name[FOLLOW_UP_SIZE], pattern[64];
    printf("the longest of these: trail find");
    if (request->filter.name)
        printf(" --name=%s", shell_word(request->filter.name, name));
    for (size_t i = 0; i < request->filter.goroutines.count; i++)
        printf("%s%s%" PRId64, i ? "," : " ",
               i ? "" : term(&request->analysis.vocabulary, TERM_task_option),
               request->filter.goroutines.ids[i]);
    if (window->has_from)
        printf(" --from=%" PRId64 "ns", window->from_ns);
    if (window->has_to)
        printf(" --to=%" PRId64 "ns", window->to_ns);
    printf(" %s '%s >=%" PRId64 "ns'\n", follow_up_file(&request->analysis, file),
           words_text(&request->analysis.vocabulary, kind->pattern, pattern, sizeof pattern),
           trail_histogram_quantile(times, 0.99));
}

/* Longest first; waits for work come last unless they were requested. */
static void put_rows(const struct request *request, struct table *table,
                     const trail_profile *profile)
{
    size_t shown = 0;
    for (int last = 0; last <= 1; last++)
        for (size_t i = 0; i < profile->sample_count; i++) {
            bool is_last = !request->idle && is_idle(&profile->samples[i]);
            if (is_last != last || shown >= request->limit)
                continue;
            shown++;
            table_spread(table, &profile->samples[i].times);
            put_stack(request, table, profile, &profile->samples[i]);
        }
}

/* Before Go 1.22, 1 ns stands for the unknown length of a system call that did not block. */
static void show_unrecorded(const struct request *request, const struct kind *kind,
                            const trail_histogram *times)
{
    size_t at = 0, bucket;
    uint64_t count;
    int64_t from_ns, to_ns;
    if (kind->type != TRAIL_PROFILE_SYSCALL ||
        trail_version_is_v2(trail_reader_version(request->analysis.reader)) ||
        !trail_histogram_next(times, &at, &bucket, &count))
        return;
    trail_histogram_bucket(bucket, &from_ns, &to_ns);
    if (from_ns == 1)
        printf("%" PRIu64 " did not block: their length is not recorded, 1 ns stands for it\n",
               count);
}

static void show_kind(const struct request *request, const struct kind *kind)
{
    trail_profile profile;
    struct table table;
    char title[128];
    trail_analysis_profile(request->analysis.answers, kind->type, &profile);
    printf("%s:%s\n", words_text(&request->analysis.vocabulary, kind->title, title, sizeof title),
           profile.count == 0 ? " none" : "");
    if (profile.count == 0)
        return;
    table_histogram(&profile.times);
    table_begin(&table, "count> total> p50> p95> p99> longest> stack<");
    table_spread(&table, &profile.times);
    table_word(&table, "(all)");
    put_rows(request, &table, &profile);
    table_print(&table);
    if (profile.sample_count > request->limit)
        printf("... and %zu more stack%s\n", profile.sample_count - request->limit,
               plural_s(profile.sample_count - request->limit));
    show_unrecorded(request, kind, &profile.times);
    show_command(request, kind, &profile.times);
}

static int show(void *context)
{
    const struct request *request = context;
    trail_profile profile;
    trail_analysis_profile(request->analysis.answers, kinds[0].type, &profile);
    if (profile.goroutines == 0 && (request->filter.name || request->filter.goroutines.count > 0))
        return goroutine_filter_no_match(request->filter.name, &request->analysis);
    if (request->analysis.json) {
        show_json(request);
        return EXIT_GOOD;
    }
    for (size_t i = 0; i < KINDS; i++) {
        if (i > 0)
            putchar('\n');
        show_kind(request, &kinds[i]);
    }
    return EXIT_GOOD;
}

static void panel_show(const struct analysis *analysis, size_t limit)
{
    (void)limit;
    struct request request = {.analysis = *analysis, .limit = ROWS};
    show_json(&request);
}

const struct panel panel_latency = {panel_want, panel_show};

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.analysis = {.command = command}, .limit = ROWS};
    int code =
        analysis_answer(&request.analysis, parse_request(&request, argc, argv), show, &request);
    goroutine_filter_free(&request.filter);
    return code;
}

const struct command command_latency = {
    COMMAND_ROW(latency),
    .synopsis = "[options] FILE",
    .details =
        "Histograms of the time from ready to running, of waits for locks, channels and select, "
        "and of system calls; then the stacks that took most time, with how their times spread. "
        "Stacks are shown leaf first; those of 'ready' are of the waker. Waits for work, to which "
        "a thread of a C program returns for most of its life, are last.",
    .examples = "  trail latency app.trace\n"
                "  trail latency --name=main.worker --from=1s --to=+200ms app.trace\n"
                "  trail latency --json -n 0 app.trace",
    .wrapped = true,
};
