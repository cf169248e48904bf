"""Runs public matmuls for sm_100 on the emulator: CUTLASS's tutorials and examples of tcgen05, compiled by nvcc.

usage: run.py CUTLASS LIBFP8EMU [EXAMPLE ...]

CUTLASS is a checkout of github.com/NVIDIA/cutlass. Each example's own host code makes descriptors and tensor maps and
launches its kernel, on runtime.cpp in place of NVIDIA's runtime; gemm.cu compares a tutorial's results with the host,
the others do so themselves. In lax mode, since these do without some of what PTX asks for. Half a minute for a
tutorial and three for an example, most of it nvcc's.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# M, N, K: multiples of the tile times the cluster.
NARROW = "72_blackwell_narrow_precision_gemm/"
EXAMPLES = {
    "01_mma_sm100": (256, 512, 128),
    "02_mma_tma_sm100": (256, 512, 128),
    "03_mma_tma_multicast_sm100": (512, 1024, 128),
    "04_mma_tma_2sm_sm100": (512, 1024, 128),
    "05_mma_tma_epi_sm100": (512, 1024, 128),
    NARROW + "72a_blackwell_nvfp4_bf16_gemm": (384, 512, 768),
    NARROW + "72c_blackwell_mixed_mxfp8_bf16_gemm": (384, 512, 768),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("cutlass")
    parser.add_argument("library")
    parser.add_argument("examples", nargs="*", default=list(EXAMPLES))
    arguments = parser.parse_args()
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    headers = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))), "include")
    folders = ["include", "tools/util/include", "examples/common", "examples/cute/tutorial/blackwell"]
    library = os.path.abspath(arguments.library)
    failed = []
    with tempfile.TemporaryDirectory() as build:
        runtime = os.path.join(build, "runtime.o")
        subprocess.run(["c++", "-O1", "-I" + headers, "-c", os.path.join(HERE, "runtime.cpp"), "-o", runtime],
                       check=True)
        for example in arguments.examples:
            program = os.path.join(build, os.path.basename(example))
            whole = example.startswith(NARROW)
            source = os.path.join(arguments.cutlass, "examples", example + ".cu") if whole else \
                os.path.join(HERE, "gemm.cu")
            sizes = EXAMPLES[example]
            if whole:
                sizes = [*(f"--{name}={size}" for name, size in zip("mnk", sizes)), "--iterations=0"]
            subprocess.run(
                [nvcc, "-std=c++17", "-O1", "-w", "-gencode", "arch=compute_100a,code=compute_100a", "--no-compress",
                 "-cudart", "none", "--expt-relaxed-constexpr", f'-DEXAMPLE="{example}.cu"',
                 "-DCUTLASS_ARCH_MMA_SM100_SUPPORTED", "-c", source, "-o", program + ".o",
                 *("-I" + os.path.join(arguments.cutlass, folder) for folder in folders)], check=True)
            subprocess.run(["c++", program + ".o", runtime, library, "-Wl,-rpath," + os.path.dirname(library), "-ldl",
                            "-o", program], check=True)
            environment = {**os.environ, "FP8_EMULATOR_ARCH": "100", "FP8_EMULATOR_MODE": "lax"}
            done = subprocess.run([program, *map(str, sizes)], env=environment, capture_output=True,
                                  text=True)
            print(example + ":", done.stdout.strip().split("\n")[-1], done.stderr.strip()[:300])
            if done.returncode:
                failed.append(example)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
