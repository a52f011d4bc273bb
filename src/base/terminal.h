/*
 * Terminal: filters everything written to a terminal. Text for people is escaped by base/plain.h
 * wherever it goes; formats defined by others (JSON, CSV, Go's own) are exact in files and pipes.
 * All output to a terminal passes through this filter, which escapes control characters, direction
 * marks and bytes that are not UTF-8, whatever command printed them. Line ends and tabs pass, and
 * trail's own control sequences: all of them if `open` is set, colours if `colours` is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct terminal {
    int fd;
    bool colours;    /* "\033[..m" passes */
    bool open;       /* everything passes: it is trail's own */
    uint8_t held[4]; /* the beginning of a split character */
    unsigned count;  /* ... and its bytes; the next write continues it */
};

/* Writes to the terminal. Returns false with errno set. */
bool terminal_write(struct terminal *terminal, const void *data, size_t size);

/* Writes the beginning of a character that was not continued. Returns false with errno set. */
bool terminal_finish(struct terminal *terminal);
