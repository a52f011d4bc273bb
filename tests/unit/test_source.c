/*
 * Sources: the same bytes come out whatever the underlying input and however they are read, and
 * faulty input is reported.
 */
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "../lib/unit.h"
#include "read/source.h"

#define PLAIN_SIZE ((size_t)700001) /* exceeds all buffers; a multiple of none */

struct bytes {
    uint8_t *data;
    size_t size;
};

/* Text that compresses somewhat. */
static struct bytes make_plain(void)
{
    struct bytes plain = {malloc(PLAIN_SIZE), PLAIN_SIZE};
    uint32_t state = 1;
    for (size_t i = 0; i < PLAIN_SIZE; i++) {
        state = state * 1664525 + 1013904223;
        plain.data[i] = (uint8_t)((uint8_t) "etaoin s"[state >> 28 & 7] + (state >> 20 & 1));
    }
    return plain;
}

static struct bytes gzip(const uint8_t *data, size_t size)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    struct bytes out = {malloc(deflateBound(&z, size) + 64), deflateBound(&z, size) + 64};
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out.data;
    z.avail_out = (uInt)out.size;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.size = z.total_out;
    (void)deflateEnd(&z);
    return out;
}

static struct bytes zstd(const uint8_t *data, size_t size)
{
    struct bytes out = {malloc(ZSTD_compressBound(size)), ZSTD_compressBound(size)};
    ZSTD_CCtx *context = ZSTD_createCCtx();
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.size = ZSTD_compress2(context, out.data, out.size, data, size);
    assert_false(ZSTD_isError(out.size));
    (void)ZSTD_freeCCtx(context);
    return out;
}

static struct bytes xz(const uint8_t *data, size_t size)
{
    struct bytes out = {malloc(lzma_stream_buffer_bound(size)), 0};
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, size, out.data,
                                             &out.size, lzma_stream_buffer_bound(size)),
                     LZMA_OK);
    return out;
}

/* Joins the parts and frees them. */
static struct bytes join(struct bytes a, struct bytes b)
{
    struct bytes out = {malloc(a.size + b.size), a.size + b.size};
    memcpy(out.data, a.data, a.size);
    memcpy(out.data + a.size, b.data, b.size);
    free(a.data);
    free(b.data);
    return out;
}

static struct bytes copy(const void *data, size_t size)
{
    struct bytes out = {malloc(size + 1), size};
    memcpy(out.data, data, size);
    return out;
}

/* Encodings of the same plain bytes. */
enum { PLAIN, GZIP, ZSTD, XZ, GZIP_TWICE, ZSTD_TWICE, ZSTD_SKIPPABLE, XZ_TWICE, ENCODINGS };

static struct bytes encode(struct bytes plain, int encoding)
{
    static const uint8_t skippable[] = {0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    size_t half = plain.size / 2;
    switch (encoding) {
    case GZIP:
        return gzip(plain.data, plain.size);
    case GZIP_TWICE:
        return join(gzip(plain.data, half), gzip(plain.data + half, plain.size - half));
    case ZSTD:
        return zstd(plain.data, plain.size);
    case ZSTD_TWICE:
        return join(zstd(plain.data, half), zstd(plain.data + half, plain.size - half));
    case XZ:
        return xz(plain.data, plain.size);
    case XZ_TWICE:
        return join(join(xz(plain.data, half), copy("\0\0\0", 4)),
                    join(xz(plain.data + half, plain.size - half), copy("\0\0\0", 4)));
    case ZSTD_SKIPPABLE:
        return join(copy(skippable, sizeof skippable), zstd(plain.data, plain.size));
    default:
        return copy(plain.data, plain.size);
    }
}

/* MARK: Ways to lie underneath */

enum { MEMORY, PATH, FILE_FD, PIPE, CALLBACK_ALL, CALLBACK_BYTES, UNDERS };

struct under {
    int kind;
    struct bytes raw;
    size_t given, at_once; /* callback */
    char path[64];
    int fd;
    pid_t writer;
};

static ssize_t give(void *context, void *buf, size_t size)
{
    struct under *u = context;
    size_t left = u->raw.size - u->given;
    if (size > u->at_once)
        size = u->at_once;
    if (size > left)
        size = left;
    memcpy(buf, u->raw.data + u->given, size);
    u->given += size;
    return (ssize_t)size;
}

static void write_all(int fd, const uint8_t *data, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, data, size);
        if (n <= 0)
            _exit(1);
        data += n;
        size -= (size_t)n;
    }
}

static void make_file(struct under *u)
{
    (void)snprintf(u->path, sizeof u->path, "/tmp/test_source.XXXXXX");
    u->fd = mkstemp(u->path);
    assert_true(u->fd >= 0);
    write_all(u->fd, u->raw.data, u->raw.size);
    assert_int_equal(lseek(u->fd, 0, SEEK_SET), 0);
}

static void make_pipe(struct under *u)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    u->writer = fork();
    if (u->writer == 0) {
        (void)signal(SIGPIPE, SIG_IGN);
        (void)close(ends[0]);
        write_all(ends[1], u->raw.data, u->raw.size);
        _exit(0);
    }
    (void)close(ends[1]);
    u->fd = ends[0];
}

static trail_source *under_open(struct under *u, int kind, struct bytes raw)
{
    *u = (struct under){.kind = kind, .raw = raw, .fd = -1};
    u->at_once = kind == CALLBACK_BYTES ? 1 : SIZE_MAX;
    trail_error err;
    switch (kind) {
    case MEMORY:
        return trail_source_open_memory(raw.data, raw.size, &err);
    case PATH:
        make_file(u);
        return trail_source_open_path(u->path, &err);
    case FILE_FD:
        make_file(u);
        return trail_source_open_fd(u->fd, &err);
    case PIPE:
        make_pipe(u);
        return trail_source_open_fd(u->fd, &err);
    default:
        return trail_source_open_callback(give, u, &err);
    }
}

static void under_close(struct under *u)
{
    if (u->fd >= 0)
        (void)close(u->fd);
    if (u->path[0])
        (void)unlink(u->path);
    if (u->writer > 0)
        (void)waitpid(u->writer, NULL, 0);
}

/* MARK: The same bytes, every way */

static void expect_stream(trail_source *source, struct bytes want, size_t at_once)
{
    uint8_t *buf = malloc(at_once);
    trail_error err;
    size_t got = 0;
    for (;;) {
        ssize_t n = source_read(source, buf, at_once, &err);
        assert_true(n >= 0);
        if (n == 0)
            break;
        assert_true(got + (size_t)n <= want.size);
        assert_memory_equal(buf, want.data + got, (size_t)n);
        got += (size_t)n;
    }
    assert_int_equal(got, want.size);
    free(buf);
}

static void expect_whole(trail_source *source, struct bytes want)
{
    const uint8_t *data;
    size_t size;
    trail_error err;
    uint8_t one;
    assert_int_equal(source_whole(source, &data, &size, &err), 0);
    assert_int_equal(size, want.size);
    assert_memory_equal(data, want.data, size);
    assert_int_equal(source_read(source, &one, 1, &err), 0);
}

static void expect_after_skip(trail_source *source, struct bytes want)
{
    trail_error err;
    uint8_t buf[100];
    static const size_t skips[] = {0, 1, 300000, 5, 200000};
    size_t place = 0;
    assert_int_equal(source_peek(source, buf, 16, &err), 16);
    assert_memory_equal(buf, want.data, 16);
    for (size_t i = 0; i < sizeof skips / sizeof *skips; i++) {
        assert_int_equal(source_skip(source, skips[i], &err), skips[i]);
        place += skips[i];
        ssize_t n = source_read(source, buf, sizeof buf, &err);
        assert_true(n > 0);
        assert_memory_equal(buf, want.data + place, (size_t)n);
        place += (size_t)n;
    }
    assert_int_equal(source_skip(source, UINT64_MAX, &err), want.size - place);
    assert_int_equal(source_read(source, buf, 1, &err), 0);
}

static void expect_way(trail_source *source, struct bytes want, int way)
{
    trail_error err;
    uint8_t first[20];
    switch (way) {
    case 0:
        expect_stream(source, want, 4096);
        break;
    case 1:
        expect_stream(source, want, 300000);
        break;
    case 2:
        assert_int_equal(source_peek(source, first, sizeof first, &err), sizeof first);
        expect_whole(source, want);
        break;
    case 3:
        expect_after_skip(source, want);
        break;
    default:
        for (size_t i = 0; i < 7; i++)
            assert_int_equal(source_read(source, first, 1, &err), 1);
        expect_whole(source, (struct bytes){want.data + 7, want.size - 7});
        break;
    }
}

TEST(test_same_bytes_from_everywhere)
{
    static const char *const names[ENCODINGS] = {"none", "gzip", "zstd", "xz",
                                                 "gzip", "zstd", "zstd", "xz"};
    struct bytes plain = make_plain();
    for (int encoding = 0; encoding < ENCODINGS; encoding++) {
        struct bytes raw = encode(plain, encoding);
        for (int kind = 0; kind < UNDERS; kind++) {
            for (int way = 0; way < 5; way++) {
                struct under u;
                trail_source *source = under_open(&u, kind, raw);
                assert_non_null(source);
                assert_string_equal(trail_source_compression(source), names[encoding]);
                bool sized = kind == MEMORY || kind == PATH || kind == FILE_FD;
                assert_int_equal(trail_source_size(source), sized ? (int64_t)raw.size : -1);
                expect_way(source, plain, way);
                assert_int_equal(trail_source_position(source), raw.size);
                trail_source_close(source);
                under_close(&u);
            }
        }
        free(raw.data);
    }
    free(plain.data);
}

TEST(test_starts_at_the_descriptors_position)
{
    struct under u = {.raw = copy("0123456789", 10)};
    trail_error err;
    for (int whole = 0; whole < 2; whole++) {
        make_file(&u);
        assert_int_equal(lseek(u.fd, 4, SEEK_SET), 4);
        trail_source *source = trail_source_open_fd(u.fd, &err);
        assert_int_equal(trail_source_size(source), 6);
        if (whole)
            expect_whole(source, (struct bytes){u.raw.data + 4, 6});
        else
            expect_stream(source, (struct bytes){u.raw.data + 4, 6}, 4);
        trail_source_close(source);
        assert_true(fcntl(u.fd, F_GETFD) >= 0); /* the descriptor still belongs to the caller */
        under_close(&u);
    }
    free(u.raw.data);
}

TEST(test_short_inputs)
{
    for (size_t size = 0; size < 6; size++) {
        for (int kind = 0; kind < UNDERS; kind++) {
            struct under u;
            struct bytes raw = copy("\x28\xb5\x2f\x00\x00", size < 5 ? size : 5);
            trail_source *source = under_open(&u, kind, raw);
            assert_non_null(source);
            assert_string_equal(trail_source_compression(source), "none");
            expect_stream(source, raw, 3);
            trail_source_close(source);
            under_close(&u);
            free(raw.data);
        }
    }
}

/* MARK: What arrives is given at once */

TEST(test_pipe_is_read_as_it_arrives)
{
    int ends[2];
    trail_error err;
    char buf[4096];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "go 1.22 trace\0\0", 16), 16);
    trail_source *source = trail_source_open_fd(ends[0], &err);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 16);
    assert_int_equal(write(ends[1], "you", 3), 3);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 3);
    assert_memory_equal(buf, "you", 3);
    (void)close(ends[1]);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 0);
    trail_source_close(source);
    (void)close(ends[0]);
}

TEST(test_flushed_gzip_is_read_as_it_arrives)
{
    int ends[2];
    trail_error err;
    char buf[4096];
    uint8_t packed[256];
    z_stream z = {.next_in = (Bytef *)(uintptr_t) "go 1.22 trace\0\0", .avail_in = 16};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_out = packed;
    z.avail_out = sizeof packed;
    assert_int_equal(deflate(&z, Z_SYNC_FLUSH), Z_OK);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], packed, z.total_out), z.total_out);
    trail_source *source = trail_source_open_fd(ends[0], &err);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 16);
    (void)close(ends[1]);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), -1);
    assert_int_equal(err.code, TRAIL_TRUNCATED);
    trail_source_close(source);
    (void)close(ends[0]);
    (void)deflateEnd(&z);
}

static bool sleeps(pid_t pid)
{
    char path[64], state = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    bool found = file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
    if (file)
        (void)fclose(file);
    return found && state == 'S';
}

TEST(test_waits_on_a_descriptor_that_does_not_block)
{
    int ends[2];
    trail_error err;
    char buf[16];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        /* Waits until the parent waits, or has failed. */
        while (!sleeps(parent) && getppid() == parent)
            (void)usleep(1000);
        write_all(ends[1], (const uint8_t *)"late", 4);
        _exit(0);
    }
    (void)close(ends[1]);
    trail_source *source = trail_source_open_fd(ends[0], &err);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 4);
    assert_int_equal(source_read(source, buf, sizeof buf, &err), 0);
    trail_source_close(source);
    (void)close(ends[0]);
    (void)waitpid(child, NULL, 0);
}

/* MARK: Errors */

static void expect_open_error(const char *path, const char *message)
{
    trail_error err;
    assert_null(trail_source_open_path(path, &err));
    assert_int_equal(err.code, TRAIL_IO);
    assert_string_equal(err.message, message);
    assert_null(trail_source_open_path(path, NULL));
}

TEST(test_paths_that_cannot_be_read)
{
    expect_open_error("/nonexistent/x", "cannot open /nonexistent/x: No such file or directory");
    expect_open_error("/", "cannot read /: Is a directory");
}

/* Reads to the end or to an error; returns the number of bytes. */
static size_t drain(trail_source *source, trail_error *err)
{
    uint8_t buf[1000];
    size_t got = 0;
    ssize_t n;
    err->code = TRAIL_OK;
    while ((n = source_read(source, buf, sizeof buf, err)) > 0)
        got += (size_t)n;
    if (n < 0) { /* a failure stays */
        trail_error again;
        assert_int_equal(source_read(source, buf, sizeof buf, &again), -1);
        assert_string_equal(again.message, err->message);
    }
    return got;
}

TEST(test_damaged_compression)
{
    struct bytes plain = make_plain();
    for (int encoding = GZIP; encoding <= XZ; encoding++) {
        struct bytes raw = encode(plain, encoding);
        trail_error err;
        size_t cut = raw.size * 3 / 4;
        trail_source *source = trail_source_open_memory(raw.data, cut, &err);
        size_t got = drain(source, &err);
        assert_int_equal(err.code, TRAIL_TRUNCATED);
        assert_true(got > plain.size / 2 && got < plain.size);
        assert_int_equal(err.offset, got);
        trail_source_close(source);

        memset(raw.data + cut, 0xff, 64);
        source = trail_source_open_memory(raw.data, raw.size, &err);
        got = drain(source, &err);
        assert_int_equal(err.code, TRAIL_CORRUPT);
        assert_int_equal(err.offset, got);
        trail_source_close(source);
        free(raw.data);
    }
    free(plain.data);
}

/* Reads all that precedes an error into `got`. Returns how much that is. */
static size_t read_to_the_error(struct bytes raw, uint8_t *got, size_t size, size_t at_once,
                                trail_error *err)
{
    trail_source *source = trail_source_open_memory(raw.data, raw.size, err);
    uint8_t first[16];
    assert_int_equal(source_peek(source, first, sizeof first, err), sizeof first);
    size_t done = 0;
    ssize_t n;
    while ((n = source_read(source, got + done, size - done < at_once ? size - done : at_once,
                            err)) > 0)
        done += (size_t)n;
    assert_int_equal(n, -1);
    assert_int_equal(source_read(source, got, size, err), -1); /* no more afterwards */
    trail_source_close(source);
    return done;
}

/* The last byte belongs to a checksum, or to the mark of the end: all data precede it. */
TEST(test_all_before_the_damage_is_read)
{
    const size_t steps[] = {1000, 1 << 20};
    struct bytes plain = make_plain();
    struct bytes got = {malloc(plain.size + 1), plain.size + 1};
    for (int encoding = GZIP; encoding <= XZ_TWICE; encoding++) {
        struct bytes raw = encode(plain, encoding);
        raw.size -= encoding == XZ_TWICE ? 4 : 0; /* zero bytes behind it */
        raw.data[raw.size - 1] ^= 0x10;
        for (unsigned i = 0; i < 2; i++) {
            trail_error err;
            assert_int_equal(read_to_the_error(raw, got.data, got.size, steps[i], &err),
                             plain.size);
            assert_memory_equal(got.data, plain.data, plain.size);
            assert_int_equal(err.code, TRAIL_CORRUPT);
            assert_int_equal(err.offset, plain.size);
        }
        free(raw.data);
    }
    free(got.data);
    free(plain.data);
}

/* Blocks and windows of the codecs are smaller than half of the data. */
TEST(test_half_of_what_is_damaged_later_is_read)
{
    struct bytes plain = make_plain();
    struct bytes got = {malloc(2 * plain.size), 2 * plain.size}; /* damage may give more */
    for (int encoding = GZIP; encoding <= XZ; encoding++) {
        struct bytes raw = encode(plain, encoding);
        memset(raw.data + raw.size * 3 / 4, 0xff, 100);
        trail_error err;
        assert_true(read_to_the_error(raw, got.data, got.size, 1 << 20, &err) > plain.size / 2);
        assert_memory_equal(got.data, plain.data, plain.size / 2);
        free(raw.data);
    }
    free(got.data);
    free(plain.data);
}

TEST(test_whole_keeps_what_came_before_the_error)
{
    struct bytes plain = make_plain(), raw = encode(plain, GZIP);
    const uint8_t *data;
    size_t size;
    trail_error err;
    trail_source *source = trail_source_open_memory(raw.data, raw.size / 2, &err);
    assert_int_equal(source_whole(source, &data, &size, &err), -1);
    assert_int_equal(err.code, TRAIL_TRUNCATED);
    assert_true(size > 0);
    assert_memory_equal(data, plain.data, size);
    trail_source_close(source);
    free(raw.data);
    free(plain.data);
}

/* Batches (§5.2) of events, the first of which are ProcStop, without a header. */
static void put_batches(uint8_t *data, size_t size)
{
    static const uint8_t batch[] = {1, 1, 5, 0x80, 0x80, 0x80, 0x80, 1, 4, 11, 1, 11, 1};
    for (size_t i = 0; i < size; i++)
        data[i] = batch[i % sizeof batch];
}

/* However much is at hand, no more is examined than of a file. */
TEST(test_memory_is_examined_as_far_as_a_file)
{
    const struct bytes raw = {malloc(400000), 400000};
    put_batches(raw.data, raw.size);
    for (unsigned step = 0; step < 2; step++) {
        for (int kind = 0; kind < UNDERS; kind++) {
            struct under u;
            trail_source *source = under_open(&u, kind, raw);
            const bool found = strncmp(trail_source_compression(source), "a trace", 7) == 0;
            assert_int_equal(found, step == 0);
            trail_source_close(source);
            under_close(&u);
        }
        memset(raw.data, 0xff, 300000);
    }
    free(raw.data);
}

TEST(test_garbage_after_gzip)
{
    struct bytes raw = join(gzip((const uint8_t *)"hello", 5), copy("garbage", 7));
    trail_error err;
    trail_source *source = trail_source_open_memory(raw.data, raw.size, &err);
    assert_int_equal(drain(source, &err), 5);
    assert_int_equal(err.code, TRAIL_OK);
    assert_string_equal(trail_source_compression(source), "gzip, followed by other bytes");
    trail_source_close(source);
    free(raw.data);
}

/* MARK: What is made to be large */

#define MIB ((size_t)1 << 20)

/* Decodes the bytes and returns how many come out, and how it ended. */
static size_t drain_limited(struct bytes raw, uint64_t max_bytes, uint64_t max_ratio,
                            trail_error *err)
{
    static uint8_t buf[1 << 20];
    size_t got = 0;
    ssize_t n;
    trail_source *source = trail_source_open_memory(raw.data, raw.size, err);
    trail_source_limit_inflated(source, max_bytes, max_ratio);
    err->code = TRAIL_OK;
    while ((n = source_read(source, buf, sizeof buf, err)) > 0)
        got += (size_t)n;
    trail_source_close(source);
    return got;
}

TEST(test_what_compressed_data_give_is_limited)
{
    struct bytes plain = {malloc(100 * MIB), 100 * MIB};
    memset(plain.data, 'x', plain.size);
    for (int encoding = GZIP; encoding < ENCODINGS; encoding++) {
        struct bytes raw = encode(plain, encoding);
        trail_error err;
        /* By default 64 MiB are always allowed; above that, the ratio must be below 1000. */
        size_t got = drain_limited(raw, 0, 0, &err);
        assert_int_equal(err.code, TRAIL_LIMIT);
        assert_int_equal(err.offset, got);
        assert_true(got >= 63 * MIB && got <= 64 * MIB);
        /* The size limit applies on its own. */
        got = drain_limited(raw, 10 * MIB, UINT64_MAX, &err);
        assert_int_equal(err.code, TRAIL_LIMIT);
        assert_true(got >= 9 * MIB && got <= 10 * MIB);
        assert_non_null(strstr(err.message, "more than 10485760 bytes"));
        /* A limit equal to the size is not exceeded. */
        assert_int_equal(drain_limited(raw, plain.size, UINT64_MAX, &err), plain.size);
        assert_int_equal(err.code, TRAIL_OK);
        assert_int_equal(drain_limited(raw, UINT64_MAX, plain.size / raw.size * 2, &err),
                         plain.size);
        assert_int_equal(err.code, TRAIL_OK);
        free(raw.data);
    }
    free(plain.data);
}

/* The reader's options apply to its source. */
TEST(test_a_reader_limits_its_source)
{
    static const char header[] = "go 1.22 trace\0\0\0";
    struct bytes plain = make_plain(), raw;
    memcpy(plain.data, header, 16);
    plain.data[16] = 0xff;
    raw = encode(plain, ZSTD);
    const trail_reader_options options = {.inflated_max = 10};
    trail_error err;
    trail_source *source = trail_source_open_memory(raw.data, raw.size, &err);
    assert_null(trail_reader_open(source, &options, &err));
    assert_int_equal(err.code, TRAIL_LIMIT);
    trail_source_close(source);
    free(raw.data);
    free(plain.data);
}

/* Input that is not a trace from its first record on is rejected there, whatever follows. */
TEST(test_an_old_trace_is_judged_while_it_arrives)
{
    static const char header[] = "go 1.21 trace\0\0\0\377";
    struct bytes plain = {calloc(20, MIB), 20 * MIB};
    memcpy(plain.data, header, 17);
    for (int encoding = PLAIN; encoding < ENCODINGS; encoding++) {
        struct bytes raw = encode(plain, encoding);
        struct under u = {.raw = raw, .at_once = 4096};
        const trail_event *events;
        trail_error err;
        trail_source *source = trail_source_open_callback(give, &u, &err);
        const trail_reader_options options = {.inflated_max = MIB};
        trail_reader *reader = trail_reader_open(source, &options, &err);
        assert_non_null(reader);
        assert_int_equal(trail_reader_next_batch(reader, &events), -1);
        assert_int_equal(trail_reader_error(reader)->code, TRAIL_CORRUPT);
        assert_int_equal(trail_reader_error(reader)->offset, 16);
        assert_true(encoding != PLAIN || u.given <= MIB);
        trail_reader_close(reader);
        trail_source_close(source);
        free(raw.data);
    }
    free(plain.data);
}

/* Empty and skippable frames take no memory and no stack. */
TEST(test_many_frames_without_content)
{
    enum { FRAMES = 20000 };
    for (int encoding = GZIP; encoding <= XZ; encoding++) {
        struct bytes frame = encode((struct bytes){(uint8_t *)"", 0}, encoding);
        struct bytes raw = {malloc(FRAMES * frame.size), FRAMES * frame.size};
        for (size_t i = 0; i < FRAMES; i++)
            memcpy(raw.data + i * frame.size, frame.data, frame.size);
        trail_error err;
        assert_int_equal(drain_limited(raw, 0, 0, &err), 0);
        assert_int_equal(err.code, TRAIL_OK);
        free(raw.data);
        free(frame.data);
    }
}

static ssize_t fail_later(void *context, void *buf, size_t size)
{
    int *calls = context;
    if ((*calls)++ == 0 && size >= 16) {
        memcpy(buf, "go 1.22 trace\0\0", 16);
        return 16;
    }
    errno = ECONNRESET;
    return -1;
}

TEST(test_callback_that_fails)
{
    int calls = 0;
    trail_error err;
    trail_source *source = trail_source_open_callback(fail_later, &calls, &err);
    assert_non_null(source);
    assert_int_equal(drain(source, &err), 16);
    assert_int_equal(err.code, TRAIL_IO);
    assert_string_equal(err.message, "cannot read the input: Connection reset by peer");
    assert_int_equal(calls, 2); /* and not called again */
    trail_source_close(source);
    assert_null(trail_source_open_callback(fail_later, &calls, &err));
    assert_int_equal(err.code, TRAIL_IO);
}

/* A header after text is found however the bytes arrive, and one at the start is not waited for. */
TEST(test_text_before_a_trace)
{
    static char data[4000], trace[600] = "go 1.22 trace\0\0\0and what follows";
    memcpy(trace + 257, "ustar", 5); /* which does not make it an archive */
    const struct bytes want = {(uint8_t *)trace, sizeof trace};
    const size_t texts[] = {0, 3, 300, 3000};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        memset(data, 'x', texts[i]);
        memcpy(data + texts[i], trace, sizeof trace);
        for (int kind = 0; kind < UNDERS; kind++) {
            struct under u;
            trail_source *source =
                under_open(&u, kind, (struct bytes){(uint8_t *)data, texts[i] + sizeof trace});
            assert_true(texts[i] > 0 || kind != CALLBACK_BYTES || u.given == 16);
            expect_stream(source, want, 100);
            trail_source_close(source);
            under_close(&u);
        }
        /* If compressed, only the first 512 bytes are examined. */
        struct bytes packed = gzip((uint8_t *)data, texts[i] + sizeof trace);
        for (int kind = 0; kind < UNDERS && texts[i] <= 300; kind++) {
            struct under u;
            trail_source *source = under_open(&u, kind, packed);
            expect_stream(source, want, 100);
            trail_source_close(source);
            under_close(&u);
        }
        free(packed.data);
    }
}

TEST(test_close_accepts_null)
{
    trail_source_close(NULL);
}
