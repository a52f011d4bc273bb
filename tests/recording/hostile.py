#!/usr/bin/env python3
"""Programs that damage the memory that they share with `trail record`, and the files that it reads.

Whatever they do, the recorder ends by itself or at a signal, with status 0 or 1, and the trace is good.

usage: hostile.py TRAIL PRELOAD PROGRAM"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import tap
from tap import finish

TRAIL, PRELOAD, PROGRAM = (os.path.abspath(word) for word in sys.argv[1:4])
SEEDS = int(os.environ.get("TRAIL_HOSTILE_SEEDS", "200"))
FIRST = int(os.environ.get("TRAIL_HOSTILE_FIRST", "0"))
PATIENCE = 5  # s: it may end by itself
HANGS = 60  # s: it does not end; not 2, since the machine may be busy
WAYS = [[], ["--heap"], ["--all"], ["--children"], ["--switches=off"], ["--min-wait=0", "--format=1.26"]]
WORK = tempfile.mkdtemp(prefix="trail-hostile-")



def report(name, wrong):
    tap.report(not wrong, name, wrong)


def end(recorder, patience=PATIENCE):
    """Waits for it, then asks it to end; what it has said, or None if it does not end."""
    for signals in ([], [signal.SIGTERM], [signal.SIGTERM]):
        for number in signals:
            recorder.send_signal(number)
        try:
            recorder.wait(patience)
            with open(recorder.said, errors="replace") as file:
                return file.read()
        except subprocess.TimeoutExpired:
            patience = 2 if not signals else HANGS
    recorder.kill()
    recorder.wait()
    return None


def check(path):
    p = subprocess.run([TRAIL, "check", path], capture_output=True, text=True)
    return "" if p.returncode == 0 else p.stdout + p.stderr


def record(path, *words, stdin=None):
    # Not a pipe: a program that goes on would hold it.
    with open(path + ".said", "w") as said:
        recorder = subprocess.Popen([TRAIL, "record", "-o", path, *words], stdin=stdin,
                                    stdout=subprocess.DEVNULL, stderr=said)
    recorder.said = path + ".said"
    return recorder


def wrong_with(recorder, path, patience=PATIENCE):
    said = end(recorder, patience)
    if said is None:
        return "the recorder does not end"
    if recorder.returncode not in (0, 1):
        return f"status {recorder.returncode}: {said}"
    return check(path)


def test_seeds():
    """Words of the area, overwritten while the program works."""
    wrong = []
    for seed in range(FIRST, FIRST + SEEDS):
        path = os.path.join(WORK, f"{seed}.trace")
        recorder = record(path, *WAYS[seed % len(WAYS)], "--", PROGRAM, str(seed))
        found = wrong_with(recorder, path)
        if found:
            wrong.append(f"seed {seed}: {found}")
            kept = os.environ.get("TRAIL_HOSTILE_KEEP")
            if kept and os.path.exists(path):
                shutil.copy(path, kept)
        if os.path.exists(path):
            os.unlink(path)
    report(f"{SEEDS} programs that overwrite words of the shared memory", "\n".join(wrong))


def wait_for(condition):
    until = time.monotonic() + HANGS
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def attached(area, program):
    """A recorder that waits at a file, a program that finds it, and the file, whose name is gone then."""
    path = area + ".trace"
    recorder = record(path, "--attach-shm", area)
    if not wait_for(lambda: os.path.exists(area)):
        return recorder, None, None, path
    file = os.open(area, os.O_RDWR)
    script = f'eval "$({shlex.quote(TRAIL)} env --shm={shlex.quote(area)} 2>/dev/null)"; exec "$@"'
    child = subprocess.Popen(["sh", "-c", script, "sh", *program])
    wait_for(lambda: is_mapped(child.pid, area))
    return recorder, child, file, path


def is_mapped(pid, area):
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return area in maps.read()
    except OSError:
        return True


def test_cut_file():
    """The file of --attach-shm is cut while it is read."""
    area = os.path.join(WORK, "area")
    recorder, child, file, path = attached(area, ["sleep", "60"])
    if not child:
        report("a file of shared memory that is cut", end(recorder) or "no area")
        return
    time.sleep(0.5)  # the recorder has seen it; if not, the test is the easier
    os.ftruncate(file, 0)
    os.close(file)
    child.kill()
    child.wait()
    recorder.send_signal(signal.SIGINT)
    said = end(recorder, HANGS)
    report("a file of shared memory that is cut: the recorder ends as ever",
           "" if said is not None and recorder.returncode in (0, 1) else f"{recorder.returncode}: {said}")
    report("... and says so", "" if said and "became shorter" in said else str(said))
    report("... and the trace is good", check(path))


def test_sealed():
    """The memory of a program that was started cannot be cut, by anybody."""
    path, ready = os.path.join(WORK, "sealed.trace"), os.path.join(WORK, "ready")
    recorder = record(path, "--", "sh", "-c", f"touch {shlex.quote(ready)}; read word", stdin=subprocess.PIPE)
    pattern, seen = re.compile("memfd:trail"), []

    def find():
        for fd in os.listdir(f"/proc/{recorder.pid}/fd"):
            try:
                if pattern.search(os.readlink(f"/proc/{recorder.pid}/fd/{fd}")):
                    seen.append(fd)
            except OSError:
                pass
        return seen

    wait_for(lambda: os.path.exists(ready))
    wait_for(find)
    wrong = "the memory could be cut"
    try:
        file = os.open(f"/proc/{recorder.pid}/fd/{seen[0]}", os.O_RDWR)
        os.ftruncate(file, 0)
    except PermissionError:
        wrong = ""
    report("the shared memory is sealed", wrong)
    recorder.send_signal(signal.SIGTERM)
    # The program ends by the signal that is passed on to it.
    said = end(recorder, HANGS)
    report("... and a signal ends its recording", "" if recorder.returncode == 128 + signal.SIGTERM else str(said))
    report("... with a good trace", check(path))


def test_deaf_program():
    """One that does nothing about signals is left to itself at the second one."""
    path = os.path.join(WORK, "deaf.trace")
    pid_file = os.path.join(WORK, "pid")
    script = f"trap '' TERM INT HUP; echo $$ > {shlex.quote(pid_file)}.new; mv {shlex.quote(pid_file)}.new {shlex.quote(pid_file)}; while :; do sleep 1; done"
    recorder = record(path, "--", "sh", "-c", script)
    wait_for(lambda: os.path.exists(pid_file))
    with open(pid_file) as file:
        pid = int(file.read())
    said = end(recorder, 1)
    report("a program that ignores signals does not keep the recorder", "" if recorder.returncode == 0 else f"{recorder.returncode}: {said}")
    report("... which says that it goes on", "" if said and f"goes on as process {pid}" in said else str(said))
    report("... and has written a good trace", check(path))
    try:
        os.kill(pid, signal.SIGKILL)
        report("... and it does go on", "")
    except ProcessLookupError:
        report("... and it does go on", "it has ended")


def test_stranger():
    """A claim in the name of a process that is none of the program's is refused."""
    path = os.path.join(WORK, "stranger.trace")
    stranger = subprocess.Popen(["sleep", "60"])
    recorder = record(path, "--children", "--", sys.executable, "-c", f"""
import os, struct, sys, time
recorder = os.getppid()
for fd in os.listdir(f'/proc/{{recorder}}/fd'):
    try:
        if 'memfd:trail' not in os.readlink(f'/proc/{{recorder}}/fd/{{fd}}'):
            continue
        file = open(f'/proc/{{recorder}}/fd/{{fd}}', 'r+b')
    except OSError:
        continue
    # claimed is the sixth number of 32 bits of struct shm_header, behind magic, version, size_check and root_pid
    file.seek(20)
    file.write(struct.pack('<I', {stranger.pid}))
    file.flush()
    time.sleep(1)
""")
    said = end(recorder, HANGS)
    report("a claim in another process's name is refused", "" if said and "refused to record 1 process" in said else str(said))
    report("... and it has no trace", "" if not os.path.exists(path.replace(".trace", f".{stranger.pid}.trace")) else "it has one")
    report("... and the program's is good", check(path))
    stranger.kill()
    stranger.wait()


def test_namespace():
    """A program in a PID namespace of its own: its numbers are other ones than ours."""
    path = os.path.join(WORK, "nested.trace")
    can = subprocess.run(["unshare", "-r", "-p", "-f", "true"], capture_output=True)
    if can.returncode != 0:
        report("a program in a PID namespace # SKIP no namespaces here", "")
        return
    recorder = record(path, "--children", "--split", "--", "unshare", "-r", "-p", "-f", "sleep", "1")
    said = end(recorder, HANGS)
    traces = [name for name in os.listdir(WORK) if re.fullmatch(r"nested\.\d+\.trace", name)]
    report("a program in a PID namespace is recorded under its number for us", "" if len(traces) == 1 and "nested.1.trace" not in traces else f"{traces} {said}")
    for name in traces:
        report("... with a good trace", check(os.path.join(WORK, name)))


test_sealed()
test_cut_file()
test_deaf_program()
test_stranger()
test_namespace()
test_seeds()
shutil.rmtree(WORK)
sys.exit(finish())
