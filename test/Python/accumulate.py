# RUN: env FP8_CUDA_DRIVER=emulator %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=100 %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=120 %python %s
"""Programs for a CPU with a tensor core's sums, beside the kernels of an H200, of a B200, of Ada and of an
RTX 5090, on the emulator: the same bytes."""

import os
import unittest

import fp8
import ml_dtypes
import numpy as np

TARGET = {"89": "sm_89", "100": "sm_100a", "120": "sm_120a"}.get(os.environ.get("FP8_EMULATOR_ARCH"), "sm_90a")
RECIPES = ["none", "current", "current,accumulate=fast", "rowwise", "block", "block,pow2=false",
           "mxfp8", "mxfp8,weight_2d=true", "nvfp4", "nvfp4,weight_2d=true"]

PRODUCT = """
  %{r} = linalg.{op} ins(%{a}, %{b} : tensor<{at}>, tensor<{bt}>) outs(%{r}z : tensor<{rt}xf32>)
      -> tensor<{rt}xf32>
"""


def zeros(name, extents, dims=""):
    kind = f"tensor<{extents}xf32>"
    return (f"  %{name}e = tensor.empty({dims}) : {kind}\n"
            f"  %{name}z = linalg.fill ins(%c0f : f32) outs(%{name}e : {kind}) -> {kind}\n")


def product(name, a, at, b, bt, rt, op="matmul", dims=""):
    return zeros(name, rt, dims) + PRODUCT.format(r=name, op=op, a=a, at=at, b=b, bt=bt, rt=rt)


def function(arguments, body, results):
    """All in f32 before the results are rounded, to show every bit."""
    declared = ", ".join(f'%{name}: tensor<{kind}> {{fp8.name = "{name}"{extra}}}'
                         for name, kind, extra in arguments)
    types = ", ".join(f"tensor<{kind}>" for _, kind in results)
    return (f"func.func @main({declared}) -> ({types}) {{\n"
            f"  %c0f = arith.constant 0.0 : f32\n{body}"
            f"  return {', '.join('%' + name for name, _ in results)} : {types}\n}}\n")


def linear(m, k, n, element="bf16", rows=None):
    dims = "" if rows is None else "%rows"
    take = "" if rows is None else (f"  %c0 = arith.constant 0 : index\n"
                                    f"  %rows = tensor.dim %x, %c0 : tensor<?x{k}x{element}>\n")
    m = m if rows is None else "?"
    body = take + product("y", "x", f"{m}x{k}x{element}", "w", f"{k}x{n}x{element}", f"{m}x{n}",
                          dims=dims)
    return function([("x", f"{m}x{k}x{element}", ""), ("w", f"{k}x{n}x{element}", ", fp8.weight")],
                    body, [("y", f"{m}x{n}xf32")])


def draw(*shape, dtype=ml_dtypes.bfloat16):
    """Numbers of several binades, so that sums lose bits at every step."""
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * np.exp2(rng.integers(-3, 3, shape))).astype(dtype)


class SameBytes(unittest.TestCase):
    def check(self, source, inputs, recipe=None, opt_level=0, **options):
        cpu = fp8.compile(source, recipe, target="cpu", accumulate="tensor-core", accumulation_of=TARGET,
                          cache=False, opt_level=opt_level, **options)
        gpu = fp8.compile(source, recipe, target=TARGET, cache=False, opt_level=0, **options)
        found, expected = cpu(*inputs), gpu(*inputs)
        if not isinstance(found, tuple):
            found, expected = (found,), (expected,)
        for one, other in zip(found, expected):
            one, other = np.asarray(one), np.asarray(other)
            self.assertEqual(one.shape, other.shape)
            differing = int((one.view(np.uint8) != other.view(np.uint8)).sum())
            self.assertEqual(differing, 0, f"{recipe}: {differing} bytes of {one.nbytes} differ")

    def test_recipes(self):
        # Tails in each dimension; few rows and a long K, which kernels cut into parts. All recipes
        # are in FP8 of the second, which LLVM optimizes as far as it does by itself.
        for m, k, n, opt_level in [(72, 272, 136, 0), (72, 384, 136, 3), (8, 2560, 64, 0)]:
            for recipe in RECIPES:
                with self.subTest(recipe=recipe, m=m, k=k, n=n):
                    self.check(linear(m, k, n), [draw(m, k), draw(k, n)], recipe, opt_level)

    def test_blocks_with_a_tail(self):
        self.check(linear(40, 400, 144), [draw(40, 400), draw(400, 144)], "block", max_padding=0.3)

    def test_f16(self):
        self.check(linear(24, 264, 64, "f16"), [draw(24, 264, dtype=np.float16),
                                                draw(264, 64, dtype=np.float16)])

    def test_tf32(self):
        for options in ({"tf32": True}, {}):
            self.check(linear(24, 264, 64, "f32"), [draw(24, 264, dtype=np.float32),
                                                    draw(264, 64, dtype=np.float32)], **options)

    def test_batches(self):
        body = product("y", "x", "3x24x256xbf16", "w", "3x256x48xbf16", "3x24x48", "batch_matmul")
        source = function([("x", "3x24x256xbf16", ""), ("w", "3x256x48xbf16", "")], body,
                          [("y", "3x24x48xf32")])
        for recipe in ("none", "current", "block", "mxfp8", "nvfp4"):
            self.check(source, [draw(3, 24, 256), draw(3, 256, 48)], recipe)

    def test_gradients(self):
        """Operands that lie along rows, which tensor cores read as they are or from a copy."""
        body = product("g", "dy", "96x64xbf16", "w", "64x160xbf16", "96x160")
        body += "  %te = tensor.empty() : tensor<64x96xbf16>\n"
        body += ("  %t = linalg.transpose ins(%dy : tensor<96x64xbf16>) "
                 "outs(%te : tensor<64x96xbf16>) permutation = [1, 0]\n")
        body += product("d", "t", "64x96xbf16", "x", "96x160xbf16", "64x160")
        source = function([("dy", "96x64xbf16", ""), ("x", "96x160xbf16", ""),
                           ("w", "64x160xbf16", ", fp8.weight")], body,
                          [("g", "96x160xf32"), ("d", "64x160xf32")])
        for recipe in ("none", "current", "rowwise", "mxfp8", "nvfp4"):
            self.check(source, [draw(96, 64), draw(96, 160), draw(64, 160)], recipe)

    def test_matmuls_of_one_launch(self):
        body = "".join(product(f"y{n}", "x", "16x1024xbf16", f"w{n}", f"1024x{n}xbf16", f"16x{n}")
                       for n in (128, 64, 32))
        source = function([("x", "16x1024xbf16", "")] + [
            (f"w{n}", f"1024x{n}xbf16", ", fp8.weight") for n in (128, 64, 32)], body,
            [(f"y{n}", f"16x{n}xf32") for n in (128, 64, 32)])
        inputs = [draw(16, 1024), *(draw(1024, n) for n in (128, 64, 32))]
        for recipe in ("none", "current", "block"):
            self.check(source, inputs, recipe)

    def test_equal_layers(self):
        """Equal layers are one function on a CPU."""
        body = product("y", "x", "32x256xbf16", "v", "256x256xbf16", "32x256")
        body += product("z", "u", "32x256xbf16", "w", "256x256xbf16", "32x256")
        source = function([("x", "32x256xbf16", ""), ("v", "256x256xbf16", ", fp8.weight"),
                           ("u", "32x256xbf16", ""), ("w", "256x256xbf16", ", fp8.weight")], body,
                          [("y", "32x256xf32"), ("z", "32x256xf32")])
        inputs = [draw(32, 256), draw(256, 256), draw(32, 256)[::-1].copy(),
                  draw(256, 256)[::-1].copy()]
        for recipe in ("none", "current", "block", "mxfp8", "nvfp4"):
            self.check(source, inputs, recipe)

    def test_groups(self):
        """Groups of rows, and of what is summed; they begin anywhere, and the third is empty."""
        offsets = np.array([0, 37, 130, 130, 190], np.int32)
        rows = function([("x", "200x256xbf16", ""), ("w", "4x96x256xbf16", ", fp8.weight"),
                         ("o", "5xi32", "")], """
  %y = fp8.grouped_matmul %x, %w offsets(%o : tensor<5xi32>) accumulate = fast
      : tensor<200x256xbf16>, tensor<4x96x256xbf16> -> tensor<200x96xf32>
""", [("y", "200x96xf32")])
        for recipe in ("none", "current", "rowwise", "block", "mxfp8", "nvfp4"):
            self.check(rows, [draw(200, 256), draw(4, 96, 256), offsets], recipe)
        sums = function([("x", "64x200xbf16", ""), ("w", "96x200xbf16", ""), ("o", "5xi32", "")], """
  %y = fp8.grouped_matmul %x, %w offsets(%o : tensor<5xi32>) accumulate = fast
      : tensor<64x200xbf16>, tensor<96x200xbf16> -> tensor<4x64x96xf32>
""", [("y", "4x64x96xf32")])
        for recipe in ("none", "current", "rowwise", "block", "mxfp8", "nvfp4"):
            self.check(sums, [draw(64, 200), draw(96, 200), offsets], recipe)

    def test_groups_that_begin_in_a_block(self):
        """What is summed has factors that change along it; the kernel's sums are of their blocks."""
        offsets = np.array([0, 37, 130, 130, 390], np.int32)
        for recipe, block, scale in (("block", 128, "f32"), ("mxfp8", 32, "f8E8M0FNU")):
            x, w = (f"!fp8.scaled<{rows}x400xf8E4M3FN, block = [1, {block}], scale = {scale}>" for rows in (64, 96))
            sums = function([("x", "64x400xbf16", ""), ("w", "96x400xbf16", ""), ("o", "5xi32", "")], f"""
  %p = fp8.quantize %x recipe(#fp8.{recipe}) : tensor<64x400xbf16> -> {x}
  %q = fp8.quantize %w recipe(#fp8.{recipe}) : tensor<96x400xbf16> -> {w}
  %y = fp8.grouped_matmul %p, %q offsets(%o : tensor<5xi32>) : {x}, {w} -> tensor<4x64x96xf32>
""", [("y", "4x64x96xf32")])
            with self.subTest(recipe=recipe):
                self.check(sums, [draw(64, 400), draw(96, 400), offsets], "none")

    def test_groups_that_are_masked(self):
        counts = np.array([37, 0, 72, 65], np.int32)
        rows = function([("x", "4x72x256xbf16", ""), ("w", "4x96x256xbf16", ", fp8.weight"),
                         ("c", "4xi32", "")], """
  %y = fp8.grouped_matmul %x, %w counts(%c : tensor<4xi32>) accumulate = fast
      : tensor<4x72x256xbf16>, tensor<4x96x256xbf16> -> tensor<4x72x96xf32>
""", [("y", "4x72x96xf32")])
        for recipe in ("none", "current", "rowwise", "block", "mxfp8", "nvfp4"):
            self.check(rows, [draw(4, 72, 256), draw(4, 96, 256), counts], recipe)
        for k, recipes in ((80, ("none", "current", "rowwise")), (384, ("block", "mxfp8", "nvfp4"))):
            sums = function([("x", f"4x64x{k}xbf16", ""), ("w", f"4x96x{k}xbf16", ""), ("c", "4xi32", "")], f"""
  %y = fp8.grouped_matmul %x, %w counts_k(%c : tensor<4xi32>) accumulate = fast
      : tensor<4x64x{k}xbf16>, tensor<4x96x{k}xbf16> -> tensor<4x64x96xf32>
""", [("y", "4x64x96xf32")])
            most = counts * (1 if k == 80 else 4)
            for recipe in recipes:
                self.check(sums, [draw(4, 64, k), draw(4, 96, k), most], recipe)

    def test_rows_that_show_at_run_time(self):
        for recipe in ("none", "current", "block"):
            self.check(linear(0, 512, 96, rows=200), [draw(200, 512), draw(512, 96)], recipe)

    def test_products_of_epilogues(self):
        """That several read, or whose sign a sum reads: one rounding or two, alike."""
        a, b = (f"!fp8.scaled<{extents}xf8E4M3FN, block = [*, *], scale = f32>"
                for extents in ("24x256", "64x256"))
        codes = [draw(rows, 256, dtype=ml_dtypes.float8_e4m3fn) for rows in (24, 64)]
        factors = [np.full((1, 1), factor, np.float32) for factor in (0.3, 0.7)]
        for body in ("%m = math.absf %acc : f32\n %r = arith.subf %m, %acc : f32",
                     "%n = arith.negf %acc : f32\n %r = arith.addf %n, %o : f32",
                     "%n = arith.negf %acc : f32\n %r = arith.subf %n, %o : f32",
                     "%d = arith.subf %acc, %o : f32\n %f = math.floor %acc : f32\n"
                     " %r = arith.addf %d, %f : f32"):
            source = function([("x", "24x256xf8E4M3FN", ""), ("w", "64x256xf8E4M3FN", ""),
                               ("s", "1x1xf32", ""), ("t", "1x1xf32", ""), ("b", "24x64xf32", "")], f"""
  %p = fp8.assemble %x, %s : tensor<24x256xf8E4M3FN>, tensor<1x1xf32> -> {a}
  %q = fp8.assemble %w, %t : tensor<64x256xf8E4M3FN>, tensor<1x1xf32> -> {b}
  %y = fp8.matmul %p, %q epilogue(%b : tensor<24x64xf32>) {{
  ^bb0(%acc: f32, %o: f32):
    {body}
    fp8.yield %r : f32
  }} : {a}, {b} -> tensor<24x64xf32>
""", [("y", "24x64xf32")])
            with self.subTest(body=body):
                self.check(source, [*codes, *factors, draw(24, 64, dtype=np.float32)], "none")

    def test_infinities_and_nans(self):
        x, w = draw(24, 256), draw(256, 64)
        x[3, 5], x[4, 7], w[9, 2] = np.inf, np.nan, -np.inf
        self.check(linear(24, 256, 64), [x, w])


class Mistakes(unittest.TestCase):
    def test_another_word(self):
        with self.assertRaisesRegex(fp8.Error, "expected accumulate to be f32 or tensor-core, but "
                                               "got 'exact'"):
            fp8.compile(linear(8, 16, 16), target="cpu", accumulate="exact", cache=False)


if __name__ == "__main__":
    unittest.main()
