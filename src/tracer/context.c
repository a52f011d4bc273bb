/* Lends a thread the goroutine and P that an event needs: see context.h. */
#include "tracer/context.h"

#include "tracer/identity.h"
#include "tracer/lock.h"
#include "tracer/regions.h"

void context_lock(trail_p *p)
{
    lock_word(&p->lock_);
}

void context_unlock(trail_p *p)
{
    unlock_word(&p->lock_);
}

/* MARK: The own P */

static bool take_proc(trail_m *m, uint64_t generation)
{
    trail_p *p = thread_own_proc(m);
    if (!state_change_p(m, generation, p, TRAIL_P_IDLE_, TRAIL_P_RUNNING_, "annotation"))
        return false;
    __atomic_store_n(&p->m_, m, __ATOMIC_RELAXED);
    trail_set_proc_(m, p);
    m->borrowed_ |= BORROWED_PROC;
    if (tracer.v2)
        V2(m, generation, ProcStart, (uint64_t)p->id, next_sequence(&p->seq_, generation));
    else
        V1(m, generation, ProcStart, m->id);
    return true;
}

static void stop_proc(trail_m *m, uint64_t generation)
{
    trail_p *p = m->p;
    EVENT_0(m, generation, ProcStop, ProcStop);
    trail_set_(&p->state_, state_word(generation, TRAIL_P_IDLE_));
}

static void release_proc(trail_m *m, uint64_t generation)
{
    trail_p *p = m->p;
    stop_proc(m, generation);
    trail_set_proc_(m, NULL);
    __atomic_store_n(&p->m_, (trail_m *)NULL, __ATOMIC_RELAXED);
}

/* MARK: The own goroutine */

static void create(trail_m *m, uint64_t generation, trail_g *g)
{
    EVENT(m, generation, GoCreate, GoCreate, g->id, 0, 0);
    g->seq_ = generation << 32;
    g->last_p_ = m->p;
    trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNABLE_));
    identity_created(m, generation, g);
}

static bool wake(trail_m *m, uint64_t generation, trail_g *g)
{
    uint64_t seq;
    if (!state_change_g(m, generation, g, TRAIL_G_WAITING_, TRAIL_G_RUNNABLE_, "annotation"))
        return false;
    seq = next_sequence(&g->seq_, generation);
    EVENT(m, generation, GoUnblock, GoUnblock, g->id, seq, 0);
    return true;
}

/* `g` must be runnable and known in this generation. */
static void start(trail_m *m, uint64_t generation, trail_g *g)
{
    uint64_t seq = next_sequence(&g->seq_, generation);
    trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNING_));
    runs_seen(m, g);
    g->last_p_ = m->p;
    EVENT(m, generation, GoStart, GoStart, g->id, seq);
    regions_settle(m, generation);
}

static bool run_own(trail_m *m, uint64_t generation)
{
    trail_g *g = thread_own_goroutine(m);
    if (!state_load(&g->state_))
        create(m, generation, g);
    else if (!wake(m, generation, g))
        return false;
    start(m, generation, g);
    m->borrowed_ |= BORROWED_GOROUTINE;
    return true;
}

static void wait_again(trail_m *m, uint64_t generation)
{
    trail_g *g = m->g;
    regions_settle(m, generation);
    trail_set_(&g->state_, state_word(generation, TRAIL_G_WAITING_));
    if (tracer.v2)
        V2(m, generation, GoBlock, V2_ID_REASON + TRAIL_BLOCK_UNSPECIFIED, 0);
    else
        V1(m, generation, GoBlock, 0);
    g->last_p_ = m->p;
    trail_set_current_(m, NULL);
}

/* MARK: System calls */

/*
 * The thread is in a system call and holds `p`, whose lock is held, so that no thread takes it
 * before the call begins again. The sequence number that it then has orders a ProcSteal after it.
 */
static void leave_call(trail_m *m, uint64_t generation, trail_p *p)
{
    trail_set_(&p->state_, state_word(generation, TRAIL_P_RUNNING_));
    trail_set_(&m->g->state_, state_word(generation, TRAIL_G_RUNNING_));
    if (tracer.v2)
        V2_0(m, generation, GoSyscallEnd);
    m->borrowed_ |= BORROWED_CALL;
}

/* v1: readers take the P for idle, because the call began before the trace. Starts the P. */
static void leave_call_since_start(trail_m *m, uint64_t generation, trail_p *p)
{
    trail_g *g = m->g;
    trail_set_(&p->state_, state_word(generation, TRAIL_P_RUNNING_));
    V1(m, generation, ProcStart, m->id);
    V1(m, generation, GoSysExit, g->id, next_sequence(&g->seq_, generation), 0);
    start(m, generation, g);
    m->borrowed_ |= BORROWED_CALL | BORROWED_LOST | BORROWED_IDLE;
}

/* The thread lost the P with which the call began and holds another one. */
static void leave_lost_call(trail_m *m, uint64_t generation)
{
    trail_g *g = m->g;
    if (tracer.v2)
        V2_0(m, generation, GoSyscallEndBlocked);
    else
        V1(m, generation, GoSysExit, g->id, next_sequence(&g->seq_, generation), 0);
    trail_set_(&g->state_, state_word(generation, TRAIL_G_RUNNABLE_));
    start(m, generation, g);
    m->borrowed_ |= BORROWED_CALL | BORROWED_LOST;
}

static void enter_call(trail_m *m, uint64_t generation, uint32_t borrowed)
{
    uint64_t stack = 0;
    trail_p *p = m->p;
    trail_g *g = m->g;
    regions_settle(m, generation);
    /* The place of the annotation is the last known stack of the call. */
    if (!m->own_)
        stack = stack_id(stack_capture(m, generation, 0, m->frame_));
    trail_set_(&g->state_, state_word(generation, TRAIL_G_SYSCALL_));
    if (tracer.v2) {
        V2(m, generation, GoSyscallBegin, next_sequence(&p->seq_, generation), stack);
        trail_set_(&p->state_, state_word(generation, TRAIL_P_SYSCALL_));
        /* If the thread took the P during the call, it is now the P of the call. */
        m->unlike_ = 0;
        return;
    }
    V1(m, generation, GoSysCall, stack);
    if (!(borrowed & BORROWED_LOST)) {
        trail_set_(&p->state_, state_word(generation, TRAIL_P_SYSCALL_));
        return;
    }
    V1_0(m, generation, GoSysBlock);
    g->syscall_block_ticks_ = p->writer_.last_ticks;
    g->last_p_ = p;
    if (borrowed & BORROWED_IDLE)
        stop_proc(m, generation);
}

/* Whether readers see the P in a system call, or (v1) idle although it is in one. */
static bool is_of_call(const trail_p *p, uint64_t generation)
{
    trail_state_ word = state_load(&p->state_);
    return word == state_word(generation, TRAIL_P_SYSCALL_) ||
           (!tracer.v2 && word == state_word(generation, TRAIL_P_IDLE_));
}

/* Returns false if another thread has just taken the P, or is taking it in a newer generation. */
static bool borrow_with_proc(trail_m *m, uint64_t generation)
{
    trail_p *p = held_p(m);
    if (!p)
        return false;
    context_lock(p);
    if (held_p(m) != p || !is_of_call(p, generation)) {
        context_unlock(p);
        return false;
    }
    m->borrowed_ |= BORROWED_LOCK;
    if (state_load(&p->state_) == state_word(generation, TRAIL_P_SYSCALL_))
        leave_call(m, generation, p);
    else
        leave_call_since_start(m, generation, p);
    return true;
}

/* MARK: All together */

/* Returns false if the states are inconsistent or another thread is changing them. */
static bool borrow(trail_m *m, uint64_t generation)
{
    end_lost_goroutine(m, generation);
    if (has_goroutine(m) && !in_state_g(m, generation, TRAIL_G_SYSCALL_))
        return false;
    if (!holds_proc(m, generation)) {
        if (is_in_syscall(m) && owns_p(m))
            return borrow_with_proc(m, generation);
        /*
         * If its P was taken in a newer generation, readers of this one do not know that. Pairs
         * with the store in release_proc, after which the newer generation is visible.
         */
        if (__atomic_load_n(&m->p, __ATOMIC_ACQUIRE) && owns_p(m))
            return false;
        if (__atomic_load_n(&tracer.generation, __ATOMIC_RELAXED) != generation ||
            !take_proc(m, generation))
            return false;
    }
    if (!is_in_syscall(m))
        return run_own(m, generation);
    leave_lost_call(m, generation);
    return true;
}

static trail_m *refuse(trail_m *m, const char *what)
{
    if (thread_is_changing())
        count(&tracer.stats.reentrant);
    else
        misuse(m, what, "the thread runs no goroutine on a P");
    section_leave(m);
    return NULL;
}

/*
 * If another thread is taking the P, the next try, in that thread's generation, finds it either
 * still here or gone.
 */
#define TRIES 100

trail_m *context_borrow(trail_m *m, uint64_t *generation, const char *what)
{
    for (int tries = 0; tries < TRIES; tries++) {
        if (runs_goroutine(m, *generation) || borrow(m, *generation))
            return m;
        context_return(m, *generation);
        section_leave(m);
        *generation = section_enter(m);
        if (!*generation) {
            section_leave(m);
            return NULL;
        }
    }
    return refuse(m, what);
}

trail_m *context_annotate(trail_m *m, uint64_t *generation, const char *what)
{
    if (!tracer.v2 || !m->own_)
        return context_borrow(m, generation, what);
    const trail_p *p = held_p(m);
    if (!in_state_g(m, *generation, TRAIL_G_SYSCALL_) || !p ||
        state_load(&p->state_) != state_word(*generation, TRAIL_P_SYSCALL_)) {
        m = context_borrow(m, generation, what);
        /*
         * A call made with its M while nothing was recorded may have taken it out of its system
         * call. In one without a P, which a call made then begins, it must not pause.
         */
        if (!m || !(m->borrowed_ & BORROWED_CALL) || m->borrowed_ & BORROWED_PROC)
            return m;
        context_return(m, *generation);
    }
    m->paused_ = *generation;
    return m;
}

trail_m *context_create(trail_m *m, uint64_t *generation, const char *what)
{
    end_lost_goroutine(m, *generation);
    if (!has_goroutine(m) &&
        (holds_proc(m, *generation) || (!owns_p(m) && take_proc(m, *generation))))
        return m;
    return context_borrow(m, generation, what);
}

void context_return(trail_m *m, uint64_t generation)
{
    uint32_t borrowed = m->borrowed_;
    m->borrowed_ = 0;
    if (borrowed & BORROWED_CALL)
        enter_call(m, generation, borrowed);
    if (borrowed & BORROWED_GOROUTINE)
        wait_again(m, generation);
    if (borrowed & BORROWED_PROC)
        release_proc(m, generation);
    if (borrowed & BORROWED_LOCK)
        context_unlock(m->p);
}

void context_keep(trail_m *m)
{
    if (m->borrowed_ & BORROWED_LOCK)
        context_unlock(m->p);
    m->borrowed_ = 0;
    m->paused_ = 0;
}

void context_pause(trail_m *m, uint64_t generation)
{
    m->borrowed_ = BORROWED_CALL | (tracer.v2 ? 0 : BORROWED_LOST);
    context_return(m, generation);
    if (tracer.v2)
        m->paused_ = generation;
}
