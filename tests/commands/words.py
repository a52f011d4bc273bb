#!/usr/bin/env python3
"""What made a trace, and the vocabulary that commands use for it. TAP.

usage: words.py TRAIL SOURCE_ROOT records|records-not THREAD_POOL CC...
"""

import glob
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import command
from command import TRAIL, WORK
from tap import Skip, main, test

CAN_RECORD, CC = sys.argv[3] == "records", sys.argv[5:]
ENV = os.environ | {"LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "160"}

# Three threads wait for a mutex; the main thread holds it until all of them sleep, and 30 ms
# longer. If a file is named, this repeats until the file exists.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_mutex_t stock_mu = PTHREAD_MUTEX_INITIALIZER;
static int sleeps(int tid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'S';
}
static void *worker(void *arg)
{
    *(volatile int *)arg = gettid();
    pthread_mutex_lock(&stock_mu);
    pthread_mutex_unlock(&stock_mu);
    return arg;
}
int main(int argc, char **argv)
{
    pthread_t threads[3];
    do {
        volatile int tids[3] = {0};
        pthread_mutex_lock(&stock_mu);
        for (int i = 0; i < 3; i++)
            pthread_create(&threads[i], NULL, worker, (void *)&tids[i]);
        for (int i = 0; i < 3; i++) {
            while (!tids[i] || !sleeps(tids[i]))
                usleep(1000);
        }
        usleep(30000);
        pthread_mutex_unlock(&stock_mu);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
    } while (argc > 1 && access(argv[1], F_OK) != 0);
    return 0;
}
"""


def path(name):
    return os.path.join(WORK, name)


def run(*args, stdin=None, status=0):
    p = subprocess.run([TRAIL, *args], capture_output=True, env=ENV, input=stdin)
    assert p.returncode == status, f"{args}: status {p.returncode}\n{p.stdout.decode()}{p.stderr.decode()}"
    return p.stdout.decode()


def info(trace):
    return json.loads(run("info", "--json", trace))


def made_by(trace):
    """What info reports without decoding events; `summary` shows what a reader finds."""
    got = info(trace)
    return got.get("made_by"), got.get("task_word")


def program():
    if not CAN_RECORD:
        raise Skip("programs cannot be recorded here")
    if not os.path.exists(path("program")):
        with open(path("program.c"), "w") as f:
            f.write(PROGRAM)
        subprocess.run([*CC, "-D_GNU_SOURCE", "-g", "-O1", "-pthread", "-o", path("program"), path("program.c")], check=True)
    return path("program")


def recorded():
    """The trace of the program, recorded once."""
    if not os.path.exists(path("recorded.trace")):
        run("record", "-q", "-o", path("recorded.trace"), "--", program())
    return path("recorded.trace")


def assembled(name, version, *lines):
    """A trace with one goroutine, and strings that no event refers to."""
    strings = "".join(f'String id={100 + i}\n\tdata="{line}"\n' for i, line in enumerate(lines))
    if version < 22:
        text = f"""Trace Go1.{version}
Batch p=0 ticks=1000
GoCreate dt=1 g=1 stack=1 stk=0
ProcStart dt=1 thread=100
GoStartLocal dt=1 g=1
GoEnd dt=9
ProcStop dt=9
Batch p=0 ticks=2000
Frequency freq=15625000
{strings}"""
    else:
        text = f"""Trace Go1.{version}
EventBatch gen=1 m=1 time=10 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=1 gstatus=2
GoDestroy dt=1000
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Frequency freq=1000000000
EventBatch gen=1 m=18446744073709551615 time=2 size=auto
Strings
{strings}"""
    return command.assembled(name, text)


FIBER = "trail.made by=host word=fiber"


# MARK: What made a trace


@test
def recorded_programs_are_marked():
    assert made_by(recorded()) == ("trail record", None)
    assert "  made by      trail record\n" in run("info", recorded())


@test
def a_trace_that_names_nothing_is_of_go():
    for version in (11, 21, 22, 23):
        got = assembled(f"go{version}", version, "something")
        assert made_by(got) == (None, None)
        assert "made by" not in run("info", got)


@test
def the_word_of_a_host_is_found_in_both_kinds_of_formats():
    for version in (11, 21, 22, 23):
        got = assembled(f"fiber{version}", version, "something", FIBER)
        assert made_by(got) == ("libtrail-record", "fiber"), version


@test
def info_finds_it_in_a_file_as_in_a_pipe():
    with open(recorded(), "rb") as f:
        piped = json.loads(run("info", "--json", "-", stdin=f.read()))
    for key in ("made_by", "batches_by_kind"):
        assert piped[key] == info(recorded())[key], key


@test
def the_kind_of_a_batch_in_a_file_does_not_depend_on_where_it_stands():
    """64 bytes of a file are examined at once: a header at the end of them must be found."""
    for size in range(1, 64):
        text = f"""Trace Go1.23
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Strings
String id=1
\tdata="{size * 'x'}"
EventBatch gen=1 m=18446744073709551615 time=2 size=auto
Stacks
Stack id=1 nframes=0
EventBatch gen=1 m=18446744073709551615 time=1 size=auto
Frequency freq=1000000000
"""
        kinds = info(command.assembled("kinds", text))["batches_by_kind"]
        assert {kind: of["count"] for kind, of in kinds.items()} == {"strings": 1, "stacks": 1, "sync": 1}, (size, kinds)


@test
def lines_that_only_look_so_are_ignored():
    for i, line in enumerate(
        (
            "trail.made by=",
            "trail.made by=host",
            "trail.made by=host word=",
            "trail.made by=host word= fiber",
            "trail.made by=host word=fi\\nber",
            "trail.made by=host word=fi\\x1b[31mber",
            "trail.made by=host word=\\xff\\xfe",
            "trail.made by=host word=\\u202efiber",
            "trail.made by=host word=" + 33 * "x",
            "trail.made by=records",
            "Trail.made by=record",
            "xtrail.made by=record",
        )
    ):
        for version in (21, 23):
            assert made_by(assembled(f"hostile{i}", version, line)) == (None, None), (version, line)


@test
def of_two_lines_the_first_counts():
    got = assembled("two", 23, FIBER, "trail.made by=record")
    assert made_by(got) == ("libtrail-record", "fiber")


@test
def conversion_keeps_it():
    for version in (11, 21, 22, 23):
        source = assembled(f"fiber{version}", version, FIBER)
        for more in (["--to=go1.22"], ["--to=go1.26"], ["--anonymize"], ["--goroutine=1"]):
            run("convert", "-o", path("converted.trace"), *more, source)
            assert made_by(path("converted.trace")) == ("libtrail-record", "fiber"), (version, more)
    run("convert", "-o", path("part.trace"), "--from=1ms", recorded())
    assert made_by(path("part.trace"))[0] == "trail record"


@test
def merging_keeps_it_if_all_agree():
    fiber, job = assembled("a", 23, FIBER), assembled("b", 23, "trail.made by=host word=job")
    other, go = assembled("c", 22, FIBER), assembled("d", 23)
    for sources, want in (((fiber, other), "fiber"), ((fiber, job), None), ((fiber, go), None), ((go, fiber), None)):
        run("merge", "--align=start", "-o", path("merged.trace"), *sources)
        assert made_by(path("merged.trace"))[1] == want, sources


@test
def symbolizing_keeps_it():
    run("symbolize", "-o", path("symbolized.trace"), recorded())
    assert made_by(path("symbolized.trace"))[0] == "trail record"


@test
def each_file_of_a_rotation_has_it():
    run("record", "-q", "--rotate=100ms", "-o", path("r.trace"), "--", program(), path("r.1.trace"))
    files = glob.glob(path("r.*trace"))
    assert len(files) > 1, files
    for file in files:
        assert made_by(file)[0] == "trail record", file


# MARK: Words of screens

# Words that a reader without knowledge of Go does not understand.
GO = re.compile(r"[Gg]oroutine|\bPs?\b|\bMs?\b|\bG ?[0-9]+\b|GOMAXPROCS|\bchan\b|select\b|no_P")
SCREENS = (
    ["summary"],
    ["goroutines"],
    ["goroutines", "--members"],
    ["goroutines", "--percentiles=block"],
    ["threads"],
    ["procs"],
    ["locks"],
    ["latency"],
    ["profile"],
    ["profile", "--type=sched"],
    ["info"],
    ["info", "--full"],
    ["why"],
    ["why", "-g", "2"],
    ["gc"],
    ["tasks"],
    ["regions"],
)


def screens(trace, *more):
    for columns in ("80", "160"):
        ENV["COLUMNS"] = columns
        for args in SCREENS:
            yield " ".join(args), run(*args, *more, trace)
    yield "print", run("print", *more, trace)
    yield "find", run("find", *more, trace, "block >1ms")
    yield "diff", run("diff", *more, trace, trace)
    yield "report", re.sub(r"(?s)<style.*?</style>|<script.*?</script>|<[^>]*>", " ", run("report", *more, trace))


@test
def no_screen_of_a_c_program_needs_gos_words():
    for name, text in screens(recorded()):
        found = GO.search(text)
        assert not found, f"{name}: {found[0]!r} in\n{text[max(0, found.start() - 200):found.end() + 100]}"


@test
def a_c_program_has_threads_and_cpu_slots():
    assert re.match(r".*: \S+ \S+, \d+ CPU slots?, 4 threads \(0 alive at the end\)", run("summary", recorded()))
    assert re.search(r"on average, of \d+ CPU slots?\n", run("summary", recorded()))
    assert run("goroutines", recorded()).startswith("4 threads, 0 alive at the end, in 2 groups")
    assert "critical path, ending in thread 1:" in run("why", "--window", recorded())
    assert "longest wait: thread " in run("locks", recorded())
    assert re.search(r"(?m)^thread \d+ worker: ", run("find", recorded(), "block[sync] >1ms"))


@test
def threads_are_the_table_of_goroutines_and_when_each_ran():
    table, threads = run("goroutines", recorded()), run("threads", recorded())
    assert threads.startswith(table + "\nrunning, over ")
    # Each line has a number and a TID, which members have as well.
    lines = re.findall(r"(?m)^thread (\d+) +TID +(\d+) ", threads)
    members = re.findall(r"(?m)^ *(\d+) +(\d+) ", run("goroutines", "--members", recorded()))
    assert len(lines) == 4 and sorted(lines) == sorted(members), f"{lines} {members}"
    tids = {str(row["id"]) for row in json.loads(run("threads", "--json", recorded()))["threads"]}
    assert {tid for _, tid in lines} == tids


@test
def one_is_one_and_two_are_two():
    one = assembled("one", 23, "trail.made by=record")
    assert run("goroutines", one).startswith("1 thread, 0 alive at the end, in 1 group")
    assert re.search(r", 1 CPU slot, 1 thread \(", run("summary", one))
    assert run("goroutines", assembled("one_go", 23)).startswith("1 goroutine, ")


@test
def the_option_chooses():
    for trace in (recorded(), assembled("fiber", 23, FIBER)):
        assert re.match(r"\d goroutines?, ", run("goroutines", "--words=go", trace))
        assert re.search(r" Ps?, \d goroutines? \(", run("summary", "--words=go", trace))
        assert re.search(r"(?m)^G +created +ended ", run("goroutines", "-m", "--words=go", trace))
        assert re.match(r" *M +seen at ", run("threads", "--words=go", trace))
    go = assembled("go", 23)
    assert run("goroutines", "--words=threads", go).startswith("1 thread, ")
    assert "CPU slot" in run("summary", "--words=threads", go)
    run("summary", "--words=french", go, status=2)


@test
def a_host_has_its_own_word():
    for word, many in (("fiber", "fibers"), ("green thread", "green threads"), ("entry", "entries"), ("process", "processes")):
        trace = assembled("host", 23, f"trail.made by=host word={word}")
        assert run("goroutines", trace).startswith(f"1 {word}, ")
        assert f"1 worker slot, 1 {word} (" in run("summary", trace)
        assert f"\nTime of all {many}\n" in run("summary", trace)
        assert re.match(rf".*\n *{word} +created ", run("goroutines", "-m", trace)), word
        assert f"{many.capitalize()} by start function" in run("report", trace)


@test
def a_hosts_word_is_text_in_a_report_and_in_titles():
    trace = assembled("markup", 23, "trail.made by=host word=<b>a&b</b>")
    report = run("report", trace)
    assert "<b>a&b</b>" not in report and "&lt;b&gt;a&amp;b&lt;/b&gt;" in report
    assert re.search(r"\n *b a&b /b +created ", run("goroutines", "-m", trace))


@test
def json_has_the_same_keys_and_figures_in_all_words():
    def without_text(value):
        if isinstance(value, dict):
            return {key: without_text(of) for key, of in value.items() if key not in ("text", "heading", "details", "remedy", "replayed", "title", "note")}
        return [without_text(of) for of in value] if isinstance(value, list) else value

    for args in (["summary"], ["goroutines"], ["threads"], ["procs"], ["locks"], ["latency"], ["why"], ["info"]):
        go, threads = (json.loads(run(*args, "--json", f"--words={w}", recorded())) for w in ("go", "threads"))
        assert without_text(go) == without_text(threads), args


if __name__ == "__main__":
    sys.exit(main())
