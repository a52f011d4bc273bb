/* The words of Go, of threads and of a host. */
#include "words/vocabulary.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

static const struct row {
    const char *key, *go, *threads, *host;
} rows[TERMS] = {
#define TERM(name, go, threads, host) {#name, go, threads, host},
#include "words/vocabulary.def"
};

static const struct reason {
    const char *go, *threads;
} reasons[] = {
#define REASON(go, threads) {go, threads},
#include "words/reasons.def"
};

/*
 * A log is written immediately before the thread waits, or at the end of a hold, usually 1 ns
 * apart; events of other threads may come between.
 */
#define LOG_APART_NS INT64_C(1000)

void words_window(const struct vocabulary *vocabulary, int64_t *from_ns, int64_t *ns)
{
    int64_t begin = *from_ns, length = *ns > 0 ? *ns : 0;
    if (vocabulary->of == TRAIL_MADE_BY_RECORD && begin > INT64_MIN + LOG_APART_NS &&
        length < INT64_MAX - 2 * LOG_APART_NS) {
        begin -= LOG_APART_NS;
        length += 2 * LOG_APART_NS;
    }
    if (begin < 0) {
        length = length + begin > 0 ? length + begin : 0;
        begin = 0;
    }
    *from_ns = begin;
    *ns = length;
}

static bool ends_with_any(const char *word, const char *const *ends)
{
    size_t size = strlen(word);
    for (; *ends; ends++) {
        size_t n = strlen(*ends);
        if (size > n && strcmp(word + size - n, *ends) == 0)
            return true;
    }
    return false;
}

/* Writes the plural of an English word into `room`. */
static void words_plural(const char *one, char *room, size_t size)
{
    static const char *const hissing[] = {"s", "x", "z", "ch", "sh", NULL};
    static const char *const vowels[] = {"ay", "ey", "oy", "uy", NULL};
    static const char *const y[] = {"y", NULL};
    int length = (int)strlen(one);
    if (ends_with_any(one, hissing))
        (void)snprintf(room, size, "%ses", one);
    else if (ends_with_any(one, y) && !ends_with_any(one, vowels))
        (void)snprintf(room, size, "%.*sies", length - 1, one);
    else
        (void)snprintf(room, size, "%ss", one);
}

/* Writes a row's text with the host's word for @. */
static void expand(const char *text, const char *one, char *to)
{
    char many[TERM_SIZE];
    words_plural(one, many, sizeof many);
    if (text[0] != '@')
        (void)snprintf(to, TERM_SIZE, "%s", text);
    else if (text[1] == '@')
        (void)snprintf(to, TERM_SIZE, "%s%s", many, text + 2);
    else
        (void)snprintf(to, TERM_SIZE, "%s%s", one, text + 1);
}

static trail_made_by choose(const trail_maker *maker, trail_words words)
{
    if (words != TRAIL_WORDS_BY_TRACE)
        return words == TRAIL_WORDS_GO ? TRAIL_MADE_BY_GO : TRAIL_MADE_BY_RECORD;
    if (maker && maker->made_by == TRAIL_MADE_BY_IMPORT)
        return TRAIL_MADE_BY_RECORD; /* threads, too */
    return maker ? maker->made_by : TRAIL_MADE_BY_GO;
}

void vocabulary_init(struct vocabulary *vocabulary, const trail_maker *maker, trail_words words)
{
    memset(vocabulary, 0, sizeof *vocabulary); /* so that equal ones compare equal by bytes */
    vocabulary->of = choose(maker, words);
    for (int i = 0; i < TERMS; i++) {
        const struct row *row = &rows[i];
        const char *text = vocabulary->of == TRAIL_MADE_BY_GO       ? row->go
                           : vocabulary->of == TRAIL_MADE_BY_RECORD ? row->threads
                                                                    : row->host;
        expand(text, maker && vocabulary->of == TRAIL_MADE_BY_HOST ? maker->task_word : "",
               vocabulary->text[i]);
    }
}

/* Returns the term with a capital first letter, in `room`, for headings. */
static const char *term_title(const struct vocabulary *vocabulary, enum term name,
                              char room[TERM_SIZE])
{
    (void)snprintf(room, TERM_SIZE, "%s", term(vocabulary, name));
    if (*room >= 'a' && *room <= 'z')
        *room = (char)(*room - 'a' + 'A');
    return room;
}

/* Returns the term whose key, up to a brace, `text` begins with; its first letter may be a capital.
 * TERMS: none. */
static enum term term_of(const char *text)
{
    size_t size = strcspn(text, "}");
    enum term name = 0;
    while (name < TERMS && (strncasecmp(rows[name].key, text, size) != 0 || rows[name].key[size]))
        name++;
    return name;
}

/* `unsafe`: characters that are replaced by _. */
static const char *fill(const struct vocabulary *vocabulary, const char *text, const char *unsafe,
                        char *room, size_t size)
{
    char title[TERM_SIZE];
    size_t used = 0;
    while (*text && used + 1 < size) {
        enum term name = *text == '{' ? term_of(text + 1) : TERMS;
        if (name == TERMS) {
            room[used++] = *text++;
            continue;
        }
        bool large = text[1] >= 'A' && text[1] <= 'Z';
        const char *at = large ? term_title(vocabulary, name, title) : term(vocabulary, name);
        for (; *at && used + 1 < size; at++)
            room[used++] = strchr(unsafe, *at) ? '_' : *at;
        text += strlen(rows[name].key) + 2;
    }
    room[used] = '\0';
    return room;
}

const char *words_titles(const struct vocabulary *vocabulary, const char *titles, char *room,
                         size_t size)
{
    /* A host's word may contain separators of titles. */
    return fill(vocabulary, titles, " <>", room, size);
}

const char *words_text(const struct vocabulary *vocabulary, const char *text, char *room,
                       size_t size)
{
    return fill(vocabulary, text, "", room, size);
}

const char *term_key(enum term name)
{
    return rows[name].key;
}

trail_string words_reason(const struct vocabulary *vocabulary, trail_string reason)
{
    const char *none = term(vocabulary, TERM_no_reason);
    if (reason.size == 0)
        return text_from(none);
    for (size_t i = 0;
         vocabulary->of == TRAIL_MADE_BY_RECORD && i < sizeof reasons / sizeof *reasons; i++)
        if (text_is(reason, reasons[i].go))
            return text_from(reasons[i].threads);
    return reason;
}
