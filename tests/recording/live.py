#!/usr/bin/env python3
"""`trail record --view`: the page's API answers while the program runs, and at the end the trace is complete. Prints TAP.

usage: live.py TRAIL LIVE; the program is that of live.c
"""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test

TRAIL, LIVE = (os.path.abspath(a) for a in sys.argv[1:3])
WORK = tempfile.mkdtemp(prefix="trail-live-")
# Keeps a browser from opening.
ENV = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "LD_PRELOAD", "TRAIL_SHM")}
# Longer than any wait on any machine, in s.
LONG = 60
# Exit status of live.c.
EXIT_CODE = 7


class Recording:
    """Context manager: `trail record --view` of live.c."""

    def __init__(self, path):
        self.process = subprocess.Popen(
            [TRAIL, "record", "--view", "-q", "-o", path, "--", LIVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENV,
        )
        line = b"-"
        while line and not line.startswith(b"http://"):
            line = self.process.stderr.readline()
        assert line, "no address was printed"
        parts = urllib.parse.urlsplit(line.decode().strip())
        self.port = parts.port
        self.token = parts.query.removeprefix("token=")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # The first signal ends the program, the next one ends the viewer, which continues after the
        # program.
        while self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                pass

    def ask(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        connection.request("GET", "/api/" + path, headers={"Authorization": f"Bearer {self.token}"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def get(self, path):
        status, body = self.ask(path)
        assert status == 200, f"{path}: {status} {body[:300]!r}"
        return json.loads(body)

    def names(self):
        """Returns the start functions of the threads that have a lane."""
        answer = self.get("lanes")
        return {answer["names"][row[2]] for row in answer["rows"]}

    def until(self, holds, meanwhile=lambda: None):
        """Returns the first status for which `holds` is true."""
        end = time.monotonic() + LONG
        while time.monotonic() < end:
            status = self.get("status")
            if holds(status):
                return status
            meanwhile()
            # Leave the CPU to the recorder and the viewer.
            time.sleep(0.02)
        raise AssertionError(f"it never came to be: {status}")

    def play(self):
        """Makes the program do some work, after which it waits."""
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == b"played\n"


def command(*args):
    p = subprocess.run([TRAIL, *args], capture_output=True, timeout=LONG)
    return p.returncode, p.stdout


@test
def a_program_can_be_looked_at_while_it_runs_and_its_trace_is_whole_at_the_end():
    path = os.path.join(WORK, "live.trace")
    with Recording(path) as recording:
        # A trace is shown generation by generation.
        both = {"ping", "pong"}
        status = recording.until(lambda s: s["events"] > 0 and both <= recording.names(), recording.play)
        assert (status["live"], status["done"], status["can_run"]) == (True, False, False), status
        assert status["goroutines"] >= 3 and status["spans"] > 0, status
        assert "last" not in recording.names()
        lanes = recording.get("lanes")
        lane = next(row for row in lanes["rows"] if lanes["names"][row[2]] == "pong")
        assert lane[6] > 2, "its spans"
        assert recording.get(f"span?lane={lane[0]}&span=1")["name"] == "pong"
        assert len(recording.ask(f"picture?lanes={lane[0]}")[1]) > 8
        assert recording.ask("run?command=goroutines")[0] == 501
        # New events appear, and earlier ones remain.
        before = status
        status = recording.until(lambda s: s["events"] > before["events"], recording.play)
        assert status["end"] > before["end"] and not status["done"], status
        assert recording.process.poll() is None
        recording.process.stdin.close()
        recording.process.stdin = None
        status = recording.until(lambda s: s["done"] and s["can_run"])
        assert "error" not in status, status
        assert both | {"last"} <= recording.names(), recording.names()
        code, out = command("summary", "--json", path)
        summary = json.loads(out)
        assert code == 0
        assert (status["events"], status["goroutines"]) == (summary["events"], summary["goroutines"])
        assert (status["size_bytes"], status["read_bytes"]) == (os.path.getsize(path),) * 2
        assert command("check", path)[0] == 0
        code, out = command("goroutines", "--json", path)
        assert recording.get("run?command=goroutines") == json.loads(out)
        # The viewer serves the trace until it is ended.
        assert recording.process.poll() is None
        recording.process.send_signal(signal.SIGTERM)
        recording.process.communicate(timeout=LONG)
        assert recording.process.returncode == EXIT_CODE, recording.process.returncode


if __name__ == "__main__":
    failed = main()
    shutil.rmtree(WORK)
    sys.exit(failed)
