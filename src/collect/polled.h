/*
 * Names for waits for several descriptors, as in poll(2) and select(2): "3 descriptors:
 * 10.0.0.1:5432 (ready), pipe:[123], [eventfd]". The program names them in a record when the wait
 * has ended; until then they are read from its memory. The kernel lists those of an epoll set, and
 * the operations waiting in an io_uring ring: "1 operation of io_uring: read pipe".
 */
#pragma once

#include <stdbool.h>

/* The limit of a descriptor's name, so that no part is cut off. */
#define POLLED_ROOM 240

struct area_open;
struct collect;
struct shm_record;
struct thread;

/* Returns the name of the wait that follows a record of kind SHM_POLLED; NULL: none. It lives as
 * long as the collector. */
const char *polled_name(struct collect *c, const struct shm_record *polled);

/* The same for an open call whose object is a shm_is_pollfds. */
const char *polled_read(struct collect *c, const struct thread *thread,
                        const struct area_open *open);

/* The same for an open call that waits in an io_uring ring: the operations that wait there now, and
 * their files. */
const char *polled_ring(struct collect *c, const struct area_open *open);

/* Writes the name of an epoll set, with the descriptors that it has now; false: none. */
bool polled_members(struct collect *c, unsigned set, char text[POLLED_ROOM]);
