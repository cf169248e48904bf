"""Bits of layers in FP8 under FSDP2: with weights gathered as codes and as they are, and of one process that has each
rank's rows in turn."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn import functional as F

import fp8.torch

STEPS = 4


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def make_model(recipe, width, device):
    torch.manual_seed(0)
    with torch.device(device):
        model = nn.Sequential(*(Block(width) for _ in range(2)))
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, only_faster=False)


def make_batches(world, rows, width, device):
    generator = torch.Generator().manual_seed(1)
    return torch.randn(STEPS, world, rows, width, generator=generator).to(device)


def get_loss(model, part):
    return (model(part) - part.roll(1, -1)).square().mean()


def train(recipe, gathers, rows, width, device):
    """Losses of this rank, and whole parameters."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model = make_model(recipe, width, device)
    if gathers:
        fp8.torch.gather_in_fp8(model)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-3), []
    for batch in make_batches(world, rows, width, device):
        with fp8.torch.accumulated(model):
            loss = get_loss(model, batch[rank])
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if gathers:
            fp8.torch.precompute_scales(model)
        losses.append(loss.detach())
    return losses, [each.full_tensor().detach() for each in model.parameters()]


def train_alone(recipe, rows, width, device):
    """The same by this process, for all ranks: losses by rank."""
    world = dist.get_world_size()
    model = make_model(recipe, width, device)
    optimizer, losses = torch.optim.AdamW(model.parameters(), 1e-3), []
    for batch in make_batches(world, rows, width, device):
        with fp8.torch.accumulated(model):  # All ranks do the same, so that its reduction changes nothing.
            found = [get_loss(model, part) for part in batch]
            for loss in found:
                loss.backward()
        for parameter in model.parameters():
            parameter.grad /= world
        optimizer.step()
        optimizer.zero_grad()
        losses.append([loss.detach() for loss in found])
    return losses, [each.detach() for each in model.parameters()]


def compare(recipe, rows, width, device):
    """Whether all is equal, and the largest difference of parameters otherwise."""
    plain, codes = (train(recipe, gathers, rows, width, device) for gathers in (False, True))
    losses, values = train_alone(recipe, rows, width, device)
    rank = dist.get_rank()

    def compare_to(found, expected):
        return {"losses": all(map(torch.equal, found[0], expected[0])),
                "parameters": all(map(torch.equal, found[1], expected[1])),
                "worst": max((a - b).abs().max().item() for a, b in zip(found[1], expected[1]))}

    alone = [each[rank] for each in losses], values
    return {"codes_and_plain": compare_to(codes, plain), "plain_and_one_process": compare_to(plain, alone),
            "codes_and_one_process": compare_to(codes, alone)}
