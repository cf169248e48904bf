"""Seeds of states whose tensors are rounded stochastically."""

import itertools

import torch

_numbers = itertools.count()
# As far from one state to the next as 64 bits allow, whatever torch's seed.
_DISTANCE = 0x9E3779B97F4A7C15


def seed(state):
    """Gives a new fp8.State a seed of its own, if it has seeds. It is from torch's
    (torch.manual_seed) and how many states of this process had one before, so that no two
    layers are rounded with the same numbers, and a process that does the same has the same."""
    if "stochastic_rounding=true" in state.recipe.split(","):
        state.set_seed((torch.initial_seed() + next(_numbers) * _DISTANCE) % 2 ** 64)
