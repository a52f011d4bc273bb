#!/usr/bin/env python3
"""trail diff: figures of two traces with one known difference, and conditions on them. TAP.

usage: diff.py TRAIL SOURCE_ROOT
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, EXAMPLES, FEW_EXAMPLES, ROOT, TRAIL, WORK, answer, assembled, equal, run_text  # noqa: E402
from tap import main, test


def text_of(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return file.read()


TEXT, LOCKS = text_of("times-1.26.txt"), text_of("locks-1.26.txt")


def diff(*args):
    return run_text("diff", *args)


def compare(*args, code=0):
    return answer("diff", *args, code=code)


def make(name, *replacements, text=TEXT):
    """The trace of times-1.26.txt, or of another text, with some of its lines changed."""
    for old, new in replacements:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return assembled(name, text)


A = make("a")
# The last event is 20 ns later: goroutines that wait at the end wait that much longer.
LONGER = make("b", ("HeapAlloc dt=40 heapalloc_value=4096", "HeapAlloc dt=60 heapalloc_value=8192"))


def changes(found):
    return {
        (m["metric"], m["name"]): m["change"] for m in found["metrics"] if m["change"] != 0
    }


@test
def a_share_of_nothing_is_neither_new_nor_gone():
    text = text_of("gc-1.26.txt")
    usual = assembled("gc", text)
    # A pause of 3 ms leaves the program no time in a window of 1 ms.
    paused = make("paused", ("STWEnd dt=3\n", "STWEnd dt=3000000\n"), text=text)
    for one, other, change, value in ((usual, paused, "-100.0 %", 1), (paused, usual, "from 0", 0)):
        (line,) = [line for line in diff(one, other)[1].splitlines() if line.endswith("  mmu.1ms")]
        assert change in line and "gone" not in line and "new" not in line, line
        figures = re.findall(r"[\d.]+(?= %)", line)
        equal(float(figures[value]), 0.0)


@test
def a_trace_is_no_different_from_itself():
    for path in [A, *FEW_EXAMPLES]:
        equal(changes(compare(path, path)), {})
        equal(changes(compare("--per=second", path, path)), {})
        for m in compare(path, path)["metrics"]:
            equal(m["a"], m["b"])
        code, out, _ = diff(path, path)
        assert code == 0 and "\nnothing changed\n" in out, out


@test
def what_grew_is_what_was_made_longer():
    found = compare(A, LONGER)
    # G 1 is blocked in select at the end, G 2 in a system call without a P, G 3 ready.
    right = {
        ("duration", ""): 20,
        ("heap.peak", ""): 4096,
        ("total", ""): 60,
        ("block", ""): 20,
        ("block.select", ""): 20,
        ("syscall_block", ""): 20,
        ("sched_wait", ""): 20,
        ("total", "main.main"): 20,
        ("block", "main.main"): 20,
        ("block.select", "main.main"): 20,
        # G 2 and G 3 began in the same function, and G 3 inherited a region.
        ("total", "main.worker"): 40,
        ("syscall_block", "main.worker"): 20,
        ("sched_wait", "main.worker"): 20,
        ("region", "(unknown)"): 20,
        ("region.sched_wait", "(unknown)"): 20,
    }
    ours = {k: v for k, v in changes(found).items() if not k[0].startswith("mmu.")}
    equal(ours, right)
    # The same with the traces exchanged.
    back = {k: v for k, v in changes(compare(LONGER, A)).items() if not k[0].startswith("mmu.")}
    equal(back, {k: -v for k, v in right.items()})


@test
def figures_are_called_as_in_other_commands():
    """In what `trail summary` says of all threads, states and what is waited for are in the last columns."""
    shop = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
    lines = run_text("summary", shop)[1].split("\nTime of all threads\n")[1].split("\n\n")[0].splitlines()[1:]
    states = {re.split(r"  +", line.strip(), maxsplit=2)[2].rstrip() for line in lines}
    wanted = {re.sub(r"^waiting +", "waiting: ", state) for state in states}
    whole = {m["figure"] for m in compare(shop, shop)["metrics"] if m["of"] == "whole" and m["a"]["value"] > 0}
    assert len(wanted) > 5 and wanted <= whole, wanted - whole
    # The table has both, the name for conditions last.
    (line,) = [one for one in diff(A, LONGER)[1].splitlines() if one.endswith("  block.select")][:1]
    assert "  waiting: select  " in line, line


@test
def figures_are_those_of_the_analyses():
    values = {(m["metric"], m["name"]): m["a"] for m in compare(A, A)["metrics"]}
    worker = values["sched_wait", "main.worker"]
    # As added up in analyses_by_hand.py: G 2 was ready for 15 and 25 ns, G 3 for 143 up to the end.
    equal(worker["value"], 40 + 143)
    equal((worker["count"], worker["max"]), (2, 25))
    equal(values["exec", "main.main"]["value"], 45)
    equal(values["block.chan_receive", "main.main"]["value"], 25)
    equal(values["stw", ""]["value"], 10)
    equal(values["stw", ""]["count"], 1)
    equal(values["task", "request"]["value"], 65)
    equal(values["region", "parse"]["value"], 55)
    equal(values["region.exec", "parse"]["value"], 10)
    equal(values["heap.peak", ""]["value"], 4096)


@test
def the_greatest_change_of_time_comes_first():
    found = compare(EXAMPLES[2], EXAMPLES[3])["metrics"]
    for scope in ("whole", "goroutines", "tasks", "regions", "locks"):
        times = [abs(m["change"]) for m in found if m["of"] == scope and m["unit"] == "ns"]
        equal(times, sorted(times, reverse=True))


@test
def sums_can_be_those_of_a_second_or_a_task():
    found = compare("--per=second", A, LONGER)
    a, b = found["a"], found["b"]
    equal(b["duration_ns"] - a["duration_ns"], 20)
    values = {(m["metric"], m["name"]): m for m in found["metrics"]}
    row = values["exec", "main.main"]
    for side in "ab":
        equal(round(row[side]["value"] * found[side]["duration_ns"] / 1e9, 6), 45)
    # Figures that do not grow with the length stay the same.
    equal(values["heap.peak", ""]["change"], 4096)
    equal(values["duration", ""]["change"], 20)
    # Two tasks of the type end instead of one.
    half = make(
        "two",
        (
            "UserTaskEnd dt=2 task=7 stack=3",
            "UserTaskEnd dt=1 task=7 stack=3\n"
            "UserTaskBegin dt=0 task=9 parent_task=7 name_string=2 stack=3\n"
            "UserTaskEnd dt=1 task=9 stack=3",
        ),
    )
    found = compare("--per=task:request", A, half)
    equal((found["a"]["divisor"], found["b"]["divisor"]), (1, 2))
    values = {(m["metric"], m["name"]): m for m in found["metrics"]}
    row = values["exec", "main.main"]
    equal((row["a"]["value"], row["b"]["value"]), (45, 22.5))
    equal((row["a"]["max"], row["b"]["max"]), (45, 45))


def lock_rows(found, side="a"):
    """For each lock, "" for all: time waited, completed waits, the longest wait; and the same for holds."""
    rows = {}
    for m in found["metrics"]:
        if m["metric"] in ("lock.wait", "lock.hold"):
            of = m[side]
            assert m["of"] == ("locks" if m["name"] else "whole"), m
            rows.setdefault(m["name"], {})[m["metric"][5:]] = (of["value"], of["count"], of["max"])
    return rows


@test
def locks_are_compared_by_what_they_are_called():
    a = make("locks-a", text=LOCKS)
    # G 2 releases a_mu, for which G 1 and G 3 wait, 30 ns later
    b = make("locks-b", ("GoUnblock dt=1 g=1 g_seq=1 stack=22", "GoUnblock dt=31 g=1 g_seq=1 stack=22"), text=LOCKS)
    found = compare(a, b)
    # As drawn at the top of locks-1.26.txt. Waits still open at the end count as time, but not as
    # completed waits.
    right = {
        "": {"wait": (549, 5, 170), "hold": (380, 4, 190)},
        "mutex a_mu": {"wait": (330, 2, 170), "hold": (220, 2, 190)},
        "mutex b_mu": {"wait": (80, 1, 80), "hold": (160, 2, 140)},
        "mutex c_mu": {"wait": (20, 1, 20)},
        "condition variable without a name": {"wait": (89, 0, 0)},
        "sync.(*WaitGroup).Wait in main, woken by give_up < three": {"wait": (30, 1, 30)},
    }
    equal(lock_rows(found), right)
    right["mutex a_mu"]["wait"] = 390, 2, 200
    right[""]["wait"] = 609, 5, 200
    equal(lock_rows(found, "b"), right)
    code, out, _ = diff(a, b)
    row = next(line for line in out[out.index("\nlocks:\n") :].splitlines() if "lock.wait" in line)
    equal((code, row.split()[:6]), (0, ["330", "ns", "390", "ns", "+60", "ns"]))
    equal(row.split()[-4:], ["waited", "mutex", "a_mu", "lock.wait"])
    for condition, met in (
        ('lock.wait "mutex a_mu" >= +60ns', 1),
        ('lock.wait "mutex a_mu" > +60ns', 0),
        ('lock.wait.max "mutex a_mu" > 199ns', 1),
        ('lock.hold "mutex b_mu" > +0%', 0),
        ("lock.wait > +10%", 1),
        ("lock.wait.count > +0", 0),
    ):
        equal((condition, diff("--fail-if", condition, a, b)[0]), (condition, met))
    code, _, err = diff("--fail-if=lock.wait \"mutex a_mo\" > 1ns", a, b)
    assert code == 2 and "did you mean 'lock.wait \"mutex a_mu\"'" in err, err


@test
def addresses_and_lines_do_not_make_another_lock():
    def moved(name, first, second, line):
        """a_mu and b_mu as two locks without names, first locked on the same line."""
        seen = f"(first seen locked in take_a x.c:{line})"
        text = LOCKS.replace("a_mu (first seen locked in take_a x.c:7)", f"{first} {seen}")
        return make(name, text=text.replace("mutex b_mu", f"mutex {second} {seen}"))

    a, b = moved("moved-a", "0x7f10", "0x7f58", 7), moved("moved-b", "0x55e0", "0x5628", 9)
    found = compare(a, b)
    equal(changes(found), {})
    rows = lock_rows(found)
    equal(rows["mutex first seen locked in take_a x.c"], {"wait": (410, 3, 170), "hold": (380, 4, 190)})
    equal(rows[""]["wait"], (549, 5, 170))


@test
def the_process_of_a_lock_does_not_make_another_lock():
    def of(name, pid):
        return make(name, text=LOCKS.replace("mutex b_mu", f"mutex b_mu of server ({pid})"))

    found = compare(of("of-a", 4711), of("of-b", 12))
    equal(changes(found), {})
    assert "mutex b_mu" in lock_rows(found), lock_rows(found)


@test
def the_time_of_locks_is_that_of_trail_locks():
    for path in FEW_EXAMPLES:
        rows = lock_rows(compare(path, path))
        p = subprocess.run([TRAIL, "locks", "--json", path], capture_output=True, timeout=240, check=True)
        locks = json.loads(p.stdout)["locks"]
        total = sum(int(lock["wait_ns"]) + int(lock["unfinished_ns"]) for lock in locks)
        equal(rows[""]["wait"][0], total)
        equal(sum(row["wait"][0] for name, row in rows.items() if name), total)
        equal(sum(row["wait"][1] for name, row in rows.items() if name), sum(lock["waits"] for lock in locks))


@test
def a_condition_that_is_met_is_the_exit_status():
    cases = [
        ("block.select > +5%", 1),  # 101 to 121: 19.8 %
        ("block.select > +19.9%", 0),
        ("block.select >= +20ns", 1),
        ("block.select > +20ns", 0),
        ("block.select main.main >= 121ns", 1),
        ('block.select "main.main" > 121ns', 0),
        ("block.select < 122ns", 1),
        ("heap.peak >= 8K", 1),
        ("heap.peak > +100%", 0),
        ("heap.peak >= +100%", 1),
        ("exec < -1%", 0),
        ("sched-wait.count > 0", 1),
        ("stw.max > 10ns", 0),
        ('task.max "request" >= 65ns', 1),
        ('region.exec "parse" > +0%', 0),
        ("mmu.100ms < 100%", 1),
    ]
    for condition, right in cases:
        code, out, err = diff("--fail-if", condition, A, LONGER)
        assert code == right, f"{condition}: exit {code}: {out[-200:]}{err}"
        assert ("MET: " + condition if right else "not met: " + condition) in out, out
    code, _, _ = diff("--fail-if=exec < -1%", "--fail-if=block > +1%", A, LONGER)
    equal(code, 1)
    found = compare("--fail-if=block.select > +5%", A, LONGER, code=1)
    equal(
        found["conditions"],
        [{"condition": "block.select > +5%", "met": True, "a": 101, "b": 121}],
    )


@test
def a_mistake_in_a_condition_is_pointed_at():
    cases = [
        ("sched_wiat.p99 > +20%", "did you mean 'sched_wait.p99'", 0),
        ('exec "main.wroker" > 3ms', "did you mean 'exec \"main.worker\"'", 5),
        ("exec > 20%", "has a sign", 7),
        ("exec > 20", "this is a time", 7),
        ("count > 20ms", "this is a number", 8),
        ("mmu.1ms < 3", "this is a share", 10),
        ("exec", "is missing", 4),
        ("exec = 3", "is missing", 5),
        ('exec "main.main > 3', "closing quote", 5),
        ("> 3", "begins with a metric", 0),
        ("exec > much", "no value", 7),
        ("", "begins with a metric", 0),
    ]
    for condition, hint, column in cases:
        code, out, err = diff("--fail-if", condition, A, LONGER)
        assert code == 2 and not out and hint in err, f"{condition}: exit {code}: {err}"
        lines = err.splitlines()
        equal(lines[lines.index("    " + condition) + 1], "    " + " " * column + "^")


@test
def each_failure_has_its_own_status():
    with open(LONGER, "rb") as f:
        data = f.read()
    cut = os.path.join(WORK, "cut")
    with open(cut, "wb") as f:
        f.write(data[:-40])
    code, out, err = diff("--fail-if=exec >= 0ns", A, cut)
    assert code == 4 and "MET" in out and "only the part that could be read" in err, f"{code}: {err}"
    nothing = os.path.join(WORK, "nothing")
    with open(nothing, "wb") as f:
        f.write(b"no trace at all")
    code, out, err = diff(A, nothing)
    assert code == 4 and not out, f"{code}: {out}"
    equal(diff(A, os.path.join(WORK, "missing"))[0], 3)
    for args in ([A], [A, A, A], ["-", "-"], ["--per=hour", A, A], ["--per=task:requets", A, A]):
        equal((args, diff(*args)[0]), (args, 2))
    assert "did you mean 'request'" in diff("--per=task:requets", A, A)[2]


if __name__ == "__main__":
    sys.exit(main())
