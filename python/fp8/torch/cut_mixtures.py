"""Mixtures of experts of transformers' models, of which each rank has a part.

    fp8.torch.cut_experts(model, group)
    fp8.torch.convert_to_fp8_training(model, recipe)
"""

import torch

from fp8.errors import ArgumentError
from fp8.torch import converted, steps
from fp8.torch.expert_parallel import combine, dispatch
from fp8.torch.experts import find_projections, takes_all_rows

_NAMES = "hidden_states", "top_k_index", "top_k_weights"
# What a module has whose experts are a rank's.
_CUT = "_fp8_is_cut"


class _Hooks:
    """What goes before and behind a forward: tokens go to the ranks that have their experts, and come back."""

    def __init__(self, num_experts, group, codes):
        self.num_experts, self.group, self.codes, self._call = num_experts, group, codes, None

    def __deepcopy__(self, memo):
        # A copy has the same ranks: groups cannot be copied.
        return _Hooks(self.num_experts, self.group, self.codes)

    def before(self, module, arguments, keywords):
        x, chosen, weights = (*arguments, *(keywords[name] for name in _NAMES[len(arguments):]))
        rows, ends, exchange = dispatch(x, chosen, self.num_experts, self.group, self.codes)
        self._call = exchange, weights
        places = torch.arange(rows.shape[0], dtype=ends.dtype, device=ends.device)
        owners = torch.searchsorted(ends, places, right=True)
        return (rows, owners[:, None], weights.new_ones((rows.shape[0], 1))), {}

    def behind(self, module, arguments, y):
        (exchange, weights), self._call = self._call, None
        y = combine(y, exchange)
        return (y * weights[..., None].to(y.dtype)).sum(1)


def _take(parameter, rank, count):
    part = parameter.detach()[rank * count:(rank + 1) * count].clone()
    return torch.nn.Parameter(part, parameter.requires_grad)


def cut_experts(model, group=None, codes=True):
    """Leaves each rank its part of the experts of a transformers' model, in order, and has their forwards send tokens to
    these and back, as `dispatch` and `combine` do. Returns the model, whose experts have new Parameters.

    Gradients of experts are sums over the tokens of all ranks, each of its rank's loss; those of all else are of a rank's tokens. It goes
    before convert_to_fp8_training, FSDP2 and an optimizer. Raises ArgumentError, with the model as it was.
    """
    world, rank = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
    found = {name: module for name, module in model.named_modules() if find_projections(module)}
    if not found:
        raise ArgumentError(f"expected experts of transformers in the model, but got none in {type(model).__name__}")
    for name, module in found.items():
        if takes_all_rows(module):
            raise ArgumentError(f"expected experts that are called with the experts of each token, but got '{name}', which has "
                                f"rows of all tokens for each")
        if hasattr(module, _CUT):
            raise ArgumentError(f"expected experts that are not cut yet, but got '{name}', of which ranks have parts")
        count = getattr(module, find_projections(module)[0]).shape[0]
        if count % world:
            raise ArgumentError(f"expected a multiple of {world} experts, as many for each rank, but got {count} in '{name}'")
        if converted.is_converted(module):
            raise ArgumentError(f"expected cut_experts before convert_to_fp8_training, but got '{name}' in FP8")
    steps.check_ranks([f"{name}: {[tuple(each.shape) for each in module.parameters(recurse=False)]}"
                       for name, module in found.items()], group)
    for module in found.values():
        count = getattr(module, find_projections(module)[0]).shape[0]
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, _take(parameter, rank, count // world))
        if hasattr(module, "num_experts"):
            module.num_experts = count // world
        hooks = _Hooks(count, group, codes)
        module.register_forward_pre_hook(hooks.before, with_kwargs=True)
        module.register_forward_hook(hooks.behind)
        setattr(module, _CUT, True)
    return model
