#!/usr/bin/env python3
"""trail export --to=otlp-metrics against the events of the trace, added up here. TAP.

usage: export_metrics.py TRAIL SOURCE_ROOT
"""

import json
import sys
from bisect import bisect_left

from exports import OF_THREADS, answer, assembled, examples, trail
from sample import some
from tap import main, test

# From 1 us to 50 s, in ns.
BOUNDS = [digit * 10**power for power in range(3, 11) for digit in (1, 2, 5)]


def export(trace, *args):
    """{metric: {(kind, object, overflow): its lengths, as {count, sum, least, most, buckets}}}, and the time covered."""
    metrics, covers = {}, set()
    for line in trail("export", "--to=otlp-metrics", *args, trace).decode().splitlines():
        ((resource,),) = json.loads(line).values()
        assert resource["resource"]["attributes"][0]["key"] == "service.name"
        ((metric,),) = (scope["metrics"] for scope in resource["scopeMetrics"])
        assert metric["unit"] == "s" and metric["histogram"]["aggregationTemporality"] == 1, metric
        series = metrics[metric["name"]] = {}
        for point in metric["histogram"]["dataPoints"]:
            with_values = {a["key"]: next(iter(a["value"].values())) for a in point.get("attributes", ())}
            key = tuple(with_values.pop(name, None) for name in ("wait.kind", "wait.object", "otel.metric.overflow"))
            assert key not in series and not with_values, (key, with_values)
            assert [round(bound * 1e9) for bound in point["explicitBounds"]] == BOUNDS
            covers.add((int(point["startTimeUnixNano"]), int(point["timeUnixNano"])))
            series[key] = {
                "count": int(point["count"]),
                **{name: round(point[name] * 1e9) for name in ("sum", "min", "max")},
                "buckets": [int(count) for count in point["bucketCounts"]],
            }
    return metrics, covers


def histogram(lengths):
    buckets = [0] * (len(BOUNDS) + 1)
    for ns in lengths:
        buckets[bisect_left(BOUNDS, ns)] += 1  # upper bounds are inclusive
    return {"count": len(lengths), "sum": sum(lengths), "min": min(lengths), "max": max(lengths), "buckets": buckets}


def added_up(trace):
    """The same for a trace of Go: waits by reason, and times ready, that begin and end in it."""
    since, lengths = {}, {"trail.wait.duration": {}, "trail.ready.duration": {}}
    for e in map(json.loads, trail("print", "--format=jsonl", trace).splitlines()):
        if e.get("resource") != "goroutine" or e["kind"] != "StateTransition" or e["from"] == e["to"]:
            continue
        begun = since.pop(e["id"], None)
        if begun:
            metric, key, begin = begun
            lengths[metric].setdefault(key, []).append(e["time_ns"] - begin)
        if e["from"] != "Undetermined" and e["to"] == "Waiting":
            since[e["id"]] = "trail.wait.duration", (e.get("reason"), None, None), e["time_ns"]
        elif e["from"] != "Undetermined" and e["to"] == "Runnable":
            since[e["id"]] = "trail.ready.duration", (None, None, None), e["time_ns"]
    return {name: {key: histogram(all_of) for key, all_of in series.items()} for name, series in lengths.items() if series}


@test
def waits_are_those_of_the_events():
    infos = {trace: answer("info", trace) for trace in examples().values()}
    # v1 shows a blocked system call as a wait, too.
    of_go = [trace for trace, info in infos.items() if info["version"] >= 22 and info.get("made_by") not in OF_THREADS]
    seen = 0
    for trace in some(of_go, 5):
        metrics, covers = export(trace)
        assert metrics == added_up(trace), trace
        assert len(covers) == 1, covers
        seen += sum(point["count"] for series in metrics.values() for point in series.values())
    assert seen > 1000, seen


@test
def waits_for_locks_are_those_of_trail_locks():
    trace = examples()["shop-c.trace"]
    metrics, ((begin, end),) = export(trace)
    waits = metrics["trail.wait.duration"]
    locks = [lock for lock in answer("locks", trace)["locks"] if lock["wait_kind"] == "mutex" and lock["waits"]]
    assert len(locks) == 2, locks
    for lock in locks:
        point = waits["mutex", lock["object"], None]
        assert (point["count"], point["sum"]) == (lock["waits"], lock["wait_ns"]), lock
    info = json.loads(trail("info", "--json", trace))
    assert begin == info["start_wall_s"] * 10**9 + info["start_wall_ns"], (begin, info)
    summary = json.loads(trail("summary", "--json", trace))
    assert end - begin == summary["end_ns"] - summary["begin_ns"], (begin, end)


# Goroutine 2 waits when it is found, and until 1010. It then waits for kind 3 from 1020 to 1030 (ready until 1045), and
# again from 1050 on, which does not end. 1 is created at 1005 and runs at 1060.
BY_HAND = """Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=0 g=3 m=1 gstatus=2
GoStatus dt=0 g=2 m=18446744073709551615 gstatus=4
GoCreate dt=4 new_g=4 new_stack=0 stack=0
GoUnblock dt=5 g=2 g_seq=1 stack=0
GoBlock dt=2 reason_string=1 stack=0
GoStart dt=3 g=2 g_seq=2
GoBlock dt=5 reason_string=1 stack=0
GoStart dt=5 g=4 g_seq=1
GoUnblock dt=5 g=2 g_seq=3 stack=0
GoBlock dt=10 reason_string=2 stack=0
GoStart dt=5 g=2 g_seq=4
GoBlock dt=5 reason_string=1 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="chan receive"
String id=2
	data="select"
"""


@test
def only_times_that_begin_and_end_in_the_trace_or_window_count():
    trace = assembled("by-hand", BY_HAND)
    metrics, covers = export(trace)
    assert metrics["trail.wait.duration"] == {("chan receive", None, None): histogram([10])}, metrics
    # 2: from 1010 to 1015, from 1030 to 1045; 4: from 1005 to 1025.
    assert metrics["trail.ready.duration"] == {(None, None, None): histogram([5, 15, 20])}, metrics
    assert covers == {(1000, 1051)}, covers  # without a wall clock, times of the trace, from Sync to Sync
    for args, waits, ready in (
        (("--from=21ns",), [], [15]),
        (("--from=4ns", "--to=28ns"), [], [5, 20]),
        (("--goroutine=4",), [], [20]),
    ):
        metrics, _ = export(trace, *args)
        found = {name: next(iter(series.values())) for name, series in metrics.items()}
        wanted = {"trail.wait.duration": waits, "trail.ready.duration": ready}
        assert found == {name: histogram(lengths) for name, lengths in wanted.items() if lengths}, (args, found)
    # A length that is a bound is below it: 20 ticks of 50 ns.
    metrics, _ = export(assembled("bounds", BY_HAND.replace("freq=1000000000", "freq=20000000")))
    assert metrics["trail.ready.duration"] == {(None, None, None): histogram([250, 750, 1000])}, metrics


# A read that a log announces, from 1010 to 1050, loses its P at 1030.
READ = """Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=0 g=1 m=1 gstatus=2
UserLog dt=8 task=0 key_string=1 value_string=2 stack=0
GoSyscallBegin dt=1 p_seq=1 stack=0
GoSyscallEndBlocked dt=40
EventBatch gen=1 m=2 time=1000 size=auto
ProcSteal dt=30 p=0 p_seq=2 m=1
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="wait"
String id=2
	data="read db:5432"
"""


@test
def a_system_call_that_loses_its_p_is_one_wait():
    metrics, _ = export(assembled("read", READ))
    assert metrics == {"trail.wait.duration": {("read", "db:5432", None): histogram([40])}}, metrics


@test
def beyond_2000_series_waits_are_one():
    kinds = 2100
    lines = ["Trace Go1.23", "EventBatch gen=1 m=1 time=1000 size=auto", "ProcStatus dt=1 p=0 pstatus=1",
             "GoStatus dt=0 g=1 m=1 gstatus=2", "GoStatus dt=0 g=2 m=18446744073709551615 gstatus=1"]  # fmt: skip
    seq = {1: 1, 2: 1}
    runs, other = 1, 2
    for kind in range(kinds):
        # One that runs wakes the other, which waits since the step before, and waits itself.
        if kind:
            lines.append(f"GoUnblock dt=1 g={other} g_seq={seq[other]} stack=0")
            seq[other] += 1
        lines.append(f"GoBlock dt=1 reason_string={kind + 1} stack=0")
        lines.append(f"GoStart dt=1 g={other} g_seq={seq[other]}")
        seq[other] += 1
        runs, other = other, runs
    lines += ["EventBatch gen=1 m=18446744073709551615 time=1000 size=auto", "Frequency freq=1000000000",
              "EventBatch gen=1 m=18446744073709551615 time=1 size=auto", "Strings"]  # fmt: skip
    for kind in range(kinds):
        lines += [f"String id={kind + 1}", f'\tdata="kind {kind}"']
    metrics, _ = export(assembled("many", "\n".join(lines) + "\n"))
    waits = metrics["trail.wait.duration"]
    assert len(waits) == 2000 and sum(point["count"] for point in waits.values()) == kinds - 1, len(waits)
    assert waits[None, None, True]["count"] == kinds - 1 - 1999, waits[None, None, True]


if __name__ == "__main__":
    sys.exit(main())
