#!/usr/bin/env python3
"""The examples that trace other runtimes: the recorded wakers, compared with what the programs do. TAP.

usage: adapters.py TRAIL SOURCE_ROOT NAME PROGRAM LIBTRAIL_RECORD -- COMPILER...

NAME is a folder of examples, or "coroutine-rules": the program of that name beside this script. The program runs, in the default format and in one that Go 1.19 reads. The traces must be
accepted, the tasks must have the names, creators and wakers that follow from the program's source, and Go's reader must see the
same wakers. Then the adapter is broken, in one place at a time, built with the compiler and the library, and the same checks
must fail.
"""

import collections
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_of, go_prints, go_tools
from tap import finish, report, skip

TRAIL, ROOT, NAME, PROGRAM, RECORDER = sys.argv[1:6]
COMPILER = sys.argv[7:]
ENV = {**os.environ, "TZ": "UTC", "LC_ALL": "C"}
HERE = pathlib.Path(__file__).resolve().parent
EXAMPLE = HERE if NAME == "coroutine-rules" else pathlib.Path(ROOT) / "examples" / NAME
ROUNDS = 3  # of questions and answers, ticks and rings, in all examples


class Wrong(Exception):
    """A difference between a trace and what it must contain."""


def require(ok, *what):
    if not ok:
        raise Wrong(" ".join(map(str, what)))


def run(*args):
    done = subprocess.run([str(arg) for arg in args], capture_output=True, text=True, env=ENV, timeout=120)
    return done.returncode, done.stdout, done.stderr


def good(*args):
    code, out, err = run(*args)
    require(code == 0, *args[:2], f"exit {code}:", out[-300:], err[-300:])
    return out


class Trace:
    """The goroutines of a trace by their names, which are those of their start functions.

    created   (name, name of the creator or None)
    logs      [(name of the goroutine that logged, category)]
    woken     [(name, name of the waker or None)], in order; a goroutine's first wake-up included
    events    {ID: [(type, thread)]}
    """

    def __init__(self, path):
        self.created, self.woken, self.ids, self.logs = [], [], [], []
        self.events = collections.defaultdict(list)
        self.names = {}
        for line in good(TRAIL, "print", "--format=jsonl", path).splitlines():
            event = json.loads(line)
            if event.get("resource") == "goroutine" and event["kind"] == "StateTransition":
                self.add(event)
            elif event["kind"] == "Log":
                self.logs.append((self.name(event), event["category"]))

    def name(self, event):
        return self.names[event["g"]] if "g" in event else None

    def add(self, event):
        id, type = event["id"], event["type"]
        self.events[id].append((type, event.get("m")))
        if event["from"] == "NotExist":
            stack = event.get("transition_stack")
            self.names[id] = stack[0]["func"] if stack else "?"
            self.created.append((self.names[id], self.name(event)))
        elif type in ("GoUnblock", "GoSwitch", "GoSwitchDestroy"):
            self.woken.append((self.names[id], self.name(event)))
            self.ids.append((event.get("g", 0), id))

    def wakers(self, name):
        return [waker for woken, waker in self.woken if woken == name]

    def chains(self, name):
        """For each wake-up: the waker, and the waker of the goroutine's previous wake-up."""
        last, chains = {}, []
        for woken, waker in self.woken:
            if woken == name:
                chains.append((waker, last.get(waker)))
            last[woken] = waker
        return chains

    def of(self, name):
        return [self.events[id] for id, n in self.names.items() if n == name]


def expect_created(trace, **creators):
    """Asserts exactly these goroutines; {name: (number, creator)}."""
    right = collections.Counter({(name, creator): count for name, (count, creator) in creators.items()})
    ours = collections.Counter(trace.created)
    require(ours == right, "created:", dict(ours), "not", dict(right))


def expect_all_end(trace):
    for id, events in trace.events.items():
        require(events[-1][0].startswith("GoDestroy"), trace.names[id], "does not end:", events[-3:])


def expect_wakers(trace, name, *right):
    require(trace.wakers(name) == list(right), name, "is woken by", trace.wakers(name), "not", right)


def expect_why(path, trace, name, *others):
    """The critical path of a goroutine passes through the others."""
    id = next(id for id, n in trace.names.items() if n == name)
    shown = good(TRAIL, "why", f"--goroutine={id}", path)
    for other in others:
        require(re.search(rf"\b{other}: running.*; wakes", shown), "trail why", name, "without", other, shown)


def expect_view(path, trace, name):
    """`trail view` draws the wake-ups of a goroutine with the same wakers."""
    args = [TRAIL, "view", "--no-open", str(path)]
    with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENV) as server:
        try:
            address = next(filter(None, (re.search(r"(http://\S+)/\?token=(\w+)", line) for line in server.stdout)))

            def api(question):
                header = {"Authorization": f"Bearer {address[2]}"}
                request = urllib.request.Request(f"{address[1]}/api/{question}", headers=header)
                return json.load(urllib.request.urlopen(request, timeout=60))

            while not api("status")["done"]:
                time.sleep(0.01)
            id = next(id for id, n in trace.names.items() if n == name)
            lane, spans = next((row[0], row[6]) for row in api("lanes?count=1000")["rows"] if row[1] == id)
            shown = [api(f"span?lane={lane}&span={i}") for i in range(1, spans)]  # 0: its creation
        finally:
            server.kill()
    drawn = [trace.names[span["waker"]["id"]] for span in shown if span["state"] == "runnable" and "waker" in span]
    right = [waker for waker in trace.wakers(name) if waker]
    require(drawn == right, "trail view draws", name, "as woken by", drawn, "not", right)


# What each program does


def boost_fiber(path):
    trace = Trace(path)
    main, second, third = ((1, name) for name in ("main", "second", "third"))
    expect_created(
        trace,
        **{name: (1, None) for name in ("main", "second", "third")},
        **{f"dispatcher of {name}": (1, None) for name in ("main", "second", "third")},
        **{name: main for name in ("give up", "ask", "one", "two", "busy", "hold", "contend", "nap")},
        **{"answer": second, "set one": second, "set two": third},
    )
    expect_all_end(trace)
    # Across threads: through the dispatcher, which the waker wakes. The end of the questions may wake once more.
    answered = trace.chains("answer")
    require(len(answered) in (ROUNDS, ROUNDS + 1), "answer is woken", len(answered), "times")
    require(set(answered) == {("dispatcher of second", "ask")}, "answer is woken by", answered)
    require(trace.chains("ask") == [("dispatcher of main", "answer")] * ROUNDS, "ask:", trace.chains("ask"))
    # By one of two threads, by a timer, by a fiber of the same thread.
    for name, waker in {"one": None, "two": None, "nap": None, "give up": None, "contend": "hold"}.items():
        expect_wakers(trace, name, waker)
    # Started by launch::dispatch, and after each of two yields.
    starts = [type for type, _ in trace.of("hold")[0]].count("GoStart")
    require(starts == 3, "hold starts", starts, "times")
    # The dispatcher of the second thread may have woken it before the question was waited for.
    expect_why(path, trace, "ask", "answer", "dispatcher of main")
    expect_view(path, trace, "ask")


def libuv(path):
    trace = Trace(path)
    expect_created(
        trace,
        uv_run=(1, None),
        ring_bell=(1, None),
        tick=(1, "uv_run"),
        ring=(1, "uv_run"),
        compute=(ROUNDS, "tick"),
    )
    expect_all_end(trace)
    expect_wakers(trace, "ring", *["ring_bell"] * ROUNDS, None)  # the last one is its close
    expect_wakers(trace, "tick", *[None] * ROUNDS, None)
    require(set(trace.wakers("uv_run")) == {None}, "the loop is woken by", trace.wakers("uv_run"))
    loop = trace.of("uv_run")[0][0][1]
    for events in trace.of("compute"):
        types, threads = zip(*events)
        require(types == ("GoCreate", "GoStart", "GoStop", "GoStart", "GoDestroy"), "compute:", types)
        pool = threads[1]
        require(threads == (loop, pool, pool, loop, loop) and pool != loop, "compute: on threads", threads)
    expect_why(path, trace, "ring", "ring_bell")
    expect_view(path, trace, "ring")


def coroutines(path):
    named = path.with_suffix(".named")
    good(TRAIL, "symbolize", path, "-o", named)
    trace = Trace(named)
    expect_created(trace, ask=(1, None), answer=(1, None), add=(ROUNDS, "ask"))
    expect_all_end(trace)
    expect_wakers(trace, "answer", *["ask"] * ROUNDS)
    expect_wakers(trace, "ask", *["answer", "add"] * ROUNDS)
    expect_wakers(trace, "add")
    expect_why(named, trace, "ask", "answer", "add")
    expect_view(named, trace, "ask")


def coroutine_rules(path):
    named = path.with_suffix(".named")
    good(TRAIL, "symbolize", path, "-o", named)
    trace = Trace(named)
    made = {name: (1, "opens") for name in ("refuses", "nests", "alone", "foreign", "annotated")}
    thread = "?"  # it annotates; its goroutine has no start function
    expect_created(
        trace, opens=(1, None), waits=(2, "opens"), child=(1, "nests"), **made, **{thread: (1, None)}
    )
    expect_all_end(trace)
    # Each of these has one waker, in this order: the one that resumed it, ended, destroyed it or called trail::woken.
    right = [("waits", "opens"), ("refuses", None), ("nests", "child"), ("waits", "opens")]
    right += [("foreign", None), ("annotated", thread), ("opens", None)]
    require(trace.woken == right, "woken:", trace.woken)
    # After acting on all others, the first coroutine runs again.
    says = (EXAMPLE / "coroutine_rules.cpp").read_text().count("    says(")
    require(sorted(trace.logs) == sorted([("opens", "runs")] * says + [(thread, "other")]), "logs:", trace.logs)


# Each: how it is broken, the file, the original text, and its replacement.
BROKEN = {
    "boost-fiber": [
        ("the thread of the waker does not report", "trail_fiber.hpp",
         "if (dispatcher_waits_ && waker != 0) {", "if (false) {"),
        ("the waker is guessed", "trail_fiber.hpp", "known = m_.g != nullptr && paired &&", "known = m_.g != nullptr ||"),
        ("a time limit counts as a wake-up", "trail_fiber.hpp", "TIMED_OUT = -2", "TIMED_OUT = -3"),
        ("an end is not noticed", "trail_fiber.hpp", "&& !ctx->worker_is_linked()", "&& ctx->terminated_is_linked()"),
        ("fibers that launch::dispatch starts are not noticed", "trail_fiber.hpp",
         "dispatched(active);", "create(active);"),
    ],
    "libuv": [
        ("what sends does not report", "trail_uv.c", "task->state == TRAIL_UV_WAITS && m", "false"),
        ("the loop wakes its handles", "trail_uv.c",
         "    trail_go_sched(m, TRAIL_NO_STACK);\n    pthread_mutex_lock(&state_lock);\n"
         "    if (task->state == TRAIL_UV_WAITS)\n        trail_go_unblock(m, &task->g, TRAIL_NO_STACK);\n",
         "    if (task->state == TRAIL_UV_WAITS)\n        trail_go_unblock(m, &task->g, TRAIL_NO_STACK);\n"
         "    trail_go_sched(m, TRAIL_NO_STACK);\n    pthread_mutex_lock(&state_lock);\n"),
        ("a callback does not end the poll", "trail_uv.c", "    poll_ends(traced);\n    trail_go", "    trail_go"),
        ("work is not ready after its thread", "trail_uv.c",
         "trail_go_sched(&thread->m, TRAIL_NO_STACK);\n    trail_proc_stop", "trail_proc_stop"),
    ],
    "coroutines": [
        ("the executor does not say what it receives", "coroutines.cpp", "trail::woken(h);", ""),
        ("the base class is passed over at the end", "coroutines.cpp", "ends(continues{})", "continues{}"),
        ("the end does not wake", "record.hpp", "        if (trail_enabled())\n", "        if (false)\n"),
        ("the wait is not reported", "record.hpp", "resume(self);\n        return inner", "return inner"),
    ],
    "coroutine-rules": [
        ("the outer coroutine does not go on", "record.hpp", "trail_go_start(&thread::current().m, outer);", ";"),
        ("nor after a transfer to nothing", "record.hpp",
         "if (outer && !registry::get().find(next.address()))", "if (false)"),
        ("nor around one that did not suspend", "record.hpp", "                thread::current().inherited = outer;\n", ";"),
        ("destroyed coroutines are forgotten", "record.hpp", "if (node_) {", "if (false) {"),
        ("the second waker counts, too", "record.hpp",
         "n->state.compare_exchange_strong(waits, READY)", "(n->state = waits = READY, true)"),
    ],
}

CHECKS = {"boost-fiber": boost_fiber, "libuv": libuv, "coroutines": coroutines, "coroutine-rules": coroutine_rules}
LINK = {
    "boost-fiber": ["-std=c++17", "boost_fiber.cpp", "-lboost_fiber", "-lboost_context"],
    "libuv": ["-std=gnu11", "libuv.c", "trail_uv.c", "-luv"],
    "coroutines": ["-std=c++20", "coroutines.cpp"],
    "coroutine-rules": ["-std=c++20", "coroutine_rules.cpp"],
}


def check(program, path, format=0):
    """Raises Wrong with what is wrong."""
    path.unlink(missing_ok=True)
    code, _, err = run(program, path, format)
    require(code == 0 and not err, f"exit {code}:", err)
    good(TRAIL, "check", path)
    CHECKS[NAME](path)


def outcome(program, path, format=0):
    try:
        check(program, path, format)
    except (Wrong, subprocess.TimeoutExpired) as e:
        return str(e)
    return ""


def go_sees_the_same(path):
    """Go's reader of format 19 prints the same wakers, by number."""
    go = go_of("1.19")
    if not go:
        skip("wakers in Go's reader", "no Go 1.19")
        return
    code, out, err = go_prints(go, "-d", str(path))
    pairs = re.findall(r"^\d+ GoUnblock p=-?\d+ g=(\d+) off=\d+ g=(\d+)", out, re.M)
    theirs, ours = [tuple(map(int, pair)) for pair in pairs], Trace(path).ids
    report(code == 0 and theirs and theirs == ours, "Go's reader sees the same wakers", err[:300], theirs, ours)


def build(folder, file, old, new):
    """Builds the example with a change. Returns the program."""
    sources = [path for word in LINK[NAME] if (path := EXAMPLE / word).exists()]
    sources += [*EXAMPLE.glob("trail_*.h*"), pathlib.Path(ROOT) / "include/trail/record.hpp"]
    include = folder / "include/trail"
    include.mkdir(parents=True)
    for source in sources:
        text = source.read_text()
        if source.name == file:
            assert text.count(old) == 1, f"{file} has {text.count(old)} times: {old}"
            text = text.replace(old, new)
        ((include if source.name == "record.hpp" else folder) / source.name).write_text(text)
    flags = ["-g", "-O0", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-rdynamic", "-pthread"]
    flags += [f"-I{include.parent}", f"-I{ROOT}/include", *os.environ.get("EXTRA_CFLAGS", "").split()]
    words = [folder / word if (folder / word).exists() else word for word in LINK[NAME]]
    program = folder / "program"
    good(*COMPILER, *flags, *words[:-2], *words[-2:], RECORDER, f"-Wl,-rpath,{pathlib.Path(RECORDER).parent}", "-o", program)
    return program


def main():
    with tempfile.TemporaryDirectory(prefix="trail-adapters-") as name:
        work = pathlib.Path(name)
        now, old = work / "now.trace", work / "old.trace"
        wrong = outcome(PROGRAM, now)
        report(not wrong, f"{NAME}: the trace says what the program does", wrong)
        go_tools(NAME, 23, now)
        code, _, err = run(PROGRAM, old, 19)
        report(code == 0 and not err and run(TRAIL, "check", old)[0] == 0, f"{NAME}: in the format of Go 1.19", err)
        go_tools(NAME, 19, old)
        go_sees_the_same(old)
        for i, (what, *change) in enumerate([("nothing is broken", "", "", ""), *BROKEN[NAME]]):
            program = build(work / str(i), *change)
            wrong = outcome(program, work / "broken.trace")
            report(bool(wrong) == (i > 0), f"{NAME}: {what}: {wrong[:150]!r}", "the checks pass")
    return finish()


if __name__ == "__main__":
    sys.exit(main())
