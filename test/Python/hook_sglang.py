# REQUIRES: pytorch, python-pytorch, python-sglang
# RUN: %import_python %s
"""SGLang's plug-in with SGLang's own layers on the CPU, without its engine: the registries, weights that are
quantized when they are loaded, codes of a checkpoint in joined layers, and what is refused."""

import types
import unittest

import torch
from sglang.srt.arg_groups.choices import QUANTIZATION_CHOICES
from sglang.srt.layers import linear
from sglang.srt.layers.quantization import QUANTIZATION_METHODS, get_quantization_config
from sglang.srt.layers.quantization.unquant import UnquantizedLinearMethod
from sglang.srt.plugins import GENERAL_PLUGINS_GROUP
from sglang.srt.runtime_context import get_parallel
from torch import nn

import fp8
import fp8.sglang
import fp8.torch
from fp8.torch import schemes

NAME = "model.layers.0.mlp"
PARTS = {"gate_up_proj": ["gate_proj", "up_proj"]}
SIZES = 128, 64


def setUpModule():
    fp8.sglang.register()
    fp8.sglang.register()
    # One process, as a launcher would say.
    group = types.SimpleNamespace(rank_in_group=0, world_size=1)
    context = get_parallel().override(tp_size=1, tp_rank=0, tp_group=group)
    context.__enter__()
    unittest.addModuleCleanup(context.__exit__, None, None, None)


def make_config(**entries):
    return get_quantization_config("fp8-mlir").from_config(
        {"quant_method": "fp8-mlir", "packed_modules_mapping": dict(PARTS), "hf_config": None, **entries})


def make_joined(config):
    """As its models make it, for one GPU."""
    return linear.MergedColumnParallelLinear(256, list(SIZES), bias=False, quant_config=config,
                                             params_dtype=torch.bfloat16, prefix=f"{NAME}.gate_up_proj")


def make_weights():
    torch.manual_seed(0)
    return [torch.randn(size, 256).bfloat16() for size in SIZES]


def load(layer, parts, name="weight"):
    parameter = getattr(layer, name)
    for part, value in enumerate(parts):
        parameter.weight_loader(parameter, value, part)


class Plugin(unittest.TestCase):
    def test_registered(self):
        self.assertIs(QUANTIZATION_METHODS["fp8-mlir"], fp8.sglang.FP8MLIRConfig)
        self.assertEqual(QUANTIZATION_CHOICES.count("fp8-mlir"), 1)
        self.assertEqual(linear.WEIGHT_LOADER_V2_SUPPORTED.count("FP8MLIRLinearMethod"), 1)
        self.assertEqual(GENERAL_PLUGINS_GROUP, "sglang.srt.plugins")
        self.assertFalse(getattr(fp8.sglang.FP8MLIRConfig, "__abstractmethods__", None))
        self.assertFalse(getattr(fp8.sglang.FP8MLIRLinearMethod, "__abstractmethods__", None))
        self.assertIsNone(make_config().get_quant_method(nn.Identity(), "model.norm"))

    def test_quantized_when_loaded(self):
        weight = torch.cat(make_weights())
        for recipe, options in (("rowwise", {}), ("rowwise", {"weights": "mxfp4"})):
            layer = linear.ReplicatedLinear(256, sum(SIZES), bias=True, prefix=f"{NAME}.x",
                                            quant_config=make_config(recipe=recipe, **options),
                                            params_dtype=torch.bfloat16)
            layer.weight.weight_loader(layer.weight, weight)
            layer.bias.data = torch.randn(sum(SIZES)).bfloat16()
            layer.quant_method.process_weights_after_loading(layer)
            plain = nn.Linear(256, sum(SIZES), dtype=torch.bfloat16)
            plain.weight.data, plain.bias.data = weight, layer.bias.data
            x = torch.randn(5, 256).bfloat16()
            expected = fp8.torch.quantize_for_inference(plain, recipe, **options)(x)
            self.assertTrue(torch.equal(layer(x)[0], expected))

    def test_joined(self):
        weights = make_weights()
        for recipe in ("rowwise", "block", "current"):
            scheme = schemes.make_scheme(recipe, False)
            stored = [schemes.quantize_weight(value, scheme) for value in weights]
            config = make_config(layers=[{"scheme": schemes.asdict(scheme), "names": [
                f"{NAME}.{part}" for part in PARTS["gate_up_proj"]]}])
            layer = make_joined(config)
            for name in stored[0]:
                load(layer, [tensors[name] for tensors in stored], name)
            layer.quant_method.process_weights_after_loading(layer)
            x = torch.randn(5, 256).bfloat16()
            alone = [fp8.torch.QuantizedLinear(256, size, scheme, tensors)(x)
                     for size, tensors in zip(SIZES, stored)]
            self.assertTrue(torch.equal(layer(x)[0], torch.cat(alone, -1)), recipe)

    def test_left_and_refused(self):
        config = make_config(filter=["*", "!*.up_proj"])
        self.assertIsInstance(config.get_quant_method(linear.LinearBase(16, 16), f"{NAME}.up_proj"),
                              UnquantizedLinearMethod)
        with self.assertRaisesRegex(fp8.UnsupportedError, "to be quantized alike"):
            make_joined(config)
        with self.assertRaises(fp8.Error):
            make_config(recipe="delayed")


if __name__ == "__main__":
    unittest.main()
