#!/usr/bin/env python3
"""Inputs for fuzz/fuzz_area.c from the memory that real programs share with the recorder.

usage: areas.py FOLDER TRAIL PROGRAM [ARGUMENT...] [+ PROGRAM ...]

Each program runs while the recorder is stopped, so that everything it has written is still there.
Writes FOLDER/NAME-N.area, and prints what it wrote.
"""

import mmap
import os
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import time

STEP = 0xffffffff
BLOCK = 64
MAX_PIECE = 4096


def pieces(data):
    """Yields (offset, bytes) for each part that is not zero."""
    at = 0
    while at < len(data):
        # Most of the area is zeros: skip whole pages.
        if at % 4096 == 0 and not any(data[at:at + 4096]):
            at += 4096
            continue
        end = at
        while end < len(data) and end - at < MAX_PIECE and any(data[end:end + BLOCK]):
            end += BLOCK
        if end > at:
            yield at, data[at:end]
        at = max(end, at + BLOCK)


def area_bytes(data, how):
    """The fuzzer input: all of the area, then a step."""
    claimed_at = claim_time(data)
    out = [struct.pack('<QB', max(claimed_at - 1000000, 1), how)]
    for at, part in pieces(data):
        out.append(struct.pack('<IH', at, len(part)) + part)
    out.append(struct.pack('<IH', STEP, 0))
    return b''.join(out)


def claim_time(data):
    """Returns claimed_at of struct shm_header."""
    (value,) = struct.unpack_from('<Q', data, CLAIMED_AT)
    return value


# Offset of claimed_at in struct shm_header (src/shm/shm.h).
CLAIMED_AT = 96


def state_of(pid):
    with open(f'/proc/{pid}/stat', encoding='latin-1') as file:
        return file.read().rsplit(')', 1)[1].split()[0]


def save(trail, command):
    """Returns the area of a program as it is when the program ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'area')
        recorder = subprocess.Popen([trail, 'record', '-q', '--attach-shm', path, '-o',
                                     os.path.join(folder, 'out.trace')], stderr=subprocess.DEVNULL)
        try:
            while not os.path.exists(path):
                if recorder.poll() is not None:
                    raise RuntimeError('the recorder ended')
                time.sleep(0.01)
            with open(path, 'rb') as file:
                recorder.send_signal(signal.SIGSTOP)
                while state_of(recorder.pid) not in 'T':
                    time.sleep(0.01)
                script = f'eval "$({shlex.quote(trail)} env --shm={shlex.quote(path)})"; exec "$@"'
                subprocess.run(['sh', '-c', script, 'sh', *command], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=60, check=False)
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    return bytes(data)
        finally:
            recorder.send_signal(signal.SIGCONT)
            recorder.terminate()
            recorder.wait()


def main():
    folder, trail, commands = sys.argv[1], sys.argv[2], [[]]
    for word in sys.argv[3:]:
        if word == '+':
            commands.append([])
        else:
            commands[-1].append(word)
    os.makedirs(folder, exist_ok=True)
    for index, command in enumerate(commands):
        data = save(trail, command)
        for how in (0, 6):
            name = f'{os.path.basename(command[0])}-{index}-{how}.area'
            made = area_bytes(data, how)
            with open(os.path.join(folder, name), 'wb') as file:
                file.write(made)
            print(f'{name}: {len(made)} bytes')


if __name__ == '__main__':
    main()
