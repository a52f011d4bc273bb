#!/usr/bin/env python3
"""`trail record --heap`: the heap in a trace matches the program's own count. Prints TAP.

usage: heap.py TRAIL libtrail-heap.so SURVIVE HEAP [HEAP_NEW]; the programs are those of meson.build
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_of
from tap import finish, report, skip

TRAIL, LIBRARY, SURVIVE, HEAP = (os.path.abspath(a) for a in sys.argv[1:5])
HEAP_NEW = os.path.abspath(sys.argv[5]) if len(sys.argv) > 5 else None
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
ENV.pop("LD_PRELOAD", None)
ENV.pop("TRAIL_SHM", None)
LIMIT = 120

# Memory of the C library itself: stdio buffers, blocks for threads.
OWN = 64 * 1024
# A block exceeds the size requested by less than LARGE_SLACK if it is large, by at most SMALL_SLACK
# if it is small.
LARGE, LARGE_SLACK, SMALL_SLACK = 1 << 20, 65536 + 8192, 24
# Small blocks freed by one thread within a millisecond are recorded once they add up to this.
LEAP = 1 << 20



def run(*command, env=ENV):
    p = subprocess.run(command, input=b"hello\n", capture_output=True, env=env, timeout=LIMIT)
    return p.returncode, p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")


def heap_of(path):
    """Returns the sequence of heap values."""
    code, out, err = run(TRAIL, "print", "--format=jsonl", path)
    assert code == 0, err
    events = map(json.loads, out.splitlines())
    return [e["value"] for e in events if e.get("type") == "HeapAlloc"]


def expected(line):
    """The least and the most that the trace may have: changes of less than a thousandth are not recorded."""
    live, blocks = map(int, line.split())
    slack = blocks * (SMALL_SLACK if blocks > 1000 else LARGE_SLACK)
    return live - live / 1000 - 1024, live + live / 1000 + 1024 + slack + OWN


def staircase(lines):
    """Yields the expected bounds after each step."""
    before = 0
    for line in lines:
        low, high = expected(line)
        blocks = int(line.split()[1])
        yield low, high + (LEAP if before - blocks > 1000 else 0)
        before = blocks


def find_steps(values, steps):
    """Returns the steps that are missing from the values, in order."""
    at, missing = 0, []
    for low, high in steps:
        found = next((i for i in range(at, len(values)) if low <= values[i] <= high), None)
        if found is None:
            missing.append(f"none from {low:.0f} to {high:.0f} in {values[at:]}")
        else:
            at = found
    return missing


def accepted(name, path):
    code, out, err = run(TRAIL, "check", path)
    report(code == 0, f"{name}: trail check accepts the trace", out, err)
    go = go_of("1.23")
    if not go:
        skip(f"{name}: go tool trace reads the trace", "no golang-1.23")
        return
    env = {**ENV, "GOTOOLCHAIN": "local", "GOFLAGS": "", "HOME": tempfile.gettempdir()}
    code, out, err = run(go, "tool", "trace", "-d=1", path, env=env)
    report(code == 0 and "/memory/classes/heap/objects:bytes" in out, f"{name}: go tool trace reads it", err)


def test_staircase(folder, name, env=ENV):
    path = os.path.join(folder, "heap.trace")
    code, out, err = run(TRAIL, "record", "--heap", "--children", "--split", "-o", path, "--", HEAP, env=env)
    report(code == 0, f"{name}: is recorded", code, out, err)
    if code != 0:
        return
    lines = [line for line in out.splitlines() if not line.startswith("child")]
    values = heap_of(path)
    steps = list(staircase(lines))
    report(len(lines) > 20 and not find_steps(values, steps), f"{name}: each step is in the trace",
           *find_steps(values, steps))  # fmt: skip
    most = max(map(lambda line: int(line.split()[0]), lines))
    low, high = most, most * 1.002 + 8 * LARGE_SLACK + OWN
    report(low <= max(values) <= high, f"{name}: and no higher one", max(values), low, high)
    peak = re.findall(r"heap: ([\d.]+) MB at most", err)
    report(peak and abs(float(peak[-1]) * 1e6 - max(values)) < 1e4, f"{name}: the summary has the highest", err)
    report(values[-1] <= OWN + 1024, f"{name}: at the end all is free", values[-5:])
    accepted(name, path)
    children = [p for p in glob.glob(os.path.join(folder, "heap.*.trace"))]
    values = heap_of(children[0]) if len(children) == 1 else []
    child = int(re.search(r"child (\d+)", out)[1])
    low, high = expected(f"{child} 4")
    report(values and low <= values[-1] <= high, f"{name}: a child has what its parent had", child, values, children)
    for p in children:
        os.unlink(p)
    # In one trace the heap is the sum: twice the heap when the child begins, and the parent's alone
    # at the end.
    code, out, err = run(TRAIL, "record", "--heap", "--children", "-o", path, "--", HEAP, env=env)
    sums = heap_of(path)
    both = 2 * int(re.search(r"child (\d+)", out)[1])
    report(code == 0 and any(v >= both for v in sums[-40:]), f"{name}: in one trace the heap is the sum of both", both, sums[-40:])
    report(sums[-1] <= OWN + 1024, f"{name}: ... without the child when that has ended", sums[-5:])


def survives(name, folder, program, *arguments, env=ENV):
    """Checks that output and exit status are the same as without the recorder. Returns the recorder's messages."""
    path = os.path.join(folder, "survive.trace")
    plain = run(program, *arguments, env=env)
    code, out, err = run(TRAIL, "record", "--heap", "--no-children", "-o", path, "--", program, *arguments, env=env)
    want = plain[0] if plain[0] >= 0 else 128 - plain[0]
    report((code, out) == (want, plain[1]), f"{name}: as without the recorder", plain, code, out, err)
    code, out, wrong = run(TRAIL, "check", path)
    report(code == 0, f"{name}: trail check accepts the trace", out, wrong)
    return err


def library(name):
    return next(iter(glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib/" + name)), None)


def test_allocators(folder):
    """Block sizes differ between allocators, but blocks are never too small, and large ones are at
    most a quarter larger."""
    for name, file in [("jemalloc", "libjemalloc.so.2"), ("tcmalloc", "libtcmalloc_minimal.so.4")]:
        path = library(file)
        env = {**ENV, "LD_PRELOAD": path or ""}
        if not path or run(TRAIL, "--version", env=env)[0] != 0:
            skip(name, f"no {name}, or trail itself does not run with it")
            continue
        for scenario in ("allocations", "fork", "thread-ends", "early"):
            survives(f"{name}, {scenario}", folder, SURVIVE, scenario, env=env)
        trace = os.path.join(folder, "heap.trace")
        code, out, err = run(TRAIL, "record", "--heap", "--no-children", "-o", trace, "--", HEAP, "no-pvalloc", env=env)
        lines = [line.split() for line in out.splitlines() if not line.startswith("child")]
        steps = [(int(live) * 0.999 - 1024, int(live) * 1.25 + (1 << 20)) for live, _ in lines]
        missing = find_steps(heap_of(trace), steps)
        report(code == 0 and len(lines) > 20 and not missing, f"{name}: each step is in the trace", err, *missing)


def test_new(folder):
    """Whether `new` is the C++ library's, which calls malloc, or the allocator's own, each block is counted once."""
    trace = os.path.join(folder, "heap.trace")
    for allocator, file in [("", None), ("jemalloc", "libjemalloc.so.2"), ("tcmalloc", "libtcmalloc_minimal.so.4")]:
        name = f"new of {allocator}" if allocator else "new"
        env = {**ENV, "LD_PRELOAD": library(file) or ""} if file else ENV
        if not HEAP_NEW:
            skip(name, "no C++ compiler")
            continue
        if file and (not library(file) or run(TRAIL, "--version", env=env)[0] != 0):
            skip(name, f"no {allocator}, or trail itself does not run with it")
            continue
        code, out, err = run(TRAIL, "record", "--heap", "--no-children", "-o", trace, "--", HEAP_NEW, env=env)
        lines = [line.split() for line in out.splitlines()]
        # The C++ library reserves memory for exceptions thrown when memory runs out.
        steps = [(int(live) * 0.999 - 1024, int(live) * 1.25 + (1 << 20)) for live, _ in lines]
        missing = find_steps(heap_of(trace), steps)
        report(code == 0 and len(lines) > 10 and not missing, f"{name}: each step is in the trace", code, err, *missing)


def test_sanitizers(folder):
    """A sanitizer's malloc precedes ours: nothing is recorded, and the summary reports it."""
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "heap.c")
    for compiler in ("gcc", "clang"):
        for sanitizer in ("address", "thread"):
            name, program = f"{compiler}, {sanitizer}", os.path.join(folder, f"{compiler}-{sanitizer}")
            env = {**ENV, "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
                   "TSAN_OPTIONS": "allocator_may_return_null=1"}  # fmt: skip
            command = [compiler, "-D_GNU_SOURCE", "-w", "-g", "-fsanitize=" + sanitizer, source, "-o", program,
                       "-pthread"]  # fmt: skip
            if not shutil.which(compiler):
                skip(name, f"no {compiler}")
                continue
            if run(*command)[0] != 0 or run(program, env=env)[0] != 0:
                skip(name, f"{compiler} -fsanitize={sanitizer} makes no program here")
                continue
            err = survives(name, folder, program, env=env)
            report("heap: not recorded" in err, f"{name}: the summary says that it is not recorded", err)


def test_rest(folder):
    err = survives("true", folder, shutil.which("true"))
    scenarios = ["fork", "bare-fork", "vfork", "spawn", "exec", "exec-from-thread", "cancel", "thread-ends", "early",
                 "main-ends-first", "libraries", "closes-all", "ends-late", "allocations", "long-jump",
                 "signals", "crashes", "threads-at-exit"]  # fmt: skip
    for scenario in scenarios:
        survives(scenario, folder, SURVIVE, scenario)
    path = os.path.join(folder, "none.trace")
    code, out, err = run(TRAIL, "record", "--no-children", "-o", path, "--", HEAP)
    report(code == 0 and "heap:" not in err and not heap_of(path), "without --heap: none", err)
    code, out, err = run("nm", "-D", "--defined-only", os.path.join(os.path.dirname(LIBRARY), "libtrail-preload.so"))
    report(code == 0 and " malloc" not in out and " free" not in out, "without --heap: malloc is not wrapped", err)
    code, out, err = run(TRAIL, "env", "--heap")
    report(f"'{LIBRARY}'" in out and " --heap" in err, "trail env --heap: names the library", out, err)


def main():
    with tempfile.TemporaryDirectory() as folder:
        test_staircase(folder, "staircase")
        test_rest(folder)
        test_allocators(folder)
        test_new(folder)
        test_sanitizers(folder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
