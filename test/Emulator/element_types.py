# RUN: env FP8_CUDA_DRIVER=%emulator_library %python %s %fp8_tools sm_90a
# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 %python %s %fp8_tools sm_100a
# UNSUPPORTED: sanitizers
"""Small programs on elements of every kind have the CPU's results on the emulator: sums of integers and of f64, complex
numbers, tests of floats, powers of integers, and maxima that keep NaN."""

import os
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64,
          "i32": np.int32, "i16": np.int16, "i8": np.int8, "i1": np.bool_}


def named(operation, element, shapes, result, wide=None):
    """A named operation of linalg on such tensors, the last of which is the result."""
    kinds = [element] * len(shapes) + [wide or element]
    tensors = [f"tensor<{'x'.join([*map(str, shape), kind])}>" for shape, kind in zip(shapes + [result], kinds)]
    names = [f"%arg{i}" for i in range(len(tensors))]
    arguments = ", ".join(f"{name}: {tensor}" for name, tensor in zip(names, tensors))
    return f"""func.func @main({arguments}) -> {tensors[-1]} {{
  %0 = linalg.{operation} ins({", ".join(names[:-1])} : {", ".join(tensors[:-1])})
      outs({names[-1]} : {tensors[-1]}) -> {tensors[-1]}
  return %0 : {tensors[-1]}
}}""", [(element, shape) for shape in shapes] + [(wide or element, result)]


def elementwise(element, result, body, arguments=1):
    """A function of each element, of `arguments` of them."""
    tensor, out = f"tensor<64x{element}>", f"tensor<64x{result}>"
    names = [f"%arg{i}" for i in range(arguments)]
    return f"""#id = affine_map<(i) -> (i)>
func.func @main({", ".join(f"{name}: {tensor}" for name in names)}) -> {out} {{
  %empty = tensor.empty() : {out}
  %0 = linalg.generic {{indexing_maps = [{", ".join(["#id"] * (arguments + 1))}], iterator_types = ["parallel"]}}
      ins({", ".join(names)} : {", ".join([tensor] * arguments)}) outs(%empty : {out}) {{
  ^bb0({", ".join(f"%x{i}: {element}" for i in range(arguments))}, %o: {result}):
{body}
    linalg.yield %r : {result}
  }} -> {out}
  return %0 : {out}
}}""", [(element, [64])] * arguments


def get_programs():
    for element in ("i8", "i16", "i64", "f64", "i1"):
        yield f"dot of {element}", named("dot", element, [[75], [75]], [])
    for element, wide in (("f64", None), ("i64", None), ("i8", "i32"), ("f32", "f64")):
        yield f"matmul of {element}", named("matmul", element, [[4, 35], [35, 6]], [4, 6], wide)
    yield "pooling of f64", named("pooling_nhwc_sum", "f64", [[1, 6, 6, 3], [3, 3]], [1, 4, 4, 3])
    for element in ("f32", "f64", "f16"):
        number = f"complex<{element}>"
        yield f"complex {element}", elementwise(element, element, f"""    %c = complex.create %x0, %x1 : {number}
    %d = complex.mul %c, %c : {number}
    %e = complex.add %d, %c : {number}
    %f = complex.div %e, %c : {number}
    %re = complex.re %f : {number}
    %im = complex.im %f : {number}
    %r = arith.addf %re, %im : {element}""", 2)
    yield "complex memory", ("""#matrix = affine_map<(i, j) -> (j)>
#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<8xf32> {
  %zero = complex.constant [0.0 : f32, 0.0 : f32] : complex<f32>
  %empty = tensor.empty() : tensor<8xcomplex<f32>>
  %zeros = linalg.fill ins(%zero : complex<f32>) outs(%empty : tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
  %sums = linalg.generic {indexing_maps = [#matrix, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64xf32>) outs(%zeros : tensor<8xcomplex<f32>>) {
  ^bb0(%e: f32, %sum: complex<f32>):
    %c = complex.create %e, %e : complex<f32>
    %next = complex.add %c, %sum : complex<f32>
    linalg.yield %next : complex<f32>
  } -> tensor<8xcomplex<f32>>
  %out = tensor.empty() : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%sums : tensor<8xcomplex<f32>>) outs(%out : tensor<8xf32>) {
  ^bb0(%c: complex<f32>, %o: f32):
    %re = complex.re %c : complex<f32>
    linalg.yield %re : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}""", [("f32", [64])])
    for element in ("f32", "bf16", "f64"):
        for test in ("isinf", "isnormal", "isnan", "isfinite"):
            yield f"{test} of {element}", elementwise(element, "i1", f"    %r = math.{test} %x0 : {element}")
        yield f"clampf of {element}", elementwise(element, element,
                                                  f"    %r = math.clampf %x0 to [%x1, %x2] : {element}", 3)
    yield "log10 of f32", elementwise("f32", "f32", "    %a = math.absf %x0 : f32\n    %r = math.log10 %a : f32")
    for function in ("exp", "log", "log2", "log10", "cosh"):
        argument = "%x0" if function in ("exp", "cosh") else "%a"
        yield f"{function} of f64", elementwise("f64", "f64", f"""    %a = math.absf %x0 : f64
    %r = math.{function} {argument} : f64""")
    yield "sincos of f32", elementwise("f32", "f32", "    %s, %c = math.sincos %x0 : f32\n"
                                       "    %r = arith.mulf %s, %c : f32")
    for element in ("f32", "bf16", "f64"):
        yield f"fpowi of {element}", elementwise(element, element, f"""    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i64
    %c = arith.constant 9 : i64
    %e = arith.subi %n, %c : i64
    %r = math.fpowi %x0, %e : {element}, i64""")
    for element in ("f64", "f16", "bf16", "f32"):
        yield f"roundings of {element}", elementwise(element, element, f"""    %a = math.ceil %x0 : {element}
    %b = math.floor %x1 : {element}
    %c = math.roundeven %x0 : {element}
    %d = math.trunc %x1 : {element}
    %e = arith.addf %a, %b : {element}
    %f = arith.addf %c, %d : {element}
    %r = arith.mulf %e, %f : {element}""", 2)
    yield "integers of f16", elementwise("f16", "i64", """    %c = arith.constant 100.0 : f16
    %a = math.absf %x0 : f16
    %b = arith.minnumf %a, %c : f16
    %r = arith.fptosi %b : f16 to i64""")
    yield "an index of another loop", ("""func.func @main(%x: tensor<6xi64>, %y: tensor<6xi64>) -> tensor<6xindex> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c6 = arith.constant 6 : index
  %a = arith.index_cast %x : tensor<6xi64> to tensor<6xindex>
  %b = arith.index_cast %y : tensor<6xi64> to tensor<6xindex>
  %r = scf.for %i = %c0 to %c6 step %c1 iter_args(%t = %b) -> tensor<6xindex> {
    %v = tensor.extract %a[%i] : tensor<6xindex>
    %n = tensor.insert %v into %t[%i] : tensor<6xindex>
    scf.yield %n : tensor<6xindex>
  }
  return %r : tensor<6xindex>
}""", [("i64", [6]), ("i64", [6])])
    yield "rescaled integers", ("""func.func @main(%x: tensor<4x9xi32>) -> tensor<4x9xi8> {
  %m = "tosa.const"() <{values = dense<19689> : tensor<1xi16>}> : () -> tensor<1xi16>
  %s = "tosa.const"() <{values = dense<15> : tensor<1xi8>}> : () -> tensor<1xi8>
  %zero = "tosa.const"() <{values = dense<0> : tensor<1xi32>}> : () -> tensor<1xi32>
  %out = "tosa.const"() <{values = dense<0> : tensor<1xi8>}> : () -> tensor<1xi8>
  %0 = tosa.rescale %x, %m, %s, %zero, %out {input_unsigned = false, output_unsigned = false, per_channel = false,
      rounding_mode = SINGLE_ROUND, scale32 = false}
    : (tensor<4x9xi32>, tensor<1xi16>, tensor<1xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<4x9xi8>
  return %0 : tensor<4x9xi8>
}""", [("i32", [4, 9])])
    for element in ("i32", "i8"):
        yield f"ipowi of {element}", elementwise(element, element, f"    %r = math.ipowi %x0, %x1 : {element}", 2)
    for element in ("bf16", "f16"):
        yield f"maximum of {element}", (f"""func.func @main(%x: tensor<64x256x{element}>) -> tensor<64x1xf32> {{
  %a = fp8.amax %x block = [1, *] propagate_nan : tensor<64x256x{element}>
  return %a : tensor<64x1xf32>
}}""", [(element, [64, 256])])
    yield "memory that is freed", ("""func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %m = memref.alloc() : memref<16xf32>
  bufferization.materialize_in_destination %x in writable %m : (tensor<16xf32>, memref<16xf32>) -> ()
  %y = bufferization.to_tensor %m restrict : memref<16xf32> to tensor<16xf32>
  %z = arith.addf %y, %y : tensor<16xf32>
  memref.dealloc %m : memref<16xf32>
  return %z : tensor<16xf32>
}""", [("f32", [16])])


def make(rng, element, shape, has_specials):
    if element == "i1":
        return np.asarray(rng.integers(0, 2, shape))
    if element[0] == "i":
        return np.asarray(rng.integers(-5, 6, shape))
    values = np.asarray(rng.standard_normal(shape))
    if has_specials:
        values.flat[:6] = np.nan, np.inf, -np.inf, 0, -0.0, 1e-310 if element == "f64" else 1e-39
    return values


def main():
    tools, target = sys.argv[1:]
    rng = np.random.default_rng(0)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        source, inputs = (os.path.join(folder, name) for name in ("program.mlir", "inputs"))
        for name, (program, arguments) in get_programs():
            with open(source, "w") as file:
                file.write(program)
            is_close = name.startswith(("dot", "matmul", "pooling", "complex", "log", "exp", "sincos", "cosh"))
            values = {f"arg{i}": make(rng, element, shape, not is_close).astype(DTYPES[element])
                      for i, (element, shape) in enumerate(arguments)}
            tensors.save(inputs, values)
            tolerance = "1e-3" if is_close else "0"
            done = subprocess.run([os.path.join(tools, "fp8-run"), source, f"--inputs={inputs}", f"--target={target}",
                                   "--compare=cpu", f"--tolerance={tolerance}"], capture_output=True, text=True)
            if done.returncode:
                print(f"{name}: {done.stdout}{done.stderr}")
                failures += 1
    print(f"{failures} wrong")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
