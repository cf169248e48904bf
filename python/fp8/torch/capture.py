"""Products with parameters, wherever PyTorch's functions are called: x @ w, F.linear(x, w),
grouped_mm and so on, within a mode of PyTorch's functions, which Dynamo traces too."""

import functools

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from fp8.torch import attention, attention_calls, grouped_ops, linear_ops, products, shared_codes
from fp8.torch.dense import check_tensor, is_plain, is_recorded, make_dense, saves_for_gradient
from fp8.torch.linear_programs import ELEMENTS

# Functions by their names. Those of the last group multiply with parameters, and have no form in
# FP8 here.
_KINDS = {
    "transpose": ("T", "mT", "t", "transpose", "swapaxes", "swapdims", "permute"),
    "part": ("__getitem__", "select", "unbind", "chunk", "split", "tensor_split"),
    "same": ("to", "bfloat16", "half", "float", "type_as", "contiguous", "clone", "detach", "view",
             "reshape", "flatten", "alias"),
    "linear": ("linear",), "matmul": ("matmul", "mm", "bmm", "__matmul__"), "addmm": ("addmm",),
    "grouped": ("grouped_mm", "_grouped_mm", "grouped_mm_fallback"),
    "attention": ("multi_head_attention_forward",),
    "scores": ("scaled_dot_product_attention",),
    "other": ("einsum", "tensordot", "bilinear", "baddbmm", "addbmm", "mv", "addmv", "chain_matmul",
              "multi_dot", "inner", "kron"),
}
_FALLBACK = "grouped_mm_fallback"  # An operation of transformers.
_NAMES = {name: kind for kind, names in _KINDS.items() for name in names}


@functools.lru_cache(maxsize=4096)
def _get_name(function):
    name = getattr(function, "__name__", "")
    if name == "__get__":
        name = getattr(function.__self__, "__name__", "")
    name = name.removeprefix("numpy_")  # As Dynamo calls Tensor.T.
    return name.partition(".")[0]


# Kinds of functions that were asked for before: a forward calls few, each many times.
_MOST_KINDS = 4096
_kinds = {}


@torch.compiler.assume_constant_result
def _get_kind(function):
    """What a function is of _KINDS, or "", by one look where it was asked before."""
    try:
        return _kinds[function]
    except KeyError:
        if len(_kinds) >= _MOST_KINDS:
            _kinds.clear()
        kind = _kinds[function] = _find_kind(function)
        return kind
    except TypeError:  # It has no hash.
        return ""


def _find_kind(function):
    name = _get_name(function)
    kind = _NAMES.get(name, "")
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        # What graphs call, our own operations among it, was looked at where it was written, but
        # for Tensor.mT, which Dynamo calls so.
        return kind if kind == "transpose" or name == _FALLBACK else ""
    return kind


def _swaps_last(rank, name, args):
    """Whether a function of transposition swaps the last two dimensions alone."""
    if name in ("T", "t"):
        return rank == 2
    if name == "mT":
        return True
    args = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args
    if not all(type(arg) is int for arg in args):
        return False
    dims = [arg % rank for arg in args]
    if name == "permute":
        return dims == [*range(rank - 2), rank - 1, rank - 2]
    return sorted(dims) == [rank - 2, rank - 1]


@torch.compiler.assume_constant_result
def _swaps(function, rank, *args):
    return _swaps_last(rank, _get_name(function), args)


@torch.compiler.assume_constant_result
def _is_of_tuple(function):
    return _get_name(function) in ("unbind", "chunk", "split", "tensor_split")


@functools.cache
def show_dynamo():
    """Dynamo does not ask modes of functions whose names begin with an underscore, as that of
    F.grouped_mm does."""
    try:
        from torch._dynamo.variables.torch import get_overridable_functions
        get_overridable_functions().add(torch._grouped_mm)
    except (ImportError, AttributeError):
        pass  # Another version: such products are then PyTorch's.


class Mode(TorchFunctionMode):
    """Within it, products with parameters that have a Product are computed in FP8, under
    that of `get_recipe` if that has none; with `takes_all` those with other parameters, too.

    A tensor that is a view of a parameter says the number of its Product as `_fp8_number`, and
    whether it is its transpose.
    """

    takes_all = False
    # Whether it takes nothing of what a `Linear` calls.
    skips_layers = True

    def get_recipe(self):
        return None

    def get_attention(self):
        """The attention_calls.Attention of calls of PyTorch's function, or None."""
        return None

    def attend(self, *args, **kwargs):
        """F.scaled_dot_product_attention, or None where it is PyTorch's."""
        settings = self.get_attention()
        if settings is None:
            return None
        return attention_calls.attend(settings, *args, unit=self.find_unit(settings), **kwargs)

    def find_unit(self, settings):
        """The number of what keeps the scales of this call, or -1."""
        return -1

    def begin_call(self):
        """Before a function that may be computed in FP8."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        kind = _get_kind(func)
        if not kind or self.takes_all and self.get_recipe() is None and self.get_attention() is None:
            return func(*args, **kwargs)
        if kind in ("transpose", "part", "same"):
            return self._view(kind, func, args, kwargs)
        self.begin_call()
        result = None
        if kind == "linear":
            result = self.linear(*args, **kwargs)
        elif kind == "matmul":
            result = self._matmul(*args, **kwargs)
        elif kind == "addmm":
            result = self._addmm(*args, **kwargs)
        elif kind == "grouped":
            result = self._grouped_mm(*args, **kwargs)
        elif kind == "attention":
            result = attention.compute(self, *args, **kwargs)
        elif kind == "scores":
            result = self.attend(*args, **kwargs)
        elif kind == "other":
            self._refuse(_describe(func), args)
        return func(*args, **kwargs) if result is None else result

    def find(self, tensor):
        """The number of the Product of what a tensor is a view of, or -1; and whether it is the
        transpose."""
        if not isinstance(tensor, torch.Tensor):
            return -1, False
        if isinstance(tensor, nn.Parameter):
            number = products.find_number(tensor, self.takes_all)
            # Dynamo's code is for parameters that say this number.
            return (number if getattr(tensor, "_fp8_number", -1) == number else -1), False
        return getattr(tensor, "_fp8_number", -1), getattr(tensor, "_fp8_is_transposed", False)

    def _view(self, kind, func, args, kwargs):
        result = func(*args, **kwargs)
        if not args:
            return result
        number, is_transposed = self.find(args[0])
        if number < 0:
            return result
        if kind == "part":
            if not is_transposed:
                _name_parts(func, number, args, result)
        elif kind == "same":
            if isinstance(result, torch.Tensor) and result.shape == args[0].shape:
                result._fp8_number, result._fp8_is_transposed = number, is_transposed
        elif not kwargs and _swaps(func, args[0].ndim, *args[1:]):
            result._fp8_number, result._fp8_is_transposed = number, not is_transposed
        return result

    def split(self, weight, sizes):
        """Parts of a parameter along its first dimension."""
        number, _ = self.find(weight)
        parts = weight.split(sizes)
        if number >= 0:
            for i, part in enumerate(parts):
                part._fp8_number = products.find_part(number, f"{i}/{len(sizes)}")
        return parts

    def _refuse(self, what, args):
        for argument in args:
            several = argument if isinstance(argument, (tuple, list)) else [argument]
            for value in several:
                number, _ = self.find(value)
                if number >= 0:
                    products.note(number, "{} is not taken; a product by matmul is", what)

    def linear(self, input, weight, bias=None):
        """F.linear, or None where it is PyTorch's."""
        number, is_transposed = self.find(weight)
        if number < 0 or weight.ndim != 2:
            return None
        if is_transposed:
            weight = weight.mT
        return self._multiply(number, input, weight, is_transposed, bias)

    def _matmul(self, a=None, b=None, *, out=None, **kwargs):
        a, b = kwargs.get("input", a), kwargs.get("mat2", kwargs.get("other", b))
        number, is_transposed = self.find(b)
        if out is not None:
            return None
        if number >= 0 and b.ndim in (2, 3):
            if b.ndim == 3:
                return self._multiply_batches(number, a, b, is_transposed)
            return self._multiply(number, a, b.mT if is_transposed else b, not is_transposed)
        number, is_transposed = self.find(a)
        if number < 0 or a.ndim not in (2, 3) or not isinstance(b, torch.Tensor) or b.ndim == 0:
            return None
        # A parameter on the left: the transpose of a product with its transpose.
        x = b.mT if b.ndim > 1 else b
        if a.ndim == 3:
            y = self._multiply_batches(number, x, a.mT, not is_transposed)
        else:
            y = self._multiply(number, x, a.mT if is_transposed else a, is_transposed)
        return y.mT if y is not None and b.ndim > 1 else y

    def _addmm(self, input, mat1, mat2, *, beta=1, alpha=1, out=None):
        if beta != 1 or alpha != 1 or out is not None:
            return None
        number, is_transposed = self.find(mat2)
        if number >= 0 and input.ndim == 1 and mat2.ndim == 2 and (
                input.shape[0] == mat2.shape[1]):
            weight = mat2.mT if is_transposed else mat2
            return self._multiply(number, mat1, weight, not is_transposed, input)
        y = self._matmul(mat1, mat2)
        return None if y is None else input + y

    def _grouped_mm(self, a, b, offs=None, bias=None, out_dtype=None):
        number, is_transposed = self.find(b)
        if number < 0 or b.ndim != 3 or not isinstance(a, torch.Tensor):
            return None
        if bias is not None or out_dtype not in (None, a.dtype):
            products.note(number, "grouped_mm with a bias or another dtype is not taken")
            return None
        if a.ndim == 3 and offs is None:
            return self._multiply_batches(number, a, b, is_transposed)
        if a.ndim != 2 or offs is None or offs.dtype != torch.int32:
            return None
        return self._multiply_groups(number, a, b, is_transposed, offs)

    def _prepare(self, number, x, weight, bias=None):
        """x, the weight and the bias as a program takes them, or None."""
        recipe = products.find_recipe(number, self.get_recipe())
        if recipe is None or not isinstance(x, torch.Tensor) or not _is_ordinary(x):
            return None
        if x.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(x.device.type):
            dtype = torch.get_autocast_dtype(x.device.type)
            if x.dtype.is_floating_point and x.dtype != torch.float64:
                x, weight = x.to(dtype), weight.to(dtype)
                bias = None if bias is None else bias.to(dtype)
        if x.dtype not in ELEMENTS:
            products.note(number, "{} is none of float32, float16 and bfloat16", x.dtype)
            return None
        # Mistakes are PyTorch's to say, and there is nothing to compute in an empty batch.
        if x.numel() == 0 or any(value is not None and (
                value.dtype != x.dtype or value.device != x.device) for value in (weight, bias)):
            return None
        return recipe, x, weight, bias

    def _multiply(self, number, x, weight, is_transposed, bias=None):
        """x w^T, or x w of a weight that is_transposed, and a bias; or None."""
        prepared, given = self._prepare(number, x, weight, bias), x
        inputs, outputs = weight.shape if is_transposed else (weight.shape[1], weight.shape[0])
        if prepared is None or x.ndim == 0 or x.shape[-1] != inputs:
            return None
        recipe, x, weight, bias = prepared
        if bias is not None and bias.shape != (outputs,):
            return None
        use = "transposed" if is_transposed else "linear"
        unit = products.find_unit(number, recipe, use, tuple(weight.shape), x.dtype)
        rows = x.numel() // inputs
        if unit < 0 or products.is_slower(number, recipe, use, rows, (inputs, outputs), x):
            return None
        x2 = make_dense(x.reshape(-1, inputs))
        weight, bias = make_dense(weight), None if bias is None else make_dense(bias)
        saves = saves_for_gradient(weight, bias)
        if is_recorded() or not is_plain(x2, weight):
            y = torch.ops.fp8.linear(x2, weight, bias, unit, saves)[0]
        else:
            identity = shared_codes.identify(given, x.dtype) if saves else None
            y = linear_ops.Linear.apply(x2, weight, bias, linear_ops.get_unit(unit), saves, identity)
        return y.reshape(*x.shape[:-1], outputs)

    def _multiply_groups(self, number, x, b, is_transposed, ends):
        """Groups of rows of x times the matrices of b, the weight or, with is_transposed, the
        transposes of those of it; or None."""
        weight = b.mT if is_transposed else b
        prepared = self._prepare(number, x, weight)
        if prepared is None or x.shape[1] != b.shape[1] or ends.device != x.device or (
                ends.shape != b.shape[:1]):
            return None
        recipe, x, weight, _ = prepared
        use = "grouped" if is_transposed else "grouped transposed"
        unit = products.find_unit(number, recipe, use, tuple(weight.shape), x.dtype)
        if unit < 0:
            return None
        x, weight, ends = make_dense(x), make_dense(weight), ends.contiguous()
        if is_recorded() or not is_plain(x, weight):
            return torch.ops.fp8.grouped_linear(x, weight, ends, unit)
        return grouped_ops.GroupedLinear.apply(x, weight, ends, linear_ops.get_unit(unit))

    def _multiply_batches(self, number, x, b, is_transposed):
        """Each matrix of x times one of b: groups of as many rows."""
        if not isinstance(x, torch.Tensor) or x.ndim != 3 or x.shape[0] != b.shape[0] or (
                x.shape[2] != b.shape[1]):
            products.note(number, "a product of batches that are repeated is not taken")
            return None
        batches, rows, inputs = x.shape
        ends = torch.arange(1, batches + 1, dtype=torch.int32, device=x.device) * rows
        y = self._multiply_groups(number, x.reshape(-1, inputs), b, is_transposed, ends)
        return None if y is None else y.reshape(batches, rows, b.shape[2])


@torch.compiler.assume_constant_result
def _describe(function):
    return _get_name(function)


def _name_parts(func, number, args, result):
    """Gives parts of a parameter along its first dimension Products of their own."""
    if _is_of_tuple(func):
        axis = args[2] if len(args) > 2 else 0
        if len(args) > 1 and _describe(func) == "unbind":
            axis = args[1]
        if axis != 0 or not isinstance(result, (tuple, list)):
            return
        for i, part in enumerate(result):
            if part.ndim == 2:
                part._fp8_number = products.find_part(number, f"{i}/{len(result)}")
        return
    index = args[-1]
    is_select = _describe(func) == "select"
    if not isinstance(result, torch.Tensor) or result.ndim != 2 or (
            is_select and args[1] != 0) or result.ndim + 1 != args[0].ndim:
        return
    if not torch.compiler.is_compiling() and isinstance(index, torch.Tensor):
        if index.ndim or index.dtype.is_floating_point or index.dtype.is_complex or (
                index.dtype == torch.bool):
            return
        index = int(index)
    if type(index) is int:
        result._fp8_number = products.find_part(number, f"{index}")


def _is_ordinary(tensor):
    """Whether a layer takes it."""
    try:
        check_tensor(tensor, "x")
    except ValueError:
        return False
    return True
