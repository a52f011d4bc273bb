/* Checks the header of a trace (§0.1), in the same way for readers, walks and records. */
#include "base/error.h"
#include "read/reader.h"
#include "read/source.h"
#include "wire/wire.h"

int reader_peek_version(trail_source *source, trail_error *err)
{
    uint8_t header[WIRE_HEADER_SIZE];
    ssize_t n = source_peek(source, header, sizeof header, err);
    if (n < 0)
        return -1;
    if (n < WIRE_HEADER_SIZE) {
        error_set(err, TRAIL_NOT_A_TRACE,
                  n == 0 ? "the input is empty: not a Go execution trace"
                         : "failed to read header: only %zd of 16 bytes: not a Go execution trace",
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
        error_set(err, TRAIL_NOT_A_TRACE, "bad file format: not a Go execution trace");
    else
        error_set(err, TRAIL_UNSUPPORTED,
                  "unknown or unsupported trace version go 1.%d (known: 1.5 to 1.26)", -version);
    if (err)
        err->offset = 0;
    return -1;
}
