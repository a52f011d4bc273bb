/*
 * The roster: records of threads, which are taken and released without a lock, and visited by the thread
 * that switches generations.
 *
 *   thread                                        advancer
 *     pop a free record, whose buffers may          generation = N + 1
 *       hold what a thread has written that ended   for each record in use: wait for busy == 0
 *     set it up                                     for each record, under its lock:
 *     in_use = 1                                      in use?  read what was set up
 *     busy = 1; N = generation                        take its slot of N
 *       open a batch in slot N & 1, write
 *     busy = 0
 *     lock; close the batch; in_use = 0; unlock
 *     push the record
 *
 * The pop reads the newest record and its successor, and exchanges the one for the other if the number of
 * changes is still the same. Stores are seen at once: section.pml has their delays.
 *
 * Claims (asserted):
 *   1. no two threads have the same record;
 *   2. a visitor sees no record in use that is being set up;
 *   3. every event of N is taken when N is over, with its batch closed or by its thread's lock not half
 *      closed, and none is written to N later;
 *   4. a slot never mixes generations.
 *
 * Wrong on purpose: -DNO_CHANGES (the exchange looks at the record alone), -DNO_LOCK (a thread leaves without
 * the lock), -DENTER_FIRST (in use before it is set up), -DVISIT_IN_USE (only records in use are visited).
 */
#ifndef THREADS
#define THREADS 2
#endif
#ifndef LIVES
#define LIVES 2
#endif
#ifndef SWITCHES
#define SWITCHES 2
#endif
#define RECORDS 3
#define GENERATIONS (SWITCHES + 2)
#define NONE RECORDS

typedef record {
    byte next;
    bool in_use, busy, locked;
    byte events[2];     /* in the slots of odd and even generations */
    byte generation[2]; /* theirs */
    bool closing[2];    /* the thread that leaves is about to store the size of the batch */
    /* What is true, which no thread may look at. */
    byte owners;
    bool setting_up;
};

record r[RECORDS];
byte newest = 0, changes = 0;
byte generation = 1;
byte written[GENERATIONS], taken[GENERATIONS];
bool over[GENERATIONS];

inline lock(i)
{
    atomic { !r[i].locked -> r[i].locked = true }
}

inline unlock(i)
{
    r[i].locked = false
}

inline pop()
{
    do
    :: atomic { newest != NONE -> own = newest; seen = changes };
       next = r[own].next;
       atomic {
           if
#ifdef NO_CHANGES
           :: newest == own ->
#else
           :: newest == own && changes == seen ->
#endif
              newest = next;
              changes++;
              r[own].owners++;
              assert(r[own].owners == 1); /* 1 */
              break
           :: else
           fi
       }
    od;
    next = 0;
    seen = 0
}

inline push()
{
    r[own].owners--;
    do
    :: atomic { next = newest; seen = changes };
       r[own].next = next;
       atomic {
           if
           :: newest == next && changes == seen -> newest = own; changes++; break
           :: else
           fi
       }
    od;
    next = 0;
    seen = 0
}

inline section()
{
    r[own].busy = true;
    now = generation;
    atomic {
        assert(!over[now]);                                                       /* 3 */
        assert(r[own].events[now & 1] == 0 || r[own].generation[now & 1] == now); /* 4 */
        r[own].generation[now & 1] = now;
        r[own].events[now & 1]++;
        written[now]++
    };
    now = 0;
    r[own].busy = false
}

inline leave()
{
#ifndef NO_LOCK
    lock(own);
#endif
    slot = 0;
    do
    :: slot < 2 ->
        if
        :: r[own].events[slot] > 0 -> r[own].closing[slot] = true; r[own].closing[slot] = false
        :: else
        fi;
        slot++
    :: else -> break
    od;
    slot = 0;
    r[own].in_use = false;
#ifndef NO_LOCK
    unlock(own)
#endif
}

proctype thread()
{
    byte own, next, seen, now, slot, lives;
    do
    :: lives < LIVES ->
        pop();
#ifdef ENTER_FIRST
        r[own].in_use = true;
#endif
        r[own].setting_up = true;
        r[own].setting_up = false;
        r[own].in_use = true;
#if SWITCHES > 0
        section();
        leave();
#endif
        push();
        lives++
    :: else -> break
    od
}

inline visit(i)
{
    lock(i);
    if
    :: r[i].in_use -> assert(!r[i].setting_up) /* 2 */
    :: else
    fi;
#ifdef VISIT_IN_USE
    if
    :: r[i].in_use ->
#endif
    atomic {
        assert(r[i].events[old & 1] == 0 || !r[i].closing[old & 1]); /* 3 */
        if
        :: r[i].generation[old & 1] == old ->
            taken[old] = taken[old] + r[i].events[old & 1];
            r[i].events[old & 1] = 0
        :: else
        fi
    };
#ifdef VISIT_IN_USE
    :: else
    fi;
#endif
    unlock(i)
}

proctype advancer()
{
    byte i, old, switches;
    do
    :: switches < SWITCHES ->
        old = generation;
        generation = old + 1;
        i = 0;
        do
        :: i < RECORDS -> !(r[i].in_use && r[i].busy); i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < RECORDS -> visit(i); i++
        :: else -> break
        od;
        atomic {
            assert(taken[old] == written[old]); /* 3 */
            over[old] = true;
            i = 0
        };
        switches++
    :: else -> break
    od
}

init
{
    byte i;
    atomic {
        do
        :: i < RECORDS -> r[i].next = i + 1; i++
        :: else -> break
        od;
        i = 0;
        do
        :: i < THREADS -> run thread(); i++
        :: else -> break
        od;
        run advancer()
    }
}
