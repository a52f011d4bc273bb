#!/usr/bin/env python3
"""Profiles of small traces, compared with sums computed by hand; their formats; invariants for any trace. TAP.

usage: profiles_by_hand.py TRAIL SOURCE_ROOT
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, EXAMPLES, WORK, assembled, equal, good, run, trace  # noqa: E402
from go_readers import go_of  # noqa: E402
from tap import main, test

from pprof import read_pprof  # noqa: E402

TYPES = ["net", "sync", "syscall", "sched", "cpu", "running", "offcpu"]

# Leaf first, as in the trace.
EMPTY_FRAME = ((0, "", "", 0),)
RECEIVE = ("main.receive:42", "main.main:7")
READ = ("main.read:100", "main.worker:101")


def profile(kind, *args):
    """{stack: (count, ns)}, with stacks leaf first"""
    found = json.loads(good("profile", "--type=" + kind, "--json", *args))
    equal(found["type"], kind)
    equal(sum(s["count"] for s in found["samples"]), found["count"])

    def title(frame):
        return f"{frame['name']}:{frame['line']}" if frame["line"] else frame["name"]

    result = {}
    for s in found["samples"]:
        stack = tuple(title(found["frames"][i]) for i in s["stack"])
        count, ns = result.get(stack, (0, 0))  # PCs may differ
        result[stack] = (count + s["count"], ns + s.get("ns", 0))
    if kind != "cpu":
        equal(sum(s["ns"] for s in found["samples"]), found["ns"])
    return result


# Added up by hand


@test
def waits_count_by_the_stack_in_which_they_began():
    path = trace("times-1.26")
    equal(profile("sync", path), {RECEIVE: (1, 25)})
    equal(profile("syscall", path), {READ: (1, 20)})
    equal(profile("net", path), {})


@test
def time_ready_counts_by_who_made_it_ready_but_not_before_the_first_run():
    equal(profile("sched", trace("times-1.26")), {READ: (1, 30), (): (1, 25)})


@test
def running_counts_by_where_it_ended():
    equal(profile("running", trace("times-1.26")), {RECEIVE: (2, 43), READ: (2, 70), (): (1, 2)})


@test
def waits_have_the_stack_of_their_waker_upside_down_above():
    equal(
        profile("offcpu", trace("times-1.26")),
        {
            (READ[1], READ[0], "[chan receive]", *RECEIVE): (1, 25),
            ("[not woken]", "[select]", *RECEIVE): (1, 101),
        },
    )


@test
def a_window_counts_what_is_inside():
    path = trace("times-1.26")
    window = ("--from=50ns", "--to=+50ns")
    equal(profile("sched", *window, path), {READ: (2, 25 + 42), (): (1, 20)})
    equal(profile("running", *window, path), {RECEIVE: (1, 25), READ: (1, 10)})
    equal(profile("syscall", *window, path), {READ: (1, 20)})
    equal(profile("offcpu", "--from=30ns", "--to=40ns", path), {("[not woken]", "[chan receive]", *RECEIVE): (1, 10)})


@test
def goroutines_are_chosen_by_name_and_number():
    path = trace("times-1.26")
    for mine in ("--name=main.main", "--goroutine=1"):
        equal(profile("sched", mine, path), {READ: (1, 30)})
        equal(profile("running", mine, path), {RECEIVE: (2, 43), (): (1, 2)})
    for mine in ("--name=main.worker", "--goroutine=G2,3"):
        equal(profile("sched", mine, path), {(): (1, 25)})
        equal(profile("sync", mine, path), {})
    equal(profile("sched", "--goroutine=1", "--name=main.worker", "--goroutine=2", path), {(): (1, 25)})


@test
def inside_a_region_or_task_only_what_overlaps_it_counts():
    path = trace("times-1.26")
    for mine in ("--region=parse", "--task=7"):
        equal(profile("running", mine, path), {READ: (2, 5 + 5)})
        equal(profile("syscall", mine, path), {READ: (1, 20)})
        equal(profile("sched", mine, path), {(): (1, 25)})
        equal(profile("sync", mine, path), {})


NESTED = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=5 gstatus=2
UserRegionBegin dt=8 task=0 name_string=1 stack=0
GoBlock dt=10 reason_string=2 stack=0
GoUnblock dt=20 g=1 g_seq=1 stack=0
GoStart dt=1 g=1 g_seq=2
UserRegionBegin dt=4 task=0 name_string=1 stack=0
GoBlock dt=10 reason_string=2 stack=0
GoUnblock dt=5 g=1 g_seq=3 stack=0
GoStart dt=1 g=1 g_seq=4
UserRegionEnd dt=10 task=0 name_string=1 stack=0
UserRegionBegin dt=10 task=0 name_string=1 stack=0
UserRegionEnd dt=10 task=0 name_string=1 stack=0
UserRegionEnd dt=10 task=0 name_string=1 stack=0
GoBlock dt=10 reason_string=2 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
\tdata="outer"
String id=2
\tdata="sync"
EndOfGeneration
"""


@test
def of_regions_inside_each_other_the_outermost_counts():
    path = assembled("nested", NESTED)
    ((count, ns),) = profile("sync", "--region=outer", path).values()
    equal((count, ns), (2, 20 + 5))


@test
def what_is_not_there_is_told():
    path = trace("times-1.26")
    cases = [
        ("--name=main.wroker", "did you mean 'main.worker'?"),
        ("--goroutine=9", "no such goroutine"),
        ("--region=prase", "no such region"),
        ("--task=9", "no such region"),
        ("--type=snyc", "did you mean 'sync'"),
        ("--format=pdf", "no format"),
        ("--min=101", "is not a share"),
        ("--output=" + os.path.join(WORK, "a.xyz"), "does not name a format"),
        ("--output=" + path, "does not name a format"),
    ]
    for option, hint in cases:
        code, out, err = run("profile", option, path)
        assert code == 2 and hint in err and not out, f"{option}: exit {code}: {out}{err}"
    code, _, err = run("profile", "-fpprof", "-o", path, path)
    assert code == 2 and "the trace itself" in err, err
    assert good("profile", "--type=net", path).startswith(b"No waits for the network")
    assert b"--cpu-samples" in good("profile", "--type=cpu", path)


@test
def latencies_include_what_was_before_the_first_run():
    found = json.loads(good("latency", "--json", trace("times-1.26")))
    sched = found["scheduling"]
    equal((sched["count"], sched["ns"]), (3, 30 + 25 + 15))
    equal(
        [(s["count"], s["ns"], [f["name"] for f in s["stack"]]) for s in sched["stacks"]],
        [
            (1, 30, ["main.read", "main.worker"]),
            (1, 25, []),
            (1, 15, ["main.receive", "main.main"]),
        ],
    )
    times = sched["times"]
    equal((times["min_ns"], times["mean_ns"], times["max_ns"]), (15, 70 // 3, 30))
    equal(times["buckets"], [[15, 16, 1], [24, 26, 1], [30, 32, 1]])
    equal([(found[k]["count"], found[k]["ns"]) for k in ("locks", "syscalls")], [(1, 25), (1, 20)])
    found = json.loads(good("latency", "--json", "--name=main.main", trace("times-1.26")))
    equal([found[k]["ns"] for k in ("scheduling", "locks", "syscalls")], [30, 25, 0])


@test
def latencies_by_stack_add_up():
    for path in EXAMPLES:
        whole = json.loads(good("latency", "--json", "-n0", path))
        for kind in whole.values():
            equal(kind["count"], sum(s["count"] for s in kind["stacks"]))
            equal(kind["ns"], sum(s["ns"] for s in kind["stacks"]))
            equal(kind["count"], sum(n for _, _, n in kind["times"]["buckets"]))
            equal(kind["times"]["max_ns"], max(s["times"]["max_ns"] for s in kind["stacks"]))
        table = good("latency", "-n", "2", path).decode()
        equal((table.count("(all)"), table.count("... and")), (3, 3))
        # Before Go 1.22 the end of a system call that does not block is no event.
        unrecorded = sum(n for at, _, n in whole["syscalls"]["times"]["buckets"] if at == 1)
        wanted = f"{unrecorded} did not block: their length is not recorded"
        equal(wanted in table, "go1.19" in path or "go1.21" in path)
    code, _, err = run("latency", "--goroutine=999999", EXAMPLES[0])
    assert code == 2 and "no such goroutine" in err, err
    code, _, err = run("latency", "--name=main.mian", EXAMPLES[0])
    assert code == 2 and "did you mean 'main.main'?" in err, err
    with open(EXAMPLES[0], "rb") as f:
        data = f.read()
    code, out, err = run("latency", "-", stdin=data[: len(data) * 3 // 4])
    assert code == 1 and out and "only the part that could be read" in err, err


# Formats


@test
def all_formats_say_the_same():
    for path in EXAMPLES:
        for kind in TYPES:
            ours = json.loads(good("profile", "--type=" + kind, "--json", path))
            frames = ours["frames"]
            value = "count" if kind == "cpu" else "ns"
            stacks = [[frames[i] for i in s["stack"]] for s in ours["samples"]]
            pprof = read_pprof(good("profile", "--type=" + kind, "--format=pprof", path))
            units = [unit for _, unit in pprof["types"]]
            equal(units, ["count"] if kind == "cpu" else ["count", "nanoseconds"])
            equal(
                [(() if stack == EMPTY_FRAME else stack, values) for stack, values in pprof["samples"]],
                [
                    (
                        tuple((int(f["pc"], 16), f["name"], f["file"], f["line"]) for f in stack),
                        (s["count"],) if kind == "cpu" else (s["count"], s["ns"]),
                    )
                    for stack, s in zip(stacks, ours["samples"])
                ],
            )
            speed = json.loads(good("profile", "--type=" + kind, "--format=speedscope", path))
            equal(speed["$schema"], "https://www.speedscope.app/file-format-schema.json")
            (only,) = speed["profiles"]
            equal((only["type"], only["startValue"]), ("sampled", 0))
            equal(only["unit"], "none" if kind == "cpu" else "nanoseconds")
            equal(only["endValue"], sum(only["weights"]))
            equal(only["samples"], [s["stack"][::-1] for s in ours["samples"]])
            equal(only["weights"], [s[value] for s in ours["samples"]])
            names = [f["name"] for f in speed["shared"]["frames"]]
            folded = good("profile", "--type=" + kind, "--format=folded", path).decode()
            equal(
                folded.splitlines(),
                [
                    (";".join(names[i].replace(";", ":") for i in s["stack"][::-1]) or "(no stack)")
                    + f" {s[value]}"
                    for s in ours["samples"]
                ],
            )


def odd_names():
    """A trace whose functions have names with arbitrary bytes."""
    with open(os.path.join(DATA, "times-1.26.txt")) as f:
        text = f.read()
    odd = text.replace('data="main.receive"', r'data="a;b\"c\\\xff d\n\x01\u00e9"')
    assert odd != text
    path = os.path.join(WORK, "odd.trace")
    good("assemble", "-", "-o", path, stdin=odd.encode())
    return path


@test
def names_may_be_any_bytes():
    path = odd_names()
    name = 'a;b"c\\\ufffd d\n\x01\u00e9'
    (stack, values), = read_pprof(good("profile", "--format=pprof", path))["samples"]
    equal((stack[0][1], stack[1][1], values), (name, "main.main", (1, 25)))
    speed = json.loads(good("profile", "--format=speedscope", path))
    equal(speed["shared"]["frames"][speed["profiles"][0]["samples"][0][1]]["name"], name)
    equal(
        good("profile", "--format=folded", path).decode(),
        'main.main;a:b"c\\\ufffd d  \u00e9 25\n',
    )
    tree = good("profile", path)
    assert b"\x01" not in tree and tree.count(b"\n") == 3, tree


# G 1 makes G 2 ready twice, 10 ns before it runs: once without a stack, and once with a stack that
# has no frame left. G 2 makes G 1 ready twice, 2 ns before it runs. (The first run of a goroutine
# does not count.)
NAMELESS = """Trace Go1.23
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=100 gstatus=2
GoStatus dt=1 g=2 m=18446744073709551615 gstatus=4
GoUnblock dt=1 g=2 g_seq=1 stack=0
GoBlock dt=1 reason_string=1 stack=3
GoStart dt=1 g=2 g_seq=2
GoUnblock dt=1 g=1 g_seq=1 stack=3
GoBlock dt=1 reason_string=1 stack=3
GoStart dt=1 g=1 g_seq=2
GoUnblock dt=1 g=2 g_seq=3 stack={first}
GoBlock dt=1 reason_string=1 stack=3
GoStart dt=9 g=2 g_seq=4
GoUnblock dt=1 g=1 g_seq=3 stack=3
GoBlock dt=1 reason_string=1 stack=3
GoStart dt=1 g=1 g_seq=4
GoUnblock dt=1 g=2 g_seq=5 stack={last}
GoBlock dt=1 reason_string=1 stack=3
GoStart dt=9 g=2 g_seq=6
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Stacks
Stack id=1 nframes=1
	pc=0 func=0 file=0 line=0
Stack id=3 nframes=1
	pc=4096 func=2 file=3 line=42
EventBatch gen=1 m=18446744073709551615 time=1001 size=auto
Strings
String id=1
	data="chan receive"
String id=2
	data="main.receive"
String id=3
	data="main.go"
"""


def nameless(last_stack):
    """Returns the trace, and the profile of scheduling latency as read by `go tool pprof`: {stack: (count, ns)}."""
    path = assembled(f"nameless-{last_stack}", NAMELESS.format(first=1 - last_stack, last=last_stack))
    return path, dict(read_pprof(good("profile", "--type=sched", "--format=pprof", path))["samples"])


@test
def an_empty_stack_is_written_like_the_last_of_its_kind_as_go_does():
    receive = ((4096, "main.receive", "main.go", 42),)
    for last_stack, empty in ((0, ()), (1, EMPTY_FRAME)):
        path, ours = nameless(last_stack)
        equal(ours, {empty: (2, 20), receive: (2, 4)})
        equal(profile("sched", path), {(): (2, 20), ("main.receive:42",): (2, 4)})
        go = go_of("1.27")
        if go:
            made = subprocess.run([go, "tool", "trace", "-pprof=sched", path], capture_output=True)
            equal(dict(read_pprof(made.stdout)["samples"]), ours, "Go has")
        offcpu = read_pprof(good("profile", "--type=offcpu", "--format=pprof", path))
        assert all(frame[1] for stack, _ in offcpu["samples"] for frame in stack), offcpu


@test
def go_reads_what_is_for_it():
    go = go_of("1.23") or shutil.which("go")
    if not go:
        return
    env = {**os.environ, "HOME": WORK, "PPROF_TMPDIR": WORK}
    for path in (trace("times-1.26"), odd_names(), EXAMPLES[3]):
        for kind in TYPES:
            made = os.path.join(WORK, "go.pb.gz")
            good("profile", "--type=" + kind, "-o", made, path)
            p = subprocess.run([go, "tool", "pprof", "-raw", made], capture_output=True, env=env)
            equal(p.returncode, 0)
            lines = p.stdout.decode("utf-8", "replace").split("Samples:\n")[1].split("\nLocations")[0]
            # Older pprofs leave out samples without a stack.
            ours = [stack for stack, _ in read_pprof(open(made, "rb").read())["samples"] if stack]
            assert lines.count(": ") >= len(ours), p.stdout
            p = subprocess.run([go, "tool", "pprof", "-top", made], capture_output=True, env=env)
            equal(p.returncode, 0)


@test
def the_name_of_the_output_tells_the_format():
    path = trace("times-1.26")
    for suffix, form in ((".pb.gz", "pprof"), (".folded", "folded"), (".json", "speedscope")):
        made = os.path.join(WORK, "made" + suffix)
        equal(good("profile", "-o", made, path), b"")
        with open(made, "rb") as f:
            equal(f.read(), good("profile", "--format=" + form, path))


# Goroutine 2 waits four times, from 10 to 90 of its 100 ns each time.
RETURNS = """Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=0 g=1 m=1 gstatus=2
GoCreate dt=1 new_g=2 new_stack=1 stack=0
GoBlock dt=1 reason_string=1 stack=0
GoStart dt=1 g=2 g_seq=1
%sGoDestroy dt=10
EventBatch gen=1 m=2 time=1000 size=auto
ProcStatus dt=1 p=1 pstatus=1
GoStatus dt=0 g=3 m=2 gstatus=2
%sEventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Stacks
Stack id=1 nframes=1
\tpc=4096 func=2 file=2 line=1
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
\tdata="sync"
String id=2
\tdata="work"
String id=3
\tdata="wait"
String id=4
\tdata="%s"
String id=5
\tdata="trail.made by=record"
"""


@test
def waits_to_which_a_thread_returns_are_for_work_if_their_kind_can_be():
    waits = "".join(f"UserLog dt=9 task=0 key_string=3 value_string=4 stack=0\nGoBlock dt=1 reason_string=1 stack=1\n"
                    f"GoStart dt=90 g=2 g_seq={3 + 2 * i}\n" for i in range(4))
    wakes = "".join(f"GoUnblock dt={93 if i == 0 else 100} g=2 g_seq={2 + 2 * i} stack=0\n" for i in range(4))
    for wait, idle in ("condition c", True), ("futex f", True), ("mutex m", False), ("barrier b", False), ("join t", False):
        path = assembled("returns", RETURNS % (waits, wakes, wait))
        (row,) = json.loads(good("latency", "--json", path))["locks"]["stacks"]
        equal((row["wait_kind"], row["count"]), (wait[:-2], 4))
        equal((row.get("idle_count"), row.get("idle_ns")), (4, row["ns"]) if idle else (None, None), wait)


# What must hold for any trace


@test
def running_and_waiting_add_up_to_the_times_of_goroutines():
    for path in EXAMPLES + [trace(n) for n in ("times-1.26", "gc-1.26", "everything-1.26")]:
        rows = json.loads(good("goroutines", "--json", path))["goroutines"]
        ran = sum(ns for _, ns in profile("running", path).values())
        equal((path, ran), (path, sum(g["exec_ns"] for g in rows)))
        waited = sum(ns for _, ns in profile("offcpu", path).values())
        equal((path, waited), (path, sum(sum(g["block_ns"].values()) for g in rows)))


@test
def goroutines_one_by_one_add_up_to_all():
    path = EXAMPLES[3]
    ids = [g["id"] for g in json.loads(good("goroutines", "--json", path))["goroutines"]]
    whole, parts = profile("sync", path), {}
    for some in (ids[::2], ids[1::2]):
        for stack, (count, ns) in profile("sync", "--goroutine=" + ",".join(map(str, some)), path).items():
            a, b = parts.get(stack, (0, 0))
            parts[stack] = (a + count, b + ns)
    equal(parts, whole)


@test
def two_runs_give_the_same_bytes():
    for kind in TYPES:
        for form in ("pprof", "json", "tree"):
            args = ("profile", "--type=" + kind, "--format=" + form, EXAMPLES[3])
            equal(good(*args), good(*args))


@test
def a_damaged_trace_gives_the_profile_of_its_good_part():
    with open(EXAMPLES[0], "rb") as f:
        data = f.read()
    cut = os.path.join(WORK, "cut.trace")
    with open(cut, "wb") as f:
        f.write(data[: len(data) * 3 // 4])
    made = os.path.join(WORK, "cut.pb.gz")
    code, _, err = run("profile", "-o", made, cut)
    assert code == 1 and "only the part that could be read" in err, f"exit {code}: {err}"
    assert read_pprof(open(made, "rb").read())["samples"]
    with open(cut, "wb") as f:
        f.write(b"no trace at all")
    os.unlink(made)
    code, _, err = run("profile", "-o", made, cut)
    assert code == 1 and err and not os.path.exists(made), f"exit {code}: {err}"


def no_room():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@test
def a_file_is_whole_or_not_there():
    for suffix in ("pb.gz", "folded", "json"):
        made = os.path.join(WORK, "whole." + suffix)
        code, _, err = run("profile", "-o", made, EXAMPLES[3], preexec_fn=no_room)
        assert code == 3 and "cannot write" in err, f"exit {code}: {err}"
        assert not os.path.exists(made), suffix
        code, _, err = run("profile", "-o", os.path.join(WORK, "no", "f." + suffix), EXAMPLES[3])
        assert code == 3 and "cannot write" in err, f"exit {code}: {err}"


@test
def the_tree_leaves_out_what_is_small():
    path = EXAMPLES[3]
    few, more = (good("profile", "--min=" + n, path).splitlines() for n in ("20%", "0"))
    assert 2 < len(few) < len(more) and b"left out" in few[-1] and b"left out" not in more[-1]
    equal([line for line in few[:-1] if line not in more], [])


if __name__ == "__main__":
    sys.exit(main())
