#!/usr/bin/env python3
"""Slow answers, slow runs and time-outs. TAP.

usage: answers.py TRAIL SOURCE_ROOT [long]
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import equal  # noqa: E402
from made import GROUP, LOCK, MS, US, WORK_STACK, Trace, main  # noqa: E402
from programs import outside  # noqa: E402
from tap import test  # noqa: E402


def ran(count, slow, at, usual=MS, also=None):
    """Goroutine 1 runs for `usual` between two sleeps, the one at `at` for `slow`, the one at `also` for 1 ms."""
    trace = Trace(1)
    trace.here(1, 2, 0)
    now = MS
    for i in range(count + 1):
        trace.block(now, 0, "sleep", ("time.Sleep", "main.serve"))
        trace.at(now + MS, 0, "GoUnblock g=1 g_seq=%d stack=0", 1)
        trace.start(now + MS + 10, 0, 1)
        now += MS + 10 + (slow if i == at else MS if i == also else usual)
    return trace.findings(now, "--from=0ns", f"--to={now}ns")


@test
def a_run_between_two_waits_that_is_far_longer_than_others_is_slow():
    found = ran(40, 60 * MS, 20)
    equal(list(found), ["slow-run"])
    text = found["slow-run"]["text"]
    assert " ran for 60.0 ms between two waits (sleep at main.serve (main.go:11)), 95 % of the 40 times at most about " in text, text
    assert "At most 59.0 ms of 142 ms would be saved." in text or "At most 58" in text, text
    equal((found["slow-run"]["function"], found["slow-run"]["end_ns"] - found["slow-run"]["begin_ns"]), ("main.serve", 60 * MS))
    # From 50 ms on, in the middle of twenty, as a program also has work at first and at last.
    equal(ran(40, 49 * MS, 20), {})
    equal((list(ran(20, 60 * MS, 10)), ran(19, 60 * MS, 10)), (["slow-run"], {}))
    equal((list(ran(40, 60 * MS, 5)), ran(40, 60 * MS, 4)), (["slow-run"], {}))
    equal((list(ran(40, 60 * MS, 34)), ran(40, 60 * MS, 35)), (["slow-run"], {}))
    # What only looks between sleeps has work when it has found what it looks for, if it does so more than once.
    equal(list(ran(60, 60 * MS, 20, usual=20 * US)), ["slow-run"])
    equal(ran(60, 60 * MS, 20, usual=20 * US, also=40), {})


def asked_at_once(goroutines, length):
    """Main waits for goroutines with a WaitGroup, each of which asks ten times over a connection of its own, and waits this long for each
    answer."""
    read = ("internal/poll.(*FD).Read", "net.(*netFD).Read", "net.(*conn).Read", "main.query", "main.fetch")
    write = ("internal/poll.(*FD).Write", "net.(*netFD).Write", "net.(*conn).Write", "main.query", "main.fetch")
    trace = Trace(1 + goroutines)
    trace.here(1, 2, 0)
    for g in range(2, 2 + goroutines):
        trace.create(g, 0, g, ("main.start", "main.fetch"))
        trace.start(20 + g, g - 1, g)
    trace.block(50, 0, "sync", GROUP)
    now = MS
    for i in range(10):
        for g in range(2, 2 + goroutines):
            at = now + g * 10
            trace.at(at, g - 1, f"GoSyscallBegin p_seq=%d stack={trace.stack(write)}", f"P {g - 1}")
            trace.at(at + 1, g - 1, "GoSyscallEnd")
            trace.block(at + 2, g - 1, "network", read)
            trace.wake(at + length, g - 1, g, ())
            trace.start(at + length + 5, g - 1, g)
        now += length + MS
    trace.wake(now, 1, 1, ("main.fetch",))
    trace.start(now + 10, 0, 1)
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def a_peer_that_several_ask_at_the_same_time_is_slow_from_40_ms_on():
    assert "slow-peer" in asked_at_once(1, 20 * MS)
    assert "slow-peer" not in asked_at_once(2, 20 * MS) and "slow-peer" not in asked_at_once(2, 38 * MS)
    assert "slow-peer" in asked_at_once(2, 41 * MS)


def slowly_served(preempted=55 * MS, ran=60 * MS):
    """Goroutine 2 asks goroutine 1 forty times, which runs for 1 ms, but once for `ran` and is ready for so long before it answers."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.ask",))
    trace.start(20, 1, 2)
    trace.log(30, 0, "wait", "read pipe:b")
    trace.block(35, 0, "network", ("main.take", "main.serve"))
    now = MS
    for i in range(40):
        trace.wake(now, 1, 1, ("main.send", "main.ask"))
        trace.start(now + 5, 0, 1)
        trace.log(now + 10, 1, "wait", "read pipe:a")
        trace.block(now + 15, 1, "network", ("main.receive", "main.ask"))
        if i == 20:
            now += ran
            trace.at(now, 0, f"GoStop reason_string={trace.string('preempted')} stack={trace.stack(WORK_STACK)}")
            now += preempted
            trace.start(now, 0, 1)
        now += MS
        trace.wake(now, 0, 2, ("main.answer", "main.serve"))
        trace.start(now + 5, 1, 2)
        trace.log(now + 10, 0, "wait", "read pipe:b")
        trace.block(now + 15, 0, "network", ("main.take", "main.serve"))
        trace.block(now + 20, 1, "sleep", ("time.Sleep", "main.ask"))
        now += MS
        trace.at(now, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
        trace.start(now + 5, 1, 2)
        now += 10
    return trace.findings(now + MS)


@test
def a_long_run_comes_before_the_answer_that_it_makes_late():
    found = list(slowly_served())
    assert found.index("slow-run") < found.index("slow-answer"), found


def answered(count, length, accepts=False, wrote=True, region=False, joined=False, replies=False, of=None, locks=False, busy=False, last=None, lacked=0, asks=0, every=False, sleeps=0):
    """Goroutine 2 writes to a connection and waits this long for the answer each time. With
    `accepts`, it was created by a goroutine that accepts connections; with `replies`, goroutine
    4, created by it, writes the answers, and waits for another's itself for `asks` before, or `sleeps`. With `joined`, main waits for goroutine 2 with a
    WaitGroup. With `locks`, goroutine 2 holds a lock meanwhile for which goroutine 7 waits; with
    `busy`, two others are ready all the time, and, without `last`, twenty run, each on a P of its own. The last wait takes `last`; one of
    these is ready for `lacked` of it."""
    read = ("internal/poll.(*FD).Read", "net.(*netFD).Read", "net.(*conn).Read", "main.query", "main.fetch")
    write = ("internal/poll.(*FD).Write", "net.(*netFD).Write", "net.(*conn).Write", "main.answer")
    accept = ("internal/poll.(*FD).Accept", "net.(*netFD).accept", "main.serve")
    hogs = 20 if busy and not last else 0
    trace = Trace((4 if locks else 3) + hogs)
    trace.here(1, 2, 0)
    trace.here(3, 2, 2)
    for i in range(hogs):
        trace.here(40 + i, 2, 3 + i)
    if locks:
        trace.here(7, 2, 3)
    for g in (8, 9) if busy else ():
        trace.here(g, 1)

    def call(now, thread, stack):
        trace.at(now, thread, f"GoSyscallBegin p_seq=%d stack={trace.stack(stack)}", f"P {thread}")
        trace.at(now + US, thread, "GoSyscallEnd")

    call(10, 2, accept)
    trace.create(2 * US, 2 if accepts else 0, 2, ("main.start", "main.fetch"))
    trace.start(3 * US, 1, 2)
    if replies:
        trace.create(4 * US, 2, 4, ("main.serve", "main.handler"))
        trace.block(5 * US, 2, "network", accept)
        trace.start(6 * US, 2, 4)
    if joined:
        trace.block(5 * US, 0, "sync", GROUP)
    name, now = trace.string("order"), MS
    for i in range(count):
        if last and i == count - 1:
            length = last
            trace.start(now + 2 * US + lacked, 0, 8)
        if region:
            trace.at(now - 100, 1, f"UserRegionBegin task=0 name_string={name} stack=0")
        if wrote:
            call(now, 1, write)
        trace.block(now + 2 * US, 1, "network", read)
        if locks:
            trace.block(now + 10 * US, 3, "sync", LOCK)
        if asks:
            trace.at(now + 3 * US, 2, f"UserRegionBegin task=0 name_string={name} stack=0")
            call(now + 4 * US, 2, write)
            trace.block(now + 10 * US, 2, "network", read[:-2] + ("main.price", "main.handler"))
            trace.wake(now + 10 * US + asks, 2, 4, ())
            trace.start(now + 20 * US + asks, 2, 4)
            trace.at(now + 21 * US + asks, 2, f"UserRegionEnd task=0 name_string={name} stack=0")
        if sleeps:
            trace.block(now + 10 * US, 2, "sleep", ("time.Sleep", "main.price", "main.handler"))
            trace.at(now + 10 * US + sleeps, 2, "GoUnblock g=4 g_seq=%d stack=0", 4)
            trace.start(now + 20 * US + sleeps, 2, 4)
        if replies:
            call(now + length - 500 * US, 2, write)
        now += length
        trace.wake(now, 1, 2, ())
        trace.start(now + 10, 1, 2)
        if region:
            trace.at(now + 20, 1, f"UserRegionEnd task=0 name_string={name} stack=0")
        if locks:
            trace.wake(now + 30, 1, 7, ("sync.(*Mutex).Unlock", "main.query", "main.fetch"))
            trace.start(now + 40, 3, 7)
        now += MS
    if last:
        trace.block(now - 5, 0, "chan receive", WORK_STACK)
    if joined:
        trace.wake(now, 1, 1, ("main.fetch",))
        trace.start(now + 10, 0, 1)
    end = of or now + MS
    args = "--from=0ns", f"--to={end}ns"
    return trace.summary(end, *args)["findings"] if every else trace.findings(end, *args)


@test
def an_answer_that_is_late_for_want_of_a_cpu_is_not_slow():
    late = {"count": 20, "length": MS, "joined": True, "busy": True, "last": 100 * MS}
    assert "slow-answer" in answered(**late, lacked=49 * MS)
    assert "slow-answer" not in answered(**late, lacked=51 * MS)


@test
def answers_from_the_network_that_take_most_of_the_time_are_a_slow_peer():
    text = answered(10, 9 * MS, joined=True)["slow-peer"]["text"]
    assert re.match(r"main\.query \(main\.go:\d+\) waited for answers from the network for 88 % of the time\. 10 waits, 90\.0 ms in all, .* Its peer is slow or far away", text), text
    text = answered(10, 9 * MS, joined=True, replies=True)["slow-peer"]["text"]
    assert re.search(r" main\.answer \(main\.go:\d+\), in the same program, answers late\.", text), text
    # It says if it slept for more than half of that.
    for sleeps, said in ((4600 * US, True), (4400 * US, False)):
        text = answered(10, 9 * MS, joined=True, replies=True, sleeps=sleeps)["slow-peer"]["text"]
        assert ("answers late; it slept meanwhile (main.price (main.go:11))." in text) == said, text
    # What it waits for itself comes first.
    for asks, behind in ((8 * MS, True), (7 * MS, False)):
        both = [f for f in answered(10, 9 * MS, joined=True, replies=True, asks=asks, every=True) if f["kind"] == "slow-peer"]
        equal([f["function"] for f in both], ["main.price", "main.query"])
        outer = both[1]["text"]
        assert (", in the same program, answers late, and waits for answers itself at main.price (main.go:13)." in outer) == behind, outer
    # Nothing in the program needs the answer, or it was not requested, as when a server waits for
    # requests.
    # The lock that is held meanwhile is the cause, where the others need it.
    found = answered(10, 9 * MS, joined=True, locks=True)
    equal(found["slow-peer"]["function"], found["lock-serialises"]["function"])
    assert 2 * found["slow-peer"]["weight"] > found["lock-serialises"]["weight"] > found["slow-peer"]["weight"], found
    # The server may be as fast as the CPUs let it be.
    assert "slow-peer" in answered(10, 9 * MS, joined=True, busy=True)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, replies=True, busy=True)
    assert "slow-peer" not in answered(10, 9 * MS)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, wrote=False)
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, accepts=True)
    # Within a region it is part of a request.
    assert "slow-peer" in answered(10, 9 * MS, region=True) and "slow-peer" in answered(10, 9 * MS, region=True, accepts=True)
    # From half of the time on, in several waits.
    assert "slow-peer" in answered(10, 9 * MS, joined=True, of=2 * (90 * MS - 20 * US))
    assert "slow-peer" not in answered(10, 9 * MS, joined=True, of=2 * (90 * MS - 20 * US) + 2)
    assert "slow-peer" not in answered(1, 90 * MS, joined=True)


@test
def a_server_that_a_c_program_connected_to_answers_late():
    for wait in ("read server 10.0.0.1:5432", "poll server 10.0.0.1:5432"):
        found = outside(10 * [7 * MS], wait, of=150 * MS)
        equal(list(found), ["slow-peer"])
        assert found["slow-peer"]["text"].startswith("main.ask (main.go:10) waited for answers from the network for 47 % of the time. 10 waits, 70.0 ms in all"), found
        assert " Its peer is slow or far away: " in found["slow-peer"]["text"], found
        equal(list(outside(10 * [6 * MS], wait, of=150 * MS)), ["slow-peer"])
        equal(outside(10 * [5900 * US], wait, of=150 * MS), {})
    # Servers wait for requests, and event loops for any of several connections.
    for wait in ("read 10.0.0.1:51324", "poll server 10.0.0.1:5432, pipe:[7]", "read pipe:[7]"):
        equal(outside(10 * [7 * MS], wait, of=150 * MS), {})


def asked_server(late, ready=0, every=10 * MS, rest=None):
    """Goroutine 1 asks 20 times, every 10 ms; goroutine 2 is first ready for some time, and answers after `late`, for
    most of which it waits for `rest`."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.create(10, 0, 2, ("main.serve",))
    trace.start(20, 1, 2)
    for i in range(20):
        now = (1 + i) * every
        trace.log(now - 40, 1, "wait", "read 127.0.0.1:51324")
        trace.block(now - 30, 1, "network", ("main.serve",))
        trace.wake(now - 20, 0, 2, ("main.ask",))
        trace.start(now - 20 + ready + 10, 1, 2)
        trace.log(now - 10, 0, "wait", "read server 127.0.0.1:80")
        trace.block(now, 0, "network", ("main.ask",))
        if rest:
            trace.log(now + 40, 1, "wait", rest)
            trace.block(now + 50, 1, "network", ("main.read_all",))
            trace.at(now + late - 200, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + late - 100, 1, 2)
        trace.wake(now + late, 1, 1, ("main.serve",))
        trace.start(now + late + 10, 0, 1)
    return trace.findings(21 * every, "--from=0ns", f"--to={21 * every}ns")


@test
def a_recorded_server_that_answers_late_is_named_unless_it_had_no_cpu():
    found = asked_server(5 * MS)
    assert "slow-peer" in found and " main.serve answers late. " in found["slow-peer"]["text"] + " ", found
    # What the peer itself waited for comes first.
    assert abs(found["slow-peer"]["weight"] - found["slow-peer"]["gain_ns"] / (2 * 210 * MS)) < 1e-3, found
    assert "slow-peer" not in asked_server(4 * MS)
    assert "slow-peer" not in asked_server(5 * MS, ready=MS)


@test
def a_server_that_waits_for_the_rest_of_a_request_does_not_answer_late():
    def said(late, rest="read 127.0.0.1:51324"):
        return asked_server(late, every=100 * MS, rest=rest)["slow-peer"]

    found = said(44 * MS)
    assert "main.serve waited for the rest of the request (read 127.0.0.1:51324 at main.read_all" in found["text"] and "answers late" not in found["text"], found
    assert "Send each request in one write, or set TCP_NODELAY." in found["text"], found
    # It is no other thing's fault: not half of its weight.
    assert abs(found["weight"] - found["gain_ns"] / (2100 * MS)) < 1e-3, found
    # An acknowledgement is delayed for about 40 ms.
    assert " TCP_NODELAY" not in said(70 * MS)["text"] and " TCP_NODELAY" not in said(44 * MS, "file data")["text"]


@test
def one_wait_of_many_that_is_far_longer_is_a_slow_answer():
    found = outside(19 * [MS] + [100 * MS], "read pipe:[7]")
    equal(list(found), ["slow-answer"])
    assert found["slow-answer"]["text"].startswith("main.ask (main.go:10) waited 100 ms once (read pipe:[7]); 95 % of its 20 waits took at most about "), found
    assert found["slow-answer"]["text"].endswith(" See what its peer did then."), found
    equal(outside(18 * [MS] + [100 * MS], "read pipe:[7]"), {})
    equal(outside(19 * [MS] + [49 * MS], "read pipe:[7]"), {})
    equal(outside(19 * [20 * MS] + [100 * MS], "read pipe:[7]"), {})
    # Servers wait for requests while none arrives.
    equal(outside(19 * [MS] + [100 * MS], "accept 0.0.0.0:80"), {})
    equal(outside(19 * [MS] + [100 * MS], "poll"), {})


@test
def a_slow_answer_says_what_gave_it_and_what_that_waited_for():
    def said(ns):
        text = outside(19 * [MS] + [100 * MS], "read pipe:[7]", peer_sleeps=ns)["slow-answer"]["text"]
        return text.split(". ", 1)[1]

    assert said(90 * MS).startswith("main.answer, which ended it, was itself waiting for 90.0 ms of that (sleep at main.answer (main.go:10))."), said(90 * MS)
    # Half of the time, and less.
    assert "was itself waiting" in said(50 * MS)
    assert said(50 * MS - 1).startswith("main.answer ended it. ") and said(50 * MS - 1).endswith("See what main.answer did meanwhile."), said(50 * MS - 1)
    # Before the wait it does not count.
    assert "for 100 ms of that" in said(100 * MS + 500 * US), said(100 * MS + 500 * US)


def idle_end(waits, locked=False):
    """Main reads 40 times for a millisecond, then once for 100 ms. Goroutine 2 reads as often as `waits` before it reads
    for as long; or answers main, after 3 has held a lock that both 2 and 4 want, for all of that time."""
    trace = Trace(4)
    trace.here(1, 2, 0)
    for g in 2, 3, 4:
        trace.create(10 * g, 0, g, ("main.answer" if g < 4 else "main.other",))
        trace.start(10 * g + 5, g - 1, g)
    now = MS

    def read(at, g, length, by=None):
        trace.log(at - 10, g - 1, "wait", f"read pipe:[{g}]")
        trace.block(at, g - 1, "network", ("main.ask",))
        if by:
            trace.wake(at + length, by - 1, g, ("main.answer",))
        else:
            trace.at(at + length, 0 if g != 1 else 3, f"GoUnblock g={g} g_seq=%d stack=0", g)
        trace.start(at + length + 10, g - 1, g)

    for i in range(40):
        read(now, 1, MS, by=4)
        if i < waits:
            read(now + 20, 2, MS // 2, by=4)
        now += 2 * MS
    if not locked:
        read(now, 2, 100 * MS)
    else:
        for g in 4, 2:
            trace.log(now, g - 1, "wait", "mutex m")
            trace.block(now + g, g - 1, "sync", ("main.take",))
        trace.log(now + 100 * MS - 20, 2, "held", "mutex m 100ms")
        for g in 4, 2:
            trace.wake(now + 100 * MS - 10 - g, 2, g, ("main.keep",))
            trace.start(now + 100 * MS + g, g - 1, g)
        read(now, 1, 100 * MS + 30, by=2)
    end = now + 101 * MS
    return trace.findings(end, "--from=0ns", f"--to={end}ns")


@test
def one_that_was_asked_nothing_gets_no_slow_answer():
    assert "slow-answer" in idle_end(9), idle_end(9)
    assert "slow-answer" not in idle_end(0)


@test
def a_lock_behind_a_slow_answer_comes_first():
    found = idle_end(0, locked=True)
    equal([kind for kind in found if kind != "serial-phase"], ["lock-serialises", "slow-answer"])
    assert "main.answer ended it, and waited for mutex m before." in found["slow-answer"]["text"], found


def exchanged(wait="poll socket:[7]", works="sleep", slow=100 * MS, service=MS, thinks=4 * MS, waits_first=True, paused=0, count=20):
    """Main asks goroutine 2 every `thinks` and waits for the answer, which takes `service`, the last
    one `slow`, asleep or running; goroutine 2 waits for requests, the first time too or not. Main
    pauses once before it asks."""
    trace = Trace(2)
    trace.here(1, 2, 0)
    trace.here(2, 2, 1)

    def waits(at, g, what, stack):
        trace.log(at - 10, g - 1, "wait", what)
        trace.block(at, g - 1, "network", stack)

    now = MS
    if waits_first:
        waits(now, 2, wait.replace("7", "8"), ("main.serve",))
    for i in range(count):
        now += thinks + (paused if i == count // 2 else 0)
        took = slow if i == count - 1 else service
        if i > 0 or waits_first:
            trace.wake(now, 0, 2, ("main.ask",))
            trace.start(now + 10, 1, 2)
        waits(now + 20, 1, wait, ("main.ask",))
        if works == "sleep":
            trace.block(now + 30, 1, "sleep", ("main.look_up", "main.serve"))
            trace.at(now + took - 20, 1, "GoUnblock g=2 g_seq=%d stack=0", 2)
            trace.start(now + took - 10, 1, 2)
        trace.wake(now + took, 1, 1, ("main.serve",))
        trace.start(now + took + 10, 0, 1)
        waits(now + took + 20, 2, wait.replace("7", "8"), ("main.serve",))
        now += took
    return trace.findings(now + MS, "--from=0ns", f"--to={now + MS}ns")


@test
def an_answer_in_poll_is_slow_if_what_serves_it_took_its_time():
    text = exchanged()["slow-answer"]["text"]
    assert text.startswith("main.ask (main.go:10) waited 100 ms once (poll socket:[7]); 95 % of its 20 waits took at most about "), text
    assert " was itself waiting for 100 ms of that (sleep at main.look_up (main.go:10))." in text, text
    text = exchanged(works="run")["slow-answer"]["text"]
    assert ", which ended it, ran for 100 ms of that. " in text, text
    # A server has nothing to do while its client pauses, in whatever call it waits.
    for wait in "poll socket:[7]", "read socket:[7]":
        assert "slow-answer" not in exchanged(wait, slow=MS, paused=100 * MS), wait
        assert "slow-answer" in exchanged(wait), wait
    # Which of them serves the other is not known: what waited first, and what waits for longer.
    assert "slow-answer" not in exchanged(waits_first=False)
    assert "slow-answer" in exchanged("read socket:[7]", waits_first=False)
    assert "slow-answer" not in exchanged(thinks=900 * US)


if __name__ == "__main__":
    sys.exit(main())
