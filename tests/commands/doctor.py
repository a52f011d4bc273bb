#!/usr/bin/env python3
"""`trail doctor` and `trail env` from outside: their reports about all kinds of programs and about the machine. TAP.

usage: doctor.py TRAIL PRELOAD_DIR COMPILER...

Programs are built here, and run with a library in LD_PRELOAD that reports when it is loaded: programs reported as
recordable must load it, refused ones must not (if they can run here at all). execvp decides which programs a word or
script runs. Tests that need software that is not installed are reported as skipped.
"""
import ctypes
import glob
import json
import os
import pathlib
import platform
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
from tap import Skip, main, test

TRAIL, PRELOAD_DIR, CC = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
WORK = tempfile.mkdtemp(prefix="trail-doctor-")
os.chmod(WORK, 0o755)
LOADED = os.path.join(WORK, "libloaded.so")
OPENMP = os.path.join(WORK, "libtrail-ompt.so")
pathlib.Path(OPENMP).touch()  # only its name is printed
ENV = {k: v for k, v in os.environ.items() if k not in ("DEBUGINFOD_URLS", "LD_PRELOAD")}
ENV |= {"LC_ALL": "C", "TRAIL_PRELOAD": LOADED}
DPKG = dict(ENV)
# dpkg is slow: except in its own test, it knows no package.
ENV["PATH"] = os.path.join(WORK, "no-dpkg") + ":" + ENV["PATH"]
NO_DPKG = {**ENV, "PATH": "/nonexistent"}
NOBODY = 65534
X86_64 = platform.machine() == "x86_64"
HELLO = "int main(void) { return 0; }\n"


def sh(*args, **more):
    p = subprocess.run(args, capture_output=True, timeout=300, **more)
    assert p.returncode == 0, f"{args}: {p.stderr.decode()}"
    return p.stdout.decode()


def at(name):
    return os.path.join(WORK, name)


def write(name, data, mode=0o755):
    with open(at(name), "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    os.chmod(at(name), mode)
    return at(name)


os.mkdir(at("no-dpkg"))
write("no-dpkg/dpkg-query", "#!/bin/sh\nexit 1\n")


def read(path):
    with open(path, "rb") as f:
        return f.read()


def build(name, *flags, code=HELLO, compiler=None, language="c"):
    """Builds a C program. Skips the test if the compiler cannot."""
    if os.path.exists(at(name)):
        return at(name)
    command = [*(compiler or CC), "-x", language, "-", "-x", "none", "-o", at(name), *flags]
    if not shutil.which(command[0]):
        raise Skip(f"no {command[0]}")
    p = subprocess.run(command, input=code.encode(), capture_output=True)
    if p.returncode:
        raise Skip(f"{' '.join([command[0], *flags])} does not work here")
    return at(name)


class Report:
    """The report of trail doctor about a program, as JSON and as text."""

    def __init__(self, *args, trail=TRAIL, text=True, **more):
        more.setdefault("env", ENV)
        p = subprocess.run([trail, "doctor", "--json", *args], capture_output=True, timeout=240, **more)
        self.code, self.err = p.returncode, p.stderr.decode()
        assert self.code in (0, 2), f"{args}: exit {p.returncode}: {self.err}"
        assert not self.err, self.err
        self.json = json.loads(p.stdout)
        self.verdict = self.json.get("verdict")
        self.facts = {f["name"]: f for f in self.json["machine"] + self.json.get("program", [])}
        assert self.json["recordable"] == (self.code == 0)
        problems = [f for f in self.facts.values() if f["state"] == "problem"]
        assert (self.code == 2) == (problems != []), problems
        if text:
            p = subprocess.run([trail, "doctor", *args], capture_output=True, timeout=240, **more)
            assert p.returncode == self.code
            self.text = p.stdout.decode()
            for name, f in self.facts.items():
                assert re.search(rf"^  {f['state']} +{name} ", self.text, re.M), name

    def says(self, *words, fact="recording"):
        text = self.facts[fact]["text"] + " " + self.facts[fact].get("todo", "")
        for word in words:
            assert word in text, f"no '{word}' in: {text}"


def refused(path, verdict, *words, **more):
    """The program is refused, with the problem, the reason, and what to do."""
    report = Report(path, **more)
    assert report.code == 2 and report.verdict == verdict, (path, report.verdict, report.facts)
    expected = {"not-found": 127, "not-executable": 126}.get(verdict, 2)
    assert report.json["exit_status"] == expected
    report.says(path, *words)
    return report


def recordable(path, **more):
    report = Report(path, **more)
    assert report.code == 0 and report.verdict == "recordable", report.facts.get("recording")
    assert report.json["exit_status"] == 0
    return report


def loads(*command, first="", **more):
    """Whether a library in LD_PRELOAD is loaded into the program."""
    env = {**ENV, "LD_PRELOAD": first + LOADED}
    p = subprocess.run(command, env=env, capture_output=True, timeout=240, **more)
    return f"loaded into {os.path.basename(command[0])}." in p.stderr.decode()


def is_sanitized():
    """Whether trail itself is built with a sanitizer, which needs much memory and must be loaded first."""
    return "sanitizers" in Report(TRAIL, text=False).facts


def loaded_library():
    code = """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <unistd.h>
        #include <string.h>
        __attribute__((constructor)) static void told(void)
        {
            const char *name = program_invocation_short_name;
            (void)!write(2, "loaded into ", 12);
            (void)!write(2, name, strlen(name));
            (void)!write(2, ".\\n", 2);
        }
    """
    build("libloaded.so", "-shared", "-fPIC", code=code)
    return LOADED


def needs_root():
    if os.geteuid() != 0:
        raise Skip("not root")


def as_nobody():
    """Arguments that run trail as nobody, who must be able to reach it."""
    needs_root()
    if not os.path.exists(at("trail")):
        shutil.copy(TRAIL, at("trail"))
        os.chmod(at("trail"), 0o755)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}


# What can be recorded


@test
def a_dynamic_program_can_be_recorded():
    path = build("hello")
    assert loads(path), "the oracle works"
    report = recordable(path)
    assert report.json["path"] == path and report.json["runs"] == path
    assert report.facts["program"]["text"] == path
    assert "can be recorded" in report.text.splitlines()[-1]
    recordable(build("hello-no-pie", "-no-pie"))
    recordable(build("hello-static-libstdc++", "-static-libgcc", "-static-libstdc++"))


@test
def nothing_is_run():
    code = '#include <stdio.h>\nint main(void) { fclose(fopen("ran", "w")); return 0; }'
    path = build("leaves-a-file", code=code)
    script = write("leaves-a-file-too", "#!/bin/sh\ntouch ran\n")
    for program in (path, script):
        recordable(program, cwd=WORK)
        assert not os.path.exists(at("ran"))
        subprocess.run([program], cwd=WORK)
        assert os.path.exists(at("ran")), "the oracle works"
        os.remove(at("ran"))


@test
def a_static_program_is_refused():
    path = build("static", "-static")
    assert not loads(path)
    refused(path, "static", "linked statically", "no dynamic loader", "-static", "libtrail-record", "perf sched record")


@test
def a_static_pie_is_refused():
    path = build("static-pie", "-static-pie")
    assert not loads(path)
    refused(path, "static", "static-pie", "no dynamic loader", "libtrail-record", "perf sched record")


@test
def a_shared_library_is_no_program_unless_it_asks_for_a_loader():
    refused(loaded_library(), "static", "shared library", "record a program that uses it")
    for library in glob.glob("/lib/*-linux-gnu/libc.so.6"):
        recordable(library)
    for loader in glob.glob("/lib64/ld-linux-*"):
        recordable(loader)


@test
def a_musl_program_is_refused():
    patched = read(build("hello-no-pie", "-no-pie"))
    loader = re.search(rb"/lib[^\0]*/ld-linux-([^\0]*)\0", patched)
    if loader:
        other = b"/lib/ld-musl-x.so.1".ljust(len(loader[0]), b"\0")
        path = write("musl-patched", patched.replace(loader[0], other))
        refused(path, "not-glibc", "musl", "/lib/ld-musl-x.so.1", "made for glibc", "build it with glibc")
    path = build("musl", compiler=["musl-gcc"])
    refused(path, "not-glibc", "musl", "ld-musl-", "made for glibc", "libtrail-record", "perf sched record")


@test
def a_program_with_another_loader_is_refused():
    data = read(build("hello-no-pie", "-no-pie"))
    loader = re.search(rb"/lib[^\0]*/ld-linux[^\0]*\0", data)
    if not loader:
        raise Skip("no loader's name in the program")
    for name, verdict, words in (
        (b"/system/linker64", "not-glibc", ["/system/linker64", "not glibc's", "build it with glibc"]),
        (b"/lib/ld-linux.so.9", "not-found", ["/lib/ld-linux.so.9", "No such file", "install"]),
    ):
        path = write("loader", data.replace(loader[0], name.ljust(len(loader[0]), b"\0")))
        refused(path, verdict, *words)
        try:
            subprocess.run([path])
            assert False, "it runs"
        except FileNotFoundError:
            pass


@test
def a_program_of_another_architecture_is_refused():
    data = bytearray(read(build("hello")))
    for machine, word in ((3, "32-bit x86"), (183, "arm64"), (243, "RISC-V"), (4711, "machine 4711")):
        if {3: "i686", 183: "aarch64", 243: "riscv64"}.get(machine) == platform.machine():
            continue
        data[18:20] = machine.to_bytes(2, sys.byteorder)
        path = write("foreign", bytes(data))
        refused(path, "another-architecture", word, platform.machine().replace("_", "-"), "build it for")
    # A 32-bit header is shorter, and must not be taken for a truncated one.
    data[4:5], data[18:20] = b"\1", (3).to_bytes(2, sys.byteorder)
    refused(write("foreign-32", bytes(data[:52])), "another-architecture", "32-bit x86")
    path = build("arm64", compiler=["aarch64-linux-gnu-gcc"])
    refused(path, "another-architecture", "arm64")


# Privileges


def with_bits(name, owner, mode):
    needs_root()
    path = write(name, read(build("hello")))
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


@test
def a_setuid_or_setgid_program_is_refused_unless_one_is_that_user():
    nobody = as_nobody()
    env = {**ENV, "LD_PRELOAD": LOADED}
    for name, owner, mode, words in (
        ("setuid", 1, 0o4755, ["setuid to user 1", "sudo -u '#1'"]),
        ("setgid", 1, 0o2755, ["setgid to group 1", "sudo -g '#1'"]),
    ):
        path = with_bits(name, owner, mode)
        assert not loads(path), "the oracle works (is this file system mounted nosuid?)"
        refused(path, "privileged", *words, "ignores LD_PRELOAD", "a copy")
        assert not loads(path, **nobody)
        refused(path, "privileged", *words, trail=at("trail"), **nobody)
    for name, owner, mode, who in (
        ("setuid-own", 0, 0o4755, {}),
        ("setuid-own-nobody", NOBODY, 0o4755, nobody),
        ("setgid-own-nobody", NOBODY, 0o2755, nobody),
        ("setgid-locking", 1, 0o2745, {}),  # without the x bit: formerly mandatory locking
    ):
        path = with_bits(name, owner, mode)
        assert loads(path, **who), name
        recordable(path, trail=at("trail"), **who)


@test
def a_privileged_program_that_starts_others_is_told_to_go_in_front():
    path = with_bits("sudo", 1, 0o4755)
    refused(path, "privileged", "put it in front", "sudo trail record -- PROGRAM")


@test
def a_program_with_capabilities_is_refused_unless_one_is_root():
    nobody = as_nobody()
    path = write("capable", read(build("hello")))
    setcap = shutil.which("setcap", path=ENV["PATH"] + ":/usr/sbin:/sbin")
    if not setcap:
        raise Skip("no setcap")
    sh(setcap, "cap_net_raw+ep", path)
    assert not loads(path, **nobody), "the oracle works"
    refused(path, "privileged", "capabilities", "ignores LD_PRELOAD", "as root", trail=at("trail"), **nobody)
    assert loads(path)
    recordable(path)


# Languages with their own runtimes


def go_program(name, code, **env):
    found = [*sorted(glob.glob("/usr/lib/go-1.*/bin/go"))[:1], shutil.which("go")]
    if not found[0]:
        raise Skip("no Go")
    source = write(name + ".go", code)
    home = {"HOME": WORK} if "HOME" not in ENV else {}
    p = subprocess.run(
        [found[0], "build", "-o", at(name), source],
        env={**ENV, **home, **env, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local"},
        capture_output=True,
        cwd=WORK,
    )
    if p.returncode:
        raise Skip(f"{found[0]} builds nothing: {p.stderr.decode()[:200]}")
    return at(name), sh(found[0], "version", env={**ENV, **home}).split()[2]


@test
def a_go_program_is_refused():
    path, version = go_program("go-static", "package main\nfunc main() {}\n", CGO_ENABLED="0")
    told = ["Go program", version, "goroutines are not threads", "runtime/trace", "net/http/pprof", "go tool trace", "perf sched record"]
    refused(path, "go", *told)
    bare = bytearray(read(path))  # without section headers
    bare[40:48], bare[60:64] = bytes(8), bytes(4)
    refused(write("go-bare", bytes(bare)), "go", "Go program", "runtime/trace")


@test
def a_go_program_with_cgo_is_refused():
    code = 'package main\n// int one(void) { return 1; }\nimport "C"\nfunc main() { C.one() }\n'
    path, version = go_program("go-cgo", code, CGO_ENABLED="1")
    assert loads(path), "it is dynamic, and would be recorded half"
    refused(path, "go", version, "goroutines are not threads")


@test
def a_java_launcher_is_recorded_and_what_names_its_methods_is_said():
    library = build("libjli.so", "-shared", "-fPIC", code="int JLI_Launch(void) { return 0; }")
    code = "int JLI_Launch(void); int main(void) { return JLI_Launch(); }"
    inside = code.replace("int JLI_Launch(void);", "int JLI_Launch(void) { return 0; }")
    paths = [build("java", library, f"-Wl,-rpath,{WORK}", code=code), build("java-static-jli", code=inside)]
    if shutil.which("java"):
        real = subprocess.run(["file", "-L", shutil.which("java")], capture_output=True).stdout
        paths += [shutil.which("java")] * (b"ELF" in real)
    for path in paths:
        recordable(path).says("condition variables", "-XX:+PreserveFramePointer", "jcmd PID Compiler.perfmap", fact="Java")


# Sanitizers, OpenMP


@test
def asan_of_gcc_is_put_first():
    path = build("asan-gcc", "-fsanitize=address", compiler=["gcc"])
    assert not loads(path), "it aborts"
    first = recordable(path).json["preload_first"]
    assert first.startswith("libasan.so.")
    assert loads(path, first=first + ":")
    Report(path).says("AddressSanitizer", first, "LD_PRELOAD", fact="sanitizers")


@test
def sanitizers_in_the_program_itself_are_told():
    done = 0
    for name, flags, compiler, word in (
        ("asan-gcc-static", ["-fsanitize=address", "-static-libasan"], "gcc", "AddressSanitizer"),
        ("asan-clang", ["-fsanitize=address"], "clang", "AddressSanitizer"),
        ("tsan-gcc", ["-fsanitize=thread"], "gcc", "ThreadSanitizer"),
        ("tsan-clang", ["-fsanitize=thread"], "clang", "ThreadSanitizer"),
        ("msan-clang", ["-fsanitize=memory"], "clang", "MemorySanitizer"),
    ):
        try:
            path = build(name, *flags, compiler=[compiler])
        except Skip:
            continue
        report = recordable(path, text=False)
        assert "preload_first" not in report.json, name
        report.says(word, fact="sanitizers")
        done += 1
    if not done:
        raise Skip("no sanitizers")
    assert "sanitizers" not in recordable(build("hello")).facts


@test
def openmp_is_told():
    code = "int main(void) { int n = 0;\n#pragma omp parallel\n { n++; } return n > 99; }"
    report = recordable(build("openmp", "-fopenmp", code=code, compiler=["gcc"]))
    report.says("libgomp.so.1", fact="OpenMP")
    assert "trail record --openmp" in report.facts["OpenMP"]["todo"]


# Words and scripts, as handled by execvp


def runs(word, path=None):
    """The result of execvp for the word: 0 or an errno. The programs must end by themselves."""
    env = ENV if path is None else {**ENV, "PATH": path}
    code = "import os, sys\ntry: os.execvp(sys.argv[1], sys.argv[1:])\nexcept OSError as e: os._exit(200 + e.errno)"
    p = subprocess.run([sys.executable, "-c", code, word], env=env, capture_output=True, cwd=WORK, timeout=240)
    return p.returncode - 200 if p.returncode > 200 else 0


ENOENT, EACCES, ENOEXEC, ELOOP = 2, 13, 8, 40


@test
def what_is_not_there_or_not_executable_is_told_as_by_a_shell():
    write("no-x", "#!/bin/sh\n", 0o644)
    os.makedirs(at("folder"), exist_ok=True)
    os.mkfifo(at("fifo"), 0o777)
    for word, verdict, said, why in (
        ("./none", "not-found", "No such file or directory", ENOENT),
        ("./no-x/none", "not-found", "Not a directory", 20),
        ("./no-x", "not-executable", "Permission denied", EACCES),
        ("./folder", "not-executable", "Is a directory", EACCES),
        ("./fifo", "not-executable", "Permission denied", EACCES),
        ("/dev/null", "not-executable", "Permission denied", EACCES),
        ("nonesuch-program", "not-found", "command not found in the folders of PATH", ENOENT),
    ):
        assert runs(word) == why, word
        refused(word, verdict, said, cwd=WORK)
    report = Report("", cwd=WORK)
    assert report.verdict == "not-found" and report.json["exit_status"] == 127
    assert Report("./" + "x" * 5000).verdict == "not-executable"
    assert Report("x" * 5000).verdict == "not-found"


@test
def a_program_is_found_in_path_as_execvp_does():
    for folder in ("first", "second", "third"):
        os.makedirs(at(folder), exist_ok=True)
    write("first/tool", "#!/bin/sh\nexit 0\n", 0o644)
    os.makedirs(at("second/tool"), exist_ok=True)
    path = write("third/tool", "#!/bin/sh\nexit 0\n")
    folders = f"{at('none')}:{at('first')}:{at('second')}:{at('third')}"
    assert runs("tool", folders) == 0
    assert recordable("tool", env={**ENV, "PATH": folders}).json["path"] == path
    assert runs("tool", at("first")) == EACCES
    refused("tool", "not-executable", "Permission denied", "chmod +x", env={**ENV, "PATH": at("first")})
    for folders in ("", ":/nonexistent", "/nonexistent:"):  # an empty entry is the current folder
        assert runs("tool", folders) == ENOENT
        assert Report("tool", env={**ENV, "PATH": folders}, cwd=at("third")).json["path"] == "tool"
    report = Report("tool", env={**ENV, "PATH": "/nonexistent"}, cwd=at("third"))
    assert report.verdict == "not-found"
    report.says("./tool")


def chain(length):
    """The last of a chain of scripts, each the interpreter of the next."""
    path = "/bin/true"
    for i in range(length):
        path = write(f"chain-{length}-{i}", f"#!{path}\n")
    return path


@test
def a_script_is_followed_to_the_program_that_runs_it():
    true = os.path.realpath("/bin/true")
    for length in range(1, 9):
        path = chain(length)
        if runs(path) == 0:
            report = recordable(path)
            assert os.path.realpath(report.json["runs"]) == true, length
            assert "a script: what runs is" in report.facts["program"]["text"]
        else:
            assert runs(path) == ELOOP
            refused(path, "not-executable", "symbolic links")
    assert runs(chain(2)) == 0 and runs(chain(8)) == ELOOP, "the oracle works"
    loop = at("loop")
    write("loop", f"#!{loop}\n")
    assert runs(loop) == ELOOP
    refused(loop, "not-executable", "symbolic links")


@test
def a_script_whose_interpreter_is_refused_is_refused():
    static = build("static", "-static")
    report = refused(write("by-static", f"#! {static} -x\n"), "static", "a script", static, "linked statically")
    assert report.json["runs"] == static
    for line, verdict, why, words in (
        ("#!/nonexistent/sh -e", "not-found", ENOENT, ["'/nonexistent/sh'", "No such file"]),
        ("#!/etc/passwd", "not-executable", EACCES, ["'/etc/passwd'", "Permission denied"]),
        ("#!/bin", "not-executable", EACCES, ["'/bin'", "Is a directory"]),
        ("#!/bin/sh\r", "not-found", ENOENT, ["'/bin/sh\r'", "No such file"]),
    ):
        path = write("bad-line", line + "\n")
        assert runs(path) == why, (line, runs(path))
        refused(path, verdict, "#! line of", *words)


@test
def env_in_a_script_is_followed():
    true = shutil.which("true")
    for line, expected in (
        ("#!/usr/bin/env true", true),
        ("#! /usr/bin/env\ttrue  ", true),
        ("#!/usr/bin/env -S true -u a", true),
        ("#!/usr/bin/env -S A=1 B=2 true", true),
        ("#!/usr/bin/env -Strue", true),
        ('#!/usr/bin/env -S "true"', "/usr/bin/env"),  # quotes are handled by env
    ):
        path = write("env-script", line + "\n")
        report = recordable(path, text=False)
        assert report.json["runs"] == expected, (line, report.json["runs"])
        p = subprocess.run([path], env={**ENV, "LD_PRELOAD": LOADED}, capture_output=True, timeout=240)
        assert b"loaded into true." in p.stderr, "the oracle works"
    path = write("env-missing", "#!/usr/bin/env nonesuch-program\n")
    assert subprocess.run([path], capture_output=True).returncode == 127
    refused(path, "not-found", "'nonesuch-program'", "No such file")
    path = write("env-static", f"#!/usr/bin/env {build('static', '-static')}\n")
    refused(path, "static", "a script", "linked statically")


@test
def env_that_takes_LD_PRELOAD_away_is_refused():
    marker = build("hello")
    for options in ("-i", "-u LD_PRELOAD", "-", "--unset=LD_PRELOAD", "LD_PRELOAD=", "-uLD_PRELOAD"):
        path = write("env-clear", f"#!/usr/bin/env -S {options} {marker}\n")
        p = subprocess.run([path], env={**ENV, "LD_PRELOAD": LOADED}, capture_output=True)
        assert b"into hello." not in p.stderr, "the oracle works"
        refused(path, "environment", "removes LD_PRELOAD", "trail record -- INTERPRETER")
    path = write("env-keep", f"#!/usr/bin/env -S -u OTHER {marker}\n")
    p = subprocess.run([path], env={**ENV, "LD_PRELOAD": LOADED}, capture_output=True)
    assert b"into hello." in p.stderr
    assert recordable(path).json["runs"] == marker


@test
def a_text_is_run_by_the_shell_and_other_bytes_are_not():
    for name, data in (("empty", b""), ("text", b"exit 0\n"), ("text-then-zeros", b": x\nexit 0\n\0\0")):
        path = write(name, data)
        assert subprocess.run([path], shell=True).returncode == 0
        report = recordable(path)
        assert report.json["runs"] == "/bin/sh" and report.json["path"] == path
    for name, data in (("bytes", b"\1\2\0\3"), ("zero", b"\0"), ("elf-less", b"\177EL\0"), ("bare", b"#!")):
        path = write(name, data)
        refused(path, "not-executable", "Exec format error")


@test
def a_file_that_may_be_run_but_not_read_is_not_refused():
    nobody = as_nobody()
    path = write("unreadable", read(build("hello")), 0o711)
    assert loads(path, **nobody)
    report = recordable(path, trail=at("trail"), **nobody)
    assert report.facts["recording"]["state"] == "note"
    report.says("not read", fact="recording")


# Hostile files


@test
def a_cut_program_is_refused_at_any_length():
    data = read(build("hello-no-pie", "-no-pie"))
    # The part that the kernel loads, according to the program headers.
    offset, count = int.from_bytes(data[32:40], "little"), int.from_bytes(data[56:58], "little")
    ends = []
    for i in range(count if sys.byteorder == "little" else 0):
        entry = data[offset + 56 * i :]
        if int.from_bytes(entry[:4], "little") == 1:
            ends.append(int.from_bytes(entry[8:16], "little") + int.from_bytes(entry[32:40], "little"))
    sizes = [*range(4, 120, 3), *range(120, len(data), max(1, len(data) // 40)), max(ends) - 1, max(ends)]
    for size in sizes:
        report = Report(write("cut", data[:size]), text=False, env=NO_DPKG)
        if size < max(ends):
            assert report.verdict == "not-executable", (size, report.verdict)
            report.says("Exec format error", "damaged", "again")
        else:
            assert report.verdict == "recordable", (size, report.verdict)


@test
def a_damaged_program_does_no_harm():
    dice = random.Random(1)
    for source in ("hello", "asan-gcc", "go-cgo", "with-debug"):
        if source == "with-debug":
            build(source, "-g")
        if not os.path.exists(at(source)):
            continue
        data = read(at(source))
        headers = int.from_bytes(data[40:48], "little")  # of sections
        for _ in range(25):
            copy = bytearray(data)
            for _ in range(dice.randrange(1, 6)):
                base, length = dice.choice([(16, 48), (64, 800), (headers, len(data) - headers), (0, len(data))])
                place = base + dice.randrange(max(1, min(length, len(data) - base)))
                value = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
                width = dice.choice([1, 1, 2, 4, 8])
                copy[place : place + width] = bytes([value]) * width
            Report(write("damaged", bytes(copy)), text=False, env=NO_DPKG)


@test
def headers_that_claim_much_cost_little():
    data = bytearray(read(build("hello")))
    limit = 'exec "$@"' if is_sanitized() else 'ulimit -v 400000; exec "$@"'
    for place, width in ((60, 2), (40, 8), (56, 2), (32, 8), (54, 2), (58, 2), (62, 2)):
        copy = bytearray(data)
        for value in (b"\xff", b"\0", b"\x7f"):
            copy[place : place + width] = value * width
            path = write("claims", bytes(copy))
            with open(path, "r+b") as f:
                f.truncate(1 << 40)  # a sparse terabyte
            command = ["sh", "-c", limit, "sh", TRAIL, "doctor", path]
            p = subprocess.run(command, env=NO_DPKG | {"PATH": "/bin:/usr/bin"}, capture_output=True, timeout=240)
            assert p.returncode in (0, 2), (place, value, p)
    os.remove(at("claims"))


# Names and stacks


FUNCTIONS = (
    "volatile int sink; int other(int);\n"
    + "".join(
        f"int f{i}(int n) {{ for (int i = 0; i < n; i++) sink += i * {i} + other(i); "
        f"sink ^= other(n) * {i + 3}; return other(sink) + sink / {i + 7}; }}\n"
        for i in range(20)
    )
    + "int other(int n) { return n; }\n"
    + HELLO
)


@test
def frame_pointers_are_told():
    if not X86_64:
        raise Skip("x86-64 only")
    frames = ["-O2", "-fno-inline", "-fno-omit-frame-pointer"]
    without = ["-O2", "-fno-inline", "-fomit-frame-pointer"]
    for compiler in ("gcc", "clang"):
        path = build(f"frames-{compiler}", *frames, code=FUNCTIONS, compiler=[compiler])
        report = recordable(path, text=False)
        assert report.facts["frame pointers"]["state"] == "ok"
        report.says("yes: ", "of 2", fact="frame pointers")
        path = build(f"no-frames-{compiler}", *without, code=FUNCTIONS, compiler=[compiler])
        report = recordable(path, text=False)
        assert report.facts["frame pointers"]["state"] == "note"
        report.says("no: 0 of 2", "-fno-omit-frame-pointer", fact="frame pointers")
    half = re.sub(r"int f(\d)\(", r'__attribute__((optimize("no-omit-frame-pointer"))) int f\1(', FUNCTIONS)
    report = recordable(build("half-frames", *without, code=half, compiler=["gcc"]), text=False)
    report.says("mixed: 10 of 2", fact="frame pointers")


@test
def debug_information_is_told():
    path = build("debug", "-g", "-Wl,--build-id", code=FUNCTIONS)
    recordable(path).says("functions and lines", path, fact="names")
    sh("objcopy", "--only-keep-debug", path, at("debug.sym"))
    sh("objcopy", "--strip-debug", path, at("symbols"))
    report = recordable(at("symbols"))
    assert report.facts["names"]["state"] == "note"
    report.says("names of functions, but no lines", "build it with -g", fact="names")
    sh("objcopy", "--strip-all", path, at("stripped"))
    recordable(at("stripped")).says("no function names beyond exported ones", "do not strip", fact="names")
    sh("objcopy", f"--add-gnu-debuglink={at('debug.sym')}", at("stripped"), at("linked"))
    recordable(at("linked")).says("functions and lines", at("debug.sym"), fact="names")
    os.makedirs(at(".debug"), exist_ok=True)
    os.rename(at("debug.sym"), at(".debug/debug.sym"))
    recordable(at("linked")).says(at(".debug/debug.sym"), fact="names")
    os.remove(at(".debug/debug.sym"))
    recordable(at("linked")).says("no function names", fact="names")


@test
def debug_information_of_start_up_files_is_not_taken_for_the_programs():
    path = build("asan-gcc", "-fsanitize=address", compiler=["gcc"])
    if b".debug_info" not in read(path):
        raise Skip("this compiler brings none")
    recordable(path).says("no lines", fact="names")


@test
def debug_information_of_the_entry_point_alone_is_not_taken_for_the_programs():
    source = write("start.c", "#include <unistd.h>\nint main(void);\nvoid _start(void) { _exit(main()); }\n")
    for flags, word in ((["-g"], "no lines"), ([], "no lines")):
        sh(*CC, "-c", *flags, source, "-o", at("start.o"))
        path = build(f"start{len(flags)}", "-nostartfiles", at("start.o"))
        assert (b".debug_info" in read(path)) == bool(flags), "the oracle works"
        recordable(path, text=False).says(word, fact="names")
    with_lines = build("start-lines", "-g", "-nostartfiles", at("start.o"))
    recordable(with_lines, text=False).says("functions and lines", fact="names")


@test
def the_package_with_debug_information_is_named():
    if not shutil.which("dpkg-query"):
        raise Skip("no dpkg")
    path = shutil.which("dpkg-query")
    package = re.search(r"^([^:,\s]+)", sh("dpkg-query", "-S", path))[1]
    names = recordable(path, env=DPKG).facts["names"]
    if names["state"] == "ok":
        raise Skip(f"{package}-dbgsym is installed")
    assert f"apt install {package}-dbgsym, from the debian-debug archive" in names["todo"], names
    assert "build it with -g" in recordable(path, env=NO_DPKG).facts["names"]["todo"]


# The machine


def denying():
    """A program that runs another program with a system call blocked, as containers do."""
    code = r"""
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            struct sock_filter code[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[1]), 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog filter = {4, code};
            if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
                return 99;
            execv(argv[2], argv + 2);
            return 98;
        }
    """
    return build("denying", code=code)


def number_of(call):
    code = f'#include <sys/syscall.h>\n#include <stdio.h>\nint main(void) {{ printf("%d", SYS_{call}); return 0; }}'
    return sh(build(f"number-{call}", code=code))


def denied(call):
    command = [denying(), number_of(call), TRAIL, "doctor", "--json"]
    p = subprocess.run(command, env=ENV, capture_output=True)
    if p.returncode in (98, 99):
        raise Skip("no seccomp")
    return p.returncode, {f["name"]: f for f in json.loads(p.stdout)["machine"]}


@test
def the_machine_is_told():
    report = Report()
    assert "program" not in report.json
    for name in ("system", "recorder", "libc", "clock", "shared memory", "/proc", "/dev/shm", "context switches"):
        assert name in report.facts, name
    assert os.uname().release in report.facts["system"]["text"]
    assert report.facts["recorder"]["text"] == os.path.realpath(LOADED)
    assert os.confstr("CS_GNU_LIBC_VERSION").split()[1] in report.facts["libc"]["text"]
    flags = read("/proc/cpuinfo").decode()
    if X86_64:
        invariant = "constant_tsc" in flags and "nonstop_tsc" in flags
        assert (report.facts["clock"]["state"] == "ok") <= invariant
    level = "/proc/sys/kernel/perf_event_paranoid"
    if os.path.exists(level):
        assert f"perf_event_paranoid is {read(level).decode().strip()}" in report.facts["context switches"]["text"]


@test
def a_filter_that_refuses_perf_events_is_told():
    code, facts = denied("perf_event_open")
    assert code == 0, "it can be recorded without them"
    switches = facts["context switches"]
    assert switches["state"] == "note" and "seccomp" in switches["text"] + switches["todo"], switches
    assert "inferred" in switches["text"] and "perf_event_open" in switches["todo"]


@test
def without_memfd_nothing_can_be_recorded():
    code, facts = denied("memfd_create")
    assert code == 2
    assert facts["shared memory"]["state"] == "problem" and "memfd_create" in facts["shared memory"]["text"]


@test
def what_is_preloaded_already_is_told():
    if is_sanitized():
        raise Skip("trail has a sanitizer in it")
    other = shutil.copy(loaded_library(), at("other.so"))
    p = subprocess.run([TRAIL, "doctor"], env={**ENV, "LD_PRELOAD": other}, capture_output=True)
    assert re.search(rf"note +LD_PRELOAD .*in use.*{other}", p.stdout.decode()), p.stdout
    assert re.search(r"ok +LD_PRELOAD .*not in use", Report().text)


@test
def the_recorder_is_found_where_it_was_installed_or_built():
    env = {k: v for k, v in ENV.items() if k != "TRAIL_PRELOAD"}
    for place, library in (("installed/bin", f"installed/bin/{PRELOAD_DIR}"), ("built", "built/src/preload")):
        os.makedirs(at(place))
        shutil.copy(TRAIL, at(place))
        trail = at(f"{place}/trail")
        report = Report(trail=trail, env=env)
        assert report.code == 2 and "libtrail-preload.so" in report.facts["recorder"]["text"]
        report.says("TRAIL_PRELOAD", fact="recorder")
        os.makedirs(at(library))
        path = shutil.copy(LOADED, at(f"{library}/libtrail-preload.so"))
        report = Report(trail=trail, env=env)
        assert report.code == 0 and report.facts["recorder"]["text"] == os.path.realpath(path)


@test
def a_recorder_that_LD_PRELOAD_cannot_name_is_told():
    os.makedirs(at("a folder"))
    spaced = shutil.copy(LOADED, at("a folder/libtrail-preload.so"))
    for path, why in ((spaced, "spaces"), (at("none.so"), "No such file"), (WORK, "Permission denied")):
        report = Report(env={**ENV, "TRAIL_PRELOAD": path})
        assert report.code == 2 and why in report.facts["recorder"]["text"], report.facts["recorder"]
        assert "TRAIL_PRELOAD" in report.facts["recorder"]["text"]


@test
def control_characters_of_names_do_not_reach_the_terminal():
    path = write("bad\x1b[31m\nname", b"\1\0")
    p = subprocess.run([TRAIL, "doctor", path], env=ENV, capture_output=True)
    assert p.returncode == 2 and b"\x1b" not in p.stdout and b"bad\\x1b[31m\\nname" in p.stdout, p.stdout


# trail env


def env_of(*args, **more):
    more.setdefault("env", ENV)
    return subprocess.run([TRAIL, "env", *args], capture_output=True, timeout=240, **more)


@test
def the_shell_takes_what_env_prints():
    shm = '/dev/shm/a\'b "$HOME" \\ `x`'
    for before, after in (("", LOADED), ("/x.so", LOADED + ":/x.so")):
        p = env_of("--shm", shm, "-o", "it's.trace")
        assert p.returncode == 0
        code = 'set -eu; unset LD_PRELOAD; if [ "$1" ]; then LD_PRELOAD=$1; OMP_TOOL_LIBRARIES="/a b"; fi; '
        code += 'eval "$2"; printf "%s\\n%s\\n%s" "$LD_PRELOAD" "$TRAIL_SHM" "$OMP_TOOL_LIBRARIES"'
        got = subprocess.run(["sh", "-c", code, "sh", before, p.stdout.decode()], capture_output=True)
        tools = "/a b:" + OPENMP if before else OPENMP
        assert got.stdout.decode().split("\n") == [after, "path:" + shm, tools], got
        told = p.stderr.decode()
        command = re.search(r"trail record .*", told)[0]
        assert shlex.split(command) == ["trail", "record", "--attach-shm=" + shm, "-o", "it's.trace"]


@test
def units_and_containers_have_forms_of_their_own():
    p = env_of("--for=systemd", '--shm=/dev/shm/50% "x\\y"')
    assert p.stdout.decode().splitlines() == [
        f'Environment="LD_PRELOAD={LOADED}"',
        'Environment="TRAIL_SHM=path:/dev/shm/50%% \\"x\\\\y\\""',
        f'Environment="OMP_TOOL_LIBRARIES={OPENMP}"',
    ]
    p = env_of("--for=docker", "--shm=/dev/shm/x")
    words = p.stdout.decode().split()
    assert words == shlex.split(p.stdout.decode())
    assert words[:4] == ["-e", f"LD_PRELOAD={LOADED}", "-e", "TRAIL_SHM=path:/dev/shm/x"]
    assert words[4:8] == ["-v", f"{LOADED}:{LOADED}:ro", "-v", "/dev/shm/x:/dev/shm/x"]
    assert words[8:] == ["-e", f"OMP_TOOL_LIBRARIES={OPENMP}", "-v", f"{OPENMP}:{OPENMP}:ro"]
    assert "docker run" in p.stderr.decode()


@test
def the_name_of_the_memory_cannot_be_guessed():
    names = {re.search(rb"path:'(/dev/shm/trail-[0-9a-f]{16})'", env_of().stdout)[1] for _ in range(3)}
    assert len(names) == 3


def doctor_of(process):
    p = subprocess.run([TRAIL, "doctor", "--json", "-p", str(process.pid)], env=ENV, capture_output=True, timeout=300)
    answer = json.loads(p.stdout)
    (fact,) = answer["process"]
    assert (p.returncode == 0) == answer["recordable"] == (fact["state"] == "ok") and answer["pid"] == process.pid, answer
    return fact


@test
def a_process_in_a_simulator_is_refused_by_the_simulators_name():
    tried = []
    for name, command, mapped in (
        ("valgrind", ["valgrind", "-q"], r"/valgrind/memcheck"),
        ("qemu", [f"qemu-{platform.machine()}"], r"/qemu-"),
    ):
        if not shutil.which(command[0]):
            continue
        tried.append(name)
        with subprocess.Popen([*command, shutil.which("sleep"), "100000"]) as process:
            try:
                states.until(lambda: re.search(mapped, states.text_of(f"/proc/{process.pid}/maps")))
                fact = doctor_of(process)
                assert fact["state"] == "problem" and f"runs under {name}," in fact["text"], (name, fact)
            finally:
                process.kill()
    if not tried:
        raise Skip("neither valgrind nor qemu-user")


@test
def a_process_is_looked_at_and_not_touched():
    with subprocess.Popen(["sleep", "100000"]) as process:
        try:
            states.until_all_wait([process.pid], 1)
            before = states.calls([process.pid]), states.text_of(f"/proc/{process.pid}/maps")
            assert doctor_of(process)["state"] in ("ok", "problem")
            assert before == (states.calls([process.pid]), states.text_of(f"/proc/{process.pid}/maps"))
        finally:
            process.kill()
    with subprocess.Popen(["sleep", "100000"]) as process:
        os.kill(process.pid, signal.SIGSTOP)
        states.until(lambda: states.is_stopped(process.pid))
        assert "is stopped" in doctor_of(process)["text"]
        process.kill()


@test
def wrong_command_lines_are_usage_errors():
    for args, hint in (
        (["env", "--for=dokcer"], "'docker'"),
        (["env", "--for=zzz"], "sh, systemd or docker"),
        (["env", "--fro=sh"], "'--for'"),
        (["env", "--shm=relative"], "absolute"),
        (["env", "--shm=/a\nb"], "control characters"),
        (["env", "--for=docker", "--shm=/a b"], "letters"),
        (["env", "./server"], "no program is started"),
        (["doctor", "a", "b"], "one program at a time"),
        (["doctor", "--jsno"], "'--json'"),
        (["doctor", "-p", "1", "sleep"], "not both"),
        (["doctor", "-p", "0"], "process ID"),
        (["dcotor"], "'trail doctor'"),
    ):
        p = subprocess.run([TRAIL, *args], env=ENV, capture_output=True)
        assert p.returncode == 2 and hint in p.stderr.decode() and not p.stdout, (args, p)
    p = env_of(env={**ENV, "TRAIL_PRELOAD": at("none.so")})
    assert p.returncode == 3 and not p.stdout and b"none.so" in p.stderr


loaded_library()
failed = main()
shutil.rmtree(WORK)
sys.exit(failed)
