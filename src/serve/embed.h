/*
 * The page as one file with a trace in it, to be opened from disk and mailed: what
 * `trail report --embed` writes.
 *
 * It holds the page's style sheet and script, the WebAssembly and its worker, and the trace. The
 * last three are compressed and in base64, in <script> elements of a type that no browser runs
 * (web/src/wasm/embedded.ts takes them out). Its content security policy lets run only what the
 * file has, known by hashes, and nothing be fetched.
 */
#ifndef TRAIL_SERVE_EMBED_H
#define TRAIL_SERVE_EMBED_H

#include <trail/export.h>

/* Of the trace, decompressed: browsers bear no longer texts well. */
#define EMBED_MOST ((int64_t)100 << 20)

struct embed {
    const char *title; /* of the document */
    const char *name;  /* of the trace's file */
    trail_source *source;
};

/* Returns 0, or -1: *err says why; TRAIL_USAGE if the trace is larger than EMBED_MOST. */
int embed_write(const struct embed *embed, const trail_sink *sink, trail_error *err);

#endif
