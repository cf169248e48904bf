"""Instructions that a warp issues to lift a K block of packed weights in registers, of kernels for sm_90a as ptxas makes them.

A kernel's main loop has two K blocks. Counted is what is between its products: all instructions, and how many are of the
units that are slow for it. No GPU is needed. Beside them are registers and spills, and what a config is expected to take.

usage: lift_instructions.py [--build-dir build] [--ptxas PTXAS] [--disassembler NVDISASM] [--shapes MxNxK,...]
"""

import argparse
import collections
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

# What a kernel multiplies: A's type, the codes, their factors, elements of K that share one. An f32 is of as many rows.
KINDS = {"nvfp4": ("bf16", "f4E2M1FN", "f8E4M3FN", 16), "mxfp4": ("bf16", "f4E2M1FN", "f8E8M0FNU", 32),
         "mxfp8": ("bf16", "f8E4M3FN", "f8E8M0FNU", 32), "mxfp4_to_e4m3": ("f8E4M3FN", "f4E2M1FN", None, 32),
         "blocks": ("bf16", "f8E4M3FN", "f32", 128), "blocks_f16": ("f16", "f8E4M3FN", "f32", 128),
         "nvfp4_f16": ("f16", "f4E2M1FN", "f8E4M3FN", 16), "mxfp4_f16": ("f16", "f4E2M1FN", "f8E8M0FNU", 32),
         "mxfp8_f16": ("f16", "f8E4M3FN", "f8E8M0FNU", 32)}
# Columns of a tile, which are tokens, rows of it, consumers.
TILES = (8, 64, 1), (16, 64, 2), (64, 64, 1), (64, 64, 3), (16, 64, 4), (16, 64, 5), (32, 128, 2), (64, 256, 2)
CONFIG = ("#fp8_sm90.gemm<tile_m = {}, tile_n = {}, stages = {}, consumers = {}, schedule = cooperative, swap_ab = true, "
          "store = direct, group = 1, lifters = 0>")
# By unit: integers of half rate, products, shared memory, conversions.
UNITS = {"alu": ("LOP3", "SHF", "PRMT", "SEL", "LEA", "ISETP", "IADD3", "BFE", "IMNMX", "PLOP3"),
         "fma": ("IMAD", "HMUL2", "HFMA2", "FMUL", "FFMA", "FADD", "HADD2"), "shared": ("LDS", "STS", "SYNCS"),
         "convert": ("F2FP", "F2F", "I2F", "F2I")}


def tensor(shape, element):
    return f"tensor<{'x'.join(map(str, shape))}x{element}>"


def write_program(kind, shape, pin, arranged):
    a, codes, factor, each = KINDS[kind]
    m, n, k = shape
    mark = " {fp8.arranged = 1 : i64}" if arranged else ""
    x, w, out = tensor((m, k), a), tensor((n, k), codes), tensor((m, n), "f16" if a == "f16" else "bf16")
    if factor is None:
        words, ones, lifted = tensor((-(-k // 128), n), "i32"), tensor((n, 1), "f32"), tensor((n, k), a)
        one = tensor((1, 1), "f32")
        scaled = [f"!fp8.scaled<{rows}x{k}x{a}, block = [{block}, *], scale = f32>" for rows, block in ((m, "*"), (n, 1))]
        return (f"func.func @main(%x: {x}, %xs: {one}, %w: {w}{mark}, %e: {words}, %s: {ones}) -> {out} {{\n"
                f"  %a = fp8.assemble %x, %xs : {x}, {one} -> {scaled[0]}\n"
                f"  %l = fp8.lift %w, %e : {w}, {words} -> {lifted}\n"
                f"  %b = fp8.assemble %l, %s : {lifted}, {ones} -> {scaled[1]}\n"
                f"  %r = fp8.matmul %a, %b accumulate = fast{pin} : {scaled[0]}, {scaled[1]} -> {out}\n"
                f"  return %r : {out}\n}}\n")
    rows = each if factor == "f32" else 1
    grid = tensor((-(-n // rows), k // each), factor)
    extra, one, more = "", "", ""
    if kind.startswith("nvfp4"):
        extra, more = ", tensor_scale = f32", ", %one"
        one = "  %one = arith.constant dense<1.0> : tensor<1x1xf32>\n"
    scaled = f"!fp8.scaled<{n}x{k}x{codes}, block = [{rows}, {each}], scale = {factor}{extra}>"
    wide, types = tensor((n, k), a), f"{w}, {grid}" + ", tensor<1x1xf32>" * bool(more)
    return (f"func.func @main(%x: {x}, %w: {w}{mark}, %s: {grid}) -> {out} {{\n{one}"
            f"  %b = fp8.assemble %w, %s{more} : {types} -> {scaled}\n"
            f"  %d = fp8.dequantize %b {{fp8.folded}} : {scaled} -> {wide}\n"
            f"  %r = fp8.matmul %x, %d accumulate = fast{pin} : {x}, {wide} -> {out}\n"
            f"  return %r : {out}\n}}\n")


def run(command, text=None):
    done = subprocess.run([str(part) for part in command], input=text, text=True, capture_output=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done


def build(args, folder, kind, shape, config, arranged):
    """The listing of a kernel, and what ptxas says of it."""
    program, ptx, cubin = (folder / f"kernel.{suffix}" for suffix in ("mlir", "ptx", "cubin"))
    text = write_program(kind, shape, f" {{fp8_gpu.config = {config}}}" if config else "", arranged)
    tools = Path(args.build_dir) / "bin"
    run([tools / "fp8-opt", "--fp8-set-target=chip=sm_90a", "--fp8-fold-lifts=chip=sm_90a", "--fp8-select-kernels",
         "--fp8-build-kernels", "-o", program], text)
    run([tools / "fp8-translate", "--kernels-to-ptx", program, "-o", ptx])
    said = run([args.ptxas, "-v", "-arch=sm_90a", ptx, "-o", cubin])
    return run([args.disassembler, "-c", "-hex", cubin]).stdout, said.stdout + said.stderr


def find_loop(listing):
    """Opcodes of the smallest loop that has the products of two K blocks."""
    labels, lines, loops = {}, [], []
    for line in listing.splitlines():
        label = re.match(r"^(\.L_x_\d+):", line)
        if label:
            labels[label[1]] = len(lines)
        found = re.search(r"/\*[0-9a-f]{4,}\*/\s+(@!?U?P\d+ )?([A-Z][A-Z0-9_.]*)(.*?);", line)
        if not found:
            continue
        target = re.search(r"\((\.L_x_\d+)\)", found[3])
        if found[2].startswith("BRA") and target and target[1] in labels:
            loops.append((labels[target[1]], len(lines) + 1))
        lines.append(found[2])
    def count(loop):
        return sum(one.startswith(("HGMMA", "QGMMA")) for one in lines[slice(*loop)])
    most = [loop for loop in loops if count(loop) >= 8]
    first, last = min(most, key=lambda loop: loop[1] - loop[0])
    return lines[first:last], count((first, last))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build-dir", default="build")
    for name, default in (("ptxas", "ptxas"), ("disassembler", "nvdisasm")):
        parser.add_argument(f"--{name}", default=shutil.which(default) or f"/usr/local/cuda/bin/{default}")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--listings", type=Path, help="a folder for listings of all kernels")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.kinds:
            for cols, rows, consumers in TILES:
                config = CONFIG.format(cols, rows, max(4, 2 * consumers), consumers)
                for arranged in (False, True):
                    report(args, Path(folder), kind, (cols, 4096, 4096), config, arranged)


def report(args, folder, kind, shape, config, arranged):
    listing, said = build(args, folder, kind, shape, config, arranged)
    cols, rows, consumers = (int(re.search(name + r" = (\d+)", config)[1]) for name in ("tile_m", "tile_n", "consumers"))
    name = f"{kind}{'_arranged' if arranged else ''}"
    if args.listings:
        (args.listings / f"{name}_{cols}x{rows}x{consumers}.sass").write_text(listing)
    opcodes, products = find_loop(listing)
    units = collections.Counter()
    for opcode in opcodes:
        base = opcode.partition(".")[0]
        units[next((unit for unit, names in UNITS.items() if base.startswith(names)), "other")] += 1
    # A product has four steps of 32 bytes: each is 64 rows of a K block.
    blocks = products / 4
    parts = ", ".join(f"{unit} {units[unit] / blocks:.0f}" for unit in (*UNITS, "other"))
    spills = re.findall(r"(\d+) bytes spill stores", said)
    registers = re.search(r"Used (\d+) registers", said)[1]
    print(f"{name:24}{cols:4} x {rows:3} of {consumers}: {len(opcodes) / blocks:6.1f} a warp for 64 rows of a block ({parts}); "
          f"{registers} registers, {max(map(int, spills))} bytes spilled"
          + ", serialized" * ("C7510" in said or "serialized" in said), flush=True)


if __name__ == "__main__":
    main()
