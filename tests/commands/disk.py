#!/usr/bin/env python3
"""A full disk: output appears completely or not at all, and existing files are unchanged. TAP.

usage: disk.py TRAIL SOURCE_ROOT [records-not]

A limit on file size (setrlimit(2)) stands for a full disk: it needs no file system of its own, and allows any
size. Parquet needs DuckDB's library (TRAIL_DUCKDB, or where trail looks for it).
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
RECORDS = sys.argv[3:] != ["records-not"]
if not RECORDS:
    print("# no program can be recorded on this machine: that is not tried")
WORK = tempfile.mkdtemp(prefix="trail-disk-")
BIG = os.path.join(ROOT, "examples", "traces", "load-go1.23.trace")
OTHER = os.path.join(ROOT, "examples", "traces", "load-go1.22.trace")
TEXT = os.path.join(WORK, "text.txt")
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
# A leak report or a profile of the build would be a file, too.
SANITIZED = "ASAN_OPTIONS" in os.environ


def run(*args, limit=None, cwd=WORK, stdout=subprocess.PIPE):
    def before():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run([TRAIL, *args], stdout=stdout, stderr=subprocess.PIPE, env=ENV, cwd=cwd, preexec_fn=before, timeout=120)


# Commands that write into {out}; the trace is {in}.
WRITERS = {
    "perfetto": ["export", "--to=perfetto", "{in}", "-o", "{out}"],
    "chrome": ["export", "--to=chrome", "{in}", "-o", "{out}"],
    "otlp": ["export", "--to=otlp", "{in}", "-o", "{out}"],
    "otlp-metrics": ["export", "--to=otlp-metrics", "{in}", "-o", "{out}"],
    "pprof": ["export", "--to=pprof", "{in}", "-o", "{out}"],
    "folded": ["profile", "--format=folded", "{in}", "-o", "{out}"],
    "speedscope": ["profile", "--format=speedscope", "{in}", "-o", "{out}"],
    "csv of one table": ["export", "--to=csv", "--table=events", "{in}", "-o", "{out}"],
    "rowbinary of one table": ["export", "--to=rowbinary", "--table=events", "{in}", "-o", "{out}"],
    "schema": ["export", "--schema=duckdb", "-o", "{out}"],
    "report": ["report", "{in}", "-o", "{out}"],
    "report with the viewer": ["report", "--embed", "{in}", "-o", "{out}"],
    "convert": ["convert", "{in}", "-o", "{out}"],
    "merge": ["merge", "--align=start", "{in}", "{in}", "-o", "{out}"],
    "symbolize": ["symbolize", "{in}", "-o", "{out}"],
    "assemble": ["assemble", "--version=1.23", TEXT, "-o", "{out}"],
}
FOLDERS = {
    "ctf": ["export", "--to=ctf", "{in}", "-o", "{out}"],
    "csv": ["export", "--to=csv", "{in}", "-o", "{out}/deep/er"],
    "rowbinary": ["export", "--to=rowbinary", "{in}", "-o", "{out}"],
}
PARQUET = {
    "parquet": ["export", "--to=parquet", "--host=h", "--day=2026-01-02", "{in}", "-o", "{out}"],
    "parquet of one table": ["export", "--to=parquet", "--table=events", "{in}", "-o", "{out}.parquet"],
}
have_duckdb = run("sql", BIG, "select 1").returncode == 0


def filled(words, out, trace=BIG):
    return [w.replace("{in}", trace).replace("{out}", out) for w in words]


def tree(folder):
    """All names below the folder, and the contents of the files."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders:
            found[os.path.relpath(os.path.join(base, name), folder)] = None
        for name in files:
            with open(os.path.join(base, name), "rb") as f:
                found[os.path.relpath(os.path.join(base, name), folder)] = f.read()
    return found


def fresh(name):
    folder = os.path.join(WORK, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    return folder


def sizes_that_fail(folder):
    """Limits below the size of the largest file: nothing, a little and nearly all of it is written."""
    most = max(len(data) for data in tree(folder).values() if data is not None)
    return sorted({0, 1, most // 3, most - 1})


def writers():
    return {**WRITERS, **FOLDERS, **(PARQUET if have_duckdb else {})}


if not have_duckdb:
    print("# without DuckDB's library: Parquet is not tried")


@test
def nothing_is_left_behind():
    for name, words in writers().items():
        folder = fresh("whole")
        result = run(*filled(words, os.path.join(folder, "out")))
        assert result.returncode == 0, f"{name}: {result.stderr}"
        limits = sizes_that_fail(folder)
        for limit in limits:
            folder = fresh("cut")
            result = run(*filled(words, os.path.join(folder, "out")), limit=limit)
            assert result.returncode == 3, f"{name} at {limit}: exit {result.returncode}: {result.stderr}"
            assert b"File too large" in result.stderr and b"out" in result.stderr, f"{name} at {limit}: {result.stderr}"
            assert tree(folder) == {}, f"{name} at {limit} leaves {list(tree(folder))}"


@test
def what_was_there_stays():
    for name, words in writers().items():
        folder = fresh("before")
        out = os.path.join(folder, "out")
        if name == "ctf":
            os.mkdir(out)  # an empty file may be replaced by a complete one only
        else:
            assert run(*filled(words, out, OTHER)).returncode == 0
        before = tree(folder)
        whole = fresh("whole")
        assert run(*filled(words, os.path.join(whole, "out"))).returncode == 0
        for limit in sizes_that_fail(whole):
            result = run(*filled(words, out), limit=limit)
            assert result.returncode == 3, f"{name} at {limit}: exit {result.returncode}: {result.stderr}"
            assert tree(folder) == before, f"{name} at {limit}: {set(tree(folder)) ^ set(before)}"
        # A complete one replaces it.
        assert run(*filled(words, out)).returncode == 0
        if name not in ("schema", "assemble"):
            assert tree(folder) != before, name


@test
def a_table_that_cannot_get_its_name_takes_the_others_with_it():
    folder = fresh("name")
    os.makedirs(os.path.join(folder, "tasks.csv", "x"))  # its place is taken
    before = tree(folder)
    result = run("export", "--to=csv", BIG, "-o", folder)
    assert result.returncode == 3 and b"tasks.csv" in result.stderr, result.stderr
    assert tree(folder) == before, list(tree(folder))


@test
def a_folder_that_is_not_empty_is_no_place_for_ctf():
    folder = fresh("taken")
    with open(os.path.join(folder, "mine"), "w") as f:
        f.write("mine")
    for path in folder, os.path.join(folder, "mine"):
        result = run("export", "--to=ctf", BIG, "-o", path)
        assert result.returncode == 2 and b"there already" in result.stderr, result.stderr
    assert tree(folder) == {"mine": b"mine"}


@test
def a_place_that_is_not_there_is_not_made_half():
    folder = fresh("none")
    for words in (FOLDERS["ctf"], *WRITERS.values()):
        result = run(*filled(words, os.path.join(folder, "no", "out")))
        assert result.returncode == 3 and b"No such file" in result.stderr, f"{words}: {result.stderr}"
        assert tree(folder) == {}, words
    with open(os.path.join(folder, "file"), "w"):
        pass
    result = run(*filled(FOLDERS["csv"], os.path.join(folder, "file")))
    assert result.returncode == 3 and b"Not a directory" in result.stderr, result.stderr
    assert tree(folder) == {"file": b""}


@test
def standard_output_is_told_too():
    for words in (["summary", BIG], ["print", BIG], ["goroutines", "--json", BIG], ["export", "--to=chrome", BIG], ["check", BIG]):
        folder = fresh("stdout")
        with open(os.path.join(folder, "out"), "wb") as out:
            result = run(*words, limit=10, stdout=out)
        assert result.returncode == 3, f"{words}: exit {result.returncode}: {result.stderr}"
        assert result.stderr.endswith(b"trail: cannot write the output: File too large\n"), result.stderr


@test
def dev_full_is_told_and_stays():
    for name, words in WRITERS.items():
        result = run(*filled(words, "/dev/full"))
        assert result.returncode == 3 and b"No space left" in result.stderr, f"{name}: {result.returncode} {result.stderr}"
        assert os.path.exists("/dev/full")


@test
def a_next_file_that_cannot_be_begun_is_told():
    if not RECORDS:
        return
    folder = fresh("rotated")
    os.makedirs(os.path.join(folder, "x.1.trace"))
    out = os.path.join(folder, "x.trace")
    # The program runs until the message appears.
    messages = os.path.join(folder, "messages")
    program = ["sh", "-c", 'until grep -q x.1.trace "$0"; do sleep 0.05; done', messages]
    with open(messages, "wb") as to:
        command = [TRAIL, "record", "--rotate=100ms", "-o", out, "--", *program]
        status = subprocess.run(command, stderr=to, env=ENV, timeout=120).returncode
    with open(messages) as f:
        said = f.read()
    assert status == 3 and re.search("cannot write.*x.1.trace", said), (status, said)
    good = run("check", out)
    assert good.returncode == 0, good


@test
def a_program_that_is_recorded_meets_its_limits_itself():
    """SIGXFSZ, 25, ends the program as it would without trail, although trail ignores it."""
    if not RECORDS:
        return
    folder = fresh("program")
    result = run("record", "-o", os.path.join(folder, "t"), "--", "grep", "SigIgn", "/proc/self/status")
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[1], 16) & (1 << 24 | 1 << 12) == 0, result.stdout


if __name__ == "__main__":
    try:
        with open(TEXT, "wb") as f:
            f.write(run("print", "--format=wire", BIG).stdout)
        failed = main()
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    sys.exit(failed)
