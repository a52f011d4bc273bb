/* v2, numbered events: see successors.h. */
#include "read/v2/successors.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/search.h"
#include "read/v2/decode.h"

static bool is_less(const struct v2_numbered *a, const struct v2_numbered *b)
{
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->id != b->id ? a->id < b->id : a->n < b->n;
}

static int by_number(const void *a, const void *b)
{
    return is_less(a, b) ? -1 : is_less(b, a);
}

static bool add(struct v2_successors *s, enum v2_numbered_kind kind, uint8_t type, uint64_t id,
                uint64_t n)
{
    return APPEND(s->items, s->capacity, s->count, (struct v2_numbered){id, n, kind, type});
}

/* A thread's P (V2_NO_THREAD if unknown) and the number of its system call, which its events do not
 * name. */
struct holder {
    uint64_t proc, call;
};

static bool add_event(struct v2_successors *s, const struct v2_wire_event *wire,
                      struct holder *thread)
{
    uint64_t *proc = &thread->proc;
    const uint64_t *arg = wire->arg;
    switch (wire->type) {
    case V2_GoStatus:
    case V2_GoStatusStack:
    case V2_GoCreate:
    case V2_GoCreateBlocked:
    case V2_GoCreateSyscall:
        return add(s, V2_NUMBERED_G, wire->type, arg[0], 0);
    case V2_GoStart:
    case V2_GoUnblock:
    case V2_GoSwitch:
    case V2_GoSwitchDestroy:
        return add(s, V2_NUMBERED_G, wire->type, arg[0], arg[1]);
    case V2_ProcStatus:
        if (arg[1] == V2_PROC_RUNNING || arg[1] == V2_PROC_SYSCALL)
            *proc = arg[0];
        return add(s, V2_NUMBERED_P, wire->type, arg[0], 0);
    case V2_ProcStart:
        *proc = arg[0];
        return add(s, V2_NUMBERED_P, wire->type, arg[0], arg[1]);
    case V2_ProcSteal:
        return add(s, V2_NUMBERED_P, wire->type, arg[0], arg[1]);
    case V2_GoSyscallBegin:
        thread->call = arg[0];
        return *proc == V2_NO_THREAD || add(s, V2_NUMBERED_P, wire->type, *proc, arg[0]);
    case V2_GoSyscallEnd:
        return *proc == V2_NO_THREAD || add(s, V2_NUMBERED_CALL, wire->type, *proc, thread->call);
    case V2_GoSyscallEndBlocked:
    case V2_ProcStop:
        *proc = V2_NO_THREAD;
        return true;
    case V2_GCBegin:
    case V2_GCEnd:
        return add(s, V2_NUMBERED_GC, wire->type, 0, arg[0]);
    default:
        return true;
    }
}

static bool add_batch(struct v2_successors *s, const struct v2_generation *g,
                      const struct v2_batch *batch, struct holder *thread)
{
    const uint8_t *at = g->buffer + batch->at, *end = at + batch->size;
    struct v2_wire_event wire;
    while (at < end) {
        at = v2_decode_any(at, end, &wire);
        if (!at)
            return true;
        if (!add_event(s, &wire, thread))
            return false;
    }
    return true;
}

/* The batches of a thread are linked; the first is not the `next` of any other. */
bool v2_successors_find(struct v2_successors *s, const struct v2_generation *g)
{
    bool *linked = calloc(g->batch_count + 1, sizeof *linked), good = linked != NULL;
    s->count = 0;
    for (size_t i = 0; good && i < g->batch_count; i++)
        if (g->batches[i].next != V2_NO_BATCH)
            linked[g->batches[i].next] = true;
    for (size_t i = 0; good && i < g->batch_count; i++) {
        struct holder thread = {V2_NO_THREAD, 0};
        for (uint32_t b = (uint32_t)i; good && !linked[i] && b != V2_NO_BATCH;
             b = g->batches[b].next)
            good = add_batch(s, g, &g->batches[b], &thread);
    }
    free(linked);
    if (s->count > 0)
        qsort(s->items, s->count, sizeof *s->items, by_number);
    return good;
}

/* Returns the index of the first one that is not before (kind, id, n). */
static size_t place_of(const struct v2_successors *s, enum v2_numbered_kind kind, uint64_t id,
                       uint64_t n)
{
    const struct v2_numbered wanted = {id, n, kind, 0};
    return SEARCH(i, 0, s->count, is_less(&s->items[i], &wanted));
}

static bool is_of(const struct v2_successors *s, size_t at, enum v2_numbered_kind kind, uint64_t id)
{
    return at < s->count && s->items[at].kind == kind && s->items[at].id == id;
}

uint8_t v2_successors_type(const struct v2_successors *s, enum v2_numbered_kind kind, uint64_t id,
                           uint64_t n)
{
    size_t at = place_of(s, kind, id, n);
    return is_of(s, at, kind, id) && s->items[at].n == n ? s->items[at].type : 0;
}

bool v2_successors_several(const struct v2_successors *s, enum v2_numbered_kind kind, uint64_t id)
{
    size_t at = place_of(s, kind, id, 0);
    return is_of(s, at, kind, id) && is_of(s, at + 1, kind, id);
}

void v2_successors_free(struct v2_successors *s)
{
    free(s->items);
    *s = (struct v2_successors){0};
}
