/*
 * trail check: reads a trace with every check enabled, and prints a verdict per file: what is
 * wrong, where, and how much before that is good.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/part_name.h"
#include "ui/cli.h"
#include "ui/follow_up.h"
#include "ui/progress.h"
#include "ui/rows.h"
#include "ui/show.h"
#include "ui/values.h"
#include "words/place.h"
#include "words/vocabulary.h"
#include "words/wrappers.h"

struct request {
    bool repair, list, strict, go121, json, quiet;
    size_t limit;
};

static const struct option rows[] = {
    {'r', "repair", NULL, "repair inconsistent orders of events, and count the repairs",
     TO_FLAG(struct request, repair)},
    {'l', "list", NULL, "with --repair: list the repairs", TO_FLAG(struct request, list)},
    {'n', "limit", "N", "with --list: at most N repairs (default 100)",
     TO_NUMBER(struct request, limit), .expects = "a number"},
    {0, "strict", NULL, "fail at a misused region, task or log, as Go's tools do",
     TO_FLAG(struct request, strict)},
    {0, "go121", NULL, "Go 1.5 to 1.21: judge by the rules of Go 1.21's tools, with --strict",
     TO_FLAG(struct request, go121)},
    {'j', "json", NULL, "one JSON object per file", TO_FLAG(struct request, json)},
    {'q', "quiet", NULL, "print nothing; the exit status is the answer",
     TO_FLAG(struct request, quiet)},
    {0},
};

enum { MISUSED_SIZE = PLACE_TEXT_SIZE + 200 };

/* The result for one file. */
struct verdict {
    const char *word;
    const struct request *request;
    int code;
    int version; /* 0: the header is bad */
    trail_error error;
    trail_reader_stats stats;
    int64_t first_ns, last_ns; /* of the events seen */
    uint64_t seen;
    char misused[MISUSED_SIZE]; /* the first misused annotation, in words */
    const char *form;           /* trail_source_compression */
    int64_t total;              /* bytes of the whole trace, -1 if unknown */
    /* The reader's list of repairs: valid while the reader is open, that is, until the verdict is
     * shown. */
    const trail_repair *repair_list;
    size_t repair_count;
};

/* MARK: Reading */

/* Describes a misused annotation with the place in the program's source. */
static void describe_misuse(const trail_reader *reader, const trail_event *event, char *buf)
{
    char place[PLACE_TEXT_SIZE];
    size_t count;
    const trail_frame *frames = trail_reader_stack(reader, event->stack, &count), *own = NULL;
    enum frame_rank best = FRAME_NAMELESS;
    for (size_t i = 0; i < count && best < FRAME_OWN; i++) {
        enum frame_rank rank = frame_rank(NULL, trail_reader_string(reader, frames[i].function),
                                          trail_reader_string(reader, frames[i].file));
        own = !own || rank > best ? &frames[i] : own;
        best = rank > best ? rank : best;
    }
    if (own)
        (void)place_of_frame(trail_reader_string(reader, own->function),
                             trail_reader_string(reader, own->file), own->line, PLACE_PARENTHESES,
                             place, sizeof place);
    trail_string name = trail_reader_string(reader, event->kind == TRAIL_LOG ? event->log.category
                                                    : event->kind == TRAIL_TASK_BEGIN ||
                                                            event->kind == TRAIL_TASK_END
                                                        ? event->task.type
                                                        : event->region.type);
    (void)snprintf(buf, MISUSED_SIZE, "%s '%.*s' of G %" PRId64 "%s%s",
                   trail_kind_name((trail_kind)event->kind), (int)(name.size < 80 ? name.size : 80),
                   name.data, event->goroutine, own ? " at " : "", own ? place : "");
}

static void note_misuse(struct verdict *verdict, const trail_reader *reader,
                        const trail_event *event, long count)
{
    trail_reader_stats stats;
    trail_reader_get_stats(reader, &stats);
    if (stats.misused == 0)
        return;
    for (long i = 0; i < count && !verdict->misused[0]; i++)
        if (event[i].flags & TRAIL_EVENT_MISUSED)
            describe_misuse(reader, &event[i], verdict->misused);
}

static long read_all(trail_reader *reader, trail_source *source, struct verdict *verdict)
{
    struct progress progress;
    progress_begin(&progress, source, PROGRESS_OUTPUT_AFTER);
    const trail_event *events;
    long count;
    while ((count = trail_reader_next_batch(reader, &events)) > 0) {
        if (verdict->seen == 0)
            verdict->first_ns = events[0].time_ns;
        verdict->last_ns = events[count - 1].time_ns;
        verdict->seen += (uint64_t)count;
        note_misuse(verdict, reader, events, count);
        progress_step(&progress);
    }
    progress_end(&progress);
    return count;
}

/* For tests: nothing else shows that several threads were at work. */
static void print_parallel(const struct verdict *verdict)
{
    if (getenv("TRAIL_SHOW_PARALLEL"))
        print_message("%s: %" PRIu64 " of %" PRIu64 " generations in parallel",
                      source_title(verdict->word), verdict->stats.generations_alone,
                      verdict->stats.generations);
}

static void judge(struct verdict *verdict, trail_reader *reader, trail_source *source)
{
    long result = read_all(reader, source, verdict);
    trail_reader_get_stats(reader, &verdict->stats);
    if (result < 0) {
        verdict->error = *trail_reader_error(reader);
        verdict->code = exit_code_of(&verdict->error);
    }
    verdict->repair_count = trail_reader_repairs(reader, &verdict->repair_list);
    print_parallel(verdict);
}

/* MARK: For people */

static void show_repairs(const struct verdict *verdict)
{
    char where[256], text[SHOW_SIZE];
    if (!verdict->request->repair)
        return;
    printf("  repairs      %" PRIu64 "\n", verdict->stats.repairs);
    for (int kind = 0; kind < TRAIL_REPAIRS; kind++)
        if (verdict->stats.repairs_by_kind[kind] > 0)
            printf("    %-18s %9" PRIu64 "\n", trail_repair_kind_name((trail_repair_kind)kind),
                   verdict->stats.repairs_by_kind[kind]);
    if (!verdict->request->list)
        return;
    for (size_t i = 0; i < verdict->repair_count && i < verdict->request->limit; i++) {
        const trail_repair *repair = &verdict->repair_list[i];
        trail_error at = no_error();
        at.offset = repair->offset;
        at.proc = repair->proc;
        at.goroutine = repair->goroutine;
        at.time_ns = repair->time_ns;
        (void)trail_error_where(&at, where, sizeof where);
        printf("    %s at %s", trail_repair_kind_name(repair->kind), where);
        if (repair->shift_ns != 0)
            printf(", moved by %s", show_duration(text, repair->shift_ns));
        printf("\n");
    }
    if (verdict->stats.repairs > verdict->request->limit)
        printf("    ... and %" PRIu64 " more\n", verdict->stats.repairs - verdict->request->limit);
}

/* Names the trace that follows this one. */
static void show_next(const struct verdict *verdict)
{
    struct part_name part = {.number = 1};
    const bool is_part = part_name_parse(verdict->word, &part);
    char file[FOLLOW_UP_SIZE];
    char name[PATH_MAX + 16];
    if (strcmp(verdict->word, "-") == 0) {
        show_line("  next         another trace follows at offset %#" PRIx64,
                  (uint64_t)verdict->stats.next_trace);
        return;
    }
    (void)snprintf(name, sizeof name, "%s#%u", is_part ? part.file : verdict->word,
                   part.number + 1);
    show_line("  next         another trace follows: trail check %s", shell_file(name, file));
}

/* Shows what is remarkable in a trace, good or bad. */
static void show_notes(const struct verdict *verdict)
{
    const trail_reader_stats *stats = &verdict->stats;
    if (stats->misused > 0)
        show_line("  misused      %" PRIu64 " event%s of regions, tasks or logs break%s the rules "
                  "(Go's tools reject this trace), first %s",
                  stats->misused, plural_s(stats->misused), stats->misused == 1 ? "s" : "",
                  verdict->misused);
    char text[SHOW_SIZE];
    if (strcmp(verdict->form, "none") != 0)
        show_line("  read from    %s", verdict->form);
    if (stats->text_bytes > 0)
        show_line("  text         %" PRIu64 " byte%s of text that the program wrote into the "
                  "trace, at offset %#" PRIx64 ": left out",
                  stats->text_bytes, plural_s(stats->text_bytes), (uint64_t)stats->text_offset);
    if (verdict->code == EXIT_GOOD && stats->next_trace < 0 && verdict->total > 0 &&
        stats->bytes < (uint64_t)verdict->total)
        show_line("  zeros        %" PRIu64 " zero byte%s the trace",
                  (uint64_t)verdict->total - stats->bytes,
                  (uint64_t)verdict->total - stats->bytes == 1 ? " follows" : "s follow");
    if (stats->holes > 0)
        show_line("  holes        %" PRIu64
                  ": reading continued after the damage, and no state is counted across it",
                  stats->holes);
    if (stats->repairs > 0 && !verdict->request->repair)
        show_line("  inferred     %" PRIu64
                  " state%s where events are lost: sums leave out what is uncertain there",
                  stats->repairs, plural_s(stats->repairs));
    if (stats->lost_bytes > 0)
        show_line("  lost         %s", show_bytes(text, stats->lost_bytes));
    if (stats->unstopped)
        show_line(
            "  end          without a stop after %s: the program ended or the file was copied "
            "early",
            show_duration(text, verdict->last_ns - verdict->first_ns));
    if (stats->next_trace >= 0)
        show_next(verdict);
}

static void show_good(const struct verdict *verdict)
{
    const trail_reader_stats *stats = &verdict->stats;
    char text[SHOW_SIZE];
    show_line("%s: good", source_title(verdict->word));
    printf("  format       go 1.%d trace (%s)\n", verdict->version,
           trail_version_writers(verdict->version));
    printf("  events       %" PRIu64, stats->events);
    if (verdict->seen > 0)
        printf(" in %s", show_duration(text, verdict->last_ns - verdict->first_ns));
    printf("\n");
    if (trail_version_is_v2(verdict->version))
        printf("  generations  %" PRIu64 "\n", stats->generations);
    printf("  stacks       %" PRIu64 ", strings %" PRIu64 ", CPU samples %" PRIu64 "\n",
           stats->stacks, stats->strings, stats->cpu_samples);
    show_notes(verdict);
    show_repairs(verdict);
}

/* Prints what to try next with a damaged file. */
static void show_hint(const struct verdict *verdict)
{
    char word[FOLLOW_UP_SIZE];
    if (strcmp(verdict->word, "-") == 0)
        return;
    (void)shell_file(verdict->word, word);
    bool v2 = trail_version_is_v2(verdict->version);
    bool order =
        verdict->error.code == TRAIL_INCONSISTENT || verdict->error.code == TRAIL_TIME_ORDER;
    if (!v2 && order && !verdict->request->repair)
        show_line("  try          trail check --repair %s   or trail print --repair", word);
    if (verdict->stats.events > 1 || (!v2 && verdict->stats.good_bytes > 16))
        show_line("  try          trail print %s   shows everything that can be read", word);
}

/* Both sizes in bytes, as a trace may lack only its last few; 100 % is shown only if none is
 * missing. */
static void show_good_bytes(const struct verdict *verdict)
{
    const trail_reader_stats *stats = &verdict->stats;
    char good[SHOW_SIZE];
    int64_t total = stats->next_trace >= 0 ? stats->next_trace : verdict->total;
    if (total <= 0) {
        printf("  good         %s", show_bytes(good, stats->good_bytes));
        return;
    }
    double percent = 100.0 * (double)stats->good_bytes / (double)total;
    if (stats->good_bytes < (uint64_t)total && percent > 99.9)
        percent = 99.9;
    printf("  good         %" PRIu64 " of %" PRId64 " bytes (%.1f %%)", stats->good_bytes, total,
           percent);
}

static void show_bad(const struct verdict *verdict)
{
    const trail_reader_stats *stats = &verdict->stats;
    char where[256];
    show_line("%s: bad: %s", source_title(verdict->word), verdict->error.message);
    printf("  what         %s\n", trail_code_name(verdict->error.code));
    if (*trail_error_where(&verdict->error, where, sizeof where))
        show_line("  where        %s", where);
    if (verdict->version == 0)
        return;
    printf("  format       go 1.%d trace (%s)\n", verdict->version,
           trail_version_writers(verdict->version));
    show_good_bytes(verdict);
    if (trail_version_is_v2(verdict->version))
        printf(", %" PRIu64 " event%s, %" PRIu64 " generation%s", stats->events,
               plural_s(stats->events), stats->generations, plural_s(stats->generations));
    printf("\n");
    show_notes(verdict);
    show_repairs(verdict);
    show_hint(verdict);
}

/* MARK: --json (its keys are described in trail-check(1)) */

static void put_repair(struct row *row, const void *of)
{
    const trail_repair *repair = of;
    row_word(row, NULL, "kind", trail_repair_kind_name(repair->kind));
    row_id(row, NULL, "offset", repair->offset);
    row_id(row, NULL, "p", repair->proc);
    row_id(row, NULL, "g", repair->goroutine);
    row_time(row, NULL, "time_ns", repair->time_ns);
    row_duration(row, NULL, "shift_ns", repair->shift_ns);
}

static void json_repairs(struct json *json, const struct verdict *verdict)
{
    const size_t count = verdict->repair_count, limit = verdict->request->limit;
    json_number(json, "repairs", verdict->stats.repairs);
    json_open(json, "repairs_by_kind", '{');
    for (int kind = 0; kind < TRAIL_REPAIRS; kind++)
        if (verdict->stats.repairs_by_kind[kind] > 0)
            json_number(json, trail_repair_kind_name((trail_repair_kind)kind),
                        verdict->stats.repairs_by_kind[kind]);
    json_close(json, '}');
    if (verdict->request->list)
        rows_json(NULL, json, "repair_list", put_repair, verdict->repair_list,
                  sizeof *verdict->repair_list, count < limit ? count : limit);
}

static void json_verdict(const struct verdict *verdict)
{
    const trail_reader_stats *stats = &verdict->stats;
    struct json json = json_on_stdout();
    json_open(&json, NULL, '{');
    json_string(&json, "file", source_title(verdict->word));
    json_bool(&json, "good", verdict->code == EXIT_GOOD);
    if (verdict->version > 0) {
        json_number(&json, "version", (uint64_t)verdict->version);
        json_number(&json, "events", stats->events);
        json_number(&json, "file_events", stats->wire_events);
        json_number(&json, "generations", stats->generations);
        json_number(&json, "strings", stats->strings);
        json_number(&json, "stacks", stats->stacks);
        json_number(&json, "cpu_samples", stats->cpu_samples);
        json_number(&json, "bytes", stats->bytes);
        json_number(&json, "good_bytes", stats->good_bytes);
        json_number(&json, "misused", stats->misused);
        json_number(&json, "text_bytes", stats->text_bytes);
        json_number(&json, "holes", stats->holes);
        json_number(&json, "lost_bytes", stats->lost_bytes);
        json_bool(&json, "unstopped", stats->unstopped);
        if (stats->next_trace >= 0)
            json_signed(&json, "next_trace", stats->next_trace);
        if (verdict->misused[0])
            json_string(&json, "first_misused", verdict->misused);
        if (verdict->request->repair)
            json_repairs(&json, verdict);
        else if (stats->repairs > 0)
            json_number(&json, "inferred", stats->repairs);
    }
    if (verdict->code != EXIT_GOOD)
        json_error(&json, "error", &verdict->error);
    json_close(&json, '}');
    putchar('\n');
}

/* MARK: Run */

static void show_verdict(const struct verdict *verdict)
{
    if (verdict->request->json)
        json_verdict(verdict);
    else if (verdict->code == EXIT_INOUT || verdict->code == EXIT_USAGE)
        (void)print_error(verdict->word, &verdict->error);
    else if (verdict->request->quiet)
        return;
    else if (verdict->code == EXIT_GOOD)
        show_good(verdict);
    else
        show_bad(verdict);
}

static int check_file(const char *word, const struct request *request)
{
    struct verdict verdict = {.word = word, .request = request, .error = no_error(), .total = -1};
    trail_reader_options options = {
        .repair = request->repair,
        .strict = request->strict || request->go121,
        .partial = !request->strict && !request->go121,
        .verdict = request->go121 ? TRAIL_VERDICT_GO121 : TRAIL_VERDICT_AUTO,
        .verdict_only = true,
        .ahead = true,
        .threads = input_limits.threads,
    };
    trail_reader *reader = NULL;
    trail_source *source = open_source(word, &verdict.error);
    if (source)
        reader = trail_reader_open(source, &options, &verdict.error);
    if (reader) {
        verdict.version = trail_reader_version(reader);
        if (strcmp(trail_source_compression(source), "none") == 0)
            verdict.total = trail_source_size(source);
        judge(&verdict, reader, source);
        verdict.form = trail_source_compression(source);
    } else {
        verdict.code = exit_code_of(&verdict.error);
    }
    show_verdict(&verdict);
    trail_reader_close(reader);
    trail_source_close(source);
    return verdict.code;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct request request = {.limit = 100};
    struct options options;
    int code = options_each(&options, command, argc, argv, NULL, &request);
    if (code != EXIT_GOOD)
        return code;
    request.repair = request.repair || request.list;
    if (options.word_count == 0)
        return usage_error(command, "no file given (- is stdin)");
    for (int i = 0; i < options.word_count; i++)
        code = worse_exit(code, check_file(options.words[i], &request));
    return code;
}

const struct command command_check = {
    COMMAND_ROW(check),
    .synopsis = "[options] FILE...",
    .details =
        "Reads everything with all checks on. For a bad trace it shows what is wrong, where, and "
        "how much of the file before it is good. The exit status is 1 if any trace is bad.",
    .examples = "  trail check *.trace\n"
                "  trail check --repair --list --limit=20 cgo.trace\n"
                "  trail check --quiet app.trace && echo good",
    .wrapped = true,
};
