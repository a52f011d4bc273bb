"""A deadlock, as 'trail summary' finds it, however the recording ends: see deadlock.c. TAP.

usage: deadlock.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = tempfile.TemporaryDirectory(prefix="trail-deadlock-")
TRACE = os.path.join(WORK.name, "x.trace")


def check():
    done = subprocess.run([TRAIL, "summary", "--json", TRACE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = {f["kind"]: f for f in json.loads(done.stdout)["findings"]}
    assert "deadlock" in found and "open-wait" not in found, found
    text = found["deadlock"]["text"]
    for function, has, wants in (("forward", "a_mu", "b_mu"), ("backward", "b_mu", "a_mu")):
        assert re.search(rf"{function} \(\d+\) holds mutex {has} and waits for mutex {wants}\b", text), text


def start():
    """A recording of the program, which waits for ever: when its threads are in the deadlock."""
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "wait"])
    children = f"/proc/{recorder.pid}/task/{recorder.pid}/children"
    for _ in range(2000):
        time.sleep(0.02)
        pids = open(children).read().split()
        states = []
        for pid in pids:
            tasks = f"/proc/{pid}/task"
            states = [open(f"{tasks}/{t}/syscall").read().split()[0] for t in os.listdir(tasks)]
        if len(states) == 3 and len(set(states)) == 1 and states[0] != "running":  # all are in futex(2)
            return recorder, int(pids[0])
    raise AssertionError("the program is not in its deadlock")


@test
def of_a_program_that_ends():
    subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM], check=True, timeout=120)
    check()


@test
def of_a_process_that_ends_just_before_the_trace_of_all():
    script = f"'{PROGRAM}'; true"
    subprocess.run([TRAIL, "record", "-q", "--children", "-o", TRACE, "--", "sh", "-c", script], check=True, timeout=120)
    check()


@test
def of_a_program_that_is_killed():
    recorder, pid = start()
    os.kill(pid, signal.SIGKILL)
    assert recorder.wait(timeout=120) == 128 + signal.SIGKILL
    check()


@test
def of_a_recording_that_is_interrupted():
    recorder, pid = start()
    os.kill(pid, signal.SIGINT)  # as a terminal does to both
    recorder.send_signal(signal.SIGINT)
    recorder.wait(timeout=120)
    check()


sys.exit(tap.main())
