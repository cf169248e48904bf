"""Bits of layers in FP8 that tensor parallelism cuts, and of experts on several ranks, beside one process."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn import functional as F

import fp8.torch

EXPERTS, EACH = 8, 2


def get_whole(value):
    return (value.full_tensor() if hasattr(value, "full_tensor") else value).detach()


def compute(layer, x, dy):
    """y and all gradients, whole ones."""
    x = x.clone().requires_grad_()
    y = layer(x)
    y.backward(dy)
    return {"y": y.detach(), "dx": x.grad, "dweight": get_whole(layer.weight.grad), "dbias": get_whole(layer.bias.grad)}


def describe(found, expected):
    """Which are equal, and how far others are away, as a part of their norm."""
    return {name: "equal" if torch.equal(found[name], value)
            else f"{((found[name].float() - value.float()).norm() / value.float().norm()).item():.1e}"
            for name, value in expected.items()}


def compare_parts(recipe, rows, width, device):
    """A layer cut by columns and by rows beside a whole one. Sums over ranks are rounded otherwise: dx and y."""
    def make():
        torch.manual_seed(2)
        layer = fp8.torch.Linear(width, width, recipe=recipe, only_faster=False, device=device)
        return layer.to(torch.bfloat16)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    generator = torch.Generator().manual_seed(3)
    x, dy = (torch.randn(rows, width, generator=generator) * torch.logspace(-2, 2, width) for _ in range(2))
    x, dy = (each.to(device, torch.bfloat16) for each in (x, dy))
    expected = compute(make(), x, dy)
    columns = parallelize_module(make(), mesh, ColwiseParallel(output_layouts=Replicate()))
    parts = parallelize_module(make(), mesh, RowwiseParallel(input_layouts=Replicate()))
    return {"columns": describe(compute(columns, x, dy), expected), "rows": describe(compute(parts, x, dy), expected)}


class Experts(nn.Module):
    def __init__(self, rank, world, width):
        super().__init__()
        generator, count = torch.Generator().manual_seed(0), EXPERTS // world
        self.up, self.down = (nn.Parameter((torch.randn(EXPERTS, k, n, generator=generator) / k ** 0.5)[
            rank * count:(rank + 1) * count].bfloat16()) for k, n in ((width, 2 * width), (2 * width, width)))

    def forward(self, rows, ends):
        return F.grouped_mm(F.gelu(F.grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)


def run_experts(recipe, rank, world, group, batch, device):
    """Results, and gradients of tokens and weights."""
    x, chosen = batch
    model = nn.ModuleList([Experts(rank, world, x.shape[1])]).to(device)
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False)
    x = x.clone().requires_grad_()
    rows, ends, exchange = fp8.torch.dispatch(x, chosen, EXPERTS, group)
    y = fp8.torch.combine(model[0](rows, ends), exchange).float().sum(1)
    y.square().mean(1).sum().mul(1e-3).backward()
    return y.detach(), x.grad, *(value.grad for value in model.parameters())


def compare_experts(recipe, tokens, width, device):
    """All ranks' tokens and experts beside those of one process, which each rank is for itself."""
    rank, world = dist.get_rank(), dist.get_world_size()
    alone = [dist.new_group([each]) for each in range(world)][rank]
    generator = torch.Generator().manual_seed(1)
    x = (torch.randn(world * tokens, width, generator=generator) * torch.logspace(-3, 3, width)).bfloat16().to(device)
    chosen = torch.rand(world * tokens, EXPERTS - 1, generator=generator).argsort(-1)[:, :EACH].to(device)
    whole = run_experts(recipe, 0, 1, alone, (x, chosen), device)
    found = run_experts(recipe, rank, world, None, (x.chunk(world)[rank], chosen.chunk(world)[rank]), device)
    names = "y", "dx", "dup", "ddown"
    return describe(dict(zip(names, found)), {name: value.chunk(world)[rank] for name, value in zip(names, whole)})
