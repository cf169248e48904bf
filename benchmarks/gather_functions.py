"""Functions that read rows by their index, as embeddings do: every index is one of the table's.

`benchmarks/fusions.py` checks them beside those of fusion_functions.py and times none.
"""

from fusion_functions import (CODES, FULL, MN, NM, NORM, ONE, SQUARES, TURNED, TYPES, WHOLE,
                              amax_of, make, parts, quantize, transpose)

TABLE_ROWS = 50
TYPES.update({"t": f"tensor<{TABLE_ROWS}x{{n}}xbf16>", "ids": "tensor<{m}xi64>"})


def gather(name, extra="", result="%row_e"):
    """A row of %t for each index; `extra` computes %out of its element %row_e."""
    return (f"  %{name}_o = tensor.empty({{dims}}) : {FULL}\n"
            f"  %{name} = linalg.generic {{{{indexing_maps = [#rows, #full], "
            f'iterator_types = ["parallel", "parallel"]}}}} ins(%ids : {TYPES["ids"]}) '
            f"outs(%{name}_o : {FULL}) {{{{\n"
            f"  ^bb0(%i_e: i64, %_: bf16):\n"
            f"    %place = arith.index_cast %i_e : i64 to index\n"
            f"    %column = linalg.index 1 : index\n"
            f"    %row_e = tensor.extract %t[%place, %column] : {TYPES['t']}\n{extra}"
            f"    linalg.yield {result} : bf16\n  }}}} -> {FULL}\n")


GATHER_STREAMS = [
    make("embedding", 0, 0, ("ids", "t"), gather("x"), ["%x"], [FULL]),
    make("embedding_cast", 0, 0, ("ids", "t", "scale"),
         gather("x", "    %out = arith.mulf %row_e, %row_e : bf16\n", "%out") +
         quantize("q", "x", MN, WHOLE) + parts("q", MN, WHOLE) + transpose("qt", "q", MN, WHOLE) +
         parts("qt", NM, WHOLE) + amax_of("x"), ["%q_p", "%qt_p", "%amax"], [CODES, TURNED, ONE]),
    make("embedding_norm", 0, 0, ("ids", "t", "w"), gather("x") + SQUARES + NORM, ["%h"], [FULL],
         approximate=True),
]
