/* A program for `trail record` that checks the results of its own calls: a wrong one ends it, with exit status 3. */
#ifndef TRAIL_TESTS_CHECK_H
#define TRAIL_TESTS_CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #x, strerror(errno));          \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

#endif
