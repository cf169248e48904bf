"""The matmul kernels that benchmarks/gemm.py checks and times: what each
computes, as a program of the dialect, as cubin, and in PyTorch.

usage: gemm_kernels.py [--build-dir build] --out DIR
"""

import argparse
import json
import re
import subprocess
from pathlib import Path

from gemm_shapes import DECODE_SHAPES, SHAPES

FLOATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
BLOCKS = {
    "tensor": ("*", "*"),
    "row": ("1", "*"),
    "1x128": ("1", "128"),
    "128x128": ("128", "128"),
}
EXTENT = 4096  # Of every dimension in the programs; kernels take it at run time.
BATCHES = 3

# Each epilogue: operands as (dimensions, type), scalars, the body up to the f32
# %x that is stored, and whether %x is quantised with %scale and measured.
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
    "gelu_tanh": {
        "operands": [],
        "body": """
    %c0 = arith.constant 0.044715 : f32
    %c1 = arith.constant 0.7978845608 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %1 = arith.mulf %acc, %acc : f32
    %2 = arith.mulf %1, %acc : f32
    %3 = arith.mulf %2, %c0 : f32
    %4 = arith.addf %acc, %3 : f32
    %5 = arith.mulf %4, %c1 : f32
    %6 = math.tanh %5 : f32
    %7 = arith.addf %6, %one : f32
    %8 = arith.mulf %acc, %half : f32
    %x = arith.mulf %8, %7 : f32""",
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
    # C += A B in place: a gradient of the weights.
    "accumulate": {
        "operands": [("mn", "f32")],
        "body": """
    %x = arith.addf %acc, %o0 : f32""",
    },
}
EPILOGUES["quantize"] = {"operands": [], "body": "", "quantize": True}
EPILOGUES["bias_gelu_quantize"] = {**EPILOGUES["bias_gelu"], "quantize": True}


def config(tile_m, tile_n, stages, **others):
    entries = {"tile_m": tile_m, "tile_n": tile_n, "stages": stages, **others}
    text = ", ".join(f"{key} = {value}" for key, value in entries.items())
    return f"#fp8.gemm_config<{text}>"


def swapped(tile_m, split_k=1):
    stages = 12 if tile_m <= 32 else 10 if tile_m <= 64 else 8
    return config(tile_m, 64, stages, consumers=1, group=1, split_k=split_k,
                  swap_ab="true", store="direct")


SMALL = [swapped(16), swapped(64), swapped(16, 4)]


def kind(a="e4m3", b="e4m3", result="bf16", scale_a="tensor", scale_b="tensor",
         accumulate="fast", epilogue="none", batched=False, configs=(), **others):
    return {"a": a, "b": b, "result": result, "scale_a": scale_a,
            "scale_b": scale_b, "accumulate": accumulate, "epilogue": epilogue,
            "batched": batched, "configs": configs, **others}


ONE_FAST = [config(128, 256, 4)]
ONE_PROMOTED = [config(256, 128, 4)]
ONE_BLOCK = [config(128, 128, 5)]

# What is timed, against peers: every config that the selection chooses from.
TABLE = None
TIMED = {
    "tensor_fast": kind(configs=TABLE),
    "tensor_promote": kind(accumulate="promote", configs=TABLE),
    "row_fast": kind(scale_a="row", scale_b="row", configs=TABLE),
    "block": kind(scale_a="1x128", scale_b="128x128", accumulate="promote",
                  configs=TABLE),
    "tensor_fast_gelu": kind(epilogue="bias_gelu_quantize", result="e4m3",
                             configs=TABLE),
}
# What is only checked.
CHECKED = {
    "e5m2_e4m3_f16": kind(a="e5m2", result="f16", configs=ONE_FAST),
    "e4m3_e5m2_f32": kind(b="e5m2", result="f32", configs=ONE_FAST),
    "row_promote": kind(scale_a="row", scale_b="row", accumulate="promote",
                        configs=ONE_PROMOTED),
    "row_f32": kind(scale_a="row", scale_b="row", result="f32",
                    configs=[config(128, 192, 4)]),
    "block_1x128": kind(scale_a="1x128", scale_b="1x128", accumulate="promote",
                        configs=ONE_BLOCK),
    "block_128x128_1x128": kind(scale_a="128x128", scale_b="1x128", result="f32",
                                accumulate="promote", configs=ONE_BLOCK),
    "direct": kind(configs=[config(128, 128, 6, store="direct"),
                            config(128, 128, 6, split_k=2, store="direct")]),
    "direct_f32": kind(result="f32", scale_a="row", scale_b="row",
                       configs=[config(128, 128, 6, store="direct")]),
    "batch": kind(batched=True, scale_a="row", scale_b="row", configs=ONE_FAST),
    "batch_block": kind(batched=True, scale_a="1x128", scale_b="128x128",
                        accumulate="promote", configs=ONE_BLOCK),
    "bias_relu": kind(epilogue="bias_relu", configs=ONE_FAST + SMALL[:2]),
    "residual_silu": kind(epilogue="residual_silu", configs=ONE_FAST + SMALL[:2]),
    "gate": kind(epilogue="gate", configs=ONE_FAST),
    "gelu_tanh": kind(epilogue="gelu_tanh", result="f32", configs=ONE_FAST),
    "bias_gelu": kind(epilogue="bias_gelu", configs=ONE_FAST),
    "quantize_e5m2": kind(epilogue="quantize", result="e5m2", configs=ONE_FAST),
    "quantize_direct": kind(epilogue="quantize", result="e4m3",
                            configs=[config(128, 128, 6, store="direct")]
                            + SMALL[:2]),
    "accumulate": kind(epilogue="accumulate", result="f32", accumulate="promote",
                       configs=ONE_PROMOTED),
}
KINDS = {**TIMED, **CHECKED}


def program(spec, m=EXTENT, n=EXTENT, k=EXTENT):
    """One function for each config, or one that leaves the choice open."""
    batch = f"{BATCHES}x" if spec["batched"] else ""

    def scaled(element, scale, rows):
        block = list(BLOCKS[scale])
        if spec["batched"]:
            block.insert(0, "*" if scale == "tensor" else "1")
        return (f"!fp8.scaled<{batch}{rows}x{k}x{FLOATS[element]}, "
                f"block = [{', '.join(block)}], scale = f32>")

    a = scaled(spec["a"], spec["scale_a"], m)
    b = scaled(spec["b"], spec["scale_b"], n)
    element = FLOATS.get(spec["result"], spec["result"])
    types = [f"tensor<{batch}{m}x{n}x{element}>"]
    arguments = [f"%a: {a}", f"%b: {b}"]
    region = ""
    epilogue = EPILOGUES[spec["epilogue"]]
    if epilogue:
        names, inner = [], ["%acc: f32"]
        for i, (dims, dtype) in enumerate(epilogue["operands"]):
            shape = {"n": [n], "m": [m, 1], "mn": [m, n]}[dims]
            tensor = f"tensor<{'x'.join(map(str, shape))}x{dtype}>"
            arguments.append(f"%t{i}: {tensor}")
            names.append(f"%t{i} : {tensor}")
            inner.append(f"%o{i}: {dtype}")
        body, result = epilogue["body"], "%x"
        if not body:
            body, result = "", "%acc"
        yields = [f"{result} : f32"]
        if epilogue.get("quantize"):
            arguments.append("%scale: f32")
            limit = {"e4m3": "448.0", "e5m2": "57344.0"}[spec["result"]]
            body += f"""
    %high = arith.constant {limit} : f32
    %low = arith.constant -{limit} : f32
    %s = arith.mulf {result}, %scale : f32
    %above = arith.cmpf ogt, %s, %high : f32
    %s1 = arith.select %above, %high, %s : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %q = arith.truncf %s2 : f32 to {element}"""
            yields = [f"%q, {result} : {element}, f32"]
            types.append("tensor<1x1xf32>")
        elif spec["result"] != "f32":
            body += f"\n    %r = arith.truncf {result} : f32 to {element}"
            yields = [f"%r : {element}"]
        operands = []
        shapes = []
        for name in names:
            value, tensor = name.split(" : ")
            operands.append(value)
            shapes.append(tensor)
        listed = f"({', '.join(operands)} : {', '.join(shapes)})" if operands else ""
        region = (f" epilogue{listed} {{\n  ^bb0({', '.join(inner)}):"
                  f"{body}\n    fp8.yield {yields[0]}\n  }}")
    accumulate = " accumulate = fast" if spec["accumulate"] == "fast" else ""
    values = "%0" if len(types) == 1 else "%0#0, %0#1"
    count = "" if len(types) == 1 else f":{len(types)}"
    text = []
    for i, pinned in enumerate(spec["configs"] or [None]):
        pin = f" {{fp8.gemm_config = {pinned}}}" if pinned else ""
        text.append(f"""func.func @f{i}({', '.join(arguments)}) -> ({', '.join(types)}) {{
  %0{count} = fp8.matmul %a, %b{accumulate}{region}{pin}
    : {a}, {b} -> {', '.join(types)}
  return {values} : {', '.join(types)}
}}
""")
    return "".join(text)


def build(name, spec, tools, out):
    """Writes NAME.cubin, and NAME.json with the kernels' launches."""
    source = out / f"{name}.mlir"
    source.write_text(program(spec))
    built = out / f"{name}.built.mlir"
    subprocess.run([tools / "fp8-opt", "--fp8-select-kernels=every-candidate",
                    "--fp8-build-kernels", source, "-o", built], check=True)
    for what in ("cubin", "json"):
        subprocess.run([tools / "fp8-translate", f"--kernels-to-{what}", built,
                        "-o", out / f"{name}.{what}"], check=True)
    source.unlink()
    built.unlink()


def select(spec, shapes, tools):
    """What the selection chooses for each shape."""
    chosen = {}
    for m, n, k, *_ in shapes:
        result = subprocess.run([tools / "fp8-opt", "--fp8-select-kernels"],
                                input=program(spec, m, n, k), text=True,
                                capture_output=True, check=True)
        match = re.search(r"#fp8.gemm_config<[^>]*>", result.stdout)
        chosen[f"{m}x{n}x{k}"] = match.group(0)
    return chosen


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--out", required=True)
    parser.add_argument("kinds", nargs="*")
    args = parser.parse_args()
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    for name in args.kinds or KINDS:
        build(name, KINDS[name], Path(args.build_dir) / "bin", out)
        print(name, flush=True)
    selected = {name: select(spec, SHAPES + DECODE_SHAPES,
                             Path(args.build_dir) / "bin")
                for name, spec in TIMED.items()}
    (out / "selected.json").write_text(json.dumps(selected))


if __name__ == "__main__":
    main()
