"""Programs in Python that are ended by the kernel for a system call: seccomp(2)."""

import platform

RESTART_SYSCALL, MPROTECT = {"x86_64": (219, 10), "aarch64": (128, 226)}.get(platform.machine(), (0, 0))

# confine(NUMBER, ...) ends the program for these calls from then on.

CODE = """import ctypes, struct

def confine(*ended):
    # struct sock_filter: load the number, compare, and allow (0x7fff0000) or end the process (0x80000000)
    one = lambda code, to, other, k: struct.pack("HBBI", code, to, other, k)
    rules = [one(0x20, 0, 0, 0), *(one(0x15, len(ended) - i, 0, n) for i, n in enumerate(ended)), one(6, 0, 0, 0x7FFF0000), one(6, 0, 0, 0x80000000)]
    program = ctypes.create_string_buffer(b"".join(rules))
    filter = ctypes.create_string_buffer(struct.pack("HP", len(rules), ctypes.addressof(program)))
    prctl = ctypes.CDLL(None).prctl
    assert prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
    assert prctl(22, 2, filter, 0, 0) == 0  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER
"""
