#!/usr/bin/env python3
"""The trail command from outside: exit codes, help, usage errors, pipes, filters. TAP.

usage: commands.py TRAIL SOURCE_ROOT

Traces are assembled from the texts in tests/data. Expected values come from those texts (what the events
are, in which order, at which times) or are relations between two outputs of the command.
"""

import gzip
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import DATA, ENV, EXAMPLES, ROOT, TRAIL, WORK, assembled, equal, trace  # noqa: E402
from sub_commands import sub_commands
from tap import main, test

COMMANDS = sub_commands(ROOT)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err
        self.lines = out.decode("utf-8", "replace").split("\n")[:-1]


def run(*args, stdin=None, env=None):
    p = subprocess.run([TRAIL, *args], input=stdin, capture_output=True, env=env or ENV, timeout=240)
    return Result(p.returncode, p.stdout, p.stderr.decode("utf-8", "replace"))


def good(*args, **more):
    r = run(*args, **more)
    assert r.code == 0, f"trail {' '.join(args)}: exit {r.code}: {r.err}"
    return r


def read(path):
    with open(path, "rb") as f:
        return f.read()


def written(name, data):
    path = os.path.join(WORK, name)
    with open(path, "wb") as f:
        f.write(data)
    return path


def second_generation(data):
    """Where generation 2 begins: after EndOfGeneration (52), with EventBatch (1) gen=2 m=-1."""
    return data.index(b"\x34\x01\x02" + b"\xff" * 9) + 1


V2, V1, V15, GAP = "everything-1.26", "everything-1.21", "everything-1.5", "gap-1.11"
TRACES = [V2, V1, V15]


# Command line


@test
def help_of_the_command_names_every_sub_command():
    r = good("--help")
    for name in COMMANDS:
        assert re.search(rf"^  {name} ", r.out.decode(), re.M), name
    assert not r.err


@test
def help_of_each_sub_command_shows_usage_options_and_examples():
    for name in COMMANDS:
        for args in ([name, "--help"], [name, "-h"], ["help", name]):
            text = good(*args).out.decode()
            assert text.startswith(f"trail {name} - "), args
            assert (
                f"Usage: trail {name} " in text and "Options:" in text and "Examples:" in text
            ), args
            assert max(map(len, text.splitlines())) <= 100, f"{args}: a line is too long"


@test
def help_of_each_sub_command_fits_one_screen_and_names_every_option():
    for name in COMMANDS:
        text, whole = good(name, "--help").out.decode(), good("help", name).out.decode()
        lines = text.splitlines()
        assert len(lines) <= 24 and max(map(len, lines)) <= 80, f"{name}: {len(lines)} lines"
        options = re.findall(r"^  (?:-\w,|   ) (--[\w-]+)", whole, re.M)
        assert len(options) >= 3, whole
        for option in options:
            assert re.search(rf"{option}\b", text), f"{name}: {option}"


@test
def version_is_printed():
    first = good("--version").out.splitlines()[0]
    assert re.fullmatch(rb"trail \d+\.\d+\.\d+ \(([0-9a-f]{12}\+?|unknown)\)", first), first


@test
def no_command_is_a_usage_error():
    r = run()
    assert r.code == 2 and "Usage" in r.err and not r.out


@test
def mistyped_words_are_usage_errors_with_a_suggestion():
    path = trace(V2)
    cases = [
        (["prnt", path], "'trail print'"),
        (["chekc", path], "'trail check'"),
        (["--verison"], "'--version'"),
        (["print", "--stcks", path], "'--stacks'"),
        (["print", "--gorutine=1", path], "'--goroutine'"),
        (["info", "--ful", path], "'--full'"),
        (["print", "--format=jsnl", path], "'jsonl'"),
        (["print", "--kind=GoBlok", path], "'GoBlock'"),
        (["print", "--kind=StateTransitoin", path], "'StateTransition'"),
        (["print", "--format=go-v1", "--kind=GoBlockRecev", trace(V1)], "'GoBlockRecv'"),
    ]
    for args, hint in cases:
        r = run(*args)
        assert r.code == 2, f"{args}: exit {r.code}"
        assert "did you mean" in r.err and hint in r.err, f"{args}: {r.err}"
        assert not r.out, f"{args}: wrote to stdout"


@test
def wrong_command_lines_are_usage_errors():
    path = trace(V2)
    for args in (
        ["nonsense"],
        ["--nonsense"],
        ["print"],
        ["print", path, path],
        ["print", "--zzzzzzzzzz", path],
        ["print", "-Z", path],
        ["print", "--limit", path],
        ["print", path, "--limit"],
        ["print", "--limit=0", path],
        ["print", "--limit=x", path],
        ["print", "--stacks=yes", path],
        ["print", "--goroutine=", path],
        ["print", "--goroutine=1,,2", path],
        ["print", "--goroutine=1x", path],
        ["print", "--goroutine=99999999999999999999", path],
        ["print", "--from=5", path],
        ["print", "--from=5 ms", path],
        ["print", "--from=1.5.5s", path],
        ["print", "--from=-1s", path],
        ["print", "--from=+1s", path],
        ["print", "--from=99999999999s", path],
        ["print", "--from=2s", "--to=1s", path],
        ["print", "--color=sometimes", path],
        ["print", "--format=wire", "--limit=1", path],
        ["print", "--format=go-v1", path],
        ["info"],
        ["check"],
        ["assemble"],
        ["assemble", "x.txt"],
        ["assemble", "--version=1.6", "x.txt", "-o", "-"],
        ["completion", "tcsh"],
    ):
        r = run(*args)
        assert r.code == 2, f"{args}: exit {r.code}: {r.err}"
        assert r.err.startswith("trail: "), f"{args}: {r.err}"


@test
def options_and_words_mix_in_every_spelling():
    path = trace(V2)
    expected = good("print", "--limit=3", "--stacks", path).out
    for args in (
        ["print", path, "--limit", "3", "--stacks"],
        ["print", "-n", "3", "-s", path],
        ["print", "-n3", "-s", path],
        ["print", "-sn3", path],
        ["print", "-s", "-n3", "--", path],
    ):
        assert good(*args).out == expected, args


@test
def after_two_dashes_everything_is_a_word():
    os.symlink(trace(V2), os.path.join(WORK, "--limit"))
    p = subprocess.run([TRAIL, "check", "-q", "--", "--limit"], cwd=WORK, env=ENV)
    assert p.returncode == 0


@test
def manual_pages_tell_every_option():
    for name in COMMANDS:
        page = read(os.path.join(ROOT, "man", f"trail-{name}.1")).decode()
        for option in re.findall(
            r"^  (?:-\w,|   ) --([\w-]+)", good("help", name).out.decode(), re.M
        ):
            assert option == "help" or re.search(
                rf"^\.It .*Fl -{option}\b", page, re.M
            ), f"{name}: --{option}"


@test
def completions_name_every_sub_command_and_option():
    for shell in ("bash", "zsh", "fish"):
        text = good("completion", shell).out.decode()
        for name in COMMANDS + ["goroutine", "repair", "output", "full"]:
            assert name in text, f"{shell}: {name}"
    if shutil.which("bash"):
        p = subprocess.run(["bash", "-n"], input=good("completion", "bash").out)
        assert p.returncode == 0


@test
def a_good_trace_is_exit_0():
    for name in TRACES:
        for command in ("info", "print", "check"):
            good(command, trace(name))
    r = good("check", trace(V2), trace(V1))
    assert r.out.count(b": good\n") == 2


@test
def a_bad_trace_is_exit_1_and_says_where():
    cut = written("cut.trace", read(trace(V2))[:-5])
    nonsense = written("nonsense", b"this is no trace at all, of any version")
    short = written("short", b"go 1.2")
    future = written("future", b"go 1.99 trace\0\0\0" + b"x" * 50)
    empty = written("empty", b"")
    for path in (cut, nonsense, short, future, empty, trace(GAP)):
        r = run("check", path)
        assert r.code == 1 and b": bad: " in r.out, f"{path}: {r.code} {r.out}"
        assert b"offset 0" in r.out, f"{path}: {r.out}"
        r = run("print", path)
        assert r.code == 1 and path in r.err, f"{path}: {r.code} {r.err}"
    assert "1.99" in run("print", future).err


@test
def the_worst_of_several_files_counts():
    cut = written("cut2.trace", read(trace(V2))[:-5])
    assert run("check", trace(V2), cut).code == 1
    assert run("check", cut, "/nonexistent", trace(V2)).code == 3
    assert run("info", cut, trace(V2)).code == 1


@test
def what_cannot_be_read_is_exit_3():
    for command in ("info", "print", "check"):
        for path in ("/nonexistent", WORK):
            r = run(command, path)
            assert r.code == 3, f"{command} {path}: exit {r.code}: {r.err}"
            assert path in r.err
    assert run("assemble", "/nonexistent", "-o", os.path.join(WORK, "x")).code == 3
    assert run("assemble", os.path.join(DATA, V2 + ".txt"), "-o", "/nonexistent/x").code == 3


@test
def an_error_names_its_file_also_a_short_one():
    """A file 'e', whose name occurs in every message, is still named; a path that is in the message is not repeated."""
    nonsense = written("e", b"this is no trace at all")
    for word, expected in (("e", "trail: e: "), ("/nonexistent", "trail: cannot open /nonexistent: ")):
        p = subprocess.run([TRAIL, "print", word], cwd=WORK, env=ENV, capture_output=True)
        assert p.returncode and p.stderr.decode().startswith(expected), p.stderr
    os.remove(nonsense)


@test
def assemble_leaves_no_half_trace_and_spares_its_text():
    out = os.path.join(WORK, "half-made.trace")
    text = written("wrong.txt", b"Trace Go1.26\nEventBatch gen=1 m=0 time=0 size=auto\nGoNonsense dt=1\n")
    assert run("assemble", text, "-o", out).code == 1 and not os.path.exists(out)
    r = run("assemble", text, "-o", text)
    assert r.code == 2 and "overwrite" in r.err and b"GoNonsense" in read(text), r.err


@test
def a_full_disk_is_exit_3_and_said():
    if not os.path.exists("/dev/full"):
        return
    for args in (
        ["--help"],
        ["--version"],
        ["info", trace(V2)],
        ["check", trace(V2)],
        ["print", trace(V2)],
        ["print", "--format=go", trace(V2)],
        ["print", "--format=wire", trace(V2)],
        ["print", "--format=jsonl", trace(V2)],
        ["print", "--format=go-v1", trace(V1)],
        ["assemble", os.path.join(DATA, V2 + ".txt"), "-o", "-"],
        ["assemble", os.path.join(DATA, V2 + ".txt"), "-o", "/dev/full"],
    ):
        with open("/dev/full", "wb") as full:
            p = subprocess.run([TRAIL, *args], stdout=full, stderr=subprocess.PIPE, env=ENV)
        assert p.returncode == 3, f"{args}: exit {p.returncode}"
        assert b"No space left" in p.stderr, f"{args}: {p.stderr}"


@test
def where_the_reader_of_a_pipe_has_gone_a_command_ends_by_sigpipe():
    for args in (["print", trace(V2)], ["info", trace(V2)], ["print", "-f", "go", trace(V2)]):
        ends = os.pipe()
        os.close(ends[0])
        p = subprocess.run([TRAIL, *args], stdout=ends[1], stderr=subprocess.PIPE, env=ENV)
        os.close(ends[1])
        assert (p.returncode, p.stderr) == (-signal.SIGPIPE, b""), f"{args}: exit {p.returncode}, {p.stderr}"
    # Other write errors are reported, even next to a pipe whose reader is gone.
    ends = os.pipe()
    os.close(ends[0])
    p = subprocess.run([TRAIL, "convert", trace(V2), "-o", "/dev/full"], stdout=ends[1], stderr=subprocess.PIPE, env=ENV)
    os.close(ends[1])
    assert p.returncode == 3 and b"No space left" in p.stderr, p


# Input


@test
def what_is_written_is_compressed_as_its_name_says():
    text = os.path.join(ROOT, "tests/data/times-1.26.txt")
    source = trace(TRACES[0])
    for words in (("convert", "--to=go1.26", source), ("symbolize", source), ("assemble", text),
                  ("merge", "--align=start", f"a={source}", f"b={source}")):
        plain = written("packed.trace", b"")
        good(*words, "-o", plain)
        for end, magic in ((".gz", b"\x1f\x8b"), (".zst", b"\x28\xb5\x2f\xfd")):
            path = plain + end
            good(*words, "-o", path)
            assert read(path).startswith(magic), (words, end)
            if end == ".gz":
                assert gzip.decompress(read(path)) == read(plain), words
            elif shutil.which("zstd"):
                z = subprocess.run(["zstd", "-dqc"], input=read(path), capture_output=True)
                assert z.returncode == 0 and z.stdout == read(plain), words
            assert good("print", path).out == good("print", plain).out, (words, end)


@test
def manual_pages_are_formatted_without_a_warning():
    """Warnings about lines too wide for a terminal concern programs; groff 1.23 also warns of narrow columns.
    (trail.1.in becomes a page only in the build.)"""
    if not shutil.which("groff"):
        print("# groff is not installed: manual pages are not formatted")
        return
    for name in sorted(os.listdir(os.path.join(ROOT, "man"))):
        if re.search(r"\.[13]$", name):
            page = os.path.join(ROOT, "man", name)
            p = subprocess.run(["groff", "-mandoc", "-ww", "-W", "break", "-Tutf8", "-z", page], capture_output=True)
            assert p.returncode == 0 and p.stderr == b"", (name, p.stderr.decode()[:300])


def manual_pages():
    """The text of each page by name: trail-sql.1."""
    folder = os.path.join(ROOT, "man")
    names = [name for name in os.listdir(folder) if re.search(r"\.[13]$", name)]
    return {name: read(os.path.join(folder, name)).decode() for name in sorted(names)}


@test
def manual_pages_see_each_other_and_documents_that_are_installed():
    pages, installed = manual_pages(), read(os.path.join(ROOT, "docs", "meson.build")).decode()
    references = re.compile(r"^\.Xr (\S+) (\d)", re.M)
    also = {name: {".".join(r) for r in references.findall(text.partition(".Sh SEE ALSO")[2])} for name, text in pages.items()}
    for name, text in pages.items():
        assert "docs/" not in text, name
        for document in re.findall(r"@docs@/(\S+)", text):
            assert f"'{document}'" in installed and os.path.exists(os.path.join(ROOT, "docs", document)), (name, document)
        mentioned = {".".join(r) for r in references.findall(text)} - {name}
        assert mentioned <= also[name], (name, mentioned - also[name])
        if name.endswith(".1"):
            assert "trail.1" in also[name], name
        for other in also[name]:
            if other in also and other[-1] == name[-1]:
                assert name in also[other], f"{other} does not see {name}"
            assert other in also or not other.startswith("trail") or other == "trail.1", (name, other)
    for document in os.listdir(os.path.join(ROOT, "docs")):
        assert not document.endswith(".md") or f"'{document}'" in installed, document


C_TRACES = [os.path.join(ROOT, "examples", "traces", f"shop-c{name}.trace") for name in ("", "-stuck")]


# Objects whose keys come from the trace or the format.
BY_NAME = {"block_ns", "range_ns", "batches_by_kind"}


def keys_of(value, found, name=None):
    if isinstance(value, dict) and name not in BY_NAME:
        found.update(value)
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        keys_of(item, found, key)


def keys_in_source(command):
    """The keys that the command's own files write, including under conditions that no test trace meets."""
    folder = os.path.join(ROOT, "src", "commands")
    files = [name for name in os.listdir(folder) if re.fullmatch(rf"{command}(_\w+)?\.c", name)]
    text = "".join(read(os.path.join(folder, name)).decode() for name in files)
    keys = set(re.findall(r'\bjson_\w+\(\s*&?(?:\w+->)?json,\s*"([^"]+)"', text))
    keys |= set(re.findall(r'\brow_\w+\(row,\s*(?:[\w {}]+,\s*|"[^"]*",\s*)?"([^"<>]+)"', text))
    return keys | set(re.findall(r'\b(?:rows?_json\(|put_\w+\(row,)[^;"{]*"([^"<>]+)"', text))


@test
def manual_pages_name_every_key_of_json():
    pages = manual_pages()
    more = {"why": ["--goroutine=1"], "diff": [EXAMPLES[0]], "find": ["block"]}
    # Output that depends on a process, on a query, or on the machine.
    other = {"stuck", "sql", "doctor"}
    # Its objects are documented on another page, to which its own page refers.
    same = {"summary": "trail-goroutines.1"}
    commands = [c for c in COMMANDS if "--json" in good(c, "--help").out.decode()]
    assert len(commands) >= 19, commands
    for command in commands:
        page = pages[f"trail-{command}.1"] + pages.get(same.get(command), "")
        literals = re.findall(r"^\.(?:\w+ )*?Li (.*)", page, re.M)
        words = {word for line in literals for word in line.replace("\\&", "").split()}
        keys = keys_in_source(command)
        for trace_path in EXAMPLES + C_TRACES if command not in other else ():
            out = good(command, "--json", trace_path, *more.get(command, [])).out
            for line in out.splitlines() if command == "find" else [out]:
                keys_of(json.loads(line), keys)
        assert keys <= words, (command, keys - words)


@test
def stdin_gzip_zstd_and_xz_read_like_the_file():
    for name in TRACES:
        data = read(trace(name))
        packed = [written(name + ".gz", gzip.compress(data)), written(name + ".xz", lzma.compress(data))]
        if shutil.which("zstd"):
            z = subprocess.run(["zstd", "-qc"], input=data, capture_output=True)
            packed.append(written(name + ".zst", z.stdout))
        for form in ("text", "go", "wire", "jsonl"):
            expected = good("print", "-f", form, trace(name)).out
            assert good("print", "-f", form, "-", stdin=data).out == expected, (name, form)
            for path in packed:
                assert good("print", "-f", form, path).out == expected, (path, form)
                assert good("print", "-f", form, "-", stdin=read(path)).out == expected, (
                    path,
                    form,
                )
        assert good("check", "-", stdin=data).out.startswith(b"stdin: good\n")
        full = json.loads(good("info", "--full", "--json", trace(name)).out)
        piped = json.loads(good("info", "--full", "--json", "-", stdin=data).out)
        assert {**full, "file": ""} == {**piped, "file": "", "file_bytes": full["file_bytes"]}


@test
def a_pipe_is_shown_as_it_arrives():
    data = read(trace(V2))
    second = second_generation(data)
    p = subprocess.Popen(
        [TRAIL, "print", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENV
    )
    timer = signal.signal(signal.SIGALRM, lambda *_: p.kill())
    signal.alarm(20)
    p.stdin.write(data[:second])
    p.stdin.flush()
    first = p.stdout.readline()
    seen = first + p.stdout.readline()
    assert p.poll() is None and b"generation 1" in first and b"P 0" in seen
    p.stdin.write(data[second:])
    p.stdin.close()
    rest = p.stdout.read()
    p.wait()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, timer)
    assert seen + rest == good("print", trace(V2)).out


# Printing


@test
def go_form_of_a_hand_written_trace():
    """Expected from the text in tests/data and the rules of Go's debug string."""
    lines = good("print", "-f", "go", trace(V2)).out.decode().split("\n")
    for line in (
        "M=-1 P=-1 G=-1 Sync Time=64000 N=1 Trace=64000 Mono=64000 Wall=2023-11-14T22:13:20.12Z",
        'M=100 P=-1 G=-1 StateTransition Time=64064 ProcID=0 Undetermined->Running Reason=""',
        'M=100 P=0 G=1 RangeBegin Time=64256 Name="stop-the-world (start trace)" Scope=Goroutine(1)',
        'M=100 P=0 G=1 Metric Time=65600 Name="/memory/classes/heap/objects:bytes" '
        "Value=Value{Uint64(12902400)}",
        'M=100 P=0 G=1 Label Time=65728 Label="worker" Resource=Goroutine(1)',
        'M=100 P=0 G=1 TaskBegin Time=67008 ID=2 Parent=1 Type="request"',
        'M=100 P=0 G=1 RegionBegin Time=67072 Task=2 Type="decode \\"body\\""',
        'M=100 P=0 G=1 Log Time=67136 Task=2 Category="size" '
        'Message="tab\\there, \u00e9, \\u2028, \\x1b[31m and \\xff"',
        'M=100 P=0 G=1 RangeEnd Time=70016 Name="GC incremental sweep" Scope=Proc(0) '
        'Attributes=["bytes swept"=Value{Uint64(8192)} "bytes reclaimed"=Value{Uint64(4096)}]',
        'M=100 P=0 G=1 StateTransition Time=70208 GoID=1 Running->Waiting Reason="chan receive"',
        "M=101 P=-1 G=-1 Experimental Time=70528 Name=SpanAlloc Args=[id=Value{Uint64(7)}, "
        "npages_value=Value{Uint64(2)}, kindclass=Value{Uint64(9)}]",
        "M=100 P=0 G=1 StackSample Time=67520",
        "\tmain.serve @ 0x1000",
        "\t\t/src/app/main.go:42",
        "TransitionStack=",
    ):
        assert line in lines, f"missing: {line}"
    at = lines.index('M=100 P=0 G=1 StateTransition Time=65216 GoID=2 NotExist->Runnable Reason=""')
    assert lines[at + 1 : at + 12] == [
        "TransitionStack=",
        "\tmain.worker @ 0x3000",
        "\t\t/src/app/main.go:99",
        "",
        "Stack=",
        "\tmain.serve @ 0x1000",
        "\t\t/src/app/main.go:42",
        "\tmain.main @ 0x2000",
        "\t\t/src/app/main.go:7",
        "",
        'M=100 P=0 G=1 StateTransition Time=65536 GoID=3 NotExist->Waiting Reason=""',
    ], lines[at : at + 12]


@test
def go_v1_form_of_a_hand_written_trace():
    lines = good("print", "-f", "go-v1", trace(V1)).lines
    assert lines[0] == "0 GoCreate p=0 g=0 off=20 g=1 stack=2"
    for line in (
        "64 GoCreate p=0 g=0 off=26 g=2 stack=3",
        "1344 UserLog p=0 g=1 off=65 id=1 keyid=4 category=progress message=half done",
        "2432 STWStart p=0 g=0 off=98 kindid=2 kind=GC sweep termination",
        "5120 GoBlockRecv p=0 g=1 off=124",
    ):
        assert line in lines, f"missing: {line}: {lines}"
    assert len(lines) == 26


@test
def text_tells_what_happened():
    text = good("print", trace(V2)).out.decode()
    for part in (
        "G 2 created by G 1: main.worker",
        "blocks: chan receive",
        "G 1 made ready by G 2, after 960ns",
        "enters a system call: read",
        "leaves the system call after 1.28us",
        "heap: 12.3 MiB",
        "at main.serve (main.go:42)",
        "GC concurrent mark phase ends after 704ns",
        "stops: preempted",
    ):
        assert part in text, part
    for name in TRACES:
        out = good("print", trace(name))
        assert len(out.lines) == len(
            re.findall(rb"^M=", good("print", "-f", "go", trace(name)).out, re.M)
        )


@test
def text_cannot_steer_a_terminal():
    for args in (["print"], ["print", "--stacks"]):
        assert b"\x1b" not in good(*args, trace(V2)).out
    coloured = good("print", "--color=always", trace(V2)).out.decode("utf-8", "replace")
    assert "\x1b[0m" in coloured and "\x1b[31m and" not in coloured
    plain = re.sub(r"\x1b\[\d+m", "", coloured)
    assert plain.split() == good("print", trace(V2)).out.decode("utf-8", "replace").split()


@test
def stacks_adds_a_line_a_frame():
    lines = good("print", "--stacks", trace(V2)).lines
    at = next(i for i, line in enumerate(lines) if "blocks: chan receive" in line)
    assert [line.strip() for line in lines[at + 1 : at + 3]] == [
        "main.serve (/src/app/main.go:42)",
        "main.main (/src/app/main.go:7)",
    ]


@test
def jsonl_says_the_same_as_the_go_form():
    for name in TRACES:
        events = [json.loads(line) for line in good("print", "-f", "jsonl", trace(name)).lines]
        go = re.findall(
            rb"^M=(\S+) P=(\S+) G=(\S+) (\S+) Time=(\S+)",
            good("print", "-f", "go", trace(name)).out,
            re.M,
        )
        assert len(events) == len(go)
        for event, (m, p, g, kind, time_ns) in zip(events, go):
            mine = (
                event.get("m", -1),
                event.get("p", -1),
                event.get("g", -1),
                event["kind"],
                event["time_ns"],
            )
            assert mine == (int(m), int(p), int(g), kind.decode(), int(time_ns)), event


@test
def jsonl_keeps_every_byte_and_every_bit():
    big = 2**64 - 2
    text = read(os.path.join(DATA, V2 + ".txt")).decode()
    text = text.replace("heapalloc_value=12902400", f"heapalloc_value={big}")
    text = text.replace("heapgoal_value=25165824", f"heapgoal_value={2**53}")
    path = assembled("big", text)
    events = [json.loads(line) for line in good("print", "-f", "jsonl", path).lines]
    values = [
        e["value"]
        for e in events
        if e["kind"] == "Metric" and e["name"].startswith(("/memory", "/gc"))
    ]
    assert values == [str(big), 2**53]
    log = next(e for e in events if e["kind"] == "Log")
    assert log["message"] == "tab\there, \u00e9, \u2028, \x1b[31m and \ufffd"
    assert (
        bytes.fromhex(log["message_hex"])
        == "tab\there, \u00e9, \u2028, \x1b[31m and ".encode() + b"\xff"
    )
    assert "category_hex" not in log
    stack = next(e for e in events if e["kind"] == "Log")["stack"]
    assert stack[0] == {
        "pc": "0x1000",
        "func": "main.serve",
        "file": "/src/app/main.go",
        "line": 42,
    }
    bare = [json.loads(line) for line in good("print", "-f", "jsonl", "--no-stacks", path).lines]
    assert bare == [
        {k: v for k, v in e.items() if k not in ("stack", "transition_stack")} for e in events
    ]


@test
def one_event_a_line_in_jsonl_and_nothing_else():
    for name in TRACES:
        out = good("print", "-f", "jsonl", trace(name)).out
        assert out.endswith(b"\n") and all(json.loads(line)["kind"] for line in out.splitlines())


# Filters


def times_ns(name):
    events = [
        json.loads(line) for line in good("print", "-f", "jsonl", "--no-stacks", trace(name)).lines
    ]
    return [e["time_ns"] - events[0]["time_ns"] for e in events]


@test
def a_window_shows_exactly_the_lines_of_the_whole_print():
    for name in TRACES:
        whole = good("print", trace(name)).lines
        times = times_ns(name)
        assert len(whole) == len(times)
        for i in range(0, len(times), 3):
            for j in range(i, len(times), 5):
                window = good(
                    "print", f"--from={times[i]}ns", f"--to={times[j]}ns", trace(name)
                ).lines
                assert window == whole[i : j + 1], (name, i, j)
        half = len(times) // 2
        us = times[half] / 1000
        assert good("print", f"--from={us:.3f}us", trace(name)).lines == whole[half:]
        assert good("print", f"--to={times[half]}ns", trace(name)).lines == whole[: half + 1]


@test
def a_window_of_the_other_forms_is_a_part_of_the_whole_too():
    for name, form in ((V2, "go"), (V1, "go"), (V1, "go-v1"), (V2, "jsonl")):
        whole = good("print", "-f", form, trace(name)).out
        part = good("print", "-f", form, "--from=1us", "--to=+4us", trace(name)).out
        assert part and part in whole and len(part) < len(whole), (name, form)


UNITS = {"ns": 1, "us": 10**3, "\u00b5s": 10**3, "\u03bcs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
HEAD = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=0
EventBatch gen=1 m=5 time=1000 size=auto
ProcStatus dt=0 p=0 pstatus=1
"""


def of_events(name, events):
    """A trace with the events of one thread."""
    text = HEAD + "\n".join([*events, "EndOfGeneration", ""])
    return assembled(name, text)


@test
def units_of_time_are_exact():
    times = sorted({n * u // 10 + d for u in UNITS.values() for n in (995, 1000) for d in (-1, 0, 1)})
    events = [f"HeapAlloc dt={b - a} heapalloc_value=1" for a, b in zip([0] + times, times)]
    path = of_events("units", events)
    for unit, ns in UNITS.items():
        for text, right in ((f"100{unit}", 100 * ns), (f"99.5{unit}", 995 * ns // 10), (f"100.000{unit}", 100 * ns)):
            lines = good("print", "--format=jsonl", "--kind=Metric", f"--from={text}", path).lines
            equal(len(lines), len([t for t in times if t >= right]), text)
            lines = good("print", "--format=jsonl", "--kind=Metric", f"--to={text}", path).lines
            equal(len(lines), len([t for t in times if t <= right]), text)
    for text in ("1", "1us2", "1.us", ".us", "1 us", "1min", "-1us", "us", "1.5", "99999999999h"):
        code = run("print", f"--from={text}", path).code
        assert code == 2, (text, code)


def waits_of(lengths):
    events = ["GoStatus dt=1 g=1 m=5 gstatus=2"]
    for i, length in enumerate(lengths):
        events += [
            "GoBlock dt=10 reason_string=0 stack=0",
            f"GoUnblock dt={length} g=1 g_seq={2 * i + 1} stack=0",
            f"GoStart dt=10 g=1 g_seq={2 * i + 2}",
        ]
    return of_events("waits", events)


@test
def lengths_in_patterns_have_units():
    lengths = sorted({ns + d for ns in UNITS.values() for d in (-1, 0, 1)} - {0})
    path = waits_of(lengths)
    for unit, ns in UNITS.items():
        for sign, holds in (
            (">", int.__gt__), (">=", int.__ge__), ("<", int.__lt__), ("<=", int.__le__),
        ):  # fmt: skip
            found = run("find", "--count", path, f"block {sign}1{unit}")
            equal(int(found.out), len([n for n in lengths if holds(n, ns)]), (sign, unit))


@test
def lengths_are_told_in_the_unit_that_fits():
    """Three digits, truncated."""
    lengths = {
        1: "1ns", 999: "999ns", 1000: "1us", 1009: "1us", 1010: "1.01us", 1500: "1.5us", 9999: "9.99us", 10_090: "10us",
        10_100: "10.1us", 100_900: "100us", 999_999: "999us", 10**6: "1ms", 10**9 - 1: "999ms", 10**9: "1s", 12_340_000_000: "12.3s",
        3600 * 10**9: "3600s",
    }  # fmt: skip
    for locale, unit in (("C", "us"), ("C.UTF-8", "µs")):
        text = good("print", waits_of(lengths), env={**ENV, "LC_ALL": locale}).out.decode()
        equal(re.findall(r"made ready, after (\S+)", text), [t.replace("us", unit) for t in lengths.values()])


LOCALES = [
    ({"LC_ALL": "de_DE.utf8", "LANG": "C"}, True), ({"LC_CTYPE": "C.UTF-8", "LANG": "C"}, True),
    ({"LANG": "en_GB.UTF-8"}, True), ({"LC_ALL": "", "LC_CTYPE": "", "LANG": "C.UTF-8"}, True),
    ({"LC_ALL": "C", "LC_CTYPE": "C.UTF-8", "LANG": "C.UTF-8"}, False), ({"LC_CTYPE": "C", "LANG": "C.UTF-8"}, False),
    ({"LC_ALL": "de_DE.ISO-8859-15"}, False), ({}, False),
]  # fmt: skip


@test
def microseconds_have_their_sign_where_text_is_utf8():
    plain = {k: v for k, v in ENV.items() if k not in ("LC_ALL", "LC_CTYPE", "LANG")}
    path = waits_of([12_340])
    for names, signed in LOCALES:
        out = good("find", path, "block >=10us", env={**plain, **names}).out
        assert (b"12.340 \xc2\xb5s" in out, b"12.340 us" in out) == (signed, not signed), (names, out)


# Analyses with durations in sentences, in tables, and in separate columns.
SHOWN = [
    ["summary"], ["gc"], ["goroutines"], ["latency"], ["locks"], ["mmu"], ["procs"], ["profile"], ["regions"],
    ["tasks"], ["threads"], ["why", "--goroutine=15"], ["why", "--goroutine=15", "--limit=3"], ["check"], ["info"],
    ["find", "--limit=30", "ready >1us"], ["print", "--to=+1ms"],
]  # fmt: skip


@test
def the_locale_changes_nothing_else():
    """Signs and bars have the same width as their ASCII replacements, so that tables stay aligned."""
    path, signs = EXAMPLES[3], 0
    utf8 = {**ENV, "LC_ALL": "C.UTF-8"}
    for args in SHOWN:
        words = [args[0], path, *args[1:]] if args[0] == "find" else [*args, path]
        plain, signed = run(*words).out.decode(), run(*words, env=utf8).out.decode()
        assert "µ" not in plain, (args, plain)
        signs += signed.count("µ")
        for ours, right in zip(signed.split("\n"), plain.split("\n"), strict=True):
            equal(len(ours), len(right), args)
            rest = [(a, b) for a, b in zip(ours, right, strict=True) if a != b]
            assert all(b == "u" if a == "µ" else a in "▁▂▃▄▅▆▇█" for a, b in rest), (args, ours, right)
    assert signs > 100, signs
    for args in (["summary"], ["gc"], ["latency"], ["why", "--goroutine=15"]):
        equal(run(*args, "--json", path, env=utf8).out, run(*args, "--json", path).out, args)
    equal(run("print", "-f", "go", path, env=utf8).out, run("print", "-f", "go", path).out)


def generations_of(count, special):
    """The start times of the generations into which events of Go 1.21 are converted; `special`
    texts precede the events with their numbers."""
    events = ["HeapAlloc dt=1 mem=1\n"] * count
    for number, text in special.items():
        events[number] = text + events[number]
    text = "Trace Go1.21\nBatch p=0 ticks=1\nFrequency freq=1000000000\nGoCreate dt=1 g=1 stack=0 stk=0\n"
    text += "ProcStart dt=1 thread=100\nGoStartLocal dt=1 g=1\n" + "".join(events)
    old, new = assembled("old", text), os.path.join(WORK, "new.trace")
    good("convert", "--to=go1.23", old, "-o", new)
    good("check", "-q", new)
    lines = good("print", "--format=jsonl", "--kind=Sync", new).out.decode().splitlines()
    first, *others = [json.loads(line)["time_ns"] for line in lines if not json.loads(line)["final"]]
    return [time - first for time in others]


@test
def a_generation_ends_at_a_pause_and_without_one_at_last():
    """A generation ends after 2^19 events at the next pause, or without a pause after 2^20. A tick is a nanosecond."""

    def near(ours, *right):
        assert len(ours) == len(right) and all(abs(a - b) < 20 for a, b in zip(ours, right)), (ours, right)

    due, pause = 1 << 19, "HeapAlloc dt=1000 mem=1\n"
    near(generations_of(due - 10, {due - 100: pause}))
    near(generations_of(2 * due - 100, {due - 100: pause}))
    near(generations_of(2 * due + 100, {}), 2 * due)
    near(generations_of(due + 5000, {due - 100: pause, due + 100: pause, due + 200: pause}), due + 1100 + 1000)
    # Not while the world is stopped, nor at a very short pause.
    stopped = {due - 200: "STWStart dt=1 kindid=0\n", due + 100: pause, due + 200: "STWDone dt=1\n", due + 300: pause}
    near(generations_of(due + 5000, stopped), due + 1300 + 1000)
    near(generations_of(due + 5000, {due + 100: "HeapAlloc dt=9 mem=1\n"}))


# Each byte that is not UTF-8 (RFC 3629) becomes U+FFFD: the first and last of each kind.
UTF8 = {
    b"\x7f": "\x7f", b"\x80": 1, b"\xc0\xaf": 2, b"\xc1\xbf": 2, b"\xc2\x80": "\x80", b"\xdf\xbf": "\u07ff",
    b"\xe0\x80\xaf": 3, b"\xe0\x9f\xbf": 3, b"\xe0\xa0\x80": "\u0800", b"\xed\x9f\xbf": "\ud7ff",
    b"\xed\xa0\x80": 3, b"\xed\xbf\xbf": 3, b"\xee\x80\x80": "\ue000", b"\xf0\x80\x80\xaf": 4, b"\xf0\x8f\xbf\xbf": 4,
    b"\xf0\x90\x80\x80": "\U00010000", b"\xf4\x8f\xbf\xbf": "\U0010ffff", b"\xf4\x90\x80\x80": 4, b"\xf5\x80\x80\x80": 4,
    b"\xf8\x88\x80\x80\x80": 5, b"\xff": 1, b"\xc2\x7f": "\ufffd\x7f", b"\xe2\x98": 2, b'"\\\x01\n': '"\\\x01\n',
}  # fmt: skip


@test
def all_json_is_utf8_whatever_the_names_are():
    right = {name: text if isinstance(text, str) else text * "\ufffd" for name, text in UTF8.items()}
    events = ["GoStatus dt=1 g=1 m=5 gstatus=2"]
    strings = ["EventBatch gen=1 m=18446744073709551615 time=1000 size=auto", "Strings"]
    for i, name in enumerate(right, 1):
        strings += [f"String id={i}", '\tdata="' + "".join(f"\\x{byte:02x}" for byte in name) + '"']
        events += [f"UserRegion{what} dt=1 task=0 name_string={i} stack=0" for what in ("Begin", "End")]
    path = of_events("names", events + strings)
    found = json.loads(good("regions", "--json", "--limit=0", path).out.decode())
    equal([region["name"] for region in found["regions"]], list(right.values()))
    lines = good("print", "--format=jsonl", "--kind=RegionBegin", path).out.decode().splitlines()
    equal([json.loads(line)["name"] for line in lines], list(right.values()))


@test
def to_with_plus_counts_from_from():
    a = good("print", "--from=2us", "--to=+3us", trace(V2)).out
    assert a and a == good("print", "--to=5us", "--from=0.002ms", trace(V2)).out
    assert good("print", "--to=+3us", trace(V2)).out == good("print", "--to=3000ns", trace(V2)).out


@test
def limit_shows_the_first_lines():
    for name in TRACES:
        whole = good("print", trace(name)).lines
        for n in (1, 2, len(whole) - 1, len(whole), len(whole) + 5):
            assert good("print", f"--limit={n}", trace(name)).lines == whole[:n], (name, n)


def events_of(*args, name=V2):
    return [
        json.loads(line)
        for line in good("print", "-f", "jsonl", "--no-stacks", *args, trace(name)).lines
    ]


def concerns(event, resource, context, ids):
    return event.get(context) in ids or (
        event.get("resource") == resource and event.get("id") in ids
    )


@test
def a_goroutine_filter_takes_context_and_subject():
    for name in TRACES:
        whole = events_of(name=name)
        for ids in ([1], [2], [1, 3], [77]):
            word = ",".join(map(str, ids))
            mine = [e for e in whole if concerns(e, "goroutine", "g", ids)]
            assert events_of(f"--goroutine={word}", name=name) == mine, (name, ids)
    made_runnable = [e for e in events_of("--goroutine=1") if e.get("g") == 2 and e.get("id") == 1]
    assert made_runnable, "what G 2 did to G 1 is missing"
    assert events_of("-g", "G1") == events_of("-g", "1")


@test
def proc_and_thread_filters():
    whole = events_of()
    assert events_of("--proc=1") == [e for e in whole if concerns(e, "proc", "p", [1])]
    assert events_of("--thread=101") == [e for e in whole if e.get("m") == 101]
    assert events_of("--thread=100,101") == [e for e in whole if e.get("m") in (100, 101)]


@test
def kind_filters_take_kinds_and_types_in_any_case():
    whole = events_of()
    assert events_of("--kind=Log,Label") == [e for e in whole if e["kind"] in ("Log", "Label")]
    assert events_of("--kind=log", "--kind=LABEL") == events_of("--kind=Log,Label")
    assert events_of("--kind=GoBlock") == [e for e in whole if e.get("type") == "GoBlock"]
    assert events_of("--kind=Sync") == [e for e in whole if e["kind"] == "Sync"]
    kinds = sorted({e["kind"] for e in whole})
    assert events_of("--kind=" + ",".join(kinds)) == whole
    lines = good("print", "-f", "go-v1", "--kind=GoBlockRecv,UserLog", trace(V1)).lines
    assert [line.split()[1] for line in lines] == ["UserLog", "GoBlockRecv"]


@test
def filters_combine():
    whole = events_of()
    first = whole[0]["time_ns"]
    mine = [
        e
        for e in whole
        if e["kind"] == "StateTransition"
        and concerns(e, "goroutine", "g", [2])
        and e["time_ns"] - first <= 9000
    ]
    assert (
        events_of("--kind=StateTransition", "--goroutine=2", "--to=9us") == mine and len(mine) > 2
    )
    assert events_of("--kind=StateTransition", "--goroutine=2", "--limit=2") == mine[:2]


@test
def v1_filter_by_goroutine():
    whole = good("print", "-f", "go-v1", trace(V1)).lines
    mine = good("print", "-f", "go-v1", "--goroutine=2", trace(V1)).lines
    assert mine == [line for line in whole if re.search(r" g=2\b", line)] and len(mine) == 5, mine


# info, check, assemble


@test
def info_of_hand_written_traces():
    info = json.loads(good("info", "--full", "--json", trace(V2)).out)
    assert info["version"] == 26 and info["writers"] == "Go 1.26-1.27"
    assert info["bytes"] == info["file_bytes"] == os.path.getsize(trace(V2))
    assert (
        info["generations"] == 2 and info["goroutines"] == 3 and info["ps"] == 2 and info["ms"] == 2
    )
    assert info["tasks"] == 2 and info["regions"] == 1 and info["cpu_samples"] == 1
    assert info["start_wall_s"] == 1700000000 and info["start_wall_ns"] == 120000000
    assert info["events_by_kind"]["Log"] == 1 and info["records_by_type"]["GoStart"]["count"] == 3
    assert info["batches_by_kind"]["events"]["count"] == 6
    total = sum(kind["bytes"] for kind in info["batches_by_kind"].values())
    assert total + 16 == info["bytes"]
    assert info["events"] == sum(info["events_by_kind"].values())
    quick = json.loads(good("info", "--json", trace(V2)).out)
    assert quick["ms"] == 2 and quick["generations"] == 2 and not quick["duration_exact"]
    assert quick["duration_ns"] == (1502 - 1000) * 64

    v1 = json.loads(good("info", "--full", "--json", trace(V1)).out)
    assert v1["version"] == 21 and v1["ps"] == 1 and v1["goroutines"] == 3 and v1["batches"] == 2
    quick = json.loads(good("info", "--json", trace(V1)).out)
    assert quick["duration_ns"] == 1000 * 64


@test
def the_duration_is_about_right_without_all_events():
    """A recording of one generation has few batches, all of which begin near its start."""
    folder = os.path.join(ROOT, "examples", "traces")
    for name in ("shop-c.trace", "shop-c-stuck.trace", "shop-go.trace", "load-go1.22.trace", "load-go1.23.trace"):
        quick = json.loads(good("info", "--json", os.path.join(folder, name)).out)
        full = json.loads(good("info", "--full", "--json", os.path.join(folder, name)).out)
        assert full["duration_exact"] and not quick["duration_exact"], name
        assert abs(quick["duration_ns"] - full["duration_ns"]) <= full["duration_ns"] / 100, (name, quick, full)


@test
def info_for_people_names_the_releases():
    for name, releases in ((V2, b"Go 1.26-1.27"), (V1, b"(Go 1.21)"), (V15, b"Go 1.5-1.6")):
        assert releases in good("info", trace(name)).out


@test
def info_tells_what_is_cut_off():
    data = read(trace(V2))
    r = run("info", written("cut3.trace", data[:-1]))
    assert r.code == 1 and b"cut off" in r.out
    r = run("info", "--json", written("cut4.trace", data[:-20]))
    assert r.code == 1 and json.loads(r.out)["error"]["offset"] > 0


@test
def a_v1_trace_without_its_end_is_shown_and_said_to_be_cut():
    """Cut between two records, so that only the missing end shows it."""
    text = read(os.path.join(DATA, V1 + ".txt")).decode()
    lines = [line for line in text.split("\n") if not line.startswith("Frequency")]
    path = assembled("endless", "\n".join(lines))
    for args in (["info"], ["info", "--full"]):
        r = run(*args, path)
        assert r.code == 1 and b"cut off" in r.out and b"not known" in r.out, r.out
    r = run("print", "--strict", path)
    assert r.code == 1 and not r.out and "no EvFrequency" in r.err
    whole = good("print", trace(V1)).lines
    for options in ([], ["--partial"], ["--partial", "--repair"]):
        r = run("print", *options, path)
        assert r.code == 1 and "speed of the clock" in r.err and "no EvFrequency" in r.err, r.err
        # The final Sync is missing; times differ, because the clock is guessed.
        shown = [line for line in r.lines if "(inferred: events are lost)" not in line]
        assert len(shown) < len(r.lines)
        assert [line[13:40] for line in shown] == [line[13:40] for line in whole[:-1]]


@test
def info_of_a_damaged_trace_keeps_the_duration_of_its_batches():
    cut = written("cut6.trace", read(trace(V2))[:-20])
    quick = json.loads(run("info", "--json", cut).out)
    full = json.loads(run("info", "--json", "--full", cut).out)
    assert full["duration_ns"] == quick["duration_ns"] > 0 and not full["duration_exact"]


@test
def check_counts_the_events_that_info_and_print_show():
    for name in TRACES:
        count = len(good("print", trace(name)).lines)
        assert re.search(rf"^  events +{count}( |$)", good("check", trace(name)).out.decode(), re.M)
        full = good("info", "--full", trace(name)).out.decode()
        assert re.search(rf"^  events +{count}$", full, re.M), full


@test
def check_tells_how_much_is_good():
    data = read(trace(V2))
    second = second_generation(data)
    path = written("half.trace", data[: len(data) - 3])
    verdict = json.loads(run("check", "--json", path).out)
    assert not verdict["good"] and verdict["generations"] == 1
    assert verdict["good_bytes"] == second, verdict
    assert verdict["error"]["generation"] == 2
    r = run("check", path)
    assert b"1 generation\n" in r.out and b"trail print" in r.out
    # ... and the sound part is printed before the error
    shown = run("print", "--strict", path)
    whole = good("print", trace(V2)).lines
    assert (
        shown.code == 1
        and shown.lines[:-1] == whole[: len(shown.lines) - 1]
        and len(shown.lines) > 20
    )
    # ... and more of it, without names, by a reader that is not strict
    assert len(run("print", path).lines) > len(shown.lines)


@test
def check_quiet_prints_nothing():
    cut = written("cut5.trace", read(trace(V2))[:-5])
    for path, code in ((trace(V2), 0), (cut, 1)):
        r = run("check", "--quiet", path)
        assert r.code == code and not r.out and not r.err


@test
def repair_reads_what_has_no_order_and_lists_it():
    path = trace(GAP)
    r = run("check", path)
    assert r.code == 1 and b"no consistent ordering" in r.out and b"--repair" in r.out
    verdict = json.loads(good("check", "--repair", "--list", "--json", path).out)
    assert verdict["good"] and verdict["repairs"] == len(verdict["repair_list"]) > 0
    assert verdict["repairs"] == sum(verdict["repairs_by_kind"].values())
    assert all(repair["g"] == 2 for repair in verdict["repair_list"])
    strict = run("print", "--strict", path)
    assert strict.code == 1 and not strict.out
    repaired = good("print", "--repair", path)
    assert b"G 2" in repaired.out and "repairs" in repaired.err


@test
def a_lost_event_does_not_move_its_p_to_the_end_of_the_trace():
    """A trace of 32 ms with two Ps. Later events of the P wait for the lost one, which never comes,
    for at most 1 ms."""
    source = os.path.join(ROOT, "examples", "traces", "load-go1.21.trace")
    lines = good("print", "-f", "wire", source).out.split(b"\n")
    blocks = [i for i, line in enumerate(lines) if line.startswith(b"GoBlock")]
    for i in (blocks[len(blocks) // 5], blocks[len(blocks) // 2]):
        text = b"\n".join(lines[:i] + lines[i + 1 :])
        path = assembled("lost", text)
        assert run("check", path).code == 1
        args = ["check", "--repair", "--list", "--limit=10000", "--json", path]
        verdict = json.loads(good(*args).out)
        assert verdict["repairs_by_kind"]["sequence"] >= 1
        assert max(repair["shift_ns"] for repair in verdict["repair_list"]) < 2_000_000
        assert good(*args).out == good(*args).out, "not the same each time"


@test
def partial_shows_the_consistent_part_then_the_error():
    r = run("print", trace(GAP))
    assert r.code == 1 and "no consistent ordering" in r.err
    whole = good("print", "--repair", trace(GAP)).lines
    assert r.lines and r.lines == whole[: len(r.lines)]


@test
def wire_and_assemble_are_inverse():
    for name in (V2, V1, V15, GAP):
        text = good("print", "-f", "wire", trace(name)).out
        version = re.search(r"\d+\.\d+", name).group()
        again = good("assemble", f"--version={version}", "-", "-o", "-", stdin=text).out
        assert again == read(trace(name)), name


@test
def assemble_names_the_line():
    r = run(
        "assemble",
        "-",
        "-o",
        "-",
        stdin=b"Trace Go1.26\nEventBatch gen=1 m=0 time=0 size=auto\nGoNonsense dt=1\n",
    )
    assert r.code == 1 and "line 3" in r.err, r.err
    r = run("assemble", "-", "-o", "-", stdin=b"Frequency freq=1\n")
    assert r.code != 0 and "ersion" in r.err, r.err


@test
def symbols_of_a_program_resolve_pcs():
    """A small C program stands for the traced one: only its functions must be found."""
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc or not shutil.which("nm"):
        return
    source = written(
        "prog.c",
        b"int traced(int x)\n{\n    return x + 1;\n}\nint main(void)\n{\n    return traced(1);\n}\n",
    )
    program = os.path.join(WORK, "prog")
    if subprocess.run(
        [cc, "-g", "-O0", "-no-pie", "-o", program, source], capture_output=True
    ).returncode:
        return
    symbols = subprocess.run(["nm", program], capture_output=True).stdout.decode()
    address = int(re.search(r"^([0-9a-f]+) T traced$", symbols, re.M).group(1), 16)
    text = (
        read(os.path.join(DATA, V15 + ".txt")).decode().replace("pc=4202512", f"pc={address + 5}")
    )
    path = assembled("symbols", text)
    assert b"traced" not in good("print", "-s", path).out
    assert f"traced ({source}:" in good("print", "-s", f"--binary={program}", path).out.decode()
    assert run("print", "--binary=/nonexistent", path).code == 3
    assert run("print", f"--binary={source}", path).code == 3


if __name__ == "__main__":
    sys.exit(main())
