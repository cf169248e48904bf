"""MLPs and linear layers of transformers, forward and backward, beside PyTorch in bf16.

The programs of layers.py, under each recipe. PyTorch runs eagerly and under torch.compile.
All take the same tensors in the same run, call by call and as a CUDA graph, in rounds that
alternate; the time that counts, and what it is divided by, is the graph's. Errors are those
of every result from the same in f32: PyTorch's own show what bf16 costs. A profile times
each kernel of a step alone.

usage: mlp.py [--build-dir build] [--programs DIR] [--compile-only] [--rounds N]
              [--functions NAME,... | --random SEED] [--recipes NAME,...] [--out FILE]

`--compile-only` makes programs in DIR, for a machine without the compiler. `--random` takes
20 sets of projections and 10 gated MLPs of random extents in place of layers.
"""

import json
import math
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

import layer_peers
from device import Call, Gpu
from layers import (MAPS, gelu_mlp_step, linear_step, norm_mlp_step, projections_forward,
                    swiglu_forward)
from programs import (Program, compile_program, list_work, make_parser, make_programs,
                      open_library, sizes)
from timing import (describe, get_ratio, measure, repeat, show_machine, show_time, torch,
                    write_record)

# `fast_fprop` is what Transformer Engine does unless it is told otherwise.
RECIPES = {
    "none": "none", "current": "current", "delayed": "delayed", "rowwise": "rowwise", "block": "block",
    "mxfp8": "mxfp8", "nvfp4": "nvfp4",
    "delayed_fast": "delayed,accumulate=fast_fprop",
}
BY_TENSOR = ("current", "delayed", "delayed_fast")
# E2M1 has two bits fewer of a number than E4M3, so four times the error.
COARSER = {"nvfp4": 4}
PEERS = ("eager", "compiled")


@dataclass(frozen=True)
class Layer:
    write: Callable
    extents: tuple
    forward: Callable  # PyTorch's.
    goals: dict  # Milliseconds by recipe.
    max_error: float  # The norms of results under recipes of E4M3 have no more; see `is_correct`.


def projections(*extents):
    return Layer(projections_forward, extents, layer_peers.projections, {}, 0.1)


LAYERS = {
    "mlp": Layer(swiglu_forward, (8192, 14336, 4096), layer_peers.mlp,
                 dict.fromkeys(BY_TENSOR, 2.5), 0.1),
    "mlp_step": Layer(norm_mlp_step, (8192, 14336, 4096), layer_peers.norm_mlp,
                      {"delayed": 7.3, "delayed_fast": 7.3, "block": 8.5}, 0.12),
    "linear": Layer(linear_step, (8192, 4096, 4096), layer_peers.linear,
                    dict.fromkeys(BY_TENSOR, 0.72), 0.1),
    "linear_wide": Layer(linear_step, (8192, 28672, 4096), layer_peers.linear,
                         dict.fromkeys(BY_TENSOR, 4.6), 0.1),
    "small": Layer(gelu_mlp_step, (32, 3072, 768), layer_peers.gelu_mlp,
                   dict.fromkeys(RECIPES, 0.1), 0.12),
    # While serving: a prompt, and a batch of sequences that get a token each.
    "projections": projections(1000, 4096, {"q": 4096, "k": 1024, "v": 1024}),
    "projections_decode": projections(24, 4096, {"q": 4096, "k": 1024, "v": 1024}),
    "mlp_decode": Layer(swiglu_forward, (24, 14336, 4096), layer_peers.mlp, {}, 0.1),
}


def make_random_layers(seed, count=20, gated=10):
    """Two to four projections of one tensor, of equal widths or not; and gated MLPs."""
    draw = random.Random(seed)
    layers = {}
    while len(layers) < count:
        m = 8 * int(2 ** draw.uniform(0, 9.5))
        k = draw.choice([1024, 2048, 3072, 4096, 5120, 8192])
        widths = [64 * draw.randint(4, 96) for _ in range(draw.choice([2, 3, 4]))]
        if draw.random() < 0.5:
            widths = widths[:1] * len(widths)
        name = "_".join(map(str, ["random", m, k, *widths]))
        layers[name] = projections(m, k, {f"p{i}": n for i, n in enumerate(widths)})
    while len(layers) < count + gated:
        m, n = 8 * int(2 ** draw.uniform(0, 10)), 64 * draw.randint(8, 256)
        k = draw.choice([1024, 2048, 3072, 4096, 5120, 8192])
        layers[f"gated_{m}_{n}_{k}"] = Layer(swiglu_forward, (m, n, k), layer_peers.mlp, {}, 0.1)
    return layers


# What `none` may take for the MLP, by PyTorch's eager time.
NONE_GOAL = 1.15
# Errors beside PyTorch's in bf16; the greatest of a few elements varies.
SLACK, MAX_SLACK = 1.25, 1.5
WARM_UP_S = 0.3
PROFILED = 5


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


def compile_layer(build, folder, name, recipe):
    """What the program launches; none if there is no program."""
    source = folder / f"{name}.mlir"
    source.write_text(MAPS + LAYERS[name].write(name, *LAYERS[name].extents))
    options = ("--target=sm_90a", f"--recipe={RECIPES[recipe]}")
    start = time.monotonic()
    try:
        compile_program(build, source, folder / f"{name}_{recipe}.so", *options)
    except subprocess.CalledProcessError as error:
        print(f"{name} {recipe}: {describe(error)}", flush=True)
        return None
    spent = time.monotonic() - start
    work = list_work(build, source, *options)[name]
    print(f"{name} {recipe}: compiled in {spent:.2f} s, {len(work)} launches", flush=True)
    return work


def compile_programs(args, folder):
    work = {name: {recipe: compile_layer(args.build_dir, folder, name, recipe)
                   for recipe in args.recipes} for name in args.functions}
    (folder / "mlp.json").write_text(json.dumps(work, indent=1) + "\n")
    for name in {"mlp", "linear", "linear_wide"} & set(args.functions):
        launches = work[name].get("none")
        if launches and (len(launches) > 3 or
                         not all(launch.startswith("fp8_matmul") for launch in launches)):
            sys.exit(f"error: expected {name} under none to be at most three matmuls, but got "
                     f"{', '.join(launches)}")


# ===----------------------------------------------------------------------===
# Runs
# ===----------------------------------------------------------------------===


def is_correct(recipe, errors, eager, max_error):
    """In bf16 errors are PyTorch's; in FP8 and FP4 that of the norm is what the recipe's
    roundings make it. Not the other way round: what is not a number is no error less."""
    if recipe != "none":
        most = max_error * COARSER.get(recipe, 1)
        return all(error["norm"] <= most for error in errors.values())
    return all(error["norm"] <= SLACK * eager[name]["norm"] and
               error["max"] <= MAX_SLACK * eager[name]["max"]
               for name, error in errors.items())


def read_results(call):
    repeat(call, 3)  # After these delayed scaling knows the amaxes.
    names = [info.name.decode() for info in call.function.results]
    return {name: bits.view(torch.bfloat16) for name, bits in zip(names, call.read())}


def examine(call, recipe, exact, eager, max_error):
    """What is known of a program but its time."""
    try:
        errors = layer_peers.get_errors(read_results(call), exact)
        return {"correct": is_correct(recipe, errors, eager, max_error), "errors": errors,
                "eager_errors": eager, "profile": call.profile(PROFILED)}
    except Exception as error:
        return {"correct": False, "failed": describe(error)}


def examine_all(layer, calls, values, recipes):
    """A row for each recipe, without times."""
    exact = layer_peers.run_exactly(layer.forward, values)
    eager = layer_peers.get_errors(layer_peers.run_step(layer.forward, values), exact)
    return {recipe: examine(calls[recipe], recipe, exact, eager, layer.max_error)
            if recipe in calls else {"correct": False, "failed": "there is no program"}
            for recipe in recipes}


def measure_all(layer, calls, values, rounds):
    """Beside PyTorch's, in the same rounds."""
    compiled = layer_peers.compile_forward(layer.forward)
    return measure({**calls, "eager": lambda: layer_peers.run_step(layer.forward, values),
                    "compiled": lambda: layer_peers.run_step(compiled, values)},
                   rounds, WARM_UP_S)


def run_layer(gpu, folder, name, work, args):
    programs = {recipe: Program(gpu.library, folder / f"{name}_{recipe}.so")
                for recipe in args.recipes if work.get(recipe)}
    if not programs:
        raise ValueError(f"expected programs in {folder}, but got none")
    functions = {recipe: program.functions[name] for recipe, program in programs.items()}
    infos = next(iter(functions.values())).arguments
    torch.manual_seed(1)
    values = layer_peers.make_values({info.name.decode(): sizes(info) for info in infos})
    calls = {recipe: Call(gpu, function, list(values.values()))
             for recipe, function in functions.items()}
    rows = examine_all(LAYERS[name], calls, values, args.recipes)
    times = measure_all(LAYERS[name], calls, values, args.rounds)
    peers = {peer: times[peer] for peer in PEERS}
    show_peers(name, peers)
    for recipe, row in rows.items():
        row.update(function=name, recipe=RECIPES[recipe], work=work.get(recipe),
                   times=times.get(recipe, {}), peers=peers)
        judge(name, recipe, row)
        show(row)
    return list(rows.values())


def judge(name, recipe, row):
    ours = row["times"]
    row.update(ms=ours.get("ms"), worst_ms=ours.get("worst_ms"), goal=None, met=None,
               ratios={peer: get_ratio(ours, theirs) for peer, theirs in row["peers"].items()})
    if (name, recipe) == ("mlp", "none"):
        if row["peers"]["eager"].get("ms"):
            row["goal"] = NONE_GOAL * row["peers"]["eager"]["ms"]
    else:
        row["goal"] = LAYERS[name].goals.get(recipe)
    if row["goal"]:
        row["met"] = row["ms"] is not None and row["ms"] <= row["goal"]


# ===----------------------------------------------------------------------===
# What is printed
# ===----------------------------------------------------------------------===


def show_failures(who, times):
    for key, message in times.items():
        if key.endswith("_failed"):
            print(f"  {who} by {key.removesuffix('_failed')} failed: {message}")


def show_peers(name, peers):
    print(f"{name}: " + ", ".join(f"{peer} {show_time(times)}" for peer, times in peers.items()))
    for peer, times in peers.items():
        show_failures(peer, times)


def show(row):
    print(f"{row['function']} {row['recipe']}: {show_time(row['times'])}"
          f"{'' if row['correct'] else '   WRONG'}")
    show_failures("ours", row["times"])
    if "failed" in row:
        print(f"  failed: {row['failed']}", flush=True)
        return
    for name, found in row["errors"].items():
        eager = row["eager_errors"][name]
        print(f"  {name}: error of the norm {found['norm']:.2e} (eager {eager['norm']:.2e}), "
              f"greatest {found['max']:.2e} ({eager['max']:.2e})")
    total = sum(entry["ms"] for entry in row["profile"])
    print(f"  {sum(entry['launches'] for entry in row['profile']):.0f} launches, one by one "
          f"{total:.3f} ms:")
    for entry in row["profile"]:
        print(f"  {1e3 * entry['ms']:9.1f} us  {entry['launches']:3.0f} x {entry['name']}")
    sys.stdout.flush()


def show_table(rows):
    def cell(value, digits):
        return "" if value is None else f"{value:.{digits}f}"

    print(f"\n{'function':40} {'recipe':30} {'ms':>7} {'worst':>7} {'by call':>7} {'eager':>7} "
          f"{'compile':>7} {'/eager':>7} {'/compile':>8} {'goal':>6}")
    for row in rows:
        peers, ratios = row["peers"], row["ratios"]
        met = {None: "", True: "met", False: "missed"}[row["met"]]
        print(f"{row['function']:40} {row['recipe']:30} {cell(row['ms'], 3):>7} "
              f"{cell(row['worst_ms'], 3):>7} {cell(row['times'].get('call_ms'), 3):>7} "
              f"{cell(peers['eager'].get('ms'), 3):>7} "
              f"{cell(peers['compiled'].get('ms'), 3):>7} {cell(ratios['eager'], 3):>7} "
              f"{cell(ratios['compiled'], 3):>8} {cell(row['goal'], 2):>6} {met}"
              f"{'' if row['correct'] else ' WRONG'}")
    sys.stdout.flush()


def show_middle(rows):
    """The geometric mean and the worst of ratios to PyTorch's eager time, by recipe."""
    for recipe in dict.fromkeys(row["recipe"] for row in rows):
        ratios = {row["function"]: row["ratios"]["eager"] for row in rows
                  if row["recipe"] == recipe and row["ratios"]["eager"]}
        if ratios:
            mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
            worst = max(ratios, key=ratios.get)
            print(f"{recipe}: {mean:.3f} of eager in the geometric mean of {len(ratios)}, "
                  f"at most {ratios[worst]:.3f} ({worst})")


def parse_arguments():
    parser = make_parser(rounds=12)
    parser.add_argument("--random", type=int, metavar="SEED")
    if (seed := parser.parse_known_args()[0].random) is not None:
        LAYERS.clear()
        LAYERS.update(make_random_layers(seed))
    for option, known in (("functions", LAYERS), ("recipes", RECIPES)):
        parser.add_argument(f"--{option}", type=lambda text: text.split(","),
                            default=list(known), help=", ".join(known))
    args = parser.parse_args()
    for option, known in (("functions", LAYERS), ("recipes", RECIPES)):
        for name in getattr(args, option):
            if name not in known:
                parser.error(f"expected one of {', '.join(known)} for --{option}, "
                             f"but got {name}")
    return args


def main():
    args = parse_arguments()
    folder = make_programs(args, lambda folder: compile_programs(args, folder))
    if not folder:
        return 0
    show_machine()
    library, rows, failed = open_library(args.build_dir, folder), [], {}
    work = json.loads((folder / "mlp.json").read_text())
    with torch.cuda.stream(torch.cuda.Stream()):
        gpu = Gpu(library)
        for name in args.functions:
            try:
                rows += run_layer(gpu, folder, name, work.get(name, {}), args)
            except Exception as error:
                failed[name] = describe(error)
                print(f"{name} failed: {failed[name]}", flush=True)
    show_table(rows)
    if args.random is not None:
        show_middle(rows)
    write_record(args.out, rounds=args.rounds, failed=failed, rows=rows)
    return 1 if failed or any(not row["correct"] or row["met"] is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
