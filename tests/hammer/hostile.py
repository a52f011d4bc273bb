#!/usr/bin/env python3
"""Words of the memory that a program shares with `trail record` are overwritten while it works: see hostile.c.

Whatever they are, the recorder ends by itself or at a signal, with status 0 or 1, and the trace is good.

usage: hostile.py BUILD SEED COUNT
"""

import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hammer import TRAIL, main, program

PATIENCE = 5  # s: the program may end by itself
HANGS = 60  # s: the recorder does not end
WAYS = [[], ["--heap"], ["--all"], ["--children"], ["--switches=off"], ["--min-wait=0", "--format=1.26"]]


def ends(recorder):
    for limit in (PATIENCE, PATIENCE, HANGS):
        try:
            recorder.wait(limit)
            return True
        except subprocess.TimeoutExpired:
            recorder.send_signal(signal.SIGTERM)
    recorder.kill()
    recorder.wait()
    return False


def run(seed, folder):
    path = os.path.join(folder, "t.trace")
    command = [TRAIL, "record", "-o", path, *WAYS[seed % len(WAYS)], "--", program("hostile"), str(seed)]
    # Not a pipe: a program that goes on would hold it.
    with open(os.path.join(folder, "messages"), "w") as to:
        recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=to)
        if not ends(recorder):
            return "the recorder does not end"
    if recorder.returncode not in (0, 1):
        return f"status {recorder.returncode}"
    check = subprocess.run([TRAIL, "check", path], capture_output=True, text=True)
    return "" if check.returncode == 0 else check.stdout + check.stderr


sys.exit(main(run))
