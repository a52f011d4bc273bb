#!/usr/bin/env python3
"""Hand-offs, wake-ups in vain and missed signals. TAP.

usage: handoffs.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import COND, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import handed, herd, served  # noqa: E402
from tap import long, test  # noqa: E402


@test
def who_is_woken_and_waits_again_at_once_was_woken_in_vain():
    found = herd(2 * US)
    equal(list(found), ["futile-wakeups"])
    assert "150 of 150" in found["futile-wakeups"]["text"], found
    assert "main.next" in found["futile-wakeups"]["text"]


@test
def what_is_done_in_vain_costs_the_time_until_it_waits_again():
    equal(herd(2 * US)["futile-wakeups"]["gain_ns"], 150 * 2500)
    # Of two that are woken at once, the second waits for the CPU until the first waits again.
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.here(3, 1)
    trace.block(100, 1, "sync.(*Cond).Wait", COND)
    trace.start(200, 1, 3)
    trace.block(300, 1, "sync.(*Cond).Wait", COND)
    for at in range(100 * US, 100 * 100 * US, 100 * US):
        trace.wake(at, 0, 2)
        trace.wake(at + 100, 0, 3)
        trace.start(at + 200, 1, 2)
        trace.block(at + 1000, 1, "sync.(*Cond).Wait", COND)
        trace.start(at + 1200, 1, 3)
        trace.block(at + 2200, 1, "sync.(*Cond).Wait", COND)
    equal(trace.findings(11 * MS)["futile-wakeups"]["gain_ns"], 99 * 2200)


@test
def taking_the_lock_of_a_condition_again_is_part_of_the_wait():
    equal(list(herd(2 * US, relock=True)), ["futile-wakeups"])


def relocked(wait, stack):
    """Goroutines 2 and 3 are woken together; 3 waits meanwhile, and 2 ends that, and waits again."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    for g in (2, 3):
        trace.here(g, 2, g - 1)
        trace.log(90 + g, g - 1, "wait", "condition jobs_cv")
        trace.block(100 + g, g - 1, "sync.(*Cond).Wait", COND)
    for i in range(1, 151):
        now = i * 100 * US
        for g in (2, 3):
            trace.wake(now + g, 0, g)
            trace.start(now + 100 + g, g - 1, g)
        trace.log(now + 200, 2, "wait", wait)
        trace.block(now + 210, 2, "sync", stack)
        trace.wake(now + 300, 1, 3)
        trace.log(now + 310, 1, "wait", "condition jobs_cv")
        trace.block(now + 320, 1, "sync.(*Cond).Wait", COND)
        trace.start(now + 400, 2, 3)
        trace.log(now + 490, 2, "wait", "condition jobs_cv")
        trace.block(now + 500, 2, "sync.(*Cond).Wait", COND)
    return trace.findings(160 * 100 * US).get("futile-wakeups", {"text": ""})["text"]


@test
def to_pass_on_the_mutex_of_a_condition_variable_is_no_work():
    relock = ("pthread_cond_wait", "main.next")
    assert "300 of 300 wake-ups had no effect" in relocked("mutex jobs_mu", relock), relocked("mutex jobs_mu", relock)
    assert "150 of 300 wake-ups had no effect" in relocked("semaphore jobs", relock), relocked("semaphore jobs", relock)


@test
def who_works_before_it_waits_again_was_not_woken_in_vain():
    equal(herd(50 * US), {})


@test
def who_waits_for_something_else_was_not_woken_in_vain():
    equal(herd(2 * US, again=WORK_STACK, reason="chan send"), {})


@test
def waits_whose_end_has_no_known_cause_do_not_count_in_vain():
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.block(100, 1, "sync.(*Cond).Wait", COND)
    for i in range(1, 301):
        if i % 3 == 0:
            trace.wake(i * 100 * US, 0, 2)
        else:
            trace.at(i * 100 * US, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(i * 100 * US + 100, 1, 2)
        trace.block(i * 100 * US + 2 * US, 1, "sync.(*Cond).Wait", COND)
    found = trace.findings(31 * MS)
    equal(list(found), ["futile-wakeups"])
    assert "100 of 100 wake-ups" in found["futile-wakeups"]["text"], found


@test
def a_hundred_in_vain_and_half_of_all_are_worth_a_line():
    equal(list(herd(2 * US, count=100)), ["futile-wakeups"])
    equal(herd(2 * US, count=99), {})
    equal(list(herd(2 * US, count=100, busy=101)), ["futile-wakeups"])
    equal(herd(2 * US, count=100, busy=102), {})
    # It runs 400 ns longer than requested: less than 10 us in all, or exactly 10 us.
    equal(list(herd(10 * US - 401, count=100)), ["futile-wakeups"])
    equal(herd(10 * US - 400, count=100), {})


@long
def many_small_pieces_are_handed_over():
    found = handed(10000)
    equal(list(found), ["hand-offs"])
    assert "waited (chan receive) 10,000 times, once every 10.0 us" in found["hand-offs"]["text"], found
    # Its runs in between, too, are mostly for the hand-over.
    assert found["hand-offs"]["gain_ns"] > 99 * MS, found
    equal(handed(9999), {})
    # At a slower pace, only if there is hardly any work in between: here it runs for half of the
    # time, and the other one for all of it, which is up to 50 us together.
    equal(list(handed(10000, 33 * US)), ["hand-offs"])
    equal(handed(10000, 34 * US), {})
    # It counts for how long they did so, if that is a tenth of all.
    assert "hand-offs" in handed(10000, rest=100 * MS) and "hand-offs" in handed(10000, rest=340 * MS)
    assert "hand-offs" not in handed(10000, rest=360 * MS)


def broadcast(receivers, every=8 * MS, rounds=100):
    """Goroutine 1 sends to each of these many others, one after another, and then sleeps."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    for g in range(2, 2 + receivers):
        trace.here(g, 4)
    for i in range(rounds):
        now = (1 + i) * every
        for n in range(receivers):
            trace.wake(now + n * US, 0, 2 + n)
            trace.start(now + 2 * US + n * 6 * US, 1, 2 + n)
            trace.block(now + 2 * US + n * 6 * US + 5 * US, 1, "select", WORK_STACK)
        trace.block(now + receivers * US, 0, "sleep", WORK_STACK)
        trace.at(now + every - 2 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + every - US, 0, 1)
    return trace.findings((2 + rounds) * every)


@long
def messages_to_many_now_and_then_are_no_small_pieces():
    # Those that are ready wait for each other, not for a CPU.
    equal(broadcast(120), {})
    assert "hand-offs" in broadcast(120, every=MS)


def missed(rounds, late=50, signals=1, barrier=True, again=False, early=0, other=False):
    """In each round, two threads wait for a condition variable. A signal ends the wait of one, the other times out so
    many milliseconds later; then main and the first go on, if they wait at a barrier. `early`: rounds in which the
    signal comes after the time-out. `other`: a wait for a mutex times out, too."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    for g in 2, 3:
        trace.create(10 * g, 0, g, ("main.worker",))
        trace.start(10 * g + 5, g - 1, g)
    for i in range(rounds + early):
        base = (1 + 100 * i) * MS

        def wait(at, g, what):
            trace.log(base + at - 10, g - 1, "wait", what)
            trace.block(base + at, g - 1, "sync.(*Cond).Wait" if "condition" in what else "sync", ("main.await", "main.worker"))

        def wake(at, by, g):
            trace.wake(base + at, by - 1, g, ("main.publish",))
            trace.start(base + at + 10, g - 1, g)

        wait(MS, 2, "condition config_cv")
        wait(MS + 20, 3, "condition config_cv")
        over = (10 + late) * MS
        if i < rounds:
            wake(10 * MS, 1, 2)
            for n in range(1, signals):
                wait((10 + n) * MS, 2, "condition config_cv")
                wake((10 + n) * MS + MS // 2, 1, 2)
        if barrier:
            wait((9 + signals) * MS + MS * 3 // 5, 1, "barrier next")
        trace.at(base + over, 1, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(base + over + 10, 2, 3)
        trace.log(base + over + 20, 2, "wait", "timed out")
        if again:
            wait(over + 30, 3, "condition config_cv")
            trace.at(base + 90 * MS, 1, "GoUnblock g=3 g_seq=%d stack=0", 3)
            trace.start(base + 90 * MS + 10, 2, 3)
        if barrier:
            wake(over + 100 * US, 3, 1)
        if i >= rounds:
            wake(over + MS, 1, 2)
        if other:
            wait(92 * MS, 2, "mutex first_mu")
            wake(93 * MS, 1, 2)
            wait(94 * MS, 3, "mutex second_mu")
            trace.at(base + 96 * MS, 1, "GoUnblock g=3 g_seq=%d stack=0", 3)
            trace.start(base + 96 * MS + 10, 2, 3)
            trace.log(base + 96 * MS + 20, 2, "wait", "timed out")
    return trace.findings((1 + 100 * (rounds + early)) * MS, "--from=1ms", f"--to={1 + 100 * (rounds + early)}ms")


@test
def a_signal_that_reaches_one_of_several_leaves_the_others_to_their_time_outs():
    found = missed(4)
    equal(next(iter(found)), "missed-signal")
    equal(
        found["missed-signal"]["text"],
        "4 waits for condition config_cv at main.await (main.go:10) timed out after a signal for one of them. "
        "main.publish (main.go:10) ended another goroutine's wait for it meanwhile, 4 times. "
        "These waited for up to 50.0 ms more, and others for them. At most 200 ms of 400 ms would be saved. "
        "Wake all that wait if the change is for all of them.",
    )
    assert "missed-signal" in missed(2)
    assert "missed-signal" not in missed(1)
    assert "missed-signal" in missed(4, late=21)
    assert "missed-signal" not in missed(4, late=19)
    # With several signals meanwhile, each may be for any of them. None waits for those that had nothing to do.
    assert "missed-signal" not in missed(4, signals=2)
    assert "missed-signal" not in missed(4, barrier=False)
    # Another wait that times out is none for it.
    assert missed(4, other=True)["missed-signal"]["text"].startswith("4 waits for condition config_cv "), missed(4, other=True)
    # Most of the time-outs are no timer's.
    assert "missed-signal" in missed(4, early=1)
    assert "missed-signal" not in missed(4, early=2)


@long
def goroutines_that_run_for_a_moment_each_are_created_too_often():
    def shades(count, ran=US, every=4 * US, made=None, waits=0, pauses=0):
        """`waits`: each waits for so long; `pauses`: main sleeps for so long after the first thousand."""
        trace = Trace(3)
        if made:
            trace.string(made)
        trace.here(1, 2, 0)
        trace.here(2, 2, 1)
        trace.block(5, 1, "chan receive", WORK_STACK)
        for i in range(count):
            now = (i + 1) * every + (pauses if i >= 1000 else 0)
            if i == 1000 and pauses:
                trace.block(now - pauses, 0, "sleep", ("time.Sleep", "main.main"))
                trace.at(now - 100, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
                trace.start(now - 50, 0, 1)
            trace.create(now, 0, 10 + i, ("main.draw", "main.shade"))
            trace.start(now + 20, 1, 10 + i)
            if waits:
                trace.block(now + 30, 1, "sleep", ("time.Sleep", "main.shade"))
                trace.at(now + 30 + waits, 2, f"GoUnblock g={10 + i} g_seq=%d stack=0", 10 + i)
                trace.start(now + 30 + waits, 2, 10 + i)
            trace.at(now + 20 + ran + waits, 2 if waits else 1, "GoDestroy")
        end = (count + 1) * every + pauses
        return trace.findings(end, "--from=0ns", f"--to={end}ns")

    found = shades(10000)["hand-offs"]
    assert found["text"].startswith("10,000 goroutines of main.shade were created for pieces of work that are too small. Each ran for 1.00 us on average, and one was created every 4.00 us, at main.draw (main.go:10)."), found
    assert "hand-offs" not in shades(9999)
    assert "hand-offs" in shades(10000, 5 * US, 19 * US)
    assert "hand-offs" not in shades(10000, 5 * US + 1, 19 * US)
    assert "hand-offs" not in shades(10000, 5 * US, 21 * US)
    # Those that wait are needed for that, and what main waits for takes its time with fewer goroutines, too.
    assert "hand-offs" in shades(10000, waits=19 * US - 20, every=19 * US) and "hand-offs" not in shades(10000, waits=19 * US + 20, every=19 * US)
    equal(shades(10000)["hand-offs"]["gain_ns"], 10001 * 4 * US - 10000 * US)
    equal(shades(10000, pauses=10 * MS)["hand-offs"]["gain_ns"], 10001 * 4 * US - 10000 * US + 100)
    # A thread costs ten times as much.
    threads = {"made": "trail.made by=record"}
    text = shades(1000, 50 * US, 190 * US, **threads)["hand-offs"]["text"]
    assert text.startswith("1,000 threads of main.shade were created for pieces of work that are too small. Each ran for 50.0 us on average, and one was created every 190 us, "), text
    assert "hand-offs" not in shades(999, 50 * US, 190 * US, **threads)
    assert "hand-offs" not in shades(1000, 51 * US, 190 * US, **threads)
    assert "hand-offs" not in shades(1000, 50 * US, 210 * US, **threads)


@long
def a_goroutine_that_yields_again_and_again_spins():
    def yields(count, every=US, ready=10, collects=False, stack=WORK_STACK):
        trace = Trace(1)
        trace.here(1, 2, 0)
        if collects:
            trace.block(100, 0, "wait until GC ends", ("runtime.gcWaitOnMark", "runtime.GC", "main.trim"))
            trace.at(200, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(210, 0, 1)
        for i in range(1, count + 1):
            trace.at(i * every, 0, f"GoStop reason_string={trace.string('runtime.Gosched')} stack={trace.stack(stack)}")
            trace.start(i * every + ready, 0, 1)
        end = (count + 1) * every
        return trace.findings(end, "--from=0ns", f"--to={end}ns")

    text = yields(10000)["spins"]["text"]
    assert "yielded (runtime.Gosched) 10,000 times" in text, text
    assert "spins" not in yields(9999)
    # runtime.GC does so while it sweeps.
    assert "spins" not in yields(10000, collects=True)
    # Nor can a reader mend a goroutine of the runtime.
    assert "spins" not in yields(10000, stack=("runtime.goschedIfBusy", "runtime.bgsweep"))
    assert "spins" not in yields(10000, 21 * US)
    # To find that nothing else is ready takes longer than the look.
    found = yields(10000, ready=900)["spins"]
    text = found["text"]
    # Its place is the whole life of the goroutine, which is ready for most of it.
    equal(found["end_ns"] - found["begin_ns"], 10001 * US)
    assert " It ran for 1.00 ms, and was ready for 9.00 ms; it yielded once every 1.00 us." in text, text
    assert "spins" not in yields(10000, 40 * US, ready=30 * US)
    assert "spins" in yields(10000, 32 * US, ready=20 * US)


def pingpong(count, usual, long=0, alike=1, wait="read pipe:[7]"):
    """Main and goroutine 2 answer each other `count` times, each after `usual`; main then runs for
    `long`, and goroutine 2 waits `alike` times as often."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)

    def waits(at, g):
        trace.log(at - 1, g - 1, "wait", wait)
        trace.block(at, g - 1, "network" if "read" in wait else "sync.(*Cond).Wait", (("main.ask",), ("main.echo",))[g - 1])

    now = 10
    waits(now, 2)
    for i in range(count):
        now += usual
        if i < alike * count:
            trace.wake(now, 0, 2, ("main.ask",))
            trace.start(now + 10, 1, 2)
        waits(now + 20, 1)
        now += usual
        trace.wake(now, 1, 1, ("main.echo",))
        trace.start(now + 10, 0, 1)
        if i + 1 < alike * count:
            waits(now + 20, 2)
        now += 30
    end = now + long
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@long
def two_that_answer_each_other_at_once_are_handed_too_little_however_long_the_rest_takes():
    found = pingpong(10000, 24 * US, 200 * MS)
    text = found["hand-offs"]["text"]
    assert " is handed work in pieces that are too small. It waited (read at main." in text and " 10,000 times, once every 68.0 us, " in text, text
    assert "hands it over." in text, text
    text = pingpong(10000, 24 * US, wait="condition full")["hand-offs"]["text"]
    assert re.search(r"It waited \(condition full at main\.(ask|echo) \(main\.go:10\)\) 10,000 times", text), text
    # The usual waits of both take 60 us, and each waits for nine tenths of the times of the other.
    assert "hand-offs" in pingpong(10000, 29 * US) and "hand-offs" not in pingpong(10000, 31 * US)
    assert "hand-offs" in pingpong(10001, 24 * US, 200 * MS, alike=0.9) and "hand-offs" not in pingpong(10001, 24 * US, 200 * MS, alike=0.89)
    assert "hand-offs" not in pingpong(9998, 24 * US, 200 * MS)


@test
def one_that_spins_is_why_others_are_ready():
    for yields, kind in (("yield 1000 20ms", "spins"), ("yield 1 20ms", "ready")):
        trace = Trace(1)
        trace.here(1, 2, 0)
        trace.create(10, 0, 2, ("main.decode",))
        trace.create(11, 0, 3, ("main.look", "main.consume"))
        trace.block(20, 0, "chan receive", ("main.main",))
        trace.start(30, 0, 3)
        trace.log(25 * MS, 0, "counted", yields, ("main.look", "main.consume"))
        trace.at(29 * MS, 0, "GoDestroy")
        trace.start(29 * MS + 10, 0, 2)
        found = trace.findings(30 * MS, "--from=0ns", "--to=30ms", "--words=threads")
        equal([k for k in found if k in ("spins", "ready")], [kind])


def counted(*texts, length=10 * MS):
    """A thread runs; logs count its calls that have no events."""
    trace = Trace(2, idle=(1,))
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.look", "main.consume"))
    trace.block(20, 0, "sync", ("main.main",))
    trace.start(30, 0, 1)
    for i, text in enumerate(texts):
        trace.log((1 + i) * length // 10, 0, "counted", text, ("main.look", "main.consume"))
    trace.wake(length - 20, 0, 99, ("main.consume",))
    trace.at(length - 10, 0, "GoDestroy")
    return trace.findings(length, "--from=0ns", f"--to={length}ns")


@test
def a_thread_that_yields_in_a_row_spins():
    found = counted("yield 600 2ms", "yield 400 1ms")
    equal(list(found), ["spins"])
    text = found["spins"]["text"]
    assert text.startswith("main.look (main.go:10) spins: goroutines of main.consume yielded (sched_yield) 1,000 times in a row. That took 3.00 ms in all"), text
    equal((found["spins"]["function"], found["spins"]["gain_ns"]), ("main.consume", 3 * MS))
    equal(counted("yield 600 2ms", "yield 399 1ms"), {})
    equal(counted("yield 600 2ms", "yield 400 999us"), {})
    equal(counted("yield 600", "yield 400 3ms 5", "yield -600 3ms", "yields 1000 3ms", "yield 6e5 3ms", "yield", "yield 5000 "), {})


@test
def waits_that_are_too_short_for_events_are_hand_offs_too():
    found = counted("read 6000 20ms", "read 4000 10ms", length=100 * MS)
    equal(list(found), ["hand-offs"])
    assert "main.consume is handed work in pieces that are too small. It waited (read) 10,000 times, once every 10.0 us, 30.0 ms in all" in found["hand-offs"]["text"], found
    equal(counted("read 6000 20ms", "read 3999 10ms", length=100 * MS), {})
    equal(counted("read 6000 20ms", "read 4000 9.9ms", length=100 * MS), {})


@test
def a_goroutine_that_receives_without_ever_waiting_spins():
    found = served(5)
    equal(list(found), ["spins"])
    assert " 2 ran for 24.0 ms and never waited, while others sent to it now and then. It ended at least 5 waits to send within" in found["spins"]["text"], found
    equal(served(4), {})
    equal(served(5, waits=True), {})
    # The other goroutine always has something to send.
    equal(served(10, sleeps=False), {})
    # It worked on a value while another goroutine waited for room.
    assert "spins" in served(10, late=[5])
    assert "spins" not in served(10, late=[6])
    # A single late value among many may be due to a lack of CPU.
    assert "spins" in served(14, late=[14]) and "spins" not in served(13, late=[13])
    assert "spins" not in served(24, late=[8, 16, 24])
    equal(served(5, every=700 * US), {})


if __name__ == "__main__":
    sys.exit(main())
