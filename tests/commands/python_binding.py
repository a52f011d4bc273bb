#!/usr/bin/env python3
"""bindings/python: its tables, against those that the command exports; errors; the example. TAP.

usage: python_binding.py TRAIL SOURCE_ROOT LIBRARY SANITIZERS
"""

import csv
import gzip
import io
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, equal, good, good_text, run, trace as assembled  # noqa: E402
from tap import main, test  # noqa: E402

LIBRARY, SANITIZERS = os.path.abspath(sys.argv[3]), sys.argv[4]
BINDING = os.path.join(ROOT, "bindings", "python")
RECORDED = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
COMMON = ("trace", "file", "host", "day")


def cell(value):
    """A value as it is in CSV."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def exported(trace, table, *options):
    rows = csv.DictReader(io.StringIO(good_text("export", "--to=csv", f"--table={table}", *options, trace), newline=""))
    return [{name: text for name, text in row.items() if name not in COMMON} for row in rows]


def same(trace, table, rows, *options):
    equal([{name: cell(value) for name, value in row.items()} for row in rows], exported(trace, table, *options), (trace, table))


@test
def all_tables_are_those_of_the_command():
    names = re.findall(r"VIEW (\w+) AS", good_text("export", "--schema=duckdb"))
    equal(list(binding.tables()), names)
    for trace in (RECORDED, EXAMPLES[0], assembled("everything-1.26"), assembled("everything-1.21")):
        opened = binding.open(trace)
        equal(opened.version, json.loads(good("info", "--json", trace))["version"])
        for table, columns in binding.tables().items():
            same(trace, table, opened.rows(table))
            whole = opened.columns(table)
            equal(list(whole), list(columns))
            equal([dict(zip(whole, row)) for row in zip(*whole.values())], list(opened.rows(table)))


@test
def values_have_the_types_of_python():
    opened = binding.open(RECORDED)
    state = next(state for state in opened.rows("states") if state["wait_kind"] == "mutex")
    equal({name: type(state[name]) for name in ("begin_ns", "stack", "state", "object", "has_end")},
          {"begin_ns": int, "stack": int, "state": str, "object": str, "has_end": bool})  # fmt: skip
    assert next(iter(opened.events()))["goroutine"] is None


@test
def only_the_columns_that_are_asked_for_come_and_those_of_a_window():
    opened = binding.open(RECORDED)
    rows = opened.rows("states", ["duration_ns", "state"], from_ns=20_000_000, to_ns=30_000_000)
    right = exported(RECORDED, "states", "--from=20ms", "--to=30ms")
    equal([row for row in rows], [{"state": row["state"], "duration_ns": int(row["duration_ns"])} for row in right])


@test
def findings_are_those_of_the_summary():
    right = json.loads(good("summary", "--json", RECORDED))["findings"]
    equal([finding["text"] for finding in binding.open(RECORDED).findings()], [finding["text"] for finding in right])
    assert right


@test
def a_compressed_trace_is_read_and_a_damaged_one_up_to_the_damage():
    packed = os.path.join(WORK, "app.trace.gz")
    with open(EXAMPLES[3], "rb") as trace, gzip.open(packed, "wb") as to:
        to.write(trace.read())
    same(EXAMPLES[3], "tasks", binding.open(packed).rows("tasks"))
    cut = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[3], "rb") as trace, open(cut, "wb") as to:
        to.write(trace.read()[:-5000])
    events, good_part = [], run("print", "--format=jsonl", cut)[1].splitlines()
    try:
        events.extend(binding.open(cut).events())
        raise AssertionError("no error")
    except binding.Error as error:
        equal((error.code, error.offset), ("truncated", 0x7AF7))
    equal([e["time_ns"] for e in events], [json.loads(line)["time_ns"] for line in good_part])
    for path in (os.path.join(WORK, "none.trace"), __file__):
        try:
            binding.open(path)
            raise AssertionError("no error")
        except binding.Error as error:
            assert error.code in ("input/output error", "not a trace"), error.code


@test
def the_example_answers_what_sql_does():
    example = os.path.join(BINDING, "examples", "ended_waits.py")
    env = {**os.environ, "PYTHONPATH": BINDING, "TRAIL_LIBRARY": LIBRARY}
    p = subprocess.run([sys.executable, example, RECORDED], capture_output=True, text=True, env=env)
    assert p.returncode == 0 and not p.stderr, p
    states, stacks = exported(RECORDED, "states"), {row["stack"]: row["function"] for row in exported(RECORDED, "stacks")}
    total = {}
    for row in states:
        if row["state"] == "Waiting" and row["waker_stack"]:
            place = stacks[row["waker_stack"]]
            total[place] = total.get(place, 0) + int(row["duration_ns"])
    ours = {line.split(" ended by ")[1].split(",")[0]: float(line.split()[0]) for line in p.stdout.splitlines()}
    equal(ours, {place: float(f"{ns / 1e6:.3f}") for place, ns in total.items()})
    assert "mutex cache_mu" in p.stdout, p.stdout


if __name__ == "__main__":
    if SANITIZERS != "none":
        print("1..0 # SKIP a library with sanitizers cannot be loaded into Python")
        sys.exit(0)
    os.environ["TRAIL_LIBRARY"] = LIBRARY
    sys.path.insert(0, BINDING)
    import trail as binding

    sys.exit(main())
