# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Checkpoints whose experts are stacked otherwise than gpt-oss's, written by hand: Llama 4's by FBGEMM, K x N with a scale
for each column, and Step 3.7's, with a stack for gates and one for what goes with them."""

import copy
import sys
import unittest
from pathlib import Path

import numpy as np
import torch
import transformers
from torch import nn

import fp8
import fp8.torch
from fp8.torch.experts import QuantizedExperts, QuantizedRows

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "Inputs")]
import published as pub
import torch_published
from torch_published import DEEPSEEK, EXPERTS, TOKENS, get_error, make_meta, make_model, multiply_exactly, to_numpy, turn

FBGEMM = {"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0, "modules_to_not_convert": [
    "lm_head", "router", *(f"model.layers.{i}.self_attn.{name}" for i in range(2) for name in ("q_proj", "k_proj"))]}


def write_llama4(model):
    """Tensors by the names that transformers' FbgemmFp8Linear and FbgemmFp8Llama4TextExperts have, and the model with the
    values that they are."""
    model, tensors, quantized = copy.deepcopy(model), {}, set()
    with torch.no_grad():
        for name, module in model.named_modules():
            left = any(name.endswith(other) for other in FBGEMM["modules_to_not_convert"])
            if isinstance(module, nn.Linear) and not left:
                codes, scales, values = pub.quantize_rows(module.weight.double().numpy())
                tensors.update({f"{name}.weight": codes, f"{name}.weight_scale": scales})
                quantized.add(f"{name}.weight")
                multiply_exactly(module)
                module.weight.copy_(torch.from_numpy(values))
            elif name.endswith(".experts"):
                multiply_exactly(module)
                for projection in ("gate_up_proj", "down_proj"):
                    weight = getattr(module, projection)
                    codes, scales, values = pub.quantize_rows(np.ascontiguousarray(weight.double().mT.numpy()))
                    label = f"{name}.{projection}"
                    tensors[label] = turn(codes)
                    tensors[f"{label}_scale"] = turn(scales) if projection == "gate_up_proj" else scales
                    quantized.add(label)
                    weight.copy_(torch.from_numpy(values).mT)
    tensors.update((name, to_numpy(value)) for name, value in model.state_dict().items() if name not in quantized)
    tensors["model.layers.0.feed_forward.shared_expert.up_proj.input_scale_ub"] = np.full(1, 1200, np.float32)
    return tensors, model


def write_step(model):
    """Tensors by the names that Step 3.7 has."""
    model, tensors, quantized = copy.deepcopy(model), {}, set()

    def rename(name):
        name = name.replace("model.vision_model.", "vision_model.").replace("model.multi_modal_projector.", "vit_large_projector.")
        name = name.replace("model.language_model.", "model.").replace(".mlp.gate.e_score_correction_bias", ".moe.router_bias")
        return name.replace(".mlp.gate.weight", ".moe.gate.weight").replace(".mlp.shared_experts.", ".share_expert.")

    def put(prefix, weight):
        codes, scales, values = pub.quantize_block(weight.double().numpy())
        tensors.update({f"{prefix}.weight": codes, f"{prefix}.weight_scale_inv": scales})
        return torch.from_numpy(values)
    with torch.no_grad():
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear) and "language_model" in name:
                quantized.add(f"{name}.weight")
                multiply_exactly(module)
                module.weight.copy_(put(rename(name), module.weight))
            elif name.endswith(".experts"):
                quantized.update((f"{name}.gate_up_proj", f"{name}.down_proj"))
                multiply_exactly(module)
                prefix = rename(name).replace(".mlp.experts", ".moe")
                gate, up = module.gate_up_proj.chunk(2, 1)
                module.gate_up_proj.copy_(torch.cat([put(f"{prefix}.gate_proj", gate), put(f"{prefix}.up_proj", up)], 1))
                module.down_proj.copy_(put(f"{prefix}.down_proj", module.down_proj))
    tensors.update((rename(name), to_numpy(value)) for name, value in model.state_dict().items() if name not in quantized)
    return tensors, model


class Stacks(unittest.TestCase):
    setUp, write, check = (getattr(torch_published.Published, name) for name in ("setUp", "write", "check"))

    def test_llama4(self):
        tensors, expected = write_llama4(make_model("llama4"))
        loaded = self.check("llama4", tensors, FBGEMM, expected)
        experts = loaded.model.layers[1].feed_forward.experts
        self.assertIsInstance(experts, QuantizedRows)
        self.assertEqual(experts.gate, (1.0, None, 0.0, False))
        self.assertIs(type(loaded.model.layers[0].self_attn.q_proj), nn.Linear)

    def test_rows(self):
        """Rows of zeros have results of zeros, and a number that experts do not share is refused."""
        experts = make_model("llama4").model.layers[0].feed_forward.experts
        with torch.no_grad():
            quantized = fp8.torch.quantize_for_inference(nn.ModuleList([copy.deepcopy(experts)]), "rowwise")[0]
            x = torch.randn(EXPERTS * 6, 128, generator=torch.Generator().manual_seed(0)).bfloat16()
            x[::3] = 0
            y = quantized(x)
            self.assertLess(get_error(y, experts(x)), 0.08)
            self.assertTrue(bool((y[::3] == 0).all()))
            x[1] = float("nan")
            self.assertTrue(bool(quantized(x)[1].isnan().all()))
            with self.assertRaisesRegex(fp8.ArgumentError, "as many rows for each of 4 experts, but got 5 in all"):
                quantized(x[:5])

    def test_step(self):
        if not hasattr(transformers, "Step3p7Config"):
            self.skipTest("this version of transformers has no such model")
        tensors, expected = write_step(make_model("step3p7", seed=3))
        loaded = self.check("step3p7", tensors, DEEPSEEK, expected)
        self.assertIn(QuantizedExperts, [type(module) for module in loaded.modules()])

    def refuse(self, kind, tensors, quantization, *patterns):
        source, model = self.write(tensors, quantization, 1), make_meta(kind)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        with self.assertRaises(fp8.Error) as caught:
            fp8.torch.load_quantized(model, source)
        for pattern in patterns:
            self.assertRegex(str(caught.exception), pattern)
        after = model.state_dict()
        self.assertEqual(after.keys(), before.keys())
        self.assertTrue(all(torch.equal(value, before[name]) for name, value in after.items()))

    def test_wrong_llama4(self):
        tensors, _ = write_llama4(make_model("llama4"))
        label = "model.layers.1.feed_forward.experts.gate_up_proj"
        scales = f"{label}_scale"
        for name, value, pattern in (
                (label, np.ascontiguousarray(tensors[label][:3]), "for 4 experts, but got 3"),
                (label, turn(tensors[label]), f"'{label}': expected 'weight'"),
                (scales, np.full_like(tensors[scales], np.nan), f"finite scales of '{scales}'"),
                (scales, tensors[scales][..., :-1], f"'{label}': expected 'weight_scale'"),
                (scales, None, f"'{label}")):
            with self.subTest(name=name, pattern=pattern):
                changed = {**tensors, name: value}
                if value is None:
                    del changed[name]
                self.refuse("llama4", changed, FBGEMM, pattern)
        for bound in (0, -1.0, "x", True):
            self.refuse("llama4", tensors, {**FBGEMM, "activation_scale_ub": bound}, "activation_scale_ub above 0")
        self.refuse("llama4", tensors, {**FBGEMM, "modules_to_not_convert": ["model.layers.1"]},
                    "in high precision, since modules_to_not_convert has it")

    def test_wrong_step(self):
        if not hasattr(transformers, "Step3p7Config"):
            self.skipTest("this version of transformers has no such model")
        tensors, _ = write_step(make_model("step3p7", seed=3))
        prefix = "model.layers.1.moe"
        for name, value, pattern in (
                (f"{prefix}.up_proj.weight", None, "up_proj"),
                (f"{prefix}.gate_proj.weight", np.ascontiguousarray(tensors[f"{prefix}.gate_proj.weight"][:2]), "for 4 experts, but got 2"),
                (f"{prefix}.up_proj.weight_scale_inv", np.full((EXPERTS, 1, 1), np.inf, np.float32), "finite scales"),
                (f"{prefix}.down_proj.weight", None, "down_proj")):
            with self.subTest(name=name):
                changed = {**tensors, name: value}
                if value is None:
                    del changed[name]
                self.refuse("step3p7", changed, DEEPSEEK, pattern)


if __name__ == "__main__":
    unittest.main()
