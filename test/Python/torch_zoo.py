# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %import_python %s Zoo.test_kernels_of_a_gpu
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=121 %import_python %s Zoo.test_kernels_of_a_gpu
"""Models of transformers and timm (benchmarks/zoo_models.py), tiny: steps of training by layers and
by the backend, beside bf16, and some with the kernels of a GPU."""

import os
import sys
import unittest
import warnings
from pathlib import Path

import torch

import fp8
import fp8.torch
from fp8.torch import modules

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
import zoo_models  # noqa: E402

# Those whose graphs are compiled, too: of every kind, and none that takes long.
COMPILED = ("llama", "gemma2", "qwen3", "phi3", "gpt_neox", "opt", "mixtral", "gpt_oss", "gpt2",
            "bert", "roberta", "vit", "resnet", "wav2vec2", "t5", "whisper", "timm_eva02")
# With the kernels of a GPU, an H200's if nothing is said: decoder, Conv1D, experts, vision.
ON_GPU = "llama", "gpt2", "mixtral", "vit"
TARGET = {"89": "sm_89", "121": "sm_121a"}.get(os.environ.get("FP8_EMULATOR_ARCH"), "sm_90a")
# A loss of four pairs, whose differences are multiplied with 14: as far as other roundings get.
TOLERANCES = {"clip": 8}


def train(name, convert, steps=2):
    """The losses, and the norm of the first gradients."""
    model, inputs = zoo_models.make(name, zoo_models.Sizes(tiny=True))
    call = convert(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses, norms = [], []
    for _ in range(steps):
        loss = call(**inputs).loss
        loss.backward()
        norms.append(torch.stack([value.grad.float().norm() for value in model.parameters()
                                  if value.grad is not None]).norm().item())
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, norms[0]


class Zoo(unittest.TestCase):
    expected = {}

    def setUp(self):
        warnings.simplefilter("ignore")

    def get_expected(self, name):
        if name not in self.expected:
            self.expected[name] = train(name, lambda model: model)
        return self.expected[name]

    def check(self, name, results, expected):
        factor = TOLERANCES.get(name, 1)
        for loss, other in zip(results[0], expected[0], strict=True):
            self.assertLess(abs(loss / other - 1), factor * 0.02, (name, results, expected))
        self.assertLess(abs(results[1] / expected[1] - 1), factor * 0.05,
                        (name, results, expected))

    def make_layers(self, target="cpu"):
        def convert(model):
            fp8.torch.convert_to_fp8_training(model, "current", target=target, opt_level=0)
            return model
        return convert

    def test_there_are_enough(self):
        self.assertGreaterEqual(len(zoo_models.MODELS), 24)
        self.assertLessEqual({*zoo_models.HELD_OUT, *COMPILED, *ON_GPU}, set(zoo_models.MODELS))
        self.assertGreaterEqual(len(COMPILED), 16)

    def test_layers(self):
        for name in zoo_models.MODELS:
            if name == "resnet":  # Its only layer is its last.
                with self.assertRaisesRegex(fp8.ArgumentError, "got 1 that match"):
                    train(name, self.make_layers())
                continue
            with self.subTest(name):
                self.check(name, train(name, self.make_layers()), self.get_expected(name))

    def test_backend(self):
        for name in COMPILED:
            with self.subTest(name):
                torch._dynamo.reset()
                backend = fp8.torch.Backend("current", target="cpu", rest="eager", opt_level=0)
                results = train(name, lambda model: torch.compile(model, backend=backend))
                self.check(name, results, self.get_expected(name))
                kinds = [remark.kind for remark in backend.remarks]
                self.assertGreater(kinds.count("fp8"), 0)

    def test_kernels_of_a_gpu(self):
        for name in ON_GPU:
            with self.subTest(name):
                losses, norm = train(name, self.make_layers(TARGET))
                others, other = train(name, self.make_layers())
                for loss, expected in zip(losses, others):
                    self.assertLess(abs(loss / expected - 1), 5e-3)
                self.assertLess(abs(norm / other - 1), 1e-2)


class Layers(unittest.TestCase):
    """What transformers has in place of torch.nn.Linear."""

    def setUp(self):
        warnings.simplefilter("ignore")

    def convert(self, name, **options):
        model, inputs = zoo_models.make(name, zoo_models.Sizes(tiny=True))
        keys = list(model.state_dict())
        fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0, opt_level=0,
                                          **options)
        self.assertEqual(list(model.state_dict()), keys)
        return model, inputs

    def get_products(self, model):
        return {name: {remark.kind for remark in layer.remarks}
                for name, layer in modules.get_layers(model).items()}

    def test_conv1d(self):
        model, inputs = self.convert("gpt2", filter="transformer.*")
        model(**inputs).loss.backward()
        names = [f"transformer.h.0.{name}" for name in (
            "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")]
        self.assertEqual(self.get_products(model), dict.fromkeys(names, {"fp8"}))
        self.assertEqual(type(model.transformer.h[0].attn.c_attn).__name__, "Conv1D")

    def test_experts(self):
        """However they run, they are grouped products, also where there are biases."""
        for name in ("mixtral", "gpt_oss"):
            losses = []
            for kind in ("eager", "grouped_mm", "batched_mm"):
                model, inputs = self.convert(name, filter="*.experts")
                for module in model.modules():
                    if hasattr(module, "config"):
                        module.config._experts_implementation = kind
                loss = model(**inputs).loss
                loss.backward()
                losses.append(loss.item())
                self.assertEqual(self.get_products(model), {
                    f"model.layers.0.mlp.experts.{part}_proj": {"fp8"}
                    for part in ("gate_up", "down")})
            self.assertEqual(len(set(losses)), 1, losses)

    def test_compiled(self):
        for name in ("gpt2", "mixtral"):
            model, inputs = self.convert(name)
            del inputs["labels"]  # What makes losses says something, which is a graph break.
            expected = model(**inputs).logits
            torch._dynamo.reset()
            call = torch.compile(model, backend="aot_eager", fullgraph=True)
            self.assertTrue(torch.equal(call(**inputs).logits, expected), name)

    def test_a_router_stays(self):
        model, inputs = self.convert("mixtral")
        model(**inputs)
        self.assertRegex(fp8.torch.summarize(model), r"mlp.gate: current\n  high precision: of the "
                                                     r"gradient of x: K=4 is not a multiple of 16")

    def test_models_that_were_not_converted(self):
        model, inputs = zoo_models.make("mixtral", zoo_models.Sizes(tiny=True))
        expected = model(**inputs).loss
        with fp8.torch.autocast("current"):
            loss = model(**inputs).loss
        self.assertLess(abs(loss.item() / expected.item() - 1), 0.01)
        found = {name for name, kinds in self.get_products(model).items() if kinds == {"fp8"}}
        self.assertLessEqual({"model.layers.0.mlp.experts.down_proj", "lm_head",
                              "model.layers.0.self_attn.q_proj"}, found)


if __name__ == "__main__":
    torch.set_num_threads(1)  # These are small.
    unittest.main()
