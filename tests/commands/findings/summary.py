#!/usr/bin/env python3
"""The summary around the findings: its sums, its text, several files. TAP.

usage: summary.py TRAIL SOURCE_ROOT [long]
"""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import EXAMPLES, WORK, answer, assembled, equal, good_text, run_text  # noqa: E402
from made import LOCK, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import hand_over, with_tasks  # noqa: E402
from tap import test  # noqa: E402


@test
def the_summary_adds_up():
    """P 1 is idle to the end: first there is no work, then work is ready."""
    trace = Trace(2, idle=(1,))
    trace.here(1, 2, 0)
    trace.create(1000, 0, 2)
    found = trace.summary(2000)
    activity = found["activity"]
    equal(activity["procs"], 2)
    ready = found["end_ns"] - found["origin_ns"] - 1000
    assert 1000 <= ready <= 1001, ready  # the end of a trace is a separate event
    equal(activity["idle_work_ns"], ready)
    equal(activity["idle_lock_ns"], 0)
    equal(activity["idle_nothing_ns"], activity["available_ns"] - activity["procs_ns"] - ready)
    equal(activity["ready_ns"], ready)
    equal(sum(s["running_ns"] for s in activity["slices"]), activity["running_ns"])
    equal(found["heap"]["peak_bytes"], 4096)


@test
def no_finding_is_not_that_nothing_is_wrong():
    trace = Trace(1)
    trace.here(1, 2, 0)
    path = trace.path(MS)
    out = good_text("summary", path)
    assert "No known problem found. The largest figures: no wait ended." in out, out
    # A thread that mostly waits for signals may wait for work; but its waits have ended.
    trace = Trace(1)
    trace.here(1, 2, 0)
    for i in range(5):
        trace.log((1 + 2 * i) * MS, 0, "wait", "signal")
        trace.block((1 + 2 * i) * MS + 10, 0, "sync", ("main.main",))
        trace.at((2 + 2 * i) * MS + 900 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start((2 + 2 * i) * MS + 900 * US + 10, 0, 1)
    out = good_text("summary", trace.path(11 * MS))
    assert re.search(r"The largest figures: most waited for: signal \(9\.50 ms, which may be for work, the longest at main\.main \(main\.go:10\)\); longest wait: 1\.90 ms\.", out), out
    # What other waits explain is said before that their threads were joined.
    trace = Trace(2)
    trace.string("trail.made by=record")
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.upload",))
    trace.start(20, 1, 2)
    trace.log(30, 0, "wait", "join upload")
    trace.block(40, 0, "sync", ("main.main",))
    for i in range(1, 5):
        trace.block(i * 10 * MS, 1, "sleep", ("main.throttle", "main.upload"))
        trace.at(i * 10 * MS + 4 * MS, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(i * 10 * MS + 4 * MS + 10, 1, 2)
    trace.wake(50 * MS, 1, 1, ("main.upload",))
    trace.start(50 * MS + 10, 0, 1)
    equal(trace.summary(51 * MS)["largest"], "most waited for: sleep (16.0 ms, the longest at main.throttle (main.go:10)); longest wait: 4.00 ms")
    assert "No known problem found." in good_text("report", path)
    # Waits that may be for work come first if others took less than a twentieth of their time.
    for sleeps, most in ((450 * US, "signal"), (500 * US, "sleep")):
        trace = Trace(1)
        trace.string("trail.made by=record")
        trace.here(1, 2, 0)
        trace.block(100, 0, "sleep", ("main.main",))
        trace.at(100 + sleeps, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(100 + sleeps + 10, 0, 1)
        for i in range(5):
            trace.log((1 + 2 * i) * MS, 0, "wait", "signal")
            trace.block((1 + 2 * i) * MS + 10, 0, "sync", ("main.main",))
            trace.at((2 + 2 * i) * MS + 900 * US, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
            trace.start((2 + 2 * i) * MS + 900 * US + 10, 0, 1)
        largest = trace.summary(11 * MS)["largest"]
        assert largest.startswith("most waited for: " + most), largest
    # What Go's runtime waits for itself is of no use, whatever package its goroutine is of.
    trace = hand_over("chan receive", WORK_STACK, busy=True)
    trace.block(10, 1, "system goroutine wait", ("runtime/trace.Start.func1",))
    trace.wake(30 * MS, 0, 3)
    assert trace.summary(31 * MS)["largest"].startswith("most waited for: chan receive ("), trace.summary(31 * MS)["largest"]
    found = hand_over("chan receive", WORK_STACK).summary(31 * MS)
    assert found["largest"].startswith("most waited for: chan receive (") and found["largest"].endswith("longest wait: 1.00 ms"), found["largest"]
    # GC is not mentioned if there was none.
    found = answer("summary", EXAMPLES[3])
    assert found["largest"].endswith(f"; GC: {100 * found['gc']['share']:.1f} % of the time"), found["largest"]


@test
def the_tile_of_the_slowest_task_has_the_median_of_the_tables_and_claims_no_bound():
    trace, end = with_tasks(30 * MS, [990_000] + [1_045_000] * 8)
    found = trace.summary(end)
    note = {tile["key"]: tile["note"] for tile in found["tiles"]}["slowest_task_ns"]
    (kind,) = found["tasks"]
    equal(note, "request, task 10; the median of 10 is 1.04 ms")
    equal(kind["spread"]["p50_ns"], 1_045_000)
    page = good_text("report", trace.path(end))
    assert "the median of 10 is 1.04&nbsp;ms" in page and "half of" not in page


@test
def a_name_that_is_empty_leaves_no_hole():
    found = hand_over("", WORK_STACK).summary(31 * MS)
    assert found["largest"].startswith("most waited for: no reason given ("), found["largest"]
    notes = {tile["key"]: tile["note"] for tile in found["tiles"]}
    assert notes["waiting_ns"].startswith("no reason given "), notes
    trace = Trace(1)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("",))
    trace.block(MS, 0, "sync", WORK_STACK)
    trace.start(MS + 10, 0, 2)
    notes = {tile["key"]: tile["note"] for tile in trace.summary(3 * MS)["tiles"]}
    equal(notes["longest_ready_ns"], "goroutine 2", "a start function without a name")
    trace, end = with_tasks(2 * MS, name="")
    notes = {tile["key"]: tile["note"] for tile in trace.summary(end)["tiles"]}
    assert notes["slowest_task_ns"].startswith("task 10; the median of 10 is "), notes


@test
def for_people_it_is_plain_and_names_the_commands():
    path = hand_over("sync", LOCK).path(31 * MS)
    out = good_text("summary", path)
    assert "\033" not in out and out.isascii(), out
    for part in ("running", "held a lock", "trail print --goroutine=", "heap: 4"):
        assert part in out, (part, out)
    (line,) = [line for line in out.splitlines() if line.startswith("  trail print")][:1]
    assert good_text(*line.split()[1:]), line


@test
def what_is_unknown_has_its_share_of_the_time_if_that_can_be_seen():
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)
    trace.block(5 * MS, 1, "chan receive", WORK_STACK)
    trace.at(6 * MS, 1, "GoStart g=2 g_seq=9")  # what comes before is lost
    path = trace.path(30 * MS)
    Trace.made.remove(path)  # it is damaged: what comes before is lost

    def said(end):
        window = ("--from=0ns", f"--to={end}ns", path)
        text, page = good_text("summary", *window), good_text("report", *window).replace("&nbsp;", " ")
        return re.search("states unknown for (.*): more", text)[1], re.search("states unknown for (.*): more", page)[1]

    equal(said(10 * MS), ("5.000 ms, 50.0 % of the time", "5.00 ms, 50.0 % of the time"))
    equal(said(5001 * US), ("999 ns", "999 ns"))


def idle_path():
    trace = Trace(1)
    trace.here(1, 2, 0)
    return trace.path(MS)


@test
def of_several_files_or_a_folder_each_has_a_line():
    folder = os.path.join(WORK, "several")
    os.makedirs(folder)
    for name, path in (("a", lambda: hand_over("sync", LOCK).path(31 * MS)), ("b", idle_path)):
        shutil.copy(path(), os.path.join(folder, name + ".trace"))
    with open(os.path.join(folder, "a.trace"), "rb") as whole, open(os.path.join(folder, "c.trace"), "wb") as cut:
        cut.write(whole.read()[:-100])
    with open(os.path.join(folder, "notes.txt"), "w", encoding="utf-8") as file:
        file.write("no trace")
    code, out, _ = run_text("summary", "--json", folder)
    files = json.loads(out)
    equal((code, files["other_files"]), (1, 1))
    first = files["files"][0]
    equal(os.path.basename(first["file"]), "a.trace")
    one = answer("summary", os.path.join(folder, "a.trace"))
    equal(first["finding"]["text"], one["findings"][0]["text"])
    equal(first["gain_ns"], one["findings"][0]["replayed_now_ns"] - one["findings"][0]["replayed_then_ns"])
    equal(first["length_ns"], one["end_ns"] - one["begin_ns"])
    equal([os.path.basename(f["file"]) for f in files["files"] if "error" in f], ["c.trace"])
    text = good_text("summary", folder, code=1)
    assert "damaged: " in text and "No known problem found" in text and "1 other file is no trace" in text, text
    equal(len(good_text("summary", os.path.join(folder, "a.trace"), os.path.join(folder, "b.trace")).splitlines()), 3)


NOTHING = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EndOfGeneration
"""


@test
def of_a_trace_in_which_nothing_ran_that_is_said_and_no_table_is_empty():
    path = assembled("nothing", NOTHING)
    name, *rest = good_text("summary", path).splitlines()
    # It begins and ends with a Sync event.
    assert name.startswith(f"{path}: ") and name.endswith(", 0 goroutines (0 alive at the end), 2 events"), name
    equal(rest, ["Nothing ran: no goroutine is in the trace. Record while the program is busy."])
    equal(good_text("threads", path), "Nothing ran: no M is in the trace. Record while the program is busy.\n")
    equal(good_text("procs", path), "Nothing ran: no P is in the trace. Record while the program is busy.\n")
    # A trace that has only its header delivers one event, the final Sync.
    with open(path, "rb") as file:
        header = file.read()[:16]
    name, *rest = good_text("summary", "-", stdin=header).splitlines()
    assert name.endswith(", 1 event"), name
    equal(len(rest), 1)
    # A window after the end of another trace: only earlier facts are known, and there are no
    # goroutines.
    text = good_text("summary", "--from=1h", EXAMPLES[3])
    assert "\nNothing ran: no goroutine is in this window.\n" in text, text
    assert "Findings" not in text and "Scheduling latency" not in text, text


if __name__ == "__main__":
    sys.exit(main())
