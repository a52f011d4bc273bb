#!/usr/bin/env python3
"""Every trace has each goroutine's start function, name and kind, however late it begins. TAP.

usage: identity.py TRAIL SOURCE_ROOT IDENTITY_HOST

The host (identity_host.c) prints what its goroutines are. Each trace must contain, as read

  by trail                       in all formats: name, else start function, and the kind in parentheses
  by Go's rule (section 9.1)     in 1.23 and 1.26, from the bytes: the root of the first stack of a transition
  by Go itself                   its analysis of goroutines (go_names.go, go_names_v2.go): up to 1.21 names at GoStart;
                                 1.22 and 1.23, and newer releases in formats before 1.23, by the first stack of a
                                 creation or transition; newer releases in 1.23 and 1.26 also by that of a status
  in the bytes                   in v1: the stack of each GoCreate; in 1.22: no stack in a status, and no string that
                                 readers refuse

The parser of the bytes is written after sections 5.1, 5.3 (v2) and 1.1 to 1.4 (v1), and shares nothing with trail.
"""

import collections
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import GO_READERS, go_of
from tap import finish, report, skip
from varint import varint

TRAIL, ROOT, HOST = (os.path.abspath(a) for a in sys.argv[1:4])
HERE = os.path.dirname(os.path.abspath(__file__))
V1, V2 = [7, 11, 19, 21], [22, 23, 26]
MANY = 3000
# Values of trail_unwinder; libunwind means backtrace where it is not installed.
UNWINDERS = {"frame pointers": "1", "tables": "2", "libunwind": "3"}


# The bytes


def varints(data, at, n):
    values = []
    for _ in range(n):
        value, at = varint(data, at)
        values.append(value)
    return values, at


# Types of v2 -> numbers after the time (section 5.3).
V2_ARGS = {
    9: 2, 10: 2, 11: 0, 12: 3, 13: 2, 14: 3, 15: 1, 16: 2, 17: 0, 18: 0, 19: 2, 20: 2, 21: 3, 22: 2, 23: 0,
    24: 0, 25: 3, 28: 1, 38: 1, 39: 1, 44: 5, 45: 2, 46: 2, 47: 3, 48: 4,
}  # fmt: skip
GO_CREATE, GO_START, GO_STOP, GO_BLOCK, GO_UNBLOCK, GO_STATUS = 14, 16, 19, 20, 21, 25
GO_CREATE_BLOCKED, GO_STATUS_STACK = 47, 48
NOBODY = 2**64 - 1


class Generation:
    def __init__(self):
        self.strings, self.stacks, self.referred, self.events = {}, {}, set(), []

    def functions(self, stack):
        return [self.strings[function] for function in self.stacks[stack]]


def v2_structure(generation, data, at):
    """Strings (4), stacks (2); a frequency (8), also in a Sync (50), has no strings or stacks."""
    section, at = data[at], at + 1
    while section in (2, 4) and at < len(data):
        (id, n), at = varints(data, at + 1, 2)
        if section == 4:
            assert n <= 1024 and id not in generation.strings, "a string that readers refuse"
            generation.strings[id] = data[at : at + n].decode()
            at += n
        else:
            frames, at = varints(data, at, 4 * n)
            assert n <= 128 and id not in generation.stacks, "a stack that readers refuse"
            generation.stacks[id] = frames[1::4]
            generation.referred |= {*frames[1::4], *frames[2::4]}


def read_v2(data):
    """The generations, each with its events (time, thread, type, arguments) in order of time."""
    generations, at = collections.defaultdict(Generation), 16
    while at < len(data):
        if data[at] == 52:  # end of generation
            at += 1
            continue
        assert data[at] == 1, f"byte {data[at]} at {at}"
        (number, thread, time, size), at = varints(data, at + 1, 4)
        batch, at = data[at : at + size], at + size
        generation = generations[number]
        if batch[0] in (2, 4, 6, 8, 50):
            v2_structure(generation, batch, 0)
            continue
        here = 0
        while here < len(batch):
            (dt, *args), after = varints(batch, here + 1, 1 + V2_ARGS[batch[here]])
            time += dt
            generation.events.append((time, thread, batch[here], args))
            here = after
    for generation in generations.values():
        generation.strings[0] = ""
        generation.stacks[0] = []
        # A status precedes all other events of its goroutine, also at equal times.
        generation.events.sort(key=lambda e: (e[0], e[2] not in (GO_STATUS, GO_STATUS_STACK)))
        for _, _, type, args in generation.events:
            if type in (GO_STOP, GO_BLOCK):
                generation.referred.add(args[0])
            elif type == 44:
                generation.referred |= {args[2], args[3]}
    return [generations[n] for n in sorted(generations)]


def names_by_gos_rule(generations):
    """Goroutine -> the root of the stack of its first transition that has one (section 9.1)."""
    names, running = {}, {}
    for generation in generations:
        for _, thread, type, args in generation.events:
            if type in (GO_STATUS, GO_STATUS_STACK):
                g, stack = args[0], args[3] if type == GO_STATUS_STACK else 0
                if args[2] == 2:
                    running[args[1]] = g
            elif type in (GO_CREATE, GO_CREATE_BLOCKED):
                g, stack = args[0], args[1]
            elif type == GO_START:
                g, stack, running[thread] = args[0], 0, args[0]
            elif type in (GO_STOP, GO_BLOCK):
                g, stack = running[thread], args[1]
            elif type == GO_UNBLOCK:
                g, stack = args[0], 0
            else:
                continue
            if not names.get(g):
                names[g] = generation.functions(stack)[-1] if stack else ""
    return names


def read_v1(data):
    """(type, arguments) of the records in the order of the file, strings, and stacks as names of functions."""
    events, strings, stacks, at = [], {0: ""}, {0: []}, 16
    while at < len(data):
        type, code, at = data[at] & 63, data[at] >> 6, at + 1
        if type == 37:
            (id, size), at = varints(data, at, 2)
            assert id not in strings and size > 0, "a string that readers refuse"
            strings[id], at = data[at : at + size].decode(), at + size
            continue
        if code == 3:
            size, at = varint(data, at)
            args, end = [], at + size
            while at < end:
                value, at = varint(data, at)
                args.append(value)
            if type == 48:
                size, at = varint(data, at)
                at += size
        else:
            args, at = varints(data, at, code + 1)
        if type == 3:
            stacks[args[0]] = args[3::4]
        else:
            events.append((type, args[1:]))
    return events, strings, {id: [strings[f] for f in stack] for id, stack in stacks.items()}


# The host


def run(*args, **more):
    p = subprocess.run(args, capture_output=True, timeout=240, env={**os.environ, "LC_ALL": "C", **more})
    return p.returncode, p.stdout.decode(), p.stderr.decode()


Goroutine = collections.namedtuple("Goroutine", "start name kind")


def record(folder, format, scenario, n, **env):
    path = os.path.join(folder, f"{scenario}-{format}-{n}.trace")
    code, out, err = run(HOST, str(format), scenario, str(n), path, **env)
    report(code == 0 and not err, f"1.{format} {scenario} {n}: recorded", f"exit {code}", err)
    rows = [line.split("\t") for line in out.splitlines()]
    return path, {int(id): Goroutine(*rest) for id, *rest in rows}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def differences(found, expected):
    return [
        f"goroutine {id}: {found.get(id)!r}, expected {name!r}"
        for id, name in expected.items()
        if found.get(id) != name
    ][:5]


# By trail


def shown(g):
    """What trail must show, according to read.h and names.h."""
    name = g.name or g.start
    return f"{name} ({g.kind})" if g.kind else name


def check_trail(what, path, expected):
    code, out, err = run(TRAIL, "check", path)
    report(code == 0, f"{what}: trail check accepts it", out, err)
    code, out, err = run(TRAIL, "goroutines", "--json", path)
    found = {g["id"]: g["name"] for g in json.loads(out)["goroutines"]} if code == 0 else {}
    wrong = differences(found, {id: shown(g) for id, g in expected.items()})
    report(not wrong, f"{what}: trail names every goroutine", *wrong, err)


# By Go


def build_go_names(folder, release):
    """The program, built as a part of Go's own tree, because only that may import its parser; None without that
    release."""
    go = go_of(release)
    if not go:
        return None
    env = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "GOCACHE": os.path.join(folder, "go-cache")}
    root = subprocess.run([go, "env", "GOROOT"], capture_output=True, text=True, env=env).stdout.strip()
    tree = os.path.join(os.path.realpath(os.path.join(root, "src")), "cmd")
    here = os.path.join(folder, f"go-{release}")
    os.makedirs(here)
    source, overlay, program = (os.path.join(here, name) for name in ("names.go", "overlay", "names"))
    shutil.copy(os.path.join(HERE, "go_names.go" if release in ("1.19", "1.21") else "go_names_v2.go"), source)
    with open(overlay, "w") as f:
        json.dump({"Replace": {os.path.join(tree, "trail_names", "main.go"): source}}, f)
    args = ["build", "-overlay", overlay, "-o", program, "cmd/trail_names"]
    p = subprocess.run([go, *args], cwd=tree, capture_output=True, env=env)
    report(p.returncode == 0, f"Go {release}: its parser is built", p.stderr.decode())
    return program if p.returncode == 0 else None


def started(path):
    return {args[0] for type, args in read_v1(read(path))[0] if type in (14, 38)}


def named_by_go(release, format, path, expected):
    """The goroutines that Go's rules name. Those without a name from the host existed before the trace."""
    if release in ("1.19", "1.21"):
        return started(path)
    if release not in ("1.22", "1.23") and format >= 23:
        return {id for id, g in expected.items() if g.start}
    return {id for id, g in expected.items() if g.start and g.name} if "rename" in path else {}


def check_go(what, go_names, format, path, expected):
    for release, program in go_names.items():
        if format not in GO_READERS[release][0]:
            continue
        if not program:
            skip(f"{what}: Go {release} names what it can", f"no Go {release}")
            continue
        code, out, err = run(program, path)
        names = {int(id): name for id, name in (line.split("\t") for line in out.splitlines())}
        ids = named_by_go(release, format, path, expected)
        wrong = differences(names, {id: expected[id].start or "(unknown)" for id in ids})
        report(code == 0 and not wrong, f"{what}: Go {release} names the {len(ids)} that it can", *wrong, err)


# In the bytes


def check_v1_bytes(what, path, expected):
    events, strings, stacks = read_v1(read(path))
    created = {args[0]: stacks[args[1]] for type, args in events if type == 13}
    wrong = differences(created, {id: [g.start] for id, g in expected.items()})
    report(not wrong, f"{what}: each GoCreate has the start function", *wrong)
    lines = [text for text in strings.values() if text.startswith("trail.goroutine\t")]
    named = [g for g in expected.values() if g.name or g.kind]
    report(len(lines) == len(named), f"{what}: a line for each that has a name or kind", len(lines), len(named))


def check_122_bytes(what, path, expected):
    for generation in read_v2(read(path)):
        types = {type for _, _, type, _ in generation.events}
        report(not types & {45, 46, 47, 48}, f"{what}: only types of 1.22", types)
        lines = {id for id, text in generation.strings.items() if text.startswith("trail.goroutine\t")}
        statuses = {args[0] for _, _, type, args in generation.events if type == GO_STATUS}
        wrong = {*expected} - statuses
        report(not wrong, f"{what}: every goroutine has its status", *sorted(wrong)[:5])
        report(
            len(lines) == len(expected) and not lines & generation.referred,
            f"{what}: no event refers to the lines, one for each goroutine",
            len(lines),
            len(expected),
        )


def check_gos_rule(what, path, expected):
    """Also of each generation alone, as in a snapshot that begins with it."""
    generations = read_v2(read(path))
    for i in range(len(generations)):
        wrong = differences(names_by_gos_rule(generations[i:]), {id: g.start for id, g in expected.items()})
        report(not wrong, f"{what}: Go's rule names every goroutine from generation {i + 1} on", *wrong)


def check_run(folder, go_names, format, scenario, n):
    what = f"1.{format} {scenario} {n}"
    path, expected = record(folder, format, scenario, n)
    if not expected:
        return
    check_trail(what, path, expected)
    if format in V1:
        check_v1_bytes(what, path, expected)
    elif format == 22:
        check_122_bytes(what, path, expected)
    else:
        check_gos_rule(what, path, expected)
    check_go(what, go_names, format, path, expected)


def check_converted(folder, format):
    """Another version has the same, in its own form."""
    path, expected = record(folder, format, "late", 40)
    for version in V2:
        other = os.path.join(folder, f"converted-{format}-{version}.trace")
        code, out, err = run(TRAIL, "convert", f"--to=1.{version}", f"--output={other}", path)
        report(code == 0, f"1.{format} as 1.{version}: converted", err)
        check_trail(f"1.{format} as 1.{version}", other, expected)


def check_window(folder):
    """In a part between two statuses of a goroutine: the states announced at its beginning have its name."""
    path, expected = record(folder, 26, "late", 40)
    code, out, err = run(TRAIL, "print", "--format=jsonl", path)
    events = [json.loads(line) for line in out.splitlines()]
    syncs = [e["time_ns"] for e in events if e["kind"] == "Sync"]
    before = [e["time_ns"] for e in events if e["time_ns"] < syncs[1]]
    part = os.path.join(folder, "part.trace")
    window = [f"--from={before[-1] - syncs[0]}ns", f"--to={syncs[1] - 1 - syncs[0]}ns"]
    code, out, err = run(TRAIL, "convert", "--to=1.26", *window, f"--output={part}", path)
    report(code == 0, "a part: converted", err)
    code, out, err = run(TRAIL, "goroutines", "--json", part)
    found = {g["id"]: g["name"] for g in json.loads(out)["goroutines"]} if code == 0 else {}
    wrong = differences(found, {id: shown(g) for id, g in expected.items() if g.name})
    report(not wrong, "a part: trail has the names", *wrong, err)


def check_renamed(folder, go_names, format):
    path, expected = record(folder, format, "rename", 0)
    check_trail(f"1.{format} rename", path, expected)
    check_go(f"1.{format} rename", go_names, format, path, expected)


def check_printed(folder):
    """In words with the status, as members in JSON, and in the path to the end."""
    path, expected = record(folder, 26, "late", 40)
    id, g = next((id, g) for id, g in expected.items() if g.name and g.kind)
    code, out, err = run(TRAIL, "print", path)
    report(f"task {id} is waiting: {g.name} ({g.kind})" in out, "print shows name and kind", out[:2000], err)
    code, out, err = run(TRAIL, "print", "--format=jsonl", path)
    events = [json.loads(line) for line in out.splitlines()]
    labels = {(e.get("goroutine_name"), e.get("goroutine_kind")) for e in events if e.get("id") == id}
    report((g.name, g.kind) in labels, "print --format=jsonl shows them", labels, err)
    code, out, err = run(TRAIL, "why", "-g", str(id), path)
    report(f"{g.name} ({g.kind})" in out, "why shows them", out, err)
    code, out, err = run(TRAIL, "summary", path)
    wanted = [shown(g) for g in expected.values() if g.name and g.kind]
    report(any(name in out for name in wanted), "summary shows those of its longest rows", out[:2000], err)


# Jobs


def check_jobs(folder, format, unwinder):
    what = f"1.{format} job, {unwinder}"
    path, expected = record(folder, format, "job", 0, UNWINDER=UNWINDERS[unwinder])
    check_trail(what, path, expected)
    code, out, err = run(TRAIL, "print", "--format=jsonl", path)
    events = [json.loads(line) for line in out.splitlines()]
    job = max(expected)
    stacks = [
        [frame["func"] for frame in e["stack"]]
        for e in events
        if e.get("stack") and job in (e.get("goroutine"), e.get("g"), e.get("id")) and len(e["stack"]) > 1
    ]
    report(
        code == 0 and len(stacks) >= 2 and all(s == ["job_inner", "job_start"] for s in stacks),
        f"{what}: stacks begin with the job",
        *stacks,
        err,
    )


def main():
    with tempfile.TemporaryDirectory(prefix="trail-identity-") as folder:
        go_names = {release: build_go_names(folder, release) for release in ("1.19", "1.23", "1.26")}
        for format in V1 + V2:
            check_run(folder, go_names, format, "late", 40)
            check_run(folder, go_names, format, "late", MANY)
        for format in V2:
            check_run(folder, go_names, format, "flight", 40)
        for format in V1 + V2:
            check_renamed(folder, go_names, format)
        for format in (21, 22, 26):
            check_converted(folder, format)
        check_window(folder)
        check_printed(folder)
        for format in (11, 22, 23, 26):
            for unwinder in UNWINDERS:
                check_jobs(folder, format, unwinder)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
