/* Fields of comma-separated values. */
#include "base/csv.h"

#include <ctype.h>

static size_t skip_digits(const char *data, size_t size, size_t at)
{
    while (at < size && isdigit((unsigned char)data[at]))
        at++;
    return at;
}

/* Whether it is a number to every CSV reader: "-12", "+0.5", "1e-9". */
static bool is_number(const char *data, size_t size)
{
    size_t at = size > 0 && (data[0] == '-' || data[0] == '+'), digits = at;
    at = skip_digits(data, size, at);
    bool any = at > digits;
    if (at < size && data[at] == '.') {
        digits = ++at;
        at = skip_digits(data, size, at);
        any = any || at > digits;
    }
    if (any && at < size && (data[at] == 'e' || data[at] == 'E')) {
        at++;
        at += at < size && (data[at] == '-' || data[at] == '+');
        digits = at;
        at = skip_digits(data, size, at);
        any = at > digits;
    }
    return any && at == size;
}

/* Whether a spreadsheet would evaluate it as a formula. */
static bool is_computed(const char *data, size_t size)
{
    static const char begins[] = "=+-@\t\r\n";
    size_t at = 0;
    while (at < size && data[at] == ' ')
        at++;
    return at < size && memchr(begins, data[at], sizeof begins - 1) && !is_number(data, size);
}

void out_csv(struct out *out, const char *data, size_t size, enum csv_style style)
{
    bool quoted = size == 0;
    for (size_t i = 0; i < size && !quoted; i++)
        quoted = data[i] == ',' || data[i] == '"' || data[i] == '\n' || data[i] == '\r';
    if (quoted)
        out_char(out, '"');
    if (style == CSV_SAFE && is_computed(data, size))
        out_char(out, '\'');
    if (!quoted) {
        out_bytes(out, data, size);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '"')
            out_char(out, '"');
        out_char(out, data[i]);
    }
    out_char(out, '"');
}
