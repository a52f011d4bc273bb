#include "cli/moment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

const char *moment_word(const char *word, char *buf)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "./_-+=:,@%^";
    size_t used = 0;
    if (*word && word[strspn(word, plain)] == '\0') {
        (void)snprintf(buf, MOMENT_SIZE, "%s", word);
        return buf;
    }
    buf[used++] = '\'';
    for (; *word && used + 8 < MOMENT_SIZE; word++) {
        bool quote = *word == '\'';
        memcpy(buf + used, quote ? "'\\''" : word, quote ? 4 : 1);
        used += quote ? 4 : 1;
    }
    buf[used++] = '\'';
    buf[used] = '\0';
    return buf;
}

const char *moment_name(trail_string name, char *buf)
{
    char word[MOMENT_SIZE / 2];
    size_t size = name.size < sizeof word - 1 ? name.size : sizeof word - 1;
    for (size_t i = 0; i < size; i++) {
        char c = name.data[i];
        word[i] = (char)((unsigned char)c < ' ' || c == 0x7f ? '?' : c);
    }
    word[size] = '\0';
    return moment_word(word, buf);
}

const char *moment_file(const struct analysis *analysis, char *buf)
{
    char file[MOMENT_SIZE], binary[MOMENT_SIZE];
    int size = snprintf(buf, MOMENT_SIZE, "%s%s%s%s", analysis->repair ? "--repair " : "",
                        analysis->binary ? "--binary=" : "",
                        analysis->binary ? moment_word(analysis->binary, binary) : "",
                        analysis->binary ? " " : "");
    size_t used = size > 0 && size < MOMENT_SIZE ? (size_t)size : 0;
    (void)snprintf(buf + used, MOMENT_SIZE - used, "%s", moment_word(analysis->word, file));
    return buf;
}

const char *moment_print(const struct analysis *analysis, const struct moment *moment, char *buf)
{
    char file[MOMENT_SIZE];
    (void)snprintf(buf, MOMENT_SIZE,
                   "trail print%s%s%s --from=%" PRId64 "ns --to=+%" PRId64 "ns %s",
                   moment->stacks ? " --stacks" : "", moment->goroutines ? " --goroutine=" : "",
                   moment->goroutines ? moment->goroutines : "", moment->from_ns, moment->ns,
                   moment_file(analysis, file));
    return buf;
}

const char *moment_of(const struct analysis *analysis, int64_t goroutine, int64_t begin_ns,
                      int64_t ns, char *buf)
{
    char id[32];
    (void)snprintf(id, sizeof id, "%" PRId64, goroutine);
    struct moment moment = {
        .goroutines = goroutine == TRAIL_NONE ? NULL : id,
        .from_ns = begin_ns - analysis->span.origin_ns,
        .ns = ns,
    };
    return moment_print(analysis, &moment, buf);
}
