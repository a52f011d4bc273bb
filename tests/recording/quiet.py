#!/usr/bin/env python3
"""What `trail record` adds to a program: the system calls of its threads, as strace(1) counts them with and without it,
and libraries. Prints TAP.

usage: quiet.py TRAIL PRELOAD PROGRAM; the program is that of quiet.c
"""

import collections
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import Skip, main, test
import work

TRAIL, PRELOAD, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:4])
WORK = work.folder("quiet")
# Leak detection does not work under strace.
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}
ENV["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
# The number of sleeps for a lock, and malloc's system calls for it, depend on timing.
BY_TIME = {"futex", "sched_yield", "mmap", "munmap", "mprotect", "madvise", "brk", "restart_syscall"}


def calls(*command):
    """For each thread that marks its beginning, counts its system calls from then on; those of the
    first thread come first."""
    path = os.path.join(WORK, "calls")
    done = subprocess.run(["strace", "-f", "-qq", "-o", path, *command], capture_output=True, text=True, timeout=300, env=ENV)
    assert done.returncode == 0, done.stderr
    threads = {}
    began = None
    for line in open(path, errors="replace"):
        tid, rest = line.split(None, 1)
        began = began or (tid if f'execve("{PROGRAM}"' in rest else None)
        call = re.match(r"(\w+)\(", rest)
        if not began or not call:
            continue
        if call[1] == "getppid" and tid not in threads:
            threads[tid] = collections.Counter()
        if tid in threads:
            threads[tid][call[1]] += 1
    return [count for _, count in sorted(threads.items(), key=lambda thread: thread[0] != began)]


def not_sanitized():
    with open(PRELOAD, "rb") as library:
        if re.search(rb"lib[at]san\.so|__[at]san_init", library.read()):
            raise Skip("a sanitizer makes calls of its own")


def compare(*words):
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "true"], capture_output=True).returncode != 0:
        raise Skip("strace cannot trace here")
    not_sanitized()
    alone = calls(PROGRAM, *words)
    trace = os.path.join(WORK, "x.trace")
    recorded = calls(TRAIL, "record", "-q", "-o", trace, "--", PROGRAM, *words)
    assert len(alone) == len(recorded) == 2, (alone, recorded)
    subprocess.run([TRAIL, "check", trace], check=True, capture_output=True, env=ENV)
    return alone, recorded


@test
def a_recorded_thread_makes_no_system_call_that_it_would_not_make():
    for alone, recorded in zip(*compare()):
        differ = {name for name in set(alone) | set(recorded) if alone[name] != recorded[name]}
        assert differ <= BY_TIME, {name: (alone[name], recorded[name]) for name in differ}


@test
def nor_do_threads_by_the_options_that_record_more():
    alone, _ = compare()
    for options in ["--all"], ["--switches=off", "--min-wait=0"], ["--stacks=fp"], ["--no-children"]:
        recorded = calls(TRAIL, "record", "-q", *options, "-o", os.path.join(WORK, "y.trace"), "--", PROGRAM)
        for one, other in zip(alone, recorded):
            differ = {name for name in set(one) | set(other) if one[name] != other[name]}
            assert differ <= BY_TIME, (options, {name: (one[name], other[name]) for name in differ})


@test
def the_library_loads_no_other_into_a_program():
    if not shutil.which("readelf"):
        raise Skip("no readelf")
    not_sanitized()
    heap = os.path.join(os.path.dirname(PRELOAD), "libtrail-heap.so")
    for library in [PRELOAD] + [heap] * os.path.exists(heap):
        listing = subprocess.check_output(["readelf", "-dW", library], text=True)
        needed = re.findall(r"NEEDED.*\[(.*?)\]", listing)
        others = [name for name in needed if not re.match(r"(ld-linux.*|libc|libpthread|libdl|librt)\.so\b", name)]
        assert needed and not others, needed


if __name__ == "__main__":
    sys.exit(main())
