# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""What is done to queries and keys before they are codes: means of keys are taken away, and columns are rotated. Errors
beside f64 on data that codes lose much of, gradients, logarithms of sums, packed sequences, caches, recipes, graphs, and
the kernels of a GPU on the emulator."""

import copy
import unittest
from unittest import mock

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.errors import ArgumentError
from fp8.remarks import explain
from fp8.torch import attention_ops, attention_programs, attention_transforms

SMOOTH, ROTATED = {"smooth_k": True}, {"hadamard": True}
BOTH = {**SMOOTH, **ROTATED}
_get_function = attention_programs.get_function


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def get_error(x, expected):
    return ((x.double() - expected.double()).norm() / expected.double().norm()).item()


def compute(q, k, v, **options):
    """In f64."""
    return F.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), enable_gqa=True, **options)


def make_data(kind, columns=64, dtype=torch.bfloat16):
    q, k, v = make(2, 4, 96, columns, seed=1), *(make(2, 2, 96, columns, seed=seed) for seed in (2, 3))
    if kind == "offset":
        k += 20 * make(1, 2, 1, columns, seed=4)
    elif kind == "channel":
        q[..., 5] *= 8
        k[..., 5] *= 8
    elif kind == "entries":  # As FlashAttention-3's paper has them.
        for x in (q, k):
            x += 10 * make(*x.shape, seed=5) * (torch.rand(x.shape, generator=torch.Generator().manual_seed(6)) < 0.004)
    return tuple(x.to(dtype).requires_grad_() for x in (q, k, v))


def find_errors(data, is_causal=True, **options):
    """Compares the result and the gradients of query, key and value with f64."""
    grad = make(*data[0].shape, seed=7)
    expected = compute(*data, is_causal=is_causal)
    gradients = torch.autograd.grad(expected, data, grad.double())
    y = fp8.torch.scaled_dot_product_attention(*data, is_causal=is_causal, format="e4m3", **options)
    found = torch.autograd.grad(y, data, grad.to(y.dtype))
    return [get_error(a, b) for a, b in zip((y, *found), (expected, *gradients))]


class Transforms(unittest.TestCase):
    def test_matrices(self):
        """Both together are exactly orthogonal, and neighbours of a power of two are rotated."""
        for columns, size in (16, 16), (64, 64), (96, 32), (128, 128), (192, 64), (256, 256):
            self.assertEqual(attention_transforms.find_size(columns), size)
            one, other = (attention_transforms.make_matrix(columns, is_query, torch.float16, torch.device("cpu")).double()
                          for is_query in (True, False))
            self.assertTrue(torch.equal(one @ other, torch.eye(columns, dtype=torch.float64)))
            self.assertTrue(torch.equal(one, one.mT))
            self.assertEqual(int((one[0] != 0).sum()), size)

    def test_kept_matrices(self):
        """What fake tensors and inference mode made is not what others multiply by."""
        x, columns = make(3, 48), 48
        expected = x @ attention_transforms.make_matrix(columns, True, torch.float32, torch.device("cpu"))
        with FakeTensorMode():
            attention_transforms.rotate(torch.empty(3, columns), True)
        with torch.inference_mode():
            self.assertTrue(torch.equal(attention_transforms.rotate(x, True), expected))
        x.requires_grad_()
        y = attention_transforms.rotate(x, True)
        y.sum().backward()
        self.assertTrue(torch.equal(y, expected))

    def test_codes(self):
        """Those of a program are those of what is computed here, where sums are exact."""
        data = [torch.randint(-8, 9, sizes, generator=torch.Generator().manual_seed(8)).bfloat16()
                for sizes in ((2, 4, 64, 32), (2, 2, 64, 32), (2, 2, 64, 32))]
        for heads_first in True, False:
            tensors = [x if heads_first else x.transpose(1, 2).contiguous() for x in data]
            for chosen in ("smooth_k",), ("hadamard",), ("smooth_k", "hadamard"):
                options = attention_ops.Options(heads_first, 0.125, format=",".join(["e4m3", *chosen]))
                _, _, *codes = attention_ops.compute(*tensors, attention_ops.Others(), options, True)
                made = attention_transforms.apply(*tensors[:2], chosen, heads_first)
                for x, found, factor in zip((*made, tensors[2]), codes[::2], codes[1::2]):
                    scale = 448.0 / x.float().abs().max()
                    self.assertTrue(torch.equal(found.float(), (x.float() * scale).to(torch.float8_e4m3fn).float()))
                    torch.testing.assert_close(factor.reshape(()), 1 / scale)


    def test_graphs(self):
        """A matrix that is made while a graph is recorded is the graph's, and no later call has it."""
        x = make(3, 48)
        attention_transforms._matrices.clear()
        with FakeTensorMode():
            self.assertEqual(attention_transforms.rotate(torch.empty(3, 48), True).shape, (3, 48))
        self.assertFalse(attention_transforms._matrices)
        with torch.inference_mode():
            attention_transforms.rotate(x, True)
        wanted = x.clone().requires_grad_()
        attention_transforms.rotate(wanted, True).sum().backward()
        self.assertTrue(torch.equal(wanted.grad, attention_transforms.rotate(torch.ones(3, 48), True)))


class Accuracy(unittest.TestCase):
    def test_offsets(self):
        """Channels of keys with a common offset: all of the loss is gone."""
        for columns in 64, 96:
            errors = [find_errors(make_data("offset", columns), **options) for options in ({}, SMOOTH, BOTH)]
            self.assertGreater(min(errors[0]), 0.25)
            for each in errors[1:]:
                self.assertLess(max(each), 0.06)

    def test_channels(self):
        """One channel that is large in queries and keys."""
        plain, rotated = (find_errors(make_data("channel"), **options) for options in ({}, ROTATED))
        self.assertLess(rotated[0], 0.5 * plain[0])
        self.assertLess(max(b / a for a, b in zip(plain, rotated)), 0.8)

    def test_entries(self):
        plain, rotated = (find_errors(make_data("entries", 128), is_causal=False, **options) for options in ({}, ROTATED))
        self.assertLess(rotated[0], 0.85 * plain[0])

    def test_random(self):
        """What has no outliers loses nothing by either."""
        plain, *others = (find_errors(make_data("random", dtype=dtype), **options)
                          for dtype, options in ((torch.bfloat16, {}), (torch.float16, SMOOTH), (torch.bfloat16, ROTATED),
                                                 (torch.float32, BOTH)))
        for each in others:
            self.assertLess(max(b / a for a, b in zip(plain, each)), 1.15)

    def test_sums(self):
        """Logarithms of sums are those of the keys that were given."""
        q, k, v = (x.detach() for x in make_data("offset"))
        for options in SMOOTH, ROTATED, BOTH:
            _, sums = fp8.torch.flex_attention(q, k, v, enable_gqa=True, return_lse=True, format="e4m3", **options)
            scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 8
            bound = 0.25 if options is not ROTATED else 8.0  # Codes of such keys are off by that.
            self.assertLess(float((sums - scores.logsumexp(-1)).abs().max()), bound)

    def test_packed(self):
        """The mean is that of all sequences, which no softmax sees either."""
        q, k, v = (x.detach()[0].transpose(0, 1).contiguous().requires_grad_() for x in make_data("offset"))
        ends, grad = [0, 30, 31, 96], make(96, 4, 64, seed=7).bfloat16()
        cu = torch.tensor(ends, dtype=torch.int32)
        parts = [compute(*(x[a:b].transpose(0, 1)[None] for x in (q, k, v)), is_causal=True)[0].transpose(0, 1)
                 for a, b in zip(ends, ends[1:])]
        expected = torch.cat(parts)
        gradients = torch.autograd.grad(expected, (q, k, v), grad.double())
        y = fp8.torch.packed_attention(q, k, v, cu, cu, is_causal=True, format="e4m3", **BOTH)
        for x, wanted in zip((y, *torch.autograd.grad(y, (q, k, v), grad)), (expected, *gradients)):
            self.assertLess(get_error(x, wanted), 0.07)


class Refused(unittest.TestCase):
    def test_arguments(self):
        q, k, v = (x.detach() for x in make_data("random"))
        call = fp8.torch.scaled_dot_product_attention
        for text, options in (("a cap bends scores", {**SMOOTH, "format": "e4m3", "cap": 30.0}),
                              ("a sink is a score of no key", {**SMOOTH, "format": "e4m3", "sinks": torch.zeros(4)}),
                              ("expected a format with smooth_k and hadamard", BOTH)):
            with self.assertRaisesRegex(ArgumentError, text):
                call(q, k, v, **options)
        # A rotation is for both.
        call(q, k, v, format="e4m3", hadamard=True, cap=30.0, sinks=torch.zeros(4))

    def test_models(self):
        """Calls of a model keep the rest, and say so."""
        settings = fp8.torch.Attention("e4m3", **BOTH)
        q, k, v = (x.detach() for x in make_data("offset"))
        y = fp8.torch.attention_calls.attend(settings, q, k, v, enable_gqa=True, cap=2000.0)
        self.assertIn("e4m3, hadamard without smooth_k, as a cap bends scores themselves", settings.taken[0])
        expected = fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", cap=2000.0, **ROTATED)
        self.assertTrue(torch.equal(y, expected))


class Caches(unittest.TestCase):
    def decode(self, cache, q, k, v, first):
        """The result of a prompt and of what follows, one by one."""
        cache.append(k[:, :, :first], v[:, :, :first])
        parts = [cache.attend(q[:, :, :first])]
        for i in range(first, k.shape[2]):
            cache.append(k[:, :, i:i + 1], v[:, :, i:i + 1])
            parts.append(cache.attend(q[:, :, i:i + 1]))
        return torch.cat(parts, 2)

    def test_means(self):
        """The first keys of a batch say what is taken away, until it is reset."""
        q, k, v = (x.detach()[:, :, :24] for x in make_data("offset"))
        expected = compute(q, k, v, is_causal=True)
        errors = []
        for options in {}, SMOOTH, ROTATED, BOTH:
            cache = fp8.torch.KeyValueCache(2, 2, 32, 64, k_scale=0.2, v_scale=0.01, **options)
            errors.append(get_error(self.decode(cache, q, k, v, 16), expected))
            restored = cache.restore_keys(cache.keys[:, :, :24].float() * cache.k_scale)
            self.assertLess(get_error(restored, k), 0.04)
            if cache.k_mean is not None:
                torch.testing.assert_close(cache.k_mean, k[:, :, :16].float().mean(2, keepdim=True))
                cache.reset()
                again = self.decode(cache, q, k.flip(2), v.flip(2), 1)
                self.assertLess(get_error(again, compute(q, k.flip(2), v.flip(2), is_causal=True)), 0.07)
                torch.testing.assert_close(cache.k_mean, k[:, :, -1:].float())
        self.assertGreater(errors[0], 0.2)
        self.assertLess(max(errors[1], errors[3]), 0.06)

    def test_refused(self):
        cache = fp8.torch.KeyValueCache(1, 2, 32, 64, **SMOOTH)
        query = make(1, 2, 1, 64).bfloat16()
        for options in {"cap": 30.0}, {"sinks": torch.zeros(2)}:
            with self.assertRaisesRegex(ArgumentError, "expected no cap and no sinks for a cache with smooth_k"):
                cache.attend(query, **options)
        with self.assertRaisesRegex(ArgumentError, "expected a format with smooth_k"):
            fp8.torch.KeyValueCache(1, 2, 32, 64, format=None, **SMOOTH)


class Block(nn.Module):
    """Keys have an offset, as biases of layers give them."""

    def __init__(self, heads=2, width=64):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        with torch.no_grad():
            self.qkv.bias[width:2 * width] += 30 * make(width, seed=9)

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Recipes(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        self.block, self.x = Block(), make(2, 48, 64, seed=1)
        self.expected = self.block(self.x).detach()

    def find_error(self, recipe):
        """Converts attention alone, and runs both directions."""
        model = copy.deepcopy(self.block)
        fp8.torch.convert_to_fp8_training(model, recipe, filter=lambda module, name: not isinstance(module, nn.Linear))
        y = model(self.x)
        y.sum().backward()
        return get_error(y.detach(), self.expected), model

    def test_recipes(self):
        for recipe in fp8.DelayedScaling, fp8.Float8CurrentScaling:
            plain, _ = self.find_error(recipe(fp8_dpa=True))
            smooth, model = self.find_error(recipe(fp8_dpa=True, dpa_smooth_k=True, dpa_hadamard=True))
            self.assertLess(smooth, 0.3 * plain)
            if recipe is fp8.DelayedScaling:
                again = copy.deepcopy(self.block)
                fp8.torch.convert_to_fp8_training(again, recipe(fp8_dpa=True, dpa_smooth_k=True, dpa_hadamard=True),
                                                  filter=lambda module, name: not isinstance(module, nn.Linear))
                again.load_state_dict(model.state_dict())
                self.assertTrue(torch.equal(again(self.x), model(self.x)))

    def test_scales(self):
        """A module's own scales have what the recipe says, with fp8_dpa and without, which is for modules that have none."""
        data, chosen = make_data("offset"), {"dpa_smooth_k": True, "dpa_hadamard": True}
        expected = compute(*data).detach()
        for options in {}, {"fp8_dpa": True}:
            scales = fp8.torch.AttentionScales(fp8.DelayedScaling(**options, **chosen))
            for _ in range(2):
                y = fp8.torch.scaled_dot_product_attention(*data, scales=scales)
                y.sum().backward()
            self.assertLess(get_error(y.detach(), expected), 0.06)

    def test_graphs(self):
        recipe = fp8.DelayedScaling(fp8_dpa=True, dpa_smooth_k=True)
        backend = fp8.torch.Backend(recipe)
        model = torch.compile(self.block, backend=backend)
        y = model(self.x)
        y.sum().backward()
        self.assertIn("e4m3, smooth_k, delayed scales", backend.attention.taken[0])
        plain = torch.compile(copy.deepcopy(self.block), backend=fp8.torch.Backend(fp8.DelayedScaling(fp8_dpa=True)))
        self.assertLess(get_error(y.detach(), self.expected), 0.5 * get_error(plain(self.x).detach(), self.expected))

    def test_programs(self):
        """fp8.compile has the same of `fp8.attention`, with remarks."""
        kind = "tensor<1x32x2x64xbf16>"
        text = (f"func.func @attend(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{\n  %o = fp8.attention %q, %k, %v "
                f'scale = 0.125 {{fp8.name = "a"}} : {kind}, {kind}, {kind} -> {kind}\n  return %o : {kind}\n}}\n')
        q, k, v = (make(1, 32, 2, 64, seed=seed).bfloat16() for seed in (1, 2, 3))
        k += 20 * make(1, 1, 2, 64, seed=4).bfloat16()
        expected = compute(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)
        for options, most in ({}, None), (SMOOTH, 0.06), (BOTH, 0.06):
            recipe = fp8.Float8CurrentScaling(fp8_dpa=True, **{f"dpa_{name}": True for name in options})
            program = fp8.compile(text, recipe, target="cpu", cache=False)
            error = get_error(program.functions["attend"](q, k, v), expected)
            self.assertEqual(program.remarks[0].details.get("transforms"), ", ".join(options) or None)
            self.assertIn("fp8 by current" + "".join(f", {name}" for name in options), explain(program.remarks))
            if most is None:
                self.assertGreater(error, 0.2)
            else:
                self.assertLess(error, most)


class Emulated(unittest.TestCase):
    def test_kernels(self):
        """Codes of the kernels of a GPU are those of a CPU, where sums are exact."""
        for heads_first, chosen in (True, "smooth_k,hadamard"), (False, "smooth_k"), (False, "hadamard"):
            sizes = ((2, 4, 40, 64), (2, 2, 40, 64)) if heads_first else ((2, 40, 4, 64), (2, 40, 2, 64))
            # A sum of 40 such numbers is a multiple of 40: means are exact.
            q, k = (torch.randint(-4, 5, each, generator=torch.Generator().manual_seed(3)).bfloat16() for each in sizes)
            place = 2 if heads_first else 1
            k = (k - k.roll(1, place)) + torch.randint(-9, 9, (1, 2, 1, 64) if heads_first else (1, 1, 2, 64),
                                                       generator=torch.Generator().manual_seed(4))
            options = attention_ops.Options(heads_first, 0.125, format="e4m3," + chosen)
            expected = attention_ops.compute(q, k, k, attention_ops.Others(), options, True)
            with mock.patch.object(attention_programs, "get_function", lambda shape, target: _get_function(shape, "sm_90a")):
                found = attention_ops.compute(q, k, k, attention_ops.Others(), options, True)
            for a, b in zip(expected[2:], found[2:]):
                self.assertTrue(torch.equal(a.float(), b.float()))
            self.assertLess(get_error(found[0], expected[0]), 0.01)


if __name__ == "__main__":
    unittest.main()
