/* --words: the vocabulary of a command's output. */
#pragma once

#include "ui/cli.h"
#include "words/vocabulary.h"

static const struct option_word words_choices[] = {
    {"go", TRAIL_WORDS_GO}, {"threads", TRAIL_WORDS_THREADS}, {0}};

/* The option, for all commands that print terms of the vocabulary. */
#define WORDS_ROW(request, member)                                                                 \
    {                                                                                              \
        0, "words", "go|threads",                                                                  \
            "use the words of goroutines or of threads (default: those of what made the trace)",   \
            TO_WORD(request, member, words_choices), .expects = "go or threads"                    \
    }

/* Returns the option's value; NULL: not given. */
static inline const char *words_value(trail_words words)
{
    return words == TRAIL_WORDS_BY_TRACE ? NULL : words == TRAIL_WORDS_GO ? "go" : "threads";
}
