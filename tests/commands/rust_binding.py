#!/usr/bin/env python3
"""bindings/rust: its declarations, compared with C; events and tables, compared with the exported
ones; annotations, in a trace of the program's own and under trail record; what the compiler must
refuse; the example. TAP.

usage: rust_binding.py TRAIL SOURCE_ROOT LIBTRAIL LIBTRAIL_RECORD SANITIZERS records|records-not COMPILER...

The two libraries are in one folder.
"""

import csv
import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, answer, equal, good, good_text, trace as assembled  # noqa: E402
from tap import Skip, main, test  # noqa: E402

LIBRARIES, SANITIZERS, RECORDS, CC = os.path.dirname(os.path.abspath(sys.argv[3])), sys.argv[5], sys.argv[6], sys.argv[7:]
RECORDED = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
HERE = os.path.dirname(os.path.abspath(__file__))
SPACE = os.path.join(WORK, "rust")  # a copy, because cargo writes beside the sources
TARGET = os.path.join(WORK, "target")
COMMON = ("trace", "file", "host", "day")
CARGO = next(filter(os.path.exists, ["/usr/bin/cargo", shutil.which("cargo") or ""]), None)
RUSTC = os.path.join(os.path.dirname(CARGO or ""), "rustc")
# Uses no registry.
ENV = {**os.environ, "TRAIL_LIB_DIR": LIBRARIES, "LD_LIBRARY_PATH": LIBRARIES, "CARGO_TARGET_DIR": TARGET,
       "CARGO_HOME": os.path.join(WORK, "cargo"), "CARGO_NET_OFFLINE": "true", "RUSTC": RUSTC}  # fmt: skip


def ran(*args, code=0, env=ENV):
    p = subprocess.run(args, cwd=SPACE, env=env, capture_output=True, text=True, timeout=500)
    assert p.returncode == code, f"{args}: {p.returncode}: {p.stderr[-2500:]}"
    return p.stdout


def content(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def program(name):
    """The path of a test program or an example, built by `the_workspace_builds`."""
    return os.path.join(TARGET, "debug", "examples", name)


@test
def the_workspace_builds_offline_without_a_crate_from_a_registry():
    shutil.copytree(os.path.join(ROOT, "bindings", "rust"), SPACE)
    for path in glob.glob(os.path.join(HERE, "rust", "*.rs")):
        shutil.copy(path, os.path.join(SPACE, "trail", "examples"))
    ran(CARGO, "build", "--offline", "--lib", "--examples")
    equal(sorted(re.findall(r'^name = "(.*)"', content(SPACE, "Cargo.lock"), re.M)), ["trail", "trail-sys"])


@test
def each_feature_needs_only_its_library():
    for feature, library, example in (("read", "trail", "ended_waits"), ("record", "trail-record", "annotate")):
        folder = os.path.join(WORK, feature)
        os.makedirs(folder)
        os.symlink(os.path.join(LIBRARIES, f"lib{library}.so"), os.path.join(folder, f"lib{library}.so"))
        env = {**ENV, "TRAIL_LIB_DIR": folder, "CARGO_TARGET_DIR": os.path.join(folder, "target")}
        ran(CARGO, "build", "--offline", "-p", "trail", "--no-default-features", "--features", feature, "--example", example, env=env)


@test
def a_missing_library_is_an_error_that_says_what_to_do():
    env = {**ENV, "PKG_CONFIG_LIBDIR": WORK, "CARGO_TARGET_DIR": os.path.join(WORK, "without")}
    del env["TRAIL_LIB_DIR"]
    p = subprocess.run([CARGO, "build", "--offline", "-p", "trail-sys"], cwd=SPACE, env=env, capture_output=True, text=True, timeout=500)
    assert p.returncode != 0 and "install libtrail-dev, or set TRAIL_LIB_DIR" in p.stderr and "panicked" not in p.stderr, p.stderr


# The declarations. The headers for reading and recording are not included together: one name is a
# type in one and a function in the other.

DECLARED = content(ROOT, "bindings", "rust", "trail-sys", "src", "lib.rs")
PARTS = [("trail/tables.h", DECLARED.split("// record.h\n")[0]), ("trail/record.h", DECLARED.split("// record.h\n")[1])]
TYPES = {"c_char": "char", "c_int": "int", "c_long": "long", "c_uint": "unsigned", "c_void": "void", "usize": "size_t", "bool": "bool",
         "AtomicU32": "uint32_t", "i32": "int32_t", "u32": "uint32_t", "i64": "int64_t", "u64": "uint64_t", "u8": "uint8_t",
         "trail_scope_": "struct trail_scope_"}  # fmt: skip


def c_type(rust):
    """Returns a type in C notation: *const *mut T is T *const *."""
    if pointer := re.fullmatch(r"\*(const|mut) (.*)", rust):
        return c_type(pointer[2]) + (" const *" if pointer[1] == "const" else " *")
    rust = rust.split("::")[-1]
    return TYPES.get(rust, rust)


def fields(text):
    """Yields (struct, field, C struct, C path) for all fields. Members of trail_event's union are separate structs."""
    for name, body in re.findall(r"pub struct (\w+) \{\n(.*?)\n\}", text, re.S):
        of = re.fullmatch(r"trail_event_(\w+)", name)
        for field in re.findall(r"pub (r#\w+|\w+):", body):
            if field != "of":
                plain = field.replace("r#", "")
                yield (name, field, "trail_event", f"{of[1]}.{plain}") if of else (name, field, c_type(name), plain)


def structs(text):
    return [name for name in re.findall(r"pub struct (\w+) \{", text) if not name.startswith("trail_event_")]


def constants(text):
    return re.findall(r"pub const (\w+): ", text)


def compiled(header, code):
    """Returns the lines printed by a C program."""
    path = os.path.join(WORK, os.path.basename(header))
    with open(path + ".c", "w") as f:
        f.write(f"#include <stdio.h>\n#include <{header}>\n{code}")
    libraries = ["-L", LIBRARIES, "-ltrail", "-ltrail-record"]
    p = subprocess.run([*CC, "-w", "-I", os.path.join(ROOT, "include"), path + ".c", "-o", path, *libraries], capture_output=True, text=True)
    assert p.returncode == 0, p.stderr[:2500]
    return ran(path).splitlines()


LAYOUT = """#![allow(warnings)]
use std::{mem::{align_of, size_of, MaybeUninit}, ptr::addr_of};
use trail_sys::*;
fn field<T>(name: &str, base: *const u8, field: *const T) { println!("{name} {} {}", field as usize - base as usize, size_of::<T>()); }
fn main() { unsafe {
    let memory = MaybeUninit::<[u64; 512]>::uninit();
    let base: *const u8 = memory.as_ptr().cast();
    LINES
} }
"""


@test
def structs_and_constants_are_those_of_c():
    right, lines = [], []
    for header, text in PARTS:
        c = [f'printf("{name} %zu %zu\\n", sizeof({c_type(name)}), _Alignof({c_type(name)}));' for name in structs(text)]
        lines += [f'println!("{name} {{}} {{}}", size_of::<{name}>(), align_of::<{name}>());' for name in structs(text)]
        for name, field, of, path in fields(text):
            c.append(f'printf("{name}.{field} %zu %zu\\n", offsetof({of}, {path}), sizeof((({of} *)0)->{path}));')
            inside = f"trail_event>()).of.{name[len('trail_event_'):]}" if of == "trail_event" and name != of else f"{name}>())"
            lines.append(f'field("{name}.{field}", base, addr_of!((*base.cast::<{inside}.{field}));')
        c += [f'printf("{name} %llu\\n", (unsigned long long)({name}));' for name in constants(text)]
        lines += [f'println!("{name} {{}}", {name} as i128 as u64);' for name in constants(text)]
        right += compiled(header, f"int main(void) {{ {' '.join(c)} }}\n")
    os.makedirs(os.path.join(SPACE, "trail-sys", "examples"))
    with open(os.path.join(SPACE, "trail-sys", "examples", "layout.rs"), "w") as f:
        f.write(LAYOUT.replace("LINES", "\n    ".join(lines)))
    equal(ran(CARGO, "run", "--offline", "-q", "-p", "trail-sys", "--example", "layout").splitlines(), right)
    assert len(right) > 100, len(right)


@test
def functions_and_types_are_those_of_c():
    """Repeats Rust's declarations in C: a C compiler rejects them if a type differs."""
    for header, text in PARTS:
        again = [f"extern {c_type(kind)} {name};" for name, kind in re.findall(r"pub static (\w+): ([\w:]+);", text)]
        for name, arguments, result in re.findall(r"pub fn (\w+)\(([^)]*)\)(?: -> ([^;]*))?;", text):
            types = [c_type(kind) for kind in re.findall(r"\w+: ([^,]+)", arguments)]
            again.append(f"extern {c_type(result) if result else 'void'} {name}({', '.join(types)});")
        for name, kind in re.findall(r"pub type (\w+) = (\w+);", text):
            again.append(f'_Static_assert(__builtin_types_compatible_p({name}, {c_type(kind)}), "{name}");')
        assert len(again) >= 10, again
        equal(compiled(header, "\n".join(again) + "\nint main(void) { return 0; }\n"), [])


# Reading


def exported(trace, table, *options):
    rows = csv.reader(io.StringIO(good_text("export", "--to=csv", f"--table={table}", *options, trace), newline=""))
    names, *rows = rows
    own = [i for i, name in enumerate(names) if name not in COMMON]
    return [names[i] for i in own], [[row[i] for i in own] for row in rows]


def dumped(*args, code=0):
    return [json.loads(line) for line in ran(program("dump"), *args, code=code).split("\n")[:-1]]


@test
def all_tables_are_those_of_the_command():
    for path in (RECORDED, EXAMPLES[0], assembled("everything-1.26"), assembled("everything-1.21")):
        tables = dict(line.split(" ") for line in ran(program("dump"), "tables", path).splitlines())
        equal(list(tables), re.findall(r"VIEW (\w+) AS", good_text("export", "--schema=duckdb")))
        for table, columns in tables.items():
            equal((columns.split(","), dumped(table, path)), exported(path, table), (path, table))


@test
def only_the_columns_that_are_asked_for_come_and_those_of_a_window():
    names, rows = exported(RECORDED, "states", "--from=20ms", "--to=30ms")
    wanted = ["duration_ns", "state"]
    right = [[row[names.index(name)] for name in wanted] for row in rows]
    equal(dumped("states", RECORDED, "20000000", "30000000", *wanted), right)
    assert right
    for table, column in (("nothing", ""), ("states", "nothing"), ("states", "file")):
        out = ran(program("dump"), table, RECORDED, "-", "-", *filter(None, [column]), code=1)
        assert re.fullmatch(r"9 None no table or column (nothing|file)\n", out), out


def frames(event, key):
    return [[int(f["pc"], 16), f.get("func", ""), f.get("file", ""), f.get("line", 0)] for f in event.get(key, [])]


def about(e):
    """The fields of a JSON event that the test's program prints."""
    kind = e["kind"]
    if kind == "StateTransition":
        return [e["id"], e["from"], e["to"], *([e.get("reason", "")] if e["resource"] == "goroutine" else [])]
    keys = {"Metric": ("name", "value"), "Label": ("id", "label"), "Task": ("task", "parent", "name"), "Range": ("name",), "Region": ("task", "name"),
            "Log": ("task", "category", "message")}  # fmt: skip
    of = next((keys[word] for word in keys if kind.startswith(word)), ())
    return [e.get(key, {"parent": None, "task": 0}.get(key, "")) for key in of]


@test
def events_are_those_of_the_command():
    for path in (RECORDED, EXAMPLES[0], EXAMPLES[3], assembled("everything-1.26")):
        right = []
        for line in good_text("print", "--format=jsonl", "--stacks", path).split("\n")[:-1]:
            e = json.loads(line)
            right.append([e["time_ns"], e["kind"], *(e.get(key) for key in "gpm"), about(e), frames(e, "stack"), frames(e, "transition_stack")])
        equal(len(right) > 20, True)
        for ours, theirs in zip(dumped("reader", path), right):
            equal(ours, theirs, path)
        equal(len(dumped("reader", path)), len(right))


@test
def versions_and_findings_are_those_of_the_command():
    version = answer("info", RECORDED)["version"]
    stated = re.search(r"version: '([^']+)'", content(ROOT, "meson.build"))[1]
    equal(ran(program("dump"), "version", RECORDED), f"{stated} {version}\n")
    ours, right = ran(program("dump"), "list", RECORDED), answer("summary", RECORDED)["findings"]
    equal(re.findall(r', text: "([^"]*)", gain_ns: (\d+), .*function: Some\("(.*?)"\), object: Some\("(.*?)"\), goroutine: Some\((\d+)\), task: None, begin_ns: Some\((\d+)\)', ours),
          [tuple(str(finding[key]) for key in ("text", "gain_ns", "function", "object", "goroutine", "begin_ns")) for finding in right])  # fmt: skip
    assert right


@test
def errors_have_a_code_and_a_place_and_what_is_good_comes_before():
    cut = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[3], "rb") as whole, open(cut, "wb") as to:
        to.write(whole.read()[:-5000])
    *rows, error = ran(program("dump"), "reader", cut, code=1).splitlines()
    assert error.startswith(f"3 Some({0x7AF7}) "), error
    equal(len(rows), len(good("print", "--format=jsonl", cut, code=1).splitlines()))
    assert ran(program("dump"), "reader", __file__, code=1).startswith("1 Some(0) "), "not a trace"
    assert "No such file" in ran(program("dump"), "reader", os.path.join(WORK, "none"), code=1)


@test
def the_example_answers_what_the_one_in_python_does():
    states, stacks = (exported(RECORDED, table) for table in ("states", "stacks"))
    place = {row[stacks[0].index("stack")]: row[stacks[0].index("function")] for row in stacks[1]}
    total = {}
    for row in states[1]:
        state = dict(zip(states[0], row))
        if state["state"] == "Waiting" and state["waker_stack"]:
            name = place[state["waker_stack"]]
            total[name] = total.get(name, 0) + int(state["duration_ns"])
    out = ran(program("ended_waits"), RECORDED)
    ours = {line.split(" ended by ")[1].split(",")[0]: float(line.split()[0]) for line in out.splitlines()}
    equal(ours, {name: float(f"{ns / 1e6:.3f}") for name, ns in total.items()})
    assert "ended by flush_once, most for mutex cache_mu" in out, out


# Programs that must not compile: the number of the compiler's error, and the text; 0: it compiles.

BATCH = "let trace = trail::Trace::open(\"x\").unwrap(); let mut rows = trace.rows(\"states\", &[], trail::Window::default()).unwrap();"
EVENTS = "let mut reader = trail::Trace::open(\"x\").unwrap().events().unwrap();"
REFUSED = [
    (0, BATCH + "while let Some(batch) = rows.next().unwrap() { println!(\"{}\", batch.len()); }"),
    (499, BATCH + "let first = rows.next().unwrap().unwrap(); rows.next().unwrap(); println!(\"{}\", first.len());"),
    (505, BATCH + "let first = rows.next().unwrap().unwrap(); drop(rows); println!(\"{}\", first.len());"),
    (505, BATCH + "let text = { let first = rows.next().unwrap().unwrap(); first.column(\"state\").unwrap().get(0) }; drop(rows); println!(\"{text:?}\");"),
    (0, EVENTS + "let n = reader.next().unwrap().unwrap().iter().len(); reader.next().unwrap(); println!(\"{n}\");"),
    (499, EVENTS + "let event = reader.next().unwrap().unwrap().iter().next().unwrap(); reader.next().unwrap(); println!(\"{}\", event.time_ns());"),
    (505, EVENTS + "let about = reader.next().unwrap().unwrap().iter().next().unwrap().about(); drop(reader); println!(\"{about:?}\");"),
    (0, EVENTS + "std::thread::spawn(move || { reader.next().unwrap(); });"),
    (0, BATCH + "std::thread::spawn(move || { rows.next().unwrap(); });"),
    (277, EVENTS + "let shared = std::sync::Arc::new(reader); std::thread::spawn(move || drop(shared));"),
    (0, "let task = trail::task!(\"a\"); std::thread::spawn(move || drop(task));"),
    (277, "let region = trail::Region::new(0, trail::name!(\"a\")); std::thread::spawn(move || drop(region));"),
    (0, "fn send<T: Send>(_: T) {} send(trail::in_region(0, trail::name!(\"a\"), async { std::future::ready(()).await }));"),
    (277, "fn send<T: Send>(_: T) {} send(trail::in_region(0, trail::name!(\"a\"), async { trail::region!(\"b\"); std::future::ready(()).await }));"),
    (80, "const NAME: trail::Name = trail::Name::ending_with_nul(\"no end\"); let _task = trail::Task::new(0, NAME);"),
]


@test
def misuse_does_not_compile():
    for i, (number, code) in enumerate(REFUSED):
        path = os.path.join(WORK, f"refused{i}.rs")
        with open(path, "w") as f:
            f.write(f"fn main() {{ {code} }}\n")
        p = subprocess.run([RUSTC, "--edition=2021", "--emit=metadata", "-o", path + "meta", path, "--extern", f"trail={TARGET}/debug/libtrail.rlib",
                            "-L", f"dependency={TARGET}/debug/deps"], capture_output=True, text=True)  # fmt: skip
        numbers = [int(n) for n in re.findall(r"^error\[E0*(\d+)\]", p.stderr, re.M)]
        if number == 277 and not numbers and "cannot be sent between threads safely" in p.stderr:
            numbers = [277]  # of futures, without a number
        equal((set(numbers), p.returncode != 0), ({number} - {0}, number != 0), f"{code}\n{p.stderr[-1500:]}")


# Annotations


def annotations(path):
    """Returns (kind, name or message, name of the task) for each annotation, in order."""
    kinds = "TaskBegin,TaskEnd,RegionBegin,RegionEnd,Log"
    events = [json.loads(line) for line in good_text("print", "--format=jsonl", f"--kind={kinds}", path).splitlines()]
    tasks = {e["task"]: e["name"] for e in events if e["kind"] == "TaskBegin"}
    events = [e for e in events if e.get("category") in (None, "off", "words")]  # without those of trail record
    rows = [(e["kind"], e.get("name", e.get("message", "")), tasks.get(e.get("parent") if e["kind"] == "TaskBegin" else e.get("task"))) for e in events]
    return events, rows


ANNOTATED = [
    ("TaskBegin", "request", None),
    ("TaskBegin", "part", "request"),
    ("RegionBegin", "parse", "request"),
    ("RegionBegin", "inner", None),
    ("Log", "1 of 2", "request"),
    ("Log", "cut", None),
    ("RegionEnd", "inner", None),
    ("RegionEnd", "parse", "request"),
    *[("RegionBegin", "fetch", "part"), ("RegionEnd", "fetch", "part")] * 3,
    ("TaskEnd", "part", "part"),
    ("RegionBegin", "pool is on", None),
    ("RegionEnd", "pool is on", None),
    ("TaskEnd", "request", "request"),
]


@test
def annotations_are_in_a_trace_of_the_program():
    path = os.path.join(WORK, "annotated.trace")
    ran(program("annotate"), path)
    good("check", "--strict", path)
    events, rows = annotations(path)
    equal(rows, ANNOTATED)
    threads = [e["g"] for e in events if e.get("name") == "fetch"]
    equal((len(set(threads)), threads[::2]), (3, threads[1::2]))
    symbolized = os.path.join(WORK, "symbolized.trace")
    good("symbolize", path, "-o", symbolized)
    events, _ = annotations(symbolized)
    begin = next(e for e in events if e.get("name") == "parse")["stack"]
    equal((begin[0]["func"], os.path.basename(begin[0]["file"])), ("annotate::parse", "annotate.rs"))


@test
def annotations_are_in_a_recording():
    if RECORDS != "records":
        raise Skip("programs cannot be recorded here")
    path = os.path.join(WORK, "recorded.trace")
    ran(TRAIL, "record", "-q", "-o", path, "--", program("annotate"))
    _, rows = annotations(path)
    equal(rows, [("Log", "1", None), *ANNOTATED])


if __name__ == "__main__":
    if SANITIZERS != "none" or not CARGO:
        print("1..0 # SKIP", "no cargo" if SANITIZERS == "none" else "a library with sanitizers cannot be loaded into Rust")
        sys.exit(0)
    sys.exit(main())
