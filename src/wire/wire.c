/* Tables of event types, from v1.def and v2.def. */
#include "wire/wire.h"

#include <stdio.h>
#include <string.h>

const struct wire_version wire_versions[] = {
    {5, "go 1.5 trace", "Go 1.5-1.6"},
    {7, "go 1.7 trace", "Go 1.7"},
    {8, "go 1.8 trace", "Go 1.8"},
    {9, "go 1.9 trace", "Go 1.9"},
    {10, "go 1.10 trace", "Go 1.10"},
    {11, "go 1.11 trace", "Go 1.11-1.18"},
    {19, "go 1.19 trace", "Go 1.19-1.20"},
    {21, "go 1.21 trace", "Go 1.21"},
    {22, "go 1.22 trace", "Go 1.22"},
    {23, "go 1.23 trace", "Go 1.23-1.24"},
    {25, "go 1.25 trace", "Go 1.25"},
    {26, "go 1.26 trace", "Go 1.26-1.27"},
    {0, "", NULL},
};

const uint8_t *wire_header(int minor)
{
    for (const struct wire_version *v = wire_versions; v->minor; v++)
        if (v->minor == minor)
            return v->header;
    return NULL;
}

/* Returns N of a NUL-padded header "go 1.N trace", N at most 999; 0 if it is not one. */
static int header_minor(const uint8_t header[WIRE_HEADER_SIZE])
{
    char text[2 * WIRE_HEADER_SIZE] = {0};
    int minor = 0;
    size_t i = 5;
    for (; i < 8 && header[i] >= '0' && header[i] <= '9'; i++)
        minor = minor * 10 + (header[i] - '0');
    (void)snprintf(text, sizeof text, "go 1.%d trace", minor);
    return memcmp(header, text, WIRE_HEADER_SIZE) == 0 ? minor : 0;
}

int wire_header_parse(const uint8_t header[WIRE_HEADER_SIZE])
{
    int minor = header_minor(header);
    return wire_header(minor) ? minor : -minor;
}

const struct v1_type_info v1_types[V1_TYPES] = {
#define V1_EVENT(number, name_, since_, args_, stack_, arg_names, text_names)                      \
    [number] = {.name = #name_,                                                                    \
                .arg = arg_names,                                                                  \
                .text = text_names,                                                                \
                .since = since_,                                                                   \
                .args = args_,                                                                     \
                .stack = stack_},
#include "wire/v1.def"
};

unsigned v1_arg_count(unsigned type, int minor)
{
    unsigned count = (unsigned)v1_types[type].args + v1_types[type].stack;
    switch (type) {
    case V1_GCSweepDone:
        return minor < 9 ? count - 2 : count;
    case V1_GCStart:
    case V1_GoStart:
    case V1_GoUnblock:
        return minor < 7 ? count - 1 : count;
    case V1_STWStart:
        return minor < 10 ? count - 1 : count;
    case V1_Batch:
    case V1_Frequency:
    case V1_TimerGoroutine:
        return minor < 7 ? count + 1 : count;
    default:
        return count;
    }
}

unsigned v1_time_fields(unsigned type, int minor)
{
    switch (type) {
    case V1_Batch:
    case V1_Frequency:
    case V1_Stack:
    case V1_TimerGoroutine:
    case V1_String:
        return 0;
    default:
        return minor < 7 ? 2 : 1;
    }
}

const char *v1_number_name(unsigned type, int minor, unsigned i)
{
    static const char *const batch_1_5[] = {"p", "seq", "ticks"};
    if (type == V1_String)
        return i == 0 ? "id" : NULL;
    unsigned times = v1_time_fields(type, minor), count = v1_arg_count(type, minor);
    if (i < times)
        return i + 1 == times ? "dt" : "dseq";
    i -= times;
    if (i >= count)
        return NULL;
    if (minor < 7 && type == V1_Batch)
        return batch_1_5[i];
    if (minor < 7 && type == V1_GoCreate && i == 1)
        return "pc";
    if (i + 1 == count && v1_types[type].stack)
        return "stk";
    return i < v1_types[type].args ? v1_types[type].arg[i] : "unused";
}

const char *v1_stw_kind(uint64_t kind, int minor)
{
    static const char *const before_21[] = {"mark termination", "sweep termination"};
    static const char *const from_21[] = {
        "unknown",
        "GC mark termination",
        "GC sweep termination",
        "write heap dump",
        "goroutine profile",
        "goroutine profile cleanup",
        "all goroutines stack trace",
        "read mem stats",
        "AllThreadsSyscall",
        "GOMAXPROCS",
        "start trace",
        "stop trace",
        "CountPagesInUse (test)",
        "ReadMetricsSlow (test)",
        "ReadMemStatsSlow (test)",
        "PageCachePagesLeaked (test)",
        "ResetDebugLog (test)",
    };
    if (minor < 21)
        return kind < 2 ? before_21[kind] : NULL;
    return kind < sizeof from_21 / sizeof *from_21 ? from_21[kind] : from_21[0];
}

const struct v2_type_info v2_types[V2_TYPES] = {
#define V2_EVENT(number, name_, since_, class_, args_, ...)                                        \
    [number] = {.name = #name_,                                                                    \
                .arg = {__VA_ARGS__},                                                              \
                .since = since_,                                                                   \
                .class = V2_CLASS_##class_,                                                        \
                .args = args_},
#include "wire/v2.def"
};
