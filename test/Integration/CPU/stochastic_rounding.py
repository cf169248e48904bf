# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""fp8.quantize with a seed, and the seeds of a state, against Inputs/training.py.

Codes bit by bit, also of NaN, Inf and what saturates; a value that E2M1 has stays; the
mean of many roundings is the value to within five standard deviations, for fixed seeds.
"""

import argparse
import ctypes
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path[:0] = [
    str(Path(__file__).parent / "Inputs"),
    str(Path(__file__).parents[2] / "Runtime" / "Inputs"),
]
import compiled  # noqa: E402
import libfp8rt  # noqa: E402
import model  # noqa: E402
import training  # noqa: E402

F32, BF16 = np.float32, ml_dtypes.bfloat16
NVFP4 = "scale = f8E4M3FN, tensor_scale = f32"
DTYPES = {"f32": F32, "bf16": BF16, "f16": np.float16}


def write_quantize(name, dims, source, block):
    """A cast of a tensor whose `dims` may be "?"; scales are given or, with `block`, NVFP4's."""
    shape = "x".join(map(str, dims))
    x, codes = f"tensor<{shape}x{source}>", f"tensor<{shape}xf4E2M1FN>"
    whole = ", ".join(["*"] * len(dims))
    single = "tensor<" + "1x" * len(dims) + "f32>"
    if block is None:
        scaled = f"!fp8.scaled<{shape}xf4E2M1FN, block = [{whole}], scale = f32>"
        return f"""
func.func @{name}(%x: {x}, %seed: tensor<4xi32>, %s: {single}) -> {codes}
    attributes {{llvm.emit_c_interface}} {{
  %q = fp8.quantize %x scale(%s, %s : {single}, {single}) seed(%seed : tensor<4xi32>) : {x} -> {scaled}
  %codes, %factors = fp8.disassemble %q : {scaled}
  return %codes : {codes}
}}"""
    grid = "x".join(str(d if d == "?" or b == 1 else -(-d // b)) for d, b in zip(dims, block))
    amax, factors = f"tensor<{grid}xf32>", f"tensor<{grid}xf8E4M3FN>"
    blocks = ", ".join(map(str, block))
    scaled = f"!fp8.scaled<{shape}xf4E2M1FN, block = [{blocks}], {NVFP4}>"
    return f"""
func.func @{name}(%x: {x}, %seed: tensor<4xi32>) -> {codes} attributes {{llvm.emit_c_interface}} {{
  %amax = fp8.amax %x block = [{blocks}] : {x}
  %whole = fp8.amax %amax block = [{whole}] : {amax}
  %s, %si, %t = fp8.compute_scale %amax tensor_amax(%whole : {single}) format = f4E2M1FN
      scale_type = f8E4M3FN : {amax}
  %q = fp8.quantize %x scale(%s, %si : {amax}, {factors}) tensor_scale_inv(%t : {single})
      seed(%seed : tensor<4xi32>) : {x} -> {scaled}
  %codes, %factors, %factor = fp8.disassemble %q : {scaled}
  return %codes : {codes}
}}"""


def build(args, text, directory, name, *options):
    Path(directory, name).mkdir()
    passes = [f"--fp8-pipeline=target=cpu to=host {' '.join(options)}"]
    return compiled.build(text, passes, args, Path(directory, name), [args.runtime])


def require_same(what, ours, expected):
    if ours.tobytes() != expected.tobytes():
        wrong = np.argwhere(ours.view(np.uint8) != expected.view(np.uint8))
        raise SystemExit(f"{what}: {len(wrong)} of {expected.size} bytes differ, the first at {wrong[0]}")


def make_input(random, shape, source):
    x = random.standard_normal(shape) * 2.0 ** random.integers(-6, 7, shape)
    flat = x.reshape(-1)
    for value in (np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 6.0, -6.0, 5.99, 1e-30, -1e-30, 100.0):
        flat[random.integers(0, flat.size, 1 + flat.size // 200)] = value
    return x.astype(DTYPES[source])


CASES = [
    ("rank1", (52,), ("?",), "f32", None), ("rank2", (13, 38), (13, 38), "bf16", None),
    ("rank3", (3, 5, 18), ("?", "?", "?"), "f16", None), ("rank3s", (2, 7, 22), (2, 7, 22), "f32", None),
    ("rows", (9, 64), (9, 64), "bf16", (1, 16)), ("partial", (5, 40), (5, 40), "f32", (1, 16)),
    ("columns", (40, 6), (40, 6), "bf16", (16, 1)), ("tiles", (40, 38), ("?", "?"), "f32", (16, 16)),
    ("batch", (2, 5, 32), (2, "?", 32), "bf16", (1, 1, 16)), ("large", (300, 256), ("?", 256), "bf16", (1, 16)),
]


def check_codes(args, directory, random):
    library = build(args, "\n".join(write_quantize(name, dims, source, block)
                                    for name, _, dims, source, block in CASES), directory, "codes")
    for name, shape, _, source, block in CASES:
        for seed in ([0, 0, 0, 0], [-1, 7, 2**31 - 1, -2**31]):
            seed = np.array(seed, np.int32)
            x = make_input(random, shape, source)
            if block is None:
                scale = np.full([1] * x.ndim, 0.75, F32)
                expected = x.astype(F32) * F32(0.75)
                more = [scale]
            else:
                # An amax of the tensor that is finite.
                x = np.where(np.isinf(x.astype(F32)), x.dtype.type(3), x)
                amax = model.amax(x, block)
                scale, _, _ = model.compute_scale(amax, "f4E2M1FN", "f8E4M3FN",
                                                  tensor_amax=model.amax(amax, (None,) * x.ndim))
                expected = x.astype(F32) * model.spread(scale, x.shape, block)
                more = []
            ours, = compiled.call(library, name, [x.copy(), seed, *more], [(np.uint8, x.ndim)])
            expected = model.store(training.encode(expected, seed), "f4E2M1FN")
            require_same(f"{name}, seed {seed}", ours, expected)


def check_statistics(args, directory):
    """u < fraction has the probability fraction, to within 2^-24: the mean over n elements has
    a standard deviation of step * sqrt(p (1 - p) / n), of which five are allowed."""
    rows, columns = 512, 512
    library = build(args, write_quantize("quantize", (rows, columns), "f32", None), directory, "statistics")
    scale = np.ones((1, 1), F32)
    count = rows * columns
    steps = np.diff(training.E2M1)
    for seed in ([1, 2, 3, 4], [0, 0, 1, 0]):
        for value in (0.01, 0.2, -0.3, 0.6, 0.75, 1.1, -1.3, 1.6, 2.1, 2.9, -3.3, 4.5, 5.9):
            x = np.full((rows, columns), value, F32)
            codes, = compiled.call(library, "quantize", [x, np.array(seed, np.int32), scale], [(np.uint8, 2)])
            nibbles = np.stack([codes & 15, codes >> 4], axis=-1).reshape(-1)
            rounded = np.where(nibbles & 8, -1, 1) * training.E2M1[nibbles & 7]
            below = np.searchsorted(training.E2M1, abs(value), side="right") - 1
            step, low = steps[below], training.E2M1[below]
            if set(np.abs(rounded)) != {low, low + step}:
                raise SystemExit(f"{value}: expected {low} and {low + step}, but got {set(np.abs(rounded))}")
            p = (abs(value) - low) / step
            bound = 5 * step * np.sqrt(p * (1 - p) / count)
            if abs(rounded.mean() - value) > bound:
                raise SystemExit(f"{value}, seed {seed}: the mean is {rounded.mean()}, beyond {bound} of it")
        for value in [*training.E2M1, *-training.E2M1, 7, -np.inf]:
            x = np.full((rows, columns), value, F32)
            codes, = compiled.call(library, "quantize", [x, np.array(seed, np.int32), scale], [(np.uint8, 2)])
            code = int(model.encode(np.array([value], F32), "f4E2M1FN")[0])
            if set(codes.reshape(-1)) != {code | code << 4}:
                raise SystemExit(f"{value}: expected code {code} alone, but got bytes {set(codes.reshape(-1))}")


# Two layers' gradients in functions that are called, and one in a loop.
STATE = """
func.func private @layer(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x48xbf16> {fp8.weight})
    -> tensor<32x48xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x48xf32>
  %dx = linalg.matmul {fp8.name = "mm", fp8.role = #fp8.role<dgrad>}
      ins(%dy, %w : tensor<32x64xbf16>, tensor<64x48xbf16>) outs(%zero : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %dx : tensor<32x48xf32>
}
func.func @train(%dy: tensor<32x64xbf16> {fp8.grad}, %w: tensor<64x48xbf16> {fp8.weight})
    -> (tensor<32x48xf32>, tensor<32x48xf32>, tensor<32x48xf32>) attributes {llvm.emit_c_interface} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant dense<0.0> : tensor<32x48xf32>
  %a = call @layer(%dy, %w) {fp8.name = "a"} : (tensor<32x64xbf16>, tensor<64x48xbf16>) -> tensor<32x48xf32>
  %b = call @layer(%dy, %w) {fp8.name = "b"} : (tensor<32x64xbf16>, tensor<64x48xbf16>) -> tensor<32x48xf32>
  %c = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> tensor<32x48xf32> {
    %dx = func.call @layer(%dy, %w) {fp8.name = "c"} : (tensor<32x64xbf16>, tensor<64x48xbf16>) -> tensor<32x48xf32>
    %next = arith.addf %sum, %dx : tensor<32x48xf32>
    scf.yield %next : tensor<32x48xf32>
  } {fp8.slots = "separate", fp8.name = "loop"}
  return %a, %b, %c : tensor<32x48xf32>, tensor<32x48xf32>, tensor<32x48xf32>
}
"""
SLOTS = ["a.mm.dy", "b.mm.dy", "loop.0.c.mm.dy", "loop.1.c.mm.dy"]


def get_products(dy, w, words):
    """f64 products of what the four slots' seeds make of dy; of the loop, their sum."""
    scaled = model.describe("nvfp4")
    amax = model.amax(dy, scaled.block)
    scale, inverse, factor = model.compute_scale(amax, "f4E2M1FN", "f8E4M3FN",
                                                 tensor_amax=model.amax(amax, (None, None)))
    factors = model.spread(model.factors(inverse, "f8E4M3FN", factor), dy.shape, scaled.block)
    weight = scaled.value(np.ascontiguousarray(w.T))
    products = []
    for slot, word in enumerate(words):
        seed = [*word[:3], word[3] + slot]
        codes = training.encode(dy.astype(F32) * model.spread(scale, dy.shape, scaled.block), seed)
        products.append(model.decode(codes, "f4E2M1FN").astype(np.float64) * factors @ weight.T)
    return products[0], products[1], products[2] + products[3]


def check_state(args, directory, random):
    recipe = "recipe=nvfp4,stochastic_rounding=true"
    opaque = build(args, STATE, directory, "opaque", recipe)
    tensors = build(args, STATE, directory, "tensors", recipe, "functional-state")
    library = libfp8rt.Library(str(args.runtime))
    manifest = {"version": 1, "recipe": "nvfp4", "stochastic_rounding": True, "words": 4,
                "slots": [{"name": name, "format": "e2m1"} for name in SLOTS]}
    state = library.create_from(manifest)
    dy = random.standard_normal((32, 64)).astype(BF16)
    w = random.standard_normal((64, 48)).astype(BF16)
    words = np.zeros((len(SLOTS), 4), np.int32)
    words[:, 0], words[:, 1] = 5, -6
    view = np.ctypeslib.as_array(state.rows.words, (len(SLOTS), 4))
    view[:] = words
    scale = np.ones(len(SLOTS), F32)
    results = [(F32, 2)] * 3
    seen = []
    for step in range(3):
        used = words.copy()
        ours = compiled.call(opaque, "train", [dy.copy(), w.copy(), state.rows], results)
        again = compiled.call(opaque, "train", [dy.copy(), w.copy(), state.rows], results)
        opaque._mlir_ciface_fp8_update_state(ctypes.byref(state.rows))
        *functional, scale, words = compiled.call(
            tensors, "train", [dy.copy(), w.copy(), scale, words], results + [(F32, 1), (np.int32, 2)])
        for name, a, b, c, expected in zip("abc", ours, again, functional, get_products(dy, w, used)):
            require_same(f"step {step}, {name} called again", a, b)
            require_same(f"step {step}, {name} with tensors as state", a, c)
            if np.abs(a - expected).max() > 1e-5 * np.abs(expected).max():
                raise SystemExit(f"step {step}: {name} is not the product of its seeds' codes")
        require_same(f"step {step}: words", view, words)
        used[:, 2] += 1
        require_same(f"step {step}: words", words, used)
        require_same(f"step {step}: scale", scale, np.ones(len(SLOTS), F32))
        seen += [array.tobytes() for array in ours]
    if len(set(seen)) != len(seen):
        raise SystemExit("expected other codes for each tensor in each step")
    state.destroy()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    training.check_philox()
    np.seterr(all="ignore")
    random = np.random.default_rng(4)
    with tempfile.TemporaryDirectory() as directory:
        check_codes(args, directory, random)
        check_statistics(args, directory)
        check_state(args, directory, random)
    print(f"{len(CASES)} kinds of casts, 13 means, 3 steps")


if __name__ == "__main__":
    main()
