"""Bytes that a rank gives to collectives, and those that leave it.

What leaves is that of rings: of n ranks, each sends its part n - 1 times in a gather, n - 1 of n parts of what is reduced and
scattered, both of a reduction for all, and what is others' of an exchange.
"""

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

# By parts of names that PyTorch's operations have, c10d's and functional ones.
_KINDS = {"allgather": "gather", "all_gather": "gather", "reduce_scatter": "scatter", "allreduce": "reduce",
          "all_reduce": "reduce", "alltoall": "exchange", "all_to_all": "exchange"}


def count_ranks(args):
    """Returns the size of the group that is among arguments, by itself or by name."""
    for each in tree_leaves(args):
        if isinstance(each, torch.ScriptObject):
            try:
                return dist.ProcessGroup.unbox(each).size()
            except Exception:  # Options of a reduction are such an object, too.
                continue
        if isinstance(each, str) and each not in ("sum", "avg", "max", "min"):
            return dist.distributed_c10d._resolve_process_group(each).size()
    return dist.get_world_size()


def count_leaving(kind, size, ranks):
    return {"gather": size * (ranks - 1), "scatter": size * (ranks - 1) / ranks, "reduce": 2 * size * (ranks - 1) / ranks,
            "exchange": size * (ranks - 1) / ranks}[kind]


class Traffic(TorchDispatchMode):
    """Within it, `given` and `leaving` are bytes by kind, `calls` their numbers. What torch.compile compiled has to run as it is
    written."""

    def __init__(self):
        super().__init__()
        self.given, self.leaving, self.calls = {}, {}, {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # It has collectives of its own.
        name = str(func)
        kind = next((kind for part, kind in _KINDS.items() if part in name), None)
        if name.startswith(("c10d.", "_c10d_functional.")) and kind:
            sizes = [each.numel() * each.element_size() for each in tree_leaves(args) if isinstance(each, torch.Tensor)]
            # What a rank has: of a gather the smaller, of a reduction that scatters the larger.
            size = sum(sizes) if kind == "reduce" else (max if kind == "scatter" else min)(sizes)
            for found, value in ((self.given, size), (self.calls, 1),
                                 (self.leaving, count_leaving(kind, size, count_ranks(args)))):
                found[kind] = found.get(kind, 0) + value
        return func(*args, **(kwargs or {}))


def count(step):
    """What a call gives: bytes and calls by kind, or why they are not known."""
    try:
        with torch.compiler.set_stance("force_eager"), Traffic() as traffic:
            step()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    return {"bytes": traffic.given, "leaving": traffic.leaving, "calls": traffic.calls}
