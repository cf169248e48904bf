"""Plain layers that become QuantizedLinear: nn.Linear, and transformers' Conv1D, whose weight is the other way round."""

from torch import nn

from fp8.torch.converted import is_conv1d


def is_linear(module):
    return isinstance(module, nn.Linear) or is_conv1d(module)


def get_sizes(module):
    """N and K."""
    if is_conv1d(module):
        return module.nf, module.nx
    return module.out_features, module.in_features


def get_weight(module):
    """The weight as N x K."""
    return module.weight.t() if is_conv1d(module) else module.weight


def make_plain(layer, weight):
    """The layer that a QuantizedLinear was made of, with a weight of N x K and its bias."""
    if layer.is_transposed:
        from transformers.pytorch_utils import Conv1D
        plain = Conv1D(layer.out_features, layer.in_features)
        plain.weight = nn.Parameter(weight.t().contiguous(), False)
        if layer.bias is not None:
            plain.bias = layer.bias
        return plain
    plain = nn.Linear(layer.in_features, layer.out_features, False, device="meta")
    plain.weight, plain.bias = nn.Parameter(weight, False), layer.bias
    return plain
