"""Attention of one query to a head beside PyTorch's backends, of random batches and keys: errors against
f32, microseconds of a launch within a CUDA graph, and what keys and values that are read are of a
copy's bandwidth. Caches come in turn, so that none is in L2. Made for a machine that has a GPU,
PyTorch, libfp8rt and the kernels of attention_decode_kernels.py.

usage: attention_decode.py --kernels DIR [--library FILE] [--seed N] [--count N] [--only TEXT] --out FILE
"""

import math
import random
import statistics

import torch
from torch.nn.attention import SDPBackend

from attention import TOLERANCE, load_kernels, make_parser, peer, write_record
from timing import seconds_of_each

PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
# Bytes of keys and values that are read before any are read again, and at most.
ROTATION, MOST = 160 << 20, 24 << 30
ROUNDS = 5


def make(spec, batch, keys):
    def numbers(rows, heads):
        return torch.randn(batch, rows, heads, spec["dim"], device="cuda", dtype=torch.bfloat16)
    return numbers(1, spec["heads"]), numbers(keys, spec["heads_of_k"]), numbers(keys, spec["heads_of_k"])


def check(kernel, batch, keys):
    """The error of the result, of its norm."""
    q, k, v = make(kernel.spec, batch, keys)
    launch, output = kernel.bind(q, k, v)
    for _ in range(2):
        launch()
    expected = peer(SDPBackend.MATH, q.float(), k.float(), v.float(), False)().transpose(1, 2)
    return ((output.float() - expected).norm() / expected.norm()).item()


def record(works):
    """A graph of all of them, one after the other."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for work in works:
            work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = [work() for work in works]
    graph.kept = kept
    return graph


def measure(contenders, copies):
    """Median microseconds of one launch; rounds go forwards and backwards in turn."""
    graphs, times = {}, {}
    for name, works in contenders.items():
        try:
            graphs[name] = record(works)
        except RuntimeError as error:
            print(name, str(error).splitlines()[0], flush=True)
    for name, graph in graphs.items():
        repeats = max(2, int(4e-3 / seconds_of_each(graph.replay, 2)))
        times[name] = (repeats, [])
    for round_ in range(ROUNDS):
        for name in list(graphs)[:: 1 if round_ % 2 else -1]:
            repeats, found = times[name]
            found.append(seconds_of_each(graphs[name].replay, repeats))
    return {name: round(statistics.median(found) / copies * 1e6, 2) for name, (_, found) in times.items()}


def family(spec):
    return spec["dim"], spec["heads"], spec["heads_of_k"]


def measure_family(key, kernels, batch, keys):
    spec = dict(zip(("dim", "heads", "heads_of_k"), key))
    size = 4 * batch * keys * spec["heads_of_k"] * spec["dim"]
    copies = max(2, min(24, math.ceil(ROTATION / size)))
    sets = [make(spec, batch, keys) for _ in range(copies)]
    contenders = {name: [peer(backend, *tensors, False) for tensors in sets] for name, backend in PEERS.items()}
    contenders |= {kernel.name: [kernel.bind(*tensors)[0] for tensors in sets] for kernel in kernels}
    source = torch.zeros(size // 4, dtype=torch.bfloat16, device="cuda")
    targets = [torch.empty_like(source) for _ in range(copies)]
    # Reads and writes as many bytes as keys and values of bf16 have.
    contenders["copy"] = [lambda target=target: torch.abs(source, out=target) for target in targets]
    return {"dim": key[0], "heads": key[1], "heads_of_k": key[2], "batch": batch, "keys": keys, "bytes": size,
            "us": measure(contenders, copies)}


def main():
    args = make_parser().parse_args()
    torch.manual_seed(args.seed)
    rng = random.Random(args.seed)
    kernels = load_kernels(args)
    wrong = {}
    for kernel in kernels:
        for batch, keys in ((1, 1), (3, 777), (1, rng.randint(1000, 30000)), (40, rng.randint(1, 2000))):
            error = check(kernel, batch, keys)
            if not error <= TOLERANCE[kernel.spec["element"]]:
                wrong[f"{kernel.name} {batch}x{keys}"] = error
    print("wrong:", wrong, flush=True)
    rows = []
    for key in sorted({family(kernel.spec) for kernel in kernels}):
        for _ in range(args.count):
            batch = int(2 ** rng.uniform(0, 6.01))
            most = MOST / (16 * batch * key[0] * key[2])
            keys = int(2 ** rng.uniform(10, min(17, math.log2(most))))
            rows.append(measure_family(key, [kernel for kernel in kernels if family(kernel.spec) == key], batch, keys))
            print(rows[-1], flush=True)
            torch.cuda.empty_cache()
    write_record(args.out, kernels, wrong, rows)


if __name__ == "__main__":
    main()
