/* Matches the two ends of connections of the process to itself: see connections.h. */
#include "preload/connections.h"

#include <netinet/in.h>
#include <string.h>

#define LISTENED 16 /* ports; further ports of the process are ignored */
#define HALVES   64

bool connections_own;

/* In network byte order; 0: none. */
static uint16_t listened[LISTENED];

/*
 * Ends without a match so far: ports, the connecting one first | the descriptor's generation | its
 * number. An end that is never matched is overwritten later.
 */
static uint64_t halves[HALVES];

/* MARK: Addresses */

/* Returns the port, which is at the same offset in both families; 0: another family. */
static uint16_t port_of(const struct sockaddr *address, socklen_t size)
{
    if (!address || size < sizeof(struct sockaddr_in) ||
        (address->sa_family != AF_INET && address->sa_family != AF_INET6))
        return 0;
    return ((const struct sockaddr_in *)(const void *)address)->sin_port;
}

/* Returns the port that the socket is bound to; 0: none. */
static uint16_t address_of(int fd, bool peer, struct sockaddr_storage *address)
{
    socklen_t size = sizeof *address;
    *address = (struct sockaddr_storage){0};
    if (is_confined())
        return 0;
    int status = peer ? getpeername(fd, (struct sockaddr *)address, &size)
                      : getsockname(fd, (struct sockaddr *)address, &size);
    return status == 0 ? port_of((struct sockaddr *)address, size) : 0;
}

/* Whether both addresses are this machine's: equal, or both of 127.0.0.0/8. */
static bool is_near(const struct sockaddr_storage *one, const struct sockaddr_storage *other)
{
    const struct sockaddr_in *v4 = (const void *)one, *other_v4 = (const void *)other;
    const struct sockaddr_in6 *v6 = (const void *)one, *other_v6 = (const void *)other;
    if (one->ss_family != other->ss_family)
        return false;
    if (one->ss_family == AF_INET6)
        return memcmp(&v6->sin6_addr, &other_v6->sin6_addr, sizeof v6->sin6_addr) == 0;
    return v4->sin_addr.s_addr == other_v4->sin_addr.s_addr ||
           (ntohl(v4->sin_addr.s_addr) >> 24 == 127 &&
            ntohl(other_v4->sin_addr.s_addr) >> 24 == 127);
}

/* MARK: Which are own */

static void note_listener(int fd)
{
    struct sockaddr_storage address;
    int old_errno = errno;
    uint16_t port = preload.area ? address_of(fd, false, &address) : 0;
    for (int i = 0; port && i < LISTENED; i++) {
        uint16_t none = 0;
        if (__atomic_load_n(&listened[i], __ATOMIC_RELAXED) == port ||
            __atomic_compare_exchange_n(&listened[i], &none, port, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
            break;
    }
    errno = old_errno;
}

bool connection_is_own(const struct sockaddr *address, socklen_t size)
{
    if (LIKELY(!__atomic_load_n(&listened[0], __ATOMIC_RELAXED)) || !preload.area)
        return false;
    uint16_t port = is_address(address) ? port_of(address, size) : 0;
    for (int i = 0; port && i < LISTENED; i++) {
        if (__atomic_load_n(&listened[i], __ATOMIC_RELAXED) == port) {
            __atomic_store_n(&connections_own, true, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

/* MARK: Meeting */

static uint64_t half_of(int fd, uint16_t connector, uint16_t listener)
{
    uint32_t generation = __atomic_load_n(&preload.area->generations[fd], __ATOMIC_ACQUIRE);
    return (uint64_t)connector << 48 | (uint64_t)listener << 32 |
           (uint64_t)(uint16_t)generation << 16 | (uint64_t)(uint16_t)fd;
}

/* Removes the connection's other end from the list. */
static bool meet(uint64_t half)
{
    for (int i = 0; i < HALVES; i++) {
        uint64_t other = __atomic_load_n(&halves[i], __ATOMIC_ACQUIRE);
        int fd = (int)(uint16_t)other, own = (int)(uint16_t)half;
        if (other >> 32 != half >> 32 || fd == own ||
            !__atomic_compare_exchange_n(&halves[i], &other, 0, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_RELAXED))
            continue;
        /* The descriptor may have been closed in the meantime. */
        if (half_of(fd, (uint16_t)(other >> 48), (uint16_t)(other >> 32)) != other)
            continue;
        descriptors_meet(fd, own);
        return true;
    }
    return false;
}

static void put(uint64_t half)
{
    for (int i = 0; i < HALVES; i++) {
        uint64_t none = 0;
        if (__atomic_compare_exchange_n(&halves[i], &none, half, false, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return;
    }
    __atomic_store_n(&halves[half % HALVES], half, __ATOMIC_RELEASE);
}

static void take_out(uint64_t half)
{
    for (int i = 0; i < HALVES; i++) {
        uint64_t same = half;
        (void)__atomic_compare_exchange_n(&halves[i], &same, 0, false, __ATOMIC_RELAXED,
                                          __ATOMIC_RELAXED);
    }
}

void connection_made(int fd, bool accepted)
{
    struct sockaddr_storage own, peer;
    int old_errno = errno;
    uint16_t own_port, peer_port;
    uint64_t half;
    /* A socket that is still connecting has no peer yet, and stays unknown. */
    /* Between processes the addresses are the ends' identity. */
    if (!board_of_several && preload.area && fd >= 0 && fd < DESCRIPTORS &&
        (own_port = address_of(fd, false, &own)) != 0 &&
        (peer_port = address_of(fd, true, &peer)) != 0 && is_near(&own, &peer)) {
        half = accepted ? half_of(fd, peer_port, own_port) : half_of(fd, own_port, peer_port);
        descriptor_half(fd);
        if (!meet(half)) {
            put(half);
            /* Both ends may have been put at the same time. */
            if (meet(half))
                take_out(half);
        }
    }
    errno = old_errno;
}

/* MARK: Wrapped calls */

EXPORT int listen(int fd, int backlog)
{
    int status = REAL(listen)(fd, backlog);
    if (status == 0)
        note_listener(fd);
    return status;
}

void connections_forget(void)
{
    connections_own = false;
    memset(listened, 0, sizeof listened);
    memset(halves, 0, sizeof halves);
}
