"""Programs whose traces several of the scripts make."""

from made import COND, GROUP, LOCK, MS, RELOCK, US, WORK_STACK, Trace


def hand_over(reason, stack, busy=False, wait=None):
    """Two goroutines alternate on P 0, a millisecond each. In recordings of C programs, a log names
    the object of each wait, and the stack begins at the call."""
    trace = Trace(2, idle=() if busy else (1,))
    trace.here(1, 2, 0)
    trace.create(10, 0, 2)
    if busy:
        trace.here(3, 2, 1)
    if wait:
        trace.log(15, 0, "wait", wait)
    trace.block(20, 0, reason, stack)
    trace.start(30, 0, 2)
    for i in range(30):
        now, mine, other = (i + 1) * MS, 2 - i % 2, 1 + i % 2
        trace.wake(now, 0, other)
        if wait:
            trace.log(now + 50, 0, "wait", wait)
        trace.block(now + 100, 0, reason, stack)
        trace.start(now + 200, 0, other)
        assert mine != other
    return trace


def herd(ran, again=COND, reason="sync.(*Cond).Wait", relock=False, count=150, busy=0):
    """Goroutine 1 on P 0 wakes goroutine 2, which runs for `ran` on P 1 and waits again."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.block(100, 1, "sync.(*Cond).Wait", COND)
    for i in range(count + 1, count + busy + 1):
        trace.wake(i * 100 * US, 0, 2)
        trace.start(i * 100 * US + 100, 1, 2)
        trace.block(i * 100 * US + 50 * US, 1, "sync.(*Cond).Wait", COND)
    for i in range(1, count + 1):
        trace.wake(i * 100 * US, 0, 2)
        trace.start(i * 100 * US + 100, 1, 2)
        if relock:
            trace.block(i * 100 * US + 200, 1, "sync", RELOCK)
            trace.wake(i * 100 * US + 300, 0, 2)
            trace.start(i * 100 * US + 400, 1, 2)
        trace.block(i * 100 * US + 500 + ran, 1, reason, again)
        if reason != "sync.(*Cond).Wait":
            trace.wake(i * 100 * US + 600 + ran, 0, 2)
            trace.start(i * 100 * US + 700 + ran, 1, 2)
            trace.block(i * 100 * US + 800 + ran, 1, "sync.(*Cond).Wait", COND)
    return trace.findings((count + busy + 10) * 100 * US)


def lone(length, idle=(1,), second=False, of=100 * MS, stops=0):
    """A goroutine is ready for this long while a P is idle, then runs for 1 us; the world is to stop for the first `stops` of it."""
    trace = Trace(3 if second else 2, idle=idle)
    trace.here(1, 2, 0)
    if stops:
        trace.stop(50, 0, 100 + stops)
    if second:
        trace.here(3, 2, 1)
    trace.create(100, 0, 2)
    trace.block(100 + length, 0, "chan receive", WORK_STACK)
    trace.start(110 + length, 0, 2)
    trace.block(110 + length + US, 0, "chan receive", WORK_STACK)
    if second:
        trace.block(110 + length + US, 1, "chan receive", WORK_STACK)
    return trace.findings(of + MS, "--from=0ns", f"--to={of}ns")


def kept(ran, blocks=True, of=0, lacked=0, recorded=False, named=True):
    """Goroutine 2 runs this long while goroutine 1 is ready, until it waits or is preempted. Then for `lacked` goroutine 1 runs,
    and another one is ready while no P runs it."""
    trace = Trace(1)
    if recorded:
        trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    if named:
        trace.create(5, 0, 2)
    else:
        trace.here(2, 1)
    preempted = f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK) if named else 0}"
    trace.at(MS, 0, preempted)
    trace.start(MS + 10, 0, 2)
    if blocks:
        trace.block(MS + 10 + ran, 0, "chan receive", WORK_STACK if named else ())
    else:
        trace.at(MS + 10 + ran, 0, preempted)
    trace.start(MS + 20 + ran, 0, 1)
    if lacked:
        trace.block(MS + 30 + ran, 0, "chan receive", WORK_STACK)
        trace.at(MS + 40 + ran, 0, "ProcStop")
        trace.at(MS + 50 + ran, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.at(MS + 50 + ran + lacked, 0, "ProcStart p=0 p_seq=%d", "P 0")
        trace.start(MS + 60 + ran + lacked, 0, 1)
    end = of or 3 * MS + ran + lacked
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


def lacks(trace, since, length, thread=1, g=2):
    """Goroutine 9 is ready for this long, though a P is idle, until it takes the place of `g` for a moment."""
    trace.create(since, 0, 9)
    trace.at(since + length, thread, f"GoStop reason_string={trace.string('preempted')} stack=0")
    trace.start(since + length + 10, thread, 9)
    trace.at(since + length + 20, thread, "GoDestroy")
    trace.start(since + length + 30, thread, g)


def stopped(late, times=1, pause=None, of=200 * MS, who=WORK_STACK, lacked=0):
    """This many pauses of this length, each delayed by goroutine 2. `lacked`: for so long a goroutine is ready while a P is idle."""
    trace = Trace(3 if lacked else 2, idle=(2,))
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, who)
    trace.start(20, 1, 2)
    if lacked:
        lacks(trace, of - 30 * MS, lacked)
    for i in range(times):
        now = MS + i * of // times
        end = now + (pause or late + 100)
        trace.stop(now, 0, end)
        trace.at(now + late, 1, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
        trace.start(end + 100, 1, 2)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


def paused(*lengths, apart=33 * MS):
    trace = Trace(1)
    trace.here(1, 2, 0)
    for i, length in enumerate(lengths):
        trace.stop((i + 1) * apart, 0, (i + 1) * apart + length)
    return trace.findings((len(lengths) + 2) * apart)


def collected(length, ready=False, lacked=0):
    """A collection marks for this long on P 0, while another goroutine may be ready. P 1, if there is one, is idle; `lacked`: for so
    long a goroutine is ready meanwhile."""
    trace = Trace(2, idle=(1,)) if lacked else Trace(1)
    trace.here(1, 2, 0)
    trace.here(3, 4)
    if ready:
        trace.create(20, 0, 5)
        trace.start(MS + length + 12, 0, 5)
        trace.at(MS + length + 14, 0, "GoDestroy")
    trace.at(10, 0, "GCBegin gc_seq=1 stack=0")
    trace.wake(MS - 10, 0, 3)
    trace.block(MS, 0, "chan receive", WORK_STACK)
    trace.start(MS + 10, 0, 3)
    trace.at(MS + 20, 0, f"GoLabel label_string={trace.string('GC (dedicated)')}")
    trace.block(MS + length, 0, "system goroutine wait", WORK_STACK)
    trace.wake(MS + length + 10, 0, 1)
    trace.start(MS + length + 20, 0, 1)
    trace.at(MS + length + 30, 0, "GCEnd gc_seq=2")
    if lacked:
        lacks(trace, MS + length + 40, lacked, 0, 1)
    return trace.findings(100 * MS)


def created_at(times, ends, waits="chan receive", name="main.worker", within=(), end=100 * MS):
    """One goroutine after another; the first `ends` of them end, the others stay blocked, within calls of these functions."""
    trace = Trace(1)
    trace.here(1, 2, 0)
    for i, now in enumerate(times):
        trace.create(now, 0, 10 + i, ("main.work", name))
        trace.block(now + 10, 0, "chan receive", WORK_STACK)
        trace.start(now + 20, 0, 10 + i)
        if i < ends:
            trace.wake(now + 30, 0, 1)
            trace.at(now + 40, 0, "GoDestroy")
        else:
            trace.wake(now + 30, 0, 1)
            trace.block(now + 40, 0, waits, (*within, "main.send", name))
        trace.start(now + 50, 0, 1)
    return trace.findings(end)


def created(span, ends=0, count=40, **others):
    return created_at([MS + i * span // count for i in range(count)], ends, **others)


def with_tasks(slowest, others=MS, count=9, name="request"):
    """A trace with consecutive tasks, of which the last is the slowest, and its end in ns."""
    trace = Trace(1)
    trace.here(1, 2, 0)
    name, now = trace.string(name) if name else 0, 100
    times = [*(others if isinstance(others, list) else [others] * count), slowest]
    for i, length in enumerate(times):
        trace.at(now, 0, f"UserTaskBegin task={i + 1} parent_task=0 name_string={name} stack=0")
        now += length
        trace.at(now, 0, f"UserTaskEnd task={i + 1} stack=0")
        now += 10
    return trace, now + 100


def passed_on(holds, chain=False, of=100 * MS):
    """Goroutine 1 in main.rebuild holds a lock while 2 and then 3 wait for it; 2 gets it and passes it on to 3 at once.
    In a chain, 3 waits for another lock, which 2 holds."""
    trace = Trace(3)
    for n in (1, 2, 3):
        trace.here(n, 2, n - 1)
    first, second = ("mutex a_mu", "mutex b_mu" if chain else "mutex a_mu")
    at = 1 * MS
    trace.log(at - 20, 1, "wait", first)
    trace.block(at - 10, 1, "sync", ("main.look",))
    trace.log(at + 10, 2, "wait", second)
    trace.block(at + 20, 2, "sync", ("main.look",))
    trace.wake(at + holds, 0, 2, ("main.rebuild",))
    trace.start(at + holds + 10, 1, 2)
    trace.wake(at + holds + 30, 1, 3, ("main.look",))
    trace.start(at + holds + 40, 2, 3)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


def all_wait(wanted, sleeper=False, lasts=100 * MS, naps=0, holds=False):
    """Main sleeps and then waits for the exit of a worker, which waits for `wanted` to the end, and
    may hold a lock for which another one waits."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.here(3, 2, 2)
    for i in range(naps):
        now = (1 + i) * 100 * US
        trace.block(now, 0, "sleep", WORK_STACK)
        trace.at(now + 90 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + 90 * US + 10, 0, 1)
    trace.log(MS, 0, "wait", "join worker")
    trace.block(MS + 10, 0, "sync", WORK_STACK)
    if holds:
        trace.log(MS + 20, 1, "holds", "mutex registry_mu")
        trace.log(MS + 30, 2, "wait", "mutex registry_mu")
        trace.block(2 * MS, 2, "sync", LOCK)
    trace.log(MS + 40, 1, "wait", wanted)
    trace.block(2 * MS, 1, "sync.(*Cond).Wait" if "condition" in wanted else "sync", WORK_STACK)
    if sleeper:
        trace.block(MS + 5, 2, "sleep", WORK_STACK)
    elif not holds:
        trace.at(MS + 5, 2, "GoDestroy")
    end = 2 * MS + lasts
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


def open_in_go(reason, stack, served=0, length=400 * MS, begins=10 * MS, creator=None):
    """Goroutine 2 of a Go program waits to the end; goroutine 3 waited there from `served` on for a millisecond. `creator`: goroutine 1
    created 2, and waits there."""
    trace = Trace(3)
    for g in (1, 2, 3):
        if g != 2 or not creator:
            trace.here(g, 2, g - 1)
    if creator:
        trace.create(10, 0, 2)
        trace.start(20, 1, 2)
        trace.block(30, 0, "sync", creator)
    if served:
        trace.block(served, 2, reason, stack)
        trace.wake(served + MS, 0, 3, stack)
        trace.start(served + 2 * MS, 2, 3)
    trace.block(begins, 1, reason, stack)
    return trace.findings(length, "--from=0ns", f"--to={length}ns")


def full(share, reason="chan send", log=None, count=10, ready=0):
    """Goroutine 2 waits this much of the time for room, which goroutine 1 makes, while `ready` others are ready."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for g in range(ready):
        trace.here(10 + g, 1)
    for i in range(count):
        now = (1 + i) * 10 * MS
        if log:
            trace.log(now - 10, 1, "wait", log)
        trace.block(now, 1, reason, ("main.fill",))
        trace.wake(now + share * MS // 10, 0, 2, ("main.store",))
        trace.start(now + share * MS // 10 + 10, 1, 2)
    end = (1 + count) * 10 * MS
    return trace.findings(end, "--from=10ms", f"--to={end}ns")


def handed(count, every=10 * US, rest=0):
    """Goroutine 2 receives a value from goroutine 1 this many times, and ends this long before the other one."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for i in range(1, count + 1):
        now = i * every
        trace.block(now, 1, "chan receive", WORK_STACK)
        trace.wake(now + every // 2, 0, 2)
        trace.start(now + every // 2 + 10, 1, 2)
    if rest:
        trace.at((count + 1) * every - 10, 1, "GoDestroy")
    end = (count + 1) * every + rest
    return trace.findings(end, f"--from={every}ns", f"--to={end}ns")


def workers(first, others, count=3, kind="barrier step", sleeps=0, names=None):
    """`count` workers run, perhaps with names; the last one to reach a barrier, after a sleep, wakes the others."""
    trace = Trace(count + 1)
    trace.here(99, 2, 0)
    if sleeps:
        trace.block(first, 1, "sleep", WORK_STACK)
        first += sleeps
        trace.at(first - 20, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(first - 10, 1, 1)
    trace.log(50, 0, "wait", "join worker")
    trace.block(60, 0, "sync", ("main.main",))
    for n in range(1, count + 1):
        trace.create(10 + n, 0, n, (names[n - 1],) if names else WORK_STACK)
        trace.start(20 + n, n, n)
        if n > 1:
            trace.log(others, n, "wait", kind)
            trace.block(others + 10, n, "sync", WORK_STACK)
            trace.wake(first + n, 1, n, WORK_STACK)
            trace.start(first + 10 + n, n, n)
            trace.at(first + 20 + n, n, "GoDestroy")
    trace.wake(first + 50, 1, 99, WORK_STACK)
    trace.at(first + 60, 1, "GoDestroy")
    trace.start(first + 70, 0, 99)
    return trace.findings(first + 100, "--from=0ns", f"--to={first + 100}ns")


def alone(phase, together, count=5, reason="chan receive", third=0, by=1, lock=False):
    """Goroutine 1, or `by`, works alone, then wakes goroutine 2 and works beside it. Each time,
    another goroutine runs for `third` meanwhile. `lock`: before, goroutine 2 waits for a lock."""
    trace = Trace(2)
    trace.here(by, 2, 0)
    trace.here(2, 2, 1)
    if lock:
        trace.block(5, 1, "sync", LOCK)
        trace.wake(50 * US, 0, 2)
        trace.start(50 * US + 10, 1, 2)
    trace.block(60 * US if lock else 10, 1, reason, WORK_STACK)
    for i in range(count):
        now = i * (phase + together)
        if third:
            trace.create(now + 20 + i, 0, 50 + i, ("main.other",))
            trace.start(now + 30 + i, 1, 50 + i)
            trace.at(now + 30 + i + third, 1, "GoDestroy")
        trace.wake(now + phase, 0, 2)
        trace.start(now + phase + 10, 1, 2)
        trace.block(now + phase + together - 10, 1, reason, WORK_STACK)
    end = count * (phase + together)
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


def permitted(share, kind="semaphore slots", count=10, other=False, vain=None, within=()):
    """Goroutine 2 waits this much of the time, until goroutine 1, or one of another kind, returns a permit, both within
    calls of these functions. After 1 ms, it is woken, runs for `vain` and waits again."""
    trace = Trace(2)
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.work", "main.other") if other else WORK_STACK)
    trace.create(11, 0, 2)
    trace.block(12, 0, "chan receive", ("main.main",))
    trace.start(13, 0, 1)
    trace.start(14, 1, 2)
    for i in range(count):
        now = (1 + i) * 10 * MS
        in_go = kind in ("chan send", "sync.(*Cond).Wait", "select")
        if not in_go:
            trace.log(now - 10, 1, "wait", kind)
        trace.block(now, 1, kind if in_go else "sync", (*within, *WORK_STACK))
        if vain:
            trace.at(now + MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + MS + 300 * US, 1, 2)
            trace.log(now + MS + 300 * US + vain - 10, 1, "wait", kind)
            trace.block(now + MS + 300 * US + vain, 1, "sync", WORK_STACK)
        trace.wake(now + share * MS // 10, 0, 2, (*within, "main.work"))
        trace.start(now + share * MS // 10 + 10, 1, 2)
    end = (1 + count) * 10 * MS
    return trace.findings(end, "--from=10ms", f"--to={end}ns")


def timed(late, count=400, length=MS, other=False, wanted="condition jobs_cv", at="main.next", works=60 * US):
    """Two threads, of the same kind or not, wait repeatedly for a condition variable, `count` times in all; this many
    of these waits time out. The others end when the other thread releases the mutex. `works`: for how long each runs in between."""
    trace = Trace(2)
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.work", "main.other") if other else WORK_STACK)
    trace.create(11, 0, 2)
    trace.log(12, 0, "wait", "join main.worker")
    trace.block(13, 0, "sync", ("main.main",))
    trace.start(14, 0, 1)
    trace.start(15, 1, 2)
    now = MS
    for i in range(count // 2):
        for g in (1, 2):
            trace.log(now + 10 * g, g - 1, "wait", wanted)
            trace.block(now + 10 * g + 1, g - 1, "sync.(*Cond).Wait" if "condition" in wanted else "sync", (at, "main.worker"))
        now += length
        for g in (1, 2):
            over = 2 * i + g <= late
            if over or g == 1:
                trace.at(now, 0, f"GoUnblock g={g} g_seq=%d stack=0", g)
            else:
                trace.wake(now + 2 * US, 0, g, ("main.next", "main.worker"))
            trace.start(now + g * 1500, g - 1, g)
            if over:
                trace.log(now + g * 1500 + 100, g - 1, "wait", "timed out")
        now += works
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


def owned(part=100, object="_rtld_global (in dlopen)", owns="_rtld_global (in dlopen)", kind="mutex"):
    """A thread sleeps while it has a library's lock, for so many percent of the time in which another one waits for it,
    which no event ends."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.look",))
    trace.start(20, 1, 2)
    trace.log(100, 0, "holds, as owner", f"mutex {owns}")
    trace.block(101, 0, "sleep", ("main.construct", "main.load"))
    trace.log(200, 1, "wait", f"{kind} {object}")
    trace.block(205, 1, "sync", ("main.open", "main.look"))
    trace.at(205 + part * MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
    trace.start(210 + part * MS, 0, 1)
    trace.block(220 + part * MS, 0, "chan receive", ("main.rest",))
    trace.at(215 + 100 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
    trace.start(220 + 100 * MS, 1, 2)
    trace.block(300 + 100 * MS, 1, "chan receive", ("main.rest",))
    return trace.findings(101 * MS)


def one_by_one(count, overlap=False, reason="sync", sleeps=False):
    """Workers that are waited for; `reason` may be a wait's log in a recording of a C program."""
    trace = Trace(2)
    in_c = " " in reason and not reason.startswith("chan")
    trace.here(99, 2, 0)
    at = MS
    for i in range(count):
        trace.create(at, 0, i + 1)
        trace.start(at + 10, 1, i + 1)
        if overlap:
            trace.create(at + 15, 0, 50 + i)
        if in_c:
            trace.log(at + 18, 0, "wait", reason)
        trace.block(at + 20, 0, "sync" if in_c else reason, ("main.main",) if in_c else GROUP if reason == "sync" else WORK_STACK)
        if sleeps:
            trace.block(at + 30, 1, "sleep", WORK_STACK)
            trace.at(at + 9 * MS, 1, f"GoUnblock g={i + 1} g_seq=%d stack=0", i + 1)
            trace.start(at + 9 * MS + 10, 1, i + 1)
        trace.wake(at + 10 * MS, 1, 99, WORK_STACK)
        trace.at(at + 10 * MS + 10, 1, "GoDestroy")
        trace.start(at + 10 * MS + 20, 0, 99)
        at += 10 * MS + 100
    return trace.findings(at + MS, "--from=0ns", f"--to={at + MS}ns")


def pooled(pauses=8 * MS, asks=1, count=20, sleeps=True, gets=0, wait="chan receive"):
    """Goroutine 1 waits for each of `count` results of main.worker, which sleeps before each.
    main.worker waits `asks` times for work (`wait`), and `gets` times for an answer of main.serve."""
    trace = Trace(3 if gets else 2)
    trace.here(99, 2, 0)
    if gets:
        trace.create(8, 0, 3, ("main.serve",))
        trace.start(9, 2, 3)
    trace.create(10, 0, 1, ("main.collect",))
    trace.create(11, 0, 2)
    trace.block(12, 0, "chan receive", ("main.main",))
    trace.start(20, 0, 1)
    trace.start(20, 1, 2)
    at = MS
    for i in range(count):
        if i < asks:
            trace.block(at, 1, wait, WORK_STACK)
            trace.wake(at + 300 * US, 0, 2)
            trace.start(at + 300 * US + 10, 1, 2)
        elif i < asks + gets:
            trace.block(at, 1, "chan receive", WORK_STACK)
            trace.wake(at + 300 * US, 2, 2)
            trace.start(at + 300 * US + 10, 1, 2)
        trace.block(at + 400 * US, 0, "chan receive", ("main.collect",))
        if sleeps:
            trace.block(at + 500 * US, 1, "sleep", WORK_STACK)
            trace.at(at + 500 * US + pauses, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(at + 500 * US + pauses + 10, 1, 2)
        trace.wake(at + 700 * US + pauses, 1, 1, ("main.answer", "main.worker"))
        trace.start(at + 700 * US + pauses + 10, 0, 1)
        at += pauses + MS
    return trace.findings(at, "--from=0ns", f"--to={at}ns")


def produced(sleeps=8 * MS, consumes=MS, count=20, awaited="main.fetch", also=False, ready=0, of=("main.fetch", "main.parse"), until=0, runs=0, late=None, naps=False):
    """Thread 1 sleeps (at first `until` times until a point in time), is ready for some time, runs and makes work, `count` times, for thread 2.
    Main waits for one of them to exit, or for a semaphore; another thread may run the same function. `late`: it waits for a
    condition variable instead, and so many of these waits time out. `naps`: the consumer sleeps, too, for a moment."""
    trace = Trace(3, idle=(2,))
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, of[:1])
    trace.create(11, 0, 2, of[1:])
    if also:
        trace.create(12, 0, 3, ("main.fetch",))
    trace.log(19, 0, "wait", f"join {awaited}" if awaited else "semaphore end")
    trace.block(20, 0, "sync", ("main.main",))
    trace.start(30, 0, 1)
    trace.start(30, 1, 2)
    at = MS
    for i in range(count):
        trace.log(at - 10, 1, "wait", "semaphore items")
        trace.block(at, 1, "sync", ("main.parse",))
        if late is not None:
            trace.log(at + 5, 0, "wait", "condition todo_cv")
        trace.block(at + 10, 0, "sleep" if late is None else "sync.(*Cond).Wait", ("main.fetch",))
        trace.at(at + sleeps, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        at += ready
        trace.start(at + sleeps + 10, 0, 1)
        if i < until:
            trace.log(at + sleeps + 15, 0, "wait", "until a time")
        if late is not None and i < late:
            trace.log(at + sleeps + 15, 0, "wait", "timed out")
        at += runs
        trace.wake(at + sleeps + 20, 0, 2, ("main.fetch",))
        trace.start(at + sleeps + 30, 1, 2)
        for nap in range(naps * 2):
            trace.block(at + sleeps + 100 * US * (nap + 1), 1, "sleep", ("main.parse",))
            trace.at(at + sleeps + 100 * US * (nap + 1) + 50 * US, 0, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(at + sleeps + 100 * US * (nap + 1) + 50 * US + 10, 1, 2)
        at += sleeps + consumes
    first = 1 if awaited == "main.parse" else 0
    trace.wake(at + 20, first, 99, (awaited or "main.fetch",))
    trace.at(at + 30, first, "GoDestroy")
    trace.start(at + 40, first, 99)
    trace.at(at + 50, 1 - first, "GoDestroy")
    return trace.findings(at + 100, "--from=0ns", f"--to={at + 100}ns")


def awaited(wanted="poll pipe:[7]", works="sleep", rounds=4, limit=0, pause=20 * US, waiter=1, others=0, alone=False):
    """Goroutine `waiter`, main or another one, waits until goroutine 2 has worked for 50 ms, this many times; at each
    `limit` in vain, and again after `pause`. `others` wait so once, until the end."""
    trace = Trace(3 + others)
    trace.string("trail.made by=record")
    trace.here(waiter, 2, 0)
    trace.create(10, 0, 2, ("main.sensor",))
    trace.start(20, 1, 2)
    for g in range(3, 3 + others):
        trace.create(20 + g, 0, g, ("main.idle",))
        trace.start(30 + g, g - 1, g)
        trace.log(40 + g, g - 1, "wait", wanted)
        trace.block(50 + g, g - 1, "sync", ("main.rest", "main.idle"))
    now = MS
    for _ in range(0 if alone else rounds):
        end = now + 50 * MS
        if works == "sleep":
            trace.block(now - 50 * US, 1, "sleep", ("main.measure", "main.sensor"))
            trace.at(end - 50 * US, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(end - 40 * US, 1, 2)
        while limit and now + limit < end:
            trace.log(now, 0, "wait", wanted)
            trace.block(now + 10, 0, "network", ("main.await",))
            trace.at(now + limit, 0, f"GoUnblock g={waiter} g_seq=%d stack=0", waiter)
            trace.start(now + limit + 10, 0, waiter)
            trace.log(now + limit + 20, 0, "wait", "timed out")
            now += limit + pause
        trace.log(now, 0, "wait", wanted)
        trace.block(now + 10, 0, "network", ("main.await",))
        trace.wake(end, 1, waiter, ("main.publish", "main.sensor"))
        trace.start(end + 10, 0, waiter)
        now = end + 100 * US
    now = now if not alone else MS + rounds * 50 * MS
    for g in range(3, 3 + others):
        trace.wake(now, 0, g, ("main.stop",))
        trace.start(now + 10, g - 1, g)
        trace.at(now + 20, g - 1, "GoDestroy")
        now += 100
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


def committed(child=False, lock="mutex a_mu", at_place="main.commit", part=3500 * US):
    """Each holds the lock for 4 ms, sleeps or waits for a child process for 3.5 ms of these, and passes it on to the
    longest waiter."""
    trace = Trace(4)
    for n in (1, 2, 3, 4):
        trace.here(n, 2, n - 1)
    for n in (2, 3, 4):
        trace.log(MS + n, n - 1, "wait", lock)
        trace.block(MS + 10 + n, n - 1, "sync", ("main.commit",))
    at, holder = 2 * MS, 1
    for i in range(40):
        following = holder % 4 + 1
        if child:
            trace.log(at - 5, holder - 1, "wait", "child process")
        trace.block(at, holder - 1, "sync" if child else "sleep", (at_place,))
        trace.at(at + part, holder - 1, f"GoUnblock g={holder} g_seq=%d stack=0", holder)
        trace.start(at + part + 10, holder - 1, holder)
        trace.wake(at + 4 * MS, holder - 1, following, ("main.commit",))
        trace.start(at + 4 * MS + 10, following - 1, following)
        trace.log(at + 4 * MS + 20, holder - 1, "wait", lock)
        trace.block(at + 4 * MS + 30, holder - 1, "sync", ("main.commit",))
        at, holder = at + 4 * MS + 50, following
    return trace.findings(at + MS, "--from=0ns", f"--to={at + MS}ns")


def polled(count, sleep=MS, ran=10 * US, wakes=False, other=False, reason="sleep", by=None, until=0, creates=0, more=0, works=0, every=1000000):
    """Goroutine 1, and `more` others at the same time, sleeps repeatedly (at first `until` times until a point in time), and each time wakes another goroutine, or waits for something else in between; at first it creates `creates` others."""
    trace = Trace(2 + more, idle=() if by or more else (1,))
    trace.here(1, 2, 0)
    if by:
        trace.here(3, 2, by)
    for g in range(10, 10 + more):
        trace.create(g, 0, g)
        trace.start(g + 10, g - 8, g)
    if wakes:
        trace.create(10, 0, 2)
    now = MS
    if wakes:
        trace.at(now // 2, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
        trace.start(now // 2 + 10, 0, 2)
        trace.block(now // 2 + 20, 0, "chan receive", WORK_STACK)
        trace.start(now // 2 + 30, 0, 1)
    for i in range(count):
        trace.block(now, 0, reason, ("time.Sleep" if reason == "sleep" else "runtime.selectgo", "main.look"))
        for g in range(10, 10 + more):
            trace.block(now, g - 8, reason, ("time.Sleep", "main.look"))
        now += sleep
        for g in range(10, 10 + more):
            trace.wake(now, g - 8, g, ())
            trace.start(now + 10, g - 8, g)
        trace.wake(now, by or 0, 1, ("main.work",) if by else ())
        trace.start(now + 10, 0, 1)
        if i < until:
            trace.log(now + 15, 0, "wait", "until a time")
        if i < creates:
            trace.create(now + 16, 0, 100 + i)
        if wakes:
            trace.wake(now + 100, 0, 2)
        now += 10 + (works if works and i % every == 0 else ran)
        if wakes:
            trace.block(now, 0, "sleep", ("time.Sleep", "main.look"))
            trace.start(now + 5, 0, 2)
            trace.block(now + 10, 0, "chan receive", WORK_STACK)
            now += sleep
            trace.wake(now, 0, 1, ())
            trace.start(now + 10, 0, 1)
            trace.wake(now + 15, 0, 2)
            now += 10 + ran
            trace.block(now, 0, "sleep", ("time.Sleep", "main.look"))
            trace.start(now + 5, 0, 2)
            trace.block(now + 10, 0, "chan receive", WORK_STACK)
            now += sleep
            trace.wake(now, 0, 1, ())
            trace.start(now + 10, 0, 1)
            now += 10 + ran
        if other:
            trace.block(now, 0, "chan receive", WORK_STACK)
            trace.wake(now + 10, 0, 1, ())
            trace.start(now + 20, 0, 1)
            now += 30
    return trace.findings(now + MS)


def outside(lengths, log, reason="network", of=None, peer_sleeps=None):
    """Each time a thread waits this long for something external, or for another thread, which
    sleeps for `peer_sleeps` during the last wait."""
    trace = Trace(1 if peer_sleeps is None else 2)
    trace.here(1, 2, 0)
    if peer_sleeps is not None:
        trace.here(2, 2, 1)
    now = MS
    for i, length in enumerate(lengths, 1):
        trace.log(now - 10, 0, "wait", log)
        trace.block(now, 0, reason, ("main.ask",))
        if peer_sleeps is not None and i == len(lengths):
            woken = now + length - 100
            trace.log(woken - peer_sleeps - 1, 1, "wait", "sleep")
            trace.block(woken - peer_sleeps, 1, "sleep", ("main.answer",))
            trace.wake(woken, 1, 2, ())
            trace.start(woken + 10, 1, 2)
        trace.wake(now + length, 0 if peer_sleeps is None else 1, 1, ())
        trace.start(now + length + 10, 0, 1)
        now += length + MS
    end = of or now
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


def served(count, every=4 * MS, waits=False, late=(), sleeps=True):
    """Goroutine 2 takes a value from goroutine 1 now and then, at once except for the late ones; it
    runs all the time, or waits once. Goroutine 1 sleeps in between, or runs."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for i in range(1, count + 1):
        if sleeps:
            trace.block((i - 1) * every + every // 3, 0, "sleep", WORK_STACK)
            trace.at(i * every - 20, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(i * every - 10, 0, 1)
        trace.block(i * every, 0, "chan send", WORK_STACK)
        trace.wake(i * every + (MS if i in late else 100), 1, 1)
        trace.start(i * every + (MS if i in late else 100) + 100, 0, 1)
    if waits:
        trace.block(count * every + US, 1, "select", WORK_STACK)
        trace.wake(count * every + 2 * US, 0, 2)
        trace.start(count * every + 3 * US, 1, 2)
    end = (count + 1) * every
    return trace.findings(end, "--from=0ns", f"--to={end}ns")
