#!/usr/bin/env python3
"""Waits that a recording gets wrong by chance: races that no order of the program's threads forces.

Each run records the scenario "convoy" of tests/recording/answers.c, on a number of CPUs and with a recorder that is stopped at
times, both by the run's seed. It is wrong if a call in which the kernel switched the thread out has no wait, or its wait has no
waker, or a waker that did not release the mutex during it.

usage: recording.py BUILD SEED COUNT
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from hammer import TRAIL, main, program
from recorded import Trace

CLOCK_NS, SKEW_NS = 1_000, 100_000  # as in tests/recording/programs.py


def stops(recorder, chance):
    """Stops the recorder at random until it ends."""
    while recorder.poll() is None:
        try:
            recorder.send_signal(signal.SIGSTOP)
            threading.Event().wait(chance.random() * 0.05)
        finally:
            recorder.send_signal(signal.SIGCONT)
        threading.Event().wait(chance.random() * 0.05)


def record(path, chance):
    cpus = sorted(os.sched_getaffinity(0))
    some = chance.sample(cpus, chance.randint(1, len(cpus)))
    late = chance.random() < 0.5
    recorder = subprocess.Popen([TRAIL, "record", "-o", path, "--", program("answers"), "convoy"], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, some))  # fmt: skip
    stopper = threading.Thread(target=stops, args=(recorder, chance))
    if late:
        stopper.start()
    out, err = recorder.communicate(timeout=120)
    if late:
        stopper.join()
    with open(path + ".log", "wb") as file:
        file.write(out + err)
    return recorder.returncode, out


def wrong_waits(out, trace):
    lines = [json.loads(line) for line in out.splitlines()]
    releases = [line for line in lines if "release" in line]
    for answer in (line for line in lines if "tid" in line):
        begin, end = answer["begin"], answer["end"] + CLOCK_NS
        waits = [w for w in trace.waits if w.tid == answer["tid"] and not w.of_kernel
                 and w.begin >= begin - SKEW_NS and begin <= w.end <= end]  # fmt: skip
        if len(waits) > 1 or (not waits and answer["slept"]):
            yield f"{len(waits)} waits: {answer}"
        for wait in waits:
            if not wait.waker and answer["slept"]:
                yield f"no waker: {answer}"
            elif wait.waker and not any(
                r["release"] == wait.waker and r["done"] >= begin and r["at"] <= wait.ready + CLOCK_NS for r in releases
            ):
                yield f"{wait.waker} is not its waker: {answer}"


def run(seed, folder):
    path = os.path.join(folder, "convoy.trace")
    code, out = record(path, random.Random(seed))
    return f"exit status {code}" if code else "; ".join(list(wrong_waits(out, Trace(TRAIL, path)))[:5])


sys.exit(main(run))
