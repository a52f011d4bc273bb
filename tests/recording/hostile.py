#!/usr/bin/env python3
"""Programs that damage the memory that they share with `trail record`, and the files that it reads.

Whatever they do, the recorder ends by itself or at a signal, with status 0 or 1, and the trace is
good. tests/hammer/hostile.py overwrites words of the memory at random.

usage: hostile.py TRAIL COMPILER...
"""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import states
import tap
import work
from recorded import send, step
from tap import finish

TRAIL, COMPILER = os.path.abspath(sys.argv[1]), sys.argv[2:]
HANGS = 60  # s, after which a recorder counts as hanging
WORK = work.folder("hostile")


def report(name, wrong):
    tap.report(not wrong, name, wrong)


def end(recorder):
    """Waits for the recorder to end. Returns its messages, or None if it does not end."""
    try:
        recorder.wait(HANGS)
    except subprocess.TimeoutExpired:
        recorder.kill()
        recorder.wait()
        return None
    with open(recorder.said, errors="replace") as file:
        return file.read()


def check(path):
    p = subprocess.run([TRAIL, "check", path], capture_output=True, text=True)
    return "" if p.returncode == 0 else p.stdout + p.stderr


def record(path, *words, stdin=None):
    # A pipe would stay open in a program that continues.
    with open(path + ".said", "w") as said:
        recorder = subprocess.Popen([TRAIL, "record", "-o", path, *words], stdin=stdin,
                                    stdout=subprocess.DEVNULL, stderr=said)
    recorder.said = path + ".said"
    return recorder


def wait_for(condition):
    until = time.monotonic() + HANGS
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def attached(area, program):
    """Starts a recorder with a shared file, and a program that finds it. Returns both, and the
    file, which is unlinked by then."""
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
    """The file of --attach-shm is truncated while it is read."""
    area = os.path.join(WORK, "area")
    recorder, child, file, path = attached(area, ["sleep", "60"])
    if not child:
        report("a file of shared memory that is cut", end(recorder) or "no area")
        return
    step(recorder.pid)
    os.ftruncate(file, 0)
    os.close(file)
    child.kill()
    child.wait()
    recorder.send_signal(signal.SIGINT)
    said = end(recorder)
    report("a file of shared memory that is cut: the recorder ends as ever",
           "" if said is not None and recorder.returncode in (0, 1) else f"{recorder.returncode}: {said}")
    report("... and says so", "" if said and "became shorter" in said else str(said))
    report("... and the trace is good", check(path))


def test_sealed():
    """No process can truncate the memory of a program that was started by the recorder."""
    path, ready = os.path.join(WORK, "sealed.trace"), os.path.join(WORK, "ready")
    recorder = record(path, "--", "sh", "-c", f"touch {shlex.quote(ready)}; read word", stdin=subprocess.PIPE)

    def memory():
        return [fd for fd, file in states.open_files(recorder.pid).items() if "memfd:trail" in file]

    wait_for(lambda: os.path.exists(ready))
    seen = states.until(memory)
    wrong = "the memory could be cut"
    try:
        file = os.open(f"/proc/{recorder.pid}/fd/{seen[0]}", os.O_RDWR)
        os.ftruncate(file, 0)
    except PermissionError:
        wrong = ""
    report("the shared memory is sealed", wrong)
    recorder.send_signal(signal.SIGTERM)
    # The signal is passed on to the program, and ends it.
    said = end(recorder)
    report("... and a signal ends its recording", "" if recorder.returncode == 128 + signal.SIGTERM else str(said))
    report("... with a good trace", check(path))


def test_deaf_program():
    """A program that ignores signals is left running after the second one."""
    path = os.path.join(WORK, "deaf.trace")
    pid_file = os.path.join(WORK, "pid")
    script = f"trap '' TERM INT HUP; echo $$ > {shlex.quote(pid_file)}.new; mv {shlex.quote(pid_file)}.new {shlex.quote(pid_file)}; while :; do sleep 1; done"
    recorder = record(path, "--", "sh", "-c", script)
    wait_for(lambda: os.path.exists(pid_file))
    with open(pid_file) as file:
        pid = int(file.read())
    send(recorder.pid, signal.SIGTERM)
    recorder.send_signal(signal.SIGTERM)
    said = end(recorder)
    report("a program that ignores signals does not keep the recorder", "" if recorder.returncode == 0 else f"{recorder.returncode}: {said}")
    report("... which says that it goes on", "" if said and f"continues as process {pid}" in said else str(said))
    report("... and has written a good trace", check(path))
    try:
        os.kill(pid, signal.SIGKILL)
        report("... and it does go on", "")
    except ProcessLookupError:
        report("... and it does go on", "it has ended")


def test_stranger():
    """A claim for a process that does not belong to the program is refused."""
    path = os.path.join(WORK, "stranger.trace")
    stranger = subprocess.Popen(["sleep", "60"])
    recorder = record(path, "--children", "--", sys.executable, "-c", f"""
import os, re, struct, time
recorder, fd, _ = re.match("pid:(\\d+):(\\d+):(.*)", os.environ["TRAIL_SHM"]).groups()
path = f"/proc/{{recorder}}/fd/{{fd}}"

# claimed is the sixth number of 32 bits of struct shm_header, behind magic, version, size_check and root_pid
def claimed():
    with open(path, "rb") as file:
        file.seek(20)
        return struct.unpack("<I", file.read(4))[0]

# Its own claim was taken, and so is the one by a stranger, when another area is there, which is not claimed.
while claimed():
    time.sleep(0.001)
with open(path, "r+b") as file:
    file.seek(20)
    file.write(struct.pack("<I", {stranger.pid}))
while claimed():
    time.sleep(0.001)
""")
    said = end(recorder)
    report("a claim in another process's name is refused", "" if said and "refused to record 1 process" in said else str(said))
    report("... and it has no trace", "" if not os.path.exists(path.replace(".trace", f".{stranger.pid}.trace")) else "it has one")
    report("... and the program's is good", check(path))
    stranger.kill()
    stranger.wait()


def test_namespace():
    """A program in a PID namespace of its own, where PIDs differ from ours."""
    path = os.path.join(WORK, "nested.trace")
    can = subprocess.run(["unshare", "-r", "-p", "-f", "true"], capture_output=True)
    if can.returncode != 0:
        report("a program in a PID namespace # SKIP no namespaces here", "")
        return
    recorder = record(path, "--children", "--split", "--", "unshare", "-r", "-p", "-f", "cat", stdin=subprocess.PIPE)

    def of_children():
        return [name for name in os.listdir(WORK) if re.fullmatch(r"nested\.\d+\.trace", name)]

    wait_for(of_children)
    recorder.stdin.close()
    said, traces = end(recorder), of_children()
    report("a program in a PID namespace is recorded under its number for us", "" if len(traces) == 1 and "nested.1.trace" not in traces else f"{traces} {said}")
    for name in traces:
        report("... with a good trace", check(os.path.join(WORK, name)))


def mapped_by(program, area, **more):
    """Whether a program has mapped the area that its environment names. The program prints its own maps."""
    found = subprocess.run([program], capture_output=True, text=True, env={"TRAIL_SHM": "path:" + area}, **more)
    return area in found.stdout


def test_set_user_id():
    """A program with more rights than its user, which loads the recorder's library through
    /etc/ld.so.preload or because it is linked with it."""
    name = "a set-user-ID program does not take shared memory from its user"
    library = subprocess.run([TRAIL, "env", "--shm=/dev/shm/unused"], capture_output=True, text=True).stdout
    library = re.search(r"LD_PRELOAD='?([^'\s;:]+)", library).group(1)
    if os.geteuid() != 0 or os.statvfs(WORK).f_flag & os.ST_NOSUID:
        report(name + " # SKIP needs root", "")
        return
    os.chmod(WORK, 0o755)
    program, area = os.path.join(WORK, "privileged"), os.path.join(WORK, "users")
    source = "#include <stdio.h>\nint main(void) { FILE *f = fopen(\"/proc/self/maps\", \"r\"); for (int c; (c = getc(f)) != EOF;) putchar(c); }"
    built = subprocess.run([*COMPILER, "-x", "c", "-", "-o", program, "-x", "none", "-Wl,--no-as-needed",
                            shutil.copy(library, WORK), "-Wl,-rpath," + WORK], input=source.encode(), capture_output=True)
    recorder = record(area + ".trace", "--attach-shm", area)
    wait_for(lambda: os.path.exists(area))
    os.chmod(area, 0o666)
    os.chmod(program, 0o4755)
    report(name, "it has" if mapped_by(program, area, user=65534) else built.stderr.decode())
    report("... while any other program does", "" if mapped_by(program, area) else "it has not")
    recorder.send_signal(signal.SIGINT)
    end(recorder)


def test_absent_memory():
    """Only a SIGKILL would end a read of such memory."""
    name = "memory that a process withholds does not stop trail stuck"
    program = os.path.join(WORK, "absent")
    subprocess.run([*COMPILER, "-pthread", os.path.join(os.path.dirname(os.path.abspath(__file__)), "absent.c"), "-o", program], check=True)
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    tid = process.stdout.readline().strip()

    def waits():
        with open(f"/proc/{process.pid}/task/{tid}/syscall") as file:
            return file.read().split()[0] in ("202", "98")  # futex, also on arm64

    if tid and wait_for(waits):
        process.stdin.write("x")
        process.stdin.flush()
    if not tid or process.stdout.readline() != "absent\n":
        report(name + " # SKIP no userfaultfd of the kernel's reads here", "")
    else:
        looked = subprocess.Popen([TRAIL, "stuck", str(process.pid)], stdout=subprocess.PIPE, text=True)
        try:
            out = looked.communicate(timeout=HANGS)[0]
        except subprocess.TimeoutExpired:
            looked.kill()
            out = "it waits"
        report(name, "" if f"thread {tid} " in out else out)
    process.kill()
    process.wait()


test_sealed()
test_absent_memory()
test_set_user_id()
test_cut_file()
test_deaf_program()
test_stranger()
test_namespace()
sys.exit(finish())
