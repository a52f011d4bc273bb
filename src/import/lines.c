/* Reads a source line by line: see lines.h. */
#include "import/lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "read/source.h"

/* Appends input to the buffer. Returns false at the end of the input, if the buffer is full, or on
 * an error. */
static bool read_more(struct lines *lines)
{
    if (lines->at > 0) {
        memmove(lines->buf, lines->buf + lines->at, lines->end - lines->at);
        lines->end -= lines->at;
        lines->at = 0;
    }
    if (lines->over || lines->end == LINE_SIZE)
        return false;
    ssize_t n =
        source_read(lines->source, lines->buf + lines->end, LINE_SIZE - lines->end, lines->err);
    lines->failed = n < 0;
    lines->over = n <= 0;
    lines->end += n > 0 ? (size_t)n : 0;
    return n > 0;
}

static bool have_buffer(struct lines *lines)
{
    if (!lines->buf)
        lines->buf = malloc(LINE_SIZE);
    if (!lines->buf)
        lines->failed = error_no_memory(lines->err) < 0;
    return lines->buf != NULL;
}

bool lines_next(struct lines *lines, trail_string *line)
{
    size_t looked = 0;
    char *end = NULL;
    if (!have_buffer(lines))
        return false;
    do {
        const char *from = lines->buf + lines->at + looked;
        end = memchr(from, '\n', lines->end - lines->at - looked);
        looked = lines->end - lines->at;
    } while (!end && read_more(lines));
    if (lines->failed || lines->at == lines->end)
        return false;
    size_t size = end ? (size_t)(end - lines->buf) - lines->at : lines->end - lines->at;
    *line = (trail_string){lines->buf + lines->at, size};
    lines->at += size + (end ? 1 : 0);
    if (line->size > 0 && line->data[line->size - 1] == '\r')
        line->size--;
    return true;
}

void lines_free(struct lines *lines)
{
    free(lines->buf);
    lines->buf = NULL;
}
