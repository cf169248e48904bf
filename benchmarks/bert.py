"""BERT's encoder in linalg on f32, as torch-mlir writes it.

Parameters are arguments with the names that PyTorch gives them. A linear layer of three
dimensions is a transpose and a broadcast of its weight and a batched product. Everything
else is a linalg.generic for each operation of ATen's: softmax and layer normalization
come as the maxima, sums and elementwise operations that they are decomposed to.

usage: bert.py [--layers 12] [--batch 1] [--tokens 128] [--hidden 768] [--heads 12]
"""

import argparse
import sys


class Encoder:
    """The text of one function."""

    def __init__(self, batch, tokens, hidden, heads):
        self.batch, self.tokens, self.hidden, self.heads = batch, tokens, hidden, heads
        self.arguments, self.body, self.count = [], [], 0
        self.shapes = {}

    def argument(self, name, shape, is_weight=False):
        value = f"%arg{len(self.arguments)}"
        self.shapes[value] = shape
        weight = ", fp8.weight" if is_weight else ""
        self.arguments.append(f'{value}: {kind(shape)} {{fp8.name = "{name}"{weight}}}')
        return value

    def add(self, shape, text):
        """`text` with the new value's type in place of `$`."""
        self.count += 1
        value = f"%{self.count}"
        self.shapes[value] = shape
        self.body.append(f"  {value} = " + text.replace("$", kind(shape)))
        return value

    def filled(self, shape, constant):
        empty = self.add(shape, "tensor.empty() : $")
        return self.add(shape, f"linalg.fill ins({constant} : f32) outs({empty} : $) -> $")

    def generic(self, shape, operands, body, init=None, reduces=False):
        """A linalg.generic of `operands`, each broadcast along its extents of 1 and its
        missing leading dimensions; with `reduces`, the last extent is summed up."""
        domain = max((self.shapes[o] for o in operands), key=len) if reduces else shape
        init = init or self.add(shape, "tensor.empty() : $")
        maps = [broadcast(self.shapes[o], domain) for o in operands]
        maps.append(broadcast(shape, domain))
        iterators = ['"parallel"'] * len(domain)
        if reduces:
            iterators[-1] = '"reduction"'
        names = [f"%in{i}: f32" for i in range(len(operands))] + ["%out: f32"]
        types = ", ".join(kind(self.shapes[o]) for o in operands)
        lines = "".join(f"\n    {line.strip()}" for line in body.strip().splitlines())
        return self.add(
            shape, f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{', '.join(iterators)}]}} ins({', '.join(operands)} : {types}) "
            f"outs({init} : $) {{\n  ^bb0({', '.join(names)}):{lines}\n"
            f"    linalg.yield %r : f32\n  }} -> $")

    def unary(self, x, body):
        return self.generic(self.shapes[x], [x], body)

    def binary(self, a, b, operation):
        return self.generic(self.shapes[a], [a, b], f"%r = arith.{operation} %in0, %in1 : f32")

    def transposed(self, x, permutation):
        shape = [self.shapes[x][i] for i in permutation]
        empty = self.add(shape, "tensor.empty() : $")
        return self.add(shape, f"linalg.transpose ins({x} : {kind(self.shapes[x])}) "
                        f"outs({empty} : $) permutation = {permutation}")

    def reshaped(self, x, shape, operation, groups):
        sizes = f" output_shape {list(shape)}" if operation == "expand_shape" else ""
        return self.add(shape, f"tensor.{operation} {x} {groups}{sizes} : "
                        f"{kind(self.shapes[x])} into $")

    def product(self, a, b):
        (batch, m, _), (_, _, n) = self.shapes[a], self.shapes[b]
        zeros = self.filled([batch, m, n], "%zero")
        return self.add([batch, m, n], f"linalg.batch_matmul ins({a}, {b} : "
                        f"{kind(self.shapes[a])}, {kind(self.shapes[b])}) outs({zeros} : $) -> $")

    def linear(self, name, x, features):
        width = self.shapes[x][-1]
        weight = self.argument(f"{name}.weight", [features, width], is_weight=True)
        bias = self.argument(f"{name}.bias", [features])
        turned = self.transposed(weight, [1, 0])
        shape = [self.batch, width, features]
        empty = self.add(shape, "tensor.empty() : $")
        many = self.add(shape, f"linalg.broadcast ins({turned} : {kind(self.shapes[turned])}) "
                        f"outs({empty} : $) dimensions = [0]")
        return self.binary(self.product(x, many), bias, "addf")

    def split(self, x):
        """Heads beside each other to [batch, heads, tokens, width]."""
        width = self.hidden // self.heads
        heads = self.reshaped(x, [self.batch, self.tokens, self.heads, width],
                              "expand_shape", "[[0], [1], [2, 3]]")
        return self.transposed(heads, [0, 2, 1, 3])

    def batched(self, x):
        b, h, m, n = self.shapes[x]
        return self.reshaped(x, [b * h, m, n], "collapse_shape", "[[0, 1], [2], [3]]")

    def reduced(self, x, constant, operation):
        shape = self.shapes[x][:-1] + [1]
        return self.generic(shape, [x], f"%r = arith.{operation} %in0, %out : f32",
                            init=self.filled(shape, constant), reduces=True)

    def softmax(self, x):
        most = self.reduced(x, "%lowest", "maximumf")
        exps = self.unary(self.binary(x, most, "subf"), "%r = math.exp %in0 : f32")
        return self.binary(exps, self.reduced(exps, "%zero", "addf"), "divf")

    def mean(self, x):
        return self.unary(self.reduced(x, "%zero", "addf"), "%r = arith.divf %in0, %width : f32")

    def layer_norm(self, name, x):
        weight = self.argument(f"{name}.weight", [self.hidden])
        bias = self.argument(f"{name}.bias", [self.hidden])
        centred = self.binary(x, self.mean(x), "subf")
        variance = self.mean(self.binary(centred, centred, "mulf"))
        inverse = self.unary(variance, """%sum = arith.addf %in0, %epsilon : f32
                                          %r = math.rsqrt %sum : f32""")
        scaled = self.binary(self.binary(centred, inverse, "mulf"), weight, "mulf")
        return self.binary(scaled, bias, "addf")

    def gelu(self, x):
        return self.unary(x, """%scaled = arith.divf %in0, %sqrt2 : f32
                                %erf = math.erf %scaled : f32
                                %more = arith.addf %erf, %one : f32
                                %half_of_it = arith.mulf %more, %half : f32
                                %r = arith.mulf %in0, %half_of_it : f32""")

    def attention(self, name, x, mask):
        q, k, v = (self.split(self.linear(f"{name}.self.{part}", x, self.hidden))
                   for part in ("query", "key", "value"))
        scores = self.product(self.batched(q), self.batched(self.transposed(k, [0, 1, 3, 2])))
        shape = [self.batch, self.heads, self.tokens, self.tokens]
        scores = self.reshaped(scores, shape, "expand_shape", "[[0, 1], [2], [3]]")
        scores = self.unary(scores, "%r = arith.divf %in0, %sqrt_width : f32")
        weights = self.softmax(self.binary(scores, mask, "addf"))
        context = self.product(self.batched(weights), self.batched(v))
        width = self.hidden // self.heads
        context = self.reshaped(context, [self.batch, self.heads, self.tokens, width],
                                "expand_shape", "[[0, 1], [2], [3]]")
        context = self.transposed(context, [0, 2, 1, 3])
        context = self.reshaped(context, [self.batch, self.tokens, self.hidden],
                                "collapse_shape", "[[0], [1], [2, 3]]")
        return self.linear(f"{name}.output.dense", context, self.hidden)

    def layer(self, name, x, mask):
        x = self.layer_norm(f"{name}.attention.output.LayerNorm", self.binary(
            self.attention(f"{name}.attention", x, mask), x, "addf"))
        inner = self.gelu(self.linear(f"{name}.intermediate.dense", x, 4 * self.hidden))
        outer = self.linear(f"{name}.output.dense", inner, self.hidden)
        return self.layer_norm(f"{name}.output.LayerNorm", self.binary(outer, x, "addf"))

    def text(self, layers):
        shape = [self.batch, self.tokens, self.hidden]
        x = self.argument("hidden_states", shape)
        mask = self.argument("attention_mask", [self.batch, 1, 1, self.tokens])
        for i in range(layers):
            x = self.layer(f"encoder.layer.{i}", x, mask)
        constants = {"zero": 0.0, "one": 1.0, "half": 0.5, "epsilon": 1e-12,
                     "width": self.hidden, "sqrt2": 2 ** 0.5,
                     "sqrt_width": (self.hidden // self.heads) ** 0.5}
        lines = [f"  %{name} = arith.constant {float(value)!r} : f32"
                 .replace("1e-", "1.0e-") for name, value in constants.items()]
        lines.append("  %lowest = arith.constant 0xFF800000 : f32")
        return (f"func.func @bert({f',{chr(10)}    '.join(self.arguments)})\n    -> {kind(shape)} {{\n" +
                "\n".join(lines + self.body) + f"\n  return {x} : {kind(shape)}\n}}\n")


def kind(shape):
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def broadcast(shape, domain):
    """The map of an operand of `shape` in a loop nest over `domain`."""
    missing = len(domain) - len(shape)
    results = ["0" if extent == 1 and domain[missing + i] != 1 else f"d{missing + i}"
               for i, extent in enumerate(shape)]
    loops = ", ".join(f"d{i}" for i in range(len(domain)))
    return f"affine_map<({loops}) -> ({', '.join(results)})>"


def module(layers=12, batch=1, tokens=128, hidden=768, heads=12):
    return Encoder(batch, tokens, hidden, heads).text(layers)


def main():
    parser = argparse.ArgumentParser()
    for name, default in (("layers", 12), ("batch", 1), ("tokens", 128), ("hidden", 768),
                          ("heads", 12)):
        parser.add_argument(f"--{name}", type=int, default=default)
    sys.stdout.write(module(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
