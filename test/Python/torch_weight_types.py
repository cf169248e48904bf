# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Models that cast activations to the type of a layer's weight, or compute with it themselves: these layers stay in high precision,
or a warning says which checkpoints do not have them so."""

import copy
import io
import itertools
import tempfile
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import weight_types


class Config:
    pass


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Hidden(nn.Module):
    """Multiplies with a weight in a way that its code does not show."""

    def __init__(self, get):
        super().__init__()
        self.layers, self.get = nn.ModuleList([nn.Linear(64, 64)]), get

    def forward(self, x):
        return F.linear(x, self.get(list(self.layers)[0].weight))


class Vision(nn.Module):
    """As Qwen2-VL's has it."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])

    def get_dtype(self):
        return self.blocks[0].down.weight.dtype

    def forward(self, x):
        x = x.to(self.get_dtype())
        for block in self.blocks:
            x = block(x)
        return x


class Knows(nn.Module):
    """As GPT-J's attention has it."""

    def __init__(self):
        super().__init__()
        self.config, self.proj = Config(), nn.Linear(32, 32)

    def forward(self, x):
        if hasattr(self.config, "_is_quantized"):
            return self.proj(x)
        return self.proj(x.to(self.proj.weight.dtype))


class Names(nn.Module):
    """Computes in functions whose names have words within words that set up, and in one that a class behind it replaces."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Linear(32, 32, bias=False) for _ in range(3))

    def fused_projection(self, x):
        return F.linear(x, self.a.weight)

    def initialize_weights(self):
        return F.linear(torch.ones(32), self.c.weight)

    def forward(self, x):
        return self.c(self.replaced(self.fused_projection(x)))

    def replaced(self, x):
        return F.linear(x, self.b.weight)


class Replaces(Names):
    def replaced(self, x):
        return self.b(x)


class Extends(Names):
    def replaced(self, x):
        return super().replaced(x)


class Takes(nn.Module):
    """As WavLM's attention and timm's BEiT have it: products with weights of layers that nobody calls."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(32, 32) for _ in range(4))
        self.up, self.down, self.last = nn.Linear(32, 64, bias=False), nn.Linear(64, 32), nn.Linear(32, 32)
        nn.init.xavier_uniform_(self.last.weight)

    def attend(self, x):
        return F.multi_head_attention_forward(
            x, x, x, 32, 2, torch.empty(0), torch.cat([self.q.bias, self.k.bias, self.v.bias]), None, None, False, 0.0,
            self.out.weight, self.out.bias, need_weights=False, use_separate_proj_weight=True, q_proj_weight=self.q.weight,
            k_proj_weight=self.k.weight, v_proj_weight=self.v.weight)[0]

    def forward(self, x):
        y = self.attend(x) @ self.up.weight.to(x.dtype).T
        y = F.linear(input=y, weight=self.down.weight)
        return self.last(y.to(self.last.weight.device))


def attend(x, weights, out):
    return F.linear(F.linear(x, weights[0]), out)


class Hands(nn.Module):
    """As torchvision's Swin, MobileBERT's head and LongCat's router have it: weights that are handed on, alone, in lists or cast."""

    def __init__(self):
        super().__init__()
        self.q, self.out, self.decoder, self.dense = (nn.Linear(32, 32, bias=False) for _ in range(4))
        self.last, self.trained, self.typed, self.router, self.named = (nn.Linear(32, 32, bias=False) for _ in range(5))
        self.reset()

    def reset(self):
        nn.init.xavier_uniform_(self.last.weight)
        self.mean = torch.mean(self.last.weight)

    def forward(self, x):
        x = attend(x, [self.q.weight], out=self.out.weight)
        weight = self.named.weight
        x = x + F.linear(x.float(), self.router.weight.type(torch.float32)).softmax(-1) + x @ weight
        x = x.matmul(torch.cat([self.decoder.weight.t(), self.dense.weight], dim=0)[:32])
        if self.training and x.ndim > 1:
            x = attend(x, [self.trained.weight], self.trained.weight)
        if not self.training:
            x = self.last(x)
        else:
            x = attend(x, (self.last.weight,), self.last.weight)
        if self.last.weight is not None and self.last.weight.device == x.device:
            x = x[:, :self.last.weight.shape[1]]
        return self.trained(x.type_as(self.typed.weight))


class WeightTypes(unittest.TestCase):
    def test_left(self):
        model, x = Vision().bfloat16(), torch.randn(4, 32)
        self.assertEqual(weight_types.find_readers(model), {"blocks.0.down": "Vision.get_dtype"})
        expected = model(x)
        fp8.torch.quantize_for_inference(model, "rowwise")
        self.assertIsInstance(model.blocks[1].down, fp8.torch.QuantizedLinear)
        self.assertIs(type(model.blocks[0].down), nn.Linear)
        self.assertEqual(model.get_dtype(), torch.bfloat16)
        self.assertLess((model(x) - expected).norm() / expected.norm(), 0.1)
        reasons = {layer.name: layer.reason for layer in fp8.torch.report(model)}
        self.assertEqual(reasons["blocks.0.down"],
                         "Vision.get_dtype casts activations to the type of its weight")
        fp8.torch.quantize_for_inference(Block(), "rowwise")  # Alone nobody asks.

    def test_products(self):
        model, x = Takes(), torch.randn(5, 1, 32)
        expected = model(x)
        fp8.torch.quantize_for_inference(model, "rowwise")
        self.assertIsInstance(model.last, fp8.torch.QuantizedLinear)
        self.assertLess((model(x) - expected).norm() / expected.norm(), 0.1)
        reasons = {layer.name: layer.reason for layer in fp8.torch.report(model) if layer.kind == "high precision"}
        says = "computes with its weight itself"
        self.assertEqual(reasons, {**{name: f"Takes.attend {says}" for name in ("q", "k", "v", "out")},
                                   **{name: f"Takes.forward {says}" for name in ("up", "down")}})

    def test_functions(self):
        model, x = Hands().eval(), torch.randn(5, 32)
        expected = model(x)
        fp8.torch.quantize_for_inference(model, "rowwise")
        self.assertLess((model(x) - expected).norm() / expected.norm(), 0.1)
        reasons = {layer.name: layer.reason for layer in fp8.torch.report(model) if layer.kind == "high precision"}
        says = "Hands.forward computes with its weight itself"
        self.assertEqual(reasons, {**{name: says for name in ("q", "out", "decoder", "dense", "router", "named")},
                                   "typed": "Hands.forward casts activations to the type of its weight"})

    def test_names_and_bases(self):
        self.assertEqual(list(weight_types.find_users(Names())), ["a", "b"])
        self.assertEqual(list(weight_types.find_users(Replaces())), ["a"])
        self.assertEqual(list(weight_types.find_users(Extends())), ["a", "b"])

    def test_told(self):
        model, x = Knows(), torch.randn(4, 32)
        fp8.torch.quantize_for_inference(model, "rowwise")
        self.assertIsInstance(model.proj, fp8.torch.QuantizedLinear)
        self.assertEqual(model(x).dtype, torch.float32)

    def test_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            other = nn.Module()
            other.blocks = nn.ModuleList([Block() for _ in range(2)]).bfloat16()
            fp8.torch.save_quantized(fp8.torch.quantize_for_inference(other, "rowwise"), folder)
            with self.assertWarnsRegex(UserWarning, r"by Vision.get_dtype of that of 'blocks.0.down'"):
                model = fp8.torch.load_quantized(Vision().bfloat16(), folder)
        with self.assertRaisesRegex(fp8.ArgumentError, "float8_e4m3fn .*the type of a quantized weight needs"):
            model(torch.randn(4, 32))

    def test_no_source(self):
        made = type("Made", (Vision,), {"__module__": "nowhere"})
        self.assertEqual(list(weight_types.find_readers(made())), ["blocks.0.down"])
        space = {"nn": nn, "__name__": "elsewhere"}
        exec("class Other(nn.Module):\n  pass", space)
        self.assertEqual(weight_types.find_readers(space["Other"]()), {})

    def test_codes_have_no_values(self):
        """What nobody saw to multiply with a weight is an error: codes without scales would be off by far."""
        x = torch.ones(8, 64)
        for get in (lambda w: w.type(torch.float32), lambda w: w[:32].float(), lambda w: w.clone().detach().to(x)):
            model = Hidden(get)
            model.layers[0] = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "rowwise")
            with self.assertRaisesRegex(fp8.UnsupportedError, r"a computation with its weight of \[\d+, 64\], which is codes"):
                model(x)
        layer = model.layers[0]
        self.assertEqual((layer.weight.shape, layer.weight.dtype, layer.weight.device.type),
                         ((64, 64), torch.float8_e4m3fn, "cpu"))
        self.assertIs(type(layer.weight.view(torch.uint8)), torch.Tensor)
        layer.weight.is_marked = True
        self.assertTrue(layer.weight.is_marked and dict(layer.named_parameters())["weight"].is_marked)
        self.assertEqual(torch.zeros_like(layer.weight, dtype=x.dtype).sum(), 0)
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected new codes by set_weight"):
            layer.weight.data = layer.weight
        layer = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "nvfp4")
        self.assertFalse(hasattr(layer, "weight"))
        with self.assertRaisesRegex(AttributeError, "weight, which it has none of: it has weight_packed"):
            layer.weight.float()

    def test_codes_have_no_values_in_graphs(self):
        """Nor do they in graphs, which would look through the checks of eager mode."""
        x = torch.ones(8, 64)
        ways = {"compile": lambda model: torch.compile(model, backend="eager")(x),
                "whole": lambda model: torch.compile(model, backend="eager", fullgraph=True)(x),
                "export": lambda model: torch.export.export(model, (x,)),
                "functional": lambda model: torch.func.functional_call(
                    model, {name: each.detach() for name, each in model.state_dict().items()}, (x,))}
        uses = {"to": lambda w: w.to(x.dtype), "T": lambda w: w.T.to(x.dtype), "float": lambda w: w.data.float(), "whole": lambda w: w,
                "part": lambda w: w[:32].float(), "product": lambda w: x @ w, "add": lambda w: 1 + w, "clone": torch.clone}
        for (way, call), (use, get) in itertools.product(ways.items(), uses.items()):
            with self.subTest(way, use=use):
                torch._dynamo.reset()
                model = Hidden(get)
                model.layers[0] = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "rowwise")
                with self.assertRaises(Exception) as caught, torch.no_grad():
                    call(model)
                if way != "functional":  # There PyTorch's own functions refuse what has two types.
                    self.assertRegex(str(caught.exception), r"a computation with its weight of \[64, 64\], which is codes")

    def test_what_graphs_ask(self):
        """Sizes, bytes and the like are known in graphs; a name that no tensor has is an AttributeError."""
        def get(w):
            assert not hasattr(w, "quant_state") and getattr(w, "loader", 3) == 3 and len(w) == 64
            assert w.dtype == torch.float8_e4m3fn and w.detach().data.size(1) == w.shape[1] == 64 and not w.requires_grad
            y = torch.zeros_like(w, dtype=torch.float32) + w.new_ones(64, dtype=torch.float32)
            return y + w.view(torch.uint8).float() * 0 * w.numel()
        model, x = Hidden(get), torch.ones(8, 64)
        model.layers[0] = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "rowwise")
        with torch.no_grad():
            for call in (model, torch.compile(model, backend="eager", fullgraph=True), torch.export.export(model, (x,)).module()):
                self.assertTrue(torch.equal(call(x), torch.full((8, 64), 64.0)))

    def test_traced(self):
        """torch.jit.trace records the layer, and not its result."""
        layer, x = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "rowwise"), torch.randn(8, 64)
        with torch.no_grad():
            for y in (None, layer(x)):
                traced = torch.jit.trace(layer, (x,))
                self.assertTrue(torch.equal(traced(2 * x), layer(2 * x)))
                self.assertTrue(torch.equal(traced(x[:3]), layer(x[:3])))

    def test_codes_stay(self):
        """Nothing writes to them, or writes their numbers elsewhere; copies of them are plain."""
        layer, t = fp8.torch.quantize_for_inference(nn.Linear(64, 64), "rowwise"), torch.zeros(64, 64)
        before = layer.get_tensors()[0].detach().view(torch.uint8).clone()
        for use in (lambda w: w.tolist(), lambda w: w[0, 0].item(), lambda w: w.to(torch.int32), lambda w: w.byte(),
                    lambda w: t.__setitem__(slice(None), w), lambda w: t.copy_(w), lambda w: w.copy_(t), lambda w: w.zero_(),
                    lambda w: w.__setitem__(0, 0.0)):
            with self.assertRaises(fp8.UnsupportedError):
                use(layer.weight)
        self.assertTrue(torch.equal(layer.get_tensors()[0].view(torch.uint8), before))
        self.assertEqual(t.abs().max(), 0)
        self.assertIs(layer.weight, layer.weight)
        file = io.BytesIO()
        torch.save(layer.weight, file)
        file.seek(0)
        for other in (copy.deepcopy(layer.weight), torch.load(file)):
            self.assertIs(type(other), torch.Tensor)
            self.assertTrue(torch.equal(other.view(torch.uint8), before))

    def test_transformers(self):
        try:
            from transformers import Qwen2VLConfig
            from transformers.models.qwen2_vl.modeling_qwen2_vl import (
                Qwen2VisionTransformerPretrainedModel)
        except ImportError:
            self.skipTest("without transformers")
        config = Qwen2VLConfig().vision_config
        config.depth, config.embed_dim, config.hidden_size, config.num_heads = 2, 64, 64, 2
        torch.manual_seed(0)
        model = Qwen2VisionTransformerPretrainedModel(config).bfloat16().eval()
        size = config.in_channels * config.temporal_patch_size * config.patch_size ** 2
        pixels, grid = torch.randn(16, size), torch.tensor([[1, 4, 4]])
        with torch.inference_mode():
            expected = model(pixels, grid).pooler_output
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fp8.torch.quantize_for_inference(model, "rowwise")
            y = model(pixels, grid).pooler_output
        self.assertLess((y - expected).norm() / expected.norm(), 0.2)
        self.assertEqual(model.get_dtype(), torch.bfloat16)


if __name__ == "__main__":
    unittest.main()
