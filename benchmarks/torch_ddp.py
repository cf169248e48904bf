"""Delayed scaling over several GPUs: DistributedDataParallel beside one process.

A SwiGLU MLP of `Linear` layers is trained for some steps by one process on a batch, and by one
process for each GPU on its part of the batch, with one all-reduce of amaxes a step. All ranks
must have the same scales, to the bit, and those of the one process up to what gradients differ
by, whose sums over the batch are in another order. Needs two GPUs or more.

usage: torch_ddp.py [--steps N] [--out FILE]
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import fp8.torch
from fp8.torch.modules import get_layers
from timing import show_machine, write_record

ROWS, WIDTH, WIDE = 2048, 1024, 4096
MAX_DIFFERENCE = 0.02


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(WIDTH, WIDE, bias=False) for _ in range(2))
        self.down = nn.Linear(WIDE, WIDTH)

    def forward(self, x):
        return x + self.down(F.silu(self.gate(x)) * self.up(x))


def train(model, module, x, target, steps, world):
    """Losses of all ranks add up to one process's, so that gradients of activations are equal;
    those of parameters, of which DDP takes the mean, are made up for by the rate."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-4 * world)
    for _ in range(steps):
        optimizer.zero_grad()
        with fp8.torch.accumulated(module):
            loss = F.mse_loss(model(x).float(), target.float(), reduction="sum") / ROWS
            loss.backward()
        optimizer.step()
    return {f"{name}.{slot.name}": (slot.amax, slot.scale)
            for name, layer in get_layers(module).items()
            for slot in layer.units["delayed"].state.slots.values()}


def make(device):
    torch.manual_seed(0)
    model = fp8.torch.convert_to_fp8_training(MLP().bfloat16(), "delayed", first_last_bf16=0)
    x, target = (torch.randn(ROWS, WIDTH).bfloat16() for _ in range(2))
    return model.to(device), x.to(device), target.to(device)


def work(rank, world, steps, folder):
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl", init_method=f"file://{folder}/store", rank=rank,
                                         world_size=world)
    model, x, target = make(f"cuda:{rank}")
    x, target = (value.chunk(world)[rank] for value in (x, target))
    slots = train(DistributedDataParallel(model, device_ids=[rank]), model, x, target, steps, world)
    torch.save(slots, os.path.join(folder, f"{rank}.pt"))
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    show_machine()
    # The kernels that multicast over NVLink ask for more than every machine allows.
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    world = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, (world, args.steps, folder), nprocs=world)
        ranks = [torch.load(os.path.join(folder, f"{rank}.pt")) for rank in range(world)]
    model, x, target = make("cuda:0")
    expected = train(model, model, x, target, args.steps, 1)
    is_same = all(slots == ranks[0] for slots in ranks)
    rows, worst = [], 0.0
    for name, (amax, scale) in expected.items():
        if amax == 0:
            # A function that was not called has no state.
            continue
        ratio = ranks[0][name][0] / amax
        worst = max(worst, abs(ratio - 1))
        rows.append({"slot": name, "amax": amax, "amax_ranks": ranks[0][name][0], "scale": scale,
                     "scale_ranks": ranks[0][name][1]})
        print(f"{name:24}{amax:>12.5g}{ranks[0][name][0]:>12.5g}{ratio:>9.4f}{scale:>12.5g}"
              f"{ranks[0][name][1]:>12.5g}")
    print(f"{world} ranks, {args.steps} steps: states of all ranks are "
          f"{'equal' if is_same else 'NOT EQUAL'}; amaxes differ from one process's by "
          f"{worst:.2%} at most")
    write_record(args.out, world=world, steps=args.steps, same=is_same, worst=worst, rows=rows)
    return 0 if is_same and worst <= MAX_DIFFERENCE else 1


if __name__ == "__main__":
    sys.exit(main())
