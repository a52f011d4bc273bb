"""The places where threads of a C++ program wait are its own functions: see places.cpp. TAP.

usage: places.py TRAIL libtrail-preload.so PROGRAM SAME_LAMBDA
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
import work
from tap import test

TRAIL, PROGRAM = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[3])
WORK = work.folder("places")
TRACE = os.path.join(WORK, "x.trace")
SOURCE = open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "places.cpp")).read().splitlines()


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0, f"{args}: status {done.returncode}: {done.stderr}"
    return done


def line_of(text):
    (number,) = [i for i, line in enumerate(SOURCE, 1) if text in line]
    return number


# An instance of a function has its scope in its name, an inlined function does not.
OURS = r"(?:\(anonymous namespace\)::)?"

SUMMARY = run(TRAIL, "record", "-o", TRACE, "--", PROGRAM).stderr
SLEEP = f"places.cpp:{line_of('sleep_for(time)')}"
TURN = f"places.cpp:{line_of('there.set_value(') + 1}"


@test
def the_summary_of_a_recording_names_functions_of_the_program():
    worst = [line.strip() for line in SUMMARY.split("most of the waiting:\n")[1].splitlines()[:3]]
    assert len(worst) == 3, SUMMARY
    # Each thread waits once; main waits for all threads that have not ended.
    place = r"\(places\.cpp:\d+\)"
    waits = rf"(take_turn|wait_ready) {place}: 1 x|sleep_a_while<[^()]*> {place}: [12] x|main {place}: \d x"
    for line in worst:
        assert re.match(rf"{OURS}({waits}) ", line), line
        assert "std::" not in line.split(" x ")[0], line


@test
def a_sleep_is_where_the_program_calls_it():
    why = run(TRAIL, "why", "--window", "--limit=1000", TRACE).stdout
    sleeps = [line for line in why.splitlines() if ": in sleep in " in line]
    assert sleeps and all(SLEEP in line and "sleep_a_while<" in line for line in sleeps), why


@test
def a_lock_is_waited_for_where_the_program_takes_it():
    locks = run(TRAIL, "locks", TRACE).stdout
    assert re.search(rf"in {OURS}take_turn \({re.escape(TURN)}\)", locks), locks
    assert re.search(rf"in {OURS}wait_ready \(places.cpp:", locks), locks


@test
def no_place_is_in_a_library_and_no_line_is_0():
    for command in (["locks"], ["why", "--window"], ["latency"], ["summary"]):
        text = run(TRAIL, *command, TRACE).stdout
        assert ":0" not in re.sub(r"\d+:\d\d", "", text), text
        for place in re.findall(r"(?:in|up to|waited for it at) (std::[^ ]*|pthread[^ ]*|lib[^ ]*\+0x[^ ]*)", text):
            raise AssertionError(f"{command}: {place}: {text}")


@test
def a_thread_is_named_after_what_the_program_gave_it_to_run():
    names = {g["name"] for g in json.loads(run(TRAIL, "summary", "--json", TRACE).stdout)["groups"]}
    assert any(name.split("(int)")[0].endswith("Sleeper::operator()") for name in names), names
    for name in names:
        assert not name.startswith(("std::", "void std::", "start_thread", "execute_native", "libstdc++", "libc.so", "_M_run")), names


@test
def a_thread_that_never_waits_is_named_after_the_function_that_it_was_given():
    names = [g["name"] for g in json.loads(run(TRAIL, "summary", "--json", TRACE).stdout)["groups"]]
    for expected in ("nothing", "count_to", "count", "run_both"):
        assert names.count(expected) == 1, (expected, names)
    # A name that the thread sets itself takes precedence.
    assert "its own name" in names and "count_named" not in names, names


@test
def what_the_user_skips_names_no_place():
    skip = os.path.join(WORK, "skip")
    with open(skip, "w") as f:
        f.write("# ours\n\n*sleep_a_while\n")
    why = run(TRAIL, "why", "--window", "--limit=1000", f"--skip-frames={skip}", TRACE).stdout
    assert SLEEP not in why and ": in sleep" in why, why
    again = os.path.join(WORK, "y.trace")
    told = run(TRAIL, "record", f"--skip-frames={skip}", "-o", again, "--", PROGRAM).stderr
    assert "sleep_a_while" not in told and "most of the waiting" in told, told


@test
def threads_with_the_same_lambda_have_one_name_without_symbols():
    trace = os.path.join(WORK, "same.trace")
    run(TRAIL, "record", "-q", "-o", trace, "--", os.path.abspath(sys.argv[4]))
    groups = json.loads(run(TRAIL, "summary", "--json", trace).stdout)["groups"]
    counts = {g["name"].split("+0x")[0]: g["count"] for g in groups}
    assert counts == {"main": 1, "recording-same-lambda": 2}, groups


sys.exit(tap.main())
