/* Finds and shows the lines around a frame. */
#include "serve/source.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum {
    MOST_FILE = 4 << 20, /* bytes */
    MOST_AROUND = 50,
    MOST_LINE = 500, /* bytes of a line in the answer */
};

/* MARK: Access control */

/* Consecutive frames usually have the same file, so its text is compared only once. */
static bool is_named(const trail_lanes *lanes, const char *file)
{
    size_t stacks = trail_lanes_stack_count(lanes);
    trail_name last = 0;
    for (size_t stack = 1; stack < stacks; stack++) {
        const trail_place *places;
        size_t count = trail_lanes_stack(lanes, (trail_stack)stack, &places);
        for (size_t i = 0; i < count; i++) {
            if (places[i].file == last)
                continue;
            last = places[i].file;
            if (text_is(trail_lanes_text(lanes, last), file))
                return true;
        }
    }
    return false;
}

/* Returns the part of a path that may be looked up below a folder: after its last "..". */
static const char *inner_part(const char *file)
{
    const char *inner = file;
    for (const char *part = file; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            inner = part + 2;
    }
    return inner;
}

/*
 * Returns the path with symbolic links resolved if that is a regular file below `root`; otherwise
 * NULL. The caller frees it.
 */
static char *regular_file(const char *root, const char *name)
{
    char path[PATH_MAX];
    struct stat status;
    size_t size = strcmp(root, "/") == 0 ? 0 : strlen(root);
    int length = snprintf(path, sizeof path, "%.*s/%s", (int)size, root, name);
    char *real = length > 0 && length < PATH_MAX ? realpath(path, NULL) : NULL;
    if (real && strncmp(real, root, size) == 0 && real[size] == '/' && lstat(real, &status) == 0 &&
        S_ISREG(status.st_mode))
        return real;
    free(real);
    return NULL;
}

/*
 * Finds the file below the folder: by its whole path, or with leading components removed, because
 * the program may have been built elsewhere. The caller frees the result; NULL if there is none.
 */
static char *find_file(const char *folder, const char *file)
{
    char *root = realpath(folder, NULL), *found = NULL;
    for (const char *part = inner_part(file); root && part && !found; part = strchr(part, '/')) {
        part += strspn(part, "/");
        if (*part == '\0')
            break;
        found = regular_file(root, part);
    }
    free(root);
    return found;
}

/* Reads *size bytes; the caller frees them. NULL if it cannot be read or is too large. */
static char *read_file(const char *path, size_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    char *data = NULL;
    *size = 0;
    if (fd < 0)
        return NULL;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= MOST_FILE)
        data = malloc((size_t)status.st_size + 1);
    while (data && *size < (size_t)status.st_size) {
        ssize_t n = read(fd, data + *size, (size_t)status.st_size - *size);
        if (n <= 0)
            break;
        *size += (size_t)n;
    }
    (void)close(fd);
    return data;
}

/* MARK: Lines */

struct lines {
    const char *data;
    size_t size, at;
};

static bool next_line(struct lines *lines, trail_string *line)
{
    if (lines->at >= lines->size)
        return false;
    const char *begin = lines->data + lines->at;
    const char *end = memchr(begin, '\n', lines->size - lines->at);
    size_t size = end ? (size_t)(end - begin) : lines->size - lines->at;
    lines->at += size + 1;
    if (size > 0 && begin[size - 1] == '\r')
        size--;
    *line = (trail_string){begin, size < MOST_LINE ? size : MOST_LINE};
    return true;
}

/* Writes file, path, line, first and lines, or refuses if the line does not exist. */
static void put_lines(struct exchange *exchange, const char *file, const char *path,
                      struct lines lines, int64_t line, int64_t around)
{
    struct json *json = &exchange->json;
    int64_t number = 0, first = line > around ? line - around : 1;
    trail_string text;
    json_open(json, NULL, '{');
    json_string(json, "file", file);
    json_string(json, "path", path);
    json_signed(json, "line", line);
    json_signed(json, "first", first);
    json_open(json, "lines", '[');
    while (number < line + around && next_line(&lines, &text)) {
        if (++number < first)
            continue;
        json_text(json, NULL, text);
    }
    json_close(json, ']');
    json_close(json, '}');
    if (number < line)
        exchange_refuse(exchange, 404, "the file has only %lld lines: it is another version",
                        (long long)number);
}

void source_answer(struct exchange *exchange, struct model *model, const char *folder)
{
    const char *file = parameter_text(exchange, "file");
    int64_t line = parameter_number(exchange, "line", 1, INT32_MAX, 1);
    int64_t around = parameter_number(exchange, "around", 0, MOST_AROUND, 5);
    size_t size = 0;
    if (!file || !*file)
        exchange_refuse(exchange, 400, "file is what a frame of the trace names");
    else if (!folder)
        exchange_refuse(exchange, 501, "sources are shown by trail view --source=DIR");
    if (exchange->status != 0 || !file || !folder)
        return;
    const trail_lanes *lanes = model_lock(model);
    bool named = lanes && is_named(lanes, file);
    if (lanes)
        model_unlock(model);
    char *path = named ? find_file(folder, file) : NULL;
    char *data = path ? read_file(path, &size) : NULL;
    if (!named)
        exchange_refuse(exchange, 404, "no frame of the trace names this file");
    else if (!path)
        exchange_refuse(exchange, 404, "it is not below the folder of --source");
    else if (!data)
        exchange_refuse(exchange, 404, "it cannot be read, or is larger than 4 MB");
    else
        put_lines(exchange, file, path, (struct lines){data, size, 0}, line, around);
    free(data);
    free(path);
}
