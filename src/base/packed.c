/* See packed.h. */
#include "base/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define ROOM ((size_t)64 << 10)

enum step { STEP_MORE, STEP_FLUSH, STEP_END };

struct packer {
    const char *name_end;
    void *(*begin)(void); /* NULL: out of memory */
    bool (*put)(struct packed *packed, const void *data, size_t size, enum step step);
    void (*end)(void *state);
};

static bool pass_on(const struct packed *packed, const void *data, size_t size)
{
    return size == 0 || packed->to.write(packed->to.context, data, size);
}

static bool fail_packing(void)
{
    errno = ENOMEM;
    return false;
}

/* MARK: zstd */

static void *zstd_begin(void)
{
    return ZSTD_createCCtx();
}

static bool zstd_put(struct packed *packed, const void *data, size_t size, enum step step)
{
    static const ZSTD_EndDirective directives[] = {ZSTD_e_continue, ZSTD_e_flush, ZSTD_e_end};
    ZSTD_inBuffer in = {data, size, 0};
    char room[ROOM];
    size_t left;
    do {
        ZSTD_outBuffer out = {room, sizeof room, 0};
        left = ZSTD_compressStream2(packed->state, &out, &in, directives[step]);
        if (ZSTD_isError(left))
            return fail_packing();
        if (!pass_on(packed, room, out.pos))
            return false;
    } while (in.pos < in.size || (step != STEP_MORE && left > 0));
    return true;
}

static void zstd_end(void *state)
{
    (void)ZSTD_freeCCtx(state);
}

/* MARK: gzip */

static void *gzip_begin(void)
{
    z_stream *z = calloc(1, sizeof *z);
    if (z && deflateInit2(z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, /* 16: gzip */
                          Z_DEFAULT_STRATEGY) != Z_OK) {
        free(z);
        z = NULL;
    }
    return z;
}

/* Compresses at most UINT_MAX bytes. */
static bool gzip_put_part(struct packed *packed, const void *data, size_t size, enum step step)
{
    static const int flushes[] = {Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FINISH};
    z_stream *z = packed->state;
    unsigned char room[ROOM];
    z->next_in = (Bytef *)(uintptr_t)data;
    z->avail_in = (uInt)size;
    do {
        z->next_out = room;
        z->avail_out = sizeof room;
        if (deflate(z, flushes[step]) == Z_STREAM_ERROR)
            return fail_packing();
        if (!pass_on(packed, room, sizeof room - z->avail_out))
            return false;
    } while (z->avail_out == 0);
    return true;
}

static bool gzip_put(struct packed *packed, const void *data, size_t size, enum step step)
{
    const size_t most = (size_t)1 << 30;
    const char *at = data;
    for (; size > most; at += most, size -= most) {
        if (!gzip_put_part(packed, at, most, STEP_MORE))
            return false;
    }
    return gzip_put_part(packed, at, size, step);
}

static void gzip_end(void *state)
{
    (void)deflateEnd(state);
    free(state);
}

/* MARK: All */

static const struct packer packers[] = {
    {".zst", zstd_begin, zstd_put, zstd_end},
    {".gz", gzip_begin, gzip_put, gzip_end},
};

static const struct packer *find_packer(const char *path)
{
    size_t size = strlen(path);
    for (size_t i = 0; i < sizeof packers / sizeof *packers; i++) {
        size_t n = strlen(packers[i].name_end);
        if (size > n && strcmp(path + size - n, packers[i].name_end) == 0)
            return &packers[i];
    }
    return NULL;
}

bool packed_open(struct packed *packed, const char *path, trail_sink to)
{
    *packed = (struct packed){.to = to, .packer = find_packer(path)};
    if (!packed->packer)
        return true;
    packed->state = packed->packer->begin();
    return packed->state || fail_packing();
}

static bool write_packed(void *context, const void *data, size_t size)
{
    struct packed *packed = context;
    return packed->packer ? packed->packer->put(packed, data, size, STEP_MORE)
                          : pass_on(packed, data, size);
}

trail_sink packed_sink(struct packed *packed)
{
    return (trail_sink){.write = write_packed, .context = packed};
}

bool packed_flush(struct packed *packed)
{
    return !packed->packer || packed->packer->put(packed, NULL, 0, STEP_FLUSH);
}

bool packed_close(struct packed *packed)
{
    bool good = true;
    if (packed->packer) {
        good = packed->packer->put(packed, NULL, 0, STEP_END);
        packed->packer->end(packed->state);
    }
    *packed = (struct packed){.to = packed->to};
    return good;
}
