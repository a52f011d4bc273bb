"""Checks the output of 'trail stuck' for programs with known waits (stuck.c, deadlock.c), and that the
programs continue. TAP.

usage: stuck.py TRAIL PROGRAM DEADLOCK CROWD PROCESSES TIMED [STATIC...]     the same as PROGRAM, linked with -static, -static-pie
"""

import atexit
import ctypes
import errno
import functools
import json
import mmap
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import filters
import states
import tap
import work
from tap import Skip

TRAIL, PROGRAM, DEADLOCK, CROWD, PROCESSES, TIMED, *STATIC = (os.path.abspath(a) for a in sys.argv[1:])
WORK = work.folder("stuck")
FILE = os.path.join(WORK, "file")
# LeakSanitizer does not work in a process traced by strace.
TRACED = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
# ptrace(2)
SEIZE, INTERRUPT = 0x4206, 0x4207


def stuck(*args, code=0):
    done = subprocess.run([TRAIL, "stuck", *map(str, args)], capture_output=True, text=True, timeout=120)
    if "ptrace_scope" in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == code, (done.returncode, done.stdout[-500:], done.stderr)
    return done.stdout if code == 0 else done.stderr


def stuck_whole(*args):
    """Allows a busy machine as long as it needs to stop all threads."""
    out = stuck("--limit=100s", *args)
    assert "could not be stopped" not in out and not re.search(r'"unstopped": ?[1-9]', out), out
    return out


def knows_unix_sockets():
    """Whether sock_diag(7) answers for a pair of Unix sockets (struct nlmsghdr, struct unix_diag_req)."""
    one, other = socket.socketpair()
    with one, other:
        inode = os.fstat(one.fileno()).st_ino
        try:
            with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as diagnostics:  # NETLINK_SOCK_DIAG
                all_bits = 0xFFFFFFFF
                request = struct.pack("=BBHIIIII", 1, 0, 0, all_bits, inode, 4, all_bits, all_bits)
                diagnostics.send(struct.pack("=IHHII", 16 + len(request), 20, 1, 0, 0) + request)
                return struct.unpack_from("=IH", diagnostics.recv(4096))[1] == 20  # else NLMSG_ERROR
        except OSError:
            return False


def reads_all_descriptors():
    """If not, processes of other users might also have a pipe."""
    return os.geteuid() == 0


def tasks(pid):
    """Returns {name: TID} for a process's threads, and {TID: the system call in which it waits}."""
    names, waiting = {}, {}
    for tid in os.listdir(f"/proc/{pid}/task"):
        folder = f"/proc/{pid}/task/{tid}"
        names[open(f"{folder}/comm").read().strip()] = int(tid)
        call = open(f"{folder}/syscall").read()
        if call != "running\n":
            waiting[tid] = call
    return names, waiting


class Freezes:
    """Counts how often all processes are stopped from outside, as by a freezer of control groups.
    That stops the program too, and ends some of its calls with EINTR. The witness is a process
    that waits in such a call; trail never looks at it."""

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.semaphore = self.libc.semget(0, 1, 0o600)  # IPC_PRIVATE
        assert self.semaphore >= 0, os.strerror(ctypes.get_errno())
        self.counted = mmap.mmap(-1, 4)
        self.witness = os.fork()
        if self.witness == 0:
            self.wait()
        atexit.register(self.end, os.getpid())

    def wait(self):
        down = struct.pack("=HhH", 0, -1, 0)
        while self.libc.semop(self.semaphore, down, 1) < 0 and ctypes.get_errno() == errno.EINTR:
            struct.pack_into("=I", self.counted, 0, struct.unpack_from("=I", self.counted)[0] + 1)
        os._exit(0)

    def end(self, owner):
        if os.getpid() == owner:
            self.libc.semctl(self.semaphore, 0, 0)  # IPC_RMID
            os.waitpid(self.witness, 0)

    def count(self):
        """Returns the count once the witness waits again, so that all stops so far are counted."""
        states.until(lambda: states.status(self.witness, "State").startswith("S"))
        return struct.unpack_from("=I", self.counted)[0]


FREEZES = Freezes()


def test(function):
    """Makes a function a test. A failure does not count if all processes were stopped from outside meanwhile."""

    @functools.wraps(function)
    def run():
        while True:
            before = FREEZES.count()
            try:
                return function()
            except (AssertionError, OSError):
                if before == FREEZES.count():
                    raise

    tap.test(run)


class Program:
    """The program, while its child and all its threads except the spinning one wait."""

    def __init__(self, path=PROGRAM):
        self.path = path

    def __enter__(self):
        open(FILE, "w").close()
        self.process = subprocess.Popen([self.path, FILE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        self.tids = self.waiting = None
        states.until(self.all_wait)
        self.child = int(open(f"/proc/{self.pid}/task/{self.pid}/children").read())
        return self

    def all_wait(self):
        """Whether all threads exist and are in the same calls as before."""
        assert self.process.poll() is None, "the program has ended"
        before = self.tids, self.waiting
        self.tids, self.waiting = tasks(self.pid)
        return "sleeper" in self.tids and len(self.waiting) >= len(self.tids) - 1 and before == (self.tids, self.waiting)

    def goes_on(self):
        """Lets the program continue, and checks that no call was interrupted."""
        out, _ = self.process.communicate("x", timeout=120)
        assert (self.process.returncode, out) == (0, "good\n"), (self.process.returncode, out)

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()
        with open(FILE) as file:
            ctypes.CDLL(None).semctl(int(file.read() or -1), 0, 0)  # IPC_RMID


def threads_of(answer, pid):
    (process,) = [p for p in answer["processes"] if p["pid"] == pid]
    return {t["name"]: t for t in process["threads"]}


@test
def each_thread_says_what_it_waits_for_and_who_has_it():
    with Program() as program:
        answer = json.loads(stuck_whole("--json", program.pid))
        threads = threads_of(answer, program.pid)
        assert threads.keys() == program.tids.keys(), threads.keys()
        assert {n: t["tid"] for n, t in threads.items()} == program.tids
        holder = program.tids["holder"]
        right = {
            "mutex": ("mutex", "a_mu", holder),
            "timed": ("mutex", "a_mu", holder),
            "inheriting": ("mutex", "pi_mu", holder),
            "reader": ("rwlock", "a_lock", holder),
            "writer": ("rwlock", "a_lock", holder),
            "condition": ("condition", "a_cond", None),
            "recursion": ("condition", "a_cond", None),
            "semaphore": ("semaphore", "a_sem", None),
            "barrier": ("barrier", "a_barrier", None),
            "joiner": ("join", None, holder),
            "holder": ("read", "pipe", None),
            "pipe": ("read", "pipe", None),
            "poll": ("poll", "pipe", None),
            "epoll": ("poll", "pipe", None),
            "signals": ("signal", None, None),
            "unix": ("read", "Unix socket", None),
            "sleeper": ("sleep", None, None),
            "children": ("child", f"{program.child} (stuck)", None),
            "locker": ("file", FILE, None),
        }
        right["children"] = ("child", f"{program.child} ({open(f'/proc/{program.child}/comm').read().strip()})", None)
        for name, (kind, what, who) in right.items():
            t = threads[name]
            ours = (t["state"], t["wait_kind"], t.get("object"), t.get("holder"))
            assert ours == ("waiting", kind, what, who), (name, ours)
        assert threads["sysv"]["wait_kind"] == "semaphore"
        assert threads["spinner"]["state"] == "running"
        assert re.fullmatch(r"socket 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+", threads["socket"]["object"]), threads["socket"]
        assert re.fullmatch(r"pipe, socket 127\.0\.0\.1:\d+ to 127\.0\.0\.1:\d+", threads["select"]["object"]), threads["select"]
        if knows_unix_sockets():
            assert "the process itself" in threads["unix"]["note"], threads["unix"]
        else:
            print("# the kernel does not say which Unix sockets are connected: their other ends are not looked for")
        assert f"process {program.child} " in threads["locker"]["note"], threads["locker"]
        assert f"process {os.getpid()} " in next(t for t in threads.values() if t["tid"] == program.pid)["note"]
        # Includes the child, which has ends of the same pipes.
        waiters = 7 if os.access(f"/proc/{program.child}/fd", os.R_OK | os.X_OK) else 6
        assert threads["holder"]["waiters"] == waiters, threads["holder"]
        assert answer["deadlocks"] == []
        program.goes_on()


@test
def a_condition_names_the_mutex_that_its_waiters_take_again():
    with Program() as program:
        threads = threads_of(json.loads(stuck_whole("--json", program.pid)), program.pid)
        for name in ("condition", "recursion"):
            assert threads[name]["note"] == "with mutex cond_mu", threads[name]
        text = stuck_whole(program.pid)
        assert re.search(r"\(holder\): .*\n    [67] threads wait for this thread$", text, re.M), text
        assert re.search(r"\(condition\): waiting for condition variable a_cond, with mutex cond_mu$", text, re.M), text
        program.goes_on()


@test
def stacks_have_the_functions_that_called():
    with Program() as program:
        threads = threads_of(json.loads(stuck_whole("--json", program.pid)), program.pid)
        functions = {name: [f["function"] for f in t["stack"]] for name, t in threads.items()}
        for name, function in (("mutex", "mutex"), ("condition", "condition"), ("pipe", "pipes"), ("spinner", "spinner"),
                               ("epoll", "epoller"), ("signals", "signals"), ("joiner", "joiner")):
            assert function in functions[name], (name, functions[name])
        at = functions["recursion"].index("deep")
        # recursion() makes 101 calls of deep(); the compiler may have inlined some
        assert functions["recursion"].index("recursion") > at and functions["recursion"][at:].count("deep") >= 50
        mutex = threads["mutex"]["stack"]
        assert any(f["file"].endswith("stuck.c") and f["line"] > 0 for f in mutex), mutex
        text = stuck_whole("--frames=4", program.pid)
        assert re.search(r"\.\.\. \d+ more: --frames=0", text), text
        assert "..." not in stuck_whole("--frames=0", program.pid).split("(recursion)")[1].split("\n\n")[0]


def whole_stacks(path):
    """Checks that stacks of the program at the path are as complete as those of the dynamic one,
    down to the start of the thread."""
    with Program(path) as program:
        threads = threads_of(json.loads(stuck_whole("--json", program.pid)), program.pid)
        for name, function in (("mutex", "mutex"), ("writer", "writer"), ("condition", "condition"), ("joiner", "joiner"),
                               ("pipe", "pipes"), ("sleeper", "sleeper"), ("spinner", "spinner")):
            functions = [f["function"] for f in threads[name]["stack"]]
            assert function in functions and "start_thread" in functions[functions.index(function) :], (name, functions)
        mutex, writer = threads["mutex"], threads["writer"]
        assert (mutex["wait_kind"], mutex["object"], mutex["holder"]) == ("mutex", "a_mu", program.tids["holder"]), mutex
        assert (writer["wait_kind"], writer["object"], writer["holder"]) == ("rwlock", "a_lock", program.tids["holder"]), writer
        deep = [f["function"] for f in threads["recursion"]["stack"]]
        assert deep.count("deep") >= 50 and "recursion" in deep, deep
        program.goes_on()


@test
def stacks_of_static_programs_are_whole():
    if len(STATIC) < 1:
        raise Skip("no static programs can be linked; install the C library's archives (libc6-dev, glibc-static)")
    for path in STATIC:
        whole_stacks(path)


@test
def a_holder_in_another_process():
    with Program() as program:
        answer = json.loads(stuck_whole("--json", "--children", program.pid))
        (child,) = threads_of(answer, program.child).values()
        assert (child["wait_kind"], child["holder"]) == ("mutex", program.tids["holder"]), child
        text = stuck_whole(program.child, program.pid)
        assert f"held by thread {program.tids['holder']} (holder) of process {program.pid}" in text, text
        # Also if only the child was requested: both have mapped the memory of the mutex.
        text = stuck_whole(program.child)
        assert f"held by thread {program.tids['holder']} (holder) of process {program.pid}" in text, text
        assert "not requested" in text and "(sleeper)" not in text, text
        program.goes_on()


@test
def deadlocks():
    process = subprocess.Popen([DEADLOCK, "wait"])
    try:
        states.until_all_wait([process.pid], 3)
        text = stuck_whole(process.pid)
        tids = states.tids(process.pid)[1:]
        for tid, holds, waits in ((tids[0], "a_mu", "b_mu"), (tids[1], "b_mu", "a_mu")):
            line = rf"thread {tid} \(\S+\) holds mutex {holds} and waits for mutex {waits}$"
            assert text.startswith("deadlock:\n") and re.search(line, text, re.M), text
        cycle = json.loads(stuck_whole("--json", process.pid))["deadlocks"]
        assert [{t["tid"] for t in c} for c in cycle] == [set(tids)], cycle
    finally:
        process.kill()
        process.wait()


class Crowd:
    """Many waiting threads, two of them deadlocked."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.process = subprocess.Popen([CROWD, str(self.count)])
        states.until_all_wait([self.process.pid], self.count + 3)
        return self.process.pid

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def ptrace_calls(pid):
    """Returns the ptrace(2) calls of 'trail stuck' in order, as ("SEIZE", TID)."""
    log = os.path.join(WORK, "ptrace")
    command = ["strace", "-f", "-qq", "-o", log, "-e", "trace=ptrace", TRAIL, "stuck", "--limit=100s", str(pid)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=TRACED)
    assert done.returncode == 0, done.stderr
    return re.findall(r"ptrace\(PTRACE_(SEIZE|DETACH), (\d+)", open(log).read()), done.stdout


@test
def of_many_threads_few_are_stopped_at_once():
    if not shutil.which("strace"):
        raise Skip("no strace")
    with Crowd(500) as pid:
        tids = set(states.tids(pid))
        calls, text = ptrace_calls(pid)
        stopped, most = set(), 0
        for call, tid in calls:
            stopped = stopped | {tid} if call == "SEIZE" else stopped - {tid}
            most = max(most, len(stopped))
        assert {int(tid) for _, tid in calls} == tids and not stopped, (len(tids), stopped)
        assert 2 <= most <= 64, most
        assert "so not seen at one instant" in text, text[:300]
        assert re.search(r"threads .* and 496 more \(stuck-crowd\): waiting for a signal", text), text[:2000]


@test
def a_deadlock_of_threads_that_were_stopped_one_after_the_other_is_looked_at_twice():
    with Crowd(500) as pid:
        answer = json.loads(stuck_whole("--json", pid))
        (cycle,) = answer["deadlocks"]
        says = {t["text"].split(") ", 1)[1]: str(t["tid"]) for t in cycle}
        first = says["holds mutex first_mu and waits for mutex last_mu"]
        last = says["holds mutex last_mu and waits for mutex first_mu"]
        assert len(cycle) == 2, cycle
        assert answer["processes"][0]["groups"] > 1 and len(answer["processes"][0]["threads"]) == len(states.tids(pid))
        if shutil.which("strace"):
            calls, _ = ptrace_calls(pid)
            of_two = [call for call in calls if call[1] in (first, last)]
            assert len(of_two) == 4, of_two  # the second time without a stop


@test
def a_few_threads_are_stopped_together():
    with Crowd(50) as pid:
        answer = json.loads(stuck_whole("--json", pid))
        assert answer["processes"][0]["groups"] == 1 and len(answer["deadlocks"]) == 1
        assert "one instant" not in stuck_whole(pid)


class Pair:
    """A process and its child, in a mode of processes.c."""

    def __init__(self, mode, waiting=2, command=()):
        self.mode, self.waiting, self.command = mode, waiting, command

    def __enter__(self):
        self.process = subprocess.Popen([*self.command, PROCESSES, self.mode], stdout=subprocess.PIPE, text=True, cwd=WORK)
        self.child, self.pid = int(self.process.stdout.readline()), self.process.pid
        if self.command:
            (self.pid,) = states.children(self.pid)
        if self.waiting == 1:
            states.until(lambda: states.status(self.child, "State").startswith("Z"))
        states.until_all_wait([self.pid, self.child][: self.waiting], self.waiting)
        return self

    def __exit__(self, *unused):
        if self.command:
            os.kill(self.pid, signal.SIGKILL)
        else:
            self.process.kill()
        self.process.wait()

    def deadlocks(self, pid):
        """Returns {PID: its text in the deadlock} for both single-threaded processes."""
        cycles = json.loads(stuck_whole("--json", pid))["deadlocks"]
        assert len(cycles) <= 1, cycles
        return {t["tid"]: t["text"].split(") ", 1)[1] for cycle in cycles for t in cycle}

    def text(self):
        return stuck_whole(self.pid)


@test
def processes_that_wait_for_each_other_are_a_deadlock():
    if not reads_all_descriptors():
        raise Skip("not root: processes of other users may have the pipes, too")
    for mode, says in (
        ("pipes", "waits to read pipe, whose other end process {other} (stuck-processes) and the process itself have"),
        ("sockets", "waits to read Unix socket, whose other end process {other} (stuck-processes) has"),
        ("file_locks", "waits for file {work}/{wanted}.lock, locked by process {other} (stuck-processes)"),
    ):
        if mode == "sockets" and not knows_unix_sockets():
            continue
        with Pair(mode) as two:
            for asked in (two.pid, two.child):
                right = {
                    two.pid: says.format(other=two.child, work=WORK, wanted="b"),
                    two.child: says.format(other=two.pid, work=WORK, wanted="a"),
                }
                assert two.deadlocks(asked) == right, (mode, two.deadlocks(asked))


@test
def a_server_that_listens_with_ipv6_has_the_other_end_of_an_ipv4_connection():
    if not reads_all_descriptors():
        raise Skip("not root: processes of other users may have the sockets, too")
    if not socket.has_ipv6:
        raise Skip("no IPv6")
    with Pair("mapped_sockets") as two:
        address = r"127\.0\.0\.1:\d+"
        for self, other in ((two.pid, two.child), (two.child, two.pid)):
            says = rf"waits to read socket {address} to {address}, whose other end process {other} \(stuck-processes\) has"
            assert re.fullmatch(says, two.deadlocks(two.pid).get(self, "no deadlock")), two.deadlocks(two.pid)


@test
def a_child_that_fills_a_pipe_nobody_reads_and_is_waited_for_is_a_deadlock():
    if not reads_all_descriptors():
        raise Skip("not root")
    with Pair("full") as two:
        assert two.deadlocks(two.pid) == {
            two.pid: f"waits for child process {two.child} (stuck-processes)",
            two.child: f"waits to write pipe, whose other end process {two.pid} (stuck-processes) has",
        }, two.deadlocks(two.pid)


@test
def a_reader_that_has_the_only_other_end_waits_for_itself():
    if not reads_all_descriptors():
        raise Skip("not root")
    with Pair("own", waiting=1) as two:
        says = "waits to read pipe, whose other end only the process itself has"
        assert two.deadlocks(two.pid) == {two.pid: says}, two.deadlocks(two.pid)


@test
def a_process_whose_first_thread_has_ended_has_its_descriptors():
    if not reads_all_descriptors():
        raise Skip("not root")
    with Pair("no_leader", waiting=1) as two:
        assert two.deadlocks(two.pid) == {}, two.deadlocks(two.pid)
        text = two.text()
        assert f"whose other end process {two.child} (stuck-processes) and the process itself have" in text, text


@test
def a_lock_in_shared_memory_is_held_by_another_process():
    with Pair("mutexes") as two:
        assert set(two.deadlocks(two.pid)) == {two.pid, two.child}
        assert all("holds mutex" in text for text in two.deadlocks(two.child).values()), two.deadlocks(two.child)
    with Pair("held") as two:
        assert two.deadlocks(two.pid) == {}
        text = two.text()
        assert f"held by thread {two.child} (stuck-processes) of process {two.child}\n" in text, text


@test
def waits_that_may_end_are_no_deadlock():
    for mode, waiting in (("open_end", 2), ("limited", 2), ("two_threads", 3)):
        with Pair(mode, waiting) as two:
            for asked in (two.pid, two.child):
                assert two.deadlocks(asked) == {}, (mode, two.deadlocks(asked))
    with Pair("two_threads", 3) as two:
        text = two.text()
        assert f"whose other end process {two.child} (stuck-processes) and the process itself have" in text, text


@test
def a_read_of_a_socket_with_a_time_limit_is_not_interrupted():
    with Pair("limited") as two:
        calls = states.calls([two.child])
        for _ in range(5):
            text = stuck_whole(two.child)
        assert f"thread {two.child} (stuck-processes): waiting to read Unix socket" in text, text
        assert two.process.poll() is None and states.calls([two.child]) == calls, "the read has ended"


@test
def readers_of_a_lock_are_counted_and_what_knows_them_is_said():
    with Pair("reader", waiting=0) as two:
        states.until_all_wait([two.pid], 2)
        says = "waiting for rwlock a_lock, held by 1 reader; the lock does not record which, 'trail record' does\n"
        assert says in two.text(), two.text()


@test
def readers_of_a_lock_are_known_while_the_process_is_recorded():
    command = [TRAIL, "record", "-q", "-o", os.path.join(WORK, "readers.trace"), "--"]
    with Pair("reader", waiting=0, command=command) as two:
        states.until_all_wait([two.pid], 2)
        says = f"waiting for rwlock a_lock, held by thread {two.pid} (stuck-processes)\n"
        assert says in two.text(), two.text()
    with Pair("reader_circle", waiting=0, command=command) as two:
        states.until_all_wait([two.pid], 2)
        (circle,) = json.loads(stuck_whole("--json", two.pid))["deadlocks"]
        assert {t["tid"] for t in circle} >= {two.pid} and len(circle) == 2, circle


@test
def threads_that_let_each_other_go_on_are_no_deadlock_and_do_not_hang():
    for mode in "rally_pipes", "rally_sockets", "rally_threads", "rally_semaphores":
        with Pair(mode, waiting=0) as two:
            for _ in range(30):
                answer = json.loads(stuck_whole("--json", two.pid))
                assert answer["deadlocks"] == [], (mode, answer)
                assert not any(p["hangs"] for p in answer["processes"]), (mode, answer)


@test
def a_write_that_waits_for_its_second_part_is_not_cut_short():
    with Pair("partial", waiting=1) as two:
        write = states.calls([two.pid])
        text = stuck_whole(two.pid)
        assert f"thread {two.pid} (stuck-processes): waiting to write pipe" in text, text
        assert states.calls([two.pid]) == write, "the write has ended"
        with open(f"/proc/{two.pid}/fd/{int(write[two.pid].split()[1], 16) - 1}", "rb") as pipe:
            assert len(pipe.read(1 << 20)) == 1 << 20
        assert two.process.stdout.readline() == "whole\n"


@test
def a_timed_wait_for_a_condition_names_its_mutex_at_each_look():
    with subprocess.Popen([TIMED], stdout=subprocess.PIPE, text=True) as process:
        try:
            condition, mutex = process.stdout.readline().split()
            states.until_all_wait([process.pid], 2)
            text = stuck_whole(process.pid)
            assert f"waiting for condition variable {condition}, with mutex {mutex}\n" in text, (condition, mutex, text)
        finally:
            process.kill()


@test
def a_repeated_look_shows_what_has_changed():
    with Program() as program:
        looks = stuck_whole("--repeat=10ms", "--count=3", program.pid).split("process ")
        full = [look for look in looks if re.match(r"\d+ \([^)]*\): \d+ threads, stopped", look)]
        assert len(full) == 3, looks
        waiting = len(program.tids) - 1  # the spinning thread may be elsewhere each time
        for look in full[1:]:
            (same,) = re.findall(r"^    (\d+) as before$", look, re.M)
            assert int(same) >= waiting, look
        lines = stuck_whole("--json", "--repeat=10ms", "--count=2", program.pid).splitlines()
        assert len(lines) == 2 and all(json.loads(line)["processes"] for line in lines)
        program.goes_on()


def holds(looking, pid):
    """Stops the process that looks. Returns whether it holds the threads of the other process at
    that moment; if not, continues it."""
    os.kill(looking, signal.SIGSTOP)
    states.until(lambda: states.is_stopped(looking))
    if states.status(pid, "TracerPid") != "0":
        return True
    os.kill(looking, signal.SIGCONT)
    return False


@test
def the_program_goes_on_when_trail_is_killed():
    with Program() as program:
        looking = subprocess.Popen([TRAIL, "stuck", "--json", "--repeat=1ms", str(program.pid)], stdout=subprocess.DEVNULL)
        states.until(lambda: holds(looking.pid, program.pid))
        looking.kill()
        looking.wait()
        for tid in os.listdir(f"/proc/{program.pid}/task"):
            status = open(f"/proc/{program.pid}/task/{tid}/status").read()
            assert "\nTracerPid:\t0\n" in status, status
            assert not re.search(r"^State:\t[tT]", status, re.M), status
        program.goes_on()


MUSL = r"""
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t a_mu = PTHREAD_MUTEX_INITIALIZER;
static void *mutex(void *unused) { pthread_mutex_lock(&a_mu); return unused; }
int main(void)
{
    pthread_t thread;
    pthread_mutex_lock(&a_mu);
    pthread_create(&thread, NULL, mutex, NULL);
    return (int)read(0, &thread, 1);
}
"""


def waiting_threads(process, count):
    """Waits until the process has this many waiting threads."""
    states.until(lambda: len(tasks(process.pid)[1]) >= count)


def musl_program():
    if not shutil.which("musl-gcc"):
        raise Skip("no musl-gcc")
    program = os.path.join(WORK, "musl")
    subprocess.run(["musl-gcc", "-pthread", "-o", program, "-x", "c", "-"], input=MUSL, text=True, check=True)
    return program


@test
def a_plain_mutex_of_musl_has_no_holder():
    program = musl_program()
    with subprocess.Popen([program], stdin=subprocess.PIPE) as process:
        try:
            waiting_threads(process, 2)
            text = stuck_whole(process.pid)
            # musl stores EBUSY, 16, and a flag in the word, not a thread ID.
            assert "linked with musl" in text and "waiting for futex a_mu+0x4\n" in text, text
            assert "held by" not in text and "deadlock" not in text, text
            (found,) = json.loads(stuck_whole("--json", process.pid))["processes"]
            assert all("holder" not in t for t in found["threads"]), found
            assert found["note"].startswith("linked with musl"), found
        finally:
            process.kill()


@test
def a_program_started_through_musls_loader_is_no_static_one():
    program = musl_program()
    loader = re.search(r"interpreter: (\S+)\]", subprocess.check_output(["readelf", "-lW", program], text=True))[1]
    for command in ([program], [loader, program]):
        with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
            try:
                waiting_threads(process, 2)
                assert "linked with musl" in stuck_whole(process.pid)
                log = os.path.join(WORK, "sleeps")
                trace = [] if not shutil.which("strace") else ["strace", "-o", log, "-e", "trace=clock_nanosleep"]
                record = [*trace, TRAIL, "record", "-p", str(process.pid), "-o", os.path.join(WORK, "none.trace")]
                done = subprocess.run(record, capture_output=True, text=True, timeout=120, env=TRACED)
                assert done.returncode != 0 and f"process {process.pid} uses musl" in done.stderr, done
                # It does not wait for a list of libraries that will never exist.
                assert not trace or "nanosleep(" not in open(log).read(), open(log).read()
            finally:
                process.kill()


@test
def a_reader_that_goes_away_ends_it_quietly():
    for args in ((), ("--json",), ("--repeat=1ms",)):
        with Crowd(600) as pid:
            read, write = os.pipe()
            os.close(read)
            command = [TRAIL, "stuck", *args, str(pid)]
            done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, timeout=120)
            os.close(write)
            assert (done.returncode, done.stderr) == (-signal.SIGPIPE, ""), (args, done)


@test
def a_go_program_is_said_to_be_one():
    gofmt = shutil.which("gofmt") or "/usr/lib/go-1.19/bin/gofmt"
    if not os.path.exists(gofmt):
        raise Skip("no gofmt, which is a Go program")
    with subprocess.Popen([gofmt], stdin=subprocess.PIPE) as process:
        try:
            waiting_threads(process, 2)
            assert re.search(r"^    a Go program: its goroutines are not threads", stuck_whole(process.pid), re.M)
            (found,) = json.loads(stuck_whole("--json", process.pid))["processes"]
            assert found["note"].startswith("a Go program: its goroutines are not threads"), found
        finally:
            process.kill()


@test
def a_refusal_says_why():
    assert "no process 99999999" in stuck(99999999, code=3)
    assert "is not a process ID" in stuck("init", code=2)
    assert "no process given" in stuck(code=2)
    with Program() as program:
        ptrace = ctypes.CDLL(None, use_errno=True).ptrace
        assert ptrace(SEIZE, program.pid, None, None) == 0
        message = stuck(program.pid, code=3)
        assert f"traced by process {os.getpid()} " in message, message
        assert ptrace(INTERRUPT, program.pid, None, None) == 0
        os.waitpid(program.pid, 0x40000000)  # __WALL
        assert ptrace(17, program.pid, None, None) == 0  # PTRACE_DETACH
        program.goes_on()


@test
def a_filter_that_forbids_to_go_on_after_a_stop_ends_no_process():
    """The kernel continues a poll with a time limit by a system call of its own: restart_syscall(2)."""
    code = filters.CODE + f"""import select, sys
confine({filters.RESTART_SYSCALL})
print("filtered", flush=True)
poll = select.poll()
poll.register(sys.stdin)
sys.exit(poll.poll(3600000) != [(0, select.POLLHUP)])"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "filtered\n"
        states.until_all_wait([process.pid], 1)
        (thread,) = threads_of(json.loads(stuck("--json", process.pid)), process.pid).values()
        assert thread["wait_kind"] == "poll", thread
        process.stdin.close()
        assert process.wait() == 0, process.returncode


def timed_stack(look):
    """Returns the functions of the thread that sleeps."""
    (process,) = json.loads(look)["processes"]
    stacks = [[frame["function"] for frame in thread["stack"]] for thread in process["threads"]]
    return next(stack for stack in stacks if "sleep_with_room" in stack)


def stacks_in_container(all_have, one_has):
    """Returns the stack in a program with the container's filter, and in one with its own as well: each filter ends the
    process for these calls. Checks that both processes go on."""
    code = filters.CODE + f"""import os, subprocess, sys, time
def run():
    program = subprocess.Popen([{TIMED!r}], stdout=subprocess.PIPE)
    program.stdout.readline()
    while len(os.listdir(f"/proc/{{program.pid}}/task")) < 2 or any(
            open(f"/proc/{{program.pid}}/task/{{tid}}/stat").read().rsplit(")")[-1].split()[0] != "S" for tid in os.listdir(f"/proc/{{program.pid}}/task")):
        time.sleep(0.01)
    return program
confine(*{all_have!r})
program = run()
get, put = os.pipe()
child = os.fork()
if child == 0:
    confine(*{one_has!r})
    own = run()
    os.write(put, str(own.pid).encode())
    os._exit(own.wait() != -9)
own = int(os.read(get, 100))
for pid in program.pid, own:
    print(subprocess.run([{TRAIL!r}, "stuck", "--limit=100s", "--json", str(pid)], stdout=subprocess.PIPE, text=True).stdout.strip(), flush=True)
    os.kill(pid, 9)
statuses = program.wait(), os.waitpid(child, 0)[1]
assert statuses == (-9, 0), statuses"""
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    if "unshare failed" in done.stderr:
        raise Skip("no PID namespaces")
    assert done.returncode == 0, done.stderr
    return list(map(timed_stack, done.stdout.splitlines()))


@test
def the_filter_of_a_container_is_trails_own_too():
    """It is known what it allows: a thread that sleeps is stopped, and its stack is whole."""
    with subprocess.Popen([TIMED], stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        states.until_all_wait([process.pid], 2)
        whole = timed_stack(stuck_whole("--json", process.pid))
        process.kill()
    same, more = stacks_in_container((), (filters.RESTART_SYSCALL,))
    assert "main" in whole and same == whole and more == whole[: len(more)], (whole, same, more)
    none, more = stacks_in_container((filters.RESTART_SYSCALL,), ())
    assert none == whole[: len(none)] and more == whole[: len(more)], (whole, none, more)


@test
def a_stopped_process_stays_stopped():
    with Program() as program:
        os.kill(program.pid, signal.SIGSTOP)
        states.until(lambda: all(map(states.is_stopped, states.tids(program.pid))))
        threads = threads_of(json.loads(stuck_whole("--json", program.pid)), program.pid)
        assert {t["state"] for t in threads.values()} == {"stopped"}, threads
        assert "mutex" in [f["function"] for f in threads["mutex"]["stack"]], threads["mutex"]
        assert states.is_stopped(program.pid)
        os.kill(program.pid, signal.SIGCONT)


sys.exit(tap.main())
