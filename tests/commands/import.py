#!/usr/bin/env python3
"""trail import: recordings written by hand in the formats of other tools, with the states and wakers that follow. TAP.

usage: import.py TRAIL SOURCE_ROOT [long]      long: the large recordings, and no others

Times are in microseconds. A switch takes a few nanoseconds of the trace, because no two of its events have the same time.
"""

import csv
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, TRAIL, WORK, answer, equal, good, good_text, run
from tap import Skip, long, main, test

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "import")
made = 0


def imported(text, code=0):
    """The path of the trace made from a text or bytes, and the messages."""
    global made
    made += 1
    path = os.path.join(WORK, f"{made}.trace")
    status, out, err = run("import", "-", "-o", path, stdin=text if isinstance(text, bytes) else text.encode())
    assert status == code and not out, (status, err)
    if code == 0:
        good("check", path)
    return path, err


def states(path):
    """By thread: (state, begin, end, waker) of each of its states; waker 0: none."""
    threads = {}
    for row in csv.DictReader(io.StringIO(good_text("export", "--to=csv", "--table=states", path))):
        begin, end = int(row["begin_ns"]) // 1000, int(row["end_ns"]) // 1000
        state = (row["state"], begin, end, int(row["waker"] or 0))
        threads.setdefault(int(row["goroutine"]), []).append(state)
    return {g: sorted(of, key=lambda s: s[1:3]) for g, of in threads.items()}


def reasons(path):
    rows = csv.DictReader(io.StringIO(good_text("export", "--to=csv", "--table=states", path)))
    return {(int(r["goroutine"]), int(r["begin_ns"]) // 1000): (r["reason"], r["wait_kind"]) for r in rows if r["state"] == "Waiting"}


def perf(*lines):
    """Lines of perf script: (comm, TID, CPU, microseconds, event)."""
    return "".join(f"{comm:>16} {tid:5} [{cpu:03}] {us // 10**6:5}.{us % 10**6:06}: {event}\n" for comm, tid, cpu, us, event in lines)


def switch(was, tid, state, to, next_tid):
    return (f"sched:sched_switch: prev_comm={was} prev_pid={tid} prev_prio=120 prev_state={state}"
            f" ==> next_comm={to} next_pid={next_tid} next_prio=120")  # fmt: skip


def wake(kind, comm, tid, cpu=0):
    return f"sched:sched_{kind}: comm={comm} pid={tid} prio=120 target_cpu={cpu:03}"


def fork(comm, tid, child):
    return f"sched:sched_process_fork: comm={comm} pid={tid} child_comm={comm} child_pid={child}"


T = 10_000_000
# Thread 100 starts 101 and waits; 101 wakes it; an interrupt wakes 101. CPU 0 starts with thread
# 100, CPU 1 is idle.
STORY = (
    ("main", 100, 0, T + 100, fork("main", 100, 101)),
    ("main", 100, 0, T + 110, wake("wakeup_new", "main", 101, 1)),
    ("swapper", 0, 1, T + 200, switch("swapper/1", 0, "R", "my worker", 101)),
    ("main", 100, 0, T + 300, switch("main", 100, "S", "swapper/0", 0)),
    ("my worker", 101, 1, T + 700, wake("waking", "main", 100)),
    ("swapper", 0, 0, T + 720, wake("wakeup", "main", 100)),
    ("swapper", 0, 0, T + 800, switch("swapper/0", 0, "R", "main", 100)),
    ("my worker", 101, 1, T + 900, switch("my worker", 101, "D", "swapper/1", 0)),
    ("swapper", 0, 1, T + 1100, wake("waking", "my worker", 101, 1)),
    ("swapper", 0, 1, T + 1200, switch("swapper/1", 0, "R", "my worker", 101)),
    ("my worker", 101, 1, T + 1300, switch("my worker", 101, "R", "swapper/1", 0)),
)
STATES = {
    100: [("Running", T + 100, T + 300, 0), ("Waiting", T + 300, T + 700, 101), ("Runnable", T + 700, T + 800, 0)],
    101: [("Runnable", T + 100, T + 200, 0), ("Running", T + 200, T + 900, 0), ("Waiting", T + 900, T + 1100, 0),
          ("Runnable", T + 1100, T + 1200, 0), ("Running", T + 1200, T + 1300, 0)],
}  # fmt: skip


def has_states_of_the_story(path):
    got = states(path)
    equal(sorted(got), [100, 101])
    for thread, wanted in STATES.items():
        equal(got[thread][: len(wanted)], wanted, f"thread {thread}")


@test
def states_and_wakers_are_those_of_perf():
    path, err = imported(perf(*STORY))
    has_states_of_the_story(path)
    equal(reasons(path)[100, T + 300][0], "kernel")
    equal(reasons(path)[101, T + 900][0], "kernel, uninterruptible")
    names = {g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}
    # Its name is the newest known one: for some microseconds, a new thread has its parent's.
    equal(names, {100: "main", 101: "my worker"})
    assert "3 wake-ups" not in err and "2 wake-ups, 1 of them by threads" in err, err


@test
def perf_in_a_container_has_two_ids_for_a_thread():
    # The prefix of an event has the container's IDs, its fields the host's; for an ended thread the prefix is -1.
    inside = {0: 0, 100: 2, 101: 3}
    story = [(comm, inside[tid], *rest) for comm, tid, *rest in STORY]
    story[-1] = (":-1", -1, *story[-1][2:])
    path, err = imported(perf(("sh", 1, 0, T + 10, switch("sh", 50, "S", "main", 100)), *story))
    got = states(path)
    equal(sorted(got), [50, 100, 101])
    equal(got[100][1:4], [("Running", T + 10, T + 300, 0), *STATES[100][1:]])
    equal(got[101][: len(STATES[101])], STATES[101])
    names = {g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}
    equal(names, {50: "sh", 100: "main", 101: "my worker"})
    # For sh, main, and the worker's first event: the idle task is 0 in both, and -1 is not an ID.
    assert "3 context switches recorded by perf in a container: their threads have the host's IDs" in err, err


@test
def perf_in_a_container_need_not_show_what_runs_on_a_cpu():
    # Switches of the idle task are not recorded there; an earlier switch showed the host's ID.
    path, _ = imported(perf(
        ("main", 2, 0, T + 10, switch("main", 100, "S", "swapper/0", 0)),
        ("worker", 3, 1, T + 20, switch("worker", 101, "S", "swapper/1", 0)),
        ("main", 2, 0, T + 100, wake("waking", "worker", 101, 1)),
    ))  # fmt: skip
    equal([s[3] for s in states(path)[101] if s[:2] == ("Waiting", T + 20)], [100])


@test
def the_trace_speaks_of_threads_and_names_its_maker():
    path, _ = imported(perf(*STORY))
    info = answer("info", path)
    equal(info["made_by"], "trail import")
    assert "2 threads" in good_text("goroutines", path)
    equal(good_text("print", path).count("CPU slots: 2"), 1)


@test
def the_critical_path_follows_the_wakers():
    path, _ = imported(perf(*STORY[:7]))
    segments = answer("why", "--goroutine=100", path)["segments"]
    # Ready on its CPU; before that, the actions of its waker since it was started.
    got = [(s["goroutine"], s["state"], s["begin_ns"] // 1000, s["end_ns"] // 1000) for s in segments if s["end_ns"] - s["begin_ns"] >= 1000]
    equal(got[::-1], [(100, "running", T + 100, T + 300), (101, "running", T + 300, T + 700), (100, "ready", T + 700, T + 800)])


@test
def the_older_layout_means_the_same():
    def older(line):
        comm, tid, cpu, us, event = line
        event = event.replace("sched:sched_", "sched_")
        if "sched_switch" in event:
            for side in ("prev", "next"):
                event = event.replace(f"{side}_comm=", "").replace(f" {side}_pid=", ":").replace(f" {side}_prio=120", " [120]")
            event = event.replace(" prev_state=", " ")
        elif "comm=" in event and "fork" not in event:
            event = event.replace("comm=", "").replace(" pid=", ":").replace(" prio=120 target_cpu=", " [120] CPU:")
        return comm, tid, cpu, us, event

    text = perf(*map(older, STORY))
    assert "main:100 [120] S ==> swapper/0:0 [120]" in text, text
    has_states_of_the_story(imported(text)[0])


@test
def ftrace_and_trace_cmd_mean_the_same():
    def lines(layout):
        return "".join(layout.format(comm=comm if tid else "<idle>", tid=tid, cpu=cpu, s=f"{us // 10**6}.{us % 10**6:06}",
                                     event=event.replace("sched:", "")) + "\n" for comm, tid, cpu, us, event in STORY)  # fmt: skip

    head = "# tracer: nop\n#\n#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION\n"
    for text in (
        head + lines("{comm:>16}-{tid:<7} [{cpu:03}] d..2. {s}: {event}"),
        head + lines("{comm:>16}-{tid:<7} (     99) [{cpu:03}] d..2. {s}: {event}"),
        head + lines("{comm:>16}-{tid:<7} (-------) [{cpu:03}] d..2  {s}: {event}"),
        "cpus=2\n" + lines("{comm:>16}-{tid:<5} [{cpu:03}]  {s}: {event}"),
        "CPU 2 is empty\ncpus=3\n" + lines("{comm:>16}-{tid:<5} [{cpu:03}] d..3. {s}: {event}"),
    ):
        path, err = imported(text)
        has_states_of_the_story(path)
        assert "not an event" not in err and "not events" not in err, err


@test
def what_an_interrupt_wakes_has_no_waker():
    def text(flags, *more):
        lines = [f"a-100 [000] d..2. 1.000100: {switch('a', 100, 'S', 'b', 200)[6:]}", *more,
                 f"b-200 [000] {flags} 1.000300: sched_waking: comm=a pid=100 prio=120 target_cpu=000"]  # fmt: skip
        return "\n".join(lines) + "\n" + f"b-200 [000] d..2. 1.000400: {switch('b', 200, 'R', 'a', 100)[6:]}\n"

    for flags, waker in (("d..2.", 200), ("dN.2.", 200), ("d.h2.", 0), ("d.s3.", 0), ("dNH2.", 0), ("d.Z2.", 0)):
        got = states(imported(text(flags))[0])[100]
        equal(got[1], ("Waiting", 1_000_100, 1_000_300, waker), flags)
    # The same, derived from events in recordings that have them.
    begin = "b-200 [000] d.... 1.000200: irq_handler_entry: irq=20 name=eth0"
    end = "b-200 [000] d.... 1.000250: irq_handler_exit: irq=20 ret=handled"
    equal(states(imported(text("d..2.", begin))[0])[100][1][3], 0)
    equal(states(imported(text("d..2.", begin, end))[0])[100][1][3], 200)


def with_stack(lines, at, *functions):
    """perf's lines, with a call stack after the line `at`."""
    frames = "".join(f"\tffffffff81{i:06x} {f}+0x1f ([kernel.kallsyms])\n" for i, f in enumerate(functions))
    return perf(*lines[: at + 1]) + frames + "\t    55bfc0d732b0 [unknown] ([unknown])\n\n" + perf(*lines[at + 1 :])


@test
def call_chains_become_stacks():
    path, err = imported(with_stack(STORY, 3, "__schedule", "schedule", "pipe_read", "vfs_read").replace("vfs_read+0x1f ([kernel.kallsyms])", "read_it+0x1f (/bin/my main)"))
    assert "not an event" not in err and "not events" not in err, err
    text = good_text("print", "--stacks", path)
    assert "pipe_read" in text and "read_it" in text and "/bin/my main" in text and "[unknown]" not in text, text
    # The kernel function in which a thread sleeps shows the kind of wait.
    equal(reasons(path)[100, T + 300], ("network", "read"))
    for function, wanted in (("futex_wait_queue_me", ("sync", "futex")), ("do_nanosleep", ("sleep", "")), ("ep_poll", ("network", "poll")),
                             ("io_schedule", ("kernel", "file")), ("something_else", ("kernel", ""))):  # fmt: skip
        equal(reasons(imported(with_stack(STORY, 3, "__schedule", function))[0])[100, T + 300], wanted, function)


@test
def a_stack_in_an_interrupt_says_that_no_thread_woke():
    path, _ = imported(with_stack(STORY, 4, "try_to_wake_up", "hrtimer_wakeup", "asm_sysvec_apic_timer_interrupt", "compute"))
    equal(states(path)[100][1], ("Waiting", T + 300, T + 700, 0))


@test
def a_stack_of_ftrace_is_that_of_the_event_before():
    text = (f"  main-100 [000] d..2. 10.000300: {switch('main', 100, 'S', 'swapper/0', 0)[6:]}\n"
            "  main-100 [000] d..3. 10.000301: <stack trace>\n => __schedule\n => schedule <ffffffff810>\n => do_nanosleep\n"
            "  <idle>-0 [000] d..2. 10.000500: sched_waking: comm=main pid=100 prio=120 target_cpu=000\n")  # fmt: skip
    path, err = imported(text)
    equal(reasons(path)[100, T + 300], ("sleep", ""))
    equal(states(path)[100][1], ("Waiting", T + 300, T + 500, 0))
    assert "left out" not in err and "not an event" not in err and "not events" not in err, err


@test
def without_sched_waking_the_context_of_the_wakeup_is_the_waker():
    lines = [line for line in STORY if "sched_waking" not in line[4]]
    lines[4] = ("my worker", 101, 1, T + 720, wake("wakeup", "main", 100))
    equal(states(imported(perf(*lines))[0])[100][1], ("Waiting", T + 300, T + 720, 101))


@test
def with_sched_waking_the_context_of_a_wakeup_is_no_waker():
    # Its sched_waking is missing. The other CPU interrupted thread 300.
    lines = [("a", 100, 0, 100, switch("a", 100, "S", "b", 300)), ("b", 300, 0, 200, wake("waking", "c", 400)),
             ("b", 300, 0, 300, wake("wakeup", "a", 100))]  # fmt: skip
    equal(states(imported(perf(*lines))[0])[100][1], ("Waiting", 100, 300, 0))


@test
def a_thread_that_is_woken_on_its_way_to_sleep_is_woken_by_the_same_thread():
    lines = [("a", 100, 0, 40, wake("waking", "c", 999)), ("b", 200, 1, 50, switch("b", 200, "R", "b", 201)), ("b", 201, 1, 100, wake("waking", "a", 100)),
             ("a", 100, 0, 110, switch("a", 100, "S", "swapper/0", 0)), ("b", 201, 1, 120, wake("wakeup", "a", 100)),
             ("swapper", 0, 0, 200, switch("swapper/0", 0, "R", "a", 100)), ("a", 100, 0, 300, switch("a", 100, "R", "swapper/0", 0))]  # fmt: skip
    got = states(imported(perf(*lines))[0])[100]
    equal(got[1], ("Waiting", 110, 120, 201))
    # It had not yet gone to sleep: it continues, and only its next sleep counts.
    lines[3:5] = [lines[4], ("a", 100, 0, 130, switch("a", 100, "S", "swapper/0", 0)), ("swapper", 0, 0, 180, wake("waking", "a", 100))]
    equal(states(imported(perf(*lines))[0])[100][1], ("Waiting", 130, 180, 0))
    # The thread seen then does not wake a later sleep whose sched_waking is missing, either.
    lines[5] = ("swapper", 0, 0, 180, wake("wakeup", "a", 100))
    equal(states(imported(perf(*lines))[0])[100][1], ("Waiting", 130, 180, 0))


@test
def each_letter_of_a_state_has_its_meaning():
    for letter, state in (("R", "Runnable"), ("R+", "Runnable"), ("S", "Waiting"), ("D", "Waiting"), ("D|W", "Waiting"), ("T", "Waiting"),
                          ("t", "Waiting"), ("I", "Waiting"), ("P", "Waiting"), ("S+", "Runnable")):  # fmt: skip
        lines = (("a", 100, 0, 100, wake("waking", "b", 200)), ("a", 100, 0, 200, switch("a", 100, letter, "b", 200)),
                 ("b", 200, 0, 300, wake("waking", "c", 300)))  # fmt: skip
        equal([s[:3] for s in states(imported(perf(*lines))[0])[100]], [("Running", 100, 200), (state, 200, 300)], letter)
    for letter in ("X", "Z", "x"):
        path, _ = imported(perf(lines[0], ("a", 100, 0, 200, switch("a", 100, letter, "b", 200)), lines[2]))
        ends = {g["id"]: g["end_ns"] // 1000 for g in answer("goroutines", path, "--members")["goroutines"]}
        equal(ends[100], 200, letter)


@test
def a_thread_that_exits_ends_when_it_leaves_its_cpu_and_its_tid_is_another_thread_then():
    lines = (("a", 100, 0, 100, "sched:sched_process_exit: comm=a pid=100 prio=120"), ("a", 100, 0, 200, switch("a", 100, "S", "b", 200)),
             ("b", 200, 0, 300, fork("b", 200, 100)), ("b", 200, 0, 400, switch("b", 200, "S", "b", 100)),
             ("b", 100, 0, 500, wake("waking", "b", 200)))  # fmt: skip
    path, _ = imported(perf(*lines))
    got = states(path)
    equal([s[:3] for s in got[100]], [("Running", 100, 200)])
    second = (1 << 32) + 1
    equal([s[:3] for s in got[second]], [("Runnable", 300, 400), ("Running", 400, 500)])
    equal(got[200][-2], ("Waiting", 400, 500, second))


@test
def lines_out_of_order_are_put_in_order():
    for lines in (STORY[::-1], STORY[3:] + STORY[:3], STORY[::2] + STORY[1::2]):
        has_states_of_the_story(imported(perf(*lines))[0])


def many(count, begin=T, step=10):
    """Two threads alternate on CPU 2."""
    for i in range(count):
        a, b = 300 + i % 2, 301 - i % 2
        yield ("t", a, 2, begin + i * step, switch("t", a, "R", "t", b))


def written(path):
    """(time, thread) of each event in the file, without the states at the start of a generation."""
    thread, time, found = 0, 0, []
    for line in good_text("print", "--format=wire", path).splitlines():
        if batch := re.match(r"EventBatch .*\bm=(\d+) time=(\d+)", line):
            thread, time = int(batch[1]), int(batch[2])
        elif event := re.match(r"(\w+) dt=(\d+)", line):
            time += int(event[2])
            found += [(time, thread)] if "Status" not in event[1] else []
    return found


@test
def events_of_two_threads_at_one_time_are_one_after_the_other():
    at_once = (
        ("a", 100, 0, T, switch("swapper/0", 0, "R", "a", 100)),
        ("b", 101, 1, T, switch("swapper/1", 0, "R", "b", 101)),
        ("a", 100, 0, T + 10, switch("a", 100, "S", "c", 102)),
        ("b", 101, 1, T + 10, switch("b", 101, "S", "d", 103)),
        # The recording lacks the switches with which these two left their CPUs.
        ("a", 100, 0, T + 20, switch("swapper/0", 0, "R", "a", 100)),
        ("b", 101, 1, T + 20, switch("swapper/1", 0, "R", "b", 101)),
    )
    threads = {}
    for time, thread in written(imported(perf(*at_once))[0]):
        threads.setdefault(time, set()).add(thread)
    assert all(len(of) == 1 for of in threads.values()), threads


@test
def a_recording_of_some_processes_has_switches_that_are_inferred():
    # Only thread 100's own switches: it was put on its CPU while another thread, or none, was seen
    # there.
    lines = (("a", 100, 0, 100, switch("a", 100, "S", "x", 9)), ("a", 100, 0, 300, switch("a", 100, "S", "swapper/0", 0)))
    path, err = imported(perf(*lines))
    assert "context switch" in err and "inferred" in err, err
    equal([s[:3] for s in states(path)[100]][:2], [("Running", 100, 100), ("Waiting", 100, 300)])


@test
def what_is_not_understood_is_counted_and_named():
    text = perf(*STORY) + perf(("main", 100, 0, T + 1400, "syscalls:sys_enter_futex: uaddr: 0x1"), ("main", 100, 0, T + 1400, "\x1b[31m: x"),
                               ("main", 100, 0, T + 1410, "syscalls:sys_enter_futex: uaddr: 0x2"))  # fmt: skip
    text += "not a line of it\n" + perf(("main", 100, 0, T + 1500, "sched:sched_switch: prev_comm=main prev_pid=abc"),
                                           ("main", 100, 0, T + 1510, "sched:sched_waking: pid=101"))  # fmt: skip
    path, err = imported(text)
    assert "3 events of other kinds left out: sys_enter_futex 2, \\x1b[31m 1\n" in err, err
    line = len(STORY) + 4
    assert f"1 line is not an event, the first in line {line}\n" in err, err
    assert f"2 events left out because of unexpected fields, the first in line {line + 1}\n" in err, err
    has_states_of_the_story(path)
    status, _, quiet = run("import", "-q", "-", "-o", path, stdin=perf(*STORY).encode())
    equal((status, quiet), (0, ""))


@test
def lost_events_are_told():
    path, err = imported(perf(*STORY[:3]) + "CPU:1 [LOST 1234 EVENTS]\n" + perf(*STORY[3:], ("a", 100, 1, T + 2000, "PERF_RECORD_LOST lost 6")))
    has_states_of_the_story(path)
    assert "1240 events were lost by the recorder" in err, err


@test
def numbers_beyond_what_there_can_be_are_no_events():
    for text in (
        perf(*STORY).replace("[001]", "[9999]"),
        perf(*STORY).replace(" 101 [", " 99999999999999999999 ["),
        perf(*STORY).replace("10.0007", "99999999999999999999.0007"),
        perf(*STORY).replace("10.0007", "10.00000000000007"),
        perf(*STORY).replace("pid=101", "pid=4194304"),
        perf(*STORY).replace("prev_state=S", "prev_state=?"),
    ):
        _, err = imported(text)
        assert "the first in line" in err, err


@test
def errors_have_the_exit_codes_of_other_commands():
    for text in ("", "hello\n", "# tracer: nop\n", "\n" * 10, "x" * 200_000):
        path, err = imported(text, code=1)
        assert not os.path.exists(path) and "no known scheduling event" in err, err
    equal(run("import", "/does/not/exist", "-o", "x.trace")[0], 3)
    for words in ([], ["-"], ["-", "-", "-o", "x"]):
        equal(run("import", *words)[0], 2)
    equal(run("import", "-", "-o", "/does/not/exist/x.trace", stdin=perf(*STORY).encode())[0], 3)


@test
def stdout_takes_the_trace_and_a_compressed_recording_is_read():
    import gzip

    trace = good("import", "-", "-o", "-", stdin=gzip.compress(perf(*STORY).encode()))
    path = os.path.join(WORK, "stdout.trace")
    with open(path, "wb") as file:
        file.write(trace)
    has_states_of_the_story(path)


def fake_perf(name, script):
    folder = os.path.join(WORK, name)
    os.mkdir(folder)
    if script:
        with open(os.path.join(folder, "perf"), "w") as file:
            file.write("#!/bin/sh\n" + script)
        os.chmod(os.path.join(folder, "perf"), 0o755)
    return {**ENV, "PATH": folder}


@test
def perf_data_is_what_perf_prints_of_it():
    data, text = os.path.join(WORK, "perf.data"), os.path.join(WORK, "perf.txt")
    with open(data, "wb") as file:
        file.write(b"PERFILE2" + bytes(100))
    with open(text, "w") as file:
        file.write(perf(*STORY))
    path = os.path.join(WORK, "data.trace")

    def tried(env):
        p = subprocess.run([TRAIL, "import", data, "-o", path], capture_output=True, text=True, env=env, timeout=60)
        return p.returncode, p.stderr

    cat = shutil.which("cat")
    code, err = tried(fake_perf("good", f'[ "$1 $2" = "script --ns" ] && [ "$5" = {data} ] && {cat} {text}\n'))
    equal(code, 0, err)
    has_states_of_the_story(path)
    os.unlink(path)
    code, err = tried(fake_perf("bad", f"{cat} {text}; exit 7\n"))
    assert code == 3 and "exit status 7" in err and not os.path.exists(path), err
    code, err = tried(fake_perf("none", None))
    assert code == 3 and "not installed" in err and "perf script --ns" in err and not os.path.exists(path), err
    code, _, err = run("import", "-", "-o", path, stdin=b"PERFILE2" + bytes(100))
    assert code == 3 and "perf script --ns" in err, err


LEGACY = {"ph": 2, "dur": 3, "id": 6}  # field numbers


def spans(*events):
    """Perfetto's track events with a legacy_event; a thread's name is in the track's descriptor."""
    packets = []
    for event in ({"pid": 1, **e} for e in events):
        thread = (18, event["pid"]), (19, event["tid"])
        if event["ph"] == "M":
            body = message((1, event["pid"]), (2, event["tid"]), (5, event["name"]))
            packets.append(message((60, message((1, event["tid"]), (4, body)))))
            continue
        legacy = message(*((n, ord(event[k]) if k == "ph" else event[k]) for k, n in LEGACY.items() if k in event), *thread)
        texts = [(n, event[k]) for n, k in ((22, "cat"), (23, "name")) if k in event]
        packets.append(message((8, int(event["ts"] * 1000)), (10, 1), (11, message((6, legacy), *texts))))
    return message(*((1, packet) for packet in packets))


def named(tid, name):
    return {"ph": "M", "name": name, "tid": tid}


def span(tid, name, ts, dur, **more):
    return {"ph": "X", "name": name, "tid": tid, "ts": ts, "dur": dur, **more}


# Thread 11 works, then waits for data from thread 10.
SPANS = (
    span(10, "parse", 100, 200), {"ph": "B", "name": "lex", "tid": 10, "ts": 150}, {"ph": "E", "tid": 10, "ts": 250},
    {"ph": "s", "name": "job", "cat": "q", "id": 7, "tid": 10, "ts": 280},
    {"ph": "f", "name": "job", "cat": "q", "id": 7, "tid": 11, "ts": 400},
    span(11, "first", 50, 20), span(11, "work", 400, 100), {"ph": "i", "name": "mark", "tid": 11, "ts": 450},
    {"ph": "b", "name": "request", "cat": "r", "id": 1, "tid": 10, "ts": 100}, {"ph": "e", "name": "request", "cat": "r", "id": 1, "tid": 11, "ts": 500},
    named(10, "main"), named(11, "w\u00f6rker"),
)  # fmt: skip


def regions(path):
    of = answer("regions", "--members", path)["regions"]
    return {(r["goroutine"], r["name"]): (r["start_ns"] // 1000, r["end_ns"] // 1000) for r in of}


def without_instants(states):
    return [s for s in states if s[1] < s[2]]


def ctf(lines, clock=lambda us: f"{us // 10**6}.{us % 10**6:06}000", context=""):
    """The same events as printed by babeltrace2."""
    states = {"R": 0, "S": 1, "D": 2}
    text = ""
    for comm, tid, cpu, us, event in lines:
        name, fields = re.match(r"sched:(\w+): (.*)", event).groups()
        if name == "sched_switch":
            was, of, state, to, next_tid = re.match(r"prev_comm=(.*) prev_pid=(\d+) .*prev_state=(.) ==> next_comm=(.*) next_pid=(\d+) ", fields).groups()
            fields = (f'prev_comm = "{was}", prev_tid = {of}, prev_prio = 20, prev_state = ( "TASK" : container = {states[state]} ), '
                      f'next_comm = "{to}", next_tid = {next_tid}, next_prio = 20')  # fmt: skip
        elif name == "sched_process_fork":
            child = fields.rsplit("=", 1)[1]
            fields = f'parent_comm = "{comm}", parent_tid = {tid}, parent_pid = {tid}, child_comm = "{comm}", child_tid = {child}, vtids = [ [0] = 1 ], child_pid = {tid}'
        else:
            woken, number = re.match(r"comm=(.*) pid=(\d+) ", fields).groups()
            fields = f'comm = "{woken}", tid = {number}, prio = 20, target_cpu = 0'
        text += f"[{clock(us)}] host {name}: {{ cpu_id = {cpu} }}, {context}{{ {fields} }}\n"
    return text


@test
def babeltrace_of_lttng_means_the_same():
    day = ctf(STORY, lambda us: f"00:00:{us // 10**6}.{us % 10**6:06}000] (+0.1").replace("(+0.1]", "(+0.1)")
    for text in (ctf(STORY), day, ctf(STORY, context='{ tid = 7, procname = "x" }, '),
                 re.sub(r'\( "TASK" : container = (\d) \)', r"\1", ctf(STORY))):  # fmt: skip
        path, err = imported(text)
        assert "not an event" not in err and "not events" not in err and "fields" not in err, err
        has_states_of_the_story(path)
    # Preempted, whatever it was about to do; of several bits, the lowest decides.
    for number, state in ((0, "Runnable"), (256, "Runnable"), (1024, "Runnable"), (2, "Waiting"), (130, "Waiting"), (64, "Waiting")):
        text = ctf(STORY[:4]).replace("container = 1 ", f"container = {number} ")
        equal(states(imported(text + ctf(STORY[4:5]))[0])[100][1][0], state, number)


def ust(*events):
    """Events of LTTng's pthread wrapper: (microseconds, TID, event, mutex)."""
    return "".join(
        f"[{us // 10**6}.{us % 10**6:06}000] host lttng_ust_pthread:pthread_mutex_{event}: {{ cpu_id = 0 }}, "
        f'{{ vtid = {tid}, procname = "t{tid}" }}, {{ mutex = 0x{mutex:X}{"" if event == "lock_req" else f", status = {status}"} }}\n'
        for us, tid, event, mutex, status in ((*e, 0)[:5] for e in events)
    )


@test
def mutexes_of_lttngs_wrapper_are_waits_for_their_holders():
    EBUSY = 16
    path, err = imported(ust(
        (10, 1, "lock_req", 0xA0), (10, 1, "lock_acq", 0xA0),
        (20, 2, "lock_req", 0xA0), (25, 3, "trylock", 0xA0, EBUSY), (30, 1, "lock_req", 0xA0), (30, 1, "lock_acq", 0xA0), (35, 1, "unlock", 0xA0),
        (40, 1, "unlock", 0xA0), (45, 2, "lock_acq", 0xA0),
        # The next unlock is recorded after the lock that it allows. Then comes a mutex that is
        # free.
        (50, 3, "lock_req", 0xA0), (60, 3, "lock_acq", 0xA0), (61, 2, "unlock", 0xA0), (62, 3, "unlock", 0xA0),
        (70, 1, "lock_req", 0xB0), (71, 1, "lock_acq", 0xB0), (72, 1, "unlock", 0xB0), (80, 2, "trylock", 0xB0),
        # According to the record the mutex was locked when requested; the unlock came in between.
        (90, 1, "lock_req", 0xB0), (95, 2, "unlock", 0xB0), (99, 1, "lock_acq", 0xB0)))  # fmt: skip
    assert "left out" not in err and "fields" not in err, err
    got = states(path)
    waits = {g: [s[1:] for s in of if s[0] == "Waiting" and s[1] > 10] for g, of in got.items()}
    equal(waits, {1: [(90, 95, 2)], 2: [(20, 40, 1)], 3: [(50, 60, 2)]})
    equal({k: v for k, v in reasons(path).items() if k[1] > 10}, {(2, 20): ("sync", "mutex"), (3, 50): ("sync", "mutex"), (1, 90): ("sync", "mutex")})
    equal({(k["object"], k["waits"]) for k in answer("locks", path)["locks"]}, {("0xa0", 2), ("0xb0", 1)})
    # For 0xa0: thread 1 from its first lock at 10 to its last unlock, 2 from 45 until 3 has it at
    # 60, 3 until 62. For 0xb0: thread 1 twice, the second time without an end, and 2 from 80 to 95.
    # An unlock that comes too late does not end a hold.
    held = [(e["g"], e["message"]) for e in map(json.loads, good("print", "--format=jsonl", path).splitlines())
            if e.get("category") == "held"]
    equal(held, [(1, "mutex 0xa0 30000ns"), (2, "mutex 0xa0 15000ns"), (3, "mutex 0xa0 2000ns"), (1, "mutex 0xb0 1000ns"), (2, "mutex 0xb0 15000ns")])
    equal({lock["object"]: lock["holds"] for lock in answer("locks", path)["locks"]}, {"0xa0": 3, "0xb0": 2})
    equal({g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}, {1: "t1", 2: "t2", 3: "t3"})
    # Without the thread's context in the events, nothing can be derived.
    code, _, err = run("import", "-", "-o", os.path.join(WORK, "none.trace"), stdin=ust((10, 1, "lock_req", 0xA0)).replace("vtid", "x").encode())
    assert code == 1 and "1 event left out because of unexpected fields" in err, err


@test
def damaged_lines_of_babeltrace_are_counted():
    bad = '[10.5] host sched_switch: { cpu_id = 0 }, { prev_comm = "x" }\n[10.5] host sched_waking: { comm = "x", tid = 5 }\n[nonsense\n'
    path, err = imported(ctf(STORY) + bad + "[10.6] host my_app:event: { cpu_id = 0 }, { }\n")
    assert "2 events left out because of unexpected fields" in err and "1 line is not an event" in err and "my_app:event 1" in err, err


CTF = """/* CTF 1.8 */
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; uint32_t stream_id; }; };
env { hostname = "host"; domain = "kernel"; tracer_name = "lttng-modules"; };
clock { name = monotonic; freq = 1000000000; offset = 0; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := stamp_t;
stream { id = 0; event.header := struct { uint16_t id; stamp_t timestamp; };
packet.context := struct { stamp_t timestamp_begin; stamp_t timestamp_end; uint64_t content_size; uint64_t packet_size; uint32_t cpu_id; }; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct { string prev_comm; int32_t prev_tid; int32_t prev_prio;
enum : int32_t { "TASK_RUNNING" = 0, "TASK_INTERRUPTIBLE" = 1, "TASK_UNINTERRUPTIBLE" = 2 } prev_state; string next_comm; int32_t next_tid; int32_t next_prio; }; };
event { name = "sched_waking"; id = 1; stream_id = 0; fields := struct { string comm; int32_t tid; int32_t prio; int32_t target_cpu; }; };
"""


@test
def a_folder_of_ctf_is_what_babeltrace2_prints_of_it():
    folder = os.path.join(WORK, "ctf")
    os.mkdir(folder)
    with open(os.path.join(folder, "metadata"), "w") as file:
        file.write(CTF)

    def switched(us, was, tid, state, to, next_tid):
        names = was.encode() + b"\0" + struct.pack("<iii", tid, 20, state) + to.encode() + b"\0"
        return struct.pack("<HQ", 0, us * 1000) + names + struct.pack("<ii", next_tid, 20)

    waking = struct.pack("<HQ", 1, 700_000) + b"main\0" + struct.pack("<iii", 100, 20, 0)
    for cpu, body in ((0, switched(300, "main", 100, 1, "swapper/0", 0) + switched(800, "swapper/0", 0, 0, "main", 100)),
                      (1, waking + switched(900, "worker", 101, 2, "swapper/1", 0))):  # fmt: skip
        size = (8 + 36 + len(body)) * 8
        with open(os.path.join(folder, f"stream_{cpu}"), "wb") as file:
            file.write(struct.pack("<IIQQQQI", 0xC1FC1FC1, 0, 300_000, 900_000, size, size, cpu) + body)
    path = os.path.join(WORK, "ctf.trace")
    p = subprocess.run([TRAIL, "import", folder, "-o", path], capture_output=True, text=True, env=fake_perf("no-babeltrace", None), timeout=60)
    assert p.returncode == 3 and "babeltrace2 --clock-seconds" in p.stderr, p.stderr
    if not shutil.which("babeltrace2"):
        raise Skip("no babeltrace2")
    good("import", folder, "-o", path)
    # LTTng's events do not name their thread: thread 101 is the waker because it leaves the CPU
    # later.
    equal(states(path)[100][:3], [("Running", 300, 300, 0), ("Waiting", 300, 700, 101), ("Runnable", 700, 800, 0)])
    equal(states(path)[101][0][:3], ("Running", 300, 900))


@test
def spans_are_regions_of_threads_that_run_meanwhile():
    for events in (SPANS, SPANS[::-1]):
        path, err = imported(spans(*events))
        assert "fields" not in err and "not an event" not in err and "not events" not in err, err
        got = states(path)
        equal(without_instants(got[10])[:2], [("Waiting", 50, 100, 0), ("Running", 100, 300, 0)])
        # Ready from the start of the flow, which is in thread 10.
        equal(without_instants(got[11])[:4], [("Running", 50, 70, 0), ("Waiting", 70, 280, 10), ("Runnable", 280, 400, 0), ("Running", 400, 500, 0)])
        equal(regions(path), {(10, "parse"): (100, 300), (10, "lex"): (150, 250), (11, "first"): (50, 70), (11, "work"): (400, 500)})
        tasks = answer("tasks", path)["tasks"]
        equal([(t["name"], t["start_ns"] // 1000, t["end_ns"] // 1000, t["complete"]) for t in tasks], [("request", 100, 500, True)])
        equal({g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}, {10: "main", 11: "wörker"})
        assert "mark" in good_text("print", path)


@test
def a_flow_that_its_end_did_not_wait_for_is_no_wake_up():
    busy = span(11, "other", 300, 50)
    path, err = imported(spans(*SPANS, busy))
    assert "1 flow is not a wake-up" in err, err
    equal({w for of in states(path).values() for *_, w in of}, {0})
    # Thread 11 is working when the flow begins.
    path, err = imported(spans(*[{**e, "ts": 60} if e.get("ph") == "s" else e for e in SPANS]))
    assert "1 flow is not a wake-up" in err, err
    # Some programs put it at the end of a span; the thread is then still active.
    path, err = imported(spans(*[{**e, "ts": 300} if e.get("ph") == "s" else e for e in SPANS]))
    assert ("Waiting", 70, 299, 10) in states(path)[11], states(path)


@test
def a_flow_of_several_steps_wakes_one_thread_after_the_other():
    def hop(ph, tid, ts):
        return {"ph": ph, "name": "n", "id": 1, "tid": tid, "ts": ts}

    path, _ = imported(spans(span(1, "a", 10, 20), hop("s", 1, 15), span(2, "z", 1, 1), span(2, "b", 40, 20), hop("t", 2, 40), span(3, "z", 1, 1),
                              span(3, "c", 80, 20), hop("f", 3, 80)))  # fmt: skip
    equal([(s[1], s[2], s[3]) for of in (2, 3) for s in states(path)[of] if s[3]], [(2, 15, 1), (2, 40, 2)])


@test
def spans_that_overlap_are_cut_and_ends_without_begin_are_counted():
    path, err = imported(spans(span(10, "outer", 100, 100), span(10, "late", 150, 100), {"ph": "E", "tid": 10, "ts": 500},
                               {"ph": "B", "name": "open", "tid": 12, "ts": 120}, {"ph": "e", "tid": 10, "ts": 1, "id": 5},
                               {"ph": "f", "tid": 10, "ts": 1, "id": 5}, {"ph": "C", "tid": 1, "ts": 5}))  # fmt: skip
    assert "1 span shortened" in err and "3 events left out because of unexpected fields" in err and "track event, phase C 1" in err, err
    equal(regions(path)[10, "late"], (150, 200))
    equal(without_instants(states(path)[12]), [("Waiting", 100, 120, 0), ("Running", 120, 200, 0)])


@test
def threads_of_two_processes_with_one_tid_are_two_threads():
    path, _ = imported(spans(span(5, "a", 10, 10, pid=1), span(5, "b", 30, 10, pid=2), span(2**40, "c", 50, 10), span(0, "d", 70, 10)))
    got = regions(path)
    equal(len({g for g, _ in got}), 4)
    equal(sorted(n for _, n in got), list("abcd"))


@test
def json_is_no_recording():
    for text in ("{}", "[]", '{"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "pid": 1, "tid": 1}]}'):
        _, err = imported(text, code=1)
        assert "no known scheduling event" in err, err


@test
def a_real_recording_by_perf_is_read_without_a_line_left_over():
    path, err = imported(open(os.path.join(DATA, "perf-6.1.txt")).read())
    assert "not an event" not in err and "not events" not in err and "left out" not in err and "fields" not in err, err
    # 20 times: pong reads what pp has written, sleeps holding the mutex, and wakes pp.
    wakers = [w for s, b, e, w in states(path)[15881] if s == "Waiting"]
    assert wakers and set(wakers) <= {15885, 0} and wakers.count(15885) >= 15, wakers
    kinds = {kind for (g, _), (_, kind) in reasons(path).items() if g == 15885}
    equal(kinds, {"sleep", "read"})

# MARK: Perfetto. Numbers of fields: protos/perfetto/trace of Perfetto.


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def message(*fields):
    """Encodes (number, value): an integer, a text, or the bytes of a message or packed list."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(value)) + value
    return out


STATE_BITS = {"R": 0, "S": 1, "D": 2, "R+": 256}
SWITCH = re.compile(r"prev_comm=(.*) prev_pid=(\d+) prev_prio=120 prev_state=(\S+) ==> next_comm=(.*) next_pid=(\d+) ")
FTRACE = {"wakeup": 17, "waking": 20, "wakeup_new": 114}


def ftrace_event(tid, us, event, flags=0):
    """One FtraceEvent equivalent to a line of perf."""
    head = [(1, us * 1000), (2, tid)] + ([(5, flags)] if flags else [])
    found = SWITCH.search(event)
    if found:
        was, was_tid, state, to, to_tid = found.groups()
        body = message((1, was), (2, int(was_tid)), (3, 120), (4, STATE_BITS[state]), (5, to), (6, int(to_tid)), (7, 120))
        return message(*head, (4, body))
    found = re.match(r"sched:sched_(\w+): comm=(.*) pid=(\d+) prio", event)
    if found:
        kind, comm, about = found.groups()
        return message(*head, (FTRACE[kind], message((1, comm), (2, int(about)), (3, 120), (4, 1), (5, 0))))
    comm, parent, child = re.search(r"fork: comm=(.*) pid=(\d+) child_comm=.* child_pid=(\d+)", event).groups()
    return message(*head, (239, message((1, comm), (2, int(parent)), (3, comm), (4, int(child)))))


def bundle(cpu, *fields):
    """A packet with the events of a CPU."""
    return message((1, message((8, 1), (1, message((1, cpu), *fields)))))


def compact(lines):
    """CompactSched with the switches and wakings of a CPU."""
    names, columns, last = [], {}, {}

    def column(number, value):
        columns[number] = columns.get(number, b"") + varint(value)

    def name(text):
        if text not in names:
            names.append(text)
        return names.index(text)

    for us, event in lines:
        found = SWITCH.search(event)
        time, first = us * 1000, 1 if found else 7
        column(first, time - last.get(first, 0))
        last[first] = time
        if found:
            _, _, state, to, to_tid = found.groups()
            for number, value in ((2, STATE_BITS[state]), (3, int(to_tid)), (4, 120), (6, name(to))):
                column(number, value)
        else:
            comm, about = re.search(r"comm=(.*) pid=(\d+)", event).groups()
            for number, value in ((8, int(about)), (9, 0), (10, 120), (11, name(comm)), (12, 1)):
                column(number, value)
    return message(*((5, text) for text in names), *sorted(columns.items()))


def is_compact(event):
    return SWITCH.search(event) or "sched_waking" in event


@test
def perfettos_events_mean_the_same():
    # The bundles of the CPUs follow each other, whatever their times.
    whole = b"".join(
        bundle(cpu, *((2, ftrace_event(tid, us, event)) for _, tid, at, us, event in STORY if at == cpu)) for cpu in (1, 0)
    )
    path, err = imported(whole)
    has_states_of_the_story(path)
    assert "Perfetto" in err and "left out" not in err, err
    names = {row["id"]: row["name"] for row in answer("goroutines", path)["goroutines"]}
    equal(names, {100: "main", 101: "my worker"})


@test
def perfettos_compact_events_mean_the_same():
    packed = b"".join(
        bundle(
            cpu,
            *((2, ftrace_event(tid, us, event)) for _, tid, at, us, event in STORY if at == cpu and not is_compact(event)),
            (4, compact([(us, event) for _, _, at, us, event in STORY if at == cpu and is_compact(event)])),
        )
        for cpu in (1, 0)
    )
    path, err = imported(packed)
    has_states_of_the_story(path)
    assert "left out" not in err, err


@test
def what_perfetto_says_of_interrupts_and_of_what_is_unknown():
    events = [
        (100, T, switch("swapper/0", 0, "R", "main", 100), 0),
        (100, T + 100, wake("waking", "other", 200), 0x08),  # TRACE_FLAG_HARDIRQ
        (100, T + 200, switch("main", 100, "R+", "other", 200), 0),
        (200, T + 300, switch("other", 200, "S", "main", 100), 0),
    ]
    data = bundle(0, (2, ftrace_event(200, T - 100, switch("other", 200, "S", "swapper/0", 0))))
    data += bundle(0, *((2, ftrace_event(tid, us, event, flags)) for tid, us, event, flags in events), (3, 1))
    data += bundle(0, (2, message((1, T * 1000), (2, 100), (11, message((1, 5))))))  # cpu_frequency
    data += message((1, message((8, 1), (11, message((9, 4))))))  # a counter
    path, err = imported(data)
    got = states(path)
    equal([s for s in got[200] if s[0] == "Waiting"][0], ("Waiting", T - 100, T + 100, 0))
    assert ("Runnable", T + 200, T + 300, 0) in got[100], got  # preempted: prev_state 256
    assert "ftrace event 11 1" in err and "track event, type 4 1" in err and "1 event was lost" in err, err


# MARK: Perfetto's track events, in protobuf's text form


def encoded(text):
    proto = os.path.join(os.path.dirname(os.path.abspath(__file__)))
    if not shutil.which("protoc"):
        raise Skip("no protoc")
    p = subprocess.run(["protoc", "--encode=Trace", f"--proto_path={proto}", "perfetto.proto"], input=text.encode(), capture_output=True)
    assert p.returncode == 0, p.stderr
    return p.stdout


def packets(*texts):
    return encoded("\n".join("packet { %s }" % text for text in texts))


def thread_track(uuid, tid, name, pid=1):
    return f'track_descriptor {{ uuid: {uuid} thread {{ pid: {pid} tid: {tid} thread_name: "{name}" }} }}'


def track_event(us, what, sequence=1, packet=""):
    return f"timestamp: {us * 1000} trusted_packet_sequence_id: {sequence} {packet} track_event {{ {what} }}"


# The same events as SPANS, with a sequence per thread; the tracks are described at the end.
BEGIN, END, INSTANT, COUNTER = "type: 1", "type: 2", "type: 3", "type: 4"
DEFAULTS = "sequence_flags: 1 trusted_packet_sequence_id: {0} trace_packet_defaults {{ track_event_defaults {{ track_uuid: {1} }} }}"
TRACKS = (
    DEFAULTS.format(1, 110), DEFAULTS.format(2, 111),
    track_event(100, f"{BEGIN} name_iid: 5", packet='interned_data { event_names { iid: 5 name: "parse" } event_names { iid: 6 name: "lex" } }'),
    track_event(150, f"{BEGIN} name_iid: 6"), track_event(250, END),
    track_event(280, f"{BEGIN} name: \"send\" flow_ids: 7"), track_event(280, END), track_event(300, END),
    track_event(50, f"{BEGIN} name: \"first\"", 2), track_event(70, END, 2),
    track_event(400, f"{BEGIN} name_iid: 5 terminating_flow_ids: 7", 2, packet='interned_data { event_names { iid: 5 name: "work" } }'),
    track_event(450, f"{INSTANT} name: \"mark\"", 2), track_event(500, END, 2),
    track_event(100, f"{BEGIN} track_uuid: 112 name: \"request\""), track_event(500, f"{END} track_uuid: 112", 2),
    thread_track(110, 10, "main"), thread_track(111, 11, "w\u00f6rker"), 'track_descriptor { uuid: 112 name: "requests" parent_uuid: 110 }',
)  # fmt: skip


@test
def slices_of_perfetto_are_regions_of_threads_that_run_meanwhile():
    path, err = imported(packets(*TRACKS))
    assert "fields" not in err and "left out" not in err, err
    got = states(path)
    equal(without_instants(got[10])[:2], [("Waiting", 50, 100, 0), ("Running", 100, 300, 0)])
    # Ready from the start of the flow.
    equal(without_instants(got[11])[:4], [("Running", 50, 70, 0), ("Waiting", 70, 280, 10), ("Runnable", 280, 400, 0), ("Running", 400, 500, 0)])
    equal({k: v for k, v in regions(path).items() if k[1] != "send"},
          {(10, "parse"): (100, 300), (10, "lex"): (150, 250), (11, "first"): (50, 70), (11, "work"): (400, 500)})
    # A slice on a track that belongs to no thread is a task.
    equal([(t["name"], t["start_ns"] // 1000, t["end_ns"] // 1000, t["complete"]) for t in answer("tasks", path)["tasks"]],
          [("request", 100, 500, True)])
    equal({g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}, {10: "main", 11: "wörker"})
    assert "mark" in good_text("print", path)


@test
def interned_names_are_those_of_the_sequence_since_it_began_anew():
    def names(iid, name):
        return f'interned_data {{ event_names {{ iid: {iid} name: "{name}" }} }}'

    def span(us, sequence, packet=""):
        return track_event(us, f"{BEGIN} name_iid: 1", sequence, packet), track_event(us + 5, END, sequence)

    path, err = imported(packets(
        thread_track(110, 10, "a"), thread_track(111, 11, "b"), DEFAULTS.format(1, 110), DEFAULTS.format(2, 111),
        *span(10, 1, names(1, "x")), *span(20, 2, names(1, "y")), *span(30, 1),
        DEFAULTS.format(1, 110), *span(40, 1), *span(50, 1, names(1, "z")), *span(60, 2)))  # fmt: skip
    of = [(r["goroutine"], r["name"], r["start_ns"] // 1000) for r in answer("regions", "--members", path)["regions"]]
    equal(sorted(of, key=lambda r: r[2]), [(10, "x", 10), (11, "y", 20), (10, "x", 30), (10, "", 40), (10, "z", 50), (11, "y", 60)])


@test
def times_of_other_clocks_are_converted_by_snapshots():
    def clocks(*readings, sequence=9):
        return f"trusted_packet_sequence_id: {sequence} clock_snapshot {{ %s }}" % " ".join("clocks { %s }" % r for r in readings)

    def span(at, name, sequence, packet):
        return (f'timestamp: {at} trusted_packet_sequence_id: {sequence} {packet} track_event {{ {BEGIN} name: "{name}" }}')

    # CLOCK_MONOTONIC (3) is 1 ms behind CLOCK_BOOTTIME (6), and 2 ms after a suspend. Clock 64 of sequence 1 counts
    # microseconds from one event to the next.
    path, err = imported(packets(
        thread_track(110, 10, "a"), thread_track(111, 11, "b"), DEFAULTS.format(1, 110), DEFAULTS.format(2, 111),
        clocks("clock_id: 3 timestamp: 1000000", "clock_id: 64 timestamp: 500 is_incremental: true unit_multiplier_ns: 1000", sequence=1),
        "trusted_packet_sequence_id: 1 trace_packet_defaults { timestamp_clock_id: 64 }",
        span(100, "a", 1, ""), span(50, "b", 1, ""), span(1300000, "c", 1, "timestamp_clock_id: 3"),
        "timestamp: 20 trusted_packet_sequence_id: 1", span(30, "d", 1, ""),
        span(5000000, "e", 2, "timestamp_clock_id: 3"), span(2000000, "f", 2, ""),
        # The machine's clocks come last.
        clocks("clock_id: 6 timestamp: 6000000", "clock_id: 3 timestamp: 4000000"),
        clocks("clock_id: 6 timestamp: 2000000", "clock_id: 3 timestamp: 1000000")))  # fmt: skip
    of = {r["name"]: r["start_ns"] // 1000 for r in answer("regions", "--members", path)["regions"]}
    first = min(of.values())
    equal({name: us - first for name, us in of.items()},
          {"f": 0, "a": 100, "b": 150, "d": 200, "c": 300, "e": 5000})  # fmt: skip


@test
def legacy_events_mean_what_their_letter_says():
    def legacy(phase, more="", legacy=""):
        return f"trusted_packet_sequence_id: 1 track_event {{ legacy_event {{ phase: {ord(phase)} {legacy} }} {more} }}"

    head = ("trusted_packet_sequence_id: 1 incremental_state_cleared: true "
            'thread_descriptor { pid: 1 tid: 10 thread_name: "main" reference_timestamp_us: 1000 } '
            'interned_data { event_names { iid: 1 name: "job" } event_categories { iid: 2 name: "c" } }')  # fmt: skip
    path, err = imported(packets(
        head,
        legacy("X", "timestamp_delta_us: 100 name: \"x\"", "duration_us: 200"), legacy("B", "timestamp_delta_us: 50", "name_iid: 1"),
        legacy("E", "timestamp_delta_us: 20"), legacy("X", "timestamp_absolute_us: 1500 name: \"other\"", "duration_us: 10 tid_override: 11"),
        legacy("b", "timestamp_delta_us: 0 name: \"t\" category_iids: 2", "unscoped_id: 5"),
        legacy("e", "timestamp_delta_us: 100 categories: \"c\"", "unscoped_id: 5"), legacy("e", "timestamp_delta_us: 1", "unscoped_id: 5"),
        legacy("C", "timestamp_delta_us: 1 name: \"n\""), legacy("i", "timestamp_delta_us: 1 name: \"mark\"")))  # fmt: skip
    assert "1 event left out because of unexpected fields" in err and "track event, phase C 1" in err, err
    got = regions(path)
    first = min(begin for begin, _ in got.values())
    equal({key: (b - first, e - first) for key, (b, e) in got.items()}, {(10, "x"): (0, 200), (10, "job"): (50, 70), (11, "other"): (400, 410)})
    (task,) = answer("tasks", path)["tasks"]
    equal((task["name"], task["end_ns"] // 1000 - task["start_ns"] // 1000), ("t", 100))


@test
def tracks_that_no_thread_writes_are_threads_of_their_own():
    path, err = imported(packets('track_descriptor { uuid: 1 static_name: "queue" }', 'track_descriptor { uuid: 2 name: "disk" parent_uuid: 1 }',
                                 track_event(10, f"{BEGIN} track_uuid: 1 name: \"a\""), track_event(20, f"{BEGIN} track_uuid: 2 name: \"b\""),
                                 track_event(30, f"{END} track_uuid: 1"), track_event(40, f"{END} track_uuid: 2"), track_event(50, END)))  # fmt: skip
    assert "1 event left out because of unexpected fields" in err, err  # an end on track 0 without a begin
    names = {g["id"]: g["name"] for g in answer("goroutines", path, "--members")["goroutines"]}
    equal({(names[g], name): us for (g, name), us in regions(path).items()}, {("queue", "a"): (10, 30), ("disk", "b"): (20, 40)})


@test
def with_the_kernels_events_slices_do_not_decide_when_threads_run():
    whole = b"".join(
        bundle(cpu, *((2, ftrace_event(tid, us, event)) for _, tid, at, us, event in STORY if at == cpu)) for cpu in (0, 1)
    )
    kernel, _ = imported(whole)
    runs = [s for s in states(kernel)[101] if s[0] == "Running"]
    at = runs[0][1]
    assert runs[0][2] - at >= 3, runs
    slices = (track_event(at + 1, f'{BEGIN} name: "r"'), track_event(runs[-1][2] - 1, END))
    both, err = imported(whole + packets(thread_track(7, 101, "my worker"), DEFAULTS.format(1, 7), *slices))
    equal(states(both), states(kernel))
    equal(regions(both), {(101, "r"): (at + 1, runs[-1][2] - 1)})


@test
def an_export_for_perfetto_can_be_imported():
    path, err = imported(good("export", "--to=perfetto", os.path.join(os.path.dirname(DATA), "..", "..", "examples", "traces", "load-go1.23.trace")))
    assert "left out because" not in err, err
    assert answer("regions", path)["regions"]


def compressed(*parts):
    """Packets with compressed_packets, one for each part."""
    return b"".join(message((1, message((50, zlib.compress(part))))) for part in parts)


@test
def compressed_packets_mean_what_is_in_them():
    parts = [bundle(cpu, *((2, ftrace_event(tid, us, event)) for _, tid, at, us, event in STORY if at == cpu)) for cpu in (1, 0)]
    whole, err = imported(parts[0] + compressed(parts[1], b""))
    has_states_of_the_story(whole)
    assert "left out" not in err, err
    # A damaged packet is read up to the damage, and reading continues after it.
    packed = compressed(*parts)
    cut = message((1, message((50, zlib.compress(parts[0])[:-20]))))
    _, err = imported(cut + compressed(parts[1]))
    assert "left out" in err, err
    equal(states(imported(packed)[0]), states(whole))


@long
def compressed_packets_have_the_limits_of_compressed_files():
    zeros = compressed(message((1, bytes(65 << 20))))
    code, _, err = run("import", "-", "-o", os.path.join(WORK, "bomb.trace"), stdin=zeros)
    assert code != 0 and "inflated_ratio" in err, (code, err)


@test
def damaged_protocol_buffers_are_read_up_to_there():
    lines = [(2, ftrace_event(tid, us, event)) for _, tid, at, us, event in STORY if at == 1]
    data = bundle(1, *lines)
    for size in range(1, len(data), 7):
        run("import", "-", "-o", os.path.join(WORK, "cut.trace"), stdin=data[:size])
    path, err = imported(data + data[: len(data) // 2])
    assert "1 event left out" in err, err
    equal([s[0] for s in states(path)[101]][:2], ["Runnable", "Running"])
    # Impossible numbers: a TID above Linux's limit, a number of more than 64 bits.
    wrong = bundle(1, *lines, (2, ftrace_event(1 << 23, T, switch("a", 1 << 23, "S", "b", 1 << 40))))
    assert "1 event left out" in imported(wrong)[1]
    # A text may begin with an empty line.
    path, err = imported("\n" + perf(*STORY))
    has_states_of_the_story(path)


# MARK: Many events


@long
def what_is_too_late_is_counted_and_left_out():
    early = perf(("late", 500, 3, T - 100, switch("late", 500, "S", "swapper/3", 0)))
    # The window holds 65,536 events.
    path, err = imported(perf(*many(65_535)) + early)
    assert "late" not in err and 500 in states(path), err
    path, err = imported(perf(*many(65_537)) + early)
    assert "1 event left out because it came too late" in err and 500 not in states(path), err


@long
def a_long_recording_has_generations_and_states_go_on_in_them():
    count = 700_000
    sleeper = [("s", 600, 3, T - 5, switch("s", 600, "S", "swapper/3", 0))]
    # A thread that is first seen late did not exist from the start of the trace.
    end = T + count * 10
    late = [("t", 300, 2, end + 10, wake("waking", "s", 600)), ("swapper", 0, 3, end + 20, switch("swapper/3", 0, "R", "new", 700)),
            ("new", 700, 3, end + 30, switch("new", 700, "S", "swapper/3", 0))]  # fmt: skip
    path, err = imported(perf(*sleeper, *many(count), *late))
    generations = int(re.search(r"generations +(\d+)", good_text("check", path)).group(1))
    assert generations > 1, generations
    got = states(path)
    equal(got[600], [("Running", T - 5, T - 5, 0), ("Waiting", T - 5, end + 10, 300), ("Runnable", end + 10, end + 30, 0)])
    equal([s for s in got[700] if s[1] < s[2]], [("Running", end + 20, end + 30, 0)])
    # Half of the turns; it also ran for 5 before the first one, and its last one is 30 longer.
    equal(sum(e - b for s, b, e, w in got[300] if s == "Running"), count * 10 // 2 + 5 + 30)


sys.exit(main())
