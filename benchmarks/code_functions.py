"""Functions that read codes: what is kept in 8 bits is dequantised, quantised otherwise,
normalised, copied in the other order.

`benchmarks/streams.py` checks them beside those of stream_functions.py, over every code
and factors of every size, and times none.
"""

from stream_functions import (CODES, E4M3, FULL, MN, NM, NORM, POW2, SQUARES, TURNED, TYPES,
                              WHOLE, blocks, make, measured, parts, quantize, scaled, transpose)

E5M2 = "f8E5M2"
WIDE = "tensor<{m}x{n}xf32>"
# Of the factors, by the names of arguments: the block and the type.
FACTORS = {
    "si": (WHOLE, "1x1", "f32"),
    "f_row": ("[1, *]", "{m}x1", "f32"),
    "f_column": ("[*, 1]", "1x{n}", "f32"),
    "f_1x128": ("[1, 128]", blocks(1, 128), "f32"),
    "f_128x1": ("[128, 1]", blocks(128, 1), "f32"),
    "f_128x128": ("[128, 128]", blocks(128, 128), "f32"),
    "f_1x32": ("[1, 32]", blocks(1, 32), "f8E8M0FNU"),
    "f_1x24": ("[1, 24]", blocks(1, 24), "f32"),
    "f_32x1": ("[32, 1]", blocks(32, 1), "f8E8M0FNU"),
}
TYPES.update({name: f"tensor<{grid}x{scale}>" for name, (_, grid, scale) in FACTORS.items()})
TYPES.update({"c": CODES, "c5": CODES.replace(E4M3, E5M2)})


def assemble(name, codes, factor):
    """The scaled value of two arguments."""
    return (f"  %{name} = fp8.assemble %{codes}, %{factor} : {TYPES[codes]}, {TYPES[factor]} -> "
            f"{type_of(codes, factor)}\n")


def type_of(codes, factor):
    block, _, scale = FACTORS[factor]
    text = scaled(MN, block, scale)
    return text.replace(E4M3, E5M2) if codes == "c5" else text


def dequantize(name, codes, factor, element="bf16"):
    return (assemble(name + "_v", codes, factor) +
            f"  %{name} = fp8.dequantize %{name}_v : {type_of(codes, factor)} -> "
            f"tensor<{{m}}x{{n}}x{element}>\n")


def make_dequantize(factor, codes="c", element="bf16"):
    name = f"dequantize_{factor.removeprefix('f_')}_{'e5m2_' if codes == 'c5' else ''}{element}"
    return make(name, 0, 0, (codes, factor), dequantize("y", codes, factor, element), ["%y"],
                [f"tensor<{{m}}x{{n}}x{element}>"], any_nan=True)


CODE_STREAMS = [
    *[make_dequantize(factor) for factor in FACTORS],
    make_dequantize("si", element="f32"),
    make_dequantize("f_1x32", "c5"),
    make_dequantize("f_32x1", "c5", "f32"),
    # In other blocks, in both orders; in other blocks for the next product's other operand.
    make("requantize_both", 0, 0, ("c", "f_1x128", "scale"),
         dequantize("x", "c", "f_1x128", "f32") + quantize("q", "x", MN, WHOLE, "f32") +
         parts("q", MN, WHOLE) + transpose("t", "q", MN, WHOLE) + parts("t", NM, WHOLE),
         ["%q_p", "%t_p"], [CODES, TURNED]),
    make("requantize_128x1", 0, 0, ("c", "f_1x128"),
         dequantize("x", "c", "f_1x128", "f32") +
         measured("q", "x", MN, "[128, 1]", blocks(128, 1), rule=POW2, element="f32") +
         transpose("t", "q", MN, "[128, 1]") + parts("t", NM, "[1, 128]"),
         ["%t_p", "%t_f"], [TURNED, "tensor<{n}x{m/128}xf32>"]),
    make("requantize_mx", 0, 0, ("c5", "f_128x128"),
         dequantize("x", "c5", "f_128x128") +
         measured("q", "x", MN, "[1, 32]", blocks(1, 32), scale="f8E8M0FNU") +
         parts("q", MN, "[1, 32]", "f8E8M0FNU"), ["%q_p", "%q_f"],
         [CODES, "tensor<" + blocks(1, 32) + "xf8E8M0FNU>"]),
    make("rmsnorm_of_codes", 0, 0, ("c", "f_1x128", "w"),
         dequantize("x", "c", "f_1x128") + SQUARES + NORM, ["%h"], [FULL], approximate=True),
    # Codes in the other order by who reads them anyway, with factors of each kind.
    make("dequantize_copied", 0, 0, ("c", "f_128x128"),
         dequantize("y", "c", "f_128x128") + transpose("t", "y_v", MN, "[128, 128]") +
         parts("t", NM, "[128, 128]"), ["%y", "%t_p", "%t_f"],
         [FULL, TURNED, "tensor<{n/128}x{m/128}xf32>"], any_nan=True),
    make("dequantize_copied_mx", 0, 0, ("c", "f_1x32"),
         dequantize("y", "c", "f_1x32") + transpose("t", "y_v", MN, "[1, 32]", "f8E8M0FNU") +
         parts("t", NM, "[32, 1]", "f8E8M0FNU"), ["%y", "%t_p", "%t_f"],
         [FULL, TURNED, "tensor<{n/32}x{m}xf8E8M0FNU>"], any_nan=True),
    make("dequantize_copied_narrow", 0, 0, ("c", "f_1x24"),
         dequantize("y", "c", "f_1x24") + transpose("t", "y_v", MN, "[1, 24]") +
         parts("t", NM, "[24, 1]"), ["%y", "%t_p", "%t_f"],
         [FULL, TURNED, "tensor<{n/24}x{m}xf32>"], any_nan=True),
    # The rounding of a cast, simulated.
    make("rounded", 0, 0, ("x", "scale"), quantize("q", "x", MN, WHOLE) +
         f"  %y = fp8.dequantize %q : {scaled(MN, WHOLE)} -> {FULL}\n", ["%y"], [FULL],
         any_nan=True),
]
