# RUN: %if python-pytorch %{ %import_python %s PyTorch %}
# RUN: %if python-jax %{ %import_python %s JAX %}
# RUN: %python %s Lazily
"""Arrays of PyTorch and JAX on the CPU; and that the package needs neither."""

import gc
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
          "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E8M0FNU": "float8_e8m0fnu",
          "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "i1": "bool"}


def compile(source, recipe=None):
    return fp8.compile(source, recipe, target="cpu", cache=False)


class PyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global torch
        import torch
        cls.program = compile(programs.LINEAR, "current")
        cls.expected = cls.program(*programs.make_inputs())
        cls.x, cls.w = (torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
                        for a in programs.make_inputs())

    def test_results_are_the_same(self):
        y = self.program(self.x, self.w)
        self.assertIs(type(y), torch.Tensor)
        self.assertEqual(y.numpy().tobytes(), self.expected.tobytes())

    def test_dtypes(self):
        for mlir, name in DTYPES.items():
            with self.subTest(mlir):
                x = torch.arange(6).reshape(2, 3).to(getattr(torch, name))
                y = compile(programs.make_identity(mlir))(x)
                self.assertEqual((y.dtype, y.shape), (x.dtype, x.shape))
                self.assertTrue(torch.equal(y.view(torch.uint8), x.view(torch.uint8)))

    def test_without_torch_mlir(self):
        """The backend says what it takes, and what takes less."""
        code = ("import sys, torch, fp8.torch; sys.modules['torch_mlir'] = None; layer = torch.nn.Linear(64, 64); "
                "torch.compile(layer, backend='fp8', options={'recipe': 'current', 'target': 'cpu'})(torch.ones(32, 64))")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertRegex(done.stderr, "UnsupportedError: expected the package torch-mlir, .*pip install torch-mlir.*convert_to_fp8_training")

    def test_codes_that_share_bytes(self):
        program = compile(programs.make_identity("f4E2M1FN", "2x6"))
        bytes_ = torch.arange(6, dtype=torch.uint8).reshape(2, 3) * 41
        for x in (bytes_, bytes_.view(torch.float4_e2m1fn_x2)):
            y = program(x)
            self.assertEqual((y.dtype, y.shape), (torch.float4_e2m1fn_x2, (2, 3)))
            self.assertTrue(torch.equal(y.view(torch.uint8), bytes_))
        q = fp8.quantize(torch.ones(2, 20), "e2m1", (1, 16), "e4m3")
        self.assertEqual((q.codes.dtype, q.codes.shape), (torch.float4_e2m1fn_x2, (2, 10)))
        self.assertEqual(fp8.dequantize(q).tolist(), [[1] * 20] * 2)

    def test_no_copies(self):
        # A program that writes to its argument.
        program = compile("func.func @f(%x: memref<3xf32>) {\n"
                          "  %zero = arith.constant 0.0 : f32\n"
                          "  linalg.fill ins(%zero : f32) outs(%x : memref<3xf32>)\n"
                          "  return\n}")
        x = torch.ones(3)
        program(x)
        self.assertEqual(x.tolist(), [0, 0, 0])

    def test_results_outlive_programs(self):
        program = compile(programs.make_identity("f32"))
        y = program(torch.ones(2, 3))[1]
        del program
        gc.collect()
        y += 1
        self.assertEqual(y.tolist(), [2, 2, 2])

    def test_gradients(self):
        parameter = torch.nn.Parameter(self.w)
        with self.assertRaisesRegex(fp8.ArgumentError, "'w' of 'linear' not to require a gradient"):
            self.program(self.x, parameter)
        with torch.no_grad():
            y = self.program(self.x, parameter)
        self.assertFalse(y.requires_grad)
        self.assertTrue(torch.equal(self.program(self.x, parameter.detach()), y))

    def test_refused(self):
        for message, x in [("row-major order", self.x.T.contiguous().T), ("BF16, but got F32",
                                                                          self.x.float()),
                           ("rank 2, but got 3", self.x[None]),
                           ("DLPack can hand out, but got", self.x.to("meta")),
                           ("DLPack can hand out, but got", self.x.to_sparse())]:
            with self.subTest(message), self.assertRaisesRegex(fp8.ArgumentError, message) as e:
                self.program(x, self.w)
            self.assertNotIn("\n", str(e.exception))
        self.assertEqual(self.program(self.x, self.w).numpy().tobytes(), self.expected.tobytes())

    def test_scalars_and_mixtures(self):
        both = compile(programs.SEVERAL).both
        x, t = both(torch.ones(4), 1.5)
        self.assertEqual((type(t), t.item()), (torch.Tensor, 3))
        x, t = both(np.ones(4, np.float32), torch.tensor(1.5))
        self.assertEqual((type(x), t.item()), (np.ndarray, 3))

    def test_states_in_checkpoints(self):
        program = compile(programs.LINEAR, fp8.DelayedScaling(amax_history_len=4))
        state = fp8.State(program)
        program(self.x, self.w, state=state)
        state.end_step()
        tensors = {name: torch.from_numpy(array) for name, array in state.state_dict().items()}
        other = fp8.State(program)
        other.load_state_dict(tensors)
        self.assertEqual(other.slots, state.slots)

    def test_casts(self):
        x = torch.randn(4, 40)
        q = fp8.quantize(x, "e4m3", (1, 16))
        self.assertEqual((q.codes.dtype, q.scale_inv.shape), (torch.float8_e4m3fn, (4, 3)))
        expected = fp8.dequantize(fp8.quantize(x.numpy(), "e4m3", (1, 16)))
        self.assertEqual(fp8.dequantize(q).tolist(), expected.tolist())


class JAX(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        global jax, jnp
        import jax
        import jax.numpy as jnp
        jax.config.update("jax_enable_x64", True)
        cls.program = compile(programs.LINEAR, "current")
        cls.inputs = [jnp.asarray(a) for a in programs.make_inputs()]

    def test_results_are_the_same(self):
        y = self.program(*self.inputs)
        self.assertIsInstance(y, jax.Array)
        self.assertEqual(np.asarray(y).tobytes(),
                         self.program(*programs.make_inputs()).tobytes())

    def test_dtypes(self):
        for mlir, name in DTYPES.items():
            with self.subTest(mlir):
                x = jnp.arange(6).reshape(2, 3).astype(getattr(jnp, name.replace("bool", "bool_")))
                y = compile(programs.make_identity(mlir))(x)
                self.assertEqual((y.dtype, y.shape), (x.dtype, x.shape))
                self.assertEqual(np.asarray(y).tobytes(), np.asarray(x).tobytes())

    def test_results_outlive_programs(self):
        program = compile(programs.make_identity("f32"))
        y = program(jnp.ones((2, 3)).astype(jnp.float32))
        del program
        gc.collect()
        self.assertEqual((y + 1).tolist(), [[2] * 3] * 2)

    def test_results_in_another_order(self):
        q = fp8.quantize(jnp.ones((2, 20), jnp.float32), "e2m1", (1, 16))
        self.assertEqual(fp8.dequantize(q).tolist(), [[1] * 20] * 2)

    def test_refused(self):
        x, w = self.inputs
        with self.assertRaisesRegex(fp8.ArgumentError, "'x' of 'linear' to be BF16, but got F32"):
            self.program(x.astype(jnp.float32), w)
        deleted = jnp.ones((32, 256), jnp.bfloat16)
        deleted.delete()
        with self.assertRaisesRegex(fp8.ArgumentError, "'x' of 'linear' to be an array that"):
            self.program(deleted, w)
        with self.assertRaises(fp8.ArgumentError):
            jax.jit(lambda x: self.program(x, w))(x)


class Lazily(unittest.TestCase):
    def test_what_is_imported(self):
        code = """
import sys, fp8
assert "fp8._core" not in sys.modules
fp8.DelayedScaling(), fp8.formats.E4M3.max
assert "fp8._core" not in sys.modules
fp8.compile("func.func @f() {return}", target="cpu", cache=False)
assert not {"torch", "jax"} & set(sys.modules), sys.modules
try:
    fp8.complie
except AttributeError as error:
    assert "complie" in str(error)
assert set(fp8.__all__) <= set(dir(fp8))
for name in fp8.__all__:
    getattr(fp8, name)
"""
        subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=sys.argv[1])
