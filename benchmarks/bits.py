"""Whether a GPU and its model (docs/Emulator.md) give the same bits: hashes of what programs compute.

usage: bits.py make DIR [--build-dir build]      compiles the programs, with kernels as PTX
       bits.py run DIR CHECK                     a line for each: its name and the hash of its results

CHECK is repeat-check of a build (build/test/Integration/CUDA) or of a bundle. FP8_CUDA_DRIVER=build/lib/libfp8emu.so bits.py run ... on one
machine and bits.py run ... on one with a GPU are to print the same; diff says where they do not.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

RECIPES = ["none", "current", "current,accumulate=fast", "rowwise", "block", "mxfp8", "nvfp4"]
# M, K, N: tails in each dimension, rings that come round, several tiles of a block, split K, swapped operands.
SHAPES = [(32, 256, 64), (32, 1664, 1024), (8, 4096, 128), (512, 256, 512), (200, 400, 264), (130, 272, 1032)]
PROGRAM = """
func.func @linear(%x: tensor<{m}x{k}xbf16> {{fp8.name = "x"}}, %w: tensor<{k}x{n}xbf16> {{fp8.name = "w", fp8.weight}})
    -> (tensor<{m}x{n}xbf16> {{fp8.name = "y"}}) {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{m}x{n}xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %product = linalg.matmul ins(%x, %w : tensor<{m}x{k}xbf16>, tensor<{k}x{n}xbf16>)
                           outs(%zeros : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> loc("linear")
  %y = arith.truncf %product : tensor<{m}x{n}xf32> to tensor<{m}x{n}xbf16>
  return %y : tensor<{m}x{n}xbf16>
}}
"""


def make(args):
    args.folder.mkdir(parents=True, exist_ok=True)
    for m, k, n in SHAPES:
        source = args.folder / f"{m}x{k}x{n}.mlir"
        source.write_text(PROGRAM.format(m=m, k=k, n=n))
        for recipe in RECIPES:
            target = args.folder / f"{source.stem}-{recipe.replace(',', '-').replace('=', '-')}.so"
            subprocess.run([args.build_dir / "bin" / "fp8-compile", source, "--target=sm_90a", f"--recipe={recipe}",
                            "--kernel-format=ptx", "-o", target], check=True, stderr=subprocess.DEVNULL)


def run(args):
    failed = False
    for program in sorted(args.folder.glob("*.so")):
        done = subprocess.run([args.check.resolve(), program.resolve(), "1"], capture_output=True, text=True)
        failed |= done.returncode != 0
        print(program.stem, json.loads(done.stdout)["results"] if done.stdout else done.stderr.strip(), flush=True)
    return int(failed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for function in (make, run):
        command = commands.add_parser(function.__name__)
        command.set_defaults(function=function)
        command.add_argument("folder", type=Path)
        if function is make:
            command.add_argument("--build-dir", type=Path, default=Path("build"))
        else:
            command.add_argument("check", type=Path)
    args = parser.parse_args()
    return args.function(args)


if __name__ == "__main__":
    sys.exit(main())
