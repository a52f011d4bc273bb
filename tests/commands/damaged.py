#!/usr/bin/env python3
"""Traces that Go's tools refuse: how much of them is shown, and what is said of the rest. TAP.

What is right is known from how the traces are made here; Go's words are those of its own parsers.

usage: damaged.py TRAIL SOURCE_ROOT
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import WORK, answer, assembled, equal, good, good_text, run, run_text  # noqa: E402
from go_readers import go_of, go_prints  # noqa: E402
from tap import main, test  # noqa: E402

NOBODY = 18446744073709551615

# MARK: Annotations

# One goroutine on one thread, from 1000 ns on, and a task, regions and a log of its own.
ANNOTATED = f"""Trace Go1.26
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=0 g=1 m=5 gstatus=2
%s
GoBlock dt=5000 reason_string=1 stack=1
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Strings
String id=1
	data="a"
String id=2
	data="b"
String id=3
	data="main.dispatch"
String id=4
	data="/src/app/crossed.go"
String id=5
	data="runtime/trace.(*Region).End"
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Stacks
Stack id=1 nframes=2
	pc=1 func=5 file=4 line=7
	pc=2 func=3 file=4 line=23
EndOfGeneration
"""
CROSSED = """UserRegionBegin dt=100 task=0 name_string=1 stack=1
UserRegionBegin dt=100 task=0 name_string=2 stack=1
UserRegionEnd dt=100 task=0 name_string=1 stack=1
UserRegionEnd dt=100 task=0 name_string=2 stack=1"""
MISUSES = {
    "crossed": (CROSSED, "misuse of region in goroutine 1"),
    "unbegun": (
        "UserRegionBegin dt=100 task=0 name_string=1 stack=1\nUserRegionEnd dt=1 task=0 name_string=2 stack=1",
        "misuse of region in goroutine 1",
    ),
    "task": ("UserTaskBegin dt=1 task=7 parent_task=0 name_string=1 stack=1\n" * 2, "task ID conflict: 7"),
    "name": ("UserRegionBegin dt=1 task=0 name_string=9 stack=1", "invalid string ID 9"),
    "stack": ("UserTaskEnd dt=1 task=1 stack=9", "found invalid stack ID 9"),
    "log": ("UserLog dt=1 task=0 key_string=8 value_string=1 stack=1", "found invalid string ID 8"),
}


def annotated(name):
    return assembled(name, ANNOTATED % MISUSES[name][0].rstrip("\n"))


@test
def misused_annotations_do_not_end_the_reading():
    for name, (events, _) in MISUSES.items():
        path = annotated(name)
        kinds = [json.loads(line)["kind"] for line in good_text("print", "--format=jsonl", path).splitlines()]
        # Two syncs, two statuses, the annotations, and the block behind them.
        equal(len(kinds), 5 + len(events.strip().split("\n")), name)
        equal(answer("check", path)["misused"], 1, name)


@test
def strict_readers_end_there_with_gos_message():
    for name, (_, message) in MISUSES.items():
        path = annotated(name)
        for args in (["check", "--strict"], ["print", "--strict"], ["print", "--format=go"]):
            code, out, err = run_text(*args, path)
            equal(code, 1, f"{name} {args}")
            assert message in out + err, (name, args, out, err)
        go = go_of("1.27")
        if go:
            code, _, err = go_prints(go, "-d=parsed", path)
            assert code != 0 and message in err, (name, err)


@test
def check_and_the_finding_name_the_line_of_the_program():
    path = annotated("crossed")
    assert "RegionEnd 'a' of G 1 at main.dispatch (crossed.go:23)" in good_text("check", path)
    found = {f["kind"]: f for f in answer("summary", path)["findings"]}
    assert "region 'a' at main.dispatch (crossed.go:23)" in found["misused-annotation"]["text"], found


@test
def a_region_that_ends_out_of_order_has_its_own_time():
    rows = answer("regions", annotated("crossed"))["regions"]
    equal({r["name"]: r["total_ns"] for r in rows}, {"a": 200, "b": 200})
    rows = answer("regions", annotated("unbegun"))["regions"]
    equal([r["name"] for r in rows], ["a"])


@test
def a_converted_trace_has_only_what_gos_tools_accept():
    out = os.path.join(WORK, "converted.trace")
    for name in MISUSES:
        good("convert", "--to=go1.26", "-o", out, annotated(name))
        good("check", "--strict", out)
        if go_of("1.27"):
            code, _, err = go_prints(go_of("1.27"), "-d=parsed", out)
            equal(code, 0, f"{name}: {err}")


sys.exit(main())
