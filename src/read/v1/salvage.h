/*
 * v1, salvage: where records can be read again behind damaged bytes. A file has no marks to look
 * for, so a place is accepted only if what is there fits the rest of the trace:
 *
 *   Batch           its P's time has advanced, and well-formed records follow
 *   String, Stack   its ID is not used yet, the text is printable, and well-formed records follow
 */
#ifndef TRAIL_READ_V1_SALVAGE_H
#define TRAIL_READ_V1_SALVAGE_H

#include "read/v1/index.h"

/* Bytes that are looked at, at most, to accept a place; more only for long strings and stacks. */
#define V1_SALVAGE_REACH 4096

/* Whether the trace may continue at `at`; index->input.bytes has the bytes up to the end, or
 * V1_SALVAGE_REACH of them. */
bool v1_salvage_fits(const struct v1_index *index, const struct tables *tables, const uint8_t *at);

/*
 * Returns the end of the events of a damaged batch that can be believed: those not later than the
 * hole's latest_ticks, and without the last few events before damage, which may be chance bytes. `at` is
 * behind the Batch record, whose time is `ticks`; the batch ends at `end`.
 */
const uint8_t *v1_salvage_end(const struct v1_format *format, const struct v1_bytes *bytes,
                              const uint8_t *at, const uint8_t *end, const struct v1_hole *hole,
                              int64_t ticks);

#endif
