/* Commands that show the events behind a figure, quoted for a shell. */
#include "ui/follow_up.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/plain.h"
#include "base/text.h"

static bool has(const struct goroutine_list *list, const char *id)
{
    size_t size = strlen(id);
    for (const char *at = list->text; (at = strstr(at, id)); at += size)
        if ((at == list->text || at[-1] == ',') && (at[size] == ',' || at[size] == '\0'))
            return true;
    return false;
}

bool goroutine_list_add(struct goroutine_list *list, int64_t goroutine)
{
    char id[32];
    (void)snprintf(id, sizeof id, "%" PRId64, goroutine);
    if (has(list, id))
        return true;
    if (list->size + sizeof id > sizeof list->text)
        return false;
    list->size += (size_t)snprintf(list->text + list->size, sizeof list->text - list->size, "%s%s",
                                   list->size ? "," : "", id);
    return true;
}

/* Whether the character is printed unchanged. */
static bool is_shown(const uint8_t *at, const uint8_t *end, unsigned *size)
{
    char shown[PLAIN_MOST];
    unsigned length;
    *size = plain_step(at, end, shown, &length);
    return length == *size && memcmp(shown, at, length) == 0;
}

static bool needs_escapes(trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    for (unsigned size; at < end; at += size)
        if (!is_shown(at, end, &size))
            return true;
    return false;
}

enum { LONGEST_STEP = 17 }; /* four bytes as octal escapes, and a NUL */

/* Writes the character at `at` for '...', or $'...' with escapes. Returns its length. */
static size_t quote_step(const uint8_t *at, unsigned size, bool shown, bool escapes, char *to)
{
    size_t used = 0;
    if (!shown) {
        for (unsigned i = 0; i < size; i++)
            used += (size_t)snprintf(to + used, LONGEST_STEP - used, "\\%03o", at[i]);
        return used;
    }
    if (*at == '\'' && !escapes) {
        static const char closed[] = {'\'', '\\', '\'', '\''};
        memcpy(to, closed, sizeof closed);
        return sizeof closed;
    }
    if (escapes && (*at == '\'' || *at == '\\'))
        to[used++] = '\\';
    memcpy(to + used, at, size);
    return used + size;
}

/* Whether a shell takes the word without quotes. For zsh, =x is the path of a command, and ^x any
 * other name. */
static bool is_bare(trail_string word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "./_-+=:,@%";
    size_t bare = 0;
    while (bare < word.size && memchr(plain, word.data[bare], sizeof plain - 1))
        bare++;
    return word.size > 0 && bare == word.size && bare < FOLLOW_UP_SIZE && word.data[0] != '=';
}

const char *shell_name(trail_string name, char *buf)
{
    const uint8_t *at = (const uint8_t *)name.data, *end = at + name.size;
    size_t used = 0;
    if (is_bare(name)) {
        memcpy(buf, name.data, name.size);
        buf[name.size] = '\0';
        return buf;
    }
    bool escapes = needs_escapes(name);
    if (escapes)
        buf[used++] = '$';
    buf[used++] = '\'';
    for (unsigned size; at < end && used + LONGEST_STEP + 2 < FOLLOW_UP_SIZE; at += size) {
        bool shown = is_shown(at, end, &size);
        used += quote_step(at, size, shown, escapes, buf + used);
    }
    buf[used++] = '\'';
    buf[used] = '\0';
    return buf;
}

const char *shell_word(const char *word, char *buf)
{
    return shell_name(text_from(word), buf);
}

const char *shell_file(const char *path, char *buf)
{
    char here[FOLLOW_UP_SIZE];
    if (path[0] != '-' || !path[1])
        return shell_word(path, buf);
    (void)snprintf(here, sizeof here, "./%s", path);
    return shell_word(here, buf);
}

const char *follow_up_file(const struct analysis *analysis, char *buf)
{
    char file[FOLLOW_UP_SIZE], binary[FOLLOW_UP_SIZE];
    int size = snprintf(buf, FOLLOW_UP_SIZE, "%s%s%s%s", analysis->repair ? "--repair " : "",
                        analysis->binary ? "--binary=" : "",
                        analysis->binary ? shell_word(analysis->binary, binary) : "",
                        analysis->binary ? " " : "");
    size_t used = size > 0 && size < FOLLOW_UP_SIZE ? (size_t)size : 0;
    (void)snprintf(buf + used, FOLLOW_UP_SIZE - used, "%s", shell_file(analysis->word, file));
    return buf;
}

const char *follow_up_print(const struct analysis *analysis, const struct follow_up *follow_up,
                            char *buf)
{
    char file[FOLLOW_UP_SIZE];
    int64_t from_ns = follow_up->from_ns, ns = follow_up->ns;
    words_window(&analysis->vocabulary, &from_ns, &ns);
    (void)snprintf(buf, FOLLOW_UP_SIZE,
                   "trail print%s%s%s%s --from=%" PRId64 "ns --to=+%" PRId64 "ns %s",
                   follow_up->stacks ? " --stacks" : "", follow_up->goroutines ? " " : "",
                   follow_up->goroutines ? term(&analysis->vocabulary, TERM_task_option) : "",
                   follow_up->goroutines ? follow_up->goroutines : "", from_ns, ns,
                   follow_up_file(analysis, file));
    return buf;
}

const char *follow_up_of(const struct analysis *analysis, int64_t goroutine, int64_t begin_ns,
                         int64_t ns, char *buf)
{
    char id[32];
    (void)snprintf(id, sizeof id, "%" PRId64, goroutine);
    struct follow_up follow_up = {
        .goroutines = goroutine == TRAIL_NONE ? NULL : id,
        .from_ns = begin_ns - analysis->span.origin_ns,
        .ns = ns,
    };
    return follow_up_print(analysis, &follow_up, buf);
}
