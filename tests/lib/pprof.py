"""A reader of pprof profiles, after proto/profile.proto of github.com/google/pprof; for tests."""

import gzip

from varint import varint


def fields(data):
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        else:
            assert tag & 7 == 2, f"type {tag & 7}"
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size, "cut short"
        yield tag >> 3, value


def message(data):
    return dict(fields(data))


def numbers(data, number):
    """The values of a repeated field, which may be packed or one by one."""
    values = []
    for field, value in fields(data):
        if field == number and isinstance(value, int):
            values.append(value)
        elif field == number:
            at = 0
            while at < len(value):
                one, at = varint(value, at)
                values.append(one)
    return values


def read_pprof(data):
    """{types: [(type, unit)], period: ((type, unit), n), samples: [(stack of (pc, function, file, line), values)]}"""
    parts = {}
    for field, value in fields(gzip.decompress(data)):
        parts.setdefault(field, []).append(value)
    strings = [s.decode("utf-8") for s in parts[6]]
    assert strings[0] == ""

    def unit(data):
        m = message(data)
        return strings[m.get(1, 0)], strings[m.get(2, 0)]

    functions, locations = {}, {}
    for m in map(message, parts.get(5, [])):
        assert m[1] not in functions and m.get(2, 0) == m.get(3, 0)
        functions[m[1]] = strings[m.get(2, 0)], strings[m.get(4, 0)]
    for m in map(message, parts.get(4, [])):
        assert m[1] not in locations
        line = message(m[4])
        function, file = functions[line[1]]
        locations[m[1]] = m.get(3, 0), function, file, line.get(2, 0)
    samples = []
    for sample in parts.get(2, []):
        stack = tuple(locations[i] for i in numbers(sample, 1))
        samples.append((stack, tuple(numbers(sample, 2))))
    return {
        "types": [unit(t) for t in parts[1]],
        "period": (unit(parts[11][0]), parts[12][0]),
        "samples": samples,
    }
