# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Results and gradients of PyTorch's layers in FP8 beside f64, within what rounding allows.

The bounds follow from the formats alone. A code of unit roundoff u stands for its element up to
u of it, or up to half a subnormal of the scale that it shares. What operations make of the errors
of their operands is bounded in the worst case, where all add up, and estimated as if they were
independent, where their squares do, as those of many roundings are.
"""

import copy
import unittest
from collections import namedtuple

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch

# Threads of such small tensors wait for each other where others are busy.
torch.set_num_threads(1)

# Unit roundoff, half of the least subnormal, and the largest value.
Format = namedtuple("Format", "roundoff subnormal largest")
E4M3, E5M2 = Format(2.0**-4, 2.0**-10, 448.0), Format(2.0**-3, 2.0**-17, 57344.0)
E2M1 = Format(2.0**-2, 2.0**-2, 6.0)

# Formats of activations and weights, and of gradients; how many elements along K share a scale,
# None for all; and whether they share it with all rows.
Kind = namedtuple("Kind", "forward backward group shared")
RECIPES = {
    "delayed": Kind(E4M3, E5M2, None, True), "delayed,format=e4m3": Kind(E4M3, E4M3, None, True),
    "current": Kind(E4M3, E5M2, None, True), "current,pow2=true": Kind(E4M3, E5M2, None, True),
    "rowwise": Kind(E4M3, E4M3, None, False), "block": Kind(E4M3, E4M3, 128, False),
    "mxfp8": Kind(E4M3, E4M3, 32, False), "nvfp4": Kind(E2M1, E2M1, 16, False),
}
# Scales that are powers of two are up to twice what would just do.
SCALE = 2.0
ROUNDOFF_F32 = 2.0**-24
# The standard deviation of a rounding: in units of roundoff, of numbers whose logarithms are
# spread evenly over a power of two, and of the largest error where all errors are as likely.
NORMAL, EVEN = 0.425, 3.0**-0.5
# How many standard deviations an element may be off, and what all may be on average.
MOST, LOW, HIGH = 6.0, 0.5, 1.3


def spread(amax, size, group):
    return amax.repeat_interleave(group, -1)[..., :size]


class Value:
    """An f64 tensor, and for each element how far what is computed may be from it: at most in
    the worst case, or as a standard deviation."""

    def __init__(self, middle, radius, is_worst):
        self.middle, self.radius, self.is_worst = middle, radius, is_worst

    def make(self, middle, *radii):
        radius = sum(radii) if self.is_worst else sum(r.square() for r in radii).sqrt()
        return Value(middle, radius + ROUNDOFF_F32 * middle.abs(), self.is_worst)

    def round(self, number, kind, along):
        """Quantized for a product whose K is the dimension `along`."""
        x, r = (tensor.movedim(along, -1) for tensor in (self.middle, self.radius))
        size, largest = x.shape[-1], x.abs() + r
        group = kind.group or size
        amax = torch.stack([part.amax(-1) for part in largest.split(group, -1)], -1)
        # The weights of `block` share scales of 128 rows, and no more than with all.
        if kind.shared:
            amax = amax.amax().expand_as(amax)
        floor = spread(amax, size, group) * SCALE / number.largest * number.subnormal
        if number is E2M1:
            # The scale is itself rounded, to E4M3, and may be too small for the largest.
            floor = torch.maximum(floor * (1 + E4M3.roundoff),
                                  x.abs().amax() / E4M3.largest * E4M3.subnormal)
        own = torch.maximum((1.0 if self.is_worst else NORMAL) * number.roundoff * largest,
                            (1.0 if self.is_worst else EVEN / SCALE) * floor)
        return self.make(x, r, own).turn(along)

    def turn(self, along):
        return Value(self.middle.movedim(-1, along), self.radius.movedim(-1, along), self.is_worst)

    @property
    def t(self):
        return Value(self.middle.T, self.radius.T, self.is_worst)

    def __matmul__(self, other):
        a, b, ra, rb = self.middle, other.middle, self.radius, other.radius
        sum_ = ROUNDOFF_F32 * a.shape[-1] * (a.abs() @ b.abs())
        if self.is_worst:
            return self.make(a @ b, a.abs() @ rb, ra @ b.abs(), ra @ rb, sum_)
        squares = a.square() @ rb.square() + ra.square() @ (b.square() + rb.square())
        return self.make(a @ b, squares.sqrt(), sum_)

    def __mul__(self, other):
        return self.make(self.middle * other.middle, self.middle.abs() * other.radius,
                         self.radius * other.middle.abs(), self.radius * other.radius)

    def __add__(self, other):
        return self.make(self.middle + other.middle, self.radius, other.radius)

    def apply(self, function, derivative, most):
        """A function whose derivative is at most `most`."""
        slope = most
        if not self.is_worst:
            # The steepest of about where it is computed.
            slope = torch.stack([derivative(self.middle + off).abs() for off in
                                 (-self.radius, 0 * self.radius, self.radius)]).amax(0)
        return self.make(function(self.middle), slope * self.radius)

    def check(self, test, computed, name):
        off = (computed.detach().double() - self.middle).abs()
        test.assertFalse(off.isnan().any(), name)
        allowed = self.radius if self.is_worst else MOST * self.radius
        test.assertTrue((off <= allowed).all(), f"{name}: {(off / allowed).max().item():.2f} of "
                                                f"what is allowed")
        if not self.is_worst:
            share = (off.square().mean() / self.radius.square().mean()).sqrt().item()
            test.assertTrue(LOW < share < HIGH, f"{name}: {share:.2f} of what is expected")


class Model(nn.Module):
    """A gated MLP: gradients go through two products, and the functions between them."""

    def __init__(self, width=128, wide=256):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_slope(x):
    """The derivative of SiLU, at most 1.1."""
    return x.sigmoid() * (1 + x * (1 - x.sigmoid()))


def get_bend(x):
    """The second derivative, at most 0.5."""
    s = x.sigmoid()
    return s * (1 - s) * (2 + x * (1 - 2 * s))


def bound(kind, values, is_worst):
    """The Values of the result and all gradients."""
    def exact(tensor):
        tensor = tensor.detach().double()
        return Value(tensor, torch.zeros_like(tensor), is_worst)

    def product(a, b, first, second):
        """a b of two kinds of operands."""
        return a.round(first, kind, -1) @ b.round(second, kind, 0)

    x, dy, gate_w, up_w, down_w = (exact(value) for value in values)
    forward, backward = kind.forward, kind.backward
    gate, up = (product(x, w.t, forward, forward) for w in (gate_w, up_w))
    act, slope = gate.apply(F.silu, get_slope, 1.1), gate.apply(get_slope, get_bend, 0.5)
    h = act * up
    dh = product(dy, down_w, backward, forward)
    dup, dgate = dh * act, dh * up * slope
    return {"y": product(h, down_w.t, forward, forward),
            "x": product(dgate, gate_w, backward, forward)
                 + product(dup, up_w, backward, forward),
            "gate.weight": product(dgate.t, x, backward, forward),
            "up.weight": product(dup.t, x, backward, forward),
            "down.weight": product(dy.t, h, backward, forward)}


def make_layers(model, recipe):
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")


def make_compiled(model, recipe):
    torch._dynamo.reset()
    return torch.compile(model, backend=fp8.torch.Backend(recipe, target="cpu", rest="eager", require=True))


class Gradients(unittest.TestCase):
    def check(self, make, recipe, kind):
        torch.manual_seed(4)
        model = Model()
        x, dy = torch.randn(256, 128).requires_grad_(), torch.randn(256, 128)
        # Loud rows and columns, as models have.
        with torch.no_grad():
            x *= torch.randn(256, 1).exp() * torch.randn(128).mul(0.5).exp()
            dy *= 1e-4 * torch.randn(256, 1).exp()
        function = make(copy.deepcopy(model), recipe)
        computed = getattr(function, "_orig_mod", function)
        values = x, dy, model.gate.weight, model.up.weight, model.down.weight
        bounds = [bound(kind, values, is_worst) for is_worst in (True, False)]
        # Delayed scaling has its scales from the same values, in the first step and with a history.
        for step in range(2 if recipe.startswith("delayed") else 1):
            x.grad = None
            computed.zero_grad()
            y = function(x)
            y.backward(dy)
            results = {"y": y, "x": x.grad,
                       **{name: p.grad for name, p in computed.named_parameters()}}
            for name, value in ((name, value) for found in bounds for name, value in found.items()):
                value.check(self, results[name], f"{recipe}, step {step}: {name}")

    def test_f64_is_what_the_bounds_are_around(self):
        torch.manual_seed(4)
        model = Model().double()
        x, dy = torch.randn(32, 128).double().requires_grad_(), torch.randn(32, 128).double()
        y = model(x)
        y.backward(dy)
        values = x, dy, model.gate.weight, model.up.weight, model.down.weight
        found = bound(RECIPES["current"], values, True)
        for name, value in {"y": y, "x": x.grad, **{n: p.grad for n, p in
                                                    model.named_parameters()}}.items():
            torch.testing.assert_close(found[name].middle, value)

    def test_of_layers(self):
        for recipe, kind in RECIPES.items():
            with self.subTest(recipe):
                self.check(make_layers, recipe, kind)

    def test_of_the_backend(self):
        for recipe, kind in RECIPES.items():
            with self.subTest(recipe):
                self.check(make_compiled, recipe, kind)


if __name__ == "__main__":
    unittest.main()
