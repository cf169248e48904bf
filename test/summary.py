"""Prints lit's ten slowest tests and, as the last line, its results, `N passed, N failed`, and exits
by them.

usage: summary.py RESULTS.json
"""

import json
import sys

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}
SLOWEST = 10


def print_slowest(tests):
    """Prints seconds and names; tests that lit does not time take none."""
    timed = [test for test in tests if test.get("elapsed") is not None]
    total = sum(test["elapsed"] for test in timed)
    slowest = sorted(timed, key=lambda test: -test["elapsed"])[:SLOWEST]
    if slowest:
        print(f"slowest of {len(timed)} tests, which take {total:.1f} s one by one:")
    for test in slowest:
        print(f"{test['elapsed']:8.1f} s  {test['name']}")


def main(path):
    try:
        with open(path) as file:
            tests = json.load(file)["tests"]
    except OSError:
        # The build or lit itself failed before any test ran.
        tests = []
    print_slowest(tests)
    codes = [test["code"] for test in tests]
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    failed = len(codes) - passed - skipped if codes else 1
    line = f"{passed} passed, {failed} failed"
    print(line + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
