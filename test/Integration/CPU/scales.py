# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""Compares compiled amax, compute_scale and quantize with Inputs/model.py, bit by bit.

Amaxes are every exponent with the mantissas at which a rule changes, and random
bit patterns. Where no reference says what a corner of NVFP4's two levels gives,
the test pins what fp8.compute_scale documents.
"""

import argparse
import itertools
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import model  # noqa: E402

PASSES = ["--fp8-pipeline=recipe=none target=cpu to=host"]
SCALE_DTYPES = {"f32": np.float32, "f8E8M0FNU": np.uint8, "f8E4M3FN": np.uint8}

# 0x600000 is a significand of 1.75, 0x400000 one of 1.5: the largest of E4M3 and
# E5M2, and of E2M1. 0x780000 and 0x700000 are where EVEN goes up.
MANTISSAS = [0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x5FFFFF, 0x600000, 0x600001, 0x6FFFFF,
             0x700000, 0x700001, 0x77FFFF, 0x780000, 0x780001, 0x7FFFFE, 0x7FFFFF]


def positive_patterns(random, count):
    """f32 amaxes: zero, subnormals, all binades, Inf, NaN of all kinds, and random."""
    edges = (np.arange(256, dtype=np.uint32)[:, None] << np.uint32(23)) | np.array(
        MANTISSAS, np.uint32
    )
    return np.concatenate(
        [edges.ravel(), random.integers(0, 2**31, count, dtype=np.uint32)]
    ).view(np.float32)


def rule_text(rule):
    parts = [f"pow2 = {str(rule.pow2).lower()}", f"epsilon = {rule.epsilon:.9e}",
             f"style = {rule.style}", f"overflow = {rule.overflow:.9e}",
             f"mode = {rule.mode}", f"nonfinite = {rule.nonfinite}"]
    return f"#fp8.scale_rule<{', '.join(parts)}>"


def scale_cases():
    """(format, scale type, rule) of every function of one-level scales."""
    for element in model.FORMATS:
        for mode, nonfinite in itertools.product(
            ("rceil", "floor", "ceil", "even"), ("saturate", "nan")
        ):
            yield element, "f8E8M0FNU", model.Rule(mode=mode, nonfinite=nonfinite)
        for pow2 in (False, True):
            for epsilon in (0.0, 2.0**-20):
                yield element, "f32", model.Rule(pow2=pow2, epsilon=epsilon, style="torchao")
            # The last: Inf replaced by the largest finite f16.
            for epsilon, overflow in [(0.0, float(model.F32_MAX)),
                                      (2.0**-20, float(model.F32_MAX)), (0.0, 65504.0)]:
                yield element, "f32", model.Rule(pow2=pow2, epsilon=epsilon, overflow=overflow)


def scale_function(name, element, scale_type, rule):
    return f"""
func.func @{name}(%amax: tensor<?xf32>) -> (tensor<?xf32>, tensor<?x{scale_type}>)
    attributes {{llvm.emit_c_interface}} {{
  %scale, %inv = fp8.compute_scale %amax format = {element} scale_type = {scale_type}
      rule({rule_text(rule)}) : tensor<?xf32>
  return %scale, %inv : tensor<?xf32>, tensor<?x{scale_type}>
}}
"""


TWO_LEVELS = """
func.func @two_levels(%amax: tensor<?xf32>, %whole: tensor<1xf32>)
    -> (tensor<?xf32>, tensor<?xf8E4M3FN>, tensor<1xf32>) attributes {llvm.emit_c_interface} {
  %scale, %inv, %tensor = fp8.compute_scale %amax tensor_amax(%whole : tensor<1xf32>)
      format = f4E2M1FN scale_type = f8E4M3FN : tensor<?xf32>
  return %scale, %inv, %tensor : tensor<?xf32>, tensor<?xf8E4M3FN>, tensor<1xf32>
}
"""


def quantize_function(name, source, element):
    scaled = f"!fp8.scaled<?x{element}, block = [1], scale = f32>"
    return f"""
func.func @{name}(%x: tensor<?x{source}>, %scale: tensor<?xf32>) -> tensor<?x{element}>
    attributes {{llvm.emit_c_interface}} {{
  %q = fp8.quantize %x scale(%scale, %scale : tensor<?xf32>, tensor<?xf32>)
      : tensor<?x{source}> -> {scaled}
  %codes, %inv = fp8.disassemble %q : {scaled}
  return %codes : tensor<?x{element}>
}}
"""


AMAX_BLOCKS = [(None, None), (1, None), (None, 1), (1, 32), (32, 32), (128, 128), (1, 1)]


def amax_function(name, source, block, propagate):
    text = ", ".join("*" if b is None else str(b) for b in block)
    grid = "x".join("1" if b is None else "?" for b in block)
    return f"""
func.func @{name}(%x: tensor<?x?x{source}>) -> tensor<{grid}xf32>
    attributes {{llvm.emit_c_interface}} {{
  %amax = fp8.amax %x block = [{text}]{" propagate_nan" if propagate else ""}
      : tensor<?x?x{source}>
  return %amax : tensor<{grid}xf32>
}}
"""


class Checker:
    def __init__(self):
        self.failures, self.checks = 0, 0

    def __call__(self, what, inputs, got, expected):
        self.checks += 1
        if got.shape != expected.shape:
            print(f"{what}: shape {got.shape}, expected {expected.shape}")
            self.failures += 1
            return
        wrong = np.argwhere(~model.same_bits(got, expected))
        if not wrong.size:
            return
        self.failures += 1
        at = tuple(wrong[0])
        values = [i[at] if i.shape == got.shape else i.flat[0] for i in inputs]
        print(f"{what}: {len(wrong)} of {got.size} wrong, first at {at}: inputs {values!r} "
              f"give {got[at]!r}, expected {expected[at]!r}")


def check_scales(library, cases, amaxes, check):
    for name, (element, scale_type, rule) in cases.items():
        scale, inverse = compiled.call(
            library, name, [amaxes], [(np.float32, 1), (SCALE_DTYPES[scale_type], 1)]
        )
        expected = model.compute_scale(amaxes, element, scale_type, rule)
        what = f"{element} {scale_type} {rule_text(rule)}"
        check(f"scale of {what}", [amaxes], scale, expected[0])
        check(f"scale_inv of {what}", [amaxes], inverse, expected[1])


def check_two_levels(library, random, check):
    """All pairs of amaxes of blocks and tensors, blocks above their tensor too."""
    amaxes = positive_patterns(random, 2**12)
    wholes = np.concatenate([positive_patterns(random, 16)[::67], np.float32(
        [0, 1e-45, 2.6e-42, 3e-42, 1e-38, 448 * 6, 1, 3.4028235e38, np.inf, np.nan])])
    for whole in wholes.reshape(-1, 1):
        got = compiled.call(
            library, "two_levels", [amaxes, whole],
            [(np.float32, 1), (np.uint8, 1), (np.float32, 1)],
        )
        expected = model.compute_scale(amaxes, "f4E2M1FN", "f8E4M3FN", tensor_amax=whole)
        for part, g, e in zip(("scale", "scale_inv", "tensor_scale_inv"), got, expected):
            check(f"{part} of two levels, tensor amax {whole[0]!r}", [amaxes, whole], g, e)


def check_quantize(library, cases, random, count, check):
    scale = random.integers(0, 2**32, count, dtype=np.uint32).view(np.float32)
    for name, (source, element) in cases.items():
        dtype = model.INPUTS[source]
        uint = np.uint32 if source == "f32" else np.uint16
        x = random.integers(0, 2 ** (8 * np.dtype(uint).itemsize), count, dtype=uint).view(dtype)
        # Half of the products where codes are dense, by any scale.
        middle = (scale.size // 2,)
        near = random.uniform(-8, 8, middle) * 2.0 ** random.integers(-20, 14, middle)
        x[: middle[0]] = near.astype(np.float32) / scale[: middle[0]]
        codes, = compiled.call(library, name, [x, scale], [(np.uint8, 1)])
        check(f"quantize {source} to {element}", [x, scale], codes,
              model.store(model.quantize(x, scale, (1,), element), element))


def check_amax(library, cases, random, check):
    for name, (source, block, propagate) in cases.items():
        dtype = model.INPUTS[source]
        uint = np.uint32 if source == "f32" else np.uint16
        for shape in [(3, 64), (130, 257), (1, 1), (32, 32), (1, 100), (0, 5), (5, 0)]:
            x = random.integers(0, 2 ** (8 * np.dtype(uint).itemsize), shape, dtype=uint)
            x = x.view(dtype)
            # A row of NaN only, and blocks without.
            x[:1] = np.nan
            x[shape[0] // 2 :] = np.nan_to_num(x[shape[0] // 2 :].astype(np.float32)).astype(dtype)
            got, = compiled.call(library, name, [x], [(np.float32, 2)])
            check(f"amax of {shape} {source} in blocks {block}", [x], got,
                  model.amax(x, block, propagate))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--log2-count", type=int, default=22)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")

    scales = {f"scale{i}": case for i, case in enumerate(scale_cases())}
    casts = {f"cast_{s}_{e}": (s, e) for s in model.INPUTS for e in model.FORMATS}
    amaxes = {f"amax{i}": case for i, case in enumerate(
        itertools.product(model.INPUTS, AMAX_BLOCKS, (False, True)))}
    module = "".join(
        [scale_function(n, *c) for n, c in scales.items()]
        + [quantize_function(n, *c) for n, c in casts.items()]
        + [amax_function(n, *c) for n, c in amaxes.items()]
        + [TWO_LEVELS]
    )
    random = np.random.default_rng(20231016)
    check = Checker()
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(module, PASSES, args, directory, [args.runtime])
        check_scales(library, scales, positive_patterns(random, 2**args.log2_count), check)
        check_two_levels(library, random, check)
        check_quantize(library, casts, random, 2 ** (args.log2_count - 2), check)
        check_amax(library, amaxes, random, check)
    print(f"{check.checks - check.failures} of {check.checks} exact")
    return 1 if check.failures else 0


if __name__ == "__main__":
    sys.exit(main())
