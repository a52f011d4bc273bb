"""Waits of programs in several languages have the names that their users know, in `trail stuck` and in
recordings. TAP.

usage: languages.py TRAIL ATOMICS [PROGRAM...]     atomics.cpp; glib.c and qt.cpp, where the libraries are
"""

import functools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import tap
import work
from tap import Skip

TRAIL, ATOMICS, *PROGRAMS = (os.path.abspath(a) for a in sys.argv[1:])
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = work.folder("languages")
TRACE = os.path.join(WORK, "x.trace")


# Waits must last at least 100 ms to be findings.
HOLD_S = 0.2


def test(name):
    def add(function):
        function.__name__ = name
        return tap.test(function)

    return add


def answer(*args):
    done = subprocess.run([TRAIL, *map(str, args)], capture_output=True, text=True, timeout=240)
    if "ptrace_scope" in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == 0, (args, done.returncode, done.stderr)
    return done.stdout


class Hanging:
    """A program whose threads wait until it is killed."""

    def __init__(self, threads, *command):
        self.threads, self.command = threads, command

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)
        states.until_all_wait([self.process.pid], self.threads)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def text(self, *options):
        return answer("stuck", "--limit=100s", *options, self.process.pid)

    def waits(self):
        """[(thread's name, kind, object)]"""
        (process,) = json.loads(self.text("--json"))["processes"]
        self.hangs = process["hangs"]
        return [(t["name"], t["wait_kind"], t.get("object", "")) for t in process["threads"]]


def recorded_hang(threads, *command):
    """Ends a recording when all threads wait. Returns its findings, {kind: text}."""
    pid = None
    # The program also receives the first signal; the second only ends the recording.
    command = "env", "--ignore-signal=TERM", *command
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", TRACE, "--", *command], stdin=subprocess.DEVNULL)
    try:
        (pid,) = states.until(lambda: states.children(recorder.pid))
        states.until_all_wait([pid], threads)
        time.sleep(HOLD_S)
        for _ in range(2):
            recorder.send_signal(signal.SIGTERM)
            states.until_taken(recorder.pid, signal.SIGTERM)
        assert recorder.wait(timeout=240) == 0
    finally:
        recorder.kill()
        recorder.wait()
        if pid:
            os.kill(pid, signal.SIGKILL)
    return {f["kind"]: f["text"] for f in json.loads(answer("summary", "--json", TRACE))["findings"]}


# Kinds with another name in the output.
KINDS = {"condition": "condition variable"}
IN_PLACE = r"in wait_here \(atomics\.cpp:\d+\)"

for case, kind, thing in (
    ("atomic", "atomic", "number"),
    ("flag", "atomic", f"flag|{IN_PLACE}"),
    ("wide", "atomic", f"wide|{IN_PLACE}"),
    ("latch", "latch", "latch"),
    ("semaphore", "semaphore", "semaphore"),
    ("barrier", "barrier", IN_PLACE),
    ("completion", "barrier", IN_PLACE),
    ("future", "future", IN_PLACE),
    ("shared", "rwlock", "catalog"),
    ("any", "condition", "any"),
    ("lost", "condition", "lost"),
):

    @test(f"C++20: {case}: is known from outside, and a program that can only wait is said to hang")
    def _(case=case, kind=kind, thing=thing):
        with Hanging(2, ATOMICS, case, "hang") as program:
            waits = program.waits()
            assert [w[1] for w in waits].count("join") == 1, waits
            ((_, k, o),) = [w for w in waits if w[1] != "join"]
            assert k == kind and re.fullmatch(thing, o), waits
            assert program.hangs, waits
            text = program.text()
            assert "no thread can continue" in text, text
            # The frames below the thread's function belong to the library.
            assert "wait_here" in text and "_M_invoke" not in text and "start_thread" not in text, text
            # Not every C library has symbols for them.
            assert len(program.text("--frames=0").splitlines()) > len(text.splitlines()), text

    @test(f"C++20: {case}: a recording of a program that hangs says for what")
    def _(case=case, kind=kind, thing=thing):
        found = recorded_hang(2, ATOMICS, case, "hang")
        if kind == "rwlock":  # main holds it, and waits for the other thread to exit
            assert re.search(r"main \(\d+\) holds rwlock catalog and waits for the exit of .* waits for rwlock catalog\.", found["deadlock"]), found
            return
        assert re.search(rf"^Thread .* waited for {KINDS.get(kind, kind)} ({thing})[,;( ]", found["never-woken"]), found


@test("C++20: a signal that came before the wait for it is said")
def _():
    found = recorded_hang(2, ATOMICS, "lost", "hang")
    said = r"condition variable lost .*\. signal_too_early(\(\))? \(atomics\.cpp:\d+\) signalled it before the wait, when no thread waited"
    assert re.search(said, found["never-woken"]), found
    assert "signalled" not in recorded_hang(2, ATOMICS, "any", "hang")["never-woken"]


# MARK: Rust


@functools.cache
def rust(*options):
    if not shutil.which("rustc"):
        raise Skip("no rustc")
    path = os.path.join(WORK, "waits" + "".join(options))
    subprocess.run(["rustc", "-g", "--edition=2021", *options, "-o", path, os.path.join(HERE, "waits.rs")], check=True, timeout=600)
    return path


ADDRESS = r"0x[0-9a-f]+"
RUST = {
    "mutex": ("mutex", ADDRESS), "read": ("rwlock", ADDRESS), "write": ("rwlock", ADDRESS), "condition": ("condition", ADDRESS),
    "barrier": ("barrier", r"in waits::\S+ \(waits\.rs:\d+\)"), "receive": ("channel-receive", r"in waits::\S+ \(waits\.rs:\d+\)"),
    "send": ("channel-send", r"in waits::\S+ \(waits\.rs:\d+\)"), "park": ("park", r"in waits::\S+ \(waits\.rs:\d+\)"),
    "first": ("park", r"in waits::\S+ \(waits\.rs:\d+\)"), "once": ("once", r"waits::ONCE\S*"),
}  # fmt: skip


@test("Rust: each wait of its library is known from outside, and holders by the guards in their stacks")
def _():
    with Hanging(11, rust(), "kinds") as program:
        waits = {name: (kind, thing) for name, kind, thing in program.waits()}
        for name, (kind, thing) in RUST.items():
            assert waits[name][0] == kind and re.fullmatch(thing, waits[name][1]), (name, waits[name])
        text = program.text()
        for name, kind in ("mutex", "mutex"), ("read", "rwlock"), ("write", "rwlock"):
            holder = rf"waiting for {kind} {ADDRESS}, held by thread {program.process.pid} \(\S+\) \(inferred from its stack\)"
            assert re.search(rf"^thread \d+ \({name}\): {holder}$", text, re.M), text
        # Names of functions have no traits, and the frames that start a thread are left out.
        assert "waits::kinds" in text and "FnOnce" not in text and "lang_start" not in text, text


@test("Rust: a deadlock is found from outside")
def _():
    with Hanging(3, rust(), "deadlock") as program:
        text = program.text()
        assert text.startswith("deadlock, with holders inferred from stacks:\n"), text
        (cycle,) = json.loads(program.text("--json"))["deadlocks"]
        names = {str(t["tid"]): states.text_of(f"/proc/{program.process.pid}/task/{t['tid']}/comm").strip() for t in cycle}
        assert sorted(names.values()) == ["backward", "forward"], (cycle, names)


@test("Rust: holders and a deadlock are found among threads that were not stopped together")
def _():
    with Hanging(104, rust(), "crowd") as program:
        answer = json.loads(program.text("--json"))
        (process,) = answer["processes"]
        assert process["groups"] > 1, process["groups"]
        names = {t["tid"]: t["name"] for t in process["threads"]}
        (cycle,) = answer["deadlocks"]
        assert sorted(names[t["tid"]] for t in cycle) == ["backward", "forward"], cycle
        (read,) = [t for t in process["threads"] if t["name"] == "read"]
        assert (read["holder"], read["holder_inferred"]) == (program.process.pid, True), read


@test("Rust: a deadlock is found in a recording")
def _():
    found = recorded_hang(3, rust(), "deadlock")
    assert "(holders inferred from stacks)" in found["deadlock"], found
    for name in "forward", "backward":
        assert re.search(rf"[Tt]hread {name} \(\d+\) holds mutex {ADDRESS} .*and waits for mutex {ADDRESS}", found["deadlock"]), found


@test("Rust: a recording has the holder, and a thread that waits for a condition holds nothing")
def _():
    found = recorded_hang(11, rust(), "kinds")
    assert "deadlock" not in found, found
    assert re.search(r"held by thread main \(\d+\), inferred from its stack", found["open-wait"]), found
    events = answer("print", "--format=jsonl", TRACE).splitlines()
    threads = {row["id"]: row["name"] for row in json.loads(answer("goroutines", "--json", TRACE))["goroutines"]}
    holds = [json.loads(e) for e in events if '"holds, inferred"' in e]
    assert {threads[h["g"]] for h in holds} == {"main"}, holds


# MARK: Qt, GLib


def optional(name):
    found = [path for path in PROGRAMS if path.endswith(f"-{name}")]
    if not found:
        raise Skip(f"the library of {name} is not here")
    return found[0]


LIBRARIES = {
    "glib": (5, {
        "mutex": ("mutex", r"log_mu \(GMutex\)"), "condition": ("condition", r"ready \(GCond\)"), "bit": ("mutex", r"bit \(g_bit_lock\)"),
        "queue": ("channel-receive", r"GAsyncQueue in wait_for_job \(glib\.c:\d+\)"),
    }),
    "qt": (5, {
        "mutex": ("mutex", r"log_mu \(QMutex\)"), "condition": ("condition", r"QWaitCondition in .*\(qt\.cpp:\d+\)"),
        "read": ("rwlock", r"QReadWriteLock in .*\(qt\.cpp:\d+\)"), "semaphore": ("semaphore", r"tickets \(QSemaphore\)"),
    }),
}  # fmt: skip

for library, (count, known) in LIBRARIES.items():

    @test(f"{library}: each wait is known from outside")
    def _(library=library, count=count, known=known):
        with Hanging(count, optional(library)) as program:
            waits = {name: (kind, thing) for name, kind, thing in program.waits()}
            for name, (kind, thing) in known.items():
                assert waits[name][0] == kind and re.fullmatch(thing, waits[name][1]), (name, waits[name])

    @test(f"{library}: each wait is known in a recording")
    def _(library=library, count=count, known=known):
        recorded_hang(count, optional(library))
        locks = [row["name"] for row in json.loads(answer("locks", "--json", TRACE))["locks"]]
        for kind, thing in known.values():
            assert any(re.fullmatch(thing, lock) for lock in locks), (kind, thing, locks)


# MARK: Interpreters


@test("Python: a thread that may not run waits for the lock of the interpreter")
def _():
    # A function called through ctypes.PyDLL keeps the GIL.
    code = """import ctypes, threading
def work():
    while not done:
        pass
done = False
worker = threading.Thread(target=work)
worker.start()
ctypes.PyDLL(None).usleep(200000)
done = True
worker.join()"""
    done = subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", sys.executable, "-c", code], timeout=240)
    assert done.returncode == 0, done
    locks = {row["name"]: row for row in json.loads(answer("locks", "--json", TRACE))["locks"]}
    assert locks["GIL of Python"]["wait_kind"] == "interpreter-lock", locks


@test("Ruby: a thread that may not run waits for the lock of the interpreter")
def _():
    if not shutil.which("ruby"):
        raise Skip("no Ruby; install ruby")
    code = "4.times { Thread.new { loop { 1 + 1 } } }; $stdout.sync = true; sleep 0.5; puts :ready; loop { 1 + 1 }"
    process = subprocess.Popen(["ruby", "-e", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        (looked,) = json.loads(answer("stuck", "--limit=100s", "--json", process.pid))["processes"]
        waits = [(t["wait_kind"], t.get("object")) for t in looked["threads"] if t["state"] == "waiting"]
        assert ("interpreter-lock", "GVL of Ruby") in waits, waits
    finally:
        process.kill()
        process.wait()


@test("Erlang: schedulers without work wait for work")
def _():
    if not shutil.which("erl"):
        raise Skip("no Erlang; install erlang-base")
    process = subprocess.Popen(["erl", "-noshell", "-eval", 'io:format("ready~n"), receive after infinity -> ok end.'],
                               stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        (looked,) = json.loads(answer("stuck", "--limit=100s", "--json", process.pid))["processes"]
        waits = [(t["wait_kind"], t.get("object")) for t in looked["threads"] if "dirty" in t["name"] and t["state"] == "waiting"]
        assert waits and set(waits) == {("work", "Erlang scheduler")}, waits
    finally:
        process.kill()
        process.wait()


sys.exit(tap.main())
