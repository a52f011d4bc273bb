/*
 * Which thread writes the status of a goroutine, once in each generation.
 *
 * A reader may begin at any generation, and accepts a goroutine's events there only if it has read its
 * status first; a goroutine without one in its first generation may not turn up later. So in
 * every generation each goroutine that lived before it has exactly one status event, in front of its first
 * event, and that says what the events before it led to. Three can write it, and a word decides:
 *
 *   word = generation << 3 | state
 *   emitter    first touch in N     word (older) -> N | after, by compare-and-swap; status, then the event
 *              later in N           word == N | before: a plain store of N | after
 *   advancer   before N ends        walks all: waiting or runnable and older -> N | state; status
 *   close      after N ended        once an M, under its lock, by its own first section after N or by the
 *                                   advancer, who has seen it idle: what it runs, in a call or not, and
 *                                   nobody touched in N -> N | state; status in the M's buffer of N
 *
 * A host orders the calls about one goroutine; nothing orders them with the walk. Memory is sequentially
 * consistent here, and the wait for sections is taken as right: section.pml is about those.
 *
 * Claims (asserted where an event is written and where a generation is complete):
 *   1. each goroutine that was created before N and lived in it has one status in N, none has two;
 *   2. it is the state that its events so far led to;
 *   3. it is in front of the first event of N, if that is one for which readers do not wait (§6.5: they
 *      wait before GoStart and GoUnblock), and of every event with the goroutine as its context;
 *   4. nothing is written for N once it is complete.
 *
 * -DSYSCALLS: goroutines do system calls. -DCREATE: one more goroutine is created, and they may end.
 * Wrong on purpose: -DNO_CAS (advancer), -DNO_CLOSE, -DNO_LOCK (close), -DWALK_LATE (after the switch),
 * -DSTOP_OPEN (a section in which the generation is 0 does not close the one before), -DTRACING_FIRST (a
 * stop turns the inline flag off before the Ms are closed), -DGENERATION_FIRST (a start stores the
 * generation before the flag: a section that saw the flag of the trace before is ahead of all others),
 * -DCREATE -DLISTED_LATE (a goroutine is not in the host's list yet when trail_go_create returns).
 */
#ifndef CALLS
#define CALLS 2
#endif
#ifndef SWITCHES
#define SWITCHES 2
#endif
#define MS 2
#ifdef CREATE
#define GS 3
#else
#define GS 2
#endif

#define NO_STATE 0 /* not created, or ended */
#define RUNNABLE 1
#define RUNNING 2
#define SYSCALL 3
#define WAITING 4
#define UNBORN 5  /* of the host's states */
#define IN_HAND 6
#define NOBODY 255

/* MARK: What the library keeps */

typedef thread {
    bool busy;
    bool locked;
    byte g; /* what it runs */
    byte generation;
    byte closed;
}

typedef goroutine {
    byte generation, state; /* one word: written in one step */
    /* The host's own state, changed when the call is over; NO_STATE IN_HAND: somebody is about to change it. */
    byte host;
    bool listed;
}

thread m[MS];
goroutine g[GS];
byte generation = 0;
byte next = 1;
byte first_generation = 0;
byte ending = 0; /* the generation that is being ended, or was last */
bool tracing = false;

/* MARK: What readers see, of the generation that is on and the one before */

typedef story {
    byte written;  /* the state in its status */
    byte before; /* its first event */
    byte after;  /* its last event */
    bool any;    /* it has an event */
}

typedef stories {
    story g[GS];
}

stories seen[2];
byte truth[GS]; /* when the newest generation that is complete was over */
byte actual[GS]; /* now */
byte complete = 0;

#define here(n, x) seen[(n) & 1].g[x]

/* The event for which readers wait until the goroutine is in the state before it. */
#define sequenced(from) (from == RUNNABLE || from == WAITING)
#define known(n, x) (here(n, x).written != NO_STATE || here(n, x).any)

inline status(n, x, s)
{
    d_step {
        assert(n > complete);                                    /* 4 */
        assert(here(n, x).written == NO_STATE);                     /* 1 */
        if
        :: here(n, x).any ->
            assert(here(n, x).before == s);                      /* 2 */
            assert(sequenced(s))                                 /* 3 */
        :: else
        fi;
        here(n, x).written = s
    }
}

/* The event that takes goroutine x from one state to another; NO_STATE: its creation, its end. */
inline event(n, x, from, to)
{
    d_step {
        assert(n > complete);                                            /* 4 */
        assert(from == NO_STATE || sequenced(from) || known(n, x));      /* 3 */
        assert(m[id].g == NOBODY || known(n, m[id].g));                  /* 3 */
        if
        :: !here(n, x).any -> here(n, x).before = from
        :: else -> assert(here(n, x).after == from)                      /* 2 */
        fi;
        here(n, x).any = true;
        here(n, x).after = to;
        actual[x] = to
    }
}

/* Nothing more may come for the generation: what do readers make of it? */
inline judge(n)
{
    d_step {
        x = 0;
        do
        :: x < GS ->
            if
            :: truth[x] == NO_STATE -> assert(here(n, x).written == NO_STATE) /* 1 */
            :: else -> assert(here(n, x).written == truth[x])                 /* 1, 2 */
            fi;
            assert(!here(n, x).any || here(n, x).before == truth[x]);      /* 2 */
            if
            :: here(n, x).any -> truth[x] = here(n, x).after
            :: else
            fi;
            here(n, x).written = 0;
            here(n, x).before = 0;
            here(n, x).after = 0;
            here(n, x).any = false;
            x++
        :: else -> break
        od;
        complete = n;
        x = 0
    }
}

/* MARK: What an M runs (states.c) */

inline lock(t)
{
#ifdef NO_LOCK
    skip
#else
    atomic { !m[t].locked -> m[t].locked = true }
#endif
}

/* introduce_context: writes what an M runs, unless that is done in the generation. */
inline introduce_context(t, n)
{
    y = m[t].g;
    if
    :: atomic { y != NOBODY && g[y].generation < n -> was = g[y].generation };
        if
        :: atomic { g[y].generation == was -> g[y].generation = n; s = g[y].state };
            status(n, y, s)
        :: atomic { g[y].generation != was -> skip }
        fi
    :: else
    fi;
    atomic { was = 0; s = 0; y = 0 }
}

/* states_close */
inline close(t, n)
{
    lock(t);
#ifndef NO_CLOSE
    if
    :: m[t].closed < n ->
#ifdef NO_LOCK
        introduce_context(t, n);
        m[t].closed = n
#else
        m[t].closed = n;
        introduce_context(t, n)
#endif
    :: else
    fi;
#endif
    m[t].locked = false
}

/* MARK: Emitter */

/* trail_enter_, section_enter, section_first */
inline enter()
{
    m[id].busy = true;
    traced = tracing;
    now = (traced -> generation : 0);
    if
    :: now != m[id].generation && now != 0 ->
        if
        :: now > first_generation -> close(id, now - 1)
        :: else
        fi;
        m[id].generation = now;
        introduce_context(id, now)
#ifndef STOP_OPEN
    /* A stop is under way: what the M runs must be written before it changes. */
    :: now == 0 && traced -> close(id, ending)
#endif
    :: else
    fi
}

/* The section is over, and the host lets go of x. */
inline leave(state)
{
    d_step {
        now = 0;
        traced = false;
        m[id].busy = false;
        g[x].host = state;
        x = 0;
        n++
    }
}

/* x goes from one state to another: state_change_g, state_change_slow_g, and the event. */
inline change(x, from, to)
{
    was = g[x].generation;
    if
    :: atomic { now == 0 -> g[x].generation = 0; g[x].state = to; actual[x] = to }
    :: now != 0 && was == now ->
        assert(g[x].state == from);
        g[x].state = to
    :: now != 0 && was != now ->
        assert(g[x].state == from);
        if
        :: atomic { g[x].generation == was -> g[x].generation = now; g[x].state = to };
            if
            :: from != NO_STATE -> status(now, x, from)
            :: else
            fi
        :: atomic { g[x].generation != was -> assert(g[x].generation == now); g[x].state = to }
        fi
    fi;
    if
    :: now == 0 -> was = 0
    :: else -> was = 0; event(now, x, from, to)
    fi
}

/* The host takes a goroutine in hand that is in a state. */
inline pick(wanted)
{
    if
    :: g[0].host == wanted -> x = 0
    :: g[1].host == wanted -> x = 1
#if GS > 2
    :: g[2].host == wanted -> x = 2
#endif
    fi;
    g[x].host = IN_HAND
}

#if GS > 2
#define some(wanted) (g[0].host == wanted || g[1].host == wanted || g[2].host == wanted)
#else
#define some(wanted) (g[0].host == wanted || g[1].host == wanted)
#endif

/* What the M runs leaves it: blocks, yields, ends, returns late from a system call. */
inline off(from, to)
{
    x = m[id].g;
    enter();
    change(x, from, to);
    m[id].g = NOBODY;
    leave(to)
}

proctype emitter(byte id)
{
    byte n, now, was, x, y, s;
    bool traced;
end:
    do
    :: atomic { n < CALLS && m[id].g == NOBODY && some(RUNNABLE) -> pick(RUNNABLE) };
        /* trail_go_start */
        enter();
        change(x, RUNNABLE, RUNNING);
        m[id].g = x;
        leave(IN_HAND)
    :: atomic { n < CALLS && some(WAITING) -> pick(WAITING) };
        /* trail_go_unblock */
        enter();
        change(x, WAITING, RUNNABLE);
        leave(RUNNABLE)
    :: n < CALLS && m[id].g != NOBODY && g[m[id].g].state == RUNNING ->
        if
        :: off(RUNNING, WAITING)  /* trail_go_block */
        :: off(RUNNING, RUNNABLE) /* trail_go_sched */
#ifdef CREATE
        :: off(RUNNING, NO_STATE) /* trail_go_end */
        :: atomic { g[2].host == UNBORN -> g[2].host = IN_HAND; x = 2 };
            /* trail_go_create */
#ifndef LISTED_LATE
            g[x].listed = true;
#endif
            enter();
            change(x, NO_STATE, RUNNABLE);
            leave(RUNNABLE);
            g[2].listed = true
#endif
#ifdef SYSCALLS
        :: x = m[id].g; /* trail_syscall_enter */
            enter();
            change(x, RUNNING, SYSCALL);
            leave(IN_HAND)
#endif
        fi
#ifdef SYSCALLS
    :: n < CALLS && m[id].g != NOBODY && g[m[id].g].state == SYSCALL ->
        if
        :: x = m[id].g; /* trail_syscall_exit */
            enter();
            change(x, SYSCALL, RUNNING);
            leave(IN_HAND)
        :: off(SYSCALL, RUNNABLE) /* trail_syscall_exit_blocked */
        fi
#endif
    :: n == CALLS -> break
    od
}

/* MARK: Advancer (v2_session_begin, v2_advance, v2_session_end) */

/* Every M is seen outside of its section once. */
inline wait_for_sections()
{
    do
    :: atomic { t < MS && !m[t].busy -> t++ }
    :: t == MS -> break
    od;
    t = 0
}

/* The host's each_goroutine with states_claim. */
inline walk(n)
{
    x = 0;
    do
    :: x < GS ->
        atomic { was = g[x].generation; s = g[x].state };
        if
        :: !g[x].listed || was >= n || !sequenced(s) -> skip
        :: g[x].listed && was < n && sequenced(s) ->
            if
#ifdef NO_CAS
            :: atomic { g[x].generation = n; g[x].state = s }; status(n, x, s)
#else
            :: atomic { g[x].generation == was && g[x].state == s -> g[x].generation = n };
                status(n, x, s)
            :: g[x].generation != was || g[x].state != s -> skip
#endif
            fi
        fi;
        atomic { was = 0; s = 0; x++ }
    :: x == GS -> break
    od;
    x = 0
}

inline begin()
{
    first_generation = next;
#ifdef GENERATION_FIRST
    generation = next;
    tracing = true;
#else
    tracing = true;
    generation = next;
#endif
    next++;
    wait_for_sections();
    d_step {
        do
        :: x < GS ->
            truth[x] = (here(first_generation, x).any -> here(first_generation, x).before : actual[x]);
            x++
        :: else -> break
        od;
        x = 0
    }
}

/* To the next generation, or 0 at a stop. */
inline end_generation(to)
{
    old = generation;
#ifndef WALK_LATE
    walk(old);
#endif
#ifdef TRACING_FIRST
    if
    :: to == 0 -> tracing = false
    :: else
    fi;
#endif
    ending = old;
    generation = to;
    wait_for_sections();
#ifdef WALK_LATE
    walk(old);
#endif
    do
    :: t < MS -> close(t, old); t++
    :: else -> break
    od;
    t = 0;
    judge(old);
    if
    :: to == 0 -> tracing = false
    :: else -> next++
    fi;
    old = 0
}

proctype advancer()
{
    byte t, x, y, s, was, old, switches;
    do
    :: switches < SWITCHES && generation == 0 -> begin(); switches++
    :: switches < SWITCHES && generation != 0 -> end_generation(next); switches++
    :: switches < SWITCHES && generation != 0 -> end_generation(0); switches++
    :: switches == SWITCHES -> break
    od;
    if
    :: generation != 0 -> end_generation(0)
    :: else
    fi
}

init
{
    atomic {
        m[0].g = NOBODY;
        m[1].g = 1;
        g[0].host = RUNNABLE;
        g[0].state = RUNNABLE;
        g[0].listed = true;
        g[1].host = IN_HAND;
        g[1].state = RUNNING;
        g[1].listed = true;
        actual[0] = RUNNABLE;
        actual[1] = RUNNING;
#ifdef CREATE
        g[2].host = UNBORN;
#endif
        run emitter(0);
        run emitter(1);
        run advancer()
    }
}
