"""Modules for from-pytorch.test."""

import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 16)
        self.register_buffer("cache", torch.zeros(4, 16))

    def forward(self, x):
        self.cache[1:2] = self.project(x)
        return {"scores": x @ self.cache.t()}


class Sort(nn.Module):
    def forward(self, x):
        return torch.sort(x)[0]


class Clash(nn.Module):
    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.zeros(16, 16))

    def forward(self, x):
        return x @ self.x


class Dynamic(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 16, dtype=torch.bfloat16)

    def forward(self, x):
        return self.project(x)


class Shift(nn.Module):
    """The token shift of RWKV, and pads of other kinds with a negative amount."""

    def forward(self, x):
        pad = nn.functional.pad
        return {"shift": x - pad(x, (0, 0, 1, -1)), "cut": pad(x, (-2, -1), value=3.0),
                "both": pad(x, (2, -3, -1, 2), value=-1.0),
                "reflect": pad(x, (3, -2), mode="reflect"),
                "replicate": pad(x, (-1, 4), mode="replicate"),
                "positive": pad(x, (1, 2))}


class Sums(nn.Module):
    """Sums so far, as numbers of positions of a mask are made; torch-mlir makes scans of them."""

    def forward(self, x):
        mask = (x > 0).long()
        return {"rows": x.cumsum(0), "columns": x.cumsum(-1), "half": x.half().cumsum(1),
                "positions": mask.cumsum(1) * mask, "one": x[:1].cumsum(0), "bool": (x > 0).cumsum(1)}


class Noise(nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(16, 16)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x, scale, mask):
        self.steps += 1
        return self.project(x) * scale, torch.where(mask, x, -x), x.argmax(1)


def shift():
    return Shift(), (torch.arange(96.0).reshape(2, 6, 8),)


def sums():
    x = torch.randn(5, 13, generator=torch.Generator().manual_seed(1))
    return Sums(), (x,)


def noise():
    return Noise(), (torch.ones(4, 16),)


def wide():
    x = torch.randn(4, 16, generator=torch.Generator().manual_seed(1))
    return Wide(), (x, 0.5, x > 0)


def cache():
    return Cache(), (torch.zeros(1, 16),)


def sort():
    return Sort(), (torch.zeros(16),)


def clash():
    return Clash(), (torch.zeros(16, 16),)


def dynamic():
    x = torch.zeros(8, 16, dtype=torch.bfloat16)
    return Dynamic(), (x,), ({0: torch.export.Dim("rows")},)
