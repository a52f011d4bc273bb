/* Counts, sizes, percentages and wall-clock times as text. */
#include "base/show.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *show_thousands(char *buf, uint64_t count)
{
    char digits[24], *to = buf;
    int size = snprintf(digits, sizeof digits, "%" PRIu64, count);
    for (int i = 0; i < size; i++) {
        if (i > 0 && (size - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return buf;
}

const char *show_bytes(char *buf, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned i = 0;
    double value = (double)bytes;
    for (; value >= 1024 && i < 6; i++)
        value /= 1024;
    if (i == 0)
        (void)snprintf(buf, SHOW_SIZE, "%" PRIu64 "%s", bytes, bytes == 1 ? " byte" : " bytes");
    else
        (void)snprintf(buf, SHOW_SIZE, value < 10 ? "%.2f %s" : "%.1f %s", value, units[i]);
    return buf;
}

const char *show_percent(char *buf, double percent)
{
    (void)snprintf(buf, SHOW_SIZE, "%.1f %%", percent);
    if (strcmp(buf, "100.0 %") == 0)
        (void)snprintf(buf, SHOW_SIZE, "100 %%");
    return buf;
}

const char *show_wall(char *buf, int64_t s, uint32_t ns)
{
    time_t seconds = (time_t)s;
    struct tm tm;
    char text[40];
    if (gmtime_r(&seconds, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm) > 0)
        (void)snprintf(buf, SHOW_SIZE, "%s.%09" PRIu32 " UTC", text, ns);
    else
        (void)snprintf(buf, SHOW_SIZE, "%" PRId64 " s after 1970", s);
    return buf;
}
