/*
 * The HTTP API of the viewer, below /api/: docs/http-api.md describes it. JSON, or binary where that
 * says so; times in nanoseconds since the first event.
 */
#ifndef TRAIL_SERVE_API_H
#define TRAIL_SERVE_API_H

#include "serve/http.h"
#include "serve/model.h"

struct runs;

struct api_trace {
    struct model *model;
    const char *title;
    struct runs *runs; /* analyses by the command itself */
};

/* Of two traces each has a page and an API of its own below /a/ and /b/; without that it is the first's. */
enum { API_TRACES = 2 };
struct api {
    struct api_trace traces[API_TRACES];
    size_t count;
    const char *source; /* folder with the program's sources; NULL: they are not shown */
};

/* Which trace a path is about; the prefix that says so is taken off it. */
const struct api_trace *api_find_trace(const struct api *api, const char **path);

/* What is no path of the API is not found. Without memory the answer has no data. */
void api_answer(const struct api *api, const struct http_request *request,
                struct http_answer *answer);

#endif
