#!/usr/bin/env python3
"""Each allocation of each command fails, alone and together with all later ones. TAP.

usage: exhausted.py TRAIL SOURCE_ROOT SANITIZER COMPILER...

Either the answer is the same as with memory, or the command reports that memory was exhausted and exits with 3, and no
file is left that differs from the right one. A sample of the allocations is tried, chosen by a fixed seed;
TRAIL_TEST_ALL=1 tries all of them.
"""

import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, ENV, TRAIL, WORK, good, trace  # noqa: E402
from sample import ALL  # noqa: E402
from tap import Skip, main, test  # noqa: E402

SANITIZER, COMPILER = sys.argv[3], sys.argv[4:]
SAMPLE = 8  # allocations of each command

if SANITIZER != "none":
    print("1..0 # SKIP a sanitizer has an allocator of its own")
    sys.exit(0)

# EVERYTHING, OLD and LOCKS are traces; DIR is an empty folder.
COMMANDS = """
check EVERYTHING
check --repair OLD
info --full EVERYTHING
summary EVERYTHING
summary OLD
summary --json LOCKS
goroutines --sort=total EVERYTHING
goroutines --json EVERYTHING
locks LOCKS
locks --json LOCKS
threads EVERYTHING
procs EVERYTHING
latency EVERYTHING
profile EVERYTHING
profile --format=speedscope EVERYTHING
profile --format=pprof --output=DIR/made EVERYTHING
regions EVERYTHING
regions --json EVERYTHING
tasks EVERYTHING
tasks --json EVERYTHING
gc EVERYTHING
mmu EVERYTHING
why LOCKS
whatif LOCKS
whatif LOCKS -o DIR/made
find EVERYTHING block
print --stacks EVERYTHING
print OLD
print --format=wire EVERYTHING
diff EVERYTHING LOCKS
convert --to=go1.23 EVERYTHING -o DIR/made
convert --to=go1.26 OLD -o DIR/made
convert --goroutine=1 EVERYTHING -o DIR/made
merge EVERYTHING LOCKS -o DIR/made
symbolize EVERYTHING -o DIR/made
symbolize OLD -o DIR/made
export --to=perfetto EVERYTHING -o DIR/made
export --to=chrome EVERYTHING -o DIR/made
export --to=otlp EVERYTHING -o DIR/made
export --to=otlp-metrics EVERYTHING -o DIR/made
export --to=ctf EVERYTHING -o DIR/made
export --to=csv --table=goroutines EVERYTHING -o DIR/made
export --to=csv EVERYTHING -o DIR/made
report EVERYTHING -o DIR/made
import PERF -o DIR/made
doctor true
""".strip().split("\n")

random.seed(1)
PRELOAD = os.path.join(WORK, "malloc.so")
TRACES = {"PERF": os.path.join(DATA, "import", "perf-6.1.txt")}


def build():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "exhausted_malloc.c")
    subprocess.run([*COMPILER, "-shared", "-fPIC", "-O1", source, "-o", PRELOAD], check=True)
    for name, text in (("EVERYTHING", "everything-1.26"), ("OLD", "everything-1.21"), ("LOCKS", "locks-1.26")):
        TRACES[name] = trace(text)


def files_below(folder):
    """The contents of all files, without the folder's own name, which differs from run to run."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                found[os.path.relpath(os.path.join(place, name), folder)] = file.read().replace(folder.encode(), b"DIR")
    return found


def run(words, at, every):
    folder = tempfile.mkdtemp(dir=WORK)
    counted = os.path.join(WORK, "count")
    env = ENV | {"LD_PRELOAD": PRELOAD, "FAIL_AT": str(at)} | ({"FAIL_ALL": "1"} if every else {})
    if at == 0:
        env |= {"FAIL_AT": "-1", "FAIL_COUNT": counted}
    args = [TRACES.get(word, word.replace("DIR", folder)) for word in words]
    p = subprocess.run([TRAIL, *args], env=env, capture_output=True, stdin=subprocess.DEVNULL, timeout=240)
    files = files_below(folder)
    shutil.rmtree(folder)
    count = int(open(counted).read()) if at == 0 else 0
    return p.returncode, p.stdout.replace(folder.encode(), b"DIR"), p.stderr.decode(), files, count


def fails_whole(command):
    def function():
        words = command.split()
        status, out, err, files, count = run(words, 0, False)
        if status == 2 and words[0] == "doctor" and subprocess.run([TRAIL, *words], capture_output=True).returncode == 2:
            raise Skip("no program can be recorded here")
        assert status == 0 and count > 0, err
        places = range(1, count + 1)
        if not ALL:
            places = sorted(random.sample(places, min(SAMPLE, count)))
        for at in places:
            for every in (False, True):
                what = f"allocation {at}{' and all later ones' if every else ''}"
                code, got, message, made, _ = run(words, at, every)
                if code == 0:
                    assert got == out and made == files, f"{what}: another answer, and no error"
                else:
                    assert code == 3, f"{what}: exit status {code}: {message}"
                    assert message.strip(), f"{what}: no message"
                    assert not made or made == files, f"{what}: a file that is not whole: {sorted(made)}"

    function.__name__ = f"{command}: without memory it answers whole or fails"
    return test(function)


@test
def without_memory_for_duckdb_no_command_line_is_wrong():
    """It may end the process itself."""
    code, _, err, _, count = run(["sql", "EVERYTHING", "select 1"], 0, False)
    if code != 0:
        raise Skip("DuckDB is not there")
    for at in range(1, count, count // SAMPLE):
        code, _, err, _, _ = run(["sql", "EVERYTHING", "select 1"], at, False)
        assert code in (0, 3) or code < 0 or "needs more memory" in err, f"allocation {at}: exit status {code}: {err}"


build()
for line in COMMANDS:
    fails_whole(line)
main()
