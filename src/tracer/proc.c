/* Starts and stops Ps, or takes them from a system call; system calls (§2.11, §7.4). */
#include "tracer/context.h"
#include "tracer/event.h"
#include "tracer/identity.h"
#include "tracer/lock.h"
#include "tracer/memory.h"
#include "tracer/states.h"

/* MARK: Ps */

/*
 * Inner Ps that trail_p_fini has released, newest first; guarded by ps_lock. Their memory stays: a
 * goroutine may still name one as its last P.
 */
static trail_p *free_ps;

#define PS_AT_ONCE 32

/*
 * An inner P on cache lines of its own, because its thread writes to it at every event, and
 * processors fetch lines of 64 bytes in pairs.
 */
struct apart {
    _Alignas(128) trail_p p;
};

static bool more_ps(void)
{
    struct apart *ps = memory_map(PS_AT_ONCE * sizeof *ps);
    for (int i = 0; ps && i < PS_AT_ONCE; i++) {
        ps[i].p.next_ = free_ps;
        free_ps = &ps[i].p;
    }
    return ps;
}

/* Takes an inner P that nothing in this session refers to; NULL: no memory. */
static trail_p *take_p(void)
{
    for (int tries = 0; tries < 2; tries++) {
        for (trail_p **link = &free_ps; *link; link = &(*link)->next_) {
            trail_p *p = *link;
            if (p->retired_session_ && p->retired_session_ == tracer.first_generation)
                continue;
            *link = p->next_;
            return p;
        }
        if (!more_ps())
            break;
    }
    return NULL;
}

void proc_register(trail_p *p, trail_p *outer, int32_t id)
{
    *p = (trail_p){.id = id, .state_ = TRAIL_P_IDLE_, .inner_ = p, .outer_ = outer};
    p->check_ = trail_check_(p);
    p->next_ = __atomic_load_n(&tracer.ps, __ATOMIC_RELAXED);
    /* Pairs with the load in procs_first. */
    while (!__atomic_compare_exchange_n(&tracer.ps, &p->next_, p, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
        ;
}

/* Other Ps may be added at the head at the same time. */
static void remove_p(const trail_p *p)
{
    trail_p *at = procs_first();
    if (at == p && __atomic_compare_exchange_n(&tracer.ps, &at, p->next_, false, __ATOMIC_ACQUIRE,
                                               __ATOMIC_ACQUIRE))
        return;
    while (at && at->next_ != p)
        at = at->next_;
    if (at)
        at->next_ = p->next_;
}

/* Removes it from the list, and hands over what was written into its buffer. */
static void proc_retire(trail_p *p)
{
    remove_p(p);
    if (!tracer.v2)
        writer_flush(&p->writer_);
    p->retired_session_ = tracer.first_generation;
    p->next_ = free_ps;
    free_ps = p;
}

/* Returns why a P cannot be initialized; NULL if it can. */
static const char *p_refused(const trail_p *outer, int32_t id)
{
    if (id < 0 || id > TRAIL_MAX_PROC)
        return "the ID is below 0 or above TRAIL_MAX_PROC";
    for (const trail_p *at = procs_first(); at; at = at->next_) {
        if (at->outer_ == outer)
            return "the P was initialized already";
        if (at->id == id)
            return "another P has this ID";
    }
    return NULL;
}

/*
 * Releases the P formerly at this address, whose memory was freed without trail_p_fini, unless a
 * thread holds it.
 */
static bool replace_lost_p(const trail_p *outer)
{
    trail_p *p = procs_first();
    while (p && p->outer_ != outer)
        p = p->next_;
    if (!p || outer->check_ == trail_check_(outer) || p->m_)
        return false;
    misuse_of(TRAIL_MISUSE_OBJECT, NULL, "trail_p_init",
              "a P at this address was not finished before its memory was freed");
    proc_retire(p);
    return true;
}

/* Releases Ps that were finished while a thread held them, and are idle now. */
static void retire_finished(void)
{
    trail_p *p = procs_first(), *next;
    for (; p; p = next) {
        next = p->next_;
        if (!p->outer_ && !__atomic_load_n(&p->m_, __ATOMIC_RELAXED))
            proc_retire(p);
    }
}

void trail_p_init(trail_p *outer, int32_t id)
{
    const char *refused;
    trail_p *p = NULL;
    tracer_init();
    lock_mutex(&tracer.ps_lock);
    retire_finished();
    (void)replace_lost_p(outer);
    refused = p_refused(outer, id);
    if (refused)
        misuse_of(TRAIL_MISUSE_OBJECT, NULL, "trail_p_init", refused);
    else if (!(p = take_p()))
        count(&tracer.stats.lost_events);
    if (p) {
        proc_register(p, outer, id);
        *outer = (trail_p){.id = id, .check_ = trail_check_(outer), .inner_ = p};
    } else if (outer->check_ != trail_check_(outer)) {
        *outer = (trail_p){.id = id};
    }
    pthread_mutex_unlock(&tracer.ps_lock);
}

static trail_p *check_p(const trail_m *m, const trail_p *outer, const char *what)
{
    trail_p *p = trail_inner_p_(outer);
    if (unlikely(!p))
        misuse_of(TRAIL_MISUSE_OBJECT, m, what,
                  "the P is not initialized, or trail_p_init has refused its ID");
    return p;
}

/* The thread `m`, if any, no longer holds `p`, which then has no holder unless it is another
 * thread's. */
static void release_proc(trail_m *m, trail_p *p)
{
    const trail_m *holder = p ? __atomic_load_n(&p->m_, __ATOMIC_RELAXED) : NULL;
    /* Pairs with the load in context.c. */
    if (m && __atomic_load_n(&m->p, __ATOMIC_RELAXED) == p)
        __atomic_store_n(&m->p, (trail_p *)NULL, __ATOMIC_RELEASE);
    if (holder && holder == m)
        __atomic_store_n(&p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
}

void trail_p_fini(trail_p *outer)
{
    trail_p *p = trail_inner_p_(outer);
    if (!p)
        return;
    lock_mutex(&tracer.ps_lock);
    outer->check_ = 0;
    if (p->m_ && p->m_->p == p) {
        /* The thread keeps the P, also for readers, until it releases it. */
        misuse(current_m, "trail_p_fini", "a thread holds the P");
        p->outer_ = NULL;
    } else {
        proc_retire(p);
    }
    pthread_mutex_unlock(&tracer.ps_lock);
}

static void hold_proc(trail_m *m, trail_p *p)
{
    __atomic_store_n(&p->m_, m, __ATOMIC_RELAXED);
    /* The thread that ends a trace reads it while threads run. */
    __atomic_store_n(&p->abandoned_, false, __ATOMIC_RELAXED);
    trail_set_proc_(m, p);
}

/* Writes to p's buffer, whichever thread holds it. */
#define V1_IN(p, generation, type, ...)                                                            \
    v1_write_to(&(p)->writer_, (uint64_t)(int64_t)(p)->id, (generation), V1_##type,                \
                sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[]){__VA_ARGS__})
#define V1_IN_0(p, generation, type)                                                               \
    v1_write_to(&(p)->writer_, (uint64_t)(int64_t)(p)->id, (generation), V1_##type, 0, NULL)

static bool write_proc_start(trail_m *m, uint64_t generation, trail_p *p)
{
    if (tracer.v2)
        return V2(m, generation, ProcStart, (uint64_t)p->id, next_sequence(&p->seq_, generation));
    return V1_IN(p, generation, ProcStart, m->id);
}

bool trail_proc_start_(trail_m *outer, trail_p *outer_p)
{
    bool written = false;
    trail_p *p;
    BEGIN_CALL(outer, "trail_proc_start");
    p = check_p(m, outer_p, "trail_proc_start");
    end_lost_goroutine(m, generation);
    if (!p) {
        /* Nothing changes. */
    } else if (generation && owns_p(m)) {
        misuse(m, "trail_proc_start", "the thread holds a P already");
    } else if (generation && in_state_g(m, generation, TRAIL_G_RUNNING_)) {
        misuse(m, "trail_proc_start", "the thread runs a goroutine");
    } else if (state_change_p(m, generation, p, TRAIL_P_IDLE_, TRAIL_P_RUNNING_,
                              "trail_proc_start")) {
        hold_proc(m, p);
        if (is_in_syscall(m))
            set_unlike(m, UNLIKE_TOOK_PROC);
        written = write_proc_start(m, generation, p);
    } else if (!generation) {
        hold_proc(m, p);
    }
    return call_end_moved(m, written || !generation);
}

/* v1: the goroutine in a system call loses its P and counts as waiting from here on (§2.11). */
static bool v1_write_lost_proc(uint64_t generation, trail_p *p, trail_g *g)
{
    bool written = V1_IN_0(p, generation, GoSysBlock);
    if (g)
        g->syscall_block_ticks_ = p->writer_.last_ticks;
    return V1_IN_0(p, generation, ProcStop) && written;
}

/* v1: whether readers take the P for idle because it was in a system call when the trace began. */
static bool v1_idle_since_start(const trail_p *p, uint64_t generation)
{
    return generation && !tracer.v2 &&
           state_load(&p->state_) == state_word(generation, TRAIL_P_IDLE_);
}

bool trail_proc_stop_(trail_m *outer)
{
    bool owned, in_call, lost, written = false;
    unsigned before;
    BEGIN_CALL(outer, "trail_proc_stop");
    end_lost_goroutine(m, generation);
    trail_p *p = m->p;
    owned = owns_p(m);
    in_call = is_in_syscall(m);
    /* A P that the thread took during the call does not belong to the call. */
    lost = in_call && p && (state_load(&p->state_) & STATE_MASK) != TRAIL_P_RUNNING_;
    before = lost ? TRAIL_P_SYSCALL_ : TRAIL_P_RUNNING_;
    if (generation && !owned) {
        misuse(m, "trail_proc_stop", "the thread holds no P");
        trail_set_proc_(m, NULL);
    } else if (generation && has_goroutine(m) && !in_call) {
        misuse(m, "trail_proc_stop", "its goroutine still runs on it");
    } else if (!generation) {
        if (owned && p)
            trail_set_(&p->state_, TRAIL_P_IDLE_);
        release_proc(m, p);
    } else if (v1_idle_since_start(p, generation)) {
        release_proc(m, p);
        written = true;
    } else if (state_change_p(m, generation, p, before, TRAIL_P_IDLE_, "trail_proc_stop")) {
        if (tracer.v2)
            written = V2_0(m, generation, ProcStop);
        else
            written =
                lost ? v1_write_lost_proc(generation, p, m->g) : V1_0(m, generation, ProcStop);
        release_proc(m, p);
    }
    return call_end_moved(m, written || !generation);
}

/*
 * Writes that `p` is taken from its thread. p->lock_ is held, because the thread may annotate in
 * its system call with events on the P (context.h).
 */
static bool write_steal(trail_m *m, uint64_t generation, trail_p *p)
{
    trail_m *owner = __atomic_load_n(&p->m_, __ATOMIC_RELAXED);
    bool written = true;
    if (v1_idle_since_start(p, generation) && (owner || p->abandoned_))
        p->abandoned_ = false;
    else if (p->abandoned_ && !owner &&
             state_load(&p->state_) == state_word(generation, TRAIL_P_IDLE_))
        p->abandoned_ = false;
    else if (!state_change_p(m, generation, p, TRAIL_P_SYSCALL_, TRAIL_P_IDLE_,
                             "trail_proc_steal")) {
        if (generation)
            return false;
    } else if (tracer.v2)
        written = V2(m, generation, ProcSteal, (uint64_t)p->id, next_sequence(&p->seq_, generation),
                     owner ? owner->id : V2_NO_THREAD);
    else
        written = v1_write_lost_proc(generation, p, owner ? owner->g : NULL);
    release_proc(owner, p);
    return written;
}

bool trail_proc_steal_(trail_m *outer, trail_p *outer_p)
{
    bool written;
    trail_p *p;
    BEGIN_CALL(outer, "trail_proc_steal");
    p = check_p(m, outer_p, "trail_proc_steal");
    if (!p)
        return call_end(m, false);
    context_lock(p);
    /* The thread in the call may have annotated in a newer generation. */
    while (generation && state_load(&p->state_) >> STATE_BITS > generation) {
        context_unlock(p);
        section_leave(m);
        generation = section_enter(m);
        context_lock(p);
    }
    written = write_steal(m, generation, p);
    context_unlock(p);
    return call_end(m, written);
}

bool trail_procs_change(trail_m *outer, unsigned n, int skip)
{
    bool written = false;
    __atomic_store_n(&tracer.procs, n, __ATOMIC_RELAXED);
    SECTION_IF(number_needs_event(), outer, "trail_procs_change");
    if (tracer.v2 && !runs_goroutine(m, generation)) {
        /* Will be written by the next thread that runs a goroutine. */
        __atomic_store_n(&tracer.announced, 0, __ATOMIC_RELAXED);
        written = true;
    } else if (owns_p(m) && !holds_proc(m, generation)) {
        misuse(m, "trail_procs_change", "the thread is in a system call");
    } else {
        uint64_t stack = stack_id(stack_here(m, generation, skip));
        written = EVENT(m, generation, ProcsChange, Gomaxprocs, n, stack);
    }
    return call_end(m, written);
}

/* MARK: System calls */

bool trail_syscall_enter_(trail_m *outer, int skip)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_syscall_enter");
    if (unlikely(!generation))
        return trail_off_syscall_(m, TRAIL_G_SYSCALL_, TRAIL_P_SYSCALL_);
    trail_g *g = m->g;
    trail_p *p = m->p;
    if (runs_goroutine(m, generation)) {
        uint64_t stack = stack_id(stack_here(m, generation, skip));
        if (tracer.v2)
            written = V2(m, generation, GoSyscallBegin, next_sequence(&p->seq_, generation), stack);
        else
            written = V1(m, generation, GoSysCall, stack);
        g->syscall_exit_ticks_ = 0;
        trail_set_(&g->state_, state_word(generation, TRAIL_G_SYSCALL_));
        trail_set_(&p->state_, state_word(generation, TRAIL_P_SYSCALL_));
    } else {
        misuse(m, "trail_syscall_enter", "the thread runs no goroutine on a P");
    }
    return call_end(m, written);
}

/* v1: returns from a call that began before the trace, so that readers take the P for idle. */
static bool v1_exit_since_start(trail_m *m, uint64_t generation)
{
    trail_g *g = m->g;
    uint64_t seq = next_sequence(&g->seq_, generation);
    bool written =
        V1_IN(m->p, generation, ProcStart, m->id) && V1(m, generation, GoSysExit, g->id, seq, 0);
    g->last_p_ = m->p;
    next_sequence(&g->seq_, generation);
    written = V1(m, generation, GoStartLocal, g->id) && written;
    trail_set_(&m->p->state_, state_word(generation, TRAIL_P_RUNNING_));
    trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNING_));
    return written;
}

bool trail_syscall_exit_(trail_m *outer)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_syscall_exit");
    if (unlikely(!generation))
        return trail_off_syscall_(m, TRAIL_G_RUNNING_, TRAIL_P_RUNNING_);
    trail_g *g = m->g;
    trail_p *p = m->p;
    if (!in_state_g(m, generation, TRAIL_G_SYSCALL_) || !owns_p(m)) {
        misuse(m, "trail_syscall_exit", "the thread is in no system call, or has lost its P");
    } else if (v1_idle_since_start(p, generation)) {
        written = v1_exit_since_start(m, generation);
    } else if (state_change_p(m, generation, p, TRAIL_P_SYSCALL_, TRAIL_P_RUNNING_,
                              "trail_syscall_exit")) {
        trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNING_));
        written = tracer.v2 ? V2_0(m, generation, GoSyscallEnd) : true;
    }
    return call_end(m, written);
}

/* The thread kept its P but returns late: writes that it lost the P and took it again. */
static bool reacquire_proc(trail_m *m, uint64_t generation)
{
    trail_p *p = m->p;
    if (v1_idle_since_start(p, generation)) {
        trail_set_(&p->state_, state_word(generation, TRAIL_P_RUNNING_));
        return write_proc_start(m, generation, p);
    }
    if (state_load(&p->state_) != state_word(generation, TRAIL_P_SYSCALL_))
        return true;
    trail_set_(&p->state_, state_word(generation, TRAIL_P_RUNNING_));
    if (tracer.v2 &&
        !V2(m, generation, ProcSteal, (uint64_t)p->id, next_sequence(&p->seq_, generation), m->id))
        return false;
    if (!tracer.v2 && !v1_write_lost_proc(generation, p, m->g))
        return false;
    return write_proc_start(m, generation, p);
}

/* Returns the time of return if it is known and plausible (§3.3); else 0. */
static uint64_t v1_returned_at(trail_g *g)
{
    uint64_t at = g->syscall_exit_ticks_;
    g->syscall_exit_ticks_ = 0;
    return at >= tracer.start_ticks && at >= g->syscall_block_ticks_ ? at : 0;
}

bool trail_syscall_exit_blocked_(trail_m *outer)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_syscall_exit_blocked");
    if (unlikely(!generation))
        return trail_off_exit_blocked_(outer, m);
    trail_g *g = m->g;
    if (!in_state_g(m, generation, TRAIL_G_SYSCALL_)) {
        end_lost_goroutine(m, generation);
        misuse(m, "trail_syscall_exit_blocked", "the thread is in no system call");
    } else {
        bool taken = !owns_p(m) || reacquire_proc(m, generation);
        trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNABLE_));
        if (tracer.v2) {
            written = V2_0(m, generation, GoSyscallEndBlocked);
        } else {
            uint64_t seq = next_sequence(&g->seq_, generation);
            written = V1(m, generation, GoSysExit, g->id, seq, v1_returned_at(g));
            g->last_p_ = m->p;
        }
        written &= taken;
    }
    forget_goroutine(m);
    return call_end_moved(m, written);
}

void trail_syscall_returned(trail_g *g)
{
    if (trace_is_on() && check_g(current_m, g, "trail_syscall_returned"))
        g->syscall_exit_ticks_ = clock_v1_ticks(&tracer.clock);
}

/* MARK: Foreign threads that call in */

static bool write_create_syscall(trail_m *m, uint64_t generation, trail_g *g)
{
    g->assist_session_ = 0;
    set_shown(g, TRAIL_SHOWN_WAITING_);
    g->seq_ = generation << 32 | !tracer.v2;
    if (tracer.v2)
        return V2(m, generation, GoCreateSyscall, g->id);
    g->last_p_ = m->p;
    g->syscall_block_ticks_ = g->syscall_exit_ticks_ = 0;
    return V1(m, generation, GoCreate, g->id, 0, 0) && V1(m, generation, GoInSyscall, g->id);
}

bool trail_go_create_syscall_(trail_m *outer, trail_g *g)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_create_syscall");
    if (unlikely(!generation))
        return trail_off_run_(outer, m, g, TRAIL_G_SYSCALL_);
    end_lost_goroutine(m, generation);
    if (!check_g(m, g, "trail_go_create_syscall")) {
        /* Leave it alone. */
    } else if (has_goroutine(m) || is_known(g)) {
        misuse_of(is_known(g) ? TRAIL_MISUSE_STATE : TRAIL_MISUSE_CONTEXT, m,
                  "trail_go_create_syscall",
                  is_known(g) ? "the goroutine was created already"
                              : "the thread runs a goroutine already");
    } else {
        written = write_create_syscall(m, generation, g);
        identity_created(m, generation, g);
        trail_set_(&g->state_, state_word(generation, TRAIL_G_SYSCALL_));
        runs_seen(m, g);
        m->unlike_ = 0;
        if (holds_proc(m, generation))
            set_unlike(m, UNLIKE_TOOK_PROC);
    }
    return call_end_moved(m, written);
}

/* v1 has no such event. The goroutine ends if readers see it running on its P, or else stays. */
static bool v1_destroy_in_syscall(trail_m *m, uint64_t generation)
{
    if (owns_p(m) && state_load(&m->p->state_) == state_word(generation, TRAIL_P_SYSCALL_)) {
        bool written = V1_0(m, generation, GoEnd) && V1_0(m, generation, ProcStop);
        trail_set_(&m->p->state_, state_word(generation, TRAIL_P_IDLE_));
        m->p->abandoned_ = true;
        return written;
    }
    if (owns_p(m) && v1_idle_since_start(m->p, generation))
        m->p->abandoned_ = true;
    leave_out(TRAIL_LEFT_OUT_CALL_END);
    return true;
}

/* The P abandoned by the goroutine's end becomes idle. */
static bool v2_destroy_in_syscall(trail_m *m, uint64_t generation)
{
    trail_p *p = held_p(m);
    bool written = V2_0(m, generation, GoDestroySyscall);
    if (!p || state_load(&p->state_) != state_word(generation, TRAIL_P_SYSCALL_))
        return written;
    written &= V2(m, generation, ProcSteal, (uint64_t)p->id, next_sequence(&p->seq_, generation),
                  V2_NO_THREAD);
    trail_set_(&p->state_, state_word(generation, TRAIL_P_IDLE_));
    /* The host may still take it from the call. */
    p->abandoned_ = true;
    return written;
}

bool states_destroy_in_syscall(trail_m *m, uint64_t generation)
{
    bool written =
        tracer.v2 ? v2_destroy_in_syscall(m, generation) : v1_destroy_in_syscall(m, generation);
    release_proc(m, m->p);
    return written;
}

void states_destroy_beside_proc(trail_m *m, uint64_t generation)
{
    /* Readers accept the end only without a P, or with the P of the call. */
    V2_0(m, generation, ProcStop);
    V2_0(m, generation, GoDestroySyscall);
    write_proc_start(m, generation, m->p);
}

/* Ends a stop-the-world pause begun by the goroutine, for which it leaves the call. */
static trail_m *end_stopped_world(trail_m *m, uint64_t *generation)
{
    if (likely(__atomic_load_n(&tracer.stopper, __ATOMIC_RELAXED) != m->g->id))
        return m;
    if (!context_borrow(m, generation, "trail_go_destroy_syscall"))
        return NULL;
    stw_end_with(m, *generation);
    context_return(m, *generation);
    return m;
}

bool trail_go_destroy_syscall_(trail_m *outer)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_destroy_syscall");
    if (unlikely(!generation))
        return trail_off_destroy_(outer, m);
    if (!in_state_g(m, generation, TRAIL_G_SYSCALL_) || holds_proc(m, generation)) {
        end_lost_goroutine(m, generation);
        misuse(m, "trail_go_destroy_syscall", "the thread is in no system call, or has taken a P");
    } else {
        if (!end_stopped_world(m, &generation))
            return false;
        trail_set_(&m->g->state_, state_word(generation, TRAIL_G_NONE_));
        written = states_destroy_in_syscall(m, generation);
    }
    forget_goroutine(m);
    return call_end_moved(m, written);
}
