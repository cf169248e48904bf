# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Operations of Inductor's graphs, also of a GPU that is not there, as linalg."""

import contextlib
import os
import tempfile
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from fp8 import imports
from fp8.torch import importer

aten = torch.ops.aten


def convert(function, *shapes, dtype=torch.float32, device="cuda"):
    with FakeTensorMode():
        values = [torch.empty(shape, dtype=dtype, device=device) for shape in shapes]
        module = make_fx(function)(*values)
        return importer.convert(module, [imports.ValueInfo(None)] * len(values), {})


@contextlib.contextmanager
def standard_error():
    """What is written to file descriptor 2, by whomever."""
    said, kept = [], os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            said.append(file.read().decode())


class Import(unittest.TestCase):
    def test_constants_of_a_gpu(self):
        options = {"dtype": torch.float32, "device": torch.device("cuda"), "pin_memory": False}
        for make in (lambda x: x + aten.full.default([], 0.5, **options),
                     lambda x: x + aten.full.default([4, 8], 0.5, **options),
                     lambda x: x + aten.ones.default([4, 8], **options),
                     lambda x: x + aten.scalar_tensor.default(0.5, **options),
                     lambda x: aten.reciprocal.default(x)):
            self.assertIn("linalg", convert(make, (4, 8)))

    def test_a_variance_is_of_f32(self):
        def normalize(x):
            var, mean = aten.var_mean.correction(x, [1], correction=0, keepdim=True)
            return (x - mean) * aten.rsqrt.default(var + 1e-5), aten.var.correction(x, [0])

        # Constants may be wider than what is computed with them.
        self.assertNotIn("xf64>", convert(normalize, (4, 8)))

    def test_variances(self):
        """Every form that PyTorch has, of numbers."""
        x = torch.randn(5, 6, 7)
        for dims in (None, [0], [1, 2], [-1]):
            for correction in (None, 0, 2):
                for keepdim in (False, True):
                    got = importer._var_mean(x, dims, correction=correction, keepdim=keepdim)
                    expected = aten.var_mean.correction(x, dims, correction=correction,
                                                        keepdim=keepdim)
                    for value, other in zip(got, expected):
                        torch.testing.assert_close(value, other)

    def test_what_cannot_be_imported_is_an_error_and_says_nothing(self):
        with standard_error() as said:
            with self.assertRaises(imports.UnsupportedProgram):
                convert(lambda x: aten.cumsum.default(x, 1), (4, 8))
            with self.assertRaises(imports.UnsupportedProgram):
                convert(lambda x: x + aten.empty_strided.default([4, 8], [8, 1], device=x.device),
                        (4, 8))
        self.assertEqual(said, [""])


if __name__ == "__main__":
    unittest.main()
