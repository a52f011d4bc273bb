/*
 * trail in a page, as WebAssembly: the API of the viewer (docs/http-api.md) for a file that no
 * server has seen. What web/src/wasm/ calls; the file is the only one in the file system that it
 * shows us.
 *
 * An instance of the module does one of two things, because analyses end by letting everything go:
 *
 *   - it holds the trace: page_open, page_read until it says no more, and page_ask meanwhile;
 *   - it runs one analysis: page_run. What page_ask answers to /api/run is the command line for
 *     that.
 */
#ifndef TRAIL_PAGE_PAGE_H
#define TRAIL_PAGE_PAGE_H

#include <stddef.h>
#include <stdint.h>

/* Room for a text, which stays until the next call. NULL without memory. */
char *page_room(size_t size);

/* Opens the file whose name is in the room. NULL, or why not. */
const char *page_open(void);

/* Reads on, a batch. 0 when it is over. */
int page_read(void);

struct page_answer {
    uint32_t status;
    const char *type; /* COMMAND_TYPE: words for page_run, each with a zero byte behind it */
    const char *data;
    size_t size;
};

#define COMMAND_TYPE "application/x-trail-command"

/* Answers PATH?QUERY of /api/, which is in the room. It stays until the next question. */
const struct page_answer *page_ask(void);

/* Runs the command line in the room, of `size` bytes, and returns its exit status. */
int page_run(size_t size);

#endif
