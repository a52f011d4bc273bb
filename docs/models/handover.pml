/*
 * The way of buffers from the emitters to the reader and back, with an end of memory, an end of the trace,
 * and a reader that also ends generations.
 *
 *   free or new ─ queue_buffer ─▶ an M's writer ─ queue_put ─▶ pending ─ trail_read ─▶ out ─▶ free
 *
 * An emitter whose buffer is full hands it over and takes another, inside its section. If the limit is taken up
 * by buffers that are not read (`queued`; those that emitters write to, and free ones, do not count), it
 * waits for the reader, but not for ever (-DTIMEOUTS), and not while a generation or the trace is being
 * ended: who ends it waits for the section, and may be the reader itself. Then it gets one above the limit
 * (`urgent`). If the time is up the trace fails: it ends there, and whoever reads completes it. What was
 * handed out by trail_read stays the caller's until the next call. The reader that ran dry is woken for WAKE
 * buffers, by an emitter that waits, by an end. Everything under tracer.lock is one step
 * here, and a wait for a condition is one that sees it.
 *
 * Claims (asserted; "invalid end state" is a deadlock):
 *   1. what the reader gets of an M are its buffers, each once, in order; nothing touches a chunk meanwhile;
 *   2. a stop for which the reader was in time has handed out all that was written, up to a failure;
 *   3. the stop returns, and emitters go on; without time-outs too, as long as somebody reads;
 *   4. the trace fails only by a time-out, or because the thread that reads writes more than it reads;
 *   5. no buffer is lost: in the end all are free or were never made, and none counts as unread that is free;
 *   6. one thread at a time is in trail_read.
 *
 * -DREADER_EMITS: the first emitter is the thread that reads, between two of its chunks. It does not wait for
 * itself: it may take twice the limit, and then the trace ends.
 *
 * -DPATIENT: the stop comes when the emitters are done. -DTIMEOUTS: waits may end by time. -DTIMEOUTS -DREADER_LEAVES: and the reader may stop reading.
 * Wrong on purpose: -DNO_URGENT, -DREADER_LEAVES alone (a wait without an end), -DRECYCLE_EARLY,
 * -DPATIENT -DREADER_EMITS -DREADER_WAITS (it waits for itself), -DTWO_READERS (the second is not refused), -DNO_WAIT (a stop takes buffers out of running sections), -DPATIENT
 * -DNO_WAKE -DBUFFERS=3 (an emitter waits for a reader that sleeps).
 */
#ifndef BUFFERS
#define BUFFERS 2 /* that each emitter fills */
#endif
#ifndef LIMIT
#define LIMIT 2
#endif
#define WAKE 3
#define MS 2
#define ALL (MS * BUFFERS + MS + LIMIT) /* more than there ever are */
#define NONE 255

/* What is in a buffer: whose, and the how manieth of it. */
byte owner[ALL], number[ALL];
bool is_free[ALL];
byte made = 0;
byte queued = 0; /* tracer.queued, in buffers: pending, or with the reader */

byte writer[MS]; /* the buffer that an M writes to */
bool busy[MS];
byte begun[MS];  /* buffers that an M took */
byte got[MS];    /* buffers that the reader had of it */

chan pending = [ALL] of { byte };
byte out = NONE;
bool on = true;       /* the generation is not 0 */
bool session = true;  /* a session is there */
bool ended = false;  /* the stream has had everything */
bool stopped = false;
bool urgent = false;
bool failed = false;
bool control = false; /* a lock */
bool pumping = false;
bool gone = false; /* the reader */
byte finished = 0; /* emitters that have filled all of theirs */
bool woken = true; /* it, since it ran dry */

/* MARK: Buffers (queue.c) */

/* is_worth_waking: an emitter that waits for room has woken the reader, or does so. */
#ifdef NO_WAKE
#define HALF false
#else
#define HALF (2 * queued >= LIMIT)
#endif
#ifdef READER_WAITS
#define MINE false
#else
#define MINE true
#endif

inline find_free()
{
    b = 0;
    do
    :: b < made && is_free[b] -> break
    :: b < made && !is_free[b] -> b++
    :: b >= made -> break
    od;
    if
    :: b == made -> assert(made < ALL); made++
    :: b < made
    fi
}

/* Not is_full. */
#define room (queued < LIMIT || urgent)

inline own()
{
    is_free[b] = false;
    owner[b] = id;
    number[b] = begun[id];
    begun[id]++;
    writer[id] = b
}

/* queue_put, of an M's buffer. */
inline put(t)
{
    atomic {
        if
        :: writer[t] != NONE ->
            pending!writer[t];
            queued++;
            writer[t] = NONE;
            woken = woken || len(pending) >= WAKE || HALF || urgent
        :: else
        fi
    }
}

/* MARK: Emitters: each call of this is one that finds the buffer full */

/* `mine`: the thread may have the limit once more, and then the trace ends, as by session_fail. */
inline fill(mine)
{
    atomic { busy[id] = true; n++ };
    if
    :: on ->
        put(id);
        do
        :: atomic { room -> find_free(); own() }; break
        :: atomic { !room && failed -> break }
        :: atomic { !room && !failed && mine && queued < 2 * LIMIT -> find_free(); own() }; break
        :: atomic { !room && !failed && mine && queued >= 2 * LIMIT -> failed = true; on = false }; break
#ifndef NO_WAKE
        :: atomic { !room && !failed && !woken -> woken = true }
#endif
#ifdef TIMEOUTS
        /* session_fail */
        :: atomic { !room && !mine -> failed = true; on = false; woken = true }; break
#endif
        od
    :: !on
    fi;
    atomic { b = 0; busy[id] = false }
}

proctype emitter(byte id)
{
    byte b, n;
    do
    :: n < BUFFERS -> fill(false)
    :: n == BUFFERS -> finished++; break
    od
}

/* MARK: Ending (generation.c, control.c); `control` is held */

inline set_urgent(value)
{
#ifdef NO_URGENT
    skip
#else
    urgent = value
#endif
}

/* close_all */
inline take_all()
{
#ifndef NO_WAIT
    !busy[0];
    !busy[1];
#endif
    put(0);
    put(1)
}

inline session_end()
{
    if
    :: session ->
        set_urgent(true);
        on = false;
        take_all();
        atomic { session = false; urgent = false; woken = true }
    :: else
    fi
}

/* v2_advance: the emitters go on in the next generation. */
inline advance()
{
    if
    :: on -> set_urgent(true); take_all(); woken = true; set_urgent(false)
    :: else
    fi
}

inline lock_control()
{
    atomic { !control -> control = true }
}

/* MARK: Reading (trail_read, next_chunk) */

inline release_out()
{
    if
    :: out != NONE -> is_free[out] = true; queued--; out = NONE
    :: else
    fi
}

/* What the caller does with a chunk; the buffer is in order, and stays as it is. */
inline consume()
{
    atomic {
        b = out;
        t = owner[b];
        assert(number[b] == got[t]); /* 1 */
        got[t]++
    };
    atomic {
        assert(out == b && !is_free[b]);                      /* 1 */
        assert(owner[b] == t && number[b] + 1 == got[t]);     /* 1 */
        b = 0;
        t = 0
    }
}

proctype reader()
{
    byte b, t, n, id, advances;
    bool chunk;
    do
#ifdef READER_EMITS
    :: n < BUFFERS && !gone && !ended -> fill(MINE)
    :: n == BUFFERS -> finished++; n++
#endif
    :: atomic { !gone && !ended && !pumping -> pumping = true };
        do
        :: atomic { !ended -> release_out() };
            if
            :: atomic { nempty(pending) && woken -> pending?out; chunk = true; woken = nempty(pending) };
#ifdef RECYCLE_EARLY
                is_free[out] = true;
#endif
                break
            :: atomic { empty(pending) && !session -> ended = true }
            /* chores */
            :: atomic { empty(pending) && failed && session && !control -> control = true };
                session_end();
                control = false
            :: atomic { empty(pending) && session && advances == 0 && !control -> control = true };
                advances++;
                advance();
                control = false
            fi
        :: ended -> break
        od;
        pumping = false;
        if
        :: chunk -> chunk = false; consume()
        :: else
        fi
    :: gone || ended -> break
#ifdef READER_LEAVES
    :: gone = true
#endif
    od
}

/* Calls trail_read while the reader is inside. */
proctype second_reader()
{
end:
#ifdef TWO_READERS
    atomic { pumping && nempty(pending) -> release_out(); pending?out }
#else
    pumping /* -1 */
#endif
}

/* MARK: The stop */

proctype stopper()
{
#ifdef PATIENT
    finished == MS;
#endif
    lock_control();
    session_end();
    control = false;
    if
    :: ended ->
        assert(failed || (got[0] == begun[0] && got[1] == begun[1])) /* 2 */
#ifdef TIMEOUTS
    :: true /* wait_ns is over */
#endif
    fi;
    ended = true;
    stopped = true
}

inline count_free()
{
    b = 0;
    n = 0;
    do
    :: b < made -> n = n + is_free[b]; b++
    :: else -> break
    od
}

init
{
    byte b, n;
    atomic {
        writer[0] = NONE;
        writer[1] = NONE;
#ifndef READER_EMITS
        run emitter(0);
#endif
        run emitter(1);
        run reader();
        run second_reader();
        run stopper()
    };
    d_step {
        stopped && !busy[0] && !busy[1] && !pumping && (gone || ended);
        assert(writer[0] == NONE && writer[1] == NONE);
        count_free();
        assert(n + len(pending) + (out != NONE) == made); /* 5 */
        assert(queued == len(pending) + (out != NONE)); /* 5 */
#if !defined(TIMEOUTS) && !defined(READER_EMITS)
        assert(!failed) /* 4 */
#endif
    }
}
