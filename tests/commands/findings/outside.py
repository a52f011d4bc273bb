#!/usr/bin/env python3
"""Waits for something outside the program: files, children, databases, connections. TAP.

usage: outside.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import GROUP, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import committed, outside  # noqa: E402
from tap import test  # noqa: E402


def child_ends(ns=60 * MS, of=100 * MS, recorded=True, second=0):
    """Main waits this long for goroutine 2 of a child process, which is recorded or not; meanwhile
    another goroutine runs for `second`."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("app (12): main",))
    trace.start(20, 1, 2)
    if second:
        trace.create(30, 0, 3, ("app (13): main",))
    trace.log(MS - 10, 0, "wait", "child process")
    trace.block(MS, 0, "sync", ("main.build", "main.main"))
    if recorded:
        trace.wake(MS + ns, 1, 1, ("main.exit",))
    else:
        trace.at(MS + ns, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
    if second:
        trace.start(MS + 10, 0, 3)
        trace.at(MS + 10 + second, 0, "GoDestroy")
    else:
        trace.at(MS + ns + 10, 1, "GoDestroy")
    trace.start(MS + ns + 20, 0, 1)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def a_child_that_is_recorded_is_named_below_what_it_waits_for():
    found = child_ends()["outside"]
    assert found["text"].startswith("main.build (main.go:10) waited for child processes for 60 % of the time. 1 wait of 60.0 ms, which app (12): main ended by its exit. "), found
    assert abs(found["weight"] - 0.15) < 1e-3 and found["gain_ns"] == 60 * MS, found
    found = child_ends(recorded=False)["outside"]
    assert found["text"].startswith("main.build (main.go:10) waited for child processes for 60 % of the time. 1 wait of 60.0 ms. At most "), found
    assert abs(found["weight"] - 0.6) < 1e-3, found
    # Main and its children use 85 % of two CPUs, or wait for one.
    assert "outside" not in child_ends(second=31 * MS) and "outside" in child_ends(second=10 * MS)


def shell(caller="app (11): main", reads=20 * MS, writes=True, of="pipe:[7]", waits_in=("sh.wait", "sh.main")):
    """A shell waits for its child for 60 ms; `caller` waits to read what the shell writes then, or for its end, the last `reads` ns of it."""
    trace = Trace(4)
    trace.here(9, 2, 0)
    for g, start in ((1, caller), (2, "sh (12): main"), (3, "sleep (13): main")):
        trace.create(10 + g, 0, g, (start,))
        trace.start(20 + g, g, g)
    trace.log(MS - 10, 2, "wait", "child process 13 (sleep)")
    trace.block(MS, 2, "sync", waits_in)
    trace.log(61 * MS - reads - 10, 1, "wait", f"read {of}")
    trace.block(61 * MS - reads, 1, "network", ("main.ask", "main.main"))
    trace.wake(61 * MS, 3, 2, ("main.exit",))
    trace.at(61 * MS + 10, 3, "GoDestroy")
    trace.start(61 * MS + 20, 2, 2)
    if writes:
        trace.wake(61 * MS + 100, 2, 1, ("sh.echo",))
    else:
        trace.at(61 * MS + 100, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
    trace.start(61 * MS + 110, 1, 1)
    return trace.findings(100 * MS, "--from=0ns", f"--to={100 * MS}ns")["outside"]["text"]


@test
def what_a_child_process_waits_for_is_said_and_its_own_children_come_first():
    trace = Trace(3)
    trace.here(9, 2, 0)
    for g, start in ((2, "sh (12): main"), (3, "xargs (13): main"), (4, "sleep (14): main")):
        trace.create(10 + g, 0, g, (start,))
        trace.start(20 + g, g - 2, g) if g > 2 else trace.at(15, 0, "GoStop reason_string=%d stack=0" % trace.string("preempted"))
    trace.start(30, 0, 2)
    trace.log(MS - 10, 0, "wait", "child process 13")
    trace.block(MS, 0, "sync", ("sh.wait", "sh.main"))
    for i in range(8):
        now = (2 + i * 10) * MS
        trace.log(now - 10, 1, "wait", "child process 14")
        trace.block(now, 1, "sync", ("xargs.wait", "xargs.main"))
        trace.block(now + 10, 2, "sleep", ("sleep.nap", "sleep.main"))
        trace.at(now + 9 * MS - 20, 2, "GoUnblock g=4 g_seq=%d stack=0", 4)
        trace.start(now + 9 * MS - 10, 2, 4)
        trace.wake(now + 9 * MS, 2, 3, ("sleep.exit",))
        trace.start(now + 9 * MS + 10, 1, 3)
    trace.wake(90 * MS, 1, 2, ("xargs.exit",))
    trace.start(90 * MS + 10, 0, 2)
    found = [f["text"] for f in trace.summary(91 * MS, "--from=0ns", f"--to={91 * MS}ns")["findings"] if f["kind"] == "outside"]
    equal(len(found), 2)
    assert found[0].startswith("xargs.wait (main.go:10) waited for child processes for 79 % of the time. "), found
    assert "which sleep (14): main ended by its exit. The latter was itself waiting for 9.00 ms of the longest (sleep at sleep.nap (main.go:10))." in found[0], found
    assert found[1].startswith("sh.wait (main.go:10) waited for child processes for 98 % of the time. ") and "The latter" not in found[1], found


@test
def the_caller_of_a_shell_that_waits_for_its_child_is_named():
    caller = "Meanwhile, main.ask (main.go:10) (read pipe:[7]) waited for sh (12): main."
    assert caller in shell(reads=60 * MS), shell(reads=60 * MS)
    assert caller not in shell(reads=29 * MS), shell(reads=29 * MS)  # for less than half of that
    assert "Meanwhile" not in shell(caller="sh (12): reader", reads=60 * MS)  # of the same process
    # Where the shell has no symbols, its caller comes first.
    text = shell(reads=60 * MS, waits_in=("dash+0xbcbf",))
    assert text.startswith("main.ask (main.go:10) waited for sh, which waited for child processes for 60 % of the time. 1 wait of 60.0 ms, "), text
    assert "Meanwhile" not in text and "dash" not in text, text
    assert shell(reads=29 * MS, waits_in=("dash+0xbcbf",)).startswith("dash+0xbcbf"), text
    # What ended its wait is not known, as where all that have the pipe have ended.
    caller = "Meanwhile, main.ask (main.go:10) waited (read pipe:[7]). "
    assert caller in shell(reads=60 * MS, writes=False), shell(reads=60 * MS, writes=False)
    assert "Meanwhile" not in shell(reads=29 * MS, writes=False)
    assert "Meanwhile" not in shell(reads=60 * MS, writes=False, of="socket:[7]")


@test
def a_lock_held_over_waits_for_child_processes_comes_before_these_waits():
    found = committed(child=True)
    assert list(found)[0] == "lock-serialises" and found["outside"]["weight"] < 0.25, found
    # Also if the holder is busy for most of that time, in the same function; in another one, what it waits for counts.
    assert committed(child=True, part=1500 * US)["outside"]["weight"] < 0.1
    assert committed(child=True, part=1500 * US, at_place="main.run")["outside"]["weight"] > 0.3
    # Nothing is held over them.
    assert committed(child=True, lock="condition a_cv")["outside"]["weight"] > 0.8


def locked_out(share, inside=("sqlite3_step",)):
    """A thread sleeps this much of 100 ms, in ten parts, inside SQLite or not."""
    trace = Trace(2)
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.shop",))
    trace.log(18, 0, "wait", "join main.shop")
    trace.block(19, 0, "sync", ("main.main",))
    trace.start(30, 1, 1)
    for i in range(10):
        now = (1 + i) * 10 * MS
        trace.block(now, 1, "sleep", ("libsqlite3.so.0+0xaa1b4", *inside, "main.save", "main.shop"))
        trace.at(now + share * MS // 10, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + share * MS // 10 + 10, 1, 1)
    return trace.findings(110 * MS, "--from=10ms", "--to=110ms")


@test
def sleeps_of_sqlite_are_waits_for_a_locked_database():
    found = locked_out(60)["database"]
    assert re.match(r"main\.save \(main\.go:\d+\) waited for a locked SQLite database for 60 % of the time\. SQLite slept 10 times in its busy handler, 60\.0 ms in all", found["text"]), found
    equal((found["function"], found["gain_ns"]), ("main.save", 60 * MS))
    equal(locked_out(49), {})  # 50 ms
    equal(locked_out(60, inside=()), {})


@test
def much_of_the_time_outside_the_program_is_said():
    found = outside([60 * MS], "connect 10.0.0.1:5432", of=200 * MS)
    equal(list(found), ["outside"])
    assert "main.ask (main.go:10) waited for something outside the program (connect 10.0.0.1:5432) for 30 % of the time. 1 wait of 60.0 ms" in found["outside"]["text"], found
    for wait, least in (("connect 10.0.0.1:5432", 30), ("file data", 30), ("name look-up db", 15), ("child process", 15), ("page fault", 10)):
        equal(list(outside([least * 5 * MS], wait, of=500 * MS)), ["outside"])
        equal(outside([(least * 5 - 1) * MS], wait, of=500 * MS), {})
    equal(outside([49 * MS], "name look-up db", of=100 * MS), {})
    equal(outside([60 * MS], "read pipe:[7]", of=200 * MS), {})


def timed_out(lasts, every, count=8, by="context.WithDeadlineCause.func2", joined=True, region=False, receive=False, inner=(), leaves=None, at="main.call"):
    """Goroutine 2 selects (in `inner`) again and again until a goroutine with this start function ends that, in `at`. Main waits for its exit. Before
    each, another one that it created in `leaves` begins to wait to send, to the end."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.start", "main.order"))
    trace.start(20, 1, 2)
    name = trace.string("order")
    trace.block(30, 0, *(("sync", GROUP) if joined else ("chan receive", WORK_STACK)))
    for i in range(count):
        now, g = MS + i * every, 10 + i
        if region:
            trace.at(now - 100, 1, f"UserRegionBegin task=0 name_string={name} stack=0")
        if leaves:
            new = trace.stack(("main.ask.func1",))
            trace.at(now - 5000, 1, f"GoCreate new_g={500 + i} new_stack={new} stack={trace.stack((leaves, 'main.order'))}")
            trace.start(now - 4000, 2, 500 + i)
            trace.block(now - 3000, 2, "chan send", ("runtime.chansend1", "main.ask.func1"))
        trace.block(now, 1, "chan receive" if receive else "select", ("runtime.selectgo",) + inner + (at, "main.order"))
        s = trace.stack((by,))
        trace.at(now + lasts - 40, 2, f"GoCreate new_g={g} new_stack={s} stack=0")
        trace.start(now + lasts - 20, 2, g)
        trace.wake(now + lasts, 2, 2, ("context.(*cancelCtx).cancel", by))
        trace.start(now + lasts + 10, 1, 2)
        trace.at(now + lasts + 20, 2, "GoDestroy")
        if region:
            trace.at(now + lasts + 30, 1, f"UserRegionEnd task=0 name_string={name} stack=0")
    end = MS + count * every
    if joined:
        trace.wake(end, 1, 1, ("main.order",))
        trace.start(end + 10, 0, 1)
    return trace.findings(end + MS, "--from=0ns", f"--to={end + MS}ns")


@test
def what_a_time_out_leaves_behind_comes_before_it():
    for leaves, share in (("main.call", 4), ("main.caller", 1)):
        found = timed_out(20 * MS, 25 * MS, count=40, leaves=leaves)
        equal(sorted(found), ["leak", "time-out"])
        assert abs(found["time-out"]["weight"] - 0.8 / share) < 0.01, found["time-out"]
    # A function whose name begins so is another one, also where no line is known.
    assert timed_out(20 * MS, 25 * MS, count=40, leaves="main.sqlite2", at="main.sqlite")["time-out"]["weight"] > 0.7


@test
def what_waits_for_the_time_out_of_a_context_is_named():
    found = timed_out(20 * MS, 25 * MS)
    equal(list(found), ["time-out"])
    assert re.match(r"main\.call \(main\.go:11\) waited until the time-out of a context for 79 % of the time\. 8 waits \(select\) ended so, 160 ms in all, "
                    r"the longest 20\.0 ms: nothing else ", found["time-out"]["text"]), found
    equal((found["time-out"]["function"], found["time-out"]["goroutine"]), ("main.call", 2))
    equal(list(timed_out(20 * MS, 25 * MS, receive=True)), ["time-out"])
    # The answer of an HTTP server does not come.
    found = timed_out(20 * MS, 25 * MS, inner=("net/http.(*persistConn).roundTrip", "net/http.(*Client).Do"))
    equal(list(found), ["time-out"])
    assert found["time-out"]["text"].startswith("main.call (main.go:13) waited until the time-out of a context for 79 % of the time. 8 waits (select)"), found
    # Other goroutines end waits as well; nothing may need what waits, unless it is within a region.
    assert "time-out" not in timed_out(20 * MS, 25 * MS, by="main.answer")
    assert "time-out" not in timed_out(20 * MS, 25 * MS, joined=False)
    assert "time-out" in timed_out(20 * MS, 25 * MS, joined=False, region=True)
    # From three waits, 50 ms and 30 % of the time on; one that most of it is may be the program's whole time.
    assert "time-out" in timed_out(20 * MS, 25 * MS, count=3) and "time-out" not in timed_out(26 * MS, 30 * MS, count=2)
    assert "time-out" in timed_out(7 * MS, 10 * MS) and "time-out" not in timed_out(6 * MS, 10 * MS)
    assert "time-out" not in timed_out(8 * MS, 30 * MS)


def asked_until(asks=True, every=4, longer=0, by=2, count=16, lasts=20 * MS):
    """Main asks goroutine 2, and selects until that answers or, `every` so many times, a timer ends. Without `asks` it wakes
    goroutine 2 only before it is answered; `longer`: one time-out takes that much more; `by`: what answers."""
    trace = Trace(3)
    trace.at(1, 0, f"GoStatusStack g=1 m=100 gstatus=2 stack={trace.stack(('main.main',))}")
    for g, name in ((2, "main.cache"), (3, "main.other")):
        trace.create(g * 10, 0, g, ("main.main", name))
        trace.start(g * 10 + 5, g - 1, g)
    trace.block(100, 1, "chan receive", ("runtime.chanrecv2", "main.cache"))
    now, wait = MS, ("runtime.selectgo", "main.ask")
    for i in range(count):
        late = i % every == every - 1
        trace.block(now, 0, "sleep", ("time.Sleep", "main.main"))
        now += MS
        trace.wake(now, 0, 1, ())
        trace.start(now + 10, 0, 1)
        if asks or not late:
            trace.wake(now + 20, 0, 2, ("runtime.chansend1", "main.ask"))
            trace.start(now + 30, 1, 2)
            trace.block(now + 40 * US, 1, "chan receive", ("runtime.chanrecv2", "main.cache"))
        trace.block(now + 10 * US, 0, "select", wait)
        if late:
            now += lasts + (longer if i == count - 1 else 0)
            trace.at(now, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        else:
            now += 30 * US if by == 2 else 300 * US
            trace.wake(now, by - 1, 1, ("runtime.chansend1", "main.answer"))
        trace.start(now + 10, 0, 1)
        now += 100 * US
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def what_asks_and_waits_for_the_answer_until_a_timer_ends_is_a_time_out():
    found = asked_until()["time-out"]
    assert found["text"].startswith("main.ask (main.go:11) waited until the time-out of a timer for 80 % of the time. 4 waits (select) ended so, "), found
    # It has not asked; fewer are answered; another one ends them; or they end at different times.
    for args in ({"asks": False}, {"every": 1}, {"by": 3}, {"longer": 6 * MS}, {"lasts": 2 * MS}):
        assert "time-out" not in asked_until(**args), args
    assert "time-out" in asked_until(longer=4 * MS)


def blocked_calls(callers, ready=4):
    """So many goroutines are in system calls of 9 ms, while others are ready."""
    trace, stack = Trace(callers), ("syscall.Syscall", "syscall.fsync", "main.flush")
    for g in range(1, callers + 1):
        trace.here(g, 2, g - 1)
        for i in range(10):
            trace.at(MS + i * 10 * MS, g - 1, f"GoSyscallBegin p_seq=%d stack={trace.stack(stack)}", f"P {g}")
            trace.at(10 * MS + i * 10 * MS, g - 1, "GoSyscallEnd")
    trace.at(100 * MS, 0, f"GoStop reason_string={trace.string('preempted')} stack=0")
    for g in range(50, 50 + ready):
        trace.here(g, 1)
        trace.start(100 * MS + 10 * g, 0, g)
        trace.at(100 * MS + 10 * g + 5, 0, "GoDestroy")
    return trace.findings(101 * MS, "--from=0ns", f"--to={101 * MS}ns")


@test
def blocking_calls_that_use_up_threads_explain_why_others_are_ready():
    found = blocked_calls(9)
    equal(list(found), ["blocking-calls"])
    assert found["blocking-calls"]["text"].startswith("Blocking calls use up threads: 9.0 goroutines on average waited in one at main.flush (main.go:12)"), found
    equal(list(blocked_calls(7)), ["ready"])


def called(inside, of, group=True, function="syscall.Flock", sleeps=False):
    """Goroutine 2 is in a system call for this long; the main goroutine waits for it with a WaitGroup."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.append",))
    trace.start(20, 1, 2)
    trace.block(30, 0, "sync" if group else "sleep", ("sync.(*WaitGroup).Wait", "main.main") if group else ("time.Sleep", "main.main"))
    stack = trace.stack((function, "main.lock", "main.append"))
    trace.at(MS, 1, f"GoSyscallBegin p_seq=%d stack={stack}", "P 2")
    trace.at(MS + inside, 1, "GoSyscallEnd")
    if group:
        trace.wake(of - MS, 1, 1, ("sync.(*WaitGroup).Done", "main.append"))
        trace.start(of - MS + 10, 0, 1)
    trace.at(of - MS + 20, 1, "GoDestroy")
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def a_system_call_that_the_end_of_a_go_program_waits_for_is_named():
    text = called(60 * MS, 120 * MS)["blocking-calls"]["text"]
    assert text.startswith("main.lock (main.go:11) waited for file locks for 50 % of the time. 1 call of 60.0 ms") and "At most 60.0 ms of 120 ms would be saved." in text, text
    assert called(60 * MS, 120 * MS, function="syscall.Mount")["blocking-calls"]["text"].startswith("main.lock (main.go:11) waited in system calls for 50 % of the time.")
    assert "blocking-calls" not in called(60 * MS, 122 * MS)
    assert "blocking-calls" not in called(60 * MS, 120 * MS, group=False)


if __name__ == "__main__":
    sys.exit(main())
