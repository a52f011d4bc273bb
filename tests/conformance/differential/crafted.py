"""Traces in which one rule decides, each with its verdict: (name, bytes, {release of Go: accepted})."""

from traces import V1_PREFIXED, V2_SAMPLES, V2_STRINGS, Batch, encode_v1

NOBODY = 2**64 - 1
BATCH, FREQUENCY, STACK, PROC_START, GO_CREATE, GO_START_LOCAL, GO_BLOCK, SAMPLE = 1, 2, 3, 5, 13, 38, 20, 49


def header(minor):
    return f"go 1.{minor} trace".encode().ljust(16, b"\0")


# MARK: v1


def v1(before=(), batch=BATCH):
    """A goroutine is created, runs and blocks; the last frequency is sound."""
    records = [
        *before,
        [batch, [0, 100], None],
        [PROC_START, [1, 5], None],
        [GO_CREATE, [5, 7, 1, 0], None],
        [GO_START_LOCAL, [1, 7], None],
        [GO_BLOCK, [3, 0], None],
        [FREQUENCY, [10**9], None],
        [STACK, [1, 0], None],
    ]
    return header(21) + b"".join(encode_v1(record, 21) for record in records)


# MARK: v2


def v2(minor, *batches):
    return header(minor) + b"".join(batch if isinstance(batch, bytes) else batch.encoded() for batch in batches)


def sync(minor, gen=1, time=100):
    batch = Batch(None, gen, NOBODY, time)
    if minor >= 25:
        batch.prefix = bytes([50])
    batch.records = [[8, [10**9], None]] + ([[51, [0, 1, 1, 10**9 + 5], None]] if minor >= 25 else [])
    return batch


def events(gen=1, time=100):
    """A P and a goroutine that run."""
    batch = Batch(None, gen, 5, time)
    batch.records = [[13, [1, 0, 1], None], [25, [1, 1, 5, 2], None], [37, [1, 4096], None]]
    return batch


def stopped(kind):
    """The world is stopped for a reason."""
    batch = events()
    batch.records += [[26, [1, 1, 0], None], [27, [1], None]]
    return batch, prefixed(V2_STRINGS, [5, [1], kind])


def prefixed(prefix, *records, gen=1):
    batch = Batch(None, gen, NOBODY, 100)
    batch.prefix, batch.records = bytes([prefix]), list(records)
    return batch


def experiment(data):
    batch = Batch(1, 1, NOBODY, 100)
    batch.records = [[None, [], data]]
    return batch


BOTH, CURRENT, OLD = {"1.27": True, "1.21": True}, {"1.27": True, "1.21": False}, {"1.27": False, "1.21": True}
V2_GOOD, V2_BAD = {"1.27": True}, {"1.27": False}
END = bytes([52])

CRAFTED = [
    ("a stack without frames has no length", v1(), BOTH),
    ("a batch has no length", v1(batch=BATCH | V1_PREFIXED), OLD),
    (
        "a sample may precede its goroutine",
        v1(before=[[BATCH, [1, 90], None], [SAMPLE, [1, 90, 0, 7, 0], None]]),
        CURRENT,
    ),
    ("each frequency is positive", v1(before=[[FREQUENCY, [0], None]]), {"1.27": False, "1.21": False}),
    ("a sample has a stack, if an empty one", v2(22, sync(22), events(), prefixed(V2_SAMPLES, [7, [101, 5, 0, 1, 0], None])), V2_GOOD),
    ("experiments are in any version", v2(22, sync(22), experiment(b"x"), events()), V2_GOOD),
    ("a time of 0 is none", v2(22, sync(22, time=0), events()), V2_GOOD),
    ("nanoseconds of a clock are carried", v2(26, sync(26), events(), END), V2_GOOD),
    ("up to 1.25 an end of a generation is an error", v2(25, sync(25), events(), END), V2_BAD),
    ("a generation out of order hides the one before it", v2(22, sync(22), events(), sync(22, gen=3)), V2_BAD),
    ("one that cannot be read does not", v2(22, sync(22), events(), b"\x07"), V2_BAD),
    (
        "the event before a malformed one is lost",
        v2(22, sync(22), events(), *[Batch(None, 1, 5, 100)] * 2, b"\x01\x01\x05\x64\x01\x07"),
        V2_BAD,
    ),
    ("a string may have any bytes", v2(22, sync(22), *stopped(b"a\0b")), V2_GOOD),
    ("strings have numbers of their own", v2(22, sync(22), events(), prefixed(V2_STRINGS, [5, [1], b"a"], [5, [1], b"b"])), V2_BAD),
]
