# RUN: %python %s --mlir-translate mlir-translate
"""Compares our compiled casts with ml_dtypes, an independent oracle, bit by bit.

All 65,536 bf16 and f16 inputs, all codes back, f32 on 2^24 random bit patterns
and every boundary (values, midpoints, their neighbours), f64 around the same.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import compiled  # noqa: E402

# MLIR element type -> (numpy type, bits of a code, canonical NaN, largest value)
SMALL = {
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 8, 0x7F, 448.0),
    "f8E5M2": (ml_dtypes.float8_e5m2, 8, 0x7F, 57344.0),
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 4, 0x7, 6.0),
    "f8E8M0FNU": (ml_dtypes.float8_e8m0fnu, 8, 0xFF, None),
    "bf16": (ml_dtypes.bfloat16, 16, 0x7FC0, None),
}
WIDE = {
    "f32": (np.float32, np.uint32),
    "f64": (np.float64, np.uint64),
    "f16": (np.float16, np.uint16),
    "bf16": (ml_dtypes.bfloat16, np.uint16),
}


def down_function(source, target, saturate):
    """A loop over memrefs that casts each element and stores its code."""
    bits = SMALL[target][1]
    name = f"{source}_to_{target}{'_sat' if saturate else ''}"
    cast, value = "", "%x"
    value_type = source
    if saturate:
        # Past this clamp NaN is still NaN: both comparisons are false.
        largest = SMALL[target][3]
        if source != "f32":
            cast += f"    %w = arith.extf %x : {source} to f32\n"
            value, value_type = "%w", "f32"
        cast += f"""
    %max = arith.constant {largest} : f32
    %min = arith.constant -{largest} : f32
    %above = arith.cmpf ogt, {value}, %max : f32
    %lower = arith.select %above, %max, {value} : f32
    %below = arith.cmpf olt, %lower, %min : f32
    %clamped = arith.select %below, %min, %lower : f32
"""
        value = "%clamped"
    cast += f"    %q = arith.truncf {value} : {value_type} to {target}\n"
    cast += f"    %b = arith.bitcast %q : {target} to i{bits}\n"
    stored, byte = "%b", "i16" if bits == 16 else "i8"
    if bits == 4:
        cast += "    %wide = arith.extui %b : i4 to i8\n"
        stored = "%wide"
    return name, loop(name, source, byte, cast, stored)


def up_function(source, target):
    bits = SMALL[source][1]
    name = f"{source}_to_{target}"
    cast, code, byte = "", "%x", "i16" if bits == 16 else "i8"
    if bits == 4:
        cast += "    %narrow = arith.trunci %x : i8 to i4\n"
        code = "%narrow"
    cast += f"    %c = arith.bitcast {code} : i{bits} to {source}\n"
    cast += f"    %r = arith.extf %c : {source} to {target}\n"
    return name, loop(name, byte, target, cast, "%r")


def loop(name, source, target, body, result):
    return f"""
func.func @{name}(%in: memref<?x{source}>, %out: memref<?x{target}>)
    attributes {{llvm.emit_c_interface}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = memref.dim %in, %c0 : memref<?x{source}>
  scf.for %i = %c0 to %n step %c1 {{
    %x = memref.load %in[%i] : memref<?x{source}>
{body}
    memref.store {result}, %out[%i] : memref<?x{target}>
  }}
  return
}}
"""


def magnitudes(target):
    """The finite magnitudes in the order of their codes, as f64, exactly."""
    dtype, bits, _, _ = SMALL[target]
    codes = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
    values = codes.view(dtype).astype(np.float32).astype(np.float64)
    return values[np.isfinite(values) & ~np.signbit(values)]


def with_step_past(values, target):
    """Adds the value that would follow the largest: overflow rounds towards it."""
    step = values[-1] if target == "f8E8M0FNU" else values[-1] - values[-2]
    return np.append(values, values[-1] + step)


def oracle_by_definition(values, target):
    """The code of the nearest magnitude, for what ml_dtypes does not do.

    It casts f64 by way of f32, which rounds twice, takes zero to be NaN in
    f8E8M0FNU (to nearest it is 2^-127, as in APFloat), and there rounds f32
    subnormals just above 2^-127 up.
    """
    _, bits, nan, _ = SMALL[target]
    table = with_step_past(magnitudes(target), target)
    middles = (table[1:] + table[:-1]) / 2
    wide = values.astype(np.float64)
    magnitude = np.abs(wide)
    codes = np.searchsorted(middles, magnitude, side="left")
    tie = middles[np.minimum(codes, middles.size - 1)] == magnitude
    codes += tie & ((codes % 2 == 1) | (target == "f8E8M0FNU"))
    if target == "f4E2M1FN":
        codes = np.minimum(codes, 7)
    if target == "f8E8M0FNU":
        codes[wide < 0] = nan
    else:
        codes |= np.signbit(wide).astype(np.int64) << (bits - 1)
        if target == "f8E4M3FN":
            codes[codes & 0x7F == 0x7F] = nan
    codes[np.isnan(wide)] = nan
    return codes.astype(np.uint16 if bits == 16 else np.uint8)


def oracle(values, target):
    """The codes ml_dtypes gives, NaN made canonical."""
    dtype, bits, nan, _ = SMALL[target]
    if values.dtype == np.float64:
        return oracle_by_definition(values, target)
    cast = values.astype(dtype)
    codes = cast.view(np.uint16 if bits == 16 else np.uint8).copy()
    if target == "f4E2M1FN":
        codes[np.isnan(values.astype(np.float32))] = nan
    else:
        codes[np.isnan(cast.astype(np.float32))] = nan
    if target == "f8E8M0FNU":
        tiny = np.abs(values.astype(np.float32)) < np.finfo(np.float32).smallest_normal
        codes[tiny] = oracle_by_definition(values[tiny], target)
    return codes


def boundaries(target):
    """Every magnitude of a format and every midpoint."""
    values = with_step_past(magnitudes(target), target)
    return np.concatenate([[0.0], values, (values[1:] + values[:-1]) / 2, values[:1] / 2])


def with_neighbours(values, dtype):
    uint = WIDE[dtype][1]
    bits = values.astype(WIDE[dtype][0]).view(uint)
    magnitude = np.concatenate([bits, bits + uint(1), np.maximum(bits, 1) - uint(1)])
    sign = uint(1) << uint(bits.itemsize * 8 - 1)
    return np.concatenate([magnitude, magnitude | sign]).view(WIDE[dtype][0])


def inputs(source, target, random):
    if source in ("bf16", "f16"):
        return np.arange(2**16, dtype=np.uint16).view(WIDE[source][0])
    dtype, uint = WIDE[source]
    info = np.finfo(dtype)
    special = np.array(
        [0, 1, info.smallest_subnormal, info.smallest_normal, info.max, np.inf, np.nan],
        dtype=dtype,
    )
    payloads = np.array([special[-2:-1].view(uint)[0] + 1], dtype=uint).view(dtype)
    edges = with_neighbours(boundaries(target), source)
    if source == "f64":
        # Right next to the f32 neighbours of a boundary, rounding twice shows.
        edges = np.concatenate([edges, with_neighbours(boundaries(target), "f32").astype(np.float64)])
        edges = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    return np.concatenate([special, -special, payloads, -payloads, edges, random[source]])


def check(what, values, got, expected):
    wrong = np.flatnonzero(got != expected)
    if wrong.size:
        i = wrong[0]
        print(f"{what}: {wrong.size} of {got.size} wrong, first: input {values[i]!r} "
              f"gives {int(got[i]):#x}, expected {int(expected[i]):#x}")
    else:
        print(f"{what}: {got.size} exact")
    return not wrong.size


def main():
    parser = argparse.ArgumentParser()
    compiled.add_arguments(parser)
    args = parser.parse_args()

    down = [(s, t, sat) for s in WIDE for t in SMALL for sat in (False, True)
            if np.dtype(WIDE[s][0]).itemsize * 8 > SMALL[t][1]
            and not (sat and (SMALL[t][3] is None or s == "f64"))]
    up = [(s, t) for s in SMALL for t in WIDE
          if np.dtype(WIDE[t][0]).itemsize * 8 > SMALL[s][1]]
    downs = [(*d, *down_function(*d)) for d in down]
    ups = [(*u, *up_function(*u)) for u in up]
    module = "".join(d[-1] for d in downs) + "".join(u[-1] for u in ups)

    np.seterr(all="ignore")
    rng = np.random.default_rng(20220908)
    random = {"f32": rng.integers(0, 2**32, 2**24, dtype=np.uint32).view(np.float32)}
    # In the range of f32, with more mantissa bits than it has.
    narrow = random["f32"][: 2**20].astype(np.float64).view(np.uint64)
    low_bits = rng.integers(0, 2**29, 2**20, dtype=np.uint64)
    random["f64"] = (narrow | low_bits).view(np.float64)
    passed = True
    with tempfile.TemporaryDirectory() as directory:
        passes = ["--fp8-expand-float-casts", *compiled.LOOPS_TO_LLVM]
        library = compiled.build(module, passes, args, directory)
        for source, target, saturate, name, _ in downs:
            values = inputs(source, target, random)
            expected_from = values
            if saturate:
                largest = np.float32(SMALL[target][3])
                expected_from = np.clip(values.astype(np.float32), -largest, largest)
            got = np.zeros(values.size, np.uint16 if target == "bf16" else np.uint8)
            compiled.bind(library, name, values, got)()
            passed &= check(name, values, got, oracle(expected_from, target))
        for source, target, name, _ in ups:
            dtype, bits, _, _ = SMALL[source]
            codes = np.arange(2**bits, dtype=np.uint16 if bits == 16 else np.uint8)
            wide, uint = WIDE[target]
            got = np.zeros(codes.size, wide)
            compiled.bind(library, name, codes, got)()
            # ml_dtypes converts to f32 exactly.
            expected = codes.view(dtype).astype(np.float32).astype(wide)
            both_nan = np.isnan(got) & np.isnan(expected)
            passed &= check(name, codes, np.where(both_nan, 0, got.view(uint)),
                            np.where(both_nan, 0, expected.view(uint)))
    print("all exact" if passed else "failed")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
