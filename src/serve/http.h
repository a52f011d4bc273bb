/*
 * The HTTP server behind the viewer: access control, and the headers of every answer. The content
 * of answers comes from its user (http_handler).
 *
 * A page on another site must not be able to read a trace, so a request is answered only if
 *
 *   - its Host is localhost, 127.0.0.1 or [::1] with any port (so that `ssh -L` works), or the
 * address served on (for 0.0.0.0 and [::] any address, but no name): a name that another site has
 * pointed here (DNS rebinding) is refused;
 *   - its Origin, if it has one, is that host, or the one site that the user allows (guest);
 *   - it presents the token: as a cookie, which the first URL (?token=...) sets and which other
 *     sites' requests do not carry (SameSite), or as "Authorization: Bearer ...", for curl; the
 * guest must present it as ?token=...;
 *   - it is a GET or a HEAD.
 *
 * Connections without the token are limited in number and time: gate.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <trail/error.h>

enum { HTTP_TOKEN_SIZE = 32 }; /* hexadecimal digits */

struct http_request {
    const char *path;
    void *connection; /* for http_query */
};

/* Returns the value of a parameter of the query string; NULL if there is none. */
const char *http_query(const struct http_request *request, const char *name);

/* Calls `each` with the name of every parameter of the query string, until it returns false. */
void http_each_query(const struct http_request *request,
                     bool (*each)(void *context, const char *name), void *context);

/* Whether the client accepts gzip. */
bool http_takes_gzip(const struct http_request *request);

/* Whether the client has closed its connection, so that no answer is needed. */
bool http_is_gone(const struct http_request *request);

/* Loads libmicrohttpd and returns its version; NULL with *err set if it is not installed. */
const char *http_library_version(trail_error *err);

struct http_answer {
    unsigned status; /* 0: 200 */
    const char *type;
    const char *data; /* if free_data, released with free(); otherwise it must stay valid */
    size_t size;
    bool free_data;
    bool gzip;      /* data is gzip; only if http_takes_gzip */
    bool immutable; /* browsers may cache it: an asset with its hash in the name */
};

/* Called on the server's threads, one per connection. */
typedef void (*http_handler)(void *context, const struct http_request *request,
                             struct http_answer *answer);

struct http_options {
    const char *host;  /* address to listen on; NULL: 127.0.0.1 */
    uint16_t port;     /* 0: any free port */
    const char *guest; /* "https://SITE", whose pages may read answers; NULL: none */
    http_handler handler;
    void *context;
};

struct http;

/* Starts the server. The texts of the options must stay valid. Returns NULL with *err on error. */
struct http *http_start(const struct http_options *options, trail_error *err);

/* Returns the port that the server listens on. */
uint16_t http_port(const struct http *http);

/* Returns the token: HTTP_TOKEN_SIZE hexadecimal digits, valid until http_stop. */
const char *http_token(const struct http *http);

/* Returns the time of the last answer, in ns of CLOCK_MONOTONIC; 0: none yet. */
int64_t http_last_request(const struct http *http);

/* Waits for answers in progress. Accepts NULL. */
void http_stop(struct http *http);
