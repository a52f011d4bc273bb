/* Finds the frames that name a place. */
#include "words/wrappers.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"
#include "words/function_name.h"

enum row_kind { ROW_FUNCTION, ROW_UNFILED, ROW_SOURCE, ROW_GO, ROW_RUNTIME };

static const struct row {
    enum row_kind kind;
    const char *pattern;
} rows[] = {
#define FUNCTION(pattern, library)                 {ROW_FUNCTION, pattern},
#define UNFILED(pattern, library)                  {ROW_UNFILED, pattern},
#define SOURCE(pattern, library)                   {ROW_SOURCE, pattern},
#define GO(pattern, library)                       {ROW_GO, pattern},
#define RUNTIME(pattern, library)                  {ROW_RUNTIME, pattern},
#define WAITS(pattern, wait, object, extent, type) {ROW_FUNCTION, pattern},
#define OBJECT(pattern, wait, type)
#include "words/runtimes.def"
#include "words/wrappers.def"
#undef WAITS
#undef OBJECT
#undef FUNCTION
#undef UNFILED
#undef SOURCE
#undef GO
#undef RUNTIME
};

/* MARK: Patterns */

/* Whether only template arguments follow. */
static bool ends(const char *text, const char *end)
{
    return text == end || (*text == '<' && end[-1] == '>');
}

bool pattern_covers(const char *pattern, trail_string text)
{
    const char *at = text.data, *end = text.data + text.size;
    const char *star = NULL,
               *again = NULL; /* after the last *, and where its match was last tried */
    for (;;) {
        if (*pattern == '*') {
            star = ++pattern;
            again = at;
        } else if (*pattern == '\0' && ends(at, end)) {
            return true;
        } else if (at < end && *pattern == *at) {
            pattern++;
            at++;
        } else if (star && again < end) {
            pattern = star;
            at = ++again;
        } else {
            return false;
        }
        if (star && *star == '\0')
            return true;
    }
}

bool frame_is_go(trail_string file)
{
    return text_ends(file, ".go");
}

static bool row_covers(const struct row *row, trail_string function, trail_string file, bool go)
{
    switch (row->kind) {
    case ROW_FUNCTION:
    case ROW_RUNTIME:
        return !go && pattern_covers(row->pattern, function);
    case ROW_UNFILED:
        return file.size == 0 && pattern_covers(row->pattern, function);
    case ROW_SOURCE:
        return file.size > 0 && !go && pattern_covers(row->pattern, file);
    case ROW_GO:
        return pattern_covers(row->pattern, function);
    }
    return false;
}

static const char file_word[] = "file:";

static bool skip_covers(const char *pattern, trail_string function, trail_string file)
{
    size_t size = sizeof file_word - 1;
    return strncmp(pattern, file_word, size) == 0 ? pattern_covers(pattern + size, file)
                                                  : pattern_covers(pattern, function);
}

const char *skip_pattern_error(const char *line)
{
    size_t size = sizeof file_word - 1;
    const char *pattern = strncmp(line, file_word, size) == 0 ? line + size : line;
    if (*pattern == '\0')
        return "no pattern after 'file:'";
    if (pattern[strspn(pattern, "*")] == '\0')
        return "it covers everything";
    for (const char *at = line; *at; at++)
        if (iscntrl((unsigned char)*at))
            return "control characters in it";
    return NULL;
}

/* MARK: Frames */

/* "app+0x1234": names code without a symbol. */
static bool is_address(trail_string function)
{
    size_t digits = 0;
    while (digits < function.size &&
           isxdigit((unsigned char)function.data[function.size - 1 - digits]))
        digits++;
    trail_string rest = {function.data, function.size - digits};
    return digits > 0 && text_ends(rest, "0x") && (rest.size == 2 || text_ends(rest, "+0x"));
}

enum frame_rank frame_rank(const char *const *skip, trail_string function, trail_string file)
{
    char buf[FUNCTION_NAME_SIZE];
    bool address = is_address(function), go = frame_is_go(file);
    if (function.size == 0)
        return FRAME_NAMELESS;
    trail_string name = function_name_short(function, buf);
    for (; skip && *skip; skip++)
        if (skip_covers(*skip, name, file))
            return address ? FRAME_NAMELESS : FRAME_WRAPPER;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!row_covers(&rows[i], name, file, go))
            continue;
        if (address)
            return FRAME_NAMELESS;
        return rows[i].kind == ROW_RUNTIME ? FRAME_RUNTIME : FRAME_WRAPPER;
    }
    return address ? FRAME_ADDRESS : FRAME_OWN;
}
