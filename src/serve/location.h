/*
 * Where the first URL redirects to: the page's address without the token, which should not stay in
 * the browser's history. The other parameters are kept as they were sent.
 *
 *     ?token=TOKEN&run=a%20b&t=5   ->   /?run=a%20b&t=5
 *
 * Only the query is copied, after a fixed path, so that no request can redirect to another host. It
 * becomes a header of the answer: it may contain only printable ASCII characters except the space,
 * as a URL does, and at most LOCATION_SIZE of them.
 */
#pragma once

enum { LOCATION_SIZE = 4096 };

/*
 * Writes the location for a query, which begins with its '?' or is empty. Returns the status of the
 * answer: 303, or, with `location` empty, 400 if a character is not allowed in a URL and 414 if the
 * query is too long.
 */
unsigned location_without_token(const char *query, char location[LOCATION_SIZE]);
