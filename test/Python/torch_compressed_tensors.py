# REQUIRES: pytorch, python-pytorch, compressed-tensors
# RUN: %import_python %s
"""Checkpoints beside the library whose layout they have: it reads those that are written here,
and those that it writes are computed here."""

import json
import tempfile
import unittest
from pathlib import Path

import safetensors.torch
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig, preset_name_to_scheme
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from torch import nn

import fp8
import fp8.torch


FORMATS = {"MXFP8": "mxfp8-quantized", "NVFP4": "nvfp4-pack-quantized", "MXFP4": "mxfp4-pack-quantized"}


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 384), nn.GELU(), nn.Linear(384, 128, bias=False))


def get_error(value, expected):
    return ((value.double() - expected.double()).norm() / expected.double().norm()).item()


class CompressedTensors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def test_written_here(self):
        for recipe, calibration, limit, options in (
                ("current", None, 0.03, {}), ("current", [torch.randn(4, 256)], 0.03, {}),
                ("rowwise", None, 0.03, {}), ("block", None, 0.03, {}), ("mxfp8", None, 0.03, {}),
                ("nvfp4", [torch.randn(4, 256)], 0.12, {}), ("rowwise", None, 0.15, {"weights": "mxfp4"}),
                ("rowwise", None, 0.12, {"weights": "nvfp4", "activations": "bf16"}),
                ("rowwise", None, 0.03, {"weights": "mxfp8", "activations": "bf16"})):
            with self.subTest(recipe, **options):
                original = make_model()
                fp8.torch.save_quantized(fp8.torch.quantize_for_inference(
                    make_model(), recipe, calibration, **options), self.path)
                config = json.loads((self.path / "config.json").read_text())
                config = QuantizationConfig.model_validate(config["quantization_config"])
                scheme = config.config_groups["group_0"]
                compressor = BaseCompressor.get_value_from_registry(config.format)
                self.assertTrue(compressor.can_compress(nn.Linear, scheme))
                tensors = safetensors.torch.load_file(self.path / "model.safetensors")
                for layer in (0, 2):
                    own = {name[2:]: value for name, value in tensors.items()
                           if name.startswith(f"{layer}.") and name != f"{layer}.bias"}
                    expected = set(compressor.compression_param_names(scheme))
                    if calibration:
                        expected.add("input_scale" if recipe == "current" else
                                     "input_global_scale")
                    self.assertEqual(set(own), expected)
                    weight = compressor.decompress(own, scheme)["weight"]
                    self.assertLess(get_error(weight, original[layer].weight), limit)

    def test_written_there(self):
        for preset in ("FP8", "FP8_DYNAMIC", "FP8_BLOCK", "MXFP8", "MXFP8A16", "NVFP4", "NVFP4A16", "MXFP4",
                       "MXFP4A16"):
            with self.subTest(preset):
                model, tensors, weights = make_model(), {}, {}
                scheme = preset_name_to_scheme(preset, ["Linear"])
                for layer in (0, 2):
                    weight = model[layer].weight.detach()
                    state = self.get_parameters(weight, scheme.weights)
                    compressor = BaseCompressor.get_value_from_registry(FORMATS.get(
                        preset.removesuffix("A16"), "float-quantized"))
                    compressed = compressor.compress({"weight": weight, **state}, scheme)
                    weights[layer] = compressor.decompress(compressed, scheme)["weight"]
                    if preset == "FP8":
                        compressed["input_scale"] = torch.tensor([0.01])
                    if preset == "NVFP4":
                        compressed["input_global_scale"] = torch.tensor([500.0])
                    tensors.update({f"{layer}.{name}": value.data.contiguous()
                                    for name, value in compressed.items() if value is not None})
                tensors["0.bias"] = model[0].bias.detach()
                config = QuantizationConfig(config_groups={"group_0": scheme}, format=FORMATS.get(
                    preset.removesuffix("A16"), "float-quantized"))
                safetensors.torch.save_file(tensors, self.path / "model.safetensors")
                (self.path / "config.json").write_text(json.dumps(
                    {"quantization_config": json.loads(config.model_dump_json())}))
                loaded = fp8.torch.load_quantized(make_model(), self.path)
                for layer, weight in weights.items():
                    x = torch.randn(5, weight.shape[1])
                    y = x.double() @ weight.double().T
                    if layer == 0:
                        y += model[0].bias.double()
                    with torch.no_grad():
                        self.assertLess(get_error(loaded[layer](x), y.detach()),
                                        0.12 if preset == "NVFP4" else 0.03)
                        if preset.endswith("A16") or "MXFP4" in preset:
                            high = fp8.torch.load_quantized(make_model(), self.path, activations="bf16")
                            # The library rounds weights of NVFP4 to bf16.
                            self.assertLess(get_error(high[layer](x), y.detach()), 1e-6 if "MX" in preset else 3e-3)
                fp8.torch.save_quantized(loaded, self.path / "out", "original")
                written = safetensors.torch.load_file(self.path / "out" / "model.safetensors")
                self.assertEqual(set(written), set(tensors))
                for name, value in tensors.items():
                    self.assertEqual((written[name].dtype, written[name].shape), (value.dtype, value.shape))
                    self.assertTrue(torch.equal(written[name].view(torch.uint8), value.view(torch.uint8)))

    @staticmethod
    def get_parameters(weight, arguments):
        """Scales by compressed-tensors' own arithmetic."""
        n, k = weight.shape
        block = {"tensor": (n, k), "channel": (1, k), "block": (128, 128)}.get(
            arguments.strategy, (1, arguments.group_size))
        tiles = weight.unflatten(0, (-1, block[0])).unflatten(2, (-1, block[1]))
        low, high = tiles.amin((1, 3)), tiles.amax((1, 3))
        if arguments.strategy != "tensor_group":
            scale, _ = calculate_qparams(low, high, arguments)
            return {"weight_scale": scale.reshape(1) if scale.numel() == 1 else scale}
        whole = generate_gparam(low.min(), high.max())
        scale, _ = calculate_qparams(low, high, arguments, whole)
        return {"weight_scale": scale, "weight_global_scale": whole}


if __name__ == "__main__":
    unittest.main()
