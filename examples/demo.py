"""`make demo`: one bf16 MLP under every stateless recipe, run on this machine.

usage: demo.py [--build-dir build]
"""

import argparse
import math
import os
import re
import subprocess
import tempfile
import time

import ml_dtypes
import numpy as np
from fp8 import tensors

RECIPES = ["none", "current", "rowwise", "block", "mxfp8", "nvfp4"]
PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mlp.mlir")
BF16 = ml_dtypes.bfloat16


def make_inputs():
    """Random weights, and activations with a few loud channels, as models have."""
    rng = np.random.default_rng(0)

    def normal(*shape, scale):
        return (rng.standard_normal(shape) * scale).astype(np.float32).astype(BF16)

    x = rng.standard_normal((32, 768)).astype(np.float32)
    x[:, rng.choice(768, 6, replace=False)] *= 20
    return {
        "x": x.astype(BF16),
        "w1": normal(768, 3072, scale=768**-0.5),
        "b1": normal(3072, scale=0.1),
        "w2": normal(3072, 768, scale=3072**-0.5),
        "b2": normal(768, scale=0.1),
    }


def reference(t):
    """The same MLP in NumPy, in f32 throughout."""
    t = {name: value.astype(np.float32) for name, value in t.items()}
    h = t["x"] @ t["w1"] + t["b1"]
    h = 0.5 * h * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (h + 0.044715 * h**3)))
    return h @ t["w2"] + t["b2"]


def fp8_run(args, recipe, *more, target="cpu"):
    command = [
        os.path.join(args.build_dir, "bin", "fp8-run"),
        PROGRAM,
        "--entry=mlp",
        f"--recipe={recipe}",
        f"--target={target}",
        *more,
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr or f"{' '.join(command)} failed")
    return done.stdout + done.stderr


def weight_bytes(program):
    """Bytes of both weights as the compiled program holds them, codes and scales."""
    sizes = {"f4E2M1FN": 0.5, "f8E4M3FN": 1, "f8E5M2": 1, "f8E8M0FNU": 1, "f32": 4}
    quantize = (
        r"fp8\.quantize .* -> (?:!fp8\.scaled)?"
        r"<(\d+)x(\d+)x(\w+), block = \[(.*?)\], scale = (\w+)(, tensor_scale)?"
    )
    total = 0
    for match in re.finditer(quantize, program):
        rows, columns, element, block, scale, tensor_scale = match.groups()
        shape = (int(rows), int(columns))
        if shape not in [(768, 3072), (3072, 768)]:
            continue
        blocks = 1
        for size, extent in zip(shape, block.split(", ")):
            blocks *= 1 if extent == "*" else -(-size // int(extent))
        total += math.prod(shape) * sizes[element] + blocks * sizes[scale]
        total += 4 if tensor_scale else 0
    return total


def measure(args, recipe, in_file, out_file, expected):
    files = [f"--inputs={in_file}", f"--outputs={out_file}"]
    stats = fp8_run(args, recipe, *files, "--stats")
    # Apart: what --stats measures takes longer than the program itself.
    times = fp8_run(args, recipe, *files, "--time")
    error = tensors.load(out_file)["y"].astype(np.float64) - expected
    relative = np.linalg.norm(error) / np.linalg.norm(expected)
    row = {
        "recipe": recipe,
        "relative error": f"{relative:.2e}",
        "SQNR": f"{-20 * math.log10(relative):.1f} dB",
    }
    # The rows of --stats: tensor, amax, underflow %, saturation %, SQNR.
    underflow = [
        float(m.group(1))
        for m in re.finditer(r"^\S+ +\S+ +([\d.]+) +[\d.]+ +\S+$", stats, re.MULTILINE)
    ]
    row["underflow"] = f"{max(underflow):.2f} %" if underflow else "-"
    size = 2 * 2 * 768 * 3072
    if recipe != "none":
        size = weight_bytes(fp8_run(args, recipe, "--compile-to=fusion"))
    row["weights"] = f"{size / 2**20:.2f} MiB"
    row["time"] = re.search(r"^run: min ([\d.]+ ms)", times, re.MULTILINE).group(1)
    return row


def run_on_emulator(args, in_file):
    start = time.perf_counter()
    output = fp8_run(args, "current", f"--inputs={in_file}", "--device=emulator",
                     "--compare=cpu", target="sm_90a")
    seconds = time.perf_counter() - start
    print("\nThe kernels for an H200, recipe=current, compiled and run on a model of that GPU")
    print(f"(docs/Emulator.md) in {seconds:.1f} s, and compared with the CPU's result, whose")
    print("sums are rounded less:")
    for line in output.splitlines():
        if "largest difference" in line:
            print(f"  {line}")


def print_table(rows):
    widths = {key: max(len(key), *(len(row[key]) for row in rows)) for key in rows[0]}
    for row in [{key: key for key in widths}, *rows]:
        cells = [row[key].rjust(width) for key, width in widths.items()]
        cells[0] = row["recipe"].ljust(widths["recipe"])
        print("  " + "  ".join(cells))


def print_remarks(args, recipe):
    fp8_opt = os.path.join(args.build_dir, "bin", "fp8-opt")
    subprocess.run(
        [
            fp8_opt,
            PROGRAM,
            f"--fp8-pipeline=recipe={recipe} target=cpu to=fusion",
            "--fp8-remarks=text:-",
            "-o",
            os.devnull,
        ],
        check=True,
    )


NEXT = """
Next:
  README.md                what fp8 is, and a program before and after
  docs/GettingStarted.md   the tools, step by step
  docs/Recipes/            what each recipe does, and when to take it

  {bin}/fp8-opt examples/mlp.mlir --fp8-pipeline="recipe=mxfp8 target=cpu to=fusion"
  {bin}/fp8-run --help
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    args = parser.parse_args()

    print("examples/mlp.mlir: 768 -> 3072 -> 768 with bias and GELU, bf16, batch 32.")
    print("Every row is compiled and run now, on the CPU. Errors are against NumPy in")
    print("f32, underflow is the worst tensor's, and the time is that of one call, which")
    print("quantizes the weights too.\n")
    inputs = make_inputs()
    expected = reference(inputs)
    with tempfile.TemporaryDirectory() as directory:
        in_file = os.path.join(directory, "in.safetensors")
        out_file = os.path.join(directory, "out.safetensors")
        tensors.save(in_file, inputs)
        print_table([measure(args, r, in_file, out_file, expected) for r in RECIPES])
        run_on_emulator(args, in_file)
    for recipe in ("current", "none"):
        print(f"\nWhat the compiler says about each matmul, recipe={recipe}:", flush=True)
        print_remarks(args, recipe)
    print(NEXT.format(bin=os.path.join(args.build_dir, "bin")))


if __name__ == "__main__":
    main()
