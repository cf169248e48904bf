# RUN: %python %s %fp8_build/lib/libfp8rt.so
# UNSUPPORTED: sanitizers
"""Compares 100 steps of libfp8rt with a model of each compat mode, bit by bit.

The models follow the published update rules (rows of a history that really
move, maxima over all of it) and share nothing with the library.
"""

import itertools
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import libfp8rt  # noqa: E402

F32 = np.float32
FLT_MAX = np.finfo(F32).max
STEPS = 100
SLOTS = 48
SMALL = [1e-45, 1e-40, 1.17549435e-38, 1.3e-36, 1.7e-34, 1e-30]
SPECIAL = np.array([0, np.inf, np.nan, *SMALL, 448, 57344, 1e38, FLT_MAX], F32)


def floor_pow2(scale):
    """The largest power of two not above each scale, by its logarithm."""
    finite = (scale > 0) & (scale < np.inf)
    exponent = np.floor(np.log2(np.where(finite, scale, 1).astype(np.float64)))
    return np.where(finite, np.exp2(exponent).astype(F32), scale)


class TE:
    """Row 0 is staging, 1 the oldest, the last one the newest."""

    def __init__(self, fp8_max, length, algo, margin, pow2):
        self.fp8_max, self.algo, self.pow2 = fp8_max, algo, pow2
        self.power = F32(2.0**margin)
        self.scale = np.ones_like(fp8_max)
        self.history = np.zeros((length, len(fp8_max)), F32)

    def step(self, amax):
        self.history[0] = amax
        a, quotient = self.advance()
        new = np.where(np.isinf(quotient), FLT_MAX, quotient)
        if self.pow2:
            new = floor_pow2(new)
        usable = (a > 0) & np.isfinite(a)
        self.scale = np.where(usable, new, self.scale)

    def scale_inv(self):
        return F32(1) / self.scale


class Fused(TE):
    def advance(self):
        h = self.history
        m = h[0].copy()
        moves = m != 0
        # Every NaN is passed over; C's fmax, and NumPy's, let signalling ones win.
        a = np.where(np.isnan(h), F32(0), h).max(axis=0)
        if len(h) > 1:
            h[1:-1, moves] = h[2:, moves]
            h[-1, moves] = m[moves]
        h[0, moves] = 0
        a = np.where(moves, a, F32(0))
        if self.algo == "most_recent":
            a = m
        return a, (self.fp8_max / self.power) / a


class Unfused(TE):
    def advance(self):
        h = self.history
        a = h.max(axis=0) if self.algo == "max" else h[0].copy()
        self.history = np.roll(h, -1, axis=0)
        self.history[0] = 0
        return a, (self.fp8_max / a) / self.power


class Flax:
    """Row 0 is the newest; stores the dequantisation scale."""

    def __init__(self, fp8_max, length, algo, margin, pow2):
        assert algo == "max" and margin == 0
        self.fp8_max, self.pow2 = fp8_max, pow2
        self.inverse = np.ones_like(fp8_max)
        self.scale = np.ones_like(fp8_max)
        self.history = np.zeros((length, len(fp8_max)), F32)

    def step(self, amax):
        self.history = np.roll(self.history, -1, axis=0)
        self.history[0] = amax
        a = self.history.max(axis=0)
        new = self.fp8_max / a
        if self.pow2:
            new = floor_pow2(new)
        kept = F32(1) / self.inverse
        self.scale = np.where((a > 0) & np.isfinite(a), new, kept)
        self.inverse = F32(1) / self.scale

    def scale_inv(self):
        return self.inverse


MODELS = {"te_fused": Fused, "te_unfused": Unfused, "flax": Flax}


def amaxes(random, slots):
    """One row a step: slots of very different kinds, from tame to hostile."""
    values = np.exp2(random.uniform(-20, 20, (STEPS, slots))).astype(F32)
    wide = np.abs(random.integers(0, 2**31, (STEPS, slots)).astype(np.uint32).view(F32))
    falling = np.sort(values, axis=0)[::-1]
    kind = np.arange(slots) % 4
    values = np.select([kind == 0, kind == 1, kind == 2], [values, wide, falling], values)
    chance = np.array([0.05, 0.0, 0.1, 0.7])[kind]
    special = random.random((STEPS, slots)) < chance
    return np.where(special, random.choice(SPECIAL, (STEPS, slots)), values)


def same(a, b):
    return np.array_equal(a.view(np.uint32), b.astype(F32, copy=False).view(np.uint32))


def main():
    library = libfp8rt.Library(sys.argv[1])
    configurations = [
        (compat, length, algo, margin)
        for compat, length, algo, margin in itertools.product(
            MODELS, range(1, 34), ("max", "most_recent"), range(-2, 5)
        )
        if compat != "flax" or (algo == "max" and margin == 0)
    ]
    random = np.random.default_rng(3)
    names = [f"s{i}" for i in range(SLOTS)]
    formats = ["e4m3" if i % 8 < 4 else "e5m2" for i in range(SLOTS)]
    fp8_max = np.array([448 if f == "e4m3" else 57344 for f in formats], F32)
    histories = 0
    for number, (compat, length, algo, margin) in enumerate(configurations):
        pow2 = number % 3 == 0
        recipe = dict(compat=compat, amax_compute_algo=algo, margin=margin, pow2=pow2)
        state = library.create(names, formats, length, **recipe)
        model = MODELS[compat](fp8_max, length, algo, margin, pow2)
        for step, row in enumerate(amaxes(random, SLOTS)):
            state.amax[:] = row
            state.call("update")
            model.step(row)
            for what, ours, theirs in (
                ("scale", state.scale, model.scale),
                ("scale_inv", state.scale_inv, model.scale_inv()),
                ("history", state.histories(), model.history),
            ):
                if not same(ours, theirs):
                    bad = np.argwhere(ours.view(np.uint32) != theirs.view(np.uint32))[0]
                    raise SystemExit(
                        f"{recipe}, length {length}, step {step}: {what}{list(bad)}: expected "
                        f"{theirs[tuple(bad)]!r}, but got {ours[tuple(bad)]!r}"
                    )
        state.destroy()
        histories += SLOTS
    assert histories >= 10_000
    print(f"{histories} histories, {len(configurations)} recipes, {STEPS} steps each")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main()
