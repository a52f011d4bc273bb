/* Findings: the list, its sentences and its order. */
#include "diagnose/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "diagnose/wait_sums.h"
#include "words/gain.h"
#include "words/wrappers.h"

/* MARK: Sentences */

/*
 * Appends formatted sentences to `text`, with a capital first letter, which a name keeps as it is:
 * formats that begin with one begin with "%.*s".
 */
static const char *append(struct findings *findings, const char *text, const char *format,
                          va_list args)
{
    char all[4096];
    size_t used = (size_t)snprintf(all, sizeof all, "%s%s", text, *text ? " " : "");
    if (used < sizeof all)
        (void)vsnprintf(all + used, sizeof all - used, format, args);
    if (used < sizeof all && strncmp(format, "%.*s", 4) != 0 && all[used] >= 'a' &&
        all[used] <= 'z')
        all[used] = (char)(all[used] - 'a' + 'A');
    const char *copy = arena_copy(&findings->texts, all, strlen(all) + 1);
    findings->failed |= !copy;
    return copy ? copy : "";
}

void finding_say(struct findings *findings, const struct finding_of *of, const char *format, ...)
{
    const trail_longest *moment = of->moment;
    double gain = time_share(findings, of->gain_ns),
           share = of->weight_ns ? time_share(findings, of->weight_ns) : gain;
    va_list args;
    if (!GROW(findings->rows, findings->capacity, findings->count + 1)) {
        findings->failed = true;
        return;
    }
    /* gain_words gives no bound for what weighs as much as the whole. */
    if (gain < GAIN_MOST_SHARE && share > GAIN_LESS_SHARE)
        share = GAIN_LESS_SHARE;
    va_start(args, format);
    findings->rows[findings->count++] = (trail_finding){
        .kind = of->kind,
        .heading = append(findings, "", format, args),
        .details = "",
        .remedy = "",
        .gain_ns = of->gain_ns,
        /* 1 and more are hangs, which a share of the whole time is not. */
        .weight = (double)of->rank + (share < MOST_SHARE ? share : MOST_SHARE),
        .note = of->note && share < NOTE_SHARE,
        .function = of->function,
        .object = of->object,
        .has_moment = moment != NULL,
        .begin_ns = moment ? moment->begin_ns : 0,
        .end_ns = moment ? (int64_t)((uint64_t)moment->begin_ns + (uint64_t)moment->ns) : 0,
        .goroutine = moment ? moment->goroutine : TRAIL_NONE,
        .task = TRAIL_NONE,
    };
    va_end(args);
    char bound[GAIN_BOUND_SIZE];
    if (of->saves && gain < GAIN_MOST_SHARE)
        finding_advise(findings, "%s",
                       gain_bound(of->kind, of->gain_ns, length_of(findings), bound));
}

void finding_explain(struct findings *findings, const char *format, ...)
{
    trail_finding *finding = finding_last(findings);
    va_list args;
    va_start(args, format);
    finding->details = append(findings, finding->details, format, args);
    va_end(args);
}

void finding_advise(struct findings *findings, const char *format, ...)
{
    trail_finding *finding = finding_last(findings);
    va_list args;
    va_start(args, format);
    finding->remedy = append(findings, finding->remedy, format, args);
    va_end(args);
}

/* Joins the parts. */
static const char *whole_text(struct findings *findings, const trail_finding *finding)
{
    char all[8192];
    (void)snprintf(all, sizeof all, "%s.%s%s%s%s", finding->heading, *finding->details ? " " : "",
                   finding->details, *finding->remedy ? " " : "", finding->remedy);
    const char *copy = arena_copy(&findings->texts, all, strlen(all) + 1);
    findings->failed |= !copy;
    return copy ? copy : "";
}

static void drop_bound(struct findings *findings, trail_finding *finding)
{
    char bound[GAIN_BOUND_SIZE];
    finding->remedy = gain_remedy(finding, length_of(findings), bound);
    if (*bound)
        finding->text = whole_text(findings, finding);
}

bool finding_replayed(struct findings *findings, trail_finding *finding, const char *const *options,
                      const char *sentence)
{
    drop_bound(findings, finding);
    finding->replayed = arena_copy(&findings->texts, sentence, strlen(sentence) + 1);
    for (int i = 0; i < 2 && options[i]; i++) {
        finding->whatif[i] = arena_copy(&findings->texts, options[i], strlen(options[i]) + 1);
        if (!finding->whatif[i])
            return false;
    }
    return finding->replayed != NULL && !findings->failed;
}

bool finding_was_said(const struct findings *findings, const char *kind)
{
    for (size_t i = 0; i < findings->count; i++)
        if (strcmp(findings->rows[i].kind, kind) == 0)
            return true;
    return false;
}

bool finding_names(const struct findings *findings, const char *kind, trail_name function)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->rows[i].function == function && strcmp(findings->rows[i].kind, kind) == 0)
            return true;
    return false;
}

trail_finding *finding_last(struct findings *findings)
{
    return findings->count > 0 && !findings->failed ? &findings->rows[findings->count - 1]
                                                    : &findings->none;
}

trail_string text_of(const struct findings *findings, trail_name name)
{
    static const trail_string unknown = {"(unknown)", 9};
    trail_string text = names_text(&findings->analysis->names, name);
    return text.size > 0 ? text : unknown;
}

bool finding_is_runtime(const struct findings *findings, trail_name name)
{
    return text_begins(text_of(findings, name), "runtime.");
}

struct finding_words finding_started(const struct findings *findings, trail_name name)
{
    struct finding_words words;
    const struct wait_group *group = waits_find_group(findings->waits, name);
    trail_string shown = text_of(findings, name);
    bool nameless = memmem(shown.data, shown.size, ".so", 3) != NULL;
    if (!nameless || !group || group->created_at == 0)
        (void)snprintf(words.text, sizeof words.text, "%.*s", SHOWN(shown));
    else
        (void)snprintf(words.text, sizeof words.text, "%.*s (created at %.*s)", SHOWN(shown),
                       NAMED(findings, group->created_at));
    return words;
}

/* MARK: All */

static void (*const all[])(struct findings *) = {
#define FINDING(function, kind) finding_##function,
#include "diagnose/findings.def"
};

static int by_weight(const void *a, const void *b)
{
    const trail_finding *x = a, *y = b;
    if (x->note != y->note)
        return x->note ? 1 : -1;
    if (x->weight != y->weight)
        return x->weight < y->weight ? 1 : -1;
    return strcmp(x->text, y->text);
}

void findings_sort(struct findings *findings)
{
    if (findings->count > 0)
        qsort(findings->rows, findings->count, sizeof *findings->rows, by_weight);
}

static void explain_of(struct findings *findings, trail_finding *finding, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    finding->details = append(findings, finding->details, format, args);
    finding->text = whole_text(findings, finding);
    va_end(args);
}

/* Where a function has no name but its address, says once what would give it one. */
static void explain_address(struct findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        trail_string name = text_of(findings, findings->rows[i].function);
        const char *plus = memmem(name.data, name.size, "+0x", 3);
        if (frame_rank(NULL, name, (trail_string){NULL, 0}) != FRAME_ADDRESS || !plus)
            continue;
        trail_string module = {name.data, (size_t)(plus - name.data)};
        explain_of(findings, &findings->rows[i],
                   "%.*s has no symbols: build it with -g and record again, or install its debug "
                   "information and see trail-symbolize(1).",
                   SHOWN(module));
        return;
    }
}

static bool init(void *part, struct trail_analysis *analysis)
{
    struct findings *findings = part;
    findings->analysis = analysis;
    findings->activity = analysis_object(analysis, &activity_part);
    findings->waits = analysis_object(analysis, &waits_part);
    findings->gc = analysis_object(analysis, &gc_part);
    findings->utilisation = analysis_object(analysis, &utilisation_part);
    findings->stuck = analysis_object(analysis, &stuck_part);
    findings->regions = analysis_object(analysis, &regions_part);
    findings->misuses = analysis_object(analysis, &misuses_part);
    findings->sums = OBJECTS_OF(struct wait_sums);
    findings->needs = calloc(1, sizeof *findings->needs);
    return findings->needs != NULL;
}

static bool finish(void *part, int64_t ns)
{
    struct findings *findings = part;
    (void)ns;
    vocabulary_init(&findings->vocabulary, trail_reader_maker(findings->analysis->reader),
                    findings->analysis->options.words);
    if (findings->waits && !wait_sums_add(&findings->sums, findings->waits))
        return false;
    for (size_t i = 0; findings->activity && i < sizeof all / sizeof *all; i++)
        all[i](findings);
    for (size_t i = 0; i < findings->count; i++)
        findings->rows[i].text = whole_text(findings, &findings->rows[i]);
    findings_sort(findings);
    explain_address(findings);
    return !findings->failed && !findings->needs->failed;
}

static void drop(void *part)
{
    struct findings *findings = part;
    free(findings->rows);
    objects_free(&findings->sums);
    if (findings->needs)
        objects_free(&findings->needs->kinds);
    free(findings->needs);
    arena_free(&findings->texts);
}

const struct analysis_part findings_part = {
    .what = TRAIL_ANALYZE_FINDINGS,
    .size = sizeof(struct findings),
    .init = init,
    .free = drop,
    .finish = finish,
};

struct findings *findings_of(const struct trail_analysis *analysis)
{
    return analysis_object(analysis, &findings_part);
}

size_t trail_analysis_findings(const trail_analysis *analysis, const trail_finding **rows)
{
    const struct findings *findings = findings_of(analysis);
    *rows = findings ? findings->rows : NULL;
    return findings ? findings->count : 0;
}
