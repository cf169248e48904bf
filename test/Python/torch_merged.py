# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Quantized layers of the same activations become one product in graphs, with the same bits; others
do not."""

import copy
import io
import unittest
from unittest import mock

import torch
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

import fp8.torch
from fp8.torch import merged_linears, quantized_linear

graphs = []


def merge(module, inputs):
    merged_linears.merge(module.graph)
    module.graph.lint()
    module.recompile()
    graphs.append(module.graph)
    return make_boxed_func(module.forward)


def count(graph, name):
    return sum(str(node.target).startswith(f"fp8.{name}.") for node in graph.nodes)


class Attention(nn.Module):
    """Q, K and V of different sizes, and a K that is not read from the same where `cross`."""

    def __init__(self, bias, cross=False, sizes=(128, 64, 64), k=64):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(k, size, bias=bias) for size in sizes)
        self.out = nn.Linear(sizes[0], k, bias=bias)
        self.cross = cross

    def forward(self, x, y):
        q, k, v = self.q(x), self.k(y if self.cross else x), self.v(x)
        scores = q.unflatten(-1, (2, -1)).sum(-2)[..., :1] * k.sum(-1, keepdim=True)
        return self.out(q * scores.sigmoid()) + v.relu().mean()


class Merged(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.compiler.reset()
        self.enterContext(torch.inference_mode())
        graphs.clear()

    def make(self, recipe="rowwise", bias=False, dtype=torch.bfloat16, **others):
        model = Attention(bias, **others).to(dtype)
        return fp8.torch.quantize_for_inference(model, recipe)

    def check(self, model, products, merged, rows=(2, 5), k=64):
        x, y = torch.randn(2, *rows, k, dtype=torch.bfloat16).unbind()
        dtype = model.v.bias.dtype if model.v.bias is not None else torch.bfloat16
        x, y = x.to(dtype), y.to(dtype)
        expected = model(x, y)
        compiled = torch.compile(model, backend=aot_autograd(fw_compiler=merge))
        result = compiled(x, y)
        self.assertTrue(torch.equal(result, expected))
        self.assertEqual([count(graphs[-1], "quantized_linear"),
                          count(graphs[-1], "merged_linears")], [products, merged])

    def test_same_activations(self):
        for bias in False, True:
            with self.subTest(bias=bias):
                self.check(self.make(bias=bias), 1, 1)

    def test_one_call(self):
        model = self.make()
        with mock.patch.object(quantized_linear, "compute", wraps=quantized_linear.compute) as call:
            merged_linears.compute(torch.randn(3, 64, dtype=torch.bfloat16),
                                   [tensor for layer in (model.q, model.k, model.v)
                                    for tensor in layer.get_tensors()], [], 3,
                                   str(model.q.scheme))
        self.assertEqual(call.call_count, 1)

    def test_other_order(self):
        for bias in False, True:
            model = self.make(bias=bias)
            layers = model.v, model.q, model.k
            x = torch.randn(3, 64, dtype=torch.bfloat16)
            expected = torch.cat([layer(x) for layer in layers], -1)
            with mock.patch.object(quantized_linear, "compute",
                                   wraps=quantized_linear.compute) as call:
                y = merged_linears.compute(x, [tensor for layer in layers
                                               for tensor in layer.get_tensors()],
                                           [layer.bias for layer in layers] if bias else [], 3,
                                           str(model.q.scheme))
            self.assertEqual(call.call_count, 1)
            self.assertTrue(torch.equal(y, expected))

    def test_other_activations(self):
        self.check(self.make(cross=True), 2, 1)

    def test_blocks(self):
        self.check(self.make("block", sizes=(512, 512, 64), k=128), 1, 1, k=128)
        # Blocks of the second would not begin with it; the last one's K is of no whole blocks.
        self.check(self.make("block", sizes=(192, 512, 64), k=128), 3, 0, k=128)

    def test_scale_of_a_tensor(self):
        self.check(self.make("current"), 4, 0)

    def test_microscaling(self):
        self.check(self.make("mxfp8"), 1, 1)

    def test_no_rows(self):
        self.check(self.make(), 1, 1, rows=(0, 5))

    def test_moved(self):
        # As .to() of another device does; then the bias of another type.
        model = self.make(bias=True)
        for change in (lambda: model._apply(torch.clone), model.float):
            change()
            for name in ("weight", "weight_scale", "bias"):
                values = [getattr(layer, name) for layer in (model.q, model.k, model.v)]
                self.assertIsNotNone(merged_linears.join(values), name)
            self.check(model, 1, 1)

    def test_sequence(self):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64)))
        self.assertIsNone(model[0]._row)

    def test_replaced(self):
        # As merging an adapter does.
        model = self.make()
        model.k.set_weight(torch.randn(64, 64))
        self.assertIsNotNone(merged_linears.join([layer.weight for layer in model.q._row.layers]))
        self.check(model, 1, 1)

    def test_apart(self):
        model = self.make()
        model.k.weight = nn.Parameter(model.k.weight.view(torch.uint8).clone().view(
            torch.float8_e4m3fn), requires_grad=False)
        model.k._forget()
        self.check(model, 1, 1)

    def test_neighbours_of_other_memory(self):
        whole = torch.arange(8.0)
        self.assertIsNotNone(merged_linears.join([whole[:3], whole[3:]]))
        self.assertIsNone(merged_linears.join([whole[:3], whole[4:]]))
        self.assertIsNone(merged_linears.join([whole[:4], whole[4:].clone()]))

    def test_state(self):
        model = self.make()
        file = io.BytesIO()
        torch.save(model.state_dict(), file)
        file.seek(0)
        other = self.make()
        other.load_state_dict(torch.load(file))
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        self.assertTrue(torch.equal(other(x, x), model(x, x)))
        self.assertTrue(torch.equal(copy.deepcopy(model)(x, x), model(x, x)))

    def test_copies(self):
        """Copies lie beside each other as the layers do, each in memory of its own."""
        model, x = self.make(bias=True), torch.randn(3, 64, dtype=torch.bfloat16)
        model.k._ready = iter(())  # As calls on a GPU keep one, which nothing can copy.
        model.k._ready_for = "these"
        file = io.BytesIO()
        copies = [copy.deepcopy(model)]
        torch.save(model, file)
        file.seek(0)
        copies += [torch.load(file, weights_only=False), copy.deepcopy(copies[0])]
        model.k._ready = model.k._ready_for = None
        for other in copies:
            layers = other.q, other.k, other.v
            self.assertIsNone(other.k._ready)
            self.assertIs(layers[0]._row, layers[2]._row)
            self.assertEqual(layers[0]._row.layers, layers)
            for name in ("weight", "weight_scale", "bias"):
                values = [getattr(layer, name) for layer in layers]
                joined = merged_linears.join(values)
                self.assertIsNotNone(joined, name)
                self.assertEqual(joined.untyped_storage().nbytes(), joined.nbytes)
                self.assertNotEqual(joined.data_ptr(), getattr(model.q, name).data_ptr())
            self.assertTrue(torch.equal(other(x, x), model(x, x)))

    def test_inductor(self):
        merged_linears.install()
        config = torch._inductor.config
        self.assertIsInstance(config.post_grad_custom_pre_pass, merged_linears._Pass)
        merged_linears.install()
        self.assertIsNone(config.post_grad_custom_pre_pass.other)
        self.assertTrue(config.post_grad_custom_pre_pass.uuid())
        model = self.make()
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        # The pass is not called for what Inductor has in its cache.
        with mock.patch.object(quantized_linear, "compute",
                               wraps=quantized_linear.compute) as call:
            result = torch.compile(model)(x, x)
        self.assertEqual([arguments[0][1][0].shape[0] for arguments in call.call_args_list],
                         [256])
        torch.testing.assert_close(result, model(x, x), rtol=2e-2, atol=2e-2)

    def test_other_pass(self):
        calls = []
        made = merged_linears._Pass(calls.append)
        made(torch.fx.Graph())
        self.assertEqual(len(calls), 1)
        # What nobody can name is in no cache.
        self.assertIsNone(made.uuid())


if __name__ == "__main__":
    unittest.main()
