/* HTTP: access control, requests and replies, by libmicrohttpd. */
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "serve/gate.h"
#include "serve/http_library.h"
#include "serve/location.h"

enum { IDLE_SECONDS = 60, MEMORY_EACH = 64 << 10, STACK_EACH = 512 << 10 };

/* libmicrohttpd's limit: connections that the gate has shut are closed a little later. */
enum { CONNECTIONS = 2 * GATE_PLACES };

struct http {
    struct http_options options;
    struct gate *gate;
    struct MHD_Daemon *daemon;
    uint16_t port; /* atomic: serving threads start before it is known */
    char token[HTTP_TOKEN_SIZE + 1];
    int64_t last_request; /* atomic */
};

const char *http_query(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

struct walk {
    bool (*each)(void *context, const char *name);
    void *context;
};

static enum MHD_Result visit(void *context, enum MHD_ValueKind kind, const char *name,
                             const char *value)
{
    const struct walk *walk = context;
    (void)kind;
    (void)value;
    return walk->each(walk->context, name) ? MHD_YES : MHD_NO;
}

void http_each_query(const struct http_request *request,
                     bool (*each)(void *context, const char *name), void *context)
{
    struct walk walk = {each, context};
    (void)MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, visit, &walk);
}

static const char *header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

bool http_takes_gzip(const struct http_request *request)
{
    const char *accept = header(request->connection, "Accept-Encoding");
    return accept && strstr(accept, "gzip") && !strstr(accept, "gzip;q=0");
}

bool http_is_gone(const struct http_request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct pollfd fd = {.events = POLLRDHUP};
    if (!info)
        return false;
    fd.fd = info->connect_fd;
    return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* MARK: Access control */

/* Whether `text` is `host`, optionally with a port. */
static bool is_host(const char *text, const char *host)
{
    size_t size = strlen(host);
    if (strncasecmp(text, host, size) != 0)
        return false;
    text += size;
    if (*text == '\0')
        return true;
    return *text == ':' && text[1 + strspn(text + 1, "0123456789")] == '\0';
}

/* Whether it is a numeric address: unlike with a name, no other site can point it here. */
static bool is_address(const char *host)
{
    size_t size =
        *host == '[' ? strspn(host + 1, "0123456789abcdefABCDEF:.") : strspn(host, "0123456789.");
    const char *rest = host + size;
    if (*host == '[')
        rest += rest[1] == ']' ? 2 : 0;
    return size > 0 && (*rest == '\0' || *rest == ':') && rest[strspn(rest, ":0123456789")] == '\0';
}

static bool is_everywhere(const char *served)
{
    return strcmp(served, "0.0.0.0") == 0 || strcmp(served, "[::]") == 0;
}

static bool is_known_host(const struct http *http, const char *host)
{
    const char *served = http->options.host;
    return host &&
           (is_host(host, "localhost") || is_host(host, "127.0.0.1") || is_host(host, "[::1]") ||
            (served && (is_host(host, served) || (is_everywhere(served) && is_address(host)))));
}

static bool is_same_origin(const char *origin, const char *host)
{
    static const char scheme[] = "http://";
    return !origin || (strncmp(origin, scheme, sizeof scheme - 1) == 0 &&
                       strcasecmp(origin + sizeof scheme - 1, host) == 0);
}

/* Compares in constant time. */
static bool is_token(const struct http *http, const char *text)
{
    unsigned differ = 0;
    if (!text || strlen(text) != HTTP_TOKEN_SIZE)
        return false;
    for (size_t i = 0; i < HTTP_TOKEN_SIZE; i++)
        differ |= (unsigned char)text[i] ^ (unsigned char)http->token[i];
    return differ == 0;
}

/* Cookies are shared by all ports of a host, so each server uses a name of its own. */
static void cookie_name(const struct http *http, char name[24])
{
    (void)snprintf(name, 24, "trail-%u", http_port(http));
}

static bool is_guest(const struct http *http, const char *origin)
{
    return origin && http->options.guest && strcmp(origin, http->options.guest) == 0;
}

static bool asks_with_token(const struct http *http, struct MHD_Connection *connection)
{
    return is_token(http, MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "token"));
}

static bool has_token(const struct http *http, struct MHD_Connection *connection)
{
    static const char bearer[] = "Bearer ";
    const char *authorization = header(connection, "Authorization");
    char name[24];
    cookie_name(http, name);
    if (is_token(http, MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, name)))
        return true;
    return authorization && strncmp(authorization, bearer, sizeof bearer - 1) == 0 &&
           is_token(http, authorization + sizeof bearer - 1);
}

/* MARK: The gate */

/* Called by libmicrohttpd when a connection begins or ends. */
static void notice(void *context, struct MHD_Connection *connection, void **place,
                   enum MHD_ConnectionNotificationCode code)
{
    struct http *http = context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        gate_leave(http->gate, *place);
        *place = NULL;
    } else if (info) {
        *place = gate_enter(http->gate, info->connect_fd);
    }
}

static void mark_known(const struct http *http, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (info)
        gate_know(http->gate, info->socket_context);
}

/* MARK: Answers */

static enum MHD_Result reply(struct MHD_Connection *connection, const struct http_answer *answer,
                             const char *extra, const char *extra_value)
{
    static const char *const headers[][2] = {
        {"Content-Security-Policy",
         "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; "
         "connect-src 'self'; img-src 'self' data: blob:; worker-src 'self'; frame-src 'self'; "
         "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"},
        {"X-Content-Type-Options", "nosniff"},
        {"Referrer-Policy", "no-referrer"},
        {"Cross-Origin-Resource-Policy", "same-origin"},
        {"Cross-Origin-Opener-Policy", "same-origin"},
    };
    struct MHD_Response *response = MHD_create_response_from_buffer(
        answer->size, (void *)(uintptr_t)answer->data,
        answer->free_data ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) {
        if (answer->free_data)
            free((void *)(uintptr_t)answer->data);
        return MHD_NO;
    }
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        (void)MHD_add_response_header(response, headers[i][0], headers[i][1]);
    (void)MHD_add_response_header(response, "Content-Type",
                                  answer->type ? answer->type : "text/plain; charset=utf-8");
    (void)MHD_add_response_header(response, "Cache-Control",
                                  answer->immutable ? "private, max-age=31536000, immutable"
                                                    : "no-store");
    if (answer->gzip)
        (void)MHD_add_response_header(response, "Content-Encoding", "gzip");
    if (extra)
        (void)MHD_add_response_header(response, extra, extra_value);
    enum MHD_Result result =
        MHD_queue_response(connection, answer->status ? answer->status : MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text)
{
    struct http_answer answer = {.status = status, .data = text, .size = strlen(text)};
    return reply(connection, &answer, status == MHD_HTTP_METHOD_NOT_ALLOWED ? "Allow" : NULL,
                 "GET, HEAD");
}

/*
 * Called with a request's target as it was sent, which libmicrohttpd then decodes in place. Returns
 * the request's state: a copy of the query if the path is that of the first URL, NULL for other
 * requests.
 */
static void *keep_query(void *context, const char *target, struct MHD_Connection *connection)
{
    (void)context;
    (void)connection;
    return strncmp(target, "/?", 2) == 0 ? strdup(target + 1) : NULL;
}

static void drop_query(void *context, struct MHD_Connection *connection, void **query,
                       enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)connection;
    (void)code;
    free(*query);
}

/* Answers the first URL: moves the token from the address to a cookie, by a redirection. */
static enum MHD_Result welcome(const struct http *http, struct MHD_Connection *connection,
                               const char *query)
{
    char name[24], cookie[128], location[LOCATION_SIZE];
    unsigned status = location_without_token(query, location);
    if (status != MHD_HTTP_SEE_OTHER)
        return refuse(connection, status,
                      status == MHD_HTTP_URI_TOO_LONG ? "The address is too long.\n"
                                                      : "The address has an invalid character.\n");
    cookie_name(http, name);
    (void)snprintf(cookie, sizeof cookie, "%s=%s; Path=/; HttpOnly; SameSite=Strict", name,
                   http->token);
    struct MHD_Response *response =
        MHD_create_response_from_buffer(0, (void *)(uintptr_t) "", MHD_RESPMEM_PERSISTENT);
    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, "Set-Cookie", cookie);
    (void)MHD_add_response_header(response, "Location", location);
    (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **state)
{
    static const char no_token[] =
        "This page needs the address that trail view printed, with its token.\n";
    struct http *http = context;
    const char *host = header(connection, "Host");
    (void)version, (void)upload, (void)upload_size;
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
    if (!is_known_host(http, host))
        return refuse(connection, MHD_HTTP_FORBIDDEN,
                      "This server does not answer to this Host.\n");
    bool guest = is_guest(http, header(connection, "Origin"));
    if (!guest && !is_same_origin(header(connection, "Origin"), host))
        return refuse(connection, MHD_HTTP_FORBIDDEN, "Not from another site.\n");
    if (*state && asks_with_token(http, connection))
        return mark_known(http, connection), welcome(http, connection, *state);
    if (!(guest ? asks_with_token(http, connection) : has_token(http, connection)))
        return refuse(connection, MHD_HTTP_UNAUTHORIZED, no_token);
    mark_known(http, connection);
    struct http_request request = {.path = url, .connection = connection};
    struct http_answer answer = {0};
    http->options.handler(http->options.context, &request, &answer);
    __atomic_store_n(&http->last_request, now_ns(), __ATOMIC_RELAXED);
    if (!answer.data)
        return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "No memory.\n");
    return reply(connection, &answer, guest ? "Access-Control-Allow-Origin" : NULL,
                 http->options.guest);
}

/* MARK: Life */

static bool make_token(char token[HTTP_TOKEN_SIZE + 1])
{
    unsigned char random[HTTP_TOKEN_SIZE / 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (size_t i = 0; i < sizeof random; i++)
        (void)snprintf(token + 2 * i, 3, "%02x", random[i]);
    return true;
}

/* `host` is "localhost", an IPv4 address, or an IPv6 address in brackets. */
static bool parse_host(const char *host, uint16_t port, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    char inner[INET6_ADDRSTRLEN];
    size_t size = strlen(host);
    memset(address, 0, sizeof *address);
    if (host[0] == '[' && host[size - 1] == ']' && size - 2 < sizeof inner) {
        memcpy(inner, host + 1, size - 2);
        inner[size - 2] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        return inet_pton(AF_INET6, inner, &v6->sin6_addr) == 1;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4->sin_addr) ==
           1;
}

/*
 * Returns a listening socket, or -1 with errno set. libmicrohttpd could create it, but the errno
 * that it leaves on failure depends on its version.
 */
static int listen_at(struct sockaddr_storage *address)
{
    const int yes = 1;
    bool is_v6 = address->ss_family == AF_INET6;
    socklen_t size = is_v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        (!is_v6 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) == 0) &&
        bind(fd, (struct sockaddr *)address, size) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)address, &size) == 0)
        return fd;
    int wrong = errno;
    (void)close(fd);
    errno = wrong;
    return -1;
}

static uint16_t port_of(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                : ((const struct sockaddr_in *)address)->sin_port);
}

struct http *http_start(const struct http_options *options, trail_error *err)
{
    struct sockaddr_storage address;
    const char *host = options->host ? options->host : "127.0.0.1";
    struct http *http = calloc(1, sizeof *http);
    int fd;
    if (!http || !make_token(http->token)) {
        (void)error_no_memory(err);
        goto failed;
    }
    http->options = *options;
    if (!http_library_load(err))
        goto failed;
    if (!parse_host(host, options->port, &address)) {
        (void)error_set(err, TRAIL_IO,
                        "cannot listen on '%s': no address like 127.0.0.1, 0.0.0.0 or [::1]", host);
        goto failed;
    }
    fd = listen_at(&address);
    if (fd < 0) {
        (void)error_set(err, TRAIL_IO, "cannot listen on %s:%u: %s", host, options->port,
                        strerror(errno));
        goto failed;
    }
    http->gate = gate_open();
    if (!http->gate) {
        (void)error_set(err, TRAIL_IO, "cannot start a thread: %s", strerror(errno));
        (void)close(fd);
        goto failed;
    }
    http->daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            (address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0u),
        options->port, NULL, NULL, handle, http, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_EACH,
        MHD_OPTION_NOTIFY_CONNECTION, notice, http, MHD_OPTION_URI_LOG_CALLBACK, keep_query, NULL,
        MHD_OPTION_NOTIFY_COMPLETED, drop_query, NULL, MHD_OPTION_THREAD_STACK_SIZE,
        (size_t)STACK_EACH, MHD_OPTION_END);
    if (!http->daemon) {
        /* libmicrohttpd may or may not have closed the socket, so it is not closed here. */
        (void)error_set(err, TRAIL_IO, "cannot serve %s:%u: libmicrohttpd does not start", host,
                        options->port);
        goto failed;
    }
    __atomic_store_n(&http->port, port_of(&address), __ATOMIC_RELAXED);
    return http;
failed:
    http_stop(http);
    return NULL;
}

uint16_t http_port(const struct http *http)
{
    return __atomic_load_n(&http->port, __ATOMIC_RELAXED);
}

const char *http_token(const struct http *http)
{
    return http->token;
}

int64_t http_last_request(const struct http *http)
{
    return __atomic_load_n(&http->last_request, __ATOMIC_RELAXED);
}

void http_stop(struct http *http)
{
    if (!http)
        return;
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    gate_close(http->gate);
    free(http);
}
