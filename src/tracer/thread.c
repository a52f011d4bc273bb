/*
 * Threads: Ms that the host starts, and the library's own for threads without trail_m_start that
 * annotate (Appendix B 5).
 *
 * Such a thread gets a goroutine and a P of its own, so that its events have the context that v2
 * requires and, in v1, its regions do not mix with those of other threads. In the trace it arrives
 * like a call from foreign code: created in a system call, then running.
 */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/event.h"
#include "tracer/memory.h"
#include "tracer/states.h"

/* Their Ps are numbered from here, apart from the host's. */
#define FIRST_OWN_PROC 10000

struct trail_own_thread_ {
    trail_m m;
    trail_p p;
    trail_g g;
    struct trail_own_thread_ *next; /* next in the free list; guarded by tracer.threads */
};

__thread trail_m *current_m;
/* Its M is being set up or removed: a signal handler writes nothing meanwhile. */
static __thread bool changing __attribute__((tls_model("initial-exec")));

static struct trail_own_thread_ *free_threads;
static int32_t own_procs;
static uint64_t last_goroutine;

trail_m *trail_m_current(void)
{
    return current_m;
}

void trail_g_init(trail_g *g)
{
    *g = (trail_g){.id = __atomic_add_fetch(&last_goroutine, 1, __ATOMIC_RELAXED)};
}

/* MARK: Threads with trail_m_start */

/* `threads` is held, as in detach. */
static void attach(trail_m *m)
{
    m->id = (uint64_t)syscall(SYS_gettid);
    stack_bounds(&m->stack_low_, &m->stack_high_);
    m->prev_ = NULL;
    m->next_ = tracer.ms;
    if (m->next_)
        m->next_->prev_ = m;
    tracer.ms = m;
    pthread_setspecific(tracer.thread_exits, m);
}

/* Hands its buffers to the reader, in the generation in which they were written. */
static void detach(trail_m *m)
{
    for (int i = 0; i < 2; i++) {
        v2_flush(&m->writers_[i]);
        v2_flush(&m->strings_[i]);
    }
    if (m->prev_)
        m->prev_->next_ = m->next_;
    else
        tracer.ms = m->next_;
    if (m->next_)
        m->next_->prev_ = m->prev_;
    pthread_setspecific(tracer.thread_exits, NULL);
}

static bool is_attached(const trail_m *m)
{
    const trail_m *at = tracer.ms;
    while (at && at != m)
        at = at->next_;
    return at;
}

void trail_m_start(trail_m *m)
{
    tracer_init();
    if (current_m)
        trail_m_exit(current_m);
    changing = true;
    pthread_mutex_lock(&tracer.threads);
    if (is_attached(m)) {
        misuse(NULL, "trail_m_start", "the M is another thread's");
    } else {
        memset(m, 0, sizeof *m);
        attach(m);
        current_m = m;
    }
    pthread_mutex_unlock(&tracer.threads);
    changing = false;
}

/* MARK: Threads without trail_m_start */

static struct trail_own_thread_ *take_own(void)
{
    struct trail_own_thread_ *own = free_threads;
    if (own) {
        free_threads = own->next;
        return own;
    }
    own = memory_map(sizeof *own);
    if (own)
        proc_register(&own->p, FIRST_OWN_PROC + own_procs++);
    return own;
}

/*
 * `threads` is held throughout, as at its end: the snapshot of a v1 trace is taken under that lock,
 * and the host's stopped world does not stop such threads.
 */
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
    pthread_mutex_lock(&tracer.threads);
    own = take_own();
    if (own) {
        trail_m *m = &own->m;
        memset(m, 0, sizeof *m);
        m->own_ = own;
        trail_g_init(&own->g);
        attach(m);
        trail_go_create_syscall(m, &own->g);
        trail_proc_start(m, &own->p);
        trail_syscall_exit_blocked(m);
        trail_go_start(m, &own->g);
    } else {
        count(&tracer.stats.lost_events);
    }
    pthread_mutex_unlock(&tracer.threads);
    current_m = own ? &own->m : NULL;
    changing = false;
    return own ? &own->m : NULL;
}

/* Ends what the thread runs and releases what it holds. */
static void end_context(trail_m *m)
{
    if (m->stw_session_ && m->stw_session_ == tracer.first_generation)
        trail_stw_end(m);
    if (is_in_syscall(m))
        trail_go_destroy_syscall(m);
    else if (has_goroutine(m))
        trail_go_end(m);
    if (owns_p(m))
        trail_proc_stop(m);
}

static void release_own(struct trail_own_thread_ *own)
{
    end_context(&own->m);
    detach(&own->m);
    own->next = free_threads;
    free_threads = own;
}

void trail_m_exit(trail_m *m)
{
    if (current_m != m)
        return;
    changing = true;
    current_m = NULL;
    pthread_mutex_lock(&tracer.threads);
    if (m->own_) {
        release_own(m->own_);
    } else {
        if (trace_is_on() && (has_goroutine(m) || owns_p(m)))
            misuse(m, "trail_m_exit", "the thread still runs a goroutine, or holds a P");
        end_context(m);
        detach(m);
    }
    pthread_mutex_unlock(&tracer.threads);
    changing = false;
}

void thread_exited(void *m)
{
    trail_m_exit(m);
}

/* MARK: Fork */

void threads_after_fork(void)
{
    trail_m *m = current_m;
    tracer.ms = NULL;
    free_threads = NULL;
    for (trail_p *p = tracer.ps; p; p = p->next_)
        memset(&p->writer_, 0, sizeof p->writer_);
    if (!m)
        return;
    memset(m->writers_, 0, sizeof m->writers_);
    memset(m->strings_, 0, sizeof m->strings_);
    memset(m->recent_, 0, sizeof m->recent_);
    memset(m->recent_stacks_, 0, sizeof m->recent_stacks_);
    m->busy_ = 0;
    m->lock_ = 0;
    m->id = (uint64_t)syscall(SYS_gettid);
    m->next_ = m->prev_ = NULL;
    tracer.ms = m;
}
