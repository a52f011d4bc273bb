/* Answers kept by key; the least recently used are dropped. */
#include "serve/answers.h"

#include <stdlib.h>
#include <string.h>

struct answer *answers_find(struct answers *answers, const char *key)
{
    for (size_t i = 0; i < ANSWERS; i++) {
        struct answer *answer = &answers->rows[i];
        if (!answer->key || strcmp(answer->key, key) != 0)
            continue;
        answer->used = ++answers->clock;
        return answer;
    }
    return NULL;
}

static void drop(struct answers *answers, struct answer *answer)
{
    answers->bytes -= answer->size;
    free(answer->key);
    free(answer->data);
    *answer = (struct answer){0};
}

/* Returns the least recently used answer that has been computed; NULL if there is none. */
static struct answer *find_oldest(struct answers *answers)
{
    struct answer *oldest = NULL;
    for (size_t i = 0; i < ANSWERS; i++) {
        struct answer *answer = &answers->rows[i];
        if (answer->data && (!oldest || answer->used < oldest->used))
            oldest = answer;
    }
    return oldest;
}

static struct answer *find_free(struct answers *answers)
{
    for (size_t i = 0; i < ANSWERS; i++)
        if (!answers->rows[i].key)
            return &answers->rows[i];
    struct answer *oldest = find_oldest(answers);
    if (oldest)
        drop(answers, oldest);
    return oldest;
}

struct answer *answers_begin(struct answers *answers, char *key)
{
    struct answer *answer = find_free(answers);
    if (answer)
        *answer = (struct answer){.key = key, .used = ++answers->clock};
    else
        free(key);
    return answer;
}

void answers_end(struct answers *answers, struct answer *answer, char *data, size_t size)
{
    if (!answer || !data || size > ANSWERS_BYTES) {
        free(data);
        if (answer)
            drop(answers, answer);
        return;
    }
    while (answers->bytes + size > ANSWERS_BYTES)
        drop(answers, find_oldest(answers));
    answer->data = data;
    answer->size = size;
    answers->bytes += size;
}

void answers_free(struct answers *answers)
{
    for (size_t i = 0; i < ANSWERS; i++)
        drop(answers, &answers->rows[i]);
}
