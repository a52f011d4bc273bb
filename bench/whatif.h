/*
 * What the programs for bench/whatif share: work, requests to a peer, and main.
 *
 * usage: PROGRAM PAIR base|changed
 */
#pragma once

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int changed;

/* CPU time, whatever else the machine does. */
static void burn(long us)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000000 + (now.tv_nsec - begin.tv_nsec) / 1000 < us);
}

struct pair {
    const char *name;
    void (*run)(void);
};

static int run_pair(const struct pair *pairs, size_t count, int argc, char **argv)
{
    changed = argc > 2 && strcmp(argv[2], "changed") == 0;
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(pairs[i].name, argv[1]) == 0) {
            pairs[i].run();
            return 0;
        }
    (void)fprintf(stderr, "usage: %s PAIR base|changed\n", argv[0]);
    return 2;
}

#define RUN_PAIR(pairs, argc, argv) run_pair(pairs, sizeof(pairs) / sizeof *(pairs), argc, argv)
