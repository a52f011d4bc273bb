#!/usr/bin/env python3
"""Which functions end the waits that take longest? Prints, for each function that woke others: how long these had waited, how
often, and for what most.

usage: ended_waits.py TRACE
"""

import collections
import sys

import trail

trace = trail.open(sys.argv[1])
functions = dict(zip(*trace.columns("stacks", ["stack", "function"]).values()))
waits = collections.defaultdict(list)
for state in trace.rows("states", ["state", "duration_ns", "reason", "wait_kind", "object", "waker_stack"]):
    if state["state"] == "Waiting" and state["waker_stack"]:
        waits[functions[state["waker_stack"]]].append(state)

total = {function: sum(wait["duration_ns"] for wait in of) for function, of in waits.items()}
for function in sorted(total, key=total.get, reverse=True)[:10]:
    objects = collections.Counter()
    for wait in waits[function]:
        of = f"{wait['wait_kind']} {wait['object'] or ''}" if wait["wait_kind"] else str(wait["reason"])
        objects[of.strip()] += wait["duration_ns"]
    count, most = len(waits[function]), objects.most_common(1)[0][0]
    print(f"{total[function] / 1e6:10.3f} ms in {count:5} waits ended by {function}, most for {most}")
