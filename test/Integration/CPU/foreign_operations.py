# RUN: %python %s fp8-run %t
"""What other compilers write and ours do not: each program against NumPy."""

import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
from fp8 import tensors

tool, folder = sys.argv[1], Path(sys.argv[2])
folder.mkdir(exist_ok=True)
F32, BF16 = np.float32, ml_dtypes.bfloat16
E4M3, E5M2, E2M1 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.float4_e2m1fn
random = np.random.default_rng(11)


def run(program, inputs, *options):
    (folder / "program.mlir").write_text(program)
    tensors.save(folder / "inputs", inputs)
    done = subprocess.run(
        [tool, folder / "program.mlir", f"--inputs={folder}/inputs",
         f"--outputs={folder}/outputs", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        sys.exit(f"{program}\n{options}: expected success, but got:\n{done.stdout}")
    return tensors.load(folder / "outputs")["y"]


def check(what, got, expected, error=0.0):
    expected = np.asarray(expected)
    difference = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    limit = error * np.abs(expected.astype(np.float64)).max() if expected.size else 0
    if got.shape != expected.shape or not np.all(difference <= limit):
        sys.exit(f"{what}: expected\n{expected}\nbut got\n{got}")


def normal(*shape):
    return random.standard_normal(shape).astype(F32)


# Vectors of more than one dimension.
x = normal(4, 4)
check("vector", run("""
func.func @f(%x: tensor<4x4xf32> {fp8.name = "x"}) -> (tensor<4x4xf32> {fp8.name = "y"}) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %v = vector.transfer_read %x[%c0, %c0], %z {in_bounds = [true, true]}
      : tensor<4x4xf32>, vector<4x4xf32>
  %w = arith.addf %v, %v : vector<4x4xf32>
  %r = vector.transfer_write %w, %x[%c0, %c0] {in_bounds = [true, true]}
      : vector<4x4xf32>, tensor<4x4xf32>
  return %r : tensor<4x4xf32>
}""", {"x": x}), 2 * x)

# Slices at places that another tensor names, with and without the dimensions that are gathered.
GATHER = """
func.func @f(%x: tensor<7x5x3xf32> {{fp8.name = "x"}}, %at: tensor<4x2x{count}xi32> {{fp8.name = "at"}})
    -> (tensor<{result}xf32> {{fp8.name = "y"}}) {{
  %0 = tensor.gather %x[%at] gather_dims([{dims}]) : (tensor<7x5x3xf32>, tensor<4x2x{count}xi32>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}"""
x, at = normal(7, 5, 3), np.stack([random.integers(0, 7, (4, 2)), random.integers(0, 3, (4, 2))], -1).astype(np.int32)
check("gather", run(GATHER.format(count=2, dims="0, 2", result="4x2x5"), {"x": x, "at": at}), x[at[..., 0], :, at[..., 1]])
check("gather", run(GATHER.format(count=1, dims="0", result="4x2x1x5x3"), {"x": x, "at": at[..., :1]}), x[at[..., :1]])

# Shapes that show at run time only.
RESHAPE = """
func.func @f(%x: tensor<{source}xf32> {{fp8.name = "x"}}) -> (tensor<{result}xf32> {{fp8.name = "y"}}) {{
  {extents}
  %0 = tensor.reshape %x(%s) : (tensor<{source}xf32>, tensor<{rank}xindex>) -> tensor<{result}xf32>
  return %0 : tensor<{result}xf32>
}}"""
for source, result, shape, extents in [
    ("?x64", "?", (3, 64), (192,)), ("?x64", "?x?x32", (3, 64), (2, 3, 32)),
    ("?x?", "6x?", (3, 64), (6, 32)), ("?", "2x4", (8,), (2, 4)), ("8", "?x?", (8,), (4, 2)),
    ("?x1", "", (1, 1), ()), ("", "?x?", (), (1, 1)), ("?x4", "?x?", (0, 4), (2, 0)),
]:
    values = ", ".join(f"%e{i}" for i in range(len(extents)))
    text = "\n".join(f"%e{i} = arith.constant {e} : index" for i, e in enumerate(extents))
    kind = f"tensor<{len(extents)}xindex>"
    text += f"\n%s = tensor.from_elements {values} : {kind}" if extents else f"\n%s = arith.constant dense<> : {kind}"
    program = RESHAPE.format(source=source, result=result, rank=len(extents), extents=text)
    program = program.replace("tensor<xf32>", "tensor<f32>")
    x = normal(*shape)
    check(f"reshape {source} to {result}", run(program, {"x": x}), x.reshape(extents))

# Another number of elements is an error, not a look at other memory.
(folder / "program.mlir").write_text("""
func.func @f(%x: tensor<?x4xf32> {fp8.name = "x"}, %n: index {fp8.name = "n"}) -> (tensor<?xf32> {fp8.name = "y"}) {
  %s = tensor.from_elements %n : tensor<1xindex>
  %0 = tensor.reshape %x(%s) : (tensor<?x4xf32>, tensor<1xindex>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}""")
tensors.save(folder / "inputs", {"x": normal(2, 4), "n": np.int64(9)})
done = subprocess.run([tool, folder / "program.mlir", f"--inputs={folder}/inputs"], capture_output=True, text=True)
if done.returncode != 1 or done.stderr != "fp8-run: error: tensor.reshape: expected as many elements as before\n":
    sys.exit(f"expected an error, but got {done.returncode}: {done.stdout}{done.stderr}")

# Tiles whose extents show at run time only, dimensions in another order.
PACK = """
func.func @f(%x: tensor<?x?xf32> {fp8.name = "x"}, %a: index {fp8.name = "a"}, %b: index {fp8.name = "b"},
             %t0: index {fp8.name = "t0"}, %t1: index {fp8.name = "t1"}) -> (tensor<?x?x?x?xf32> {fp8.name = "y"}) {
  %z = arith.constant 7.0 : f32
  %e = tensor.empty(%b, %a, %t1, %t0) : tensor<?x?x?x?xf32>
  %p = linalg.pack %x padding_value(%z : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
      inner_tiles = [%t1, %t0] into %e : tensor<?x?xf32> -> tensor<?x?x?x?xf32>
  return %p : tensor<?x?x?x?xf32>
}"""
UNPACK = """
func.func @f(%x: tensor<?x?x?x?xf32> {fp8.name = "x"}, %t0: index {fp8.name = "t0"},
             %t1: index {fp8.name = "t1"}) -> (tensor<10x13xf32> {fp8.name = "y"}) {
  %e = tensor.empty() : tensor<10x13xf32>
  %p = linalg.unpack %x outer_dims_perm = [1, 0] inner_dims_pos = [1, 0]
      inner_tiles = [%t1, %t0] into %e : tensor<?x?x?x?xf32> -> tensor<10x13xf32>
  return %p : tensor<10x13xf32>
}"""
for t0, t1 in [(4, 5), (1, 13), (16, 3)]:
    x = normal(10, 13)
    a, b = -(-10 // t0), -(-13 // t1)
    padded = np.full((a * t0, b * t1), 7, F32)
    padded[:10, :13] = x
    packed = padded.reshape(a, t0, b, t1).transpose(2, 0, 3, 1)
    numbers = {k: np.int64(v) for k, v in dict(a=a, b=b, t0=t0, t1=t1).items()}
    check(f"pack {t0}x{t1}", run(PACK, {"x": x, **numbers}), packed)
    inputs = {"x": np.ascontiguousarray(packed), "t0": numbers["t0"], "t1": numbers["t1"]}
    check(f"unpack {t0}x{t1}", run(UNPACK, inputs), x)

# A body that calls a function.
check("generate", run("""
func.func private @value(%i : index) -> f32 {
  %0 = arith.index_cast %i : index to i32
  %1 = arith.sitofp %0 : i32 to f32
  return %1 : f32
}
func.func @f() -> (tensor<8xf32> {fp8.name = "y"}) {
  %0 = tensor.generate {
  ^bb0(%i : index):
    %v = func.call @value(%i) : (index) -> f32
    tensor.yield %v : f32
  } : tensor<8xf32>
  return %0 : tensor<8xf32>
}""", {}), np.arange(8))

# K = 0: a sum of nothing.
for recipe in ("current", "rowwise", "block", "mxfp8", "mxfp8,weight_2d=true", "nvfp4",
               "nvfp4,weight_2d=true"):
    for k in ("0", "?"):
        got = run(f"""
func.func @f(%x: tensor<3x{k}xbf16> {{fp8.name = "x"}}, %w: tensor<{k}x5xbf16> {{fp8.name = "w", fp8.weight}})
    -> (tensor<3x5xf32> {{fp8.name = "y"}}) {{
  %z = arith.constant dense<2.0> : tensor<3x5xf32>
  %y = linalg.matmul ins(%x, %w : tensor<3x{k}xbf16>, tensor<{k}x5xbf16>)
      outs(%z : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}}""", {"x": np.zeros((3, 0), BF16), "w": np.zeros((0, 5), BF16)}, f"--recipe={recipe}")
        check(f"K={k} under {recipe}", got, np.full((3, 5), 2))

# Codes with E8M0 factors, as IREE multiplies them.
MX = """
#a = affine_map<(m, n, k, b) -> (m, k, b)>
#b = affine_map<(m, n, k, b) -> (n, k, b)>
#sa = affine_map<(m, n, k, b) -> (m, k)>
#sb = affine_map<(m, n, k, b) -> (n, k)>
#c = affine_map<(m, n, k, b) -> (m, n)>
func.func @f(%x: tensor<16x2x32x{A}> {{fp8.name = "x"}}, %w: tensor<8x2x32x{B}> {{fp8.name = "w"}},
             %xs: tensor<16x2xf8E8M0FNU> {{fp8.name = "xs"}}, %ws: tensor<8x2xf8E8M0FNU> {{fp8.name = "ws"}},
             %c: tensor<16x8xf32> {{fp8.name = "c"}}) -> (tensor<16x8xf32> {{fp8.name = "y"}}) {{
  %0 = linalg.generic {{indexing_maps = [#a, #b, #sa, #sb, #c],
                        iterator_types = ["parallel", "parallel", "reduction", "reduction"]}}
    ins(%x, %w, %xs, %ws : tensor<16x2x32x{A}>, tensor<8x2x32x{B}>, tensor<16x2xf8E8M0FNU>,
        tensor<8x2xf8E8M0FNU>) outs(%c : tensor<16x8xf32>) {{
  ^bb0(%p: {A}, %q: {B}, %ps: f8E8M0FNU, %qs: f8E8M0FNU, %o: f32):
    %1 = arith.scaling_extf %p, %ps : {A}, f8E8M0FNU to f32
    %2 = arith.scaling_extf %q, %qs : {B}, f8E8M0FNU to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %o, %3 : f32
    linalg.yield %4 : f32
  }} -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}}"""
TYPES = {"f8E4M3FN": E4M3, "f8E5M2": E5M2, "f4E2M1FN": E2M1}


def codes(element, *shape):
    """Codes of normal values, as a file has them, and the values."""
    rounded = (normal(*shape) * 2).astype(TYPES[element])
    return rounded, rounded.astype(np.float64)


def exponents(*shape):
    e = random.integers(120, 134, shape).astype(np.uint8)
    return e.view(ml_dtypes.float8_e8m0fnu), 2.0 ** (e.astype(np.float64) - 127)


for a, b in [("f8E4M3FN", "f8E4M3FN"), ("f8E5M2", "f8E4M3FN"), ("f4E2M1FN", "f4E2M1FN"),
             ("f8E4M3FN", "f4E2M1FN")]:
    (x, xv), (w, wv) = codes(a, 16, 2, 32), codes(b, 8, 2, 32)
    (xs, xsv), (ws, wsv) = exponents(16, 2), exponents(8, 2)
    c = normal(16, 8)
    expected = c + np.einsum("mkb,nkb,mk,nk->mn", xv, wv, xsv, wsv)
    for recipe in ("none", "current", "mxfp8"):
        got = run(MX.format(A=a, B=b), {"x": x, "w": w, "xs": xs, "ws": ws, "c": c},
                  f"--recipe={recipe}")
        check(f"{a} x {b} with E8M0 factors under {recipe}", got, expected, 1e-6)

# The same casts alone, of all codes and factors.
for element, dtype in TYPES.items():
    every = np.arange(16 if element == "f4E2M1FN" else 256, dtype=np.uint8)
    x = np.tile(every[:, None], (1, 256))
    s = np.tile(np.arange(256, dtype=np.uint8)[None], (len(every), 1))
    got = run(f"""
func.func @f(%x: tensor<?x?x{element}> {{fp8.name = "x"}}, %s: tensor<?x?xf8E8M0FNU> {{fp8.name = "s"}})
    -> (tensor<?x?xf32> {{fp8.name = "y"}}) {{
  %0 = arith.scaling_extf %x, %s : tensor<?x?x{element}>, tensor<?x?xf8E8M0FNU> to tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}}""", {"x": x.view(dtype), "s": s.view(ml_dtypes.float8_e8m0fnu)})
    with np.errstate(all="ignore"):
        expected = x.view(dtype).astype(F32) * s.view(ml_dtypes.float8_e8m0fnu).astype(F32)
    if not np.array_equal(got, expected, equal_nan=True):
        sys.exit(f"scaling_extf of {element}: {np.argwhere(got != expected)[:5]}")

# Codes of 4 bits in loops: read, added and written.
x, s = codes("f4E2M1FN", 5, 32)[0], exponents(5)[0]
for element in ("f32", "bf16"):
    got = run(f"""
#id = affine_map<(m, k) -> (m, k)>
#row = affine_map<(m, k) -> (m)>
func.func @f(%x: tensor<5x?xf4E2M1FN> {{fp8.name = "x"}}, %s: tensor<5xf8E8M0FNU> {{fp8.name = "s"}}, %o: tensor<5x?xf4E2M1FN> {{fp8.name = "o"}})
    -> (tensor<5x?xf4E2M1FN> {{fp8.name = "y"}}) {{
  %0 = linalg.generic {{indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %s : tensor<5x?xf4E2M1FN>, tensor<5xf8E8M0FNU>) outs(%o : tensor<5x?xf4E2M1FN>) {{
  ^bb0(%p: f4E2M1FN, %q: f8E8M0FNU, %r: f4E2M1FN):
    %1 = arith.extf %p : f4E2M1FN to {element}
    %2 = arith.addf %1, %1 : {element}
    %3 = arith.scaling_truncf %2, %q : {element}, f8E8M0FNU to f4E2M1FN
    linalg.yield %3 : f4E2M1FN
  }} -> tensor<5x?xf4E2M1FN>
  return %0 : tensor<5x?xf4E2M1FN>
}}""", {"x": x, "s": s, "o": np.zeros_like(x)})
    values = 2 * x.astype(F32) / s.astype(F32)[:, None]
    check(f"truncation of {element} to 4 bits", got, values.astype(E2M1))

# Only the exponent of an f32 counts.
x, s = normal(64, 64) * 3, np.exp2(random.uniform(-3, 3, (64, 64))).astype(F32)
got = run("""
func.func @f(%x: tensor<64x64xf32> {fp8.name = "x"}, %s: tensor<64x64xf32> {fp8.name = "s"})
    -> (tensor<64x64xf8E4M3FN> {fp8.name = "y"}) {
  %0 = arith.scaling_truncf %x, %s : tensor<64x64xf32>, tensor<64x64xf32> to tensor<64x64xf8E4M3FN>
  return %0 : tensor<64x64xf8E4M3FN>
}""", {"x": x, "s": s})
check("scaling_truncf", got, (x / np.exp2(np.floor(np.log2(s))).astype(F32)).astype(E4M3))

# An E8M0 factor for the tensor, and for a row.
for block, grid in (("*, *", (1, 1)), ("1, *", (16, 1))):
    (x, xv), (s, sv) = codes("f8E4M3FN", 16, 32), exponents(*grid)
    q = f"!fp8.scaled<16x32xf8E4M3FN, block = [{block}], scale = f8E8M0FNU>"
    got = run(f"""
func.func @f(%a: tensor<16x32xf8E4M3FN> {{fp8.name = "a"}}, %s: tensor<{grid[0]}x1xf8E8M0FNU> {{fp8.name = "s"}})
    -> (tensor<16x16xf32> {{fp8.name = "y"}}) {{
  %p = fp8.assemble %a, %s : tensor<16x32xf8E4M3FN>, tensor<{grid[0]}x1xf8E8M0FNU> -> {q}
  %y = fp8.matmul %p, %p : {q}, {q} -> tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}}""", {"a": x, "s": s})
    check(f"E8M0 factor of [{block}]", got, (xv * sv) @ (xv * sv).T, 1e-6)

# Integer products stay as they are.
x, w = random.integers(-128, 128, (16, 32), np.int8), random.integers(-128, 128, (32, 16), np.int8)
got = run("""
func.func @f(%x: tensor<16x32xi8> {fp8.name = "x"}, %w: tensor<32x16xi8> {fp8.name = "w"}) -> (tensor<16x16xi32> {fp8.name = "y"}) {
  %zx = arith.constant 3 : i32
  %zw = arith.constant -5 : i32
  %c = arith.constant dense<0> : tensor<16x16xi32>
  %0 = linalg.quantized_matmul ins(%x, %w, %zx, %zw : tensor<16x32xi8>, tensor<32x16xi8>, i32, i32) outs(%c : tensor<16x16xi32>) -> tensor<16x16xi32>
  return %0 : tensor<16x16xi32>
}""", {"x": x, "w": w}, "--recipe=current")
check("quantized_matmul", got, (x.astype(int) - 3) @ (w.astype(int) + 5))

# Convolutions whose windows do not overlap.
CONV = """
func.func @f(%x: tensor<2x3x{H}x{H}xf32> {{fp8.name = "x"}}, %w: tensor<8x3x{K}x{K}xf32> {{fp8.name = "w", fp8.weight}})
    -> (tensor<2x8x{O}x{O}xf32> {{fp8.name = "y"}}) {{
  %c = arith.constant dense<0.5> : tensor<2x8x{O}x{O}xf32>
  %0 = linalg.conv_2d_nchw_fchw {{strides = dense<{S}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%x, %w : tensor<2x3x{H}x{H}xf32>, tensor<8x3x{K}x{K}xf32>) outs(%c : tensor<2x8x{O}x{O}xf32>) -> tensor<2x8x{O}x{O}xf32>
  return %0 : tensor<2x8x{O}x{O}xf32>
}}"""
for size, window, step in [(16, 4, 4), (18, 4, 4), (7, 1, 1), (7, 1, 2), (9, 3, 2)]:
    x, w = normal(2, 3, size, size), normal(8, 3, window, window)
    count = (size - window) // step + 1
    windows = np.lib.stride_tricks.sliding_window_view(x, (window, window), (2, 3))
    windows = windows[:, :, ::step, ::step]
    expected = 0.5 + np.einsum("ncijkl,fckl->nfij", windows.astype(np.float64), w.astype(np.float64))
    program = CONV.format(H=size, K=window, O=count, S=step)
    check(f"convolution {window} by {step}", run(program, {"x": x, "w": w}), expected, 1e-5)
    got = run(program, {"x": x, "w": w}, "--recipe=current", "--max-padding=10")
    check(f"convolution {window} by {step} in FP8", got, expected, 0.1)

# A scale that overflows, which only Flax lets, makes NaN of zeros, but not of
# those that pad K, of which Flax has none.
x = np.full((2, 4, 12), 1e-45, F32)
got = run("""
func.func @f(%x: tensor<4x12xf32> {fp8.name = "x"}, %w: tensor<12x8xf32> {fp8.name = "w", fp8.weight}) -> (tensor<4x8xf32> {fp8.name = "y"}) {
  %c = arith.constant dense<0.0> : tensor<4x8xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x12xf32>, tensor<12x8xf32>) outs(%c : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}""", {"x": x, "w": normal(12, 8)}, "--recipe=delayed,compat=flax", "--steps=2", "--max-padding=1")
check("padding under an infinite scale", got[1], np.zeros((4, 8)))

# Integer powers, by the products that they are defined by: the sign of a zero and of what
# it divides counts.
x = np.concatenate([normal(23), np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e30, 1, -1],
                                         F32)])
for exponent in (0, 1, 2, 3, 7, -1, -2, -5):
    y = run(f"""
func.func @f(%x: tensor<32xf32> {{fp8.name = "x"}}) -> (tensor<32xf32> {{fp8.name = "y"}}) {{
  %n = arith.constant dense<{exponent}> : tensor<32xi32>
  %y = math.fpowi %x, %n : tensor<32xf32>, tensor<32xi32>
  return %y : tensor<32xf32>
}}""", {"x": x})
    with np.errstate(all="ignore"):
        power, square = np.ones_like(x), x
        for bit in range(abs(exponent).bit_length()):
            if abs(exponent) >> bit & 1:
                power = power * square
            square = square * square
        expected = F32(1) / power if exponent < 0 else power
    if not np.array_equal(np.where(np.isnan(y), 0, y.view(np.int32)),
                          np.where(np.isnan(expected), 0, expected.view(np.int32))):
        sys.exit(f"power {exponent}: expected\n{expected}\nbut got\n{y}")
