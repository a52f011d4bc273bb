#!/usr/bin/env python3
"""`trail record` of programs that become several processes, or other users. Prints TAP.

usage: children.py TRAIL CHILDREN; the program is that of children.c
"""

import csv
import glob
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import Skip, main, test
import nobody
import work
from recorded import Trace, step
from states import until

# Some children change to another user, and execute the program again.
TRAIL, CHILDREN = nobody.copies(*(os.path.abspath(a) for a in sys.argv[1:3]))
ENV = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "TRAIL_SHM")}
# Keep AddressSanitizer from retaining freed memory: the recorder's memory is measured.
ENV["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0:thread_local_quarantine_size_kb=0"
# With UTF-8, microseconds are printed as µs: two bytes in one column.
ENV["LC_ALL"] = "C.UTF-8"
LIMIT = 120  # s, in case something hangs
WORK = work.folder("children")
TID_LIMIT = 1 << 22  # Linux's PID_MAX_LIMIT
# The number of the system call.
CLONE = 56 if platform.machine() == "x86_64" else 220
# Exit statuses of children.c: success, and missing privileges.
STATUS, NO_RIGHT = 5, 77


def fresh():
    """Returns a new folder."""
    folder = os.path.join(WORK, str(len(os.listdir(WORK))))
    os.mkdir(folder)
    return folder


class Recording:
    """Context manager: `trail record --children` in a folder of its own."""

    def __init__(self, *program, options=()):
        self.folder = fresh()
        self.path = os.path.join(self.folder, "t.trace")
        self.process = subprocess.Popen(
            [TRAIL, "record", "--children", *options, "-o", self.path, "--", CHILDREN, *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENV,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def end(self, told=None):
        out, err = self.process.communicate(told, timeout=LIMIT)
        self.out, self.err = out.decode(), err.decode()
        with open(os.path.join(self.folder, "messages"), "w") as f:
            f.write(self.err)
        return self.process.returncode

    def waits(self):
        """How often the processes waited in wait_here. Checks all traces."""
        count = 0
        for path in glob.glob(os.path.join(self.folder, "*.trace")):
            check = subprocess.run([TRAIL, "check", path], capture_output=True, timeout=LIMIT, env=ENV)
            assert check.returncode == 0, (path, check.stdout, check.stderr, self.err)
            count += len(Trace(TRAIL, path, ENV).in_function("wait_here"))
        return count


def summary(path):
    done = subprocess.run([TRAIL, "summary", "--json", path], capture_output=True, env=ENV, timeout=LIMIT)
    return json.loads(done.stdout) if done.returncode == 0 else {}


def has_ended(path):
    """Whether a trace has its account, which is written last."""
    return "recording" in summary(path)


def parent(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[1])


def command_line(pid):
    with open(f"/proc/{pid}/cmdline") as f:
        return f.read()


@test
def processes_that_begin_after_the_recording_has_ended_wait_for_nothing():
    # A process that waits to be recorded sleeps 2,500 times.
    with Recording("forks", "60", options=["--max-size=1"]) as recording:
        while not has_ended(recording.path):
            time.sleep(0.01)
        assert recording.end(b"\n") == STATUS, recording.err
        assert 0 <= int(recording.out) < 100, recording.out


BATCH = 50
DELAY = 0.2  # s; the next step writes all older events


def memory(pid):
    """Returns the resident memory of a process, in kB."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def kept_of_a_child(*options):
    """How much memory the recorder keeps per child, in kB. Each batch of children is in the trace
    before the next begins."""
    batches, usual, held = 16, 6, []
    with Recording("forks", str(BATCH), options=["-q", *options]) as recording:
        for _ in range(batches):
            recording.process.stdin.write(b"\n")
            recording.process.stdin.flush()
            assert recording.process.stdout.readline()
            time.sleep(DELAY)
            step(recording.process.pid)
            held.append(memory(recording.process.pid))
        assert recording.end() == STATUS, recording.err
        traces = glob.glob(os.path.join(recording.folder, "*.trace"))
        assert len(traces) == (batches * BATCH + 1 if "--split" in options else 1), len(traces)
    # The memory used by the first batches is reused.
    return (held[-1] - held[usual - 1]) / (BATCH * (batches - usual))


@test
def of_a_child_that_has_ended_the_recorder_keeps_little():
    # It was once 140 kB per child.
    kept = kept_of_a_child("--split")
    assert kept < 20, kept


@test
def nor_does_a_trace_of_all_keep_much():
    kept = kept_of_a_child()
    assert kept < 40, kept


@test
def a_child_begins_that_was_forked_while_other_threads_had_the_loaders_locks():
    with Recording("loads", options=["-q"]) as recording:
        assert recording.end() == STATUS, recording.err


@test
def a_program_that_becomes_a_daemon_is_recorded_until_it_ends():
    with Recording("daemon") as recording:
        assert recording.end() == STATUS, recording.err
        assert recording.waits() == 1, recording.err


@test
def a_signal_ends_the_recording_of_a_daemon_and_not_the_daemon():
    with Recording("stays") as recording:
        pid = int(recording.process.stdout.readline())
        try:
            # When the child has another parent, the program has ended; one step later the recorder
            # has noticed it.
            while os.path.basename(CHILDREN) in command_line(parent(pid)):
                time.sleep(0.01)
            step(recording.process.pid)
            recording.process.send_signal(signal.SIGINT)
            recording.process.wait(LIMIT)
            assert os.path.basename(CHILDREN) in command_line(pid), "it was ended, too"
        finally:
            os.kill(pid, signal.SIGKILL)
        assert recording.end() == STATUS, recording.err
        assert recording.waits() == 0, recording.err



def is_recorded(word):
    """Checks a program that may not open the memory shared by the recorder."""
    with Recording(word) as recording:
        code = recording.end()
        here = recording.out.strip()
        if here:
            os.rmdir(here)
        if code == NO_RIGHT:
            raise Skip("not root")
        assert code == STATUS, recording.err
        assert recording.waits() == 1, recording.err


@test
def a_child_of_what_sees_no_proc_is_recorded():
    is_recorded("root-forks")


@test
def a_child_of_what_has_become_another_user_is_recorded():
    is_recorded("user-forks")


@test
def what_is_executed_as_another_user_is_recorded():
    is_recorded("user-executes")


@test
def what_is_executed_without_the_recorder_is_not_taken_for_the_program():
    with Recording("executes") as recording:
        pid = int(recording.process.stdout.readline())
        while command_line(pid) != "cat\0":
            time.sleep(0.01)
        step(recording.process.pid)
        assert recording.end(b"more\n") == 0, recording.err
        assert recording.out == "more\n"
        assert recording.waits() == 1, recording.err
        assert "not recorded: the program executed" in recording.err, recording.err


@test
def a_process_with_the_number_of_one_that_has_ended_is_another():
    program = """
import os, time
numbers = []
while numbers.count(1000) < 15:
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write("999")
    if os.fork() == 0:
        time.sleep(0.005)
        os._exit(0)
    numbers.append(os.wait()[0])
print(len(numbers))
"""
    path = os.path.join(fresh(), "t.trace")
    # In a namespace of its own, so that no other process gets these numbers.
    alone = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*alone, "sh", "-c", "echo 999 > /proc/sys/kernel/ns_last_pid"], capture_output=True).returncode != 0:
        raise Skip("the numbers of processes cannot be chosen here")
    done = subprocess.run([*alone, TRAIL, "record", "--children", "-o", path, "--", sys.executable, "-c", program],
                          capture_output=True, text=True, env=ENV, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    # The recorder's own threads may take the PID in between; then the child gets the next one.
    rows = [line for line in done.stderr.splitlines() if re.search(r" 10\d\d +1 ", line)]
    too_fast = re.search(r"(\d+) process(?:es were| was) not recorded", done.stderr)
    assert len(rows) + (int(too_fast[1]) if too_fast else 0) == int(done.stdout), done.stdout + done.stderr


def sleepers(count, *options):
    """Records a shell that runs `count` sleeps one after the other. Returns the rows of its table,
    its files, and its trace."""
    folder = fresh()
    path = os.path.join(folder, "t.trace")
    script = f"i=0; while [ $i -lt {count} ]; do sleep 0.15; i=$((i+1)); done"
    done = subprocess.run(
        [TRAIL, "record", "--children", *options, "-o", path, "--", "sh", "-c", script], capture_output=True, text=True, env=ENV, timeout=LIMIT
    )
    assert done.returncode == 0, done.stderr
    table = done.stderr[done.stderr.index("  process ") :].splitlines()
    rows = [line for line in table[1:] if re.search(r" +\d+ +1 +[\d.]+ (ms|s) ", line)]
    assert len(rows) == count + 1, done.stderr
    assert any("sleep 0.15" in row for row in rows) and any("sh -c" in row for row in rows), done.stderr
    # Each figure ends where its title ends.
    for title in (" time", " CPU", " recorder"):
        end = table[0].index(title) + len(title)
        assert all(re.search(r"\d (ns|µs|ms|s)$", row[:end]) and row[end : end + 1].strip() == "" for row in rows), table
    # Only the program has a summary of its own; with one trace, all processes share one.
    assert done.stderr.count("at once)") == 1, done.stderr
    trace = Trace(TRAIL, path, ENV)
    trace.processes = summary(path)["processes"]
    # The figures in the table are also in the trace.
    for process in trace.processes if "--split" not in options else []:
        # Figures may look like a PID: " 349 us".
        (row,) = [row.split() for row in rows if re.search(rf" {process['pid']} +1 +[\d.]+ (ms|s) ", row)]
        for at, key in ((-5, "cpu_ns"), (-1, "recorder_ns")):
            printed = float(row[at - 1]) * {"µs": 1e3, "ms": 1e6, "s": 1e9}[row[at]]
            assert abs(process[key] - printed) <= printed * 0.006, (row, process)
    return rows, sorted(os.listdir(folder)), trace


@test
def several_processes_are_one_trace_and_a_table_with_their_titles():
    rows, files, trace = sleepers(8)
    assert files == ["t.trace"], files
    # Threads are named after their processes, with the PID.
    names = sorted(thread.created_as for thread in trace.threads)
    pids = [int(re.search(r" (\d+) +1 +[\d.]+ (ms|s) ", row)[1]) for row in rows]
    assert len(names) == len(rows), (names, rows)
    for name in names:
        words = re.fullmatch(r"(sleep|sh) \((\d+)\): main", name)
        assert words and int(words[2]) in pids, (name, pids)
    assert sum("sleep" in name for name in names) == len(rows) - 1, names


@test
def the_program_of_a_trace_is_the_process_that_began_first():
    path = os.path.join(fresh(), "t.trace")
    subprocess.run([TRAIL, "record", "-q", "--children", "-o", path, "--", "sh", "-c", "sleep 0.01; sleep 0.02; true"], check=True, env=ENV, timeout=LIMIT)
    done = subprocess.run([TRAIL, "export", "--to=csv", "--table=traces", path], check=True, capture_output=True, text=True, env=ENV)
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert row["program"].startswith("sh -c sleep 0.01; "), row


@test
def a_process_without_a_command_line_is_called_by_its_programs_file():
    # For example a process that ends before the recorder looks at it.
    path = os.path.join(fresh(), "t.trace")
    script = "exec -a '' sleep 0.2"
    done = subprocess.run([TRAIL, "record", "--children", "-o", path, "--", "bash", "-c", script],
                          check=True, capture_output=True, text=True, env=ENV, timeout=LIMIT)
    names = sorted(thread.created_as for thread in Trace(TRAIL, path, ENV).threads)
    assert names and all(re.fullmatch(r"sleep \(\d+\): main", name) for name in names), (names, done.stderr)


@test
def a_thread_has_its_tid_in_each_program_that_it_executes():
    # Both have the same M. A number above all TIDs would mean that the TID was reused by another
    # thread.
    path = os.path.join(fresh(), "t.trace")
    script = "for i in $(seq 200); do /bin/true; done"
    subprocess.run([TRAIL, "record", "-q", "--children", "-o", path, "--", "sh", "-c", script], check=True, env=ENV, timeout=LIMIT)
    done = subprocess.run([TRAIL, "threads", "--json", path], check=True, capture_output=True, env=ENV)
    tids = [thread["id"] for thread in json.loads(done.stdout)["threads"]]
    assert tids and max(tids) < TID_LIMIT, max(tids)


@test
def the_summary_of_one_trace_has_a_row_for_each_process():
    rows, files, trace = sleepers(8)
    pids = sorted(int(re.search(r" (\d+) +1 +[\d.]+ (ms|s) ", row)[1]) for row in rows)
    assert sorted(p["pid"] for p in trace.processes) == pids, (trace.processes, rows)
    assert all(p["threads"] == 1 and p["running_ns"] > 0 for p in trace.processes), trace.processes
    asleep = [p for p in trace.processes if p["name"] == "sleep"]
    # Each sleeps for 150 ms, but sleep(1) uses another clock than the trace.
    assert len(asleep) == len(rows) - 1 and min(p["waiting_ns"] for p in asleep) >= 149_000_000, trace.processes
    assert [p["name"] for p in trace.processes if p not in asleep] == ["sh"], trace.processes
    running = [p["running_ns"] for p in trace.processes]
    assert running == sorted(running, reverse=True), running


@test
def the_slots_of_one_trace_are_what_runs_at_once_in_all_processes():
    rows, files, trace = sleepers(8)
    # The shell waits for each sleep, so at most two processes run at once, when one begins or ends.
    assert len(trace.procs) <= 2, trace.procs
    assert len([t for t in trace.threads if any(w.reason == "sleep" for w in t.waits)]) >= len(rows) - 1


def record(*command, options=()):
    """Records a command with several processes. Returns its trace, the recorder's messages, and the
    names of the threads."""
    path = os.path.join(fresh(), "t.trace")
    done = subprocess.run([TRAIL, "record", *options, "-o", path, "--", *command],
                          capture_output=True, text=True, env=ENV, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return path, done.stderr, [thread.created_as for thread in Trace(TRAIL, path, ENV).threads]


@test
def processes_are_recorded_without_an_option():
    path, said, names = record("sh", "-c", "sleep 0.1; sleep 0.1")
    assert sum(re.fullmatch(r"sleep \(\d+\): main", name) is not None for name in names) == 2, names
    assert [p["name"] for p in summary(path)["processes"]].count("sleep") == 2, summary(path)["processes"]


@test
def no_children_turns_it_off():
    path, said, names = record("sh", "-c", "sleep 0.1; sleep 0.1", options=["--no-children"])
    assert names == ["main"], names
    for other in "--children", "--split":
        done = subprocess.run([TRAIL, "record", "--no-children", other, "-o", path, "--", "true"], capture_output=True, env=ENV)
        assert done.returncode == 2 and b"--no-children" in done.stderr, done.stderr


@test
def a_process_that_starts_none_is_not_named():
    # The same holds for a program that it executes in its place.
    path, said, names = record("env", "sleep", "0.1")
    assert set(names) == {"main"}, names
    assert summary(path)["processes"] == [] and "  process " not in said, said


def has_joined(pid, name):
    """Whether a process has executed the program, and the program has joined the recording."""
    with open(f"/proc/{pid}/maps") as maps:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name and "/memfd:trail (deleted)" in maps.read()


@test
def a_recording_ends_with_its_program():
    # It ends although a process remains, which is recorded while the program runs.
    left = "sleep 1000 >/dev/null 2>&1 & echo $!; read end"
    path = os.path.join(fresh(), "t.trace")
    recorder = subprocess.Popen([TRAIL, "record", "-o", path, "--", "sh", "-c", left], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env=ENV)
    pid = int(recorder.stdout.readline())
    try:
        until(lambda: has_joined(pid, "sleep"))
        _, said = recorder.communicate("\n", timeout=LIMIT)
    finally:
        os.kill(pid, signal.SIGKILL)
    assert recorder.returncode == 0, said
    assert "processes that it started are still running: --children records them" in said, said


@test
def the_summary_begins_with_what_worked_where_the_program_only_waits():
    path, said, names = record("timeout", "1000", "sleep", "1")
    lines = said.splitlines()
    assert re.fullmatch(r"  of sleep 1 \(\d+\), without what only waited for others: timeout 1000 sleep 1 \(\d+\)", lines[1]), said
    # The other process's wait for a signal is not included.
    assert re.fullmatch(r"  waiting for: sleep \d+ %", lines[3]), said
    table = lines[next(i for i, line in enumerate(lines) if line.startswith("  process ")) :]
    assert table[1].startswith("  sleep 1 ") and table[2].startswith("  timeout "), table
    shown = subprocess.run([TRAIL, "summary", path], capture_output=True, text=True, env=ENV).stdout.splitlines()
    assert re.match(r"sleep \(\d+\) ran longest, .*; timeout \(\d+\), which was started, waited for ", shown[1]), shown[:3]


@test
def a_shell_that_also_works_is_not_left_out():
    busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; sleep 0.5; true"
    path, said, names = record("sh", "-c", busy)
    assert "only waited" not in said, said


@test
def what_was_recorded_of_the_program_before_it_had_others_is_its_own():
    # Its first thread is written before the program starts another process, so the name lacks the
    # program.
    busy = "import time, subprocess\ntime.sleep(1)\nsubprocess.run(['sleep', '0.1'])"
    path, said, names = record(sys.executable, "-c", busy)
    assert names[0] == "main" and re.fullmatch(r"sleep \(\d+\): main", names[-1]), names
    by_name = {p["name"].rpartition("/")[2]: p for p in summary(path)["processes"]}
    assert len(by_name) == 2 and by_name["sleep"]["threads"] >= 1, by_name
    (program,) = [p for name, p in by_name.items() if name != "sleep"]
    assert program["threads"] == 1 and program["waiting_ns"] >= 1_000_000_000, by_name


@test
def in_another_namespace_a_process_is_found_by_its_descent():
    # There it sees itself as process 1, and it executes another program before the recorder finds
    # it.
    command = ["unshare", "--pid", "--fork"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        raise Skip("no PID namespace can be made here")
    for options in ([], ["--mount-proc"]):
        path, said, names = record(*command, *options, "sleep", "0.3")
        assert any(re.fullmatch(r"sleep \(\d+\): main", name) for name in names), (names, said)
        assert "refused" not in said and "(ended at once)" not in said and " ? " not in said, said


def missed(path, key):
    return {(row["name"].split()[0], row.get("why", "")) for row in summary(path)["recording"][key]}


CLEARED = "its environment lacks the recorder's LD_PRELOAD and TRAIL_SHM"


@test
def what_loses_the_environment_is_named_with_the_reason():
    path, said, names = record("env", "-i", "sleep", "1")
    assert missed(path, "recorded_in_part") == {("sleep", CLEARED)}, said
    assert re.search(rf"    sleep 1 \(\d+\): {CLEARED}: keep the environment", said), said


@test
def so_is_what_clone_has_made():
    # The C library does not know such a process, so neither does the recorder.
    clones = f"""
import ctypes, os, sys
pid = ctypes.CDLL(None).syscall({CLONE}, 17, 0, 0, 0, 0)
if pid == 0:
    os.execve(sys.argv[1], ["sleep", "1"], {{}})
os.waitpid(pid, 0)
"""
    path, said, names = record(sys.executable, "-c", clones, shutil.which("sleep"))
    assert missed(path, "not_recorded") == {("sleep", CLEARED)}, said
    assert re.search(rf"    sleep \(\d+\): {CLEARED}", said), said


@test
def so_is_what_cannot_reach_the_recorder():
    command = ["unshare", "--pid", "--fork", "--net", "--mount-proc"]
    if subprocess.run([*command, "true"], capture_output=True).returncode != 0:
        raise Skip("no namespaces can be made here")
    path, said, names = record(*command, "sleep", "1")
    why = "it is in other namespaces, where it cannot find the recorder"
    assert missed(path, "recorded_in_part") | missed(path, "not_recorded") == {("sleep", why)}, said


@test
def with_split_each_process_has_a_trace():
    rows, files, trace = sleepers(8, "--split")
    traces = [os.path.basename(row.split()[-1]) for row in rows]
    assert files == sorted(traces) and len(traces) == len(set(traces)), (files, rows)
    assert [thread.created_as for thread in trace.threads] == ["main"]


if __name__ == "__main__":
    sys.exit(main())
