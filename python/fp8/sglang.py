"""A plug-in of SGLang: the quantization method fp8-mlir, whose linear layers our programs compute.

    python -m sglang.launch_server --model-path MODEL --quantization fp8-mlir

SGLang finds it by the entry point sglang.srt.plugins of the installed package. docs/Serving.md has more.
"""

from fp8.frameworks import require

require("sglang", "0.5.23")

from sglang.srt.arg_groups import choices  # noqa: E402
from sglang.srt.layers import linear, parameter, quantization  # noqa: E402
from sglang.srt.layers.quantization.base_config import (  # noqa: E402
    LinearMethodBase, QuantizationConfig)
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod  # noqa: E402

from fp8 import serving  # noqa: E402


class FP8MLIRLinearMethod(serving.Method, LinearMethodBase):
    """What computes a linear layer."""

    parameters = parameter


class FP8MLIRConfig(serving.Config, QuantizationConfig):
    """The config of the method."""

    linear_layer, unquantized = linear.LinearBase, UnquantizedLinearMethod
    method = FP8MLIRLinearMethod

    def __init__(self, **options):
        super().__init__(**options)
        self.weight_block_size = [128, 128]  # For layers that have blocks at all.

    @classmethod
    def from_config(cls, config):
        made = super().from_config(config)
        made.packed_modules_mapping = dict(config.get("packed_modules_mapping") or {})
        return made

    def get_scaled_act_names(self):
        return []


def register():
    """Makes SGLang know the method; any number of times."""
    name = FP8MLIRLinearMethod.__name__
    if name not in linear.WEIGHT_LOADER_V2_SUPPORTED:
        linear.WEIGHT_LOADER_V2_SUPPORTED.append(name)
    if serving.METHOD not in choices.QUANTIZATION_CHOICES:
        choices.add_quantization_method_choices([serving.METHOD])
    for methods in (quantization.BASE_QUANTIZATION_METHODS, quantization.QUANTIZATION_METHODS,
                    quantization.CPU_QUANTIZATION_METHODS):
        methods[serving.METHOD] = FP8MLIRConfig
