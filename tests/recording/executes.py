#!/usr/bin/env python3
"""A program executed by a recorded program is recorded, or reported as not recorded, whichever call
executes it. TAP.

usage: executes.py TRAIL PRELOAD EXECUTES; the program is that of executes.c
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test
import work
from recorded import Trace, step

TRAIL, EXECUTES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}
WORK = work.folder("executes")
LIMIT = 120  # s, in case something hangs
STATUS = 5  # exit status of executes.c on success
IN_PLACE = ("execv", "execve", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "execveat")
IN_CHILD = ("vfork", "posix_spawn", "posix_spawnp")
# A library that exists everywhere and is not the recorder's.
OTHER = "libm.so.6"


def is_asleep(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0] == "S"


def started(command, env):
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=env)


def record(*words, options=(), env=ENV):
    """Returns the recorder's messages, and how often the traces have a wait in wait_here. The wait
    ends once the recorder has seen which program waits."""
    folder = tempfile.mkdtemp(dir=WORK)
    command = [TRAIL, "record", *options, "-o", os.path.join(folder, "t.trace"), "--", EXECUTES, *words]
    recorder = started(command, env)
    pid = recorder.stdout.readline()
    if pid:
        while not is_asleep(int(pid)):
            time.sleep(0.001)
        step(recorder.pid)
    _, err = recorder.communicate("\n" if pid else None, timeout=LIMIT)
    assert recorder.returncode == STATUS, (words, recorder.returncode, err)
    count = 0
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        check = subprocess.run([TRAIL, "check", path], capture_output=True, text=True, env=ENV, timeout=LIMIT)
        assert check.returncode == 0, (words, check.stdout, check.stderr)
        count += len(Trace(TRAIL, path, ENV).in_function("wait_here"))
        in_trace.clear()
        in_trace.update(account(path))
    return err, count


# The account in the trace of the last recording.
in_trace = {}


def account(path):
    done = subprocess.run([TRAIL, "summary", "--json", path], capture_output=True, text=True, env=ENV, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["recording"]


def names_in_trace(key):
    return [os.path.basename(process["name"].split(" ")[0])[:59] for process in in_trace[key]]


@test
def another_ld_preload_does_not_end_the_recording():
    for how in IN_PLACE:
        said, count = record("in-place", how, OTHER)
        assert count == 1 and "not recorded:" not in said, (how, count, said)


@test
def another_ld_preload_does_not_keep_a_child_from_being_recorded():
    for how in IN_CHILD:
        said, count = record("child", how, OTHER, options=["--children"])
        assert count == 1 and "not recorded:" not in said, (how, count, said)


@test
def an_environment_may_be_large():
    large = {**ENV, **{f"VARIABLE_{i}": "x" for i in range(2000)}}
    for words in (("in-place", "execv", OTHER), ("child", "vfork", OTHER), ("child", "posix_spawn", OTHER)):
        said, count = record(*words, options=["--children"], env=large)
        assert count == 1 and "not recorded:" not in said, (words, count, said)


@test
def a_cleared_ld_preload_stays_cleared():
    said, count = record("in-place", "execve", "")
    assert count == 0 and "not recorded: the program executed in its place" in said, (count, said)
    assert names_in_trace("recorded_in_part") == [os.path.basename(EXECUTES)[:59]], in_trace


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
        assert names_in_trace("not_recorded") == [names[1]] and not in_trace["recorded_in_part"], in_trace


@test
def what_failed_to_be_executed_is_not_missed():
    said, _ = record("fails", options=["--children"])
    assert "not recorded:" not in said, said
    assert not in_trace["not_recorded"] and not in_trace["recorded_in_part"], in_trace


@test
def a_child_that_goes_on_as_what_is_not_recorded_is_named():
    folder = tempfile.mkdtemp(dir=WORK)
    path = os.path.join(folder, "t.trace")
    recorder = started([TRAIL, "record", "--children", "-o", path, "--", "sh", "-c", "env -i cat - -; true"], ENV)
    # The copied line shows that cat runs; one step later the recorder has noticed that the program
    # is no longer env.
    recorder.stdin.write("\n")
    recorder.stdin.flush()
    assert recorder.stdout.readline() == "\n"
    step(recorder.pid)
    _, err = recorder.communicate(timeout=LIMIT)
    assert recorder.returncode == 0, err
    said = account(path)
    assert [process["name"] for process in said["recorded_in_part"]] == ["cat - -"], said
    assert re.search(r"^  recorded in part: cat - - \(\d+\), because the program executed in its place", err, re.M), err
    # Conversions keep it, unless names are removed.
    for option in "--to=go1.23", "--anonymize":
        copy = os.path.join(folder, "copy.trace")
        subprocess.run([TRAIL, "convert", option, "-o", copy, path], check=True, env=ENV, timeout=LIMIT)
        summary = subprocess.run([TRAIL, "summary", "--json", copy], capture_output=True, check=True, env=ENV, timeout=LIMIT)
        assert json.loads(summary.stdout).get("recording") == (None if option == "--anonymize" else said), option


if __name__ == "__main__":
    sys.exit(main())
