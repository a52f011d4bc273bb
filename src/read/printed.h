/* Printed: whether bytes are text such as programs print. */
#ifndef TRAIL_READ_PRINTED_H
#define TRAIL_READ_PRINTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline bool is_printed(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        uint8_t c = data[i];
        if (c == 0x7f || (c < ' ' && (c == '\0' || !strchr("\t\n\v\f\r\033", c))))
            return false;
    }
    return size > 0;
}

#endif
