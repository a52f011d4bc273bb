"""Recordings and `trail stuck` name generated code as listed in /tmp/perf-PID.map: see generated.c.
TAP.

usage: generated.py TRAIL libtrail-preload.so PROGRAM
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import tap
import work
from tap import Skip, test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = work.folder("generated")
TRACE = os.path.join(WORK, "x.trace")


class NotHere(Exception):
    pass


def frames(inner, outer):
    """Returns function, file and line of each frame of the wait."""
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


def in_read(pid):
    return states.text_of(f"/proc/{pid}/syscall").startswith("0 0x0 ")  # read(0, ...)


@contextlib.contextmanager
def waiting(*args):
    """Yields the PID of a program that waits to read from stdin, and the path of its list; removes both afterwards."""
    with subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=WORK) as process:
        path = f"/tmp/perf-{process.pid}.map"
        try:
            states.until(lambda: process.poll() is not None or in_read(process.pid))
            assert process.poll() is None, process.returncode
            yield process.pid, path
        finally:
            process.kill()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)


def stuck(pid):
    """Returns the process's first thread as shown by `trail stuck`."""
    done = subprocess.run([TRAIL, "stuck", "--json", "--limit=100s", str(pid)], capture_output=True, text=True, timeout=120)
    if "ptrace_scope" in done.stderr:
        raise Skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    (process,) = json.loads(done.stdout)["processes"]
    assert process["unstopped"] == 0, process
    return next(t for t in process["threads"] if t["tid"] == pid)


def functions(thread):
    return [f["function"] for f in thread["stack"]]


@test
def stuck_names_them_by_the_list():
    with waiting(PROGRAM, "one", "two@words", "stay") as (pid, _):
        names = functions(stuck(pid))
        at = names.index("pause_it")
        assert names[at : at + 5] == ["pause_it", "one", "between", "two@words", "main"], names


@test
def stuck_names_what_was_listed_meanwhile():
    with waiting(PROGRAM, "one", "two", "none") as (pid, path):
        names = functions(stuck(pid))
        assert names[-1] == "pause_it", names
        with open(f"/proc/{pid}/maps") as maps:
            code = [line.split("-")[0] for line in maps if " r-xp 00000000 00:00 0 " in line and "[" not in line]
        assert len(code) >= 1, code
        with open(path, "w") as file:
            file.writelines(f"{start} 2000 late\n" for start in code)
        names = functions(stuck(pid))
        assert names[names.index("pause_it") :][1:4] == ["late", "between", "late"], names


@test
def stuck_reads_only_a_regular_file_of_the_program_s_user():
    with waiting(PROGRAM, "one", "two", "stay") as (pid, path):
        text = open(path).read()
        other = os.path.join(WORK, "other.map")
        with open(other, "w") as file:
            file.write(text)
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink(other, path)):
            os.unlink(path) if not os.path.isdir(path) else os.rmdir(path)
            make(path)
            names = functions(stuck(pid))
            assert names[-1] == "pause_it", (make, names)
        os.unlink(path)


@test
def stuck_survives_a_list_that_is_not_one():
    with waiting(PROGRAM, "one", "two", "stay") as (pid, path):
        lines = open(path).read()
        with open(path, "wb") as file:
            file.write(b"\xff" * 200000 + b"\n" + b"1 " * 100000 + b"\n0 ffffffffffffffff \x1b[2J\n" + lines.encode())
            file.write(b"\0" * 1000)
        names = functions(stuck(pid))
        at = names.index("pause_it")
        assert names[at : at + 5] == ["pause_it", "one", "between", "two", "main"], names
        text = subprocess.run([TRAIL, "stuck", str(pid)], check=True, capture_output=True, text=True).stdout
        assert "\x1b" not in text, text


NODE = """
function innermost() { require('fs').readSync(0, Buffer.alloc(1)); return 1; }
function middle() { return innermost() + 1; }
function outermost() { return middle() + 1; }
outermost();
"""


@test
def stuck_names_the_functions_of_nodejs():
    if not shutil.which("node"):
        raise Skip("no node; install nodejs")
    script = os.path.join(WORK, "app.js")
    with open(script, "w") as file:
        file.write(NODE)
    with waiting("node", "--perf-basic-prof", "--interpreted-frames-native-stack", script) as (pid, path):
        if not os.path.exists(path):
            raise Skip("this node writes no list; install one that has --perf-basic-prof")
        thread = stuck(pid)
        names = functions(thread)
        at = names.index("innermost")
        assert names[at : at + 3] == ["innermost", "middle", "outermost"], names
        # The line is the one where the function begins.
        assert [(f["file"], f["line"]) for f in thread["stack"][at : at + 3]] == [(script, n) for n in (2, 3, 4)], thread
        assert "main" in names or "_start" in names, names


try:
    frames("one", "two")
except NotHere:
    print("1..0 # SKIP no file can be made in /tmp, or no code be generated")
    sys.exit(0)
sys.exit(tap.main())
