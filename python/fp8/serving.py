"""What the plug-ins for vLLM and SGLang have in common: which layers are quantized and how, their
parameters, and the programs that compute them.

Both ask a config for a method for each layer, let it make parameters of the layer's shard, load a
checkpoint into these, let it process them, and then compute with it.
"""

import dataclasses
import json

import torch
from torch import nn

from fp8 import compiler
from fp8.errors import ArgumentError, UnsupportedError
from fp8.recipes import get_text
from fp8.torch import inference, schemes
from fp8.torch.quantized_linear import compute

METHOD = "fp8-mlir"
# Activations that programs take.
DTYPES = [torch.bfloat16, torch.float16, torch.float32]
# Hopper: what kernels are for.
CAPABILITY = 90


class Choice:
    """Which layers are quantized, and how: what `quantization_config` of a model's config.json holds.

    - recipe, weights, activations, filter: as fp8.torch.quantize_for_inference has them, of a
      checkpoint in high precision; names are those of the checkpoint; lm_head stays by default;
    - layers: what fp8.transformers wrote: the names of quantized layers by their schemes, whose codes
      the checkpoint has.
    """

    KEYS = "recipe", "weights", "activations", "filter", "layers"

    def __init__(self, recipe="rowwise", weights=None, activations=None, filter=None, layers=None):
        self.recipe, self.filter = get_text(recipe), filter or ["*", "!*lm_head"]
        self._layers = None
        self._scheme = schemes.make_scheme(self.recipe, False, weights, activations)
        if layers is not None:
            self._layers = {name: schemes.Scheme.read(json.dumps(group["scheme"]))
                            for group in layers for name in group["names"]}

    @classmethod
    def read(cls, config):
        """Takes a dictionary, in which frameworks have entries of their own, too."""
        if config.get("training"):
            raise ArgumentError("expected a config of inference, but got one of training")
        return cls(**{key: config[key] for key in cls.KEYS if config.get(key) is not None})

    @property
    def has_codes(self):
        """Whether the checkpoint has codes."""
        return self._layers is not None

    def find(self, name, parts):
        """The Scheme of a layer, None for high precision. `parts` are the last components of the names
        of what was joined into it, as q_proj, k_proj and v_proj into qkv_proj, by that of its own.
        Raises UnsupportedError where these differ."""
        parent, _, own = name.rpartition(".")
        names = [f"{parent}.{part}" if parent else part for part in parts.get(own, [own])]
        found = {self._find_one(each) for each in names}
        if len(found) > 1:
            raise UnsupportedError(f"expected the parts of '{name}' to be quantized alike, but "
                                   f"{', '.join(names)} are not")
        return found.pop()

    def _find_one(self, name):
        if self._layers is not None:
            return self._layers.get(name)
        return self._scheme if inference.fits(name, None, self.filter) else None


class Config:
    """What both frameworks ask a quantization config for; comes before their own base class.

    Has `linear_layer`, their class of layers, and makes `method` or `unquantized` for one. `options` are
    those of Choice.
    """

    linear_layer = method = unquantized = None

    def __init__(self, **options):
        super().__init__()
        self.choice = Choice(**options)

    @classmethod
    def get_name(cls):
        return METHOD

    @classmethod
    def get_supported_act_dtypes(cls):
        return list(DTYPES)

    @classmethod
    def get_min_capability(cls):
        return CAPABILITY

    @staticmethod
    def get_config_filenames():
        return []

    @classmethod
    def from_config(cls, config):
        made = cls()
        made.choice = Choice.read(config)
        return made

    def get_quant_method(self, layer, prefix):
        if not isinstance(layer, self.linear_layer):
            return None  # Embeddings, attention and experts stay as they are.
        scheme = self.choice.find(prefix, self.packed_modules_mapping)
        if scheme is None:
            return self.unquantized()
        check_device()
        return self.method(scheme, self, prefix)


class Method:
    """What a linear method of either framework does; a class beside theirs says of what `parameters` are:
    their module with ModelWeightParameter and the like."""

    parameters = None

    def __init__(self, scheme, config, name=""):
        self.quant_config, self.name, self.is_plain = config, name, False
        self._set(scheme)

    def _set(self, scheme):
        # What graphs of torch.compile are traced with, which is no place to write texts.
        self.scheme, self._text = scheme, str(scheme)
        self._names = tuple(scheme.get_tensors(1, scheme.k_multiple))

    def create_weights(self, layer, input_size_per_partition, output_partition_sizes, input_size,
                       output_size, params_dtype, **extra):
        sizes, k = list(output_partition_sizes), input_size_per_partition
        loader = extra.get("weight_loader")
        if k % self.scheme.k_multiple:
            if self.quant_config.choice.has_codes:
                raise UnsupportedError(f"expected K of '{self.name}' to be a multiple of "
                                       f"{self.scheme.k_multiple} on each GPU, but got {k}")
            self.is_plain = True
        if self.quant_config.choice.has_codes:
            made = _make_parameters(self.parameters, self.scheme, self.name, sizes, k, loader)
        else:
            made = {"weight": self.parameters.ModelWeightParameter(
                data=torch.empty(sum(sizes), k, dtype=params_dtype), input_dim=1, output_dim=0,
                weight_loader=loader)}
        for name, parameter in made.items():
            layer.register_parameter(name, parameter)
        layer.weight_block_size = _get_block(self.scheme)
        layer.logical_widths, layer.params_dtype = sizes, params_dtype

    def process_weights_after_loading(self, layer):
        """Quantizes what was loaded, unless it is codes, and compiles the layer's program."""
        if self.is_plain:
            return
        if self.quant_config.choice.has_codes:
            tensors = {name: getattr(layer, name).data for name in self._names}
            if self.scheme.weight_block == (None, None):
                self._spread(tensors, layer.logical_widths)
        else:
            tensors = schemes.quantize_weight(layer.weight.data, self.scheme)
        n, k = sum(layer.logical_widths), getattr(layer, "weight").shape[1]
        for name in ("weight", *tensors):
            if name in layer._parameters:
                delattr(layer, name)
        for name, tensor in tensors.items():
            layer.register_parameter(name, nn.Parameter(tensor, requires_grad=False))
        bias = getattr(layer, "bias", None)
        target = "auto" if tensors["weight_scale"].is_cuda else "cpu"
        element = schemes.ELEMENTS[layer.params_dtype]
        # Not when a graph of CUDA is captured.
        for kind in {None, None if bias is None else schemes.ELEMENTS[bias.dtype]}:
            schemes.compile_linear(self._text, n, k, element, kind, target)

    def _spread(self, tensors, widths):
        """Makes a scale for each row of those of parts, which have one each: values stay."""
        scale = tensors["weight_scale"].reshape(-1)
        tensors["weight_scale"] = torch.cat([
            one.expand(width) for one, width in zip(scale, widths)]).reshape(-1, 1).contiguous()
        self._set(dataclasses.replace(self.scheme, weight_block=(1, None)))

    def apply(self, layer, x, bias=None):
        if self.is_plain:
            return nn.functional.linear(x, layer.weight, bias)
        tensors = [layer._parameters[name] for name in self._names]
        if torch.compiler.is_compiling():
            return torch.ops.fp8.quantized_linear(x, tensors, bias, self._text)
        return compute(x, tensors, None if bias is None else bias.detach(), self._text)


def _get_block(scheme):
    """What loaders divide rows by to have those of scales, or None."""
    rows, columns = scheme.weight_block
    return [rows, columns] if rows and rows > 1 else None


def _make_parameters(kinds, scheme, name, sizes, k, loader):
    """A layer's parameters for codes and scales of a checkpoint, by name, whose loaders know which part
    a shard has."""
    rows, columns = scheme.weight_block
    if scheme.packed or scheme.scale == "e4m3" or not scheme.dynamic:
        raise UnsupportedError(f"expected codes of 8 bits with scales of activations that are found when "
                               f"they come, but '{name}' has {scheme.describe()}; checkpoints in high "
                               f"precision are quantized when they are loaded")
    if any(size % (rows or 1) for size in sizes[:-1]):
        raise UnsupportedError(f"expected parts of '{name}' of multiples of {rows} rows, but got "
                               f"{', '.join(map(str, sizes))}")
    made = {}
    for own, (shape, dtype) in scheme.get_tensors(sum(sizes), k).items():
        data, others = torch.empty(shape, dtype=dtype), {"weight_loader": loader}
        if own == "weight":
            made[own] = kinds.ModelWeightParameter(data=data, input_dim=1, output_dim=0, **others)
        elif (rows, columns) == (None, None):
            made[own] = kinds.PerTensorScaleParameter(data=torch.empty(len(sizes), dtype=dtype), **others)
        elif columns is None:
            made[own] = kinds.ChannelQuantScaleParameter(data=data, output_dim=0, **others)
        else:
            kind = kinds.GroupQuantScaleParameter if rows == 1 else kinds.BlockQuantScaleParameter
            made[own] = kind(data=data, input_dim=1, output_dim=0, **others)
    return made


def check_device():
    """Raises UnsupportedError where layers are on a GPU that has no kernels."""
    if torch.cuda.is_available() and compiler.get_default_target() == "cpu":
        raise UnsupportedError("expected a GPU with kernels for FP8, of compute capability 8.9, 9.0 or 10.0, "
                               "but got another one")
