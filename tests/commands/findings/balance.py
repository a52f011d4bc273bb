#!/usr/bin/env python3
"""Uneven and serial work: imbalance, stragglers, serial phases. TAP.

usage: balance.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import GROUP, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import awaited, owned, produced, workers  # noqa: E402
from tap import test  # noqa: E402


def straggles(late, others=20 * MS, count=4, end=None, waiter=1, reason="sync", place=GROUP, before=None):
    """Main waits for this many goroutines that it created, or another one does, the last of which ends later than the others, after a sleep.
    `before`: so long after the others have ended, it ends a wait as well."""
    trace = Trace(count + 2)
    trace.here(1, 2, 0)
    if waiter != 1:
        trace.here(waiter, 2, count + 1)
    for i in range(count):
        trace.create(10 + i, 0, 10 + i, ("main.start", "main.crawl"))
        trace.start(MS, 1 + i, 10 + i)
        if i < count - 1:
            trace.at(others, 1 + i, "GoDestroy")
    trace.block(2 * MS, 0 if waiter == 1 else count + 1, reason, place)
    if before:
        trace.at(others + before, count, f"GoUnblock g={waiter} g_seq=%d stack=0", waiter)
        trace.start(others + before + 10, 0, waiter)
        trace.block(others + before + 20, 0, reason, place)
    trace.block((others + before if before else 0) + 3 * MS, count, "sleep", ("time.Sleep", "main.crawl"))
    trace.wake(others + late - 10, count, 9 + count, ())
    trace.start(others + late - 5, count, 9 + count)
    trace.wake(others + late, count, waiter, ("main.crawl",))
    trace.start(others + late + 10, 0 if waiter == 1 else count + 1, waiter)
    trace.at(others + late + 20, count, "GoDestroy")
    end = end or others + late + 30
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_goroutine_that_ends_long_after_the_others_of_its_group_is_a_straggler():
    found = straggles(80 * MS)["straggler"]
    assert re.match(r"One goroutine of main\.crawl held up the WaitGroup at main\.deposit \(main\.go:11\)\. Goroutine 13 ended 80\.0 ms after all others created "
                    r"at main\.start \(main\.go:10\)\. For 99 % of that time it was itself waiting \(sleep at main\.crawl \(main\.go:11\)\)\. At most 80\.0 ms of 100 ms", found["text"]), found
    assert found["function"] == "main.crawl" and abs(found["gain_ns"] - 80 * MS) < 10, found  # events take time themselves
    # From 50 ms, a quarter of the time, and three times the time of the other two on.
    assert "straggler" in straggles(50 * MS + 10) and "straggler" not in straggles(50 * MS - 10)
    assert "straggler" in straggles(80 * MS, end=320 * MS - 40) and "straggler" not in straggles(80 * MS, end=320 * MS + 40)
    assert "straggler" in straggles(80 * MS, others=40 * MS) and "straggler" not in straggles(80 * MS, others=40 * MS + 50)
    assert "straggler" in straggles(80 * MS, count=3) and "straggler" not in straggles(80 * MS, count=2)


@test
def one_that_sends_its_result_to_its_creator_long_after_the_others_is_a_straggler():
    channel = {"reason": "chan receive", "place": ("main.gather",)}
    text = straggles(80 * MS, **channel)["straggler"]["text"]
    assert re.match(r"One goroutine of main\.crawl held up the receive at main\.gather \(main\.go:10\)\. Goroutine 13 sent its result 80\.0 ms after all others created "
                    r"at main\.start \(main\.go:10\) had ended\. For 99 % of that time it was itself waiting \(sleep at main\.crawl \(main\.go:11\)\)\.", text), text
    # A source sends again and again.
    assert "straggler" not in straggles(120 * MS, before=60 * MS, **channel)
    # Another one may well receive what comes, and have nothing else to do.
    assert "straggler" not in straggles(80 * MS, waiter=40, **channel)
    assert "straggler" not in straggles(80 * MS, reason="select", place=("main.gather",))


def exits(late, count=4, others=20 * MS, end=None, first="main.load", naps=1, works=False):
    """Main in a C program waits for threads to exit, the last of which sleeps, once or in several short naps, until long after the others'
    exits. Two more may work until the end."""
    trace = Trace(count + 3)
    trace.here(1, 2, 0)
    for n in (1, 2) if works else ():
        trace.here(70 + n, 2, count + n)
    for i in range(count):
        trace.create(10 + i, 0, 10 + i, ("main.start", "main.load" if i else first))
        trace.start(MS, 1 + i, 10 + i)
        if i < count - 1:
            trace.at(others, 1 + i, "GoDestroy")
    trace.log(2 * MS - 10, 0, "wait", "join main.load")
    trace.block(2 * MS, 0, "sync", ("main.deposit",))
    nap = (others + late - 10 - 3 * MS) // naps
    for i in range(naps):
        trace.block(3 * MS + i * nap, count, "sleep", ("main.load",))
        trace.wake(3 * MS + (i + 1) * nap - 10, count, 9 + count, ())
        trace.start(3 * MS + (i + 1) * nap - 5, count, 9 + count)
    trace.wake(others + late, count, 1, ("main.load",))
    trace.at(others + late + 20, count, "GoDestroy")
    end = end or others + late + 30
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_thread_that_exits_long_after_the_others_is_a_straggler():
    found = exits(80 * MS)["straggler"]
    assert " of main.load held up the " in found["text"] and "13 ended 80.0 ms after all others created at main.start (main.go:10)." in found["text"], found
    assert "straggler" not in exits(50 * MS - 10)
    assert "straggler" not in exits(80 * MS, others=40 * MS + 50)
    assert "straggler" not in exits(80 * MS, count=2)


@test
def one_of_different_threads_that_sleeps_long_holds_up_what_waits_for_its_exit():
    text = exits(80 * MS, count=2, first="main.draw")["straggler"]["text"]
    assert text.startswith("main.load held up main.deposit (main.go:10). Its exit was waited for during 97 % of the time (1 wait of 98.0 ms"), text
    assert "For 99 % of that time it was itself waiting (sleep at main.load (main.go:10))." in text, text
    assert "straggler" not in exits(30 * MS, count=2, first="main.draw")
    assert "straggler" not in exits(80 * MS, count=2, first="main.draw", naps=3)  # a pace
    assert "straggler" not in exits(80 * MS, count=2, first="main.draw", works=True)  # while others work
    assert "straggler" not in exits(80 * MS, count=1)  # there is no other


def arrives(sleeps, length=10 * MS, kind="barrier step", takes_turns=False, ready=False, apart=1, ends_at=("main.meet", "main.draw"), second=0, sleeps_at=("main.fetch",)):
    """Three threads meet ten times at a barrier. The third, or each in turn, sleeps (or is ready)
    for `sleeps` before it, and then ends the waits of the others, `apart` ns one after the
    other. The second comes `second` after the first."""
    trace = Trace(4)
    trace.here(99, 2, 0)
    for g in (1, 2, 3):
        trace.create(10 + g, 0, g, ("main.draw",))
        trace.start(20 + g, g, g)
    if ready:  # main waits for a lock: then time without a CPU is counted
        trace.log(28, 0, "wait", "mutex m")
    trace.block(30, 0, "sync" if ready else "chan receive", ("main.main",))
    now = MS
    for i in range(10):
        late = 1 + i % 3 if takes_turns else 3
        for g in (1, 2, 3):
            if g == late:
                if ready:
                    trace.at(now + g, g, f"GoStop reason_string={trace.string('preempted')} stack=0")
                else:
                    trace.block(now + g, g, "sleep", (sleeps_at[i % len(sleeps_at)], "main.draw"))
                    trace.at(now + sleeps, g, f"GoUnblock g={g} g_seq=%d stack=0", g)
                trace.start(now + sleeps + 10, g, g)
            else:
                comes = now + g + (second if g == 2 else 0)
                trace.log(comes, g, "wait", kind)
                trace.block(comes + 10, g, "sync", ("main.meet", "main.draw"))
        end = now + max(sleeps + 100, length - 200 * US)
        for g in (1, 2, 3):
            if g != late:
                trace.wake(end + g * apart, late, g, ends_at)
                trace.start(end + 10 + g * apart, g, g)
        now = end + 200 * US
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


@test
def a_thread_that_is_late_for_a_barrier_because_it_waits_is_named():
    found = arrives(8 * MS)["straggler"]
    assert re.match(r"One goroutine of main\.draw held up barrier step\. Goroutine 3 came last\. Others waited for it at main\.meet \(main\.go:10\) during \d+ % of the time: 20 waits, ", found["text"]), found
    assert "was itself waiting (sleep at main.fetch (main.go:10))." in found["text"], found
    equal((found["function"], found["object"]), ("main.draw", "barrier step"))
    assert "straggler" in arrives(5 * MS) and "straggler" not in arrives(4800 * US)  # from half of the time on
    # What is saved is its sleep, also if a second one waits only after that.
    for second in (0, 8 * MS):
        equal(round(arrives(7 * MS, second=second)["straggler"]["gain_ns"] / MS), 70)
    # The stack of the one that comes last need not be recorded.
    equal(arrives(8 * MS, ends_at=())["straggler"]["text"], found["text"])
    # Whichever comes last may wait, as in a barrier's completion; what each waits there is then saved.
    found = arrives(8 * MS, takes_turns=True)["straggler"]
    equal(found["gain_ns"], 0)  # the others may wait before they come, too
    text = found["text"]
    assert text.startswith("Goroutines of main.draw held each other up at barrier step. They came last in turn. Others waited for the last one at main.meet (main.go:10) during "), text
    assert "was itself waiting (sleep at main.fetch (main.go:10))." in text, text
    assert "straggler" not in arrives(8 * MS, takes_turns=True, sleeps_at=("main.fetch", "main.load", "main.open"))
    assert "straggler" not in arrives(8 * MS, ready=True)  # it lacks a CPU
    # A condition variable through which they end each other's waits, all at the same time, is a
    # barrier, too.
    found = arrives(8 * MS, kind="condition step")["straggler"]
    assert found["text"].startswith("One goroutine of main.draw held up condition step. "), found
    assert "straggler" not in arrives(8 * MS, kind="condition step", apart=50 * US)
    assert "straggler" not in arrives(8 * MS, kind="semaphore step")


def made(sleep, every=10 * MS, main_makes=False, group=True, makers=1):
    """Goroutine 3 receives what goroutine 2, or main, or in turn one of `makers`, produces after a sleep; main, or else goroutine 4, waits for
    goroutine 3 with a WaitGroup."""
    trace = Trace(3 + makers)
    trace.here(1, 2, 0)
    trace.create(100, 0, 3, ("main.start", "main.consume"))
    trace.create(200, 0, 2, ("main.start", "main.produce"))
    for more in range(1, makers):
        trace.create(200 + more, 0, 20 + more, ("main.start", "main.produce"))
        trace.start(310, 2 + more, 20 + more)
    trace.start(300, 2, 3)
    trace.start(300, 1, 2)
    maker, thread = (1, 0) if main_makes else (2, 1)
    if main_makes:
        trace.create(250, 0, 4, ("main.start", "main.close"))
        trace.start(350, 3, 4)
    trace.block(400, 3 if main_makes else 0, "sync" if group else "sleep", GROUP)
    for i in range(10):
        now = MS + i * every
        if i % makers:
            maker, thread = 20 + i % makers, 2 + i % makers
        elif makers > 1:
            maker, thread = 2, 1
        trace.block(now, 2, "chan receive", ("runtime.chanrecv1", "main.consume"))
        trace.block(now + 10, thread, "sleep", ("time.Sleep", "main.poll", "main.produce"))
        trace.wake(now + 10 + sleep, thread, maker, ())
        trace.start(now + 20 + sleep, thread, maker)
        trace.wake(now + 9 * MS, thread, 3, ("runtime.chansend1", "main.produce"))
        trace.start(now + 9 * MS + 10, 2, 3)
    end = MS + 10 * every
    if group:
        trace.wake(end, 2, 4 if main_makes else 1, ("main.consume",))
        trace.start(end + 10, 3 if main_makes else 0, 4 if main_makes else 1)
    return trace.findings(end + MS, "--from=0ns", f"--to={end + MS}ns")


@test
def a_goroutine_that_sleeps_while_what_it_makes_is_needed_is_named():
    found = made(8 * MS)["sleeper"]
    assert re.match(r"main\.produce sleeps while others wait for what it makes\. They waited at main\.consume \(chan receive\) during 88 % of the time, 10 times, "
                    r"90\.0 ms in all, the longest 9\.00 ms; for 89 % of that it slept \(main\.poll \(main\.go:11\)\)", found["text"]), found
    equal(found["function"], "main.produce")
    # From half of the wait, and half of the time, on.
    assert "sleeper" in made(4510 * US) and "sleeper" not in made(4490 * US)
    assert "sleeper" in made(8 * MS, every=17 * MS) and "sleeper" not in made(8 * MS, every=18 * MS)
    # Several are sources, each with its pace.
    assert "sleeper" not in made(8 * MS, makers=2)
    # Main itself sets the pace, or does not wait for the receiver, which is then an idle client.
    assert "sleeper" not in made(8 * MS, main_makes=True) and "sleeper" not in made(8 * MS, group=False)


def collecting(items, first=500 * US):
    """Goroutine 2 collects in select until a timer ends that after 9 ms, and so many items came from `first` on, then gives
    goroutine 3 a result."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.create(100, 0, 2, ("main.collect",))
    trace.create(200, 0, 3, ("main.insert",))
    trace.start(300, 1, 2)
    trace.start(300, 2, 3)
    trace.block(400, 0, "sync", GROUP)
    for i in range(10):
        now = MS + i * 10 * MS
        trace.block(now, 1, "select", ("runtime.selectgo", "main.collect"))
        for item in range(items):
            begin = now + first + 20 * US * item
            trace.wake(begin, 2, 2, ("runtime.chansend1", "main.insert"))
            trace.start(begin + 10, 1, 2)
            trace.block(begin + 20, 1, "select", ("runtime.selectgo", "main.collect"))
        trace.block(now + first + MS // 2, 2, "chan receive", ("runtime.chanrecv1", "main.insert"))
        trace.wake(now + 9 * MS, 1, 2, ())
        trace.start(now + 9 * MS + 10, 1, 2)
        trace.wake(now + 9 * MS + 20, 1, 3, ("runtime.chansend1", "main.collect"))
        trace.start(now + 9 * MS + 30, 2, 3)
    end = 101 * MS
    trace.wake(end, 2, 1, ("main.insert",))
    trace.start(end + 10, 0, 1)
    return trace.findings(end + MS, "--from=0ns", f"--to={end + MS}ns")


@test
def a_goroutine_that_collects_until_a_timer_ends_waits_for_nothing_else():
    text = collecting(2)["sleeper"]["text"]
    assert text.startswith("main.collect waits until a time limit while others wait for what it makes. They waited at main.insert (chan receive) during "), text
    # Timers end at most half of the waits: else they are the pace. And 90 % of their time.
    assert "sleeper" in collecting(1) and "sleeper" not in collecting(0)
    assert "sleeper" in collecting(1, first=890 * US) and "sleeper" not in collecting(1, first=910 * US)


def workers_on_two_slots():
    """Worker 1 runs for 60 ms, beside it first 2, then 3 for 20 ms each."""
    trace = Trace(2)
    trace.here(99, 2, 0)
    for n in range(1, 4):
        trace.create(10 + n, 0, n)
    trace.start(20, 1, 1)
    trace.log(50, 0, "wait", "join worker")
    trace.block(60, 0, "sync", ("main.main",))
    for n in 2, 3:
        trace.start((n - 2) * 20 * MS + 70, 0, n)
        trace.log((n - 1) * 20 * MS, 0, "wait", "barrier step")
        trace.block((n - 1) * 20 * MS + 10, 0, "sync", WORK_STACK)
    for at, g in (100, 2), (200, 3), (300, 99):
        trace.wake(60 * MS + at, 1, g, WORK_STACK)
        trace.start(60 * MS + at + 10, 0, g)
        trace.at(60 * MS + at + 20, 0, "GoDestroy")
    trace.at(60 * MS + 400, 1, "GoDestroy")
    return trace.findings(60 * MS + 500, "--from=0ns", f"--to={60 * MS + 500}ns")


@test
def threads_whose_names_differ_in_a_number_are_of_one_kind():
    text = workers(60 * MS, 20 * MS, names=("cell-1", "cell-2", "cell-10"))["imbalance"]["text"]
    assert text.startswith("The work of cell-* is divided unevenly. "), text
    assert "imbalance" not in workers(60 * MS, 20 * MS, names=("cell-1", "disk-1", "net-1"))
    # The only one of its kind keeps its name; functions are different ones.
    assert produced(of=("fetch-1", "main.parse"), awaited="fetch-1")["slow-producer"]["text"].startswith("fetch-1 is the bottleneck"), "one"
    assert "imbalance" not in workers(60 * MS, 20 * MS, names=("main.cell1", "main.cell2", "main.cell3"))
    # Functions of a program without debug information have no file, either.
    assert "imbalance" not in workers(60 * MS, 20 * MS, names=("pthread1", "pthread2", "pthread3"))


@test
def a_worker_with_most_of_the_work_is_named():
    found = workers(60 * MS, 20 * MS)
    assert "imbalance" in found, found
    text = found["imbalance"]["text"]
    assert " 1 ran for 60.0 ms, the other 2 for 20.0 ms on average. Others waited for it (barrier step at main.work (main.go:10)) for 40.0 ms." in text, text
    assert "imbalance" in workers(60 * MS, 29 * MS)
    assert "imbalance" not in workers(60 * MS, 31 * MS)
    assert "imbalance" not in workers(49 * MS, 10 * MS)
    # What the busiest ran for longer than its part, 27 ms, is not why others waited for 300 ms; it can gain no more.
    assert "imbalance" not in workers(60 * MS, 20 * MS, sleeps=260 * MS)
    equal(round(workers(60 * MS, 20 * MS, sleeps=100 * MS)["imbalance"]["gain_ns"] / MS, 1), 26.7)
    # 100 ms of work on two slots take 50 ms at least, 10 ms less.
    equal(round(workers_on_two_slots()["imbalance"]["gain_ns"] / MS, 1), 10.0)
    # Of two that meet after 641 and 161 ms, one works alone for 480 ms, half of which the other could do.
    equal(round(workers(641 * MS, 161 * MS, count=2)["imbalance"]["gain_ns"] / MS), 240)
    # A condition variable serves as a barrier; of a semaphore it is only known that it held up the
    # join.
    assert "(condition step at main.work" in workers(60 * MS, 20 * MS, kind="condition step")["imbalance"]["text"]
    assert "(semaphore step" not in workers(60 * MS, 20 * MS, kind="semaphore step")["imbalance"]["text"]


@test
def a_static_variable_is_initialised_once():
    found = owned(object="guard variable for store()::s", owns="guard variable for store()::s", kind="mutex")
    equal(list(found), ["once"])
    assert found["once"]["text"].endswith("Initialise it before it is needed, or make that faster."), found


def parallel_loop(alone=6 * MS, wait="OpenMP barrier 0x10"):
    """Ten times, main and a worker run for 4 ms, and the worker so much longer while main waits for it."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("OpenMP worker",))
    trace.start(20, 1, 2)
    now = MS
    for _ in range(10):
        now += 4 * MS
        trace.log(now - 10, 0, "wait", wait)
        trace.block(now, 0, "sync", ("main.forces", "main.main"))
        now += alone
        trace.wake(now, 1, 1, ("main.row", "main.forces", "OpenMP worker"))
        trace.start(now + 10, 0, 1)
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def a_parallel_region_whose_barrier_is_waited_at_is_divided_unevenly():
    found = parallel_loop()
    equal(list(found), ["imbalance"])
    equal(
        found["imbalance"]["text"],
        "The work of the parallel region at main.forces (main.go:10) is divided unevenly. "
        "Others waited at its barrier for 59 % of the time, 10 waits, 60.0 ms in all, the longest 6.00 ms, "
        "until OpenMP worker came, which had work alone. At most 30.0 ms of 102 ms would be saved. "
        "Divide it evenly, or at run time (schedule(dynamic)).",
    )
    equal(list(parallel_loop(wait="barrier b")), ["serial-phase"])


def initialised(ns, waiters=3, kind="once model_once", sleeps=True, of=1000 * MS):
    """Goroutine 1 initialises for this long while others wait for it, out of this much time. In Go,
    each waiter wakes the next."""
    once = ("sync.(*Mutex).Lock", "sync.(*Once).doSlow", "sync.(*Once).Do", "main.use", "main.serve")
    leave = ("sync.(*Mutex).Unlock", "sync.(*Once).doSlow", "sync.(*Once).Do", "main.use", "main.serve")
    trace = Trace(waiters + 2)
    trace.here(99, 2, 0)
    for g in range(1, waiters + 2):
        trace.create(10 + g, 0, g, ("main.serve",))
        trace.start(30 + g, g, g)
    trace.block(40, 0, "chan receive", ("main.main",))
    if sleeps:
        trace.block(50, 1, "sleep", ("time.Sleep", "main.load", "main.use", "main.serve"))
        trace.at(ns, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(ns + 10, 1, 1)
    for g in range(2, waiters + 2):
        if kind:
            trace.log(90 + g, g, "wait", kind)
        trace.block(100 + g, g, "sync", ("main.use", "main.serve") if kind else once)
        end = ns + 100 + (0 if kind else 50 * US * g)
        trace.wake(end, 1 if kind else g - 1, g, ("main.use", "main.serve") if kind else leave)
        trace.start(end + 20, g, g)
    for g in range(1, waiters + 2):
        trace.at(ns + MS, g, "GoDestroy")
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def an_initialisation_that_others_wait_for_is_no_uneven_work():
    found = initialised(300 * MS, sleeps=False)
    text = found["once"]["text"]
    assert text.startswith("An initialisation that runs once (once model_once) at main.use (main.go:10) held others up for 300 ms. They waited for 900 ms in all, the longest for 300 ms."), text
    assert "imbalance" not in found, found
    equal((found["once"]["function"], found["once"]["object"]), ("main.use", "once model_once"))
    found = initialised(300 * MS, kind=None)
    text = found["once"]["text"]
    assert text.startswith("An initialisation that runs once (sync.Once) at main.use (main.go:13) held others up for 300 ms. They waited for 900 ms in all"), text
    assert "For 100 % of that time it was itself waiting (sleep at main.load (main.go:11))." in text, text
    # From a fifth of the time, and 100 ms, on.
    assert "once" in initialised(201 * MS) and "once" not in initialised(199 * MS)
    assert "once" in initialised(101 * MS, of=300 * MS) and "once" not in initialised(99 * MS, of=300 * MS)
    assert "once" not in initialised(300 * MS, kind="barrier step")
    assert "imbalance" in initialised(300 * MS, kind="barrier step", sleeps=False)


def answering(naps=8 * MS, joined=0, limit=False, twice=False):
    """Thread 2 sleeps, or with `limit` waits until a time limit, for every answer that thread 1 waits for, and for which main waits, then for 2
    for `joined`. `twice`: thread 1 is woken in between, as when its request is read."""
    trace = Trace(3)
    trace.string("trail.made by=record")
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.client",))
    trace.create(11, 0, 2, ("main.server",))
    trace.start(20, 1, 1)
    trace.start(21, 2, 2)
    trace.log(30, 0, "wait", "join client")
    trace.block(40, 0, "sync", ("main.main",))
    for i in range(20):
        now = MS + i * 10 * MS
        trace.log(now, 1, "wait", "read socket:[7]")
        trace.block(now + 10, 1, "network", ("main.ask", "main.client"))
        if limit:
            trace.log(now + 15, 2, "wait", "condition full_cv")
        trace.block(now + 20, 2, "sync.(*Cond).Wait" if limit else "sleep", ("main.save", "main.server"))
        trace.at(now + 20 + naps, 2, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(now + 30 + naps, 2, 2)
        if limit:
            trace.log(now + 40 + naps, 2, "wait", "timed out")
        if twice:
            trace.at(now + MS, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(now + MS + 10, 1, 1)
            trace.log(now + MS + 20, 1, "wait", "read socket:[7]")
            trace.block(now + MS + 30, 1, "network", ("main.ask", "main.client"))
        trace.wake(now + 9 * MS, 2, 1, ("main.reply", "main.server"))
        trace.start(now + 9 * MS + 10, 1, 1)
    end = 202 * MS
    trace.wake(end, 1, 99, ("main.client",))
    trace.at(end + 10, 1, "GoDestroy")
    trace.start(end + 20, 0, 99)
    if joined:
        trace.log(end + 30, 0, "wait", "join server")
        trace.block(end + 40, 0, "sync", ("main.main",))
        trace.wake(end + joined, 2, 99, ("main.server",))
        trace.at(end + joined + 10, 2, "GoDestroy")
        trace.start(end + joined + 20, 0, 99)
    end += joined + 100
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_thread_that_sleeps_while_others_wait_for_its_answers_is_named():
    text = answering()["sleeper"]["text"]
    assert text.startswith("main.server sleeps while others wait for what it makes. They waited at main.client (read socket:[7]) during 89 % of the time, 20 times, "), text
    assert "it slept (main.save (main.go:10))" in text, text
    assert "sleeper" not in answering(naps=4 * MS)
    # A read that goes on, whatever woke it meanwhile, is one.
    equal(answering(twice=True)["sleeper"]["text"], text)
    # One that waits until a time limit might as well sleep.
    text = answering(limit=True)["sleeper"]["text"]
    assert text.startswith("main.server waits until a time limit while others wait for what it makes. They waited at main.client (read socket:[7]) during 89 %"), text
    assert "for 89 % of that it waited, mostly until the limit (condition full_cv). " in text, text
    # Main waits for its exit, too: it may be the one that sets the pace.
    assert "sleeper" in answering(joined=20 * MS) and "sleeper" not in answering(joined=30 * MS)


def relayed(asks=9 * MS, joins=True, child=False):
    """Thread 3 sleeps for every answer that thread 2 waits for, which serves thread 1. That waits for `asks` of 10 ms, and main for its exit; or,
    with `child`, thread 1 is another process, for whose exit main waits."""
    trace = Trace(4)
    trace.string("trail.made by=record")
    trace.here(1 if joins else 99, 2, 0)
    for g, start in ((5, "app (12): main" if child else "main.client"), (2, "main.loop"), (3, "main.store")):
        trace.create(10 + g, 0, g, (start,))
    for g, thread in ((5, 1), (2, 2), (3, 3)):
        trace.start(20 + g, thread, g)
    trace.log(30, 0, "wait", "child process" if child else "join client" if joins else "signal")
    trace.block(40, 0, "sync", ("main.main",))
    for i in range(20):
        now = MS + i * 10 * MS
        trace.log(now, 2, "wait", "read socket:[8]")
        trace.block(now + 10, 2, "network", ("main.fetch", "main.loop"))
        trace.log(now + 9 * MS - asks, 1, "wait", "read socket:[7]")
        trace.block(now + 9 * MS - asks + 10, 1, "network", ("main.ask", "main.client"))
        trace.block(now + 20, 3, "sleep", ("main.load", "main.store"))
        trace.at(now + 8 * MS, 3, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(now + 8 * MS + 10, 3, 3)
        trace.wake(now + 9 * MS - 30, 3, 2, ("main.put", "main.store"))
        trace.start(now + 9 * MS - 10, 2, 2)
        trace.wake(now + 9 * MS, 2, 5, ("main.reply", "main.loop"))
        trace.start(now + 9 * MS + 10, 1, 5)
    end = 202 * MS
    trace.wake(end, 1, 1 if joins else 99, ("main.client",))
    trace.at(end + 10, 1, "GoDestroy")
    trace.start(end + 20, 0, 1 if joins else 99)
    return trace.findings(end + 100, "--from=0ns", f"--to={end + 100}ns")


@test
def what_delays_the_one_that_others_need_is_named():
    found = relayed()
    text = found["sleeper"]["text"]
    assert text.startswith("main.store sleeps while others wait for what it makes. They waited at main.loop (read socket:[8]) during 89 % of the time, 20 times, "), text
    # Nothing needs the clients, or these hardly wait for the one that waits.
    assert "sleeper" not in relayed(joins=False), relayed(joins=False)
    assert "sleeper" not in relayed(asks=4 * MS), relayed(asks=4 * MS)
    # Main, as a shell does, waits for the exit of another process.
    text = relayed(child=True)["sleeper"]["text"]
    assert text.startswith("main.store sleeps while others wait for what it makes. "), text


@test
def one_that_sleeps_while_others_of_its_kind_wait_for_it_is_named():
    """As where the first that wants something makes it for all, and the others wait for it."""
    trace = Trace(5)
    trace.here(1, 2, 0)
    for g in range(2, 6):
        trace.create(10 + g, 0, g, ("main.request",))
        trace.start(20 + g, g - 1, g)
    trace.block(40, 0, "sync", GROUP)
    trace.block(50, 1, "sleep", ("time.Sleep", "main.load", "main.request"))
    for g in range(3, 6):
        trace.block(60 + g, g - 1, "chan receive", ("runtime.chanrecv1", "main.get", "main.request"))
    trace.at(100 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
    trace.start(100 * MS + 10, 1, 2)
    for g in range(3, 6):
        trace.wake(100 * MS + 10 * g, 1, g, ("runtime.closechan", "main.request"))
        trace.start(100 * MS + 100 + g, g - 1, g)
        trace.at(100 * MS + 200 + g, g - 1, "GoDestroy")
    trace.wake(100 * MS + 300, 1, 1, ("sync.(*WaitGroup).Done", "main.request"))
    trace.start(100 * MS + 400, 0, 1)
    end = 101 * MS
    text = trace.findings(end, "--from=0ns", f"--to={end}ns")["sleeper"]["text"]
    assert text.startswith("main.request sleeps while others wait for what it makes. ") and "it slept (main.load (main.go:11))" in text, text


@test
def a_lock_that_is_held_until_a_queue_has_room_comes_after_what_empties_it():
    trace = Trace(4)
    trace.string("trail.made by=record")
    trace.here(9, 2, 0)
    for g, start in ((1, "main.request"), (2, "main.request"), (3, "main.sink")):
        trace.create(10 + g, 0, g, (start,))
        trace.start(20 + g, g, g)
    trace.log(30, 3, "wait", "condition item")
    trace.block(40, 3, "sync.(*Cond).Wait", ("main.take", "main.sink"))
    trace.wake(50, 1, 3, ("main.put", "main.relay", "main.request"))
    trace.start(60, 3, 3)
    trace.log(70, 2, "wait", "mutex route_mu")
    trace.block(80, 2, "sync", ("main.relay", "main.request"))
    for i in range(20):
        now, mine, other = MS + i * 10 * MS, 1 + i % 2, 2 - i % 2
        trace.log(now, mine, "wait", "condition room")
        trace.block(now + 10, mine, "sync.(*Cond).Wait", ("main.put", "main.relay", "main.request"))
        trace.block(now + 20, 3, "sleep", ("main.store", "main.sink"))
        trace.at(now + 9 * MS + 900 * US, 3, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(now + 9 * MS + 910 * US, 3, 3)
        trace.wake(now + 9 * MS + 920 * US, 3, mine, ("main.take", "main.sink"))
        trace.start(now + 9 * MS + 930 * US, mine, mine)
        trace.wake(now + 9 * MS + 950 * US, mine, other, ("main.relay", "main.request"))
        trace.start(now + 9 * MS + 960 * US, other, other)
        trace.log(now + 9 * MS + 970 * US, mine, "wait", "mutex route_mu")
        trace.block(now + 9 * MS + 980 * US, mine, "sync", ("main.relay", "main.request"))
    found = trace.summary(202 * MS, "--from=0ns", f"--to={202 * MS}ns")["findings"]
    equal([f["kind"] for f in found], ["sleeper", "lock-serialises"])
    assert "it slept (main.store (main.go:10))" in found[0]["text"] and found[1]["text"].startswith("main.relay (main.go:10) held mutex route_mu"), found


@test
def who_polls_or_waits_for_a_signal_needs_what_comes_if_the_program_does():
    for wanted in ("poll pipe:[7]", "signal"):
        text = awaited(wanted)["sleeper"]["text"]
        assert text.startswith(f"main.sensor sleeps while others wait for what it makes. They waited at main.await ({wanted}) during 99 % of the time, 4 times, "), text
        text = awaited(wanted, works="runs")["bottleneck"]["text"]
        assert text.startswith("main.sensor is the bottleneck: it had work for "), text
        # A loop of events that nothing else waits for may only serve.
        equal(awaited(wanted, waiter=50), {})
        equal(awaited(wanted, works="runs", waiter=50), {})
    equal(awaited("accept", works="runs"), {})


@test
def what_comes_long_after_the_others_holds_up_what_waits_for_all():
    def opened(last, reason="latch shards", other=False):
        trace = Trace(5)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        trace.create(10, 0, 5, ("main.other",))
        trace.start(12, 4, 5)
        for g in (2, 3, 4):
            trace.create(10 * g, 4 if other else 0, g, ("main.load",))
            trace.start(10 * g + 5, g - 1, g)
        trace.log(MS, 0, "wait", reason)
        trace.block(MS + 10, 0, "sync", ("main.main",))
        for g in (2, 3):
            trace.at(g * 10 * MS, g - 1, "GoDestroy")
        trace.wake(last, 3, 1, ("main.load",))
        trace.start(last + 10, 0, 1)
        return trace.findings(last + 20 * MS, "--from=0ns", f"--to={last + 20 * MS}ns")

    text = opened(150 * MS)["straggler"]["text"]
    assert text.startswith("One thread of main.load held up the wait at main.main (main.go:10). Thread 4 ended it 120 ms after all others created at main.load (main.go:10) had ended."), text
    # One is always the last.
    assert "straggler" not in opened(80 * MS)
    # So does what else the one that created them waits for.
    for reason in "condition done_cv", "semaphore shards", "futex word", "atomic left":
        equal(opened(150 * MS, reason)["straggler"]["text"], text)
        assert "straggler" not in opened(150 * MS, reason, other=True)
    assert "straggler" in opened(150 * MS, other=True)


def watched(until=60 * MS, sleep=MS, first=60 * MS):
    """Main sleeps for short times until the last of three workers, which run for `first`, 20 ms and 20 ms, has
    ended."""
    trace = Trace(4)
    trace.here(99, 2, 0)
    for n in (1, 2, 3):
        trace.create(10 + n, 0, n)
        trace.start(20 + n, n, n)
        trace.at(first if n == 1 else 20 * MS, n, "GoDestroy")
    at = 100
    while at < until:
        trace.block(at, 0, "sleep", ("main.main",))
        at += sleep
        trace.at(at, 0, "GoUnblock g=99 g_seq=%d stack=0", 99)
        trace.start(at + 10, 0, 99)
        at += 200 * US
    end = max(at, first) + MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_slow_worker_that_another_polls_for_is_named():
    text = watched()["imbalance"]["text"]
    assert " 1 ran for 60.0 ms, the other 2 for 20.0 ms on average. Others waited for it (sleep at main.main (main.go:10)) for " in text, text
    # If the sleeps end earlier or later, they have another reason.
    assert "imbalance" not in watched(until=40 * MS)
    assert "imbalance" not in watched(until=80 * MS)
    assert "imbalance" not in watched(first=39 * MS, until=39 * MS)
    assert "imbalance" not in watched(sleep=21 * MS)


def shared(sleep, group=True, alike=True, every=10 * MS, of=0):
    """Goroutines 2, 3 and 4 wait with a WaitGroup until one of them, each in its turn, has slept this long."""
    trace = Trace(4)
    trace.here(1, 2, 0)
    for n in (2, 3, 4):
        trace.create(10 + n, 0, n, ("main.start", "main.page" if alike or n > 2 else "main.load"))
        trace.start(20 + n, n - 1, n)
    trace.block(100, 0, "chan receive", WORK_STACK)
    for i in range(9):
        at, does = MS + i * every, 2 + (i % 3 if alike else 0)
        others = [n for n in (2, 3, 4) if n != does]
        for n in others:
            trace.block(at, n - 1, "sync" if group else "chan receive", ("sync.(*WaitGroup).Wait", "main.fetch", "main.page"))
        trace.block(at + 10, does - 1, "sleep", ("time.Sleep", "main.load", "main.page"))
        trace.at(at + sleep, does - 1, f"GoUnblock g={does} g_seq=%d stack=0", does)
        trace.start(at + sleep + 10, does - 1, does)
        for n in others:
            trace.wake(at + 9 * MS + n, does - 1, n, ("sync.(*WaitGroup).Done", "main.fetch", "main.page"))
            trace.start(at + 9 * MS + 100 + n, n - 1, n)
    end = of or 2 * MS + 9 * every
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def goroutines_that_wait_for_one_of_them_name_what_that_waits_for():
    text = shared(8 * MS)["straggler"]["text"]
    assert text.startswith("Goroutines of main.page waited for one of them at main.fetch (main.go:11) for 88 % of the time. 18 waits, 162 ms in all, the longest 9.00 ms, "
                           "ended by main.fetch (main.go:11). For 89 % of that time it was itself waiting (sleep at main.load (main.go:11))."), text
    # From half of the waits, and of the time, on.
    assert "straggler" in shared(4600 * US) and "straggler" not in shared(4400 * US)
    assert "straggler" in shared(8 * MS, of=161 * MS) and "straggler" not in shared(8 * MS, of=163 * MS)
    # Another kind of goroutine makes what they need, or they wait for work.
    assert "straggler" not in shared(8 * MS, alike=False) and "straggler" not in shared(8 * MS, group=False)


def asleep(before=20 * MS, sleeps=100 * MS, length=None, in_c=False, works=False, naps=1):
    """A goroutine sleeps, or a thread of a C program; so much later, main begins to wait for its end, which comes when it has slept."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.start", "main.refresher"))
    trace.start(20, 1, 2)
    begin, end = MS, MS + before + sleeps
    for n in range(naps):
        trace.block(begin + n * (end - begin) // naps, 1, "sleep", ("main.refresh", "main.refresher") if in_c else ("time.Sleep", "main.refresh", "main.refresher"))
        trace.at(begin + (n + 1) * (end - begin) // naps - 1000, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(begin + (n + 1) * (end - begin) // naps - 900, 1, 2)
    if in_c:
        trace.log(begin + before - 10, 0, "wait", "join main.refresher")
    trace.block(begin + before, 0, "sync", ("main.stop",) if in_c else ("sync.(*WaitGroup).Wait", "main.stop"))
    trace.wake(end, 1, 1, ("main.refresher",))
    trace.at(end + 100, 1, "GoDestroy")
    trace.start(end + 200, 0, 1)
    length = length or end + 300
    return trace.findings(length, "--from=0ns", f"--to={length}ns")


@test
def one_that_sleeps_on_when_its_end_is_waited_for_is_named():
    for in_c in (False, True):
        found = asleep(in_c=in_c)
        equal(list(found), ["sleeper"])
        text = found["sleeper"]["text"]
        assert re.match(r"main\.stop \(main\.go:1[01]\) waited for the end of main\.refresher, which was asleep\. 1 wait of 100 ms, 83 % of the time\. "
                        r"For 100 % of that time it was itself waiting \(sleep at main\.refresh \(main\.go:1[01]\)\)\. The sleep had begun before, and nothing ends a sleep early\. "
                        r"If it is asked to end meanwhile, let it wait for that, with a time limit, instead of sleeping\.$", text), text
        equal(found["sleeper"]["gain_ns"], 0)  # the sleep may be the work
        equal(found["sleeper"]["function"], "main.refresher")
        # What was begun to be waited for at once is the work that there is; naps are a pace.
        equal(asleep(before=10 * MS - 1, in_c=in_c), {})
        assert "sleeper" in asleep(before=10 * MS, in_c=in_c)
        equal(asleep(naps=3, in_c=in_c), {})
        equal(asleep(sleeps=49 * MS, in_c=in_c), {})
        equal(asleep(length=405 * MS, in_c=in_c), {})


@test
def of_several_rounds_the_straggler_says_what_it_waited_for():
    """Each time, main creates three goroutines and waits for them, one of which sleeps for 20 ms more than the others; the first time elsewhere."""
    trace = Trace(4)
    trace.here(1, 2, 0)
    for i in range(4):
        now = (1 + i) * 30 * MS
        for n in range(3):
            g = 10 + 3 * i + n
            trace.create(now + n, 0, g, ("main.start", "main.group"))
            trace.start(now + 100, 1 + n, g)
            if n < 2:
                trace.at(now + 3 * MS, 1 + n, "GoDestroy")
        trace.block(now + 200, 0, "sync", GROUP)
        trace.block(now + 300, 3, "sleep", ("time.Sleep", "main.archive" if i else "main.open", "main.group"))
        trace.at(now + 23 * MS - 100, 3, f"GoUnblock g={g} g_seq=%d stack=0", g)
        trace.start(now + 23 * MS - 50, 3, g)
        trace.wake(now + 23 * MS, 3, 1, ("main.group" if i else "main.first",))
        trace.at(now + 23 * MS + 10, 3, "GoDestroy")
        trace.start(now + 23 * MS + 20, 0, 1)
    text = trace.findings(150 * MS, "--from=0ns", f"--to={150 * MS}ns")["straggler"]["text"]
    assert "This was the longest of 4 times, 80.0 ms in all. For 100 % of that time it was itself waiting (sleep at main.archive (main.go:11))." in text, text


@test
def equal_workers_for_which_a_latch_waits_are_not_late():
    trace = Trace(3)
    trace.here(1, 2, 0)
    for g in (2, 3):
        trace.create(8 + g, 0, g, ("main.load",))
        trace.start(18 + g, g - 1, g)
        trace.block(50 + g, g - 1, "sleep", ("time.Sleep", "main.load"))
    trace.log(30, 0, "wait", "latch ready")
    trace.block(31, 0, "sync", ("main.main",))
    for g in (2, 3):
        trace.at(100 * MS + 100 * g, g - 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
        trace.start(100 * MS + 100 * g + 10, g - 1, g)
        if g == 3:
            trace.wake(100 * MS + 100 * g + 20, g - 1, 1, ("main.load",))
        trace.at(100 * MS + 100 * g + 30, g - 1, "GoDestroy")
    trace.start(100 * MS + 400, 0, 1)
    assert "straggler" not in trace.findings(100 * MS + 500, "--from=0ns", f"--to={100 * MS + 500}ns")


def in_rounds(rounds, sleep=8 * MS, main=1, since=0):
    """In each round of 10 ms, goroutine `main` creates two threads that sleep, and waits for the exit of each."""
    trace = Trace(3)
    trace.string("trail.made by=record")
    trace.here(main, 2, 0)
    for i in range(rounds):
        now = MS + i * 10 * MS
        for n in (1, 2):
            trace.create(now + n, 0, 10 + 2 * i + n, ("main.fetch",))
            trace.start(now + 10 + n, n, 10 + 2 * i + n)
            trace.block(now + 20 + n, n, "sleep", ("main.ask", "main.fetch"))
        for n in (1, 2):
            begin = now + 100 if n == 1 else now + sleep + 200 * US
            end = now + sleep + n * 150 * US
            trace.log(begin, 0, "wait", "join main.fetch")
            trace.block(begin + 10, 0, "sync", ("main.page", "main.main"))
            trace.at(end, n, f"GoUnblock g={10 + 2 * i + n} g_seq=%d stack=0", 10 + 2 * i + n)
            trace.start(end + 10, n, 10 + 2 * i + n)
            trace.wake(end + 20, n, main, ("main.fetch",))
            trace.at(end + 30, n, "GoDestroy")
            trace.start(end + 40, 0, main)
    end = MS + rounds * 10 * MS
    return trace.findings(end, f"--from={since}ns", f"--to={end}ns")


@test
def threads_that_sleep_and_whose_exit_is_awaited_in_rounds_are_named():
    found = in_rounds(6)["sleeper"]
    assert found["text"].startswith("main.fetch sleeps while others wait for its exit. They waited at main.page (main.go:10) (join main.fetch) during "), found
    assert "it slept (main.ask (main.go:10))." in found["text"], found
    equal(found["gain_ns"] // MS, 49)  # 8.15 ms and 0.1 ms of each round
    assert "sleeper" not in in_rounds(1, since=MS + 50 * US)  # created before the window: it may be no round
    # In two rounds, which may be all that there are, or if nothing needs the one that waits, they may keep a pace.
    equal((list(in_rounds(3)), in_rounds(2)), (["sleeper"], {}))
    equal(in_rounds(6, main=99), {})
    equal(in_rounds(6, sleep=4 * MS), {})


if __name__ == "__main__":
    sys.exit(main())
