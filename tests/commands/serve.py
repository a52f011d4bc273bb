#!/usr/bin/env python3
"""The server of `trail view`: its answers for small traces, known by arithmetic, and for real ones,
compared with the commands; which requests it answers; traces that arrive in pieces. TAP.

usage: serve.py TRAIL SOURCE_ROOT
"""

import concurrent.futures
import contextlib
import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ROOT, TRAIL, WORK, assembled, equal, run, text_of, trace  # noqa: E402
from tap import main, test

EXAMPLES = {
    n: os.path.join(ROOT, "examples", "traces", f"load-go1.{n}.trace") for n in (19, 21, 22, 23)
}
STATES = ("runnable", "running", "waiting", "syscall", "blocked")
# Longer than any wait on any machine, in s.
LONG = 300


class Server:
    """`trail view` of a trace, for the duration of a `with`."""

    def __init__(self, *args, stdin=None, env=None):
        # No browser: none is installed, and --no-open is given.
        self.process = subprocess.Popen(
            [TRAIL, "view", "--no-open", *args],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | (env or {}),
        )
        self.url = self.process.stdout.readline().decode().strip()
        if not self.url:
            raise AssertionError(self.process.communicate(timeout=LONG)[1].decode())
        parts = urllib.parse.urlsplit(self.url)
        self.port = parts.port
        self.token = parts.query.removeprefix("token=")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=LONG)
        if kind is None:
            assert self.process.returncode == 0, f"exit {self.process.returncode}: {err.decode()}"

    def ask(self, path, method="GET", headers=None, token=True, alone=contextlib.nullcontext()):
        """(status, headers, body). Connects and sends everything within the context `alone`."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG)
        all_headers = {"Authorization": f"Bearer {self.token}"} if token else {}
        with alone:
            connection.request(method, path, headers={**all_headers, **(headers or {})})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, answer.headers, body

    def get(self, path, **query):
        """The answer to a valid request."""
        if query:
            path += "?" + urllib.parse.urlencode({k.rstrip("_"): v for k, v in query.items()})
        status, headers, body = self.ask("/api/" + path)
        assert status == 200, f"{path}: {status} {body[:500]!r}"
        if headers["Content-Type"] == "application/json":
            return json.loads(body)
        return body

    def until(self, holds):
        """The first status that satisfies a condition."""
        while True:
            status = self.get("status")
            if holds(status):
                return status

    def done(self):
        return self.until(lambda s: s["done"])

    def lanes(self, **query):
        answer = self.get("lanes", **query)
        rows = [dict(zip(answer["columns"], row)) for row in answer["rows"]]
        for row in rows:
            row["name"] = answer["names"][row["name"]]
        return rows


def picture(data, classes=None):
    """{lane: [(x, pixels, state, mixture, shares, first span)]}; `classes`: {(lane, x): class of its waits}"""
    lanes, at = {}, 0
    while at < len(data):
        lane, count = struct.unpack_from("<II", data, at)
        at += 8
        cells = []
        for _ in range(count):
            x, pixels, state, mixture, *shares, kind, first = struct.unpack_from("<HHBB5BBI", data, at)
            assert shares[2] > 0 or kind == 0, (lane, x, kind)
            if classes is not None and shares[2] > 0:
                classes[lane, x] = kind
            cells.append((x, pixels, state, mixture, tuple(shares), first))
            at += 16
        lanes[lane] = cells
    return lanes


# MARK: By hand. Times are those in why-1.26.txt minus its first event's, 1000.


@test
def the_status_tells_what_there_is():
    with Server(trace("why-1.26")) as server:
        status = server.done()
        right = {"version": 26, "end": 421, "goroutines": 5, "procs": 1, "threads": 1, "logs": 0, "samples": 0}
        right |= {"bars": {"ranges": 0, "regions": 3, "tasks": 1}, "live": False, "waits": False, "can_run": True}
        right |= {"wall_ns": 1700000000 * 10**9, "title": trace("why-1.26")}
        equal({k: status[k] for k in right}, right)
        size = os.path.getsize(trace("why-1.26"))
        equal((status["read_bytes"], status["size_bytes"]), (size, size))
        assert "error" not in status
        go = {"task": "goroutine", "tasks": "goroutines", "slot": "P", "slots": "Ps", "machine": "M"}
        equal((status["made_by"], {k: status["words"][k] for k in go}), ("Go", go))


@test
def the_status_has_the_words_of_what_made_the_trace():
    line = b"trail.made by=host word=fib\\u00e9r"
    with open(os.path.join(ROOT, "tests/data/modules-1.23.txt"), "rb") as f:
        text = f.read().replace(b"trail.clock mono=64000 wall=1700000000.5", line)
    assert line in text
    path = os.path.join(WORK, "host.trace")
    with open(path + ".txt", "wb") as f:
        f.write(text)
    code, _, err = run("assemble", path + ".txt", "-o", path)
    assert code == 0, err
    for args, made in (([], ("fibér", "fibérs", "worker slot")), (["--words=threads"], ("thread", "threads", "CPU slot"))):
        with Server(*args, path) as server:
            status = server.done()
            equal(status["made_by"], "libtrail-record")
            equal(tuple(status["words"][k] for k in ("task", "tasks", "slot")), made)


@test
def lanes_have_the_times_of_their_states():
    with Server(trace("why-1.26")) as server:
        server.done()
        rows = [tuple(row[k] for k in ("id", "name", "begin", "end", "open", *STATES, "parent")) for row in server.lanes()]
        equal(
            rows,
            [
                (1, "main.main", 0, 421, True, 20, 60, 341, 0, 0, -1),
                (2, "main.holder", 10, 421, True, 110, 80, 221, 0, 0, 0),
                (3, "main.feeder", 20, 421, True, 100, 101, 200, 0, 0, 0),
                (4, "main.helper", 260, 300, False, 20, 20, 0, 0, 0, 2),
                (5, "main.helper", 360, 421, True, 20, 20, 21, 0, 0, 1),
            ],
        )
        # The first GoBlock of each; G 4 ends without one.
        equal([row["first_wait"] for row in server.lanes()], [40, 60, 110, -1, 400])
        (proc,) = server.lanes(kind="proc")
        equal(proc["first_wait"], -1)
        equal(proc["running"], 60 + 80 + 101 + 20 + 20)
        (thread,) = server.lanes(kind="thread")
        equal((thread["id"], thread["running"]), (100, 281))


@test
def lanes_can_be_asked_for_in_parts_and_by_name():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("lanes", first=1, count=2)
        equal(([row[1] for row in answer["rows"]], answer["all"], answer["matching"]), ([2, 3], 5, 5))
        answer = server.get("lanes", name="HELP")
        equal(([row[1] for row in answer["rows"]], answer["all"], answer["matching"]), ([4, 5], 5, 2))


@test
def a_span_tells_who_woke_it_whom_it_woke_and_where_it_was():
    with Server(trace("why-1.26")) as server:
        server.done()
        span = server.get("span", lane=2, at=80)
        place = {"lane": 0, "id": 0, "span": 4}
        right = {"lane": 2, "id": 3, "name": "main.feeder", "span": 1, "spans": 11, "begin": 70, "end": 110}
        right |= {"open": False, "state": "running", "reason": "", "stack": [], "more_wakes": False}
        right |= {"proc": place, "thread": {**place, "id": 100}, "creator": {"lane": 0, "id": 1, "name": "main.main"}}
        right |= {"waker": {"lane": 0, "id": 1, "name": "main.main", "span": 0, "at": 20}}
        right |= {"wakes": [{"lane": 1, "id": 2, "name": "main.holder", "span": 3, "at": 100}]}
        equal(span, right)
        span = server.get("span", lane=1, span=2)
        right = [{"function": "main.holder", "file": "/src/main.go", "line": 99}]
        equal((span["state"], span["reason"], span["begin"], span["end"]), ("waiting", "chan receive", 60, 100))
        equal(span["stack"], right)
        # G 2's timer wakes it at 340, not a goroutine.
        assert "waker" not in server.get("span", lane=1, at=345)
        span = server.get("span", kind="proc", lane=0, at=295)
        equal(span["goroutine"], {"lane": 3, "id": 4, "name": "main.helper", "span": 1})


@test
def a_wait_for_a_lock_tells_who_held_it():
    """G 1's first wait in locks-1.26.txt, for what G 2 had; also if logs name the kind otherwise than waits."""
    text = text_of("locks-1.26")
    for words in "mutex", "rwlock to write", "file lock":
        with Server(assembled(words, text.replace("mutex a_mu", words + " a_mu"))) as server:
            server.done()
            span = server.get("span", lane=0, at=100)
            equal((span["state"], span["held_by"]["id"]), ("waiting", 2), words)


@test
def pictures_are_cells_of_spans_and_mixtures():
    with Server(trace("why-1.26")) as server:
        server.done()
        # Ten nanoseconds per pixel: all of G 1's spans begin and end with a pixel.
        cells = picture(server.get("picture", lanes="0", from_=0, to=420, width=42))[0]
        whole = {1: (255, 0, 0, 0, 0), 2: (0, 255, 0, 0, 0), 3: (0, 0, 255, 0, 0)}
        right = [(0, 4, 2, 0), (4, 11, 3, 1), (15, 2, 1, 2), (17, 2, 2, 3), (19, 23, 3, 4)]
        equal(cells, [(x, n, state, 0, whole[state], first) for x, n, state, first in right])
        # One pixel of 100 ns of G 2: 10 nonexistent, 40 runnable, 10 running, 40 waiting; rounded
        # up.
        cells = picture(server.get("picture", lanes="1", from_=0, to=100, width=1))[1]
        equal(cells, [(0, 1, 1, 1, (102, 26, 102, 0, 0), 0)])
        # Lanes that do not exist are left out.
        equal(list(picture(server.get("picture", lanes="4,7,0"))), [4, 0])


@test
def a_group_has_the_average_number_of_its_lanes_in_each_state():
    with Server(trace("why-1.26")) as server:
        server.done()
        # The helpers: G 4 is ready from 260, runs from 280 and ends at 300; G 5 is ready from 360, runs from 380 and waits
        # from 400. Each state begins and ends with a column of 20 ns.
        answer = server.get("group", name="main.helper", from_=240, to=420, width=9)
        equal({k: answer[k] for k in ("from", "to", "columns")}, {"from": 240, "to": 420, "columns": 9})
        equal([answer[k] for k in ("members", "summed", "peak")], [2, 2, 1])
        right = {"runnable": [0, 1, 0, 0, 0, 0, 1, 0, 0], "running": [0, 0, 1, 0, 0, 0, 0, 1, 0]}
        right |= {"waiting": [0, 0, 0, 0, 0, 0, 0, 0, 1], "syscall": [0] * 9, "blocked": [0] * 9}
        equal(answer["states"], right)
        # With columns of 30 ns they do not: 10 ns is a third of one.
        states = server.get("group", name="main.helper", from_=240, to=420, width=6)["states"]
        equal([round(3 * n, 4) for n in states["runnable"]], [1, 1, 0, 0, 2, 0])
        equal([round(3 * n, 4) for n in states["running"]], [0, 2, 0, 0, 1, 1])
        equal([round(3 * n, 4) for n in states["waiting"]], [0, 0, 0, 0, 0, 2])
        # G 1 created G 2, ready from 100 to 120, and G 3, which waits from 110.
        answer = server.get("group", creator=0, from_=100, to=120, width=2)
        equal((answer["members"], answer["peak"]), (2, 2))
        equal((answer["states"]["running"], answer["states"]["runnable"]), ([1, 0], [1, 1]))
        equal(answer["states"]["waiting"], [0, 1])
        # G 1 to 4 at once, before G 5 takes the place of G 4; selected by number, by a filter, or by having no known
        # creator.
        equal(server.get("group")["peak"], 4)
        equal(server.get("group", lanes="3,4")["states"], server.get("group", name="main.helper")["states"])
        equal(server.get("group", match="help -4")["members"], 1)
        equal(server.get("group", creator=-1)["members"], 1)
        answer = server.get("group", name="help")
        equal((answer["members"], answer["summed"], answer["peak"], set(answer["states"]["running"])), (0, 0, 0, {0}))
        # At most as many columns as nanoseconds; G 3 runs from 250 to 270.
        equal(server.get("group", from_=260, to=263, width=100)["states"]["running"], [1, 1, 1])


@test
def of_a_group_of_too_many_lanes_some_are_summed_spread_over_it():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("group", most=2)
        equal((answer["members"], answer["summed"]), (5, 2))
        # Of five, the first and the fourth.
        equal(answer["states"], server.get("group", lanes="0,3")["states"])


@test
def bars_are_regions_and_tasks_over_their_goroutines():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("bars")
        keys = ("kind", "name", "lane", "begin", "end", "depth", "task", "parent", "open", "begun", "count")
        rows = [dict(zip(answer["columns"], row)) for row in answer["bars"]]
        rows = sorted((tuple(row[k] if k != "name" else answer["names"][row[k]] for k in keys) for row in rows), key=lambda r: r[3])
        equal(
            rows,
            [
                (2, "request", 0, 30, 180, 0, 7, -1, False, True, 1),
                (1, "wait", 2, 105, 250, 0, 0, -1, False, True, 1),
                (1, "call", 2, 255, 320, 0, 0, -1, False, True, 1),
                (1, "wait", 2, 325, 420, 0, 0, -1, False, True, 1),
            ],
        )
        equal(len(server.get("bars", kind="task")["bars"]), 1)
        equal(len(server.get("bars", lanes="1")["bars"]), 0)
        equal(len(server.get("bars", lanes="2", from_=251, to=300)["bars"]), 1)
        # All three are in one pixel, too short to be visible, and adjacent.
        answer = server.get("bars", kind="region", width=1)
        (row,) = [dict(zip(answer["columns"], row)) for row in answer["bars"]]
        equal([row[k] for k in ("name", "begin", "end", "count")] + [answer["merged"]], [-1, 105, 420, 3, True])


@test
def counters_are_averages_and_metrics_have_extremes():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("metrics", from_=0, to=420, width=2)
        counters = {k: [round(v * 210) for v in values] for k, values in answer["counters"].items()}
        # In each half: G 1, 2, 3; then G 4 and 5 with them.
        right = {"running": [160, 120], "procs": [160, 120], "syscall": [0, 0]}
        right["runnable"] = [20 + 40 + 20 + 40 + 50, 0 + 10 + 50 + 20 + 20 - 20 + 0]
        equal({k: counters[k] for k in ("running", "procs", "syscall")}, {k: right[k] for k in ("running", "procs", "syscall")})
        states = {row["id"]: row for row in server.lanes()}
        equal(sum(counters["runnable"]), sum(row["runnable"] for row in states.values()))
        equal(answer["exact"], True)
    with Server(trace("times-1.26")) as server:
        server.done()
        metrics = server.get("metrics", width=4, from_=0, to=400)["metrics"]
        # It is reported at 200, where the trace ends.
        equal(metrics["heap"], {"min": [None, None, 4096, None], "max": [None, None, 4096, None]})


@test
def counters_are_the_sums_of_the_spans_in_each_column():
    counters = {"runnable": "runnable", "running": "running", "waiting": "waiting", "syscall": "syscall", "blocked": "syscall"}
    with Server(trace("why-1.26")) as server:
        server.done()
        spans = []
        for lane in range(5):
            count = server.get("span", lane=lane, span=0)["spans"]
            spans += [server.get("span", lane=lane, span=i) for i in range(count)]
        spans = [span for span in spans if span["state"] != "none"]  # after its end
        for begin, end in ((0, 420), (37, 397), (100, 130), (400, 460)):
            for width in [n for n in range(1, end - begin + 1) if (end - begin) % n == 0]:
                size = (end - begin) // width
                right = {name: [0] * width for name in counters.values()}
                for span in spans:
                    for x in range(width):
                        inside = min(span["end"], begin + (x + 1) * size) - max(span["begin"], begin + x * size)
                        right[counters[span["state"]]][x] += max(inside, 0)
                ours = server.get("metrics", from_=begin, to=end, width=width)["counters"]
                ours = {name: [round(v * size) for v in ours[name]] for name in right}
                equal(ours, right, f"{begin} to {end} in {width}:")


@test
def waits_of_lanes_are_those_of_the_goroutines():
    for name in ("load-go1.19", "load-go1.23", "shop-c", "shop-go"):
        path = os.path.join(ROOT, "examples", "traces", name + ".trace")
        found = json.loads(run("goroutines", "--json", path)[1])
        with Server(path) as server:
            server.done()
            lanes = server.get("lanes", count=50000)["rows"]
            pages = [server.get("waits", first=first, count=20) for first in range(0, len(lanes), 20)]
            rows = []
            for page in pages:
                for row in page["rows"]:
                    rows.append({})
                    for number, ns in zip(row[::2], row[1::2]):
                        what = page["names"][number]
                        rows[-1][what] = rows[-1].get(what, 0) + ns
            equal((pages[0]["all"], len(rows)), (len(lanes), len(lanes)), name)
            ours = {(lane[1], lane[3]): sum(row.values()) for lane, row in zip(lanes, rows)}
            waits = {(lane[1], lane[3]): row for lane, row in zip(lanes, rows)}
            for g in found["goroutines"]:
                key = (g["id"], g["creation_ns"] - found["origin_ns"])
                equal(ours[key], sum(g["block_ns"].values()), f"{name} {key}")
                right = {k: v for k, v in g["block_ns"].items() if v > 0}
                if "waits" in g:  # by kind, of recordings
                    right = {}
                    for wait in g["waits"]:
                        what = wait.get("wait_kind", wait["reason"])
                        right[what] = right.get(what, 0) + wait["ns"]
                equal(waits[key], right, f"{name} {key}")


@test
def lines_are_numbers_that_json_has():
    with open(os.path.join(ROOT, "tests", "data", "why-1.26.txt")) as f:
        text = f.read()
    for line, right in ((0, 0), (2**31, 2**31), (2**63 - 1, 2**63 - 1), (2**63, 0), (2**64 - 1, 0)):
        with open(os.path.join(WORK, "line.txt"), "w") as f:
            f.write(text.replace("line=99", f"line={line}"))
        code, _, err = run("assemble", os.path.join(WORK, "line.txt"), "-o", os.path.join(WORK, "line.trace"))
        equal(code, 0, err)
        with Server(os.path.join(WORK, "line.trace")) as server:
            server.done()
            equal(server.get("span", lane=1, span=2)["stack"][0]["line"], right)


@test
def a_log_is_a_moment_on_its_lane():
    with Server(trace("times-1.26")) as server:
        server.done()
        answer = server.get("marks", kind="log")
        equal(answer, {"marks": [[112, 1, 0, 1]], "names": ["note: half\x1b[1m way"]})
        equal(server.get("marks", kind="log", from_=113)["marks"], [])
        equal(server.get("marks", kind="log", lanes="0")["marks"], [])


@test
def logs_of_a_recorder_are_no_marks():
    """They say what the lanes show. A log of the program with such a category remains one."""
    text = text_of("locks-1.26")
    # Six of "wait", four of "held", and one of another category, which is the program's.
    for change, logs in (
        (text, 1),
        (text.replace('data="wait"', 'data="waiting"'), 7),
        (text.replace('data="mutex c_mu"', 'data="bus 12"'), 2),
        (text.replace('data="wait"', 'data="counted"').replace('data="mutex c_mu"', 'data="read 512 1.2ms"'), 6),
        (text.replace('data="wait"', 'data="holds, as owner"'), 1),
    ):
        with Server(assembled("logs", change)) as server:
            server.done()
            marks = server.get("marks", kind="log", width=16384)
            equal((sum(m[3] for m in marks["marks"]), server.get("status")["logs"]), (logs, logs))
            for word in "b_mu", "bus 12", "512":
                found = [r["text"] for r in server.get("find", text=word)["results"] if r["type"] == "log"]
                equal(found, [name for name in marks["names"] if word in name])
            # Holds are drawn from these.
            assert server.get("find", text="mutex b_mu 20ns", type="log")["results"]


@test
def a_mark_tells_its_stack_and_its_neighbours_on_its_lane():
    with Server(trace("everything-1.26")) as server:
        server.done()
        # A tick is 64 ns. The sample is at 1055; the log after fourteen events that take 49.
        stack = [("main.serve", "/src/app/main.go", 42), ("main.main", "/src/app/main.go", 7)]
        for kind, at, text in (("sample", 55 * 64, ""), ("log", 49 * 64, "size: tab\there, \u00e9, \u2028, \x1b[31m and \ufffd")):
            mark = server.get("mark", kind=kind, lane=0, at=0)
            equal((mark["mark"], mark["at"], mark["text"], mark["before"], mark["after"]), (0, at, text, -1, -1))
            equal([(f["function"], f["file"], f["line"]) for f in mark["stack"]], stack)
            equal((mark["goroutine"]["id"], mark["thread"]["id"]), (1, 100))
            equal(server.get("mark", kind=kind, lane=0, at=at), mark)
            equal(server.get("mark", kind=kind, mark=0), mark)
            for path in (f"lane=0&at={at + 1}", "lane=1&at=0", "mark=1"):
                equal(server.ask(f"/api/mark?kind={kind}&{path}")[0], 404, path)
        equal(server.get("mark", kind="sample", mark=0)["proc"]["id"], 0)
    with Server(EXAMPLES[23]) as server:
        server.done()
        marks = server.get("marks", kind="log", width=16384)["marks"]
        number, seen = server.get("mark", kind="log", lane=marks[0][1], at=0)["mark"], []
        while number >= 0:
            mark = server.get("mark", kind="log", mark=number)
            seen.append(mark["at"])
            number = mark["after"]
        equal(seen, sorted(seen))
        equal(len(seen), sum(m[3] for m in marks if m[1] == marks[0][1]))


@test
def a_selection_adds_up_what_was_done_in_it():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("select", from_=100, to=200)
        # G 1 waits to 150, is ready to 170, runs to 190; G 2 is ready to 120, runs to 160, is ready;
        # G 3 runs to 110.
        right = {"runnable": 20 + 20 + 40, "running": 20 + 40 + 10, "waiting": 50 + 10 + 90, "syscall": 0, "blocked": 0}
        equal((answer["duration"], answer["states"], answer["complete"]), (100, right, True))
        reasons = {row["reason"]: (row["ns"], row["spans"]) for row in answer["by_reason"]}
        equal(reasons, {"sleep": (10 + 90, 2), "sync": (50, 1)})
        names = {row["name"]: (row["lanes"], row["states"]["running"]) for row in answer["by_name"]}
        equal(names, {"main.main": (1, 20), "main.holder": (1, 40), "main.feeder": (1, 10)})
        answer = server.get("select", from_=100, to=200, lanes="1")
        equal((answer["states"]["runnable"], answer["by_reason"]), (60, []))


@test
def spans_like_one_are_counted_with_the_longest():
    with Server(trace("why-1.26")) as server:
        server.done()
        answer = server.get("like", state="waiting", reason="chan receive")
        spans = [(0, 40), (1, 20), (2, 10)]
        # G 2 from 60 to 100; G 3 from 270 to 290 and from 330 to 390.
        lengths = sorted((100 - 60, 290 - 270, 390 - 330), reverse=True)
        equal((answer["count"], answer["total_ns"]), (3, sum(lengths)))
        equal([row["end"] - row["begin"] for row in answer["longest"]], lengths)
        equal(sum(row["count"] for row in answer["histogram"]), len(spans))
        for row in answer["histogram"]:
            equal(row["count"], sum(row["from_ns"] <= n < row["to_ns"] for n in lengths))
        equal(server.get("like", state="running", name="main.helper")["count"], 2)


@test
def spans_that_begin_in_a_function_are_those_with_it_in_their_stack():
    with Server(trace("why-1.26")) as server:
        server.done()
        for function in ("main.main", "main.holder", "main.feeder", "sync.(*Mutex).Lock", "main.mai", "no such"):
            right = []
            for lane in range(5):
                for i in range(server.get("span", lane=lane, span=0)["spans"]):
                    span = server.get("span", lane=lane, span=i)
                    if span["state"] != "none" and any(f["function"] == function for f in span["stack"]):
                        right.append((lane, i))
            answer = server.get("spans", function=function)
            equal(sorted((row["lane"], row["span"]) for row in answer["spans"]), right, function)
            equal(answer["all"], len(right), function)
            equal(bool(right), function.startswith("sync") or function in ("main.main", "main.holder", "main.feeder"))
        # G 2's wait from 60 to 100 is in main.holder, and is the only one in these 20 ns.
        answer = server.get("spans", function="main.holder", from_=70, to=90, lanes="1")
        equal([(row["begin"], row["end"], row["inside"]) for row in answer["spans"]], [(60, 100, 20)])
        # The innermost function of the stack, except those of the runtime, of locks and of channels.
        for row in server.get("spans", count=1000)["spans"]:
            stack = server.get("span", lane=row["lane"], span=row["span"])["stack"]
            own = [of["function"] for of in stack if not re.match(r"(runtime|sync|time|internal)\b", of["function"])]
            equal(row.get("function"), own[0] if own else None, row)


@test
def what_is_looked_for_is_found_by_number_name_and_text():
    with Server(trace("times-1.26")) as server:
        server.done()

        def found(text):
            return [(r["type"], r["text"], r["lane"], r["at"]) for r in server.get("find", text=text)["results"]]

        equal(found("G2"), [("goroutine", "main.worker", 1, 10)])
        equal(found("P1")[0][:1] + found("m100")[0][:1], ("proc", "thread"))
        equal([r for r in found("request") if r[0] == "task"], [("task", "request", 1, 50)])
        equal([r for r in found("PARSE")], [("region", "parse", 1, 55)])
        equal([r for r in found("half")], [("log", "note: half\x1b[1m way", 1, 112)])
        assert ("function", "main.read") in [r[:2] for r in found("main.read")], found("main.read")
        # The longest span in a function.
        for name in ("main.read", "main.worker"):
            [at] = [r for r in server.get("find", text=name, type="function")["results"] if r["text"] == name]
            spans = server.get("spans", **{"function": name})["spans"]
            equal(at["end"] - at["at"], max(s["end"] - s["begin"] for s in spans))
        equal(server.get("find", text="no such thing"), {"results": [], "more": False})
        equal(server.get("find", text="main", most=1)["more"], True)


@test
def of_more_than_there_is_room_for_those_with_a_word_that_begins_so_are_found():
    with Server(EXAMPLES[23]) as server:
        server.done()
        # One of each type.
        [one] = [r["text"] for r in server.get("find", text="lock", most=4)["results"] if r["type"] == "function"]
        assert re.search(r"\block", one, re.IGNORECASE), one
        # Of one type, all, in their order.
        texts = [r["text"] for r in server.get("find", text="lock", type="function", most=1000)["results"]]
        assert one in texts and texts[0] != one, texts


# MARK: Against the commands


@test
def lanes_of_real_traces_have_the_times_that_the_analyses_count():
    for name in EXAMPLES:
        code, out, err = run("goroutines", "--members", "--limit=0", "--json", EXAMPLES[name])
        assert code == 0, err
        with Server(EXAMPLES[name]) as server:
            server.done()
            lanes = server.lanes()
            right = sorted((g["id"], g["exec_ns"]) for g in json.loads(out)["goroutines"])
            equal(sorted((row["id"], row["running"]) for row in lanes), right, name)
            # A lane's spans cover it completely.
            for row in lanes:
                equal(sum(row[s] for s in STATES), row["end"] - row["begin"], row)
            # The time in which Ps run is the time in which goroutines run.
            equal(sum(row["running"] for row in server.lanes(kind="proc")), sum(row["running"] for row in lanes))


@test
def pictures_of_a_real_trace_are_what_its_spans_are():
    with Server(EXAMPLES[23]) as server:
        end = server.done()["end"]
        for width in (1, 37, 1900):
            cells = picture(server.get("picture", lanes="0,3,20", width=width, from_=0, to=end))
            for lane, row in cells.items():
                at = 0
                for x, pixels, state, mixture, shares, first in row:
                    assert x >= at and pixels > 0 and x + pixels <= width, (lane, x)
                    at = x + pixels
                    if mixture == 0:
                        span = server.get("span", lane=lane, span=first) if width == 37 else None
                        equal(shares[state - 1], 255)
                        if span:
                            equal(STATES[state - 1], span["state"])
                            assert span["begin"] <= x * end // width and span["end"] >= (x + pixels) * end // width
                    else:
                        equal(pixels, 1)
                        assert 0 < sum(shares) <= 255 + 5, shares


# As listed in docs/http-api.md.
WAIT_CLASSES = {"sync": 1, "chan receive": 2, "select": 2, "sync.(*Cond).Wait": 2, "network": 3, "sleep": 4}
WAIT_CLASSES |= dict.fromkeys(("system goroutine wait", "GC background sweeper wait", "GC scavenge wait"), 5)
WAIT_CLASSES |= dict.fromkeys(("force gc (idle)", "finalizer wait", "GC worker (idle)"), 5)
WAIT_CLASSES |= {"GC mark assist wait for work": 6, "wait until GC ends": 6}


@test
def a_wait_in_a_picture_has_the_class_of_its_reason():
    with Server(EXAMPLES[23]) as server:
        end = server.done()["end"]
        classes, seen = {}, set()
        lanes = picture(server.get("picture", lanes=",".join(map(str, range(60))), width=300, from_=0, to=end), classes)
        for lane, cells in lanes.items():
            for x, _, state, mixture, _, first in cells:
                if mixture or STATES[state - 1] != "waiting":
                    continue
                reason = server.get("span", lane=lane, span=first)["reason"]
                seen.add(reason)
                equal(classes[lane, x], WAIT_CLASSES.get(reason, 0), reason)
        assert seen >= {"network", "chan receive", "select"}, seen


@test
def the_sums_of_a_selection_are_those_of_its_lanes():
    with Server(EXAMPLES[22]) as server:
        server.done()
        lanes = server.lanes()
        answer = server.get("select")
        equal(answer["states"], {s: sum(row[s] for row in lanes) for s in STATES})
        group = server.get("group", width=700)
        column = answer["duration"] / 700
        for s in STATES:
            sums = sum(group["states"][s]) * column
            assert abs(sums - answer["states"][s]) <= 1e-5 * answer["states"][s], (s, sums, answer["states"][s])
        counters = server.get("metrics", width=1)
        for s in ("running", "runnable", "waiting"):
            average = sum(row[s] for row in lanes) / answer["duration"]
            assert abs(counters["counters"][s][0] - average) < 1e-4 * (1 + average), (s, average, counters["counters"][s])


COMMANDS = {
    "summary": {},
    "goroutines": {"match": "MAIN -1", "members": "1", "limit": "3"},
    "threads": {"from": "1000000", "to": "2000000"},
    "procs": {},
    "profile": {"type": "sched"},
    "latency": {"limit": "2"},
    "locks": {"limit": "3", "channels": "1"},
    "regions": {"name": "grow"},
    "tasks": {"limit": "1"},
    "gc": {},
    "mmu": {"window": "1ms,100us"},
    "why": {"window": "1", "limit": "5"},
}


@test
def analyses_say_what_the_command_says():
    with Server(EXAMPLES[23]) as server:
        server.done()

        def one(name):
            query = COMMANDS[name]
            words = [f"--{k}" if v == "1" and k in ("members", "channels", "window") else f"--{k}={v}" for k, v in query.items()]
            words = [w + "ns" if w.startswith(("--from", "--to")) else w for w in words]
            code, out, err = run(name, "--json", *words, EXAMPLES[23])
            assert code == 0, err
            answer = server.get("run", **{"command": name, **{k + "_": v for k, v in query.items()}})
            equal(answer, json.loads(out), name)
            # And once more, from the cache.
            equal(server.get("run", **{"command": name, **{k + "_": v for k, v in query.items()}}), answer)

        # More requests at once than may run.
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            list(pool.map(one, COMMANDS))
        code, out, _ = run("find", "--json", "--limit=2", EXAMPLES[23], "block[sync] >1us")
        equal(server.get("run", command="find", pattern="block[sync] >1us", limit=2), json.loads(out))


@test
def one_pass_says_what_the_commands_of_the_panels_say():
    commands = (["summary"], ["locks", "--limit=2"], ["latency"], ["mmu"])
    for file in EXAMPLES.values():
        for more in ([], ["--words=threads"]):
            right = [run(name, "--json", *words, *more, file) for name, *words in commands]
            code, out, err = run("panels", "--json", "--limit=2", *more, file)
            equal((code, out), (0, b"".join(out for _, out, _ in right)), file)


@test
def findings_speak_as_the_page_does():
    stuck = os.path.join(os.path.dirname(EXAMPLES[23]), "shop-c-stuck.trace")
    for args, says in (([], "thread"), (["--words=threads"], "thread"), (["--words=go"], "goroutine")):
        with Server(stuck, *args) as server:
            server.done()
            texts = [f["text"] for f in server.get("run", command="summary")["findings"]]
            assert texts and all(says in text for text in texts), (args, texts)
            # The page cannot choose the words.
            status, _, body = server.ask("/api/run?command=summary&words=threads")
            equal(status, 400, body)


@test
def only_what_stands_in_the_table_is_run():
    with Server(trace("why-1.26")) as server:
        for query, text in {
            "": "command is one of",
            "command=sql": "command is one of",
            "command=record": "command is one of",
            "command=profile&type=a/b": "type is a word",
            "command=profile&type=nonsense": "nonsense",
            "command=gc&limit=-1": "limit is a number",
            "command=gc&limit=": "limit is a number",
            "command=tasks&name=": "no task ''",
            "command=gc&from=5&to=5": "from is less than to",
            "command=gc&from=-1": "from is a number",
            "command=why&goroutine=99": "no goroutine 99",
            "command=find": "pattern is what to find",
            "command=goroutines&name=" + "x" * 2000: "name is a name",
        }.items():
            status, _, body = server.ask("/api/run?" + query)
            equal(status, 400, query)
            assert text in json.loads(body)["error"], (query, body)
        # Options cannot be injected: a word that looks like one is a value, or a word after the file.
        status, _, body = server.ask("/api/run?command=goroutines&output=/tmp/x")
        equal(status, 400, body)
        assert "goroutines has no parameter output" in json.loads(body)["error"], body
        status, _, body = server.ask("/api/run?command=goroutines&name=--help")
        equal(status, 400, body)
        assert "'--help'" in json.loads(body)["error"], body
        status, _, body = server.ask("/api/run?command=find&pattern=--help")
        equal(status, 400, body)
        # Displayed as a page of this server it would have its rights: browsers do not display this
        # type.
        status, headers, body = server.ask("/api/embed")
        equal((status, headers["Content-Type"]), (200, "application/octet-stream"))
        assert body.startswith(b"<!doctype html>") and b'data-part="trace"' in body, body[:200]


@test
def sql_is_asked_of_the_trace_and_of_nothing_else():
    with Server(EXAMPLES[23]) as server:
        server.done()
        code, out, _ = run("sql", "--json", EXAMPLES[23], "select count(*) as n from events")
        if code != 0:
            equal(server.ask("/api/sql?query=select+1")[0], 501)
            return
        server.until(lambda s: s["can_sql"])
        equal(server.get("sql", query="select count(*) as n from events"), json.loads(out))
        for query in ("select * from read_csv('/etc/passwd')", "set enable_external_access=true", "/etc/passwd",
                      "copy (select 1) to '/tmp/trail-x'", "load httpfs", "x" * 20000, ""):
            status, _, body = server.ask("/api/sql?" + urllib.parse.urlencode({"query": query}))
            equal(status, 400, query)
            assert json.loads(body)["error"]


@test
def the_examples_of_the_document_are_answered():
    with open(os.path.join(ROOT, "docs", "http-api.md")) as f:
        examples = re.findall(r"^ *api '(.*?)'", f.read(), re.M)
    assert len(examples) > 15
    with Server(f"--source={ROOT}", EXAMPLES[23]) as server:
        server.done()
        for path in examples:
            if not path.startswith("sql"):
                server.get(path)


# MARK: The cache

def looks(server):
    """The bytes that were read, the status without what is the server's own, and all that can be seen of lanes: the
    examples of the document, and the first spans."""
    with open(os.path.join(ROOT, "docs", "http-api.md")) as f:
        examples = re.findall(r"^ *api '(.*?)'", f.read(), re.M)
    others = ("status", "again", "source", "run", "embed", "sql")
    paths = [path for path in examples if not path.startswith(others)]
    paths += [f"span?kind={kind}&lane={lane}&span={span}" for kind in ("goroutine", "proc", "thread") for lane in range(3) for span in range(3)]
    status = server.done()
    received = status.pop("received_bytes")
    for key in ("can_run", "can_sql", "memory_bytes"):
        status.pop(key)
    return received, status, [(path, *server.ask("/api/" + path)[::2]) for path in paths]


def kept_in(folder):
    folder = os.path.join(folder, "trail", "view")
    return [os.path.join(folder, name) for name in os.listdir(folder)]


@test
def what_is_kept_is_what_was_read():
    for name in ("load-go1.23", "load-go1.19", "shop-c", "shop-go"):
        cache = {"XDG_CACHE_HOME": os.path.join(WORK, f"kept-{name}")}
        file = os.path.join(ROOT, "examples", "traces", f"{name}.trace")
        with Server(file) as server:
            received, status, seen = looks(server)
        assert received == os.path.getsize(file) and sum(code == 200 for _, code, _ in seen) > 30, (name, seen)
        with Server("--cache", file, env=cache) as server:
            equal(looks(server), (received, status, seen), name)
        assert kept_in(cache["XDG_CACHE_HOME"]), name
        with Server("--cache", file, env=cache) as server:
            # Nothing was read.
            equal(looks(server), (0, status, seen), name)


@test
def a_changed_trace_and_a_spoiled_cache_are_not_used():
    cache = {"XDG_CACHE_HOME": os.path.join(WORK, "spoiled")}
    file = os.path.join(WORK, "changing.trace")
    shutil.copy(EXAMPLES[22], file)

    def look():
        with Server("--cache", file, env=cache) as server:
            return looks(server)

    right = look()
    assert right[0] > 0
    equal(look(), (0, *right[1:]))
    lanes = [path for path in kept_in(cache["XDG_CACHE_HOME"]) if os.path.getsize(path) > 1 << 18]
    assert len(lanes) == 1, lanes
    with open(lanes[0], "rb") as kept:
        good = kept.read()
    places = [0, len(good) - 1, len(good) - 20, len(good) - 40, len(good) - 5000, len(good) // 2, len(good) - 300_000]
    spoiled = [good[:size] for size in (0, 10, len(good) // 2, len(good) - 1)] + [good + b"x"]
    spoiled += [good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :] for at in places[1:]]
    for data in spoiled:
        with open(lanes[0], "wb") as kept:
            kept.write(data)
        equal(look(), right)
        equal(look(), (0, *right[1:]))  # it has been replaced
    # As long, and as old, with other bytes: copied over it.
    times = os.stat(file)
    with open(EXAMPLES[22], "rb") as first, open(file, "r+b") as changed:
        changed.write(first.read().replace(b"main.", b"niam."))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    received, status, seen = look()
    assert received > 0 and seen != right[2]


@test
def a_damaged_trace_is_not_kept():
    cache = {"XDG_CACHE_HOME": os.path.join(WORK, "not-kept")}
    file = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[23], "rb") as whole, open(file, "wb") as cut:
        cut.write(whole.read()[:-5000])
    for _ in range(2):
        with Server("--cache", file, env=cache) as server:
            received, status, _ = looks(server)
            assert received > 0 and "error" in status, status


# MARK: Sources


def trace_naming(file):
    """why-1.26 with its frames in another file."""
    text = os.path.join(WORK, "naming.txt")
    with open(os.path.join(ROOT, "tests", "data", "why-1.26.txt")) as f:
        right = f.read()
    assert right.count('data="/src/main.go"') == 1
    with open(text, "w") as f:
        f.write(right.replace('data="/src/main.go"', f'data="{file}"'))
    path = os.path.join(WORK, "naming.trace")
    code, _, err = run("assemble", text, "-o", path)
    assert code == 0, err
    return path


def source(server, **query):
    status, _, body = server.ask("/api/source?" + urllib.parse.urlencode(query))
    return status, json.loads(body)


@test
def the_source_around_a_frame_is_shown_when_asked_for():
    folder = os.path.realpath(os.path.join(WORK, "sources"))
    os.makedirs(os.path.join(folder, "src"))
    path = os.path.join(folder, "src", "main.go")
    with open(path, "w") as f:
        f.write("".join(f"line {i}\r\n" if i == 8 else f"line {i}\n" for i in range(1, 101)) + "x" * 600)
    with Server(trace("why-1.26")) as server:
        equal(server.done()["can_source"], False)
        equal(source(server, file="/src/main.go", line=7)[0], 501)
    for given in (folder, os.path.join(folder, "src"), folder + "/src/."):
        with Server(f"--source={given}", trace("why-1.26")) as server:
            equal(server.done()["can_source"], True)
            right = {"file": "/src/main.go", "path": path, "line": 7, "first": 2, "lines": [f"line {i}" for i in range(2, 13)]}
            equal(source(server, file="/src/main.go", line=7), (200, right))
            right = {**right, "line": 1, "first": 1, "lines": ["line 1"]}
            equal(source(server, file="/src/main.go", line=1, around=0), (200, right))
            # The last line is truncated; no line follows it.
            equal(source(server, file="/src/main.go", line=101, around=1)[1]["lines"], ["line 100", "x" * 500])
            status, answer = source(server, file="/src/main.go", line=102)
            equal((status, answer["error"]), (404, "the file has only 101 lines: it is another version"))
            for query in ({}, {"file": ""}, {"file": "/src/main.go", "line": 0}, {"file": "/src/main.go", "around": 51}, {"file": "/src/main.go", "line": "x"}):
                equal(source(server, **query)[0], 400, query)


@test
def no_other_file_is_read():
    outside = os.path.join(WORK, "secret.go")
    folder = os.path.realpath(os.path.join(WORK, "hostile"))
    os.makedirs(os.path.join(folder, "src"))
    for name in (outside, os.path.join(folder, "src", "other.go"), os.path.join(folder, "src", "main.go")):
        with open(name, "w") as f:
            f.write("secret\n" * 200)
    with Server(f"--source={folder}", trace("why-1.26")) as server:
        server.done()
        equal(source(server, file="/src/main.go", line=7)[0], 200)
        # No frame names these files, whether they exist or not.
        for file in ("/etc/passwd", "/src/other.go", "other.go", "main.go", "/src/main.go/", "/src/./main.go", "/src//main.go", "/src/../src/main.go",
                     "/src/main.g", "/SRC/main.go", outside, os.path.join(folder, "src", "main.go"), "x" * 5000):
            status, answer = source(server, file=file, line=1)
            equal((status, "lines" in answer), (404, False), file)
    main = os.path.join(folder, "src", "main.go")
    for make in (
        lambda: os.symlink(outside, main),
        lambda: os.symlink("/etc/passwd", main),
        lambda: os.mkfifo(main),
        lambda: os.mkdir(main),
        lambda: os.truncate(os.open(main, os.O_CREAT | os.O_RDWR), (4 << 20) + 1),
    ):
        (os.rmdir if os.path.isdir(main) else os.unlink)(main)
        make()
        with Server(f"--source={folder}", trace("why-1.26")) as server:
            server.done()
            status, answer = source(server, file="/src/main.go", line=1)
            equal((status, "lines" in answer), (404, False))
    # Files named by frames are looked for only below the folder.
    for file in ("../secret.go", "/../../secret.go", "src/../../secret.go", outside, "/etc/passwd", "..", "/", "//", "src/..", "/proc/self/environ", "/dev/zero"):
        with Server(f"--source={folder}", trace_naming(file)) as server:
            server.done()
            status, answer = source(server, file=file, line=1)
            equal((status, "lines" in answer), (404, False), file)
    with Server("--source=/", trace_naming("/proc/self/environ")) as server:
        server.done()
        equal(source(server, file="/proc/self/environ", line=1)[0], 404)
    # Anywhere, if the user has allowed that.
    with Server("--source=/", trace_naming(outside)) as server:
        server.done()
        equal(source(server, file=outside, line=1, around=1)[1]["lines"], ["secret", "secret"])


# MARK: Two traces


@test
def two_traces_have_an_api_each_and_their_differences():
    with Server(trace("why-1.26"), trace("times-1.26")) as server:
        for prefix, name, goroutines in (("a", "why-1.26", 5), ("b", "times-1.26", 3)):
            status = {"done": False}
            while not status["done"]:
                status = json.loads(server.ask(f"/{prefix}/api/status")[2])
            equal((status["title"], status["goroutines"]), (trace(name), goroutines))
            for path in ("", "app.js", "app.css", "index.html"):
                equal(server.ask(f"/{prefix}/{path}")[2], server.ask(f"/{path or 'index.html'}")[2], path)
            code, out, _ = run("goroutines", "--json", trace(name))
            equal(json.loads(server.ask(f"/{prefix}/api/run?command=goroutines")[2]), json.loads(out))
        assert b"compare.js" in server.ask("/")[2]
        equal(server.get("lanes"), json.loads(server.ask("/a/api/lanes")[2]))
        for path in ("/c/api/status", "/b", "/bapi/status", "/a/b/api/status", "/b/../api", "/A/api/status"):
            equal(server.ask(path)[0], 404, path)
        code, out, _ = run("diff", "--json", "--limit=0", "--per=second", trace("why-1.26"), trace("times-1.26"))
        equal(code, 0)
        right = json.loads(out)["metrics"]
        assert right
        equal(server.get("run", command="diff", limit=0, per="second")["metrics"], right)
        equal(server.ask("/a/api/run?command=diff&limit=0&per=second")[0], 200)
        # The second trace has no other to be compared with.
        equal(server.ask("/b/api/run?command=diff")[0], 400)
        equal(server.ask("/api/run?command=diff&per=nonsense")[0], 400)


@test
def both_of_two_traces_are_guarded_alike():
    with Server(trace("why-1.26"), trace("times-1.26")) as server:
        local = f"127.0.0.1:{server.port}"
        for path in ("/", "/api/status", "/a/", "/b/", "/a/api/status", "/b/api/status", "/b/api/run?command=gc"):
            equal(server.ask(path, token=False)[0], 401, path)
            equal(server.ask(path, headers={"Host": "evil.example"})[0], 403, path)
            equal(server.ask(path, headers={"Host": local, "Origin": "http://evil.example"})[0], 403, path)
            equal(server.ask(path, method="POST")[0], 405, path)
        # Only a page of this server may embed them in a frame.
        policy = server.ask("/b/")[1]["Content-Security-Policy"]
        assert "frame-ancestors 'self'" in policy and "frame-src 'self'" in policy, policy


@test
def of_one_trace_there_is_no_other():
    with Server(trace("why-1.26")) as server:
        server.done()
        for path in ("/a/", "/b/", "/a/api/status", "/b/api/status"):
            equal(server.ask(path)[0], 404, path)
        assert b"compare.js" not in server.ask("/")[2]
        status, _, body = server.ask("/api/run?command=diff")
        equal((status, json.loads(body)["error"]), (400, "diff needs two traces: trail view A B"))


# MARK: Which requests are answered


@test
def the_first_url_gives_a_cookie_and_the_cookie_opens():
    with Server(trace("why-1.26")) as server:
        equal(server.ask("/", token=False)[0], 401)
        equal(server.ask("/api/status", token=False)[0], 401)
        equal(server.ask("/?token=" + "0" * 32, token=False)[0], 401)
        status, headers, _ = server.ask("/?token=" + server.token, token=False)
        equal((status, headers["Location"]), (303, "/"))
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie
        cookie = cookie.split(";")[0]
        equal(server.ask("/api/status", token=False, headers={"Cookie": cookie})[0], 200)
        status, headers, body = server.ask("/", token=False, headers={"Cookie": cookie})
        equal(status, 200)
        assert b"<html" in body.lower() and headers["Content-Type"].startswith("text/html")
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy.replace("wasm-unsafe-eval", ""), policy
        equal(headers["X-Content-Type-Options"], "nosniff")
        assert "Access-Control-Allow-Origin" not in headers


@test
def the_first_url_keeps_its_other_parameters():
    with Server(trace("why-1.26")) as server:
        first = "/?run=a%20b%0d%0aX&token=" + server.token + "&t=5&t=%2f%2Fhost"
        status, headers, _ = server.ask(first, token=False)
        equal((status, headers["Location"]), (303, "/?run=a%20b%0d%0aX&t=5&t=%2f%2Fhost"))
        assert "Set-Cookie" in headers and "X" not in headers, headers
        for size, good in ((4000, (303, True)), (4096, (414, False))):
            status, headers, _ = server.ask(f"/?token={server.token}&x={'y' * size}", token=False)
            equal((status, "Location" in headers), good)
        # Python's client would refuse to send it.
        with half(server, f"GET /?token={server.token}&x=\x7f HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") as s:
            answer = s.makefile("rb").read()
        assert answer.split()[1] == b"400" and b"Set-Cookie" not in answer, answer
        # Other paths are not redirected.
        for path in "//host/?token=", "/%2fhost/?token=", "%2f?token=", "/index.html?token=":
            equal(server.ask(path + server.token, token=False)[0], 401, path)
        equal(server.ask("http://host/?token=" + server.token, token=False)[0], 403)


@test
def every_digit_of_the_token_counts():
    with Server(trace("why-1.26")) as server:
        right, name = server.token, f"trail-{server.port}"
        equal(len(right), 32)
        wrong = [right[:i] + ("1" if right[i] == "0" else "0") + right[i + 1 :] for i in range(32)]
        wrong += [right[:-1], right + "0", right[1:], right[0] * 32, ""]
        shown = (
            lambda token: ("/api/status", {"Authorization": "Bearer " + token}),
            lambda token: ("/api/status", {"Cookie": f"{name}={token}"}),
            lambda token: ("/?token=" + urllib.parse.quote(token), {}),
        )
        for show, good in zip(shown, (200, 200, 303)):
            for token, status in ((right, good), *((token, 401) for token in wrong)):
                path, headers = show(token)
                equal(server.ask(path, headers=headers, token=False)[0], status, (path, headers))
        # A different scheme, another server's cookie, a page that is not the first.
        for path, headers in (
            ("/api/status", {"Authorization": "Basic " + right}),
            ("/api/status", {"Authorization": right}),
            ("/api/status", {"Cookie": f"trail-{server.port + 1}={right}"}),
            ("/api/status?token=" + right, {}),
        ):
            equal(server.ask(path, headers=headers, token=False)[0], 401, (path, headers))
    with Server(trace("why-1.26")) as server:
        assert server.token != right, right


@test
def other_hosts_origins_and_methods_are_refused():
    with Server(trace("why-1.26")) as server:
        local = f"127.0.0.1:{server.port}"
        for host, right in {
            "localhost": 200,
            "LOCALHOST:1234": 200,
            "[::1]:80": 200,
            "127.0.0.1": 200,
            "evil.example": 403,
            f"evil.example:{server.port}": 403,
            "localhost.evil.example": 403,
            "127.0.0.1.evil.example": 403,
            "127.0.0.1:80@evil.example": 403,
            "192.168.1.5": 403,
            "localhost:": 200,
            "localhost:80a": 403,
            "": 403,
        }.items():
            equal(server.ask("/api/status", headers={"Host": host})[0], right, host)
        for origin, right in {
            f"http://{local}": 200,
            "http://evil.example": 403,
            "null": 403,
            f"https://{local}": 403,
            f"http://{local}.evil.example": 403,
        }.items():
            equal(server.ask("/api/status", headers={"Host": local, "Origin": origin})[0], right, origin)
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"):
            equal(server.ask("/api/status", method=method)[0], 405, method)
        status, _, body = server.ask("/api/status", method="HEAD")
        equal((status, body), (200, b""))


BAD = (
    ["group?" + q for q in ("kind=x", "lanes=x", "width=0", "width=16385", "from=3&to=2", "creator=-2", "creator=x", "creator=99999999999999999999", "most=0", "most=4294967296")]
    + ["lanes?" + q for q in ("kind=x", "first=-1", "first=1e9", "count=0", "count=50001", "count=", "first=0x10")]
    + ["picture?" + q for q in ("", "lanes=1,", "lanes=,1", "lanes=-1", "lanes=1;2", "lanes=99999999999999999999")]
    + ["picture?lanes=0&" + q for q in ("from=5&to=5", "from=9&to=3", "from=-1", "to=-5", "width=0", "width=16385", "from=99999999999999999999", "to=9223372036854775807", "from=%201", "from=+1", "width=NaN")]
    + ["picture?lanes=" + ",".join(["0"] * 2049)]
    + ["span?" + q for q in ("", "lane=0", "lane=0&at=-1", "lane=-1&at=1", "lane=4294967296&at=1", "lane=0&span=-1")]
    + ["bars?kind=x", "bars?width=0", "bars?from=2&to=1", "marks?kind=range", "marks?from=-9", "metrics?width=-1"]
    + ["select?from=3&to=2", "spans?from=3&to=2", "spans?count=0", "spans?count=1001", "spans?lanes=x", "waits?count=0", "waits?count=50001", "waits?first=-1", "waits?kind=x", "like?state=x", "like", "find", "find?text=", "find?text=" + "x" * 201, "find?text=a&most=0"]
    + ["stack?stack=0", "stack", "mark", "mark?mark=-1", "mark?lane=0", "mark?at=0", "mark?kind=x&mark=0"]
)


@test
def perfetto_reads_its_export_and_no_other_site_does():
    site, path = "https://ui.perfetto.dev", os.path.join(WORK, "perfetto.trace")
    shutil.copy(EXAMPLES[23], path)
    export = run("export", "--to=perfetto", path)[1]
    damaged = os.path.join(WORK, "damaged.trace")
    with open(path, "rb") as whole, open(damaged, "wb") as part:
        part.write(whole.read()[:-1000])
    with Server("--perfetto", "--http=127.0.0.1:0", path) as server:
        page, _, query = server.url.partition("/#!/?url=")
        equal(page, site)
        # The page's own decoding of its address.
        url = urllib.parse.urlsplit(urllib.parse.unquote(query))
        server.port, asked = url.port, f"{url.path}?{url.query}"
        status, headers, body = server.ask(asked, headers={"Origin": site}, token=False)
        equal((status, headers["Access-Control-Allow-Origin"], body == export), (200, site, True))
        token = asked[-1]
        for path, headers in (
            (url.path, {"Origin": site}),
            (asked[:-1] + ("0" if token != "0" else "1"), {"Origin": site}),
            (asked, {"Origin": "https://ui.perfetto.dev.example"}),
            (asked, {"Origin": "http://ui.perfetto.dev"}),
            (asked, {"Origin": "null"}),
            (asked, {}),
            (asked, {"Origin": site, "Host": "example.org"}),
        ):
            status, answered, _ = server.ask(path, headers=headers, token=False)
            assert status in (401, 403) and answered["Access-Control-Allow-Origin"] is None, (path, headers, status)
        equal(server.ask("/other?" + url.query, headers={"Origin": site}, token=False)[0], 404)
    # Of a damaged trace the good part is served.
    server = Server("--perfetto", "--http=127.0.0.1:0", damaged)
    server.process.send_signal(signal.SIGINT)
    err = server.process.communicate(timeout=LONG)[1].decode()
    equal((server.process.returncode, "damaged.trace" in err), (1, True), err)
    equal(run("view", "--no-open", "--perfetto", "/dev/null")[0], 1)
    # The page itself does not admit that site.
    with Server(EXAMPLES[23]) as server:
        equal(server.ask("/api/status?token=" + server.token, headers={"Origin": site}, token=False)[0], 403)


@test
def wrong_parameters_are_told_with_what_is_right():
    with Server(trace("why-1.26")) as server:
        server.done()
        for path in BAD:
            status, headers, body = server.ask("/api/" + path)
            equal((status, headers["Content-Type"]), (400, "application/json"), path[:80])
            assert len(json.loads(body)["error"]) > 10
        for path in ("/api/", "/api/nonsense", "/api/status/", "/app.ts", "/../etc/passwd", "/%2e%2e/x", "//"):
            equal(server.ask(path)[0], 404, path)
        for path in ("span?lane=99&at=1", "span?lane=0&span=1000"):
            equal(server.ask("/api/" + path)[0], 404, path)
        # A window after the end is valid and empty.
        for from_ in (421, 422, 1000):
            equal(picture(server.get("picture", lanes="0", from_=from_)), {0: []})
        equal(picture(server.get("picture", lanes="0", from_=1000, to=2000)), {0: []})


@test
def very_long_requests_are_refused():
    with Server(trace("why-1.26")) as server:
        for path in ("/api/" + "x" * 200_000, "/api/find?text=" + "x" * 200_000):
            try:
                assert server.ask(path)[0] in (413, 414, 431), path[:40]
            except (ConnectionError, http.client.HTTPException):
                pass  # or not even accepted
        server.done()


def half(server, text):
    s = socket.create_connection(("127.0.0.1", server.port))
    s.sendall(text.encode())
    return s


@test
def slow_clients_and_half_requests_keep_nobody_waiting():
    with Server(EXAMPLES[23]) as server:
        server.done()
        head = f"GET /api/lanes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        idle = [half(server, text) for text in ["", "G", "GET /api/status", head] * 8]
        # A client that sends requests and does not read: more answers than fit into the kernel's buffers.
        deaf = half(server, (head + "\r\n") * 300)
        equal(server.get("status")["done"], True)
        equal(len(server.get("lanes")["rows"]), server.get("status")["goroutines"])
        for s in [*idle, deaf]:
            s.close()
        equal(server.get("status")["done"], True)


@test
def many_connections_at_once_are_answered():
    with Server(EXAMPLES[23]) as server:
        server.done()
        right = server.get("picture", lanes="0,1,2,3", width=500)
        barrier = threading.Barrier(48)

        def one(i):
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG)
            headers = {"Authorization": f"Bearer {server.token}"}
            # A connection without a valid token may be closed before all are open.
            connection.request("GET", "/api/status", headers=headers)
            assert json.loads(connection.getresponse().read())["done"]
            barrier.wait(LONG)
            for _ in range(3):
                connection.request("GET", "/api/picture?lanes=0,1,2,3&width=500", headers=headers)
                answer = connection.getresponse()
                assert answer.status == 200
                equal(answer.read(), right)
            connection.close()

        with concurrent.futures.ThreadPoolExecutor(48) as pool:
            list(pool.map(one, range(48)))


def is_shut(s):
    """Whether the other end has closed the connection; discards received data."""
    s.settimeout(0)
    try:
        while s.recv(65536):
            pass
        return True
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


def until_shut(s, send=b""):
    """Waits until the connection is closed, sending a byte again and again."""
    stop = time.monotonic() + LONG
    while not is_shut(s):
        assert time.monotonic() < stop, "is not shut"
        try:
            s.send(send) if send else None
        except (BlockingIOError, ConnectionError):
            pass
        time.sleep(0.05)


@test
def strangers_do_not_shut_the_owner_out():
    """More half-open connections than there are slots, which reconnect when they are closed; some
    send byte after byte. None comes between the owner's connection and its header, which may be
    late on a busy machine."""
    with Server(EXAMPLES[23]) as server:
        server.done()
        over, alone = threading.Event(), threading.Lock()
        texts = ["", "G", "GET /?token=", "GET / HTTP/1.1\r\nHost: localhost\r\nX: "]

        def come(own):
            with alone:
                return half(server, texts[own % 4])

        def attack(own):
            held = [come(own) for _ in range(50)]
            while not over.is_set():
                for i, s in enumerate(held):
                    if is_shut(s):
                        s.close()
                        held[i] = come(i)
                    elif own % 2:
                        try:
                            s.send(b"x")
                        except (BlockingIOError, ConnectionError):
                            pass
                over.wait(0.01)
            for s in held:
                s.close()

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            attackers = [pool.submit(attack, i) for i in range(12)]
            try:
                for _ in range(20):
                    status, _, body = server.ask("/api/status", alone=alone)
                    assert status == 200 and json.loads(body)["done"], (status, body)
                status, headers, _ = server.ask("/?token=" + server.token, token=False, alone=alone)
                assert status == 303 and "Set-Cookie" in headers, status
            finally:
                over.set()
            for attacker in attackers:
                attacker.result(LONG)
        equal(server.get("status")["done"], True)


@test
def who_shows_no_token_is_shut_and_who_did_stays():
    with Server(EXAMPLES[23]) as server:
        server.done()
        owner = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG)
        headers = {"Authorization": f"Bearer {server.token}"}
        owner.request("GET", "/api/status", headers=headers)
        equal(owner.getresponse().read()[:1], b"{")
        first = owner.sock
        refused = half(server, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # These begin after the owner's connection: when the last one times out, so has each of
        # them.
        slow, silent = half(server, "GET / HTTP/1.1\r\nX: "), half(server, "")
        until_shut(slow, b"x")
        until_shut(silent)
        until_shut(refused, b"\r")
        owner.request("GET", "/api/status", headers=headers)
        equal(owner.getresponse().status, 200)
        assert owner.sock is first, "the connection of the owner was shut"
        owner.close()


# MARK: Traces that arrive


def generations():
    """The trace of everything-1.26.txt, and the size of its first generation in bytes."""
    with open(os.path.join(ROOT, "tests", "data", "everything-1.26.txt")) as f:
        text = f.read()
    first = text.index("EndOfGeneration\n") + len("EndOfGeneration\n")
    with open(os.path.join(WORK, "first.txt"), "w") as f:
        f.write(text[:first])
    code, out, err = run("assemble", os.path.join(WORK, "first.txt"), "-o", "-")
    assert code == 0, err
    with open(trace("everything-1.26"), "rb") as f:
        data = f.read()
    assert data.startswith(out)
    return data, len(out)


@test
def a_trace_that_arrives_in_pieces_is_drawn_as_it_comes():
    data, first = generations()
    kept = os.path.join(WORK, "kept.trace")
    with Server("--save", kept, "-", stdin=subprocess.PIPE) as server:
        pipe = server.process.stdin
        status = server.get("status")
        equal((status["live"], status["done"], status["can_run"], status["title"]), (True, False, False, "stdin"))
        equal(server.ask("/api/lanes")[0], 503)
        equal(server.ask("/api/run?command=gc")[0], 501)
        equal(server.ask("/api/embed")[0], 501)
        for i in range(0, first, 7):
            pipe.write(data[i : min(i + 7, first)])
            pipe.flush()
        # The first generation can be drawn before the second begins.
        status = server.until(lambda s: s["events"] > 0)
        early = server.lanes()
        assert not status["done"] and early and sum(row["running"] for row in early) > 0
        pipe.write(data[first:])
        pipe.close()
        server.process.stdin = None
        status = server.until(lambda s: s["done"] and s["can_run"])
        equal(status["size_bytes"], len(data))
        # Earlier lanes keep their positions.
        equal([row["id"] for row in server.lanes()[: len(early)]], [row["id"] for row in early])
        code, out, _ = run("gc", "--json", trace("everything-1.26"))
        equal(server.get("run", command="gc"), json.loads(out))
    with open(kept, "rb") as f:
        equal(f.read(), data)


@test
def bytes_that_arrive_are_counted_before_their_generation_ends():
    with open(EXAMPLES[23], "rb") as file:
        data = file.read()
    part = len(data) * 2 // 3
    with Server("-", stdin=subprocess.PIPE) as server:
        server.process.stdin.write(data[:part])
        server.process.stdin.flush()
        status = server.until(lambda s: s["received_bytes"] == part)
        assert status["live"] and not status["done"] and status["read_bytes"] <= part, status
        server.process.stdin.write(data[part:])
        server.process.stdin.close()
        server.process.stdin = None
        status = server.until(lambda s: s["done"])
        equal((status["received_bytes"], status["read_bytes"], status["size_bytes"]), (len(data),) * 3)


@test
def an_old_trace_that_arrives_says_that_it_must_be_waited_for():
    with open(EXAMPLES[21], "rb") as f:
        data = f.read()
    with Server("-", stdin=subprocess.PIPE) as server:
        server.process.stdin.write(data[:5000])
        server.process.stdin.flush()
        status = server.until(lambda s: s["version"] == 21)
        equal((status["waits"], status["live"], status["done"]), (True, True, False))
        server.process.stdin.write(data[5000:])
        server.process.stdin.close()
        server.process.stdin = None
        status = server.done()
        equal(status["waits"], False)
        assert status["goroutines"] > 0


@test
def a_server_ends_while_it_waits_for_more():
    with Server("-", stdin=subprocess.PIPE) as server:
        server.get("status")
        keep, server.process.stdin = server.process.stdin, None
    keep.close()


@test
def a_damaged_trace_shows_its_good_part():
    data, first = generations()
    path = os.path.join(WORK, "damaged.trace")
    with open(path, "wb") as f:
        f.write(data[: first + 20])
    with Server(path) as server:
        status = server.done()
        assert status["goroutines"] > 0 and status["error"], status
        assert server.lanes()
    with open(path, "wb") as f:
        f.write(b"no trace at all\n" * 10)
    with Server(path) as server:
        status = server.done()
        assert "error" in status, status
        equal(server.ask("/api/lanes")[0], 503)


@test
def a_goroutine_keeps_its_lane_where_its_state_is_unknown():
    for name, file in EXAMPLES.items():
        with open(file, "rb") as f:
            data = f.read()
        at = len(data) // 20
        path = os.path.join(WORK, f"gaps-{name}.trace")
        with open(path, "wb") as f:
            f.write(data[:at] + b"\xff" * 30 + data[at + 30 :])
        with Server(path) as server:
            assert server.done()["error"], name
            ids = [lane["id"] for lane in server.lanes()]
            equal(len(ids), len(set(ids)), f"go1.{name}")


@test
def a_file_that_is_cut_or_goes_away_breaks_nothing():
    for name in (21, 23):
        path = os.path.join(WORK, f"goes-{name}.trace")
        shutil.copy(EXAMPLES[name], path)
        code, out, _ = run("gc", "--json", path)
        with Server(path) as server:
            before = server.done()
            os.unlink(path)
            # Its bytes are still available.
            equal(server.get("run", command="gc"), json.loads(out))
            with open(path, "wb") as f:
                f.write(b"somebody else's")
            equal(server.get("run", command="gc", limit=20), json.loads(out))
            equal(server.get("status")["events"], before["events"])
        shutil.copy(EXAMPLES[name], path)
        with Server(path) as server:
            before = server.done()
            os.truncate(path, 100)
            equal(server.ask("/api/run?command=gc")[0], 409)
            assert server.lanes() and server.get("status")["events"] == before["events"]


@test
def a_file_that_is_followed_is_read_as_it_grows():
    data, first = generations()
    path = os.path.join(WORK, "grows.trace")
    with open(path, "wb") as f:
        f.write(data[: first // 2])
        f.flush()
        with Server("--follow", path, stdin=subprocess.PIPE) as server:
            f.write(data[first // 2 : first])
            f.flush()
            status = server.until(lambda s: s["events"] > 0)
            equal((status["done"], status["live"], status["can_run"]), (False, True, False))
            f.write(data[first:])
            f.flush()
            server.process.stdin.close()
            server.process.stdin = None
            equal(server.until(lambda s: s["can_run"] and s["done"])["size_bytes"], len(data))


# MARK: Beginning and end


@test
def the_page_comes_from_a_folder_if_asked():
    folder = os.path.join(WORK, "assets")
    os.makedirs(folder)
    for name, text in {"index.html": "<html>mine", "app.js": "1;", "secret.txt": "x"}.items():
        with open(os.path.join(folder, name), "w") as f:
            f.write(text)
    with Server(trace("why-1.26"), env={"TRAIL_ASSETS": folder}) as server:
        equal(server.ask("/")[2], b"<html>mine")
        equal(server.ask("/app.js")[1]["Content-Type"], "text/javascript; charset=utf-8")
        for path in ("/app.css", "/secret.txt", "/index.htm", "/%2e%2e/" + os.path.basename(trace("why-1.26"))):
            equal(server.ask(path)[0], 404, path)


@test
def built_in_files_are_those_of_the_page():
    kinds = {
        "app.css": "text/css; charset=utf-8",
        "app.js": "text/javascript; charset=utf-8",
        "compare.css": "text/css; charset=utf-8",
        "compare.html": "text/html; charset=utf-8",
        "compare.js": "text/javascript; charset=utf-8",
        "index.html": "text/html; charset=utf-8",
        "trail.wasm": "application/wasm",
        "worker.js": "text/javascript; charset=utf-8",
    }
    folder = os.path.join(ROOT, "web", "dist")
    equal(sorted(os.listdir(folder)), sorted(kinds))
    with Server(trace("why-1.26")) as server:
        for name, kind in kinds.items():
            status, headers, body = server.ask("/" + name)
            equal((status, headers["Content-Type"]), (200, kind), name)
            with open(os.path.join(folder, name), "rb") as f:
                assert body == f.read(), name


@test
def built_in_files_are_compressed_for_who_takes_that():
    import gzip

    with Server(trace("why-1.26")) as server:
        plain = server.ask("/")[2]
        status, headers, body = server.ask("/", headers={"Accept-Encoding": "gzip"})
        equal((headers["Content-Encoding"], gzip.decompress(body)), ("gzip", plain))
        with open(os.path.join(ROOT, "web", "dist", "index.html"), "rb") as f:
            equal(plain, f.read())


@test
def it_ends_some_time_after_the_last_request():
    with Server("--idle=100ms", trace("why-1.26")) as server:
        server.get("status")
        equal(server.process.wait(timeout=LONG), 0)


@test
def the_command_line_is_checked():
    for args in ([], ["a", "b", "c"], ["a", "-"], ["-", "a"], ["--save=x", "a", "b"], ["--follow", "a", "b"], ["--http=x:y", "a"], ["--http=127.0.0.1:99999", "a"], ["--save=x", "a"], ["--follow", "-"], ["--idle=x", "a"]):
        code, out, err = run("view", "--no-open", *args)
        equal((code, out), (2, b""), args)
    code, _, err = run("view", "--no-open", os.path.join(WORK, "no such file"))
    equal(code, 3)
    assert "no such file" in err
    code, _, err = run("view", "--no-open", "--http=nowhere.example:0", trace("why-1.26"))
    equal(code, 3, err)
    with Server(trace("why-1.26")) as server:
        code, _, err = run("view", "--no-open", f"--http=:{server.port}", trace("why-1.26"))
        equal(code, 3)
        assert os.strerror(errno.EADDRINUSE) in err, err


@test
def what_the_server_needs_is_named_if_it_cannot_be_loaded():
    broken = os.path.join(WORK, "broken")
    os.makedirs(broken)
    open(os.path.join(broken, "libmicrohttpd.so.12"), "wb").close()
    p = subprocess.run(
        [TRAIL, "view", "--no-open", trace("why-1.26")],
        capture_output=True,
        text=True,
        timeout=LONG,
        env=os.environ | {"LD_LIBRARY_PATH": broken},
    )
    assert p.returncode == 3 and "apt install libmicrohttpd12" in p.stderr, (p.returncode, p.stderr)
    # Nothing else needs it.
    p = subprocess.run(
        [TRAIL, "info", trace("why-1.26")],
        stdout=subprocess.DEVNULL,
        timeout=LONG,
        env=os.environ | {"LD_LIBRARY_PATH": broken},
    )
    assert p.returncode == 0


@test
def the_token_is_not_in_the_arguments_of_a_browser():
    folder = os.path.join(WORK, "browser")
    os.makedirs(folder)
    # Opens the page while it exists: the end of the pipe shows that it has been read.
    with open(os.path.join(folder, "xdg-open"), "w") as file:
        file.write(f'#!/bin/sh\necho "$@" >{folder}/arguments\nstat -c %a "$1" >{folder}/mode\ncat "$1" >{folder}/opened\n')
        os.fchmod(file.fileno(), 0o755)
    os.mkfifo(os.path.join(folder, "opened"))
    env = os.environ | {"DISPLAY": ":9", "PATH": f"{folder}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": folder}
    with subprocess.Popen([TRAIL, "view", trace("why-1.26")], env=env, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        with open(os.path.join(folder, "opened")) as file:
            page = file.read()
        process.send_signal(signal.SIGINT)
    arguments, mode = (open(os.path.join(folder, name)).read().split() for name in ("arguments", "mode"))
    assert "token=" in url and f'url={url}"' in page, page
    assert "token" not in " ".join(arguments) and len(arguments) == 1 and mode == ["600"], (arguments, mode)
    assert not os.path.exists(arguments[0]), arguments


@test
def a_public_address_is_warned_of():
    server = Server("--http=0.0.0.0:0", trace("why-1.26"))
    with server:
        equal(server.done()["version"], 26)
        # It has many addresses; any name may have been made to point here.
        for host, right in {"192.168.1.5:8080": 200, "[fe80::1]:80": 200, "10.0.0.1": 200, "0.0.0.0": 200,
                            "evil.example": 403, "1.2.3.4.evil.example": 403, "[fe80::1].evil": 403, "1.2.3.4:x": 403}.items():
            equal(server.ask("/api/status", headers={"Host": host})[0], right, host)
        server.process.send_signal(signal.SIGTERM)
        _, err = server.process.communicate(timeout=LONG)
        assert b"anyone who can reach 0.0.0.0" in err, err
        server.process.communicate = lambda timeout: (b"", b"")


if __name__ == "__main__":
    sys.exit(main())
