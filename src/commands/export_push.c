#include "commands/export_push.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#include "import/proto_read.h"

/* The numbers of the options and results used from libcurl's ABI, which never change. */
enum {
    CURL_WRITEDATA = 10001,
    CURL_URL = 10002,
    CURL_ERRORBUFFER = 10010,
    CURL_POSTFIELDS = 10015,
    CURL_HTTPHEADER = 10023,
    CURL_WRITEFUNCTION = 20011,
    CURL_POSTFIELDSIZE_LARGE = 30120,
    CURL_NOSIGNAL = 99,
    CURL_TIMEOUT_MS = 155,
    CURL_CONNECTTIMEOUT_MS = 156,
    CURLINFO_TYPE = 0x100012,
    CURLINFO_STATUS = 0x200002,
    CURLINFO_RETRY = 0x600039,
    CURL_WRITE_ERROR = 23 /* take_reply has refused to take more */
};

#define CURL_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(void *, easy_init, (void))                                                            \
    FUNCTION(int, easy_setopt, (void *handle, int option, ...))                                    \
    FUNCTION(int, easy_getinfo, (void *handle, int info, ...))                                     \
    FUNCTION(int, easy_perform, (void *handle))                                                    \
    FUNCTION(void, easy_cleanup, (void *handle))                                                   \
    FUNCTION(const char *, easy_strerror, (int code))                                              \
    FUNCTION(void *, slist_append, (void *list, const char *text))                                 \
    FUNCTION(void, slist_free_all, (void *list))

/* Waits like OpenTelemetry's SDKs: 1 s, 2 s, 4 s, ...; a collector may ask for more. */
enum { TRIES = 6, FIRST_WAIT_S = 1, MOST_WAIT_S = 60, TIMEOUT_MS = 30000, CONNECT_MS = 10000 };
/* Collectors answer with a few bytes. */
enum { REPLY_SIZE = 1024, MOST_ANSWERED = 1 << 20 };

static const char *const content_types[] = {
    [PUSH_PROTOBUF] = "application/x-protobuf",
    [PUSH_JSON] = "application/json",
};

struct push {
    struct curl {
#define CURL_POINTER(result, name, arguments) result(*name) arguments;
        CURL_FUNCTIONS(CURL_POINTER)
#undef CURL_POINTER
    } curl;
    void *handle, *headers;
    char *url;
    char reply[REPLY_SIZE];      /* the beginning of the collector's answer */
    size_t reply_size, answered; /* bytes kept, and bytes received */
    char error[256];             /* CURL_ERROR_SIZE */
    bool gzip;
    bool failed;
};

/* MARK: libcurl */

static bool load(struct curl *curl)
{
    static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    void *library = NULL;
    if (TRAIL_IS_STATIC) {
        print_message(STATIC_LACKS("libcurl", "--endpoint"));
        return false;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        print_message("--endpoint needs libcurl (libcurl.so.4, Debian's package libcurl4)");
        return false;
    }
    void *symbol;
#define CURL_FIND(result, name, arguments)                                                         \
    symbol = dlsym(library, "curl_" #name);                                                        \
    memcpy(&curl->name, &symbol, sizeof symbol);                                                   \
    if (!symbol) {                                                                                 \
        print_message("this libcurl has no curl_" #name);                                          \
        return false;                                                                              \
    }
    CURL_FUNCTIONS(CURL_FIND)
#undef CURL_FIND
    return true;
}

/* Keeps the beginning of the reply. Fails if the reply is too long. */
static size_t take_reply(char *data, size_t one, size_t size, void *context)
{
    struct push *push = context;
    size_t room = sizeof push->reply - 1 - push->reply_size, part = size < room ? size : room;
    (void)one;
    memcpy(push->reply + push->reply_size, data, part);
    push->reply_size += part;
    push->answered += size;
    return push->answered <= MOST_ANSWERED ? size : 0;
}

/* MARK: Requests */

/*
 * Returns the number of seconds after which to resend a message (OTLP specification, "Failures"):
 * `own_s`, or what the collector asks for if that is more; 0: do not resend.
 */
static long pause_before(const struct push *push, int result, long status, long own_s)
{
    int64_t asked_s = 0;
    if (result == CURL_WRITE_ERROR ||
        (result == 0 && status != 429 && status != 502 && status != 503 && status != 504))
        return 0;
    if (result == 0)
        (void)push->curl.easy_getinfo(push->handle, CURLINFO_RETRY, &asked_s);
    if (asked_s > MOST_WAIT_S)
        asked_s = MOST_WAIT_S;
    return asked_s > own_s ? (long)asked_s : own_s;
}

static void report(const struct push *push, int result, long status, const char *then)
{
    int size = (int)strcspn(push->reply, "\r\n");
    if (result == CURL_WRITE_ERROR)
        print_message("%s: the answer is longer than 1 MiB", push->url);
    else if (result != 0)
        print_message("%s: %s%s", push->url,
                      *push->error ? push->error : push->curl.easy_strerror(result), then);
    else
        print_message("%s: HTTP status %ld%s%.*s%s", push->url, status, size > 0 ? ": " : "", size,
                      push->reply, then);
}

static void report_and_wait(const struct push *push, int result, long status, long pause_s)
{
    char then[64];
    (void)snprintf(then, sizeof then, "; trying again in %ld s", pause_s);
    report(push, result, status, then);
    (void)nanosleep(&(struct timespec){.tv_sec = pause_s}, NULL);
}

/* Moves the text, which is a part of the reply, to the reply's beginning. */
static void keep_text(struct push *push, const struct proto *text)
{
    push->reply_size = (size_t)(text->end - text->at);
    memmove(push->reply, text->at, push->reply_size);
    push->reply[push->reply_size] = '\0';
}

/* Returns the last field of a message with that number; empty if there is none. */
static struct proto part_of(struct proto message, uint32_t id)
{
    struct proto part = {.at = message.end, .end = message.end};
    struct proto_field field;
    while (proto_next(&message, &field))
        if (field.id == id && field.type == PROTO_BYTES)
            part = field.bytes;
    return part;
}

static uint64_t number_of(struct proto message, uint32_t id)
{
    struct proto_field field;
    uint64_t number = 0;
    while (proto_next(&message, &field))
        if (field.id == id && field.type == PROTO_NUMBER)
            number = field.number;
    return number;
}

/*
 * Whether the collector rejected some although it reported success. Of such a reply, and of an
 * error, only the text is kept.
 *
 *     ExportTraceServiceResponse: 1 partial_success: 1 rejected_spans, 2 error_message
 *     ExportMetricsServiceResponse: 1 partial_success: 1 rejected_data_points, 2 error_message
 *     Status, of errors: 2 message
 */
static bool read_protobuf(struct push *push, bool success)
{
    const uint8_t *begin = (const uint8_t *)push->reply;
    struct proto reply = {.at = begin, .end = begin + push->reply_size}, text;
    if (success)
        reply = part_of(reply, 1);
    bool rejected = success && number_of(reply, 1) > 0;
    text = part_of(reply, 2);
    keep_text(push, &text);
    return rejected;
}

static bool read_json(const struct push *push)
{
    static const char *const keys[] = {"\"rejectedSpans\"", "\"rejectedDataPoints\""};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const char *at = strstr(push->reply, keys[i]);
        at = at ? at + strlen(keys[i]) : "";
        at += strspn(at, " :\"");
        if (*at >= '1' && *at <= '9')
            return true;
    }
    return false;
}

/* Returns whether it reports that some were rejected. */
static bool read_reply(struct push *push, bool success)
{
    const char *type = NULL, *protobuf = content_types[PUSH_PROTOBUF];
    (void)push->curl.easy_getinfo(push->handle, CURLINFO_TYPE, &type);
    push->reply[push->reply_size] = '\0';
    return type && strncmp(type, protobuf, strlen(protobuf)) == 0 ? read_protobuf(push, success)
                                                                  : success && read_json(push);
}

/* Returns the gzipped data, which the caller frees; NULL if out of memory. */
static void *compressed(const void *data, size_t size, size_t *compressed_size)
{
    enum { GZIP = 15 + 16, MEMORY = 8 };
    z_stream z = {0};
    void *to = NULL;
    if (size <= UINT32_MAX / 2 && deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP, MEMORY,
                                               Z_DEFAULT_STRATEGY) == Z_OK) {
        uLong most = deflateBound(&z, (uLong)size);
        to = malloc(most);
        z.next_in = (void *)(uintptr_t)data;
        z.avail_in = (uInt)size;
        z.next_out = to;
        z.avail_out = (uInt)most;
        if (to && deflate(&z, Z_FINISH) != Z_STREAM_END) {
            free(to);
            to = NULL;
        }
        *compressed_size = z.total_out;
        (void)deflateEnd(&z);
    }
    return to;
}

/* Sends a message. Returns false after a message on stderr. */
static bool send_message(struct push *push, const void *data, size_t size)
{
    long own_s = FIRST_WAIT_S, status = 0;
    int result = 0;
    (void)push->curl.easy_setopt(push->handle, CURL_POSTFIELDS, data);
    (void)push->curl.easy_setopt(push->handle, CURL_POSTFIELDSIZE_LARGE, (int64_t)size);
    for (int i = 0; i < TRIES; i++, own_s *= 2) {
        push->reply_size = push->answered = 0;
        *push->error = '\0';
        result = push->curl.easy_perform(push->handle);
        (void)push->curl.easy_getinfo(push->handle, CURLINFO_STATUS, &status);
        bool success = result == 0 && status >= 200 && status < 300;
        bool rejected = read_reply(push, success);
        if (success) {
            if (!rejected)
                return true;
            print_message("%s: not everything was accepted: %s", push->url, push->reply);
            return false;
        }
        long pause_s = pause_before(push, result, status, own_s);
        if (pause_s == 0 || i + 1 == TRIES)
            break;
        report_and_wait(push, result, status, pause_s);
    }
    report(push, result, status, "");
    return false;
}

/* MARK: The sink */

static bool write_message(void *context, const void *data, size_t size)
{
    struct push *push = context;
    void *small = push->gzip && !push->failed ? compressed(data, size, &size) : NULL;
    if (push->gzip && !small && !push->failed) {
        print_message("%s: no memory to compress a message", push->url);
        push->failed = true;
    }
    push->failed = push->failed || !send_message(push, small ? small : data, size);
    free(small);
    errno = EIO;
    return !push->failed;
}

trail_sink push_sink(struct push *push)
{
    return (trail_sink){.write = write_message, .context = push};
}

/* Adds the path of OTLP/HTTP to an address without one. */
static char *url_of(const char *endpoint, bool metrics)
{
    const char *host = strstr(endpoint, "://"), *path = host ? strchr(host + 3, '/') : NULL;
    bool whole = path && path[1] != '\0';
    char *url = NULL;
    if (!host || asprintf(&url, "%.*s%s",
                          whole || !path ? (int)strlen(endpoint) : (int)(path - endpoint), endpoint,
                          whole     ? ""
                          : metrics ? "/v1/metrics"
                                    : "/v1/traces") < 0)
        return NULL;
    return url;
}

static bool add_header(struct push *push, const char *key, const char *value)
{
    char *text = NULL;
    if (asprintf(&text, "%s: %s", key, value) < 0)
        return false;
    void *list = push->curl.slist_append(push->headers, text);
    free(text);
    if (list)
        push->headers = list;
    return list != NULL;
}

static bool set_options(struct push *push, const struct push_options *options)
{
    const struct pairs *headers = &options->headers;
    long timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : TIMEOUT_MS;
    bool good = add_header(push, "Content-Type", content_types[options->form]);
    good = good && (!options->gzip || add_header(push, "Content-Encoding", "gzip"));
    for (size_t i = 0; i < headers->count && good; i++)
        good = add_header(push, headers->items[i].key, headers->items[i].value);
    const struct curl *curl = &push->curl;
    return good && curl->easy_setopt(push->handle, CURL_URL, push->url) == 0 &&
           curl->easy_setopt(push->handle, CURL_HTTPHEADER, push->headers) == 0 &&
           curl->easy_setopt(push->handle, CURL_ERRORBUFFER, push->error) == 0 &&
           curl->easy_setopt(push->handle, CURL_WRITEFUNCTION, take_reply) == 0 &&
           curl->easy_setopt(push->handle, CURL_WRITEDATA, push) == 0 &&
           curl->easy_setopt(push->handle, CURL_NOSIGNAL, 1L) == 0 &&
           curl->easy_setopt(push->handle, CURL_TIMEOUT_MS, timeout_ms) == 0 &&
           curl->easy_setopt(push->handle, CURL_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == 0;
}

static void push_free(struct push *push)
{
    if (push->handle)
        push->curl.easy_cleanup(push->handle);
    if (push->headers)
        push->curl.slist_free_all(push->headers);
    free(push->url);
    free(push);
}

struct push *push_begin(const char *endpoint, const struct push_options *options)
{
    struct push *push = calloc(1, sizeof *push);
    if (!push || !load(&push->curl)) {
        free(push);
        return NULL;
    }
    push->gzip = options->gzip;
    push->url = url_of(endpoint, options->metrics);
    push->handle = push->url ? push->curl.easy_init() : NULL;
    if (push->handle && set_options(push, options))
        return push;
    print_message("--endpoint=%s: %s", endpoint,
                  push->url ? "no memory" : "this must be an address like http://localhost:4318");
    push_free(push);
    return NULL;
}

int push_end(struct push *push)
{
    int code = push->failed ? EXIT_INOUT : EXIT_GOOD;
    push_free(push);
    return code;
}
