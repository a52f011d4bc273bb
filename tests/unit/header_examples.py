#!/usr/bin/env python3
"""The examples in the comments of the public headers compile. An example is text indented by five columns
after the star, after an empty line of the comment, up to the next empty line or the end of the comment; lists and
other text are indented less. TAP.

usage: header_examples.py SOURCE_ROOT COMPILER...
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import Skip, main, test  # noqa: E402

INCLUDE = pathlib.Path(sys.argv[1]) / "include"
C = [*sys.argv[2:], "-x", "c", "-std=c11", "-D_DEFAULT_SOURCE"]
CPP = ["c++", "-x", "c++", "-std=c++11"]
CPP20 = [*CPP[:-1], "-std=c++20"]  # for the part of record.hpp that requires it
HEADERS = sorted(INCLUDE.glob("trail/*.h")) + sorted(INCLUDE.glob("trail/*.hpp"))

# Names that the examples of a header assume; each is a parameter of a function around them.
GIVEN = {
    "analyze.h": [
        "trail_reader *reader, trail_analysis_options options, trail_error err",
        "const trail_histogram *histogram, uint64_t count, int64_t from_ns, int64_t to_ns",
    ],
    "export.h": [
        "trail_merge_options options, trail_merge_source web, trail_merge_source database, trail_sink sink,"
        "trail_convert_stats stats, trail_error err",
    ],
    "record.h": ["uint64_t task, const char *path", ""],
    "tables.h": ["trail_reader *reader, trail_error err"],
    "record.hpp": ["std::size_t size", ""],
}


def examples(header):
    """The line number and the code of each example."""
    code, begin, after_empty = [], 0, False
    for number, line in enumerate(header.read_text().splitlines(), 1):
        text = re.match(r"^\s*\*(?!/)(.*)", line)
        inside = text and text[1].startswith(" " * 5)
        if inside and (code or after_empty):
            begin = begin if code else number
            code.append(text[1])
        elif code:
            yield begin, "\n".join(code) + "\n"
            code = []
        after_empty = text is not None and not text[1].strip()


def code_elsewhere(header):
    """Lines of code that are indented, but less than an example."""
    for number, line in enumerate(header.read_text().splitlines(), 1):
        if re.match(r"^\s*\* {2,4}\S.*[;{}]$", line):
            yield f"{header.name}:{number}:{line}"


def complaints(header, line, code, given):
    language = C if header.suffix == ".h" else CPP20 if "trail::coroutine" in code else CPP
    program = "\n".join(
        [
            "#include <stdio.h>",
            "#include <string.h>",
            f"#include <trail/{header.name}>",
            f"void example({given});",
            f"void example({given})",
            "{",
            f'#line {line} "{header.name}"',
            code + "}",
        ]
    )
    flags = ["-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", "-"]
    done = subprocess.run([*language, *flags], input=program, capture_output=True, text=True)
    return done.stderr if done.returncode else ""


def compile_all(headers):
    for header in headers:
        found, given = list(examples(header)), GIVEN.get(header.name, [])
        lines = [line for line, _ in found]
        assert len(found) == len(given), f"{header.name} has examples at {lines}, GIVEN has {len(given)} for it"
        for (line, code), parameters in zip(found, given):
            wrong = complaints(header, line, code, parameters)
            assert not wrong, wrong


@test
def every_header_with_examples_is_there():
    missing = GIVEN.keys() - {header.name for header in HEADERS}
    assert not missing, f"no such header: {', '.join(sorted(missing))}"


@test
def code_is_indented_as_an_example():
    found = [line for header in HEADERS for line in code_elsewhere(header)]
    assert not found, "\n".join(found)


@test
def the_examples_for_C_compile():
    compile_all([header for header in HEADERS if header.suffix == ".h"])


@test
def the_examples_for_CPP_compile():
    if not shutil.which(CPP[0]):
        raise Skip("no C++ compiler")
    compile_all([header for header in HEADERS if header.suffix == ".hpp"])


sys.exit(main())
