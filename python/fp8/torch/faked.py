"""Parameters that torch.export traces as tensors without values, and what they are."""

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor


def find_real(parameter):
    """The Parameter that a fake one stands for, None if it stands for none; others are themselves."""
    if not isinstance(parameter, FakeTensor):
        return parameter
    known = getattr(parameter, "_fp8_real", None)
    if known is None:
        for each in _find_all(parameter.fake_mode):
            each[0]._fp8_real = each[1]
        known = getattr(parameter, "_fp8_real", None)
    return known


def _find_all(mode):
    """All fake Parameters of a mode with those that they were made of, as PyTorch's own table has them."""
    try:
        converter = mode.fake_tensor_converter.meta_converter
        fakes = converter.tensor_memo
        pairs = [(fakes.get(number), real) for real, number in converter.describer.lookup_tensor.items()]
    except AttributeError:  # Another version.
        return []
    return [(fake, real) for fake, real in pairs if fake is not None and type(real) is nn.Parameter]
