#!/usr/bin/env python3
"""Traces made at random, read by trail and by the parsers of Go: the same verdict and the same text.

usage: differential.py TRAIL SOURCE_ROOT TRAIL_GENERATE TEST_MISUSE [--count=N] [--seed=N] [--format=N]... [--keep=DIR]

The traces are those of trail-generate, of hosts that call libtrail-record in any order (test_misuse.c) and of
tests/data, with up to four changes to their records, batches or bytes (traces.py). Go's parsers run within a program
for each release, built as a part of Go's own tree: 1.27 for the events of its `go tool trace -d=parsed`, 1.21 for v1 as it
was recorded. Equal seeds give equal traces. --keep keeps those that differ.

Differences that docs/trace-does-not-open.md names are in NAMED; all others fail.
"""

import argparse
import glob
import itertools
import json
import os
import random
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "lib"))
import work  # noqa: E402
from crafted import CRAFTED  # noqa: E402
from go_readers import go_of  # noqa: E402
from tap import finish, report, skip  # noqa: E402
from traces import V1_BATCH, V1_SAMPLE, V1_STACK, V1_STRING, V2_END, Mutator, decode_v1, decode_v2, types_of  # noqa: E402

PARSERS = {"1.27": ("go_current.go", "go"), "1.21": ("go_v1.go", "go-v1")}
FORMATS = {
    "1.27": [11, 19, 21, 22, 23, 25, 26],
    "1.21": [7, 8, 9, 10, 11, 19, 21],
}
EVENT = re.compile(rb"^(M=.* Time=|)(-?\d+)(.*(?:\n(?!M=|\d).*)*)", re.M)  # with its stack, by either release
V1_NAMES = {45: 3, 47: 3, 48: 2}  # index of the string ID in UserTaskCreate, UserRegion and UserLog
ENV = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}


# MARK: The readers


class Go:
    """A release's parser, which answers for one trace after the other."""

    def __init__(self, release, folder):
        self.program = os.path.join(folder, f"go-{release}")
        self.process = None
        go, env = go_of(release), {**ENV, "GOTOOLCHAIN": "local", "GOPROXY": "off"}
        if "HOME" not in env:  # where Go's cache is
            env.setdefault("GOCACHE", os.path.join(folder, "go-cache"))
        root = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, env=env).stdout.strip()
        tree = os.path.join(os.path.realpath(os.path.join(root, "src")), "cmd")
        overlay = self.program + ".overlay"
        with open(overlay, "w") as f:
            sources = ("answer.go", PARSERS[release][0])
            json.dump({"Replace": {os.path.join(tree, "trail_differential", s): os.path.join(HERE, s) for s in sources}}, f)
        args = ["build", "-overlay", overlay, "-o", self.program, "cmd/trail_differential"]
        p = subprocess.run([go, *args], cwd=tree, capture_output=True, text=True, env=env)
        self.error = p.stderr if p.returncode else ""

    def read(self, path):
        """Whether it accepts the trace, the text of the events, and its message."""
        if not self.process:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV)
        self.process.stdin.write(path.encode() + b"\n")
        self.process.stdin.flush()
        sizes = self.process.stdout.readline().split()
        if not sizes:  # out of memory, or a failure that Go does not recover from
            self.process.wait()
            self.process = None
            return False, b"", "panic: the parser ended"
        text, message = (self.process.stdout.read(int(size)) for size in sizes)
        return not message, text, message.decode("utf-8", "replace")

    def close(self):
        if self.process:
            self.process.stdin.close()
            self.process.wait()


def trail_reads(trail, form, path):
    p = subprocess.run([trail, "print", "--format=" + form, path], capture_output=True, env=ENV)
    return p.returncode == 0, p.stdout, p.stderr.decode("utf-8", "replace")


# MARK: Traces to begin with


def bases(args, folder):
    """The paths of small traces, by format."""
    for minor in sorted({minor for formats in FORMATS.values() for minor in formats}):
        for seed in range(6):
            sizes = [f"--events={40 + 60 * seed}", "--goroutines=16", f"--procs={1 + seed % 4}", "--stacks=4"]
            path = os.path.join(folder, f"generated-{seed}.{minor}.trace")
            subprocess.run(
                [args.generate, f"--format=1.{minor}", *sizes, f"--seed={seed + 1}", "-o", path],
                check=True,
                capture_output=True,
            )
    env = {**ENV, "TRAIL_TEST_FOLDER": folder, "TRAIL_TEST_FIRST": "0", "TRAIL_TEST_COUNT": "20"}
    subprocess.run([args.misuse], check=True, capture_output=True, env=env)
    data = os.path.join(args.root, "tests", "data")
    for text in glob.glob(os.path.join(data, "*.txt")) + glob.glob(os.path.join(data, "v2", "*.txt")):
        path = os.path.join(folder, os.path.basename(text) + ".trace")
        subprocess.run([args.trail, "assemble", text, "-o", path], check=True)
    by_format = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.trace"))):
        with open(path, "rb") as f:
            data = f.read()
        minor = data[5:7].decode().strip()
        if len(data) < 50000 and minor.isdigit():
            by_format.setdefault(int(minor), []).append(data)
    return by_format


# MARK: Comparing


def has_marks(trace):
    """Whether a goroutine or sequence number of a trace of v1 is one of those that Go's parser uses as marks."""
    minor = int(trace[5:7])
    if minor >= 22:
        return False
    try:
        records = decode_v1(trace, minor)
    except IndexError:  # it is cut
        return False
    return any(
        value >= 2**64 - 2
        for type, numbers, _ in records
        if type & 0x3F not in (V1_BATCH, V1_SAMPLE)
        for value in numbers[1:3]  # behind the time
    )


def frames_of(trace):
    """Of a trace of v1: frames (address, function, file, line), the numbers of its strings, and those that events use."""
    minor, frames, strings, used = int(trace[5:7]), [], {0}, set()
    try:
        for type, numbers, _ in decode_v1(trace, minor) if minor < 22 else []:
            if type & 0x3F == V1_STACK:
                frames += [tuple(numbers[i : i + 4]) for i in range(2, len(numbers) - 3, 4)]
            elif type == V1_STRING:
                strings.add(numbers[0])
            elif type & 0x3F in V1_NAMES and len(numbers) > V1_NAMES[type & 0x3F]:
                used.add(numbers[V1_NAMES[type & 0x3F]])
    except IndexError:  # it is cut
        pass
    return frames, strings, used


def has_two_frames(trace):
    frames = set(frames_of(trace)[0])
    return len({frame[0] for frame in frames}) < len(frames)


def has_unnamed(trace):
    frames, strings, used = frames_of(trace)
    return not used | {number for frame in frames for number in frame[1:3]} <= strings


def has_batch(trace, which):
    """Whether `which` is true of a batch of a trace of v2, as far as batches can be read."""
    try:
        batches = decode_v2(trace, types_of(os.path.join(HERE, "..", "..", ".."), "v2")) if int(trace[5:7]) >= 22 else []
        return any(which(batch) for batch in batches)
    except (IndexError, KeyError):  # bytes that are no batch
        return False


def has_cut_table(trace):
    return has_batch(trace, lambda batch: batch.cut)


def begins_with_end(trace):
    """Whether a batch of events ends the generation for Go, so that it looks for no table after it."""
    return has_batch(trace, lambda batch: batch.records and batch.records[0][0] == V2_END)


def is_far(text):
    """Whether trail's text has a time of 146 years or more."""
    return re.search(rb"(?:^| Time=)-?(?:[5-9]\d{18}|4[6-9]\d{17})\b", text, re.M)


# Deliberate differences: docs/trace-does-not-open.md has the reasons.
NAMED = {
    "Go's parser fails": lambda go, trail, trace: go[2].startswith("panic: "),
    "numbers that are marks": lambda go, trail, trace: has_marks(trace),
    "times beyond 146 years": lambda go, trail, trace: is_far(trail[1]),
    "a log that is cut": lambda go, trail, trace: go[0] and "event UserLog" in trail[2] and "ends inside" in trail[2],
    "a frequency of 0": lambda go, trail, trace: "frequency event found (it is 0)" in trail[2],
    "two frames of an address": lambda go, trail, trace: has_two_frames(trace),
    "a name that is no string": lambda go, trail, trace: has_unnamed(trace),
    "an end of a generation among events": lambda go, trail, trace: (
        "(EndOfGeneration)" in trail[2]
        # As the first event of a batch it ends Go's generation before the next one's batches come.
        or ("missing end-of-generation" in trail[2] and "missing end-of-generation" not in go[2])
        or (not go[0] and not trail[0] and begins_with_end(trace))
    ),
    "a status with a stack in 1.22": lambda go, trail, trace: trace[5:7] == b"22" and b"\x30" in trace,
    "a clock snapshot among events": lambda go, trail, trace: "(ClockSnapshot)" in trail[2],
    "a table that is cut": lambda go, trail, trace: go[0] and not trail[0] and (
        "invalid uvarint in a table batch" in trail[2] or has_cut_table(trace)
    ),
    "tables without an end": lambda go, trail, trace: (
        trace[5:7] == b"26" and trail[0] and re.match("expected .* event, got ", go[2])
    ),
    "a clock beyond the calendar": lambda go, trail, trace: re.search(rb"Wall=-?\d{9,}\n", trail[1]),
}


def difference(go, trail):
    """What differs, or None."""
    if go[0] != trail[0]:
        return "verdict"
    return "text" if go[1] != trail[1] else None


def at_one_time(text):
    """The events of a text of v1 in groups of equal time, sorted and without it; Go 1.27 puts a nanosecond between those."""
    groups, last = [], None
    for before, time, rest in EVENT.findall(text):
        if last is None or int(time) - last > 1:
            groups.append([])
        groups[-1].append(before + rest)
        last = int(time)
    return [sorted(group) for group in groups]


def is_tie(go, ours, theirs, path):
    """Whether the texts of v1 differ only in the order of equal times, and in what follows from one that Go draws at random."""
    groups, texts = at_one_time(ours), itertools.chain([theirs], (go.read(path)[1] for _ in range(20)))
    return any(groups == at_one_time(text) for text in texts)


def compare(go, trail, form, path):
    """What differs between the readers' answers; None if nothing does, or a name of NAMED."""
    theirs, ours = go.read(path), trail_reads(trail, form, path)
    what = difference(theirs, ours)
    if what:
        with open(path, "rb") as f:
            trace = f.read()
        what = next((name for name, named in NAMED.items() if named(theirs, ours, trace)), what)
    if what == "text" and int(trace[5:7]) < 22 and is_tie(go, ours[1], theirs[1], path):
        what = None
    return what, theirs, ours


def crafted(args):
    """Traces in which one rule decides: whether they are good is known also where Go is not."""
    path = os.path.join(args.folder, "crafted.trace")
    for name, trace, verdicts in CRAFTED:
        with open(path, "wb") as f:
            f.write(trace)
        for release, good in verdicts.items():
            ours = trail_reads(args.trail, PARSERS[release][1], path)
            report(ours[0] == good, f"{name}: {'good' if good else 'bad'} as in Go {release}", first_line(ours))


def run_crafted(args, release, go):
    path = os.path.join(args.folder, "crafted.trace")
    for name, trace, verdicts in CRAFTED:
        if release not in verdicts:
            continue
        with open(path, "wb") as f:
            f.write(trace)
        what, theirs, ours = compare(go, args.trail, PARSERS[release][1], path)
        right = not what and theirs[0] == verdicts[release]
        report(right, f"{name}: as Go {release}", what, first_line(theirs), first_line(ours))


def run(args, release, minor, go, traces):
    form = PARSERS[release][1]
    chance = random.Random(f"{args.seed} {release} {minor}")
    mutator = Mutator(args.root, chance)
    path = os.path.join(args.folder, "changed.trace")
    found, accepted, named = [], 0, {}
    for n in range(args.count):
        with open(path, "wb") as f:
            f.write(mutator.changed(chance.choice(traces)))
        what, theirs, ours = compare(go, args.trail, form, path)
        accepted += theirs[0]
        if what in NAMED:
            named[what] = named.get(what, 0) + 1
        elif what:
            found.append(f"{n}: {what}: Go: {first_line(theirs)}; trail: {first_line(ours)}")
            if args.keep:
                shutil.copy(path, os.path.join(args.keep, f"{release}-{minor}-{n}.trace"))
    report(
        not found,
        f"1.{minor}: as Go {release}, {args.count} traces, {accepted} of them good"
        + "".join(f"; {name}: {n}" for name, n in sorted(named.items())),
        *found,
    )


def first_line(answer):
    return (answer[2].strip().splitlines() or ["good"])[0][:200]


def main():
    parser = argparse.ArgumentParser()
    for name in ("trail", "root", "generate", "misuse"):
        parser.add_argument(name)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--format", type=int, action="append")
    parser.add_argument("--keep")
    args = parser.parse_args()
    args.folder = work.folder("differential")
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    crafted(args)
    traces = bases(args, args.folder)
    for release in PARSERS:
        if not go_of(release):
            skip(f"as Go {release}", f"no Go {release}")
            continue
        go = Go(release, args.folder)
        report(not go.error, f"Go {release}: its parser is built", go.error)
        if not go.error:
            run_crafted(args, release, go)
        for minor in FORMATS[release] if not go.error else []:
            if not args.format or minor in args.format:
                run(args, release, minor, go, traces[minor])
        go.close()
    return finish()


if __name__ == "__main__":
    sys.exit(main())
