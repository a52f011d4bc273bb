/*
 * The typed fields of a log as its message, in logfmt:
 *
 *     status=200 ms=1.5 path="/a \"b\""
 *
 * The type of each can be read back: a text is always in quotes; a double has a point, an exponent,
 * or no digits (inf, nan).
 */
#pragma once

#include <trail/record.h>

#include "wire/wire.h"

/* Bytes of the message in every format, without its NUL. */
#define FIELDS_MAX V2_MAX_STRING

/*
 * Writes the fields to `message`. A text that does not fit is cut. A field is left out if its
 * name or number does not fit.
 */
void fields_write(char message[FIELDS_MAX + 1], const trail_field *fields, size_t n);
