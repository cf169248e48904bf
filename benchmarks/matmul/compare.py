"""Our kernels and their peers, timed side by side on each shape."""

import time

import torch

from matmul import peers
from matmul.kinds import KINDS, LAYOUTS
from matmul.problem import DTYPES, Operands, Problem
from matmul.timing import buffer_sets, launches_per_graph, measure

# What is timed in the same rounds: kinds of the same operands, and their peers.
CLASSES = {"tensor": ["tensor_fast", "tensor_promote", "tensor_fast_gelu",
                      "tensor_fast_tanh"],
           "row": ["row_fast"], "block": ["block"],
           **{f"{element}_{layout}": [f"{element}_{layout}"]
              for layout in LAYOUTS for element in ("bf16", "f16")}}
AGREEMENT = 2e-2  # Relative: bf16 results of two accumulators.


def worth_timing(kernel, m):
    """Whether a config may be the best for M."""
    if kernel.swapped:
        return m <= 256 and kernel.number["tile_m"] >= min(m, 128)
    return m > 16 or kernel.number["tile_m"] <= 64


def our_contenders(kind, kernels, problems, chosen, every_config):
    """Launches by KIND/CONFIG, and the name of the one the selection chose."""
    contenders, ours = {}, None
    for kernel in kernels:
        selected = kernel.config == chosen
        wanted = selected or every_config and worth_timing(kernel, problems[0].m)
        if wanted and kernel.fits(problems[0]):
            name = f"{kind}/{kernel.label()}"
            contenders[name] = [kernel.bind(p) for p in problems]
            ours = name if selected else ours
    return contenders, ours


def drop_strangers(contenders, ours, problem):
    """Removes peers whose results differ from ours: they were asked for
    something else."""
    ours[0]()
    expected = problem.result.double()
    for name in [n for n in contenders if n != "bf16"]:
        problem.poison()
        result = contenders[name][0]()
        actual = result if name.startswith("torch") else problem.result
        error = (actual.double() - expected).norm() / expected.norm()
        if not error < AGREEMENT:
            print(f"  {name} differs from ours by {error:.1e}: left out", flush=True)
            del contenders[name]


def time_class(name, shape, kernels, selected, rounds, every_config):
    m, n, k, label = shape
    kinds = [kind for kind in CLASSES[name] if kind in kernels]
    width = DTYPES[KINDS[kinds[0]]["a"]].itemsize
    sets = buffer_sets(m, n, k, width)
    repeats = launches_per_graph(m, n, k, width, sets)
    operands = [Operands(KINDS[kinds[0]], m, n, k, seed) for seed in range(sets)]
    contenders, ours = {}, {}
    for kind in kinds:
        problems = [Problem(KINDS[kind], o) for o in operands]
        if kind == kinds[0]:
            compared = problems
        made, ours[kind] = our_contenders(
            kind, kernels[kind], problems, selected[kind].get(f"{m}x{n}x{k}"),
            every_config)
        contenders.update(made)
    if not contenders:
        return None
    others, tried = peers.of_class(name, compared, repeats)
    if ours[kinds[0]]:
        drop_strangers(others, contenders[ours[kinds[0]]], compared[0])
    times = measure({**contenders, **others}, repeats, rounds)
    return {"shape": label, "m": m, "n": n, "k": k, "class": name, "ours": ours,
            "microseconds": {name: t * 1e6 for name, t in times.items()},
            "proposals": tried}


def run(kernels, shapes, selected, classes, rounds, every_config, seconds):
    """Rows of as many shapes as `seconds` suffice for."""
    rows, end = [], time.monotonic() + seconds
    for shape in shapes:
        if time.monotonic() > end:
            print(f"no time was left for {shape[3]} and what follows", flush=True)
            break
        for name in classes:
            if not any(kind in kernels for kind in CLASSES[name]):
                continue
            row = time_class(name, shape, kernels, selected, rounds, every_config)
            rows += [row] if row else []
            torch.cuda.empty_cache()
        print(shape[3], flush=True)
    return rows
