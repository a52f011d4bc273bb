#!/usr/bin/env python3
"""The summary and its findings: for each finding, a trace that has it and some that nearly do. TAP.

usage: all.py TRAIL SOURCE_ROOT [long]      long: the traces of many events, and no others
Each of the scripts can also run alone.
"""

import sys

import alone  # noqa: F401
import answers  # noqa: F401
import balance  # noqa: F401
import cpus  # noqa: F401
import culprits  # noqa: F401
import garbage  # noqa: F401
import handoffs  # noqa: F401
import locks  # noqa: F401
import outside  # noqa: F401
import polling  # noqa: F401
import queues  # noqa: F401
import stuck  # noqa: F401
import summary  # noqa: F401
import tasks  # noqa: F401
from made import main

if __name__ == "__main__":
    sys.exit(main())
