#!/usr/bin/env python3
"""Traces read by several threads: every answer is the same as with one thread, whatever is wrong with the trace. TAP.

With `all`, instead the traces of the folder that TRAIL_TRACES names, or in ../shared/traces next to the source; skipped
if there is none.

usage: parallel.py TRAIL SOURCE_ROOT GENERATOR [all]
"""

import glob
import gzip
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, SHARED, TRAIL, WORK, equal, run  # noqa: E402
from sample import some  # noqa: E402
from tap import Skip, main, test, tests  # noqa: E402

GENERATE = os.path.abspath(sys.argv[3])
ALL = "all" in sys.argv[4:]
# Under ThreadSanitizer, which is slow, one format is sufficient.
FORMATS = (22, 23, 25, 26) if int(os.environ.get("TRAIL_TEST_COUNT", "100")) >= 100 else (26,)
COMMANDS = (["check", "--json"], ["check", "--json", "--strict"])
ANSWERS = COMMANDS + (["print"], ["export", "--to=perfetto"], ["summary", "--json"], ["locks"], ["why"])
END_OF_GENERATION, EXPERIMENTAL_BATCH = 0x34, 0x31

# MARK: Traces


def generated(version):
    """A trace with several generations, as bytes."""
    path = os.path.join(WORK, f"generated-{version}.trace")
    if not os.path.exists(path):
        subprocess.run(
            [GENERATE, f"--format=1.{version}", "--size=1200K", "--rate=50K", "-o", path], check=True, capture_output=True
        )
    with open(path, "rb") as f:
        return f.read()


def number_at(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift, last = at + 1, shift + 7, data[at] < 128
        if last:
            return value, at


def generations(data):
    """Where each generation begins and ends, by the headers of its batches."""
    found, begin, current, at = [], 16, None, 16
    while at < len(data):
        if data[at] == END_OF_GENERATION:
            at, current = at + 1, None
            found.append((begin, at))
            begin = at
            continue
        header = at + (2 if data[at] == EXPERIMENTAL_BATCH else 1)
        numbers = []
        for _ in range(4):
            number, header = number_at(data, header)
            numbers.append(number)
        if current not in (None, numbers[0]):
            found.append((begin, at))
            begin = at
        current, at = numbers[0], header + numbers[3]
    return found + ([(begin, at)] if begin < at else [])


def written(data):
    path = os.path.join(WORK, "changed.trace")
    with open(path, "wb") as f:
        f.write(data)
    return path


# MARK: Answers


def check_alike(path, commands=COMMANDS, counts=(2, 8)):
    for command in commands:
        one = run(*command, "--threads=1", path)
        for count in counts:
            equal(run(*command, f"--threads={count}", path), one, f"{' '.join(command)} --threads={count} {path}:")


def in_parallel(path, threads=3, **more):
    """Returns how many generations were checked without those before them, and how many there are."""
    command = [TRAIL, "check", "--quiet", *([f"--threads={threads}"] if threads else []), path]
    shows = {**ENV, "TRAIL_SHOW_PARALLEL": "1"}
    messages = subprocess.run(command, env=shows, capture_output=True, text=True, **more).stderr
    words = messages.split(": ")[-1].split()
    return int(words[0]), int(words[2])


@test
def generations_are_checked_in_parallel():
    for version in FORMATS:
        data = generated(version)
        count = len(generations(data))
        assert count > 4
        alone, whole = in_parallel(written(data))
        equal(whole, count)
        # Not the first, and not one in which a P is taken from a thread whose system call began
        # earlier.
        assert alone >= count - 2, f"1.{version}: {alone} of {count}"


@test
def every_answer_is_that_of_one_thread():
    for version in FORMATS:
        check_alike(written(generated(version)), ANSWERS)


@test
def an_answer_of_a_part_is_that_of_one_thread():
    path = written(generated(26))
    for window in (["--from=500ms"], ["--to=1s"], ["--from=300ms", "--to=900ms"]):
        check_alike(path, (["summary", "--json", *window],))


@test
def one_thread_checks_nothing_in_parallel():
    equal(in_parallel(written(generated(26)), 1)[0], 0)


@test
def threads_are_as_many_as_the_affinity_allows():
    path, one = written(generated(26)), {min(os.sched_getaffinity(0))}
    equal(in_parallel(path, None, preexec_fn=lambda: os.sched_setaffinity(0, one))[0], 0)


@test
def a_trace_inside_a_file():
    data = generated(26)
    with open(written(b"before " + data), "rb") as f:
        os.lseek(f.fileno(), len(b"before "), os.SEEK_SET)
        got = subprocess.run([TRAIL, "check", "--json", "--threads=4", "-"], stdin=f, capture_output=True, env=ENV)
    equal((got.returncode, got.stdout), run("check", "--json", "--threads=1", "-", stdin=data)[:2])


# DuckDB does not ask for the times where it only counts.
@test
def sql_counts_the_events_that_it_reads():
    chance = random.Random(36)
    for version in (21, *FORMATS):
        data = generated(version)
        for damage in (lambda data, *_: data, *DAMAGE):
            path = written(damage(data, len(data) * 2 // 3, chance))
            count, read = (run("sql", "--csv", path, f"select count({what}) as n from events") for what in ("*", "time_ns"))
            if "npm install" in count[2]:
                raise Skip("no DuckDB")
            equal(count, read, f"1.{version} {damage.__name__}:")
            assert int(count[1].split()[1]) > 0


# The states after the gap differ from those at the end of the previous generation: this must be
# found at each boundary.
@test
def a_missing_generation_is_found_at_each_bound():
    for version in FORMATS:
        data = generated(version)
        all_of_them = generations(data)
        for begin, end in all_of_them[1:-1]:
            path = written(data[:begin] + data[end:])
            code, _, _ = run("check", "--quiet", "--threads=2", path)
            equal(code, 1, f"1.{version} without [{begin}, {end}):")
            assert in_parallel(path)[0] < len(all_of_them) - 2
            check_alike(path)


@test
def generations_in_another_order():
    for version in FORMATS:
        data = generated(version)
        (a, b), (_, c) = generations(data)[2:4]
        check_alike(written(data[:a] + data[b:c] + data[a:b] + data[c:]))
        check_alike(written(data[:b] + data[a:b] + data[b:]))


def cut(data, at, _):
    return data[:at]


def overwritten(data, at, chance):
    other = chance.randbytes(chance.choice((1, 4, 100, 5000)))
    return data[:at] + other + data[at + len(other) :]


def removed(data, at, chance):
    return data[:at] + data[at + chance.choice((1, 7, 1000, 100000)) :]


def with_text(data, at, _):
    return data[:at] + b"written by the program\n" * 3 + data[at:]


DAMAGE = (cut, overwritten, removed, with_text)


@test
def damage_anywhere():
    chance = random.Random(34)
    for version in FORMATS:
        data = generated(version)
        for damage in DAMAGE * 2:
            at = chance.randrange(16, len(data))
            check_alike(written(damage(data, at, chance)), counts=(8,))


# Before a generation, after it, and in the header of its first batch.
@test
def damage_at_each_bound():
    chance = random.Random(35)
    for version in FORMATS:
        data = generated(version)
        for begin, _ in some(generations(data)[1:], 3):
            for damage in DAMAGE:
                check_alike(written(damage(data, begin + chance.choice((-1, 0, 1, 3)), chance)), counts=(2,))


@test
def compressed_or_from_stdin():
    for data in (generated(26), gzip.compress(generated(23), 1)):
        one = run("check", "--json", "--threads=1", "-", stdin=data)
        equal(run("check", "--json", "--threads=8", "-", stdin=data), one)
        check_alike(written(data))


@test
def the_number_of_threads_is_checked():
    for number in ("0", "1025", "-1", "x"):
        code, _, messages = run("check", f"--threads={number}", "any.trace")
        equal(code, 2)
        assert "--threads" in messages and "a number from 1 to 1024" in messages, messages


def all_traces():
    paths = sorted(glob.glob(os.path.join(SHARED, "**", "*"), recursive=True))
    paths = [path for path in paths if path.endswith((".trace", ".bin", "_good")) or "go-fuzz" in path]
    paths = [path for path in paths if os.path.isfile(path)]
    if not paths:
        raise Skip("no traces")
    for path in some(paths, 10):
        check_alike(path, ANSWERS)


if __name__ == "__main__":
    if ALL:
        tests[:] = [all_traces]
    sys.exit(main())
