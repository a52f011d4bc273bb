#!/usr/bin/env python3
"""The order in which 'trail locks' lists the objects for which threads of contention.c waited. Prints TAP.

usage: contention.py TRAIL PROGRAM
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import work
from tap import main, test

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:])
TRACE = os.path.join(work.folder("contention"), "t.trace")
TURNS = 9  # of 10; all but the first find the lock taken


@test
def what_its_own_waiters_release_is_sorted_as_a_lock():
    subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM], check=True, timeout=600)
    done = subprocess.run([TRAIL, "locks", "--json", TRACE], check=True, capture_output=True, timeout=600)
    rows = {row["name"]: (at, row) for at, row in enumerate(json.loads(done.stdout)["locks"])}
    locks = [rows[name] for name in ("short_mu", "permits_sem", "lock_word")]
    work_at, work_row = rows["work_sem"]
    assert all(row["waits"] >= TURNS for _, row in locks), locks
    in_order = sorted(locks, key=lambda lock: -lock[1]["wait_ns"])
    assert [at for at, _ in in_order] == sorted(at for at, _ in locks), in_order
    # Three threads wait for work while two use the locks.
    assert all(row["wait_ns"] < work_row["wait_ns"] and at < work_at for at, row in locks), (locks, work_row)


sys.exit(main())
