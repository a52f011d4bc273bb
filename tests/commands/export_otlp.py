#!/usr/bin/env python3
"""trail export --to=otlp against `trail tasks` and `trail regions`. TAP.

usage: export_otlp.py TRAIL SOURCE_ROOT
"""

import json
import re
import sys

from exports import assembled, data, examples, trail
from tap import main, test

VALUES = {"stringValue": str, "intValue": int, "boolValue": bool}


def attributes(items):
    result = {}
    for item in items:
        (kind, value), = item["value"].items()
        assert item["key"] not in result
        assert kind != "intValue" or isinstance(value, str), "64-bit integers are strings"
        result[item["key"]] = VALUES[kind](value)
    return result


def export(trace, *args):
    spans = []
    for line in trail("export", "--to=otlp", *args, trace).decode("utf-8").split("\n")[:-1]:
        for resource in json.loads(line)["resourceSpans"]:
            assert attributes(resource["resource"]["attributes"])["service.name"]
            for scope in resource["scopeSpans"]:
                assert scope["scope"]["name"] == "trail"
                spans += scope["spans"]
    for span in spans:
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(span["spanId"], 16) and span["kind"] == 1
        span["start"], span["end"] = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert isinstance(span["startTimeUnixNano"], str) and span["start"] <= span["end"]
        span["attributes"] = attributes(span["attributes"])
    assert len({s["spanId"] for s in spans}) == len(spans)
    return spans


def check(trace):
    spans = export(trace)
    by_id = {s["spanId"]: s for s in spans}
    tasks = json.loads(trail("tasks", "--json", trace))["tasks"]
    regions = json.loads(trail("regions", "--json", trace))["regions"]
    mine = {s["attributes"]["go.task.id"]: s for s in spans if s["attributes"]["go.trace.kind"] == "task"}
    tasks = {t["id"]: t for t in tasks if t["start_ns"] or t["end_ns"]}
    assert mine.keys() == tasks.keys(), (trace, set(mine) ^ set(tasks))
    # One distance between the two clocks.
    shifts = {mine[i]["start"] - t["start_ns"] for i, t in tasks.items() if t["start_ns"]}
    shifts |= {mine[i]["end"] - t["end_ns"] for i, t in tasks.items() if t["end_ns"]}
    assert len(shifts) <= 1, shifts
    shift = shifts.pop() if shifts else 0
    for i, t in tasks.items():
        span = mine[i]
        assert span["name"] == t["name"], (span, t)
        assert len(span.get("events", [])) == len(t["logs"]), (span, t)
        if t["parent"] in mine:
            assert span["parentSpanId"] == mine[t["parent"]]["spanId"]
        assert span["attributes"].get("go.began_before_trace", False) == (not t["start_ns"])
        assert span["attributes"].get("go.goes_on_after_trace", False) == (not t["end_ns"])
    ours = [s for s in spans if s["attributes"]["go.trace.kind"] == "region"]
    regions = [r for r in regions if r["name"]]  # those that goroutines inherit have none
    if not tasks and ours:
        shift = min(s["start"] for s in ours) - min(r["start_ns"] for r in regions)
    place = lambda g, name, start, end: (g, name, start, end)
    found = sorted(place(s["attributes"]["go.goroutine.id"], s["name"],
                         0 if "go.began_before_trace" in s["attributes"] else s["start"] - shift,
                         0 if "go.goes_on_after_trace" in s["attributes"] else s["end"] - shift) for s in ours)
    wanted = sorted(place(r["goroutine"], r["name"], r["start_ns"], r["end_ns"]) for r in regions)
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
    for s in ours:
        parent = by_id.get(s.get("parentSpanId"))
        if parent:
            assert parent["traceId"] == s["traceId"]
            around = parent["attributes"]
            if around["go.trace.kind"] == "region":
                assert around["go.goroutine.id"] == s["attributes"]["go.goroutine.id"]
                assert parent["start"] <= s["start"] and s["end"] <= parent["end"]
        if s["attributes"].get("go.task.id") in mine and parent:
            assert around["go.task.id"] == s["attributes"]["go.task.id"]
    return len(tasks), len(ours)


@test
def tasks_and_regions_are_those_of_the_analyses():
    tasks = regions = 0
    for trace in examples().values():
        a, b = check(trace)
        tasks, regions = tasks + a, regions + b
    assert tasks > 5 and regions > 5, (tasks, regions)


@test
def by_hand():
    check(data("times-1.26"))
    check(data("everything-1.26"))
    spans = {s["name"]: s for s in export(data("times-1.26"))}
    # Wall clock 1,700,000,000 s at 1000; task 7 from 1050 to 1115, its region from 1055 to 1110.
    base = 1_700_000_000_000_000_000 - 1000
    times = {name: (s["start"] - base, s["end"] - base) for name, s in spans.items()}
    assert times["request"] == (1050, 1115) and times["parse"] == (1055, 1110), times
    assert spans["parse"]["parentSpanId"] == spans["request"]["spanId"] == spans["part"]["parentSpanId"]
    assert len({s["traceId"] for s in spans.values()}) == 1 and "parentSpanId" not in spans["request"]
    (log,) = spans["request"]["events"]
    assert (int(log["timeUnixNano"]) - base, log["name"]) == (1112, "half\x1b[1m way")
    assert attributes(log["attributes"]) == {"log.category": "note", "go.goroutine.id": 2}


@test
def the_same_again():
    trace = data("everything-1.26")
    assert trail("export", "--to=otlp", trace) == trail("export", "--to=otlp", trace)


NESTED = """Trace Go1.23
EventBatch gen=1 m=1 time=1 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=1 gstatus=2
UserRegionBegin dt=10 task=0 name_string=1 stack=0
UserRegionBegin dt=10 task=0 name_string=2 stack=0
UserLog dt=1 task=0 key_string=1 value_string=3 stack=0
UserRegionEnd dt=10 task=0 name_string=2 stack=0
UserRegionEnd dt=10 task=0 name_string=1 stack=0
UserRegionBegin dt=10 task=0 name_string=2 stack=0
UserRegionEnd dt=10 task=0 name_string=2 stack=0
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
\tdata="outer"
String id=2
\tdata="in\\xffner\\x00\\""
String id=3
\tdata="\\xed\\xa0\\x80"
"""


@test
def regions_without_a_task_nest_and_any_bytes_are_text():
    inner, outer, alone = export(assembled("nested", NESTED))
    assert [s["name"] for s in (inner, outer, alone)] == ["in\ufffdner\0\"", "outer", "in\ufffdner\0\""]
    assert inner["parentSpanId"] == outer["spanId"] and inner["traceId"] == outer["traceId"]
    assert alone["traceId"] != outer["traceId"] and "parentSpanId" not in alone and "parentSpanId" not in outer
    assert [e["name"] for e in inner["events"]] == ["\ufffd\ufffd\ufffd"]
    assert (outer["end"] - outer["start"], inner["end"] - inner["start"]) == (31, 11)


if __name__ == "__main__":
    sys.exit(main())
