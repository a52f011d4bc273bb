"""Java programs behave as without the recorder, and methods have the names listed by the JVM: see
Parks.java and Survives.java. TAP.

usage: java.py TRAIL
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import Skip, test

TRAIL = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
WORK = tempfile.TemporaryDirectory(prefix="trail-java-")
TRACE = os.path.join(WORK.name, "x.trace")
# Compile only the methods of Parks, immediately and without inlining; generated code keeps frame
# pointers.
COMPILED = ["-Xcomp", "-XX:TieredStopAtLevel=1", "-XX:+PreserveFramePointer", "-XX:CompileCommand=quiet",
            "-XX:CompileCommand=compileonly,Parks::*", "-XX:CompileCommand=dontinline,Parks::*"]
PARKED = ["void Parks.innermost()", "void Parks.middle()", "void Parks.outermost()"]
ENV = {**os.environ, "LC_ALL": "C.UTF-8"}


def java(*arguments):
    return ["java", "-cp", WORK.name, *arguments]


def record(*command, options=()):
    done = subprocess.run([TRAIL, "record", "-q", *options, "-o", TRACE, "--", *command], capture_output=True, text=True,
                          timeout=600, env=ENV)
    subprocess.run([TRAIL, "check", TRACE], check=True, capture_output=True, timeout=120)
    return done


def events():
    text = subprocess.run([TRAIL, "print", "--format=jsonl", TRACE], check=True, capture_output=True, text=True, timeout=120).stdout
    return [json.loads(line) for line in text.splitlines()]


def functions(event):
    return [f["func"] for f in event.get("stack", [])]


def remove_list(pid):
    path = f"/tmp/perf-{pid}.map"
    if os.path.exists(path):
        os.unlink(path)


def has_list():
    """Whether the JVM can write the list, which Java 17 added."""
    version = subprocess.run(["java", "-version"], capture_output=True, text=True, timeout=120, env=ENV).stderr
    words = version.split('"')
    return len(words) > 1 and words[1].split(".")[0].isdigit() and int(words[1].split(".")[0]) >= 17


def need_list():
    if not shutil.which("jcmd") or not has_list():
        raise Skip("no jcmd of Java 17 or later; install default-jdk-headless")


@test
def a_program_does_what_it_does_without_the_recorder():
    plain = subprocess.run(java("Survives"), capture_output=True, text=True, timeout=600, env=ENV)
    assert plain.returncode == 0 and plain.stdout.endswith("the end\n"), plain
    for options in ((), ("--heap", "--children"), ("--cpu-samples=100", "--cpu-signal")):
        for machine in ((), ("-XX:+UseSerialGC",), ("-Xcomp", "-XX:TieredStopAtLevel=1"), ("-XX:+PreserveFramePointer",)):
            done = record(*java(*machine, "Survives"), options=options)
            assert (done.returncode, done.stdout) == (0, plain.stdout), (options, machine, done)


@test
def the_exit_status_is_the_programs():
    assert record(*java("NoSuchClass")).returncode == 1


@test
def parked_threads_and_their_wakers_have_the_names_of_methods():
    need_list()
    # A generation of the trace lasts a second: code that was seen before it was listed is named in
    # the next one.
    done = record(*java(*COMPILED, "Parks", "25"))
    remove_list(done.stdout.strip())
    if done.returncode == 77:
        raise Skip("jcmd does not reach the machine, or does not list its code")
    assert done.returncode == 0, done
    all_events = events()
    waits = [e for e in all_events if e.get("to") == "Waiting" and PARKED[0] in functions(e)]
    assert waits, "no wait has the innermost method"
    names = functions(waits[-1])
    at = names.index(PARKED[0])
    assert names[at : at + 3] == PARKED, names
    ends = [e for e in all_events if e.get("type") == "GoUnblock" and e["id"] == waits[-1]["id"] and e["time_ns"] > waits[-1]["time_ns"]]
    assert any("void Parks.release(java.lang.Thread)" in functions(e) for e in ends), ends


@test
def stuck_has_the_names_of_methods():
    need_list()
    with subprocess.Popen(java(*COMPILED, "Parks", "0"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV) as program:
        try:
            program.stdout.readline()
            if not program.stdout.readline():
                raise Skip("jcmd does not reach the machine, or does not list its code")
            done = subprocess.run([TRAIL, "stuck", "--json", "--limit=100s", str(program.pid)], capture_output=True, text=True,
                                  timeout=120)
            if "ptrace_scope" in done.stderr:
                raise Skip(done.stderr.strip())
            assert done.returncode == 0, done
            (process,) = json.loads(done.stdout)["processes"]
            assert process["unstopped"] == 0, process
            stacks = [[f["function"] for f in t["stack"]] for t in process["threads"]]
            (parked,) = [s for s in stacks if PARKED[0] in s]
            at = parked.index(PARKED[0])
            assert parked[at : at + 3] == PARKED, parked
        finally:
            program.kill()
            remove_list(program.pid)


@test
def a_machine_that_runs_is_recorded_and_runs_on():
    need_list()
    with subprocess.Popen(java("Parks", "0"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENV) as program:
        try:
            program.stdout.readline()
            if not program.stdout.readline():
                raise Skip("jcmd does not reach the machine, or does not list its code")
            for _ in range(2):
                done = subprocess.run([TRAIL, "record", "-q", "-p", str(program.pid), "--duration=1s", "-o", TRACE], capture_output=True,
                                      text=True, timeout=300)
                if "ptrace_scope" in done.stderr:
                    raise Skip(done.stderr.strip())
                assert done.returncode == 0, done
                subprocess.run([TRAIL, "check", TRACE], check=True, capture_output=True, timeout=120)
                assert any(e.get("to") == "Waiting" for e in events()), "no thread waits"
            program.stdin.close()
            assert program.wait(timeout=300) == 0
        finally:
            program.kill()
            remove_list(program.pid)


def main():
    if not shutil.which("java") or not shutil.which("javac"):
        print("1..0 # SKIP no Java; install default-jdk-headless")
        return 0
    sources = [os.path.join(HERE, name) for name in ("Parks.java", "Survives.java")]
    subprocess.run(["javac", "-d", WORK.name, *sources], check=True, timeout=600, env=ENV)
    return tap.main()


sys.exit(main())
