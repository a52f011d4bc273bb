#!/usr/bin/env python3
"""What a recorded program executes is recorded, or named as not recorded, however it is executed. Prints TAP.

usage: executes.py TRAIL PRELOAD EXECUTES; the program is that of executes.c
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test
from recorded import Trace

TRAIL, EXECUTES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}
LIMIT = 120  # s, for what hangs
STATUS = 5  # what executes.c returns when all went well
IN_PLACE = ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat")
IN_CHILD = ("vfork", "posix_spawn", "posix_spawnp")
# Any library that is everywhere and not the recorder.
OTHER = "libm.so.6"


def record(*words, options=(), env=ENV):
    """Returns what the recorder prints, and how often the traces have a wait in wait_here."""
    with tempfile.TemporaryDirectory(prefix="trail-executes-") as folder:
        command = [TRAIL, "record", *options, "-o", os.path.join(folder, "t.trace"), "--", EXECUTES, *words]
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=LIMIT)
        assert done.returncode == STATUS, (words, done.returncode, done.stderr)
        count = 0
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            check = subprocess.run([TRAIL, "check", path], capture_output=True, text=True, env=ENV, timeout=LIMIT)
            assert check.returncode == 0, (words, check.stdout, check.stderr)
            count += len(Trace(TRAIL, path, ENV).in_function("wait_here"))
        return done.stderr, count


@test
def another_ld_preload_does_not_end_the_recording():
    for how in IN_PLACE:
        said, count = record("in-place", how, OTHER)
        assert count == 1 and "not recorded" not in said, (how, count, said)


@test
def another_ld_preload_does_not_keep_a_child_from_being_recorded():
    for how in IN_CHILD:
        said, count = record("child", how, OTHER, options=["--children"])
        assert count == 1 and "not recorded" not in said, (how, count, said)


@test
def an_environment_may_be_large():
    large = {**ENV, **{f"VARIABLE_{i}": "x" for i in range(2000)}}
    for words in (("in-place", "execv", OTHER), ("child", "vfork", OTHER), ("child", "posix_spawn", OTHER)):
        said, count = record(*words, options=["--children"], env=large)
        assert count == 1 and "not recorded" not in said, (words, count, said)


@test
def a_cleared_ld_preload_stays_cleared():
    said, count = record("in-place", "execve", "")
    assert count == 0 and "not recorded: what was executed in its place" in said, (count, said)


@test
def the_cpu_time_of_what_is_not_recorded_is_not_in_the_figures():
    said, _ = record("in-place", "execve", "")
    assert " of CPU" not in said.splitlines()[0], said
    said, _ = record("waits")
    assert " of CPU" in said.splitlines()[0], said


@test
def a_child_that_is_not_recorded_is_named():
    for how in IN_CHILD:
        said, count = record("child", how, options=["--children"])
        names = re.search(r"^  not recorded: (\S+) \(\d+\)$", said, re.M)
        assert names and names[1] == os.path.basename(EXECUTES)[:59] and count == 0, (how, count, said)
        assert "1 process that did not load the recorder" in said, said


@test
def what_failed_to_be_executed_is_not_missed():
    said, _ = record("fails", options=["--children"])
    assert "not recorded" not in said, said


if __name__ == "__main__":
    sys.exit(main())
