/* Finds the note in the footer of a Parquet file: see parquet_ids.h, and thrift.h for its form. */
#include "export/parquet_ids.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/varint.h"
#include "export/thrift.h"

/* MARK: The footer */

enum { END_SIZE = 8, LARGEST_FOOTER = 1 << 28 };

static bool read_at(int fd, void *to, size_t size, off_t at)
{
    return pread(fd, to, size, at) == (ssize_t)size;
}

/* Returns the footer, to be freed; NULL: there is none, or no memory. */
static uint8_t *read_footer(int fd, size_t *size)
{
    struct stat file;
    uint8_t end[END_SIZE];
    if (fstat(fd, &file) < 0 || file.st_size < END_SIZE ||
        !read_at(fd, end, END_SIZE, file.st_size - END_SIZE) || memcmp(end + 4, "PAR1", 4) != 0)
        return NULL;
    *size = (size_t)end[0] | (size_t)end[1] << 8 | (size_t)end[2] << 16 | (size_t)end[3] << 24;
    if (*size > LARGEST_FOOTER || (off_t)*size > file.st_size - END_SIZE)
        return NULL;
    uint8_t *footer = malloc(*size + 1);
    if (footer && read_at(fd, footer, *size, file.st_size - END_SIZE - (off_t)*size))
        return footer;
    free(footer);
    return NULL;
}

/* MARK: Thrift */

enum { DEEPEST = 16 };

/* What has not been read; `at` NULL: it is damaged. */
struct cursor {
    const uint8_t *at, *end;
};

static uint64_t get_number(struct cursor *from)
{
    uint64_t value = 0;
    from->at = from->at ? uvarint_get(from->at, from->end, &value) : NULL;
    return value;
}

static unsigned get_byte(struct cursor *from)
{
    if (!from->at || from->at == from->end)
        from->at = NULL;
    return from->at ? *from->at++ : 0;
}

static trail_string get_bytes(struct cursor *from, uint64_t size)
{
    if (!from->at || size > (uint64_t)(from->end - from->at)) {
        from->at = NULL;
        return (trail_string){NULL, 0};
    }
    trail_string bytes = {(const char *)from->at, (size_t)size};
    from->at += size;
    return bytes;
}

static trail_string get_text(struct cursor *from)
{
    return get_bytes(from, get_number(from));
}

/* The next field of a structure, after the field `*number`. Returns its type; 0: there is none. */
static unsigned get_field(struct cursor *from, uint64_t *number)
{
    unsigned byte = get_byte(from);
    if (byte >> 4 != 0)
        *number += byte >> 4;
    else if (byte != 0)
        *number = get_number(from) / 2; /* zigzag, not negative */
    return from->at ? byte & 15 : 0;
}

/* The head of a list. Returns how many elements follow; each has a byte at least. */
static uint64_t get_list(struct cursor *from, unsigned *type)
{
    unsigned byte = get_byte(from);
    uint64_t count = byte >> 4 == 15 ? get_number(from) : byte >> 4;
    *type = byte & 15;
    if (from->at && count > (uint64_t)(from->end - from->at))
        from->at = NULL;
    return from->at ? count : 0;
}

static void skip(struct cursor *from, unsigned type, unsigned depth);

/* Of a field that is true or false, the type is all. */
static void skip_field(struct cursor *from, unsigned type, unsigned depth)
{
    if (type != THRIFT_TRUE && type != THRIFT_FALSE)
        skip(from, type, depth);
}

static void skip_structure(struct cursor *from, unsigned depth)
{
    uint64_t number = 0;
    unsigned type;
    while ((type = get_field(from, &number)) != 0)
        skip_field(from, type, depth);
}

static void skip_list(struct cursor *from, unsigned depth)
{
    unsigned type;
    for (uint64_t count = get_list(from, &type); count > 0 && from->at; count--)
        skip(from, type, depth);
}

/* Skips an element. A type that no footer has is damage. */
static void skip(struct cursor *from, unsigned type, unsigned depth)
{
    if (depth == DEEPEST)
        from->at = NULL;
    else if (type == THRIFT_TRUE || type == THRIFT_FALSE || type == THRIFT_BYTE)
        (void)get_byte(from);
    else if (type == THRIFT_I16 || type == THRIFT_I32 || type == THRIFT_I64)
        (void)get_number(from);
    else if (type == THRIFT_DOUBLE)
        (void)get_bytes(from, 8);
    else if (type == THRIFT_BINARY)
        (void)get_text(from);
    else if (type == THRIFT_LIST)
        skip_list(from, depth + 1);
    else if (type == THRIFT_STRUCT)
        skip_structure(from, depth + 1);
    else
        from->at = NULL;
}

/* MARK: The note */

/* An entry of key_value_metadata. */
static void get_entry(struct cursor *from, trail_string *ids)
{
    trail_string key = {NULL, 0}, value = {NULL, 0};
    uint64_t number = 0;
    unsigned type;
    while ((type = get_field(from, &number)) != 0)
        if (type == THRIFT_BINARY && number == 1)
            key = get_text(from);
        else if (type == THRIFT_BINARY && number == 2)
            value = get_text(from);
        else
            skip_field(from, type, 0);
    if (text_is(key, PARQUET_IDS))
        *ids = value;
}

static void get_entries(struct cursor *from, trail_string *ids)
{
    unsigned type;
    for (uint64_t count = get_list(from, &type); count > 0 && from->at; count--)
        if (type == THRIFT_STRUCT)
            get_entry(from, ids);
        else
            skip(from, type, 0);
}

/* Returns the note if it is right; data NULL: there is none. */
static trail_string find_ids(struct cursor from)
{
    trail_string ids = {NULL, 0};
    uint64_t number = 0, rows = 0, count = 0;
    unsigned type;
    while ((type = get_field(&from, &number)) != 0)
        if (type == THRIFT_I64 && number == 3)
            rows = get_number(&from) / 2; /* zigzag, not negative */
        else if (type == THRIFT_LIST && number == 5)
            get_entries(&from, &ids);
        else
            skip_field(&from, type, 0);
    for (size_t i = 0; i < ids.size; i++)
        count += i == 0 || ids.data[i] == ',';
    return from.at && count == rows ? ids : (trail_string){NULL, 0};
}

char *parquet_ids(const char *path)
{
    size_t size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint8_t *footer = fd >= 0 ? read_footer(fd, &size) : NULL;
    trail_string ids = {NULL, 0};
    if (footer)
        ids = find_ids((struct cursor){footer, footer + size});
    char *note = ids.data ? strndup(ids.data, ids.size) : NULL;
    free(footer);
    if (fd >= 0)
        (void)close(fd);
    return note;
}
