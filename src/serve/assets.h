/*
 * The files of the page: built into the command, or from a folder for who works on the page. There
 * are only those whose names stand in the table.
 */
#ifndef TRAIL_SERVE_ASSETS_H
#define TRAIL_SERVE_ASSETS_H

#include "serve/http.h"

struct asset {
    const char *name;
    const char *type;
    const unsigned char *data;
    size_t size;
    const unsigned char *gzip; /* the same, compressed */
    size_t gzip_size;
};

/* Made by tools/embed from web/dist/; ended by a row without a name. */
extern const struct asset assets_embedded[];

/* The content security policy of the page where it is one file: its own script and style, by their hashes. */
extern const char assets_policy[];

/* The file of a path. `folder` NULL: of those that are built in. False: there is no such file. */
bool assets_answer(const char *folder, const struct http_request *request, const char *path,
                   struct http_answer *answer);

#endif
