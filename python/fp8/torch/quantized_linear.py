"""Linear layers for inference, with codes and scales for a weight."""

import math
import warnings

import torch
from torch import nn

import fp8
from fp8.errors import ArgumentError, UnsupportedError
from fp8.torch import code_order, expected, input_gradient, operations, packed, schemes, weight_codes
from fp8.torch.dense import check_tensor, is_plain, is_recorded, make_dense, own


class QuantizedWeight(nn.Module):
    """A module with what is stored of a weight, by names of compressed-tensors, and maybe a bias.
    `.to(dtype)` and the like change none but the bias."""

    # What lifting packed weights changed, where they were lifted here.
    exactness = None
    # How a checkpoint has the weight (fp8.torch.stored), and what it lost here.
    origin = lost = None

    def __init__(self, scheme, expected, tensors, bias=None):
        """`expected` are shape and dtype by name. Raises ArgumentError for tensors of others."""
        super().__init__()
        self._scheme = str(scheme)
        if set(tensors) != set(expected):
            raise ArgumentError(f"expected the tensors {', '.join(expected)}, but got "
                                f"{', '.join(tensors) or 'none'}")
        for name, (shape, dtype) in expected.items():
            tensor = tensors[name]
            if tuple(tensor.shape) != shape or tensor.dtype != dtype:
                raise ArgumentError(f"expected '{name}' to be {dtype} of {shape}, but got "
                                    f"{tensor.dtype} of {tuple(tensor.shape)}")
            self.register_parameter(name, nn.Parameter(make_dense(tensor), requires_grad=False))
        self.register_parameter("bias", None if bias is None else nn.Parameter(
            bias.detach(), requires_grad=False))

    @property
    def scheme(self):
        """The Scheme."""
        return schemes.Scheme.read(self._scheme)

    def get_tensors(self):
        """The stored tensors, in the order that programs take them."""
        return [value for name, value in self._parameters.items() if name != "bias"]

    def _forget_origin(self):
        """Lets go of what is known of the weight that was there."""
        self.exactness = self.origin = self.lost = None

    def _find_reason(self, values):
        """Why values by name cannot take the place of those that the module has, or None."""
        scheme = self.scheme
        own = {name: value.detach() for name, value in values.items() if self._parameters.get(name) is not None and is_plain(value)
               and value.dtype == self._parameters[name].dtype and value.shape == self._parameters[name].shape}
        reason = code_order.find_reason(own, scheme) if scheme.arranged else None
        return reason and (f"expected values that arranged codes may have, but {reason}; fp8.torch.arrange(model, arranged=False) "
                           f"makes room for others")

    def _load_from_state_dict(self, state_dict, prefix, *arguments):
        # Codes may lie in the other order there (fp8.torch.arrange).
        scheme = self.scheme
        own, other = (prefix + name for name in (scheme.plain_codes, "weight_arranged")[::-1 if scheme.arranged else 1])
        given = state_dict.pop(other, None) if own not in state_dict else None
        if given is not None:
            change = code_order.arrange_codes if scheme.arranged else code_order.restore_codes
            # What does not fit is PyTorch's to refuse, by name.
            fits = given.shape == self._parameters[own[len(prefix):]].shape
            state_dict[own] = change(given, scheme.packed) if fits else given
        reason = self._find_reason({name: state_dict[prefix + name] for name in self._parameters if prefix + name in state_dict})
        if reason:
            arguments[-1].append(f"'{prefix[:-1]}': {reason}.")
        else:
            self._forget_origin()
            super()._load_from_state_dict(state_dict, prefix, *arguments)
        if given is not None:
            del state_dict[own]
            state_dict[other] = given

    def _apply(self, fn, recurse=True):
        # Codes and scales are bytes to what converts floats.
        def apply(tensor):
            if tensor is self.bias:
                return fn(tensor)
            return fn(tensor.view(torch.uint8)).view(tensor.dtype)
        return super()._apply(apply, recurse)


class QuantizedLinear(QuantizedWeight):
    """nn.Linear with a quantized weight, computed by a compiled program. Activations of f32,
    bf16 or f16 and any number of rows are quantized, multiplied with the codes, and the bias
    is added to the f32 sum. Results are of the type of the activations.

    Parameters have the names, shapes and dtypes of compressed-tensors (docs/Inference.md).
    The weight is frozen; activations that require a gradient get it through the codes
    (fp8.torch.input_gradient).
    """

    # What calls on a GPU have in common, and what of. Layers that were pickled before it have none.
    _ready = _ready_for = None
    # Layers that it lies beside (fp8.torch.merged_linears), in whatever memory.
    _row = None
    # Whether it was transformers' Conv1D, which has its weight the other way round.
    is_transposed = False
    # Whether its codes would be arranged, had they other values (fp8.torch.arranged).
    left_order = False

    def __init__(self, in_features, out_features, scheme, tensors, bias=None):
        """`tensors` as scheme.get_tensors has them; `bias` of out_features, or None. Raises
        ArgumentError for tensors of another shape or dtype."""
        super().__init__(scheme, scheme.get_tensors(out_features, in_features), tensors, bias)
        self.in_features, self.out_features = in_features, out_features

    def __getattr__(self, name):
        # Models that multiply with it themselves would do so with codes.
        return weight_codes.show(self) if name == "weight" else super().__getattr__(name)

    def forward(self, input):
        recorded = is_recorded()
        # In this order graphs have no guard on what calls leave behind.
        if not recorded and self._ready is not None:
            y = self._ready.call(input, self._parameters)
            if y is not None:
                return y
        return self._compute(input, recorded)

    def _compute(self, input, recorded):
        check_tensor(input, "activations")
        if input.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        if torch.is_grad_enabled() and input.requires_grad:
            if recorded or not is_plain(input):
                return _frozen(input, self.get_tensors(), self.bias, self._scheme)
            return _Frozen.apply(input, self)
        if recorded or not is_plain(input):
            return _linear(input, self.get_tensors(), self.bias, self._scheme)
        return self._run(input)

    def _run(self, input):
        y = compute(input, self.get_tensors(), self.bias, self._scheme)
        self._prepare(input.dtype)
        return y

    def _prepare(self, dtype):
        """Keeps what calls with activations of that type have in common."""
        parameters = {name: value for name, value in self._parameters.items() if value is not None}
        key = dtype, *((id(value), value.data_ptr()) for value in parameters.values())
        if key == self._ready_for or not is_plain(*parameters.values()):
            return
        function, given = bind(dtype, self.get_tensors(), self.bias, self._scheme)
        self._ready_for = key
        if all(value.data_ptr() == other.data_ptr()
               for value, other in zip(parameters.values(), given)):
            self._ready = function.make_layer_call(dtype, list(zip(
                parameters.keys(), parameters.values(), given)))

    @torch.no_grad()
    def dequantize(self, dtype=torch.float32):
        """The values of the weight, N x K."""
        tensors, scheme = code_order.restore_tensors(self.get_tensors(), self.scheme)
        values = dict(zip(scheme.get_tensors(self.out_features, self.in_features), tensors))
        if scheme.packed:
            return packed.unlift(packed.Lifted(
                values["weight_packed"], values["weight_exponents"], values["weight_scale"], None), dtype)
        codes, scale, whole = values.get("weight"), values["weight_scale"].data, None
        if scheme.shares_bytes:
            codes = values["weight_packed"].view(torch.float4_e2m1fn_x2)
        if scheme.scale == "e4m3":
            whole = (1 / values["weight_global_scale"]).view(1, 1)
        elif scheme.scale == "e8m0":
            scale = scale.view(torch.float8_e8m0fnu)
        return fp8.dequantize(fp8.Quantized(
            codes.data, scale if scale.ndim == 2 else scale.view(1, 1), whole, scheme.codes.name,
            scheme.weight_block, scheme.scale)).to(dtype)

    @torch.no_grad()
    def set_weight(self, weight, *, may_be_plain=False):
        """Quantizes values of N x K in place of those that the layer has. Scales of activations
        stay. With `may_be_plain` arranged codes become plain ones where they cannot have the values."""
        if tuple(weight.shape) != (self.out_features, self.in_features):
            raise ArgumentError(f"expected a weight of {(self.out_features, self.in_features)}, but "
                                f"got {tuple(weight.shape)}")
        tensors = schemes.quantize_weight(weight, self.scheme)
        if self.scheme.arranged:
            plain = dict(tensors)
            tensors["weight_arranged"] = code_order.arrange_codes(tensors.pop(self.scheme.plain_codes), self.scheme.packed)
            if may_be_plain and self._find_reason(tensors):
                from fp8.torch import arranged
                arranged.make_plain(self)
                tensors = plain
        self.set_tensors(tensors)

    def set_tensors(self, tensors):
        """Puts stored tensors, by name, in place of those that the layer has. Raises ArgumentError for values that arranged
        codes cannot have."""
        reason = self._find_reason(tensors)
        if reason:
            raise ArgumentError(reason)
        self._forget()
        self._forget_origin()
        for name, tensor in tensors.items():
            self._parameters[name] = nn.Parameter(make_dense(tensor), requires_grad=False)
        if self._row is not None:
            self._row.lay()

    def _forget(self):
        """Lets go of the parameters' memory, which calls keep otherwise."""
        self._ready = self._ready_for = None

    def _load_from_state_dict(self, *arguments):
        self._forget()
        super()._load_from_state_dict(*arguments)

    def _apply(self, fn, recurse=True):
        self._forget()
        super()._apply(fn, recurse)
        if self._row is not None:
            self._row.lay()
        return self

    def __getstate__(self):
        # What calls have in common is of these parameters, and no copy's.
        return {**self.__dict__, "_ready": None, "_ready_for": None}

    def __setstate__(self, state):
        """Layers of a copy lie beside each other, too, once the last of them is there."""
        super().__setstate__(state)
        layers = getattr(self._row, "layers", ())
        if layers and all("_parameters" in layer.__dict__ for layer in layers):
            self._row.lay()

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, {self.scheme.describe()}")


# What fp8.torch.prepare has compiled, by the arguments of compile_linear, and the layers that it
# has done so for: codes and scales of a size.
_expected, _prepared = set(), set()


def expect_linear(*key):
    """Compiles a program ahead of calls, of which later ones are a warning where they compile another."""
    schemes.compile_linear(*key)
    _expected.add(key)
    _prepared.add(key[:3])
    expected.add(("layer", *key[:3]))


def _find_function(*key):
    """schemes.compile_linear of a layer, with a warning for what was not expected."""
    if _prepared and key not in _expected and key[:3] in _prepared:
        scheme, n, k, element, _, target = key
        warnings.warn(f"fp8: a call compiles a layer of {k} inputs and {n} outputs for activations of "
                      f"{element} on the target {target}, which fp8.torch.prepare was not told of",
                      stacklevel=6)
        _expected.add(key)
    return schemes.compile_linear(*key)


def arrange(tensors, scheme):
    """Stored tensors as programs take them, and N and K of the weight."""
    known = schemes.Scheme.read(scheme)
    kind, codes = known.scale, tensors[:1]
    if known.packed:
        codes, tensors = tensors[:2], tensors[1:]
    _, scale, *others = tensors
    n, k = codes[0].shape
    if known.shares_bytes:
        k *= 2
    if kind == "e8m0":
        scale = scale.view(torch.float8_e8m0fnu)
    return n, k, (*codes, scale if scale.ndim == 2 else scale.view(1, 1),
                  *(value.view(1, 1) for value in others))


def bind(dtype, tensors, bias, scheme):
    """The fp8.Function for activations of a dtype, and what it takes behind them."""
    tensors, scheme = code_order.settle(tensors, scheme, dtype)
    n, k, given = arrange(tensors, scheme)
    function = _find_function(
        scheme, n, k, schemes.ELEMENTS[dtype], None if bias is None else
        schemes.ELEMENTS[bias.dtype], "auto" if given[0].is_cuda else "cpu")
    return function, (*given, *(() if bias is None else (make_dense(bias),)))


def compute(x, tensors, bias, scheme):
    """The layer's result; `scheme` is the str of a Scheme. Raises ArgumentError."""
    n, k = tensors[0].shape
    known = schemes.Scheme.read(scheme)
    if known.shares_bytes:
        k *= 2
    if x.dtype not in schemes.ELEMENTS or x.ndim == 0 or x.shape[-1] != k:
        hint = ("; what casts to the type of a quantized weight needs that layer in high precision"
                if x.dtype == torch.float8_e4m3fn else "")
        raise ArgumentError(f"expected activations of f32, bf16 or f16 with {k} features, but got "
                            f"{x.dtype} of {tuple(x.shape)}{hint}")
    function, given = bind(x.dtype, tensors, bias, scheme)
    rows = x if x.ndim == 2 else x.reshape(-1, k)
    y = function(make_dense(rows), *given)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], n)


def differentiate(dy, tensors, scheme):
    """The gradient of x for that of the result."""
    tensors, scheme = code_order.restore_tensors(tensors, schemes.Scheme.read(scheme))
    scheme = str(scheme)
    n, k, given = arrange(tensors, scheme)
    if not dy.numel():
        return dy.new_zeros(*dy.shape[:-1], k)
    rows = make_dense(dy if dy.ndim == 2 else dy.reshape(-1, n))
    function = input_gradient.compile_gradient(scheme, n, k, schemes.ELEMENTS[dy.dtype],
                                               "auto" if dy.is_cuda else "cpu")
    dx = function(rows, *input_gradient.select(schemes.Scheme.read(scheme), given))
    return dx if dy.ndim == 2 else dx.reshape(*dy.shape[:-1], k)


def _infer(x, tensors, bias, scheme):
    return x.new_empty(*x.shape[:-1], tensors[0].shape[0])


# For graphs.
_linear = operations.define(
    "quantized_linear(Tensor x, Tensor[] tensors, Tensor? bias, str scheme) -> Tensor", compute,
    _infer, flops=lambda x, tensors, *_, **others: 2 * math.prod(x) * tensors[0][0])


def _infer_gradient(dy, tensors, scheme):
    known = schemes.Scheme.read(scheme)
    k = tensors[0].shape[1] * (2 if known.shares_bytes else 1)
    return dy.new_empty(*dy.shape[:-1], k)


_gradient = operations.define(
    "quantized_linear_gradient(Tensor dy, Tensor[] tensors, str scheme) -> Tensor", differentiate,
    _infer_gradient, flops=lambda dy, tensors, scheme, out_shape=None, **others: 2 * math.prod(dy) * out_shape[-1])


def check_first():
    """Raises UnsupportedError where a second derivative is wanted."""
    if torch.is_grad_enabled():
        raise UnsupportedError("expected a backward without create_graph, since a layer in FP8 "
                               "has no second derivative")


class _Frozen(torch.autograd.Function):
    """A layer whose activations have a gradient, and nothing else."""

    @staticmethod
    def forward(ctx, x, layer):
        ctx.tensors, ctx.scheme = layer.get_tensors(), layer._scheme
        y = None if layer._ready is None else layer._ready.call(x, layer._parameters)
        return own(layer._run(x) if y is None else y)

    @staticmethod
    def backward(ctx, dy):
        check_first()
        return differentiate(make_dense(dy), ctx.tensors, ctx.scheme), None


class _Traced(torch.autograd.Function):
    """What graphs record of it: the operations of both directions."""

    @staticmethod
    def forward(ctx, x, bias, scheme, *tensors):
        ctx.save_for_backward(*tensors)
        ctx.scheme = scheme
        return _linear(x, list(tensors), bias, scheme)

    @staticmethod
    def backward(ctx, dy):
        check_first()
        tensors = list(ctx.saved_tensors)
        dx = _gradient(make_dense(dy), tensors, ctx.scheme)
        return dx, None, None, *[None] * len(tensors)


# As quantized_linear, with a gradient of x.
_frozen = operations.define_composite(
    "frozen_linear(Tensor x, Tensor[] tensors, Tensor? bias, str scheme) -> Tensor",
    lambda x, tensors, bias, scheme: _Traced.apply(x, bias, scheme, *tensors))
