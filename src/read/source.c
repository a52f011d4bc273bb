/*
 * Source: three kinds of raw bytes (descriptor, memory, callback) below four decodings (plain,
 * gzip, zstd, xz).
 *
 * Raw bytes that were fetched but not used yet are [at, end): in a buffer of the source, or in the
 * caller's memory. A plain source returns them, a compressed one passes them to its codec. Peeked
 * bytes are stored in `peeked` and returned first.
 *
 * Invariant: `delivered` is the number of uncompressed bytes that the user has received. For a
 * plain file or memory it is therefore the current position, whatever was fetched or peeked.
 *
 * No file is mapped: another process may truncate it at any time, and an access to the mapping
 * would then raise SIGBUS. Bytes are copied before they are used, so that they cannot change.
 */
#include "read/source.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifndef TRAIL_PLAIN_ONLY /* set in a browser, which decompresses itself */
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>
#endif

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "read/headless.h"
#include "read/printed.h"
#include "read/unwrap.h"
#include "wire/wire.h"

#define INPUT_SIZE        ((size_t)256 << 10) /* room for two batches after the rest of one */
#define HASH_SIZE         ((size_t)128 << 10)
#define PEEK_MAX          512 /* a header of tar */
#define WRAPPINGS         4   /* at most, one inside another */
#define WHOLE_AT_FIRST    ((size_t)1 << 20)
#define XZ_MEMORY         ((uint64_t)256 << 20) /* `xz -9` needs a quarter */
#define INFLATED_FREE     ((uint64_t)64 << 20)  /* allowed whatever the ratio */
#define ZSTD_BLOCK_HEADER 3                     /* bytes */
#define ZEROS_MOST        (UINT64_C(1) << 30)   /* accepted after compressed data */

struct codec {
    const char *name, *name_followed; /* by bytes of another kind */
    bool (*matches)(const uint8_t *raw, size_t size);
    bool (*init)(trail_source *source);
    /* Consumes some of [at, end), writes up to `size` bytes; -1 with source->error on an error. */
    ssize_t (*decode)(trail_source *source, uint8_t *buf, size_t size);
    void (*fini)(trail_source *source);
};

struct trail_source {
    /* Underlying: a descriptor, a callback, or (neither) memory. */
    int fd; /* -1 if none */
    bool owns_fd;
    bool regular; /* a file that can be read at any offset */
    trail_read_fn read;
    void *context;
    const uint8_t *memory;
    int64_t start; /* regular: offset in the file where the source begins */
    int64_t size;  /* from `start` on; -1: unknown */
    char *name;    /* for messages */

    const uint8_t *at, *end;
    uint8_t *input; /* buffer of [at, end), unless memory */
    int64_t taken;  /* raw bytes fetched, up to `end` */
    int64_t shown;  /* for trail_source_position, which another thread may call */
    bool ended;     /* no raw bytes follow `end` */

    const struct codec *codec; /* NULL: plain */
#ifndef TRAIL_PLAIN_ONLY
    union {
        z_stream gzip;
        ZSTD_DStream *zstd;
        lzma_stream xz;
    } state;
    size_t zstd_wanted; /* bytes that the library needs next; 0: unknown */
#endif
    bool between;                          /* the compressed data may end here */
    bool followed;                         /* by bytes of another kind, which are not read */
    bool strict;                           /* that is an error */
    bool pending;                          /* the codec may have more output without more input */
    uint64_t inflated;                     /* bytes produced by the codec */
    uint64_t inflated_max, inflated_ratio; /* their limits, see trail_source_limit_inflated */

    uint8_t peeked[PEEK_MAX];
    size_t peeked_at, peeked_end;
    int64_t delivered;

    /* The source in another form that `read` reads (unwrap.h); owned. NULL: none. */
    trail_source *inner;
    struct unwrap *unwrap;
    char form[UNWRAP_NAME_SIZE];
    bool headless; /* the trace in `inner` has no header */

    uint8_t *whole;
    trail_error error; /* the first error, returned again by later calls */
};

static ssize_t fail_io(trail_source *s, int reason)
{
    if (reason == EBADMSG && s->unwrap)
        return error_set(&s->error, TRAIL_CORRUPT,
                         "the %s data are damaged: they do not match their checksum or cannot be "
                         "decompressed",
                         s->form);
    if (reason == ENXIO && s->unwrap)
        return error_set(&s->error, TRAIL_NOT_A_TRACE,
                         "not a Go execution trace: it has only zero bytes");
    if (reason == EFBIG && s->unwrap)
        return error_set(&s->error, TRAIL_NOT_A_TRACE,
                         "not a Go execution trace: it begins with more than 1 GiB of zero bytes");
    if (reason == ENOMSG && s->unwrap)
        return error_set(&s->error, TRAIL_NOT_A_TRACE, "no file in the %s archive is a trace",
                         s->form);
    return error_set(&s->error, TRAIL_IO, "cannot read %s: %s", s->name, strerror(reason));
}

/* MARK: Raw bytes */

static ssize_t fd_read(int fd, void *buf, size_t size)
{
    for (;;) {
        ssize_t n = read(fd, buf, size);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK))
            return n;
        if (errno != EINTR && poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1) < 0 &&
            errno != EINTR)
            return -1;
    }
}

/* Whether a regular file is shorter than when it was opened. */
static bool is_cut(const trail_source *s)
{
    struct stat st;
    return s->regular && s->taken < s->size && fstat(s->fd, &st) == 0 &&
           st.st_size < s->start + s->size;
}

static ssize_t fail_cut(trail_error *err, const trail_source *s, int64_t at)
{
    error_set(err, TRAIL_IO, "cannot read %s: it became shorter while it was being read", s->name);
    if (err && !s->codec)
        err->offset = at;
    return -1;
}

static int limit_unwrapped(trail_source *s);

/* Reads from below, when [at, end) is empty. */
static ssize_t raw_read(trail_source *s, void *buf, size_t size)
{
    if (s->ended)
        return 0;
    if (size > SSIZE_MAX)
        size = SSIZE_MAX;
    ssize_t n = s->read ? s->read(s->context, buf, size) : fd_read(s->fd, buf, size);
    if (n < 0 && s->inner && s->inner->error.code != TRAIL_OK) {
        s->error = s->inner->error;
        return -1;
    }
    if (n < 0)
        return fail_io(s, errno);
    if ((size_t)n > size)
        return error_set(&s->error, TRAIL_USAGE, "the read callback returned more than fits");
    if (n == 0 && is_cut(s))
        return fail_cut(&s->error, s, s->taken);
    s->ended = n == 0;
    s->taken += n;
    return limit_unwrapped(s) < 0 ? -1 : n;
}

/* Fetches raw bytes into the buffer when [at, end) is empty. Returns their number, 0 at the end. */
static ssize_t raw_fetch(trail_source *s)
{
    ssize_t n = raw_read(s, s->input, INPUT_SIZE);
    if (n > 0) {
        s->at = s->input;
        s->end = s->input + n;
    }
    return n;
}

static size_t raw_take(trail_source *s, uint8_t *buf, size_t size)
{
    size_t n = (size_t)(s->end - s->at);
    if (n > size)
        n = size;
    if (n > 0)
        memcpy(buf, s->at, n);
    s->at += n;
    return n;
}

/* Returns the offset of `at` in the underlying data. */
static int64_t raw_position(const trail_source *s)
{
    return s->taken - (s->end - s->at);
}

static void show_position(trail_source *s)
{
    __atomic_store_n(&s->shown, raw_position(s), __ATOMIC_RELAXED);
}

/* MARK: Codecs */

/* Returns the `decoded` bytes before the damage, if any: the next read fails. */
static ssize_t fail_codec(trail_source *s, ssize_t decoded, const char *reason)
{
    error_set(&s->error, TRAIL_CORRUPT, "damaged %s data near compressed offset %lld: %s",
              s->codec->name, (long long)raw_position(s), reason);
    s->error.offset = s->delivered + decoded;
    return decoded > 0 ? decoded : -1;
}

static ssize_t fail_truncated(trail_source *s)
{
    error_set(&s->error, TRAIL_TRUNCATED, "the %s data end too early, after %lld compressed bytes",
              s->codec->name, (long long)s->taken);
    s->error.offset = s->delivered;
    return -1;
}

#ifdef TRAIL_PLAIN_ONLY
static const struct codec codecs[1];
enum { CODECS = 0 };
#else

static bool gzip_matches(const uint8_t *raw, size_t size)
{
    return size >= 2 && raw[0] == 0x1f && raw[1] == 0x8b;
}

static bool gzip_init(trail_source *s)
{
    return inflateInit2(&s->state.gzip, 16 + MAX_WBITS) == Z_OK; /* 16: gzip framing only */
}

static ssize_t gzip_decode(trail_source *s, uint8_t *buf, size_t size)
{
    z_stream *z = &s->state.gzip;
    if (s->between)
        (void)inflateReset(z);
    size_t input = (size_t)(s->end - s->at);
    z->next_in = (Bytef *)(uintptr_t)s->at;
    z->avail_in = input > UINT_MAX ? UINT_MAX : (uInt)input;
    z->next_out = buf;
    z->avail_out = size > UINT_MAX ? UINT_MAX : (uInt)size;
    int result = inflate(z, Z_NO_FLUSH);
    s->at = z->next_in;
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        return fail_codec(s, z->next_out - buf, z->msg ? z->msg : zError(result));
    s->between = result == Z_STREAM_END;
    s->pending = z->avail_out == 0 && !s->between;
    return z->next_out - buf;
}

static void gzip_fini(trail_source *s)
{
    (void)inflateEnd(&s->state.gzip);
}

static bool zstd_matches(const uint8_t *raw, size_t size)
{
    static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const uint8_t skippable[] = {0x2a, 0x4d, 0x18}; /* after 0x50 to 0x5f */
    return size >= 4 &&
           (memcmp(raw, frame, 4) == 0 || (raw[0] >> 4 == 5 && memcmp(raw + 1, skippable, 3) == 0));
}

static bool zstd_init(trail_source *s)
{
    s->state.zstd = ZSTD_createDStream();
    return s->state.zstd != NULL;
}

/*
 * Returns how much input takes the library at most to the end of a block: when it fails it does not
 * report how many bytes the same call produced before.
 */
static size_t zstd_step(const trail_source *s)
{
    size_t input = (size_t)(s->end - s->at), wanted = s->zstd_wanted;
    if (s->pending)
        return 0;
    /* It prefers to have the header of the next block with a block. */
    wanted = wanted > ZSTD_BLOCK_HEADER ? wanted - ZSTD_BLOCK_HEADER : wanted > 0 ? wanted : 1;
    return input < wanted ? input : wanted;
}

/* The library handles concatenated and skippable frames. */
static ssize_t zstd_decode(trail_source *s, uint8_t *buf, size_t size)
{
    ZSTD_inBuffer in = {.src = s->at, .size = zstd_step(s)};
    ZSTD_outBuffer out = {.dst = buf, .size = size};
    size_t result = ZSTD_decompressStream(s->state.zstd, &out, &in);
    s->at += in.pos;
    if (ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge)
        return fail_codec(s, 0,
                          "it needs a window of more than 128 MiB; decompress it first, with "
                          "zstd -d --long=31");
    if (ZSTD_isError(result))
        return fail_codec(s, 0, ZSTD_getErrorName(result));
    s->zstd_wanted = result;
    s->between = result == 0;
    s->pending = out.pos == size && !s->between;
    return (ssize_t)out.pos;
}

static void zstd_fini(trail_source *s)
{
    (void)ZSTD_freeDStream(s->state.zstd);
}

static bool xz_matches(const uint8_t *raw, size_t size)
{
    static const uint8_t magic[] = {0xfd, '7', 'z', 'X'}; /* then 'Z' and 0 */
    return size >= sizeof magic && memcmp(raw, magic, sizeof magic) == 0;
}

/* Also begins another stream with the memory of the last one. */
static bool xz_init(trail_source *s)
{
    return lzma_stream_decoder(&s->state.xz, XZ_MEMORY, 0) == LZMA_OK;
}

static const char *xz_reason(lzma_ret result)
{
    switch (result) {
    case LZMA_MEM_ERROR:
        return "out of memory";
    case LZMA_MEMLIMIT_ERROR:
        return "it needs more than 256 MiB of memory; decompress it first, with xz -d";
    case LZMA_FORMAT_ERROR:
        return "the data after a stream are not another stream";
    case LZMA_OPTIONS_ERROR:
        return "it uses options that the library does not know";
    default:
        return "the data are inconsistent";
    }
}

static ssize_t xz_decode(trail_source *s, uint8_t *buf, size_t size)
{
    lzma_stream *z = &s->state.xz;
    if (s->between && !xz_init(s))
        return fail_codec(s, 0, xz_reason(LZMA_MEM_ERROR));
    z->next_in = s->at;
    z->avail_in = (size_t)(s->end - s->at);
    z->next_out = buf;
    z->avail_out = size;
    lzma_ret result = lzma_code(z, LZMA_RUN);
    s->at = z->next_in;
    if (result != LZMA_OK && result != LZMA_STREAM_END && result != LZMA_BUF_ERROR)
        return fail_codec(s, z->next_out - buf, xz_reason(result));
    s->between = result == LZMA_STREAM_END;
    s->pending = z->avail_out == 0 && !s->between;
    return z->next_out - buf;
}

static void xz_fini(trail_source *s)
{
    lzma_end(&s->state.xz);
}

static const struct codec codecs[] = {
    {"gzip", "gzip, followed by other bytes", gzip_matches, gzip_init, gzip_decode, gzip_fini},
    {"zstd", "zstd, followed by other bytes", zstd_matches, zstd_init, zstd_decode, zstd_fini},
    {"xz", "xz, followed by other bytes", xz_matches, xz_init, xz_decode, xz_fini},
};
enum { CODECS = sizeof codecs / sizeof *codecs };
#endif

/* Returns the codec for data that begins with these bytes; NULL if it is not compressed. */
static const struct codec *codec_of(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < CODECS; i++)
        if (codecs[i].matches(data, size))
            return &codecs[i];
    return NULL;
}

/* MARK: Limits */

static int fail_limit(trail_source *s, const char *form, uint64_t raw, const char *limit,
                      uint64_t value)
{
    error_set(&s->error, TRAIL_LIMIT,
              "%lld bytes of %s data give more than %llu bytes when decompressed, which the limit "
              "%s does not allow",
              (long long)raw, form, (unsigned long long)value, limit);
    s->error.offset = s->delivered;
    return -1;
}

/* Returns -1 if decompressing `raw` bytes of this form into `size` bytes exceeds a limit. */
static int limit(trail_source *s, const char *form, uint64_t raw, uint64_t size)
{
    uint64_t most;
    if (size > s->inflated_max)
        return fail_limit(s, form, raw, "inflated_max", s->inflated_max);
    if (__builtin_mul_overflow(raw, s->inflated_ratio, &most))
        return 0;
    most = most < INFLATED_FREE ? INFLATED_FREE : most;
    return size > most ? fail_limit(s, form, raw, "inflated_ratio", most) : 0;
}

/* Counts bytes produced by the codec. Returns -1 if they exceed a limit. */
static int count_inflated(trail_source *s, uint64_t size)
{
    s->inflated += size;
    return limit(s, s->codec->name, (uint64_t)raw_position(s), s->inflated);
}

/* A zip archive is compressed too, and a hex dump may repeat a line. */
static int limit_unwrapped(trail_source *s)
{
    return s->unwrap ? limit(s, s->form, (uint64_t)s->inner->delivered, (uint64_t)s->taken) : 0;
}

int source_limit(trail_source *s, const char *form, uint64_t raw, uint64_t size, trail_error *err)
{
    if (limit(s, form, raw, size) == 0)
        return 0;
    *err = s->error;
    return -1;
}

void trail_source_limit_inflated(trail_source *s, uint64_t max_bytes, uint64_t max_ratio)
{
    if (s->inner)
        trail_source_limit_inflated(s->inner, max_bytes, max_ratio);
    s->inflated_max = max_bytes ? max_bytes : s->inflated_max;
    s->inflated_ratio = max_ratio ? max_ratio : s->inflated_ratio;
}

/* Adds raw bytes after those in the buffer. Returns their number, 0 at the end. */
static ssize_t raw_add(trail_source *s)
{
    size_t have = (size_t)(s->end - s->at);
    if (s->memory || have == 0)
        return have == 0 ? raw_fetch(s) : 0;
    memmove(s->input, s->at, have);
    ssize_t n = raw_read(s, s->input + have, INPUT_SIZE - have);
    s->at = s->input;
    s->end = s->input + have + (n > 0 ? n : 0);
    return n;
}

/*
 * Compressed data may follow each other, with zero bytes in between; zeros also fill the last block
 * of a tape or disk. Returns 1 if more follow, 0 if not, -1 on an error.
 */
static int codec_goes_on(trail_source *s)
{
    ssize_t more = 1;
    uint64_t zeros = 0;
    for (;;) {
        for (; s->at < s->end && *s->at == 0; s->at++)
            zeros++;
        if (more <= 0 || s->end - s->at >= WIRE_HEADER_SIZE || zeros > ZEROS_MOST)
            break;
        more = raw_add(s);
    }
    if (more < 0)
        return -1;
    const size_t size = (size_t)(s->end - s->at);
    s->followed = zeros > ZEROS_MOST || (size > 0 && !s->codec->matches(s->at, size));
    return s->at < s->end && !s->followed;
}

/* What follows the compressed data may be left out unless it is part of a trace, too. */
static ssize_t end_followed(trail_source *s)
{
    const size_t size = (size_t)(s->end - s->at);
    if (s->strict || codec_of(s->at, size) ||
        (size >= WIRE_HEADER_SIZE && wire_header_parse(s->at) != 0))
        return fail_codec(s, 0, "other bytes follow the compressed data");
    return 0;
}

/* Returns as soon as the codec has produced anything. */
static ssize_t codec_read(trail_source *s, uint8_t *buf, size_t size)
{
    for (;;) {
        if (s->between && !s->pending) {
            int more = s->followed ? 0 : codec_goes_on(s);
            if (more <= 0)
                return s->followed ? end_followed(s) : more;
        } else if (s->at == s->end && !s->pending) {
            ssize_t fetched = raw_fetch(s);
            if (fetched < 0)
                return -1;
            if (fetched == 0)
                return fail_truncated(s);
        }
        ssize_t n = s->codec->decode(s, buf, size);
        if (n > 0 && count_inflated(s, (uint64_t)n) < 0)
            return -1;
        if (n != 0)
            return n;
    }
}

/* MARK: Reading */

static ssize_t plain_read(trail_source *s, uint8_t *buf, size_t size)
{
    if (s->at < s->end)
        return (ssize_t)raw_take(s, buf, size);
    if (size >= INPUT_SIZE / 2)
        return raw_read(s, buf, size);
    ssize_t fetched = raw_fetch(s);
    return fetched <= 0 ? fetched : (ssize_t)raw_take(s, buf, size);
}

/* Reads bypassing `peeked`. An error is permanent. */
static ssize_t read_some(trail_source *s, void *buf, size_t size)
{
    if (s->error.code != TRAIL_OK)
        return -1;
    return s->codec ? codec_read(s, buf, size) : plain_read(s, buf, size);
}

static int pass_error(const trail_source *s, trail_error *err)
{
    if (err)
        *err = s->error;
    return -1;
}

ssize_t source_read(trail_source *s, void *buf, size_t size, trail_error *err)
{
    if (size == 0)
        return 0;
    ssize_t n;
    if (s->peeked_at < s->peeked_end) {
        size_t left = s->peeked_end - s->peeked_at;
        n = (ssize_t)(left < size ? left : size);
        memcpy(buf, s->peeked + s->peeked_at, (size_t)n);
        s->peeked_at += (size_t)n;
    } else {
        n = read_some(s, buf, size);
    }
    if (n < 0)
        return pass_error(s, err);
    s->delivered += n;
    show_position(s);
    return n;
}

ssize_t source_peek(trail_source *s, void *buf, size_t size, trail_error *err)
{
    if (size > PEEK_MAX)
        size = PEEK_MAX;
    /* The limits may have been set after bytes were peeked. */
    if (s->codec && s->error.code == TRAIL_OK && count_inflated(s, 0) < 0)
        return pass_error(s, err);
    while (s->peeked_end < size) {
        ssize_t n = read_some(s, s->peeked + s->peeked_end, size - s->peeked_end);
        if (n < 0)
            return pass_error(s, err);
        if (n == 0)
            break;
        s->peeked_end += (size_t)n;
    }
    size_t n = s->peeked_end < size ? s->peeked_end : size;
    memcpy(buf, s->peeked, n);
    return (ssize_t)n;
}

/* MARK: Skipping */

/* Returns the bytes from `delivered` to the present end of a regular file. */
static int64_t regular_left(const trail_source *s)
{
    struct stat st;
    int64_t place = s->start + s->delivered;
    return fstat(s->fd, &st) == 0 && st.st_size > place ? st.st_size - place : 0;
}

/* Advances a plain source (a regular file or memory) by `size` bytes and drops its buffers. */
static bool seek_ahead(trail_source *s, int64_t size)
{
    int64_t place = s->delivered + size;
    if (s->memory)
        s->at = s->memory + place;
    else if (lseek(s->fd, s->start + place, SEEK_SET) < 0)
        return false;
    else
        s->at = s->end;
    if (!s->memory)
        s->taken = place;
    s->peeked_at = s->peeked_end;
    s->delivered = place;
    show_position(s);
    return true;
}

static bool can_seek(const trail_source *s)
{
    return !s->codec && (s->regular || s->memory);
}

static int64_t left_to_seek(const trail_source *s)
{
    return s->memory ? s->size - s->delivered : regular_left(s);
}

int64_t source_skip(trail_source *s, uint64_t size, trail_error *err)
{
    if (size > INT64_MAX)
        size = INT64_MAX;
    if (can_seek(s)) {
        int64_t left = left_to_seek(s);
        int64_t step = (uint64_t)left < size ? left : (int64_t)size;
        if (seek_ahead(s, step))
            return step;
    }
    uint8_t discarded[16384];
    uint64_t skipped = 0;
    while (skipped < size) {
        uint64_t left = size - skipped;
        ssize_t n = source_read(s, discarded,
                                left < sizeof discarded ? (size_t)left : sizeof discarded, err);
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        skipped += (uint64_t)n;
    }
    return (int64_t)skipped;
}

/* Blocks of a fixed size are hashed, so that how much one read returns makes no difference. */
int trail_source_hash(trail_source *source, uint64_t *hash, trail_error *err)
{
    const size_t block = HASH_SIZE;
    uint8_t *data = malloc(block);
    size_t size = 0;
    ssize_t n = 1;
    *hash = 0;
    if (!data)
        return error_no_memory(err);
    while (n > 0) {
        n = source_read(source, data + size, block - size, err);
        size += n > 0 ? (size_t)n : 0;
        if (n > 0 && size < block)
            continue;
        *hash = hash_mix(*hash, hash_bytes(data, size));
        size = 0;
    }
    free(data);
    return n < 0 ? -1 : 0;
}

/* MARK: At any offset */

ssize_t source_peek_at(const trail_source *s, uint64_t from, void *buf, size_t size)
{
    if (!can_seek(s) || s->error.code != TRAIL_OK || from > (uint64_t)(s->size - s->delivered))
        return -1;
    int64_t place = s->delivered + (int64_t)from;
    if (!s->memory)
        return file_read_at(s->fd, buf, size, s->start + place);
    size_t left = (size_t)(s->size - place);
    size = size < left ? size : left;
    if (size > 0)
        memcpy(buf, s->memory + place, size);
    return (ssize_t)size;
}

bool source_only_zeros_follow(const trail_source *s)
{
    uint8_t block[16384];
    uint64_t from = 0;
    ssize_t n;
    while ((n = source_peek_at(s, from, block, sizeof block)) > 0 && is_zero(block, (size_t)n))
        from += (uint64_t)n;
    return n == 0;
}

bool source_is_file(const trail_source *s)
{
    return s->regular && !s->codec;
}

int source_again(const trail_source *s, uint64_t offset, void *buf, size_t size, trail_error *err)
{
    ssize_t n = file_read_at(s->fd, buf, size, s->start + (int64_t)offset);
    if (n < 0)
        return error_set(err, TRAIL_IO, "cannot read %s: %s", s->name, strerror(errno));
    return (size_t)n < size ? (int)fail_cut(err, s, (int64_t)offset + n) : 0;
}

bool source_is_at_hand(const trail_source *s)
{
    return s->regular || s->memory || s->read;
}

/* MARK: As one piece */

bool source_in_place(trail_source *s, const uint8_t **data, size_t *size)
{
    if (!s->memory || s->codec || s->error.code != TRAIL_OK)
        return false;
    *data = s->memory + s->delivered;
    *size = (size_t)(s->size - s->delivered);
    (void)seek_ahead(s, (int64_t)*size);
    s->ended = true;
    return true;
}

/* The first allocation: the whole file and one more byte, to detect its end. */
static size_t whole_at_first(const trail_source *s)
{
    int64_t left = s->size - s->delivered;
    return source_is_file(s) && left > 0 && left < PTRDIFF_MAX ? (size_t)left + 1 : WHOLE_AT_FIRST;
}

static int whole_read(trail_source *s, size_t *size, trail_error *err)
{
    size_t capacity = 0;
    *size = 0;
    for (;;) {
        if (*size == capacity) {
            size_t wanted = capacity ? capacity * 2 : whole_at_first(s);
            uint8_t *grown = wanted > capacity ? realloc(s->whole, wanted) : NULL;
            if (!grown)
                return error_set(err, TRAIL_NO_MEMORY, "no memory for a trace of over %zu bytes",
                                 capacity);
            s->whole = grown;
            capacity = wanted;
        }
        ssize_t n = source_read(s, s->whole + *size, capacity - *size, err);
        if (n <= 0)
            return (int)n;
        *size += (size_t)n;
    }
}

int source_whole(trail_source *s, const uint8_t **data, size_t *size, trail_error *err)
{
    if (source_in_place(s, data, size))
        return 0;
    int result = whole_read(s, size, err);
    *data = s->whole;
    return result;
}

/* MARK: Opening and closing */

static trail_source *source_new(const char *name, trail_error *err)
{
    trail_source *s = calloc(1, sizeof *s);
    char *copy = strdup(name);
    if (!s || !copy) {
        free(s);
        free(copy);
        error_set(err, TRAIL_NO_MEMORY, "no memory to open %s", name);
        return NULL;
    }
    s->fd = -1;
    s->size = -1;
    s->name = copy;
    trail_source_limit_inflated(s, TRAIL_INFLATED_MAX, TRAIL_INFLATED_RATIO);
    error_clear(&s->error);
    return s;
}

/* Fetches enough raw bytes to recognise the compression or form; fewer only at the end. */
static bool fetch_magic(trail_source *s)
{
    size_t have = 0, next_look = 1;
    s->input = malloc(INPUT_SIZE);
    if (!s->input)
        return error_set(&s->error, TRAIL_NO_MEMORY, "no memory to read %s", s->name) == 0;
    while (have < INPUT_SIZE && !s->ended) {
        if (have >= next_look) {
            if (codec_of(s->input, have) || !unwrap_is_undecided(s->input, have))
                break;
            /* Doubled, because each look examines everything so far; but a lone header is
             * noticed. */
            next_look = have < WIRE_HEADER_SIZE ? WIRE_HEADER_SIZE : 2 * have;
        }
        ssize_t n = raw_read(s, s->input + have, INPUT_SIZE - have);
        if (n < 0)
            return false;
        have += (size_t)n;
    }
    s->at = s->input;
    s->end = s->input + have;
    return true;
}

/* Sets up the codec for the first bytes. */
static bool recognise(trail_source *s)
{
    if (!s->memory && !fetch_magic(s))
        return s->unwrap != NULL; /* the error of an archive is reported when it is read */
    const struct codec *codec = codec_of(s->at, (size_t)(s->end - s->at));
    if (codec && !codec->init(s))
        return error_set(&s->error, TRAIL_NO_MEMORY, "no memory to decompress %s", s->name) == 0;
    s->codec = codec;
    return true;
}

static trail_source *source_ready(trail_source *s, trail_error *err);

/* Returns the form of what the source delivers, NULL if it is a trace or unknown. */
static const struct unwrap_form *form_of(trail_source *s, char name[UNWRAP_NAME_SIZE])
{
    uint8_t first[PEEK_MAX];
    unsigned depth = 0;
    for (const trail_source *inner = s->inner; inner; inner = inner->inner)
        depth++;
    if (depth == WRAPPINGS)
        return NULL;
    if (!s->codec)
        return unwrap_recognise(s->at, (size_t)(s->end - s->at), name);
    ssize_t n = source_peek(s, first, WIRE_HEADER_SIZE, NULL);
    /* Do not wait for a trace that is being compressed as it is made. */
    if (s->regular || s->memory || (n > 0 && unwrap_is_undecided(first, (size_t)n)))
        n = source_peek(s, first, sizeof first, NULL);
    return n > 0 ? unwrap_recognise(first, (size_t)n, name) : NULL;
}

static ssize_t read_inner(void *inner, void *buf, size_t size)
{
    return source_read(inner, buf, size, NULL);
}

/* Returns the version of a trace without its header, 0 if the source is something else. */
static int version_without_header(const trail_source *s, bool *assumed)
{
    uint8_t last;
    size_t size = (size_t)(s->end - s->at);
    if (s->codec || (size >= WIRE_HEADER_SIZE && wire_header_parse(s->at) != 0))
        return 0;
    bool known = s->size > 0 && source_peek_at(s, (uint64_t)s->size - 1, &last, 1) == 1;
    size = size < INPUT_SIZE ? size : INPUT_SIZE; /* memory, too, as files are */
    return headless_version(s->at, size, known ? last : -1, assumed);
}

/* Makes `outer` deliver a header and then the bytes of `s`. */
static bool put_header(trail_source *outer, trail_source *s, int version, bool assumed)
{
    outer->input = malloc(INPUT_SIZE);
    if (!outer->input)
        return false;
    outer->at = outer->end = outer->input;
    outer->inner = s;
    outer->read = read_inner;
    outer->context = s;
    (void)snprintf(outer->form, sizeof outer->form, "a trace without its header, as go 1.%d%s",
                   version, assumed ? " (assumed)" : "");
    memcpy(outer->peeked, wire_header(version), WIRE_HEADER_SIZE);
    outer->peeked_end = WIRE_HEADER_SIZE;
    outer->headless = true;
    return true;
}

/* Returns a source of the trace in `s`: `s` itself unless the trace is in another form. */
static trail_source *unwrapped(trail_source *s, trail_error *err)
{
    char name[UNWRAP_NAME_SIZE];
    const struct unwrap_form *form = form_of(s, name);
    bool assumed = false;
    const int version = form ? 0 : version_without_header(s, &assumed);
    trail_source *outer = form || version > 0 ? source_new(s->name, err) : s;
    if (outer == s || (outer && version > 0 && put_header(outer, s, version, assumed)))
        return outer;
    struct unwrap *unwrap = outer && form ? unwrap_begin(form, read_inner, s) : NULL;
    if (!unwrap) {
        error_set(err, TRAIL_NO_MEMORY, "no memory to open %s", s->name);
        trail_source_close(outer);
        trail_source_close(s);
        return NULL;
    }
    outer->inner = s;
    outer->unwrap = unwrap;
    outer->read = unwrap_read;
    outer->context = unwrap;
    memcpy(outer->form, name, sizeof outer->form);
    return source_ready(outer, err);
}

static trail_source *source_ready(trail_source *s, trail_error *err)
{
    if (recognise(s))
        return unwrapped(s, err);
    pass_error(s, err);
    trail_source_close(s);
    return NULL;
}

/* Opens a source on a descriptor; trail_source_close closes it if `owns`. */
static trail_source *open_descriptor(int fd, bool owns, const char *name, trail_error *err)
{
    trail_source *s = source_new(name, err);
    if (!s) {
        if (owns)
            (void)close(fd);
        return NULL;
    }
    s->fd = fd;
    s->owns_fd = owns;
    struct stat st;
    int reason = fstat(fd, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    if (reason) {
        fail_io(s, reason);
        pass_error(s, err);
        trail_source_close(s);
        return NULL;
    }
    off_t start = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : -1;
    if (start >= 0) {
        s->regular = st.st_size > start; /* files in /proc report size 0 */
        s->start = start;
        s->size = st.st_size > start ? st.st_size - start : 0;
    }
    return source_ready(s, err);
}

trail_source *trail_source_open_path(const char *path, trail_error *err)
{
    int fd;
    do
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        error_set(err, TRAIL_IO, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    return open_descriptor(fd, true, path, err);
}

trail_source *trail_source_open_fd(int fd, trail_error *err)
{
    return open_descriptor(fd, false, "the input", err);
}

trail_source *trail_source_open_memory(const void *data, size_t size, trail_error *err)
{
    trail_source *s = source_new("memory", err);
    if (!s)
        return NULL;
    s->memory = data ? data : (const uint8_t *)"";
    s->size = data ? (int64_t)size : 0;
    s->at = s->memory;
    s->end = s->memory + s->size;
    s->taken = s->size;
    s->ended = true;
    return source_ready(s, err);
}

trail_source *trail_source_open_callback(trail_read_fn read, void *context, trail_error *err)
{
    trail_source *s = source_new("the input", err);
    if (!s)
        return NULL;
    s->read = read;
    s->context = context;
    return source_ready(s, err);
}

/* Makes memory or a plain regular file begin `offset` bytes later. Returns false if it cannot. */
static bool begin_later(trail_source *s, int64_t offset)
{
    if (!can_seek(s) || s->delivered > 0 || offset > s->size || !seek_ahead(s, offset))
        return false;
    s->start += offset;
    s->size -= offset;
    if (s->memory)
        s->memory += offset;
    s->taken = s->memory ? s->size : 0;
    s->delivered = 0;
    s->peeked_at = s->peeked_end = 0;
    s->ended = s->memory != NULL;
    show_position(s);
    return true;
}

trail_source *source_from(trail_source *s, int64_t offset, trail_error *err)
{
    trail_source *outer = NULL;
    if (offset >= 0 && begin_later(s, offset))
        return s;
    int64_t skipped = offset < 0 ? -1 : source_skip(s, (uint64_t)offset, err);
    if (skipped >= 0 && skipped < offset)
        error_set(err, TRAIL_TRUNCATED, "%s ends before offset %lld", s->name, (long long)offset);
    else if (skipped >= 0)
        outer = source_new(s->name, err);
    if (!outer) {
        trail_source_close(s);
        return NULL;
    }
    outer->inner = s;
    outer->read = read_inner;
    outer->context = s;
    return source_ready(outer, err);
}

void trail_source_close(trail_source *s)
{
    if (!s)
        return;
    if (s->codec)
        s->codec->fini(s);
    if (s->owns_fd)
        (void)close(s->fd);
    unwrap_end(s->unwrap);
    trail_source_close(s->inner);
    free(s->whole);
    free(s->input);
    free(s->name);
    free(s);
}

void source_set_strict(trail_source *s)
{
    for (; s; s = s->inner)
        s->strict = true;
}

bool source_lacks_header(const trail_source *s)
{
    while (s && !s->headless)
        s = s->inner;
    return s != NULL;
}

int64_t trail_source_size(const trail_source *source)
{
    while (source->inner)
        source = source->inner;
    return source->size;
}

int64_t trail_source_position(const trail_source *source)
{
    while (source->inner)
        source = source->inner;
    return __atomic_load_n(&source->shown, __ATOMIC_RELAXED);
}

const char *trail_source_compression(const trail_source *source)
{
    while (source->inner && !source->unwrap && !source->codec && !source->headless)
        source = source->inner; /* made by source_from */
    if (source->codec)
        return source->followed ? source->codec->name_followed : source->codec->name;
    return source->inner ? source->form : "none";
}

const char *source_codec(const trail_source *source)
{
    while (source->inner && !source->unwrap && !source->codec)
        source = source->inner;
    return source->codec ? source->codec->name : source->inner ? source->form : "none";
}
