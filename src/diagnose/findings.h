/*
 * Findings: problems that a trace shows, as sentences with figures, the culprit and a bound of what
 * its removal would gain. findings.def lists them. Each has a threshold, because a list that
 * reports normal behaviour is not read twice.
 */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "analyze/part.h"
#include "base/arena.h"
#include "base/duration.h"
#include "base/objects.h"
#include "base/share.h"
#include "base/show.h"
#include "base/text.h"
#include "words/vocabulary.h"

/* Answers of other parts, which own them; NULL: not requested. */
/* Which kinds of goroutines the program's end needs: findings_waits.c, when first asked. */
struct finding_needs {
    struct objects kinds;
    bool known, failed; /* failed: out of memory */
};

struct findings {
    struct trail_analysis *analysis;
    const struct activity *activity;
    const struct waits *waits; /* with activity */
    const struct gc *gc;
    const struct utilisations *utilisation;
    const struct stuck *stuck;
    const struct regions *regions;
    const struct misuses *misuses;
    struct vocabulary vocabulary;
    struct objects sums; /* of waits: wait_sums.h */
    struct finding_needs *needs;
    trail_finding *rows;
    size_t count, capacity;
    struct arena texts;
    trail_finding none;      /* for a finding without memory */
    int64_t holder_ready_ns; /* of a lock's finding: waited for a holder that had no CPU */
    bool failed;             /* out of memory */
};

/* A duration as text. */
struct duration_words {
    char text[DURATION_SIZE];
};

static inline struct duration_words duration(int64_t ns)
{
    struct duration_words words = {0};
    (void)duration_text(words.text, ns, DURATION_WORDS);
    return words;
}

/* A number of things as text: "12,345". */
struct count_words {
    char text[SHOW_SIZE];
};

static inline struct count_words counted(uint64_t count)
{
    struct count_words words = {.text = ""};
    (void)show_thousands(words.text, count);
    return words;
}

/* "3 waits, 1.20 s in all, the longest 900 ms", or "1 wait of 900 ms". */
struct several {
    char text[4 * DURATION_SIZE];
};

static inline struct several several(uint64_t count, const char *what, int64_t sum_ns,
                                     int64_t longest_ns)
{
    struct several words = {.text = ""};
    if (count == 1)
        (void)snprintf(words.text, sizeof words.text, "1 %s of %s", what, duration(sum_ns).text);
    else
        (void)snprintf(words.text, sizeof words.text, "%s %s%s, %s in all, the longest %s",
                       counted(count).text, what, plural_s(count), duration(sum_ns).text,
                       duration(longest_ns).text);
    return words;
}

/* Returns the text of a name, or "(unknown)". */
trail_string text_of(const struct findings *findings, trail_name name);

static inline const char *word(const struct findings *findings, enum term name)
{
    return term(&findings->vocabulary, name);
}

static inline int64_t length_of(const struct findings *findings)
{
    return ns_between(findings->analysis->span.begin_ns, findings->analysis->span.end_ns);
}

/* Returns which share of the trace's or window's length that is. */
static inline double time_share(const struct findings *findings, int64_t ns)
{
    return share_of(ns, length_of(findings));
}

/* Returns that share of `ns`, which is at most 1. */
static inline int64_t part_of(int64_t ns, double share)
{
    if (share >= 1)
        return ns;
    return share > 0 ? (int64_t)((double)ns * share) : 0;
}

/* Arguments for "%.*s": names are at most as long as fits a sentence. */
#define SHOWN_SIZE(text) (int)((text).size < 160 ? (text).size : 160)
#define SHOWN(text)      SHOWN_SIZE(text), (text).data

/* The same for the text of a name. Evaluates its arguments three times. */
#define NAMED(findings, name) SHOWN(text_of(findings, name))

/* Ranks of the sentence: hangs are above all that costs time. */
enum finding_rank { FINDING_COSTS, FINDING_HANGS, FINDING_DEADLOCK };

/* From so many waits on it may be that work is handed over in pieces that are too small. */
#define HANDOFF_TIMES 10000

/* What other programs did comes below what the program does, unless it took most of the time. */
#define NOTE_SHARE 0.5

/* The most of a finding's weight that is not its rank. */
#define MOST_SHARE 0.999999

/* What a finding is about, besides its sentence. */
struct finding_of {
    const char *kind;
    enum finding_rank rank;
    int64_t gain_ns;   /* at most */
    int64_t weight_ns; /* what ranks it; 0: `gain_ns` */
    const trail_longest *moment;
    trail_name function, object;
    bool note;  /* about other programs */
    bool saves; /* the text has the gain, as a part of the time */
};

/* The same of a finding whose text has the gain. */
static inline struct finding_of finding_saves(const char *kind, int64_t gain_ns,
                                              const trail_longest *moment, trail_name function,
                                              trail_name object)
{
    return (struct finding_of){.kind = kind,
                               .gain_ns = gain_ns,
                               .moment = moment,
                               .function = function,
                               .object = object,
                               .saves = true};
}

/* Adds a finding: what is so, with the culprit, as one sentence without its full stop. */
__attribute__((format(printf, 3, 4))) void
finding_say(struct findings *findings, const struct finding_of *of, const char *format, ...);

/* Adds sentences to the last finding: its evidence. */
__attribute__((format(printf, 2, 3))) void finding_explain(struct findings *findings,
                                                           const char *format, ...);

/* Adds sentences to the last finding: what to do. */
__attribute__((format(printf, 2, 3))) void finding_advise(struct findings *findings,
                                                          const char *format, ...);

/* Whether it is a goroutine of Go's runtime, which also runs where nothing else has work. */
bool finding_is_runtime(const struct findings *findings, trail_name name);

struct finding_words {
    char text[420];
};

/* A start function; of one in a library without its name, also the place of the creation. */
struct finding_words finding_started(const struct findings *findings, trail_name name);

/* "mutex stats_mu", or "a lock" where the trace has no names of locks. */
struct finding_words finding_lock(const struct findings *findings, trail_name wait);

/*
 * Those that ran for longest, but for `name`; NULL: none ran for a tenth of the time, so that other
 * programs had the CPUs.
 */
const struct wait_group *finding_busiest_but(const struct findings *findings, trail_name name);

/* Whether others wait for the end of all goroutines with this start function, for at least the
 * share of the time. */
bool finding_all_awaited(const struct findings *findings, trail_name start, double share);

/* Whether a finding of this kind has that function. */
bool finding_names(const struct findings *findings, const char *kind, trail_name function);

bool finding_was_said(const struct findings *findings, const char *kind);

/* The finding that was added last. */
trail_finding *finding_last(struct findings *findings);

/* Sorts them by weight, after one has changed. */
void findings_sort(struct findings *findings);

/* Returns the findings of a finished analysis, NULL if they were not requested. */
struct findings *findings_of(const struct trail_analysis *analysis);

/* Sets what a replay has shown, in place of the bound, which says less; and the one or two options
 * of `trail whatif` that ask for it. Returns false if out of memory. */
bool finding_replayed(struct findings *findings, trail_finding *finding, const char *const *options,
                      const char *sentence);

/* A row of findings.def: adds findings of its kind. */
#define FINDING(function, kind) void finding_##function(struct findings *findings);
#include "diagnose/findings.def"
