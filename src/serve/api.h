/*
 * The HTTP API of the viewer, below /api/; documented in docs/http-api.md. Answers are JSON unless
 * documented as binary; times are in ns since the first event.
 */
#pragma once

#include "serve/http.h"
#include "serve/model.h"

struct runs;

struct api_trace {
    struct model *model;
    const char *title;
    struct runs *runs; /* analyses run by the command itself */
};

/* Two traces are below /a/ and /b/; paths without a prefix mean the first. */
enum { API_TRACES = 2 };
struct api {
    struct api_trace traces[API_TRACES];
    size_t count;
    trail_words words;  /* the vocabulary of the page */
    const char *source; /* folder with the program's sources; NULL: do not show them */
};

/* Returns the trace that a path refers to. Removes the prefix /a or /b from *path. */
const struct api_trace *api_find_trace(const struct api *api, const char **path);

/* Answers 404 to unknown paths. If out of memory, answer->data is NULL. */
void api_answer(const struct api *api, const struct http_request *request,
                struct http_answer *answer);
