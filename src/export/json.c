#include "export/json.h"

#include "base/quote.h"

static void put_escape(struct out *out, uint8_t c)
{
    switch (c) {
    case '"':
        out_str(out, "\\\"");
        break;
    case '\\':
        out_str(out, "\\\\");
        break;
    case '\n':
        out_str(out, "\\n");
        break;
    case '\r':
        out_str(out, "\\r");
        break;
    case '\t':
        out_str(out, "\\t");
        break;
    default:
        out_str(out, "\\u00");
        out_hex(out, c, 2);
        break;
    }
}

static inline bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

bool json_put_text(struct out *out, trail_string text)
{
    const uint8_t *at = (const uint8_t *)text.data, *end = at + text.size;
    bool valid = true;
    out_char(out, '"');
    while (at < end) {
        const uint8_t *plain = at;
        while (plain < end && is_plain(*plain))
            plain++;
        out_bytes(out, at, (size_t)(plain - at));
        at = plain;
        if (at == end)
            break;
        uint32_t rune;
        unsigned n = utf8_decode(at, end, &rune);
        if (n == 0) {
            out_str(out, "\xef\xbf\xbd");
            valid = false;
        } else if (n == 1) {
            put_escape(out, *at);
        } else {
            out_bytes(out, at, n);
        }
        at += n ? n : 1;
    }
    out_char(out, '"');
    return valid;
}
