#!/usr/bin/env python3
"""trail import of recordings made here with perf, ftrace and LTTng of a program with known wakers.
TAP.

usage: import_recorded.py TRAIL SOURCE_ROOT CC...

Skipped if a tool is missing or not permitted to record on this machine.
"""

import csv
import io
import os
import secrets
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, ROOT, WORK, answer, equal, good, good_text, run
from tap import Skip, main, test

CC = sys.argv[3:]
# A recording may contain every program on the machine, including other runs of this test: names are unique to this run.
FIRST, SECOND = (f"{name}-{secrets.token_hex(4)}" for name in ("ping", "pong"))
PROGRAM = os.path.join(WORK, FIRST)
RELAYS, LOCKS = 20, 10
# IDs in the kernel's events belong to the initial PID namespace (its inode is PROC_PID_INIT_INO); programs print those
# of their own.
IN_CONTAINER = os.stat("/proc/self/ns/pid").st_ino != 0xEFFFFFFC


def call(*args, **more):
    return subprocess.run(args, capture_output=True, text=True, timeout=120, **more)


def needs(tool):
    if not shutil.which(tool):
        raise Skip(f"no {tool}")


def built():
    if not os.path.exists(PROGRAM):
        p = call(*CC, "-O1", "-pthread", "-o", PROGRAM, os.path.join(ROOT, "tests", "commands", "import_recorded.c"))
        equal((p.returncode, p.stderr), (0, ""))
    return PROGRAM


def waits(path, tid):
    """The wakers of a thread's waits; None where unknown."""
    rows = csv.DictReader(io.StringIO(good_text("export", "--to=csv", "--table=states", path)))
    return [int(r["waker"]) if r["waker"] else None for r in rows if r["state"] == "Waiting" and int(r["goroutine"]) == tid]


def threads_wake_each_other(path, printed, interrupts):
    """Checks this except for timers, if the recording has interrupts, and for the first thread's
    waker when it is executed."""
    ids = {g["name"]: g["id"] for g in answer("goroutines", path, "--members")["goroutines"]}
    first, second = ids[FIRST], ids[SECOND]
    if not IN_CONTAINER:
        equal([first, second], [int(id) for id in printed])
    for waiter, waker in ((first, second), (second, first)):
        wakers = [w for w in waits(path, waiter) if w is not None]
        assert wakers.count(waker) >= RELAYS, (waiter, waker, wakers)
        assert not interrupts or set(wakers[-RELAYS:]) == {waker}, (waiter, waker, wakers)


@test
def perf_sched_records_who_woke_whom():
    needs("perf")
    data, path = os.path.join(WORK, "perf.data"), os.path.join(WORK, "perf.trace")
    p = call("perf", "sched", "record", "-o", data, "--", built(), "relay", SECOND)
    if p.returncode != 0 or not os.path.exists(data):
        raise Skip(f"perf cannot record: {(p.stderr.strip().splitlines() or ['?'])[0]}")
    good("import", data, "-o", path)
    threads_wake_each_other(path, p.stdout.split()[:2], interrupts=False)


@test
def ftrace_records_who_woke_whom():
    folder = f"/sys/kernel/tracing/instances/trail-test-{os.getpid()}"
    try:
        os.mkdir(folder)
    except OSError as error:
        raise Skip(f"ftrace cannot record: {error}") from error
    try:
        def put(name, text):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)

        put("buffer_size_kb", "4096")
        for event in ("sched_switch", "sched_waking", "sched_wakeup_new", "sched_process_fork"):
            put(f"events/sched/{event}/enable", "1")
        p = call(built(), "relay", SECOND)
        put("tracing_on", "0")
        with open(os.path.join(folder, "trace"), "rb") as f:
            text = f.read()
    finally:
        os.rmdir(folder)
    path = os.path.join(WORK, "ftrace.trace")
    good("import", "-", "-o", path, stdin=text)
    threads_wake_each_other(path, p.stdout.split()[:2], interrupts=True)


def lttng_daemon():
    """Starts a session daemon, or returns None if the system's is running."""
    if call("lttng", "--no-sessiond", "list").returncode == 0:
        return None
    daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while call("lttng", "--no-sessiond", "list").returncode != 0:
        if daemon.poll() is not None:
            raise Skip("lttng-sessiond does not start")
        time.sleep(0.1)
    return daemon


def lttng_records(folder):
    """The program's output while LTTng records its mutexes."""
    session = f"trail-test-{os.getpid()}"
    env = {**ENV, "LD_PRELOAD": "liblttng-ust-pthread-wrapper.so.1", "LTTNG_UST_REGISTER_TIMEOUT": "-1"}
    for args in (
        ("create", session, f"--output={folder}"),
        ("enable-event", "-s", session, "-u", "lttng_ust_pthread:*"),
        ("add-context", "-s", session, "-u", "-t", "vtid", "-t", "procname"),
        ("start", session),
    ):
        p = call("lttng", "--no-sessiond", *args)
        if p.returncode != 0:
            raise Skip(f"lttng {args[0]}: {p.stderr.strip() or p.stdout.strip()}")
    p = call(built(), "mutex", SECOND, env=env)
    call("lttng", "--no-sessiond", "destroy", session)
    if "cannot be preloaded" in p.stderr:
        raise Skip("no liblttng-ust-pthread-wrapper.so.1")
    return p.stdout.split()


@test
def lttng_records_who_waits_for_a_mutex_of_whom():
    for tool in ("lttng", "lttng-sessiond", "babeltrace2"):
        needs(tool)
    folder, path = os.path.join(WORK, "lttng"), os.path.join(WORK, "lttng.trace")
    built()
    daemon = lttng_daemon()
    try:
        holder, waiter, address = lttng_records(folder)
    finally:
        if daemon:
            daemon.terminate()
            daemon.wait(60)
    code, _, err = run("import", folder, "-o", path)
    equal(code, 0, err)
    assert "fields" not in err and "not an event" not in err and "not events" not in err, err
    locks = {(lock["wait_kind"], lock["object"]): lock["waits"] for lock in answer("locks", path)["locks"]}
    equal(locks.get(("mutex", address)), LOCKS, locks)
    # Every acquisition that LTTng recorded and that was released is a hold.
    text = call("babeltrace2", folder).stdout
    unlocks = sum("pthread_mutex_unlock" in line and address in line.lower() for line in text.splitlines())
    held = {(lock["wait_kind"], lock["object"]): lock["holds"] for lock in answer("locks", path)["locks"]}
    equal(held.get(("mutex", address)), unlocks, held)
    equal([w for w in waits(path, int(waiter)) if w is not None], [int(holder)] * LOCKS)


sys.exit(main())
