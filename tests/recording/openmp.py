#!/usr/bin/env python3
"""`trail record` on OpenMP programs that know which thread waits where, how long and for which thread (openmp.c). TAP.

usage: openmp.py TRAIL

clang builds the program with LLVM's OpenMP library, gcc with its own, which LLVM's library replaces in
recordings. Each build runs with waits that spin, as by default, and with waits that sleep immediately.
Compilers and libraries that are not installed count as skipped.

Nothing depends on how long anything takes: times are compared with the program's own, and may differ
from them by the time that the kernel counts as waiting for a CPU.
"""

import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from go_readers import go_of
from recorded import Trace, is_whole
from tap import finish, skip

TRAIL = os.path.abspath(sys.argv[1])
SOURCES = os.path.dirname(os.path.abspath(__file__))
GO = go_of("1.23") or ""
WORK = work.folder("openmp")
ENV = {k: v for k, v in os.environ.items() if not re.match("OMP_|KMP_|GOMP_|LD_PRELOAD$|TRAIL_", k)}
ENV |= {"LC_ALL": "C", "OMP_DYNAMIC": "false", "GOTOOLCHAIN": "local", "HOME": WORK}

LIMIT = 120  # s, in case something hangs
SHARE, LEAST_NS = 0.05, 50_000  # allowed difference between two measurements of a length, the greater of the two
CLOCK_NS = 1_000
MAYBE_NS = 300_000  # the program cannot know whether shorter waits happened



def report(name, wrong):
    """`wrong` is a list or text of errors, empty if there are none."""
    tap.report(not wrong, name, *(wrong if isinstance(wrong, list) else [wrong]))


def run(*args, **env):
    p = subprocess.run(args, capture_output=True, env={**ENV, **env}, timeout=LIMIT)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def events(path):
    code, out, err = run(TRAIL, "print", "--format=jsonl", path)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


class Program:
    """One build of openmp.c, or of another source, with one way of waiting."""

    def __init__(self, compiler, how, options, source="openmp", **env):
        self.name, self.options, self.env = f"{compiler}, {how}", options, env
        self.path = os.path.join(WORK, f"{source}-{compiler}")

    def record(self, scenario, path, *options, **env):
        command = [TRAIL, "record", *self.options, *options, "-o", path, "--", self.path, scenario]
        return run(*command, **{**self.env, **env})


def accepted(name, path):
    code, out, err = run(TRAIL, "check", path)
    report(f"{name}: trail check accepts the trace", out + err if code else "")
    if not os.access(GO, os.X_OK):
        skip(f"{name}: go tool trace reads the trace", "no golang-1.23")
        return
    code, out, err = run(GO, "tool", "trace", "-d=1", path)
    report(f"{name}: go tool trace reads the trace", err if code else "")


# Answers


def is_what(wait, kind):
    """Locks that are variables have their names; other locks, and barriers, have their addresses."""
    if wait.object != kind and not re.fullmatch(re.escape(kind) + "( 0x[0-9a-f]+( .first seen locked in .*)?)?", wait.object):
        return False
    return wait.reason == ("system goroutine wait" if kind == "OpenMP work" else "sync")


def wait_of(trace, answer):
    end = answer["end"] or answer["at"]
    found = [
        w
        for w in trace.waits
        if w.tid == answer["tid"]
        and answer["begin"] - CLOCK_NS <= w.begin <= end
        and not w.of_kernel
    ]
    return next((w for w in found if w.object.startswith("OpenMP")), found[0] if found else None)


def length(answer):
    return (answer["end"] or answer["at"]) - answer["begin"]


def close(a, b, answer):
    return abs(a - b) <= max(SHARE * length(answer), LEAST_NS) + answer["delay"]


def wrong_names(answer, wait):
    if not is_what(wait, answer["kind"]):
        yield f"waits for {wait.object!r}, reason {wait.reason!r}"
    if wait.functions[:1] != [answer["in"]]:
        yield f"waits in {wait.functions}"
    if wait.waker != answer["waker"]:
        yield f"waker is {wait.waker} in {wait.waker_functions}"
    if answer["by"] and wait.waker and not any(f.split(".")[0] == answer["by"] for f in wait.waker_functions):
        yield f"waker lets in in {wait.waker_functions}"


def wrong_times(answer, wait):
    # wait_of allows for an early start: the thread cannot wait before it reads its clock.
    if not close(wait.begin, answer["begin"], answer):
        yield f"begins at {wait.begin}"
    if answer["end"] and not (close(wait.end or 0, answer["end"], answer) and wait.end <= answer["end"] + CLOCK_NS):
        yield f"ends at {wait.end}"
    if answer["at"] and not (close(wait.ready or 0, answer["at"], answer) and wait.ready >= answer["at"] - CLOCK_NS):
        yield f"is let in at {wait.ready}"


def is_late(answer, wait):
    """A thread that lost its CPU may arrive after the release: its wait is short, and has no waker."""
    return answer["at"] and (wait.begin if wait else answer["begin"]) >= answer["at"]


def compare(answers, trace):
    missing, names, times = [], [], []
    for answer in answers:
        wait = wait_of(trace, answer)
        if is_late(answer, wait) and answer["delay"] > MAYBE_NS:
            continue
        if wait:
            names += [f"{answer}: {why}" for why in wrong_names(answer, wait)]
            times += [f"{answer}: {why}" for why in wrong_times(answer, wait)]
        elif length(answer) > MAYBE_NS + answer["delay"]:
            missing.append(answer)
    return missing, names, times


# The number of waits in each scenario.
ANSWERS = {
    "slow-worker": 1, "slow-main": 2, "barriers": 4, "criticals": 4, "locks": 8, "ordered": 1, "tasks": 1,
    "interrupted": 1,
}  # fmt: skip


def twice(trace):
    """Returns waits of the OpenMP library itself within an OpenMP wait."""
    outer = [w for w in trace.waits if w.object.startswith("OpenMP")]
    return [
        f"{inner} in {w}"
        for w in outer
        for inner in trace.waits
        if inner.tid == w.tid and w.begin < inner.begin < (w.end or 0) and not inner.object.startswith("OpenMP")
    ]


def test_answers(program, scenario):
    """Each wait: where, for what, for which thread, and how long."""
    name, path = f"{program.name}: {scenario}", os.path.join(WORK, "answers.trace")
    code, out, err = program.record(scenario, path)
    if code or not is_whole(err):
        report(f"{name}: is recorded", f"exit {code}: {err}")
        return
    answers, trace = [json.loads(line) for line in out.splitlines()], Trace(TRAIL, path, ENV)
    missing, names, times = compare(answers, trace)
    report(f"{name}: every wait is in the trace", missing or len(answers) != ANSWERS[scenario] and f"{len(answers)} waits")
    report(f"{name}: for what it waited, where, and who let it in", names)
    report(f"{name}: how long it waited", times)
    report(f"{name}: what OpenMP waits for within is not told again", twice(trace))
    accepted(name, path)




def test_tries(program):
    """Testing a lock does not count as waiting for it: the sleep afterwards is recorded."""
    path = os.path.join(WORK, "tries.trace")
    code, out, err = program.record("tries", path)
    answer, trace = json.loads(out), Trace(TRAIL, path, ENV)
    of = [w for w in trace.waits if w.tid == answer["tid"]]
    sleeps = [w for w in of if w.reason == "sleep" and answer["begin"] - CLOCK_NS <= w.begin <= answer["end"]]
    report(f"{program.name}: a lock that is only tried for is not waited for", "" if len(sleeps) == 1 else of)
    report(f"{program.name}: nor said to be", [w for w in of if w.object.startswith("OpenMP lock")])


def test_structure(program):
    """Tasks and regions of all kinds; each region ends where it should."""
    path = os.path.join(WORK, "many.trace")
    wanted = run(program.path, "many")[1]
    code, out, err = program.record("many", path)
    report(f"{program.name}: a program with all there is computes the same", out if out != wanted else "")
    accepted(f"{program.name}: all there is", path)
    found = events(path)
    begun = [e for e in found if e["kind"] == "TaskBegin"]
    ended = [e for e in found if e["kind"] == "TaskEnd"]
    kinds = [e["name"].split(":")[0] for e in begun]
    # fibonacci(12) makes 464 tasks, the ten calls of fibonacci(2) two each, and the group one per
    # thread.
    explicit = kinds.count("task") - 464 - 20 - 4
    report(
        f"{program.name}: each parallel region and task is a task",
        f"{kinds.count('parallel')} parallel, {kinds.count('task')} tasks"
        if kinds.count("parallel") != 1 or not 1 <= explicit <= 20
        else "",
    )
    report(f"{program.name}: they are named by where they are", [
        n for n in {e["name"] for e in begun} if not re.fullmatch(r"(parallel: many|task: (many|fibonacci|\.?omp_).*) \(openmp\.c:\d+\)", n.replace("._omp_fn", " _omp_fn"))
    ])  # fmt: skip
    report(f"{program.name}: each ends", f"{len(begun)} begin, {len(ended)} end" if len(begun) != len(ended) else "")
    parents = {e["task"]: e.get("parent") for e in begun}
    top = next(e["task"] for e in begun if e["name"].startswith("parallel"))
    report(f"{program.name}: a task is a child of who created it", [
        e for e in begun if e["task"] != top and e.get("parent") not in parents
    ])  # fmt: skip
    regions = [e for e in found if e["kind"] in ("RegionBegin", "RegionEnd")]
    names = {e["name"] for e in regions}
    # gcc compares thread numbers itself for `masked` constructs.
    wanted = {"implicit task", "explicit task", "single", "loop"} | ({"masked"} if program.options == [] else set())
    report(f"{program.name}: what threads do in them are regions", sorted(wanted - names))
    report(f"{program.name}: each region ends", unbalanced(regions))
    workers = {e["g"] for e in regions if e["name"] == "implicit task"}
    report(f"{program.name}: each thread has an implicit task", "" if len(workers) == 4 else str(workers))
    named = [t.created_as for t in Trace(TRAIL, path, ENV).threads]
    report(f"{program.name}: workers have a name", "" if named.count("OpenMP worker") == 3 else str(named))


def unbalanced(regions):
    piles, wrong = {}, []
    for e in regions:
        pile = piles.setdefault(e["g"], [])
        if e["kind"] == "RegionBegin":
            pile.append((e["task"], e["name"]))
        elif not pile or pile.pop() != (e["task"], e["name"]):
            wrong.append(e)
    return wrong + [pile for pile in piles.values() if pile]


def test_nested(program):
    path = os.path.join(WORK, "nested.trace")
    program.record("nested", path)
    begun = [e for e in events(path) if e["kind"] == "TaskBegin"]
    outer = [e["task"] for e in begun if re.match(r"parallel: nested\b", e["name"])]
    inner = [e.get("parent") for e in begun if re.match(r"parallel: inner\b", e["name"])]
    report(
        f"{program.name}: a parallel region in another is its child",
        "" if len(outer) == 1 and inner == outer * 2 else str(begun),
    )
    accepted(f"{program.name}: nested", path)


def test_processes(program):
    path = os.path.join(WORK, "process.trace")
    for scenario, wanted in (
        ("forks", ["before 2", "child 2", "parent 2", "0"]),
        ("execs", ["before 2", "after 2"]),
    ):
        code, out, err = program.record(scenario, path)
        report(f"{program.name}: {scenario}", f"exit {code}: {out}{err}" if code or out.split("\n")[:-1] != wanted else "")
        accepted(f"{program.name}: {scenario}", path)
    for old in (f for f in os.listdir(WORK) if f.startswith("children")):
        os.remove(os.path.join(WORK, old))
    code, out, err = program.record("forks", os.path.join(WORK, "children.trace"), "--children", "--split")
    traces = [os.path.join(WORK, f) for f in os.listdir(WORK) if f.startswith("children")]
    report(f"{program.name}: each process has a trace", "" if len(traces) == 2 and code == 0 else f"{traces} {err}")
    for trace in traces:
        accepted(f"{program.name}: {os.path.basename(trace).split('.')[1].isdigit() and 'child' or 'parent'}", trace)
        kinds = [e for e in events(trace) if e["kind"] == "TaskBegin" and e["name"].startswith("parallel: count")]
        report(f"{program.name}: with its parallel regions", "" if kinds else "none")


def test_options(program):
    path = os.path.join(WORK, "options.trace")
    code, out, err = program.record("locks", path, "--only=sleep")
    trace = Trace(TRAIL, path, ENV)
    what = [w.object for w in trace.waits if w.object.startswith("OpenMP")]
    report(f"{program.name}: --only=sleep leaves OpenMP out", what or [e for e in events(path) if e["kind"] == "TaskBegin"])
    code, out, err = program.record("locks", path, "--only=openmp")
    trace = Trace(TRAIL, path, ENV)
    what = [w for w in trace.waits if not w.object.startswith("OpenMP") and not w.of_kernel]
    report(f"{program.name}: --only=openmp has nothing else", what or "" if trace.waits else "no waits")
    code, out, err = program.record("locks", path, "--stacks=none")
    accepted(f"{program.name}: without stacks", path)
    code, out, err = program.record("slow-worker", path, OMP_TOOL="disabled")
    tasks = [e for e in events(path) if e["kind"] == "TaskBegin"]
    report(f"{program.name}: OMP_TOOL=disabled is obeyed", f"exit {code} {tasks}" if code or tasks else "")
    code, out, err = program.record("slow-worker", path, OMP_TOOL_LIBRARIES="/nonexistent.so")
    tasks = [e for e in events(path) if e["kind"] == "TaskBegin"]
    report(f"{program.name}: a tool of the user's is tried first, and ours after it", "" if len(tasks) == 1 else err)


def test_holds(program):
    """Which thread held a lock, for how long, and where it took it."""
    path = os.path.join(WORK, "holds.trace")
    program.record("locks", path)
    holds = [
        e for e in events(path) if e.get("type") == "UserLog" and e["category"] == "held" and "OpenMP" in e["message"]
    ]
    units = {"us": 1e3, "ms": 1e6, "s": 1e9}
    wrong, long = [], 0
    for e in holds:
        found = re.fullmatch(r"OpenMP lock the_(nest_)?lock ([\d.]+)(us|ms|s)", e["message"])
        if not found or e["stack"][0]["func"] != ("with_nest_lock" if found[1] else "with_lock"):
            wrong.append(e)
        elif float(found[2]) * units[found[3]] >= 15e6:
            long += 1
    # The thread that is waited for sleeps at least 15 ms. The other eight holds are short, unless a
    # thread lost its CPU.
    few = long < 8 or len(holds) > 16
    report(f"{program.name}: holds that were waited for", wrong or (str(holds) if few else ""))


def test_without_recorder(program, tool):
    """The library named by OMP_TOOL_LIBRARIES does nothing without a recorder."""
    wanted = run(program.path, "many")
    code, out, err = run(program.path, "many", OMP_TOOL_LIBRARIES=tool, OMP_TOOL_VERBOSE_INIT="stdout")
    report(f"{program.name}: without a recorder it is not registered", "" if "not using the OMPT interface" in out else out)
    got = run(program.path, "many", OMP_TOOL_LIBRARIES=tool)
    report(f"{program.name}: and the program runs as ever", "" if got == wanted else str(got))


def test_gcc_is_told(program):
    """A program with gcc's own library is recorded as a threaded program; a message says how to record more."""
    path = os.path.join(WORK, "gcc.trace")
    code, out, err = run(TRAIL, "record", "-o", path, "--", program.path, "barriers")
    said = [line for line in err.splitlines() if "--openmp replaces" in line]
    report("gcc's OpenMP: --openmp is named in one line", "" if len(said) == 1 else err)
    code, out, err = run(TRAIL, "record", "-q", "-o", path, "--", program.path, "barriers")
    report("gcc's OpenMP: not with --quiet", err)
    accepted("gcc's OpenMP", path)


def build(compiler, source="openmp"):
    path = os.path.join(WORK, f"{source}-{compiler}")
    if not shutil.which(compiler):
        return f"no {compiler}"
    p = subprocess.run(
        [compiler, "-g", "-O2", "-D_GNU_SOURCE", "-fopenmp", "-fno-optimize-sibling-calls", os.path.join(SOURCES, source + ".c"), "-o", path],
        capture_output=True,
        text=True,
    )
    return f"{compiler} -fopenmp: {p.stderr.splitlines()[-1]}" if p.returncode else ""


def test_window():
    """A task for which libomp wakes no thread runs in its creator's taskwait, recorded or not (openmp_window.c)."""
    why = build("clang", "openmp_window")
    if why:
        report("clang: openmp_window.c is built", why)
        return
    program, path = Program("clang", "sleeping", [], "openmp_window", KMP_BLOCKTIME="0"), os.path.join(WORK, "window.trace")
    for how, results in (
        ("without a recorder", run(program.path, "held", **program.env)),
        ("recorded", program.record("held", path)),
    ):
        print(f"# {how}: {results[1].strip()}")
        report(
            f"{program.name}, {how}: taskwait runs a task for which no thread was woken",
            "" if results[0] == 0 and results[1].endswith(", ran 1\n") else str(results),
        )
    accepted(f"{program.name}: a thread that is held before it sleeps", path)
    results = program.record("late", path)
    report(
        f"{program.name}: a thread that comes to the barrier after a task is made runs it",
        "" if results[0] == 0 and results[1] == "held 0, ran meanwhile 1, ran 1\n" else str(results),
    )


def tool_path():
    """Returns the value that `trail record` sets."""
    code, out, err = run(TRAIL, "env", "--for=systemd")
    return re.search(r'OMP_TOOL_LIBRARIES=([^"]*)', out)[1]


def test_program(program):
    for scenario in ANSWERS:
        test_answers(program, scenario)
    test_tries(program)
    test_structure(program)
    test_nested(program)


for compiler, options in (("clang", []), ("gcc", ["--openmp"])):
    why = build(compiler)
    spins = Program(compiler, "spinning", options)
    if not why:
        code, out, err = spins.record("slow-worker", os.path.join(WORK, "try.trace"))
        why = err.strip() if code == 2 and "libomp" in err else ""
    if why:
        skip(f"OpenMP by {compiler}", why)
        continue
    test_program(spins)
    for scenario in ANSWERS:
        test_answers(Program(compiler, "without the kernel's switches", [*options, "--switches=off"]), scenario)
    test_program(Program(compiler, "sleeping", options, KMP_BLOCKTIME="0"))
    test_processes(spins)
    test_options(spins)
    test_holds(spins)
    if compiler == "gcc":
        test_gcc_is_told(spins)
    else:
        test_without_recorder(spins, tool_path())
        test_window()
sys.exit(finish())
