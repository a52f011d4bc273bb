/*
 * JSON, as the writers of the exports need it: text of any bytes.
 */
#ifndef TRAIL_EXPORT_JSON_H
#define TRAIL_EXPORT_JSON_H

#include <trail/read.h>

#include "base/out.h"

/*
 * The text in quotes. Bytes that are not UTF-8 become U+FFFD each, control characters are escaped.
 * Returns whether all of it was UTF-8.
 */
bool json_put_text(struct out *out, trail_string text);

#endif
