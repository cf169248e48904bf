"""Prints lit's results as one line, `N passed, N failed`, and exits by them.

usage: summary.py RESULTS.json
"""

import json
import sys

PASSED = {"PASS", "XFAIL", "FLAKYPASS"}
SKIPPED = {"UNSUPPORTED", "SKIPPED", "EXCLUDED"}


def main(path):
    try:
        with open(path) as file:
            codes = [test["code"] for test in json.load(file)["tests"]]
    except OSError:
        # The build or lit itself failed before any test ran.
        codes = []
    passed = sum(code in PASSED for code in codes)
    skipped = sum(code in SKIPPED for code in codes)
    failed = len(codes) - passed - skipped if codes else 1
    line = f"{passed} passed, {failed} failed"
    print(line + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
