"""Events of threads without a goroutine on a P, as read by Go's tools and by trail.

    contexts.py TRAIL TEST_CONTEXTS
"""

import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from go_readers import GO_READERS, go_of, go_prints, go_tools
from tap import finish, report, skip

trail, program = sys.argv[1:3]

# Situations from "in another call", where the trace starts, onwards; the goroutine is the host's or the library's.
LOGS = [
    ("in another call", True),
    ("in a call without its P", True),
    ("in a call with a new P", True),
    ("ready", False),
    ("runs again", True),
    ("ended", False),
]


def goroutines(lines, pattern):
    """For each log, in order: the message, and its goroutine."""
    return [(found["message"], found["g"]) for found in map(re.compile(pattern).search, lines) if found]


def right(logs):
    host = {g for (_, g), (_, of_host) in zip(logs, LOGS) if of_host}
    own = {g for (_, g), (_, of_host) in zip(logs, LOGS) if not of_host}
    return [m for m, _ in logs] == [m for m, _ in LOGS] and len(host) == len(own) == 1 and host != own and "0" not in own


with tempfile.TemporaryDirectory() as folder:
    for format in (7, 11, 19, 21, 22, 23, 26):
        path = os.path.join(folder, f"{format}.trace")
        done = subprocess.run([program, "write", str(format), path], capture_output=True, text=True)
        report(done.returncode == 0, f"1.{format}: recorded", done.stderr)
        shown = subprocess.run([trail, "print", "--words=go", path], capture_output=True, text=True)
        report(shown.returncode == 0, f"1.{format}: trail reads it", shown.stderr)
        if format >= 11:
            logs = goroutines(shown.stdout.splitlines(), r' G (?P<g>\d+) .* log where: "(?P<message>[^"]*)"')
            report(right(logs), f"1.{format}: trail: logs are where they should be", str(logs))
        for release, (formats, mode) in GO_READERS.items():
            if format not in formats:
                continue
            go = go_of(release)
            if not go:
                skip(f"1.{format}: Go {release}", f"no Go {release}")
                continue
            code, out, err = go_prints(go, mode, path)
            report(code == 0 and out, f"1.{format}: Go {release} reads it", err[:1000])
            if mode == "-d" and format >= 11:
                logs = goroutines(out.splitlines(), r" UserLog p=\d+ g=(?P<g>\d+) .* message=(?P<message>.*)$")
                report(right(logs), f"1.{format}: Go {release}: logs are where they should be", str(logs))
    for format in (7, 11, 19, 21, 22, 23, 26):
        path = os.path.join(folder, f"quiet-{format}.trace")
        done = subprocess.run([program, "quiet", str(format), path], capture_output=True, text=True)
        report(done.returncode == 0, f"1.{format}, nearly empty: recorded", done.stderr)
        go_tools(f"1.{format}, nearly empty", format, path)
sys.exit(finish())
