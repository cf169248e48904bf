# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Quantized checkpoints: what is written, read by plain PyTorch with the formulas of
compressed-tensors and DeepSeek-V3, and checkpoints as others write them, read and computed."""

import copy
import json
import tempfile
import unittest
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

import fp8
import fp8.torch

E4M3 = torch.float8_e4m3fn
E2M1 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])

# As llm-compressor writes it for FP8_DYNAMIC, and AutoFP8.
FP8_DYNAMIC = {
    "config_groups": {"group_0": {
        "input_activations": {
            "actorder": None, "block_structure": None, "dynamic": True, "group_size": None,
            "num_bits": 8, "observer": "memoryless", "observer_kwargs": {}, "strategy": "token",
            "symmetric": True, "type": "float"},
        "output_activations": None, "targets": ["Linear"],
        "weights": {
            "actorder": None, "block_structure": None, "dynamic": False, "group_size": None,
            "num_bits": 8, "observer": "minmax", "observer_kwargs": {}, "strategy": "channel",
            "symmetric": True, "type": "float"}}},
    "format": "float-quantized", "global_compression_ratio": 1.2, "ignore": ["head"],
    "kv_cache_scheme": None, "quant_method": "compressed-tensors",
    "quantization_status": "compressed"}
FP8_STATIC = {"quant_method": "fp8", "activation_scheme": "static", "ignored_layers": ["head"]}
DEEPSEEK = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
            "weight_block_size": [128, 128]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32, 256)
        self.up, self.down = nn.Linear(256, 160), nn.Linear(160, 256, bias=False)
        self.norm, self.head = nn.LayerNorm(256), nn.Linear(256, 32, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.head(self.norm(x + self.down(self.up(x).relu()))) * self.scale


def make_model(dtype=torch.bfloat16, seed=0):
    torch.manual_seed(seed)
    return Model().to(dtype)


TOKENS = torch.arange(32).reshape(4, 8)


def decompress(tensors, layer):
    """The weight of a layer, in f64: what compressed-tensors' compressors decompress."""
    get = tensors.get
    scale = tensors[f"{layer}.weight_scale"]
    if get(f"{layer}.weight_packed") is not None:
        packed = tensors[f"{layer}.weight_packed"]
        codes = E2M1[torch.stack((packed & 15, packed >> 4), 2).flatten(1).int()]
        scale = scale.double() / tensors[f"{layer}.weight_global_scale"].double()
        return codes.double() * scale.repeat_interleave(16, 1)
    codes = tensors[f"{layer}.weight"].double()
    if scale.dtype == torch.uint8:
        return codes * torch.exp2(scale.double() - 127).repeat_interleave(32, 1)
    if scale.ndim == 2 and scale.shape[1] > 1:
        n, k = codes.shape
        return codes * scale.double().repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return codes * scale.double()


def get_error(value, expected):
    return ((value.double() - expected.double()).norm() / expected.double().norm()).item()


class Checkpoints(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)

    def read(self):
        config = json.loads((self.path / "config.json").read_text())
        return config, safetensors.torch.load_file(self.path / "model.safetensors")

    def write(self, quantization, tensors, config=None):
        self.path.mkdir(exist_ok=True)
        safetensors.torch.save_file(tensors, self.path / "model.safetensors")
        (self.path / "config.json").write_text(json.dumps(
            {"model_type": "llama", "quantization_config": quantization} if config is None
            else config))

    def test_both_ways(self):
        shapes = {
            "current": {"up.weight": (E4M3, (160, 256)), "up.weight_scale": (torch.float32, (1,))},
            "calibrated": {"up.input_scale": (torch.float32, (1,))},
            "rowwise": {"down.weight_scale": (torch.float32, (256, 1))},
            "block": {"up.weight_scale": (torch.float32, (2, 2))},
            "mxfp8": {"up.weight": (E4M3, (160, 256)), "up.weight_scale": (torch.uint8, (160, 8))},
            "nvfp4": {"up.weight_packed": (torch.uint8, (160, 128)),
                      "up.weight_scale": (E4M3, (160, 16)),
                      "up.weight_global_scale": (torch.float32, (1,)),
                      "up.input_global_scale": (torch.float32, (1,))}}
        formats = {"mxfp8": "mxfp8-quantized", "nvfp4": "nvfp4-pack-quantized"}
        for name, expected in shapes.items():
            with self.subTest(name):
                original = make_model()
                model = fp8.torch.quantize_for_inference(
                    copy.deepcopy(original), name.replace("calibrated", "current"),
                    [TOKENS] if name in ("calibrated", "nvfp4") else None, filter=["up", "down"])
                fp8.torch.save_quantized(model, self.path, config={"model_type": "own"})
                config, tensors = self.read()
                self.assertEqual(config["model_type"], "own")
                config = config["quantization_config"]
                self.assertEqual(config["format"], formats.get(name, "float-quantized"))
                self.assertEqual(config["ignore"],
                                 ["down", "head"] if name == "block" else ["head"])
                for key, (dtype, shape) in expected.items():
                    self.assertEqual((tensors[key].dtype, tuple(tensors[key].shape)),
                                     (dtype, shape))
                # Tied weights are stored once.
                self.assertEqual("head.weight" in tensors, False)
                self.assertLess(get_error(decompress(tensors, "up"), original.up.weight),
                                0.12 if name == "nvfp4" else 0.03)
                with torch.no_grad():
                    y = model(TOKENS)
                    for other in (make_model(seed=1), self.make_meta()):
                        loaded = fp8.torch.load_quantized(other, self.path)
                        self.assertIs(loaded, other)
                        self.assertTrue(torch.equal(loaded(TOKENS), y))
                        self.assertIs(loaded.head.weight, loaded.embed.weight)
                kinds = {layer.name: layer for layer in fp8.torch.report(loaded)}
                self.assertEqual(kinds["up"].kind, "fp8")
                self.assertEqual(kinds["head"].kind, "high precision")

    @staticmethod
    def make_meta():
        with torch.device("meta"):
            return Model().bfloat16()

    def test_buffers_that_no_checkpoint_has(self):
        fp8.torch.save_quantized(fp8.torch.quantize_for_inference(
            make_model(), "rowwise", filter=["up", "down"]), self.path)
        model = self.make_meta()
        model.register_buffer("table", torch.ones(3, device="meta"), persistent=False)
        with self.assertWarnsRegex(UserWarning, "table: no checkpoint has such buffers"):
            fp8.torch.load_quantized(model, self.path)

    def test_fp8_layout(self):
        for recipe, calibration in (("current", None), ("current", [TOKENS]), ("block", None)):
            with self.subTest(recipe):
                model = fp8.torch.quantize_for_inference(make_model(), recipe, calibration,
                                                         filter=["up", "down"])
                fp8.torch.save_quantized(model, self.path, layout="fp8")
                config, tensors = self.read()
                config = config["quantization_config"]
                self.assertEqual(config["quant_method"], "fp8")
                self.assertEqual(config["activation_scheme"],
                                 "static" if calibration else "dynamic")
                self.assertEqual(config.get("weight_block_size"),
                                 [128, 128] if recipe == "block" else None)
                self.assertEqual("up.weight_scale_inv" in tensors, recipe == "block")
                with torch.no_grad():
                    self.assertTrue(torch.equal(fp8.torch.load_quantized(
                        make_model(seed=1), self.path)(TOKENS), model(TOKENS)))

    def test_mixed(self):
        model = fp8.torch.quantize_for_inference(make_model(), "rowwise", filter="up")
        fp8.torch.quantize_for_inference(model, "mxfp8", filter="down")
        fp8.torch.save_quantized(model, self.path)
        config = self.read()[0]["quantization_config"]
        self.assertEqual(config["format"], "mixed-precision")
        self.assertEqual([group["targets"] for group in config["config_groups"].values()],
                         [["up"], ["down"]])
        with torch.no_grad():
            self.assertTrue(torch.equal(fp8.torch.load_quantized(
                make_model(seed=1), self.path)(TOKENS), model(TOKENS)))
        with self.assertRaisesRegex(fp8.UnsupportedError, "compressed-tensors has them"):
            fp8.torch.save_quantized(model, self.path, layout="fp8")
        self.assertEqual(self.read()[0]["quantization_config"], config)

    def make_tensors(self, model):
        """All of a model, but for the layers `up` and `down`."""
        return {name: value.clone() for name, value in model.state_dict().items()
                if name not in ("up.weight", "down.weight", "head.weight")}

    def check(self, model, weights, x_scale):
        """Beside PyTorch with decompressed weights, with activations rounded by `x_scale`."""
        loaded = fp8.torch.load_quantized(copy.deepcopy(model).float(), self.path)
        for layer in ("up", "down"):
            x = torch.randn(6, weights[layer].shape[1])
            scale = x_scale(x, layer)
            rounded = (x / scale).clamp(-448, 448).to(E4M3).double() * scale.double()
            expected = rounded @ weights[layer].T
            if layer == "up":
                expected = expected + model.up.bias.double()
            with torch.no_grad():
                self.assertLess(get_error(loaded.get_submodule(layer)(x), expected), 1e-3)

    def test_of_llm_compressor(self):
        # Scales of a model in bf16 are bf16; amax / 448 is rounded to it.
        model = make_model()
        tensors, weights = self.make_tensors(model), {}
        for layer in ("up", "down"):
            weight = model.get_submodule(layer).weight.detach()
            scale = (weight.abs().amax(1, keepdim=True) / 448).bfloat16()
            tensors[f"{layer}.weight"] = (weight / scale).clamp(-448, 448).to(E4M3)
            tensors[f"{layer}.weight_scale"] = scale
            weights[layer] = decompress(tensors, layer)
        tensors["down.weight_scale"] = tensors["down.weight_scale"].flatten()  # As some have it.
        self.write(FP8_DYNAMIC, tensors)
        self.check(model, weights, lambda x, _: x.abs().amax(1, keepdim=True) / 448)

    def test_of_autofp8(self):
        # Scales have no dimension.
        model = make_model()
        tensors, weights = self.make_tensors(model), {}
        for layer in ("up", "down"):
            weight = model.get_submodule(layer).weight.detach().float()
            scale = weight.abs().max() / 448
            tensors[f"{layer}.weight"] = (weight / scale).clamp(-448, 448).to(E4M3)
            tensors[f"{layer}.weight_scale"] = scale
            tensors[f"{layer}.input_scale"] = torch.tensor(0.004 if layer == "up" else 0.01)
            weights[layer] = decompress(tensors, layer)
        self.write(FP8_STATIC, tensors)
        self.check(model, weights, lambda _, layer: tensors[f"{layer}.input_scale"])

    def test_of_deepseek(self):
        # Blocks at the edges are smaller: 160 is not a multiple of 128.
        model = make_model()
        for dtype, extra in ((torch.float32, {}), (torch.bfloat16, {}),
                             (torch.float8_e8m0fnu, {"scale_fmt": "ue8m0"})):
            tensors, weights = self.make_tensors(model), {}
            for layer in ("up", "down"):
                weight = model.get_submodule(layer).weight.detach().float()
                n, k = weight.shape
                padded = nn.functional.pad(weight, (0, -k % 128, 0, -n % 128))
                amax = padded.unflatten(0, (-1, 128)).unflatten(2, (-1, 128)).abs().amax((1, 3))
                scale = torch.exp2(torch.ceil(torch.log2(amax / 448)))
                spread = scale.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
                tensors[f"{layer}.weight"] = (weight / spread).to(E4M3)
                tensors[f"{layer}.weight_scale_inv"] = scale.to(dtype)
                weights[layer] = tensors[f"{layer}.weight"].double() * spread
            self.write({**DEEPSEEK, **extra}, tensors)

            def x_scale(x, _):
                tiles = nn.functional.pad(x, (0, -x.shape[1] % 128)).unflatten(1, (-1, 128))
                scale = tiles.abs().amax(2) / 448
                scale = torch.exp2(torch.ceil(torch.log2(scale))) if extra else scale
                return scale.repeat_interleave(128, 1)[:, :x.shape[1]]
            self.check(model, weights, x_scale)

    def test_of_modelopt(self):
        model = make_model()
        weight_of = {layer: model.get_submodule(layer).weight.detach().float()
                     for layer in ("up", "down")}
        # FP8: scales have no dimension; those of rows one. A cache of keys has scales, too.
        for algorithm in ("FP8", "FP8_PER_CHANNEL_PER_TOKEN"):
            is_static = algorithm == "FP8"
            tensors, weights = self.make_tensors(model), {}
            for layer, weight in weight_of.items():
                scale = (weight.abs().max() if is_static else weight.abs().amax(1)) / 448
                codes = weight / (scale if is_static else scale[:, None])
                tensors[f"{layer}.weight"] = codes.clamp(-448, 448).to(E4M3)
                tensors[f"{layer}.weight_scale"] = scale
                if is_static:
                    tensors[f"{layer}.input_scale"] = torch.tensor(0.01)
                weights[layer] = tensors[f"{layer}.weight"].double() * scale.double().reshape(-1, 1)
            tensors["up.k_scale"] = torch.tensor(1.0)
            self.write({"quant_method": "modelopt", "quant_algo": algorithm, "ignore": ["head"],
                        "config_groups": {}, "producer": {"name": "modelopt"}}, tensors)
            self.check(model, weights, lambda x, layer: tensors[f"{layer}.input_scale"]
                       if is_static else x.abs().amax(1, keepdim=True) / 448)
        # NVFP4 has compressed-tensors' codes and block scales, other names, and of the scales
        # for tensors the inverse. Each layer by itself, in a file of its own.
        own = fp8.torch.quantize_for_inference(copy.deepcopy(model), "nvfp4", [TOKENS],
                                               filter="up")
        own = fp8.torch.quantize_for_inference(own, "mxfp8", filter="down")
        tensors = self.make_tensors(model)
        for name, value in own.state_dict().items():
            if name in ("up.weight_global_scale", "up.input_global_scale"):
                name, value = name.replace("weight_global", "weight").replace(
                    "input_global", "input") + "_2" * ("weight" in name), 1 / value.reshape(())
            if name.startswith(("up.", "down.")):
                tensors[name.replace("_packed", "")] = value.detach().contiguous()
        self.assertEqual({name for name in tensors if name.startswith("up.")},
                         {"up.weight", "up.weight_scale", "up.weight_scale_2", "up.input_scale",
                          "up.bias"})
        self.write(None, tensors, {"model_type": "llama"})
        (self.path / "hf_quant_config.json").write_text(json.dumps({
            "producer": {"name": "modelopt", "version": "0.47.0"}, "quantization": {
                "quant_algo": "MIXED_PRECISION", "kv_cache_quant_algo": "FP8",
                "exclude_modules": ["head"], "quantized_layers": {
                    "up": {"quant_algo": "NVFP4", "group_size": 16},
                    "down": {"quant_algo": "MXFP8"}}}}))
        loaded = fp8.torch.load_quantized(make_model(seed=1), self.path)
        with torch.no_grad():
            self.assertLess(get_error(loaded(TOKENS), own(TOKENS)), 1e-3)
        for algorithm in ("NVFP4_AWQ", "W4A8_AWQ", None):
            self.write({"quant_method": "modelopt", "quant_algo": algorithm}, tensors)
            with self.assertRaisesRegex(fp8.UnsupportedError, f"FP8, .* for 'up', but got "
                                                              f"{algorithm}"):
                fp8.torch.load_quantized(make_model(seed=1), self.path)

    def test_shards(self):
        model = fp8.torch.quantize_for_inference(make_model(), "rowwise", filter=["up", "down"])
        fp8.torch.save_quantized(model, self.path)
        _, tensors = self.read()
        names = {}
        for index, half in enumerate((list(tensors)[::2], list(tensors)[1::2])):
            file = f"model-{index}.safetensors"
            names.update(dict.fromkeys(half, file))
            safetensors.torch.save_file({name: tensors[name] for name in half}, self.path / file)
        (self.path / "model.safetensors").unlink()
        (self.path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
        loaded = fp8.torch.load_quantized(make_model(seed=1), self.path)
        with torch.no_grad():
            self.assertLess(get_error(loaded(TOKENS), model(TOKENS)), 0.01)

    def test_mistakes_leave_the_model(self):
        good = fp8.torch.quantize_for_inference(make_model(), "rowwise", filter=["up", "down"])
        fp8.torch.save_quantized(good, self.path)
        config, tensors = self.read()
        quantization = config["quantization_config"]
        group = quantization["config_groups"]["group_0"]

        def change(**entries):
            return {**quantization, "config_groups": {"group_0": {**group, **entries}}}
        weights, activations = group["weights"], group["input_activations"]
        cases = [
            (fp8.FileError, "expected a quantization_config", {}, {}),
            (fp8.UnsupportedError, "quant_method 'awq'", {"quant_method": "awq"}, {}),
            (fp8.UnsupportedError, "expected weights of 'up' to be quantized", change(weights=None), {}),
            (fp8.MismatchError, "expected 'up' in high precision, since the config ignores it",
             {**quantization, "ignore": ["re:u"]}, {}),
            (fp8.UnsupportedError, "but got int of 8 bits",
             change(weights={**weights, "type": "int"}), {}),
            (fp8.UnsupportedError, "equally many elements along K",
             change(weights={**weights, "strategy": "block", "block_structure": [128, 128]}), {}),
            (fp8.UnsupportedError, "strategy", change(weights={**weights, "strategy": "x"}), {}),
            (fp8.UnsupportedError, "output_activations",
             change(output_activations=activations), {}),
            (fp8.UnsupportedError, "transform_config",
             {**quantization, "transform_config": {"a": 1}}, {}),
            (fp8.MismatchError, "no group of the config has it", change(targets=["re:other.*"]), {}),
            (fp8.MismatchError, "expected 'up.weight_scale'", None, {"up.weight_scale": None}),
            (fp8.MismatchError, "expected 'up' without input_scale", None,
             {"up.input_scale": torch.ones(1)}),
            (fp8.MismatchError, r"'up': expected 'weight_scale' to be .*\(160, 1\)", None,
             {"up.weight_scale": torch.ones(80, 1)}),
            (fp8.MismatchError, "expected 'norm.weight' in the checkpoint", None,
             {"norm.weight": None}),
            (fp8.MismatchError, "expected 'norm.weight' of", None, {"norm.weight": torch.ones(2)}),
            (fp8.MismatchError, "expected a model with other.weight", None,
             {"other.weight": torch.ones(2)}),
            (fp8.MismatchError, "expected codes of a layer", None,
             {"up.weight": torch.ones(160, 256), "down.weight": torch.ones(256, 160)})]
        for kind, message, quantization_config, others in cases:
            with self.subTest(message):
                changed = {name: value for name, value in {**tensors, **others}.items()
                           if value is not None}
                self.write(quantization if quantization_config is None else quantization_config,
                           changed)
                model = make_model(seed=1)
                before = model(TOKENS)
                with self.assertRaisesRegex(kind, message):
                    fp8.torch.load_quantized(model, self.path)
                self.assertTrue(torch.equal(model(TOKENS), before))
        self.write(quantization, {**tensors, "other.weight": torch.ones(2),
                                  "up.k_scale": torch.ones(1)})
        fp8.torch.load_quantized(make_model(), self.path, strict=False)

    def test_files(self):
        model = fp8.torch.quantize_for_inference(make_model(), "nvfp4", filter="up")
        with self.assertRaisesRegex(fp8.UnsupportedError, "nvfp4 with calibration"):
            fp8.torch.save_quantized(model, self.path)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a model with quantized layers"):
            fp8.torch.save_quantized(make_model(), self.path)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected the layout"):
            fp8.torch.save_quantized(model, self.path, layout="gguf")
        for text, message in ((None, "No such file"), ("{", "config.json"), ("[]", "an object")):
            if text is not None:
                (self.path / "config.json").write_text(text)
            with self.assertRaisesRegex(fp8.FileError, message):
                fp8.torch.load_quantized(make_model(), self.path)
        (self.path / "config.json").write_text(json.dumps({"quantization_config": FP8_STATIC}))
        with self.assertRaisesRegex(fp8.FileError, "expected .safetensors, but got none"):
            fp8.torch.load_quantized(make_model(), self.path)
        (self.path / "model.safetensors").write_bytes(b"\xff" * 64)
        with self.assertRaisesRegex(fp8.FileError, "model.safetensors"):
            fp8.torch.load_quantized(make_model(), self.path)
        (self.path / "blocked").write_text("")
        model = fp8.torch.quantize_for_inference(make_model(), "current", filter="up")
        with self.assertRaises(fp8.FileError):
            fp8.torch.save_quantized(model, self.path / "blocked")


if __name__ == "__main__":
    unittest.main()
