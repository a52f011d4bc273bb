/* Garbage collection, stop-the-world pauses and the heap (§2.11, §7.4). */
#include "tracer/context.h"
#include "tracer/event.h"
#include "tracer/lock.h"
#include "tracer/states.h"

#define NO_GOROUTINE "the thread runs no goroutine on a P"

/* v1's events need a running P or none; v2's need a goroutine on a P (§6.5). */
static bool can_write(const trail_m *m, uint64_t generation, const char *what)
{
    if (tracer.v2 ? runs_goroutine(m, generation) : holds_proc(m, generation) || !owns_p(m))
        return true;
    return misuse(m, what, NO_GOROUTINE);
}

/* MARK: Collections */

static bool write_gc_begin(trail_m *m, uint64_t generation, uint64_t stack)
{
    uint64_t seq = tracer.gc_sequence++;
    tracer.gc_recorded = true;
    tracer.gc_announced = generation;
    return EVENT(m, generation, GCBegin, GCStart, seq, stack);
}

bool trail_gc_begin(trail_m *outer, int skip)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_gc_begin");
    lock_mutex(&tracer.gc);
    if (generation && tracer.gc_active)
        misuse_of(TRAIL_MISUSE_NESTING, m, "trail_gc_begin", "a collection is under way");
    else if (generation && can_write(m, generation, "trail_gc_begin"))
        written = write_gc_begin(m, generation, stack_id(stack_here(m, generation, skip)));
    tracer.gc_active = true;
    pthread_mutex_unlock(&tracer.gc);
    return call_end(m, written || !generation);
}

/* Writes the end of a collection that this session has recorded. */
static bool write_gc_end(trail_m *m, uint64_t generation)
{
    uint64_t seq;
    if (!tracer.v2)
        return V1_0(m, generation, GCDone);
    seq = tracer.gc_sequence++;
    return V2(m, generation, GCEnd, seq);
}

bool trail_gc_end(trail_m *outer)
{
    bool written = true, over = true;
    BEGIN_CALL(outer, "trail_gc_end");
    if (generation && tracer.v2)
        states_announce(m, generation);
    lock_mutex(&tracer.gc);
    if (generation && !tracer.gc_active)
        written = misuse_of(TRAIL_MISUSE_NESTING, m, "trail_gc_end", "no collection is under way");
    else if (generation && tracer.gc_recorded)
        written = over = can_write(m, generation, "trail_gc_end");
    if (generation && tracer.gc_recorded && written)
        written = write_gc_end(m, generation);
    if (over)
        tracer.gc_active = tracer.gc_recorded = false;
    pthread_mutex_unlock(&tracer.gc);
    return call_end(m, written);
}

bool gc_is_unannounced(uint64_t generation)
{
    bool unannounced;
    lock_mutex(&tracer.gc);
    unannounced = tracer.gc_active && tracer.gc_recorded && tracer.gc_announced < generation;
    pthread_mutex_unlock(&tracer.gc);
    return unannounced;
}

/* MARK: Mark assists */

/* Updated even while nothing is recorded: a trace shows an assist that is in progress at its
 * start. */
static void set_assist(const trail_m *m, uint64_t session)
{
    if (owns_g(m))
        __atomic_store_n(&m->g->assist_session_, session, __ATOMIC_RELAXED);
}

bool trail_gc_assist_begin(trail_m *outer, int skip)
{
    bool written = false;
    uint64_t stack;
    BEGIN_CALL(outer, "trail_gc_assist_begin");
    if (!generation) {
        set_assist(m, TRAIL_ASSIST_);
        written = true;
    } else if (tracer.format < 11) {
        set_assist(m, TRAIL_ASSIST_);
        leave_out(TRAIL_LEFT_OUT_ASSIST);
    } else if (!runs_goroutine(m, generation)) {
        misuse(m, "trail_gc_assist_begin", NO_GOROUTINE);
    } else if (m->g->assist_session_) {
        misuse_of(TRAIL_MISUSE_NESTING, m, "trail_gc_assist_begin",
                  "the goroutine is in an assist");
    } else {
        stack = stack_id(stack_here(m, generation, skip));
        written = EVENT(m, generation, GCMarkAssistBegin, GCMarkAssistStart, stack);
        set_assist(m, tracer.first_generation);
    }
    return call_end(m, written);
}

bool trail_gc_assist_end(trail_m *outer)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_gc_assist_end");
    if (!generation || tracer.format < 11) {
        set_assist(m, 0);
        written = true;
    } else if (!runs_goroutine(m, generation)) {
        misuse(m, "trail_gc_assist_end", NO_GOROUTINE);
    } else if (!m->g->assist_session_) {
        misuse_of(TRAIL_MISUSE_NESTING, m, "trail_gc_assist_end", "the goroutine is in no assist");
    } else {
        /* v1: also if it began before the trace, as Go writes it. */
        written = EVENT_0(m, generation, GCMarkAssistEnd, GCMarkAssistDone);
        set_assist(m, 0);
    }
    return call_end(m, written);
}

/* MARK: Sweeping: written from its first span on */

bool trail_gc_sweep_begin(trail_m *outer)
{
    BEGIN_CALL(outer, "trail_gc_sweep_begin");
    if (m->p) {
        m->p->may_sweep_ = true;
        m->p->swept_ = m->p->reclaimed_ = 0;
    }
    return call_end(m, true);
}

bool trail_gc_sweep_span(trail_m *outer, uint64_t swept, uint64_t reclaimed, int skip)
{
    bool written = true;
    SECTION(outer, "trail_gc_sweep_span");
    trail_p *p = m->p;
    if (!holds_proc(m, generation))
        return call_end(m, misuse(m, "trail_gc_sweep_span", "the thread holds no P"));
    /* Outside of a sweep event, spans swept by an allocation have no event (§2.10). */
    if (!p->may_sweep_)
        return call_end(m, true);
    if (p->sweep_session_ != tracer.first_generation) {
        uint64_t stack = stack_id(stack_here(m, generation, skip));
        p->swept_ = p->reclaimed_ = 0;
        written = EVENT(m, generation, GCSweepBegin, GCSweepStart, stack);
        __atomic_store_n(&p->sweep_session_, tracer.first_generation, __ATOMIC_RELAXED);
    }
    p->swept_ += swept;
    p->reclaimed_ += reclaimed;
    return call_end(m, written);
}

bool trail_gc_sweep_end(trail_m *outer)
{
    bool written = true;
    BEGIN_CALL(outer, "trail_gc_sweep_end");
    trail_p *p = m->p;
    if (p)
        p->may_sweep_ = false;
    if (generation && p && p->sweep_session_ == tracer.first_generation &&
        holds_proc(m, generation)) {
        if (tracer.v2)
            written = V2(m, generation, GCSweepEnd, p->swept_, p->reclaimed_);
        else if (tracer.format < 11)
            written = V1_0(m, generation, GCSweepDone);
        else
            written = V1(m, generation, GCSweepDone, p->swept_, p->reclaimed_);
        __atomic_store_n(&p->sweep_session_, 0, __ATOMIC_RELAXED);
    }
    return call_end(m, written);
}

/* MARK: Stopping the world */

static const char *const stw_kinds[TRAIL_STW_KIND_COUNT] = {
#define KIND(name, text) text,
    TRAIL_STW_KINDS(KIND)
#undef KIND
};

/*
 * Returns v1's number for a kind: format 21 uses the table's, earlier ones 0 and 1 for the two
 * pauses of a collection (§1.3). -1: the format has no number for it.
 */
static int v1_stw_number(trail_stw_kind kind)
{
    if (tracer.format >= 21)
        return kind < TRAIL_STW_START_TRACE ? (int)kind : TRAIL_STW_UNKNOWN;
    return kind == TRAIL_STW_GC_MARK_TERM ? 0 : kind == TRAIL_STW_GC_SWEEP_TERM ? 1 : -1;
}

static bool write_stw_begin(trail_m *m, uint64_t generation, trail_stw_kind kind, uint64_t stack)
{
    int number;
    if (tracer.v2)
        return V2(m, generation, STWBegin, string_id(m, generation, stw_kinds[kind]), stack);
    number = v1_stw_number(kind);
    return tracer.format < 10 ? V1_0(m, generation, STWStart)
                              : V1(m, generation, STWStart, (uint64_t)number);
}

/* v2's readers keep the pause with its goroutine; one that was never initialized has no ID. */
static uint64_t stopper_of(const trail_m *m)
{
    return has_goroutine(m) && m->g->id ? m->g->id : ~m->id;
}

/*
 * Keeps the generation from ending while the world is stopped, because readers match a start with
 * an end in the same generation's tables. Returns the generation that is held, which may be the
 * next one; 0 if the trace has just ended. *stopped remains false if the world is already stopped.
 */
static uint64_t hold_generation(trail_m *m, uint64_t generation, bool *stopped)
{
    lock_mutex(&tracer.switching);
    while (generation && __atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != generation) {
        pthread_mutex_unlock(&tracer.switching);
        generation = section_enter(m);
        lock_mutex(&tracer.switching);
    }
    if (generation && !tracer.stopper) {
        __atomic_store_n(&tracer.stopper, stopper_of(m), __ATOMIC_RELAXED);
        tracer.stopped_on = m->p;
        *stopped = true;
    }
    pthread_mutex_unlock(&tracer.switching);
    return generation;
}

static bool write_stw_end(trail_m *m, uint64_t generation)
{
    bool written = EVENT_0(m, generation, STWEnd, STWDone);
    lock_mutex(&tracer.switching);
    __atomic_store_n(&tracer.stopper, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&tracer.switching);
    return written;
}

bool trail_stw_begin(trail_m *outer, trail_stw_kind kind, int skip)
{
    bool written = false, stopped = false;
    if ((unsigned)kind >= TRAIL_STW_KIND_COUNT)
        kind = TRAIL_STW_UNKNOWN;
    SECTION(outer, "trail_stw_begin");
    if (!tracer.v2 && v1_stw_number(kind) < 0) {
        leave_out(TRAIL_LEFT_OUT_STOPPED);
        return call_end(m, false);
    }
    if (!can_write(m, generation, "trail_stw_begin"))
        return call_end(m, false);
    generation = hold_generation(m, generation, &stopped);
    if (stopped)
        written = write_stw_begin(m, generation, kind, stack_id(stack_here(m, generation, skip)));
    else if (generation)
        misuse_of(TRAIL_MISUSE_NESTING, m, "trail_stw_begin", "another pause is under way");
    return call_end(m, written || !generation);
}

bool trail_stw_end(trail_m *outer)
{
    const char *wrong = NULL;
    bool written = true;
    SECTION(outer, "trail_stw_end");
    uint64_t stopper = __atomic_load_n(&tracer.stopper, __ATOMIC_RELAXED);
    /* Otherwise it began before the trace, or the format lacks that kind. */
    if (!stopper)
        return call_end(m, true);
    if (!can_write(m, generation, "trail_stw_end"))
        return call_end(m, false);
    if (stopper != stopper_of(m))
        wrong = "it was begun by another goroutine";
    /* Before Go 1.10 each P had its own stop (§3.6). */
    else if (tracer.format < 10 && tracer.stopped_on != m->p)
        wrong = "it was begun on another P";
    if (wrong)
        written = misuse_of(TRAIL_MISUSE_NESTING, m, "trail_stw_end", wrong);
    else
        written = write_stw_end(m, generation);
    return call_end(m, written);
}

bool gc_has_stopped_world(void)
{
    const trail_m *m = current_m;
    uint64_t stopper = __atomic_load_n(&tracer.stopper, __ATOMIC_RELAXED);
    return stopper && m && trace_is_on() && stopper == stopper_of(m);
}

void stw_abandon(trail_m *m, uint64_t generation)
{
    misuse_of(TRAIL_MISUSE_NESTING, m, "trail_stw_end",
              "the goroutine ended while it had stopped the world");
    /* In format 7 the pause stays open if it began on another P. */
    if (tracer.format >= 10 || tracer.stopped_on == m->p)
        (void)write_stw_end(m, generation);
}

/* MARK: Heap */

static bool heap_end(trail_m *m, uint64_t generation, bool written)
{
    if (unlikely(m->borrowed_))
        context_return(m, generation);
    return call_end(m, written);
}

bool trail_heap_alloc(trail_m *outer, uint64_t live_bytes)
{
    bool written;
    SECTION(outer, "trail_heap_alloc");
    if (!holds_proc(m, generation) && !context_create(m, &generation, "trail_heap_alloc"))
        return false;
    written = EVENT(m, generation, HeapAlloc, HeapAlloc, live_bytes);
    return heap_end(m, generation, written);
}

bool trail_heap_goal(trail_m *outer, uint64_t bytes)
{
    bool written;
    /* Format 7 wrote this number itself when there was no goal (§1.3). */
    if (bytes == UINT64_MAX)
        bytes = 0;
    __atomic_store_n(&tracer.heap_goal, bytes, __ATOMIC_RELAXED);
    SECTION_IF(number_needs_event(), outer, "trail_heap_goal");
    if (!holds_proc(m, generation) && !context_create(m, &generation, "trail_heap_goal"))
        return false;
    written = EVENT(m, generation, HeapGoal, HeapGoal, bytes);
    return heap_end(m, generation, written);
}
