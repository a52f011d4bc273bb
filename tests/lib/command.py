"""Runs the command in a test, and makes the traces that it reads.

For scripts called as SCRIPT TRAIL SOURCE_ROOT. The command runs in the locale C, in UTC and without NO_COLOR, whatever
the environment of the test. WORK is a folder of the script's own (work.py).
"""

import json
import os
import subprocess
import sys

import sample
import work
from assembler import Assembler

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DATA = os.path.join(ROOT, "tests", "data")
EXAMPLES = [os.path.join(ROOT, "examples", "traces", f"load-go1.{n}.trace") for n in (19, 21, 22, 23)]
# One of v1 and one of v2, for rules that do not depend on the reader; all in a release.
FEW_EXAMPLES = EXAMPLES if sample.ALL else EXAMPLES[1::2]
# Traces of other programs, which are not part of the tree.
SHARED = os.environ.get("TRAIL_TRACES") or os.path.join(ROOT, "..", "shared", "traces")
ENV = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
ENV.pop("NO_COLOR", None)
ENV.pop("COLUMNS", None)
SCRIPT = os.path.splitext(os.path.basename(sys.argv[0]))[0]
WORK = work.folder(SCRIPT)
ASSEMBLER = Assembler(os.environ["TRAIL_LIBRARY"]) if "TRAIL_LIBRARY" in os.environ else None


def run(*args, stdin=None, **more):
    """The exit status, the output as bytes, the messages as text. `stdin` is bytes; `more` is for subprocess.run."""
    p = subprocess.run([TRAIL, *args], input=stdin, capture_output=True, timeout=240, env=ENV, **more)
    return p.returncode, p.stdout, p.stderr.decode("utf-8")


def run_text(*args, **more):
    """The exit status, the output and the messages, which must be UTF-8."""
    code, out, err = run(*args, **more)
    return code, out.decode("utf-8"), err


def good(*args, code=0, **more):
    """The output, as bytes, of a command that must exit with status `code`."""
    status, out, err = run(*args, **more)
    assert status == code, f"trail {' '.join(args)}: exit {status}: {err}"
    return out


def good_text(*args, **more):
    return good(*args, **more).decode("utf-8")


def answer(*args, **more):
    return json.loads(good(*args, "--json", **more))


def content(path):
    with open(path, "rb") as f:
        return f.read()


def written(name, data):
    """The path of a file of this name and content."""
    path = os.path.join(WORK, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def assembled(name, text):
    """The path of a trace made from a text like those in tests/data, as str or bytes."""
    path = os.path.join(WORK, name + ".trace")
    text = text if isinstance(text, bytes) else text.encode()
    if ASSEMBLER:
        with open(path, "wb") as f:
            f.write(ASSEMBLER.assemble(text))
    else:
        good("assemble", "-", "-o", path, stdin=text)
    return path


def text_of(name):
    """The text of tests/data/NAME.txt."""
    with open(os.path.join(DATA, name + ".txt"), encoding="utf-8") as f:
        return f.read()


def trace(name):
    """The path of the trace of tests/data/NAME.txt."""
    path = os.path.join(WORK, name + ".trace")
    return path if os.path.exists(path) else assembled(name, text_of(name))


def equal(ours, right, what=""):
    assert ours == right, f"{what} {ours!r}, not {right!r}".lstrip()
