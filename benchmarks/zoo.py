"""Models as people find them, one training step each: in FP8 and beside others.

Built from the configs of transformers with random weights (zoo_models.py), in bf16; a step is
forward, backward and a fused AdamW. By torch.compile's backend and `Linear` layers, beside PyTorch,
eager and by Inductor, and torchao's tensorwise training (if it is there). Times are of whole steps
as Python calls them; host is what the host takes of one; launches are kernels of a step; losses are
of steps on one batch. Each model is a process of its own, several at a time: they compile beside
each other and are timed one after the other. Needs a GPU, but for --small.

usage: zoo.py [--models NAMES] [--ways NAMES] [--jobs N] [--recipe R] [--small] [--out FILE]
"""

import argparse
import contextlib
import copy
import fcntl
import json
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import torch
import zoo_models

WARM_UP, STEPS, ROUNDS = 10, 5, 4


def convert_torchao(model, recipe):
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    convert_to_float8_training(model, config=Float8LinearConfig())
    return torch.compile(model), None


def convert_layers(model, recipe):
    import fp8.torch
    with contextlib.suppress(fp8.ArgumentError):  # A ConvNet's only layer is its last.
        fp8.torch.convert_to_fp8_training(model, recipe)
    return torch.compile(model), None


def use_backend(model, recipe):
    import fp8.torch
    target = "cpu" if next(model.parameters()).device.type == "cpu" else "auto"
    backend = fp8.torch.Backend(recipe, target=target)
    return torch.compile(model, backend=backend), backend


WAYS = {"eager": lambda model, recipe: (model, None),
        "inductor": lambda model, recipe: (torch.compile(model), None),
        "torchao": convert_torchao, "layers": convert_layers, "backend": use_backend}


def _synchronize(device):
    if device == "cuda":
        torch.cuda.synchronize()


class Training:
    """One way of training a model, from the same weights."""

    def __init__(self, model, inputs, way, recipe, device):
        torch._dynamo.reset()
        self.model, self.inputs, self.device = copy.deepcopy(model), inputs, device
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.call, self.backend = WAYS[way](self.model, recipe)

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
                           "parts": len(self.backend.parts)})
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
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CUDA]) as profiler:
            self.step()
            _synchronize(self.device)
        events = [event for event in profiler.events()
                  if event.device_type == torch.autograd.DeviceType.CUDA]
        return len(events), 1e-3 * sum(event.device_time for event in events)

    def get_peak(self):
        torch.cuda.reset_peak_memory_stats()
        self.step()
        return torch.cuda.max_memory_allocated() / 2**20


@contextlib.contextmanager
def _alone(path):
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def run_way(model, inputs, way, args, lock):
    training = Training(model, inputs, way, args.recipe, zoo_models.Sizes(args.small).device)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        record = training.warm_up()
    record["warnings"] = [str(warning.message)[:2000] for warning in said
                          if "fp8" in str(warning.message)]
    with _alone(lock):
        times = [training.time() for _ in range(ROUNDS)]
        record["ms"] = statistics.median(time for time, _ in times)
        record["host ms"] = min(host for _, host in times)
        if not args.small:
            record["launches"], record["gpu ms"] = training.count_launches()
            record["peak MB"] = training.get_peak()
    return record


def run_model(name, args, lock):
    sizes, records = zoo_models.Sizes(args.small), {}
    for way in args.ways:
        try:
            model, inputs = zoo_models.make(name, sizes)
            records[way] = run_way(model, inputs, way, args, lock)
        except Exception as error:  # One model and way fails: the others are still of interest.
            traceback.print_exc()
            records[way] = {"error": f"{type(error).__name__}: {error}"[:2000]}
        print(name, way, json.dumps(records[way])[:600], file=sys.stderr, flush=True)
        if not args.small:
            torch.cuda.empty_cache()
    return records


def show(results):
    """The table; ratios are of Inductor's time."""
    keys = ("ms", "host ms", "gpu ms", "launches", "peak MB", "first call s", "first norm")
    print(f"{'model':12}{'way':10}" + "".join(f"{key:>13}" for key in keys)
          + f"{'/inductor':>11}{'fp8':>9}{'last loss':>11}")
    for name, ways in results.items():
        base = ways.get("inductor", {}).get("ms")
        for way, record in ways.items():
            if "error" in record:
                print(f"{name:12}{way:10}  {record['error'].splitlines()[0][:120]}")
                continue
            numbers = "".join(f"{record[key]:13.2f}" if key in record else f"{'':13}"
                              for key in keys)
            ratio = f"{record['ms'] / base:11.2f}" if base else f"{'':11}"
            products = (f"{record['products in fp8']}/{record['products']}"
                        if "products" in record else "")
            print(f"{name:12}{way:10}{numbers}{ratio}{products:>9}{record['losses'][-1]:11.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", nargs="+", default=list(zoo_models.MODELS),
                        choices=list(zoo_models.MODELS))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS),
                        default=["eager", "inductor", "torchao", "layers", "backend"])
    parser.add_argument("--recipe", default="delayed")
    parser.add_argument("--jobs", type=int, default=4, help="models at a time")
    parser.add_argument("--small", action="store_true", help="small sizes on a CPU")
    parser.add_argument("--out", type=Path, help="JSON with all numbers")
    parser.add_argument("--lock", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.lock:
        args.out.write_text(json.dumps(run_model(args.models[0], args, args.lock)))
        return
    results, waiting, running = {}, list(args.models), {}
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                name = waiting.pop(0)
                path = Path(folder, f"{name}.json")
                command = [sys.executable, __file__, "--models", name, "--ways", *args.ways,
                           "--recipe", args.recipe, "--out", str(path),
                           "--lock", str(Path(folder, "lock")), *["--small"] * args.small]
                running[name] = subprocess.Popen(command), path
            time.sleep(0.2)
            for name, (process, path) in list(running.items()):
                if process.poll() is not None:
                    del running[name]
                    results[name] = (json.loads(path.read_text()) if path.exists() else
                                     {"all": {"error": f"ended with {process.returncode}"}})
                    if args.out:
                        args.out.write_text(json.dumps(results, indent=1))
    held_out = {name: results.pop(name) for name in zoo_models.HELD_OUT if name in results}
    show(results)
    if held_out:
        print("\nheld out:")
        show(held_out)


if __name__ == "__main__":
    main()
