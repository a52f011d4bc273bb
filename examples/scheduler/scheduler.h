/*
 * A small M:N scheduler of coroutines, as an example of a runtime that traces itself with
 * libtrail-record.
 *
 *   G  a coroutine: a stack and what it waits for          (trail_g in it)
 *   M  a thread that runs coroutines                       (trail_m in it)
 *   P  the right to run: a slot with a queue of runnable coroutines. There are as many as
 *      processors are to be used; an M needs one to run a G (trail_p in it)
 *
 * What a runtime must ensure, and where this one does:
 *
 *   an event comes before its effect can be seen           every call of the library here
 *   a G that waits is off its stack before it is woken     park() in sched.c
 *   a P in a system call is taken by one thread only       syscall.c
 *   threads without a P are silent in a stopped world      outside_begin() in world.c
 *   no event is emitted under the lock of the list of Gs   each_goroutine() in world.c
 *
 * Locks nest in this order: those of channels, mutexes, descriptors and timers; sched.lock; P.lock.
 */
#ifndef SCHEDULER_H
#define SCHEDULER_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <trail/record.h>

#include "context.h"

enum { MAX_PROCS = 16, STACK_SIZE = 64 << 10 };

/* A futex as a lock that one stack takes and another releases, as parking a coroutine needs. */
struct lock {
    _Atomic uint32_t word;
};
void lock(struct lock *l);
void unlock(struct lock *l);

/* A queue of coroutines, linked by their `next`. The length may be read without the lock. */
struct queue {
    struct g *head, *tail;
    _Atomic unsigned length;
};
void gqueue_push(struct queue *q, struct g *g);
struct g *gqueue_pop(struct queue *q);

/* A coroutine. */
struct g {
    trail_g trail;
    struct context context;
    struct g *next;                /* in a queue */
    struct g *all_prev, *all_next; /* sched.all */
    void (*function)(void *);
    void *argument;
    uint8_t *stack;    /* NULL: that of a foreign thread */
    const char *label; /* with which it is started; NULL: none */
    int64_t wake_ns;   /* while it sleeps */
    uint64_t noted;    /* lines in the host's log */
};

/*
 * The owner of a P: a thread, none, a thread in a system call that may lose it, or a stopped world.
 */
enum { P_IDLE, P_RUNNING, P_SYSCALL, P_STOPPED };

/* A processor slot. */
struct p {
    trail_p trail;
    /*
     * P_... | number of the thread << 2 in a system call, so that only that thread takes it back.
     */
    _Atomic uint32_t status;
    struct lock lock; /* of runnable */
    struct queue runnable;
    _Atomic uint32_t tick; /* counts starts of coroutines and system calls, for the monitor */
    _Atomic bool preempt;  /* its coroutine should stop at its next safe point */
    struct p *next;        /* sched.idle_ps */
    uint32_t seen_tick;    /* the monitor's */
    uint64_t random;
};

/* A thread. */
struct m {
    trail_m trail;
    struct context context; /* the thread's own stack, on which it looks for work */
    struct g *g;
    struct p *p;
    void (*after)(void *); /* to be called when the coroutine is off its stack */
    void *after_argument;
    struct g *ended; /* ended with a direct switch off its stack */
    uint32_t number;
    sem_t wake;
    struct m *next_idle, *next; /* sched.idle_ms, sched.ms */
    pthread_t thread;
};

/* One per process, like the tracer. */
struct scheduler {
    struct lock lock; /* of what follows */
    struct p *idle_ps;
    struct m *idle_ms, *ms;
    struct queue runnable; /* work from threads without a P, and preempted coroutines */
    unsigned next_number;
    bool starting; /* a new thread is on its way */
    bool world_taken;
    _Atomic unsigned idle_count; /* of idle_ps */
    _Atomic uint32_t stopping;   /* a futex, for threads that wait outside */
    _Atomic bool quit;

    struct p ps[MAX_PROCS];
    _Atomic unsigned procs;

    struct lock all_lock; /* of `all` and the free stacks; no event is emitted under it */
    struct g *all;
    uint8_t *free_stacks;

    FILE *log; /* --log */
    _Atomic bool log_sure;
    bool alloc_free;
    uint64_t seed;
    struct m main, poller, monitor; /* threads that are Ms but run no coroutines */
};
extern struct scheduler sched;

/* MARK: sched.c: threads */

void sched_start(unsigned procs, uint64_t seed);
void sched_run(void (*function)(void *), void *argument); /* the first coroutine */
void sched_stop(void); /* when only waiting coroutines are left */

struct m *m_self(void);
struct g *g_self(void);
void m_begin(struct m *m); /* the calling thread is `m` */
void m_end(struct m *m);
void p_take(struct m *m, struct p *p);
struct p *p_get_idle(void);        /* under sched.lock; NULL if there is none */
void give_up_p(struct m *m);       /* there is nothing to do, or the world stops */
void p_put_idle(struct p *p);      /* under sched.lock */
void wake(void);                   /* an idle thread, if there is a P for it */
void put_local(struct g *g);       /* into the queue of this thread's P */
void put_runnable(void *g);        /* an `after`: into sched.runnable */
void put_runnable_locked(void *g); /* the same, with sched.lock taken, which it releases */

/* MARK: coroutine.c */

struct g *go(void (*function)(void *), void *argument);
struct g *go_labelled(void (*function)(void *), void *argument, const char *label);
struct g *go_blocked(void (*function)(void *), void *argument); /* waits until ready() */
void yield(void);
bool safe_point(void); /* in long loops: here the coroutine may be preempted; whether it was */

/* The coroutine waits until ready(). after(argument) runs off its stack and lets wakers proceed. */
void park(trail_block_reason reason, bool in_vain, void (*after)(void *), void *argument);
void unlock_after(void *l); /* an `after`: unlocks a struct lock */
void ready(struct g *g);

/* From the current coroutine straight to `g`, which waits. */
void switch_to(struct g *g);
_Noreturn void switch_to_and_end(struct g *g);

void leave(struct m *m, struct g *g, void (*after)(void *), void *argument);
struct g *g_new(void (*function)(void *), void *argument, bool with_stack);
void g_free(struct g *g);
void all_add(struct g *g);
void bury_ended(void); /* the coroutine that a direct switch left on this thread */
void coroutines_free(void);
void stacks_snapshot(void);

/* MARK: world.c: stopping all Ps */

/* Called by a coroutine, which keeps its P, or by a thread without a P. */
void world_stop(void);
void world_start(void);
void world_stop_traced(
    trail_stw_kind kind); /* the same, written to the trace; called by a coroutine */
void world_start_traced(void);
/* Reserves the world until world_release; false: another thread is stopping it. */
bool world_hold(void);
void world_release(void);
void procs_change(unsigned n); /* how many Ps there are; from a coroutine */
void outside_begin(void);      /* brackets events of threads without a P: takes sched.lock */
void outside_end(void);
extern const trail_host host;

/* MARK: syscall.c: calls that may block the thread */

void syscall_enter(void);
void syscall_block(
    void); /* as syscall_enter, and it is known to take long: the P is given up at once */
void syscall_exit(void);
bool syscall_lost_p(void);       /* within a call: the P was taken */
void foreign_begin(struct m *m); /* foreign threads may call in from here on */
struct g *foreign_enter(struct m *m);
void foreign_leave(struct m *m, bool keep_p);
void foreign_end(struct m *m);
void *monitor_main(void *);

/* MARK: sync.c */

/* A counter that can be waited for; sema_post also from a thread that is an M without a P. */
struct sema {
    struct lock lock;
    unsigned count;
    struct queue waiting;
};
void sema_wait(struct sema *s, trail_block_reason reason);
void sema_post(struct sema *s);
/* Wakes all current waiters; called without the lock. */
unsigned wake_all(struct lock *l, struct queue *waiting);

/* The first to come takes it, so a wake-up may be futile. */
struct mutex {
    struct lock lock;
    bool held;
    struct queue waiting;
    _Atomic unsigned in_vain;
};
void mutex_lock(struct mutex *m);
void mutex_unlock(struct mutex *m);

struct cond {
    struct lock lock;
    struct queue waiting;
};
void cond_wait(struct cond *c, struct mutex *m);
void cond_signal(struct cond *c);
void cond_broadcast(struct cond *c);

/* A count of unfinished work, and a wait for its end. */
struct group {
    struct mutex mutex;
    struct cond cond;
    unsigned count;
};
void group_add(struct group *g, unsigned n);
void group_done(struct group *g);
void group_wait(struct group *g);

/* MARK: channel.c */

struct channel *chan_new(unsigned capacity);
void chan_free(struct channel *c);
void chan_close(struct channel *c);
void chan_send(struct channel *c, uintptr_t value);
bool chan_receive(struct channel *c, uintptr_t *value); /* false: closed */

struct chan_case {
    struct channel *channel;
    bool send;
    bool ok;         /* receive: false if the channel is closed */
    uintptr_t value; /* to be sent; received */
};
unsigned chan_select(struct chan_case *cases, unsigned n); /* which one it was; at most MAX_CASES */
enum { MAX_CASES = 8 };
unsigned chan_waiting(struct channel *c); /* how many coroutines wait here */

/* MARK: timer.c, poll.c */

int64_t now_ns(void);
void timer_start(void);
void timer_fired(void); /* of the poller */
void sleep_ns(int64_t ns);

extern int timer_fd;
void *poller_main(void *);
void poll_start(void);
void poll_stop(void);
struct net;
struct net *net_listen(uint16_t *port); /* on loopback */
struct net *net_connect(uint16_t port);
struct net *net_accept(struct net *n);
ssize_t net_read(struct net *n, void *data, size_t size);
bool net_write(struct net *n, const void *data, size_t size); /* all of it */
void net_close(struct net *n);

/* MARK: collect.c: a heap of lists */

struct object {
    struct object *next;
    uint64_t value;
    uint32_t used, mark;
};
void heap_start(void);
struct object *heap_new(struct object **root, uint64_t value); /* in front of the list at *root */
void heap_drop(struct object **root); /* the list is garbage from here on */
void heap_root_add(struct object **root);
void heap_root_remove(struct object **root);
void collect(void);                /* one cycle, from a coroutine */
void collect_slowly(bool slowly);  /* the trace's generations end within each phase */
void heap_snapshot(void *context); /* AllocFree: what there is when the trace starts */
void heap_stop(void);
struct heap_counts {
    unsigned cycles, assists, assist_waits, sweeps;
};
struct heap_counts heap_counts(void);

/* MARK: log.c: what the host itself says happened, to compare with the trace */

void note(struct g *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
void log_open(const char *path);
void log_close(void);

/* MARK: The programs on top */

unsigned echo(unsigned clients, unsigned rounds);       /* messages answered */
unsigned sieve(unsigned below);                         /* primes */
unsigned count_words(unsigned workers, unsigned words); /* words counted */
void tour_before(void); /* what is in progress when the trace starts */
void tour(void);        /* everything else that a scheduler can report */

#endif
