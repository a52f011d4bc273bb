#!/usr/bin/env python3
"""Critical paths: of a small trace that was walked back by hand, and what must hold for any trace.
TAP.

usage: why.py TRAIL SOURCE_ROOT [all]

With `all`, every trace in the folder that TRAIL_TRACES names, or in ../shared/traces beside the
source, is walked; skipped if there is none.
"""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import FEW_EXAMPLES, SHARED, TRAIL, answer, assembled, equal, run_text, text_of, trace  # noqa: E402
from sample import some  # noqa: E402
from tap import main, test  # noqa: E402


def covers(path):
    """Checks that the segments are contiguous from the path's end to its start, and that the totals are their sums."""
    at, sums, goroutine = path["end_ns"], {}, None
    for s in path["segments"]:
        equal(s["end_ns"], at)
        assert s["begin_ns"] < s["end_ns"], s
        at = s["begin_ns"]
        key = (s["group"], s["state"], s.get("reason"), s["function"])
        count, ns = sums.get(key, (0, 0))
        sums[key] = (count + 1, ns + s["end_ns"] - s["begin_ns"])
        assert (s["state"] == "blocked") == ("reason" in s), s
    equal(at, path["begin_ns"])
    if path["segments"]:
        equal(path["segments"][0]["goroutine"], path["goroutine"])
        equal(path["segments"][0]["depth"], 0)
    totals = {
        (t["group"], t["state"], t.get("reason"), t["function"]): (t["count"], t["ns"])
        for t in path["totals"]
    }
    equal(totals, sums)
    equal([t["ns"] for t in path["totals"]], sorted((ns for _, ns in sums.values()), reverse=True))


HAND = trace("why-1.26")


def hand(*args):
    path = answer("why", *args, HAND)
    covers(path)
    return path


def rows(path):
    """From the beginning: goroutine, depth, state or reason, duration, function, the goroutine that
    it wakes, and from which wait."""
    return [
        (
            s["goroutine"],
            s["depth"],
            s.get("reason", s["state"]),
            s["end_ns"] - s["begin_ns"],
            s["function"].removeprefix("main."),
        )
        + ((s["wakes"], s["awaited"]) if "wakes" in s else ())
        for s in reversed(path["segments"])
    ]


@test
def a_waits_for_b_who_waits_for_c():
    path = hand("--task=7")
    equal((path["of"], path["task"], path["name"], path["complete"]), ("task", 7, "request", True))
    equal((path["begin_ns"], path["end_ns"], path["goroutine"]), (1030, 1180, 1))
    equal(
        rows(path),
        [
            (1, 0, "running", 10, "main"),
            # G 2 was ready before, and so was G 3; but no goroutine waited for them yet
            (2, 1, "ready", 10, "holder"),
            (2, 1, "running", 10, "holder"),
            (3, 2, "ready", 10, "feeder"),
            (3, 2, "running", 30, "feeder", 2, "chan receive"),
            (2, 1, "ready", 20, "holder"),
            (2, 1, "running", 30, "holder", 1, "sync"),
            (1, 0, "ready", 20, "main"),
            (1, 0, "running", 10, "helper"),
        ],
    )
    equal(hand()["of"], "task")


@test
def totals_are_by_group_state_and_function():
    totals = hand("--task=7")["totals"]
    equal(totals[0], {"group": "main.holder", "state": "running", "function": "main.holder", "count": 2, "ns": 40})
    equal(sum(t["ns"] for t in totals), 150)


@test
def a_timer_stays_with_the_waiter():
    path = hand("--region=wait")
    equal((path["name"], path["nth"], path["begin_ns"], path["end_ns"]), ("wait", 1, 1105, 1250))
    equal(
        rows(path),
        [
            (3, 0, "running", 5, "feeder"),
            (3, 0, "sleep", 120, "feeder"),
            (3, 0, "ready", 10, "feeder"),
            (3, 0, "running", 10, "feeder"),
        ],
    )


@test
def a_wait_is_not_followed_to_before_it_began():
    equal(
        rows(hand("--region=call")),
        [
            (3, 0, "running", 15, "feeder"),
            (4, 1, "ready", 10, "helper"),
            (4, 1, "running", 10, "helper", 3, "chan receive"),
            (3, 0, "ready", 20, "feeder"),
            (3, 0, "running", 10, "feeder"),
        ],
    )


@test
def who_was_created_meanwhile_leads_to_the_creator():
    path = hand("--region=wait#2")
    equal((path["nth"], path["begin_ns"], path["end_ns"]), (2, 1325, 1420))
    equal(
        rows(path),
        [
            (3, 0, "running", 5, "feeder"),
            (2, 2, "select", 10, "holder"),
            (2, 2, "ready", 10, "holder"),
            (2, 2, "running", 10, "holder", 5, ""),
            (5, 1, "ready", 20, "helper"),
            (5, 1, "running", 10, "helper", 3, "chan receive"),
            (3, 0, "ready", 20, "feeder"),
            (3, 0, "running", 10, "feeder"),
        ],
    )


@test
def a_goroutine_begins_where_it_was_created():
    path = hand("--goroutine=4")
    equal((path["begin_ns"], path["end_ns"], path["complete"]), (1260, 1300, True))
    equal(rows(path), [(4, 0, "ready", 20, "helper"), (4, 0, "running", 20, "")])
    path = hand("--goroutine=G5")
    equal((path["begin_ns"], path["end_ns"], path["complete"]), (1360, 1421, False))
    equal([r[2] for r in rows(path)], ["ready", "running", "select"])


@test
def a_window_cuts_off():
    path = hand("--from=90ns", "--to=+60ns")
    equal((path["of"], path["begin_ns"], path["end_ns"]), ("window", 1090, 1150))
    equal(
        rows(path),
        [
            (3, 1, "running", 10, "feeder", 2, "chan receive"),
            (2, 0, "ready", 20, "holder"),
            (2, 0, "running", 30, ""),
        ],
    )
    # The goroutine that ran last has ended.
    path = hand("--from=270ns", "--to=+31ns")
    equal((path["of"], path["begin_ns"], path["end_ns"]), ("window", 1270, 1300))
    equal(rows(path), [(4, 0, "ready", 10, "helper"), (4, 0, "running", 20, "")])
    path = hand("--task=7", "--from=45ns", "--to=1us")
    equal((path["begin_ns"], path["end_ns"], path["complete"]), (1045, 1180, False))
    equal(rows(path)[0], (2, 1, "ready", 5, "holder"))
    path = hand("--goroutine=3", "--to=200ns")
    equal((path["end_ns"], path["complete"]), (1200, False))


@test
def text_has_the_longest_segments_and_says_what_is_left_out():
    hand()
    code, out, _ = run_text("why", "--task=7", "--limit=2", HAND)
    lines = out.splitlines()
    equal(code, 0)
    equal(lines[0], "task 7 request: 150 ns from 30 ns on; critical path, ending in G1:")
    # First the sums, which add up to the whole path, then the path.
    begin = next(i for i, line in enumerate(lines) if line.split() == ["at", "for"])
    sums = [line.split() for line in lines[3 : begin - 1]]
    equal(sum(int(words[2]) for words in sums), 150)
    equal(sums[0][:5], ["26.7", "%", "40", "ns", "2"])
    equal(
        [line.split() for line in lines[begin + 1 : begin + 7]],
        [
            "... 40 ns 4 shorter segments".split(),
            "70 ns 30 ns G3 main.feeder: running up to main.feeder main.go:100; wakes G2 from chan receive".split(),
            "... 20 ns 1 shorter segment".split(),
            "120 ns 30 ns G2 main.holder: running up to main.holder main.go:99; wakes G1 from sync".split(),
            "... 30 ns 2 shorter segments".split(),
            [],
        ],
    )
    code, out, _ = run_text("why", "--task=7", "--stacks", HAND)
    assert "sync.(*Mutex).Lock /src/main.go:42" in out, out


@test
def a_limit_of_json_leaves_the_longest_in_order_and_all_totals():
    for name in ("why-1.26", "everything-1.26", "times-1.26"):
        for of in ("--window", "--goroutine=1"):
            whole = answer("why", of, trace(name))
            equal(whole["all"], len(whole["segments"]))
            for limit in (0, 1, 3, 10**6):
                found = answer("why", of, f"--limit={limit}", trace(name))
                # Of segments of equal length, those nearer to the end.
                segments = list(enumerate(whole["segments"]))
                longest = sorted(segments, key=lambda s: (s[1]["begin_ns"] - s[1]["end_ns"], s[0]))[:limit]
                equal(found["segments"], [segment for _, segment in sorted(longest, key=lambda s: s[0])])
                equal({**found, "segments": []}, {**whole, "segments": []})


@test
def what_is_not_there_is_told():
    hand()
    for args, word in (
        ("--task=9", "no task 9 in the trace; the nearest is 7"),
        ("--region=wiat", "no region 'wiat' in the trace; did you mean 'wait'?"),
        ("--region=wai#2", "did you mean 'wait'?"),
        ("-g77", "no goroutine 77 in the trace; the nearest is 5"),
        ("-g0", "the nearest is 1;"),
        ("--region=wait#3", "'wait', number 3, in the trace: there are 2"),
    ):
        code, out, err = run_text("why", args, HAND)
        equal((code, out), (2, ""))
        assert word in err, err
    with open(HAND, "rb") as f:
        p = subprocess.run([TRAIL, "why", "--task=9", "-"], stdin=f, capture_output=True, timeout=240)
    assert p.returncode == 2 and b"no task 9 in the trace; 'trail tasks' lists them" in p.stderr, p.stderr
    code, _, err = run_text("why", "--task=7", "--window", HAND)
    assert code == 2 and "at a time" in err, err


@test
def an_open_task_has_a_path_up_to_the_end_of_its_last_goroutine():
    text = text_of("why-1.26")
    begins = "GoStart dt=10 g=4 g_seq=1\nGoUnblock dt=10 g=3"
    task = "UserTaskBegin dt=4 task=8 parent_task=18446744073709551615 name_string=1 stack=4"
    text = text.replace(begins, f"GoStart dt=10 g=4 g_seq=1\n{task}\nGoUnblock dt=6 g=3")
    # G 5 also ends, later, and is unrelated to the task.
    five = "GoUnblock dt=10 g=3 g_seq=6 stack=4\nGoBlock dt=10 reason_string=7 stack=4"
    assert five in text
    text = text.replace(five, five.split("\n")[0] + "\nGoDestroy dt=10")
    # G 4 begins the task at 1284 and ends at 1300.
    found = answer("why", "--task=8", assembled("open-task", text))
    equal((found["goroutine"], found["complete"]), (4, False))
    equal((found["begin_ns"], found["end_ns"]), (1284, 1300))
    equal({(s["goroutine"], s["state"]) for s in found["segments"]}, {(4, "running")})
    covers(found)
    # A window in which the task is open, but no goroutine works on it.
    code, out, err = run_text("why", "--task=8", "--from=400ns", assembled("open-task", text))
    equal((code, out), (2, ""))
    assert "task 8 has no critical path in the window: the goroutine that was last in it ended before" in err, err
    # G 3 works on it later, in a region, and continues.
    for line in ("# 1325, 1330\nUserRegionBegin dt=5 task=0", "# 1420\nUserRegionEnd dt=10 task=0"):
        assert line in text
        text = text.replace(line, line.replace("task=0", "task=8"))
    found = answer("why", "--task=8", assembled("open-task-later", text))
    equal((found["goroutine"], found["begin_ns"]), (3, 1284))
    assert found["end_ns"] > 1330, found


def walk_all(path):
    """Makes several requests on one trace. Returns False if it is not a valid trace, or too big to
    be printed as JSON."""
    if os.path.getsize(path) > 30 << 20 or run_text("check", "--quiet", path)[0] != 0:
        return False
    covers(answer("why", path))
    whole = answer("why", "--window", path)
    covers(whole)
    length = whole["end_ns"] - whole["begin_ns"]
    covers(answer("why", f"--from={length // 3}ns", f"--to={length // 2}ns", path))
    for g in sorted({s["goroutine"] for s in whole["segments"]})[:2]:
        covers(answer("why", f"--goroutine={g}", path))
    return True


@test
def segments_cover_the_span_in_any_trace():
    for path in FEW_EXAMPLES:
        assert walk_all(path), path


def shared():
    number = walked = failed = 0
    for path in some(sorted(glob.glob(os.path.join(SHARED, "**", "*"), recursive=True)), 40):
        try:
            with open(path, "rb") as f:
                if f.read(5) != b"go 1." or not walk_all(path):
                    continue
        except IsADirectoryError:
            continue
        except AssertionError as why:
            failed += 1
            print(f"not ok {walked + failed} - {os.path.basename(path)}\n# {str(why)[:2000]}")
            continue
        walked += 1
        print(f"ok {walked + failed} - {os.path.basename(path)}", flush=True)
    number = walked + failed
    print(f"1..{number}" if number else "1..0 # SKIP no traces with known answers")
    sys.exit(failed > 0)


if sys.argv[3:] == ["all"]:
    shared()
sys.exit(main())
