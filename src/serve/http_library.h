/*
 * Loads libmicrohttpd when it is first needed: with its dependencies it takes longer to load than
 * most commands run. http_library.c defines those of its functions that http.c uses, under their
 * own names.
 */
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <trail/error.h>

/* Call before any function of the library. Returns false with *err if it is not installed. */
bool http_library_load(trail_error *err);
