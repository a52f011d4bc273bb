#!/usr/bin/env python3
"""Every command that a screen suggests runs in a shell: it succeeds, prints something and reports no problem.

usage: suggestions.py TRAIL SOURCE_ROOT
"""

import itertools
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ROOT, TRAIL, WORK, assembled, good_text, trace  # noqa: E402
from tap import main, test

FOLDER = os.path.join(ROOT, "examples", "traces")
EXAMPLES = [os.path.join(FOLDER, name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".trace")]
BY_HAND = ["times-1.26", "why-1.26", "everything-1.26", "everything-1.21", "everything-1.22", "everything-1.23"]
SCREENS = [["summary"], ["locks"], ["latency"], ["gc"], ["mmu"], ["tasks"], ["regions"], ["goroutines"], ["info"],
           ["procs"], ["threads"], ["profile"], ["find", "block >=50us"], ["find", "running"]]  # fmt: skip
# A suggestion ends its line, or its cell of a table.
SUGGESTION = re.compile(r"(?:^ *|[:;,] |  )(trail [a-z]+ .*?)(?:  +|$)", re.M)
MOST = 6  # of the same form from one screen: only their times differ


def suggested(screens, path):
    """Yields the suggestions on the screens, at most MOST that differ only in numbers."""
    for command, *words in screens:
        alike = {}
        p = subprocess.run([TRAIL, command, path, *words], capture_output=True, text=True, timeout=120)
        for suggestion in SUGGESTION.findall(p.stdout):
            form = re.sub(r"\d+", "0", suggestion)
            alike[form] = alike.get(form, 0) + 1
            if alike[form] <= MOST:
                yield command, suggestion


def run_suggestions(paths, least):
    count = 0
    env = {**os.environ, "PATH": os.path.dirname(TRAIL) + os.pathsep + os.environ["PATH"]}
    for path in paths:
        for command, suggestion in suggested(SCREENS, path):
            p = subprocess.run(["sh", "-c", suggestion], capture_output=True, text=True, env=env, timeout=120)
            assert p.returncode == 0 and p.stdout.strip() and not p.stderr, (path, command, suggestion, p.stderr)
            count += 1
    assert count >= least, count


@test
def of_recorded_traces():
    run_suggestions(EXAMPLES, 300)


def run_suggestion(suggestion):
    env = {**os.environ, "PATH": os.path.dirname(TRAIL) + os.pathsep + os.environ["PATH"]}
    p = subprocess.run(["sh", "-c", suggestion], capture_output=True, text=True, env=env, timeout=120)
    assert p.returncode == 0 and not p.stderr, (suggestion, p.stderr)
    return p.stdout


@test
def of_a_recording_they_have_the_log_that_names_the_lock():
    """It precedes the wait that is shown; for a hold it is at its end."""
    path = os.path.join(FOLDER, "shop-c.trace")
    seen = set()
    screen = subprocess.run([TRAIL, "locks", path], capture_output=True, text=True).stdout
    for lock, what, suggestion in re.findall(r"^([a-z][\w ]+)$|longest (wait|hold):.*\n +(trail print .*)$", screen, re.M):
        name = lock.replace("condition variable", "condition") or name
        if suggestion:
            assert f'log {"wait" if what == "wait" else "held"}: "{name}' in run_suggestion(suggestion), (name, suggestion)
            seen.add((name, what))
    assert {("mutex cache_mu", "wait"), ("mutex cache_mu", "hold"), ("mutex queue_mu", "wait")} <= seen, seen


BEFORE = """Trace Go1.23
EventBatch gen=1 m=1 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=1 gstatus=2
UserLog dt=3 task=0 key_string=1 value_string=2 stack=0
GoBlock dt=5 reason_string=0 stack=0
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Strings
String id=1
	data="held"
String id=2
	data="mutex early 10ms"
"""


@test
def of_what_began_before_the_trace_they_begin_with_it():
    path = assembled("before", BEFORE)
    (suggestion,) = {s for _, s in suggested([["locks"]], path)}
    assert "mutex early" in run_suggestion(suggestion), suggestion


@test
def of_traces_written_by_hand():
    names = [name for name in BY_HAND if os.path.exists(os.path.join(ROOT, "tests", "data", name + ".txt"))]
    run_suggestions([trace(name) for name in names], 30)


@test
def of_a_trace_whose_name_a_shell_would_divide():
    path = os.path.join(WORK, "it's $HOME of;a trace.trace")
    with open(EXAMPLES[0], "rb") as source, open(path, "wb") as to:
        to.write(source.read())
    good_text("info", path)
    run_suggestions([path], 5)


def said(*command):
    """The suggestions on stderr after "next: ", "see: " or "try  "."""
    p = subprocess.run(command, capture_output=True, text=True, cwd=WORK, timeout=120)
    text = p.stdout + p.stderr
    found = re.findall(r"trail (?:summary|why|view|print|doctor|check) [^\n]*", text)
    assert found, (command, text)
    return [word.strip() for line in found for word in re.split(r", or |   or |   shows", line) if word.startswith("trail ")]


# A shell would run `touch`; a command would treat the second name as an option, zsh the third as a command.
HOSTILE = ["a$(touch x)'`touch x`;touch x;.trace", "--name=$(touch x).trace", "=x.trace"]
SHELLS = ["sh", *filter(shutil.which, ["zsh"])]


@test
def of_names_that_a_shell_or_a_command_would_take_for_more():
    env = {**os.environ, "PATH": os.path.dirname(TRAIL) + os.pathsep + os.environ["PATH"]}
    with open(EXAMPLES[0], "rb") as file:
        good = file.read()
    count = 0
    for name in HOSTILE:
        with open(os.path.join(WORK, name), "wb") as file:
            file.write(good + b"\x00\xff\x00\xfe")
        suggestions = said(TRAIL, "check", "--", name)
        with open(os.path.join(WORK, name), "wb") as file:
            file.write(good)
        suggestions += said(TRAIL, "symbolize", "-o" + name + ".named.trace", "--", name)
        for screen in "summary", "gc", "regions", "tasks", "latency":
            suggestions += [s for _, s in suggested([[screen]], "./" + name) if name[0] != "-"]
            p = subprocess.run([TRAIL, screen, "--", name], capture_output=True, text=True, cwd=WORK, timeout=120)
            suggestions += SUGGESTION.findall(p.stdout)
        for shell, suggestion in itertools.product(SHELLS, suggestions):
            p = subprocess.run([shell, "-c", suggestion], capture_output=True, text=True, env=env, cwd=WORK, timeout=120)
            assert p.returncode == 0 and p.stdout.strip(), (suggestion, p.stderr)
            count += 1
    assert count >= 10 and not os.path.exists(os.path.join(WORK, "x")), count


sys.exit(main())
