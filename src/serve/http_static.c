/*
 * libmicrohttpd in a static command: linked, and without GnuTLS, which has no static library. The
 * server uses no TLS, so of GnuTLS's functions only the first two are called; the others are NULL.
 */
#include <gnutls/gnutls.h>

#include "serve/http.h"
#include "serve/http_library.h"

bool http_library_load(trail_error *err)
{
    (void)err;
    return true;
}

const char *http_library_version(trail_error *err)
{
    (void)err;
    return MHD_get_version();
}

int gnutls_global_init(void)
{
    return 0;
}

void gnutls_global_deinit(void)
{
}

gnutls_alloc_function gnutls_malloc;
