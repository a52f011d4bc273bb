/* Status events and claims: see states.h and tracer.h. */
#include "tracer/states.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "tracer/context.h"
#include "tracer/event.h"
#include "tracer/identity.h"
#include "tracer/lock.h"
#include "tracer/tsan.h"

/* MARK: Status events */

/* Claims a state word for the generation; false if another thread has changed it in the
 * meantime. */
static bool claim(trail_state_ *word, trail_state_ old, uint64_t generation, unsigned state)
{
    return __atomic_compare_exchange_n(word, &old, state_word(generation, state), false,
                                       __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The same for a goroutine. What an earlier session showed of it no longer matters. */
static bool claim_g(trail_g *g, trail_state_ old, uint64_t generation, unsigned state)
{
    if (!state_in_session(old))
        set_shown(g, TRAIL_SHOWN_WAITING_);
    return claim(&g->state_, old, generation, state);
}

/*
 * Whether to write its GC assist as in progress: readers know it, or it began before the session.
 */
static bool is_in_assist(trail_g *g, uint64_t generation)
{
    uint64_t session = __atomic_load_n(&g->assist_session_, __ATOMIC_RELAXED);
    if (!session || session == tracer.first_generation)
        return session;
    if (generation == tracer.first_generation)
        __atomic_store_n(&g->assist_session_, generation, __ATOMIC_RELAXED);
    return generation == tracer.first_generation;
}

/* `waits`: the stack it waits with; NULL: unknown. Formats before 23 have no stack here. */
static void write_go_status(struct trail_writer_ *writer, uint64_t m_id, uint64_t generation,
                            trail_g *g, unsigned state, const struct table_entry *waits)
{
    uint64_t stack = tracer.format >= 23 ? stack_id(identity_under(generation, g, waits)) : 0;
    uint64_t of = state == TRAIL_G_RUNNING_ || state == TRAIL_G_SYSCALL_ ? m_id : V2_NO_THREAD;
    if (stack)
        v2_write_to(writer, m_id, generation, V2_GoStatusStack, 4,
                    (uint64_t[]){g->id, of, state, stack});
    else
        v2_write_to(writer, m_id, generation, V2_GoStatus, 3, (uint64_t[]){g->id, of, state});
    identity_note(NULL, generation, g, true);
    if (is_in_assist(g, generation))
        v2_write_to(writer, m_id, generation, V2_GCMarkAssistActive, 1, (uint64_t[]){g->id});
}

static void write_proc_status(struct trail_writer_ *writer, uint64_t m_id, uint64_t generation,
                              const trail_p *p, unsigned state)
{
    v2_write_to(writer, m_id, generation, V2_ProcStatus, 2, (uint64_t[]){(uint64_t)p->id, state});
    if (__atomic_load_n(&p->sweep_session_, __ATOMIC_RELAXED) == tracer.first_generation)
        v2_write_to(writer, m_id, generation, V2_GCSweepActive, 1, (uint64_t[]){(uint64_t)p->id});
}

/*
 * Creates a goroutine that is missing in a trace that began earlier, because the host's walk missed
 * it or the host has none. A status would be an error. Returns false if the creation cannot be
 * written here.
 */
static bool create_late(trail_m *m, uint64_t generation, const trail_g *g, unsigned state)
{
    uint64_t start;
    if (state != TRAIL_G_RUNNABLE_ && state != TRAIL_G_WAITING_)
        return false;
    start = stack_id(identity_stack(generation, g));
    identity_created(m, generation, g);
    if (!tracer.v2) {
        V1(m, generation, GoCreate, g->id, start, 0);
        if (state == TRAIL_G_WAITING_)
            V1(m, generation, GoWaiting, g->id);
        return true;
    }
    if (!holds_proc(m, generation) || (m->g && !runs_goroutine(m, generation)))
        return false;
    if (state == TRAIL_G_RUNNABLE_)
        return V2(m, generation, GoCreate, g->id, start, 0);
    return tracer.format >= 23 && V2(m, generation, GoCreateBlocked, g->id, start, 0);
}

/* Writes the status of `g`, before an event that changes it. */
static bool introduce_g(trail_m *m, uint64_t generation, trail_g *g, unsigned state, bool known)
{
    if (!tracer.v2 && !known) {
        bool created = create_late(m, generation, g, state);
        /* A goroutine created waiting has used one sequence number (§2.10). */
        g->seq_ = generation << 32 | (state == TRAIL_G_WAITING_);
        g->last_p_ = m->p;
        return created;
    }
    if (!known && generation != tracer.first_generation)
        return create_late(m, generation, g, state);
    write_go_status(v2_writer(m, generation), m->id, generation, g, state, NULL);
    return true;
}

bool state_change_slow_g(trail_m *m, uint64_t generation, trail_g *g, unsigned before,
                         unsigned after, const char *what)
{
    trail_state_ word = state_load(&g->state_);
    if (!generation) {
        trail_set_(&g->state_, after);
        return false;
    }
    for (;; word = state_load(&g->state_)) {
        if ((word & STATE_MASK) != before || word >> STATE_BITS > generation)
            return misuse_of(TRAIL_MISUSE_STATE, m, what,
                             "the goroutine is not in a state that allows it");
        if (word >> STATE_BITS == generation)
            break;
        bool known = state_in_session(word);
        bool runnable = before == TRAIL_G_WAITING_ && is_shown(g, TRAIL_SHOWN_RUNNABLE_);
        if (claim_g(g, word, generation, after)) {
            if (introduce_g(m, generation, g, runnable ? TRAIL_G_RUNNABLE_ : before, known))
                return true;
            /* It cannot be written now, so it stays unknown to the trace. */
            count(&tracer.stats.lost_events);
            trail_set_(&g->state_, after);
            return false;
        }
    }
    trail_set_(&g->state_, state_word(generation, after));
    return true;
}

bool state_change_slow_p(trail_m *m, uint64_t generation, trail_p *p, unsigned before,
                         unsigned after, const char *what)
{
    trail_state_ word = state_load(&p->state_);
    if (!generation) {
        trail_set_(&p->state_, after);
        return false;
    }
    for (;; word = state_load(&p->state_)) {
        if ((word & STATE_MASK) != before || word >> STATE_BITS > generation)
            return misuse_of(TRAIL_MISUSE_STATE, m, what, "the P is not in a state that allows it");
        if (word >> STATE_BITS == generation)
            break;
        if (claim(&p->state_, word, generation, after)) {
            /* A P of another thread's system call: its holder is no longer certain. */
            if (before == TRAIL_P_SYSCALL_ && m->p != p)
                before = V2_PROC_ABANDONED;
            if (tracer.v2)
                write_proc_status(v2_writer(m, generation), m->id, generation, p, before);
            return true;
        }
    }
    trail_set_(&p->state_, state_word(generation, after));
    return true;
}

/* MARK: The context of an M */

/*
 * Loads a state before recording() is called. A state that was changed after the session makes the
 * end of the session visible.
 */
static trail_state_ state_load_before(const trail_state_ *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/*
 * Whether a state without a generation, loaded before this call, is still the one from before the
 * session. After the session threads change states without events.
 */
static bool recording(void)
{
    return __atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != 0;
}

/*
 * While nothing is recorded, calls are not checked. A P in a system call whose thread is not in one
 * counts as running, and a goroutine that runs without a P counts as in a system call: events exist
 * that lead out of both.
 */
static unsigned plausible_p(const trail_m *m, trail_state_ word)
{
    unsigned state = word & STATE_MASK;
    return state == TRAIL_P_SYSCALL_ && !state_in_session(word) && !is_in_syscall(m)
               ? TRAIL_P_RUNNING_
               : state;
}

static unsigned plausible_g(const trail_m *m, trail_state_ word)
{
    unsigned state = word & STATE_MASK;
    return state == TRAIL_G_RUNNING_ && !state_in_session(word) && !owns_p(m) ? TRAIL_G_SYSCALL_
                                                                              : state;
}

/* A thread in an older generation may be taking the P of a system call at the same time. */
static void introduce_proc(const trail_m *m, trail_p *p, uint64_t generation,
                           struct trail_writer_ *writer, bool itself)
{
    trail_state_ word;
    unsigned state;
    context_lock(p);
    if (__atomic_load_n(&p->m_, __ATOMIC_RELAXED) == m) {
        word = state_load_before(&p->state_);
        state = plausible_p(m, word);
        if (word >> STATE_BITS < generation && (itself || state_in_session(word) || recording()) &&
            claim(&p->state_, word, generation, state))
            write_proc_status(writer, m->id, generation, p, state);
    }
    context_unlock(p);
}

/* Notes what readers know about the thread's goroutine. */
static void note_unlike(trail_m *m)
{
    const trail_p *p = held_p(m);
    if (owns_g(m) && !state_in_session(state_load(&m->g->state_)))
        set_unlike(m, UNLIKE_UNSEEN);
    else if (p && is_in_syscall(m) && (state_load(&p->state_) & STATE_MASK) == TRAIL_P_RUNNING_)
        set_unlike(m, UNLIKE_TOOK_PROC);
}

/*
 * The status of a goroutine whose memory was used again before its end, for a recording that begins
 * with this generation: its end follows (states_end_lost).
 */
static void introduce_lost(const trail_m *m, uint64_t generation, struct trail_writer_ *writer)
{
    bool runs = holds_proc(m, generation) && !is_unlike(m, UNLIKE_TOOK_PROC);
    if (generation != tracer.first_generation && !is_unlike(m, UNLIKE_UNSEEN))
        v2_write_to(writer, m->id, generation, V2_GoStatus, 3,
                    (uint64_t[]){m->seen_id_, m->id, runs ? TRAIL_G_RUNNING_ : TRAIL_G_SYSCALL_});
}

/*
 * Writes the status of what an M holds and runs, unless it is in this generation already. `itself`:
 * the M is in a section. Otherwise m->lock_ is held, for which its first section of the next
 * generation waits, so that its goroutine cannot end here. Once nothing is recorded it can end, and
 * the M is not read.
 */
static void introduce_context(trail_m *m, uint64_t generation, struct trail_writer_ *writer,
                              bool itself)
{
    trail_p *p = __atomic_load_n(&m->p, __ATOMIC_RELAXED);
    trail_g *g = __atomic_load_n(&m->g, __ATOMIC_RELAXED);
    trail_state_ word;
    unsigned state;
    if (!itself && !recording())
        return;
    /* After exit() has begun, the memory of the host's goroutines may be gone. */
    if (!itself && !m->own_ && is_exiting())
        g = NULL;
    if (p)
        introduce_proc(m, p, generation, writer, itself);
    if (g && lost_goroutine(m)) {
        /* Its status is there if the thread had a section in the generation before it was lost. */
        if (itself || m->generation_ < generation)
            introduce_lost(m, generation, writer);
    } else if (g && has_goroutine(m) && is_initialized_g(g)) {
        word = state_load_before(&g->state_);
        state = plausible_g(m, word);
        if (word >> STATE_BITS < generation &&
            (state_in_session(word) ||
             (generation == tracer.first_generation && (itself || recording()))) &&
            claim_g(g, word, generation, state)) {
            write_go_status(writer, m->id, generation, g, state, NULL);
            m->seen_id_ = g->id;
            if (!itself)
                m->shown_session_ = tracer.first_generation;
            note_unlike(m);
        }
    }
}

/*
 * Writes what every generation has once, by a thread that runs a goroutine: the number of Ps, the
 * heap's goal, a collection in progress.
 */
void states_announce(trail_m *m, uint64_t generation)
{
    uint64_t told = __atomic_load_n(&tracer.announced, __ATOMIC_RELAXED);
    unsigned procs = __atomic_load_n(&tracer.procs, __ATOMIC_RELAXED);
    uint64_t goal = __atomic_load_n(&tracer.heap_goal, __ATOMIC_RELAXED);
    if (told >= generation || !runs_goroutine(m, generation) ||
        !__atomic_compare_exchange_n(&tracer.announced, &told, generation, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    if (procs)
        V2(m, generation, ProcsChange, procs, 0);
    if (goal && generation == tracer.first_generation)
        V2(m, generation, HeapGoal, goal);
    lock_mutex(&tracer.gc);
    if (tracer.gc_active && tracer.gc_announced < generation &&
        (tracer.gc_recorded || generation == tracer.first_generation)) {
        uint64_t seq = tracer.gc_sequence++;
        tracer.gc_announced = generation;
        V2(m, generation, GCActive, seq);
        tracer.gc_recorded = true;
    }
    pthread_mutex_unlock(&tracer.gc);
}

/* Whether the thread must wait for the thread that holds all others. */
static bool is_held(const trail_m *m)
{
    return __atomic_load_n(&tracer.held, __ATOMIC_ACQUIRE) &&
           m != __atomic_load_n(&tracer.holder, __ATOMIC_RELAXED);
}

/*
 * Returns the generation, loaded after `held` was seen clear: the thread that holds the others sets
 * the generation before it clears `held`. A generation loaded earlier could be the one before the
 * trace.
 */
static uint64_t generation_now(void)
{
    uint64_t generation = __atomic_load_n(&tracer.generation, __ATOMIC_ACQUIRE);
    tracer_pause(PAUSE_LOADED);
    return generation;
}

/*
 * Lets the thread that holds the others begin the trace. A signal handler may annotate during this
 * and change frame_.
 */
static uint64_t wait_while_held(trail_m *m)
{
    uintptr_t frame = m->frame_;
    unsigned tries = 0;
    do {
        __atomic_store_n(&m->busy_, 0, __ATOMIC_RELEASE);
        tracer_pause(PAUSE_WAITS);
        if (tries++ < 100)
            sched_yield();
        else
            (void)nanosleep(&(struct timespec){0, 50000}, NULL);
        section_busy(m);
    } while (is_held(m));
    m->frame_ = frame;
    return generation_now();
}

static void first_in_generation(trail_m *m, uint64_t generation)
{
    tsan_acquire(&tracer.generation);
    memset(m->recent_, 0, sizeof m->recent_);
    memset(m->recent_stacks_, 0, sizeof m->recent_stacks_);
    if (!tracer.v2) {
        m->generation_ = generation;
        note_unlike(m);
        return;
    }
    states_lock(m);
    /* Statuses missing in the generation before are written now, before its states change. */
    if (generation > tracer.first_generation)
        states_close(m, generation - 1, v2_writer(m, generation - 1));
    m->generation_ = generation;
    m->string_ids_ = m->string_ids_end_ = 0;
    states_unlock(m);
    introduce_context(m, generation, v2_writer(m, generation), true);
    note_unlike(m);
    states_announce(m, generation);
}

/* Whether readers may see a goroutine on the thread that the thread has since lost. */
static bool is_in_session(trail_m *m)
{
    bool seen;
    states_lock(m);
    seen = m->shown_session_ == tracer.first_generation ||
           (m->generation_ != NO_GENERATION && m->generation_ >= tracer.first_generation);
    states_unlock(m);
    return seen;
}

uint64_t section_first(trail_m *m, uint64_t generation)
{
    if (!generation)
        generation = is_held(m) ? wait_while_held(m) : generation_now();
    if (!generation || generation == m->generation_)
        return generation;
    /* Left behind by calls while nothing was recorded. */
    if (m->g && !has_goroutine(m) && !is_in_session(m))
        trail_set_current_(m, NULL);
    first_in_generation(m, generation);
    return generation;
}

static void write_end_of_lost(trail_m *m, uint64_t generation)
{
    bool took = is_unlike(m, UNLIKE_TOOK_PROC);
    /* It runs, unless its P is in the call with it, is gone, or was taken during the call. */
    if (holds_proc(m, generation) && !took)
        EVENT_0(m, generation, GoDestroy, GoEnd);
    else if (holds_proc(m, generation) && tracer.v2)
        states_destroy_beside_proc(m, generation);
    else
        states_destroy_in_syscall(m, generation);
}

void states_end_lost(trail_m *m, uint64_t generation)
{
    trail_set_current_(m, NULL);
    if (!is_unlike(m, UNLIKE_UNSEEN))
        write_end_of_lost(m, generation);
    m->unlike_ = 0;
    misuse_of(TRAIL_MISUSE_OBJECT, m, "trail_g_init",
              "the goroutine at this address ran on a thread: trail_go_end is missing");
}

void states_close(trail_m *m, uint64_t generation, struct trail_writer_ *writer)
{
    if (m->closed_ >= generation)
        return;
    m->closed_ = generation;
    introduce_context(m, generation, writer, false);
}

void states_write_early(trail_m *m, uint64_t generation)
{
    if (m->generation_ < generation || m->generation_ == NO_GENERATION)
        introduce_context(m, generation, v2_writer(m, generation), false);
}

void states_lock(trail_m *m)
{
    lock_word(&m->lock_);
}

void states_unlock(trail_m *m)
{
    unlock_word(&m->lock_);
}

/* MARK: Ending a generation */

void states_claim(trail_g *g, uint64_t generation, struct trail_writer_ *writer)
{
    trail_state_ word = state_load_before(&g->state_);
    unsigned state = word & STATE_MASK;
    bool runnable;
    if (word >> STATE_BITS >= generation)
        return;
    /* Goroutines that run or are in a system call are written by their threads. */
    if (state != TRAIL_G_WAITING_ && state != TRAIL_G_RUNNABLE_)
        return;
    if (!state_in_session(word) && (generation != tracer.first_generation || !recording()))
        return;
    runnable = state == TRAIL_G_WAITING_ && is_shown(g, TRAIL_SHOWN_RUNNABLE_);
    if (claim_g(g, word, generation, state)) {
        const struct table_entry *stack = g->kept_stack_;
        bool waits = state == TRAIL_G_WAITING_ && stack && g->kept_generation_ == generation;
        if (runnable)
            state = TRAIL_G_RUNNABLE_;
        write_go_status(writer, V2_NO_THREAD, generation, g, state, waits ? stack : NULL);
    }
}

/* Returns an idle P whose state is certain; NULL if there is none. *has: no status is missing. */
static trail_p *idle_proc(uint64_t generation, bool *has)
{
    trail_p *idle = NULL;
    for (trail_p *p = procs_first(); p; p = p->next_) {
        trail_state_ word = state_load_before(&p->state_);
        bool certain = state_in_session(word) || recording();
        *has |= word >> STATE_BITS >= generation ||
                (recording() && __atomic_load_n(&p->m_, __ATOMIC_RELAXED));
        if (certain && (word & STATE_MASK) == TRAIL_P_IDLE_)
            idle = p;
    }
    return idle;
}

void states_claim_proc(uint64_t generation, struct trail_writer_ *writer)
{
    bool has = false;
    trail_p *p = idle_proc(generation, &has);
    trail_state_ word;
    if (has)
        return;
    if (!p)
        p = threads_spare_proc();
    word = state_load(&p->state_);
    /* Otherwise another thread writes its status. */
    if (word >> STATE_BITS < generation && (word & STATE_MASK) == TRAIL_P_IDLE_ &&
        claim(&p->state_, word, generation, TRAIL_P_IDLE_))
        write_proc_status(writer, V2_NO_THREAD, generation, p, TRAIL_P_IDLE_);
}

void states_carry_stack(trail_g *g, uint64_t generation)
{
    const struct table_entry *stack = NULL;
    if ((state_load(&g->state_) & STATE_MASK) != TRAIL_G_WAITING_)
        return;
    /*
     * The generation is loaded first: if it is the one that ends, the stack belongs to it or to the
     * next one, and both tables exist.
     */
    if (__atomic_load_n(&g->block_generation_, __ATOMIC_ACQUIRE) == generation)
        stack = __atomic_load_n(&g->block_stack_, __ATOMIC_ACQUIRE);
    else if (g->kept_generation_ == generation)
        stack = g->kept_stack_;
    if (!stack)
        return;
    g->kept_stack_ =
        stack_put(generation + 1, (const uintptr_t *)stack->data, stack->size / sizeof(uintptr_t));
    g->kept_generation_ = generation + 1;
}
