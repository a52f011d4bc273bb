#!/usr/bin/env python3
"""The tree is configured where the packages that only the tests need are missing. TAP.

usage: bare.py SOURCE_ROOT
"""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test  # noqa: E402

SOURCE = sys.argv[1]
WITHOUT = ["cmocka", "libuv", "libunwind"]


def without(folder):
    """A pkg-config that does not know these packages, and no CMake, which Meson asks next."""
    path = os.path.join(folder, "pkg-config")
    with open(path, "w") as file:
        cases = "|".join(WITHOUT)
        file.write(f'#!/bin/sh\nfor word; do case $word in {cases}) exit 1;; esac; done\nexec pkg-config "$@"\n')
    os.chmod(path, 0o755)
    native = os.path.join(folder, "native.ini")
    with open(native, "w") as file:
        file.write(f"[binaries]\npkgconfig = '{path}'\npkg-config = '{path}'\ncmake = 'false'\n")
    return native


@test
def configures_without_the_packages_of_the_tests():
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["meson", "setup", "--native-file", without(folder), os.path.join(folder, "build"), SOURCE],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        assert "cmocka found: NO" in done.stdout, "cmocka was found all the same"


main()
