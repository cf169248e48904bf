# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Calls of F.scaled_dot_product_attention within fp8.torch.use_attention, and of recipes with fp8_dpa within autocast and
in converted layers: results, gradients, modules of PyTorch, torch.compile, and what is left, with a reason."""

import contextlib
import copy
import functools
import pickle
import unittest
from unittest import mock

import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_calls, attention_ready

DPA = fp8.Float8CurrentScaling(fp8_dpa=True)


def make(*sizes, seed=0, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Block(nn.Module):
    """Attention as it is written by hand."""

    def __init__(self, width=64, heads=4, dropout=0.0):
        super().__init__()
        torch.manual_seed(1)
        self.qkv, self.out, self.heads, self.dropout = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, dropout

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        return self.out(y.transpose(1, 2).flatten(2))


class Case(unittest.TestCase):
    def check(self, found, expected, tolerance=1e-5):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertTrue(found.isfinite().all())
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item())

    def train(self, model, x):
        y = model(x)
        grads = torch.autograd.grad((y * make(*y.shape, seed=5).to(y.dtype)).sum(), list(model.parameters()))
        return [y.detach(), *grads]

    def compare(self, model, x, tolerance=1e-4, **options):
        expected = self.train(model, x)
        with fp8.torch.use_attention(**options) as used:
            found = self.train(model, x)
        for x, y in zip(found, expected):
            self.check(x, y, tolerance)
        return used


class Calls(Case):
    def test_a_block(self):
        used = self.compare(Block(), make(2, 9, 64))
        self.assertEqual((used.taken, used.reasons), (("4 heads over 4 of 16 columns, causal in f32",), ()))
        used = self.compare(Block(), make(2, 9, 64), 0.1, format="e4m3")
        self.assertEqual(used.taken, ("4 heads over 4 of 16 columns, causal in e4m3",))

    def test_compiled(self):
        model, x = Block(), make(2, 9, 64)
        expected = self.train(model, x)
        with fp8.torch.use_attention() as used:
            found = self.train(torch.compile(model, backend="aot_eager", fullgraph=True), x)
        for y, z in zip(found, expected):
            self.check(y, z, 1e-4)
        self.assertEqual(len(used.taken), 1)

    def test_autocast_of_pytorch(self):
        model, x = Block(), make(2, 9, 64)
        with torch.autocast("cpu", torch.bfloat16):
            used = self.compare(model, x, 0.02)
        self.assertEqual(used.taken, ("4 heads over 4 of 16 columns, causal in bf16",))

    def test_what_is_left(self):
        q, k = make(2, 4, 5, 16), make(2, 2, 5, 16)
        mask = torch.zeros(5, 5)
        for reason, call in (
                ("dropout", lambda: F.scaled_dot_product_attention(q, q, q, dropout_p=1.0)),
                ("operands of 3 dimensions", lambda: F.scaled_dot_product_attention(q[0], q[0], q[0])),
                ("operands of torch.float64", lambda: F.scaled_dot_product_attention(*[q.double()] * 3)),
                ("operands that are broadcast", lambda: F.scaled_dot_product_attention(q[:1], q, q)),
                ("a scale of -1.0", lambda: F.scaled_dot_product_attention(q, q, q, scale=-1.0)),
                ("a mask with a gradient", lambda: F.scaled_dot_product_attention(
                    q, q, q, mask.clone().requires_grad_()))):
            with self.subTest(reason=reason):
                expected = call()
                with fp8.torch.use_attention() as used:
                    self.assertTrue(torch.equal(call(), expected))
                self.assertEqual(used.taken, ())
                self.assertIn(reason, used.reasons[0])
        with fp8.torch.use_attention() as used:
            y = F.scaled_dot_product_attention(q, k, k, attn_mask=mask, enable_gqa=True)
            # Mistakes are PyTorch's to say, and whether both masks are one.
            with self.assertRaises(RuntimeError):
                F.scaled_dot_product_attention(q, q[..., :8], q)
            with contextlib.suppress(RuntimeError):
                F.scaled_dot_product_attention(q, q, q, mask, is_causal=True)
        self.check(y, F.scaled_dot_product_attention(q, k, k, enable_gqa=True))
        self.assertEqual(used.taken, ("4 heads over 2 of 16 columns, mask in f32",))

    def test_reasons_of_a_gpu(self):
        with mock.patch.object(attention_calls, "get_default_target", lambda: "sm_90a"):
            bf16 = [torch.empty(1, 2, 3, 64, dtype=torch.bfloat16, device="meta")] * 2

            def find(format=None, accumulate=None, tensors=bf16):
                return attention_calls.find_reason_on_gpu(*tensors, attention_calls.Attention(format, accumulate))

            self.assertIsNone(find())
            self.assertIsNone(find(format="e4m3"))
            self.assertIn("f32", find(tensors=[x.float() for x in bf16]))
            self.assertIn("multiples of 16", find(tensors=[x[..., :40] for x in bf16]))
            self.assertIn("multiples of 32", find(format="e4m3", tensors=[x[..., :48] for x in bf16]))
            wide = [torch.empty(1, 2, 3, 256, dtype=torch.bfloat16, device="meta")] * 2
            self.assertIsNone(find(tensors=wide))
            self.assertIsNone(find(format="e4m3", accumulate="fast", tensors=wide))
            self.assertIn("up to 192", find(format="e4m3", tensors=wide))
        with mock.patch.object(attention_calls, "get_default_target", lambda: "sm_89"):
            self.assertIn("sm_89 has been timed on no such GPU", find())
        with mock.patch.object(attention_calls, "get_default_target", lambda: "sm_100a"):
            self.assertIn("emulator alone: untimed=True takes it", find())
            self.assertIsNone(attention_calls.find_reason_on_gpu(*bf16, attention_calls.Attention(untimed=True)))

    def test_masks_of_a_gpu(self):
        """The kernel has masks, that of the gradient has ranges of keys."""
        with mock.patch.object(attention_calls, "get_default_target", lambda: "sm_90a"), FakeTensorMode():
            q, mask = torch.empty(1, 2, 3, 64, dtype=torch.bfloat16, device="cuda"), torch.empty(3, 3, device="cuda")
            find = functools.partial(attention_calls.find_reason, attention_calls.Attention())
            self.assertIsNone(find(q, q, q, mask))
            self.assertIsNone(find(q.requires_grad_(), q, q))
            self.assertIn("no kernel of a gradient", find(q, q, q, mask))
            with torch.no_grad():
                self.assertIsNone(find(q, q, q, mask))

    def test_it_ends(self):
        q = make(1, 2, 5, 16)
        with fp8.torch.use_attention() as used:
            pass
        F.scaled_dot_product_attention(q, q, q)
        self.assertEqual(used.taken, ())
        with self.assertRaisesRegex(fp8.ArgumentError, "expected format"):
            fp8.torch.use_attention("e3m4")


class Modules(Case):
    def test_multihead_attention(self):
        torch.manual_seed(2)
        model, x = nn.MultiheadAttention(64, 4, batch_first=True), make(2, 7, 64)
        padding = torch.zeros(2, 7, dtype=torch.bool)
        padding[0, 5:] = True
        causal = nn.Transformer.generate_square_subsequent_mask(7)
        for is_training in (True, False):
            model.train(is_training)
            for given in ({}, {"key_padding_mask": padding}, {"attn_mask": causal, "is_causal": True}):
                with self.subTest(is_training=is_training, given=list(given)):
                    expected = model(x, x, x, need_weights=False, **given)[0]
                    with fp8.torch.use_attention() as used:
                        found = model(x, x, x, need_weights=False, **given)[0]
                    self.check(found, expected)
                    self.assertEqual(len(used.taken), 1)

    def test_a_layer(self):
        torch.manual_seed(2)
        model, x = nn.TransformerEncoderLayer(64, 4, 96, dropout=0.0, batch_first=True), make(2, 7, 64)
        self.assertEqual(len(self.compare(model, x).taken), 1)
        model.eval()
        with torch.no_grad():
            expected = model(x)
            with fp8.torch.use_attention() as used:
                self.check(model(x), expected)
        self.assertEqual(len(used.taken), 1)

    def test_weights_are_pytorchs(self):
        model, x = nn.MultiheadAttention(64, 4, batch_first=True), make(2, 7, 64)
        with fp8.torch.use_attention() as used:
            y, weights = model(x, x, x)
        self.assertEqual((weights.shape, used.taken), ((2, 7, 7), ()))


class Recipes(Case):
    def count(self, work):
        # As the first call, which is looked at.
        with mock.patch.object(attention_calls, "compute", side_effect=attention_calls.compute) as called, (
                mock.patch.object(attention_ready.Calls, "get", return_value=None)):
            work()
        return [call.kwargs["format"] for call in called.call_args_list]

    def test_autocast(self):
        model, x = Block(), make(2, 16, 64)

        def call(recipe, **options):
            with fp8.torch.autocast(recipe, **options):
                return model(x)

        self.assertEqual(self.count(lambda: call(DPA)), ["e4m3"])
        self.assertEqual(self.count(lambda: call(fp8.Float8CurrentScaling())), [])
        self.assertEqual(self.count(lambda: call(DPA, enabled=False)), [])
        self.check(call(DPA), model(x), 0.1)
        with fp8.torch.autocast(DPA), fp8.torch.use_attention() as used:
            model(x)
        self.assertEqual(used.taken, ("4 heads over 4 of 16 columns, causal in f32",))
        with fp8.torch.use_attention() as used:
            call(fp8.Float8CurrentScaling())
        self.assertEqual(used.taken, ("4 heads over 4 of 16 columns, causal in f32",))

    def test_converted(self):
        torch.manual_seed(2)
        model = nn.Sequential(nn.TransformerEncoderLayer(64, 4, 96, dropout=0.0, batch_first=True))
        x = make(2, 16, 64)
        expected = model(x)
        for recipe, formats in ((DPA, ["e4m3"]), (fp8.Float8CurrentScaling(), [])):
            made = fp8.torch.convert_to_fp8_training(copy.deepcopy(model), recipe, first_last_bf16=0)
            for each in (made, copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
                self.assertEqual(self.count(lambda: each(x)), formats)
            self.check(made(x), expected, 0.1)
            fp8.torch.convert_from_fp8(made)
            self.assertEqual(self.count(lambda: made(x)), [])
            self.check(made(x), expected)

    def test_converted_and_compiled(self):
        torch.manual_seed(2)
        model = nn.TransformerEncoderLayer(64, 4, 96, dropout=0.0, batch_first=True)
        x = make(2, 16, 64)
        fp8.torch.convert_to_fp8_training(model, DPA, first_last_bf16=0)
        expected = self.train(model, x)
        found = self.train(torch.compile(model, backend="aot_eager", fullgraph=True), x)
        for y, z in zip(found, expected):
            self.check(y, z, 0.02)


if __name__ == "__main__":
    unittest.main()
