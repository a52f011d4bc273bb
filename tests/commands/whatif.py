#!/usr/bin/env python3
"""trail whatif: traces whose lengths under changed conditions follow from arithmetic. TAP.

usage: whatif.py TRAIL SOURCE_ROOT [all]

With `all`, instead: the unchanged replay must reproduce the traces in the folder that TRAIL_TRACES names, or in
../shared/traces beside the source (skipped if there is none), and Go's tools must read the replays.

Comments describe schedules: what each goroutine does, and when, in milliseconds.
"""

import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, SHARED, WORK, answer, assembled, equal, good_text, run_text  # noqa: E402
from go_readers import go_tools  # noqa: E402
import tap
from sample import some
from tap import test

MS = 1_000_000
TIMER = 0  # actions of no goroutine


class Trace:
    """Events of goroutines at given times. Goroutine 1 is main and runs from 0 on; each has its own P, unless `lanes`
    lists goroutines that share one."""

    def __init__(self, cpus, lanes=None):
        self.events, self.strings, self.stacks, self.seq = [], {}, {}, {}
        self.functions = {1: "main"}
        self.cpus, self.lanes = cpus, lanes or {}
        self.samples = []
        self.order = 0

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def stack(self, *functions):
        for f in functions:
            self.string(f)
        return self.stacks.setdefault(functions, len(self.stacks) + 1)

    def add(self, ms, g, text):
        self.order += 1
        self.events.append((round(ms * MS), self.order, self.lanes.get(g, g), text))

    def next(self, g):
        self.seq[g] = self.seq.get(g, 0) + 1
        return self.seq[g]

    def create(self, ms, by, g, function):
        self.functions[g] = function
        self.add(ms, by, f"GoCreate dt=%d new_g={g} new_stack={self.stack(function)} stack={self.stack('main')}")

    def start(self, ms, g):
        self.add(ms, g, f"GoStart dt=%d g={g} g_seq={self.next(g)}")

    def log(self, ms, g, category, text):
        self.add(ms, g, f"UserLog dt=%d task=0 key_string={self.string(category)} value_string={self.string(text)} stack=0")

    def block(self, ms, g, what, *stack, reason="sync"):
        if what:
            self.log(ms, g, "wait", what)
        self.add(ms, g, f"GoBlock dt=%d reason_string={self.string(reason)} stack={self.stack(*(stack or (self.functions[g],)))}")

    def wake(self, ms, by, g):
        self.add(ms, by, f"GoUnblock dt=%d g={g} g_seq={self.next(g)} stack={self.stack(self.functions[by]) if by else 0}")

    def release(self, ms, by, lock, held_ms, to=None):
        self.log(ms, by, "held", f"{lock} {held_ms}ms")
        if to:
            self.wake(ms, by, to)

    def end(self, ms, g):
        self.add(ms, g, "GoDestroy dt=%d")

    def region(self, ms, g, name, what, task=0):
        self.add(ms, g, f"UserRegion{what} dt=%d task={task} name_string={self.string(name)} stack=0")

    def task(self, ms, g, number, name, what):
        parent = " parent_task=0" if what == "Begin" else ""
        named = f" name_string={self.string(name)}" if what == "Begin" else ""
        self.add(ms, g, f"UserTask{what} dt=%d task={number}{parent}{named} stack=0")

    def sample(self, ms, g, *stack):
        lane = self.lanes.get(g, g)
        self.samples.append(f"CPUSample time={1000 + round(ms * MS)} m={100 + lane} p={lane - 1} g={g} stack={self.stack(*stack)}")

    def batch(self, lane):
        lines = [f"EventBatch gen=1 m={100 + lane} time=1000 size=auto"]
        now = 0
        if lane != TIMER:
            lines.append(f"ProcStatus dt=1 p={lane - 1} pstatus=1")
            now = 1
        if lane == 1:
            lines += ["GoStatus dt=1 g=1 m=101 gstatus=2", f"ProcsChange dt=1 procs_value={self.cpus} stack={self.stack('main')}"]
            now = 3
        # The start of the batch takes a few ns, and so do events at equal times.
        for at, _, _, text in sorted(e for e in self.events if e[2] == lane):
            dt = max(at - now, 1)
            now += dt
            lines.append(text % dt)
        return lines

    def make(self, name):
        lanes = sorted({e[2] for e in self.events})
        batches = [line for lane in lanes for line in self.batch(lane)]
        lines = ["Trace Go1.26", "EventBatch gen=1 m=18446744073709551615 time=1000 size=auto", "Sync", "Frequency freq=1000000000",
                 "ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0", *batches]
        self.string("x.c")
        if self.samples:
            lines += ["EventBatch gen=1 m=18446744073709551615 time=1199 size=auto", "CPUSamples", *self.samples]
        lines += ["EventBatch gen=1 m=18446744073709551615 time=1200 size=auto", "Stacks"]
        for functions, number in self.stacks.items():
            lines.append(f"Stack id={number} nframes={len(functions)}")
            lines += [f"\tpc={4096 * self.strings[f] + number} func={self.strings[f]} file={self.strings['x.c']} line=1" for f in functions]
        lines += ["EventBatch gen=1 m=18446744073709551615 time=1201 size=auto", "Strings"]
        for text, number in self.strings.items():
            lines += [f"String id={number}", f'\tdata="{text}"']
        lines.append("EndOfGeneration")
        return assembled(name, "\n".join(lines) + "\n")


def near(ours, right_ms):
    """Equal, except for a few nanoseconds because of events at equal times."""
    assert abs(ours - right_ms * MS) < 0.001 * MS, f"{ours / MS} ms, not {right_ms} ms"


def then(path, *args):
    found = answer("whatif", *args, path)
    assert "then" in found, found
    return found["then"]


# MARK: Traces


def lock(kind="mutex", take="take", name="lock", worker="worker"):
    """G 2 holds a_mu from 0 to 40; main wants it at 10, gets it at 40, and ends at 60."""
    t = Trace(2)
    t.create(0, 1, 2, worker)
    t.start(0, 2)
    t.block(10, 1, f"{kind} a_mu", take, "main")
    if kind == "futex":
        t.wake(40, 2, 1)
    else:
        t.release(40, 2, f"{kind} a_mu", 40, to=1)
    t.start(40, 1)
    t.block(45, 2, "condition idle")  # to the end: main does not join it
    t.end(60, 1)
    return t.make(name)


def convoy():
    """main, 2 and 3 each hold a_mu for 10 and work for 5, twice, in the order 1 2 3 1 2 3."""
    t = Trace(4)
    t.create(0, 1, 2, "worker")
    t.create(0, 1, 3, "worker")
    t.start(0, 2)
    t.start(0, 3)
    t.block(1, 2, "mutex a_mu", "take", "worker")
    t.block(2, 3, "mutex a_mu", "take", "worker")
    at = 10
    for g, to, again in ((1, 2, True), (2, 3, True), (3, 1, True), (1, 2, False), (2, 3, False), (3, None, False)):
        t.release(at, g, "mutex a_mu", 10, to=to)
        if to:
            t.start(at, to)
        if again:
            t.block(at + 5, g, "mutex a_mu", "take", "worker")
        elif g != 1:
            t.end(at + 5, g)
        at += 10
    # main has worked up to 45, and joins 3, which ends at 65.
    t.block(45, 1, "join worker", "main")
    t.events = [e for e in t.events if not (e[2] == 3 and "GoDestroy" in e[3])]
    t.wake(65, 3, 1)
    t.end(65, 3)
    t.start(65, 1)
    t.end(66, 1)
    return t.make("convoy")


def join():
    """main creates short, which runs for 30, and long, which runs for 50; it joins both and ends at 60."""
    t = Trace(4)
    t.create(0, 1, 2, "short")
    t.create(0, 1, 3, "long")
    t.start(0, 2)
    t.start(0, 3)
    t.block(1, 1, "join short", "main")
    t.wake(30, 2, 1)
    t.end(30, 2)
    t.start(30, 1)
    t.block(31, 1, "join long", "main")
    t.wake(50, 3, 1)
    t.end(50, 3)
    t.start(50, 1)
    t.end(60, 1)
    return t.make("join")


def pipeline():
    """Four pieces: main makes each in 10; G 2 uses it in 20 and acknowledges it, while main makes the next one."""
    t = Trace(2)
    t.create(0, 1, 2, "use")
    t.start(0, 2)
    t.block(1, 2, "semaphore full", "use")
    t.wake(10, 1, 2)
    t.start(10, 2)
    for piece in range(4):
        done = 30 + 20 * piece
        # main has made its next piece 10 after the last one was taken
        if piece < 3:
            t.block(done - 10, 1, "semaphore free", "main")
        if piece == 3:
            t.block(done - 17, 1, "join use", "main")
        t.wake(done, 2, 1)
        t.start(done, 1)
        if piece < 3:
            t.block(done + 1, 2, "semaphore full", "use")
            t.wake(done + 2, 1, 2)
            t.start(done + 2, 2)
    t.end(91, 2)
    t.end(95, 1)
    return t.make("pipeline")


def one_cpu():
    """One P. main creates two goroutines that run for 40 each, one after the other, and waits for the first; ends at
    84."""
    t = Trace(1, {2: 1, 3: 1})
    t.create(0, 1, 2, "half")
    t.create(0, 1, 3, "half")
    t.block(1, 1, "join half", "main")
    t.start(1, 2)
    t.wake(41, 2, 1)
    t.end(41, 2)
    t.start(41, 3)
    t.end(81, 3)
    t.start(81, 1)
    t.end(84, 1)
    return t.make("one-cpu")


def pinned(allowed="trail.recorded cpus pid=0 count=1 cpu=0 recorder=0 name=0"):
    """The same in a trace of trail record on a machine with two CPUs, of which the threads may use one."""
    t = Trace(2, {2: 1, 3: 1})
    t.string("trail.made by=record")
    t.string(allowed)
    t.create(0, 1, 2, "half")
    t.create(0, 1, 3, "half")
    t.block(1, 1, "join half", "main")
    t.start(1, 2)
    t.wake(41, 2, 1)
    t.end(41, 2)
    t.start(41, 3)
    t.end(81, 3)
    t.start(81, 1)
    t.end(84, 1)
    return t.make("pinned")


def outside(what="read db", reason="network"):
    """main runs for 10, waits for an external event for 50, and runs for 10."""
    t = Trace(1)
    t.block(10, 1, what, "query", "main", reason=reason)
    t.wake(60, TIMER, 1)
    t.start(60, 1)
    t.end(70, 1)
    return t.make("outside-" + what.split()[0])


# MARK: Tests


@test
def unchanged_it_is_as_long_as_the_trace():
    for path, right in ((lock(), 60), (convoy(), 66), (join(), 60), (pipeline(), 95), (one_cpu(), 84), (outside(), 70)):
        found = answer("whatif", path)
        near(found["now"], right)
        assert abs(found["replay_error"]) < 0.0001, (path, found)
        # a change without effect: as many CPUs as the trace has
        near(then(path, f"--cpus={found['cpus']}"), right)


@test
def a_lock_that_is_free_makes_none_wait():
    near(then(lock(), "--free=a_mu"), 30)


@test
def a_futex_is_a_lock_if_a_function_that_waits_or_wakes_is_named_so():
    near(then(lock("futex", "fx_lock", "fx-lock"), "--free=a_mu"), 30)
    near(then(lock("futex", "await_word", "fx-unlock", worker="fx_unlock"), "--free=a_mu"), 30)
    assert "no lock 'a_mu' is waited for" in run_text("whatif", "--free=a_mu", lock("futex", "await_frame", "fx-wait"))[2]


@test
def a_lock_that_is_free_is_not_waited_for_up_to_a_limit():
    """G 2 holds a_mu from 0 to 205; main gives up waiting for it after 50, four times, works for 5, and for 20 more."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    for i in range(4):
        t.block(50 * i, 1, "mutex a_mu", "take", "main")
        t.wake(50 * i + 50, TIMER, 1)
        t.start(50 * i + 50, 1)
        t.log(50 * i + 50, 1, "wait", "timed out")
    t.release(205, 2, "mutex a_mu", 205)
    t.block(206, 2, "condition idle")
    t.end(225, 1)
    near(then(t.make("limit"), "--free=a_mu"), 25)


@test
def a_lock_that_is_held_for_half_the_time():
    near(then(lock(), "--hold=a_mu=0.5x"), 40)  # released at 20
    near(then(lock(), "--hold=a_mu=0.25x"), 30)  # released at 10, when main wants it
    near(then(lock(), "--hold=a_mu=0.1x"), 30)  # released before
    near(then(lock(), "--hold=a_mu=2x"), 100)


@test
def a_convoy_becomes_shorter_by_the_holds():
    # Six holds of 10 one after the other, then 5 of work by 3, then 1 by main.
    near(then(convoy(), "--hold=a_mu=0.9x"), 60 * 0.9 + 6)


@test
def a_hold_that_is_known_to_three_digits_contains_its_sleep():
    """G 2 takes a_mu at 1, sleeps from 1.01 to 41, and releases it at 41.03; the log has 40.0 instead of 40.03. main
    wants it at 11, and ends 20 after acquiring it."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.block(1.01, 2, "", "rest", "worker", reason="sleep")
    t.block(11, 1, "mutex a_mu", "take", "main")
    t.wake(41, TIMER, 2)
    t.start(41, 2)
    t.release(41.03, 2, "mutex a_mu", 40.0, to=1)
    t.start(41.03, 1)
    t.end(42, 2)
    t.end(61.03, 1)
    path = t.make("digits")
    # Taken at 1.01 in the replay: 40.02 times a half.
    near(then(path, "--hold=a_mu=0.5x"), 1.01 + 40.02 / 2 + 20)


def go_mutex(again):
    """main holds a Go mutex that 2 wants at 1 and holds from 10 to 20; main wants it again at `again`, and ends 5 after
    acquiring it."""
    lock = "sync.(*Mutex).Lock", "update"
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.block(1, 2, "", *lock, "worker")
    t.wake(10, 1, 2)
    t.start(10, 2)
    t.block(again, 1, "", *lock, "main")
    t.wake(20, 2, 1)
    t.end(20, 2)
    t.start(20, 1)
    t.end(25, 1)
    return t.make(f"go-mutex-{again}")


@test
def a_lock_of_go_is_held_since_its_holder_was_woken():
    # main from 1 to 10, 2 from 10 to 20.
    near(then(go_mutex(13), "--hold=update=0.5x"), 1 + 4.5 + 5 + 5)
    # 2 may have taken it twice: it is certain to hold it only from 18 on.
    near(then(go_mutex(18), "--hold=update=0.5x"), 1 + 4.5 + 8 + 1 + 5)


@test
def a_lock_is_taken_in_the_order_of_arrival():
    """main and 2 want a_mu, which 3 holds up to 20: 2 at 12, after it ran, main at 15. Each holds it for 30."""
    t = Trace(3)
    t.create(0, 1, 2, "early")
    t.create(0, 1, 3, "first")
    t.start(0, 2)
    t.start(0, 3)
    t.block(12, 2, "mutex a_mu", "take", "early")
    t.block(15, 1, "mutex a_mu", "take", "main")
    t.release(20, 3, "mutex a_mu", 20, to=2)
    t.block(20, 3, "condition idle")
    t.start(20, 2)
    t.release(50, 2, "mutex a_mu", 30, to=1)
    t.block(50, 2, "condition idle")
    t.start(50, 1)
    t.release(80, 1, "mutex a_mu", 30)
    t.end(85, 1)
    path = t.make("arrival")
    near(answer("whatif", path)["now"], 85)
    # main arrives at 7.5, before 2 at 12: it gets the lock at 20, and holds it for 15.
    near(then(path, "--faster=main=2x"), 20 + 15 + 2.5)


@test
def the_slowest_worker_decides_a_join():
    near(then(join(), "--faster=long=2x"), 30 + 1 + 10)
    near(then(join(), "--faster=short=2x"), 60)
    found = answer("whatif", "--faster=long=2x", join())
    equal(found["next"]["change"], "--faster=short=2x")
    near(found["next"]["then"], 25 + 10)


@test
def the_slow_side_of_a_pipeline_decides():
    path = pipeline()
    # Using takes 20, 18, 18 and 18, and in between main runs for 2.
    near(then(path, "--faster=main=2x"), 5 + 20 + 3 * (1 + 18) + 5 / 2)
    near(then(path, "--faster=use=2x"), 10 + 10 + 3 * (2 + 9) + 5)


def filled_queue(lock=None):
    """main begins task 1 at 10 and task 2 at 20. Goroutine 2 works for 30 on each, from 10 to 40
    and from 40 to 70; at 40 its queue is not empty, so it does not wait. With `lock`, it holds
    that lock from 39 to 41."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.block(1, 2, "condition filled")
    t.task(10, 1, 1, "request", "Begin")
    t.wake(10, 1, 2)
    t.start(10, 2)
    t.region(10, 2, "work", "Begin", task=1)
    t.task(20, 1, 2, "request", "Begin")
    t.block(21, 1, "join worker", "main")
    t.region(38, 2, "work", "End", task=1)
    t.task(38, 2, 1, "request", "End")
    t.region(40, 2, "work", "Begin", task=2)
    if lock:
        t.release(41, 2, lock, 2)
    t.region(70, 2, "work", "End", task=2)
    t.task(70, 2, 2, "request", "End")
    t.wake(70, 2, 1)
    t.end(70, 2)
    t.start(70, 1)
    t.end(75, 1)
    return t.make(f"filled-{lock or 'free'}".replace(" ", "-"))


@test
def work_for_a_task_comes_after_its_begin():
    # With a lock, the wait comes first: the beginner may need the lock.
    for lock, after in ((None, 3), ("mutex queue_mu", 3.1)):
        path = filled_queue(lock)
        near(answer("whatif", "--goal=task:request:p100", path)["now"], 50)
        # The worker is done with task 1 at 12.8, and would be with task 2 at 16, before it begins.
        near(then(path, "--faster=worker=10x", "--goal=task:request:p100"), after)
        near(then(path, "--faster=worker=10x"), 20 + after + 5)


def first_finding(path, *args):
    return answer("summary", *args, path)["findings"][0]


@test
def a_finding_has_the_gain_of_a_replay():
    """G 2 holds a_mu from 0 to 400; main wants it at 100, gets it at 400, and ends at 600; without the wait at 300."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.block(100, 1, "mutex a_mu", "take", "main")
    t.release(400, 2, "mutex a_mu", 400, to=1)
    t.start(400, 1)
    t.end(401, 2)
    t.end(600, 1)
    path = t.make("gain")
    found = first_finding(path)
    equal(found["replayed"], "In a replay without waits for this lock, the same work is done 199 ms earlier.")  # 2 ends at 401
    equal(found["whatif"], ["--free=a_mu"])
    equal([found["replayed_" + key] for key in ("of", "now_ns", "then_ns")], ["end", 600 * MS, 401 * MS])
    equal((found["gain_title"], found["gain_figure"]), ("would save", "199 ms"))
    near(then(path, *found["whatif"]), 401)
    # It is more exact than a bound, which remains where nothing is replayed: of a part of a trace.
    assert "bound" not in found and "would be saved" not in found["text"] and found["remedy"].startswith("Hold it for a shorter time"), found
    found = first_finding(path, "--from=0")
    assert "replayed" not in found and "At most 250 ms of 600 ms would be saved without these waits. Hold it" in found["text"], found


@test
def a_lock_off_the_critical_path_gains_nothing():
    """As above, but main works up to 600, and joins 3, which waited."""
    t = Trace(3)
    t.create(0, 1, 2, "worker")
    t.create(0, 1, 3, "late")
    t.start(0, 2)
    t.start(0, 3)
    t.block(1, 1, "sleep", "main", reason="sleep")
    t.block(100, 3, "mutex a_mu", "take", "late")
    t.release(400, 2, "mutex a_mu", 400, to=3)
    t.start(400, 3)
    t.end(401, 2)
    t.end(402, 3)
    t.wake(600, TIMER, 1)
    t.start(600, 1)
    t.end(601, 1)
    found = first_finding(t.make("no-gain"))
    equal(found["object"], "mutex a_mu")
    equal(found["replayed"], "In a replay without waits for this lock, late has done the same work after 102 ms instead of 402 ms; the program ends no earlier.")
    equal(found["whatif"], ["--free=a_mu", "--goal=threads:late"])
    equal(found["replayed_of"], "threads")
    near(found["replayed_now_ns"], 402)
    near(found["replayed_then_ns"], 102)
    equal((found["gain_title"], found["gain_figure"]), ("same work done after", "102 ms instead of 402 ms"))
    assert "would be saved" not in found["text"], found


def divided(took):
    """2 sleeps for 30 ms each time that it has a_mu, for which 3 waits meanwhile; main waits for their exits. `took`: they have waited for work."""
    t = Trace(4)
    for g in (2, 3, 4):
        t.create(0, 1, g, "worker")
        t.start(0, g)
        if took:
            t.block(1, g, "condition todo_cv", "take", "worker", reason="sync.(*Cond).Wait")
            t.wake(2 + g, 1, g)
            t.start(2 + g, g)
    t.block(8, 1, "join worker", "main")
    t.end(9, 4)
    now = 10
    for _ in range(10):
        t.block(now, 2, "sleep", "load", "worker", reason="sleep")
        t.block(now + 1, 3, "mutex a_mu", "enter", "worker")
        t.wake(now + 30, TIMER, 2)
        t.start(now + 30, 2)
        t.release(now + 31, 2, "mutex a_mu", 31, to=3)
        t.start(now + 31, 3)
        t.log(now + 32, 3, "held", "mutex a_mu 1ms")
        now += 33
    t.end(now, 3)
    t.wake(now + 1, 2, 1)
    t.end(now + 1, 2)
    t.start(now + 1, 1)
    t.end(now + 2, 1)
    return t.make(f"divided-{took}")


@test
def a_replay_that_keeps_who_does_what_is_no_bound_where_threads_share_work():
    """Without the lock, 3 would take what 2 does in the replay."""
    found = first_finding(divided(took=True))
    equal((found["kind"], found["object"]), ("lock-serialises", "mutex a_mu"))
    assert "replayed" not in found and found["gain_ns"] > 290 * MS, found
    found = first_finding(divided(took=False))
    equal(found["kind"], "lock-serialises")
    assert found["replayed"].startswith("In a replay without waits for this lock, "), found


def kept_by_refresher(name, awaited, again=False):
    """2 has a_mu up to 400, for which 3 and 4 wait from 100 on; `again`: 2 wants it once more. main waits for the exits of 3 and 4
    and, from `awaited` on, for that of 2."""
    t = Trace(4)
    for g, start in ((2, "refresher"), (3, "worker"), (4, "worker")):
        t.create(0, 1, g, start)
        t.start(0, g)
    t.block(1, 1, "join worker", "main")
    for g in (3, 4):
        t.block(100, g, "mutex a_mu", "take", "worker")
    t.release(400, 2, "mutex a_mu", 400, to=3)
    t.start(400, 3)
    t.release(410, 3, "mutex a_mu", 10, to=4)
    if again:
        t.block(410, 2, "mutex a_mu", "take", "refresher")
    t.start(410, 4)
    t.end(415, 3)
    if again:
        t.release(419, 4, "mutex a_mu", 9, to=2)
        t.start(419, 2)
    t.wake(420, 4, 1)
    t.end(420, 4)
    t.start(420, 1)
    t.block(awaited, 1, "join refresher", "main")
    t.wake(590, 2, 1)
    t.end(590, 2)
    t.start(590, 1)
    t.end(591, 1)
    return t.make(name)


@test
def threads_that_wait_have_done_their_work_sooner():
    """Whether 2 runs until it is stopped is not in the trace, unless main waits for it."""
    sooner = "In a replay without waits for this lock, all goroutines of worker have done the same work after 115 ms instead of 420 ms"
    found = first_finding(kept_by_refresher("awaited", 421))
    equal(found["replayed"], sooner + "; the program ends no earlier.")
    found = first_finding(kept_by_refresher("again", 421, again=True))
    equal(found["replayed"], sooner + "; the program ends 9.00 ms earlier.")
    path = kept_by_refresher("stopped", 580)
    found = first_finding(path)
    equal(found["replayed"], sooner + ".")
    equal(found["whatif"], ["--free=a_mu", "--goal=threads:worker"])
    said = answer("whatif", *found["whatif"], path)
    equal((said["goal"], said["confidence"]), ("until all goroutines of worker have done their work", "high"))
    near(said["now"], 420)
    near(said["then"], 115)
    near(then(path, "--free=a_mu", "--goal=threads:refresher"), 590)
    equal(answer("whatif", "--free=a_mu", path)["confidence"], "medium")


@test
def a_culprit_that_waits_itself_waits_for_a_shorter_time():
    """5 ends at 510, long after the others, as it slept for 490."""
    t = Trace(4)
    for g in (2, 3, 4, 5):
        t.create(0, 1, g, "worker")
        t.start(0, g)
    t.block(1, 1, "join worker", "main")
    t.block(10, 5, "sleep", "fetch", "worker", reason="sleep")
    for g in (2, 3, 4):
        t.end(50 + g, g)
    t.wake(500, TIMER, 5)
    t.start(500, 5)
    t.wake(510, 5, 1)
    t.end(510, 5)
    t.start(510, 1)
    t.end(511, 1)
    path = t.make("asleep")
    found = first_finding(path)
    equal((found["kind"], found["whatif"]), ("straggler", ["--io=fetch=0.2x"]))
    equal(found["replayed"], "In a replay with sleeps and I/O in fetch taking a fifth, the same work is done 392 ms earlier.")
    near(then(path, "--io=fetch=0.2x"), 511 - 490 * 0.8)


def kept_by_reader(rounds):
    """2 has a_mu for 95 of each 100 up to 500, and main wants it in the first of them; main waits for the exit of 2."""
    t = Trace(2)
    t.create(0, 1, 2, "reader")
    t.start(0, 2)
    for begin in range(0, 500, 100):
        if begin < rounds * 100:
            t.block(begin + 10, 1, "mutex a_mu", "take", "main")
            t.release(begin + 95, 2, "mutex a_mu", 95, to=1)
            t.start(begin + 95, 1)
    t.block(rounds * 100, 1, "join reader", "main")
    t.wake(501, 2, 1)
    t.end(501, 2)
    t.start(501, 1)
    t.end(502, 1)
    return t.make(f"kept-{rounds}")


@test
def what_runs_until_it_is_stopped_may_end_sooner():
    assert "replayed" not in first_finding(kept_by_reader(5))
    stopped = "reader ran until the end. If it runs only until it is stopped, the program may end sooner; --goal=threads:NAME shows when other goroutines have done their work"
    assert stopped in str(answer("whatif", "--free=a_mu", kept_by_reader(5))), answer("whatif", "--free=a_mu", kept_by_reader(5))
    # The last round is over at 200: it is not main that ends 2.
    assert "the same work is done no earlier" in first_finding(kept_by_reader(2))["replayed"], first_finding(kept_by_reader(2))
    assert stopped not in str(answer("whatif", "--free=a_mu", kept_by_reader(2)))


def logged_to_slow_pipe(rounds=8):
    """2 and 3 take turns with log_mu, and each holds it while it writes to a pipe, from which 4 takes every 50 ms after
    a sleep."""
    t = Trace(4)
    for g, name in ((2, "handler"), (3, "handler"), (4, "shipper")):
        t.create(0, 1, g, name)
        t.start(0, g)
    t.block(1, 1, "join handler", "main")
    t.block(1, 4, "sleep", "shipper", reason="sleep")
    t.block(2, 3, "mutex log_mu", "log_line", "handler")
    for i in range(rounds):
        g, at = 2 + i % 2, 50 * i
        other = 5 - g
        t.block(at + 3, g, "write pipe:[7]", "log_line", "handler", reason="network")
        t.wake(at + 50, TIMER, 4)
        t.start(at + 50, 4)
        t.wake(at + 50.2, 4, g)
        t.block(at + 50.5, 4, "sleep", "shipper", reason="sleep")
        t.start(at + 50.5, g)
        last = i + 1 == rounds
        t.release(at + 51, g, "mutex log_mu", 49, to=None if last else other)
        if not last:
            t.start(at + 51, other)
        if i + 2 < rounds:
            t.block(at + 51.5, g, "mutex log_mu", "log_line", "handler")
            continue
        if last:
            t.wake(at + 52, g, 1)
        t.end(at + 52, g)
    t.start(50 * rounds + 3, 1)
    t.end(50 * rounds + 4, 1)
    return t.make("slow-pipe")


@test
def what_a_replay_refutes_comes_after_what_it_does_not():
    found = answer("summary", logged_to_slow_pipe())["findings"]
    equal([f["kind"] for f in found[:2]], ["queue", "lock-serialises"])
    assert found[0]["text"].startswith("shipper (x.c:1) takes from a queue more slowly than "), found[0]
    equal(found[1]["replayed"], "In a replay without waits for this lock, the same work is done no earlier: something else decides when it ends.")


@test
def the_predicted_gain_is_the_one_of_the_mended_program():
    """The shop with the lock, and without: its requests come at their own times."""
    for shop in (os.path.join(os.path.dirname(EXAMPLES[0]), "shop-" + language) for language in ("c", "go")):
        found = first_finding(shop + ".trace")
        assert "no earlier, but the median task 'request' takes" in found["replayed"], found
        equal(found["gain_title"], "median task would take")
        then, now = found["gain_figure"].split(" instead of ")
        assert f" {then} instead of {now}" in found["replayed"], found
        said = answer("whatif", *found["whatif"], shop + ".trace")["then"]
        tasks = answer("tasks", "--members", shop + "-fixed.trace")["tasks"]
        lengths = sorted(task["end_ns"] - task["start_ns"] for task in tasks)
        measured = lengths[(len(lengths) - 1) // 2]
        assert abs(said - measured) < 0.1 * measured, (said, measured)


@test
def a_thread_that_had_ended_is_joined_all_the_same():
    """main creates 2, which runs for 30, and runs for 50 itself: its join at the end does not wait."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.region(0, 1, "all", "Begin")
    t.end(30, 2)
    t.region(50, 1, "all", "End")
    t.end(50, 1)
    path = t.make("joined")
    near(then(path, "--faster=all=2x"), 30)
    near(then(path, "--faster=all=2x", "--faster=worker=2x"), 25)


@test
def a_signal_does_not_end_a_join():
    """Each 10 a signal makes main ready for a moment, which waits for worker; that runs for 50."""
    t = Trace(2)
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    for ms in range(0, 50, 10):
        t.block(ms, 1, "join worker", "main")
        t.wake(ms + 10, 0 if ms < 40 else 2, 1)
        t.start(ms + 10, 1)
    t.end(50, 2)
    t.end(50, 1)
    path = t.make("interrupted")
    near(then(path, "--faster=worker=2x"), 25)


@test
def two_runners_need_two_cpus():
    # One begins at once, the other when main waits; main continues when the first has ended.
    near(then(one_cpu(), "--cpus=2"), 40 + 3)


@test
def a_program_of_go_has_the_cpus_that_it_has_set():
    """main and 2 run in parallel up to 1; then there is one P, which 3 and main share."""
    t = Trace(2, {3: 1})
    t.create(0, 1, 2, "early")
    t.start(0, 2)
    t.end(1, 2)
    t.add(1, 1, f"ProcsChange dt=%d procs_value=1 stack={t.stack('main')}")
    t.create(1, 1, 3, "half")
    t.region(1, 1, "own", "Begin")
    t.region(30, 1, "own", "End")
    t.block(30, 1, "join half", "main")
    t.start(30, 3)
    t.wake(60, 3, 1)
    t.end(60, 3)
    t.start(60, 1)
    t.end(61, 1)
    path = t.make("procs")
    equal(answer("whatif", path)["cpus"], 1)
    # In the replay, the parallel part up to 1 also has one P, and takes 1 more of 61.
    near(then(path, "--cpus=2"), (1 + 30 + 1) * 61 / 62)


@test
def threads_that_may_use_one_cpu_have_one():
    found = answer("whatif", "--cpus=2", pinned())
    equal(found["cpus"], 1)
    # As in a program that had two Ps and used one: each goroutine has one while main waits.
    near(found["then"], 40 + 3)


@test
def a_switch_that_is_seen_late_gives_no_second_cpu():
    """As above, but each thread seems to run for 1 in parallel with the next one."""
    t = Trace(2)
    t.string("trail.made by=record")
    t.string("trail.recorded cpus pid=0 count=1 cpu=0 recorder=0 name=0")
    t.create(0, 1, 2, "half")
    t.start(39, 2)
    t.block(40, 1, "join half", "main")
    t.wake(80, 2, 1)
    t.start(80, 1)
    t.end(81, 2)
    t.end(84, 1)
    found = answer("whatif", "--cpus=2", t.make("late-switch"))
    equal(found["cpus"], 1)


@test
def affinity_of_some_threads_does_not_limit_the_others():
    """main and 2 run in parallel for 30, although the examined threads were allowed only one CPU."""
    t = Trace(2)
    t.string("trail.made by=record")
    t.string("trail.recorded cpus pid=0 count=1 cpu=0 recorder=0 name=0")
    t.create(0, 1, 2, "worker")
    t.start(0, 2)
    t.end(30, 2)
    t.end(40, 1)
    equal(answer("whatif", t.make("some-pinned"))["cpus"], 2)


@test
def on_one_cpu_all_work_is_done_one_after_the_other():
    near(then(join(), "--cpus=1"), 1 + 30 + 1 + 50 + 10)


@test
def an_answer_from_outside_comes_after_the_request():
    near(then(outside(), "--io=db=0.2x"), 10 + 10 + 10)
    near(then(outside(), "--io=read=0.2x"), 10 + 10 + 10)
    near(then(outside(), "--faster=main=2x"), 5 + 50 + 5)


@test
def a_request_from_outside_comes_at_its_own_time():
    near(then(outside("accept db"), "--faster=main=2x"), 60 + 5)
    code, _, err = run_text("whatif", "--io=db=0.2x", outside("accept db"))
    equal(code, 2)
    assert "no wait that ends from outside has 'db' in its name" in err, err


@test
def changes_add_up():
    near(then(lock(), "--free=a_mu", "--faster=main=2x"), 15)


@test
def regions_and_tasks_are_goals():
    t = Trace(1)
    for i in range(4):
        t.task(20 * i, 1, i + 1, "request", "Begin")
        t.region(20 * i, 1, "parse", "Begin")
        t.region(20 * i + 10, 1, "parse", "End")
        t.task(20 * i + 15, 1, i + 1, "request", "End")
    t.end(80, 1)
    path = t.make("goals")
    found = answer("whatif", "--goal=task:request:p50", "--faster=parse=2x", path)
    near(found["now"], 15)
    near(found["then"], 10)
    # The shorter of two tasks is the median, as everywhere for an even number.
    t = Trace(1)
    for begin, length, task in ((0, 10, 1), (20, 50, 2)):
        t.task(begin, 1, task, "request", "Begin")
        t.region(begin, 1, "parse", "Begin")
        t.region(begin + 1, 1, "parse", "End")
        t.task(begin + length, 1, task, "request", "End")
    t.end(80, 1)
    two = t.make("two")
    near(answer("whatif", "--goal=task:request:p50", "--faster=parse=2x", two)["now"], 10)
    near(answer("whatif", "--goal=task:request:p51", "--faster=parse=2x", two)["now"], 50)
    found = answer("whatif", "--goal=rate:parse", "--faster=parse=2x", path)
    assert abs(found["now"] - 50) < 0.01 and abs(found["then"] - 4 / 0.060) < 0.01, found
    near(answer("whatif", "--goal=waits", "--free=a_mu", lock())["now"], 30)
    near(then(lock(), "--goal=waits", "--free=a_mu"), 0)


@test
def a_function_without_waits_has_its_share_of_the_samples():
    t = Trace(1)
    for ms, function in ((5, "parse"), (15, "print"), (25, "print"), (35, "print")):
        t.sample(ms, 1, function, "main")
    t.block(40, 1, "read db", "main", reason="network")
    t.wake(50, TIMER, 1)
    t.start(50, 1)
    t.end(50, 1)
    path = t.make("samples")
    near(then(path, "--faster=parse=2x"), 50 - 40 / 4 / 2)
    near(then(path, "--faster=print=2x"), 50 - 40 * 3 / 4 / 2)
    near(then(path, "--faster=main=2x"), 50 - 40 / 2)
    equal(answer("whatif", "--faster=parse=2x", path)["confidence"], "medium")
    equal(answer("whatif", "--io=db=0.5x", path)["confidence"], "high")


@test
def without_garbage_collection_its_work_and_waits_take_no_time():
    """main runs for 10, waits for a GC worker that runs for 20, runs for 5, assists for 8, and runs for 5."""
    t = Trace(2)
    t.create(0, 1, 2, "runtime.gcBgMarkWorker")
    t.block(10, 1, "", "main", reason="GC mark assist wait for work")
    t.start(10, 2)
    t.wake(30, 2, 1)
    t.block(30, 2, "", "runtime.gcBgMarkWorker", reason="GC background sweeper wait")
    t.start(30, 1)
    t.add(35, 1, "GCMarkAssistBegin dt=%d stack=0")
    t.add(43, 1, "GCMarkAssistEnd dt=%d")
    t.end(48, 1)
    near(then(t.make("gc"), "--no-gc"), 10 + 5 + 5)


@test
def a_mark_worker_gets_a_cpu_at_once():
    """main runs from 0 and 2 from 1 on; a mark worker takes main's CPU from 4 to 9."""
    t = Trace(2, {3: 2, 2: 2})
    t.create(0, 1, 3, "runtime.gcBgMarkWorker")
    t.start(0, 3)
    t.block(0.5, 3, "", reason="system goroutine wait")
    t.create(0.5, 1, 2, "worker")
    t.start(1, 2)
    t.add(4, 1, f"GoStop dt=%d reason_string={t.string('preempted')} stack={t.stack('main')}")
    t.lanes[3] = 1
    t.wake(4, TIMER, 3)
    t.start(4, 3)
    t.block(9, 3, "", reason="system goroutine wait")
    t.start(9, 1)
    t.end(12, 2)
    t.end(20, 1)
    path = t.make("marks")
    found = answer("whatif", "--no-gc", path)
    equal(found["cpus"], 2)
    near(found["now"], 20)
    assert abs(found["replay_error"]) < 0.0001, found
    near(found["then"], 20 - 5)


def workers(regions=True):
    """main creates 2 and 3, which do four pieces of 10 each, in regions, and ends at 41, when 3 has ended."""
    t = Trace(200)
    for g in (2, 3):
        t.create(0, 1, g, "worker")
        t.start(0, g)
        for piece in range(4 if regions else 0):
            t.region(10 * piece, g, "piece", "Begin")
            t.region(10 * piece + 10, g, "piece", "End")
    t.block(1, 1, "join worker", "main")
    t.end(40, 2)
    t.wake(40, 3, 1)
    t.end(40, 3)
    t.start(40, 1)
    t.end(41, 1)
    return t.make(f"workers-{regions}")


@test
def more_threads_of_a_pool_share_its_work():
    for threads, longest in ((1, 80), (2, 40), (3, 30), (4, 20), (5, 20), (8, 10), (100, 10)):
        near(then(workers(), f"--pool=worker={threads}"), longest + 1)
    found = answer("whatif", "--pool=worker=4", workers())
    equal(found["changes"], ["--pool=worker=4"])
    equal(found["confidence"], "medium")
    # Pieces half as long; fewer CPUs than threads; main has one of them at first.
    near(then(workers(), "--pool=worker=4", "--faster=piece=2x"), 10 + 1)
    near(then(workers(), "--pool=worker=4", "--cpus=2"), 1 + 40 + 1)
    # The list tries twice as many; not where the work cannot be divided.
    tried = {row["change"]: row["then"] for row in answer("whatif", workers())["list"]}
    near(tried["--pool=worker=4"], 20 + 1)
    assert not any("pool" in row["change"] for row in answer("whatif", workers(regions=False))["list"])


@test
def a_pool_is_divided_where_a_lock_is_released():
    """Each takes its own lock at the start of each piece of 10, and keeps it for 1."""
    t = Trace(200)
    for g in (2, 3):
        t.create(0, 1, g, "worker")
        t.start(0, g)
        for piece in range(4):
            t.release(10 * piece + 1, g, f"mutex queue_{g}", 1)
    t.block(1, 1, "join worker", "main")
    t.end(40, 2)
    t.wake(40, 3, 1)
    t.end(40, 3)
    t.start(40, 1)
    t.end(41, 1)
    path = t.make("locked-pieces")
    # Each has pieces of 1, 10, 10, 10 and 9: the third ones begin when the second ones end, at 10.
    for threads, longest in ((1, 80), (2, 40), (4, 20)):
        near(then(path, f"--pool=worker={threads}"), longest + 1)


@test
def a_piece_of_work_is_not_taken_before_it_is_there():
    # 2 and 3 in turn get a piece from main every 5, and work on it for 8: 2 threads are enough, 1
    # is not.
    t = Trace(8)
    for g in (2, 3):
        t.create(0, 1, g, "worker")
        t.start(0, g)
        t.block(0.001 * g, g, "condition work", "worker")
    for piece in range(10):
        at, g = 5 + 5 * piece, 2 + piece % 2
        t.wake(at, 1, g)
        t.start(at, g)
        if piece < 8:
            t.block(at + 8, g, "condition work", "worker")
    t.block(50.5, 1, "join worker", "main")
    t.end(45 + 8, 2)
    t.wake(58, 3, 1)
    t.end(58, 3)
    t.start(58, 1)
    t.end(59, 1)
    path = t.make("arrivals")
    for threads, end in ((1, 5 + 10 * 8), (2, 58), (3, 58), (10, 58)):
        near(then(path, f"--pool=worker={threads}"), end + 1)


@test
def a_pool_whose_work_cannot_be_divided_has_no_answer():
    for args, path, message in (
        (["--pool=worker=4"], workers(regions=False), "does not show where one piece of work of 'worker' ends"),
        (["--pool=main=2"], workers(), "the goal is the end of 'main' itself"),
    ):
        assert message in answer("whatif", *args, path)["cannot_answer"], (args, message)
    for args, message in (
        (["--pool=other=2"], "no start function 'other'"),
        (["--pool=worker"], "is not a start function and a number of threads"),
        (["--pool=worker=0"], "is not a start function and a number of threads"),
        (["--pool=worker=3", "--pool=worker=4"], "one --pool at a time"),
        (["--pool=worker=3", "-o", "replayed.trace"], "not with --pool"),
    ):
        code, out, err = run_text("whatif", *args, workers())
        equal((code, out), (2, ""), args)
        assert message in err, (args, err)


@test
def the_list_has_what_gains_most_first():
    found = answer("whatif", lock())
    gains = [row["gain"] for row in found["list"]]
    equal(gains, sorted(gains, reverse=True))
    by_change = {row["change"]: row["then"] for row in found["list"]}
    near(by_change["--free=a_mu"], 30)
    near(by_change["--hold=a_mu=0.5x"], 40)
    # Each equals the answer for this change alone.
    for change, length in by_change.items():
        near(then(lock(), change), length / MS)


@test
def what_the_trace_does_not_show_cannot_be_answered():
    found = answer("whatif", "--faster=nothing=2x", join())
    assert "no CPU samples" in found["cannot_answer"], found
    assert good_text("whatif", "--faster=nothing=2x", join()).startswith("Cannot answer: no wait shows that 'nothing' runs")


@test
def wrong_questions_are_refused():
    for args, message in (
        (["--free=z_mu"], "no lock 'z_mu' is waited for"),
        (["--hold=a_mu"], "'a_mu' is not a name and factor"),
        (["--hold=a_mu=0x"], "is not a name and factor"),
        (["--faster=main=nanx"], "is not a name and factor"),
        (["--cpus=0"], "'0' is not a number of CPUs"),
        (["--no-gc"], "the trace has no garbage collection"),
        (["--goal=task:x"], "is not a goal"),
        (["--goal=task:x:p101"], "has no quantile"),
        (["--goal=rate:x"], "no region 'x' ends in the trace"),
        (["--goal=threads:x"], "the trace has no goroutines of 'x'"),
    ):
        code, out, err = run_text("whatif", *args, lock())
        equal((code, out), (2, ""), args)
        assert message in err, (args, err)


def replayed(path, *args):
    """The replay as a trace, which all readers must accept."""
    out = os.path.join(WORK, "replayed.trace")
    good_text("whatif", *args, "-o", out, path)
    good_text("check", "--strict", out)
    return out


def of_goroutines(path, key):
    return {g["id"]: g[key] for g in answer("goroutines", path)["goroutines"]}


@test
def the_replay_as_a_trace_has_what_each_thread_did():
    for path in (lock(), convoy(), join(), pipeline(), one_cpu(), outside()):
        again = replayed(path)
        for key in ("name", "exec_ns", "total_ns", "sched_wait_ns"):
            right, ours = of_goroutines(path, key), of_goroutines(again, key)
            equal(set(ours), set(right))
            for g, value in right.items():
                assert ours[g] == value if key == "name" else abs(ours[g] - value) < 0.001 * MS, (path, key, g, ours[g], value)


@test
def the_replay_with_a_change_as_a_trace_is_as_long_as_the_answer():
    for path, change, right in ((lock(), "--free=a_mu", 30), (lock(), "--hold=a_mu=0.5x", 40), (outside(), "--io=db=0.2x", 30)):
        again = replayed(path, change)
        near(of_goroutines(again, "total_ns")[1], right)
        assert "trail whatif " + change in good_text("print", again), change
    waits = [row for row in answer("locks", replayed(lock(), "--hold=a_mu=0.5x"))["locks"] if row["waits"] > 0]
    equal([(row["object"], row["waits"]) for row in waits], [("a_mu", 1)])
    near(waits[0]["wait_ns"], 10)


@test
def an_output_is_a_file_of_its_own():
    path = lock()
    for out, message in (("-", "--output needs a file name"), (path, "would overwrite")):
        code, _, err = run_text("whatif", "-o", out, path)
        assert code == 2 and message in err, (out, code, err)


def reproduced():
    """The unchanged replay of real traces."""
    for path in some(sorted(glob.glob(os.path.join(SHARED, "real", "*.trace"))), 5):
        off = answer("whatif", "--limit=1", path)["replay_error"]
        tap.report(abs(off) < 0.05, os.path.basename(path), off)
        again = replayed(path)
        before, after = (sum(of_goroutines(of, "exec_ns").values()) for of in (path, again))
        tap.report(after >= 0.99 * before, f"{os.path.basename(path)}: as a trace, it has all running", before, after)
    if tap.count == 0:
        tap.skip("real traces", "no traces")


def go_reads_the_replays():
    for path in (lock(), convoy(), join(), pipeline(), one_cpu(), outside(), *EXAMPLES):
        if "cannot_answer" not in answer("whatif", path):
            go_tools(f"the replay of {os.path.basename(path)}", 26, replayed(path))


if sys.argv[3:] == ["all"]:
    reproduced()
    go_reads_the_replays()
    sys.exit(tap.finish())
sys.exit(tap.main())
