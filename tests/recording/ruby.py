"""Ruby programs behave as without the recorder, and the waits of their threads are recorded: see
waits.rb. TAP.

usage: ruby.py TRAIL
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import test

TRAIL = os.path.abspath(sys.argv[1])
PROGRAM = ["ruby", os.path.join(os.path.dirname(os.path.abspath(__file__)), "waits.rb")]
WORK = tempfile.TemporaryDirectory(prefix="trail-ruby-")
TRACE = os.path.join(WORK.name, "x.trace")


def record(*command, options=()):
    children = [] if "--children" in options else ["--no-children"]
    done = subprocess.run([TRAIL, "record", "-q", *children, *options, "-o", TRACE, "--", *command], capture_output=True, text=True, timeout=600)
    subprocess.run([TRAIL, "check", TRACE], check=True, capture_output=True, timeout=120)
    return done


def events():
    text = subprocess.run([TRAIL, "print", "--format=jsonl", TRACE], check=True, capture_output=True, text=True, timeout=120).stdout
    return [json.loads(line) for line in text.splitlines()]


def names():
    text = subprocess.run([TRAIL, "goroutines", "--json", TRACE], check=True, capture_output=True, text=True, timeout=120).stdout
    return {row["id"]: row["name"] for row in json.loads(text)["goroutines"]}


def ends(name_of):
    """Returns for each wait that a thread ended: (the thread that waited, the reason, the thread that ended it)."""
    reasons, found = {}, set()
    for event in events():
        # A generation begins with states, which have no reasons.
        if event.get("to") == "Waiting" and "reason" in event:
            reasons[event["id"]] = event["reason"]
        elif event.get("from") == "Waiting" and event.get("g") in name_of:
            found.add((name_of[event["id"]], reasons[event["id"]], name_of[event["g"]]))
    return found


@test
def a_program_does_what_it_does_without_the_recorder():
    plain = subprocess.run(PROGRAM, capture_output=True, text=True, timeout=600)
    assert plain.returncode == 0 and plain.stdout.endswith(":signal\n"), plain
    for options in ((), ("--heap", "--children"), ("--cpu-samples=100", "--cpu-signal")):
        done = record(*PROGRAM, options=options)
        assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr), (options, done)


@test
def the_exit_status_is_the_programs():
    assert record("ruby", "-e", "exit 3").returncode == 3


@test
def threads_wait_and_wake_each_other():
    assert record(*PROGRAM).returncode == 0
    name_of = names()
    assert {"main", "locks", "pops", "reads", "sleeps", "counts0", "counts1"} <= set(name_of.values()), name_of
    found = ends(name_of)
    # A Ruby thread has a condition variable. The main thread unlocked and wrote; another thread may
    # have handed the GVL to the second thread.
    assert ("locks", "sync.(*Cond).Wait", "main") in found, found
    assert ("reads", "network", "main") in found, found
    assert {by for of, why, by in found if of == "pops" and why == "sync.(*Cond).Wait"} & {"main", "locks", "reads"}, found


def main():
    if not shutil.which("ruby"):
        print("1..0 # SKIP no Ruby; install ruby")
        return 0
    return tap.main()


sys.exit(main())
