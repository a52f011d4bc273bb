/*
 * The beginning of a v1 trace, which holds all threads: between the listing of what there is and the first event nothing
 * may change unseen.
 *
 *   thread (section_enter, section_first)       starter (v1_session_begin)
 *     busy = 1                                    held = 1
 *     generation       0 ->                       for each thread: wait for busy == 0
 *       held ?         yes -> busy = 0, again     lists all states
 *                      no  -> generation          generation = N
 *     changes a state, with an event if           held = 0
 *     the generation is not 0                     for each thread: wait for busy == 0
 *     busy = 0
 *
 * A thread that finds generation 0 and is not held either came before the starter, which waits for it, or after: then the
 * generation is there, and must be loaded again.
 *
 * Claim (asserted): after the listing no state changes without an event, until the trace ends.
 *
 * Stores are seen at once here: the barrier between `held` and the wait is section.pml's.
 *
 * Wrong on purpose: -DLOAD_ONCE (the generation from before `held` is used), -DNO_WAIT, -DOPEN_FIRST (held = 0 before the
 * generation).
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef CALLS
#define CALLS 3
#endif
#define STARTS 2

byte generation = 0;
bool held = false;
bool busy[THREADS];
bool listed = false; /* a trace has begun: what is true, which no thread may look at */

proctype emitter(byte id)
{
    byte now, calls;
    do
    :: calls < CALLS ->
again:
        busy[id] = true;
        now = generation;
        if
        :: now == 0 ->
            if
            :: held -> busy[id] = false; !held; goto again
            :: !held ->
#ifndef LOAD_ONCE
                now = generation
#endif
            fi
        :: else
        fi;
        assert(now != 0 || !listed);
        busy[id] = false;
        now = 0;
        calls++
    :: else -> break
    od
}

inline wait_for_sections()
{
    t = 0;
    do
    :: t < THREADS -> !busy[t]; t++
    :: else -> break
    od;
    t = 0
}

proctype starter()
{
    byte t, starts;
    do
    :: starts < STARTS ->
        held = true;
#ifndef NO_WAIT
        wait_for_sections();
#endif
        listed = true;
#ifdef OPEN_FIRST
        held = false;
        generation = starts + 1;
#else
        generation = starts + 1;
        held = false;
#endif
        wait_for_sections();
        /* The end: what changes from here on is of no trace. */
        atomic { generation = 0; listed = false }
        wait_for_sections();
        starts++
    :: else -> break
    od
}

init
{
    byte t;
    atomic {
        do
        :: t < THREADS -> run emitter(t); t++
        :: else -> break
        od;
        run starter()
    }
}
