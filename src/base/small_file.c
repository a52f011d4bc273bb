/* Reads values that the kernel provides in small files. */
#include "base/small_file.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool small_file_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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
    if (!small_file_text(path, text, sizeof text))
        return false;
    *number = strtol(text, &end, 10);
    return end != text;
}
