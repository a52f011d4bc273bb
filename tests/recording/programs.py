#!/usr/bin/env python3
"""`trail record` on programs with known answers. TAP.

usage: programs.py answers|attached|survival TRAIL PRELOAD SOURCE_ROOT PROGRAM...

answers: programs with a known answer, and the table of wrapped functions.
attached: some of them, started by something other than the recorder. With TRAIL_TEST_EMULATOR in the
    environment, such as "qemu-aarch64 -L ROOT", the programs and the recorder are for another machine
    and run under that command.
survival: what a recorder might break in a program, each scenario with and without it.

The programs next to this file print which thread waited where, how long and for which thread, by their own
measurements, which are compared with the trace. Every trace must be accepted by `trail check` and by Go's tools.

Nothing depends on how long anything takes. The programs' threads take turns, so that it is known which waits
for which; and they read the clock before and after each call, so that the recorder's readings lie in between
even if a thread loses its CPU.
"""

import collections
import difflib
import functools
import glob
import json
import os
import pty
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import nobody
import work
import states
from recorded import Trace, is_whole
from tap import finish, report, skip

PART = sys.argv[1]
TRAIL, PRELOAD, ROOT = (os.path.abspath(a) for a in sys.argv[2:5])
# Keyed by the source file beside this one: recording-answers is built from answers.c.
PROGRAMS = {os.path.basename(a).split("-", 1)[1]: os.path.abspath(a) for a in sys.argv[5:]}
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
ENV.pop("LD_PRELOAD", None)
ENV.pop("TRAIL_SHM", None)
EMULATOR = ENV.get("TRAIL_TEST_EMULATOR", "").split()
# The root of the programs' libraries, which differs if they are for another machine
# (tools/foreign).
FOREIGN_ROOT = ENV.get("QEMU_LD_PREFIX", "/") if PART != "attached" else "/"

LIMIT = 120  # s, in case something hangs

# Allowed difference between two clocks: the trace's is a scaled CPU counter.
CLOCK_NS = 1_000
# By how much the kernel's switches may precede the thread's next action (SKEW_NS): their clock
# differs.
SKEW_NS = 100_000
# The recorder writes events that are older than this (COLLECT_DELAY_NS).
DELAY_NS = 200_000_000


def run(*args, **more):
    p = subprocess.run(args, capture_output=True, env=ENV, timeout=LIMIT, **more)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def record(path, *program):
    if PART == "attached":
        return record_attached(path, *program)
    return run(TRAIL, "record", "--no-children", "-o", path, "--", *program)


def record_attached(path, *program):
    """Returns the program's status and output, and the messages of a recorder beside it. Both must end normally."""
    area = path + ".area"
    recorder = subprocess.Popen([TRAIL, "record", "--attach-shm", area, "-o", path], stderr=subprocess.PIPE, env=ENV)
    try:
        while not os.path.exists(area) and recorder.poll() is None:
            time.sleep(0.01)
        joining = {"LD_PRELOAD": PRELOAD, "TRAIL_SHM": f"path:{area}"}
        if EMULATOR:
            # For the emulated program, not for the emulator.
            command = [*EMULATOR, *(word for name, value in joining.items() for word in ("-E", f"{name}={value}"))]
            joining = {}
        else:
            command = []
        done = subprocess.run([*command, *program], capture_output=True, env={**ENV, **joining}, timeout=LIMIT)
    finally:
        recorder.send_signal(signal.SIGINT)
        _, err = recorder.communicate(timeout=LIMIT)
    assert recorder.returncode == 0, err
    return done.returncode, done.stdout.decode("utf-8", "replace"), err.decode("utf-8", "replace")


def emulate(folder):
    """Makes TRAIL a command that runs on this machine."""
    global TRAIL
    command = os.path.join(folder, "trail")
    with open(command, "w") as f:
        f.write(f'#!/bin/sh\nexec {shlex.join([*EMULATOR, TRAIL])} "$@"\n')
    os.chmod(command, 0o755)
    TRAIL = command




def go_tool():
    """Debian's golang-1.23, or an unpacked package beside the system: TRAIL_GO=/somewhere/usr/lib"""
    for folder in [*filter(None, os.environ.get("TRAIL_GO", "").split(":")), "/usr/lib"]:
        go = os.path.join(folder, "go-1.23", "bin", "go")
        if os.access(go, os.X_OK):
            return go
    return None


GO = go_tool()
# Ignore the user's settings, and use no network.
GO_ENV = {**ENV, "GOTOOLCHAIN": "local", "GOFLAGS": "", "HOME": tempfile.gettempdir()}


def go(*args):
    p = subprocess.run([GO, "tool", *args], capture_output=True, env=GO_ENV, timeout=LIMIT)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def sync_profile(path):
    """The functions that `go tool trace -pprof=sync` and `pprof -top` list."""
    code, out, err = go("trace", "-pprof=sync", path)
    assert code == 0, err
    with tempfile.NamedTemporaryFile(suffix=".pprof") as profile:
        profile.write(out)
        profile.flush()
        code, out, err = go("pprof", "-top", "-nodecount=1000", "-nodefraction=0", profile.name)
    assert code == 0, err
    return {line.split()[-1] for line in out.decode().splitlines() if "%" in line}


def accepted(name, path):
    """Reports whether `trail check` and Go's reader accept the trace."""
    code, out, err = run(TRAIL, "check", path)
    report(code == 0, f"{name}: trail check accepts the trace", out, err)
    if not GO:
        skip(f"{name}: go tool trace reads the trace", "no golang-1.23")
        return
    code, out, err = go("trace", "-d=1", path)
    report(code == 0, f"{name}: go tool trace reads the trace", err)


# Answers and traces


REASONS = {"condition": "sync.(*Cond).Wait"}  # for all others here: "sync"


def is_within(time, begin, end):
    return begin - CLOCK_NS <= time <= end + CLOCK_NS


def waits_of(trace, answer):
    """Returns the trace's waits within the answer's times: one, or several if a mutex is taken again."""
    # Reacquiring begins where the wait for the condition ends.
    skew = CLOCK_NS if answer["kind"] == "mutex again" else SKEW_NS
    return [
        w
        for w in trace.waits
        if w.tid == answer["tid"]
        and not w.of_kernel  # on the way to the call
        and w.begin >= answer["begin"] - skew
        and w.end
        and answer["begin"] <= w.end <= answer["end"] + CLOCK_NS
    ]


@functools.lru_cache
def globals_of(program):
    code, out, err = run("nm", "-C", program)
    assert code == 0, err
    return {line[19:]: int(line[:16], 16) for line in out.splitlines() if line[0] != " "}


def is_object(text, kind, address):
    """"mutex 0x55d0c8a01040 (first seen locked in f)", or for a global variable "mutex table+0x10",
    with the name from nm."""
    text = re.sub(r" \(first seen locked in \S.*\)$", "", text)
    if PART == "attached":
        # A trace that may contain several processes names them.
        text, labels = re.subn(r" of \S+ \(\d+\)$", "", text)
        if not labels:
            return False
    found = re.fullmatch(r"(\S.*) ([^ +]+)(?:\+(0x[0-9a-f]+))?", text)
    if not found or found[1] != kind:
        return False
    if found[2].startswith("0x"):
        return int(found[2], 16) == address
    places = [at for program in PROGRAMS.values() for name, at in globals_of(program).items() if name == found[2]]
    # Address-space randomization moves programs by whole pages.
    return any((address - place - int(found[3] or "0", 16)) % 4096 == 0 for place in places)


def called(name, functions):
    """Whether the named function called the waiting one, directly or through functions of the C++ library."""
    names = [f.split("(")[0] for f in functions[:8]]
    return name in names and all(re.search(r"std::|^__|[<>]", f) for f in functions[: names.index(name)])


def kind_of(answer):
    return answer["kind"].removesuffix(" again")


def wrong_names(answer, wait):
    """Compares the place, the object and the waker."""
    if not called(answer["in"], wait.functions):
        yield f"waited in {wait.functions}"
    if wait.reason != REASONS.get(kind_of(answer), "sync"):
        yield f"reason is {wait.reason!r}"
    if answer["object"] and not is_object(wait.object, kind_of(answer), answer["object"]):
        yield f"object is {wait.object!r}"
    if wait.waker != answer["waker"]:
        yield f"waker is {wait.waker} in {wait.waker_functions}"
    elif answer["by"] and not called(answer["by"], wait.waker_functions):
        yield f"waker let go in {wait.waker_functions}"


def wrong_times(answer, waits):
    """Each time in the trace must lie between the program's readings of the clock before and after it."""
    begin, at, end = answer["begin"], answer["at"], answer["end"]
    # The waker saw the thread sleep. A time limit may pass before the call.
    if not is_within(waits[0].begin, begin - SKEW_NS, at if answer["waker"] else end):
        yield f"began at {waits[0].begin}"
    # If the thread gets a CPU only after the release was written, the wait ends where its end is
    # known.
    is_late = end - at >= DELAY_NS and waits[0].ready and waits[0].waker
    if not is_within(waits[0].ready or 0, at, end if is_late else answer["done"] or end):
        yield f"let go at {waits[0].ready}"
    if not is_within(waits[-1].end, at, end):
        yield f"ended at {waits[-1].end}"


ANSWERS = [
    "mutexes",
    "chain",
    "queue",
    "readers",
    "producer-consumer",
    "pool",
    "storms",
    "mutex-again",
    "semaphores",
    "barriers",
    "once",
    "joins",
    "time-limits",
    "preempted",
    "crowd",
]
ATTACHED = ["mutexes", "chain", "producer-consumer", "barriers", "joins"]
ANSWERS_CXX = ["std-mutex", "std-time-limit", "std-shared", "std-condition", "std-exceptions", "std-once"]
# These wait by syscall(SYS_futex, ...) in the C++ library.
ANSWERS_CXX += ["std-future", "std-atomic"]

# The number of waits that the programs guarantee.
WAITS = {
    "mutexes": 16, "chain": 2, "queue": 6, "readers": 5, "producer-consumer": 20, "pool": 14, "storms": 160,
    "late recorder": 75, "mutex-again": 6, "semaphores": 3, "barriers": 4, "once": 1, "joins": 3, "time-limits": 12, "preempted": 10,
    "crowd": 2000, "std-condition": 2,
}  # fmt: skip


def recorded_answers(program, scenario, path):
    """Returns the program's answers and releases, and the trace. Reports whether it was recorded."""
    code, out, err = record(path, program, scenario)
    with open(path + ".log", "w") as log:
        log.write(out + err)
    trace = Trace(TRAIL, path, ENV)
    ok = code == 0 and is_whole(err) and trace.exit == 0
    report(ok, f"{scenario}: is recorded", code, err, trace.error)
    lines = [json.loads(line) for line in out.splitlines()] if ok else []
    return [line for line in lines if "tid" in line], [line for line in lines if "release" in line], trace


def compare(scenario, answers, trace):
    """Reports whether each wait is in the trace, with the right place, object, waker and times."""
    missing, names, times, found = [], [], [], 0
    for answer in answers:
        waits = waits_of(trace, answer)
        said = json.dumps(answer)
        if waits:
            found += 1
            names += [f"{said}: {why}" for why in wrong_names(answer, waits[0])]
            times += [f"{said}: {why}" for why in wrong_times(answer, waits)]
        elif answer["slept"]:  # else its time limit was over before the call
            missing.append(said)
    report(
        not missing and len(answers) == WAITS.get(scenario, 1),
        f"{scenario}: every wait is in the trace",
        f"{found} waits of {len(answers)}",
        *missing,
    )
    places = {(a["tid"], a["in"], kind_of(a)) for a in answers}
    there = [w for w in trace.waits if any(w.tid == tid and called(name, w.functions) and w.object.startswith(kind)
                                           for tid, name, kind in places)]  # fmt: skip
    report(len(there) == found, f"{scenario}: and no other", f"{len(there)} waits, not {found}")
    report(not names, f"{scenario}: where it waited, for what and who let it go", *names)
    report(not times, f"{scenario}: from when to when it waited", *times)


def test_answers(program, scenario, folder):
    path = os.path.join(folder, scenario + ".trace")
    answers, _, trace = recorded_answers(program, scenario, path)
    compare(scenario, answers, trace)
    accepted(scenario, path)
    if GO:
        profile = sync_profile(path)
        missing = [a["in"] for a in answers if not any(called(a["in"], [f]) for f in profile)]
        why = f"{missing} not in {profile}"
        report(not missing, f"{scenario}: Go's sync profile names who waited", why)


def wrong_in_convoy(answers, releases, trace):
    """Yields violations of what holds in whatever order threads take a mutex: a wait lies within a
    call; its waker released the mutex during it; and a call that slept has one wait, or one for
    each time that it slept."""
    used = 0
    for answer in answers:
        waits = waits_of(trace, answer)
        said = json.dumps(answer)
        used += len(waits)
        if len(waits) > max(1, answer["slept"]) or (not waits and answer["slept"]):
            yield f"{said}: {len(waits)} waits"
        for wait in waits:
            if not is_object(wait.object, "mutex", answer["object"]):
                yield f"{said}: object is {wait.object!r}"
            if wait.waker and not any(
                wait.waker == r["release"]
                and called(r["by"], wait.waker_functions)
                and is_within(wait.ready, max(r["at"], answer["begin"]), answer["end"])
                and r["done"] >= answer["begin"]
                for r in releases
            ):
                yield f"{said}: waker is {wait.waker} in {wait.waker_functions} at {wait.ready}"
    inside = [w for w in trace.in_function("joins_convoy") if not w.of_kernel]
    if len(inside) != used:
        yield f"{len(inside)} waits, {used} of them in calls"


def test_convoy(folder):
    path = os.path.join(folder, "convoy.trace")
    answers, releases, trace = recorded_answers(PROGRAMS["answers"], "convoy", path)
    wrong = list(wrong_in_convoy(answers, releases, trace))
    report(len(answers) == 200 and not wrong, "convoy: what is so in every order", *wrong)
    # All threads arrived while the mutex was held.
    first = {a["tid"]: a for a in sorted(answers, key=lambda a: a["begin"], reverse=True)}.values()
    wrong = [a for a in first if not any(w.waker for w in waits_of(trace, a))]
    report(len(first) == 8 and not wrong, "convoy: who let each go that came first", *wrong)
    accepted("convoy", path)


def test_command_line(folder):
    """Words before the program belong to the recorder, also flags combined in one word; all that
    follow belong to the program."""
    if FOREIGN_ROOT != "/":
        skip("the words of trail record", "true, echo and ls are programs of this machine")
        return
    path = os.path.join(folder, "words.trace")
    for before, program, said in (
        (["-qo", path, "--"], ["true"], r""),
        (["-qo", path], ["true"], r""),
        (["-qo" + path, "--format", "1.26"], ["echo", "--format", "x"], r"--format x\n"),
        (["-q", f"--output={path}", "--"], ["echo", "-q", "--", "--help"], r"-q -- --help\n"),
        (["-q", "--output", path], ["echo", "--", "-o"], r"-- -o\n"),
        (["-o", path, "-q"], ["ls", "-l", "/"], r"total \d+\n[-dl]r.*"),
    ):
        if os.path.exists(path):
            os.remove(path)
        code, out, err = run(TRAIL, "record", *before, *program)
        ok = code == 0 and re.fullmatch(said, out, re.S) and not err and os.path.exists(path)
        report(ok, f"the words of trail record {shlex.join(before).replace(path, 'FILE')} {shlex.join(program)}", code, out, err)


def test_summary(folder):
    """The summary names the places with the longest waits in the trace, in order. A wait ends when
    it is released, or when its thread runs again: a place may follow another if it is not longer
    by one of these."""
    path = os.path.join(folder, "chain.trace")
    _, _, err = record(path, PROGRAMS["answers"], "chain")
    least, most = collections.Counter(), collections.Counter()
    for wait in Trace(TRAIL, path, ENV).waits:
        if wait.end and wait.functions:
            least[tuple(wait.functions)] += min(wait.ready or wait.end, wait.end) - wait.begin
            most[tuple(wait.functions)] += wait.end - wait.begin
    named = re.findall(r"^    (\S+) \(.*: \d+ x ", err, re.M)
    places = []
    for name in named:
        left = [place for place in most if place[0] == name and place not in places]
        places += [max(left, key=most.get)] if left else []
    ok = len(places) == len(named) == 3
    for i, place in enumerate(places):
        ok = ok and all(most[place] >= least[other] for other in most if other not in places[:i])
    report(ok, "summary: where most of the waiting was", least, most, err)


def test_short_lives(folder):
    """Each of 10,000 threads begins and ends in the trace, under the name of its start function."""
    path = os.path.join(folder, "short-lives.trace")
    code, out, err = record(path, PROGRAMS["answers"], "short-lives")
    trace = Trace(TRAIL, path, ENV)
    lives = trace.named("short_life")
    report(code == 0 and len(lives) == 10000, "short-lives: 10,000 threads", code, len(lives), err)
    wrong = [t for t in lives if not (t.begin and t.end and t.begin <= t.end and t.creator)]
    report(not wrong, "short-lives: each was created by somebody, began and ended", wrong[:5])
    report(is_whole(err), "short-lives: nothing was lost", err)
    accepted("short-lives", path)


def test_deadlock(number, folder):
    """If a program that waits forever is killed, its waits are in the trace, without an end."""
    name = signal.Signals(number).name
    path = os.path.join(folder, "deadlock.trace")
    recorder = subprocess.Popen(
        [TRAIL, "record", "-o", path, "--", PROGRAMS["answers"], "deadlock"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV,
    )  # fmt: skip
    answers = [json.loads(recorder.stdout.readline()) for _ in range(2)]
    # SIGKILL cannot be passed on, so it is sent to the program itself.
    pid = recorder.pid if number != signal.SIGKILL else child_of(recorder.pid)
    os.kill(pid, number)
    recorder.stdout.close()
    code = recorder.wait(LIMIT)
    report(code == 128 + number, f"deadlock: {name} ends the program and is its status", code)
    trace = Trace(TRAIL, path, ENV)
    for answer in answers:
        waits = trace.in_function(answer["in"])
        ok = (
            len(waits) == 1
            and waits[0].tid == answer["tid"]
            and is_object(waits[0].object, "mutex", answer["object"])
            and waits[0].end is None
        )
        report(ok, f"deadlock, {name}: the wait in {answer['in']} has no end", answer, waits)
    accepted(f"deadlock, {name}", path)


CALLS = ["stuck_in_read", "stuck_in_lock", "stuck_in_condition"]


def stuck(folder, scenario, trail=TRAIL, program=PROGRAMS["answers"], **user):
    """Kills a program once its threads wait. Returns its trace, and the recorder's messages."""
    path = os.path.join(folder, scenario + ".trace")
    recorder = subprocess.Popen(
        [trail, "record", "-o", path, "--", program, scenario],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENV, **user
    )  # fmt: skip
    if not recorder.stdout.readline():
        raise AssertionError(recorder.communicate(timeout=LIMIT)[1].decode("utf-8", "replace"))
    # The recorder examines calls that stay open, and writes them to the file after a generation.
    for _ in range(LIMIT * 10):
        trace = Trace(TRAIL, path, ENV)
        if all(trace.in_function(call) for call in CALLS):
            break
        time.sleep(0.1)
    os.kill(child_of(recorder.pid), signal.SIGKILL)
    _, err = recorder.communicate(timeout=LIMIT)
    accepted(scenario, path)
    return Trace(TRAIL, path, ENV), err.decode("utf-8", "replace")


def test_stuck(folder):
    """Threads that wait when the program is killed are in the trace with their whole stack, in any call."""
    trace, err = stuck(folder, "stuck")
    for call in CALLS:
        waits = trace.in_function(call)
        # The recorder copies the stack of a read with a system call that qemu-user lacks.
        whole = [call] if FOREIGN_ROOT != "/" and "read" in call else [call, call + "_deeper", call + "_thread"]
        ok = len(waits) == 1 and waits[0].end is None and waits[0].functions[:3] == whole
        report(ok, f"stuck: {call} is there with its stack, and no end", *waits)
    if FOREIGN_ROOT != "/":
        report(re.search(r"long calls with only their place: \d", err), "stuck: the summary says which stacks it lacks", err)
        # qemu-user has no perf events at all: no setting would help.
        report("a kernel with CONFIG_PERF_EVENTS" in err, "stuck: the summary says what would tell of switches", err)


def test_stuck_in_secret(folder):
    """If the kernel denies access to the program's memory, a call has its place, and the summary reports it."""
    name, trail, program, user = "stuck-in-secret", TRAIL, PROGRAMS["answers"], {}
    if os.geteuid() == 0:
        trail, program = nobody.copies(trail, program)
        user = {**nobody.NOBODY, "cwd": "/"}
        os.chmod(folder, 0o777)
        why = nobody.why_not(trail)
        if why:
            skip(name, why)
            return
    trace, err = stuck(folder, name, trail, program, **user)
    found = [w.functions for w in trace.in_function("stuck_in_read")]
    report(found == [["stuck_in_read"]], f"{name}: the place of the call", *found)
    # On a busy machine main may be in a call for as long.
    report(re.search(r"long calls with only their place: [1-9]\d*;", err), f"{name}: the summary says so", err)


def child_of(pid):
    return states.children(pid)[0]


def test_values(folder):
    """Calls return the same values and errno with the recorder as without."""
    path = os.path.join(folder, "values.trace")
    code, plain, err = run(PROGRAMS["values"])
    assert code == 0, err
    code, recorded, err = record(path, PROGRAMS["values"])
    difference = list(difflib.unified_diff(plain.splitlines(), recorded.splitlines(), lineterm=""))
    report(code == 0 and not difference, "values: as without the recorder", err, *difference)
    accepted("values", path)




# Scenarios of survive.c. Almost all have their last wait in a function that the trace must contain.
SURVIVE = [
    "fork", "bare-fork", "vfork", "spawn", "exec", "exec-from-thread", "executes-at-once", "daemon", "waits-for-children", "formats",
    "asynchronous",
    "cancel", "pending-cancel",
    "thread-ends", "main-ends-first", "threads-at-exit", "exit-at-once", "long-jump", "signals",
    "alternate-stacks", "libraries", "closes-all", "drops-privileges", "strict", "listed", "confined", "confines-by-call", "executes-confined", "ends-late", "early", "crashes", "aborts",
    "no-threads", "allocations", "asked-to-end",
]  # fmt: skip
WITHOUT_LAST = {"daemon", "threads-at-exit", "no-threads"}


def status(code):
    """The status as a shell reports it."""
    return code if code >= 0 else 128 - code


def survives(name, folder, program, *arguments, env=ENV, last="waits_at_last", more_env=None):
    """Checks that output and exit status are the same as without the recorder, and that the trace
    is good. Returns the trace, or None."""
    path = os.path.join(folder, re.sub(r"\W+", "-", name) + ".trace")
    options = dict(input=b"hello\n", capture_output=True, timeout=LIMIT, env={**env, **(more_env or {})})
    try:
        plain = subprocess.run([program, *arguments], **options)
        alone = ["--no-children"] if arguments[:1] == ("fork",) else []
        command = [TRAIL, "record", "-q", *alone, "-o", path, "--", program, *arguments]
        recorded = subprocess.run(command, **options)
    except subprocess.TimeoutExpired as e:
        report(False, f"{name}: goes on", e)
        return None
    why = f"exit {recorded.returncode}, not {status(plain.returncode)}"
    report(recorded.returncode == status(plain.returncode), f"{name}: exit status", why, recorded.stderr)
    report(recorded.stdout == plain.stdout, f"{name}: output", plain.stdout, recorded.stdout)
    report(recorded.stderr == plain.stderr, f"{name}: nothing else is printed", recorded.stderr)
    if not os.path.exists(path):
        report(False, f"{name}: there is a trace")
        return None
    accepted(name, path)
    trace = Trace(TRAIL, path, ENV)
    if last:
        waits = trace.in_function(last)
        ended = [w for w in waits if w.end]
        report(ended, f"{name}: the recorder sees its last wait", *trace.waits[-5:])
    return trace


def test_survive(name, folder):
    if name == "drops-privileges" and os.geteuid() != 0:
        skip("drops-privileges", "not root")
        return
    last = None if name in WITHOUT_LAST else "waits_at_last"
    trace = survives(name, folder, PROGRAMS["survive"], name, last=last)
    check = globals().get("check_" + name.replace("-", "_"))
    if trace and check:
        check(trace)


def check_fork(trace):
    """Children run waits_for_change through forks(), the parent through works() and waits_at_last()."""
    inside = [w for w in trace.in_function("waits_for_change") if "forks" in w.functions]
    report(not inside, "fork: a child is not recorded", *inside)
    report(len(trace.named("main")) == 1, "fork: nor are threads of a child", *trace.named("main"))
    report(trace.in_function("forks"), "fork: its parent's wait for it is")


def check_bare_fork(trace):
    """Only the child sleeps with the lock in that function."""
    inside = [w for w in trace.waits if w.reason == "sleep" and "bare_fork" in w.functions]
    report(not inside, "bare-fork: a child by _Fork is not recorded", *inside[:5])


def check_listed(trace):
    """Each contending thread has its own ID and waits."""
    threads = trace.named("contends")
    tids = {t.tid for t in threads}
    report(len(tids) == 3 and min(tids) > 1 and all(t.waits for t in threads), "listed: threads and their waits", *threads)


def check_exec(trace, name="exec"):
    report(len(trace.in_function("executed")) > 0, f"{name}: what is executed goes on in the trace")


def check_executes_at_once(trace):
    waits = trace.in_function("waits_first")
    whole = [w for w in waits if w.end and w.end - w.begin >= 100_000_000 - CLOCK_NS]
    report(len(whole) == 5, "executes-at-once: each program's first wait, from its begin on", *waits)


def check_waits_for_children(trace):
    ways = ["waits_by_wait3", "waits_by_pclose", "waits_by_spawn"]
    missing = [way for way in ways if not trace.in_function(way)]
    report(not missing, "waits-for-children: in each way", missing)


def check_asynchronous(trace):
    report(trace.in_function("waits_in_aio"), "asynchronous: aio_suspend waits", *trace.waits)
    # Not every kernel allows it.
    if subprocess.run([PROGRAMS["survive"], "asynchronous"], capture_output=True).stdout.startswith(b"io_uring"):
        report(trace.in_function("waits_in_uring"), "asynchronous: io_uring_enter waits", *trace.waits)


def check_formats(trace):
    calls = ["fprintf", "fputc", "dprintf", "fscanf"]
    missing = [c for c in calls if not [w for w in trace.in_function("waits_in_" + c) if w.reason == "network"]]
    report(not missing, "formats: each waits for its file", missing)
    woken = [w for w in trace.in_function("waits_in_fscanf") if "drains" in w.waker_functions]
    report(woken, "formats: who wrote is who let the reader go on", *trace.in_function("waits_in_fscanf"))


def check_exec_from_thread(trace):
    check_exec(trace, "exec-from-thread")


BLOCKING = "read sem_wait sem_timedwait cond_wait cond_timedwait nanosleep clock_nanosleep sleep usleep poll select"
BLOCKING = (BLOCKING + " accept recv pause sigwait join fgets").split()


def check_cancel(trace):
    missing = [b for b in BLOCKING if not [w for w in trace.in_function("blocks_in_" + b) if w.end]]
    report(not missing, "cancel: each wait that was cancelled has an end", missing)


def check_long_jump(trace):
    left = [len(trace.in_function("blocks_in_" + f)) for f in ("read", "sem_wait", "nanosleep")]
    report(left == [3, 3, 3], "long-jump: each wait that was left is in the trace", left)
    waits = [w for w in trace.in_function("waits_for_change") if w.object.startswith("condition")]
    report(len(waits) == 10, "long-jump: and all waits after it", len(waits))
    wrong = [w for w in trace.waits if w.end is None]
    report(not wrong, "long-jump: none has no end", *wrong)


def check_alternate_stacks(trace):
    waits = trace.in_function("reads_through_signals")
    # It is released 20 ms after it was seen asleep.
    whole = [w for w in waits if w.end and w.end - w.begin >= 20_000_000 - CLOCK_NS]
    report(len(waits) == 2 and len(whole) == 2, "alternate-stacks: one wait each", *waits)
    by_handler = [w for w in trace.waits if "writes_elsewhere" in w.waker_functions]
    report(len(by_handler) == 6, "alternate-stacks: the handler let main go on", *by_handler)


def check_signals(trace):
    for call in "takes_in_turn", "reads_in_turn":
        waits = trace.in_function(call)
        wrong = [w for w in waits if "posts_and_writes" not in w.waker_functions]
        report(len(waits) == 50 and not wrong, f"signals: handlers let {call} go on", len(waits), *wrong)


def check_libraries(trace):
    waits = trace.in_function("library_waits")
    report(len(waits) >= 10, "libraries: waits in one that was unloaded", len(waits))
    waits = [w for w in trace.in_function("libraries") if w.object.startswith("condition")]
    report(len(waits) >= 11, "libraries: all waits are there", len(waits))


def check_thread_ends(trace):
    wrong = [t for t in trace.threads if t.end is None and t.created_as != "main"]
    report(not wrong, "thread-ends: every end is in the trace", *wrong)
    waits = trace.in_function("destroys")
    report(len(waits) >= 10, "thread-ends: waits in destructors are", len(waits))


def check_main_ends_first(trace):
    report(trace.in_function("outlives_main"), "main-ends-first: who outlives main is recorded")


def check_ends_late(trace):
    inside = [w for w in trace.in_function("works") if "at_exit" in w.functions]
    report(inside, "ends-late: waits of atexit's functions are recorded", *trace.waits[-5:])
    inside = [w for w in trace.in_function("works") if "at_destruction" in w.functions]
    report(inside, "ends-late: and of destructors", *trace.waits[-5:])


# Third-party libraries in the program


def library(name):
    return next((p for p in glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib/" + name)), None)


def test_allocators(folder):
    for name, file in [("jemalloc", "libjemalloc.so.2"), ("tcmalloc", "libtcmalloc_minimal.so.4")]:
        path = library(file)
        if not path:
            skip(f"{name} preloaded", f"no {name}")
            skip(f"{name} linked", f"no {name}")
            continue
        preloaded = {"LD_PRELOAD": path}
        if subprocess.run([TRAIL, "--version"], capture_output=True, env={**ENV, **preloaded}).returncode:
            skip(f"{name} preloaded", "trail itself does not run with it: built with a sanitizer")
            continue
        for scenario in ("allocations", "fork", "thread-ends"):
            survives(f"{name} preloaded, {scenario}", folder, PROGRAMS["survive"], scenario, more_env=preloaded)
        binary = compiled(folder, ["cc"], f"survive-{name}", ["-Wl,--no-as-needed", path])
        if binary:
            survives(f"{name} linked", folder, binary, "allocations")


def test_preloaded(folder):
    """If LD_PRELOAD is already set, its libraries are still loaded."""
    source = os.path.join(folder, "other.c")
    with open(source, "w") as f:
        f.write('#include <unistd.h>\n__attribute__((constructor)) static void begin(void)'
                '{ if (write(1, "other\\n", 6) < 0) return; }\n')  # fmt: skip
    other = os.path.join(folder, "libother.so")
    cc = shutil.which("cc")
    if not cc:
        skip("LD_PRELOAD in use", "no compiler")
        return
    run(cc, "-shared", "-fPIC", "-o", other, source)
    path = os.path.join(folder, "preloaded.trace")
    if run("env", "LD_PRELOAD=" + other, TRAIL, "--version")[0] != 0:
        skip("LD_PRELOAD in use", "trail itself does not run with it: built with a sanitizer")
        return
    code, out, err = run("env", "LD_PRELOAD=" + other, TRAIL, "record", "-q", "-o", path, "--",
                         PROGRAMS["survive"], "executed")  # fmt: skip
    # Loaded into trail and into the program, nowhere else.
    report(code == 6 and out.count("other") == 2, "LD_PRELOAD in use: stays in use", code, out, err)
    accepted("LD_PRELOAD in use", path)


# Allocates once, before the constructors of the program and of the recorder.
FIRST = """
#include <stdlib.h>
void *volatile first;
__attribute__((constructor)) static void begin(void) { first = malloc(10); }
"""

# Like mimalloc, it makes a system call in its first allocation, and is not reentrant during it.
OWN_MALLOC = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static _Alignas(16) char pool[1 << 20];
static size_t used;
static enum { NEW, BEGINS, READY } state;
void *malloc(size_t size)
{
    if (state == BEGINS)
        abort();
    if (state == NEW) {
        state = BEGINS;
        close(open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC));
        state = READY;
    }
    size = (size + 15) & ~(size_t)15;
    return (used += size) <= sizeof pool ? pool + used - size : 0;
}
void *calloc(size_t count, size_t size) { return malloc(count * size); }
void *realloc(void *old, size_t size)
{
    char *new = malloc(size), *from = old;
    for (size_t i = 0; new && from && i < size && from + i < pool + sizeof pool; i++)
        new[i] = from[i];
    return new;
}
void free(void *memory) { (void)memory; }
int main(void) { return write(1, "here\\n", 5) == 5 ? 7 : 1; }
"""


def test_own_malloc(folder):
    """A program with its own malloc, which calls wrapped functions the first time."""
    cc = shutil.which("cc")
    if not cc:
        skip("own malloc", "no compiler")
        return
    library, program = os.path.join(folder, "libfirst.so"), os.path.join(folder, "own-malloc")
    for text, name in (FIRST, "first.c"), (OWN_MALLOC, "own.c"):
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    run(cc, "-shared", "-fPIC", "-o", library, os.path.join(folder, "first.c"))
    run(cc, "-o", program, os.path.join(folder, "own.c"), "-Wl,--no-as-needed", library)
    survives("own malloc", folder, program, last=None)


def compiled(folder, compiler, name, flags):
    """Builds survive.c with another compiler or flags. Returns None, and reports it, if that fails."""
    if not shutil.which(compiler[0]):
        skip(name, f"no {compiler[0]}")
        return None
    program = os.path.join(folder, name)
    source = os.path.join(ROOT, "tests", "recording", "survive.c")
    command = [*compiler, "-D_GNU_SOURCE", "-std=gnu11", "-w", "-g", "-O1", "-fno-optimize-sibling-calls",
               source, "-o", program, "-pthread", "-ldl", *flags]  # fmt: skip
    code, out, err = run(*command)
    if code != 0 or run(program, "executed")[0] != 6:
        skip(name, f"{' '.join(compiler)} {' '.join(flags)} makes no program here")
        return None
    return program


def test_sanitizers(folder):
    for compiler in ("gcc", "clang"):
        for sanitizer in ("address", "thread", "undefined"):
            name = f"{compiler}-{sanitizer}"
            program = compiled(folder, [compiler], name, ["-fsanitize=" + sanitizer])
            if not program:
                continue
            # Sanitizers themselves hang or end forked children that create threads; destructors
            # that lock trip ThreadSanitizer.
            more = ["exit-at-once"] if sanitizer == "thread" else ["thread-ends"]
            for scenario in ["ends-late", "spawn", *more]:
                survives(f"{name}, {scenario}", folder, program, scenario, last=None)
            trace = survives(name, folder, program, "executed")
            if trace:
                waits = [w for w in trace.in_function("waits_at_last") if w.object.startswith("condition")]
                report(any(w.waker for w in waits), f"{name}: who let it go", *waits)


def test_signals_passed_on(folder):
    """Signals to the recorder reach the program and its handlers."""
    path = os.path.join(folder, "catches.trace")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", path, "--", PROGRAMS["survive"], "catches"],
                                    stdout=subprocess.PIPE, env=ENV)  # fmt: skip
        recorder.stdout.readline()
        os.kill(recorder.pid, number)
        out, _ = recorder.communicate(timeout=LIMIT)
        ok = recorder.returncode == 33 and out == b"caught\n"
        report(ok, f"signals: {signal.Signals(number).name} is passed on", recorder.returncode, out)
    # timeout(1) sends a signal to its command, and one to its group.
    pid_file = os.path.join(folder, "pid")
    recorder = subprocess.Popen([TRAIL, "record", "-o", path, "--", "sh", "-c", f"echo $$ > {pid_file}; exec sleep 600"], stderr=subprocess.PIPE, text=True, env=ENV)
    while not (os.path.exists(pid_file) and open(pid_file).read().endswith("\n")):
        time.sleep(0.01)
    # The shell catches SIGINT.
    while open(f"/proc/{int(open(pid_file).read())}/comm").read() != "sleep\n":
        time.sleep(0.01)
    # Both wait for the recorder when it goes on.
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        recorder.send_signal(number)
    _, err = recorder.communicate(timeout=LIMIT)
    report(recorder.returncode in (128 + signal.SIGTERM, 128 + signal.SIGINT) and "continues" not in err, "signals: two at once are one", recorder.returncode, err)
    accepted("signals", path)


def test_recorder_killed(folder):
    """The program continues undisturbed; the trace is good up to its last generation."""
    path = os.path.join(folder, "killed.trace")
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", path, "--", PROGRAMS["survive"], "busy"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)  # fmt: skip
    recorder.stdout.readline()
    pid = child_of(recorder.pid)
    # A generation is complete in the file after a second, and partially before that.
    for _ in range(LIMIT * 10):
        if os.path.getsize(path) > 4096 and any(w.waker for w in Trace(TRAIL, path, ENV).in_function("contends")):
            break
        time.sleep(0.1)
    recorder.kill()
    recorder.wait(LIMIT)
    recorder.stdin.write(b"end\n")
    recorder.stdin.close()
    out = recorder.stdout.read()
    report(out == b"ends: end\n", "recorder killed: the program goes on", out)
    for _ in range(LIMIT * 10):
        if not os.path.exists(f"/proc/{pid}"):
            break
        time.sleep(0.1)
    report(not os.path.exists(f"/proc/{pid}"), "recorder killed: the program ends")
    code, out, err = run(TRAIL, "check", path)
    report(code in (0, 1), "recorder killed: trail check says what there is", code, out, err)
    trace = Trace(TRAIL, path, ENV)
    ok = trace.exit in (0, 1) and any(w.waker for w in trace.in_function("contends"))
    report(ok, "recorder killed: the trace is there up to a generation", trace.exit, trace.error)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(") ")[2][0]


def test_recorder_late(folder):
    """Wakers are recorded even if the recorder does not read for a while."""
    path = os.path.join(folder, "late.trace")
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", path, "--", PROGRAMS["answers"], "rounds"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)  # fmt: skip

    def round_is_done():
        recorder.stdin.write(b"go\n")
        recorder.stdin.flush()
        return recorder.stdout.readline() == b"done\n"

    ok = round_is_done()
    for _ in range(4):
        os.kill(recorder.pid, signal.SIGSTOP)
        while state_of(recorder.pid) != "T":
            time.sleep(0.001)
        ok = round_is_done() and ok
        os.kill(recorder.pid, signal.SIGCONT)
    out, _ = recorder.communicate(timeout=LIMIT)
    report(ok and recorder.returncode == 0, "late recorder: exit status", ok, recorder.returncode)
    accepted("late recorder", path)
    lines = [json.loads(line) for line in out.splitlines()]
    compare("late recorder", [line for line in lines if "tid" in line], Trace(TRAIL, path, ENV))


def test_killed(folder):
    """The trace has what the program did before it was killed, and its last open call."""
    path = os.path.join(folder, "killed.trace")
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", path, "--", PROGRAMS["survive"], "asked-to-end"],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)  # fmt: skip
    recorder.stdout.readline()
    # Wait until it reads.
    while "S (sleeping)" not in open(f"/proc/{child_of(recorder.pid)}/status").read():
        time.sleep(0.001)
    os.kill(child_of(recorder.pid), signal.SIGKILL)
    recorder.communicate(timeout=LIMIT)
    report(recorder.returncode == 137, "killed: exit status", recorder.returncode)
    accepted("killed", path)
    trace = Trace(TRAIL, path, ENV)
    waits = trace.in_function("waits_for_change")
    report(any(w.waker for w in waits), "killed: what it had done is in the trace", *waits)
    opened = [w for w in trace.in_function("asked_to_end") if w.end is None and w.reason == "network"]
    report(len(opened) == 1, "killed: the call that it was in has no end", *trace.waits)




class Terminal:
    """A command as the foreground job of our shell in a terminal of its own. Input is sent only
    after the shell's prompt: while the shell takes the terminal back, input may be lost or reach
    the next program."""

    def __init__(self, *command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1="", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
        self.seen = b""
        self.say("stty -echo; PS1='pro''mpt> '; echo beg''in")
        self.until(b"begin")

    def shell(self, text):
        self.until(b"prompt> ")
        self.say(text)

    def say(self, text):
        os.write(self.fd, text.encode() + b"\n")

    def press(self, byte):
        os.write(self.fd, byte)

    def until(self, text):
        """Returns true when the text has arrived; keeps what follows it."""
        end = time.monotonic() + 60
        while text not in self.seen:
            if time.monotonic() > end or not select.select([self.fd], [], [], 1)[0]:
                if time.monotonic() > end:
                    return False
                continue
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError:
                return False
        self.seen = self.seen[self.seen.index(text) + len(text) :]
        return True

    def close(self):
        try:
            self.say("exit")
        except OSError:
            pass
        time.sleep(0.1)
        os.close(self.fd)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


def test_terminal(folder):
    """Ctrl-C, Ctrl-Z, fg and bg affect the program as they do without the recorder."""
    if not shutil.which("bash"):
        skip("terminal", "no bash")
        return
    path = os.path.join(folder, "terminal.trace")
    record = f"{TRAIL} record -q -o {path} -- {PROGRAMS['survive']}"
    terminal = Terminal()
    try:
        terminal.shell(f"{record} catches; echo status $?")
        ok = terminal.until(b"ready")
        terminal.press(b"\x03")
        report(ok and terminal.until(b"caught"), "terminal: Ctrl-C reaches the program", terminal.seen)
        report(terminal.until(b"status 33"), "terminal: and its exit status the shell", terminal.seen)

        terminal.shell(f"{record} asked-to-end; echo status $?")
        ok = terminal.until(b"ready")
        terminal.press(b"\x1a")
        report(ok and terminal.until(b"Stopped"), "terminal: Ctrl-Z stops the job", terminal.seen)
        terminal.shell("echo st''ill; jobs -s | grep -c Stopped")
        ok = terminal.until(b"still") and terminal.until(b"1")
        report(ok, "terminal: the shell goes on meanwhile", terminal.seen)
        terminal.shell("fg; echo status $?")
        terminal.until(b"asked-to-end")
        terminal.say("on")
        report(terminal.until(b"ends: on"), "terminal: fg continues it, and it reads", terminal.seen)
        report(terminal.until(b"status 3"), "terminal: its exit status after fg", terminal.seen)
    finally:
        terminal.close()
    accepted("terminal", path)


def exports():
    """Returns the symbols that the library wraps."""
    code, out, err = run("nm", "-D", "--defined-only", PRELOAD)
    assert code == 0, err
    return {line.split()[-1].split("@")[0] for line in out.splitlines()}


# Variants of wrapped functions that are not wrapped: a pattern, with the reason.
NOT_WRAPPED = [
    (r"__libc_\w+|__\w+_nocancel", "the C library's own, for its own files"),
    (r"__(?!.*_chk$|isoc)\w+", "a reserved name: no header declares it, the C library itself calls it"),
    (r"f?getc_unlocked|getchar_unlocked", "a byte from the buffer; that it must be filled is seldom"),
    (r"f?putc_unlocked|putchar_unlocked", "a byte into the buffer; that it must be flushed is seldom"),
    (r"v?f?scanf", "C89's, of programs that say so"),
    (r"pthread_tryjoin_np", "does not wait"),
    (r"pidfd_open", "does not wait, nor has it a file"),
    (r"sem_trywait", "does not wait, and who has a semaphore is not known"),
]


def stem(name):
    """Returns the part of the name that variants of a call share."""
    name = re.sub(r"^_*(libc_|isoc\d\d_|posix_|pidfd_)?", "", name)
    name = re.sub(r"(_chk|64|v2|_np|_unlocked|_nocancel|_time64|_2)+$", "", name)
    return re.sub(r"timed|clock|try", "", name)


# The kinds of rows in symbols.def for wrapped functions of the C library.
WRAPPED = "SYMBOL|IO|CONDITIONS|THREADS|SLEEPS|LOCKS|FDS|FILES"


def table(kinds):
    """Returns the rows of the given kinds: {function: glibc version that added it, or ''}."""
    row = re.compile(rf"^(?:{kinds})\((?:\w+, [^,()]+, )?(\w+)(?:, (\d+))?[,)]", re.M)
    with open(os.path.join(ROOT, "src", "preload", "symbols.def")) as f:
        return dict(row.findall(f.read()))


def c_library():
    """Returns the path of the C library that the programs use, or None."""
    if FOREIGN_ROOT != "/":
        return next(iter(glob.glob(f"{FOREIGN_ROOT}/lib/*/libc.so.6")), None)
    code, out, err = run("ldd", PRELOAD)
    found = re.search(r"libc\.so\S* => (\S+)", out)
    return found[1] if code == 0 and found else None


def test_symbols():
    """Compares the table of wrapped functions with the C library's symbols, and with the library built from it."""
    wrapped = table(f"{WRAPPED}|LIBRARY|NEWER").keys()
    libc = c_library()
    if not libc or not shutil.which("nm"):
        skip("symbols", "no ldd, nm or C library")
        return
    code, out, err = run("nm", "-D", "--defined-only", libc)
    there = {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()[-2] in "TWi"}
    report(len(there) > 1000, "symbols: the C library's are read", len(there))
    missing = [n for n in table(f"{WRAPPED}|CALLED") if n not in there]
    report(not missing, "symbols: each row is a function of the C library", missing)
    minor = int(os.confstr("CS_GNU_LIBC_VERSION").split(".")[1])
    wrong = [n for n, since in table("NEWER").items() if (n in there) != (minor >= int(since))]
    report(not wrong, "symbols: the newer ones are there from their version on", minor, wrong)
    others = [n for n in table("LIBRARY") if n in there]
    report(not others, "symbols: but those of other libraries", others)
    mine = exports()
    # Our own names are for our other library.
    other = {n for n in mine ^ wrapped if not n.startswith(("trail_", "GLIBC_"))}
    report(not other, "symbols: the library exports the rows and nothing else", other)
    stems = {stem(n) for n in wrapped}
    variants = {n for n in there - wrapped if stem(n) in stems}
    unknown = [n for n in variants if not any(re.fullmatch(p, n) for p, _ in NOT_WRAPPED)]
    report(not unknown, "symbols: each variant of a row is wrapped, or it is said why not", unknown)
    unused = [p for p, _ in NOT_WRAPPED if not any(re.fullmatch(p, n) for n in variants)]
    report(not unused, "symbols: each exception is one", unused)


def test_answers_cxx(folder):
    if "answers_cxx" not in PROGRAMS:
        skip("C++: locks, conditions and futures", "no C++ compiler")
        return
    for scenario in ANSWERS_CXX:
        test_answers(PROGRAMS["answers_cxx"], scenario, folder)
    test_thread_names(folder)


def test_thread_names(folder):
    """A thread started by the C++ library is named after the function that it runs, not after the
    library's start routine."""
    path = os.path.join(folder, "names.trace")
    record(path, PROGRAMS["answers_cxx"], "std-threads")
    names = [t.created_as for t in Trace(TRAIL, path, ENV).threads]
    for name in ("free_function", "functor::operator()", "object::method", "rust_main::worker"):
        report(any(n.startswith(name) for n in names), f"std-threads: {name}", *names)
    report(any(n.startswith("names()::{lambda") for n in names), "std-threads: a lambda", *names)
    async_ = sum(n.startswith("free_function") for n in names)
    report(async_ == 2, "std-threads: what std::async runs", *names)
    report(any(n.startswith("never_waits") for n in names), "std-threads: what std::async runs without a wait", *names)


def test_identity(folder):
    """A lock without a symbol is named after the place where it was first seen locked, until it is destroyed."""
    if "identity" not in PROGRAMS:
        skip("identity", "no C++ compiler")
        return
    path = os.path.join(folder, "identity.trace")
    # Only if malloc is recorded is it known that memory of a std::mutex was reused.
    for name, options, arguments in [("C", [], []), ("C++", ["--heap"], ["reused"])]:
        code, out, err = run(TRAIL, "record", *options, "-o", path, "--", PROGRAMS["identity"], *arguments)
        answers = [line.split() for line in out.splitlines()]
        waits = [w for w in Trace(TRAIL, path, ENV).waits if w.object.startswith(("mutex", "rwlock"))]
        report(code == 0 and len(waits) == len(answers) > 5, f"identity, {name}: each wait is there", err, out, *waits)
        wrong = [
            f"{w.object}, not {function}"
            for (address, function), w in zip(answers, waits)
            if not re.fullmatch(
                rf"[a-z ]+ 0x{address} \(first seen locked in {function} identity\.cpp:\d+\)", w.object
            )
        ]
        report(not wrong, f"identity, {name}: by where it was first locked", *wrong)
        accepted(f"identity, {name}", path)


def test_answers_all(folder):
    test_symbols()
    for scenario in ANSWERS:
        test_answers(PROGRAMS["answers"], scenario, folder)
    test_convoy(folder)
    test_answers_cxx(folder)
    test_identity(folder)
    test_command_line(folder)
    test_summary(folder)
    test_short_lives(folder)
    for number in (signal.SIGTERM, signal.SIGKILL):
        test_deadlock(number, folder)
    test_stuck(folder)
    test_stuck_in_secret(folder)


def test_attached_all(folder):
    if EMULATOR:
        emulate(folder)
    for scenario in ATTACHED:
        test_answers(PROGRAMS["answers"], scenario, folder)


def test_survival_all(folder):
    test_values(folder)
    survives("true", folder, shutil.which("true"), last=None)
    for name in SURVIVE:
        test_survive(name, folder)
    test_signals_passed_on(folder)
    test_killed(folder)
    test_recorder_killed(folder)
    test_recorder_late(folder)
    test_terminal(folder)
    test_preloaded(folder)
    test_allocators(folder)
    test_own_malloc(folder)
    test_sanitizers(folder)


def main():
    parts = {"answers": test_answers_all, "attached": test_attached_all, "survival": test_survival_all}
    parts[PART](work.folder("recording-" + PART))
    return finish()


if __name__ == "__main__":
    sys.exit(main())
