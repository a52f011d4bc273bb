"""Seeded damages of a trace, and which parts of it they leave intact."""

KINDS = ("cut", "overwritten", "removed", "duplicated", "swapped")


def damaged(data, header, kind, sizes, r):
    """A copy that is damaged behind its header, and the parts of the original that are in it, each in one piece."""
    n = len(data)
    size = min(r.choice(sizes), n // 4)
    at = r.randrange(header, n - size)
    other = r.randrange(header, n - size)
    if kind == "cut":
        return data[:at], [(0, at)]
    if kind == "removed":
        return data[:at] + data[at + size :], [(0, at), (at + size, n)]
    if kind == "duplicated":
        return data[: at + size] + data[at:], [(0, at + size), (at, n)]
    first, second = min(at, other), max(at, other)
    if kind == "overwritten" or second < first + size:
        return data[:at] + r.randbytes(size) + data[at + size :], [(0, at), (at + size, n)]
    pieces = [(0, first), (second, second + size), (first + size, second), (first, first + size), (second + size, n)]
    return b"".join(data[a:b] for a, b in pieces), pieces
