#!/usr/bin/env python3
"""trail watch: each trace of a folder is exported once, whatever happens meanwhile. TAP.

usage: watch.py TRAIL SOURCE_ROOT
"""

import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, EXAMPLES, TRAIL, WORK, equal  # noqa: E402
from tap import Skip, main, test

LIMIT = 60  # s, in case something hangs
count = 0


class Folders:
    """An empty folder for traces, and one for tables."""

    def __init__(self):
        global count
        count += 1
        self.traces, self.tables = (os.path.join(WORK, f"{name}-{count}") for name in ("traces", "tables"))
        self.log = os.path.join(WORK, f"log-{count}")
        os.mkdir(self.traces)

    def add(self, name, trace=EXAMPLES[3]):
        path = os.path.join(self.traces, name)
        shutil.copy(trace, os.path.join(WORK, "moved"))
        os.rename(os.path.join(WORK, "moved"), path)
        return path

    def command(self, *args):
        # The command notes each exported file, one name per line.
        run = f'echo "${{TRAIL_FILE##*/}}" >> {self.log}'
        return [TRAIL, "watch", "--settle=0", f"--run={run}", *args, self.traces, "-o", self.tables]

    def once(self, *args):
        return subprocess.run(self.command("--once", *args), capture_output=True, text=True, timeout=LIMIT, env=ENV)

    def watch(self, *args):
        return subprocess.Popen(self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)

    def done(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log) as file:
            return file.read().split("\n")[:-1]

    def until(self, holds):
        end = time.monotonic() + LIMIT
        while not holds(self.done()):
            assert time.monotonic() < end, self.done()
            time.sleep(0.01)


def stop(process, number=signal.SIGTERM, after=0):
    """Stops the command after it has printed this many paths; the exports in the log may not have ended yet."""
    paths = [process.stdout.readline() for _ in range(after)]
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT)
    return process.returncode, "".join(paths) + out, err


@test
def what_is_there_and_what_comes_is_done_once():
    folders = Folders()
    folders.add("b.trace")
    folders.add("a.trace")
    folders.add(".hidden.trace")
    os.mkdir(os.path.join(folders.traces, "folder.trace"))
    process = folders.watch()
    folders.until(lambda done: len(done) == 2)
    folders.add("c.trace")
    folders.until(lambda done: len(done) == 3)
    # A file that is written here is complete when it is closed.
    with open(EXAMPLES[3], "rb") as source, open(os.path.join(folders.traces, "d.trace"), "wb") as to:
        data = source.read()
        to.write(data[:1000])
        to.flush()
        folders.add("e.trace")
        folders.until(lambda done: "e.trace" in done)
        assert "d.trace" not in folders.done()
        to.write(data[1000:])
    folders.until(lambda done: "d.trace" in done)
    code, out, err = stop(process, after=5)
    equal((code, err), (0, ""))
    equal(folders.done(), ["a.trace", "b.trace", "c.trace", "e.trace", "d.trace"])
    equal([os.path.basename(line) for line in out.splitlines()], folders.done())
    # Nothing is exported again unless it has changed.
    equal((folders.once().returncode, len(folders.done())), (0, 5))
    os.utime(os.path.join(folders.traces, "a.trace"), (1, 1))
    folders.once()
    equal(folders.done()[5:], ["a.trace"])


@test
def a_file_that_is_renamed_when_it_is_complete_is_done_once():
    folders = Folders()
    process = folders.watch()
    for name, temporary in (("a.trace", "a.trace.tmp"), ("b.trace", "b.trace.part"), ("c.trace", "c.trace~"), ("d.trace", ".d.trace")):
        path = os.path.join(folders.traces, temporary)
        shutil.copyfile(EXAMPLES[3], path)
        folders.add("after-" + name)
        folders.until(lambda done: "after-" + name in done)
        os.rename(path, os.path.join(folders.traces, name))
        folders.until(lambda done: name in done)
    code, _, err = stop(process, after=8)
    equal((code, err), (0, ""))
    equal(folders.done(), [n for name in "abcd" for n in (f"after-{name}.trace", f"{name}.trace")])


@test
def what_is_no_trace_is_reported_once_and_left_alone():
    folders = Folders()
    with open(os.path.join(folders.traces, "notes.txt"), "w") as file:
        file.write("no trace at all, but long enough to have a header")
    first, second = folders.once(), folders.once()
    assert first.returncode == 0 and "notes.txt: not a trace" in first.stderr, first
    equal((second.returncode, second.stderr, folders.done()), (0, "", []))


@test
def once_waits_for_files_that_are_new_and_says_what_it_leaves():
    folders = Folders()
    folders.add("a.trace")
    os.utime(os.path.join(folders.traces, "a.trace"))
    p = subprocess.run([*folders.command("--once"), "--settle=100ms"], capture_output=True, text=True, timeout=LIMIT, env=ENV)
    equal((p.returncode, p.stderr, folders.done()), (0, "", ["a.trace"]))
    # A trace that it leaves unexported is reported.
    folders.add("b.trace")
    folders.add("a2.trace")
    os.utime(os.path.join(folders.traces, "b.trace"))
    os.utime(os.path.join(folders.traces, "a2.trace"), (0, 0))
    waiting = [*folders.command("--once"), "--settle=1h"]
    process = subprocess.Popen(waiting, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENV)
    assert process.stdout.readline().endswith("a2.trace\n")
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 3 and "not done" in err, (process.returncode, out, err)
    equal(folders.done(), ["a.trace", "a2.trace"])


@test
def a_damaged_trace_is_exported_and_told_by_the_status():
    folders = Folders()
    path = folders.add("cut.trace")
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) * 3 // 4)
    command = [TRAIL, "watch", "--once", "--settle=0", folders.traces, "-o", folders.tables]
    p = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=ENV)
    if "DuckDB" in p.stderr:
        raise Skip("no libduckdb.so")
    assert p.returncode == 1 and "cut.trace" in p.stderr and not p.stdout, p
    assert os.listdir(os.path.join(folders.tables, "events"))
    equal(subprocess.run(command, capture_output=True, timeout=LIMIT, env=ENV).returncode, 0)  # it is done


@test
def what_fails_is_tried_again_by_the_next_start():
    folders = Folders()
    folders.add("a.trace")
    failing = subprocess.run(
        [TRAIL, "watch", "--once", "--settle=0", "--run=exit 7", folders.traces, "-o", folders.tables],
        capture_output=True, text=True, timeout=LIMIT, env=ENV,
    )  # fmt: skip
    assert failing.returncode == 3 and "exit code 7" in failing.stderr, failing
    equal((folders.once().returncode, folders.done()), (0, ["a.trace"]))


def endless(folders):
    """A command that never ends, and the file to which it writes its PID."""
    pid = folders.log + ".pid"
    return f"--run=echo $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 100000", pid


def has_ended(pid):
    with open(pid) as file:
        try:
            os.kill(int(file.read()), 0)
        except ProcessLookupError:
            return True
    return False


@test
def a_signal_ends_a_trace_that_takes_forever_and_names_it():
    folders = Folders()
    path = folders.add("a.trace")
    run, pid = endless(folders)
    process = folders.watch(run)
    folders.until(lambda done: os.path.exists(pid))
    code, out, err = stop(process)
    assert f"trail: {path}: interrupted\n" in err and "not done" in err, err
    assert has_ended(pid) and not out, out


@test
def a_trace_that_takes_longer_than_the_limit_is_ended_and_the_others_are_done():
    folders = Folders()
    path = folders.add("a.trace")
    folders.add("b.trace")
    slow, pid = endless(folders)
    p = folders.once(f"--run=case $TRAIL_FILE in *a.trace) {slow[6:]};; esac; echo b >>{folders.log}", "--limit=2s")
    assert p.returncode == 3 and f"trail: {path}: ended after the time limit" in p.stderr, p
    assert has_ended(pid)
    equal(folders.done(), ["b"])


@test
def the_export_reads_the_file_that_was_found_even_if_a_fifo_has_taken_its_place():
    folders = Folders()
    path = folders.add("a.trace")
    with open(path, "rb") as trace:
        os.unlink(path)
        os.mkfifo(path)
        p = subprocess.run([TRAIL, "export", "--to=parquet", "-o", folders.tables, "--", path], capture_output=True, text=True,
                           timeout=LIMIT, env={**ENV, "TRAIL_OPENED": str(trace.fileno())}, pass_fds=[trace.fileno()])  # fmt: skip
    if "DuckDB" in p.stderr or "duckdb" in p.stderr:
        raise Skip(p.stderr.strip())
    equal((p.returncode, p.stderr), (0, ""))


@test
def a_crash_leaves_no_trace_undone():
    """Kills it at any moment: a trace may be exported twice, but is never left out, and the ledger stays readable."""
    folders = Folders()
    names = [f"{i:02}.trace" for i in range(12)]
    for name in names:
        folders.add(name)
    for i in range(8):
        process = folders.watch()
        before = len(folders.done())
        folders.until(lambda done: len(done) > before or len(set(done)) == len(names))
        process.kill()
        process.communicate(timeout=LIMIT)
    # A truncated line.
    with open(os.path.join(folders.tables, ".trail-watch"), "r+") as ledger:
        text = ledger.read()
        ledger.truncate(len(text) - 3)
    equal(folders.once().returncode, 0)
    equal(sorted(set(folders.done())), names)
    assert len(folders.done()) <= len(names) + 9, folders.done()
    before = folders.done()
    folders.once()
    equal(folders.done(), before)


@test
def two_do_not_write_to_one_folder():
    folders = Folders()
    folders.add("a.trace")
    process = folders.watch()
    folders.until(bool)
    second = folders.once()
    assert second.returncode == 2 and "another trail watch" in second.stderr, second
    equal(stop(process, signal.SIGINT, after=1)[0], 0)
    equal(folders.once().returncode, 0)


@test
def tables_are_those_of_export():
    folders = Folders()
    path = folders.add("a.trace")
    other = os.path.join(WORK, "other")
    p = subprocess.run([TRAIL, "export", "--to=parquet", "--host=web1", path, "-o", other], capture_output=True, text=True, env=ENV)
    if "DuckDB" in p.stderr:
        raise Skip("no libduckdb.so")
    command = [TRAIL, "watch", "--once", "--settle=0", "--host=web1", folders.traces, "-o", folders.tables]
    p = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, env=ENV)
    equal((p.returncode, p.stdout, p.stderr), (0, path + "\n", ""))

    def files(folder):
        found = (os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)
        return sorted(name for name in found if name != ".trail-watch")

    equal(files(folders.tables), files(other))


sys.exit(main())
