"""Moments of optimizers as codes, which are a byte an element, with a factor for 128 of a row.

Of squares there are codes of the roots: E4M3's 18 octaves are 36 of the squares. The state of a parameter has
`exp_avg_codes` and `exp_avg_inverse` then in place of `exp_avg`.
"""

import torch

import fp8
from fp8.torch.update_text import MOMENT_BLOCK

# Parameters of fewer elements keep their moments as they are: there is nothing to save.
_FEW = 4096
# What names of a state's tensors end in, that are of no parameter's type.
CODES, INVERSE, LOW, MASTER = "_codes", "_inverse", "master_low", "master"


def is_worth(parameter):
    return parameter.ndim > 1 and parameter.numel() >= _FEW


def list_names(name, is_coded):
    """What the state of a parameter has for a moment."""
    return (name + CODES, name + INVERSE) if is_coded else (name,)


def is_own(name, value, is_split):
    """Whether torch.optim would make a state's tensor one of the parameter's type, and it has one of its own; `is_split`
    are masters that are f32."""
    return isinstance(value, torch.Tensor) and (name.endswith((CODES, INVERSE)) or name in (LOW, MASTER) or (
        is_split and name != "step" and value.dtype == torch.float32))


def _multiply(codes, inverse):
    inverse = inverse.repeat_interleave(MOMENT_BLOCK[1], 1)[:, :codes.shape[1]]
    return codes.float() * inverse


def settle(state, name, is_coded, sizes, like, dtype):
    """Makes a moment of a parameter's state what it is to be, codes or of a type, from what there is, or zeros. `sizes` are
    those of the parameter as a matrix."""
    own, codes, inverse = name, name + CODES, name + INVERSE
    if is_coded and codes not in state:
        device = like.device
        if state.get(own) is not None:
            values = state.pop(own).detach().float().reshape(sizes)
            made = fp8.quantize(values.sqrt() if "sq" in name else values, "e4m3", MOMENT_BLOCK)
            state[codes], state[inverse] = made.codes.view(like.shape), made.scale_inv
        else:
            state[codes] = torch.zeros(like.shape, dtype=torch.uint8, device=device).view(torch.float8_e4m3fn)
            state[inverse] = torch.zeros(sizes[0], -(-sizes[1] // MOMENT_BLOCK[1]), device=device)
    elif not is_coded and state.get(own) is None:
        if codes in state:
            values = _multiply(state.pop(codes).view(sizes), state.pop(inverse))
            state[own] = (values.square() if "sq" in name else values).view(like.shape).to(dtype)
        else:
            state[own] = torch.zeros(like.shape, dtype=dtype, device=like.device)
    elif not is_coded and state[own].dtype != dtype:
        state[own] = state[own].to(dtype)
