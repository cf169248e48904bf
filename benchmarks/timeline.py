"""A timeline of sm_100a's matmul kernels, computed: no chip takes part.

Kernels run on the emulator, on a few tiles, and it counts what they do (FP8_EMULATOR_COUNTS): bytes that
bulk copies bring, products by shape, columns that are taken from tensor memory, instructions of warps.
From the counts of a K block and of a tile, and from a B200's published rates, one multiprocessor's
clocks are simulated: the ring between L2 and the tensor core, two sets of sums, the warps that take them,
their staging buffers. Busy is the share of the time in which the tensor core multiplies, on the
multiprocessor with the most tiles; what bounds is what has the most to do. Of factors beside the operands
(MXFP8, NVFP4, MXFP4) it is not known how many lines L1 keeps: `scattered` is the share if it keeps none.
Sums of K blocks that are promoted in registers (block: factors of 1x128 and 128x128 in f32) have a set each, as many
as there are, and the warps that finish tiles take and add them meanwhile.

usage: timeline.py BUILD [--kinds KIND...] [--shapes MxNxK...] [--configs REGEX]
"""

import argparse
import json
import math
import os
import re
import subprocess
import tempfile
from collections import namedtuple
from pathlib import Path

import ml_dtypes
import numpy as np

from fp8 import tensors

# Rates of a multiprocessor, in a clock: multiplications of FP8, of FP4 twice as many; bytes of L2 (20.2 TB/s of them all), of
# shared memory, of tensor memory that are read, of results that leave; of HBM (6.95 TB/s), and how many multiprocessors there
# are. The first is the data sheet's, others were measured by third parties.
MMA, L2, SHARED, TENSOR, STORE, HBM, SMS = 8192, 69, 128, 466, 64, 25, 148
FMA = 128  # Multiply-adds in f32, of the data sheet's 80 TFLOP/s.
# Clocks, guessed: of a launch, until a copy's first byte, of a barrier between warps, of a tcgen05.ld;
# of parts of K that are added up, and of each.
START, LATENCY, SYNC, LOAD, REDUCE, REDUCE_PART = 2000, 1000, 100, 200, 6000, 600
STEP, SECTOR = 128, 32  # Bytes of K: a K block; of L2 that a scattered copy takes.
COLUMNS, SHARED_STEP = 512, 32  # Columns of tensor memory; sets of sums share a multiple.
FINISHERS = 4  # The first warp of those that finish tiles.
# `sharing` codes are a byte; `rows` of B share a factor.
Kind = namedtuple("Kind", "codes block factors dtype sharing rows", defaults=[1])
KINDS = {"fp8": Kind("f8E4M3FN", 0, "f32", np.float32, 1),
         "block": Kind("f8E4M3FN", 128, "f32", np.float32, 1, 128),
         "mxfp8": Kind("f8E4M3FN", 32, "f8E8M0FNU", ml_dtypes.float8_e8m0fnu, 1),
         "mxfp4": Kind("f4E2M1FN", 32, "f8E8M0FNU", ml_dtypes.float8_e8m0fnu, 2),
         "nvfp4": Kind("f4E2M1FN", 16, "f8E4M3FN", ml_dtypes.float8_e4m3fn, 2)}

Config = namedtuple("Config", "text tile_m tile_n stages split swapped staging epilogue_warpgroups cta_group")
# Work of a block of threads: for each K block, or for each tile.
Work = namedtuple("Work", "products loaded copied stored taken waits instructions")


def parse(text):
    get = lambda name, default: re.search(rf"{name} = (\w+)", text)[1] if name in text else default
    return Config(text, int(get("tile_m", 0)), int(get("tile_n", 0)), int(get("stages", 0)), int(get("split_k", 1)),
                  get("swap_ab", "false") == "true", int(get("staging", 2)), int(get("epilogue_warpgroups", 1)),
                  int(get("cta_group", 1)))


def write_program(kind, m, n, k, config=""):
    """The text, and shapes and dtypes of its arguments."""
    of = KINDS[kind]
    attribute = f" {{fp8_gpu.config = {config}}}" if config else ""
    dtype = ml_dtypes.float8_e4m3fn if of.sharing == 1 else ml_dtypes.float4_e2m1fn
    blocks = [f"[{rows}, {of.block}]" if of.block else "[*, *]" for rows in (1, of.rows)]
    tensor = ", tensor_scale = f32" if kind == "nvfp4" else ""
    types = [f"!fp8.scaled<{rows}x{k}x{of.codes}, block = {block}, scale = {of.factors}{tensor}>"
             for rows, block in zip((m, n), blocks)]
    declared, body, arguments = [], "", []
    for name, rows, shared, type_ in zip("ab", (m, n), (1, of.rows), types):
        high, wide = (math.ceil(rows / shared), k // of.block) if of.block else (1, 1)
        parts = [(f"{rows}x{k}x{of.codes}", (rows, k), dtype), (f"{high}x{wide}x{of.factors}", (high, wide), of.dtype)]
        if tensor:
            parts.append(("1x1xf32", (1, 1), np.float32))
        names = [f"%{name}{i}" for i in range(len(parts))]
        tensors_ = [f"tensor<{part[0]}>" for part in parts]
        declared += [f"{own}: {of_own}" for own, of_own in zip(names, tensors_)]
        arguments += [part[1:] for part in parts]
        body += f"  %{name} = fp8.assemble {', '.join(names)} : {', '.join(tensors_)} -> {type_}\n"
    return (f"func.func @main({', '.join(declared)}) -> tensor<{m}x{n}xbf16> {{\n{body}"
            f"  %d = fp8.matmul %a, %b{attribute} : {types[0]}, {types[1]} -> tensor<{m}x{n}xbf16>\n"
            f"  return %d : tensor<{m}x{n}xbf16>\n}}\n"), arguments


def list_configs(build, kind):
    text, _ = write_program(kind, 8192, 8192, 8192)
    every = subprocess.run([build / "bin/fp8-opt", "--fp8-set-target=chip=sm_100a",
                            "--fp8-select-kernels=every-candidate"], input=text, text=True, capture_output=True,
                           check=True).stdout
    return [parse(found) for found in re.findall(r"fp8_gpu\.config = (#fp8_sm100\.gemm<[^>]*>)", every)]


# ----------------------------------------------------------------------------------------------------------------------
# Counts
# ----------------------------------------------------------------------------------------------------------------------


def count(build, kind, config, tiles, k_blocks, folder):
    """What a launch of so many tiles did, by all of its blocks: one cluster's."""
    m, n = config.tile_m, config.tile_n * tiles
    k = STEP * KINDS[kind].sharing * k_blocks * config.split
    text, arguments = write_program(kind, m, n, k, config.text)
    # Factors are 1, codes 0.
    arrays = {f"arg{i}": (np.ones if dtype == KINDS[kind].dtype else np.zeros)(shape, np.float32).astype(dtype)
              for i, (shape, dtype) in enumerate(arguments)}
    program, inputs, counts = (str(folder / name) for name in ("program.mlir", "inputs", "counts"))
    Path(program).write_text(text)
    Path(counts).write_text("")
    tensors.save(inputs, arrays)
    environment = {**os.environ, "FP8_CUDA_DRIVER": "emulator", "FP8_EMULATOR_ARCH": "100",
                   "FP8_EMULATOR_SMS": str(config.cta_group), "FP8_EMULATOR_ORDER": "eager",
                   "FP8_EMULATOR_MATH": "f32", "FP8_EMULATOR_COUNTS": counts}
    subprocess.run([build / "bin/fp8-run", program, "--target=sm_100a", f"--inputs={inputs}"], env=environment,
                   check=True, capture_output=True)
    launches = [json.loads(line) for line in Path(counts).read_text().splitlines()]
    matmul, = (launch for launch in launches if launch["kernel"].startswith("fp8_matmul"))
    products = 0
    for name, times in matmul["products"].items():
        rows, columns = map(int, name.split()[1].split("x"))
        products += times * rows * columns * 32  # as FP8: 32 bytes of K
    warps = matmul["instructions"]
    return np.array([products, *(matmul[name] for name in ("loaded", "copied", "stored", "taken", "waits")),
                     max(warps[FINISHERS:])], float)


def measure(build, kind, config, folder):
    """Work of a K block, and of a tile beside its K blocks; of one block of threads."""
    one, three = (count(build, kind, config, tiles, 4, folder) for tiles in (1, 3))
    more = count(build, kind, config, 3, 8, folder)
    block = (more - three) / (3 * 4 * config.split)
    tile = ((three - one) / 2 - 4 * config.split * block) / config.split
    return Work(*block / config.cta_group), Work(*tile / config.cta_group)


def get_shared(kind, config):
    """Columns that two sets of sums share where factors leave no room for both (MatmulLayout.cpp)."""
    of = KINDS[kind]
    cols = config.tile_m if config.swapped else config.tile_n
    atoms = (1 + math.ceil(cols / 128)) * STEP * of.sharing // (4 * of.block) if of.block in (16, 32) else 0
    return math.ceil(max(0, 2 * cols + 4 * atoms - COLUMNS) / SHARED_STEP) * SHARED_STEP


# ----------------------------------------------------------------------------------------------------------------------
# Time
# ----------------------------------------------------------------------------------------------------------------------


def simulate(config, block, tile, m, n, k, shared=0, scattered=0):
    """`k` is in bytes, `shared` in columns of sums that the next tile's products wait for; `scattered` is in bytes, what copies
    of factors take of a line that L1 does not keep. Clocks of one multiprocessor, and of them those in which each of its parts works."""
    tiles = math.ceil(m / config.tile_m) * math.ceil(n / config.tile_n) * config.split
    items = math.ceil(tiles / (SMS // config.cta_group))
    k_blocks = math.ceil(k / STEP / config.split)
    multiply = block.products / MMA
    bring = (block.loaded + block.copied * (SECTOR / scattered if scattered else 1)) / L2
    # Fills of the ring and reads by the tensor core share a port; so do staging buffers, filled and read.
    through = 2 * (block.loaded + block.copied) / SHARED + 2 * tile.stored / SHARED / k_blocks
    step = max(multiply, through)
    # A chunk of a tile's sums: one wait for its load by each of four warps. Instructions are those of one warp.
    chunks = max(1, round(tile.waits / 4))
    take = LOAD + tile.taken / chunks / TENSOR if tile.taken else 0
    work = tile.instructions * config.epilogue_warpgroups / chunks
    leave = tile.stored / chunks / STORE
    # Loads of a K block's sums are under way while others are added. (PTX has moves there that the chip has not.)
    promoted = block.taken > 0
    promote = LOAD + max(block.taken / TENSOR, block.taken / 4 / FMA) if promoted else 0
    cols = config.tile_m if config.swapped else config.tile_n
    # Two that share columns are filled one after the other, when these have been taken.
    sets = min(COLUMNS // cols, 4) if promoted else 1 if shared else 2
    given_back = math.ceil(chunks * shared / cols) if shared else chunks
    free = [0.0] * config.stages  # When stages are
    sums = [0.0] * sets
    l2 = core = epilogue = float(START)
    leaving = [0.0] * config.staging
    stage = part = number = 0
    for item in range(items):
        for i in range(k_blocks):
            begin = max(l2, free[stage])
            l2 = begin + bring
            core = max(core, l2 + LATENCY, sums[number] if promoted or i == 0 else 0) + step
            free[stage] = core + SYNC
            stage = (stage + 1) % config.stages
            if promoted:
                epilogue = max(epilogue, core + SYNC) + promote
                sums[number] = epilogue + SYNC
                number = (number + 1) % sets
        epilogue = max(epilogue, core + SYNC)
        for chunk in range(chunks):
            epilogue += take
            if chunk == given_back - 1 and not promoted:
                sums[number] = epilogue + SYNC
                number = (number + 1) % sets
            epilogue = max(epilogue + work, leaving[part])
            last = max(leaving)
            leaving[part] = max(last, epilogue) + leave
            part = (part + 1) % config.staging
    clocks = max(epilogue, *leaving)
    if config.split > 1:
        clocks += REDUCE + REDUCE_PART * config.split
    memory = (m * k + n * k + 2 * m * n) / HBM / SMS
    clocks = max(clocks, START + memory)
    total = items * k_blocks
    busy = {"tensor core": total * multiply, "shared memory": total * through, "L2": total * bring,
            "warps that finish": total * promote + items * chunks * (take + work), "stores": items * chunks * leave, "HBM": memory}
    return clocks, busy


def describe(config):
    text = f"{config.tile_m}x{config.tile_n}"
    return text + (" of two blocks" if config.cta_group == 2 else "") + (", swapped" if config.swapped else "") + \
        (f", {config.split} parts of K" if config.split > 1 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--shapes", nargs="+", default=["8192x8192x8192", "64x8192x8192"])
    parser.add_argument("--configs", default=".")
    args = parser.parse_args()
    work = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds:
            for config in list_configs(args.build, kind):
                if re.search(args.configs, config.text):
                    work[kind, config] = measure(args.build, kind, config, Path(folder))
    for shape in args.shapes:
        m, n, k = map(int, shape.split("x"))
        for kind in args.kinds:
            print(f"\n{kind} {shape}\n\n| tile | tensor core, clocks of a K block | L2 | shared memory | finishing a tile | "
                  "tensor core busy | of the chip's rate | bound by |\n" + "| --- " * 8 + "|")
            for (of, config), (block, tile) in work.items():
                if of != kind or config.swapped != (m <= 128):
                    continue
                row = k // KINDS[kind].sharing
                shared = get_shared(kind, config)
                clocks, busy = simulate(config, block, tile, m, n, row, shared)
                k_blocks = math.ceil(row / STEP / config.split)
                items = busy["tensor core"] / (block.products / MMA) / k_blocks
                parts = [f"{busy[name] / items / k_blocks:.0f}" for name in ("tensor core", "L2", "shared memory")]
                share = f"{busy['tensor core'] / clocks:.0%}"
                if KINDS[kind].block:
                    # Lanes beside each other copy a row's for a K block.
                    together = STEP * KINDS[kind].sharing // KINDS[kind].block
                    slow, _ = simulate(config, block, tile, m, n, row, shared, together)
                    share += f" ({busy['tensor core'] / slow:.0%} scattered)"
                bound = max(busy, key=busy.get)
                if busy[bound] < 0.5 * clocks:
                    bound = "latency"
                print(f"| {describe(config)} | {' | '.join(parts)} | {busy['warps that finish'] / items:.0f} | {share} | "
                      f"{m * n * row / SMS / MMA / clocks:.0%} | {bound} |")


if __name__ == "__main__":
    main()
