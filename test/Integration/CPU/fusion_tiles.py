# RUN: %python %s --mlir-translate mlir-translate --runtime %fp8_build/lib/libfp8rt.so --functions %fp8_source/benchmarks
# A library built with sanitizers does not load into Python.
# UNSUPPORTED: sanitizers
"""The casts of a training step (benchmarks/fusion_functions.py), by tiles as large as
they are, give the bits that they give as one loop after the other, with any number of
threads. Sums keep their order, and what is split has none.
"""

import argparse
import ctypes
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402
import lowerings  # noqa: E402

# Extents of the function, and those that it is called with.
SHAPES = [((192, 1024), [(192, 1024)]),
          ((131, 1029), [(131, 1029)]),
          (("?", "?"), [(257, 515), (33, 4099), (1, 70001), (70001, 1), (1, 1), (0, 7), (7, 0)])]
THREADS = [1, 2, 5]
BYTES = ("f8E4M3FN", "f8E8M0FNU")
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}


def make_inputs(module, stream, m, n):
    random = np.random.default_rng(m + n)
    for name, kind in module.get_arguments(stream):
        if name in ("s", "si"):
            yield np.full((1, 1), 3.0 if name == "s" else 1.0 / 3.0, np.float32)
            continue
        x = random.standard_normal((n,) if name == "w" else (m, n), np.float32)
        x *= np.exp2(random.integers(-12, 8, size=x.shape)).astype(np.float32)
        # Some of everything that has an order, or none.
        x[random.random(x.shape) < 1e-4] = np.inf
        x[random.random(x.shape) < 1e-4] = np.nan
        x[random.random(x.shape) < 1e-3] = -0.0
        yield x.astype(ml_dtypes.bfloat16)


def call(library, module, stream, shape, inputs):
    results = [(np.uint8 if any(b in kind for b in BYTES) else DTYPES[kind.rsplit("x", 1)[1][:-1]],
                kind.count("x", 0, kind.rindex("x") + 1)) for kind in stream.results]
    outputs = compiled.call(library, module.get_name(stream, *shape), inputs, results)
    return [x.view(f"u{x.itemsize}") for x in outputs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runtime", type=Path, required=True)
    parser.add_argument("--functions", type=Path, required=True)
    compiled.add_arguments(parser)
    args = parser.parse_args()
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(args.functions))
    import fusion_functions as module

    text = module.MAPS + "".join(
        module.get_function(stream, *shape).replace(
            "{\n", " attributes {llvm.emit_c_interface} {\n", 1)
        for stream in module.STREAMS for shape, _ in SHAPES)
    text = lowerings.fuse(text, args.fp8_opt)
    libraries, lowered = {}, lowerings.get_pipelines(args.fp8_opt)
    with tempfile.TemporaryDirectory() as directory:
        for name in ("plain", "tiles"):
            folder = Path(directory, name)
            folder.mkdir()
            libraries[name] = compiled.build(text, [f"--pass-pipeline={lowered[name]}"], args, folder,
                                             [args.runtime], "-O1")
            loops = (folder / "module.ll").read_text().count("call void @fp8rt_parallel_for")
            expected = 0 if name == "plain" else len(module.STREAMS) * len(SHAPES)
            if (loops > 0) != (expected > 0) or loops < expected:
                sys.exit(f"{name}: expected {expected} loops over tiles or more, but got {loops}")
    set_threads = ctypes.CDLL("libgomp.so.1").omp_set_num_threads
    failures = 0
    for stream in module.STREAMS:
        for shape, extents in SHAPES:
            for m, n in extents:
                inputs = list(make_inputs(module, stream, m, n))
                expected = call(libraries["plain"], module, stream, shape, inputs)
                for threads in THREADS:
                    set_threads(threads)
                    got = call(libraries["tiles"], module, stream, shape, inputs)
                    for i, (a, b) in enumerate(zip(expected, got)):
                        if not np.array_equal(a, b):
                            print(f"{stream.name} {m}x{n}, {threads} threads: result {i} differs in "
                                  f"{np.count_nonzero(a != b) if a.shape == b.shape else 'shape'}")
                            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
