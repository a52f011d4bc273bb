/* Shuts connections that do not present the token. */
#include "serve/gate.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "base/clock.h"

enum state { FREE, UNKNOWN, KNOWN, SHUT };

/* Connections that are shut keep their places until the server has closed them. */
enum { SLOTS = 2 * GATE_PLACES, PAUSE_NS = 5000000 };

struct gate_place {
    enum state state;
    int fd;
    int64_t since_ns; /* CLOCK_MONOTONIC */
};

struct gate {
    pthread_mutex_t mutex; /* protects everything below */
    pthread_cond_t changed;
    pthread_t timer;
    bool ends;
    struct gate_place places[SLOTS];
};

/* MARK: Helpers, called with the mutex held */

/* Requires state UNKNOWN or KNOWN: only then is the descriptor certainly still open. */
static void shut(struct gate_place *place)
{
    (void)shutdown(place->fd, SHUT_RDWR);
    place->state = SHUT;
}

static unsigned count(const struct gate *gate, enum state state)
{
    unsigned n = 0;
    for (int i = 0; i < SLOTS; i++)
        n += gate->places[i].state == state;
    return n;
}

/* Returns NULL if there is none. */
static struct gate_place *oldest_unknown(struct gate *gate)
{
    struct gate_place *oldest = NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct gate_place *place = &gate->places[i];
        if (place->state == UNKNOWN && (!oldest || place->since_ns < oldest->since_ns))
            oldest = place;
    }
    return oldest;
}

/* Whether the server has read all received bytes: these were not a complete header yet. */
static bool is_read(const struct gate_place *place)
{
    struct pollfd fd = {.fd = place->fd, .events = POLLIN};
    return poll(&fd, 1, 0) <= 0;
}

/* Returns the oldest connection that may be shut to make room; NULL: none at present. */
static struct gate_place *oldest_idle(struct gate *gate, int64_t now)
{
    struct gate_place *oldest = NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct gate_place *place = &gate->places[i];
        if (place->state == UNKNOWN && now - place->since_ns >= GATE_GRACE_NS &&
            (!oldest || place->since_ns < oldest->since_ns) && is_read(place))
            oldest = place;
    }
    return oldest;
}

static bool is_full(const struct gate *gate)
{
    unsigned unknown = count(gate, UNKNOWN);
    return unknown >= GATE_UNKNOWN || unknown + count(gate, KNOWN) >= GATE_PLACES;
}

static struct gate_place *find_free(struct gate *gate)
{
    for (int i = 0; i < SLOTS; i++)
        if (gate->places[i].state == FREE)
            return &gate->places[i];
    return NULL;
}

/* Shuts connections past their deadline. Returns the next deadline; INT64_MAX: none. */
static int64_t shut_late(struct gate *gate, int64_t now)
{
    struct gate_place *oldest;
    while ((oldest = oldest_unknown(gate)) && now - oldest->since_ns >= GATE_DEADLINE_NS)
        shut(oldest);
    return oldest ? oldest->since_ns + GATE_DEADLINE_NS : INT64_MAX;
}

/* MARK: The timer */

static void wait_until(struct gate *gate, int64_t when_ns)
{
    struct timespec when = {.tv_sec = (time_t)(when_ns / 1000000000),
                            .tv_nsec = (long)(when_ns % 1000000000)};
    if (when_ns == INT64_MAX)
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    else
        (void)pthread_cond_timedwait(&gate->changed, &gate->mutex, &when);
}

static void *run_timer(void *context)
{
    struct gate *gate = context;
    (void)pthread_mutex_lock(&gate->mutex);
    while (!gate->ends) {
        int64_t next = shut_late(gate, now_ns());
        wait_until(gate, next);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
    return NULL;
}

struct gate *gate_open(void)
{
    pthread_condattr_t attributes;
    struct gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return NULL;
    (void)pthread_mutex_init(&gate->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&gate->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    int reason = pthread_create(&gate->timer, NULL, run_timer, gate);
    if (reason == 0)
        return gate;
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->mutex);
    free(gate);
    errno = reason;
    return NULL;
}

void gate_close(struct gate *gate)
{
    if (!gate)
        return;
    (void)pthread_mutex_lock(&gate->mutex);
    gate->ends = true;
    (void)pthread_cond_signal(&gate->changed);
    (void)pthread_mutex_unlock(&gate->mutex);
    (void)pthread_join(gate->timer, NULL);
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->mutex);
    free(gate);
}

/* MARK: Connections */

/* Waits until one more connection may enter. Authenticated connections may take all places. */
static void make_room(struct gate *gate)
{
    while (is_full(gate) && count(gate, UNKNOWN) > 0) {
        struct timespec pause = {.tv_nsec = PAUSE_NS};
        struct gate_place *oldest = oldest_idle(gate, now_ns());
        if (oldest) {
            shut(oldest);
            continue;
        }
        (void)pthread_mutex_unlock(&gate->mutex);
        (void)nanosleep(&pause, NULL);
        (void)pthread_mutex_lock(&gate->mutex);
    }
}

struct gate_place *gate_enter(struct gate *gate, int fd)
{
    (void)pthread_mutex_lock(&gate->mutex);
    make_room(gate);
    struct gate_place *place = is_full(gate) ? NULL : find_free(gate);
    if (place && count(gate, UNKNOWN) == 0)
        (void)pthread_cond_signal(&gate->changed);
    if (place)
        *place = (struct gate_place){UNKNOWN, fd, now_ns()};
    else
        (void)shutdown(fd, SHUT_RDWR);
    (void)pthread_mutex_unlock(&gate->mutex);
    return place;
}

void gate_know(struct gate *gate, struct gate_place *place)
{
    if (!place)
        return;
    (void)pthread_mutex_lock(&gate->mutex);
    if (place->state == UNKNOWN)
        place->state = KNOWN;
    (void)pthread_mutex_unlock(&gate->mutex);
}

void gate_leave(struct gate *gate, struct gate_place *place)
{
    if (!place)
        return;
    (void)pthread_mutex_lock(&gate->mutex);
    place->state = FREE;
    (void)pthread_mutex_unlock(&gate->mutex);
}
