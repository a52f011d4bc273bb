#!/usr/bin/env python3
"""What the kernel's context switches add to a recording. TAP.

usage: switches.py TRAIL PROGRAM; the program is switches.c's.

How long a thread was running, the trace says and the kernel's clock of its CPU time; who wanted the one CPU that
there was is known. Nothing depends on how long anything takes, or on how the machine is loaded.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import nobody
from go_readers import go_of
import recorded
from tap import finish, report, skip

# One test runs as another user.
TRAIL, PROGRAM = nobody.copies(*(os.path.abspath(a) for a in sys.argv[1:3]))
GO = go_of("1.23") or ""
WORK = tempfile.mkdtemp(prefix="trail-switches-")
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}

# What the sum of a trace's running may differ from the kernel's clock of CPU time. That leaves out what a virtual
# machine's host, and interrupts, take while the thread is on the CPU: so much more may the sum be (taken_ns), which is
# counted in ticks, and hence some tries.
PART = 0.05
TRIES = 8



def command(*args, user={}):
    p = subprocess.run(args, capture_output=True, text=True, env=ENV, timeout=240, cwd=WORK, **user)
    return p.returncode, p.stdout, p.stderr


def taken_ns():
    """What interrupts and the host have taken from the CPUs: irq, softirq and steal."""
    with open("/proc/stat") as file:
        fields = file.readline().split()
    return sum(map(int, fields[6:9])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Run:
    """A recording: what the program printed, what the summary says, how long each thread was in which state."""

    def __init__(self, scenario, *options, user={}, before=()):
        self.name = " ".join([scenario, *options])
        self.path = os.path.join(tempfile.mkdtemp(dir=WORK), "x.trace")
        if user:
            os.chown(os.path.dirname(self.path), user["user"], -1)
        before_ns = taken_ns()
        self.code, self.out, self.summary = command(
            *before, TRAIL, "record", "-o", self.path, *options, "--", PROGRAM, scenario, user=user
        )
        self.taken = taken_ns() - before_ns
        self.cpu = {int(t): int(ns) for t, ns in re.findall(r"thread (\d+) (\d+)", self.out)}
        self.process = sum(map(int, re.findall(r"process (\d+)", self.out)))
        self.spans = []  # tid, state, begin, end, reason or log, ended by
        self.samples = []  # tid, functions, P
        self.calls = []  # object, functions
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


def agrees(trace, clock, taken):
    return -PART * clock <= trace - clock <= PART * clock + taken


# MARK: With context switches of the kernel


def wrong_times(run):
    """The threads whose time running is not their CPU time; 0 is the process."""
    clocks = {None: run.process, **run.cpu}
    sums = [(t or 0, run.total("Running", t), ns, run.taken) for t, ns in clocks.items()]
    return [wrong for wrong in sums if not agrees(*wrong[1:])]


def crowd(**more):
    """Three busy threads on one CPU."""
    for _ in range(TRIES):
        run = Run("crowd", "--switches=need", **more)
        wrong = wrong_times(run)
        if not wrong:
            break
    good(run)
    report(len(run.cpu) == 3 and not wrong, "crowd: each thread, and all, run for their CPU time", wrong)
    # Of three that want to run all the time and get the same each has a third at least while all do.
    idle = [(t, run.total("Runnable", t), ns) for t, ns in run.cpu.items() if run.total("Runnable", t) < ns]
    report(not idle, "crowd: the rest of the time they are ready", idle)
    stopped = [t for t in run.cpu if not run.of(t, "Runnable", "preempted")]
    report(not stopped, "crowd: because they were preempted", stopped)
    report(run.readiness() == {b"kernel"}, "crowd: the trace says where it has that from", run.readiness())


def hidden():
    """Five sleeps of 30 ms by a system call that nothing wraps."""
    run = Run("hidden", "--switches=need")
    good(run)
    (tid,) = run.cpu
    waits = run.of(tid, "Syscall", "kernel, call not seen")
    long = [w for w in waits if w[4] - w[3] >= 30_000_000]
    report(len(long) == 5, "hidden: five waits of what was asked for, by no known call", waits)
    # Of the time of both threads, of which one waits for the other; the machine may add to that.
    share = re.search(r"unexplained (\d+) %", run.summary)
    least = 100 * 5 * 30_000_000 // max(1, sum(s[4] - s[3] for s in run.spans)) - 1
    report(share and int(share[1]) >= least, f"hidden: the summary has its share, {least} % at least", run.summary)
    run = Run("hidden", "--switches=off")
    share = re.search(r"unexplained (\d+) %", run.summary)
    report(share and int(share[1]) >= 45, "hidden: also where it is inferred from CPU time", run.summary)


def queue():
    """Who is woken is ready from the signal on, and waits for the condition before."""
    run = Run("queue", "--switches=need")
    good(run)
    late = min(run.cpu, key=run.cpu.get)
    waits = run.of(late, "Waiting", "sync.(*Cond).Wait")
    report(len(waits) == 1, "queue: one wait for the condition", waits)
    report(waits and waits[0][5] == "GoUnblock" and waits[0][6] != waits[0][0], "queue: ended by its waker", waits)
    ready = [s for s in run.of(late, "Runnable") if waits and s[3] == waits[0][4]]
    report(len(ready) == 1 and ready[0][5] == "GoStart", "queue: then it is ready until it runs", ready)


def copying():
    """Reads and writes of what is in memory are no waits, however large."""
    run = Run("copying", "--switches=need", "--min-wait=1us")
    good(run)
    waits = [s for s in run.spans if s[2] == "network" or s[1] == "Waiting"]
    report(not waits, "copying: what a call needs the CPU for is no wait", waits[:5])
    off = Run("copying", "--switches=off", "--min-wait=1us")
    report(any(s[2] == "network" for s in off.spans), "copying: without the kernel it looks like one")


def leave():
    """Threads that are killed: by what they did last."""
    for _ in range(TRIES):
        run = Run("leave", "--switches=need")
        if not wrong_times(run):
            break
    good(run)
    ends = [s for s in run.spans if s[5] == "end" and s[1] == "Waiting"]
    report(len(ends) == 1, "leave: who waited when the process ended still waits", ends)
    report(not wrong_times(run), "leave: who ran did until then", wrong_times(run))


def short():
    """Waits of less than --min-wait are no events, but they are explained."""
    # Where the recorder gets no processor, it sees switches too late to know the call.
    for _ in range(TRIES):
        run = Run("pingpong", "--switches=need", "--max-switches=0", "--min-wait=100s")
        share = re.search(r"unexplained (\d+) %", run.summary)
        if share and int(share[1]) <= 5:
            break
    good(run)
    report(share and int(share[1]) <= 5, "short: what is in known calls is not unexplained", run.summary)
    report(re.search(r"waiting for: .*short waits \d+ %", run.summary), "short: but short waits", run.summary)


def family():
    """No child's switches are lost while it is not known to the recorder yet."""
    run = Run("family", "--switches=need", "--children", "--split")
    good(run)
    paths = glob.glob(os.path.join(os.path.dirname(run.path), "x.*.trace"))
    awake, late, told = [], [], {}
    # A row of the table: ... PID THREADS TIME ms CPU ms WAITING % RECORDER ms TRACE
    for row in run.summary.splitlines():
        fields = row.split()
        if row.endswith(".trace") and fields[-4] == "%" and fields[-8] in ("ms", "s"):
            told[fields[-1]] = float(fields[-9]) * (1000 if fields[-8] == "s" else 1)
    for path in paths:
        code, text, err = command(TRAIL, "print", path)
        if code != 0 or "blocks: sleep" not in text:
            awake.append((path, text[-1000:], err))
        end = float(text.splitlines()[-1].split()[0]) * 1000
        # Three digits.
        if path in told and abs(told[path] - end) > 1:
            late.append((path, end, told[path]))
    report(len(paths) == 30 and not awake, "family: each of 30 children sleeps", len(paths), *awake)
    report(len(told) == 20 and not late, "family: and has ended when it did, not when that was noticed", *late)


def family_in_one():
    """The same in one trace."""
    for _ in range(TRIES):
        run = Run("family", "--switches=need", "--children")
        good(run)
        trace = recorded.Trace(TRAIL, run.path)
        children = [t for t in trace.threads if any(w.reason == "sleep" for w in t.waits)]
        # A child ends soon after its sleep; the recorder sees that up to 40 ms later.
        late = [t for t in children if not t.end or t.end - t.waits[-1].end > 10_000_000]
        if len(children) == 30 and len(late) < 10:
            break
    report(len(children) == 30, "family: in one trace each of 30 children sleeps", len(children), run.summary)
    report(len(late) < 10, "family: and has ended when it did", len(late))


def many():
    for scenario in "pingpong", "threads":
        good(Run(scenario, "--switches=need"))


RATE = 1000


def shares(run, hz):
    """How many samples a ns of CPU time there are too few or too many, and of how many of them sorts() is on the stack."""
    ((tid, ns),) = run.cpu.items()
    mine = [functions for t, functions, p in run.samples if t == tid]
    sorts = [functions for functions in mine if "sorts" in functions]
    return len(mine) / (ns * hz / 1e9), len(sorts) / max(len(mine), 1)


def profile(*options, hz=RATE, slack=0.1, **more):
    """Samples are as many as the CPU time has periods, and on the stacks of what used it."""
    for _ in range(TRIES):
        run = Run("profile", "--cpu-samples", str(hz), *options, **more)
        rate, part = shares(run, hz) if len(run.cpu) == 1 else (0, 0)
        if abs(rate - 1) < slack and abs(part - 0.75) < 0.75 * slack:
            break
    good(run)
    report(abs(rate - 1) < slack, f"{run.name}: as many as asked for", rate, len(run.samples))
    report(abs(part - 0.75) < 0.75 * slack, f"{run.name}: where the CPU time went", part)
    code, out, err = command(TRAIL, "check", run.path)
    report(f"CPU samples {len(run.samples)}" in out, f"{run.name}: counted in the trace", out)
    broken = [f for _, f, _ in run.samples if "profiled" not in f and "main" not in f and "_start" not in f]
    # What the loader does before main has a stack of its own.
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
    """More switches than the limit, then few: they are recorded again, also of the thread that was there before."""
    for _ in range(TRIES):
        run = Run("flurry", "--switches=need", "--max-switches=1000")
        words = [word for _, word in run.changes]
        if words == ["inferred", "kernel"]:
            break
    good(run)
    report(words == ["inferred", "kernel"], "flurry: the trace says from when to when they are missing", run.changes)
    seen = run.changes[-1][0] if run.changes else 0
    late = [t for t in run.cpu if not [s for s in run.of(t, "Runnable", "preempted") if s[3] > seen]]
    report(len(run.cpu) == 2 and not late, "flurry: afterwards it has preemptions of both threads", run.cpu, late)
    missing = re.search(r"inferred for (\S+ \S+),", run.summary)
    report(missing, "flurry: the summary has the time", run.summary)
    run = Run("flurry", "--switches=need", "--max-switches=0")
    report(run.changes == [], "flurry: without a limit, all are recorded", run.changes)


def faults():
    """Waits for the pages of a mapped file: the kernel counts the faults, and how often the thread slept in them."""
    # A wait below --min-wait, or one that is known too late, is left out.
    for _ in range(TRIES):
        run = Run("faults", "--switches=need", "--min-wait=1us")
        (sleeps,) = map(int, re.findall(r"sleeps (\d+)", run.out))
        if sum(object.startswith("page fault ") and "/pages-" in object for object, _ in run.calls) == sleeps:
            break
    good(run)
    (count,) = map(int, re.findall(r"faults (\d+)", run.out))
    if not count:
        skip("faults", "the folder for temporary files is not on a disk")
        return
    path = re.search(r"file (\S+)", run.out).group(1)
    of = [functions for object, functions in run.calls if object == "page fault " + os.path.join(WORK, path)]
    report(len(of) == sleeps, "faults: as many waits for the file's pages as the thread slept", sleeps, len(of))
    places = [functions[:2] for functions in of if functions[:2] != ["touch", "pager"]]
    report(not places, "faults: each has its stack", places[:3])
    counted = re.search(r"page faults: (\d+)", run.summary)
    report(counted and int(counted.group(1)) >= count, "faults: the summary counts them", run.summary)


# MARK: It does not


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
        for test in crowd, hidden, queue, copying, leave, short, family, family_in_one, many, flurry, faults:
            test()
        profile()
        profile("--switches=off")
        as_nobody()
    # A timer of the program fires at the kernel's ticks, 100 a second at least: there are few, so that they vary.
    profile("--cpu-signal", "--switches=off", hz=100, slack=0.25)
    refused()
    off()
    shutil.rmtree(WORK)
    return finish()


sys.exit(main())
