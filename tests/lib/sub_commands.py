"""The sub-commands, from their table."""

import pathlib
import re

ROW = re.compile(r"^COMMAND\((\w+), *(\w+), *(\w+), *\"(.*?)\"", re.M)


def sub_commands(root):
    """The names of those that are in the help."""
    rows = ROW.findall((pathlib.Path(root) / "src/commands.def").read_text())
    return [name for name, _, where, _ in rows if where != "HIDDEN"]
