"""Traces of Go 1.22 and later from simulated programs: threads, Ps and goroutines in random order.

A trace has several generations, each thread's events in batches of different sizes, and all ways in which goroutines
and Ps change hands. What happened is known from the simulation.
"""

import random as randoms

NOBODY = 2**64 - 1
TICK_NS = 64
HEADER = 16
BEGIN = 2**34  # ticks, as of a machine that has run for a while
RUNNABLE, RUNNING, SYSCALL, WAITING = 1, 2, 3, 4
P_RUNNING, P_IDLE, P_SYSCALL = 1, 2, 3
SUMS = {RUNNABLE: "runnable", RUNNING: "running", SYSCALL: "syscall", WAITING: "waiting"}

# Types of records: see src/wire/v2.def.
BATCH, STRINGS, STRING, FREQUENCY = 1, 4, 5, 8
PROC_START, PROC_STOP, PROC_STEAL, PROC_STATUS = 10, 11, 12, 13
GO_CREATE, GO_START, GO_DESTROY, GO_STOP, GO_BLOCK, GO_UNBLOCK = 14, 16, 17, 19, 20, 21
SYSCALL_BEGIN, SYSCALL_END, SYSCALL_END_BLOCKED, GO_STATUS, HEAP = 22, 23, 24, 25, 37
SYNC, CLOCK, END = 50, 51, 52
NO_TRANSITIONS = (PROC_START, PROC_STOP, PROC_STEAL, PROC_STATUS, HEAP)  # of goroutines


def number(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Event:
    """A record: it ends at `end` in the trace, its batch begins at `start`, and it changes the state of `g`."""

    def __init__(self, type, m, ticks, g, start, end):
        self.type, self.m, self.time_ns, self.g, self.start, self.end = type, m, ticks * TICK_NS, g, start, end


class Thread:
    def __init__(self, id):
        self.id, self.p, self.g, self.events = id, None, None, []


class Simulation:
    def __init__(self, version, seed, steps, generations, threads=4, begin=BEGIN, hz=10**9 // TICK_NS, numbers=None):
        """`numbers`: of the generations, if they do not count from 1."""
        self.random = randoms.Random(seed)
        self.version, self.now, self.hz = version, begin, hz
        self.numbers = numbers or range(1, generations + 1)
        self.threads = [Thread(100 + i) for i in range(threads)]
        self.p_status = {i: P_IDLE for i in range(threads - 1)}
        self.state, self.since, self.seq = {}, {}, {}
        self.sums = {}  # for each goroutine: {state: ns}
        self.next_g, self.generation = 2, 0
        self.trace = bytearray(f"go 1.{version} trace".encode().ljust(HEADER, b"\0"))
        self.events = []
        self.enter(1, WAITING)
        for n in self.numbers:
            self.run(n, steps // generations)
        for g in list(self.state):
            self.leave(g)

    # States of goroutines and their sums

    def leave(self, g):
        state = self.state.pop(g)
        sums = self.sums.setdefault(g, dict.fromkeys(SUMS.values(), 0))
        sums[SUMS[state]] += (self.now - self.since.pop(g)) * TICK_NS

    def enter(self, g, state):
        if g in self.state:
            self.leave(g)
        self.state[g], self.since[g] = state, self.now

    def put(self, thread, type, *numbers):
        self.now += self.random.choice([1, 3, 10, 40])
        named = type in (GO_CREATE, GO_START, GO_UNBLOCK, GO_STATUS)
        thread.events.append((self.now, type, numbers, numbers[0] if named else thread.g))

    def next(self, key):
        self.seq[key] = self.seq.get(key, 0) + 1
        return self.seq[key]

    def any_in(self, state):
        found = [g for g, s in self.state.items() if s == state]
        return self.random.choice(found) if found else None

    # What a thread does next

    def step(self, thread):
        if thread.g is not None and self.state[thread.g] == SYSCALL:
            self.in_syscall(thread)
        elif thread.p is None:
            self.without_p(thread)
        elif thread.g is None:
            self.without_g(thread)
        else:
            self.with_g(thread)

    def without_p(self, thread):
        idle = [p for p, s in self.p_status.items() if s == P_IDLE]
        if idle:
            p = self.random.choice(idle)
            self.put(thread, PROC_START, p, self.next(("p", p)))
            self.p_status[p], thread.p = P_RUNNING, p

    def without_g(self, thread):
        g = self.any_in(RUNNABLE)
        if g is not None and self.random.random() < 0.9:
            self.put(thread, GO_START, g, self.next(("g", g)))
            self.enter(g, RUNNING)
            thread.g = g
        elif self.random.random() < 0.2 and any(t.p is not None for t in self.threads if t is not thread):
            self.put(thread, PROC_STOP)
            self.p_status[thread.p], thread.p = P_IDLE, None
        else:
            self.steal_or_wake(thread)

    def steal_or_wake(self, thread):
        victims = [t for t in self.threads if t.p is not None and self.p_status[t.p] == P_SYSCALL]
        waiting = self.any_in(WAITING)
        if victims and self.random.random() < 0.5:
            victim = self.random.choice(victims)
            self.put(thread, PROC_STEAL, victim.p, self.next(("p", victim.p)), victim.id)
            self.p_status[victim.p], victim.p = P_IDLE, None
        elif waiting is not None:
            self.put(thread, GO_UNBLOCK, waiting, self.next(("g", waiting)), 0)
            self.enter(waiting, RUNNABLE)

    def with_g(self, thread):
        g, kind = thread.g, self.random.random()
        if kind < 0.15:
            self.put(thread, GO_BLOCK, 1, 0)
            self.enter(g, WAITING)
            thread.g = None
        elif kind < 0.25:
            self.put(thread, GO_STOP, 2, 0)
            self.enter(g, RUNNABLE)
            thread.g = None
        elif kind < 0.35:
            self.steal_or_wake(thread)
        elif kind < 0.42 and len(self.state) < 200:
            new, self.next_g = self.next_g, self.next_g + 1
            self.put(thread, GO_CREATE, new, 0, 0)
            self.seq[("g", new)] = 0
            self.enter(new, RUNNABLE)
        elif kind < 0.45 and len(self.state) > 8:
            self.put(thread, GO_DESTROY)
            self.leave(g)
            thread.g = None
        elif kind < 0.7:
            self.put(thread, SYSCALL_BEGIN, self.next(("p", thread.p)), 0)
            self.enter(g, SYSCALL)
            self.p_status[thread.p] = P_SYSCALL
        else:
            self.put(thread, HEAP, self.random.randrange(1 << 24))

    def in_syscall(self, thread):
        if thread.p is not None:
            self.put(thread, SYSCALL_END)
            self.enter(thread.g, RUNNING)
            self.p_status[thread.p] = P_RUNNING
        else:
            self.put(thread, SYSCALL_END_BLOCKED)
            self.enter(thread.g, RUNNABLE)
            thread.g = None

    # Generations

    def run(self, generation, steps):
        self.generation, self.seq = generation, {}
        start = self.now
        self.announce()
        for _ in range(steps):
            self.step(self.random.choice(self.threads))
        self.write(start)

    def announce(self):
        held = set()
        for t in self.threads:
            if t.p is not None:
                self.put(t, PROC_STATUS, t.p, self.p_status[t.p])
                held.add(("p", t.p))
            if t.g is not None:
                self.put(t, GO_STATUS, t.g, t.id, self.state[t.g])
                held.add(("g", t.g))
        for p, status in self.p_status.items():
            if ("p", p) not in held:
                self.put(self.threads[0], PROC_STATUS, p, status)
        for g, state in self.state.items():
            if ("g", g) not in held:
                self.put(self.threads[0], GO_STATUS, g, NOBODY, state)

    def batches(self):
        """The batches of each thread, in the order in which they are full."""
        for t in self.threads:
            at = 0
            while at < len(t.events):
                size = self.random.choice([20, 200, 2000])
                chunk = t.events[at : at + size]
                at += size
                yield chunk[-1][0], t.id, chunk
            t.events = []

    def batch(self, m, time, data):
        start = len(self.trace)
        self.trace += bytes([BATCH]) + b"".join(map(number, (self.generation, m, time, len(data))))
        body = len(self.trace)
        self.trace += data
        return start, body

    def write(self, start):
        clock = bytes([FREQUENCY]) + number(self.hz)
        if self.version >= 25:
            clock = bytes([SYNC]) + clock + bytes([CLOCK, 0]) + number(start * TICK_NS) + number(10**9) + number(0)
        self.batch(NOBODY, start, clock)
        for _, m, chunk in sorted(self.batches(), key=lambda b: b[0]):
            last, data, ends = chunk[0][0], bytearray(), []
            for ticks, type, numbers, _ in chunk:
                data += bytes([type]) + b"".join(map(number, (ticks - last, *numbers)))
                last = ticks
                ends.append(len(data))
            at, body = self.batch(m, chunk[0][0], bytes(data))
            for (ticks, type, _, g), end in zip(chunk, ends):
                self.events.append(Event(type, m, ticks, g, at, body + end))
        texts = b"".join(bytes([STRING, i]) + number(len(s)) + s for i, s in ((1, b"chan receive"), (2, b"preempted")))
        self.batch(NOBODY, start, bytes([STRINGS]) + texts)
        if self.version >= 26:
            self.trace.append(END)
