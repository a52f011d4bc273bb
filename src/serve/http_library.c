/* Loads libmicrohttpd, and forwards to it. */
#include "serve/http_library.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "base/error.h"
#include "serve/http.h"

#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(add_response_header)                                                                  \
    FUNCTION(create_response_from_buffer)                                                          \
    FUNCTION(destroy_response)                                                                     \
    FUNCTION(get_connection_info)                                                                  \
    FUNCTION(get_connection_values)                                                                \
    FUNCTION(get_version)                                                                          \
    FUNCTION(lookup_connection_value)                                                              \
    FUNCTION(queue_response)                                                                       \
    FUNCTION(start_daemon_va)                                                                      \
    FUNCTION(stop_daemon)

/* The library's functions. It stays loaded. */
static struct {
#define MEMBER(name) __typeof__(MHD_##name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} mhd;

static bool find(void *library, const char *name, void *pointer)
{
    void *symbol = dlsym(library, name);
    memcpy(pointer, &symbol, sizeof symbol);
    return symbol != NULL;
}

bool http_library_load(trail_error *err)
{
    void *library = dlopen("libmicrohttpd.so.12", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)error_set(err, TRAIL_IO,
                        "the viewer needs libmicrohttpd (apt install libmicrohttpd12): %s",
                        dlerror());
        return false;
    }
#define FIND(name) find(library, "MHD_" #name, (void *)&mhd.name) &&
    if (FUNCTIONS(FIND) true)
        return true;
#undef FIND
    (void)error_set(err, TRAIL_IO, "this libmicrohttpd.so.12 lacks a function: %s", dlerror());
    return false;
}

const char *http_library_version(trail_error *err)
{
    return http_library_load(err) ? mhd.get_version() : NULL;
}

/* MARK: Forwarders */

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header,
                                        const char *content)
{
    return mhd.add_response_header(response, header, content);
}

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer,
                                                     enum MHD_ResponseMemoryMode mode)
{
    return mhd.create_response_from_buffer(size, buffer, mode);
}

void MHD_destroy_response(struct MHD_Response *response)
{
    mhd.destroy_response(response);
}

/* The variable arguments are unused for the information requested here. */
const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    return mhd.get_connection_info(connection, type);
}

int MHD_get_connection_values(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                              MHD_KeyValueIterator iterator, void *context)
{
    return mhd.get_connection_values(connection, kind, iterator, context);
}

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    return mhd.lookup_connection_value(connection, kind, key);
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                                   struct MHD_Response *response)
{
    return mhd.queue_response(connection, status, response);
}

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                    void *accept_context, MHD_AccessHandlerCallback handle,
                                    void *handle_context, ...)
{
    va_list options;
    va_start(options, handle_context);
    struct MHD_Daemon *daemon =
        mhd.start_daemon_va(flags, port, accept, accept_context, handle, handle_context, options);
    va_end(options);
    return daemon;
}

void MHD_stop_daemon(struct MHD_Daemon *daemon)
{
    mhd.stop_daemon(daemon);
}
