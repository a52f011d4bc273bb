"""The kinds and objects of waits of a program with known waits: see waits.c. TAP.

usage: waits.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
TRACE = os.path.join(work.folder("waits"), "x.trace")
# HOLD_MS, LIMIT_MS and SHORT_MS of waits.c, minus the difference between two clocks.
HOLD_NS, LIMIT_NS, SHORT_NS = 49_000_000, 29_000_000, 1_000_000
JOBS = 6


def run(*args, right=(0,)):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120)
    assert done.returncode in right, f"{args}: status {done.returncode}: {done.stderr}"
    return done.stdout


SAID = dict(line.split() for line in run(TRAIL, "record", "-q", "--no-children", "-o", TRACE, "--", PROGRAM).splitlines())


def hits(pattern):
    # Status 1 means no hits.
    found = json.loads(run(TRAIL, "find", "--json", "--limit=0", TRACE, pattern, right=(0, 1)) or '{"hits": []}')["hits"]
    return [(h["end_ns"] - h["begin_ns"], h["steps"][0]) for h in found]


def in_function(name, least_ns, state="block"):
    """Returns the waits in a function of the program that last at least `least_ns`."""
    return [(s["wait_kind"], s.get("object"), s["reason"]) for ns, s in hits(f"{state} in {name}") if ns >= least_ns]


def equal(ours, right):
    assert ours == right, f"{ours!r}, not {right!r}"


@test
def each_wait_has_its_kind_and_object():
    for name, kind, thing, reason in (
        ("wait_for_mutex", "mutex", "stats_mu", "sync"),
        ("wait_for_rwlock", "rwlock", "config_lock", "sync"),
        ("wait_for_semaphore", "semaphore", "tickets", "sync"),
        ("wait_for_thread", "join", "end_late", "sync"),
    ):
        assert (kind, thing, reason) in in_function(name, HOLD_NS), (name, in_function(name, HOLD_NS))
    reads = in_function("wait_for_pipe", HOLD_NS)
    assert [r for r in reads if r[0] == "read" and r[1].startswith("pipe") and r[2] == "network"], reads


@test
def a_wait_in_syslog_is_seen():
    equal([w[:2] for w in in_function("wait_in_syslog", HOLD_NS)], [("write", "syslog")])


@test
def a_wait_for_a_process_says_which():
    for name, what in (("wait_by_waitpid", "waitpid"), ("wait_by_wait4", "wait4"), ("wait_by_waitid", "waitid")):
        ((kind, thing, _),) = in_function(name, HOLD_NS, "syscall")
        # A forked process has its program's name, if the recorder saw it in time.
        assert kind == "child" and thing in (SAID[what], f"{SAID[what]} ({os.path.basename(PROGRAM)[:15]})"), (name, thing)
    equal([w[:2] for w in in_function("wait_by_pidfd", HOLD_NS, "syscall")], [("child", SAID["pidfd"])])
    equal([w[:2] for w in in_function("poll_pidfd", HOLD_NS)], [("poll", f"process {SAID['poll']}")])


@test
def the_parent_of_a_vfork_waits_for_the_child():
    if "QEMU_LD_PREFIX" in os.environ:
        raise tap.Skip("qemu forks instead")
    ((kind, thing, _),) = in_function("wait_in_vfork", HOLD_NS, "syscall")
    assert kind == "child" and thing in (SAID["vfork"], f"{SAID['vfork']} ({os.path.basename(PROGRAM)[:15]})"), thing
    # The child's sleep is not a wait of this thread.
    equal(in_function("wait_in_vfork", 0), [])


@test
def a_wait_for_several_futexes_is_ended_by_the_wake_of_one():
    if SAID["futexes"] == "0":
        raise tap.Skip("this kernel has no futex_waitv")
    waits = [w for w in in_function("wait_for_futexes", HOLD_NS) if w[0] == "futex"]
    equal(waits, [("futex", "first_word", "sync")])
    assert len(hits("block[sync] in wait_for_futexes by wake_second")) == 1


@test
def a_wait_for_the_other_end_of_a_fifo_has_its_path():
    equal([w[:2] for w in in_function("wait_for_fifo", HOLD_NS, "syscall")], [("file", SAID["fifo"])])
    equal([w[:2] for w in in_function("wait_shortly_for_fifo", SHORT_NS, "syscall")], 5 * [("file", SAID["fifo"])])
    # Also an open that has not returned.
    equal([w[:2] for w in in_function("open_idle_fifo", HOLD_NS, "syscall")], [("file", SAID["idle"])])


@test
def a_wait_for_a_queue_or_a_set_says_which():
    number, key = SAID["set"].split("-")
    for name, kind, thing in (
        ("wait_by_mq_receive", "read", SAID["posix"]),
        ("wait_by_mq_send", "write", SAID["posix"]),
        ("wait_by_semop", "semaphore", f"set {number} (key {key})"),
        ("wait_by_msgrcv", "read", f"message queue {SAID['queue']}"),
        ("wait_by_msgsnd", "write", f"message queue {SAID['queue']}"),
    ):
        assert (kind, thing) in [w[:2] for w in in_function(name, HOLD_NS)], (name, in_function(name, HOLD_NS))
    equal([w[:2] for w in in_function("time_out_of_operation", LIMIT_NS)], [("semaphore", f"set {SAID['unnamed']}")])


@test
def a_wait_of_splice_is_for_one_of_two_unless_an_offset_tells_which():
    both = ("poll", f"2 descriptors: {SAID['source']}, {SAID['sink']}")
    for name, right in (
        ("wait_in_splice", both),
        ("wait_in_tee", both),
        ("splice_into_file", ("read", SAID["source"])),
        ("splice_from_file", ("write", SAID["sink"])),
    ):
        assert right in [w[:2] for w in in_function(name, HOLD_NS)], (name, in_function(name, HOLD_NS))
    equal(len(hits("block[network] in splice_into_file by feed_late")), 1)
    equal(len(hits("block[network] in splice_from_file by drain_late")), 1)


@test
def a_thread_has_the_name_that_it_is_given():
    threads = {w["name"]: w["created"] for w in json.loads(run(TRAIL, "summary", "--json", TRACE))["waits"]}
    assert "named by prctl" in threads and "name_itself" not in threads, threads
    equal((threads["is_named"], threads["named by other"]), (1, 1))


@test
def yields_in_a_row_are_counted_where_they_are():
    events = [json.loads(line) for line in run(TRAIL, "print", "--format=jsonl", TRACE).splitlines()]
    logs = [e for e in events if e.get("type") == "UserLog" and e["category"] == "counted"]
    yields = [e for e in logs if e["message"].startswith("yield ") and "spin_with_yields" in [f["func"] for f in e["stack"]]]
    # The first one may include earlier yields from elsewhere.
    counts = [int(e["message"].split()[1]) for e in yields][1:]
    assert 0 < sum(counts) < int(SAID["yields"]), (logs, SAID["yields"])


@test
def a_wait_that_its_time_limit_ended_says_so():
    main = [w for w in json.loads(run(TRAIL, "summary", "--json", TRACE))["waits"] if w["name"] == "main"][0]["blocked"]
    late = {b["wait_kind"]: b.get("timed_out", 0) for b in main}
    equal({k: late.get(k) for k in ("condition", "semaphore", "poll", "mutex", "rwlock", "read", "join")},
          {"condition": 1, "semaphore": 2, "poll": 1, "mutex": 0, "rwlock": 0, "read": 1, "join": 0})
    locks = {lock["name"]: lock.get("timed_out", 0) for lock in json.loads(run(TRAIL, "locks", "--json", TRACE))["locks"]}
    equal([locks[n] for n in ("queue_filled", "tickets", "stats_mu")], [1, 1, 0])
    segments = json.loads(run(TRAIL, "why", "--json", "--goroutine=1", TRACE))["segments"]
    ended = sorted((s["wait_kind"], s["end_ns"] - s["begin_ns"]) for s in segments if s.get("timed_out"))
    equal([kind for kind, _ in ended], ["condition", "poll", "read", "semaphore", "semaphore", "signal"])
    # The others wait until an absolute time, so their waits may begin at any time before it.
    for kind in ("poll", "semaphore", "signal"):
        assert max(ns for of, ns in ended if of == kind) >= LIMIT_NS, ended


@test
def the_holder_is_named_with_how_long_it_held():
    held = [s for s in json.loads(run(TRAIL, "why", "--json", "--goroutine=1", TRACE))["segments"] if "held_ns" in s]
    found = {(s["awaited_kind"], s["awaited_object"], s["group"]): s["held_ns"] for s in held}
    # Lengths have three digits.
    for key in (("mutex", "stats_mu", "keep_mutex"), ("rwlock", "config_lock", "keep_rwlock")):
        assert found.get(key, 0) >= HOLD_NS * 0.99, found


@test
def a_worker_of_a_pool_waits_for_work():
    groups = {w["name"]: w["blocked"] for w in json.loads(run(TRAIL, "summary", "--json", TRACE))["waits"]}
    (worker,) = [b for b in groups["work"] if b["wait_kind"] == "condition"]
    # One wait per job.
    equal((worker["idle_count"], worker["count"], worker["idle_ns"]), (JOBS, JOBS, worker["sum_ns"]))
    equal([b["wait_kind"] for name, rows in groups.items() if name != "work" for b in rows if "idle_count" in b], [])
    # Waits that can be improved come first, unless --idle is given: these waits are the longest of
    # all.
    def place(*options):
        lines = run(TRAIL, "summary", "--limit=0", *options, TRACE).split("Waits that ended")[1].split("\n\n")[0]
        return [i for i, line in enumerate(lines.splitlines()) if " work " in line and "condition" in line][0]

    assert place("--idle") < place(), (place("--idle"), place())


@test
def waits_for_work_are_last_among_the_stacks_with_the_longest_waits():
    found = json.loads(run(TRAIL, "latency", "--json", "--limit=0", TRACE))["locks"]["stacks"]
    (work,) = [s for s in found if "idle_count" in s]
    equal((work["wait_kind"], work["idle_count"], work["idle_ns"]), ("condition", work["count"], work["ns"]))
    assert "work" in [f["name"] for f in work["stack"]], work

    def rows(*options):
        text = run(TRAIL, "latency", "--limit=0", *options, TRACE).split("(all)")[2]
        return [line for line in text.splitlines() if ": " in line and "longest" not in line]

    def place(all):
        return [i for i, row in enumerate(all) if " condition variable for work: work" in row][0]

    assert place(rows()) == len(rows()) - 1, rows()
    # With --idle it is placed by its length.
    equal(place(rows("--idle")), sum(s["ns"] > work["ns"] for s in found))


sys.exit(tap.main())
