"""Linear layers for inference, with codes and scales for a weight."""

import torch
from torch import nn

from fp8.errors import ArgumentError
from fp8.torch import operations, schemes
from fp8.torch.dense import check_tensor, is_plain, make_dense


class QuantizedLinear(nn.Module):
    """nn.Linear with a quantised weight, computed by a compiled program. Activations of f32,
    bf16 or f16 and any number of rows are quantised, multiplied with the codes, and the bias
    is added to the f32 sum. Results are of the type of the activations.

    Parameters have the names, shapes and dtypes of compressed-tensors (docs/Inference.md).
    `.to(dtype)` and the like change none but the bias. Forward only: activations that
    require a gradient are an ArgumentError, unless under torch.no_grad().
    """

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
        check_tensor(input, "activations")
        if torch.is_grad_enabled() and input.requires_grad:
            raise ArgumentError("expected activations that require no gradient in a layer for "
                                "inference; torch.no_grad() and torch.inference_mode() see to it")
        if input.device.type in ("cpu", "cuda") and torch.is_autocast_enabled(input.device.type):
            input = input.to(torch.get_autocast_dtype(input.device.type))
        run = _linear if torch.compiler.is_compiling() or not is_plain(input) else compute
        return run(input, self.get_tensors(), self.bias, self._scheme)

    def _apply(self, fn, recurse=True):
        # Codes and scales are bytes to what converts floats.
        def apply(tensor):
            if tensor is self.bias:
                return fn(tensor)
            return fn(tensor.view(torch.uint8)).view(tensor.dtype)
        return super()._apply(apply, recurse)

    def extra_repr(self):
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}, {self.scheme.describe()}")


def compute(x, tensors, bias, scheme):
    """The layer's result; `scheme` is the str of a Scheme. Raises ArgumentError."""
    kind = schemes.Scheme.read(scheme).scale
    codes, scale, *others = tensors
    n, k = codes.shape
    if kind == "e4m3":
        k *= 2  # Two codes share a byte.
    elif kind == "e8m0":
        scale = scale.view(torch.float8_e8m0fnu)
    if x.dtype not in schemes.ELEMENTS or x.ndim == 0 or x.shape[-1] != k:
        raise ArgumentError(f"expected activations of f32, bf16 or f16 with {k} features, but got "
                            f"{x.dtype} of {tuple(x.shape)}")
    function = schemes.compile_linear(
        scheme, n, k, schemes.ELEMENTS[x.dtype], None if bias is None else
        schemes.ELEMENTS[bias.dtype], "auto" if codes.is_cuda else "cpu")
    rows = x if x.ndim == 2 else x.reshape(-1, k)
    y = function(make_dense(rows), codes, scale if scale.ndim == 2 else scale.view(1, 1),
                 *(value.view(1, 1) for value in others), *(() if bias is None else (make_dense(bias),)))
    return y if x.ndim == 2 else y.reshape(*x.shape[:-1], n)


def _infer(x, tensors, bias, scheme):
    return x.new_empty(*x.shape[:-1], tensors[0].shape[0])


# For graphs of torch.compile and torch.export.
_linear = operations.define(
    "quantized_linear(Tensor x, Tensor[] tensors, Tensor? bias, str scheme) -> Tensor", compute,
    _infer)
