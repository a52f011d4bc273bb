#!/usr/bin/env python3
"""Traces with other bytes before or behind them, or instead of their header: they are read as without. TAP.

usage: enclosed.py TRAIL SOURCE_ROOT
"""

import gzip
import lzma
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import simulated  # noqa: E402
from batches import HEADER, batches  # noqa: E402
from command import EXAMPLES, ROOT, TRAIL, WORK, answer, content, equal, good, good_text, run, run_text, written  # noqa: E402
from tap import main, test  # noqa: E402

CHANCE = random.Random(1)
SIMULATED = [written(f"simulated-{v}.trace", simulated.Simulation(v, 1, 2000, 3).trace) for v in (22, 25, 26)]
TRACES = [*EXAMPLES, os.path.join(ROOT, "examples", "traces", "shop-c.trace"), *SIMULATED]
def events(path, code=0, **more):
    return good("print", "--format=jsonl", path, code=code, **more)


def same(whole, data, what, places=("file", "pipe")):
    """Whether all events of `data`, in a file and through a pipe, are those of the whole trace."""
    path = written("enclosed.trace", data)
    for place in places:
        found = events(path) if place == "file" else events("-", stdin=data)
        assert found == whole, f"{what} in a {place}: {len(found.splitlines())} events of {len(whole.splitlines())}"


@test
def bytes_before_a_trace_are_left_out():
    before = {
        b"\xef\xbb\xbf": "3 bytes of text before it",
        b"Hello\0world\n": "12 bytes before it",
        b"go 1.22 trace\0is".ljust(64, b"\0"): "64 bytes before it",
        CHANCE.randbytes(99999) + b"\0": "100000 bytes before it",
        bytes(16): "16 bytes before it",
        bytes(1 << 20): "zero bytes before it",
    }
    for trace in TRACES:
        data, whole = content(trace), events(trace)
        for form, name in before.items():
            same(whole, form + data, f"{trace}: {name}")
            assert f"read from    {name}" in good_text("check", os.path.join(WORK, "enclosed.trace"))


@test
def a_trace_without_its_header_is_read():
    for trace in TRACES:
        data, whole = content(trace)[HEADER:], events(trace)
        for form in (data, bytes(HEADER) + data, bytes(1 << 20) + data):
            same(whole, form, trace)
            path = os.path.join(WORK, "enclosed.trace")
            assert "read from    a trace without its header, as go 1." in good_text("check", path)
            assert "damaged" not in good_text("info", path)
            for strict in (["check", "--strict"], ["print", "--strict"], ["print", "--format=go"]):
                code, out, err = run_text(*strict, path)
                assert code == 1 and "its header is lost" in out + err, (strict, out[:200], err)


@test
def the_version_does_not_depend_on_the_first_batches():
    """Of more than are looked at, none shows it: neither events nor the clock's frequency are lost."""
    for version, name in ((22, "1.25 (assumed)"), (25, "1.25 (assumed)"), (26, "1.26")):
        data = bytes(simulated.Simulation(version, 1, 80000, 1).trace)
        cut = next(at for at, _, _ in batches(data) if at >= 4096)
        first = written("first.trace", data[:HEADER] + bytes(4096) + data[cut:])
        path = written("enclosed.trace", data[4096:])
        check = answer("check", path, code=1)
        assert f"read from    a trace without its header, as go {name}" in run_text("check", path)[1], run_text("check", path)
        assert check["lost_bytes"] <= cut - 4096, (version, check)
        assert "frequency" not in str(check) and "snapshot" not in str(check), (version, check)
        equal(events(path, code=1), events(first, code=1), version)


@test
def what_is_made_to_look_like_batches_costs_little():
    """Each eighth byte could be the first of a batch of 64 KiB of events, all of which were decoded each time."""
    data = bytes((0x28, 1, 1, 1, 1, 0xFF, 0xFF, 3)) * (1 << 18)
    for start in (b"go 1.23 trace\0\0\0", b"go 1.26 trace\0\0\0"):
        before = os.times().children_user
        equal(run("check", written("enclosed.trace", start + data))[0], 1, start)
        assert os.times().children_user - before < 5, start


@test
def what_is_left_of_a_header_is_damage():
    for trace in TRACES:
        data, whole = content(trace), events(trace)
        path = written("enclosed.trace", bytes(8) + data[8:])
        check = answer("check", path, code=1)
        equal((check["lost_bytes"], check["file_events"]), (8, answer("check", trace)["file_events"]), trace)
        assert len(events(path, code=1)) >= len(whole), trace


@test
def the_first_block_may_be_lost():
    """Events are lost with it as long as the batch that it cuts, which has at most 64 KiB."""
    for trace in EXAMPLES[2:]:
        data = content(trace)
        next_batch = next(at for at, _, _ in batches(data) if at >= 4096)
        for start in (data[:HEADER] + bytes(4096 - HEADER), bytes(4096)):
            check = answer("check", written("enclosed.trace", start + data[4096:]), code=1)
            assert check["lost_bytes"] <= next_batch - HEADER, (trace, check["lost_bytes"], next_batch)
            assert check["file_events"] > 0.3 * answer("check", trace)["file_events"], (trace, check)


@test
def other_files_are_no_traces():
    packed = gzip.compress(CHANCE.randbytes(3000))
    forms = [CHANCE.randbytes(size) for size in (15, 100, 1 << 18)] + [packed + bytes(100), bytes([1]) * 100000, b"A" * 5000,
                                                                              b"A0\x80\x80@" + b"a" * 192]
    files = [TRAIL, sys.executable, __file__, os.path.join(ROOT, "README.md"), "/bin/sh"]
    for data in forms + [content(file) for file in files]:
        code, out, err = run_text("check", written("enclosed.trace", data))
        assert code == 1 and "not a Go execution trace" in out + err, (data[:20], out, err)
    zeros = "not a Go execution trace: it has only zero bytes"
    assert zeros in run_text("check", written("enclosed.trace", bytes(100000)))[1]
    path = written("enclosed.trace", b"")
    with open(path, "r+b") as file:
        file.seek((1 << 30) + 1)
        file.write(content(EXAMPLES[2]))
    assert "begins with more than 1 GiB of zero bytes" in run_text("check", path)[1]
    os.truncate(path, 0)


@test
def zero_bytes_behind_a_trace_are_no_damage():
    for trace in TRACES:
        data, whole = content(trace), events(trace)
        for size in (1, 100, 65536, 1 << 20):
            # Of a pipe, as many bytes are examined as a generation may be from the next.
            same(whole, data + bytes(size), f"{trace} {size}", ("file", "pipe") if size < 1 << 18 else ("file",))
            path = os.path.join(WORK, "enclosed.trace")
            line = "1 zero byte follows" if size == 1 else f"{size} zero bytes follow"
            assert f"  zeros        {line} the trace\n" in good_text("check", path)
            equal(answer("info", path)["duration_ns"] > 0, True)


@test
def a_trace_that_zero_bytes_cut_is_damaged():
    for trace in TRACES:
        data = content(trace)
        for at in range(len(data) // 3, len(data) // 3 + 8):
            path = written("enclosed.trace", data[:at] + bytes(70000))
            for command in (["check"], ["info"], ["summary"]):
                equal(run(*command, path)[0], 1, (trace, at, command))


@test
def bytes_behind_compressed_data_are_left_out():
    zstd = subprocess.run(["zstd", "-c"], input=content(EXAMPLES[2]), capture_output=True, check=False).stdout
    for trace in EXAMPLES[1:3]:
        data, whole = content(trace), events(trace)
        packed = [gzip.compress(data), lzma.compress(data)] + ([zstd] if trace == EXAMPLES[2] and zstd else [])
        for form in packed:
            for behind in (bytes(1), bytes(512), bytes(300000), b"x", b"not compressed\n", CHANCE.randbytes(200000) + b"\1"):
                same(whole, form + behind, (trace, form[:2], behind[:9]))
                noted = "followed by other bytes" in good_text("check", os.path.join(WORK, "enclosed.trace"))
                equal(noted, behind.strip(b"\0") != b"", behind[:9])
                info = answer("info", os.path.join(WORK, "enclosed.trace"))
                assert info["compression"] in ("gzip", "xz", "zstd"), info
                equal("read_from" in info, noted, info)
                equal(run("check", "--strict", os.path.join(WORK, "enclosed.trace"))[0], int(noted), behind[:9])
            for behind in packed + [data]:
                path = written("enclosed.trace", form + behind)
                equal(run("check", path)[0], int(behind[:2] != form[:2]), (form[:2], behind[:2]))
    # Compressed data may still follow each other, with zeros in between.
    data, whole = content(EXAMPLES[2]), events(EXAMPLES[2])
    half = len(data) // 2
    for compress in (gzip.compress, lzma.compress):
        for between in (b"", bytes(4), bytes(200000)):
            form = compress(data[:half]) + between + compress(data[half:])
            same(whole, form, (compress, len(between)))


@test
def info_judges_as_check_does():
    """Text within a trace is no damage, and the traces behind a damaged one are listed."""
    text = b"the program prints this\n"
    for trace in (SIMULATED[0], SIMULATED[2], EXAMPLES[0], EXAMPLES[2]):
        data = content(trace)
        batches = [data.find(bytes([1, g, 100]), 200) for g in (2, 3)]
        places = [at for at in batches if at > 0 and trace in SIMULATED] + [len(data)]
        for at in places:
            path = written("enclosed.trace", data[:at] + text + data[at:])
            check = answer("check", path)
            equal((check["good"], check["text_bytes"]), (True, len(text)), (trace, at))
            info, whole = answer("info", path), answer("info", "--full", trace)
            equal((info.get("error"), info["text_bytes"], info["duration_ns"]), (None, len(text), whole["duration_ns"]), (trace, at))
            assert f"text         {len(text)} bytes" in good_text("info", path)
        end = len(data) // 2
        path = written("enclosed.trace", data[:end] + content(EXAMPLES[3]) + data)
        offsets = [part["offset"] for part in answer("info", path, code=1)["parts"]]
        equal(offsets, [0, end, end + os.path.getsize(EXAMPLES[3])], trace)
        equal(answer("info", path, code=1)["parts"][0]["damaged"], True)


sys.exit(main())
