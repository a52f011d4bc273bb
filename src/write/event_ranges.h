/* Writes all events except those of Ps, goroutines and system calls. */
#pragma once

#include "write/event_state.h"

/* The size of the heap; separate because it is as frequent as scheduling events. */
bool event_put_heap(struct event_writer *w, const trail_event *e);

/* Writes any event except those of Ps, goroutines and system calls. */
bool event_put_range(struct event_writer *w, const trail_event *e);
