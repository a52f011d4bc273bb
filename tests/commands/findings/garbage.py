#!/usr/bin/env python3
"""Garbage collection and stop-the-world pauses. TAP.

usage: garbage.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import collected, paused, stopped  # noqa: E402
from tap import test  # noqa: E402


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


if __name__ == "__main__":
    sys.exit(main())
