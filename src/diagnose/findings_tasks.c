/* Findings: the slowest task, region and wait, and annotations used against the rules. */
#include <ctype.h>
#include <stdio.h>

#include "analyze/regions.h"
#include "base/quantile.h"
#include "diagnose/findings.h"
#include "diagnose/misuses.h"
#include "diagnose/waits.h"
#include "words/place.h"

#define SLOW_LEAST   INT64_C(10000000)
#define SLOW_TIMES   10 /* the slowest compared with the median */
#define SLOW_COUNT   5
#define ASSIST_SHARE 0.1 /* of the slowest task or region */

/* MARK: Tasks */

/* Whether the wait is most of the slowest task or region. */
static bool is_most_of(const trail_longest *span, const trail_longest *wait)
{
    return wait->goroutine == span->goroutine && wait->begin_ns >= span->begin_ns &&
           ns_between(span->begin_ns, wait->begin_ns) + wait->ns <= span->ns &&
           wait->ns >= span->ns / 2;
}

/* Explains what most of `span` was one wait for. Returns false if that is not known. */
static bool explain_wait(struct findings *findings, const trail_longest *span)
{
    const struct waits *waits = findings->waits;
    BLAME_EACH(row, &waits->blame) {
        /* A goroutine of Go that ends a wait for the network only looked at the connections. */
        if (row->function == 0 || !is_most_of(span, &row->longest) ||
            (waits->is_go && row->wait == waits->network))
            continue;
        struct finding_words what = finding_lock(findings, row->wait);
        if (!row->lock)
            (void)snprintf(what.text, sizeof what.text, "%.*s", NAMED(findings, row->wait));
        finding_explain(findings, "For %s of it, its %s waited for %s, which %.*s %s.",
                        duration(row->longest.ns).text, word(findings, TERM_task), what.text,
                        NAMED(findings, row->place), row->lock ? "held" : "ended");
        return true;
    }
    OUTSIDE_EACH(row, &waits->outside) {
        if (!is_most_of(span, &row->longest))
            continue;
        finding_explain(findings, "For %s of it, its %s waited (%.*s) at %.*s.",
                        duration(row->longest.ns).text, word(findings, TERM_task),
                        NAMED(findings, row->wait), NAMED(findings, row->place));
        return true;
    }
    return false;
}

/* Explains what the slowest task or region spent its time with, and the function. */
static void explain_spent(struct findings *findings, const trail_longest *span,
                          const struct task_spent *spent)
{
    if (!spent->known)
        return;
    bool assists = spent->assist_ns > (int64_t)(ASSIST_SHARE * (double)span->ns);
    if (spent->assist_ns <= span->ns / 2 && !explain_wait(findings, span))
        finding_explain(findings, "Its %s ran for %s, was ready for %s and waited for the rest.",
                        word(findings, TERM_task), duration(spent->exec_ns).text,
                        duration(spent->ready_ns).text);
    if (!assists)
        return;
    finding_explain(findings,
                    "For %s of it, its %s had to help the garbage collection (assists), since it "
                    "allocates faster than the collection marks.",
                    duration(spent->assist_ns).text, word(findings, TERM_task));
    finding_advise(findings, "Allocate less in it, or let the heap grow (GOGC, GOMEMLIMIT).");
}

/* Whether a flight recorder found something of this name slow: "task request took 312 ms". */
static bool is_over_limit(const struct findings *findings, const char *what, trail_string name)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(findings->analysis->names.reader, &rows);
    for (size_t i = 0; i < count; i++) {
        trail_string text = rows[i].name;
        if (rows[i].what == TRAIL_RECORDED_SLOW && text_take(&text, what) &&
            text_take(&text, " ") && text.size > name.size && text.data[name.size] == ' ' &&
            memcmp(text.data, name.data, name.size) == 0)
            return true;
    }
    return false;
}

/*
 * Adds a finding if the slowest task or region of a name is much slower than the others, or than
 * the recording allows. Returns whether it is.
 */
static bool say_slowest(struct findings *findings, const struct finding_of *of, const char *what,
                        const trail_histogram *all, int64_t slowest)
{
    int64_t median = trail_histogram_quantile(all, 0.5);
    trail_string name = text_of(findings, of->function);
    struct finding_of own = *of;
    if (all->count >= SLOW_COUNT && slowest >= SLOW_LEAST && slowest / SLOW_TIMES >= median) {
        own.gain_ns = ns_between(median, slowest);
        finding_say(findings, &own, "The slowest %s %.*s took %s, the median of %s about %s", what,
                    SHOWN(name), duration(slowest).text, counted(all->count).text,
                    duration(median).text);
        return true;
    }
    if (!is_over_limit(findings, what, name))
        return false;
    own.gain_ns = slowest;
    finding_say(findings, &own, "The slowest %s %.*s took %s, over the limit of the recording",
                what, SHOWN(name), duration(slowest).text);
    return true;
}

void finding_slow_task(struct findings *findings)
{
    const trail_task_kind *const *kinds;
    size_t count = trail_analysis_task_kinds(findings->analysis, &kinds);
    for (size_t i = 0; i < count; i++) {
        const struct task_kind *kind = (const struct task_kind *)kinds[i];
        const trail_longest *longest = &kinds[i]->longest;
        const trail_longest span = {longest->ns, longest->begin_ns, kind->goroutine};
        const struct finding_of of = {"slow-task", .moment = &span, .function = kinds[i]->name};
        if (!say_slowest(findings, &of, "task", &kinds[i]->spread, span.ns))
            continue;
        explain_spent(findings, &span, &kind->slowest);
        finding_last(findings)->task = kinds[i]->longest.goroutine;
    }
}

void finding_slow_region(struct findings *findings)
{
    const struct regions *regions = findings->regions;
    for (size_t i = 0; regions && i < regions->groups.count; i++) {
        const trail_group *group = &regions->groups.rows[i];
        const trail_histogram *total = group->columns ? &group->columns[TRAIL_COLUMN_TOTAL] : NULL;
        const struct region_slowest *slowest = objects_find(&regions->slowest, group->name);
        const struct finding_of of = {"slow-region", .moment = slowest ? &slowest->span : NULL,
                                      .function = group->name};
        if (!total || group->name == 0 ||
            !say_slowest(findings, &of, "region", total, total->max_ns))
            continue;
        if (slowest)
            explain_spent(findings, &slowest->span, &slowest->spent);
        finding_last(findings)->region = group->name;
    }
}

/* The recorder's begin of a wait differs by a few ns from that of its event. */
#define WAIT_SLACK_NS 1000

/* The waits for which a flight recorder has written a snapshot. */
void finding_slow_wait(struct findings *findings)
{
    const trail_recorded *rows;
    size_t count = trail_reader_recorded(findings->analysis->names.reader, &rows);
    for (size_t i = 0; i < count; i++) {
        trail_longest wait = {rows[i].cpu_ns, rows[i].recorder_ns, (int64_t)rows[i].count};
        const struct finding_of of = {"slow-wait", .gain_ns = wait.ns, .moment = &wait};
        trail_longest span = {wait.ns + WAIT_SLACK_NS, wait.begin_ns, wait.goroutine};
        trail_string text = rows[i].name;
        if (rows[i].what != TRAIL_RECORDED_SLOW || wait.goroutine == 0 || text.size == 0)
            continue;
        finding_say(findings, &of, "%c%.*s", toupper((unsigned char)*text.data), (int)text.size - 1,
                    text.data + 1);
        (void)explain_wait(findings, &span);
    }
}

/* MARK: Annotations */

void finding_misused(struct findings *findings)
{
    const struct misuses *misuses = findings->misuses;
    struct stack_row stack = stacks_get(&findings->analysis->stacks, misuses->stack);
    char place[PLACE_TEXT_SIZE] = "a place without a stack", others[120] = "";
    if (misuses->count == 0)
        return;
    if (stack.count > 0) {
        const trail_place *own = &stack.places[stack.own];
        const struct names *names = &findings->analysis->names;
        (void)place_of_frame(names_text(names, own->function), names_text(names, own->file),
                             own->line, PLACE_PARENTHESES, place, sizeof place);
    }
    if (misuses->count > 1)
        (void)snprintf(others, sizeof others, " (the first of %s such events)",
                       counted(misuses->count).text);
    trail_string name = names_text(&findings->analysis->names, misuses->name);
    /* A flaw of the trace, which costs no time. */
    const struct finding_of of = {"misused-annotation", .moment = &misuses->first};
    finding_say(findings, &of, "%s '%.*s' at %s %s%s", misuses->what, SHOWN(name), place,
                misuses->rule, others);
    finding_explain(findings, "Go's tools stop reading the trace there.");
}
