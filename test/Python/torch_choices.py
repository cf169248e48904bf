# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Products that are expected to be no faster in FP8 on a GPU."""

import unittest
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from fp8 import imports
from fp8.torch import choices, graphs


def make_graph(*sizes):
    """A graph of products x @ w of (rows, columns, K) in bf16, and its names."""
    def compute(*tensors):
        return tuple(x @ w for x, w in zip(tensors[::2], tensors[1::2]))

    tensors = [torch.empty(shape, dtype=torch.bfloat16, device="meta")
               for rows, columns, depth in sizes for shape in ((rows, depth), (depth, columns))]
    graph = make_fx(compute, tracing_mode="fake")(*tensors).graph
    infos = {node.name: imports.ValueInfo(f"w{i // 2}", is_weight=True)
             for i, node in enumerate(graphs.get_placeholders(graph)) if i % 2}
    return graph, graphs.Names(infos, {})


def find_slower(*sizes, recipe="delayed", is_replayed=True):
    graph, names = make_graph(*sizes)
    products = [node for node in graph.nodes if graphs.get_operation(node) == "mm"]
    found = choices.find_slower(names, recipe, products, is_replayed)
    return [i for i, node in enumerate(products) if node in found], list(found.values())


class Test(unittest.TestCase):
    def test_small_ones_stay(self):
        left, remarks = find_slower((8192, 8192, 2048), (64, 256, 256))
        self.assertEqual(left, [1])
        self.assertEqual((remarks[0].kind, remarks[0].shape),
                         ("high precision", "M=64 N=256 K=256"))
        self.assertRegex(remarks[0].reason, "^expected [0-9]+ us in FP8 with its casts, and ")
        self.assertIn("only_faster=False", remarks[0].suggestion)

    def test_a_slow_host(self):
        sizes = (2048, 2048, 2048)
        self.assertEqual(find_slower(sizes, sizes)[0], [])
        left, remarks = find_slower(sizes, sizes, is_replayed=False)
        self.assertEqual(left, [0, 1])
        self.assertRegex(remarks[0].reason, "^expected the host to be the limit: 95 us for a ")
        wide = (8192, 8192, 2048)
        self.assertEqual(find_slower(wide, wide, sizes, is_replayed=False)[0], [])

    def test_recipes_without_times(self):
        self.assertEqual(find_slower((64, 256, 256), recipe="mxfp8")[0], [])

    def test_unknown_sizes(self):
        graph = make_fx(torch.mm, tracing_mode="symbolic")(
            torch.empty(64, 32, dtype=torch.bfloat16, device="meta"),
            torch.empty(32, 48, dtype=torch.bfloat16, device="meta")).graph
        products = [node for node in graph.nodes if graphs.get_operation(node) == "mm"]
        self.assertEqual(choices.find_slower(graphs.Names({}, {}), "delayed", products), {})


class Expectations(unittest.TestCase):
    """Expectations of a graph as Dynamo gives it."""

    def expect(self, function, *shapes, recipe="delayed", is_replayed=True):
        graph = torch.fx.symbolic_trace(function).graph
        values = {}

        def put(node, value):
            node.meta["example_value"] = values[node] = value

        for node, shape in zip(graphs.get_placeholders(graph), shapes):
            put(node, torch.empty(shape, dtype=torch.bfloat16, device="meta"))
        for node in graph.nodes:
            if node.op == "call_function":
                put(node, node.target(*(values[source] for source in node.args)))
        return choices.expects_faster(graph, recipe, is_replayed)

    def test_sizes(self):
        def compute(x, w):
            return torch.nn.functional.linear(x, w)

        self.assertTrue(self.expect(compute, (4, 2048, 2048), (8192, 2048)))
        self.assertFalse(self.expect(compute, (4, 16, 256), (256, 256)))
        self.assertFalse(self.expect(compute, (4, 512, 2048), (2048, 2048), is_replayed=False))
        self.assertTrue(self.expect(compute, (4, 16, 256), (256, 256), recipe="mxfp8"))

    def test_a_product_of_vectors(self):
        self.assertFalse(self.expect(lambda x, y: x @ y, (64,), (64,)))


if __name__ == "__main__":
    unittest.main()
