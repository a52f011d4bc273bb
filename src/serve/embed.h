/*
 * The viewer as a single file with a trace in it, which can be opened from disk and mailed: the
 * output of `trail report --embed`.
 *
 * It contains the page's style sheet and script, the WebAssembly, its worker, and the trace. The
 * last three are compressed and in base64, in <script> elements of a type that no browser runs
 * (web/src/wasm/embedded.ts extracts them). Its content security policy allows only the scripts and
 * styles in the file, by their hashes, and no network access.
 */
#pragma once

#include <trail/export.h>

/* Maximum bytes of the trace, decompressed: browsers handle larger documents badly. */
#define EMBED_MOST ((int64_t)100 << 20)

struct embed {
    const char *title; /* of the document */
    const char *name;  /* file name of the trace */
    trail_source *source;
};

/* Returns 0, or -1 with *err set: TRAIL_USAGE if the trace is larger than EMBED_MOST. */
int embed_write(const struct embed *embed, const trail_sink *sink, trail_error *err);
