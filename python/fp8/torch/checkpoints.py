"""Quantized models as directories of config.json and .safetensors, as they are published and as vLLM reads them."""

import json
import warnings
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import nn

from fp8 import files
from fp8.errors import ArgumentError, FileError, MismatchError, UnsupportedError
from fp8.torch import experts, inference, invariance, layouts, plain_linears, schemes, stored
from fp8.torch.checkpoint_files import INDEX, METADATA, Files, get_dtype_of, make_renamer, read_json
from fp8.torch.dense import check_model, make_dense
from fp8.torch.experts import QuantizedGroups
from fp8.torch.quantized_linear import QuantizedLinear, QuantizedWeight

_CONFIG, _TENSORS = "config.json", "model.safetensors"
_SCALE_INV = "weight_scale_inv"
# ModelOpt's, a file of its own before it was a part of config.json.
_MODELOPT_CONFIG = "hf_quant_config.json"
# Scales of a cache of keys and values, and bounds of those of activations, which nothing here uses.
_UNUSED = (".k_scale", ".v_scale", ".q_scale", ".input_scale_ub")

# What a model was loaded from: the contents of its configs by name, (name, dtype) of tensors that are not quantized by
# their names in the model, and tensors that the model has no place for.
Origin = namedtuple("Origin", "configs names left")


def save_quantized(model, directory, layout="compressed-tensors", config=None, max_shard_size=None):
    """Writes DIRECTORY/model.safetensors and config.json, each whole or not at all.

    - layout: "compressed-tensors"; "fp8" for models by current or block; "mxfp4" for experts in
      MXFP4 alone, as gpt-oss has them; or "original" for a model of load_quantized, which gets the
      tensors that it had, under the names that they had, bit by bit;
    - config: the rest of config.json, a dictionary; without it, that of model.config, as
      Transformers' models have it, else of the config.json that is there;
    - max_shard_size: bytes of tensors in a file, where there are to be several with an index.

    Raises ArgumentError for a model without quantized layers, UnsupportedError for what the
    layout does not have, FileError.
    """
    check_model(model)
    if layout not in _WRITERS:
        raise ArgumentError(f"expected the layout {', '.join(_WRITERS)}, but got {layout!r}")
    if hasattr(model, "_fp8_cut"):
        raise UnsupportedError("expected a whole model, but got the part of rank {} of {}".format(*model._fp8_cut))
    layers = {name: module for name, module in model.named_modules() if isinstance(module, QuantizedWeight)}
    if not layers:
        raise ArgumentError("expected a model with quantized layers; quantize_for_inference makes "
                            "one")
    directory = Path(directory)
    if config is None and layout != "original":
        config = _get_config(model, directory)
    entries, configs = _WRITERS[layout](model, layers, config)
    metadata = {"format": "pt"}
    if layout != "original":
        metadata[METADATA] = _write_rules(layers)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _write_shards(directory, entries, metadata, max_shard_size)
        for name, value in configs.items():
            files.write_text(directory / name, json.dumps(value, indent=2) + "\n")
    except (OSError, safetensors.SafetensorError) as error:
        raise FileError(f"{directory}: {error}") from error


def _write_shards(directory, entries, metadata, max_shard_size):
    """Files of `entries`: how many bytes a tensor has, and a function that makes it, by name."""
    shards, size = [[]], 0
    for name, (nbytes, _) in entries.items():
        if max_shard_size is not None and shards[-1] and size + nbytes > max_shard_size:
            shards.append([])
            size = 0
        shards[-1].append(name)
        size += nbytes
    places = {}
    for i, names in enumerate(shards):
        file = _TENSORS if len(shards) == 1 else f"model-{i + 1:05}-of-{len(shards):05}.safetensors"
        places.update(dict.fromkeys(names, file))
        tensors = {name: entries[name][1]() for name in names}
        files.replace(directory / file, lambda path, tensors=tensors: safetensors.torch.save_file(
            tensors, path, metadata))
    if len(shards) > 1:
        total = sum(nbytes for nbytes, _ in entries.values())
        files.write_text(directory / INDEX, json.dumps(
            {"metadata": {"total_size": total}, "weight_map": places}, indent=2) + "\n")
    else:
        # Else it would say that there are other files.
        (directory / INDEX).unlink(missing_ok=True)


def _write_layout(write):
    """A writer of a layout whose config `write` makes of Schemes by name and of names that have none."""
    def make(model, layers, config):
        others = [name for name, module in model.named_modules() if plain_linears.is_linear(module)]
        quantization = write({_get_target(name, layer): layer.scheme for name, layer in layers.items()}, others)
        entries, covered = {}, set()
        for name, layer in layers.items():
            if isinstance(layer, QuantizedGroups) or layer.scheme.packed or layer.scheme.arranged:
                _add_records(entries, layer, _make_records(name, layer))
                covered |= _name_parameters(name, layer)
        is_inverse = "weight_block_size" in quantization

        def rename(name):
            path, _, last = name.rpartition(".")
            if is_inverse and path in layers and last == "weight_scale":
                return f"{path}.{_SCALE_INV}" if path else _SCALE_INV
            return name
        _add_rest(entries, model, covered, rename)
        return entries, {_CONFIG: {**config, "quantization_config": quantization}}
    return make


def _name_parameters(name, layer):
    """The names that a model has for what Records are of: all of experts, and the weight of a layer."""
    return {f"{name}.{own}" if name else own for own, _ in layer.named_parameters()
            if own != "bias" or isinstance(layer, QuantizedGroups)}


def _get_target(name, layer):
    """What a config calls a layer, or the layers of all experts."""
    return f"re:.*{name.rpartition('.')[0]}\\.\\d+\\..*" if isinstance(layer, QuantizedGroups) else name


def _make_records(name, layer):
    """Records of a weight as compressed-tensors has it, of each expert by itself."""
    scheme, n, k = layer.scheme, layer.out_features, layer.in_features
    if not isinstance(layer, QuantizedGroups):
        return [_make_record(f"{name}.{own}", shape, dtype, own) for own, (shape, dtype) in scheme.get_stored(n, k).items()]
    path, _, projection = name.rpartition(".")
    if layer.bias is not None:
        raise UnsupportedError(f"expected experts without biases in this layout, but got '{name}' with some; the layouts "
                               f"mxfp4 and original have them")
    parts = stored.PARTS[projection][0]
    return [_make_record(f"{path}.{i}.{part}.{own}", shape, dtype, own, i, number, len(parts))
            for i in range(layer.groups) for number, part in enumerate(parts)
            for own, (shape, dtype) in scheme.get_stored(n // len(parts), k).items()]


def _make_record(name, shape, dtype, own, *place):
    return stored.Record(name, _DTYPES[dtype], shape, own, *(place or (None, 0, 1)))


_DTYPES = {get_dtype_of(text): text for text in ("F32", "BF16", "F16", "U8", "F8_E4M3", "F8_E8M0")}


def _add_records(entries, layer, records):
    for record in records:
        size = get_dtype_of(record.dtype).itemsize
        for extent in record.shape:
            size *= extent
        entries[record.name] = size, lambda layer=layer, record=record: make_dense(stored.restore(layer, record)).clone()


def _add_rest(entries, model, covered, rename, dtypes=None):
    """What a model has but for the names `covered`, by the names that `rename` makes, None for none."""
    seen, storages = set(), set()
    for name, value in model.state_dict().items():
        if name in covered:
            continue
        # What is tied is stored once, under the first name; other views are copied.
        place = (value.data_ptr(), value.shape, value.stride(), value.dtype, value.is_neg())
        if place in seen and value.numel() and dtypes is None:
            continue
        seen.add(place)
        other = rename(name)
        if other is None or other in entries:
            continue
        storage = value.untyped_storage()
        is_alone = storage.nbytes() == value.nbytes and storage.data_ptr() not in storages
        storages.add(storage.data_ptr())
        dtype = (dtypes or {}).get(name, value.dtype)

        def make(value=value, is_alone=is_alone, dtype=dtype):
            dense = make_dense(value)
            return dense.to(dtype) if dtype != dense.dtype else dense if is_alone else dense.clone()
        entries[other] = value.numel() * dtype.itemsize, make


def _write_mxfp4(model, layers, config):
    """As gpt-oss has experts: the config and the tensors."""
    entries, covered = {}, set()
    for name, layer in layers.items():
        covered |= _name_parameters(name, layer)
        if not isinstance(layer, QuantizedGroups) or not layer.scheme.is_mxfp4:
            raise UnsupportedError(f"expected experts in MXFP4 alone in the layout mxfp4, but got '{name}': "
                                   f"{layer.scheme.describe()}")
        groups, n, k = layer.groups, layer.out_features, layer.in_features
        records = [stored.Record(f"{name}_blocks", "U8", (groups, n, k // 32, 16), "weight_packed", None, 0, 1),
                   stored.Record(f"{name}_scales", "U8", (groups, n, k // 32), "weight_scale", None, 0, 1)]
        if layer.bias is not None:
            records.append(stored.Record(f"{name}_bias", _DTYPES[layer.bias.dtype], (groups, n), "bias", None, 0, 1))
        _add_records(entries, layer, records)
    _add_rest(entries, model, covered, lambda name: name)
    others = [name for name, module in model.named_modules() if isinstance(module, (nn.Linear, nn.Embedding))]
    return entries, {_CONFIG: {**config, "quantization_config": {
        "modules_to_not_convert": others, "quant_method": "mxfp4"}}}


def _write_original(model, layers, config):
    """What load_quantized read."""
    origin = getattr(model, "_fp8_origin", None)
    wrong = next((name for name, layer in layers.items() if layer.origin is None), None)
    if origin is None or wrong is not None:
        raise ArgumentError("expected a model of load_quantized for the layout original, but got "
                            + (f"'{wrong}', which was quantized here" if wrong else "another"))
    entries = {}
    for name, layer in layers.items():
        kept = layer.origin.kept
        _add_records(entries, layer, [record for record in layer.origin.records if record.name not in kept])
        entries.update((other, (value.nbytes, lambda value=value: value)) for other, value in kept.items())
    dense = next((name for name, (other, _) in origin.names.items() if other is None), None)
    if dense:
        raise UnsupportedError(f"expected '{dense}' as one tensor in the checkpoint, but it was made of several")
    covered = set().union(*(_name_parameters(name, layer) for name, layer in layers.items()))
    _add_rest(entries, model, covered, lambda name: origin.names[name][0],
              {name: dtype for name, (_, dtype) in origin.names.items()})
    entries.update((name, (value.nbytes, lambda value=value: value)) for name, value in origin.left.items())
    configs = dict(origin.configs)
    if config is not None:
        kept = {key: value for key, value in configs[_CONFIG].items()
                if key in ("quantization_config", "compression_config")}
        configs[_CONFIG] = {**config, **kept}
    return entries, configs


_WRITERS = {"compressed-tensors": _write_layout(layouts.write_compressed_tensors), "fp8": _write_layout(layouts.write_fp8),
            "mxfp4": _write_mxfp4, "original": _write_original}


def _write_rules(layers):
    """What no config says of how activations are scaled, for those who read it here."""
    return json.dumps({name: {"rule": layer.scheme.rule, "accumulate": layer.scheme.accumulate,
                              **({"input_block": layer.scheme.input_block} if layer.scheme.is_mxfp4 else {})}
                       for name, layer in layers.items()})


def _add_rule(scheme, entry):
    try:
        rule = tuple((str(key), str(value)) for key, value in entry["rule"])
        block = entry.get("input_block", scheme.input_block)
        scheme = scheme if block or not scheme.packed else schemes.leave_activations(scheme)
        return replace(scheme, rule=rule, accumulate=str(entry["accumulate"]), input_block=block and tuple(block))
    except (KeyError, TypeError, ValueError):
        raise FileError(f"expected the metadata '{METADATA}' to be what save_quantized wrote, but "
                        f"got {entry!r}") from None


def _get_config(model, directory):
    if hasattr(getattr(model, "config", None), "to_dict"):
        return model.config.to_dict()
    path = directory / _CONFIG
    return read_json(path) if path.exists() else {}


def load_quantized(model, directory, strict=True, activations=None, device=None, invariant=False):
    """Gives a model of plain layers what a quantized checkpoint has, its own or another's of
    compressed-tensors, fp8 as vLLM and DeepSeek have it, ModelOpt or gpt-oss's mxfp4: layers with
    codes become QuantizedLinear, experts with codes QuantizedExperts, all else is loaded. Tensors
    are read one by one. Returns the model, which is changed; parameters on the device meta get
    values on the CPU, and a warning names buffers there that are not persistent, which get none.

    - model: with the names that the checkpoint has, or one of transformers, which knows the names;
    - directory: with config.json, and model.safetensors, or several with an index;
    - strict: tensors that the model has no place for are an error, but for scales of a cache of
      keys and values, which nothing here uses;
    - activations: "bf16" for activations as they are, of whatever type, "fp8" for those in FP8,
      also where the checkpoint says otherwise; None is what it says, and of MXFP4 "fp8";
    - device: where values of parameters on meta go, in place of the CPU;
    - invariant: as quantize_for_inference has it.

    Raises, with the model as it was, FileError for files that are missing or broken,
    UnsupportedError for a quantization that is not computed here, MismatchError for names or
    shapes that differ.
    """
    check_model(model)
    directory, device = Path(directory), torch.device(device or "cpu")
    configs = {_CONFIG: read_json(directory / _CONFIG)}
    config = configs[_CONFIG]
    quantization = config.get("quantization_config") or config.get("compression_config")
    if not quantization and (directory / _MODELOPT_CONFIG).exists():
        configs[_MODELOPT_CONFIG] = read_json(directory / _MODELOPT_CONFIG)
        quantization = {**configs[_MODELOPT_CONFIG], "quant_method": "modelopt"}
    if not isinstance(quantization, dict) or not quantization:
        raise FileError(f"{directory / _CONFIG}: expected a quantization_config, but got none")
    find_scheme = layouts.read(quantization, config)

    def get_scheme(name, is_own):
        scheme = find_scheme(name)
        if isinstance(scheme, str):
            raise MismatchError(f"expected '{name}' in high precision, since {scheme}, but got codes")
        if is_own and name in files.rules:
            scheme = _add_rule(scheme, files.rules[name])
        return replace(schemes.with_activations(scheme, activations, name), invariant=invariant)

    with Files(directory, make_renamer(model)) as files:
        replacements, used, reasons = {}, set(), {}
        for name, module in model.named_modules():
            if module in replacements:
                continue
            if plain_linears.is_linear(module):
                made = _load_linear(files, name, module, get_scheme, used, device)
            elif experts.find_projections(module):
                made = _load_experts(files, name, module, get_scheme, used, device)
            else:
                continue
            if made is None:
                reasons[name] = f"the checkpoint has it as {files.get_dtype(f'{name}.weight')}"
            else:
                replacements[module] = made
        if not replacements:
            raise MismatchError(f"{directory}: expected codes of a layer of the model, but got "
                                f"none; names are those of {', '.join(files.names[:3])}")
        rest, names = _load_rest(model, replacements, files, used, strict)
        left = {files.stored[name]: files.load(name) for name in files.names
                if name not in used and name.endswith(_UNUSED)}
    model = inference.replace(model, replacements)
    _assign(model, rest, device)
    inference.finish(model)
    absent = [name for name, value in model.named_buffers() if value.is_meta]
    if absent:
        warnings.warn(f"{', '.join(absent)}: no checkpoint has such buffers, and they are on meta: "
                      f"compute them before the model is called", stacklevel=2)
    model._fp8_report = inference.make_report(inference.find_layers(model), reasons)
    model._fp8_origin = Origin(configs, names, left)
    return invariance.make_invariant(model) if invariant else model


def _get_device(value, device):
    return device if value.is_meta else value.device


def _load_linear(files, name, module, get_scheme, used, device):
    """The QuantizedLinear of a layer, or None for one without codes."""
    found = stored.find(files, name, stored.LINEAR)
    if found is None:
        return None
    scheme = get_scheme(name, True)
    own = {f"{name}.{other}" for other in files.get_layer(name)
           if other.startswith(("weight", "input_")) and not f".{other}".endswith(_UNUSED)}
    extra = sorted(other for other in own - set(found.tensors.values()) if not other.endswith(".weight_shape"))
    if extra:
        raise MismatchError(f"expected '{name}' without {', '.join(extra)}, as its config says, but got them")
    used.update(own | set(found.tensors.values()))
    return stored.load_linear(files, name, module, scheme, found, _get_device(module.weight, device))


def _load_experts(files, name, module, get_scheme, used, device):
    """What takes the place of experts, or None for those without codes."""
    projections, plain = [], []
    for projection in experts.find_projections(module):
        label = f"{name}.{projection}" if name else projection
        found = stored.find(files, label, stored.STACKED)
        if found is None:
            found = stored.find_parts(files, name, projection) or stored.find_stacked(files, name, projection)
        if found is None:
            plain.append(label)
            continue
        stacks = stored.get_stacks(found)
        pieces = stacks or [piece for pieces in found for piece in pieces]
        first = pieces[0].tensors["codes"]
        scheme = get_scheme(label if stacks else first.rpartition(".")[0], False)
        if label in files.rules:
            scheme = _add_rule(scheme, files.rules[label])
        place = _get_device(getattr(module, projection), device)
        projections.append(stored.load_projection(files, label, projection, module, scheme, found, place))
        used.update(tensor for piece in pieces for tensor in piece.tensors.values())
        used.add(f"{label}_bias")
    if projections and plain:
        raise MismatchError(f"expected codes of '{plain[0]}', as the other projection has, but got none")
    return experts.make(module, *projections) if projections else None


def _load_rest(model, replacements, files, used, strict):
    """The tensors of all that is not quantized, by name, checked; and (name, dtype) that each has there."""
    values, names = {}, {}
    expected = {name: value for name, value in model.state_dict(keep_vars=True).items()}
    codes, plain = set(), {}
    for name, module in model.named_modules(remove_duplicate=False):
        for projection in experts.find_projections(module):
            label = f"{name}.{projection}" if name else projection
            if module in replacements:
                codes.update((label, f"{label}_bias"))
            else:
                plain[label] = name, projection, module
        if module in replacements and plain_linears.is_linear(module):
            codes.add(f"{name}.weight" if name else "weight")
    ties = {}
    for name, value in expected.items():
        ties.setdefault(id(value), []).append(name)
    for name, value in expected.items():
        if name in codes:
            continue
        source = next((other for other in [name, *ties[id(value)]] if other in files), None)
        if source is None and name in plain:
            loaded, sources = stored.load_dense(files, *plain[name])
            used.update(sources)
            names[name] = None, value.dtype
        elif source is None:
            raise MismatchError(f"expected '{name}' in the checkpoint, but it has none")
        else:
            used.add(source)
            loaded = files.load(source)
            names[name] = files.stored[source], loaded.dtype
        if loaded.shape != value.shape:
            raise MismatchError(f"expected '{name}' of {tuple(value.shape)}, but got "
                                f"{tuple(loaded.shape)}")
        if not value.is_meta or loaded.dtype == value.dtype:
            values[name] = loaded
        else:
            values[name] = loaded.to(value.dtype)
    left = [name for name in files.names if name not in used and not name.endswith(_UNUSED)]
    if left and strict:
        raise MismatchError(f"expected a model with {', '.join(left[:5])}"
                            f"{' and others' if len(left) > 5 else ''}, which the checkpoint has")
    return values, names


def _assign(model, values, device):
    """Copies values where there is memory, else puts them there, tied ones once."""
    placed = {}
    with torch.no_grad():
        for name, value in values.items():
            path, _, last = name.rpartition(".")
            module = model.get_submodule(path)
            old = getattr(module, last)
            if old.device.type != "meta":
                old.copy_(value)
                continue
            if id(old) not in placed:
                value = value.to(device=device, dtype=old.dtype)
                # The old one is kept, so that no other gets its id.
                placed[id(old)] = old, nn.Parameter(value, old.requires_grad) if isinstance(
                    old, nn.Parameter) else value
            setattr(module, last, placed[id(old)][1])
