#!/usr/bin/env python3
"""Slow tasks and regions, and wrong annotations. TAP.

usage: tasks.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import LOCK, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import with_tasks  # noqa: E402
from tap import test  # noqa: E402


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


if __name__ == "__main__":
    sys.exit(main())
