/* Printed: whether bytes are text such as programs print, or only fill a file. */
#pragma once

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

static inline bool is_zero(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}
