#!/usr/bin/env python3
"""Traces that Go's tools refuse: how much of them is shown, and what is reported about the rest. TAP.

The right answers follow from how the traces are made here; Go's messages are those of its own parsers.

usage: damaged.py TRAIL SOURCE_ROOT
"""

import base64
import bz2
import gzip
import io
import json
import os
import shlex
import sys
import tarfile
import zipfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, WORK, answer, assembled, content, equal, good, good_text, run, run_text  # noqa: E402
from go_readers import go_of, go_prints  # noqa: E402
from tap import main, test  # noqa: E402

NOBODY = 18446744073709551615

# MARK: Annotations

# One goroutine on one thread, from 1000 ns on, with a task, regions and a log.
ANNOTATED = f"""Trace Go1.26
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=0 g=1 m=5 gstatus=2
%s
GoBlock dt=5000 reason_string=1 stack=1
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Strings
String id=1
	data="a"
String id=2
	data="b"
String id=3
	data="main.dispatch"
String id=4
	data="/src/app/crossed.go"
String id=5
	data="runtime/trace.(*Region).End"
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Stacks
Stack id=1 nframes=2
	pc=1 func=5 file=4 line=7
	pc=2 func=3 file=4 line=23
EndOfGeneration
"""
CROSSED = """UserRegionBegin dt=100 task=0 name_string=1 stack=1
UserRegionBegin dt=100 task=0 name_string=2 stack=1
UserRegionEnd dt=100 task=0 name_string=1 stack=1
UserRegionEnd dt=100 task=0 name_string=2 stack=1"""
MISUSES = {
    "crossed": (CROSSED, "misuse of region in goroutine 1"),
    "unbegun": (
        "UserRegionBegin dt=100 task=0 name_string=1 stack=1\nUserRegionEnd dt=1 task=0 name_string=2 stack=1",
        "misuse of region in goroutine 1",
    ),
    "task": ("UserTaskBegin dt=1 task=7 parent_task=0 name_string=1 stack=1\n" * 2, "task ID conflict: 7"),
    "name": ("UserRegionBegin dt=1 task=0 name_string=9 stack=1", "invalid string ID 9"),
    "stack": ("UserTaskEnd dt=1 task=1 stack=9", "found invalid stack ID 9"),
    "log": ("UserLog dt=1 task=0 key_string=8 value_string=1 stack=1", "found invalid string ID 8"),
}


def annotated(name):
    return assembled(name, ANNOTATED % MISUSES[name][0].rstrip("\n"))


@test
def misused_annotations_do_not_end_the_reading():
    for name, (events, _) in MISUSES.items():
        path = annotated(name)
        kinds = [json.loads(line)["kind"] for line in good_text("print", "--format=jsonl", path).splitlines()]
        # Two Syncs, two statuses, the annotations, and the final block.
        equal(len(kinds), 5 + len(events.strip().split("\n")), name)
        equal(answer("check", path)["misused"], 1, name)


@test
def strict_readers_end_there_with_gos_message():
    for name, (_, message) in MISUSES.items():
        path = annotated(name)
        for args in (["check", "--strict"], ["print", "--strict"], ["print", "--format=go"]):
            code, out, err = run_text(*args, path)
            equal(code, 1, f"{name} {args}")
            assert message in out + err, (name, args, out, err)
        go = go_of("1.27")
        if go:
            code, _, err = go_prints(go, "-d=parsed", path)
            assert code != 0 and message in err, (name, err)


@test
def check_and_the_finding_name_the_line_of_the_program():
    path = annotated("crossed")
    assert "RegionEnd 'a' of G 1 at main.dispatch (crossed.go:23)" in good_text("check", path)
    found = {f["kind"]: f for f in answer("summary", path)["findings"]}
    assert "Region 'a' at main.dispatch (crossed.go:23)" in found["misused-annotation"]["text"], found


@test
def a_region_that_ends_out_of_order_has_its_own_time():
    rows = answer("regions", annotated("crossed"))["regions"]
    equal({r["name"]: r["total_ns"] for r in rows}, {"a": 200, "b": 200})
    rows = answer("regions", annotated("unbegun"))["regions"]
    equal([r["name"] for r in rows], ["a"])
    spans = json.loads(good_text("export", "--to=chrome", annotated("unbegun")))["traceEvents"]
    equal({s["name"] for s in spans if s.get("cat") == "region"}, {"a"})


@test
def a_converted_trace_has_only_what_gos_tools_accept():
    out = os.path.join(WORK, "converted.trace")
    for name in MISUSES:
        good("convert", "--to=go1.26", "-o", out, annotated(name))
        good("check", "--strict", out)
        if go_of("1.27"):
            code, _, err = go_prints(go_of("1.27"), "-d=parsed", out)
            equal(code, 0, f"{name}: {err}")


# MARK: Bytes that are not batches


def generations(count, version=26):
    """A trace of generations of 1000 ns in which goroutine 1 yields four times."""
    text = f"Trace Go1.{version}\n"
    for n in range(1, count + 1):
        status = "GoStatus dt=0 g=1 m=5 gstatus=2"
        text += f"""EventBatch gen={n} m={NOBODY} time={1000 * n} size=auto
{"Sync" if version >= 25 else ""}
Frequency freq=1000000000
{"ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0" if version >= 25 else ""}
EventBatch gen={n} m=5 time={1000 * n} size=auto
ProcStatus dt=1 p=0 pstatus=1
{status}
""" + "".join(
            f"GoStop dt=100 reason_string=1 stack=0\nGoStart dt=100 g=1 g_seq={i}\n" for i in range(1, 5)
        )
        text += f"EventBatch gen={n} m={NOBODY} time={1000 * n} size=auto\nStrings\nString id=1\n\tdata=\"generation {n}\"\n"
        text += "EndOfGeneration\n" if version >= 26 else ""
    with open(assembled(f"generations-{count}-{version}", text), "rb") as f:
        return f.read()


def written(name, data):
    path = os.path.join(WORK, name + ".trace")
    with open(path, "wb") as f:
        f.write(data)
    return path


def reasons(path, code=0):
    """The reasons for which the goroutine yielded, once each, in order."""
    lines = good_text("print", "--format=jsonl", path, code=code).splitlines()
    return list(dict.fromkeys(r for r in (json.loads(line).get("reason") for line in lines) if r))


def damage_events(data, generation):
    """Overwrites the first events of a generation: without the statuses, no other event can be ordered."""
    at = data.index(bytes([1, generation, 5])) + 16
    data[at : at + 12] = b"\xff" * 12


@test
def a_damaged_generation_is_a_hole_and_the_next_are_read():
    for version in (22, 26):
        data = bytearray(generations(6, version))
        damage_events(data, 3)
        path = written("hole", data)
        found = reasons(path, code=1)
        equal([r for r in found if r != "generation 3"], [f"generation {n}" for n in (1, 2, 4, 5, 6)], version)
        check = answer("check", path, code=1)
        equal(check["holes"], 1, version)


# MARK: Events that are missing

# Two threads with a goroutine each; goroutine 3 waits until the first one wakes it, 900 ns later.
THREADS = f"""Trace Go1.26
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=5 gstatus=2
GoStatus dt=1 g=3 m={NOBODY} gstatus=4
GoBlock dt=97 reason_string=1 stack=0
GoStart dt=100 g=2 g_seq=2
GoUnblock dt=700 g=3 g_seq=1 stack=0
GoStop dt=100 reason_string=2 stack=0
EventBatch gen=1 m=6 time=1000 size=auto
ProcStatus dt=2 p=1 pstatus=1
GoStatus dt=1 g=2 m=6 gstatus=2
GoStop dt=97 reason_string=2 stack=0
GoStart dt=950 g=3 g_seq=2
GoSyscallBegin dt=50 p_seq=1 stack=0
GoSyscallEnd dt=200
GoDestroy dt=100
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Strings
String id=1
	data="chan receive"
String id=2
	data="runtime.Gosched"
EndOfGeneration
"""


@test
def what_contradicts_lost_events_is_shown_and_repaired():
    """An event of goroutine 2 is missing, which leaves a gap in its sequence numbers: all others
    are delivered as they are in the file."""
    path = assembled("gap", THREADS)
    strict = run_text("check", "--strict", path)
    equal(strict[0], 1)
    assert "failed to advance" in strict[1], strict
    # All 14 events and two Syncs, in both ways.
    for args, code in (([], 1), (["--repair"], 0)):
        check = answer("check", *args, path, code=code)
        equal((check["good"], check["file_events"]), (code == 0, 14), args)
    # The start of goroutine 2 requires number 1, which is lost.
    listed = good_text("check", "--repair", "--list", path)
    assert "sequence" in listed and "time 1.2e-06s" in listed, listed


@test
def what_waits_for_a_lost_event_is_found_before_all_others_are_over():
    """The start of goroutine 2 requires number 1, which is lost. Another thread has an event after
    50 ms, and one after 51 ms."""
    later = ["GoStatus dt=1 g=4 m=7 gstatus=3", "UserLog dt=50000000 task=0 key_string=1 value_string=2 stack=0"]
    text = THREADS.replace(
        "EventBatch gen=1 m=6",
        "\n".join(["EventBatch gen=1 m=7 time=1000 size=auto", *later, later[1].replace("50000000", "1000000"), "EventBatch gen=1 m=6"]), 1
    )
    _, out, _ = run("print", "--format=jsonl", assembled("lag", text))
    events = [json.loads(line) for line in out.splitlines()]
    times = {e["m"]: e["time_ns"] - 64000 for e in events if e.get("type") in ("GoStart", "GoUnblock", "UserLog")}
    # The last event of each thread: 1998 ns after the batches' time, 2050 ns, 51 ms.
    assert max(times[5], times[6]) < 10_000_000 < 50_000_000 < times[7], (times, out)


@test
def missing_statuses_are_inferred():
    for line in ("ProcStatus dt=1 p=0 pstatus=1", "GoStatus dt=1 g=1 m=5 gstatus=2", f"GoStatus dt=1 g=3 m={NOBODY} gstatus=4"):
        text = THREADS.replace("g_seq=2\nGoUnblock", "g_seq=1\nGoUnblock").replace(line + "\n", "")
        whole = assembled("whole", THREADS.replace("g_seq=2\nGoUnblock", "g_seq=1\nGoUnblock"))
        equal(answer("check", whole)["file_events"], 14)
        check = answer("check", "--repair", assembled("status", text))
        lost = line.startswith("GoStatus dt=1 g=1")  # its block names no goroutine
        equal((check["good"], check["file_events"]), (True, 12 if lost else 13), line)


@test
def a_clock_that_steps_back_moves_no_event_of_another_thread():
    text = THREADS.replace("g_seq=2\nGoUnblock", "g_seq=1\nGoUnblock")
    text = text.replace("m=6 time=1000", "m=6 time=400")
    check = answer("check", "--repair", assembled("clock", text))
    equal((check["good"], check["file_events"]), (True, 14))


@test
def numbers_that_no_program_has_are_no_events():
    """Random bytes that form events must not become goroutines: the rest of that batch is lost."""
    text = THREADS.replace("GoStart dt=100 g=2 g_seq=2", "GoStart dt=100 g=2000000000000000 g_seq=99999999999")
    path = assembled("chance", text)
    equal(answer("check", path, code=1)["file_events"], 11)
    assert "2000000000000000" not in good_text("print", "--format=jsonl", path, code=1)


@test
def the_hole_is_in_no_sum():
    data = bytearray(generations(6))
    damage_events(data, 3)
    rows = answer("goroutines", written("hole", data), code=1)["goroutines"]
    # Of 5 generations of 1000 ns, each from its Sync to its last event at 801 ns, and the rest of generation 3.
    total = sum(r["total_ns"] for r in rows)
    assert 3 * 800 <= total <= 6 * 1000 - 1000, rows


@test
def what_runs_at_a_hole_is_stopped_there_in_a_converted_trace():
    data = bytearray(generations(6))
    damage_events(data, 3)
    path = os.path.join(WORK, "converted.trace")
    for version in (22, 23, 26):
        _, _, err = run_text("convert", f"--to=go1.{version}", "-o", path, written("hole", data))
        # The format cannot express that the states of G 1 and P 0 are unknown, only that they no longer run.
        assert " 2 events left out" in err, err
        events = [json.loads(line) for line in good_text("print", "--format=jsonl", path).splitlines()]
        assert int(err.split("was converted: ")[1].split()[0]) <= len([e for e in events if e["kind"] != "Sync"]), err
        stops = [(e["resource"], e["id"]) for e in events if e.get("type") == "GoStop" and not e.get("reason")]
        equal(stops, [("goroutine", 1)], version)
        equal(len([e for e in events if e.get("type") == "ProcStop"]), 1, version)


@test
def what_runs_without_a_p_at_a_hole_stays_on_its_thread_in_a_converted_trace():
    """Goroutine 1 cannot be stopped there, so no other goroutine may start on its thread."""
    data = assembled(
        "no-p",
        f"""Trace Go1.26
EventBatch gen=1 m={NOBODY} time=1 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=64 size=auto
GoStatus dt=64 g=1 m=5 gstatus=2
HeapAlloc dt=1 heapalloc_value=99999999
EndOfGeneration
EventBatch gen=2 m={NOBODY} time=320 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=384 sec=1700000000 nsec=0
EventBatch gen=2 m=5 time=384 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=64 g=3 m=5 gstatus=2
GoDestroy dt=64
EndOfGeneration
""",
    )
    with open(data, "rb") as f:
        data = f.read()
    at = data.index(bytes([37, 1]))  # HeapAlloc
    path, out = written("no-p", data[:at] + b"\xff" * 6 + data[at + 6 :]), os.path.join(WORK, "converted.trace")
    run("convert", "-o", out, path)
    good("check", "--strict", out)


@test
def a_part_has_only_what_it_announces_on_a_thread():
    """Two threads report P 0, and the second stops it: in a part that begins there, the first thread has no P."""
    path = assembled(
        "two-threads",
        f"""Trace Go1.26
EventBatch gen=1 m={NOBODY} time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m={NOBODY} gstatus=1
GoStart dt=8000 g=1 g_seq=1
GoStop dt=100 reason_string=0 stack=0
EventBatch gen=1 m=6 time=1010 size=auto
ProcStatus dt=1 p=0 pstatus=1
ProcStop dt=1
EndOfGeneration
""",
    )
    good("check", "--strict", path)
    out = os.path.join(WORK, "converted.trace")
    good("convert", "--from=5us", "-o", out, path)
    good("check", "--strict", out)


@test
def strict_readers_end_at_the_damage():
    data = bytearray(generations(6))
    damage_events(data, 3)
    _, out, _ = run_text("print", "--format=go", written("hole", data))
    assert "generation 2" in out and "generation 4" not in out


@test
def text_of_the_program_is_cut_out():
    for version in (22, 26):
        data = generations(3, version)
        text = b"sum is 1\nand more: \xc3\xa4\n"
        at = data.index(b"generation 1") + len("generation 1")
        at += version >= 26
        path = written("text", data[:at] + text + data[at:] + b"bye\n")
        whole = good("print", "--format=jsonl", written("whole", data))
        equal(good("print", "--format=jsonl", path), whole, version)
        check = answer("check", path)
        equal((check["good"], check["text_bytes"]), (True, len(text) + 4), version)
        assert f"at offset {at:#x}" in good_text("check", path)


def record_v1(data, at):
    """The type and the end offset of a record of Go 1.7 to 1.21."""

    def number(at):
        end = next(i for i in range(at, at + 10) if data[i] < 0x80) + 1
        return sum((byte & 0x7F) << 7 * i for i, byte in enumerate(data[at:end])), end

    kind, count, at = data[at] & 0x3F, data[at] >> 6, at + 1
    if kind == 37:  # String
        _, at = number(at)
        size, at = number(at)
        return kind, at + size
    if count == 3:
        size, at = number(at)
        at += size
    else:
        for _ in range(count + 1):
            _, at = number(at)
    if kind == 48:  # UserLog
        size, at = number(at)
        at += size
    return kind, at


def batches_v1(data):
    """Returns the offsets of the batches and of the frequency: Go writes each part in between in one piece."""
    at, found = 16, []
    while at < len(data):
        kind, end = record_v1(data, at)
        if kind in (1, 2):
            found.append(at)
        at = end
    return found


# Their letters may happen to be the first byte of a record: "A" is a batch, "e" swallows what
# follows.
PRINTED = ["sum is 1\n", "Done.\n", "All done\n", "e%A#c", "100%\n", "Größe: 12 – fertig\n", "\x1b[1mAAAA\n", "C: Because\n", "q\n" * 4000]


@test
def text_in_an_old_trace_is_cut_out():
    for example in EXAMPLES[:2]:
        data = content(example)
        whole, places = good("print", "--format=jsonl", example), batches_v1(data)
        assert places[0] == 16 and len(places) > 5, places
        for i, text in enumerate(t.encode() for t in PRINTED):
            for at in (16, places[1 + i % (len(places) - 2)], places[-1]):
                path = written("text", data[:at] + text + data[at:])
                equal(good("print", "--format=jsonl", path) == whole, True, (example, text, at))
                check = answer("check", path)
                equal((check["good"], check["text_bytes"]), (True, len(text)), (example, text, at))
                assert f"at offset {at:#x}" in good_text("check", path), (text, at)
        path = written("text", b"".join((data[: places[2]], b"begin\n", data[places[2] : places[4]], b"end\n", data[places[4] :], b"bye\n")))
        equal(good("print", "--format=jsonl", "-", stdin=gzip.compress(content(path))), whole)
        equal(answer("check", path)["text_bytes"], 14)
        assert run("check", "--strict", path)[0] == 1


@test
def the_first_batch_of_an_old_trace_may_be_damaged():
    tables = (1, 2, 3, 35, 37)
    for example in EXAMPLES[:2]:
        data = bytearray(content(example))
        at, others = batches_v1(data)[1], 0
        while at < len(data):
            kind, at = record_v1(data, at)
            others += kind not in tables
        data[16:24] = b"\xff" * 8
        check = answer("check", written("first", data), code=1)
        assert check["file_events"] >= 0.95 * others > 1000, (check, others)


@test
def a_trace_of_a_program_that_died_ends_without_a_stop():
    data = generations(2)
    begun = data.index(b"\x01\x02", data.index(b"generation 1"))
    sync = data[begun : data.index(b"\x01\x02", begun + 2)]
    cut = data[: data.index(b"generation 1") + len("generation 1") + 1] + sync
    assert answer("check", written("died", cut))["unstopped"]
    assert "without a stop after" in good_text("check", written("died", cut))
    assert not answer("check", written("stopped", data))["unstopped"]


@test
def a_trace_behind_the_first_is_named():
    data = generations(2)
    check = answer("check", written("two", data + generations(3)))
    equal((check["good"], check["next_trace"]), (True, len(data)))
    # ... and read by the suggested command
    line = next(x for x in good_text("check", written("two", data + generations(3))).splitlines() if "next" in x)
    name = shlex.split(line)[-1]
    equal(answer("check", name)["generations"], 3)


@test
def any_byte_may_be_damaged():
    """Reading ends within the time limit, and some of the trace is shown."""
    for version in (22, 26):
        data = generations(4, version)
        for at in range(40, len(data), 7):  # after the first header, which nothing confirms
            for wrong in (0, 1, 0x34, 0xFF):
                broken = bytearray(data)
                broken[at] = wrong
                path = written("broken", broken)
                code, out, err = run("print", "--format=jsonl", path)
                assert code in (0, 1), (at, wrong, err)
                found = sum(f"generation {n}".encode() in out for n in range(1, 5))
                assert found >= 1, (version, at, wrong, found)


@test
def the_good_part_of_a_cut_trace_is_in_bytes_and_not_all_of_it():
    with open(EXAMPLES[0], "rb") as f:
        data = f.read()
    # A string's text is truncated: the record before it ends at its first byte.
    at = data.index(b"main.main", len(data) // 2)
    path = written("cut", data[: at + 4])
    good_bytes = int(good_text("check", path, code=1).split("good ")[1].split()[0])
    assert at - 4 <= good_bytes < at, (at, good_bytes)
    assert f"good         {good_bytes} of {at + 4} bytes (99.9 %)" in good_text("check", path, code=1)
    equal(answer("check", path, code=1)["good_bytes"], good_bytes)


# MARK: Damage in transfer


def tarred(data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo("folder/app.trace")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def archived(files):
    """A tar, a zip, and a zip written to a pipe, with these files."""
    tar_out, zip_out, pipe_out = io.BytesIO(), io.BytesIO(), Pipe()
    with tarfile.open(fileobj=tar_out, mode="w") as tar:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    for out in (zip_out, pipe_out):
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files:
                archive.writestr(name, data)
    return tar_out.getvalue(), zip_out.getvalue(), bytes(pipe_out.data)


class Pipe(io.RawIOBase):
    """An output that is not seekable, so that sizes and checksums follow the data."""

    def __init__(self):
        self.data = bytearray()

    def writable(self):
        return True

    def write(self, data):
        self.data += data
        return len(data)


def zipped(data, method):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("app.trace", data)
    return out.getvalue()


def dumped(data):
    lines = (data[i : i + 16] for i in range(0, len(data), 16))
    return "".join(f"{16 * i:08x}: {line.hex(' ', -2)}  .\n" for i, line in enumerate(lines)).encode()


def chunked(data):
    pieces = (data[i : i + 1000] for i in range(0, len(data), 1000))
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


FORMS = {
    "base64": base64.encodebytes,
    "hex digits": lambda data: data.hex().encode(),
    "hex dump": dumped,
    "HTTP chunks": chunked,
    "CRLF line ends": lambda data: data.replace(b"\n", b"\r\n"),
    "tar": tarred,
    "zip": lambda data: zipped(data, zipfile.ZIP_DEFLATED),
    "13 bytes of text before it": lambda data: b"listening on\n" + data,
}


@test
def what_a_transfer_has_made_of_a_trace_is_undone():
    for example in EXAMPLES:
        with open(example, "rb") as f:
            data = f.read()
        whole = good("print", example)
        for name, convert in FORMS.items():
            path = written("form", convert(data))
            equal(good("print", path), whole, name)
            assert f"read from    {name}" in good_text("check", path), name
            equal(good("print", "-", stdin=convert(data)), whole, f"{name} through a pipe")


@test
def what_cannot_be_read_is_named():
    with open(EXAMPLES[0], "rb") as f:
        data = f.read()
    kinds = {
        bz2.compress(data): "bunzip2",
        data.decode("latin-1").encode("utf-16"): "UTF-16",
        b"0000000 067547 030440\n0000020\n": "dump",
        b"-----BEGIN TRACE-----\n" + base64.encodebytes(data): "base64",
        b"<!DOCTYPE html>\n<title>404": "HTML",
    }
    for form, name in kinds.items():
        for code, _, err in (run_text("summary", written("form", form)), run_text("summary", "-", stdin=form)):
            equal(code, 1, name)
            assert "not a Go execution trace: " in err and name in err, (name, err)
    assert "not a Go execution trace (at" in run_text("summary", written("form", b"\7" * 99))[2]
    assert "not a Go execution trace: it has only zero bytes" in run_text("summary", written("form", bytes(99)))[2]


@test
def records_of_thirteen_bytes_are_not_line_ends():
    """CPU samples (0xf1) of 13 bytes (0x0d), every 16th of which begins with the number 10: the only LFs in the
    file."""
    sample = b"\xf1\x0d%c\x96\xb1\xa4\xf4\xb7\xc7\x04\xa9\x50\xfc\x05\x02"
    data = b"go 1.19 trace\0\0\0" + b"\x41\x00\xe8\x07" + b"".join(sample % (1 + n % 16) for n in range(400))
    _, out, err = run_text("check", written("samples", data))
    assert "CRLF" not in out + err, out


@test
def forms_may_be_in_each_other_and_broken():
    with open(EXAMPLES[2], "rb") as f:
        data = f.read()
    whole = good("print", EXAMPLES[2])
    packed = gzip.compress(data)
    forms = [gzip.compress(tarred(data)), base64.b64encode(packed), zipped(tarred(data), 0), gzip.compress(packed)]
    head = b"HTTP/1.1 200 OK\r\nServer: a\r\n\r\n"
    forms += [chunked(packed), head + packed, head + chunked(data), head + chunked(packed)]
    for form in forms:
        equal(good("print", written("form", form)), whole)
        equal(good("print", "-", stdin=form), whole, "through a pipe")
    nested = data
    for _ in range(50):
        nested = zipped(nested, zipfile.ZIP_STORED)
    assert run("check", written("form", nested))[0] == 1
    for name, convert in FORMS.items():
        form = convert(data)
        for end in (len(form) // 2, len(form) // 2 + 1):
            code, out, _ = run("print", written("form", form[:end]))
            equal(code, 1, name)
            assert b"generation 1" in out, (name, out)


@test
def a_compressed_trace_that_is_cut_is_read_up_to_there():
    data = generations(40)
    packed = gzip.compress(data)
    code, out, err = run_text("print", written("form.gz", packed[: len(packed) - 60]))
    equal(code, 1)
    assert "generation 1" in out and "end too early" in err, err


@test
def the_trace_of_an_archive_is_found_among_other_files():
    data = generations(3)
    others = [("README", b"see app.trace\n" * 99), ("empty", b""), ("core", bytes(70000))]
    for form in archived([*others, ("app.trace", data)]):
        path = written("archive", form)
        equal(good_text("print", path), good_text("print", written("plain", data)))
        equal(run_text("check", "-q", "-", stdin=form)[0], 0)
    for form in archived(others):
        code, _, err = run_text("print", written("archive", form))
        assert code == 1 and "archive is a trace" in err, (code, err)


@test
def equal_lines_that_a_dump_leaves_out_are_there():
    """As hexdump -C and od print it: "*" stands for lines equal to the previous one."""
    text = "x" * 100
    data = generations(3)
    with open(assembled("long", THREADS.replace('"chan receive"', f'"{text}"').replace("g_seq=2\nGoUnblock", "g_seq=1\nGoUnblock")), "rb") as f:
        long = f.read()
    for bytes_ in (data, long):
        lines, last = [], None
        for i in range(0, len(bytes_), 16):
            line = bytes_[i : i + 16]
            if line != last:
                lines.append(f"{i:08x}  {line[:8].hex(' ')}  {line[8:].hex(' ')}  |................|")
            elif lines[-1] != "*":
                lines.append("*")
            last = line
        lines.append(f"{len(bytes_):08x}")
        equal(good("print", written("dump", "\n".join(lines).encode() + b"\n")), good("print", written("plain", bytes_)))
    assert "*" in lines, lines  # of the long text


@test
def the_unpacked_size_of_an_archive_is_limited():
    """With the default ratio of 250; deflate packs zeros to a thousandth."""
    path = written("zeros", zipped(generations(3) + bytes(80 << 20), zipfile.ZIP_DEFLATED))
    code, _, err = run_text("check", path)
    assert code == 3 and "zip data give more than" in err and "--max-ratio" in err, (code, err)
    equal(run("check", "--max-ratio=0", path)[0], 1)
    code, _, err = run_text("check", "--max-ratio=0", "--max-inflated=1M", path)
    assert code == 3 and "inflated_max" in err, (code, err)


@test
def a_compressed_trace_is_read_up_to_its_damage():
    """The damage is a block of an invalid type, or the checksum and size at the end of a gzip
    stream; the whole trace precedes it."""
    data = generations(40)
    packer = zlib.compressobj(wbits=-15)
    deflated = packer.compress(data) + packer.flush(zlib.Z_FULL_FLUSH) + b"\x07"
    whole = good_text("print", written("plain", data))
    archive = zipped(data, zipfile.ZIP_DEFLATED)  # a header of 30 bytes, with the size at 18, and the name
    for form in (
        gzip.compress(data)[:-8] + b"\xff" * 8,
        gzip.compress(b"")[:10] + deflated,
        archive[:18] + len(deflated).to_bytes(4, "little") + archive[22:39] + deflated,
    ):
        code, out, err = run_text("print", written("form", form))
        equal(code, 1, err)
        assert "damaged" in err and out.startswith(whole), (err, len(out), len(whole))


@test
def a_damaged_archive_is_called_damaged():
    data = generations(3)
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        archive = bytearray(zipped(data, method))
        archive[len(archive) // 3] ^= 0x10
        code, _, err = run_text("print", written("archive", archive))
        assert code == 1 and "zip data are damaged" in err, (method, code, err)


sys.exit(main())
