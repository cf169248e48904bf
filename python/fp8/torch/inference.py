"""Models for inference: linear layers with quantized weights.

    fp8.torch.quantize_for_inference(model, fp8.RowwiseScaling())
    print(fp8.torch.report(model))

docs/Inference.md goes through all of it.
"""

import dataclasses
import fnmatch
import math
import re
import warnings
from collections import namedtuple

import torch
from torch import nn
from torch.nn.utils import parametrize

import fp8
from fp8.errors import ArgumentError
from fp8.torch import converted, experts, invariance, merged_linears, modules, plain_linears, routers, schemes, weight_types
from fp8.torch.dense import check_model
from fp8.torch.linear_forms import computes_linear
from fp8.torch.quantized_linear import QuantizedLinear, QuantizedWeight

# A layer with a matrix product: `kind` is "fp8" or "high precision"; `reason` says why, or how
# it is quantized.
Layer = namedtuple("Layer", "name kind shape reason")


class Report(tuple):
    """The Layers of a model. `str` of it is a table."""

    def __str__(self):
        count = sum(layer.kind == "fp8" for layer in self)
        width = max((len(layer.name) for layer in self), default=0)
        return "\n".join([f"{count} of {len(self)} layers in FP8"] + [
            f"{layer.name:{width}}  {layer.shape}  {layer.kind}: {layer.reason}" for layer in self])


def quantize_for_inference(model, recipe="rowwise", calibration=None, filter=None, weights=None,
                           activations=None, invariant=False):
    """Replaces linear layers by QuantizedLinear and transformers' experts by QuantizedExperts,
    with weights quantized where they are. Returns the model, which is changed; one that is such
    a module itself is returned anew.

    - recipe: current, rowwise, block, mxfp8 or nvfp4, as fp8.compile takes it;
    - calibration: batches that the model is run with, each a tensor, a tuple of arguments or a
      dictionary of them by name. Activations then have one scale for good, from the largest
      magnitude that a layer was given; without it, from what they are. For current, and for
      the scale of a whole tensor in nvfp4;
    - filter: which layers: globs of their names, those after a "!" of layers to leave out, of
      which the last that fits counts, or a function of (name, module); None for all. A router
      stays unless a glob names it, as "*.router" does;
    - weights: "mxfp4" for weights of four bits, with current or rowwise, which are multiplied as
      E4M3 (docs/PackedWeights.md). The report says of each layer whether they are that exactly.
      Names of recipes are weights as these have them, for activations in bf16;
    - activations: "bf16" for those as they are, of whatever type, multiplied with what weights
      are rounded to that type; "fp8" where nothing else will do;
    - invariant: the bits of a row of a layer's result depend on that row alone, not on how many
      there are, nor on the GPU (docs/Inference.md). For recipes with scales of rows or of blocks
      of a row, and with calibration.

    `report(model)` says what was done of each layer, and why not. Raises ArgumentError, with
    the model as it was, for a recipe, batches or a filter that do not fit, for a weight that is
    nowhere (on the device meta), and for amaxes of Inf or NaN.
    """
    check_model(model)
    scheme = schemes.make_scheme(recipe, calibration is not None, weights, activations)
    scheme = dataclasses.replace(scheme, invariant=invariant)
    fp8.emit("module {}", "mlir", recipe, target="cpu")  # For what the compiler says of values.
    layers = find_layers(model)
    names = {}
    for name, value in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(value), []).append(name)
    kept = {name: "transformers keeps it in f32" for name in _find_kept(model)}
    kept.update((name, f"{reader} casts activations to the type of its weight")
                for name, reader in weight_types.find_readers(model).items() if name not in kept)
    kept.update((name, f"{reader} computes with its weight itself")
                for name, reader in weight_types.find_users(model).items() if name not in kept)
    reasons = {name: kept[name] if name in kept and not _is_quantized(module) else
               _find_reason(name, module, model, scheme, filter, names)
               for name, module in layers.items()}
    found = {name: module for name, module in layers.items() if not reasons[name]}
    if not found and layers and not any(map(_is_quantized, layers.values())):
        raise ArgumentError("expected a layer that can be quantized, but got\n"
                            + str(make_report(layers, reasons)))
    scales = {}
    if calibration is not None:
        scales = _calibrate(model, found, calibration, scheme)
        for name in found.keys() - scales.keys():
            reasons[name] = "no batch of the calibration reaches it"
    replacements = {}
    for name, module in found.items():
        if not reasons[name] and experts.find_projections(module):
            replacements[module] = experts.quantize(module, scheme)
        elif not reasons[name]:
            weight, (n, k) = plain_linears.get_weight(module), plain_linears.get_sizes(module)
            lifted = schemes.pack_weight(weight) if scheme.packed else None
            tensors = lifted.get_tensors() if lifted else schemes.quantize_weight(weight, scheme)
            tensors.update((key, value.to(module.weight.device))
                           for key, value in scales.get(name, {}).items())
            replacements[module] = QuantizedLinear(k, n, scheme, tensors, module.bias)
            replacements[module].is_transposed = converted.is_conv1d(module)
            replacements[module].exactness = lifted and lifted.exactness
            replacements[module].lost = lifted and lifted.lost
    model = replace(model, replacements)
    finish(model)
    model._fp8_report = make_report(find_layers(model), reasons)
    return invariance.make_invariant(model) if invariant else model


def finish(model):
    """What is to be done of a model once its layers are quantized, or come from a checkpoint."""
    invariance.undo(model)
    _leave_fast_paths(model)
    merged_linears.prepare(model)
    weight_types.tell(model)
    readers = weight_types.find_readers(model)
    cast = [f"{reader} of that of '{name}'" for name, reader in readers.items()
            if _is_quantized(model.get_submodule(name))]
    if cast:
        warnings.warn(f"fp8: activations are cast to the type of a weight, which is one of 8 bits now, by "
                      f"{', '.join(cast)}: checkpoints have to leave these layers in high precision",
                      stacklevel=3)
    taken = [f"'{name}' by {function}" for name, function in weight_types.find_users(model).items()
             if _is_quantized(model.get_submodule(name))]
    if taken:
        warnings.warn(f"fp8: models compute with weights themselves: {', '.join(taken)}: checkpoints have "
                      f"to leave these layers in high precision", stacklevel=3)


def _leave_fast_paths(model):
    """Has layers of torch.nn.TransformerEncoder call theirs: evaluating, they would give all weights to one kernel."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoderLayer) and any(map(_is_quantized, module.children())):
            module.activation_relu_or_gelu = 0  # What says that there is such a kernel.
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(
                getattr(layer, "activation_relu_or_gelu", 1) == 0 for layer in module.layers):
            module.use_nested_tensor = False


def report(model, batch=None, path=None, **options):
    """The Report of a model that quantize_for_inference or load_quantized returned.

    With a batch, what every recipe does to a training step of a model in high precision: a page of it
    is written to `path`, and the recipe file that says which recipe is for which layer beside it, with
    the ending .json. Returns fp8.report.Measurements then. Options are `loss`, a function of what the
    model returns, `recipes` and `note` (fp8.torch.measuring.measure).
    """
    check_model(model)
    if batch is not None:
        if path is None:
            raise ArgumentError("expected a path for the page of a batch, but got none")
        from fp8.torch import measuring
        return measuring.write(model, batch, path, **options)
    if path is not None or options:
        raise ArgumentError("expected a batch with a path and options, but got none")
    found = getattr(model, "_fp8_report", None)
    return found if found is not None else make_report(find_layers(model), {})


def replace(model, replacements):
    """Puts modules in the places, however many, of those that are the keys. Returns the
    model, or what is in its place."""
    for old, new in replacements.items():
        new.train(old.training)
        for key, hook in old._forward_pre_hooks.items():
            new.register_forward_pre_hook(
                hook, with_kwargs=key in old._forward_pre_hooks_with_kwargs)
        for key, hook in old._forward_hooks.items():
            new.register_forward_hook(hook, with_kwargs=key in old._forward_hooks_with_kwargs,
                                      always_call=key in old._forward_hooks_always_called)
    for module in list(model.modules()):
        for name, child in module._modules.items():
            if child in replacements:
                setattr(module, name, replacements[child])
    return replacements.get(model, model)


def _is_quantized(module):
    return isinstance(module, QuantizedWeight)


def find_layers(model):
    """Modules by name that have a weight to multiply with, each once."""
    layers = {}
    for name, module in model.named_modules():
        has_matrix = any(value.ndim >= 2 for value in module.parameters(recurse=False))
        if (has_matrix or _is_quantized(module) or parametrize.is_parametrized(module)) and not (
                isinstance(module, (nn.Embedding, nn.EmbeddingBag))):
            layers[name] = module
    return layers


def _find_kept(model):
    """Names of modules that transformers keeps in f32, as its own quantizers do: such a model casts
    activations to the type of their weights."""
    kept = set()
    for prefix, module in model.named_modules():
        parts = [part for name in ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict")
                 for part in getattr(module, name, None) or ()]
        if parts:
            pattern = re.compile(rf"(^|\.)({'|'.join(map(re.escape, parts))})($|\.)")
            kept.update(f"{prefix}.{name}" if prefix else name
                        for name, _ in module.named_modules() if pattern.search(name))
    return kept


def _find_reason(name, module, model, scheme, filter, names):
    """Why a layer stays as it is, or ""; `names` are those of parameters by their ids."""
    if _is_quantized(module):
        return "it was quantized before"
    if experts.find_projections(module):
        return _find_experts_reason(name, module, scheme, filter)
    if not plain_linears.is_linear(module):
        return f"a {type(module).__name__} is no nn.Linear"
    if not fits(name, module, filter):
        return "the filter leaves it out"
    if routers.is_router(name, module, model) and not _is_named(name, filter):
        return routers.REASON
    parent = model.get_submodule(name.rpartition(".")[0]) if name else None
    if isinstance(parent, nn.MultiheadAttention):
        return "nn.MultiheadAttention takes its weight and does not call it"
    if parametrize.is_parametrized(module) or not (
            converted.is_conv1d(module) or type(module) is modules.Linear
            or computes_linear(module, converted.get_class(module))):
        return f"a {type(module).__name__} has a forward of its own"
    weight = module.weight
    if weight.is_meta:
        raise ArgumentError(f"expected a weight of '{name}' that is somewhere, but got one on meta")
    if type(weight.detach()) is not torch.Tensor:
        return f"its weight is a {type(weight.detach()).__name__}"
    if weight.dtype not in schemes.ELEMENTS:
        return f"its weight is {weight.dtype}, none of f32, bf16 and f16"
    k = plain_linears.get_sizes(module)[1]
    if k % scheme.k_multiple:
        return f"K={k} is not a multiple of {scheme.k_multiple}"
    others = [other for other in names[id(weight)]
              if model.get_submodule(other.rpartition(".")[0]) is not module]
    return f"its weight is that of '{others[0]}' too" if others else ""


def _find_experts_reason(name, module, scheme, filter):
    """The same for transformers' experts."""
    if not fits(name, module, filter):
        return "the filter leaves it out"
    if not scheme.dynamic:
        return "experts have no scales that stay, of a calibration"
    for projection in experts.find_projections(module):
        weight, k = getattr(module, projection), experts.get_sizes(module, projection)[2]
        if weight.is_meta:
            raise ArgumentError(f"expected a weight of '{name}' that is somewhere, but got one on meta")
        if weight.dtype not in schemes.ELEMENTS:
            return f"its weight is {weight.dtype}, none of f32, bf16 and f16"
        if k % scheme.k_multiple:
            return f"K={k} of {projection} is not a multiple of {scheme.k_multiple}"
    return ""


def fits(name, module, filter):
    if filter is None or callable(filter):
        return filter is None or bool(filter(name, module))
    takes = False
    for pattern in [filter] if isinstance(filter, str) else filter:
        if fnmatch.fnmatchcase(name, pattern.removeprefix("!")):
            takes = not pattern.startswith("!")
    return takes


def _is_named(name, filter):
    """Whether the last glob that fits says more of a layer's own name than a `*`."""
    globs = [] if filter is None or callable(filter) else [filter] if isinstance(filter, str) else filter
    fitting = [glob for glob in globs if fnmatch.fnmatchcase(name, glob)]
    return bool(fitting) and bool(fitting[-1].rpartition(".")[2].strip("*"))


def make_report(layers, reasons):
    """The Report of layers, by name; `reasons` are those of high precision."""
    entries = []
    for name, module in layers.items():
        if _is_quantized(module):
            groups = f"{module.groups} of " if isinstance(module, experts.QuantizedGroups) else ""
            entries.append(Layer(name, "fp8", f"{groups}N={module.out_features} K={module.in_features}",
                                 module.scheme.describe()
                                 + (f", {module.exactness}" if module.exactness else "")))
            continue
        shape = (f"N={module.out_features} K={module.in_features}"
                 if isinstance(module, nn.Linear) else "x".join(
                     str(size) for size in next(iter(module.parameters()), torch.empty(0)).shape))
        entries.append(Layer(name, "high precision", shape, reasons.get(name) or
                             "it was not quantized"))
    return Report(entries)


def _calibrate(model, layers, batches, scheme):
    """The stored scales of activations, by the names of layers that a batch reaches."""
    amaxes, hooks = {}, []

    def make_hook(name):
        def record(_, arguments, keywords):
            x = arguments[0] if arguments else keywords["input"]
            if x.numel():
                amaxes.setdefault(name, []).append(x.detach().abs().amax().float())
        return record

    if isinstance(batches, (torch.Tensor, dict)):
        raise ArgumentError(f"expected a list of batches, but got one {type(batches).__name__}")
    was_training = {module: module.training for module in model.modules()}
    try:
        hooks += [module.register_forward_pre_hook(make_hook(name), with_kwargs=True)
                  for name, module in layers.items()]
        model.eval()
        with torch.no_grad():
            for batch in batches:
                if isinstance(batch, dict):
                    model(**batch)
                elif isinstance(batch, (torch.Tensor, tuple, list)):
                    model(*([batch] if isinstance(batch, torch.Tensor) else batch))
                else:
                    raise ArgumentError(f"expected a batch that is a tensor, a tuple or a "
                                        f"dictionary, but got a {type(batch).__name__}")
    finally:
        for hook in hooks:
            hook.remove()
        for module, is_training in was_training.items():
            module.training = is_training
    if layers and not amaxes:
        raise ArgumentError("expected batches that reach a layer, but got none")
    scales = {}
    for name, values in amaxes.items():
        amax = torch.stack([value.cpu() for value in values]).max().item()
        if not math.isfinite(amax):
            raise ArgumentError(f"expected finite activations of '{name}' in the calibration, but "
                                f"got an amax of {amax}")
        scales[name] = schemes.make_input_scale(amax, scheme)
    return scales
