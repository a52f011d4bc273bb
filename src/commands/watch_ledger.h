/*
 * The ledger of trail watch: which files have been handled, in a file that survives a crash. A line
 * is added when a file is done; a file that changes afterwards counts as another one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

/* Zero-initialised: closed. */
struct ledger {
    int fd; /* locked: one process at a time */
    char **lines;
    size_t count, capacity;
};

/* Reads the ledger, creating it if it does not exist. Returns an exit code, after a message on an
 * error. */
int ledger_open(struct ledger *ledger, const char *path);

/* Whether a file with that name, size and modification time is in it. */
bool ledger_has(const struct ledger *ledger, const char *name, const struct stat *file);

/* Adds a file. Returns false with errno set if it cannot be written. */
bool ledger_add(struct ledger *ledger, const char *name, const struct stat *file);

void ledger_close(struct ledger *ledger);
