"""Models as people find them, one training step each: in FP8 and beside others.

Built from the configs of transformers and timm with random weights (zoo_models.py), in bf16; a step
is forward, backward and a fused AdamW. By torch.compile's backend and `Linear` layers, beside
PyTorch, eager and by Inductor, and torchao's tensorwise training (if it is there); backend_attention
has our attention, too, and backend_dpa has it in E4M3; a way with _ro has mode="reduce-overhead". Times are of whole steps as Python calls them; host is what the host
takes of one; launches are kernels of a step; losses are of steps on one batch. Each model and way
is a process of its own. Some compile side by side; when all of them have, they are timed one
after the other while the rest sleep. Needs a GPU, but for --small.

usage: zoo.py [--models NAMES] [--ways NAMES] [--jobs N] [--recipe R] [--small] [--seconds S]
              [--out FILE]
"""

import argparse
import collections
import contextlib
import copy
import gc
import json
import math
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
import turns
import zoo_models
import zoo_others

WARM_UP, STEPS, ROUNDS = 10, 5, 4
MODELS = {**zoo_models.MODELS, **zoo_others.MODELS}
KERNELS = 24  # Those that take longest.


def convert_torchao(model, recipe, options):
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    # As torchao's own examples: not the last layer, whose extents need not divide.
    convert_to_float8_training(model, config=Float8LinearConfig(),
                               module_filter_fn=lambda module, name: all(
                                   extent % 16 == 0 for extent in module.weight.shape))
    return torch.compile(model, **options), None


def convert_layers(model, recipe, options):
    import fp8.torch
    with contextlib.suppress(fp8.ArgumentError):  # A ConvNet's only layer is its last.
        fp8.torch.convert_to_fp8_training(model, recipe)
    return torch.compile(model, **options), None


def use_backend(model, recipe, options, **others):
    import fp8.torch
    target = "cpu" if next(model.parameters()).device.type == "cpu" else "auto"
    backend = fp8.torch.Backend(recipe, target=target, **others)
    return torch.compile(model, backend=backend, **options), backend


def use_attention(model, recipe, options):
    return use_backend(model, recipe, options, attention="fp8")


def use_dpa(model, recipe, options):
    from fp8.torch.attention_calls import Attention
    return use_backend(model, recipe, options, attention=Attention("e4m3"))


WAYS = {"eager": lambda model, recipe, options: (model, None),
        "inductor": lambda model, recipe, options: (torch.compile(model, **options), None),
        "torchao": convert_torchao, "layers": convert_layers, "backend": use_backend,
        "backend_attention": use_attention, "backend_dpa": use_dpa}
WAYS.update({f"{name}_ro": WAYS[name] for name in ("inductor", "torchao", "layers", "backend")})


def _synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


class Training:
    """One way of training a model, from the same weights."""

    def __init__(self, model, inputs, way, recipe, device):
        torch._dynamo.reset()
        self.model, self.inputs, self.device = copy.deepcopy(model), inputs, device
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        options = {"mode": "reduce-overhead"} if way.endswith("_ro") else {}
        self.call, self.backend = WAYS[way](self.model, recipe, options)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.call(**self.inputs).loss
        loss.backward()
        self.optimizer.step()
        return loss

    def get_gradient_norm(self):
        return torch.stack([parameter.grad.float().norm() for parameter in self.model.parameters()
                            if parameter.grad is not None]).norm().item()

    def warm_up(self):
        """What the first calls were like."""
        start = time.perf_counter()
        losses = [self.step().item()]
        first = time.perf_counter() - start
        norm = self.get_gradient_norm()
        losses += [self.step().item() for _ in range(WARM_UP - 1)]
        record = {"first call s": first, "first norm": norm, "losses": losses}
        if self.backend is not None:
            kinds = [remark.kind for remark in self.backend.remarks]
            record.update({"products in fp8": kinds.count("fp8"), "products": len(kinds),
                           "parts": len(self.backend.parts),
                           "attention": [line for line in dict.fromkeys(self.backend.left)
                                         if "attention" in line]})
        return record

    def time(self):
        """Milliseconds of a step, and of the host in one."""
        _synchronize(self.device)
        start = time.perf_counter()
        for _ in range(STEPS):
            self.step()
        host = time.perf_counter() - start
        _synchronize(self.device)
        return 1e3 * (time.perf_counter() - start) / STEPS, 1e3 * host / STEPS

    def count_launches(self):
        """How many kernels a step has, what they take, and those that take longest."""
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            self.step()
            _synchronize(self.device)
        events = [event for event in profiler.events()
                  if event.device_type == torch.autograd.DeviceType.CUDA]
        kernels = collections.defaultdict(lambda: [0, 0.0])
        for event in events:
            kernels[event.name[:100]][0] += 1
            kernels[event.name[:100]][1] += event.device_time
        longest = sorted(kernels.items(), key=lambda item: -item[1][1])[:KERNELS]
        return {"launches": len(events), "gpu ms": 1e-3 * sum(event.device_time for event in events),
                "kernels": [[name, count, round(time, 1)] for name, (count, time) in longest]}

    def get_peak(self):
        torch.cuda.reset_peak_memory_stats()
        self.step()
        return torch.cuda.max_memory_allocated() / 2**20


def run_way(name, way, args, wait):
    """The record of one model and way, whose times are taken once `wait` returns."""
    sizes = zoo_models.Sizes(args.small)
    training = Training(*zoo_models.make(name, sizes, models=MODELS), way, args.recipe, sizes.device)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        record = training.warm_up()
    record["warnings"] = [str(warning.message)[:2000] for warning in said
                          if "fp8" in str(warning.message)]
    training.optimizer.zero_grad(set_to_none=True)
    gc.collect()
    if not args.small:
        torch.cuda.empty_cache()
    wait()
    training.time()
    times = [training.time() for _ in range(ROUNDS)]
    record["ms"] = statistics.median(time for time, _ in times)
    record["host ms"] = min(host for _, host in times)
    if not args.small:
        record.update(training.count_launches())
        record["peak MB"] = training.get_peak()
    return record


def get_base(ways, way):
    """The record of bf16 by Inductor in the same mode."""
    return ways.get("inductor_ro" if way.endswith("_ro") else "inductor", {})


def show(results):
    """The table; ratios are of Inductor's time, and of its memory."""
    keys = ("ms", "host ms", "gpu ms", "launches", "peak MB", "first call s", "first norm")
    print(f"{'model':16}{'way':13}" + "".join(f"{key:>13}" for key in keys)
          + f"{'/inductor':>11}{'memory':>8}{'fp8':>9}{'last loss':>11}")
    ratios = collections.defaultdict(list)
    for name, ways in results.items():
        for way, record in ways.items():
            if "error" in record:
                print(f"{name:16}{way:13}  {record['error'].splitlines()[0][:120]}")
                continue
            numbers = "".join(f"{record[key]:13.2f}" if key in record else f"{'':13}"
                              for key in keys)
            base = get_base(ways, way)
            ratio = record["ms"] / base["ms"] if "ms" in base else math.nan
            memory = record["peak MB"] / base["peak MB"] if "peak MB" in base else math.nan
            products = (f"{record['products in fp8']}/{record['products']}"
                        if "products" in record else "")
            print(f"{name:16}{way:13}{numbers}{ratio:11.2f}{memory:8.2f}{products:>9}"
                  f"{record['losses'][-1]:11.4f}")
            if ratio == ratio:
                ratios[way].append(ratio)
    for way, found in ratios.items():
        print(f"{way}: {statistics.geometric_mean(found):.3f} of Inductor's time in the geometric "
              f"mean of {len(found)}, {min(found):.2f} to {max(found):.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(zoo_models.MODELS),
                        choices=list(MODELS))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS),
                        default=["eager", "inductor", "torchao", "layers", "backend"])
    parser.add_argument("--recipe", default="delayed")
    parser.add_argument("--jobs", type=int, default=8, help="models and ways that compile at a time")
    parser.add_argument("--seconds", type=float, default=86400, help="after which none is begun")
    parser.add_argument("--limit", type=float, default=300, help="seconds of a model and way")
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    args = parser.parse_args()
    units = [(name, way) for name in args.models for way in args.ways]
    results = {}
    for some in turns.run(run_way, [(*unit, args) for unit in units], args.jobs, args.seconds,
                          args.limit):
        for (name, way, _), record in some:
            results.setdefault(name, {})[way] = record
        if args.out:
            args.out.write_text(json.dumps(results, indent=1))
    held_out = {name: results.pop(name)
                for name in (*zoo_models.HELD_OUT, *zoo_others.MODELS) if name in results}
    show(results)
    if held_out:
        print("\nheld out:")
        show(held_out)


if __name__ == "__main__":
    main()
