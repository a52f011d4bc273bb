/* CSV: one text as a field of comma-separated values (RFC 4180, but with bare line ends). */
#pragma once

#include "base/out.h"

enum csv_style {
    CSV_EXACT,
    /*
     * Puts an apostrophe before text that a spreadsheet would evaluate: text that begins, after
     * spaces, with = + - @, a tab or a line end, but is not a number.
     */
    CSV_SAFE
};

/* Writes a field. An empty text is "", to differ from NULL. */
void out_csv(struct out *out, const char *data, size_t size, enum csv_style style);
