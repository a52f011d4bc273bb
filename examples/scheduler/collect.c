/*
 * A heap of small objects that form lists, and its collector: concurrent mark and sweep in the
 * shape of Go's, so that its phases can be seen in a trace.
 *
 *   sweep termination   the world stops; what the roots refer to becomes gray
 *   mark                worker coroutines turn gray objects black; allocating ones must assist
 *   mark termination    the world stops again; the next goal is set
 *   sweep               span by span, by a coroutine in the background and by allocations
 *
 * An object refers only to older ones and never changes, and new ones are black during marking, so
 * no write barrier is needed. heap.lock guards everything; it is a plain lock whose holder keeps
 * its P.
 */
#include "scheduler.h"

#include <stdlib.h>

enum {
    SPANS = 32,
    SPAN_SIZE = 4096,
    PER_SPAN = SPAN_SIZE / sizeof(struct object),
    OBJECTS = SPANS * PER_SPAN,
    WORKERS = 2,
    FIRST_GOAL = 300, /* objects */
    SPAN_CLASS = 3 << 1,
};

struct span {
    struct object *objects;
    unsigned used;
    bool in_use, to_sweep;
};

struct root {
    struct object **at;
    struct root *next;
};

static struct {
    struct lock lock;
    uint8_t *memory;
    struct span spans[SPANS];
    unsigned cursor; /* the span to allocate from */
    unsigned used, goal, to_sweep;
    struct root *roots;
    bool running, marking;
    _Atomic bool slowly;
    uint32_t cycle; /* an object with this mark is black or gray */
    struct object *gray[OBJECTS];
    unsigned grays;
    /* Coroutines that wait, by the reason that the trace shows. */
    struct queue workers, assists, sweeper, collector, for_end;
    struct heap_counts counts;
} heap;

/* Waits in `q`. Called with heap.lock, which it releases. */
static void wait_in(struct queue *q, trail_block_reason reason)
{
    gqueue_push(q, g_self());
    park(reason, false, unlock_after, &heap.lock);
}

/* With heap.lock. */
static void wake_one(struct queue *q)
{
    struct g *g = gqueue_pop(q);
    if (g)
        ready(g);
}

/*
 * Ends the generation, so that the trace shows what is active at the beginning of one. No
 * generation ends while the world is stopped: the stopping thread would wait for the P of this
 * thread, which waits for the generation.
 */
static void end_generation(void)
{
    if (!atomic_load(&heap.slowly) || !world_hold())
        return;
    trail_advance();
    world_release();
}

/* MARK: Mark */

static void shade(struct object *o)
{
    if (!o || o->mark == heap.cycle)
        return;
    o->mark = heap.cycle;
    heap.gray[heap.grays++] = o;
}

/* With heap.lock. The collector waits for the last. */
static void mark_some(unsigned n)
{
    while (n-- && heap.grays)
        shade(heap.gray[--heap.grays]->next);
    if (!heap.grays)
        wake_one(&heap.collector);
}

static void work(void *argument)
{
    (void)argument;
    for (;;) {
        lock(&heap.lock);
        if (!heap.marking || !heap.grays) {
            wait_in(&heap.workers, TRAIL_BLOCK_SYSTEM);
            continue;
        }
        mark_some(16);
        unlock(&heap.lock);
        safe_point();
    }
}

/* An allocation during marking pays with mark work, or waits when there is none left. */
static void assist(void)
{
    trail_gc_assist_begin(&m_self()->trail, 1);
    note(g_self(), "assist");
    end_generation();
    lock(&heap.lock);
    if (heap.marking && heap.grays) {
        heap.counts.assists++;
        mark_some(4);
        unlock(&heap.lock);
    } else if (heap.marking) {
        heap.counts.assist_waits++;
        wait_in(&heap.assists, TRAIL_BLOCK_GC_ASSIST);
    } else
        unlock(&heap.lock);
    note(g_self(), "assist-end");
    trail_gc_assist_end(&m_self()->trail);
}

/* MARK: Sweep */

/* With heap.lock, within trail_gc_sweep_begin and _end. */
static void sweep_span(struct m *m, struct span *s)
{
    unsigned before = s->used;
    s->to_sweep = false;
    heap.to_sweep--;
    heap.counts.sweeps++;
    for (unsigned i = 0; i < PER_SPAN; i++) {
        struct object *o = &s->objects[i];
        if (!o->used || o->mark == heap.cycle)
            continue;
        o->used = 0;
        s->used--;
        heap.used--;
        if (sched.alloc_free)
            trail_object_free(&m->trail, (uintptr_t)o);
    }
    if (s->used == 0) {
        s->in_use = false;
        if (sched.alloc_free)
            trail_span_free(&m->trail, (uintptr_t)s->objects);
    }
    trail_gc_sweep_span(&m->trail, SPAN_SIZE, (before - s->used) * sizeof(struct object), 1);
}

/* With heap.lock. */
static void sweep_some(unsigned n)
{
    struct m *m = m_self();
    trail_gc_sweep_begin(&m->trail);
    for (unsigned i = 0; i < SPANS && n; i++) {
        if (!heap.spans[i].to_sweep)
            continue;
        sweep_span(m, &heap.spans[i]);
        end_generation();
        n--;
    }
    trail_gc_sweep_end(&m->trail);
}

static void sweep_in_background(void *argument)
{
    (void)argument;
    for (;;) {
        lock(&heap.lock);
        if (!heap.to_sweep) {
            wait_in(&heap.sweeper, TRAIL_BLOCK_GC_SWEEP);
            continue;
        }
        sweep_some(2);
        unlock(&heap.lock);
        yield();
    }
}

/* MARK: The cycle */

static void begin_cycle(void)
{
    struct m *m;
    world_stop_traced(TRAIL_STW_GC_SWEEP_TERM);
    m = m_self();
    lock(&heap.lock);
    sweep_some(SPANS);
    trail_gc_begin(&m->trail, 1);
    heap.cycle++;
    heap.marking = true;
    for (struct root *r = heap.roots; r; r = r->next)
        shade(*r->at);
    unlock(&heap.lock);
    world_start_traced();
}

static void mark(void)
{
    wake_all(&heap.lock, &heap.workers);
    lock(&heap.lock);
    while (heap.grays) {
        wait_in(&heap.collector, TRAIL_BLOCK_UNTIL_GC_ENDS);
        lock(&heap.lock);
    }
    unlock(&heap.lock);
}

static void end_cycle(void)
{
    struct m *m;
    world_stop_traced(TRAIL_STW_GC_MARK_TERM);
    m = m_self();
    lock(&heap.lock);
    heap.marking = heap.running = false;
    for (unsigned i = 0; i < SPANS; i++) {
        heap.spans[i].to_sweep = heap.spans[i].in_use;
        heap.to_sweep += heap.spans[i].in_use;
    }
    heap.counts.cycles++;
    heap.goal = heap.used + FIRST_GOAL;
    trail_heap_goal(&m->trail, heap.goal * sizeof(struct object));
    trail_gc_end(&m->trail);
    unlock(&heap.lock);
    world_start_traced();
}

void collect(void)
{
    lock(&heap.lock);
    if (heap.running) {
        wait_in(&heap.for_end, TRAIL_BLOCK_UNTIL_GC_ENDS);
        return;
    }
    heap.running = true;
    unlock(&heap.lock);
    begin_cycle();
    end_generation();
    mark();
    end_cycle();
    wake_all(&heap.lock, &heap.assists);
    wake_all(&heap.lock, &heap.for_end);
    wake_all(&heap.lock, &heap.sweeper);
}

void collect_slowly(bool slowly)
{
    atomic_store(&heap.slowly, slowly);
}

struct heap_counts heap_counts(void)
{
    struct heap_counts counts;
    lock(&heap.lock);
    counts = heap.counts;
    unlock(&heap.lock);
    return counts;
}

/* MARK: Allocation */

/* With heap.lock. */
static struct object *find_free(struct span *s)
{
    if (s->to_sweep)
        sweep_some(1);
    if (s->used == PER_SPAN || s->to_sweep)
        return NULL;
    for (unsigned i = 0; i < PER_SPAN; i++)
        if (!s->objects[i].used)
            return &s->objects[i];
    return NULL;
}

/* With heap.lock; NULL if the heap is full. */
static struct object *take_free(void)
{
    for (unsigned i = 0; i < SPANS; i++) {
        struct span *s = &heap.spans[(heap.cursor + i) % SPANS];
        struct object *o = find_free(s);
        if (!o)
            continue;
        heap.cursor = (unsigned)(s - heap.spans);
        if (!s->in_use && sched.alloc_free)
            trail_span_alloc(&m_self()->trail, (uintptr_t)s->objects, 1, SPAN_CLASS);
        s->in_use = true;
        s->used++;
        heap.used++;
        o->used = 1;
        return o;
    }
    return NULL;
}

static uint64_t type_number(void)
{
    return (uint64_t)(uintptr_t)&heap;
}

static void trace_new(const struct object *o)
{
    struct m *m = m_self();
    if (sched.alloc_free)
        trail_object_alloc(&m->trail, (uintptr_t)o, type_number());
    if (heap.used % 32 == 0)
        trail_heap_alloc(&m->trail, heap.used * sizeof(struct object));
}

struct object *heap_new(struct object **root, uint64_t value)
{
    struct object *o;
    bool marking, full;
    lock(&heap.lock);
    marking = heap.marking;
    full = heap.used >= heap.goal && !heap.running;
    unlock(&heap.lock);
    if (marking)
        assist();
    if (full)
        collect();
    lock(&heap.lock);
    while (!(o = take_free())) {
        unlock(&heap.lock);
        collect();
        lock(&heap.lock);
    }
    o->mark = heap.cycle;
    o->value = value;
    o->next = *root;
    *root = o;
    trace_new(o);
    unlock(&heap.lock);
    return o;
}

void heap_drop(struct object **root)
{
    lock(&heap.lock);
    *root = NULL;
    unlock(&heap.lock);
}

void heap_root_add(struct object **root)
{
    struct root *r = calloc(1, sizeof(*r));
    if (!r)
        abort();
    lock(&heap.lock);
    r->at = root;
    r->next = heap.roots;
    heap.roots = r;
    unlock(&heap.lock);
}

void heap_root_remove(struct object **root)
{
    struct root *r;
    lock(&heap.lock);
    for (struct root **at = &heap.roots; (r = *at); at = &r->next) {
        if (r->at != root)
            continue;
        *at = r->next;
        free(r);
        break;
    }
    unlock(&heap.lock);
}

/* MARK: Start, stop */

void heap_snapshot(void *context)
{
    struct m *m = m_self();
    (void)context;
    lock(&heap.lock);
    trail_alloc_type(&m->trail, type_number(), sizeof(struct object), sizeof(struct object *),
                     "object");
    for (unsigned i = 0; i < SPANS; i++) {
        if (!heap.spans[i].in_use)
            continue;
        trail_span_exists(&m->trail, (uintptr_t)heap.spans[i].objects, 1, SPAN_CLASS);
        for (unsigned j = 0; j < PER_SPAN; j++)
            if (heap.spans[i].objects[j].used)
                trail_object_exists(&m->trail, (uintptr_t)&heap.spans[i].objects[j], type_number());
    }
    unlock(&heap.lock);
    stacks_snapshot();
}

void heap_start(void)
{
    heap.memory = aligned_alloc(SPAN_SIZE, (size_t)SPANS * SPAN_SIZE);
    if (!heap.memory)
        abort();
    lock(&heap.lock);
    for (unsigned i = 0; i < SPANS; i++) {
        heap.spans[i].objects = (struct object *)(void *)(heap.memory + (size_t)i * SPAN_SIZE);
        for (unsigned j = 0; j < PER_SPAN; j++)
            heap.spans[i].objects[j] = (struct object){0};
    }
    heap.goal = FIRST_GOAL;
    heap.cycle = 1;
    unlock(&heap.lock);
    for (int i = 0; i < WORKERS; i++)
        go_labelled(work, NULL, "GC (dedicated)");
    go(sweep_in_background, NULL);
}

void heap_stop(void)
{
    free(heap.memory);
}
