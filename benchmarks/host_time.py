"""What the host takes of linear layers that are too small for a GPU to notice: microseconds of
forward and backward of one layer, by the difference between models of 17 and of one. In eager
mode, by torch.compile, and of inference; beside PyTorch's in bf16. Needs a GPU.

usage: host_time.py [--out FILE]
"""

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import nn

import fp8
import fp8.torch
from timing import show_machine, write_record

WIDTH, LAYERS, CALLS, ROUNDS = 256, 17, 20, 15
RECIPES = "delayed", "current", "rowwise"


def make_model(kind, recipe, count):
    model = nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(count))).cuda().bfloat16()
    if recipe and kind == "inference":
        model = fp8.torch.quantize_for_inference(model.eval(), recipe)
    elif recipe:
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False)
    return torch.compile(model) if kind == "compiled" else model


def measure(kind, recipe, count):
    """Microseconds of the host for one call: the least of the rounds' means."""
    torch._dynamo.reset()
    model = make_model(kind, recipe, count)
    x = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16,
                    requires_grad=kind != "inference")
    dy = torch.randn_like(x)

    def call():
        if kind == "inference":
            with torch.no_grad():
                model(x)
        else:
            model(x).backward(dy)

    for _ in range(30):
        call()
    times = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return 1e6 * statistics.quantiles(times, n=4)[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    rows = []
    for kind in ("eager", "compiled", "inference"):
        for recipe in (None, *(("current", "rowwise", "block") if kind == "inference" else RECIPES)):
            one, many = (measure(kind, recipe, count) for count in (1, LAYERS))
            us = (many - one) / (LAYERS - 1)
            rows.append({"kind": kind, "recipe": recipe, "us": us, "one": one})
            print(f"{kind:>10} {recipe or 'bf16':>10} {us:8.1f} us a layer, {one:8.1f} for a model "
                  f"of one", flush=True)
    write_record(args.out, rows=rows)


if __name__ == "__main__":
    sys.exit(main())
