/*
 * The vocabulary for a trace: one table (vocabulary.def), selected by what made the trace.
 *
 *     struct vocabulary vocabulary;
 *     vocabulary_init(&vocabulary, trail_reader_maker(reader), TRAIL_WORDS_BY_TRACE);
 *     printf("%" PRIu64 " %s", count, term_count(&vocabulary, count, TERM_task));
 */
#pragma once

#include <trail/read.h>

enum term {
#define TERM(name, ...) TERM_##name,
#include "words/vocabulary.def"
    TERMS
};

enum { TERM_SIZE = 2 * TRAIL_TASK_WORD_MAX };

struct vocabulary {
    trail_made_by of; /* _GO: Go's words, _RECORD: threads, _HOST: the host's */
    char text[TERMS][TERM_SIZE];
};

/* `maker` is the trace's; NULL: Go. */
void vocabulary_init(struct vocabulary *vocabulary, const trail_maker *maker, trail_words words);

static inline const char *term(const struct vocabulary *vocabulary, enum term name)
{
    return vocabulary->text[name];
}

/* Returns the term for 1, otherwise the one after it, which is its plural: "1 thread", "0
 * threads". */
static inline const char *term_count(const struct vocabulary *vocabulary, uint64_t count,
                                     enum term one)
{
    return vocabulary->text[count == 1 ? one : one + 1];
}

/*
 * Writes a text into `room`, replacing keys in braces with their terms: "{Tasks} by start
 * function"; a capital letter capitalises the term. words_titles: the same for titles of a table
 * (ui/table.h), "{task_column}> total>".
 */
const char *words_text(const struct vocabulary *vocabulary, const char *text, char *room,
                       size_t size);
const char *words_titles(const struct vocabulary *vocabulary, const char *titles, char *room,
                         size_t size);

/* Returns the reason of a wait in the vocabulary's words; for "", that no reason is given. */
trail_string words_reason(const struct vocabulary *vocabulary, trail_string reason);

/*
 * Adjusts a window, in ns since the first event, so that commands accept it and it shows what
 * happened: it does not begin before the trace, and includes the logs at its edges in which
 * recordings name the lock.
 */
void words_window(const struct vocabulary *vocabulary, int64_t *from_ns, int64_t *ns);

/* Returns the key of a term, for callers that list all terms: "task", "tasks", ... */
const char *term_key(enum term name);

/* Returns "s", or "" for 1. */
static inline const char *plural_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}
