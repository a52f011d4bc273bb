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
    {"end", "a replay saves", false},
    {"median", "median task in a replay", true},
    {"p99", "99 % of tasks in a replay", true},
    {"waits", "less waiting in a replay", false},
};

static void put_replayed(const trail_finding *finding, bool compares, char *figure, size_t size)
{
    int64_t now = finding->replayed_now_ns, then = finding->replayed_then_ns;
    char before[DURATION_SIZE], after[DURATION_SIZE];
    if (compares)
        (void)snprintf(figure, size, "%s, not %s", duration_text(after, then, DURATION_WORDS),
                       duration_text(before, now, DURATION_WORDS));
    else
        (void)snprintf(figure, size, "%s",
                       now > then ? duration_text(after, now - then, DURATION_WORDS) : "nothing");
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
    words->title = hangs ? "hung for" : "saves at most";
    (void)duration_text(words->figure, finding->gain_ns, DURATION_WORDS);
    return finding->gain_ns > 0 && (hangs || finding->weight < GAIN_MOST_SHARE);
}
