"""Quantized models as directories of config.json and .safetensors, as vLLM reads them."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import nn

from fp8 import files
from fp8.errors import ArgumentError, FileError, MismatchError
from fp8.torch import inference, layouts, merged_linears
from fp8.torch.dense import make_dense
from fp8.torch.quantized_linear import QuantizedLinear

_CONFIG, _TENSORS, _INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
_SCALE_INV = "weight_scale_inv"
# ModelOpt's: a file of its own before it was a part of config.json, and its names in layers of
# NVFP4. Scales for the tensor are what compressed-tensors divides by.
_MODELOPT_CONFIG, _MODELOPT_SCALE = "hf_quant_config.json", "weight_scale_2"
_MODELOPT_NAMES = {"weight": "weight_packed", _MODELOPT_SCALE: "weight_global_scale",
                   "input_scale": "input_global_scale"}
_METADATA = "fp8"
_SCALES = (torch.bfloat16, torch.float16, torch.float8_e8m0fnu)


def save_quantized(model, directory, layout="compressed-tensors", config=None):
    """Writes DIRECTORY/model.safetensors and config.json, each whole or not at all.

    - layout: "compressed-tensors", or "fp8" for models by current or block;
    - config: the rest of config.json, a dictionary; without it, that of model.config, as
      Transformers' models have it, else of the config.json that is there.

    Raises ArgumentError for a model without quantized layers, UnsupportedError for what the
    layout does not have, FileError.
    """
    if layout not in ("compressed-tensors", "fp8"):
        raise ArgumentError(f"expected the layout compressed-tensors or fp8, but got {layout!r}")
    layers = {name: module.scheme for name, module in model.named_modules()
              if isinstance(module, QuantizedLinear)}
    if not layers:
        raise ArgumentError("expected a model with quantized layers; quantize_for_inference makes "
                            "one")
    others = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    write = (layouts.write_fp8 if layout == "fp8" else layouts.write_compressed_tensors)
    quantization = write(layers, others)
    tensors, seen, storages = {}, set(), set()
    for name, value in model.state_dict().items():
        path, _, last = name.rpartition(".")
        if "weight_block_size" in quantization and path in layers and last == "weight_scale":
            name = f"{path}.{_SCALE_INV}" if path else _SCALE_INV
        # What is tied is stored once, under the first name; other views are copied.
        place = (value.data_ptr(), value.shape, value.stride(), value.dtype, value.is_neg())
        if place in seen and value.numel():
            continue
        seen.add(place)
        storage = value.untyped_storage()
        is_alone = storage.nbytes() == value.nbytes and storage.data_ptr() not in storages
        storages.add(storage.data_ptr())
        dense = make_dense(value)
        tensors[name] = dense if is_alone else dense.clone()
    directory = Path(directory)
    if config is None:
        config = _get_config(model, directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        files.replace(directory / _TENSORS,
                      lambda path: safetensors.torch.save_file(tensors, path, {
                          "format": "pt", _METADATA: _write_rules(layers)}))
        text = json.dumps({**config, "quantization_config": quantization}, indent=2)
        files.write_text(directory / _CONFIG, text + "\n")
    except (OSError, safetensors.SafetensorError) as error:
        raise FileError(f"{directory}: {error}") from error


def _write_rules(layers):
    """What no config says of how activations are scaled, for those who read it here."""
    return json.dumps({name: {"rule": scheme.rule, "accumulate": scheme.accumulate}
                       for name, scheme in layers.items()})


def _add_rule(scheme, entry):
    try:
        rule = tuple((str(key), str(value)) for key, value in entry["rule"])
        return replace(scheme, rule=rule, accumulate=str(entry["accumulate"]))
    except (KeyError, TypeError, ValueError):
        raise FileError(f"expected the metadata '{_METADATA}' to be what save_quantized wrote, but "
                        f"got {entry!r}") from None


def _get_config(model, directory):
    if hasattr(getattr(model, "config", None), "to_dict"):
        return model.config.to_dict()
    path = directory / _CONFIG
    return _read_json(path) if path.exists() else {}


def load_quantized(model, directory, strict=True):
    """Gives a model of plain layers what a quantized checkpoint has, its own or another's of
    compressed-tensors, vLLM's fp8 or ModelOpt: layers with codes become QuantizedLinear, all
    else is loaded. Returns the model, which is changed; parameters on the device meta get values on
    the CPU, and a warning names buffers there that are not persistent, which get none.

    - model: with the names that the checkpoint has;
    - directory: with config.json, and model.safetensors, or several with an index;
    - strict: tensors that the model has no place for are an error, but for scales of a cache of
      keys and values, which nothing here uses.

    Raises, with the model as it was, FileError for files that are missing or broken,
    UnsupportedError for a quantization that is not computed here, MismatchError for names or
    shapes that differ.
    """
    directory = Path(directory)
    config = _read_json(directory / _CONFIG)
    quantization = config.get("quantization_config") or config.get("compression_config")
    if not quantization and (directory / _MODELOPT_CONFIG).exists():
        quantization = {**_read_json(directory / _MODELOPT_CONFIG), "quant_method": "modelopt"}
    if not quantization:
        raise FileError(f"{directory / _CONFIG}: expected a quantization_config, but got none")
    get_scheme = layouts.read(quantization)
    with _Files(directory) as files:
        replacements, used, reasons = {}, set(), {}
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and module not in replacements:
                tensors = files.find_quantized(name)
                if tensors:
                    used.update(tensors.values())
                    scheme = get_scheme(name)
                    if isinstance(scheme, str):
                        raise MismatchError(f"expected '{name}' in high precision, since {scheme}, "
                                            f"but got codes")
                    if name in files.rules:
                        scheme = _add_rule(scheme, files.rules[name])
                    replacements[module] = _load_layer(name, module, scheme, tensors, files)
                else:
                    reasons[name] = f"the checkpoint has it as {files.get_dtype(name)}"
        if not replacements:
            raise MismatchError(f"{directory}: expected codes of a layer of the model, but got "
                                f"none; names are those of {', '.join(files.names[:3])}")
        rest = _load_rest(model, replacements, files, used, strict)
    model = inference.replace(model, replacements)
    _assign(model, rest)
    merged_linears.prepare(model)
    left = [name for name, value in model.named_buffers() if value.is_meta]
    if left:
        warnings.warn(f"{', '.join(left)}: no checkpoint has such buffers, and they are on meta: "
                      f"compute them before the model is called", stacklevel=2)
    model._fp8_report = inference.make_report(inference.find_layers(model), reasons)
    return model


def _load_layer(name, module, scheme, names, files):
    """A QuantizedLinear of the tensors whose `names` in the files are by their own."""
    n, k = module.out_features, module.in_features
    tensors = {}
    for own, (shape, dtype) in scheme.get_tensors(n, k).items():
        if own not in names:
            raise MismatchError(f"expected '{name}.{own}' in the checkpoint, but got "
                                f"{', '.join(names.values())}")
        value = files.load(names[own])
        if own.endswith("global_scale") and not names[own].endswith("global_scale"):
            value = 1 / value.float()
        # Scales are f32, of the model's type or E8M0, which f32 holds; one by itself may have no
        # dimension.
        if dtype == torch.float32 and value.dtype in _SCALES:
            value = value.float()
        if shape == (1,) and value.numel() == 1 or len(shape) == 2 and (
                shape[1] == 1 and tuple(value.shape) == shape[:1]):
            value = value.reshape(shape)
        device = module.weight.device
        tensors[own] = value if device.type == "meta" else value.to(device)
    left = set(names) - set(tensors) - {"weight_shape"}
    if left:
        raise MismatchError(f"expected '{name}' without {', '.join(sorted(left))}, as its config "
                            f"says, but got them")
    try:
        return QuantizedLinear(k, n, scheme, tensors, module.bias)
    except ArgumentError as error:
        raise MismatchError(f"'{name}': {error}") from error


def _load_rest(model, replacements, files, used, strict):
    """The tensors of all that is not quantized, by name, checked."""
    values = {}
    expected = {name: value for name, value in model.state_dict(keep_vars=True).items()}
    codes = {f"{name}.weight" for name, module in model.named_modules(remove_duplicate=False)
             if module in replacements}
    ties = {}
    for name, value in expected.items():
        ties.setdefault(id(value), []).append(name)
    for name, value in expected.items():
        if name in codes:
            continue
        source = next((other for other in [name, *ties[id(value)]] if other in files), None)
        if source is None:
            raise MismatchError(f"expected '{name}' in the checkpoint, but it has none")
        used.add(source)
        loaded = files.load(source)
        if loaded.shape != value.shape:
            raise MismatchError(f"expected '{name}' of {tuple(value.shape)}, but got "
                                f"{tuple(loaded.shape)}")
        values[name] = loaded
    left = [name for name in files.names if name not in used and not name.endswith(
        (".k_scale", ".v_scale", ".q_scale"))]
    if left and strict:
        raise MismatchError(f"expected a model with {', '.join(left[:5])}"
                            f"{' and others' if len(left) > 5 else ''}, which the checkpoint has")
    return values


def _assign(model, values):
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
                value = value.to(old.dtype)
                # The old one is kept, so that no other gets its id.
                placed[id(old)] = old, nn.Parameter(value, old.requires_grad) if isinstance(
                    old, nn.Parameter) else value
            setattr(module, last, placed[id(old)][1])


def _read_json(path):
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(value, dict):
        raise FileError(f"{path}: expected an object, but got a {type(value).__name__}")
    return value


class _Files:
    """The tensors of a directory by name."""

    def __init__(self, directory):
        index = directory / _INDEX
        try:
            paths = [directory / name for name in sorted(set(
                _read_json(index)["weight_map"].values()))] if index.exists() else sorted(
                    directory.glob("*.safetensors"))
        except (KeyError, AttributeError) as error:
            raise FileError(f"{index}: expected a weight_map, but got none") from error
        if not paths:
            raise FileError(f"{directory}: expected .safetensors, but got none")
        self._files, self.rules = {}, {}
        for path in paths:
            try:
                file = safetensors.safe_open(path, "pt")
                self.rules.update(json.loads((file.metadata() or {}).get(_METADATA, "{}")))
            except (OSError, ValueError, safetensors.SafetensorError) as error:
                raise FileError(f"{path}: {error}") from error
            self._files.update(dict.fromkeys(file.keys(), file))
        self._layers = {}
        for name in self._files:
            layer, _, own = name.rpartition(".")
            self._layers.setdefault(layer, {})[own] = name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._files.clear()

    @property
    def names(self):
        return list(self._files)

    def __contains__(self, name):
        return name in self._files

    def load(self, name):
        return self._files[name].get_tensor(name)

    def get_dtype(self, layer):
        """The type of a layer's weight, as the file has it, "nothing" without one."""
        name = self._layers.get(layer, {}).get("weight")
        return self._files[name].get_slice(name).get_dtype() if name else "nothing"

    def find_quantized(self, layer):
        """The names of a layer's codes and scales by what they are called in the layer, or
        nothing where it has no codes."""
        tensors = self._layers.get(layer, {})
        if _MODELOPT_SCALE in tensors:
            tensors = {_MODELOPT_NAMES.get(own, own): name for own, name in tensors.items()}
        if "weight_packed" not in tensors and self.get_dtype(layer) != "F8_E4M3":
            return {}
        return {"weight_scale" if own == _SCALE_INV else own: name for own, name in tensors.items()
                if own.startswith(("weight", "input_"))}
