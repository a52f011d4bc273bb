"""'trail record -p' on programs that are already running (running.c): the trace, and that they continue as before. TAP.

usage: running.py TRAIL PROGRAM LIBRARY STATIC
"""

import ctypes
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import filters
import states
import tap
import work
from tap import Skip, test

TRAIL, PROGRAM, LIBRARY, STATIC = (os.path.abspath(a) for a in sys.argv[1:5])
WORK = work.folder("running")
PERCENT = int(os.environ.get("TRAIL_TEST_COUNT", "100"))
# ptrace(2)
TRACEME, DETACH, SYSCALL, SEIZE, INTERRUPT = 0, 17, 24, 0x4206, 0x4207
PTRACE = ctypes.CDLL(None, use_errno=True).ptrace
PTRACE.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]


def of_threads(pid, name):
    """Returns the contents of a file of each thread; threads may end meanwhile."""
    contents = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            contents.append(open(f"/proc/{pid}/task/{tid}/{name}").read())
        except (FileNotFoundError, ProcessLookupError):
            pass
    return contents


class Running:
    """The program, while it waits for a line."""

    def __init__(self, *args, program=PROGRAM, **options):
        self.args, self.program, self.options = args, program, options

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.program, *self.args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **self.options
        )
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"
        self.wait_for_threads()
        return self

    def wait_for_threads(self):
        """Waits until all threads wait, twice in the same calls, or until there are many threads,
        which may never all wait at once."""
        before = None
        while self.args != ("owned",):  # one of its threads never waits; the program is ready when the others wait
            calls = of_threads(self.pid, "syscall")
            if len(calls) > 8 or (calls == before and "running\n" not in calls):
                return
            before = calls
            time.sleep(states.STEP_S)

    def goes_on(self):
        out, err = self.process.communicate("x", timeout=120)
        assert (self.process.returncode, out.split(",")[0].strip()) == (0, "done"), (self.process.returncode, out, err[-500:])

    def __exit__(self, *unused):
        self.process.kill()
        self.process.wait()


def record(pid, *args, code=0, name="running.trace"):
    path = os.path.join(WORK, name)
    done = subprocess.run([TRAIL, "record", "-p", str(pid), "-o", path, *args], capture_output=True, text=True, timeout=120)
    if "ptrace_scope" in done.stderr and code == 0:
        raise Skip(done.stderr.strip())
    assert done.returncode == code, (done.returncode, done.stderr)
    return path if code == 0 else done.stderr


def trail(*args):
    done = subprocess.run([TRAIL, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def wrapped(pid, module=""):
    """Counts the words in the process's modules, or in one, that are addresses in the recorder's
    code. Skips the recorder's own modules, and its areas: stacks that threads leave there
    contain such addresses, too."""
    low = high = 0
    found, parts = 0, []
    for line in open(f"/proc/{pid}/maps"):
        fields = line.split()
        start, end = (int(x, 16) for x in fields[0].split("-"))
        path = fields[5] if len(fields) > 5 else ""
        if "libtrail-preload" in path and "x" in fields[1]:
            low, high = start, end
        elif path.startswith("/") and path.endswith(module) and not path.startswith("/memfd:") and "libtrail" not in path and "ld-linux" not in path and fields[1][0] == "r" and "x" not in fields[1]:
            parts.append((start, end))
    with open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for start, end in parts:
            try:
                memory.seek(start)
                words = memory.read(end - start)
            except OSError:  # unmapped in the meantime
                continue
            found += sum(low <= w < high for (w,) in struct.iter_unpack("=Q", words[: len(words) // 8 * 8]))
    return found if high else -1


def pages_of_code(pid):
    """Returns the code size of the recorder's library in the process, and how much of it is resident, in KiB."""
    parts = re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", open(f"/proc/{pid}/smaps").read(), flags=re.M)
    (code,) = (part for part in parts if re.match(r"\S+ r-xp .*libtrail-preload", part))
    return tuple(int(re.search(rf"^{name}:\s+(\d+) kB", code, re.M).group(1)) for name in ("Size", "Rss"))


def as_before(program):
    for status in of_threads(program.pid, "status"):
        assert "\nTracerPid:\t0\n" in status, status
        assert not re.search(r"^State:\t[tT]", status, re.M), status


def printed(path):
    """Returns the text of a trace that is still being written."""
    return subprocess.run([TRAIL, "print", path], capture_output=True, text=True, timeout=120).stdout


def check_owners(path):
    """The holders of locks taken before the recording, which are read from the locks."""
    texts = [f["text"] for f in json.loads(trail("summary", "--json", path))["findings"]]
    # The start function is unknown if the thread got no CPU on which it could be stopped to read
    # its stack.
    for waits, lock, owner in ("wants_spun", "mutex spun_mutex", "spins"), ("wants_written", "rwlock written_lock", "writes"):
        pattern = rf"{waits} \(\d+\) had waited for {lock} .* It is held by thread ({owner}|unknown) \(\d+\), which took it before the recording"
        assert any(re.search(pattern, text) for text in texts), (pattern, texts)
    (circle,) = [text for text in texts if text.startswith("Deadlock")]
    for owner, has, wants in ("takes_first", "first", "second"), ("takes_second", "second", "first"):
        assert re.search(rf"{owner} \(\d+\) holds mutex {has}_mutex and waits for mutex {wants}_mutex", circle), circle


def record_owners(end):
    """Records the locks and their owners. Calls `end` to end the recording once it has all waits."""
    path = os.path.join(WORK, "owners.trace")
    if os.path.exists(path):
        os.unlink(path)
    with Running("owned") as program:
        recorder = subprocess.Popen([TRAIL, "record", "-q", "-p", str(program.pid), "-o", path], stderr=subprocess.PIPE, text=True)
        # Waits are written after 200 ms; by then the owners have been read.
        states.until(lambda: recorder.poll() is not None or 'wait: "mutex spun_mutex' in printed(path))
        end(program, recorder)
        err = recorder.communicate(timeout=60)[1]
    if "ptrace_scope" in err:
        raise Skip(err.strip())
    assert recorder.returncode == 0, err
    check_owners(path)


@test
def owners_of_locks_that_were_taken_before_the_recording_are_known():
    record_owners(lambda program, recorder: recorder.send_signal(signal.SIGINT))


@test
def also_if_the_program_is_killed():
    record_owners(lambda program, recorder: program.process.kill())


@test
def what_waits_already_is_shown_with_its_lock_and_its_stack():
    with Running("waits") as program:
        path = record(program.pid, "--duration=300ms")
        assert "good" in trail("check", path)
        events = [json.loads(line) for line in trail("print", "--format=jsonl", "--words=go", path).splitlines()]
        text = trail("print", path)
        for what in ("mutex held_mutex", "condition never_signalled", "semaphore never_posted", "read pipe:"):
            assert f'"{what}' in text, (what, text)
        for function in ("wait_mutex", "wait_condition", "wait_semaphore", "wait_pipe", "wait_for_line"):
            assert re.search(rf"blocks: .* at {function} ", text), (function, text)
        locks = json.loads(trail("locks", "--json", path))
        assert events and sum(lock["unfinished_ns"] > 250_000_000 for lock in locks["locks"]) == 3, locks
        as_before(program)
        program.goes_on()


@test
def the_code_that_is_not_called_any_more_takes_no_memory():
    """Only the code that leaves remains: the kernel maps 64 KiB around each page that is used."""
    with Running("waits") as program:
        record(program.pid, "-q", "--duration=10ms")
        size, resident = pages_of_code(program.pid)
        assert 0 < resident <= size * 3 // 4, (size, resident)
        program.goes_on()


def attached(pid, path, *options):
    """A recorder that records the process from now on."""
    recorder = subprocess.Popen([TRAIL, "record", *options, "-p", str(pid), "-o", path], stderr=subprocess.PIPE, text=True)
    states.until(lambda: recorder.poll() is not None or wrapped(pid) > 0)
    if recorder.poll() is not None:
        message = recorder.stderr.read()
        assert "ptrace_scope" in message, message
        raise Skip("ptrace_scope")
    return recorder


@test
def waits_that_end_in_the_recording_end_in_the_trace():
    with Running("waits") as program:
        recorder = attached(program.pid, os.path.join(WORK, "ends.trace"))
        # The thread that joins the recording for all is back in its wait.
        program.wait_for_threads()
        program.goes_on()
        assert recorder.wait(60) == 0, recorder.stderr.read()
        path = os.path.join(WORK, "ends.trace")
        text = trail("print", path)
        assert "good" in trail("check", path)
        # main sends the signal and posts the semaphore; then each thread sleeps and ends.
        assert len(re.findall(r"thread 1 .* thread \d+ made ready by thread 1, .* at run_waits ", text)) == 2, text
        assert len(re.findall(r"thread \d+ .* blocks: sleep .* at rest ", text)) == 4, text
        assert len(re.findall(r"thread \d+ .* ends$", text, re.M)) == 5, text


@test
def calls_of_the_program_are_not_disturbed():
    with Running("calls") as program:
        for _ in range(20 * PERCENT // 100 or 1):
            path = record(program.pid, "-q", "--duration=20ms")
            assert "good" in trail("check", path)
        as_before(program)
        assert wrapped(program.pid) == 0, wrapped(program.pid)
        program.goes_on()


@test
def a_thread_that_makes_no_recorded_call_ends():
    """Without the kernel's context switches, the recorder looks for it."""
    path = os.path.join(WORK, "leaves.trace")
    if os.path.exists(path):
        os.unlink(path)
    with Running("leaves") as program:
        recorder = attached(program.pid, path, "-q", "--switches=off")
        program.process.stdin.write("x")
        program.process.stdin.flush()
        # The main thread waits 100 ms each time: with these waits, the recorder has had the time to look.
        ended = re.compile(r"(thread \d+) created: leaves$.* \1 .* ends$", re.M | re.S)
        states.until(lambda: ended.search(text := printed(path)) or text.count(" run_leaves ") > 100)
        assert ended.search(printed(path)), printed(path)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(60) == 0, recorder.stderr.read()
        program.goes_on()


@test
def a_busy_program_is_recorded_again_and_again():
    with Running("load", "60") as program:
        sizes = []
        for _ in range(20 * PERCENT // 100 or 1):
            path = record(program.pid, "-q", "--duration=20ms")
            assert "good" in trail("check", path)
            sizes.append(int(re.search(r"^RssShmem:\s+(\d+)", open(f"/proc/{program.pid}/status").read(), re.M).group(1)))
        # Memory left over from the last recordings at most, for threads that were
        # about to begin.
        assert sizes[-1] <= 2048, sizes
        assert wrapped(program.pid) == 0, wrapped(program.pid)
        program.goes_on()


@test
def a_library_that_is_loaded_meanwhile_is_recorded():
    with Running("library", LIBRARY) as program:
        path = os.path.join(WORK, "library.trace")
        recorder = attached(program.pid, path)
        program.process.stdin.write("x")
        program.process.stdin.flush()
        states.until(lambda: wrapped(program.pid, os.path.basename(LIBRARY)) > 0)
        # From here on, two calls begin and end.
        calls = int(program.process.stderr.readline())
        states.until(lambda: int(program.process.stderr.readline()) >= calls + 3)
        recorder.send_signal(signal.SIGINT)
        assert recorder.wait(60) == 0, recorder.stderr.read()
        text = trail("print", "--stacks", path)
        assert "library_waits" in text, text
        assert wrapped(program.pid) == 0, wrapped(program.pid)
        program.goes_on()


def kill_recorder_when(is_there, pid):
    """Single-steps a recorder by system call until `is_there` is true, and then kills it."""
    command = [TRAIL, "record", "-q", "-p", str(pid), "-o", os.path.join(WORK, "killed.trace")]
    recorder = subprocess.Popen(command, preexec_fn=lambda: PTRACE(TRACEME, 0, None, None))
    signal_to_pass = 0
    while True:
        _, status = os.waitpid(recorder.pid, 0)
        assert os.WIFSTOPPED(status), f"it ends first, with status {os.waitstatus_to_exitcode(status)}"
        if is_there():
            break
        stop = os.WSTOPSIG(status)
        signal_to_pass = 0 if stop == signal.SIGTRAP else stop
        assert PTRACE(SYSCALL, recorder.pid, None, signal_to_pass) == 0
    recorder.kill()
    recorder.wait()


@test
def a_recorder_that_was_killed_and_not_waited_for_records_no_more():
    with Running("calls") as program:
        record(program.pid, "-q", "--duration=10ms")  # skips if recording is not permitted
        recorder = subprocess.Popen([TRAIL, "record", "-q", "-p", str(program.pid), "-o", os.path.join(WORK, "zombie.trace")])
        states.until(lambda: recorder.poll() is not None or wrapped(program.pid) > 0)
        assert recorder.poll() is None, recorder.returncode
        refused = record(program.pid, "-q", code=2, name="second.trace")
        assert "being recorded by another" in refused, refused
        recorder.kill()
        states.until(lambda: states.status(recorder.pid, "State")[:1] == "Z")
        record(program.pid, "-q", "--duration=10ms")
        assert wrapped(program.pid) == 0, wrapped(program.pid)
        recorder.wait()


@test
def the_program_goes_on_when_the_recorder_is_killed():
    """tests/hammer/kills.py does this at arbitrary times."""
    with Running("calls") as program:
        record(program.pid, "-q", "--duration=10ms")  # skips if recording is not permitted
        # Any thread will do: it is held until the recorder has handed out memory, which takes
        # several system calls.
        kill_recorder_when(lambda: any("\nTracerPid:\t0\n" not in text for text in of_threads(program.pid, "status")), program.pid)
        # No --duration: a short recording may be over when it is stopped.
        recorder = subprocess.Popen([TRAIL, "record", "-q", "-p", str(program.pid), "-o", os.path.join(WORK, "killed.trace")])
        states.until(lambda: recorder.poll() is not None or wrapped(program.pid) > 0)
        assert recorder.poll() is None, recorder.returncode
        recorder.kill()
        recorder.wait()
        as_before(program)
        record(program.pid, "-q", "--duration=10ms")
        assert wrapped(program.pid) == 0, wrapped(program.pid)
        program.process.stdin.write("x")
        out, err = program.process.communicate(timeout=120)
        # Only a failure with EINTR is acceptable.
        assert program.process.returncode in (0, 1) and "done" in out, (program.process.returncode, out)
        assert all("Interrupted" in line for line in err.splitlines()), err


@test
def a_program_that_hardly_gets_a_processor_is_not_left_stopped():
    """Its threads do not stop in time: this is not a refusal, and none stops later."""
    cpu = min(os.sched_getaffinity(0))
    with Running("waits") as program:
        for tid in os.listdir(f"/proc/{program.pid}/task"):
            os.sched_setaffinity(int(tid), {cpu})
            os.sched_setscheduler(int(tid), os.SCHED_IDLE, os.sched_param(0))
        busy = [
            subprocess.Popen([sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"])
            for _ in range(3)
        ]
        try:
            done = subprocess.run(
                [TRAIL, "record", "-q", "-p", str(program.pid), "-o", os.path.join(WORK, "idle.trace"), "--duration=10ms"],
                capture_output=True, text=True, timeout=120,
            )
        finally:
            for one in busy:
                one.kill()
                one.wait()
        if "ptrace_scope" in done.stderr:
            raise Skip(done.stderr.strip())
        # A call within the program that took too long ends later by itself.
        late = "has not returned within 10 s" in done.stderr
        assert done.returncode == 0 or late or "no thread of process" in done.stderr, done.stderr
        if not late:
            as_before(program)
        program.goes_on()


@test
def a_refusal_says_why():
    assert "no process 99999999" in record(99999999, code=3)
    assert "is not a process ID" in record("init", code=2)
    with Running("waits") as program:
        assert "--heap" in record(program.pid, "--heap", code=2)
        os.kill(program.pid, signal.SIGSTOP)
        states.until(lambda: states.is_stopped(program.pid))
        assert "is stopped" in record(program.pid, code=2)
        os.kill(program.pid, signal.SIGCONT)
        if PTRACE(SEIZE, program.pid, None, None) == 0:
            assert f"traced by process {os.getpid()} " in record(program.pid, code=3)
            PTRACE(INTERRUPT, program.pid, None, None)
            os.waitpid(program.pid, 0x40000000)
            assert PTRACE(DETACH, program.pid, None, None) == 0
        program.goes_on()
    if os.path.exists(STATIC):
        with Running("waits", program=STATIC) as program:
            message = record(program.pid, code=2)
            assert "statically" in message and "trail stuck" in message and "perf sched record" in message, message
            program.goes_on()


@test
def a_filter_of_system_calls_is_a_reason_to_refuse():
    """It could end the process when the recorder's library is loaded. This one allows all calls."""
    code = filters.CODE + """confine()
print("filtered", flush=True)
input()"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "filtered\n"
    message = record(process.pid, "-q", "--duration=10ms", code=2)
    assert f"process {process.pid} has a seccomp filter" in message, message
    process.communicate("\n")
    assert process.returncode == 0, process.returncode


@test
def a_filter_that_is_installed_meanwhile_keeps_the_recorder_out():
    """It ends the process for calls with which the library would leave, and with which a sleep goes on after a stop."""
    code = filters.CODE + f"""print("ready", flush=True)
input()
confine({filters.RESTART_SYSCALL}, {filters.MPROTECT})
print("filtered", flush=True)
input()"""
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    recorder = attached(process.pid, os.path.join(WORK, "filtered.trace"))
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "filtered\n"
    recorder.send_signal(signal.SIGINT)
    message = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 2 and "has installed a seccomp filter" in message, (recorder.returncode, message)
    trail("check", "-q", os.path.join(WORK, "filtered.trace"))
    process.communicate("\n")
    assert process.returncode == 0, process.returncode


@test
def a_trace_that_cannot_be_written_ends_the_recording():
    with Running("waits") as program:
        record(program.pid, "-q", "--duration=10ms")  # skips if recording is not permitted
        message = record(program.pid, "-q", "--duration=10ms", code=3, name="nowhere/out.trace")
        assert message.count("trail: ") == 1 and "nowhere/out.trace: No such file" in message, message
        program.goes_on()
    # Nor is a program that is started said not to have loaded the recorder.
    started = subprocess.run([TRAIL, "record", "-o", os.path.join(WORK, "nowhere", "out.trace"), "true"], capture_output=True, text=True, timeout=120)
    assert started.returncode == 3 and started.stderr.count("trail: ") == 1, started


@test
def a_process_whose_main_thread_has_ended_is_not_called_ended():
    # The number of exit(2), which ends only the calling thread.
    code = f"""import ctypes, os, threading
threading.Thread(target=lambda: os._exit(7 if os.read(0, 1) == b"x" else 1)).start()
ctypes.CDLL(None).syscall({60 if os.uname().machine == "x86_64" else 93}, 0)"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as program:
        states.until(lambda: states.status(program.pid, "State").startswith("Z"))
        assert f"the main thread of process {program.pid} has ended" in record(program.pid, code=2)
        program.communicate(b"x")
        assert program.returncode == 7, program.returncode


@test
def a_limit_of_memory_is_named():
    with Running("waits") as program:
        now = int(states.status(program.pid, "VmSize").split()[0]) << 10
        resource.prlimit(program.pid, resource.RLIMIT_AS, (now + (8 << 20), resource.RLIM_INFINITY))
        assert "its address space is limited" in record(program.pid, code=2)
        program.goes_on()


@test
def another_mapping_of_the_c_library_is_not_taken_for_it():
    """Neither a file mapped for reading, nor the C library of another namespace (dlmopen)."""
    with Running("mapped") as program:
        path = record(program.pid, "--duration=20ms")
        assert "good" in trail("check", path)
        as_before(program)
        program.goes_on()


@test
def a_c_library_that_another_tool_has_changed_is_not_called():
    with Running("changed") as program:
        assert "differs from the file" in record(program.pid, code=2)
        program.goes_on()


@test
def a_c_library_that_was_replaced_on_disk_is_the_old_one():
    """Its file can no longer be opened by name, only through its mapping."""
    libc = next(line.split()[5] for line in open("/proc/self/maps") if "/libc.so.6" in line)
    folder = os.path.join(WORK, "libraries")
    os.mkdir(folder)
    copy = shutil.copy(libc, folder)
    with Running("waits", env={**os.environ, "LD_LIBRARY_PATH": folder}) as program:
        assert copy in open(f"/proc/{program.pid}/maps").read()
        shutil.copy(PROGRAM, copy + ".new")
        os.rename(copy + ".new", copy)
        first = os.listdir(f"/proc/{program.pid}/map_files")[0]
        if os.access(f"/proc/{program.pid}/map_files/{first}", os.R_OK):
            assert "good" in trail("check", record(program.pid, "--duration=20ms"))
        else:
            assert "has been replaced" in record(program.pid, code=2)
        program.goes_on()


@test
def a_program_that_executes_another_goes_on():
    """The recorder's findings may be outdated at its next step."""
    for _ in range(20 * PERCENT // 100 or 1):
        program = subprocess.Popen([PROGRAM, "executes", "50"], stdout=subprocess.PIPE, text=True)
        done = subprocess.run(
            [TRAIL, "record", "-q", "-p", str(program.pid), "-o", os.path.join(WORK, "executes.trace"), "--duration=10ms"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        out, _ = program.communicate(timeout=120)
        assert (out, program.returncode) == ("done\n", 0), (program.returncode, out, done.stderr)
        assert done.returncode in (0, 2, 3), (done.returncode, done.stderr)


@test
def a_simulator_is_refused_by_name():
    for name in "valgrind", "qemu-x86_64":
        if not shutil.which(name):
            continue
        # Not PROGRAM, which may be built with a sanitizer.
        program = subprocess.Popen([shutil.which(name), shutil.which("cat")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        program.stdin.write("ready\n")
        program.stdin.flush()
        assert program.stdout.readline() == "ready\n"
        message = record(program.pid, code=2)
        assert f"runs under {name.split('-')[0]}" in message, message
        assert program.communicate()[0] == "" and program.returncode == 0


@test
def a_process_that_was_recorded_from_its_start_is_refused():
    path = os.path.join(WORK, "start.trace")
    recorder = subprocess.Popen([TRAIL, "record", "-q", "-o", path, "--", PROGRAM, "waits"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert recorder.stdout.readline() == "ready\n"
    (child,) = states.children(recorder.pid)
    done = subprocess.run([TRAIL, "record", "-p", str(child), "-o", path + "2", "--duration=10ms"], capture_output=True, text=True, timeout=60)
    out, err = recorder.communicate("x", timeout=60)
    assert out == "done\n" and recorder.returncode == 0, (out, err)
    if "ptrace_scope" in done.stderr:
        raise Skip(done.stderr)
    assert done.returncode == 2 and "started by 'trail record'" in done.stderr, done.stderr


sys.exit(tap.main())
