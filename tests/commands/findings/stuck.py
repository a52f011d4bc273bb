#!/usr/bin/env python3
"""Hangs and leaks: deadlocks, waits that never end, goroutines that stay blocked. TAP.

usage: stuck.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import WORK, answer, equal, good  # noqa: E402
from made import COND, GROUP, LOCK, MS, NOBODY, UNLOCK, US, WORK_STACK, Trace, main  # noqa: E402
from programs import all_wait, created, created_at, open_in_go  # noqa: E402
from tap import test  # noqa: E402


@test
def goroutines_that_are_created_all_along_and_stay_blocked_leak():
    found = created(95 * MS)
    equal(list(found), ["leak"])
    assert "main.worker" in found["leak"]["text"] and "40 were created" in found["leak"]["text"], found
    equal(found["leak"]["goroutine"], 10)
    # Its place is its first wait, until the end; it costs no time.
    equal((found["leak"]["end_ns"] - found["leak"]["begin_ns"]) // MS, 98)
    equal(found["leak"]["gain_ns"], 0)
    assert "All of these" not in found["leak"]["text"], found  # the place of such a wait is not followed
    equal(created(95 * MS, name="runtime.gcBgMarkWorker"), {})  # which the runtime keeps
    text = created(95 * MS, waits="sync.(*Cond).Wait")["leak"]["text"]
    assert text.endswith(" All of these wait (sync.(*Cond).Wait) at main.send (main.go:10)."), text


@test
def a_pool_that_is_made_at_first_and_goroutines_that_end_are_no_leak():
    equal(created(10 * MS), {})
    equal(created(95 * MS, ends=40), {})


@test
def goroutines_that_wait_to_send_leak_although_others_end():
    found = created(95 * MS, ends=20, count=60, waits="chan send")
    equal(list(found), ["leak"])
    assert "60 were created throughout at main.work (main.go:10), 20 ended" in found["leak"]["text"], found
    assert "(chan send: nothing receives what they send)" in found["leak"]["text"], found
    # Workers may have been idle for a long time.
    equal(created(95 * MS, ends=20, count=60), {})


def created_twice(early, late):
    """Creates this many in the first half, and this many in the second, all blocked long before the end."""
    return created_at([(1 + i) * MS for i in range(early)] + [(60 + i) * MS for i in range(late)], 0)


@test
def twenty_that_are_blocked_leak_if_few_end_and_they_come_all_along():
    equal(list(created(80 * MS, count=20)), ["leak"])
    equal(created(80 * MS, count=19), {})
    equal(list(created(80 * MS, count=30, ends=3)), ["leak"])
    equal(created(80 * MS, count=30, ends=4), {})
    equal(list(created_twice(5, 15)), ["leak"])
    equal(created_twice(4, 16), {})
    equal(list(created_twice(21, 3)), ["leak"])
    equal(created_twice(22, 2), {})
    equal(created_twice(21, 3)["leak"]["goroutine"], 10)


@test
def all_that_are_blocked_are_counted():
    for count in range(20, 60):
        text = created(80 * MS, count=count)["leak"]["text"]
        assert f"{count} were created throughout at main.work (main.go:10), 0 ended, and {count} have been waiting" in text, text


@test
def who_is_blocked_for_less_than_a_tenth_of_the_time_does_not_count():
    early = [(1 + i) * MS for i in range(19)]
    equal(created_at(early + [95 * MS], 0), {})
    equal(list(created_at(early + [89 * MS, 88 * MS, 87 * MS], 0)), ["leak"])


def waiting(waits, lasts=150 * MS):
    """Goroutines, each with the locks that it holds and the one that it waits for until the end: 'mutex a_mu'."""
    trace = Trace(len(waits) + 1)
    end = 2 * MS + lasts
    trace.here(99, 2, 0)
    for n, (holds, wanted) in enumerate(waits, 1):
        trace.here(n, 2, n)
        for i, lock in enumerate(holds):
            trace.log(2 * MS - 20 + i, n, "holds", lock)
        if wanted:
            trace.log(2 * MS - 10, n, "wait", wanted)
            trace.block(2 * MS + 1 - n, n, "sync", WORK_STACK)  # the first waits for `lasts`
    return {f["kind"]: f for f in trace.summary(end, "--from=0ns", f"--to={end}ns")["findings"]}, trace


@test
def two_that_wait_for_each_other_are_in_a_deadlock():
    found, _ = waiting([(["mutex a_mu"], "mutex b_mu"), (["mutex b_mu"], "mutex a_mu")])
    text = found["deadlock"]["text"]
    assert re.search(r"\(1\) holds mutex a_mu and waits for mutex b_mu; \S+ .*\(2\) holds mutex b_mu and waits for mutex a_mu\.", text), text
    assert text.endswith(" Take locks in the same order everywhere."), text
    assert "open-wait" not in found, found
    equal(found["deadlock"]["end_ns"] - found["deadlock"]["begin_ns"], 150 * MS)

CHILD = 1000000000  # the goroutines of another process have higher numbers
CROSS = [(1, "read pipe:[1]", "1 0"), (CHILD + 1, "read pipe:[2]", "0 1")]


def ended_by(waits, looked=100 * MS, count=None, holds=(), runs=0, acts=(), ticks=0):
    """Goroutines that wait to the end, with the only processes that can end each wait, as found by
    the recorder at a given time, and the locks that they hold. Those in `acts` began to wait at
    120 ms, `runs` is running, and goroutine 7 sleeps so many times, to the end."""
    trace = Trace(len(waits) + 1)
    for thread, (g, wait, ends) in enumerate(waits):
        begin = 120 * MS if g in acts else MS
        trace.here(g, 2, thread)
        for lock in [lock for of, lock in holds if of == g]:
            trace.log(begin - 20, thread, "holds", lock)
        trace.log(begin - 10, thread, "wait", wait)
        trace.block(begin, thread, "sync", WORK_STACK)
        if ends:
            trace.string(f"trail.recorded ends pid={g} count={len(waits) + (runs > 0) if count is None else count} cpu={looked + 1000} recorder=0 name={ends}")
    if runs:
        trace.here(runs, 2, len(waits))
    if ticks:
        trace.here(7, 2, len(waits))
    for i in range(ticks):
        trace.block((10 + 20 * i) * MS, len(waits), "sleep", ("nap",))
        trace.at((29 + 20 * i) * MS, len(waits), "GoUnblock g=7 g_seq=%d stack=0", 7)
        trace.start((29 + 20 * i) * MS + 10, len(waits), 7)
    if ticks:
        trace.block((10 + 20 * ticks) * MS, len(waits), "sleep", ("nap",))
    return trace, trace.findings(200 * MS, "--words=threads")


@test
def processes_that_wait_for_each_other_are_in_a_deadlock():
    text = ended_by(CROSS)[1]["deadlock"]["text"]
    assert re.match(r"Deadlock of thread .* \(1\) and thread .* \(1000000001\) for 199 ms when", text), text
    assert re.search(r"\(1\) has the other end of pipe:\[2\] and waits to read from pipe:\[1\]; thread \S+ \(1000000001\) "
                     r"has the other end of pipe:\[1\] and waits to read from pipe:\[2\]\. The waits are at main\.work \(main\.go:10\)\. Let one of them write first", text), text
    found = ended_by([(1, "child process 12 (work)", "1 0"), (CHILD + 1, "write pipe:[1]", "0 1")])[1]
    equal([kind for kind in found if kind in ("deadlock", "open-wait")], ["deadlock"])
    text = found["deadlock"]["text"]
    assert re.search(r"\(1\) has the other end of pipe:\[1\] and waits for the exit of process 12 \(work\); thread \S+ \(1000000001\) "
                     r"has not ended and waits to write to pipe:\[1\]\. .*Read what it writes before", text), text
    text = ended_by([(1, "read pipe:[1]", "0")])[1]["deadlock"]["text"]
    assert "(1) has the other end of pipe:[1] and waits to read from pipe:[1]. The wait is at main.work (main.go:10). Close the other end where" in text, text


@test
def threads_of_a_process_that_has_both_ends_of_their_pipes_are_in_a_deadlock():
    text = ended_by([(1, "write pipe:[1]", "0"), (2, "write pipe:[2]", "0")])[1]["deadlock"]["text"]
    assert re.match(r"Deadlock of thread \S+ \(1\) and thread \S+ \(2\) for 199 ms when", text), text
    assert text.endswith(" Read and write at the same time."), text
    text = ended_by([(1, "write pipe:[1]", "0"), (2, "read pipe:[2]", "0"), (3, "write pipe:[3]", "0")])[1]["deadlock"]["text"]
    assert re.match(r"Deadlock of thread \S+ \(1\), thread \S+ \(2\) and thread \S+ \(3\) for 199 ms when", text), text
    assert "deadlock" not in ended_by([(1, "write pipe:[1]", "0"), (2, "read pipe:[2]", None)])[1]


@test
def threads_that_wait_for_one_of_them_do_not_end_a_deadlock_of_processes():
    locked = [*CROSS, (CHILD + 2, "mutex a", None)]
    assert "deadlock" in ended_by(locked, holds=[(CHILD + 1, "mutex a")])[1]
    assert "deadlock" not in ended_by(locked)[1]  # something unknown holds it
    # A cycle through a lock: each thread reads, or holds the lock.
    mixed = [(1, "read pipe:[1]", "1 0"), (CHILD + 1, "mutex a", None)]
    text = ended_by(mixed, holds=[(1, "mutex a")])[1]["deadlock"]["text"]
    assert "(1) holds mutex a and waits to read from pipe:[1]; " in text and text.endswith(" Release the lock before reading or writing."), text


@test
def a_wait_that_another_thread_or_process_may_end_is_no_deadlock():
    for others in ([(CHILD + 2, "poll", None)], [(2, "read pipe:[3]", None)], [(2, "child process 12 (work)", None)]):
        equal(ended_by(CROSS + others)[1], {})
    equal(ended_by(CROSS[:1])[1], {})  # the other process is not in the trace
    equal(ended_by([CROSS[0], (CHILD + 1, "read socket 10.0.0.1:80", None)])[1], {})
    # A chain: the last one waits for something external.
    chain = [(1, "read pipe:[1]", "1 0"), (CHILD + 1, "read pipe:[2]", "2 1"), (2 * CHILD + 1, "accept 127.0.0.1:80", None)]
    equal(ended_by(chain)[1], {})
    for runs in CHILD + 2, 2 * CHILD + 1:  # a running one may start a process, which also has the ends
        assert "deadlock" not in ended_by(CROSS, runs=runs)[1]
    locks = [(1, "read pipe:[1]", "1 0"), (CHILD + 1, "mutex a", None), (2 * CHILD + 1, "mutex b", None)]
    found = ended_by(locks, holds=[(2 * CHILD + 1, "mutex a")])[0].summary(200 * MS)["findings"]
    assert found and not any("to read" in f["text"] for f in found), found


@test
def what_was_found_about_other_ends_counts_only_if_nothing_was_done_since():
    assert "deadlock" in ended_by(CROSS, looked=120 * MS, acts=(1,))[1]
    equal(ended_by(CROSS, looked=120 * MS - 1, acts=(1,))[1], {})
    equal(ended_by(CROSS, looked=201 * MS)[1], {})
    equal(ended_by(CROSS, count=3)[1], {})  # part of a trace
    # Nor in a merged trace, where goroutines have different numbers.
    merged, cross = os.path.join(WORK, "merged.trace"), os.path.join(WORK, "cross.trace")
    shutil.copy(ended_by(CROSS)[0].path(200 * MS), cross)
    assert b"trail.recorded ends" in open(cross, "rb").read()
    good("merge", "-o", merged, cross, ended_by([(7, "poll", None)])[0].path(200 * MS))
    assert b"trail.recorded ends" not in open(merged, "rb").read()
    assert "deadlock" not in [f["kind"] for f in answer("summary", merged)["findings"]]


@test
def one_that_only_sleeps_does_not_end_a_deadlock_of_processes():
    found = ended_by(CROSS, count=3, ticks=3)[1]
    assert found["deadlock"]["text"].endswith("and have woken none. Let one of them write first, and close ends that are not needed."), found
    assert "deadlock" not in ended_by(CROSS, count=3, ticks=2)[1]
    assert "have woken none" not in ended_by(CROSS)[1]["deadlock"]["text"]


def shipped(readers=1, reads=True):
    """1 holds a lock and writes to a full pipe, from which 2 has read, which then waits for the lock."""
    trace = Trace(readers + 2)
    trace.here(9, 2, 0)
    trace.create(10, 0, 1, ("main.ship",))
    trace.start(20, 1, 1)
    for g in range(2, 2 + readers):
        trace.create(30 + g, 0, g, ("main.drain",))
        trace.start(40 + g, g, g)
    if reads:
        trace.log(MS - 10, 2, "wait", "read pipe:[7]")
        trace.block(MS, 2, "sync", ("main.drain",))
        trace.wake(MS + 500 * US, 1, 2, ("main.ship",))
        trace.start(MS + 500 * US + 10, 2, 2)
    trace.log(2 * MS - 30, 1, "holds", "mutex out_mu")
    trace.log(2 * MS - 20, 1, "wait", "write pipe:[7]")
    trace.block(2 * MS, 1, "sync", ("main.ship",))
    for g in range(2, 2 + readers):
        trace.log(2 * MS + 10, g, "wait", "mutex out_mu")
        trace.block(2 * MS + 20, g, "sync", ("main.drain",))
    return trace.findings(300 * MS, "--words=threads")


@test
def who_has_read_from_a_pipe_that_is_full_may_complete_a_deadlock():
    text = shipped()["deadlock"]["text"]
    assert "main.ship (1) holds mutex out_mu and waits to write to pipe:[7]; thread main.drain (2) has the other end of pipe:[7] and waits for mutex out_mu. " in text, text
    assert " No other thread was seen to use that end of the pipe. " in text and text.endswith(" Release the lock before reading or writing."), text
    found = shipped(reads=False)
    assert "deadlock" not in found and "held by thread main.drain" not in str(found), found
    assert "deadlock" not in shipped(readers=2)


@test
def three_a_reader_and_one_alone_can_be_in_a_deadlock():
    found, _ = waiting([(["mutex a"], "mutex b"), (["mutex b"], "rwlock to read c"), (["rwlock to write c"], "mutex a")])
    text = found["deadlock"]["text"]
    assert re.search(r"a and waits for mutex b; .*holds mutex b and waits for rwlock c; .*holds rwlock c and waits for mutex a\. ", text), text
    found, _ = waiting([(["mutex a"], "mutex a")])
    assert "holds mutex a and waits for it. The wait is at main.work (main.go:10). Release the lock before" in found["deadlock"]["text"], found


@test
def those_that_take_turns_to_accept_do_not_hang():
    """As processes of a server do, which all wait for the next one that asks."""
    found, _ = waiting([([], "file lock a"), (["file lock a"], "accept 0.0.0.0:80")])
    assert "open-wait" not in found, found
    found, _ = waiting([([], "file lock a"), (["file lock a"], "read socket:[7]")])
    assert "had waited for file lock a for 150 ms" in found["open-wait"]["text"], found


@test
def of_several_deadlocks_each_is_found_and_who_waits_for_one_is_not_in_it():
    _, trace = waiting([(["mutex a"], "mutex b"), (["mutex b"], "mutex a"), (["mutex c"], "mutex d"), (["mutex d"], "mutex c"),
                        ([], "mutex a")])
    found = trace.summary(152 * MS, "--from=0ns", "--to=152ms")["findings"]
    equal([f["kind"] for f in found][:3], ["deadlock", "deadlock", "open-wait"])
    assert "(5)" not in found[0]["text"] + found[1]["text"], found
    assert "(5) had waited for mutex a for 150 ms when the trace ended. It is held by " in found[2]["text"], found
    assert found[2]["text"].endswith(" (1). The wait is at main.work (main.go:10)."), found


@test
def of_several_that_wait_for_one_lock_to_the_end_the_longest_is_named_with_their_number():
    found, trace = waiting([(["mutex a"], None), ([], "mutex a"), ([], "mutex a"), ([], "mutex b"), ([], "mutex a")])
    opens = [f["text"] for f in trace.summary(152 * MS, "--from=0ns", "--to=152ms")["findings"] if f["kind"] == "open-wait"]
    equal(len(opens), 2)
    (of_a,) = [text for text in opens if "for mutex a" in text]
    assert of_a.endswith(" 2 other goroutines waited for it as well."), opens
    assert not any("other goroutine" in text for text in opens if "for mutex b" in text), opens
    found, trace = waiting([([], "mutex a"), ([], "mutex a")])
    assert found["open-wait"]["text"].endswith(" 1 other goroutine waited for it as well."), found


@test
def a_chain_that_ends_is_no_deadlock():
    found, _ = waiting([(["mutex a"], "mutex b"), (["mutex b"], "mutex c"), (["mutex c"], None)])
    assert "deadlock" not in found and "open-wait" in found, found
    found, _ = waiting([([], "mutex b"), ([], "mutex a")])
    assert "deadlock" not in found and "Its holder is not recorded." in found["open-wait"]["text"], found


@test
def a_deadlock_lasts_for_a_millisecond_and_an_open_wait_for_a_hundred():
    pair = [(["mutex a"], "mutex b"), (["mutex b"], "mutex a")]
    assert "deadlock" in waiting(pair, MS)[0]
    equal(waiting(pair, MS - 1)[0], {})
    assert "open-wait" in waiting([([], "mutex a")], 100 * MS)[0]
    assert "open-wait" not in waiting([([], "mutex a")], 100 * MS - 1)[0]
    # A thread that waits for a condition variable may be waiting for work.
    assert "open-wait" not in waiting([([], "condition work")])[0]


@test
def what_was_held_before_a_wait_that_ended_is_forgotten():
    trace = Trace(3)
    trace.here(1, 2, 1)
    trace.here(2, 2, 2)
    trace.here(3, 2, 0)
    trace.log(100, 1, "holds", "mutex a")
    trace.log(110, 1, "wait", "mutex b")
    trace.block(120, 1, "sync", WORK_STACK)
    trace.wake(MS, 0, 1)
    trace.start(MS + 10, 1, 1)
    trace.log(MS + 20, 1, "wait", "mutex b")
    trace.block(MS + 30, 1, "sync", WORK_STACK)
    trace.log(MS + 20, 2, "holds", "mutex b")
    trace.log(MS + 30, 2, "wait", "mutex a")
    trace.block(MS + 40, 2, "sync", WORK_STACK)
    assert "deadlock" not in trace.findings(200 * MS)


def locked(waits, lasts=150 * MS, status=False, moving=None):
    """Goroutines of a Go program that wait for locks at these places until the end, or did so before the trace."""
    trace = Trace(len(waits) + 2)
    end = 2 * MS + lasts
    trace.here(99, 2, 0)
    for n, stack in enumerate(waits, 1):
        if status:
            trace.at(1, 0, f"GoStatusStack g={n} m={NOBODY} gstatus=4 stack={trace.stack(stack)}")
        else:
            trace.here(n, 2, n)
            trace.block(2 * MS + n - 1, n, "sync", stack)
    if moving:
        trace.here(98, 2, len(waits) + 1)
        trace.block(3 * MS, len(waits) + 1, "sync", moving)
        trace.wake(4 * MS, 0, 98)
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


def lock_in(function, method="(*Mutex).Lock"):
    return ("sync.runtime_SemacquireMutex", "sync." + method, "main." + function)


@test
def goroutines_that_wait_for_locks_to_the_end_are_found_by_their_places():
    found = locked([lock_in("deposit")])
    equal(list(found), ["open-wait"])
    text = found["open-wait"]["text"]
    assert "(1) had waited for a lock at main.deposit (main.go:12) for 150 ms when the trace ended. Its holder is not recorded." in text, text
    equal(found["open-wait"]["end_ns"] - found["open-wait"]["begin_ns"], 150 * MS)
    equal(list(locked([lock_in("deposit")], 100 * MS)), ["open-wait"])
    equal(locked([lock_in("deposit")], 100 * MS - 1), {})
    equal(list(locked([lock_in("deposit", "(*RWMutex).RLock")])), ["open-wait"])
    equal(locked([("sync.runtime_Semacquire", "sync.(*WaitGroup).Wait", "main.deposit")]), {})


@test
def a_wait_for_a_lock_from_before_the_trace_is_known_by_its_stack():
    found = locked([lock_in("deposit")], status=True)
    equal(list(found), ["open-wait"])
    assert "a lock at main.deposit (main.go:12)" in found["open-wait"]["text"], found
    equal(locked([("runtime.chanrecv1", "main.deposit")], status=True), {})
    # A lock has at most six inner frames: a function further out only happens to call it.
    equal(locked([6 * ("runtime.f",) + lock_in("deposit")], status=True), {})


@test
def several_that_wait_at_several_places_may_be_in_a_deadlock():
    pair = [lock_in("deposit"), lock_in("pay")]
    found = locked(pair)
    equal(list(found), ["maybe-deadlock"])
    text = found["maybe-deadlock"]["text"]
    assert "when the trace ended, 2 goroutines had waited for locks at several places. They had waited 150 ms to 150 ms" in text, text
    assert "maybe-deadlock" in locked(pair, status=True)
    # At one place, it may be one lock that was not released.
    found = locked([lock_in("deposit"), lock_in("deposit")])
    equal(list(found), ["open-wait"])
    assert found["open-wait"]["text"].endswith("1 other goroutine waited there as well. No wait there has ended since: the lock was not released, or they hold each other's (a deadlock)."), found
    assert "each other's" not in locked([lock_in("deposit")])["open-wait"]["text"]
    # A goroutine that arrived later got the lock, so the lock is passed on.
    equal(list(locked(pair, moving=lock_in("pay"))), ["open-wait"])
    assert "maybe-deadlock" in locked(pair, moving=lock_in("other"))
    assert "maybe-deadlock" not in waiting([([], "mutex a"), ([], "mutex b")])[0]  # holders would be recorded
    # As many are named and counted as waited.
    for more in 1, 2:
        found = locked(pair + [lock_in(f"f{i}") for i in range(1 + more)])
        text = found["maybe-deadlock"]["text"]
        assert f"{3 + more} goroutines had waited" in text and text.count(" at main.") == 3, text
        assert f" and {more} more. The trace" in text, text
        # A place that is not named has a finding of its own.
        at = re.search(r" at (main\.\w+)", found["open-wait"]["text"])[1]
        assert f" at {at} " not in text, (at, text)
    # The longest wait first: the others may be for what that one holds.
    trace = Trace(3)
    for g in (1, 2, 3):
        trace.here(g, 2, g - 1)
        trace.block((4 - g) * 20 * MS, g - 1, "sync", lock_in(f"f{g}"))
    found = trace.findings(300 * MS)["maybe-deadlock"]
    equal(re.findall(r" at main\.f(\d)", found["text"]), ["3", "2", "1"])
    equal(found["goroutine"], 3)


@test
def threads_that_all_wait_for_each_other_are_never_woken():
    for wanted in ("condition queue_cv", "semaphore slots", "barrier step", "future f", "latch l", "channel receive c"):
        found = all_wait(wanted)
        equal(list(found), ["never-woken"])
        text = found["never-woken"]["text"]
        assert f" {wanted.split()[-1]} at main.work (main.go:10) for 100 ms when the trace ended" in text and "(1) waits for a thread to exit" in text, text
        assert "never-woken" not in all_wait(wanted, lasts=100 * MS - 1), wanted
        # Only a condition variable forgets what came before the wait.
        lost = wanted.startswith("condition")
        equal("Either the wake-up came before the wait and was lost, " in text, lost, wanted)
        # Main is no heartbeat because it slept before.
        equal(all_wait(wanted, naps=5), found)
        # Another thread sleeps, and may wake this one.
        assert "never-woken" not in all_wait(wanted, sleeper=True), wanted
    # A thread that waits for a lock is not the one that is never woken; others may be woken from
    # outside.
    for wanted in "mutex m", "poll", "read pipe", "accept", "signal", "file lock f", "work GHC":
        assert "never-woken" not in all_wait(wanted), wanted


@test
def a_lock_that_is_held_by_one_that_is_never_woken_is_named():
    text = all_wait("semaphore slots", holds=True, lasts=101 * MS)["never-woken"]["text"]
    assert re.search(r"It holds mutex registry_mu, for which \w+ .*\(3\) waits\. Release the lock before that wait\.$", text), text
    assert "Either the wake-up" not in text, text


def one_woken(kind="condition gate_cv", after=True):
    """Goroutines 2 and 3 wait for the same; main ends the wait of 2, after (or before) that of 3
    began, and waits for the exit of 3, of the same start function."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    for g in (2, 3):
        trace.create(10 + g, 0, g, ("main.visit",))
        trace.start(20 + g, g - 1, g)
    for g, at in ((2, MS), (3, 2 * MS if after else 4 * MS)):
        trace.log(at, g - 1, "wait", kind)
        trace.block(at + 10, g - 1, "sync.(*Cond).Wait" if "condition" in kind else "sync", ("main.pass", "main.visit"))
    trace.wake(3 * MS, 0, 2, ("main.open",))
    trace.start(3 * MS + 10, 1, 2)
    trace.at(3 * MS + 20, 1, "GoDestroy")
    trace.log(5 * MS, 0, "wait", "join main.visit")
    trace.block(5 * MS + 10, 0, "sync", WORK_STACK)
    (found,) = trace.findings(200 * MS, "--from=0ns", "--to=200ms").values()
    return found["text"]


@test
def of_several_waiters_of_which_one_was_woken_that_is_said():
    text = one_woken()
    assert "main.open (main.go:10) ended another goroutine's wait for it meanwhile, but not this one. Wake all that wait if the change is for all of them." in text, text
    assert "the wake-up came before the wait" not in text
    assert "ended another" not in one_woken(after=False)
    assert "ended another" not in one_woken("semaphore slots")
    # A lock was released, to another one.
    for lock in "mutex m", "rwlock to write m", "rwlock to read m":
        assert "It went to others meanwhile: main.open (main.go:10) released it last." in one_woken(lock), one_woken(lock)
        assert "Its holder is not recorded." in one_woken(lock, after=False)


def none_left(mains="condition done_cv", workers="condition queue_cv", by=None, passed=False):
    """Main and two workers wait at the end, main since 10 ms. A wait of one worker has been ended by the thread `by`
    before; if `passed`, by main while the other one waited."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    for g in 2, 3:
        trace.create(10 * g, 0, g, ("main.worker",))
        trace.start(10 * g + 5, g - 1, g)

    def wait(time, g, what, stack):
        trace.log(time - 10, g - 1, "wait", what)
        trace.block(time, g - 1, "sync.(*Cond).Wait" if "condition" in what else "sync", stack)

    if by:
        wait(MS, 2, workers, WORK_STACK)
        trace.wake(2 * MS, by - 1, 2, WORK_STACK)
        trace.start(2 * MS + 10, 1, 2)
    wait(3 * MS, 3, workers, WORK_STACK) if passed else None
    wait(4 * MS, 2, workers, WORK_STACK)
    if passed:
        trace.wake(5 * MS, 0, 2, WORK_STACK)
        trace.start(5 * MS + 10, 1, 2)
        wait(6 * MS, 2, "atomic other", WORK_STACK)
    else:
        wait(5 * MS, 3, workers, WORK_STACK)
    wait(10 * MS, 1, mains, ("main.main",))
    found = trace.findings(200 * MS, "--from=0ns", "--to=200ms")
    equal(next(iter(found)), "never-woken")
    return found["never-woken"]["text"]


@test
def of_all_that_wait_the_one_that_says_most_is_named():
    own = "Such waits were ended by goroutines of main.worker so far, all of which wait."
    main, worker = "Goroutine main.main (1) ", "Goroutine main.worker (3) "
    # Main waits for others, unless these wait for work, as they did before.
    assert none_left().startswith(worker), none_left()
    assert none_left(by=1).startswith(main), none_left(by=1)
    assert own not in none_left(by=1)
    # A pool waits for itself.
    text = none_left("future in main.main (main.go:10)", "future in main.work (main.go:10)", by=3)
    assert text.startswith(worker + "had waited for future in main.work (main.go:10) for 195 ms when"), text
    assert own in text, text
    assert own not in none_left("future in main.main", "future in main.work", by=1)
    # One that was passed by comes before one that none has woken; 2 waits again, and main waits later.
    text = none_left(workers="atomic version", passed=True)
    assert text.startswith("Goroutine main.worker (3) had waited for atomic version at main.work (main.go:10) for 197 ms"), text
    assert "main.work (main.go:10) ended another goroutine's wait for it meanwhile, but not this one." in text, text


def several_kinds(same=True, left="worker"):
    """Main waits for the exit of a gateway. That and a worker wait for one condition variable, a worker since it was
    signalled in vain; a third thread sleeps periodically."""
    trace = Trace(4)
    trace.here(1, 2, 0)
    for g, name in ((2, "worker"), (3, "gateway"), (4, "beat")):
        trace.create(10 * g, 0, g, (name,))
        trace.start(10 * g + 5, g - 1, g)
    trace.log(MS, 0, "wait", f"join {left}")
    trace.block(MS + 10, 0, "sync", WORK_STACK)
    for g, place in ((3, "put"), (2, "take")):
        trace.log((5 - g) * MS, g - 1, "wait", "condition queue_cv" if same or g == 2 else "condition room_cv")
        trace.block((5 - g) * MS + 10, g - 1, "sync.(*Cond).Wait", (place, "run"))
    for i in range(6):
        now = (4 + 20 * i) * MS
        trace.log(now - 10, 3, "wait", "sleep")
        trace.block(now, 3, "sleep", ("nap", "beat"))
        trace.at(now + 19 * MS, 3, "GoUnblock g=4 g_seq=%d stack=0", 4)
        trace.start(now + 19 * MS + 10, 3, 4)
    return trace.findings(124 * MS, "--from=0ns", "--to=124ms")


@test
def a_condition_variable_for_different_things_is_named():
    for left in "worker", "gateway":
        text = several_kinds(left=left)["never-woken"]["text"]
        assert text.startswith("Goroutine worker (2) had waited for condition variable queue_cv at take (main.go:10) "), text
        assert "Others wait for it at put (main.go:10): a signal may have woken one of these instead." in text, text
    assert "Others wait for it" not in several_kinds(same=False)["never-woken"]["text"]
    # The one that sleeps may end.
    equal(several_kinds(left="beat"), {})


def beside_ticker(wanted="condition queue_cv", join="join worker", ticks=5, wakes=False, runs=US, timed=None, begins=2 * MS):
    """Main waits for the exit of a worker, which waits to the end, while a third thread wakes up each 20 ms."""
    trace = Trace(3)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("worker",))
    trace.start(20, 1, 2)
    trace.create(30, 0, 3, ("beat",))
    trace.start(40, 2, 3)
    trace.log(MS, 0, "wait", join)
    trace.block(MS + 10, 0, "sync", WORK_STACK)
    trace.log(begins - 10, 1, "wait", wanted)
    trace.block(begins, 1, "network" if "read" in wanted else "sync.(*Cond).Wait", WORK_STACK)
    for i in range(ticks):
        now = (1 + 20 * i) * MS
        trace.log(now + runs - 10, 2, "wait", timed or "sleep")
        trace.block(now + runs, 2, "sync.(*Cond).Wait" if timed else "sleep", ("nap", "beat"))
        trace.at(now + 19 * MS, 2, "GoUnblock g=3 g_seq=%d stack=0", 3)
        trace.start(now + 19 * MS + 10, 2, 3)
        if timed:
            trace.log(now + 19 * MS + 20, 2, "wait", "timed out")
        if wakes and i == 0:
            trace.wake(now + 19 * MS + 30, 2, 2, ("beat",))
            trace.start(now + 19 * MS + 40, 1, 2)
            trace.log(now + 19 * MS + 50, 1, "wait", wanted)
            trace.block(now + 19 * MS + 60, 1, "sync.(*Cond).Wait", WORK_STACK)
    end = (1 + 20 * ticks) * MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def that_a_heartbeat_goes_on_does_not_hide_a_wait_that_nothing_ends():
    for wanted in ("condition queue_cv", "read [eventfd]", "semaphore slots"):
        found = beside_ticker(wanted, ticks=6)
        equal(list(found), ["never-woken"])
        text = found["never-woken"]["text"]
        assert "Thread worker (2) had waited " in text.replace("Goroutine", "Thread") and " when the trace ended. " in text, text
        assert " (1) waits for a thread to exit). The goroutines that still run only sleep now and then, and have woken none. " in text, text
        assert ("Write to it, or end the wait" in text) == ("eventfd" in wanted), text
    equal(list(beside_ticker(ticks=6, timed="condition tick_cv")), ["never-woken"])
    # A thread that works now and then, or has woken another, may do so again.
    equal(beside_ticker(ticks=6, wakes=True), {})
    equal(list(beside_ticker(ticks=6, runs=MS)), ["never-woken"])
    equal(beside_ticker(ticks=6, runs=2 * MS), {})
    equal(beside_ticker(ticks=2), {})
    # If main does not wait for the thread, it may be idle.
    equal(beside_ticker(ticks=6, join="condition other"), {})
    equal(beside_ticker("read pipe:[7]", ticks=6), {})
    equal(beside_ticker(ticks=10, begins=142 * MS), {})


@test
def what_is_waited_for_after_another_has_ended_is_never_woken_either():
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.log(10, 0, "wait", "semaphore results")
    trace.block(MS, 0, "sync", WORK_STACK)
    trace.at(2 * MS, 1, "GoDestroy")
    kinds = [list(trace.findings(end, "--from=0ns", f"--to={end}ns")) for end in (102 * MS, 102 * MS - 1)]
    equal(kinds, [["never-woken"], []])


@test
def a_pipe_that_the_program_itself_wrote_to_is_never_written_to_again():
    def reads(served, wanted="read pipe:[7]"):
        trace = Trace(3)
        for g in (1, 2, 3):
            trace.here(g, 2, g - 1)
        for when in (MS, 4 * MS):
            trace.log(when - 10, 1, "wait", wanted)
            trace.block(when, 1, "network", WORK_STACK)
            if when == MS:
                trace.wake(3 * MS, 0, 2) if served else trace.wake(3 * MS, 2, 2)
                trace.start(3 * MS + 10, 1, 2)
        trace.log(5 * MS - 10, 0, "wait", "join worker")
        trace.block(5 * MS, 0, "sync", WORK_STACK)
        trace.at(5 * MS, 2, "GoDestroy") if served else trace.block(MS - 20, 2, "sleep", WORK_STACK)
        return trace.findings(200 * MS, "--from=0ns", "--to=200ms")

    text = reads(True)["never-woken"]["text"]
    assert "had waited to read from pipe:[7] at main.work (main.go:10) for 196 ms" in text, text
    equal(reads(False), {})  # by a thread that still sleeps
    equal(reads(True, "read socket 10.0.0.1:80"), {})


@test
def a_thread_that_waits_for_the_exit_of_one_that_waits_for_its_lock_is_in_a_deadlock():
    def joined(name, twice=False, both=False, lasts=150 * MS):
        trace = Trace(3)
        for g, stack in ((1, ("main.main",)), (2, ("main.worker",)), (3, ("main.worker",) if twice else ("main.other",))):
            trace.create(10 + g, 0, g + 10, stack)
        trace.here(1, 2, 0)
        for thread, g in ((1, 12), (2, 13)):
            trace.start(40, thread, g)
        trace.log(50, 0, "holds", "mutex state_mu")
        trace.log(60, 0, "wait", f"join {name}")
        trace.block(70, 0, "sync", ("main.stop", "main.main"))
        trace.log(80, 1, "wait", "mutex state_mu")
        trace.block(90, 1, "sync", ("main.worker",))
        if both:
            trace.log(100, 2, "wait", "mutex state_mu")
            trace.block(110, 2, "sync", ("main.worker",))
        return trace.findings(lasts, "--from=0ns", f"--to={lasts}ns")

    found = joined("main.worker")
    assert "waits for the exit of main.worker; thread main.worker (12) has not ended and waits for mutex state_mu" in found["deadlock"]["text"].replace("goroutine", "thread"), found
    # It is unclear which of two is waited for; or the name differs.
    assert "deadlock" not in joined("main.worker", twice=True)
    assert "deadlock" not in joined("main.nobody")
    # Either of two that wait for the lock will not exit.
    found = joined("main.worker", twice=True, both=True)
    assert "waits for the exit of main.worker; goroutine main.worker (12) has not ended and waits for mutex state_mu" in found["deadlock"]["text"], found


@test
def a_goroutine_that_nothing_wakes_is_an_open_wait():
    text = open_in_go("sync.(*Cond).Wait", COND)["open-wait"]["text"]
    assert "had waited in sync.(*Cond).Wait at main.next (main.go:11) for 390 ms when the trace ended. No wait there has ended" in text, text
    text = open_in_go("chan send", ("runtime.chansend1", "main.put"))["open-wait"]["text"]
    assert "had waited to send to a channel at main.put (main.go:11) for 390 ms when the trace ended. Nothing has received it." in text, text
    text = open_in_go("chan send", ("runtime.chansend1", "main.put"), creator=GROUP)["open-wait"]["text"]
    assert re.search(r"Nothing has received it\. Meanwhile goroutine \S+ \(1\), which created it, waits for a WaitGroup at main\.deposit \(main\.go:11\)\.", text), text
    assert "which created it" not in open_in_go("chan send", ("runtime.chansend1", "main.put"), creator=LOCK)["open-wait"]["text"]
    # A worker that waits for work, as others did there.
    equal(open_in_go("sync.(*Cond).Wait", COND, served=MS), {})
    equal(open_in_go("chan receive", ("runtime.chanrecv1", "main.get")), {})
    # From a fifth of the time on.
    assert "open-wait" in open_in_go("chan send", WORK_STACK, length=500 * MS, begins=400 * MS)
    equal(open_in_go("chan send", WORK_STACK, length=500 * MS, begins=400 * MS + 1), {})


@test
def a_wait_for_a_pool_to_which_nothing_is_given_back_is_open():
    stack = ("database/sql.(*DB).conn", "database/sql.(*DB).Query", "main.load")
    found = open_in_go("select", stack)
    equal(list(found), ["open-wait"])
    text = found["open-wait"]["text"]
    assert re.search(r"had waited for the connection pool of database/sql at main\.load \(main\.go:12\) for 390 ms when the trace ended\. Nothing was given back to it ", text), text
    assert "open-wait" in open_in_go("select", stack, served=MS)
    # It is only slow.
    equal(open_in_go("select", stack, served=20 * MS), {})
    equal(open_in_go("select", ("main.(*DB).conn", "main.load")), {})
    # Goroutines that wait for it look leaked.
    equal(list(created(95 * MS, waits="select", within=stack[:2], end=150 * MS)), ["open-wait", "leak"])
    equal(list(created(95 * MS, waits="select", end=150 * MS)), ["leak"])
    # A connection to a host may be being made.
    equal(open_in_go("select", ("net/http.(*Transport).getConn", "main.load")), {})
    assert "open-wait" in open_in_go("select", stack, length=500 * MS, begins=400 * MS)
    equal(open_in_go("select", stack, length=500 * MS, begins=400 * MS + 1), {})


def group(ended, of, left="chan send", works=False, length=500 * MS, waits=10 * MS, closer=False, late=None):
    """Main creates this many goroutines, some of which end, and waits for all; or the last created one waits for
    all."""
    trace = Trace(of + 2)
    trace.here(1, 2, 0)
    for i in range(of):
        trace.create(10 + i, 0, 10 + i, ("main.load", "main.loader"))
        trace.start(MS, 1 + i, 10 + i)
        if i < ended:
            trace.at(late if late and i == 0 else 2 * MS + i, 1 + i, "GoDestroy")
        elif not works:
            trace.block(3 * MS + i, 1 + i, left, ("time.Sleep", "main.retry") if left == "sleep" else ("main.put", "main.load"))
    waiter = of + 1 if closer else 0
    if closer:
        trace.create(MS, 0, 9, ("main.closer", "main.main"))
        trace.start(2 * MS, waiter, 9)
        trace.block(5 * MS, 0, "chan receive", ("main.main",))
    trace.block(waits, waiter, "sync", GROUP)
    return trace.findings(length, "--from=0ns", f"--to={length}ns")


@test
def a_group_of_goroutines_that_is_never_done_names_the_one_that_is_left():
    text = group(4, 4)["never-done"]["text"]
    assert re.match(r"Goroutine \S+ \(1\) had waited for a WaitGroup at main.deposit \(main.go:11\) for 490 ms when the trace ended\. All 4 goroutines of main.loader "
                    r"created at main.load \(main.go:10\) have ended, so Done was called less often", text), text
    found = group(3, 4)
    equal(list(found), ["never-done"])  # and no finding about the wait to send
    text = found["never-done"]["text"]
    assert "3 of the 4 goroutines of main.loader created at main.load (main.go:10) have ended, goroutine main.loader (13) has not. It has waited (chan send) at main.put (main.go:10) for 497 ms" in text, text
    assert "main.loader (13) has not. It sleeps at main.retry (main.go:11)" in group(3, 4, "sleep")["never-done"]["text"]
    assert "main.loader (13) has not. It waits for ever, for a nil channel" in group(3, 4, "forever")["never-done"]["text"]
    kept = "That is for a lock. The trace does not record whether goroutine main.deposit (1) holds it, which would be a deadlock."
    assert kept in group(3, 4, "sync")["never-done"]["text"], group(3, 4, "sync")
    assert "for a lock" not in text
    # The waiting goroutine did not create them.
    assert "(9) had waited for a WaitGroup" in group(3, 4, closer=True)["never-done"]["text"]
    # Workers that continue to work, or none that has ended; and a single goroutine may be the
    # program's main work.
    for args in ({"ended": 3, "of": 4, "works": True}, {"ended": 0, "of": 2, "left": "chan receive"}, {"ended": 1, "of": 3, "left": "sleep"}, {"ended": 1, "of": 1}):
        assert "never-done" not in group(**args), args
    # From 100 ms and a fifth of the time on, in which no goroutine ends.
    for waits, late in ((400 * MS, None), (10 * MS, 400 * MS)):
        assert "never-done" in group(4, 4, waits=waits, late=late)
        assert "never-done" not in group(4, 4, waits=waits + bool(not late), late=late and late + 1)
    assert "never-done" not in group(4, 4, length=109 * MS)


def sent_to_workers(senders=(1,), closed=0, left="chan receive", length=500 * MS):
    """Main creates three workers, which receive in turn what `senders` send; then it waits for all of them, of which
    `closed` have ended."""
    trace = Trace(5)
    trace.at(1, 0, f"GoStatusStack g=1 m=100 gstatus=2 stack={trace.stack(('main.main',))}")
    trace.create(9, 0, 2, ("main.feed", "main.feeder"))
    for i in range(3):
        trace.create(10 + i, 0, 10 + i, ("main.load", "main.loader"))
        trace.start(100 + i, 1 + i, 10 + i)
        trace.block(MS + i, 1 + i, "chan receive", ("runtime.chanrecv2", "main.get", "main.loader"))
    trace.start(300, 4, 2)
    for n, sender in enumerate(senders):
        now, thread, worker = (2 + n) * MS, 0 if sender == 1 else 4, n % 3
        trace.wake(now, thread, 10 + worker, ("runtime.chansend1", "main.put"))
        trace.start(now + 10, 1 + worker, 10 + worker)
        trace.block(now + 100, 1 + worker, left, ("runtime.chanrecv2", "main.get", "main.loader"))
    trace.block(10 * MS, 4, "sleep", ("time.Sleep", "main.feeder"))
    for n in range(closed):
        trace.wake(11 * MS, 0, 10 + n, ("runtime.closechan", "main.load"))
        trace.start(11 * MS + 10, 1 + n, 10 + n)
        trace.at(11 * MS + 20, 1 + n, "GoDestroy")
    trace.block(12 * MS, 0, "sync", GROUP)
    return trace.findings(length, "--from=0ns", f"--to={length}ns")


def lent_to_workers(other=False):
    """Main creates two workers, of which one receives what the other one, or with `other` goroutine 9, sends; then both wait to receive."""
    trace = Trace(4)
    trace.at(1, 0, f"GoStatusStack g=1 m=100 gstatus=2 stack={trace.stack(('main.main',))}")
    trace.create(9, 0, 9, ("main.feed", "main.feeder"))
    for i in range(2):
        trace.create(10 + i, 0, 10 + i, ("main.load", "main.loader"))
        trace.start(100 + i, 1 + i, 10 + i)
    trace.start(300, 3, 9)
    trace.block(MS, 1, "chan receive", ("runtime.chanrecv1", "main.get", "main.loader"))
    trace.wake(3 * MS, 3 if other else 2, 10, ("runtime.chansend1", "main.put", "main.loader"))
    trace.start(3 * MS + 10, 1, 10)
    for i in range(2):
        trace.block(4 * MS, 1 + i, "chan receive", ("runtime.chanrecv1", "main.get", "main.loader"))
    trace.block(10 * MS, 3, "sleep", ("time.Sleep", "main.feeder"))
    trace.block(12 * MS, 0, "sync", GROUP)
    return trace.findings(500 * MS, "--from=0ns", f"--to={500 * MS}ns")


@test
def workers_that_wait_for_what_only_they_give_back_are_never_done():
    text = lent_to_workers()["never-done"]["text"]
    assert text.endswith("None of the 2 goroutines of main.loader created at main.load (main.go:10) has ended: they wait at main.get (main.go:11) to receive from "
                         "a channel, to which only main.loader was seen to send. Give back what each takes on every path, or close the channel."), text
    assert "never-done" not in lent_to_workers(other=True)


@test
def workers_that_wait_for_more_from_the_one_that_waits_for_them_are_never_done():
    found = sent_to_workers(6 * (1,))
    equal(list(found), ["never-done"])
    assert re.match(r"Goroutine \S+ \(1\) had waited for a WaitGroup at main\.deposit \(main\.go:11\) for 488 ms when the trace ended\. None of the 3 goroutines of main\.loader "
                    r"created at main\.load \(main\.go:10\) has ended: they wait at main\.get \(main\.go:11\) to receive from a channel, to which only main\.main was seen to send\.", found["never-done"]["text"]), found
    # Another one has sent as well, and may again; one has ended; or they wait for something else.
    for args in ({"senders": (1, 1, 2, 1, 1, 1)}, {"senders": 6 * (1,), "closed": 1}, {"senders": 6 * (1,), "left": "select"}, {"senders": ()}):
        assert "never-done" not in sent_to_workers(**args), args
    assert "never-done" not in sent_to_workers(6 * (1,), length=111 * MS)


def held_at_a_channel(sends=True, others=False, before=6, lasts=150 * MS, passes=False):
    """Goroutine 1 sends to goroutine 2, or receives from it; then it waits for that while goroutine 2 waits for a
    lock. `others`: goroutine 3 takes part; `passes`: it has released the lock before."""
    trace = Trace(3)
    lock = ("sync.(*Mutex).Lock", "main.consume")
    kind, stack = ("chan send", ("runtime.chansend1", "main.publish")) if sends else ("chan receive", ("runtime.chanrecv1", "main.publish"))
    for g, name in ((1, "publisher"), (2, "consumer"), (3, "third")):
        trace.create(g, 0, g + 10, ("main.main", f"main.{name}")) if g > 1 else trace.here(1, 2, 0)
    for g in (2, 3):
        trace.start(100 + g, g - 1, g + 10)
    if passes:
        trace.block(MS // 2, 1, "sync", lock)
        trace.wake(MS, 2, 12, UNLOCK)
        trace.start(MS + 10, 1, 12)
    for n in range(before):
        now = (2 + n) * MS
        by = 2 if others and n == 2 else 1
        trace.block(now, 0, kind, stack)
        trace.wake(now + MS // 2, by, 1, ("runtime.chanrecv1", "main.consume"))
        trace.start(now + MS // 2 + 10, 0, 1)
    trace.block(20 * MS - 10, 0, kind, stack)
    trace.block(20 * MS, 1, "sync", lock)
    end = 20 * MS + lasts
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def one_at_a_channel_may_hold_the_lock_that_its_peer_waits_for():
    for sends, what in ((True, "send to"), (False, "receive from")):
        text = held_at_a_channel(sends)["maybe-deadlock"]["text"]
        assert re.match(r"Possibly a deadlock of goroutine main\.publish \(1\) and goroutine main\.consumer \(12\): when the trace ended, they had waited for 150 ms\. The former waits to "
                        + what + r" a channel at main\.publish \(main\.go:11\), at the other end of which only main\.consumer was seen; the latter waits for a lock at main\.consume \(main\.go:11\)\. "
                        r"The trace does not record whether the former holds that lock\.", text), text
    for args in ({"others": True}, {"before": 0}, {"passes": True}, {"lasts": 100 * MS - 1}):
        assert "maybe-deadlock" not in held_at_a_channel(**args), args
    assert "maybe-deadlock" in held_at_a_channel(lasts=100 * MS)


def nil_channel(inner, begins=10 * MS, length=400 * MS, count=1, group=False, apart=False, since=0):
    """Goroutines of a Go program wait for ever, within a call of the runtime; all but the first were created elsewhere."""
    trace = Trace(2 + count)
    trace.here(1, 2, 0)
    for n in range(count):
        trace.create((30 if n == 0 and apart else 10) + n, 0, 10 + n, ("main.load" if n == 0 or not apart else "main.open", "main.loader"))
        trace.start(100 + n, 1 + n, 10 + n)
        trace.block(begins + n, 1 + n, "forever", (inner, "main.put", "main.loader"))
    if group:
        trace.create(40, 0, 9, ("main.load", "main.loader"))
        trace.start(200, 1 + count, 9)
        trace.at(300, 1 + count, "GoDestroy")
        trace.block(400, 0, "sync", GROUP)
    else:
        trace.block(400, 0, "chan receive", ("runtime.chanrecv1", "main.main"))
    return trace.findings(length, f"--from={since}ns", f"--to={length}ns")


@test
def a_goroutine_that_waits_for_a_nil_channel_waits_for_ever():
    found = nil_channel("runtime.chansend1")
    equal(list(found), ["open-wait"])
    assert found["open-wait"]["text"].startswith("Goroutine main.loader (10) had waited to send to a nil channel at main.put (main.go:11) for 390 ms when the trace ended. Nothing ends such a wait."), found
    assert " to receive from a nil channel " in nil_channel("runtime.chanrecv2")["open-wait"]["text"]
    assert " 3 goroutines wait for a nil channel." in nil_channel("runtime.chansend1", count=3)["open-wait"]["text"]
    # To receive a single value may be to wait for a context that is never cancelled; an empty select is on purpose.
    for inner in ("runtime.chanrecv1", "runtime.block"):
        equal(nil_channel(inner), {})
    assert "open-wait" in nil_channel("runtime.chansend1", begins=300 * MS)
    equal(nil_channel("runtime.chansend1", begins=300 * MS + 1), {})
    # It is said with the WaitGroup that waits for it.
    equal(list(nil_channel("runtime.chansend1", group=True)), ["never-done"])
    text = nil_channel("runtime.chansend1", group=True, count=2, apart=True)["open-wait"]["text"]
    assert " 2 goroutines wait for a nil channel." in text, text
    # Of a window, what lies in it.
    text = nil_channel("runtime.chansend1", since=100 * MS)["open-wait"]["text"]
    assert " for 300 ms when the trace ended" in text, text


def signalled(others=False, left="sync.(*Cond).Wait", ended=1, wakes=0):
    """Three goroutines wait for a sync.Cond; main, or another one, wakes the first, which ends, and main waits for all of them."""
    trace = Trace(5)
    trace.at(1, 0, f"GoStatusStack g=1 m=100 gstatus=2 stack={trace.stack(('main.main',))}")
    trace.create(9, 0, 2, ("main.feed", "main.feeder"))
    trace.start(300, 4, 2)
    for i in range(3):
        trace.create(10 + i, 0, 10 + i, ("main.load", "main.loader"))
        trace.start(100 + i, 1 + i, 10 + i)
        trace.block(MS + i, 1 + i, left, ("sync.(*Cond).Wait", "main.pass", "main.loader"))
    for i in range(ended):
        trace.wake(2 * MS + i, 4 if others else 0, 10 + i, ("sync.(*Cond).Signal", "main.open"))
        trace.start(3 * MS + i, 1 + i, 10 + i)
        trace.at(4 * MS + i, 1 + i, "GoDestroy")
    for i in range(ended, ended + wakes):
        trace.wake(2 * MS + i, 0, 10 + i, ("sync.(*Cond).Signal", "main.open"))
        trace.start(3 * MS + i, 1 + i, 10 + i)
        trace.block(4 * MS + i, 1 + i, left, ("sync.(*Cond).Wait", "main.pass", "main.loader"))
    trace.block(10 * MS, 4, "sleep", ("time.Sleep", "main.feeder"))
    trace.block(12 * MS, 0, "sync", GROUP)
    return trace.findings(500 * MS, "--from=0ns", f"--to={500 * MS}ns")


@test
def goroutines_that_wait_for_a_signal_from_the_one_that_waits_for_them_are_never_done():
    found = signalled()
    equal(list(found), ["never-done"])
    text = found["never-done"]["text"]
    assert ("1 of the 3 goroutines of main.loader created at main.load (main.go:10) has ended, the others wait in sync.(*Cond).Wait at main.pass (main.go:11), "
            "where only main.main was seen to wake one. Wake all that wait (Broadcast)") in text, text  # fmt: skip
    assert " 2 of the 3 goroutines of main.loader created at main.load (main.go:10) have ended, the other one waits in sync.(*Cond).Wait at main.pass " in signalled(ended=2)["never-done"]["text"]
    assert "never-done" not in signalled(others=True)
    assert "never-done" not in signalled(left="sync")
    # If none has ended, they may be a pool that has nothing to do.
    assert "never-done" not in signalled(ended=0, wakes=1)


@test
def a_channel_without_history_may_be_that_of_the_one_that_waits_for_the_lock():
    def stranger(ended_last=True, others=False, passes=False, alike=False):
        """A goroutine sent to another one, which took no time, and waits to send again; the other waits for a lock, which a third may have released."""
        trace = Trace(3)
        for g in (1, 2, 3):
            trace.at(g, g - 1, f"GoStatusStack g={g} m={99 + g} gstatus=2 stack={trace.stack((f'main.g{min(g, 1) if alike else g}',))}")
        if passes:
            trace.block(20 * US, 1, "sync", LOCK)
            trace.wake(500 * US, 2, 2, UNLOCK)
            trace.start(510 * US, 1, 2)
        trace.block(MS, 0, "chan send", ("runtime.chansend1", "main.publish", "main.g1"))
        trace.wake(MS + 500, 1 if ended_last else 2, 1, ("runtime.chanrecv1", "main.g2"))
        trace.start(MS + 900, 0, 1)
        trace.block(MS + 2000, 0, "chan send", ("runtime.chansend1", "main.publish", "main.g1"))
        trace.block(MS + 3000, 1, "sync", LOCK)
        trace.block(MS + 4000, 2, "chan send" if others else "sleep", ("runtime.chansend1", "main.g3"))
        return trace.findings(200 * MS, "--from=0ns", f"--to={200 * MS}ns")

    text = stranger()["maybe-deadlock"]["text"]
    assert re.match(r"Possibly a deadlock of goroutine main\.g1 \(1\) and goroutine main\.g2 \(2\): when the trace ended, they had waited for 199 ms\. The former waits to send to a channel "
                    r"at main\.publish \(main\.go:11\); the latter, which ended its wait before, waits for a lock at main\.deposit \(main\.go:11\)\.", text), text
    for args in ({"ended_last": False}, {"others": True}, {"passes": True}, {"alike": True}):
        assert "maybe-deadlock" not in stranger(**args), args


if __name__ == "__main__":
    sys.exit(main())
