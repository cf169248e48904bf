"""A module of PyTorch, forward and backward, by the backend of torch.compile.

The SwiGLU MLP of Llama 3 8B with RMSNorm, 8192 tokens, bf16, under each recipe, beside
PyTorch's eager mode and its own compiler. Every run is from the same tensors, in rounds that
alternate; errors are those of norms, from eager's results. Needs a GPU and torch-mlir.

usage: torch_mlp.py [--rounds N] [--out FILE]
"""

import argparse
import copy
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

import fp8
import fp8.torch
from timing import show_machine, write_record

TOKENS, WIDTH, WIDE = 8192, 4096, 14336
RECIPES = {"none": None, "current": "current", "delayed": "delayed",
           "delayed_fast": "delayed,accumulate=fast_fprop", "rowwise": "rowwise"}
CALLS, WARM_UP = 20, 5
MAX_ERROR = {"none": 0.01}
MAX_ERROR_FP8 = 0.12


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Run:
    """Steps of a module: its result and all gradients."""

    def __init__(self, module, function, x, dy):
        self.module, self.function, self.dy = module, function, dy
        self.x = x.clone().requires_grad_()

    def __call__(self):
        for value in (self.x, *self.module.parameters()):
            value.grad = None
        y = self.function(self.x)
        y.backward(self.dy)
        return y

    def get_values(self):
        y = self().detach()
        return {"y": y, "x": self.x.grad,
                **{name: value.grad for name, value in self.module.named_parameters()}}


def get_error(value, expected):
    return ((value.float() - expected.float()).norm() / expected.float().norm()).item()


def measure(run):
    """The median milliseconds of a step on the GPU, and those of the host."""
    for _ in range(WARM_UP):
        run()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
    torch.cuda.synchronize()
    start = time.perf_counter()
    for first, last in events:
        first.record()
        run()
        last.record()
    host = 1e3 * (time.perf_counter() - start) / CALLS
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in events), host


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    torch.manual_seed(0)
    with torch.device("cuda"):
        module = MLP().bfloat16()
        x, dy = (torch.randn(TOKENS, WIDTH, dtype=torch.bfloat16) for _ in range(2))
    runs = {"eager": Run(module, module, x, dy),
            "compiled": Run(module, torch.compile(module), x, dy)}
    expected = {name: value.clone() for name, value in runs["eager"].get_values().items()}
    errors, is_correct = {}, True
    for name, recipe in RECIPES.items():
        own = copy.deepcopy(module)
        run = runs[name] = Run(own, torch.compile(own, backend=fp8.torch.Backend(recipe)), x, dy)
        run(), run()  # After these delayed scaling knows the amaxes.
        values = run.get_values()
        errors[name] = {key: get_error(values[key], expected[key]) for key in expected}
        is_correct &= max(errors[name].values()) <= MAX_ERROR.get(name, MAX_ERROR_FP8)
    times = {name: [] for name in runs}
    for _ in range(args.rounds):
        for name, run in runs.items():
            times[name].append(measure(run))
    rows = []
    print(f"{'':>14}{'ms':>9}{'worst':>9}{'host':>8}{'/compiled':>11}{'largest error':>15}")
    reference = statistics.median(ms for ms, _ in times["compiled"])
    for name, measured in times.items():
        ms, worst = statistics.median(t for t, _ in measured), max(t for t, _ in measured)
        host = statistics.median(h for _, h in measured)
        error = max(errors[name].values()) if name in errors else None
        rows.append({"name": name, "ms": ms, "worst_ms": worst, "host_ms": host,
                     "ratio": ms / reference, "errors": errors.get(name)})
        print(f"{name:>14}{ms:>9.3f}{worst:>9.3f}{host:>8.3f}{ms / reference:>11.3f}"
              + (f"{error:>15.4f}" if error is not None else ""))
    write_record(args.out, rounds=args.rounds, rows=rows)
    return 0 if is_correct else 1


if __name__ == "__main__":
    sys.exit(main())
