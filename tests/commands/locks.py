#!/usr/bin/env python3
"""trail locks and trail find: a trace with answers computed by hand, and invariants for any trace. TAP.

usage: locks.py TRAIL SOURCE_ROOT [all]

With `all`, the sums of waits are compared with those that Go 1.27 found in the traces of the folder that
TRAIL_TRACES names, or in ../shared/traces next to the source; skipped if there is none.
"""

import collections
import glob
import gzip
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, FEW_EXAMPLES, ROOT, SHARED, WORK, answer, assembled, equal, good_text, run_text, text_of, trace  # noqa: E402
import tap
from tap import test

HAND = trace("locks-1.26")
A = "a_mu (first seen locked in take_a x.c:7)"


def by_name(found):
    return {lock["name"]: lock for lock in found["locks"]}


def places(rows):
    """For waits or holds: count and length, functions, and where the lock was released."""
    return [
        (r["count"], r["ns"], *(tuple(f["function"] for f in r[key]) for key in ("stack", "released") if key in r))
        for r in rows
    ]


def sums(lock):
    return lock["waits"], lock["wait_ns"], lock["unfinished"], lock["unfinished_ns"], lock["holds"], lock["hold_ns"]


# MARK: Locks


@test
def holds_are_as_long_as_their_text_says():
    text = text_of("locks-1.26")
    for length, right in {
        "9ns": 9, "999ns": 999, "1us": 1000, "~1.5us": 1500, "10.25us": 10250, "0.5ms": 500_000, "3ms": 3_000_000,
        "110ms": 110_000_000, "1s": 10**9, "1.5s": 1_500_000_000, "~12s": 12 * 10**9,
        "9": None, "us": None, "~": None, "1m": None, "1.2.3us": None, "1 us": None, "-1us": None,
        "110ms by 7": 110_000_000, "~3ms by 999999999": 3_000_000, "3ms by": None, "3ms by x": None, "3ms by 7x": None,
        "3ms by 12345678901234567890123": None, "3ms 7": None, "by 7": None,
    }.items():
        path = assembled("length", text.replace("mutex b_mu 140ns", f"mutex b_mu {length}"))
        lock = by_name(answer("locks", path))["b_mu"]
        # The other hold is 20 ns long.
        equal((length, lock["holds"], lock["hold_ns"]), (length, 1, 20) if right is None else (length, 2, 20 + right))


@test
def a_hold_that_another_goroutine_ends_is_the_takers():
    """Its length is rounded, but it does not begin before the trace."""
    text = text_of("locks-1.26").replace("mutex b_mu 140ns", "mutex b_mu 3ms by 4")
    path = assembled("by", text)
    longest = by_name(answer("locks", path))["b_mu"]["longest_hold"]
    equal(longest, {"ns": 3_000_000, "begin_ns": answer("threads", path)["begin_ns"], "goroutine": 4})
    # In a merged trace, goroutines have blocks of numbers: it is in the block of the one that wrote the log.
    merged = os.path.join(WORK, "by-merged.trace")
    good_text("merge", "-o", merged, assembled("other", text_of("locks-1.26").replace(" b_mu", " z_mu")), path)
    equal(by_name(answer("locks", merged))["b_mu"]["longest_hold"]["goroutine"], 1_000_000_004)


@test
def each_lock_has_its_waits_and_holds():
    found = answer("locks", HAND)
    # By time; the condition variable, through which work arrives and which is never held, comes
    # after everything that can be held.
    equal([(lock["kind"], lock["name"]) for lock in found["locks"]], [
        ("mutex", A), ("mutex", "b_mu"), ("sync.(*WaitGroup).Wait", ""), ("mutex", "c_mu"), ("condition variable", "0x10")])
    locks = by_name(found)
    equal(sums(locks[A]), (2, 330, 0, 0, 2, 220))
    equal(sums(locks["b_mu"]), (1, 80, 0, 0, 2, 160))
    equal(sums(locks["c_mu"]), (1, 20, 0, 0, 0, 0))
    equal(sums(locks[""]), (1, 30, 0, 0, 0, 0))
    equal(sums(locks["0x10"]), (0, 0, 1, 89, 0, 0))
    equal(locks[A]["longest"], {"ns": 170, "begin_ns": 1090, "goroutine": 3})
    equal(locks[A]["longest_hold"], {"ns": 190, "begin_ns": 1019, "goroutine": 2})
    equal((locks[A]["wait"]["min_ns"], locks[A]["wait"]["max_ns"]), (160, 170))
    assert "z_mu" not in locks


@test
def a_mutex_of_go_is_one_row_whoever_releases_it():
    """As in the source of shop-go: lookUp (line 71) and flushOnce (line 43) lock s.mu, and both unlock it."""
    path = os.path.join(ROOT, "examples", "traces", "shop-go.trace")
    spans = collections.defaultdict(list)
    for hit in answer("find", "--stacks", "--limit=0", path, "block[sync*]")["hits"]:
        frames = hit["steps"][0]["stack"]
        if frames[0]["function"] == "sync.(*Mutex).Lock":
            spans[frames[1]["line"]].append(hit["end_ns"] - hit["begin_ns"])
    mutexes = [lock for lock in answer("locks", "--stacks", path)["locks"] if lock["can_be_held"]]
    equal(
        {lock["waited"][1]["line"]: (lock["waits"], lock["wait_ns"]) for lock in mutexes},
        {line: (len(each), sum(each)) for line, each in spans.items()})
    equal(len(mutexes), len(spans))
    # Most of the waiting time ended after flushOnce had slept holding it.
    equal(mutexes[0]["woken"][1]["function"], "main.(*shop).flushOnce")
    # The overview's tile and the finding have the same sum.
    summary = answer("summary", path)
    equal([tile["value"] for tile in summary["tiles"] if tile["key"] == "lock_ns"], [mutexes[0]["wait_ns"]])
    assert f"(of {mutexes[0]['wait_ns'] / 1e6:.1f} ms for this lock)" in summary["findings"][0]["text"], summary["findings"]


@test
def locks_of_one_place_are_told_apart():
    """By their wakers; then by the frames that differ, in the table, the headings and JSON."""
    waits = "sync.(*Cond).Wait in main.main.func6 (main.go:92), woken by "
    right = [waits + "main.stop (main.go:30)", waits + "main.put (main.go:20)", "sync.(*Mutex).Lock in main.main.func6 (main.go:89)"]
    found = answer("locks", trace("alike-1.26"))["locks"]
    equal([lock["title"] for lock in found], right)
    # What trail diff calls them.
    equal({lock["identity"] for lock in found}, {
        row["name"] for row in answer("diff", trace("alike-1.26"), trace("alike-1.26"), "--limit=0")["metrics"]
        if row["of"] == "locks" and row["name"]})
    lines = good_text("locks", trace("alike-1.26")).splitlines()
    assert [line for line in lines if line in right] == right, lines
    equal([line[line.index("sync"):] for line in lines[1:4]], right)
    for path in FEW_EXAMPLES:
        titles_differ(answer("locks", "--channels", path)["locks"])


def titles_differ(locks):
    titles = [lock["title"] for lock in locks]
    equal(len(set(titles)), len(titles))


@test
def what_nothing_waits_for_is_last():
    text = text_of("locks-1.26")
    last = "UserLog dt=80 task=0 key_string=26 value_string=26 stack=0"
    held = "UserLog dt=5 task=0 key_string=5 value_string=28 stack=11\nUserLog dt=75 task=0 key_string=26 value_string=26 stack=0"
    text = text.replace(last, held).replace("EndOfGeneration", 'String id=28\n\tdata="mutex y_mu 5us"\nEndOfGeneration')
    names = [lock["name"] for lock in answer("locks", assembled("unwaited", text))["locks"]]
    equal(names, [A, "b_mu", "", "c_mu", "0x10", "y_mu"])


@test
def places_of_the_same_text_show_where_they_differ():
    """Two goroutines wait in take_a, called by take_b, called by main and by three."""
    text = text_of("locks-1.26")
    for stack in (11, 13):
        first = f"Stack id={stack} nframes=2\n\tpc=65543 func=16 file=14 line=7\n"
        assert first in text
        text = text.replace(first, first.replace("nframes=2", "nframes=3") + "\tpc=69640 func=17 file=14 line=8\n")
    code, out, err = run_text("locks", assembled("alike", text))
    equal(code, 0)
    waited = [line.split(": in ")[1] for line in out.splitlines() if ": in take_a" in line]
    equal(waited, ["take_a (x.c:7) < take_b < ... < three (x.c:11)", "take_a (x.c:7) < take_b < ... < main (x.c:2)"])
    # If the texts differ, nothing is added.
    assert "take_b (x.c:8) < two\n" in out, out


@test
def a_wait_for_a_child_process_is_for_no_lock():
    # Another thread ends it, so it has the same reason as a lock.
    text = text_of("locks-1.26")
    locks = answer("locks", assembled("child", text.replace("mutex c_mu", "child process 7")))["locks"]
    equal([lock["name"] for lock in locks], [A, "b_mu", "", "0x10"])


@test
def a_limit_leaves_the_totals_as_they_are():
    whole, first = answer("locks", HAND), answer("locks", "--limit=1", HAND)
    equal(first["locks"], whole["locks"][:1])
    for found in (whole, first):
        equal((found["all"], found["unfinished"], found["unfinished_ns"]), (5, 1, 89))
    equal(len(answer("locks", "--limit=0", HAND)["locks"]), 5)


@test
def who_waited_where_and_who_held_it_where():
    locks = by_name(answer("locks", HAND))
    equal(places(locks[A]["waiters"]), [(1, 170, ("take_a", "three")), (1, 160, ("take_a", "main"))])
    equal(places(locks[A]["held"]), [
        (1, 190, ("take_a", "two"), ("give_up", "two")), (1, 30, ("take_a", "main"), ("give_up", "main"))])
    # the second woke no thread: its release is unknown
    equal(places(locks["b_mu"]["held"]), [
        (1, 140, ("take_c", "four"), ("give_up", "four")), (1, 20, ("take_b", "two"))])
    functions = [f["function"] for f in locks[""]["waited"]], [f["function"] for f in locks[""]["woken"]]
    equal(functions, (["sync.(*WaitGroup).Wait", "main"], ["give_up", "three"]))


@test
def a_chain_tells_locks_of_one_name_apart():
    """Goroutine 3 waits for main.stop, not main.put, at a line where another waits for that (alike-1.26)."""
    text = good_text("locks", trace("alike-1.26"))
    chains = text.partition("Longest chains")[2]
    assert "G3 main.main.func6 waits for sync.(*Cond).Wait in main.main.func6 (main.go:92), woken by main.stop" in chains, text


@test
def a_chain_leads_from_who_waits_to_who_does_not():
    chains = answer("locks", HAND)["chains"]
    # 3 waits in the queue behind 1, for the same lock: one more at the start of the same chain
    equal([(c["begin_ns"], c["end_ns"], c["others"]) for c in chains], [(1110, 1130, 1)])
    equal([(link["goroutine"], link["group"], link["name"], link["holder"]) for link in chains[0]["links"]], [
        (1, "main", A, 2), (2, "two", "b_mu", 4), (4, "four", "c_mu", 5)])


def waits_in(end, *waits):
    """A trace of these waits: (goroutine, begin, end, the goroutine that ends it), each for a lock of its own. Goroutine i is on
    P i."""
    goroutines = sorted({g for wait in waits for g in (wait[0], wait[3])})
    events, strings, stacks = {g: [] for g in goroutines}, ["sync"], []
    for number, (g, since, until, waker) in enumerate(waits, 1):
        strings.append(f"main.wait{number}")
        stacks += [f"Stack id={number} nframes=1", f"\tpc={4096 * number} func={number + 1} file={number + 1} line={number}"]
        events[g] += [(since, f"GoBlock dt=%d reason_string=1 stack={number}"), (until + 1, f"GoStart dt=%d g={g} g_seq=%s")]
        events[waker].append((until, f"GoUnblock dt=%d g={g} g_seq=%s stack=0"))
    seqs = {g: 0 for g in goroutines}
    lines = {g: [f"EventBatch gen=1 m={g} time=0 size=auto", f"ProcStatus dt=0 p={g} pstatus=1", f"GoStatus dt=0 g={g} m={g} gstatus=2"]
             for g in goroutines}
    last = {g: 0 for g in goroutines}
    for at, on, text in sorted((at, on, text) for on, own in events.items() for at, text in own):
        if "%s" in text:
            g = int(re.search(r" g=(\d+)", text)[1])
            seqs[g] += 1
            text = text.replace("%s", str(seqs[g]))
        lines[on].append(text % (at - last[on]))
        last[on] = at
    for g in goroutines:
        lines[g].append(f"HeapAlloc dt={end - last[g]} heapalloc_value=1")
    rest = "EventBatch gen=1 m=18446744073709551615 time=1 size=auto"
    tables = [rest, "Frequency freq=1000000000", rest, "Stacks", *stacks, rest, "Strings"]
    for i, text in enumerate(strings, 1):
        tables += [f"String id={i}", f'\tdata="{text}"']
    return "\n".join(["Trace Go1.23", *(line for g in goroutines for line in lines[g]), *tables, ""])


def chains_in(name, *waits):
    """{begin: goroutines that wait} of the chains, the longest first."""
    chains = answer("locks", assembled(name, waits_in(2000, *waits)))["chains"]
    return [(c["begin_ns"], [link["goroutine"] for link in c["links"]]) for c in chains]


@test
def a_chain_replaces_its_own_end_whatever_its_place():
    first = (1, 100, 608, 2), (2, 101, 604, 3), (3, 102, 600, 4)
    second = (5, 1000, 1108, 6), (6, 1001, 1104, 7), (7, 1002, 1100, 8)
    equal(chains_in("two-chains", *first, *second), [(102, [1, 2, 3]), (1002, [5, 6, 7])])


@test
def a_wait_begins_one_chain():
    """Goroutine 1 waits for 2, which meanwhile waits for 3 and, for longer, for 4."""
    equal(chains_in("one-wait", (1, 100, 500, 2), (2, 150, 200, 3), (2, 250, 350, 4)), [(250, [1, 2])])


@test
def a_window_cuts_waits_off():
    locks = by_name(answer("locks", "--from=100ns", "--to=200ns", HAND))
    equal(sums(locks[A]), (0, 0, 2, 200, 0, 0))
    equal(sums(locks["b_mu"]), (1, 50, 0, 0, 2, 160))
    equal(set(locks), {A, "b_mu", "c_mu"})
    chains = answer("locks", "--from=115ns", HAND)["chains"]
    equal([(c["begin_ns"], c["end_ns"]) for c in chains], [(1115, 1130)])


@test
def only_some_waiters_count():
    for args in (("--goroutine=3",), ("--name=three",)):
        found = answer("locks", *args, HAND)
        locks = by_name(found)
        equal(sums(locks[A])[:2], (1, 170))
        equal([len(c["links"]) for c in found["chains"]], [3])
    code, _, err = run_text("locks", "--name=thre", HAND)
    assert code == 2 and "did you mean 'three'" in err, err
    code, _, err = run_text("locks", "--name=of-another-kind", HAND)
    assert code == 2 and "did you mean '" in err, err
    code, _, err = run_text("locks", "--goroutine=9", HAND)
    assert code == 2 and "goroutine 9" in err, err


@test
def channels_are_waited_for_too_if_asked():
    path = trace("why-1.26")
    equal([sums(lock)[:2] for lock in answer("locks", path)["locks"]], [(1, 110)])
    found = answer("locks", "--channels", path)
    # G 1 waited 1040..1150 for G 2, which waited 1060..1100 for G 3
    chain = found["chains"][0]
    equal((chain["begin_ns"], chain["end_ns"]), (1060, 1100))
    equal([(link["goroutine"], link["kind"]) for link in chain["links"]], [(1, "sync.(*Mutex).Lock"), (2, "chan receive")])


@test
def text_has_the_locks_and_the_commands_that_show_them():
    code, out, _ = run_text("locks", HAND)
    equal(code, 0)
    lines = out.splitlines()
    equal(lines[0].split(), "waits total p50 p95 p99 max still holds held lock".split())
    equal(lines[1].split()[:3], ["2", "330", "ns"])
    command = next(line for line in lines if "--goroutine=1,2,4" in line).split()
    equal(command[:2], ["trail", "print"])
    code, shown, _ = run_text(*command[1:])
    assert code == 0 and "G 2 made ready" not in shown and "G 4 made ready by G 5" in shown, shown
    code, out, _ = run_text("locks", "--stacks", "--limit=1", HAND)
    assert "take_a /src/x.c:7" in out and "... and 4 more" in out, out


def sound(found):
    for lock in found["locks"]:
        equal(sum(p["count"] for p in lock["waiters"]), lock["waits"])
        equal(sum(int(p["ns"]) for p in lock["waiters"]), int(lock["wait_ns"]))
        equal(sum(p["count"] for p in lock["held"]), lock["holds"])
        assert (lock["name"] == "") or "waited" not in lock
    for chain in found["chains"]:
        begin, end, links = int(chain["begin_ns"]), int(chain["end_ns"]), chain["links"]
        assert begin < end and len(links) > 1, chain
        equal(len({link["goroutine"] for link in links}), len(links))
        for link, behind in zip(links, [*links[1:], None]):
            assert int(link["begin_ns"]) <= begin and end <= int(link["end_ns"]), chain
            assert behind is None or link["holder"] == behind["goroutine"], chain
    lengths = [(len(c["links"]), int(c["end_ns"]) - int(c["begin_ns"])) for c in found["chains"]]
    equal(lengths, sorted(lengths, reverse=True))


@test
def sums_agree_and_chains_hang_together():
    for path in FEW_EXAMPLES:
        found = answer("locks", "--channels", path)
        sound(found)
        assert any(len(c["links"]) > 2 for c in found["chains"]), path
        sound(answer("locks", "--from=5ms", "--to=+9ms", path))


def waits_of(path):
    """Returns (goroutine, begin, end, waker, waker's stack) for each wait for locks and channels, from the events."""
    code, out, _ = run_text("print", "--format=jsonl", path)
    equal(code, 0)
    begun, waits = {}, []
    for line in out.splitlines():
        event = json.loads(line)
        if event.get("kind") != "StateTransition" or event.get("resource") != "goroutine" or event["from"] == event["to"]:
            continue
        g, time_ns = event["id"], int(event["time_ns"])
        if event["from"] == "Waiting" and g in begun:
            begin, stack = begun.pop(g)
            waker = event.get("g") if event["to"] == "Runnable" else None
            waits.append((g, begin, time_ns, waker if waker != g else None, stack))
        if event["to"] == "Waiting" and event.get("reason", "").startswith(("sync", "chan", "select")):
            begun[g] = time_ns, json.dumps(event.get("transition_stack"))
    return waits


def longest_chain(waits):
    """Returns the length of the longest chain of goroutines in which, at some moment, each waits
    for the next to end its wait."""
    longest = 0
    for moment in {wait[1] for wait in waits}:
        waiting = {wait[0]: wait for wait in waits if wait[1] <= moment < wait[2]}
        for _, _, _, holder, stack in waiting.values():
            length = 1
            while holder in waiting:
                _, _, _, following, its_stack = waiting[holder]
                length += its_stack != stack  # otherwise it waits in the same queue
                holder, stack = following, its_stack
            longest = max(longest, length)
    return longest


@test
def the_longest_chain_is_that_of_the_events():
    for path in FEW_EXAMPLES:
        chains = answer("locks", "--channels", path)["chains"]
        equal((path, len(chains[0]["links"])), (path, longest_chain(waits_of(path))))


# MARK: Find


def hits(*args, path=None):
    """For each hit: goroutine, begin, end; for each step: what, begin, end, waker."""
    code, out, err = run_text("find", "--json", path or HAND, *args)
    assert code in (0, 1), err
    found = json.loads(out)
    equal(code, 0 if found["hits"] else 1)
    return [
        (h["goroutine"], h["begin_ns"] - 1000, h["end_ns"] - 1000)
        + tuple((s["what"], s["begin_ns"] - 1000, s["end_ns"] - 1000, s.get("waker")) for s in h["steps"])
        for h in found["hits"]
    ]


@test
def one_step_finds_states_and_moments():
    equal([h[:3] for h in hits("block[sync]")], [
        (4, 110, 130), (2, 70, 150), (1, 50, 210), (3, 90, 260), (1, 270, 300)])
    equal([h[:3] for h in hits("block[sync] >80ns <=160ns")], [(1, 50, 210)])
    equal([h[:3] for h in hits("block =80ns")], [(2, 70, 150)])
    equal([h[0] for h in hits("block[sync] by give_up")], [4, 2, 1, 3, 1])
    equal([h[0] for h in hits("block in take_b")], [2])
    equal([h[0] for h in hits("block[select] in give_up")], [2, 4, 5])
    equal([h[0] for h in hits("block in sync.(*WaitGroup).*")], [1])
    equal([h[:3] for h in hits("stop[note]")], [(1, 262, 262)])
    equal([h[0] for h in hits("create")], [2, 3, 4, 5])
    equal([h[0] for h in hits("creates")], [1] * 4)
    equal([h[0] for h in hits("wakes or creates")], [1, 1, 1, 1, 5, 4, 2, 1, 3])
    equal([h[1] for h in hits("log[held]")], [149, 199, 209, 259])
    equal(hits("end"), [])


@test
def a_state_that_is_not_over_is_told():
    found = answer("find", HAND, "block[cond] >50ns")["hits"]
    equal([(h["goroutine"], h["begin_ns"], h["end_ns"], h["steps"][0]["unfinished"]) for h in found], [(3, 1312, 1401, True)])
    # it may last longer
    equal(hits("block[cond] <1s"), [])


@test
def steps_follow_each_other_with_anything_between():
    # if a step has several matches the last one counts, even in the middle of the pattern
    equal(hits("block[sync] >100ns then start then block[sync]"), [
        (1, 50, 300, ("block", 50, 210, 2), ("start", 265, 265, None), ("block", 270, 300, 3))])
    equal([h[:3] for h in hits("block[sync] >100ns then start then block")], [(1, 50, 300), (3, 90, 401)])
    # hits do not overlap
    equal([h[:3] for h in hits("start then start", "-g1")], [(1, 230, 265)])
    equal([h[:3] for h in hits("run or log[held]", "-g2")], [(2, 60, 70), (2, 199, 199), (2, 209, 209)])
    equal([h[:3] for h in hits("start then wake", "-g1")], [(1, 265, 300)])
    equal([h[:3] for h in hits("log[wait] then block", "-g1")], [(1, 49, 210), (1, 261, 300)])


@test
def directly_means_no_state_between():
    equal([h[:3] for h in hits("log[wait] then directly block")], [(4, 109, 130), (2, 69, 150), (1, 49, 210), (3, 89, 260), (3, 310, 401)])
    equal([h[:3] for h in hits("block then directly ready then directly run", "-g1")], [(1, 50, 262), (1, 270, 401)])
    equal(hits("block then directly run"), [])
    equal([h[0] for h in hits("block then directly wake")], [4, 2, 1, 3, 1])


@test
def within_bounds_a_step_or_the_whole():
    equal([h[0] for h in hits("wake then start")], [4, 2, 1, 3, 1])
    equal([h[0] for h in hits("wake then within 10ns start")], [4])
    equal([h[0] for h in hits("wake then within 19ns start")], [4])
    equal([h[0] for h in hits("wake then within 20ns start")], [4, 2, 1, 3, 1])
    equal([h[0] for h in hits("block then start within 60ns")], [4, 1])
    equal([h[0] for h in hits("block then start within 30ns")], [4])


@test
def a_window_and_filters_leave_the_rest_out():
    equal([h[:3] for h in hits("block[sync]", "--from=80ns", "--to=280ns")], [
        (4, 110, 130), (3, 90, 260), (1, 270, 280)])
    equal([h[0] for h in hits("block[sync]", "--name=main")], [1, 1])
    equal([h[0] for h in hits("block[sync]", "--goroutine=3,4")], [4, 3])
    equal([h[0] for h in hits("block[sync]", "--limit=2")], [4, 2])
    code, _, err = run_text("find", HAND, "block", "--name=fuor")
    assert code == 2 and "did you mean 'four'" in err, err


@test
def text_names_who_ended_it_and_shows_a_command():
    code, out, err = run_text("find", HAND, "block[sync] >100ns then start", "-g1")
    equal((code, err), (0, ""))
    lines = out.splitlines()
    equal(lines[0], "G1 main: 180 ns from 50 ns on")
    equal(lines[1].split(), "50 ns 160 ns block[mutex a_mu (first seen locked in take_a x.c:7)] in take_a (x.c:7) < main, by G2 in give_up (x.c:20) < two".split())
    equal(lines[2].split(), "230 ns start".split())
    equal(lines[3].split()[:5], ["trail", "print", "--stacks", "--goroutine=1", "--from=50ns"])
    equal(run_text(*lines[3].split()[1:])[0], 0)
    equal(run_text("find", "--count", HAND, "block[sync]"), (0, "5\n", ""))
    code, out, err = run_text("find", HAND, "end")
    assert (code, out) == (1, "") and "nothing matches" in err, err


@test
def a_wrong_pattern_is_marked_where_it_is_wrong():
    for pattern, mark, word in (
        ("blok[sync]", "^~~~", "did you mean 'block'"),
        ("block then strat", "           ^~~~~", "did you mean 'start'"),
        ("running", "^~~~~~~", "did you mean 'run'"),
        ("start >5ms", "      ^", "point in time"),
        ("block >5", "       ^", "needs a unit"),
        ("block >5mss", "        ^~~", "unknown unit of time"),
        ("block >", "       ^", "expected a time"),
        ("block[sync", "     ^", "missing closing ]"),
        ("run[sync]", "   ^", "no [text]"),
        ("run start", "    ^~~~~", "'then' or 'or' is missing"),
        ("block then", "          ^", "expected a state or event"),
        ("block in", "      ^~", "function"),
        ("run by main.x", "    ^~", "'by' does not apply to 'run'"),
        ("block <5ms >6ms", "           ^~~~", "no length"),
        ("block \u00fc", "      ^", "expected 'then', 'or'"),
        ("\u00fc", "^", "expected a state or event"),
        ("block within", "            ^", "expected a time"),
        ("block >99999999999h", "       ^~~~~~~~~~~~", "longer than any trace"),
        ("", "^", "expected a state or event"),
    ):
        code, out, err = run_text("find", HAND, pattern)
        equal((code, out), (2, ""))
        lines = err.splitlines()
        assert word in lines[0], err
        equal(lines[1:], [f"  {pattern}", f"  {mark}"])


@test
def counts_are_those_of_the_printed_events():
    for path in FEW_EXAMPLES:
        code, out, err = run_text("print", "--format=jsonl", "--no-stacks", path)
        equal(code, 0)
        printed = collections.Counter()
        for line in out.splitlines():
            event = json.loads(line)
            if event.get("kind") == "StateTransition" and event.get("resource") == "goroutine":
                pair = event["from"], event["to"]
                if pair[1] == "Waiting" and pair[0] == "Running":
                    printed[f"block[{event.get('reason', '')}]"] += 1
                words = {("NotExist", "Runnable"): "create", ("Waiting", "Runnable"): "wake", ("Runnable", "Running"): "start",
                         ("Running", "Runnable"): "stop", ("Running", "NotExist"): "end", ("Running", "Syscall"): "syscall"}
                if pair in words:
                    printed[words[pair]] += 1
            printed["log"] += event.get("kind") == "Log"
            printed["region"] += event.get("kind") == "RegionBegin"
            printed["task-end"] += event.get("kind") == "TaskEnd"
        assert printed["block[sync]"] > 20, printed
        for pattern, count in printed.items():
            code, out, err = run_text("find", "--count", path, pattern)
            equal((pattern, code, out), (pattern, 0 if count else 1, f"{count}\n"))


@test
def a_damaged_trace_gives_its_good_part():
    with open(EXAMPLES[1], "rb") as f:
        data = f.read()
    whole = int(run_text("find", "--count", EXAMPLES[1], "block[sync]")[1])
    code, out, err = run_text("locks", "--json", "-", stdin=data[: len(data) // 3])
    equal(code, 1)
    sound(json.loads(out))
    assert "part that could be read" in err, err
    code, out, err = run_text("find", "--count", "-", "block[sync]", stdin=data[: len(data) // 3])
    assert code == 1 and 0 < int(out) < whole and "part that could be read" in err, (out, err)


# MARK: Go's figures


def trace_of(name):
    for path in glob.glob(os.path.join(SHARED, "**", name + "*"), recursive=True):
        if os.path.dirname(path) != os.path.join(SHARED, "expected") and os.path.isfile(path):
            with open(path, "rb") as f:
                if f.read(5) == b"go 1.":
                    return path
    return None


def compare(path, name, expected):
    """A reason's time summed over all goroutines, and over all locks."""
    right = collections.Counter()
    for g in expected["goroutines"]:
        right.update(g["Stats"].get("Block") or {})
    for channels, words in ((False, ("sync",)), (True, ("sync", "chan", "select"))):
        found = answer("locks", *(["--channels"] if channels else []), path)
        sound(found)
        titles_differ(found["locks"])
        ours = sum(int(lock["wait_ns"]) + int(lock["unfinished_ns"]) for lock in found["locks"])
        wanted = sum(ns for reason, ns in right.items() if reason.startswith(words))
        exact = "go 1.22" <= open(path, "rb").read(7).decode() or ours == wanted
        assert (ours == wanted) if exact else abs(ours - wanted) <= max(1000, wanted // 1000), f"{name}: {ours}, not {wanted}"


def shared():
    answers = sorted(glob.glob(os.path.join(SHARED, "expected", "*.summary.json.gz")))
    if not answers:
        print("1..0 # SKIP no traces with known answers")
        return 0
    for file in answers:
        name = os.path.basename(file)[: -len(".summary.json.gz")]
        path = trace_of(name)
        if path:
            with gzip.open(file) as f:
                expected = json.load(f)

            def check(path=path, name=name, expected=expected):
                compare(path, name, expected)

            check.__name__ = f"waits_of_{name}"
            tap.tests.append(check)
    return tap.main()


if sys.argv[3:] == ["all"]:
    tap.tests.clear()
    sys.exit(shared())
sys.exit(tap.main())
