"""Generated code has the names that the program lists in /tmp/perf-PID.map: see generated.c. TAP.

usage: generated.py TRAIL libtrail-preload.so PROGRAM
"""

import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = tempfile.TemporaryDirectory(prefix="trail-generated-")
TRACE = os.path.join(WORK.name, "x.trace")


class NotHere(Exception):
    pass


def frames(inner, outer):
    """Function, file and line of each frame of the wait."""
    done = subprocess.run([TRAIL, "record", "-q", "-o", TRACE, "--", PROGRAM, inner, outer],
                          timeout=120, capture_output=True, text=True)
    if done.returncode == 77:
        raise NotHere
    os.unlink(done.stdout.strip())
    assert done.returncode == 0, done.stderr
    text = subprocess.run([TRAIL, "print", "--format=jsonl", TRACE], check=True, capture_output=True, text=True).stdout
    events = [json.loads(line) for line in text.splitlines()]
    waits = [e for e in events if e.get("reason") == "sleep" and e.get("to") == "Waiting"]
    assert len(waits) == 3, text
    return [(f["func"], f.get("file", ""), f.get("line", 0)) for f in waits[0]["stack"]]


def names(stack):
    return [name for name, _, _ in stack[:5]]


@test
def names_are_those_of_the_list():
    stack = frames("one", "two words")
    assert names(stack) == ["pause_it", "one", "between", "two words", "main"], stack


@test
def of_nodejs_with_their_places():
    stack = frames("JS:~pauses /srv/app.js:12:5", "JS:* file:///srv/main.mjs:3:1")
    assert stack[1] == ("pauses", "/srv/app.js", 12), stack
    assert stack[3] == ("(anonymous)", "file:///srv/main.mjs", 3), stack


@test
def of_python_with_their_files():
    stack = frames("py::pauses:/srv/app.py", "py::<module>:/srv/main.py")
    assert stack[1][:2] == ("pauses", "/srv/app.py"), stack
    assert stack[3][:2] == ("<module>", "/srv/main.py"), stack


try:
    frames("one", "two")
except NotHere:
    print("1..0 # SKIP no file can be made in /tmp, or no code be generated")
    sys.exit(0)
sys.exit(tap.main())
