"""The lit tests of test/Integration/CUDA, each a process with its own limit."""

import json
import os
import re
import sys

from .commands import run

LIMIT = 90  # Seconds for one test.
PASSED = {"PASS", "XFAIL", "FLAKYPASS"}


def discover(root):
    return sorted((root / "test").rglob("*.test"))


def run_test(root, test, scratch, limit):
    """A row of the report."""
    results = scratch / "lit.json"
    results.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(root / "share"),
                   "PYTHONDONTWRITEBYTECODE": "1"}
    outcome = run(
        [sys.executable, "-c", "from lit.main import main; main()", "-v", "--output", results,
         "--param", f"exec_root={scratch / 'test'}", test],
        limit, environment)
    row = {"name": str(test.relative_to(root / "test")), "kind": "test",
           "seconds": round(outcome.seconds, 3)}
    if outcome.code is None:
        return {**row, "status": "failed", "message": outcome.message(limit)}
    try:
        result, = json.loads(results.read_text())["tests"]
    except (OSError, ValueError):
        return {**row, "status": "failed", "message": outcome.message(limit)}
    if result["code"] in PASSED:
        # What its commands printed, as lit marks it.
        printed = re.findall(r"^# \| (.*)$", result["output"], re.MULTILINE)
        return {**row, "status": "passed", "output": printed}
    status = "skipped" if result["code"] == "UNSUPPORTED" else "failed"
    return {**row, "status": status, "message": result["output"].strip()[-4000:]}
