/* The gain of a finding in words: see gain.h. */
#include "words/gain.h"

#include <stdio.h>
#include <string.h>

#include "base/duration.h"

static const struct {
    const char *of; /* as in trail_finding.replayed_of */
    const char *title;
    bool compares; /* the figure then and now; else what is less */
} replayed[] = {
    {"end", "would save", false},
    {"median", "median task would take", true},
    {"p99", "99 % of tasks would take at most", true},
    {"waits", "less waiting", false},
    {"threads", "same work done after", true},
};

int64_t gain_ns(const trail_finding *finding)
{
    int64_t now = finding->replayed_now_ns, then = finding->replayed_then_ns;
    return !finding->replayed ? finding->gain_ns : now > then ? now - then : 0;
}

static void put_replayed(const trail_finding *finding, bool compares, char *figure, size_t size)
{
    int64_t now = finding->replayed_now_ns, then = finding->replayed_then_ns;
    char before[DURATION_SIZE], after[DURATION_SIZE];
    if (compares)
        (void)snprintf(figure, size, "%s instead of %s", duration_text(after, then, DURATION_WORDS),
                       duration_text(before, now, DURATION_WORDS));
    else
        (void)snprintf(figure, size, "%s",
                       now > then ? duration_text(after, now - then, DURATION_WORDS) : "nothing");
}

/* Kinds whose bound is the time that others waited. Mending the cause may save more: what the
 * culprit did meanwhile. */
static const char *const of_waits[] = {
    "lock-serialises",    "lock-contention", "long-hold",
    "holder-not-running", "writer-starved",  "once",
};

static bool is_of_waits(const char *kind)
{
    for (size_t i = 0; i < sizeof of_waits / sizeof *of_waits; i++)
        if (strcmp(of_waits[i], kind) == 0)
            return true;
    return false;
}

const char *gain_bound(const char *kind, int64_t gain_ns, int64_t length_ns,
                       char text[GAIN_BOUND_SIZE])
{
    char gain[DURATION_SIZE], length[DURATION_SIZE];
    (void)snprintf(text, GAIN_BOUND_SIZE, "At most %s of %s would be saved%s.",
                   duration_text(gain, gain_ns, DURATION_WORDS),
                   duration_text(length, length_ns, DURATION_WORDS),
                   is_of_waits(kind) ? " without these waits" : "");
    return text;
}

const char *gain_remedy(const trail_finding *finding, int64_t length_ns,
                        char bound[GAIN_BOUND_SIZE])
{
    const char *remedy = finding->remedy;
    size_t size = strlen(gain_bound(finding->kind, finding->gain_ns, length_ns, bound));
    if (strncmp(remedy, bound, size) == 0)
        return remedy + size + strspn(remedy + size, " ");
    *bound = '\0';
    return remedy;
}

bool gain_words(const trail_finding *finding, struct gain_words *words)
{
    for (size_t i = 0; finding->replayed && i < sizeof replayed / sizeof *replayed; i++)
        if (strcmp(finding->replayed_of, replayed[i].of) == 0) {
            words->title = replayed[i].title;
            put_replayed(finding, replayed[i].compares, words->figure, sizeof words->figure);
            return true;
        }
    bool hangs = finding->weight >= 1;
    words->title = hangs                        ? "hung for"
                   : is_of_waits(finding->kind) ? "waits cost at most"
                                                : "saves at most";
    (void)duration_text(words->figure, finding->gain_ns, DURATION_WORDS);
    return finding->gain_ns > 0 && (hangs || finding->weight < GAIN_MOST_SHARE);
}
