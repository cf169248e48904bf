"""Transformers as compile_growth.py compiles them: with rotary embeddings left out, a Llama's
layers forward, and the same forward and backward.
"""

from bert import Encoder, kind


class Transformer(Encoder):
    """RMSNorm, attention and a SwiGLU MLP, each with its gradient. Weights are [1, out, in]."""

    def __init__(self, tokens=128, hidden=256, heads=4):
        super().__init__(1, tokens, hidden, heads)
        self.results = []

    def weight(self, name, out, width):
        return self.argument(name, [1, out, width], is_weight=True)

    def turned(self, x):
        return self.transposed(x, [0, 2, 1])

    def apply(self, x, w):
        return self.product(x, self.turned(w))

    def gradients(self, dy, x, w):
        """The gradient of `x`; that of the weight is a result."""
        self.results.append(self.product(self.turned(dy), x))
        return self.product(dy, w)

    def norm(self, x):
        """With what the gradient needs of it."""
        inverse = self.unary(self.mean(self.binary(x, x, "mulf")),
                             """%sum = arith.addf %in0, %epsilon : f32
                                %r = math.rsqrt %sum : f32""")
        return self.binary(x, inverse, "mulf"), inverse

    def norm_gradient(self, dy, y, inverse):
        share = self.mean(self.binary(dy, y, "mulf"))
        inner = self.binary(dy, self.binary(y, share, "mulf"), "subf")
        return self.binary(inner, inverse, "mulf")

    def to_heads(self, x):
        return self.batched(self.split(x))

    def from_heads(self, x):
        shape = [1, self.heads, self.tokens, self.hidden // self.heads]
        apart = self.reshaped(x, shape, "expand_shape", "[[0, 1], [2], [3]]")
        return self.reshaped(self.transposed(apart, [0, 2, 1, 3]),
                             [1, self.tokens, self.hidden], "collapse_shape", "[[0], [1], [2, 3]]")

    def scaled(self, x):
        return self.unary(x, "%r = arith.divf %in0, %sqrt_width : f32")

    def attend(self, i, x):
        """The layer's first half, and a function for its gradient."""
        weights = [self.weight(f"layer.{i}.{part}", self.hidden, self.hidden) for part in "qkvo"]
        y, inverse = self.norm(x)
        q, k, v = (self.to_heads(self.apply(y, w)) for w in weights[:3])
        shares = self.softmax(self.scaled(self.product(q, self.turned(k))))
        context = self.from_heads(self.product(shares, v))
        out = self.binary(x, self.apply(context, weights[3]), "addf")

        def backward(d):
            dcontext = self.to_heads(self.gradients(d, context, weights[3]))
            dshares = self.product(dcontext, self.turned(v))
            dv = self.product(self.turned(shares), dcontext)
            total = self.reduced(self.binary(dshares, shares, "mulf"), "%zero", "addf")
            dscores = self.scaled(
                self.binary(self.binary(dshares, total, "subf"), shares, "mulf"))
            dq, dk = self.product(dscores, k), self.product(self.turned(dscores), q)
            parts = [self.gradients(self.from_heads(g), y, w)
                     for g, w in zip((dq, dk, dv), weights, strict=False)]
            dy = self.binary(self.binary(parts[0], parts[1], "addf"), parts[2], "addf")
            return self.binary(d, self.norm_gradient(dy, y, inverse), "addf")

        return out, backward

    def think(self, i, x):
        """The second half."""
        wide = 4 * self.hidden
        gate, up = (self.weight(f"layer.{i}.{part}", wide, self.hidden) for part in ("gate", "up"))
        down = self.weight(f"layer.{i}.down", self.hidden, wide)
        y, inverse = self.norm(x)
        g, u = self.apply(y, gate), self.apply(y, up)
        sigmoid = self.unary(g, """%n = arith.negf %in0 : f32
                                   %e = math.exp %n : f32
                                   %s = arith.addf %e, %one : f32
                                   %r = arith.divf %one, %s : f32""")
        silu = self.binary(g, sigmoid, "mulf")
        inner = self.binary(silu, u, "mulf")
        out = self.binary(x, self.apply(inner, down), "addf")

        def backward(d):
            dinner = self.gradients(d, inner, down)
            du = self.binary(dinner, silu, "mulf")
            slope = self.generic(self.shapes[g], [g, sigmoid], """%a = arith.subf %one, %in1 : f32
                                                                  %b = arith.mulf %in0, %a : f32
                                                                  %c = arith.addf %b, %one : f32
                                                                  %r = arith.mulf %c, %in1 : f32""")
            dg = self.binary(self.binary(dinner, u, "mulf"), slope, "mulf")
            dy = self.binary(self.gradients(dg, y, gate), self.gradients(du, y, up), "addf")
            return self.binary(d, self.norm_gradient(dy, y, inverse), "addf")

        return out, backward

    def text(self, layers, trains=False):
        x, backwards = self.argument("x", [1, self.tokens, self.hidden]), []
        for i in range(layers):
            for half in (self.attend, self.think):
                x, backward = half(i, x)
                backwards.append(backward)
        self.results.append(x)
        if trains:
            d = self.argument("dy", [1, self.tokens, self.hidden])
            for backward in reversed(backwards):
                d = backward(d)
            self.results.append(d)
        constants = {"zero": "0.0", "one": "1.0", "epsilon": "1.0e-5", "width": f"{self.hidden}.0",
                     "sqrt_width": repr((self.hidden / self.heads) ** 0.5), "lowest": "0xFF800000"}
        types = ", ".join(kind(self.shapes[r]) for r in self.results)
        return "\n".join([
            f"func.func @transformer({', '.join(self.arguments)}) -> ({types}) {{",
            *(f"  %{name} = arith.constant {value} : f32" for name, value in constants.items()),
            *self.body, f"  return {', '.join(self.results)} : {types}", "}", ""])


def llama(layers):
    return Transformer().text(layers)


def training(layers):
    return Transformer().text(layers, trains=True)
