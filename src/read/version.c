/* Checks the header of a trace (§0.1), in the same way for readers, walks and records. */
#include <string.h>

#include "base/error.h"
#include "read/reader.h"
#include "read/source.h"
#include "wire/wire.h"

/* What else the file is, with what to do; "" if that is unknown. */
static const char *other_kind(const uint8_t *header)
{
    static const struct {
        const char *begin, *what;
    } kinds[] = {
        {"BZh", ": decompress it with bunzip2"},
        {"7z\xbc\xaf", ": unpack it with 7z"},
        {"Rar!", ": unpack it with unrar"},
        {"\x04\"M\x18", ": decompress it with lz4"},
        {"\xff\xfe", ": it is UTF-16 text, as a redirection in PowerShell writes it"},
        {"0000000 ", ": it is a dump; trail reads those of xxd and hexdump -C"},
        {"begin ", ": decode it with uudecode"},
        {"-----BEGIN ", ": remove the lines around the base64"},
        {"data:", ": remove what precedes the base64"},
        {"PERFILE2", ": trail import reads what perf recorded"},
        {"\177ELF", ": it is a program or library"},
        {"<!", ": it is HTML or XML"},
        {"<html", ": it is HTML"},
        {"<?xml", ": it is XML"},
        {"{\"", ": it is JSON"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (memcmp(header, kinds[i].begin, strlen(kinds[i].begin)) == 0)
            return kinds[i].what;
    return "";
}

int reader_peek_version(trail_source *source, trail_error *err)
{
    uint8_t header[WIRE_HEADER_SIZE];
    ssize_t n = source_peek(source, header, sizeof header, err);
    if (n < 0)
        return -1;
    if (n < WIRE_HEADER_SIZE) {
        error_set(
            err, TRAIL_NOT_A_TRACE,
            n == 0
                ? "the input is empty: not a Go execution trace"
                : "the input ends after %zd of the 16 bytes of a header: not a Go execution trace",
            n);
        if (err)
            err->offset = 0;
        return -1;
    }
    return reader_version(header, err);
}

int reader_version(const uint8_t *header, trail_error *err)
{
    int version = wire_header_parse(header);
    if (version > 0)
        return version;
    if (version == 0)
        error_set(err, TRAIL_NOT_A_TRACE, "bad file format: not a Go execution trace%s",
                  other_kind(header));
    else
        error_set(err, TRAIL_UNSUPPORTED,
                  "unknown or unsupported trace version go 1.%d (known: 1.5 to 1.26)", -version);
    if (err)
        err->offset = 0;
    return -1;
}
