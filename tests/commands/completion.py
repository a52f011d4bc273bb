#!/usr/bin/env python3
"""Completions in the shells themselves: types words and Tab at a prompt, and examines the line.

usage: completion.py TRAIL SOURCE_ROOT
"""

import os
import pty
import select
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import TRAIL, good_text  # noqa: E402
from tap import Skip, main, test  # noqa: E402

LIMIT = 60  # s, in case a shell hangs
FOLDER = tempfile.mkdtemp(prefix="trail-completion-")
FILES = ["app.trace", "with space.trace", "folder/inner.trace"]
os.mkdir(os.path.join(FOLDER, "folder"))
os.mkdir(os.path.join(FOLDER, "bin"))
for name in FILES:
    open(os.path.join(FOLDER, name), "w").close()
with open(os.path.join(FOLDER, "bin", "server-of-mine"), "w") as file:
    file.write("#!/bin/sh\n")
os.chmod(file.name, 0o755)
os.symlink(TRAIL, os.path.join(FOLDER, "bin", "trail"))

# Typed text, and the resulting line. If several words are possible, the line is completed up to
# their common prefix.
LINES = {
    "trail sum": "trail summary ",
    "trail goroutines --gor": "trail goroutines --goroutine=",
    "trail export --to=cs": "trail export --to=csv ",
    "trail export --to cs": "trail export --to csv ",
    "trail export --to=csv --tab": "trail export --to=csv --table=",
    "trail export --output=fold": "trail export --output=folder/",
    "trail sql app.trace @long": "trail sql app.trace @long-waits ",
    "trail sql .que": "trail sql .queries ",
    "trail summary app": "trail summary app.trace ",
    "trail summary with": "trail summary with\\ space.trace ",
    "trail he": "trail help ",
    "trail help symb": "trail help symbolize ",
    "trail record server-of": "trail record server-of-mine ",
    "trail record -- server-of": "trail record -- server-of-mine ",
    "trail record -o x.trace -- server-of-mine --file app": "trail record -o x.trace -- server-of-mine --file app.trace ",
    "trail record --output=x.trace server-of": "trail record --output=x.trace server-of-mine ",
    "trail record --dur": "trail record --duration=",
}


def shell(command, env=None):
    """A shell on a terminal: its process and the terminal."""
    master, slave = pty.openpty()
    path = os.path.join(FOLDER, "bin") + os.pathsep + os.environ["PATH"]
    env = {"PATH": path, "HOME": FOLDER, "TERM": "dumb", "LC_ALL": "C.UTF-8", **(env or {})}
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, cwd=FOLDER, env=env, start_new_session=True)
    os.close(slave)
    return process, master


def read_until(master, mark, got=b""):
    end = time.monotonic() + LIMIT
    while mark not in got:
        ready, _, _ = select.select([master], [], [], max(0, end - time.monotonic()))
        assert ready, f"no {mark!r} in {got!r}"
        got += os.read(master, 65536)
    return got


def completed(command, setup, show, typed=LINES):
    """The lines after completion. `show` is a key bound to print the line between [[ and ]]."""
    process, master = shell(command)
    try:
        os.write(master, setup.encode() + b"echo re''ady\n")
        read_until(master, b"ready")
        lines = {}
        for line in typed:
            os.write(master, line.encode() + b"\t" + show)
            got = read_until(master, b"]]")
            lines[line] = got[got.rindex(b"[[") + 2 : got.rindex(b"]]")].decode()
        return lines
    finally:
        process.kill()
        process.wait()
        os.close(master)


def check(lines, rights=LINES):
    wrong = {line: (lines[line], right) for line, right in rights.items() if lines[line] != right}
    assert not wrong, "\n".join(f"{line}: {ours!r}, not {right!r}" for line, (ours, right) in wrong.items())


def script(name):
    path = os.path.join(FOLDER, f"completion.{name}")
    with open(path, "w") as to:
        to.write(good_text("completion", name))
    return path


BASH = """PS1=; bind 'set enable-bracketed-paste off'; bind 'set bell-style none'
%s
source %s
show() { printf '[[%%s]]\\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }
bind -x '"\\C-o": show'
"""


@test
def bash_completes_lines():
    if not shutil.which("bash"):
        raise Skip("no bash")
    check(completed(["bash", "--norc", "--noprofile", "-i"], BASH % ("", script("bash")), b"\x0f"))


@test
def bash_completes_lines_whatever_ends_a_word():
    if not shutil.which("bash"):
        raise Skip("no bash")
    setup = BASH % ("COMP_WORDBREAKS=${COMP_WORDBREAKS//[=@]}", script("bash"))
    check(completed(["bash", "--norc", "--noprofile", "-i"], setup, b"\x0f"))


@test
def bash_completion_completes_the_recorded_program():
    package = "/usr/share/bash-completion/bash_completion"
    if not os.path.exists(package):
        raise Skip("no package bash-completion")
    program = "_mine() { COMPREPLY=($(compgen -W '--listen-at --loud' -- \"$2\")); }; complete -F _mine server-of-mine"
    setup = BASH % (f"source {package}; {program}", script("bash"))
    lines = {"trail record -o x.trace -- server-of-mine --lis": "trail record -o x.trace -- server-of-mine --listen-at "}
    check(completed(["bash", "--norc", "--noprofile", "-i"], setup, b"\x0f", lines), lines)


@test
def zsh_completes_lines():
    if not shutil.which("zsh"):
        raise Skip("no zsh")
    folder = os.path.join(FOLDER, "zsh")
    os.mkdir(folder)
    shutil.copy(script("zsh"), os.path.join(folder, "_trail"))
    setup = f"""PS1= PROMPT_EOL_MARK= ; unsetopt PROMPT_SP; setopt NO_BEEP; fpath=({folder} $fpath)
autoload -U compinit; compinit -u -D
show() {{ zle -I; print -r -- "[[$BUFFER]]"; BUFFER= }}
zle -N show; bindkey -e; bindkey '^o' show
"""
    check(completed(["zsh", "-f", "-i"], setup, b"\x0f"))


@test
def fish_completes_lines():
    if not shutil.which("fish"):
        raise Skip("no fish")
    # fish's own candidates for the last word, as it would insert them, without a terminal.
    path = script("fish")
    for line, right in LINES.items():
        p = subprocess.run(
            ["fish", "--no-config", "-c", f"source {path}; complete -C $argv[1]", line],
            capture_output=True, text=True, timeout=LIMIT, cwd=FOLDER,
            env={"PATH": os.path.join(FOLDER, "bin") + os.pathsep + os.environ["PATH"], "HOME": FOLDER, "LC_ALL": "C.UTF-8"},
        )  # fmt: skip
        offered = [answer.split("\t")[0] for answer in p.stdout.splitlines()]
        word = right.rstrip(" ").split(" ")[-1] if "\\ " not in right else "with space.trace"
        # An option is offered without its "=", its value with or without it.
        assert any(answer in (word, word.rstrip("="), word.partition("=")[2]) for answer in offered), (line, offered, p.stderr)


try:
    code = main()
finally:
    shutil.rmtree(FOLDER)
sys.exit(code)
