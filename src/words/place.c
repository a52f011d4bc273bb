/* Writes places: function, file and line. */
#include "words/place.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "words/function_name.h"

enum { FUNCTION_MOST = 300, FILE_MOST = 150 };

static int at_most(size_t size, int most)
{
    return size < (size_t)most ? (int)size : most;
}

char *place_of_frame(trail_string function, trail_string file, uint64_t line, enum place_form form,
                     char *buf, size_t size)
{
    char name_buf[FUNCTION_NAME_SIZE], at[FILE_MOST + 32] = "";
    trail_string name = function_name_short(function, name_buf);
    const char *slash = file.size ? memrchr(file.data, '/', file.size) : NULL;
    size_t skip = slash ? (size_t)(slash + 1 - file.data) : 0;
    int file_size = at_most(file.size - skip, FILE_MOST);
    if (file.size > 0 && line > 0)
        (void)snprintf(at, sizeof at, "%.*s:%" PRIu64, file_size, file.data + skip, line);
    else if (file.size > 0)
        (void)snprintf(at, sizeof at, "%.*s", file_size, file.data + skip);
    (void)snprintf(buf, size,
                   form == PLACE_PLAIN ? "%.*s%s%s"
                   : *at               ? "%.*s%s(%s)"
                                       : "%.*s%s%s",
                   at_most(name.size, FUNCTION_MOST), name.data ? name.data : "", *at ? " " : "",
                   at);
    return buf;
}
