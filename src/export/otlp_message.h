/*
 * Messages of OTLP, as JSON or as protocol buffers: the caller puts the fields in order, by the
 * table of otlp_fields.def, and the message is written in the requested form.
 *
 *     otlp_open(m, OTLP_SPANS);  otlp_text(m, OTLP_SPAN_NAME, name); ...  otlp_close(m);
 *
 * Consecutive fields of a message with the same number and type are one array in JSON. A message is
 * built in memory, because in protocol buffers the size of a part precedes it; otlp_write writes it
 * to the sink at once.
 */
#pragma once

#include <trail/export.h>

#include "base/out.h"
#include "export/protobuf.h"

enum otlp_field {
#define FIELD(name, number, type, key) OTLP_##name,
#include "export/otlp_fields.def"
    OTLP_FIELDS
};

/* Maximum nesting of messages: MetricsData, ResourceMetrics, ScopeMetrics, Metric, Histogram,
 * HistogramDataPoint, KeyValue, AnyValue. */
enum { OTLP_LEVELS = 8 };

struct otlp_message {
    bool protobuf;
    unsigned depth; /* of the innermost open message; 0: none */
    struct otlp_level {
        enum otlp_field field; /* whose value the message is */
        enum otlp_field array; /* JSON: the array that is open in it; OTLP_FIELDS: none */
        bool comma;            /* JSON: before the next field */
        struct protobuf bytes;
    } levels[OTLP_LEVELS];
    struct out text; /* JSON; collected in the bytes of the first level */
};

/* Returns false if out of memory. */
bool otlp_message_init(struct otlp_message *message, bool protobuf);
void otlp_message_free(struct otlp_message *message);

/* Begins and ends a message within the current one; both have the table's type MESSAGE or
 * MESSAGES. */
void otlp_open(struct otlp_message *message, enum otlp_field field);
void otlp_close(struct otlp_message *message);

/* Accepts any bytes: those that are not UTF-8 become U+FFFD. */
void otlp_text(struct otlp_message *message, enum otlp_field field, trail_string text);
void otlp_number(struct otlp_message *message, enum otlp_field field, uint64_t value);

/* Of a type with several values: all of them. */
void otlp_numbers(struct otlp_message *message, enum otlp_field field, const uint64_t *values,
                  size_t count);

/* IDs: 16 and 8 bytes. */
void otlp_trace_id(struct otlp_message *message, enum otlp_field field, uint64_t high,
                   uint64_t low);
void otlp_span_id(struct otlp_message *message, enum otlp_field field, uint64_t id);

/* Adds an attribute to the list. */
void otlp_attribute_text(struct otlp_message *message, enum otlp_field list, const char *key,
                         trail_string text);
void otlp_attribute_number(struct otlp_message *message, enum otlp_field list, const char *key,
                           int64_t value);
void otlp_attribute_true(struct otlp_message *message, enum otlp_field list, const char *key);

/* Adds the resource: the attributes of the options, among them a service.name. */
void otlp_resource(struct otlp_message *message, const trail_export_options *options);

/* Begins a list of spans or metrics in a scope of trail's; `scope` is the scope's field. */
void otlp_open_scope(struct otlp_message *message, enum otlp_field scope);

/*
 * Ends all open messages, and writes the whole at once; in JSON with a line end. The next message
 * then begins. Returns false if out of memory.
 */
bool otlp_write(struct otlp_message *message, struct out *to);
