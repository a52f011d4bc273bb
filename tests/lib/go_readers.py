"""Go's own tools as readers of traces, in all installed releases."""

import os
import subprocess

from tap import report, skip

# Go's tools that read a format: the release, and how its `go tool trace` prints all events.
GO_READERS = {
    "1.19": ([7, 11, 19], "-d"),
    "1.21": ([7, 11, 19, 21], "-d"),
    "1.22": ([22], "-d=1"),
    "1.23": ([11, 19, 21, 22, 23], "-d=1"),
    "1.26": ([11, 19, 21, 22, 23, 26], "-d=parsed"),
    "1.27": ([11, 19, 21, 22, 23, 26], "-d=parsed"),
}
# The folder of the installed releases; TRAIL_GO=/somewhere/usr/lib for a package unpacked elsewhere.
GO_FOLDERS = [*filter(None, os.environ.get("TRAIL_GO", "").split(":")), "/usr/lib"]


def go_of(release):
    """The path of a release's go, or None."""
    places = [f"{folder}/go-{release}/bin/go" for folder in GO_FOLDERS]
    return next(filter(os.path.exists, places), None)


def go_prints(go, mode, path):
    """The exit status, how `go tool trace` prints all events, and its messages."""
    env = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
    done = subprocess.run([go, "tool", "trace", mode, path], capture_output=True, env=env, timeout=240)
    return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")


def go_tools(name, format, path):
    """Reports, for each release that reads the format, whether it accepts the trace, or is not installed."""
    for release, (formats, mode) in GO_READERS.items():
        if format not in formats:
            continue
        go = go_of(release)
        if not go:
            skip(f"{name}: Go {release}", f"no Go {release}")
            continue
        code, out, err = go_prints(go, mode, path)
        report(code == 0 and out, f"{name}: Go {release} reads it", err[:1000])
