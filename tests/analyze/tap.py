"""What the tests of the analyses share: a list of functions, run one by one and told as TAP."""

import sys

tests = []


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
        except Exception as e:  # a test that breaks is a test that fails
            failed += 1
            print(f"not ok {i} - {name}")
            for line in (f"{type(e).__name__}: {e}"[:2000]).splitlines():
                print(f"# {line}")
        sys.stdout.flush()
    return failed > 0
