/* Goroutines: creation, start, stop, block, unblock (§2.10, §2.11, §7.4). */
#include "tracer/context.h"
#include "tracer/event.h"
#include "tracer/identity.h"
#include "tracer/lock.h"
#include "tracer/regions.h"
#include "tracer/states.h"

/* MARK: Reasons */

/* Returns v1's event type for a reason; GoBlock for those without their own. */
static unsigned v1_block_type(trail_block_reason reason)
{
    static const uint8_t types[TRAIL_BLOCK_REASON_COUNT] = {
        [TRAIL_BLOCK_FOREVER] = V1_GoStop,
        [TRAIL_BLOCK_NETWORK] = V1_GoBlockNet,
        [TRAIL_BLOCK_SELECT] = V1_GoBlockSelect,
        [TRAIL_BLOCK_COND] = V1_GoBlockCond,
        [TRAIL_BLOCK_SYNC] = V1_GoBlockSync,
        [TRAIL_BLOCK_CHAN_SEND] = V1_GoBlockSend,
        [TRAIL_BLOCK_CHAN_RECEIVE] = V1_GoBlockRecv,
        [TRAIL_BLOCK_GC_ASSIST] = V1_GoBlockGC, /* from 1.11 on */
        [TRAIL_BLOCK_SLEEP] = V1_GoSleep,
    };
    bool is_known = types[reason] && (types[reason] != V1_GoBlockGC || tracer.format >= 11);
    return is_known ? types[reason] : V1_GoBlock;
}

/* MARK: Creation */

/* Resets all state of a new goroutine, whose memory may have held another one. */
static void reset_new(trail_m *m, trail_g *g, uint64_t generation, unsigned state)
{
    g->seq_ = generation << 32;
    g->last_p_ = m->p;
    set_shown(g, TRAIL_SHOWN_WAITING_);
    g->assist_session_ = 0;
    __atomic_store_n(&g->rooted_, false, __ATOMIC_RELAXED);
    trail_set_(&g->state_, state_word(generation, state));
}

static void set_start(trail_g *g, uintptr_t function)
{
    __atomic_store_n(&g->start_, function, __ATOMIC_RELAXED);
}

static bool create(trail_m *m, uint64_t generation, trail_g *g, bool blocked, uint64_t stack)
{
    /* Formats before 23 cannot create a waiting goroutine. */
    bool waits = blocked && tracer.format >= 23;
    uint64_t start = stack_id(identity_stack(generation, g));
    bool written;
    if (!tracer.v2)
        written = V1(m, generation, GoCreate, g->id, start, stack);
    else if (waits)
        written = V2(m, generation, GoCreateBlocked, g->id, start, stack);
    else
        written = V2(m, generation, GoCreate, g->id, start, stack);
    reset_new(m, g, generation, blocked ? TRAIL_G_WAITING_ : TRAIL_G_RUNNABLE_);
    set_shown(g, blocked && !waits ? TRAIL_SHOWN_RUNNABLE_ : TRAIL_SHOWN_WAITING_);
    identity_created(m, generation, g);
    return written;
}

bool trail_go_create_(trail_m *outer, trail_g *g, uintptr_t function, int skip, bool blocked)
{
    unsigned state = blocked ? TRAIL_G_WAITING_ : TRAIL_G_RUNNABLE_;
    bool written = false;
    BEGIN_CALL(outer, "trail_go_create");
    if (unlikely(!generation))
        return trail_off_create_(m, g, function, state);
    if (!check_g(m, g, "trail_go_create"))
        return call_end(m, false);
    if (is_known(g)) {
        misuse_of(TRAIL_MISUSE_STATE, m, "trail_go_create", "the goroutine was created already");
        return call_end(m, false);
    }
    set_start(g, function);
    if (unlikely(!holds_proc(m, generation) ||
                 (m->g && !in_state_g(m, generation, TRAIL_G_RUNNING_))) &&
        !context_create(m, &generation, "trail_go_create")) {
        /* Created without an event. */
        trail_set_(&g->state_, state);
        return false;
    }
    written = create(m, generation, g, blocked, stack_id(stack_here(m, generation, skip)));
    if (unlikely(m->borrowed_))
        context_return(m, generation);
    return call_end(m, written);
}

/* MARK: Running */

/* The three forms of a start in v1 (§2.10). */
static bool v1_start(trail_m *m, uint64_t generation, trail_g *g, const char *label)
{
    uint64_t seq = next_sequence(&g->seq_, generation);
    bool local = g->last_p_ == m->p, written;
    if (label && tracer.format >= 11)
        return V1(m, generation, GoStartLabel, g->id, seq, string_id(m, generation, label));
    if (label)
        leave_out(TRAIL_LEFT_OUT_LABEL);
    g->last_p_ = m->p;
    written =
        local ? V1(m, generation, GoStartLocal, g->id) : V1(m, generation, GoStart, g->id, seq);
    g->started_at_ = g->woken_ ? m->p->writer_.at : NULL;
    g->woken_ = false;
    return written;
}

static bool start(trail_m *m, uint64_t generation, trail_g *g, const char *label)
{
    if (!tracer.v2)
        return v1_start(m, generation, g, label);
    if (!V2(m, generation, GoStart, g->id, next_sequence(&g->seq_, generation)))
        return false;
    if (label)
        V2(m, generation, GoLabel, string_id(m, generation, label));
    return true;
}

bool trail_go_start_(trail_m *outer, trail_g *g, const char *label)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_start");
    if (unlikely(!generation))
        return trail_off_run_(outer, m, g, TRAIL_G_RUNNING_);
    end_lost_goroutine(m, generation);
    if (!check_g(m, g, "trail_go_start")) {
        /* Leave it alone. */
    } else if (has_goroutine(m)) {
        misuse(m, "trail_go_start", "the thread runs a goroutine already");
    } else if (!holds_proc(m, generation)) {
        misuse(m, "trail_go_start", "the thread holds no P");
    } else if (state_change_g(m, generation, g, TRAIL_G_RUNNABLE_, TRAIL_G_RUNNING_,
                              "trail_go_start")) {
        runs_seen(m, g);
        m->unlike_ = 0;
        written = start(m, generation, g, label);
    } else if (!state_in_session(state_load(&g->state_))) {
        /* The status could not be written. */
        runs_seen(m, g);
        set_unlike(m, UNLIKE_UNSEEN);
    }
    if (tracer.v2 && written &&
        unlikely(__atomic_load_n(&tracer.announced, __ATOMIC_RELAXED) < generation))
        states_announce(m, generation);
    if (written)
        regions_settle(m, generation);
    return call_end_moved(m, written);
}

/* Writes the kept ends of the goroutine's regions before it leaves the thread. */
static inline void leave_regions(trail_m *m, uint64_t generation, bool ends)
{
    regions_settle(m, generation);
    if (ends)
        regions_end(m->g);
}

/*
 * Common to all calls after which the current goroutine no longer runs on its thread. Returns true
 * if the event is to be written.
 */
static inline bool leave_thread(trail_m *m, uint64_t generation, unsigned after, const char *what)
{
    if (!runs_goroutine(m, generation)) {
        end_lost_goroutine(m, generation);
        return misuse(m, what, "the thread runs no goroutine on a P");
    }
    if (after == TRAIL_G_NONE_)
        stw_end_with(m, generation);
    leave_regions(m, generation, after == TRAIL_G_NONE_);
    return state_change_g(m, generation, m->g, TRAIL_G_RUNNING_, after, what);
}

bool trail_go_end_(trail_m *outer)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_end");
    if (unlikely(!generation))
        return trail_off_leave_(outer, m, TRAIL_G_NONE_);
    if (leave_thread(m, generation, TRAIL_G_NONE_, "trail_go_end"))
        written = EVENT_0(m, generation, GoDestroy, GoEnd);
    forget_goroutine(m);
    return call_end_moved(m, written);
}

/* Whether the goroutine has done nothing since its wake-up, which is then removed (§3.5). */
static bool v1_woken_in_vain(const trail_m *m)
{
    return m->g->started_at_ == m->p->writer_.at;
}

/* Whether readers remove the wake-up before an event of this type. */
static bool v1_can_be_futile(unsigned type)
{
    return type == V1_GoBlock || (type >= V1_GoBlockSend && type <= V1_GoBlockCond);
}

static bool v1_stop(trail_m *m, uint64_t generation, bool preempted, uint64_t stack)
{
    if (!preempted)
        return V1(m, generation, GoSched, stack);
    m->g->woken_ = v1_woken_in_vain(m);
    return V1(m, generation, GoPreempt, stack);
}

bool trail_go_stop_(trail_m *outer, int skip, bool preempted)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_stop");
    if (unlikely(!generation))
        return trail_off_leave_(outer, m, TRAIL_G_RUNNABLE_);
    trail_g *g = m->g;
    if (leave_thread(m, generation, TRAIL_G_RUNNABLE_, "trail_go_sched")) {
        uint64_t stack = stack_id(stack_here(m, generation, skip));
        if (tracer.v2)
            written = V2(m, generation, GoStop, preempted ? V2_ID_PREEMPTED : V2_ID_GOSCHED, stack);
        else
            written = v1_stop(m, generation, preempted, stack);
        g->last_p_ = m->p;
    }
    forget_goroutine(m);
    return call_end_moved(m, written);
}

/* Keeps the stack of the wait for the status events of later generations without other events. */
static void note_block(trail_g *g, uint64_t generation, const struct table_entry *stack)
{
    /* Both pair with the loads in states_carry_stack, which may see only the first. */
    __atomic_store_n(&g->block_stack_, stack, __ATOMIC_RELEASE);
    __atomic_store_n(&g->block_generation_, stack ? generation : 0, __ATOMIC_RELEASE);
}

bool trail_go_block_(trail_m *outer, trail_block_reason reason, int skip, bool futile)
{
    unsigned type;
    bool written = false;
    BEGIN_CALL(outer, "trail_go_block");
    if (unlikely(!generation))
        return trail_off_leave_(outer, m, TRAIL_G_WAITING_);
    trail_g *g = m->g;
    if ((unsigned)reason >= TRAIL_BLOCK_REASON_COUNT)
        reason = TRAIL_BLOCK_UNSPECIFIED;
    if (leave_thread(m, generation, TRAIL_G_WAITING_, "trail_go_block")) {
        const struct table_entry *stack = stack_here(m, generation, skip);
        uint64_t id = stack_id(stack);
        if (tracer.v2) {
            written = V2(m, generation, GoBlock, V2_ID_REASON + reason, id);
            note_block(g, generation, stack);
        } else {
            type = v1_block_type(reason);
            if (futile && tracer.format == 7 && v1_can_be_futile(type) && v1_woken_in_vain(m))
                V1_0(m, generation, FutileWakeup);
            written = v1_write(m, generation, type, 1, &id);
            /* This event ends the goroutine. */
            set_shown(g, type == V1_GoStop ? TRAIL_SHOWN_ENDED_ : TRAIL_SHOWN_WAITING_);
            g->last_p_ = m->p;
        }
    }
    forget_goroutine(m);
    return call_end_moved(m, written);
}

/* MARK: Waking */

static bool v1_unblock(trail_m *m, uint64_t generation, trail_g *g, uint64_t stack)
{
    uint64_t seq = next_sequence(&g->seq_, generation);
    g->woken_ = true;
    /* Among the events of a P whose thread is in a system call, it would end the call (§4.3). */
    if (!holds_proc(m, generation)) {
        g->last_p_ = NULL;
        return v1_write_no_proc(generation, V1_GoUnblock, 3, (uint64_t[]){g->id, seq, stack});
    }
    if (g->last_p_ == m->p)
        return V1(m, generation, GoUnblockLocal, g->id, stack);
    g->last_p_ = m->p;
    return V1(m, generation, GoUnblock, g->id, seq, stack);
}

static bool unblock(trail_m *m, uint64_t generation, trail_g *g, uint64_t stack)
{
    if (!tracer.v2)
        return v1_unblock(m, generation, g, stack);
    return V2(m, generation, GoUnblock, g->id, next_sequence(&g->seq_, generation), stack);
}

/* `g` becomes runnable; readers already take it for runnable. */
static bool unblock_shown(trail_m *m, uint64_t generation, trail_g *g, const char *what)
{
    bool changed = state_change_g(m, generation, g, TRAIL_G_WAITING_, TRAIL_G_RUNNABLE_, what);
    set_shown(g, TRAIL_SHOWN_WAITING_);
    return changed;
}

/* v1: whether `g` waits forever, which means that it has ended in this trace. */
static bool has_ended(const trail_m *m, const trail_g *g, const char *what)
{
    return is_shown(g, TRAIL_SHOWN_ENDED_) &&
           !misuse_of(TRAIL_MISUSE_STATE, m, what,
                      "the goroutine waits forever (TRAIL_BLOCK_FOREVER)");
}

bool trail_go_unblock_(trail_m *outer, trail_g *g, int skip)
{
    bool written = false;
    BEGIN_CALL(outer, "trail_go_unblock");
    if (unlikely(!generation))
        return trail_off_ready_(m, g);
    if (!check_g(m, g, "trail_go_unblock")) {
        /* Leave it alone. */
    } else if (is_shown(g, TRAIL_SHOWN_RUNNABLE_)) {
        written = unblock_shown(m, generation, g, "trail_go_unblock");
    } else if (has_ended(m, g, "trail_go_unblock")) {
        /* No event may follow. */
    } else if (state_change_g(m, generation, g, TRAIL_G_WAITING_, TRAIL_G_RUNNABLE_,
                              "trail_go_unblock")) {
        /* Readers also accept the stack of a thread that runs no goroutine. */
        written = unblock(m, generation, g, stack_id(stack_here(m, generation, skip)));
    }
    return call_end(m, written);
}

/* Writes a switch as unblock, block or end, and start, in formats without an event for it. */
static bool switch_in_parts(trail_m *m, uint64_t generation, trail_g *from, trail_g *to, bool ends)
{
    bool written = true;
    if (is_shown(to, TRAIL_SHOWN_RUNNABLE_)) {
        if (!unblock_shown(m, generation, to, "trail_go_switch"))
            return false;
    } else if (has_ended(m, to, "trail_go_switch") ||
               !state_change_g(m, generation, to, TRAIL_G_WAITING_, TRAIL_G_RUNNABLE_,
                               "trail_go_switch")) {
        return false;
    } else {
        written = unblock(m, generation, to, 0);
    }
    if (ends)
        stw_end_with(m, generation);
    leave_regions(m, generation, ends);
    trail_set_(&from->state_, state_word(generation, ends ? TRAIL_G_NONE_ : TRAIL_G_WAITING_));
    if (ends)
        written &= EVENT_0(m, generation, GoDestroy, GoEnd);
    else if (tracer.v2)
        written &= V2(m, generation, GoBlock, V2_ID_REASON + TRAIL_BLOCK_UNSPECIFIED, 0);
    else
        written &= V1(m, generation, GoBlock, 0);
    from->last_p_ = m->p;
    if (!state_change_g(m, generation, to, TRAIL_G_RUNNABLE_, TRAIL_G_RUNNING_, "trail_go_switch"))
        return false;
    runs_seen(m, to);
    return start(m, generation, to, NULL) && written;
}

bool trail_go_switch_(trail_m *outer, trail_g *g, bool ends)
{
    unsigned after = ends ? TRAIL_G_NONE_ : TRAIL_G_WAITING_;
    bool written = false;
    BEGIN_CALL(outer, "trail_go_switch");
    if (unlikely(!generation))
        return trail_off_switch_(outer, m, g, after);
    trail_g *from = m->g;
    if (!runs_goroutine(m, generation)) {
        end_lost_goroutine(m, generation);
        misuse(m, "trail_go_switch", "the thread runs no goroutine on a P");
    } else if (!check_g(m, g, "trail_go_switch")) {
        /* The thread stays with its goroutine. */
    } else if (tracer.format < 23) {
        written = switch_in_parts(m, generation, from, g, ends);
    } else if (state_change_g(m, generation, g, TRAIL_G_WAITING_, TRAIL_G_RUNNING_,
                              "trail_go_switch")) {
        uint64_t seq = next_sequence(&g->seq_, generation);
        if (ends)
            stw_end_with(m, generation);
        leave_regions(m, generation, ends);
        trail_set_(&from->state_, state_word(generation, after));
        written = ends ? V2(m, generation, GoSwitchDestroy, g->id, seq)
                       : V2(m, generation, GoSwitch, g->id, seq);
        note_block(from, generation, NULL);
        runs_seen(m, g);
    }
    forget_goroutine(m);
    if (written)
        regions_settle(m, generation);
    return call_end_moved(m, written);
}

/* MARK: Ending one that does not run */

/* Returns why `g` cannot be destroyed; NULL: it can. */
static const char *not_destroyable(const trail_g *g)
{
    switch (state_load(&g->state_) & STATE_MASK) {
    case TRAIL_G_NONE_:
        return "the goroutine was not created, or has ended";
    case TRAIL_G_RUNNING_:
    case TRAIL_G_SYSCALL_:
        return "the goroutine runs: trail_go_end ends it";
    default:
        return NULL;
    }
}

/* Takes the thread's goroutine off the thread to make room for another. */
static bool step_aside(trail_m *m, uint64_t generation, trail_g *from)
{
    trail_set_(&from->state_, state_word(generation, TRAIL_G_WAITING_));
    from->last_p_ = m->p;
    set_shown(from, TRAIL_SHOWN_WAITING_);
    trail_set_current_(m, NULL);
    if (tracer.v2)
        note_block(from, generation, NULL);
    return tracer.v2 ? V2(m, generation, GoBlock, V2_ID_REASON + TRAIL_BLOCK_UNSPECIFIED, 0)
                     : V1(m, generation, GoBlock, 0);
}

static bool step_back(trail_m *m, uint64_t generation, trail_g *from)
{
    bool written = unblock(m, generation, from, 0);
    trail_set_(&from->state_, state_word(generation, TRAIL_G_RUNNING_));
    runs_seen(m, from);
    return start(m, generation, from, NULL) && written;
}

/* Starts and ends `g`, which is runnable, on the thread's P. */
static bool run_to_end(trail_m *m, uint64_t generation, trail_g *g)
{
    bool written;
    if (!state_change_g(m, generation, g, TRAIL_G_RUNNABLE_, TRAIL_G_RUNNING_, "trail_go_destroy"))
        return false;
    runs_seen(m, g);
    written = start(m, generation, g, NULL);
    stw_end_with(m, generation);
    leave_regions(m, generation, true);
    trail_set_(&g->state_, state_word(generation, TRAIL_G_NONE_));
    written &= EVENT_0(m, generation, GoDestroy, GoEnd);
    trail_set_current_(m, NULL);
    return written;
}

static bool destroy(trail_m *m, uint64_t generation, trail_g *g)
{
    trail_g *from = runs_goroutine(m, generation) ? m->g : NULL;
    bool written = true;
    if (is_shown(g, TRAIL_SHOWN_RUNNABLE_))
        written = unblock_shown(m, generation, g, "trail_go_destroy");
    else if ((state_load(&g->state_) & STATE_MASK) == TRAIL_G_WAITING_)
        written = state_change_g(m, generation, g, TRAIL_G_WAITING_, TRAIL_G_RUNNABLE_,
                                 "trail_go_destroy") &&
                  unblock(m, generation, g, 0);
    if (!written)
        return false;
    if (from)
        written = step_aside(m, generation, from);
    written &= run_to_end(m, generation, g);
    if (from)
        written &= step_back(m, generation, from);
    return written;
}

bool trail_go_destroy(trail_m *outer, trail_g *g)
{
    const char *wrong;
    bool written = false;
    BEGIN_CALL(outer, "trail_go_destroy");
    if (!check_g(m, g, "trail_go_destroy"))
        return call_end(m, false);
    wrong = not_destroyable(g);
    if (wrong)
        return call_end(m,
                        generation && misuse_of(TRAIL_MISUSE_STATE, m, "trail_go_destroy", wrong));
    /* v1: readers have already seen its end. */
    if (!generation || is_shown(g, TRAIL_SHOWN_ENDED_)) {
        trail_set_(&g->state_, state_word(generation, TRAIL_G_NONE_));
        return call_end(m, true);
    }
    if (!runs_goroutine(m, generation) && !context_create(m, &generation, "trail_go_destroy"))
        return false;
    written = destroy(m, generation, g);
    if (unlikely(m->borrowed_))
        context_return(m, generation);
    return call_end_moved(m, written);
}

/* MARK: Timers, labels */

/* The lock `gc` is held. */
static bool is_timer(uint64_t goroutine)
{
    for (unsigned i = 0; i < tracer.timers; i++) {
        if (tracer.timer_goroutines[i] == goroutine)
            return true;
    }
    return false;
}

void trail_timer_goroutine(const trail_g *g)
{
    if (!check_g(current_m, g, "trail_timer_goroutine"))
        return;
    lock_mutex(&tracer.gc);
    if (is_timer(g->id))
        ;
    else if (tracer.timers < sizeof tracer.timer_goroutines / sizeof *tracer.timer_goroutines)
        tracer.timer_goroutines[tracer.timers++] = g->id;
    else
        leave_out(TRAIL_LEFT_OUT_TIMER);
    pthread_mutex_unlock(&tracer.gc);
}

bool trail_go_label(trail_m *outer, const char *label)
{
    SECTION(outer, "trail_go_label");
    if (tracer.v2 && runs_goroutine(m, generation))
        return call_end(m, V2(m, generation, GoLabel, string_id(m, generation, label)));
    if (!tracer.v2)
        leave_out(TRAIL_LEFT_OUT_LABEL);
    else
        misuse(m, "trail_go_label", "the thread runs no goroutine on a P");
    return call_end(m, false);
}
