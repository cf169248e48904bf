"""Runs matmul kernels of every config on the emulator, and compares each with the CPU.

usage: every_config.py BENCHMARKS TOOLS [--target TARGET] [--kinds REGEX] [--shapes MxNxK...] [--every N]
                       [--seeds N...] [--exact] [--bits]

A program has one matmul for each config of a kind, all of the same operands. Where the kind leaves them open, those
that may be the best for the shape, and on sm_90a, where they follow the shape, those that large and random shapes take.
BENCHMARKS is the folder of benchmarks/matmul, whose kinds and epilogues these are, TOOLS that of fp8-opt and fp8-run.
--every takes every Nth config of a kind alone. With --exact factors are such that sums of codes of 4 bits are exact, in
any order: then results in f32 have to be the CPU's bit by bit. With --bits results also have to be those of a CPU with
the GPU's sums, bit by bit, unless the kind's epilogue has functions that kernels approximate.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

import ml_dtypes
import numpy as np

from fp8 import tensors

# Tails in each dimension, several tiles of a block; few rows and long K, as when a model decodes.
SHAPES = ["264x272x400", "24x136x1168", "130x1032x272"]
DTYPES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16,
          "f16": np.float16, "f32": np.float32, "f4E2M1FN": ml_dtypes.float4_e2m1fn}
# Elements along K that share a factor where the tensor core multiplies it, and four factors.
FACTORS = {"1x32": 32, "1x16": 16}


def make(shape, element, rng):
    values = rng.standard_normal(shape)
    scale = {"f8": 8, "f4": 2}.get(element[:2], 1)
    return np.asarray(values * scale).astype(DTYPES[element])


def argument(name, type_, rng, exact):
    """Declarations of what a program is given for an argument, what makes that of it, and the arrays."""
    if type_ == "f32":
        return [f"%{name}: f32"], "", [np.float32(0.5)]
    match = re.fullmatch(r"!fp8\.scaled<([\dx]+)x(\w+), block = \[(.*)\], scale = (\w+)(, .*)?>", type_)
    if not match:
        *extents, element = re.fullmatch(r"tensor<(.*)>", type_).group(1).split("x")
        shape = tuple(map(int, extents))
        values = make(shape, element, rng)
        if name.endswith("_stored"):  # Factors with their rows innermost.
            values = rng.uniform(0.03, 0.12, shape).astype(np.float32)
        return [f"%{name}: {type_}"], "", [values]
    shape = tuple(map(int, match.group(1).split("x")))
    blocks = match.group(3).split(", ")
    scales = tuple(1 if block == "*" else -(-n // int(block)) for n, block in zip(shape, blocks))
    codes_type = f"tensor<{match.group(1)}x{match.group(2)}>"
    scales_type = f"tensor<{'x'.join(map(str, scales))}x{match.group(4)}>"
    made = (f"  %{name} = fp8.assemble %{name}_codes, %{name}_scales : {codes_type}, {scales_type} -> {type_}\n")
    factors = rng.uniform(0.5, 2, scales).astype(np.float32) / np.float32(shape[-1]) ** 0.5
    if match.group(4) == "f8E8M0FNU":
        factors = (2.0 ** rng.integers(-2 if exact else -7, 1, scales)).astype(ml_dtypes.float8_e8m0fnu)
    if match.group(5):
        one = f"tensor<{'x'.join('1' * len(shape))}xf32>"
        made = (f"  %{name} = fp8.assemble %{name}_codes, %{name}_scales, %{name}_scale : {codes_type}, {scales_type}, "
                f"{one} -> {type_}\n")
        factors = rng.choice([1, 1.25, 2, 3], scales) if exact else rng.uniform(0.5, 400, scales)
        factors, of_tensor = factors.astype(ml_dtypes.float8_e4m3fn), 2**-8 if exact else 0.003
        return ([f"%{name}_codes: {codes_type}", f"%{name}_scales: {scales_type}", f"%{name}_scale: {one}"], made,
                [make(shape, match.group(2), rng), factors, np.full((1,) * len(shape), of_tensor, np.float32)])
    return ([f"%{name}_codes: {codes_type}", f"%{name}_scales: {scales_type}"], made,
            [make(shape, match.group(2), rng), factors])


def combine(text, rng, exact):
    """One function of the several that program() made, which differ in their config."""
    functions = re.findall(r"func\.func @f\d+\((.*)\) -> \((.*)\) \{\n((?:.*\n)*?)  return (.*) : .*\n\}\n", text)
    arguments, results, _, _ = functions[0]
    declared, body, arrays = [], "", []
    for name, type_ in re.findall(r"%(\w+): ((?:[^,<]|<[^>]*>)+)", arguments):
        more, made, values = argument(name, type_.strip(), rng, exact)
        declared += more
        body += made
        arrays += values
    values = []
    for i, (_, _, matmul, returned) in enumerate(functions):
        operands, matmul = re.fullmatch(r"((?:.*\n)*?)(  %0\b(?:.*\n)*)", matmul).groups()
        body += operands if i == 0 else ""
        body += re.sub(r"%0\b", f"%result{i}", matmul)
        values += re.sub(r"%0\b", f"%result{i}", returned).split(", ")
    types = ", ".join([results] * len(functions))
    body += f"  return {', '.join(values)} : {types}\n"
    program = f"func.func @main({', '.join(declared)}) -> ({types}) {{\n{body}}}\n"
    return program, {f"arg{i}": array for i, array in enumerate(arrays)}


def get_open_configs(spec, extents, target, tool):
    """Those of a kind that does not say them."""
    from matmul.program import program
    choose = [tool("fp8-opt"), f"--fp8-set-target=chip={target}", "--fp8-select-kernels=every-candidate"]
    every = subprocess.run(choose, input=program(spec, *extents), text=True, capture_output=True, check=True).stdout
    configs = re.findall(r"fp8_gpu\.config = (#fp8_\w+\.gemm<[^>]*>)", every)
    if target != "sm_90a":
        return configs
    from gemm_kernels import select
    from gemm_shapes import DECODE_SHAPES, SHAPES as LARGE_SHAPES, random_shapes
    shapes = LARGE_SHAPES + DECODE_SHAPES + random_shapes(1, 60)

    def fits(config):
        pinned = program({**spec, "configs": [config]}, *extents)
        built = subprocess.run([*choose, "--fp8-build-kernels"], input=pinned, text=True, capture_output=True)
        return built.returncode == 0
    others = sorted(set(select(spec, shapes, pathlib.Path(tool(""))).values()) - set(configs))
    return configs + list(filter(fits, others))


def has_cpu_bits(spec, epilogues):
    """Whether kernels compute nothing as a CPU does not."""
    epilogue = epilogues[spec["epilogue"]]
    return not epilogue or "math." not in epilogue["body"]


def find_differences(found, expected):
    """Names of tensors whose bytes are not the same, and how many are not."""
    one, other = tensors.load(found), tensors.load(expected)
    if one.keys() != other.keys():
        return [f"expected {sorted(other)}, but got {sorted(one)}"]
    differences = []
    for name, tensor in one.items():
        same = np.atleast_1d(tensor).view(np.uint8) == np.atleast_1d(other[name]).view(np.uint8)
        if not same.all():
            differences.append(f"{name}: {(~same).sum()} of {same.size} bytes differ")
    return differences


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("benchmarks")
    parser.add_argument("tools")
    parser.add_argument("--target", default="sm_90a", choices=["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_121a"])
    parser.add_argument("--kinds", default=".")
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--exact", action="store_true")
    parser.add_argument("--bits", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, args.benchmarks)
    if args.target == "sm_90a":
        from matmul.kinds import KINDS
    elif args.target == "sm_100a":
        from matmul.blackwell import KINDS
    elif args.target in ("sm_80", "sm_89"):
        from matmul.ada import KINDS
    else:
        from matmul.small_blackwell import KINDS
    os.environ["FP8_EMULATOR_ARCH"] = args.target[3:].rstrip("a")
    from matmul.epilogues import EPILOGUES
    from matmul.program import program

    tool = lambda name: os.path.join(args.tools, name)
    folder = tempfile.mkdtemp()
    failed = total = same = 0
    for name, spec in KINDS.items():
        if not re.search(args.kinds, name) or spec.get("dynamic"):
            continue
        for shape in args.shapes:
            m, n, k = map(int, shape.split("x"))
            # Rows of results and of operands begin at multiples of 16 bytes.
            a_transposed, b_transposed = (spec.get("layout", "nt")[i] == "tn"[i] for i in range(2))
            rows = 16 if spec["a"].startswith("e") else 8
            cols = 16 if spec["result"].startswith("e") or b_transposed and rows == 16 else 1
            blocks = 4 * FACTORS.get(spec["scale_a"], 0.25)
            extents = (-(-m // rows) * rows if a_transposed else m, -(-n // cols) * cols, int(-(-k // blocks) * blocks))
            configs = spec["configs"] or get_open_configs(spec, extents, args.target, tool)
            configs = configs[zlib.crc32(f"{name} {shape}".encode()) % args.every::args.every]
            if not configs:
                continue
            text, arrays = combine(program({**spec, "configs": configs}, *extents), np.random.default_rng(0), args.exact)
            source, inputs, found, expected = (os.path.join(folder, name)
                                               for name in ("program.mlir", "inputs", "found", "expected"))
            with open(source, "w") as file:
                file.write(text)
            tensors.save(inputs, arrays)
            # One step of 8 bits is up to an eighth of a number, or a quarter.
            tolerance = "0" if args.exact else {"e4m3": "0.13", "e5m2": "0.26"}.get(spec["result"], "0.01")
            bits = args.bits and has_cpu_bits(spec, EPILOGUES)
            if bits:
                subprocess.run([tool("fp8-run"), source, f"--inputs={inputs}", f"--outputs={expected}",
                                "--accumulate=tensor-core", f"--accumulation-of={args.target}"], check=True)
            for seed in args.seeds:
                environment = {**os.environ, "FP8_EMULATOR_SEED": str(seed)}
                done = subprocess.run(
                    [tool("fp8-run"), source, f"--target={args.target}", f"--inputs={inputs}", "--compare=cpu",
                     f"--tolerance={tolerance}", f"--outputs={found}"], env=environment, capture_output=True, text=True)
                differences = find_differences(found, expected) if bits and not done.returncode else []
                total += len(configs)
                same += len(configs) if bits and not differences else 0
                if done.returncode or differences:
                    failed += 1
                    print(text[:2000], done.stdout, done.stderr, *differences, sep="\n")
                outcome = ", FAILED" if done.returncode or differences else ""
                print(f"{name} {shape} seed {seed}: {len(configs)} configs{outcome}", flush=True)
    print(f"{total} kernels run, {failed} programs failed")
    if args.bits:
        print(f"{same} kernels have the bits of a CPU with their sums")
    return int(failed > 0 or total == 0)


if __name__ == "__main__":
    sys.exit(main())
