# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=120 %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=121 %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=80 %python %s
"""What Python takes for the target of an Ada GPU, of those between others without kernels of their own, and of Ampere; and
what it runs there."""

import os
import tempfile
import unittest
from unittest import mock

import numpy as np

import fp8
from fp8 import compiler, support

ARCH = int(os.environ["FP8_EMULATOR_ARCH"])
SOURCE = """
func.func @main(%x: tensor<32x256xf32> {fp8.name = "x"}, %w: tensor<256x64xf32> {fp8.name = "w"})
    -> (tensor<32x64xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xf32>, tensor<256x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
"""
BF16 = SOURCE.replace("xf32> {", "xbf16> {").replace("xf32>, tensor<256x64xf32>)", "xbf16>, tensor<256x64xbf16>)").replace(
    "(tensor<32x64xbf16>", "(tensor<32x64xf32>")


class Target(unittest.TestCase):
    def test_of_the_first_gpu(self):
        expected = {80: "sm_80", 89: "sm_89", 120: "sm_120a", 121: "sm_121a"}[ARCH]
        self.assertEqual(fp8.check_support().target, expected)
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 256), (256, 64)))
        for recipe in ("current", "rowwise", "block", "mxfp8"):
            results = []
            for target in ("auto", "cpu"):
                program = fp8.compile(SOURCE, recipe, target=target, cache=False)
                results.append(np.asarray(program(x, w)))
                self.assertEqual(program.target, expected if target == "auto" else "cpu")
            # Codes are the same; sums on a GPU keep 13 bits, or are those of f16.
            np.testing.assert_allclose(*results, rtol=2e-3, atol=2e-2)

    def test_what_is_said(self):
        said = {80: "(compute capability 8.0), sm_80: kernels of its own, timed by nobody; products of codes as f16",
                89: "(compute capability 8.9), sm_89: kernels of its own",
                120: "(compute capability 12.0), sm_120a: kernels of its own",
                121: "(compute capability 12.1), sm_121a: kernels of its own"}
        self.assertIn(said[ARCH], str(fp8.check_support()))
        self.assertIn("; attention: forward and gradient", str(fp8.check_support()))
        self.assertTrue(support.describe((10, 0)).endswith("; attention: forward and gradient"))
        self.assertIn("portable: kernels of sm_89", support.describe((8, 10)))
        self.assertIn("portable: kernels of sm_80", support.describe((8, 6)))
        self.assertIn("nothing: kernels take compute capability 8.0 or later", support.describe((7, 5)))

    def test_before_ampere(self):
        """There the CPU works; what is compiled for a later GPU says what this one is."""
        with mock.patch.object(compiler._core, "get_devices", lambda: [("Tesla T4", (7, 5))]):
            found = fp8.check_support()
            self.assertEqual((found.target, fp8.compile(SOURCE, cache=False).target), ("cpu", "cpu"))
            self.assertIn("Tesla T4 (compute capability 7.5), nothing: kernels take compute capability 8.0 or later; "
                          'target="cpu" works', str(found))
        if ARCH == 80:
            program = fp8.compile(SOURCE, "rowwise", target="portable", cache=False)
            with self.assertRaisesRegex(fp8.UnsupportedError, "expected code for device 0 .*sm_80.* but got PTX .* for sm_89"):
                program(np.ones((32, 256), np.float32), np.ones((256, 64), np.float32))

    def test_speeds(self):
        speeds = support.get_speeds(divmod(ARCH, 10))
        for name, recipes in speeds.items():
            for recipe in (one for one in recipes if one != "static"):  # As delayed; takes a saved state.
                with self.subTest(recipe=recipe):
                    said = " ".join(one.message for one in fp8.compile(
                        BF16 if recipe == "none" else SOURCE, recipe, cache=False).diagnostics)
                    found = "loops" if "no kernel" in said else "bf16" if "multiplied in bf16" in said or recipe == "none" else \
                        "codes" if ARCH >= 89 else "f16"
                    self.assertEqual(found, name, said)

    def test_codes(self):
        """Every number that codes and their halves are near of, NaN and beyond, is the code of a CPU."""
        bits = np.arange(0, 1 << 16, dtype=np.uint32) << 16
        x = np.concatenate([bits, bits + 0x8000, bits + 0x7FFF, bits + 0x8001]).view(np.float32)
        x = np.where(np.abs(x) > 1e30, np.copysign(np.float32(np.inf), x), x).reshape(64, -1)
        for element in ("f8E4M3FN", "f8E5M2"):
            type_ = f"tensor<{x.shape[0]}x{x.shape[1]}x"
            source = (f"func.func @main(%x: {type_}f32>, %s: tensor<1x1xf32>) -> {type_}f32> {{\n  %q = fp8.quantize %x scale(%s, %s : "
                      f"tensor<1x1xf32>, tensor<1x1xf32>) : {type_}f32> -> <{x.shape[0]}x{x.shape[1]}x{element}, block = [*, *], scale = f32>\n"
                      f"  %y = fp8.dequantize %q : !fp8.scaled<{x.shape[0]}x{x.shape[1]}x{element}, block = [*, *], scale = f32>"
                      f" -> {type_}f32>\n  return %y : {type_}f32>\n}}\n")
            one = np.ones((1, 1), np.float32)
            found, expected = (np.asarray(fp8.compile(source, target=target, cache=False)(x, one)) for target in ("auto", "cpu"))
            np.testing.assert_array_equal(found, expected)

    def test_remark(self):
        """Where the GPU is a later one without kernels of its own, whose name this one borrows."""
        for gpu, expected in ((("NVIDIA Later", (10, 3)), 1), (("NVIDIA RTX 5090", (12, 0)), 0)):
            with mock.patch.object(compiler, "_get_first_gpu", lambda gpu=gpu: gpu):
                program = fp8.compile(SOURCE, "current", cache=False)
            remarks = [one.message for one in program.diagnostics if one.message.startswith("portable:")]
            self.assertEqual(len(remarks), expected)

    def test_one_program_for_several_gpus(self):
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 256), (256, 64)))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.so")
            fp8.compile(SOURCE, "rowwise", target=["sm_90a", "portable"], cache=False).save(path)
            program = fp8.load(path)
            self.assertEqual(program.target, "sm_90a,portable")
            if ARCH < 89:
                with self.assertRaisesRegex(fp8.UnsupportedError, "to have compute capability 9.0, or compute capability 8.9 or later"):
                    program(x, w)
                # sm_80's kernels as well, which any later GPU would run if it had none that are nearer.
                fp8.compile(SOURCE, "rowwise", target=["sm_80", "portable"], cache=False, kernel_format="ptx").save(path + ".80")
                program = fp8.load(path + ".80")
            alone = fp8.compile(SOURCE, "rowwise", target="portable" if ARCH >= 89 else "sm_80", cache=False)
            self.assertEqual(alone.target, "sm_89" if ARCH >= 89 else "sm_80")
            np.testing.assert_array_equal(np.asarray(program(x, w)), np.asarray(alone(x, w)))

    def test_kernels_of_a_later_gpu_are_refused(self):
        with self.assertRaisesRegex(fp8.UnsupportedError, "expected code for device 0"):
            fp8.compile(SOURCE, "current", target="sm_90a", cache=False)(
                np.zeros((32, 256), np.float32), np.zeros((256, 64), np.float32))


if __name__ == "__main__":
    unittest.main()
