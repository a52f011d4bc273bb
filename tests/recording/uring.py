"""Waits in a ring of io_uring: `trail stuck` shows the operations that wait, a recording the ring (uring.c). TAP.

usage: uring.py TRAIL PROGRAM
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import Skip, test

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:3])
WORK = tempfile.TemporaryDirectory(prefix="trail-uring-")
TRACE = os.path.join(WORK.name, "x.trace")
ENTER = 426  # SYS_io_uring_enter


def text_of(path):
    with open(path) as file:
        return file.read()


def waits(pid):
    """Whether it is in io_uring_enter until an operation has ended: the third argument is 1."""
    words = text_of(f"/proc/{pid}/syscall").split()
    return len(words) > 3 and words[0] == str(ENTER) and words[3] == "0x1"


@contextlib.contextmanager
def waiting(what):
    with subprocess.Popen([PROGRAM, what]) as process:
        try:
            for _ in range(12000):
                if process.poll() is not None or waits(process.pid):
                    break
                time.sleep(0.01)
            if process.poll() == 77:
                raise Skip("the kernel lets no program make rings (kernel.io_uring_disabled, or a container)")
            assert process.poll() is None, process.returncode
            yield process.pid
        finally:
            process.kill()


def ring_of(pid):
    return int(text_of(f"/proc/{pid}/syscall").split()[1], 16)


def has_list(pid, count):
    """Whether the kernel lists so many operations that wait."""
    return len(re.findall(r"^ +op=\d+,", text_of(f"/proc/{pid}/fdinfo/{ring_of(pid)}"), re.M)) == count


def may_read_entries(pid):
    """Whether the ring's entries are memory that another process may read: not before Linux 6.10."""
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


@test
def a_recording_names_the_ring():
    done = subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, "late", "r"], capture_output=True, text=True, timeout=120)
    if done.returncode == 77:
        raise Skip("the kernel lets no program make rings (kernel.io_uring_disabled, or a container)")
    assert done.returncode == 0, done
    text = subprocess.run([TRAIL, "print", "--format=jsonl", TRACE], check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in text.splitlines()]
    (at,) = [i for i, e in enumerate(events)
             if e.get("to") == "Waiting" and any(f["func"] == "waits_in_ring" for f in e.get("stack", []))]
    assert events[at]["reason"] == "network" and events[at - 1].get("message") == "poll [io_uring]", events[at - 1 : at + 1]


sys.exit(tap.main())
