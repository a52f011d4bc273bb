"""How many of the inputs of one kind a test tries: a fixed part, spread over all of them; all in a release, which sets
TRAIL_TEST_ALL."""

import os

ALL = bool(os.environ.get("TRAIL_TEST_ALL"))


def some(items, most):
    items = list(items)
    if ALL or len(items) <= most:
        return items
    return [items[i * len(items) // most] for i in range(most)]
