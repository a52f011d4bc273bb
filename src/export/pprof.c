/*
 * Profiles in pprof's format: one `Profile` message, gzipped. Field numbers as defined in
 * github.com/google/pprof/proto/profile.proto:
 *
 *     Profile   1 sample_type  2 sample  4 location  5 function  6 string_table
 *               11 period_type  12 period
 *     ValueType 1 type  2 unit                (indices into the string table, whose first is "")
 *     Sample    1 location_id, leaf first  2 value
 *     Location  1 id  3 address  4 line = { 1 function_id  2 line }
 *     Function  1 id  2 name  3 system_name  4 filename
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/error.h"
#include "base/intern.h"
#include "base/text.h"
#include "export/profile.h"
#include "export/protobuf.h"

struct pprof {
    const trail_analysis *analysis;
    const trail_profile *profile;
    struct protobuf message, part, inner;
    struct intern strings, functions;
    uint8_t *used; /* by frame, the nameless one last: whether a sample refers to it */
    bool failed;
};

/* Returns the index of a text in the string table. */
static uint64_t put_string(struct pprof *p, trail_string text)
{
    bool fresh;
    uint64_t number = intern_put(&p->strings, text.data, text.size, &fresh);
    if (fresh)
        protobuf_text(&p->message, 6, text);
    p->failed |= number == 0;
    return number ? number - 1 : 0;
}

static uint64_t put_word(struct pprof *p, const char *word)
{
    return put_string(p, text_from(word));
}

static void put_value_type(struct pprof *p, unsigned field, const char *type, const char *unit)
{
    uint64_t first = put_word(p, type), second = put_word(p, unit);
    protobuf_number(&p->part, 1, first);
    protobuf_number(&p->part, 2, second);
    protobuf_part(&p->message, field, &p->part);
}

/* Returns the number of a frame's function, which is written on first use. */
static uint64_t put_function(struct pprof *p, const trail_profile_frame *frame)
{
    bool fresh;
    uint64_t key[2] = {
        put_string(p, trail_analysis_text(p->analysis, frame->function)),
        put_string(p, trail_analysis_text(p->analysis, frame->file)),
    };
    uint64_t number = intern_put(&p->functions, key, sizeof key, &fresh);
    p->failed |= number == 0;
    if (!fresh)
        return number;
    protobuf_number(&p->part, 1, number);
    protobuf_number(&p->part, 2, key[0]);
    protobuf_number(&p->part, 3, key[0]);
    protobuf_number(&p->part, 4, key[1]);
    protobuf_part(&p->message, 5, &p->part);
    return number;
}

static void put_location(struct pprof *p, uint32_t index)
{
    static const trail_profile_frame nameless = {0};
    const trail_profile_frame *frame =
        index < p->profile->frame_count ? &p->profile->frames[index] : &nameless;
    uint64_t function = put_function(p, frame);
    protobuf_number(&p->inner, 1, function);
    protobuf_number(&p->inner, 2, frame->line);
    protobuf_number(&p->part, 1, (uint64_t)index + 1);
    protobuf_number(&p->part, 3, frame->pc);
    protobuf_part(&p->part, 4, &p->inner);
    protobuf_part(&p->message, 4, &p->part);
}

static void refer_to_frame(struct pprof *p, size_t index)
{
    protobuf_varint(&p->inner, (uint64_t)index + 1);
    p->used[index] = 1;
}

static void put_sample(struct pprof *p, const trail_profile_sample *sample, bool times)
{
    for (uint32_t i = 0; i < sample->frame_count; i++)
        refer_to_frame(p, sample->frames[i]);
    if (sample->nameless)
        refer_to_frame(p, p->profile->frame_count);
    protobuf_part(&p->part, 1, &p->inner);
    protobuf_varint(&p->inner, sample->count);
    if (times)
        protobuf_varint(&p->inner, (uint64_t)sample->ns);
    protobuf_part(&p->part, 2, &p->inner);
    protobuf_part(&p->message, 2, &p->part);
}

static void build(struct pprof *p)
{
    struct profile_words words = profile_words(p->profile->type);
    (void)put_word(p, "");
    put_value_type(p, 1, words.count, "count");
    if (words.time)
        put_value_type(p, 1, words.time, "nanoseconds");
    for (size_t i = 0; i < p->profile->sample_count; i++)
        put_sample(p, &p->profile->samples[i], words.time != NULL);
    for (size_t i = 0; i <= p->profile->frame_count; i++)
        if (p->used[i])
            put_location(p, (uint32_t)i);
    put_value_type(p, 11, "trace", "count");
    protobuf_number(&p->message, 12, 1);
}

/* Returns 0, or -1 with *err set. */
static int write_gzip(const struct protobuf *message, const trail_sink *sink, trail_error *err)
{
    z_stream stream = {.next_in = message->data};
    uint8_t room[16384];
    size_t left = message->size;
    int result = Z_OK;
    /* 15 + 16: the largest window, with a gzip header. */
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return error_no_memory(err);
    while (result == Z_OK) {
        if (stream.avail_in == 0) {
            stream.avail_in = left > 1U << 30 ? 1U << 30 : (uInt)left;
            left -= stream.avail_in;
        }
        stream.next_out = room;
        stream.avail_out = sizeof room;
        result = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
        size_t made = sizeof room - stream.avail_out;
        if (made > 0 && !sink->write(sink->context, room, made)) {
            (void)deflateEnd(&stream);
            return error_set(err, TRAIL_IO, "cannot write the profile");
        }
    }
    (void)deflateEnd(&stream);
    return result == Z_STREAM_END
               ? 0
               : error_set(err, TRAIL_NO_MEMORY, "the profile cannot be compressed");
}

int profile_write_pprof(const trail_analysis *analysis, const trail_profile *profile,
                        const trail_sink *sink, trail_error *err)
{
    struct pprof p = {.analysis = analysis, .profile = profile};
    int result = -1;
    p.used = calloc(profile->frame_count + 1, 1);
    if (p.used)
        build(&p);
    if (!p.used || p.failed || p.message.failed || p.part.failed || p.inner.failed)
        (void)error_no_memory(err);
    else
        result = write_gzip(&p.message, sink, err);
    protobuf_free(&p.message);
    protobuf_free(&p.part);
    protobuf_free(&p.inner);
    intern_free(&p.strings);
    intern_free(&p.functions);
    free(p.used);
    return result;
}
