"""Makes traces from their text form (docs/wire-text.md) within this process, by the libtrail that TRAIL_LIBRARY names.
Tests make thousands of traces; a process for each takes longer than all else that they do.
"""

import ctypes

SINK = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t)


class Sink(ctypes.Structure):
    _fields_ = [("write", SINK), ("context", ctypes.c_void_p)]


class Error(ctypes.Structure):
    """trail_error. Its message ends with a NUL; what follows is not read here."""

    _fields_ = [("code", ctypes.c_int), ("rest", ctypes.c_char * 4096)]


class Assembler:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.trail_source_open_memory.restype = ctypes.c_void_p

    def assemble(self, text):
        """The trace of a text, which begins with its version. Both are bytes."""
        pieces, error = [], Error()
        sink = Sink(SINK(lambda context, data, size: pieces.append(data[:size]) is None))
        source = self.library.trail_source_open_memory(text, ctypes.c_size_t(len(text)), ctypes.byref(error))
        assert source, error.rest
        source = ctypes.c_void_p(source)
        made = self.library.trail_assemble(source, 0, ctypes.byref(sink), ctypes.byref(error))
        self.library.trail_source_close(source)
        assert made == 0, error.rest
        return b"".join(pieces)
