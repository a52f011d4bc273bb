/*
 * Any bytes as compressed data, with the magic bytes of gzip, zstd or xz put before them if necessary:
 * reading ends, the output does not depend on how the bytes arrive, and is never larger than the
 * limits.
 */
#include "reading.h"

#include "read/source.h"

enum { MOST = 1 << 20 };

struct taken {
    uint64_t size, hash;
    trail_code code;
};

static struct taken take(trail_source *source, size_t at_once)
{
    static uint8_t buf[1 << 16];
    struct taken taken = {.hash = UINT64_C(0xcbf29ce484222325)};
    trail_error err;
    ssize_t n;
    trail_source_limit_inflated(source, MOST, UINT64_MAX);
    err.code = TRAIL_OK;
    while ((n = source_read(source, buf, at_once, &err)) > 0) {
        taken.size += (uint64_t)n;
        for (ssize_t i = 0; i < n; i++)
            taken.hash = (taken.hash ^ buf[i]) * UINT64_C(0x100000001b3);
    }
    FUZZ_HOLDS(taken.size <= MOST);
    FUZZ_HOLDS((n < 0) == (err.code != TRAIL_OK));
    taken.code = err.code;
    trail_source_close(source);
    return taken;
}

/* The input, with a first byte of 0, 1 or 2 replaced by the magic bytes of gzip, zstd or xz. */
static struct fuzz_bytes with_magic(const uint8_t *data, size_t size)
{
    static const uint8_t gzip[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3};
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    static const uint8_t xz[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    struct fuzz_bytes raw = {0};
    bool replaced = size > 0 && data[0] < 3;
    if (replaced && data[0] == 0)
        (void)fuzz_keep(&raw, gzip, sizeof gzip);
    else if (replaced && data[0] == 1)
        (void)fuzz_keep(&raw, zstd, sizeof zstd);
    else if (replaced)
        (void)fuzz_keep(&raw, xz, sizeof xz);
    if (size > replaced)
        (void)fuzz_keep(&raw, data + replaced, size - replaced);
    return raw;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes raw = with_magic(data, size);
    struct fuzz_trickle trickle = {.data = raw.data, .size = raw.size};
    trail_error err;
    trail_source *source = trail_source_open_memory(raw.data, raw.size, &err);
    FUZZ_HOLDS(source);
    bool plain = strcmp(trail_source_compression(source), "none") == 0;
    if (!plain) {
        struct taken whole = take(source, 1 << 16);
        struct taken pieces = take(trail_source_open_callback(fuzz_trickle, &trickle, &err), 777);
        FUZZ_HOLDS(whole.code == pieces.code);
        /* Before an error, reading in pieces yields all output, reading at once perhaps less. */
        FUZZ_HOLDS(whole.code != TRAIL_OK ||
                   (whole.size == pieces.size && whole.hash == pieces.hash));
    } else {
        trail_source_close(source);
    }
    const trail_reader_options options = {.inflated_max = MOST, .partial = true};
    (void)fuzz_read_memory(&raw, &options);
    free(raw.data);
    return 0;
}
