"""What others see as the weight of a layer whose weight is codes: its sizes and bytes, and no values."""

import torch

from fp8.errors import UnsupportedError

_ADVICE = "`layer.dequantize()` has its values, and a filter with '!' before the layer's name keeps it in high precision"


class WeightCodes(torch.Tensor):
    """The codes of a weight. What converts them to values, without their scales, is an UnsupportedError; bytes of
    `view(torch.uint8)` are a tensor as others are."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if name == "__set__":
            raise UnsupportedError("expected new codes by set_weight or load_state_dict, but got an assignment to what an "
                                   "attribute `weight` shows of the layer")
        if name.endswith("_like") or name.startswith("new_"):
            return result
        given = next((x for x in args if isinstance(x, cls)), None)
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: _check(x, given), result)


def _check(x, given):
    if x.dtype.is_floating_point and x.dtype.itemsize > 1:
        size = "" if given is None else f" of {list(given.shape)}"
        raise UnsupportedError(f"expected a call of the layer, but got a computation with its weight{size}, which is codes that "
                               f"count with scales alone: {_ADVICE}")
    return x.as_subclass(WeightCodes) if given is not None and x.dtype == given.dtype else x


def show(layer):
    """What the attribute `weight` of a QuantizedLinear is. Raises AttributeError where its codes have another name."""
    parameters = layer.__dict__.get("_parameters", {})
    weight = parameters.get("weight")
    if weight is None:
        names = ", ".join(name for name in parameters if name != "bias")
        raise AttributeError(f"expected a call of the {type(layer).__name__}, but got one for its weight, which it has none "
                             f"of: it has {names or 'nothing yet'}; {_ADVICE}")
    if torch.compiler.is_compiling() or type(weight) is not torch.nn.Parameter:
        return weight
    shown = weight.detach().as_subclass(WeightCodes)
    shown.__dict__ = weight.__dict__  # Others mark a parameter, as initialized.
    return shown
