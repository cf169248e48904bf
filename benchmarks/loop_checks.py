"""The functions of loop_functions.py with small extents on a CPU and on a GPU, or on its model
(docs/Emulator.md): the same bytes.

usage: loop_checks.py [--target sm_90a|sm_100a] [--seed N] [--count N]
"""

import argparse
import sys

import fp8
import ml_dtypes
import numpy

from loop_functions import get_batches, make_function

DTYPES = {"f32": numpy.float32, "bf16": ml_dtypes.bfloat16, "f16": numpy.float16, "f64": numpy.float64,
          "i64": numpy.int64, "i32": numpy.int32, "i8": numpy.int8, "i1": numpy.bool_}


def draw(function):
    """Small whole numbers, of which sums are exact, and indices that there are."""
    rng = numpy.random.default_rng(len(function.text))
    values = []
    for extents, element, limit in function.arguments:
        low, high = (0, limit or 2) if limit or element == "i1" else (-3, 4)
        values.append(rng.integers(low, high, extents).astype(DTYPES[element]))
    return values


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", choices=["sm_90a", "sm_100a"], default="sm_90a")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=60)
    args = parser.parse_args()
    wrong = 0
    for seeds in get_batches(args.seed, args.count):
        functions = [make_function(seed, is_small=True) for seed in seeds]
        text = "".join(function.text for function in functions)
        both = [fp8.compile(text, "none", target=target, cache=False) for target in ("cpu", args.target)]
        for function in functions:
            expected, actual = (compiled.functions[function.name](*draw(function)) for compiled in both)
            if expected.tobytes() == actual.tobytes() and expected.shape == actual.shape:
                continue
            different = numpy.flatnonzero(expected.reshape(-1) != actual.reshape(-1))
            print(f"{function.name} differs in {len(different)} of {expected.size}, the first at {different[:1]}:\n"
                  f"{function.text}", flush=True)
            wrong += 1
    print(f"{args.count - wrong} of {args.count} the same")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
