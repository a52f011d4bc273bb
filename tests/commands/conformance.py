#!/usr/bin/env python3
"""What trail prints, compared with what Go's own tools print. TAP.

usage: conformance.py TRAIL SOURCE_ROOT

The traces and the answers are in the folder that TRAIL_TRACES names, or in ../shared/traces next to the
source: manifest.jsonl has one line per file with sha256 of the outputs of `go tool trace`, expected/ has
the counts of Go's reader. Without the folder everything is skipped.

Where Go's order of equal times is random (`exact` is false), other things are compared:
the lines sorted, one of several known outputs, or the numbers of bytes, lines and events; and that the
events of each goroutine come in the order of the file's own, older view of them.
"""

import collections
import gzip
import hashlib
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import finish, report

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TRACES = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
FORMATS = {"parsed": "go", "wire": "wire", "v1": "go-v1"}



def run(*args, stdin=None):
    p = subprocess.run([TRAIL, *args], input=stdin, capture_output=True, env=ENV)
    return p.returncode, p.stdout, p.stderr.decode("utf-8", "replace")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def sorted_sha256(data):
    return sha256(b"".join(sorted(data.splitlines(keepends=True))))


def same_output(kind, expected, out):
    """How the output agrees with Go's ("" if it does not), and how it differs."""
    if sha256(out) == expected["sha256"]:
        return "byte for byte", ""
    if sha256(out) in expected.get("sha256_any", []):
        return "one of the outputs that Go draws", ""
    inexact = expected.get("exact", True) is False
    if inexact and expected.get("sorted_sha256") == sorted_sha256(out):
        return "the same lines", ""
    if inexact and kind == "parsed":
        lines, events = out.count(b"\n"), len(re.findall(rb"^M=", out, re.M))
        if (len(out), lines) == (expected["bytes"], expected["lines"]):
            return "as many bytes and lines", ""
        if events == expected["events"]:
            return "as many events", ""
        return (
            "",
            f"{events} events in {lines} lines, Go has {expected['events']} in {expected['lines']}",
        )
    return (
        "",
        f"sha256 {sha256(out)}, {len(out)} bytes; Go's is {expected['sha256']}, {expected['bytes']} bytes",
    )


def check_output(entry, kind):
    expected, path = entry[kind], os.path.join(TRACES, entry["file"])
    name = f"{entry['file']} {kind}"
    code, out, err = run("print", "--format=" + FORMATS[kind], path)
    if kind == "wire" and expected["rc"] != 0 and "invalid event type: 1" in expected["error"]:
        check_alloc_free(name, path, entry, code, out, err)
        return
    how, why = same_output(kind, expected, out)
    report(how != "", f"{name}: {how or 'other than Go'}", why, err.strip()[:300])
    if expected["rc"] == 0:
        report(code == 0, f"{name}: accepted", f"exit {code}", err.strip()[:300])
    else:
        report(code == 1, f"{name}: rejected", f"exit {code}", err.strip()[:300])
        report(
            expected["error"] in err,
            f"{name}: the error says what Go's says",
            expected["error"],
            err.strip(),
        )


def check_alloc_free(name, path, entry, code, out, err):
    """Go's wire printer stops at AllocFree events; ours prints the complete file, which assembles back."""
    report(code == 0, f"{name}: printed whole", err.strip()[:300])
    code, again, err = run("assemble", "--version=" + entry["header"], "-", "-o", "-", stdin=out)
    code, twice, err = run("print", "--format=wire", "-", stdin=again)
    report(twice == out, f"{name}: survives assembling", err.strip()[:300])


def by_goroutine(text, pattern):
    """Maps the group `g` of each match to its groups `what`."""
    sequences = collections.defaultdict(list)
    for m in re.finditer(pattern, text, re.M):
        sequences[m["g"]].append(m["what"])
    return sequences


def check_goroutines(entry):
    """A converted v1 trace: each goroutine blocks, stops and ends equally often, and in the same order, as in the
    file's own view, which other tests compare with Go's."""
    path = os.path.join(TRACES, entry["file"])
    v1 = run("print", "--format=go-v1", path)[1].decode("utf-8", "replace")
    go = run("print", "--format=go", path)[1].decode("utf-8", "replace")
    names = {
        "GoBlock": "Waiting", "GoBlockSend": "Waiting", "GoBlockRecv": "Waiting", "GoBlockSelect": "Waiting",
        "GoBlockSync": "Waiting", "GoBlockCond": "Waiting", "GoBlockNet": "Waiting", "GoBlockGC": "Waiting",
        "GoSleep": "Waiting", "GoStop": "Waiting", "GoSched": "Runnable", "GoPreempt": "Runnable",
        "GoEnd": "NotExist",
    }  # fmt: skip
    ours = by_goroutine(
        go, r"^M=\S+ P=\S+ G=\d+ StateTransition Time=\S+ GoID=(?P<g>\d+) Running->(?P<what>Waiting|Runnable|NotExist) "
    )
    theirs = by_goroutine(v1, rf"^\d+ (?P<what>{'|'.join(names)}) p=\S+ g=(?P<g>\d+) ")
    theirs = {g: [names[name] for name in sequence] for g, sequence in theirs.items()}
    wrong = [g for g in set(ours) | set(theirs) if ours.get(g) != theirs.get(g)]
    report(
        not wrong,
        f"{entry['file']} parsed: every goroutine's sequence is that of v1",
        f"goroutines {wrong[:10]}",
    )


def check_text(name):
    """A text of Go's tests assembles to Go's binary, and gets the verdict that Go's test expects."""
    base = os.path.join(TRACES, "go-v2-text", name[: -len(".test")])
    args = ["assemble", base + ".test", "-o", "-"]
    code, made, err = run(*args)
    report(code == 0, f"{name}: assembles", err.strip()[:300])
    if not os.path.exists(base + ".bin"):
        return
    with open(base + ".bin", "rb") as f:
        report(made == f.read(), f"{name}: assembles to Go's bytes")
    with open(base + ".expect", encoding="utf-8") as f:
        verdict, _, pattern = f.read().strip().partition(" ")
    code, out, err = run("check", "--strict", "-", stdin=made)
    if verdict == "SUCCESS":
        report(code == 0, f"{name}: good", out.decode("utf-8", "replace")[:300])
    else:
        text = out.decode("utf-8", "replace")
        found = re.search(json.loads(pattern), text) is not None
        report(
            code == 1 and found,
            f"{name}: bad, with Go's message",
            f"expected {pattern}",
            text[:300],
        )


def check_counts(entry):
    """info --full counts as many events of each kind as Go's reader delivers."""
    name = os.path.basename(entry["file"]).removesuffix(".trace").removesuffix(".bin")
    summary = os.path.join(TRACES, "expected", name + ".summary.json.gz")
    if not os.path.exists(summary):
        return
    with gzip.open(summary) as f:
        expected = {kind: n for kind, n in json.load(f)["kinds"].items() if n}
    code, out, err = run("info", "--full", "--json", os.path.join(TRACES, entry["file"]))
    counts = json.loads(out)["events_by_kind"] if code == 0 else {}
    report(
        counts == expected,
        f"{entry['file']}: events by kind",
        f"{counts}, Go has {expected}",
        err.strip()[:300],
    )


def check_verdict(entry):
    """check gives the same verdict as print."""
    path = os.path.join(TRACES, entry["file"])
    printed, checked = run("print", "--format=go", path), run("check", "--strict", path)
    ok = printed[0] == checked[0]
    report(ok, f"{entry['file']}: check and print agree", f"exit {checked[0]} and {printed[0]}")


def main():
    manifest = os.path.join(TRACES, "manifest.jsonl")
    if not os.path.exists(manifest):
        print("1..0 # SKIP no traces with known answers")
        return 0
    with open(manifest, encoding="utf-8") as f:
        entries = [json.loads(line) for line in f]
    for entry in entries:
        for kind in FORMATS:
            if kind in entry:
                check_output(entry, kind)
        if "v1" in entry and "parsed" in entry and entry["v1"]["rc"] == entry["parsed"]["rc"] == 0:
            check_goroutines(entry)
        check_verdict(entry)
        check_counts(entry)
    texts = os.path.join(TRACES, "go-v2-text")
    for name in sorted(os.listdir(texts)):
        if name.endswith(".test"):
            check_text(name)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
