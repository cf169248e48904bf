"""Layers of experts on several GPUs: tokens go to the ranks that have theirs, and come back.

A layer is a norm, a router and experts with gates; what is between products is compiled for any number of rows. Beside
parameters of experts, which are a rank's own, all ranks have the same, whose gradients are averaged.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import fp8.torch

EXPERTS, EACH = 16, 4  # Experts of a layer on all ranks, and those of a token.


def gate(both):
    return F.silu(both[:, :both.shape[1] // 2]) * both[:, both.shape[1] // 2:]


class Experts(nn.Module):
    """Those that a rank has of all."""

    def __init__(self, width, wide, count):
        super().__init__()
        self.up = nn.Parameter(torch.randn(count, width, 2 * wide) / width ** 0.5)
        self.down = nn.Parameter(torch.randn(count, wide, width) / wide ** 0.5)
        self.gate = torch.compile(gate, dynamic=True)

    def forward(self, rows, ends):
        return F.grouped_mm(self.gate(F.grouped_mm(rows, self.up, offs=ends)), self.down, offs=ends)


class Layer(nn.Module):
    def __init__(self, width, wide, codes):
        super().__init__()
        self.norm, self.router, self.codes = nn.RMSNorm(width), nn.Linear(width, EXPERTS, bias=False), codes
        self.experts = Experts(width, wide, EXPERTS // dist.get_world_size())

    def forward(self, x):
        y = self.norm(x)
        weights, chosen = self.router(y).float().softmax(-1).topk(EACH, -1)
        rows, ends, exchange = fp8.torch.dispatch(y, chosen, EXPERTS, codes=self.codes)
        y = fp8.torch.combine(self.experts(rows, ends), exchange)
        return x + (y * weights[..., None].to(y.dtype)).sum(1)


class MoE:
    """Its training: a `recipe` (None: bf16), and whether tokens travel as `codes`."""

    def __init__(self, args, device, recipe=None, codes=False):
        torch.manual_seed(0)
        with torch.device(device):
            layers = [Layer(args.width, args.wide // 4, codes) for _ in range(min(args.layers, 4))]
            self.model = nn.Sequential(*layers).to(torch.bfloat16)
            self.embedding = torch.randn(args.words, args.width).to(torch.bfloat16)
        if recipe:
            fp8.torch.convert_to_fp8_training(self.model, recipe, filter=["*.experts"], first_last_bf16=0, only_faster=False)
        self.shared = [value for name, value in self.model.named_parameters() if "experts" not in name]
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4, fused=True)

    def find_data(self, rank):
        return rank

    def step(self, tokens):
        x = F.embedding(tokens[:, :-1].flatten(), self.embedding)
        loss = (self.model(x) - x.roll(1, 0)).float().square().mean()
        loss.backward()
        flat = torch._utils._flatten_dense_tensors([each.grad for each in self.shared])
        dist.all_reduce(flat, dist.ReduceOp.SUM)
        flat /= dist.get_world_size()
        torch._foreach_copy_([each.grad for each in self.shared],
                             list(torch._utils._unflatten_dense_tensors(flat, [each.grad for each in self.shared])))
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()
