"""Searches for faults that depend on chance, with many runs, separately from the tests: results are rates of failure.

    hammer/NAME.py BUILD SEED COUNT

makes COUNT runs, with the seeds from SEED on. A run is a function of its seed and its own folder, in which it leaves
files that explain a failure; it returns what is wrong, or "". The folders of failures are kept in failures/ in the
build folder.
"""

import os
import shutil
import sys

BUILD = os.path.abspath(sys.argv[1])
os.chdir(BUILD)
import tap  # noqa: E402
import work  # noqa: E402

TRAIL = os.path.join(BUILD, "trail")


def program(name):
    """The path of a program of tests/recording."""
    return os.path.join(BUILD, "tests", "recording", "recording-" + name)


def main(run):
    first, count, wrong = int(sys.argv[2]), int(sys.argv[3]), 0
    folder = work.folder("hammer-" + os.path.splitext(os.path.basename(sys.argv[0]))[0])
    for seed in range(first, first + count):
        own = os.path.join(folder, str(seed))
        os.mkdir(own)
        found = run(seed, own)
        if found:
            wrong += 1
            print(f"# seed {seed}: {found}", flush=True)
        else:
            shutil.rmtree(own)
    tap.failures += wrong
    print(f"{wrong} of {count} runs wrong")
    return wrong > 0
