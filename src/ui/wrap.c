/* Breaks a line between words. */
#include "ui/wrap.h"

#include <ctype.h>
#include <string.h>

#include "base/duration.h"
#include "base/utf8.h"

/* Further lines are indented by this more than the first. */
#define HANGING 4

/* Narrower text is unreadable. */
#define LEAST 24

struct wrap {
    wrap_put_fn put;
    void *context;
    int columns, indent;
};

static bool put_spaces(const struct wrap *wrap, int count)
{
    static const char spaces[] = "                ";
    bool good = true;
    for (const int most = sizeof spaces - 1; good && count > 0; count -= most)
        good = wrap->put(wrap->context, spaces, (size_t)(count < most ? count : most));
    return good;
}

static bool put_break(const struct wrap *wrap, int indent)
{
    return wrap->put(wrap->context, "\n", 1) && put_spaces(wrap, indent);
}

/* Returns the size of the character or colour at `at`, and its columns. */
static size_t step(const char *at, int *columns)
{
    if (at[0] != '\033' || at[1] != '[')
        return utf8_character(at, columns);
    *columns = 0;
    size_t size = 2 + strspn(at + 2, "0123456789;");
    return size + (at[size] == 'm');
}

static int columns_of(const char *text)
{
    int sum = 0, columns;
    for (; *text; sum += columns)
        text += step(text, &columns);
    return sum;
}

/* Whether a line may end before this space: "1.5 ms" is not divided. */
static bool may_break(const char *line, const char *space)
{
    return space > line && *space == ' ' && space[1] != '\0' && space[1] != ' ' &&
           !(isdigit((unsigned char)space[-1]) &&
             (isalpha((unsigned char)space[1]) || space[1] == '%' ||
              strncmp(space + 1, MICRO_SIGN, strlen(MICRO_SIGN)) == 0));
}

/* Returns the last space before which [at, ...) fits, or else the first one; NULL: none. */
static const char *find_break(const char *at, const char *begin, int columns)
{
    const char *best = NULL;
    int used = 0, width;
    for (const char *end = at; *end; used += width) {
        bool may = end > begin && may_break(at, end);
        if (may && (used <= columns || !best))
            best = end;
        if (best && used > columns)
            break;
        end += step(end, &width);
    }
    return best;
}

/* Puts a sentence of `size` bytes. */
static bool put_sentence(const struct wrap *wrap, const char *line, size_t size)
{
    char text[4096];
    const char *at = text, *begin = text + wrap->indent, *end;
    int columns = wrap->columns;
    if (size >= sizeof text)
        return wrap->put(wrap->context, line, size);
    memcpy(text, line, size);
    text[size] = '\0';
    while (columns_of(at) > columns && (end = find_break(at, begin, columns))) {
        if (!wrap->put(wrap->context, at, (size_t)(end - at)) ||
            !put_break(wrap, wrap->indent + HANGING))
            return false;
        at = begin = end + 1;
        columns = wrap->columns - wrap->indent - HANGING;
    }
    return wrap->put(wrap->context, at, strlen(at));
}

bool wrap_line(const char *line, int columns, wrap_put_fn put, void *context)
{
    struct wrap wrap = {.put = put, .context = context, .columns = columns};
    wrap.indent = (int)strspn(line, " ");
    const char *text = line + wrap.indent, *command = strstr(text, ": trail ");
    if (strchr("[{", *text) || strncmp(text, "trail ", 6) == 0 ||
        wrap.indent + HANGING + LEAST > columns || columns_of(line) <= columns)
        return put(context, line, strlen(line));
    if (!command)
        return put_sentence(&wrap, line, strlen(line));
    return put_sentence(&wrap, line, (size_t)(command + 1 - line)) &&
           put_break(&wrap, wrap.indent + HANGING) &&
           put(context, command + 2, strlen(command + 2));
}
