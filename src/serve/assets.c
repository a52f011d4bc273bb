/* The page's files, embedded or from a folder. */
#include "serve/assets.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 }; /* of a file in a folder */

static bool read_file(const char *folder, const struct asset *asset, struct http_answer *answer)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, asset->name);
    FILE *file = length > 0 && length < PATH_MAX ? fopen(path, "re") : NULL;
    char *data = file ? malloc(MOST_BYTES) : NULL;
    if (data) {
        *answer = (struct http_answer){.type = asset->type,
                                       .data = data,
                                       .size = fread(data, 1, MOST_BYTES, file),
                                       .free_data = true};
    }
    if (file)
        (void)fclose(file);
    return data != NULL;
}

bool assets_answer(const char *folder, const struct http_request *request, const char *path,
                   struct http_answer *answer)
{
    const char *name = strcmp(path, "/") == 0 ? "index.html" : path + 1;
    const struct asset *asset = assets_embedded;
    while (asset->name && strcmp(asset->name, name) != 0)
        asset++;
    if (!asset->name)
        return false;
    if (folder)
        return read_file(folder, asset, answer);
    bool gzip = http_takes_gzip(request);
    *answer = (struct http_answer){
        .type = asset->type,
        .data = (const char *)(gzip ? asset->gzip : asset->data),
        .size = gzip ? asset->gzip_size : asset->size,
        .gzip = gzip,
    };
    return true;
}
