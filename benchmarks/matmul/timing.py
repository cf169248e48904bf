"""Times of contenders, side by side."""

import math
import statistics

import torch

L2_BYTES = 60 << 20


def moved_bytes(m, n, k, width):
    """By a product of elements of `width` bytes, with a result of 16 bits."""
    return (m * k + n * k) * width + 2 * m * n


def buffer_sets(m, n, k, width):
    """How many problems rotate, so that none finds its operands in L2."""
    return max(2, min(16, math.ceil(2 * L2_BYTES / moved_bytes(m, n, k, width)) + 1))


def launches_per_graph(m, n, k, width, sets):
    """Launches that keep the GPU busy for some 3 ms."""
    floor = max(2.0 * m * n * k * width / 1.4e15, moved_bytes(m, n, k, width) / 4e12, 3e-6)
    return max(sets, min(400, int(3e-3 / floor)))


def graph_of(launches, repeats):
    """A graph of `repeats` launches that rotate."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for launch in launches:
            launch()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeats):
            launches[i % len(launches)]()
    return graph


def measure(contenders, repeats, rounds):
    """Median seconds of one launch of each contender, which `contenders` maps
    to one launch for each set of buffers. Each round times all, forwards or
    backwards in turn, so that all see the same clocks."""
    graphs = {}
    for name, launches in contenders.items():
        try:
            graphs[name] = graph_of(launches, repeats)
        except Exception as error:  # A peer may not take a shape.
            print(f"  {name}: {str(error).splitlines()[0][:120]}", flush=True)
    times = {name: [] for name in graphs}
    for round_ in range(rounds + 1):
        for name in list(graphs)[:: 1 if round_ % 2 else -1]:
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graphs[name].replay()
            end.record()
            end.synchronize()
            if round_:
                times[name].append(start.elapsed_time(end) / repeats * 1e-3)
    return {name: statistics.median(t) for name, t in times.items()}
