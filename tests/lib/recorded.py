"""The threads in a trace of `trail record`, read by `trail print --format=jsonl` (docs/jsonl.md).

A thread is a goroutine that never leaves its M, whose number is the thread's ID in the kernel.
"""

import dataclasses
import json
import os
import re
import signal
import subprocess
from typing import Optional

from states import has_signal, status, text_of, until


def send(recorder, number):
    """Sends a signal to `trail record`, by its PID; returns when the signal has been handled, which happens between two
    steps."""

    def has(mask):
        assert status(recorder, "State")[:1] not in ("", "Z"), "the recorder has ended"
        return has_signal(recorder, mask, number)

    # While it waits for them, the kernel does not show them as blocked.
    until(lambda: has("SigBlk") or text_of(f"/proc/{recorder}/wchan").startswith("do_sigtimedwait"))
    os.kill(recorder, number)
    until(lambda: not has("ShdPnd"))


def step(recorder):
    """Returns when `trail record` has made a complete step since the call. Programs ignore the signal, which is passed
    on to them."""
    for _ in range(2):
        send(recorder, signal.SIGWINCH)


def is_whole(summary):
    """Whether no call, stack, thread or sample was lost, by the recorder's summary. On a busy machine the kernel may drop
    context switches and wake-ups, of other programs too; waits in calls are recorded without them."""
    lost = re.search(r"lost: (.*)", summary)
    losses = lost[1].split(", ") if lost else []
    return ("nothing lost" in summary or bool(lost)) and all(re.search(r"^\d+ (context switch|wake-up)", what) for what in losses)


@dataclasses.dataclass
class Wait:
    tid: int
    begin: int
    reason: str
    functions: list  # innermost first
    object: str = ""  # "mutex 0x1234"
    ready: Optional[int] = None  # when it became ready
    end: Optional[int] = None  # when it ran again
    waker: int = 0  # 0: none, it continued by itself
    waker_functions: list = dataclasses.field(default_factory=list)
    ready_functions: list = dataclasses.field(default_factory=list)  # of the waker, or of itself

    @property
    def of_kernel(self):
        """Whether the wait is not in a call of the program: a page of a library that is not in memory yet, for example.
        Any thread may have such waits."""
        return self.object == "kernel, call not seen" or self.object.startswith("page fault")


@dataclasses.dataclass
class Thread:
    tid: int
    goroutine: int
    created_as: str = ""  # its start function
    creator: Optional[int] = None
    begin: Optional[int] = None
    end: Optional[int] = None
    waits: list = dataclasses.field(default_factory=list)


def functions(event, key="stack"):
    return [frame["func"] for frame in event.get(key, [])]


class Trace:
    def __init__(self, trail, path, env=None):
        text = subprocess.run(
            [trail, "print", "--format=jsonl", path], capture_output=True, env=env, timeout=240
        )
        self.error = text.stderr.decode("utf-8", "replace")
        self.exit = text.returncode
        self.threads = []  # in order of their creation
        self.types = {}
        self.procs = set()
        self.events = []  # as they are printed
        self._by_g = {}
        self._logs = {}
        for line in text.stdout.decode("utf-8", "replace").splitlines():
            self.events.append(json.loads(line))
            self._take(self.events[-1])
        for thread in self.threads:
            for wait in thread.waits:
                wait.tid = thread.tid
        self.waits = sorted((w for t in self.threads for w in t.waits), key=lambda w: w.begin)

    def of(self, tid):
        return next((t for t in self.threads if t.tid == tid), None)

    def named(self, function):
        return [t for t in self.threads if t.created_as == function]

    def in_function(self, function):
        return [w for w in self.waits if function in w.functions]

    def _thread(self, g):
        if g not in self._by_g:
            self._by_g[g] = Thread(0, g)
            self.threads.append(self._by_g[g])
        return self._by_g[g]

    def _take(self, event):
        self.types[event.get("type")] = self.types.get(event.get("type"), 0) + 1
        if event.get("type") == "UserLog" and event["category"] == "wait":
            self._logs[event["m"]] = event["message"]
        if event.get("resource") == "proc":
            self.procs.add(event["id"])
        if event.get("resource") == "goroutine" and event["kind"] == "StateTransition":
            take = getattr(self, "_" + event["type"], None)
            if take:
                take(event, self._thread(event["id"]))

    def _GoCreate(self, event, thread):
        thread.created_as = (functions(event, "transition_stack") or [""])[0]
        thread.creator = event.get("m") if "g" in event else None

    def _GoStart(self, event, thread):
        thread.tid = event["m"]
        if thread.begin is None:
            thread.begin = event["time_ns"]
        if thread.waits and thread.waits[-1].end is None:
            thread.waits[-1].end = event["time_ns"]

    def _GoBlock(self, event, thread):
        thread.tid = event["m"]
        wait = Wait(0, event["time_ns"], event.get("reason", ""), functions(event))
        wait.object = self._logs.pop(event["m"], "")
        thread.waits.append(wait)

    def _GoSyscallBegin(self, event, thread):
        self._GoBlock({**event, "reason": "syscall"}, thread)

    def _GoUnblock(self, event, thread):
        wait = thread.waits[-1] if thread.waits else None
        if wait and wait.ready is None:
            wait.ready = event["time_ns"]
            wait.ready_functions = functions(event)
            # No goroutine runs there if the waker was a signal handler in a thread that waits itself.
            if event["m"] != thread.tid:
                wait.waker = event["m"]
                wait.waker_functions = functions(event)

    def _GoDestroy(self, event, thread):
        thread.end = event["time_ns"]
