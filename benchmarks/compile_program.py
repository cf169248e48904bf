"""How long fp8-compile takes for a small program, from MLIR to a shared object.

One fp8.matmul, and one bf16 matmul under the recipe current, which has casts beside
it, for sm_90a. The time is the whole process's, the best of many, beside what it had
taken by then at earlier stops. Goal: 0.5 s for the one matmul.

usage: compile_program.py [--build-dir build] [--repeats 20]
"""

import argparse
import os
import subprocess
import tempfile

import measure

GOAL_S = 0.5
SIZE = 4096
PROGRAMS = {
    "fp8.matmul": f"""
!q = !fp8.scaled<{SIZE}x{SIZE}xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: tensor<{SIZE}x{SIZE}xf8E4M3FN>, %a_inv: tensor<1x1xf32>,
                  %b: tensor<{SIZE}x{SIZE}xf8E4M3FN>, %b_inv: tensor<1x1xf32>)
    -> tensor<{SIZE}x{SIZE}xbf16> {{
  %qa = fp8.assemble %a, %a_inv : tensor<{SIZE}x{SIZE}xf8E4M3FN>, tensor<1x1xf32> -> !q
  %qb = fp8.assemble %b, %b_inv : tensor<{SIZE}x{SIZE}xf8E4M3FN>, tensor<1x1xf32> -> !q
  %d = fp8.matmul %qa, %qb : !q, !q -> tensor<{SIZE}x{SIZE}xbf16>
  return %d : tensor<{SIZE}x{SIZE}xbf16>
}}
""",
    "current": f"""
func.func @matmul(%a: tensor<{SIZE}x{SIZE}xbf16>, %b: tensor<{SIZE}x{SIZE}xbf16>)
    -> tensor<{SIZE}x{SIZE}xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{SIZE}x{SIZE}xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  %d = linalg.matmul ins(%a, %b : tensor<{SIZE}x{SIZE}xbf16>, tensor<{SIZE}x{SIZE}xbf16>)
                     outs(%init : tensor<{SIZE}x{SIZE}xf32>) -> tensor<{SIZE}x{SIZE}xf32>
  return %d : tensor<{SIZE}x{SIZE}xf32>
}}
""",
}
# What a process does until it stops there, each more than the one before it.
STOPS = {
    "start": ["--emit=mlir", "--compile-to=import"],
    "kernels": ["--emit=mlir", "--compile-to=kernels"],
    "PTX": ["--emit=mlir", "--kernel-format=ptx"],
    "cubin": ["--emit=mlir"],
    "object": ["--emit=obj"],
    "program": ["--emit=so"],
}


def seconds(fp8_compile, name, directory, repeats):
    """The best time of a process for each of the stops."""
    source = os.path.join(directory, f"{name}.mlir")
    with open(source, "w") as file:
        file.write(PROGRAMS[name])
    command = [fp8_compile, source, "--target=sm_90a", "--recipe=current"]
    outputs = ["-o", os.path.join(directory, "program")]
    headers = ["--header=" + os.path.join(directory, "program.h")]

    def run(stop):
        makes_header = stop in ("object", "program")
        subprocess.run(
            command + STOPS[stop] + outputs + (headers if makes_header else []), check=True
        )

    times = measure.interleaved([lambda stop=stop: run(stop) for stop in STOPS], repeats)
    return dict(zip(STOPS, map(min, times)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    fp8_compile = os.path.join(args.build_dir, "bin", "fp8-compile")
    rows, table = [], ["".join(f"{cell:>10}" for cell in ["until", *STOPS])]
    with tempfile.TemporaryDirectory() as directory:
        for name in PROGRAMS:
            times = seconds(fp8_compile, name, directory, args.repeats)
            cells = "".join(f"{1e3 * value:>8.0f}ms" for value in times.values())
            met = ""
            if name == "fp8.matmul":
                met = "   met" if times["program"] <= GOAL_S else "   missed"
            rows.append({"program": name, **{f"{stop}_s": t for stop, t in times.items()}})
            table.append(f"{name:>10}{cells}{met}")
    measure.write("compile_program", rows, table, repeats=args.repeats, goal_s=GOAL_S)


if __name__ == "__main__":
    main()
