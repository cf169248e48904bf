# RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_TRACE=%t.trace PYTHONPATH=%fp8_package %python %s %t.trace
# REQUIRES: python-package
# UNSUPPORTED: sanitizers
"""Instructions of loops over rows that are not aligned, by what the emulator counts. Where each element's place is divided
for, and each stored alone, they were 19, 25, 25 and 22 for an element.

132 multiprocessors that issue 128 instructions of a thread at 1.7 GHz issue 15 in the time in which a copy has read a byte
and written it.
"""

import re
import sys

import fp8
import numpy as np

RANK_3 = "affine_map<(i, j, k) -> (i, j, k)>"

# A function, its arguments, and how many instructions an element of the larger of both tensors may have.
FUNCTIONS = {
    "mask": ("""func.func @mask() -> tensor<64x128x77xi1> {
  %e = tensor.empty() : tensor<64x128x77xi1>
  %0 = linalg.generic {indexing_maps = [RANK_3], iterator_types = ["parallel", "parallel", "parallel"]} outs(%e : tensor<64x128x77xi1>) {
  ^bb0(%old: i1):
    %j = linalg.index 1 : index
    %k = linalg.index 2 : index
    %1 = arith.cmpi ule, %k, %j : index
    linalg.yield %1 : i1
  } -> tensor<64x128x77xi1>
  return %0 : tensor<64x128x77xi1>
}""", [], 12),
    "broadcast": ("""func.func @broadcast(%x: tensor<2048x77xbf16>) -> tensor<2048x3x77xbf16> {
  %e = tensor.empty() : tensor<2048x3x77xbf16>
  %0 = linalg.broadcast ins(%x : tensor<2048x77xbf16>) outs(%e : tensor<2048x3x77xbf16>) dimensions = [1]
  return %0 : tensor<2048x3x77xbf16>
}""", [((2048, 77), np.uint16)], 18),
    "pad": ("""func.func @pad(%x: tensor<32x384x77xi8>) -> tensor<34x393x81xi8> {
  %z = arith.constant 0 : i8
  %0 = tensor.pad %x low[1, 8, 1] high[1, 1, 3] {
  ^bb0(%i: index, %j: index, %k: index):
    tensor.yield %z : i8
  } : tensor<32x384x77xi8> to tensor<34x393x81xi8>
  return %0 : tensor<34x393x81xi8>
}""", [((32, 384, 77), np.int8)], 22),
    "reduce": ("""func.func @reduce(%x: tensor<64x33x577xi8>) -> tensor<33xi8> {
  %z = arith.constant 0 : i8
  %e = tensor.empty() : tensor<33xi8>
  %f = linalg.fill ins(%z : i8) outs(%e : tensor<33xi8>) -> tensor<33xi8>
  %0 = linalg.generic {indexing_maps = [RANK_3, affine_map<(i, j, k) -> (j)>], iterator_types = ["reduction", "parallel", "reduction"]}
      ins(%x : tensor<64x33x577xi8>) outs(%f : tensor<33xi8>) {
  ^bb0(%a: i8, %acc: i8):
    %1 = arith.ori %a, %acc : i8
    linalg.yield %1 : i8
  } -> tensor<33xi8>
  return %0 : tensor<33xi8>
}""", [((64, 33, 577), np.int8)], 12),
}


def count_steps(trace):
    """Counts those of the warps of all launches since the trace was emptied."""
    with open(trace) as lines:
        return sum(int(found[1]) for found in map(re.compile(r" took (\d+) steps").search, lines) if found)


def main():
    trace, failed = sys.argv[1], False
    for name, (text, shapes, most) in FUNCTIONS.items():
        function = fp8.compile(text.replace("RANK_3", RANK_3), "none", target="sm_90a", cache=False).functions[name]
        values = [np.zeros(shape, dtype) for shape, dtype in shapes]
        if name == "broadcast":
            import ml_dtypes

            values = [value.view(ml_dtypes.bfloat16) for value in values]
        open(trace, "w").close()
        result = function(*values)
        each = 32 * count_steps(trace) / max(array.size for array in (result, *values))
        print(f"{name}: {each:.1f} instructions an element")
        failed |= not 0 < each <= most
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
