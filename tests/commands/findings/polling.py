#!/usr/bin/env python3
"""Polling, sleeps and timers. TAP.

usage: polling.py TRAIL SOURCE_ROOT [long]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import MS, US, Trace, main  # noqa: E402
from programs import polled, timed  # noqa: E402
from tap import test  # noqa: E402


def interpreted(wait, again=US, tries=2, rounds=12):
    """Two threads of scripts take turns. The one that waits gives up so often, each 5 ms, waits again after `again`, and gets the lock 1 ms later."""
    trace = Trace(2)
    turn = 5 * tries + 1
    for g in (1, 2):
        trace.here(g, 2, g - 1)
    for i in range(rounds):
        now, waiter, runner = (1 + (turn + 1) * i) * MS, 1 + i % 2, 2 - i % 2
        for attempt in range(tries + 1):
            begin = now + attempt * 5 * MS + again * (attempt > 0)
            trace.log(begin, waiter - 1, "wait", wait)
            trace.block(begin + 10, waiter - 1, "sync", ("take_gil", "eval_frame", "python.run"))
            if attempt < tries:
                gives_up = now + (attempt + 1) * 5 * MS
                trace.at(gives_up - 20, waiter - 1, f"GoUnblock g={waiter} g_seq=%d stack=0", waiter)
                trace.start(gives_up - 10, waiter - 1, waiter)
                trace.log(gives_up - 5, waiter - 1, "wait", "timed out")
        trace.wake(now + turn * MS, runner - 1, waiter, ("drop_gil", "eval_frame", "python.run"))
        trace.start(now + turn * MS + 10, waiter - 1, waiter)
    end = (1 + (turn + 1) * rounds) * MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def who_has_the_lock_of_an_interpreter_is_said_not_where_that_releases_it():
    found = interpreted("interpreter lock GIL of Python")["lock-serialises"]
    assert found["text"].startswith("python.run held interpreter lock GIL of Python for 132 ms while others waited. "), found
    assert "12 waits took 132 ms, the longest 11.0 ms" in found["text"] and "Only one goroutine at a time runs code under it: " in found["text"], found
    # If what waits works in between, each attempt is a wait.
    assert "132 ms" not in str(interpreted("interpreter lock GIL of Python", again=100 * US))
    # Its threads do not poll: that is how they ask for it.
    assert "polling" in interpreted("mutex a", again=100 * US, tries=5, rounds=50)
    assert "polling" not in interpreted("interpreter lock GIL of Python", again=100 * US, tries=5, rounds=50)


@test
def sleeps_that_double_are_attempts():
    def found(lengths):
        trace = Trace(1)
        trace.here(1, 2, 0)
        now = MS
        for length in lengths:
            trace.block(now, 0, "sleep", ("time.Sleep", "main.save", "main.main"))
            trace.at(now + length, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(now + length + 10, 0, 1)
            now += length + 100 * US
        return trace.findings(now, "--from=0ns", f"--to={now}ns")

    text = found(5 * [5 * MS, 10 * MS, 20 * MS, 40 * MS, 40 * MS])["polling"]["text"]
    assert text.startswith("main.save (main.go:11) tries again and again: it slept 25 times for 23.0 ms on average, at least 10 times twice as long as before. "), text
    assert "It slept for 575 ms in all. If it waits for something, that is noticed up to 40.0 ms late. " in text, text
    # Six are too few; and two in turn, of which one is twice as long, need not be attempts.
    equal(found(3 * [5 * MS, 10 * MS, 20 * MS, 40 * MS, 40 * MS]), {})
    equal(found(20 * [10 * MS, 20 * MS]), {})
    equal(found(20 * [10 * MS, 16 * MS, 27 * MS]), {})


@test
def waits_most_of_which_time_out_are_polling():
    found = timed(400)
    equal(list(found), ["polling"])
    text = found["polling"]["text"]
    assert text.startswith("main.next (main.go:10) polls: 400 of 400 waits (condition jobs_cv) timed out, after 1.00 ms on average."), text
    assert "polling" in timed(200)
    assert "polling" not in timed(199)
    # Half of them; or a quarter, if only the waiters end each other's waits.
    assert "polling" in timed(400, count=800, other=True)
    assert "polling" not in timed(400, count=804, other=True)
    # Those that wait again at once, until they are woken, notice nothing because of the limit.
    assert "polling" not in timed(400, count=800, other=True, works=10 * US)
    assert "polling" in timed(400, count=1600)
    assert "polling" not in timed(400, count=1604)
    assert "polling" not in timed(400, length=11 * MS)
    # For a futex that is a lock, they wait in vain.
    for at, says in (("main.fx_lock", "waits in vain"), ("main.fx_wait", "polls")):
        text = timed(400, wanted="futex word", at=at)["polling"]["text"]
        assert f" {says}: 400 of 400 waits (futex) timed out" in text, text


def late_timers(times=20, slice=10 * MS, after=10 * US, sleeps=None, on_time=0, procs=1, main=True, short=None, stops=False):
    """One P. A goroutine sleeps again and again, each time until another one is preempted, which runs for `slice`, and so
    much later; it has slept for `sleeps` then. `on_time`: sleeps that end while nothing runs, after `short`.
    `stops`: the other one ends within the last sleep, which ends then."""
    trace = Trace(procs)
    sleeper = 1 if main else 3
    trace.here(1, 2, 0)
    if not main:
        trace.create(5, 0, 3, ("main.play",))
        trace.block(6, 0, "chan receive", ("main.main",))
        trace.start(7, 0, 3)
    trace.create(10, 0, 2, ("main.hog",))
    now = 100
    for i in range(times + on_time):
        trace.block(now, 0, "sleep", ("time.Sleep", "main.tick"))
        if i < on_time:
            trace.at(now + (short or slice), 0, f"GoUnblock g={sleeper} g_seq=%d stack=0", sleeper)
            now += short or slice
        else:
            begin = now + ((sleeps or slice) - slice)
            trace.start(begin + 10, 0, 2)
            now = begin + 10 + slice
            trace.at(now, 0, "GoDestroy" if stops and i == times + on_time - 1 else f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(('main.hog',))}")
            trace.at(now + after, 0, f"GoUnblock g={sleeper} g_seq=%d stack=0", sleeper)
            now += after
        trace.start(now + 10, 0, sleeper)
        now += 100
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


@test
def timers_that_fire_when_another_is_preempted_are_late():
    found = late_timers()
    assert "late-timer" in found, found
    equal(found["late-timer"]["goroutine"], 2)  # main.hog
    text = found["late-timer"]["text"]
    assert text.startswith("Timers fire late at main.tick (main.go:11), since main.hog keeps the only P. 20 of 20 sleeps, 200 ms in all, ended as soon as it or another was preempted."), text
    assert "They may have been late for 200 ms in all." in text and text.endswith("GOMAXPROCS is 1: raise it if the program may use more CPUs."), text
    assert "late-timer" not in late_timers(19)
    # One that gives the P back earlier, another moment, sleeps that are longer by themselves, or end in time.
    assert "late-timer" in late_timers(slice=5 * MS) and "late-timer" not in late_timers(slice=4 * MS)
    assert "late-timer" in late_timers(after=49 * US) and "late-timer" not in late_timers(after=51 * US)
    assert "late-timer" in late_timers(sleeps=12 * MS) and "late-timer" not in late_timers(sleeps=13 * MS)
    assert "late-timer" in late_timers(on_time=4) and "late-timer" not in late_timers(on_time=6)
    assert "late-timer" in late_timers(on_time=20, short=2 * MS) and "late-timer" not in late_timers(on_time=26, short=2 * MS)
    # None waits for the one that sleeps.
    assert "late-timer" not in late_timers(main=False)
    # Sleeps that may have been meant to be shorter say nothing of a pace.
    assert "polling" not in late_timers(60, slice=10 * MS, stops=True)


@test
def short_sleeps_again_and_again_are_polling():
    found = polled(201)
    equal(list(found), ["polling"])
    # The average sleep ranks it; that is no time which the program would save.
    assert found["polling"]["weight"] > 0 and "gain_figure" not in found["polling"], found
    assert found["polling"]["text"].startswith("main.look (main.go:11) polls: it slept 201 times for 1.00 ms on average"), found
    equal(polled(200), {})  # the first one does not count: none precedes it
    equal(polled(201, sleep=6 * MS), {})
    equal(polled(201, more=1), {})  # each may be a client with its own pace
    equal(list(polled(201, ran=49 * US)), ["polling"])
    equal(polled(201, ran=51 * US), {})
    # A twentieth of the sleep, where that is more, up to 100 us.
    equal(list(polled(201, sleep=1200 * US, ran=60 * US - 20)), ["polling"])
    equal(polled(201, sleep=1200 * US, ran=61 * US), {})
    equal(list(polled(201, sleep=4 * MS, ran=99 * US)), ["polling"])
    equal(polled(201, sleep=4 * MS, ran=101 * US), {})
    equal(polled(201, other=True), {})  # it also waits for something else
    equal(list(polled(202, until=101)), ["polling"])
    equal(polled(202, until=102), {})  # it keeps a pace
    # It finds something once in four times, or three times in four.
    equal(list(polled(205, ran=20 * US, works=400 * US, every=4)), ["polling"])
    equal(polled(205, ran=400 * US, works=20 * US, every=4), {})
    equal(polled(201, wakes=True), {})  # it hands work to another goroutine at a steady rate


def napping(several, sleep):
    """So many threads of a C program sleep at the same place, again and again."""
    trace = Trace(several)
    trace.string("trail.made by=record")
    for g in range(1, several + 1):
        trace.here(g, 2, g - 1)
        for i in range(202):
            now = MS + i * (sleep + 20 * US) + g * US
            trace.block(now, g - 1, "sleep", ("time.Sleep", "main.look"))
            trace.wake(now + sleep, g - 1, g, ())
            trace.start(now + sleep + 10, g - 1, g)
    return trace.findings(MS + 203 * (sleep + 20 * US))


@test
def several_that_sleep_at_a_time_pause_in_their_own_work():
    equal(list(napping(1, 4 * MS)), ["polling"])
    equal(napping(2, 4 * MS), {})
    equal(list(napping(2, 2400 * US)), ["polling"])
    equal(napping(2, 2600 * US), {})


def looked(count=41, sleep=15 * MS, early=0, main=1, ends=True):
    """A goroutine sleeps so often; another one ends `early` before the last sleep does."""
    trace = Trace(2)
    other = 3 - main
    trace.here(main, 2, 0)
    trace.create(10, 0, other, ("main.load",))
    trace.start(20, 1, other)
    now, end = MS, MS + count * (sleep + 20) - early
    trace.block(30, 1, "sleep", ("time.Sleep", "main.load"))
    trace.at(end - 30, 1, f"GoUnblock g={other} g_seq=%d stack=0", other)
    trace.start(end - 25, 1, other)
    if ends:
        trace.at(end - 20, 1, "GoDestroy")
    for _ in range(count):
        trace.block(now, 0, "select", ("runtime.selectgo", "main.look"))
        trace.wake(now + sleep, 0, main, ())
        trace.start(now + sleep + 10, 0, main)
        now += sleep + 20
    trace.block(now, 0, "chan receive", ("main.rest",))
    return trace.findings(now + MS)


@test
def few_long_sleeps_that_end_with_another_goroutine_look_for_its_end():
    text = looked()["polling"]["text"]
    assert text.startswith("main.look (main.go:11) polls: it waited for a timer 41 times for 15.0 ms on average. "), text
    # Forty returns of 50 ms on average, and an end within one sleep.
    assert "polling" not in looked(count=40) and "polling" in looked(sleep=50 * MS) and "polling" not in looked(sleep=51 * MS)
    # An end after its last sleep may be its own doing.
    assert "polling" not in looked(early=16 * MS) and "polling" not in looked(early=-MS)
    # If nothing ends, the sleeps may be a heartbeat; so may those of any goroutine but main.
    assert "polling" not in looked(ends=False) and "polling" not in looked(main=2)


@test
def timers_again_and_again_are_polling_too():
    for reason in ("select", "chan receive"):
        text = polled(201, reason=reason)["polling"]["text"]
        assert text.startswith("main.look (main.go:11) polls: it waited for a timer 201 times for 1.00 ms on average"), text
        equal(polled(200, reason=reason), {})
        # One that begins something nearly each time keeps a pace.
        assert "polling" in polled(401, reason=reason, creates=300) and "polling" not in polled(401, reason=reason, creates=301)
        assert "polling" not in polled(201, reason=reason, by=1)  # another goroutine ended the waits


def ticks(late=3, ran=16 * MS, threads=1, until=True, count=40):
    """A goroutine sleeps until the next of the times 10 ms apart, and runs for 1 ms after each, some times for `ran`."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.block(10, 0, "chan receive", ("main.rest",))
    for g in range(2, 2 + threads):
        trace.create(3 + g, 0, g, ("main.tick",))
        trace.start(100 + g, g - 1, g)
        now = MS
        for i in range(count):
            trace.block(now + g, g - 1, "sleep", ("time.Sleep", "main.tick"))
            now += 9 * MS
            trace.at(now + g, g - 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
            trace.start(now + g + 5, g - 1, g)
            if until:
                trace.log(now + g + 10, g - 1, "wait", "until a time")
            now += ran if 10 <= i < 10 + late else MS
    return trace.findings(now + MS)


@test
def ticks_that_take_longer_than_the_time_between_them_make_timers_late():
    text = ticks()["late-timer"]["text"]
    assert text.startswith(
        "Timers are late at main.tick (main.go:11): they are due every 10.0 ms, but main.tick ran for up to 16.0 ms between two waits for them. "
    ), text
    assert "late-timer" not in ticks(late=1)
    assert "late-timer" not in ticks(ran=14 * MS)
    assert "late-timer" not in ticks(until=False)  # it may pause for so long, whatever it did before
    assert "late-timer" not in ticks(threads=2)  # these may have different periods


@test
def a_helper_through_which_one_function_polls_is_named_with_it_whatever_else_calls_it():
    def slept(others, other=("main.other", "main.main")):
        """main.await sleeps 220 times in main.pause; before these times, another function does so once."""
        trace = Trace(1)
        trace.here(1, 2, 0)
        now = MS
        for i in range(220):
            for callers in ([other] if i in others else []) + [("main.await", "main.main")]:
                trace.block(now, 0, "sleep", ("time.Sleep", "main.pause", *callers))
                trace.at(now + MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
                trace.start(now + MS + 10, 0, 1)
                now += MS + 20 * US
        return trace.findings(now, "--from=0ns", f"--to={now}ns")

    assert slept([])["polling"]["text"].startswith("main.pause (main.go:11) polls: it slept 220 times for 1.00 ms on average. "), slept([])
    for others, other in (([0], ("main.other",)), ([110], ("main.other",)), ([219], ("main.other",)), ([110], ())):
        text = slept(others, other)["polling"]["text"]
        assert text.startswith("main.await (main.go:12) polls: it slept 220 times for 1.00 ms on average in main.pause (main.go:11). "), text
        equal(slept(others)["polling"]["function"], "main.await")


@test
def where_a_thread_polls_in_vain_is_named_if_it_is_one_place():
    def polls(second):
        """A thread polls 300 times for a millisecond each, or every third time elsewhere."""
        trace = Trace(1)
        trace.here(1, 2, 0)
        now = MS
        for i in range(300):
            trace.log(now, 0, "wait", "poll")
            trace.block(now + 10, 0, "network", (second if i % 3 == 0 else "main.await", "main.reader"))
            now += MS
            trace.at(now, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(now + 1000, 0, 1)
            trace.log(now + 2000, 0, "wait", "timed out")
            now += 10 * US
        return trace.findings(now, "--from=0ns", f"--to={now}ns")["polling"]

    found = polls("main.await")
    assert found["text"].startswith("main.await (main.go:10) polls: 300 of 300 waits (poll) timed out, after 1.00 ms on average."), found
    assert polls("main.look")["text"].startswith("main.await (main.go:10) polls: ")


def only_joined(other=False, two=False):
    """Main waits for the exit of a thread that sleeps again and again, perhaps beside another one, or of two such threads."""
    trace = Trace(3)
    trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.consume",))
    trace.start(20, 1, 2)
    if other:
        trace.create(11, 0, 3, ("main.feed",))
        trace.start(21, 2, 3)
        trace.block(30, 2, "sleep", ("time.Sleep", "main.feed"))
    if two:
        trace.create(11, 0, 3, ("main.consume",))
        trace.start(21, 2, 3)
    trace.log(30, 0, "wait", "join main.consume")
    trace.block(31, 0, "sync", ("main.main",))
    now, length = 100, (2 if two else 4) * MS
    for _ in range(300):
        trace.block(now, 1, "sleep", ("time.Sleep", "main.consume"))
        trace.at(now + length, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(now + length + 10, 1, 2)
        if two:
            trace.block(now + 10, 2, "sleep", ("time.Sleep", "main.consume"))
            trace.at(now + length + 1, 2, "GoUnblock g=3 g_seq=%d stack=0", 3)
            trace.start(now + length + 11, 2, 3)
        now += length + 50 * US
    if two:
        trace.at(now + 20, 2, "GoDestroy")
    if other:
        trace.at(now, 2, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(now + 10, 2, 3)
        trace.at(now + 20, 2, "GoDestroy")
    trace.wake(now + 100, 1, 1, ("main.consume",))
    trace.at(now + 110, 1, "GoDestroy")
    trace.start(now + 200, 0, 1)
    return trace.findings(now + 300, "--from=0ns", f"--to={now + 300}ns")


@test
def a_thread_that_sleeps_while_only_its_exit_is_waited_for_looks_for_nothing():
    equal(only_joined(), {})
    # Another one may change what it looks for.
    equal(list(only_joined(other=True)), ["polling"])
    # Each of two may look for what the other one does.
    equal(list(only_joined(two=True)), ["polling"])


def sampled(rests=0, other=False, idle=False):
    """A thread sleeps for 2 ms and runs for 20 us, 300 times, perhaps beside another one, or main, that does so for a moment once, while
    main runs, or for a part of that rests until the thread wakes it. `idle`: main sleeps meanwhile."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.sample",))
    trace.start(20, 1, 2)
    if other is True:
        trace.create(12, 0, 3, ("main.check",))
        trace.start(22, 2, 3)
        trace.block(32, 2, "sleep", ("time.Sleep", "main.nap", "main.look", "main.check"))
        trace.at(MS, 2, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(MS + 10, 2, 3)
        trace.at(MS + 20, 2, "GoDestroy")
    if other == "main":
        trace.block(32, 0, "sleep", ("time.Sleep", "main.nap", "main.look", "main.main"))
        trace.at(MS // 2, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(MS // 2 + 10, 0, 1)
    now = MS
    if idle:
        trace.block(now - 10, 0, "sleep", ("time.Sleep", "main.main"))
    for i in range(300):
        if i == 300 - rests:
            trace.log(now - 10, 0, "wait", "condition level_cv")
            trace.block(now, 0, "sync.(*Cond).Wait", ("main.rest", "main.main"))
        trace.block(now, 1, "sleep", ("time.Sleep", *(["main.nap", "main.look"] if other else []), "main.sample"))
        trace.at(now + 2 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(now + 2 * MS + 10, 1, 2)
        now += 2 * MS + 20 * US
    if rests:
        trace.wake(now, 1, 1, ("main.sample",))
        trace.start(now + 10, 0, 1)
    return trace.findings(now + 100, "--from=0ns", f"--to={now + 100}ns")


def in_series(series, sleeps, of=10 * MS, looks=20 * US):
    """Main sleeps in series, and waits for a file after each."""
    trace = Trace(1)
    trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    now = MS
    for _ in range(series):
        for _ in range(sleeps):
            trace.block(now, 0, "sleep", ("main.lock_folder", "main.main"))
            now += of
            trace.at(now, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(now + 10, 0, 1)
            now += looks
        trace.log(now, 0, "wait", "file log")
        trace.block(now + 10, 0, "syscall", ("main.append", "main.main"))
        now += MS
        trace.at(now, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + 10, 0, 1)
        now += MS
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


@test
def series_of_sleeps_with_other_waits_in_between_are_polling():
    text = in_series(10, 6)["polling"]["text"]
    assert text.startswith("main.lock_folder (main.go:10) polls: it slept 60 times for 10.0 ms on average."), text
    # One series, or few sleeps in each, may keep a pace, as do those after work.
    assert "polling" in in_series(14, 4) and "polling" not in in_series(30, 2)
    assert "polling" not in in_series(3, 20)
    assert "polling" not in in_series(10, 6, looks=200 * US)
    assert "polling" not in in_series(10, 6, of=51 * MS)


@test
def sleeps_that_nothing_depends_on_are_no_polling():
    assert "polling" not in sampled(), sampled()
    # Several threads may do the work together.
    assert "polling" in sampled(other=True)
    # Main may need what it also looks for, be it not for the longest time.
    assert "polling" in sampled(other="main")
    # Nothing is done meanwhile.
    assert "polling" in sampled(idle=True)
    # Main waits for what it does for a tenth of the time.
    assert "polling" not in sampled(rests=29) and "polling" in sampled(rests=31)


if __name__ == "__main__":
    sys.exit(main())
