"""A deadlock, as 'trail summary' finds it, however the recording ends: see deadlock.c. TAP.

usage: deadlock.py TRAIL libtrail-preload.so PROGRAM
"""

import functools
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
WORK = work.folder("deadlock")
TRACE = os.path.join(WORK, "x.trace")


# Background jobs of a shell ignore the signal, and the program would too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A wait must last at least 100 ms to be a finding.
HOLD_S = 0.2


def answer(command):
    done = subprocess.run([TRAIL, command, "--json", TRACE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def check(of=""):
    found = {f["kind"]: f for f in answer("summary")["findings"]}
    assert "deadlock" in found and "open-wait" not in found, found
    text = found["deadlock"]["text"]
    for function, has, wants in (("forward", "a_mu", "b_mu"), ("backward", "b_mu", "a_mu")):
        assert re.search(rf"{function} \(\d+\) holds mutex {has}{of} and waits for mutex {wants}{of}[;.]", text), text


def start():
    """Starts recording a program that waits forever. Returns when its threads are in the deadlock."""
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "wait"])
    try:
        (pid,) = states.until(lambda: states.children(recorder.pid))
        states.until_all_wait([pid], 3)
    except BaseException:
        recorder.kill()
        raise
    time.sleep(HOLD_S)
    return recorder, pid


def record_processes(*words):
    """Records two processes until they wait for each other. Returns their PIDs."""
    recorder = subprocess.Popen([TRAIL, "record", "-q", "--children", "-o", TRACE, "--", PROGRAM, *words],
                                stdout=subprocess.PIPE, text=True, cwd=WORK)
    pids = recorder.stdout.readline().split()
    try:
        states.until_all_wait(pids, 4)
        time.sleep(HOLD_S)
        for _ in range(2):  # the second only ends the recording
            recorder.send_signal(signal.SIGTERM)
            states.until_taken(recorder.pid, signal.SIGTERM)
        assert recorder.wait(timeout=120) == 0
    finally:
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
    return pids


def names(pids):
    name = os.path.basename(PROGRAM)
    return f"{name} ({pids[0]}): forward", f"{name} ({pids[1]}): backward"


@test
def of_a_program_that_ends():
    done = subprocess.run([TRAIL, "record", "-o", TRACE, "--", PROGRAM], stderr=subprocess.PIPE, text=True, check=True, timeout=120)
    check()
    # The final screen has the summary's findings, in the same order.
    screen = re.findall(r"^  \* (.*)$", done.stderr, re.M)
    assert screen == [f["heading"] for f in answer("summary")["findings"]][:3], done.stderr


@test
def of_a_process_that_ends_just_before_the_trace_of_all():
    script = f"'{PROGRAM}'; true"
    subprocess.run([TRAIL, "record", "-q", "--children", "-o", TRACE, "--", "sh", "-c", script], check=True, timeout=120)
    # Two processes can have different locks at one address.
    check(rf" of {os.path.basename(PROGRAM)} \(\d+\)")


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


def check_places(kind, locks):
    """A lock in shared memory is named after the place where either process took it."""
    for lock in locks if kind in ("mutex", "rwlock") else ():
        assert re.match(rf"{kind} shared 0x[0-9a-f]+ \(first seen locked in lock_{kind} deadlock\.c:\d+\)$", lock), locks


def deadlock_of_processes(kind):
    forward, backward = names(record_processes(kind))
    found = {f["kind"]: f["details"] for f in answer("summary")["findings"]}
    assert "deadlock" in found and "open-wait" not in found, found
    has = re.findall(r"[Tt]hread (.*?) \(\d+\) holds (.*?) and waits for (.*?)(?:;|\. )", found["deadlock"])
    assert sorted(task for task, _, _ in has) == sorted((forward, backward)), has
    assert has[0][1:] == has[1][:0:-1] and has[0][1] != has[0][2], has
    check_places(kind, has[0][1:])


def held_by_another_process(kind):
    forward, backward = names(record_processes(kind, "held"))
    found = {f["kind"]: f["text"] for f in answer("summary")["findings"]}
    assert "deadlock" not in found, found
    assert re.match(rf"Thread {re.escape(backward)} \(\d+\) had waited for ", found["open-wait"]), found
    assert re.search(rf"\. It is held by thread {re.escape(forward)} \(2\)\. The wait is at \S+ \(deadlock\.c:\d+\)\.$", found["open-wait"]), found
    (lock,) = [lock for lock in answer("locks")["locks"] if lock["unfinished"]]
    check_places(kind, [f"{lock['kind']} {lock['name']}"])
    assert (lock["holder"], lock["holder_group"]) == (2, forward), lock
    text = subprocess.run([TRAIL, "locks", TRACE], capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^  still waiting: thread \d+ {re.escape(backward)}, ", text, re.M), text


@test
def a_mutex_at_the_same_address_in_another_process_is_another():
    pids = record_processes("private", "held")
    _, backward = names(pids)
    other = rf"{os.path.basename(PROGRAM)} \({pids[1]}\)"
    found = {f["kind"]: f["text"] for f in answer("summary")["findings"]}
    text = rf"Thread {re.escape(backward)} \(\d+\) had waited for mutex a_mu of {other} for .*\. It is held by thread {other}: main "
    assert "deadlock" not in found and re.match(text, found["open-wait"]), found


@test
def of_spin_locks_side_by_side():
    subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "spin"], check=True, timeout=120)
    found = {f["kind"]: f["text"] for f in answer("summary")["findings"]}
    first, second = r"spin lock spins", r"spin lock spins\+0x4"
    for function, has, wants in (("forward", first, second), ("backward", second, first)):
        assert re.search(rf"{function} \(\d+\) holds {has} and waits for {wants}[;.]", found["deadlock"]), found


@test
def a_holder_that_has_ended_is_named():
    subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "ended"], check=True, timeout=120)
    (found,) = [f["text"] for f in answer("summary")["findings"] if f["kind"] == "open-wait"]
    assert re.match(r"Thread backward \(\d+\) had waited for mutex a_mu for .*\. It is held by thread ends \(2\), which has ended without releasing it\. ", found), found


for kind in "mutex", "rwlock", "flock", "range":
    for check_it in deadlock_of_processes, held_by_another_process:
        run = functools.partial(check_it, kind)
        run.__name__ = f"{check_it.__name__}_{kind}"
        test(run)

sys.exit(tap.main())
