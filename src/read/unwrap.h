/*
 * Unwrap: traces as transfers leave them: after text or zero bytes, in a tar or zip archive, as
 * base64, as a hex dump, in a response of HTTP, compressed twice, or with line ends converted to
 * CRLF. A source in such a form is wrapped in one that delivers the trace.
 */
#pragma once

#include <trail/read.h>

enum { UNWRAP_NAME_SIZE = 64 };

struct unwrap_form;

/*
 * Returns the form of data that begins with these bytes; NULL if it is none of these. `name`
 * receives its name for messages.
 */
const struct unwrap_form *unwrap_recognise(const uint8_t *data, size_t size,
                                           char name[UNWRAP_NAME_SIZE]);

/*
 * Whether more bytes may change the result of unwrap_recognise. They do not once a trace's header
 * was read, so that a live trace is never waited for; all bytes of the source's buffer are fetched
 * if there is none.
 */
bool unwrap_is_undecided(const uint8_t *data, size_t size);

/*
 * Begins to decode what `inner` returns in that form; NULL if out of memory. unwrap_read is a
 * trail_read_fn of the result. An error of `inner` is permanent; errno EBADMSG: the archive is
 * damaged. In an archive, reads the first file that is a trace; ENOMSG: there is none.
 */
struct unwrap *unwrap_begin(const struct unwrap_form *form, trail_read_fn inner, void *context);
ssize_t unwrap_read(void *unwrap, void *buf, size_t size);
void unwrap_end(struct unwrap *unwrap);
