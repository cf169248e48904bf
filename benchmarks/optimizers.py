"""Training steps with AdamW: torch's fused one beside fp8.torch.fuse_optimizer.

First the optimizer's pass over a parameter of 14336 x 4096, beside a copy, in bytes a second. Then whole
steps, forward, backward and optimizer in a CUDA graph: an MLP of 768-3072-768 with 32 rows, and a layer of
Llama 3 8B with 8192 tokens (its attention is PyTorch's). PyTorch's own is bf16 in torch.compile. Parameters
and moments are bf16, and in the first part also f32. All take turns in the same process.

usage: optimizers.py [--make] [--programs DIR] [--seconds N] [--out FILE]

`--make` compiles the optimizer's programs into DIR, for a machine without this compiler.
"""

import argparse
import copy
import functools
import hashlib
import itertools
import json
import statistics
import time
import traceback
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import shard_programs, update_plan
from fp8.torch.linear_programs import ELEMENTS
from fp8.torch.update_text import Part, Rule, Target, Update, write

TOKENS, WIDTH, WIDE, HEADS, GROUPS = 8192, 4096, 14336, 32, 8
SMALL = 32, 768, 3072
RECIPES = ("delayed", "current", "rowwise", "block")
START = time.monotonic()


class Layer(nn.Module):
    """A transformer layer of Llama 3 8B."""

    def __init__(self):
        super().__init__()
        head = WIDTH // HEADS
        self.norm, self.norm2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.q, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, GROUPS * head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH, bias=False)

    def forward(self, x):
        def split(z):
            return z.view(2, TOKENS // 2, -1, WIDTH // HEADS).transpose(1, 2)

        y = self.norm(x)
        z = F.scaled_dot_product_attention(split(self.q(y)), split(self.k(y)), split(self.v(y)),
                                           is_causal=True, enable_gqa=True)
        x = x + self.out(z.transpose(1, 2).reshape(x.shape))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def make_small():
    return nn.Sequential(nn.Linear(*SMALL[1:]), nn.GELU(), nn.Linear(*SMALL[:0:-1]))


# ===----------------------------------------------------------------------===
# Programs
# ===----------------------------------------------------------------------===


def find_path(folder, text):
    return Path(folder) / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.so"


def list_parts(model, recipe, element):
    """The Parts of a model's parameters."""
    target = recipe and Target(shard_programs.find_codes(recipe), element, recipe == "delayed")
    weights = {id(layer.weight) for layer in model.modules() if isinstance(layer, nn.Linear)}
    return [(Part(value.numel() // value.shape[-1], value.shape[-1], element, target if id(value) in weights else None),)
            for value in model.parameters()]


def make_programs(folder):
    """Those of all models below."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with torch.device("meta"):
        models = [(Layer(), ("bf16",)), (make_small(), ("bf16",)), (nn.Linear(WIDTH, WIDE, bias=False), ("f32", "bf16"))]
    texts = set()
    for (model, elements), recipe in itertools.product(models, (None, *RECIPES)):
        for element, options in itertools.product(elements, (("decay",),)):
            parts = list_parts(model, recipe, element)
            for chunk in update_plan.divide(parts):
                texts.add(write(Update(Rule("adamw", options), tuple(part for part, in chunk)))[0])
            for chunk in update_plan.divide([each for each in parts if each[0].target]):
                texts.add(write(Update(Rule("none"), tuple(part for part, in chunk)))[0])
    for text in texts:
        if not find_path(folder, text).exists():
            fp8.compile(text, target="sm_90a", cpu="x86-64-v3", cache=False).save(str(find_path(folder, text)))
    print(f"{len(texts)} programs")


def use_programs(folder):
    """Takes programs from there in place of compiling them."""
    @functools.lru_cache(maxsize=None)
    def load(update, target):
        text, names = write(update)
        path = find_path(folder, text)
        if not path.exists():
            print(f"compiled here: {update}", flush=True)
            return compile_update(update, target)
        return fp8.load(str(path)).functions["update"], names

    compile_update = update_plan._compile
    update_plan._compile = load


# ===----------------------------------------------------------------------===
# Timing
# ===----------------------------------------------------------------------===


def capture(step, calls=1):
    """A CUDA graph of `calls` steps, after a few that compile and load."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(4):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            step()
    return graph


def time_all(graphs, replays, calls=1, rounds=7):
    """Microseconds of a call of each, the median of rounds that alternate."""
    times = {name: [] for name in graphs}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(rounds):
        for name, graph in graphs.items():
            graph.replay()
            begin.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1e3 / replays / calls)
    return {name: statistics.median(each) for name, each in times.items()}


def attempt(results, name, make):
    """What `make` returns; a failure is a line."""
    try:
        return make()
    except Exception as error:
        traceback.print_exc()
        results.setdefault("errors", {})[name] = f"{type(error).__name__}: {error}"[:500]
        return None


# ===----------------------------------------------------------------------===
# The optimizer alone
# ===----------------------------------------------------------------------===


def make_pass(dtype, recipe, fuses):
    """A step of AdamW of one weight, and bytes that it moves."""
    torch.manual_seed(0)
    layer = nn.Linear(WIDTH, WIDE, bias=False, device="cuda", dtype=dtype)
    if recipe:
        fp8.torch.convert_to_fp8_training(layer_of := nn.Sequential(layer), recipe, first_last_bf16=0,
                                          only_faster=False)
        # Delayed scaling has its scale of a step.
        layer_of(torch.randn(128, WIDTH, device="cuda", dtype=dtype)).sum().backward()
    else:
        layer_of = nn.Sequential(layer)
    optimizer = torch.optim.AdamW(layer.parameters(), 1e-3, weight_decay=0.1, fused=True, capturable=True)
    layer.weight.grad = torch.randn_like(layer.weight)
    if fuses:
        fp8.torch.fuse_optimizer(layer_of, optimizer)
    size, count = layer.weight.element_size(), layer.weight.numel()
    moved = 7 * size * count + (2 * count if recipe and fuses else 0)
    return optimizer, moved, layer_of


def run_passes(results):
    for dtype in (torch.float32, torch.bfloat16):
        graphs, moved, kept = {}, {}, []
        source = torch.randn(7 * WIDE * WIDTH // 2, device="cuda").to(dtype)
        target = torch.empty_like(source)
        graphs["copy"] = capture(lambda: target.copy_(source))
        moved["copy"] = 2 * source.numel() * source.element_size()
        for name, recipe, fuses in (("torch fused", None, False), ("ours, no codes", None, True),
                                    *((f"ours, {recipe}", recipe, True) for recipe in RECIPES)):
            def make():
                optimizer, moved[name], model = make_pass(dtype, recipe, fuses)
                kept.append((optimizer, model))
                return capture(optimizer.step)
            graph = attempt(results, f"pass {dtype} {name}", make)
            if graph is not None:
                graphs[name] = graph
        for name, us in time_all(graphs, 10).items():
            rate = moved[name] / us / 1e3
            results[f"pass {ELEMENTS[dtype]} {name}"] = {"us": us, "GB/s": rate}
            print(f"{ELEMENTS[dtype]:5} {name:18} {us:9.1f} us {moved[name] / 1e6:9.1f} MB {rate:8.0f} GB/s", flush=True)
        del graphs, kept
        torch.cuda.empty_cache()


# ===----------------------------------------------------------------------===
# Whole steps
# ===----------------------------------------------------------------------===


def make_step(model, x, target, recipe, fuses):
    model = copy.deepcopy(model)
    if recipe:
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=True)
    if fuses:
        fp8.torch.fuse_optimizer(model, optimizer)
        if optimizer.fp8_left:
            print(optimizer.fp8_left)
    compiled = torch.compile(model)
    losses = []

    def step():
        optimizer.zero_grad(set_to_none=True)
        y = compiled(x)
        y.backward(target)
        optimizer.step()
        losses[:] = [y]
    return step, (model, optimizer, losses)


def run_steps(results, name, model, x, ways, seconds, replays, calls):
    target = torch.randn_like(x) / x.numel() ** 0.5
    graphs, kept = {}, []
    for way, (recipe, fuses) in ways.items():
        if time.monotonic() - START > seconds:
            results.setdefault("left out", []).append(f"{name} {way}")
            continue

        def make():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            step, *others = make_step(model, x, target, recipe, fuses)
            begin = time.monotonic()
            for _ in range(3):
                step()
            torch.cuda.synchronize()
            results[f"{name} {way} peak MB"] = (torch.cuda.max_memory_allocated() - before) / 1e6
            kept.append(others)
            graph = capture(step, calls)
            print(f"{name} {way}: ready in {time.monotonic() - begin:.1f} s", flush=True)
            return graph
        graph = attempt(results, f"{name} {way}", make)
        if graph is not None:
            graphs[way] = graph
    times = time_all(graphs, replays, calls)
    for way, us in times.items():
        share = us / times["bf16"] if "bf16" in times else float("nan")
        peak = results[f"{name} {way} peak MB"]
        results[f"{name} {way}"] = {"us": us, "of bf16": share, "peak MB": peak}
        print(f"{name:6} {way:16} {us:10.1f} us {share:6.3f} of bf16's, peak {peak:7.0f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--programs")
    parser.add_argument("--seconds", type=float, default=75)
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.make:
        return make_programs(args.programs)
    if args.programs:
        use_programs(args.programs)
    results = {"device": torch.cuda.get_device_name()}
    print(results["device"])
    run_passes(results)
    small = make_small().cuda().bfloat16()
    x = torch.randn(SMALL[0], SMALL[1], device="cuda", dtype=torch.bfloat16)
    run_steps(results, "small", small, x, {
        "bf16": (None, False), "delayed": ("delayed", False), "delayed fused": ("delayed", True),
        "current fused": ("current", True), "bf16, ours": (None, True)}, args.seconds, 20, 10)
    layer = Layer().cuda().bfloat16()
    x = torch.randn(TOKENS, WIDTH, device="cuda", dtype=torch.bfloat16)
    run_steps(results, "layer", layer, x, {
        "bf16": (None, False), "delayed": ("delayed", False), "delayed fused": ("delayed", True),
        "current fused": ("current", True), "block fused": ("block", True)}, args.seconds, 5, 1)
    if args.out:
        Path(args.out).write_text(json.dumps(results, indent=1) + "\n")
    print(f"{time.monotonic() - START:.0f} s")


if __name__ == "__main__":
    main()
