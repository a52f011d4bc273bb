/*
 * v1, waiters: the Ps that wait for a goroutine, stored so that a change of the goroutine touches
 * only those that become ready: any number of Ps may wait for one goroutine that changes any number
 * of times. Ps that need a status at any sequence number are in a list per status; Ps that need a
 * sequence number are in a pairing heap ordered by it. Numbers grow by one, so a P that needs a
 * smaller one is too late.
 */
#pragma once

#include "read/v1/merge.h"

struct v1_waiters {
    size_t count;
    struct v1_lane *any[4]; /* doubly linked lists by required status */
    struct v1_lane *exact;  /* root of the heap by lane->want */
};

static inline void v1_waiters_add_any(struct v1_waiters *w, struct v1_lane *lane, unsigned need)
{
    lane->wait_previous = NULL;
    lane->wait_next = w->any[need];
    if (lane->wait_next)
        lane->wait_next->wait_previous = lane;
    w->any[need] = lane;
    w->count++;
}

static inline void v1_waiters_remove_any(struct v1_waiters *w, struct v1_lane *lane, unsigned need)
{
    if (lane->wait_previous)
        lane->wait_previous->wait_next = lane->wait_next;
    else
        w->any[need] = lane->wait_next;
    if (lane->wait_next)
        lane->wait_next->wait_previous = lane->wait_previous;
    w->count--;
}

/* Melds two heaps. `wait_previous` of a first child is its parent. */
static inline struct v1_lane *v1_waiters_meld(struct v1_lane *a, struct v1_lane *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->want < a->want) {
        struct v1_lane *swap = a;
        a = b;
        b = swap;
    }
    b->wait_next = a->wait_child;
    b->wait_previous = a;
    if (b->wait_next)
        b->wait_next->wait_previous = b;
    a->wait_child = b;
    a->wait_next = a->wait_previous = NULL;
    return a;
}

/* Joins the children of a removed node into one heap: in pairs, then from the last to the first. */
static inline struct v1_lane *v1_waiters_join(struct v1_lane *child)
{
    struct v1_lane *pairs = NULL;
    while (child) {
        struct v1_lane *other = child->wait_next;
        struct v1_lane *rest = other ? other->wait_next : NULL;
        child->wait_next = child->wait_previous = NULL;
        if (other)
            other->wait_next = other->wait_previous = NULL;
        struct v1_lane *pair = v1_waiters_meld(child, other);
        pair->wait_next = pairs;
        pairs = pair;
        child = rest;
    }
    struct v1_lane *root = NULL;
    while (pairs) {
        struct v1_lane *rest = pairs->wait_next;
        pairs->wait_next = NULL;
        root = v1_waiters_meld(root, pairs);
        pairs = rest;
    }
    return root;
}

static inline void v1_waiters_add_exact(struct v1_waiters *w, struct v1_lane *lane)
{
    lane->wait_child = lane->wait_next = lane->wait_previous = NULL;
    w->exact = v1_waiters_meld(w->exact, lane);
    w->count++;
}

static inline void v1_waiters_remove_exact(struct v1_waiters *w, struct v1_lane *lane)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the lane is in it, so there is one */
    w->count--;
    if (lane == w->exact) {
        w->exact = v1_waiters_join(lane->wait_child);
        return;
    }
    struct v1_lane *previous = lane->wait_previous;
    if (previous->wait_child == lane)
        previous->wait_child = lane->wait_next;
    else
        previous->wait_next = lane->wait_next;
    if (lane->wait_next)
        lane->wait_next->wait_previous = previous;
    w->exact = v1_waiters_meld(w->exact, v1_waiters_join(lane->wait_child));
}
