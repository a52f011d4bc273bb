"""Records programs of wakers.c, whose wake-ups are known, and compares the traces. TAP.

usage: wakers.py TRAIL libtrail-preload.so PROGRAM...; the programs are those of meson.build.
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from recorded import Trace, functions
from tap import Skip

TRAIL = os.path.abspath(sys.argv[1])
PROGRAMS = {os.path.basename(path).removeprefix("recording-"): os.path.abspath(path) for path in sys.argv[3:]}
WORK = work.folder("wakers")
# Allowed difference between two clocks: the trace's is a scaled CPU counter.
CLOCK_NS = 1_000
# After this time the recorder examines a call that has not returned.
LOOKED_AT_NS = 20_000_000 - CLOCK_NS


def test(name):
    def add(function):
        function.__name__ = name
        return tap.test(function)

    return add


def program(name="wakers"):
    if name not in PROGRAMS:
        raise Skip("not built")
    return PROGRAMS[name]


class Recorded(Trace):
    """The trace of a program, its output, and the wake-ups that it announced: thread and time."""

    def __init__(self, *command, options=()):
        path = tempfile.mkdtemp(dir=WORK)
        trace = os.path.join(path, "x.trace")
        done = subprocess.run([TRAIL, "record", "-q", "-o", trace, *options, "--", *command],
                              capture_output=True, text=True, timeout=120)  # fmt: skip
        with open(os.path.join(path, "log"), "w") as log:
            log.write(f"{command}\n{done.stdout}{done.stderr}")
        assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
        good = subprocess.run([TRAIL, "check", trace], capture_output=True, text=True)
        assert good.returncode == 0, good.stdout + good.stderr
        super().__init__(TRAIL, trace)
        self.printed = done.stdout.split()
        self.wakes = [(int(tid), int(ns)) for tid, ns in re.findall(r"^wakes (\d+) (\d+)$", done.stderr, re.M)]

    def ended_wait(self, function="wait_here"):
        """Returns the wait in `function` during which the waker acted, and the waker."""
        (waker, at), *more = self.wakes
        assert not more, self.wakes
        waits = [w for w in self.in_function(function) if not w.of_kernel]
        found = [w for w in waits if w.begin - CLOCK_NS <= at <= w.end + CLOCK_NS]
        assert len(found) == 1 and found[0].ready >= at - CLOCK_NS, (at, waits)
        return found[0], waker

    def last_wait(self, function="wait_here"):
        """The same for a thread that the kernel first wakes in vain: it may still be ready when the waker acts."""
        ((waker, at),) = self.wakes
        *before, wait = [w for w in self.in_function(function) if not w.of_kernel]
        assert wait.end >= at - CLOCK_NS and len(before) <= 1, (at, before, wait)
        return wait, waker

    def is_woken_here(self, wait, waker, function="wake_here"):
        assert wait.waker == waker and waker != wait.tid and function in wait.waker_functions, (waker, wait)

    def is_woken_by_none(self, wait):
        assert wait.waker == 0 and wait.ready_functions == wait.functions, wait


FOREIGN = "QEMU_LD_PREFIX" in os.environ


CASES = """pipe pipe-vectors pipe-stdio pipe-closed pipe-full pair-full fifo fifo-at-once pair pair-send pair-sendmsg pair-shutdown
tcp tcp-back tcp-closed tcp-epoll tcp-thread eventfd eventfd-write poll poll-eventfd select epoll epoll-eventfd duplicates duplicates-poll handler futex
futex-bitset futex-op mtx cnd sysv-semaphore sysv-queue queue queue-timed queue-full
flock flock-shared flock-weaker flock-closed description description-closed
sigwait sigqueue sigwait-thread sigtimedwait sigsuspend-thread pause-thread signalfd signalfd-poll signalfd-epoll
nanosleep-thread clock-nanosleep-thread sleep-thread sigwait-group
poll-interrupted-thread read-interrupted-thread write-interrupted-thread queue-interrupted-thread queue-timed-interrupted-thread semaphore-interrupted-thread semaphore-timed-interrupted-thread accept-interrupted-thread select-interrupted-thread epoll-interrupted-thread datagrams
shared-mutex shared-lock shared-condition shared-semaphore shared-barrier shared-futex""".split()
PROCESSES = """pipe pipe-vectors pipe-stdio pipe-closed pipe-full pair pair-send pair-sendmsg tcp tcp-back tcp-epoll eventfd eventfd-write
poll poll-eventfd select epoll epoll-eventfd duplicates duplicates-poll
named sysv-semaphore sysv-queue queue queue-timed queue-full flock flock-shared flock-weaker range range-first-byte range-last-byte range-weaker range-closed description lockf
sigwait sigqueue sigsuspend pause signalfd signalfd-poll signalfd-epoll
sleep sleep-group pause-group sigwait-group poll-interrupted poll-interrupted-alike poll-interrupted-group read-interrupted read-interrupted-group epoll-interrupted epoll-interrupted-group semaphore-interrupted
datagrams udp eventfd-passed shared-mutex shared-lock shared-condition shared-semaphore shared-barrier shared-futex""".split()
# Tracked within one process until there is another.
FORKED = """pipe pipe-closed pipe-full pair pair-shutdown tcp tcp-back tcp-thread eventfd poll poll-eventfd select epoll
epoll-eventfd duplicates-poll""".split()
NOBODY = "foreign tcp-foreign disarmed reused queue-closed signal-to-another signal-of-others".split()


def wakes(*words, options=()):
    trace = Recorded(program(), *words, options=options)
    wait, waker = trace.ended_wait()
    if words[-1] == "handler":
        assert wait.waker == 0 and "in_handler" in wait.ready_functions, wait
    else:
        trace.is_woken_here(wait, waker)


def wakes_not(*words, options=()):
    trace = Recorded(program(), *words, options=options)
    wait, _ = trace.ended_wait()
    trace.is_woken_by_none(wait)


def too_slow():
    raise Skip("qemu-user is too slow to look at a descriptor within 40 ms")


for case in CASES:

    @test(f"{case}: the wait is ended by its waker, in wake_here()")
    def _(case=case):
        wakes(case)


for case in PROCESSES:

    @test(f"{case}: ... also in another process")
    def _(case=case):
        if FOREIGN and case == "named":
            too_slow()
        wakes("processes", case)


for case in FORKED:

    @test(f"{case}: ... also of a thread that waits there since before the process had others")
    def _(case=case):
        wakes("forked", case)


for case in "mtx", "cnd":

    @test(f"{case}: the wait is known to block: it is recorded although shorter than --min-wait")
    def _(case=case):
        wakes(case, options=["--switches=off", "--min-wait=100s"])


@test("pipe: a wait shorter than --min-wait is not recorded")
def _():
    trace = Recorded(program(), "pipe", options=["--switches=off", "--min-wait=100s"])
    assert not trace.in_function("wait_here"), trace.waits


@test("a process that closes what another one waits at is not taken for its waker")
def _():
    trace = Recorded(program(), "others", options=["--children"])
    trace.is_woken_here(*trace.ended_wait())


for case in "child", "any-child", "child-poll", "child-pselect", "child-suspended", "child-signal", "child-descriptor":
    for switches in "auto", "off":

        @test(f"{case}: what waits for a child is woken by the child's end (--switches={switches})")
        def _(case=case, switches=switches):
            trace = Recorded(program(), case, options=["--children", f"--switches={switches}"])
            wait, child = trace.ended_wait()
            assert wait.waker == child == int(trace.printed[0]) != wait.tid, wait
            # It is the last thing the child does.
            later = [e.get("type") for e in trace.events if e.get("m") == child and e["time_ns"] > wait.ready]
            assert "GoDestroy" in later and "GoStart" not in later, later


@test("alarmed: a child that ends right after a timer has ended the wait is not taken for its waker")
def _():
    trace = Recorded(program(), "alarmed", options=["--children"])
    polls = [w for w in trace.waits if w.object.startswith("poll")]
    assert len(polls) == 1 and polls[0].waker == 0, polls


@test("a process's first thread is created by the thread that forked it, where it did")
def _():
    trace = Recorded(program(), "child", options=["--children"])
    (made,) = [e for e in trace.events if e.get("type") in ("GoCreate", "GoCreateBlocked") and e["id"] == 1000000001]
    (parent,) = {w.tid for w in trace.in_function("wait_here")}
    child = int(trace.printed[0])
    assert made["m"] == parent != child and made["g"] == trace.of(parent).goroutine, made
    assert "parent_of" in functions(made), made
    # The child continues by itself, in its own process.
    first = next(e for e in trace.events if e.get("type") == "GoStart" and e["id"] == 1000000001)
    assert first["m"] == child and first["time_ns"] >= made["time_ns"], first


def between(script):
    """A shell starts two programs: the reading one is woken by the writing one."""
    if FOREIGN:
        raise Skip("the shell is a program for this machine, not for the other")
    turn = os.path.join(tempfile.mkdtemp(dir=WORK), "turn")
    with open(turn, "wb") as file:
        file.write(bytes(4096))
    script = script.replace("READS", f"{program()} reads {turn}").replace("WRITES", f"{program()} writes {turn}")
    trace = Recorded("sh", "-c", script, options=["--children"])
    trace.is_woken_here(*trace.ended_wait())


@test("what reads from a pipeline is woken by what writes into it")
def _():
    between("WRITES | READS")


@test("what reads from a FIFO is woken by what writes into it")
def _():
    fifo = os.path.join(tempfile.mkdtemp(dir=WORK), "fifo")
    os.mkfifo(fifo)
    between(f"WRITES > {fifo} & READS < {fifo}; wait")


for case in "flock-killed", "range-killed", "flock-passed":
    for looked in [], ["looked"]:

        @test(f"{case}: what waits for the lock of a file is woken by the end of the process that held it" + ", and named" * len(looked))
        def _(case=case, looked=looked):
            trace = Recorded(program(), case, *looked, options=["--children"])
            # The kernel wakes waiters for part of a file when any other part is unlocked.
            wait, holder = trace.last_wait() if case == "range-killed" else trace.ended_wait()
            assert wait.waker == holder == int(trace.printed[0]) != wait.tid, wait
            assert re.search(r"^file lock /tmp/trail-wakers-\d+\.lock$", wait.object) or not looked, wait


for case in "flock-executes", "flock-executes-long", "range-executes":

    @test(f"{case}: what waits for the lock of a file is woken by the exec of the process that held it, which closes the file")
    def _(case=case):
        trace = Recorded(program(), case, options=["--children"])
        wait, holder = trace.ended_wait()
        assert holder == int(trace.printed[0]), trace.printed
        trace.is_woken_here(wait, holder)


for case, why in (("flock-kept", "an exec that fails has given no lock back"),
                  ("flock-left", "a lock of a file that another process has open as well has no release")):  # fmt: skip

    @test(f"{case}: {why}")
    def _(case=case):
        trace = Recorded(program(), case, options=["--children"])
        wait, _ = trace.ended_wait()
        trace.is_woken_by_none(wait)


@test("semaphore-interrupted-thread: what a signal ended keeps the name of what it was for")
def _():
    trace = Recorded(program(), "semaphore-interrupted-thread")
    wait, waker = trace.ended_wait()
    trace.is_woken_here(wait, waker)
    assert wait.object == "semaphore no_posts", wait


UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

for case in "shared-mutex", "shared-lock", "flock", "range":

    @test(f"{case}: the lock that another process held has the same name in the log of the hold")
    def _(case=case):
        trace = Recorded(program(), "processes", case, "looked", options=["--children"])
        wait, waker = trace.ended_wait()
        waited = re.search(r"^(?:mutex|rwlock to read|file lock) (.*)$", wait.object)
        held = [re.search(r"^(?:mutex|rwlock to write|file lock) (.*) ([\d.]+)(ns|us|ms|s)$", e["message"])
                for e in trace.events if e.get("type") == "UserLog" and e["category"] == "held"
                and e["m"] == waker and e["time_ns"] <= wait.ready]  # fmt: skip
        assert waited and held and held[-1], (wait, held)
        assert held[-1][1] == waited[1], (held[-1][0], waited[0])
        # The lock was held for the whole wait; lengths have three digits.
        assert float(held[-1][2]) * UNITS[held[-1][3]] * 1.005 >= wait.ready - wait.begin, (held[-1][0], wait)
        if case.startswith("shared"):  # and is named after where it was locked, not after where something waits for it
            assert f"(first seen locked in make_{case.replace('-', '_')} " in waited[1], waited[0]


for looked in [], ["looked"]:

    @test("shared-unseen: a lock of which no hold is known has no place" + ", at a look" * len(looked))
    def _(looked=looked):
        trace = Recorded(program(), "processes", "shared-unseen", *looked, options=["--children"])
        wait, _ = trace.ended_wait()
        assert re.search(r"^mutex shared 0x[0-9a-f]+$", wait.object), wait


for case in NOBODY:

    @test(f"{case}: nobody is said to have woken it")
    def _(case=case):
        wakes_not(case, options=["--no-children"])


for case in "signal-of-others", "udp-elsewhere":

    @test(f"{case}: ... nor another process")
    def _(case=case):
        wakes_not("processes", case, options=["--children"])


def names_of_waits(trace):
    return [w.object for w in trace.in_function("wait_here") if not w.of_kernel]


@test("names: each wait names the file that its descriptor was then, or the socket's peer, a server if it was connected to")
def _():
    if FOREIGN:
        too_slow()
    fifos = [os.path.join(tempfile.mkdtemp(dir=WORK), name) for name in ("first", "sec\nond\x1b")]
    for fifo in fifos:
        os.mkfifo(fifo)
    trace = Recorded(program(), "names", *fifos)
    found, ports = names_of_waits(trace), trace.printed
    fifos[1] = fifos[1].replace("\n", "?").replace("\x1b", "?")
    # An IPv4 address mapped to IPv6 is shown as IPv4; port 0: there is no IPv6 here.
    hosts = ("127.0.0.1", "server 127.0.0.1", "127.0.0.1", "[::1]")
    sockets = [host + ":" + port for host, port in zip(hosts, ports) if port != "0"]
    expected = [f"read {name}" for name in (*fifos, *sockets)]
    assert found == expected, f"{found}, not {expected}"


@test("several: a wait for several descriptors names them, those that became ready first")
def _():
    if FOREIGN:
        too_slow()
    trace = Recorded(program(), "several")
    read, idle, parent = trace.printed
    read, idle = f"pipe:[{read}]", f"pipe:[{idle}]"
    two = f"poll 2 descriptors: {read} (ready), {idle}"
    seven = f"poll 7 descriptors: {read} (ready), " + ", ".join([idle] * 5) + ", ..."
    waits = [w for w in trace.in_function("wait_here") if not w.of_kernel]
    found = [w.object for w in waits]
    # select lists them in order. A long call of poll is read from outside: which descriptors are
    # ready is not known yet.
    for wait, expected in zip(waits, (two, two, two, seven)):
        is_long = wait.end - wait.begin >= LOOKED_AT_NS
        assert wait.object == expected or (is_long and read in wait.object and idle in wait.object), found
    assert sorted(re.split(": |, ", found[4].removeprefix("poll [eventpoll] of "))) == sorted(["2 descriptors", read, f"process {parent}"]), found
    # The call has not returned: the recorder read it from outside.
    assert found[5] == f"poll 2 descriptors: {read}, {idle}", found


@test("syscall(): other numbers have their results, errno and arguments")
def _():
    path = program("syscalls")
    assert subprocess.run([path]).returncode == 0, "it fails by itself"
    Recorded(path)


@test("other calls have their results, errno and arguments; a child of vfork closes nothing of its parent's")
def _():
    folders = [tempfile.mkdtemp(dir=WORK) for _ in range(2)]
    assert subprocess.run([program("calls"), folders[0]], capture_output=True).returncode == 0, "it fails by itself"
    trace = Recorded(program("calls"), folders[1])
    trace.is_woken_here(*trace.ended_wait("read_one"))


# Most wait on a table in the C++ library, which is not the object that the program waits for.
IN_PLACE = r"in wait_here(\(\))? \(atomics\.cpp:\d+\)"
for case, thing in (("atomic", "atomic number"), ("latch", "latch latch"), ("semaphore", "semaphore semaphore"), ("future", f"future {IN_PLACE}"),
                    ("flag", f"atomic (flag|{IN_PLACE})"), ("wide", f"atomic (wide|{IN_PLACE})"), ("barrier", f"barrier {IN_PLACE}"),
                    ("any", "condition any")):  # fmt: skip

    @test(f"C++: {case}: the wait has its waker, and the name of what it is for")
    def _(case=case, thing=thing):
        trace = Recorded(program("atomics"), case)
        names = {f for w in trace.waits for f in w.functions + w.waker_functions}
        place, waking = (next((n for n in names if re.fullmatch(rf"{f}(\(\))?", n)), f) for f in ("wait_here", "wake_here"))
        wait, waker = trace.ended_wait(place)
        trace.is_woken_here(wait, waker, waking)
        assert re.search(rf"^{thing}$", wait.object), wait


sys.exit(tap.main())
