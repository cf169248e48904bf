# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Calls of attention that are like earlier ones, of which Python looks at what tells them apart alone: they have the same results
and gradients, what is not like them is found out, and few functions are called."""

import contextlib
import copy
import sys
import types
import unittest
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import (attention_backward, attention_calls, attention_ops, attention_programs, attention_ready, coded_results,
                       linear_ops)

GPU = attention_backward, attention_calls, attention_ops, attention_programs, attention_ready, coded_results
DPA = fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True)
MHA = fp8.DelayedScaling(amax_history_len=3, fp8_mha=True)
ROTATED = fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True, dpa_smooth_k=True, dpa_hadamard=True)


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).bfloat16()


class Block(nn.Module):
    def __init__(self, is_outer=False):
        super().__init__()
        torch.manual_seed(1)
        self.qkv, self.out, self.is_outer = nn.Linear(64, 192), nn.Linear(64, 64), is_outer
        self.bfloat16()

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 1, 64).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        if self.is_outer:
            q, k, v = (y.contiguous() for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).flatten(2))


@contextlib.contextmanager
def prepare(is_on):
    """Where it is not on, each call is looked at again."""
    with contextlib.ExitStack() as stack:
        if not is_on:
            stack.enter_context(mock.patch.object(attention_ready.Functions, "add", lambda *arguments: None))
            stack.enter_context(mock.patch.object(attention_ready.Calls, "keep", lambda *arguments: None))
            stack.enter_context(mock.patch.object(linear_ops.Unit, "_prepare", lambda *arguments: None))
        yield


@contextlib.contextmanager
def emulate():
    with contextlib.ExitStack() as stack:
        for module in GPU:
            stack.enter_context(mock.patch.object(module, "is_on_gpu", lambda tensor: True))
        yield


def train(recipe, steps=3, positions=24, **options):
    """Results, gradients and the state of some steps of several sizes."""
    model = fp8.torch.convert_to_fp8_training(Block(**options), recipe, first_last_bf16=0, filter=lambda name, module: (
        name == "" or name == "out" and recipe is MHA), transposed_codes="copy", target="sm_90a")
    found = []
    for step in range(steps):
        x = make(1 if step != 1 else 2, positions, 64, seed=step).requires_grad_()
        y = model(x)
        y.float().square().sum().backward()
        with torch.no_grad():
            found += [y.detach(), x.grad, model(x.detach())]
    return found + [each.grad for each in model.parameters()], model.state_dict()


class Prepared(unittest.TestCase):
    def check(self, run, *arguments, **options):
        """That results are the same, and that most calls are prepared ones."""
        with prepare(False):
            expected, state = run(*arguments, **options)
        with mock.patch.object(attention_calls, "compute", side_effect=attention_calls.compute) as general:
            found, other = run(*arguments, **options)
        for ours, theirs in zip(found, expected, strict=True):
            self.assertTrue(torch.equal(ours, theirs))
        for key, value in state.items():
            self.assertTrue(torch.equal(value, other[key]), key)
        return general.call_count

    def test_on_a_gpu(self):
        with emulate():
            for recipe, is_outer in ((DPA, False), (MHA, True), (fp8.Float8CurrentScaling(fp8_dpa=True), False), (ROTATED, False)):
                # With a gradient and without, of two sizes.
                self.assertLessEqual(self.check(train, recipe, is_outer=is_outer), 4)

    def test_results_in_codes(self):
        """A layer that multiplies them is looked at once for each size, with a gradient and without: of a multiple of 16 rows,
        since of others programs take numbers. So are turned codes and numbers of codes."""
        forward, turned = linear_ops.Unit._forward_coded, attention_programs._get_turn
        with emulate(), mock.patch.object(linear_ops.Unit, "_forward_coded", autospec=True, side_effect=forward) as general, (
                mock.patch.object(attention_programs, "_get_turn", side_effect=turned)) as turns:
            self.check(train, MHA, 4, 32)
        # Before without what is prepared: in each step with a gradient and without.
        self.assertEqual(general.call_count, 8 + 2)
        self.assertEqual(turns.call_count, 4 + 2)

    def test_on_a_cpu(self):
        self.assertEqual(self.check(train, DPA, 4), 4)

    def test_what_differs(self):
        """What else a call depends on than its sizes."""
        q, k, v = (make(1, 2, 12, 32, seed=seed) for seed in range(3))

        def run():
            results = []
            with fp8.torch.use_attention(format="e4m3"):
                for options in ({}, {"is_causal": True}, {"scale": 0.5}, {"is_causal": True, "scale": 0.5}, {}):
                    results += [F.scaled_dot_product_attention(q, k, v, **options) for _ in range(2)]
                turned = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (q, k, v)]
                results += [F.scaled_dot_product_attention(*turned), F.scaled_dot_product_attention(q.half(), k.half(), v.half())]
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    results += [F.scaled_dot_product_attention(q.float(), k.float(), v.float()) for _ in range(2)]
                needs = q.clone().requires_grad_()
                for _ in range(2):
                    y = F.scaled_dot_product_attention(needs, k, v)
                    results += [y.detach(), *torch.autograd.grad(y.float().sum(), [needs])]
                results.append(F.scaled_dot_product_attention(q, k, v, torch.ones(12, 12, dtype=torch.bool)))
            return results, {}

        self.assertLess(self.check(run), 12)

    def test_types(self):
        """Under autocast what has to be converted is looked at each time, whichever operand it is."""
        q, k, v = (make(1, 2, 12, 32, seed=seed) for seed in range(3))
        wide = q.float(), k.float(), v.float()

        def run():
            results = []
            with fp8.torch.use_attention(format="e4m3"):
                for tensors in (q, wide[1], v), (q, k, wide[2]), (wide[0], k, v):
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        results += [F.scaled_dot_product_attention(*tensors) for _ in range(2)]
                    with self.assertRaises(RuntimeError):
                        F.scaled_dot_product_attention(*tensors)
            return results, {}

        self.check(run)

    def test_threads(self):
        """One that adds a function while another does has another number."""
        functions, given = attention_ready.Functions(), []
        function = types.SimpleNamespace(runs_on_gpu=True, prepare=lambda calls, kind, *others: given.append(kind))

        class Key:
            def __hash__(self):
                # Here the other thread has its turn.
                functions.add("another", function, [])
                return 1

        functions.add(Key(), function, [])
        self.assertEqual(len(set(given)), 2)

    def test_results_are_the_callers(self):
        q, k, v = (make(1, 12, 2, 32, seed=seed).transpose(1, 2).requires_grad_() for seed in range(3))
        with fp8.torch.use_attention():
            for _ in range(2):
                y = F.scaled_dot_product_attention(q, k, v)
                y.mul_(2)  # As PyTorch's may be.
                with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
                    y.sum().backward()

    def test_copies(self):
        model = fp8.torch.convert_to_fp8_training(Block(), DPA, first_last_bf16=0, filter=lambda name, _: name == "")
        x = make(1, 24, 64)
        model(x)
        expected = model(x)
        saved = copy.deepcopy(model.state_dict())
        self.assertTrue(torch.equal(copy.deepcopy(model)(x), expected))
        for _ in range(2):
            model(8 * x).float().sum().backward()
        self.assertFalse(torch.equal(model(x), expected))
        model.load_state_dict(saved)
        for _ in range(2):
            self.assertTrue(torch.equal(model(x), expected))

    def test_few_functions(self):
        """A step of attention alone calls 208 functions of Python, of which PyTorch's bf16 layers are a part, and 414 where each
        call is looked at."""
        model = fp8.torch.convert_to_fp8_training(Block(), DPA, first_last_bf16=0, filter=lambda name, _: name == "")
        x, counts = make(1, 24, 64).requires_grad_(), [0]

        def count(frame, event, argument):
            counts[0] += event == "call"

        with emulate(), torch.autograd.set_multithreading_enabled(False):
            for _ in range(4):
                model(x).sum().backward()
            sys.setprofile(count)
            try:
                model(x).sum().backward()
            finally:
                sys.setprofile(None)
        self.assertLess(counts[0], 260)


if __name__ == "__main__":
    unittest.main()
