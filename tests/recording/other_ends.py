"""Findings of 'trail summary' about processes that wait for each other at pipes and connections: see
processes.c. TAP.

usage: other_ends.py TRAIL libtrail-preload.so PROGRAM
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import tap
import work
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = work.folder("other_ends")
TRACE = os.path.join(WORK, "x.trace")
# Whether all processes' descriptors are readable. If not, another process might have an end, too.
SEES_ALL = os.access("/proc/1/fd", os.R_OK)
IN_CLOSE_NOWRITE = 0x10
IN_OPEN = 0x20


def findings():
    done = subprocess.run([TRAIL, "summary", "--json", TRACE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {f["kind"]: f["text"] for f in json.loads(done.stdout)["findings"]}


def child_of(recorder):
    (pid,) = states.until(lambda: states.children(recorder.pid))
    return pid


def pidfds(recorder):
    """Returns how many processes the recorder knows."""
    return sum("pidfd" in file for file in states.open_files(recorder.pid).values())


def record(*command, threads=2, ended=False, **options):
    """Records a program until its threads wait, then ends only the recording. Returns its findings."""
    ignores = ["sh", "-c", "trap '' TERM; exec \"$@\"", "sh"]
    recorder = subprocess.Popen([TRAIL, "record", "-q", "--children", "-o", TRACE, "--", *ignores, *command],
                                stdout=subprocess.PIPE, text=True, cwd=WORK, **options)
    pids = [child_of(recorder)]
    try:
        if command[0] == PROGRAM:
            pids.append(int(recorder.stdout.readline()))
        if ended:
            states.until(lambda: states.status(pids[1], "State")[:1] in ("", "Z") and pidfds(recorder) == 1)
        states.until_all_wait(pids[:2 - ended], threads)
        time.sleep(0.2)  # long enough for the wait to be a finding
        for _ in range(2):  # the second only ends the recording
            recorder.send_signal(signal.SIGTERM)
            states.until_taken(recorder.pid, signal.SIGTERM)
        assert recorder.wait(timeout=120) == 0
    finally:
        for pid in reversed(pids[: 2 - ended]):  # the child ends with its parent
            os.kill(pid, signal.SIGKILL)
    return findings()


def known(found):
    """If the machine does not allow certainty, skips the rest of the test after checking that nothing is claimed."""
    if not SEES_ALL:
        assert "deadlock" not in found, found
        raise tap.Skip("the descriptors of other users' processes may not be read; that nothing is claimed then was seen")
    return found


def check_circle(found, advice):
    known(found)
    assert "deadlock" in found and "open-wait" not in found, found
    has = re.findall(r"\S+ \(\d+\): main \(\d+\) has (not ended|the other end of \S+) and waits (to \S+ \S+ \S+?|for the exit of process .*?)(?:;|\.(?: |$))",
                     found["deadlock"])
    assert len(has) == 2 and found["deadlock"].endswith(advice), found
    return has


@test
def each_of_two_waits_to_read_what_the_other_writes():
    for mode in "pipes", "sockets":
        has = check_circle(record(PROGRAM, mode), " Let one of them write first, and close ends that are not needed.")
        objects = [(kept.split()[-1], wait.split()[-1]) for kept, wait in has]
        assert objects[0] == objects[1][::-1] and objects[0][0] != objects[0][1], has


@test
def a_parent_waits_for_the_exit_of_a_child_whose_pipe_is_full():
    has = check_circle(record(PROGRAM, "full"), " Read what it writes before waiting for its exit.")
    assert [kept.startswith("the other end of pipe:[") for kept, _ in has] == [True, False], has


@test
def a_reader_has_the_other_end_itself():
    found = known(record(PROGRAM, "own", threads=1, ended=True))
    assert re.search(r"has the other end of (pipe:\[\d+\]) and waits to read from \1\. The wait is at read_byte \(processes\.c:\d+\)\. Close the other end where", found["deadlock"]), found


@test
def another_thread_a_time_limit_or_what_waits_for_a_signal_may_end_the_wait():
    for mode, threads in ("two_threads", 3), ("raw_thread", 3), ("limited", 2), ("open_end", 2):
        found = record(PROGRAM, mode, threads=threads)
        assert not {"deadlock", "open-wait"} & set(found), (mode, found)


@test
def a_process_that_is_not_recorded_may_write():
    read, write = os.pipe()
    try:
        # cat reads from a pipe whose other end is in the test.
        found = record("cat", threads=1, stdin=read)
    finally:
        os.close(read)
        os.close(write)
    assert not {"deadlock", "open-wait"} & set(found), found


class Closes:
    """Counts how often a folder was opened and closed."""

    def __init__(self, path):
        libc = ctypes.CDLL(None, use_errno=True)
        self.fd = libc.inotify_init()
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, path.encode(), IN_OPEN | IN_CLOSE_NOWRITE) >= 0, os.strerror(ctypes.get_errno())

    def until(self, count):
        while count > 0:
            data = os.read(self.fd, 4096)  # events without names
            for at in range(0, len(data), 16):
                count -= bool(int.from_bytes(data[at + 4 : at + 8], sys.byteorder) & IN_CLOSE_NOWRITE)
        os.close(self.fd)


@test
def what_was_found_while_all_waited_outlives_the_processes():
    known({})
    go = os.path.join(WORK, "go")
    # The program must not block before the test watches.
    script = f"while [ ! -e '{go}' ]; do :; done; exec '{PROGRAM}' pipes"
    recorder = subprocess.Popen([TRAIL, "record", "-q", "--children", "-o", TRACE, "--", "sh", "-c", script],
                                stdout=subprocess.PIPE, text=True, cwd=WORK)
    pids = [child_of(recorder)]
    try:
        closes = Closes(f"/proc/{pids[0]}/fd")
        open(go, "w").close()
        pids.append(int(recorder.stdout.readline()))
        closes.until(3)  # the recorder checks that the processes exist, looks at all processes, and checks again
        recorder.send_signal(signal.SIGSTOP)
        states.until(lambda: states.is_stopped(recorder.pid))
    finally:
        for pid in reversed(pids):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        states.until(lambda: states.status(pid, "State")[:1] in ("", "Z"))
    recorder.send_signal(signal.SIGCONT)
    assert recorder.wait(timeout=120) == 128 + signal.SIGKILL
    check_circle(findings(), "close ends that are not needed.")


sys.exit(tap.main())
