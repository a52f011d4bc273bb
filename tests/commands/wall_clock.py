#!/usr/bin/env python3
"""The wall clock of traces in formats without clock readings: what `trail record` notes in them (src/wire/wall.h)
reaches every command, and conversions keep it. Expected values are sums of the numbers in TEXT. TAP.

usage: wall_clock.py TRAIL SOURCE_ROOT
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import WORK, answer, assembled, equal, good, good_text  # noqa: E402
from tap import main, test  # noqa: E402

# A tick is a nanosecond; the task is from 1050 to 1115. At 3000 the wall clock is 2023-11-14 22:13:20.000001500.
TEXT = """Trace Go1.{version}
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
{sync}Frequency freq=1000000000
{reading}EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=1 g=1 m=100 gstatus=2
UserTaskBegin dt=49 task=7 parent_task=0 name_string=1 stack=0
UserTaskEnd dt=65 task=7 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="request"
{note}"""
NOTE = 'String id=2\n\tdata="trail.clock mono={} wall={}"\n'
BEGIN = 1_700_000_000_000_001_500 - 2000


def noted(mono=3000, wall="1700000000.000001500", version=23):
    return TEXT.format(version=version, sync="", reading="", note=NOTE.format(mono, wall))


def noted_trace(name="noted", **args):
    return assembled(name, noted(**args))


def without():
    return assembled("without", TEXT.format(version=23, sync="", reading="", note=""))


def started(path):
    """The wall clock according to `info`, in nanoseconds since 1970; None if it has none."""
    info = answer("info", path)
    return info["start_wall_s"] * 1_000_000_000 + info["start_wall_ns"] if "start_wall_s" in info else None


def task_times(path):
    line = json.loads(good_text("export", "--to=otlp", path).split("\n")[0])
    (span,) = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    return int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])


def readings(path):
    return [e for e in map(json.loads, good_text("print", "--format=jsonl", path).splitlines()) if "clock_wall_s" in e]


def converted(path, to, *args):
    out = os.path.join(WORK, f"{os.path.basename(path)}-{to}.trace")
    good("convert", f"--to={to}", *args, path, "-o", out)
    return out


@test
def info_says_when_it_started():
    equal(started(noted_trace()), BEGIN)
    assert "2023-11-14 22:13:19.999999" in good_text("info", noted_trace()).replace("T", " "), good_text("info", noted_trace())
    equal(started(without()), None)
    # A reading before the first event, and one that carries into the next second.
    equal(started(noted_trace("early", mono=400, wall="1700000000.999999800")), 1_700_000_000_999_999_800 + 600)


@test
def otlp_has_the_wall_clock():
    equal(task_times(noted_trace()), (BEGIN + 50, BEGIN + 115))
    equal(task_times(without()), (1050, 1115))


@test
def the_day_is_that_of_the_clock():
    path = noted_trace()
    os.utime(path, (0, 0))
    rows = good_text("export", "--to=csv", "--table=events", path).splitlines()
    days = {row.split(",")[-1].strip('"') for row in rows[1:]}
    equal(days, {"2023-11-14"})


@test
def the_report_has_it():
    head, other = (good_text("report", path).split("</header>")[0] for path in (noted_trace(), without()))
    assert "2023-11-14 " in head and "2023" not in other, (head, other)


@test
def conversions_keep_it():
    for to in ("go1.22", "go1.23", "go1.25", "go1.26"):
        path = converted(noted_trace(), to)
        equal(started(path), BEGIN, to)
        equal(task_times(path), (BEGIN + 50, BEGIN + 115), to)
        # And back again, from a reading to the line.
        equal(started(converted(path, "go1.23")), BEGIN, to)
    (reading,) = readings(converted(noted_trace(), "go1.26"))
    wall = reading["clock_wall_s"] * 1_000_000_000 + reading["clock_wall_ns"]
    equal(wall - reading["clock_trace_ns"], BEGIN - 1000)


@test
def a_reading_that_is_the_traces_time_is_no_wall_clock():
    path = converted(without(), "go1.26")
    equal(len(readings(path)), 1)
    equal(task_times(path), (1050, 1115))
    equal(started(converted(path, "go1.23")), None)


@test
def merging_keeps_it():
    out = os.path.join(WORK, "merged.trace")
    good("merge", noted_trace(), noted_trace("other"), "-o", out)
    equal(started(out), BEGIN)


@test
def lines_that_are_none():
    for i, line in enumerate(("mono=1", "mono=x wall=1.2", "mono=99999999999999999999 wall=1.2", "mono=-5 wall=x")):
        text = noted().replace("mono=3000 wall=1700000000.000001500", line)
        equal(started(assembled(f"none-{i}", text)), None, line)


main()
