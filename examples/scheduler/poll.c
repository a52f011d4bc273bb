/*
 * Sockets on loopback. A coroutine that would block waits (TRAIL_BLOCK_NETWORK) until the poller, a
 * thread with an M but without a P, gets the descriptor from epoll and unblocks the coroutine.
 *
 * Readiness is edge-triggered and kept in the descriptor's struct until a coroutine uses it. These
 * structs are reused but not freed: a late event of epoll at worst causes a needless wake-up.
 */
#include "scheduler.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* One direction of a descriptor. */
struct side {
    bool ready;
    struct g *waiting;
};

struct net {
    struct lock lock; /* of the sides */
    int fd;
    struct side in, out;
    struct net *next; /* free ones */
    struct net *all;
};

static struct {
    struct lock lock;
    int epoll, stop;
    struct net *free, *all;
} poller = {.epoll = -1, .stop = -1};

/* MARK: Waiting and being woken */

/* Returns false if there was no need to wait. in_vain: an earlier wait ended too early. */
static bool wait_ready(struct net *n, struct side *side, bool in_vain)
{
    lock(&n->lock);
    if (side->ready) {
        side->ready = false;
        unlock(&n->lock);
        return false;
    }
    side->waiting = g_self();
    park(TRAIL_BLOCK_NETWORK, in_vain, unlock_after, &n->lock);
    return true;
}

static void set_ready(struct net *n, struct side *side)
{
    struct g *g;
    lock(&n->lock);
    g = side->waiting;
    side->waiting = NULL;
    side->ready = !g;
    unlock(&n->lock);
    if (g)
        ready(g);
}

static void handle(const struct epoll_event *event)
{
    struct net *n = event->data.ptr;
    if (!n) {
        timer_fired();
        return;
    }
    if (event->events & (EPOLLIN | EPOLLHUP | EPOLLRDHUP | EPOLLERR))
        set_ready(n, &n->in);
    if (event->events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
        set_ready(n, &n->out);
}

void *poller_main(void *argument)
{
    struct epoll_event events[64];
    m_begin(argument);
    for (;;) {
        int n = epoll_wait(poller.epoll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &poller) {
                m_end(argument);
                return NULL;
            }
            handle(&events[i]);
        }
    }
}

static void watch(int fd, void *data, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    if (epoll_ctl(poller.epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        abort();
}

void poll_start(void)
{
    poller.epoll = epoll_create1(EPOLL_CLOEXEC);
    poller.stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    watch(poller.stop, &poller, EPOLLIN);
    watch(timer_fd, NULL, EPOLLIN | EPOLLET);
    if (pthread_create(&sched.poller.thread, NULL, poller_main, &sched.poller) != 0)
        abort();
}

void poll_stop(void)
{
    uint64_t one = 1;
    if (write(poller.stop, &one, sizeof(one)) < 0)
        abort();
    pthread_join(sched.poller.thread, NULL);
    close(poller.epoll);
    close(poller.stop);
    close(timer_fd);
    while (poller.all) {
        struct net *n = poller.all;
        poller.all = n->all;
        free(n);
    }
}

/* MARK: Sockets */

static struct net *net_new(int fd)
{
    struct net *n;
    lock(&poller.lock);
    n = poller.free;
    if (n)
        poller.free = n->next;
    else if ((n = calloc(1, sizeof(*n)))) {
        n->all = poller.all;
        poller.all = n;
    }
    unlock(&poller.lock);
    if (!n)
        abort();
    lock(&n->lock);
    n->fd = fd;
    n->in.ready = n->out.ready = false;
    unlock(&n->lock);
    watch(fd, n, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
    return n;
}

void net_close(struct net *n)
{
    close(n->fd);
    lock(&poller.lock);
    n->next = poller.free;
    poller.free = n;
    unlock(&poller.lock);
}

static struct sockaddr_in loopback(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

static int new_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        abort();
    return fd;
}

struct net *net_listen(uint16_t *port)
{
    struct sockaddr_in a = loopback(0);
    socklen_t size = sizeof(a);
    int fd = new_socket();
    if (bind(fd, (struct sockaddr *)&a, size) != 0 || listen(fd, 64) != 0 ||
        getsockname(fd, (struct sockaddr *)&a, &size) != 0)
        abort();
    *port = ntohs(a.sin_port);
    return net_new(fd);
}

/*
 * One attempt each; errors are negative numbers. Never inlined: the address of errno depends on the
 * thread, and a function that waits in between must not keep it.
 */
static __attribute__((noinline)) ssize_t try_read(int fd, void *data, size_t size)
{
    ssize_t n = read(fd, data, size);
    return n < 0 ? -errno : n;
}

static __attribute__((noinline)) ssize_t try_write(int fd, const void *data, size_t size)
{
    ssize_t n = send(fd, data, size, MSG_NOSIGNAL);
    return n < 0 ? -errno : n;
}

static __attribute__((noinline)) int try_accept(int fd)
{
    int got = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return got < 0 ? -errno : got;
}

static __attribute__((noinline)) int try_connect(int fd, const struct sockaddr_in *a)
{
    return connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 ? 0 : -errno;
}

struct net *net_connect(uint16_t port)
{
    struct sockaddr_in a = loopback(port);
    int fd = new_socket(), result = try_connect(fd, &a), error = 0;
    socklen_t size = sizeof(error);
    struct net *n = net_new(fd);
    if (result == -EINPROGRESS)
        wait_ready(n, &n->out, false);
    else if (result != 0)
        abort();
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error)
        abort();
    return n;
}

struct net *net_accept(struct net *n)
{
    int fd;
    for (bool woken = false; (fd = try_accept(n->fd)) == -EAGAIN;)
        woken = wait_ready(n, &n->in, woken);
    return fd < 0 ? NULL : net_new(fd);
}

ssize_t net_read(struct net *n, void *data, size_t size)
{
    ssize_t got;
    for (bool woken = false; (got = try_read(n->fd, data, size)) == -EAGAIN;)
        woken = wait_ready(n, &n->in, woken);
    return got;
}

bool net_write(struct net *n, const void *data, size_t size)
{
    const uint8_t *at = data;
    while (size > 0) {
        ssize_t put = try_write(n->fd, at, size);
        if (put == -EAGAIN) {
            wait_ready(n, &n->out, false);
            continue;
        }
        if (put < 0)
            return false;
        at += put;
        size -= (size_t)put;
    }
    return true;
}
