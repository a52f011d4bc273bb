#!/usr/bin/env python3
"""Traces that a runtime records with libtrail-record, compared with its own log. TAP.

usage: scheduler.py TRAIL SCHEDULER THREAD_POOL

examples/scheduler does everything that a scheduler can report, in every format. Each trace must be
accepted by `trail check` and by Go's own tools where they are installed; each goroutine's events must
be what the scheduler's log says; and all traces together must contain every type of event.

The log has one line per event, `g=12 n=5 + block sync`, numbered per goroutine; `+`: it must be in the
trace. `project` below selects what a format can show. The trace's events of a goroutine must be a
contiguous part of the log's that has all lines with `+`.
"""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_tools
from tap import finish, report

TRAIL, SCHEDULER, POOL = (os.path.abspath(a) for a in sys.argv[1:4])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
V1, V2 = [7, 11, 19, 21], [22, 23, 26]

# Format, and arguments of each run.
RUNS = [
    (format, ["--work=all", f"--procs={procs}", f"--seed={procs}", *more])
    for format in V1 + V2
    for procs, more in [(1, []), (4, ["--alloc-free"] if format >= 23 else [])]
] + [
    (format, [f"--work={work}", "--procs=3", "--seed=7"])
    for format in (11, 21, 23)
    for work in ("echo", "pipeline")
] + [
    (format, ["--work=all", "--procs=2", "--seed=5", f"--before={before}"])
    for format, before in [(21, "1.21"), (11, "1.23"), (23, "1.19"), (23, "1.22"), (26, "1.26")]
]

# Types that no writer can be made to write, by format family.
NEVER_WRITTEN = {
    "v1": {"GoSysExitLocal"},  # no release of Go ever wrote it
    "v2": set(),
}



def run(*args):
    p = subprocess.run(args, capture_output=True, env=ENV, timeout=240)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


# The log in terms of a format


V1_REASONS = {
    "forever",
    "network",
    "select",
    "sync.(*Cond).Wait",
    "sync",
    "chan send",
    "chan receive",
    "GC mark assist wait for work",
    "sleep",
}


REMOVED_IF_FUTILE = {"select", "sync.(*Cond).Wait", "sync", "chan send", "chan receive"}


def reason(format, text):
    """v1 has a type of event for some reasons, and one for all others; format 7 has none for assists."""
    if format in V1 and (text not in V1_REASONS or (format == 7 and text.startswith("GC "))):
        return ""
    return text


def without_futile(lines):
    """Format 7's readers remove a futile wake-up: the unblock, the start and the new block."""
    out = []
    for sure, text in lines:
        if text.startswith("block-in-vain ") and text[14:] in REMOVED_IF_FUTILE:
            last = [t for _, t in out[-2:]]
            assert last == ["unblock", "start"], f"a wake-up in vain after {last}"
            del out[-2:]
        else:
            out.append((sure, text))
    return out


def project(format, lines):
    """A goroutine's lines as (must be there, what): what the format can tell of them.

    A wake-up in vain is a word of 1.7 only.
    A direct switch is an event of its own from 1.23 on; before, the one that leaves blocks.
    Created blocked: before 1.23 as created, and the first unblock is left out.
    v1 does not tell the end of a system call that did not block; 1.7 tells no assists.
    v1 has no goroutine that is born in a system call: it is created, and comes back from one. When it
    leaves it ends, which v1 can tell only while it holds a P: this end is not compared.
    """
    out, first_unblock = [], False
    if format == 7:
        lines = without_futile(lines)
    for sure, text in lines:
        text = text.replace("block-in-vain ", "block ")
        if text.startswith("block "):
            text = "block " + reason(format, text[6:])
        elif text == "switch":
            text = "block *" if format < 23 else "block "
        elif text == "create-blocked" and format < 23:
            text, first_unblock = "create", True
        elif text == "unblock" and first_unblock:
            first_unblock = False
            continue
        elif format in V1 and text in ("create-syscall", "destroy-syscall"):
            if text == "destroy-syscall":
                sure = False
            text = {"create-syscall": "create", "destroy-syscall": "end"}[text]
        elif text == "syscall-exit" and format in V1:
            continue
        elif text.startswith("assist") and format == 7:
            continue
        out.append((sure, text))
    return out


def read_log(path):
    found = collections.defaultdict(dict)
    with open(path) as f:
        for line in f:
            g, n, sure, text = re.fullmatch(r"g=(\d+) n=(\d+) ([+-]) (.*)\n", line).groups()
            assert int(n) not in found[int(g)], f"twice: {line}"
            found[int(g)][int(n)] = (sure == "+", text)
    for g, lines in found.items():
        assert sorted(lines) == list(range(1, len(lines) + 1)), f"goroutine {g}: numbers missing"
    return {g: [lines[n] for n in sorted(lines)] for g, lines in found.items()}


# The trace in terms of the log


WORDS = {
    "GoCreate": "create",
    "GoCreateBlocked": "create-blocked",
    "GoCreateSyscall": "create-syscall",
    "GoStart": "start",
    "GoDestroy": "end",
    "GoDestroySyscall": "destroy-syscall",
    "GoUnblock": "unblock",
    "GoSwitch": "unblock",
    "GoSwitchDestroy": "unblock",
    "GoSyscallBegin": "syscall",
    "GoSyscallEnd": "syscall-exit",
    "GoSyscallEndBlocked": "syscall-exit-blocked",
}
STOPS = {"runtime.Gosched": "yield", "preempted": "preempt"}
ASSISTS = {"RangeBegin": "assist", "RangeEnd": "assist-end"}


def word(format, event):
    kind = event["kind"]
    if kind in ASSISTS and event["name"] == "GC mark assist":
        return ASSISTS[kind]
    if kind != "StateTransition" or event["resource"] != "goroutine":
        return None
    if event["type"] == "GoStop":
        return STOPS[event["reason"]]
    if event["type"] == "GoBlock":
        return "block " + reason(format, event.get("reason", ""))
    if event["type"] == "GoSyscallEnd" and format in V1:
        return None
    return WORDS.get(event["type"])


def read_trace(format, path):
    code, out, err = run(TRAIL, "print", "--format=jsonl", "--no-stacks", path)
    assert code == 0, err
    found = collections.defaultdict(list)
    for line in out.splitlines():
        event = json.loads(line)
        what = word(format, event)
        if what:
            found[event["id"]].append(what)
    return found


def same(what, logged):
    return what == logged or (logged == "block *" and what.startswith("block "))


def difference(trace, log):
    """Returns "" if `trace` is a part of `log` that contains all required lines; otherwise what is wrong."""
    sure = [i for i, (must, _) in enumerate(log) if must]
    low, high = (sure[0], sure[-1] + 1) if sure else (len(log), 0)
    best = ""
    for at in range(min(low, len(log) - len(trace)), -1, -1):
        if at + len(trace) < high:
            break
        wrong = next((i for i, t in enumerate(trace) if not same(t, log[at + i][1])), None)
        if wrong is None:
            return ""
        best = f"event {wrong}: {trace[wrong]!r}, log: {log[at + wrong][1]!r}"
    return best or f"{len(trace)} events, of which {high - low} must be there"


def compare(format, trace_path, log_path):
    trace, log = read_trace(format, trace_path), read_log(log_path)
    wrong = []
    for g, lines in sorted(log.items()):
        projected = project(format, lines)
        why = difference(trace.get(g, []), projected)
        if why:
            wrong.append(f"g {g}: {why}")
            wrong.append(f"   trace: {trace.get(g, [])[:12]}")
            wrong.append(f"   log:   {[w for _, w in projected][:12]}")
    return wrong, sum(map(len, trace.values()))


# Stacks


def roots_of_stacks(path):
    """The outermost PCs of the stacks with which goroutines wait, and the goroutines with fewer than two. A block
    without stack and reason ("unspecified" in 1.22) is one side of a direct switch."""
    code, out, err = run(TRAIL, "print", "--format=jsonl", "--kind=GoBlock", path)
    assert code == 0, err
    events = [json.loads(line) for line in out.splitlines()]
    events = [e for e in events if e.get("stack") or e.get("reason", "") not in ("", "unspecified")]
    roots = {e["stack"][-1]["pc"] for e in events if e.get("stack")}
    return roots, [e for e in events if len(e.get("stack", [])) < 2]


# The runs


def types_seen(path):
    code, out, err = run(TRAIL, "info", "--full", "--json", path)
    assert code == 0, err
    return set(json.loads(out)["records_by_type"])


def types_of(family, formats):
    """Every type of the tables in src/wire that the formats have."""
    with open(os.path.join(ROOT, "src", "wire", family + ".def")) as f:
        rows = re.findall(rf"^{family.upper()}_EVENT\(\s*\d+, (\w+), +(\d+)", f.read(), re.M)
    assert rows
    return {name for name, since in rows if int(since) <= max(formats)}


def one(format, args, folder):
    name = f"1.{format} {' '.join(args)}"
    trace, log = os.path.join(folder, "trace"), os.path.join(folder, "log")
    code, _, err = run(
        SCHEDULER, f"--format=1.{format}", *args, f"--log={log}", "-o", trace
    )
    report(code == 0 and not err, f"{name}: recorded", f"exit {code}", err)
    code, out, err = run(TRAIL, "check", trace)
    report(code == 0, f"{name}: trail check accepts it", out, err)
    if code:
        return set()
    go_tools(name, format, trace)
    wrong, events = compare(format, trace, log)
    report(not wrong and events > 100, f"{name}: each goroutine did what the log says", *wrong)
    # Every coroutine begins in the same function, which calls its work in one place.
    roots, short = roots_of_stacks(trace)
    report(len(roots) == 1 and not short, f"{name}: stacks reach where it began", roots, short[:3])
    return types_seen(trace)


def thread_pool(folder):
    path = os.path.join(folder, "pool.trace")
    code, _, err = run(POOL, path)
    report(code == 0 and not err, "thread pool: recorded", err)
    code, out, err = run(TRAIL, "check", path)
    report(code == 0, "thread pool: trail check accepts it", out, err)
    trace = read_trace(23, path)
    jobs = [events for events in trace.values() if events == ["create", "start", "end"]]
    report(len(jobs) == 100, "thread pool: a goroutine a job", f"{len(jobs)} jobs")
    go_tools("thread pool", 23, path)


def main():
    seen = {"v1": set(), "v2": set()}
    with tempfile.TemporaryDirectory(prefix="trail-scheduler-") as folder:
        for format, args in RUNS:
            seen["v1" if format in V1 else "v2"] |= one(format, args, folder)
        thread_pool(folder)
    for family, formats in (("v1", V1), ("v2", V2)):
        missing = types_of(family, formats) - seen[family] - NEVER_WRITTEN[family]
        report(not missing, f"{family}: every type of event was seen", *sorted(missing))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
