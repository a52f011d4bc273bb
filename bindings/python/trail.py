"""Execution traces of Go and C programs as tables, by libtrail.

    import trail
    trace = trail.open("app.trace")
    for event in trace.events():
        print(event["time_ns"], event["kind"])
    for finding in trace.findings():
        print(finding["text"])
    states = pandas.DataFrame(trace.columns("states"))
    states = pyarrow.table(trace.arrow("states"))
    slow = trail.sql("select file, max(exec_ns) as ns from goroutines group by file", "a.trace", "b.trace")

The tables and their columns are those of `trail sql` (docs/sql.md), without the columns that are the same in every row: trace,
file, host and day. Each call reads the trace anew, in one pass, and only the columns that it names are computed.

The library is found at $TRAIL_LIBRARY or by the system's loader.
"""

import array
import ctypes
import ctypes.util
import itertools
import json
import os
import subprocess
import sys

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
    try:
        library = ctypes.CDLL(name)
    except OSError as error:
        raise ImportError(f"{error}: install libtrail0, or set TRAIL_LIBRARY to the path of libtrail.so") from None
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
                ("progress_context", ctypes.c_void_p), ("csv_safe", ctypes.c_bool), ("reserved", ctypes.c_uint64 * 4)]  # fmt: skip


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


def _columns_of(table):
    if table not in _tables:
        raise ValueError(f"there is no table {table}, only {', '.join(_tables)}")
    return _own(_tables[table][1])


def _chosen(table, columns):
    """The columns with these names, and their numbers, in the order of the table; None: all."""
    own = {column.name.decode(): (i, column) for i, column in enumerate(_columns_of(table))}
    wanted = set(own if columns is None else columns)
    if unknown := wanted - set(own):
        raise ValueError(f"{table} has no column {unknown.pop()}")
    return [own[name] for name in own if name in wanted]


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
        wanted = _chosen(table, columns)
        for rows in self._rows(table, wanted, from_ns, to_ns):
            yield {column.name.decode(): _list(column, rows.columns[i], rows.count) for i, column in wanted}

    def _rows(self, table, wanted, from_ns, to_ns):
        """The library's own batches, each valid until the next one."""
        options = _Options(file=b"", has_from=from_ns is not None, has_to=to_ns is not None, from_ns=from_ns or 0, to_ns=to_ns or 0)
        options.wanted[_tables[table][0]] = sum(1 << i for i, _ in wanted)
        with _Reader(self.path) as reader:
            error, rows = _Error(), _Rows()
            opened = _trail.trail_tables_open(reader, ctypes.addressof(options), error)
            if not opened:
                raise Error(error)
            try:
                while (more := _trail.trail_tables_next(opened, rows, error)) > 0:
                    yield rows
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
        names = [c.name.decode() for c in _columns_of(table)] if columns is None else columns
        whole = {name: [] for name in names}
        for batch in self.batches(table, columns, from_ns, to_ns):
            for name, values in batch.items():
                whole[name] += values
        return whole

    def arrow(self, table, columns=None, from_ns=None, to_ns=None):
        """An object with Arrow's C stream, for pyarrow.table and whatever else takes one. Enumerations are dictionaries.
        Each stream reads the trace anew."""
        return _Arrow(self, table, columns, from_ns, to_ns)

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


# Arrow's C data interface. Each struct that is handed out has a copy of its batch in blocks, because the library uses its
# memory again; only texts and booleans change their form. What a struct points to lives until its release, which its
# consumer calls once, from any thread and also after the trace is gone. Children are released on their own, so that a consumer
# may move them out of their parent.


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_POINTER = ctypes.c_void_p
_Release = ctypes.CFUNCTYPE(None, _POINTER)
_Get = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, _POINTER)
_GetError = ctypes.CFUNCTYPE(_POINTER, _POINTER)
_Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                    ("n_children", ctypes.c_int64), ("children", _POINTER), ("dictionary", _POINTER), ("release", _Release),
                    ("private_data", _POINTER)]  # fmt: skip
_Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                   ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", _POINTER), ("children", _POINTER), ("dictionary", _POINTER),
                   ("release", _Release), ("private_data", _POINTER)]  # fmt: skip
_Stream._fields_ = [("get_schema", _Get), ("get_next", _Get), ("get_last_error", _GetError), ("release", _Release),
                    ("private_data", _POINTER)]  # fmt: skip

_FORMATS = {_I64: b"l", _I32: b"i", _BOOL: b"b", _ENUM: b"C", _TEXT: b"u", _DATE: b"tdD"}
_NULLABLE, _EIO = 2, 5
_CAPSULE = b"arrow_array_stream"

_kept = {}  # by private_data: what a struct points to
_numbers = itertools.count(1)


def _keep(struct, *objects):
    """Keeps objects until the struct is released."""
    struct.private_data = next(_numbers)
    _kept[struct.private_data] = objects


def _pointers(structs):
    return (_POINTER * len(structs))(*map(ctypes.addressof, structs))


def _releases(kind):
    """The release callback of schemas, or of arrays."""

    @_Release
    def release(address):
        struct = kind.from_address(address)
        inner = list((_POINTER * struct.n_children).from_address(struct.children)) if struct.n_children else []
        for child in filter(None, [*inner, struct.dictionary]):
            child = kind.from_address(child)
            if child.release:
                child.release(ctypes.addressof(child))
        number, struct.release = struct.private_data, _Release()
        del _kept[number]

    return release


_release_schema, _release_array = _releases(_Schema), _releases(_Array)


def _schema(format, name=b"", nullable=False, children=(), dictionary=None):
    pointers = _pointers(children)
    schema = _Schema(format, name, None, _NULLABLE if nullable else 0, len(children), ctypes.addressof(pointers),
                     ctypes.addressof(dictionary) if dictionary else None, _release_schema)  # fmt: skip
    _keep(schema, format, name, children, pointers, dictionary)
    return schema


def _array(length, buffers, children=(), dictionary=None, null_count=0):
    """`buffers` are bytes, or None."""
    held = [buffer and ctypes.create_string_buffer(buffer, len(buffer)) for buffer in buffers]
    addresses = (_POINTER * len(held))(*(buffer and ctypes.addressof(buffer) for buffer in held))
    pointers = _pointers(children)
    array = _Array(length, null_count, 0, len(held), len(children), ctypes.addressof(addresses), ctypes.addressof(pointers),
                   ctypes.addressof(dictionary) if dictionary else None, _release_array)  # fmt: skip
    _keep(array, held, addresses, children, pointers, dictionary)
    return array


def _text_buffers(texts):
    """The offsets of texts, and their bytes."""
    offsets = array.array("i", [0, *itertools.accumulate(map(len, texts))])
    return offsets.tobytes(), b"".join(texts) or b"\0"


def _validity(valid, count):
    """Arrow's bits, from those of the library in words of 64."""
    words = array.array("Q", ctypes.string_at(valid, (count + 63) // 64 * 8))
    if sys.byteorder == "big":
        words.byteswap()
    return words.tobytes()


_AS_DIGITS = b"0" + b"1" * 255


def _column_array(column, values, count):
    """A column of a batch."""
    dictionary = None
    if column.cell == _TEXT:
        texts = (_String * count).from_address(values.any)
        buffers = _text_buffers([ctypes.string_at(text.data, text.size) if text.size else b"" for text in texts])
    elif column.cell == _BOOL:
        digits = ctypes.string_at(values.any, count).translate(_AS_DIGITS)
        buffers = [int(digits[::-1] or b"0", 2).to_bytes(count // 8 + 1, "little")]
    else:
        buffers = [ctypes.string_at(values.any, count * {_I64: 8, _ENUM: 1}.get(column.cell, 4))]
        if column.cell == _ENUM:
            words = [word.encode() for word in _words(column)]
            dictionary = _array(len(words), [None, *_text_buffers(words)])
    valid = _validity(values.valid, count) if values.valid else None
    return _array(count, [valid, *buffers], dictionary=dictionary, null_count=-1 if valid else 0)


def _column_schema(column):
    dictionary = _schema(b"u") if column.cell == _ENUM else None
    return _schema(_FORMATS[column.cell], column.name, column.nullable, dictionary=dictionary)


class _Arrow:
    """A table of a trace, as Trace.arrow returns it."""

    def __init__(self, trace, table, columns, from_ns, to_ns):
        self._wanted = _chosen(table, columns)
        self._open = lambda: trace._rows(table, self._wanted, from_ns, to_ns)

    def __arrow_c_stream__(self, requested_schema=None):
        stream = _Stream(_get_schema, _get_next, _get_last_error, _release_stream)
        _keep(stream, self._wanted, self._open(), ctypes.create_string_buffer(_MESSAGE))
        _kept[ctypes.addressof(stream)] = stream  # until the capsule is gone
        return _new_capsule(ctypes.addressof(stream), _CAPSULE, _destroy_capsule)


_MESSAGE = 512


def _of_stream(address):
    return _kept[_Stream.from_address(address).private_data]


def _call(function):
    """A function of a stream, as a callback: an exception is an error, whose message is kept."""

    @_Get
    def call(address, out):
        wanted, batches, message = _of_stream(address)
        try:
            struct = function(wanted, batches)
            ctypes.memmove(out, ctypes.addressof(struct), ctypes.sizeof(struct))
            return 0
        except Exception as error:
            message.value = str(error).encode()[: _MESSAGE - 1]
            return _EIO

    return call


def _whole(wanted, batches):
    return _schema(b"+s", children=[_column_schema(column) for _, column in wanted])


def _next(wanted, batches):
    rows = next(batches, None)
    if not rows:
        return _Array()
    return _array(rows.count, [None], [_column_array(column, rows.columns[i], rows.count) for i, column in wanted])


_get_schema, _get_next = _call(_whole), _call(_next)


@_GetError
def _get_last_error(address):
    return ctypes.addressof(_of_stream(address)[2])


@_Release
def _release_stream(address):
    stream = _Stream.from_address(address)
    number, stream.release = stream.private_data, _Release()
    del _kept[number]  # closes the reader


# Not the attributes of pythonapi, whose types others may set. A capsule that is being destroyed has no reference any more.
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, _POINTER, ctypes.c_char_p, _Release)(("PyCapsule_New", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


@_Release
def _destroy_capsule(capsule):
    """Releases the stream, unless a consumer has moved it out."""
    address = _capsule_pointer(capsule, _CAPSULE)
    stream = _kept.pop(address)
    if stream.release:
        stream.release(address)
