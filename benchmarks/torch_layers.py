"""Layers as modules of PyTorch, forward and backward, in FP8 and beside others.

A linear layer of Llama 3 8B's sizes and a wide one, the SwiGLU MLP with RMSNorm, a transformer
layer of that model (its attention is PyTorch's, but for ways with `dpa` or `attention`), and a small MLP of batch 32: by `Linear` layers, in eager mode and within torch.compile, and by torch.compile's backend (if
torch-mlir is there), beside PyTorch in bf16, eager and compiled, and torchao's tensorwise and
row-wise training (if it is there). Every run is from the same tensors, in rounds that
alternate, called from Python and as a CUDA graph, which leaves the host's time out; errors are
those of norms, from eager's results; peaks are of PyTorch's allocator, above what parameters,
arguments and their gradients take. Needs a GPU.

usage: torch_layers.py [--only NAMES] [--ways NAMES] [--batches] [--accumulate] [--rounds N]
       [--out FILE]

--batches gives x as [4, 2048, width] in place of [8192, width]; --accumulate measures the calls
behind the first one of a step, for ways that quantize weights once in it.
"""

import argparse
import copy
import functools
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import fp8.torch
from timing import show_machine, write_record

TOKENS, WIDTH, WIDE, HEADS, GROUPS = 8192, 4096, 14336, 32, 8
CALLS, WARM_UP = 20, 5
MAX_ERROR, MAX_ERROR_FP8 = 0.02, 0.15


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return self.down(F.silu(self.gate(y)) * self.up(y))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH)
        head = WIDTH // HEADS
        self.q, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, GROUPS * head, bias=False) for _ in range(2))

    def forward(self, x):
        y = self.norm(x)

        def split(z):
            return z.view(2, TOKENS // 2, -1, WIDTH // HEADS).transpose(1, 2)

        z = F.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)),
                                           is_causal=True, enable_gqa=True)
        return self.out(z.transpose(1, 2).reshape(x.shape))


class TransformerLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.mlp = Attention(), MLP()

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.mlp(x)


WORKLOADS = {
    "linear": (lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH, bias=False)), TOKENS, WIDTH),
    "linear_wide": (lambda: nn.Sequential(nn.Linear(WIDTH, 28672, bias=False)), TOKENS, WIDTH),
    "mlp": (MLP, TOKENS, WIDTH),
    "layer": (TransformerLayer, TOKENS, WIDTH),
    "small": (lambda: nn.Sequential(nn.Linear(768, 3072), nn.GELU(approximate="tanh"),
                                    nn.Linear(3072, 768)), 32, 768),
}


def convert(recipe, model, **options):
    options = {"only_faster": False, **options}
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, **options)


def convert_torchao(recipe, model):
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    return convert_to_float8_training(
        model, config=Float8LinearConfig.from_recipe_name(recipe))


def use_backend(recipe, model, **options):
    backend = fp8.torch.Backend(recipe, only_faster=False, **options)
    function = torch.compile(model, backend=backend)
    function.backend = backend
    return function


# What makes of a model what is measured.
WAYS = {
    "eager": lambda model: model,
    "compiled": torch.compile,
    "torchao tensorwise": lambda model: torch.compile(convert_torchao("tensorwise", model)),
    "torchao rowwise": lambda model: torch.compile(convert_torchao("rowwise", model)),
    "layers delayed": functools.partial(convert, "delayed"),
    "layers delayed, compiled": lambda model: torch.compile(convert("delayed", model)),
    "only faster, compiled": lambda model: torch.compile(
        convert("delayed", model, only_faster=True)),
    "layers delayed fast, compiled": lambda model: torch.compile(
        convert("delayed,accumulate=fast_fprop", model)),
    "layers rowwise, compiled": lambda model: torch.compile(convert("rowwise", model)),
    "layers dpa, compiled": lambda model: torch.compile(
        convert(fp8.DelayedScaling(fp8_dpa=True), model)),
    "layers dpa fast, compiled": lambda model: torch.compile(
        convert(fp8.DelayedScaling(accumulate="fast_fprop", fp8_dpa=True), model)),
    "layers dpa fast": lambda model: convert(fp8.DelayedScaling(accumulate="fast_fprop", fp8_dpa=True), model),
    "layers mha fast": lambda model: convert(fp8.DelayedScaling(accumulate="fast_fprop", fp8_mha=True), model),
    "backend delayed": functools.partial(use_backend, "delayed"),
    "backend delayed fast": functools.partial(use_backend, "delayed,accumulate=fast_fprop"),
    "backend dpa": functools.partial(use_backend, fp8.DelayedScaling(fp8_dpa=True)),
    "backend dpa fast": functools.partial(
        use_backend, fp8.DelayedScaling(accumulate="fast_fprop", fp8_dpa=True)),
    "backend attention, fast": functools.partial(
        use_backend, "delayed,accumulate=fast_fprop", attention="fp8"),
    "backend delayed, cached": functools.partial(use_backend, "delayed", cache_weights=True),
    "backend current": functools.partial(use_backend, "current"),
    "backend rowwise": functools.partial(use_backend, "rowwise"),
    "backend rowwise fast": functools.partial(use_backend, "rowwise,accumulate=fast_fprop"),
}


class Run:
    """Steps of a model: its result and all gradients."""

    def __init__(self, model, function, x, dy):
        self.model, self.function, self.dy = model, function, dy
        self.x = x.clone().requires_grad_()
        self.graph, self.failure = None, ""

    def __call__(self):
        for value in (self.x, *self.model.parameters()):
            value.grad = None
        self.y = self.function(self.x)
        self.y.backward(self.dy)

    def capture(self):
        # What accumulates gradients belongs to the stream of the call that first needed it.
        self.y = None
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self()
        torch.cuda.current_stream().wait_stream(stream)
        self.y = None
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self()
        self.graph = graph

    def get_values(self):
        return {"y": self.y.detach(), "x": self.x.grad,
                **{name: value.grad for name, value in self.model.named_parameters()}}

    def get_peak(self):
        """MB above what is there before and after a step."""
        self()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        self()
        torch.cuda.synchronize()
        return (torch.cuda.max_memory_allocated() - before) / 1e6

    def get_error(self, expected):
        """The largest of all values."""
        values = self.get_values()
        return max(((values[key].float() - expected[key].float()).norm()
                    / expected[key].float().norm()).item() for key in expected)


def measure(call):
    """The median milliseconds of a step on the GPU, and those of the host."""
    for _ in range(WARM_UP):
        call()
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
    torch.cuda.synchronize()
    start = time.perf_counter()
    for first, last in events:
        first.record()
        call()
        last.record()
    host = 1e3 * (time.perf_counter() - start) / CALLS
    torch.cuda.synchronize()
    return statistics.median(first.elapsed_time(last) for first, last in events), host


def describe(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def make_runs(model, x, dy, ways, accumulates):
    runs, failures = {}, {}
    for name in ways:
        own = copy.deepcopy(model)
        try:
            run = Run(own, WAYS[name](own), x, dy)
            run(), run()  # After these delayed scaling knows the amaxes.
            if accumulates:
                fp8.torch.accumulate(getattr(run.function, "backend", own))
            runs[name] = run
        except Exception as error:  # A peer that is not there, or cannot.
            failures[name] = describe(error)
    return runs, failures


def benchmark(workload, ways, rounds, batches=False, accumulates=False):
    make, tokens, width = WORKLOADS[workload]
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = make().bfloat16()
        x = torch.randn(tokens, width, dtype=torch.bfloat16)
        if batches:
            x = x.view(4, tokens // 4, width)
        dy = torch.randn_like(model(x)).detach()
    runs, failures = make_runs(model, x, dy, ways, accumulates)
    expected = {name: value.clone() for name, value in runs["eager"].get_values().items()}
    errors = {name: run.get_error(expected) for name, run in runs.items()}
    peaks = {name: run.get_peak() for name, run in runs.items()}
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(measure(run))
    replays = {name: [] for name in runs}
    for name, run in runs.items():
        try:
            run.capture()
        except Exception as error:
            failures[f"{name}, captured"] = describe(error)
    for _ in range(rounds):
        for name, run in runs.items():
            if run.graph:
                replays[name].append(measure(run.graph.replay)[0])
    is_correct = True
    for name, run in runs.items():
        if run.graph:
            run.graph.replay()
            errors[name] = max(errors[name], run.get_error(expected))
        limit = MAX_ERROR if name in ("eager", "compiled") else MAX_ERROR_FP8
        is_correct &= errors[name] <= limit
    rows = []
    reference = statistics.median(ms for ms, _ in times["compiled"])
    reference_graph = statistics.median(replays["compiled"] or [float("nan")])
    print(f"{workload:>26}{'ms':>9}{'worst':>9}{'host':>8}{'/compiled':>11}{'graph':>9}"
          f"{'/compiled':>11}{'peak MB':>9}{'largest error':>15}")
    for name, measured in times.items():
        ms, worst = (f([t for t, _ in measured]) for f in (statistics.median, max))
        host = statistics.median(h for _, h in measured)
        graph = statistics.median(replays[name]) if replays[name] else None
        rows.append({"workload": workload, "name": name, "ms": ms, "worst_ms": worst,
                     "host_ms": host, "ratio": ms / reference, "graph_ms": graph,
                     "peak_mb": peaks[name], "error": errors[name]})
        print(f"{name:>26}{ms:>9.3f}{worst:>9.3f}{host:>8.3f}{ms / reference:>11.3f}"
              + (f"{graph:>9.3f}{graph / reference_graph:>11.3f}" if graph else f"{'-':>9}{'-':>11}")
              + f"{peaks[name]:>9.0f}{errors[name]:>15.4f}", flush=True)
    for name, reason in failures.items():
        print(f"{name:>26}  {reason[:300]}")
        rows.append({"workload": workload, "name": name, "failure": reason})
    return rows, is_correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--batches", action="store_true")
    parser.add_argument("--accumulate", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    warnings.simplefilter("ignore")
    # Each way is another backend for the same code.
    torch._dynamo.config.recompile_limit = 64
    rows, is_correct = [], True
    for workload in args.only:
        made, are_right = benchmark(workload, dict.fromkeys(["eager", "compiled", *args.ways]),
                                    args.rounds, args.batches, args.accumulate)
        rows += made
        is_correct &= are_right
        write_record(args.out, rounds=args.rounds, rows=rows)
    return 0 if is_correct else 1


if __name__ == "__main__":
    sys.exit(main())
