/*
 * Messages of OTLP, as JSON or as protocol buffers: the caller puts the fields in their order, by
 * the table of otlp_fields.def, and the message is written in whichever form was requested.
 *
 *     otlp_open(m, OTLP_SPANS);  otlp_text(m, OTLP_SPAN_NAME, name); ...  otlp_close(m);
 *
 * The fields of a message of one number and type that follow each other are one array in JSON. A
 * message is built in memory, as a part's size precedes it in protocol buffers; with otlp_write it
 * becomes one write to the sink.
 */
#ifndef TRAIL_EXPORT_OTLP_MESSAGE_H
#define TRAIL_EXPORT_OTLP_MESSAGE_H

#include "base/out.h"
#include "export/protobuf.h"

enum otlp_field {
#define FIELD(name, number, type, key) OTLP_##name,
#include "export/otlp_fields.def"
#undef FIELD
    OTLP_FIELDS
};

/* Messages within each other: TracesData, ResourceSpans, ScopeSpans, Span, Event, KeyValue,
 * AnyValue. */
enum { OTLP_LEVELS = 7 };

struct otlp_message {
    bool protobuf;
    unsigned depth; /* of the innermost message that is open; 0: nothing is */
    struct otlp_level {
        enum otlp_field field; /* that the message is the value of */
        enum otlp_field array; /* JSON: the array that is open in it; OTLP_FIELDS: none */
        bool comma;            /* JSON: before the next field */
        struct protobuf bytes;
    } levels[OTLP_LEVELS];
    struct out text; /* JSON; it is collected in the bytes of the first level */
};

/* Returns false if out of memory. */
bool otlp_message_init(struct otlp_message *message, bool protobuf);
void otlp_message_free(struct otlp_message *message);

/* Begins and ends a message within the present one; both are of the table's types MESSAGE or
 * MESSAGES. */
void otlp_open(struct otlp_message *message, enum otlp_field field);
void otlp_close(struct otlp_message *message);

/* Any bytes: those that are not UTF-8 become U+FFFD. */
void otlp_text(struct otlp_message *message, enum otlp_field field, trail_string text);
void otlp_number(struct otlp_message *message, enum otlp_field field, uint64_t value);

/* IDs: 16 and 8 bytes. */
void otlp_trace_id(struct otlp_message *message, enum otlp_field field, uint64_t high,
                   uint64_t low);
void otlp_span_id(struct otlp_message *message, enum otlp_field field, uint64_t id);

/*
 * Ends all messages that are open, and writes the whole at once; in JSON with a line end. Then the
 * next one begins. Returns false if out of memory.
 */
bool otlp_write(struct otlp_message *message, struct out *to);

#endif
