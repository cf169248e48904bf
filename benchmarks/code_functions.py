"""Functions that read codes: what is kept in 8 bits is dequantized, quantized otherwise,
normalized, copied in the other order.

`benchmarks/fusions.py` checks them beside those of fusion_functions.py, over every code
and factors of every size, and times none.
"""

from fusion_functions import (CODES, E4M3, FULL, MN, NM, NORM, POW2, SQUARES, TURNED, TYPES,
                              WHOLE, blocks, make, measured, parts, quantize, scaled, transpose)

E5M2 = "f8E5M2"
WIDE = "tensor<{m}x{n}xf32>"
# Blocks and types of the factors, by the names of arguments.
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
TYPES["f_1x16"] = f"tensor<{blocks(1, 16)}x{E4M3}>"
TYPES.update({"c": CODES, "c4": CODES.replace(E4M3, "f4E2M1FN"), "c5": CODES.replace(E4M3, E5M2)})


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


def nvfp4(shape, block):
    return (f"!fp8.scaled<{shape}xf4E2M1FN, block = {block}, scale = {E4M3}, "
            "tensor_scale = f32>")


def measured_nvfp4(name, block, grid, amax):
    """With two levels of factors, of x and of its amax."""
    return (f"  %{name}_a = fp8.amax %x block = {block} : {FULL}\n"
            f"  %{name}_s, %{name}_i, %{name}_t = fp8.compute_scale %{name}_a "
            f"tensor_amax({amax} : tensor<1x1xf32>) format = f4E2M1FN scale_type = {E4M3} : "
            f"tensor<{grid}xf32>\n"
            f"  %{name} = fp8.quantize %x scale(%{name}_s, %{name}_i : tensor<{grid}xf32>, "
            f"tensor<{grid}x{E4M3}>) tensor_scale_inv(%{name}_t : tensor<1x1xf32>) : {FULL} -> "
            f"{nvfp4(MN, block)}\n")


def parts_nvfp4(name, shape, block):
    return f"  %{name}_p, %{name}_f, %{name}_z = fp8.disassemble %{name} : {nvfp4(shape, block)}\n"


CODES4, ROWS4 = TYPES["c4"], TYPES["f_1x16"]
TENSOR_AMAX = f"  %amax = fp8.amax %x block = [*, *] : {FULL}\n"

CODE_STREAMS = [
    # In 4 bits: by a given amax, a measured one, in squares and both orders; and back.
    make("nvfp4_given", 0, 0, ("x", "scale"),
         measured_nvfp4("q", "[1, 16]", blocks(1, 16), "%s") + parts_nvfp4("q", MN, "[1, 16]"),
         ["%q_p", "%q_f", "%q_z"], [CODES4, ROWS4, "tensor<1x1xf32>"]),
    make("nvfp4", 0, 0, ("x",), TENSOR_AMAX +
         measured_nvfp4("q", "[1, 16]", blocks(1, 16), "%amax") +
         parts_nvfp4("q", MN, "[1, 16]"), ["%q_p", "%q_f", "%q_z"],
         [CODES4, ROWS4, "tensor<1x1xf32>"]),
    make("nvfp4_both", 0, 0, ("x", "scale"),
         measured_nvfp4("q", "[16, 16]", blocks(16, 16), "%s") +
         parts_nvfp4("q", MN, "[16, 16]") +
         f"  %t = fp8.transpose %q permutation = [1, 0] : {nvfp4(MN, '[16, 16]')}\n" +
         parts_nvfp4("t", NM, "[16, 16]"), ["%q_p", "%q_f", "%t_p"],
         [CODES4, f"tensor<{blocks(16, 16)}x{E4M3}>", CODES4.replace(MN, NM)]),
    make("dequantize_nvfp4", 0, 0, ("c4", "f_1x16", "scale"),
         f"  %v = fp8.assemble %c4, %f_1x16, %si : {CODES4}, {ROWS4}, tensor<1x1xf32> -> "
         f"{nvfp4(MN, '[1, 16]')}\n"
         f"  %y = fp8.dequantize %v : {nvfp4(MN, '[1, 16]')} -> {FULL}\n", ["%y"], [FULL],
         any_nan=True),
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
