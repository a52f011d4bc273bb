/* Unwrap: see unwrap.h. */
#include "read/unwrap.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef TRAIL_PLAIN_ONLY
#include <zlib.h>
#endif

#include "base/text.h"
#include "read/printed.h"
#include "read/v2/batch.h"
#include "wire/wire.h"

#define INPUT_SIZE ((size_t)128 << 10)
#define TAR_BLOCK  512
#define HEX_LINE   4096

struct unwrap {
    const struct unwrap_form *form;
    trail_read_fn inner;
    void *context;
    size_t at, end;          /* of `input` */
    uint64_t left;           /* tar, zip, chunks: bytes up to the end of the part */
    bool begun, over;        /* in the archive's file, or past what is to be read */
    bool failed;             /* reading `inner` has failed */
    bool damaged;            /* the form's own checks fail */
    bool missing;            /* no file of the archive is a trace */
    uint8_t head[TAR_BLOCK]; /* tar, zip: the start of the file, up to head_size */
    size_t head_at, head_size;
    uint32_t bits; /* base64 */
    unsigned bit_count;
    char line[HEX_LINE]; /* hex dump: the next line */
    bool repeats;        /* up to the next line's offset */
    uint8_t last[32];    /* bytes of the last line */
    size_t last_size;
    uint64_t dumped; /* bytes so far */
#ifndef TRAIL_PLAIN_ONLY
    bool inflating, streamed; /* zip: the sizes and the checksum follow the data */
    uint64_t passed;          /* zip: bytes decompressed to find the ends of other files */
    uint32_t crc, right_crc;
    z_stream z;
#endif
    uint8_t input[INPUT_SIZE];
};

struct unwrap_form {
    const char *name;
    bool of_trace; /* the trace's header stays at the start */
    bool (*matches)(const uint8_t *data, size_t size);
    /* As trail_read_fn, but may return 0 before the end: see `over`. */
    ssize_t (*read)(struct unwrap *u, uint8_t *buf, size_t size);
};

/* MARK: Input */

/* Makes a byte available. Returns 1, 0 at the end, -1 on an error. */
static int more(struct unwrap *u)
{
    if (u->at < u->end)
        return 1;
    ssize_t n = u->inner(u->context, u->input, INPUT_SIZE);
    u->at = 0;
    u->end = n > 0 ? (size_t)n : 0;
    u->failed = n < 0;
    return n < 0 ? -1 : n > 0;
}

/* Returns the next byte, -1 at the end or on an error. */
static int get(struct unwrap *u)
{
    return more(u) > 0 ? u->input[u->at++] : -1;
}

static size_t take(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = u->end - u->at;
    n = n < size ? n : size;
    memcpy(buf, u->input + u->at, n);
    u->at += n;
    return n;
}

/* Copies up to `left` bytes of the present part. */
static ssize_t take_part(struct unwrap *u, uint8_t *buf, size_t size)
{
    int have = more(u);
    if (have <= 0) {
        u->over = true;
        return have;
    }
    size_t n = take(u, buf, u->left < size ? (size_t)u->left : size);
    u->left -= n;
    return (ssize_t)n;
}

static void skip(struct unwrap *u, uint64_t size)
{
    while (size-- > 0 && get(u) >= 0)
        ;
}

/* Copies everything that is left. */
static ssize_t take_rest(struct unwrap *u, uint8_t *buf, size_t size)
{
    u->left = UINT64_MAX;
    return take_part(u, buf, size);
}

/* MARK: Compressed data within compressed data, or in chunks */

static bool compressed_matches(const uint8_t *data, size_t size)
{
    static const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd},
                         xz[] = {0xfd, '7', 'z', 'X', 'Z'};
    return (size >= sizeof gzip && memcmp(data, gzip, sizeof gzip) == 0) ||
           (size >= sizeof zstd && memcmp(data, zstd, sizeof zstd) == 0) ||
           (size >= sizeof xz && memcmp(data, xz, sizeof xz) == 0);
}

/* MARK: Text or other bytes before the trace */

#define TEXT_MOST INPUT_SIZE

/* Whether a batch begins at `at`: a program may contain the bytes of a header. */
static bool begins_batch(int version, const uint8_t *at, size_t size)
{
    struct v2_batch_header header;
    size_t length;
    if (!trail_version_is_v2(version))
        return size > 0 && *at == (V1_Batch | 1 << V1_COUNT_SHIFT);
    return v2_batch_header(at, size, version, &header, &length, NULL) == V2_HEADER_OK &&
           header.generation > 0 && header.size > 0;
}

/* Returns the offset of a trace's header after text, or after other bytes if a batch follows it;
 * 0 if there is none. */
static size_t text_size(const uint8_t *data, size_t size)
{
    bool text = true;
    if (size > TEXT_MOST)
        size = TEXT_MOST;
    for (size_t at = 0; at + WIRE_HEADER_SIZE <= size; at++) {
        int version = data[at] == 'g' ? wire_header_parse(data + at) : 0;
        const uint8_t *next = data + at + WIRE_HEADER_SIZE;
        if (version > 0 && (text || begins_batch(version, next, (size_t)(data + size - next))))
            return at;
        text &= data[at] != '\0';
    }
    return 0;
}

static bool text_matches(const uint8_t *data, size_t size)
{
    return text_size(data, size) > 0;
}

static ssize_t text_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    while (!u->begun && more(u) > 0 && u->end < INPUT_SIZE && text_size(u->input, u->end) == 0) {
        ssize_t n = u->inner(u->context, u->input + u->end, INPUT_SIZE - u->end);
        if (n <= 0)
            break;
        u->end += (size_t)n;
    }
    if (!u->begun)
        u->at = text_size(u->input, u->end);
    u->begun = true;
    return take_rest(u, buf, size);
}

/* MARK: Zero bytes before the trace, as in a log that was truncated while it was being written */

#define ZEROS_LEAST 4
#define ZEROS_MOST  (UINT64_C(1) << 30)

static bool zeros_match(const uint8_t *data, size_t size)
{
    return size >= ZEROS_LEAST && is_zero(data, ZEROS_LEAST);
}

static ssize_t zeros_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    while (!u->begun && u->dumped <= ZEROS_MOST && more(u) > 0 && u->input[u->at] == 0) {
        const bool all = is_zero(u->input + u->at, u->end - u->at);
        const size_t zeros = all ? u->end - u->at : 1;
        u->at += zeros;
        u->dumped += zeros;
    }
    if (!u->begun)
        u->over = u->missing = u->dumped > ZEROS_MOST || more(u) <= 0;
    u->begun = true;
    return u->over ? 0 : take_rest(u, buf, size);
}

/* MARK: CRLF */

enum {
    CRLF_LEAST = 16, /* LFs */
    CRLF_MOST = 256, /* are looked at */
    CRLF_BEFORE = 4, /* different bytes before their CRs, at least */
    CRLF_ALONE = 8,  /* times as many CRs without an LF, at most */
};

/*
 * In a binary file, CRs precede all LFs only if a transfer added them, or if all LFs are in records
 * of one kind. Then the byte before is always the same, and most of the CRs have no LF: records of
 * 13 bytes of which some begin with the number 10.
 */
static bool crlf_matches(const uint8_t *data, size_t size)
{
    unsigned count = 0, before = 0, alone = 0;
    bool seen[256] = {false};
    for (size_t i = 2; i < size && count < CRLF_MOST; i++) {
        bool is_lf = data[i] == '\n';
        if (data[i - 1] != '\r') {
            if (is_lf)
                return false;
            continue;
        }
        alone += !is_lf;
        count += is_lf;
        before += is_lf && !seen[data[i - 2]];
        seen[data[i - 2]] |= is_lf;
    }
    return count >= CRLF_LEAST && before >= CRLF_BEFORE && alone <= CRLF_ALONE * count;
}

static ssize_t crlf_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = 0;
    while (n < size) {
        int c = get(u);
        if (c < 0)
            break;
        if (c == '\r' && more(u) > 0 && u->input[u->at] == '\n')
            c = u->input[u->at++];
        buf[n++] = (uint8_t)c;
    }
    u->over = n < size;
    return (ssize_t)n;
}

/* MARK: base64 */

static int base64_value(int c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c > 0 ? strchr(digits, c == '-' ? '+' : c == '_' ? '/' : c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* A trace, gzip, or zstd. */
static bool base64_matches(const uint8_t *data, size_t size)
{
    return size >= 8 && (memcmp(data, "Z28gMS4", 7) == 0 || memcmp(data, "H4sI", 4) == 0 ||
                         memcmp(data, "KLUv/", 5) == 0);
}

static ssize_t base64_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = 0;
    while (n < size) {
        int c = get(u);
        if (c < 0 || c == '=') {
            u->over = true;
            break;
        }
        int value = base64_value(c);
        if (value < 0)
            continue; /* line ends */
        u->bits = u->bits << 6 | (uint32_t)value;
        u->bit_count += 6;
        if (u->bit_count < 8)
            continue;
        u->bit_count -= 8;
        buf[n++] = (uint8_t)(u->bits >> u->bit_count);
    }
    return (ssize_t)n;
}

/* MARK: Hex dumps: of xxd, hexdump -C, od -t x1 -A x, or digits alone */

static bool digits_match(const uint8_t *data, size_t size)
{
    return size >= 10 && memcmp(data, "676f20312e", 10) == 0;
}

static bool hex_matches(const uint8_t *data, size_t size)
{
    static const char *const begins[] = {"67 6f 20 31 2e", "00000000: 676f 2031",
                                         "00000000: 67 6f 20 31", "00000000  67 6f 20 31",
                                         "000000 67 6f 20 31"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (size > strlen(begins[i]) && memcmp(data, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static ssize_t digits_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = 0;
    while (n < size) {
        int c = get(u), value = hex_digit((char)c);
        if (c < 0) {
            u->over = true;
            break;
        }
        if (value < 0)
            continue;
        u->bits = u->bits << 4 | (uint32_t)value;
        u->bit_count ^= 4;
        if (u->bit_count == 0)
            buf[n++] = (uint8_t)u->bits;
    }
    return (ssize_t)n;
}

/* Returns the next line without its end; false at the end of the input. */
static bool get_line(struct unwrap *u, char *line, size_t size)
{
    size_t n = 0;
    int c;
    while ((c = get(u)) >= 0 && c != '\n')
        if (n + 1 < size)
            line[n++] = (char)c;
    line[n] = '\0';
    return c >= 0 || n > 0;
}

/* Reads a line of a dump: an offset if a space or colon follows its digits, bytes, two spaces or
 * |. */
static ssize_t hex_line(const char *line, uint8_t *buf)
{
    size_t n = 0;
    size_t offset = strspn(line, "0123456789abcdef");
    if (offset >= 6 && (line[offset] == ':' || line[offset] == ' '))
        line += offset + (line[offset] == ':') + strspn(line + offset + (line[offset] == ':'), " ");
    else if (offset >= 6 && line[offset] == '\0' && offset < 10)
        return 0; /* the last line of hexdump has only the size */
    while (hex_digit(line[0]) >= 0 && hex_digit(line[1]) >= 0) {
        buf[n++] = (uint8_t)(hex_digit(line[0]) << 4 | hex_digit(line[1]));
        line += 2;
        bool column = line[0] == ' ' && line[1] == ' ' && n % 8 == 0 && n % 16 != 0;
        line += column ? 2 : line[0] == ' ' && line[1] != ' ';
    }
    return (ssize_t)n;
}

/* A trace does not repeat more equal bytes than this. */
#define HEX_MOST_REPEATED (UINT64_C(1) << 26)

/* The dump has "*" for the lines up to this offset, which are equal to the last one. */
static void hex_repeat(struct unwrap *u, const char *line)
{
    uint64_t offset = strtoull(line, NULL, 16);
    u->repeats = false;
    if (u->last_size > 0 && offset > u->dumped && offset - u->dumped <= HEX_MOST_REPEATED)
        u->left = offset - u->dumped;
}

static ssize_t hex_take_repeated(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = u->left < size ? (size_t)u->left : size;
    for (size_t i = 0; i < n; i++)
        buf[i] = u->last[(u->dumped + i) % u->last_size];
    u->left -= n;
    return (ssize_t)n;
}

/* `size` exceeds a line's bytes: a source reads in large pieces. */
static ssize_t hex_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    ssize_t n = 0;
    while (n == 0 && !u->over) {
        if (u->left > 0) {
            n = hex_take_repeated(u, buf, size);
            break;
        }
        u->over = size < HEX_LINE || (!u->line[0] && !get_line(u, u->line, HEX_LINE));
        if (u->over)
            break;
        if (u->line[0] == '*')
            u->repeats = true;
        else if (u->repeats)
            hex_repeat(u, u->line);
        if (u->left > 0)
            continue; /* and then the line */
        n = u->line[0] == '*' ? 0 : hex_line(u->line, buf);
        u->line[0] = '\0';
        u->last_size = n > 0 && (size_t)n <= sizeof u->last ? (size_t)n : u->last_size;
        if (n > 0 && (size_t)n == u->last_size)
            memcpy(u->last, buf, u->last_size);
    }
    u->dumped += n > 0 ? (uint64_t)n : 0;
    return n;
}

/* MARK: Chunks of HTTP */

static size_t chunk_size(const uint8_t *data, size_t size, uint64_t *bytes)
{
    size_t at = 0;
    *bytes = 0;
    for (; at < size && at < 15 && hex_digit((char)data[at]) >= 0; at++)
        *bytes = *bytes << 4 | (uint64_t)hex_digit((char)data[at]);
    return at > 0 && at + 1 < size && data[at] == '\r' && data[at + 1] == '\n' ? at + 2 : 0;
}

static bool chunks_matches(const uint8_t *data, size_t size)
{
    uint64_t bytes;
    size_t at = chunk_size(data, size, &bytes);
    return at > 0 && ((bytes >= 5 && size - at >= 5 && memcmp(data + at, "go 1.", 5) == 0) ||
                      compressed_matches(data + at, size - at));
}

static ssize_t chunks_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    if (u->left == 0) {
        char line[64];
        uint64_t bytes;
        if (u->begun)
            skip(u, 2);
        u->begun = true;
        bool good = get_line(u, line, sizeof line - 1);
        size_t length = strlen(line);
        line[length] = '\n';
        u->over = !good || chunk_size((const uint8_t *)line, length + 1, &bytes) == 0 || bytes == 0;
        if (u->over)
            return 0;
        u->left = bytes;
    }
    return take_part(u, buf, size);
}

/* MARK: A response of HTTP, with its header */

/* Returns the size of the header; 0 if there is none. */
static size_t header_size(const uint8_t *data, size_t size)
{
    if (size < 5 || memcmp(data, "HTTP/", 5) != 0)
        return 0;
    for (size_t at = 0; at + 4 <= size && data[at] != '\0'; at++)
        if (memcmp(data + at, "\r\n\r\n", 4) == 0)
            return at + 4;
    return 0;
}

static bool response_matches(const uint8_t *data, size_t size)
{
    size_t at = header_size(data, size);
    return at > 0 &&
           (chunks_matches(data + at, size - at) || compressed_matches(data + at, size - at));
}

static ssize_t response_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    static const char end[] = "\r\n\r\n";
    for (size_t i = 0; !u->begun && i < 4 && more(u) > 0;) {
        int c = get(u);
        i = c == end[i] ? i + 1 : c == '\r';
    }
    u->begun = true;
    return take_rest(u, buf, size);
}

/* MARK: Archives */

static bool get_all(struct unwrap *u, uint8_t *to, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int c = get(u);
        if (c < 0)
            return false;
        to[i] = (uint8_t)c;
    }
    return true;
}

static bool is_form(const uint8_t *data, size_t size);

/* Whether the bytes begin like a trace, be it plain, compressed or in another form. */
static bool is_trace(const uint8_t *head, size_t size)
{
    return size >= WIRE_HEADER_SIZE && (wire_header_parse(head) != 0 || is_form(head, size));
}

/* Copies from the start of the file, which has already been read. */
static ssize_t take_head(struct unwrap *u, uint8_t *buf, size_t size)
{
    size_t n = u->head_size - u->head_at;
    n = n < size ? n : size;
    memcpy(buf, u->head + u->head_at, n);
    u->head_at += n;
    return (ssize_t)n;
}

/* MARK: tar */

/* Returns the number in a header's octal digits, which blanks may precede. */
static uint64_t tar_number(const uint8_t *digits, size_t size)
{
    uint64_t number = 0;
    size_t i = 0;
    while (i < size && digits[i] == ' ')
        i++;
    for (; i < size && digits[i] >= '0' && digits[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(digits[i] - '0');
    return number;
}

/* A header contains the sum of its bytes; the eight bytes of the sum itself count as blanks. */
static bool tar_matches(const uint8_t *data, size_t size)
{
    uint64_t sum = 8 * (uint64_t)' ';
    if (size < TAR_BLOCK || memcmp(data + 257, "ustar", 5) != 0)
        return false;
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += i < 148 || i >= 156 ? data[i] : 0;
    return tar_number(data + 148, 8) == sum;
}

/* Finds the first file that is a trace. Returns false if there is none. */
static bool tar_find_file(struct unwrap *u)
{
    for (;;) {
        uint8_t header[TAR_BLOCK];
        if (!get_all(u, header, TAR_BLOCK) || !tar_matches(header, TAR_BLOCK))
            return false;
        uint64_t size = tar_number(header + 124, 12);
        bool is_file = header[156] == '0' || header[156] == '\0';
        u->head_size = !is_file ? 0 : size < sizeof u->head ? (size_t)size : sizeof u->head;
        if (!get_all(u, u->head, u->head_size))
            return false;
        u->left = size - u->head_size;
        if (is_trace(u->head, u->head_size))
            return true;
        skip(u, (size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK - u->head_size);
    }
}

static ssize_t tar_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    u->missing |= !u->begun && !tar_find_file(u);
    u->over = u->missing;
    u->begun = true;
    if (u->head_at < u->head_size && !u->over)
        return take_head(u, buf, size);
    u->over |= u->left == 0;
    return u->over ? 0 : take_part(u, buf, size);
}

/* MARK: zip */

#ifndef TRAIL_PLAIN_ONLY

enum { ZIP_HEADER = 30, ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* For all files before the trace whose headers lack their sizes: their ends are found only by
 * decompressing them. */
#define ZIP_MOST_PASSED (UINT64_C(1) << 30)

static bool zip_matches(const uint8_t *data, size_t size)
{
    return size >= ZIP_HEADER && memcmp(data, "PK\3\4", 4) == 0;
}

static uint32_t little(const uint8_t *at, unsigned bytes)
{
    uint32_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

/*
 * Returns bytes of the current file; 0 at its end. Sets u->damaged where the data are damaged: the
 * bytes before that are returned.
 */
static ssize_t zip_bytes(struct unwrap *u, uint8_t *buf, size_t size)
{
    int have = u->left > 0 || u->streamed ? more(u) : 0;
    if (have <= 0)
        return have;
    if (!u->inflating)
        return take_part(u, buf, size);
    size_t input = u->end - u->at;
    input = !u->streamed && u->left < input ? (size_t)u->left : input;
    u->z.next_in = u->input + u->at;
    u->z.avail_in = (uInt)input;
    u->z.next_out = buf;
    u->z.avail_out = size > INPUT_SIZE ? (uInt)INPUT_SIZE : (uInt)size;
    int result = inflate(&u->z, Z_NO_FLUSH);
    u->at += input - u->z.avail_in;
    u->left -= u->streamed ? 0 : input - u->z.avail_in;
    u->damaged = result != Z_OK && result != Z_BUF_ERROR && result != Z_STREAM_END;
    u->over = result == Z_STREAM_END;
    return u->z.next_out - buf;
}

/* Reads what follows the data of a file whose size was not known before: perhaps a mark, CRC, two
 * sizes. */
static void zip_take_descriptor(struct unwrap *u)
{
    uint8_t words[16];
    if (!get_all(u, words, 12))
        return;
    bool marked = memcmp(words, "PK\7\10", 4) == 0;
    if (marked)
        (void)get_all(u, words + 12, 4);
    u->right_crc = little(words + (marked ? 4 : 0), 4);
}

/* Skips the rest of a file that is not a trace. Returns false if its end cannot be found. */
static bool zip_pass(struct unwrap *u)
{
    uint8_t discarded[4096];
    if (!u->streamed) {
        skip(u, u->left);
        return true;
    }
    while (!u->over && u->passed < ZIP_MOST_PASSED) {
        ssize_t n = zip_bytes(u, discarded, sizeof discarded);
        if (n < 0 || u->damaged || (n == 0 && !u->over))
            return false;
        u->passed += (uint64_t)n;
    }
    zip_take_descriptor(u);
    return u->over;
}

/* Begins the next file. Returns false if there is none, or its method is not supported. */
static bool zip_begin_file(struct unwrap *u)
{
    uint8_t header[ZIP_HEADER];
    if (!get_all(u, header, ZIP_HEADER) || !zip_matches(header, ZIP_HEADER) || (header[6] & 1))
        return false;
    unsigned method = little(header + 8, 2);
    u->streamed = header[6] & 8;
    u->right_crc = little(header + 14, 4);
    u->left = little(header + 18, 4);
    skip(u, (uint64_t)little(header + 26, 2) + little(header + 28, 2));
    if (u->inflating)
        (void)inflateEnd(&u->z);
    u->z = (z_stream){0};
    u->inflating = method == ZIP_DEFLATED && inflateInit2(&u->z, -MAX_WBITS) == Z_OK;
    return u->inflating || (method == ZIP_STORED && !u->streamed);
}

/* Finds the first file that is a trace. Returns false if there is none. */
static bool zip_find_file(struct unwrap *u)
{
    while (zip_begin_file(u)) {
        u->over = false;
        for (u->head_size = 0; u->head_size < sizeof u->head && !u->over;) {
            ssize_t n = zip_bytes(u, u->head + u->head_size, sizeof u->head - u->head_size);
            if (n < 0)
                return false;
            u->head_size += (size_t)n;
            if (n == 0 || u->damaged)
                break;
        }
        if (is_trace(u->head, u->head_size))
            return true;
        if (!zip_pass(u))
            return false;
    }
    return false;
}

/* Checks a file at its end. */
static void zip_check(struct unwrap *u)
{
    if (u->streamed)
        zip_take_descriptor(u);
    u->damaged |= u->crc != u->right_crc;
}

static ssize_t zip_read(struct unwrap *u, uint8_t *buf, size_t size)
{
    bool ended = u->begun && u->over;
    if (!u->begun && !zip_find_file(u)) {
        u->over = u->missing = true;
        return 0;
    }
    u->begun = true;
    ssize_t n = u->head_at < u->head_size ? take_head(u, buf, size) : 0;
    if (n == 0 && !ended)
        n = zip_bytes(u, buf, size);
    if (n > 0)
        u->crc = (uint32_t)crc32(u->crc, buf, (uInt)n);
    bool whole = u->inflating ? u->over : u->left == 0;
    bool over = n <= 0 || (whole && u->head_at == u->head_size);
    if (over && whole && !u->damaged)
        zip_check(u);
    u->over = over;
    return n;
}

#endif

/* MARK: All forms */

static const struct unwrap_form forms[] = {
    {"CRLF line ends", true, crlf_matches, crlf_read},
    {"base64", false, base64_matches, base64_read},
    {"hex digits", false, digits_match, digits_read},
    {"hex dump", false, hex_matches, hex_read},
    {"HTTP chunks", false, chunks_matches, chunks_read},
    {"HTTP response", false, response_matches, response_read},
    {"tar", false, tar_matches, tar_read},
#ifndef TRAIL_PLAIN_ONLY
    {"zip", false, zip_matches, zip_read},
    {"compressed data", false, compressed_matches, take_rest},
#endif
    {"text", false, text_matches, text_read},
    {"zero bytes before it", false, zeros_match, zeros_read},
};

static bool is_form(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (!forms[i].of_trace && forms[i].matches != zeros_match && forms[i].matches(data, size))
            return true;
    return false;
}

const struct unwrap_form *unwrap_recognise(const uint8_t *data, size_t size,
                                           char name[UNWRAP_NAME_SIZE])
{
    const bool is_trace = size >= WIRE_HEADER_SIZE && wire_header_parse(data) != 0;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (is_trace != forms[i].of_trace || !forms[i].matches(data, size))
            continue;
        if (forms[i].matches == text_matches)
            (void)snprintf(name, UNWRAP_NAME_SIZE, "%zu bytes%s before it", text_size(data, size),
                           is_printed(data, text_size(data, size)) ? " of text" : "");
        else
            (void)snprintf(name, UNWRAP_NAME_SIZE, "%s", forms[i].name);
        return &forms[i];
    }
    return NULL;
}

bool unwrap_is_undecided(const uint8_t *data, size_t size)
{
    char name[UNWRAP_NAME_SIZE];
    if (size < WIRE_HEADER_SIZE)
        return true;
    return wire_header_parse(data) == 0 && !unwrap_recognise(data, size, name);
}

struct unwrap *unwrap_begin(const struct unwrap_form *form, trail_read_fn inner, void *context)
{
    struct unwrap *u = calloc(1, sizeof *u);
    if (!u)
        return NULL;
    u->form = form;
    u->inner = inner;
    u->context = context;
    return u;
}

ssize_t unwrap_read(void *unwrap, void *buf, size_t size)
{
    struct unwrap *u = unwrap;
    ssize_t n = 0;
    while (n == 0 && !u->over)
        n = u->form->read(u, buf, size);
    errno = u->failed                     ? EIO
            : u->damaged                  ? EBADMSG
            : u->form->read != zeros_read ? ENOMSG
            : u->dumped > ZEROS_MOST      ? EFBIG
                                          : ENXIO;
    return n == 0 && (u->failed || u->damaged || u->missing) ? -1 : n;
}

void unwrap_end(struct unwrap *u)
{
    if (!u)
        return;
#ifndef TRAIL_PLAIN_ONLY
    if (u->inflating)
        (void)inflateEnd(&u->z);
#endif
    free(u);
}
