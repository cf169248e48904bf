"""Epilogues of the matmuls: their operands, and their body in the dialect."""

# GELU by tanh of the f32 %in.
GELU_TANH = """
    %c0 = arith.constant 0.044715 : f32
    %c1 = arith.constant 0.7978845608 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %1 = arith.mulf %in, %in : f32
    %2 = arith.mulf %1, %in : f32
    %3 = arith.mulf %2, %c0 : f32
    %4 = arith.addf %in, %3 : f32
    %5 = arith.mulf %4, %c1 : f32
    %6 = math.tanh %5 : f32
    %7 = arith.addf %6, %one : f32
    %8 = arith.mulf %in, %half : f32
    %x = arith.mulf %8, %7 : f32"""

# Each epilogue: operands as (dimensions, type), scalars, the body up to the f32
# %x that is stored, and whether %x is quantized with %scale and measured.
EPILOGUES = {
    "none": None,
    "bias_relu": {
        "operands": [("n", "bf16")],
        "body": """
    %1 = arith.extf %o0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %zero = arith.constant 0.0 : f32
    %x = arith.maximumf %2, %zero : f32""",
    },
    "residual_silu": {
        "operands": [("mn", "bf16")],
        "body": """
    %1 = arith.extf %o0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %one = arith.constant 1.0 : f32
    %3 = arith.negf %2 : f32
    %4 = math.exp %3 : f32
    %5 = arith.addf %4, %one : f32
    %x = arith.divf %2, %5 : f32""",
    },
    "gate": {
        "operands": [("mn", "bf16"), ("m", "f32")],
        "body": """
    %1 = arith.extf %o0 : bf16 to f32
    %2 = arith.mulf %acc, %1 : f32
    %x = arith.addf %2, %o1 : f32""",
    },
    "bias_gelu": {
        "operands": [("n", "bf16")],
        "body": """
    %1 = arith.extf %o0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %root = arith.constant 0.70710678118 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %3 = arith.mulf %2, %root : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.mulf %2, %5 : f32
    %x = arith.mulf %6, %half : f32""",
    },
    "gelu_tanh": {"operands": [], "body": GELU_TANH.replace("%in", "%acc")},
    "bias_gelu_tanh": {
        "operands": [("n", "bf16")],
        "body": """
    %wide = arith.extf %o0 : bf16 to f32
    %in = arith.addf %acc, %wide : f32""" + GELU_TANH,
    },
    # C += A B in place: a gradient of the weights.
    "accumulate": {
        "operands": [("mn", "f32")],
        "body": """
    %x = arith.addf %acc, %o0 : f32""",
    },
}
EPILOGUES["quantize"] = {"operands": [], "body": "", "quantize": True}
for _name in ("bias_gelu", "bias_gelu_tanh"):
    EPILOGUES[_name + "_quantize"] = {**EPILOGUES[_name], "quantize": True}
