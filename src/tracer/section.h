/*
 * Entering and leaving a section, and changing states inside it: the hot path of the protocol
 * described in tracer.h.
 */
#ifndef TRAIL_TRACER_SECTION_H
#define TRAIL_TRACER_SECTION_H

#include "tracer/tracer.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* MARK: Sections */

/* The first section of an M in a generation: writes the status of what it runs and holds. */
void section_first(trail_m *m, uint64_t generation);

/*
 * Enters a section for a scheduler's call, whose inline part has set busy_. Returns the generation;
 * 0: nothing is recorded, but states must still change.
 */
static inline uint64_t section_enter(trail_m *m)
{
    uint64_t generation;
    if (unlikely(tracer.fence))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    /* Pairs with the store in set_generation: everything prepared for the generation is visible. */
    generation = __atomic_load_n(&tracer.generation, __ATOMIC_ACQUIRE);
    if (unlikely(generation != m->generation_) && generation)
        section_first(m, generation);
    return generation;
}

static inline void section_leave(trail_m *m)
{
    /* Pairs with the load in wait_for_sections: buffers and states are visible. */
    __atomic_store_n(&m->busy_, 0, __ATOMIC_RELEASE);
}

extern __thread trail_m *current_m __attribute__((tls_model("initial-exec"), visibility("hidden")));
trail_m *attach_own(void);

/*
 * Returns the calling thread's M, or one of the library's for a thread without; NULL if there is
 * none.
 */
static inline trail_m *thread_m(void)
{
    return likely(current_m != NULL) ? current_m : attach_own();
}

/*
 * For all other calls, from any thread or signal handler. Returns NULL if nothing is to be written.
 */
static inline trail_m *section_open(uint64_t *generation)
{
    trail_m *m = thread_m();
    if (unlikely(!m))
        return NULL;
    if (unlikely(__atomic_load_n(&m->busy_, __ATOMIC_RELAXED))) {
        count(&tracer.stats.reentrant);
        return NULL;
    }
    __atomic_store_n(&m->busy_, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    *generation = section_enter(m);
    if (unlikely(!*generation)) {
        section_leave(m);
        return NULL;
    }
    return m;
}

/* MARK: States */

#define STATE_BITS 3
#define STATE_MASK 7u

static inline trail_state_ state_word(uint64_t generation, unsigned state)
{
    return generation << STATE_BITS | state;
}

static inline trail_state_ state_load(const trail_state_ *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Whether readers of this trace have seen the state. */
static inline bool state_in_session(trail_state_ word)
{
    return word >> STATE_BITS >= tracer.first_generation;
}

/*
 * Changes the state of `g` from `before` to `after`. Returns true if the event is to be written:
 * its status in `before` precedes it then. False if the generation is 0, or if the event would
 * contradict the trace; `what` names the call for the checking build.
 */
bool state_change_slow_g(trail_m *m, uint64_t generation, trail_g *g, unsigned before,
                         unsigned after, const char *what);
bool state_change_slow_p(trail_m *m, uint64_t generation, trail_p *p, unsigned before,
                         unsigned after, const char *what);

static inline bool state_change_g(trail_m *m, uint64_t generation, trail_g *g, unsigned before,
                                  unsigned after, const char *what)
{
    if (likely(state_load(&g->state_) == state_word(generation, before)) && generation) {
        trail_set_(&g->state_, state_word(generation, after));
        return true;
    }
    return state_change_slow_g(m, generation, g, before, after, what);
}

static inline bool state_change_p(trail_m *m, uint64_t generation, trail_p *p, unsigned before,
                                  unsigned after, const char *what)
{
    if (likely(state_load(&p->state_) == state_word(generation, before)) && generation) {
        trail_set_(&p->state_, state_word(generation, after));
        return true;
    }
    return state_change_slow_p(m, generation, p, before, after, what);
}

/*
 * Whether the thread's goroutine and P are really its own. After calls in an impossible order its
 * pointers may refer to those of another thread.
 */
static inline bool owns_g(const trail_m *m)
{
    return m->g && __atomic_load_n(&m->g->m_, __ATOMIC_RELAXED) == m;
}

static inline bool owns_p(const trail_m *m)
{
    return m->p && __atomic_load_n(&m->p->m_, __ATOMIC_RELAXED) == m;
}

static inline bool in_state_g(const trail_m *m, uint64_t generation, unsigned state)
{
    return owns_g(m) && state_load(&m->g->state_) == state_word(generation, state);
}

static inline bool holds_proc(const trail_m *m, uint64_t generation)
{
    return owns_p(m) && state_load(&m->p->state_) == state_word(generation, TRAIL_P_RUNNING_);
}

/* Whether the thread runs a goroutine on a P in the trace, which most events need. */
static inline bool runs_goroutine(const trail_m *m, uint64_t generation)
{
    return in_state_g(m, generation, TRAIL_G_RUNNING_) && holds_proc(m, generation);
}

/* Whether the thread runs a goroutine, or is in a system call with one. */
static inline bool has_goroutine(const trail_m *m)
{
    unsigned state = owns_g(m) ? state_load(&m->g->state_) & STATE_MASK : TRAIL_G_NONE_;
    return state == TRAIL_G_RUNNING_ || state == TRAIL_G_SYSCALL_;
}

static inline bool is_in_syscall(const trail_m *m)
{
    return owns_g(m) && (state_load(&m->g->state_) & STATE_MASK) == TRAIL_G_SYSCALL_;
}

/* Whether the goroutine is in this trace, alive or ended. */
static inline bool is_known(const trail_g *g)
{
    return state_in_session(state_load(&g->state_));
}

/* Clears the thread's goroutine, unless the call that ends its run was refused. */
static inline void forget_goroutine(trail_m *m)
{
    if (!has_goroutine(m))
        trail_set_current_(m, NULL);
}

/* Returns the next sequence number of a goroutine or P in the generation (§2.10, §7.4). */
static inline uint64_t next_sequence(uint64_t *seq, uint64_t generation)
{
    if (*seq >> 32 != (uint32_t)generation)
        *seq = generation << 32;
    return (uint32_t)++ * seq;
}

/* Counts an event in an impossible order; the checking build aborts. Returns false. */
bool misuse(const trail_m *m, const char *what, const char *why);

#endif
