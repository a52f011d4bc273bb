#!/usr/bin/env python3
"""The output shown in the documents matches the output of the commands. TAP.

usage: shown.py TRAIL SOURCE_ROOT [--write]

In a document's code, a line "$ trail ..." is followed by its output, up to the next "$" or the end
of the code. It may be a pipeline, or several joined by "&&": then it runs where all their programs are installed. A last line of dots stands for omitted lines; dots alone become the first ten lines.
Commands on traces in examples/traces are run there and compared; --write replaces the output with
the current one.

After such a piece of code a line "Answer: ..." may follow: text in backquotes there must occur in
the first ten lines of the output.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_of  # noqa: E402

TRAIL, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WRITE = "--write" in sys.argv[3:]
FOLDER = ROOT / "examples/traces"
GO = os.path.dirname(go_of("1.27") or "")
PATH = os.pathsep.join(filter(None, [os.path.dirname(TRAIL), os.environ.get("PATH"), GO]))
ENV = {**os.environ, "PATH": PATH, "GOTOOLCHAIN": "local", "TZ": "UTC", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
JOINS = {"|", "&&"}
DOTS = re.compile(r"^\s*\.\.\.$")
ANSWER_LINES = 10


def is_run(line):
    """Whether all its traces exist."""
    words = shlex.split(line)
    traces = [word for word in words if word.endswith(".trace")]
    programs = [after for word, after in zip(words, words[1:]) if word in JOINS]
    known = all((FOLDER / name).exists() for name in traces) and all(shutil.which(p, path=PATH) for p in programs)
    return line.startswith("$ trail ") and bool(traces) and known


def run(line):
    words = shlex.split(line)[2:]
    options = {"env": ENV, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "timeout": 240}
    if not JOINS & set(words):
        return subprocess.run([TRAIL, *words], cwd=FOLDER, **options)
    with tempfile.TemporaryDirectory() as folder:  # which the commands may write to
        for trace in FOLDER.glob("*.trace"):
            os.symlink(trace, os.path.join(folder, trace.name))
        return subprocess.run(["bash", "-c", line[2:]], cwd=folder, **options)


def output(line):
    done = run(line)
    return [text.rstrip() for text in done.stdout.decode().split("\n")[:-1]]


def blocks(lines):
    """(begin, end, indent) of each piece of code in a document: lines within fences, or indented by four."""
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].startswith("```")), len(lines))
            yield at + 1, end, ""
            at = end + 1
        elif lines[at].startswith("    ") and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            while not lines[end - 1].strip():
                end -= 1
            yield at, end, "    "
            at = end
        else:
            at += 1


def commands(lines, begin, end, indent):
    """Yields (first line, end) for each command of a block, with its output."""
    starts = [i for i in range(begin, end) if lines[i].startswith(indent + "$ ")]
    for i, start in enumerate(starts):
        stop = starts[i + 1] if i + 1 < len(starts) else end
        while stop > start + 1 and not lines[stop - 1].strip():
            stop -= 1
        yield start, stop


def answers(lines, at):
    """The texts that the line "Answer: ..." after the code requires."""
    while at < len(lines) and not lines[at].strip():
        at += 1
    text = ""
    while at < len(lines) and lines[at].strip() and (text or lines[at].startswith("Answer: ")):
        text += lines[at] + " "
        at += 1
    return re.findall(r"`([^`]+)`", text)


def compare(shown, printed):
    if shown and DOTS.match(shown[-1]):
        shown = shown[:-1]
        printed = printed[: len(shown)]
    for i, (a, b) in enumerate(zip(shown + [None] * len(printed), printed + [None] * len(shown))):
        if a is None and b is None:
            return []
        if a != b:
            return [f"line {i + 1} is shown as {a!r}, and is {b!r}"]
    return []


def anew(shown, printed, indent):
    lines = printed
    count = len(shown) - 1 if len(shown) > 1 else ANSWER_LINES
    if shown and DOTS.match(shown[-1]) and count < len(printed):
        lines = printed[:count] + ["..."]
    return [(indent + line).rstrip() for line in lines]


def check(document):
    """The number of commands tried, and the differences."""
    lines = document.read_text().split("\n")
    tried, problems, edits = 0, [], []
    for begin, end, indent in blocks(lines):
        printed = []
        for start, stop in commands(lines, begin, end, indent):
            line = lines[start][len(indent) :]
            if not is_run(line):
                continue
            tried += 1
            shown = [text[len(indent) :].rstrip() for text in lines[start + 1 : stop]]
            printed = output(line)
            problems += [f"line {start + 1}, {line}: {text}" for text in compare(shown, printed)]
            edits.append((start + 1, stop, anew(shown, printed, indent)))
        fence = 1 if end < len(lines) and lines[end].startswith("```") else 0
        head = "\n".join(printed[:ANSWER_LINES])
        for word in answers(lines, end + fence) if printed else []:
            if word not in head:
                problems.append(f"line {end}: {word!r} is not in the first {ANSWER_LINES} lines")
    if WRITE:
        for start, stop, text in reversed(edits):
            lines[start:stop] = text
        document.write_text("\n".join(lines))
    return tried, problems


def main():
    documents = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
    results = [(document, *check(document)) for document in documents]
    results = [result for result in results if result[1]]
    print(f"1..{len(results)}")
    for i, (document, tried, problems) in enumerate(results, 1):
        print(f"{'not ' if problems else ''}ok {i} - {tried} outputs of {document.relative_to(ROOT)}")
        for problem in problems:
            print(f"# {problem}")
    return any(problems for _, _, problems in results)


sys.exit(main())
