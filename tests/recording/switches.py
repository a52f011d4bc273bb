#!/usr/bin/env python3
"""What the kernel's context switches add to a recording. TAP.

usage: switches.py TRAIL PROGRAM; the program is switches.c's.

The program prints the kernel's counts for its threads: time on the run queue, CPU time, switches. The
trace must agree, whatever the load of the machine and however late the recorder is.
"""

import dataclasses
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import nobody
from go_readers import go_of
import recorded
import work
from tap import finish, report, skip

# One test runs as another user.
TRAIL, PROGRAM = nobody.copies(*(os.path.abspath(a) for a in sys.argv[1:3]))
GO = go_of("1.23") or ""
WORK = work.folder("switches")
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}

# Allowed difference from the kernel's time, as a share of it and for each switch: the kernel reads the run queue's clock
# before it takes the time of the switch record, and meanwhile a host may take the CPU.
PART = 0.05
SWITCH_NS = 40_000


def command(*args, user={}):
    p = subprocess.run(args, capture_output=True, text=True, env=ENV, timeout=240, cwd=WORK, **user)
    return p.returncode, p.stdout, p.stderr


@dataclasses.dataclass
class Window:
    """The kernel's counts for a thread from begin to end (switches.c)."""

    tid: int
    begin: int
    end: int
    cpu: int  # excludes time taken by interrupts and by the host of a virtual machine
    delay: int  # on the run queue
    waits: int  # voluntary switches
    preemptions: int
    steps: int  # of the recorder

    @property
    def on_cpu(self):
        """For a thread that did not wait."""
        return self.end - self.begin - self.delay

    @property
    def switching(self):
        """At most how long its switches took."""
        return (self.waits + self.preemptions) * SWITCH_NS


@dataclasses.dataclass
class Part:
    """The CPU time of a thread from begin to end, by its own clock."""

    tid: int
    begin: int
    end: int
    cpu: int


class Run:
    """A recording: the program's output, the summary, and how long each thread was in which state."""

    def __init__(self, scenario, *options, user={}, before=()):
        self.name = " ".join([scenario, *options])
        self.path = os.path.join(tempfile.mkdtemp(dir=WORK), "x.trace")
        if user:
            os.chown(os.path.dirname(self.path), user["user"], -1)
        self.code, self.out, self.summary = command(
            *before, TRAIL, "record", "-o", self.path, *options, "--", PROGRAM, scenario, user=user
        )
        with open(os.path.join(os.path.dirname(self.path), "said"), "w") as file:
            file.write(self.out + self.summary)
        self.cpu = {int(t): int(ns) for t, ns in re.findall(r"thread (\d+) (\d+)", self.out)}
        self.windows = [Window(*map(int, line.split())) for line in re.findall(r"^window (.*)", self.out, re.M)]
        self.spans = []  # tid, state, begin, end, reason or log, ended by
        self.samples = []  # tid, functions, P
        self.calls = []  # object, functions
        self.waits = {}  # goroutine, begin: the same
        self.changes = []  # time, "inferred" or "kernel"
        if os.path.exists(self.path):
            self._read()

    def _read(self):
        code, text, err = command(TRAIL, "print", "--format=jsonl", self.path)
        self.state, self.tid, logs = {}, {}, {}
        last = 0
        for line in text.splitlines():
            e = json.loads(line)
            last = e["time_ns"]
            if e.get("type") == "UserLog" and e["category"] == "wait":
                logs[e["m"]] = e["message"]
            if e.get("type") == "GoSyscallBegin":
                self.calls.append((logs.get(e["m"], ""), [f["func"] for f in e.get("stack", [])]))
            if e.get("type") in ("GoSyscallBegin", "GoBlock"):
                log = logs.get(e["m"], "") if e["type"] == "GoSyscallBegin" else logs.pop(e["m"], "")
                self.waits[e["g"], e["time_ns"]] = log, [f["func"] for f in e.get("stack", [])]
            if e.get("type") == "UserLog" and e["category"] == "trail.readiness":
                self.changes.append((e["time_ns"], e["message"]))
            if e["kind"] == "StackSample":
                self.samples.append((e["m"], [f["func"] for f in e.get("stack", [])], e.get("p")))
            if e.get("resource") != "goroutine" or e["kind"] != "StateTransition":
                continue
            g = e["id"]
            if e["to"] == "Running":
                self.tid[g] = e["m"]
            why = e.get("reason") or (logs.pop(e["m"], "") if e["type"] == "GoSyscallBegin" else "")
            self._enter(g, e["to"], why, e)
        for g in list(self.state):
            self._enter(g, None, "", {"time_ns": last, "type": "end"})

    def _enter(self, g, state, why, e):
        before = self.state.pop(g, None)
        if before:
            self.spans.append((g, *before, e["time_ns"], e["type"], e.get("g")))
        if state and state != "NotExist":
            self.state[g] = (state, why, e["time_ns"])

    def total(self, state, tid=None, why=None):
        return sum(
            end - begin
            for g, s, w, begin, end, *_ in self.spans
            if s == state and (tid is None or self.tid.get(g) == tid) and (why is None or w == why)
        )

    def within(self, window, *states, why=None):
        """How long the window's thread was in one of the states."""
        return sum(
            max(0, min(end, window.end) - max(begin, window.begin))
            for g, s, w, begin, end, *_ in self.spans
            if s in states and self.tid.get(g) == window.tid and why in (None, w)
        )

    def known_running(self, window):
        """How long the window's thread ran where this is not inferred."""
        bounds = [0, *(time for time, _ in self.changes), window.end]
        words = ["kernel", *(word for _, word in self.changes)]
        known = [dataclasses.replace(window, begin=max(begin, window.begin), end=min(end, window.end))
                 for begin, end, word in zip(bounds, bounds[1:], words) if word == "kernel"]  # fmt: skip
        return sum(self.within(part, "Running") for part in known if part.begin < part.end)

    def in_window(self, window, state):
        """The spans of the window's thread that begin within it."""
        return [s for s in self.of(window.tid, state) if window.begin <= s[3] <= window.end]

    def of(self, tid, state, why=None):
        return [s for s in self.spans if self.tid.get(s[0]) == tid and s[1] == state and why in (None, s[2])]

    def readiness(self):
        with open(self.path, "rb") as file:
            return set(re.findall(rb"trail\.readiness (\w+)", file.read()))


def good(run):
    report(run.code == 0, f"{run.name}: is recorded", run.code, run.out, run.summary)
    code, out, err = command(TRAIL, "check", run.path)
    report(code == 0, f"{run.name}: trail check accepts the trace", out, err)
    if not os.access(GO, os.X_OK):
        skip(f"{run.name}: go tool trace reads the trace", "no golang-1.23")
        return
    code, out, err = command(GO, "tool", "trace", "-d=1", run.path)
    report(code == 0, f"{run.name}: go tool trace reads the trace", err)


# MARK: With the kernel's context switches


def wrong_times(run):
    """Returns windows in which a thread that does not wait ran, or was ready, for another time than
    the kernel counts."""
    wrong = []
    for window in run.windows:
        # All ready time is preemption, but the first state of a generation has no reason.
        ran, ready = run.within(window, "Running"), run.within(window, "Runnable")
        # If others take most of the CPU, there are more switches, and more time ready.
        slack = PART * window.on_cpu, PART * max(window.on_cpu, window.delay)
        if abs(ran - window.on_cpu) > slack[0] + window.switching or abs(ready - window.delay) > slack[1] + window.switching:
            wrong.append((window, window.on_cpu, ran, ready))
    return wrong


def crowd(**more):
    """Three busy threads on one CPU."""
    run = Run("crowd", "--switches=need", **more)
    good(run)
    wrong = wrong_times(run)
    report(len(run.windows) == 3 and not wrong, "crowd: each thread runs, and is preempted, for as long as the kernel counts", *wrong)
    alone = [w for w in run.windows if not w.delay or not w.preemptions]
    report(not alone, "crowd: they share the CPU", alone)
    report(run.readiness() == {b"kernel"}, "crowd: the trace says where it has that from", run.readiness())


def unexplained(run, of_ns):
    """Whether the summary reports at least this much of all threads' time as unexplained. Shares are whole numbers."""
    share = re.search(r"unexplained (\d+) %", run.summary)
    least = 100 * of_ns / max(1, sum(s[4] - s[3] for s in run.spans)) - 1
    return share and int(share[1]) >= least


SLEEP_NS = 30_000_000


def hidden():
    """Waits of 30 ms by system calls that bypass the wrappers, in two functions by turns."""
    run = Run("hidden", "--switches=need")
    good(run)
    # A thread that is preempted until its time has passed no longer waits.
    off = [(w, run.within(w, "Syscall", "Waiting", "Runnable")) for w in run.windows]
    short = [o for o in off if o[1] < SLEEP_NS * (1 - PART)]
    report(len(run.windows) == 20 and not short, "hidden: the thread is off its CPU in each wait", *short)
    seen, false, unseen = 0, [], 0
    for i, w in enumerate(run.windows):
        function, wait = (("naps_itself", "sleep"), ("polls_itself", "poll"))[i % 2]
        for s in run.in_window(w, "Syscall") + run.in_window(w, "Waiting"):
            object, functions = run.waits.get((s[0], s[3]), ("", []))
            if object == "kernel, call not seen" and not functions:
                unseen += s[4] - s[3]
            elif functions and function not in functions or object not in ("", wait):
                false.append((w, s, object, functions))
            elif s[4] - s[3] > SLEEP_NS * (1 - PART):
                seen += 1
    report(not false, "hidden: each wait is shown with its own call and stack", *false)
    # Those in whose time the recorder looks. It stops looking at the last, which ends with the thread.
    if platform.machine() == "x86_64":
        report(seen > 2, "hidden: waits have their call and stack", seen)
    report(unexplained(run, unseen), "hidden: the summary has the share of the others", unseen, run.summary)
    run = Run("hidden", "--switches=off")
    # The CPU time of the ended process may all lie outside the thread and before the recording.
    cpu, unit = re.search(r"([\d.]+) (\S+) of CPU", run.summary).groups()
    least = 20 * SLEEP_NS - float(cpu) * {"s": 1e9, "ms": 1e6}.get(unit, 1e3)
    report(unexplained(run, least), "hidden: also where it is inferred from CPU time", least, run.summary)


def queue():
    """A woken thread is ready from the signal on, and waits for the condition before."""
    run = Run("queue", "--switches=need")
    good(run)
    late = min(run.cpu, key=run.cpu.get)
    waits = run.of(late, "Waiting", "sync.(*Cond).Wait")
    report(len(waits) == 1, "queue: one wait for the condition", waits)
    report(waits and waits[0][5] == "GoUnblock" and waits[0][6] != waits[0][0], "queue: ended by its waker", waits)
    ready = [s for s in run.of(late, "Runnable") if waits and s[3] == waits[0][4]]
    report(len(ready) == 1 and ready[0][5] == "GoStart", "queue: then it is ready until it runs", ready)


def has_wakings():
    """Whether the recorder may read the kernel's wake-ups."""
    folders = "/sys/kernel/tracing", "/sys/kernel/debug/tracing"
    found = [os.access(f"{f}/events/sched/sched_waking/format", os.R_OK) for f in folders]
    return any(found) and os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC


def timers():
    """A sleep ends when its timer expires: from then on the thread is ready."""
    run = Run("timers", "--switches=need")
    good(run)
    (window,) = run.windows
    ready, asleep = run.within(window, "Runnable"), run.within(window, "Waiting", why="sleep")
    right = window.delay > 0 and abs(ready - window.delay) <= 0.1 * window.delay + window.switching
    report(right, "timers: ready for as long as the kernel counts", window, ready)
    report(asleep <= 1.1 * 60 * 5_000_000 + window.switching, "timers: asleep for as long as was asked for", asleep)


def barging():
    """A thread woken for a permit that another thread takes first continues to wait."""
    run = Run("barging", "--switches=need")
    good(run)
    wrong = []
    for window in run.windows:
        ready = run.within(window, "Runnable")
        if ready > 1.1 * window.delay + window.switching:
            wrong.append((window, ready))
    # A host that takes the CPU in one switch for milliseconds does so to one thread.
    report(len(run.windows) == 6 and len(wrong) <= 1, "barging: ready for no longer than the kernel counts", *wrong)


# A thread that is woken in vain, and is ready for less than this, continues to wait.
VAIN_NS = 100_000


def vain():
    """A thread that is woken in vain is ready until it runs, and then waits again."""
    run = Run("vain", "--switches=need", "--max-switches=0")
    good(run)
    wrong = []
    for window in run.windows:
        ready, slack = run.within(window, "Runnable"), window.waits * VAIN_NS + window.preemptions * SWITCH_NS
        if ready < 0.9 * window.delay - slack:
            wrong.append((window, ready))
    report(len(run.windows) == 5 and not wrong, "vain: ready for as long as the kernel counts", *wrong)


def forked():
    """A forked child is ready when the fork returns in its parent, and runs before the recorder knows it."""
    run = Run("forked", "--switches=need")
    good(run)
    (window,) = run.windows
    (returned,) = map(int, re.findall(r"^forked (\d+)", run.out, re.M))
    made = [s for s in run.of(window.tid, "Waiting") if s[3] >= window.begin][:1]
    report(made and made[0][4] <= returned, "forked: ready since the fork", made, returned)
    # A wake-up before the recorder knows the process may be missing.
    ran, ready = run.within(window, "Running"), run.within(window, "Runnable", "Syscall")
    report(ran >= 0.9 * window.cpu - window.switching, "forked: runs for as long as the kernel counts", window, ran)
    report(ready >= 0.9 * window.delay - window.switching, "forked: ready for as long as the kernel counts", window, ready)


def moments():
    """Threads that work for 0 to 10,000 us between waits: the CPU time of each matches its own clock."""
    run = Run("moments", "--switches=need", "--max-switches=0")
    good(run)
    # The trace has the time from one switch to the next. Time taken from that by the host and by
    # interrupts is not in the thread's clock, and the recorder learns the cost of a switch from the
    # first hundred: both affect few of the 20 parts. Each preemption has the time of a switch, too, and on
    # a busy machine there may be five in each millisecond of a thread's time.
    parts = [Part(*map(int, line.split())) for line in re.findall(r"^part (.*)", run.out, re.M)]
    wrong = []
    for w in run.windows:
        shares = [run.within(p, "Running") / p.cpu for p in parts if p.tid == w.tid]
        if len(shares) != 20 or abs(statistics.median(shares) - 1) > 0.1 + w.preemptions * SWITCH_NS / w.cpu:
            wrong.append((w, run.within(w, "Running"), sorted(shares)))
    report(len(run.windows) == 4 and not wrong, "moments: each thread runs for as long as its clock says", *wrong)


def copying():
    """Reads and writes of data in memory are not waits, however large."""
    run = Run("copying", "--switches=need", "--min-wait=1us")
    good(run)
    (window,) = run.windows
    waits = [s for s in run.spans if s[2] == "network" or s[1] == "Waiting"]
    report(len(waits) <= window.waits, "copying: what a call needs the CPU for is no wait", window, waits[:5])
    off = Run("copying", "--switches=off", "--min-wait=1us")
    report(any(s[2] == "network" for s in off.spans), "copying: without the kernel it looks like one")


def leave():
    """Killed threads keep their last state."""
    run = Run("leave", "--switches=need")
    good(run)
    ends = [s for s in run.spans if s[5] == "end" and s[1] == "Waiting"]
    report(len(ends) == 1, "leave: the thread that waited when the process ended still waits", ends)
    wrong = wrong_times(run)
    report(len(run.windows) == 2 and not wrong, "leave: those that ran did", *wrong)
    forever = [s for s in run.spans if run.tid.get(s[0]) == run.windows[-1].tid]
    report(forever and forever[-1][1] != "Waiting", "leave: until then", forever[-3:])


def short():
    """Waits shorter than --min-wait are not events, but are still explained."""
    run = Run("pingpong", "--switches=need", "--max-switches=0", "--min-wait=100s")
    good(run)
    (window,) = run.windows
    # The call is unknown if the recorder looks while the thread waits in it, and does not look
    # again until it has ended.
    unseen = [s for s in run.spans if s[2] == "kernel, call not seen"]
    report(len(unseen) <= 3 * (window.steps + 2), "short: few waits have no call", window, len(unseen))
    total, unseen_ns = sum(s[4] - s[3] for s in run.spans), sum(s[4] - s[3] for s in unseen)
    share = re.search(r"unexplained (\d+) %", run.summary)
    most = 100 * unseen_ns / max(1, total) + 2
    report(share and int(share[1]) <= most, "short: time in known calls is explained", most, run.summary)
    report(re.search(r"waiting for: .*short waits \d+ %", run.summary), "short: but short waits", run.summary)


def family():
    """Switches of a child are not lost before the recorder knows it."""
    run = Run("family", "--switches=need", "--children", "--split")
    good(run)
    paths = glob.glob(os.path.join(os.path.dirname(run.path), "x.*.trace"))
    awake, late, shown = [], [], {}
    # The table's row: ... PID THREADS TIME ms CPU ms WAITING % RECORDER ms TRACE
    for row in run.summary.splitlines():
        fields = row.split()
        if row.endswith(".trace") and fields[-4] == "%" and fields[-8] in ("ms", "s"):
            unit = 1000 if fields[-8] == "s" else 1
            digits = len(fields[-9].partition(".")[2])
            shown[fields[-1]] = float(fields[-9]) * unit, unit / 10**digits
    for path in paths:
        code, text, err = command(TRAIL, "print", path)
        if code != 0 or "blocks: sleep" not in text:
            awake.append((path, text[-1000:], err))
        end = float(text.splitlines()[-1].split()[0]) * 1000
        if path in shown and abs(shown[path][0] - end) > shown[path][1]:
            late.append((path, end, *shown[path]))
    report(len(paths) == 30 and not awake, "family: each of 30 children sleeps", len(paths), *awake)
    report(len(shown) == 20 and not late, "family: and has ended when it did, not when that was noticed", *late)


def family_in_one():
    """Like family(), in one trace."""
    run = Run("family", "--switches=need", "--children")
    good(run)
    trace = recorded.Trace(TRAIL, run.path)
    children = [t for t in trace.threads if any(w.reason == "sleep" for w in t.waits)]
    report(len(children) == 30, "family: in one trace each of 30 children sleeps", len(children), run.summary)
    exits, reaped = ({int(p): int(ns) for p, ns in re.findall(rf"{word} (\d+) (\d+)", run.out)} for word in ("exits", "reaped"))
    # For a child that ended before the parent waited for it, the end is known only when the
    # recorder looks.
    awaited = {w.waker for w in trace.waits}
    wrong = [(t.tid, exits[t.tid], t.end, reaped[t.tid]) for t in children
             if not t.end or t.end < exits[t.tid] or (t.tid in awaited and t.end > reaped[t.tid])]  # fmt: skip
    report(not wrong, "family: and has ended when it did", *wrong)


def many():
    for scenario in "pingpong", "threads":
        good(Run(scenario, "--switches=need"))


def samples_of(run):
    """Counts the thread's samples, and those with sorts() on the stack."""
    (tid,) = run.cpu
    mine = [functions for t, functions, _ in run.samples if t == tid]
    return len(mine), sum("sorts" in functions for functions in mine)


def as_many_ticks(run, most):
    """Checks that the samples match a clock like the recorder's in the program, within `most`."""
    count, sorts = samples_of(run)
    ticks, in_sorts = map(int, re.search(r"ticks (\d+) (\d+)", run.out).groups())
    report(ticks > 0 and abs(count - ticks) <= most, f"{run.name}: as many as asked for", count, ticks, run.windows)
    report(abs(sorts - in_sorts) <= most, f"{run.name}: where the CPU time went", sorts, in_sorts)


def profile(*options, scenario="profile", hz=1000, **more):
    """There is one sample per period of CPU time, on the stack of the code that used it."""
    run = Run(scenario, "--cpu-samples", str(hz), *options, **more)
    good(run)
    # The event stops with the thread, and loses a period that has just passed: in the program and
    # in the recorder.
    (window,) = run.windows
    missed = window.preemptions + window.waits + 0.02 * window.cpu * hz / 1e9
    as_many_ticks(run, 2 if scenario == "profile-timed" else 2 + missed)
    code, out, err = command(TRAIL, "check", run.path)
    report(f"CPU samples {len(run.samples)}" in out, f"{run.name}: counted in the trace", out)
    broken = [f for _, f, _ in run.samples if "profiled" not in f and "main" not in f and "_start" not in f]
    # Code that the loader runs before main has its own stack.
    report(len(broken) <= 0.02 * len(run.samples), f"{run.name}: whole stacks", broken[:5])
    chain = [f for _, f, _ in run.samples if "costly" in f]
    report(
        all(f.index("costly") < f.index("sorts") < f.index("profiled") for f in chain if "sorts" in f)
        and sum("sorts" in f for f in chain) >= 0.98 * len(chain),
        f"{run.name}: through functions without frame pointers",
        chain[:3],
    )
    if "--switches=off" not in options:
        idle = [f for _, f, p in run.samples if p is None or p < 0]
        report(len(idle) <= 0.02 * len(run.samples), f"{run.name}: taken on a P", idle[:3])


def flurry():
    """More switches than the limit, then few: recording resumes, also for the thread that already existed."""
    # Two threads that only wake each other exceed the limit, two that share a CPU do not.
    run = Run("flurry", "--switches=need", "--max-switches=5000")
    good(run)
    words = [word for _, word in run.changes]
    right = "kernel" in words and words == (["inferred", "kernel"] * len(words))[: len(words)]
    report(right, "flurry: the trace says from when to when they are missing", run.changes)
    begin, end = map(int, re.search(r"seen (\d+) (\d+)", run.out).groups())
    late = [t for t in run.cpu if not [s for s in run.of(t, "Runnable", "preempted") if begin <= s[3] <= end]]
    report(len(run.cpu) == 2 and not late, "flurry: afterwards it has preemptions of both threads", run.cpu, late)
    missing = re.search(r"inferred for (\S+ \S+),", run.summary)
    report(missing, "flurry: the summary has the time", run.summary)
    _, shown, _ = command(TRAIL, "summary", run.path)
    clocks = re.search(r"^inferred for .*\nby the clocks of its processes, the program ran for ", shown, re.M)
    report(clocks, "flurry: and what the clocks of the program say", shown[:2000])
    run = Run("pingpong", "--switches=need", "--max-switches=0")
    # Switches that the recorder read too late may be missing.
    late = re.search(r"lost: .*wake-up|inferred for .* switches may be lost", run.summary)
    report("too often" not in run.summary and (late or run.changes == []), "flurry: without a limit, all are recorded", run.changes, run.summary)


def starved():
    """The recorder is stopped until the kernel has no room for further switches of one CPU, then of another.

    What threads do is inferred from the first of these times on.
    """
    continues = '"$@" & while [ ! -e napped ]; do sleep 0.01; done; kill -CONT $!; wait $!'
    run = Run("starved", "--switches=need", "--max-switches=1000", before=("sh", "-c", continues, "sh"))
    good(run)
    report(any(word == "inferred" for _, word in run.changes), "starved: the trace says that switches are missing", run.changes)
    wrong = [(w, ran) for w in run.windows if (ran := run.known_running(w)) > (1 + PART) * w.cpu]
    report(run.windows and not wrong, "starved: no thread ran for longer than by its own clock, where that is known", wrong[:3], run.changes)
    (own,) = map(int, re.findall(r"process (\d+)", run.out))
    with open(run.path, "rb") as file:
        (cpu,) = map(int, re.findall(rb"trail\.recorded process \S+ \S+ cpu=(\d+)", file.read()))
    report(abs(cpu - own) <= 2 * PART * own, "starved: the CPU time of the process is that of its own clock", cpu, own, run.summary)


def faults():
    """Waits for pages of a mapped file: the kernel counts the faults, and how often the thread slept in them."""
    run = Run("faults", "--switches=need", "--min-wait=1ns")
    good(run)
    (count,) = map(int, re.findall(r"faults (\d+)", run.out))
    if not count:
        skip("faults", "the folder for temporary files is not on a disk")
        return
    (window,) = run.windows
    object = "page fault " + os.path.join(WORK, re.search(r"file (\S+)", run.out).group(1))
    of = [s for s in run.in_window(window, "Syscall") if s[2] == object]
    # The reason of a wait is unknown if the recorder looks before the fault has ended, or if the
    # thread was preempted then.
    unseen = [s for s in run.in_window(window, "Syscall") if s[2] == "kernel, call not seen"]
    most = window.steps + window.preemptions + 1
    report(len(of) + len(unseen) == window.waits and len(unseen) <= most, "faults: as many waits for the file's pages as the thread slept", len(of), len(unseen), window)
    places = [f[:2] for name, f in run.calls if name == object and f[:2] != ["touch", "pager"]]
    report(not places, "faults: each has its stack", places[:3])
    counted = re.search(r"page faults: (\d+)", run.summary)
    report(counted and int(counted.group(1)) >= count, "faults: the summary counts them", run.summary)


# MARK: Without the kernel's context switches


def refused():
    before = (PROGRAM, "refuse")
    run = Run("crowd", before=before)
    if run.code == 77:
        skip("refused", "no seccomp filters")
        return
    good(run)
    report(run.readiness() == {b"inferred"}, "refused: the trace says that readiness is inferred", run.readiness())
    report(
        "inferred" in run.summary and "seccomp" in run.summary,
        "refused: so does the summary, and what would help",
        run.summary,
    )
    run = Run("crowd", "--switches=need", before=before)
    report(run.code == 2 and not run.out, "refused: if they are needed, the program is not started", run.code, run.out)
    report("seccomp" in run.summary, "refused: and is told why", run.summary)
    run = Run("crowd", "--cpu-samples=100", before=before)
    report(run.code == 2 and "seccomp" in run.summary, "refused: nor are samples taken", run.code, run.summary)


def off():
    run = Run("crowd", "--switches=off")
    good(run)
    report(not run.of(next(iter(run.cpu)), "Runnable", "preempted"), "off: nobody knows of preemption")
    report(run.readiness() == {b"inferred"} and "--switches=off" in run.summary, "off: it is said", run.summary)


def crowds():
    """At most as many threads run at once as there are CPUs."""
    run = Run("crowds", "--switches=off")
    good(run)
    code, text, err = command(TRAIL, "summary", run.path)
    average, slots = re.search(r"^running .* ([\d.]+) on average, of (\d+) CPU slots", text, re.M).groups()
    report(int(slots) == os.cpu_count() and float(average) <= int(slots), "crowds: no more run than there are CPUs", text)


def as_nobody():
    why, user = nobody.why_not(TRAIL), nobody.NOBODY
    if why:
        skip("nobody", why)
        return
    run = Run("crowd", user=user)
    if run.code != 0 or "inferred" in run.summary:
        skip("nobody", "the kernel reports to root only: " + " ".join(run.summary.split())[-200:])
        return
    crowd(user=user)
    profile(user=user)


def main():
    probe = Run("hidden", "--switches=need")
    os.chmod(WORK, 0o755)
    if probe.code == 2:
        skip("what the kernel reports", " ".join(probe.summary.split()))
    else:
        for test in crowd, hidden, queue, moments, copying, leave, short, family, family_in_one, forked, many, flurry, starved, faults:
            test()
        if has_wakings():
            timers()
            barging()
            vain()
        else:
            skip("timers, barging, vain", "only root may read when the kernel wakes a thread")
        profile()
        profile("--switches=off")
        as_nobody()
    profile("--cpu-signal", "--switches=off", scenario="profile-timed", hz=100)
    refused()
    off()
    crowds()
    return finish()


sys.exit(main())
