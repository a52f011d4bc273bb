#!/usr/bin/env python3
"""trail report: its figures are those of the other commands, and no text from a trace acts as markup. TAP.

usage: report.py TRAIL SOURCE_ROOT
"""

import base64
import gzip
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, ROOT, TRAIL, WORK, assembled, equal, good, run, trace  # noqa: E402
from report_page import Page  # noqa: E402
from tap import main, test  # noqa: E402

EXAMPLES = [os.path.join(ROOT, "examples", "traces", f"load-go1.{n}.trace") for n in (19, 23)]
BY_HAND = ["everything-1.26", "gc-1.26", "locks-1.26", "times-1.26", "why-1.26"]
# Everything that an element of a report may contain, except text.
ATTRIBUTES = {
    *(
        "aria-hidden aria-label aria-labelledby charset class content d data-d data-key data-kind".split()
    ),
    *(
        "data-total data-v fill height href http-equiv id lang name preserveaspectratio role scope".split()
    ),
    *("tabindex title viewbox width x y".split()),
}


def answer(*args):
    code, out, err = run(*args, "--json")
    assert code in (0, 1), f"trail {' '.join(args)}: exit {code}: {err}"
    return json.loads(out)


def near(ours, right, share):
    assert abs(ours - right) <= share * abs(right) + 1e-9, f"{ours}, not about {right}"


def report(path, *options, code=0):
    """The text of the report, and its parsed form."""
    out = os.path.join(WORK, "report.html")
    status, _, err = run("report", *options, path, "-o", out)
    equal(status, code)
    with open(out, encoding="utf-8") as file:
        text = file.read()
    return text, Page(text)


def traces():
    yield from EXAMPLES
    yield from map(trace, BY_HAND)


def whole(path):
    return report(path, "--limit=0")[1]


def name_of(text):
    return text if text else "(unknown)"


# Contents


def greatest(values):
    return max(values, default=0)


def is_held(kind):
    held = "mutex", "rwlock", "spin lock", "futex", "file lock", "OpenMP lock", "OpenMP critical"
    return "Mutex)" in kind or kind in held


def tiles_of(path):
    """The expected tiles, from the commands with the same figures. Goroutines without a name are the runtime's."""
    right, locks = answer("summary", path), answer("locks", path)["locks"]
    activity, heap = right["activity"], right["heap"]
    expected = {
        "length_ns": right["end_ns"] - right["begin_ns"],
        "goroutines": right["goroutines"],
        "running_ns": activity["running_ns"],
        "idle_ns": sum(activity[f"idle_{why}_ns"] for why in ("work", "lock", "nothing")),
        "ready_ns": activity["ready_ns"],
    }
    longest = greatest(g["ready"]["longest"]["ns"] for g in right["waits"])
    waited = sum(
        wait["sum_ns"]
        for g in right["waits"]
        if g["name"] and (g["name"] == "runtime.main" or not g["name"].startswith("runtime."))
        for wait in g["blocked"]
        if wait.get("idle_ns", 0) <= wait["sum_ns"] // 2
    )
    held = [lock["wait_ns"] for lock in locks if is_held(lock["kind"])]
    optional = {
        "longest_ready_ns": longest,
        "waiting_ns": waited,
        "lock_ns": greatest(held),
        "open_waits": sum(lock["unfinished"] for lock in locks),
        "slowest_task_ns": greatest(kind["longest"]["ns"] for kind in right["tasks"]),
        "heap_peak_bytes": heap["peak_bytes"] if heap else 0,
        "gc_cycles": right["gc"]["cycles"],
    }
    return expected | {key: value for key, value in optional.items() if value}


@test
def the_summary_has_the_same_tiles():
    for path in traces():
        right = answer("summary", path)
        equal({tile["key"]: tile["value"] for tile in right["tiles"]}, tiles_of(path))
        # Waits that have not ended are in no other sum: how long they are comes with their number.
        for tile in (tile for tile in right["tiles"] if tile["key"] == "open_waits"):
            longest = re.search(r"the longest for ([\d.]+ \w+):", tile["note"]).group(1)
            equal(tile["text"], f"{tile['value']}, up to {longest}")
        for tile in right["tiles"]:
            begin, end = tile.get("begin_ns", right["begin_ns"]), tile.get("end_ns", right["end_ns"])
            assert right["begin_ns"] <= begin <= end <= right["end_ns"], (path, tile)


def plain(text):
    """Replaces us by µs."""
    return re.sub(r"(\d) us\b", r"\1 µs", text)


@test
def the_order_is_what_is_wrong_evidence_appendix():
    for path in traces():
        page = whole(path)
        heads = [e.text() for e in page.root.all("h2")]
        wrong = bool(answer("summary", path)["findings"]) and any(True for _ in page.root.all("a", href="#moment-1"))
        first = ["What is wrong", *(["Evidence"] if wrong else []), "Appendix", "Figures"]
        equal(heads[: len(first)], first)
        # The contents of the first screen: the facts, few figures, and the findings.
        before = list(page.root.one("header").walk())
        assert len([e for e in before if e.tag == "dd"]) <= 5, path
        moments = [e.attributes["id"] for e in page.root.all("figure", class_="moment")]
        linked = [a.attributes["href"][1:] for a in page.root.all("a") if "moment-" in a.attributes["href"]]
        first = list(dict.fromkeys(linked))
        equal(moments[: len(first)], first)


@test
def figures_and_findings_are_those_of_the_summary():
    findings = 0
    for path in traces():
        page, right = whole(path), answer("summary", path)
        equal({key: int(value) for key, value in page.figures().items()}, tiles_of(path))
        cards = [e for e in page.root.all("li") if "data-kind" in e.attributes]
        said = [[part.text() for part in [card.one("h3"), card.one("p", class_="why").one("bdi"), *card.all("p", class_="remedy")]]
                for card in cards]
        parts = [[f["heading"], f["details"]] + [f["remedy"]] * bool(f["remedy"]) for f in right["findings"]]
        equal(said, [[plain(part) for part in of] for of in parts])
        for f in right["findings"]:
            equal(f["text"], " ".join(filter(None, [f["heading"] + ".", f["details"], f.get("bound"), f["remedy"]])))
        findings += len(said)
    assert findings > 0, "no trace here has a finding"


@test
def the_table_of_goroutines_is_that_of_trail_goroutines():
    for path in traces():
        rows = whole(path).table("Goroutines by start function")
        right = answer("goroutines", "--groups", path)["groups"]
        expected = [
            {
                "start function": name_of(g["name"]),
                "goroutines": g["count"],
                "unfinished": g["unfinished"],
                "total": g["total_ns"],
                "running": g["exec_ns"],
                "ready": g["sched_wait_ns"],
                "waiting": sum(g["block_ns"].values()),
                "syscall": g["syscall_ns"],
                "P released": g["syscall_block_ns"],
            }
            for g in right
        ]
        equal(rows, expected)


def spread(histogram, count, total):
    return {
        "times": count,
        "sum": total,
        "median": histogram["p50_ns"],
        "p95": histogram["p95_ns"],
        "p99": histogram["p99_ns"],
        "longest": histogram["max_ns"],
    }


def without(row, *columns):
    return {key: value for key, value in row.items() if key not in columns}


# The displayed name of a kind of wait, where it differs from JSON's.
TITLES = {"condition": "condition variable", "spin": "spin lock", "child": "child process"}


@test
def waits_are_those_of_the_summary():
    for path in traces():
        page, right = whole(path), answer("summary", path)["waits"]
        rows = page.table("Scheduling latency (ready until running)")
        equal(
            [without(row, "goroutines", "running", "longest in") for row in rows],
            [
                {"start function": name_of(w["name"])}
                | spread(w["ready"]["spread"], w["ready"]["count"], w["ready"]["sum_ns"])
                for w in right
            ],
        )
        expected = [
            {"start function": name_of(w["name"]), "for": TITLES.get(b.get("wait_kind"), b.get("wait_kind") or b["reason"] or "no reason given")}
            | spread(b["spread"], b["count"], b["sum_ns"])
            for w in right
            for b in w["blocked"]
        ]
        rows = [without(row, "longest in") for row in page.table("Waits that ended") or []]
        equal(sorted(rows, key=str), sorted(expected, key=str))
        # Rows of the runtime (Go counts goroutines without a name among them) come last; within
        # both groups the longest comes first.
        order = [
            (row["start function"].startswith(("runtime.", "(unknown)", "runtime/")), -row["sum"])
            for row in rows
        ]
        others = [row for row in order if not row[0]]
        equal(order[: len(others)], sorted(others))
        equal(order[len(others) :], sorted(order[len(others) :]))


@test
def locks_threads_and_ps_are_those_of_their_commands():
    locks = 0
    for path in traces():
        page = whole(path)
        right = answer("locks", path)["locks"]
        rows = page.table("Locks") or []
        equal(
            [(r["lock"], r["waits"], r["total"], r["still"], r["holds"], r["held"]) for r in rows],
            [
                (
                    (lock["kind"] + " " + lock["name"]).strip(),
                    *(lock["waits"], lock["wait_ns"], lock["unfinished_ns"]),
                    *(lock["holds"], lock["hold_ns"]),
                )
                for lock in right
            ],
        )
        locks += len(rows)
        equal(
            [(r["thread"], r["running"], r["idle"], r["events"]) for r in page.table("Threads")],
            [
                (t["id"], t["running_ns"], t["idle_ns"], t["events"])
                for t in answer("threads", path)["threads"]
            ],
        )
        equal(
            [(r["P"], r["running"], r["idle"], r["released"]) for r in page.table("Ps")],
            [
                (p["id"], p["running_ns"], p["idle_ns"], p["taken"])
                for p in answer("procs", path)["procs"]
            ],
        )
    assert locks > 0


@test
def tasks_and_regions_are_those_of_the_summary():
    tasks = 0
    for path in traces():
        page, right = whole(path), answer("summary", path)
        equal(
            [(r["type"], r["begun"], r["ended"], r["longest"]) for r in page.table("Tasks") or []],
            [
                (name_of(t["name"]), t["begun"], t["ended"], t["spread"]["max_ns"])
                for t in right["tasks"]
            ],
        )
        equal(
            [(r["name"], r["times"], r["sum"], r["running"]) for r in page.table("Regions") or []],
            [
                (r["name"] or "(unknown)", r["count"], r["total_ns"], r["exec_ns"])
                for r in right["regions"]
            ],
        )
        tasks += len(right["tasks"])
    assert tasks > 0


def area_under(path):
    """In a drawing 1000 wide and 100 high."""
    points = [tuple(map(float, p.split())) for p in re.findall(r"[ML]([\d.-]+ [\d.-]+)", path)]
    pairs = zip(points, points[1:])
    return sum((x2 - x1) * (100 - y1) for (x1, y1), (x2, y2) in pairs if y1 == y2) / 100000


def plot(page, title):
    for figure in page.root.all("figure", class_="plot"):
        if figure.one("h3").text() == title:
            return figure
    return None


@test
def the_plots_have_as_much_area_as_goroutines_had_time():
    for path in EXAMPLES:
        page, right = whole(path), answer("summary", path)
        length = right["end_ns"] - right["begin_ns"]
        for title, look, key in (
            ("Running", "running", "running_ns"),
            ("Ready, not running", "runnable", "ready_ns"),
        ):
            figure = plot(page, title)
            most = float(next(figure.one("div", class_="y").all("span")).text())
            area = area_under(figure.one("path", class_=look).attributes["d"])
            near(area * most, right["activity"][key] / length, 0.001)


# A tick is a microsecond. G 1 is in three system calls: one of 1000, in which M 6 takes its P after
# 400; one of 250, in which it keeps the P; and one that does not end, with the P for 100 and
# without it for 200.
LOST_P = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=0 size=auto
Sync
Frequency freq=1000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=0 size=auto
ProcStatus dt=1000 p=0 pstatus=1
GoStatus dt=0 g=1 m=5 gstatus=2
GoSyscallBegin dt=1000 p_seq=1 stack=0
GoSyscallEndBlocked dt=1000
ProcStart dt=100 p=0 p_seq=3
GoStart dt=0 g=1 g_seq=1
GoSyscallBegin dt=100 p_seq=4 stack=0
GoSyscallEnd dt=250
GoSyscallBegin dt=150 p_seq=5 stack=0
EventBatch gen=1 m=6 time=0 size=auto
ProcSteal dt=2400 p=0 p_seq=2 m=5
ProcStatus dt=0 p=1 pstatus=1
ProcSteal dt=1300 p=0 p_seq=6 m=5
HeapAlloc dt=200 heapalloc_value=1
EndOfGeneration
"""


@test
def a_p_that_is_taken_away_in_a_system_call_is_told():
    with open(os.path.join(WORK, "lost-p.txt"), "w") as file:
        file.write(LOST_P)
    path = os.path.join(WORK, "lost-p.trace")
    good("assemble", os.path.join(WORK, "lost-p.txt"), "-o", path)
    page = whole(path)
    with_p, without = 400 + 250 + 100, 600 + 200
    rows = page.table("Time of all goroutines")
    sums = {(row["state"], row["for"]): int(row["time"]) for row in rows}
    near(sums["syscall", ""], with_p * 1000, 0.001)
    near(sums["syscall", "P released"], without * 1000, 0.001)
    figure = plot(page, "Waiting and in system calls")
    most = float(next(figure.one("div", class_="y").all("span")).text())
    areas = [area_under(figure.one("path", class_=c).attributes["d"]) for c in ("syscall", "p-released", "waiting")]
    length = answer("summary", path)
    length = (length["end_ns"] - length["begin_ns"]) / 1000
    # The areas are stacked, and nothing waits.
    near(areas[0] * most, with_p / length, 0.01)
    near(areas[1] * most, (with_p + without) / length, 0.01)
    equal(areas[2], areas[1])


@test
def axes_of_counts_have_whole_numbers():
    for path in traces():
        for figure in whole(path).root.all("figure", class_="plot"):
            for label in (s.text() for y in figure.all("div", class_="y") for s in y.all("span")):
                assert re.fullmatch(r"\d+", label) or re.search(r"[%B]", label), (path, label)


@test
def a_median_is_about_so_much_only_of_more_than_are_kept():
    seen = set()
    for path in traces():
        for note in (f.one("figcaption").text() for f in whole(path).root.all("figure", class_="plot")):
            if not (count := re.search(r"([\d,]+) times?\b", note)):
                continue
            many = int(count[1].replace(",", ""))
            equal("about" in note, many > 128, (path, note))
            equal("median" in note, many > 1, (path, note))
            seen.add(min(many, 2) if many <= 128 else 3)
    equal(seen, {1, 2, 3})


@test
def what_waited_names_the_waits_that_it_leaves_out():
    path = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    [tile] = [tile for tile in answer("summary", path)["tiles"] if tile["key"] == "waiting_ns"]
    assert tile["note"].endswith("; without 103 ms of waits for work"), tile["note"]


@test
def the_legend_has_what_is_drawn():
    drawn = {
        "running": "running", "runnable": "ready", "syscall": "syscall",
        "e-io": "I/O", "e-sleep": "sleep", "e-runtime": "runtime, GC", "e-idle": "idle",
        "e-unknown": "not recorded", "wake": "wake-up, from its waker",
    }
    threads, go = ("lock", "condition"), ("lock, WaitGroup", "channel")
    for name, (lock, condition) in (("shop-c", threads), ("load-go1.23", go), ("shop-go", go)):
        page = whole(os.path.join(ROOT, "examples", "traces", f"{name}.trace"))
        moments = page.root.all("figure", class_="moment")
        classes = {c for m in moments for p in m.all("path") for c in p.attributes["class"].split()}
        signs = {**drawn, "e-lock": lock, "e-cond": condition, "p-released": None}
        legends = [
            {li.text() for li in ul.all("li")}
            for ul in page.root.all("ul", class_="legend")
            if any("wake" in li.text() or "condition" in li.text() or "channel" in li.text() for li in ul.all("li"))
        ]
        equal(set().union(*legends) - {"syscall, P released"}, {signs[c] for c in classes if signs.get(c)}, name)


@test
def who_blocks_for_ever_does_not_wait():
    path = trace("forever-1.26")
    figure = plot(whole(path), "Waiting and in system calls")
    most = float(next(figure.one("div", class_="y").all("span")).text())
    (g1, *_), summary = answer("goroutines", path)["goroutines"], answer("summary", path)
    equal(g1["block_ns"], {"chan receive": 40})
    near(area_under(figure.one("path", class_="waiting").attributes["d"]) * most, 40 / (summary["end_ns"] - summary["begin_ns"]), 0.01)


@test
def the_curve_of_utilisation_ends_with_what_is_left_of_the_whole():
    for path in EXAMPLES:
        curve = plot(whole(path), "What garbage collection left (MMU)")
        points = re.findall(
            r"[ML]([\d.-]+) ([\d.-]+)", curve.one("path", class_="mmu").attributes["d"]
        )
        x, y = map(float, points[-1])
        near(1 - y / 100, 1 - answer("summary", path)["gc"]["share"], 0.001)
        equal((float(points[0][0]), x), (0, 1000))
        heights = [float(p[1]) for p in points]
        assert heights[0] >= heights[-1] and 0 <= min(heights) <= max(heights) <= 100


@test
def histograms_have_as_many_as_there_were():
    for path in EXAMPLES:
        page, right = whole(path), answer("summary", path)["waits"]
        figure = plot(page, "Scheduling latency (ready until running)")
        counts = [int(t.text().rsplit(" ", 1)[1]) for t in figure.all("title")]
        equal(sum(counts), sum(w["ready"]["count"] for w in right))


def flame(page, name):
    figure = page.root.one("figure", id=name)
    frames = figure.one("svg", class_="flames").children
    return int(figure.attributes["data-total"]), [
        (
            int(f.attributes["data-d"]),
            float(f.attributes["x"].rstrip("%")),
            float(f.attributes["width"].rstrip("%")),
            f.one("title").text(),
        )
        for f in frames
    ]


@test
def flame_graphs_are_profiles_and_no_frame_is_wider_than_the_one_above():
    for path in EXAMPLES:
        page = whole(path)
        total, frames = flame(page, "flame-waits")
        right = answer("profile", "--type=offcpu", path)
        equal(total, right["ns"])
        by_reason = {}
        for sample in right["samples"]:
            names = [right["frames"][i]["name"] for i in sample["stack"]]
            reason = [n for n in names if n.startswith("[")][-1]  # before it, "[not woken]"
            by_reason[reason] = by_reason.get(reason, 0) + sample["ns"]
        for depth, _, width, title in frames:
            if depth == 1:
                near(width, 100 * by_reason[title.rsplit(": ", 1)[0]] / total, 0.001)
        above = [(0.0, 100.0)]
        for depth, x, width, title in frames:
            left, room = above[depth - 1] if depth else (0.0, 100.0)
            assert x >= left - 0.01 and x + width <= left + room + 0.01, title
            above[depth:] = [(x, width)]
        right = answer("profile", "--type=running", path)
        equal(flame(page, "flame-running")[0], right["ns"])
        assert any("StartCPUProfile" in p.text() for p in page.root.all("p", class_="none"))


@test
def samples_make_the_flame_graph_where_there_are_some():
    path = trace("everything-1.26")
    right = answer("profile", "--type=cpu", path)
    assert right["count"] > 0
    page = whole(path)
    equal(flame(page, "flame-cpu")[0], right["count"])
    assert not any("no CPU samples" in p.text() for p in page.root.all("p", class_="none"))


@test
def below_the_waiter_is_the_one_that_let_it_go_on():
    """In the shop, flush_once holds cache_mu while it sleeps (examples/shop): its thread is second, and then comes another
    worker that waits for cache_mu, before main, which woke the first one earlier."""
    page = whole(os.path.join(ROOT, "examples", "traces", "shop-c.trace"))
    moment = next(page.root.all("figure", class_="moment"))
    lanes = [li.one("bdi").text() for li in moment.one("ol", class_="lanes").all("li")]
    equal(lanes, ["work", "flush", "work", "main"])


@test
def of_a_c_program_no_garbage_collection_is_said_not_to_have_run():
    def notes(path):
        return [p.text() for p in whole(path).root.all("p", class_="none") if "arbage collection" in p.text()]

    equal(notes(os.path.join(ROOT, "examples", "traces", "shop-c.trace")), [])
    equal(len(notes(trace("locks-1.26"))), 1)


@test
def the_time_of_waits_has_the_colour_of_their_class():
    """Waits in this trace are for mutexes, one condition variable, and a channel (tests/data/locks-1.26.txt)."""
    page = whole(trace("locks-1.26"))
    for table in page.root.all("table"):
        if table.one("caption").text() == "Time of all goroutines":
            break
    colours = {}
    for row in table.one("tbody").all("tr"):
        state, what = row.children[0].text(), row.children[1].text()
        colours[(state, what)] = row.one("rect").attributes["class"]
    equal(colours[("running", "")], "running")
    equal(colours[("waiting", "mutex")], "waiting e-lock")
    equal(colours[("waiting", "condition variable")], "waiting e-cond")
    equal(colours[("waiting", "select")], "waiting e-cond")


def bins(path):
    """Which bins of the drawing a path covers."""
    covered = set()
    for x, width in re.findall(r"M(\d+) \d+h(\d+)v", path):
        covered.update(range(int(x), int(x) + int(width)))
    return covered


@test
def a_moment_shows_who_waited_who_ended_it_and_when():
    # G 3 waits 1090..1260 for a_mu, and G 1 ends the wait: the longest wait for a lock with that text.
    page = whole(trace("locks-1.26"))
    moment = next(
        m for m in page.root.all("figure", class_="moment") if "a_mu" in m.one("h3").text()
    )
    names = [li.text() for li in moment.one("ol", class_="lanes").all("li")]
    assert names[0].startswith("G3 "), names
    assert names[1].startswith("G1 main"), names
    drawing = moment.one("svg", class_="timeline")
    lanes = [p for p in drawing.all("path", class_="e-lock")]
    begin, end = map(
        float,
        re.match(
            r"M([\d.]+) 0H([\d.]+)V", drawing.one("path", class_="case").attributes["d"]
        ).groups(),
    )
    waited = bins(lanes[0].attributes["d"])
    expected = set(range(int(begin) + 1, int(end)))
    assert expected <= waited, f"{begin} to {end}, but {sorted(expected - waited)}"
    # Its box has the colours of the class, and the name of the object.
    assert expected <= bins(next(drawing.all("path", class_="w-lock")).attributes["d"])
    label = next(drawing.all("span")).text()
    equal(label, f"mutex a_mu, {1260 - 1090} ns")
    wake = next(drawing.all("path", class_="wake")).attributes["d"]
    near(float(re.match(r"M([\d.]+) ", wake).group(1)), end, 0.01)


@test
def what_a_trace_does_not_have_is_said_and_how_to_get_it():
    page = whole(trace("locks-1.26"))
    said = " ".join(p.text() for p in page.root.all("p", class_="none"))
    for word in ("NewTask", "WithRegion", "--heap", "--cpu-samples", "No garbage collection"):
        assert word in said, f"{word} is not in {said}"


@test
def a_window_counts_what_is_in_it():
    path = EXAMPLES[1]
    options = ("--from=5ms", "--to=+10ms")
    page, right = report(path, *options)[1], answer("summary", *options, path)
    equal(page.figure("running_ns"), right["activity"]["running_ns"])
    figure = plot(page, "Running")
    most = float(next(figure.one("div", class_="y").all("span")).text())
    area = area_under(figure.one("path", class_="running").attributes["d"])
    near(area * most, right["activity"]["running_ns"] / 10e6, 0.001)


UNITS = {"ns": 1, "µs": 1000, "ms": 1_000_000, "s": 1_000_000_000}


def times_below(figure):
    """The ticks: their positions, from 0 to 1, and their labels."""
    ticks = figure.one("svg", class_="x").all("text")
    return [(float(t.attributes["x"].rstrip("%")) / 100, t.text()) for t in ticks]


def nanoseconds(label):
    value, unit = label.split()
    return round(float(value) * UNITS[unit])


@test
def ticks_are_round_times_at_their_place():
    path = EXAMPLES[1]
    for begin, length in ((5_000, 40_000), (5_000_000, 10_000_000), (3_210_987, 7_777_777), (14_625_999, 457)):
        page = report(path, f"--from={begin}ns", f"--to=+{length}ns")[1]
        ticks = times_below(plot(page, "Running"))
        times = [nanoseconds(label) for _, label in ticks]
        assert 3 <= len(ticks) <= 8, ticks
        step = times[1] - times[0]
        assert re.fullmatch("[125]0*", str(step)), ticks
        equal(times, list(range(times[0], times[0] + step * len(times), step)))
        equal(times[0] % step, 0)
        assert times[0] - step < begin <= times[0] and times[-1] <= begin + length < times[-1] + step, ticks
        for x, label in ticks:
            assert abs(x * length - (nanoseconds(label) - begin)) <= 2e-5 * length, (x, label)
        equal(len({label.split()[1] for _, label in ticks}), 1)


@test
def ticks_of_a_logarithmic_axis_are_powers_of_ten():
    page = report(EXAMPLES[1], "--from=5ms", "--to=+10ms")[1]
    ticks = times_below(plot(page, "What garbage collection left (MMU)"))
    equal([label for _, label in ticks], ["10 µs", "100 µs", "1 ms", "10 ms"])
    for (x, _), right in zip(ticks, (0, 1 / 3, 2 / 3, 1)):
        near(x, right, 1e-4)


@test
def microseconds_have_their_sign_everywhere():
    """Also in the locale C, in which the command is run here."""
    names = ("load-go1.19", "load-go1.23", "shop-c", "shop-go", "fiber")
    for path in (os.path.join(ROOT, "examples", "traces", f"{name}.trace") for name in names):
        text = report(path)[0]
        assert " 1 times" not in text
        assert re.search(r"\d&nbsp;µs", text) and not re.search(r"\d us\b", text), path


@test
def the_first_figures_say_of_how_many_ps_how_many_ran():
    for path in EXAMPLES:
        summary = answer("summary", path)
        of = summary["activity"]
        many = of["running_ns"] / (summary["end_ns"] - summary["begin_ns"])
        [tile] = [tile for tile in summary["tiles"] if tile["key"] == "running_ns"]
        equal(tile["text"], f"{many:.2f} of {of['procs']}")


@test
def no_line_of_a_finding_ends_between_a_number_and_its_unit():
    for path in EXAMPLES:
        findings = re.search(r'<ol class="findings">.*?</ol>', report(path)[0], re.S)
        for line in re.findall(r">([^<]*)<", findings.group(0) if findings else ""):
            assert not re.search(r"\d (%|[nµm]?s\b)", line), (path, line)


@test
def a_finding_leads_to_its_moment():
    page = report(EXAMPLES[0])[1]
    finding = next(page.root.one("ol", class_="findings").all("li"))
    moment = page.root.one("figure", id=finding.one("a").attributes["href"][1:])
    equal(moment.one("h3").text(), finding.one("h3").text())
    assert moment.one("code").text().startswith("trail print "), "the command is where it is drawn"
    equal(list(finding.all("code")), [])


@test
def what_the_runtime_does_aside_is_not_in_the_picture_of_a_finding():
    """In the shop of Go the collector's workers run for microseconds, and wake none of its goroutines."""
    page = report(os.path.join(ROOT, "examples", "traces", "shop-go.trace"))[1]
    moment = next(page.root.all("figure", class_="moment"))
    lanes = [li.one("bdi").text() for li in moment.one("ol", class_="lanes").all("li")]
    equal(sorted(lanes), ["main.(*shop).flush", "main.(*shop).work", "main.(*shop).work", "main.main"])


@test
def the_picture_of_a_slow_task_has_its_goroutine_on_top():
    """Its task and its region are in one picture, which both findings lead to."""
    path = os.path.join(ROOT, "examples", "traces", "shop-go-fixed.trace")
    page = report(path)[1]
    slowest = max(answer("tasks", path)["tasks"], key=lambda task: task["end_ns"] - task["start_ns"])
    seen = set()
    for kind in ("slow-task", "slow-region"):
        for finding in page.root.one("ol", class_="findings").all("li"):
            if finding.attributes["data-kind"] != kind:
                continue
            moment = page.root.one("figure", id=finding.one("a").attributes["href"][1:])
            lane = next(moment.one("ol", class_="lanes").all("li")).one("b").text()
            assert int(lane[1:]) in slowest["goroutines"], (kind, lane)
            seen.add((kind, moment.attributes["id"]))
    equal({kind for kind, _ in seen}, {"slow-task", "slow-region"})
    equal(len({moment for _, moment in seen}), 1)


# The document


@test
def it_asks_for_nothing_and_only_its_own_script_may_run():
    for path in EXAMPLES:
        text, page = report(path)
        for word in (
            "http:",
            "https:",
            "url(",
            "src=",
            "@import",
            "<link",
            "style=",
            "javascript:",
        ):
            assert word not in text, f"{word} is in it"
        assert not re.search(r"\son\w+=", text)
        policy = next(
            m.attributes["content"]
            for m in page.root.all("meta")
            if m.attributes.get("http-equiv") == "Content-Security-Policy"
        )
        assert policy.startswith("default-src 'none'; "), policy
        assert "unsafe" not in policy
        for tag in ("style", "script"):
            digest = hashlib.sha256(page.root.one(tag).text().encode()).digest()
            right = f"{tag}-src 'sha256-{base64.b64encode(digest).decode()}'"
            assert right in policy, f"{right} is not in {policy}"


@test
def it_is_a_document_that_can_be_read_aloud():
    for path in traces():
        page = whole(path)
        headings = [int(e.tag[1]) for e in page.root.walk() if re.fullmatch("h[1-6]", e.tag)]
        equal((headings[0], headings.count(1)), (1, 1))
        assert all(b <= a + 1 for a, b in zip(headings, headings[1:])), headings
        ids = [e.attributes["id"] for e in page.root.walk() if "id" in e.attributes]
        equal(len(ids), len(set(ids)))
        for link in page.root.all("a"):
            assert link.attributes["href"].startswith("#")
            assert link.attributes["href"][1:] in ids, link.attributes["href"]
        for table in page.root.all("table"):
            assert table.one("caption").text()
            assert all("scope" in th.attributes for th in table.all("th"))
        for drawing in page.root.all("svg"):
            named = drawing.attributes.get("aria-label") or drawing.attributes.get("aria-hidden")
            inside = any(c.tag == "title" for c in drawing.children)
            assert named or inside, drawing.attributes


HOSTILE = [
    b"</script><script>alert(1)</script>",
    b"</title></style><img src=x onerror=alert(1)>",
    b'" onmouseover="alert(1)',
    b"' autofocus onfocus='alert(1)",
    b"&lt;b&gt;&#60;i&#62;",
    b"<!--",
    b"]]><svg onload=alert(1)>",
    b"https://evil.example/@import url(x)",
    b"\x01\x1b[31m\x7f",
    b"a\x00b",
    b"\xff\xfe\xc0\xaf",
    "\u202egnp.exe\u2066".encode(),
    "\u05d0\u05d1.\u0627(3)".encode(),
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f\u200d\U0001f525".encode(),
    b"a\xe2\x80\x8db",
    b"%n%s%99999999s",
    b"A" * 900,
]


def shown(name):
    """The text as shown to a reader, with the escapes of Go's quotes for characters that are not printed."""
    text = name.decode("utf-8", "surrogateescape")
    text = re.sub("[\udc80-\udcff]", lambda m: f"\\x{ord(m[0]) & 0xff:02x}", text)
    text = re.sub("[\x00-\x1f\x7f]", lambda m: f"\\x{ord(m[0]):02x}", text)
    text = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda m: f"\\u{ord(m[0]):04x}", text)
    return re.sub("(?<=[a-z])\u200d", r"\\u200d", text)


def hostile(name):
    """The hand-written traces, with `name` prepended to each text."""
    quoted = "".join(f"\\x{byte:02x}" for byte in name)
    for source in ("locks-1.26", "everything-1.26"):
        with open(os.path.join(DATA, source + ".txt"), encoding="utf-8") as file:
            text = file.read()
        text = re.sub(r'(String id=\d+[^\n]*\n\tdata=")', lambda m: m.group(1) + quoted, text)
        path = os.path.join(WORK, "hostile.trace")
        good("assemble", "-", "-o", path, stdin=text.encode())
        yield source, path


def structure(page):
    return [e.tag for e in page.root.walk()]


@test
def names_may_contain_anything():
    """The elements are those of the same trace with harmless names."""
    harmless = {source: structure(whole(path)) for source, path in hostile(b"x")}
    for name in HOSTILE:
        for source, path in hostile(name):
            text, page = report(path, "--limit=0")
            # The profile truncates long wait reasons, and others at a NUL: some become equal.
            cut = b"\0" in name or len(name) > 100
            assert cut or structure(page) == harmless[source], f"{name[:40]!r}, {source}"
            attributes = {a for e in page.root.walk() for a in e.attributes}
            assert attributes <= ATTRIBUTES, attributes - ATTRIBUTES
            rows = page.table("Goroutines by start function")
            began = [row["start function"] for row in rows if row["start function"] != "(unknown)"]
            assert began
            for row in began:
                assert row.startswith(shown(name)), f"{row!r}, not {shown(name)!r}..."
            for name_of_row in page.root.all("bdi", class_="name"):
                assert len(name_of_row.text()) <= 4 * 80 + 1, name_of_row.text()
                whole_name = name_of_row.attributes.get("title")
                if whole_name:
                    begin, end = name_of_row.text().split("\u2026")
                    assert begin and end and whole_name.startswith(begin) and whole_name.endswith(end)
            for c in text:
                assert c == "\n" or ord(c) >= 32, f"{ord(c):#x} is in it"


@test
def a_hostile_title_is_a_title():
    title = HOSTILE[1].decode()
    _, page = report(EXAMPLES[1], "--title", title)
    equal(page.root.one("head").one("title").text(), title)
    equal(page.root.one("h1").text(), title)
    equal(len(list(page.root.all("img"))), 0)


@test
def it_can_be_mailed():
    for path in EXAMPLES:
        size = len(report(path)[0])
        assert size < 2_000_000, size
    # Thousands of goroutines and stacks, with long names.
    path = os.path.join(WORK, "many.trace")
    good("assemble", "-", "-o", path, stdin=many().encode())
    size = len(report(path)[0].encode())
    assert size < 5_000_000, size


def many():
    """Go 1.26: 3,000 goroutines, each with its own start function, that wake each other."""
    count, lines = 3000, ["Trace Go1.26"]
    lines += ["EventBatch gen=1 m=18446744073709551615 time=1000 size=auto", "Sync"]
    lines += ["Frequency freq=1000000000", "ClockSnapshot dt=0 mono=1 sec=1700000000 nsec=0"]
    events = ["ProcStatus dt=1 p=0 pstatus=1", "GoStatus dt=1 g=1 m=100 gstatus=2"]
    for g in range(2, count):
        events.append(f"GoCreate dt=100 new_g={g} new_stack={g} stack=1")
    events.append("GoBlock dt=10 reason_string=1 stack=1")
    for g in range(2, count):
        events += [f"GoStart dt=10 g={g} g_seq=1", f"GoBlock dt=50 reason_string=1 stack={g}"]
    batches = [events[i : i + 1500] for i in range(0, len(events), 1500)]
    at = 1000
    for batch in batches:
        lines += [f"EventBatch gen=1 m=100 time={at} size=auto", *batch]
        at += sum(int(re.search(r"dt=(\d+)", event).group(1)) for event in batch)
    step = 400
    for first in range(1, count, step):
        lines += [f"EventBatch gen=1 m=18446744073709551615 time={at} size=auto", "Stacks"]
        for g in range(first, min(first + step, count)):
            lines.append(f"Stack id={g} nframes=2")
            lines.append(f"\tpc={10 * g} func={g + 1} file=0 line=1")
            lines.append(f"\tpc={10 * g + 1} func={g + 2} file=0 line=1")
    for first in range(1, count + 3, 100):
        lines += [f"EventBatch gen=1 m=18446744073709551615 time={at} size=auto", "Strings"]
        for n in range(first, min(first + 100, count + 3)):
            name = "select" if n == 1 else f"main.f{n}." + "<&>" * 150
            lines += [f"String id={n}", f'\tdata="{name}"']
    return "\n".join([*lines, "EndOfGeneration", ""])


# Files


@test
def of_a_damaged_trace_it_is_of_the_good_part_and_says_so():
    path = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[0], "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data[: len(data) * 2 // 3])
    _, page = report(path, code=1)
    right = answer("summary", path)
    assert right["events"] > 0
    equal(page.figure("length_ns"), right["end_ns"] - right["begin_ns"])
    banner = page.root.one("div", class_="banner").text()
    assert re.match(r"The trace is damaged: what is shown spans [0-9.]+ ms\. ", banner), banner
    assert "wanted" not in banner and "expected" not in banner, "in a parser's words: " + banner


@test
def a_moment_from_the_start_of_the_trace_says_so():
    """Main yields until the end."""
    yields = "\n".join(
        (f"EventBatch gen=1 m=100 time={1001 + 1000 * i} size=auto\n" if i % 2500 == 0 else "")
        + f"GoStop dt=500 reason_string=1 stack=0\nGoStart dt=500 g=1 g_seq={i + 1}"
        for i in range(10000)
    )
    path = assembled("yields", f"""Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=0 g=1 m=100 gstatus=2
{yields}
EventBatch gen=1 m=18446744073709551615 time=90000000 size=auto
Strings
String id=1
	data="runtime.Gosched"
EndOfGeneration
""")
    _, page = report(path)
    text = page.root.one("main").text()
    assert "G1, 10.0 ms from the start (outlined)." in text, text
    facts = page.root.one("p", class_="facts").text()
    assert re.search(r"2023-11-14 22:13:20 UTC", facts), facts


def damaged_traces():
    """Truncated, and with a hole, in both versions of the format."""
    for source in EXAMPLES:
        with open(source, "rb") as file:
            data = file.read()
        middle = len(data) // 2
        for name, rest in (("cut", data[: len(data) * 6 // 10]), ("hole", data[:middle] + bytes(600) + data[middle + 600 :])):
            path = os.path.join(WORK, f"{name}-{os.path.basename(source)}")
            with open(path, "wb") as file:
                file.write(rest)
            yield path


@test
def behind_damage_nothing_is_drawn_and_nothing_counts():
    """The drawn areas are the sums, which leave out unknown states; a sum of 0 has no share."""
    unknown, said = 0, set()
    for path in damaged_traces():
        page, right = report(path, "--limit=0", code=1)[1], answer("summary", path)
        length = right["end_ns"] - right["begin_ns"]
        waited = sum(
            sum(g["block_ns"].values()) + g["syscall_ns"] + g["syscall_block_ns"]
            for g in answer("goroutines", path)["goroutines"]
        )
        for title, look, time in (
            ("Running", "running", right["activity"]["running_ns"]),
            ("Ready, not running", "runnable", right["activity"]["ready_ns"]),
            ("Waiting and in system calls", "waiting", waited),
        ):
            figure = plot(page, title)
            most = float(next(figure.one("div", class_="y").all("span")).text())
            area = area_under(figure.one("path", class_=look).attributes["d"])
            near(area * most, time / length, 0.002)
        idle = next(e for e in page.root.all("dd") if e.attributes.get("data-key") == "idle_ns")
        if right["activity"]["available_ns"] == 0:
            unknown += 1
            assert "%" not in idle.text() and "unknown" in idle.text(), idle.text()
            assert "Ps idle  unknown" in run("summary", path)[1].decode()
        lost = "Lost events leave states unknown" in page.root.one("div", class_="banner").text()
        equal(lost, right["activity"]["lost_ns"] > 0)
        if not right["findings"]:
            nothing = "No known problem found" + " where states are known" * lost + ". The largest"
            assert any(nothing in p.text() for p in page.root.all("p", class_="none")), path
            assert nothing in run("summary", path)[1].decode(), path
            said.add(lost)
    assert True in said, "each of these traces has findings"
    assert unknown > 0, "no trace here lost all states of Ps"


@test
def what_is_no_trace_leaves_what_was_there():
    out = os.path.join(WORK, "kept.html")
    with open(out, "w", encoding="ascii") as file:
        file.write("mine")
    bad = os.path.join(WORK, "bad.trace")
    with open(bad, "wb") as file:
        file.write(b"no trace at all")
    code, _, err = run("report", bad, "-o", out)
    equal(code, 1)
    assert err
    with open(out, encoding="ascii") as file:
        equal(file.read(), "mine")
    equal(sorted(f for f in os.listdir(WORK) if f.startswith("kept")), ["kept.html"])


@test
def of_a_window_without_events_there_is_no_report():
    out = os.path.join(WORK, "empty.html")
    code, _, err = run("report", "--from=10s", EXAMPLES[1], "-o", out)
    equal(code, 1)
    assert "no event in that window" in err, err
    assert not os.path.exists(out)


@test
def it_goes_to_stdout_and_comes_from_stdin():
    path = EXAMPLES[1]
    with open(path, "rb") as file:
        data = file.read()
    text, _ = report(path)
    equal(good("report", path, "-o", "-").decode(), text)
    piped = Page(good("report", "-", stdin=data).decode())
    equal(piped.figures(), Page(text).figures())
    equal(len(list(piped.root.all("figure", class_="moment"))), text.count('class="moment"'))


@test
def it_does_not_overwrite_its_trace():
    path = shutil.copy(EXAMPLES[1], os.path.join(WORK, "mine.trace"))
    code, _, err = run("report", path, "-o", path)
    equal(code, 2)
    assert "overwrite" in err, err
    with open(path, "rb") as mine, open(EXAMPLES[1], "rb") as right:
        equal(mine.read(), right.read())


@test
def an_output_that_cannot_be_written_is_told():
    code, _, err = run("report", EXAMPLES[1], "-o", os.path.join(WORK, "none", "x.html"))
    equal(code, 3)
    assert "none" in err, err
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([TRAIL, "report", EXAMPLES[1]], stdout=full, stderr=subprocess.PIPE)
        equal(p.returncode, 3)


@test
def a_file_is_whole_or_as_it_was():
    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))

    out = os.path.join(WORK, "old.html")
    with open(out, "w", encoding="ascii") as file:
        file.write("old")
    p = subprocess.run(
        [TRAIL, "report", EXAMPLES[1], "-o", out], capture_output=True, preexec_fn=small
    )
    equal(p.returncode, 3)
    with open(out, encoding="ascii") as file:
        equal(file.read(), "old")
    equal([f for f in os.listdir(WORK) if f.startswith("old")], ["old.html"])


# The viewer in a file


def embed(path, *options, stdin=None):
    return Page(good("report", "--embed", path, *options, stdin=stdin).decode())


def part(page, name):
    pieces = page.root.all("script", **{"data-part": name})
    packed = b"".join(base64.b64decode(piece.text(), validate=True) for piece in pieces)
    return gzip.decompress(packed)


def shipped(name):
    with open(os.path.join(ROOT, "web", "dist", name), "rb") as file:
        return file.read()


@test
def the_viewer_in_a_file_has_the_page_and_the_trace():
    for path in EXAMPLES:
        page, name = embed(path), os.path.basename(path)
        with open(path, "rb") as file:
            equal(part(page, "trace"), file.read())
        equal(part(page, "wasm"), shipped("trail.wasm"))
        equal(part(page, "worker"), shipped("worker.js"))
        equal(page.root.one("style").text().encode(), shipped("app.css"))
        equal(page.root.one("script", type="module").text().encode(), shipped("app.js"))
        equal(page.root.one("title").text(), name)
        pieces = page.root.all("script", **{"data-part": "trace"})
        equal([piece.attributes["data-name"] for piece in pieces], [name])


@test
def the_viewer_in_a_file_has_the_trace_decompressed_and_from_stdin():
    with open(EXAMPLES[1], "rb") as file:
        data = file.read()
    packed = os.path.join(WORK, "packed.trace.gz")
    with open(packed, "wb") as file:
        file.write(gzip.compress(data))
    equal(part(embed(packed), "trace"), data)
    page = embed("-", "--title=Slow", stdin=data)
    equal(part(page, "trace"), data)
    equal(page.root.one("title").text(), "Slow")


@test
def the_viewer_in_a_file_takes_a_trace_in_pieces():
    # Only the page checks the data after the header; random bytes do not compress.
    data = b"go 1.23 trace\0\0\0" + random.Random(1).randbytes(4_000_000)
    page = embed("-", stdin=data)
    pieces = list(page.root.all("script", **{"data-part": "trace"}))
    assert len(pieces) > 3, len(pieces)
    equal(part(page, "trace"), data)


@test
def only_the_page_may_run_and_nothing_be_fetched():
    def own(element):
        digest = hashlib.sha256(element.text().encode()).digest()
        return f"'sha256-{base64.b64encode(digest).decode()}'"

    root = embed(EXAMPLES[1]).root
    policy = root.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    equal(
        dict(rule.strip().split(" ", 1) for rule in policy.split(";")),
        {
            "default-src": "'none'",
            "script-src": f"{own(root.one('script', type='module'))} 'wasm-unsafe-eval'",
            "style-src": own(root.one("style")),
            "worker-src": "blob:",
            "img-src": "data: blob:",
            "base-uri": "'none'",
            "form-action": "'none'",
        },
    )


@test
def a_hostile_file_name_is_a_name():
    name = '"><script>alert(1)<!--&.trace'
    path = os.path.join(WORK, name)
    shutil.copy(EXAMPLES[1], path)
    root = embed(path).root
    equal(root.one("title").text(), name)
    equal(root.one("script", **{"data-part": "trace"}).attributes["data-name"], name)
    equal(len(list(root.all("script"))), 4)


@test
def a_hundred_megabytes_go_into_a_file_and_not_a_byte_more():
    path, out = os.path.join(WORK, "large.trace"), os.path.join(WORK, "large.html")
    with open(path, "wb") as file:
        file.write(b"go 1.23 trace\0\0\0")
        file.truncate(100 << 20)
    good("report", "--embed", path, "-o", out)
    with open(out, encoding="utf-8") as file:
        equal(len(part(Page(file.read()), "trace")), 100 << 20)
    os.remove(out)
    with open(path, "ab") as file:
        file.write(b"x")
    code, _, err = run("report", "--embed", path, "-o", out)
    equal(code, 2)
    assert "100 MB" in err and "trail convert" in err, err
    equal([f for f in os.listdir(WORK) if f.startswith("large.html")], [])
    os.remove(path)


@test
def what_is_no_trace_or_no_option_makes_no_viewer():
    out = os.path.join(WORK, "viewer.html")
    code, _, err = run("report", "--embed", os.path.join(ROOT, "README.md"), "-o", out)
    equal(code, 1)
    assert "not a Go execution trace" in err, err
    for option in ("--limit=3", "--from=1ms", "--repair"):
        code, _, err = run("report", "--embed", option, EXAMPLES[0], "-o", out)
        equal(code, 2)
        assert "--embed" in err, err
    assert not os.path.exists(out)


if __name__ == "__main__":
    sys.exit(main())
