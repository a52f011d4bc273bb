"""The folder that a test works in.

It is removed at the end of the script. After a failure it is moved to failures/ in the build folder, where Meson starts
tests: traces, outputs and other files that the test wrote help to explain a failure that depends on chance.
"""

import atexit
import os
import shutil
import signal
import sys
import tempfile

import tap

BUILD = os.getcwd()


def folder(name):
    path = tempfile.mkdtemp(prefix=f"trail-{name}-")
    atexit.register(_end, path, os.getpid())
    signal.signal(signal.SIGTERM, _hangs)
    return path


def _hangs(number, frame):
    """Meson's time limit is over."""
    tap.failures += 1
    sys.exit(1)


def _end(path, owner):
    if os.getpid() != owner:  # a child process of the test
        return
    if tap.failures and os.path.isdir(os.path.join(BUILD, "meson-info")):
        kept = os.path.join(BUILD, "failures")
        os.makedirs(kept, exist_ok=True)
        print(f"# kept: {shutil.move(path, kept)}", flush=True)
    shutil.rmtree(path, ignore_errors=True)
