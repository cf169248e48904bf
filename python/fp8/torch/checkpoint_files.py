"""The tensors of a checkpoint's files, by the names that a model has for them."""

import contextlib
import json
import re

import safetensors
import torch

from fp8.errors import FileError

INDEX = "model.safetensors.index.json"
METADATA = "fp8"


def read_json(path):
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(value, dict):
        raise FileError(f"{path}: expected an object, but got a {type(value).__name__}")
    return value


def make_renamer(model):
    """A function from a name of a published checkpoint to that of a model. Names whose module the model has are
    those; others become what transformers makes of them, where it knows of the model, with or without the name that
    the model has for its body."""
    modules = {name for name, _ in model.named_modules(remove_duplicate=False)}
    (renamings, joined), body = _find_renamings(model), getattr(model, "base_model_prefix", "")

    def is_known(name):
        path = name.rpartition(".")[0]
        # Experts by themselves, with a number, are no modules of the model.
        return path in modules or re.sub(r"\.\d+\.[^.]+$", "", path) in modules

    def rename(name):
        if is_known(name):
            return name
        renamed = name
        for renaming in renamings:
            renamed = renaming.rename_source_key(renamed)[0]
        for pattern, part in joined:
            renamed = re.sub(pattern, part, renamed, count=1)
        candidates = [renamed, f"{body}.{renamed}", renamed.removeprefix(f"{body}.")]
        return next(filter(is_known, candidates), renamed)
    return rename


def _find_renamings(model):
    """What transformers renames; and of tensors that it joins to one of experts, expressions of their names and those of
    parts of these experts."""
    if not hasattr(model, "config"):
        return [], []
    try:
        from transformers.conversion_mapping import get_model_conversion_mapping
        from transformers.core_model_loading import Concatenate, WeightConverter, WeightRenaming
    except ImportError:
        return [], []
    with contextlib.suppress(AttributeError, TypeError):  # A model may be none of transformers'.
        entries = get_model_conversion_mapping(model)
        joined = [(source, f"{entry.target_patterns[0].rpartition('.')[0]}.{'.'.join(source.split('.')[-2:])}")
                  for entry in entries if isinstance(entry, WeightConverter) and len(entry.operations) == 1
                  and isinstance(entry.operations[0], Concatenate) and entry.operations[0].dim == 1
                  for source in entry.source_patterns]
        return [entry for entry in entries if isinstance(entry, WeightRenaming)], joined
    return [], []


class Files:
    """The tensors of a directory. `rename` makes the names that they have here of those that they have there."""

    def __init__(self, directory, rename=lambda name: name):
        self._files, self.rules, self.stored = {}, {}, {}
        places, paths = self._find_paths(directory)
        for path in paths:
            try:
                file = safetensors.safe_open(path, "pt")
                self.rules.update(json.loads((file.metadata() or {}).get(METADATA, "{}")))
            except (OSError, ValueError, safetensors.SafetensorError) as error:
                raise FileError(f"{path}: {error}") from error
            for name in file.keys():
                if name in self._files and places is None:
                    raise FileError(f"{path}: expected each tensor in one file, but got '{name}' again")
                if places is None or places.get(name) == path.name:
                    self._files[name] = file
            missing = next((name for name, place in (places or {}).items()
                            if place == path.name and name not in self._files), None)
            if missing:
                raise FileError(f"{path}: expected '{missing}', as {INDEX} says, but it has none")
        for name in self._files:
            own = rename(name)
            if own in self.stored:
                raise FileError(f"{directory}: expected one tensor for '{own}', but got '{self.stored[own]}' and '{name}'")
            self.stored[own] = name
        self._layers = {}
        for name in self.stored:
            layer, _, own = name.rpartition(".")
            self._layers.setdefault(layer, {})[own] = name

    @staticmethod
    def _find_paths(directory):
        """In which file the index has each tensor, None without one, and the files."""
        index, places = directory / INDEX, None
        if index.exists():
            places = read_json(index).get("weight_map")
            if not isinstance(places, dict) or not all(isinstance(place, str) for place in places.values()):
                raise FileError(f"{index}: expected a weight_map, but got none")
            paths = [directory / name for name in sorted(set(places.values()))]
        else:
            paths = sorted(directory.glob("*.safetensors"))
        if not paths:
            raise FileError(f"{directory}: expected .safetensors, but got none")
        return places, paths

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._files.clear()

    @property
    def names(self):
        return list(self.stored)

    def __contains__(self, name):
        return name in self.stored

    def load(self, name, index=None):
        """A tensor, or what is at an index of its first dimension."""
        stored = self.stored[name]
        file = self._files[stored]
        try:
            if index is None:
                return file.get_tensor(stored)
            return file.get_slice(stored)[index]
        except (OSError, RuntimeError, ValueError, safetensors.SafetensorError) as error:
            raise FileError(f"expected to read '{stored}', but got: {error}") from error

    def get_shape(self, name):
        stored = self.stored[name]
        return tuple(self._files[stored].get_slice(stored).get_shape())

    def get_dtype(self, name):
        """The type of a tensor, as the file has it, "nothing" without one."""
        stored = self.stored.get(name)
        return "nothing" if stored is None else self._files[stored].get_slice(stored).get_dtype()

    def get_layer(self, layer):
        """The names of what a layer has, by its own."""
        return self._layers.get(layer, {})


def get_dtype_of(text):
    """PyTorch's dtype for one of safetensors."""
    return {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
            "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "F8_E8M0": torch.float8_e8m0fnu,
            "U8": torch.uint8, "I8": torch.int8, "I32": torch.int32, "I64": torch.int64,
            "BOOL": torch.bool}.get(text)
