"""Snapshots of slow events, and messages about snapshots that were not written: see slow.c. TAP.

usage: slow.py TRAIL PROGRAM

The test tells the program when to take each step. A slow event lasts until the test has slept past
its limit, or has seen the snapshot; the limit of all others is half an hour.
"""

import glob
import json
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import recorded
import tap
import work
from tap import test

TRAIL, PROGRAM = (os.path.abspath(a) for a in sys.argv[1:])
WORK = work.folder("slow")
LIMIT_S = 0.3
LIMIT_NS = 300_000_000
# COLLECT_DELAY_NS
DELAY_S = 0.2


class Recording:
    def __init__(self, *options):
        for path in glob.glob(os.path.join(WORK, "*")):
            os.unlink(path)
        command = [TRAIL, "record", "-q", "--flight=2h", "-o", "x.trace", *options, "--", PROGRAM]
        self.recorder = subprocess.Popen(command, cwd=WORK, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                         stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.recorder.kill()
        self.recorder.wait()
        for pipe in (self.recorder.stdin, self.recorder.stdout, self.recorder.stderr):
            pipe.close()

    def do(self, line):
        self.recorder.stdin.write(line + "\n")
        self.recorder.stdin.flush()
        return int(self.recorder.stdout.readline())

    def slow(self, begin, end):
        """Makes an event slow. Returns how long it lasted."""
        self.do(begin)
        time.sleep(LIMIT_S * 1.05)
        return self.do(end)

    def message(self):
        line = self.recorder.stderr.readline()
        assert line, self.recorder.wait()
        return line.rstrip("\n")

    def snapshot(self):
        """Returns the next message, and the file that it names."""
        found = re.fullmatch(r"trail: snapshot (x\.\d{8}T\d{6}Z\.trace): (.*); see: trail summary (\S+)", self.message())
        assert found and found[1] == found[3], found
        return found[2], os.path.join(WORK, found[1])

    def until_written(self):
        """Returns when the recorder has written all that the program has done: it waits for DELAY_S."""
        time.sleep(DELAY_S)
        for _ in range(2):
            recorded.step(self.recorder.pid)

    def end(self):
        """Ends the program. Returns the last messages."""
        self.recorder.stdin.close()
        rest = self.recorder.stderr.read()
        assert self.recorder.wait(timeout=240) == 0, rest
        return rest


def answer(*args):
    return subprocess.run([TRAIL, *args], capture_output=True, text=True, check=True, timeout=240).stdout


def events(path):
    return [json.loads(line) for line in answer("print", "--format=jsonl", path).splitlines()]


def is_good(path):
    answer("check", path)


def files():
    return sorted(os.path.basename(path) for path in glob.glob(os.path.join(WORK, "*.trace")))


def took(text, what, lasted_ns):
    """An event is certain to be reported with its end only if it is shorter than the time after
    which open events are reported."""
    if lasted_ns < 2 * LIMIT_NS:
        assert re.fullmatch(rf"{what} took \d+ ms \(> 300 ms\)", text), text
    else:
        assert re.match(rf"{what} (took|has taken) ", text), text


@test
def a_slow_task_has_a_snapshot():
    with Recording("--snapshot-if=task:request > 300ms", "--snapshot-if=task:other > 30m", "--snapshot-every=1h") as run:
        run.slow("task other", "end")
        lasted = run.slow("task request", "end")
        text, path = run.snapshot()
        took(text, "task request", lasted)
        is_good(path)
        found = json.loads(answer("summary", "--json", path))
        assert found["recording"]["slow"] == [text], found["recording"]
        (finding,) = [f for f in found["findings"] if f["kind"] == "slow-task"]
        assert re.fullmatch(r"The slowest task request took \d+ ms, over the limit of the recording", finding["heading"]), finding
        kinds = [e["kind"] for e in events(path) if e.get("kind") in ("TaskBegin", "TaskEnd")]
        assert kinds == ["TaskBegin", "TaskEnd"] * 2, kinds
        run.slow("task request", "end")
        run.until_written()
        rest = run.end()
        assert rest == "trail: 1 more was slow, too soon after another for a snapshot (--snapshot-every)\n", rest
        assert files() == sorted([os.path.basename(path), "x.trace"]), files()


@test
def a_slow_region_has_one():
    with Recording('--snapshot-if=region:"look up \\"it\\"">300ms') as run:
        run.do('region look up')
        run.do("leave")
        lasted = run.slow('region look up "it"', "leave")
        text, path = run.snapshot()
        took(text, 'region look up "it"', lasted)
        is_good(path)
        run.end()


@test
def a_wait_for_a_lock_that_does_not_end_has_one():
    with Recording("--switches=off", "--snapshot-if=wait > 50ms") as run:
        # Waiting for work does not count. (Without context switches there are no page faults.)
        run.do("idle")
        time.sleep(0.2)
        run.do("job")
        run.do("hold")
        text, path = run.snapshot()
        run.do("release")
        assert re.fullmatch(r"waiting for mutex stats_mu in thread worker \(\d+\) has taken .* \(> 50.0 ms\) and has not ended", text), text
        is_good(path)
        found = events(path)
        begin = [e["time_ns"] for e in found if e.get("type") == "GoBlock" and e["stack"][0]["func"] == "worker"][-1]
        # Up to the time of the snapshot, although nothing has happened since.
        assert found[-1]["time_ns"] - begin >= 100_000_000, (begin, found[-1])
        (finding,) = [f for f in json.loads(answer("summary", "--json", path))["findings"] if f["kind"] == "open-wait"]
        assert "had waited for mutex stats_mu for " in finding["heading"] and "held by thread main (1)" in finding["details"], finding
        run.end()


@test
def a_lock_and_a_kind_of_wait_have_one():
    for condition, begin, end, kind, waker in (
        ("lock > 300ms", "hold", "release", "waiting for mutex stats_mu", "mutex stats_mu, which obey (slow.c:"),
        ("wait:mutex > 300ms", "hold", "release", "waiting for mutex stats_mu", "mutex stats_mu, which obey (slow.c:"),
        ("wait:semaphore > 300ms", "idle", "job", "waiting for semaphore jobs", "semaphore jobs, which obey (slow.c:"),
    ):
        with Recording(f"--snapshot-if={condition}") as run:
            lasted = run.slow(begin, end)
            text, path = run.snapshot()
            took(text, rf"{kind} in thread worker \(\d+\)", lasted)
            if " took " in text:
                (finding,) = [f for f in json.loads(answer("summary", "--json", path))["findings"] if f["kind"] == "slow-wait"]
                assert finding["heading"] == "W" + text[1:], finding
                assert f"its thread waited for {waker}" in finding["details"], finding
            is_good(path)
            run.end()


def sizes_until_no_room(most):
    """Returns the sizes of the snapshots written before the first for which --snapshot-max leaves no room."""
    with Recording("--snapshot-if=task > 300ms", "--snapshot-every=1s", f"--snapshot-max={most}") as run:
        run.slow("task request", "end")
        while not (line := run.message()).startswith("trail: no snapshot: task request "):
            time.sleep(1)
            run.slow("task request", "end")
        assert line.endswith("; --snapshot-max leaves no room for one"), line
        rest = run.end()
        assert rest == "trail: 1 snapshot was not written: --snapshot-max left no room\n", rest
        return [os.path.getsize(os.path.join(WORK, name)) for name in files() if name != "x.trace"]


@test
def all_snapshots_together_are_not_larger_than_their_limit():
    assert not sizes_until_no_room(100)
    with Recording("--snapshot-if=task > 300ms") as run:
        run.slow("task request", "end")
        one = os.path.getsize(run.snapshot()[1])
        run.end()
    # Each contains everything that the one before contains.
    sizes = sizes_until_no_room(3 * one)
    assert sizes and sum(sizes) <= 3 * one, (one, sizes)


def refusal(*options):
    marker = os.path.join(WORK, "started")
    done = subprocess.run([TRAIL, "record", *options, "--", "touch", marker], cwd=WORK, capture_output=True, text=True, timeout=240)
    assert done.returncode == 2 and not os.path.exists(marker), (options, done)
    return done.stderr


@test
def a_mistake_is_refused_before_the_program_is_started():
    for condition, message, *others in (
        ("task:request", "'>' is missing"),
        ("tsk > 5ms", "a condition is for task, task:NAME, region, region:NAME, wait, wait:KIND or lock"),
        ("task: > 5ms", "a name is missing"),
        ('task:"request > 5ms', "the closing quote of the name is missing"),
        ("task > 5", "expected a time"),
        ("task > 0ms", "expected a time"),
        ("task > 5ms 6ms", "expected a time"),
        ("task >= 5ms", "expected a time"),
        ("task < 5ms", "'>' is missing"),
        ("lock:mutex > 5ms", "'wait:mutex > 50ms'"),
        ("wait:mutx > 5ms", "did you mean 'mutex'? there are mutex, rwlock, once, "),
        ("wait:future > 5ms", "no kind of wait 'future'"),
        ("task > 500ms", "at least --flight=2s", "--flight=1999ms"),
        ("task > 30m", "at least --flight=3601s", "--flight=1h"),
        ("lock > 5ms", "--only leaves these waits out", "--only=io"),
        ("task > 5ms", "--snapshot-if writes several files", "-o", "-"),
        ("region:parse > 5ms", "not with --pid", f"--pid={os.getpid()}"),
        ("task > 5ms", "'999ms' is not a value", "--snapshot-every=999ms"),
    ):
        said = refusal("--flight=2h", f"--snapshot-if={condition}", *others)
        assert message in said, (condition, said)
    assert "needs --flight=TIME" in refusal("--snapshot-if=task > 5ms")
    assert "require --snapshot-if" in refusal("--flight=10s", "--snapshot-max=1G")


sys.exit(tap.main())
