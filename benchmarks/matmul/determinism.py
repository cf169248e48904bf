"""Whether a kernel gives the same bits a thousand times, while other work on
another stream disturbs it."""

import torch

from matmul.kinds import KINDS
from matmul.problem import Operands, Problem

SHAPE = (500, 1040, 4112)  # Several tiles, tails in every dimension.
SMALL = (16, 1040, 4112)
RUNS = 1000


class Noise:
    """Products and copies on a stream of its own, of changing extents."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.a = torch.randn(1536, 1536, device="cuda", dtype=torch.bfloat16)
        self.bytes = torch.empty(2, 64 << 20, device="cuda", dtype=torch.uint8)

    def make(self, i):
        with torch.cuda.stream(self.stream):
            size = 128 + i * 131 % 1400
            torch.mm(self.a[:, :size], self.a[:size])
            self.bytes[0, : (i * 7919 % 64) << 20].copy_(
                self.bytes[1, : (i * 7919 % 64) << 20])


def families(kernels):
    """One kernel of each schedule, number of consumers, split, who adds its parts up, and store."""
    kept = {}
    for kernel in kernels:
        key = ("ping_pong" in kernel.config, kernel.launch["block"], kernel.swapped,
               kernel.split > 1, "cluster_k = true" in kernel.config, kernel.stores_in_bulk)
        kept.setdefault(key, kernel)
    return list(kept.values())


def changed_runs(kernel, problem, noise, runs):
    """How many of the runs left other bits, of result or amax, than the first."""
    launch = kernel.bind(problem)
    problem.poison()
    launch()
    first, amax = problem.storage.clone(), problem.amax.clone()
    changed = torch.zeros((), device="cuda", dtype=torch.int32)
    noise.stream.wait_stream(torch.cuda.current_stream())
    for i in range(runs):
        problem.poison()
        if i % 2 == 0:
            noise.make(i)
        launch()
        same = (problem.storage == first).all() & (problem.amax == amax).all()
        changed += ~same
    torch.cuda.synchronize()
    return int(changed)


def run(kernels, runs=RUNS):
    noise, rows = Noise(), []
    for name, list_ in kernels.items():
        for kernel in families(list_):
            shape = SMALL if kernel.swapped else SHAPE
            problem = Problem(KINDS[name], Operands(KINDS[name], *shape))
            if not kernel.fits(problem):
                continue
            changed = changed_runs(kernel, problem, noise, runs)
            rows.append({"kind": name, "config": kernel.label(), "runs": runs,
                         "changed": changed})
            if changed:
                print("FAIL", rows[-1], flush=True)
    print(f"{len(rows)} kernels, {runs} runs each, "
          f"{sum(bool(r['changed']) for r in rows)} kernels with changed bits",
          flush=True)
    return rows
