#!/usr/bin/env python3
"""Several traces in one file are its parts: FILE#2 names the second, and 'trail info' lists them.

The events of a part are those of its own file; offsets are the sums of the files' sizes.
"""

import collections
import gzip
import itertools
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, WORK, answer, assembled, content, equal, good, good_text, run, run_text, written  # noqa: E402
from tap import main, test  # noqa: E402

OLD, OLDER, NEW, NEWER = EXAMPLES[0], EXAMPLES[1], EXAMPLES[2], EXAMPLES[3]


def header(minor):
    return f"go 1.{minor} trace".encode().ljust(16, b"\0")


def events(path):
    return good("print", "--format=jsonl", path)


def minor(example):
    return int(example.split("go1.")[1].split(".")[0])


@test
def each_part_has_the_events_of_its_own_file():
    own = {example: events(example) for example in EXAMPLES}
    for files in [*itertools.product(EXAMPLES, repeat=2), (NEW, OLD, NEWER, OLDER), (OLD, NEW, OLDER, OLD)]:
        data = [content(file) for file in files]
        for path in (
            written("parts.trace", b"".join(data)),
            written("parts.trace.gz", gzip.compress(b"".join(data))),
            written("members.trace.gz", b"".join(gzip.compress(part) for part in data)),
        ):
            info = answer("info", path)
            parts = [(part["part"], part["offset"], part["bytes"], part["version"]) for part in info["parts"]]
            offsets = [sum(map(len, data[:i])) for i in range(len(data))]
            equal(
                parts,
                [(i + 1, offsets[i], len(data[i]), minor(file)) for i, file in enumerate(files)],
                (files, path),
            )
            equal((info["part_count"], info["bytes"], info["version"]), (len(files), len(data[0]), minor(files[0])))
            for i, file in enumerate(files):
                assert events(f"{path}#{i + 1}") == own[file], (files, path, i)
            assert events(path) == own[files[0]], (files, path)


@test
def every_command_reads_a_part_and_names_the_others_of_a_first():
    path = written("both.trace", content(OLD) + content(NEW))
    for command in (["summary", "--json"], ["goroutines", "--json"], ["profile", "--json"], ["gc", "--json"]):
        code, out, err = run_text(*command, path + "#2")
        equal((code, out.replace(path + "#2", NEW), err), (*run_text(*command, NEW)[:2], ""), command)
        code, out, err = run_text(*command, path)
        assert code == 0 and f"first of several traces: {path}#2 names the second" in err, (command, err)
        equal(out.replace(path, OLD), good_text(*command, OLD), command)
    out = os.path.join(WORK, "second.trace")
    good("convert", "--to=go1.26", "-o", out, path + "#2")
    equal(answer("check", out)["events"], answer("check", NEW)["events"])
    code, _, err = run_text("convert", "-o", path, path + "#2")
    assert code == 2 and "would overwrite" in err, (code, err)


@test
def check_names_the_next():
    path = written("three.trace", content(NEW) + content(OLD) + content(NEWER))
    for i, file in enumerate((NEW, OLD, NEWER), 1):
        name = path if i == 1 else f"{path}#{i}"
        check = answer("check", name)
        equal((check["good"], check["events"]), (True, answer("check", file)["events"]), name)
        equal(f"{path}#{i + 1}'" in good_text("check", name), i < 3, name)
        if i < 3:
            equal(check["next_trace"], os.path.getsize(file))


@test
def a_header_in_a_string_is_no_part():
    # v2: as the reason for which a goroutine stops; v1: as the text of its first string of that size
    whole = header(22) + b"\x01\x01\x05\x00\x00"
    text = f"""Trace Go1.22
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=5 time=1 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=5 gstatus=2
GoStop dt=1 reason_string=1 stack=0
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
	data="{'x' * len(whole)}"
"""
    new = content(assembled("fake", text))
    assert b"x" * len(whole) in new
    new = new.replace(b"x" * len(whole), whole)
    old = content(OLDER)
    name = b"runtime.bgscavenge"
    assert old.count(name) == 1
    old = old.replace(name, header(19) + b"AB")
    for first, second in ((new, old), (old, new)):
        path = written("fake.trace", first + second)
        equal([part["offset"] for part in answer("info", path)["parts"]], [0, len(first)])
        equal([answer("check", f"{path}#{i}")["good"] for i in (1, 2)], [True, True])
        assert "parts" not in answer("info", written("alone.trace", first))
        assert "next_trace" not in answer("check", os.path.join(WORK, "alone.trace"))


def certain(out):
    """The events that are not inferred, without times, which repairs after a cut may move."""
    lines = [line for line in out.splitlines() if b"inferred" not in line]
    return collections.Counter(line.partition(b",")[2] for line in lines)


@test
def no_event_of_a_second_trace_is_in_a_first_that_is_cut():
    second = content(NEWER)
    for file in (NEW, NEWER, OLD, OLDER):
        data = content(file)
        for end in (len(data) - 5, len(data) // 2, len(data) // 3, len(data) // 3 + 1, len(data) // 3 + 2):
            alone = run("print", "--format=jsonl", written("cut.trace", data[:end]))[1]
            path = written("cut-and.trace", data[:end] + second)
            code, out, _ = run("print", "--format=jsonl", path)
            equal((code, answer("check", path, code=1).get("next_trace")), (1, end), (file, end))
            equal(events(path + "#2"), events(NEWER), (file, end))
            others = certain(out) - certain(alone)
            equal(dict(others), {}, (file, end))


@test
def a_pipe_lists_its_parts_and_its_first_is_read():
    data = content(OLD) + content(NEW)
    info = json.loads(good("info", "--json", "-", stdin=data))
    equal([part["offset"] for part in info["parts"]], [0, os.path.getsize(OLD)])
    equal(good("print", "--format=jsonl", "-", stdin=data), events(OLD))
    err = run_text("summary", "-", stdin=data)[2]
    assert "stdin: this is the first of several traces" in err, err
    fifo = os.path.join(WORK, "fifo")
    os.mkfifo(fifo)
    code, _, err = run_text("print", fifo + "#2")
    assert code == 2 and "from a file, not from a pipe" in err, (code, err)


@test
def a_file_of_that_name_has_precedence():
    written("named.trace", content(OLD) + content(NEW))
    path = written("named.trace#2", content(NEWER))
    equal(events(path), events(NEWER))
    equal(answer("check", path)["version"], minor(NEWER))


@test
def what_is_no_part_is_named():
    path = written("one.trace", content(NEW) + content(OLD))
    for word, code, message in (
        (path + "#3", 2, "no part 3: the file has 2 traces"),
        (path + "#0", 3, "cannot open"),
        (path + "#02", 3, "cannot open"),
        (path + "#1000000000", 3, "cannot open"),
        (path + "#2x", 3, "cannot open"),
        (os.path.join(WORK, "absent") + "#2", 3, "cannot open"),
    ):
        equal((run_text("print", word)[0], message in run_text("print", word)[2]), (code, True), word)
    path = written("unknown.trace", content(OLD) + header(99))
    assert "unknown or unsupported trace version go 1.99" in run_text("print", path + "#2")[2]


@test
def hostile_parts_end():
    for first in (content(OLD), content(NEW)):
        for minors in ([26] * 1500, [19] * 1500, [22, 5, 21] * 500):
            path = written("many.trace", first + b"".join(map(header, minors)))
            info = answer("info", path)
            equal((info["part_count"], len(info["parts"])), (1501, 1000))
        for end in range(1, 16):
            code, _, _ = run("info", written("cut.trace", first + header(26)[:end]))
            assert code in (0, 1), (end, code)
            assert run("check", os.path.join(WORK, "cut.trace"))[0] in (0, 1)


sys.exit(main())
