/* Reads and writes at given offsets, complete across interruptions. */
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

ssize_t file_read_at(int fd, void *buf, size_t size, int64_t place)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = pread(fd, (char *)buf + have, size - have, (off_t)(place + (int64_t)have));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        have += (size_t)n;
    }
    return (ssize_t)have;
}

bool file_write_at(int fd, const void *data, size_t size, int64_t place)
{
    for (size_t done = 0; done < size;) {
        ssize_t n =
            pwrite(fd, (const char *)data + done, size - done, (off_t)(place + (int64_t)done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}
