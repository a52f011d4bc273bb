#!/usr/bin/env python3
"""Profiles, compared with what Go 1.27 computes. TAP.

usage: profiles_conformance.py TRAIL SOURCE_ROOT

expected/NAME.TYPE.pprof.txt.gz (see analyses_conformance.py for its place) is the output of `go
tool pprof -raw` for Go's profile. Ours is decoded by the test's own protobuf reader. Both are
compared as sets keyed by stack.

Integers must be equal; for traces before Go 1.22, where Go's merge breaks ties of time at random,
times may differ by 0.1 % or a microsecond, whichever is more.
"""

import glob
import gzip
import os
import re
import subprocess
import sys

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TRACES = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from pprof import read_pprof  # noqa: E402

LOCATION = re.compile(r"^ *(\d+): (0x[0-9a-f]+) (?:M=\d+ )?(.*) (\S*):(\d+):\d+ s=\d+$")
SAMPLE = re.compile(r"^ *(\d+) +(-?\d+): ([\d ]*)$")


def version(path):
    with open(path, "rb") as f:
        return int(f.read(16).split()[1].split(b".")[1])


def trace_of(name):
    for folder, suffix in (("real", ".trace"), ("go-v1", ""), ("go-v2-text", ".bin")):
        path = os.path.join(TRACES, folder, name + suffix)
        if os.path.exists(path):
            return path
    raise AssertionError(f"no trace for {name}")


def read_raw(path):
    """{stack: (count, ns)}"""
    samples, locations = [], {}
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as f:
        for line in f:
            line = line.rstrip("\n")
            if m := LOCATION.match(line):
                locations[int(m[1])] = (int(m[2], 16), m[3], m[4], int(m[5]))
            elif m := SAMPLE.match(line):
                samples.append((int(m[1]), int(m[2]), [int(i) for i in m[3].split()]))
    found = {}
    for count, ns, stack in samples:
        found[tuple(locations[i] for i in stack)] = (count, ns)
    assert len(found) == len(samples), "a stack occurs twice"
    return found


def read_ours(path, kind):
    p = subprocess.run(
        [TRAIL, "profile", "--type=" + kind, "--format=pprof", path], capture_output=True
    )
    assert p.returncode == 0, p.stderr
    profile = read_pprof(p.stdout)
    assert profile["types"] == [("contentions", "count"), ("delay", "nanoseconds")], profile["types"]
    assert profile["period"] == (("trace", "count"), 1), profile["period"]
    found = dict(profile["samples"])
    assert len(found) == len(profile["samples"]), "a stack occurs twice"
    return found


def differences(ours, theirs, exact):
    for stack in sorted(set(ours) | set(theirs)):
        a, b = ours.get(stack), theirs.get(stack)
        close = 0 if exact else max(1000, (b[1] if b else 0) / 1000)
        if a is None or b is None:
            # Short times that depend on the order of equal times may be present or absent.
            if exact or (a or b)[1] > close:
                yield f"{stack[:2]}: {a}, Go has {b}"
        elif abs(a[1] - b[1]) > close or (exact and a[0] != b[0]):
            yield f"{stack[:2]}: {a}, Go has {b}"


def main():
    answers = sorted(glob.glob(os.path.join(TRACES, "expected", "*.pprof.txt.gz")))
    failed = 0
    if not answers:
        print("1..0 # SKIP no traces with known answers")
        return 0
    for number, file in enumerate(answers, 1):
        name, kind = os.path.basename(file)[: -len(".pprof.txt.gz")].rsplit(".", 1)
        path = trace_of(name)
        theirs, ours = read_raw(file), read_ours(path, kind)
        wrong = list(differences(ours, theirs, version(path) >= 22))
        failed += bool(wrong)
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}: {kind}, {len(theirs)} stacks")
        for line in wrong[:8]:
            print(f"# {line}")
    print(f"1..{len(answers)}")
    return failed > 0


sys.exit(main())
