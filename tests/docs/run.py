#!/usr/bin/env python3
"""What the documents say must be so: links lead somewhere, the README's program is the example that the
tests build, and every option of --help stands in the manual page. TAP.

usage: run.py SOURCE_ROOT TRAIL
"""
import pathlib
import re
import subprocess
import sys

root, trail = pathlib.Path(sys.argv[1]), sys.argv[2]
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

print(f"1..{len(results)}")
for number, (good, name, problems) in enumerate(results, 1):
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    for problem in problems:
        print(f"# {problem}")
sys.exit(not all(good for good, _, _ in results))
