#!/usr/bin/env python3
"""trail export --to=chrome, read by Python's JSON. TAP.

usage: export_chrome.py TRAIL SOURCE_ROOT
"""

import base64
import json
import math
import os
import re
import shutil
import subprocess
import sys

from exports import EXAMPLES, ROOT, STATES, add, compare, data, disjoint, examples, expected, expected_threads, is_of_threads, path, trail
from tap import Skip, main, test


def ns(us):
    return round(us * 1000)


def state_and_reason(e):
    """A wait is called by its reason, all else by its state."""
    state, reason = e["cat"], e.get("args", {}).get("reason", "")
    assert state in STATES and e["name"] == (reason if state == "waiting" and reason else state), e
    return state, reason


class Export:
    def __init__(self, trace, *args):
        self.trace = trace
        self.text = trail("export", "--to=chrome", *args, trace)
        self.all = json.loads(self.text)
        self.events = self.all["traceEvents"]
        self.processes = {
            e["args"]["name"]: e["pid"] for e in self.events if e["ph"] == "M" and e["name"] == "process_name"
        }

    def of(self, process, phase):
        return [e for e in self.events if e["pid"] == self.processes[process] and e["ph"] == phase]

    def times(self):
        times = {}
        for e in self.of("goroutines", "X"):
            add(times, (e["tid"], *state_and_reason(e)), ns(e["dur"]))
        return times

    def names(self, process):
        return {e["tid"]: e["args"]["name"] for e in self.of(process, "M") if e["name"] == "thread_name"}


def check_threads(trace):
    """For a recording: the threads of a process by TID, with the kinds and objects of their waits."""
    export = Export(trace)
    times, names = expected_threads(trace)
    (pid,) = {e["pid"] for e in export.events if e["ph"] in "XM"}
    assert pid == min(tid for tid, name in names.items() if name == "main")  # the main thread's ID is the process's
    assert list(export.processes) == [os.path.basename(trace)], export.processes
    ours = {}
    for e in export.events:
        if e["ph"] == "X":
            add(ours, (e["tid"], *state_and_reason(e)), ns(e["dur"]))
            assert "goroutine" not in e.get("args", {})
    compare(trace, ours, times)
    shown = {e["tid"]: e["args"]["name"] for e in export.events if e["ph"] == "M" and e["name"] == "thread_name"}
    assert shown == names, (shown, names)
    assert not any(e["ph"] == "C" for e in export.events)
    locks = [e["args"] for e in export.events if e.get("args", {}).get("wait.object") == "cache_mu"]
    assert (locks or "shop-c.trace" not in trace) and all(args["wait.kind"] == "mutex" for args in locks)
    assert {e["pid"] for e in export.events if e["ph"] in "sfi"} <= {pid}
    return export


def check(trace, *args):
    if is_of_threads(trace):
        return check_threads(trace)
    export = Export(trace, *args)
    times, names = expected(trace, *args)
    compare(trace, export.times(), times)
    shown = export.names("goroutines")
    for g, name in names.items():
        if any(key[0] == g for key in times):
            assert shown[g] == f"G{g} {name}".rstrip(), (shown[g], name)
    for process in ("goroutines", "Ps", "threads"):
        places = {}
        for e in export.of(process, "X"):
            places.setdefault(e["tid"], []).append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
        for place, spans in places.items():
            disjoint(f"{trace} {process} {place}", spans)
    return export


def check_nesting(export):
    """Computes like speedscope, which subtracts a thread's first ts from each and adds dur, all as
    doubles. Ends must equal the next begin exactly, and whole nanoseconds must remain. Returns
    the number of adjacent pairs."""
    places, count = {}, 0
    for e in export.events:
        if e["ph"] == "X":
            places.setdefault((e["pid"], e["tid"]), []).append(e)
    for spans in places.values():
        spans.sort(key=lambda e: e["ts"])
        first = float(spans[0]["ts"])
        for e, after in zip(spans, spans[1:]):
            begin, end, then = e["ts"] - first, e["ts"] - first + e["dur"], after["ts"] - first
            assert begin < end <= then and end == e["ts"] + e["dur"] - first, (export.trace, e, after)
            assert end == then or ns(e["ts"]) + ns(e["dur"]) < ns(after["ts"]), (export.trace, e, after)
            # Perfetto truncates: the result must be the same nanosecond.
            assert ns(e["ts"]) == math.floor(e["ts"] * 1000), (export.trace, e)
        count += len(spans) - 1
    return count


@test
def spans_add_up_to_the_figures_of_the_analysis_and_nest():
    assert sum(check_nesting(check(trace)) for trace in examples().values()) > 10000


@test
def sums_of_doubles_nest():
    for trace in EXAMPLES:
        check_nesting(Export(trace, "--from=20ms", "--to=+30ms"))
    for name in ("everything-1.5", "everything-1.21", "everything-1.26", "times-1.26", "forever-1.26"):
        check_nesting(Export(data(name)))


SPEEDSCOPE = os.path.join(os.environ.get("TRAIL_DUCKDB", ""), "node_modules", "speedscope", "dist", "release", "index.html")
CHROMIUM = os.environ.get("TRAIL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def speedscope(data):
    """What speedscope prints on the browser's console while it imports these bytes."""
    script = path("speedscope.js")
    with open(script, "w") as to:
        to.write(f'speedscope.loadFileFromBase64("app.json", "{base64.b64encode(data).decode()}")')
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--allow-file-access-from-files",
               "--remote-debugging-port=0", f"--user-data-dir={path('chromium')}")  # fmt: skip
    browser = subprocess.Popen([CHROMIUM, *options, f"file://{SPEEDSCOPE}#localProfilePath={script}"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip
    messages = []
    try:
        for line in browser.stderr:
            found = re.search(r'CONSOLE[^"]*"(.*)", source', line)
            if found:
                messages.append(found[1])
            if found and re.match(r"import: |Failed|Uncaught", found[1]):
                return messages
    finally:
        browser.terminate()
        browser.wait()
    raise AssertionError(f"speedscope did not import it: {messages}")


@test
def speedscope_imports_it_without_a_warning():
    if not os.path.exists(SPEEDSCOPE) or not CHROMIUM:
        raise Skip("no speedscope in TRAIL_DUCKDB, or no Chromium")
    for trace in (EXAMPLES[3], os.path.join(ROOT, "examples", "traces", "shop-c.trace")):
        messages = speedscope(trail("export", "--to=chrome", trace))
        assert any(m.startswith("import: ") for m in messages) and "Importing as Trace Event Format profile" in messages, messages
        assert not [m for m in messages if "Tried to" in m or "closed" in m or "Failed" in m], (trace, messages)
    # It warns where a thread's spans overlap.
    overlap = [{"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": 2, "name": name} for ts, name in ((0, "a"), (1, "b"))]
    assert [m for m in speedscope(json.dumps(overlap).encode()) if "Tried to" in m]


@test
def in_a_window_too():
    for trace in EXAMPLES:
        check(trace, "--from=20ms", "--to=+30ms")


@test
def every_version_by_hand():
    for name in ("everything-1.5", "everything-1.21", "everything-1.26", "times-1.26", "gc-1.26", "why-1.26"):
        check(data(name))


@test
def a_p_runs_what_the_goroutines_ran():
    export = check(data("times-1.26"))
    ran = {}
    for e in export.of("Ps", "X"):
        add(ran, (e["args"]["goroutine"], e["cat"]), ns(e["dur"]))
    for g, state in ran:
        total = sum(t for key, t in export.times().items() if key[:2] == (g, state))
        assert 0 < ran[g, state] <= total, (g, state, ran[g, state], total)
    assert ran


@test
def flows_go_from_what_the_waker_did_to_the_span_that_begins():
    seen = 0
    for trace in list(examples().values())[:5]:
        export = Export(trace)
        begins, inside = set(), {}
        for e in export.of("goroutines", "X"):
            begins.add((e["tid"], ns(e["ts"]), e["cat"]))
            inside.setdefault(e["tid"], []).append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
        starts = {e["id"]: e for e in export.events if e["ph"] == "s"}
        ends = {e["id"]: e for e in export.events if e["ph"] == "f"}
        assert starts.keys() == ends.keys() and len(starts) == sum(e["ph"] == "s" for e in export.events)
        for number, start in starts.items():
            end = ends[number]
            assert start["ts"] == end["ts"] and start["tid"] != end["tid"]
            assert (end["tid"], ns(end["ts"]), "runnable") in begins, end
            assert any(a <= ns(start["ts"]) <= b for a, b in inside[start["tid"]]), start
            seen += 1
    assert seen > 100, seen


@test
def asynchronous_events_come_in_pairs():
    for trace in list(examples().values())[:8]:
        open_now = {}
        for e in Export(trace).events:
            key = (e["pid"], e.get("cat"), e.get("id"))
            if e["ph"] == "b":
                assert key not in open_now, e
                open_now[key] = e
            elif e["ph"] == "e":
                begin = open_now.pop(key)
                assert begin["name"] == e["name"] and begin["ts"] <= e["ts"], (begin, e)
        assert not open_now, open_now


@test
def stacks_lead_to_the_outermost_frame():
    for trace in list(examples().values())[:4]:
        export = Export(trace)
        frames, used = export.all["stackFrames"], 0
        for e in export.events:
            for key in ("sf", "esf"):
                at, steps = e.get(key), 0
                while at is not None:
                    frame = frames[str(at)]
                    at, steps, used = frame.get("parent"), steps + 1, used + 1
                    assert steps <= 128
        assert used > 0


@test
def what_crosses_the_edges_of_a_window_is_cut_there():
    trace = data("gc-1.26")
    lane = lambda *args: [e for e in Export(trace, *args).of("runtime", "X") if e["tid"] == 1]
    whole = max(lane(), key=lambda e: e["dur"])
    begin, end = ns(whole["ts"]), ns(whole["ts"] + whole["dur"])
    middle = (begin + end) // 2
    assert begin < middle < end
    for at, window in (((begin, middle), f"--to={middle}ns"), ((middle, end), f"--from={middle}ns")):
        spans = [(ns(e["ts"]), ns(e["ts"] + e["dur"])) for e in lane(window)]
        assert at in spans, (at, spans)


if __name__ == "__main__":
    sys.exit(main())
