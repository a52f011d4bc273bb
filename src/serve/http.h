/*
 * The HTTP server behind the viewer: who may ask, and the frame of every answer. What is answered is
 * its owner's (struct http_answer).
 *
 * A page on another site must not be able to read a trace, so a request is answered only if
 *
 *   - its Host is localhost, 127.0.0.1 or [::1] with any port (`ssh -L` works), or what the owner
 *     serves on (of 0.0.0.0 and [::] any address, but no name): a name that another site has pointed here (DNS rebinding) is refused;
 *   - its Origin, if there is one, is that host;
 *   - it shows the token: as a cookie, which the first URL (?token=...) sets and which other sites'
 *     requests do not carry (SameSite), or as "Authorization: Bearer ...", for curl;
 *   - it is a GET or a HEAD.
 *
 * Connections that do not show the token are few, and not for long: gate.h.
 */
#ifndef TRAIL_SERVE_HTTP_H
#define TRAIL_SERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/error.h>

enum { HTTP_TOKEN_SIZE = 32 }; /* hexadecimal digits */

struct http_request {
    const char *path;
    void *connection; /* for http_query */
};

/* The value of a parameter of the request's query; NULL if it is not there. */
const char *http_query(const struct http_request *request, const char *name);

/* Whether the answer may be compressed. */
bool http_takes_gzip(const struct http_request *request);

/* Whether who asked does not wait for the answer any more. */
bool http_is_gone(const struct http_request *request);

/* The version of libmicrohttpd, which this loads. NULL with *err: it is not installed. */
const char *http_library_version(trail_error *err);

struct http_answer {
    unsigned status; /* 0: 200 */
    const char *type;
    const char *data; /* owned by the answer if `free_data`: freed with free */
    size_t size;
    bool free_data;
    bool gzip;      /* data is gzip; only if the request accepts it */
    bool immutable; /* may be kept by the browser: an asset with its hash in the name */
};

/* Called from threads of the server, one a connection. */
typedef void (*http_handler)(void *context, const struct http_request *request,
                             struct http_answer *answer);

struct http_options {
    const char *host; /* an address to listen on; NULL: 127.0.0.1 */
    uint16_t port;    /* 0: a free one */
    http_handler handler;
    void *context;
};

struct http;

/* Starts to serve. The options' texts must stay. NULL: *err says why. */
struct http *http_start(const struct http_options *options, trail_error *err);

uint16_t http_port(const struct http *http);
const char *http_token(const struct http *http);

/* When a request was last answered, by CLOCK_MONOTONIC in nanoseconds; 0: none was. */
int64_t http_last_request(const struct http *http);

/* Waits for answers that are on their way. Accepts NULL. */
void http_stop(struct http *http);

#endif
