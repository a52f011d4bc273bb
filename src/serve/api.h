/*
 * The HTTP API of the viewer, below /api/: docs/http-api.md describes it. JSON, or binary where that
 * says so; times in nanoseconds since the first event.
 */
#ifndef TRAIL_SERVE_API_H
#define TRAIL_SERVE_API_H

#include "serve/http.h"
#include "serve/model.h"

struct runs;

struct api {
    struct model *model;
    const char *title; /* of the trace */
    struct runs *runs; /* analyses by the command itself */
};

/* What is no path of the API is not found. Without memory the answer has no data. */
void api_answer(const struct api *api, const struct http_request *request,
                struct http_answer *answer);

#endif
