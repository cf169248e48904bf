"""A plug-in of vLLM: the quantization method fp8-mlir, whose linear layers our programs compute.

    vllm serve MODEL --quantization fp8-mlir

vLLM finds it by the entry point vllm.general_plugins of the installed package. docs/Serving.md has more.
"""

from fp8.frameworks import require

require("vllm", "0.33")

from vllm.model_executor import parameter  # noqa: E402
from vllm.model_executor.layers import linear, quantization  # noqa: E402
from vllm.model_executor.layers.quantization.base_config import QuantizationConfig  # noqa: E402

from fp8 import serving  # noqa: E402


@linear.register_weight_loader_v2_supported_method
class FP8MLIRLinearMethod(serving.Method, linear.LinearMethodBase):
    """What computes a linear layer."""

    parameters = parameter


class FP8MLIRConfig(serving.Config, QuantizationConfig):
    """The config of the method."""

    linear_layer, unquantized = linear.LinearBase, linear.UnquantizedLinearMethod
    method = FP8MLIRLinearMethod


def register():
    """Makes vLLM know the method; any number of times."""
    quantization.register_quantization_config(serving.METHOD)(FP8MLIRConfig)
