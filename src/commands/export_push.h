/*
 * Sends OTLP to a collector: each line of JSON is one request of OTLP/HTTP, sent again if the
 * collector is busy or not there. libcurl is loaded for it at run time.
 */
#ifndef TRAIL_COMMANDS_EXPORT_PUSH_H
#define TRAIL_COMMANDS_EXPORT_PUSH_H

#include "commands/export.h"

struct push;

/*
 * Begins to send to the collector at `endpoint` ("http://localhost:4318"; "/v1/traces" is added unless
 * it has a path). `headers` are added to each request. Returns NULL after a message.
 */
struct push *push_begin(const char *endpoint, const struct pairs *headers);

/* What is written to it is sent line by line; a failure has been reported. */
trail_sink push_sink(struct push *push);

/* Returns EXIT_GOOD, or EXIT_INOUT if not all was accepted. */
int push_end(struct push *push);

#endif
