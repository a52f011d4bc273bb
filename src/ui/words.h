/* --words: the vocabulary of a command's output. */
#ifndef TRAIL_UI_WORDS_H
#define TRAIL_UI_WORDS_H

#include "ui/cli.h"
#include "words/vocabulary.h"

/* The option, for all commands that print terms of the vocabulary. */
#define WORDS_ROW(id)                                                                              \
    {                                                                                              \
        0, "words", "go|threads",                                                                  \
            "speak of goroutines or of threads; without it, as what\nmade the trace does",         \
            TAKE(id), .values = "go threads"                                                       \
    }

/* Takes its value. Returns EXIT_GOOD or EXIT_USAGE. */
static inline int words_option(const struct command *command, const char *value, trail_words *words)
{
    if (words_parse(value, words))
        return EXIT_GOOD;
    return usage_error(command, "--words is go or threads, not '%s'", value);
}

/* Returns the option's value; NULL: not given. */
static inline const char *words_value(trail_words words)
{
    return words == TRAIL_WORDS_BY_TRACE ? NULL : words == TRAIL_WORDS_GO ? "go" : "threads";
}

#endif
