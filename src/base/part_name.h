/*
 * Names of the traces in a file that has several: "FILE#2" is the second. A file of that name has
 * precedence.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct part_name {
    char file[PATH_MAX];
    unsigned number; /* from 1 on */
};

/* Returns whether `word` names a part of a file that exists. */
bool part_name_parse(const char *word, struct part_name *part);
