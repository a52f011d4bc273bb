/* Options that select tasks or regions by duration. */
#pragma once

#include "ui/options.h"

struct lengths {
    int64_t longer_ns, shorter_ns; /* 0: not given */
};

/* For a command whose rows fill a `request` with `lengths` in it. */
/* clang-format off */
#define LENGTHS_ROWS(request, lengths)                                                             \
    {0, "longer", "TIME", "one by one, those that took this time or longer",                         \
     TO_TIME(request, lengths.longer_ns), .expects = "a time like 10ms"},                          \
    {0, "shorter", "TIME", "one by one, those that took less",                                     \
     TO_TIME(request, lengths.shorter_ns), .expects = "a time like 10ms"}
/* clang-format on */

static inline bool lengths_given(const struct lengths *lengths)
{
    return lengths->longer_ns > 0 || lengths->shorter_ns > 0;
}

static inline bool lengths_have(const struct lengths *lengths, int64_t ns)
{
    return ns >= lengths->longer_ns && (lengths->shorter_ns == 0 || ns < lengths->shorter_ns);
}
