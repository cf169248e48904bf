"""Passes over memory on the CPU, beside a copy of the bytes that must move.

The functions of fusion_functions.py as programs of the CPU, with all threads and with one.
The copy is memcpy, in as many threads. Results are memory that has been touched before.

usage: fusions_cpu.py [--build-dir build] [--shapes 2048x4096 1999x4001] [--functions ...]
"""

import argparse
import concurrent.futures
import ctypes
import os
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

import measure
import compiled
from fusion_functions import MAPS, STREAMS, get_arguments, get_function, get_name

FUNCTIONS = ["delayed", "delayed_both", "current", "current_both", "block_1x128",
             "block_1x128_both", "block_128x128_both", "swiglu_both", "rmsnorm_both", "softmax",
             "bias_grad_both"]
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def make_inputs(fusion, m, n):
    random = np.random.default_rng(1)
    shapes = {"x": (m, n), "u": (m, n), "d": (m, n), "w": (n,), "s": (1, 1), "si": (1, 1)}
    for name, _ in get_arguments(fusion):
        if name in ("s", "si"):
            yield np.full(shapes[name], 0.5 if name == "s" else 2.0, np.float32)
        else:
            yield random.standard_normal(shapes[name], np.float32).astype(ml_dtypes.bfloat16)


def bind(library, fusion, m, n, inputs):
    """A call that frees its results."""
    function = getattr(library, "_mlir_ciface_" + get_name(fusion, m, n))
    ranks = [kind.count("x", 0, kind.rfind("x") + 1) for kind in fusion.results]
    fields = [(f"r{i}", compiled.get_descriptor(rank)) for i, rank in enumerate(ranks)]
    results = type("Results", (ctypes.Structure,), {"_fields_": fields})()
    held = [ctypes.byref(compiled.memref(array)) for array in inputs]
    free = ctypes.CDLL(None).free

    def call():
        function(ctypes.byref(results), *held)
        for name, _ in fields:
            free(ctypes.c_void_p(getattr(results, name).allocated))

    return call


def bind_copy(bytes_, threads):
    """A copy that reads and writes `bytes_` together."""
    source, target = (np.ones(bytes_ // 2 // threads * threads, np.uint8) for _ in "st")
    part = source.nbytes // threads
    pool = concurrent.futures.ThreadPoolExecutor(threads)

    def copy(i):
        ctypes.memmove(target.ctypes.data + i * part, source.ctypes.data + i * part, part)

    return lambda: list(pool.map(copy, range(threads)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build-dir", default="build")
    parser.add_argument("--shapes", nargs="+", default=["2048x4096", "1999x4001"])
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--runtime", help="libfp8rt.so of the build by default")
    compiled.add_arguments(parser)
    args = parser.parse_args()
    if args.fp8_opt == "fp8-opt":
        args.fp8_opt = os.path.join(args.build_dir, "bin", "fp8-opt")
    runtime = Path(args.runtime or Path(args.build_dir, "lib", "libfp8rt.so"))
    threads = int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))
    fusions = [fusion for fusion in STREAMS if fusion.name in args.functions]
    shapes = [tuple(map(int, shape.split("x"))) for shape in args.shapes]
    libc = ctypes.CDLL(None)
    for option in (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD):
        libc.mallopt(option, 1 << 30)

    text = MAPS + "".join(
        get_function(fusion, m, n).replace("{\n", " attributes {llvm.emit_c_interface} {\n", 1)
        for fusion in fusions for m, n in shapes)
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        library = compiled.build(text, ["--fp8-pipeline=recipe=none target=cpu to=host"], args,
                                 directory, [runtime.resolve()])
    for m, n in shapes:
        for fusion in fusions:
            inputs = list(make_inputs(fusion, m, n))
            bytes_ = int(fusion.bytes * m * n)
            calls = [bind(library, fusion, m, n, inputs), bind_copy(bytes_, threads)]
            (middle, worst), (copy, _) = map(measure.middle_and_worst,
                                             measure.interleaved(calls, args.repeats))
            rows.append({"function": fusion.name, "shape": f"{m}x{n}",
                         "ms": round(middle * 1e3, 2), "worst ms": round(worst * 1e3, 2),
                         "GB/s": round(bytes_ / middle / 1e9, 1),
                         "copy ms": round(copy * 1e3, 2), "of copy": round(copy / middle, 2)})
            print(*rows[-1].values(), file=sys.stderr, flush=True)

    table = [f"{'function':20} {'shape':>10} {'ms':>8} {'worst':>8} {'GB/s':>6} {'copy':>7} {'share':>6}"]
    table += ["{:20} {:>10} {:8.2f} {:8.2f} {:6.1f} {:7.2f} {:6.2f}".format(*row.values())
              for row in rows]
    measure.write("fusions_cpu", rows, table, threads=threads, repeats=args.repeats)


if __name__ == "__main__":
    main()
