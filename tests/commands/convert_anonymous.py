#!/usr/bin/env python3
"""trail convert --anonymize removes every name that identifies a program, and keeps everything else. TAP.

usage: convert_anonymous.py TRAIL SOURCE_ROOT
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, SHARED, WORK, assembled, good, run, trace  # noqa: E402
from go_readers import go_of  # noqa: E402
from tap import main, test  # noqa: E402

GO = go_of("1.23") or ""
GOROOT = re.compile(r"(/usr/lib/go-|/usr/local/go|/goroot|/toolchain@|/hostedtoolcache/go/|/go/1\.|go1\.|/go-)[^ ]*/src/")
REAL = [p for p in [os.path.join(SHARED, "real", "esbuild-0.25.12.trace")] if os.path.exists(p)]


def anonymous(path, *more, name="anonymous"):
    to = os.path.join(WORK, name)
    good("convert", "--anonymize", *more, path, "-o", to)
    good("check", "-q", to)
    return to


def lines(path):
    """Events: two names with the same text differ only in these fields."""
    return [json.loads(line) for line in good("print", "--format=jsonl", path).splitlines()]


def texts(value, key=""):
    """Each text of an event, with the name of its field. Texts that are not UTF-8 have a hex form."""
    if isinstance(value, dict):
        for k, v in value.items():
            if k.endswith("_hex"):
                continue
            yield from texts(v, k)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v, key)
    elif isinstance(value, str):
        yield key, value


# Names outside of the standard library that stay: fields of trail itself, and the runtime's reasons.
OWN = {"kind", "type", "resource", "from", "to", "scope", "m", "p", "g", "wall", "range", "metric"}


def pairs(path, to):
    """Maps each text of the trace to its replacement. v1 is compared with its conversion."""
    plain = os.path.join(WORK, "plain")
    good("convert", path, "-o", plain)
    before, after = lines(plain), lines(to)
    assert len(before) == len(after), f"{path}: {len(before)} {len(after)}"
    found = set()
    for a, b in zip(before, after):
        one, other = list(texts(a)), list(texts(b))
        assert [k for k, _ in one] == [k for k, _ in other], f"{a} {b}"
        found.update((k, x, y) for (k, x), (_, y) in zip(one, other))
        assert {k: v for k, v in a.items() if isinstance(v, int)} == {
            k: v for k, v in b.items() if isinstance(v, int)
        }, f"{a} {b}"
    return found


def library_packages():
    p = subprocess.run([GO, "list", "std"], capture_output=True, text=True, timeout=240)
    return set(p.stdout.split())


def package_of(function):
    """The import path: up to the first dot after the last slash outside of brackets."""
    head = re.split(r"[\[(]", function)[0]
    slash = head.rfind("/")
    return head[: head.find(".", slash + 1)] if "." in head[slash + 1 :] else head


def strings_of(path):
    """All texts in the tables of a trace."""
    wire = good("print", "--format=wire", path).decode("utf-8", "replace")
    found = re.findall(r'^\s*data="(.*)"$', wire, re.M)
    return {json.loads('"' + re.sub(r"\\x(..)", r"\\u00\1", s) + '"') for s in found}


@test
def no_text_of_the_program_is_left():
    if not os.path.exists(GO):
        return
    std = library_packages()
    for path in EXAMPLES + REAL:
        plain = os.path.join(WORK, "plain")
        good("convert", path, "-o", plain)
        to = anonymous(path)
        known = set()
        for event in lines(plain):
            for frame in event.get("stack", []) + event.get("transition_stack", []):
                if package_of(frame.get("func", "")) in std:
                    known.update((frame.get("func"), frame.get("file")))
        reasons = {e.get("reason", "") for e in lines(plain)}
        original = strings_of(plain)
        secret = {s for s in original - known - reasons if not re.search(r"^GC (mark|sweep) term", s)}
        secret = {s for s in secret if package_of(s) not in std and not re.match(r"GOMAXPROCS|st(art|op) trace", s)}
        secret = {s for s in secret if "/src/" not in s or not GOROOT.search(s)}
        assert len(secret) > 5, f"{path}: {secret}"
        left = secret & strings_of(to)
        assert not left, f"{path}: {sorted(left)[:5]}"
        with open(to, "rb") as f:
            data = f.read()
        left = {s for s in secret if len(s) > 7 and s.encode() in data}
        left = {s for s in left if not any(s in other for other in strings_of(to))} | {
            s for s in left if "main." in s or "example" in s
        }
        assert not left, f"{path}: {sorted(left)[:5]}"


@test
def what_is_the_library_s_stays():
    for path in EXAMPLES[2:4]:
        after = strings_of(anonymous(path))
        before = strings_of(path)
        for text in ("runtime.gcBgMarkWorker", "net/http.(*conn).serve", "chan receive", "select", "sync"):
            assert text in before and text in after, text
        assert any(s == "$GOROOT/src/net/http/server.go" for s in after)
        assert not any(s.startswith("/") for s in after), [s for s in after if s.startswith("/")]


@test
def equal_texts_stay_equal_and_different_ones_different():
    for path in (*EXAMPLES[1:3], trace("everything-1.26"), trace("times-1.26")):
        found = {p for p in pairs(path, anonymous(path)) if p[0] not in OWN}
        for field in {k for k, _, _ in found}:
            forth = {}
            for k, a, b in found:
                if k == field:
                    assert forth.setdefault(a, b) == b, f"{path}: {a} became {forth[a]} and {b}"
            # Library files lose the name of the library's folder.
            assert len(set(forth.values())) == len(forth), f"{path} {field}"


@test
def figures_and_structure_stay():
    keys = ("id", "creation_ns", "start_ns", "end_ns", "exec_ns", "sched_wait_ns", "total_ns", "block_ns")
    for path in EXAMPLES[2:]:
        plain = os.path.join(WORK, "plain")
        good("convert", path, "-o", plain)
        to = anonymous(path)
        rows = [
            [[g[k] for k in keys] for g in json.loads(good("goroutines", "--json", p))["goroutines"]]
            for p in (plain, to)
        ]
        assert rows[0] == rows[1], path
        inner = re.compile(r"\.func\d+(\.\d+)*$")
        functions = {(a, b) for k, a, b in pairs(path, to) if k in ("func", "function")}
        closures = {a: b for a, b in functions if inner.search(a)}
        assert closures and all(inner.search(a)[0] == inner.search(b)[0] for a, b in closures.items()), closures
        outer = {a: b for a, b in functions if not inner.search(a)}
        for a, b in closures.items():
            base = inner.sub("", a)
            assert base not in outer or outer[base] == inner.sub("", b), f"{a} {b}"


HEAD = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
"""


@test
def of_c_only_the_c_library_stays():
    text = HEAD + """GoStatus dt=1 g=1 m=100 gstatus=2
GoLabel dt=1 label_string=1
UserRegionBegin dt=1 task=0 name_string=2 stack=1
GoBlock dt=1 reason_string=3 stack=1
EventBatch gen=1 m=18446744073709551615 time=1300 size=auto
Stacks
Stack id=1 nframes=5
\tpc=1 func=4 file=5 line=7
\tpc=2 func=6 file=7 line=7
\tpc=3 func=8 file=9 line=7
\tpc=4 func=10 file=11 line=7
\tpc=5 func=12 file=13 line=7
EventBatch gen=1 m=18446744073709551615 time=1301 size=auto
Strings
"""
    names = [
        "secret label", "select", "secret reason", "pthread_mutex_lock", "./nptl/pthread_mutex_lock.c",
        "std::vector<Secret>::push_back", "/usr/include/c++/12/secret.h", "slices.Sort[go.shape.[]main.Secret]",
        "/home/me/go/src/slices/sort.go", "net/secret.Do", "/home/me/net/secret/do.go", "main.secret.func1",
        "/home/me/secret.go",
    ]  # fmt: skip
    text += "".join(f'String id={i}\n\tdata="{n}"\n' for i, n in enumerate(names, 1))
    text += 'String id=90\n\tdata="trail.module start=0x1 build-id=00 path=/secret"\nEndOfGeneration\n'
    path = assembled("c", text)
    after = strings_of(anonymous(path))
    stay = {"pthread_mutex_lock", "./nptl/pthread_mutex_lock.c"}
    assert stay <= after, after
    rest = after - stay
    assert all(re.match(r"(text|func|file)_[0-9a-f]{16}(\.func1|\.h|\.go)?$", s) for s in rest), rest
    # A region's name belongs to the program, even if it equals a reason.
    assert len(rest) == 3 + 4 + 4, rest


@test
def a_program_s_word_for_what_it_runs_stays_only_if_it_is_a_common_one():
    text = HEAD + """EventBatch gen=1 m=18446744073709551615 time=1301 size=auto
Strings
String id=1
\tdata="trail.made by=host word={}"
EndOfGeneration
"""
    for word, after in (("secret job", "task"), ("fiber", "fiber"), ("thread", "thread")):
        path, to = assembled("word", text.format(word)), os.path.join(WORK, "anonymous")
        good("convert", "--anonymize", path, "-o", to)
        words = [json.loads(good("info", "--json", p))["task_word"] for p in (path, to)]
        assert words == [word, after], words
        with open(to, "rb") as f:
            assert b"secret" not in f.read()


def uvarints(*numbers):
    out = bytearray()
    for n in numbers:
        while n >= 0x80:
            out.append(n & 0x7F | 0x80)
            n >>= 7
        out.append(n)
    return bytes(out)


def experimental(batches):
    """A trace with these batches: number of the experiment, data."""
    text = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
"""
    for number, data in batches:
        escaped = "".join(f"\\x{b:02x}" for b in data)
        text += f'ExperimentalBatch exp={number} gen=1 m=100 time=1000\n\tdata="{escaped}"\n'
    text += "EventBatch gen=1 m=100 time=1000 size=auto\nProcStatus dt=1 p=0 pstatus=1\nEndOfGeneration\n"
    path = assembled("experimental", text)
    return path


def types(*names):
    return b"\0" + b"".join(uvarints(i, 4096 * i, 24, 8, len(n)) + n for i, n in enumerate(names, 1))


def batches_of(path):
    """Number and data of the experiments' batches."""
    wire = good("print", "--format=wire", path).decode("utf-8", "replace")
    found = re.findall(r'^ExperimentalBatch exp=(\d+) .*\n\s*data="(.*)"$', wire, re.M)
    return [(int(n), data) for n, data in found]


@test
def types_of_heap_objects_have_other_names():
    own = [b"main.secretCustomerRecord", b"[]main.secretKey", b"struct { secret int }", b"map[string]*main.secret",
           b'struct { int "secret:tag" }', b"noalg.struct { F uintptr; secret string }"]  # fmt: skip
    of_go = [b"int", b"string", b"[]uint8", b"map[string][]int64", b"*[8]uintptr", b"[32]complex128", b"func(int, string) error",
             b"unsafe.Pointer", b"struct {}", b"interface {}", b"chan<- bool"]  # fmt: skip
    heap = uvarints(1, 0xC000000000, 8192, 8, 2048)
    path = experimental([(1, types(*own, *of_go)), (1, heap), (7, b"secret of another experiment")])
    assert len(batches_of(path)) == 3
    to = os.path.join(WORK, "anonymous")
    code, _, err = run("convert", "--anonymize", path, "-o", to)
    assert code == 0 and "1 batch of experiments left out" in err, err
    with open(to, "rb") as f:
        data = f.read()
    assert b"secret" not in data and heap in data, data
    for name in of_go:
        assert uvarints(len(name)) + name in data, name
    # Everything else is unchanged: IDs, addresses, sizes and order.
    stand_ins = re.findall(rb"text_[0-9a-f]{16}", data)
    assert types(*stand_ins, *of_go) in data and len(set(stand_ins)) == len(own), stand_ins


@test
def longer_names_need_more_batches_and_none_is_lost():
    names = [f"main.T{i}".encode() for i in range(3400)]
    path = experimental([(1, types(*names))])
    (_, whole), = batches_of(path)
    to = anonymous(path)
    with open(to, "rb") as f:
        data = f.read()
    assert len(re.findall(rb"text_[0-9a-f]{16}", data)) == len(names) and b"main." not in data
    assert len(batches_of(to)) == 2, len(batches_of(to))


@test
def of_data_that_is_damaged_nothing_is_copied_that_was_not_read():
    good_part = types(b"main.secret")
    for damaged in (good_part + b"\x05secret", good_part + uvarints(2, 8192, 24, 8, 100) + b"secret", b"\2secret", b"",
                    uvarints(1, 1, 2, 3, 4) + b"secret", b"\1\xff\xff"):  # fmt: skip
        path = experimental([(1, damaged)])
        to = os.path.join(WORK, "anonymous")
        code, _, err = run("convert", "--anonymize", path, "-o", to)
        assert code == 0 and "1 batch of experiments left out" in err, (damaged, err)
        with open(to, "rb") as f:
            assert b"secret" not in f.read(), damaged


@test
def a_key_makes_stand_ins_the_same_in_other_traces():
    path = EXAMPLES[3]
    sets = [strings_of(anonymous(path, *more)) for more in ((), (), ("--key=a",), ("--key=a",), ("--key=b",))]
    ours = [{s for s in one if re.match("(text|func|file)_", s)} for one in sets]
    assert ours[2] == ours[3] and all(ours)
    assert not (ours[0] & ours[1]) and not (ours[2] & ours[4]) and not (ours[0] & ours[2])
    other = strings_of(anonymous(EXAMPLES[2], "--key=a"))
    assert len(other & ours[2]) > 5
    code, _, err = run("convert", "--key=a", path, "-o", os.path.join(WORK, "x"))
    assert code == 2 and "--anonymize" in err


@test
def go_reads_it():
    for path in EXAMPLES:
        to = anonymous(path, "--to=go1.23", "--name=*")
        if os.path.exists(GO):
            p = subprocess.run([GO, "tool", "trace", "-d=1", to], capture_output=True, timeout=240)
            assert p.returncode == 0 and p.stdout, p.stderr[:300]


if __name__ == "__main__":
    sys.exit(main())
