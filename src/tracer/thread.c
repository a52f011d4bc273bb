/*
 * Threads: Ms that the host starts, and the library's own for threads that annotate without
 * trail_m_start (Appendix B 5).
 *
 * Each thread has its own goroutine and P, for events that need more than it runs and holds
 * (context.h). An unannounced thread holds them all the time; in the trace it appears like a call
 * from foreign code, created in a system call.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/context.h"
#include "tracer/event.h"
#include "tracer/roster.h"
#include "tracer/states.h"

/* The library's Ps are numbered from here, apart from the host's. */
#define FIRST_OWN_PROC (TRAIL_MAX_PROC + 1)

__thread trail_m *current_m;
/* The thread's M is being set up or removed: a signal handler's calls are not written in the
 * meantime. */
static __thread bool changing __attribute__((tls_model("initial-exec")));

static int32_t own_procs; /* atomic */
static uint64_t last_goroutine;

static int32_t next_own_proc(void)
{
    return FIRST_OWN_PROC + __atomic_fetch_add(&own_procs, 1, __ATOMIC_RELAXED);
}

trail_m *trail_m_current(void)
{
    return current_m ? current_m->outer_ : NULL;
}

bool thread_is_changing(void)
{
    return changing;
}

bool thread_is_in_call(void)
{
    const trail_m *m = current_m;
    return changing || (m && __atomic_load_n(&m->busy_, __ATOMIC_RELAXED));
}

void trail_g_init(trail_g *g)
{
    *g = (trail_g){.id = __atomic_add_fetch(&last_goroutine, 1, __ATOMIC_RELAXED)};
    g->check_ = trail_check_(g) + g->id;
}

void call_refused(const char *what, uintptr_t frame)
{
    if (!trace_is_on())
        return;
    if (changing)
        count(&tracer.stats.reentrant);
    else
        misuse_at(TRAIL_MISUSE_THREAD, frame, what,
                  current_m && !current_m->own_
                      ? "the M is not that of the calling thread"
                      : "the calling thread has no M: trail_m_start is missing");
}

/* MARK: The thread's record */

/*
 * Number of threads with an M of the host's, by a hash of its address. It is nearly always 0 for an
 * M being started, which saves a search among all threads.
 */
static uint16_t given[1 << 16]; /* atomic */

static uint16_t *given_like(const trail_m *outer)
{
    return &given[trail_check_(outer) * UINT64_C(0x9e3779b97f4a7c15) >> 48];
}

/* Connects the record with an M of the host's or its own. */
static void set_outer(struct trail_own_thread_ *own, trail_m *outer)
{
    memset(outer, 0, sizeof *outer);
    outer->id = own->m.id;
    outer->inner_ = &own->m;
    outer->check_ = trail_check_(outer);
    /* Read by is_of_other. */
    __atomic_store_n(&own->m.outer_, outer, __ATOMIC_RELAXED);
}

/*
 * Clears what an earlier thread left, except what other threads may read and what it has written,
 * after which the new thread continues.
 */
static void clear(trail_m *m)
{
    trail_set_current_(m, NULL);
    trail_set_proc_(m, NULL);
    /* Set if the thread ended inside a call, in a signal handler. */
    __atomic_store_n(&m->busy_, 0, __ATOMIC_RELAXED);
    m->borrowed_ = 0;
    m->closed_ = 0;
    memset((char *)m + offsetof(trail_m, string_ids_), 0,
           offsetof(trail_m, lock_) - offsetof(trail_m, string_ids_));
    m->generation_ = NO_GENERATION;
    m->id = (uint64_t)syscall(SYS_gettid);
}

/* Gives the calling thread, `announced` or not, an inner M; NULL: no memory. */
static struct trail_own_thread_ *attach(trail_m *outer, bool announced)
{
    struct trail_own_thread_ *own = roster_take();
    trail_m *m;
    if (!own) {
        count(&tracer.stats.lost_events);
        return NULL;
    }
    m = &own->m;
    clear(m);
    m->own_ = announced ? NULL : own;
    if (!own->has_proc) {
        proc_register(&own->p, &own->p, next_own_proc());
        writer_own(&own->p.writer_, own->buffers[0]);
    }
    own->has_proc = true;
    trail_g_init(&own->g);
    own->given = outer;
    if (outer)
        __atomic_fetch_add(given_like(outer), 1, __ATOMIC_RELAXED);
    set_outer(own, outer ? outer : &own->outer);
    stack_bounds(&m->stack_low_, &m->stack_high_);
    pthread_setspecific(tracer.thread_exits, m);
    current_m = m;
    roster_enter(own);
    return own;
}

/*
 * Closes the batch in the record's first buffer, or hands the buffer to the reader. If the thread
 * continues, perhaps with another record, its further events must come after these.
 */
static void end_writer(struct trail_writer_ *writer, bool thread_ends)
{
    if (thread_ends && writer->buffer == writer->own)
        v2_close_batch(writer);
    else
        writer_flush(writer);
}

static void detach(trail_m *m, bool thread_ends)
{
    struct trail_own_thread_ *own = (struct trail_own_thread_ *)m;
    current_m = NULL;
    states_lock(m);
    for (int i = 0; i < 2; i++) {
        end_writer(&m->writers_[i], thread_ends);
        end_writer(&m->strings_[i], thread_ends);
    }
    roster_leave(own);
    states_unlock(m);
    pthread_setspecific(tracer.thread_exits, NULL);
    if (own->given)
        __atomic_fetch_sub(given_like(own->given), 1, __ATOMIC_RELAXED);
    roster_release(own);
}

/* Returns the inner M of a thread that was started with an M at this address; NULL: none. */
static trail_m *find_given(const trail_m *outer)
{
    trail_m *m;
    if (!__atomic_load_n(given_like(outer), __ATOMIC_RELAXED))
        return NULL;
    for (uint32_t at = 0; (m = roster_next(&at)) != NULL;) {
        if (__atomic_load_n(&m->outer_, __ATOMIC_RELAXED) == outer)
            return m;
    }
    return NULL;
}

/*
 * Whether another thread uses the M. If another thread's M was merely freed at this address without
 * trail_m_exit, that thread loses it.
 */
static bool is_of_other(const trail_m *outer)
{
    trail_m *at = find_given(outer);
    if (!at || (outer->check_ == trail_check_(outer) && outer->inner_ == at))
        return at;
    set_outer((struct trail_own_thread_ *)at, &((struct trail_own_thread_ *)at)->outer);
    return false;
}

/* MARK: Threads with trail_m_start or trail_m_attach */

/* Lets an unannounced thread return from its system call in order to end. */
static void return_to_end(trail_m *m, trail_m *outer, trail_g *g)
{
    if ((state_load(&m->p->state_) & STATE_MASK) == TRAIL_P_RUNNING_) {
        trail_syscall_exit_blocked(outer);
        trail_go_start(outer, g);
    } else {
        trail_syscall_exit(outer);
    }
}

/* Ends the library's waiting goroutine that belongs to an announced thread. */
static void end_own_goroutine(struct trail_own_thread_ *own)
{
    trail_m *outer = &own->outer;
    if ((state_load(&own->g.state_) & STATE_MASK) != TRAIL_G_WAITING_)
        return;
    trail_proc_start(outer, &own->p);
    trail_go_unblock(outer, &own->g, TRAIL_NO_STACK);
    trail_go_start(outer, &own->g);
    trail_go_end(outer);
    trail_proc_stop(outer);
}

/* Ends what the thread runs and releases what it holds. The M is the calling thread's. */
static void end_context(trail_m *m)
{
    struct trail_own_thread_ *own = (struct trail_own_thread_ *)m;
    /* The host's M may be gone. */
    set_outer(own, &own->outer);
    if (m->own_ && is_in_syscall(m) && owns_p(m))
        return_to_end(m, &own->outer, &own->g);
    /* Brings its states into the trace, and ends a goroutine whose memory is gone. */
    if (m->g || m->p) {
        end_lost_goroutine(m, section_enter(m));
        section_leave(m);
    }
    /* v1: a pause that the thread began without a goroutine. */
    if (__atomic_load_n(&tracer.stopper, __ATOMIC_RELAXED) == ~m->id)
        trail_stw_end(&own->outer);
    /* A P that it took during the call. */
    if (is_in_syscall(m) && owns_p(m) &&
        (state_load(&m->p->state_) & STATE_MASK) == TRAIL_P_RUNNING_)
        trail_proc_stop(&own->outer);
    if (is_in_syscall(m))
        trail_go_destroy_syscall(&own->outer);
    else if (has_goroutine(m))
        trail_go_end(&own->outer);
    if (has_goroutine(m) && is_unlike(m, UNLIKE_UNSEEN)) {
        /* Not in the trace: there is no event, but the P is free. */
        trail_set_(&m->g->state_, TRAIL_G_NONE_);
        trail_set_current_(m, NULL);
    }
    if (owns_p(m))
        trail_proc_stop(&own->outer);
    end_own_goroutine(own);
}

trail_p *thread_own_proc(trail_m *m)
{
    return &((struct trail_own_thread_ *)m)->p;
}

trail_g *thread_own_goroutine(trail_m *m)
{
    return &((struct trail_own_thread_ *)m)->g;
}

/* Removes the calling thread's M. */
static void leave_thread(trail_m *m, bool thread_ends)
{
    changing = true;
    if (!m->own_ && trace_is_on() && (has_goroutine(m) || owns_p(m))) {
        m->frame_ = 0;
        misuse(m, "trail_m_exit", "the thread still runs a goroutine, or holds a P");
    }
    end_context(m);
    detach(m, thread_ends);
    changing = false;
}

void trail_m_start(trail_m *m)
{
    tracer_init();
    if (current_m)
        leave_thread(current_m, false);
    changing = true;
    if (is_of_other(m))
        misuse_at(TRAIL_MISUSE_THREAD, stack_frame(), "trail_m_start", "the M is another thread's");
    else if (!attach(m, true))
        memset(m, 0, sizeof *m);
    changing = false;
}

trail_m *trail_m_attach(void)
{
    struct trail_own_thread_ *own;
    tracer_init();
    if (current_m && !current_m->own_)
        return current_m->outer_;
    if (current_m)
        leave_thread(current_m, false);
    changing = true;
    own = attach(NULL, true);
    changing = false;
    return own ? &own->outer : NULL;
}

void trail_m_exit(trail_m *m)
{
    trail_m *inner = current_m;
    if (!inner || inner->outer_ != m)
        return;
    leave_thread(inner, false);
    m->g = NULL;
    m->p = NULL;
    m->check_ = 0;
}

/* Does not use the host's M, which may be on the stack that the thread has left. */
void thread_exited(void *inner)
{
    leave_thread(inner, true);
}

trail_p *threads_spare_proc(void)
{
    static trail_p spare;
    if (!spare.check_)
        proc_register(&spare, &spare, next_own_proc());
    return &spare;
}

/* MARK: Threads that only annotate */

/* Whether a v2 trace is on. The tracer's format may only be read in a section of a trace. */
static bool is_on_v2(trail_m *m)
{
    bool v2 = section_enter(m) && tracer.v2;
    section_leave(m);
    return v2;
}

/*
 * Announces what the thread owns, and that it is in a system call. v1 cannot create a goroutine in
 * one: readers take GoInSyscall for a goroutine from before the trace. The trace may end and
 * another one begin between any two calls.
 */
static void begin_own(struct trail_own_thread_ *own)
{
    trail_m *m = &own->outer;
    bool v2 = is_on_v2(&own->m);
    uint64_t generation;
    if (v2)
        trail_go_create_syscall(m, &own->g);
    trail_proc_start(m, &own->p);
    if (v2)
        return;
    trail_go_create(m, &own->g, 0, TRAIL_NO_STACK);
    trail_go_start(m, &own->g);
    generation = section_enter(&own->m);
    if (generation && runs_goroutine(&own->m, generation))
        context_pause(&own->m, generation);
    else if (!generation && has_goroutine(&own->m))
        /* The trace has ended in the meantime. In the next one the thread is in the system call,
         * too. */
        trail_set_(&own->g.state_, TRAIL_G_SYSCALL_);
    section_leave(&own->m);
}

trail_m *attach_own(void)
{
    struct trail_own_thread_ *own;
    if (!trace_is_on())
        return NULL;
    if (changing) {
        count(&tracer.stats.reentrant);
        return NULL;
    }
    changing = true;
    tracer_init();
    own = attach(NULL, false);
    if (own)
        begin_own(own);
    changing = false;
    return own ? &own->m : NULL;
}

/* MARK: Fork */

void threads_after_fork(void)
{
    trail_m *m = current_m;
    roster_after_fork(m);
    for (trail_p *p = procs_first(); p; p = p->next_)
        writer_after_fork(&p->writer_);
    if (!m)
        return;
    memset(m->recent_, 0, sizeof m->recent_);
    memset(m->recent_stacks_, 0, sizeof m->recent_stacks_);
    m->busy_ = 0;
    m->id = (uint64_t)syscall(SYS_gettid);
}
