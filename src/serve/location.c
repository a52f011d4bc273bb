/* Removes the token from the page's address. */
#include "serve/location.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* Whether libmicrohttpd, which decodes names and ignores their case, sees a token parameter. */
static bool is_token(const char *parameter, size_t size)
{
    static const char token[] = "token";
    char name[sizeof token] = "";
    const char *at = parameter, *end = parameter + size;
    for (size_t i = 0; i < sizeof token && at < end && *at != '='; i++)
        name[i] = url_next(&at);
    return memchr(name, '\0', sizeof name) && strcasecmp(name, token) == 0;
}

static bool is_of_url(const char *query)
{
    while (*query > ' ' && *query <= '~')
        query++;
    return *query == '\0';
}

unsigned location_without_token(const char *query, char location[LOCATION_SIZE])
{
    size_t used = 1;
    location[0] = '\0';
    if (!is_of_url(query))
        return 400;
    /* The output is no longer than the query and the '/'. */
    if (strlen(query) + 2 > LOCATION_SIZE)
        return 414;
    location[0] = '/';
    for (size_t size; *query; query += size) {
        const char *parameter = query + 1;
        size = 1 + strcspn(parameter, "&");
        if (size == 1 || is_token(parameter, size - 1))
            continue;
        location[used] = used == 1 ? '?' : '&';
        memcpy(location + used + 1, parameter, size - 1);
        used += size;
    }
    location[used] = '\0';
    return 303;
}
