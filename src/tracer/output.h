/* Writing all bytes to a descriptor, across interruptions. */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* Returns false with errno set. Waits for a non-blocking descriptor. */
static inline bool output_write(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = write(fd, at, size);
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            (void)poll(&ready, 1, 100);
        } else if (n == 0 || errno != EINTR) {
            return false;
        }
    }
    return true;
}
