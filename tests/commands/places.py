"""--skip-frames: which frame names a place, and the error for a file that cannot be read. TAP.

usage: places.py TRAIL SOURCE_ROOT
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORK = tempfile.TemporaryDirectory(prefix="trail-places-")
NOBODY = 18446744073709551615

# A C++ thread waits for 5 ms: the stack, leaf first, as function, file and line.
STACK = [
    ("pthread_mutex_lock", "", 0),
    ("std::mutex::lock()", "/usr/include/c++/12/bits/std_mutex.h", 100),
    ("pool::Queue<int>::pop(int&)", "/src/pool/queue.h", 7),
    ("libplugin.so+0x1234", "", 0),
    ("void run<long, std::ratio<1l, 2l> >(long)", "/src/app.cpp", 42),
    ("nolines", "", 0),
    ("main", "/src/app.cpp", 50),
]


def trace(name, stack):
    strings = ["sync", "wait", "mutex queue_mu"] + sorted({s for f in stack for s in f[:2] if s})
    number = {text: i for i, text in enumerate(strings, 1)}
    number[""] = 0
    out = ["Trace Go1.26", f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Sync", "Frequency freq=1000000000",
           "ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0",
           "EventBatch gen=1 m=100 time=1000 size=auto",
           "ProcStatus dt=1 p=0 pstatus=1", "GoStatus dt=1 g=1 m=100 gstatus=2",
           f"UserLog dt=10 task=0 key_string={number['wait']} value_string={number['mutex queue_mu']} stack=0",
           "GoBlock dt=10 reason_string=1 stack=1",
           "EventBatch gen=1 m=101 time=1001 size=auto",
           "ProcStatus dt=1 p=1 pstatus=1", "GoStatus dt=1 g=2 m=101 gstatus=2",
           "GoUnblock dt=5000000 g=1 g_seq=1 stack=0",
           f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Stacks", f"Stack id=1 nframes={len(stack)}"]
    out += [f"\tpc={4096 + i} func={number[f]} file={number[file]} line={line}" for i, (f, file, line) in enumerate(stack)]
    out += [f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Strings"]
    for text in strings:
        out += [f"String id={number[text]}", f'\tdata="{text}"']
    path = os.path.join(WORK.name, name)
    with open(path + ".txt", "w") as f:
        f.write("\n".join(out + ["EndOfGeneration", ""]))
    subprocess.run([TRAIL, "assemble", path + ".txt", "-o", path], check=True, capture_output=True)
    subprocess.run([TRAIL, "check", path], check=True, capture_output=True)
    return path


def run(*args):
    done = subprocess.run([TRAIL, *args], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stdout, done.stderr


def skip_file(text):
    path = os.path.join(WORK.name, "skip")
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())
    return path


def place(path, skip=None):
    """Where the lock was waited for."""
    code, out, err = run("locks", *([f"--skip-frames={skip_file(skip)}"] if skip is not None else []), path)
    assert code == 0, err
    (line,) = [line for line in out.splitlines() if line.startswith("    1 x")]
    return line.split(": in ")[1]


WHOLE = trace("whole", STACK)


@test
def a_place_is_the_innermost_function_of_the_program():
    assert place(WHOLE) == "pool::Queue<int>::pop (queue.h:7) < libplugin.so+0x1234", place(WHOLE)


@test
def what_is_skipped_names_no_place_nor_its_caller():
    for skip in ("pool::*\n", "# ours\n\n  pool::*  \n", "file:/src/pool/*\n", "*::pop", "pool::Queue<int>::pop\r\n"):
        assert place(WHOLE, skip) == "run<long, ratio<...>> (app.cpp:42) < nolines", (skip, place(WHOLE, skip))
    assert place(WHOLE, "pool::*\nrun\n") == "nolines < main", place(WHOLE, "pool::*\nrun\n")


@test
def an_address_names_a_place_only_where_nothing_else_of_the_program_does():
    assert place(trace("address", STACK[:2] + STACK[3:4])) == "libplugin.so+0x1234"
    assert place(trace("system", STACK[:2])) == "pthread_mutex_lock"


@test
def the_full_stack_is_shown_where_a_stack_is():
    code, out, err = run("locks", "--stacks", f"--skip-frames={skip_file('pool::*')}", WHOLE)
    for function, file, line in STACK:
        assert f"{function} {file}:{line}" in out if line else function in out, (function, out)
    assert ":0" not in out, out
    stack = json.loads(run("locks", "--json", WHOLE)[1])["locks"][0]["waiters"][0]["stack"]
    assert [frame["function"] for frame in stack] == [function for function, _, _ in STACK], stack


@test
def each_command_that_names_places_has_the_option():
    skip = skip_file("pool::*\n")
    for command in (["why"], ["profile"], ["latency"], ["locks"], ["summary"], ["goroutines"], ["diff", WHOLE], ["report"]):
        code, _, err = run(command[0], f"--skip-frames={skip}", *command[1:], WHOLE)
        assert code == 0, (command, err)
    code, _, err = run("find", f"--skip-frames={skip}", WHOLE, "block")
    assert code == 0, err


@test
def a_line_that_is_no_pattern_is_told_with_its_place():
    for text, number, why in (("a\n*\n", 2, "covers everything"), ("# x\n\nfile:\n", 3, "no pattern"), ("a\0b\n", 1, "NUL"),
                              ("x" * 1001, 1, "longer than 1000"), ("p\n" * 1001, 1001, "more than 1000"), ("a\x01b", 1, "control")):
        path = skip_file(text)
        for command in (["locks", f"--skip-frames={path}", WHOLE], ["record", f"--skip-frames={path}", "--", "true"],
                        ["view", "--no-open", f"--skip-frames={path}", WHOLE]):
            code, _, err = run(*command)
            assert code == 2 and f"{path}:{number}: " in err and why in err, (command, code, err)


@test
def a_file_that_is_not_there_is_told():
    code, _, err = run("locks", "--skip-frames=/nowhere/skip", WHOLE)
    assert code == 3 and "cannot open /nowhere/skip: No such file or directory" in err, (code, err)


sys.exit(tap.main())
