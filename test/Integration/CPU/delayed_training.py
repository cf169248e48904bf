# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""A training loop under delayed scaling, step by step against NumPy.

Forward and backward of two layers, with inputs that grow, shrink, vanish and
have Inf and NaN. In every step: each tensor's codes are those of the scale that
the model of the compat mode has from earlier steps, its amax is what the state is
told, and the new scales and histories are the model's, all bit by bit. Products
lie within what f32 sums may lose of the product in f64.
"""

import argparse
import itertools
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
import scaling_models  # noqa: E402

F32, BF16 = np.float32, ml_dtypes.bfloat16
STEPS = 30
BATCH, INPUT, HIDDEN, OUTPUT = 32, 48, 64, 16
SHAPES = {
    "x": (BATCH, INPUT), "w0": (INPUT, HIDDEN), "h": (BATCH, HIDDEN),
    "w1": (HIDDEN, OUTPUT), "dy": (BATCH, OUTPUT), "dh": (BATCH, HIDDEN),
}
# In the order of the program's slots.
SLOTS = {"x": "l0.x", "w0": "l0.w", "h": "l1.x", "w1": "l1.w", "dy": "l1.dgrad.dy",
         "dh": "l0.wgrad.dy"}
GRADIENTS = ("dy", "dh")

PROGRAM = """
#id = affine_map<(i, j) -> (i, j)>
module attributes {{fp8.recipe = {recipe}}} {{
func.func @train(%x: {x}, %w0: {w0} {{fp8.weight}}, %w1: {w1} {{fp8.weight}}, %dy: {dy} {{fp8.grad}})
    -> ({results}) attributes {{llvm.emit_c_interface}} {{
  %zero = arith.constant 0.0 : f32
  %zero_bf16 = arith.constant 0.0 : bf16
  %eh = tensor.empty() : {h}
  %zh = arith.constant dense<0.0> : {h32}
  %zy = arith.constant dense<0.0> : {y32}
  %zw0 = arith.constant dense<0.0> : {w032}
  %zw1 = arith.constant dense<0.0> : {w132}
  %a = linalg.matmul {{fp8.name = "l0"}} ins(%x, %w0 : {x}, {w0}) outs(%zh : {h32}) -> {h32}
  %h = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%a : {h32}) outs(%eh : {h}) {{
  ^bb0(%in: f32, %out: bf16):
    %relu = arith.maximumf %in, %zero : f32
    %rounded = arith.truncf %relu : f32 to bf16
    linalg.yield %rounded : bf16
  }} -> {h}
  %y = linalg.matmul {{fp8.name = "l1"}} ins(%h, %w1 : {h}, {w1}) outs(%zy : {y32}) -> {y32}
  %b = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "l1.dgrad"}}
      ins(%dy, %w1 : {dy}, {w1}) outs(%zh : {h32}) -> {h32}
  %dh = linalg.generic {{indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%b, %h : {h32}, {h}) outs(%eh : {h}) {{
  ^bb0(%in: f32, %activation: bf16, %out: bf16):
    %passes = arith.cmpf ogt, %activation, %zero_bf16 : bf16
    %rounded = arith.truncf %in : f32 to bf16
    %gradient = arith.select %passes, %rounded, %zero_bf16 : bf16
    linalg.yield %gradient : bf16
  }} -> {h}
  %dw0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "l0.wgrad"}}
      ins(%x, %dh : {x}, {h}) outs(%zw0 : {w032}) -> {w032}
  %dw1 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>] {{fp8.name = "l1.wgrad"}}
      ins(%h, %dy : {h}, {dy}) outs(%zw1 : {w132}) -> {w132}
  {codes}
  return %y, %h, %dh, %dw0, %dw1, {names} : {results}
}}
}}
"""


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def element(name, fmt):
    return "f8E5M2" if fmt == "hybrid" and name in GRADIENTS else "f8E4M3FN"


def make_program(recipe, fmt):
    """The codes are those that the products use: equal quantizes are one."""
    types = {name: tensor(shape, "bf16") for name, shape in SHAPES.items()}
    types |= {f"{name}32": tensor(shape, "f32") for name, shape in SHAPES.items()}
    types["y32"] = tensor((BATCH, OUTPUT), "f32")
    codes, names = [], []
    results = [types[t] for t in ("y32", "h", "h", "w032", "w132")]
    for name, shape in SHAPES.items():
        kind = element(name, fmt)
        scaled = model.Scaled(kind, (None, None), "f32").mlir(shape)
        codes += [
            f"%q_{name} = fp8.quantize %{name} recipe({recipe}) : {types[name]} -> {scaled}",
            f"%codes_{name}, %inv_{name} = fp8.disassemble %q_{name} : {scaled}",
        ]
        names.append(f"%codes_{name}")
        results.append(tensor(shape, kind))
    return PROGRAM.format(recipe=recipe, results=", ".join(results), names=", ".join(names),
                          codes="\n  ".join(codes), **types)


RESULTS = [(F32, 2), (BF16, 2), (BF16, 2), (F32, 2), (F32, 2)] + [(np.uint8, 2)] * len(SHAPES)


def make_inputs(random, step):
    """Magnitudes from one step to the next differ by up to 2^12."""
    def normal(name, factor):
        return (random.standard_normal(SHAPES[name]).astype(F32) * F32(factor)).astype(BF16)

    x, dy = (normal(name, 2.0 ** random.uniform(-6, 6)) for name in ("x", "dy"))
    w0, w1 = normal("w0", 0.15 + 0.01 * step), normal("w1", 0.2)
    for tensor in (x, dy):
        corner = random.integers(0, 12)
        at = tuple(random.integers(0, size) for size in tensor.shape)
        if corner == 0:
            tensor[:] = 0
        elif corner <= 3:
            tensor[at] = (np.inf, -np.inf, np.nan)[corner - 1]
    return {"x": x, "w0": w0, "w1": w1, "dy": dy}


class Mismatch(Exception):
    pass


def expect_bits(what, got, expected):
    wrong = np.argwhere(~model.same_bits(got, expected))
    if wrong.size or got.shape != expected.shape:
        at = tuple(wrong[0]) if wrong.size else ()
        raise Mismatch(f"{what}: {len(wrong)} of {got.size} wrong, first at {at}: "
                       f"{got[at]!r}, expected {expected[at]!r}")


def expect_product(what, got, left, right, after=lambda v: v):
    """`after` is monotone and follows the sum."""
    exact = left @ right
    k = left.shape[1]
    # Sum and factors, and what is lost where they are subnormal.
    bound = (k + 8) * 2.0**-24 * (abs(left) @ abs(right)) + (k + 1) * 2.0**-116
    bound = np.where(np.isfinite(exact), bound, 0)
    low, high = (after((exact + b).astype(F32)).astype(F32) for b in (-bound, bound))
    wide = got.astype(F32)
    fits = ((low <= wide) & (wide <= high)) | (np.isnan(wide) & np.isnan(low))
    if not fits.all():
        at = tuple(np.argwhere(~fits)[0])
        raise Mismatch(f"{what}: {(~fits).sum()} of {got.size} wrong, first at {at}: "
                       f"{wide[at]!r}, expected {low[at]!r} to {high[at]!r}")


def relu(v):
    # As arith.maximumf: NaN stays.
    return np.where(np.isnan(v), v, np.maximum(v, F32(0))).astype(BF16)


def check_step(library, state, reference, fmt, propagate_nan, tensors):
    arguments = [tensors[name].copy() for name in ("x", "w0", "w1", "dy")]
    got = compiled.call(library, "train", arguments + [state.rows], RESULTS)
    y, tensors["h"], tensors["dh"], dw0, dw1 = got[:5]
    expect_bits("scale", state.scale, reference.scale)
    expect_bits("scale_inv", state.scale_inv, reference.scale_inv())

    values, amaxes = {}, []
    for slot, (name, codes) in enumerate(zip(SHAPES, got[5:])):
        slot = list(SLOTS).index(name)
        kind = element(name, fmt)
        scale = reference.scale[slot].reshape(1, 1)
        block = (None, None)
        expect_bits(f"codes of {name}", codes, model.quantize(tensors[name], scale, block, kind))
        factor = np.float64(reference.scale_inv()[slot])
        values[name] = model.decode(codes, kind).astype(np.float64) * factor
        amaxes.append(model.amax(tensors[name], block, propagate_nan).item())
    amaxes = np.array(amaxes, F32)
    expect_bits("amax", state.amax, amaxes)

    h, dy = values["h"], values["dy"]
    mask = tensors["h"].astype(F32) > 0
    expect_product("h", tensors["h"], values["x"], values["w0"], relu)
    expect_product("y", y, h, values["w1"])
    expect_product("dh", tensors["dh"], dy, values["w1"].T,
                   lambda v: np.where(mask, v.astype(BF16), BF16(0)))
    expect_product("dw0", dw0, values["x"].T, values["dh"])
    expect_product("dw1", dw1, h.T, dy)

    state.call("update")
    reference.step(amaxes)
    expect_bits("history", state.histories(), reference.history)


def run(library, runtime, compat, fmt, length, algo, margin, pow2, seed):
    """How often a scale moved."""
    kinds = [element(name, fmt) for name in SLOTS]
    formats = ["e5m2" if kind == "f8E5M2" else "e4m3" for kind in kinds]
    state = runtime.create(list(SLOTS.values()), formats, length, compat=compat,
                           amax_compute_algo=algo, margin=margin, pow2=pow2)
    largest = np.array([model.FORMATS[kind].largest for kind in kinds], F32)
    reference = scaling_models.MODELS[compat](largest, length, algo, margin, pow2)
    random = np.random.default_rng(seed)
    moves = 0
    for step in range(STEPS):
        before = state.scale.copy()
        try:
            check_step(library, state, reference, fmt, compat == "flax",
                       make_inputs(random, step))
        except Mismatch as error:
            sys.exit(f"{compat}, {fmt}, length {length}, {algo}, margin {margin}, pow2 {pow2}, "
                     f"step {step}: {error}")
        moves += (before != state.scale).sum()
    state.destroy()
    return moves


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    np.seterr(all="ignore")
    runtime = libfp8rt.Library(str(args.runtime))
    runs = moves = 0
    # The program depends on no more of the recipe than this.
    for family, fmt in itertools.product(("te", "flax"), ("hybrid", "e4m3")):
        compats = ["flax"] if family == "flax" else ["te_fused", "te_unfused"]
        recipe = f"#fp8.delayed<format = {fmt}, compat = {compats[0]}>"
        with tempfile.TemporaryDirectory() as directory:
            library = compiled.build(make_program(recipe, fmt), ["--fp8-pipeline=to=host require"],
                                     args, directory, [args.runtime], "-O1")
            for compat, length in itertools.product(compats, (1, 2, 5, 16)):
                rules = [("max", 0, False)] if compat == "flax" else [
                    ("max", 0, False), ("most_recent", 1, False), ("max", -1, True)]
                for algo, margin, pow2 in rules:
                    moves += run(library, runtime, compat, fmt, length, algo, margin, pow2, runs)
                    runs += 1
    # Scales that never move would be right by accident.
    if moves < runs * STEPS:
        sys.exit(f"expected scales to move, but got {moves} moves in {runs} runs")
    print(f"{runs} runs of {STEPS} steps, {moves} new scales")


if __name__ == "__main__":
    main()
