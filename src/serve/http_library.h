/*
 * libmicrohttpd, loaded when it is first needed: with the libraries that it needs itself it would take longer to load than
 * most commands run. http_library.c has its functions under their own names, as far as http.c calls them.
 */
#ifndef TRAIL_SERVE_HTTP_LIBRARY_H
#define TRAIL_SERVE_HTTP_LIBRARY_H

#include <microhttpd.h>
#include <stdbool.h>
#include <trail/error.h>

/* Before any of its functions is called. False with *err if it is not installed. */
bool http_library_load(trail_error *err);

#endif
