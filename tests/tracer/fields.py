#!/usr/bin/env python3
"""Typed fields of logs: what Go's tools and trail read, and `trail sql` as columns. TAP.

usage: fields.py TRAIL FIELDS_HOST
"""

import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_of, go_prints, go_tools
from tap import finish, report, skip

TRAIL, HOST = (os.path.abspath(a) for a in sys.argv[1:3])
FORMATS = [11, 19, 21, 22, 23, 26]
MAX = 1024

random.seed(1)


def any_double():
    return struct.unpack("d", struct.pack("Q", random.getrandbits(64)))[0]


# One log each: (name, value) of its fields.
LOGS = [
    [("status", 200), ("ms", 1.5), ("path", "/index.html")],
    [("least", -(2**63)), ("most", 2**63 - 1), ("zero", 0)],
    [("a", 0.1), ("b", 1.0), ("c", -0.0), ("d", 1e300), ("e", 5e-324), ("f", 123456789.0), ("g", 1 / 3)],
    [("inf", math.inf), ("minus", -math.inf), ("nan", math.nan)],
    [("empty", ""), ("quoted", 'a "b" \\ c'), ("lines", "one\ntwo\tthree\r"), ("slash", "\\n")],
    [("number", "200"), ("word", "true"), ("bytes", "\x01\x7f")],
    # A text that looks like a field is a single text.
    [("text", 'x" status=5 y="'), ("status", 6)],
    [("twice", 1), ("twice", 2)],
    [("größe", "Größe 5 µs")],
    [(f"n{i}", random.randint(-(2**63), 2**63 - 1)) for i in range(20)],
    *[[(f"d{i}", any_double()) for i in range(8)] for _ in range(20)],
]


def hexadecimal(text):
    return text.encode().hex() or "-"


def line_of(name, value):
    if isinstance(value, int):
        return f"i {hexadecimal(name)} {value}"
    if isinstance(value, float):
        return f"d {hexadecimal(name)} {struct.unpack('Q', struct.pack('d', value))[0]:x}"
    return f"t {hexadecimal(name)} {hexadecimal(value)}"


def write(format, path, logs, env=None):
    lines = [line for log in logs for line in [*(line_of(*field) for field in log), "log"]]
    env = {**os.environ, **(env or {})}
    done = subprocess.run([HOST, str(format), path], input="\n".join(lines) + "\n", capture_output=True, text=True, env=env)
    report(done.returncode == 0, f"1.{format}: recorded", done.stderr)


def messages(path):
    """By category, as trail reads them."""
    out = subprocess.run([TRAIL, "print", "--format=jsonl", path], capture_output=True, text=True).stdout
    logs = [event for event in map(json.loads, out.splitlines()) if event["kind"] == "Log"]
    return {c: [log["message"] for log in logs if log["category"] == c] for c in ("fields", "macro")}


def unquoted(text):
    names = {"n": "\n", "r": "\r", "t": "\t"}
    return re.sub(
        r"\\(x(..)|.)", lambda m: chr(int(m[2], 16)) if m[2] else names.get(m[1], m[1]), text[1:-1], flags=re.S
    )


def parsed(message):
    """The fields of a message, with their types, by the rules of the header."""
    fields = []
    for name, value in re.findall(r'([\w.-]+)=("(?:[^"\\]|\\.)*"|[^ ]*)', message):
        if value.startswith('"'):
            fields.append((name, unquoted(value)))
        elif re.fullmatch(r"-?\d+", value):
            fields.append((name, int(value)))
        else:
            fields.append((name, float(value)))
    return fields


def named(log):
    return [("".join(c if re.match(r"[\w.-]", c, re.A) else "_" * len(c.encode()) for c in n), v) for n, v in log]


def same(a, b):
    """NaN equals NaN, and -0.0 differs from 0.0."""
    return repr(a) == repr(b)


def sql(path, query):
    out = subprocess.run([TRAIL, "sql", "--json", path, query], capture_output=True, text=True)
    to_int = lambda text: -0.0 if text == "-0" else int(text)  # noqa: E731
    return json.loads(out.stdout, parse_int=to_int) if out.returncode == 0 else None


def right_columns(value):
    """int_field, double_field and text_field of a value; the text of a double is not compared."""
    if isinstance(value, int):
        return [value, float(value), str(value)]
    if isinstance(value, float):
        return [None, value, ...]
    return [None, None, re.sub(r"[\x01\x7f]", lambda m: f"\\x{ord(m[0]):02x}", value)]


def columns_of(path, number, log):
    """The fields of a log, each as the three types."""
    typed = [(kind, name) for name, _ in log for kind in ("int", "double", "text")]
    select = ", ".join(f"{kind}_field(message, '{name}') as c{i}" for i, (kind, name) in enumerate(typed))
    where = f"from logs where category = 'fields' order by time_ns limit 1 offset {number}"
    row = sql(path, f"select {select} {where}")[0]
    to = {"int": int, "double": float, "text": str}
    return [None if row[f"c{i}"] is None else to[kind](row[f"c{i}"]) for i, (kind, _) in enumerate(typed)]


def wrong_columns(path):
    for number, log in enumerate(map(named, LOGS)):
        log = list({name: value for name, value in reversed(log)}.items())  # of two fields with one name, the first counts
        right = [value for _, field in log for value in right_columns(field)]
        for ours, value in zip(columns_of(path, number, log), right):
            if value is not ... and not same(ours, value):
                yield f"log {number}: {ours} is {value}"


with tempfile.TemporaryDirectory() as folder:
    for format in FORMATS:
        path = os.path.join(folder, f"{format}.trace")
        write(format, path, LOGS)
        found = messages(path)
        report(
            same([parsed(m) for m in found["fields"]], [named(log) for log in LOGS]),
            f"1.{format}: trail reads what was logged",
            *(f"{parsed(m)} is {log}" for m, log in zip(found["fields"], map(named, LOGS)) if not same(parsed(m), log)),
        )
        report(found["macro"] == ['a=-1 b=0.1 c=""'], f"1.{format}: the macro", str(found["macro"]))
        go_tools(f"1.{format}", format, path)
    # As Go shows them.
    go = go_of("1.21")
    if go:
        out = go_prints(go, "-d", os.path.join(folder, "21.trace"))[1]
        shown = re.findall(r" UserLog .* message=(status=200 .*)$", out, re.M)
        report(shown == ['status=200 ms=1.5 path="/index.html"'], "Go 1.21 shows the text", str(shown))
    else:
        skip("Go 1.21 shows the text", "no Go 1.21")

    # Texts are cut, other fields left out.
    long = [
        [("text", "x" * 5000), ("n", 5)],
        [("n", 5), ("text", '"' * 5000)],
        [("n" * 2000, 5), ("m", 6)],
        [("text", "x" * (MAX - len('text=""') - len(" n=12"))), ("n", 12)],
        [("text", "x" * (MAX - len('text=""') - len(" n=12"))), ("n", 123), ("m", 4)],
    ]
    for format in FORMATS:
        path = os.path.join(folder, f"long-{format}.trace")
        write(format, path, long)
        found = messages(path)["fields"]
        room = MAX - len('text=""')
        right = [
            [("text", "x" * room)],
            [("n", 5), ("text", '"' * ((room - len("n=5 ")) // 2))],
            [("m", 6)],
            [("text", "x" * (room - len(" n=12"))), ("n", 12)],
            [("text", "x" * (room - len(" n=12"))), ("m", 4)],
        ]
        report([parsed(m) for m in found] == right, f"1.{format}: what does not fit", *found)
        if format in (21, 23):
            go_tools(f"1.{format}, long", format, path)

    # The decimal point is a point even where the locale has another one, also of several bytes.
    made = subprocess.run(["localedef", "-i", "ps_AF", "-f", "UTF-8", f"{folder}/ps_AF.UTF-8"], capture_output=True)
    if os.path.isdir(f"{folder}/ps_AF.UTF-8"):
        path = os.path.join(folder, "locale.trace")
        write(23, path, LOGS, {"LOCPATH": folder, "LC_ALL": "ps_AF.UTF-8"})
        right = messages(os.path.join(folder, "23.trace"))
        report(messages(path) == right, "in a language with another point", str(messages(path)))
    else:
        skip("in a language with another point", "no localedef")

    # The categories are those of the environment.
    path = os.path.join(folder, "categories.trace")
    write(23, path, LOGS, {"TRAIL_CATEGORIES": "mac*"})
    found = messages(path)
    report(not found["fields"] and len(found["macro"]) == 1, "TRAIL_CATEGORIES has those that are on", str(found))

    path = os.path.join(folder, "23.trace")
    if sql(path, "select 1") is None:
        skip("SQL reads the fields as columns", "no DuckDB")
    else:
        bad = list(wrong_columns(path))
        report(not bad, "SQL reads the fields as columns", *bad)
sys.exit(finish())
