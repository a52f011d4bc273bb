/* Variable-length numbers near the end of the input. */
#include "base/varint.h"

const uint8_t *uvarint_get_slow(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        if (at == end)
            return NULL;
        uint8_t byte = *at++;
        if (shift == 63 && byte > 1)
            return NULL;
        sum |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            *value = sum;
            return at;
        }
    }
    return NULL;
}
