#!/usr/bin/env python3
"""Traces of selected goroutines, compared with the complete trace. TAP.

usage: convert_parts.py TRAIL SOURCE_ROOT

Read by `trail check`, and by Go's own tool where it is installed.
"""

import collections
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, EXAMPLES, SHARED, WORK, assembled, good, run, trace  # noqa: E402
from go_readers import go_of  # noqa: E402
from tap import main, test  # noqa: E402

GO = go_of("1.23") or ""
TRACES = EXAMPLES + [p for p in [os.path.join(SHARED, "real", "loadprof-1.26.trace")] if os.path.exists(p)]


def part(path, *which, version="go1.26", lost=False):
    """The part as a file, which readers must accept."""
    to = os.path.join(WORK, "part.trace")
    code, _, err = run("convert", "--to=" + version, *which, path, "-o", to)
    assert code == 0 and (lost or not err), f"{which} of {path}: exit {code}: {err}"
    good("check", "-q", to)
    if os.path.exists(GO) and version in ("go1.22", "go1.23"):
        p = subprocess.run([GO, "tool", "trace", "-d=1", to], capture_output=True, timeout=240)
        assert p.returncode == 0 and p.stdout, p.stderr[:300]
    return to


def goroutines(path):
    return {g["id"]: g for g in json.loads(good("goroutines", "--json", path))["goroutines"]}


def events(path):
    lines = good("print", "--format=jsonl", "--no-stacks", path).splitlines()
    return [json.loads(line) for line in lines]


def is_v1(path):
    return "1.19" in path or "1.21" in path


def times(row):
    keys = ("exec_ns", "sched_wait_ns", "syscall_ns", "syscall_block_ns", "block_ns", "range_ns")
    return [row[k] for k in (*keys, "total_ns", "name")]


def names(path):
    """The start functions of the program's own goroutines, the most frequent first."""
    count = collections.Counter(g["name"] for g in goroutines(path).values())
    return [n for n, _ in count.most_common() if n and not n.startswith("runtime.")]


@test
def goroutines_that_are_kept_have_the_times_that_they_had():
    for path in TRACES:
        before = goroutines(path)
        for i, name in enumerate(names(path)[:3]):
            version = ("go1.26", "go1.23", "go1.22")[i]
            after = goroutines(part(path, "--name=" + name, version=version))
            for id, row in before.items():
                if row["name"] == name:
                    assert times(after[id]) == times(row), f"{path} {name} {id}: {after[id]} {row}"


@test
def only_what_belongs_to_them_is_kept():
    for path in TRACES:
        name = names(path)[1]
        wanted = {i for i, g in goroutines(path).items() if g["name"] == name}
        related = set()
        for e in events(path):
            of_go = e.get("resource") == "goroutine" and e["kind"] == "StateTransition"
            ranges = e["kind"].startswith("Range") and ("stop-the-world" in e["name"] or "GC concurrent" in e["name"])
            if (of_go and e["id"] in wanted) or ranges or e.get("name", "").endswith("gomaxprocs:threads"):
                related.add(e.get("g", -1))
        related.discard(-1)
        left = set(goroutines(part(path, "--name=" + name)))
        assert wanted <= left, f"{path} {name}: lacks {wanted - left}"
        assert left <= wanted | related, f"{path}: {left - wanted - related} too many"
        assert len(left) < len(goroutines(path)), path


def wakes(path, wanted, shift=0):
    """Which goroutines woke and created the selected ones, and when."""
    return [
        (e["time_ns"] + shift, e["id"], e["from"], e.get("g", -1))
        for e in events(path)
        if e["kind"] == "StateTransition"
        and e["resource"] == "goroutine"
        and e["id"] in wanted
        and (e["from"], e["to"]) in (("Waiting", "Runnable"), ("NotExist", "Runnable"))
    ]


@test
def who_woke_them_is_told():
    for path in TRACES:
        name = names(path)[0]
        wanted = {i for i, g in goroutines(path).items() if g["name"] == name}
        shift = 2 if is_v1(path) else 0
        before = wakes(path, wanted, shift)
        after = wakes(part(path, "--name=" + name), wanted)
        assert before and len(before) == len(after), f"{path}: {len(before)} {len(after)}"
        for a, b in zip(before, after):
            assert a[:3] == b[:3] and b[3] in (a[3], -1 if is_v1(path) else a[3]), f"{path}: {a} {b}"


@test
def garbage_collection_and_stops_of_the_world_stay():
    for path in TRACES:
        found = [json.loads(good("gc", "--json", p)) for p in (path, part(path, "--name=" + names(path)[0]))]
        shift = 2 if is_v1(path) else 0
        pauses = [[(p["begin_ns"], p["end_ns"], p["name"]) for p in f["pauses"]] for f in found]
        assert [(b + shift, e + shift, n) for b, e, n in pauses[0]] == pauses[1], path
        marks = [[c["end_ns"] - c["begin_ns"] for c in f["cycles"]] for f in found]
        assert marks[0] == marks[1], path


@test
def each_goroutine_of_all_kinds_of_events_can_be_kept_alone():
    # Switches between coroutines, goroutines that are born and die in system calls, stolen Ps.
    for text in ("everything-1.26", "times-1.26", "why-1.26", "gc-1.26", "everything-1.21"):
        path = trace(text)
        before = goroutines(path)
        for id, row in before.items():
            for version in ("go1.26", "go1.22"):
                after = goroutines(part(path, f"--goroutine={id}", version=version, lost=True))
                # 1.22 has no event for "created blocked": such a goroutine is ready from the start.
                if version == "go1.26" and not is_v1(text):
                    assert times(after[id]) == times(row), f"{text} {id}: {after[id]} {row}"


def without_p(row):
    """Whether Go counts a call as having had a P depends on what others did to that P earlier."""
    call, lost, *rest = times(row)[2:]
    return [*times(row)[:2], call + lost, *rest]


@test
def what_ties_goroutines_to_those_that_are_not_kept_is_cut_clean():
    path = trace("parts-1.26")
    before = goroutines(path)
    # Goroutines unrelated to G 2 and G 5 are removed, except G 1, which changed GOMAXPROCS.
    for id, left in ((1, {1, 3}), (2, {1, 2}), (3, {1, 3}), (5, {1, 5})):
        for version in ("go1.26", "go1.23"):
            kept = part(path, f"--goroutine={id}", version=version)
            after = goroutines(kept)
            assert set(after) == left, f"{id}: {set(after)}"
            for i in left:
                assert without_p(after[i]) == without_p(before[i]), f"{id} {i}: {after[i]}"
            runs = [json.loads(good("procs", "--json", p)) for p in (path, kept)]
            idle = [[p["idle_ns"] for p in r["procs"]] for r in runs]
            assert idle[0] == idle[1], f"{id}: Ps were idle for {idle}"


@test
def one_half_of_a_switch_can_be_kept():
    # Without the change of GOMAXPROCS, nothing requires G 1; G 3 is woken anyway.
    with open(os.path.join(DATA, "parts-1.26.txt"), encoding="utf-8") as f:
        text = f.read()
    text = text.replace("ProcsChange dt=1 procs_value=2 stack=1\n", "")
    # G 1 finally switches to G 4. What G 3 did does not involve G 4, and vice versa.
    text = text.replace("GoSwitch dt=10 g=3 g_seq=1", "GoCreateBlocked dt=1 new_g=4 new_stack=2 stack=1\nGoSwitch dt=9 g=3 g_seq=1")
    text = text.replace("GoBlock dt=10 reason_string=1 stack=1\nGoStart dt=5 g=2 g_seq=1",
                        "GoSwitch dt=10 g=4 g_seq=1\nGoBlock dt=1 reason_string=1 stack=2\nGoStart dt=4 g=2 g_seq=1")
    path = assembled("switch", text)
    before = goroutines(path)
    for id, left in ((1, {1, 3}), (3, {1, 3}), (4, {1, 4})):
        for version in ("go1.26", "go1.23", "go1.22"):
            after = goroutines(part(path, f"--goroutine={id}", version=version))
            assert set(after) == left, f"{id}: {set(after)}"
            if version != "go1.22":
                assert times(after[id]) == times(before[id]), f"{id}: {after[id]} {before[id]}"


@test
def a_task_is_kept_with_all_who_took_part():
    path = trace("times-1.26")
    for which in ("--task=7", "--task=request", "--task=req*"):
        before = json.loads(good("tasks", "--json", path))["tasks"]
        assert json.loads(good("tasks", "--json", part(path, which)))["tasks"] == before
    path = TRACES[3]
    before = json.loads(good("tasks", "--json", path))["tasks"]
    name = before[0]["name"]
    after = {t["id"]: t for t in json.loads(good("tasks", "--json", part(path, "--task=" + name)))["tasks"]}
    for t in before:
        assert t["name"] != name or after[t["id"]] == t, t


@test
def parts_may_be_of_a_window_of_stdin_of_a_damaged_trace():
    path = TRACES[3]
    name = "--name=main.main"
    with open(path, "rb") as f:
        data = f.read()
    whole = good("convert", name, path, "-o", "-")
    assert good("convert", name, "-", "-o", "-", stdin=data) == whole
    window = part(path, name, "--from=5ms", "--to=+10ms")
    rows = [
        json.loads(good("goroutines", "--json", "--from=5ms", "--to=+10ms", path)),
        json.loads(good("goroutines", "--json", window)),
    ]
    one, other = [next(g for g in r["goroutines"] if g["id"] == 1) for r in rows]
    assert abs(one["exec_ns"] - other["exec_ns"]) < 100000, f"{one} {other}"
    cut = data[: len(data) * 2 // 3]
    code, out, err = run("convert", "--goroutine=1", "-", "-o", "-", stdin=cut)
    assert code == 1 and "the good part was converted" in err, err
    good("check", "-q", "-", stdin=out)


@test
def what_is_not_there_names_the_nearest():
    path = trace("times-1.26")
    cases = [
        ("--goroutine=5", "the nearest is 3"),
        ("--goroutine=x", "not a list of numbers"),
        ("--name=main.wroker", "did you mean 'main.worker'"),
        ("--task=9", "no task 9"),
        ("--task=requets", "did you mean 'request'"),
    ]
    for option, hint in cases:
        to = os.path.join(WORK, "none.trace")
        code, out, err = run("convert", option, path, "-o", to)
        assert code == 2 and hint in err and not os.path.exists(to), f"{option}: exit {code}: {err}"


@test
def what_is_of_no_P_is_left_out():
    """A P of v1 may have the number that means "none" in v2."""
    text = """Trace Go1.21
Batch p=18446744073709551615 ticks=100
ProcStart dt=1 thread=5
GoCreate dt=1 g=7 stack=0 stk=0
GoStartLocal dt=1 g=7
GoSched dt=3 stk=0
ProcStop dt=3
Frequency freq=1000000000
"""
    path = assembled("none-v1", text)
    for version in ("go1.22", "go1.23", "go1.26"):
        part(path, version=version, lost=True)


if __name__ == "__main__":
    sys.exit(main())
