#!/usr/bin/env python3
"""What the documents say must be so: links lead somewhere, the README's program is the example that the
tests build, every option of --help stands in the manual page, and section 3 has every function of the
library, as the headers declare it, and programs that compile. TAP.

usage: run.py SOURCE_ROOT TRAIL COMPILER...
"""
import pathlib
import re
import subprocess
import sys

root, trail, compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
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

readme = (root / "README.md").read_text()
shown = re.search(r"```c\n(.*?)```", readme, re.S).group(1)
example = (root / "examples/count-events/count_events.c").read_text()
check(
    "the README shows the example that is built",
    [] if program(shown) == program(example) else ["they differ"],
)

for command in ("info", "print", "check", "assemble"):
    usage = subprocess.run([trail, command, "--help"], capture_output=True, text=True).stdout
    options = sorted(set(re.findall(r"--([a-z][a-z0-9-]+)", usage.split("Examples:")[0])) - {"help"})
    page = (root / f"man/trail-{command}.1").read_text().replace("\\-", "-")
    missing = [o for o in options if not re.search(rf"Fl -{o}\b|--{o}\b", page)]
    check(f"trail-{command}(1) has every option", missing)


def compiles(code):
    """The complaints of the compiler about C code that uses the public headers."""
    flags = "-std=c11 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -fsyntax-only -x c".split()
    done = subprocess.run(
        [*compiler, *flags, f"-I{root / 'include'}", "-"], input=code, capture_output=True, text=True
    )
    return done.stderr.splitlines() if done.returncode else []


def programs(page):
    """The displays of EXAMPLES, as a reader sees them."""
    examples = page.split(".Sh EXAMPLES\n")[-1].split("\n.Sh ")[0]
    for display in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", examples, re.S | re.M):
        yield re.sub(r"^\\&", "", display, flags=re.M).replace("\\(aq", "'").replace("\\e", "\\")


def declarations(page):
    """The synopsis as C: one that is not what the header says is an error to the compiler."""
    synopsis = page.split(".Sh SYNOPSIS\n")[1].split("\n.Sh ")[0]
    yield from (f"#include <{header}>" for header in re.findall(r"^\.In (\S+)", synopsis, re.M))
    for returns, name, args in re.findall(r"^\.Ft (.+)\n\.Fn (\w+)(.*)", synopsis, re.M):
        if name != "trail_version_is_v2":  # static, as it is inline
            arguments = ", ".join(re.findall(r"\"(.*?)\"", args))
            yield f"{returns} {name}({arguments});"


headers = {path: path.read_text() for path in root.glob("include/trail/*.h")}
pages = {path.name: path.read_text() for path in sorted(root.glob("man/*.3"))}
for path, header in headers.items():
    functions = re.findall(r"^TRAIL_API [^;(]*?(\w+)\(", header, re.M)
    for what, section in {"NAME": r"^\.Nm (\w+)", "SYNOPSIS": r"^\.Fn (\w+)"}.items():
        told = {name for page in pages.values() for name in re.findall(section, page, re.M)}
        missing = [name for name in functions if name not in told]
        check(
            f"section 3 has every function of {path.name} in {what}",
            missing if functions else ["the header has none"],
        )
for name, page in pages.items():
    check(f"{name} declares what the headers do", compiles("\n".join(declarations(page)) + "\n"))
    found = list(programs(page))
    problems = [line for code in found for line in compiles(code)]
    check(f"the program of {name} compiles", problems if found else ["there is none"])
    text = re.sub(r"^\.(Dt|Xr) .*", "", page, flags=re.M)
    words = sorted(set(re.findall(r"\b(?:trail|TRAIL)_\w+", text)))
    unknown = [w for w in words if not any(re.search(rf"\b{w}\b", h) for h in headers.values())]
    check(f"{name} has no name that the headers have not", unknown)

print(f"1..{len(results)}")
for number, (good, name, problems) in enumerate(results, 1):
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
sys.exit(not all(good for good, _, _ in results))
