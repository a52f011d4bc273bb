#!/usr/bin/env python3
"""The output of trail convert, compared with its input. TAP.

usage: convert.py TRAIL SOURCE_ROOT

A converted trace is right if its events are those of the original, except for what
docs/converting-traces.md lists; if `trail check` accepts it; and if Go's own tool does, where that is
installed. The shared traces are in the folder that TRAIL_TRACES names, or in ../shared/traces next to the
source; without it they are skipped.
"""

import collections
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
from go_readers import go_of
from sample import some
from tap import finish, report, skip

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TRACES = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")
GO = go_of("1.23") or ""
SMALL = 200 << 10  # for larger traces, Go's tool is not run and stacks are not compared
LARGE = 700 << 10  # still larger v1 traces are not compared at all

# Contexts that differ in v1: the starting goroutine, and the P that starts or has no owner.
OTHER_CONTEXT = {
    "ProcStart", "ProcStop", "ProcStatus", "GoStart", "GoStatus", "GoUnblock", "GoSyscallEndBlocked", "GCBegin",
    "GCEnd", "CPUSample",
}  # fmt: skip

# There, a goroutine's call ends only after its thread has continued with another goroutine.
LATE_EXITS = {"esbuild-0.14.54.trace", "stress_start_stop_1_5_good", "stress_1_5_good"}



def run(*args, stdin=None, stdout=subprocess.PIPE):
    p = subprocess.run([TRAIL, *args], input=stdin, stdout=stdout, stderr=subprocess.PIPE)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def convert(path, version, *more):
    """The converted trace's bytes, or None."""
    code, out, err = run("convert", f"--to={version}", *more, path, "-o", "-")
    return out if code == 0 else None


def lines_of(trace, *more):
    """The events as lines of JSON, without Syncs."""
    code, out, err = run("print", "--format=jsonl", *more, "-", stdin=trace)
    assert code == 0, err
    return [line for line in out.splitlines() if b'"kind":"Sync"' not in line]


def events_of(trace, *more):
    return json.loads(b"[" + b",".join(lines_of(trace, *more)) + b"]")


# MARK: What differs between v1 and v2


def comparable(event, shift):
    event = dict(event, time_ns=event["time_ns"] + shift)
    kind = event.get("type")
    if kind in OTHER_CONTEXT:
        for key in "mpg":
            event.pop(key, None)
    if kind == "UserTaskEnd" and event.get("parent") == 0:
        del event["parent"]
    return event


def of_v1(events):
    return [
        comparable(e, 2)
        for e in events
        if not (e.get("type") in ("STWBegin", "STWEnd") and e["id"] == -1)
    ]


def of_converted(events):
    kept, stolen = [], None
    for e in events:
        kind = e.get("type")
        added = kind in ("ProcSteal", "GCMarkAssistActive") or (
            kind == "ProcStart" and stolen == e["id"]
        )
        stolen = e["id"] if kind == "ProcSteal" else None
        if not added:
            kept.append(comparable(e, 0))
    return kept


def by_goroutine(events):
    sequences = collections.defaultdict(list)
    for e in events:
        if e.get("resource") == "goroutine" and e["kind"] == "StateTransition":
            sequences[e["id"]].append((e["type"], e["from"], e["to"]))
    return sequences


def first_difference(a, b):
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            return f"event {i}: {x} became {y}"
    return f"{len(a)} events became {len(b)}"


def same_events(name, before, after):
    """How the events of a v1 trace differ from those of the converted one; None if they do not."""
    more = [] if len(before) < SMALL else ["--no-stacks"]
    a, b = of_v1(events_of(before, *more)), of_converted(events_of(after, *more))
    if name in LATE_EXITS:
        a, b = by_goroutine(a), by_goroutine(b)
        return None if a == b else [(g, a[g], b[g]) for g in a if a[g] != b.get(g)][:1]
    for x, y in zip(a, b):
        if "g" not in x:
            y.pop("g", None)
    return None if a == b else first_difference(a, b)


# MARK: Traces


def go_reads(trace):
    with tempfile.NamedTemporaryFile(suffix=".trace") as f:
        f.write(trace)
        f.flush()
        p = subprocess.run([GO, "tool", "trace", "-d=1", f.name], capture_output=True)
        return "" if p.returncode == 0 and p.stdout else p.stderr.decode("utf-8", "replace")[:300]


def check_trace(path, name, version):
    with open(path, "rb") as f:
        before = f.read()
    after = convert(path, "go1.26")
    if after is None:
        report(False, f"{name}: is converted", run("convert", path, "-o", os.devnull)[2])
        return
    code, out, err = run("check", "-", stdin=after)
    report(code == 0, f"{name}: is a good trace", out, err)
    more = [] if len(before) < SMALL else ["--no-stacks"]
    if version >= 22:
        a, b = lines_of(before, *more), lines_of(after, *more)
        report(a == b, f"{name}: has the same events", first_difference(a, b) if a != b else "")
    elif len(before) < LARGE:
        why = same_events(name, before, after)
        report(why is None, f"{name}: has the same events", why)
    if len(before) >= SMALL:
        return
    older = convert(path, "go1.23")
    report(
        lines_of(older) == lines_of(convert_bytes(after, "go1.23")) == lines_of(after),
        f"{name}: 1.26, and 1.23 of both, have the same events",
    )
    if os.path.exists(GO):
        for trace, what in ((older, "1.23"), (convert(path, "go1.22"), "1.22")):
            why = go_reads(trace) if trace else "not converted"
            report(why == "", f"{name}: Go 1.23 reads it as {what}", why)


def convert_bytes(trace, version):
    return run("convert", f"--to={version}", "-", "-o", "-", stdin=trace)[1]


def version_of(data):
    head = data[:16]
    return int(head[5 : head.index(b" ", 5)]) if head.startswith(b"go 1.") else 0


def shared_traces():
    if not os.path.isdir(TRACES):
        skip("shared traces", "no traces with known answers")
        return
    paths = sorted(glob.glob(TRACES + "/go-v1/*") + glob.glob(TRACES + "/real/*.trace"))
    for path in some(paths, 8):
        with open(path, "rb") as f:
            version = version_of(f.read(16))
        if version and run("check", "-q", path)[0] == 0:
            check_trace(path, os.path.basename(path), version)


def texts():
    """All kinds of events: hand-written traces, and those of Go's own tests."""
    paths = glob.glob(ROOT + "/tests/data/everything-*.txt")
    paths += glob.glob(TRACES + "/go-v2-text/*.test")
    for path in sorted(paths):
        code, trace, err = run("assemble", path, "-o", "-")
        name = os.path.basename(path)
        with tempfile.NamedTemporaryFile() as f:
            f.write(trace)
            f.flush()
            if code == 0 and run("check", "-q", f.name)[0] == 0:
                check_trace(f.name, name, version_of(trace))


# MARK: Windows


def window(path, origin, start, end):
    """The events of the original within a window, and those of the converted trace that are not among them."""
    times = ("--from=%dns" % start, "--to=%dns" % end)
    code, out, err = run("convert", *times, path, "-o", "-")
    assert code == 0, err
    code, printed, err = run("print", "--format=jsonl", *times, path)
    wanted = [line for line in printed.splitlines() if b'"kind":"Sync"' not in line]
    return wanted, lines_of(out), out


def nameless(lines):
    return [
        json.dumps(end_of(json.loads(line))).encode() if b'"UserTaskEnd"' in line else line
        for line in lines
    ]


def end_of(event):
    return {key: event[key] for key in event if key not in ("name", "parent")}


def windows():
    for path in sorted(glob.glob(ROOT + "/examples/traces/load-go1.2[23].trace")):
        code, out, err = run("print", "--format=jsonl", "--no-stacks", path)
        times = [json.loads(line)["time_ns"] for line in out.splitlines()]
        whole = times[-1] - times[0]
        for part in (0, 3, 9):
            start = whole * part // 10
            wanted, got, trace = window(path, times[0], start, start + whole // 10)
            name = f"{os.path.basename(path)} {part}/10"
            code, out, err = run("check", "-", stdin=trace)
            report(code == 0, f"{name}: a window is a good trace", out, err)
            # Tasks and regions that began before the window are announced at its start; the end of
            # an earlier range is omitted. A task that began earlier has no name at its end.
            wanted, got = nameless(wanted), nameless(got)
            ends = collections.Counter(wanted) - collections.Counter(got)
            kinds = {json.loads(line)["type"] for line in ends}
            statuses = {"GoStatus", "GoStatusStack", "ProcStatus"}
            alive = {"STWEnd", "GCActive", "GCMarkAssistActive", "GCSweepActive"}
            report(kinds <= statuses | alive, f"{name}: has all that the window has", kinds)
            more = collections.Counter(got) - collections.Counter(wanted)
            kinds = {json.loads(line)["type"] for line in more}
            report(kinds <= statuses | alive, f"{name}: has only statuses besides", kinds)
            if os.path.exists(GO):
                older = convert_bytes(trace, "go1.23")
                why = go_reads(older)
                report(why == "", f"{name}: Go 1.23 reads it", why)


# MARK: The command


def damaged():
    path = ROOT + "/examples/traces/load-go1.23.trace"
    with open(path, "rb") as f:
        data = f.read()
    cut = data[: len(data) * 2 // 3]
    code, out, err = run("convert", "-", "-o", "-", stdin=cut)
    good = run("check", "-q", "-", stdin=out)[0]
    report(code == 1 and good == 0 and "the good part was converted" in err, "of a damaged trace the good part", code, err)
    code, printed, err = run("print", "--format=jsonl", "-", stdin=cut)
    # Without names, which are lost, annotations break rules; Go's tools can read the converted trace.
    lines = [line for line in printed.splitlines() if b'"kind":"Sync"' not in line and b'"inferred":true' not in line]
    wanted, got = [line.replace(b',"misused":true', b"") for line in lines], lines_of(out)
    # The format cannot express that the state at the end is unknown, only that the goroutine no longer runs.
    stops = [line for line in got if line not in set(wanted)]
    report([line for line in got if line not in stops] == wanted, "which is all that can be read of it")
    report([json.loads(line)["type"] for line in stops] == ["GoStop", "ProcStop"], "what runs where it ends stops", stops)
    code, out, err = run("convert", "-", "-o", "-", stdin=b"no trace at all, but some text")
    report(code == 1 and not out, "of what is no trace nothing", code, err)


def unordered():
    path = os.path.join(TRACES, "go-v1", "stress_1_5_unordered")
    if not os.path.exists(path):
        return
    code, out, err = run("convert", path, "-o", "-")
    report(code == 1, "an unordered trace is bad", code, err)
    code, out, err = run("convert", "--repair", path, "-o", "-")
    good = run("check", "-q", "-", stdin=out)[0]
    report(code == 0 and good == 0 and "repair" in err, "--repair converts it", code, err)


def interrupted(path, folder):
    """Ctrl-C while it waits for more input, when the output for the first part is not complete yet."""
    before = os.listdir(folder)
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError:
        return report(True, "Ctrl-C leaves nothing # SKIP this file system has no files without names")
    command = [TRAIL, "convert", "-", "-o", os.path.join(folder, "z.trace")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(open(path, "rb").read()[:-1])
        process.stdin.flush()
        states.until(lambda: any(target.startswith(folder) for target in states.open_files(process.pid).values()))
        process.send_signal(signal.SIGINT)
        process.wait()
    report(process.returncode == -signal.SIGINT and os.listdir(folder) == before, "Ctrl-C leaves nothing", before)


def output():
    path = ROOT + "/examples/traces/load-go1.23.trace"
    with tempfile.TemporaryDirectory() as folder:
        to = os.path.join(folder, "x.trace")
        code, out, err = run("convert", "--from=1h", path, "-o", to)
        report(code == 1 and "no event" in err and not os.listdir(folder), "an empty window leaves no file", err)
        code, out, err = run("convert", path, "-o", to)
        report(code == 0 and os.listdir(folder) == ["x.trace"], "a file has its name and nothing is beside", err)
        code, out, err = run("convert", to, "-o", to)
        report(code == 2 and "overwrite" in err, "it does not overwrite what it reads", err)
        code, out, err = run("convert", "--to=go1.26", to, "-o", to + "2")
        code, out, err = run("convert", to + "2", "-o", to)
        report(code == 0 and len(os.listdir(folder)) == 2, "a file takes the place of another", err)
        interrupted(path, folder)
        code, out, err = run("convert", path, "-o", os.path.join(folder, "no", "x.trace"))
        report(code == 3, "a folder that is not there is told", err)
    code, out, err = run("convert", path, "-o", "/dev/full")
    report(code == 3 and "No space left" in err, "a full disk is told", code, err)
    read, write = os.pipe()
    os.close(read)
    code, out, err = run("convert", path, "-o", "-", stdout=write)
    os.close(write)
    report(code == -signal.SIGPIPE and not err, "where the reader of the output goes away it ends by SIGPIPE", code, err)
    for to, wanted in (("go1.21", "cannot be written"), ("soon", "not 'soon'"), ("go1.27", "cannot be")):
        code, out, err = run("convert", f"--to={to}", path, "-o", "-")
        report(code == 2 and wanted in err, f"--to={to} is a mistake", code, err)
    code, out, err = run("convert", "--from=2s", "--to=1s", path, "-o", "-")
    report(code == 2 and "before" in err, "--to before --from is a mistake", code, err)


shared_traces()
texts()
windows()
damaged()
unordered()
output()
sys.exit(finish())
