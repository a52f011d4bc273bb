"""trail locks on a program whose chain of waits is known: see locks.c. TAP.

usage: locks.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "analyze"))
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


def functions(rows, key="stack"):
    return [{frame["function"] for frame in row.get(key, [])} for row in rows]


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
        held = max(LOCKS[name]["held"], key=lambda row: row["ns"])
        assert holder in functions([held])[0] and holder in functions([held], "released")[0], held


@test
def holds_lasted_as_long_as_the_clock_says():
    for line in TOLD.splitlines():
        name, least, most = line.split()
        longest = LOCKS[name]["longest_hold"]["ns"]
        # Three digits, rounded; and the beginning of a hold that nobody waited for before is known to a millisecond.
        assert int(least) * 0.99 - 5e6 <= longest <= int(most) * 1.01 + 5e6, f"{longest}: {line}"


@test
def the_chain_leads_from_the_clerk_to_who_counts_the_stock():
    chain = FOUND["chains"][0]
    assert [link["name"] for link in chain["links"]][:2] == ["orders_mu", "stock_mu"], chain
    assert [link["group"] for link in chain["links"]][:2] == ["clerk", "packer"], chain
    assert chain["links"][1]["holder_group"] == "main", chain
    assert chain["end_ns"] - chain["begin_ns"] >= 19_000_000, chain


@test
def find_tells_who_released_it():
    found = json.loads(run(TRAIL, "find", "--json", TRACE, "log[wait] then directly block[sync] by count_stock"))
    assert [hit["group"] for hit in found["hits"]] == ["packer"], found


@test
def holds_are_told_while_other_locks_are_taken_often():
    """Then by a clock that only ticks, which their times say; and by the clock itself when that is over."""
    told = run(TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "often").splitlines()
    holds = re.findall(r'log held: "mutex ledger_mu (~?)([\d.]+)ms"', run(TRAIL, "print", TRACE))
    assert len(holds) == len(told) == 20, holds
    assert holds[-1][0] == "" and any(coarse for coarse, _ in holds[:10]), holds
    for (coarse, ms), line in zip(holds, told):
        _, least, most = line.split()
        # To a tenth; a tick of the coarse clock comes late on a busy machine.
        error = 5e6 if coarse else 5e4
        assert int(least) - error <= float(ms) * 1e6 <= int(most) + error, (coarse, ms, line)


sys.exit(tap.main())
