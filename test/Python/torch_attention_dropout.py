# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Dropout of attention in PyTorch: results and gradients beside operations of PyTorch with the same shares left out, how many
these are, that torch's seed and checkpoints repeat them, modules, graphs of torch.compile, and mistakes."""

import unittest

import torch
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_dropout
from fp8.torch.attention_dropout import find_kept, get_factor

RATE = 0.3


def make(*sizes, seed=1, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def find_factor(q, k, state, rate=RATE):
    kept = find_kept(state, rate, q.shape[0], q.shape[1], slice(0, q.shape[2]), slice(0, k.shape[2]))
    return kept * get_factor(rate)


def define(q, k, v, factor, is_causal=False):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    return (scores.softmax(-1) * factor) @ v


class Dropout(unittest.TestCase):
    def check(self, found, expected, tolerance=1e-5):
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item())

    def test_results_and_gradients(self):
        q, k, v = make(2, 4, 19, 16), make(2, 2, 37, 16, seed=2), make(2, 2, 37, 16, seed=3)
        state = torch.tensor([-3, 2 ** 40 + 8])
        factor, dy = find_factor(q, k, state), make(2, 4, 19, 16, seed=4).detach()
        for options in ({}, {"is_causal": True}):
            y = fp8.torch.scaled_dot_product_attention(q, k, v, dropout_p=RATE, dropout_state=state, **options)
            expected = define(q, k, v, factor, **options)
            self.check(y, expected)
            for got, wanted in zip(torch.autograd.grad(y, (q, k, v), dy), torch.autograd.grad(expected, (q, k, v), dy)):
                self.check(got, wanted)
        others = fp8.torch.scaled_dot_product_attention(q, k, v, dropout_p=RATE, dropout_state=state + 1)
        self.assertGreater((others - define(q, k, v, factor)).norm().item(), 0.1)

    def test_codes_and_packed_sequences(self):
        q, k, v = (make(1, 2, 24, 32, seed=seed) for seed in (1, 2, 3))
        state, dy = torch.tensor([5, 6]), make(1, 2, 24, 32, seed=4).detach()
        y = fp8.torch.scaled_dot_product_attention(q, k, v, dropout_p=RATE, dropout_state=state, format="e4m3")
        expected = define(q, k, v, find_factor(q, k, state))
        self.check(y, expected, 0.1)
        for got, wanted in zip(torch.autograd.grad(y, (q, k, v), dy), torch.autograd.grad(expected, (q, k, v), dy)):
            self.check(got, wanted, 0.2)
        ends = torch.tensor([0, 10, 24], dtype=torch.int32)
        q, k, v = (x[0].transpose(0, 1).detach().requires_grad_() for x in (q, k, v))
        y = fp8.torch.packed_attention(q, k, v, ends, ends, dropout_p=RATE, dropout_state=state)
        factor = find_factor(*(x.transpose(0, 1)[None] for x in (q, k)), state)
        parts = [define(*(x[first:end].transpose(0, 1)[None] for x in (q, k, v)), factor[..., first:end, first:end])
                 for first, end in ((0, 10), (10, 24))]
        expected = torch.cat([x[0].transpose(0, 1) for x in parts])
        self.check(y, expected)
        dy = make(24, 2, 32, seed=4).detach()
        for got, wanted in zip(torch.autograd.grad(y, (q, k, v), dy), torch.autograd.grad(expected, (q, k, v), dy)):
            self.check(got, wanted)

    def test_rates_and_seeds(self):
        torch.manual_seed(3)
        for rate in (0.1, 0.5, 0.9):
            kept = find_kept(attention_dropout.make_state("cpu"), rate, 2, 4, slice(0, 128), slice(0, 128))
            self.assertLess(abs(kept.float().mean().item() - 1 + rate), 5e-3)
        q, k, v = (make(1, 2, 24, 16, seed=seed) for seed in (1, 2, 3))

        def call():
            return fp8.torch.scaled_dot_product_attention(q, k, v, dropout_p=RATE)

        torch.manual_seed(7)
        first, second = call(), call()
        torch.manual_seed(7)
        self.assertTrue(torch.equal(first, call()))
        self.assertTrue(torch.equal(second, call()))
        self.assertFalse(torch.equal(first, second))
        # A mean over many draws is what there is without dropout.
        mean = torch.stack([call() for _ in range(400)]).mean(0)
        self.check(mean, define(q, k, v, 1.0), 0.1)

    def test_checkpoints(self):
        q, k, v = (make(1, 2, 24, 16, seed=seed) for seed in (1, 2, 3))

        def layer(x):
            return fp8.torch.scaled_dot_product_attention(x * 2, k, v, dropout_p=RATE).sin()

        found = []
        for keeps in (False, True):
            torch.manual_seed(11)
            y = torch.utils.checkpoint.checkpoint(layer, q, use_reentrant=False) if keeps else layer(q)
            found.append(torch.autograd.grad(y.sum(), (q, k, v)))
        for got, wanted in zip(*found):
            self.assertTrue(torch.equal(got, wanted))

    def test_calls_of_others(self):
        q, k, v = (make(1, 2, 24, 16, seed=seed) for seed in (1, 2, 3))
        torch.manual_seed(5)
        with fp8.torch.use_attention() as used:
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=RATE)
        self.assertEqual(used.taken, ("2 heads over 2 of 16 columns, dropout 0.3 in f32",))
        torch.manual_seed(5)
        self.check(y, define(q, k, v, find_factor(q, k, attention_dropout.make_state("cpu"))))
        module = torch.nn.MultiheadAttention(32, 2, dropout=0.1, batch_first=True)
        x = make(2, 24, 32)
        with fp8.torch.use_attention() as used:
            module(x, x, x, need_weights=False)[0].sum().backward()
        self.assertEqual(used.taken, ("2 heads over 2 of 16 columns, dropout 0.1 in f32",))
        module.eval()
        with fp8.torch.use_attention() as used, torch.enable_grad():
            module(x, x, x, need_weights=False)
        self.assertNotIn("dropout", " ".join(used.taken))
        with fp8.torch.use_attention() as used:
            self.assertEqual(F.scaled_dot_product_attention(q, k, v, dropout_p=1.0).abs().max(), 0)
        self.assertEqual(used.reasons, ("a dropout of 1.0",))

    def test_graphs(self):
        q, k, v = (make(2, 2, 24, 16, seed=seed) for seed in (1, 2, 3))
        backend = fp8.torch.Backend(fp8.Float8CurrentScaling(), attention="fp8")

        def attend(q, k, v):
            return F.scaled_dot_product_attention(q.sin(), k, v, dropout_p=RATE, is_causal=True)

        compiled = torch.compile(attend, backend=backend)
        found = []
        for _ in range(2):
            torch.manual_seed(9)
            y = compiled(q, k, v)
            found.append((y, *torch.autograd.grad(y.cos().sum(), (q, k, v))))
        for got, again in zip(*found):
            self.assertTrue(torch.equal(got, again))
        self.assertFalse(torch.equal(found[0][0], compiled(q, k, v)))
        self.assertIn("dropout 0.3", " ".join(str(line) for line in backend.attention.taken))

    def test_mistakes(self):
        q = make(1, 2, 24, 16)
        for options, message in (({"dropout_p": 1.0}, "dropout_p from 0"), ({"dropout_p": -0.1}, "dropout_p from 0"),
                                 ({"dropout_p": 0.1, "dropout_state": torch.zeros(2)}, "dropout_state to be int64")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.torch.scaled_dot_product_attention(q, q, q, **options)


if __name__ == "__main__":
    unittest.main()
