#!/usr/bin/env python3
"""trail export --to=perfetto, decoded by protoc and interpreted according to Perfetto's documents. TAP.

usage: export_perfetto.py TRAIL SOURCE_ROOT

Without protoc everything is skipped.
"""

import collections
import csv
import io
import os
import random
import re
import shutil
import subprocess
import sys
import zlib

from exports import EXAMPLES, ROOT, SHARED, STATES, add, assembled, awaited, compare, data, examples, expected, expected_threads, is_of_threads, trail
from command import text_of
from tap import main, test

PROTO = os.path.join(ROOT, "tests", "commands")
TOKEN = re.compile(r'\s*(?:(\w+) \{|(\w+): (?:"((?:[^"\\]|\\.)*)"|(\S+))|(\}))')
ESCAPE = re.compile(rb"\\(?:([0-7]{3})|(.))")
PLAIN = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def unescaped(text):
    def one(m):
        return bytes([int(m[1], 8)]) if m[1] else PLAIN.get(m[2], m[2])

    return ESCAPE.sub(one, text.encode()).decode("utf-8")


def messages(text):
    """The packets of protoc's text as {field: [value]}, with nested messages in the same form."""
    stack = [collections.defaultdict(list)]
    for line in text.splitlines():
        m = TOKEN.fullmatch(line)
        assert m, f"cannot read {line!r}"
        name, field, string, word, end = m.groups()
        if name:
            inner = collections.defaultdict(list)
            stack[-1][name].append(inner)
            stack.append(inner)
        elif end:
            stack.pop()
        else:
            assert not field.isdigit(), f"a field that Perfetto does not have, or of another type: {line}"
            value = unescaped(string) if string is not None else {"true": 1}.get(word) or int(word)
            stack[-1][field].append(value)
    return stack[0]["packet"]


def number(raw, at):
    """The varint at an offset, and its end."""
    value = shift = 0
    while True:
        value |= (raw[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if raw[at - 1] < 0x80:
            return value, at


def field(raw, at):
    """The number and the bytes of a field of bytes, and its end."""
    tag, at = number(raw, at)
    assert tag & 7 == 2, tag
    size, at = number(raw, at)
    assert at + size <= len(raw)
    return tag >> 3, raw[at : at + size], at + size


def plain(raw):
    """A trace in which each compressed packet is replaced by the packets inside it."""
    out, at = b"", 0
    while at < len(raw):
        begin = at
        kind, packet, at = field(raw, at)
        assert kind == 1, kind
        if number(packet, 0)[0] >> 3 == 50:
            kind, packed, end = field(packet, 0)
            assert end == len(packet)
            out += zlib.decompress(packed)
        else:
            out += raw[begin:at]
    return out


def decode(raw):
    p = subprocess.run(
        ["protoc", "--decode=Trace", f"--proto_path={PROTO}", "perfetto.proto"], input=plain(raw), capture_output=True
    )
    assert p.returncode == 0, p.stderr.decode()
    return messages(p.stdout.decode())


def one(message, field, default=None):
    values = message.get(field, [])
    assert len(values) <= 1, (field, values)
    return values[0] if values else default


BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
Slice = collections.namedtuple("Slice", "begin end name track notes stack ends")


class Export:
    """Interprets the packets as a reader of the format does."""

    def __init__(self, trace, *args):
        self.tracks, self.events, self.samples, self.clocks, self.ftrace = {}, [], [], [], []
        self.defined = collections.defaultdict(dict)
        self.default_clock, self.delta, self.state = 6, {}, False
        for packet in decode(trail("export", "--to=perfetto", *args, trace)):
            self.packet(packet)
        self.slices, self.moments, self.counts = self.nest()

    def packet(self, packet):
        assert one(packet, "trusted_packet_sequence_id") == 1
        flags = one(packet, "sequence_flags")
        assert flags == 1 and not self.state or flags == 2 and self.state, flags
        self.state = True
        for data in packet["interned_data"]:
            self.intern(data)
        if packet["track_descriptor"]:
            track = one(packet, "track_descriptor")
            self.tracks[one(track, "uuid")] = track
            assert one(track, "parent_uuid", 1) in self.tracks, track
        if packet["clock_snapshot"]:
            clocks = {one(c, "clock_id"): c for c in one(packet, "clock_snapshot")["clocks"]}
            assert 6 in clocks  # of the trace
            for number, clock in clocks.items():
                if one(clock, "is_incremental"):
                    assert 64 <= number < 128
                    self.delta[number] = one(clock, "timestamp")
            self.clocks.append({n: one(c, "timestamp") for n, c in clocks.items()})
        for bundle in packet["ftrace_events"]:
            self.ftrace += [(one(event, "timestamp"), one(bundle, "cpu"), event) for event in bundle["event"]]
        if packet["trace_packet_defaults"]:
            self.default_clock = one(one(packet, "trace_packet_defaults"), "timestamp_clock_id")
        if packet["track_event"] or packet["perf_sample"]:
            time = self.time(packet)
            if packet["track_event"]:
                self.events.append((time, len(self.events), one(packet, "track_event")))
            else:
                self.samples.append((time, one(packet, "perf_sample")))

    def intern(self, data):
        for kind, entries in data.items():
            for entry in entries:
                iid = one(entry, "iid")
                assert iid > 0 and iid not in self.defined[kind], f"{kind} {iid} is defined twice"
                self.defined[kind][iid] = entry

    def time(self, packet):
        clock = one(packet, "timestamp_clock_id", self.default_clock)
        value = one(packet, "timestamp")
        assert value is not None
        if clock in self.delta:
            self.delta[clock] += value
            return self.delta[clock]
        assert clock == 6
        return value

    def name(self, event):
        iid = one(event, "name_iid")
        return one(event, "name") if iid is None else one(self.defined["event_names"][iid], "name")

    def nest(self):
        stacks = collections.defaultdict(list)
        slices, moments, counts = [], [], []
        for time, _, event in sorted(self.events, key=lambda e: e[:2]):
            track, kind = one(event, "track_uuid"), one(event, "type")
            assert track in self.tracks, event
            if kind == BEGIN:
                stacks[track].append((time, event))
            elif kind == END:
                begin, first = stacks[track].pop()
                notes = {one(n, "name"): one(n, "uint_value", one(n, "string_value")) for n in first["debug_annotations"]}
                slices.append(
                    Slice(begin, time, self.name(first), track, notes, one(first, "callstack_iid"),
                          first["terminating_flow_ids"])
                )
            elif kind == INSTANT:
                moments.append((time, track, event, stacks[track][-1:]))
            else:
                assert kind == COUNTER and "counter" in self.tracks[track]
                counts.append((time, one(self.tracks[track], "name"), one(event, "counter_value")))
        assert not any(stacks.values()), "some slices have no end"
        return slices, moments, counts

    def children(self, parent):
        at = [uuid for uuid, track in self.tracks.items() if one(track, "name") == parent]
        return {u: one(t, "name") for u, t in self.tracks.items() if one(t, "parent_uuid") == at[0]}

    def stack(self, iid):
        """[(function, file, line)], outermost first."""
        def text(kind, number):
            return one(self.defined[kind][number], "str") if number else ""

        frames = []
        for number in self.defined["callstacks"][iid]["frame_ids"]:
            frame = self.defined["frames"][number]
            assert one(frame, "mapping_id") in self.defined["mappings"] and one(frame, "rel_pc")
            frames.append((text("function_names", one(frame, "function_name_id")),
                           text("source_paths", one(frame, "source_path_iid")), one(frame, "line_number", 0)))
        return frames


def scheduled(export):
    """The scheduling events as Perfetto's sched and thread_state: {(thread ID, "Running", "S", ...): ns}, {thread ID:
    name}, and [(waker, woken, ns)]."""
    on, since, times, names, wakings = {}, {}, {}, {}, []

    def enters(tid, state, now):
        was, begin = since.get(tid, (state, now))
        add(times, (tid, was), now - begin)
        since[tid] = (state, now)

    for now, cpu, event in export.ftrace:
        if event["sched_waking"]:
            waking = one(event, "sched_waking")
            tid = one(waking, "pid")
            assert since.get(tid, ("S", 0))[0] in "SD", (tid, since[tid])
            enters(tid, "R", now)
            wakings.append((one(event, "pid"), tid, now))
            continue
        switch = one(event, "sched_switch")
        prev, tid = one(switch, "prev_pid"), one(switch, "next_pid")
        assert one(event, "pid") == prev == on.get(cpu, 0), (on, event)
        assert tid == 0 or tid not in on.values(), (on, event)
        on[cpu] = tid
        if prev:
            enters(prev, {0: "R", 1: "S", 2: "D", 16: "X"}[one(switch, "prev_state")], now)
        if tid:
            enters(tid, "Running", now)
            names[tid] = one(switch, "next_comm")
    return times, names, wakings


def check_scheduled(trace, export):
    ours, names, wakings = scheduled(export)
    times, theirs = expected_threads(trace)
    assert names == theirs, (names, theirs)
    rows = list(csv.DictReader(io.StringIO(trail("export", "--to=csv", "--table=states", trace).decode())))
    tids = {row["goroutine"]: int(row["thread"]) for row in rows if row["thread"]}
    right, seen = {}, set()
    for (tid, state, _), ns in times.items():
        add(right, (tid, {"running": "Running", "syscall": "Running", "runnable": "R", "waiting": "S"}.get(state, "D")), ns)
    for row in rows:
        # The ID of a new thread is known when it first runs.
        if row["goroutine"] not in seen and row["state"] == "Runnable":
            add(right, (tids[row["goroutine"]], "R"), -int(row["duration_ns"]))
        seen.add(row["goroutine"])
    last = {}  # The state at the end of the trace, which has no end here.
    for row in rows:
        if row["has_end"] == "false":
            last[tids[row["goroutine"]]] = int(row["duration_ns"])
    for (tid, state), ns in right.items():
        assert ours.get((tid, state), 0) in (ns, ns - last.get(tid, 0)), (tid, state, ours, ns, last)
    woken = {(tids[row["waker"]], tids[row["goroutine"]], int(row["end_ns"])) for row in rows if row["waker"] and row["state"] == "Waiting"}
    assert woken and woken <= set(wakings), (woken, wakings)
    assert all(waker == 0 for waker, tid, ns in set(wakings) - woken)


def check_threads(trace):
    """For a recording: tracks of threads by TID, in their process, and nothing specific to Go."""
    export = Export(trace)
    times, names = expected_threads(trace)
    tids = {}
    for uuid, track in export.tracks.items():
        if "thread" in track:
            thread = one(track, "thread")
            tids[uuid] = one(thread, "tid")
            assert one(thread, "thread_name") == names[tids[uuid]], track
    assert sorted(tids.values()) == sorted(names), (tids, names)
    (process,) = [one(track, "process") for track in export.tracks.values() if "process" in track]
    pid = min(tid for tid, name in names.items() if name == "main")  # the main thread's ID is the process's
    assert {one(t, "pid") for t in [process, *(one(t, "thread") for t in export.tracks.values() if "thread" in t)]} == {pid}
    ours, objects = {}, set()
    for s in export.slices:
        if s.track in tids:
            m = re.fullmatch(r"waiting \((.*)\)|(.*)", s.name, re.S)
            state, reason = ("waiting", m[1]) if m[1] is not None else (m[2], "")
            assert state in STATES, s
            add(ours, (tids[s.track], state, reason), s.end - s.begin)
            if "wait.kind" in s.notes:
                objects.add((s.notes["wait.kind"], s.notes.get("wait.object")))
    compare(trace, ours, times)
    assert awaited(trace) <= objects, objects
    assert not export.counts and not {one(t, "name") for t in export.tracks.values()} & {"goroutines", "Ps", "GC", "GOMAXPROCS"}
    check_scheduled(trace, export)
    regions = [s for s in export.slices if s.name == "look up"]
    assert bool(regions) == ("shop" in trace) and all(s.notes["thread.id"] in names and "goroutine" not in s.notes for s in regions)


def check(trace, *args):
    if is_of_threads(trace):
        return check_threads(trace)
    export = Export(trace, *args)
    assert not export.ftrace, "goroutines are no threads"
    times, names = expected(trace, *args)
    labels = export.children("goroutines")
    ours = {}
    for s in export.slices:
        if s.track in labels:
            m = re.fullmatch(r"waiting \((.*)\)|(.*)", s.name, re.S)
            state, reason = ("waiting", m[1]) if m[1] is not None else (m[2], "")
            assert state in STATES, s
            add(ours, (int(labels[s.track].split()[0][1:]), state, reason), s.end - s.begin)
    compare(trace, ours, times)
    for g, name in names.items():
        if any(key[0] == g for key in times):
            assert f"G{g} {name}".rstrip() in labels.values(), (g, name)
    return export


@test
def spans_add_up_to_the_figures_of_the_analysis():
    for trace in examples().values():
        if os.path.getsize(trace) < 50_000:  # protoc's text is long
            check(trace)


@test
def in_a_window_too():
    for trace in EXAMPLES[:3]:
        check(trace, "--from=2ms", "--to=+2ms")


@test
def every_version_by_hand():
    for name in ("everything-1.5", "everything-1.21", "everything-1.26", "times-1.26", "gc-1.26", "why-1.26"):
        check(data(name))


@test
def who_wakes_is_bound_to_the_span_that_begins_then():
    export = check(examples()["load-go1.23.trace"])
    starts = {}
    labels = export.children("goroutines")
    for time, track, event, around in export.moments:
        for flow in event["flow_ids"]:
            assert flow not in starts and track in labels and around, event
            starts[flow] = time
    ends = {flow: s for s in export.slices for flow in s.ends}
    assert len(starts) > 50 and starts.keys() == ends.keys()
    for flow, s in ends.items():
        assert s.begin == starts[flow] and s.name == "runnable" and s.track in labels


@test
def what_was_written_by_hand_is_there():
    export = check(data("everything-1.26"))
    # The trace begins at 1000; a tick is 64 ns. See tests/data/everything-1.26.txt.
    first = min(time for time, _, _ in export.events)
    labels = {name: u for u, name in export.children("goroutines").items()}
    assert sorted(labels) == ["G1 main.serve", "G2 main.worker", "G3 main.worker"], labels
    main_waits = next(s for s in export.slices if s.track == labels["G1 main.serve"] and "waiting" in s.name)
    assert main_waits.name == "waiting (chan receive)"
    assert export.stack(main_waits.stack) == [
        ("main.main", "/src/app/main.go", 7), ("main.serve", "/src/app/main.go", 42)]
    region = next(s for s in export.slices if s.name == 'decode "body"')
    assert region.notes == {"goroutine": 1, "task": 2}, region
    assert one(export.tracks[one(export.tracks[region.track], "parent_uuid")], "name") == "G1 main.serve"
    log = next(e for _, _, e, _ in export.moments if one(e, "name", "").startswith("tab"))
    assert one(log, "name") == "tab\there, \u00e9, \u2028, \x1b[31m and \ufffd"
    assert {(name, value) for _, name, value in export.counts} == {
        ("GOMAXPROCS", 2), ("heap in use", 12902400), ("heap goal", 25165824)}
    assert {s.name for s in export.slices if s.track in export.children("runtime")} == {
        "GC concurrent mark phase", "stop-the-world (start trace)"}
    assert [(one(s, "tid"), one(s, "pid"), export.stack(one(s, "callstack_iid"))[-1][0])
            for _, s in export.samples] == [(100, 1, "main.serve")]
    wall = next(c for c in export.clocks if 1 in c)
    assert wall[1] == 1_700_000_000_120_000_000 and wall[6] == first, wall


@test
def a_long_reason_is_there_as_a_whole():
    reason = "a wait for " + 8 * "something else, " + "and for the end"
    trace = assembled("long-reason", text_of("everything-1.26").replace("chan receive", reason))
    assert f"waiting ({reason})" in {s.name for s in Export(trace).slices}


@test
def a_file_is_at_most_three_times_as_large_as_the_trace():
    real = os.path.join(SHARED, "real")
    large = [os.path.join(real, name) for name in sorted(os.listdir(real))] if os.path.isdir(real) else []
    for trace in [*examples().values(), *large]:
        if trace.endswith(".trace"):
            packed, size = trail("export", "--to=perfetto", trace), os.path.getsize(trace)
            assert len(packed) <= 3 * size, (trace, size, len(packed))
            if trace in EXAMPLES:
                assert plain(packed) == trail("export", "--to=perfetto", "--uncompressed", trace), trace


@test
def a_packet_that_is_larger_than_the_buffer_is_there_as_a_whole():
    message = "".join(random.Random(1).choices("abcdefgh ", k=600_000))
    trace = assembled("large", text_of("everything-1.21").replace("half done", message))
    export = Export(trace)
    assert message in [one(event, "name") for _, _, event, _ in export.moments]
    assert len(export.slices) == len(Export(data("everything-1.21")).slices)


# The first system call returns on its CPU slot; the second loses it at 1040 and ends at 1060.
SYSTEM_CALLS = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=1000 sec=1700000000 nsec=0
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
GoStatus dt=0 g=1 m=100 gstatus=2
GoSyscallBegin dt=10 p_seq=1 stack=0
GoSyscallEnd dt=10
GoSyscallBegin dt=10 p_seq=2 stack=0
GoSyscallEndBlocked dt=30
ProcStart dt=5 p=0 p_seq=4
GoStart dt=5 g=1 g_seq=1
GoDestroy dt=30
EventBatch gen=1 m=101 time=1000 size=auto
ProcSteal dt=40 p=0 p_seq=3 m=100
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="trail.made by=record"
EndOfGeneration
"""


@test
def a_thread_stays_on_its_cpu_in_a_system_call_until_that_blocks():
    times, _, wakings = scheduled(Export(assembled("calls", SYSTEM_CALLS)))
    first = wakings[0][2] - 60
    assert times == {(100, "Running"): 70, (100, "D"): 20, (100, "R"): 10}, times
    assert wakings == [(0, 100, first + 60)], wakings


def both():
    """Two goroutines, each of which is sampled, logs, has a region and assists marking; and a sample of neither."""
    text = "Trace Go1.23\n"
    for g in (1, 2):
        text += f"""EventBatch gen=1 m={g} time=1000 size=auto
ProcStatus dt=1 p={g} pstatus=1
GoStatus dt=0 g={g} m={g} gstatus=2
UserRegionBegin dt=10 task=0 name_string={g} stack=0
UserLog dt=10 task=0 key_string=3 value_string={g} stack=0
GCMarkAssistBegin dt=10 stack=0
GCMarkAssistEnd dt=10
UserRegionEnd dt=10 task=0 name_string={g} stack=0
"""
    text += """EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
CPUSamples
CPUSample time=1015 m=1 p=1 g=1 stack=0
CPUSample time=1016 m=2 p=2 g=2 stack=0
CPUSample time=1017 m=1 p=1 g=2 stack=0
CPUSample time=1018 m=2 p=18446744073709551615 g=0 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
"""
    for number, name in enumerate(("one", "two", "note"), 1):
        text += f'String id={number}\n\tdata="{name}"\n'
    return assembled("both", text)


@test
def of_goroutines_that_are_left_out_there_is_nothing():
    trace = both()
    for args, samples, names in (((), 4, ["one", "two"]), (("--goroutine=1",), 1, ["one"]), (("--goroutine=G2",), 2, ["two"])):
        export = Export(trace, *args)
        assert len(export.samples) == samples, (args, export.samples)
        assert sorted(s.name for s in export.slices if s.name in ("one", "two")) == names, args
        assert sorted(one(e, "name") for _, _, e, _ in export.moments) == names, args
        assert len([s for s in export.slices if s.name == "GC mark assist"]) == len(names), args


@test
def threads_are_those_of_one_process():
    export = Export(data("everything-1.26"))
    threads = [one(t, "thread") for t in export.tracks.values() if "thread" in t]
    assert [(one(t, "pid"), one(t, "tid"), one(t, "thread_name")) for t in threads] == [(1, 100, "M100")]
    assert [one(one(t, "process"), "pid") for t in export.tracks.values() if "process" in t] == [1]
    ran = {s.name for s in export.slices if "thread" in export.tracks[s.track]}
    assert ran == {"G1", "G1 main.serve", "G2 main.worker", "syscall"}, ran


if __name__ == "__main__":
    if not shutil.which("protoc"):
        print("1..0 # SKIP there is no protoc")
        sys.exit(0)
    sys.exit(main())
