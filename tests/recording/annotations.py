"""Annotations of a program become part of the trace recorded by `trail record`.

usage: annotations.py TRAIL PROGRAM (annotated.c). Prints TAP.
"""
import atexit
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

trail, program = sys.argv[1:3]
work = pathlib.Path(tempfile.mkdtemp(prefix="trail-annotations-"))
atexit.register(shutil.rmtree, work, ignore_errors=True)
count = 0


def check(name, wrong):
    global count
    count += 1
    print(f"{'not ok' if wrong else 'ok'} {count} - {name}")
    if wrong:
        print(f"# {wrong}")


def events(path):
    done = subprocess.run([trail, "print", "--format=jsonl", path], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"Bail out! {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def annotations(path):
    """The program's own annotations, without the recorder's logs of what a thread waited for."""
    kinds = ("TaskBegin", "TaskEnd", "RegionBegin", "RegionEnd", "Log")
    return [e for e in events(path) if e.get("kind") in kinds and e.get("category") not in ("wait", "held")]


def record(*arguments):
    path = work / "x.trace"
    subprocess.run([trail, "record", "-q", "-o", path, "--", program, *arguments], check=True)
    return path


def long_message(number):
    return f"{number} of a message that is too long for one piece: {0:060d}"


path = record()
found = annotations(path)
kinds = [e["kind"] for e in found]
wanted = ["TaskBegin"] + ["RegionBegin", "Log", "RegionEnd"] * 2 + ["RegionBegin"] * 2 + ["RegionEnd", "Log", "TaskEnd"]
check("tasks, regions and logs are there in their order", kinds != wanted and kinds)
text = json.dumps(found)
check("with their names and messages", [w for w in ('"job"', '"work"', '"number"', long_message(1), long_message(2))
                                        if w not in text])
check("and typed fields", [e["message"] for e in found if e.get("category") == "typed"] != ["n=-5 x=0.25"] and text)
ended = [json.dumps(e) for e in found if e["kind"] == "RegionEnd"]
check("the end of a region that is not the innermost one is left out", len(ended) != 3 and ended)
check("the trace is good", subprocess.run([trail, "check", path], capture_output=True).returncode)

own = work / "own.trace"
path = record(str(own))
check("a tracer that the program starts has what is done meanwhile", long_message(100) not in json.dumps(annotations(own)))
outside = json.dumps(annotations(path))
check("and what is done before and after goes outside",
      long_message(1) not in outside or long_message(2) not in outside or long_message(100) in outside)
check("nothing is recorded without a recorder", subprocess.run([program], capture_output=True).stdout)
print(f"1..{count}")
