#!/usr/bin/env python3
"""Analyses, compared with what Go 1.27 computes. TAP.

usage: analyses_conformance.py TRAIL SOURCE_ROOT

The traces and the answers are in the folder that TRAIL_TRACES names, or in ../shared/traces next to the
source; expected/NAME.summary.json.gz has what Go found. Without the folder everything is skipped.

Integers must be equal; for traces before Go 1.22, where Go's merge breaks ties of time at random, they may
differ by 0.1 % or a microsecond, whichever is more.
"""

import glob
import gzip
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import finish, report

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TRACES = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")



def answer(*args):
    p = subprocess.run([TRAIL, *args, "--json"], capture_output=True)
    assert p.returncode == 0, p.stderr.decode("utf-8", "replace")
    return json.loads(p.stdout)


def version(path):
    with open(path, "rb") as f:
        return int(f.read(16).split()[1].split(b".")[1])


class Differences:
    """Collects differences from the expected values."""

    def __init__(self, exact):
        self.exact, self.all = exact, []

    def number(self, where, ours, theirs):
        close = 0 if self.exact else max(1000, abs(theirs) / 1000)
        if abs(ours - theirs) > close:
            self.all.append(f"{where}: {ours}, Go has {theirs}")

    def same(self, where, ours, theirs):
        if ours != theirs:
            self.all.append(f"{where}: {ours!r}, Go has {theirs!r}")

    def times(self, where, ours, theirs):
        for key, name in (
            ("exec_ns", "Exec"),
            ("sched_wait_ns", "SchedWait"),
            ("syscall_ns", "Syscall"),
            ("syscall_block_ns", "SyscallBlock"),
            ("total_ns", "Total"),
        ):
            self.number(f"{where} {key}", ours[key], theirs[name])
        for key, name in (("block_ns", "Block"), ("range_ns", "Range")):
            a, b = ours[key], theirs.get(name) or {}
            self.same(f"{where} {key}", sorted(a), sorted(b))
            for reason in set(a) & set(b):
                self.number(f"{where} {key} {reason!r}", a[reason], b[reason])


def ordered(regions, name, start, end):
    return sorted(regions, key=lambda r: (r[start], r[end], r[name]))


def check_goroutines(path, name, expected, exact):
    d = Differences(exact)
    ours, theirs = answer("goroutines", path)["goroutines"], expected["goroutines"]
    d.same("goroutines", [g["id"] for g in ours], [g["ID"] for g in theirs])
    for a, b in zip(ours, theirs):
        where = f"G {a['id']}"
        d.same(f"{where} name", (a["name"], a["pc"]), (b["Name"], b["PC"]))
        for key, go in (("creation_ns", "Creation"), ("start_ns", "Start"), ("end_ns", "End")):
            d.same(f"{where} {key} is there", a[key] != 0, b[go] != 0)
            d.number(f"{where} {key}", a[key], b[go])
        d.times(where, a, b["Stats"])
        check_regions(d, where, a["regions"], b.get("Regions") or [])
    report(not d.all, f"{name}: {len(theirs)} goroutines", *d.all)
    regions = sum(len(g.get("Regions") or []) for g in theirs)
    if regions:
        flat = answer("regions", path)["regions"]
        d = Differences(exact)
        for g in theirs:
            mine = [r for r in flat if r["goroutine"] == g["ID"]]
            check_regions(d, f"G {g['ID']}", mine, g.get("Regions") or [])
        d.same("regions", len(flat), regions)
        report(not d.all, f"{name}: {regions} regions", *d.all)


def check_regions(d, where, ours, theirs):
    d.same(f"{where} regions", len(ours), len(theirs))
    if not d.exact:
        theirs = ordered(theirs, "Name", "Start", "End")
        ours = ordered(ours, "name", "start_ns", "end_ns")
    for i, (a, b) in enumerate(zip(ours, theirs)):
        at = f"{where} region {i}"
        d.same(at, (a["task"], a["name"]), (b["Task"], b["Name"]))
        d.number(f"{at} start", a["start_ns"], b["Start"])
        d.number(f"{at} end", a["end_ns"], b["End"])
        d.times(at, a, b["Stats"])


def check_tasks(path, name, expected, exact):
    d = Differences(exact)
    ours, theirs = answer("tasks", path)["tasks"], expected["tasks"] or []
    if theirs and theirs[0]["ID"] == 0:  # annotations outside any task
        ours = answer("tasks", "--task=0", path)["tasks"] + ours
    d.same("tasks", [t["id"] for t in ours], [t["ID"] for t in theirs])
    for a, b in zip(ours, theirs):
        where = f"task {a['id']}"
        d.same(f"{where} name", a["name"], b["Name"])
        d.same(f"{where} parent", a["parent"], None if b["Parent"] == -1 else b["Parent"])
        d.number(f"{where} start", a["start_ns"], b["Start"])
        d.number(f"{where} end", a["end_ns"], b["End"])
        d.same(f"{where} logs", len(a["logs"]), b["Logs"])
        d.same(f"{where} regions", a["region_count"], b["Regions"])
        d.same(f"{where} goroutines", a["goroutines"], sorted(b["Goroutines"] or []))
    report(not d.all, f"{name}: {len(theirs)} tasks", *d.all)


FLAGS = {
    "stw": "stw",
    "stw+bg": "stw,background",
    "stw+bg+assist": "stw,background,assist",
    "stw+bg+assist+sweep": "stw,background,assist,sweep",
    "stw+bg+assist perproc": "stw,background,assist,per-p",
}


def check_mmu(path, name, expected, exact):
    windows = expected["mmu_windows_ns"]
    for key, values in expected["mmu"].items():
        ours = answer(
            "mmu", "--window=" + ",".join(f"{w}ns" for w in windows), "--flags=" + FLAGS[key], path
        )
        close = 1e-6 if exact else 1e-5
        good = ours["windows_ns"] == windows and all(
            abs(a - b) <= close for a, b in zip(ours["mmu"], values)
        )
        report(good, f"{name}: MMU {key}", f"{ours}, Go has {values}")


def trace_of(name):
    found = [
        p
        for folder in ("real", "go-v1", "go-v2-text")
        for p in (
            os.path.join(TRACES, folder, name + ".trace"),
            os.path.join(TRACES, folder, name),
            os.path.join(TRACES, folder, name + ".bin"),
        )
        if os.path.exists(p)
    ]
    assert found, f"no trace for {name}"
    return found[0]


def main():
    answers = sorted(glob.glob(os.path.join(TRACES, "expected", "*.summary.json.gz")))
    only = sys.argv[3:]
    if not answers:
        print("1..0 # SKIP no traces with known answers")
        return 0
    for file in answers:
        name = os.path.basename(file)[: -len(".summary.json.gz")]
        path = trace_of(name)
        with gzip.open(file) as f:
            expected = json.load(f)
        exact = version(path) >= 22
        for what, check in (
            ("goroutines", check_goroutines),
            ("tasks", check_tasks),
            ("mmu", check_mmu),
        ):
            if not only or what in only:
                check(path, name, expected, exact)
    return finish()


sys.exit(main())
