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


def cache():
    return Cache(), (torch.zeros(1, 16),)


def sort():
    return Sort(), (torch.zeros(16),)


def clash():
    return Clash(), (torch.zeros(16, 16),)


def dynamic():
    x = torch.zeros(8, 16, dtype=torch.bfloat16)
    return Dynamic(), (x,), ({0: torch.export.Dim("rows")},)
