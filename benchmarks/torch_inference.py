"""Models with quantized weights on a GPU: whether they compute what they should, and how long it
takes.

Checks: linear layers of random sizes, odd ones among them, by `quantize_for_inference` under each
recipe, with and without calibration, beside the same layers in f32. Times: the gated MLP of Llama 3 8B for several numbers of tokens, as CUDA
graphs, in rounds that alternate with PyTorch's bf16, compiled; errors are those of norms from
that. Needs a GPU.

usage: torch_inference.py [--seed 1] [--count 40] [--rounds 3] [--out FILE]
"""

import argparse
import copy
import statistics
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from timing import describe, show_machine, write_record

WIDTH, WIDE = 4096, 14336
TOKENS = 1, 8, 32, 128, 512, 2048, 8192
CALLS, WARM_UP = 20, 5
# With the largest error of norms that roundings explain.
RECIPES = {"current": 0.05, "rowwise": 0.05, "block": 0.05, "mxfp8": 0.05, "nvfp4": 0.2}
STATIC = "current", "nvfp4"


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def sample(seed, count):
    """(rows, inputs, outputs, has_bias)."""
    rng = np.random.default_rng(seed)
    shapes = []
    for _ in range(count):
        rows = int(2 ** rng.uniform(0, 11))
        step = int(rng.choice([16, 128]))
        inputs, outputs = (max(1, int(2 ** rng.uniform(5, 12) / step)) * step for _ in range(2))
        if rng.integers(2):
            outputs += int(rng.integers(8))
        shapes.append((rows, inputs, outputs, bool(rng.integers(2))))
    return shapes


def get_error(value, expected):
    return ((value.float() - expected.float()).norm() / expected.float().norm()).item()


def check(shape, recipe, is_static):
    """The error of a layer beside the same in f32; None for sizes that no recipe's blocks fit."""
    rows, inputs, outputs, has_bias = shape
    torch.manual_seed(0)
    with torch.device("cuda"):
        plain = nn.Linear(inputs, outputs, has_bias).bfloat16()
        x = torch.randn(rows, inputs).bfloat16()
    calibration = [x] if is_static else None
    try:
        model = fp8.torch.quantize_for_inference(nn.Sequential(copy.deepcopy(plain)), recipe,
                                                 calibration)
    except fp8.ArgumentError as error:
        if "is not a multiple of" in str(error):
            return None
        raise
    with torch.no_grad():
        expected = F.linear(x.float(), plain.weight.float(),
                            None if plain.bias is None else plain.bias.float())
        return get_error(model(x), expected)


def run_checks(seed, count):
    rows, failures = [], []
    for recipe, limit in RECIPES.items():
        for is_static in (False, True) if recipe in STATIC else (False,):
            errors = []
            for shape in sample(seed, count):
                try:
                    error = check(shape, recipe, is_static)
                except (fp8.Error, RuntimeError) as failure:
                    failures.append((recipe, is_static, shape, describe(failure)))
                    continue
                if error is None:
                    continue
                errors.append(error)
                # Allow more for few numbers, whose error is not that of a mean.
                if not error <= limit * (1 if shape[0] * shape[2] >= 256 else 3):
                    failures.append((recipe, is_static, shape, error))
            name = f"{recipe}{', static' * is_static}"
            print(f"{name:>20}: {len(errors)} layers, largest error {max(errors, default=0):.4f}",
                  flush=True)
            rows.append({"recipe": name, "layers": len(errors), "error": max(errors, default=0)})
    for failure in failures[:50]:
        print("failed:", *failure)
    return rows, failures


class Replay:
    def __init__(self, function, x):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(stream):
            for _ in range(3):
                function(x)
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            self.y = function(x)

    def measure(self):
        """Median microseconds."""
        for _ in range(WARM_UP):
            self.graph.replay()
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
        for first, last in events:
            first.record()
            self.graph.replay()
            last.record()
        torch.cuda.synchronize()
        return 1e3 * statistics.median(first.elapsed_time(last) for first, last in events)


def run_times(rounds):
    torch.manual_seed(0)
    with torch.device("cuda"):
        plain = MLP().bfloat16()
        calibration = [torch.randn(512, WIDTH).bfloat16()]
    models = {"bf16": torch.compile(copy.deepcopy(plain), dynamic=False)}
    for recipe in ("current", "rowwise", "block"):
        models[recipe] = fp8.torch.quantize_for_inference(copy.deepcopy(plain), recipe)
        models[f"{recipe}, compiled"] = torch.compile(models[recipe], dynamic=False)
    static = fp8.torch.quantize_for_inference(copy.deepcopy(plain), "current", calibration)
    models["current, static"] = static
    models["current, static, compiled"] = torch.compile(static, dynamic=False)
    rows = []
    for tokens in TOKENS:
        x = torch.randn(tokens, WIDTH, device="cuda", dtype=torch.bfloat16)
        replays = {}
        for name, model in models.items():
            try:
                replays[name] = Replay(model, x)
            except (fp8.Error, RuntimeError) as error:
                print(f"{tokens:>6} {name}: {describe(error)}")
        times = {name: [] for name in replays}
        for _ in range(rounds):
            for name, replay in replays.items():
                times[name].append(replay.measure())
        for name, measured in times.items():
            us, reference = statistics.median(measured), statistics.median(times["bf16"])
            error = get_error(replays[name].y, replays["bf16"].y)
            rows.append({"tokens": tokens, "name": name, "us": us, "worst_us": max(measured),
                         "ratio": us / reference, "error": error})
            print(f"{tokens:>6}{name:>28}{us:>10.1f} us{us / reference:>8.3f} of bf16"
                  f"{error:>9.4f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    warnings.simplefilter("ignore")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch._dynamo.config.recompile_limit = 64
    checks, failures = run_checks(args.seed, args.count)
    times = run_times(args.rounds)
    write_record(args.out, seed=args.seed, checks=checks, failures=failures, times=times)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
