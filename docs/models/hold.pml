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
 * A number that the trace begins with (procs, heap_goal) is stored before its call, whatever the trace:
 *
 *   thread (number_needs_event)                 starter
 *     number = new                                held = 1, waits
 *     held ?           yes -> a call as above     the list has `number`
 *     generation ?     yes -> a call as above     generation = N, held = 0
 *
 * Claims (asserted): after the listing no state changes without an event, until the trace ends; and when the number's call
 * has returned, the trace has the number.
 *
 * Stores are seen at once here: the barrier between `held` and the wait is section.pml's.
 *
 * Wrong on purpose: -DLOAD_ONCE (the generation from before `held` is used), -DNO_WAIT, -DOPEN_FIRST (held = 0 before the
 * generation), -DNUMBER_UNHELD (the number's call looks at the generation only), -DNUMBER_HELD_LAST (at `held` after it).
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
bool busy[THREADS + 1]; /* the last is the setter's */
byte number = 0, in_trace = 0;
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

/* Changes the number. */
proctype setter()
{
    byte now, calls;
    bool event;
    do
    :: calls < CALLS ->
        number++;
#ifdef NUMBER_HELD_LAST
        event = (generation != 0);
        if :: !event -> event = held :: else fi;
#else
#ifndef NUMBER_UNHELD
        event = held;
#endif
        if :: !event -> event = (generation != 0) :: else fi;
#endif
        if
        :: event ->
again:
            busy[THREADS] = true;
            if
            :: held -> busy[THREADS] = false; !held; goto again
            :: !held -> now = generation
            fi;
            if :: now != 0 -> in_trace = number :: else fi;
            busy[THREADS] = false
        :: else
        fi;
        assert(!listed || in_trace == number);
        event = false;
        now = 0;
        calls++
    :: else -> break
    od
}

inline wait_for_sections()
{
    t = 0;
    do
    :: t <= THREADS -> !busy[t]; t++
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
        atomic { listed = true; in_trace = number }
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
        run setter();
        run starter()
    }
}
