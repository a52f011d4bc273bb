/* For programs run by `trail record` that check their own calls: a wrong result ends the program
 * with exit status 3. */
#pragma once

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
