#!/usr/bin/env python3
"""Waits for locks within the C library: the object, and the thread that holds it. TAP.

usage: within.py TRAIL PROGRAM; the program is within.c's.
"""

import os
import platform
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import work
from tap import finish, report, skip

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:3])
WORK = work.folder("within")
PATH = os.path.join(WORK, "x.trace")
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}


def printed():
    return subprocess.run([TRAIL, "print", "--stacks", PATH], capture_output=True, text=True, timeout=120).stdout


def record(*options):
    """Returns the trace and the recorder's messages. The program continues until its last waits,
    which follow those for the locks, are written."""
    if os.path.exists(PATH):
        os.unlink(PATH)
    recorder = subprocess.Popen(
        [TRAIL, "record", "-o", PATH, *options, "--", PROGRAM], env=ENV, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    states.until(lambda: recorder.poll() is not None or len(re.findall('wait: "semaphore never', printed())) >= 2)
    err = recorder.communicate()[1]
    return printed(), err, recorder.returncode


def of_thread(text, name):
    """Returns the last thing that the thread does: its logs, then the wait with its stack."""
    g = re.search(rf"(thread \d+) created by thread \d+: {name}\n", text)[1]
    events = [block for block in re.split(r"\n(?=  \d+\.\d+ )", text) if re.match(rf"\s*\d+\.\d+  {g} ", block)]
    last = max(i for i, block in enumerate(events) if "blocks" in block or "enters a system call" in block)
    before = [block for block in events[max(0, last - 4) : last] if " log " in block]
    return "\n".join([*before, events[last]])


def lock_of(text, name):
    found = re.search(r'log wait: "mutex (.*?)"', of_thread(text, name))
    return found and found[1]


def check_holder(text, holder, lock, known=""):
    log = f'log holds{known}: "mutex {lock}"'
    report(log in of_thread(text, holder), f"{holder}: has it when it waits itself", lock, of_thread(text, holder))


def main():
    text, err, code = record("--switches=off")
    report(code == 0, "is recorded", err)
    lock = lock_of(text, "wants_stream")
    report(lock and lock.endswith("(stream /dev/null)"), "wants_stream: waits for the stream's lock, not to write", of_thread(text, "wants_stream"))
    check_holder(text, "has_stream", lock)
    filler, waiter = (re.search(rf"(thread \d+) created by thread 1: {name}\n", text)[1] for name in ("fills_pipe", "waits_to_write"))
    ends = re.search(rf'{waiter} .* log wait: "mutex \S+ \(stream pipe:.*\n(?:.*\n)+?.* {waiter} made ready by (thread \d+)', text)
    report(ends and ends[1] == filler, "waits_to_write: waits until the function that keeps the lock has written", text)

    text, err, code = record("--switches=need")
    if code == 2:
        skip("the loader's lock", " ".join(err.split()))
        return finish()
    lock = lock_of(text, "wants_stream")
    report(lock and lock.endswith("(stream /dev/null)"), "wants_stream: also with the kernel's switches", of_thread(text, "wants_stream"))
    if platform.machine() != "x86_64":
        skip("the loader's lock", "stacks need a frame pointer here")
        return finish()
    wait = of_thread(text, "wants_loader")
    lock = lock_of(text, "wants_loader")
    report(lock and lock.endswith("(in dl_iterate_phdr)"), "wants_loader: waits for a lock that its call takes", wait)
    report("wants_loader (" in wait, "wants_loader: the wait has its stack", wait)
    check_holder(text, "has_loader", lock, ", as owner")
    wait = of_thread(text, "sleeps_itself")
    report("wait: \"signal\"" in wait or "blocks: signal" in wait, "sleeps_itself: waits for a signal", wait)
    report("sleeps_itself (" in wait, "sleeps_itself: the wait has its stack", wait)
    return finish()


sys.exit(main())
