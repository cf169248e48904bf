"""Whether linear layers of any size compute what they should on a GPU. Layers of random sizes,
odd ones among them, dtypes and biases, forward and backward by `fp8.torch.Linear` under each
recipe, beside PyTorch's products in f32 of the same tensors. A wrong tile, tail or factor is an
error of the order of 1, or NaN; roundings are some hundredths.

usage: layer_checks.py [--seed 1] [--count 60] [--cache-weights] [--out FILE]
"""

import argparse
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import linear_programs
from timing import describe, show_machine, write_record

# With the largest error of norms that roundings explain.
RECIPES = {"none": 0.005, "delayed": 0.08, "current": 0.08, "current,accumulate=fast": 0.08,
           "rowwise": 0.08, "rowwise,pow2=false": 0.08, "block": 0.08, "mxfp8": 0.08,
           "nvfp4": 0.25}
DTYPES = [torch.bfloat16, torch.bfloat16, torch.float16, torch.float32]


def sample(seed, count):
    """(rows, inputs, outputs, dtype, has_bias)."""
    rng = np.random.default_rng(seed)
    shapes = []
    for _ in range(count):
        step = rng.choice([1, 8, 16, 128])
        sizes = [max(1, int(2 ** rng.uniform(0, 12.5) / step)) * int(step) for _ in range(3)]
        shapes.append((*sizes, DTYPES[rng.integers(len(DTYPES))], bool(rng.integers(2))))
    return shapes


def compile_all(jobs, caches_weight):
    def compile(job):
        sizes, recipe = job
        shape = linear_programs.Shape(*sizes, caches_weight)
        try:
            linear_programs.compile_shape(shape, recipe, "auto")
        except fp8.Error:
            pass  # It is said below.

    torch.cuda.init()
    with ThreadPoolExecutor(14) as pool:
        list(pool.map(compile, jobs))


def get_values(layer, x, dy):
    y = layer(x)
    values = torch.autograd.grad(y, [x, *layer.parameters()], dy)
    return {"y": y.detach(), "dx": values[0],
            **{f"d{name}": value for (name, _), value in zip(layer.named_parameters(), values[1:])}}


def check(shape, recipe, caches_weight):
    """The largest error of norms of a second step, when delayed scaling knows the amaxes."""
    rows, inputs, outputs, dtype, has_bias = shape
    torch.manual_seed(0)
    with torch.device("cuda"):
        exact = nn.Linear(inputs, outputs, has_bias).to(dtype)
        x = torch.randn(rows, inputs).to(dtype).requires_grad_()
        dy = torch.randn(rows, outputs).to(dtype)
    layer = fp8.torch.Linear(inputs, outputs, has_bias, "cuda", dtype, recipe=recipe,
                             cache_weights=caches_weight)
    layer.load_state_dict(exact.state_dict())
    expected = get_values(exact.float(), x.detach().float().requires_grad_(), dy.float())
    for _ in range(2):
        values = get_values(layer, x, dy)
    errors = {}
    for name, value in values.items():
        norm = expected[name].norm().item()
        errors[name] = (value.float() - expected[name]).norm().item() / max(norm, 1e-30)
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--cache-weights", action="store_true")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    torch.backends.cuda.matmul.allow_tf32 = False
    jobs = list(itertools.product(sample(args.seed, args.count), RECIPES))
    compile_all(jobs, args.cache_weights)
    failures, worst = [], dict.fromkeys(RECIPES, 0.0)
    for shape, recipe in jobs:
        try:
            errors = check(shape, recipe, args.cache_weights)
        except (fp8.Error, RuntimeError) as error:
            failures.append((str(shape), recipe, describe(error)))
            if isinstance(error, fp8.DeviceError) or "CUDA" in str(error):
                break  # The GPU is lost to this process.
            continue
        error = max(errors.values())
        # Allow more for a single number, or a few, whose error is not that of a mean.
        limit = RECIPES[recipe] if min(shape[:3]) >= 16 else 4 * RECIPES[recipe] + 0.1
        if not error <= limit:
            failures.append((str(shape), recipe, str(errors)))
        elif min(shape[:3]) >= 16:
            worst[recipe] = max(worst[recipe], error)
    print(f"{len(jobs)} layers, {len(failures)} failures")
    for recipe, error in worst.items():
        print(f"{recipe:>26}{error:9.4f}")
    for failure in failures[:50]:
        print(*failure)
    write_record(args.out, seed=args.seed, count=len(jobs), caches_weights=args.cache_weights,
                 failures=failures, worst=worst)
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
