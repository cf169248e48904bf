"""A model of each compat mode of delayed scaling.

They follow the published update rules (rows of a history that really move, maxima
over all of it) and share nothing with the library or the compiler.
"""

import numpy as np

F32 = np.float32
FLT_MAX = np.finfo(F32).max
STEPS = 100
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
        # In torch a number divided by a tensor is the number times a reciprocal.
        return a, ((F32(1) / a) * self.fp8_max) / self.power


class Flax:
    """Row 0 is the newest; stores the dequantization scale."""

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
