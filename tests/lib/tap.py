"""Results of Python tests as TAP, for two kinds of scripts.

A script with a fixed list of tests marks each function as one and runs them all:

    @test
    def a_trace_is_read(): ...

    sys.exit(main())

Those that take long, with large inputs, are marked @long instead: they run if the script's last argument is "long", and
the others do not.

A script that finds its cases itself, such as the traces in a folder, reports one result after the other:

    report(ours == right, name, ours, right)
    sys.exit(finish())
"""

import sys
import time

tests, long_tests = [], []
count = failures = 0  # of the results so far


class Skip(Exception):
    """A requirement of the test that is not installed."""


def test(function):
    tests.append(function)
    return function


def long(function):
    long_tests.append(function)
    return function


def main():
    global failures
    chosen = long_tests if sys.argv[-1] == "long" else tests
    print(f"1..{len(chosen)}")
    for i, function in enumerate(chosen, 1):
        name = function.__name__.replace("_", " ")
        begin = time.monotonic()
        try:
            function()
            print(f"ok {i} - {name}")
        except Skip as e:
            print(f"ok {i} - {name} # SKIP {e}")
        except Exception as e:  # a test that raises an exception fails
            failures += 1
            print(f"not ok {i} - {name}")
            for line in (f"{type(e).__name__}: {e}"[:3000]).splitlines():
                print(f"# {line}")
        seconds = time.monotonic() - begin
        if seconds >= 1:
            print(f"# {seconds:.1f} s")
        sys.stdout.flush()
    return failures > 0


def report(ok, name, *why):
    """The next result; the first lines of `why` follow one that is "not ok"."""
    global count, failures
    count += 1
    failures += not ok
    print(f"{'ok' if ok else 'not ok'} {count} - {name}")
    for line in "\n".join(map(str, why)).splitlines()[: 0 if ok else 30]:
        print(f"# {line[:1000]}")
    sys.stdout.flush()


def skip(name, why):
    global count
    count += 1
    print(f"ok {count} - {name} # SKIP {why}", flush=True)


def finish():
    """Prints the plan. Returns the exit status: 1 if any result is "not ok"."""
    print(f"1..{count}")
    return failures > 0
