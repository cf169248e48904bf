"""Programs of an attention's gradients, what they are given, and what comes out by f64."""

import numpy as np

import fp8
from attention_programs import DTYPES, ELEMENTS, Attention, tensor

# Shares of a gradient's norm: what is rounded are P, G and the result.
TOLERANCE = {"bf16": 8e-3, "f16": 4e-3, "f32": 1e-5}


class Gradients(Attention):
    """`grad` is the type of the gradients, `order` that of the sums of dQ."""

    def __init__(self, element, *arguments, grad="bf16", config=None, order="deterministic", **others):
        super().__init__(element, *arguments, **others)
        self.grad, self.config, self.order = grad, config, order

    @staticmethod
    def random(rng):
        """Has up to some hundred positions."""
        element = str(rng.choice(["bf16", "f16", "e4m3", "e5m2"]))
        scaled = element in ELEMENTS
        window = None
        if rng.random() < 0.6:
            window = tuple(None if rng.random() < 0.3 else int(rng.integers(0, 150)) for _ in range(2))
        of_k = int(rng.integers(1, 3))
        return Gradients(
            element, int(rng.integers(1, 3)), int(rng.integers(1, 300)), int(rng.integers(1, 400)),
            of_k * int(rng.integers(1, 3)), of_k, int(rng.choice([64, 128])), window=window,
            bottom_right=bool(rng.random() < 0.5), layout=str(rng.choice(["bshd", "bhsd"])),
            ranges=str(rng.choice(["packed", "random"])) if rng.random() < 0.5 else None,
            cap=float(rng.choice([0.5, 2.0, 30.0])) if rng.random() < 0.4 else None,
            dropout=float(rng.choice([0.1, 0.5])) if rng.random() < 0.5 else None,
            grad=str(rng.choice(["bf16", "f16"])) if scaled else element,
            order=str(rng.choice(["deterministic", "any"])))

    def program(self):
        element = ELEMENTS.get(self.element, self.element)
        grad = tensor(self.shape(self.queries, self.heads, self.dim_of_v), self.grad)
        arguments, made, types, results = [f"%grad: {grad}"], "", [grad], []
        for name, shape, factors in self.operands():
            results.append(tensor(shape, self.grad))
            if not self.is_scaled:
                arguments.append(f"%{name}: {tensor(shape, element)}")
                types.append(tensor(shape, element))
                continue
            block = "*, *, *, *"
            if self.of_heads:
                block = "1, *, 1, *" if self.layout == "bshd" else "1, 1, *, *"
            scaled = f"!fp8.scaled<{'x'.join(map(str, shape))}x{element}, block = [{block}], scale = f32>"
            codes, scales = tensor(shape, element), tensor(factors, "f32")
            arguments += [f"%{name}_codes: {codes}", f"%{name}_scales: {scales}"]
            made += f"  %{name} = fp8.assemble %{name}_codes, %{name}_scales : {codes}, {scales} -> {scaled}\n"
            types.append(scaled)
        rows = tensor((self.batch, self.heads, self.queries), "f32")
        arguments += [f"%lse: {rows}", f"%delta: {rows}"]
        attributes = f"scale = {self.scale:e}" + (f" cap = {self.cap:e}" if self.cap else "")
        ranges = ""
        if self.ranges:
            kind = tensor((self.batch, self.queries, 2), "i32")
            arguments.append(f"%ranges: {kind}")
            ranges = f" key_ranges(%ranges : {kind})"
        if self.dropout is not None:
            arguments.append("%state: tensor<2xi64>")
            ranges += f" dropout(%state : tensor<2xi64>) rate = {self.dropout:e}"
        if self.window:
            attributes += f" window = [{', '.join('*' if side is None else str(side) for side in self.window)}]"
        attributes += " bottom_right" * self.bottom_right + f" layout = {self.layout} order = {self.order}"
        if self.config:
            attributes += f" {{fp8_gpu.config = #fp8_sm90.attention<{self.config}>}}"
        return (f"func.func @gradients({', '.join(arguments)}) -> ({', '.join(results)}) {{\n{made}"
                f"  %dq, %dk, %dv = fp8.attention_backward %grad, %q, %k, %v, %lse, %delta{ranges} {attributes} : "
                f"{', '.join([*types, rows, rows])} -> {', '.join(results)}\n"
                f"  return %dq, %dk, %dv : {', '.join(results)}\n}}\n")

    def to_heads(self, x):
        return x.transpose(0, 2, 1, 3) if self.layout == "bshd" else x

    def differentiate(self, grad, q, k, v, output, lse, ranges=None):
        """The gradients by their definition, and delta."""
        grad, q, k, v, output = (self.to_heads(x) for x in (grad, q, k, v, output))
        group = self.heads // self.heads_of_k
        k, v = (np.repeat(x, group, axis=1) for x in (k, v))
        own = np.arange(self.queries)[:, None] + (self.keys - self.queries) * self.bottom_right
        key = np.arange(self.keys)[None]
        left, right = self.window or (None, None)
        visible = np.ones((self.queries, self.keys), bool)
        visible = visible & (True if left is None else key >= own - left)
        visible = visible & (True if right is None else key <= own + right)
        if ranges is not None:
            visible = visible & (key >= ranges[:, None, :, :1]) & (key < ranges[:, None, :, 1:])
        scores, slope = np.einsum("bhid,bhjd->bhij", q, k) * self.scale, 1.0
        if self.cap:
            bent = np.tanh(scores / self.cap)
            scores, slope = bent * self.cap, 1 - bent * bent
        with np.errstate(invalid="ignore"):
            p = np.where(visible, np.exp(scores - np.where(np.isneginf(lse), np.inf, lse)[..., None]), 0)
        delta = (grad * output).sum(-1)
        kept = self.find_kept()
        ds = p * (kept * np.einsum("bhid,bhjd->bhij", grad, v) - delta[..., None]) * slope
        found = [np.einsum("bhij,bhjd->bhid", ds, k) * self.scale, np.einsum("bhij,bhid->bhjd", ds, q) * self.scale,
                 np.einsum("bhij,bhid->bhjd", p * kept, grad)]
        for i in (1, 2):
            found[i] = found[i].reshape(self.batch, self.heads_of_k, group, *found[i].shape[2:]).sum(2)
        return [self.to_heads(x) for x in found], delta

    def check(self, target, rng):
        arguments, values, others = self.make(rng)
        grad = rng.standard_normal(self.shape(self.queries, self.heads, self.dim_of_v)).astype(DTYPES[self.grad])
        output, lse = self.expect(*values, others)
        expected, delta = self.differentiate(grad.astype(np.float64), *values, output, lse, others[1])
        given = [np.ascontiguousarray(x, np.float32) for x in (lse, delta)]
        last = [arguments.pop() for is_there in (self.dropout is not None, self.ranges) if is_there]
        given += last[::-1]
        program = fp8.compile(self.program(), target=target, cache=False)
        found = program(grad, *arguments, *given)
        # Workspaces are as they were: the next call has the same results.
        again = program(grad, *arguments, *given)
        for name, got, more, wanted in zip(("dq", "dk", "dv"), found, again, expected):
            if self.order == "deterministic":
                assert np.asarray(got).tobytes() == np.asarray(more).tobytes(), (name, self.program())
            got, more = (np.asarray(x).astype(np.float64) for x in (got, more))
            assert np.isfinite(got).all(), (name, self.program())
            # With one key the terms of dQ cancel.
            error, size = np.linalg.norm(got - wanted), max(np.linalg.norm(wanted), 1e-3)
            assert error <= TOLERANCE[self.grad] * size, (name, error / size, self.program())
            assert np.linalg.norm(got - more) <= 2e-3 * size, (name, self.program())
        return self
