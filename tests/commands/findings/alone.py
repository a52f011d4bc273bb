#!/usr/bin/env python3
"""Work that is done by one at a time. TAP.

usage: alone.py TRAIL SOURCE_ROOT [long]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import MS, US, Trace, main  # noqa: E402
from programs import alone, one_by_one  # noqa: E402
from tap import test  # noqa: E402


@test
def phases_in_which_one_works_alone_are_serial():
    found = alone(30 * MS, 20 * MS, reason="select")
    equal(list(found), ["serial-phase"])
    assert " 5 phases of 5 ms or more, 150 ms in all, the longest 30.0 ms." in found["serial-phase"]["text"], found
    assert abs(found["serial-phase"]["gain_ns"] - 75 * MS) < US, found
    assert "serial-phase" not in alone(5 * MS - 100, 5 * MS)
    assert "serial-phase" not in alone(20 * MS, 60 * MS)
    assert "serial-phase" not in alone(90 * MS, 5 * MS)  # a program that is hardly parallel


@test
def one_of_several_that_sleep_most_of_the_time_works_alone_by_chance():
    def phases(sleeps):
        """Four goroutines run for 10 ms; then in turn one of them runs for 20 ms, while the others wait, and 10 ms later they run again."""
        reason, stack = ("sleep", ("time.Sleep", "main.retry", "main.edit")) if sleeps else ("select", ("main.next", "main.edit"))
        trace = Trace(4)
        for g in range(1, 5):
            trace.here(g, 2, g - 1)
        for i in range(8):
            now, last = i * 40 * MS, 1 + i % 4
            for g in range(1, 5):
                trace.block(now + (30 if g == last else 10) * MS, g - 1, reason, stack)
                trace.at(now + 40 * MS, g - 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
                trace.start(now + 40 * MS + 10, g - 1, g)
        end = 320 * MS + 100
        return list(trace.findings(end, "--from=0ns", f"--to={end}ns"))

    equal(phases(False), ["serial-phase"])
    equal(phases(True), [])


@test
def workers_that_are_created_and_waited_for_one_after_another_run_one_at_a_time():
    found = one_by_one(4)
    assert "one-at-a-time" in found, found
    assert "4 goroutines of main.worker ran one at a time" in found["one-at-a-time"]["text"], found
    assert "one-at-a-time" not in one_by_one(3)
    assert "one-at-a-time" not in one_by_one(4, overlap=True)
    assert "one-at-a-time" in one_by_one(4, reason="chan receive")
    # These never work alone, but other goroutines wait for their results.
    assert "one-at-a-time" in one_by_one(4, reason="future result", sleeps=True)
    assert "one-at-a-time" not in one_by_one(4, reason="semaphore items", sleeps=True)
    # Two of four can run at the same time; four can sleep.
    equal(round(one_by_one(4)["one-at-a-time"]["gain_ns"] / MS), 20)
    equal(round(one_by_one(4, reason="future result", sleeps=True)["one-at-a-time"]["gain_ns"] / MS), 30)


@test
def that_workers_which_run_one_at_a_time_sleep_is_no_finding_of_its_own():
    trace = Trace(2)
    trace.here(1, 2, 0)
    for i in range(10):
        now, g = MS + i * 10 * MS, 10 + i
        trace.create(now, 0, g, ("main.start", "main.resize"))
        trace.start(now + 10, 1, g)
        trace.block(now + 20, 0, "chan receive", ("runtime.chanrecv1", "main.start"))
        trace.block(now + 30, 1, "sleep", ("time.Sleep", "main.resize"))
        trace.wake(now + 9 * MS, 1, g, ())
        trace.start(now + 9 * MS + 10, 1, g)
        trace.wake(now + 9 * MS + 20, 1, 1, ("runtime.chansend1", "main.resize"))
        trace.at(now + 9 * MS + 30, 1, "GoDestroy")
        trace.start(now + 9 * MS + 40, 0, 1)
    equal(list(trace.findings(102 * MS, "--from=0ns", f"--to={102 * MS}ns")), ["one-at-a-time"])


def unseen(count, lasts=MS, ready=0, threads=1, inferred=0, seen=False):
    """Threads wait this often in calls that are not recorded; they are ready for some time after each. Then they run, which is
    `inferred`; `seen`: at first one waits for a lock that a look has shown."""
    trace = Trace(threads + 1)
    trace.string("trail.made by=record")
    trace.here(99, 2, 0)
    at = MS
    for n in range(1, threads + 1):
        trace.create(10 + n, 0, n, ("main.format",))
        trace.start(30 + n, n, n)
        at = MS
        if seen:
            trace.log(at, n, "wait", "futex main_arena (in malloc)")
            trace.block(at + 10, n, "sync", ("main.format",))
            trace.at(at + 30 * US, n, f"GoUnblock g={n} g_seq=%d stack=0", n)
            trace.start(at + 31 * US, n, n)
            at += 32 * US
        for _ in range(count):
            trace.log(at, n, "wait", "kernel, call not seen")
            trace.at(at + 10, n, f"GoSyscallBegin p_seq=%d stack={trace.stack(('main.format',))}", f"p{n}")
            trace.at(at + lasts, n, "GoSyscallEnd")
            if ready:
                trace.at(at + lasts + 10, n, f"GoStop reason_string={trace.string('preempted')} stack=0")
                trace.start(at + lasts + 10 + ready, n, n)
            at += lasts + ready + MS
        if inferred and n == 1:
            trace.log(at, n, "trail.readiness", "inferred")
        at += inferred
        trace.at(at + 10, n, "GoDestroy")
    trace.log(29, 0, "wait", "join main.format")
    trace.block(30, 0, "sync", ("main.main",))
    trace.wake(at, 1, 99, ("main.format",))
    trace.start(at + 20, 0, 99)
    return trace.findings(at + 30, "--from=0ns", f"--to={at + 30}ns")


@test
def waits_in_calls_that_are_not_recorded_are_said():
    found = unseen(50)
    assert "unseen-waits" in found, found
    assert "main.format waited in the kernel 50 times, in calls that are not recorded. These waits took 50.0 ms, 50 % of the time of its 1 thread." in found["unseen-waits"]["text"], found
    assert "unseen-waits" not in unseen(49)
    # What is inferred shows no such waits.
    text = unseen(50, inferred=900 * MS, seen=True)["unseen-waits"]["text"]
    assert "These waits took 50.0 ms, 49 % of the time of its 1 thread in the 101 ms for which context switches are recorded. " in text, text
    assert "Where the recorder looked, threads waited for futex main_arena (in malloc) at main.format (main.go:10). " in text, text
    # What that lock is need not be guessed.
    assert "Usually" not in text and "Usually" in unseen(50)["unseen-waits"]["text"]
    assert "looked" not in unseen(50)["unseen-waits"]["text"]
    assert "unseen-waits" not in unseen(50, lasts=240 * US)
    # They are ready because of their locks.
    found = unseen(50, ready=2 * MS, threads=2)
    assert "unseen-waits" in found and "ready" not in found, found
    assert "ready" in unseen(50, lasts=240 * US, ready=2 * MS, threads=2)
    # The threads are not responsible for time without a CPU.
    assert "unseen-waits" in unseen(50, lasts=400 * US, ready=700 * US, threads=2)


if __name__ == "__main__":
    sys.exit(main())
