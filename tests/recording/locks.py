"""trail locks on a program whose chain of waits is known: see locks.c. TAP.

usage: locks.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = tempfile.TemporaryDirectory(prefix="trail-locks-")
TRACE = os.path.join(WORK.name, "x.trace")


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{args}: status {done.returncode}: {done.stderr}"
    return done.stdout


TOLD = run(TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM)
FOUND = json.loads(run(TRAIL, "locks", "--json", TRACE))
LOCKS = {lock["name"]: lock for lock in FOUND["locks"]}
UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def functions(rows, key="stack"):
    return [{frame["function"] for frame in row.get(key, [])} for row in rows]


def holds(path):
    """Of each hold: the lock's name, whether a coarse clock gave its begin, and its length in ns."""
    found = re.findall(r'log held: "(?:mutex|rwlock to write) (\w+) (~?)([\d.]+)(ns|us|ms|s)"', run(TRAIL, "print", path))
    return [(name, bool(coarse), round(float(number) * UNITS[unit])) for name, coarse, number, unit in found]


# Lengths have three digits, rounded: half of the last of 1.00 is the most that is lost.
ROUNDED = 0.005
# The begin by a coarse clock is taken to be half a step of 1 ms after that step: at most so much after the true begin.
HALF_STEP = 5e5


def at_least(ns, least, coarse):
    """The program's own clock was read within the hold: however late a thread runs, the trace has no shorter hold."""
    return ns * (1 + ROUNDED) + (HALF_STEP if coarse else 0) >= least


def at_most(ns, most):
    """So with its clock around the hold; where the begin is of the clock itself."""
    return ns * (1 - ROUNDED) <= most


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
def holds_lasted_as_long_as_the_clock_says():
    told, found = [line.split() for line in TOLD.splitlines()], holds(TRACE)
    assert sorted(name for name, *_ in told) == ["orders_mu", "stock_mu"], told
    for name, least, most in told:
        # Its waiter has it next: for longer, if it is not on a CPU then.
        coarse, ns = next((coarse, ns) for of, coarse, ns in found if of == name)
        assert LOCKS[name]["longest_hold"]["ns"] >= ns, LOCKS[name]
        assert at_least(ns, int(least), coarse), (name, coarse, ns, least)
        assert coarse or at_most(ns, int(most)), (name, ns, most)


@test
def the_chain_leads_from_the_clerk_to_who_counts_the_stock():
    # On a busy machine the main thread may wait longer for the packer's end, and that for the clerk's.
    lengths = [of["end_ns"] - of["begin_ns"] for of in FOUND["chains"]]
    assert lengths == sorted(lengths, reverse=True), lengths
    names = [[link["name"] for link in of["links"]][:2] for of in FOUND["chains"]]
    assert names.count(["orders_mu", "stock_mu"]) == 1, FOUND["chains"]
    chain = FOUND["chains"][names.index(["orders_mu", "stock_mu"])]
    assert [link["group"] for link in chain["links"]][:2] == ["clerk", "packer"], chain
    assert chain["links"][1]["holder_group"] == "main", chain
    assert chain["end_ns"] - chain["begin_ns"] >= 19_000_000, chain


@test
def find_tells_who_released_it():
    found = json.loads(run(TRAIL, "find", "--json", TRACE, "log[wait] then directly block[sync] by count_stock"))
    assert [hit["group"] for hit in found["hits"]] == ["packer"], found


def holds_while_others_are_taken_often():
    """Of each hold in one recording: whether its begin is by the coarse clock, its length, and its bounds; None: one is lost."""
    told = [line.split() for line in run(TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "often").splitlines()]
    found = [hold for hold in holds(TRACE) if hold[0] == "ledger_mu"]
    assert len(told) == 20 and len(found) <= 20, found
    if len(found) < 20:
        return None
    rows = [(coarse, ns, int(least), int(most)) for (_, coarse, ns), (_, least, most) in zip(found, told)]
    for coarse, ns, least, most in rows:
        assert at_least(ns, least, coarse) and (coarse or at_most(ns, most)), (coarse, ns, least, most)
    return rows


def is_as_on_an_idle_machine(rows):
    """Most holds by the coarse clock, and there are some, begin within two ticks of the truth; the last one is exact."""
    coarse = [(ns, most) for is_coarse, ns, _, most in rows or [] if is_coarse]
    close = [ns for ns, most in coarse if ns * (1 - ROUNDED) <= most + 2e6]
    return len(close) * 2 > len(coarse) and not rows[-1][0]


@test
def holds_are_told_while_other_locks_are_taken_often():
    """
    Then by a clock that only ticks, which their times say; and by the clock itself when that is over. The recorder
    looks how often locks are taken, and lets that clock tick, when the machine lets it: a clock that stands still for
    a hold shows none. So this is right in one of ten recordings; no length may be wrong in any.
    """
    seen = []
    for _ in range(10):
        seen.append(holds_while_others_are_taken_often())
        if is_as_on_an_idle_machine(seen[-1]):
            return
    raise AssertionError(seen)


sys.exit(tap.main())
