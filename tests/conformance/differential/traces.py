"""Traces as lists of records, to be changed at random.

A trace of v1 (Go 1.5 to 1.21) is a list of records. One of v2 is a list of batches, each with its records. A record is
a list: type, numbers, bytes or None. Whatever is changed, the result can be encoded; nothing else is promised.
"""

import os
import re

HEADER = 16
INTERESTING = [0, 1, 2, 3, 127, 128, 255, 2**16, 2**31, 2**32 - 1, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
V2_EVENT_BATCH, V2_STACK, V2_STRING, V2_EXPERIMENTAL_BATCH, V2_END = 1, 3, 5, 49, 52
V2_STACKS, V2_STRINGS, V2_SAMPLES, V2_FREQUENCY, V2_SYNC = 2, 4, 6, 8, 50
V1_BATCH, V1_STACK, V1_STRING, V1_LOG, V1_SAMPLE = 1, 3, 37, 48, 49
V1_PREFIXED = 0x100  # beside a type: the numbers follow their length, however few there are


def types_of(root, version):
    """The names of the numbers of each type, from the tables of the formats: {type: (class or None, names)}."""
    types = {}
    with open(os.path.join(root, "src", "wire", f"{version}.def"), encoding="utf-8") as f:
        for row in re.findall(r"^V[12]_EVENT\((.*)\)$", f.read(), re.M):
            number, _, _, what = (field.strip() for field in row.split(",")[:4])
            types[int(number)] = (what, re.findall(r'"(\w+)"', row))
    return types


# MARK: Numbers


def number(value):
    value &= 2**64 - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Bytes:
    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def left(self):
        return self.at < self.end

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def bytes(self, size):
        self.at += size
        return self.data[self.at - size : self.at]


# MARK: v2


class Batch:
    """A batch: its header's fields, the byte before its records (or b""), and these; `end` ends a generation, and a `cut`
    one ends within a record."""

    def __init__(self, exp, gen, m, time):
        self.exp, self.gen, self.m, self.time = exp, gen, m, time
        self.prefix, self.records, self.end = b"", [], False
        self.cut = False

    def encoded(self):
        if self.end:
            return bytes([V2_END])
        data = self.prefix + b"".join(map(encode_v2, self.records))
        head = bytes([V2_EVENT_BATCH]) if self.exp is None else bytes([V2_EXPERIMENTAL_BATCH, self.exp])
        return head + b"".join(map(number, (self.gen, self.m, self.time, len(data)))) + data

    def copy(self):
        other = Batch(self.exp, self.gen, self.m, self.time)
        other.prefix, other.end = self.prefix, self.end
        other.records = [[r[0], list(r[1]), r[2]] for r in self.records]
        return other


def encode_v2(record):
    type, numbers, data = record
    if type is None:
        return data
    size = b"" if data is None else number(len(data)) + data
    return bytes([type]) + b"".join(map(number, numbers)) + size


def decode_v2(data, types):
    """The batches, one after the other; an error behind one that cannot be read."""
    b, minor = Bytes(data, HEADER), int(data[5:7])
    while b.left():
        type = b.byte()
        if type == V2_END:
            end = Batch(None, 0, 0, 0)
            end.end = True
            yield end
            continue
        batch = Batch(b.byte() if type == V2_EXPERIMENTAL_BATCH else None, b.number(), b.number(), b.number())
        inner = Bytes(data, 0, 0)
        size = b.number()
        inner.at, inner.end = b.at, b.at + size
        b.at += size
        first = data[inner.at] if inner.left() else 0
        structural = (V2_STACKS, V2_STRINGS, V2_SAMPLES) + ((V2_SYNC,) if minor >= 25 else ())
        if batch.exp is not None:
            batch.records.append([None, [], inner.bytes(size)])
        elif first in structural:
            batch.prefix = inner.bytes(1)
        try:
            while inner.left():
                type = inner.byte()
                numbers = [inner.number() for _ in types[type][1]]
                if type == V2_STACK:
                    numbers += [inner.number() for _ in range(4 * numbers[1])]
                text = inner.bytes(inner.number()) if type == V2_STRING else None
                batch.records.append([type, numbers, text])
        except (IndexError, KeyError):
            yield batch
            raise
        batch.cut = inner.at > inner.end
        yield batch


# MARK: v1


def encode_v1(record, minor):
    type, numbers, data = record
    if type == V1_STRING:
        return bytes([type]) + b"".join(map(number, numbers[:1])) + number(len(data or b"")) + (data or b"")
    usual = 1 if minor >= 7 else 2
    count = len(numbers) - usual
    arguments = b"".join(map(number, numbers))
    if 0 <= count < 3 and not type & V1_PREFIXED:
        head = bytes([type | count << 6])
    else:
        head = bytes([type & 0x3F | 3 << 6]) + number(len(arguments))
    return head + arguments + (number(len(data)) + data if data is not None else b"")


def decode_v1(data, minor):
    b, records = Bytes(data, HEADER), []
    while b.left():
        first = b.byte()
        type, code, text = first & 0x3F, first >> 6, None
        if type == V1_STRING:
            numbers = [b.number()]
            text = b.bytes(b.number())
        elif code == 3:
            end = b.number()
            end += b.at
            numbers = []
            while b.at < end:
                numbers.append(b.number())
            text = b.bytes(b.number()) if type == V1_LOG else None
        else:
            numbers = [b.number() for _ in range(code + (1 if minor >= 7 else 2))]
        records.append([type, numbers, text])
    return records


# MARK: Changes


class Mutator:
    def __init__(self, root, random):
        self.random = random
        self.types = {"v1": types_of(root, "v1"), "v2": types_of(root, "v2")}

    def value(self, old):
        r = self.random
        return r.choice([old + 1, old - 1, old + 2, old ^ 1, r.choice(INTERESTING), r.randrange(20), r.randrange(2**16)])

    def record(self, version, alike):
        """A new record of any type, with numbers of the kinds that records of the trace have."""
        r = self.random
        type = r.choice(sorted(self.types[version]))
        names, seen = self.types[version][type][1], {}
        for other in alike:
            for name, value in zip(self.types[version].get(other[0], ("", []))[1], other[1]):
                seen.setdefault(name.rsplit("_", 1)[-1], []).append(value)
        numbers = [r.choice(seen.get(name.rsplit("_", 1)[-1]) or [r.randrange(4)]) for name in names]
        return [type, numbers, b"text" if type in (V2_STRING if version == "v2" else V1_STRING,) else None]

    def change_records(self, records, version, more):
        """One change of a list of records. `more` is where values are taken from."""
        r = self.random
        if not records:
            return
        i = r.randrange(len(records))
        record = records[i]
        kind = r.randrange(10)
        if kind == 0:
            del records[i]
        elif kind == 1:
            records.insert(i, [record[0], list(record[1]), record[2]])
        elif kind == 2 and i + 1 < len(records):
            records[i], records[i + 1] = records[i + 1], records[i]
        elif kind == 3:
            records.insert(r.randrange(len(records)), records.pop(i))
        elif kind == 4:
            records.insert(i, self.record(version, more))
        elif kind == 5:
            record[0] = r.choice(sorted(self.types[version])) if record[0] is not None else None
        elif kind == 6 and record[2] is not None:
            record[2] = r.choice([b"", b"\xff\0\n\"", record[2] * 3, record[2][:-1]])
        elif kind == 7 and version == "v1":
            if r.random() < 0.3:
                record[0] |= V1_PREFIXED
            elif record[1] and r.random() < 0.5:
                record[1].pop(r.randrange(len(record[1])))
            else:
                record[1].append(r.choice(INTERESTING))
        elif record[1]:
            j = r.randrange(len(record[1]))
            same = [o[1][j] for o in more if o[0] == record[0] and len(o[1]) > j]
            record[1][j] = r.choice(same) if same and r.random() < 0.5 else self.value(record[1][j])

    def change_batches(self, batches):
        r = self.random
        i = r.randrange(len(batches))
        batch, kind = batches[i], r.randrange(10)
        if kind == 0:
            del batches[i]
        elif kind == 1:
            batches.insert(i, batch.copy())
        elif kind == 2:
            batches.insert(r.randrange(len(batches)), batches.pop(i))
        elif kind == 3:
            batch.gen = self.value(batch.gen)
        elif kind == 4:
            batch.m = r.choice(batches).m if r.random() < 0.7 else self.value(batch.m)
        elif kind == 5:
            batch.time = r.choice(batches).time if r.random() < 0.5 else self.value(batch.time)
        elif kind == 6:
            batch.records = []
        elif kind == 7:
            batch.exp = r.choice([None, 0, 1, 2])
        elif kind == 8:
            cut = r.randrange(len(batch.records) + 1)
            rest = batch.copy()
            batch.records, rest.records = batch.records[:cut], rest.records[cut:]
            batches.insert(i + 1, rest)
        else:
            batch.prefix = r.choice([b"", b"\x02", b"\x04", b"\x06", b"\x08", b"\x32"])

    def change_bytes(self, data):
        r, data = self.random, bytearray(data)
        at, size, kind = r.randrange(HEADER, len(data)), 2 ** r.randrange(10), r.randrange(5)
        if kind == 0:
            data[at] = r.randrange(256)
        elif kind == 1:
            del data[at : at + size]
        elif kind == 2:
            del data[at:]
        elif kind == 3:
            data[at:at] = data[at : at + size]
        else:
            data[at] ^= 1 << r.randrange(8)
        return data

    def changed(self, base):
        """A copy of a trace with up to four changes."""
        r, minor = self.random, int(re.match(rb"go 1\.(\d+)", base)[1])
        changes = r.choice([0, 1, 1, 1, 2, 3, 4])
        header = base[:HEADER]
        if minor < 22:
            records = decode_v1(base, minor)
            for _ in range(changes):
                self.change_records(records, "v1", records)
            data = header + b"".join(encode_v1(record, minor) for record in records)
        else:
            batches = list(decode_v2(base, self.types["v2"]))
            everything = [record for batch in batches for record in batch.records]
            for _ in range(changes):
                if not batches or r.random() < 0.25:
                    self.change_batches(batches or [Batch(None, 1, 1, 1)])
                else:
                    self.change_records(r.choice(batches).records, "v2", everything)
            data = header + b"".join(batch.encoded() for batch in batches)
        return self.change_bytes(data) if changes and len(data) > HEADER and r.random() < 0.1 else data
