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


class FP8MLIRConfig(QuantizationConfig):
    """The config of the method; `options` are those of serving.Choice."""

    def __init__(self, **options):
        super().__init__()
        self.choice = serving.Choice(**options)

    @classmethod
    def get_name(cls):
        return serving.METHOD

    @classmethod
    def get_supported_act_dtypes(cls):
        return list(serving.DTYPES)

    @classmethod
    def get_min_capability(cls):
        return serving.CAPABILITY

    @staticmethod
    def get_config_filenames():
        return []

    @classmethod
    def from_config(cls, config):
        made = cls()
        made.choice = serving.Choice.read(config)
        return made

    def get_quant_method(self, layer, prefix):
        if not isinstance(layer, linear.LinearBase):
            return None  # Embeddings, attention and experts stay as they are.
        scheme = self.choice.find(prefix, self.packed_modules_mapping)
        if scheme is None:
            return linear.UnquantizedLinearMethod()
        serving.check_device()
        return FP8MLIRLinearMethod(scheme, self, prefix)


def register():
    """Makes vLLM know the method; any number of times."""
    quantization.register_quantization_config(serving.METHOD)(FP8MLIRConfig)
