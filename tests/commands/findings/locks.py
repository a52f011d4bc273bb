#!/usr/bin/env python3
"""Locks that are held for long, contended, or that serialise, and their holders. TAP.

usage: locks.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import answer, equal  # noqa: E402
from made import GROUP, LOCK, MS, UNLOCK, US, WORK_STACK, Trace, main  # noqa: E402
from programs import committed, hand_over, owned, passed_on  # noqa: E402
from tap import test  # noqa: E402


@test
def a_lock_that_lets_one_run_at_a_time_serialises():
    found = hand_over("sync", LOCK).findings(31 * MS)["lock-serialises"]
    assert "main.deposit (main.go:11)" in found["text"], found
    assert "main.pay (main.go:11)" in found["text"], found
    assert found["weight"] > 0.9, found
    assert "30 waits" in found["text"], found


@test
def waits_for_channels_are_no_lock():
    equal(hand_over("chan receive", LOCK).findings(31 * MS), {})


@test
def waits_for_groups_of_goroutines_are_no_lock():
    equal(hand_over("sync", GROUP).findings(31 * MS), {})


@test
def of_a_c_program_the_kind_of_a_wait_says_whether_it_is_for_a_lock():
    for wait in ("mutex m", "rwlock to read m", "rwlock to write m", "spin lock m", "OpenMP lock m", "OpenMP critical m", "futex m", "file lock m"):
        trace = hand_over("sync", WORK_STACK, wait=wait)
        assert wait.split(" m")[0].split(" to ")[0] in trace.findings(31 * MS)["lock-serialises"]["text"], wait
        assert trace.summary(31 * MS)["activity"]["idle_lock_ns"] > 10 * MS, wait
    for wait in ("once m", "semaphore m", "barrier m", "join worker", "OpenMP ordered m", "OpenMP barrier", "OpenMP tasks", "signal", "child process 7"):
        trace = hand_over("sync", WORK_STACK, wait=wait)
        equal(list(trace.findings(31 * MS)), ["permits"] if wait == "semaphore m" else [], wait)
        equal(trace.summary(31 * MS)["activity"]["idle_lock_ns"], 0, wait)


def waiter_of_a_lock_that_is_not_released(released):
    """Two goroutines wait for a mutex that an ended process had. What ends the first one's wait is not in the trace; it releases
    the lock 1 ms later, or this much later."""
    trace = Trace(2)
    for g in (1, 2):
        trace.here(g, 2, g - 1)
        trace.log(MS + g, g - 1, "wait", "mutex shared 0x7")
        trace.block(MS + 10 + g, g - 1, "sync", ("main.read", "main.reader"))
    trace.at(300 * MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
    trace.start(300 * MS + 10, 0, 1)
    trace.wake(300 * MS + released, 0, 2, ("main.leave", "main.reader"))
    trace.start(300 * MS + released + 10, 1, 2)
    end = 310 * MS + released
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_lock_is_not_held_by_one_that_waits_for_it():
    equal(waiter_of_a_lock_that_is_not_released(MS), {})
    text = waiter_of_a_lock_that_is_not_released(200 * MS)["lock-serialises"]["text"]
    assert text.startswith("main.leave (main.go:10) held mutex shared 0x7 for 200 ms while others waited. "), text


@test
def the_caller_of_a_function_that_takes_and_releases_a_file_lock_holds_it():
    """As one that has the command of fcntl() as an argument."""

    def holder(same, lock="file lock app.lock"):
        trace = Trace(2)
        trace.call = "main.set_lock" if same else None
        for g in (1, 2):
            trace.here(g, 2, g - 1)
        trace.log(MS, 0, "wait", lock)
        trace.block(MS + 10, 0, "sync", ("main.set_lock", "main.insert"))
        trace.wake(201 * MS, 1, 1, ("main.set_lock", "main.compact", "main.worker"))
        trace.start(201 * MS + 10, 0, 1)
        text = trace.findings(210 * MS, "--from=0ns", f"--to={210 * MS}ns")["lock-serialises"]["text"]
        return text[: text.index(f" held {lock} for 200 ms")]

    equal(holder(True), "main.compact (main.go:11)")
    equal(holder(False), "main.set_lock (main.go:10)")
    # A wait for a condition variable both releases its mutex and waits for it.
    equal(holder(True, "mutex m"), "main.set_lock (main.go:10)")


@test
def a_function_that_releases_a_lock_last_and_leaves_no_frame_holds_it():
    """As optimised: the release shows its caller, at the call through which the other one waits in that function."""

    def holder(same=True, took="main.update"):
        trace = Trace(2)
        trace.call = "main.client" if same else None
        for g in (1, 2):
            trace.here(g, 2, g - 1)
        trace.log(MS, 0, "wait", "mutex m")
        trace.block(MS + 10, 0, "sync", ("main.update", "main.client"))
        trace.log(201 * MS - 10, 1, "held", "mutex m 201ms", (took,))
        trace.wake(201 * MS, 1, 1, ("main.client", "main.worker"))
        trace.start(201 * MS + 10, 0, 1)
        found = trace.findings(210 * MS, "--from=0ns", f"--to={210 * MS}ns")["lock-serialises"]
        assert found["text"].startswith(found["function"] + " (main.go:1"), found
        return found["function"]

    equal(holder(), "main.update")
    equal(holder(same=False), "main.client")
    equal(holder(took="main.scan"), "main.client")


@test
def a_futex_that_serves_as_a_barrier_is_held_by_none():
    trace = Trace(4)
    for g in range(1, 5):
        trace.here(g, 2, g - 1)
    for n in range(20):
        now, last = (1 + 10 * n) * MS, 2 if n > 0 else 1  # from the second on the one that waited in the first
        for g in range(1, 5):
            if g != last:
                trace.log(now + g, g - 1, "wait", "futex gen")
                trace.block(now + 10 + g, g - 1, "sync", WORK_STACK)
                trace.wake(now + 9 * MS + g, last - 1, g, WORK_STACK)
                trace.start(now + 9 * MS + 50 + g, g - 1, g)
    for finding in trace.summary(202 * MS)["findings"]:
        assert "held" not in finding["text"], finding
    [lock] = answer("locks", trace.path(202 * MS))["locks"]
    equal(lock["can_be_held"], False)


@test
def a_lock_that_is_waited_for_while_others_work_does_not_serialise():
    equal(list(hand_over("sync", LOCK, busy=True).findings(31 * MS)), ["lock-contention"])


def contended(waits, length, ready=0, begin=0, end=100 * MS, holder=UNLOCK):
    """In 100 ms, or a part of them, a lock is waited for this often by one of two goroutines that otherwise run all
    the time. `ready` more goroutines are ready. `holder`: the stack of each release."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    for i in range(ready):
        trace.create(100 + i, 0, 10 + i)
    trace.here(2, 2, 1)
    for i in range(waits):
        now = (1 + 6 * i) * MS
        trace.block(now, 1, "sync", LOCK)
        trace.wake(now + length, 0, 2, holder)
        trace.start(now + length, 1, 2)
    return trace.findings(101 * MS, f"--from={begin}ns", f"--to={end}ns")


@test
def a_lock_serialises_from_a_fifth_of_the_time_and_ten_waits_on():
    found = contended(10, 2 * MS)
    equal(list(found), ["lock-serialises"])
    equal(found["lock-serialises"]["weight"], 0.2)
    assert ". For 20 % of the time, others waited for it and at most one goroutine worked. 10 waits" in found["lock-serialises"]["text"], found
    assert "10 waits took 20.0 ms, the longest 2.00 ms at main.deposit" in found["lock-serialises"]["text"], found
    equal(found["lock-serialises"]["function"], "main.pay")
    equal(contended(10, 2 * MS - 1), {})
    equal(contended(9, 4 * MS), {})


@test
def of_a_lock_within_a_package_of_go_the_caller_is_named():
    text = contended(10, 2 * MS, holder=("log.(*Logger).output", "log.Printf", "main.pay"))["lock-serialises"]["text"]
    assert text.startswith("log.(*Logger).output (main.go:10) held a lock ") and " The last holder was called by main.pay (main.go:12)." in text, text
    assert "called by" not in contended(10, 2 * MS)["lock-serialises"]["text"]


@test
def who_waits_for_a_p_does_not_work_and_might():
    assert "lock-serialises" in contended(10, 2 * MS, ready=1)
    assert "lock-serialises" not in contended(10, 2 * MS, ready=2)


def held_once(ns, of, ready=False, others=None):
    """Goroutine 1 waits once for a mutex that goroutine 2 holds this long, asleep or without a CPU;
    other programs use this many CPUs."""
    trace = Trace(2)
    if others is not None:
        trace.string(f"trail.recorded machine pid=0 count=2 cpu={int(others * MS)} recorder={MS} name=")
    trace.here(1, 2, 0)
    trace.create(10, 0, 2)
    trace.start(20, 1, 2)
    trace.log(MS - 10, 0, "wait", "mutex user_mu")
    trace.block(MS, 0, "sync", ("main.lookup", "main.main"))
    if ready:
        trace.at(MS + 10, 1, f"GoStop reason_string={trace.string('preempted')} stack=0")
    else:
        trace.block(MS + 10, 1, "sleep", WORK_STACK)
        trace.at(MS + ns - 20, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
    trace.start(MS + ns - 10, 1, 2)
    trace.wake(MS + ns, 1, 1, ("main.vacuum", "main.worker"))
    trace.start(MS + ns + 10, 0, 1)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def a_lock_that_is_held_for_long_once_is_reported_though_its_sum_is_small():
    found = held_once(100 * MS, 2000 * MS)["long-hold"]
    assert found["text"].startswith("main.vacuum (main.go:10) held mutex user_mu for 100 ms while others waited. The longest wait took 5 % of the time. 1 wait took 100 ms at main.lookup (main.go:10). "), found
    equal((found["function"], found["object"], found["gain_ns"]), ("main.vacuum", "mutex user_mu", 100 * MS))
    assert "long-hold" not in held_once(100 * MS - 1, 1900 * MS) and "long-hold" not in held_once(100 * MS, 2001 * MS)
    # Without a CPU, unless other programs had it.
    assert "long-hold" not in held_once(100 * MS, 2000 * MS, ready=True)
    assert "long-hold" not in held_once(100 * MS, 2000 * MS, ready=True, others=0.5)
    found = held_once(100 * MS, 2000 * MS, ready=True, others=0.01)["long-hold"]
    assert " For 100 % of that time the holder was ready but had no CPU. " in found["text"], found
    found = held_once(100 * MS, 400 * MS)
    assert "lock-serialises" in found and "long-hold" not in found, found


@test
def a_sleep_of_a_recording_has_its_kind_though_no_other_wait_has_a_log():
    def kinds(*strings):
        trace = Trace(1)
        for text in strings:
            trace.string(text)
        trace.here(1, 2, 0)
        trace.block(MS, 0, "sleep", WORK_STACK)
        trace.wake(2 * MS, 0, 1)
        return [b.get("wait_kind") for w in trace.summary(3 * MS)["waits"] for b in w["blocked"]]

    equal(kinds("trail.made by=record"), ["sleep"])
    equal(kinds(), [None])


def starved(waits, hold=3 * MS, ends=True, again=True, written=False):
    """Two threads take an rwlock to read in turn, so that their holds overlap, and main waits to write until the last of these ends: `waits` times,
    for 20 ms each. Or the readers take it once each, before main waits; or another writer has it first, in `written`."""
    trace = Trace(3, idle=())
    for g in (1, 2, 3):
        trace.here(g, 2, g - 1)
    at = MS
    for n in range(waits):
        trace.log(at, 0, "wait", "rwlock to write price_rw")
        trace.block(at + 10, 0, "sync", ("main.publish", "main.main"))
        end = at + 20 * MS
        if written:
            trace.log(at + 1 * MS, 1, "held", "rwlock to write price_rw 500us", ("main.quote",))
        for i in range(12 if again else 1):
            done = at + hold * (i + 1) // 2 if again else end - 100
            trace.log(done, 1 + i % 2, "held", f"rwlock to read price_rw {hold if again else done - at + 50}ns", ("main.quote",))
        if ends or n + 1 < waits:
            trace.wake(end, 2 if again else 1, 1, ("main.quote",))
            trace.start(end + 10, 0, 1)
        at = end + 2 * MS
    if not ends:
        at += 200 * MS
    return trace.findings(at, "--from=0ns", f"--to={at}ns")


@test
def readers_that_take_a_lock_one_after_the_other_keep_a_writer_out():
    found = starved(10)
    equal(list(found), ["writer-starved"])  # no hold is long
    assert found["writer-starved"]["text"].startswith(
        "Readers kept main.publish (main.go:10) waiting for rwlock price_rw to write, for 200 ms. In 10 of 10 waits, the longest 20.0 ms, others took it to read "
        "after the wait had begun, last at main.quote (main.go:10). Their holds overlap: none was longer than 3.00 ms. At most 170 ms of 221 ms would be saved without these waits."
    ), found
    assert "writer-starved" not in starved(2)  # 40 ms
    # Readers that had it before hold it for long.
    found = starved(10, again=False)
    equal(list(found), ["lock-contention"])
    # They got in when another writer had released it.
    assert "writer-starved" not in starved(10, written=True)
    # The wait goes on.
    text = starved(1, ends=False)["open-wait"]["text"]
    assert "Readers kept it out: others took it to read meanwhile, last at main.quote (main.go:10), and their holds overlap." in text, text
    assert "is held by" not in text, text
    assert "Readers" not in starved(1, ends=False, again=False)["open-wait"]["text"]


def released(*holds, by=("main.vacuum", "main.worker")):
    """Goroutine 2 wakes goroutine 1, which has waited for a mutex for 100 ms, also while others had it; with goroutine 2's holds."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2)
    trace.start(20, 1, 2)
    trace.log(MS - 10, 0, "wait", "mutex m")
    trace.block(MS, 0, "sync", ("main.lookup", "main.main"))
    for i, (text, function) in enumerate(holds):
        trace.log(101 * MS - 100 + 10 * i, 1, "held", text, (function, "main.worker"))
    trace.wake(101 * MS, 1, 1, by)
    trace.start(101 * MS + 10, 0, 1)
    return trace.findings(400 * MS, "--from=0ns", "--to=400ms")["lock-serialises"]


@test
def a_function_held_a_lock_no_longer_than_all_its_holds_took():
    own, other, elsewhere = ("mutex m 20ms", "main.vacuum"), ("mutex n 7ms", "main.vacuum"), ("mutex m 9ms", "main.scan")
    for logs, ns, text in (
        ((own,), 20 * MS, "20.0 ms"),
        ((own, own), 40 * MS, "40.0 ms"),
        (6 * (own,), 100 * MS, "100 ms"),
        # Unknown: the hold that ended the wait was of another lock, or taken by another function.
        ((), 100 * MS, "100 ms"),
        ((own, other), 100 * MS, "100 ms"),
        ((own, elsewhere), 100 * MS, "100 ms"),
    ):
        found = released(*logs)
        assert f"main.vacuum (main.go:10) held mutex m for {text} while others waited. " in found["text"], (logs, found)
        assert found["gain_ns"] <= ns, found
    assert "1 wait took 100 ms" in released(own)["text"], released(own)


@test
def where_a_lock_was_taken_counts_if_its_release_shows_no_function_of_the_program():
    """With optimisation, a release may be the last that the functions of a thread do."""

    def held(release, lock="m"):
        return released((f"mutex {lock} 90ms", "main.vacuum"), by=release)["text"]

    library = ("libstdc++.so.6+0xd44a2",)
    assert held(library).startswith("main.vacuum (main.go:10) held mutex m for 90.0 ms while others waited. "), held(library)
    assert held(("main.sweep", "main.worker")).startswith("main.sweep (main.go:10) held mutex m for "), held(("main.sweep",))
    assert held(library, lock="n").startswith("libstdc++.so.6+0xd44a2 (main.go:10) held mutex m for "), held(library, lock="n")


@test
def a_lock_that_another_one_releases_was_held_where_it_was_taken():
    by = ("main.sweep", "main.worker")
    text = released(("mutex m 90ms by 3", "main.vacuum"), by=by)["text"]
    assert text.startswith("main.vacuum (main.go:10) held mutex m for 90.0 ms while others waited. "), text
    # The goroutine that waits has taken the lock itself: this is a signal.
    try:
        text = released(("mutex m 90ms by 1", "main.vacuum"), by=by)["text"]
    except KeyError as missing:
        text = str(missing)
    equal(text, "'lock-serialises'")


@test
def what_names_functions_without_symbols_is_said_once():
    def text(*by):
        return released(by=by)["text"]

    advice = " app has no symbols: build it with -g and record again, or install its debug information and see trail-symbolize(1). "
    assert text("app+0x1234").count(advice) == 1, text("app+0x1234")
    # A library's function is not the culprit, but its caller.
    for by in (["main.vacuum"], ["libstdc++.so.6+0xd44a2", "main.vacuum"], ["libstdc++.so.6+0xd44a2"], ["main.f+0xy"]):
        assert "symbols" not in text(*by), text(*by)


@test
def the_caller_of_functions_that_unlock_for_others_holds_the_lock():
    def held(took, *by):
        text = released(("mutex m 90ms", took), by=by)["text"]
        return text[: text.index(" held")]

    for name in "cache_unlock", "Cache::Unlock", "CACHE_UNLOCK":
        equal(held("cache_lock", name, "main.refresh", "main.worker"), "main.refresh (main.go:11)")
    equal(held("cache_lock", "table_unlock", "cache_unlock", "main.refresh", "main.worker"), "main.refresh (main.go:12)")
    # One that does more than that, or took the lock itself; or no function of the program called it.
    equal(held("cache_lock", "main.finish", "main.refresh", "main.worker"), "main.finish (main.go:10)")
    equal(held("rebuild_unlocked", "rebuild_unlocked", "main.refresh", "main.worker"), "rebuild_unlocked (main.go:10)")
    equal(held("cache_lock", "cache_unlock", "libapp.so.1+0x7a2"), "cache_unlock (main.go:10)")


def holder_waits_for_a_cpu(ready, hold=300 * MS, of=1000 * MS, go=False, full=False):
    """Goroutine 1 waits for a mutex that goroutine 2 holds, which is ready for this much of the
    time while goroutines 3 and 4 run, and with `full` goroutine 5."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2)
    trace.start(20, 1, 2)
    for g in (3, 4, 5) if full else (3, 4):
        trace.create(20 + g, 0, g, ("main.burn",))
    trace.start(30, 2, 3)
    if not go:
        trace.log(MS - 10, 0, "wait", "mutex user_mu")
    trace.block(MS, 0, "sync", (("sync.(*Mutex).Lock",) if go else ()) + ("main.lookup", "main.main"))
    trace.start(MS + 2, 0, 4)
    trace.at(MS + hold - ready, 1, f"GoStop reason_string={trace.string('preempted')} stack=0")
    if full:
        trace.start(MS + hold - ready + 5, 1, 5)
        trace.at(MS + hold - 5, 1, "GoDestroy")
    trace.start(MS + hold, 1, 2)
    trace.wake(MS + hold, 1, 1, ("main.vacuum", "main.worker"))
    trace.block(MS + hold + 10, 1, "sleep", WORK_STACK)
    trace.start(MS + hold + 20, 1, 1)
    if go:
        trace.block(MS + hold + 30, 1, "chan receive", WORK_STACK)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def a_holder_that_is_ready_without_a_cpu_is_named():
    found = holder_waits_for_a_cpu(ready=200 * MS)
    assert "lock-serialises" not in found and "lock-contention" not in found, found
    text = found["holder-not-running"]["text"]
    assert text.startswith("main.vacuum (main.go:10) held mutex user_mu for 300 ms while others waited, and was ready without a CPU for most of that. 1 wait of 300 ms at main.lookup (main.go:10). For 67 % of that time the holder was ready but had no CPU. main.burn ran most."), text
    equal(found["holder-not-running"]["gain_ns"], 200 * MS)
    # It had a CPU for more than half of its holds, or lacked one for less than a fifth of the time.
    assert "holder-not-running" not in holder_waits_for_a_cpu(ready=149 * MS, of=700 * MS)
    assert "holder-not-running" not in holder_waits_for_a_cpu(ready=199 * MS)
    # Others of a Go program use all its Ps meanwhile.
    assert "holder-not-running" not in holder_waits_for_a_cpu(ready=250 * MS, of=460 * MS, go=True, full=True)
    assert "holder-not-running" in holder_waits_for_a_cpu(ready=250 * MS, of=460 * MS, full=True)
    assert "holder-not-running" in holder_waits_for_a_cpu(ready=250 * MS, go=True)


@test
def a_window_counts_what_is_inside():
    found = hand_over("sync", LOCK).summary(31 * MS, "--from=10ms", "--to=+10ms")
    equal(found["end_ns"] - found["begin_ns"], 10 * MS)
    equal(sum(s["running_ns"] for s in found["activity"]["slices"]), found["activity"]["running_ns"])
    equal(found["activity"]["available_ns"], 20 * MS)
    assert [f["kind"] for f in found["findings"]] == ["lock-serialises"], found["findings"]


def named(locks, count=10):
    """The lock of each wait in a recording of a C program; the waits take a fifth of 100 ms."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for i in range(count):
        now = (1 + 6 * i) * MS
        trace.log(now - 10, 1, "wait", locks[i % len(locks)])
        trace.block(now, 1, "sync", WORK_STACK)
        trace.wake(now + 2 * MS, 0, 2)
        trace.start(now + 2 * MS, 1, 2)
    return trace.findings(101 * MS, "--from=0ns", "--to=100ms")["lock-serialises"]["text"]


@test
def a_lock_has_its_name_where_the_trace_records_it():
    assert "main.pay (main.go:11) held mutex a_mu for " in named(["mutex a_mu"]), named(["mutex a_mu"])
    # One place, several locks: each is counted separately.
    mixed = named(3 * ["mutex a_mu"] + ["mutex b_mu"], 16)
    assert " held mutex a_mu for " in mixed and ". 12 waits took 24.0 ms, " in mixed, mixed


def crowded(waits, length, workers=2):
    """One goroutine waits for a lock while `workers` work, for 100 ms."""
    trace = Trace(workers + 1)
    for n in range(workers):
        trace.here(n + 1, 2, n)
    trace.here(9, 2, workers)
    for i in range(waits):
        now = (1 + 8 * i) * MS
        trace.block(now, workers, "sync", LOCK)
        trace.wake(now + length, 0, 9)
        trace.start(now + length, workers, 9)
    return trace.findings(101 * MS, "--from=0ns", "--to=100ms")


@test
def waits_for_a_lock_of_a_fifth_of_the_work_are_contention_although_others_work():
    found = crowded(12, 6 * MS)
    equal(list(found), ["lock-contention"])
    text = found["lock-contention"]["text"]
    # 72 ms of waiting; two work for 100 ms, one for 28 ms.
    assert "main.pay (main.go:11) held a lock (inferred from its release) for 72.0 ms while others waited. They waited for it for 24 % of the time in which goroutines had work. " in text, text
    assert "12 waits took 72.0 ms, the longest 6.00 ms at main.deposit (main.go:11)" in text, text
    equal(list(crowded(12, 5 * MS)), ["lock-contention"])
    equal(crowded(12, 5 * MS - 1), {})  # a fifth of 300 ms
    equal(crowded(9, 7 * MS), {})


@test
def what_a_lock_costs_is_no_more_than_the_cpus_would_save():
    found = contended(10, 2 * MS)["lock-serialises"]
    # One of two runs for 100 ms all the time, the other one for 80 ms: 90 ms on each.
    equal(round(found["gain_ns"] / MS, 1), 10.0)
    assert "held a lock (inferred from its release) for 20.0 ms" in found["text"] and "At most 10.0 ms of 100 ms would be saved without these waits." in found["text"], found
    # Also if it is held all the time.
    found = contended(16, 6 * MS - 1000, begin=MS, end=97 * MS)["lock-serialises"]
    assert " for 96.0 ms while others waited" in found["text"] and "At most 48.0 ms of 96.0 ms would be saved without these waits." in found["text"], found
    # The holder may do less, which saves its own time, too.
    equal(found["gain_title"], "waits cost at most")
    equal(found["bound"], "At most 48.0 ms of 96.0 ms would be saved without these waits.")
    assert "would be saved" not in found["remedy"], found


@test
def who_passes_a_lock_on_is_not_blamed_for_the_one_that_held_it():
    for chain in (False, True):
        found = passed_on(80 * MS, chain)["lock-serialises" if "lock-serialises" in passed_on(80 * MS, chain) else "lock-contention"]
        assert found["text"].startswith("main.rebuild (main.go:10) held mutex a_mu for "), found
        equal((found["function"], found["object"]), ("main.rebuild", "mutex a_mu"))
        # Two waits; the second counts to its end against the same function.
        assert ". 2 waits took 160 ms, the longest 80.0 ms" in found["text"], found
        # Its work, 80 ms, and the 20 ms that all three run at last, divided among three.
        equal((found["weight"], round(found["gain_ns"] / MS, 1)), (0.8000001, 53.3))
    # Few waits count if they took 100 ms in all.
    assert not {"lock-serialises", "lock-contention"} & set(passed_on(49 * MS)), passed_on(49 * MS)


@test
def the_owner_of_a_librarys_lock_holds_it_while_it_waits():
    found = owned()
    equal(list(found), ["lock-serialises"])
    equal(
        found["lock-serialises"]["text"],
        "main.construct (main.go:10) held mutex _rtld_global (in dlopen) for 100 ms while others waited. "
        "For 99 % of the time, others waited for it and at most one goroutine worked. 1 wait took 100 ms at main.open (main.go:10). "
        "For 100 % of that time the holder was itself waiting (sleep at main.construct (main.go:10)). "
        "It is a library's lock: do less while it is held, or let fewer goroutines call these functions.",
    )
    assert "Release the lock before that wait." in owned(object="mu", owns="mu")["lock-serialises"]["text"]
    # Another one may have had it for the rest of the time.
    assert "lock-serialises" in owned(part=51)
    equal(owned(part=49), {})
    equal(owned(owns="other"), {})


def logged(threads=2, length=MS, count=60, what="write syslog", gap=MS // 2):
    """So many threads begin a call to syslog at about the same time, again and again, and return after that long."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.block(10, 0, "chan receive", ("main.rest",))
    for g in range(2, 2 + threads):
        trace.create(3 + g, 0, g, ("main.audit",))
        trace.start(100 + g, g - 1, g)
        for i in range(count):
            now = MS + i * (length + gap) + g
            trace.log(now, g - 1, "wait", what)
            trace.block(now + 5, g - 1, "network", ("main.log", "main.audit"))
            trace.at(now + 5 + length, g - 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
            trace.start(now + 10 + length, g - 1, g)
    return trace.findings(MS + count * (length + gap))


@test
def threads_that_are_in_syslog_together_wait_for_each_other():
    found = logged()
    assert found["lock-contention"]["text"].startswith(
        "Threads wait for each other in syslog at main.log (main.go:10) for 66 % of the time. "
        "One at a time writes to the log, under a lock of the C library. On average 2.0 waited. 120 waits, 120 ms in all, "
    ), found
    assert "lock-contention" not in logged(threads=1)
    assert "lock-contention" not in logged(what="write /dev/null")
    assert "lock-contention" not in logged(gap=3 * MS)


@test
def what_a_holder_waits_for_in_many_pieces_is_known_in_part():
    def held(pieces):
        trace = Trace(2)
        trace.here(1, 2, 0)
        trace.create(10, 0, 2)
        trace.start(20, 1, 2)
        trace.log(MS - 10, 0, "wait", "mutex m")
        trace.block(MS, 0, "sync", ("main.lookup", "main.main"))
        for i in range(pieces):
            now = MS + i * 100 * MS // pieces
            trace.block(now, 1, "sleep", WORK_STACK)
            trace.at(now + 96 * MS // pieces, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + 96 * MS // pieces + 10, 1, 2)
        trace.wake(101 * MS, 1, 1, ("main.vacuum", "main.worker"))
        trace.start(101 * MS + 10, 0, 1)
        return trace.findings(400 * MS, "--from=0ns", "--to=400ms")["lock-serialises"]["text"]

    assert "For 96 % of that time the holder was itself waiting (sleep" in held(6), held(6)
    assert "For at least 77 % of that time the holder was itself waiting (sleep" in held(10), held(10)


@test
def what_the_holder_waited_for_is_compared_with_its_own_part_of_a_wait():
    found = committed()["lock-serialises"]["text"]
    assert "For 87 % of that time the holder was itself waiting (sleep at main.commit (main.go:10))." in found, found


@test
def a_lock_that_another_process_held_has_its_name():
    def held(waiter):
        trace = Trace(2)
        trace.here(99, 2, 0)
        trace.create(10, 0, 1, ("main.compact", "store (7): main"))
        trace.create(11, 0, 2, ("main.append", waiter))
        trace.block(20, 0, "sync", ("main.main",))
        trace.start(30, 0, 1)
        trace.start(30, 1, 2)
        trace.log(MS - 10, 1, "wait", "file lock /tmp/store")
        trace.block(MS, 1, "sync", ("main.append", waiter))
        trace.wake(201 * MS, 0, 2, ("main.compact", "store (7): main"))
        trace.start(201 * MS + 10, 1, 2)
        (found,) = [f["text"] for kind, f in trace.findings(210 * MS, "--from=0ns", "--to=210ms").items() if kind.startswith("lock-")]
        return found

    assert held("app (6): main").startswith("main.compact (main.go:10) of store (7) held file lock /tmp/store for "), held("app (6): main")
    assert held("store (7): work").startswith("main.compact (main.go:10) held file lock /tmp/store for ")


@test
def the_holder_of_an_rwlock_with_a_name_is_recorded():
    found = hand_over("sync", WORK_STACK, wait="rwlock to write a_rw").findings(31 * MS)["lock-serialises"]["text"]
    assert "held rwlock a_rw for " in found, found


@test
def a_holder_that_has_no_cpu_is_why_a_lock_is_held():
    def held(ready):
        trace = Trace(3)
        for n in (1, 2, 3):
            trace.here(n, 2, n - 1)
        trace.log(MS - 10, 1, "wait", "mutex a_mu")
        trace.block(MS, 1, "sync", ("main.look",))
        trace.at(10 * MS, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(('main.rebuild',))}")
        trace.start(10 * MS + ready, 0, 1)
        trace.wake(101 * MS, 0, 2, ("main.rebuild",))
        trace.start(101 * MS + 10, 1, 2)
        return trace.findings(150 * MS, "--from=0ns", "--to=150ms")

    (found,) = [f["text"] for kind, f in held(40 * MS).items() if kind.startswith("lock-")]
    assert found.startswith("main.rebuild (main.go:10) held mutex a_mu for ") and "For 40 % of that time the holder was ready but had no CPU." in found, found
    (found,) = [f["text"] for kind, f in held(39 * MS).items() if kind.startswith("lock-")]
    assert "no CPU" not in found, found


@test
def a_wait_in_which_the_lock_changes_hands_is_one_wait():
    # Three take the lock in turn for 20 ms each; the waits of the second and third have one and two parts.
    trace = Trace(4)
    for n in (1, 2, 3, 4):
        trace.here(n, 2, n - 1)
        if n > 1:
            trace.block(MS + n, n - 1, "sync", LOCK)
    for n in (1, 2, 3):
        at = MS + n * 20 * MS
        trace.wake(at, n - 1, n + 1, UNLOCK)
        trace.start(at + 10, n, n + 1)
    found = trace.findings(62 * MS, "--from=0ns", f"--to={62 * MS}ns")
    (text,) = [found[kind]["text"] for kind in ("lock-serialises", "lock-contention") if kind in found]
    assert "held a lock (inferred from its release) for 60.0 ms while others waited" in text and " 3 waits took 120 ms, the longest 60.0 ms at " in text, text


@test
def a_sleep_in_a_helper_of_several_functions_names_its_caller():
    def napped(callers):
        """A thread holds a lock while it sleeps in a helper, which these functions call in turn."""
        trace = Trace(2)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        trace.here(2, 2, 1)
        for i in range(20):
            now = (1 + i) * 10 * MS
            caller = callers[i % len(callers)]
            trace.log(now - 100, 1, "wait", "mutex a_mu")
            trace.block(now, 1, "sync", ("main.look",))
            trace.block(now, 0, "sleep", ("main.nap", caller, "main.main"))
            trace.at(now + 8 * MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start(now + 8 * MS + 10, 0, 1)
            trace.wake(now + 8 * MS + 100, 0, 2, (caller, "main.main"))
            trace.start(now + 8 * MS + 200, 1, 2)
        text = trace.findings(220 * MS, "--from=0ns", f"--to={220 * MS}ns")["lock-serialises"]["text"]
        return re.search(r"itself waiting \((.*)\)\. At most", text)[1]

    equal(napped(["main.update"]), "sleep at main.nap (main.go:10)")
    equal(napped(["main.rest"] + ["main.update"] * 19), "sleep at main.nap (main.go:10), called by main.update (main.go:11)")


def gives_up(limit=10 * MS, held=80 * MS, taken=MS, kind="mutex stats_mu", hold=None, released=True, took=("main.dump", "main.writer"), writer=None):
    """Two goroutines wait for a lock up to a limit, again and again, while a third one holds it, asleep, and may release it."""
    trace = Trace(3)
    for g in (1, 2) if writer else (1, 2, 3):
        trace.here(g, 2, g - 1)
    if writer:
        trace.create(2, 0, 3, (writer,))
        trace.start(3, 2, 3)
    trace.block(taken + 10, 2, "sleep", ("time.Sleep", "main.dump", "main.writer"))
    now = MS + 20
    while now + limit + 10 * US < MS + held:
        for g in (1, 2):
            trace.log(now + g, g - 1, "wait", kind)
            trace.block(now + 10 + g, g - 1, "sync", ("main.look", "main.reader"))
        for g in (1, 2):
            trace.at(now + limit + g, g - 1, f"GoUnblock g={g} g_seq=%d stack=0", g)
            trace.start(now + limit + 10 + g, g - 1, g)
            trace.log(now + limit + 20 + g, g - 1, "wait", "timed out")
        now += limit + 10 * US
    trace.at(MS + held, 2, "GoUnblock g=3 g_seq=%d stack=0", 3)
    trace.start(MS + held + 10, 2, 3)
    if released:
        trace.log(MS + held + 20, 2, "held", f"{hold or kind} {MS + held - taken}ns", took)
    end = MS + held + 100
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def what_holds_a_lock_while_waits_for_it_are_given_up_is_named():
    found = gives_up()
    equal(list(found), ["lock-serialises"])
    text = found["lock-serialises"]["text"]
    assert text.startswith("main.dump (main.go:10) held mutex stats_mu for 70.0 ms while others waited. "), text
    assert "14 waits took 140 ms, the longest 10.0 ms at main.look (main.go:10). " in text, text
    assert "For 100 % of that time the holder was itself waiting (sleep at main.dump (main.go:11))." in text, text
    # Short ones are no polling: the lock is held.
    equal(list(gives_up(limit=MS, held=400 * MS)), ["lock-serialises"])
    # It is not known what had the lock before.
    assert "for 50.0 ms" in gives_up(taken=21 * MS)["lock-serialises"]["text"]
    # One that writes keeps readers out; one of several readers is not what does.
    text = gives_up(kind="rwlock to read stats_rw", hold="rwlock to write stats_rw")["lock-serialises"]["text"]
    assert text.startswith("main.dump (main.go:10) held rwlock stats_rw for 70.0 ms "), text
    equal(gives_up(kind="rwlock to write stats_rw", hold="rwlock to read stats_rw"), {})
    equal(list(gives_up(limit=MS, held=400 * MS, kind="rwlock to read stats_rw", hold="rwlock to write stats_rw")), ["lock-serialises"])
    equal(gives_up(hold="mutex other_mu"), {})
    # Many are kept as well; all are counted.
    text = gives_up(limit=100 * US, held=200 * MS)["lock-serialises"]["text"]
    assert "3,636 waits took 364 ms, the longest 100 us at main.look " in text, text
    # A function that takes it for others is not what holds it; if its caller is not recorded, the thread is.
    for took, name in ((("db_lock", "main.dump"), "main.dump (main.go:11)"), (("db_lock",), "main.writer-7")):
        text = gives_up(took=took, writer="main.writer-7")["lock-serialises"]["text"]
        assert text.startswith(name + " held mutex stats_mu for 70.0 ms while others waited. "), text
    # Nothing says what held it.
    found = gives_up(limit=MS, held=400 * MS, released=False)
    equal(list(found), ["polling"])
    assert found["polling"]["text"].startswith("main.reader waits in vain: 792 of 792 waits (mutex) timed out, after 1.00 ms on average."), found


if __name__ == "__main__":
    sys.exit(main())
