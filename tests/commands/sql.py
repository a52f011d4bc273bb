#!/usr/bin/env python3
"""The tables over traces: compared with the printers and analyses of the same traces, with rows made by hand for
small ones, and through readers that share no code with the writers. TAP.

The part `sql` needs DuckDB's library (TRAIL_DUCKDB, or where trail looks for it) and is skipped without;
so is a second reader of Parquet, which is node with hyparquet in the same folder.

The part `real` needs real traces, in the folder that TRAIL_TRACES names, or in ../shared/traces next to the source.

usage: sql.py TRAIL SOURCE_ROOT tables|sql|real
"""

import collections
import csv
import glob
import gzip
import io
import json
import operator
import os
import re
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, equal, trace as assembled  # noqa: E402
from command import assembled as assembled_text  # noqa: E402
from killed import die_at_rename
from sample import some
from tap import Skip, main, test, tests

COMMON = ("trace", "file", "host", "day")


# AddressSanitizer does not support exceptions in a library that a C program loads late.
SANITIZED = {"LD_PRELOAD": "libstdc++.so.6"} if "ASAN_OPTIONS" in os.environ else {}


def run(*args, env=None, stdin=None):
    env = {**os.environ, **SANITIZED, **(env or {})}
    p = subprocess.run([TRAIL, *args], input=stdin, capture_output=True, timeout=120, env=env)
    return p.returncode, p.stdout, p.stderr.decode()


def good(*args, **more):
    code, out, err = run(*args, **more)
    assert code == 0 and not err, f"trail {' '.join(args)}: exit {code}: {err}"
    return out


HAND = assembled("times-1.26")
TRACES = [*EXAMPLES, HAND, assembled("everything-1.26"), assembled("everything-1.21"), assembled("why-1.26")]


def table(trace, name, *options):
    """Rows of a table as dictionaries; a cell that is empty and not in quotes is None."""
    code, out, err = run("export", "--to=csv", f"--table={name}", *options, trace)
    text = out.decode()
    assert code == 0 and (not err or (err.endswith("no row is in that window\n") and text.count("\n") == 1)), err
    marked = re.sub(r'(?<=[,\n])""(?=[,\n])', "\x01", text)
    rows = csv.DictReader(io.StringIO(marked))
    return [{k: "" if v == "\x01" else v if v else None for k, v in row.items()} for row in rows]


def number(value):
    return None if value is None else int(value)


def events(trace):
    return [json.loads(line) for line in good("print", "--format=jsonl", trace).splitlines()]


def whole(value):
    return None if value is None else str(value)


def plain(row):
    """The values of a row of JSON in the form of CSV."""
    return {k: {True: "true", False: "false"}[v] if isinstance(v, bool) else whole(v) for k, v in row.items()}


have_duckdb = run("sql", HAND, "select 1")[0] == 0
modules = os.path.join(os.environ.get("TRAIL_DUCKDB", ""), "node_modules")
have_hyparquet = os.path.isdir(os.path.join(modules, "hyparquet")) and shutil.which("node")


parts = {"sql": [], "real": []}


def with_duckdb(function):
    parts["sql"].append(function)
    return function


def with_real_traces(function):
    parts["real"].append(function)
    return function


def sql(trace, query, *options):
    return json.loads(good("sql", "--json", *options, trace, query))


# MARK: Rows against the printers


def printed(event):
    """The expected row of `events` for a line of JSON."""
    task = event.get("task")
    args = list(event.get("args", {}).values())
    value = event.get("value", event.get("swept_bytes", args[0] if args else None))
    value2 = event.get("reclaimed_bytes", args[1] if len(args) > 1 else None)
    return {
        "time_ns": event["time_ns"],
        "kind": event["kind"],
        "type": event.get("type"),
        "thread": event.get("m"),
        "proc": event.get("p"),
        "goroutine": event.get("g"),
        "resource": event.get("resource"),
        "id": event.get("id"),
        "from_state": event.get("from"),
        "to_state": event.get("to"),
        "reason": event.get("reason") or None,
        "name": event.get("name", event.get("category")) or None,
        "text": event.get("message", event.get("label")) or None,
        "task": task,
        "parent": event.get("parent"),
        "value": value,
        "value2": value2,
    }


@test
def events_are_those_that_are_printed():
    for trace in TRACES:
        rows, lines = table(trace, "events"), events(trace)
        equal(len(rows), len(lines))
        for row, event in zip(rows, lines):
            for key, value in printed(event).items():
                if key == "text" and event.get("message") == "":
                    continue
                assert row[key] == whole(value), f"{trace}: {key}: {row} is not of {event}"


@test
def stacks_and_frames_are_those_that_are_printed():
    for trace in TRACES:
        frames = collections.defaultdict(list)
        for row in table(trace, "frames"):
            equal(int(row["frame"]), len(frames[row["stack"]]))
            frames[row["stack"]].append((hex(int(row["pc"])), row["function"], row["source"], int(row["line"])))
        stacks = {row["stack"]: row for row in table(trace, "stacks")}
        equal(set(stacks), set(frames))
        for number_, row in stacks.items():
            right = frames[number_]
            equal((row["depth"], row["leaf"], row["root"]), (str(len(right)), right[0][1], right[-1][1]))
            assert row["function"] in [frame[1] for frame in right]
        for row, event in zip(table(trace, "events"), events(trace)):
            for ours, theirs in ("stack", "stack"), ("resource_stack", "transition_stack"):
                right = [(f["pc"], f["func"] or None, f["file"] or None, f["line"]) for f in event.get(theirs, [])]
                equal(frames[row[ours]] if row[ours] else [], right)


@test
def strings_are_the_texts_each_once():
    for trace in TRACES:
        rows = table(trace, "strings")
        texts = [row["text"] for row in rows]
        equal([int(row["string"]) for row in rows], list(range(1, len(rows) + 1)))
        equal(len(set(texts)), len(texts))
        used = {e[key] for e in table(trace, "events") for key in ("reason",) if e[key]}
        used |= {f[key] for f in table(trace, "frames") for key in ("function", "source") if f[key]}
        equal(used - set(texts), set())


@test
def logs_and_samples_are_events_of_their_kinds():
    for trace in TRACES:
        all_rows = table(trace, "events")
        logs = [(e["time_ns"], e["goroutine"], e["task"], e["name"], e["stack"]) for e in all_rows if e["kind"] == "Log"]
        ours = [(r["time_ns"], r["goroutine"], r["task"], r["category"], r["stack"]) for r in table(trace, "logs")]
        equal(ours, logs)
        keys = ("time_ns", "thread", "proc", "goroutine", "stack")
        samples = [tuple(e[k] for k in keys) for e in all_rows if e["kind"] == "StackSample"]
        equal([tuple(r[k] for k in keys) for r in table(trace, "samples")], samples)


# MARK: Rows against the analyses


@test
def goroutines_are_those_of_the_analysis():
    for trace in TRACES:
        right = json.loads(good("goroutines", "--json", trace))["goroutines"]
        rows = table(trace, "goroutines")
        equal(len(rows), len(right))
        for row, g in zip(rows, right):
            keys = ("creation_ns", "total_ns", "exec_ns", "sched_wait_ns", "syscall_ns", "syscall_block_ns")
            equal(tuple(int(row[k]) for k in keys), tuple(g[k] for k in keys))
            equal((int(row["goroutine"]), number(row["start_ns"]) or 0, number(row["end_ns"]) or 0),
                  (g["id"], g["start_ns"], g["end_ns"]))
            equal(int(row["block_ns"]), sum(g["block_ns"].values()))


@test
def findings_are_those_of_the_summary():
    found = replayed = 0
    for trace in (*TRACES, os.path.join(ROOT, "examples", "traces", "shop-c.trace")):
        right = json.loads(good("summary", "--json", trace))["findings"]
        rows = table(trace, "findings")
        equal([int(row["finding"]) for row in rows], list(range(len(right))))
        keys = ("kind", "text", "gain_ns", "function", "object", "goroutine", "task", "begin_ns", "end_ns", "replayed", "replayed_of", "replayed_now_ns", "replayed_then_ns")
        equal([{k: row[k] for k in keys} for row in rows], [{k: whole(of.get(k)) for k in keys} for of in right])
        notes = [row["is_note"] for row in rows]
        equal(notes, sorted(notes))
        found += len(right)
        replayed += sum("replayed" in of for of in right)
    assert found > 0 and replayed > 0


@test
def the_trace_itself_has_a_row():
    """The clock reading of everything-1.26 is at its first event, 64000: tests/data/everything-1.26.txt."""
    for trace in TRACES:
        printed, info = events(trace), json.loads(good("info", "--json", trace))
        (row,) = table(trace, "traces")
        times = [e["time_ns"] for e in printed]
        right = {"begin_ns": times[0], "end_ns": times[-1], "duration_ns": times[-1] - times[0], "events": len(times)}
        equal({key: int(row[key]) for key in right}, right, trace)
        equal((row["version"], row["made_by"]), (str(info["version"]), info.get("made_by", "Go")), trace)
        equal((row["is_damaged"], row["lost_bytes"], row["program"]), ("false", "0", None), trace)
    clocked = assembled("everything-1.26")
    (row,), (part,) = table(clocked, "traces"), table(clocked, "traces", "--from=100ns")
    equal((row["begin_ns"], row["wall_begin_ns"]), ("64000", "1700000000120000000"))
    equal(int(part["wall_begin_ns"]) - int(part["begin_ns"]), 1700000000120000000 - 64000)
    equal(table(EXAMPLES[3], "traces")[0]["wall_begin_ns"], None)
    cut = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[3], "rb") as of, open(cut, "wb") as to:
        to.write(of.read()[:-5000])
    code, out, _ = run("export", "--to=csv", "--table=traces", cut)
    (row,) = csv.DictReader(io.StringIO(out.decode()))
    assert code == 1 and row["is_damaged"] == "true", (code, row)


def columns(trace, name, wanted, *options):
    """Rows of a table as tuples of these columns, as text: fast, for large tables."""
    rows = csv.reader(io.StringIO(good("export", "--to=csv", f"--table={name}", *options, trace).decode()))
    of = operator.itemgetter(*map(next(rows).index, wanted))
    return map(of, rows)


def sums_of_states_are_those_of_goroutines(trace, *window):
    sums = collections.defaultdict(collections.Counter)  # by goroutine
    last = {}  # the end and next state of each goroutine's last row
    wanted = ("goroutine", "begin_ns", "end_ns", "duration_ns", "has_begin", "state", "next_state", "reason")
    for g, begin, end, duration, has_begin, state, next_state, reason in columns(trace, "states", wanted, *window):
        ns = int(end) - int(begin)
        assert ns >= 0 and int(duration) == ns
        if has_begin == "true" and g in last:
            equal((state, begin), last[g])
        last[g] = (next_state, end)
        sums[g][state if state != "Waiting" else (state, reason)] += ns
    goroutines = json.loads(good("goroutines", "--json", *window, trace))["goroutines"]
    equal({id for id, of in sums.items() if any(of.values())} - {str(g["id"]) for g in goroutines}, set())
    for g in goroutines:
        of = sums[str(g["id"])]
        g.update(g.get("corrected", {}))
        equal(of["Running"], g["exec_ns"])
        equal(of["Runnable"], g["sched_wait_ns"])
        equal(of["Syscall"], g["syscall_ns"] + g["syscall_block_ns"])
        equal({key[1]: ns for key, ns in of.items() if key[0] == "Waiting" and ns}, {k: v for k, v in g["block_ns"].items() if v})


def is_whole(trace):
    """Some traces are damaged on purpose."""
    return run("check", trace)[0] == 0


@test
def states_add_up_to_what_the_analysis_says():
    texts = [f.removesuffix(".txt") for f in sorted(os.listdir(os.path.join(ROOT, "tests", "data"))) if f.endswith(".txt")]
    for trace in EXAMPLES + [t for t in map(assembled, texts) if is_whole(t)]:
        sums_of_states_are_those_of_goroutines(trace)


@with_real_traces
def states_of_real_traces_add_up_to_what_the_analysis_says():
    folder = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")
    traces = [t for kind in ("go-v1/*", "go-v2-text/*.bin", "real/*.trace") for t in glob.glob(os.path.join(folder, kind))]
    traces = [t for t in some(sorted(traces), 12) if is_whole(t)]
    if not traces:
        raise Skip("no traces in ../shared/traces")
    for trace in traces:
        sums_of_states_are_those_of_goroutines(trace)


@test
def tasks_and_regions_are_those_of_the_analyses():
    for trace in TRACES:
        right, todo = {}, list(json.loads(good("tasks", "--json", trace))["tasks"])
        for task in todo:
            right[str(task["id"])] = task
            todo.extend(task.get("children", []) if isinstance((task.get("children") or [0])[0], dict) else [])
        for row in table(trace, "tasks"):
            task = right[row["task"]]
            equal((number(row["begin_ns"]) or 0, number(row["end_ns"]) or 0), (task["start_ns"], task["end_ns"]))
        regions = [r for g in json.loads(good("goroutines", "--json", trace))["goroutines"] for r in g["regions"]]
        rows = table(trace, "regions")
        equal(len(rows), len(regions))
        equal(sorted((int(r["task"]), number(r["begin_ns"]) or 0, number(r["end_ns"]) or 0, int(r["exec_ns"])) for r in rows),
              sorted((r["task"], r["start_ns"], r["end_ns"], r["exec_ns"]) for r in regions))


# MARK: By hand


@test
def states_by_hand():
    # times-1.26.txt: three goroutines; 2 wakes 1; the trace begins at 1000, and a Sync ends it at 1201.
    rows = table(HAND, "states")
    zero = min(int(r["begin_ns"]) for r in rows)
    ours = [(int(r["goroutine"]), r["state"], int(r["begin_ns"]) - zero, int(r["end_ns"]) - zero,
             r["proc"], r["waker"], r["next_state"], r["has_begin"], r["has_end"]) for r in rows]
    equal(sorted(ours), sorted([
        (1, "Running", 0, 20, "0", None, "Waiting", "false", "true"),
        (1, "Waiting", 20, 45, None, "2", "Runnable", "true", "true"),
        (1, "Runnable", 45, 75, None, None, "Running", "true", "true"),
        (1, "Running", 75, 100, "1", None, "Waiting", "true", "true"),
        (1, "Waiting", 100, 201, None, None, None, "true", "false"),
        (2, "Runnable", 10, 25, None, None, "Running", "true", "true"),
        (2, "Running", 25, 60, "0", None, "Syscall", "true", "true"),
        (2, "Syscall", 60, 80, "0", None, "Runnable", "true", "true"),
        (2, "Runnable", 80, 105, None, None, "Running", "true", "true"),
        (2, "Running", 105, 140, "1", None, "Syscall", "true", "true"),
        (2, "Syscall", 140, 201, "1", None, None, "true", "false"),
        (3, "Runnable", 58, 201, None, None, None, "true", "false"),
    ]))
    waits = [(r["reason"], r["waker_stack"] is not None) for r in rows if r["state"] == "Waiting"]
    equal(sorted(waits, key=str), [("chan receive", True), ("select", False)])


@test
def a_goroutine_that_blocks_for_ever_has_no_state_then():
    rows = [(int(r["goroutine"]), r["state"], int(r["begin_ns"]), int(r["end_ns"]), r["next_state"], r["has_end"])
            for r in table(assembled("forever-1.26"), "states")]
    equal(sorted(rows), [
        (1, "Runnable", 1070, 1100, "Running", "true"),
        (1, "Running", 1000, 1030, "Waiting", "true"),
        (1, "Running", 1100, 1130, "Waiting", "true"),
        (1, "Waiting", 1030, 1070, "Runnable", "true"),
        (2, "Runnable", 1010, 1040, "Running", "true"),
        (2, "Running", 1040, 1090, "Waiting", "true"),
        (3, "Runnable", 1110, 1150, "Running", "true"),
        (3, "Runnable", 1200, 1301, None, "false"),
        (3, "Running", 1150, 1200, "Runnable", "true"),
    ])


@test
def what_is_not_utf8_becomes_a_replacement_and_csv_quotes():
    text = open(os.path.join(ROOT, "tests", "data", "times-1.26.txt"), encoding="latin-1").read()
    row = re.search(r'data="[^"]*"', text[text.index("Strings"):]).group(0)
    text = text.replace(row, r'data="a\xff\"b\",c\n"', 1)
    path = os.path.join(WORK, "odd")
    open(path + ".txt", "w", encoding="latin-1").write(text)
    good("assemble", path + ".txt", "-o", path + ".trace")
    reasons = {e["reason"] for e in table(path + ".trace", "events") if e["reason"]}
    assert 'a\ufffd"b",c\n' in reasons, reasons


# Text, and the form in which --csv-safe writes it for spreadsheets.
COMPUTED = ["=1+1", "+SUM(1)", "-cmd|' /C calc'!A1", "@SUM(1)", "\tx", "\rx", "\nx", " =1", "=a,b", '="q"', "-", "+", "-.", "--1", "-1e", "+1 1"]
AS_IT_IS = ["-5", "+5", "-1.5e3", "-.5", "12", "a=b", "a", "x,=1", "'=1", "(-1)", "1-1", "1e", "-1."]


@test
def what_a_spreadsheet_computes_has_an_apostrophe():
    texts = COMPUTED + AS_IT_IS
    rows = "".join(f"String id={1000 + i}\n\tdata={json.dumps(t)}\n" for i, t in enumerate(texts))
    text = open(os.path.join(ROOT, "tests", "data", "everything-1.26.txt"), encoding="latin-1").read()
    at = text.index("Strings\n") + len("Strings\n")
    path = os.path.join(WORK, "=computed")
    open(path + ".txt", "w", encoding="latin-1").write(text[:at] + rows + text[at:])
    good("assemble", path + ".txt", "-o", path + ".trace")

    def strings(*options):
        code, out, err = run("export", "--to=csv", "--table=strings", *options, path + ".trace")
        assert code == 0, err
        rows = list(csv.reader(io.StringIO(out.decode(), newline="")))
        return rows[0], rows[1:]

    titles, exact = strings()
    safe_titles, safe = strings("--csv-safe", "--host=-host")
    equal(safe_titles, titles)
    column, file, host = (titles.index(name) for name in ("text", "file", "host"))
    exact_texts, safe_texts = [r[column] for r in exact], [r[column] for r in safe]
    assert set(texts) <= set(exact_texts), set(texts) - set(exact_texts)
    equal(safe_texts, ["'" + t if t in COMPUTED else t for t in exact_texts])
    equal({(r[file], r[host]) for r in safe}, {("'=computed.trace", "'-host")})
    # Numbers in tables remain numbers: negative ones, and those in columns that are not text.
    for name in "events", "states", "goroutines":
        equal(*(run("export", "--to=csv", f"--table={name}", *o, EXAMPLES[3])[1] for o in ([], ["--csv-safe"])))
    code, _, err = run("export", "--to=rowbinary", "--table=strings", "--csv-safe", HAND)
    assert code == 2 and "--csv-safe" in err, err
    if have_duckdb:
        select = ", ".join("'" + t.replace("'", "''") + f"' as c{i}" for i, t in enumerate(texts))
        out = good("sql", "--csv-safe", HAND, f'select -5 as n, -2.5::double as r, {select}, null as "=1"')
        titles, row = csv.reader(io.StringIO(out.decode(), newline=""))
        equal(row, ["-5", "-2.5", *("'" + t if t in COMPUTED else t for t in texts), ""])
        equal(titles[-1], "'=1")


# MARK: Windows

WINDOWS = [("--from=5ms", "--to=+9ms"), ("--to=4ms",), ("--from=28ms",), ("--from=4000us", "--to=4020us")]


def in_window(trace, *window):
    """The rows of events within a window, out of all."""
    rows, ns = table(trace, "events"), {"us": 10**3, "ms": 10**6}
    edges = {"from": 0, "to": 10**18}
    for option in window:
        edge, plus, value, unit = re.fullmatch(r"--(from|to)=(\+?)(\d+)(us|ms)", option).groups()
        edges[edge] = int(value) * ns[unit] + (edges["from"] if plus else 0)
    origin = int(rows[0]["time_ns"])
    return [row for row in rows if edges["from"] <= int(row["time_ns"]) - origin <= edges["to"]]


@test
def a_window_has_the_events_in_it_with_their_stacks():
    for trace in EXAMPLES:
        for window in WINDOWS:
            rows, right = table(trace, "events", *window), in_window(trace, *window)
            assert rows == right and (right or window != WINDOWS[0]), f"{trace} {window}: {len(rows)}, not {len(right)}"
            logs = [r["time_ns"] for r in right if r["kind"] == "Log"]
            equal([r["time_ns"] for r in table(trace, "logs", *window)], logs)
            stacks = {r["stack"] for r in table(trace, "stacks", *window)}
            equal({r["stack"] for r in right if r["stack"]} - stacks, set())


@test
def a_window_cuts_states_so_that_sums_are_those_inside():
    for trace in EXAMPLES:
        for window in WINDOWS:
            sums_of_states_are_those_of_goroutines(trace, *window)


@test
def states_in_a_window_by_hand():
    # The rows of states_by_hand, cut at 50 and 100.
    zero = min(int(r["begin_ns"]) for r in table(HAND, "states"))
    rows = table(HAND, "states", "--from=50ns", "--to=100ns")
    ours = [(int(r["goroutine"]), r["state"], int(r["begin_ns"]) - zero, int(r["end_ns"]) - zero, r["duration_ns"],
             r["next_state"], r["has_begin"], r["has_end"]) for r in rows]
    equal(sorted(ours), sorted([
        (1, "Runnable", 50, 75, "25", "Running", "false", "true"),
        (1, "Running", 75, 100, "25", "Waiting", "true", "true"),
        (1, "Waiting", 100, 100, "0", None, "true", "false"),
        (2, "Running", 50, 60, "10", "Syscall", "false", "true"),
        (2, "Syscall", 60, 80, "20", "Runnable", "true", "true"),
        (2, "Runnable", 80, 100, "20", None, "true", "false"),
        (3, "Runnable", 58, 100, "42", None, "true", "false"),
    ]))
    # A state that began before the window has the stack and reason with which it began.
    whole = {(r["goroutine"], r["state"], r["end_ns"]): r for r in table(HAND, "states")}
    for r in rows:
        if r["has_end"] == "true":
            right = whole[r["goroutine"], r["state"], r["end_ns"]]
            for key in "reason", "stack", "thread", "proc", "waker", "waker_stack":
                equal(r[key], right[key])


@test
def goroutines_tasks_and_regions_of_a_window_are_those_of_the_analyses():
    for trace in EXAMPLES:
        for window in WINDOWS:
            right = json.loads(good("goroutines", "--json", *window, trace))["goroutines"]
            ours = [(int(r["goroutine"]), int(r["total_ns"]), int(r["exec_ns"])) for r in table(trace, "goroutines", *window)]
            equal(ours, [(g["id"], g["total_ns"], g["exec_ns"]) for g in right])
            regions = [(r["task"], r["total_ns"]) for g in right for r in g["regions"]]
            equal([(int(r["task"]), int(r["total_ns"])) for r in table(trace, "regions", *window)], regions)
            tasks = {str(t["id"]): t["end_ns"] for t in json.loads(good("tasks", "--json", *window, trace))["tasks"]}
            rows = {r["task"]: number(r["end_ns"]) or 0 for r in table(trace, "tasks", *window) if r["parent"] is None}
            equal(rows, {id: end for id, end in tasks.items() if id in rows})


@test
def a_window_behind_the_end_is_empty_and_told():
    for name in "events", "states", "goroutines", "tasks", "regions", "logs":
        code, out, err = run("export", "--to=csv", f"--table={name}", "--from=10s", EXAMPLES[3])
        assert code == 0 and out.count(b"\n") == 1 and "no row is in that window" in err, (name, code, out, err)


@with_duckdb
def queries_and_parquet_have_windows():
    trace, window = EXAMPLES[3], WINDOWS[0]
    for name in "events", "states", "tasks":
        rows = [{k: v for k, v in row.items() if k not in COMMON} for row in table(trace, name, *window)]
        query = f"select * exclude (trace, file, host, day) from {name}"
        equal([plain(row) for row in sql(trace, query, *window)], rows)
        path = os.path.join(WORK, "window.parquet")
        good("export", "--to=parquet", f"--table={name}", *window, trace, "-o", path)
        equal([plain(row) for row in sql(HAND, f"{query.split(' from ')[0]} from '{path}'", "--allow-files")], rows)
    # Each file's window counts from its own first event.
    both = json.loads(good("sql", "--json", "--to=1ms", *EXAMPLES[2:], "select file, count(*) as n from events group by file"))
    equal({r["file"]: r["n"] for r in both}, {t: len(in_window(t, "--to=1ms")) for t in EXAMPLES[2:]})


# MARK: Files


def clickhouse_columns():
    """The types of each table's columns in RowBinary, from the schema."""
    text = good("export", "--schema=clickhouse").decode()
    for name, body in re.findall(r"CREATE TABLE IF NOT EXISTS trail\.(\w+)\n\(\n(.*?)\n\)\nENGINE", text, re.S):
        yield name, re.findall(r"^    `(\w+)` (\S+?),? --", body, re.M)


def read_rowbinary(data, columns):
    at = 0

    def take(form):
        nonlocal at
        value = struct.unpack_from(form, data, at)
        at += struct.calcsize(form)
        return value[0]

    def value(kind):
        nonlocal at
        inner = re.fullmatch(r"(?:LowCardinality|Nullable)\((.*)\)", kind)
        if inner and kind.startswith("Nullable"):
            return None if take("<B") else value(inner[1])
        if inner:
            return value(inner[1])
        if kind == "String":
            size = shift = 0
            while True:
                byte = take("<B")
                size |= (byte & 0x7F) << shift
                shift += 7
                if byte < 0x80:
                    break
            at += size
            return data[at - size : at].decode()
        return str(take({"Int64": "<q", "Int32": "<i", "UInt8": "<B", "Date": "<H"}[kind]))

    while at < len(data):
        yield [value(kind) for _, kind in columns]


@test
def rowbinary_has_the_rows_of_csv():
    schema = dict(clickhouse_columns())
    for trace in EXAMPLES[1], HAND, assembled("everything-1.26"):
        for form in "csv", "rowbinary":
            good("export", f"--to={form}", "--host=web1", "--day=1970-01-11", trace, "-o", os.path.join(WORK, form))
        equal(sorted(os.listdir(os.path.join(WORK, "rowbinary"))), sorted(f"{name}.rowbinary" for name in schema))
        for name, columns in schema.items():
            data = open(os.path.join(WORK, "rowbinary", f"{name}.rowbinary"), "rb").read()
            rows = table(trace, name, "--host=web1", "--day=1970-01-11")
            equal([key for key, _ in columns], list(rows[0]) if rows else [key for key, _ in columns])
            binary = list(read_rowbinary(data, columns))
            equal(len(binary), len(rows))
            for ours, row in zip(binary, rows):
                right = [{"true": "1", "false": "0", "1970-01-11": "10"}.get(v, v) for v in row.values()]
                equal(ours, right)


@test
def each_schema_has_each_column():
    for system in "duckdb", "clickhouse", "clickhouse-cluster", "spark", "trino":
        text = good("export", f"--schema={system}").decode()
        for name, columns in clickhouse_columns():
            assert re.search(rf"\b{name}\b", text), f"{system}: {name}"
            for column, _ in columns:
                assert re.search(rf"\b{column}\b", text), f"{system}: {column}"


@test
def systems_accept_their_schema():
    if not os.path.isdir(os.path.join(modules, "dt-sql-parser")) or not shutil.which("node"):
        raise Skip("no dt-sql-parser in TRAIL_DUCKDB, or no node")
    script = os.path.join(ROOT, "tests", "commands", "npm", "statements.mjs")
    for system, grammar in ("spark", "SparkSQL"), ("trino", "TrinoSQL"):
        schema = good("export", f"--schema={system}")
        for text, right in (schema, True), (b"CREATE TABLE a (b BIGINT COMMENT 'c''d' e);", False):
            p = subprocess.run(["node", script, modules, grammar], input=text, capture_output=True)
            assert p.returncode == 0 and (p.stdout == b"") == right, (system, p.stdout, p.stderr)



@test
def the_document_has_each_column_with_its_meaning():
    text = open(os.path.join(ROOT, "docs", "sql.md")).read()
    for name in dict(clickhouse_columns()):
        section = text[text.index(f"\n### {name}\n") :].split("\n### ")[1]
        for column, kind, meaning in re.findall(r"^  (\w+) +(\w+) +(.+)$", good("sql", f".schema {name}").decode(), re.M):
            if column not in COMMON:
                line = f"| `{column}` | {kind} | {meaning} |"
                assert line in section, f"{name}: {line}"
    for query in re.findall(r"^(@\S+)", good("sql", ".queries").decode(), re.M):
        assert f"`{query}`" in text, query
    for view, meaning in re.findall(r"^(\S+) +(.+)$", good("sql", ".tables").decode(), re.M)[len(dict(clickhouse_columns())) :]:
        assert f"| `{view}` | {meaning} |" in text, view


@test
def a_mistake_is_told_with_what_may_be_meant():
    for args, says in [
        (["export", "--to=csv", "--table=event", HAND], "did you mean 'events'"),
        (["export", "--to=csv", HAND], "-o DIR"),
        (["export", HAND, "-o", os.path.join(WORK, "x.csv")], "no table given"),
        (["export", "--to=csv", "--table=events", "--goroutine=1", HAND], "where goroutine ="),
        (["export", "--to=csv", "--table=events", "--from=2ms", "--to=1ms", HAND], "before --from"),
        (["sql", "--from=2ms", "--to=1ms", HAND, "select 1"], "before --from"),
        (["sql", "--from=2", HAND, "select 1"], "2ns counts from the first event"),
        (["sql", "--from=soon", HAND, "select 1"], "not a time"),
        (["export", "--to=csv", "--table=events", "--host=a/b", HAND], "--host"),
        (["export", "--to=csv", "--table=events", "--day=tomorrow", HAND], "--day"),
        (["export", "--to=csv", "--table=events", "--day=2026-02-31", HAND], "--day"),
        (["export", "--schema=duck"], "did you mean 'duckdb'"),
        (["sql", HAND, "@long-wait"], "did you mean '@long-waits'"),
        (["sql", ".schema event"], "did you mean 'events'"),
        (["sql"], "no trace given"),
        (["sql", "select 1", HAND], "as the last argument"),
    ]:
        code, _, err = run(*args)
        assert code == 2 and says in err, f"{args}: exit {code}: {err}"


@test
def what_there_is_to_ask_needs_no_library():
    env = {"TRAIL_DUCKDB": os.path.join(WORK, "nothing")}
    assert b"goroutines" in good("sql", ".tables", env=env)
    assert b"waker_stack" in good("sql", ".schema states", env=env)
    assert good("sql", ".schema wakes", env=env).startswith(b"wakes: wake-ups")
    equal(good("sql", ".schema", "states", env=env), good("sql", ".schema states", env=env))
    equal(good("sql", ".show", "cpu", env=env), good("sql", ".show cpu", env=env))
    assert b"@long-waits" in good("sql", ".queries", env=env)
    for query in json.loads(good("sql", "--json", ".queries", env=env)):
        assert f"@{query['name']:<14}  {query['meaning']}\n".encode() in good("sql", ".queries", env=env), query
        equal(good("sql", ".show", query["name"], env=env).decode(), query["sql"] + ";\n", query["name"])
    assert b"ORDER BY" in good("sql", ".show long-waits", env=env)
    code, _, err = run("sql", HAND, "select 1", env=env)
    assert code == 3 and "npm install" in err, f"exit {code}: {err}"


@test
def the_good_part_of_a_damaged_trace_is_in_the_tables():
    data = open(EXAMPLES[3], "rb").read()
    path = os.path.join(WORK, "cut.trace")
    open(path, "wb").write(data[: len(data) * 3 // 4])
    code, out, err = run("export", "--to=csv", "--table=events", path)
    printed_lines = run("print", "--format=jsonl", path)[1].splitlines()
    assert code == 1 and "cut.trace" in err, f"exit {code}: {err}"
    equal(len(out.splitlines()) - 1, len(printed_lines))
    if have_duckdb:
        code, out, err = run("sql", "--csv", path, "select count(*) as n from events")
        equal((code, out), (1, b"n\n%d\n" % len(printed_lines)))
        equal(err.count("\n"), 1)


# MARK: DuckDB


@with_duckdb
def queries_see_the_rows_of_csv():
    names = [name for name, _ in clickhouse_columns()]
    queries = "".join(f"select * exclude (trace, file, host, day) from {name};\n" for name in names)
    for trace in EXAMPLES[0], EXAMPLES[3], assembled("everything-1.26"):
        answers = good("sql", "--json", trace, stdin=queries.encode()).splitlines()
        equal(len(answers), len(names))
        for name, answer in zip(names, answers):
            rows = [{k: v for k, v in row.items() if k not in COMMON} for row in table(trace, name)]
            equal([plain(row) for row in json.loads(answer)], rows)


@with_duckdb
def only_columns_that_are_asked_for_are_made_and_still_right():
    for trace in EXAMPLES:
        rows = table(trace, "events")
        kinds = collections.Counter(row["kind"] for row in rows)
        answer = sql(trace, "select kind, count(*) as n from events group by kind")
        equal({row["kind"]: row["n"] for row in answer}, dict(kinds))
        equal(sql(trace, "select count(*) as n from events"), [{"n": len(rows)}])
        equal(sql(trace, "select max(reason) as r from events")[0]["r"], max(r["reason"] for r in rows if r["reason"]))


FIELDS = [
    # The message, the name of a field, and its value as integer, double and text.
    ('status=200 ms=1.5 path="/a b"', "status", (200, 200.0, "200")),
    ('status=200 ms=1.5 path="/a b"', "ms", (None, 1.5, "1.5")),
    ('status=200 ms=1.5 path="/a b"', "path", (None, None, "/a b")),
    ('status=200 ms=1.5 path="/a b"', "tatus", (None, None, None)),
    # Go's log/slog.
    ('time=2026-11-27T10:00:00.000Z level=INFO msg="hello world" user=alice n=-3', "user", (None, None, "alice")),
    ('time=2026-11-27T10:00:00.000Z level=INFO msg="hello world" user=alice n=-3', "n", (-3, -3.0, "-3")),
    # Only the field itself.
    ('text="x\\" status=5 y=" status=6', "status", (6, 6.0, "6")),
    ("hello status=5", "status", (None, None, None)),
    ('number="200"', "number", (None, None, "200")),
    ("n=12x", "n", (None, None, "12x")),
    ("n=99999999999999999999", "n", (None, 1e20, "99999999999999999999")),
    ("n= m=1", "n", (None, None, None)),
    ("a.b=1 axb=2", "axb", (2, 2.0, "2")),
    ("axb=2 a.b=1", "a.b", (1, 1.0, "1")),
    ('t="a\\\\n\\n\\"b\\""', "t", (None, None, 'a\\n\n"b"')),
    ("", "n", (None, None, None)),
]


@with_duckdb
def fields_of_logs_have_their_types():
    for message, name, right in FIELDS:
        quoted = message.replace("'", "''")
        select = ", ".join(f"{kind}_field('{quoted}', '{name}') as {kind[0]}" for kind in ("int", "double", "text"))
        for files in [HAND], [HAND, EXAMPLES[3]]:
            row = json.loads(good("sql", "--json", *files, f"select {select}"))[0]
            equal((row["i"], row["d"], row["t"]), right, f"{name} of {message}")


@with_duckdb
def stacks_have_the_same_numbers_in_all_tables():
    # The tables of one query are filled in separate passes.
    trace = EXAMPLES[3]
    frames = {(r["stack"], r["frame"]): r["function"] for r in table(trace, "frames")}
    right = collections.Counter(frames[e["stack"], "0"] for e in table(trace, "events") if e["stack"])
    answer = sql(trace, "select leaf, count(*) as n from events join stacks using (file, stack) group by leaf")
    equal({row["leaf"]: row["n"] for row in answer}, dict(right))
    equal(sql(trace, "select count(*) as n from states where stack not in (select stack from stacks)"), [{"n": 0}])


@test
def the_key_of_a_table_distinguishes_its_rows():
    keys = dict(re.findall(r"TABLE IF NOT EXISTS trail\.(\w+)\n.*?\nENGINE = \w+ PARTITION BY day ORDER BY \((.*?)\);",
                           good("export", "--schema=clickhouse").decode(), re.S))
    equal(set(keys), {name for name, _ in clickhouse_columns()})
    for trace in some(TRACES, 3):
        for window in (), ("--from=5ms", "--to=+9ms"), ("--from=20ns", "--to=+60ns"):
            for name, key in keys.items():
                of = operator.itemgetter(*key.split(", "))
                rows = [of(row) for row in table(trace, name, *window)]
                equal(len(set(rows)), len(rows), (trace, name))


# MARK: Views


def ranges_of(printed):
    """Returns (name, id, begin, end) for ranges that begin and end in the trace."""
    open_ranges, found = {}, []
    for e in printed:
        key = e.get("name"), e.get("resource"), e.get("id")
        if e["kind"] == "RangeBegin":
            open_ranges[key] = e["time_ns"]
        elif e["kind"] == "RangeEnd" and key in open_ranges:
            found.append((e["name"], e.get("id"), open_ranges.pop(key), e["time_ns"]))
    return sorted(found, key=str)


@with_duckdb
def ranges_and_counters_are_those_that_are_printed():
    seen = 0
    for trace in TRACES:
        printed = events(trace)
        rows = sql(trace, "select name, id, begin_ns, end_ns from ranges where begin_ns is not null and end_ns is not null")
        equal(sorted(((r["name"], r["id"], r["begin_ns"], r["end_ns"]) for r in rows), key=str), ranges_of(printed), trace)
        seen += len(rows)
        metrics = sorted((e["time_ns"], e["name"], e["value"]) for e in printed if e["kind"] == "Metric")
        rows = sql(trace, "select time_ns, name, value from counters")
        equal(sorted((r["time_ns"], r["name"], r["value"]) for r in rows), metrics, trace)
    assert seen > 10


@with_duckdb
def a_wake_has_the_time_until_the_woken_one_ran():
    for trace in TRACES:
        right, states = [], collections.defaultdict(list)
        for row in table(trace, "states"):
            states[row["goroutine"]].append(row)
        for of in states.values():
            of.sort(key=lambda row: int(row["begin_ns"]))
            for row, later in zip(of, [*of[1:], None]):
                if row["waker"]:
                    ready = later and {"Running": 0, "Runnable": number(later["duration_ns"]) if later["has_end"] == "true" else None}
                    right.append((number(row["end_ns"]), number(row["waker"]), number(row["goroutine"]), ready and ready.get(later["state"])))
        rows = sql(trace, "select time_ns, waker, goroutine, ready_ns from wakes")
        equal(sorted(map(tuple, (r.values() for r in rows)), key=str), sorted(right, key=str), trace)


@with_duckdb
def a_hold_has_the_length_that_was_logged():
    trace = assembled("locks-1.26")
    rows = sql(trace, "select end_ns, goroutine, object, held_ns, is_coarse from holds order by end_ns")
    units = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    right = []
    for e in events(trace):
        if e.get("type") == "UserLog" and e["category"] == "held":
            object, about, length, unit = re.fullmatch(r"(.*) (~?)([\d.]+)(ns|us|ms|s)", e["message"]).groups()
            ns = round(float(length) * units[unit])
            right.append({"end_ns": e["time_ns"], "goroutine": e["g"], "object": object, "held_ns": ns, "is_coarse": bool(about)})
    equal(rows, right)
    assert right
    # Another goroutine may have taken the lock: its number is in the block of the one that wrote the log.
    with open(os.path.join(ROOT, "tests", "data", "locks-1.26.txt"), encoding="utf-8") as file:
        source = file.read()
    text = re.sub(r'(data="mutex [^"]* ~?[0-9.]+(?:ns|us|ms|s))"', r'\1 by 77"', source)
    taken = assembled_text("taken", text)
    equal({row["goroutine"] for row in sql(taken, "select distinct goroutine from holds where object like 'mutex %'")}, {77})
    merged = os.path.join(WORK, "taken-merged.trace")
    subprocess.run([TRAIL, "merge", trace, taken, "-o", merged], check=True)
    found = {row["goroutine"] for row in sql(merged, "select distinct goroutine from holds where object like 'mutex %'")}
    assert any(g % 10**9 == 77 and g > 10**9 for g in found), found


@with_duckdb
def queries_for_perfetto_run_unchanged():
    for trace in EXAMPLES:
        states = table(trace, "states")
        letters = {"Runnable": "R", "Waiting": "S", "Syscall": "D", "Running": "Running"}
        right = collections.Counter()
        for row in states:
            right[letters[row["state"]]] += int(row["duration_ns"]) if row["has_end"] == "true" else 0
        rows = sql(trace, "select state, sum(dur) filter (dur != -1) as ns from thread_state group by state")
        equal({r["state"]: r["ns"] or 0 for r in rows}, {k: n for k, n in right.items() if k in {r["state"] for r in rows}})
        equal(sql(trace, "select count(*) as n from sched join thread using (utid, file)"), [{"n": sum(r["state"] == "Running" for r in states)}])
        slices = len([r for name in ("regions", "tasks") for r in table(trace, name) if r["begin_ns"]])
        equal(sql(trace, "select count(*) as n from slice where category != 'range'"), [{"n": slices}])
        # As in Perfetto's documentation: slices by thread, and of the process, and a counter by the name of its track.
        of_threads = sql(trace, "select slice.name, thread.name as thread, dur from slice join thread_track on slice.track_id = thread_track.id "
                                "join thread using (utid) where category = 'region'")  # fmt: skip
        names = {row["goroutine"]: row["name"] or None for row in table(trace, "goroutines")}
        right = [(row["name"] or None, names[row["goroutine"]]) for row in table(trace, "regions") if row["begin_ns"]]
        equal(collections.Counter((row["name"], row["thread"]) for row in of_threads), collections.Counter(right))
        of_tasks = sql(trace, "select slice.name from slice join process_track t on track_id = t.id where type = 'task'")
        equal(sorted(row["name"] for row in of_tasks), sorted(row["name"] for row in table(trace, "tasks") if row["begin_ns"]))
        assert names and right, trace
        heap = sql(trace, "select ts, value from counter join counter_track t on track_id = t.id where t.name like '%heap/objects%' order by ts")
        metrics = [e for e in events(trace) if e["kind"] == "Metric" and "heap/objects" in e["name"]]
        equal([(row["ts"], row["value"]) for row in heap], [(int(e["time_ns"]), int(e["value"])) for e in metrics])


# Threads of the recorded program, and of one that it started.
PROCESSES = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=1000 sec=1700000000 nsec=5
EventBatch gen=1 m=70 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatusStack dt=0 g=1 m=70 gstatus=2 stack=1
GoCreate dt=5 new_g=2 new_stack=2 stack=1
GoCreate dt=5 new_g=3 new_stack=3 stack=1
GoDestroy dt=10
ProcStop dt=5
EventBatch gen=1 m=4711 time=1030 size=auto
ProcStart dt=5 p=0 p_seq=1
GoStart dt=5 g=2 g_seq=1
GoDestroy dt=100
ProcStop dt=5
EventBatch gen=1 m=4712 time=1150 size=auto
ProcStart dt=5 p=0 p_seq=2
GoStart dt=5 g=3 g_seq=1
GoDestroy dt=300
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Stacks
Stack id=1 nframes=1
	pc=4096 func=1 file=4 line=0
Stack id=2 nframes=1
	pc=4097 func=2 file=4 line=0
Stack id=3 nframes=1
	pc=4098 func=3 file=4 line=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="main"
String id=2
	data="sort (4711): main"
String id=3
	data="sort (4711): merge (1)"
String id=4
	data=""
String id=5
	data="trail.made by=record"
EndOfGeneration
"""


@with_duckdb
def threads_of_recordings_belong_to_processes():
    path, text = os.path.join(WORK, "processes.trace"), os.path.join(WORK, "processes.txt")
    with open(text, "w") as file:
        file.write(PROCESSES)
    good("assemble", text, "-o", path)
    rows = sql(path, "select pid, name, threads, exec_ns from processes order by pid")
    equal([tuple(row.values()) for row in rows], [(70, None, 1, 20), (4711, "sort", 2, 400)])
    threads = "select tid, pid, thread.name, process.name as process from thread join process using (upid) order by tid"
    right = [(70, 70, "main", path), (4711, 4711, "main", "sort"), (4712, 4711, "merge (1)", "sort")]
    equal([tuple(row.values()) for row in sql(path, threads)], right)
    # In a Go program no process is derived from names. With two traces, a join by Perfetto's
    # numbers stays within each trace.
    both = over_both(threads.replace("order by tid", "") + ";", [path, HAND])[0]
    equal(len(both), 3 + len(table(HAND, "goroutines")))
    equal({row["process"] for row in both if row["pid"] is None}, {HAND})
    states = "select count(*) as n, count(distinct s.file) as files from thread_state s join thread t using (utid) where s.file = t.file"
    everything = "select count(*) as n from thread_state join thread using (utid)"
    (counted,), (all_of,) = over_both(f"{states}; {everything};", [path, HAND])
    equal(counted["n"], all_of["n"])
    equal(counted["n"], len(table(path, "states")) + len(table(HAND, "states")))


# MARK: Several files

TWO = [EXAMPLES[3], HAND]
# Of C programs.
RECORDED = [os.path.join(ROOT, "examples", "traces", name) for name in ("shop-c.trace", "shop-c-stuck.trace")]


def over_both(query, traces=None):
    return sql_lines(good("sql", "--json", *(traces or TWO), stdin=query.encode()))


def sql_lines(out):
    return [json.loads(line) for line in out.splitlines()]


def in_any_order(rows):
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@with_duckdb
def several_files_are_told_apart():
    answer = json.loads(good("sql", "--json", *EXAMPLES, "select file, count(*) as n from events group by file"))
    equal({row["file"]: row["n"] for row in answer}, {trace: len(events(trace)) for trace in EXAMPLES})


@with_duckdb
def each_table_over_two_files_has_the_rows_of_both():
    queries = "".join(f"select * from {name};\n" for name, _ in clickhouse_columns())
    each = [sql_lines(good("sql", "--json", trace, stdin=queries.encode())) for trace in TWO]
    for both, first, second in zip(over_both(queries), *each):
        equal(in_any_order(both), in_any_order(first + second))


# The views of Perfetto that have numbers of tracks: those of goroutines times 4.
TRACKS = ("_track", "slice", "counter")


def views():
    return [name for name in re.findall(r"^(\S+)", good("sql", ".tables").decode(), re.M) if name not in dict(clickhouse_columns())]


@with_duckdb
def each_view_over_two_files_has_the_rows_of_both():
    views_have_the_rows_of_both([name for name in views() if name != "holds"], TWO)
    views_have_the_rows_of_both(["holds"], RECORDED)


def views_have_the_rows_of_both(names, traces):
    queries = "".join(f"select * from {name};\n" for name in names)
    each = [sql_lines(good("sql", "--json", trace, stdin=queries.encode())) for trace in traces]
    for name, both, first, second in zip(names, over_both(queries, traces), *each):
        assert first and second or traces is TWO and (first or second), name
        # Joins by Perfetto's numbers do not include the file: the second file has different numbers.
        for row in second:
            row.update({key: row[key] + (1 << 40) for key in ("utid", "upid", "waker_utid") if row.get(key) is not None})
            row.update({key: row[key] + (1 << 42) for key in ("id", "track_id") if name.endswith(TRACKS) and row.get(key) is not None})
        equal(in_any_order(both), in_any_order(first + second), name)


@with_duckdb
def each_function_over_two_files_is_of_the_file_or_refused():
    calls = {"stack": ("stack", "stacks"), "path": ("stack", "stacks"), "since_start": ("time_ns", "events"), "wall_ns": ("time_ns", "events")}
    query = "select function_name as name from duckdb_functions() where function_type = 'macro' and not internal"
    used = " -- " + ", ".join(calls)
    # Fields belong to a message, in any trace.
    of_messages = {"int_field", "double_field", "text_field", "trail_raw"}
    equal({row["name"] for row in sql(HAND, query + used)}, {*calls, *of_messages, "trail_of"})
    for name, (column, rows) in calls.items():
        code, out, err = run("sql", *TWO, f"select {name}({column}) from {rows}")
        assert code == 2 and not out and f"{name}({'time_ns' if column == 'time_ns' else 'number'}, file)" in err, (out, err)
        # The column alone, from any alias, and within an expression: an alias of the function must not hide it.
        right = sum((sql(trace, f"select file, {column} as c, {name}({column}) as f from {rows}") for trace in TWO), [])
        assert len({row["f"] for row in right}) > 10, right
        for alias in "k", "b", "f", "trail":
            query = f"select file, {column} as c, {name}({alias}.{column} + 0, {alias}.file) as f from {rows} {alias}"
            equal(in_any_order(over_both(query)[0]), in_any_order(right))
        query = f"select file, {column} as c, {name}({column}, file) as f from {rows}"
        equal(in_any_order(over_both(query)[0]), in_any_order(right))


@with_duckdb
def each_query_with_a_name_over_two_files_has_the_rows_of_both():
    names = re.findall(r"^@(\S+)", good("sql", ".queries").decode(), re.M)
    queries = "".join(f"@{name}\n" for name in names)
    each = [sql_lines(good("sql", "--json", trace, stdin=queries.encode())) for trace in TWO]
    for name, both, *of_one in zip(names, over_both(queries), *each):
        equal({row["file"] for row in both} - set(TWO), set(), name)
        limit = re.search(r"LIMIT (\d+)\b", good("sql", ".show", name).decode())
        right = in_any_order(of_one[0] + of_one[1])
        if limit and len(right) > int(limit[1]):
            equal(len(both), int(limit[1]), name)
            equal(set(in_any_order(both)) - set(right), set(), name)
        else:
            equal(in_any_order(both), right, name)


@with_duckdb
def files_that_are_no_traces_are_reported_and_the_others_asked():
    empty, text = os.path.join(WORK, "empty.trace"), os.path.join(WORK, "no.trace")
    open(empty, "w").close()
    with open(text, "w") as file:
        file.write("no trace")
    query = "select file, count(*) as n from events group by file"
    code, out, err = run("sql", "--json", empty, TWO[0], os.path.join(WORK, "none.trace"), TWO[1], text, query)
    equal({row["file"]: row["n"] for row in json.loads(out)}, {trace: len(events(trace)) for trace in TWO})
    assert code == 3 and all(name in err for name in ("empty.trace", "none.trace", "no.trace")) and err.count("\n") == 3, (code, err)
    code, out, err = run("sql", "--json", empty, TWO[0], query)
    assert code == 1 and len(json.loads(out)) == 1, (code, err)
    code, out, err = run("sql", "--json", empty, text, query)
    assert code == 1 and not out and err.count("\n") == 2, (code, out, err)


@with_duckdb
def a_file_that_is_there_twice_is_told():
    code, out, err = run("sql", HAND, HAND, "select count(*) from events")
    assert code == 2 and not out and "is given twice" in err, (code, out, err)
    copy = shutil.copy(HAND, os.path.join(WORK, "copy.trace"))
    code, out, err = run("sql", "--json", HAND, copy, "select trace, count(*) as n from events group by trace")
    assert code == 2 and "the same trace as" in err and err.count("\n") == 1, (code, err)
    equal([row["n"] for row in json.loads(out)], [len(events(HAND))])


@with_duckdb
def every_query_with_a_name_answers():
    names = re.findall(r"^@(\S+)", good("sql", ".queries").decode(), re.M)
    assert len(names) >= 20, names
    answers = collections.Counter()
    for trace in EXAMPLES[1], EXAMPLES[3], assembled("everything-1.26"), os.path.join(ROOT, "examples", "traces", "shop-c.trace"):
        lines = good("sql", "--json", trace, stdin="".join(f"@{name}\n" for name in names).encode()).splitlines()
        equal(len(lines), len(names))
        for name, line in zip(names, lines):
            answers[name] += len(json.loads(line))
    equal([name for name in names if not answers[name]], [])


def chain(count):
    """A trace of this many goroutines, each woken by the previous one, as in a pipeline."""
    lines = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=5 gstatus=2
""".splitlines()
    lines += [f"GoStatus dt=1 g={i} m=18446744073709551615 gstatus=4" for i in range(2, count + 1)]
    for i in range(1, count):
        lines += [f"GoUnblock dt=1 g={i + 1} g_seq=1 stack=0", "GoBlock dt=1 reason_string=0 stack=0",
                  f"GoStart dt=1 g={i + 1} g_seq=2"]
    lines += ["EndOfGeneration", ""]
    return assembled_text(f"chain-{count}", "\n".join(lines))


@with_duckdb
def no_query_with_a_name_grows_faster_than_its_trace():
    names = re.findall(r"^@(\S+)", good("sql", ".queries").decode(), re.M)
    traces = [chain(250), chain(1000)]
    for name in names:
        query = good("sql", ".show", name).decode().strip().rstrip(";")
        rows = []
        for path in traces:
            (plan,) = sql(path, f"explain (analyze, format json) {query}")
            rows.append(json.loads(plan["explain_value"])["cumulative_cardinality"])
        assert rows[1] <= 4 * rows[0] + 200, (name, rows)


@with_duckdb
def the_longest_are_found_without_holding_all_states():
    """A memory limit of 40 MB is too little for a join of 700,000 states."""
    path = os.path.join(WORK, "chains.trace")
    copies = [f"{i}={chain(2000)}" for i in range(60)]
    good("merge", "--align=start", *copies, "-o", path)
    for name in ("@long-waits", "@sched-latency"):
        equal(len(sql(path, name, "--memory-limit=40M", "--threads=1")), 20)


@with_duckdb
def the_longest_latencies_are_those_of_the_states():
    trace = EXAMPLES[3]
    states = table(trace, "states")
    ready = [r for r in states if r["state"] == "Runnable" and r["has_end"] == "true"]
    ready.sort(key=lambda r: (-int(r["duration_ns"]), int(r["begin_ns"])))
    wakers = {(r["goroutine"], r["end_ns"]): r["waker"] for r in states if r["state"] == "Waiting"}
    right = [(int(r["goroutine"]), int(r["duration_ns"]), wakers.get((r["goroutine"], r["begin_ns"]))) for r in ready[:20]]
    assert any(waker for _, _, waker in right), right
    ours = [(r["goroutine"], r["duration_ns"], r["waker"]) for r in sql(trace, "@sched-latency")]
    equal(ours, [(g, ns, int(waker) if waker else None) for g, ns, waker in right])


@with_duckdb
def the_longest_waits_are_those_of_the_states():
    trace = EXAMPLES[3]
    waits = [r for r in table(trace, "states") if r["state"] == "Waiting" and r["has_end"] == "true"]
    waits.sort(key=lambda r: (-int(r["duration_ns"]), int(r["begin_ns"])))
    ours = [(r["goroutine"], r["duration_ns"], r["reason"]) for r in sql(trace, "@long-waits")]
    equal(ours, [(int(r["goroutine"]), int(r["duration_ns"]), r["reason"]) for r in waits[:20]])


@with_duckdb
def times_of_queries_are_taken_by_from_and_to():
    for trace in EXAMPLES[0], EXAMPLES[3]:
        for row in sql(trace, "@long-waits")[:5]:
            ends = f"--from={row['since_start']}", f"--to=+{row['duration_ns']}ns"
            query = f"select count(*) as n from events where id = {row['goroutine']} and resource = 'goroutine'"
            # The events at both ends: one begins the wait, one ends it.
            assert sql(trace, query + " and 'Waiting' in (from_state, to_state)", *ends)[0]["n"] == 2, row
    # Each trace has its own start.
    query = "select distinct file, since_start(min(time_ns), file) as first from events group by file"
    answer = json.loads(good("sql", "--json", *EXAMPLES, query))
    equal([row["first"] for row in answer], ["0ns"] * len(EXAMPLES))


@with_duckdb
def macros_make_texts_of_stacks():
    trace = EXAMPLES[3]
    frames = table(trace, "frames")
    for row in sql(trace, "select stack, stack(stack) as inner_first, path(stack, file) as outer_first from stacks limit 50"):
        names = [f["function"] or "?" for f in frames if int(f["stack"]) == row["stack"]]
        equal(row["inner_first"], " < ".join(names))
        equal(row["outer_first"], ";".join(reversed(names)))
    equal(sql(trace, "select stack(null) as s"), [{"s": None}])


@with_duckdb
def values_of_all_kinds_are_shown():
    query = """select 9007199254740993 as big, 1.50::decimal(4, 2) as d, [1, 2] as list, NULL as none, true as t,
        'a"b,c' as "te""xt", 170141183460469231731687303715884105727::hugeint as huge, 0.1::double as r,
        -5::tinyint as small, date '2026-01-02' as day, 'Running'::varchar as w"""
    equal(sql(HAND, query), [{
        "big": "9007199254740993", "d": 1.5, "list": [1, 2], "none": None, "t": True, 'te"xt': 'a"b,c',
        "huge": "170141183460469231731687303715884105727", "r": 0.1, "small": -5, "day": "2026-01-02", "w": "Running",
    }])
    for huge in (-(2**127), -(2**64), -(2**64) - 1, 2**64, -(10**20)):
        equal(sql(HAND, f"select ({huge})::hugeint as huge"), [{"huge": str(huge)}])
    equal(sql(HAND, "select (-7)::hugeint as huge"), [{"huge": -7}])
    query = """select {'a': 1, 'b': ['x"N', 'NaN', null]} as struct, map {1: true} as map, [1, 2]::int[2] as array,
        ['nan'::double, '-inf'::double, 0.5] as reals, [date '2026-01-02'] as days"""
    equal(sql(HAND, query), [{
        "struct": {"a": 1, "b": ['x"N', "NaN", None]}, "map": {"1": True}, "array": [1, 2],
        "reals": ["NaN", "-Infinity", 0.5], "days": ["2026-01-02"],
    }])
    equal(good("sql", "--csv", HAND, "select [1, 2] as list"), b'list\n"[1, 2]"\n')
    equal(good("sql", "--csv", HAND, "select 'a\"b,c' as x, NULL as y, '' as z"), b'x,y,z\n"a""b,c",,""\n')
    equal(good("sql", HAND, "select 'ab' as x, 12 as number; select 3 as y"), b"x   number\nab      12\ny\n3\n")


@with_duckdb
def several_statements_have_the_result_of_the_last():
    statements = "create temp table t as select 1 as a; insert into t values (2); select 'no; end'; from t order by a"
    equal(sql(HAND, statements), [{"a": 1}, {"a": 2}])
    equal(good("sql", "--csv", HAND, statements + ";\n-- the end"), b"a\n1\n2\n")
    # Which is no option, for a space follows.
    equal(good("sql", "--csv", HAND, "-- the begin\n" + statements), b"a\n1\n2\n")
    code, out, err = run("sql", "--json", HAND, "selec 1; select 2 as b")
    assert code == 2 and json.loads(out) == [{"b": 2}] and "selec" in err, (code, out, err)


@with_duckdb
def statements_that_duckdb_makes_several_of_are_run():
    query = "pivot (select goroutine, state::varchar as state from states) on state using count(*) group by goroutine"
    ours = {row.pop("goroutine"): row for row in sql(HAND, query)}
    for goroutine, row in ours.items():
        states = [s["state"] for s in table(HAND, "states") if int(s["goroutine"]) == goroutine]
        equal({k: n for k, n in row.items() if n}, dict(collections.Counter(states)))
    equal(sorted(ours), [1, 2, 3])


@with_duckdb
def plans_are_printed():
    plan = good("sql", HAND, "explain select kind, count(*) from events group by kind").decode()
    assert "TRAIL_EVENTS" in plan and "GROUP_BY" in plan and plan.count("\n") > 10, plan
    (row,) = sql(HAND, "explain analyze select count(*) from events")
    assert row["explain_key"] == "analyzed_plan" and "TRAIL_EVENTS" in row["explain_value"], row


@with_duckdb
def queries_reach_nothing_but_the_traces():
    for query in [
        "select * from read_csv('/etc/passwd')",
        f"copy (select 1) to '{WORK}/written'",
        "set enable_external_access = true",
        "install httpfs",
        f"attach '{WORK}/other.db'",
    ]:
        code, out, err = run("sql", HAND, query)
        assert code == 2 and not out, f"{query}: exit {code}: {err}"
    assert not os.path.exists(os.path.join(WORK, "written"))
    good("sql", "--allow-files", HAND, f"copy (select 1) to '{WORK}/written'")
    assert os.path.exists(os.path.join(WORK, "written"))


@with_duckdb
def queries_come_from_stdin_too():
    text = b"select count(*) as n\n  from goroutines; -- two; lines\n.tables\nselect ';' as x"
    out = good("sql", "--csv", HAND, stdin=text)
    assert out.startswith(b"n\n3\n") and b"what happened" in out and out.endswith(b"x\n;\n"), out


@with_duckdb
def memory_has_a_limit():
    query = "select count(*) from (select distinct a.range, b.range from range(3000) a, range(3000) b)"
    code, _, err = run("sql", "--memory-limit=30M", HAND, query)
    assert code == 2 and "needs more memory" in err, f"exit {code}: {err}"
    # Settings are locked: an option is needed.
    assert "--spill=DIR" in err and "--memory-limit" in err and "SET " not in err, err
    good("sql", "--memory-limit=60M", f"--spill={WORK}/spill", HAND, "select count(*) from events")


@with_duckdb
def parquet_has_the_rows_of_csv():
    trace, folder = EXAMPLES[3], os.path.join(WORK, "parquet")
    good("export", "--to=parquet", "--host=web1", "--day=2026-11-22", trace, "-o", folder)
    files = {}
    for name, _ in clickhouse_columns():
        day = os.path.join(folder, name, "host=web1", "day=2026-11-22")
        (file,) = os.listdir(day)
        assert re.fullmatch(re.escape(os.path.basename(trace)) + r"-[0-9a-f]{16}\.parquet", file), file
        files[name] = os.path.join(day, file)
    queries = "".join(
        f"select * from read_parquet('{folder}/{name}/*/*/*.parquet', hive_partitioning = true);\n" for name in files
    )
    answers = good("sql", "--allow-files", "--json", HAND, stdin=queries.encode()).splitlines()
    for name, answer in zip(files, answers):
        # DuckDB puts the columns of folders last, sorted by name.
        rows = [{**row, "host": row.pop("host"), "day": row.pop("day")} for row in json.loads(answer)]
        equal([plain(row) for row in rows], table(trace, name, "--host=web1", "--day=2026-11-22"))
    if not have_hyparquet:
        raise Skip("no hyparquet beside libduckdb.so, or no node: Parquet was read by DuckDB only")
    script = os.path.join(ROOT, "tests", "commands", "npm", "rows.mjs")
    p = subprocess.run(["node", script, modules, *files.values()], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr
    read, rows = {}, None
    for line in p.stdout.splitlines():
        value = json.loads(line)
        if isinstance(value, str):
            rows = read.setdefault(value, [])
        else:
            rows.append(plain(value))
    for name, path in files.items():
        right = [{k: v for k, v in row.items() if k not in ("host", "day")} for row in table(trace, name, "--host=web1")]
        equal(read[path], right)


@with_duckdb
def traces_of_one_name_do_not_replace_each_other():
    folder = os.path.join(WORK, "names")
    traces = []
    for i, trace in enumerate(EXAMPLES[2:4]):
        os.makedirs(os.path.join(WORK, str(i)))
        traces.append(shutil.copy(trace, os.path.join(WORK, str(i), "app.trace")))

    def put(trace, stdin=None):
        good("export", "--to=parquet", "--host=h", "--day=2026-11-22", trace, "-o", folder, stdin=stdin)
        query = f"select trace, file, count(*) as n from read_parquet('{folder}/events/*/*/*.parquet') group by all"
        rows = json.loads(good("sql", "--allow-files", "--json", HAND, query))
        equal(len({row["trace"] for row in rows}), len({tuple(row.values()) for row in rows if row["file"] == "app.trace"}))
        return {row["trace"] for row in rows}

    first = put(traces[0])
    both = put(traces[1])
    assert len(first) == 1 and len(both) == 2 and first < both, (first, both)
    # The same trace from another path, from stdin, or compressed is not a different trace.
    again = shutil.copy(traces[0], os.path.join(WORK, "app.trace"))
    equal(put(again), both)
    with open(again, "rb") as file:
        content = file.read()
    equal(put("-", stdin=content), both)
    with gzip.open(again + ".gz", "wb") as file:
        file.write(content)
    equal(put(again + ".gz"), both)
    equal(ids_in_tables(again + ".gz", "--host=h"), first)
    assert not ids_in_tables(again, "--host=other") & both


def ids_in_tables(trace, *options):
    """The trace IDs in the tables, from CSV and from queries."""
    ids = {row["trace"] for name, _ in clickhouse_columns() for row in table(trace, name, *options)}
    queries = " union ".join(f"select trace from {name}" for name, _ in clickhouse_columns())
    equal({row["trace"] for row in sql(trace, queries, *options)}, ids)
    return ids


@with_duckdb
def the_schema_for_duckdb_reads_the_folders():
    folder = os.path.join(WORK, "fleet")
    for host, trace in ("a", EXAMPLES[2]), ("b", EXAMPLES[3]):
        good("export", "--to=parquet", f"--host={host}", trace, "-o", os.path.join(folder, "traces"))
    schema = good("export", "--schema=duckdb").decode().replace("'traces/", f"'{folder}/traces/")
    # The views of trail sql have the same names, so these get another schema.
    views = re.sub(r"OR REPLACE VIEW ", "OR REPLACE VIEW fleet.", schema)
    query = "create schema fleet;" + views + "select host, count(*) as n from fleet.events group by host order by host"
    out = good("sql", "--allow-files", "--csv", HAND, query)
    equal(out, b"host,n\na,%d\nb,%d\n" % (len(events(EXAMPLES[2])), len(events(EXAMPLES[3]))))


@with_duckdb
def a_parquet_file_is_whole_or_not_there():
    path = os.path.join(WORK, "nowhere", "x.parquet")
    code, _, err = run("export", "--to=parquet", "--table=events", HAND, "-o", path)
    assert code == 3 and err, f"exit {code}: {err}"
    good("export", "--to=parquet", "--table=events", HAND, "-o", os.path.join(WORK, "one.parquet"))
    equal([name for name in os.listdir(WORK) if name.startswith("one.")], ["one.parquet"])


@with_duckdb
def what_a_killed_export_leaves_is_hidden():
    """Readers of Parquet folders ignore names that begin with a dot; other names belong to complete files."""
    folder = os.path.join(WORK, "killed")

    def files():
        return [name for _, _, names in os.walk(folder) for name in names]

    killed = subprocess.run([TRAIL, "export", "--to=parquet", EXAMPLES[3], "-o", folder], preexec_fn=die_at_rename)
    equal(killed.returncode, -signal.SIGSYS)
    assert files() and all(name.startswith(".") for name in files()), files()


# MARK: The cache


def cached(folder, *args, **more):
    return run("sql", "--cache", *args, env={"XDG_CACHE_HOME": os.path.join(WORK, folder)}, **more)


def reads_the_cache(folder, *args):
    """Whether DuckDB's plan of a query, the last argument, reads no trace."""
    code, out, err = cached(folder, "--csv", *args[:-1], "explain " + args[-1])
    equal((code, err), (0, ""))
    return b"TRAIL_" not in out


@with_duckdb
def a_query_with_the_cache_answers_as_without():
    both = EXAMPLES[3], HAND
    names = [name for name, _ in clickhouse_columns()] + views()
    queries = [f"select * from {name} order by all" for name in names]
    queries += ["select stack(stack, file), path(stack, file), wall_ns(begin_ns, file) as wall from states order by all"]
    without = run("sql", *both, "; ".join(queries))
    assert without[0] == 0, without[2]
    equal(cached("both", *both, "; ".join(queries)), without)
    equal(cached("both", *both, "; ".join(queries)), without)
    assert reads_the_cache("both", *both, "select 1 from " + ", ".join(names))
    equal(cached("both", "--csv", *both, stdin=b"select count(*) as n from events;"), run("sql", "--csv", *both, "select count(*) as n from events"))
    equal(os.stat(os.path.join(WORK, "both", "trail", "sql")).st_mode & 0o777, 0o700)


@with_duckdb
def the_cache_goes_by_what_is_in_a_file():
    path, query = os.path.join(WORK, "changing.trace"), "select count(*) as n from events"
    for trace in EXAMPLES[3], HAND:
        shutil.copy(trace, path)
        for options in [], ["--to=1us"], []:
            equal(cached("changing", *options, path, query), run("sql", *options, path, query))
    equal(len(os.listdir(os.path.join(WORK, "changing", "trail", "sql"))), 4)


@with_duckdb
def a_damaged_trace_is_reported_each_time():
    path, query = os.path.join(WORK, "cut.trace"), "select count(*) as n from events"
    data = open(EXAMPLES[3], "rb").read()
    open(path, "wb").write(data[: len(data) * 3 // 4])
    without = run("sql", path, query)
    assert without[0] == 1 and without[2], without
    for _ in range(2):
        equal(cached("damaged", path, query), without)


@with_duckdb
def a_cache_that_cannot_be_written_is_not_used():
    """A folder has the name of a table's file."""
    folder, query = os.path.join(WORK, "occupied", "trail", "sql"), "select (select count(*) from events), count(*) from states"
    cached("occupied", HAND, "select count(*) from events")
    (name,) = os.listdir(folder)
    os.mkdir(os.path.join(folder, name.replace("events", "states")))
    code, out, err = cached("occupied", HAND, query)
    equal((code, out), run("sql", HAND, query)[:2])
    assert "reading the traces instead" in err, err


@with_duckdb
def a_damaged_file_of_the_cache_is_written_anew():
    folder, query = os.path.join(WORK, "torn", "trail", "sql"), "select count(*) from events"
    sizes = []
    for _ in range(2):
        equal(cached("torn", HAND, query), run("sql", HAND, query))
        (name,) = os.listdir(folder)
        data = open(os.path.join(folder, name), "rb").read()
        sizes.append(len(data))
        os.chmod(os.path.join(folder, name), 0o600)
        open(os.path.join(folder, name), "wb").write(data[: len(data) // 2])
    equal(sizes[0], sizes[1])


@with_duckdb
def what_was_not_asked_for_a_month_goes():
    folder, query = os.path.join(WORK, "old", "trail", "sql"), "select count(*) as n from events"
    cached("old", HAND, query)
    (name,) = os.listdir(folder)
    os.utime(os.path.join(folder, name), (1, 1))
    cached("old", HAND, query)
    equal(os.listdir(folder), [name])
    os.utime(os.path.join(folder, name), (1, 1))
    cached("old", EXAMPLES[3], query)
    assert name not in os.listdir(folder) and len(os.listdir(folder)) == 1, os.listdir(folder)


@with_duckdb
def queries_with_the_cache_reach_nothing_else():
    for query in f"select * from read_text('{HAND}')", "set allowed_paths = []", "set enable_external_access = true":
        code, out, err = cached("reach", HAND, f"select count(*) from events; {query}")
        assert code == 2 and err, (query, code, out, err)
    (name,) = os.listdir(os.path.join(WORK, "reach", "trail", "sql"))
    targets = ["x.parquet", name.replace("events", r"\x67oroutines")]  # as E'': the name of a table that is not used
    targets += [name] if os.geteuid() != 0 else []  # root may write to any file
    for fd in range(3, 10):
        for to in targets:
            code, _, err = cached("reach", HAND, f"copy (from events) to E'/proc/self/fd/{fd}/{to}' (use_tmp_file false)")
            assert code == 2 and err, (fd, to, code, err)
    equal(os.stat(os.path.join(WORK, "reach", "trail", "sql", name)).st_mode & 0o777, 0o400)
    code, _, err = cached("reach", "--binary=/bin/true", HAND, "select 1")
    assert code == 2 and "--binary" in err, err
    code, _, err = run("sql", "--cache", HAND, "select 1", env={"XDG_CACHE_HOME": "/dev/null/x"})
    assert code == 3 and "/dev/null" in err, err
    if os.geteuid() == 0:
        folder = os.path.join(WORK, "foreign", "trail", "sql")
        os.makedirs(folder)
        os.chown(folder, 65534, 65534)
        code, _, err = cached("foreign", HAND, "select 1")
        assert code == 3 and "another user" in err and not os.listdir(folder), err


def run_part(part):
    if part == "sql" and not have_duckdb:
        print("1..0 # SKIP no libduckdb.so")
        return False
    if part in parts:
        tests[:] = parts[part]
    return main()


if __name__ == "__main__":
    sys.exit(run_part(sys.argv[3]))
