"""Runs built programs as the user nobody.

The build may be in a folder that only its owner can enter, such as /root, so the programs are copied elsewhere.
"""

import atexit
import glob
import os
import shutil
import subprocess
import tempfile

NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}  # for subprocess


def copies(trail, *programs):
    """The paths of copies of the command, with its libraries, and of the programs, in a folder that exists during the
    test."""
    folder = tempfile.mkdtemp(prefix="trail-nobody-")
    atexit.register(shutil.rmtree, folder)
    os.chmod(folder, 0o755)
    # The command finds its libraries by their relative paths.
    built = os.path.dirname(trail)
    paths = [trail, *glob.glob(os.path.join(built, "src", "preload", "lib*.so"))]
    found = []
    for path in paths + list(programs):
        place = os.path.join(folder, os.path.relpath(os.path.dirname(path), built) if path in paths else "programs")
        os.makedirs(place, exist_ok=True)
        found.append(shutil.copy(path, place))
    return found[0], *found[len(paths) :]


def why_not(trail):
    """Why nobody cannot run the command; None if it can."""
    if os.geteuid() != 0:
        return "not root"
    try:
        ran = subprocess.run([trail, "--version"], capture_output=True, text=True, cwd="/", timeout=60, **NOBODY)
    except OSError as e:
        return f"nobody cannot run what is in {tempfile.gettempdir()}: {e.strerror}"
    return f"nobody cannot run the command: {ran.stderr.strip()[:200]}" if ran.returncode else None
