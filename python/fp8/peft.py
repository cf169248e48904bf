"""LoRA on layers with quantized weights, by peft.

    import fp8.peft
    fp8.torch.quantize_for_inference(model, "rowwise")
    model = peft.get_peft_model(model, fp8.peft.register(peft.LoraConfig(target_modules=[...])))

The base stays codes and scales: its forward is that of fp8.torch.QuantizedLinear, and gradients
of activations come through the codes. Adapters are stored in f32, or in what they are converted to,
and computed in the type of the activations. docs/Frameworks.md has more.
"""

from fp8.frameworks import require

require("peft", "0.17")

import peft  # noqa: E402
import torch  # noqa: E402
from peft.tuners.lora import layer as lora  # noqa: E402
from peft.tuners.tuners_utils import check_adapters_to_merge  # noqa: E402

from fp8.errors import ArgumentError, UnsupportedError  # noqa: E402
from fp8.torch import adapted, arranged, code_order  # noqa: E402
from fp8.torch.quantized_linear import QuantizedLinear  # noqa: E402


class Linear(lora.Linear):
    """peft's adapter around a QuantizedLinear, which is computed with it (fp8.torch.adapted).

    `merge` adds the adapters to the values of the base, which are quantized again: each element
    is rounded once more. `unmerge` has the codes back that there were, bit by bit. Arranged codes
    that cannot have the sum's values are plain until then.
    """

    def __init__(self, base_layer, adapter_name, config, **kwargs):
        if getattr(config, "use_dora", False):
            raise UnsupportedError("expected LoRA on a quantized layer, but got DoRA, which takes "
                                   "the norms of the base's values")
        if isinstance(config.init_lora_weights, str) and config.init_lora_weights not in (
                "gaussian", "orthogonal"):
            raise UnsupportedError(f"expected init_lora_weights to be True, False, gaussian or "
                                   f"orthogonal on a quantized layer, but got "
                                   f"'{config.init_lora_weights}', which changes the base")
        self._codes = None
        super().__init__(base_layer, adapter_name, config, **kwargs)
        # Codes are N x K, whatever the layer was that they are of.
        self.fan_in_fan_out = False
        self._codes = None

    # Whether adapters are computed as peft does: in the type that they are stored in.
    _is_by_peft = False

    def forward(self, x, *args, **kwargs):
        name = None if args or any(value is not None for value in kwargs.values()) else self._find_adapter()
        if name is None:
            return super().forward(x, *args, **kwargs)
        return adapted.compute(self.base_layer, x, self.lora_dropout[name](x), self.lora_A[name].weight,
                               self.lora_B[name].weight, self.scaling[name])

    def _find_adapter(self):
        """The one adapter that is to be added and is no more than two matrices, or None."""
        if self._is_by_peft or self.disable_adapters or self.merged:
            return None
        names = [name for name in self.active_adapters if name in self.lora_A]
        if len(names) != 1 or names[0] in self.lora_variant:
            return None
        return names[0] if _is_matrix(self.lora_A[names[0]]) and _is_matrix(self.lora_B[names[0]]) else None

    def _get_in_out_features(self, module):
        return module.in_features, module.out_features

    def _get_base_layer_device_and_dtype(self, base_layer):
        # Codes are floats to PyTorch, which no adapter can be.
        return base_layer.get_tensors()[0].device, None

    def merge(self, safe_merge=False, adapter_names=None):
        names = check_adapters_to_merge(self, adapter_names)
        names = [name for name in names or () if name in self.lora_A]
        if not names:
            return
        base = self.get_base_layer()
        if any(self.lora_bias[name] for name in names):
            raise UnsupportedError("expected adapters without lora_bias to be merged into a "
                                   "quantized layer")
        before = base.scheme.arranged, {name: value.detach() for name, value in base.named_parameters(recurse=False)
                                        if name != "bias"}
        values = base.dequantize()
        for name in names:
            values += self.get_delta_weight(name).float()
        if safe_merge and not torch.isfinite(values).all():
            raise ArgumentError(f"expected finite weights after merging {', '.join(names)}, but got "
                                f"Inf or NaN")
        base.set_weight(values, may_be_plain=True)
        self._codes = self._codes or before
        self.merged_adapters.extend(names)

    def unmerge(self):
        if self._codes is None:
            super().unmerge()  # Which says that there is nothing to do.
            return
        base, (was_arranged, codes) = self.get_base_layer(), self._codes
        if base.scheme.arranged and not was_arranged:
            # Arranged codes may have no room for what there was before.
            arranged.make_plain(base)
        elif was_arranged and not base.scheme.arranged:
            plain = code_order.restore_codes(codes["weight_arranged"], base.scheme.packed)
            codes = {base.scheme.plain_codes if name == "weight_arranged" else name:
                     plain if name == "weight_arranged" else value for name, value in codes.items()}
        base.set_tensors(codes)
        arranged.arrange_again(base)
        self._codes = None
        self.merged_adapters.clear()


class LinearByPeft(Linear):
    """The same with the adapter as peft computes it, beside the base's result."""

    _is_by_peft = True


def _is_matrix(module):
    """Whether calling a module is a product with its weight, and nothing else."""
    return (type(module) is torch.nn.Linear and module.bias is None and "forward" not in module.__dict__
            and not (module._forward_hooks or module._forward_pre_hooks or module._backward_hooks
                     or module._backward_pre_hooks))


def register(config, by_peft=False):
    """Gives a LoraConfig what it needs for quantized layers, and returns it: for peft's
    get_peft_model, TRL's `peft_config=`, and PeftModel.from_pretrained's `config=`.

    An adapter is computed in the type of the activations, as under torch.autocast, and added where the
    base's result lies; with `by_peft` in the type that it is stored in, f32 most often, by peft."""
    if not isinstance(config, peft.LoraConfig):
        raise ArgumentError(f"expected a LoraConfig, but got {type(config).__name__}")
    if not hasattr(config, "_register_custom_module"):
        raise UnsupportedError("expected peft's LoraConfig to have _register_custom_module, but "
                               "this version has none")
    config._register_custom_module({QuantizedLinear: LinearByPeft if by_peft else Linear})
    return config


def load(model, directory, *, by_peft=False, **options):
    """peft's PeftModel.from_pretrained for a model with quantized layers; `by_peft` as register has it."""
    config = register(peft.PeftConfig.from_pretrained(directory), by_peft)
    config.inference_mode = not options.get("is_trainable", False)
    return peft.PeftModel.from_pretrained(model, directory, config=config, **options)
