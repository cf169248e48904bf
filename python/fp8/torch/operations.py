"""How operations of PyTorch are defined that graphs of torch.compile call without looking inside.

torch.library.custom_op costs the host of each call more than the launches of a layer: it passes
through several functions of Python. What is defined here is one function for each kind of device.
"""

import torch
from torch.utils import flop_counter

_library = torch.library.Library("fp8", "FRAGMENT")


def define(schema, run, infer, gradient=None, flops=None):
    """An operation, e.g. "name(Tensor x) -> Tensor": `run` computes it on a CPU or a GPU, from
    contiguous tensors, and `infer` makes its results for fake ones; it has no gradient, or that of
    (backward, setup_context), as torch.library.register_autograd takes them. `flops` counts its operations of floats for
    torch.utils.flop_counter, from sizes of tensors in place of these. Returns it."""
    # Inductor then lays out what it computes so, and copies only what is laid out otherwise.
    _library.define(schema, tags=(torch.Tag.needs_contiguous_strides,
                                  torch.Tag.pt2_compliant_tag))
    name = schema.partition("(")[0]
    for device in ("CPU", "CUDA"):
        _library.impl(name, run, device)
    torch.library.register_fake(f"fp8::{name}", infer, lib=_library)
    if gradient is not None:
        backward, setup_context = gradient
        torch.library.register_autograd(f"fp8::{name}", backward, setup_context=setup_context,
                                        lib=_library)
    if flops is not None:
        flop_counter.register_flop_formula(getattr(torch.ops.fp8, name))(flops)
    return getattr(torch.ops.fp8, name).default


def define_composite(schema, run):
    """An operation that is others, in graphs too; `run` may have a gradient. Returns it."""
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    name = schema.partition("(")[0]
    _library.impl(name, run, "CompositeImplicitAutograd")
    return getattr(torch.ops.fp8, name).default
