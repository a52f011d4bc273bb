"""trail locks on a program with a known chain of waits: see locks.c. TAP.

usage: locks.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import math
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from recorded import Trace
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = work.folder("locks")
TRACE = os.path.join(WORK, "chain.trace")


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{args}: status {done.returncode}: {done.stderr}"
    return done.stdout


def record(trace, *words):
    """Returns the program's own measurements: for each hold the lock's name, which clock gave its
    start, and the least and most ns."""
    measured = run(TRAIL, "record", "-q", "-o", trace, "--", PROGRAM, *words)
    with open(trace + ".out", "w") as file:
        file.write(measured)
    return [(name, begin, int(least), int(most)) for name, begin, least, most in map(str.split, measured.splitlines())]


MEASURED = record(TRACE)
FOUND = json.loads(run(TRAIL, "locks", "--json", TRACE))
LOCKS = {lock["name"]: lock for lock in FOUND["locks"]}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def functions(rows, key="stack"):
    return [{frame["function"] for frame in row.get(key, [])} for row in rows]


def holds(path):
    """Returns for each hold the lock's name, whether a coarse clock gave its start, and its length in ns."""
    found = re.findall(r'log held: "(?:mutex|rwlock to write|spin lock) (\w+) (~?)([\d.]+)(ns|us|ms|s)"', run(TRAIL, "print", path))
    return [(name, bool(coarse), round(float(number) * UNITS[unit])) for name, coarse, number, unit in found]


# Allowed difference between two clocks: the trace's is a scaled CPU counter.
CLOCK_NS = 1_000
# Lengths are rounded to three digits: the largest error is half the last digit of 1.00.
ROUNDED = 0.005
# A hold that starts by the coarse clock is placed half a 1 ms step after it: at most this much
# later than the true start.
HALF_STEP = 5e5


def is_right(ns, least, most):
    return ns * (1 + ROUNDED) >= least and ns * (1 - ROUNDED) <= most


@test
def each_lock_was_waited_for_once():
    for name, kind, waiter in (
        ("orders_mu", "mutex", "take_orders"),
        ("stock_mu", "mutex", "pack"),
        ("prices_lock", "rwlock", "read_prices"),
    ):
        lock = LOCKS[name]
        assert (lock["kind"], lock["waits"], lock["unfinished"]) == (kind, 1, 0), lock
        assert waiter in functions(lock["waiters"])[0], lock["waiters"]


@test
def who_held_it_took_and_released_it_there():
    for name, holder in (("orders_mu", "pack"), ("stock_mu", "count_stock"), ("prices_lock", "write_prices")):
        rows = LOCKS[name]["held"]
        there = [holder in of and holder in to for of, to in zip(functions(rows), functions(rows, "released"))]
        assert there.count(True) == 1, rows


@test
def the_recorder_names_the_holder_beside_the_waker():
    trace = os.path.join(WORK, "screen.trace")
    done = subprocess.run([TRAIL, "record", "-o", trace, "--", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    (orders,) = re.findall(r"^    take_orders \(.*", done.stderr, re.M)
    assert re.search(r", held by pack \(locks\.c:\d+\), woken by pack \(locks\.c:\d+\)$", orders), orders
    (stock,) = re.findall(r"^    pack \(.*", done.stderr, re.M)
    assert re.search(r", held by count_stock \(locks\.c:\d+\), woken by count_stock ", stock), stock


@test
def holds_lasted_as_long_as_the_clock_says():
    measured = [row for row in MEASURED if row[0] != "chain"]
    found = holds(TRACE)
    assert sorted(name for name, *_ in measured) == ["orders_mu", "stock_mu"], measured
    for name, _, least, most in measured:
        # The thread that waits next may have it longer, if it is not on a CPU then.
        coarse, ns = next((coarse, ns) for of, coarse, ns in found if of == name)
        assert LOCKS[name]["longest_hold"]["ns"] >= ns, LOCKS[name]
        # The recorder uses the coarse clock if it cannot read a counter.
        bounds = (least - HALF_STEP, math.inf) if coarse else (least, most)
        assert is_right(ns, *bounds), (name, coarse, ns, least, most)


@test
def an_unlock_that_fails_ends_no_hold():
    """The inner unlock of a recursive mutex does not end the hold either."""
    trace = os.path.join(WORK, "kept.trace")
    measured, found = record(trace, "kept"), holds(trace)
    rows = {lock["name"]: lock for lock in json.loads(run(TRAIL, "locks", "--json", trace))["locks"]}
    for name, _, least, most in measured:
        coarse, ns = next((coarse, ns) for of, coarse, ns in found if of == name)
        assert is_right(ns, least - (HALF_STEP if coarse else 0), math.inf if coarse else most), (name, found, measured)
        assert any("keeps" in of for of in functions(rows[name]["held"])), rows[name]["held"]
    assert len(measured) == 4, measured


@test
def the_thread_that_took_a_lock_is_its_holder():
    """Another one releases it, and so wakes the waiter, but has never held it."""
    trace = os.path.join(WORK, "baton.trace")
    record(trace, "baton")
    found = json.loads(run(TRAIL, "locks", "--json", trace))
    (lock,) = [lock for lock in found["locks"] if lock["name"] == "baton_mu"]
    (held,) = [row for row in lock["held"] if "awaits_baton" not in functions([row])[0]]
    assert functions([held]) == [{"takes_baton"}] and "drops_baton" in functions([held], "released")[0], held
    (starter,) = [of.goroutine for of in Trace(TRAIL, trace).named("starter")]
    assert held["longest"]["goroutine"] == lock["longest_hold"]["goroutine"] == starter, (lock, starter)
    found = json.loads(run(TRAIL, "find", "--json", trace, "log[wait] then directly block[sync] by drops_baton"))
    assert [hit["group"] for hit in found["hits"]] == ["finisher"], found


@test
def a_lock_that_another_thread_has_released_is_not_held():
    """The lock itself shows that: the thread that took it for reading does not know."""
    path = os.path.join(WORK, "lane.trace")
    record(path, "lane")
    trace = Trace(TRAIL, path)
    (runner,) = [of.goroutine for of in trace.named("runs_in_lane")]
    logs = [(event["category"], event["message"]) for event in trace.events if event.get("category") in ("holds", "wait") and event["g"] == runner]
    # If the lock was released at once, it did not wait for that.
    given = max((i for i, (category, message) in enumerate(logs) if category == "wait" and "lane_given" in message), default=-1)
    held = [message for category, message in logs[given + 1 :] if category == "holds"]
    assert held == ["mutex bib_mu"], logs


@test
def the_chain_leads_from_the_clerk_to_who_counts_the_stock():
    # On a busy machine the main thread may wait longer for the packer to exit, and the packer for
    # the clerk.
    lengths = [of["end_ns"] - of["begin_ns"] for of in FOUND["chains"]]
    assert lengths == sorted(lengths, reverse=True), lengths
    names = [[link["name"] for link in of["links"]][:2] for of in FOUND["chains"]]
    assert names.count(["orders_mu", "stock_mu"]) == 1, FOUND["chains"]
    chain = FOUND["chains"][names.index(["orders_mu", "stock_mu"])]
    assert [link["group"] for link in chain["links"]][:2] == ["clerk", "packer"], chain
    assert chain["links"][1]["holder_group"] == "main", chain
    (least,) = [least for name, _, least, _ in MEASURED if name == "chain"]
    assert chain["end_ns"] - chain["begin_ns"] >= least - CLOCK_NS, (chain, least)


@test
def find_tells_who_released_it():
    found = json.loads(run(TRAIL, "find", "--json", TRACE, "log[wait] then directly block[sync] by count_stock"))
    assert [hit["group"] for hit in found["hits"]] == ["packer"], found


@test
def each_reader_has_a_hold_of_its_own():
    """Even if other readers hold the lock when the hold begins and ends."""
    trace = os.path.join(WORK, "readers.trace")
    measured = record(trace, "readers")
    (lock,) = [lock for lock in json.loads(run(TRAIL, "locks", "--json", trace))["locks"] if lock["name"] == "menu_lock"]
    held = {name: row for row in lock["held"] for name in functions([row])[0] if name.startswith("reads_")}
    assert sorted(held) == sorted(name for name, *_ in measured), lock["held"]
    for name, _, least, most in measured:
        # The coarse clock may have given its start.
        assert held[name]["count"] == 1 and is_right(held[name]["ns"], least - HALF_STEP, most + HALF_STEP), (held[name], least, most)


@test
def the_first_of_several_readers_is_not_called_the_holder():
    trace = os.path.join(WORK, "screen.trace")
    done = subprocess.run([TRAIL, "record", "-o", trace, "--", PROGRAM, "readers"], capture_output=True, text=True, timeout=120)
    (menu,) = re.findall(r"^    writes_menu \(.* rwlock.*", done.stderr, re.M)
    assert ", woken by reads_" in menu and "held by" not in menu, menu


@test
def a_late_reader_was_woken_by_the_writer():
    """By then another reader that was woken with it has released the lock."""
    path = os.path.join(WORK, "late.trace")
    record(path, "late")
    trace = Trace(TRAIL, path)
    waits = [wait for wait in trace.in_function("reads_late") if wait.object.startswith("rwlock")]
    assert waits and "writes_sign" in waits[-1].waker_functions, waits


@test
def holds_are_told_while_other_locks_are_taken_often():
    """During that time they are measured by a coarse clock, and marked as such; afterwards by the exact clock."""
    trace = os.path.join(WORK, "often.trace")
    measured = [row for row in record(trace, "often") if row[0] == "ledger_mu"]
    found = [hold for hold in holds(trace) if hold[0] == "ledger_mu"]
    assert len(found) == len(measured), (found, measured)
    assert [begin for _, begin, *_ in measured if begin != "either"] == ["coarse"] * 10 + ["exact"] * 10, measured
    for (_, coarse, ns), (_, begin, least, most) in zip(found, measured):
        assert begin == "either" or coarse == (begin == "coarse"), (found, measured)
        assert is_right(ns, least, most), (coarse, ns, begin, least, most)


@test
def a_thread_that_spins_waits_for_the_holder():
    """From when the lock was not free for 100 tries, which take far less than 1 ms."""
    trace = os.path.join(WORK, "spin.trace")
    measured, found = {name: (least, most) for name, _, least, most in record(trace, "spin")}, holds(trace)
    (lock,) = [lock for lock in json.loads(run(TRAIL, "locks", "--json", trace))["locks"] if lock["name"] == "till_lock"]
    assert (lock["kind"], lock["waits"], lock["unfinished"]) == ("spin lock", 1, 0), lock
    assert is_right(lock["wait_ns"], measured["spins"][0] - 1e6, measured["spins"][1]), (lock, measured)
    assert "spins_for_till" in functions(lock["waiters"])[0] and "holds_till" in functions(lock["held"])[0], lock
    coarse, ns = next((coarse, ns) for of, coarse, ns in found if of == "till_lock")
    least, most = measured["till_lock"]
    assert is_right(ns, least - (HALF_STEP if coarse else 0), math.inf if coarse else most), (found, measured)


sys.exit(tap.main())
