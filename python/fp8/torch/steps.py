"""Steps of the scaling states of a model, of one process or several."""

import contextlib
import ctypes
import functools
import hashlib
import itertools
import sys
import weakref

import torch

from fp8 import _core
from fp8.errors import ArgumentError, MismatchError
from fp8.torch import attention_scales, collectives, converted
from fp8.torch.attention_scales import AttentionScales
from fp8.torch.modules import Linear, get_layers


class _Row:
    """Numbers of a GPU at an address, for torch.as_tensor."""

    def __init__(self, address, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "version": 3,
                                         "data": (address, False)}


def make_row(address, count, device):
    """A tensor on numbers at an address, of a GPU or, without one, of the host."""
    # Training writes what an evaluation in inference mode was the first to ask for.
    with torch.inference_mode(False):
        # The emulator's memory is the host's.
        if device is None or not torch.cuda.is_available():
            numbers = (ctypes.c_float * count).from_address(address)
            return torch.frombuffer(numbers, dtype=torch.float32)
        return torch.as_tensor(_Row(address, count), device=f"cuda:{device}")


# Made once: whose the numbers are does not matter to it.
_make_row = functools.lru_cache(maxsize=None)(make_row)


@functools.lru_cache(maxsize=None)
def _has_gpu():
    return torch.cuda.is_available()


def get_stream(state):
    """PyTorch's present stream of a GPU that a state is for."""
    if not (state._runs_on_gpu and _has_gpu()):
        return None
    # What torch.cuda.current_stream() makes an object of.
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())


def _get_row(state):
    """The amaxes of a state's present step, as a tensor on them."""
    return _make_row(*state.get_amax_row(get_stream(state)))


def get_rows(state, device):
    """Its amaxes, scales and their inverses, as tensors on them: of a state that is on a device, or
    comes to be there."""
    if device.type == "cuda":
        state.set_device(device.index)
    stream = get_stream(state)
    scales, inverses, count, device = state.get_scale_rows(stream)
    return (_make_row(*state.get_amax_row(stream)), _make_row(scales, count, device),
            _make_row(inverses, count, device))


def _is_backend(model):
    """Whether it is a Backend, which is not imported for layers alone."""
    return hasattr(model, "parts") and hasattr(model, "accumulate")


def _get_layers(model):
    """A model's layers by name; none of a Backend."""
    if _is_backend(model):
        return {}
    if isinstance(model, torch.nn.Module):
        return get_layers(model)
    raise ArgumentError(f"expected a module or a Backend, but got {type(model).__name__}")


def _get_holders(model, layers):
    """What has a state and steps: parts of a Backend, and what computes Linear layers."""
    if _is_backend(model):
        return list(model.parts)
    return [unit for layer in layers.values() for unit in layer.units.values()]


def check_ranks(lines, group):
    """Raises MismatchError, on all ranks of a group, where not all have the same lines, or the same version of fp8."""
    lines = [f"fp8 {'.'.join(map(str, _core.get_versions()))}", *lines]
    digest = hashlib.sha256("\n".join(lines).encode()).digest()
    numbers = torch.frombuffer(bytearray(digest), dtype=torch.int32) >> 1
    has_gpus = "nccl" in torch.distributed.get_backend(group)
    ends = torch.cat([numbers, -numbers]).to("cuda" if has_gpus else "cpu")
    torch.distributed.all_reduce(ends, torch.distributed.ReduceOp.MAX, group=group)
    high, low = ends.chunk(2)
    if torch.equal(high, -low):
        return
    every = [None] * torch.distributed.get_world_size(group)
    torch.distributed.all_gather_object(every, list(lines), group=group)
    other = next(place for place, each in enumerate(every) if each != every[0])
    for first, second in itertools.zip_longest(every[0], every[other], fillvalue="nothing"):
        if first != second:
            raise MismatchError(f"expected all ranks to have the same layers and recipes, but got "
                                f"'{first}' on rank 0 and '{second}' on rank {other} of the group")


# What models had when their ranks were compared.
_compared = weakref.WeakKeyDictionary()


def _compare(model, layers, holders, group):
    if _is_backend(model):
        lines = [f"{part.name}: {part.state.recipe}" for part in holders if part.state is not None]
    else:
        lines = [f"{name}: {layer.recipe}" for name, layer in layers.items()]
    if _compared.get(model) != lines:
        check_ranks(lines, group)
        _compared[model] = lines


def reduce_amaxes(states, group):
    """Makes the amaxes of states' present step the maximum over a group's ranks."""
    rows = [_get_row(state) for state in states]
    amaxes = torch.cat(rows)
    collectives.reduce_max(amaxes, group)
    for row, amax in zip(rows, amaxes.split([len(row) for row in rows])):
        row.copy_(amax)


def _has_steps(holder):
    """Whether amaxes of a step say something to the next one."""
    return getattr(holder, "has_steps", True)


def _reduce_parts(holders):
    """The same over the groups that have parts of weights, which the group of a step need not have."""
    by_group = {}
    for holder in holders:
        group = getattr(holder, "parallel", None)
        if group is not None and holder.state is not None and _has_steps(holder):
            by_group.setdefault(group, []).append(holder.state)
    for group, states in by_group.items():
        reduce_amaxes(states, group)


def end_step(model, group=None):
    """Ends a step of delayed scaling of all layers or parts, between `accumulate(model)` and
    the next forward: the scales of the next step follow from what calls measured since the
    last one.

    - model: a module with `Linear` layers, or the Backend of torch.compile;
    - group: of torch.distributed, over which the amaxes are the maximum first, in one
      all-reduce: all ranks then have the same scales, as one process has that sees all
      batches. None is the default group where one was made, and no reduction otherwise.
      All ranks have to have called the same layers; MismatchError where they have others, or
      other recipes.
    """
    layers = _get_layers(model)
    holders = _get_holders(model, layers)
    states = [holder.state for holder in holders if holder.state is not None and _has_steps(holder)]
    is_distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
    if group is not None or is_distributed:
        _compare(model, layers, holders, group)
        if states:
            reduce_amaxes(states, group)
        if group is not None:
            _reduce_parts(holders)
    for holder in holders:
        holder.end_step()


def accumulate(model, is_on=True):
    """Makes a step of all calls until `end_step`, as with accumulated gradients or several
    processes, where otherwise each backward ends one of its layer."""
    _accumulate(model, _find_stepped(model), is_on)


def _find_stepped(model):
    """What has steps of a module, called or not."""
    return () if _is_backend(model) else [*get_layers(model).values(), *converted.hold_products(model)]


def _accumulate(model, stepped, is_on):
    if _is_backend(model):
        model.accumulate(is_on)
    else:
        attention_scales.accumulate(model, is_on)
    for layer in stepped:
        layer._steps = not is_on
        for unit in layer._units.values():
            unit.steps = not is_on


@contextlib.contextmanager
def accumulated(model, group=None):
    """Within it, `accumulate(model)`; `end_step(model, group)` behind it."""
    stepped = _find_stepped(model)
    _accumulate(model, stepped, True)
    try:
        yield
    finally:
        # With what its calls have made.
        _accumulate(model, [*stepped, *converted.hold_products(model)] if stepped else (), False)
    end_step(model, group)


def make_states(model):
    """Makes the scaling states of a model's `Linear` layers and attention, which else the first call makes, so that
    `state_dict()` has entries for what torch.distributed.checkpoint reads into them, and `load_state_dict` takes those of
    attention that register_attention computes."""
    if "transformers" in sys.modules:
        from fp8.torch.transformers_attention import attach_registered
        attach_registered(model)
    device = next((value.device for value in model.parameters()), torch.device("cpu"))
    for layer in get_layers(model).values():
        if isinstance(layer, AttentionScales):
            layer.prepare(device)
        if isinstance(layer, Linear) and (layer.recipe or "").partition(",")[0] == "delayed":
            weight = layer.weight
            layer._get_unit(layer.recipe).make_state(weight.shape, weight.dtype, weight.device,
                                                     layer.bias is not None)
