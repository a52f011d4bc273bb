/* See condition.h. */
#include "stuck/condition.h"

#include <string.h>

/* The frames of the wait, from the stack pointer on, are smaller than this. */
#define FRAMES 1024

/* Where in a pthread_cond_t a thread waits. */
#define FIRST_FUTEX 32
#define LAST_FUTEX  44

/* The C library's values of the last word for conditions private to a process, and for shared
 * ones. */
#define IS_PRIVATE 0
#define IS_SHARED  128

#define WORDS 4

/* The size of a pthread_cond_t, which begins with the number of the next waiter. */
#define CONDITION_SIZE 48

/* Whether the number of a waiter has been handed out: other words next to a condition's address,
 * for example arguments of the C library's own functions, are larger. */
static bool is_number(const struct held_thread *thread, uint64_t condition, uint64_t number)
{
    uint64_t next;
    return held_copy(&thread->object, condition, &next, sizeof next) && number < next;
}

static bool is_there(const struct held_thread *thread, const uint64_t words[WORDS])
{
    uint64_t futex = thread->arguments[0], condition = words[1], mutex = words[2];
    uint32_t shared = (uint32_t)words[3];
    return condition % 8 == 0 && futex - condition >= FIRST_FUTEX &&
           futex - condition <= LAST_FUTEX && mutex % 8 == 0 && mutex >= 4096 &&
           mutex - condition >= CONDITION_SIZE && (shared == IS_PRIVATE || shared == IS_SHARED) &&
           is_number(thread, condition, words[0]);
}

bool condition_find(const struct held_thread *thread, struct condition *found)
{
    uint64_t words[WORDS];
    size_t size = thread->stack_size < FRAMES ? thread->stack_size : FRAMES;
    for (size_t at = 0; at + sizeof words <= size; at += sizeof *words) {
        memcpy(words, thread->stack + at, sizeof words);
        if (is_there(thread, words)) {
            *found = (struct condition){words[1], words[2]};
            return true;
        }
    }
    return false;
}
