#!/usr/bin/env python3
"""Analyses of small traces, compared with answers computed by hand, and invariants for any trace. TAP.

usage: analyses_by_hand.py TRAIL SOURCE_ROOT
"""

import collections
import gzip
import json
import os
import re
import resource
import shlex
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, EXAMPLES, FEW_EXAMPLES, ROOT, WORK, answer, assembled, equal, good_text, run_text, text_of, trace  # noqa: E402
from tap import main, test

COMMANDS = ["goroutines", "regions", "tasks", "gc", "mmu"]
STW = "stop-the-world (GC sweep termination)"


def times(row):
    """running, ready, in a system call, in a system call without a P, blocked, total"""
    keys = ("exec_ns", "sched_wait_ns", "syscall_ns", "syscall_block_ns", "block_ns", "total_ns")
    return tuple(row[k] for k in keys)


def corrected(row):
    return {**row, **row.get("corrected", {})}


def states(row):
    """The total time in all states."""
    right = corrected(row)
    keys = ("exec_ns", "sched_wait_ns", "syscall_ns", "syscall_block_ns")
    return sum(right[k] for k in keys) + sum(right["block_ns"].values())


# Added up by hand


@test
def time_of_goroutines_is_that_of_their_states():
    found = answer("goroutines", trace("times-1.26"))
    equal(found["origin_ns"], 1000)
    g1, g2, g3 = found["goroutines"]
    equal((g1["id"], g1["name"], g1["pc"]), (1, "main.main", 8192))
    equal((g1["creation_ns"], g1["start_ns"], g1["end_ns"]), (1000, 1002, 0))
    equal(times(g1), (45, 30, 0, 0, {"chan receive": 25, "select": 101}, 201))
    equal((g2["id"], g2["name"], g2["pc"]), (2, "main.worker", 12288))
    equal((g2["creation_ns"], g2["start_ns"], g2["end_ns"]), (1010, 1025, 0))
    equal(g2["range_ns"], {STW: 10})
    equal((g3["start_ns"], times(g3)), (0, (0, 143, 0, 0, {}, 143)))


@test
def json_has_all_goroutines_by_number_unless_it_is_sorted_or_limited():
    for path in FEW_EXAMPLES:
        every = answer("goroutines", path)["goroutines"]
        equal([g["id"] for g in every], sorted(g["id"] for g in every))
        by_time = sorted(every, key=lambda g: (-g["exec_ns"], g["id"]))
        found = answer("goroutines", "--sort=exec", "--limit=3", path)
        equal((found["all"], found["goroutines"]), (len(every), by_time[:3]))
        equal(answer("goroutines", "--sort=exec", path)["goroutines"], by_time)


@test
def ranges_count_for_who_is_in_them():
    g1, g3 = answer("goroutines", trace("gc-1.26"))["goroutines"]
    equal(g1["range_ns"], {STW: 4, "GC mark assist": 15, "GC incremental sweep": 10})
    equal((g3["id"], g3["range_ns"]), (3, {}))


@test
def an_open_system_call_without_p_counts_as_in_go_and_corrected_beside():
    g1, g2, _ = answer("goroutines", trace("times-1.26"))["goroutines"]
    equal(times(g2), (70, 40 + 51, 10 + 61, 10, {}, 191))
    equal(
        g2["corrected"], {"sched_wait_ns": 40, "syscall_ns": 20, "syscall_block_ns": 61}
    )
    assert "corrected" not in g1
    equal((states(g1), states(g2)), (201, 191))


NAMELESS = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=10 p=0 pstatus=1
GoStatus dt=10 g=1 m=5 gstatus=2
UserRegionBegin dt=10 task=0 name_string=1 stack=0
GoCreate dt=10 new_g=2 new_stack=1 stack=0
UserRegionEnd dt=200 task=0 name_string=1 stack=0
UserRegionBegin dt=10 task=0 name_string=2 stack=0
UserRegionEnd dt=100 task=0 name_string=2 stack=0
EventBatch gen=1 m=18446744073709551615 time=2000 size=auto
Stacks
Stack id=1 nframes=1
\tpc=8192 func=3 file=3 line=7
EventBatch gen=1 m=18446744073709551615 time=2000 size=auto
Strings
String id=1
\tdata="parse"
String id=2
\tdata=""
String id=3
\tdata="main.work"
EndOfGeneration
"""


@test
def only_a_region_that_was_inherited_is_called_so():
    """One task has a name, one does not; G 2 was created in the first."""
    path = assembled("nameless", NAMELESS)

    def names(command, *more):
        """The names in the table of regions: its last column or the one before."""
        text = good_text(command, *more, path).split("\nRegions\n")[-1]
        return sorted(re.findall(r"(parse|\(\w+\))(?: {2,}(?:trail|-).*)?$", text, re.M))

    equal(names("regions", "--members"), ["(inherited)", "(unknown)", "parse"])
    # Regions without a name form one group.
    equal(sorted({*names("regions")}), ["(unknown)", "parse"])
    equal(names("summary"), ["(unknown)", "parse"])
    report = os.path.join(WORK, "nameless.html")
    good_text("report", path, "-o", report)
    with open(report, encoding="utf-8") as file:
        table = re.search(r"<caption>Regions</caption>(.*?)</table>", file.read(), re.S)[1]
    equal(sorted(re.findall(r"class=\"name\">([^<]+)<", table)), ["(unknown)", "parse"])


STOLEN = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=10 p=%d pstatus=1
GoStatus dt=10 g=1 m=5 gstatus=2
GoSyscallBegin dt=10 p_seq=1 stack=0
GoSyscallEndBlocked dt=100
ProcStart dt=10 p=%d p_seq=3
GoStart dt=10 g=1 g_seq=1
GoStop dt=10 reason_string=0 stack=0
EventBatch gen=1 m=6 time=1000 size=auto
ProcSteal dt=70 p=%d p_seq=2 m=5
EndOfGeneration
"""


@test
def a_system_call_has_its_p_until_that_is_stolen_whatever_its_number():
    for p in (0, 1, 63, 64, 65, 100_000):
        path = assembled("stolen", STOLEN % (p, p, p))
        (g1,) = answer("goroutines", path)["goroutines"]
        # From 30 to 130, losing the P at 70; running from the trace's beginning up to then, and from 150 to 160.
        equal((p, g1["syscall_ns"], g1["syscall_block_ns"]), (p, 40, 60))
        equal((p, g1["exec_ns"]), (p, 40))


LATE = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=10 p=0 pstatus=1
GoStatus dt=10 g=1 m=5 gstatus=2
GoSyscallBegin dt=10 p_seq=1 stack=0
GoSyscallEndBlocked dt=100
EventBatch gen=1 m=6 time=1000 size=auto
GoStatus dt=5 g=2 m=18446744073709551615 gstatus=1
ProcSteal dt=65 p=0 p_seq=2 m=5
ProcStart dt=10 p=0 p_seq=3
GoStart dt=10 g=2 g_seq=1
GoSyscallBegin dt=10 p_seq=4 stack=0
EventBatch gen=1 m=7 time=1000 size=auto
ProcSteal dt=170 p=0 p_seq=5 m=6
ProcStart dt=10 p=0 p_seq=6
EndOfGeneration
"""


@test
def who_returns_late_takes_the_next_system_call_on_its_p_with_it_as_in_go():
    path = assembled("late", LATE)
    g1, g2 = answer("goroutines", path)["goroutines"]
    # G 1 is in a call from 30 to 130, without its P from 70 on. On that P, G 2 enters a call at 100. Go forgets this
    # call at 130, so that a steal of the P at 170 does not affect it; the trace ends at 181.
    equal((g1["syscall_ns"], g1["syscall_block_ns"]), (40, 60))
    equal((g2["syscall_ns"], g2["syscall_block_ns"], "corrected" in g2), (81, 0, False))


@test
def a_region_has_what_its_goroutine_did_meanwhile():
    path = trace("times-1.26")
    region, inherited = answer("regions", path)["regions"]
    equal((region["goroutine"], region["task"], region["name"]), (2, 7, "parse"))
    equal((region["start_ns"], region["end_ns"]), (1055, 1110))
    equal(times(region), (10, 25, 10, 10, {}, 55))
    g2 = answer("goroutines", path)["goroutines"][1]
    equal([r["name"] for r in g2["regions"]], ["parse"])
    equal((inherited["goroutine"], inherited["task"], inherited["name"]), (3, 7, ""))
    equal((inherited["start_ns"], inherited["end_ns"]), (1058, 0))
    equal(times(inherited), (0, 143, 0, 0, {}, 143))
    _, group = answer("regions", "--groups", path)["groups"]
    equal((group["name"], group["count"], group["unfinished"], times(group)), ("parse", 1, 0, times(region)))
    equal(group["distributions"]["total"]["buckets"], [[52, 56, 1]])


@test
def who_blocks_for_ever_is_over():
    g1, g2, g3 = answer("goroutines", trace("forever-1.26"))["goroutines"]
    equal((g1["end_ns"], times(g1)), (1130, (30 + 30, 30, 0, 0, {"chan receive": 40}, 130)))
    equal((g2["end_ns"], times(g2)), (1090, (50, 30, 0, 0, {}, 80)))
    equal((g3["end_ns"], times(g3)), (0, (50, 40 + 101, 0, 0, {}, 191)))


@test
def tasks_have_parents_children_logs_and_those_who_took_part():
    seven, eight = answer("tasks", trace("times-1.26"))["tasks"]
    equal((seven["id"], seven["name"], seven["parent"]), (7, "request", None))
    equal((seven["start_ns"], seven["end_ns"], seven["complete"]), (1050, 1115, True))
    equal((seven["goroutines"], seven["children"], seven["region_count"]), ([2], [8], 1))
    equal(
        seven["logs"],
        [{"time_ns": 1112, "goroutine": 2, "category": "note", "message": "half\x1b[1m way"}],
    )
    equal((eight["parent"], eight["start_ns"], eight["end_ns"]), (7, 1113, 0))
    assert not eight["complete"] and eight["children"] == []


@test
def goroutines_are_found_by_words():
    path = os.path.join(ROOT, "examples", "traces", "load-go1.23.trace")
    every = answer("goroutines", path)["goroutines"]
    for words, holds in {
        "Main 1": lambda text: "main" in text and "1" in text,
        "-main": lambda text: "main" not in text,
        "main -1 -x": lambda text: "main" in text and "1" not in text and "x" not in text,
        " nothing-like-this ": lambda text: False,
    }.items():
        expected = [g["id"] for g in every if holds(f"{g['name']} {g['id']}".lower())]
        found = answer("goroutines", f"--match={words}", path)
        equal((found["all"], [g["id"] for g in found["goroutines"]]), (len(expected), expected), words)
        assert 0 < len(expected) < len(every) or "nothing" in words, words


WORDS = {
    "5": lambda text: "5" in text,
    "E -u": lambda text: "e" in text and "u" not in text,
    "O -4 -2": lambda text: "o" in text and "4" not in text and "2" not in text,
    "-4": lambda text: "4" not in text,
    "lock -http": lambda text: "lock" in text and "http" not in text,
    "-main.": lambda text: "main." not in text,
    "nothing-like-this": lambda text: False,
}


def are_found(command, text_of, path, *options):
    """Tasks or regions of a name are filtered by words, which match any searchable text."""
    every = answer(command, *options, path)[command]
    sizes = set()
    for words, holds in WORDS.items():
        expected = [one for one in every if holds(text_of(one).lower())]
        found = answer(command, *options, f"--match={words}", path)
        equal((found["all"], found[command]), (len(expected), expected), words)
        sizes.add(len(expected))
    assert len(sizes) > 2, sizes


@test
def tasks_regions_and_locks_are_found_by_words():
    path = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    are_found("tasks", lambda t: " ".join(map(str, (t["name"], t["id"], *t["goroutines"]))), path)
    are_found("regions", lambda r: f"{r['name']} {r['goroutine']} {r['task']}", path)

    def of_lock(lock):
        stacks = [lock.get("waited", []), lock.get("woken", [])]
        stacks += [place["stack"] for place in lock["waiters"] + lock["held"]]
        frames = [f"{f['function']} {f['file']}" for stack in stacks for f in stack]
        return " ".join([lock["kind"], lock["name"], *frames])

    are_found("locks", of_lock, os.path.join(ROOT, "examples", "traces", "load-go1.23.trace"), "--channels")
    assert "no lock has these words" in good_text("locks", "--match=nothing-like-this", path)
    every = answer("tasks", path)["tasks"]
    equal(answer("tasks", "--brief", path)["tasks"], [[t["id"], t["name"], *t["goroutines"]] for t in every])


def length(of):
    return of["end_ns"] - of["start_ns"]


def groups_are_those_of(path, command, is_complete):
    """Sums and medians of each name are computed from its members; limits and durations select among them."""
    members = answer(command, path)[command]
    groups = answer(command, "--groups", path)["groups"]
    equal({g["name"]: g["count"] for g in groups}, collections.Counter(m["name"] for m in members))
    for group in groups:
        its = sorted((m for m in members if m["name"] == group["name"]), key=length, reverse=True)
        complete = [m for m in its if is_complete(m)]
        # The shorter of the two middle ones, if their number is even.
        equal(group["median"], complete[len(complete) // 2] if complete else None)
        if not group["name"] or len(complete) < len(its):
            continue
        of = f"--name={group['name']}"
        some = answer(command, of, "--limit=2", path)
        equal((some["all"], some[command]), (len(its), its[:2]))
        equal(len(answer(command, of, "--limit=0", path)[command]), len(its))
        middle = length(group["median"])
        for option, holds in ("longer", lambda ns: ns >= middle), ("shorter", lambda ns: ns < middle):
            got = answer(command, of, f"--{option}={middle}ns", path)
            equal(sorted(map(length, got[command])), sorted(ns for ns in map(length, its) if holds(ns)), option)
    return groups


@test
def tasks_of_a_type_have_a_median():
    path = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    for group in groups_are_those_of(path, "tasks", lambda task: task["complete"]):
        its = [t for t in answer("tasks", path)["tasks"] if t["name"] == group["name"]]
        took = [length(t) for t in its if t["complete"]]
        equal((group["incomplete"], group["total_ns"], group["took"]["max_ns"]), (len(its) - len(took), sum(took), max(took)))
    (group,) = answer("tasks", "--groups", trace("times-1.26"))["groups"][:1]
    equal((group["name"], group["median"]["id"], group["count"]), ("request", 7, 1))
    assert "no task took this long" in good_text("tasks", "--longer=1h", path)


@test
def regions_of_a_name_have_a_median_and_the_numbers_that_why_knows_them_by():
    path = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    groups_are_those_of(path, "regions", lambda region: region["start_ns"] and region["end_ns"])
    for region in answer("regions", path)["regions"]:
        why = answer("why", f"--region={region['name']}#{region['number']}", path)
        equal((why["begin_ns"], why["end_ns"]), (region["start_ns"], region["end_ns"]), region)
    assert "no region took this long" in good_text("regions", "--longer=1h", path)
    # A region that began before the trace has no duration and is no median. The second one lasts from 1112 to 1117.
    with open(os.path.join(DATA, "times-1.26.txt")) as f:
        begin, end = "UserRegionBegin dt=5 task=7 name_string=3 stack=3\n", "UserRegionEnd dt=5 task=7 name_string=3 stack=3\n"
        text = f.read().replace("UserRegionBegin", "UserLog").replace("UserLog dt=5 task=7 name_string=3", "UserLog dt=5 task=7 key_string=3 value_string=3")
    late = assembled("unbegun", text.replace(end, end + begin.replace("dt=5", "dt=2") + end))
    regions = [r for r in answer("regions", late)["regions"] if r["name"]]
    equal([(r["start_ns"], r["end_ns"], r["number"]) for r in regions], [(0, 1110, 0), (1112, 1117, 1)])
    (group,) = [g for g in answer("regions", "--groups", late)["groups"] if g["name"]]
    equal((group["count"], group["median"]), (2, regions[1]))


@test
def what_belongs_to_no_task_is_no_task():
    """Logs and regions without a task have task number 0."""
    path = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    begun = sum(t["begun"] for t in answer("summary", path)["tasks"])
    listed = answer("tasks", path)["tasks"]
    equal((len(listed), 0 in [t["id"] for t in listed]), (begun, False))
    lines = good_text("tasks", path).splitlines()
    equal([line.split()[0] for line in lines[1:lines.index("")]], [str(begun)])


@test
def a_window_counts_what_is_inside():
    path = trace("times-1.26")
    found = answer("goroutines", "--from=50ns", "--to=+50ns", path)
    g1, g2, g3 = found["goroutines"]
    equal(times(g3), (0, 42, 0, 0, {}, 42))
    equal(times(g1), (25, 25, 0, 0, {"select": 0}, 50))
    equal(times(g2), (10, 20, 10, 10, {}, 50))
    equal((g2["creation_ns"], g1["start_ns"]), (1010, 1002))
    (region,) = g2["regions"]
    equal(times(region), (5, 20, 10, 10, {}, 45))
    equal((region["start_ns"], region["end_ns"]), (1055, 0))
    region, _ = answer("regions", "--from=57ns", "--to=100ns", path)["regions"]
    equal((region["start_ns"], times(region)), (1055, (3, 20, 10, 10, {}, 43)))
    equal(answer("goroutines", "--from=1s", path)["goroutines"], [])
    (g1,) = answer("goroutines", "--to=9ns", path)["goroutines"]
    equal(times(g1), (9, 0, 0, 0, {}, 9))
    # In the middle of a wait.
    g1, *_ = answer("goroutines", "--from=150ns", path)["goroutines"]
    equal(times(g1), (0, 0, 0, 0, {"select": 51}, 51))


@test
def mmu_of_a_pause_is_the_share_that_is_left():
    path = trace("times-1.26")
    found = answer("mmu", "--flags=stw", "--window=10ns,20ns,100ns,1s", path)
    equal(found["windows_ns"], [10, 20, 100, 1000000000])
    for ours, right in zip(found["mmu"], (0, 0.5, 0.9, 1 - 10 / 198)):
        assert abs(ours - right) < 1e-9, f"{ours}, not {right}"


@test
def quantiles_are_the_share_that_so_many_windows_have():
    # The world stops for 10 of 198 ns. A window of 20 ns begins at one of 178 times: for 20 of these its share changes
    # linearly from 1 to 0.5 and back, for 10 in between it is 0.5, and for all others 1.
    path = trace("times-1.26")
    quantiles = (0, 0.5, 0.8, 0.85, 0.9, 0.94, 0.95, 0.99, 1)
    right = {q: 0.5 + ((1 - q) * 178 - 10) / 20 * 0.5 for q in (0.85, 0.9, 0.94)}
    for q in quantiles:
        found = answer("mmu", "--flags=stw", "--window=20ns,1s", f"--quantiles={q}", path)
        equal(found["quantiles"], [q])
        (ours,), (whole,) = found["mmu_quantiles"]
        expected = right.get(q, 1 if q < 0.85 else 0.5)
        assert abs(ours - expected) < 1e-6, f"{q}: {ours}, not {expected}"
        equal(whole, found["mmu"][1])  # there is only one window
    out = good_text("mmu", "--flags=stw", "--window=20ns", "--quantiles=0.9,0.999", path)
    equal([line.split() for line in out.splitlines()[:2]], [
        ["window", "MMU", "corrected", "90", "%", "99.9", "%"],
        ["20", "ns", "50.0", "%", "50.0", "%", "69.5", "%", "50.0", "%"]])


@test
def quantiles_are_over_the_windows_of_all_ps():
    # P 1 assists for 15 ns, P 0 never: half of all windows, those of P 0, have a share of 1. The share of the others
    # changes from 1 to 0 and back in 15 ns each. The series of both Ps begin at 1993, when the number of Ps becomes
    # known, and end at 2301 with the last event, the end of the generation.
    found = answer("mmu", "--flags=assist,per-p", "--window=15ns", "--quantiles=0.5,0.95,0.99", trace("gc-1.26"))
    total = 2 * (2301 - 1993 - 15)
    for ours, right in zip(found["mmu_quantiles"][0], (1, 0.05 * total / 30, 0.01 * total / 30)):
        assert abs(ours - right) < 1e-6, f"{ours}, not {right}"


@test
def quantiles_of_workers_counted_once_stand_beside_go_s():
    found = answer("mmu", "--window=40ns", "--quantiles=1,0.5", trace("gc-1.26"))
    for key in "mmu", "mmu_corrected":
        equal(found[key.replace("mmu", "mmu_quantiles")][0][0], found[key][0])
    assert found["mmu_quantiles"][0][1] < found["mmu_quantiles_corrected"][0][1]


@test
def a_background_worker_counts_double_in_go_and_once_corrected():
    windows = "--window=40ns,100ns,140ns,1s"
    found = answer("mmu", "--flags=background", windows, trace("gc-1.26"))
    go = (0.5, 0.5, 0.5, 1 - 241 * 0.5 / 308)
    once = (0.5, 0.8, 1 - 37.5 / 140, 1 - 37.5 / 308)
    for key, rights in (("mmu", go), ("mmu_corrected", once)):
        for ours, right in zip(found[key], rights):
            assert abs(ours - right) < 1e-9, f"{key}: {found[key]}, not {rights}"


@test
def what_is_taken_at_the_end_counts_once_corrected():
    # Go's series ends where the share becomes 0, at 1120; the window ends at 1125.
    found = answer("mmu", "--flags=stw,background", "--window=5ns", "--to=125ns", trace("times-1.26"))
    equal((found["mmu"], found["mmu_corrected"]), ([1], [0]))


@test
def each_p_by_itself_has_its_own_share():
    found = answer("mmu", "--flags=assist,per-p", "--window=15ns,30ns", trace("gc-1.26"))
    equal(found["mmu"], [0, 0.5])
    found = answer("mmu", "--flags=sweep", "--window=10ns,20ns", trace("gc-1.26"))
    equal(found["mmu"], [0.5, 0.75])


@test
def worst_windows_do_not_overlap_and_name_their_place():
    out = good_text("mmu", "--flags=stw", "--window=20ns", "--worst=2", trace("times-1.26"))
    worst = [line.split() for line in out.split("worst windows:\n")[1].splitlines()[1:]]
    equal([w[4] for w in worst], ["50.0"])
    assert "--from=110ns --to=+20ns" in out, out


LEVELS = " .:-=+*#@"


def level(share):
    """Eighths, rounded; any amount above 0 is visible."""
    return LEVELS[min(8, max(int(share * 8 + 0.5), 1 if share > 0 else 0))]


def pieces(begin, end, *times):
    """How much of each slice of [begin, end), of which there are at most 64, these times cover."""
    each = -(-(end - begin) // 64)
    count = -(-(end - begin) // each)
    starts = [begin + i * each for i in range(count)]
    return each, [sum(max(0, min(until, at + each, end) - max(since, at)) for since, until in times) for at in starts]


@test
def gc_draws_when_it_marked_and_stopped_the_world():
    # The trace is from 1990 to 2301: slices of 5 ns. Marking is 1997..2060, the world is stopped 1996..2000.
    each, marked = pieces(1990, 2301, (1997, 2060))
    equal((each, len(marked), marked[1], marked[2]), (5, 63, 3, 5))
    lines = good_text("gc", trace("gc-1.26")).splitlines()
    right = "".join(level(ns / each) for ns in marked)
    equal(right.rstrip(), " +" + "@" * 12)
    assert f"marking  |{right}| 63 ns in all" in lines, lines
    assert "stopped  | @" + " " * 61 + "| at most 4 ns of 5 ns" in lines, lines


@test
def tasks_draw_how_many_were_under_way():
    path = trace("times-1.26")
    found = answer("tasks", path)
    (task,) = [t for t in found["tasks"] if t["name"] == "request"]
    begin, end = found["origin_ns"], found["origin_ns"] + 201
    equal(task["end_ns"] - task["start_ns"], 65)
    each, covered = pieces(begin, end, (task["start_ns"], task["end_ns"]))
    out = good_text("tasks", path).split("\n\n")[1].splitlines()
    equal(out[0], "under way, over 201 ns:")
    right = "|" + "".join(level(ns / each) for ns in covered) + f"| {65 / 201:.2f} on average: request"
    assert right in out, (right, out)


@test
def regions_draw_how_they_spread_on_one_scale():
    for path in FEW_EXAMPLES:
        groups = answer("regions", "--groups", path)["groups"]
        powers = {}
        for group in groups:
            counts = powers.setdefault(group["name"] or "(unknown)", {})
            for least, _, count in group["distributions"]["total"]["buckets"]:
                power = max(0, int(least).bit_length() - 1)
                counts[power] = counts.get(power, 0) + count
        first = min(min(counts) for counts in powers.values())
        last = max(max(counts) for counts in powers.values())
        right = set()
        for name, counts in powers.items():
            most = max(counts.values())
            right.add("|" + "".join(level(counts.get(p, 0) / most) for p in range(first, last + 1)) + "| " + name)
        out = good_text("regions", path).split("a column per power of two:\n")[1].split("\n\n")[0].splitlines()
        equal(set(out), right)


@test
def gc_tells_cycles_and_pauses():
    found = answer("gc", trace("gc-1.26"))
    (cycle,) = found["cycles"]
    right = {
        "begin_ns": 1997,
        "end_ns": 2060,
        "heap_at_begin_bytes": 1000000,
        "heap_at_end_bytes": 500000,
        "heap_goal_bytes": 2000000,
        "assists": 1,
        "assist_ns": 15,
        "longest_assist_ns": 15,
        "sweeps": 1,
        "sweep_ns": 10,
        "swept_bytes": 8192,
        "reclaimed_bytes": 4096,
    }
    equal(cycle, right)
    equal(found["pauses"], [{"name": STW, "begin_ns": 1996, "end_ns": 2000, "goroutine": 1}])


def generation(number, begin, end, *batches):
    """A generation in which P 0 runs G 1 on M 100 and P 1 runs G 2 on M 101; each continues with the events of a
    text."""
    lines = [f"EventBatch gen={number} m=18446744073709551615 time={begin} size=auto", "Sync"]
    lines += ["Frequency freq=1000000000", f"ClockSnapshot dt=0 mono={begin} sec=1700000000 nsec={begin}"]
    for p, events in enumerate(batches):
        lines += [f"EventBatch gen={number} m={100 + p} time={begin} size=auto", f"ProcStatus dt=0 p={p} pstatus=1"]
        lines += [f"GoStatus dt=0 g={p + 1} m={100 + p} gstatus=2", *events.split(";")]
    for what in ("Stacks", "Strings"):
        lines += [f"EventBatch gen={number} m=18446744073709551615 time={end} size=auto", what]
    return "\n".join([*lines, "String id=1", '\tdata="GC mark termination"', "EndOfGeneration\n"])


# Marking from 1100 to 1700, an assist from 1150 to 1450, a sweep from 1160 to 1460, a pause from 1650 to 1850.
COLLECTION = [
    generation(
        1, 1000, 1200,
        "GCBegin dt=100 gc_seq=1 stack=0;GCMarkAssistBegin dt=50 stack=0", "GCSweepBegin dt=160 stack=0",
    ),
    generation(
        2, 1300, 1500,
        "GCMarkAssistActive dt=0 g=1;GCActive dt=0 gc_seq=2;GCMarkAssistEnd dt=150",
        "GCSweepActive dt=0 p=1;GCSweepEnd dt=160 swept_value=8192 reclaimed_value=4096",
    ),
    generation(3, 1600, 1750, "GCActive dt=0 gc_seq=3;STWBegin dt=50 kind_string=1 stack=0;GCEnd dt=50 gc_seq=4", ""),
    generation(4, 1800, 1900, "STWEnd dt=50", ""),
]  # fmt: skip


def collection(name, *generations):
    return assembled(name, "Trace Go1.26\n" + "".join(generations))


def spans_of(path):
    """Begin and end of each range in the timeline, in ns since the first event; None for a begin before the trace."""
    found, ends = [], {}
    events = json.loads(good_text("export", "--to=chrome", path))["traceEvents"]
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    for e in events:
        if e["ph"] == "X" and e["pid"] == 4 or e["ph"] == "b":
            end = e["ts"] + e["dur"] if e["ph"] == "X" else ends[e["id"]]
            found.append((e["name"].split(" (")[0], round(e["ts"] * 1000), round(end * 1000)))
    return sorted(found)


@test
def a_collection_over_several_generations_is_one():
    path = collection("over-generations", *COLLECTION)
    found = answer("gc", path)
    (cycle,), (pause,) = found["cycles"], found["pauses"]
    equal((cycle["begin_ns"], cycle["end_ns"]), (1100, 1700))
    equal((cycle["assists"], cycle["assist_ns"]), (1, 300))
    equal((cycle["sweeps"], cycle["sweep_ns"], cycle["swept_bytes"]), (1, 300, 8192))
    equal((pause["begin_ns"], pause["end_ns"]), (1650, 1850))
    equal(answer("summary", path)["gc"]["marking_ns"], 600)
    g1, g2 = answer("goroutines", path)["goroutines"]
    equal(g1["range_ns"], {"GC mark assist": 300, "stop-the-world (GC mark termination)": 200})
    equal(g2["range_ns"], {"GC incremental sweep": 300})
    right = [("GC concurrent mark phase", 100, 700), ("GC incremental sweep", 160, 460), ("GC mark assist", 150, 450)]
    equal(spans_of(path), [*right, ("stop-the-world", 650, 850)])


@test
def the_number_of_the_p_that_sweeps_makes_no_difference():
    def swapped(text):
        return re.sub(r"\bp=([01])\b", lambda found: f"p={1 - int(found[1])}", text)

    for text in "Trace Go1.26\n" + "".join(COLLECTION), text_of("gc-1.26"):
        one, other = assembled("sweep-on-1", text), assembled("sweep-on-0", swapped(text))
        for args in ("gc",), ("goroutines",), ("mmu", "--flags=sweep"), ("mmu", "--flags=assist,per-p"), ("summary",):
            equal(*(answer(*args, path) for path in (other, one)), args)
        equal(spans_of(other), spans_of(one))


@test
def ranges_found_open_last_since_the_begin_of_the_trace():
    path = collection("found-open", *COLLECTION[1:])
    (cycle,) = answer("gc", path)["cycles"]
    equal((cycle["begin_ns"], cycle["end_ns"]), (0, 1700))
    equal((cycle["assists"], cycle["assist_ns"]), (1, 150))
    equal((cycle["sweeps"], cycle["sweep_ns"]), (1, 160))
    equal(answer("summary", path)["gc"]["marking_ns"], 400)
    right = [("GC concurrent mark phase", 0, 400), ("GC incremental sweep", 0, 160), ("GC mark assist", 0, 150)]
    equal(spans_of(path), [*right, ("stop-the-world", 350, 550)])


@test
def a_collection_is_found_open_after_an_assist_has_ended():
    """The runtime writes GCActive on one thread when a generation has begun."""
    first = "GCMarkAssistActive dt=0 g=1;GCMarkAssistEnd dt=50"
    path = collection("assist-first", generation(1, 1300, 1500, first, "GCActive dt=100 gc_seq=2;GCEnd dt=50 gc_seq=3"))
    (cycle,) = answer("gc", path)["cycles"]
    equal((cycle["end_ns"], cycle["assists"], cycle["assist_ns"]), (1450, 1, 50))
    equal(answer("summary", path)["gc"]["marking_ns"], 150)


@test
def a_collection_longer_than_the_trace_is_drawn_all_over():
    path = collection("longer", generation(1, 1000, 1200, "GCActive dt=0 gc_seq=2;HeapAlloc dt=200 heapalloc_value=1", ""))
    assert answer("summary", path)["gc"]["marking_ns"] >= 200
    report = os.path.join(WORK, "longer.html")
    good_text("report", path, "-o", report)
    with open(report, encoding="utf-8") as file:
        drawn = file.read()
    assert '<rect class="marking" x="0" width="1000"' in drawn and "<p>1 cycle, marking" in drawn


# Whatever the trace


@test
def the_states_of_each_goroutine_make_up_its_time():
    for path in FEW_EXAMPLES:
        for g in answer("goroutines", path)["goroutines"]:
            equal((path, g["id"], states(g)), (path, g["id"], g["total_ns"]))


@test
def groups_are_the_sums_of_their_members():
    for path in FEW_EXAMPLES:
        sums = {}
        for g in answer("goroutines", path)["goroutines"]:
            row = sums.setdefault(g["name"], [0, 0, 0, 0])
            for i, n in enumerate((1, g["exec_ns"], g["total_ns"], sum(g["block_ns"].values()))):
                row[i] += n
        for group in answer("goroutines", "--groups", path)["groups"]:
            ours = [group["count"], group["exec_ns"], group["total_ns"], sum(group["block_ns"].values())]
            equal(ours, sums.pop(group["name"]))
            for column in group["distributions"].values():
                equal(sum(b[2] for b in column["buckets"]), group["count"])
                assert column["min_ns"] <= column["p50_ns"] <= column["p99_ns"] <= column["max_ns"]
        assert not sums, sums


@test
def two_windows_make_up_the_whole():
    for path in FEW_EXAMPLES:
        whole = {g["id"]: corrected(g) for g in answer("goroutines", path)["goroutines"]}
        parts = [
            answer("goroutines", *window, path)["goroutines"]
            for window in (("--to=4ms",), ("--from=4ms",))
        ]
        halves = {}
        for g in map(corrected, parts[0] + parts[1]):
            row = halves.setdefault(g["id"], [0, 0])
            row[0] += g["exec_ns"]
            row[1] += g["sched_wait_ns"]
        for id, g in whole.items():
            # A window does not contain goroutines without an event in it.
            ours = halves.get(id, [0, 0])
            equal((path, id, ours), (path, id, [g["exec_ns"], g["sched_wait_ns"]]))


@test
def stdin_and_compressed_files_give_the_same():
    for path in (EXAMPLES[0], EXAMPLES[3]):
        with open(path, "rb") as f:
            data = f.read()
        for command in COMMANDS:
            right = good_text(command, "--json", path)
            equal(good_text(command, "--json", "-", stdin=data), right)
            equal(good_text(command, "--json", "-", stdin=gzip.compress(data)), right)


@test
def a_damaged_trace_gives_the_answers_of_its_good_part():
    for name in ("everything-1.26", "everything-1.21"):
        with open(trace(name), "rb") as f:
            data = f.read()
        cut = os.path.join(WORK, "cut.trace")
        with open(cut, "wb") as f:
            f.write(data[: len(data) - 40])
        for command in COMMANDS:
            code, out, err = run_text(command, "--json", cut)
            assert code == 1 and json.loads(out), f"{command}: exit {code}: {err}"
            assert "only the part that could be read" in err, err
    with open(os.path.join(WORK, "header.trace"), "wb") as f:
        f.write(b"no trace at all")
    for command in COMMANDS:
        code, out, err = run_text(command, os.path.join(WORK, "header.trace"))
        assert code == 1 and not out and err, f"{command}: exit {code}: {out}"


@test
def a_pause_whose_kind_is_lost_has_no_empty_brackets():
    """In the first half of the file are pauses, but not the strings, which are at its end."""
    with open(os.path.join(ROOT, "examples", "traces", "load-go1.23.trace"), "rb") as f:
        data = f.read()
    half = os.path.join(WORK, "half.trace")
    with open(half, "wb") as f:
        f.write(data[: len(data) // 2])
    pauses = json.loads(run_text("gc", "--json", half)[1])["pauses"]
    equal({p["name"] for p in pauses}, {"stop-the-world"})


@test
def what_is_not_there_names_the_nearest():
    path = trace("times-1.26")
    cases = [
        (["goroutines", "--name=main.wroker"], "did you mean 'main.worker'"),
        (["goroutines", "--goroutine=5"], "the nearest is 3"),
        (["goroutines", "--percentiles=exc"], "did you mean 'exec'"),
        (["regions", "--name=prase"], "did you mean 'parse'"),
        (["tasks", "--name=requets"], "did you mean 'request'"),
        (["tasks", "--task=9"], "from 7 to 8"),
        (["mmu", "--flags=swt"], "did you mean 'stw'"),
        (["mmu", "--window=0ms"], "is not a window length"),
        (["mmu", "--quantiles=1.5"], "'1.5' is not a share"),
        (["mmu", "--quantiles=0.5,,"], "'' is not a share"),
        (["mmu", "--quantiles=0.5,nan"], "'nan' is not a share"),
        (["mmu", "--quantiles=0,0,0,0,0,0,0,0,0"], "at most 8"),
        (["gc", "--from=2ms", "--to=1ms"], "before --from"),
    ]
    for args, hint in cases:
        code, out, err = run_text(*args, path)
        assert code == 2 and hint in err and not out, f"{args}: exit {code}: {out}{err}"


@test
def empty_answers_say_so():
    path = trace("gc-1.26")
    regions, tasks = good_text("regions", path), good_text("tasks", path)
    assert regions.startswith("No user regions.") and "trail_region_begin" in regions, regions
    assert tasks.startswith("No user tasks.") and "trace.NewTask" in tasks, tasks
    code, out, err = run_text("goroutines", "--from=1s", path)
    assert code == 0 and "after the last event, at 311 ns" in err, err
    assert "No garbage collection" in good_text("gc", trace("times-1.26"))
    code, _, err = run_text("goroutines", "--from=1ns", "--to=2ns", path)
    equal((code, err), (0, ""))  # nothing happens in it, but it is inside the trace
    # a window after the end shows nothing from before it
    assert run_text("tasks", "--from=1s", trace("times-1.26"))[1].startswith("No user tasks.")
    code, out, _ = run_text("gc", "--json", "--from=1s", path)
    found = json.loads(out)
    equal((code, found["cycles"], found["pauses"]), (0, [], []))


def commands_in(out):
    """The commands that show the place of a figure: each is at the end of its line."""
    found = [re.search(r"(?:^|\s\s|: )(trail (?:print|why|tasks|regions|find) .*)$", line) for line in out.splitlines()]
    return [match[1] for match in found if match]


@test
def each_command_that_is_told_shows_something():
    asked = [
        (("summary",), 12),
        (("tasks",), 2),
        (("tasks", "--task=1"), 3),
        (("tasks", "--name=round"), 2),
        (("regions",), 1),
        (("regions", "--name=grow"), 1),
        (("goroutines", "--goroutine=1"), 2),
        (("why",), 1),
        (("why", "--from=3ms", "--to=+1ms"), 1),
        (("latency",), 3),
        (("latency", "--name=main.main", "--from=1ms"), 2),
        (("gc",), 2),
        (("mmu",), 3),
        (("locks",), 1),
        (("find", "run >10us"), 1),
    ]
    for example in FEW_EXAMPLES:
        path = os.path.join(WORK, "it's a " + os.path.basename(example))
        shutil.copy(example, path)
        ran = set()
        for args, least in asked:
            commands = commands_in(good_text(args[0], path, *args[1:]))
            assert len(commands) >= least, (args, commands)
            for command in {*commands[-12:]} - ran:
                ran.add(command)
                words = shlex.split(command)
                equal((words[0], path in words), ("trail", True))
                code, out, err = run_text(*words[1:])
                assert (code, err) == (0, "") and out, f"{args}: {command}: {code} {err}{out}"


@test
def commands_read_the_file_as_it_was_read():
    commands = commands_in(good_text("goroutines", "--repair", "--goroutine=1", EXAMPLES[0]))
    assert len(commands) == 2 and all(" --repair " in command for command in commands), commands


@test
def nothing_in_a_name_reaches_the_terminal():
    out = good_text("tasks", "--task=7", trace("times-1.26"))
    assert r"half\x1b[1m way" in out and "\x1b" not in out, out


def many_pauses_of_many_procs():
    """65,536 Ps, and 400,000 pauses of 1 ns, 1 ns apart."""
    pauses, each = 400_000, 4_000
    pause = "STWBegin dt=1 kind_string=1 stack=0\nSTWEnd dt=1\n"
    batch = "EventBatch gen=1 m=1 time=%d size=auto\n"
    table = "EventBatch gen=1 m=18446744073709551615 time=1 size=auto\n"
    text = "Trace Go1.23\n" + batch % 1 + "ProcStatus dt=1 p=0 pstatus=1\nGoStatus dt=1 g=1 m=1 gstatus=2\n"
    text += "ProcsChange dt=1 procs_value=65536 stack=0\n"
    text += "".join(batch % (5 + 2 * at) + pause * each for at in range(0, pauses, each))
    text += table + "Frequency freq=1000000000\n" + table + 'Strings\nString id=1\n\tdata="GC mark termination"\n'
    return assembled("pauses", text)


@test
def the_cost_of_a_pause_is_not_that_of_all_procs():
    """This takes half a second of CPU time; if each event looked at each P, a minute."""
    path = many_pauses_of_many_procs()
    resource.setrlimit(resource.RLIMIT_CPU, (10, resource.RLIM_INFINITY))
    shares = answer("mmu", path)["mmu"]
    assert shares and all(abs(share - 0.5) < 0.01 for share in shares), shares


@test
def tables_choose_sort_and_limit():
    path = EXAMPLES[3]
    rows = good_text("goroutines", "--members", "--sort=sched-wait", "--limit=5", path).split("\n\n")[0].splitlines()
    assert rows[1].split()[0] == "G" and len(rows) == 2 + 5 + 1, rows
    assert rows[-1].startswith("... and "), rows
    for column in ("total", "exec", "sched-wait", "block", "syscall", "syscall-block"):
        assert "p99" in good_text("goroutines", "--percentiles=" + column, path)
        assert "#" in good_text("goroutines", "--histogram=" + column, path)


if __name__ == "__main__":
    sys.exit(main())
