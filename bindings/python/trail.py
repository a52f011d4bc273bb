"""Execution traces of Go and C programs as tables, by libtrail.

    import trail
    trace = trail.open("app.trace")
    for event in trace.events():
        print(event["time_ns"], event["kind"])
    for finding in trace.findings():
        print(finding["text"])
    states = pandas.DataFrame(trace.columns("states"))
    slow = trail.sql("select file, max(exec_ns) as ns from goroutines group by file", "a.trace", "b.trace")

The tables and their columns are those of `trail sql` (docs/sql.md), without the columns that are the same in every row: trace,
file, host and day. Each call reads the trace anew, in one pass, and only the columns that it names are computed.

The library is found at $TRAIL_LIBRARY or by the system's loader.
"""

import ctypes
import ctypes.util
import json
import os
import subprocess

__version__ = "0.1.0"

_COMMON = 4  # columns at the end of each table: trace, file, host, day
_I64, _I32, _BOOL, _ENUM, _TEXT, _DATE = range(6)


class _Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 512)] + [
        (name, ctypes.c_int64) for name in ("offset", "generation", "batch", "thread", "proc", "goroutine", "time_ns")
    ]


class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("cell", ctypes.c_int), ("nullable", ctypes.c_bool),
                ("words", ctypes.POINTER(ctypes.c_char_p)), ("meaning", ctypes.c_char_p)]  # fmt: skip


class _Table(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("meaning", ctypes.c_char_p), ("columns", ctypes.POINTER(_Column)),
                ("column_count", ctypes.c_size_t), ("key", ctypes.c_char_p)]  # fmt: skip


class _String(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class _Values(ctypes.Structure):
    _fields_ = [("any", ctypes.c_void_p), ("valid", ctypes.POINTER(ctypes.c_uint64)), ("passes", ctypes.c_bool)]


class _Rows(ctypes.Structure):
    _fields_ = [("table", ctypes.c_int), ("count", ctypes.c_size_t), ("columns", ctypes.POINTER(_Values))]


def _load():
    name = os.environ.get("TRAIL_LIBRARY") or ctypes.util.find_library("trail") or "libtrail.so.0"
    library = ctypes.CDLL(name)
    handle, error = ctypes.c_void_p, ctypes.POINTER(_Error)
    for function, result, *arguments in (
        ("trail_source_open_path", handle, ctypes.c_char_p, error),
        ("trail_source_close", None, handle),
        ("trail_reader_open", handle, handle, handle, error),
        ("trail_reader_close", None, handle),
        ("trail_reader_version", ctypes.c_int, handle),
        ("trail_table_get", ctypes.POINTER(_Table), ctypes.c_int),
        ("trail_tables_open", handle, handle, handle, error),
        ("trail_tables_next", ctypes.c_int, handle, ctypes.POINTER(_Rows), error),
        ("trail_tables_close", None, handle),
        ("trail_code_name", ctypes.c_char_p, ctypes.c_int),
    ):
        getattr(library, function).restype = result
        getattr(library, function).argtypes = arguments
    return library


_trail = _load()


def _definitions():
    """The tables by name, each with its number. A number beyond the last one is the first table again."""
    found = {}
    while True:
        table = _trail.trail_table_get(len(found)).contents
        if table.name.decode() in found:
            return found
        found[table.name.decode()] = (len(found), table)


_tables = _definitions()


class _Options(ctypes.Structure):
    _fields_ = [("wanted", ctypes.c_uint32 * len(_tables)), ("trace", ctypes.c_char_p), ("file", ctypes.c_char_p),
                ("host", ctypes.c_char_p), ("day", ctypes.c_int32), ("has_from", ctypes.c_bool), ("has_to", ctypes.c_bool),
                ("from_ns", ctypes.c_int64), ("to_ns", ctypes.c_int64), ("progress", ctypes.c_void_p),
                ("progress_context", ctypes.c_void_p), ("csv_safe", ctypes.c_bool)]  # fmt: skip


class Error(Exception):
    """What is wrong with a trace or a call: `code` is "truncated", "not a trace" and so on, `offset` the byte, -1: unknown."""

    def __init__(self, error):
        super().__init__(error.message.decode(errors="replace"))
        self.code = _trail.trail_code_name(error.code).decode()
        self.offset = error.offset


def tables():
    """{table: {column: meaning}}"""
    return {name: {c.name.decode(): c.meaning.decode() for c in _own(table)} for name, (_, table) in _tables.items()}


def _own(table):
    return table.columns[: table.column_count - _COMMON]


def _words(column):
    """The words of an enumeration, which end with NULL."""
    words = []
    while column.words[len(words)] is not None:
        words.append(column.words[len(words)].decode())
    return words


def _plain(column, values, count):
    """The values of a column in a batch, without regard to NULLs."""
    if column.cell == _TEXT:
        texts = (_String * count).from_address(values.any)
        return [ctypes.string_at(text.data, text.size).decode() if text.size else "" for text in texts]
    kind = {_I64: ctypes.c_int64, _I32: ctypes.c_int32}.get(column.cell, ctypes.c_uint8)
    numbers = (kind * count).from_address(values.any)[:]
    if column.cell == _ENUM:
        words = _words(column)
        return [words[number] for number in numbers]
    return [number != 0 for number in numbers] if column.cell == _BOOL else numbers


def _list(column, values, count):
    items = _plain(column, values, count)
    if values.valid:
        items = [item if values.valid[i // 64] >> (i % 64) & 1 else None for i, item in enumerate(items)]
    return items


class Trace:
    """A trace that can be read. `version` is 26 for the format of Go 1.26."""

    def __init__(self, path):
        self.path = os.fspath(path)
        with _Reader(self.path) as reader:
            self.version = _trail.trail_reader_version(reader)

    def batches(self, table, columns=None, from_ns=None, to_ns=None):
        """Dictionaries of at most 2,048 values for each column. Times are in ns from the first event on. Of a damaged trace,
        all that is good comes before Error is raised."""
        number, definition = _tables[table]
        own = _own(definition)
        names = [column.name.decode() for column in own]
        wanted = names if columns is None else list(columns)
        bits = sum(1 << names.index(name) for name in wanted)
        options = _Options(file=b"", has_from=from_ns is not None, has_to=to_ns is not None, from_ns=from_ns or 0, to_ns=to_ns or 0)
        options.wanted[number] = bits
        with _Reader(self.path) as reader:
            error, rows = _Error(), _Rows()
            opened = _trail.trail_tables_open(reader, ctypes.addressof(options), error)
            if not opened:
                raise Error(error)
            try:
                while (more := _trail.trail_tables_next(opened, rows, error)) > 0:
                    yield {name: _list(own[i], rows.columns[i], rows.count) for i, name in enumerate(names) if bits >> i & 1}
                if more < 0:
                    raise Error(error)
            finally:
                _trail.trail_tables_close(opened)

    def rows(self, table, columns=None, from_ns=None, to_ns=None):
        """The rows, as dictionaries."""
        for batch in self.batches(table, columns, from_ns, to_ns):
            for row in zip(*batch.values()):
                yield dict(zip(batch, row))

    def columns(self, table, columns=None, from_ns=None, to_ns=None):
        """{column: list of all values}: what pandas.DataFrame, polars.DataFrame and pyarrow.table take."""
        names = [c.name.decode() for c in _own(_tables[table][1])] if columns is None else columns
        whole = {name: [] for name in names}
        for batch in self.batches(table, columns, from_ns, to_ns):
            for name, values in batch.items():
                whole[name] += values
        return whole

    def events(self, **window):
        """The events, in order."""
        return self.rows("events", **window)

    def findings(self, **window):
        """What is wrong in the trace, as `trail summary` lists it: what would gain most comes first."""
        return list(self.rows("findings", **window))


class _Reader:
    """A reader of a file, and its source."""

    def __init__(self, path):
        error = _Error()
        self.reader = None
        self.source = _trail.trail_source_open_path(os.fsencode(path), error)
        if self.source:
            self.reader = _trail.trail_reader_open(self.source, None, error)
        if not self.reader:
            self.__exit__()
            raise Error(error)

    def __enter__(self):
        return self.reader

    def __exit__(self, *_):
        _trail.trail_reader_close(self.reader)
        _trail.trail_source_close(self.source)


def open(path):  # as gzip.open
    """The trace in a file; Error if it is none."""
    return Trace(path)


def sql(query, *paths, command="trail"):
    """The rows of a query over traces, as dictionaries, answered by `trail sql`; CalledProcessError if it fails."""
    done = subprocess.run([command, "sql", "--json", *map(os.fspath, paths), query], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
