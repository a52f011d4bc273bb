/* Builds a message of OTLP as protocol buffers or JSON: see otlp_message.h. */
#include "export/otlp_message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "timeline/timeline.h"

enum otlp_type {
    TYPE_MESSAGE,
    TYPE_MESSAGES,
    TYPE_TEXT,
    TYPE_ID,
    TYPE_NUMBER,
    TYPE_FIXED64,
    TYPE_INT64,
    TYPE_BOOL,
    TYPE_COUNTS,
    TYPE_SECONDS,
    TYPE_BOUNDS,
};

static const struct {
    unsigned number;
    enum otlp_type type;
    const char *key;
} fields[OTLP_FIELDS] = {
#define FIELD(name, number, type, key) [OTLP_##name] = {number, TYPE_##type, key},
#include "export/otlp_fields.def"
};

static struct otlp_level *innermost(struct otlp_message *m)
{
    return &m->levels[m->depth];
}

/* MARK: JSON */

static bool collect(void *context, const void *data, size_t size)
{
    struct otlp_message *m = context;
    protobuf_raw(&m->levels[0].bytes, data, size);
    return true;
}

static void end_array(struct otlp_message *m)
{
    struct otlp_level *level = innermost(m);
    if (level->array != OTLP_FIELDS)
        out_char(&m->text, ']');
    level->array = OTLP_FIELDS;
}

/* Writes what precedes a value. */
static void begin_value(struct otlp_message *m, enum otlp_field field)
{
    struct otlp_level *level = innermost(m);
    bool goes_on = level->array == field;
    if (!goes_on)
        end_array(m);
    if (level->comma)
        out_char(&m->text, ',');
    level->comma = true;
    if (goes_on)
        return;
    json_put_key(&m->text, fields[field].key);
    if (fields[field].type != TYPE_MESSAGES)
        return;
    level->array = field;
    out_char(&m->text, '[');
}

static void put_json_seconds(struct out *out, uint64_t ns)
{
    char text[32];
    int size =
        snprintf(text, sizeof text, "%" PRIu64 ".%09" PRIu64, ns / 1000000000U, ns % 1000000000U);
    out_bytes(out, text, (size_t)size);
}

static void put_json(struct out *out, enum otlp_type type, uint64_t value)
{
    switch (type) {
    case TYPE_NUMBER:
        out_u64(out, value);
        return;
    case TYPE_BOOL:
        json_put_bool(out, value);
        return;
    case TYPE_SECONDS:
    case TYPE_BOUNDS:
        put_json_seconds(out, value);
        return;
    default:
        out_char(out, '"');
        if (type == TYPE_INT64)
            out_i64(out, (int64_t)value);
        else
            out_u64(out, value);
        out_char(out, '"');
    }
}

/* MARK: Fields */

/* The bits of a double, in seconds. */
static uint64_t bits_of_seconds(uint64_t ns)
{
    double seconds = (double)ns / 1e9;
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    return bits;
}

static void put_number(struct protobuf *to, enum otlp_field field, uint64_t value)
{
    unsigned number = fields[field].number;
    if (fields[field].type == TYPE_FIXED64)
        protobuf_fixed64(to, number, value);
    else if (fields[field].type == TYPE_SECONDS)
        protobuf_fixed64(to, number, bits_of_seconds(value));
    else if (fields[field].type == TYPE_NUMBER)
        protobuf_number(to, number, value);
    else
        protobuf_present_number(to, number, value);
}

void otlp_number(struct otlp_message *m, enum otlp_field field, uint64_t value)
{
    if (m->protobuf) {
        put_number(&innermost(m)->bytes, field, value);
    } else {
        begin_value(m, field);
        put_json(&m->text, fields[field].type, value);
    }
}

void otlp_numbers(struct otlp_message *m, enum otlp_field field, const uint64_t *values,
                  size_t count)
{
    struct protobuf packed = {0};
    bool bounds = fields[field].type == TYPE_BOUNDS;
    if (!m->protobuf) {
        begin_value(m, field);
        for (size_t i = 0; i < count; i++) {
            out_char(&m->text, i ? ',' : '[');
            put_json(&m->text, fields[field].type, values[i]);
        }
        out_char(&m->text, ']');
        return;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = bounds ? bits_of_seconds(values[i]) : values[i];
        protobuf_raw(&packed, &bits, sizeof bits);
    }
    protobuf_part(&innermost(m)->bytes, fields[field].number, &packed);
    protobuf_free(&packed);
}

void otlp_text(struct otlp_message *m, enum otlp_field field, trail_string text)
{
    if (m->protobuf) {
        protobuf_text(&innermost(m)->bytes, fields[field].number, text);
        return;
    }
    begin_value(m, field);
    (void)json_put_text(&m->text, text);
}

/* The bytes of an ID are in the order of its hexadecimal digits. */
static void put_id(struct otlp_message *m, enum otlp_field field, const uint64_t *words,
                   size_t count)
{
    uint8_t bytes[16];
    if (m->protobuf) {
        for (size_t i = 0; i < 8 * count; i++)
            bytes[i] = (uint8_t)(words[i / 8] >> (56 - 8 * (i % 8)));
        protobuf_data(&innermost(m)->bytes, fields[field].number, bytes, 8 * count);
        return;
    }
    begin_value(m, field);
    out_char(&m->text, '"');
    for (size_t i = 0; i < count; i++)
        out_hex(&m->text, words[i], 16);
    out_char(&m->text, '"');
}

void otlp_trace_id(struct otlp_message *m, enum otlp_field field, uint64_t high, uint64_t low)
{
    put_id(m, field, (const uint64_t[]){high, low}, 2);
}

void otlp_span_id(struct otlp_message *m, enum otlp_field field, uint64_t id)
{
    put_id(m, field, &id, 1);
}

/* MARK: Messages */

void otlp_open(struct otlp_message *m, enum otlp_field field)
{
    if (!m->protobuf) {
        begin_value(m, field);
        out_char(&m->text, '{');
    }
    m->depth++;
    innermost(m)->field = field;
    innermost(m)->array = OTLP_FIELDS;
    innermost(m)->comma = false;
}

void otlp_close(struct otlp_message *m)
{
    struct otlp_level *level = innermost(m);
    if (!m->protobuf) {
        end_array(m);
        out_char(&m->text, '}');
    }
    m->depth--;
    if (m->protobuf)
        protobuf_part(&innermost(m)->bytes, fields[level->field].number, &level->bytes);
}

/* MARK: Attributes, the resource and the scope */

/* Begins an attribute; its value and end must follow. */
static void open_attribute(struct otlp_message *m, enum otlp_field list, const char *key)
{
    otlp_open(m, list);
    otlp_text(m, OTLP_KEY, text_from(key));
    otlp_open(m, OTLP_VALUE);
}

static void close_attribute(struct otlp_message *m)
{
    otlp_close(m);
    otlp_close(m);
}

void otlp_attribute_text(struct otlp_message *m, enum otlp_field list, const char *key,
                         trail_string text)
{
    open_attribute(m, list, key);
    otlp_text(m, OTLP_STRING_VALUE, text);
    close_attribute(m);
}

void otlp_attribute_number(struct otlp_message *m, enum otlp_field list, const char *key,
                           int64_t value)
{
    open_attribute(m, list, key);
    otlp_number(m, OTLP_INT_VALUE, (uint64_t)value);
    close_attribute(m);
}

void otlp_attribute_true(struct otlp_message *m, enum otlp_field list, const char *key)
{
    open_attribute(m, list, key);
    otlp_number(m, OTLP_BOOL_VALUE, true);
    close_attribute(m);
}

void otlp_resource(struct otlp_message *m, const trail_export_options *options)
{
    bool named = false;
    otlp_open(m, OTLP_RESOURCE);
    for (size_t i = 0; i < options->resource_count; i++) {
        const trail_export_attribute *item = &options->resource[i];
        otlp_attribute_text(m, OTLP_RESOURCE_ATTRIBUTES, item->key, text_from(item->value));
        named = named || strcmp(item->key, "service.name") == 0;
    }
    if (!named)
        otlp_attribute_text(m, OTLP_RESOURCE_ATTRIBUTES, "service.name", timeline_title(options));
    otlp_close(m);
}

void otlp_open_scope(struct otlp_message *m, enum otlp_field scope)
{
    otlp_open(m, scope);
    otlp_open(m, OTLP_SCOPE);
    otlp_text(m, OTLP_SCOPE_NAME, text_from("trail"));
    otlp_close(m);
}

/* MARK: Whole messages */

/* Begins the outermost message, which is not a field of another. */
static void begin(struct otlp_message *m)
{
    m->levels[0].array = OTLP_FIELDS;
    m->levels[0].comma = false;
    m->levels[0].bytes.size = 0;
    if (!m->protobuf)
        out_char(&m->text, '{');
}

bool otlp_message_init(struct otlp_message *m, bool protobuf)
{
    *m = (struct otlp_message){.protobuf = protobuf};
    if (!protobuf && !out_init(&m->text, collect, m))
        return false;
    begin(m);
    return true;
}

void otlp_message_free(struct otlp_message *m)
{
    for (size_t i = 0; i < OTLP_LEVELS; i++)
        protobuf_free(&m->levels[i].bytes);
    out_drop(&m->text);
}

bool otlp_write(struct otlp_message *m, struct out *to)
{
    while (m->depth > 0)
        otlp_close(m);
    if (!m->protobuf) {
        end_array(m);
        out_str(&m->text, "}\n");
        out_flush(&m->text);
    }
    const struct protobuf *whole = &m->levels[0].bytes;
    if (whole->failed)
        return false;
    out_bytes(to, whole->data, whole->size);
    out_flush(to);
    begin(m);
    return true;
}
