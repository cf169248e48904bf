"""Linear layers that choose experts, which stay in high precision.

A rounding of their results gives tokens other experts where two are nearly as good, and with a row for
each expert they have nothing to save.
"""

import re

from torch import nn
from torch.nn.modules.conv import _ConvNd

from fp8.torch import plain_linears

REASON = "it chooses experts, and a rounding would choose others"
_ROUTER, _GATE = re.compile(r"(^|[._])router(\.|$)"), re.compile(r"(^|[._])gate(\.|$)")


def is_router(name, module, model):
    """Whether a layer is a router: by its name, or one that is called a gate, with a result for each of the experts
    beside it, or one result, as gates of a shared expert have."""
    if not plain_linears.is_linear(module):
        return False
    if _ROUTER.search(name):
        return True
    parts = name.split(".")
    for length in range(len(parts) - 1, max(len(parts) - 3, -1), -1):
        if _GATE.search(".".join(parts[length:])):
            parent = model.get_submodule(".".join(parts[:length]))
            counts = _count_experts(parent, parts[length])
            n, k = plain_linears.get_sizes(module)
            return bool(counts) and n < k and n in counts | {1}
    return False


def _count_experts(parent, own):
    """How many experts there may be in children of a module other than its own one of that name."""
    counts = set()
    for name, child in parent.named_children():
        if name == own:
            continue
        for each in child.modules():
            if isinstance(each, nn.ModuleList) and len(each) > 1:
                counts.add(len(each))
            elif not isinstance(each, _ConvNd):
                counts.update(value.shape[0] for value in each.parameters(recurse=False) if value.ndim == 3)
    return counts
