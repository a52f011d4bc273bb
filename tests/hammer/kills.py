#!/usr/bin/env python3
"""Kills 'trail record -p' and 'trail stuck --repeat' at any time: the program continues, untraced and not stopped.

usage: kills.py BUILD [SEED [COUNT]]

Not a test: it looks for races. The files of a failure are in failures/ in the build folder.
"""

import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states

BUILD = os.path.abspath(sys.argv[1])
SEED, COUNT = int((sys.argv[2:] or ["1"])[0]), int((sys.argv[3:] or ["100"])[0])
TRAIL, PROGRAM = (os.path.join(BUILD, name) for name in ("trail", "tests/recording/running"))


def run(seed):
    """Returns what is wrong; empty: nothing."""
    order = random.Random(seed)
    program = subprocess.Popen([PROGRAM, "calls"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    program.stdout.readline()
    pid = str(program.pid)
    command, most_s = order.choice([
        ([TRAIL, "record", "-q", "-p", pid, "-o", "/dev/null", "--duration=10ms"], 0.15),
        ([TRAIL, "stuck", "--json", "--repeat=1ms", pid], 0.05),
    ])  # fmt: skip
    trail = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    after_s = order.random() * most_s
    time.sleep(after_s)
    trail.kill()
    message = trail.communicate()[1]
    held = [
        tid for tid in states.tids(pid) if states.status(tid, "TracerPid") != "0" or states.status(tid, "State")[:1] in "tT"
    ]
    out, err = program.communicate("x", timeout=300)
    # A call may have failed with EINTR, nothing else.
    good = not held and program.returncode in (0, 1) and "done" in out and all("Interrupted" in line for line in err.splitlines())
    return "" if good else f"seed {seed}: {command} killed after {after_s} s\nheld: {held}\n{program.returncode} {out}{err}{message}"


wrong = 0
for seed in range(SEED, SEED + COUNT):
    failure = run(seed)
    if failure:
        wrong += 1
        os.makedirs(os.path.join(BUILD, "failures"), exist_ok=True)
        with open(os.path.join(BUILD, "failures", f"kills-{seed}.log"), "w") as file:
            file.write(failure)
        print(failure, flush=True)
print(f"{wrong} of {COUNT} runs wrong")
sys.exit(wrong > 0)
