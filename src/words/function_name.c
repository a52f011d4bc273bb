/* Shortens names of functions for display. */
#include "words/function_name.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Longer template arguments become "...". */
enum { ARGUMENTS_MOST = 48 };

/* The rest of the input, and the output so far. */
struct shortening {
    const char *at, *end;
    char *buf;
    size_t size, room;
};

static void put(struct shortening *s, const char *text, size_t size)
{
    size_t room = s->room - s->size;
    if (size > room)
        size = room;
    memcpy(s->buf + s->size, text, size);
    s->size += size;
}

static bool next_is(const struct shortening *s, const char *text)
{
    size_t size = strlen(text);
    return (size_t)(s->end - s->at) >= size && memcmp(s->at, text, size) == 0;
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool opens(char c)
{
    return c == '<' || c == '(' || c == '{' || c == '[';
}

static bool closes(char c)
{
    return c == ')' || c == '}' || c == ']';
}

/* Returns the end of the bracket group at `at`; `end` if it is not closed. */
static const char *group_end(const char *at, const char *end)
{
    unsigned depth = 0;
    for (; at < end; at++) {
        if (opens(*at))
            depth++;
        else if (closes(*at) || (*at == '>' && at[-1] != '-'))
            depth--;
        if (depth == 0)
            return at + 1;
    }
    return end;
}

/* MARK: Arguments of a template */

/* Shortens "std::ratio<1l, 1000l>" to "ratio<...>". */
static size_t short_arguments(const char *at, const char *end, char *buf)
{
    size_t size = 0, word = 0;
    while (at < end && size < ARGUMENTS_MOST) {
        if (end - at > 1 && at[0] == ':' && at[1] == ':') {
            size = word;
            at += 2;
        } else if (opens(*at)) {
            const char *close = group_end(at, end);
            static const char *const groups[] = {"<...>", "(...)", "{...}", "[...]"};
            const char *group = groups[strchr("<({[", *at) - "<({["];
            /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): a part; the end comes later. */
            memcpy(buf + size, group, 5);
            size += 5;
            at = close;
        } else if (*at == ' ' && (end - at == 1 || at[1] == '>')) {
            at++;
        } else {
            buf[size++] = *at;
            if (!is_word(*at++) || !is_word(buf[size - 1]))
                word = size;
        }
    }
    return at < end || size > ARGUMENTS_MOST ? 0 : size;
}

static void put_arguments(struct shortening *s)
{
    char buf[ARGUMENTS_MOST + 8];
    const char *close = group_end(s->at, s->end);
    const char *inner_end = close > s->at + 1 && close[-1] == '>' ? close - 1 : close;
    size_t size = short_arguments(s->at + 1, inner_end, buf);
    bool none = inner_end == s->at + 1;
    put(s, "<", 1);
    put(s, size || none ? buf : "...", size || none ? size : 3);
    put(s, ">", 1);
    s->at = close;
}

/* MARK: The name */

static bool step(struct shortening *s);

/* Returns the end of the type in "<T as Trait>", or `end`; NULL: "&T" or "dyn T", not a path. */
static const char *path_end(const char *at, const char *end)
{
    static const char as[] = " as ";
    if (!is_word(*at))
        return NULL;
    while (at < end) {
        if (end - at > (ptrdiff_t)sizeof as && memcmp(at, as, sizeof as - 1) == 0)
            return at;
        if (*at == ' ')
            return NULL;
        at = opens(*at) ? group_end(at, end) : at + 1;
    }
    return end;
}

/* "<T>::f" and "<T as Trait>::f" in Rust: a function of T. Returns false for anything else. */
static bool put_owner(struct shortening *s)
{
    const char *close = group_end(s->at, s->end), *end = s->end, *type_end;
    if (end - close < 2 || memcmp(close, "::", 2) != 0 || close[-1] != '>' || close - s->at < 3)
        return false;
    type_end = path_end(s->at + 1, close - 1);
    if (!type_end) {
        put_arguments(s);
        return true;
    }
    s->at++;
    s->end = type_end;
    while (s->at < s->end && step(s)) {
    }
    s->at = close;
    s->end = end;
    return true;
}

/* The arguments of a function in Rust, "::<T>"; gcc's "::<lambda(int)>" is a name. */
static bool put_turbofish(struct shortening *s)
{
    if (s->size == 0 || next_is(s, "<lambda"))
        return false;
    put_arguments(s);
    return true;
}

/* "operator<<", "operator()", "operator bool": the characters that follow are not brackets. */
static bool put_operator(struct shortening *s)
{
    static const char word[] = "operator";
    if (!next_is(s, word) || (s->size > 0 && is_word(s->buf[s->size - 1])))
        return false;
    const char *rest = s->at + sizeof word - 1;
    if (rest < s->end && is_word(*rest))
        return false;
    const char *stop = rest;
    if (s->end - rest >= 2 && memcmp(rest, "()", 2) == 0)
        stop = rest + 2;
    else if (rest < s->end && *rest == ' ')
        while (stop < s->end && *stop != '(')
            stop++;
    else
        while (stop < s->end && !is_word(*stop) && *stop != '(')
            stop++;
    put(s, s->at, (size_t)(stop - s->at));
    s->at = stop;
    return true;
}

/*
 * "{lambda(int)#1}", "<lambda(int)>", "<T as Trait>": a name in brackets, kept without parameters.
 */
static void put_braced(struct shortening *s)
{
    const char *close = group_end(s->at, s->end);
    while (s->at < close) {
        if (*s->at == '(')
            s->at = group_end(s->at, close);
        else
            put(s, s->at++, 1);
    }
}

/* Skips parameters. Returns whether the name ends with them: "(int) const", but not
 * "f()::{lambda()#1}". */
static bool skip_parameters(struct shortening *s)
{
    static const char *const behind[] = {" const", " volatile", " &", "&", " [clone", " noexcept"};
    s->at = group_end(s->at, s->end);
    for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
        if (!next_is(s, behind[i]))
            continue;
        s->at += strlen(behind[i]);
        return !next_is(s, "::");
    }
    return s->at == s->end;
}

/* Returns whether the name continues. */
static bool step(struct shortening *s)
{
    if (put_operator(s))
        return true;
    if (next_is(s, "(anonymous namespace)")) {
        put(s, s->at, 21);
        s->at += 21;
    } else if (*s->at == '(') {
        return !skip_parameters(s);
    } else if (*s->at == '<' && s->size == 0 && put_owner(s)) {
        /* done */
    } else if (*s->at == '<' && s->size > 0 && s->buf[s->size - 1] == ':' && put_turbofish(s)) {
        /* done */
    } else if (*s->at == '{' || (*s->at == '<' && (s->size == 0 || s->buf[s->size - 1] == ':'))) {
        put_braced(s);
    } else if (*s->at == '<') {
        put_arguments(s);
    } else if (*s->at == ' ') {
        s->at++;
        s->size = 0; /* that was the result type */
    } else {
        put(s, s->at++, 1);
    }
    return true;
}

/* Whether it is a C++ or Rust name with brackets; Go's "main.(*T).run" and "main.run[...]" are
 * not. */
static bool has_brackets(trail_string name)
{
    for (size_t i = 0; i < name.size; i++)
        if (name.data[i] == '<' || name.data[i] == '(')
            return i == 0 || name.data[i - 1] != '.';
    return false;
}

/* Returns the size of the part that names a thread's process: "writer (4711): "; 0: none. */
static size_t label_size(trail_string name)
{
    static const char end[] = "): ";
    const size_t length = sizeof end - 1;
    size_t size = 0;
    for (size_t i = 0; i + length <= name.size; i++) {
        if (memcmp(name.data + i, end, length) == 0)
            size = i + length;
    }
    return size;
}

trail_string function_name_short(trail_string name, char *buf)
{
    size_t label;
    struct shortening s;
    if (name.size == 0)
        return name;
    label = label_size(name);
    s = (struct shortening){.at = name.data + label, .end = name.data + name.size};
    if (label >= FUNCTION_NAME_SIZE || !has_brackets((trail_string){s.at, name.size - label}))
        return name;
    memcpy(buf, name.data, label);
    s.buf = buf + label;
    s.room = FUNCTION_NAME_SIZE - label;
    while (s.at < s.end && step(&s)) {
    }
    return s.size > 0 ? (trail_string){buf, label + s.size} : name;
}

/* MARK: Locks */

/* Whether `at` begins with "lock" as a word: not "locked", nor "lock_free". */
static bool is_word_lock(const char *at, const char *end)
{
    if (end - at < 4 || strncasecmp(at, "lock", 4) != 0)
        return false;
    const char *after = at + 4;
    bool upper = isupper((unsigned char)at[1]);
    if (after < end && (upper ? isupper((unsigned char)*after) : islower((unsigned char)*after)))
        return false;
    after += after < end && *after == '_';
    return !(end - after >= 4 && strncasecmp(after, "free", 4) == 0);
}

/* Whether a part of a name ends in "lock": not "clock", "block", "deadlock". */
static bool ends_in_lock(const char *at, const char *end)
{
    const char *lock = end - 4;
    if (end - at < 4 || !is_word_lock(lock, end))
        return false;
    char before = lock > at ? lock[-1] : '_';
    bool is_new_word = *lock == 'L' && islower((unsigned char)before);
    bool dead = lock - at >= 4 && strncasecmp(lock - 4, "dead", 4) == 0;
    return !dead && (is_new_word || !strchr("bcBC", before));
}

/* Whether "unlock" is in a part of a name, or "lock" at its beginning or end. */
static bool is_part_of_lock(const char *at, const char *end)
{
    for (const char *in = at; end - in >= 6; in++)
        if (strncasecmp(in, "un", 2) == 0 && is_word_lock(in + 2, end) &&
            (in == at || !islower((unsigned char)in[-1]) || isupper((unsigned char)*in)))
            return true;
    return is_word_lock(at, end) || ends_in_lock(at, end);
}

bool function_name_is_of_lock(trail_string function)
{
    char buf[FUNCTION_NAME_SIZE];
    trail_string name = function_name_short(function, buf);
    const char *at = name.data, *end = at + name.size;
    if (name.size == 0 || memmem(at, name.size, "+0x", 3))
        return false; /* "liblock.so+0x1234" */
    for (const char *colon; (colon = memmem(at, (size_t)(end - at), "::", 2)); at = colon + 2)
        if (ends_in_lock(at, colon))
            return true;
    const char *dot = memrchr(at, '.', (size_t)(end - at));
    const char *arguments = memchr(at, '(', (size_t)(end - at));
    return is_part_of_lock(dot ? dot + 1 : at, arguments ? arguments : end);
}
