#!/usr/bin/env python3
"""Threads and Ps of a small trace, added up by hand, and what must hold for any trace. TAP.

usage: threads_by_hand.py TRAIL SOURCE_ROOT
"""

import csv
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, FEW_EXAMPLES, ROOT, answer, equal, good_text, run_text, trace  # noqa: E402
from tap import main, test


def thread(m):
    return tuple(m[k] for k in ("id", "running_ns", "syscall_ns", "idle_ns", "runs", "syscalls", "procs"))


def proc(p):
    keys = ("id", "running_ns", "syscall_ns", "other_ns", "idle_ns", "runs", "syscalls", "taken", "starts")
    return tuple(p[k] for k in keys)


@test
def threads_run_goroutines_and_are_in_system_calls():
    found = answer("threads", trace("times-1.26"))
    equal((found["begin_ns"], found["end_ns"]), (1000, 1201))
    equal(
        [thread(m) for m in found["threads"]],
        [(100, 55, 20, 126, 1, 1, 0), (101, 60, 61, 15, 2, 1, 1), (102, 0, 0, 51, 0, 0, 1)],
    )
    equal([m["first_ns"] for m in found["threads"]], [1000, 1065, 1150])


@test
def ps_run_goroutines_are_kept_in_system_calls_and_idle():
    found = answer("procs", trace("times-1.26"))
    equal(
        [proc(p) for p in found["procs"]],
        [(0, 55, 10, 5, 131, 1, 1, 1, 0), (1, 60, 10, 55, 76, 2, 1, 1, 2)],
    )


@test
def a_window_counts_what_is_inside():
    window = ("--from=50ns", "--to=+50ns")
    found = answer("threads", *window, trace("times-1.26"))
    equal(
        [thread(m) for m in found["threads"]],
        [(100, 10, 20, 20, 0, 1, 0), (101, 25, 0, 10, 1, 0, 1)],
    )
    p0, p1 = answer("procs", *window, trace("times-1.26"))["procs"]
    equal(proc(p0), (0, 10, 10, 0, 30, 0, 1, 1, 0))
    equal(proc(p1), (1, 25, 0, 9, 16, 1, 0, 0, 1))
    equal(answer("threads", "--from=1s", trace("times-1.26"))["threads"], [])


@test
def what_goroutines_ran_is_what_threads_and_ps_ran():
    for path in FEW_EXAMPLES + [trace("gc-1.26")]:
        ran = sum(g["exec_ns"] for g in answer("goroutines", path)["goroutines"])
        threads, procs = answer("threads", path), answer("procs", path)
        equal((path, sum(m["running_ns"] for m in threads["threads"])), (path, ran))
        equal((path, sum(p["running_ns"] for p in procs["procs"])), (path, ran))
        span = procs["end_ns"] - procs["begin_ns"]
        for p in procs["procs"]:
            assert sum(proc(p)[1:5]) <= span, p
        for m in threads["threads"]:
            assert sum(thread(m)[1:4]) == threads["end_ns"] - m["first_ns"], m


@test
def threads_of_a_recording_name_their_rows_among_goroutines():
    # A thread of a C program runs only itself; one of a Go program runs many goroutines.
    shop = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    ran = {g["id"]: g["exec_ns"] for g in answer("goroutines", "--members", shop)["goroutines"]}
    threads = answer("threads", shop)["threads"]
    equal({m["goroutine"]: m["running_ns"] for m in threads}, ran)
    assert all("goroutine" not in m for m in answer("threads", EXAMPLES[0])["threads"])


@test
def halves_add_up_to_the_whole():
    for path in FEW_EXAMPLES:
        for command in ("threads", "procs"):
            whole, *parts = (
                answer(command, *window, path)[command]
                for window in ((), ("--to=4ms",), ("--from=4ms",))
            )
            for key in ("running_ns", "syscalls", "runs"):
                equal(sum(r[key] for r in whole), sum(r[key] for part in parts for r in part))


def running_states(path, *window):
    """The times at which goroutines ran, from the table of states."""
    rows = csv.DictReader(good_text("export", "--to=csv", "--table=states", *window, path).splitlines())
    return [(int(r["begin_ns"]), int(r["end_ns"])) for r in rows if r["state"] == "Running"]


@test
def slices_are_when_it_ran():
    for path in FEW_EXAMPLES:
        for window in ((), ("--from=3ms", "--to=+9ms")):
            states = running_states(path, *window)
            for command in ("threads", "procs"):
                found = answer(command, *window, path)
                begin, end, each = found["begin_ns"], found["end_ns"], found["slice_ns"]
                count = -(-(end - begin) // each)
                assert 64 <= count <= 128, count
                right = [0] * count
                for since, until in states:
                    for i in range((since - begin) // each, min(count - 1, (until - begin) // each) + 1):
                        at = begin + i * each
                        right[i] += max(0, min(until, at + each) - max(since, at))
                for row in found[command]:
                    slices = row["running_slices_ns"]
                    equal(sum(slices), row["running_ns"])
                    assert len(slices) in (0, count) and all(0 <= ns <= each for ns in slices), row
                ran = [r["running_slices_ns"] for r in found[command] if r["running_slices_ns"]]
                equal([sum(column) for column in zip(*ran)], right)


@test
def a_picture_shows_when_it_ran():
    # One slice: of 201 ns the Ps ran goroutines for 55 and 60, a little over two eighths; the
    # threads ran for 55, 60 and 0.
    for command, letter, levels in (("procs", "P", "::"), ("threads", "M", ":: ")):
        found = answer(command, trace("times-1.26"))[command]
        lines = good_text(command, trace("times-1.26")).split("\n\n")[1].splitlines()
        equal(lines[0], "running, over 201 ns:")
        right = [f"{letter} {r['id']:6} |{level}| {r['running_ns'] / 2.01:.1f} %" for r, level in zip(found, levels)]
        equal(lines[1:], right)


@test
def in_thread_words_a_picture_has_the_number_of_what_ran_on_it_last():
    # 1 and then 2 ran on both threads; the third ran nothing. The numbers share one column.
    lines = good_text("threads", "--words=threads", trace("times-1.26")).split("\n\n")[1].splitlines()[1:]
    equal([line.split("|")[0] for line in lines], ["thread 2    TID    100 ", "thread 2    TID    101 ", "TID    102 "])


@test
def tables_have_a_row_each():
    for command in ("threads", "procs"):
        count = len(answer(command, EXAMPLES[3])[command])
        table, pictures = good_text(command, EXAMPLES[3]).split("\n\n")
        equal((len(table.splitlines()), len(pictures.splitlines())), (1 + count, 1 + count))
        assert all(len(line) <= 100 for line in [*table.splitlines(), *pictures.splitlines()]), table + pictures
        with open(EXAMPLES[0], "rb") as f:
            data = f.read()
        code, out, err = run_text(command, "--json", "-", stdin=data[: len(data) * 3 // 4])
        assert code == 1 and json.loads(out)[command] and "only the part that could be read" in err, err
        code, out, err = run_text(command, "-", stdin=b"no trace at all")
        assert code == 1 and err and not out, err


if __name__ == "__main__":
    sys.exit(main())
