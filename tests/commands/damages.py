#!/usr/bin/env python3
"""Seeded damages of traces of Go 1.22 and later: how many sound events are shown, and what is reported about the rest. TAP.

The traces are simulated, so it is known what happened. The best possible reader would show each event whose bytes, and
the earlier bytes of its batch, are still contiguous: without these its thread and its time are lost.

usage: damages.py TRAIL SOURCE_ROOT [DAMAGES [TRACES [STEPS]]]
"""

import collections
import json
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import batches  # noqa: E402
import simulated  # noqa: E402
from command import ROOT, WORK, content, run, run_text, written  # noqa: E402
from damage import KINDS, damaged  # noqa: E402
from go_readers import go_of, go_prints  # noqa: E402
from tap import main, test  # noqa: E402

DAMAGES, TRACES, STEPS = (list(map(int, sys.argv[3:])) + [40, 8, 9000][len(sys.argv) - 3 :])[:3]
VERSIONS = (22, 23, 25, 26)
SIZES = (1, 16, 256, 4096, 65536)
# An event waits for a lost one for at most 1 ms.
LATE_NS = 1_100_000
NAMES = {getattr(simulated, name): text for name, text in (
    ("PROC_START", "ProcStart"), ("PROC_STOP", "ProcStop"), ("PROC_STEAL", "ProcSteal"), ("PROC_STATUS", "ProcStatus"),
    ("GO_CREATE", "GoCreate"), ("GO_START", "GoStart"), ("GO_DESTROY", "GoDestroy"), ("GO_STOP", "GoStop"),
    ("GO_BLOCK", "GoBlock"), ("GO_UNBLOCK", "GoUnblock"), ("SYSCALL_BEGIN", "GoSyscallBegin"),
    ("SYSCALL_END", "GoSyscallEnd"), ("SYSCALL_END_BLOCKED", "GoSyscallEndBlocked"), ("GO_STATUS", "GoStatus"),
    ("HEAP", "HeapAlloc"))}  # fmt: skip
simulations = [simulated.Simulation(VERSIONS[i % 4], i, STEPS, 6) for i in range(TRACES)]


class Case:
    def __init__(self, i):
        self.simulation, self.kind = simulations[i % TRACES], KINDS[i // TRACES % 5]
        data, pieces = damaged(bytes(self.simulation.trace), simulated.HEADER, self.kind, SIZES, random.Random(i))
        self.path = os.path.join(WORK, "damaged.trace")
        with open(self.path, "wb") as f:
            f.write(data)
        self.name = f"damage {i} ({self.kind})"
        self.sound = [e for e in self.simulation.events if any(a <= e.start and e.end <= b for a, b in pieces)]


CASES = range(DAMAGES)


def times(events):
    found = collections.defaultdict(list)
    for key, time in sorted(events, key=lambda e: e[1]):
        found[key].append(time)
    return found


def common(wanted, shown):
    """How many of the expected events are shown, at their time or, if they had to wait, a little later."""
    count = 0
    for key, wanted_times in wanted.items():
        there, i = shown.get(key, []), 0
        for time in wanted_times:
            while i < len(there) and there[i] < time - simulated.TICK_NS:
                i += 1
            if i < len(there) and there[i] <= time + LATE_NS:
                count += 1
                i += 1
    return count


def shown_events(path):
    _, out, _ = run("print", "--format=jsonl", "--no-stacks", path)
    events = [json.loads(line) for line in out.splitlines()]
    return [((e["m"], e["type"]), e["time_ns"]) for e in events if "type" in e and "m" in e]


@test
def nearly_all_sound_events_are_shown():
    sound, shown = collections.Counter(), collections.Counter()
    for i in CASES:
        case = Case(i)
        wanted = times(((e.m, NAMES[e.type]), e.time_ns) for e in case.sound)
        sound[case.kind] += len(case.sound)
        shown[case.kind] += common(wanted, times(shown_events(case.path)))
    for kind in KINDS:
        print(f"# {kind}: {100 * shown[kind] / sound[kind]:.1f} % of {sound[kind]} sound events")
    share = sum(shown.values()) / sum(sound.values())
    print(f"# all: {100 * share:.1f} %")
    assert share >= 0.95, share


@test
def nearly_all_sound_events_of_real_traces_are_shown():
    """Whose batches are up to 64 KiB, so that damage is often in the first."""
    definitions = content(os.path.join(ROOT, "src", "wire", "v2.def")).decode()
    sound, shown = collections.Counter(), collections.Counter()
    for name in ("load-go1.22", "load-go1.23", "shop-c", "pool"):
        data = content(os.path.join(ROOT, "examples", "traces", name + ".trace"))
        events = list(batches.events(data, definitions))
        for i in range(25):
            kind = KINDS[i % 5]
            broken, pieces = damaged(data, simulated.HEADER, kind, SIZES, random.Random(i))
            here = sum(any(a <= start and end <= b for a, b in pieces) for start, end in events)
            verdict = run_text("check", "--json", written("real.trace", broken))[1]
            sound[kind] += here
            shown[kind] += min(here, json.loads(verdict)["file_events"])
    for kind in KINDS:
        print(f"# {kind}: {100 * shown[kind] / sound[kind]:.1f} % of {sound[kind]} sound events")
        assert shown[kind] >= 0.95 * sound[kind], kind


@test
def clocks_and_numbers_that_no_program_has_cost_few_events():
    """As in traces made by tests. Their times exceed 64 bits with 1 Hz, so events are only counted."""
    numbers = random.Random(3).sample(range(1, 10**9), 6)
    for least, make in ((0.8, {"hz": 1}), (0.95, {"begin": 2**30, "hz": 1000}), (0.96, {"numbers": numbers})):
        simulation = simulated.Simulation(26, 1, STEPS, 6, **make)
        wanted = shown = 0
        for i in range(20):
            data, pieces = damaged(bytes(simulation.trace), simulated.HEADER, KINDS[i % 5], SIZES, random.Random(i))
            path = os.path.join(WORK, "odd.trace")
            with open(path, "wb") as f:
                f.write(data)
            there = collections.Counter(key for key, _ in shown_events(path))
            sound = [e for e in simulation.events if any(a <= e.start and e.end <= b for a, b in pieces)]
            wanted += len(sound)
            shown += sum(min(n, there[key]) for key, n in collections.Counter((e.m, NAMES[e.type]) for e in sound).items())
        print(f"# {100 * shown / wanted:.1f} % of {wanted} sound events: {make}")
        assert shown >= least * wanted, (make, shown, wanted)


def unsure_ns(case):
    """How long each goroutine's state is unknown: from its last sound event before lost ones to the next one after
    them."""
    kept = {id(e) for e in case.sound}
    events, unsure = collections.defaultdict(list), collections.Counter()
    for e in case.simulation.events:
        if e.g is not None and e.type not in simulated.NO_TRANSITIONS:
            events[e.g].append((e.time_ns, id(e) in kept))
    for g, found in events.items():
        last, lost = simulated.BEGIN * simulated.TICK_NS, False
        for time, sound in [*sorted(found), (case.simulation.now * simulated.TICK_NS, True)]:
            if sound:
                unsure[g] += time - last if lost else 0
                last, lost = time, False
            lost = lost or not sound
    return unsure


def sums(rows):
    found = collections.defaultdict(collections.Counter)
    for r in rows:
        of = found[r["id"]]
        of["runnable"] += r["sched_wait_ns"]
        of["running"] += r["exec_ns"]
        of["syscall"] += r["syscall_ns"] + r["syscall_block_ns"]
        of["waiting"] += sum(r["block_ns"].values())
    return found


@test
def no_sum_is_too_large():
    """A goroutine's time in a state is at most its true time plus the time during which its state is unknown."""
    count = wrong = never = noted = 0
    for i in CASES:
        case = Case(i)
        code, out, err = run_text("goroutines", "--json", case.path)
        rows = json.loads(out)["goroutines"] if out else []
        unsure, here = unsure_ns(case), 0
        for g, states in sums(rows).items():
            true = case.simulation.sums.get(g, {})
            over = [states[s] - true.get(s, 0) - unsure[g] for s in states]
            count += len(over)
            here += len([ns for ns in over if ns > LATE_NS])
        others = len({r["id"] for r in rows} - case.simulation.sums.keys())
        assert here + others == 0 or (code == 1 and err), (case.name, here, others, code, err)
        wrong += here
        never += others
        noted += code == 1
    print(f"# {wrong} of {count} sums are too large, {never} goroutines are shown that never existed; {noted} are noted")
    # Random bytes that replace events and look like events produce a few.
    assert wrong <= count / 5000 and never <= DAMAGES / 100, (wrong, count, never)


@test
def a_goroutine_is_one_whatever_is_lost():
    twice = goroutines = 0
    for i in CASES:
        case = Case(i)
        _, out, _ = run_text("goroutines", "--json", case.path)
        ids = [r["id"] for r in (json.loads(out)["goroutines"] if out else [])]
        goroutines += len(ids)
        twice += len(ids) - len(set(ids))
    assert twice <= goroutines / 1000, (twice, goroutines)


@test
def what_is_unknown_is_idle_for_no_p():
    """The simulated Ps are idle for 1 to 2 % of the time; in damaged traces, this refers to the known part."""
    for i in CASES:
        case = Case(i)
        activity = json.loads(run_text("summary", "--json", case.path)[1] or "{}").get("activity")
        # Bytes that look like an event may have changed the number of Ps.
        if activity and activity["procs"] == 3 and activity["available_ns"] > 500000:
            idle = sum(activity[key] for key in ("idle_work_ns", "idle_lock_ns", "idle_nothing_ns"))
            assert idle <= 0.06 * activity["available_ns"], (case.name, activity)


@test
def an_undamaged_trace_has_the_sums_of_the_simulation():
    for simulation in simulations:
        path = os.path.join(WORK, "whole.trace")
        with open(path, "wb") as f:
            f.write(simulation.trace)
        code, out, err = run_text("goroutines", "--json", path)
        assert (code, err) == (0, ""), err
        found = sums(json.loads(out)["goroutines"])
        assert found.keys() == simulation.sums.keys()
        # Times are distinct: equal ones are moved apart by nanoseconds.
        off = [(g, s) for g, true in simulation.sums.items() for s in true if abs(true[s] - found[g][s]) > 20000]
        assert not off, off


@test
def what_is_made_of_them_is_good():
    go = go_of("1.27")
    for i in CASES:
        case, out = Case(i), os.path.join(WORK, "converted.trace")
        args = ["--repair"] if i % 2 else []
        code, _, err = run_text("convert", *args, f"--to=go1.{VERSIONS[i // 3 % 4]}", "-o", out, case.path)
        assert code in (0, 1), (case.name, err)
        status, verdict, _ = run_text("check", "--strict", "--json", out)
        assert status == 0, (case.name, verdict)
        written = int(err.split("was converted: ")[1].split()[0]) if "was converted: " in err else 0
        assert written <= json.loads(verdict)["events"], (case.name, err)
        if go and i % 8 == 0:
            status, _, err = go_prints(go, "-d=parsed", out)
            assert status == 0, (case.name, err)


main()
