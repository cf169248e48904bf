# REQUIRES: pytorch, python-pytorch, python-torchtitan
# RUN: %import_python %s
"""torchtitan's override: its Llama 3 with linear layers in FP8, forward and backward, parameters by their names; and
what is refused."""

import unittest

import torch
from torchtitan.config.override import OverrideConfig, apply_overrides, parse_cli_imports
from torchtitan.models.common.attention import ScaledDotProductAttention
from torchtitan.models.llama3 import llama3_configs

import fp8
import fp8.torch
import fp8.torchtitan

IDS = torch.arange(32).reshape(1, 32) * 37 % 2048


def make_model(*imports):
    config = llama3_configs["debugmodel"](attn_backend="flex")
    config.layers = config.layers[:2]
    for layer in config.layers:  # Its own for a CPU.
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    lines = apply_overrides(OverrideConfig(imports=list(imports)), config)
    torch.manual_seed(0)
    model = config.build()
    model.init_states(buffer_device=torch.device("cpu"))
    return model, lines


class Override(unittest.TestCase):
    def test_model(self):
        plain, lines = make_model()
        self.assertEqual(lines, [])
        model, lines = make_model(*parse_cli_imports(['fp8.torchtitan.linear={"recipe": "current"}']))
        layers = fp8.torch.modules.get_layers(model)
        self.assertEqual(len(layers), len(lines))
        self.assertTrue(lines and all(name.startswith("layers.") for name in layers), list(layers))
        self.assertEqual(list(model.state_dict()), list(plain.state_dict()))
        for value, other in zip(model.parameters(), plain.parameters()):
            self.assertTrue(torch.equal(value, other))
        logits, expected = model(IDS), plain(IDS)
        error = ((logits - expected).norm() / expected.norm()).item()
        self.assertTrue(0 < error < 0.2, error)
        logits.square().mean().backward()
        self.assertTrue(all(value.grad.isfinite().all() for value in model.parameters()))
        self.assertIn("3 of 3 matrix products in FP8", fp8.torch.summarize(model))

    def test_refused(self):
        with self.assertRaises(fp8.Error):
            make_model(("fp8.torchtitan.linear", {"recipe": "curent"}))
        with self.assertRaisesRegex(ValueError, "names no registered"):  # torchtitan's own.
            make_model("fp8.torchtitan.linears")


if __name__ == "__main__":
    unittest.main()
