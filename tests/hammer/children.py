#!/usr/bin/env python3
"""Children of a recorded program that are killed just after they start, or forked in a signal handler during a fork.

usage: children.py BUILD SEED COUNT; the program is that of tests/recording/children.c
"""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hammer import TRAIL, main, program

FORKS = 30
STATUS = 5  # what children.c returns when all went well
LIMIT = 120  # s, for what hangs


def run(seed, folder):
    path = os.path.join(folder, "t.trace")
    how = ["kills", "alarms"][seed % 2]
    command = [TRAIL, "record", "-q", "--children", "-o", path, "--", program("children"), how, str(FORKS), str(seed)]
    with open(os.path.join(folder, "messages"), "w") as to:
        try:
            done = subprocess.run(command, stdout=to, stderr=to, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return f"{how}: hangs"
    if done.returncode != STATUS:
        return f"{how}: status {done.returncode}"
    for path in glob.glob(os.path.join(folder, "*.trace")):
        check = subprocess.run([TRAIL, "check", path], capture_output=True, text=True)
        if check.returncode != 0:
            return f"{how}: {path}: {check.stdout}{check.stderr}"
    return ""


sys.exit(main(run))
