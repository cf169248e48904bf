# REQUIRES: pytorch, python-pytorch, python-vllm
# RUN: %import_python %s
"""vLLM's plug-in with vLLM's own layers on the CPU, without its engine: the registry, weights that are
quantized when they are loaded, codes of checkpoints in joined layers, graphs, and what is refused."""

import tempfile
import unittest

import torch
from torch import nn
from vllm.config import DeviceConfig, VllmConfig, set_current_vllm_config
from vllm.distributed import parallel_state
from vllm.model_executor.layers import linear
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS, get_quantization_config

import fp8
import fp8.torch
import fp8.vllm
from fp8.torch import schemes

PARTS = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
SIZES = {"q": 128, "k": 128, "v": 64}
NAME = "model.layers.0.self_attn"


def setUpModule():
    fp8.vllm.register()
    fp8.vllm.register()
    global folder, context
    folder = tempfile.TemporaryDirectory()
    context = set_current_vllm_config(VllmConfig(device_config=DeviceConfig("cpu")))
    context.__enter__()
    parallel_state.init_distributed_environment(1, 0, f"file://{folder.name}/store", 0, "gloo")
    parallel_state.initialize_model_parallel()


def tearDownModule():
    parallel_state.destroy_model_parallel()
    parallel_state.destroy_distributed_environment()
    context.__exit__(None, None, None)
    folder.cleanup()


def make_config(**entries):
    config = get_quantization_config("fp8-mlir").from_config({"quant_method": "fp8-mlir", **entries})
    config.packed_modules_mapping = dict(PARTS)
    return config


def make_joined(config, bias=True):
    return linear.QKVParallelLinear(256, 64, 2, 2, bias=bias, quant_config=config, params_dtype=torch.bfloat16,
                                    prefix=f"{NAME}.qkv_proj", v_head_size=32)


def make_weights():
    torch.manual_seed(0)
    return {part: torch.randn(size, 256).bfloat16() for part, size in SIZES.items()}


def load(layer, parts, name="weight"):
    parameter = getattr(layer, name)
    for part, value in parts.items():
        parameter.weight_loader(parameter, value, part)


class Plugin(unittest.TestCase):
    def test_registered(self):
        self.assertEqual(QUANTIZATION_METHODS.count("fp8-mlir"), 1)
        config = make_config()
        self.assertEqual(config.get_name(), "fp8-mlir")
        self.assertIn(torch.bfloat16, config.get_supported_act_dtypes())
        self.assertIsNone(config.get_quant_method(nn.Identity(), "model.norm"))

    def test_interface(self):
        """What vLLM's base classes ask for is there: nothing abstract is left."""
        self.assertFalse(fp8.vllm.FP8MLIRConfig.__abstractmethods__)
        self.assertFalse(fp8.vllm.FP8MLIRLinearMethod.__abstractmethods__)
        self.assertIn("FP8MLIRLinearMethod", linear.WEIGHT_LOADER_V2_SUPPORTED)

    def test_quantized_when_loaded(self):
        weights = make_weights()
        for recipe, options in (("rowwise", {}), ("block", {}), ("rowwise", {"weights": "mxfp4"})):
            layer = make_joined(make_config(recipe=recipe, **options))
            load(layer, weights)
            layer.bias.data = torch.randn(sum(SIZES.values())).bfloat16()
            layer.quant_method.process_weights_after_loading(layer)
            plain = nn.Linear(256, sum(SIZES.values()), dtype=torch.bfloat16)
            plain.weight.data, plain.bias.data = torch.cat(list(weights.values())), layer.bias.data
            plain = fp8.torch.quantize_for_inference(plain, recipe, **options)
            x = torch.randn(5, 256).bfloat16()
            y, _ = layer(x)
            self.assertTrue(torch.equal(y, plain(x)), recipe)
            names = {name for name, _ in layer.named_parameters()}
            self.assertEqual(names, {name for name, _ in plain.named_parameters()})

    def test_graph(self):
        layer = make_joined(make_config())
        load(layer, make_weights())
        layer.bias.data.zero_()
        layer.quant_method.process_weights_after_loading(layer)
        seen = []

        def backend(graph, _):
            seen.append(str(graph.code))
            return graph.forward
        run = torch.compile(lambda x: layer(x)[0], fullgraph=True, backend=backend, dynamic=True)
        x = torch.randn(5, 256).bfloat16()
        self.assertTrue(torch.equal(run(x), layer(x)[0]))
        self.assertIn("quantized_linear", seen[0])

    def test_codes(self):
        """A checkpoint as fp8.transformers writes it, whose layers are joined."""
        for recipe in ("rowwise", "block", "mxfp8", "current"):
            scheme = schemes.make_scheme(recipe, False)
            stored = {part: schemes.quantize_weight(value, scheme) for part, value in make_weights().items()}
            names = [f"{NAME}.{part}_proj" for part in SIZES]
            config = make_config(layers=[{"scheme": schemes.asdict(scheme),
                                          "names": names}])
            layer = make_joined(config, bias=False)
            for name in stored["q"]:
                load(layer, {part: tensors[name] for part, tensors in stored.items()}, name)
            layer.quant_method.process_weights_after_loading(layer)
            x = torch.randn(5, 256).bfloat16()
            alone = [fp8.torch.QuantizedLinear(256, SIZES[part], scheme, tensors)(x)
                     for part, tensors in stored.items()]
            self.assertTrue(torch.equal(layer(x)[0], torch.cat(alone, -1)), recipe)
            other = linear.ReplicatedLinear(256, 64, quant_config=config, prefix="model.other",
                                            params_dtype=torch.bfloat16)
            self.assertIsInstance(other.quant_method, linear.UnquantizedLinearMethod)

    def test_left(self):
        config = make_config(filter=["*", "!*.o_proj"])
        layer = linear.RowParallelLinear(256, 64, bias=False, quant_config=config, prefix=f"{NAME}.o_proj",
                                         params_dtype=torch.bfloat16)
        self.assertIsInstance(layer.quant_method, linear.UnquantizedLinearMethod)
        layer = linear.ReplicatedLinear(100, 64, bias=False, quant_config=make_config(), prefix="odd",
                                        params_dtype=torch.bfloat16)
        layer.weight.data.normal_()
        layer.quant_method.process_weights_after_loading(layer)
        x = torch.randn(3, 100).bfloat16()
        self.assertTrue(torch.equal(layer(x)[0], nn.functional.linear(x, layer.weight)))

    def test_refused(self):
        with self.assertRaisesRegex(fp8.UnsupportedError, "to be quantized alike"):
            make_joined(make_config(filter=["*", "!*.v_proj"]))
        with self.assertRaises(fp8.Error):
            make_config(recipe="delayed")
        with self.assertRaisesRegex(fp8.ArgumentError, "one of training"):
            make_config(training=True)
        scheme = schemes.make_scheme("rowwise", False, "mxfp4")
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected codes of 8 bits"):
            make_joined(make_config(layers=[{"scheme": schemes.asdict(scheme), "names": [
                f"{NAME}.{part}_proj" for part in SIZES]}]))


if __name__ == "__main__":
    unittest.main()
