/*
 * The words in which trail speaks of a trace: one table (vocabulary.def), chosen by what made the trace.
 *
 *     struct vocabulary vocabulary;
 *     vocabulary_init(&vocabulary, trail_reader_maker(reader), TRAIL_WORDS_BY_TRACE);
 *     printf("%" PRIu64 " %s", count, term_count(&vocabulary, count, TERM_task));
 */
#ifndef TRAIL_WORDS_VOCABULARY_H
#define TRAIL_WORDS_VOCABULARY_H

#include <stdbool.h>
#include <trail/read.h>

enum term {
#define TERM(name, ...) TERM_##name,
#include "words/vocabulary.def"
#undef TERM
    TERMS
};

enum { TERM_SIZE = 2 * TRAIL_TASK_WORD_MAX };

struct vocabulary {
    trail_made_by of; /* _GO: Go's words, _RECORD: threads, _HOST: the host's */
    char text[TERMS][TERM_SIZE];
};

/* `maker` is the trace's; NULL: Go. */
void vocabulary_init(struct vocabulary *vocabulary, const trail_maker *maker, trail_words words);

/* Takes the value of --words: "go" or "threads". False for any other. */
bool words_parse(const char *text, trail_words *words);

static inline const char *term(const struct vocabulary *vocabulary, enum term name)
{
    return vocabulary->text[name];
}

/* The term, or the one behind it, which is its plural, by how many there are: "thread" of 1, "threads" of 0 and 2. */
static inline const char *term_count(const struct vocabulary *vocabulary, uint64_t count,
                                     enum term one)
{
    return vocabulary->text[count == 1 ? one : one + 1];
}

/* The same with a large first letter, into `room`, for headings. */
const char *term_title(const struct vocabulary *vocabulary, enum term name, char room[TERM_SIZE]);

/*
 * Writes a text into `room` with terms in the place of their keys in braces: "{Tasks} by start function"; a large
 * letter makes the term's large. words_titles: of titles of a table (ui/table.h), "{task_column}> total>".
 */
const char *words_text(const struct vocabulary *vocabulary, const char *text, char *room,
                       size_t size);
const char *words_titles(const struct vocabulary *vocabulary, const char *titles, char *room,
                         size_t size);

/* A reason of a wait for people: as the trace has it where that is Go's; "" has one too. */
trail_string words_reason(const struct vocabulary *vocabulary, trail_string reason);

/* The key of a term, for those who take all of them: "task", "tasks", ... */
const char *term_key(enum term name);

/* Plural of an English word, into `room`. */
void words_plural(const char *one, char *room, size_t size);

/* "s" but for 1. */
static inline const char *plural_s(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
