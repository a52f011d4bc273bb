#!/usr/bin/env python3
"""The output of every command on a terminal, for traces, files, words and programs with names that
contain control characters. TAP.

usage: terminal.py TRAIL SOURCE_ROOT [records-not]

Each name holds every control character, DEL, the C1 controls both as U+0080 to U+009F and as bytes
that are not UTF-8, and every directional mark. The commands and their options are those that the
program's own help lists. No command may write these to a terminal, nor, in text for people, to a
pipe. Formats defined by others are exact in a pipe, which other tests check.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import tty
import unicodedata

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sample import some
from tap import main, test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECORDS = sys.argv[3:] != ["records-not"]
if not RECORDS:
    print("# no program can be recorded on this machine: that is not tried")
DATA = os.path.join(ROOT, "tests", "data")
WORK = tempfile.mkdtemp(prefix="trail-terminal-")
LIMIT = 120  # s, in case something hangs
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8", "TERM": "xterm"}
for name in ("NO_COLOR", "LD_PRELOAD", "TRAIL_SHM", "DISPLAY", "WAYLAND_DISPLAY", "COLUMNS"):
    ENV.pop(name, None)

MARKS = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
C0 = [c for c in range(1, 0x20)]
# The bytes that a file name can contain: all but NUL and /. A forged line begins like a message of trail.
NAME = (
    b"x"
    + b"".join(bytes([c]) + b"a" for c in [*C0, 0x7F])
    + b"".join(chr(c).encode() + b"b" for c in [*range(0x80, 0xA0), *MARKS])
    + b"".join(bytes([c]) + b"c" for c in range(0x80, 0xA0))
)
SHORT = b"y\x1b[31m\x9b31mz\xc2\x9b\xe2\x80\xae\x7f\r\nFORGED\n\xe2\x81\xa6\xd8\x9c\x08"
LEAST = b"\x1b[31m\x9b\xc2\x9b\xe2\x80\xae"  # 12 bytes: a thread's name has 15
OWN_COLOURS = re.compile(rb"\x1b\[(?:0|1|2|32|33|34|35|36)m")


# All except newline and tab, which make lines and tables. Bytes that are not UTF-8 are decoded as
# surrogates.
FORBIDDEN = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\udc80-\udcff" + "".join(map(chr, MARKS)) + "]")


def forbidden(data, own=b""):
    """The first forbidden character of the output, and its surroundings."""
    for sequence in own:
        data = data.replace(sequence, b"")
    text = OWN_COLOURS.sub(b"", data).decode("utf-8", "surrogateescape")
    found = FORBIDDEN.search(text)
    return found and f"U+{ord(found[0]):04X} in {text[max(0, found.start() - 40) : found.end() + 20]!r}"


def forged(data):
    return any(line.startswith(b"FORGED") for line in data.split(b"\n"))


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


def read_terminals(process, ends, until):
    """The output on the terminals until all are closed, or until `until` returns true."""
    got = {end: b"" for end in ends}
    left, stop = set(ends), time.monotonic() + LIMIT
    while left:
        ready, _, _ = select.select(list(left), [], [], max(0, stop - time.monotonic()))
        assert ready, f"hangs: {got}"
        for end in ready:
            try:
                data = os.read(end, 65536)
            except OSError:
                data = b""
            got[end] += data
            if not data:
                left.discard(end)
        if until and until(got[ends[0]] + got[ends[1]]):
            process.send_signal(signal.SIGINT)
            until = None
    process.wait(LIMIT)
    return [got[end] for end in ends]


def on_terminal(*args, stdin=subprocess.DEVNULL, until=None, cwd=None, env=None, columns=0):
    """Runs trail with stdout and stderr on separate terminals, with this many columns."""
    pairs = [pty.openpty(), pty.openpty()]
    for _, end in pairs:
        tty.setraw(end)
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [TRAIL, *args], stdin=stdin, stdout=pairs[0][1], stderr=pairs[1][1], cwd=cwd or WORK, env=env or ENV
    )
    for _, end in pairs:
        os.close(end)
    out, err = read_terminals(process, [end for end, _ in pairs], until)
    for end, _ in pairs:
        os.close(end)
    return Result(process.returncode, out, err)


def in_pipe(*args, stdin=subprocess.DEVNULL, cwd=None, env=None):
    p = subprocess.run([TRAIL, *args], stdin=stdin, capture_output=True, cwd=cwd or WORK, env=env or ENV, timeout=LIMIT)
    return Result(p.returncode, p.stdout, p.stderr)


def shown(args):
    return "trail " + " ".join(repr(a) for a in args)


def check_terminal(*args, own=(), **more):
    result = on_terminal(*args, **more)
    assert result.code >= 0, f"{shown(args)}: ended by signal {-result.code}"
    for data in (result.out, result.err):
        wrong = forbidden(data, own)
        assert wrong is None, f"{shown(args)}: {wrong}"
    assert not forged(result.err), f"{shown(args)}: forges a line: {result.err!r}"
    return result


def check_pipe(*args, **more):
    result = in_pipe(*args, **more)
    for data in (result.out, result.err):
        wrong = forbidden(data)
        assert wrong is None, f"{shown(args)} in a pipe: {wrong}"
        assert not forged(data), f"{shown(args)} in a pipe forges a line: {data!r}"
    return result


# Commands and options, from the program's own help


def commands():
    text = in_pipe("--help").out.decode()
    listed = re.search(r"FILE...\n\n(.*?)\n\n  --help", text, re.S)[1]
    return [line.split()[0] for line in listed.splitlines() if line.startswith("  ")]


def options(command):
    """Long options and whether they take a value."""
    text = in_pipe("help", command).out.decode()
    return re.findall(r"^ +(?:-\w, )?--([a-z0-9-]+)(=)?", text, re.M)


# Traces


def escaped(data):
    return b"".join(b"\\x%02x" % c for c in data)


# One of the two keeps the reasons and kinds of events that readers know by their text.
KNOWN = [b"chan receive", b"start trace", b"preempted", b"sync", b"GC", b"sleep", b"network", b"select"]


def hostile_trace(name, all_strings, added=NAME):
    """The trace of tests/data/NAME.txt with `added` at the end of each string."""
    path = os.path.join(WORK, f"{name}-{all_strings}-{len(added)}.trace")
    if os.path.exists(path):
        return path

    def change(match):
        known = any(match[1].startswith(k) for k in KNOWN)
        return b'data="' + match[1] + (b"" if known and not all_strings else escaped(added)) + b'"'

    with open(os.path.join(DATA, name + ".txt"), "rb") as f:
        text = re.sub(rb'data="((?:[^"\\]|\\.)*)"', change, f.read())
    # In v2 the sizes of batches, and in v1 those of strings, precede them.
    result = in_pipe("assemble", "-", "-o", path, stdin=write("text", text))
    assert result.code == 0, result.err
    return path


def write(name, data):
    path = os.path.join(os.fsencode(WORK), os.fsencode(name))
    with open(path, "wb") as f:
        f.write(data)
    return open(path, "rb")


BASES = "everything-1.26", "why-1.26", "locks-1.26", "gc-1.26", "everything-1.21"


def traces(bases=BASES):
    """Each with and without the strings that readers know; the first with both names for each."""
    return [
        hostile_trace(name, all_strings, added)
        for name in bases
        for all_strings, added in ((False, NAME), (True, SHORT), (True, NAME), (False, SHORT))[: 4 if name == BASES[0] else 2]
    ]


EVIL = os.path.join(os.fsencode(WORK), SHORT)  # the name of a file


def evil_trace():
    if not os.path.exists(EVIL):
        shutil.copy(hostile_trace("everything-1.26", False), EVIL)
    return EVIL


# Arguments with which a command shows a trace, {}. Without a row, the trace is the only argument. The commands in
# `machine` write formats defined by others, which are exact in a pipe.
USES = {
    "summary": [["{}"], ["--json", "{}"]],
    "report": [["-o", "report.html", "{}"]],
    "info": [["{}"], ["--full", "{}"], ["--full", "--json", "{}"]],
    "print": [["{}"], ["--stacks", "{}"], ["--stacks", "--color=always", "{}"], ["--format=jsonl", "{}"], ["--format=wire", "{}"]],
    "check": [["{}"], ["--json", "{}"]],
    "goroutines": [["{}"], ["--json", "{}"], ["--histogram", "{}"], ["--name=main.worker", "{}"]],
    "regions": [["{}"], ["--json", "{}"], ["--histogram", "{}"]],
    "tasks": [["{}"], ["--json", "{}"], ["--task=1", "{}"]],
    "gc": [["{}"], ["--json", "{}"]],
    "mmu": [["{}"], ["--json", "{}"], ["--worst=2", "{}"]],
    "why": [["{}"], ["--task=7", "{}"], ["--goroutine=1", "--stacks", "{}"], ["--goroutine=1", "--json", "{}"]],
    "profile": [[f"--type={t}", "{}"] for t in ("sync", "net", "syscall", "sched", "cpu", "running", "offcpu")],
    "latency": [["{}"], ["--json", "{}"]],
    "locks": [["{}"], ["--stacks", "{}"], ["--json", "{}"]],
    "find": [["{}", "running >=1ns"], ["--stacks", "{}", "waiting"], ["{}", "waiting >=5ns"]],
    "threads": [["{}"], ["--json", "{}"]],
    "procs": [["{}"], ["--json", "{}"]],
    "sql": [["{}", "SELECT * FROM " + t] for t in ("events", "goroutines", "strings", "frames", "tasks", "regions", "logs")]
    + [["--json", "{}", "SELECT * FROM strings"], ["{}", "EXPLAIN SELECT * FROM strings"], ["{}", "SELECT * FROM nothing"]],
    "diff": [["{}", "{}"], ["--json", "{}", "{}"]],
    "symbolize": [["{}", "-o", "symbolized.trace"]],
    "convert": [["{}", "-o", "converted.trace"]],
    "merge": [["{}", "{}", "-o", "merged.trace"], ["--align=start", "{}", "{}", "-o", "merged.trace"]],
    "export": [["--to=chrome", "{}", "-o", "export.json"]],
    "assemble": [["{}", "-o", "assembled.trace"]],
    "load": [["--to=duckdb:{}.db", "{}"], ["--to=parquet:{}", "{}"]],
    "watch": [["--once", "{}", "-o", "{}"]],
    "import": [["{}", "-o", "imported.trace"]],
    "stuck": [["{}"], ["--json", "{}"]],
    "doctor": [["{}"], ["--json", "{}"]],
    "env": [["--shm=/{}"], ["--shm=/{}", "-o", "{}"]],
    "record": [["-o", "recorded.trace", "--", "{}"]],
    "view": [["--no-open", "--http={}", "{}"]],
}
MACHINE = {
    "print": [["--format=go", "{}"], ["--format=go-v1", "{}"]],
    "export": [["--to=chrome", "{}"], ["--to=otlp", "{}"], ["--to=otlp-metrics", "{}"]]
    + [["--to=csv", f"--table={t}", "{}"] for t in ("events", "goroutines", "strings", "frames", "tasks", "regions", "logs")]
    + [[f"--to={f}", "{}"] for f in ("speedscope", "folded")],
    "profile": [["--format=folded", "{}"], ["--format=speedscope", "{}"]],
    "sql": [["--csv", "{}", "SELECT * FROM strings"]],
    "env": [["--shm=/{}", "systemd"], ["--shm=/{}"]],
}  # fmt: skip


def uses(command):
    return USES.get(command, [["{}"]])


def filled(words, path):
    # If an option accepted the trace's name, the command would start to serve.
    path = os.fsencode(path)
    return [path if w == "{}" else os.fsencode(w).replace(b"{}", path) for w in words]


def own_of(command):
    return (b"\r", b"\x1b[K") if command == "record" else ()


# Tests


@test
def every_command_is_known_here():
    path = hostile_trace("everything-1.26", False)
    for command in set(commands()) - set(USES):
        assert in_pipe(command, path).code == 0, f"add a row to USES that shows how trail {command} displays a trace"
    assert not set(USES) - set(commands()), "no such command"


@test
def the_names_hold_all_that_steers():
    """And a search finds each."""
    for piece in [bytes([c]) for c in [*C0, 0x7F, *range(0x80, 0xA0)]] + [chr(c).encode() for c in [*range(0x80, 0xA0), *MARKS]]:
        assert piece in NAME
        assert piece in b"\n\t" or forbidden(b"a" + piece + b"b"), piece
    assert forbidden("plain: \u00b5\u2588\u00e9 \x1b[1mbold\x1b[0m\n".encode()) is None


@test
def traces_with_hostile_names_on_a_terminal():
    for command in commands():
        if command in ("view", "record"):
            continue
        for words in uses(command) + MACHINE.get(command, []):
            for path in some(traces(), 4) if "{}" in words else [EVIL]:
                check_terminal(command, *filled(words, path))


@test
def traces_with_hostile_names_in_a_pipe():
    """Text for people is the same everywhere: `trail summary | tee notes` is displayed, too."""
    for command in commands():
        if command in ("view", "record", "env"):
            continue
        for words in uses(command):
            for path in some(traces(BASES[:2]), 2):
                check_pipe(command, *filled(words, path))


@test
def names_are_escaped_and_not_lost():
    """Different names stay different: the control sequence of SHORT is shown, with readable bytes."""
    path = hostile_trace("everything-1.26", False, SHORT)
    out = in_pipe("goroutines", path).out
    right = rb"y\x1b[31m\x9b31mz\u009b\u202e\x7f\r\nFORGED\n\u2066\u061c\b"
    assert b"main.worker" + right in out, out
    assert b"main.worker" + right in in_pipe("print", "--stacks", path).out


def strings(value):
    """All strings in the JSON output."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return {text for v in value for text in strings(v)}
    return {value} if isinstance(value, str) else set()


@test
def json_says_the_same_name():
    path = hostile_trace("everything-1.26", False, SHORT)
    name = (b"main.worker" + SHORT).decode("utf-8", "replace")
    events = [json.loads(line) for line in in_pipe("print", "--format=jsonl", path).out.splitlines()]
    assert name in {f["func"] for e in events for f in e.get("stack", [])}, events
    assert name in strings(json.loads(in_pipe("goroutines", "--json", path).out))


@test
def goes_own_format_is_exact_in_a_pipe():
    path = hostile_trace("everything-1.26", False, SHORT)
    assert b"main.worker" + SHORT in in_pipe("print", "--format=go", path).out


@test
def files_with_hostile_names():
    for command in commands():
        if command in ("view", "record"):
            continue
        for path in (evil_trace(), EVIL + b".none"):
            for words in uses(command):
                check_terminal(command, *filled(words, path))
                if command != "env":
                    check_pipe(command, *filled(words, path))


@test
def outputs_with_hostile_names():
    """The message if the file cannot be written, and the one if it can."""
    path = hostile_trace("everything-1.26", False)
    for command, words in {
        "report": ["{}"], "export": ["--to=chrome", "{}"], "convert": ["{}"], "merge": ["{}", "{}"], "symbolize": ["{}"],
    }.items():  # fmt: skip
        for output in (SHORT + b".out", SHORT + b"/none/out"):
            check_terminal(command, *filled(words, path), b"-o", output)
            check_pipe(command, *filled(words, path), b"-o", output)


@test
def hostile_words_on_the_command_line():
    path = os.fsencode(hostile_trace("everything-1.26", False))
    check_terminal(SHORT)
    check_terminal(b"--" + SHORT)
    check_terminal(b"help", SHORT)
    for command in commands():
        for words in ([b"--" + SHORT], [b"-" + SHORT], [b"--help=" + SHORT]):
            check_terminal(command, *words)
            check_pipe(command, *words)
        for option, takes in options(command):
            words = [f"--{option}".encode() + (b"=" + SHORT if takes else b"")]
            if command == "view" and takes:
                words += [EVIL + b".none"]
            elif command in ("view", "record"):
                words += [SHORT + b".none"]
            else:
                words += [path]
            check_terminal(command, *words, own=own_of(command))


@test
def completion_on_a_terminal():
    for shell in ("bash", "zsh", "fish", SHORT):
        check_terminal("completion", shell)


@test
def the_viewer():
    evil_trace()
    served = lambda data: b"token=" in data
    check_terminal("view", "--no-open", EVIL, until=served)
    check_terminal("view", "--no-open", EVIL, EVIL + b".none")
    check_terminal("view", "--no-open", b"--http=" + SHORT, EVIL)
    check_terminal("view", "--no-open", "-", b"--save=" + SHORT + b"/none/x", EVIL)


def program(name, text):
    """A program for /bin/sh, or a binary of its own."""
    path = os.path.join(os.fsencode(WORK), name)
    with open(path, "wb") as f:
        f.write(text)
    os.chmod(path, 0o755)
    return path


# Threads with hostile names that wait for each other and for a file with such a name.
THREADS = b"""
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
lock = threading.Lock()
def work(name):
    libc.prctl(15, name, 0, 0, 0)
    for _ in range(20):
        with lock:
            time.sleep(0.002)
            open(sys.argv[1], "ab").close()
libc.prctl(15, %r, 0, 0, 0)
threads = [threading.Thread(target=work, args=(n,)) for n in (%r, b"\\x7f\\x0f\\x9b", b"a\\nFORGED\\nb")]
[t.start() for t in threads]
[t.join() for t in threads]
"""


@test
def programs_that_are_recorded():
    if not RECORDS:
        return
    own = own_of("record")
    script = program(b"threads.py", THREADS % (LEAST, LEAST))
    python = os.fsencode(sys.executable)
    link = os.path.join(os.fsencode(WORK), SHORT + b".program")
    os.symlink(python, link)
    for words in ([python, script, SHORT + b".data"], [link, script, SHORT + b".data", SHORT]):
        result = check_terminal("record", "--progress", *([] if words[0] == link else ["-o", "threads.trace"]), "--", *words, own=own)
        assert result.code == 0, result.err
    check_terminal("record", "-o", SHORT + b".trace", "--", *words, own=own)
    recorded = os.path.join(WORK, "threads.trace")
    for command in ("summary", "goroutines", "threads", "locks", "print", "info", "profile", "latency"):
        check_terminal(command, recorded)
        check_pipe(command, recorded)


@test
def programs_that_cannot_be_recorded():
    for name, text in (
        (SHORT + b".script", b"#!/none/" + LEAST + b"\nx\n"),
        (SHORT + b".elf", b"\x7fELF\x02\x01\x01" + bytes(60)),
        (SHORT + b".interpreted", b"#!/bin/sh\nexit 0\n"),
    ):
        path = program(name, text)
        for words in (["record", "-o", "none.trace", "--", path], ["doctor", path], ["doctor", "--json", path]):
            check_terminal(*words, own=own_of(words[0]))
            check_pipe(*words)
    for words in (["record", "--", SHORT + b".none"], ["record", "--", EVIL], ["record", b"--attach-shm=/none/" + SHORT]):
        check_terminal(*words, own=own_of("record"), until=lambda data: b"waiting at" in data)


@test
def binaries_are_not_for_terminals():
    path = hostile_trace("everything-1.26", False)
    for words in (
        ["convert", path, "-o", "-"],
        ["symbolize", path, "-o", "-"],
        ["merge", path, path, "-o", "-"],
        ["assemble", os.path.join(DATA, "why-1.26.txt"), "-o", "-"],
        ["export", "--to=perfetto", path],
        ["export", "--to=pprof", path],
        ["export", "--to=rowbinary", "--table=strings", path],
        ["profile", "--format=pprof", path],
        ["report", path, "-o", "-"],
    ):
        result = check_terminal(*words)
        assert result.code == 2 and not result.out and b"refusing to write" in result.err, f"{shown(words)}: {result.err}"
    # Accepted text is written with escapes.
    for words in (["record", "-o", "-", "--", "true"], ["convert", path, "-o", "/dev/stdout"]):
        check_terminal(*words, own=own_of(words[0]))


@test
def commands_to_be_copied():
    """A shell turns the argument back into the name in the trace, and into the file with that name."""
    path = os.path.join(os.fsencode(WORK), b"it's" + SHORT)
    shutil.copy(hostile_trace("why-1.26", False, SHORT + b"it's \\n"), path)
    lines = check_pipe("regions", path).out.splitlines()
    copied = [line.strip() for line in lines if line.startswith(b"  trail why --region=")]
    assert len(copied) == 1, lines
    words = subprocess.run(["bash", "-c", b"printf '%s\\0' " + copied[0]], capture_output=True, check=True).stdout.split(b"\0")[:-1]
    assert words[-1] == path, words
    assert words[2].startswith(b"--region=") and words[2].endswith(SHORT + b"it's \\n"), words
    assert in_pipe(*words[1:]).code == 0


@test
def characters_in_pieces():
    """A terminal shows complete characters, wherever the command's buffers end."""
    text = b"".join(b'String id=%d\n\tdata="%s"\n' % (i, ("\u00e9" * (i % 97) + "\u20ac").encode()) for i in range(1, 400))
    path = os.path.join(WORK, "pieces.txt")
    with open(os.path.join(DATA, "why-1.26.txt"), "rb") as f:
        base = f.read().split(b"Strings\n")[0]
    with open(path, "wb") as f:
        f.write(base + b"Strings\n" + text + b"EndOfGeneration\n")
    trace = os.path.join(WORK, "pieces.trace")
    assert in_pipe("assemble", path, "-o", trace).code == 0
    for words in (["print", "--format=wire", trace], ["info", "--full", "--json", trace]):
        a, b = on_terminal(*words), in_pipe(*words)
        assert a.out == b.out and not forbidden(a.out), words


def columns_of(line):
    """According to Unicode (EastAsianWidth, general category), independent of trail's own table."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


WIDE = "main." + "\u5f88\u957f\u7684\u540d\u5b57" * 12 + ".worker"


def trace_with_a_wide_name():
    with open(os.path.join(DATA, "times-1.26.txt"), encoding="utf-8") as file:
        text = file.read()
    assert '"main.worker"' in text
    path = os.path.join(WORK, "wide.trace")
    source = path + ".txt"
    with open(source, "w", encoding="utf-8") as file:
        file.write(text.replace('"main.worker"', f'"{WIDE}"'))
    assert in_pipe("assemble", source, "-o", path).code == 0
    return path


@test
def tables_fit_the_terminal():
    folder = os.path.join(ROOT, "examples/traces")
    traces = [os.path.join(folder, f"{name}.trace") for name in ("load-go1.23", "shop-c", "shop-go", "uv")]
    wide = trace_with_a_wide_name()
    for command in ("goroutines", "regions", "tasks", "threads", "procs", "diff"):
        for trace in [*traces, wide]:
            files = [trace, traces[0]] if command == "diff" else [trace]
            full = in_pipe(command, *files).out.decode().splitlines()
            for columns in (80, 120):
                lines = on_terminal(command, *files, columns=columns).out.decode().splitlines()
                for line in lines:
                    # Commands are meant to be copied; pictures and sentences have their own width.
                    if line not in full:
                        assert columns_of(line) <= columns, (command, trace, columns, line)
                    elif re.match(r"\s*[\d-]", line) and "  " in line:
                        assert columns_of(line) <= columns, (command, trace, columns, line)
    # Omitted columns are named, a name keeps both ends, and without a terminal the output is
    # complete.
    narrow = on_terminal("goroutines", wide, columns=80).out.decode()
    assert "also shows: " in narrow, narrow
    (line,) = [line for line in narrow.splitlines() if WIDE[-3:] in line and "worker" in line]
    assert "\u2026" in line and WIDE[:3] in line, line
    # The column about waiting is the most important.
    for command, trace in ("threads", traces[1]), ("goroutines", traces[1]), ("goroutines", traces[0]):
        head = on_terminal(command, trace, columns=80).out.decode().splitlines()[1]
        assert {"total", "waiting", "for"} <= set(head.split()), head
    # Of what is waited for, whole items; a number without the words before it would be another's.
    cut = [line for line in on_terminal("threads", traces[1], columns=80).out.decode().splitlines() if "\u2026" in line]
    assert cut and all(re.search(r" [\d.]+ .?s(, )?\u2026 ", line) for line in cut), cut
    # A wait without a figure is cut as any text.
    text = on_terminal("summary", traces[1], columns=40).out.decode()
    assert re.search(r" waiting +cond\S*\u2026\S*able$", text, re.M), text
    # Columns without values are left out first: in Go's traces a lock has no holds.
    head = on_terminal("locks", traces[2], columns=80).out.decode().splitlines()[0]
    assert {"p99", "max", "lock"} <= set(head.split()) and "held" not in head.split(), head
    # The metric is more important than percentiles, because rows differ by it.
    text = on_terminal("diff", traces[1], traces[2], columns=80).out.decode()
    assert re.search(r"^ +A .* figure +of +metric$", text, re.M) and "exec" in text, text
    assert WIDE in in_pipe("goroutines", wide).out.decode()
    one = in_pipe("goroutines", wide, env={**ENV, "COLUMNS": "80"}).out.decode()
    assert one == narrow, one


@test
def one_long_name_does_not_widen_the_other_rows():
    with open(os.path.join(ROOT, "tests", "data", "locks-1.26.txt"), encoding="utf-8") as file:
        text = file.read()
    rows = {}
    for name in ("two", "two" * 100):
        path = os.path.join(WORK, "long.trace")
        with open(path + ".txt", "w", encoding="utf-8") as file:
            file.write(text.replace('"two"', f'"{name}"'))
        subprocess.run([TRAIL, "assemble", path + ".txt", "-o", path], check=True)
        for command in "summary", "goroutines":
            lines = in_pipe(command, path).out.decode().splitlines()
            assert any(name in line for line in lines), lines
            rows[command, len(name) > 9] = sorted(line for line in lines if "two" not in line)
    for command in "summary", "goroutines":
        other = [line for line in rows[command, True] if line not in rows[command, False]]
        assert not other, (command, other)


@test
def where_columns_is_set_lines_are_wrapped_without_a_terminal():
    trace = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    for command in "summary", "locks", "goroutines", "why", "tasks":
        for columns in 60, 80:
            env = {**ENV, "COLUMNS": str(columns), "NO_COLOR": "1"}
            piped = in_pipe(command, trace, env=env).out.decode()
            shown = on_terminal(command, trace, columns=columns, env={**ENV, "NO_COLOR": "1"}).out.decode()
            assert piped.split() == shown.split(), (command, columns, piped, shown)
            for line in piped.splitlines():
                # Pictures keep their width.
                assert columns_of(line) <= columns or re.match(r" *trail |.*\|", line), (command, columns, line)
        # Output for programs is unchanged.
        wide, narrow = (in_pipe(command, "--json", trace, env=env).out for env in (ENV, {**ENV, "COLUMNS": "60"}))
        assert wide == narrow, (command, wide, narrow)


@test
def sentences_are_wrapped_between_words_and_commands_stay_whole():
    names = ("fiber", "load-go1.19", "shop-c", "shop-c-stuck", "shop-go", "shop-go-stuck")
    traces = [os.path.join(ROOT, "examples", "traces", f"{name}.trace") for name in names]
    env = {**ENV, "NO_COLOR": "1"}
    cases = [["summary"], ["locks"], ["latency"], ["gc"], ["mmu"], ["tasks"], ["regions"], ["goroutines"], ["info"],
             ["why", "--goroutine=1"], ["find", "block >=50us"], ["check"]]  # fmt: skip
    for (command, *words), trace in ((case, trace) for case in cases for trace in traces):
        args = [command, trace, *words]
        full = in_pipe(*args, env=env).out.decode()
        for columns in (80, 120):
            text = on_terminal(*args, columns=columns, env=env).out.decode()
            for line in text.splitlines():
                assert columns_of(line) <= columns or re.match(r" *trail ", line), (args, columns, line)
                # A number and its unit stay together.
                assert not re.match(r" *(ns|us|µs|ms|s|%|KiB|MiB)\b", line), (args, columns, line)
            if "also shows: " not in text and "\u2026" not in text:
                assert text.split() == full.split(), (args, columns)
        for suggestion in re.findall(r"^ *(trail .*)$", full, re.M):
            assert suggestion in text, (args, suggestion)
        # At some of these widths a line ends at each of the sentence's spaces.
        for columns in range(40, 110) if command == "gc" and trace == traces[1] else ():
            for line in on_terminal(*args, columns=columns, env=env).out.decode().splitlines():
                assert not re.match(r" *(ns|us|µs|ms|s|%|KiB|MiB)\b", line), (args, columns, line)
        # Colours take no room.
        for columns in (87, 115) if trace == traces[2] else ():
            for line in OWN_COLOURS.sub(b"", on_terminal(*args, columns=columns).out).decode().splitlines():
                assert columns_of(line) <= columns or re.match(r" *trail ", line), (args, columns, line)
        # JSON is not touched.
        if command != "check" and trace == traces[2]:
            assert on_terminal(*args, "--json", columns=80, env=env).out == in_pipe(*args, "--json", env=env).out, args


try:
    code = main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)
sys.exit(code)
