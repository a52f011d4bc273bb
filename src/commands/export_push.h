/*
 * Sends OTLP to a collector: each message is one request of OTLP/HTTP, resent if the collector is
 * busy or unreachable. libcurl is loaded for this at run time.
 */
#pragma once

#include "commands/export_request.h"

struct push;

/* The encoding of requests and answers. */
enum push_form { PUSH_PROTOBUF, PUSH_JSON };

struct push_options {
    enum push_form form;
    bool metrics;    /* not spans */
    bool gzip;       /* messages are compressed */
    long timeout_ms; /* of a request; 0: 30 s */
    struct pairs headers;
};

/*
 * Begins sending to the collector at `endpoint` ("http://localhost:4318"; "/v1/traces" or
 * "/v1/metrics" is added unless it has a path). `headers` are added to each request. Returns NULL
 * after a message.
 */
struct push *push_begin(const char *endpoint, const struct push_options *options);

/* Each write to the sink is a request; failures are reported. */
trail_sink push_sink(struct push *push);

/* Returns EXIT_GOOD, or EXIT_INOUT if not all was accepted. */
int push_end(struct push *push);
