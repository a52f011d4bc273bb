/*
 * Whether a client still waits for its answer: http_is_gone on connections made by the test instead
 * of libmicrohttpd.
 */
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../lib/unit.h"
#include "serve/http.h"
#include "serve/http_library.h"

/* The test's connection of a request. */
struct pair {
    int server, client;
};

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's name for what stands in for another */
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...);
const union MHD_ConnectionInfo *__wrap_MHD_get_connection_info(struct MHD_Connection *connection,
                                                               enum MHD_ConnectionInfoType type,
                                                               ...)
{
    static union MHD_ConnectionInfo info;
    if (!connection || type != MHD_CONNECTION_INFO_CONNECTION_FD)
        return NULL;
    info.connect_fd = ((struct pair *)connection)->server;
    return &info;
}

/* NOLINTEND(bugprone-reserved-identifier) */

static struct pair connect_pair(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    return (struct pair){ends[0], ends[1]};
}

static bool is_gone(struct pair *pair)
{
    struct http_request request = {.path = "/", .connection = pair};
    return http_is_gone(&request);
}

TEST(who_is_connected_waits)
{
    struct pair pair = connect_pair();
    assert_false(is_gone(&pair));
    /* Even if it has sent another request meanwhile. */
    assert_int_equal(write(pair.client, "GET", 3), 3);
    assert_false(is_gone(&pair));
    (void)close(pair.client);
    (void)close(pair.server);
}

TEST(who_has_closed_is_gone)
{
    struct pair pair = connect_pair();
    assert_int_equal(write(pair.client, "GET", 3), 3);
    (void)close(pair.client);
    assert_true(is_gone(&pair));
    (void)close(pair.server);
}

TEST(who_will_send_no_more_is_gone)
{
    struct pair pair = connect_pair();
    assert_int_equal(shutdown(pair.client, SHUT_WR), 0);
    assert_true(is_gone(&pair));
    (void)close(pair.client);
    (void)close(pair.server);
}

TEST(of_an_unknown_connection_nothing_is_known)
{
    assert_false(is_gone(NULL));
}
