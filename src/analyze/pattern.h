/*
 * Patterns: sequences of steps to look for in one goroutine.
 *
 *     pattern = step { "then" ["directly"] ["within" TIME] step } ["within" TIME]
 *     step    = choice { ("or" | "|") choice }
 *     choice  = WORD ["[" TEXT { "|" TEXT } "]"] { "in" FUNCTION | "by" FUNCTION | COMPARE TIME }
 *
 * Words, texts and functions point into the pattern's own copy of its text; * in a text or function
 * matches any bytes.
 */
#pragma once

#include <trail/analyze.h>

enum { PATTERN_STEPS = 16, PATTERN_CHOICES = 64, PATTERN_TEXTS = 64 };

/* What a step can be. States come first: they last; the others are points in time. */
enum thing {
    THING_RUN,
    THING_READY,
    THING_BLOCK,
    THING_SYSCALL,
    THING_CREATE,
    THING_START,
    THING_STOP,
    THING_WAKE,
    THING_END,
    THING_CREATES,
    THING_WAKES,
    THING_LOG,
    THING_REGION,
    THING_REGION_END,
    THING_TASK,
    THING_TASK_END,
    THING_SAMPLE,
    THINGS,
    FIRST_MOMENT = THING_CREATE
};

const char *thing_word(enum thing thing);

struct pattern_choice {
    enum thing thing;
    unsigned first_text, text_count; /* alternatives; none: any */
    trail_string in, by;             /* empty: any */
    int64_t least_ns, most_ns;       /* inclusive */
};

struct pattern_step {
    unsigned first, count; /* choices */
    bool directly;
    int64_t within_ns; /* after the end of the previous step; INT64_MAX: unlimited */
};

struct trail_pattern {
    char *text;
    struct pattern_step steps[PATTERN_STEPS];
    struct pattern_choice choices[PATTERN_CHOICES];
    trail_string texts[PATTERN_TEXTS];
    unsigned step_count, choice_count, text_count;
    int64_t within_ns; /* the whole hit */
    unsigned things;   /* 1 << thing, of all choices */
};

/* Whether a pattern with * matches the whole text. */
bool pattern_glob(trail_string glob, trail_string text);

/* Whether the text, a wait's reason or a name, matches one of the choice's alternatives. */
bool pattern_text(const trail_pattern *pattern, const struct pattern_choice *choice,
                  trail_string text);
