#!/usr/bin/env python3
"""trail export --to=ctf, read by babeltrace2. TAP.

usage: export_ctf.py TRAIL SOURCE_ROOT

Without babeltrace2 everything is skipped.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from exports import EXAMPLES, STATES, TRAIL, add, awaited, compare, data, examples, expected, expected_threads, is_of_threads, path, trail
from killed import die_at_rename, die_at_write
from tap import main, test

LINE = re.compile(r"\[(-?\d+)\.(\d{9})\] \(\+[?.\d]+\) (\w+): \{ (.*) \}")
FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|\( "([^"]*)" : container = \d+ \)|(-?\d+))')

made = 0


def export(trace, *args):
    """[(ns, event, {field: value})] as printed by babeltrace2; stacks are reduced to their functions."""
    global made
    made += 1
    folder = path(f"{made}.ctf")
    trail("export", "--to=ctf", *args, trace, "-o", folder)
    assert sorted(os.listdir(folder)) == ["metadata", "stream"]
    p = subprocess.run(["babeltrace2", "--clock-seconds", folder], capture_output=True)
    assert p.returncode == 0 and not p.stderr, p.stderr.decode()
    events = []
    for line in p.stdout.decode("utf-8").split("\n")[:-1]:
        m = LINE.fullmatch(line)
        assert m, line
        seconds, ns, name, fields = m.groups()
        values = {}
        for key, text, label, number in FIELD.findall(fields):
            value = int(number) if number else label or text
            if key in ("pc", "function", "file", "line"):
                values.setdefault(key, []).append(value)
            else:
                values[key] = value
        events.append((int(seconds) * 10**9 + int(ns), name, values))
    return events


def times(events, end):
    """Adds up the time of each goroutine by state; times in `since` are on the trace's clock."""
    sums, now = {}, {}
    base = min(t - v["since"] for t, n, v in events if n == "goroutine_state")

    def leave(g, at):
        if g in now:
            state, reason, since = now.pop(g)
            add(sums, (g, state, reason), at - since)

    for time, name, v in events:
        if name == "goroutine_state":
            leave(v["goroutine"], v["since"] if v["goroutine"] in now else 0)
            assert v["state"] in STATES
            reason = v["reason"] if v["reason"] != "-" else ""
            assert reason == "" or v["state"] == "waiting", v
            now[v["goroutine"]] = (v["state"], reason, v["since"])
        elif name == "goroutine_end":
            leave(v["goroutine"], time - base)
    for g in list(now):
        leave(g, end)
    return sums


def check_threads(trace):
    """For a recording: the states of threads by TID, with the objects of their waits."""
    events = export(trace)
    right, names = expected_threads(trace)
    numbers = {v["thread"]: v["tid"] for _, n, v in events if n == "thread_state" and v["tid"] > 0}
    assert {numbers[v["thread"]]: v["name"] for _, n, v in events if n == "thread"} == names
    pid = min(tid for tid, name in names.items() if name == "main")  # the main thread's ID is the process's
    assert {v["pid"] for _, n, v in events if n == "thread_state" and v["tid"] > 0} == {pid}
    as_go = [(t, n.replace("thread", "goroutine"), {**v, "goroutine": numbers[v["thread"]]}) if "thread" in v else (t, n, v)
             for t, n, v in events]
    end = max(g["creation_ns"] + g["total_ns"] for g in json.loads(trail("goroutines", "--json", trace))["goroutines"])
    compare(trace, times(as_go, end), right)
    assert awaited(trace) <= {(v["wait_kind"], v["wait_object"]) for _, n, v in events if n == "thread_state"}
    assert {n for _, n, _ in events} <= {"thread", "thread_state", "thread_end", "stack", "wake", "region_begin", "region_end",
                                         "task_begin", "task_end", "log", "cpu_sample"}


def check(trace, *args):
    if is_of_threads(trace):
        return check_threads(trace)
    events = export(trace, *args)
    whole = json.loads(trail("goroutines", "--json", *args, trace))
    ends = [g["creation_ns"] + g["total_ns"] for g in whole["goroutines"] if not g["end_ns"]]
    shift = max(0, 1 - whole["origin_ns"])  # times in a stream are not negative
    if args:  # from the start of the window
        ends = [whole["origin_ns"] + WINDOW_END]
    compare(trace, times(events, ends[0] + shift if ends else None), expected(trace, *args)[0])
    assert all(a[0] <= b[0] for a, b in zip(events, events[1:]))
    return events


WINDOW_END = 4_000_000


@test
def spans_add_up_to_the_figures_of_the_analysis():
    for trace in examples().values():
        if os.path.getsize(trace) < 200_000:
            check(trace)


@test
def in_a_window_too():
    for trace in EXAMPLES[:3]:
        check(trace, "--from=2ms", "--to=4ms")


@test
def every_version_by_hand():
    for name in ("everything-1.5", "everything-1.21", "everything-1.26", "times-1.26", "why-1.26"):
        check(data(name))


@test
def what_was_written_by_hand_is_there():
    events = export(data("everything-1.26"))
    assert [(v["name"], v["value"]) for _, n, v in events if n == "metric"] == [
        ("/sched/gomaxprocs:threads", 2),
        ("/memory/classes/heap/objects:bytes", 12902400),
        ("/gc/heap/goal:bytes", 25165824),
    ]
    log = next(v for _, n, v in events if n == "log")
    assert (log["goroutine"], log["task"], log["category"]) == (1, 2, "size")
    assert log["message"] == "tab\\there, \u00e9, \u2028, \\e[31m and \ufffd", log
    stacks = {v["stack"]: v["function"] for _, n, v in events if n == "stack"}
    waits = next(v for _, n, v in events if n == "goroutine_state" and v["state"] == "waiting" and v["goroutine"] == 1)
    assert waits["reason"] == "chan receive" and stacks[waits["stack"]] == ["main.serve", "main.main"]
    sample = next(v for _, n, v in events if n == "cpu_sample")
    assert (sample["goroutine"], sample["proc"], sample["thread"]) == (1, 0, 100)
    # The wall clock at the first event, from tests/data/everything-1.26.txt.
    assert events[0][0] - 1_700_000_000_120_000_000 in range(1000), events[0]


@test
def begins_have_ends():
    for trace in list(examples().values())[:5]:
        open_now = []
        for _, name, v in export(trace):
            kind, _, what = name.partition("_")
            key = (kind, v.get("name"), v.get("goroutine"), v.get("proc"))
            if what == "begin":
                open_now.append(key)
            elif what == "end" and kind != "goroutine":
                if kind == "task":
                    key = next(k for k in open_now if k[:2] == key[:2])
                at = [k for k in open_now if k[:2] == key[:2]]
                open_now.remove(key if key in open_now else at[0])
        assert not open_now, open_now


@test
def every_stack_is_told_of_before():
    for trace in list(examples().values())[:5]:
        known = {0}
        for _, name, v in export(trace):
            if name == "stack":
                assert v["stack"] not in known and len(v["function"]) == v["length"], v
                known.add(v["stack"])
            else:
                assert v.get("stack", 0) in known, v


@test
def an_export_killed_while_it_writes_leaves_nothing():
    folder = tempfile.mkdtemp(dir=path(""))
    killed = subprocess.run([TRAIL, "export", "--to=ctf", EXAMPLES[0], "-o", f"{folder}/t"], preexec_fn=die_at_write)
    assert killed.returncode == -signal.SIGSYS, killed
    assert not os.listdir(folder), os.listdir(folder)


@test
def what_a_killed_export_leaves_is_hidden():
    folder = tempfile.mkdtemp(dir=path(""))
    killed = subprocess.run([TRAIL, "export", "--to=ctf", EXAMPLES[0], "-o", f"{folder}/t"], preexec_fn=die_at_rename)
    assert killed.returncode == -signal.SIGSYS, killed
    assert [name[0] for name in os.listdir(folder)] == ["."], os.listdir(folder)
    # An output that replaces a file also has a temporary name.
    target = os.path.join(folder, "c.trace")
    shutil.copy(EXAMPLES[0], target)
    killed = subprocess.run([TRAIL, "convert", EXAMPLES[1], "-o", target], preexec_fn=die_at_rename)
    assert killed.returncode == -signal.SIGSYS, killed
    assert sorted(name for name in os.listdir(folder) if name[0] != ".") == ["c.trace"], os.listdir(folder)


@test
def a_folder_is_whole_or_not_there():
    trace = data("times-1.26")
    folder = path("there.ctf")
    trail("export", "--to=ctf", trace, "-o", folder)
    p = subprocess.run([TRAIL, "export", "--to=ctf", trace, "-o", folder], capture_output=True)
    assert p.returncode == 2 and b"is there already" in p.stderr
    trail("export", "--to=ctf", "--from=1h", trace, "-o", path("empty.ctf"), code=1)
    left = [name for name in os.listdir(os.path.dirname(folder)) if name.startswith("empty.ctf")]
    assert not left, left


if __name__ == "__main__":
    if not shutil.which("babeltrace2"):
        print("1..0 # SKIP there is no babeltrace2")
        sys.exit(0)
    sys.exit(main())
