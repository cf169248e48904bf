"""Linear layers for inference, with codes and scales for a weight."""

import torch
from torch import nn

from fp8.errors import ArgumentError
from fp8.torch import operations, schemes
from fp8.torch.dense import check_tensor, is_plain, make_dense


class QuantizedLinear(nn.Module):
    """nn.Linear with a quantized weight, computed by a compiled program. Activations of f32,
    bf16 or f16 and any number of rows are quantized, multiplied with the codes, and the bias
    is added to the f32 sum. Results are of the type of the activations.

    Parameters have the names, shapes and dtypes of compressed-tensors (docs/Inference.md).
    `.to(dtype)` and the like change none but the bias. Forward only: activations that
    require a gradient are an ArgumentError, unless under torch.no_grad().
    """

    # What calls on a GPU have in common, and what of. Layers that were pickled before it have none.
    _ready = _ready_for = None
    # Layers that it lies beside (fp8.torch.merged_linears), in whatever memory.
    _row = None
    # What lifting packed weights changed, where they were lifted here.
    exactness = None

    def __init__(self, in_features, out_features, scheme, tensors, bias=None):
        """`tensors` as scheme.get_tensors has them; `bias` of out_features, or None. Raises
        ArgumentError for tensors of another shape or dtype."""
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self._scheme = str(scheme)
        expected = scheme.get_tensors(out_features, in_features)
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

    def forward(self, input):
        if not torch.compiler.is_compiling() and self._ready is not None:
            y = self._ready.call(input, self._parameters)
            if y is not None:
                return y
        return self._compute(input)

    def _compute(self, input):
        check_tensor(input, "activations")
        if torch.is_grad_enabled() and input.requires_grad:
            raise ArgumentError("expected activations that require no gradient in a layer for "
                                "inference; torch.no_grad() and torch.inference_mode() see to it")
        if input.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        if torch.compiler.is_compiling() or not is_plain(input):
            return _linear(input, self.get_tensors(), self.bias, self._scheme)
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

    def _forget(self):
        """Lets go of the parameters' memory, which calls keep otherwise."""
        self._ready = self._ready_for = None

    def _load_from_state_dict(self, *arguments):
        self._forget()
        super()._load_from_state_dict(*arguments)

    def _apply(self, fn, recurse=True):
        self._forget()

        # Codes and scales are bytes to what converts floats.
        def apply(tensor):
            if tensor is self.bias:
                return fn(tensor)
            return fn(tensor.view(torch.uint8)).view(tensor.dtype)
        super()._apply(apply, recurse)
        if self._row is not None:
            self._row.lay()
        return self

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, {self.scheme.describe()}")


def bind(dtype, tensors, bias, scheme):
    """The fp8.Function for activations of a dtype, and what it takes behind them."""
    known = schemes.Scheme.read(scheme)
    kind, codes = known.scale, tensors[:1]
    if known.packed:
        codes, tensors = tensors[:2], tensors[1:]
    _, scale, *others = tensors
    n, k = codes[0].shape
    if kind == "e4m3" or known.packed:
        k *= 2  # Two codes share a byte.
    elif kind == "e8m0":
        scale = scale.view(torch.float8_e8m0fnu)
    function = schemes.compile_linear(
        scheme, n, k, schemes.ELEMENTS[dtype], None if bias is None else
        schemes.ELEMENTS[bias.dtype], "auto" if codes[0].is_cuda else "cpu")
    return function, (*codes, scale if scale.ndim == 2 else scale.view(1, 1),
                      *(value.view(1, 1) for value in others),
                      *(() if bias is None else (make_dense(bias),)))


def compute(x, tensors, bias, scheme):
    """The layer's result; `scheme` is the str of a Scheme. Raises ArgumentError."""
    n, k = tensors[0].shape
    known = schemes.Scheme.read(scheme)
    if known.scale == "e4m3" or known.packed:
        k *= 2
    if x.dtype not in schemes.ELEMENTS or x.ndim == 0 or x.shape[-1] != k:
        raise ArgumentError(f"expected activations of f32, bf16 or f16 with {k} features, but got "
                            f"{x.dtype} of {tuple(x.shape)}")
    function, given = bind(x.dtype, tensors, bias, scheme)
    rows = x if x.ndim == 2 else x.reshape(-1, k)
    y = function(make_dense(rows), *given)
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], n)


def _infer(x, tensors, bias, scheme):
    return x.new_empty(*x.shape[:-1], tensors[0].shape[0])


# For graphs of torch.compile and torch.export.
_linear = operations.define(
    "quantized_linear(Tensor x, Tensor[] tensors, Tensor? bias, str scheme) -> Tensor", compute,
    _infer)
