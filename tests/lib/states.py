"""The states of processes, from /proc: a test waits for a state, not for a time.

Meson's time limit is the only one: a state that never comes makes the test hang.
"""

import os
import re
import time

STEP_S = 0.005


def until(holds):
    """Waits until the function returns a true value, and returns that."""
    while not (result := holds()):
        time.sleep(STEP_S)
    return result


def text_of(path):
    """The file's text; empty if its process or thread has ended."""
    try:
        with open(path) as file:
            return file.read()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def children(pid):
    """The children of a process, by the kernel."""
    return [int(child) for child in text_of(f"/proc/{pid}/task/{pid}/children").split()]


def open_files(pid):
    """{descriptor: what it is open for}; without those that are closed meanwhile."""
    files = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            files[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            pass
    return files


def tids(pid):
    """In order of creation: the kernel starts again with small numbers."""
    try:
        threads = map(int, os.listdir(f"/proc/{pid}/task"))
    except FileNotFoundError:
        return []
    most = int(text_of("/proc/sys/kernel/pid_max"))
    return sorted(threads, key=lambda tid: (tid - int(pid)) % most)


def calls(pids):
    """{TID: the system call that the thread sleeps in, with its arguments; "running\\n": none}"""
    return {tid: text_of(f"/proc/{pid}/task/{tid}/syscall") for pid in pids for tid in tids(pid)}


def until_all_wait(pids, threads):
    """Returns when there are this many threads, all of which sleep in system calls, twice in the same ones."""
    before = None
    while True:
        now = calls(pids)
        if len(now) == threads and now == before and not {"", "running\n"} & set(now.values()):
            return
        before = now
        time.sleep(STEP_S)


def status(pid, name):
    """A line of /proc/PID/status; empty: the process has ended."""
    found = re.search(rf"^{name}:\t(.*)", text_of(f"/proc/{pid}/status"), re.M)
    return found[1] if found else ""


def is_stopped(pid):
    return status(pid, "State").startswith("T")


def has_signal(pid, mask, number):
    """Whether a mask of the process, such as ShdPnd (pending) or SigBlk (blocked), has the signal."""
    return int(status(pid, mask) or "0", 16) >> number - 1 & 1


def until_taken(pid, number):
    """Returns when the signal, which was sent to the process, is no longer pending, so that the next one is not merged
    with it."""
    until(lambda: not has_signal(pid, "ShdPnd", number))


def cpu_ns(pid):
    """The CPU time of the process, from the kernel's clock for it (clock_getcpuclockid(3))."""
    return time.clock_gettime_ns(~pid << 3 | 2)
