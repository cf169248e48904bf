# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""PyTorch's flex_attention in graphs of torch.compile's backend: results, gradients and logarithms of sums beside the definition,
plans that follow the tensors of functions, and reasons for those that stay PyTorch's."""

import math
import unittest
from unittest import mock

import numpy
import torch
from torch import nn
from torch.nn.attention import flex_attention as peer

import fp8
import fp8.torch
from fp8.torch import flex, flex_ops

POSITIONS, HEADS = 64, 4
SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
DOCUMENTS = torch.tensor([0] * 11 + [1] * 20 + [2] * 33)


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


BIAS = make(HEADS, 2 * POSITIONS, seed=7)


def causal(b, h, q, k):
    return q >= k


def documents(b, h, q, k):
    return (DOCUMENTS[q] == DOCUMENTS[k]) & (q >= k)


def gaps(b, h, q, k):
    return (q + k) % 3 != 0


def alibi(score, b, h, q, k):
    return score + SLOPES[h] * (k - q)


def cap(score, b, h, q, k):
    return 0.7 * torch.tanh(score / 0.7)


def biased(score, b, h, q, k):
    return cap(score, b, h, q, k) + BIAS[h, q - k + POSITIONS]


def squared(score, b, h, q, k):
    return score * score


def make_mask(function):
    return None if function is None else peer.create_block_mask(
        function, None, None, POSITIONS, POSITIONS, device="cpu", BLOCK_SIZE=16)


def define(q, k, v, score_mod, mask_mod):
    scores = q @ k.repeat_interleave(HEADS // k.shape[1], 1).mT * q.shape[-1] ** -0.5
    places = [torch.arange(size).reshape([-1 if i == dim else 1 for i in range(4)]) for dim, size in enumerate(scores.shape)]
    scores = scores if score_mod is None else score_mod(scores, *places)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*places), -math.inf)
    return scores.softmax(-1) @ v.repeat_interleave(HEADS // v.shape[1], 1), scores.logsumexp(-1)


class Graphs(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        # PyTorch has a gradient on GPUs alone, and says so when a graph is captured.
        patched = mock.patch.object(peer, "_validate_device", lambda *tensors: None)
        patched.start()
        self.addCleanup(patched.stop)

    def compile(self, function, recipe=None, **options):
        backend = fp8.torch.Backend(recipe, **{"rest": "eager", "attention": "fp8", **options})
        return torch.compile(function, backend=backend, fullgraph=True), backend

    def check(self, found, expected, tolerance=1e-5):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertTrue(found.isfinite().all())
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item())

    def make(self, dtype=torch.float32):
        return [make(2, heads, POSITIONS, 16, seed=seed).to(dtype).requires_grad_() for seed, heads in enumerate((HEADS, 2, 2))]

    def test_functions(self):
        for score_mod, mask_mod, text in (
                (None, None, "flex_attention"), (None, causal, "flex_attention, causal"),
                (None, documents, "flex_attention, ranges of keys"), (alibi, causal, "flex_attention, causal, mask"),
                (cap, documents, "flex_attention, ranges of keys, cap 0.7"), (biased, gaps, "flex_attention, mask, cap 0.7")):
            with self.subTest(score=score_mod and score_mod.__name__, mask=mask_mod and mask_mod.__name__):
                torch._dynamo.reset()
                mask = make_mask(mask_mod)
                compiled, backend = self.compile(lambda q, k, v: peer.flex_attention(q * 1.0, k, v, score_mod, mask, enable_gqa=True))
                tensors = self.make()
                y, (expected, _) = compiled(*tensors), define(*tensors, score_mod, mask_mod)
                self.assertEqual(backend.attention.taken, (f"4 heads over 2 of 16 columns, {text} in f32",))
                self.check(y, expected)
                grad = make(*y.shape, seed=5)
                for found, wanted in zip(*(torch.autograd.grad(x, tensors, grad) for x in (y, expected))):
                    self.check(found, wanted, 1e-4)

    def test_sums(self):
        mask = make_mask(documents)
        compiled, backend = self.compile(lambda q, k, v: peer.flex_attention(q, k, v, alibi, mask, enable_gqa=True, return_lse=True))
        tensors = self.make()
        with torch.no_grad():
            for found, expected in zip(compiled(*tensors), define(*tensors, alibi, documents)):
                self.check(found, expected)
        self.assertEqual(len(backend.attention.taken), 1)
        compiled(*tensors)
        self.assertEqual(backend.attention.reasons, ("logarithms of sums with a gradient",))

    def test_tensors_that_change(self):
        """Those that are given are known by their versions, others by what they have."""
        numbers = DOCUMENTS.clone()

        def run(q, k, v, numbers, mask, computes):
            numbers = numbers + 0 if computes else numbers
            return peer.flex_attention(q, k, v, None, peer.BlockMask.from_kv_blocks(
                mask.kv_num_blocks, mask.kv_indices, mask_mod=lambda b, h, q, k: (numbers[q] == numbers[k]) & (q >= k),
                BLOCK_SIZE=16, seq_lengths=(POSITIONS, POSITIONS)), enable_gqa=True)

        mask = peer.create_block_mask(causal, None, None, POSITIONS, POSITIONS, device="cpu", BLOCK_SIZE=16)
        mask = peer.BlockMask.from_kv_blocks(torch.full_like(mask.kv_num_blocks, 4), torch.arange(4, dtype=torch.int32).expand(
            1, 1, 4, 4).contiguous(), BLOCK_SIZE=16, seq_lengths=(POSITIONS, POSITIONS))
        tensors = [x.detach() for x in self.make()]
        for computes in False, True:
            with self.subTest(computes=computes):
                torch._dynamo.reset()
                numbers.copy_(DOCUMENTS)
                compiled, _ = self.compile(run)
                for change, plans in ((False, 1), (False, 0), (True, 1), (False, 0)):
                    if change:
                        numbers.copy_(DOCUMENTS.flip(0))
                    with mock.patch.object(flex, "_make_plan", side_effect=flex._make_plan) as made:
                        y = compiled(*tensors, numbers, mask, computes)
                    self.assertEqual(made.call_count, plans)
                    now = numbers.clone()
                    self.check(y, define(*tensors, None, lambda b, h, q, k: (now[q] == now[k]) & (q >= k))[0])

    def test_writes_without_a_version(self):
        """Fused optimizers, `.data` and memory of NumPy change no version."""
        tensors = [x.detach() for x in self.make()]
        bias = nn.Parameter(make(HEADS, 2 * POSITIONS, seed=9))

        def add(score, b, h, q, k):
            return score + bias[h, q - k + POSITIONS]

        def change_data():
            bias.data.mul_(-2)

        def replace_data():
            bias.data = make(HEADS, 2 * POSITIONS, seed=11)

        def step():
            optimizer = torch.optim.Adam([bias], lr=0.5, fused=True)
            bias.grad = make(HEADS, 2 * POSITIONS, seed=3)
            optimizer.step()

        compiled, backend = self.compile(lambda q, k, v: peer.flex_attention(q, k, v, add, enable_gqa=True))
        for change in (lambda: None, change_data, replace_data, step):
            change()
            with torch.no_grad():
                self.check(compiled(*tensors), define(*tensors, add, None)[0])
        self.assertEqual(len(backend.attention.taken), 1)

    def test_memory_that_is_filled_again(self):
        tensors, memory = [x.detach() for x in self.make()], numpy.zeros(POSITIONS, dtype=numpy.int64)

        def run(q, k, v, numbers):
            return peer.flex_attention(q, k, v, lambda s, b, h, q, k: torch.where(numbers[q] == numbers[k], s, -math.inf),
                                       enable_gqa=True)

        compiled, _ = self.compile(run)
        for first in (30, 10, 50):
            memory[:first], memory[first:] = 0, 1
            numbers = torch.from_numpy(memory)
            expected = define(*tensors, None, lambda b, h, q, k: numbers[q] == numbers[k])[0]
            self.check(compiled(*tensors, numbers), expected)

    def test_captured_graphs(self):
        """A plan in a CUDA graph would stay that of the tensors that were there."""
        function = torch.fx.symbolic_trace(lambda s, b, h, q, k, numbers: s + numbers[k])
        call = flex_ops.Call(function, None, {"score_mod": [0], "mask_mod": [], "blocks": [None] * 4}, [True], (16, 16), None)
        with mock.patch.object(torch.cuda, "is_current_stream_capturing", return_value=True):
            with self.assertRaisesRegex(fp8.UnsupportedError, "CUDA graph"):
                call.find_plan((1, 1, 4, 4), torch.device("cuda"), [torch.zeros(4)])
            call.find_plan((1, 1, 4, 4), torch.device("cpu"), [torch.zeros(4)])

    def test_layers_share_plans(self):
        mask = peer.create_block_mask(documents, None, None, POSITIONS, POSITIONS, device="cpu", BLOCK_SIZE=32)

        def run(q, k, v):
            for _ in range(3):
                q = peer.flex_attention(q, k, v, None, mask, enable_gqa=True)
            return q

        compiled, _ = self.compile(run)
        tensors = [x.detach() for x in self.make()]
        with mock.patch.object(flex, "_make_plan", side_effect=flex._make_plan) as made:
            y = compiled(*tensors)
        self.assertEqual(made.call_count, 1)
        expected = tensors[0]
        for _ in range(3):
            expected = define(expected, *tensors[1:], None, documents)[0]
        self.check(y, expected)

    def test_layers_of_a_model(self):
        """With products in FP8, scales of earlier steps, and in layers of quantize_for_inference."""
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(1)
                self.qkv, self.out = nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)

            def forward(self, x):
                q, k, v = (y.unflatten(-1, (-1, 16)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
                return self.out(peer.flex_attention(q, k, v, cap, MASK).transpose(1, 2).flatten(2))

        x, plain = make(2, POSITIONS, 64), Block()
        with torch.no_grad():
            expected = plain(x)
        for recipe in fp8.Float8CurrentScaling(fp8_dpa=True), fp8.DelayedScaling(fp8_dpa=True):
            torch._dynamo.reset()
            model = Block()
            compiled, backend = self.compile(model, recipe, attention=None)
            y = compiled(x)
            self.check(y.detach(), expected, 0.15)
            y.square().sum().backward()
            self.assertTrue(model.qkv.weight.grad.isfinite().all())
            self.assertIn("causal, cap 0.7 in e4m3", backend.attention.taken[0])
        self.assertTrue(any(part.name == "graph0.attention0" for part in backend.parts))
        torch._dynamo.reset()
        model = fp8.torch.quantize_for_inference(Block().requires_grad_(False))
        compiled, backend = self.compile(model)
        with torch.no_grad():
            self.check(compiled(x), expected, 0.15)
        self.assertEqual(len(backend.attention.taken), 1)

    def test_reasons(self):
        learned, factor, counts = make(HEADS, seed=3).requires_grad_(), torch.tensor(2.0), torch.tensor(2)
        for score_mod, options, reason in (
                (squared, {}, "one use of the score, but got several"),
                (lambda s, b, h, q, k: s * factor, {}, "a positive number|scores times a number"),
                (lambda s, b, h, q, k: s / counts, {}, "scores times a positive number, but got 0"),
                (lambda s, b, h, q, k: s + learned[h] * k, {}, "functions over scores with a learned tensor"),
                (alibi, {"attention": "auto"}, "functions over scores, unless attention is 'fp8'"),
                (alibi, {"mode": "reduce-overhead"}, "functions over scores whose tensors nobody can look at in a CUDA graph")):
            with self.subTest(reason=reason):
                torch._dynamo.reset()
                compiled, backend = self.compile(lambda q, k, v: peer.flex_attention(q, k, v, score_mod, enable_gqa=True), **options)
                tensors = self.make()
                try:
                    compiled(*tensors)
                except Exception:  # PyTorch has no gradient on a CPU.
                    pass
                self.assertRegex(backend.attention.reasons[0], reason)
                self.assertFalse(backend.attention.taken)
                self.assertIn("graph0: attention is Inductor's", backend.left[0])
        backend = fp8.torch.Backend(rest="eager")
        torch._dynamo.reset()
        with torch.no_grad():
            y = torch.compile(lambda q, k, v: peer.flex_attention(q, k, v, squared, enable_gqa=True), backend=backend)(*tensors)
        self.check(y, define(*tensors, squared, None)[0].detach())


MASK = make_mask(causal)

if __name__ == "__main__":
    unittest.main()
