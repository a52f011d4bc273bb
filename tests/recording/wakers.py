"""Wake-ups: programs of wakers.c with a known answer, recorded and read back.

usage: wakers.py TRAIL libtrail-preload.so PROGRAM...; the programs are those of meson.build. Prints TAP.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

TRAIL = os.path.abspath(sys.argv[1])
PROGRAMS = {os.path.basename(path).removeprefix("recording-"): os.path.abspath(path) for path in sys.argv[3:]}
WORK = tempfile.mkdtemp(prefix="trail-wakers-")

tests = []


def test(name):
    def add(function):
        tests.append((name, function))
        return function
    return add


class Skip(Exception):
    pass


def program(name="wakers"):
    if name not in PROGRAMS:
        raise Skip("not built")
    return PROGRAMS[name]


def record(*command, options=(), output=None):
    """Runs a program under trail record: its trace's path. The trace must be good, the program's status 0."""
    trace = os.path.join(WORK, "x.trace")
    done = subprocess.run([TRAIL, "record", "-q", "-o", trace, *options, "--", *command],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    if output is not None:
        output.append(done.stdout)
    good = subprocess.run([TRAIL, "check", trace], capture_output=True, text=True)
    assert good.returncode == 0, good.stdout + good.stderr
    return trace


class Event:
    def __init__(self, line):
        fields = line.split()
        self.time = float(fields[0])
        self.text = line
        actor = re.match(r"\s*\S+\s+(?:G (\d+)|-)\s", line)
        self.g = int(actor[1]) if actor and actor[1] else None
        thread = re.search(r"\bM (\d+)", line)
        self.m = int(thread[1]) if thread else None
        self.stack = []

    def functions(self):
        return [frame.split(" (")[0].strip() for frame in self.stack]


def events_of(trace):
    text = subprocess.run([TRAIL, "print", "--words=go", "--stacks", trace], capture_output=True, text=True, check=True).stdout
    events = []
    for line in text.splitlines():
        if re.match(r"  \d+\.\d{9}\s", line):
            events.append(Event(line))
        elif events and line.startswith(" " * 12):
            events[-1].stack.append(line.strip())
    return events


def waker_of(events, function="wait_here", least=0.02):
    """The wait in `function` that lasted long: its block event and the one that ended it."""
    for i, block in enumerate(events):
        if "blocks: " not in block.text or function not in block.functions():
            continue
        for end in events[i + 1:]:
            if re.search(rf"\bG {block.g} made ready", end.text) or \
                    re.search(rf"\bG {block.g} .*made ready", end.text):
                if end.time - block.time < least:
                    break
                return block, end
    raise AssertionError("no thread waited in " + function)


# How often what a busy machine may spoil is tried: a thread that comes late does not wait for long, and a
# descriptor may be closed before the recorder could look at it.
# Emulated, all threads come late.
FOREIGN = "QEMU_LD_PREFIX" in os.environ
TRIES = 20 if FOREIGN else 5


def tried(check):
    def run():
        for _ in range(TRIES - 1):
            try:
                return check()
            except AssertionError:
                pass
        return check()
    return run


CASES = """pipe pipe-vectors pipe-stdio pipe-closed pipe-full fifo fifo-at-once pair pair-send pair-sendmsg pair-shutdown
tcp tcp-back tcp-closed tcp-epoll tcp-thread eventfd eventfd-write poll poll-eventfd select epoll epoll-eventfd duplicates duplicates-poll handler futex
futex-bitset futex-op mtx cnd sysv-semaphore sysv-queue queue queue-timed queue-full
flock flock-shared flock-weaker flock-closed description description-closed
sigwait sigqueue sigwait-thread sigtimedwait sigsuspend-thread pause-thread signalfd signalfd-poll signalfd-epoll
nanosleep-thread clock-nanosleep-thread sleep-thread sigwait-group
poll-interrupted-thread read-interrupted-thread write-interrupted-thread queue-interrupted-thread queue-timed-interrupted-thread semaphore-interrupted-thread semaphore-timed-interrupted-thread accept-interrupted-thread select-interrupted-thread epoll-interrupted-thread datagrams
shared-mutex shared-lock shared-condition shared-semaphore shared-barrier shared-futex""".split()
PROCESSES = """pipe pipe-vectors pipe-stdio pipe-closed pipe-full pair pair-send pair-sendmsg tcp tcp-back tcp-epoll eventfd eventfd-write
poll poll-eventfd select epoll epoll-eventfd duplicates duplicates-poll
named sysv-semaphore sysv-queue queue queue-timed queue-full flock flock-shared flock-weaker range range-weaker range-closed description lockf
sigwait sigqueue sigsuspend pause signalfd signalfd-poll signalfd-epoll
sleep sleep-group pause-group sigwait-group poll-interrupted poll-interrupted-group read-interrupted read-interrupted-group epoll-interrupted epoll-interrupted-group semaphore-interrupted
datagrams udp eventfd-passed shared-mutex shared-lock shared-condition shared-semaphore shared-barrier shared-futex""".split()
NOBODY = "foreign tcp-foreign disarmed reused queue-closed signal-to-another signal-of-others".split()


def wakes(*words, options=()):
    name = words[-1]

    @tried
    def run():
        block, end = waker_of(events_of(record(program(), *words, options=options)))
        assert "wake_here" in end.functions() or "in_handler" in end.functions(), \
            "woken by: " + end.text + "\n" + "\n".join(end.stack)
        assert (end.m == block.m) == (name == "handler"), end.text
    return run


def too_slow():
    raise Skip("qemu-user is too slow to look at a descriptor within 40 ms")


def wakes_not(*words, options=()):
    @tried
    def run():
        block, end = waker_of(events_of(record(program(), *words, options=options)))
        assert end.m == block.m and end.stack == block.stack, "woken by: " + end.text + "\n" + "\n".join(end.stack)
    return run


for case in CASES:
    tests.append((f"{case}: the wait is ended by its waker, in wake_here()", wakes(case)))
for case in PROCESSES:
    run = wakes("processes", case, options=["--children"])
    if FOREIGN and case == "named":
        run = too_slow
    tests.append((f"{case}: ... also in another process", run))


@test("a process that closes what another one waits at is not taken for its waker")
@tried
def _():
    block, end = waker_of(events_of(record(program(), "others", options=["--children"])), least=0.06)
    assert "wake_here" in end.functions() and end.m != block.m, "woken by: " + end.text + "\n" + "\n".join(end.stack)


for case in "child", "any-child":
    for switches in "auto", "off":

        @test(f"{case}: what waits for a child is woken by the child's end (--switches={switches})")
        @tried
        def _(case=case, switches=switches):
            output = []
            events = events_of(record(program(), case, options=["--children", f"--switches={switches}"], output=output))
            block, end = waker_of(events)
            assert end.m == int(output[0]) != block.m, "woken by: " + end.text
            # It is the last that the child does.
            later = [e for e in events if e.m == end.m and e.time > end.time]
            assert any(" ends" in e.text for e in later) and not any("runs" in e.text for e in later), [e.text for e in later]


@test("a process's first thread is created by the thread that forked it, where it did")
@tried
def _():
    output = []
    events = events_of(record(program(), "child", options=["--children"], output=output))
    (made,) = [e for e in events if re.search(r"\bG 1000000001 created\b", e.text)]
    parent = [e for e in events if "blocks: " in e.text and "wait_here" in e.functions()]
    assert made.g == parent[0].g and made.m == parent[0].m != int(output[0]), made.text
    assert "parent_of" in made.functions(), made.stack
    # It goes on by itself, in its own process.
    first = [e for e in events if re.search(r"\bG 1000000001 .*runs", e.text)][0]
    assert first.m == int(output[0]) and first.time >= made.time, first.text


def between(script):
    """Two programs that a shell has started: the one that reads is woken by the one that writes."""
    if FOREIGN:
        raise Skip("the shell is a program for this machine, not for the other")
    script = script.replace("WAKERS", program())
    block, end = waker_of(events_of(record("sh", "-c", script, options=["--children"])))
    assert "wake_here" in end.functions() and end.m != block.m, "woken by: " + end.text + "\n" + "\n".join(end.stack)


@test("what reads from a pipeline is woken by what writes into it")
@tried
def _():
    between("WAKERS writes | WAKERS reads")


@test("what reads from a FIFO is woken by what writes into it")
@tried
def _():
    fifo = os.path.join(tempfile.mkdtemp(dir=WORK), "fifo")
    os.mkfifo(fifo)
    between(f"WAKERS writes > {fifo} & WAKERS reads < {fifo}; wait")


for case in "flock-killed", "range-killed", "flock-passed":

    @test(f"{case}: what waits for the lock of a file is woken by the end of the process that held it")
    @tried
    def _(case=case):
        output = []
        events = events_of(record(program(), case, options=["--children"], output=output))
        block, end = waker_of(events)
        assert end.m == int(output[0]) != block.m, "woken by: " + end.text
        log = events[events.index(block) - 1].text.strip()
        assert re.search(r'log wait: "file lock /tmp/trail-wakers-\d+\.lock"$', log), log


for case in "flock-executes", "flock-executes-long", "range-executes":

    @test(f"{case}: what waits for the lock of a file is woken by the exec of the process that held it, which closes the file")
    @tried
    def _(case=case):
        output = []
        events = events_of(record(program(), case, options=["--children"], output=output))
        block, end = waker_of(events)
        assert end.m == int(output[0]) != block.m and "wake_here" in end.functions(), "woken by: " + end.text


@test("flock-kept: an exec that fails has given no lock back")
@tried
def _():
    block, end = waker_of(events_of(record(program(), "flock-kept", options=["--children"])), least=0.06)
    assert end.m == block.m and end.stack == block.stack, "woken by: " + end.text + "\n" + "\n".join(end.stack)


@test("flock-left: a lock of what another process has as well is said to be given back by none")
@tried
def _():
    block, end = waker_of(events_of(record(program(), "flock-left", options=["--children"])))
    assert end.m == block.m and end.stack == block.stack, "woken by: " + end.text + "\n" + "\n".join(end.stack)


@test("semaphore-interrupted-thread: what a signal ended keeps the name of what it was for")
@tried
def _():
    events = events_of(record(program(), "semaphore-interrupted-thread"))
    block, end = waker_of(events)
    log = events[events.index(block) - 1].text.strip()
    assert log.endswith('log wait: "semaphore no_posts"') and "wake_here" in end.functions(), log


for case in "shared-mutex", "shared-lock", "flock", "range":

    @test(f"{case}: the lock that another process held has the same name in the log of the hold")
    @tried
    def _(case=case):
        events = events_of(record(program(), "processes", case, options=["--children"]))
        block, end = waker_of(events)
        waited = re.search(r'log wait: "(?:mutex|rwlock to read|file lock) (.*)"$', events[events.index(block) - 1].text.strip())
        held = [re.search(r'log held: "(?:mutex|rwlock to write|file lock) (.*) ([\d.]+)ms"$', e.text.strip())
                for e in events if e.g == end.g and e.time <= end.time and "log held: " in e.text]
        assert waited and held and held[-1], [e.text for e in events if " log " in e.text]
        assert held[-1][1] == waited[1] and float(held[-1][2]) >= 20, (held[-1][0], waited[0])
        if case.startswith("shared"):  # and is named after where it was locked, not after where something waits for it
            assert f"(first seen locked in make_{case.replace('-', '_')} " in waited[1], waited[0]


for case in NOBODY:
    tests.append((f"{case}: nobody is said to have woken it", wakes_not(case)))
for case in "signal-of-others", "udp-elsewhere":
    tests.append((f"{case}: ... nor another process", wakes_not("processes", case, options=["--children"])))


@test("names: each wait names the file that its descriptor was then, or the socket's peer")
@tried
def _():
    if FOREIGN:
        too_slow()
    fifos, output = [os.path.join(tempfile.mkdtemp(dir=WORK), name) for name in ("first", "sec\nond\x1b")], []
    for fifo in fifos:
        os.mkfifo(fifo)
    events = events_of(record(program(), "names", *fifos, output=output))
    found = [e.text.split('log wait: ')[1] for e, block in zip(events, events[1:])
             if "log wait" in e.text and "wait_here" in block.functions()]
    fifos[1] = fifos[1].replace("\n", "?").replace("\x1b", "?")
    ports = output[0].split()
    # An address of IPv4 in one of IPv6 is what it is; port 0: there is no IPv6 here.
    sockets = [host + ":" + port for host, port in zip(("127.0.0.1", "127.0.0.1", "[::1]"), ports) if port != "0"]
    expected = [f'"read {name}"' for name in (*fifos, *sockets)]
    assert found == expected, f"{found}, not {expected}"


@test("several: a wait for several descriptors names them, those that became ready first")
@tried
def _():
    if FOREIGN:
        too_slow()
    output = []
    events = events_of(record(program(), "several", output=output))
    found = [e.text.split("log wait: ")[1].strip('"') for e, block in zip(events, events[1:])
             if "log wait" in e.text and "wait_here" in block.functions()]
    read, idle, parent = output[0].split()
    read, idle = f"pipe:[{read}]", f"pipe:[{idle}]"
    assert found[0] == f"poll 2 descriptors: {read} (ready), {idle}", found
    # select has them in order.
    assert found[1] == f"poll 2 descriptors: {read} (ready), {idle}", found
    assert found[2] == f"poll 7 descriptors: {read} (ready), " + ", ".join([idle] * 5) + ", ...", found
    assert sorted(re.split(": |, ", found[3].removeprefix("poll [eventpoll] of "))) == sorted(["2 descriptors", read, f"process {parent}"]), found
    # The call has not returned: the recorder has read it from outside.
    assert found[4] == f"poll 2 descriptors: {read}, {idle}", found


@test("syscall(): other numbers have their results, errno and arguments")
def _():
    path = program("syscalls")
    assert subprocess.run([path]).returncode == 0, "it fails by itself"
    record(path)


@test("other calls have their results, errno and arguments; a child of vfork closes nothing of its parent's")
@tried
def _():
    folders = [tempfile.mkdtemp(dir=WORK) for _ in range(2)]
    assert subprocess.run([program("calls"), folders[0]]).returncode == 0, "it fails by itself"
    block, end = waker_of(events_of(record(program("calls"), folders[1])), "read_one")
    assert "wake_here" in end.functions(), end.text


# Most wait by a table of the C++ library's, which is not what the program waits for.
ATOMICS_PLACE = r"of the atomic in wait_here(\(\))? \(atomics\.cpp:\d+\)"
for case, thing in (("atomic", "number"), ("latch", "latch"), ("semaphore", "semaphore"), ("flag", f"(flag|{ATOMICS_PLACE})"),
                    ("wide", f"(wide|{ATOMICS_PLACE})"), ("barrier", f"(gate|{ATOMICS_PLACE})")):

    @test(f"C++: {case}: the wait has its waker, and the name of what it is for")
    @tried
    def _(case=case, thing=thing):
        events = events_of(record(program("atomics"), case))
        block, end = waker_of(events)
        log = events[events.index(block) - 1].text
        assert re.search(rf'wait: "futex {thing}(\+0x[0-9a-f]+)?"$', log.strip()), log
        assert "wake_here()" in " ".join(end.functions()) or "wake_here" in end.functions(), "woken by " + end.text
        assert end.m != block.m, end.text


print(f"1..{len(tests)}")
failed = 0
for number, (name, function) in enumerate(tests, 1):
    try:
        function()
        print(f"ok {number} - {name}")
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}")
    except (AssertionError, subprocess.SubprocessError) as error:
        failed += 1
        print(f"not ok {number} - {name}")
        for line in str(error).splitlines():
            print("# " + line)
    sys.stdout.flush()
shutil.rmtree(WORK)
sys.exit(1 if failed else 0)
