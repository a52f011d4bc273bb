"""After its time limit, a wait counts as ready, even without permission to read the kernel's wake-ups. TAP.

usage: late.py TRAIL PROGRAM     late.c
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from recorded import Trace
from tap import Skip

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:])
WORK = work.folder("late")
TRACE = os.path.join(WORK, "x.trace")
WAITS, WAIT_NS = 100, 2_000_000
# How much longer a wait may take without being late: timer slack, and entering and leaving the
# call.
BESIDE_NS = 150_000
NOBODY = 65534
WRITTEN_NS = 180_000_000
UNTIL = ("until", "date", "condition", "clock", "semaphore", "mutex", "rwlock", "join")


def record(how, *options):
    """Returns, for the thread that waits (late.c): the numbers that it prints, except the last; its
    ready and waiting times in the trace; and the last number."""
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    if os.path.exists(TRACE):
        os.unlink(TRACE)
    os.chmod(WORK, 0o777)
    command = [TRAIL, "record", *options, "-o", TRACE, "--", PROGRAM, how]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, **user)
    except PermissionError:
        raise Skip("another user may not read the folder of the build") from None
    assert done.returncode == 0, done
    # With the kernel's switches but not its wake-ups, the summary reports inferred readiness.
    summary = json.loads(subprocess.check_output([TRAIL, "summary", "--json", TRACE], text=True))
    inferred = os.geteuid() == 0 and "ready: inferred" not in done.stderr
    assert summary["recording"]["ready_inferred"] == ("ready: inferred after waits" in done.stderr), done
    assert not inferred or summary["recording"]["ready_inferred"], done
    rows = json.loads(subprocess.check_output([TRAIL, "goroutines", "--json", TRACE], text=True))["goroutines"]
    (row,) = [row for row in rows if row["name"] == "waits"]
    kernel, within, late, unknown = map(int, done.stdout.split())
    return kernel, within, late, row["sched_wait_ns"], sum(row["block_ns"].values()), unknown


for how in """nanosleep usleep clock thrd clock-until date poll poll-of-two ppoll select pselect epoll condition condition-clock
semaphore semaphore-clock mutex mutex-clock rwlock futex futex-until signal join""".split():
    for options in (), ("--switches=off",):

        def late(how=how, options=options):
            kernel, within, late, ready, waiting, unknown = seen = record(how, *options)
            until = subprocess.check_output([TRAIL, "print", TRACE], text=True).count('"until a time"')
            may_differ = kernel / 10 + WAITS * BESIDE_NS + unknown
            # A virtual machine without a CPU is late, too. Time between two waits appears only in
            # the kernel's switches.
            most = max(within, late) + (0 if options else kernel - within)
            assert within - may_differ <= ready <= most + may_differ, seen
            # Sleeps until a time are marked as such, those that were waits.
            assert (until > 0) == (how in ("clock-until", "date")) and until <= WAITS, (until, seen)
            # A time limit may pass before the call, if the thread lost its CPU on the way there.
            assert waiting <= WAITS * (WAIT_NS + BESIDE_NS) + kernel / 10 + unknown, seen
            assert waiting >= WAITS * WAIT_NS or how.endswith(UNTIL), seen

        late.__name__ = " ".join(("late", how, *options))
        tap.test(late)


@tap.test
def the_mutex_is_waited_for_from_the_time_limit_of_the_condition_on():
    done = subprocess.run([TRAIL, "record", "-q", "--switches=off", "-o", TRACE, "--", PROGRAM, "held"],
                          capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0, done
    waits = [w for w in Trace(TRAIL, TRACE).in_function("waits_here") if "condition" in w.object or "mutex" in w.object]
    # The thread may have waited for the mutex before it waited for the condition variable.
    begin = max(i for i, w in enumerate(waits) if w.object == "condition condition")
    limit, (condition, *mutexes) = int(done.stdout), waits[begin:]
    # Events older than 200 ms are written: main() was too late.
    if condition.end > limit + WRITTEN_NS and not mutexes:
        return
    (mutex,) = mutexes
    assert mutex.object == "mutex mutex", waits
    assert abs(condition.ready - limit) <= BESIDE_NS and mutex.begin >= condition.ready, (done.stdout, waits)
    assert "held" in mutex.waker_functions and mutex.end > mutex.ready > mutex.begin, waits


sys.exit(tap.main())
