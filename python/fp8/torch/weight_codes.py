"""What others see as the weight of a layer whose weight is codes: its sizes and bytes, and no values."""

import torch

from fp8.errors import UnsupportedError
from fp8.torch.dense import is_plain

# Functions that hand out numbers, that convert to a type, and that write to no element, though their names say that they do.
_NUMBERS = {"tolist", "item", "numpy", "__float__", "__int__", "__index__", "__array__"}
_CONVERTS = {"to", "type", "type_as", "byte", "char", "short", "int", "long"}
_HARMLESS = {"requires_grad_", "share_memory_", "retain_grad"}
_shown = torch.utils.weak.WeakIdKeyDictionary()
_ADVICE = "`layer.dequantize()` has its values, and a filter with '!' before the layer's name keeps it in high precision"
# What graphs may ask of codes, which is not their numbers.
_ASKED = {"shape", "size", "ndim", "dim", "numel", "nelement", "device", "dtype", "get_device", "is_cuda", "is_cpu", "is_meta",
          "layout", "requires_grad", "grad", "stride", "is_contiguous", "element_size", "itemsize", "nbytes", "is_floating_point",
          "is_complex", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"}


class WeightCodes(torch.Tensor):
    """The codes of a weight. What converts them to values, without their scales, is an UnsupportedError; bytes of
    `view(torch.uint8)` are a tensor as others are."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        given = next((x for x in args if isinstance(x, cls)), None)
        _check_call(name, args, given)
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if name in _CONVERTS and given is not None and result.dtype != given.dtype:
            _refuse(given)
        if name.endswith("_like") or name.startswith("new_"):
            return result
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: _check(x, given), result)

    def __deepcopy__(self, memo):
        with torch._C.DisableTorchFunctionSubclass():
            return memo.setdefault(id(self), self.as_subclass(torch.Tensor).clone())

    def __reduce_ex__(self, protocol):
        with torch._C.DisableTorchFunctionSubclass():
            return self.detach().as_subclass(torch.Tensor).__reduce_ex__(protocol)


class TracedCodes:
    """The same in graphs of torch.compile and torch.export, which would look through a subclass of Tensor."""

    def __init__(self, codes):
        self._codes = codes

    def __getattr__(self, name):
        if name in _ASKED:
            return getattr(self._codes, name)
        if not hasattr(torch.Tensor, name):
            raise AttributeError(f"expected an attribute of a tensor, but got '{name}'")
        _refuse(self._codes)

    @property
    def data(self):
        return self

    def detach(self):
        return self

    def view(self, *shape):
        """Bytes, as of WeightCodes, and nothing else."""
        if len(shape) != 1 or shape[0] != torch.uint8:
            _refuse(self._codes)
        return self._codes.view(torch.uint8)

    def __len__(self):
        return len(self._codes)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        codes = next((x._codes for x in args if isinstance(x, cls)), None)
        if not getattr(func, "__name__", "").endswith("_like"):
            _refuse(codes)
        return func(codes, *args[1:], **(kwargs or {}))


def _refuse_operator(self, *_):
    _refuse(self._codes)


for _name in ("getitem", "setitem", "neg", "abs", "float", "int", "bool",
              *(side + each for each in ("matmul", "add", "sub", "mul", "truediv", "pow") for side in ("", "r"))):
    setattr(TracedCodes, f"__{_name}__", _refuse_operator)


def _check_call(name, args, given):
    """Refuses what writes to codes, or would write their numbers elsewhere, before it does."""
    writes = name in ("__setitem__", "__set__") or name not in _HARMLESS and (
        name.endswith("_") and not name.endswith("__") or name.startswith("__i") and name not in ("__int__", "__index__", "__invert__"))
    if writes and args and isinstance(args[0], WeightCodes):
        raise UnsupportedError("expected new codes by set_weight or load_state_dict, but got an assignment to what an "
                               "attribute `weight` shows of the layer")
    if given is not None and (name in _NUMBERS or writes and isinstance(args[0], torch.Tensor) and args[0].dtype != given.dtype):
        _refuse(given)


def _refuse(given):
    size = "" if given is None else f" of {list(given.shape)}"
    raise UnsupportedError(f"expected a call of the layer, but got a computation with its weight{size}, which is codes that "
                           f"count with scales alone: {_ADVICE}")


def _check(x, given):
    if x.dtype.is_floating_point and x.dtype.itemsize > 1:
        _refuse(given)
    return x.as_subclass(WeightCodes) if given is not None and x.dtype == given.dtype else x


def show(layer):
    """What the attribute `weight` of a QuantizedLinear is. Raises AttributeError where its codes have another name."""
    parameters = layer.__dict__.get("_parameters", {})
    weight = parameters.get("weight")
    if weight is None:
        names = ", ".join(name for name in parameters if name != "bias")
        raise AttributeError(f"expected a call of the {type(layer).__name__}, but got one for its weight, which it has none "
                             f"of: it has {names or 'nothing yet'}; {_ADVICE}")
    if torch.compiler.is_compiling():
        return TracedCodes(weight)
    if not is_plain(weight):
        return weight
    shown = _shown.get(weight)
    if shown is None or shown.data_ptr() != weight.data_ptr() or shown.shape != weight.shape or shown.device != weight.device:
        shown = _shown[weight] = weight.detach().as_subclass(WeightCodes)
        shown.__dict__ = weight.__dict__  # Others mark a parameter, as initialized.
    return shown
