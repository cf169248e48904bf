"""When a linear layer is faster in FP8: forward and backward of layers of random sizes, as
CUDA graphs, in bf16 and by `fp8.torch.Linear` under each recipe.

    layer_speed.py --seed 1 --count 60 --out fit.csv      # on a GPU
    layer_speed.py --seed 2 --count 40 --out judge.csv
    layer_speed.py --fit fit.csv --judge judge.csv [--machine FILE]      # anywhere

The last prints the constants that fp8.torch.speed has, by least squares of relative errors in
the first file, and writes them into a machine's file; and judges in the second how often the
faster way is chosen, and what choosing costs: the time of the chosen ways over that of the
faster ones, in the geometric mean and at worst.
"""

import argparse
import math
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1] / "tuning"))

import machine_file  # noqa: E402
import measurements  # noqa: E402

RECIPES = ["delayed", "current", "rowwise", "block"]
MOST_PRODUCTS, MOST_WEIGHTS = 2e12, 1.5e8


def sample(seed, count):
    """(rows, outputs, inputs), log-uniform."""
    rng = np.random.default_rng(seed)
    shapes = []
    while len(shapes) < count:
        rows = 16 * round(2 ** rng.uniform(4, 14) / 16)
        outputs, inputs = (128 * round(2 ** rng.uniform(9, 14) / 128) for _ in range(2))
        if rows * outputs * inputs <= MOST_PRODUCTS and outputs * inputs <= MOST_WEIGHTS:
            shapes.append((rows, outputs, inputs))
    return shapes


#===----------------------------------------------------------------------===#
# On a GPU
#===----------------------------------------------------------------------===#

class Step:
    def __init__(self, shape, recipe):
        import torch
        from torch import nn

        import fp8.torch
        rows, outputs, inputs = shape
        with torch.device("cuda"):
            self.layer = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
            self.x = torch.randn(rows, inputs, dtype=torch.bfloat16, requires_grad=True)
            self.dy = torch.randn(rows, outputs, dtype=torch.bfloat16)
        if recipe is not None:
            fp8.torch.convert_to_fp8_training(self.layer, recipe, first_last_bf16=0,
                                              only_faster=False)

    def __call__(self):
        self.x.grad = self.layer.weight.grad = None
        self.layer(self.x).backward(self.dy)


def capture(step):
    import torch
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            step()
    return graph


def measure(shape):
    """Microseconds of a step by recipe; None for bf16."""
    import timing
    graphs = {}
    for recipe in [None, *RECIPES]:
        graphs[recipe] = capture(Step(shape, recipe))
    times = {recipe: [] for recipe in graphs}
    for _ in range(5):
        for recipe, graph in graphs.items():
            graph.replay()
            times[recipe].append(timing.seconds(graph.replay) * 1e6 / 4)
    return {recipe or "bf16": statistics.median(values) for recipe, values in times.items()}


def precompile(shapes):
    import torch

    from fp8.torch import linear_programs
    torch.cuda.init()

    def compile(job):
        (rows, outputs, inputs), recipe = job
        shape = linear_programs.Shape(rows, inputs, outputs, torch.bfloat16, False)
        linear_programs.compile_shape(shape, recipe, "auto")

    with ThreadPoolExecutor(14) as pool:
        list(pool.map(compile, [(shape, recipe) for shape in shapes for recipe in RECIPES]))


def run(args):
    import torch
    from timing import show_machine
    show_machine()
    shapes = sample(args.seed, args.count)
    precompile(shapes)
    layers = {}
    for shape in shapes:
        times = measure(shape)
        torch.cuda.empty_cache()
        layers[shape] = times
        print(f"{str(shape):>22}" + "".join(f"{name:>9}{time:9.1f}"
                                            for name, time in times.items()), flush=True)
        if args.out:
            measurements.save_layers(args.out, layers)


#===----------------------------------------------------------------------===#
# Models
#===----------------------------------------------------------------------===#

def get_terms(shape):
    """What fp8.torch.speed multiplies its constants with."""
    from fp8.torch import speed
    return speed.get_terms(*shape)


def fit(layers, name):
    """Constants that are not negative, of the least sum of squares of relative errors."""
    terms = np.array([get_terms(shape) for shape in layers])
    times = np.array([us[name] for us in layers.values()])
    a, b = terms / times[:, None], np.ones(len(layers))
    x = np.zeros(a.shape[1])
    for _ in range(20000):
        for i in range(len(x)):
            rest = b - a @ x + a[:, i] * x[i]
            x[i] = max(0.0, a[:, i] @ rest / (a[:, i] @ a[:, i]))
    return x


def judge(layers, models):
    def predict(name, shape):
        return float(np.dot(models[name], get_terms(shape)))

    print(f"{'':>10}{'mean error':>12}{'right':>8}{'regret':>9}{'worst':>8}"
          f"{'always FP8':>12}{'worst':>8}")
    for name in RECIPES:
        errors, regrets, others, right = [], [], [], 0
        for shape, us in layers.items():
            chosen = min(("bf16", name), key=lambda way: predict(way, shape))
            best = min(us["bf16"], us[name])
            right += us[chosen] == best
            regrets.append(us[chosen] / best)
            others.append(us[name] / us["bf16"])
            errors.append(abs(math.log(predict(name, shape) / us[name])))
        mean = statistics.geometric_mean
        print(f"{name:>10}{np.mean(errors):12.3f}{right / len(layers):8.2f}{mean(regrets):9.3f}"
              f"{max(regrets):8.3f}{mean(others):12.3f}{max(others):8.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--fit", type=Path)
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--machine", type=Path, metavar="FILE")
    args = parser.parse_args()
    if args.fit is None:
        return run(args)
    layers = measurements.load_layers(args.fit)
    models = {name: fit(layers, name) for name in ["bf16", *RECIPES]}
    for name, model in models.items():
        print(f'    "{name}": ({", ".join(f"{value:.4g}" for value in model)}),')
    if args.machine:
        machine_file.write_layers(models, args.machine)
    judge(measurements.load_layers(args.judge or args.fit), models)
    return 0


if __name__ == "__main__":
    sys.exit(main())
