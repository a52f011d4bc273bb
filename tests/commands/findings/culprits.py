#!/usr/bin/env python3
"""For each kind of finding, a trace that has it, and the goroutine to blame, as the trace was made. As a script it writes
each trace to FOLDER/KIND.trace and prints the culprits as JSON, null where it is no single goroutine.

usage: culprits.py TRAIL SOURCE_ROOT FOLDER
"""

import json
import os
import shutil
import sys

import alone
import answers
import balance
import cpus
import garbage
import handoffs
import locks
import outside
import polling
import programs
import queues
import stuck
import tasks
from command import answer, equal, good_text
from made import MS, US, WORK_STACK, Trace
from tap import test


class Made(Exception):
    """The trace that was to be made is the last one."""


def stop(trace, end, *args):
    trace.path(end)
    raise Made


def over_limit():
    """Goroutine 1 has waited for a lock for longer than the recording allows, which goroutine 2 held."""
    text = "waiting for mutex user_mu in thread main (1) took 100 ms (> 50.0 ms)"
    trace = Trace(2)
    trace.string(f"trail.recorded slow pid=0 count=1 cpu={100 * MS} recorder={MS + 1000} name={text}")
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.log(MS - 10, 0, "wait", "mutex user_mu")
    trace.block(MS, 0, "sync", ("main.lookup", "main.main"))
    trace.wake(101 * MS, 1, 1, ("main.vacuum", "main.worker"))
    trace.start(101 * MS + 10, 0, 1)
    trace.summary(2000 * MS)


def crossed_regions():
    """Goroutine 2 ends a region before one that it began within that."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    for i, (what, name) in enumerate((("Begin", "a"), ("Begin", "b"), ("End", "a"), ("End", "b"))):
        trace.at((1 + i) * MS, 1, f"UserRegion{what} task=0 name_string={trace.string(name)} stack={trace.stack(WORK_STACK)}")
    trace.summary(10 * MS)


# The goroutine of the finding waits for the culprit, which the page looks for.
AWAITED = True

CULPRITS = {
    "deadlock": (1, lambda: stuck.waiting([(["mutex a"], "mutex b"), (["mutex b"], "mutex a")])),  # the first of two
    "maybe-deadlock": (1, lambda: stuck.locked([stuck.lock_in("deposit"), stuck.lock_in("pay")])),  # the first of two
    "never-woken": (2, lambda: programs.all_wait("condition queue_cv")),
    "leak": (10, lambda: programs.created(95 * MS)),  # the first of many
    "never-done": (1, stuck.signalled),  # waits for all of the others
    "open-wait": (2, lambda: stuck.waiting([([], "file lock a"), (["file lock a"], "read socket:[7]")]), AWAITED),
    "slow-task": (2, tasks.a_slow_task_says_what_it_waited_for, AWAITED),
    "slow-region": (2, tasks.a_slow_region_says_what_it_waited_for_and_that_it_assisted, AWAITED),
    "slow-wait": (2, over_limit, AWAITED),
    "writer-starved": (1, lambda: locks.starved(10)),  # the writer: the readers take turns
    "lock-serialises": (1, lambda: programs.passed_on(80 * MS), AWAITED),
    "lock-contention": (1, lambda: locks.crowded(12, 6 * MS), AWAITED),
    "long-hold": (2, lambda: locks.held_once(110 * MS, 2000 * MS), AWAITED),
    "holder-not-running": (2, lambda: locks.holder_waits_for_a_cpu(ready=210 * MS), AWAITED),
    "pool-too-small": (2, programs.pooled, AWAITED),
    "queue": (1, lambda: programs.full(40), AWAITED),
    "permits": (1, lambda: programs.permitted(40), AWAITED),
    "bottleneck": (1, lambda: programs.alone(30 * MS, 20 * MS), AWAITED),
    "futile-wakeups": (2, lambda: programs.herd(2 * US)),  # woken in vain
    "missed-signal": (3, lambda: handoffs.missed(4)),  # not reached by the signal
    "slow-producer": (1, programs.produced, AWAITED),
    "hand-offs": (1, lambda: programs.handed(10000), AWAITED),
    "spins": (1, lambda: handoffs.counted("yield 1000 20ms")),
    "once": (1, lambda: balance.initialised(300 * MS), AWAITED),
    "imbalance": (1, lambda: programs.workers(60 * MS, 20 * MS), AWAITED),
    "straggler": (13, lambda: balance.straggles(80 * MS)),
    "sleeper": (2, lambda: balance.made(8 * MS), AWAITED),
    "one-at-a-time": (1, lambda: programs.one_by_one(4)),  # the first of four
    "polling": (1, lambda: programs.polled(201)),
    "late-timer": (2, polling.late_timers),  # main.hog
    "outside": (1, outside.child_ends),
    "database": (1, lambda: outside.locked_out(60)),
    "slow-answer": (2, lambda: programs.outside(19 * [MS] + [100 * MS], "read pipe:[7]", peer_sleeps=90 * MS), AWAITED),
    "slow-run": (1, lambda: answers.ran(40, 60 * MS, 20)),
    "slow-peer": (2, lambda: answers.asked_server(5 * MS), AWAITED),
    "time-out": (2, lambda: outside.timed_out(20 * MS, 25 * MS)),
    "blocking-calls": (2, lambda: outside.called(65 * MS, 120 * MS)),
    "unseen-waits": (1, lambda: alone.unseen(50)),
    "one-runs-alone": (1, lambda: programs.lone(12 * MS)),
    "ready-while-idle": (None, lambda: programs.lone(12 * MS, idle=(2,), second=True)),
    "keeps-p": (2, lambda: programs.kept(50 * MS)),
    "delays-stop": (2, lambda: programs.stopped(12 * MS)),
    "long-pause": (1, lambda: programs.paused(12 * MS)),
    "pause-share": (2, garbage.a_function_that_stops_the_world_again_and_again_is_named),
    "gc-share": (None, lambda: programs.collected(30 * MS)),
    "forced-gc": (1, lambda: garbage.collects(60 * MS, 290 * MS)),
    "ready": (2, lambda: cpus.queued(0.3, 12 * MS)),  # has no CPU
    "serial-phase": (1, lambda: programs.alone(30 * MS, 20 * MS, reason="select")),
    "misused-annotation": (2, crossed_regions),
}


def path_of(make):
    """The first trace of which this function asks for a summary."""
    real, Trace.summary = Trace.summary, stop
    try:
        make()
    except Made:
        return Trace.made[-1]
    finally:
        Trace.summary = real
    raise AssertionError("it makes no trace")


@test
def every_finding_has_a_place_and_every_command_that_it_names_runs():
    for kind, (culprit, make, *is_awaited) in CULPRITS.items():
        path = path_of(make)
        found = answer("summary", path)["findings"]
        own = [f.get("goroutine") for f in found if f["kind"] == kind]
        equal((len(own), own == [culprit]), (1, not is_awaited), (kind, own))
        # The page jumps there. Only a misused annotation is a moment.
        assert all(f["end_ns"] - f["begin_ns"] >= (f["kind"] != "misused-annotation") for f in found), found
        commands = [line.split()[1:] for line in good_text("summary", path).splitlines() if line.startswith("  trail ")]
        assert commands, kind
        for words in commands:
            assert good_text(*words), words


def main():
    for kind, (_, make, *_) in CULPRITS.items():
        shutil.copy(path_of(make), os.path.join(sys.argv[3], kind + ".trace"))
    print(json.dumps({kind: culprit for kind, (culprit, *_) in CULPRITS.items()}))


if __name__ == "__main__":
    main()
