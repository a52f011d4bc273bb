/*
 * The write section and the switch of generations, on a machine that delays stores.
 *
 * An emitter says that it is busy by a plain store and then loads the generation. The processor may make
 * that store visible after the load, so whoever switches generations orders the two from outside, by a
 * barrier that empties every thread's store buffer (membarrier). Then it waits until it has seen each
 * thread idle once, and what a thread wrote in the old generation is complete and can be taken.
 *
 *   emitter (trail_enter_, ..., trail_leave_)      advancer (start, advance, stop)
 *     busy = 1          stays in the store buffer    generation = N + 1   (tracing = 1, at a start)
 *     tracing == 0 ?    -> state = x                 barrier: all store buffers are empty
 *     generation        0  -> state = x              for each M: wait for busy == 0
 *                       N  -> write to slot N & 1                take its slot of N
 *     busy = 0          behind all of that           (tracing = 0, at a stop)
 *
 * An event is two stores, so that half of one can be seen. Store buffers are FIFO (x86-TSO); with
 * -DWEAK, stores to different variables pass each other, but for the releasing one of busy = 0 (arm64).
 * Loads happen in program order: the load of `tracing` acquires. The advancer's own stores are ordered by
 * what it calls.
 *
 * Claims (asserted):
 *   1. what is taken of generation N has no half event and every event that was written in N;
 *   2. nothing is written for N after that;
 *   3. a slot never mixes generations;
 *   4. after a start's wait every state that was stored while off is visible to the starter, and no
 *      further one is stored so until the stop.
 *
 * -DFENCE: no membarrier here; the emitter has a fence of its own instead (bit 2 of trail_tracing_).
 * Wrong on purpose: -DNO_BARRIER, -DNO_WAIT, -DLOAD_FIRST (generation before busy), -DONE_SLOT,
 * -DWEAK -DNO_RELEASE.
 */
#ifndef EMITTERS
#define EMITTERS 2
#endif
#ifndef EVENTS
#define EVENTS 2
#endif
#ifndef SWITCHES
#define SWITCHES 3
#endif
#define GENERATIONS (SWITCHES + 1)
#define DELAYED 3 /* stores a buffer holds */

/* What an emitter stores to. */
#define BUSY 0
#define STATE 1
#define SLOT 2 /* two: half events in the buffer of generation & 1 */
#define VARIABLES 4

#ifdef ONE_SLOT
#define slot_of(generation) SLOT
#else
#define slot_of(generation) (SLOT + (generation & 1))
#endif

typedef machine {
    byte memory[VARIABLES];
    byte delayed; /* stores in the buffer, the oldest first */
    byte variable[DELAYED];
    byte value[DELAYED];
    bool release[DELAYED];
    /* What is true, which no thread may look at. */
    byte state;     /* changes so far */
    byte off_state; /* the last that was made while off */
    byte written[GENERATIONS];
    bool taken[GENERATIONS];
    byte last[2]; /* the generation of what is in a slot */
}

machine m[EMITTERS];
byte generation = 0;
bool tracing = false;
bool settled = false; /* a start's wait is over: no more off-path stores */

/* MARK: Memory */

/* The i-th delayed store of a thread reaches memory. */
inline perform(t, i)
{
    d_step {
        m[t].memory[m[t].variable[i]] = m[t].value[i];
        m[t].delayed--;
        k = i;
        do
        :: k < m[t].delayed ->
            m[t].variable[k] = m[t].variable[k + 1];
            m[t].value[k] = m[t].value[k + 1];
            m[t].release[k] = m[t].release[k + 1];
            k++
        :: else -> break
        od;
        m[t].variable[m[t].delayed] = 0;
        m[t].value[m[t].delayed] = 0;
        m[t].release[m[t].delayed] = false;
        k = 0
    }
}

#define same(t, i, j) (m[t].variable[i] == m[t].variable[j])

proctype machinery(byte t)
{
    byte k;
end:
    do
    :: atomic { m[t].delayed > 0 -> perform(t, 0) }
#ifdef WEAK
    :: atomic { m[t].delayed > 1 && !m[t].release[1] && !same(t, 0, 1) -> perform(t, 1) }
    :: atomic { m[t].delayed > 2 && !m[t].release[2] && !same(t, 0, 2) && !same(t, 1, 2) ->
                perform(t, 2) }
#endif
    od
}

/* Waits while the buffer is full. */
inline store(what, x, releases)
{
    atomic {
        m[id].delayed < DELAYED;
        m[id].variable[m[id].delayed] = what;
        m[id].value[m[id].delayed] = x;
        m[id].release[m[id].delayed] = releases;
        m[id].delayed++
    }
}

/* What the thread itself sees: its newest delayed store, or memory. */
inline load(what, result)
{
    d_step {
        result = m[id].memory[what];
        k = 0;
        do
        :: k < m[id].delayed ->
            if
            :: m[id].variable[k] == what -> result = m[id].value[k]
            :: else
            fi;
            k++
        :: else -> break
        od;
        k = 0
    }
}

/* MARK: Emitter */

inline change_state()
{
    assert(!settled || now != 0); /* 4 */
    d_step {
        m[id].state++;
        if
        :: now == 0 -> m[id].off_state = m[id].state
        :: else
        fi
    }
    store(STATE, m[id].state, false)
}

inline write_event()
{
    assert(!m[id].taken[now]);      /* 2 */
    load(slot_of(now), at);
    assert(at == 0 || m[id].last[now & 1] == now); /* 3 */
    d_step {
        m[id].last[now & 1] = now;
        m[id].written[now]++
    }
    store(slot_of(now), at + 1, false);
    store(slot_of(now), at + 2, false)
}

proctype emitter(byte id)
{
    byte n, now, at, k;
    do
    :: n < EVENTS ->
#ifdef LOAD_FIRST
        now = (tracing -> generation : 0);
        store(BUSY, 1, false);
#else
        store(BUSY, 1, false);
#ifdef FENCE
        m[id].delayed == 0;
#endif
        if
        :: tracing -> now = generation
        :: !tracing -> now = 0
        fi;
#endif
        change_state();
        if
        :: now != 0 -> write_event()
        :: else
        fi;
        at = 0;
        now = 0;
#ifdef NO_RELEASE
        store(BUSY, 0, false);
#else
        store(BUSY, 0, true);
#endif
        n++
    :: else -> break
    od
}

/* MARK: Advancer */

/* membarrier: each thread passes a full barrier at some moment of the call. */
inline barrier()
{
    skip;
#if !defined(NO_BARRIER) && !defined(FENCE)
    t = 0;
    do
    :: t < EMITTERS ->
        atomic {
            do
            :: m[t].delayed > 0 -> perform(t, 0)
            :: else -> break
            od;
            t++
        }
    :: else -> break
    od
#endif
}

inline wait_idle(t)
{
#ifndef NO_WAIT
    m[t].memory[BUSY] == 0
#else
    skip
#endif
}

/* The buffer of an M for the generation that is over. */
inline take(t)
{
    d_step {
        assert(m[t].memory[slot_of(old)] == 2 * m[t].written[old]); /* 1 */
        m[t].memory[slot_of(old)] = 0;
        m[t].taken[old] = true
    }
}

inline start()
{
    tracing = true;
    generation = next;
    barrier();
    t = 0;
    do
    :: t < EMITTERS -> wait_idle(t); t++
    :: else -> break
    od;
    settled = true;
    t = 0;
    do
    :: t < EMITTERS ->
        d_step {
            assert(m[t].memory[STATE] >= m[t].off_state); /* 4 */
            t++
        }
    :: else -> break
    od
}

/* From generation `old` to `to`, which is 0 at a stop. */
inline switch_to(to)
{
    if
    :: to == 0 -> settled = false
    :: else
    fi;
    old = generation;
    generation = to;
    barrier();
    t = 0;
    do
    :: t < EMITTERS -> wait_idle(t); take(t); t++
    :: else -> break
    od;
    if
    :: to == 0 -> tracing = false
    :: else
    fi;
    old = 0
}

proctype advancer()
{
    byte t, k, old, next = 1, switches;
    do
    :: switches < SWITCHES && generation == 0 -> start(); next++; switches++
    :: switches < SWITCHES && generation != 0 -> switch_to(next); next++; switches++
    :: switches < SWITCHES && generation != 0 -> switch_to(0); switches++
    :: switches == SWITCHES -> break
    od;
    if
    :: generation != 0 -> switch_to(0)
    :: else
    fi
}

init
{
    byte t;
    atomic {
        do
        :: t < EMITTERS -> run machinery(t); run emitter(t); t++
        :: else -> break
        od;
        run advancer()
    }
}
