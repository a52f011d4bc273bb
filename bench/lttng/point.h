/* One tracepoint of LTTng-UST with two integers, to measure beside the recorder. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER trail_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./point.h"

#if !defined(TRAIL_BENCH_LTTNG_POINT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TRAIL_BENCH_LTTNG_POINT_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
    trail_bench,
    pair,
    LTTNG_UST_TP_ARGS(int, first, int, second),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int, first, first)
        lttng_ust_field_integer(int, second, second)
    )
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
