/* See condition.h. */
#include "stuck/condition.h"

#include <string.h>

/* The frames of the wait, from the stack pointer on, are smaller. */
#define FRAMES 1024

/* Where in a pthread_cond_t a thread waits. */
#define FIRST_FUTEX 32
#define LAST_FUTEX  44

/* What the last word is for conditions that processes do not share, and for those that they do: of
 * the C library. */
#define IS_PRIVATE 0
#define IS_SHARED  128

#define WORDS 4

static bool is_there(uint64_t futex, const uint64_t words[WORDS])
{
    uint32_t shared = (uint32_t)words[3];
    return words[1] % 8 == 0 && futex - words[1] >= FIRST_FUTEX && futex - words[1] <= LAST_FUTEX &&
           words[2] % 8 == 0 && words[2] >= 4096 && (shared == IS_PRIVATE || shared == IS_SHARED);
}

bool condition_find(const struct held_thread *thread, struct condition *found)
{
    uint64_t words[WORDS];
    size_t size = thread->stack_size < FRAMES ? thread->stack_size : FRAMES;
    for (size_t at = 0; at + sizeof words <= size; at += sizeof *words) {
        memcpy(words, thread->stack + at, sizeof words);
        if (is_there(thread->arguments[0], words)) {
            *found = (struct condition){words[1], words[2]};
            return true;
        }
    }
    return false;
}
