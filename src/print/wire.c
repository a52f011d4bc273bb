/*
 * The text form of records (§5.6, docs/wire-text.md): one line per record, `Name arg=value ...`,
 * its frames on separate lines, its data in quotes.
 *
 * Names are copied from `shapes`, which is filled when a type first occurs: each copy has a fixed
 * number of bytes, of which the first `size` count. This, and writing numbers by pairs of digits,
 * gives about 0.6 GB of text per second.
 */
#include <trail/export.h>

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/out.h"
#include "base/quote.h"
#include "read/records.h"

#define LABEL_SIZE 31
#define MAX_ARGS   7
#define TYPES      256
/* of a line without frames and data */
#define LINE_ROOM  ((size_t)(1 + MAX_ARGS) * (LABEL_SIZE + U64_DIGITS))
#define FRAME_ROOM ((size_t)4 * (LABEL_SIZE + U64_DIGITS))

struct label {
    uint8_t size; /* 0: not created yet */
    char text[LABEL_SIZE];
};

struct shape {
    struct label name;
    struct label arg[MAX_ARGS]; /* " arg=" */
};

struct printer {
    struct out out;
    struct shape shapes[TYPES];
};

static void label_set(struct label *label, const char *before, const char *name, const char *after)
{
    char *at = label->text;
    for (const char *parts[] = {before, name, after}, **part = parts; part < parts + 3; part++)
        for (const char *c = *part; *c && at < label->text + LABEL_SIZE; c++)
            *at++ = *c;
    label->size = (uint8_t)(at - label->text);
}

static char *label_put(char *at, const struct label *label)
{
    memcpy(at, label->text, LABEL_SIZE);
    return at + label->size;
}

static void shape_make(struct shape *shape, const trail_record *record)
{
    label_set(&shape->name, "", record->name, "");
    for (unsigned i = 0; i < record->args && i < MAX_ARGS; i++)
        label_set(&shape->arg[i], " ", record->arg_name[i], "=");
}

static void print_frames(struct out *out, const trail_record *record)
{
    static const struct label fields[] = {
        {5, "\n\tpc="}, {6, " func="}, {6, " file="}, {6, " line="}};
    const uint64_t *number = record->frame;
    for (unsigned i = 0; i < record->frames; i++) {
        out_room(out, FRAME_ROOM);
        char *at = out->at;
        for (unsigned field = 0; field < record->frame_fields && field < 4; field++)
            at = u64_put(label_put(at, &fields[field]), *number++);
        out->at = at;
    }
}

static void print_record(struct printer *printer, const trail_record *record)
{
    struct out *out = &printer->out;
    struct shape *shape = &printer->shapes[record->type % TYPES];
    if (__builtin_expect(shape->name.size == 0, 0))
        shape_make(shape, record);
    out_room(out, LINE_ROOM);
    char *at = label_put(out->at, &shape->name);
    for (unsigned i = 0; i < record->args; i++)
        at = u64_put(label_put(at, &shape->arg[i]), record->arg[i]);
    out->at = at;
    if (record->frames > 0)
        print_frames(out, record);
    if (record->has_data && record->data.size > 0) { /* Go prints nothing for empty data */
        out_str(out, "\n\tdata=");
        out_quote(out, record->data.data, record->data.size);
    }
    out_char(out, '\n');
}

static void flush(void *context)
{
    out_flush(context);
}

static int print_all(struct printer *printer, trail_records *records, trail_error *err)
{
    const trail_record *record;
    int version = trail_records_version(records), result;
    records_before_wait(records, flush, &printer->out);
    if (!trail_version_is_v2(version))
        out_format(&printer->out, "Trace Go1.%d\n", version);
    while ((result = trail_records_next(records, &record)) > 0 && !printer->out.failed)
        print_record(printer, record);
    if (result < 0 && err)
        *err = *trail_records_error(records);
    return result < 0 ? -1 : 0;
}

int trail_print_wire(trail_source *source, const trail_sink *sink, trail_error *err)
{
    trail_records *records = trail_records_open(source, err);
    if (!records)
        return -1;
    int result = -1;
    struct printer *printer = calloc(1, sizeof *printer);
    if (!printer || !out_init(&printer->out, sink->write, sink->context)) {
        error_no_memory(err);
        goto out;
    }
    trail_error unwritten;
    result = print_all(printer, records, err);
    if (out_finish(&printer->out, &unwritten) < 0) {
        if (err)
            *err = unwritten;
        result = -1;
    }
out:
    free(printer);
    trail_records_close(records);
    return result;
}
