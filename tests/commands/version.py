#!/usr/bin/env python3
"""`trail --version`: the commit, the libraries that are loaded at run time, and the version, which is
in several files. TAP.

usage: version.py TRAIL SOURCE_ROOT COMPILER...

The libraries are built here: good ones that report a version, old ones, one that crashes, and one
that never finishes loading. The commit is compared with git's.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TRAIL, ROOT, CC = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
WORK = pathlib.Path(tempfile.mkdtemp(prefix="trail-version-"))
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "TRAIL_", "XDG_"))} | {"LC_ALL": "C", "HOME": str(WORK)}

tests = []


class Skip(Exception):
    pass


def test(function):
    tests.append(function)
    return function


def version(**env):
    """The first line, and for each name in the others its state and text."""
    p = subprocess.run([TRAIL, "--version"], capture_output=True, text=True, env={**ENV, **env})
    assert p.returncode == 0, f"exit {p.returncode}: {p.stderr}"
    first, *lines = p.stdout.splitlines()
    rows = (re.fullmatch(r"  (ok|note) +(\S+(?: \S+)*?)  +(\S.*)", line) for line in lines)
    return first, {row[2]: (row[1], row[3]) for row in rows if row}


def library(name, code):
    """A shared library, alone in a folder."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    p = subprocess.run([*CC, "-shared", "-fPIC", "-w", "-x", "c", "-", "-o", folder / name], input=code, text=True,
                       capture_output=True)
    assert p.returncode == 0, p.stderr
    return folder


def duckdb_functions():
    return re.findall(r"FUNCTION\([^,]*, (\w+),", (ROOT / "src/sql/duckdb.h").read_text())


def duckdb(names):
    code = "".join(f"int duckdb_{name}(void) {{ return 0; }}\n" for name in names if name != "library_version")
    return library("libduckdb.so", code + 'const char *duckdb_library_version(void) { return "v9.8.7"; }\n')


# The version


@test
def the_first_line_is_the_version_and_the_commit():
    first, _ = version()
    stated = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    assert re.fullmatch(rf"trail {re.escape(stated)} \(([0-9a-f]{{12}}\+?|unknown)\)", first), first


BINDINGS = {
    "go/trail.go": r'^const Version = "(.*)"$',
    "python/trail.py": r'^__version__ = "(.*)"$',
    "rust/trail/Cargo.toml": r'^version = "(.*)"$',
    "rust/trail/Cargo.toml ": r'^trail-sys = .*version = "(.*?)"',
    "rust/trail-sys/Cargo.toml": r'^version = "(.*)"$',
}


@test
def all_files_state_the_same_version():
    stated = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text())[1]
    newest = re.search(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M)[1]
    package = re.match(r"trail \(([^)]+)-[^-)]+\)", (ROOT / "packaging/debian/changelog").read_text())[1]
    assert newest == stated, f"CHANGELOG.md: {newest}, meson.build: {stated}"
    assert package == stated, f"packaging/debian/changelog: {package}, meson.build: {stated}"
    for path, pattern in BINDINGS.items():
        ours = re.search(pattern, (ROOT / "bindings" / path.strip()).read_text(), re.M)[1]
        assert ours == stated, f"bindings/{path}: {ours}, meson.build: {stated}"


# The commit


def git(*args, cwd):
    p = subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *args], cwd=cwd, env=ENV, capture_output=True,
                       text=True)
    assert p.returncode == 0, f"git {args}: {p.stderr}"
    return p.stdout.strip()


def tree(folder):
    """A tree that contains only the script, outside of a repository."""
    (folder / "tools").mkdir(parents=True)
    (folder / "packaging").mkdir()
    shutil.copy(ROOT / "tools/commit", folder / "tools")
    return folder


def commit(folder, *args, **env):
    p = subprocess.run([folder / "tools/commit", *args], capture_output=True, text=True, env={**ENV, **env})
    return p.stdout.strip() if p.returncode == 0 else None


def repository(name):
    if not shutil.which("git"):
        raise Skip("no git")
    folder = tree(WORK / name)
    git("init", "-q", ".", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "one", cwd=folder)
    return folder


@test
def the_commit_is_that_of_git_with_a_plus_for_changes():
    folder = repository("clean")
    assert commit(folder) == git("rev-parse", "HEAD", cwd=folder)[:12]
    with open(folder / "tools/commit", "a") as f:
        f.write("# changed\n")
    assert commit(folder) == git("rev-parse", "HEAD", cwd=folder)[:12] + "+"


@test
def a_tree_inside_of_another_repository_has_not_its_commit():
    assert commit(tree(repository("outer") / "inner")) is None


@test
def a_packed_tree_knows_its_commit_without_git():
    folder, packed = repository("source"), tree(WORK / "packed")
    with open(folder / "tools/commit", "a") as f:
        f.write("# not committed, so not packed\n")
    assert commit(folder, "--dist", MESON_PROJECT_DIST_ROOT=str(packed)) == ""
    assert commit(packed) == git("rev-parse", "HEAD", cwd=folder)[:12]


@test
def without_git_and_file_there_is_no_commit():
    assert commit(tree(WORK / "alone")) is None


# The libraries


@test
def a_complete_duckdb_is_found_with_its_version():
    folder = duckdb(duckdb_functions())
    state, text = version(TRAIL_DUCKDB=str(folder))[1]["DuckDB"]
    assert (state, text) == ("ok", f"v9.8.7, {folder.resolve()}/libduckdb.so"), text


@test
def an_old_duckdb_is_a_note_with_what_it_lacks():
    names = duckdb_functions()
    state, text = version(TRAIL_DUCKDB=str(duckdb(names[:-1])))[1]["DuckDB"]
    assert state == "note" and f"duckdb_{names[-1]};" in text and "1.5" in text, text


@test
def without_duckdb_it_is_said_how_to_get_it():
    p = subprocess.run([TRAIL, "--version"], capture_output=True, text=True,
                       env={**ENV, "TRAIL_DUCKDB": str(WORK / "nothing")})
    assert p.returncode == 0 and re.search(r"note +DuckDB .*\n +to do: npm install ", p.stdout), p.stdout


@test
def a_library_that_crashes_or_hangs_does_not_take_the_command_along():
    begin = "#include <unistd.h>\n__attribute__((constructor)) static void begin(void)"
    for code, says in (("{ *(volatile int *)0 = 0; }", "crashes"), ("{ for (;;) pause(); }", "within 5 s")):
        state, text = version(TRAIL_DUCKDB=str(library("libduckdb.so", f"{begin} {code}\n")))[1]["DuckDB"]
        assert state == "note" and says in text, text


@test
def libmicrohttpd_and_libunwind_are_those_that_are_loaded():
    functions = re.findall(r"^    FUNCTION\((\w+)\)", (ROOT / "src/serve/http_library.c").read_text(), re.M)
    code = "".join(f"int MHD_{name}(void) {{ return 0; }}\n" for name in functions if name != "get_version")
    folder = library("libmicrohttpd.so.12", code + 'const char *MHD_get_version(void) { return "7.6.5"; }\n')
    assert version(LD_LIBRARY_PATH=str(folder))[1]["libmicrohttpd"] == ("ok", "7.6.5")
    folder = library("libunwind.so.8", "int unw_backtrace(void) { return 0; }\n")
    assert version(LD_LIBRARY_PATH=str(folder))[1]["libunwind"] == ("ok", f"{folder.resolve()}/libunwind.so.8")


@test
def libraries_that_cannot_be_loaded_are_notes():
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    for name in ("libmicrohttpd.so.12", "libunwind.so.8"):
        (folder / name).write_text("no library")
    rows = version(LD_LIBRARY_PATH=str(folder))[1]
    for name in ("libmicrohttpd", "libunwind"):
        assert rows[name][0] == "note" and f"{name}.so" in rows[name][1], rows[name]


@test
def context_switches_are_those_of_doctor():
    p = subprocess.run([TRAIL, "doctor"], capture_output=True, text=True, env=ENV)
    state, text = version()[1]["context switches"]
    assert re.search(rf"{state} +context switches +{re.escape(text)}$", p.stdout, re.M), text


failed = 0
print(f"1..{len(tests)}")
for number, function in enumerate(tests, 1):
    name = function.__name__.replace("_", " ")
    try:
        function()
        print(f"ok {number} - {name}", flush=True)
    except Skip as reason:
        print(f"ok {number} - {name} # SKIP {reason}", flush=True)
    except Exception as error:
        failed += 1
        print(f"not ok {number} - {name}", flush=True)
        for line in str(error).splitlines() or [repr(error)]:
            print(f"# {line}", flush=True)
shutil.rmtree(WORK, ignore_errors=True)
sys.exit(failed > 0)
