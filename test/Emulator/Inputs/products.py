"""Programs of many products that fp8-run runs. Values are small integers, factors powers of two, so that every sum is one
number in any order."""

import argparse
import os
import re
import subprocess
import tempfile

import ml_dtypes
import numpy as np

from fp8 import tensors

CODES = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16,
         "f16": np.float16}
FACTORS = {"f32": np.float32, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu}
RESULTS = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


def config(tile_m, tile_n, stages=3, dialect="fp8_sm90", **more):
    text = ", ".join([f"tile_m = {tile_m}", f"tile_n = {tile_n}", f"stages = {stages}",
                      *(f"{key} = {value}" for key, value in more.items())])
    return f"#{dialect}.gemm<{text}>"


# Configs of sm_90a: every schedule, stores in bulk and element by element, clusters either way.
FAST = [config(128, 128), config(64, 64, consumers=1, pending=1), config(128, 144, schedule="ping_pong", group=4),
        config(64, 48, schedule="ping_pong", pending=1, staging=1), config(128, 64, cluster_m=2),
        config(64, 64, consumers=1, cluster_m=2, cluster_n=2), config(128, 64, store="direct"),
        config(16, 64, consumers=1, swap_ab="true", store="direct", group=1),
        config(64, 128, consumers=2, swap_ab="true", store="direct", cluster_n=2), config(256, 64)]
PROMOTE = [config(128, 128), config(64, 64, consumers=1, overlap="true"),
           config(64, 64, schedule="ping_pong", overlap="true"), config(64, 64, consumers=1, cluster_n=2),
           config(16, 64, consumers=1, swap_ab="true", store="direct"), config(128, 64, store="direct", cluster_m=2)]
# Configs for groups of K.
OF_K = [config(128, 128), config(64, 64, consumers=1), config(128, 48, cluster_m=2),
        config(64, 48, cluster_n=2, consumers=1), config(128, 64, store="direct"),
        config(16, 128, consumers=2, swap_ab="true", store="direct"), config(192, 48, consumers=3)]


def blackwell(tile_m, tile_n, stages=3, **more):
    return config(tile_m, tile_n, stages, "fp8_sm100", **more)


# Configs of sm_100a: one block and two, one warpgroup and two, stored in bulk and element by element; and what is
# promoted in registers.
TENSOR_CORE = [blackwell(128, 128), blackwell(128, 64, epilogue_warpgroups=2, staging=1), blackwell(128, 48, group=1),
               blackwell(256, 128, cta_group=2), blackwell(256, 64, cta_group=2, store="direct"),
               blackwell(128, 64, store="direct", epilogue_warpgroups=2), blackwell(16, 128, swap_ab="true", store="direct", group=1),
               blackwell(64, 128, swap_ab="true", store="direct"), blackwell(128, 256, staging=1)]
# Configs of sm_89: both numbers of warpgroups, both stores, both sides.
MMA = [config(128, 64, 2, "fp8_mma", warpgroups=2), config(64, 32, 4, "fp8_mma", store="direct"),
       config(16, 64, 3, "fp8_mma", group=1, swap_ab="true", store="direct")]
REGISTERS = [blackwell(128, 128, epilogue_warpgroups=2, staging=1), blackwell(128, 64), blackwell(128, 32, store="direct"),
             blackwell(256, 128, cta_group=2, epilogue_warpgroups=2, staging=1), blackwell(16, 128, swap_ab="true", store="direct")]


def tensor(shape, element):
    return f"tensor<{''.join(f'{extent}x' for extent in shape)}{element}>"


class Operand:
    """A program's arguments for one, and what makes it of them.

    Extents that are "?" show when the program runs. `block` is that of the factors, of all other dimensions 1, "*" for one
    factor, None for none. An operand that `is_transposed` has its last two dimensions the other way around in memory, as
    factors that are `is_stored` have where they are of rows and change along K.
    """

    def __init__(self, name, shape, element, block=None, is_transposed=False, is_stored=False):
        self.element, self.is_transposed, self.made = element, is_transposed, ""
        rank = len(shape)
        self.block = None if block is None else ["*"] * rank if block == "*" else ["1"] * (rank - len(block)) + list(block)
        given = [*shape[:-2], shape[-1], shape[-2]] if is_transposed else shape
        self.type = tensor(given, element)
        if block is None:
            self.arguments = [f"%{name}: {self.type}"]
            return
        self.scale = "f8E8M0FNU" if "32" in self.block else "f32"
        factors = tensor(self.get_grid(shape), self.scale)
        codes, self.type = self.type, (f"!fp8.scaled<{'x'.join(map(str, given))}x{element}, "
                                       f"block = [{', '.join(self.block)}], scale = {self.scale}>")
        self.arguments = [f"%{name}_codes: {codes}", f"%{name}_factors: {factors}"]
        self.is_stored = is_stored and self.block[-2:] == ["1", "128"]
        if self.is_stored:
            extents, order = self.get_grid(shape), [*range(rank - 2), rank - 1, rank - 2]
            stored = tensor([extents[dim] for dim in order], "f32")
            self.arguments[1] = f"%{name}_stored: {stored}"
            sizes = []
            for dim, extent in enumerate(extents):
                if extent == "?":
                    sizes.append(f"%{name}_{dim}")
                    self.made += (f"  %{name}_at_{dim} = arith.constant {order[dim]} : index\n"
                                  f"  {sizes[-1]} = tensor.dim %{name}_stored, %{name}_at_{dim} : {stored}\n")
            self.made += (f"  %{name}_empty = tensor.empty({', '.join(sizes)}) : {factors}\n"
                          f"  %{name}_factors = linalg.transpose ins(%{name}_stored : {stored}) "
                          f"outs(%{name}_empty : {factors}) permutation = {order}\n")
        self.made += f"  %{name} = fp8.assemble %{name}_codes, %{name}_factors : {codes}, {factors} -> {self.type}\n"

    def get_grid(self, shape):
        """The shape of the factors."""
        return [1 if block == "*" else extent if "?" in (extent, block) else -(-extent // int(block))
                for extent, block in zip(shape, self.block)]

    def draw(self, shape, rng, spoil=None):
        """The arguments' arrays, and the values in f32. `spoil` may change codes and factors; it is told how many elements
        along each dimension have one, None for all."""
        codes = rng.integers(-2, 3, shape).astype(np.float32)
        if spoil:
            spoil(codes, [1] * len(shape))
        arrays = [(codes.swapaxes(-1, -2) if self.is_transposed else codes).astype(CODES[self.element])]
        values = codes
        if self.block is not None:
            factors = (2.0 ** rng.integers(-2, 3, self.get_grid(shape))).astype(np.float32)
            if spoil:
                spoil(factors, [None if block == "*" else int(block) for block in self.block])
            stored = factors.swapaxes(-1, -2) if self.is_stored else factors
            arrays.append(stored.astype(FACTORS[self.scale]))
            for dim, block in enumerate(self.block):
                if block not in ("1", "*"):
                    factors = np.repeat(factors, int(block), dim).take(range(shape[dim]), dim)
            values = codes * factors
        return list(map(np.ascontiguousarray, arrays)), values


def spoil(array, blocks, dim, count):
    """NaN from the `count`th element along `dim` on, of codes or of factors; as Operand.draw calls what it is given."""
    if blocks[dim] is not None:
        array.swapaxes(0, dim)[-(-count // blocks[dim]):] = np.nan


def run(tools, target, arguments, body, results, arrays):
    """What a function returns: `results` are names of its values, and their types."""
    return run_each(tools, target, arguments, body, results, [arrays])[0]


def run_each(tools, target, arguments, body, results, inputs):
    """The same for each of some arguments; the function is compiled once."""
    types = ", ".join(type_ for _, type_ in results)
    text = (f"func.func @main({', '.join(arguments)}) -> ({types}) {{\n{body}"
            f"  return {', '.join(name for name, _ in results)} : {types}\n}}\n")
    with tempfile.TemporaryDirectory() as folder:
        source, program, given, written = (os.path.join(folder, name) for name in (
            "p.mlir", "p.so", "in.safetensors", "out.safetensors"))

        def do(tool, *options):
            done = subprocess.run([os.path.join(tools, tool), *options], capture_output=True, text=True)
            if done.returncode or "no kernel" in done.stderr:
                raise SystemExit(f"{done.stderr[:3000]}\n{text[-3000:]}")

        with open(source, "w") as file:
            file.write(text)
        do("fp8-compile", source, f"--target={target}", "-o", program)
        found = []
        for arrays in inputs:
            tensors.save(given, {f"arg{i}": array for i, array in enumerate(arrays)})
            do("fp8-run", program, f"--inputs={given}", f"--outputs={written}")
            results = tensors.load(written)
            found.append([np.array(results[key]) for key in sorted(results, key=lambda key: int("".join(
                c for c in key if c.isdigit()) or 0))])
    return found


def compare(label, actual, expected):
    """0 if both have the same values, and else 1."""
    actual, expected = actual.astype(np.float32), expected.astype(np.float32)
    if actual.shape != expected.shape:
        print(f"{label}: expected {expected.shape}, but got {actual.shape}")
        return 1
    wrong = np.argwhere(actual != expected)
    if len(wrong):
        print(f"{label}: {len(wrong)} wrong, the first at {wrong[0]}, the last at {wrong[-1]}")
    return int(len(wrong) > 0)


def make_parser(targets=None):
    """`targets` are those that --target may name, if it may: the first one else."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tools")
    if targets:
        parser.add_argument("--target", default=next(iter(targets)), choices=list(targets))
    parser.add_argument("--kinds", nargs="*")
    parser.add_argument("--only", type=int, help="of the configs, this one")
    return parser


def choose(configs, args):
    return [config for i, config in enumerate(configs) if args.only in (None, i)]


def choose_for(number, shapes, configs, args, parts=2):
    """Configs for a shape, two of three. The last two share theirs: the last has a K that is short, which has room for so
    many parts."""
    turn, last = min(number, len(shapes) - 2), len(shapes) - 1

    def has_few_parts(text):
        value = {key: int(number) for key, number in re.findall(r"(\w+) = (\d+)", text)}
        shares = value["tile_n"] == 64 and value.get("lifters") == 0
        return value.get("split_k", 1) * (value.get("consumers", 2) if shares else 1) <= parts

    return [text for i, text in enumerate(choose(configs, args)) if (i + turn) % (len(shapes) - 1) < 2
            and (number < last - 1 or has_few_parts(text) == (number == last))]


def check_target(targets, run_kind):
    """As check, of the kinds of the target that the command line names."""
    args = make_parser(targets).parse_args()
    if args.target != "sm_90a":
        os.environ["FP8_EMULATOR_ARCH"] = args.target[3:].rstrip("a")
    return check(targets[args.target], args, run_kind)


def check(kinds, args, run_kind):
    """`run_kind` is given a kind's name, what it is and the arguments, and returns how many products are wrong, of how
    many."""
    failures = 0
    for name in args.kinds or kinds:
        wrong, total = run_kind(name, kinds[name], args)
        print(f"{name}: {total - wrong} of {total} right", flush=True)
        failures += wrong
    return int(failures > 0)
