# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""from_pretrained with an FP8Config: models of three kinds that are quantized, saved and loaded again, and
trained; and what is refused."""

import copy
import json
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import safetensors.torch
import torch
import transformers
from transformers.quantizers import auto

import fp8
import fp8.torch
import fp8.transformers
from fp8.transformers import FP8Config

SMALL = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "head_dim": 16}
GPT2 = {"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0, "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 96, "n_positions": 64}
IDS = torch.arange(32).reshape(2, 16) * 7 % 96
transformers.utils.logging.disable_progress_bar()
transformers.utils.logging.set_verbosity_error()


class Models(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def make(self, kind="Llama", **options):
        """A model, which is saved in the folder."""
        torch.manual_seed(0)
        config = getattr(transformers, f"{kind}Config")(**(GPT2 if kind == "GPT2" else SMALL), **options)
        name = "GPT2LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
        model = getattr(transformers, name)(config).eval()
        model.save_pretrained(self.folder / "plain")
        return model

    def load(self, name="plain", **options):
        return transformers.AutoModelForCausalLM.from_pretrained(self.folder / name, **options)

    def test_inference(self):
        for kind, configs in (("Llama", (FP8Config(), FP8Config("current", weights="mxfp4"), FP8Config("nvfp4"))),
                              ("Qwen2", (FP8Config(fp8.RowwiseScaling(), filter=["*.mlp.*", "lm_head"]),)),
                              ("GPT2", (FP8Config(), FP8Config("current", weights="mxfp4")))):
            plain = self.make(kind)
            for config in configs:
                with self.subTest(kind, config=config.to_dict()), torch.no_grad():
                    model = self.load(quantization_config=config)
                    globs = config.filter or ["*", "!lm_head"]
                    expected = fp8.torch.quantize_for_inference(copy.deepcopy(plain), config.recipe, filter=globs,
                                                                weights=config.weights)
                    logits = model(IDS).logits
                    self.assertTrue(torch.equal(logits, expected(IDS).logits))
                    model.save_pretrained(self.folder / "quantized")
                    again = self.load("quantized")
                    self.assertEqual(str(fp8.torch.report(again)).count("fp8:"),
                                     str(fp8.torch.report(expected)).count("fp8:"))
                    # As many are one product in graphs.
                    self.assertEqual(*([getattr(module, "_row", None) is None for module in made.modules()]
                                       for made in (again, model)))
                    self.assertTrue(torch.equal(again(IDS).logits, logits))
                    self.assertTrue(torch.equal(again.generate(IDS, max_new_tokens=3, do_sample=False),
                                                model.generate(IDS, max_new_tokens=3, do_sample=False)))
                    self.assertFalse(any(value.requires_grad for value in again.parameters()))

    def test_dequantize(self):
        self.make()
        model = self.load(quantization_config=FP8Config())
        with torch.no_grad():
            expected = model(IDS).logits
            plain = model.dequantize()
            self.assertIs(type(plain.model.layers[0].mlp.up_proj), torch.nn.Linear)
            error = (plain(IDS).logits - expected).norm() / expected.norm()
        self.assertTrue(0 < error < 0.1, error)

    def test_conv1d(self):
        """GPT-2's layers have their weights the other way round; codes have not, in whatever checkpoint."""
        plain = self.make("GPT2")
        model = self.load(quantization_config=FP8Config())
        with torch.no_grad():
            layer = model.transformer.h[0].attn.c_attn
            self.assertEqual(tuple(layer.weight.shape), (192, 64))
            logits = model(IDS).logits
            fp8.torch.save_quantized(model, self.folder / "codes")
            again = fp8.torch.load_quantized(copy.deepcopy(plain), self.folder / "codes")
            self.assertTrue(torch.equal(again(IDS).logits, logits))
            for made in (model, again):
                values = made.transformer.h[0].attn.c_attn.dequantize()
            dense = model.dequantize()
            error = (dense(IDS).logits - logits).norm() / logits.norm()
        self.assertTrue(0 < error < 0.1, error)
        found = dense.transformer.h[0].attn.c_attn
        self.assertEqual(type(found).__name__, "Conv1D")
        self.assertTrue(torch.equal(found.weight, values.t()))
        plain.load_state_dict(dense.state_dict())

    def test_training(self):
        for kind in ("Llama", "GPT2"):
            with self.subTest(kind):
                plain = self.make(kind)
                model = self.load(quantization_config=FP8Config(
                    "current", training=True, options={"first_last_bf16": 0}))
                model.train()(IDS, labels=IDS).loss.backward()
                self.assertIn("3 of 3 matrix products in FP8", fp8.torch.summarize(model))
                fp8.torch.convert_to_fp8_training(plain, "current", first_last_bf16=0)
                plain.train()(IDS, labels=IDS).loss.backward()
                for (name, value), other in zip(model.named_parameters(), plain.parameters()):
                    self.assertTrue(torch.equal(value.grad, other.grad), name)
                # What it writes is a checkpoint in high precision.
                model.save_pretrained(self.folder / "trained")
                self.assertNotIn("quantization_config", json.loads(
                    (self.folder / "trained" / "config.json").read_text()))
                again = self.load("trained")
                self.assertTrue(torch.equal(next(again.parameters()), next(model.parameters())))

    def test_wrong_configs(self):
        for make, text in ((lambda: FP8Config("delayed"), "current, rowwise, block, mxfp8 or nvfp4"),
                           (lambda: FP8Config("rowwise", modules_to_not_convert=[]), "options of FP8Config"),
                           (lambda: FP8Config(filter=lambda *_: True), "globs"),
                           (lambda: FP8Config("current", training=True, weights="mxfp4"), "weights=None"),
                           (lambda: FP8Config(options={"first_last_bf16": 0}), "training=True"),
                           (lambda: FP8Config("rowwise", weights="int4"), "rowwise, block or None")):
            with self.assertRaisesRegex(fp8.ArgumentError, text):
                make()

    def test_wrong_checkpoints(self):
        self.make()
        self.load(quantization_config=FP8Config()).save_pretrained(self.folder / "quantized")
        config = self.folder / "quantized" / "config.json"
        text = config.read_text()
        entries = json.loads(text)
        name = "model.layers.9.mlp.up_proj"
        entries["quantization_config"]["layers"][0]["names"].append(name)
        config.write_text(json.dumps(entries))
        with self.assertRaisesRegex(fp8.MismatchError, f"linear layer '{name}'"):
            self.load("quantized")
        entries["quantization_config"]["layers"] = None
        config.write_text(json.dumps(entries))
        with self.assertRaisesRegex(fp8.MismatchError, "save_pretrained writes them"):
            self.load("quantized")
        config.write_text(text)
        path = self.folder / "quantized" / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        del tensors["model.layers.1.mlp.up_proj.weight_scale"]
        safetensors.torch.save_file(tensors, path, {"format": "pt"})
        with self.assertRaisesRegex(fp8.MismatchError, r"1.mlp.up_proj.weight_scale' in the checkpoint"):
            self.load("quantized")

    def test_a_gpu_without_kernels(self):
        with mock.patch("fp8.compiler.get_default_target", return_value="cpu"), \
                mock.patch("fp8._core.get_devices", return_value=[("NVIDIA A100", (8, 0))]):
            with self.assertRaisesRegex(fp8.UnsupportedError, "9.0 or 10.0, but got NVIDIA A100 of 8.0"):
                fp8.transformers.FP8Quantizer(FP8Config()).validate_environment(device_map={"": "cuda:0"})
            fp8.transformers.FP8Quantizer(FP8Config(), pre_quantized=False).validate_environment(device_map="cpu")

    def test_two_plug_ins(self):
        with self.assertRaisesRegex(fp8.UnsupportedError, "BitsAndBytesConfig has registered it"):
            fp8.transformers._check_alone({"fp8-mlir": transformers.BitsAndBytesConfig}, "config")
        fp8.transformers._check_alone(dict(auto.AUTO_QUANTIZATION_CONFIG_MAPPING), "config")

    def test_versions(self):
        from fp8 import frameworks
        for version, text in (("5.16.9", "5.17 or newer, but got 5.16.9"), ("4.57.0.dev0", "but got 4.57.0.dev0")):
            with mock.patch("importlib.metadata.version", return_value=version):
                with self.assertRaisesRegex(fp8.UnsupportedError, text):
                    frameworks.require("transformers", "5.17")
        with mock.patch("importlib.metadata.version", return_value="5.17.0rc1"):
            frameworks.require("transformers", "5.17")
        with self.assertRaisesRegex(fp8.UnsupportedError, "it is not installed"):
            frameworks.require("no-such-framework", "1.0")


if __name__ == "__main__":
    unittest.main()
