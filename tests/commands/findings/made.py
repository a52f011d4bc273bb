"""Traces made from lists of events and times; a tick is a nanosecond."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "lib"))
from command import answer, assembled, good  # noqa: E402
from tap import long, main as run, test  # noqa: E402

US, MS = 1000, 1000000
NOBODY = 18446744073709551615

LOCK = ("sync.(*Mutex).Lock", "main.deposit")
UNLOCK = ("sync.(*Mutex).Unlock", "main.pay")
GROUP = ("sync.(*WaitGroup).Wait", "main.deposit")
COND = ("sync.(*Cond).Wait", "main.next")
RELOCK = ("sync.(*Mutex).Lock", "sync.(*Cond).Wait", "main.next")
WORK_STACK = ("main.work", "main.worker")


class Trace:
    """Thread i has P i. Events are added in any order and written in order of time."""

    slots = None  # the number of Ps that the trace says, if another one
    call = None  # a function in which all stacks are at the same call
    late = False  # summaries cover the last part of the trace, in which nothing happens any more

    def __init__(self, procs, idle=()):
        self.procs, self.idle = procs, idle
        self.events, self.strings, self.stacks = [], {}, {}
        self.status = {}

    def string(self, text):
        return self.strings.setdefault(text, len(self.strings) + 1)

    def stack(self, frames):
        frames = tuple(frames)
        if frames not in self.stacks:
            for name in frames:
                self.string(name)
            self.stacks[frames] = len(self.stacks) + 1
        return self.stacks[frames]

    def at(self, time, thread, text, g=None):
        self.events.append((time, len(self.events), thread, text, g))

    def here(self, g, state, thread=None):
        """The goroutine exists when the trace begins: 1 ready, 2 running, 4 blocked."""
        self.at(1, thread or 0, f"GoStatus g={g} m={NOBODY if state != 2 else 100 + thread} gstatus={state}")

    def start(self, time, thread, g):
        self.at(time, thread, f"GoStart g={g} g_seq=%d", g)

    def wake(self, time, thread, g, stack=UNLOCK):
        self.at(time, thread, f"GoUnblock g={g} g_seq=%d stack={self.stack(stack)}", g)

    def block(self, time, thread, reason, stack):
        self.at(time, thread, f"GoBlock reason_string={self.string(reason)} stack={self.stack(stack)}")

    def create(self, time, thread, g, stack=WORK_STACK):
        s = self.stack(stack)
        self.at(time, thread, f"GoCreate new_g={g} new_stack={s} stack={s}")

    def log(self, time, thread, category, text, stack=None):
        number = self.stack(stack) if stack else 0
        self.at(time, thread, f"UserLog task=0 key_string={self.string(category)} value_string={self.string(text)} stack={number}")

    def stop(self, time, thread, end):
        kind = self.string("GC mark termination")
        self.at(time, thread, f"STWBegin kind_string={kind} stack=0")
        self.at(end, thread, "STWEnd")

    def text(self, end):
        for thread in range(self.procs):
            self.events.append((0, -1, thread, f"ProcStatus p={thread} pstatus={2 if thread in self.idle else 1}", None))
        self.at(2, 0, f"ProcsChange procs_value={self.slots or self.procs} stack=0")
        self.at(end, 0, "HeapAlloc heapalloc_value=4096")
        seqs, batches, last = {}, {}, {}
        for time, _, thread, text, g in sorted(self.events):
            if g is not None:
                seqs[g] = seqs.get(g, 0) + 1
                text %= seqs[g]
            batch, before = batches.setdefault(thread, []), last.get(thread, 0)
            if len(batch) % 4001 == 0:  # a batch has at most 64 KiB
                batch.append(f"EventBatch gen=1 m={100 + thread} time={1000 + before} size=auto")
            name, space, rest = text.partition(" ")
            batch.append(f"{name} dt={time - before}{space}{rest}")
            last[thread] = time
        out = ["Trace Go1.26", f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Sync",
               "Frequency freq=1000000000", "ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0"]
        for _, batch in sorted(batches.items()):
            out += batch
        out += [f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Stacks"]
        self.string("main.go"), self.string("")
        for frames, number in self.stacks.items():
            out.append(f"Stack id={number} nframes={len(frames)}")
            for i, name in enumerate(frames):
                file, line = ("", 0) if "sqlite" in name or re.search(r"^pthread|-\d+$", name) else ("main.go", 10 + i)
                named = (1 << 48) * bool(re.search(r"[a-z](-\d+)$", name))  # a name of a thread, not a function
                pc = 64 if name == self.call else named + 4096 * number + i
                out.append(f"\tpc={pc} func={self.strings[name]} file={self.strings[file]} line={line}")
        out += [f"EventBatch gen=1 m={NOBODY} time=1000 size=auto", "Strings"]
        for text, number in self.strings.items():
            out += [f"String id={number}", f'\tdata="{text}"']
        return "\n".join(out + ["EndOfGeneration", ""])

    made = []

    def path(self, end):
        Trace.made.append(assembled(f"made-{len(Trace.made)}", self.text(end)))
        return Trace.made[-1]

    def summary(self, end, *args):
        if Trace.late:
            args = (f"--from={end - end // 50}ns", f"--to={end}ns")
        return answer("summary", *args, self.path(end))

    def findings(self, end, *args):
        return {f["kind"]: f for f in self.summary(end, *args)["findings"]}


def the_traces_that_were_made_here_are_good():
    good("check", *Trace.made)


def main():
    """Runs the tests, then checks all their traces with one command: starting it takes most of the time."""
    test(long(the_traces_that_were_made_here_are_good))
    return run()
