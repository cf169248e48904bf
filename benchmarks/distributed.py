"""Steps of training on several GPUs: FSDP2 in bf16, with layers in FP8, and with weights that travel as codes.

A stack of RMSNorm and SwiGLU MLPs is trained for some steps on each contender in turn, in rounds that alternate. Each
process has a GPU, or, without one, the CPU over gloo. One process (--world 1) has the same collectives with itself,
which shows what they cost the host. Tensor and expert parallelism have no part here yet.

usage: distributed.py [--world N] [--recipes current,delayed,...] [--layers N] [--width N] [--wide N] [--rows N]
                      [--steps N] [--rounds N] [--out FILE]
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn import functional as F

import fp8.torch
from timing import show_machine, write_record

WARM_UP = 3


class MLP(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up = (nn.Linear(width, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Contender:
    """A model and its optimizer. `recipe` is None for bf16; `gathers` has weights travel as codes."""

    def __init__(self, args, device, recipe=None, gathers=False):
        self.name = "bf16" if recipe is None else f"{recipe}{', codes' if gathers else ''}"
        self.gathers, self.is_fp8 = gathers, recipe is not None
        torch.manual_seed(0)
        with torch.device(device):
            self.model = nn.Sequential(*(MLP(args.width, args.wide) for _ in range(args.layers)))
        if self.is_fp8:
            fp8.torch.convert_to_fp8_training(self.model, recipe, first_last_bf16=0)
        if gathers:
            fp8.torch.gather_in_fp8(self.model)
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in self.model:
            fully_shard(layer, mp_policy=policy)
        fully_shard(self.model, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4, fused=device.type == "cuda")

    def step(self, x):
        if self.is_fp8:
            with fp8.torch.accumulated(self.model):
                loss = self.compute(x)
        else:
            loss = self.compute(x)
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.gathers:
            fp8.torch.precompute_scales(self.model)
        return loss

    def compute(self, x):
        loss = self.model(x).float().square().mean()
        loss.backward()
        return loss.detach()


def measure(contender, x, steps):
    """Seconds of a step: of the slowest rank, and its peak of memory."""
    is_on_gpu = x.is_cuda
    if is_on_gpu:
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    dist.barrier()
    start = time.perf_counter()
    for _ in range(steps):
        contender.step(x)
    if is_on_gpu:
        torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() if is_on_gpu else 0
    values = torch.tensor([(time.perf_counter() - start) / steps, peak], dtype=torch.float64, device=x.device)
    dist.all_reduce(values, dist.ReduceOp.MAX)
    return values.tolist()


def work(rank, world, args, folder):
    is_on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", rank) if is_on_gpu else torch.device("cpu")
    if is_on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if is_on_gpu else "gloo", init_method=f"file://{folder}/store", rank=rank,
                            world_size=world)
    x = torch.randn(args.rows, args.width, generator=torch.Generator().manual_seed(rank)).to(device)
    contenders = [Contender(args, device)]
    for recipe in args.recipes.split(","):
        contenders += [Contender(args, device, recipe, gathers) for gathers in (False, True)]
    losses, times, peaks = {}, {each.name: [] for each in contenders}, {}
    for each in contenders:
        for _ in range(WARM_UP):
            losses[each.name] = each.step(x).item()
    for turn in range(args.rounds):
        for each in contenders[turn % len(contenders):] + contenders[:turn % len(contenders)]:
            seconds, peaks[each.name] = measure(each, x, args.steps)
            times[each.name].append(seconds)
    if rank == 0:
        torch.save((losses, times, peaks), os.path.join(folder, "result.pt"))
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("--world", type=int, default=max(torch.cuda.device_count(), 1))
    parser.add_argument("--recipes", default="current,delayed,rowwise,block")
    for name, default in (("layers", 8), ("width", 4096), ("wide", 14336), ("rows", 8192), ("steps", 10),
                          ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if torch.cuda.is_available():
        show_machine()
    # The kernels that multicast over NVLink ask for more than every machine allows.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (args.world, args, folder), nprocs=args.world)
        losses, times, peaks = torch.load(os.path.join(folder, "result.pt"))
    base, rows = statistics.median(times["bf16"]), []
    print(f"{args.world} processes, {args.layers} MLPs of {args.width}-{args.wide}, {args.rows} rows each")
    print(f"{'':20}{'ms':>10}{'of bf16':>10}{'rows/s':>12}{'peak GB':>10}{'loss':>10}")
    for name, each in times.items():
        seconds = statistics.median(each)
        rows.append({"name": name, "seconds": each, "peak": peaks[name], "loss": losses[name]})
        print(f"{name:20}{1e3 * seconds:>10.2f}{seconds / base:>10.3f}{args.rows * args.world / seconds:>12.0f}"
              f"{peaks[name] / 1e9:>10.2f}{losses[name]:>10.4f}")
    options = {key: value for key, value in vars(args).items() if key != "out"}
    write_record(args.out, contenders=rows, **options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
