"""What the benchmarks share: timing, the machine's description, the results."""

import datetime
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "test/Integration/CPU/Inputs"), str(ROOT / "python")]
sys.dont_write_bytecode = True


def interleaved(calls, repeats):
    """Seconds of each call, in turn, so that all see the same machine."""
    for call in calls:
        call()
    seconds = [[] for _ in calls]
    for _ in range(repeats):
        for call, times in zip(calls, seconds):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
    return seconds


def middle_and_worst(seconds):
    return statistics.median(seconds), max(seconds)


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def write(name, rows, table, **facts):
    """Results as JSON and as a table, with what it takes to repeat them."""
    record = {
        "command": " ".join(["python3", f"benchmarks/{name}.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        **facts,
        "rows": rows,
    }
    title = f"{record['cpu']}, {record['cores']} of {os.cpu_count()} cores, {record['date']}"
    text = "\n".join([title, f"$ {record['command']}", "", *table]) + "\n"
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=2) + "\n")
    (RESULTS / f"{name}.txt").write_text(text)
    print(text, end="")
