#!/usr/bin/env python3
"""Memory use for traces made to need much of it. TAP.

usage: memory.py TRAIL SANITIZER

Bounds are several times what is needed, and a small fraction of what a mistake would cost.
"""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

TRAIL, SANITIZER = os.path.abspath(sys.argv[1]), sys.argv[2]
if SANITIZER != "none":
    print("1..0 # SKIP a sanitizer takes memory of its own")
    sys.exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test  # noqa: E402

FOLDER = tempfile.TemporaryDirectory(prefix="trail-memory-")


def peak(*args):
    """Returns the command's peak memory in bytes, its exit status, and its messages."""
    process = subprocess.Popen([TRAIL, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    err = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss * 1024, process.returncode, err


def functions(count):
    """A trace of this many goroutines, each with its own function, a region and a wait."""
    path = os.path.join(FOLDER.name, f"functions-{count}.trace")
    if os.path.exists(path):
        return path
    with open(path + ".txt", "w") as text:
        text.write(
            "Trace Go1.21\nBatch p=0 ticks=1000\nGoCreate dt=1 g=1 stack=1 stk=0\n"
            "ProcStart dt=1 thread=100\nGoStartLocal dt=1 g=1\nGomaxprocs dt=1 procs=1 stk=0\n"
        )
        for g in range(2, count + 2):
            text.write(
                f"GoCreate dt=1000 g={g} stack={g} stk=1\nGoPreempt dt=1000 stk=1\n"
                f"GoStartLocal dt=100000 g={g}\n"
                f"UserRegion dt=5 taskid=0 mode=0 typeid={g} stk={g}\n"
                f"UserRegion dt=50000 taskid=0 mode=1 typeid={g} stk={g}\n"
                f"GoBlockRecv dt=1000 stk={g}\nGoStartLocal dt=1000 g=1\n"
                f"GoUnblockLocal dt=1000 g={g} stk=1\nGoPreempt dt=1000 stk=1\n"
                f"GoStartLocal dt=1000 g={g}\nGoEnd dt=1000\nGoStartLocal dt=1000 g=1\n"
            )
        text.write('Frequency freq=15625000\nString id=1\n\tdata="main.main"\n')
        for n in range(2, count + 2):
            text.write(f'String id={n}\n\tdata="main.f{n}"\n')
        for n in range(1, count + 2):
            text.write(f"Stack id={n} siz=1\n\tpc={4096 * n} func={n} file=1 line=7\n")
    subprocess.run([TRAIL, "assemble", path + ".txt", "-o", path], check=True)
    return path


def each(*command):
    """Returns the cost of a function with one value of each kind."""
    few, many = 1000, 41000
    sizes = []
    for count in (few, many):
        size, code, err = peak(*command, functions(count))
        assert code == 0, err
        sizes.append(size)
    return (sizes[1] - sizes[0]) / (many - few)


@test
def a_function_with_one_value_takes_little_of_summary():
    # A goroutine, a region and a wait need 2 kB; with complete histograms they took 13 kB.
    assert each("summary") < 5000, each("summary")


@test
def a_function_with_one_value_takes_little_of_report():
    report = os.path.join(FOLDER.name, "report.html")
    assert each("report", "-o", report) < 8000, each("report", "-o", report)


@test
def a_function_with_one_value_takes_little_of_groups():
    for command in (["goroutines", "--percentiles=total"], ["regions", "--percentiles=total"]):
        assert each(*command) < 4000, (command, each(*command))


@test
def a_stack_with_one_value_takes_little_of_latency():
    assert each("latency") < 1200, each("latency")


def bomb(name, start, repeated, megabytes):
    """Compressible a thousandfold: this many megabytes after the start, each the same block of deflated data."""
    path = os.path.join(FOLDER.name, name)
    piece = repeated * ((1 << 20) // len(repeated))
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    blocks = [deflate.compress(of) + deflate.flush(zlib.Z_FULL_FLUSH) for of in (start, piece)]
    crc = zlib.crc32(start)
    for _ in range(megabytes):
        crc = zlib.crc32(piece, crc)
    with open(path, "wb") as file:
        file.write(b"\x1f\x8b\x08" + bytes(7) + blocks[0] + blocks[1] * megabytes + deflate.flush())
        file.write(struct.pack("<II", crc, len(start) + len(piece) * megabytes))
    return path


HEADER = b"go 1.21 trace\0\0\0"
# P 0 at tick 1000, the heap's goal of one byte; then its size, repeatedly, which is huge: few events are many bytes.
GOOD = HEADER + b"\x41\x00\xe8\x07" + b"\x62\x01\x01"
HEAP = b"\x61\x01" + b"\xff" * 8 + b"\x7f"
MB = 1000000


@test
def what_is_no_trace_is_not_decompressed():
    path = bomb("none.gz", HEADER + b"\xff", b"\0", 300)
    for command in ("check", "info", "summary", "print"):
        size, code, err = peak(command, path)
        assert code == 1 and size < 40 * MB, (command, code, size, err)


@test
def what_is_compressed_too_well_is_an_error_that_says_what_to_do():
    path = bomb("heap.gz", GOOD, HEAP, 400)
    for command in ("check", "summary", "print", "info"):
        size, code, err = peak(command, path)
        assert code == 3 and size < 200 * MB, (command, code, size, err)
        assert "--max-ratio=N" in err, err
    # If it is read to its end, the result is the same as without compression.
    path = bomb("whole.gz", GOOD, HEAP, 30)
    _, code, err = peak("check", "--max-ratio=0", path)
    assert code == 1, (code, err)
    _, code, err = peak("summary", "--max-ratio", "0", "--max-inflated=20M", path)
    assert code == 3 and "20971520" in err, err


@test
def limits_are_checked():
    for wrong in ("--max-ratio=x", "--max-inflated=-1", "--max-ratio"):
        _, code, err = peak("check", "x.trace", wrong)
        assert code == 2, err


def zip_member(name, data, count=1):
    """`data` this many times, in the form written to a stream: the sizes follow."""
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed, crc = b"", 0
    for _ in range(count):
        packed += deflate.compress(data)
        crc = zlib.crc32(data, crc)
    packed += deflate.flush()
    header = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 8, 8, 0, 0, 0, 0, 0, len(name), 0)
    return header + name + packed + struct.pack("<4sIII", b"PK\7\10", crc, len(packed), len(data) * count)


@test
def files_before_a_trace_in_a_zip_archive_are_decompressed_up_to_a_limit_in_all():
    """The limit is 1 GB, which takes a second of CPU time; without it, each MB of an archive could cost three."""
    large = zip_member(b"zeros", bytes(1 << 20), 600)
    last = zip_member(b"t.trace", GOOD + HEAP)  # without its end
    path = os.path.join(FOLDER.name, "large.zip")
    for count, err in (1, ""), (2, f"trail: {path}: no file in the zip archive is a trace\n"):
        with open(path, "wb") as file:
            file.write(large * count + last)
        used, *ended = peak("info", path)
        assert ended == [1, err], ended
        assert used < 32 << 20, used


if __name__ == "__main__":
    sys.exit(main())
