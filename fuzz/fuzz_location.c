/*
 * The query of the viewer's first URL: what is redirected to is on the same server, can be a header, and has no token; its
 * own location is the same.
 */
#include "serve/location.h"

#include "fuzz.h"

static void check(const char *location)
{
    char again[LOCATION_SIZE];
    FUZZ_HOLDS(strcmp(location, "/") == 0 || strncmp(location, "/?", 2) == 0);
    FUZZ_HOLDS(strncasecmp(location, "/?token=", 8) != 0 && !strcasestr(location, "&token="));
    for (const char *c = location; *c; c++)
        FUZZ_HOLDS(*c > ' ' && *c < 127);
    FUZZ_HOLDS(location_without_token(location + 1, again) == 303 && strcmp(again, location) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char location[LOCATION_SIZE], *query = malloc(size + 2);
    if (!query)
        abort();
    query[0] = '?';
    if (size > 0)
        memcpy(query + 1, data, size);
    query[size + 1] = '\0';
    unsigned status = location_without_token(query, location);
    FUZZ_HOLDS(status == 303 || location[0] == '\0');
    if (status == 303)
        check(location);
    free(query);
    return 0;
}
