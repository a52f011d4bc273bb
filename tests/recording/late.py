"""A sleep that is over is time ready, not asleep, also for a user who may not read the kernel's wake-ups. TAP.

usage: late.py TRAIL PROGRAM     late.c
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from tap import Skip

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:])
WORK = work.folder("late")
TRACE = os.path.join(WORK, "x.trace")
SLEEPS, SLEEP_NS = 100, 2_000_000
# What a sleep may take longer without being late: the timer's slack, and the way into the call and out of it.
BESIDE_NS = 150_000
NOBODY = 65534


def record(how, *options):
    """(time ready by the kernel, ready and asleep by the trace) of the sleeper"""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    os.chmod(WORK, 0o777)
    command = [TRAIL, "record", "-q", *options, "-o", TRACE, "--", PROGRAM, how]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, **user)
    except PermissionError:
        raise Skip("another user may not read the folder of the build") from None
    assert done.returncode == 0, done
    rows = json.loads(subprocess.check_output([TRAIL, "goroutines", "--json", TRACE], text=True))["goroutines"]
    (row,) = [row for row in rows if row["name"] == "sleeper"]
    return int(done.stdout), row["sched_wait_ns"], row["block_ns"]["sleep"]


for how in "nanosleep", "usleep", "clock", "thrd":
    for options in (), ("--switches=off",):

        def late(how=how, options=options):
            kernel, ready, asleep = record(how, *options)
            assert abs(ready - kernel) <= kernel / 10 + SLEEPS * BESIDE_NS, (kernel, ready, asleep)
            assert SLEEPS * SLEEP_NS <= asleep <= SLEEPS * (SLEEP_NS + BESIDE_NS) + kernel / 10, (kernel, ready, asleep)

        late.__name__ = " ".join(("late", how, *options))
        tap.test(late)


sys.exit(tap.main())
