/*
 * Gate: which connection is closed to make room, and which never is. The connections are socket
 * pairs; time passes only where the test or the gate's pauses advance it.
 */
#include "serve/gate.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../lib/unit.h"

#define MS INT64_C(1000000)

static _Atomic int64_t now = 1000 * MS;

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names for what stands in for another */
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    (void)clock;
    *out = (struct timespec){.tv_sec = (time_t)(now / 1000000000),
                             .tv_nsec = (long)(now % 1000000000)};
    return 0;
}

int __real_nanosleep(const struct timespec *, struct timespec *);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)left;
    now += pause->tv_sec * INT64_C(1000000000) + pause->tv_nsec;
    return 0;
}

static _Atomic unsigned looks;

/* The timer runs continuously. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *when)
{
    (void)cond;
    (void)when;
    looks++;
    (void)pthread_mutex_unlock(mutex);
    (void)__real_nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    (void)pthread_mutex_lock(mutex);
    return ETIMEDOUT;
}
/* NOLINTEND(bugprone-reserved-identifier) */

struct connection {
    int server, client;
    struct gate_place *place;
};

struct world {
    struct gate *gate;
    struct connection all[GATE_PLACES + 1];
    int count;
};

static struct connection *connect_to(struct world *w)
{
    struct connection *c = &w->all[w->count++];
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    *c = (struct connection){.server = ends[0], .client = ends[1]};
    c->place = gate_enter(w->gate, c->server);
    return c;
}

/* Makes this many connections, a millisecond apart. */
static void connect_many(struct world *w, int count)
{
    for (int i = 0; i < count; i++) {
        assert_non_null(connect_to(w)->place);
        now += MS;
    }
}

static bool is_shut(const struct connection *c)
{
    struct pollfd fd = {.fd = c->client, .events = POLLIN};
    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP);
}

static int count_shut(const struct world *w)
{
    int n = 0;
    for (int i = 0; i < w->count; i++)
        n += is_shut(&w->all[i]);
    return n;
}

static struct world world;

static int begin(void **state)
{
    (void)state;
    world = (struct world){.gate = gate_open()};
    return world.gate ? 0 : -1;
}

static int end(void **state)
{
    struct world *w = &world;
    (void)state;
    for (int i = 0; i < w->count; i++) {
        gate_leave(w->gate, w->all[i].place);
        (void)close(w->all[i].server);
        (void)close(w->all[i].client);
    }
    gate_close(w->gate);
    return 0;
}

/* MARK: Tests */

TEST(the_oldest_makes_room)
{
    struct world *w = &world;
    connect_many(w, GATE_UNKNOWN);
    assert_int_equal(count_shut(w), 0);
    assert_non_null(connect_to(w)->place);
    assert_true(is_shut(&w->all[0]));
    assert_int_equal(count_shut(w), 1);
}

TEST(none_is_shut_before_its_time)
{
    struct world *w = &world;
    for (int i = 0; i < GATE_UNKNOWN; i++)
        assert_non_null(connect_to(w)->place);
    int64_t began = now;
    assert_non_null(connect_to(w)->place);
    assert_in_range(now - began, GATE_GRACE_NS, GATE_GRACE_NS + 20 * MS);
    assert_int_equal(count_shut(w), 1);
}

TEST(one_whose_bytes_are_unread_stays)
{
    struct world *w = &world;
    connect_many(w, GATE_UNKNOWN);
    assert_int_equal(write(w->all[0].client, "GET", 3), 3);
    assert_non_null(connect_to(w)->place);
    assert_false(is_shut(&w->all[0]));
    assert_true(is_shut(&w->all[1]));
}

TEST(one_that_is_known_stays)
{
    struct world *w = &world;
    connect_many(w, GATE_UNKNOWN);
    gate_know(w->gate, w->all[0].place);
    now += GATE_GRACE_NS;
    connect_many(w, 2);
    assert_false(is_shut(&w->all[0]));
    assert_true(is_shut(&w->all[1]));
    assert_int_equal(count_shut(w), 1);
}

TEST(one_that_left_needs_no_other_to_go)
{
    struct world *w = &world;
    connect_many(w, GATE_UNKNOWN);
    gate_leave(w->gate, w->all[3].place);
    w->all[3].place = NULL;
    assert_non_null(connect_to(w)->place);
    assert_int_equal(count_shut(w), 0);
}

/* Known connections may fill all places; then an unknown one is closed at once. */
TEST(all_places_may_be_of_the_known)
{
    struct world *w = &world;
    for (int i = 0; i < GATE_PLACES; i++) {
        connect_many(w, 1);
        gate_know(w->gate, w->all[i].place);
    }
    struct connection *late = connect_to(w);
    assert_null(late->place);
    assert_true(is_shut(late));
    assert_int_equal(count_shut(w), 1);
}

TEST(at_its_deadline_it_is_shut)
{
    struct world *w = &world;
    connect_many(w, 2);
    gate_know(w->gate, w->all[1].place);
    assert_int_equal(write(w->all[0].client, "GET", 3), 3);
    now = now + GATE_DEADLINE_NS - 10 * MS;
    /* The second look from here on began after that. */
    for (unsigned enough = looks + 2; looks < enough && !is_shut(&w->all[0]);)
        (void)__real_nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    assert_false(is_shut(&w->all[0]));
    now += 10 * MS;
    while (!is_shut(&w->all[0]))
        (void)__real_nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
    assert_false(is_shut(&w->all[1]));
}

int main(void)
{
    each_test(begin, end);
    return run_all_tests(NULL, NULL);
}
