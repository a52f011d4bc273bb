#!/usr/bin/env python3
"""What waits are for, in every command: the trace of tests/data/locks-1.26.txt, by hand. TAP.

usage: waits.py TRAIL SOURCE_ROOT

    G 1  waits  160 ns for mutex a_mu, then 30 ns without a log: a log before stopping belongs to no wait
    G 2          80 ns for mutex b_mu
    G 3         170 ns for mutex a_mu, and from 1312 on for the condition at 0x10
    G 4          20 ns for mutex c_mu
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, answer, assembled, equal, good_text, trace  # noqa: E402
import tap
from tap import test

with open(os.path.join(DATA, "locks-1.26.txt")) as file:
    TEXT = file.read()

A = "a_mu (first seen locked in take_a x.c:7)"


def replaced(old, new):
    assert TEXT.count(old) == 1, (old, TEXT.count(old))
    return TEXT.replace(old, new)


HAND = trace("locks-1.26")
# G 1's last wait ended by its time limit: it runs again, and a log reports it.
LATE = assembled(
    "late",
    replaced("GoStart dt=10 g=1 g_seq=2\n", "GoStart dt=10 g=1 g_seq=2\nUserLog dt=0 task=0 key_string=4 value_string=99 stack=0\n")
    .replace("Strings\n", 'Strings\nString id=99\n\tdata="timed out"\n', 1),
)
# A system call between them ended by its time limit, not the wait.
LATE_CALL = assembled(
    "late-call",
    replaced(
        "GoStart dt=10 g=1 g_seq=2\n",
        "GoStart dt=10 g=1 g_seq=2\nGoSyscallBegin dt=0 p_seq=1 stack=0\nGoSyscallEnd dt=0\n"
        "UserLog dt=0 task=0 key_string=4 value_string=99 stack=0\n",
    ).replace("Strings\n", 'Strings\nString id=99\n\tdata="timed out"\n', 1),
)


def by_goroutine(path, *options):
    return {g["id"]: g for g in answer("goroutines", *options, path)["goroutines"]}


def kinds(g):
    return [(w["reason"], w.get("wait_kind"), w["ns"]) for w in g.get("waits", [])]


@test
def goroutines_add_up_by_kind_beside_the_reason():
    found = by_goroutine(HAND)
    equal(kinds(found[1]), [("sync", "mutex", 160), ("sync", None, 30)])
    equal(found[1]["block_ns"], {"sync": 190})
    equal(kinds(found[2])[0], ("sync", "mutex", 80))
    equal(kinds(found[4])[0], ("sync", "mutex", 20))
    equal([k[:2] for k in kinds(found[3])], [("sync", "mutex"), ("sync.(*Cond).Wait", "condition")])


@test
def a_log_that_another_transition_separates_from_the_wait_is_not_its():
    text = replaced(
        "UserLog dt=14 task=0 key_string=4 value_string=6 stack=0\nGoBlock",
        "UserLog dt=14 task=0 key_string=4 value_string=6 stack=0\nGoStop dt=0 reason_string=26 stack=21\n"
        "GoStart dt=0 g=1 g_seq=1\nGoBlock",
    )
    # G 1 has one more transition, so its later sequence numbers are one higher.
    for old, new in (("GoStart dt=8 g=1 g_seq=5", "GoStart dt=8 g=1 g_seq=6"), ("GoUnblock dt=20 g=1 g_seq=4", "GoUnblock dt=20 g=1 g_seq=5"),
                     ("GoStart dt=3 g=1 g_seq=3", "GoStart dt=3 g=1 g_seq=4"), ("GoStart dt=10 g=1 g_seq=2", "GoStart dt=10 g=1 g_seq=3"),
                     ("GoUnblock dt=1 g=1 g_seq=1", "GoUnblock dt=1 g=1 g_seq=2")):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    equal(kinds(by_goroutine(assembled("stopped", text))[1]), [])
    # The two additional events take a tick each from the wait: no two events of a thread have the same time.
    equal(by_goroutine(assembled("stopped", text))[1]["block_ns"], {"sync": 188})


@test
def finding_has_the_kind_and_object_and_understands_both():
    hits = answer("find", HAND, "block[mutex]")["hits"]
    equal(sorted((h["goroutine"], h["steps"][0]["wait_kind"], h["steps"][0]["object"]) for h in hits),
          [(1, "mutex", A), (2, "mutex", "b_mu"), (3, "mutex", A), (4, "mutex", "c_mu")])
    hits = answer("find", HAND, "block[mutex b_mu]")["hits"]
    equal([(h["goroutine"], h["end_ns"] - h["begin_ns"], h["steps"][0]["reason"]) for h in hits], [(2, 80, "sync")])


@test
def why_names_what_was_waited_for_and_who_held_it_how_long():
    path = answer("why", "--goroutine=1", HAND)
    woken = [s for s in path["segments"] if s.get("wakes") == 1 and "awaited_kind" in s]
    equal([(s["goroutine"], s["awaited"], s["awaited_kind"], s["awaited_object"], s["held_ns"]) for s in woken],
          [(2, "sync", "mutex", A, 190)])
    text = good_text("why", "--goroutine=1", HAND)
    assert f"wakes G1 from waiting for mutex {A} (held by two, 190 ns)" in text, text


@test
def summary_has_rows_by_kind():
    rows = {w["name"]: w["blocked"] for w in answer("summary", HAND)["waits"]}
    equal([(b["reason"], b.get("wait_kind"), b["sum_ns"]) for b in rows["main"]],
          [("sync", "mutex", 160), ("sync", None, 30)])
    rows = [line.split() for line in good_text("summary", "--limit=0", HAND).splitlines()]
    # 160 + 170 + 80 + 20 ns.
    assert any(row[:2] == ["430", "ns"] and row[-2:] == ["waiting", "mutex"] for row in rows), rows


@test
def the_off_cpu_profile_has_what_was_waited_for_as_a_frame():
    text = good_text("profile", "--type=offcpu", HAND)
    for frame in (f"[mutex {A}]", "[mutex b_mu]", "[mutex c_mu]", "[condition 0x10]", "[sync]"):
        assert frame in text, (frame, text)


@test
def locks_have_the_word_of_the_kind():
    found = {lock["name"]: lock for lock in answer("locks", HAND)["locks"]}
    equal((found["b_mu"]["wait_kind"], found["b_mu"]["object"]), ("mutex", "b_mu"))
    equal((found["0x10"]["wait_kind"], found["0x10"]["object"]), ("condition", "0x10"))
    assert "wait_kind" not in found[""], found[""]


@test
def a_wait_that_its_time_limit_ended_says_so():
    for path, right in ((HAND, 0), (LATE, 1), (LATE_CALL, 0)):
        rows = {w["name"]: w["blocked"] for w in answer("summary", path)["waits"]}
        equal([b.get("timed_out", 0) for b in rows["main"]], [right, 0])
        found = {lock["name"]: lock for lock in answer("locks", path)["locks"]}
        equal({name: lock.get("timed_out", 0) for name, lock in found.items()}, {n: right * (n == A) for n in found})
        stacks = answer("latency", path)["locks"]["stacks"]
        equal(sorted((s["ns"], s.get("wait_kind"), s.get("timed_out", 0)) for s in stacks if s["ns"] in (160, 30)),
              [(30, None, 0), (160, "mutex", right)])


@test
def diff_compares_by_kind():
    later = assembled("later", replaced("GoUnblock dt=15 g=4 g_seq=2", "GoUnblock dt=18 g=4 g_seq=2"))
    metrics = answer("diff", HAND, later)["metrics"]
    whole = {m["metric"]: (m["a"]["value"], m["b"]["value"]) for m in metrics if m["of"] == "whole"}
    # All four that wait for a mutex end their waits 3 ns later.
    equal(whole["block.mutex"], (430, 442))
    assert "block.sync" in whole, whole


sys.exit(tap.main())
