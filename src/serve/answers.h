/*
 * Answers by key: those computed last, and those that are being computed. Their total size is
 * limited; the least recently used answers are dropped first.
 *
 * Not thread-safe: the owner has a lock.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { ANSWERS = 32 };
#define ANSWERS_BYTES ((size_t)32 << 20)

struct answer {
    char *key;  /* NULL: the row is free */
    char *data; /* NULL: it is being computed */
    size_t size;
    uint64_t used; /* answers.clock at the last use */
};

/* Zero-initialised: empty. */
struct answers {
    struct answer rows[ANSWERS];
    uint64_t clock;
    size_t bytes; /* sum of the sizes */
};

/* Returns the answer, computed or not; NULL if there is none. */
struct answer *answers_find(struct answers *answers, const char *key);

/*
 * Notes that an answer is being computed. Takes ownership of the key. Returns NULL if there is no
 * room because all answers are being computed. Valid until answers_end.
 */
struct answer *answers_begin(struct answers *answers, char *key);

/*
 * Stores a computed answer, unless it is too large. Takes ownership of `data`; NULL: the
 * computation failed. `answer` is the result of answers_begin, and may be NULL.
 */
void answers_end(struct answers *answers, struct answer *answer, char *data, size_t size);

void answers_free(struct answers *answers);
