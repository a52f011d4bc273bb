"""What tests in Python share: a list of functions, run one by one and told as TAP."""

import sys

tests = []


class Skip(Exception):
    """What a test needs and is not here."""


def test(function):
    tests.append(function)
    return function


def main():
    print(f"1..{len(tests)}")
    failed = 0
    for i, function in enumerate(tests, 1):
        name = function.__name__.replace("_", " ")
        try:
            function()
            print(f"ok {i} - {name}")
        except Skip as e:
            print(f"ok {i} - {name} # SKIP {e}")
        except Exception as e:  # a test that breaks is a test that fails
            failed += 1
            print(f"not ok {i} - {name}")
            for line in (f"{type(e).__name__}: {e}"[:3000]).splitlines():
                print(f"# {line}")
        sys.stdout.flush()
    return failed > 0
