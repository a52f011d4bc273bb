/*
 * Channels of words, with or without a buffer, and select.
 *
 * A coroutine that finds no partner leaves a note (struct waiter, on its own stack) at the channel,
 * one at each for a select. A partner takes the note, leaves or fetches the value, and wakes it.
 * Notes of one select share a `done`, which the first partner sets; the others skip the note.
 *
 * Channels of a select are locked in the order of their addresses.
 */
#include "scheduler.h"

#include <stdlib.h>

struct waiter {
    struct g *g;
    _Atomic bool *done;
    struct chan_case *item; /* where the value is, or goes to */
    unsigned number;
    unsigned *chosen;
    struct waiter *next;
};

struct line {
    struct waiter *head, *tail;
};

struct channel {
    struct lock lock;
    bool closed;
    unsigned capacity, count, first;
    struct line senders, receivers;
    uintptr_t buffer[];
};

struct channel *chan_new(unsigned capacity)
{
    struct channel *c = calloc(1, sizeof(*c) + capacity * sizeof(c->buffer[0]));
    if (!c)
        abort();
    c->capacity = capacity;
    return c;
}

void chan_free(struct channel *c)
{
    free(c);
}

/* MARK: Lines of notes */

static void line_push(struct line *line, struct waiter *w)
{
    w->next = NULL;
    if (line->tail)
        line->tail->next = w;
    else
        line->head = w;
    line->tail = w;
}

/* The first whose coroutine has not been chosen elsewhere. */
static struct waiter *line_pop(struct line *line)
{
    struct waiter *w;
    while ((w = line->head)) {
        line->head = w->next;
        if (!line->head)
            line->tail = NULL;
        if (!atomic_exchange(w->done, true))
            break;
    }
    return w;
}

static void line_remove(struct line *line, const struct waiter *w)
{
    struct waiter *before = NULL;
    for (struct waiter *at = line->head; at; before = at, at = at->next) {
        if (at != w)
            continue;
        if (before)
            before->next = at->next;
        else
            line->head = at->next;
        if (line->tail == at)
            line->tail = before;
        return;
    }
}

static struct line *line_of(const struct chan_case *item)
{
    return item->send ? &item->channel->senders : &item->channel->receivers;
}

unsigned chan_waiting(struct channel *c)
{
    unsigned n = 0;
    lock(&c->lock);
    for (struct waiter *w = c->senders.head; w; w = w->next)
        n++;
    for (struct waiter *w = c->receivers.head; w; w = w->next)
        n++;
    unlock(&c->lock);
    return n;
}

/* MARK: One side meets the other. With the lock; what they return is to be woken without it. */

/* The note records which case it was before its coroutine is woken. */
static struct g *met(struct waiter *w)
{
    *w->chosen = w->number;
    return w->g;
}

static void buffer_put(struct channel *c, uintptr_t value)
{
    c->buffer[(c->first + c->count++) % c->capacity] = value;
}

static uintptr_t buffer_get(struct channel *c)
{
    uintptr_t value = c->buffer[c->first];
    c->first = (c->first + 1) % c->capacity;
    c->count--;
    return value;
}

static bool try_send(struct channel *c, struct chan_case *item, struct g **woken)
{
    struct waiter *w;
    if (c->closed)
        abort();
    w = line_pop(&c->receivers);
    if (w) {
        w->item->value = item->value;
        w->item->ok = true;
        *woken = met(w);
        return true;
    }
    if (c->count == c->capacity)
        return false;
    buffer_put(c, item->value);
    return true;
}

static bool try_receive(struct channel *c, struct chan_case *item, struct g **woken)
{
    struct waiter *w = c->count || !c->closed ? line_pop(&c->senders) : NULL;
    item->ok = true;
    if (c->count) {
        item->value = buffer_get(c);
        if (w)
            buffer_put(c, w->item->value);
    } else if (w)
        item->value = w->item->value;
    else if (c->closed)
        item->ok = false;
    else
        return false;
    if (w)
        *woken = met(w);
    return true;
}

static bool try_case(struct chan_case *item, struct g **woken)
{
    return item->send ? try_send(item->channel, item, woken)
                      : try_receive(item->channel, item, woken);
}

/* MARK: The operations */

struct locked {
    struct channel *channels[MAX_CASES];
    unsigned n;
};

/* Each channel once, by address. */
static void locked_add(struct locked *l, struct channel *c)
{
    unsigned at = l->n;
    while (at > 0 && l->channels[at - 1] > c)
        at--;
    if (at > 0 && l->channels[at - 1] == c)
        return;
    for (unsigned i = l->n++; i > at; i--)
        l->channels[i] = l->channels[i - 1];
    l->channels[at] = c;
}

static void lock_channels(struct locked *l)
{
    for (unsigned i = 0; i < l->n; i++)
        lock(&l->channels[i]->lock);
}

/* A copy: once a lock is open, a partner may wake the coroutine, on whose stack the list is. */
static void unlock_channels(void *argument)
{
    struct locked l = *(struct locked *)argument;
    for (unsigned i = 0; i < l.n; i++)
        unlock(&l.channels[i]->lock);
}

/* Puts a note at each case's channel and waits. */
static unsigned wait_for_one(struct chan_case *cases, unsigned n, struct locked *locked,
                             trail_block_reason reason)
{
    struct waiter notes[MAX_CASES];
    _Atomic bool done = false;
    unsigned chosen = n;
    for (unsigned i = 0; i < n; i++) {
        notes[i] = (struct waiter){g_self(), &done, &cases[i], i, &chosen, NULL};
        line_push(line_of(&cases[i]), &notes[i]);
    }
    park(reason, false, unlock_channels, locked);
    for (unsigned i = 0; i < n && n > 1; i++) {
        lock(&cases[i].channel->lock);
        line_remove(line_of(&cases[i]), &notes[i]);
        unlock(&cases[i].channel->lock);
    }
    return chosen;
}

static unsigned operate(struct chan_case *cases, unsigned n, trail_block_reason reason)
{
    struct locked locked = {.n = 0};
    struct g *woken = NULL;
    for (unsigned i = 0; i < n; i++)
        locked_add(&locked, cases[i].channel);
    lock_channels(&locked);
    for (unsigned i = 0; i < n; i++) {
        if (!try_case(&cases[i], &woken))
            continue;
        unlock_channels(&locked);
        if (woken)
            ready(woken);
        return i;
    }
    return wait_for_one(cases, n, &locked, reason);
}

void chan_send(struct channel *c, uintptr_t value)
{
    struct chan_case item = {.channel = c, .send = true, .value = value};
    operate(&item, 1, TRAIL_BLOCK_CHAN_SEND);
}

bool chan_receive(struct channel *c, uintptr_t *value)
{
    struct chan_case item = {.channel = c};
    operate(&item, 1, TRAIL_BLOCK_CHAN_RECEIVE);
    *value = item.value;
    return item.ok;
}

unsigned chan_select(struct chan_case *cases, unsigned n)
{
    return operate(cases, n, TRAIL_BLOCK_SELECT);
}

/* Closes the channel: sending ends, and waiting receivers are woken without a value. */
void chan_close(struct channel *c)
{
    struct queue woken = {0};
    struct waiter *w;
    struct g *g;
    lock(&c->lock);
    c->closed = true;
    while ((w = line_pop(&c->receivers))) {
        w->item->ok = false;
        gqueue_push(&woken, met(w));
    }
    unlock(&c->lock);
    while ((g = gqueue_pop(&woken)))
        ready(g);
}
