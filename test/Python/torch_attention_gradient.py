# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""The gradient of fp8.torch.scaled_dot_product_attention beside that of f64: groups of heads, windows, masks, formats,
strides, nothing to attend to; torch.compile and torch.library's checks; which kernel of PyTorch a GPU would take."""

import unittest
from unittest import mock

import torch
from torch._subclasses import FakeTensorMode

import fp8
import fp8.torch
from fp8.torch import attention_backward, attention_ops

attend = fp8.torch.scaled_dot_product_attention


def make(*sizes, seed=0, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def make_operands(batch, queries, keys, heads, heads_of_k, dim, dim_of_v=None, dtype=torch.float32, heads_first=True):
    sizes = ((heads, queries, dim), (heads_of_k, keys, dim), (heads_of_k, keys, dim_of_v or dim))
    made = []
    for seed, (count, positions, columns) in enumerate(sizes):
        x = make(batch, positions, count, columns, seed=seed, dtype=dtype).transpose(1, 2)
        made.append((x.contiguous() if heads_first else x).requires_grad_())
    return made


def make_ranges(batch, queries, keys, seed=3):
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(0, keys, (batch, queries), generator=generator)
    return torch.stack([first, first + torch.randint(0, keys, (batch, queries), generator=generator)], -1).int()


def see_ranges(ranges, keys):
    key = torch.arange(keys)
    return ((key >= ranges[..., :1]) & (key < ranges[..., 1:])).unsqueeze(1)


def see(queries, keys, left=None, right=None, bottom_right=False):
    """Which keys are visible."""
    own = torch.arange(queries)[:, None] + (keys - queries if bottom_right else 0)
    key = torch.arange(keys)
    visible = torch.ones(queries, keys, dtype=torch.bool)
    if left is not None:
        visible &= key >= own - left
    return visible if right is None else visible & (key <= own + right)


def define(q, k, v, visible=None, added=None, scale=None, sinks=None):
    """By its definition, in f64, where a query without a key has 0."""
    groups = q.shape[1] // max(1, k.shape[1])
    k, v = (x.repeat_interleave(groups, 1) for x in (k, v))
    scores = q @ k.mT * (scale or q.shape[-1] ** -0.5)
    scores = scores if added is None else scores + added
    if visible is not None:
        scores = scores.masked_fill(~visible, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks[:, None, None].expand(*scores.shape[:3], 1)], -1)
        v = torch.cat([v, v.new_zeros(*v.shape[:2], 1, v.shape[3])], 2)
    is_empty = (scores == -torch.inf).all(-1, keepdim=True)
    p = scores.masked_fill(is_empty, 0).softmax(-1).masked_fill(is_empty, 0)
    return p @ v


def differentiate(y, tensors):
    grad = make(*y.shape, seed=7).to(y.dtype)
    return torch.autograd.grad(y, tensors, grad)


class Gradient(unittest.TestCase):
    def compare(self, tensors, tolerance, visible=None, added=None, **options):
        wide = [x.detach().double().requires_grad_() for x in tensors]
        expected = differentiate(define(*wide, visible, None if added is None else added.double(),
                                        options.get("scale")), wide)
        for name, x, found, wanted in zip("qkv", tensors, differentiate(attend(*tensors, **options), tensors),
                                          expected):
            self.assertEqual((found.dtype, found.shape), (x.dtype, x.shape))
            self.assertTrue(found.isfinite().all(), name)
            error = (found.double() - wanted).norm().item()
            self.assertLessEqual(error, tolerance * wanted.norm().item() + 1e-12, name)

    def test_types_and_layouts(self):
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 8e-3), (torch.float16, 2e-3)):
            for heads_first in (True, False):
                with self.subTest(dtype=dtype, heads_first=heads_first):
                    self.compare(make_operands(2, 19, 19, 4, 2, 16, 32, dtype, heads_first), tolerance,
                                 see(19, 19, None, 0), is_causal=True, scale=0.3)

    def test_windows(self):
        for queries, keys in ((13, 13), (9, 17), (17, 9)):
            for window in ((None, 0), (3, 2), (0, None), (4, 0)):
                for bottom_right in (False, True):
                    with self.subTest(sizes=(queries, keys), window=window, bottom_right=bottom_right):
                        self.compare(make_operands(1, queries, keys, 2, 1, 16), 1e-5,
                                     see(queries, keys, *window, bottom_right), window=window,
                                     bottom_right=bottom_right)

    def test_few_queries_at_a_time(self):
        with mock.patch.object(attention_backward, "_SCORES", 4 * 20 * 3):
            for window in ((None, None), (None, 0), (3, 2)):
                self.compare(make_operands(1, 20, 20, 4, 2, 16), 1e-5, see(20, 20, *window), window=window)

    def test_masks(self):
        tensors = make_operands(2, 7, 9, 4, 2, 16)
        visible = make(2, 1, 7, 9, seed=5) > 0
        self.compare(tensors, 1e-5, visible, attn_mask=visible)
        for sizes in ((7, 9), (2, 4, 1, 9), (4, 7, 1)):
            added = make(*sizes, seed=6)
            self.compare(tensors, 1e-5, added=added, attn_mask=added)
        self.compare(tensors, 1e-5, visible & see(7, 9, 2, 2), window=(2, 2), attn_mask=visible.expand(2, 4, 7, 9))

    def test_ranges(self):
        for queries, keys, window in ((7, 9, (None, None)), (13, 11, (None, 0)), (9, 17, (3, 2))):
            ranges = make_ranges(2, queries, keys)
            visible = see_ranges(ranges, keys) & see(queries, keys, *window)
            for heads_first in (True, False):
                self.compare(make_operands(2, queries, keys, 4, 2, 16, heads_first=heads_first), 1e-5, visible,
                             window=window, key_ranges=ranges)
        with mock.patch.object(attention_backward, "_SCORES", 4 * 20 * 3):
            ranges = make_ranges(1, 20, 20)
            self.compare(make_operands(1, 20, 20, 4, 2, 16), 1e-5, see_ranges(ranges, 20), key_ranges=ranges)

    def test_sinks(self):
        visible = see(9, 12, None, 0, True).clone()
        visible[3] = False
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
            for heads_first in (True, False):
                tensors = make_operands(2, 9, 12, 4, 2, 16, dtype=dtype, heads_first=heads_first)
                tensors.append((make(4, seed=8) * 2).to(dtype).requires_grad_())
                wide = [x.detach().double().requires_grad_() for x in tensors]
                expected = differentiate(define(*wide[:3], visible, sinks=wide[3]), wide)
                y = attend(*tensors[:3], visible, sinks=tensors[3])
                for x, found, wanted in zip(tensors, differentiate(y, tensors), expected):
                    self.assertEqual((found.dtype, found.shape), (x.dtype, x.shape))
                    self.assertLessEqual((found.double() - wanted).norm(), tolerance * wanted.norm())
        q, k, v = (x.detach() for x in tensors[:3])
        sinks = torch.tensor([-torch.inf, 0.0, 1e4, -1e4], requires_grad=True)
        y = attend(q, k, v, visible, sinks=sinks)
        self.assertTrue((y[:, 2] == 0).all())
        torch.testing.assert_close(y[:, [0, 3]], attend(q, k, v, visible)[:, [0, 3]])
        self.assertTrue(torch.autograd.grad(y.sum(), sinks)[0].isfinite().all())

    def test_others_that_are_refused(self):
        q, k, v = make_operands(2, 5, 6, 2, 2, 16)
        for text, options in ((r"key_ranges to be int32 \(2, 5, 2\) on cpu, but got torch.int64",
                               {"key_ranges": torch.zeros(2, 5, 2, dtype=torch.int64)}),
                              (r"but got torch.int32 \(2, 6, 2\)", {"key_ranges": torch.zeros(2, 6, 2, dtype=torch.int32)}),
                              (r"sinks to be bf16, f16 or f32 \(2,\) on cpu, but got torch.float32 \(3,\)",
                               {"sinks": torch.zeros(3)})):
            with self.subTest(text=text), self.assertRaisesRegex(fp8.ArgumentError, text):
                attend(q, k, v, **options)

    def test_queries_without_a_key(self):
        q, k, v = make_operands(1, 6, 2, 1, 1, 16)
        grads = differentiate(attend(q, k, v, is_causal=True, bottom_right=True), (q, k, v))
        self.assertTrue((grads[0][:, :, :4] == 0).all())
        self.assertTrue(all(grad.isfinite().all() for grad in grads))
        grads = differentiate(attend(q, k, v, torch.zeros(6, 2, dtype=torch.bool)), (q, k, v))
        self.assertTrue(all((grad == 0).all() for grad in grads))

    def test_nothing(self):
        for batch, queries, keys in ((0, 3, 3), (1, 0, 3), (1, 3, 0), (2, 0, 0)):
            for format_ in (None, "e4m3"):
                with self.subTest(sizes=(batch, queries, keys), format=format_):
                    tensors = make_operands(batch, queries, keys, 2, 1, 16)
                    y = attend(*tensors, format=format_)
                    self.assertTrue((y == 0).all())
                    for x, grad in zip(tensors, differentiate(y, tensors)):
                        self.assertEqual(grad.shape, x.shape)
                        self.assertTrue((grad == 0).all())

    def test_8_bits_go_straight_through(self):
        for format_, tolerance in (("e4m3", 0.08), ("e5m2", 0.16)):
            for dtype in (torch.bfloat16, torch.float32):
                with self.subTest(format=format_, dtype=dtype):
                    self.compare(make_operands(2, 33, 33, 4, 2, 32, dtype=dtype), tolerance, see(33, 33, None, 0),
                                 is_causal=True, format=format_)

    def test_8_bits_are_of_the_codes(self):
        """What is exact in 8 bits has the gradient of f64, but for P."""
        tensors = [x.detach().sign().requires_grad_() for x in make_operands(1, 12, 12, 2, 2, 32)]
        self.compare(tensors, 0.03, format="e4m3")

    def test_saved_codes(self):
        q, k, v = make_operands(1, 12, 12, 2, 2, 32, dtype=torch.bfloat16)
        y = attend(q, k, v, format="e4m3")
        self.assertEqual([x.dtype for x in y.grad_fn.saved_tensors[:3]], [torch.float8_e4m3fn] * 3)

    def test_single_gradients(self):
        q, k, v = make_operands(1, 5, 5, 2, 2, 16)
        whole = differentiate(attend(q, k, v), (q, k, v))
        for i in range(3):
            given = [x if i == j else x.detach() for j, x in enumerate((q, k, v))]
            self.assertTrue(torch.equal(differentiate(attend(*given), given[i])[0], whole[i]))

    def test_no_second_derivative(self):
        q, k, v = make_operands(1, 5, 5, 2, 2, 16)
        with self.assertRaisesRegex(fp8.UnsupportedError, "no second derivative"):
            torch.autograd.grad(attend(q, k, v).sum(), q, create_graph=True)

    def test_masks_that_are_refused(self):
        q, k, v = make_operands(2, 5, 6, 2, 2, 16)
        for text, added in (("without a gradient", make(5, 6).requires_grad_()),
                            (r"to be broadcast to \(2, 2, 5, 6\), but got \(6, 5\)", make(6, 5)),
                            ("to be bool, bf16, f16 or f32, but got torch.int64", make(5, 6).long()),
                            ("on cpu, as query is, but got meta", make(5, 6).to("meta"))):
            with self.subTest(text=text), self.assertRaisesRegex(fp8.ArgumentError, text):
                attend(q, k, v, added)


class Compiled(unittest.TestCase):
    def test_torch_compile(self):
        def call(q, k, v, format_, mask=None):
            return attend(q * 2, k, v, mask, is_causal=True, format=format_) + 1

        for dynamic, format_, heads_first in ((False, None, True), (True, None, False), (True, "e4m3", True),
                                              (False, "e4m3", False)):
            with self.subTest(dynamic=dynamic, format=format_, heads_first=heads_first):
                torch._dynamo.reset()
                compiled = torch.compile(call, backend="aot_eager", fullgraph=True, dynamic=dynamic)
                for queries in (8, 11):
                    tensors = make_operands(2, queries, 12, 4, 2, 16, heads_first=heads_first)
                    mask = make(12, seed=4) > -1
                    y, expected = compiled(*tensors, format_, mask), call(*tensors, format_, mask)
                    self.assertTrue(torch.equal(y, expected))
                    self.assertEqual(y.stride(), expected.stride())
                    for grad, wanted in zip(differentiate(y, tensors), differentiate(expected, tensors)):
                        self.assertTrue(torch.equal(grad, wanted))

    def test_opcheck(self):
        q, k, v = make_operands(1, 5, 7, 4, 2, 16)
        options = True, 0.25, None, 0, False
        mask = make(1, 1, 5, 7) > -1
        ranges, sinks = make_ranges(1, 5, 7), make(4).requires_grad_()
        torch.library.opcheck(attention_ops.forward, (q, k, v, mask, None, None, None, *options, None, None))
        torch.library.opcheck(attention_ops.forward, (q, k, v, None, ranges, sinks, None, *options, "e4m3", "promote"))
        torch.library.opcheck(attention_ops.forward, (q, k, v, None, None, None, None, *options, None, None, 2.0))
        state = torch.tensor([1, 2])
        torch.library.opcheck(attention_ops.forward, (q, k, v, None, None, None, state, *options, None, None, None, 0.5))
        # Its check of AOTAutograd sums up results, which codes have no sum for.
        torch.library.opcheck(attention_ops.saving, (q, k, v, None, None, None, None, *options, "e4m3", None), test_utils=(
            "test_schema", "test_autograd_registration", "test_faketensor"))
        with torch.no_grad():
            y, lse = attention_ops.forward(q, k, v, None, None, None, None, *options, None, None)
        torch.library.opcheck(attention_ops._backward, (y, q.detach(), k.detach(), v.detach(), [], y, lse, None, ranges, None, None,
                                                        *options, None, None))


class Chosen(unittest.TestCase):
    """Fake tensors of a GPU stand for those that there are none of here."""

    def choose(self, queries=64, keys=64, window=(None, None), bottom_right=False, dtype=torch.bfloat16, heads_of_k=2,
               dim_of_v=64, mask=False, allowed=("cudnn", "flash"), columns=64, target="sm_100a", cap=None, ranges=False, dropout=0.0):
        rule = attention_backward.Rule(0.1, *window, bottom_right, cap, dropout)
        asked = []

        def can_use(kernel, query, key, value, is_causal):
            asked.append((kernel, is_causal))
            return kernel in allowed

        with FakeTensorMode(), mock.patch.object(attention_backward, "_can_use", can_use), (
                mock.patch.object(attention_backward, "get_default_target", lambda: target)):
            q, k, v = (torch.empty(2, *sizes, dtype=dtype, device="cuda") for sizes in (
                (4, queries, columns), (heads_of_k, keys, columns), (heads_of_k, keys, dim_of_v)))
            kernel, reason = attention_backward.choose(q, k, v, mask, rule, ranges)
            self.assertTrue(reason)
            self.assertEqual("takes a mask" in reason, mask)
            return kernel, asked

    def test_masks_are_named(self):
        for target in ("sm_80", "sm_89", "sm_90a", "sm_120a"):
            self.assertEqual(self.choose(window=(None, 0), target=target, mask=True), ("formula", []))

    def test_cudnn(self):
        for window, is_causal in (((None, None), False), ((None, 0), True), ((63, 0), True), ((None, 63), False)):
            self.assertEqual(self.choose(window=window), ("cudnn", [("cudnn", is_causal)]))
        self.assertEqual(self.choose(32, 64, (None, 0))[0], "cudnn")
        self.assertEqual(self.choose(64, 64, (None, 0), True)[0], "cudnn")
        self.assertEqual(self.choose(dim_of_v=32)[0], "cudnn")

    def test_flash(self):
        self.assertEqual(self.choose(window=(None, 0), allowed=("flash",))[0], "flash")
        self.assertEqual(self.choose(window=(16, 0)), ("flash", [("flash", False)]))
        self.assertEqual(self.choose(32, 64, (None, 0), True)[0], "flash")
        self.assertEqual(self.choose(64, 32, (None, 0), True)[0], "flash")
        # What it would count from the end with a negative number.
        self.assertEqual(self.choose(32, 64, (None, 0), allowed=("flash",), columns=96, dim_of_v=96)[0], "formula")

    def test_deterministic(self):
        for warn_only, expected in ((False, ("flash", [("flash", False)])), (True, ("cudnn", [("cudnn", True)]))):
            torch.use_deterministic_algorithms(True, warn_only=warn_only)
            try:
                self.assertEqual(self.choose(window=(None, 0)), expected)
                # The same bits in every run anyway, and faster than FlashAttention's deterministic mode.
                self.assertEqual(self.choose(window=(None, 0), target="sm_90a")[0], "cudnn" if warn_only else "fp8")
                self.assertEqual(self.choose(target="sm_90a")[0], "cudnn" if warn_only else "fp8")
            finally:
                torch.use_deterministic_algorithms(False)

    def test_ours(self):
        """Where it was measured to be no slower than cuDNN's; in place of FlashAttention's wherever it can be."""
        ours = {"target": "sm_90a", "columns": 128, "dim_of_v": 128}
        long = {"queries": 4096, "keys": 4096, **ours}
        self.assertEqual(self.choose(window=(None, 0), **long)[0], "fp8")
        self.assertEqual(self.choose(window=(None, 0), **ours)[0], "cudnn")
        self.assertEqual(self.choose(**long)[0], "cudnn")
        for positions, window, expected in ((4096, (None, 0), "fp8"), (2048, (None, 0), "cudnn"), (2048, (None, None), "fp8"),
                                            (2047, (None, None), "cudnn")):
            self.assertEqual(self.choose(positions, positions, window, target="sm_90a")[0], expected)
        self.assertEqual(self.choose(window=(16, 0), **ours)[0], "fp8")
        self.assertEqual(self.choose(window=(None, 0), allowed=(), target="sm_90a")[0], "fp8")
        for without in ({"columns": 96, "dim_of_v": 96}, {"dim_of_v": 64}, {"dtype": torch.float32}):
            with self.subTest(**without):
                self.assertNotEqual(self.choose(window=(16, 0), **{**ours, **without})[0], "fp8")

    def test_nobody_else(self):
        """PyTorch's have neither a cap of scores nor ranges of keys."""
        for options in ({"cap": 30.0}, {"ranges": True}):
            with self.subTest(**options):
                self.assertEqual(self.choose(target="sm_90a", **options), ("fp8", []))
                self.assertEqual(self.choose(columns=96, dim_of_v=96, **options), ("formula", []))

    def test_not_timed(self):
        """On GPUs where nobody timed ours it takes what PyTorch has no kernel of."""
        for target in ("sm_80", "sm_89", "sm_120a"):
            with self.subTest(target):
                self.assertEqual(self.choose(4096, 4096, (None, 0), target=target)[0], "cudnn")
                self.assertEqual(self.choose(window=(16, 0), target=target)[0], "flash")
                self.assertEqual(self.choose(window=(None, 0), allowed=(), target=target)[0], "fp8")
                self.assertEqual(self.choose(cap=30.0, columns=96, dim_of_v=256, target=target), ("fp8", []))
                self.assertEqual(self.choose(ranges=True, columns=72, dim_of_v=72, target=target), ("formula", []))
        for columns in 64, 128:
            sizes = {"columns": columns, "dim_of_v": columns}
            self.assertEqual(self.choose(4096, 4096, (None, 0), **sizes)[0], "cudnn")
            self.assertEqual(self.choose(window=(16, 0), **sizes)[0], "flash")
            self.assertEqual(self.choose(window=(None, 0), allowed=(), **sizes)[0], "fp8")
            self.assertEqual(self.choose(cap=30.0, **sizes), ("fp8", []))
            self.assertEqual(self.choose(cap=30.0, dropout=0.1, **sizes), ("formula", []))
        self.assertEqual(self.choose(cap=30.0, columns=96, dim_of_v=96), ("formula", []))

    def test_formula(self):
        for options in ({"mask": True}, {"dtype": torch.float32}, {"queries": 0},
                        {"allowed": (), "columns": 96, "dim_of_v": 96},
                        {"dim_of_v": 32, "allowed": ("flash",)}):
            with self.subTest(**options):
                self.assertEqual(self.choose(**options)[0], "formula")

    def test_windows_from_the_end(self):
        """A mask that is written as FlashAttention counts, which has no limit below 0."""
        for queries, keys in ((9, 9), (5, 12), (12, 5)):
            for window in ((None, 0), (3, 2), (0, 0), (4, None)):
                for bottom_right in (False, True):
                    rule = attention_backward.Rule(1.0, *window, bottom_right)
                    found = attention_backward._find_window(rule, queries, keys)
                    visible = see(queries, keys, *window, bottom_right)
                    self.assertTrue(torch.equal(see(queries, keys, *found), visible))
                    ends = attention_backward._count_from_end(found, queries, keys)
                    if ends is not None:
                        self.assertTrue(torch.equal(see(queries, keys, *ends, True), visible))

    def test_calls(self):
        """The operations take what they are given, as far as a fake tensor knows."""
        for kernel, window in (("cudnn", (None, 0)), ("flash", (16, 0))):
            called = []

            class Watch(torch.utils._python_dispatch.TorchDispatchMode):
                def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                    called.append(func.name())
                    return func(*args, **(kwargs or {}))

            with FakeTensorMode(), Watch(), mock.patch.object(attention_backward, "_can_use",
                                                              lambda name, *others: name == kernel):
                q, y = (torch.empty(2, 4, 64, 32, dtype=torch.bfloat16, device="cuda") for _ in range(2))
                k = torch.empty(2, 2, 64, 32, dtype=torch.bfloat16, device="cuda")
                lse = torch.empty(2, 4, 64, device="cuda")
                found = attention_backward.run(y, q, k, k, [], y, lse, None, None,
                                               attention_backward.Rule(0.1, *window))
                codes = [x.to(torch.float8_e4m3fn) for x in (q, k, k)]
                factor = torch.ones(1, 1, device="cuda")
                again = attention_backward.run(y, *codes, [factor] * 3, y, lse, None, None,
                                               attention_backward.Rule(0.1, *window))
            name = {"cudnn": "aten::_scaled_dot_product_cudnn_attention_backward",
                    "flash": "aten::_flash_attention_backward"}[kernel]
            self.assertEqual(called.count(name), 2)
            for results in (found, again):
                self.assertEqual([(x.shape, x.dtype) for x in results],
                                 [(x.shape, torch.bfloat16) for x in (q, k, k)])

    def test_layout_for_cudnn(self):
        """It is given tensors as PyTorch's calls of models have them, with whose plans it then computes."""
        found = []

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if "cudnn" in func.name():
                    found.append([x.transpose(1, 2).is_contiguous() for x in args[:5]])
                return func(*args, **(kwargs or {}))

        with FakeTensorMode(), Watch(), mock.patch.object(attention_backward, "_can_use", lambda name, *others: name == "cudnn"):
            for heads_first in (True, False):
                q, y, grad, k, v = (torch.empty(2, heads, 64, 32, dtype=torch.bfloat16, device="cuda") for heads in (4, 4, 4, 2, 2))
                tensors = [x if heads_first else x.transpose(1, 2).contiguous() for x in (grad, q, k, v)]
                y = y if heads_first else y.transpose(1, 2).contiguous()
                results = attention_ops.run_backward(
                    *tensors, [], y, torch.empty(2, 4, 64, device="cuda"), None, None, None, None,
                    *attention_ops.Options(heads_first, 0.1))
                self.assertEqual([(x.shape, x.is_contiguous()) for x in results], [(x.shape, True) for x in tensors[1:]])
        self.assertEqual(found, 2 * [5 * [True]])

    def run_codes(self, target, accumulate, mask=False, columns=64):
        """What computes the gradient of codes: `of codes` if it has them as they are, `again` if sums are computed again, and
        the number of calls that make numbers of codes."""
        found = []

        def note(name, count):
            def call(*args, **kwargs):
                codes = name == "fp8" and args[1].dtype == torch.float8_e4m3fn
                found.append("fp8 of codes" if codes else name)
                return [torch.empty_like(x, dtype=torch.bfloat16) for x in (q, k, k)][:count]
            return call

        with FakeTensorMode(), mock.patch.multiple(
                attention_backward, get_default_target=lambda: target, _can_use=lambda kernel, *others: kernel == "cudnn",
                _run_ours=note("fp8", 3), _run_cudnn=note("cudnn", 3), compute=note("formula", 3), find_sums=note("again", 1)), (
                mock.patch.object(attention_ops, "widen", note("widen", 3))):
            q, k, y = (torch.empty(2, heads, 64, columns, dtype=dtype, device="cuda") for heads, dtype in (
                (4, torch.float8_e4m3fn), (2, torch.float8_e4m3fn), (4, torch.bfloat16)))
            factors, lse = [torch.ones(1, 1, device="cuda")] * 3, torch.empty(2, 4, 64, device="cuda")
            masks = torch.ones(1, 1, 64, 64, dtype=torch.bool, device="cuda") if mask else None
            attention_ops.run_backward(y, q, k, k, factors, y, lse, masks, None, None, None, *attention_ops.Options(
                True, 0.1, format="e4m3", accumulate=accumulate))
        return found

    def test_codes(self):
        """Scores are those that the forward had, or sums are computed again, but for `fast`, which is for speed."""
        for accumulate in None, "promote":
            with self.subTest(accumulate=accumulate):
                self.assertEqual(self.run_codes("sm_90a", accumulate), ["fp8 of codes"])
                self.assertEqual(self.run_codes("sm_90a", accumulate, columns=96), ["widen", "again", "cudnn"])
                self.assertEqual(self.run_codes("sm_100a", accumulate), ["widen", "again", "cudnn"])
                # It has all scores at hand.
                self.assertEqual(self.run_codes("sm_90a", accumulate, mask=True), ["widen", "formula"])
        self.assertEqual(self.run_codes("sm_90a", "fast"), ["widen", "cudnn"])


class Ours(unittest.TestCase):
    """The program of our kernel, whose meaning a CPU computes."""

    def test_gradients(self):
        rules = [attention_backward.Rule(0.2), attention_backward.Rule(0.125, None, 0), attention_backward.Rule(0.3, 7, 2, True),
                 attention_backward.Rule(0.2, None, 0, cap=0.7)]
        first = torch.arange(19, dtype=torch.int32)
        ranges = torch.stack([first, first * 2 - 3], -1).expand(2, -1, -1).contiguous()
        for dtype, tolerance in ((torch.bfloat16, 8e-3), (torch.float16, 2e-3)):
            for rule in rules:
                for heads_first, given_ranges in ((True, None), (False, None), (True, ranges), (False, ranges)):
                    with self.subTest(dtype=dtype, rule=rule, heads_first=heads_first, ranges=given_ranges is not None):
                        q, k, v = make_operands(2, 19, 23, 4, 2, 64, None, dtype, heads_first)
                        dy = make(2, 4, 19, 64, seed=7, dtype=dtype)
                        options = attention_ops.Options(True, *rule[:4], cap=rule.cap)
                        others = attention_ops.Others(ranges=given_ranges)
                        tensors = [x.detach() for x in (q, k, v)]
                        y, lse = attention_ops.attend(*tensors, others, options)
                        found = attention_backward._run_ours(dy, *tensors, y, lse, rule, given_ranges)
                        expected = attention_backward.compute(dy, *tensors, y, lse, None, given_ranges, rule)
                        for x, given, wanted in zip(found, (q, k, v), expected):
                            self.assertEqual((x.shape, x.dtype), (given.shape, dtype))
                            # Where queries see one key each, those of queries and keys are nothing but rounding.
                            self.assertLessEqual((x.float() - wanted).norm().item(),
                                                 tolerance * max(wanted.norm().item(), 0.01))

    def test_order(self):
        every, causal = attention_backward.Rule(1.0), attention_backward.Rule(1.0, None, 0)

        def find(columns, rule):
            return attention_backward._find_order(4096, 4096, columns, rule)

        self.assertEqual((find(64, every), find(64, causal), find(128, every), find(128, causal)),
                         ("any", *["deterministic"] * 3))
        torch.use_deterministic_algorithms(True)
        try:
            self.assertEqual(find(64, every), "deterministic")
        finally:
            torch.use_deterministic_algorithms(False)

    def test_explained(self):
        attention_backward.taken.clear()
        y = attend(*make_operands(1, 5, 5, 2, 1, 16))
        y.sum().backward()
        self.assertEqual(attention_backward.explain(), "formula: a CPU, or f32 (1 times)")


class Dequantize(unittest.TestCase):
    def test_is_the_product_with_the_factor(self):
        from fp8.torch import attention_programs
        for format_, kind in attention_programs.CODES.items():
            for dtype, element in ((torch.bfloat16, "bf16"), (torch.float16, "f16")):
                with self.subTest(format=format_, dtype=dtype):
                    codes = torch.randn(37, 48).mul(30).to(kind)
                    factor = torch.tensor([[0.0123]])
                    found = attention_programs.get_dequantize(element, format_, 48, "cpu")(codes, factor)
                    self.assertTrue(torch.equal(found, (codes.float() * factor).to(dtype)))


if __name__ == "__main__":
    unittest.main()
