/*
 * Entering and leaving a section, and changing states inside it: the hot path of the protocol
 * described in tracer.h.
 */
#pragma once

#include "tracer/misuse.h"
#include "tracer/pause.h"
#include "tracer/tracer.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* MARK: Sections */

/* The frame's address where the layout of frames is known, otherwise its return address. */
#if defined(__x86_64__) || defined(__aarch64__)
#define STACK_HAS_FRAMES 1
#define stack_frame()    ((uintptr_t)__builtin_frame_address(0))
#else
#define STACK_HAS_FRAMES 0
#define stack_frame()    ((uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0)))
#endif

/*
 * Called if the generation is not that of the M's last section. Writes the status of what the M
 * runs and holds, once per generation. With 0, waits while threads are held (tracer.h). Returns the
 * generation.
 */
uint64_t section_first(trail_m *m, uint64_t generation);

/*
 * Whether the goroutine that the thread runs is gone: its memory was initialized again, or freed,
 * without its end.
 */
static inline bool lost_goroutine(const trail_m *m)
{
    return m->g && __atomic_load_n(&m->g->m_, __ATOMIC_RELAXED) != m;
}

/*
 * Values of trail_m.unlike_, with the session: how the thread's goroutine differs from others,
 * which matters only if it is lost.
 */
#define UNLIKE_TOOK_PROC 1ull /* it took its P during its system call */
#define UNLIKE_UNSEEN    2ull /* readers do not know that it runs */

static inline bool is_unlike(const trail_m *m, uint64_t how)
{
    return m->unlike_ == (tracer.first_generation << 2 | how);
}

/* What happens to a goroutine that readers do not know makes no difference to them. */
static inline void set_unlike(trail_m *m, uint64_t how)
{
    if (!is_unlike(m, UNLIKE_UNSEEN))
        m->unlike_ = tracer.first_generation << 2 | how;
}

/* Writes the end of a lost goroutine that readers see on the thread, and counts the misuse. */
void states_end_lost(trail_m *m, uint64_t generation);

/* For calls that readers accept only from a thread without a goroutine. */
static inline void end_lost_goroutine(trail_m *m, uint64_t generation)
{
    if (unlikely(m->g != NULL) && lost_goroutine(m) && generation)
        states_end_lost(m, generation);
}

/* The thread runs `g`, or is in a system call with it, also for readers. */
static inline void runs_seen(trail_m *m, trail_g *g)
{
    trail_set_runs_(m, g);
    m->seen_id_ = g->id;
}

/* Sets busy_ before the generation or `held` is loaded: pairs with the barriers in control.c. */
static inline void section_busy(trail_m *m)
{
    __atomic_store_n(&m->busy_, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (unlikely(tracer.fence))
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    tracer_pause(PAUSE_ENTERS);
}

/* Enters a section. Returns the generation; 0: nothing is recorded, but states still change. */
static inline uint64_t section_enter(trail_m *m)
{
    uint64_t generation;
    section_busy(m);
    /* Pairs with the store in set_generation: everything prepared for the generation is visible. */
    generation = __atomic_load_n(&tracer.generation, __ATOMIC_ACQUIRE);
    tracer_pause(PAUSE_LOADED);
    if (unlikely(generation != m->generation_))
        generation = section_first(m, generation);
    return generation;
}

static inline void section_leave(trail_m *m)
{
    tracer_pause(PAUSE_LEAVES);
    /* Pairs with the load in wait_for_sections: buffers and states are visible. */
    __atomic_store_n(&m->busy_, 0, __ATOMIC_RELEASE);
}

extern __thread trail_m *current_m __attribute__((tls_model("initial-exec"), visibility("hidden")));
trail_m *attach_own(void);

/* Counts a call with an M that is not the calling thread's. */
void call_refused(const char *what, uintptr_t frame);

/*
 * Begins a scheduler's call with the host's M `outer`: returns the inner M, in a section of
 * *generation (0: nothing is recorded). NULL: the M is not the calling thread's. Must be used in
 * the function that the host called. The comparison costs about 0.3 ns.
 */
__attribute__((always_inline)) static inline trail_m *
call_begin(const trail_m *outer, uint64_t *generation, const char *what)
{
    trail_m *m = current_m;
    if (unlikely(!m || m->outer_ != outer)) {
        *generation = 0;
        call_refused(what, stack_frame());
        return NULL;
    }
    m->frame_ = stack_frame();
    *generation = section_enter(m);
    return m;
}

/*
 * Begins a scheduler's call in a function with the parameter `outer`: declares the inner M `m` and
 * the `generation`, as call_begin; returns false if the M is not the calling thread's.
 */
#define BEGIN_CALL(outer, what)                                                                    \
    uint64_t generation;                                                                           \
    trail_m *m = call_begin((outer), &generation, (what));                                         \
    if (!m)                                                                                        \
    return false

/* Ends a scheduler's call. Returns `result`. */
static inline bool call_end(trail_m *m, bool result)
{
    section_leave(m);
    return result;
}

/* Ends a call that may change what the thread runs or holds, and copies that to the host's M. */
static inline bool call_end_moved(trail_m *m, bool result)
{
    const trail_p *p = __atomic_load_n(&m->p, __ATOMIC_RELAXED);
    m->outer_->g = m->g;
    m->outer_->p = p ? p->outer_ : NULL;
    return call_end(m, result);
}

/* Returns the calling thread's M, or the library's M for a thread without one; NULL: none. */
static inline trail_m *thread_m(void)
{
    return likely(current_m != NULL) ? current_m : attach_own();
}

/* Begins any other call, from any thread or signal handler. NULL: nothing is to be written. */
static inline trail_m *section_open(uint64_t *generation)
{
    trail_m *m = thread_m();
    if (unlikely(!m))
        return NULL;
    if (unlikely(__atomic_load_n(&m->busy_, __ATOMIC_RELAXED))) {
        count(&tracer.stats.reentrant);
        return NULL;
    }
    *generation = section_enter(m);
    if (unlikely(!*generation)) {
        section_leave(m);
        return NULL;
    }
    return m;
}

/* BEGIN_CALL for a call that keeps no state: returns true if no trace is on. */
#define SECTION(outer, what) SECTION_IF(trace_is_on(), outer, what)
#define SECTION_IF(on, outer, what)                                                                \
    if (!(on))                                                                                     \
        return true;                                                                               \
    BEGIN_CALL(outer, what);                                                                       \
    if (!generation)                                                                               \
    return call_end(m, true)

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
 * its status in `before` has then been written before it. False if the generation is 0, or if the
 * event would contradict the trace; `what` names the call for the checking build.
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
 * Whether the thread's goroutine is really its own. After calls in an impossible order its pointers
 * may refer to another thread's.
 */
static inline bool owns_g(const trail_m *m)
{
    return m->g && __atomic_load_n(&m->g->m_, __ATOMIC_RELAXED) == m;
}

/* Returns the thread's P; NULL: none. During a system call another thread may take it at any
 * time. */
static inline trail_p *held_p(const trail_m *m)
{
    trail_p *p = __atomic_load_n(&m->p, __ATOMIC_RELAXED);
    return p && __atomic_load_n(&p->m_, __ATOMIC_RELAXED) == m ? p : NULL;
}

static inline bool owns_p(const trail_m *m)
{
    return held_p(m) != NULL;
}

static inline bool in_state_g(const trail_m *m, uint64_t generation, unsigned state)
{
    return owns_g(m) && state_load(&m->g->state_) == state_word(generation, state);
}

static inline bool holds_proc(const trail_m *m, uint64_t generation)
{
    const trail_p *p = held_p(m);
    return p && state_load(&p->state_) == state_word(generation, TRAIL_P_RUNNING_);
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

/* Whether trail_g_init initialized `g`, and it is unmoved and unchanged; otherwise it must not be
 * touched. */
static inline bool is_initialized_g(const trail_g *g)
{
    return likely(g && g->check_ == trail_check_(g) + g->id);
}

/*
 * Clears the thread's goroutine, unless the call that ends its run was refused. A goroutine that
 * was never initialized is in no trace, and its memory may be freed.
 */
static inline void forget_goroutine(trail_m *m)
{
    if (!has_goroutine(m) || !is_initialized_g(m->g)) {
        trail_set_current_(m, NULL);
        m->unlike_ = 0;
    }
}

/* Returns the next sequence number of a goroutine or P in the generation (§2.10, §7.4). */
static inline uint64_t next_sequence(uint64_t *seq, uint64_t generation)
{
    if (*seq >> 32 != (uint32_t)generation)
        *seq = generation << 32;
    return (uint32_t)++ * seq;
}

/* is_initialized_g for a call of the host: counts a misuse. */
static inline bool check_g(const trail_m *m, const trail_g *g, const char *what)
{
    if (is_initialized_g(g))
        return true;
    return misuse_of(TRAIL_MISUSE_OBJECT, m, what,
                     "the goroutine was not initialized, or was moved or changed");
}
