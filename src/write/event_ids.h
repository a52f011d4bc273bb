/* The IDs that strings and stacks of the reader get in the written trace, when an event first needs
 * them. */
#pragma once

#include "write/event_state.h"

/*
 * IDs in the tables of the written generation; 0 for handle 0, before the first generation, or if
 * out of memory. A string is text chosen by the program; a reason is usually the runtime's.
 */
uint64_t event_string_id(struct event_writer *w, trail_string_handle handle);
uint64_t event_reason_id(struct event_writer *w, trail_string_handle handle);
/*
 * Writes what the host has said about its goroutine, once per generation along with its status or
 * creation; in version 22 also `start`, the stack of its start function (0: none), for which that
 * version has no record. In a merge, IDs change and names are lost.
 */
void event_label_g(struct event_writer *w, int64_t id, trail_stack_handle start);

uint64_t event_new_stack_id(struct event_writer *w, trail_stack_handle handle);

static inline uint64_t event_stack_id(struct event_writer *w, trail_stack_handle handle)
{
    const struct known_ids *known = &w->from->stacks;
    if (handle < known->capacity && known->ids[handle].life == w->from->life)
        return known->ids[handle].id;
    return event_new_stack_id(w, handle);
}

/* Returns the ID of the kind of a stop-the-world pause, which a range's name has in parentheses. */
uint64_t event_stw_kind_id(struct event_writer *w, trail_string_handle name);
