"""Code shared by the tests of exports: running the command, and the figures that an export must add up to."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, SHARED, TRAIL, WORK, answer, assembled, good as trail, trace as data  # noqa: E402, F401

STATES = ("running", "runnable", "waiting", "syscall", "syscall without P", "waiting in the kernel")

OF_THREADS = ("trail record", "trail import")  # what makes traces of programs with threads


def path(name):
    return os.path.join(WORK, name)


def examples():
    """The available recorded traces: those of the tree, and small shared ones."""
    found = {}
    for where in (os.path.join(ROOT, "examples", "traces"), os.path.join(SHARED, "real")):
        for name in sorted(os.listdir(where)) if os.path.isdir(where) else ():
            if name.endswith(".trace") and os.path.getsize(os.path.join(where, name)) < 600_000:
                found[name] = os.path.join(where, name)
    return found


def expected(trace, *args):
    """{(goroutine, state, reason): ns} as in `trail goroutines`, and {goroutine: name}. A goroutine that is in a system
    call without its P up to the end is counted as Go does; `corrected` has its true times."""
    times, names = {}, {}
    for g in answer("goroutines", *args, trace)["goroutines"]:
        right = {**g, **g.get("corrected", {})}
        names[g["id"]] = g["name"]
        for key, state in (
            ("exec_ns", "running"),
            ("sched_wait_ns", "runnable"),
            ("syscall_ns", "syscall"),
            ("syscall_block_ns", "syscall without P"),
        ):
            add(times, (g["id"], state, ""), right[key])
        # For a recorded program, the kind of a wait is more specific than Go's reason, and exports have its object,
        # too.
        for reason, ns in g["block_ns"].items() if "waits" not in g else ():
            add(times, (g["id"], "waiting", reason), ns)
        for wait in g.get("waits", ()):
            add(times, (g["id"], "waiting", wait["wait_kind"] or wait["reason"]), wait["ns"])
    return {key: ns for key, ns in times.items() if ns}, names


def is_of_threads(trace):
    return answer("info", trace).get("made_by") in OF_THREADS


def expected_threads(trace):
    """The same for a recording, by TID: events name the thread that ran with a number."""
    times, names = expected(trace)
    tids = {e["g"]: e["m"] for e in map(json.loads, trail("print", "--format=jsonl", trace).splitlines())
            if e.get("g") and e.get("m", -1) > 0}
    assert names.keys() == tids.keys() and len(set(tids.values())) == len(tids) > 1, (names, tids)
    words = {"syscall without P": "waiting in the kernel"}
    return ({(tids[g], words.get(state, state), reason): ns for (g, state, reason), ns in times.items()},
            {tids[g]: name for g, name in names.items()})


def awaited(trace):
    """{(kind, object)} of the mutexes that a recording waits for, as in `trail locks`."""
    return {("mutex", lock["object"]) for lock in answer("locks", trace)["locks"] if lock["wait_kind"] == "mutex" and lock["waits"]}


def add(times, key, ns):
    times[key] = times.get(key, 0) + ns


def by_kind(sums, kinds):
    """The same with "mutex" instead of "mutex stats_mu"."""
    merged = {}
    for (g, state, reason), ns in sums.items():
        kind = reason if reason in kinds else next((kind for kind in kinds if kind and reason.startswith(kind + " ")), reason)
        add(merged, (g, state, kind), ns)
    return merged


def compare(what, ours, theirs):
    ours = by_kind({key: ns for key, ns in ours.items() if ns}, {reason for _, _, reason in theirs})
    wrong = [(key, ours.get(key), theirs.get(key)) for key in {*ours, *theirs} if ours.get(key) != theirs.get(key)]
    assert theirs, f"{what}: nothing to compare"
    assert not wrong, f"{what}: {len(wrong)} of {len(theirs)} differ: {sorted(wrong, key=str)[:4]}"


def disjoint(what, spans):
    """Asserts that spans of one place do not overlap, and that none ends before it begins. [(begin, end)]"""
    last = None
    for begin, end in sorted(spans):
        assert begin <= end, f"{what}: ends before it begins: {begin} {end}"
        assert last is None or begin >= last, f"{what}: {begin} is before the end of the one before, {last}"
        last = end
