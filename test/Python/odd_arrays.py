# RUN: %python %s NumPy
# RUN: %if python-pytorch %{ %import_python %s PyTorch Layers %}
# RUN: %if python-jax %{ %import_python %s JAX %}
"""Arrays that are more than their memory, or less: taken for what they stand for, or refused."""

import os
import sys
import unittest
import warnings
from pathlib import Path

import numpy as np

# Two devices of the host, for arrays that are on both.
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402


def compile(source, recipe=None):
    return fp8.compile(source, recipe, target="cpu", cache=False)


def make_product(rows=8, inner=32, columns=16):
    return compile(f"""
func.func @product(%x: tensor<{rows}x{inner}xf32> {{fp8.name = "x"}},
                   %w: tensor<{inner}x{columns}xf32> {{fp8.name = "w", fp8.weight}})
    -> tensor<{rows}x{columns}xf32> {{
  %zero = arith.constant dense<0.0> : tensor<{rows}x{columns}xf32>
  %y = linalg.matmul ins(%x, %w : tensor<{rows}x{inner}xf32>, tensor<{inner}x{columns}xf32>)
                     outs(%zero : tensor<{rows}x{columns}xf32>) -> tensor<{rows}x{columns}xf32>
  return %y : tensor<{rows}x{columns}xf32>
}}""")


class Case(unittest.TestCase):
    def check(self, call, cases):
        """Each is refused by `call` with one line that has the message."""
        for message, make in cases:
            with self.subTest(message), self.assertRaisesRegex(fp8.ArgumentError, message) as e:
                call(make())
            self.assertNotIn("\n", str(e.exception))
            self.assertLess(len(str(e.exception)), 500)


class Foreign:
    """An array by __dlpack__ or NumPy's protocol, each as a test sets it."""

    def __init__(self, device=(1, 0), capsule=5):
        self._device, self._capsule = device, capsule

    def __dlpack_device__(self):
        return self._device

    def __dlpack__(self, **_):
        if isinstance(self._capsule, BaseException):
            raise self._capsule
        return self._capsule


class Struct:
    __array_interface__ = {}

    def __init__(self, struct):
        self._struct = struct

    @property
    def __array_struct__(self):
        if isinstance(self._struct, Exception):
            raise self._struct
        return self._struct


class Number:
    def __float__(self):
        raise RuntimeError("no number")

    __int__ = __index__ = __float__


class NumPy(Case):
    def test_refused(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        fields = [("a", "f4"), ("b", "i1")]
        self.check(compile(programs.make_identity("f32")), [
            ("dtype that programs have, but got >f4", lambda: x.astype(">f4")),
            ("dtype that programs have, but got object", lambda: x.astype(object)),
            ("dtype that programs have, but got <U1", lambda: x.astype("U1")),
            ("dtype that programs have, but got .V0", lambda: np.zeros((2, 3), "V0")),
            ("dtype that programs have, but got datetime64", lambda: np.zeros((2, 3), "M8[s]")),
            ("dtype that programs have, but got complex64", lambda: x.astype(np.complex64)),
            ("dtype that programs have, but got .*'b', 'i1'", lambda: np.zeros((2, 3), fields)),
            ("F32, but got F128", lambda: x.astype(np.longdouble)),
            ("F32, but got U16", lambda: x.astype(np.uint16)),
            ("a stride of 15 bytes", lambda: np.zeros((2, 3), fields)["a"]),
            ("stride 3 in dimension 0, but got -3", lambda: x[::-1]),
            ("stride 1 in dimension 1, but got -1", lambda: x[:, ::-1]),
            ("stride 3 in dimension 0, but got 0", lambda: np.broadcast_to(x[:1], (2, 3))),
            ("aligned to 4 bytes", lambda: np.frombuffer(bytes(25), np.float32, 6, 1).reshape(2, 3)),
            ("no masked elements, but got some", lambda: np.ma.masked_array(x, x > 2)),
            ("an array, but got list", x.tolist),
            ("an array, but got memoryview", lambda: memoryview(x)),
            ("an array, but got NoneType", lambda: None)])

    def test_foreign_protocols(self):
        self.check(compile(programs.make_identity("f32")), [
            ("hand out, but got: .*no pair of ints", lambda: Foreign(device="xx")),
            ("hand out, but got: .*invalid PyCapsule", Foreign),
            ("hand out, but got: .*no attribute '__dlpack_device__'",
             lambda: type("Half", (), {"__dlpack__": 5})()),
            ("hand out, but got: division", lambda: Struct(ZeroDivisionError("division"))),
            ("hand out, but got: an __array_struct__ that is no capsule", lambda: Struct(5))])
        with self.assertRaises(KeyboardInterrupt):
            compile(programs.make_identity("f32"))(Foreign(capsule=KeyboardInterrupt()))

    def test_taken(self):
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        program = compile(programs.make_identity("f32"))
        read_only = x.copy()
        read_only.setflags(write=False)
        for array in (read_only, np.ma.masked_array(x), x.view(np.memmap)):
            self.assertEqual(np.asarray(program(array)).tolist(), x.tolist())

    def test_what_a_program_writes_to_is_writable(self):
        program = compile("func.func @f(%x: memref<3xf32>, %y: tensor<3xf32>) {\n"
                          "  %zero = arith.constant 0.0 : f32\n"
                          "  linalg.fill ins(%zero : f32) outs(%x : memref<3xf32>)\n"
                          "  return\n}")
        x = np.ones(3, np.float32)
        x.setflags(write=False)
        with self.assertRaisesRegex(fp8.ArgumentError, "'arg0' of 'f' to be writable"):
            program(x, x)
        self.assertEqual(x.tolist(), [1, 1, 1])
        y = np.ones(3, np.float32)
        program(y, x)
        self.assertEqual(y.tolist(), [0, 0, 0])

    def test_numbers(self):
        scalars = {kind: compile(f"func.func @f(%x: {kind}) -> {kind} {{ return %x : {kind} }}")
                   for kind in ("f32", "i32")}
        for value in (Number(), 10 ** 5000, 1j, "1", b"1", None, [1]):
            for kind, program in scalars.items():
                with self.subTest(kind, value=type(value)):
                    self.check(program, [("expected argument 'arg0' of 'f' to be", lambda: value)])

    def test_streams(self):
        program = compile("func.func @f() { return }")
        for stream in ("s", -1, 2 ** 64, 1.5, True, object(), b"1"):
            with self.subTest(stream):
                self.check(lambda value: program(stream=value), [
                    (r"a stream of CUDA as an int from 0 to 2\^64 - 1, but got", lambda: stream)])
        program(stream=np.int64(0))


class PyTorch(Case):
    @classmethod
    def setUpClass(cls):
        global torch
        import torch
        warnings.simplefilter("ignore")
        cls.x = torch.randn(8, 32, generator=torch.Generator().manual_seed(1))
        cls.w = torch.ones(32, 16)
        cls.program = make_product()

    def test_negative_bit(self):
        x = self.x
        self.check(lambda value: self.program(value, self.w), [
            ("'x' of 'product' to have its values in memory, but got a tensor with the negative bit",
             lambda: torch._neg_view(x)),
            ("negative bit", lambda: torch.complex(x, x).conj().imag)])
        y = self.program(torch._neg_view(x).resolve_neg(), self.w)
        self.assertTrue(torch.equal(y, -self.program(x, self.w)))
        with self.assertRaisesRegex(fp8.ArgumentError, "negative bit"):
            fp8.quantize(torch._neg_view(x))

    def test_misaligned(self):
        """What begins between two elements is copied: torch.compile hands out such views on a GPU, where 16
        bytes are asked for."""
        memory = bytearray(4 * self.x.numel() + 1)
        x = torch.frombuffer(memory, dtype=torch.float32, offset=1).view(8, 32)
        x.copy_(self.x)
        self.assertNotEqual(x.data_ptr() % 4, 0)
        self.assertTrue(torch.equal(self.program(x, self.w), self.program(self.x, self.w)))
        x.requires_grad_()
        self.assertFalse(self.program(x.detach(), self.w).requires_grad)

    def test_refused(self):
        from torch._subclasses import FakeTensorMode
        from torch.autograd import forward_ad
        from torch.testing._internal.two_tensor import TwoTensor
        x = self.x
        with FakeTensorMode():
            fake = torch.zeros(8, 32)
        freed = x.clone()
        freed.untyped_storage().resize_(0)
        with forward_ad.dual_level():
            self.check(lambda value: self.program(value, self.w), [
                ("to have no tangent", lambda: forward_ad.make_dual(x, x)),
                ("out, but got: a tensor of the layout torch.sparse_coo", x.to_sparse),
                ("out, but got: a tensor of the layout torch.sparse_csr", x.to_sparse_csr),
                ("out, but got: a tensor of the layout torch._mkldnn", x.to_mkldnn),
                ("out, but got: a tensor on meta", lambda: x.to("meta")),
                ("out, but got: a nested tensor", lambda: torch.nested.nested_tensor([x[0], x[1]])),
                ("out, but got: a nested tensor", lambda: torch.nested.nested_tensor(
                    [x[0], x[1]], layout=torch.jagged)),
                ("out, but got: a FakeTensor, which has no memory", lambda: fake),
                ("out, but got: a TwoTensor, which has no memory", lambda: TwoTensor(x, x)),
                ("out, but got: a tensor of zeros", lambda: torch._efficientzerotensor((8, 32))),
                ("out, but got: a tensor without memory", lambda: freed),
                ("out, but got: QUInt", lambda: torch.quantize_per_tensor(x, 1.0, 0, torch.quint8)),
                ("F32, but got C64", lambda: torch.complex(x, x).conj()),
                ("F32, but got U16", lambda: x.to(torch.uint16)),
                ("stride 32 in dimension 0, but got 0", lambda: x[:1].expand(8, 32)),
                ("not to require a gradient", lambda: x.clone().requires_grad_())])

    def test_transforms(self):
        def call(transform):
            return transform(lambda value: self.program(value, self.w))

        func, x = torch.func, self.x
        self.check(lambda run: run(), [
            ("within a transform of torch.func", lambda: lambda: call(torch.vmap)(x[None])),
            ("within a transform of torch.func", lambda: lambda: call(func.functionalize)(x)),
            ("not to require a gradient", lambda: lambda: func.grad(
                lambda value: self.program(value, self.w).sum())(x)),
            ("to have no tangent", lambda: lambda: func.jvp(
                lambda value: self.program(value, self.w), (x,), (x,)))])

    def test_taken(self):
        class Named(torch.Tensor):
            pass

        expected = self.program(self.x, self.w)
        for x in (self.x.as_subclass(Named), torch._lazy_clone(self.x), torch.nn.Parameter(
                self.x, requires_grad=False), torch.cat([self.x, self.x])[8:]):
            self.assertTrue(torch.equal(self.program(x, self.w), expected))
        with torch.inference_mode():
            self.assertTrue(torch.equal(self.program(self.x * 1, self.w), expected))

    def test_arrays_of_a_state_dict(self):
        state = fp8.State(compile(programs.LINEAR, "delayed"))
        saved = {name: torch.from_numpy(array) for name, array in state.state_dict().items()}
        amax = saved["amax"]
        self.check(lambda value: state.load_state_dict({**saved, "amax": value}), [
            ("expected 'amax' of a state_dict to name an array of the host", make) for make in (
                lambda: torch._neg_view(amax), amax.to_sparse, lambda: amax.to("meta"),
                lambda: amax.clone().requires_grad_(), amax.bfloat16, object, lambda: "x")])
        state.load_state_dict(saved)


class Layers(Case):
    @classmethod
    def setUpClass(cls):
        PyTorch.setUpClass()
        import fp8.torch
        torch.manual_seed(0)
        cls.x, cls.g = torch.randn(8, 32), torch.randn(8, 16)
        cls.layer = fp8.torch.Linear(32, 16, recipe="current", target="cpu", cache=False)

    def differentiate(self, call, x, g):
        """What a layer returns, and the gradients of its weight and x."""
        x = x.clone().requires_grad_() if not x.is_neg() else x.detach().requires_grad_()
        y = call(x)
        return [y.detach(), *torch.autograd.grad(y, [*self.layer.parameters(), x], g)]

    def test_negative_bit(self):
        calls = {"eager": self.layer, "layer": torch.compile(self.layer, backend="aot_eager")}
        if torch_mlir:
            linear = torch.nn.Linear(32, 16)
            linear.weight, linear.bias = self.layer.weight, self.layer.bias
            calls["backend"] = torch.compile(linear, backend=fp8.torch.Backend(
                "current", target="cpu", cache=False))
        expected = self.differentiate(self.layer, -self.x, -self.g)
        for name, call in calls.items():
            with self.subTest(name):
                got = self.differentiate(call, torch._neg_view(self.x), torch._neg_view(self.g))
                for value, other in zip(got, expected):
                    torch.testing.assert_close(value, other, rtol=1e-5, atol=1e-5)

    def test_negative_parameters(self):
        made = fp8.torch.Linear(32, 16, recipe="current", target="cpu", cache=False)
        made.weight = torch.nn.Parameter(torch._neg_view(self.layer.weight.detach()))
        made.bias = torch.nn.Parameter(torch._neg_view(self.layer.bias.detach()))
        self.assertTrue(torch.equal(made(self.x), -self.layer(self.x)))

    def test_quantized(self):
        import tempfile
        model = fp8.torch.quantize_for_inference(
            torch.nn.Sequential(torch.nn.Linear(32, 16), torch.nn.Linear(16, 16)), "rowwise")
        self.assertTrue(torch.equal(model(torch._neg_view(self.x)), model(-self.x)))
        bias = model[0].bias.clone()
        model[0].bias = torch.nn.Parameter(torch._neg_view(-bias), requires_grad=False)
        with tempfile.TemporaryDirectory() as folder:
            fp8.torch.save_quantized(model, folder)
            import safetensors.torch
            saved = safetensors.torch.load_file(f"{folder}/model.safetensors")
        self.assertTrue(torch.equal(saved["0.bias"], bias))
        self.check(model, [
            ("activations to be a dense tensor, but got a torch.sparse_coo", self.x.to_sparse),
            ("activations to be a tensor, but got ndarray", self.x.numpy)])

    def test_refused(self):
        x = self.x
        self.check(self.layer, [
            ("x to be a dense tensor, but got a torch.sparse_coo one", x.to_sparse),
            ("x to be a dense tensor, but got a nested one",
             lambda: torch.nested.nested_tensor([x, x[:3]])),
            ("x to be a tensor, but got ndarray", x.numpy),
            ("float32, float16 or bfloat16, but got torch.complex64", lambda: torch.complex(x, x)),
            ("the weight on meta, where x is", lambda: x.to("meta"))])
        with self.assertRaisesRegex(fp8.ArgumentError, "within a transform of torch.func"):
            torch.vmap(self.layer)(x[None])
        call = lambda values: torch.func.functional_call(self.layer, values, (x,)).sum()  # noqa: E731
        with self.assertRaisesRegex(fp8.ArgumentError, "the weight to be a tensor, but got one within a transform of torch.func"):
            torch.func.grad(call)(dict(self.layer.named_parameters()))
        y = self.layer(x.clone().requires_grad_())
        with self.assertRaisesRegex(fp8.UnsupportedError, "no second derivative"):
            torch.autograd.grad(y.sum(), self.layer.weight, create_graph=True)

    def test_shapes_alone(self):
        from torch._subclasses import FakeTensorMode
        with FakeTensorMode(allow_non_fake_inputs=True):
            self.assertEqual(self.layer(torch.zeros(8, 32)).shape, (8, 16))
        layer = fp8.torch.Linear(32, 16, device="meta", recipe="current")
        self.assertEqual(layer(self.x.to("meta")).shape, (8, 16))

    def test_saved_states(self):
        layer = fp8.torch.Linear(32, 16, recipe="delayed", target="cpu", cache=False)
        layer(self.x)
        saved = layer.state_dict()
        self.check(lambda value: layer.load_state_dict({**saved, "fp8_state": value}), [
            ("'fp8_state' of a state_dict to be bytes as uint8, but got", make) for make in (
                lambda: torch.zeros(3), lambda: "s", lambda: saved["fp8_state"].to("meta"))])


class JAX(Case):
    @classmethod
    def setUpClass(cls):
        global jax
        import jax

    def test_refused(self):
        x = jax.numpy.ones((2, 3), jax.numpy.float32)
        mesh = jax.sharding.Mesh(np.array(jax.devices()), "d")
        both = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("d"))
        self.check(compile(programs.make_identity("f32")), [
            ("hand out, but got", lambda: jax.device_put(x, both)),
            ("an array, but got PRNGKeyArray", lambda: jax.random.key(0)),
            ("F32, but got C64|hand out", lambda: x.astype(jax.numpy.complex64)),
            ("an array, but got ShapeDtypeStruct", lambda: jax.ShapeDtypeStruct((2, 3), "float32"))])


if __name__ == "__main__":
    from importlib.util import find_spec
    torch_mlir = find_spec("torch_mlir") is not None
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
