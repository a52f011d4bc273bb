#!/usr/bin/env python3
"""Traces of several programs merged into one: each part is compared with the original trace. TAP.

usage: merge.py TRAIL SOURCE_ROOT THREAD_POOL

Read by `trail check`, and by Go's own tool where it is installed.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ROOT, WORK, good, run  # noqa: E402
from go_readers import go_of  # noqa: E402
from tap import main, test  # noqa: E402

POOL = os.path.abspath(sys.argv[3])
GO = go_of("1.23") or ""
LOADS = {n: os.path.join(ROOT, "examples", "traces", f"load-go1.{n}.trace") for n in (19, 21, 22, 23)}
BLOCK = 10**9
NOBODY = 18446744073709551615


def file(name):
    return os.path.join(WORK, name)


def merged(*args, code=0, quiet=True, go=False, stdin=None):
    """The merged trace, which readers must accept."""
    to = file("merged.trace")
    if os.path.exists(to):
        os.remove(to)
    done, _, err = run("merge", "--to=go1.23" if go else "--to=go1.26", *args, "-o", to, stdin=stdin)
    assert done == code and (err == "" or not quiet), f"{args}: exit {done}: {err}"
    good("check", "-q", to)
    if go and os.path.exists(GO):
        p = subprocess.run([GO, "tool", "trace", "-d=1", to], capture_output=True, timeout=240)
        assert p.returncode == 0 and p.stdout, p.stderr[:300]
    return to


def goroutines(path):
    return json.loads(good("goroutines", "--json", path))["goroutines"]


def events(path):
    return [json.loads(line) for line in good("print", "--format=jsonl", path).splitlines()]


def is_v1(path):
    return path in (LOADS[19], LOADS[21])


def as_converted(path):
    """The part of an old trace that a new one can represent (docs/converting-traces.md)."""
    if not is_v1(path):
        return path
    to = file(os.path.basename(path) + ".converted")
    if not os.path.exists(to):
        good("convert", path, "-o", to)
    return to


def is_runtime(name):
    return name == "" or (name.startswith("runtime.") and name != "runtime.main")


def figure(row, key):
    """For system calls, their sum: if a call is in progress when its trace begins, Go counts only
    the time before it was reported as blocked; if it begins in the trace, Go counts all of it."""
    if key == "calls_ns":
        return figure(row, "syscall_ns") + figure(row, "syscall_block_ns")
    return row.get("corrected", {}).get(key, row[key])


def compare(path, parts, slack=500):
    """Each part's figures occur in the merged trace. Sums may differ by some ns per turn of the
    goroutine: if two traces have an event at the same time, one is moved by 1 ns."""
    rows = {g["id"]: g for g in goroutines(path)}
    for k, (name, part) in enumerate(parts):
        for g in goroutines(as_converted(part)):
            row = rows.pop(g["id"] + k * BLOCK)
            want = g["name"] if is_runtime(g["name"]) or not name else f"{name}: {g['name']}"
            assert row["name"] == want, f"{name} {g['id']}: {row['name']} for {want}"
            limit = slack + g["total_ns"] // 2000
            for key in ("exec_ns", "sched_wait_ns", "total_ns", "calls_ns"):
                a, b = (figure(r, key) for r in (row, g))
                assert abs(a - b) <= limit, f"{name} {g['id']} {key}: {a} for {b}"
            for key in ("block_ns", "range_ns"):
                for why in row[key].keys() | g[key].keys():
                    a, b = row[key].get(why, 0), g[key].get(why, 0)
                    assert abs(a - b) <= limit, f"{name} {g['id']} {key} {why}: {a} for {b}"
    assert not rows, f"nobody's: {list(rows.values())[:3]}"


def found(path, name, pattern):
    """The number of transitions of the program's own goroutines."""
    code, out, err = run("find", "--json", "--limit=0", f"--name={name}", path, pattern)
    assert code in (0, 1), err
    return len(json.loads(out)["hits"]) if out else 0


# MARK: Traces by hand


def text(nsec, lines, strings=(), version=26, time=1000):
    """A trace of one thread whose clock shows `nsec` at `time`."""
    out = [f"Trace Go1.{version}", f"EventBatch gen=1 m={NOBODY} time={time} size=auto"]
    out += ["Sync"] if version >= 25 else []
    out += ["Frequency freq=1000000000"]
    if version >= 25:
        out += [f"ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec={nsec}"]
    out += [f"EventBatch gen=1 m=100 time={time} size=auto", *lines]
    out += [f"EventBatch gen=1 m={NOBODY} time={time} size=auto", "Stacks"]
    out += ["Stack id=1 nframes=1", "\tpc=8192 func=1 file=2 line=7"]
    out += [f"EventBatch gen=1 m={NOBODY} time={time} size=auto", "Strings"]
    for i, s in enumerate(["main.work", "/src/main.go", *strings], 1):
        out += [f"String id={i}", f'\tdata="{s}"']
    return "\n".join(out + (["EndOfGeneration"] if version >= 26 else [])) + "\n"


def made(name, content):
    good("assemble", "-", "-o", file(name), stdin=content.encode())
    return file(name)


BEGIN = ["ProcStatus dt=1 p=0 pstatus=1", "GoStatus dt=1 g=1 m=100 gstatus=2"]


def web():
    """
    From 1000 to 3000. GOMAXPROCS 2, heap 4096; the world stops from 1400 to 1420; a cycle from 1500 to
    2500.
    """
    return made("web.trace", text(0, [
        *BEGIN,
        "ProcsChange dt=8 procs_value=2 stack=1", "HeapAlloc dt=10 heapalloc_value=4096",
        "STWBegin dt=380 kind_string=3 stack=1", "STWEnd dt=20",
        "GCBegin dt=80 gc_seq=1 stack=1", "GCEnd dt=1000 gc_seq=2", "HeapGoal dt=500 heapgoal_value=10000",
    ], ["GC sweep termination"]))


def db():
    """Its 50000 is web's 2000; it lasts until 55000. GOMAXPROCS 4, heap 1000, then 700; a cycle
    from 50200 to 52000, another from 53000 to 54000. G 2 waits from before the trace until
    51500."""
    return made("db.trace", text(1000, [
        *BEGIN,
        "ProcsChange dt=8 procs_value=4 stack=1", "HeapAlloc dt=90 heapalloc_value=1000",
        "GCBegin dt=100 gc_seq=1 stack=1",
        "GoStatus dt=1299 g=2 m=18446744073709551615 gstatus=4", "GoUnblock dt=1 g=2 g_seq=1 stack=1",
        "GCEnd dt=500 gc_seq=2", "GCBegin dt=1000 gc_seq=3 stack=1", "GCEnd dt=1000 gc_seq=4",
        "HeapAlloc dt=1000 heapalloc_value=700",
    ], time=50000))


def metrics(path, name):
    return [(e["time_ns"], e["value"]) for e in events(path) if e["kind"] == "Metric" and name in e["name"]]


# MARK: The tests


@test
def each_goroutine_has_the_times_that_it_had():
    pairs = [((23, 22), "1ms"), ((22, 23), "30ms"), ((23, 19), "7ms"), ((21, 23), "-5ms"), ((19, 21), "300ms")]
    for (a, b), offset in pairs:
        path = merged(f"a={LOADS[a]}", f"b={LOADS[b]}", f"--offset=b={offset}", go=True, quiet=(a, b) != (0, 0))
        compare(path, [("a", LOADS[a]), ("b", LOADS[b])], slack=5000)


@test
def patterns_are_found_as_often():
    pattern = "block[chan] then start"
    path = merged(f"a={LOADS[23]}", f"b={LOADS[22]}", "--offset=b=2ms")
    for name, part in (("a", LOADS[23]), ("b", LOADS[22])):
        functions = {g["name"] for g in goroutines(part) if not is_runtime(g["name"])}
        counts = {f: (found(part, f, pattern), found(path, f"{name}: {f}", pattern)) for f in functions}
        assert any(a for a, _ in counts.values()) and all(a == b for a, b in counts.values()), counts


@test
def what_one_program_did_comes_out_again():
    """One of two programs is kept by its prefix: each of its goroutines with its transitions, and
    none of the other program's, which also collected garbage."""

    def transitions(path, block):
        found = {}
        for e in events(path):
            if e["kind"] == "StateTransition" and e["resource"] == "goroutine" and e["from"] != e["to"]:
                found.setdefault(e["id"] - block * BLOCK, []).append((e["from"], e["to"]))
        return found

    names = {22: "a", 23: "b"}
    both = merged("a=" + LOADS[22], "b=" + LOADS[23], "--align=start")
    for at, version in enumerate(names):
        one = file(names[version] + ".trace")
        good("convert", f"--name={names[version]}: *", both, "-o", one)
        assert {g["id"] // BLOCK for g in goroutines(one)} == {at}, (names[version], goroutines(one))
        before, after = transitions(LOADS[version], 0), transitions(one, at)
        # Includes those of the runtime, whose names have no prefix.
        named = [g["id"] for g in goroutines(LOADS[version]) if g["name"]]
        assert named and set(after) >= set(named) & set(before), set(named) & set(before) - set(after)
        for g in named:
            known = [t for t in before.get(g, []) if "Undetermined" not in t]
            kept = [t for t in after.get(g, []) if "Undetermined" not in t]
            # A goroutine that is alive when its trace ends, ends there: it is woken and runs to its end.
            assert kept[: len(known)] == known, (g, known[-3:], kept[-3:])
            end = [t[1] for t in kept[len(known) :]]
            assert end in ([], ["NotExist"], ["Running", "NotExist"], ["Runnable", "Running", "NotExist"]), (g, end)


@test
def a_trace_can_be_there_twice():
    path = merged(LOADS[23], LOADS[23], "--align=start", go=True)
    compare(path, [("load-go1.23", LOADS[23]), ("load-go1.23-2", LOADS[23])], slack=5000)


@test
def go_and_c_are_side_by_side():
    c = file("pool.trace")
    subprocess.run([POOL, c], check=True, capture_output=True, timeout=240)
    path = merged(f"go={LOADS[23]}", f"c={c}", "--offset=c=10ms", go=True)
    compare(path, [("go", LOADS[23]), ("c", c)], slack=5000)


@test
def cycles_of_garbage_collection_become_their_union():
    path = merged(f"web={web()}", f"db={db()}", go=False)
    gc = json.loads(good("gc", "--json", path))
    # db's 50200 is 2200, within web's cycle; db's cycle lasts longer, to 52000. db's next one follows.
    assert [(c["begin_ns"], c["end_ns"]) for c in gc["cycles"]] == [(1500, 4000), (5000, 6000)], gc
    assert [(p["begin_ns"], p["end_ns"], p["goroutine"]) for p in gc["pauses"]] == [(1400, 1420, 1)], gc


@test
def a_cycle_that_goes_on_when_its_trace_ends_ends_there():
    cut = made("cut.trace", text(0, [*BEGIN, "GCBegin dt=98 gc_seq=1 stack=1", "HeapAlloc dt=400 heapalloc_value=1"]))
    later = made("later.trace", text(0, [*BEGIN, "GCBegin dt=1998 gc_seq=1 stack=1", "GCEnd dt=1000 gc_seq=2"]))
    gc = json.loads(good("gc", "--json", merged(cut, later)))
    cycle, another = gc["cycles"]
    assert cycle["begin_ns"] == 1100 and 1500 < cycle["end_ns"] < 1520, gc
    assert (another["begin_ns"], another["end_ns"]) == (3000, 4000), gc


@test
def a_cycle_that_goes_on_when_its_trace_begins_begins_there():
    on = made("on.trace", text(5000, [*BEGIN, "GCActive dt=1 gc_seq=1", "GCEnd dt=997 gc_seq=2"]))
    quiet = made("quiet.trace", text(0, [*BEGIN, "HeapAlloc dt=9998 heapalloc_value=1"]))
    for go in (False, True):
        gc = json.loads(good("gc", "--json", merged(quiet, on, "--offset=on=5us", go=go)))
        (cycle,) = gc["cycles"]
        assert 6000 <= cycle["begin_ns"] < 6030 and cycle["end_ns"] == 7000, gc


@test
def heap_goal_and_procs_are_sums():
    path = merged(f"web={web()}", f"db={db()}")
    heap = metrics(path, "objects:bytes")
    # 4096 of web, 1000 more of db from its 50100, web gone at 3000, db's own 700 at the end.
    assert [v for _, v in heap] == [4096, 5096, 1000, 700], heap
    assert heap[0][0] == 1020 and heap[1][0] == 2100 and 3000 < heap[2][0] < 3020 and heap[3][0] == 7000, heap
    assert [v for _, v in metrics(path, "gomaxprocs")] == [2, 6, 4], metrics(path, "gomaxprocs")
    goal = metrics(path, "goal")
    assert [v for _, v in goal] == [10000, 0], goal


@test
def who_waits_when_a_later_trace_begins_waits_from_then_on():
    for ahead in ("db.trace", "-"):
        path = merged(f"web={web()}", f"db={db() if ahead != '-' else '-'}", stdin=open(db(), "rb").read())
        rows = {g["id"]: g for g in goroutines(path)}
        row = rows[BLOCK + 2]
        # From 50000, which is 2000, to 51500; and ready to the end, 55000.
        assert 2000 <= row["creation_ns"] < 2020, row
        assert abs(row["block_ns"][""] - 1500) < 20 and abs(row["sched_wait_ns"] - 3500) <= 1, row


@test
def who_is_alive_when_its_trace_ends_ends_there():
    path = merged(f"web={web()}", f"db={db()}")
    (row,) = [g for g in goroutines(path) if g["id"] == 1]
    assert 3000 < row["end_ns"] < 3020 and 1990 < row["exec_ns"] < 2020, row
    assert not [e for e in events(path) if e["time_ns"] > 3050 and (e.get("g") == 1 or e.get("p") == 0)]


@test
def wall_clocks_align():
    # In either order of the arguments, the trace that begins first keeps its times; db begins 1 us after web.
    for order in (("web", "db"), ("db", "web")):
        made_by = {"web": web(), "db": db()}
        path = merged(*(f"{n}={made_by[n]}" for n in order))
        first = [e for e in events(path) if e.get("name") == "/sched/gomaxprocs:threads"]
        assert [(e["time_ns"], e["value"]) for e in first][:2] == [(1010, 2), (2010, 6)], first
        ids = [e["g"] // BLOCK for e in first[:2]]
        assert ids == ([0, 1] if order[0] == "web" else [1, 0]), ids


@test
def clocks_in_a_string_align():
    def old(name, mono, wall):
        note = f"trail.clock mono={mono} wall={wall}"
        return made(name, text(0, [*BEGIN, "ProcsChange dt=8 procs_value=1 stack=1"], [note], version=23))

    # Both traces begin at 1000. The second one's clock shows 1.5 us more at the same time of the trace.
    a, b = old("a.trace", 2000, "1700000000.000000000"), old("b.trace", 2000, "1700000000.000001500")
    path = merged(a, b)
    times = [e["time_ns"] for e in events(path) if e.get("name") == "/sched/gomaxprocs:threads"]
    assert times[0] == 1010 and 2510 in times, times


@test
def without_clocks_it_is_said_what_to_do():
    for args, hint in (
        ((f"a={LOADS[23]}", f"b={LOADS[22]}"), "a has no wall clock"),
        ((f"a={web()}", f"b={LOADS[22]}"), "b has no wall clock"),
        ((f"a={web()}", f"b={made('far.trace', text(0, BEGIN).replace('1700000000', '1500000000'))}"), "100 days"),
    ):
        to = file("none.trace")
        code, out, err = run("merge", *args, "-o", to)
        assert code == 2 and hint in err and "--offset=b=TIME" in err and "--align=start" in err, err
        assert not os.path.exists(to)


@test
def offsets_count_from_the_first_trace():
    for offset, want in (("3us", 4010), ("-1us", None), ("0", 1010)):
        path = merged(web(), db(), f"--offset=db={offset}")
        times = {}
        for e in events(path):
            if "gomaxprocs" in e.get("name", ""):
                times.setdefault(e["g"] // BLOCK, e["time_ns"])
        if offset == "-1us":  # db is now the first, and keeps its times: 50000, and web 1000 later
            assert times[1] == 50010 and times[0] == 51010, times
        else:
            assert times[0] == 1010 and want <= times[1] <= want + 1, (offset, times)


def ids(list, key):
    """The goroutines that did something, or were the object of an event."""
    subject = {"g": "goroutine", "p": "proc"}.get(key)
    return {e[key] for e in list if key in e} | {e["id"] for e in list if e.get("resource") == subject and subject}


@test
def numbers_of_one_trace_are_none_of_another():
    path = merged(f"a={LOADS[22]}", f"b={LOADS[23]}", "--offset=b=1ms")
    parts = [events(LOADS[22]), events(LOADS[23])]
    for key, block in (("g", BLOCK), ("m", BLOCK), ("p", 1000)):
        have = ids(events(path), key)
        want = {i + k * block for k in (0, 1) for i in ids(parts[k], key)}
        # The helper's own numbers, which are in the next block.
        assert want <= have and all(i >= 2 * block for i in have - want), (key, sorted(have - want)[:5])


@test
def numbers_that_do_not_fit_into_a_block_get_the_next_free_one():
    big = (1 << 63) + 77
    lines = [*BEGIN, "GoCreate dt=1 new_g=5000000007 new_stack=1 stack=1", f"GoCreate dt=1 new_g={big} new_stack=1 stack=1",
             "UserTaskBegin dt=1 task=9000000000000000009 parent_task=0 name_string=1 stack=1",
             "GoCreate dt=1 new_g=999999999 new_stack=1 stack=1"]
    a = made("a.trace", text(0, lines))
    path = merged(f"a={a}", f"b={a}", go=False)
    ids = sorted(g["id"] for g in goroutines(path))
    last = [1, 7, big % BLOCK, 999999999]
    assert sorted(i % BLOCK for i in ids) == sorted(last * 2), ids
    assert len(set(ids)) == 8 and all(0 < i < 1 << 53 for i in ids), ids
    # The first block of each program keeps its place; block 2 is the helper's; the others follow in
    # order of time.
    assert {i // BLOCK for i in ids} == {0, 1, 3, 4, 5, 6}, ids


@test
def too_many_ps_are_refused_and_what_came_before_is_there():
    many = [f"ProcStatus dt=1 p={i * 1000} pstatus=2" for i in range(1, 1100)]
    a = made("a.trace", text(0, [*BEGIN, *many]))
    to = file("many.trace")
    code, _, err = run("merge", f"a={a}", f"b={web()}", "-o", to)
    assert code == 1 and "too many different Ps" in err, err
    good("check", "-q", to)


@test
def far_offsets_are_written_and_impossible_ones_refused():
    path = merged(web(), db(), "--offset=db=1000000h", go=True)
    e = events(path)
    assert int(e[-1]["time_ns"]) - int(e[0]["time_ns"]) >= 3600 * 10**15
    path = merged(web(), db(), "--offset=db=-2562047h", go=True)
    code, _, err = run("merge", web(), db(), web(), "--offset=db=2562047h", "--offset=web-2=-2562047h", "-o", file("x"))
    assert code == 2 and "too far" in err and not os.path.exists(file("x")), err


@test
def the_good_part_of_a_damaged_trace_is_merged():
    data = open(LOADS[19], "rb").read()
    cut = file("cut.trace")
    with open(cut, "wb") as f:
        f.write(data[: len(data) * 9 // 10])
    path = merged(f"a={web()}", f"cut={cut}", f"b={db()}", "--align=start", code=1, quiet=False)
    ids = {g["id"] // BLOCK for g in goroutines(path)}
    assert ids == {0, 1, 2}, ids
    code, _, err = run("merge", "--align=start", f"a={web()}", f"cut={cut}", "-o", file("x.trace"))
    assert code == 1 and "cut.trace" in err and "the good part" in err, err


@test
def what_is_no_trace_is_told_and_others_are_merged():
    empty, header = file("empty"), file("header")
    open(empty, "wb").close()
    with open(header, "wb") as f:
        f.write(open(web(), "rb").read()[:16])
    for bad in (empty, header):
        path = merged(f"a={web()}", bad, code=1, quiet=False)
        assert {g["id"] for g in goroutines(path)} == {1}
    code, _, err = run("merge", empty, "-o", file("y.trace"))
    assert code == 1 and not os.path.exists(file("y.trace")), err
    code, _, err = run("merge", web(), file("nothing"), "-o", file("y.trace"))
    assert code == 3 and not os.path.exists(file("y.trace")), err


@test
def sixty_four_are_merged_and_no_more():
    names = [web()] * 64
    path = merged(*names, "--align=start", go=True)
    assert {g["id"] for g in goroutines(path)} == {1 + k * BLOCK for k in range(64)}
    code, _, err = run("merge", *names, web(), "-o", file("z.trace"))
    assert code == 2 and "64" in err, err


@test
def names_of_traces_stand_before_start_functions_only():
    path = merged(f"x={LOADS[23]}", f"y={LOADS[23]}", "--align=start")
    lines = good("profile", "--type=sched", "--format=folded", path).decode().splitlines()
    firsts = {line.split(";")[0][:3] for line in lines if ";" in line}
    assert {"x: ", "y: "} <= firsts, firsts
    assert not any(": " in frame for line in lines for frame in line.split(";")[1:])
    alone = file("alone.trace")
    good("convert", "--name=y: *", path, "-o", alone)
    mine = {g["id"] for g in goroutines(LOADS[23]) if not is_runtime(g["name"])}
    assert mine <= {g["id"] - BLOCK for g in goroutines(alone)}
    # From the other program, only goroutines that stopped the world are kept, as usual.
    others = [sum(g["name"].startswith("x: ") for g in goroutines(p)) for p in (alone, path)]
    assert others[0] * 4 < others[1], others
    path = merged(f"x={LOADS[23]}", f"y={LOADS[22]}", "--align=start", "--plain")
    compare(path, [("", LOADS[23]), ("", LOADS[22])], slack=5000)


@test
def the_same_traces_make_the_same_bytes():
    args = ("merge", f"a={LOADS[22]}", f"b={LOADS[19]}", f"c={web()}", "--align=start")
    assert good(*args) == good(*args)


@test
def wrong_command_lines_are_told():
    cases = [
        ((), "no traces given"),
        (("x=" + web(), "x=" + db()), "two traces are called 'x'"),
        ((web(), db(), "--offset=bd=1s"), "no trace is called 'bd': is it 'db'?"),
        ((web(), db(), "--offset=web=1s"), "the first trace"),
        ((web(), db(), "--offset=db"), "--offset is like"),
        ((web(), db(), "--align=now"), "--align is wall or start"),
        ((web(), db(), "--to=go1.22"), "--to is go1.26, go1.25 or go1.23"),
        (("-", "-"), "stdin"),
    ]
    for args, hint in cases:
        code, _, err = run("merge", *args, "-o", file("w.trace"))
        assert code == 2 and hint in err, f"{args}: exit {code}: {err}"
    code, _, err = run("merge", web(), db(), "-o", web())
    assert code == 2 and "overwrite" in err, err


if __name__ == "__main__":
    sys.exit(main())
