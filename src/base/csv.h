/*
 * CSV: one text as a field of comma-separated values (RFC 4180, but for bare line ends).
 */
#ifndef TRAIL_BASE_CSV_H
#define TRAIL_BASE_CSV_H

#include "base/out.h"

enum csv_style {
    CSV_EXACT,
    /* An apostrophe in front of what a spreadsheet would compute: text that begins, after spaces,
     * with = + - @, a tab or a line end, but is no number. */
    CSV_SAFE
};

/* An empty text is "", so that it is no NULL. */
void out_csv(struct out *out, const char *data, size_t size, enum csv_style style);

#endif
