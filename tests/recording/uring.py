"""Waits in an io_uring ring: `trail stuck` shows the pending operations, a recording shows the ring
(uring.c). TAP.

usage: uring.py TRAIL PROGRAM
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import recorded
import states
import tap
import work
from states import text_of
from tap import Skip, test

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:3])
TRACE = os.path.join(work.folder("uring"), "x.trace")
ENTER = 426  # SYS_io_uring_enter
# Waits in an empty ring until a signal. CDLL(None) finds the recorder's function before the
# library's.
LIBRARY = """
import ctypes, signal, sys
signal.signal(signal.SIGUSR1, lambda *_: None)
library = ctypes.CDLL("liburing.so.2", mode=ctypes.RTLD_GLOBAL)
ring, entry, limit = ctypes.create_string_buffer(1024), ctypes.c_void_p(), (ctypes.c_longlong * 2)(100000)
if library.io_uring_queue_init(4, ring, 0) != 0:
    sys.exit(77)
sys.exit(ctypes.CDLL(None).io_uring_wait_cqe_timeout(ring, ctypes.byref(entry), limit) != -4)  # EINTR
"""
NO_RINGS = "the kernel lets no program make rings (kernel.io_uring_disabled, or a container), or has no table of them"


def waits(pid):
    """Whether the thread waits in io_uring_enter for an operation to end: the third argument is 1."""
    words = text_of(f"/proc/{pid}/syscall").split()
    return len(words) > 3 and words[0] == str(ENTER) and words[3] == "0x1"


@contextlib.contextmanager
def waiting(what):
    with subprocess.Popen([PROGRAM, what]) as process:
        try:
            states.until(lambda: process.poll() is not None or waits(process.pid))
            if process.poll() == 77:
                raise Skip(NO_RINGS)
            assert process.poll() is None, process.returncode
            yield process.pid
        finally:
            process.kill()


def ring_of(pid):
    return int(text_of(f"/proc/{pid}/syscall").split()[1], 16)


def has_list(pid, count):
    """Whether the kernel lists this many pending operations."""
    return len(re.findall(r"^ +op=\d+,", text_of(f"/proc/{pid}/fdinfo/{ring_of(pid)}"), re.M)) == count


def may_read_entries(pid):
    """Whether another process may read the memory of the ring's entries: not before Linux 6.10."""
    if not re.search(r"^ino:", text_of(f"/proc/{pid}/fdinfo/{ring_of(pid)}"), re.M):
        return False
    (start,) = re.findall(r"^([0-9a-f]+)-\S+ \S+ 10000000 .*\[io_uring\]$", text_of(f"/proc/{pid}/maps"), re.M)
    try:
        with open(f"/proc/{pid}/mem", "rb") as memory:
            memory.seek(int(start, 16))
            return len(memory.read(64)) == 64
    except OSError:
        return False


def object_of(pid):
    done = subprocess.run([TRAIL, "stuck", "--json", str(pid)], capture_output=True, text=True, timeout=120)
    if "ptrace_scope" in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == 0, done
    (process,) = json.loads(done.stdout)["processes"]
    (thread,) = process["threads"]
    assert (thread["state"], thread["wait_kind"]) == ("waiting", "poll"), thread
    return thread["object"]


def check(what, count, operations, with_files):
    with waiting(what) as pid:
        if not has_list(pid, count):
            raise Skip("the kernel does not list the operations that wait in a ring")
        right = with_files if may_read_entries(pid) else operations
        head, text = object_of(pid).split(": ")
        assert head == f"{count} operation{'s' * (count != 1)} of io_uring", head
        assert sorted(text.split(", ")) == sorted(right), (text, right)


@test
def operations_that_wait_have_their_files():
    check("r", 1, ["read"], ["read pipe"])
    check("rs", 2, ["read", "recv"], ["read pipe", "recv Unix socket"])


@test
def a_registered_descriptor_is_no_descriptor():
    check("f", 1, ["read"], ["read"])


@test
def of_two_entries_of_which_one_waits_it_is_not_known_which():
    check("Rr", 1, ["read"], ["read"])


@test
def entries_that_were_used_again_tell_no_file():
    check("rnnns", 2, ["read", "recv"], ["read", "recv"])


@test
def a_ring_without_operations_is_named():
    with waiting("") as pid:
        assert object_of(pid) == "io_uring"


def ring_waits(recorder):
    """Returns the thread of the recorder's program that waits in a ring, or 0."""
    return next((tid for child in states.children(recorder) for tid in states.tids(child) if waits(tid)), 0)


def record(command, ends):
    """Records a wait that the recorder examines while it lasts; `ends` ends it. Returns the events."""
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", TRACE, "--", *command], stdin=subprocess.PIPE)
    tid = states.until(lambda: recorder.poll() is not None or ring_waits(recorder.pid))
    if recorder.poll() is None:
        # It examines waits that last longer than OPEN_NS in src/collect/open_stacks.c.
        time.sleep(0.05)
        recorded.step(recorder.pid)
        ends(recorder, tid)
    recorder.communicate(timeout=300)
    if recorder.returncode == 77:
        raise Skip(NO_RINGS)
    assert recorder.returncode == 0, recorder.returncode
    text = subprocess.run([TRAIL, "print", "--format=jsonl", TRACE], check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def wait_in_ring(*arguments):
    """Returns the name that a recording gives to the wait in waits_in_ring."""
    events = record([PROGRAM, "-", *arguments], lambda recorder, tid: os.write(recorder.stdin.fileno(), b"\n"))
    (at,) = [i for i, e in enumerate(events)
             if e.get("to") == "Waiting" and any(f["func"] == "waits_in_ring" for f in e.get("stack", []))]
    assert events[at]["reason"] == "network", events[at]
    return events[at - 1].get("message")


def list_of(what, count):
    """Returns whether the files of the operations are readable. Skips the test if the kernel does
    not list the operations."""
    with waiting(what) as pid:
        if not has_list(pid, count):
            raise Skip("the kernel does not list the operations that wait in a ring")
        return may_read_entries(pid)


@test
def a_recording_has_the_operations_of_a_wait_that_it_has_looked_at():
    with_files = list_of("rs", 2)
    name = wait_in_ring("rs")
    head, operations = name.split(": ", 1)
    assert head == "poll 2 operations of io_uring", name
    pattern = r"read pipe:\[\d+\], recv \S.*" if with_files else "(read, recv|recv, read)"
    assert re.fullmatch(pattern, ", ".join(sorted(operations.split(", ")))), name


@test
def liburings_waits_name_the_ring():
    if subprocess.run([sys.executable, "-c", LIBRARY.split("sys.exit(ctypes")[0]], stderr=subprocess.DEVNULL).returncode:
        raise Skip("no liburing.so.2, or the kernel lets no program make rings")
    events = record([sys.executable, "-c", LIBRARY], lambda recorder, tid: os.kill(tid, signal.SIGUSR1))
    assert any(e.get("message") == "poll [io_uring]" for e in events), events


@test
def a_registered_ring_is_no_descriptor():
    assert wait_in_ring("r", "registered") == "poll"


sys.exit(tap.main())
