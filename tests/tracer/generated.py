"""Calls in any order, valid or not: the installed readers of Go accept each trace.

    generated.py TEST_MISUSE [FIRST [COUNT]]

Seeds FIRST (0) to FIRST + COUNT (3) of each format. tests/tracer/test_misuse.c makes the traces and reads them with
libtrail.
"""

import glob
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from go_readers import GO_READERS, go_of, go_prints
from tap import finish, report, skip

program = sys.argv[1]
first, count = [int(argument) for argument in sys.argv[2:4] + ["0", "3"][len(sys.argv) - 2 :]]
# TRAIL_TEST_COUNT is a percentage of this.
USUAL = 60


def refused(go, mode, paths):
    """The traces that a release of Go rejects, with the last line of its message."""
    for path in paths:
        code, out, err = go_prints(go, mode, path)
        if code != 0 or not out:
            yield f"{os.path.basename(path)}: {err.strip().splitlines()[-1:]}"


with tempfile.TemporaryDirectory() as folder:
    env = {
        **os.environ,
        "TRAIL_TEST_FOLDER": folder,
        "TRAIL_TEST_FIRST": str(first),
        "TRAIL_TEST_COUNT": str(-(-100 * count // USUAL)),
    }
    done = subprocess.run([program], capture_output=True, text=True, env=env)
    report(done.returncode == 0, f"seeds {first} to {first + count - 1}: recorded and read", done.stdout + done.stderr)
    for release, (formats, mode) in GO_READERS.items():
        go = go_of(release)
        for format in formats:
            paths = sorted(glob.glob(f"{folder}/*.{format}.trace"))
            name = f"1.{format}: Go {release} reads all"
            if not go:
                skip(name, f"no Go {release}")
                continue
            bad = list(refused(go, mode, paths))
            report(paths and not bad, f"{name} {len(paths)} traces", "\n".join(bad))
sys.exit(finish())
