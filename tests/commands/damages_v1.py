#!/usr/bin/env python3
"""Seeded damages of traces of Go 1.21 and before: how many sound events are shown, and what is reported about the rest. TAP.

The records are parsed here. The best possible reader would show each event that is contiguous with the start of its batch:
its time is relative to all events in between.

usage: damages_v1.py TRAIL SOURCE_ROOT [DAMAGES]
"""

import collections
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ROOT, WORK, run, run_text  # noqa: E402
from damage import KINDS, damaged  # noqa: E402
from tap import main, test  # noqa: E402
from varint import varint  # noqa: E402

DAMAGES = int(sys.argv[3]) if len(sys.argv) > 3 else 30
SIZES = (1, 16, 256, 4096, 16384)
HEADER = 16
BATCH, STRING, USER_LOG = 1, 37, 48
# v1 types that become a single event, by number, and the name of that event.
NAMES = {6: "ProcStop", 14: "GoStart", 38: "GoStart", 41: "GoStart", 15: "GoDestroy", 17: "GoStop", 18: "GoStop", 19: "GoBlock",
         20: "GoBlock", 22: "GoBlock", 23: "GoBlock", 24: "GoBlock", 25: "GoBlock", 26: "GoBlock", 27: "GoBlock",
         21: "GoUnblock", 39: "GoUnblock", 33: "HeapAlloc"}  # fmt: skip


def record_end(data, at):
    first = data[at]
    at += 1
    if first & 0x3F == STRING:
        _, at = varint(data, at)
        size, at = varint(data, at)
        return at + size
    if first >> 6 == 3:
        size, at = varint(data, at)
        at += size
    else:
        for _ in range((first >> 6) + 1):
            _, at = varint(data, at)
    if first & 0x3F == USER_LOG:
        size, at = varint(data, at)
        at += size
    return at


class Trace:
    """Events as (type, start of the batch, end of the record)."""

    def __init__(self, name):
        with open(os.path.join(ROOT, "examples", "traces", name + ".trace"), "rb") as f:
            self.data = f.read()
        self.name, self.events, batch, at = name, [], HEADER, HEADER
        while at < len(self.data):
            kind = self.data[at] & 0x3F
            batch = at if kind == BATCH else batch
            at = record_end(self.data, at)
            if kind in NAMES:
                self.events.append((NAMES[kind], batch, at))


TRACES = [Trace("load-go1.19"), Trace("load-go1.21")]


class Case:
    def __init__(self, i):
        self.trace, self.kind = TRACES[i % 2], KINDS[i // 2 % 5]
        data, pieces = damaged(self.trace.data, HEADER, self.kind, SIZES, random.Random(i))
        self.path = os.path.join(WORK, "damaged.trace")
        with open(self.path, "wb") as f:
            f.write(data)
        self.name = f"damage {i} ({self.kind} {self.trace.name})"
        sound = (name for name, batch, end in self.trace.events if any(a <= batch and end <= b for a, b in pieces))
        self.sound = collections.Counter(sound)


def shown(path, *options):
    _, out, _ = run("print", "--format=jsonl", "--no-stacks", *options, path)
    return collections.Counter(json.loads(line).get("type") for line in out.splitlines())


@test
def undamaged_events_are_counted_alike():
    """Except the start of the tracing goroutine, which is a status."""
    for trace in TRACES:
        there = shown(os.path.join(ROOT, "examples", "traces", trace.name + ".trace"))
        wanted = collections.Counter(name for name, _, _ in trace.events)
        wanted["GoStart"] -= 1
        assert {name: there[name] for name in wanted} == wanted, trace.name


@test
def nearly_all_sound_events_are_shown():
    count, found, false = collections.Counter(), collections.Counter(), 0
    for i in range(DAMAGES):
        case = Case(i)
        there = shown(case.path)
        count[case.kind] += case.sound.total()
        found[case.kind] += sum(min(there[name], n) for name, n in case.sound.items())
        whole = collections.Counter(name for name, _, _ in case.trace.events)
        false += sum(max(0, there[name] - n) for name, n in whole.items())
    for kind in KINDS:
        print(f"# {kind}: {100 * found[kind] / count[kind]:.1f} % of {count[kind]} sound events")
    share = found.total() / count.total()
    print(f"# all: {100 * share:.1f} %, {false} more than there were")
    assert share >= 0.95, share
    # Duplicate events within a batch cannot be distinguished from different ones.
    assert false <= count.total() / 50, false


def sums(path):
    code, out, err = run_text("goroutines", "--json", path)
    found = collections.Counter()
    for r in json.loads(out)["goroutines"] if out else []:
        found[r["id"], "running"] += r["exec_ns"]
        found[r["id"], "ready"] += r["sched_wait_ns"]
        found[r["id"], "system call"] += r["syscall_ns"] + r["syscall_block_ns"]
        found[r["id"], "blocked"] += sum(r["block_ns"].values())
    return code, err, found


@test
def sums_of_what_is_left_are_not_larger():
    """A state whose end is lost is in no sum; a few that are not detected have a note."""
    true = {trace.name: sums(os.path.join(ROOT, "examples", "traces", trace.name + ".trace"))[2] for trace in TRACES}
    count = wrong = 0
    for i in range(DAMAGES):
        case = Case(i)
        code, err, found = sums(case.path)
        over = {key: ns - true[case.trace.name][key] for key, ns in found.items()}
        here = sum(ns > 1_000_000 for ns in over.values())
        assert here == 0 or (code == 1 and "repair" in err), (case.name, here, code, err)
        count, wrong = count + len(over), wrong + here
    print(f"# {wrong} of {count} sums are too large")
    assert wrong <= count / 200, (wrong, count)


def shortest(path):
    """The shortest time for which any goroutine was ready or waited."""
    _, out, _ = run_text("summary", "--json", path)
    rows = [row["ready"] for row in json.loads(out)["waits"]] if out else []
    return min((row["spread"]["min_ns"] for row in rows if row["count"]), default=None)


@test
def what_is_inferred_is_no_wait():
    """A state that begins or ends where events are lost has no length."""
    for i in range(0, DAMAGES, 3):
        case = Case(i)
        least = shortest(case.path)
        assert least is None or least > 1, (case.name, least)


main()
