"""FP8 in transformers: what from_pretrained takes, and a callback of its Trainer.

    import fp8.transformers
    model = AutoModelForCausalLM.from_pretrained(
        path, quantization_config=fp8.transformers.FP8Config("rowwise"))
    trainer = Trainer(..., callbacks=[fp8.transformers.FP8Callback("delayed")])

docs/Frameworks.md has more.
"""

from fp8.frameworks import require

require("transformers", "5.17")

import dataclasses  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402

import safetensors  # noqa: E402
import torch  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from transformers.quantizers import auto, base  # noqa: E402
from transformers.utils.quantization_config import QuantizationConfigMixin  # noqa: E402

from fp8 import _core, compiler, programs  # noqa: E402
from fp8.errors import ArgumentError, Error, MismatchError, UnsupportedError  # noqa: E402
from fp8.recipes import get_text  # noqa: E402
from fp8.torch import inference, invariance, modules, plain_linears, saved_graphs, schemes, steps  # noqa: E402
from fp8.torch.autocasting import check_recipe  # noqa: E402
from fp8.torch.converted import is_conv1d  # noqa: E402
from fp8.torch.quantized_linear import QuantizedLinear  # noqa: E402

METHOD = "fp8-mlir"


def _check_alone(mapping, what):
    """Raises UnsupportedError if another plug-in has the name; ours may be imported again."""
    known = mapping.get(METHOD)
    if known is not None and known.__module__ != __name__:
        raise UnsupportedError(f"expected '{METHOD}' to be nobody's {what} yet, but "
                               f"{known.__module__}.{known.__qualname__} has registered it")
    mapping.pop(METHOD, None)


_check_alone(auto.AUTO_QUANTIZATION_CONFIG_MAPPING, "config")
_check_alone(auto.AUTO_QUANTIZER_MAPPING, "quantizer")


@auto.register_quantization_config(METHOD)
class FP8Config(QuantizationConfigMixin):
    """For `quantization_config` of from_pretrained.

    - recipe: as fp8.compile takes it;
    - training: True converts the model for training in FP8, its weights in what they are loaded
      as; else weights are quantized for inference, and for adapters;
    - filter: globs of names of layers, as quantize_for_inference and convert_to_fp8_training
      have them; None leaves transformers' own exceptions out in inference, lm_head among them;
    - weights: "mxfp4" for weights of four bits, for inference;
    - invariant: as quantize_for_inference and convert_to_fp8_training have it;
    - options: of convert_to_fp8_training, first_last_bf16 and cache_weights among them.

    What save_pretrained writes has `layers`: the scheme of each that is quantized.
    """

    def __init__(self, recipe="rowwise", training=False, filter=None, weights=None, layers=None,
                 options=None, quant_method=METHOD, invariant=False, **others):
        if others:
            raise ArgumentError(f"expected options of FP8Config, but got {', '.join(others)}")
        if callable(filter):
            raise ArgumentError("expected filter to be globs, which config.json can hold, but got "
                                "a function")
        self.quant_method = quant_method
        self.recipe, self.training = get_text(recipe), bool(training)
        self.filter = [filter] if isinstance(filter, str) else filter
        self.weights, self.layers, self.options = weights, layers, dict(options or {})
        self.invariant = bool(invariant)
        if self.training:
            if weights is not None:
                raise ArgumentError("expected weights=None for training, whose weights are in high "
                                    f"precision, but got {weights!r}")
            if self.invariant:
                self.options["invariant"] = True
            check_recipe(self.recipe, "cpu", (("invariant", True),) if self.invariant else ())
        else:
            if self.options:
                raise ArgumentError(f"expected no options without training=True, but got "
                                    f"{', '.join(self.options)}")
            dataclasses.replace(schemes.make_scheme(self.recipe, False, weights),
                                invariant=self.invariant)


def _check_device(device_map):
    """Raises UnsupportedError for a GPU that has no kernels here."""
    devices = set(device_map.values()) if isinstance(device_map, dict) else {device_map}
    if any(str(device) == "disk" for device in devices):
        raise UnsupportedError("expected all layers in memory, but device_map has some on disk")
    on_gpu = any(isinstance(device, int) or str(device).startswith("cuda") for device in devices)
    if on_gpu and compiler.get_default_target() == "cpu":
        try:
            found = ", ".join(f"{name} of {major}.{minor}"
                              for name, (major, minor) in _core.get_devices()) or "none"
        except Error as error:
            found = f"none: {error}"
        raise UnsupportedError(f"expected a GPU with kernels for FP8, of compute capability 8.9, "
                               f"9.0 or 10.0, but got {found}; device_map='cpu' computes on the CPU")


@auto.register_quantizer(METHOD)
class FP8Quantizer(base.HfQuantizer):
    """What from_pretrained does for an FP8Config."""

    requires_calibration = False

    def validate_environment(self, *_, device_map=None, **__):
        _check_device(device_map)
        config = self.quantization_config
        if self.pre_quantized and not config.training and not config.layers:
            raise MismatchError(f"expected a quantization_config with the layers that are "
                                f"quantized, but got none: save_pretrained writes them")

    def _process_model_before_weight_loading(self, model, checkpoint_files=None, **_):
        """Puts layers without values in the places of those that the checkpoint has codes of."""
        config = self.quantization_config
        if not self.pre_quantized or config.training:
            return
        for folder in {os.path.dirname(path) for path in checkpoint_files or ()}:
            programs.attach_own(folder, saved_graphs.take)
        saved = _list_tensors(checkpoint_files)
        replacements = {}
        for group in config.layers:
            scheme = schemes.Scheme.read(json.dumps(group["scheme"]))
            for name in group["names"]:
                replacements[_find_linear(model, name)] = _make_empty(
                    name, _find_linear(model, name), scheme, saved)
        inference.replace(model, replacements)
        for module in model.modules():
            if not module._parameters and any(isinstance(child, QuantizedLinear) and not hasattr(child, "weight")
                                              for child in module.children()):
                # GPT-2's blocks begin with values for weights of their layers, which packed codes are no name of.
                module._is_hf_initialized = True

    def _process_model_after_weight_loading(self, model, **_):
        config = self.quantization_config
        if config.training:
            modules.convert_to_fp8_training(model, config.recipe, filter=config.filter,
                                            **config.options)
            self.remove_quantization_config(model)  # Its weights, and checkpoints, are plain.
            return model
        if not self.pre_quantized:
            globs = config.filter
            if globs is None:
                left = self.get_modules_to_not_convert(model, None, model._keep_in_fp32_modules)
                globs = ["*", *(f"!{name}" for name in left), *(f"!{name}.*" for name in left)]
            inference.quantize_for_inference(model, config.recipe, filter=globs,
                                             weights=config.weights, invariant=config.invariant)
            config.layers = _describe_layers(model)
        else:
            model.requires_grad_(False)
            inference.finish(model)
            if config.invariant:
                invariance.make_invariant(model)
            model._fp8_report = inference.make_report(inference.find_layers(model), {})
        return model

    def _dequantize(self, model, dtype=None):
        """Plain layers with the values that the codes stand for."""
        replacements = {}
        for module in model.modules():
            if isinstance(module, QuantizedLinear):
                replacements[module] = plain_linears.make_plain(module, module.dequantize(dtype or torch.float32))
        del model._fp8_report
        return inference.replace(model, replacements)

    def is_serializable(self):
        return True

    @property
    def is_trainable(self):
        """By adapters."""
        return True

    @property
    def is_compileable(self):
        return True


def _list_tensors(files):
    """Names of a checkpoint's tensors, None where it is not of .safetensors."""
    if not files or not all(str(path).endswith(".safetensors") for path in files):
        return None
    names = set()
    for path in files:
        with safetensors.safe_open(path, "pt") as file:
            names.update(file.keys())
    return names


def _find_linear(model, name):
    try:
        module = model.get_submodule(name)
    except AttributeError:
        module = None
    if not plain_linears.is_linear(module):
        raise MismatchError(f"expected a model with the linear layer '{name}', which the checkpoint "
                            f"has codes of, but got {type(model).__name__} without")
    return module


def _make_empty(name, module, scheme, saved):
    """A QuantizedLinear on the device meta in place of a layer."""
    tensors, (n, k) = {}, plain_linears.get_sizes(module)
    for own, (shape, dtype) in scheme.get_tensors(n, k).items():
        if saved is not None and f"{name}.{own}" not in saved:
            raise MismatchError(f"expected '{name}.{own}' in the checkpoint, but it has none")
        tensors[own] = torch.empty(shape, dtype=dtype, device="meta")
    layer = QuantizedLinear(k, n, scheme, tensors, module.bias)
    layer.is_transposed = is_conv1d(module)
    return layer


def _describe_layers(model):
    """The names of quantized layers by their schemes, as config.json has them."""
    groups = {}
    for name, module in model.named_modules():
        if isinstance(module, QuantizedLinear):
            groups.setdefault(str(module.scheme), []).append(name)
    return [{"scheme": json.loads(scheme), "names": names} for scheme, names in groups.items()]


class FP8Callback(TrainerCallback):
    """Makes a Trainer train in FP8: the model is converted when the Trainer has been made, which
    is before accelerate prepares it, and each step of the optimizer ends one of the scales,
    however many batches and processes it has. Arguments are those of convert_to_fp8_training.

    States are in the checkpoints that the Trainer writes, and read when it resumes.
    """

    def __init__(self, recipe="delayed", **options):
        self._recipe, self._options, self._model = recipe, options, None

    def on_init_end(self, args, state, control, model=None, **_):
        if os.environ.get("ACCELERATE_MIXED_PRECISION", "").lower() == "fp8":
            raise ArgumentError("expected mixed precision of accelerate to be bf16, fp16 or no beside "
                                "FP8Callback, but got fp8, which is another implementation")
        if getattr(model, "quantization_method", None) and not hasattr(model, "peft_config"):
            raise ArgumentError("expected a model in high precision, but got one that is quantized")
        # Each would end a step of the same scales.
        if getattr(state, "_fp8_callback", self) is not self:
            raise ArgumentError("expected one FP8Callback of a Trainer, but got two")
        if state is not None:
            state._fp8_callback = self
        self._model = modules.convert_to_fp8_training(model, self._recipe, **self._options)

    def on_train_begin(self, args, state, control, model=None, **_):
        if model is not None and not modules.get_layers(model):  # Made anew, by `model_init`.
            self._model = modules.convert_to_fp8_training(model, self._recipe, **self._options)
        steps.accumulate(self._model)

    def on_optimizer_step(self, args, state, control, **_):
        steps.end_step(self._model)

    def on_train_end(self, args, state, control, **_):
        steps.accumulate(self._model, False)
