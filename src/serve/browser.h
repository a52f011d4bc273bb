/*
 * Opens the user's browser. Every user can list the arguments of processes, and the first URL has
 * the token: the browser is given a file that only its user can read and that leads to the URL.
 */
#pragma once

#include <limits.h>

struct browser {
    char page[PATH_MAX]; /* the file; empty: none */
};

/*
 * Starts xdg-open without waiting for it; does nothing without a display. `url` needs no escapes in
 * HTML. Returns an errno value, 0 on success.
 */
int browser_open(struct browser *browser, const char *url);

/* Removes the file. */
void browser_close(const struct browser *browser);
