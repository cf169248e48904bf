# RUN: %python %s
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""What moves codes of f4E2M1FN, of which two share a byte, against ml_dtypes and NumPy: bytes
where rows stay whole, and codes where they do not."""

import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

E2M1 = ml_dtypes.float4_e2m1fn
random = np.random.default_rng(0)
folder = Path(tempfile.mkdtemp())


def make(*shape):
    return random.integers(0, 16, shape).astype(np.uint8).view(E2M1)


def tensor(shape):
    return f"tensor<{'x'.join(map(str, shape))}xf4E2M1FN>"


def run(text, inputs, *options):
    (folder / "program.mlir").write_text(text)
    tensors.save(folder / "inputs", inputs)
    done = subprocess.run(
        ["fp8-run", folder / "program.mlir", f"--inputs={folder}/inputs",
         f"--outputs={folder}/outputs", *options],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done, text


def expect(what, body, inputs, expected, dynamic=()):
    """`body` makes %y of the arguments; a `?` in place of sizes of those in `dynamic`."""
    def write(name, shape):
        shape = ["?"] * len(shape) if name in dynamic else shape
        return tensor(shape)
    arguments = ", ".join(f"%{name}: {write(name, x.shape)} {{fp8.name = \"{name}\"}}"
                          for name, x in inputs.items())
    y = write("y", expected.shape)
    done, text = run(f"func.func @f({arguments}) -> ({y} {{fp8.name = \"y\"}}) {{\n{body}\n"
                     f"  return %y : {y}\n}}\n", inputs, "--entry=f")
    if done.returncode:
        sys.exit(f"{what}: expected success of\n{text}\nbut got\n{done.stdout}")
    got = tensors.load(folder / "outputs")["y"]
    if got.shape != expected.shape or not np.array_equal(
            got.view(np.uint8), np.asarray(expected).view(np.uint8)):
        sys.exit(f"{what}: expected\n{expected}\nbut got\n{got}\nfrom\n{text}")


# The bytes themselves, of all pairs of codes: a program gives what it was given.
x = np.stack((np.arange(256) % 16, np.arange(256) // 16), -1).astype(np.uint8).view(E2M1)
expect("identity", f"  %y = tensor.cast %x : {tensor(x.shape)} to {tensor(x.shape)}", {"x": x}, x)
stored = (folder / "inputs").read_bytes()[-256:]
if list(stored) != [a | b << 4 for a, b in x.view(np.uint8).tolist()]:
    sys.exit("expected the first code of two in the lower half of a byte of the file")

# Slices at any offset, of any size.
x = make(5, 24)
for offset, size, step in [(0, 24, 1), (4, 8, 1), (3, 8, 1), (1, 22, 1), (8, 2, 1), (1, 8, 2),
                           (0, 12, 2)]:
    expect(f"slice {offset} {size} {step}",
           f"  %y = tensor.extract_slice %x[1, {offset}] [3, {size}] [1, {step}] "
           f": {tensor(x.shape)} to {tensor((3, size))}",
           {"x": x}, x[1:4, offset:offset + step * size:step])
expect("rank-reducing slice",
       f"  %y = tensor.extract_slice %x[2, 4] [1, 16] [1, 1] "
       f": {tensor(x.shape)} to {tensor((16,))}",
       {"x": x}, x[2, 4:20])
for offset, size in [(4, 8), (5, 8), (6, 2), (7, 16)]:
    part = make(2, size)
    expected = x.copy()
    expected[1:3, offset:offset + size] = part
    expect(f"inserted slice {offset} {size}",
           f"  %y = tensor.insert_slice %p into %x[1, {offset}] [2, {size}] [1, 1] "
           f": {tensor(part.shape)} into {tensor(x.shape)}", {"x": x, "p": part}, expected)

# Rows of an odd number of codes, inside of a program.
odd = tensor((5, 7))
expect("odd rows",
       f"""  %a = tensor.extract_slice %x[0, 2] [5, 7] [1, 1] : {tensor(x.shape)} to {odd}
  %b = tensor.extract_slice %x[0, 11] [5, 7] [1, 1] : {tensor(x.shape)} to {odd}
  %y = tensor.concat dim(1) %a, %b : ({odd}, {odd}) -> {tensor((5, 14))}""",
       {"x": x}, np.concatenate((x[:, 2:9], x[:, 11:18]), 1))
expect("odd rows that are transposed",
       f"""  %a = tensor.extract_slice %x[0, 0] [4, 7] [1, 1]
      : {tensor(x.shape)} to {tensor((4, 7))}
  %e = tensor.empty() : {tensor((7, 4))}
  %y = linalg.transpose ins(%a : {tensor((4, 7))}) outs(%e : {tensor((7, 4))})
      permutation = [1, 0]""",
       {"x": x}, x[:4, :7].T)
expect("odd rows that follow each other",
       f"""  %a = tensor.extract_slice %x[0, 0] [4, 7] [1, 1]
      : {tensor(x.shape)} to {tensor((4, 7))}
  %y = tensor.collapse_shape %a [[0, 1]] : {tensor((4, 7))} into {tensor((28,))}""",
       {"x": x}, x[:4, :7].reshape(28))
expect("single codes",
       f"""  %a = tensor.collapse_shape %x [[0, 1]] : {tensor(x.shape)} into {tensor((120,))}
  %b = tensor.expand_shape %a [[0, 1]] output_shape [120, 1]
      : {tensor((120,))} into {tensor((120, 1))}
  %c = tensor.concat dim(1) %b, %b
      : ({tensor((120, 1))}, {tensor((120, 1))}) -> {tensor((120, 2))}
  %y = tensor.collapse_shape %c [[0, 1]] : {tensor((120, 2))} into {tensor((240,))}""",
       {"x": x}, x.reshape(120).repeat(2))

# Other shapes and orders.
x = make(3, 4, 10)
expect("concatenation of rows",
       f"  %y = tensor.concat dim(1) %x, %x "
       f": ({tensor(x.shape)}, {tensor(x.shape)}) -> {tensor((3, 8, 10))}",
       {"x": x}, np.concatenate((x, x), 1))
expect("concatenation in rows",
       f"  %y = tensor.concat dim(2) %x, %x "
       f": ({tensor(x.shape)}, {tensor(x.shape)}) -> {tensor((3, 4, 20))}",
       {"x": x}, np.concatenate((x, x), 2))
expect("collapsed rows",
       f"  %y = tensor.collapse_shape %x [[0], [1, 2]] "
       f": {tensor(x.shape)} into {tensor((3, 40))}",
       {"x": x}, x.reshape(3, 40))
expect("expanded rows",
       f"  %y = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [3, 4, 5, 2] "
       f": {tensor(x.shape)} into {tensor((3, 4, 5, 2))}",
       {"x": x}, x.reshape(3, 4, 5, 2))
expect("rows expanded to odd ones and back",
       f"""  %a = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [3, 4, 2, 5]
      : {tensor(x.shape)} into {tensor((3, 4, 2, 5))}
  %e = tensor.empty() : {tensor((3, 4, 5, 2))}
  %y = linalg.transpose ins(%a : {tensor((3, 4, 2, 5))}) outs(%e : {tensor((3, 4, 5, 2))})
      permutation = [0, 1, 3, 2]""",
       {"x": x}, x.reshape(3, 4, 2, 5).transpose(0, 1, 3, 2))
for permutation in [(1, 0, 2), (0, 2, 1), (2, 1, 0)]:
    moved = x.transpose(permutation)
    if moved.shape[-1] % 2:
        continue
    expect(f"transpose {permutation}",
           f"""  %e = tensor.empty() : {tensor(moved.shape)}
  %y = linalg.transpose ins(%x : {tensor(x.shape)}) outs(%e : {tensor(moved.shape)})
      permutation = {list(permutation)}""",
           {"x": x}, moved)
row = make(10)
for added, wide in [([0], (6, 10)), ([1], (10, 6))]:
    expected = np.broadcast_to(row if added == [0] else row[:, None], wide)
    expect(f"broadcast along {added}",
           f"""  %e = tensor.empty() : {tensor(wide)}
  %y = linalg.broadcast ins(%x : {tensor(row.shape)}) outs(%e : {tensor(wide)})
      dimensions = {added}""",
           {"x": row}, np.ascontiguousarray(expected))
for low, high in [(0, 2), (1, 1), (3, 1)]:
    expect(f"pad {low} {high}",
           f"""  %c = arith.constant 1.5 : f4E2M1FN
  %y = tensor.pad %x low[0, {low}] high[1, {high}] {{
  ^bb0(%i: index, %j: index):
    tensor.yield %c : f4E2M1FN
  }} : {tensor((4, 10))} to {tensor((5, 10 + low + high))}""",
           {"x": x[0]},
           np.pad(x[0].view(np.uint8), ((0, 1), (low, high)), constant_values=3).view(E2M1))
expect("fill", f"""  %c = arith.constant -6.0 : f4E2M1FN
  %y = linalg.fill ins(%c : f4E2M1FN) outs(%x : {tensor(x.shape)}) -> {tensor(x.shape)}""",
       {"x": x}, np.full(x.shape, -6, E2M1))

# Elements, and rows by an index.
LOOPS = 'iterator_types = ["parallel", "parallel"]'
MAPS = {"id": "affine_map<(i, j) -> (i, j)>", "swap": "affine_map<(i, j) -> (j, i)>"}
x = make(6, 8)
for name, moved in (("id", x), ("swap", x.T)):
    expect(f"generic {name}",
           f"""  %e = tensor.empty() : {tensor(moved.shape)}
  %y = linalg.generic {{indexing_maps = [{MAPS[name]}, {MAPS['id']}], {LOOPS}}}
      ins(%x : {tensor(x.shape)}) outs(%e : {tensor(moved.shape)}) {{
  ^bb0(%a: f4E2M1FN, %b: f4E2M1FN):
    linalg.yield %a : f4E2M1FN
  }} -> {tensor(moved.shape)}""", {"x": x}, moved)
expect("generic that reads its place",
       f"""  %c7 = arith.constant 7 : index
  %e = tensor.empty() : {tensor((4, 8))}
  %y = linalg.generic {{indexing_maps = [{MAPS['id']}], {LOOPS}}}
      outs(%e : {tensor((4, 8))}) {{
  ^bb0(%b: f4E2M1FN):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %k = arith.subi %c7, %j : index
    %a = tensor.extract %x[%i, %k] : {tensor(x.shape)}
    linalg.yield %a : f4E2M1FN
  }} -> {tensor((4, 8))}""", {"x": x}, x[:4, ::-1])
expect("numbers", f"""  %e = tensor.empty() : {tensor(x.shape)}
  %y = linalg.generic {{indexing_maps = [{MAPS['id']}, {MAPS['id']}], {LOOPS}}}
      ins(%x : {tensor(x.shape)}) outs(%e : {tensor(x.shape)}) {{
  ^bb0(%a: f4E2M1FN, %b: f4E2M1FN):
    %0 = arith.extf %a : f4E2M1FN to f32
    %1 = arith.negf %0 : f32
    %2 = arith.truncf %1 : f32 to f4E2M1FN
    linalg.yield %2 : f4E2M1FN
  }} -> {tensor(x.shape)}""", {"x": x}, (-x.astype(np.float32)).astype(E2M1))

# Constants; of one value, and with rows of an odd number.
table = make(2, 3)
literal = ", ".join("[" + ", ".join(f"{float(v):e}" for v in r) + "]" for r in table)
expect("constant",
       f"""  %c = arith.constant dense<[{literal}]> : {tensor((2, 3))}
  %d = arith.constant dense<-1.5> : {tensor((2, 3))}
  %a = tensor.concat dim(1) %c, %d : ({tensor((2, 3))}, {tensor((2, 3))}) -> {tensor((2, 6))}
  %o = arith.constant dense<0.5> : {tensor((2, 2))}
  %b = tensor.concat dim(1) %a, %o : ({tensor((2, 6))}, {tensor((2, 2))}) -> {tensor((2, 8))}
  %y = tensor.insert_slice %b into %x[0, 0] [2, 8] [1, 1]
      : {tensor((2, 8))} into {tensor(x.shape)}""",
       {"x": x}, np.concatenate((np.concatenate((table, np.full((2, 3), -1.5, E2M1),
                                                np.full((2, 2), 0.5, E2M1)), 1), x[2:])))

# Control flow, calls, and sizes that only show at run time.
any_ = tensor("??")
expect("dynamic sizes",
       f"""  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %m = tensor.dim %x, %c0 : {any_}
  %n = tensor.dim %x, %c1 : {any_}
  %half = arith.divui %n, %c2 : index
  %a = tensor.extract_slice %x[0, %half] [%m, %half] [1, 1] : {any_} to {any_}
  %b = tensor.extract_slice %x[0, 0] [%m, %half] [1, 1] : {any_} to {any_}
  %s = arith.cmpi eq, %n, %c2 : index
  %c = scf.if %s -> {any_} {{
    scf.yield %a : {any_}
  }} else {{
    scf.yield %b : {any_}
  }}
  %d = scf.for %i = %c0 to %c2 step %c1 iter_args(%t = %c) -> {any_} {{
    scf.yield %a : {any_}
  }}
  %y = tensor.concat dim(1) %d, %b : ({any_}, {any_}) -> {any_}""",
       {"x": x}, np.concatenate((x[:, 4:], x[:, :4]), 1), dynamic=("x", "y"))

# Codes whose number only shows at run time may be odd where they stay inside, and say so else.
SCALED = "<?x?xf4E2M1FN, block = [*, *], scale = f32>"
STAY = f"""
func.func @stay(%x: tensor<?x?xf32> {{fp8.name = "x"}})
    -> (tensor<?x?xf32> {{fp8.name = "y"}}) {{
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<?x?xf32> -> {SCALED}
  %t = fp8.transpose %q permutation = [1, 0] : {SCALED}
  %y = fp8.dequantize %t : {SCALED} -> tensor<?x?xf32>
  return %y : tensor<?x?xf32>
}}
func.func @leave(%x: tensor<?x?xf32> {{fp8.name = "x"}})
    -> (tensor<?x?xf4E2M1FN> {{fp8.name = "y"}}) {{
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<?x?xf32> -> {SCALED}
  %y, %s = fp8.disassemble %q : {SCALED}
  return %y : tensor<?x?xf4E2M1FN>
}}
func.func @turned(%x: tensor<?x?xf32> {{fp8.name = "x"}})
    -> (tensor<?x?xf4E2M1FN> {{fp8.name = "y"}}) {{
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%one, %one : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<?x?xf32> -> {SCALED}
  %t = fp8.transpose %q permutation = [1, 0] : {SCALED}
  %y, %s = fp8.disassemble %t : {SCALED}
  return %y : tensor<?x?xf4E2M1FN>
}}
"""
ODD = ("expected a last dimension of an even size, of which two codes of f4E2M1FN share a byte, "
       "but got an odd one")
for shape in [(3, 5), (4, 5), (5, 4), (1, 1), (6, 6)]:
    x = make(*shape).astype(np.float32)
    done, _ = run(STAY, {"x": x}, "--entry=stay")
    y = tensors.load(folder / "outputs")["y"]
    if done.returncode or not np.array_equal(y, x.T):
        sys.exit(f"codes of {shape} that stay: {done.stdout}")
    for entry, left in ("leave", x), ("turned", x.T):
        done, _ = run(STAY, {"x": x}, f"--entry={entry}")
        if left.shape[1] % 2 == 0:
            y = tensors.load(folder / "outputs")["y"]
            if done.returncode or not np.array_equal(y.astype(np.float32), left):
                sys.exit(f"codes of {shape} that {entry}: {done.stdout}")
        elif done.returncode == 0 or ODD not in done.stdout:
            sys.exit(f"codes of {shape} that {entry}: expected an error, but got {done.stdout}")
