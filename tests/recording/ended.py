"""Waits that end because a thread is cancelled or ends: see ended.c. TAP.

usage: ended.py TRAIL libtrail-preload.so PROGRAM
"""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
TRACE = os.path.join(work.folder("ended"), "x.trace")
HOLD_S = 0.049  # HOLD_MS of ended.c, minus the difference between two clocks


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{args}: status {done.returncode}: {done.stderr}"
    return done.stdout


run(TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM)
run(TRAIL, "check", TRACE)

# Each event, with the functions of its stack from the lines below it.
EVENTS = []
for line in run(TRAIL, "print", "--words=go", "--stacks", TRACE).splitlines():
    if re.match(r"  \d+\.\d{9}\s", line):
        EVENTS.append((float(line.split()[0]), line, []))
    elif EVENTS and line.startswith(" " * 12):
        EVENTS[-1][2].append(line.split(" (")[0].strip())


def ends_of(function):
    """Where the long waits in a function end: the line of the event, and the functions of its stack."""
    found = []
    for i, (begin, text, stack) in enumerate(EVENTS):
        if "blocks: " not in text or function not in stack:
            continue
        g = re.search(r"\bG (\d+)", text)[1]
        for end, after, functions in EVENTS[i + 1 :]:
            if re.search(rf"\bG {g} made ready", after):
                if end - begin >= HOLD_S:
                    found.append((after, functions))
                break
    return found


def woken_in(waiting, waker):
    ends = ends_of(waiting)
    assert ends, f"no long wait in {waiting}"
    for text, functions in ends:
        assert "made ready by G" in text and waker in functions, f"{waiting}: {text}: {functions}"


@test
def who_cancels_a_thread_ends_its_wait():
    for waits in ("cancelled_condition", "cancelled_semaphore", "cancelled_read", "cancelled_sleep"):
        woken_in(waits, "canceller")


@test
def a_cancellation_that_is_disabled_ends_no_wait():
    woken_in("not_cancelled", "cancel")


@test
def who_ends_with_a_robust_mutex_gives_it_to_the_waiter():
    woken_in("inherit", "dies_with_mutex")


@test
def who_unlocks_a_robust_mutex_gives_it_to_the_waiter():
    woken_in("wait_for_living", "unlocks")


sys.exit(tap.main())
