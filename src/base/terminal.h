/*
 * Terminal: what reaches a terminal. Text for people is shown as base/plain.h says wherever it goes;
 * formats that others define (JSON, CSV, Go's own) are exact in files and pipes. A terminal gets
 * neither as it is: all that goes to one passes here, where controls, marks of direction and bytes
 * that are not UTF-8 become escapes once more, whatever command printed them. Line ends and tabs
 * pass, and what trail itself sends to steer the terminal: all of a guard that is open, and the
 * colours of one that knows of them.
 */
#ifndef TRAIL_BASE_TERMINAL_H
#define TRAIL_BASE_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct terminal {
    int fd;
    bool colours;    /* "\033[..m" passes */
    bool open;       /* all passes: it is trail's own */
    uint8_t held[4]; /* the beginning of a character, */
    unsigned count;  /* ... whose rest the next write brings */
};

/* Writes to the terminal. False with errno set. */
bool terminal_write(struct terminal *terminal, const void *data, size_t size);

/* Writes the beginning of a character that got no rest. */
bool terminal_finish(struct terminal *terminal);

#endif
