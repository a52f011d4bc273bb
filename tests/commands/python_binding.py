#!/usr/bin/env python3
"""bindings/python: its tables, compared with the exported ones; as Arrow, read through the C structs
here, and by DuckDB and pyarrow if installed; errors; the example. TAP.

usage: python_binding.py TRAIL SOURCE_ROOT LIBRARY SANITIZERS
"""

import contextlib
import csv
import ctypes
import gc
import gzip
import io
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import EXAMPLES, ROOT, TRAIL, WORK, equal, good, good_text, run, trace as assembled  # noqa: E402
from tap import Skip, main, test  # noqa: E402

LIBRARY, SANITIZERS = os.path.abspath(sys.argv[3]), sys.argv[4]
BINDING = os.path.join(ROOT, "bindings", "python")
RECORDED = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
COMMON = ("trace", "file", "host", "day")


def cell(value):
    """Returns a value in its CSV form."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def exported(trace, table, *options):
    rows = csv.DictReader(io.StringIO(good_text("export", "--to=csv", f"--table={table}", *options, trace), newline=""))
    return [{name: text for name, text in row.items() if name not in COMMON} for row in rows]


def same(trace, table, rows, *options):
    equal([{name: cell(value) for name, value in row.items()} for row in rows], exported(trace, table, *options), (trace, table))


@test
def all_tables_are_those_of_the_command():
    names = re.findall(r"VIEW (\w+) AS", good_text("export", "--schema=duckdb"))
    equal(list(binding.tables()), names)
    for trace in (RECORDED, EXAMPLES[0], assembled("everything-1.26"), assembled("everything-1.21")):
        opened = binding.open(trace)
        equal(opened.version, json.loads(good("info", "--json", trace))["version"])
        for table, columns in binding.tables().items():
            same(trace, table, opened.rows(table))
            whole = opened.columns(table)
            equal(list(whole), list(columns))
            equal([dict(zip(whole, row)) for row in zip(*whole.values())], list(opened.rows(table)))


@test
def values_have_the_types_of_python():
    opened = binding.open(RECORDED)
    state = next(state for state in opened.rows("states") if state["wait_kind"] == "mutex")
    equal({name: type(state[name]) for name in ("begin_ns", "stack", "state", "object", "has_end")},
          {"begin_ns": int, "stack": int, "state": str, "object": str, "has_end": bool})  # fmt: skip
    assert next(iter(opened.events()))["goroutine"] is None


@test
def only_the_columns_that_are_asked_for_come_and_those_of_a_window():
    opened = binding.open(RECORDED)
    rows = opened.rows("states", ["duration_ns", "state"], from_ns=20_000_000, to_ns=30_000_000)
    right = exported(RECORDED, "states", "--from=20ms", "--to=30ms")
    equal([row for row in rows], [{"state": row["state"], "duration_ns": int(row["duration_ns"])} for row in right])


@test
def findings_are_those_of_the_summary():
    right = json.loads(good("summary", "--json", RECORDED))["findings"]
    equal([finding["text"] for finding in binding.open(RECORDED).findings()], [finding["text"] for finding in right])
    assert right


@test
def a_compressed_trace_is_read_and_a_damaged_one_up_to_the_damage():
    packed = os.path.join(WORK, "app.trace.gz")
    with open(EXAMPLES[3], "rb") as trace, gzip.open(packed, "wb") as to:
        to.write(trace.read())
    same(EXAMPLES[3], "tasks", binding.open(packed).rows("tasks"))
    cut = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[3], "rb") as trace, open(cut, "wb") as to:
        to.write(trace.read()[:-5000])
    events, good_part = [], run("print", "--format=jsonl", cut)[1].splitlines()
    try:
        events.extend(binding.open(cut).events())
        raise AssertionError("no error")
    except binding.Error as error:
        equal((error.code, error.offset), ("truncated", 0x7AF7))
    equal([e["time_ns"] for e in events], [json.loads(line)["time_ns"] for line in good_part])
    for path in (os.path.join(WORK, "none.trace"), __file__):
        try:
            binding.open(path)
            raise AssertionError("no error")
        except binding.Error as error:
            assert error.code in ("input/output error", "not a trace"), error.code


@test
def a_missing_library_is_an_import_error_that_says_what_to_do():
    env = {**os.environ, "PYTHONPATH": BINDING, "TRAIL_LIBRARY": "/missing.so"}
    code = "try:\n import trail\nexcept ImportError as error:\n print(error)"
    p = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert "/missing.so" in p.stdout and "install libtrail0, or set TRAIL_LIBRARY" in p.stdout, p


@test
def its_structures_are_those_of_the_headers():
    names = {"_Error": "trail_error", "_Column": "trail_table_column", "_Table": "trail_table", "_String": "trail_string",
             "_Values": "trail_values", "_Rows": "trail_rows", "_Options": "trail_tables_options"}  # fmt: skip
    printed = "".join(f'printf("%zu\\n", sizeof({name}));' for name in names.values())
    code = f"#include <stdio.h>\n#include <trail/tables.h>\nint main(void) {{ {printed} return 0; }}\n"
    program = os.path.join(WORK, "sizes")
    subprocess.run([os.environ.get("CC", "cc"), "-x", "c", f"-I{ROOT}/include", "-", "-o", program], input=code, text=True, check=True)
    right = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    equal([str(ctypes.sizeof(getattr(binding, name))) for name in names], right)


@test
def the_example_answers_what_sql_does():
    example = os.path.join(BINDING, "examples", "ended_waits.py")
    env = {**os.environ, "PYTHONPATH": BINDING, "TRAIL_LIBRARY": LIBRARY}
    p = subprocess.run([sys.executable, example, RECORDED], capture_output=True, text=True, env=env)
    assert p.returncode == 0 and not p.stderr, p
    states, stacks = exported(RECORDED, "states"), {row["stack"]: row["function"] for row in exported(RECORDED, "stacks")}
    total = {}
    for row in states:
        if row["state"] == "Waiting" and row["waker_stack"]:
            place = stacks[row["waker_stack"]]
            total[place] = total.get(place, 0) + int(row["duration_ns"])
    ours = {line.split(" ended by ")[1].split(",")[0]: float(line.split()[0]) for line in p.stdout.splitlines()}
    equal(ours, {place: float(f"{ns / 1e6:.3f}") for place, ns in total.items()})
    assert "mutex cache_mu" in p.stdout, p.stdout


# Arrow: the structs as specified by its C data interface.


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


class Stream(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
                   ("dictionary", ctypes.POINTER(Schema)), ("release", RELEASE), ("private_data", ctypes.c_void_p)]  # fmt: skip
Array._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                  ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                  ("children", ctypes.POINTER(ctypes.POINTER(Array))), ("dictionary", ctypes.POINTER(Array)), ("release", RELEASE),
                  ("private_data", ctypes.c_void_p)]  # fmt: skip
Stream._fields_ = [("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))),
                   ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))),
                   ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)), ("release", RELEASE),
                   ("private_data", ctypes.c_void_p)]  # fmt: skip


def release(struct):
    """Releases a struct, checking that it is unreleased before and released afterwards."""
    assert struct.release
    struct.release(ctypes.addressof(struct))
    assert not struct.release


def moved(struct):
    """Moves a struct to another place, as consumers do: the old one is marked as released."""
    copy = type(struct).from_buffer_copy(struct)
    struct.release = RELEASE()
    return copy


def stream_of(table):
    """Returns the stream of a table's capsule. The capsule no longer exists."""
    capsule = table.__arrow_c_stream__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return moved(Stream.from_address(pointer(capsule, b"arrow_array_stream")))


def next_of(stream):
    """Returns the next array, or None at the end."""
    array = Array()
    status = stream.get_next(ctypes.addressof(stream), array)
    if status:
        raise OSError(status, stream.get_last_error(ctypes.addressof(stream)).decode())
    return array if array.release else None


def bit(address, i):
    return ctypes.c_uint8.from_address(address + i // 8).value >> i % 8 & 1


NUMBERS = {b"l": ctypes.c_int64, b"i": ctypes.c_int32, b"C": ctypes.c_uint8, b"tdD": ctypes.c_int32}


def values_of(schema, array):
    """The values of a column."""
    assert array.offset == 0 and array.n_children == 0 and array.n_buffers == (3 if schema.format == b"u" else 2)
    valid, data = array.buffers[0], array.buffers[1]
    assert valid or array.null_count == 0
    count = array.length
    if schema.format == b"u":
        ends = (ctypes.c_int32 * (count + 1)).from_address(data)
        whole = ctypes.string_at(array.buffers[2], ends[count])
        values = [whole[ends[i] : ends[i + 1]].decode() for i in range(count)]
    elif schema.format == b"b":
        values = [bit(data, i) == 1 for i in range(count)]
    else:
        values = (NUMBERS[schema.format] * count).from_address(data)[:]
    if schema.dictionary:
        words = values_of(schema.dictionary.contents, array.dictionary.contents)
        values = [words[value] for value in values]
    return [value if not valid or bit(valid, i) else None for i, value in enumerate(values)]


def columns_of(stream):
    """Returns {column: values} of a stream, and {column: (format, format of the dictionary,
    nullable)}. Releases everything."""
    schema = Schema()
    equal(stream.get_schema(ctypes.addressof(stream), schema), 0)
    equal((schema.format, bool(schema.dictionary)), (b"+s", False))
    fields = [schema.children[i].contents for i in range(schema.n_children)]
    kinds = {f.name.decode(): (f.format, f.dictionary.contents.format if f.dictionary else None, f.flags == 2) for f in fields}
    values = {name: [] for name in kinds}
    while array := next_of(stream):
        equal((array.n_children, array.n_buffers, array.buffers[0], array.offset), (len(fields), 1, None, 0))
        for i, field in enumerate(fields):
            equal(array.children[i].contents.length, array.length)
            values[field.name.decode()] += values_of(field, array.children[i].contents)
        release(array)
    release(schema)
    release(stream)
    return values, kinds


def all_is_released():
    gc.collect()
    equal(binding._kept, {})


@test
def arrow_has_the_values_of_all_tables():
    for trace in (RECORDED, EXAMPLES[0], assembled("everything-1.26"), assembled("everything-1.21")):
        opened = binding.open(trace)
        for table in binding.tables():
            values, _ = columns_of(stream_of(opened.arrow(table)))
            equal(values, opened.columns(table), (trace, table))
    all_is_released()


@test
def arrow_has_the_types_of_the_definition():
    text = open(os.path.join(ROOT, "src", "tables", "tables.def"), encoding="utf-8").read()
    rows = re.findall(r"^COLUMN\((\w+), *\w+, *(\w+), *(\w+), *(\w+),", text, re.M)
    formats = {"I64": (b"l", None), "I32": (b"i", None), "BOOL": (b"b", None), "ENUM": (b"C", b"u"), "TEXT": (b"u", None)}
    for table in binding.tables():
        _, kinds = columns_of(stream_of(binding.open(RECORDED).arrow(table)))
        equal(kinds, {name: (*formats[cell], null == "NULLABLE") for of, name, cell, null in rows if of == table.upper()}, table)


@test
def arrow_has_the_columns_that_are_asked_for_and_those_of_a_window():
    window = {"from_ns": 20_000_000, "to_ns": 30_000_000}
    opened = binding.open(RECORDED)
    values, _ = columns_of(stream_of(opened.arrow("states", ["state", "duration_ns"], **window)))
    equal(values, opened.columns("states", ["state", "duration_ns"], **window))
    equal(list(values), ["state", "duration_ns"])
    try:
        opened.arrow("states", ["nothing"])
        raise AssertionError("no error")
    except ValueError as error:
        equal(str(error), "states has no column nothing")
    try:
        binding.open(RECORDED).columns("nothing")
        raise AssertionError
    except ValueError as error:
        assert str(error).startswith("there is no table nothing, only events, "), error


@test
def arrow_outlives_the_trace_and_children_outlive_their_parent():
    opened = binding.open(EXAMPLES[3])
    right = opened.columns("events", ["time_ns", "kind"])
    stream, schema, arrays = stream_of(opened.arrow("events", ["time_ns", "kind"])), Schema(), []
    stream.get_schema(ctypes.addressof(stream), schema)
    while array := next_of(stream):
        arrays.append(array)
    assert len(arrays) > 1
    release(stream)
    del opened
    gc.collect()
    fields = [moved(schema.children[i].contents) for i in range(2)]
    release(schema)
    ours = ([], [])
    for array in arrays:
        children = [moved(array.children[i].contents) for i in range(2)]
        release(array)
        for values, field, child in zip(ours, fields, children):
            values += values_of(field, child)
            release(child)
    for field in fields:
        release(field)
    equal(list(ours), [right["time_ns"], right["kind"]])
    all_is_released()


@test
def arrow_that_is_not_read_or_only_begun_is_released():
    opened = binding.open(EXAMPLES[3])
    before = len(os.listdir("/proc/self/fd"))
    opened.arrow("events").__arrow_c_stream__()
    stream = stream_of(opened.arrow("events"))
    array = next_of(stream)
    release(stream)
    equal(len(os.listdir("/proc/self/fd")), before)
    release(array)
    all_is_released()


@test
def arrow_of_a_damaged_trace_is_the_good_part_and_an_error():
    cut = os.path.join(WORK, "cut.trace")
    with open(EXAMPLES[3], "rb") as trace, open(cut, "wb") as to:
        to.write(trace.read()[:-5000])
    stream, count = stream_of(binding.open(cut).arrow("events", ["time_ns"])), 0
    try:
        while array := next_of(stream):
            count += array.length
            release(array)
        raise AssertionError("no error")
    except OSError as error:
        equal((error.errno, "failed to read" in str(error)), (5, True), error)
    equal(count, len(run("print", "--format=jsonl", cut)[1].splitlines()))
    release(stream)
    all_is_released()


@test
def duckdb_reads_arrow():
    chosen, name = os.environ.get("TRAIL_DUCKDB", ""), "libduckdb.so"
    npm = os.path.join(chosen, "node_modules", "@duckdb", "node-bindings-linux-x64", name)
    path = next(filter(os.path.isfile, [chosen, os.path.join(chosen, name), npm]), None)
    if not path:
        raise Skip("no libduckdb.so in TRAIL_DUCKDB")
    duckdb = ctypes.CDLL(path)
    duckdb.duckdb_value_varchar.restype = ctypes.c_char_p
    database, connection, result = ctypes.c_void_p(), ctypes.c_void_p(), (ctypes.c_char * 256)()
    equal((duckdb.duckdb_open(None, ctypes.byref(database)), duckdb.duckdb_connect(database, ctypes.byref(connection))), (0, 0))
    opened = binding.open(EXAMPLES[0])
    stream = stream_of(opened.arrow("states"))
    equal(duckdb.duckdb_arrow_scan(connection, b"scan", ctypes.c_void_p(ctypes.addressof(stream))), 0)
    # All columns, because this function of DuckDB expects a stream of the columns that its query uses.
    equal(duckdb.duckdb_query(connection, b"create table states as select * from scan", None), 0)
    for query, right in DUCKDB_QUERIES:
        equal(duckdb.duckdb_query(connection, query.encode(), result), 0)
        ours = duckdb.duckdb_value_varchar(result, ctypes.c_uint64(0), ctypes.c_uint64(0)).decode()
        duckdb.duckdb_destroy_result(result)
        equal(ours, right(list(opened.rows("states"))), query)
    duckdb.duckdb_disconnect(ctypes.byref(connection))
    duckdb.duckdb_close(ctypes.byref(database))
    release(stream)
    gc.collect()
    # This DuckDB function releases all arrays, but never a schema, whose first object is its
    # format.
    equal([objects for objects in binding._kept.values() if not isinstance(objects[0], bytes)], [])
    binding._kept.clear()


DUCKDB_QUERIES = [
    ("select sum(duration_ns)::varchar from states", lambda rows: str(sum(row["duration_ns"] for row in rows))),
    ("select count(*)::varchar from states where state = 'Waiting' and has_end",
     lambda rows: str(sum(row["state"] == "Waiting" and row["has_end"] for row in rows))),
    ("select string_agg(distinct reason, ',' order by reason) from states",
     lambda rows: ",".join(sorted({row["reason"] for row in rows if row["reason"] is not None}))),
    ("select count(*)::varchar from states where object is null and stack > 0",
     lambda rows: str(sum(row["object"] is None and (row["stack"] or 0) > 0 for row in rows))),
]  # fmt: skip


@test
def pyarrow_reads_arrow():
    try:
        import pyarrow
    except ImportError:
        raise Skip("no pyarrow") from None
    opened = binding.open(EXAMPLES[0])
    for table in binding.tables():
        read = pyarrow.table(opened.arrow(table))
        read.validate(full=True)
        equal(read.to_pydict(), opened.columns(table), table)
    del read
    all_is_released()


@test
def the_notebook_shows_what_its_cells_print():
    with open(os.path.join(ROOT, "docs", "notebook.ipynb")) as file:
        cells = [cell for cell in json.load(file)["cells"] if cell["cell_type"] == "code"]
    space, here = {}, os.getcwd()
    os.chdir(ROOT)
    os.environ["PATH"] = os.path.dirname(TRAIL) + os.pathsep + os.environ["PATH"]
    try:
        for cell in cells:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec("".join(cell["source"]), space)
            equal(printed.getvalue(), "".join(text for output in cell["outputs"] for text in output["text"]))
    finally:
        os.chdir(here)
    assert len(cells) > 3, cells


if __name__ == "__main__":
    if SANITIZERS != "none":
        print("1..0 # SKIP a library with sanitizers cannot be loaded into Python")
        sys.exit(0)
    os.environ["TRAIL_LIBRARY"] = LIBRARY
    sys.path.insert(0, BINDING)
    import trail as binding

    sys.exit(main())
