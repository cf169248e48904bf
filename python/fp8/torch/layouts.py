"""What the configs of quantized checkpoints say, as Schemes, and back.

- compressed-tensors, as its `QuantizationConfig` has it, which vLLM, SGLang and Transformers
  read: format "float-quantized", "mxfp8-quantized", "nvfp4-pack-quantized", or of each group
  with "mixed-precision";
- fp8, vLLM's own, of AutoFP8 and, with weight_block_size and weight_scale_inv for the scales,
  of DeepSeek-V3, whose later models have experts in MXFP4;
- mxfp4, of gpt-oss;
- fbgemm_fp8, of Llama 3.1 405B and Llama 4, which is read only;
- modelopt, NVIDIA's, which is read only: the algorithms of _MODELOPT, of all layers or, as
  MIXED_PRECISION, of each.
"""

import fnmatch
import re
from dataclasses import replace

from fp8.errors import UnsupportedError
from fp8.torch.schemes import Scheme

_FORMATS = {"f32": "float-quantized", "e8m0": "mxfp8-quantized", "e4m3": "nvfp4-pack-quantized"}
_MXFP4_FORMAT = "mxfp4-pack-quantized"
# Nothing says of MXFP4 what activations are: each token has a scale.
MXFP4 = Scheme((1, None), (1, None), packed=True)
# Types of the scales, where they are not that of the weight.
_SCALE_DTYPES = {"e8m0": "torch.uint8", "e4m3": "torch.float8_e4m3fn"}


def write_compressed_tensors(layers, others):
    """The config of a model, of Schemes by the names of layers, and the names of the linear
    layers that are left as they are."""
    groups = {}
    for name, scheme in layers.items():
        if not scheme.dynamic and scheme.scale == "f32":
            scheme = replace(scheme, input_block=(None, scheme.input_block[1]))  # Experts have one for each row.
        names = groups.setdefault((scheme.weight_block, scheme.input_block, scheme.scale, scheme.dynamic, scheme.is_mxfp4),
                                  (scheme, []))[1]
        if name not in names:
            names.append(name)
    formats = {_get_format(scheme) for scheme, _ in groups.values()}
    config = {"config_groups": {}, "format": formats.pop() if len(formats) == 1 else
              "mixed-precision", "global_compression_ratio": None, "ignore": list(others),
              "kv_cache_scheme": None, "quant_method": "compressed-tensors",
              "quantization_status": "compressed"}
    for index, (scheme, names) in enumerate(groups.values()):
        config["config_groups"][f"group_{index}"] = {
            "format": _get_format(scheme), "input_activations": _write_activations(scheme),
            "output_activations": None,
            "targets": ["Linear"] if len(groups) == 1 else names,
            "weights": _write_arguments(scheme, scheme.weight_block, False)}
    return config


def _get_format(scheme):
    return _MXFP4_FORMAT if scheme.is_mxfp4 else _FORMATS[scheme.scale]


def _write_activations(scheme):
    # Readers of MXFP4 expect none, and choose for themselves.
    if scheme.input_block is None or scheme.is_mxfp4:
        return None
    if scheme.scale != "e4m3":
        return _write_arguments(scheme, scheme.input_block, scheme.dynamic)
    if scheme.dynamic:
        raise UnsupportedError("expected nvfp4 with calibration, since compressed-tensors has an "
                               "input_global_scale, but got layers without")
    return _write_arguments(scheme, scheme.input_block, "local")


def _write_arguments(scheme, block, dynamic):
    """QuantizationArgs of compressed-tensors."""
    if scheme.is_mxfp4:
        return {**_write_arguments(Scheme((1, 32), None, "e8m0"), (1, 32), dynamic), "num_bits": 4}
    arguments = {"actorder": None, "block_structure": None, "dynamic": dynamic, "group_size": None,
                 "num_bits": scheme.codes.bits, "observer": None if dynamic is True else "minmax",
                 "observer_kwargs": {}, "symmetric": True, "type": "float"}
    if scheme.scale in _SCALE_DTYPES:
        arguments["scale_dtype"] = arguments["zp_dtype"] = _SCALE_DTYPES[scheme.scale]
    if block == (None, None):
        return {**arguments, "strategy": "tensor"}
    if block == (1, None):
        return {**arguments, "strategy": "token" if dynamic else "channel"}
    if block[0] == 1:
        return {**arguments, "group_size": block[1],
                "strategy": "tensor_group" if scheme.scale == "e4m3" else "group"}
    return {**arguments, "strategy": "block", "block_structure": list(block)}


def write_fp8(layers, others):
    """The same for vLLM's fp8. Raises UnsupportedError for what that does not have."""
    schemes = {(s.weight_block, s.input_block, s.scale, s.dynamic, s.is_mxfp4) for s in layers.values()}
    config = {"quant_method": "fp8", "fmt": "e4m3", "ignored_layers": list(others),
              "modules_to_not_convert": list(others)}
    if schemes == {((128, 128), (1, 128), "f32", True, False)}:
        return {**config, "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    if len(schemes) == 1:
        weight_block, input_block, scale, dynamic, is_packed = next(iter(schemes))
        if (weight_block, input_block, scale, is_packed) == ((None, None), (None, None), "f32", False):
            return {**config, "activation_scheme": "dynamic" if dynamic else "static"}
    raise UnsupportedError("expected all layers by current, or all by block, in a checkpoint of "
                           "fp8, but got others; compressed-tensors has them")


def read(config, model_config=None):
    """A function from a layer's name to its Scheme, or to why it has none, a str; `model_config`
    is all of config.json. Raises UnsupportedError for a method that is not known."""
    method = config.get("quant_method")
    reader = next((reader for name, reader in _READERS.items() if str(method).startswith(name)), None)
    if reader is None:
        raise UnsupportedError(f"expected a checkpoint of compressed-tensors, fp8, mxfp4, fbgemm_fp8 or modelopt, but "
                               f"got the quant_method '{method}'")
    find = _guard(reader, config)(config, model_config or {})

    def check(name):
        scheme = _guard(find, config)(name)
        sizes = () if isinstance(scheme, str) else (*scheme.weight_block, *(scheme.input_block or ()))
        wrong = next((size for size in sizes if size is not None and (type(size) is not int or size < 1)), None)
        if wrong is not None:
            raise UnsupportedError(f"expected sizes of blocks of '{name}' in the quantization_config, but got {wrong!r}")
        return scheme
    return check


def _guard(function, config):
    """What calls a function that takes a config for one of its method, with an error of ours where it is none."""
    def call(*arguments):
        try:
            return function(*arguments)
        except (TypeError, AttributeError, LookupError, ValueError, re.error) as error:
            raise UnsupportedError(f"expected a quantization_config as '{config.get('quant_method')}' has it, but got one that "
                                   f"cannot be read: {error}") from error
    return call


def _read_compressed_tensors(config, _):
    if config.get("transform_config"):
        raise UnsupportedError("expected a checkpoint without transform_config, but got one")
    groups = list((config.get("config_groups") or {}).values())
    ignored = config.get("ignore") or []

    def find(name):
        if any(_matches(name, target) for target in ignored):
            return "the config ignores it"
        group = next((group for group in groups if any(
            _matches(name, target) for target in group["targets"])), None)
        if group is None:
            return "no group of the config has it"
        # Files of before groups had formats have one for all.
        return _read_group(name, {**group, "format": group.get("format") or config.get("format")})
    return find


def _read_fbgemm(config, _):
    others, bound = config.get("modules_to_not_convert") or [], config.get("activation_scale_ub", 1200.0)
    if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not bound > 0:
        raise UnsupportedError(f"expected an activation_scale_ub above 0, but got {bound!r}")

    def find(name):
        # As transformers reads such names: of modules, as expressions, or their ends.
        left = any(re.match(rf"(?:{other})(?:(?<=\.)|(?=\.|$))", name) or name.endswith(other) for other in others)
        return "modules_to_not_convert has it" if left else Scheme((1, None), (1, None))
    return find


def _read_mxfp4(config, _):
    others = config.get("modules_to_not_convert") or []

    def find(name):
        return ("modules_to_not_convert has it" if any(fnmatch.fnmatchcase(name, other) for other in others)
                else MXFP4)
    return find


def _matches(name, target):
    """Whether a target, a class, a name or "re:" and an expression, has a linear layer."""
    if target.startswith("re:"):
        return re.match(target[3:], name) is not None
    return target in ("Linear", name)


def _read_fp8(config, model_config):
    scheme = _read_fp8_scheme(config)
    # As DeepSeek-V4 has experts, all but those that every token has.
    has_fp4 = "fp4" in (config.get("expert_dtype"), model_config.get("expert_dtype"))
    experts = replace(MXFP4, rule=scheme.rule) if has_fp4 else scheme
    return lambda name: experts if re.search(r"(^|\.)experts\.", name) else scheme


def _read_fp8_scheme(config):
    scheme, block = config.get("activation_scheme", "dynamic"), config.get("weight_block_size")
    # DeepSeek-V3.1 and later have powers of two, those of activations too.
    rule = (("pow2", "true"),) if config.get("scale_fmt") == "ue8m0" else ()
    if scheme not in ("dynamic", "static") or config.get("fmt", "e4m3") != "e4m3":
        raise UnsupportedError(f"expected fp8 with e4m3, dynamic or static, but got "
                               f"{config.get('fmt')}, {scheme}")
    if block is None:
        return Scheme((None, None), (None, None), dynamic=scheme == "dynamic", rule=rule)
    if scheme == "static" or len(block) != 2:
        raise UnsupportedError(f"expected a weight_block_size of two numbers with dynamic "
                               f"activations, but got {block} with {scheme} ones")
    if tuple(block) == (1, 32) and rule:
        return Scheme((1, 32), (1, 32), "e8m0")
    return Scheme(tuple(block), (1, block[1]), rule=rule)


_MODELOPT = {
    "FP8": Scheme((None, None), (None, None), dynamic=False),
    "FP8_PB_WO": Scheme((128, 128), None),
    "FP8_PER_CHANNEL_PER_TOKEN": Scheme((1, None), (1, None)),
    "MXFP8": Scheme((1, 32), (1, 32), "e8m0"),
    "MXFP4": MXFP4,
    "NVFP4": Scheme((1, 16), (1, 16), "e4m3", dynamic=False),
    "W4A16_NVFP4": Scheme((1, 16), None, "e4m3"),
    "W4A8_MXFP4_FP8": MXFP4,
}


def _read_modelopt(config, _):
    """Reads config.json, or hf_quant_config.json, which has it as `quantization`."""
    details = config.get("quantization") or config
    algorithm, layers = details.get("quant_algo"), details.get("quantized_layers") or {}

    def find(name):
        own = algorithm
        if algorithm == "MIXED_PRECISION":
            parts = name.split(".")
            # Experts that were one module have its name there, and each has tensors of its own.
            found = next((layers[path] for path in (".".join(parts[:count]) for count in range(len(parts), 0, -1))
                          if path in layers), None)
            if found is None:
                return "quantized_layers of the config does not have it"
            own = found.get("quant_algo")
        if str(own).upper() not in _MODELOPT:
            raise UnsupportedError(f"expected one of ModelOpt's {', '.join(_MODELOPT)} for '{name}', "
                                   f"but got {own}")
        return _MODELOPT[str(own).upper()]
    return find


def _read_group(name, group):
    weights, activations = group.get("weights"), group.get("input_activations")
    if not weights:
        raise UnsupportedError(f"expected weights of '{name}' to be quantized, but got them in high precision")
    if group.get("output_activations"):
        raise UnsupportedError(f"expected no output_activations of '{name}', but got some")
    bits, size, dtype = weights.get("num_bits"), weights.get("group_size"), str(weights.get("scale_dtype"))
    is_mxfp4 = bits == 4 and size == 32 and weights.get("strategy") == "group" and (
        dtype == "torch.uint8" or group.get("format") == _MXFP4_FORMAT)
    for what in filter(None, (weights, activations)):
        if (what.get("type") != "float" or not what.get("symmetric", True) or what.get("actorder")
                or what.get("num_bits") != bits and not is_mxfp4):
            raise UnsupportedError(
                f"expected symmetric floats of one size for '{name}', but got {what.get('type')} "
                f"of {what.get('num_bits')} bits")
    if is_mxfp4:
        return MXFP4
    if bits == 4 and size == 16 and weights["strategy"] == "tensor_group":
        return Scheme((1, 16), (1, 16) if activations else None, "e4m3",
                      not activations or activations.get("dynamic") is True)
    if bits != 8:
        raise UnsupportedError(f"expected '{name}' in FP8, NVFP4 or MXFP4, but got {bits} bits with the "
                               f"strategy '{weights['strategy']}'")
    is_mxfp8 = size == 32 and (dtype == "torch.uint8" or group.get("format") == _FORMATS["e8m0"])
    scale = "e8m0" if is_mxfp8 else "f32"
    if not activations:
        return Scheme(_read_block(name, weights), None, scale)
    return Scheme(_read_block(name, weights), _read_block(name, activations), scale,
                  bool(activations.get("dynamic")))


def _read_block(name, arguments):
    strategy = arguments.get("strategy")
    if strategy == "tensor":
        return None, None
    if strategy == "channel" or strategy == "token" and arguments.get("dynamic"):
        return 1, None
    if strategy == "group":
        return 1, arguments["group_size"]
    if strategy == "block":
        return tuple(arguments["block_structure"])
    raise UnsupportedError(f"expected a strategy of '{name}' to be tensor, channel, token, group "
                           f"or block, but got '{strategy}'")


# By how a quant_method begins.
_READERS = {"compressed-tensors": _read_compressed_tensors, "fp8": _read_fp8, "modelopt": _read_modelopt,
            "mxfp4": _read_mxfp4, "fbgemm_fp8": _read_fbgemm}
