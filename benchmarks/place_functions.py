"""Casts to 4 bits that go by an element's place: rounded by a seed, of what was rotated before,
as rows and in the other order.

`benchmarks/fusions.py` checks and times them beside those of fusion_functions.py. The amax of the
tensor is given, so that each is one pass: 2 bytes in, half of one and a factor for 16 out.
"""

from code_functions import CODES4, ROWS4, nvfp4, parts_nvfp4
from fusion_functions import E4M3, FULL, MN, NM, TYPES, blocks, make

TYPES["seed"] = "tensor<4xi32>"
TURNED = "tensor<{n}x{m}xbf16>"
TURNED4 = CODES4.replace(MN, NM)
GRID, TURNED_GRID = blocks(1, 16), "{n}x{m/16}"
BYTES, GOAL = 2.5625, 0.8
TRANSPOSED = (f"  %e = tensor.empty({{turneddims}}) : {TURNED}\n"
              f"  %t = linalg.transpose ins(%x : {FULL}) outs(%e : {TURNED}) "
              "permutation = [1, 0]\n")


def rotated(source, kind):
    return f"  %y = fp8.hadamard %{source} signs = 55272 : {kind}\n"


def cast(source, kind, shape, grid, seed=True):
    """A cast in blocks of 16 along the last dimension, with the amax %s of the tensor."""
    drawn = " seed(%seed : tensor<4xi32>)" if seed else ""
    return (f"  %q_a = fp8.amax %{source} block = [1, 16] : {kind}\n"
            f"  %q_s, %q_i, %q_t = fp8.compute_scale %q_a tensor_amax(%s : tensor<1x1xf32>) "
            f"format = f4E2M1FN scale_type = {E4M3} : tensor<{grid}xf32>\n"
            f"  %q = fp8.quantize %{source} scale(%q_s, %q_i : tensor<{grid}xf32>, "
            f"tensor<{grid}x{E4M3}>) tensor_scale_inv(%q_t : tensor<1x1xf32>){drawn} : {kind} -> "
            f"{nvfp4(shape, '[1, 16]')}\n" + parts_nvfp4("q", shape, "[1, 16]"))


ROWS = (["%q_p", "%q_f"], [CODES4, ROWS4])
COLUMNS = (["%q_p", "%q_f"], [TURNED4, f"tensor<{TURNED_GRID}x{E4M3}>"])
PLACE_STREAMS = [
    make("nvfp4_nearest", BYTES, GOAL, ("x", "scale"),
         cast("x", FULL, MN, GRID, seed=False), *ROWS),
    make("nvfp4_chance", BYTES, GOAL, ("x", "scale", "seed"), cast("x", FULL, MN, GRID), *ROWS),
    make("nvfp4_rotated", BYTES, GOAL, ("x", "scale"),
         rotated("x", FULL) + cast("y", FULL, MN, GRID, seed=False), *ROWS, rotates="n"),
    make("nvfp4_rotated_chance", BYTES, GOAL, ("x", "scale", "seed"),
         rotated("x", FULL) + cast("y", FULL, MN, GRID), *ROWS, rotates="n"),
    make("nvfp4_turned", BYTES, GOAL, ("x", "scale"),
         TRANSPOSED + rotated("t", TURNED) + cast("y", TURNED, NM, TURNED_GRID, seed=False),
         *COLUMNS, rotates="m"),
    make("nvfp4_turned_chance", BYTES, GOAL, ("x", "scale", "seed"),
         TRANSPOSED + rotated("t", TURNED) + cast("y", TURNED, NM, TURNED_GRID), *COLUMNS,
         rotates="m"),
]
