/*
 * The command line that an analysis of the API stands for.
 *
 * What a question may ask for stands in a table: which commands, and of each which options, with
 * what their values look like. A value becomes part of one word of the command line; no shell sees
 * it.
 */
#ifndef TRAIL_SERVE_COMMAND_LINE_H
#define TRAIL_SERVE_COMMAND_LINE_H

#include "serve/question.h"

enum { MOST_WORDS = 24 };

/* Ended by NULL. Zero-initialised is empty. */
struct words {
    char *items[MOST_WORDS + 1];
    size_t count;
    bool failed; /* one is missing: memory is out */
};

void words_add(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_free(struct words *words);

/* How many traces the command is about that the question names. 0: there is none such, and it is refused. */
unsigned command_line_traces(struct question *question);

/*
 * Puts the words of `trail COMMAND --json [options] -- PATH [OTHER]` as /api/run asks for them; `other` NULL:
 * there is no second trace. False: the question is refused. Free the words in either case.
 */
bool command_line(struct question *question, const char *path, const char *other,
                  struct words *words);

#endif
