#!/usr/bin/env python3
"""trail help: the commands for a question. TAP.

usage: help.py TRAIL SOURCE_ROOT

The answers come from src/commands/topics.def; each is run, because the command lines must work.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sub_commands import commands
from tap import Skip, main, test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
WORK = tempfile.mkdtemp(prefix="trail-help-")
TEXT = (ROOT / "src/commands/topics.def").read_text()
TOPICS = [
    (words.split(), re.findall(r'ANSWER\("((?:[^"\\]|\\.)*)"', rest))
    for words, rest in re.findall(r'^TOPIC\("([^"]*)",(.*?)\)\)$', TEXT, re.M | re.S)
]
TRACE = "examples/traces/load-go1.23.trace"
# These need no trace: they start something, or print a page of text.
NO_TRACE = ("view", "record", "stuck", "watch", "import", "doctor", "env")


def run(*args):
    p = subprocess.run([TRAIL, *args], capture_output=True, text=True, timeout=240, cwd=WORK)
    return p.returncode, p.stdout, p.stderr


def answers(*words):
    code, out, err = run("help", *words)
    assert code == 0 and not err, f"{words}: {code} {err}"
    return [line for line in out.split("\n") if line and not line.startswith(" ")]


@test
def a_command_has_its_own_help_first():
    for name in ("locks", "find", "report"):
        assert run("help", name)[1].startswith(f"trail {name} - "), name


@test
def each_word_leads_to_its_answers():
    assert len(TOPICS) >= 20
    for words, lines in TOPICS:
        assert lines, words
        for word in words:
            if word in [name for name, *_ in commands(ROOT)]:
                continue
            shown = answers(word)
            for line in lines:
                assert line in shown, f"trail help {word}: no {line}"


@test
def case_plural_and_several_words_make_no_difference():
    assert answers("Deadlocks") == answers("deadlock")
    both = answers("slow", "gc")
    assert "trail gc FILE" in both and "trail tasks FILE" in both
    # One topic matches both words: others are not shown.
    assert answers("garbage", "pause") == answers("garbage")


@test
def an_option_is_found_by_its_name():
    shown = answers("--csv-safe")
    assert shown == ["trail sql --csv-safe", "trail export --csv-safe"], shown


@test
def a_mistyped_word_is_a_usage_error_with_a_suggestion():
    for word, meant in (("deadlcok", "deadlock"), ("summry", "summary")):
        code, out, err = run("help", word)
        assert code == 2 and not out and f"'trail help {meant}'" in err, err
    code, out, err = run("help", "zzzzzzzzzzzz")
    assert code == 2 and "no command or topic" in err, err
    code, _, err = run("help", "x" * 5000)
    assert code == 2, code


def lines_of_answers():
    return sorted({line.replace('\\"', '"') for _, lines in TOPICS for line in lines})


def needs_duckdb(line):
    return line.startswith("trail sql") or "--to=parquet" in line


def try_line(line):
    """Runs the command line on a trace, with files in the test's folder in place of its words."""
    trace = os.path.join(WORK, "t.trace")
    shutil.copy(ROOT / TRACE, trace)
    out = tempfile.mktemp(dir=WORK)
    places = {"FILE": trace, "BEFORE": trace, "AFTER": trace, "A": trace, "B": trace}
    places.update({"DIR": out, "SELECT ...": "SELECT 1", "out.folded": out})
    words = [out + word[3:] if word.startswith("OUT") else word for word in shlex.split(line)[1:]]
    code, _, err = run(*[places.get(word, word) for word in words])
    assert code == 0, f"{line}: exit {code}: {err}"


@test
def every_answer_runs():
    for line in lines_of_answers():
        command = line.split()[1]
        assert line.startswith("trail "), line
        if command in NO_TRACE:
            text = run(command, "--help")[1]
            for name in re.findall(r"--([\w-]+)", line.split(" -- ")[0]):
                assert f"--{name}" in text, line
        elif not needs_duckdb(line):
            try_line(line)


@test
def answers_that_need_duckdb_run():
    if run("sql", str(ROOT / TRACE), "SELECT 1")[0] != 0:
        raise Skip("no DuckDB")
    for line in filter(needs_duckdb, lines_of_answers()):
        try_line(line)


@test
def a_man_page_says_of_its_command_what_the_help_says():
    for name, _, _, summary in commands(ROOT):
        page = ROOT / f"man/trail-{name}.1"
        if page.exists():
            assert f"\n.Nd {summary}\n" in page.read_text(), name


try:
    sys.exit(main())
finally:
    shutil.rmtree(WORK)
