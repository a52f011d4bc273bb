#include "commands/export_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/text.h"

/* Decodes in place; text that is not an escape is unchanged. */
static void decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        int high = *at == '%' ? hex_digit(at[1]) : -1, low = high >= 0 ? hex_digit(at[2]) : -1;
        if (low >= 0 && (high | low) != 0) {
            *to++ = (char)(high << 4 | low);
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

bool pairs_set(struct pairs *pairs, const char *key, const char *value)
{
    char *own = strdup(value);
    if (!own)
        return false;
    for (size_t i = 0; i < pairs->count; i++) {
        if (strcmp(pairs->items[i].key, key) == 0) {
            free((void *)(uintptr_t)pairs->items[i].value);
            pairs->items[i].value = own;
            return true;
        }
    }
    char *name = strdup(key);
    if (!name || !GROW(pairs->items, pairs->capacity, pairs->count + 1)) {
        free(name);
        free(own);
        return false;
    }
    pairs->items[pairs->count++] = (trail_export_attribute){.key = name, .value = own};
    return true;
}

bool pairs_add(struct pairs *pairs, const char *list)
{
    char *text = strdup(list), *rest = text, *pair;
    bool good = text != NULL;
    while (good && (pair = strsep(&rest, ","))) {
        char *equals = strchr(pair, '=');
        pair += strspn(pair, " ");
        if (!equals && *pair == '\0')
            continue;
        good = equals && equals > pair;
        if (!good)
            break;
        *equals = '\0';
        decode(pair);
        decode(equals + 1);
        good = pairs_set(pairs, pair, equals + 1);
    }
    free(text);
    return good;
}

void pairs_free(struct pairs *pairs)
{
    for (size_t i = 0; i < pairs->count; i++) {
        free((void *)(uintptr_t)pairs->items[i].key);
        free((void *)(uintptr_t)pairs->items[i].value);
    }
    free(pairs->items);
}
