/*
 * The viewer's API (docs/http-api.md) as WebAssembly, for a trace that stays in the browser.
 * web/src/wasm/ calls these functions and provides a file system with the trace as its only file.
 *
 * An instance of the module does one of two things, because an analysis does not free its memory:
 *
 *   - it holds the trace: page_open, page_read until it returns 0, and page_ask in between;
 *   - it runs one analysis: page_run, with the command line that page_ask answered to /api/run.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns a buffer for the argument of the next call; valid until page_room is called again. NULL
 * if out of memory. */
char *page_room(size_t size);

/* Opens the file whose name is in the buffer. Returns NULL, or an error message. */
const char *page_open(void);

/* Reads the next batch. Returns 0 at the end, else 1. */
int page_read(void);

struct page_answer {
    uint32_t status;
    const char
        *type; /* COMMAND_TYPE: the data are arguments for page_run, each terminated by a NUL */
    const char *data;
    size_t size;
};

#define COMMAND_TYPE "application/x-trail-command"

/* Answers PATH?QUERY in the buffer, relative to /api/. Valid until the next page_ask. */
const struct page_answer *page_ask(void);

/* Runs the command line in the buffer, of `size` bytes, and returns its exit status. */
int page_run(size_t size);
