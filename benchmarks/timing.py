"""Times on a GPU: of work that a host launches call by call, and of a CUDA graph with it.

A call of a small program takes the host longer than the GPU, so that the time of calls is
the host's; a graph's is the GPU's. Contenders are measured both ways in rounds that
alternate, each beginning where the one before it ended: what a GPU has just done decides
its clocks.
"""

import datetime
import gc
import json
import math
import statistics
import subprocess
import sys
from pathlib import Path

try:
    import torch
except ImportError:  # Programs are made without it.
    torch = None

SAMPLE_S = 0.02
MOST_CALLS = 20
AGREE = 0.03  # What times of calls and of their graph may differ by.


def seconds(work):
    """On the GPU, between what the current stream does before it and after."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end)


def repeat(call, times):
    for _ in range(times):
        call()


def seconds_of_each(call, times):
    """Takes those of so many calls in a row, for one of them."""
    return seconds(lambda: repeat(call, times)) / times


def capture(call, times):
    """A graph of so many calls, none of which may be the first. It is captured in a stream
    of its own: a capture that fails leaves one of no use. Other graphs must not be collected
    meanwhile, which ends it."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    gc.collect()
    gc.disable()
    try:
        with torch.cuda.graph(graph, stream=stream):
            repeat(call, times)
    finally:
        gc.enable()
    return graph


def describe(error):
    """In one line; compilers' have many."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


class Contender:
    """A call that is measured. What fails is its result."""

    def __init__(self, call, warm_up_s):
        self.samples, self.times, self.failures = {}, {}, {}
        try:
            repeat(call, 2)  # The first makes what later ones have.
            once, spent = seconds(call), 0
            calls = max(2, min(MOST_CALLS, math.ceil(SAMPLE_S / once)))
            while spent < warm_up_s:
                spent += seconds(lambda: repeat(call, calls))
            self.samples["call"] = lambda: seconds_of_each(call, calls)
        except Exception as error:
            self.failures["call"] = describe(error)
            return
        try:
            graph = capture(call, calls)
            graph.replay()
            torch.cuda.synchronize()
            self.samples["graph"] = lambda: self.replay(graph) / calls
        except Exception as error:
            self.failures["graph"] = describe(error)

    @staticmethod
    def replay(graph):
        """The second of two in a row, before which nothing is left for the host to do: the
        first also maps memory that another graph has had in the meantime."""
        graph.replay()
        return seconds(graph.replay)

    def sample(self, way):
        try:
            self.times.setdefault(way, []).append(self.samples[way]())
        except Exception as error:
            self.failures[way] = describe(error)
            del self.samples[way]

    def get_row(self):
        """`ms` and `worst_ms` are the graph's, if there is one."""
        row = {f"{way}_failed": message for way, message in self.failures.items()}
        for way in ("call", "graph"):
            times = self.times.get(way, [])[1:]  # The first round does not count.
            if way not in self.failures and times:
                middle, worst = 1e3 * statistics.median(times), 1e3 * max(times)
                row.update({f"{way}_ms": middle, f"{way}_worst_ms": worst, "ms": middle,
                            "worst_ms": worst})
        return row


def measure(calls, rounds, warm_up_s=0):
    """A row for each of the calls, by name; one that failed has no `ms`."""
    contenders = {name: Contender(call, warm_up_s) for name, call in calls.items()}
    for round_ in range(rounds + 1):
        turns = [(contender, way) for contender in contenders.values()
                 for way in contender.samples]
        for contender, way in turns[:: 1 if round_ % 2 else -1]:
            contender.sample(way)
    return {name: contender.get_row() for name, contender in contenders.items()}


def get_ratio(row, other):
    """The ratio of their times; none if one failed. Both by graph, or both by call."""
    for way in ("graph_ms", "call_ms"):
        if way in row and way in other:
            return row[way] / other[way]
    return None


def show_time(row):
    """By graph, and by call where that is another time."""
    if "ms" not in row:
        return "failed"
    text = f"{row['ms']:.3f} ms (worst {row['worst_ms']:.3f})"
    if "graph_ms" not in row:
        return f"{text} by call"
    if "call_ms" in row and abs(row["call_ms"] / row["graph_ms"] - 1) > AGREE:
        text += f", by call {row['call_ms']:.3f}"
    return text


# ===----------------------------------------------------------------------===
# Records
# ===----------------------------------------------------------------------===


def describe_machine():
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        driver = subprocess.run(query, text=True, capture_output=True).stdout.split("\n")[0]
    except OSError:
        driver = ""
    return {"gpu": torch.cuda.get_device_name(), "driver": driver, "torch": torch.__version__,
            "date": datetime.date.today().isoformat(),
            "command": " ".join(["python3", f"benchmarks/{Path(sys.argv[0]).name}",
                                 *sys.argv[1:]])}


def show_machine():
    """What the results begin with."""
    machine = describe_machine()
    print(f"{machine['gpu']}, {machine['driver']}, torch {machine['torch']}, {machine['date']}\n"
          f"$ {machine['command']}\n", flush=True)


def write_record(path, **facts):
    if path:
        path.write_text(json.dumps({**describe_machine(), **facts}, indent=1) + "\n")
