#!/usr/bin/env python3
"""bindings/go: its own tests, with the oldest and the newest Go here; the example; use by another module. TAP.

usage: go_binding.py TRAIL SOURCE_ROOT
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, answer, equal  # noqa: E402
from go_readers import GO_FOLDERS  # noqa: E402
from sample import ALL  # noqa: E402
from tap import Skip, main, test  # noqa: E402

BINDING = os.path.join(ROOT, "bindings", "go")
RECORDED = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
# Downloads nothing, and needs no C compiler.
ENV = {**os.environ, "TRAIL": TRAIL, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0", "GO111MODULE": "on"}
ENV.pop("GOROOT", None)


def go_commands():
    """Returns {release: path} for each installed Go that the module supports, such as (1, 23), oldest first."""
    needed = int(re.search(r"^go 1\.(\d+)$", text("go.mod"), re.M)[1])
    paths = [f"{folder}/{name}/bin/go" for folder in GO_FOLDERS if os.path.isdir(folder) for name in os.listdir(folder)]
    found = {}
    for path in filter(None, [*paths, shutil.which("go")]):
        if os.access(path, os.X_OK):
            said = subprocess.run([path, "version"], capture_output=True, text=True, env=ENV).stdout
            release = re.search(r"\bgo1\.(\d+)", said)
            if release and int(release[1]) >= needed:
                found.setdefault(int(release[1]), path)
    return [found[release] for release in sorted(found)]


def text(name):
    with open(os.path.join(BINDING, name), encoding="utf-8") as f:
        return f.read()


def go(command, *args, cwd=BINDING):
    """Returns the exit status and the output of a Go command, including error messages."""
    p = subprocess.run([command, *args], cwd=cwd, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=550)
    return p.returncode, p.stdout


def passes(command):
    vet = [["vet", "./..."]] if ALL else []
    for args in (*vet, ["test", "-vet=off", "-count=1", "-timeout=300s", "./..."]):
        status, out = go(command, *args)
        assert status == 0, out


@test
def its_tests_pass_with_the_oldest_go():
    if not ALL:
        raise Skip("only in full, as before a release: it compiles Go's library")
    passes(GO[0])


@test
def its_tests_pass_with_the_newest_go():
    passes(GO[-1])


@test
def the_module_needs_no_other_and_no_c():
    assert not re.search(r"^require", text("go.mod"), re.M)
    status, out = go(FIRST, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.CgoFiles}}{{end}}", "./...")
    # The flight recorder's server needs a Go that has one.
    equal((status, [line for line in out.splitlines() if "/flight " not in line]), (0, ["trail []", "trail/examples/gate []"]))


@test
def the_example_prints_what_costs_more_than_a_share():
    gate = os.path.join(WORK, "gate")
    equal(go(FIRST, "build", "-o", gate, "./examples/gate"), (0, ""))
    env = {**ENV, "PATH": os.path.dirname(TRAIL) + ":" + os.environ["PATH"]}
    findings = [(path, finding) for path in (EXAMPLES[0], RECORDED) for finding in answer("summary", path)["findings"]]
    for share in (0.2, 0.1, 2):
        right = [f"{path}: {finding['text']}\n" for path, finding in findings if finding["weight"] >= share]
        p = subprocess.run([gate, str(share), EXAMPLES[0], RECORDED], capture_output=True, text=True, env=env)
        equal((p.returncode, p.stdout, p.stderr), (int(right != []), "".join(right), ""))
    p = subprocess.run([gate, "0.1", os.path.join(BINDING, "go.mod")], capture_output=True, text=True, env=env)
    assert p.returncode == 2 and "not a Go execution trace" in p.stderr, p


@test
def another_module_uses_it_from_a_folder():
    user = os.path.join(WORK, "user")
    os.makedirs(user, exist_ok=True)
    for name, content in (
        ("go.mod", f"module user\n\ngo 1.19\n\nrequire trail v0.0.0\n\nreplace trail => {BINDING}\n"),
        ("main.go", 'package main\n\nimport "trail"\n\nfunc main() { print(trail.Version) }\n'),
    ):
        with open(os.path.join(user, name), "w") as f:
            f.write(content)
    status, out = go(FIRST, "run", ".", cwd=user)
    assert status == 0 and re.search(rf'^const Version = "{re.escape(out)}"$', text("trail.go"), re.M), out


GO = go_commands()
if not GO:
    print("1..0 # SKIP no Go that the module is for")
    sys.exit(0)
# With only one Go, its library is compiled once.
FIRST = GO[0] if ALL else GO[-1]
sys.exit(main())
