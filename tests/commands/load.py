#!/usr/bin/env python3
"""trail load: each trace is stored once and completely, whatever happens meanwhile; its rows are those
of trail sql. TAP; skipped without DuckDB's library. ClickHouse has a test of its own.

usage: load.py TRAIL SOURCE_ROOT GENERATE
"""

import ctypes
import fcntl
import functools
import glob
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, content, equal, written  # noqa: E402
from killed import die_at_rename
from tap import main, test

TABLES = "events states goroutines stacks frames strings tasks regions logs samples findings traces".split()
# AddressSanitizer does not support exceptions in a library that a C program loads late.
SANITIZED = {"LD_PRELOAD": "libstdc++.so.6"} if "ASAN_OPTIONS" in os.environ else {}
TRACES = [os.path.join(ROOT, "examples", "traces", f"{name}.trace") for name in ("shop-go", "uv", "shop-c", "shop-go-stuck")]
DAMAGED = written("damaged.trace", content(EXAMPLES[1])[:30000])
count = 0


def run(*args, env=None, **more):
    p = subprocess.run([TRAIL, *args], capture_output=True, text=True, timeout=240, env={**os.environ, **SANITIZED, **(env or {})}, **more)
    return p.returncode, p.stdout, p.stderr


def fresh(name):
    global count
    count += 1
    return os.path.join(WORK, f"{name}-{count}")


def compared(table, of):
    """Returns a query for the number of stored rows, of rows that are not in the traces, and of missing rows."""
    ours, stored = (f"SELECT * EXCLUDE (day, file) FROM {rows}" for rows in (table, of))
    return f"""SELECT (SELECT count(*) FROM {of}), (SELECT count(*) FROM ({stored} EXCEPT ALL {ours})),
               (SELECT count(*) FROM ({ours} EXCEPT ALL {stored}))"""


@functools.cache
def printed(trace, written_ns):
    """How many events of a trace are printed. Another trace that is written to the same path has another time."""
    return len(run("print", trace)[1].splitlines())


def has(store, traces, damaged=0):
    """Asserts that the store has exactly the rows of these traces, in all tables."""
    kind, place = store.split(":", 1)
    files, before = f"read_parquet('{glob.escape(place)}/{{}}/*/*/*.parquet')", ""
    if kind == "duckdb":
        files, before = "store.{}", f"ATTACH '{place}' AS store (READ_ONLY);"
    sql = before + " UNION ALL ".join(compared(table, files.format(table)) for table in TABLES)
    code, out, err = run("sql", "--csv", "--allow-files", "--host=h", *traces, sql)
    equal((code, err if code != 1 else ""), (1 if damaged else 0, ""))
    answers = {table: tuple(map(int, line.split(","))) for table, line in zip(TABLES, out.splitlines()[1:])}
    equal({table: answer[1:] for table, answer in answers.items()}, dict.fromkeys(TABLES, (0, 0)))
    equal(answers["traces"][0], len(traces))
    # The printer, which does not use the tables, prints as many events.
    equal(answers["events"][0], sum(printed(trace, os.stat(trace).st_mtime_ns) for trace in traces))


def load(store, *words, **more):
    return run("load", f"--to={store}", "--host=h", *words, **more)


def stores():
    return [f"parquet:{fresh('parquet [1]*')}", f"duckdb:{fresh('database')}"]


@test
def every_trace_is_loaded_once_with_all_its_rows():
    for store in stores():
        equal(load(store, *TRACES[:2]), (0, "2 traces loaded\n", ""))
        has(store, TRACES[:2])
        # The same trace under another name, and one trace twice.
        copy = written("copy.trace", content(TRACES[1]))
        equal(load(store, *TRACES[:3], copy, TRACES[2]), (0, "1 trace loaded; 4 loaded before\n", ""))
        has(store, TRACES[:3])
        equal(load(store, TRACES[0]), (0, "0 traces loaded; 1 loaded before\n", ""))


def opened(path, run):
    """Returns how often a file is opened while `run` runs."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    opens, closes = 0x20, 0x10  # IN_OPEN, IN_CLOSE_NOWRITE; alternating events are not merged
    assert libc.inotify_add_watch(watch, path.encode(), opens | closes) >= 0, os.strerror(ctypes.get_errno())
    run()
    events, at, count = os.read(watch, 1 << 16), 0, 0
    os.close(watch)
    while at < len(events):
        mask, size = struct.unpack_from("=4xI4xI", events, at)
        count += mask & opens != 0
        at += 16 + size
    return count


@test
def a_trace_is_read_once_for_all_tables():
    trace = shutil.copy(TRACES[0], fresh("opened"))  # which no other test opens
    for store in stores():
        code = []
        count = opened(trace, lambda store=store, code=code: code.append(load(store, trace)[0]))
        equal(code, [0])
        # What it is, its ID, its day, its rows.
        equal(count, 4)


@test
def what_an_interrupted_run_left_in_a_database_is_removed():
    place = fresh("database")
    equal(load(f"duckdb:{place}", TRACES[0])[0], 0)
    # As after a kill between two transactions: the rows of `traces` are missing.
    rows = "".join(f"INSERT INTO s.{table} BY NAME FROM {table};" for table in TABLES[:-1])
    left = f"ATTACH '{place}' AS s; {rows} CREATE TABLE s.trail_unfinished AS SELECT trace FROM traces"
    equal(run("sql", "--allow-files", "--host=h", TRACES[1], left)[0], 0)
    warned = f"trail: {place}: its last batch is incomplete; 'trail load --to=duckdb:{place} TRACE...' removes it\n"
    equal(run("sql", "--csv", f"duckdb:{place}", "SELECT count(*) AS n FROM traces"), (0, "n\n1\n", warned))
    equal(load(f"duckdb:{place}", *TRACES[:2]), (0, "1 trace loaded; 1 loaded before\n", ""))
    has(f"duckdb:{place}", TRACES[:2])
    equal(run("sql", "--csv", f"duckdb:{place}", "SELECT count(*) AS n FROM traces"), (0, "n\n2\n", ""))


def pieces(count):
    """Traces of one day, which differ."""
    paths = [written(f"piece-{i}.trace", content(EXAMPLES[1])[: 20000 + 100 * i]) for i in range(count)]
    for path in paths:
        os.utime(path, (86400, 86400))
    return paths


def in_the_middle(store, trace, act):
    """Calls `act` when a load has seen that a file is a trace, and has not yet read its rows."""
    pipe = fresh("pipe")
    os.mkfifo(pipe)
    p = subprocess.Popen([TRAIL, "load", f"--to={store}", "--host=h", trace, pipe], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True, env={**os.environ, **SANITIZED})  # fmt: skip
    with open(pipe, "wb"):  # when it is opened for reading, too
        act()
    out, err = p.communicate(timeout=240)
    return p.returncode, out, err


@test
def a_trace_that_is_removed_meanwhile_is_not_loaded():
    for store in stores():
        trace = shutil.copy(TRACES[0], fresh("removed"))
        code, out, err = in_the_middle(store, trace, lambda trace=trace: os.remove(trace))
        equal((code, out), (3, "0 traces loaded; 2 files not readable\n"))
        assert f"{trace}: No such file" in err, err
        equal(load(store, TRACES[0]), (0, "1 trace loaded\n", ""))


@test
def only_one_writes_to_a_database():
    for store in stores():
        equal(load(store, TRACES[1])[0], 0)
        second = []
        equal(in_the_middle(store, TRACES[0], lambda store=store, second=second: second.append(load(store, TRACES[0])))[:2],
              (1, "1 trace loaded; 1 file not readable\n"))
        equal(second, [(3, "0 traces loaded\n", f"trail: {store.split(':', 1)[1]}: another trail load writes there\n")])
        has(store, TRACES[:2])


@test
def a_file_that_cannot_be_written_is_reported_once_and_nothing_is_loaded():
    folder, other = fresh("parquet"), fresh("parquet")
    equal(load(f"parquet:{other}", *TRACES)[0], 0)
    names = [os.path.relpath(path, other) for path in glob.glob(f"{other}/logs/*/*/*.parquet")]
    assert len(names) > 0

    def short_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    def taken_names():
        for name in names:
            os.makedirs(os.path.join(folder, name))

    for prepare, reason in ((short_files, "File too large"), (taken_names, "directory")):
        code, out, err = load(f"parquet:{folder}", *TRACES, preexec_fn=prepare)
        equal((code, out, err.count("trail: "), reason in err), (3, "0 traces loaded\n", 1, True), err)
        equal([path for path in glob.glob(f"{folder}/**/*.parquet", recursive=True) if os.path.isfile(path)], [])


@test
def large_tables_have_several_row_groups_with_their_extremes():
    folder, traces = fresh("parquet"), [fresh("large") for _ in range(2)]
    for seed, trace in enumerate(traces, 1):
        subprocess.run([sys.argv[3], "--events=90K", f"--seed={seed}", "-o", trace], check=True, capture_output=True)
    equal(load(f"parquet:{folder}", *traces), (0, "2 traces loaded\n", ""))
    has(f"parquet:{folder}", traces)
    (path,) = glob.glob(f"{folder}/events/*/*/*.parquet")
    of = glob.escape(path)
    for column, cast in (("time_ns", "BIGINT"), ("id", "BIGINT"), ("stack", "BIGINT"), ("kind", "VARCHAR"), ("reason", "VARCHAR")):
        stated, right = (json.loads(run("sql", "--json", "--allow-files", traces[0], query)[1])[0] for query in (
            f"""SELECT min(stats_min_value::{cast}) AS least, max(stats_max_value::{cast}) AS greatest, sum(stats_null_count) AS nulls,
                       sum(row_group_num_rows) AS n FROM parquet_metadata('{of}') WHERE path_in_schema = '{column}'""",
            f"""SELECT min({column}::{cast}) AS least, max({column}::{cast}) AS greatest, count(*) - count({column}) AS nulls, count(*) AS n
                FROM read_parquet('{of}')"""))  # fmt: skip
        equal({key: str(value) for key, value in stated.items()}, {key: str(value) for key, value in right.items()}, column)
    groups = json.loads(run("sql", "--json", "--allow-files", traces[0],
                            f"SELECT DISTINCT row_group_id, row_group_num_rows AS n FROM parquet_metadata('{of}')")[1])  # fmt: skip
    assert len(groups) > 1 and all(group["n"] <= 122880 for group in groups), groups


@test
def short_memory_is_an_error_after_which_a_load_is_complete():
    if SANITIZED:
        return  # AddressSanitizer reserves too much
    traces = pieces(4)
    for size in (300 << 20, 500 << 20, 900 << 20):
        for store in stores():
            code, _, err = load(store, *traces, preexec_fn=lambda size=size: resource.setrlimit(resource.RLIMIT_AS, (size, size)))
            assert code in (1, 3), (size, code, err)
            assert err.startswith("trail: "), err
            load(store, *traces)
            equal(run("sql", "--csv", store, "SELECT count(*) AS n, count(DISTINCT trace) AS d FROM traces")[:2], (0, "n,d\n4,4\n"))
            equal(int(run("sql", "--csv", store, "SELECT count(*) AS n FROM events")[1].split()[1]),
                  sum(len(run("print", trace)[1].splitlines()) for trace in traces))  # fmt: skip


@test
def several_traces_are_read_at_once():
    traces = pieces(5)
    for store in stores():
        equal(load(store, *traces)[:2], (1, "5 traces loaded, of 5 only the good part\n"))
        has(store, traces, damaged=1)


# Tables, views, and functions.
STORED = "regions traces threads holds wakes ranges counters processes thread process thread_state sched slice counter".split() + [
    """(SELECT since_start(begin_ns, file) AS since, wall_ns(end_ns, file) AS wall, stack(stack, file) AS stack, path(stack, file) AS path,
               file FROM states WHERE stack IS NOT NULL)"""
]


@test
def a_store_answers_what_its_traces_answer():
    # Two with one name.
    other = fresh("other")
    os.mkdir(other)
    same = written(os.path.join(other, os.path.basename(TRACES[0])), content(EXAMPLES[3]))
    lines = run("sql", "--csv", "--host=h", *TRACES, same, "SELECT file, trace FROM traces")[1].split()[1:]
    # In the order of the numbers that views make.
    traces = sorted((line.split(",") for line in lines), key=lambda trace: f"{os.path.basename(trace[0])}-{trace[1]}")
    traces = [file for file, _ in traces]
    equal(len(traces), 5)

    def rows_of(rows, pattern, *words):
        code, text, err = run("sql", "--json", *words, f"SELECT * FROM {rows}")
        equal((code, err), (0, ""))
        return sorted(json.dumps(row, sort_keys=True) for row in json.loads(re.sub(pattern, r"\1", text)))

    ours = {rows: rows_of(rows, r'(?<=")/[^"]*/([^"/]*\.trace")', "--host=h", *traces) for rows in STORED}
    for store in stores():
        equal(load(store, *traces)[0], 0)
        for rows in STORED:
            assert ours[rows], rows
            equal(rows_of(rows, r"(\.trace)-[0-9a-f]{16}", store), ours[rows], rows)
        code, named, err = run("sql", "--csv", store, "@findings")
        equal((code, err, len(named.splitlines())), (0, "", len(run("sql", "--csv", *traces, "@findings")[1].splitlines())))
        for query in "SELECT * FROM read_csv('/etc/passwd')", f"COPY (SELECT 1) TO '{WORK}/outside'":
            code, out, err = run("sql", store, query)
            assert code == 2 and "Permission Error" in err, (store, query, err)
    equal(run("sql", "--allow-files", store, "SELECT count(*) > 0 AS has FROM read_csv('/etc/passwd', header = false, sep = '|')")[:2],
          (0, "has\ntrue\n"))


@test
def the_document_queries_what_was_loaded():
    """DuckDB's library answers for its program, which is not in Debian or npm."""
    with open(os.path.join(ROOT, "docs", "fleet.md")) as file:
        part = file.read()
    part = part[part.index("## trail sql") : part.index("## ClickHouse")]
    (ours, schema), (sql,) = (re.findall(f"```{language}\n(.*?)```", part, re.S) for language in ("sh", "sql"))
    folder, place = fresh("document"), fresh("parquet")
    os.mkdir(folder)
    for store in f"parquet:{place}", f"duckdb:{folder}/traces.db":
        equal(load(store, *TRACES)[0], 0)
    program = written(os.path.join(folder, "duckdb"), f"#!/bin/sh\ncat $2 - | '{TRAIL}' sql --allow-files --json {TRACES[0]}\n".encode())
    os.chmod(program, 0o755)
    os.symlink(TRAIL, os.path.join(folder, "trail"))
    env = {**os.environ, **SANITIZED, "PATH": f"{folder}:{os.environ['PATH']}"}
    assert "day = current_date - 1" in sql, sql
    sql = sql.replace("day = current_date - 1", "day <= current_date")
    answers = []
    for script, asked in (ours, ""), (schema, sql):
        p = subprocess.run(["sh", "-e", "-c", script.replace("/srv/traces", place)], input=asked, cwd=folder, env=env,
                           capture_output=True, text=True, timeout=240)  # fmt: skip
        equal((p.returncode, p.stderr), (0, ""), script)
        answers.append(p.stdout)
    assert '"ns":' in answers[0] and "waits" in answers[0], answers[0]
    code, right, err = run("sql", "--json", "--host=h", *TRACES, sql)
    assert json.loads(right), right
    equal((code, json.loads("[" + answers[1].rpartition("[")[2])), (0, json.loads(right)))


@test
def watch_loads_what_appears_as_the_document_shows():
    with open(os.path.join(ROOT, "docs", "fleet.md")) as file:
        (script,) = re.findall(r"^trail watch .* --run=.*", file.read(), re.M)
    folder, database = fresh("watched"), fresh("database")
    os.mkdir(folder)
    traces = [shutil.copy(trace, folder) for trace in (TRACES[0], DAMAGED)]
    for trace in traces:
        os.utime(trace, (1e9, 1e9))  # not still being written
    for old, new in (("clickhouse://db1", f"--host=h --to=duckdb:{database}"), ("--to=--host", "--host"), ("/var/traces", folder),
                     ("/srv/watch", fresh("ledger")), ("trail ", f"{TRAIL} "), (" watch ", " watch --once ")):  # fmt: skip
        script = script.replace(old, new)
    p = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=240, env={**os.environ, **SANITIZED})
    equal((p.returncode, "not done" in p.stderr), (0, False), p.stderr)
    has(f"duckdb:{database}", traces, damaged=1)


@test
def a_store_takes_neither_traces_nor_their_options():
    store = f"duckdb:{fresh('database')}"
    for words, reason in (
        ((store, TRACES[0], "@traces"), "a store cannot be combined with traces"),
        (("--from=1s", store, "@traces"), "--from, --to, "),
        (("--cache", store, "@traces"), "--from, --to, "),
    ):
        code, out, err = run("sql", *words)
        assert (code, out) == (2, "") and reason in err, (words, code, err)
    for place in (store, f"parquet:{fresh('parquet')}", f"parquet:{TRACES[0]}", f"duckdb:{WORK}"):
        code, out, err = run("sql", place, "@traces")
        assert (code, out) == (3, "") and f"{place}: there is no store of 'trail load'" in err, (place, code, err)
    # A folder is no trace, but may be a store.
    folder = fresh("parquet")
    equal(load(f"parquet:{folder}", TRACES[0])[0], 0)
    for place, hint in ((WORK, False), (folder, True)):
        code, out, err = run("sql", place, "@traces")
        assert (code, out, f"trail sql parquet:{place}\n" in err) == (3, "", hint), (place, code, err)


@test
def columns_that_another_version_did_not_have_are_null():
    folder = fresh("versions")
    store = f"parquet:{folder}"
    equal(load(store, *TRACES)[0], 0)
    older, *_ = sorted(glob.glob(f"{folder}/goroutines/host=*/day=*/*.parquet"))
    copy = f"COPY (SELECT * EXCLUDE (exec_ns) FROM read_parquet('{older}', hive_partitioning = false)) TO '{older}.new' (FORMAT parquet)"
    equal(run("sql", "--allow-files", TRACES[0], copy)[0], 0)
    os.rename(f"{older}.new", older)
    code, out, err = run("sql", "--csv", store, "SELECT count(*) > count(exec_ns) AS lack, count(exec_ns) > 0 AS has FROM goroutines")
    equal((code, out), (0, "lack,has\ntrue,true\n"), err)


@test
def a_folder_may_have_other_files():
    folder = fresh("traces")
    os.mkdir(folder)
    for name, source in ("a.trace", TRACES[0]), ("b.trace", TRACES[3]), (".c.trace", TRACES[2]):
        shutil.copy(source, os.path.join(folder, name))
    written(os.path.join(folder, "readme"), b"no trace")
    os.mkdir(os.path.join(folder, "d"))
    for store in stores():
        equal(load(store, folder), (0, "2 traces loaded; 1 file not a trace\n", ""))
        has(store, [os.path.join(folder, name) for name in ("a.trace", "b.trace")])


@test
def of_a_damaged_trace_the_good_part_is_loaded():
    for store in stores():
        code, out, err = load(store, TRACES[0], DAMAGED)
        equal((code, out), (1, "2 traces loaded, of 1 only the good part\n"))
        # A single message, although each table reads the file.
        equal(err.count("damaged.trace"), 1)
        has(store, [TRACES[0], DAMAGED], damaged=1)


@test
def a_file_that_cannot_be_read_keeps_no_other_out():
    other = written("text.trace", b"hello, world\n" * 100)
    for store in stores():
        code, out, err = load(store, os.path.join(WORK, "missing"), TRACES[0], other)
        equal((code, out), (3, "1 trace loaded; 2 files not readable\n"))
        assert "missing: No such file" in err and "not a Go execution trace" in err, err
        has(store, TRACES[:1])


@test
def traces_of_a_day_share_their_files():
    folder = fresh("parquet")
    for trace, day in zip(EXAMPLES, (1, 2, 1, 1)):
        os.utime(shutil.copy(trace, WORK), (day * 86400, day * 86400))
    words = [os.path.join(WORK, os.path.basename(trace)) for trace in EXAMPLES]
    equal(load(f"parquet:{folder}", *words)[:2], (0, "4 traces loaded\n"))
    for table in TABLES:
        days = sorted(path.split("/")[-2] for path in glob.glob(f"{folder}/{table}/host=h/*/*.parquet"))
        equal(days, ["day=1970-01-02", "day=1970-01-03"])


@test
def what_an_interrupted_run_left_is_not_counted_and_removed():
    folder = fresh("parquet")
    store = f"parquet:{folder}"
    equal(load(store, TRACES[0])[0], 0)
    killed = subprocess.run([TRAIL, "load", f"--to={store}", "--host=h", TRACES[1]], capture_output=True,
                            preexec_fn=die_at_rename, env={**os.environ, **SANITIZED})
    equal(killed.returncode, -signal.SIGSYS)
    assert glob.glob(f"{folder}/*/*/*/.load-*")
    # As after a kill between renaming two files: the last one is missing.
    equal(load(store, TRACES[2])[0], 0)
    assert not glob.glob(f"{folder}/*/*/*/.load-*")
    [*_, last] = sorted(glob.glob(f"{folder}/traces/*/*/*.parquet"), key=os.path.getmtime)
    os.remove(last)
    equal(load(store, TRACES[3])[0], 0)
    assert not glob.glob(f"{folder}/*/*/*/{os.path.basename(last)}")
    has(store, [TRACES[0], TRACES[3]])
    equal(load(store, *TRACES), (0, "2 traces loaded; 2 loaded before\n", ""))
    has(store, TRACES)


@test
def exports_into_the_same_folder_count():
    folder = fresh("parquet")
    equal(run("export", "--to=parquet", "--host=h", TRACES[0], "-o", folder)[0], 0)
    equal(load(f"parquet:{folder}", *TRACES[:2]), (0, "1 trace loaded; 1 loaded before\n", ""))
    has(f"parquet:{folder}", TRACES[:2])


@test
def what_is_in_a_folder_is_known_without_duckdb():
    without = {"env": {"TRAIL_DUCKDB": f"{WORK}/none"}}
    traces = pieces(17)
    folder = small_files(traces)
    store = f"parquet:{folder}"
    known = (0, "0 traces loaded; 17 loaded before\n", "")
    equal(load(store, *traces, **without), known)
    equal(load(store, "--merge")[:2], (0, f"0 traces loaded; {17 * 12} files merged into 12\n"))
    equal(load(store, *traces, **without), known)
    # Another program writes rows only.
    file = glob.glob(f"{glob.escape(folder)}/traces/*/*/*.parquet")[0]
    sql = f"COPY (FROM read_parquet('{glob.escape(file)}', hive_partitioning = false)) TO '{folder}/new.parquet'"
    equal(run("sql", "--allow-files", traces[0], sql)[0], 0)
    os.rename(f"{folder}/new.parquet", file)
    equal(load(store, *traces, **without)[0], 3)
    equal(load(store, *traces), known)


def files_of(folder):
    """How many files each table has."""
    return {table: len(glob.glob(f"{glob.escape(folder)}/{table}/host=h/day=*/*.parquet")) for table in TABLES}


def small_files(traces):
    """A folder with the files of one load of each trace, but for the last, which was exported."""
    folder = fresh("parquet [1]*")
    for trace in traces[:-1]:
        equal(load(f"parquet:{folder}", trace)[:2], (1, "1 trace loaded, of 1 only the good part\n"))
    equal(run("export", "--to=parquet", "--host=h", "-o", folder, traces[-1])[0], 1)
    equal(files_of(folder), dict.fromkeys(TABLES, len(traces)))
    return folder


@test
def small_files_of_a_day_are_merged():
    traces = pieces(17)
    folder = small_files(traces[:16])
    store = f"parquet:{folder}"
    # Those of few loads stay, and need no trace on the command line.
    equal(load(store, "--merge"), (0, "0 traces loaded\n", ""))
    equal(files_of(folder), dict.fromkeys(TABLES, 16))
    others = [f"{folder}/events/host=h/day=1970-01-02/{name}" for name in ("notes", ".run.1.part", "export.parquet")]
    for path in others[:2]:
        written(path, b"notes")
    # Of an export that was killed: the table `traces` has no such file, and a new export replaces it.
    shutil.copy(glob.glob(f"{glob.escape(folder)}/events/*/*/load-*.parquet")[0], others[2])
    day = os.path.dirname(others[0])
    os.chmod(day, 0o2750)
    equal(load(store, "--merge", traces[16])[:2], (1, f"1 trace loaded, of 1 only the good part; {17 * 12} files merged into 12\n"))
    equal([path for path in others if not os.path.exists(path)], [])
    equal(os.stat(day).st_mode & 0o7777, 0o2750)
    os.remove(others[2])
    equal(files_of(folder), dict.fromkeys(TABLES, 1))
    equal(sorted(os.listdir(folder)), sorted(TABLES))
    has(store, traces, damaged=1)
    equal(load(store, "--merge", *traces), (0, "0 traces loaded; 17 loaded before\n", ""))


@test
def a_merge_may_be_killed_at_any_time():
    traces = pieces(17)
    folder = small_files(traces)
    store, old = f"parquet:{folder}", fresh("old")
    shutil.copytree(folder, old)
    written(f"{folder}/events/host=h/day=1970-01-02/notes", b"notes")
    killed = subprocess.run([TRAIL, "load", f"--to={store}", "--host=h", "--merge"], capture_output=True,
                            preexec_fn=die_at_rename, env={**os.environ, **SANITIZED})
    equal(killed.returncode, -signal.SIGSYS)
    beside = f"{folder}/.trail-merge"
    # With a link to what stays.
    assert len(os.listdir(beside)) == 2 and "notes" in os.listdir(beside), os.listdir(beside)
    has(store, traces, damaged=1)
    equal(load(store, traces[0]), (0, "0 traces loaded; 1 loaded before\n", ""))
    assert not os.path.exists(beside)
    # Killed after each of the tables, and before the old files were removed.
    merged = fresh("merged")
    shutil.copytree(folder, merged)
    equal(load(f"parquet:{merged}", "--merge")[0], 0)
    for done in (1, len(TABLES) - 1):
        shutil.rmtree(folder)
        shutil.copytree(old, folder)
        for table in TABLES[:done]:
            shutil.rmtree(f"{folder}/{table}")
            shutil.copytree(f"{merged}/{table}", f"{folder}/{table}")
        shutil.copytree(f"{old}/{TABLES[done - 1]}/host=h/day=1970-01-02", beside)
        equal(load(store, *traces), (0, "0 traces loaded; 17 loaded before\n", ""))
        has(store, traces, damaged=1)
        # With the same rows, as in the test above.
        equal(load(store, "--merge")[0], 0)
        equal(files_of(folder), dict.fromkeys(TABLES, 1))
        assert not os.path.exists(beside)


@test
def a_folder_that_is_a_link_is_not_merged():
    """The exchange would put the merged files into the place of the link."""
    traces = pieces(17)
    folder, other = small_files(traces), fresh("other")
    [day] = glob.glob(f"{glob.escape(folder)}/events/host=h/day=*")
    shutil.move(day, other)
    os.symlink(other, day)
    code, out, err = load(f"parquet:{folder}", "--merge")
    equal((code, out), (3, "0 traces loaded\n"))
    assert err.endswith("cannot be merged: Not a directory\n"), err
    assert os.path.islink(day)
    has(f"parquet:{folder}", traces, damaged=1)


@test
def only_one_writes_to_a_folder():
    folder = fresh("parquet")
    os.mkdir(folder)
    held = os.open(folder, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    code, _, err = load(f"parquet:{folder}", TRACES[0])
    os.close(held)
    equal(code, 3)
    assert "another trail load writes there" in err, err
    equal(os.listdir(folder), [])


@test
def a_store_that_cannot_be_written_is_an_error():
    file = written("file", b"")
    for store in (f"parquet:{file}", f"duckdb:{WORK}"):
        code, out, err = load(store, TRACES[0])
        equal((code, out), (3, "0 traces loaded\n"))
        assert err.startswith("trail: "), err
    for words in ([], ["--to=parquet:", TRACES[0]], ["--to=oracle:db", TRACES[0]], [TRACES[0]], ["--to=duckdb:x"], ["--merge"], ["--merge", "--to=duckdb:x"],
                  ["--to=duckdb:x", "--host=../x", TRACES[0]]):  # fmt: skip
        equal(run("load", *words)[0], 2)


@test
def rows_that_are_no_ids_of_traces_are_taken_as_text():
    # As DuckDB strings, each pair of numbers would be a length and an address.
    rows = "SELECT if(range % 2 = 0, 200, 4702111234474983745)::BIGINT AS trace FROM range(2048) UNION ALL SELECT NULL"
    folder, database = fresh("parquet"), fresh("database")
    for store in (f"parquet:{folder}", f"duckdb:{database}"):
        equal(load(store, TRACES[0])[0], 0)
    [path] = glob.glob(f"{folder}/traces/*/*/*.parquet")
    equal(run("sql", "--allow-files", TRACES[0], f"COPY ({rows}) TO '{path}.parquet' (FORMAT parquet)")[0], 0)
    equal(run("sql", "--allow-files", TRACES[0], f"""ATTACH '{database}' AS s; DROP TABLE s.traces;
              CREATE TABLE s.traces AS SELECT * REPLACE (NULL::BIGINT AS trace) FROM traces LIMIT 0; INSERT INTO s.traces (trace) {rows}""")[0], 0)
    os.remove(path)
    equal(load(f"parquet:{folder}", TRACES[0]), (0, "1 trace loaded\n", ""))
    # The ID of a trace does not fit into such a column.
    code, out, err = load(f"duckdb:{database}", TRACES[0])
    equal((code, out), (3, "0 traces loaded\n"))
    assert "Conversion Error" in err, err


@test
def a_view_in_a_database_is_refused():
    """The view could be endless."""
    database = fresh("database")
    equal(run("sql", "--allow-files", TRACES[0], f"""ATTACH '{database}' AS s;
              CREATE VIEW s.traces AS SELECT range::VARCHAR AS trace FROM range(1000000000000000)""")[0], 0)
    code, out, err = load(f"duckdb:{database}", TRACES[0])
    equal((code, out), (3, "0 traces loaded\n"))
    assert "is not an table" in err or "is not a table" in err or "view" in err.lower(), err


@test
def only_files_of_tables_are_removed():
    folder, other = fresh("parquet"), fresh("other")
    paths = [f"{place}/host=h/day=1970-01-01/{name}" for place in (f"{folder}/copy", other) for name in ("load-1.parquet", ".load-1.part")]
    for path in paths:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        written(path, b"")
    os.symlink(other, f"{folder}/linked")
    equal(load(f"parquet:{folder}", TRACES[0]), (0, "1 trace loaded\n", ""))
    equal([path for path in paths if not os.path.exists(path)], [])


@test
def names_with_quotes_and_patterns_are_names():
    folder = fresh("it's [a-z]* '' ; DROP TABLE traces")
    os.mkdir(folder)
    trace = shutil.copy(TRACES[0], os.path.join(folder, "it's $(touch x);`id`\n.trace"))
    for store in (f"parquet:{folder}/store", f"duckdb:{folder}/database"):
        code, out, err = run("load", f"--to={store}", "--host=h", trace)
        equal((code, out, err), (0, "1 trace loaded\n", ""))
        equal(load(store, trace), (0, "0 traces loaded; 1 loaded before\n", ""))


def fake_clickhouse(script):
    """Returns an environment in which this shell script answers the queries of clickhouse-client."""
    folder = fresh("bin")
    os.mkdir(folder)
    path = written(os.path.join(folder, "clickhouse-client"), f"""#!/bin/sh
case "$*" in *SELECT*) {script};; *) exec cat > /dev/null;; esac
""".encode())
    os.chmod(path, 0o755)
    return {"PATH": folder + ":" + os.environ["PATH"]}


def load_into(script):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    p = subprocess.run([TRAIL, "load", "--to=clickhouse://db", "--host=h", TRACES[0]], capture_output=True, text=True, timeout=240,
                       env={**os.environ, **fake_clickhouse(script)}, preexec_fn=None if SANITIZED else limit)
    return p.returncode, p.stdout, p.stderr


@test
def a_server_that_lists_no_ids_is_an_error():
    failed = (3, "0 traces loaded\n", "trail: clickhouse://db: clickhouse-client has failed\n")
    equal(load_into("printf '%s\\n' 0123456789abcdef 00000000000000ff"), (0, "1 trace loaded\n", ""))
    # A line without an end.
    equal(load_into("cat /dev/zero 2>/dev/null"), failed)
    equal(load_into("echo; yes 0123456789abcdef0123456789abcdef0123456789abcdef 2>/dev/null"), failed)
    equal(load_into("printf 0123456789abcdef"), failed)
    equal(load_into("exit 1"), failed)


if run("sql", TRACES[3], "select 1 as one")[0] != 0:
    print("1..0 # SKIP no libduckdb.so")
    sys.exit(0)
sys.exit(main())
