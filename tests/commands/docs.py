#!/usr/bin/env python3
"""Checks the documents: links lead somewhere, the README's program is the example that the tests
build, every option in --help is in the manual page, and section 3 has every library function as its
header declares it, with programs that compile. Programs that record are run; their traces must be
good and contain what the page describes. TAP.

usage: docs.py TRAIL SOURCE_ROOT LIBTRAIL_RECORD COMPILER...
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from sub_commands import sub_commands, table

trail, root, recorder, compiler = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4:]
results = []


def check(name, problems):
    results.append((not problems, name, problems))


def links(document):
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        if "://" not in target and not (document.parent / target).exists():
            yield f"no such file: {target}"


def program(text):
    return text[text.index("#include") :].strip()


documents = [*root.glob("*.md"), *root.glob("docs/*.md"), *root.glob("*/README.md")]
for document in documents:
    check(f"links of {document.relative_to(root)}", list(links(document)))

readme, library = (root / "README.md").read_text(), (root / "docs/library.md").read_text()
shown = re.search(r"```c\n(.*?)```", library, re.S).group(1)
example = (root / "examples/count-events/count_events.c").read_text()
check(
    "docs/library.md shows the example that is built",
    [] if program(shown) == program(example) else ["they differ"],
)

for command in sub_commands(root):
    usage = subprocess.run([trail, "help", command], capture_output=True, text=True).stdout
    options = sorted(set(re.findall(r"--([a-z][a-z0-9-]+)", usage.split("Examples:")[0])) - {"help"})
    page = (root / f"man/trail-{command}.1").read_text().replace("\\-", "-")
    missing = [o for o in options if not re.search(rf"Fl -{o}\b|--{o}\b", page)]
    check(f"trail-{command}(1) has every option", missing)


findings = {kind.strip('"') for _, kind in table(root, "src/diagnose/findings.def")}
summary, explained = (root / "man/trail-summary.1").read_text(), (root / "docs/findings.md").read_text()
(part,) = re.findall(r"\.Sh FINDINGS\n(.*?)\.Sh JSON", summary, re.S)
rows = re.findall(r"^\| \[`([a-z-]+)`\]\(#\1\) \|", explained, re.M)
sections = re.findall(r"^### `([a-z-]+)`$", explained, re.M)
for name, listed in {
    "trail-summary(1)": re.findall(r"^\.It Li ([a-z-]+)", part, re.M),
    "the index of docs/findings.md": rows,
    "docs/findings.md": sections,
}.items():
    check(f"{name} has every finding", sorted(findings ^ set(listed)))
tests = "".join(path.read_text() for folder in ("commands", "recording") for path in root.glob(f"tests/{folder}/**/*.py"))
check("each finding has a test", sorted(kind for kind in findings if f'"{kind}"' not in tests))
check("the index of docs/findings.md has the order of its sections", [] if rows == sections else ["it differs"])
for section in re.split(r"^(?=### `)", explained, flags=re.M)[1:]:
    missing = [part for part in ("**What to do:**", "**Reported when") if part not in section]
    check(f"docs/findings.md explains {section.split('`')[1]}", missing)

page = (root / "man/trail-export.1").read_text()
for name, _, _, _, suffixes, *_ in table(root, "src/export/formats.def"):
    listed = page.split("The formats are:")[1].split("\n.El")[0]
    missing = [] if re.search(rf"^\.It Cm .*\b{name}\b", listed, re.M) else [name]
    missing += [suffix for suffix in suffixes.split() if not re.search(rf"[ &]{re.escape(suffix)}[,.]? ?", page)]
    check(f"trail-export(1) has {name} and its suffixes", missing)


def compiles(code):
    """The compiler's messages about C code that uses the public headers."""
    flags = "-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -fsyntax-only -x c".split()
    done = subprocess.run(
        [*compiler, *flags, f"-I{root / 'include'}", "-"], input=code, capture_output=True, text=True
    )
    return done.stderr.splitlines() if done.returncode else []


def traces(folder, shows):
    """Yields faults in the traces that a program left: each must be valid, and each of `shows` must
    be in one of them."""
    found = sorted(folder.glob("*.trace"))
    text = ""
    for trace in found:
        judged = subprocess.run([trail, "check", trace], capture_output=True, text=True)
        if judged.returncode:
            yield from (judged.stdout + judged.stderr).splitlines()
        for form in (["--format=wire"], ["--stacks"]):
            text += subprocess.run([trail, "print", *form, trace], capture_output=True, text=True).stdout
    if not found:
        yield "it left no trace"
    yield from (f"no {word} in its trace" for word in shows if not re.search(rf"\b{word}\b", text))


def runs(code, shows, language="c"):
    """Returns complaints about a program that records: from the compiler and linker, from the
    program, and about its traces."""
    command = ["c++", "-std=c++11"] if language == "c++" else [*compiler, "-std=c11", "-D_DEFAULT_SOURCE"]
    flags = "-O1 -Wall -Wextra -Werror -fno-omit-frame-pointer -rdynamic -pthread".split()
    extra = os.environ.get("EXTRA_CFLAGS", "").split()
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        libraries = [recorder, f"-Wl,-rpath,{pathlib.Path(recorder).parent}"]
        done = subprocess.run(
            [*command, *flags, *extra, f"-I{root / 'include'}", "-x", language, "-", "-x", "none"]
            + [*libraries, "-o", work / "program"],
            input=code,
            capture_output=True,
            text=True,
        )
        if done.returncode == 0:
            done = subprocess.run([work / "program"], cwd=work, capture_output=True, text=True, timeout=240)
        # AddressSanitizer warns about every program that switches stacks.
        told = [line for line in done.stderr.splitlines() if "ASan doesn't fully support makecontext" not in line]
        if done.returncode or told:
            return [f"exit status {done.returncode}", *told]
        return list(traces(work, shows))


def blocks(document, language):
    """Returns all code in a language from a document: one program, shown in pieces."""
    return "".join(re.findall(rf"```{language}\n(.*?)```", document.read_text(), re.S))


recording = re.findall(r"```c\n(.*?)```", readme, re.S)
check(
    "the README's program that records does",
    [line for code in recording for line in runs(code, ["UserTaskBegin", "UserRegionEnd", "UserLog"])]
    if recording
    else ["there is none"],
)
for name, shows in {
    "docs/tracing-a-runtime.md": ["GoCreate", "GoBlock", "GoUnblock", "GoSyscallBegin", "ProcSteal", "parse"],
    "docs/annotating-a-program.md": ["UserTaskBegin", "UserRegionBegin", "UserLog"],
}.items():
    check(f"the program of {name} records", runs(blocks(root / name, "c"), shows))
    more = blocks(root / name, "cpp")
    if more and shutil.which("c++"):
        check(f"the C++ program of {name} records", runs(more, shows, "c++"))


def programs(page):
    """The output of EXAMPLES as shown to a reader."""
    examples = page.split(".Sh EXAMPLES\n")[-1].split("\n.Sh ")[0]
    for display in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", examples, re.S | re.M):
        yield re.sub(r"^\\&", "", display, flags=re.M).replace("\\(aq", "'").replace("\\e", "\\")


def is_macro(name):
    return any(re.search(rf"^#define {name}\(", header, re.M) for header in headers.values())


def declarations(page):
    """The synopsis as C: if it differs from the header, the compiler reports an error."""
    synopsis = page.split(".Sh SYNOPSIS\n")[1].split("\n.Sh ")[0]
    yield from (f"#include <{header}>" for header in re.findall(r"^\.In (\S+)", synopsis, re.M))
    for returns, name, args in re.findall(r"^\.Ft (.+)\n\.Fn (\w+)(.*)", synopsis, re.M):
        if name != "trail_version_is_v2" and not is_macro(name):  # the former is static, because it is inline
            arguments = ", ".join(re.findall(r"\"(.*?)\"", args))
            yield f"{returns} {name}({arguments});"


# What the programs' traces must contain: events, and names in stacks.
records = {
    "trail_record.3": ["GoCreate", "GoStart", "GoDestroy", "ProcStart"],
    "trail_start.3": ["UserRegionBegin", "UserLog"],
    "trail_flight.3": ["UserTaskBegin", "UserRegionBegin"],
    "trail_go.3": ["GoCreate", "GoBlock", "GoUnblock", "GoSyscallBegin", "GoSyscallEnd", "network", "sync"],
    "trail_gc.3": ["GCBegin", "STWBegin", "GCSweepEnd", "HeapAlloc", "HeapGoal", "HeapObjectAlloc", "SpanAlloc"],
    "trail_region.3": ["UserTaskBegin", "UserRegionBegin", "UserLog"],
    "trail_host.3": ["GoBlock", "CPUSample", "greet", "hello.script:2", "hello.script:7"],
}
headers = {path: path.read_text() for path in root.glob("include/trail/*.h")}
pages = {path.name: path.read_text() for path in sorted(root.glob("man/*.3"))}
for path, header in headers.items():
    functions = re.findall(r"^TRAIL_API [^;(]*?(\w+)\(", header, re.M)
    functions += re.findall(r"^static inline [^;(]*?(\w+)\([^{]*?\);", header, re.M)
    functions += re.findall(r"^#define (trail_\w+|TRAIL_REGION)\(", header, re.M)
    functions = [function for function in functions if not function.endswith("_")]
    for what, section in {"NAME": r"^\.Nm (\w+)", "SYNOPSIS": r"^\.Fn (\w+)"}.items():
        told = {name for page in pages.values() for name in re.findall(section, page, re.M)}
        missing = [name for name in functions if name not in told]
        check(
            f"section 3 has every function of {path.name} in {what}",
            missing if functions else ["the header has none"],
        )
def has_name(header, word):
    row = re.fullmatch(r"TRAIL_(?:BLOCK|STW)_(\w+)", word)  # of a table of reasons or kinds
    return re.search(rf"\b{word}\b", header) or (row and f"X({row[1]}," in header)


for name, page in pages.items():
    check(f"{name} declares what the headers do", compiles("\n".join(declarations(page)) + "\n"))
    found = list(programs(page))
    problems = [line for code in found for line in compiles(code)]
    check(f"the program of {name} compiles", problems if found else ["there is none"])
    if name in records:
        problems = [line for code in found for line in runs(code, records[name])]
        check(f"the program of {name} records", problems)
    text = re.sub(r"^\.(Dt|Xr) .*", "", page, flags=re.M)
    words = sorted(set(re.findall(r"\b(?:trail|TRAIL)_\w+", text)))
    unknown = [w for w in words if not any(has_name(h, w) for h in headers.values())]
    check(f"{name} has no name that the headers have not", unknown)

print(f"1..{len(results)}")
for number, (good, name, problems) in enumerate(results, 1):
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
sys.exit(not all(good for good, _, _ in results))
