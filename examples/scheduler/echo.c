/* A TCP echo server and its clients, all coroutines. */
#include "scheduler.h"

#include <stdlib.h>
#include <string.h>

enum { MESSAGE = 512 };

struct echo {
    uint16_t port;
    struct net *listener;
    unsigned clients, rounds;
    struct group running;
    _Atomic unsigned answered;
};

static bool read_all(struct net *n, void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        ssize_t got = net_read(n, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

struct connection {
    struct echo *echo;
    struct net *net;
};

static void serve_one(void *argument)
{
    struct connection *c = argument;
    uint8_t data[MESSAGE];
    ssize_t n;
    while ((n = net_read(c->net, data, sizeof(data))) > 0) {
        uint64_t task = trail_task_begin(0, "request");
        trail_region_begin(task, "answer");
        net_write(c->net, data, (size_t)n);
        trail_region_end(task, "answer");
        trail_task_end(task);
    }
    net_close(c->net);
    group_done(&c->echo->running);
    free(c);
}

static void serve(void *argument)
{
    struct echo *echo = argument;
    for (unsigned i = 0; i < echo->clients; i++) {
        struct connection *c = calloc(1, sizeof(*c));
        if (!c)
            abort();
        c->echo = echo;
        c->net = net_accept(echo->listener);
        if (!c->net)
            abort();
        go(serve_one, c);
    }
    net_close(echo->listener);
    group_done(&echo->running);
}

static void ask(void *argument)
{
    struct echo *echo = argument;
    struct net *n = net_connect(echo->port);
    uint8_t out[MESSAGE], in[MESSAGE];
    for (unsigned i = 0; i < echo->rounds; i++) {
        memset(out, (int)i, sizeof(out));
        if (!net_write(n, out, sizeof(out)) || !read_all(n, in, sizeof(in)) ||
            memcmp(in, out, sizeof(in)) != 0)
            abort();
        atomic_fetch_add(&echo->answered, 1);
    }
    net_close(n);
    group_done(&echo->running);
}

unsigned echo(unsigned clients, unsigned rounds)
{
    struct echo echo = {.clients = clients, .rounds = rounds};
    echo.listener = net_listen(&echo.port);
    group_add(&echo.running, 2 * clients + 1);
    go(serve, &echo);
    for (unsigned i = 0; i < clients; i++)
        go(ask, &echo);
    group_wait(&echo.running);
    return atomic_load(&echo.answered);
}
