#!/usr/bin/env python3
"""`trail symbolize` from outside: how it changes the stacks of a trace, and that it changes nothing
else. TAP.

usage: symbolize.py TRAIL SOURCE_ROOT

Small C and C++ programs are compiled with inlining; assembled traces have stacks with the return
addresses of all their calls. addr2line, which shares no code with libdw, provides the expected
frames: the one of binutils, or LLVM's for clang's programs, because binutils 2.40 misses inlined
calls in clang's DWARF 5. `go tool trace` of Go 1.23 shows whether other readers understand the
result. Tools that are not installed are skipped.
"""
import contextlib
import ctypes
import fcntl
import functools
import glob
import lzma
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from go_readers import go_of
from tap import Skip, main, test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
WORK = tempfile.mkdtemp(prefix="trail-symbolize-")
ENV = {k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"} | {"TZ": "UTC", "LC_ALL": "C"}
NO_THREAD = 2**64 - 1
BASE = 0x7F1234560000  # where a position-independent program is loaded
V1, V2 = (7, 8, 9, 10, 11, 19, 21), (22, 23, 25, 26)
READ_BY_GO = (11, 19, 21, 22, 23)  # by `go tool trace` of Go 1.23

C = r"""
volatile int sink;
__attribute__((noinline)) static void land(int x) { sink = x; }
static inline __attribute__((always_inline)) void middle(int x)
{
    land(x + 1);
    sink++;
}
static inline __attribute__((always_inline)) void outer(int x)
{
    middle(x);
    middle(x + 7);
    sink += 2;
}
__attribute__((noinline)) int work(int x)
{
#ifndef __clang__
    __attribute__((noinline)) int within(int y)
    {
        middle(y);
        return sink;
    }
    sink += within(x);
#endif
    for (int i = 0; i < 3; i++)
        outer(x);
    outer(x * 3);
    return sink;
}
int main(int argc, char **argv)
{
    (void)argv;
    outer(argc);
    work(argc);
    return sink == 12345;
}
"""
CXX = r"""
volatile int sink;
namespace app {
struct Box {
    int value;
    __attribute__((noinline)) void land(int x);
    __attribute__((always_inline)) inline void middle(int x) { land(x + 1); sink = sink + 1; }
    template <typename T> __attribute__((always_inline)) inline void outer(T x)
    {
        middle(x);
        sink = sink + 2;
    }
};
void Box::land(int x) { sink = x + value; }
namespace {
__attribute__((noinline)) int hidden(Box &box) { box.outer(4L); box.outer('x'); return sink; }
}
}
int main(int argc, char **)
{
    app::Box box{argc};
    auto call = [&](int x) __attribute__((always_inline)) { box.outer(x); sink = sink + 3; };
    for (int i = 0; i < 3; i++)
        call(i);
    return app::hidden(box) == 12345;
}
"""



def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"no {program}")


def sh(*args, stdin=None, cwd=None):
    return subprocess.run(args, input=stdin, capture_output=True, check=True, env=ENV, timeout=240, cwd=cwd).stdout


def run(*args, stdin=None, cwd=None):
    p = subprocess.run([TRAIL, *args], input=stdin, capture_output=True, env=ENV, timeout=240, cwd=cwd)
    p.stderr = p.stderr.decode()
    return p


def good(*args, **more):
    p = run(*args, **more)
    assert p.returncode == 0, f"trail {' '.join(args)}: exit {p.returncode}: {p.stderr}"
    return p


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)
    return path


def go_tool():
    for path in (go_of("1.23"), shutil.which("go")):
        if path and os.path.exists(path) and b"go1.23" in sh(path, "version"):
            return path
    return None


# MARK: Programs


class Program:
    """A compiled program, and the address of its code segment in memory."""

    def __init__(self, path, addr2line="addr2line"):
        self.path, self.addr2line = path, addr2line
        headers = sh("readelf", "-lW", path).decode()
        self.bias = BASE if "DYN" in headers else 0
        low, size = re.search(r"LOAD +\S+ (0x\w+) \S+ \S+ (0x\w+) R E", headers).groups()
        self.start = int(low, 16) + self.bias
        self.end = self.start + int(size, 16)
        found = re.search(r"Build ID: (\w+)", sh("readelf", "-n", path).decode())
        self.build_id = found.group(1) if found else "-"
        # The return addresses of its calls, without those in start-up code.
        listing = sh("objdump", "-d", "--no-show-raw-insn", "-j", ".text", path).decode()
        after_call = re.findall(r"\tcall +\w+ <[^>]*>\n +(\w+):", listing)
        self.calls = [int(a, 16) for a in after_call]
        self.known = self.places(self.calls)
        self.calls = [a for a in self.calls if "/text.c" in self.frames(a)[-1][1]]

    def module(self, path=None):
        return (
            f"trail.module start={self.start:#x} end={self.end:#x} bias={self.bias:#x} "
            f"build-id={self.build_id} path={path or self.path}"
        )

    def pcs(self):
        return [a + self.bias for a in self.calls]

    def frames(self, address):
        """(function, file, line) of a return address of the file, innermost first."""
        if address not in self.known:
            self.known |= self.places([address])
        return self.known[address]

    def places(self, addresses):
        """The frames of each address, looked up in one call."""
        asked = "".join(f"{address - 1:#x}\n" for address in addresses)
        answers = sh(self.addr2line, "-a", "-C", "-i", "-f", "-e", self.path, stdin=asked.encode()).decode()
        answers = re.split(r"^0x[0-9a-f]+\n", answers, flags=re.M)[1:]
        return {address: self.frames_of(lines.splitlines()) for address, lines in zip(addresses, answers, strict=True)}

    @staticmethod
    def frames_of(lines):
        frames = []
        for function, place in zip(lines[::2], lines[1::2]):
            file, line = re.fullmatch(r"(.*):(\d+|\?)(?: \(discriminator \d+\))?", place).groups()
            frames.append((function, os.path.normpath(file), int(line) if line != "?" else 0))
        # binutils 2.40 shows the first file of gcc's link-time optimisation in this form.
        return [(fn, frames[-1][1] if f.endswith("<artificial>") else f, n) for fn, f, n in frames]


@functools.cache
def compiled(name, compiler, source, *flags):
    path = os.path.join(WORK, name)
    oracle = "llvm-addr2line" if "clang" in compiler else "addr2line"
    if not os.path.exists(path):
        need(compiler, "readelf", "objdump", "objcopy", "strip", oracle)
        suffix = ".cc" if compiler.endswith("++") else ".c"
        text = write(os.path.join(WORK, "src", "text" + suffix), source.encode())
        p = subprocess.run(
            [compiler, "-O2", "-g", "-Wl,--build-id", *flags, "-o", path, text], capture_output=True
        )
        if p.returncode:
            raise Skip(f"{compiler} {' '.join(flags)}: {p.stderr.decode().splitlines()[-1]}")
    return Program(path, oracle)


def plain():
    return compiled("plain", "gcc", C)


# MARK: Traces


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def string_lines(strings):
    for i, text in enumerate(strings, 1):
        yield f"String id={i}"
        yield f"\tdata={quote(text)}"


def stack_lines(stacks, size):
    for i, frames in enumerate(stacks, 1):
        yield f"Stack id={i} {size}={len(frames)}"
        for frame in frames:
            pc, function, file, line = frame if isinstance(frame, tuple) else (frame, 0, 0, 0)
            yield f"\tpc={pc} func={function} file={file} line={line}"


def v2_generation(version, stacks, strings, gen=1):
    batch = f"EventBatch gen={gen} m={NO_THREAD} time={gen * 1000} size=auto"
    yield batch
    if version >= 25:
        yield "Sync"
    yield "Frequency freq=15625000"
    if version >= 25:
        yield "ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0"
    yield f"EventBatch gen={gen} m=100 time={gen * 1000} size=auto"
    yield "ProcStatus dt=1 p=0 pstatus=1"
    yield "GoStatus dt=1 g=1 m=100 gstatus=2"
    for i in range(1, len(stacks) + 1):
        yield f"ProcsChange dt=1 procs_value={i} stack={i}"
    yield from (batch, "Stacks", *stack_lines(stacks, "nframes"))
    yield from (batch, "Strings", *string_lines(strings))
    if version >= 26:
        yield "EndOfGeneration"


def v1_text(version, stacks, strings):
    yield "Batch p=0 ticks=1000"
    yield "GoCreate dt=1 g=1 stack=0 stk=0"
    yield "ProcStart dt=1 thread=100"
    yield "GoStartLocal dt=1 g=1"
    yield "Gomaxprocs dt=1 procs=1 stk=0"
    for i in range(1, len(stacks) + 1):
        yield f"Gomaxprocs dt=1 procs={i} stk={i}"
    yield "GoEnd dt=9"
    yield "ProcStop dt=9"
    if version == 21:
        yield "Batch p=0 ticks=900000"
    yield "Frequency freq=15625000"
    if version in (11, 19):
        yield "Batch p=0 ticks=900000"
    yield from stack_lines(stacks, "siz")
    yield from string_lines(strings)


def trace(version, stacks, strings, name="made"):
    lines = v2_generation if version >= 22 else v1_text
    return assembled(version, lines(version, stacks, strings), name)


def assembled(version, lines, name="made"):
    path = os.path.join(WORK, name + ".trace")
    text = f"Trace Go1.{version}\n" + "\n".join(lines) + "\n"
    good("assemble", "-", "-o", path, stdin=text.encode())
    return path


def symbolized(path, *options):
    out = os.path.join(WORK, os.path.basename(path) + ".named")
    p = good("symbolize", *options, path, "-o", out)
    return out, p.stderr


class Tables:
    """The stacks of each generation, with texts in place of string IDs, and all its other records."""

    def __init__(self, path):
        self.stacks, self.strings, self.others, self.ids = [], [], [], []
        lines = good("print", "--format=wire", path).stdout.decode().splitlines()
        raw, strings, at = {}, {}, 0
        generation = None

        def end():
            if raw or strings:
                text = lambda i: strings[i] if i else ""
                self.stacks.append(
                    {
                        key: [(pc, text(fn), os.path.normpath(text(f)) if f else "", ln) for pc, fn, f, ln in v]
                        for key, v in raw.items()
                    }
                )
                self.strings.append(sorted(strings.values()))

        while at < len(lines):
            line = lines[at]
            at += 1
            numbers = [int(n) for n in re.findall(r"=(\d+)", line)]
            if line.startswith("EventBatch") and numbers[0] != generation:
                end()
                raw, strings, generation = {}, {}, numbers[0]
            if line.startswith("Stack "):
                raw[numbers[0]] = []
                for _ in range(numbers[1]):
                    raw[numbers[0]].append(tuple(int(n) for n in re.findall(r"=(\d+)", lines[at])))
                    at += 1
            elif line.startswith("String "):
                assert numbers[0] not in strings, f"two strings {numbers[0]}"
                strings[numbers[0]] = ""
                if at < len(lines) and lines[at].startswith("\tdata="):
                    strings[numbers[0]] = lines[at][7:-1].replace('\\"', '"').replace("\\\\", "\\")
                    at += 1
            elif not re.match("Stacks|Strings", line) and not (
                line.startswith("EventBatch") and numbers[1] == NO_THREAD
            ):
                self.others.append(line)
        end()


def names(frames):
    return [tuple(frame[1:]) for frame in frames]


def go_stacks(go, path):
    """How `go tool trace` shows the stack of each event that sets a number of Ps: {number: frames}."""
    lines = sh(go, "tool", "trace", "-d=1", path).decode().splitlines()
    stacks, now = {}, None
    for i, line in enumerate(lines):
        frame = re.fullmatch(r"\t(.*) @ 0x\w+", line)
        if "/sched/gomaxprocs:threads" in line:
            now = stacks.setdefault(int(re.findall(r"(\d+)", line.split("gomaxprocs")[1])[-1]), [])
        elif "Kind=" in line:
            now = None
        elif now is not None and frame:
            file, number = lines[i + 1].strip().rsplit(":", 1)
            now.append((frame[1], os.path.normpath(file) if file else "", int(number)))
    return stacks


def check_program(program, versions=(23,)):
    """Checks every call's stack, [call, call again below it], against addr2line."""
    stacks = [[pc, program.pcs()[0]] for pc in program.pcs()]
    want = [program.frames(pc - program.bias) for pc in program.pcs()]
    assert len(want) > 2 and any(len(frames) > 2 for frames in want), "the programs have inlined calls"
    for version in versions:
        path, _ = symbolized(trace(version, stacks, [program.module(), "trail.clock mono=1 wall=2.3"]))
        tables = Tables(path).stacks[0]
        for i, frames in enumerate(want, 1):
            got = names(tables[i])
            assert got == frames + want[0], f"1.{version}, {stacks[i - 1][0]:#x}: {got} != {frames + want[0]}"
        if version in READ_BY_GO and go_tool():
            seen = go_stacks(go_tool(), path)
            for i, frames in enumerate(want, 1):
                assert seen[i] == frames + want[0], f"Go, 1.{version}: {seen[i]} != {frames + want[0]}"


# MARK: Names


@test
def c_in_every_format():
    check_program(plain(), V1 + V2)


def of_compiler(compiler, source, *flags):
    def function():
        name = "-".join([compiler, *flags]).replace("/", "_").replace("=", "")
        check_program(compiled(name, compiler, source, *flags))

    flags_name = " ".join(flags) or "alone"
    function.__name__ = f"{compiler} {flags_name}: names, lines and inlined calls are addr2line's"
    return test(function)


for compiler, source in (("gcc", C), ("g++", CXX), ("clang", C), ("clang++", CXX)):
    of_compiler(compiler, source, "-fPIE", "-pie")
    of_compiler(compiler, source, "-fno-PIE", "-no-pie")
    of_compiler(compiler, source, "-gdwarf-4")
    of_compiler(compiler, source, "-flto", *(["-fuse-ld=lld"] if "clang" in compiler else []))
of_compiler("gcc", C, "-ffunction-sections", "-Wl,--gc-sections")


@test
def split_debug_information_is_found():
    """addr2line does not support it, so the expected frames come from the same program with unsplit
    debug information."""
    program, split = plain(), compiled("split", "gcc", C, "-gsplit-dwarf", "-fPIE", "-pie")
    split.calls = program.calls
    path, _ = symbolized(trace(23, [[pc] for pc in program.pcs()], [split.module()]))
    for i, pc in enumerate(program.calls, 1):
        assert names(Tables(path).stacks[0][i]) == program.frames(pc)


@test
def names_of_cxx_are_demangled():
    program = compiled("cxx", "g++", CXX)
    path, _ = symbolized(trace(23, [program.pcs()], [program.module()]))
    functions = {frame[1] for frame in Tables(path).stacks[0][1]}
    assert "void app::Box::outer<int>(int)" in functions, functions


@test
def equal_pcs_in_one_stack_mean_equal_frames():
    """Readers of Go 1.23 keep one frame per PC: if frames shared a PC, they would show a wrong one."""
    for source, compiler in ((C, "gcc"), (CXX, "g++")):
        program = compiled("one-" + compiler, compiler, source)
        path, _ = symbolized(trace(23, [[pc] for pc in program.pcs()], [program.module()]))
        known = {}
        for frames in Tables(path).stacks[0].values():
            assert frames[0][0] in program.pcs(), "the innermost frame keeps its PC"
            for frame in frames:
                assert known.setdefault(frame[0], frame) == frame
            for frame in frames[1:]:
                assert 2**48 <= frame[0] < 2**49, frame


ANNOTATED = r"""
#include <trail/record.HEADER>
#ifdef __cplusplus
extern "C" {
#endif
uint32_t trail_tracing_ = 1;
volatile int sink;
#define STUB __attribute__((noinline))
STUB uint64_t trail_task_begin_(uint64_t parent, const char *name) { return sink = (int)parent + !name; }
STUB void trail_task_end_(uint64_t task) { sink = (int)task; }
STUB void trail_region_begin_(uint64_t task, const char *name) { sink = (int)task + !name; }
STUB void trail_region_end_(uint64_t task, const char *name) { sink = (int)task + !name; }
STUB void trail_log_(uint64_t task, const char *, const char *) { sink = (int)task; }
STUB bool trail_go_start_(trail_m *m, trail_g *, const char *) { return sink = !m; }
STUB bool trail_go_end_(trail_m *m) { return sink = !m; }
STUB bool trail_go_block_(trail_m *m, trail_block_reason, int, bool) { return sink = !m; }
#ifdef __cplusplus
}
#endif
STUB static int annotated(trail_m *m, trail_g *g)
{
    {
        TRAIL_REGION("scope");
        trail_log(1, "category", "message");
    }
    sink += trail_go_start(m, g);
    sink += trail_go_block(m, TRAIL_BLOCK_SYNC, 0);
    sink += trail_go_end(m);
#ifdef __cplusplus
    trail::task task("task");
    trail::region region(task, "region");
    trail::log(task, "category", std::string("string"));
#endif
    trail_task_end(trail_task_begin(0, "task"));
    return sink;
}
STUB static void last(void) { trail_log(2, "category", "the last call is no jump"); }
static inline __attribute__((always_inline)) void users_own(void) { trail_log(3, "category", "inlined"); sink = 3; }
int main()
{
    static trail_m m;
    static trail_g g;
    last();
    users_own();
    return annotated(&m, &g) == 12345;
}
"""


def annotated(compiler, *flags):
    source = ANNOTATED.replace("HEADER", "hpp" if compiler.endswith("++") else "h")
    name = "-".join(["annotated", compiler, *flags])
    return compiled(name, compiler, source, *flags, "-I" + os.path.join(ROOT, "include"))


def innermost_is_the_users(compiler, *flags, split=False):
    def function():
        program = annotated(compiler, *flags)
        # addr2line does not support split debug information; the same program without the split has
        # the expected frames.
        taken = annotated(compiler, *flags, "-gsplit-dwarf") if split else program
        path, _ = symbolized(trace(23, [[pc] for pc in program.pcs()], [taken.module()]))
        dropped = 0
        functions = set()
        for i, address in enumerate(program.calls, 1):
            want = program.frames(address)
            own = [frame for frame in want if "/trail/record.h" not in frame[1]]
            dropped += len(want) - len(own)
            got = names(Tables(path).stacks[0][i])
            # The caller of an inlined function has the position of the call.
            cut = lambda frames: [(fn.split("(")[0], *place) for fn, *place in frames]
            assert cut(got) == cut(own), f"{got} != {own}"
            functions.add(cut(got)[0][0])
        assert dropped >= 7, "the tracer's calls are inlined, also at -O0"
        assert {"annotated", "last", "users_own"} <= functions, functions

    function.__name__ = f"{compiler} {' '.join(flags)}{' split' * split}: the innermost frame is who called the tracer"
    return test(function)


for compiler in ("gcc", "g++", "clang", "clang++"):
    innermost_is_the_users(compiler, "-O0")
    innermost_is_the_users(compiler, "-O2")
innermost_is_the_users("gcc", "-O2", "-gdwarf-4")
innermost_is_the_users("g++", "-O2", "-flto")
innermost_is_the_users("gcc", "-O2", "-fPIE", "-pie", split=True)


def library(name, *flags):
    """The program in parts: stripped, with its debug information elsewhere."""
    folder = os.path.join(WORK, name)
    os.makedirs(folder, exist_ok=True)
    program = plain()
    stripped, debug = os.path.join(folder, "app"), os.path.join(folder, "app.debug")
    sh("objcopy", "--only-keep-debug", program.path, debug)
    sh("strip", "-o", stripped, program.path)
    return program, stripped, debug


def check_named(program, path, strings, *options):
    stacks = [[pc] for pc in program.pcs()]
    out, message = symbolized(trace(23, stacks, strings), *options)
    for i, pc in enumerate(program.pcs(), 1):
        got, want = names(Tables(out).stacks[0][i]), program.frames(pc - program.bias)
        assert got == want, f"{got} != {want}"
    return message


@test
def separate_debug_information_beside_the_program_is_found():
    program, stripped, debug = library("beside")
    linked = os.path.join(WORK, "beside", "linked")
    sh("objcopy", f"--add-gnu-debuglink={debug}", stripped, linked)
    check_named(program, linked, [program.module(linked)])


@test
def separate_debug_information_is_found_by_name_and_by_build_id():
    program, stripped, debug = library("named")
    folder = os.path.join(WORK, "by-name")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(debug, os.path.join(folder, "app.debug"))
    message = check_named(program, stripped, [program.module(stripped)], "--module-path", folder)
    assert "debug information" not in message, message
    tree = os.path.join(WORK, "tree")
    identity = program.build_id
    write(os.path.join(tree, ".build-id", identity[:2], identity[2:] + ".debug"), read(debug))
    check_named(program, stripped, [program.module(stripped)], f"--module-path={tree}")


@test
def traces_of_another_machine_are_named_with_files_in_a_folder():
    program = plain()
    folder = os.path.join(WORK, "root")
    write(os.path.join(folder, "opt", "my app", "bin", "app"), read(program.path))
    strings = [program.module("/opt/my app/bin/app")]
    check_named(program, None, strings, "--module-path=/nonexistent", "-m", folder)
    write(os.path.join(folder, "long"), read(program.path))
    check_named(program, None, [program.module("of/a/path/that/was/cut/long")], "-m", folder)


@test
def without_debug_information_functions_have_names():
    program = plain()
    bare = os.path.join(WORK, "bare")
    sh("objcopy", "--strip-debug", program.path, bare)
    stacks = [[(pc, 1, 2, 0)] for pc in program.pcs()]
    out, message = symbolized(trace(23, stacks, ["bare+0x1234", bare, program.module(bare)]))
    assert "names without lines, for lack of debug information: bare" in message, message
    assert "--module-path" in message
    for i, pc in enumerate(program.pcs(), 1):
        outermost = program.frames(pc - program.bias)[-1]
        ((name, path, line),) = names(Tables(out).stacks[0][i])
        # The symbol of a nested function has a number.
        assert (name.split(".")[0], path, line) == (outermost[0], bare, 0)


# MARK: What stays


@test
def everything_else_stays_as_it_was():
    program = plain()
    stacks = [[(pc, 1, 0, 0)] for pc in program.pcs()]
    stacks += [[(program.pcs()[0], 1, 1, 9), (77, 0, 0, 0)], []]
    strings = ["from dladdr", program.module(), "said by the program"]
    for version in V1 + V2:
        before = trace(version, stacks, strings, f"stays-{version}")
        out, _ = symbolized(before)
        old, new = Tables(before), Tables(out)
        assert new.others == old.others
        assert set(old.strings[0]) <= set(new.strings[0])
        assert len(set(new.strings[0])) == len(new.strings[0]), "equal strings have one ID"
        count = len(stacks)
        assert new.stacks[0][count - 1] == old.stacks[0][count - 1], "has a line; is in no module"
        assert new.stacks[0][count] == []
        again, _ = symbolized(out)
        assert read(again) == read(out), "doing it again changes nothing"
        if version >= 11:
            assert good("check", out).returncode == 0


@test
def what_cannot_be_named_is_copied_byte_for_byte():
    paths = glob.glob(os.path.join(ROOT, "examples", "traces", "load-*.trace"))
    made = [trace(v, [[4096], [(4096, 1, 0, 0)]], ["main"], f"none-{v}") for v in V1 + V2]
    assert paths
    for path in paths + made:
        out, message = symbolized(path)
        assert read(out) == read(path), path
        assert path not in made or "no module map" in message, message


@test
def a_name_that_is_there_is_used_again():
    program = plain()
    path, _ = symbolized(trace(23, [[program.pcs()[0]]], ["land", "main", program.module(), "middle"]))
    strings = Tables(path).strings[0]
    assert len(set(strings)) == len(strings), strings


@test
def a_name_of_the_recording_process_stays_where_nothing_better_is_known():
    program = plain()
    module = program.module("/nonexistent/app")
    path, message = symbolized(trace(23, [[(program.pcs()[0], 1, 0, 0)]], ["known to dladdr", module]))
    assert names(Tables(path).stacks[0][1]) == [("known to dladdr", "", 0)]
    assert "/nonexistent/app: No such file or directory; its frames stay" in message, message


@test
def a_file_with_another_build_id_is_not_taken():
    program = plain()
    other = compiled("other", "gcc", C, "-DOTHER", "-O1")
    strings = ["old", program.module(other.path)]
    before = trace(23, [[(pc, 1, 0, 0) for pc in program.pcs()]], strings)
    out, message = symbolized(before)
    assert read(out) == read(before)
    assert "not the file that was recorded" in message and other.build_id in message, message
    assert program.build_id in message and "--module-path" in message
    # Once found elsewhere, it no longer matters.
    folder = os.path.join(WORK, "right")
    write(os.path.join(folder, "other"), read(program.path))
    out, message = symbolized(before, "-m", folder)
    assert "not the file" not in message and Tables(out).stacks[0][1][0][3] > 0


@test
def without_a_build_id_the_file_at_the_path_is_taken():
    program = plain()
    program.build_id = "-"
    check_named(program, program.path, [program.module()])


@test
def generations_have_their_own_module_map():
    """A library is unloaded, and another one is loaded at its address."""
    program, other = plain(), compiled("cxx-gen", "g++", CXX)
    pcs = [program.start + 5, program.pcs()[0]]
    for version in V2:
        moved = other.module().replace(f"{other.start:#x}", f"{program.start:#x}")
        shift = program.start - other.start
        moved = f"trail.module start={program.start:#x} end={program.end:#x} bias={other.bias + shift:#x} "
        moved += f"build-id={other.build_id} path={other.path}"
        address = program.start - program.bias + other.calls[0] - (other.start - other.bias)
        lines = list(v2_generation(version, [[program.pcs()[0]], [address + BASE]], [program.module()]))
        lines += v2_generation(version, [[address + BASE]], ["x", moved], gen=2)
        out, _ = symbolized(assembled(version, lines))
        stacks = Tables(out).stacks
        want = program.frames(program.calls[0])
        assert names(stacks[0][1]) == want, names(stacks[0][1])
        assert names(stacks[1][1]) == other.frames(other.calls[0])


# MARK: Limits of readers


def deepest(program):
    """The PC with the most frames, and their number."""
    depths = {pc: len(program.frames(pc - program.bias)) for pc in program.pcs()}
    return max(depths.items(), key=lambda pair: pair[1])


@test
def stacks_have_128_frames_at_most():
    program = plain()
    pc, depth = deepest(program)
    for version in (11, 19, 21, 22, 23, 25, 26):
        path, message = symbolized(trace(version, [[pc] * 128], [program.module()]))
        got = names(Tables(path).stacks[0][1])
        want = program.frames(pc - program.bias) * 128
        assert depth > 1 and got == want[:128], got
        assert "1 stack lost outer frames" in message
        assert good("check", path).returncode == 0
        if version in READ_BY_GO and go_tool():
            assert go_stacks(go_tool(), path)[1] == got, f"Go, 1.{version}"


@test
def stacks_before_1_22_have_2048_bytes_at_most():
    """Keeps as many of the unchanged frames as fit beside the new ones."""
    program = plain()
    pc, depth = deepest(program)
    cut = set()
    for size in (110, 111, 112):
        for odd in range(8):
            # Frames of 10 bytes, of 18, and one more of every length.
            kept = [(2**63 + 10, 1, 1, 2**40)] * size + [(2**63 + 11, 1, 1, 2 ** (7 * odd))]
            path, message = symbolized(trace(21, [[pc] + kept], ["far", program.module()]))
            length = 2 + 10 * depth + 18 * size + 13 + odd  # with ID and count
            lost = 0 if length <= 2048 else 1 if length - 13 - odd <= 2048 else 2
            cut.add(length - 2048)
            got = Tables(path).stacks[0][1]
            assert len(got) == depth + size + 1 - lost, f"{length} bytes: {len(got)} frames"
            assert ("lost outer frames" in message) == (lost > 0)
            if lost != 1 and odd == 0 and go_tool():
                assert len(go_stacks(go_tool(), path)[1]) == len(got)
    assert {0, 1} <= cut, f"lengths around the limit: {sorted(cut)}"


@test
def long_names_are_cut_to_their_last_bytes():
    need("g++")
    arguments = ", ".join(["std::pair<int, long>"] * 90)
    source = f"""
        #include <utility>
        volatile int sink;
        template <typename... T> struct Long {{ __attribute__((noinline)) static void land() {{ sink = 1; }}
            __attribute__((noinline)) static void call() {{ land(); sink = 2; land(); sink = 3; }} }};
        int main() {{ Long<{arguments}>::call(); Long<{arguments}>::call(); return sink; }}"""
    program = compiled("long", "g++", source)
    for version in (23, 21):
        path, _ = symbolized(trace(version, [[pc] for pc in program.pcs()], [program.module()]))
        longest = 0
        for i, pc in enumerate(program.pcs(), 1):
            want = program.frames(pc - program.bias)[0][0]
            got = Tables(path).stacks[0][i][0][1]
            longest = max(longest, len(want))
            assert got == (want[-1024:] if version == 23 else want), got
        assert longest > 1024
        assert good("check", path).returncode == 0


@test
def tables_of_more_than_one_batch_are_written():
    program = plain()
    pcs = program.pcs()
    stacks = [[pcs[(i >> (3 * k)) % len(pcs)] for k in range(6)] + [i + 2**62] for i in range(2000)]
    lines = []
    for version in V2:
        lines = list(v2_generation(version, [], [program.module()]))
        begin = lines.index("Stacks")
        batches = []
        for i in range(0, 2000, 500):
            batches += [lines[begin - 1], "Stacks"]
            for j, line in enumerate(stack_lines(stacks[i : i + 500], "nframes")):
                number = re.match(r"Stack id=(\d+)", line)
                batches.append(line.replace(f"id={number[1]} ", f"id={int(number[1]) + i} ") if number else line)
        lines[begin - 1 : begin + 1] = batches
        path, _ = symbolized(assembled(version, lines))
        sizes = re.findall(rf"^EventBatch .*m={NO_THREAD} .*size=(\d+)$", good("print", "-f", "wire", path).stdout.decode(), re.M)
        assert max(map(int, sizes)) <= 65536 and len(sizes) > 6
        assert len(Tables(path).stacks[0]) == 2000
        assert good("check", path).returncode == 0


# MARK: Hostile and damaged traces


@test
def lines_that_only_look_like_modules_are_none():
    program = plain()
    right = program.module()
    wrong = [
        right.replace("start=0x", "start="),
        right.replace(" bias=", " bios="),
        right.replace("path=", "path"),
        right.split(" path=")[0],
        right.split("path=")[0] + "path=",
        right.replace(f"end={program.end:#x}", f"end={program.start:#x}"),
        right.replace("build-id=", "build-id=xyz"),
        right.replace("build-id=", "build-id=a"),
        right.replace("start=0x", "start=0x00000000000000000"),
        "trail.module ",
        "trail.module",
    ]
    for line in wrong:
        before = trace(23, [[program.pcs()[0]]], [line])
        out, message = symbolized(before)
        assert read(out) == read(before) and "no module map" in message, line


@test
def paths_of_traces_open_nothing_but_programs():
    program = plain()
    program.build_id = "-"
    fifo = os.path.join(WORK, "fifo")
    os.mkfifo(fifo)
    for path in (fifo, "/dev/zero", "/dev/stdin", "/", "/etc/passwd", "relative", "..", "/x\x1b[31m"):
        before = trace(23, [[program.pcs()[0]]], [program.module(path)])
        out, message = symbolized(before)
        assert read(out) == read(before) and "\x1b" not in message, path


@contextlib.contextmanager
def leased(path):
    """A file with a lease held by this process: a blocking open waits for lease-break-time (45 s), and succeeds."""
    shutil.copy(os.path.join(WORK, "kept.dwo"), path)
    held = os.open(path, os.O_RDWR)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    yield
    os.close(held)
    signal.signal(signal.SIGIO, before)


@test
def files_of_debug_information_that_a_program_names_are_opened_only_if_they_are_regular_and_of_its_owner():
    need("gcc", "objcopy")
    folder = os.path.join(WORK, "split-files")
    os.makedirs(folder)
    text = write(os.path.join(folder, "text.c"), C.encode())
    sh("gcc", "-O2", "-g", "-gsplit-dwarf", "-fPIE", "-pie", "-o", os.path.join(folder, "app"), text, cwd=folder)
    split = glob.glob(os.path.join(folder, "*.dwo"))
    assert len(split) == 1, split
    split = os.path.abspath(split[0])
    shutil.copy(split, os.path.join(WORK, "kept.dwo"))
    program = Program(os.path.join(folder, "app"))
    program.calls = plain().calls
    before = trace(23, [[pc] for pc in program.pcs()], [program.module()])

    def shown():
        out, message = symbolized(before)
        return [names(stack) for stack in Tables(out).stacks[0].values()], message

    whole, message = shown()
    assert "missing" not in message and any(len(frames) > 2 for frames in whole), (whole, message)

    def other_owner():
        shutil.copy(os.path.join(WORK, "kept.dwo"), split)
        os.chown(split, 12345, 12345)

    def private():
        # A file owned by root, named by another user's program.
        shutil.copy(os.path.join(WORK, "kept.dwo"), split)
        os.chmod(split, 0o600)
        os.chown(program.path, 12345, 12345)

    for name, make, reason in (
        ("fifo", lambda: os.mkfifo(split), "not a regular file"),
        ("device", lambda: os.symlink("/dev/zero", split), "not a regular file"),
        ("terminal", lambda: os.symlink("/dev/tty", split), "not a regular file"),
        ("no program", lambda: shutil.copy("/etc/passwd", split), "not an ELF program"),
        ("holes", lambda: (shutil.copy(program.path, split), os.truncate(split, 1 << 40)), "nearly all of the file is holes"),
        ("other owner", other_owner, "not a regular file of root, the user"),
        ("private", private, "not a regular file of root, the user"),
    ):
        if make in (other_owner, private) and os.geteuid() != 0:
            continue
        os.unlink(split)
        make()
        got, message = shown()
        assert len(got) == len(whole) and got != whole, name
        assert f"{split}: {reason}" in message and "missing" in message, (name, message)
    if os.geteuid() == 0:
        os.chown(program.path, 0, 0)
    os.unlink(split)
    with leased(split):
        got, message = shown()
        assert got != whole and "lease" in message, message
    os.unlink(split)
    shutil.copy(os.path.join(WORK, "kept.dwo"), split)
    assert shown()[0] == whole


def with_section(program, path, name, flags, data):
    """A copy of an ELF file with an additional section."""
    source = read(program)
    header = list(struct.unpack("<16sHHIQQQIHHHHHH", source[:64]))
    sections = [list(struct.unpack_from("<IIQQQQIIQQ", source, header[6] + 64 * i)) for i in range(header[12])]
    texts = sections[header[13]]
    strings = source[texts[4] : texts[4] + texts[5]]
    out = bytearray(source)
    sections.append([len(strings), 1, flags, 0, len(out), len(data), 0, 0, 1, 0])
    out += data
    texts[4], texts[5] = len(out), len(strings) + len(name) + 1
    out += strings + name.encode() + b"\0"
    header[6], header[12] = len(out), len(sections)
    for section in sections:
        out += struct.pack("<IIQQQQIIQQ", *section)
    out[:64] = struct.pack("<16sHHIQQQIHHHHHH", *header)
    return write(path, out)


@test
def a_program_that_takes_too_long_to_read_has_no_names():
    """No time at all is left for it here; the trace is copied as it is."""
    program = plain()
    before = trace(23, [[program.pcs()[0]]], [program.module(program.path)])
    p = subprocess.run([TRAIL, "symbolize", before], capture_output=True, env={**ENV, "TRAIL_SYMBOLS_SECONDS": "0"}, timeout=240)
    assert p.returncode == 0, p
    assert f"{program.path}: reading it takes too long; names and lines from it are missing" in p.stderr.decode(), p.stderr
    assert read(before) == p.stdout


@test
def what_is_compressed_is_unpacked_only_up_to_a_multiple_of_the_file():
    need("gcc", "strip")
    program, stripped, _ = library("packed")
    gib, size = bytes(1 << 20), 1 << 30
    zlib_packer, packed = zlib.compressobj(9), b""
    for _ in range(size >> 20):
        packed += zlib_packer.compress(gib)
    packed += zlib_packer.flush()
    xz = lzma.LZMACompressor(preset=1)
    packed_xz = b"".join(xz.compress(gib) for _ in range(size >> 20)) + xz.flush()
    gzip_packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    chdr = struct.pack("<IIQQ", 1, 0, size, 1)
    folder = os.path.join(WORK, "packed")
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    bombs = [
        with_section(stripped, os.path.join(folder, "new"), ".debug_info", 0x800, chdr + packed),
        with_section(
            stripped, os.path.join(folder, "old"), ".zdebug_info", 0, b"ZLIB" + struct.pack(">Q", size) + packed
        ),
        with_section(stripped, os.path.join(folder, "xz"), ".gnu_debugdata", 0, packed_xz),
        write(
            os.path.join(folder, "gzip"),
            b"".join(gzip_packer.compress(gib) for _ in range(size >> 20)) + gzip_packer.flush(),
        ),
    ]
    for path in bombs:
        before = trace(23, [[program.pcs()[0]]], [program.module(path)])
        p = subprocess.Popen([TRAIL, "symbolize", before, "-o", before + ".named"], stderr=subprocess.PIPE, env=ENV)
        message = p.stderr.read().decode()
        _, status, usage = os.wait4(p.pid, 0)
        assert status == 0, message
        assert f"{path}: " in message, message
        # The process that reads programs is this one's child by now. The sizes include the sanitizers' shadow memory.
        _, _, reading = os.wait4(-1, 0)
        most = max(usage.ru_maxrss, reading.ru_maxrss)
        assert most < size // 5 // 1024, (path, most)
    # Sections compressed by compilers and debuggers are still read.
    for kind in ("zlib", "zlib-gnu"):
        path = os.path.join(folder, kind)
        sh("objcopy", f"--compress-debug-sections={kind}", program.path, path)
        check_named(program, path, [program.module(path)])


@test
def a_damaged_trace_is_copied_to_its_end():
    program = plain()
    for version in (11, 21, 22, 23, 26):
        lines = list(v2_generation(version, [[program.pcs()[0]]], [program.module()])) if version >= 22 else None
        whole = trace(version, [[program.pcs()[0]]], [program.module()], f"whole-{version}")
        data = read(whole)
        cut = os.path.join(WORK, "cut.trace")
        for size in range(17, len(data), 7):
            write(cut, data[:size])
            p = run("symbolize", cut, "-o", cut + ".named")
            assert p.returncode in (0, 1), p.stderr
            assert os.path.exists(cut + ".named")
            made = read(cut + ".named")
            assert len(made) >= size and made[:16] == data[:16]
        write(cut, data + b"\xff" * 300)
        p = run("symbolize", cut, "-o", cut + ".named")
        assert p.returncode == 1 and read(cut + ".named").endswith(b"\xff" * 300)
        named = read(symbolized(whole)[0])
        assert read(cut + ".named") == named + b"\xff" * 300, "what came before is named"


# MARK: The command


@test
def stdin_and_stdout():
    program = plain()
    path = trace(23, [[program.pcs()[0]]], [program.module()])
    out, _ = symbolized(path)
    assert good("symbolize", "-", stdin=read(path)).stdout == read(out)
    assert good("symbolize", path, "-o", "-").stdout == read(out)


@test
def mistakes_are_told():
    program = plain()
    path = trace(23, [[program.pcs()[0]]], [program.module()])
    before = read(path)
    assert run("symbolize", path, "-o", path).returncode == 2 and read(path) == before
    assert run("symbolize").returncode == 2
    assert run("symbolize", path, path).returncode == 2
    assert run("symbolize", "/nonexistent", "-o", path + ".x").returncode == 3
    assert run("symbolize", path, "-o", "/nonexistent/x").returncode == 3
    none = write(os.path.join(WORK, "none"), b"no trace at all, that is")
    assert run("symbolize", none, "-o", path + ".x").returncode == 1
    old = assembled(5, ["Batch p=0 seq=1 ticks=1"], "old")
    p = run("symbolize", old, "-o", path + ".x")
    assert p.returncode == 1 and "--binary" in p.stderr, p.stderr
    assert not os.path.exists(path + ".x"), "what is no trace is not left behind"


@test
def the_result_is_told():
    program = plain()
    path = trace(23, [[program.pcs()[0], 99]], [program.module()])
    out, message = symbolized(path)
    assert "2 PCs: 1 named, 1 left as they were (1 in no module)" in message, message
    assert f"trail summary {out}" in message


failed = main()
shutil.rmtree(WORK)
sys.exit(failed)
