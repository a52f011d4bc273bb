#!/usr/bin/env python3
"""Queues, permits, pools and bottlenecks. TAP.

usage: queues.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import answer, equal  # noqa: E402
from made import GROUP, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import alone, awaited, full, hand_over, permitted, polled, pooled, produced, timed  # noqa: E402
from tap import test  # noqa: E402


def at_a_futex(at=WORK_STACK, by=("main.publish", "main.main"), waiters=1, rounds=12):
    """Goroutine 1 runs, and every 10 ms ends the waits of the others for a futex; these run for 1 ms."""
    trace = Trace(1 + waiters)
    trace.here(1, 2, 0)
    for i in range(waiters):
        trace.here(2 + i, 2, 1 + i)
    for n in range(rounds):
        now = (1 + 10 * n) * MS
        for i in range(waiters):
            trace.log(now + i, 1 + i, "wait", "futex word")
            trace.block(now + 10 + i, 1 + i, "sync", at)
            trace.wake(now + 9 * MS + i, 0, 2 + i, by)
            trace.start(now + 9 * MS + 50 + i, 1 + i, 2 + i)
    return trace


@test
def a_futex_is_held_only_if_its_waiters_release_it_or_a_function_is_named_so():
    end = 122 * MS
    found = at_a_futex().findings(end)
    equal(list(found), ["bottleneck"])
    assert "(futex word)" in found["bottleneck"]["text"] and "held" not in found["bottleneck"]["text"], found
    equal(at_a_futex().summary(end)["activity"]["idle_lock_ns"], 0)
    for at, by in ((WORK_STACK, ("main.word_unlock", "main.publish")), (("main.fx_lock", "main.look_up"), WORK_STACK)):
        found = at_a_futex(at, by).findings(end)
        assert "held futex word" in found["lock-serialises"]["text"], found
        equal(list(found), ["lock-serialises"])  # others wait for what works alone
    for name in ("main.unblock", "main.clock", "main.is_locked"):
        assert "lock-serialises" not in at_a_futex(by=(name, "main.publish")).findings(end), name
    for path, held in ((at_a_futex().path(end), False), (at_a_futex(by=("main.word_unlock",)).path(end), True),
                       (hand_over("sync", WORK_STACK, wait="futex word").path(31 * MS), True)):
        [lock] = answer("locks", path)["locks"]
        equal(lock["can_be_held"], held)


@test
def of_many_locks_the_worst_three_are_named():
    """Goroutine 9 works alone; each of the others waits for its lock, then for something else."""
    trace = Trace(5)
    trace.here(9, 2, 0)
    shares = {"a": 25, "b": 40, "c": 30, "d": 35}
    for n, (name, share) in enumerate(shares.items(), 1):
        trace.here(n, 2, n)
        for i in range(10):
            now = (1 + 10 * i) * MS + 100 * n
            trace.block(now, n, "sync", ("sync.(*Mutex).Lock", "main." + name))
            trace.wake(now + share * MS // 10, 0, n)
            trace.start(now + share * MS // 10 + 10, n, n)
            trace.block(now + share * MS // 10 + 20, n, "chan receive", WORK_STACK)
            trace.wake(now + 9 * MS, 0, n)
            trace.start(now + 9 * MS + 10, n, n)
    found = trace.summary(102 * MS, "--from=0ns", "--to=100ms")["findings"]
    found = [f for f in found if f["kind"] != "bottleneck"]
    equal([f["kind"] for f in found], 3 * ["lock-serialises"])
    for finding, name in zip(found, "bdc"):
        assert f" at main.{name} " in finding["text"], found
        # Minus the time in which another goroutine works.
        assert 0 <= shares[name] / 100 - finding["weight"] < 0.0001, found


@test
def a_full_queue_is_blamed_on_the_function_that_takes_from_it():
    for reason, log in (("chan send", None), ("network", "write pipe:[7]"), ("sync", "channel send rows")):
        found = full(30, reason, log)
        equal(list(found), ["queue"])
        assert found["queue"]["text"].startswith("main.store (main.go:10) takes from a queue more slowly than "), found
        equal(found["queue"]["gain_ns"], 30 * MS)
        equal(full(29, reason, log), {})
        # Others would use what CPUs the queue leaves: in Go, nothing is gained.
        assert "queue" in full(60, reason, log) and ("queue" in full(60, reason, log, ready=1)) == (log is not None)
    # A goroutine that waits to receive may be waiting for work.
    assert "queue" not in full(80, "chan receive")
    assert "queue" not in full(80, "network", "read pipe:[7]")


@test
def what_a_slow_consumer_waits_for_is_said_and_is_no_polling():
    trace = Trace(2)
    trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for i in range(300):
        now = (1 + i) * MS
        trace.log(now - 10, 1, "wait", "write pipe:[7]")
        trace.block(now, 1, "network", ("main.fill",))
        trace.block(now + 10, 0, "sleep", ("main.store", "main.writer"))
        trace.at(now + 900 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + 900 * US + 10, 0, 1)
        trace.wake(now + 910 * US, 0, 2, ("main.store", "main.writer"))
        trace.start(now + 910 * US + 10, 1, 2)
    found = trace.findings(301 * MS, "--from=0ns", f"--to={301 * MS}ns")
    equal(list(found), ["queue"])
    assert " For 99 % of that time the former was itself waiting (sleep at main.store (main.go:10)). " in found["queue"]["text"], found


@test
def of_queues_one_behind_the_other_the_one_that_fills_up_first_is_blamed():
    def line(itself):
        """Goroutine 1 waits for room made by goroutine 2, which waited this long for room made by goroutine 3."""
        trace = Trace(3)
        for g in (1, 2, 3):
            trace.here(g, 2, g - 1)
        for i in range(10):
            now = (1 + i) * 10 * MS
            trace.block(now, 0, "chan send", ("main.read",))
            trace.block(now + 10, 1, "chan send", ("main.parse",))
            trace.wake(now + itself, 2, 2, ("main.store",))
            trace.start(now + itself + 10, 1, 2)
            trace.wake(now + 8 * MS, 1, 1, ("main.parse",))
            trace.start(now + 8 * MS + 10, 0, 1)
        return trace.summary(110 * MS, "--from=10ms", "--to=110ms")["findings"]

    equal([f["function"] for f in line(7 * MS) if f["kind"] == "queue"], ["main.store"])
    # A goroutine that waits for room for less than half of the time is itself slow, too.
    equal([f["function"] for f in line(3900 * US) if f["kind"] == "queue"], ["main.parse", "main.store"])


@test
def one_that_works_all_the_time_while_others_wait_for_it_is_the_bottleneck():
    found = alone(30 * MS, 20 * MS)["bottleneck"]
    assert ": it had work for 100 % of the time. Others waited for it at " in found["text"] and "during 60 %: 5 waits, 150 ms in all" in found["text"], found
    assert re.search(r"the longest 30\.0 ms, ended by main\.pay \(main\.go:\d+\)\.", found["text"]), found
    assert "bottleneck" not in alone(20 * MS, 21 * MS)
    assert "bottleneck" in alone(30 * MS, 20 * MS, lock=True)
    # A goroutine that sleeps in between may be waiting for work itself.
    assert "bottleneck" not in polled(201, wakes=True)
    # Dividing work gains nothing if all Ps run: 1.7 of two did on average.
    assert "bottleneck" in alone(30 * MS, 20 * MS, third=14 * MS)
    assert "bottleneck" not in alone(30 * MS, 20 * MS, third=16 * MS)
    # A goroutine that runs for less than a tenth of the main goroutine's time is its helper; beside
    # any other goroutine it may be what counts.
    assert "bottleneck" in alone(30 * MS, 4 * MS)
    assert "bottleneck" not in alone(30 * MS, 3 * MS)
    assert "bottleneck" in alone(30 * MS, 3 * MS, by=7)


@test
def a_condition_whose_waits_time_out_is_no_pool_of_permits():
    assert "permits" in timed(0)
    assert "permits" in timed(99)
    assert "permits" not in timed(100)


@test
def a_semaphore_that_its_own_users_wait_for_has_too_few_permits():
    found = permitted(30)
    equal(list(found), ["permits"])
    assert found["permits"]["text"].startswith("Too few permits in semaphore slots. "), found
    equal(permitted(29), {})
    equal(permitted(40, other=True), {})  # it hands over work
    # A wait goes on if another one took the permit; after some work, it is another wait.
    text = permitted(40, vain=30 * US)["permits"]["text"]
    assert " during 40 % of the time, 10 times, 40.0 ms in all, the longest 4.00 ms, " in text, text
    equal(permitted(40, vain=60 * US), {})
    # A pool may be guarded by a condition variable, or by a channel with this much room.
    assert permitted(30, kind="condition slots")["permits"]["text"].startswith("Too few permits in condition slots. ")
    assert "permits" in permitted(30, kind="channel send slots")
    found = permitted(30, kind="sync.(*Cond).Wait")
    equal(list(found), ["permits"])
    assert found["permits"]["text"].startswith("Too few permits in a sync.Cond used as a semaphore. "), found
    found = permitted(30, kind="chan send")
    equal(list(found), ["permits"])
    assert found["permits"]["text"].startswith("Too few permits in a channel used as a semaphore. "), found


def stages(workers=3, taken=0):
    """Goroutine 2 waits to send until goroutine 1, of its own kind, receives: `workers` are of it. Goroutine 1 waits so
    for goroutine 3 in `taken` of 20 rounds."""
    trace = Trace(3)
    trace.here(99, 2, 0)
    for g in range(1, workers + 1):
        trace.create(10 + g, 0, g)
    trace.block(20, 0, "chan receive", ("main.main",))
    for g in range(1, min(workers, 3) + 1):
        trace.start(20 + g, g - 1, g)
    for i in range(20):
        now = (1 + i) * 10 * MS
        trace.block(now, 1, "chan send", WORK_STACK)
        if i % 10 < taken:
            trace.block(now + 10, 0, "chan send", WORK_STACK)
            trace.wake(now + MS, 2, 1, ("main.work",))
            trace.start(now + MS + 10, 0, 1)
        trace.wake(now + 8 * MS, 0, 2, ("main.work",))
        trace.start(now + 8 * MS + 10, 1, 2)
    return trace.findings(210 * MS, "--from=10ms", "--to=210ms")


@test
def a_stage_of_a_pipeline_that_is_slow_is_no_permit():
    found = stages()
    equal(list(found), ["queue"])
    assert found["queue"]["text"].startswith("main.work (main.go:10) takes from a queue more slowly than "), found
    # Of two users of permits, one may be so quick that the other one never waits.
    assert "permits" in stages(workers=2) and "queue" not in stages(workers=2)
    # One that waited so itself gives back what it got.
    assert "permits" in stages(taken=2)


@test
def a_pool_of_a_package_of_go_has_too_few_permits():
    for function, name in (("database/sql.(*DB).conn", "the connection pool of database/sql"),
                           ("golang.org/x/sync/semaphore.(*Weighted).Acquire", "a semaphore.Weighted")):  # fmt: skip
        pool = {"kind": "select", "within": (function,)}
        found = permitted(30, **pool)
        equal(list(found), ["permits"])
        text = found["permits"]["text"]
        assert text.startswith(f"Too few permits in {name}. The goroutines that use it waited for one at main.work (main.go:11) during 30 % of the time, "), text
        assert ", until main.work (main.go:11) gave one back. " in text, text
        equal(permitted(29, **pool), {})
        equal(permitted(40, other=True, **pool), {})
    # Any other select may be for work of its own kind, as in a ring.
    equal(permitted(30, kind="select", within=("main.(*DB).conn",)), {})


def channel_lock(readers=3, rounds=10, held=8 * MS):
    """Goroutine 1 has the only room of a channel for `held` of each 10 ms, and gives it to `readers` that wait for it, who pass it on."""
    trace = Trace(2 + readers)
    trace.here(99, 2, 0)
    trace.create(10, 0, 1, ("main.writer",))
    for g in range(2, 2 + readers):
        trace.create(10 + g, 0, g, ("main.poll",))
        trace.start(20 + g, g, g)
    trace.block(30, 0, "chan receive", ("main.main",))
    trace.start(31, 1, 1)
    for i in range(rounds):
        now = (1 + i) * 10 * MS
        for g in range(2, 2 + readers):
            trace.block(now + g, g, "chan send", ("main.read", "main.poll"))
        trace.block(now + 20, 1, "sleep", ("time.Sleep", "main.write", "main.main"))
        trace.at(now + held - 100, 1, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + held - 50, 1, 1)
        for g in range(2, 2 + readers):
            trace.wake(now + held + 1000 * g, g - 1, g, ("runtime.chanrecv1", "main.write" if g == 2 else "main.read", "main.main" if g == 2 else "main.poll"))
            trace.start(now + held + 1000 * g + 100, g, g)
    end = (1 + rounds) * 10 * MS
    return trace.findings(end, "--from=10ms", f"--to={end}ns")


@test
def of_a_channel_that_serves_as_a_lock_the_one_that_had_it_for_long_is_named():
    found = channel_lock()
    equal(list(found), ["permits"])
    text = found["permits"]["text"]
    assert "until main.write (main.go:11) gave one back. For 100 % of that time it was itself waiting (sleep at main.write (main.go:11))" in text, text
    equal(found["permits"]["function"], "main.write")
    assert " 30 times, 240 ms in all, the longest 8.00 ms" in text, text
    # If only one other waits, whether it is a queue cannot be seen.
    equal(list(channel_lock(readers=1)), ["queue"])
    equal(channel_lock(held=2900 * US), {})


def few(workers, sleeps=True):
    """Goroutine 99 sends to a channel, from which each of so many main.worker takes in turn, 20 times in all, before it sleeps."""
    trace = Trace(1 + workers)
    trace.here(1, 2, 0)
    trace.create(5, 0, 99, ("main.start", "main.feed"))
    for w in range(workers):
        trace.create(10 + w, 0, 10 + w)
    trace.block(20, 0, "sync", GROUP)
    trace.start(30, 0, 99)
    for w in range(workers):
        trace.start(30 + w, 1 + w, 10 + w)
        if sleeps:
            trace.block(50 + w, 1 + w, "sleep", WORK_STACK)
    for i in range(20):
        now, w = (1 + i) * 10 * MS, i % workers
        trace.block(now - 9 * MS, 0, "chan send", ("main.put", "main.feed"))
        if sleeps:
            trace.at(now - 50, 1 + w, f"GoUnblock g={10 + w} g_seq=%d stack=0", 10 + w)
            trace.start(now - 40, 1 + w, 10 + w)
        trace.wake(now, 1 + w, 99, ("runtime.chanrecv1", "main.work", "main.worker"))
        trace.start(now + 10, 0, 99)
        if sleeps:
            trace.block(now + 20, 1 + w, "sleep", WORK_STACK)
    trace.at(205 * MS, 0, "GoDestroy")
    return trace.findings(210 * MS, "--from=0ns", f"--to={210 * MS}ns")


@test
def that_others_wait_for_room_shows_where_a_pool_takes_its_work():
    found = few(2)
    equal(list(found), ["pool-too-small"])
    text = found["pool-too-small"]["text"]
    assert text.startswith("main.worker is the bottleneck: its pool of 2 goroutines is too small. The pool hardly waited for work (0 ns of "), text
    assert "(mostly sleep in main.work)" in text and "Others waited for it at main.feed (chan send)" in text, text
    # One is no pool, and one that uses the CPU is slow.
    equal(list(few(1)), ["queue"])
    assert "pool-too-small" not in few(2, sleeps=False)


def limited(created=12, each=1, by_main=True, hogs=0):
    """While `hogs` others run, each on a P of its own, a goroutine creates others, `created` in all, and waits for room in a channel `each` times for each of them, which one of them makes
    after a sleep."""
    trace = Trace(2 + hogs)
    trace.here(1, 2, 0)
    trace.here(99, 2, 1)
    for i in range(hogs):
        trace.here(80 + i, 2, 2 + i)
    trace.block(5, 1, "chan receive", ("main.main",))
    at = MS
    for i in range(created):
        g = 10 + i
        if by_main or i > 0:
            trace.create(at, 0, g, ("main.Go.func1",))
        else:
            trace.here(g, 1)
        trace.start(at + 10, 1, g)
        for n in range(each):
            begin = at + n * 5 * MS
            trace.block(begin + 20, 0, "chan send", ("main.Go", "main.crawl"))
            trace.block(begin + 30, 1, "sleep", ("time.Sleep", "main.fetch", "main.Go.func1"))
            trace.at(begin + 4 * MS, 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
            trace.start(begin + 4 * MS + 10, 1, g)
            trace.wake(begin + 4 * MS + 20, 1, 1, ("runtime.chanrecv1", "main.Go.func1.1", "main.Go.func1"))
            trace.start(begin + 4 * MS + 30, 0, 1)
        trace.at(at + each * 5 * MS - 100, 1, "GoDestroy")
        at += each * 5 * MS
    return trace.findings(at, "--from=0ns", f"--to={at}ns")


@test
def that_each_of_many_goroutines_makes_room_once_for_the_one_that_created_it_is_a_limit():
    found = limited()
    equal(list(found), ["permits"])
    assert "until main.Go.func1.1 (main.go:11) gave one back. For 100 % of that time it was itself waiting (sleep at main.fetch (main.go:11))" in found["permits"]["text"], found
    # Those that take several times from a queue are workers.
    equal(list(limited(each=2)), ["queue"])
    # Others would use what CPUs the limit leaves.
    assert "permits" in limited(hogs=3) and "permits" not in limited(hogs=14)


@test
def a_pool_that_always_has_work_and_no_use_for_a_cpu_is_too_small():
    found = pooled()
    assert "pool-too-small" in found, found
    text = found["pool-too-small"]["text"]
    assert text.startswith("main.worker is the bottleneck: its pool of 1 goroutine is too small. The pool hardly waited for work") and "20 waits" in text, text
    # A worker that is asked for each result has work only at times; one that never took work from
    # the other goroutine is not a pool.
    assert "pool-too-small" not in pooled(asks=20)
    assert "pool-too-small" not in pooled(asks=0)
    assert "pool-too-small" not in pooled(sleeps=False)
    # One that waits for room gives work.
    assert "pool-too-small" not in pooled(wait="chan send")
    # A client gets from others what it waits for.
    assert "pool-too-small" in pooled(gets=3) and "pool-too-small" not in pooled(gets=4)


def filled(outlives=90 * MS, kind="condition room", consumer="sleep", joins=False, joined=False, count=20, reason="sync", fills=3):
    """Goroutine `fills`, which is main or not, waits `count` times for room in a queue of main.take, which sleeps before it takes
    each piece, and ends `outlives` later. `joins`: main.take waits for the other one to exit;
    `joined`: the other way around."""
    trace = Trace(2)
    trace.here(99, 2, 0)
    trace.create(10, 0, fills, ("main.fill",))
    trace.create(11, 0, 2, ("main.take",))
    trace.block(12, 0, "chan receive", ("main.main",))
    trace.start(20, 0, fills)
    trace.start(20, 1, 2)
    at = MS
    for _ in range(count):
        trace.log(at, 0, "wait", kind)
        trace.block(at + 10, 0, reason, ("main.fill",))
        if consumer == "sleep":
            trace.block(at + 100, 1, "sleep", ("main.take",))
            trace.at(at + 9 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(at + 9 * MS + 10, 1, 2)
        at += 10 * MS
        trace.wake(at - 100, 1, fills, ("main.take",))
        trace.start(at - 50, 0, fills)
    if joins:
        trace.log(at + 10, 1, "wait", "join main.fill")
        trace.block(at + 20, 1, "sync", ("main.take",))
        at += MS
        trace.wake(at - 10, 0, 2, ("main.fill",))
        trace.start(at + 10, 1, 2)
    if joined:
        trace.log(at + 10, 0, "wait", "join main.take")
        trace.block(at + 20, 0, "sync", ("main.fill",))
        trace.wake(at + outlives - 10, 1, fills, ("main.take",))
        trace.start(at + outlives, 0, fills)
    trace.at(at + outlives if joined else at, 0, "GoDestroy")
    trace.at(at + outlives, 1, "GoDestroy")
    end = at + outlives + MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_consumer_that_sleeps_while_its_queue_is_full_is_slow():
    found = filled()["queue"]
    # It makes nothing for the one that waits, be that the main thread or one whose exit is awaited.
    equal(list(filled(joined=True, fills=1)), ["queue"])
    text = found["text"]
    assert text.startswith("main.take takes from a queue more slowly than main.fill (main.go:10) fills it. The latter waited for room (condition room) for "), text
    assert "20 waits, 200 ms in all" in text and "Meanwhile the former spent " in text and "(mostly sleep)." in text, text
    equal((found["function"], found["object"]), ("main.take", "condition room"))
    # It is saved with what the consumer had yet to do for 90 ms of the 292 ms.
    equal(found["gain_ns"] // MS, 289)
    # A consumer that ends with the other, before three times the length of a wait, may be the one
    # that makes work.
    assert "queue" in filled(outlives=30 * MS) and "queue" not in filled(outlives=29 * MS)
    # The goroutine that fills the queue may wait for the exit instead of ending.
    assert "queue" in filled(joined=True) and "queue" not in filled(joined=True, outlives=29 * MS)
    # A thread that waits for the exit of those that it wakes is no slow consumer, either.
    assert "queue" not in filled(joins=True)
    # If most wake-ups are futile, the threads do not wait for room.
    assert "queue" in filled(count=100, reason="sync.(*Cond).Wait")
    found = filled(count=101, reason="sync.(*Cond).Wait")
    assert "queue" not in found and "futile-wakeups" in found, found
    assert "queue" in filled(kind="semaphore room") and "queue" not in filled(kind="read socket")
    found = filled(consumer="run")
    assert "queue" not in found and "bottleneck" in found, found


def asked(clients, pauses=8 * MS, count=10, sleeps=True, kind="future result", reads_of=None):
    """Each of these threads waits for the result that one thread, main.worker, makes for it while
    sleeping, running or reading from what this thread writes; 50 is a server."""
    trace = Trace(clients + 2)
    trace.here(99, 2, 0)
    if reads_of == 50:
        trace.here(50, 2, clients + 1)
    trace.create(10, 0, 1)
    for n in range(2, clients + 2):
        trace.create(10 + n, 0, n, ("main.ask",))
    trace.log(28, 0, "wait", "semaphore end")
    trace.block(29, 0, "sync", ("main.main",))
    trace.start(30, 0, 1)
    for n in range(2, clients + 2):
        trace.start(30 + n, n - 1, n)
        trace.log(40 + n, n - 1, "wait", kind)
        trace.block(50 + n, n - 1, "sync", ("main.ask",))
    at = MS
    for _ in range(count):
        for n in range(2, clients + 2):
            if reads_of:
                by = clients + 1 if reads_of == 50 else 2 if n == 3 else 1
                trace.log(at - 10, 0, "wait", "read socket:[7]")
                trace.block(at, 0, "network", ("main.query", "main.worker"))
                trace.wake(at + pauses, by, 1, ("main.serve",))
                trace.start(at + pauses + 10, 0, 1)
            elif sleeps:
                trace.block(at, 0, "sleep", ("main.query", "main.worker"))
                trace.at(at + pauses, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
                trace.start(at + pauses + 10, 0, 1)
            at += pauses + 20
            trace.wake(at, 0, n, ("main.answer", "main.worker"))
            trace.start(at + 10, n - 1, n)
            trace.log(at + 20, n - 1, "wait", kind)
            trace.block(at + 30, n - 1, "sync", ("main.ask",))
            at += MS // 10
    trace.at(at, 0, "GoDestroy")
    return trace.findings(at + MS, "--from=0ns", f"--to={at + MS}ns")


@test
def a_pool_with_fewer_threads_than_wait_for_its_results_is_too_small():
    found = asked(2)
    text = found["pool-too-small"]["text"]
    assert text.startswith("main.worker is the bottleneck: its pool of 1 goroutine is too small. "), text
    assert "Others waited for it at main.ask (main.go:10) (future result) during 99 % of the time: 20 waits, 318 ms in all" in text, text
    # A larger pool does not help a caller that waits for each result; a worker that uses the CPU is a bottleneck.
    assert "pool-too-small" not in asked(1)
    found = asked(2, sleeps=False)
    assert "pool-too-small" not in found and "bottleneck" in found, found
    # What it reads from others is no work.
    found = asked(2, reads_of=50)
    assert "98 % of the time for other things (mostly read in main.query)" in found["pool-too-small"]["text"], found
    assert "bottleneck" in asked(2, sleeps=False, kind="channel receive results")
    assert "bottleneck" not in asked(2, sleeps=False, kind="latch results")


@test
def a_producer_that_sleeps_while_all_wait_for_its_work_is_slow():
    found = produced()
    assert "slow-producer" in found, found
    text = found["slow-producer"]["text"]
    assert text.startswith("main.fetch is the bottleneck, a slow producer: it spent 88 % of its time waiting (mostly sleep at main.fetch (main.go:10)). Meanwhile, the goroutines of main.parse "), text
    assert "20 waits, 160 ms in all, the longest 8.00 ms" in text, text
    # Consumers that have work for more than a fifth of the time, a server, and one of several
    # producers.
    assert "slow-producer" not in produced(consumes=3 * MS)
    assert "slow-producer" not in produced(awaited=None)
    assert "slow-producer" in produced(awaited="main.parse")  # its exit needs the producer
    assert "slow-producer" not in produced(also=True)
    assert "slow-producer" not in produced(count=9)
    # A client in another process has its own pace.
    pair = ("gateway (7): main.fetch", "gateway (7): main.parse")
    assert "slow-producer" in produced(awaited=pair[0], of=pair)
    assert "slow-producer" not in produced(awaited=pair[0], of=("client (8): main.fetch", pair[1]))
    # It keeps a pace.
    assert "slow-producer" in produced(until=10)
    assert "slow-producer" not in produced(until=11)
    assert "slow-producer" not in produced(until=20, naps=True)  # how its consumer sleeps does not count
    # Lack of a CPU for some time would not make it faster.
    assert "slow-producer" in produced(ready=9 * MS)
    # It sleeps for a quarter of its time, and runs for the rest, but not for so long that it is the bottleneck by that alone.
    text = produced(sleeps=3 * MS, runs=8 * MS, consumes=500 * US)["slow-producer"]["text"]
    assert "it spent 26 % of its time waiting (mostly sleep at main.fetch (main.go:10)), and 74 % running. " in text, text
    assert "slow-producer" not in produced(sleeps=2 * MS, runs=8 * MS, consumes=500 * US)
    # A ticker by time-outs of a condition variable is none.
    assert "slow-producer" not in produced(late=20)


def batched(workers=2, took=1, naps=20, wait="condition todo_cv", of=8 * MS, ran=US, waits=1, ticks=0, slots=None):
    """Workers take work after `waits` waits (the first `took`), and then sleep and run again and again; main waits for their exits. With `ticks`,
    another thread sleeps so often for 16 ms."""
    trace = Trace(workers + 1 + (ticks > 0))
    trace.slots = slots
    trace.string("trail.made by=record")
    trace.here(99, 2, 0)
    for n in range(1, workers + 1):
        trace.create(10 + n, 0, n, ("main.fetch",))
        trace.start(20 + n, n, n)
        for now in range(100, 100 + 200 * waits if n <= took else 0, 200):
            trace.log(now + n, n, "wait", wait)
            trace.block(now + n + 10, n, "sync", ("main.take", "main.fetch"))
            trace.wake(now + n + 100, 0, n, ("main.submit",))
            trace.start(now + n + 110, n, n)
    if ticks:
        trace.create(50, 0, 50, ("main.tick",))
        trace.start(60, workers + 1, 50)
        for now in range(MS, MS + ticks * 16 * MS, 16 * MS):
            trace.block(now, workers + 1, "sleep", ("main.beat", "main.tick"))
            trace.at(now + 15 * MS, workers + 1, "GoUnblock g=50 g_seq=%d stack=0", 50)
            trace.start(now + 15 * MS + 10, workers + 1, 50)
    trace.log(MS - 10, 0, "wait", "join fetch")
    trace.block(MS, 0, "sync", ("main.finish", "main.main"))
    for n in range(1, workers + 1):
        now = MS
        for _ in range(naps):
            trace.block(now, n, "sleep", ("main.load", "main.fetch"))
            now += of
            trace.at(now, n, f"GoUnblock g={n} g_seq=%d stack=0", n)
            trace.start(now + 10, n, n)
            now += 10 + ran
        if n == workers:
            trace.wake(now + n, n, 99, ("main.fetch",))
            trace.start(now + n + 100, 0, 99)
        trace.at(now + n + 10, n, "GoDestroy")
    return trace.findings(now + 1000, "--from=0ns", f"--to={now + 1000}ns")


@test
def a_pool_that_got_all_its_work_at_once_is_too_small():
    text = batched()["pool-too-small"]["text"]
    assert text.startswith("main.fetch is the bottleneck: its pool of 2 threads is too small. The pool hardly waited for work ("), text
    assert "(mostly sleep in main.load). Others waited for it at main.finish (main.go:10) (join fetch) during 99 % of the time: 1 wait of " in text, text
    # Threads of their own pace take no work; one has no pool; a few long sleeps are no pieces of work.
    equal(batched(took=0), {})
    equal(batched(workers=1), {})
    assert "pool-too-small" in batched(naps=10) and "pool-too-small" not in batched(naps=9)
    equal(batched(wait="barrier start"), {})
    # Clients that pause before each request wait for each answer.
    assert "pool-too-small" in batched(took=2, waits=5) and "pool-too-small" not in batched(took=2, waits=6)
    # They use the CPUs.
    assert "pool-too-small" not in batched(ran=8 * MS)
    # More than twice as many threads as CPUs are meant to wait.
    assert "pool-too-small" in batched(workers=4, slots=2) and "pool-too-small" not in batched(workers=5, slots=2)
    # The sleeps of another thread, elsewhere, do not hide where these sleep.
    assert "(mostly sleep in main.load)" in batched(ran=MS, ticks=20)["pool-too-small"]["text"]


@test
def a_bottleneck_that_others_wait_for_at_several_connections_or_places_is_said_once():
    for place, ended in (("main.ask", "main.serve"), ("main.offer", "main.take")):
        trace = Trace(4)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        for g, start in ((2, "main.loop"), (3, "main.user"), (4, "main.user")):
            trace.create(10 + g, 0, g, (start,))
            trace.start(20 + g, g - 1, g)
        trace.log(30, 0, "wait", "join main.user")
        trace.block(40, 0, "sync", ("main.main",))
        for i in range(20):
            now = MS + i * 10 * MS
            for g, at, by in ((3, "main.ask", "main.serve"), (4, place, ended)):
                trace.log(now, g - 1, "wait", f"read socket:[{g}]")
                trace.block(now + 10, g - 1, "network", (at, "main.user"))
                trace.wake(now + 9 * MS + g, 1, g, (by, "main.loop"))
                trace.start(now + 9 * MS + 10 + g, g - 1, g)
        trace.wake(202 * MS, 2, 1, ("main.user",))
        for g in 3, 4:
            trace.at(202 * MS + 10, g - 1, "GoDestroy")
        trace.start(202 * MS + 20, 0, 1)
        kinds = [f["kind"] for f in trace.summary(203 * MS, "--from=0ns", f"--to={203 * MS}ns")["findings"]]
        equal(kinds, ["bottleneck"])


@test
def a_wait_that_begins_again_after_its_time_limit_is_one_wait():
    for wanted in ("condition result_cv", "poll pipe:[7]", "read pipe:[7]", "semaphore s"):
        found = awaited(wanted, works="runs", limit=20 * MS)
        text = found["bottleneck"]["text"]
        assert "during 99 %: 4 waits, 200 ms in all, the longest 50.0 ms, ended by main.publish" in text, text
    # What runs for longer in between does something else at that time, and only the rest was for the other one.
    assert "bottleneck" not in awaited("condition result_cv", works="runs", limit=30 * MS, pause=60 * US)


@test
def helpers_that_wait_once_until_main_stops_them_do_not_wait_for_it():
    assert "bottleneck" not in awaited("condition jobs_cv", others=4, alone=True)


@test
def two_that_wait_for_one_semaphore_have_its_permits_in_turn():
    def lent(back):
        trace = Trace(3)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        trace.create(10, 0, 2, ("main.checkpoint",))
        trace.start(20, 1, 2)
        now = MS
        for i in range(12):
            trace.log(now, 0, "wait", "semaphore set 7")
            trace.block(now + 10, 0, "sync", ("main.txn", "main.main"))
            trace.block(now + 20, 1, "sleep", ("main.save", "main.checkpoint"))
            trace.at(now + 9 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + 9 * MS + 10, 1, 2)
            trace.wake(now + 9 * MS + 20, 1, 1, ("main.release", "main.checkpoint"))
            trace.start(now + 9 * MS + 30, 0, 1)
            if i < 3:
                trace.log(now + 9 * MS + 40, 1, "wait", back)
                trace.block(now + 9 * MS + 50, 1, "sync", ("main.checkpoint",))
                trace.wake(now + 9 * MS + 400 * US, 0, 2, ("main.release", "main.main"))
                trace.start(now + 9 * MS + 400 * US + 10, 1, 2)
            now += 10 * MS
        return trace.findings(now, "--from=0ns", f"--to={now}ns")

    found = lent("semaphore set 7")
    equal(list(found), ["permits"])
    text = found["permits"]["text"]
    assert text.startswith("Too few permits in semaphore set 7. ") and "it was itself waiting (sleep at main.save (main.go:10))" in text, text
    assert "pool-too-small" in lent("semaphore requests")


def replies(workers=2, clients=6, buffered=False, sleeps=True, client="main.ask", slept_in=("main.worker",)):
    """Each of `clients` sends a job to main.worker, of which there are `workers`, and waits for its result. `buffered`: none waits to send."""
    trace = Trace(workers + clients + 1)
    trace.here(99, 2, 0)
    trace.block(5, 0, "sync", GROUP)
    for w in range(workers):
        trace.create(1, 0, 1 + w, ("main.start", "main.worker"))
        trace.start(10, 1 + w, 1 + w)
    for c in range(clients):
        trace.create(2, 0, 50 + c, ("main.start", client))
        trace.start(10, 1 + workers + c, 50 + c)
        if not buffered:
            trace.block(100 + c, 1 + workers + c, "chan send", ("main.ask",))
    at, asks = MS, 0
    for _ in range(12):
        for w in range(workers):
            c = asks % clients
            asks += 1
            p, g, own = 1 + workers + c, 50 + c, 1 + w
            now = at + w * 10 * US
            if not buffered:
                trace.wake(now, own, g, ("main.worker",))
                trace.start(now + 100, p, g)
            trace.block(now + 200, p, "chan receive", ("main.ask",))
            if sleeps:
                trace.block(now + 300, own, "sleep", ("time.Sleep", slept_in[w % len(slept_in)], "main.worker"))
                trace.at(now + 9 * MS, own, f"GoUnblock g={own} g_seq=%d stack=0", own)
                trace.start(now + 9 * MS + 10, own, own)
            trace.wake(now + 9 * MS + 100, own, g, ("main.worker",))
            trace.start(now + 9 * MS + 200, p, g)
            if not buffered:
                trace.block(now + 9 * MS + 300, p, "chan send", ("main.ask",))
        at += 10 * MS
    trace.wake(at, 1 + workers, 99, ("main.ask",)) if buffered else trace.wake(at, 1, 99, ("main.worker",))
    return trace.findings(at + MS, "--from=0ns", f"--to={at + MS}ns")


@test
def a_pool_that_answers_those_that_hand_it_work_is_too_small():
    found = replies()
    text = found["pool-too-small"]["text"]
    assert text.startswith("main.worker is the bottleneck: its pool of 2 goroutines is too small. ") and "(mostly sleep in main.worker)" in text, text
    # Three functions that sleep for about as long: in none is more than half of it.
    assert "(mostly sleep)" in replies(workers=3, slept_in=("main.read", "main.flush", "main.send"))["pool-too-small"]["text"]
    assert "queue" not in found and "sleeper" not in found, found
    # Goroutines of connections wait for the next request, and not for those that make it.
    assert "pool-too-small" not in replies(client="net/http.(*persistConn).writeLoop")
    # None waits for a worker to take work; or they use the CPU.
    assert "pool-too-small" not in replies(buffered=True) and "pool-too-small" not in replies(sleeps=False)


def only_sleeping(workers=2, naps=10, inside=("main.fetch", "main.worker"), wakes=False, also=False, of=4 * MS, rests=0):
    """Workers sleep again and again, and perhaps elsewhere after that, until main, which waits for them, goes on; in between, each may wake goroutine 50."""
    trace = Trace(workers + 1)
    trace.here(1, 2, 0)
    if wakes:
        trace.here(50, 4)
    for n in range(workers):
        trace.create(10 + n, 0, 10 + n, inside[-1:])
        trace.start(20 + n, 1 + n, 10 + n)
    trace.block(100, 0, "sync", GROUP)
    now = MS
    for i in range(naps):
        for n in range(workers):
            at = now + n * 1000
            if also and i == 0:
                trace.block(at - 300 * US, 1 + n, "network", ("net.(*conn).Read", *inside))
                trace.at(at - 50 * US, 1 + n, f"GoUnblock g={10 + n} g_seq=%d stack=0", 10 + n)
                trace.start(at - 40 * US, 1 + n, 10 + n)
            trace.block(at, 1 + n, "sleep", ("time.Sleep", *inside))
            trace.at(at + of, 1 + n, f"GoUnblock g={10 + n} g_seq=%d stack=0", 10 + n)
            trace.start(at + of + 100, 1 + n, 10 + n)
            if rests:
                trace.block(at + of + 200, 1 + n, "sleep", ("time.Sleep", "main.rest", "main.worker"))
                trace.at(at + of + rests, 1 + n, f"GoUnblock g={10 + n} g_seq=%d stack=0", 10 + n)
                trace.start(at + of + rests + 100, 1 + n, 10 + n)
        if wakes:
            trace.wake(now + of + 3000, 1, 50, ("main.worker",))
            trace.start(now + of + 3100, 0, 50)
            trace.block(now + of + 3200, 0, "chan receive", ("main.rest",))
        now += of + rests + 400 * US
    for n in range(workers):
        if n == workers - 1:
            trace.wake(now, 1 + n, 1, ("main.worker",))
            trace.start(now + 100, 0, 1)
        trace.at(now + 10, 1 + n, "GoDestroy")
    return trace.findings(now + 1000, "--from=0ns", f"--to={now + 1000}ns")


@test
def goroutines_that_only_sleep_while_their_end_is_waited_for_may_be_too_few():
    found = only_sleeping()
    equal(list(found), ["pool-too-small"])
    text = found["pool-too-small"]["text"]
    assert re.match(r"The 2 goroutines of main\.worker slept for 89 % of their time at main\.fetch \(main\.go:11\), while their end was waited for at main\.deposit \(main\.go:11\)\. "
                    r"20 sleeps, 80\.0 ms in all, the longest 4\.00 ms\. If they take work from a queue, let more goroutines do so\.$", text), text
    equal(found["pool-too-small"]["gain_ns"], 0)
    # Sleeps at another place do not count.
    text = only_sleeping(rests=2 * MS)["pool-too-small"]["text"]
    assert " slept for 62 % of their time at main.fetch " in text and "20 sleeps, 80.0 ms in all, the longest 4.00 ms." in text, text
    # A loop of their own may keep a pace; or they take part in what others do; or there are many, one, or few pieces.
    for args in ({"inside": ("main.worker",)}, {"inside": ("main.beat", "main.main.func1")}, {"wakes": True}, {"also": True}, {"workers": 1}, {"naps": 9}):
        assert "pool-too-small" not in only_sleeping(**args), args
    assert "pool-too-small" in only_sleeping(inside=("main.fetch", "main.work", "main.main.func1"))
    # The last part of a name decides whether it is a literal.
    for caller in ("main.functor.func1", "main.main.func1.2", "a.b/main.glob..func3"):
        assert "pool-too-small" not in only_sleeping(inside=("main.fetch", caller)), caller
    for caller in ("main.func1", "a.b/main.func1", "main.(*T).func1", "main.a.funcs"):
        assert "pool-too-small" in only_sleeping(inside=("main.fetch", caller)), caller


def in_channel(reason="chan receive", users=3, puts="main.put", sleeps=True, fed=0, others=0):
    """Users of a pool in a channel wait in main.get for 8 ms of each 10 ms until the one before, which slept meanwhile, puts something back.
    Goroutine 50 waits to send to the one that puts back, for so long, up to that; the last `others` times, another goroutine puts something in."""
    trace = Trace(users + 2)
    trace.here(99, 2, 0)
    for n in range(users):
        trace.create(10 + n, 0, n + 1)
    for g in (50, 60):
        trace.create(15 + g // 50, 0, g, ("main.main", "main.feed"))
        trace.start(17, users + g // 60, g)
    trace.block(20, 0, "chan receive", ("main.main",))
    for n in range(users):
        trace.start(30 + n, n, n + 1)
        if n > 0:
            trace.block(40 + n, n, reason, ("runtime.chanrecv1", "main.get", *WORK_STACK))
    for i in range(12):
        now, n, after = (1 + i) * 10 * MS, i % users, (i + 1) % users
        if sleeps:
            trace.block(now, n, "sleep", ("time.Sleep", "main.query", *WORK_STACK))
            trace.at(now + 8 * MS, n, f"GoUnblock g={n + 1} g_seq=%d stack=0", n + 1)
            trace.start(now + 8 * MS + 10, n, n + 1)
        if fed:
            trace.block(now + 9 * MS + 500 - fed, users, "chan send", ("runtime.chansend1", "main.send", "main.feed"))
            trace.wake(now + 9 * MS + 500, n, 50, ("runtime.chanrecv2", "main.take", *WORK_STACK))
            trace.start(now + 9 * MS + 600, users, 50)
        trace.wake(now + 9 * MS, users + 1 if i >= 12 - others else n, after + 1, ("runtime.chansend1", puts, *WORK_STACK))
        trace.start(now + 9 * MS + 10, after, after + 1)
        trace.block(now + 9 * MS + 20, n, reason, ("runtime.chanrecv1", "main.get", *WORK_STACK))
    for n in range(users):
        trace.at(131 * MS + n, n, f"GoUnblock g={n + 1} g_seq=%d stack=0", n + 1) if n != 0 else None
        trace.start(132 * MS + n, n, n + 1) if n != 0 else None
        trace.at(133 * MS + n, n, "GoDestroy")
    return trace.findings(134 * MS, "--from=10ms", f"--to={134 * MS}ns")


@test
def what_its_users_take_from_a_channel_and_put_back_elsewhere_is_a_pool():
    for reason in ("chan receive", "select"):
        found = in_channel(reason)
        assert "permits" in found, found
        text = found["permits"]["text"]
        assert text.startswith("Too few permits in a channel used as a pool. The goroutines that use it waited for one at main.get (main.go:11) during "), text
        assert ", until main.put (main.go:11) gave one back. For " in text and " of that time it was itself waiting (sleep at main.query (main.go:11))" in text, text
    # A ring passes on what it received; two may answer each other; and what works meanwhile is no pool.
    for args in ({"puts": "main.get"}, {"users": 2}, {"sleeps": False}):
        assert "permits" not in in_channel(**args), args
    # Nine tenths of these waits must be for each other: it is 92 % or 83 %, as the first user did not wait before it put something back.
    assert "permits" in in_channel(others=0) and "permits" not in in_channel(others=1)
    # The goroutine that feeds them uses no pool, and more of them would wait for it, too.
    for fed in (9 * MS, 5 * MS):
        found = in_channel(fed=fed)
        assert "queue" not in found and found["permits"]["text"].startswith(text[:text.index(" during ")]), found


@test
def stages_of_one_kind_that_wait_for_a_slow_first_one_are_no_pool():
    """The first of three sleeps for 8 ms for each piece, and the others for one millisecond."""
    trace = Trace(3)
    trace.here(99, 2, 0)
    for n in range(3):
        trace.create(10 + n, 0, n + 1)
    trace.block(20, 0, "chan receive", ("main.main",))
    for n in range(3):
        trace.start(30 + n, n, n + 1)
    get, put, nap = (("runtime.chanrecv1", "main.get", *WORK_STACK), ("runtime.chansend1", "main.put", *WORK_STACK), ("time.Sleep", "main.query", *WORK_STACK))
    for i in range(13):
        now = (1 + i) * 10 * MS
        for n in range(3):
            if n > 0 and i > 0:
                trace.wake(now + n * MS, n - 1, n + 1, put)
                trace.start(now + n * MS + 10, n, n + 1)
            if i > 0 or n == 0:
                begin, end = (now + 100, now + 8 * MS) if n == 0 else (now + n * MS + 100, now + (n + 1) * MS - 100)
                trace.block(begin, n, "sleep", nap)
                trace.at(end, n, f"GoUnblock g={n + 1} g_seq=%d stack=0", n + 1)
                trace.start(end + 10, n, n + 1)
            if n > 0:
                trace.block(now + (n + 1) * MS + 100, n, "chan receive", get)
    for n in range(3):
        trace.wake(139 * MS + n * 1000, 0, n + 1, put) if n else None
        trace.start(139 * MS + n * 1000 + 100, n, n + 1) if n else None
    for n in (2, 1, 0):
        trace.at(139 * MS + 5000 + n, n, "GoDestroy")
    found = trace.findings(140 * MS, "--from=10ms", f"--to={140 * MS}ns")
    assert "permits" not in found, found


@test
def requests_wait_for_connections_of_others_where_no_more_may_be_made():
    def host(by="net/http.(*persistConn).readLoop", dials=0):
        """A request waits for a connection, which goroutine 2 gives it; so many are being made as well."""
        trace = Trace(3)
        trace.here(99, 2, 0)
        trace.create(10, 0, 1)
        trace.create(11, 0, 2, (by,))
        trace.block(90, 0, "chan receive", ("main.main",))
        trace.start(100, 0, 2)
        trace.start(101, 1, 1)
        for n in range(dials):
            trace.create(11 * MS + n, 0, 20 + n, ("net/http.(*Transport).dialConnFor",))
        for i in range(8):
            now = (1 + i) * 10 * MS
            trace.block(now, 1, "select", ("runtime.selectgo", "net/http.(*Transport).getConn", "net/http.(*Client).Get", "main.fetch", "main.worker"))
            trace.wake(now + 8 * MS, 0, 1, ("runtime.chansend1", "net/http.(*wantConn).tryDeliver", by))
            trace.start(now + 8 * MS + 10, 1, 1)
        return trace.findings(90 * MS, "--from=10ms", f"--to={90 * MS}ns")

    text = host()["permits"]["text"]
    assert text.startswith("Too few permits in the connections to a host of net/http (MaxConnsPerHost). The goroutines that use it waited for one at main.fetch (main.go:13) during 80 % of the time"), text
    assert "permits" not in host(by="net/http.(*Transport).dialConnFor")
    assert "permits" in host(dials=2)
    assert "permits" not in host(dials=3)


if __name__ == "__main__":
    sys.exit(main())
