/* Reads what the kernel provides in small files and folders. */
#include "base/small_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Paths are short: a longer one is truncated, and no such file exists. */
enum { PATH_SIZE = 512 };

#define PUT_PATH(buf, format)                                                                      \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        (void)vsnprintf(buf, sizeof(buf), format, args);                                           \
        va_end(args);                                                                              \
    } while (0)

bool small_file_text(char *text, size_t size, const char *path, ...)
{
    char name[PATH_SIZE];
    PUT_PATH(name, path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, size - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = '\0';
    for (size_t end = strlen(text); end > 0 && isspace((unsigned char)text[end - 1]);)
        text[--end] = '\0';
    return n >= 0;
}

bool small_file_number(const char *path, long *number)
{
    char text[32], *end;
    if (!small_file_text(text, sizeof text, "%s", path))
        return false;
    *number = strtol(text, &end, 10);
    return end != text;
}

/* MARK: Lines */

struct small_lines small_lines_open(const char *path, ...)
{
    char name[PATH_SIZE];
    PUT_PATH(name, path);
    return (struct small_lines){.file = fopen(name, "re")};
}

bool small_lines_next(struct small_lines *lines)
{
    ssize_t size = lines->file ? getline(&lines->text, &lines->room, lines->file) : -1;
    if (size > 0 && lines->text[size - 1] == '\n')
        lines->text[size - 1] = '\0';
    return size > 0;
}

void small_lines_close(struct small_lines *lines)
{
    int reason = errno;
    free(lines->text);
    if (lines->file)
        (void)fclose(lines->file);
    errno = reason;
}

/* MARK: Numbers */

struct small_numbers small_numbers_open(const char *path, ...)
{
    char name[PATH_SIZE];
    PUT_PATH(name, path);
    return (struct small_numbers){.folder = opendir(name)};
}

bool small_numbers_next(struct small_numbers *numbers)
{
    const struct dirent *entry;
    while (numbers->folder && (entry = readdir(numbers->folder))) {
        char *end;
        unsigned long number = strtoul(entry->d_name, &end, 10);
        if (isdigit((unsigned char)*entry->d_name) && *end == '\0' && number <= INT_MAX) {
            numbers->at = (int)number;
            return true;
        }
    }
    return false;
}

void small_numbers_close(struct small_numbers *numbers)
{
    int reason = errno;
    if (numbers->folder)
        (void)closedir(numbers->folder);
    errno = reason;
}
