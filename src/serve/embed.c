/* Writes the viewer and a trace as one file. */
#include "serve/embed.h"

#include <stdlib.h>
#include <zlib.h>

#include "base/error.h"
#include "base/out.h"
#include "read/reader.h"
#include "read/source.h"
#include "report/html.h"
#include "serve/assets.h"

/* PIECE: compressed bytes per element, a multiple of 3 for base64. TAKEN: bytes read at once. */
enum { PIECE = 3 << 18, TAKEN = 128 << 10 };

/* MARK: Elements */

static void put_base64(struct out *out, const uint8_t *data, size_t size)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t bits = (uint32_t)data[i] << 16 | (left > 1 ? (uint32_t)data[i + 1] << 8 : 0) |
                        (left > 2 ? data[i + 2] : 0);
        char group[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                         left > 1 ? digits[bits >> 6 & 63] : '=',
                         left > 2 ? digits[bits & 63] : '='};
        out_bytes(out, group, sizeof group);
    }
}

/* `name` NULL: without a name. */
static void put_piece(struct out *out, const char *part, const char *name, const uint8_t *data,
                      size_t size)
{
    out_format(out, "<script type=\"application/gzip\" data-part=\"%s\"", part);
    if (name) {
        out_str(out, " data-name=\"");
        html_word(out, name);
        out_char(out, '"');
    }
    out_char(out, '>');
    put_base64(out, data, size);
    out_str(out, "</script>\n");
}

/* MARK: The trace */

struct packer {
    const struct embed *embed;
    struct out *out;
    z_stream stream;
    int64_t taken;
    uint8_t piece[PIECE], input[TAKEN];
};

static void put_full(struct packer *packer)
{
    put_piece(packer->out, "trace", packer->embed->name, packer->piece,
              PIECE - packer->stream.avail_out);
    packer->stream.next_out = packer->piece;
    packer->stream.avail_out = PIECE;
}

/* Compresses the input buffer; `how` is zlib's flush mode. */
static void pack(struct packer *packer, int how)
{
    int result;
    do {
        result = deflate(&packer->stream, how);
        if (packer->stream.avail_out == 0)
            put_full(packer);
    } while (how == Z_FINISH ? result != Z_STREAM_END : packer->stream.avail_in > 0);
    if (how == Z_FINISH && packer->stream.avail_out < PIECE)
        put_full(packer);
}

static int check_size(const struct packer *packer, trail_error *err)
{
    if (packer->taken <= EMBED_MOST)
        return 0;
    return error_set(err, TRAIL_USAGE,
                     "a file can hold at most %d MB: take a part of the trace out with 'trail "
                     "convert --from=TIME --to=TIME'",
                     (int)(EMBED_MOST >> 20));
}

static int pack_all(struct packer *packer, trail_error *err)
{
    ssize_t n;
    while ((n = source_read(packer->embed->source, packer->input, TAKEN, err)) > 0) {
        packer->taken += n;
        if (check_size(packer, err) < 0 || packer->out->failed)
            return -1;
        packer->stream.next_in = packer->input;
        packer->stream.avail_in = (uInt)n;
        pack(packer, Z_NO_FLUSH);
    }
    if (n == 0)
        pack(packer, Z_FINISH);
    return (int)n;
}

static int put_trace(const struct embed *embed, struct out *out, trail_error *err)
{
    struct packer *packer = malloc(sizeof *packer);
    int result = -1;
    if (!packer)
        return error_no_memory(err);
    packer->embed = embed;
    packer->out = out;
    packer->taken = 0;
    packer->stream =
        (z_stream){.next_out = packer->piece, .avail_out = PIECE, .next_in = packer->input};
    if (deflateInit2(&packer->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) == Z_OK) {
        result = pack_all(packer, err);
        (void)deflateEnd(&packer->stream);
    } else {
        (void)error_no_memory(err);
    }
    free(packer);
    return result;
}

/* MARK: The document */

static const struct asset *asset_of(const char *name)
{
    const struct asset *asset = assets_embedded;
    while (asset->name && strcmp(asset->name, name) != 0)
        asset++;
    return asset;
}

static void put_asset(struct out *out, const char *begin, const char *name, const char *end)
{
    const struct asset *asset = asset_of(name);
    out_str(out, begin);
    out_bytes(out, asset->data, asset->size);
    out_str(out, end);
}

/* Everything goes into the head, because the page replaces its body. */
static void put_head(const struct embed *embed, struct out *out)
{
    out_str(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"");
    out_str(out, assets_policy);
    out_str(out, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    html_word(out, embed->title);
    out_str(out, "</title>\n<link rel=\"icon\" href=\"data:,\">\n");
    put_asset(out, "<style>", "app.css", "</style>\n");
}

static void put_packed(struct out *out, const char *part, const char *name)
{
    const struct asset *asset = asset_of(name);
    put_piece(out, part, NULL, asset->gzip, asset->gzip_size);
}

int embed_write(const struct embed *embed, const trail_sink *sink, trail_error *err)
{
    struct out out;
    /* Checks only that it begins like a trace; the page reports any other error. */
    if (reader_peek_version(embed->source, err) < 0)
        return -1;
    if (!out_init(&out, sink->write, sink->context))
        return error_no_memory(err);
    put_head(embed, &out);
    put_packed(&out, "worker", "worker.js");
    put_packed(&out, "wasm", "trail.wasm");
    if (put_trace(embed, &out, err) < 0 && !out.failed) {
        out_drop(&out);
        return -1;
    }
    put_asset(&out, "<script type=\"module\">", "app.js",
              "</script>\n</head>\n<body></body>\n</html>\n");
    return out_finish(&out, err);
}
