"""A recording contains what keeps threads from CPUs: affinity, class, quota, other programs. TAP.

usage: limits.py TRAIL PROGRAM     limits.c

The recorder checks the limits in the same steps in which it writes the trace: when the trace has
grown twice, it has checked them in between.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import tap
import work
from tap import Skip

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:])
WORK = work.folder("limits")
TRACE = os.path.join(WORK, "x.trace")
CPUS = sorted(os.sched_getaffinity(0))
ONLINE = os.sysconf("SC_NPROCESSORS_ONLN")
NICE = os.getpriority(os.PRIO_PROCESS, 0)
OWN_NICE = f"; nice {NICE}" if NICE else ""
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


def answer(*args):
    done = subprocess.run([TRAIL, *args], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def size_of_trace():
    return os.path.getsize(TRACE) if os.path.exists(TRACE) else 0


class Recording:
    def __init__(self, *args, group=None):
        self.args, self.group = args, group

    def __enter__(self):
        if os.path.exists(TRACE):
            os.unlink(TRACE)
        program = [PROGRAM, *self.args]
        if self.group:
            program = ["sh", "-c", f"echo 0 > {self.group}/cgroup.procs && exec \"$@\"", "sh", *program]
        command = [TRAIL, "record", "-q", "-o", TRACE, "--", *program]
        self.recorder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.tids = [int(self.recorder.stdout.readline()) for _ in range(2)]
        return self

    def until_looked(self):
        for _ in range(2):
            size = size_of_trace()
            states.until(lambda size=size: size_of_trace() > size)

    def change(self):
        self.recorder.stdin.write("x")
        self.recorder.stdin.flush()

    def end(self):
        self.recorder.stdin.close()
        assert self.recorder.wait(timeout=240) == 0

    def __exit__(self, *_):
        self.recorder.kill()
        self.recorder.wait()
        self.recorder.stdout.close()


def recorded():
    return json.loads(answer("summary", "--json", TRACE))


def list_of(cpus):
    """Returns the list of CPUs in the kernel's format: "0-2,4"."""
    for line in open("/proc/self/status"):
        if line.startswith("Cpus_allowed_list:") and set(cpus) == os.sched_getaffinity(0):
            return line.split()[1]
    raise AssertionError(cpus)


def settings(tids):
    rows = {t["id"]: t.get("scheduling") for t in json.loads(answer("threads", "--json", TRACE))["threads"]}
    return [rows[tid] for tid in tids]


def needs_several():
    if len(CPUS) < 2 or len(CPUS) != ONLINE:
        raise Skip("not all of several CPUs may be used")


@tap.test
def threads_that_may_use_one_cpu_are_known_to_and_a_finding_says_it():
    needs_several()
    one = CPUS[-1]
    with Recording(str(one)) as run:
        # What other programs used follows from two looks at the machine, which take at most a
        # twentieth of the time.
        for _ in range(5):
            run.until_looked()
        run.end()
    answered = recorded()
    cpus = answered["recording"]["cpus"]
    assert (cpus["allowed"], cpus["allowed_list"], cpus["count"]) == (1, str(one), ONLINE), cpus
    assert settings(run.tids) == [[f"CPU {one}{OWN_NICE}"]] * 2, settings(run.tids)
    text = answer("threads", TRACE)
    assert all(f"TID {tid:6}  CPU {one}{OWN_NICE}\n" in text for tid in run.tids), text
    for command in ("summary",), ("info", "--full"):
        text = answer(*command, TRACE)
        assert f"affinity: threads that wanted a CPU may use only CPU {one}\n" in text, text
    ready = [f["text"] for f in answered["findings"] if f["kind"] == "ready"]
    if not ready:
        raise Skip("the kernel's context switches were not recorded: when threads were ready is not known")
    assert f"Those that wanted a CPU may use CPU {one} only, of {ONLINE} (affinity)" in ready[0], ready


@tap.test
def a_change_and_the_class_of_a_thread_are_known():
    needs_several()
    with Recording(str(CPUS[0]), "19") as run:
        run.until_looked()
        run.change()
        run.until_looked()
        run.end()
    before, after = f"CPU {CPUS[0]}; nice 19; SCHED_BATCH", f"CPUs {list_of(CPUS)}; nice 19; SCHED_BATCH"
    # A thread examined between its own calls has more settings.
    both = sorted(s[s.index(before) :] for s in settings(run.tids))
    assert both == [[before], [before, after]], both


@tap.test
def other_programs_are_counted():
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        with Recording("-") as run:
            run.until_looked()
            begin = states.cpu_ns(other.pid)
            run.until_looked()
            used = states.cpu_ns(other.pid) - begin
            run.until_looked()
            run.end()
    finally:
        other.kill()
        other.wait()
    answered = recorded()
    cpus = answered["recording"]["cpus"]
    assert "allowed" not in cpus or cpus["allowed"] == len(CPUS), cpus
    assert cpus["others_ns"] >= used - 2 * ONLINE * TICK_NS, (cpus, used)
    assert cpus["others_ns"] <= cpus["others_in_ns"] * ONLINE + 2 * ONLINE * TICK_NS, cpus
    # Its affinity is that of this test.
    limits = ("quota",) if len(CPUS) < ONLINE else ("affinity", "quota")
    assert not any(limit in f["text"] for f in answered["findings"] for limit in limits), answered["findings"]


def limited_group():
    """A control group limited to a fifth of a CPU."""
    for base, files in (
        ("/sys/fs/cgroup", {"cpu.max": "20000 100000"}),
        ("/sys/fs/cgroup/cpu", {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "20000"}),
    ):
        group = os.path.join(base, f"trail-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            if not os.path.exists(os.path.join(group, "cgroup.procs")):
                raise FileNotFoundError(group)
            for name, value in files.items():
                with open(os.path.join(group, name), "w") as file:
                    file.write(value)
            return group
        except OSError:
            os.rmdir(group)
    raise Skip("no control group with a quota can be made")


def throttled_ns(group):
    values = dict(line.split() for line in open(os.path.join(group, "cpu.stat")))
    return int(values["throttled_time"]) if "throttled_time" in values else 1000 * int(values["throttled_usec"])


@tap.test
def the_quota_of_the_control_group_is_known():
    group = limited_group()
    try:
        with Recording("-", group=group) as run:
            run.until_looked()
            begin = throttled_ns(group)
            run.until_looked()
            least = throttled_ns(group) - begin
            run.until_looked()
            run.end()
            most = throttled_ns(group)
        answered = recorded()
        cpus = answered["recording"]["cpus"]
        assert cpus["quota_thousandths"] == 200 and least <= cpus["throttled_ns"] <= most, (least, cpus, most)
        text = answer("summary", TRACE)
        assert "quota of the control group: 0.20 CPUs, throttled for " in text, text
        ready = [f["text"] for f in answered["findings"] if f["kind"] == "ready"]
        # On a busy machine the program may not use up its quota.
        if ready and cpus["throttled_ns"] > 0.1 * cpus["others_in_ns"]:
            assert "quota of their control group, 0.20 CPUs, stopped them for " in ready[0], ready
    finally:
        os.rmdir(group)


@tap.test
def an_address_space_that_is_too_small_is_named():
    def limited(*args):
        command = ["sh", "-c", 'ulimit -v 60000 && exec "$@"', "sh", TRAIL, *args]
        return subprocess.run(command, capture_output=True, text=True, timeout=240)

    if limited("--version").returncode != 0:
        raise Skip("built with a sanitizer, which needs more")
    done = limited("record", "-o", TRACE, "--", "true")
    assert done.returncode == 3 and "the address space is limited: raise ulimit -v" in done.stderr, done.stderr


sys.exit(tap.main())
