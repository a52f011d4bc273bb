"""The batches and events of a trace of Go 1.22 and later, by their extent."""

import re

from varint import varint

HEADER = 16
EXPERIMENTAL_BATCH, END_OF_GENERATION = 49, 52
TABLES = (2, 4, 6, 8, 48, 50)  # the first byte of batches without events: stacks, strings, samples, frequency, sync


def batches(data):
    """(start, start of the data, end) of each batch."""
    at = HEADER
    while at < len(data):
        start, kind = at, data[at]
        at += 1 + (kind == EXPERIMENTAL_BATCH)
        if kind == END_OF_GENERATION:
            continue
        for _ in range(4):  # generation, thread, time, size
            size, at = varint(data, at)
        yield start, at, at + size
        at += size


def events(data, definitions):
    """(start of its batch, end) of each event. `definitions`: the text of src/wire/v2.def."""
    rows = re.findall(r"^V2_EVENT\(\s*(\d+),\s*\w+,\s*\d+,\s*\w+,\s*(\d+)", definitions, re.M)
    counts = {int(kind): int(count) for kind, count in rows}
    for start, at, end in batches(data):
        while at < end and data[at] not in TABLES:
            count = counts[data[at]]
            at += 1
            for _ in range(count):
                _, at = varint(data, at)
            yield start, at
