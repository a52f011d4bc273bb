#!/usr/bin/env python3
"""CPUs and scheduling: threads that are ready, spin, keep their P or run alone. TAP.

usage: cpus.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import GROUP, LOCK, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import collected, created, hand_over, herd, kept, lone, paused, stopped  # noqa: E402
from tap import test  # noqa: E402


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


@test
def who_runs_long_while_nobody_waits_keeps_nothing():
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.block(30 * MS, 0, "chan receive", WORK_STACK)
    equal(trace.findings(31 * MS), {})


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
def each_wait_is_counted_by_itself():
    found = hand_over("sync", LOCK).summary(31 * MS)
    (group,) = [g for g in found["waits"] if g["name"] == "main.worker"]
    (wait,) = group["blocked"]
    equal((wait["reason"], wait["count"]), ("sync", 15))
    equal((wait["longest"]["ns"], wait["longest"]["goroutine"]), (MS - 100, 2))
    equal(wait["sum_ns"], 15 * (MS - 100))
    equal((group["ready"]["count"], group["created"]), (16, 1))


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
def a_window_behind_the_end_is_empty():
    found = hand_over("sync", LOCK).summary(31 * MS, "--from=1s")
    activity = found["activity"]
    equal((activity["available_ns"], activity["running_ns"], found["findings"]), (0, 0, []))
    equal([w for w in found["waits"] if w["ready"]["count"] or w["created"]], [])


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


if __name__ == "__main__":
    sys.exit(main())
