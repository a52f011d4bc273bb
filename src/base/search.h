/* Binary search in sorted data. */
#pragma once

#include <stddef.h>

/*
 * Returns the first i in [low, high) for which `is_before`, an expression of i, is false; `high` if
 * there is none. It must be true for all entries before that and false for all after:
 *
 *     size_t at = SEARCH(i, 0, count, rows[i].id < id);
 *     bool found = at < count && rows[at].id == id;
 *
 *     size_t behind = SEARCH(i, 0, count, rows[i].start <= address);   one past the last start <= address
 */
#define SEARCH(i, low, high, is_before)                                                            \
    ({                                                                                             \
        size_t search_low = (low), search_high = (high);                                           \
        while (search_low < search_high) {                                                         \
            size_t i = search_low + (search_high - search_low) / 2;                                \
            if (is_before)                                                                         \
                search_low = i + 1;                                                                \
            else                                                                                   \
                search_high = i;                                                                   \
        }                                                                                          \
        search_low;                                                                                \
    })
