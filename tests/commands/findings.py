#!/usr/bin/env python3
"""The summary and its findings: for each finding, a trace that has it and some that nearly do. TAP.
Traces are made from lists of events and times; a tick is a nanosecond.

usage: findings.py TRAIL SOURCE_ROOT [long]      long: the traces of many events, and no others
"""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, WORK, answer, assembled, equal, good, good_text, run_text  # noqa: E402
from tap import long, main, test  # noqa: E402

US, MS = 1000, 1000000
NOBODY = 18446744073709551615

LOCK = ("sync.(*Mutex).Lock", "main.deposit")
UNLOCK = ("sync.(*Mutex).Unlock", "main.pay")
GROUP = ("sync.(*WaitGroup).Wait", "main.deposit")
COND = ("sync.(*Cond).Wait", "main.next")
RELOCK = ("sync.(*Mutex).Lock", "sync.(*Cond).Wait", "main.next")
WORK_STACK = ("main.work", "main.worker")


class Trace:
    """Thread i has P i. Events are added in any order and written in order of time."""

    slots = None  # the number of Ps that the trace says, if another one
    call = None  # a function in which all stacks are at the same call
    late = False  # summaries cover the last part of the trace, in which nothing happens any more

    def __init__(self, procs, idle=()):
        self.procs, self.idle = procs, idle
        self.events, self.strings, self.stacks = [], {}, {}
        self.status = {}

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def stack(self, frames):
        frames = tuple(frames)
        if frames not in self.stacks:
            for name in frames:
                self.string(name)
            self.stacks[frames] = len(self.stacks) + 1
        return self.stacks[frames]

    def at(self, time, thread, text, g=None):
        self.events.append((time, len(self.events), thread, text, g))

    def here(self, g, state, thread=None):
        """The goroutine exists when the trace begins: 1 ready, 2 running, 4 blocked."""
        self.at(1, thread or 0, f"GoStatus g={g} m={NOBODY if state != 2 else 100 + thread} gstatus={state}")

    def start(self, time, thread, g):
        self.at(time, thread, f"GoStart g={g} g_seq=%d", g)

    def wake(self, time, thread, g, stack=UNLOCK):
        self.at(time, thread, f"GoUnblock g={g} g_seq=%d stack={self.stack(stack)}", g)

    def block(self, time, thread, reason, stack):
        self.at(time, thread, f"GoBlock reason_string={self.string(reason)} stack={self.stack(stack)}")

    def create(self, time, thread, g, stack=WORK_STACK):
        s = self.stack(stack)
        self.at(time, thread, f"GoCreate new_g={g} new_stack={s} stack={s}")

    def log(self, time, thread, category, text, stack=None):
        number = self.stack(stack) if stack else 0
        self.at(time, thread, f"UserLog task=0 key_string={self.string(category)} value_string={self.string(text)} stack={number}")

    def stop(self, time, thread, end):
        kind = self.string("GC mark termination")
        self.at(time, thread, f"STWBegin kind_string={kind} stack=0")
        self.at(end, thread, "STWEnd")

    def text(self, end):
        for thread in range(self.procs):
            self.events.append((0, -1, thread, f"ProcStatus p={thread} pstatus={2 if thread in self.idle else 1}", None))
        self.at(2, 0, f"ProcsChange procs_value={self.slots or self.procs} stack=0")
        self.at(end, 0, "HeapAlloc heapalloc_value=4096")
        seqs, batches, last = {}, {}, {}
        for time, _, thread, text, g in sorted(self.events):
            if g is not None:
                seqs[g] = seqs.get(g, 0) + 1
                text %= seqs[g]
            batch, before = batches.setdefault(thread, []), last.get(thread, 0)
            if len(batch) % 4001 == 0:  # a batch has at most 64 KiB
                batch.append(f"EventBatch gen=1 m={100 + thread} time={1000 + before} size=auto")
            name, space, rest = text.partition(" ")
            batch.append(f"{name} dt={time - before}{space}{rest}")
            last[thread] = time
        out = ["Trace Go1.26", f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Sync",
               "Frequency freq=1000000000", "ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0"]
        for _, batch in sorted(batches.items()):
            out += batch
        out += [f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Stacks"]
        self.string("main.go"), self.string("")
        for frames, number in self.stacks.items():
            out.append(f"Stack id={number} nframes={len(frames)}")
            for i, name in enumerate(frames):
                file, line = ("", 0) if "sqlite" in name or re.search(r"^pthread|-\d+$", name) else ("main.go", 10 + i)
                named = (1 << 48) * bool(re.search(r"[a-z](-\d+)$", name))  # a name of a thread, not a function
                pc = 64 if name == self.call else named + 4096 * number + i
                out.append(f"\tpc={pc} func={self.strings[name]} file={self.strings[file]} line={line}")
        out += [f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Strings"]
        for text, number in self.strings.items():
            out += [f"String id={number}", f'\tdata="{text}"']
        return "\n".join(out + ["EndOfGeneration", ""])

    made = []

    def path(self, end):
        Trace.made.append(assembled(f"made-{len(Trace.made)}", self.text(end)))
        return Trace.made[-1]

    def summary(self, end, *args):
        if Trace.late:
            args = (f"--from={end - end // 50}ns", f"--to={end}ns")
        return answer("summary", *args, self.path(end))

    def findings(self, end, *args):
        return {f["kind"]: f for f in self.summary(end, *args)["findings"]}


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
    assert "12 waits took 132 ms, the longest 11.0 ms" in found["text"] and "Only the goroutine that holds it runs scripts: " in found["text"], found
    # If what waits works in between, each attempt is a wait.
    assert "132 ms" not in str(interpreted("interpreter lock GIL of Python", again=100 * US))
    # Its threads do not poll: that is how they ask for it.
    assert "polling" in interpreted("mutex a", again=100 * US, tries=5, rounds=50)
    assert "polling" not in interpreted("interpreter lock GIL of Python", again=100 * US, tries=5, rounds=50)


@test
def of_a_lock_within_a_package_of_go_the_caller_is_named():
    text = contended(10, 2 * MS, holder=("log.(*Logger).output", "log.Printf", "main.pay"))["lock-serialises"]["text"]
    assert text.startswith("log.(*Logger).output (main.go:10) held a lock ") and " The last holder was called by main.pay (main.go:12)." in text, text
    assert "called by" not in contended(10, 2 * MS)["lock-serialises"]["text"]


def taken_in_turn(reason, stack, wakes=16 * MS, cycles=6):
    """One of three goroutines runs for 30 ms; the others wait for it this long, then are ready. A fourth one waits for
    it all the time."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for g in (3, 4):
        trace.create(g, 1, g)
    trace.block(9, 1, reason, stack)
    for g in (3, 4):
        trace.start(10 * g, 1, g)
        trace.block(10 * g + 5, 1, reason, stack)
    for i in range(cycles):
        runs, following, other = 1 + i % 3, 1 + (i + 1) % 3, 1 + (i + 2) % 3
        now = i * 30 * MS + 100
        for g in (following, other):
            trace.wake(now + wakes, 0, g)
        trace.block(now + 30 * MS - 20, 0, reason, stack)
        trace.start(now + 30 * MS - 10, 0, following)
        trace.start(now + 30 * MS - 10, 1, other)
        trace.block(now + 30 * MS - 5, 1, reason, stack)
    end = cycles * 30 * MS + 200
    trace.wake(end - 50, 0, 4)
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_lock_that_lets_one_run_at_a_time_explains_why_others_are_ready():
    found = taken_in_turn("sync", LOCK)
    assert "lock-serialises" in found and "ready" not in found, found
    assert "ready" in taken_in_turn("chan receive", WORK_STACK)
    found = taken_in_turn("sync", LOCK, wakes=10 * MS)  # for less than half of the time
    assert "lock-serialises" in found and "ready" in found, found


@test
def who_waits_for_a_p_does_not_work_and_might():
    assert "lock-serialises" in contended(10, 2 * MS, ready=1)
    assert "lock-serialises" not in contended(10, 2 * MS, ready=2)


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


@test
def one_goroutine_runs_alone_although_another_is_ready_and_a_p_idle():
    found = lone(12 * MS)
    equal(list(found), ["one-runs-alone"])
    equal(found["one-runs-alone"]["goroutine"], 1)
    equal(found["one-runs-alone"]["end_ns"] - found["one-runs-alone"]["begin_ns"], 12 * MS)


@test
def a_p_that_is_stopped_with_the_world_is_not_idle():
    equal(list(lone(32 * MS, of=200 * MS, stops=12 * MS)), ["one-runs-alone"])
    equal(lone(32 * MS, of=200 * MS, stops=12 * MS + US), {})


@test
def a_short_time_alone_is_nothing():
    equal(lone(8 * MS), {})


@test
def no_p_is_idle_and_so_nobody_runs_alone():
    equal(lone(12 * MS, idle=()), {})


@test
def goroutines_are_ready_while_ps_are_idle():
    equal(list(lone(12 * MS, idle=(2,), second=True)), ["ready-while-idle"])
    equal(lone(8 * MS, idle=(2,), second=True), {})
    equal(lone(12 * MS, idle=(), second=True), {})


@test
def ps_are_idle_for_a_tenth_of_the_time_but_a_millisecond_at_least():
    for kind, more in (("one-runs-alone", {}), ("ready-while-idle", {"idle": (2,), "second": True})):
        found = lone(10 * MS, **more)
        equal(list(found), [kind])
        equal(found[kind]["weight"], 0.1)
        assert "1 stretch of 1 ms or more, 10.0 ms in all (10 % of the time), the longest 10.0 ms" in found[kind]["text"], found
        equal(lone(10 * MS - 1, **more), {})
        equal(list(lone(MS, of=10 * MS, **more)), [kind])
        equal(lone(MS - 1, of=10 * MS, **more), {})



def divided(waits_for=GROUP, parts=6, runs=30 * MS, pauses=0):
    """Main creates goroutines, each of which runs on one of two Ps for a time; it waits for all of them."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(9, 2, 1)
    for i in range(parts):
        trace.create(10 + i, 0, 10 + i, ("main.load", "main.loader"))
    trace.block(100, 0, "sync" if waits_for == GROUP else "sleep", waits_for)
    trace.block(100, 1, "sleep", WORK_STACK)
    now = 200
    for i in range(0, parts, 2):
        for thread in (0, 1):
            trace.start(now, thread, 10 + i + thread)
            if i + 2 + thread > parts - 1 and thread:
                trace.wake(now + runs - 50, thread, 1, ("sync.(*WaitGroup).Done", "main.loader"))
            trace.at(now + runs - 20, thread, "GoDestroy")
        now += runs + pauses
    trace.start(now, 0, 1)
    return trace.findings(now + 100, "--from=0ns", f"--to={now + 100}ns")


@test
def work_in_more_parts_than_there_are_ps_is_ready_as_long_as_it_takes():
    equal(divided(), {})
    equal(divided(("time.Sleep", "main.work")), {})
    # Ps had nothing to run for a fifth of the time in which goroutines were ready.
    assert "ready" in divided(pauses=16 * MS) and "ready" not in divided(pauses=7 * MS)


def turns(length):
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.create(5, 0, 2)
    for i in range(4):
        trace.at((i + 1) * length, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
        trace.start((i + 1) * length + 10, 0, 2 - i % 2)
    return trace.findings(4 * length + 20)


@test
def a_goroutine_keeps_its_p_while_others_wait_for_it():
    # They alternate: one is always ready.
    equal(set(turns(501 * MS)), {"keeps-p", "ready"})
    equal(set(turns(499 * MS)), {"ready"})


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


@test
def a_p_is_kept_from_50_ms_on():
    found = kept(50 * MS)["keeps-p"]
    equal((found["goroutine"], found["end_ns"] - found["begin_ns"]), (2, 50 * MS))
    assert "1 time, the longest 50.0 ms. Since Go 1.14, the runtime's monitor (sysmon) preempts after 10 ms: " in found["text"], found
    assert "keeps-p" not in kept(50 * MS - 1)
    assert "keeps-p" not in kept(50 * MS, named=False)  # one of Go's own
    # Less than a tenth of the time is normal beside other programs.
    assert "keeps-p" in kept(50 * MS, of=500 * MS) and "keeps-p" not in kept(50 * MS, of=501 * MS)
    # It may have been preempted late because another program had the CPU.
    assert "keeps-p" not in kept(500 * MS - 1, blocks=False)
    assert "keeps-p" in kept(500 * MS, blocks=False)
    # How long a thread of a C program keeps a CPU is decided by the kernel.
    assert "keeps-p" not in kept(50 * MS, recorded=True)
    # Others had the CPUs: for a fiftieth of it, a goroutine was ready while the P was idle.
    assert "keeps-p" in kept(60 * MS, lacked=1200 * US - US) and "keeps-p" not in kept(60 * MS, lacked=1200 * US + US)


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


def collects(ns, of, reason="wait until GC ends", inner=()):
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.block(10 * MS, 0, reason, inner + ("runtime.GC", "main.flush", "main.main"))
    trace.at(10 * MS + ns, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
    trace.start(10 * MS + ns + 10, 0, 1)
    return trace.findings(of, "--from=0ns", f"--to={of}ns")


@test
def a_program_that_waits_for_collections_that_it_asked_for_says_where():
    found = collects(60 * MS, 300 * MS)["forced-gc"]
    assert found["text"].startswith("main.flush (main.go:11) asked for garbage collections and waited for their end for 20 % of the time. 1 wait of 60.0 ms. "), found
    equal((found["function"], found["gain_ns"]), ("main.flush", 60 * MS))
    equal(collects(60 * MS, 301 * MS), {})
    # Before Go 1.22, only the stack says for what it waits.
    assert "forced-gc" in collects(60 * MS, 200 * MS, "", ("runtime.goparkunlock", "runtime.gcWaitOnMark"))
    assert "forced-gc" not in collects(60 * MS, 200 * MS, "", ("runtime.goparkunlock", "runtime.gcStart"))
    equal(collects(49 * MS, 100 * MS), {})
    equal(collects(60 * MS, 200 * MS, reason="GC assist wait"), {})


@test
def who_runs_long_while_nobody_waits_keeps_nothing():
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.block(30 * MS, 0, "chan receive", WORK_STACK)
    equal(trace.findings(31 * MS), {})


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


@test
def who_runs_on_delays_the_stop_of_the_world():
    found = stopped(12 * MS)
    equal(list(found), ["delays-stop"])
    equal(found["delays-stop"]["goroutine"], 2)
    equal(found["delays-stop"]["end_ns"] - found["delays-stop"]["begin_ns"], 12 * MS)
    assert "delayed 1 time by a goroutine that ran on for 1 ms or more. The longest was goroutine 2 (main.worker), for 12.0 ms of a pause of 12.0 ms" in found["delays-stop"]["text"], found
    # From 5 % of the time, or 50 ms, on.
    equal(list(stopped(10 * MS)), ["delays-stop"])
    assert "delays-stop" not in stopped(10 * MS - 1)
    equal(list(stopped(MS, times=10)), ["delays-stop"])
    assert "delays-stop" not in stopped(MS - 1, times=10)
    equal(list(stopped(50 * MS, of=4000 * MS)), ["delays-stop"])
    assert "delays-stop" not in stopped(50 * MS - 1, of=4000 * MS)
    assert "delays-stop" not in stopped(10 * MS, who=("runtime.goexit0", "runtime.bgscavenge"))
    # With several pauses all delays count; they are most of the length of the pauses.
    found = stopped(5 * MS, times=4)
    equal(list(found), ["delays-stop"])
    equal(found["delays-stop"]["gain_ns"], 20 * MS)
    equal(set(stopped(4 * MS, times=4, pause=8 * MS)), {"delays-stop"})
    equal(set(stopped(4 * MS, times=4, pause=9 * MS)), {"delays-stop", "pause-share"})


@test
def pauses_of_a_program_without_cpus_are_those_of_the_machine():
    # A fiftieth of the delays, 64 ms, and of the pauses, 84 ms; stretches are of 1 ms or more.
    def kinds(lacked):
        return set(stopped(16 * MS, times=4, pause=21 * MS, lacked=lacked, of=400 * MS))

    equal(kinds(1280 * US - US), {"delays-stop"})
    equal(kinds(1280 * US + US), {"pause-share"})
    equal(kinds(1680 * US + US), set())
    equal(set(stopped(100, pause=100 * MS, lacked=2 * MS - US)), {"long-pause", "pause-share"})
    equal(stopped(100, pause=100 * MS, lacked=2 * MS + US), {})


def paused(*lengths, apart=33 * MS):
    trace = Trace(1)
    trace.here(1, 2, 0)
    for i, length in enumerate(lengths):
        trace.stop((i + 1) * apart, 0, (i + 1) * apart + length)
    return trace.findings((len(lengths) + 2) * apart)


@test
def a_function_that_stops_the_world_again_and_again_is_named():
    def stops(kind, stack=True):
        trace = Trace(1)
        trace.here(1, 2, 0)
        trace.create(10, 0, 2, ("main.start", "main.serve"))
        trace.block(20, 0, "chan receive", WORK_STACK)
        trace.start(30, 0, 2)
        number, stack = trace.string(kind), trace.stack(("runtime.stopTheWorldGC", "runtime.ReadMemStats", "main.report", "main.serve")) if stack else 0
        for i in range(20):
            trace.at((1 + i) * 10 * MS, 0, f"STWBegin kind_string={number} stack={stack}")
            trace.at((1 + i) * 10 * MS + MS, 0, "STWEnd")
        return trace.findings(220 * MS)["pause-share"]

    found = stops("read mem stats")
    equal(found["function"], "main.report")
    assert "20 pauses, 20.0 ms in all, the longest 1.00 ms. main.report made 20 of them, 20.0 ms in all." in found["text"], found
    assert "main.report" not in stops("GC sweep termination")["text"]
    # Before Go 1.22, such events have no stack.
    assert "main.serve made 20 of them" in stops("read mem stats", stack=False)["text"], stops("read mem stats", stack=False)


@test
def those_that_stop_the_world_in_turn_wait_for_a_lock_of_the_runtime():
    def stops(length, ready=0):
        trace = Trace(2)
        for g in range(ready):
            trace.here(10 + g, 1)
        stack = ("runtime.stopTheWorld", "runtime.ReadMemStats", "main.report", "main.serve")
        number, at = trace.string("read mem stats"), trace.stack(stack)
        for g in (1, 2):
            trace.here(g, 2, g - 1)
        for i in range(20):
            now, first, second = (1 + i) * 10 * MS, i % 2, 1 - i % 2
            trace.at(now, first, f"STWBegin kind_string={number} stack={at}")
            trace.block(now + 10, second, "sync", stack)
            trace.at(now + length, first, "STWEnd")
            trace.wake(now + 9 * MS, first, second + 1, ("runtime.startTheWorld", "runtime.ReadMemStats", "main.report", "main.serve"))
            trace.start(now + 9 * MS + 10, second, second + 1)
        for g in range(ready):
            trace.block((215 + g) * MS, 1, "chan receive", WORK_STACK)
            trace.start((215 + g) * MS + 10, 1, 10 + g)
        return trace.findings(220 * MS)

    assert "lock-serialises" not in stops(8 * MS) and "pause-share" in stops(8 * MS)
    # The others have no P meanwhile.
    assert "ready" not in stops(8 * MS, ready=2), stops(8 * MS, ready=2)
    assert "ready" in stops(4 * MS, ready=2), stops(4 * MS, ready=2)
    assert "lock-serialises" not in stops(100 * US)


@test
def a_pause_is_long_for_itself_or_beside_the_others():
    # From 2 % of the time, or 50 ms, on.
    equal(list(paused(10 * MS, apart=150 * MS)), ["long-pause"])
    equal(paused(10 * MS - 1, apart=150 * MS), {})
    equal(paused(10 * MS, apart=170 * MS), {})
    equal(list(paused(50 * MS, apart=900 * MS)), ["long-pause"])
    equal(paused(50 * MS - 1, apart=900 * MS), {})
    # With five pauses: 1 ms, ten times the others.
    equal(list(paused(50 * US, 50 * US, MS, 50 * US, 50 * US, apart=7 * MS)), ["long-pause"])
    equal(paused(50 * US, 50 * US, MS, 50 * US, 50 * US, apart=8 * MS), {})
    equal(paused(50 * US, 50 * US, MS, 50 * US, apart=7 * MS), {})
    equal(paused(50 * US, 50 * US, MS - 1, 50 * US, 50 * US, apart=7 * MS), {})
    found = paused(50 * US, 50 * US, 1200 * US, 50 * US, 50 * US, apart=7 * MS)
    equal(list(found), ["long-pause"])
    equal(found["long-pause"]["end_ns"] - found["long-pause"]["begin_ns"], 1200 * US)
    text = found["long-pause"]["text"]
    assert "pause took 1.20 ms (stop-the-world (GC mark termination)). The median of 5 pauses is " in text, text
    assert text.endswith(" is 50.0 us."), text
    text = paused(*(4 * [800]), 10 * MS, apart=70 * MS)["long-pause"]["text"]
    assert 800 <= int(re.search(r"is ([0-9]+) ns\.$", text)[1]) <= 800 * 9 / 8, text
    equal(paused(200 * US, 200 * US, 1200 * US, 200 * US, 200 * US, apart=7 * MS), {})


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


@test
def garbage_collection_takes_a_large_share():
    found = collected(30 * MS)
    equal(list(found), ["gc-share"])
    assert " 30 % " in found["gc-share"]["text"], found
    assert "1 cycle, one every 100 ms." in found["gc-share"]["text"], found
    equal(list(collected(25 * MS + 100 * US)), ["gc-share"])
    equal(collected(25 * MS - 100 * US), {})
    # Others are ready meanwhile, since it has the Ps.
    equal(list(collected(30 * MS, ready=True)), ["gc-share"])
    assert "ready" in collected(24 * MS, ready=True)


@test
def a_collection_takes_longer_beside_other_programs():
    # On one of two Ps. With a stretch of 1 ms without a CPU, 40 % are needed.
    equal(list(collected(78 * MS, lacked=900 * US)), ["gc-share"])
    equal(collected(78 * MS, lacked=1100 * US), {})
    assert "Other programs used the CPUs at times, which makes it longer." in collected(82 * MS, lacked=1100 * US)["gc-share"]["text"]


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


@test
def what_was_before_the_window_is_not_found_in_it():
    for kind, make in {
        "lock-serialises": lambda: hand_over("sync", LOCK).findings(31 * MS),
        "futile-wakeups": lambda: herd(2 * US),
        "one-runs-alone": lambda: lone(12 * MS),
        "ready-while-idle": lambda: lone(12 * MS, idle=(2,), second=True),
        "keeps-p": lambda: kept(50 * MS),
        "delays-stop": lambda: stopped(12 * MS),
        "long-pause": lambda: paused(12 * MS),
        "gc-share": lambda: collected(30 * MS),
        "leak": lambda: created(95 * MS),
    }.items():
        assert kind in make(), kind
        Trace.late = True
        try:
            equal((kind, make()), (kind, {}))
        finally:
            Trace.late = False


@test
def findings_speak_of_threads_where_these_are_asked_for():
    real = Trace.findings
    Trace.findings = lambda self, end, *args: real(self, end, *args, "--words=threads")
    try:
        all_found = [lone(12 * MS), lone(12 * MS, idle=(2,), second=True), turns(501 * MS), created(95 * MS)]
    finally:
        Trace.findings = real
    equal([list(found) for found in all_found], [["one-runs-alone"], ["ready-while-idle"], ["ready", "keeps-p"], ["leak"]])
    for found in all_found:
        for finding in found.values():
            assert "thread" in finding["text"].lower() and not re.search(r"goroutine|\bPs?\b", finding["text"]), finding["text"]


@test
def the_summary_adds_up():
    """P 1 is idle to the end: first there is no work, then work is ready."""
    trace = Trace(2, idle=(1,))
    trace.here(1, 2, 0)
    trace.create(1000, 0, 2)
    found = trace.summary(2000)
    activity = found["activity"]
    equal(activity["procs"], 2)
    ready = found["end_ns"] - found["origin_ns"] - 1000
    assert 1000 <= ready <= 1001, ready  # the end of a trace is a separate event
    equal(activity["idle_work_ns"], ready)
    equal(activity["idle_lock_ns"], 0)
    equal(activity["idle_nothing_ns"], activity["available_ns"] - activity["procs_ns"] - ready)
    equal(activity["ready_ns"], ready)
    equal(sum(s["running_ns"] for s in activity["slices"]), activity["running_ns"])
    equal(found["heap"]["peak_bytes"], 4096)


@test
def each_wait_is_counted_by_itself():
    found = hand_over("sync", LOCK).summary(31 * MS)
    (group,) = [g for g in found["waits"] if g["name"] == "main.worker"]
    (wait,) = group["blocked"]
    equal((wait["reason"], wait["count"]), ("sync", 15))
    equal((wait["longest"]["ns"], wait["longest"]["goroutine"]), (MS - 100, 2))
    equal(wait["sum_ns"], 15 * (MS - 100))
    equal((group["ready"]["count"], group["created"]), (16, 1))


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


@test
def the_slowest_task_says_how_long_it_helped_the_collection():
    def helped(ns):
        trace, end = with_tasks(20 * MS)
        begin = end - 20 * MS
        trace.at(begin, 0, f"GCMarkAssistBegin stack={trace.stack(WORK_STACK)}")
        trace.at(begin + ns, 0, "GCMarkAssistEnd")
        return trace.findings(end)["slow-task"]["text"]

    text = helped(3 * MS)
    assert "Its goroutine ran for 20.0 ms, was ready for 0 ns and waited for the rest. For 3.00 ms of it, its goroutine had to help the garbage collection" in text, text
    assert "assists" not in helped(2 * MS - US) and "assists" in helped(2 * MS + US)
    text = helped(11 * MS)
    assert "For 11.0 ms of it" in text and "waited for the rest" not in text, text


def tasks(*times, **options):
    trace, end = with_tasks(*times, **options)
    return trace.findings(end)


@test
def a_task_is_slow_from_ten_times_the_median_and_10_ms_on():
    found = tasks(20 * MS)["slow-task"]
    assert "The slowest task request took 20.0 ms, the median of 10 about 1.0" in found["text"], found
    equal(found["task"], 10)
    equal(list(tasks(10 * MS, MS // 2)), ["slow-task"])
    equal(tasks(10 * MS - 1, MS // 2), {})
    equal(tasks(20 * MS, 3 * MS), {})
    equal(tasks(20 * MS, count=3), {})


def queued(share, length):
    """One of two goroutines runs all the time; the other is ready this long and then runs."""
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2)
    stop = f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}"
    trace.at(10 + length, 0, stop)
    trace.start(20 + length, 0, 2)
    trace.at(30 + length, 0, "GoDestroy")
    trace.start(40 + length, 0, 1)
    trace.block(45 + length, 0, "chan receive", WORK_STACK)
    end = int(length / share)
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def ready_for_a_fifth_of_the_time_and_10_ms_is_told():
    found = queued(0.3, 12 * MS)["ready"]
    equal((found["goroutine"], found["end_ns"] - found["begin_ns"]), (2, 12 * MS + 10))
    assert "ready" not in queued(0.3, 9 * MS)
    assert "ready" not in queued(0.15, 12 * MS)


def crowd(runs, readies, idle=0, cpus=0, others=0, pinned=(), stops=False, tasks=()):
    """Up to two goroutines (`runs`) run all the time, each on its own P, except that the second P is idle for `idle`;
    `readies` others are ready until the end. The machine has `cpus` CPUs, of which other programs use `others`;
    threads may use this many of them each (`pinned`)."""
    trace, end = Trace(2), 200 * MS
    for tid, of in enumerate(pinned, 100):
        trace.string(f"trail.recorded thread pid={tid} count={of} cpu=0 recorder=0 name=CPU 0")
    if cpus:
        trace.string(f"trail.recorded machine pid=0 count={cpus} cpu={others * end:.0f} recorder={end} name=")
    for g in range(1, runs + 1):
        trace.here(g, 2, g - 1)
    for g in range(10, 10 + readies):
        trace.create(10 + g, 0, g)
        trace.start(end - 1000 + 10 * g, 0, g)
        trace.at(end - 995 + 10 * g, 0, "GoDestroy")
    trace.at(end - 2000, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
    if idle:
        trace.block(end - idle, 1, "chan receive", WORK_STACK)
    if stops:
        trace.at(end - idle + 10, 1, "ProcStop")
    now = MS
    for i, length in enumerate(tasks):
        trace.at(now, 0, f"UserTaskBegin task={i + 1} parent_task=0 name_string={trace.string('request')} stack=0")
        now += length
        trace.at(now, 0, f"UserTaskEnd task={i + 1} stack=0")
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def a_bound_that_is_the_whole_time_is_no_figure():
    some, whole = queued(0.3, 12 * MS)["ready"], crowd(2, 4, cpus=2)["ready"]
    assert some["gain_ns"] < 0.9 * 40 * MS and some["gain_title"] == "saves at most", some
    assert whole["gain_ns"] > 0.995 * 200 * MS and "gain_title" not in whole, whole


def rotating(slice_ns, procs=2, cpus=0, before=None):
    """Five goroutines take turns on these Ps, for so long each time. `cpus`: what the trace has of the machine; `before`: the number of
    Ps at first, for 1 ms."""
    trace = Trace(procs)
    if before:
        trace.procs = before
        trace.idle = range(procs, before)
        trace.at(MS, 0, f"ProcsChange procs_value={procs} stack=0")
    if cpus:
        trace.string(f"trail.recorded machine pid=0 count={cpus} cpu=0 recorder={200 * MS} name=")
    preempted = f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}"
    for g in range(1, 6):
        trace.here(g, 2 if g <= procs else 1, g - 1)
    for i in range(1, 200 * MS // slice_ns):
        for p in range(procs):
            trace.at(i * slice_ns + p, p, preempted)
        for p in range(procs):
            trace.start(i * slice_ns + 10 + p, p, 1 + (i * procs + p) % 5)
    return trace.findings(200 * MS)


@test
def goroutines_that_take_turns_on_all_ps_are_not_held_up():
    # Each is ready for the time of one or two turns.
    assert "ready" in rotating(5 * MS, cpus=4) and "ready" not in rotating(4 * MS, cpus=4)
    # As many Ps as CPUs, as far as the trace says.
    assert "ready" not in rotating(5 * MS)
    # One P may be too few by mistake.
    ready = rotating(MS, procs=1)["ready"]
    assert ready["remedy"] == "GOMAXPROCS is 1: raise it if the program may use more CPUs.", ready
    assert "GOMAXPROCS is 1" in rotating(MS, procs=1, before=2)["ready"]["remedy"]
    assert "GOMAXPROCS" not in rotating(5 * MS, cpus=4)["ready"]["text"]


@test
def one_more_than_there_are_cpus_is_no_crowd():
    assert "ready" not in crowd(2, 1)
    # What other programs did comes below the program's own problems, if it is known that they had CPUs.
    tasks = [MS] * 5 + [30 * MS]
    equal([k for k in crowd(2, 3, cpus=2, tasks=tasks) if k in ("ready", "slow-task")], ["ready", "slow-task"])
    equal([k for k in crowd(2, 3, cpus=2, idle=10 * MS, stops=True, tasks=tasks) if k in ("ready", "slow-task")], ["slow-task", "ready"])
    # A CPU was free, but not for the program: for 40 % of the time, as where there were CPUs enough.
    assert "ready" in crowd(2, 1, idle=110 * MS, stops=True) and "ready" not in crowd(2, 1, idle=80 * MS, stops=True)
    # From 1 on it is a hang, however much other programs use.
    assert 0.99 < crowd(2, 2, cpus=2)["ready"]["weight"] < 1
    # Some CPU was free for it.
    assert "ready" in crowd(2, 1, idle=80 * MS)
    # A goroutine that is ready while a P has nothing to run is woken late, or the P's thread has no CPU.
    equal([k for k in crowd(2, 1, idle=110 * MS, tasks=tasks) if k in ("ready", "slow-task")], ["slow-task", "ready"])


@test
def what_other_programs_take_is_said_to_be_outside():
    def is_outside(**machine):
        ready = crowd(2, 2, **machine)["ready"]
        outside = ready["heading"].startswith("Other programs used the CPUs while goroutines were ready")
        equal("The cause is outside of the program" in ready["details"], outside)
        equal(ready["remedy"] == "Record while the machine is idle.", outside)
        return outside

    # Four want a CPU, and two have one: at most the CPUs used by other programs were missing.
    assert is_outside(cpus=4, others=2)
    assert is_outside(cpus=4, others=1.1)
    assert not is_outside(cpus=4, others=0.9)
    # Threads that may not use all CPUs lack them for another reason, too.
    assert is_outside(cpus=4, others=2, pinned=(4, 4))
    assert not is_outside(cpus=4, others=2, pinned=(4, 1))
    assert "1 thread may use only some of the CPUs (affinity), and other programs used up to 2.0 of" in crowd(2, 2, cpus=4, others=2, pinned=(4, 1))["ready"]["text"]
    # The machine has only these two.
    assert not is_outside(cpus=2, others=2)
    # Without the machine's figures, others of the program had its Ps.
    assert "ready" not in crowd(2, 2)


@test
def what_no_limit_explains_is_not_said_unless_it_is_nearly_all():
    # Two had work, for as many Ps and more CPUs: bursts of other programs, or the machine's host.
    assert "ready" in crowd(1, 1)
    assert "ready" not in crowd(1, 1, cpus=4, others=0.3)
    assert "ready" in crowd(1, 1, cpus=4, others=0.3, pinned=(1, 1))
    # More than Ps.
    assert "ready" in crowd(1, 2, cpus=4, others=0.3)


@test
def no_finding_is_not_that_nothing_is_wrong():
    trace = Trace(1)
    trace.here(1, 2, 0)
    path = trace.path(MS)
    out = good_text("summary", path)
    assert "No known problem found. The largest figures: no wait ended." in out, out
    # A thread that mostly waits for signals may wait for work; but its waits have ended.
    trace = Trace(1)
    trace.here(1, 2, 0)
    for i in range(5):
        trace.log((1 + 2 * i) * MS, 0, "wait", "signal")
        trace.block((1 + 2 * i) * MS + 10, 0, "sync", ("main.main",))
        trace.at((2 + 2 * i) * MS + 900 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start((2 + 2 * i) * MS + 900 * US + 10, 0, 1)
    out = good_text("summary", trace.path(11 * MS))
    assert re.search(r"The largest figures: most waited for: signal \(9\.50 ms, which may be for work, the longest at main\.main \(main\.go:10\)\); longest wait: 1\.90 ms\.", out), out
    # What other waits explain is said before that their threads were joined.
    trace = Trace(2)
    trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.upload",))
    trace.start(20, 1, 2)
    trace.log(30, 0, "wait", "join upload")
    trace.block(40, 0, "sync", ("main.main",))
    for i in range(1, 5):
        trace.block(i * 10 * MS, 1, "sleep", ("main.throttle", "main.upload"))
        trace.at(i * 10 * MS + 4 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(i * 10 * MS + 4 * MS + 10, 1, 2)
    trace.wake(50 * MS, 1, 1, ("main.upload",))
    trace.start(50 * MS + 10, 0, 1)
    equal(trace.summary(51 * MS)["largest"], "most waited for: sleep (16.0 ms, the longest at main.throttle (main.go:10)); longest wait: 4.00 ms")
    assert "No known problem found." in good_text("report", path)
    # Waits that may be for work come first if others took less than a twentieth of their time.
    for sleeps, most in ((450 * US, "signal"), (500 * US, "sleep")):
        trace = Trace(1)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        trace.block(100, 0, "sleep", ("main.main",))
        trace.at(100 + sleeps, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(100 + sleeps + 10, 0, 1)
        for i in range(5):
            trace.log((1 + 2 * i) * MS, 0, "wait", "signal")
            trace.block((1 + 2 * i) * MS + 10, 0, "sync", ("main.main",))
            trace.at((2 + 2 * i) * MS + 900 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start((2 + 2 * i) * MS + 900 * US + 10, 0, 1)
        largest = trace.summary(11 * MS)["largest"]
        assert largest.startswith("most waited for: " + most), largest
    # What Go's runtime waits for itself is of no use, whatever package its goroutine is of.
    trace = hand_over("chan receive", WORK_STACK, busy=True)
    trace.block(10, 1, "system goroutine wait", ("runtime/trace.Start.func1",))
    trace.wake(30 * MS, 0, 3)
    assert trace.summary(31 * MS)["largest"].startswith("most waited for: chan receive ("), trace.summary(31 * MS)["largest"]
    found = hand_over("chan receive", WORK_STACK).summary(31 * MS)
    assert found["largest"].startswith("most waited for: chan receive (") and found["largest"].endswith("longest wait: 1.00 ms"), found["largest"]
    # GC is not mentioned if there was none.
    found = answer("summary", EXAMPLES[3])
    assert found["largest"].endswith(f"; GC: {100 * found['gc']['share']:.1f} % of the time"), found["largest"]


@test
def the_tile_of_the_slowest_task_has_the_median_of_the_tables_and_claims_no_bound():
    trace, end = with_tasks(30 * MS, [990_000] + [1_045_000] * 8)
    found = trace.summary(end)
    note = {tile["key"]: tile["note"] for tile in found["tiles"]}["slowest_task_ns"]
    (kind,) = found["tasks"]
    equal(note, "request, task 10; the median of 10 is 1.04 ms")
    equal(kind["spread"]["p50_ns"], 1_045_000)
    page = good_text("report", trace.path(end))
    assert "the median of 10 is 1.04&nbsp;ms" in page and "half of" not in page


@test
def a_name_that_is_empty_leaves_no_hole():
    found = hand_over("", WORK_STACK).summary(31 * MS)
    assert found["largest"].startswith("most waited for: no reason given ("), found["largest"]
    notes = {tile["key"]: tile["note"] for tile in found["tiles"]}
    assert notes["waiting_ns"].startswith("no reason given "), notes
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("",))
    trace.block(MS, 0, "sync", WORK_STACK)
    trace.start(MS + 10, 0, 2)
    notes = {tile["key"]: tile["note"] for tile in trace.summary(3 * MS)["tiles"]}
    equal(notes["longest_ready_ns"], "goroutine 2", "a start function without a name")
    trace, end = with_tasks(2 * MS, name="")
    notes = {tile["key"]: tile["note"] for tile in trace.summary(end)["tiles"]}
    assert notes["slowest_task_ns"].startswith("task 10; the median of 10 is "), notes


@test
def a_window_counts_what_is_inside():
    found = hand_over("sync", LOCK).summary(31 * MS, "--from=10ms", "--to=+10ms")
    equal(found["end_ns"] - found["begin_ns"], 10 * MS)
    equal(sum(s["running_ns"] for s in found["activity"]["slices"]), found["activity"]["running_ns"])
    equal(found["activity"]["available_ns"], 20 * MS)
    assert [f["kind"] for f in found["findings"]] == ["lock-serialises"], found["findings"]


@test
def a_window_behind_the_end_is_empty():
    found = hand_over("sync", LOCK).summary(31 * MS, "--from=1s")
    activity = found["activity"]
    equal((activity["available_ns"], activity["running_ns"], found["findings"]), (0, 0, []))
    equal([w for w in found["waits"] if w["ready"]["count"] or w["created"]], [])


@test
def for_people_it_is_plain_and_names_the_commands():
    path = hand_over("sync", LOCK).path(31 * MS)
    out = good_text("summary", path)
    assert "\033" not in out and out.isascii(), out
    for part in ("running", "held a lock", "trail print --goroutine=", "heap: 4"):
        assert part in out, (part, out)
    (line,) = [line for line in out.splitlines() if line.startswith("  trail print")][:1]
    assert good_text(*line.split()[1:]), line


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
    equal(list(found), ["maybe-deadlock", "open-wait"])
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
        text = locked(pair + [lock_in(f"f{i}") for i in range(1 + more)])["maybe-deadlock"]["text"]
        assert f"{3 + more} goroutines had waited" in text and text.count(" at main.") == 3, text
        assert f" and {more} more. The trace" in text, text
    # The longest wait first: the others may be for what that one holds.
    trace = Trace(3)
    for g in (1, 2, 3):
        trace.here(g, 2, g - 1)
        trace.block((4 - g) * 20 * MS, g - 1, "sync", lock_in(f"f{g}"))
    found = trace.findings(300 * MS)["maybe-deadlock"]
    equal(re.findall(r" at main\.f(\d)", found["text"]), ["3", "2", "1"])
    equal(found["goroutine"], 3)


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
def pauses_of_a_twentieth_of_the_time_are_worth_a_line():
    def pauses(count, length):
        trace = Trace(1)
        trace.here(1, 2, 0)
        for i in range(count):
            trace.stop((i + 1) * 2 * MS, 0, (i + 1) * 2 * MS + length)
        return trace.findings(101 * MS, "--from=0ns", "--to=100ms")

    found = pauses(10, 500 * US)
    equal(list(found), ["pause-share"])
    assert "took 5.0 % of the time. 10 pauses, 5.00 ms in all, the longest 500 us." in found["pause-share"]["text"], found
    equal(pauses(10, 500 * US - 1), {})


@test
def a_region_is_slow_from_ten_times_the_median_and_10_ms_on():
    def regions(slowest, others=MS, count=9):
        trace = Trace(1)
        trace.here(1, 2, 0)
        name, now = trace.string("look up"), 100
        for i in range(count + 1):
            trace.at(now, 0, f"UserRegionBegin task=0 name_string={name} stack=0")
            now += slowest if i == count else others
            trace.at(now, 0, f"UserRegionEnd task=0 name_string={name} stack=0")
            now += 100
        return trace.findings(now + MS)

    found = regions(20 * MS)["slow-region"]
    assert "The slowest region look up took 20.0 ms, the median of 10 about 1.0" in found["text"], found
    equal(found["region"], "look up")
    equal(list(regions(10 * MS, MS // 2)), ["slow-region"])
    equal(regions(10 * MS - 1, MS // 2), {})
    equal(regions(20 * MS, 3 * MS), {})
    equal(regions(20 * MS, count=3), {})


@test
def a_slow_region_says_what_it_waited_for_and_that_it_assisted():
    def region(assist=0, reason="sync", stack=LOCK):
        trace = Trace(2)
        trace.here(1, 2, 0)
        trace.here(2, 2, 1)
        name, at = trace.string("page"), MS
        for i in range(10):
            trace.at(at, 0, f"UserRegionBegin task=0 name_string={name} stack=0")
            if i == 7 and assist:
                trace.at(at + MS, 0, "GCMarkAssistBegin stack=0")
                trace.at(at + MS + assist, 0, "GCMarkAssistEnd")
            elif i == 7:
                trace.block(at + 100 * US, 0, reason, stack)
                trace.wake(at + 60 * MS, 1, 1, ("main.reload",))
                trace.start(at + 60 * MS + 10, 0, 1)
            at += 60 * MS if i == 7 else MS
            trace.at(at + MS, 0, f"UserRegionEnd task=0 name_string={name} stack=0")
            at += 2 * MS
        return trace.findings(at, "--from=0ns", f"--to={at}ns")["slow-region"]["text"]

    assert re.search(r"For 59\.9 ms of it, its goroutine waited for a lock, which main\.reload \(main\.go:\d+\) held", region()), region()
    assert "For 30.0 ms of it, its goroutine had to help the garbage collection (assists)" in region(30 * MS), region(30 * MS)
    assert "Its goroutine ran for 61.0 ms" in region(15 * MS), region(15 * MS)
    # A wait for the network in a Go program is ended by the scheduler, whichever goroutine runs.
    assert "main.reload" not in region(reason="network", stack=("net.(*netFD).Read", "main.ask")), region(reason="network")


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
def a_static_variable_is_initialised_once():
    found = owned(object="guard variable for store()::s", owns="guard variable for store()::s", kind="mutex")
    equal(list(found), ["once"])
    assert found["once"]["text"].endswith("Initialise it before it is needed, or make that faster."), found


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


@test
def what_the_holder_waited_for_is_compared_with_its_own_part_of_a_wait():
    found = committed()["lock-serialises"]["text"]
    assert "For 87 % of that time the holder was itself waiting (sleep at main.commit (main.go:10))." in found, found


@test
def a_lock_held_over_waits_for_child_processes_comes_before_these_waits():
    found = committed(child=True)
    assert list(found)[0] == "lock-serialises" and found["outside"]["weight"] < 0.25, found
    # Also if the holder is busy for most of that time, in the same function; in another one, what it waits for counts.
    assert committed(child=True, part=1500 * US)["outside"]["weight"] < 0.1
    assert committed(child=True, part=1500 * US, at_place="main.run")["outside"]["weight"] > 0.3
    # Nothing is held over them.
    assert committed(child=True, lock="condition a_cv")["outside"]["weight"] > 0.8


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
def a_slow_task_says_what_it_waited_for():
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    kind, at = trace.string("request"), MS
    for i in range(10):
        trace.at(at, 0, f"UserTaskBegin task={i + 1} parent_task=0 name_string={kind} stack=0")
        if i == 7:
            trace.block(at + 100 * US, 0, "sync", LOCK)
            trace.wake(at + 60 * MS, 1, 1, ("main.reload",))
            trace.start(at + 60 * MS + 10, 0, 1)
            at += 60 * MS
        trace.at(at + MS, 0, f"UserTaskEnd task={i + 1} stack=0")
        at += 2 * MS
    text = trace.findings(at, "--from=0ns", f"--to={at}ns")["slow-task"]["text"]
    assert re.search(r"For 59\.9 ms of it, its goroutine waited for a lock, which main\.reload \(main\.go:\d+\) held", text), text


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


def ran(count, slow, at, usual=MS, also=None):
    """Goroutine 1 runs for `usual` between two sleeps, the one at `at` for `slow`, the one at `also` for 1 ms."""
    trace = Trace(1)
    trace.here(1, 2, 0)
    now = MS
    for i in range(count + 1):
        trace.block(now, 0, "sleep", ("time.Sleep", "main.serve"))
        trace.at(now + MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + MS + 10, 0, 1)
        now += MS + 10 + (slow if i == at else MS if i == also else usual)
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


@test
def a_run_between_two_waits_that_is_far_longer_than_others_is_slow():
    found = ran(40, 60 * MS, 20)
    equal(list(found), ["slow-run"])
    text = found["slow-run"]["text"]
    assert " ran for 60.0 ms between two waits (sleep at main.serve (main.go:11)), 95 % of the 40 times at most about " in text, text
    assert "At most 59.0 ms of 142 ms would be saved." in text or "At most 58" in text, text
    equal((found["slow-run"]["function"], found["slow-run"]["end_ns"] - found["slow-run"]["begin_ns"]), ("main.serve", 60 * MS))
    # From 50 ms on, in the middle of twenty, as a program also has work at first and at last.
    equal(ran(40, 49 * MS, 20), {})
    equal((list(ran(20, 60 * MS, 10)), ran(19, 60 * MS, 10)), (["slow-run"], {}))
    equal((list(ran(40, 60 * MS, 5)), ran(40, 60 * MS, 4)), (["slow-run"], {}))
    equal((list(ran(40, 60 * MS, 34)), ran(40, 60 * MS, 35)), (["slow-run"], {}))
    # What only looks between sleeps has work when it has found what it looks for, if it does so more than once.
    equal(list(ran(60, 60 * MS, 20, usual=20 * US)), ["slow-run"])
    equal(ran(60, 60 * MS, 20, usual=20 * US, also=40), {})


def asked_at_once(goroutines, length):
    """Main waits for goroutines with a WaitGroup, each of which asks ten times over a connection of its own, and waits this long for each
    answer."""
    read = ("internal/poll.(*FD).Read", "net.(*netFD).Read", "net.(*conn).Read", "main.query", "main.fetch")
    write = ("internal/poll.(*FD).Write", "net.(*netFD).Write", "net.(*conn).Write", "main.query", "main.fetch")
    trace = Trace(1 + goroutines)
    trace.here(1, 2, 0)
    for g in range(2, 2 + goroutines):
        trace.create(g, 0, g, ("main.start", "main.fetch"))
        trace.start(20 + g, g - 1, g)
    trace.block(50, 0, "sync", GROUP)
    now = MS
    for i in range(10):
        for g in range(2, 2 + goroutines):
            at = now + g * 10
            trace.at(at, g - 1, f"GoSyscallBegin p_seq=%d stack={trace.stack(write)}", f"P {g - 1}")
            trace.at(at + 1, g - 1, "GoSyscallEnd")
            trace.block(at + 2, g - 1, "network", read)
            trace.wake(at + length, g - 1, g, ())
            trace.start(at + length + 5, g - 1, g)
        now += length + MS
    trace.wake(now, 1, 1, ("main.fetch",))
    trace.start(now + 10, 0, 1)
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def a_peer_that_several_ask_at_the_same_time_is_slow_from_40_ms_on():
    assert "slow-peer" in asked_at_once(1, 20 * MS)
    assert "slow-peer" not in asked_at_once(2, 20 * MS) and "slow-peer" not in asked_at_once(2, 38 * MS)
    assert "slow-peer" in asked_at_once(2, 41 * MS)


def slowly_served(preempted=55 * MS, ran=60 * MS):
    """Goroutine 2 asks goroutine 1 forty times, which runs for 1 ms, but once for `ran` and is ready for so long before it answers."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.ask",))
    trace.start(20, 1, 2)
    trace.log(30, 0, "wait", "read pipe:b")
    trace.block(35, 0, "network", ("main.take", "main.serve"))
    now = MS
    for i in range(40):
        trace.wake(now, 1, 1, ("main.send", "main.ask"))
        trace.start(now + 5, 0, 1)
        trace.log(now + 10, 1, "wait", "read pipe:a")
        trace.block(now + 15, 1, "network", ("main.receive", "main.ask"))
        if i == 20:
            now += ran
            trace.at(now, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
            now += preempted
            trace.start(now, 0, 1)
        now += MS
        trace.wake(now, 0, 2, ("main.answer", "main.serve"))
        trace.start(now + 5, 1, 2)
        trace.log(now + 10, 0, "wait", "read pipe:b")
        trace.block(now + 15, 0, "network", ("main.take", "main.serve"))
        trace.block(now + 20, 1, "sleep", ("time.Sleep", "main.ask"))
        now += MS
        trace.at(now, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(now + 5, 1, 2)
        now += 10
    return trace.findings(now + MS)


@test
def a_long_run_comes_before_the_answer_that_it_makes_late():
    found = list(slowly_served())
    assert found.index("slow-run") < found.index("slow-answer"), found


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


def answered(count, length, accepts=False, wrote=True, region=False, joined=False, replies=False, of=None, locks=False, busy=False, last=None, lacked=0, asks=0, every=False, sleeps=0):
    """Goroutine 2 writes to a connection and waits this long for the answer each time. With
    `accepts`, it was created by a goroutine that accepts connections; with `replies`, goroutine
    4, created by it, writes the answers, and waits for another's itself for `asks` before, or `sleeps`. With `joined`, main waits for goroutine 2 with a
    WaitGroup. With `locks`, goroutine 2 holds a lock meanwhile for which goroutine 7 waits; with
    `busy`, two others are ready all the time, and, without `last`, twenty run, each on a P of its own. The last wait takes `last`; one of
    these is ready for `lacked` of it."""
    read = ("internal/poll.(*FD).Read", "net.(*netFD).Read", "net.(*conn).Read", "main.query", "main.fetch")
    write = ("internal/poll.(*FD).Write", "net.(*netFD).Write", "net.(*conn).Write", "main.answer")
    accept = ("internal/poll.(*FD).Accept", "net.(*netFD).accept", "main.serve")
    hogs = 20 if busy and not last else 0
    trace = Trace((4 if locks else 3) + hogs)
    trace.here(1, 2, 0)
    trace.here(3, 2, 2)
    for i in range(hogs):
        trace.here(40 + i, 2, 3 + i)
    if locks:
        trace.here(7, 2, 3)
    for g in (8, 9) if busy else ():
        trace.here(g, 1)

    def call(now, thread, stack):
        trace.at(now, thread, f"GoSyscallBegin p_seq=%d stack={trace.stack(stack)}", f"P {thread}")
        trace.at(now + US, thread, "GoSyscallEnd")

    call(10, 2, accept)
    trace.create(2 * US, 2 if accepts else 0, 2, ("main.start", "main.fetch"))
    trace.start(3 * US, 1, 2)
    if replies:
        trace.create(4 * US, 2, 4, ("main.serve", "main.handler"))
        trace.block(5 * US, 2, "network", accept)
        trace.start(6 * US, 2, 4)
    if joined:
        trace.block(5 * US, 0, "sync", GROUP)
    name, now = trace.string("order"), MS
    for i in range(count):
        if last and i == count - 1:
            length = last
            trace.start(now + 2 * US + lacked, 0, 8)
        if region:
            trace.at(now - 100, 1, f"UserRegionBegin task=0 name_string={name} stack=0")
        if wrote:
            call(now, 1, write)
        trace.block(now + 2 * US, 1, "network", read)
        if locks:
            trace.block(now + 10 * US, 3, "sync", LOCK)
        if asks:
            trace.at(now + 3 * US, 2, f"UserRegionBegin task=0 name_string={name} stack=0")
            call(now + 4 * US, 2, write)
            trace.block(now + 10 * US, 2, "network", read[:-2] + ("main.price", "main.handler"))
            trace.wake(now + 10 * US + asks, 2, 4, ())
            trace.start(now + 20 * US + asks, 2, 4)
            trace.at(now + 21 * US + asks, 2, f"UserRegionEnd task=0 name_string={name} stack=0")
        if sleeps:
            trace.block(now + 10 * US, 2, "sleep", ("time.Sleep", "main.price", "main.handler"))
            trace.at(now + 10 * US + sleeps, 2, "GoUnblock g=4 g_seq=%d stack=0", 4)
            trace.start(now + 20 * US + sleeps, 2, 4)
        if replies:
            call(now + length - 500 * US, 2, write)
        now += length
        trace.wake(now, 1, 2, ())
        trace.start(now + 10, 1, 2)
        if region:
            trace.at(now + 20, 1, f"UserRegionEnd task=0 name_string={name} stack=0")
        if locks:
            trace.wake(now + 30, 1, 7, ("sync.(*Mutex).Unlock", "main.query", "main.fetch"))
            trace.start(now + 40, 3, 7)
        now += MS
    if last:
        trace.block(now - 5, 0, "chan receive", WORK_STACK)
    if joined:
        trace.wake(now, 1, 1, ("main.fetch",))
        trace.start(now + 10, 0, 1)
    end = of or now + MS
    args = "--from=0ns", f"--to={end}ns"
    return trace.summary(end, *args)["findings"] if every else trace.findings(end, *args)


@test
def an_answer_that_is_late_for_want_of_a_cpu_is_not_slow():
    late = {"count": 20, "length": MS, "joined": True, "busy": True, "last": 100 * MS}
    assert "slow-answer" in answered(**late, lacked=49 * MS)
    assert "slow-answer" not in answered(**late, lacked=51 * MS)


@test
def answers_from_the_network_that_take_most_of_the_time_are_a_slow_peer():
    text = answered(10, 9 * MS, joined=True)["slow-peer"]["text"]
    assert re.match(r"main\.query \(main\.go:\d+\) waited for answers from the network for 88 % of the time\. 10 waits, 90\.0 ms in all, .* Its peer is slow or far away", text), text
    text = answered(10, 9 * MS, joined=True, replies=True)["slow-peer"]["text"]
    assert re.search(r" main\.answer \(main\.go:\d+\), in the same program, answers late\.", text), text
    # It says if it slept for more than half of that.
    for sleeps, said in ((4600 * US, True), (4400 * US, False)):
        text = answered(10, 9 * MS, joined=True, replies=True, sleeps=sleeps)["slow-peer"]["text"]
        assert ("answers late; it slept meanwhile (main.price (main.go:11))." in text) == said, text
    # What it waits for itself comes first.
    for asks, behind in ((8 * MS, True), (7 * MS, False)):
        both = [f for f in answered(10, 9 * MS, joined=True, replies=True, asks=asks, every=True) if f["kind"] == "slow-peer"]
        equal([f["function"] for f in both], ["main.price", "main.query"])
        outer = both[1]["text"]
        assert (", in the same program, answers late, and waits for answers itself at main.price (main.go:13)." in outer) == behind, outer
    # Nothing in the program needs the answer, or it was not requested, as when a server waits for
    # requests.
    # The lock that is held meanwhile is the cause, where the others need it.
    found = answered(10, 9 * MS, joined=True, locks=True)
    equal(found["slow-peer"]["function"], found["lock-serialises"]["function"])
    assert 2 * found["slow-peer"]["weight"] > found["lock-serialises"]["weight"] > found["slow-peer"]["weight"], found
    # The server may be as fast as the CPUs let it be.
    assert "slow-peer" in answered(10, 9 * MS, joined=True, busy=True)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, replies=True, busy=True)
    assert "slow-peer" not in answered(10, 9 * MS)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, wrote=False)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, accepts=True)
    # Within a region it is part of a request.
    assert "slow-peer" in answered(10, 9 * MS, region=True) and "slow-peer" in answered(10, 9 * MS, region=True, accepts=True)
    # From half of the time on, in several waits.
    assert "slow-peer" in answered(10, 9 * MS, joined=True, of=2 * (90 * MS - 20 * US))
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, of=2 * (90 * MS - 20 * US) + 2)
    assert "slow-peer" not in answered(1, 90 * MS, joined=True)


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


@test
def a_server_that_a_c_program_connected_to_answers_late():
    for wait in ("read server 10.0.0.1:5432", "poll server 10.0.0.1:5432"):
        found = outside(10 * [7 * MS], wait, of=150 * MS)
        equal(list(found), ["slow-peer"])
        assert found["slow-peer"]["text"].startswith("main.ask (main.go:10) waited for answers from the network for 47 % of the time. 10 waits, 70.0 ms in all"), found
        assert " Its peer is slow or far away: " in found["slow-peer"]["text"], found
        equal(list(outside(10 * [6 * MS], wait, of=150 * MS)), ["slow-peer"])
        equal(outside(10 * [5900 * US], wait, of=150 * MS), {})
    # Servers wait for requests, and event loops for any of several connections.
    for wait in ("read 10.0.0.1:51324", "poll server 10.0.0.1:5432, pipe:[7]", "read pipe:[7]"):
        equal(outside(10 * [7 * MS], wait, of=150 * MS), {})


def asked_server(late, ready=0, every=10 * MS, rest=None):
    """Goroutine 1 asks 20 times, every 10 ms; goroutine 2 is first ready for some time, and answers after `late`, for
    most of which it waits for `rest`."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.serve",))
    trace.start(20, 1, 2)
    for i in range(20):
        now = (1 + i) * every
        trace.log(now - 40, 1, "wait", "read 127.0.0.1:51324")
        trace.block(now - 30, 1, "network", ("main.serve",))
        trace.wake(now - 20, 0, 2, ("main.ask",))
        trace.start(now - 20 + ready + 10, 1, 2)
        trace.log(now - 10, 0, "wait", "read server 127.0.0.1:80")
        trace.block(now, 0, "network", ("main.ask",))
        if rest:
            trace.log(now + 40, 1, "wait", rest)
            trace.block(now + 50, 1, "network", ("main.read_all",))
            trace.at(now + late - 200, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + late - 100, 1, 2)
        trace.wake(now + late, 1, 1, ("main.serve",))
        trace.start(now + late + 10, 0, 1)
    return trace.findings(21 * every, "--from=0ns", f"--to={21 * every}ns")


@test
def a_recorded_server_that_answers_late_is_named_unless_it_had_no_cpu():
    found = asked_server(5 * MS)
    assert "slow-peer" in found and " main.serve answers late. " in found["slow-peer"]["text"] + " ", found
    # What the peer itself waited for comes first.
    assert abs(found["slow-peer"]["weight"] - found["slow-peer"]["gain_ns"] / (2 * 210 * MS)) < 1e-3, found
    assert "slow-peer" not in asked_server(4 * MS)
    assert "slow-peer" not in asked_server(5 * MS, ready=MS)


@test
def a_server_that_waits_for_the_rest_of_a_request_does_not_answer_late():
    def said(late, rest="read 127.0.0.1:51324"):
        return asked_server(late, every=100 * MS, rest=rest)["slow-peer"]

    found = said(44 * MS)
    assert "main.serve waited for the rest of the request (read 127.0.0.1:51324 at main.read_all" in found["text"] and "answers late" not in found["text"], found
    assert "Send each request in one write, or set TCP_NODELAY." in found["text"], found
    # It is no other thing's fault: not half of its weight.
    assert abs(found["weight"] - found["gain_ns"] / (2100 * MS)) < 1e-3, found
    # An acknowledgement is delayed for about 40 ms.
    assert " TCP_NODELAY" not in said(70 * MS)["text"] and " TCP_NODELAY" not in said(44 * MS, "file data")["text"]


@test
def one_wait_of_many_that_is_far_longer_is_a_slow_answer():
    found = outside(19 * [MS] + [100 * MS], "read pipe:[7]")
    equal(list(found), ["slow-answer"])
    assert found["slow-answer"]["text"].startswith("main.ask (main.go:10) waited 100 ms once (read pipe:[7]); 95 % of its 20 waits took at most about "), found
    assert found["slow-answer"]["text"].endswith(" See what its peer did then."), found
    equal(outside(18 * [MS] + [100 * MS], "read pipe:[7]"), {})
    equal(outside(19 * [MS] + [49 * MS], "read pipe:[7]"), {})
    equal(outside(19 * [20 * MS] + [100 * MS], "read pipe:[7]"), {})
    # Servers wait for requests while none arrives.
    equal(outside(19 * [MS] + [100 * MS], "accept 0.0.0.0:80"), {})
    equal(outside(19 * [MS] + [100 * MS], "poll"), {})


@test
def a_slow_answer_says_what_gave_it_and_what_that_waited_for():
    def said(ns):
        text = outside(19 * [MS] + [100 * MS], "read pipe:[7]", peer_sleeps=ns)["slow-answer"]["text"]
        return text.split(". ", 1)[1]

    assert said(90 * MS).startswith("main.answer, which ended it, was itself waiting for 90.0 ms of that (sleep at main.answer (main.go:10))."), said(90 * MS)
    # Half of the time, and less.
    assert "was itself waiting" in said(50 * MS)
    assert said(50 * MS - 1).startswith("main.answer ended it. ") and said(50 * MS - 1).endswith("See what main.answer did meanwhile."), said(50 * MS - 1)
    # Before the wait it does not count.
    assert "for 100 ms of that" in said(100 * MS + 500 * US), said(100 * MS + 500 * US)


def idle_end(waits, locked=False):
    """Main reads 40 times for a millisecond, then once for 100 ms. Goroutine 2 reads as often as `waits` before it reads
    for as long; or answers main, after 3 has held a lock that both 2 and 4 want, for all of that time."""
    trace = Trace(4)
    trace.here(1, 2, 0)
    for g in 2, 3, 4:
        trace.create(10 * g, 0, g, ("main.answer" if g < 4 else "main.other",))
        trace.start(10 * g + 5, g - 1, g)
    now = MS

    def read(at, g, length, by=None):
        trace.log(at - 10, g - 1, "wait", f"read pipe:[{g}]")
        trace.block(at, g - 1, "network", ("main.ask",))
        if by:
            trace.wake(at + length, by - 1, g, ("main.answer",))
        else:
            trace.at(at + length, 0 if g != 1 else 3, f"GoUnblock g={g} g_seq=%d stack=0", g)
        trace.start(at + length + 10, g - 1, g)

    for i in range(40):
        read(now, 1, MS, by=4)
        if i < waits:
            read(now + 20, 2, MS // 2, by=4)
        now += 2 * MS
    if not locked:
        read(now, 2, 100 * MS)
    else:
        for g in 4, 2:
            trace.log(now, g - 1, "wait", "mutex m")
            trace.block(now + g, g - 1, "sync", ("main.take",))
        trace.log(now + 100 * MS - 20, 2, "held", "mutex m 100ms")
        for g in 4, 2:
            trace.wake(now + 100 * MS - 10 - g, 2, g, ("main.keep",))
            trace.start(now + 100 * MS + g, g - 1, g)
        read(now, 1, 100 * MS + 30, by=2)
    end = now + 101 * MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def one_that_was_asked_nothing_gets_no_slow_answer():
    assert "slow-answer" in idle_end(9), idle_end(9)
    assert "slow-answer" not in idle_end(0)


@test
def a_lock_behind_a_slow_answer_comes_first():
    found = idle_end(0, locked=True)
    equal([kind for kind in found if kind != "serial-phase"], ["lock-serialises", "slow-answer"])
    assert "main.answer ended it, and waited for mutex m before." in found["slow-answer"]["text"], found


def exchanged(wait="poll socket:[7]", works="sleep", slow=100 * MS, service=MS, thinks=4 * MS, waits_first=True, paused=0, count=20):
    """Main asks goroutine 2 every `thinks` and waits for the answer, which takes `service`, the last
    one `slow`, asleep or running; goroutine 2 waits for requests, the first time too or not. Main
    pauses once before it asks."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)

    def waits(at, g, what, stack):
        trace.log(at - 10, g - 1, "wait", what)
        trace.block(at, g - 1, "network", stack)

    now = MS
    if waits_first:
        waits(now, 2, wait.replace("7", "8"), ("main.serve",))
    for i in range(count):
        now += thinks + (paused if i == count // 2 else 0)
        took = slow if i == count - 1 else service
        if i > 0 or waits_first:
            trace.wake(now, 0, 2, ("main.ask",))
            trace.start(now + 10, 1, 2)
        waits(now + 20, 1, wait, ("main.ask",))
        if works == "sleep":
            trace.block(now + 30, 1, "sleep", ("main.look_up", "main.serve"))
            trace.at(now + took - 20, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + took - 10, 1, 2)
        trace.wake(now + took, 1, 1, ("main.serve",))
        trace.start(now + took + 10, 0, 1)
        waits(now + took + 20, 2, wait.replace("7", "8"), ("main.serve",))
        now += took
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def an_answer_in_poll_is_slow_if_what_serves_it_took_its_time():
    text = exchanged()["slow-answer"]["text"]
    assert text.startswith("main.ask (main.go:10) waited 100 ms once (poll socket:[7]); 95 % of its 20 waits took at most about "), text
    assert " was itself waiting for 100 ms of that (sleep at main.look_up (main.go:10))." in text, text
    text = exchanged(works="run")["slow-answer"]["text"]
    assert ", which ended it, ran for 100 ms of that. " in text, text
    # A server has nothing to do while its client pauses, in whatever call it waits.
    for wait in "poll socket:[7]", "read socket:[7]":
        assert "slow-answer" not in exchanged(wait, slow=MS, paused=100 * MS), wait
        assert "slow-answer" in exchanged(wait), wait
    # Which of them serves the other is not known: what waited first, and what waits for longer.
    assert "slow-answer" not in exchanged(waits_first=False)
    assert "slow-answer" in exchanged("read socket:[7]", waits_first=False)
    assert "slow-answer" not in exchanged(thinks=900 * US)


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


@test
def what_other_programs_did_comes_after_what_the_program_does():
    """Ready although a P is idle for a fifth of the time: listed after a lock of the same size."""
    trace = Trace(3, idle=(2,))
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.create(60 * MS, 0, 3)
    for i in range(10):
        trace.block((1 + 3 * i) * MS, 1, "sync", LOCK)
        trace.wake((3 + 3 * i) * MS, 0, 2)
        trace.start((3 + 3 * i) * MS, 1, 2)
    found = trace.summary(101 * MS, "--from=0ns", "--to=100ms")["findings"]
    kinds = [f["kind"] for f in found]
    assert kinds[0].startswith("lock-") and kinds[1] == "ready-while-idle", found
    assert found[1]["gain_ns"] > found[0]["gain_ns"], found


def idle_path():
    trace = Trace(1)
    trace.here(1, 2, 0)
    return trace.path(MS)


@test
def of_several_files_or_a_folder_each_has_a_line():
    folder = os.path.join(WORK, "several")
    os.makedirs(folder)
    for name, path in (("a", lambda: hand_over("sync", LOCK).path(31 * MS)), ("b", idle_path)):
        shutil.copy(path(), os.path.join(folder, name + ".trace"))
    with open(os.path.join(folder, "a.trace"), "rb") as whole, open(os.path.join(folder, "c.trace"), "wb") as cut:
        cut.write(whole.read()[:-100])
    with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("no trace")
    code, out, _ = run_text("summary", "--json", folder)
    files = json.loads(out)
    equal((code, files["other_files"]), (1, 1))
    first = files["files"][0]
    equal(os.path.basename(first["file"]), "a.trace")
    one = answer("summary", os.path.join(folder, "a.trace"))
    equal(first["finding"]["text"], one["findings"][0]["text"])
    equal(first["gain_ns"], one["findings"][0]["replayed_now_ns"] - one["findings"][0]["replayed_then_ns"])
    equal(first["length_ns"], one["end_ns"] - one["begin_ns"])
    equal([os.path.basename(f["file"]) for f in files["files"] if "error" in f], ["c.trace"])
    text = good_text("summary", folder, code=1)
    assert "damaged: " in text and "No known problem found" in text and "1 other file is no trace" in text, text
    equal(len(good_text("summary", os.path.join(folder, "a.trace"), os.path.join(folder, "b.trace")).splitlines()), 3)


@test
def every_command_that_a_finding_names_runs():
    kinds, paths = set(), []
    real = Trace.path
    Trace.path = lambda self, end: paths.append(real(self, end)) or paths[-1]
    try:
        for made in (
            lambda: passed_on(80 * MS), lambda: all_wait("condition queue_cv"), lambda: full(30), lambda: permitted(30), lambda: handed(10000),
            lambda: workers(60 * MS, 20 * MS), lambda: alone(30 * MS, 20 * MS), lambda: alone(30 * MS, 20 * MS, reason="select"),
            lambda: polled(201), lambda: outside(19 * [MS] + [100 * MS], "read pipe:[7]"), lambda: outside([60 * MS], "name look-up db", of=200 * MS),
            lambda: served(5), lambda: lone(12 * MS), lambda: kept(50 * MS), lambda: stopped(5 * MS), pooled, lambda: one_by_one(4),
            lambda: open_in_go("chan send", WORK_STACK), lambda: collected(30 * MS), lambda: created(95 * MS),
        ):
            found = made()
            kinds |= set(found)
            # Each has a span to show, also in JSON: the page jumps there.
            assert all("begin_ns" in f and f["end_ns"] > f["begin_ns"] for f in found.values()), found
            commands = [line.split() for line in good_text("summary", paths[-1]).splitlines() if line.startswith("  trail ")]
            for command in commands:
                assert good_text(*command[1:]), command
    finally:
        Trace.path = real
    assert len(kinds) >= 18, kinds


NOTHING = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EndOfGeneration
"""


@test
def of_a_trace_in_which_nothing_ran_that_is_said_and_no_table_is_empty():
    path = assembled("nothing", NOTHING)
    name, *rest = good_text("summary", path).splitlines()
    # It begins and ends with a Sync event.
    assert name.startswith(f"{path}: ") and name.endswith(", 0 goroutines (0 alive at the end), 2 events"), name
    equal(rest, ["Nothing ran: no goroutine is in the trace. Record while the program is busy."])
    equal(good_text("threads", path), "Nothing ran: no M is in the trace. Record while the program is busy.\n")
    equal(good_text("procs", path), "Nothing ran: no P is in the trace. Record while the program is busy.\n")
    # A trace that has only its header delivers one event, the final Sync.
    with open(path, "rb") as file:
        header = file.read()[:16]
    name, *rest = good_text("summary", "-", stdin=header).splitlines()
    assert name.endswith(", 1 event"), name
    equal(len(rest), 1)
    # A window after the end of another trace: only earlier facts are known, and there are no
    # goroutines.
    text = good_text("summary", "--from=1h", EXAMPLES[3])
    assert "\nNothing ran: no goroutine is in this window.\n" in text, text
    assert "Findings" not in text and "Scheduling latency" not in text, text


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


@test
@long
def the_traces_that_were_made_here_are_good():
    """Last, in one call: most of the time of these tests goes into starting the command."""
    good("check", *Trace.made)


if __name__ == "__main__":
    sys.exit(main())
