"""Models whose codes lie as kernels for Hopper read them that lift them to bf16 or E4M3."""

import dataclasses

from torch import nn

from fp8.errors import ArgumentError
from fp8.torch import code_order, experts, quantized_linear
from fp8.torch.code_order import BLOCK, arrange_codes, restore_codes


def _find_reason_of_e4m3(scheme, n, k):
    """The same of codes of 8 bits."""
    if scheme.input_block is not None:
        return "they have 8 bits, which tensor cores multiply as they are"
    if scheme.scale == "f32" and not scheme.multiplies_sums(n, k) and not scheme.has_blocks:
        return "they become bf16 in memory, since no kernel reads such factors"
    return None


def find_reason_of_sizes(scheme, n, k):
    """Why codes of N x K stay as they are whatever their values, or None."""
    reason = None if scheme.shares_bytes else _find_reason_of_e4m3(scheme, n, k)
    if reason:
        return reason
    if scheme.packed:
        if n % 4:
            return "N is no multiple of 4"
        return "factors of activations change along K" if (scheme.input_block or (1, 1))[1] else None
    if k % BLOCK:
        return f"K is no multiple of {BLOCK}"
    # Kernels read an even number of rows whose factors begin within words.
    begins_within = (scheme.in_halves or not scheme.shares_bytes) and not scheme.has_blocks
    return "N is odd" if begins_within and n % 2 and k % (2 * BLOCK) else None


def find_reason(module):
    """Why codes of a QuantizedLinear or of the weights of experts stay as they are, or None."""
    scheme = module.scheme
    if scheme.arranged:
        return "they are arranged"
    return (find_reason_of_sizes(scheme, module.out_features, module.in_features)
            or code_order.find_reason({name: value.data for name, value in module._parameters.items() if value is not None}, scheme))


def _exchange(module, scheme, change):
    """Puts changed codes, under the name that they have in `scheme`."""
    old, new = (scheme.plain_codes, "weight_arranged")[::1 if scheme.arranged else -1]
    kept = module.origin, module.lost, module.exactness
    tensors = {new if name == old else name: change(value.data) if name == old else value.data
               for name, value in module._parameters.items() if name != "bias" and value is not None}
    bias = module._parameters.pop("bias")
    for name in list(module._parameters):
        del module._parameters[name]
    for name, value in tensors.items():
        module.register_parameter(name, nn.Parameter(value, requires_grad=False))
    module.register_parameter("bias", bias)
    module._scheme = str(scheme)
    module.origin, module.lost, module.exactness = kept
    if hasattr(module, "_forget"):
        module._forget()


def set_arranged(module, arranged):
    """Arranges the codes of a module, or puts them back."""
    scheme, change = module.scheme, arrange_codes if arranged else restore_codes
    _exchange(module, dataclasses.replace(scheme, arranged=arranged), lambda codes: change(codes, scheme.packed))


def arrange(model, arranged=True):
    """Lays codes of a quantized model as kernels for Hopper read them with fewest instructions, in place, or with
    `arranged=False` back, bit by bit: those of four bits, and of 8 bits those beside activations in bf16. Returns for each layer, by name, "arranged" or "plain", or the reason why it
    stays as it is.

    Layers compute what they did, on any device: where no kernel reads such codes, each call puts them back first. So this
    is for models that stay on a Hopper GPU. Checkpoints have codes as ever, but `state_dict`, which has the model's own, and
    loads into a model with either.
    """
    if not isinstance(model, nn.Module):
        raise ArgumentError(f"expected a module, but got {type(model).__name__}")
    found = {name: module for name, module in model.named_modules()
             if isinstance(module, quantized_linear.QuantizedWeight)}
    reasons = {module: find_reason(module) if arranged else _find_plain(module) for module in found.values()}
    rows = {id(row): row for row in (getattr(module, "_row", None) for module in found.values()) if row is not None}
    for row in rows.values():
        # Layers that lie side by side stay alike.
        other = next((reasons[layer] for layer in row.layers if reasons.get(layer)), None)
        reasons.update((layer, other) for layer in row.layers if other)
    for module, reason in reasons.items():
        if not arranged and getattr(module, "left_order", False):
            # Adapters that are taken out do not undo this.
            module.left_order = False
        if reason is None:
            set_arranged(module, arranged)
    for row in rows.values():
        row.lay()
    for module in model.modules():
        if isinstance(module, experts.QuantizedExperts):
            module.describe()
    return {name: reasons[module] or ("arranged" if arranged else "plain") for name, module in found.items()}


def make_plain(layer):
    """Puts back codes of an arranged layer and of those beside it, for values that arranged ones cannot have, until arrange_again."""
    for each in _list_row(layer):
        if each.scheme.arranged:
            each.left_order = True
            set_arranged(each, False)
    _lay(layer)


def arrange_again(layer):
    """Arranges what make_plain put back, once all of it can be."""
    row = [each for each in _list_row(layer) if each.left_order]
    if row and all(find_reason(each) is None for each in row):
        for each in row:
            each.left_order = False
            set_arranged(each, True)
        _lay(layer)


def _list_row(layer):
    return [layer] if layer._row is None else list(layer._row.layers)


def _lay(layer):
    if layer._row is not None:
        layer._row.lay()


def _find_plain(module):
    return None if module.scheme.arranged else "they are plain"
