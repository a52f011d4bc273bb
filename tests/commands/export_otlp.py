#!/usr/bin/env python3
"""trail export --to=otlp against `trail tasks` and `trail regions`. TAP.

usage: export_otlp.py TRAIL SOURCE_ROOT
"""

import json
import re
import resource
import sys

from exports import assembled, data, examples, is_of_threads, trail
from tap import main, test

MOST_WAITS = 16  # of a span
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
        events = [{**event, "attributes": attributes(event["attributes"])} for event in span.get("events", [])]
        times = [int(event["timeUnixNano"]) for event in events]
        assert times == sorted(times), span
        span["logs"] = [event for event in events if "log.category" in event["attributes"]]
        span["waits"] = [event for event in events if event["name"] == "wait" and "wait.ns" in event["attributes"]]
        assert len(span["logs"]) + len(span["waits"]) == len(events) and len(span["waits"]) <= MOST_WAITS
        assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and re.fullmatch("[0-9a-f]{16}", span["spanId"])
        assert int(span["spanId"], 16) and span["kind"] == 1
        span["start"], span["end"] = int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])
        assert isinstance(span["startTimeUnixNano"], str) and span["start"] <= span["end"]
        span["attributes"] = attributes(span["attributes"])
    assert len({s["spanId"] for s in spans}) == len(spans)
    return spans


def check(trace):
    spans = export(trace)
    if is_of_threads(trace):  # the same in the vocabulary of threads
        go = {"trail.kind": "go.trace.kind", "trail.task.id": "go.task.id", "trail.began_before_trace": "go.began_before_trace",
              "trail.goes_on_after_trace": "go.goes_on_after_trace"}
        tids, names = {}, {}
        for e in map(json.loads, trail("print", "--format=jsonl", trace).splitlines()):
            if e.get("g") and e.get("m", -1) > 0:
                tids[e["m"]] = e["g"]
        for g in json.loads(trail("goroutines", "--json", trace))["goroutines"]:
            names[g["id"]] = g["name"]
        for s in spans:
            assert not any(key.startswith("go.") for key in s["attributes"]), s
            number = tids[s["attributes"]["thread.id"]] if "thread.id" in s["attributes"] else -1
            assert number < 0 or s["attributes"]["thread.name"] == names[number], s
            assert all(log["attributes"]["thread.id"] in tids for log in s["logs"])
            s["attributes"] = {go.get(key, key): value for key, value in s["attributes"].items()} | {"go.goroutine.id": number}
    by_id = {s["spanId"]: s for s in spans}
    tasks = json.loads(trail("tasks", "--json", trace))["tasks"]
    regions = json.loads(trail("regions", "--json", trace))["regions"]
    mine = {s["attributes"]["go.task.id"]: s for s in spans if s["attributes"]["go.trace.kind"] == "task"}
    tasks = {t["id"]: t for t in tasks if t["start_ns"] or t["end_ns"]}
    assert mine.keys() == tasks.keys(), (trace, set(mine) ^ set(tasks))
    # The offset between the two clocks is constant.
    shifts = {mine[i]["start"] - t["start_ns"] for i, t in tasks.items() if t["start_ns"]}
    shifts |= {mine[i]["end"] - t["end_ns"] for i, t in tasks.items() if t["end_ns"]}
    assert len(shifts) <= 1, shifts
    shift = shifts.pop() if shifts else 0
    for i, t in tasks.items():
        span = mine[i]
        assert span["name"] == t["name"], (span, t)
        assert len(span["logs"]) == len(t["logs"]), (span, t)
        if t["parent"] in mine:
            assert span["parentSpanId"] == mine[t["parent"]]["spanId"]
        assert span["attributes"].get("go.began_before_trace", False) == (not t["start_ns"])
        assert span["attributes"].get("go.goes_on_after_trace", False) == (not t["end_ns"])
    ours = [s for s in spans if s["attributes"]["go.trace.kind"] == "region"]
    regions = [r for r in regions if r["name"]]  # regions inherited by goroutines have none
    if not tasks and ours:
        shift = min(s["start"] for s in ours) - min(r["start_ns"] for r in regions)
    place = lambda g, name, start, end: (g, name, start, end)
    found = sorted(place(s["attributes"]["go.goroutine.id"], s["name"],
                         0 if "go.began_before_trace" in s["attributes"] else s["start"] - shift,
                         0 if "go.goes_on_after_trace" in s["attributes"] else s["end"] - shift) for s in ours)
    wanted = sorted(place(r["goroutine"], r["name"], r["start_ns"], r["end_ns"]) for r in regions)
    assert found == wanted, [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
    for s in spans:
        times = [ns for key, ns in s["attributes"].items() if key.startswith(("go.", "thread.")) and key.endswith(".ns")]
        assert sum(times) <= s["end"] - s["start"], (trace, s)
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
    (log,) = spans["request"]["logs"]
    assert (int(log["timeUnixNano"]) - base, log["name"]) == (1112, "half\x1b[1m way")
    assert log["attributes"] == {"log.category": "note", "go.goroutine.id": 2}


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
    assert [e["name"] for e in inner["logs"]] == ["\ufffd\ufffd\ufffd"]
    assert (outer["end"] - outer["start"], inner["end"] - inner["start"]) == (31, 11)


WAITS = """Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=1 gstatus=2
GoCreate dt=8 new_g=2 new_stack=0 stack=0
UserTaskBegin dt=10 task=7 parent_task=0 name_string=1 stack=0
%sUserRegionBegin dt=10 task=7 name_string=2 stack=0
GoBlock dt=5 reason_string=3 stack=1
GoStart dt=5 g=2 g_seq=1
%sGoUnblock dt=20 g=1 g_seq=1 stack=0
GoBlock dt=5 reason_string=3 stack=0
GoStart dt=5 g=1 g_seq=2
UserRegionEnd dt=10 task=7 name_string=2 stack=0
UserTaskEnd dt=10 task=7 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Stacks
Stack id=1 nframes=1
	pc=4096 func=6 file=6 line=42
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
	data="request"
String id=2
	data="parse"
String id=3
	data="chan receive"
String id=4
	data="traceparent"
String id=5
	data="%s"
String id=6
	data="main.parse"
"""
# The goroutine that handles a request waits from 1035 to 1060, when goroutine 2 wakes it, and runs from 1070 on.
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"  # from the W3C's own example


@test
def waits_are_events_and_times_are_attributes():
    parse, request = export(assembled("waits", WAITS % ("", "", "")))
    (wait,) = parse["waits"]
    base = parse["start"] - 1030
    assert int(wait["timeUnixNano"]) - base == 1035, int(wait["timeUnixNano"]) - base
    assert wait["attributes"] == {
        "wait.for": "chan receive", "wait.ns": 25, "code.function.name": "main.parse", "wait.waker.id": 2,
    }, wait  # fmt: skip
    # The region: runs 5 and 10, waits 25, is ready 10. The task has 10 more before and after it.
    times = {"go.running.ns": 15, "go.waiting.ns": 25, "go.ready.ns": 10}
    assert {k: v for k, v in parse["attributes"].items() if k in times} == times, parse
    assert {k: v for k, v in request["attributes"].items() if k in times} == {**times, "go.running.ns": 35}, request
    assert not request["waits"], "a wait is an event of the innermost span"


@test
def times_of_a_task_on_which_others_work_are_those_of_its_regions():
    other = "UserRegionBegin dt=0 task=7 name_string=2 stack=0\nUserRegionEnd dt=0 task=7 name_string=2 stack=0\n"
    spans = export(assembled("others", WAITS % ("", other, "")))
    (request,) = [s for s in spans if s["name"] == "request"]
    assert not any(k.endswith(".ns") for k in request["attributes"]) and not request["waits"], request


@test
def the_longest_waits_of_a_span_are_kept():
    lengths = [50 + 5 * i % 18 for i in range(MOST_WAITS + 2)]  # from 50 to 67, in no order
    waits, wakes = [], []
    for i, ns in enumerate(lengths):
        waits.append(f"GoBlock dt=5 reason_string=3 stack=0\nGoStart dt={ns + 5} g=1 g_seq={2 + 2 * i}\n")
        wakes.append(f"GoUnblock dt={ns + 10 + 5 * (i == 0)} g=1 g_seq={1 + 2 * i} stack=0\n")
    text = f"""Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=0 g=1 m=1 gstatus=2
UserRegionBegin dt=10 task=0 name_string=1 stack=0
{"".join(waits)}UserRegionEnd dt=10 task=0 name_string=1 stack=0
EventBatch gen=1 m=2 time=1000 size=auto
ProcStatus dt=0 p=1 pstatus=1
GoStatus dt=0 g=2 m=2 gstatus=2
{"".join(wakes)}EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
\tdata="parse"
String id=3
\tdata="chan receive"
"""
    (span,) = export(assembled("many-waits", text))
    kept = [wait["attributes"]["wait.ns"] for wait in span["waits"]]
    assert kept == [ns for ns in lengths if ns > 51] and span["droppedEventsCount"] == 2, (kept, span)


@test
def open_spans_cost_no_more_per_event():
    """Linear, this takes a quarter of a second of CPU time; if each event looked at the open spans, a minute."""
    count = 50_000
    switch = "GoStop dt=1 reason_string=1 stack=0\nGoStart dt=1 g=1 g_seq=%d\n"
    events = [f"UserTaskBegin dt=1 task={9 + i} parent_task=0 name_string=1 stack=0\n" for i in range(count)]
    events += [switch % (i + 1) for i in range(count)]
    events += [f"UserTaskEnd dt=1 task={9 + i} stack=0\n" for i in range(count)]
    begin, rest = NESTED.split("UserRegionBegin", 1)
    batches, last = [], 3
    for at in range(0, len(events), 2000):
        text = "".join(events[at : at + 2000])
        batches.append(f"EventBatch gen=1 m=1 time={last} size=auto\n{text}")
        last += text.count(" dt=1 ")
    trace = assembled("open", begin + "".join(batches) + rest[rest.index("EventBatch") :])
    resource.setrlimit(resource.RLIMIT_CPU, (10, resource.RLIM_INFINITY))
    out = trail("export", "--to=otlp", trace)
    assert out.count(b'"spanId"') == count, out[:999]


@test
def spans_become_part_of_the_programs_own_trace():
    log = "UserLog dt=0 task=7 key_string=4 value_string=5 stack=0\n"
    good = f"00-{TRACE}-{PARENT}-01"
    parse, request = export(assembled("parent", WAITS % (log, "", good)))
    assert request["traceId"] == parse["traceId"] == TRACE and request["parentSpanId"] == PARENT
    assert parse["parentSpanId"] == request["spanId"] and not request["logs"]
    # A text that is not such a header is an ordinary log.
    for wrong in good[:-3], good.replace("4", "G"), f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01", "":
        parse, request = export(assembled("wrong", WAITS % (log, "", wrong)))
        assert request["traceId"] != TRACE and "parentSpanId" not in request, wrong
        assert [e["name"] for e in request["logs"]] == [wrong], wrong


@test
def waits_of_recordings_have_their_objects():
    spans = export(examples()["shop-c.trace"])
    locks = [w["attributes"] for s in spans for w in s["waits"] if w["attributes"]["wait.for"] == "mutex cache_mu"]
    # 10 of the 11 waits for it are in requests; the summary counts all.
    assert len(locks) >= 10 and all(w["code.function.name"] == "look_up" for w in locks), locks
    assert all((w["wait.kind"], w["wait.object"]) == ("mutex", "cache_mu") for w in locks), locks
    # The functions in examples/shop/shop.c that call the annotation functions, not the latter.
    functions = {s["name"]: {t["attributes"]["code.function.name"] for t in spans if t["name"] == s["name"]} for s in spans}
    assert functions == {"request": {"put"}, "look up": {"look_up"}, "answer": {"answer"}}, functions
    for span in spans:
        assert not any(e["attributes"]["log.category"] in ("wait", "held", "holds") for e in span["logs"]), span
        parts = sum(v for k, v in span["attributes"].items() if k.startswith("thread.") and k.endswith(".ns"))
        assert parts in (0, span["end"] - span["start"]), (span, parts)


if __name__ == "__main__":
    sys.exit(main())
