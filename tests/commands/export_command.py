#!/usr/bin/env python3
"""trail export as a command: formats, filters, failing outputs, invalid traces. TAP.

usage: export_command.py TRAIL SOURCE_ROOT
"""

import gzip
import json
import os
import signal
import subprocess
import sys

from exports import TRAIL, assembled, data, examples, expected, path, trail
from pprof import read_pprof
from tap import main, test

SMALL = "load-go1.23.trace"
STREAMS = ("chrome", "perfetto", "otlp", "otlp-metrics")


def fails(code, words, *args):
    p = subprocess.run([TRAIL, "export", *args], capture_output=True)
    assert p.returncode == code and words.encode() in p.stderr, (p.returncode, p.stderr)
    return p


@test
def the_format_is_told_or_shown_by_the_name():
    trace = examples()[SMALL]
    for name, to in (("a.pftrace", "perfetto"), ("a.json", "chrome"), ("a.otlp.json", "otlp"), ("a.otlp-metrics.json", "otlp-metrics")):
        trail("export", trace, "-o", path(name))
        with open(path(name), "rb") as f:
            assert f.read() == trail("export", f"--to={to}", trace), name
    fails(2, "no format given", trace)
    fails(2, "did you mean 'chrome'", "--to=crome", trace)
    fails(2, f"trail sql --csv {trace} 'from holds'", "--to=csv", "--table=holds", trace)
    fails(2, "did you mean 'states'", "--to=csv", "--table=state", trace)
    fails(2, "--type is for profiles", "--to=chrome", "--type=net", trace)
    fails(2, "this format writes a folder", "--to=ctf", trace)
    fails(2, "no trace given", "--to=chrome")


# Of times-1.26, added up by hand. G 1 receives from 1020 to 1045 and is ready until 1075; G 2 is
# ready from 1080 to 1105. G 2 runs from 1025 to 1060 and from 1105 to 1140, G 1 from 1002 to 1020
# and from 1075 to 1100; the 2 ns before that have no stack.
BY_HAND = {
    "sync": {"main.main;main.receive": 25},
    "sched": {"main.worker;main.read": 30, "": 25},
    "running": {"main.worker;main.read": 70, "main.main;main.receive": 43, "": 2},
}


def folded(out):
    rows = (line.rsplit(" ", 1) for line in out.decode().splitlines())
    return {stack.replace("(no stack)", ""): int(ns) for stack, ns in rows}


def speedscope(out):
    found = json.loads(out)
    names = [f["name"] for f in found["shared"]["frames"]]
    (profile,) = found["profiles"]
    assert (profile["unit"], profile["endValue"]) == ("nanoseconds", sum(profile["weights"]))
    stacks = [";".join(names[i] for i in sample) for sample in profile["samples"]]
    return dict(zip(stacks, profile["weights"], strict=True))


def pprof(out):
    samples = read_pprof(out)["samples"]
    return {";".join(frame[1] for frame in reversed(stack)): values[1] for stack, values in samples}


@test
def profiles_of_every_format_are_what_was_added_up_by_hand():
    for type, right in BY_HAND.items():
        for format, read in (("folded", folded), ("speedscope", speedscope), ("pprof", pprof)):
            found = read(trail("export", f"--to={format}", f"--type={type}", data("times-1.26")))
            assert found == right, (type, format, found)


@test
def profiles_are_those_of_trail_profile():
    trace = examples()[SMALL]
    for type in ("sync", "sched", "running"):
        for format in ("folded", "speedscope", "pprof"):
            ours = trail("export", f"--to={format}", f"--type={type}", trace)
            theirs = trail("profile", f"--format={format}", f"--type={type}", "-o", "-", trace)
            if format == "pprof":
                ours, theirs = gzip.decompress(ours), gzip.decompress(theirs)
            assert ours == theirs and ours, (type, format)
    assert trail("export", "--to=folded", "--from=2ms", "--to=+9ms", "--goroutine=1", trace) == trail(
        "profile", "--format=folded", "-o", "-", "--from=2ms", "--to=11ms", "--goroutine=1", trace
    )


@test
def the_program_of_an_old_trace_is_passed_on():
    trace = data("everything-1.5")
    for to in ("folded", "chrome"):
        p = fails(3, "no-such-program", f"--to={to}", "--binary=no-such-program", trace)
        assert not p.stdout


def goroutines(trace, *args):
    events = json.loads(trail("export", "--to=chrome", *args, trace))["traceEvents"]
    return {e["tid"] for e in events if e["ph"] == "X" and e["pid"] == 1}, events


@test
def only_what_is_wanted():
    trace = data("why-1.26")
    _, names = expected(trace)
    all_of_them, _ = goroutines(trace)
    assert len(all_of_them) > 2
    some = sorted(all_of_them)[:2]
    only, events = goroutines(trace, "--goroutine=" + ",".join(f"G{g}" for g in some))
    assert only == set(some)
    assert {e["args"]["goroutine"] for e in events if e["ph"] == "X" and e["pid"] == 2} <= only
    name = max(names.values(), key=len)
    only, _ = goroutines(trace, f"--name={name}")
    assert only == {g for g, n in names.items() if n == name}
    for to in STREAMS:
        fails(2, "no such goroutine", f"--to={to}", "--name=main.nobody", trace)
        fails(2, "no such goroutine", f"--to={to}", "--goroutine=999999", trace)


@test
def a_damaged_trace_gives_its_good_part():
    with open(examples()["load-go1.22.trace"], "rb") as f:
        whole = f.read()
    with open(path("cut.trace"), "wb") as f:
        f.write(whole[: len(whole) * 3 // 4])
    good = subprocess.run([TRAIL, "check", path("cut.trace")], capture_output=True)
    assert good.returncode == 1
    with open(examples()["load-go1.19.trace"], "rb") as f:
        whole = f.read()
    with open(path("cut-1.19.trace"), "wb") as f:
        f.write(whole[: len(whole) - 1000])
    p = fails(1, "the good part was exported", "--to=chrome", path("cut-1.19.trace"))
    assert json.loads(p.stdout)["traceEvents"]
    for to in ("perfetto", "otlp", "ctf"):
        out = path(f"cut.{to}")
        fails(1, "the good part was exported", f"--to={to}", path("cut-1.19.trace"), "-o", out)
        assert os.path.exists(out)
    with open(path("none.trace"), "w") as f:
        f.write("no trace at all, but long enough")
    for to in (*STREAMS, "ctf"):
        fails(1, "none.trace", f"--to={to}", path("none.trace"), "-o", path("none.out"))
        assert not os.path.exists(path("none.out"))


@test
def a_window_without_events_says_so():
    for to in (*STREAMS, "ctf"):
        fails(1, "no event in that window", f"--to={to}", "--from=1h", examples()[SMALL], "-o", path("none.out"))
        assert not os.path.exists(path("none.out"))
    fails(2, "--to is before --from", "--to=chrome", "--from=2s", "--to=1s", examples()[SMALL])


@test
def what_cannot_be_written_is_said():
    trace = examples()[SMALL]
    for to in ("chrome", "perfetto"):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([TRAIL, "export", f"--to={to}", trace], stdout=full, stderr=subprocess.PIPE)
        assert p.returncode == 3 and b"No space left" in p.stderr, p.stderr
        fails(3, "No such file", f"--to={to}", trace, "-o", path("no/such/folder.out"))
        read, write = os.pipe()
        os.close(read)
        p = subprocess.run([TRAIL, "export", f"--to={to}", trace], stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        assert (p.returncode, p.stderr) == (-signal.SIGPIPE, b""), (p.returncode, p.stderr)
    fails(3, "No such file", "--to=ctf", trace, "-o", path("no/such/folder.ctf"))
    fails(3, "none.trace", "--to=ctf", path("no.none.trace"), "-o", path("x.ctf"))


@test
def what_was_there_stays_until_the_new_is_whole():
    before = os.listdir(path("."))
    with open(path("kept.json"), "w") as f:
        f.write("old")
    # A limit on the file size looks like a full disk to the command.
    command = f"ulimit -f 1; trap '' XFSZ; exec '{TRAIL}' export --to=chrome '{examples()[SMALL]}' -o '{path('kept.json')}'"
    p = subprocess.run(["bash", "-c", command], capture_output=True)
    assert p.returncode == 3 and b"File too large" in p.stderr, (p.returncode, p.stderr)
    command = command.replace("chrome", "ctf").replace("kept.json", "kept.ctf")
    p = subprocess.run(["bash", "-c", command], capture_output=True)
    assert p.returncode == 3 and b"File too large" in p.stderr, (p.returncode, p.stderr)
    with open(path("kept.json")) as f:
        assert f.read() == "old"
    assert sorted(os.listdir(path("."))) == sorted([*before, "kept.json"])
    copy = path("copy.trace")
    with open(examples()[SMALL], "rb") as f, open(copy, "wb") as g:
        g.write(f.read())
    fails(2, "is the trace itself", "--to=chrome", copy, "-o", copy)


ODD = """Trace Go1.23
EventBatch gen=1 m=1 time=1 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=1 gstatus=2
GoCreate dt=1 new_g=2 new_stack=1 stack=1
UserRegionBegin dt=10 task=0 name_string=1 stack=1
UserRegionEnd dt=10 task=0 name_string=1 stack=1
GoBlock dt=5 reason_string=1 stack=1
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Stacks
Stack id=1 nframes=1
\tpc=1 func=1 file=1 line=1
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
\tdata="%s"
"""


@test
def any_bytes_are_text():
    for literal, text in (
        ('a\\"b\\\\', 'a"b\\'),
        ("\\x00\\x01\\x1b\\n\\x7f", "\0\1\x1b\n\x7f"),
        ("\\xff\\xc3\\xa9\\xc3", "\ufffd\u00e9\ufffd"),
        ("\\xed\\xa0\\x80\\xf5", "\ufffd" * 4),
        ("\\xc0\\xaf\\xe0\\x80\\xaf\\xf0\\x80\\x80\\xaf", "\ufffd" * 9),  # overlong slashes
        ("\\xf4\\x8f\\xbf\\xbf\\xf4\\x90\\x80\\x80", "\U0010ffff" + "\ufffd" * 4),
        ("\\xf0\\x9f\\x98\\x80</script>", "\U0001f600</script>"),
    ):
        export = json.loads(trail("export", "--to=chrome", assembled("odd", ODD % literal)).decode("utf-8"))
        events = export["traceEvents"]
        regions = [e["name"] for e in events if e.get("cat") == "region"]
        assert regions == [text, text], regions
        reasons = [e["args"]["reason"] for e in events if "reason" in e.get("args", {})]
        assert reasons == [text], (reasons, text)
        assert f"G2 {text}" in [e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"]
        frames = {f["name"] for f in export["stackFrames"].values()}
        assert frames == {text}, frames


if __name__ == "__main__":
    sys.exit(main())
