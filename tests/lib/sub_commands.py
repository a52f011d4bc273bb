"""The sub-commands, from their table."""

import functools
import pathlib
import subprocess


@functools.cache
def table(root, path):
    """The rows of a table that is C code, each a list of texts."""
    root = pathlib.Path(root)
    done = subprocess.run([root / "tools/rows", root / path], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def commands(root):
    """Name, group, where and summary of each."""
    return [row[:4] for row in table(root, "src/commands.def")]


def sub_commands(root):
    """The names of the commands listed in the help."""
    return [name for name, _, where, _ in commands(root) if where != "HIDDEN"]
