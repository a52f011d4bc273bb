/* Writing to a descriptor to the end, whatever interrupts it. */
#ifndef TRAIL_TRACER_OUTPUT_H
#define TRAIL_TRACER_OUTPUT_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>

/* False with errno set. A descriptor that does not block is waited for. */
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

#endif
