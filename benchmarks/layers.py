"""Layers of transformers and their gradients, as a frontend writes them in linalg.

Activations and weights are bf16, weights as PyTorch's nn.Linear has them, a row for each
output. Products are f32 and rounded to bf16, as PyTorch rounds them. Every function says
what its arguments are (`fp8.weight`, `fp8.grad`) and names its contractions.
"""

MAPS = """#full = affine_map<(m, n) -> (m, n)>
#rows = affine_map<(m, n) -> (m)>
#columns = affine_map<(m, n) -> (n)>
#a = affine_map<(m, n, k) -> (m, k)>
#a_columns = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#b_columns = affine_map<(m, n, k) -> (n, k)>
#d = affine_map<(m, n, k) -> (m, n)>
"""

# What a function such as SiLU does to an element, in f32.
SILU = """    %one = arith.constant 1.0 : f32
    %negative = arith.negf %g : f32
    %exp = math.exp %negative : f32
    %divisor = arith.addf %exp, %one : f32
    %sigmoid = arith.divf %one, %divisor : f32
"""


class Builder:
    """The text of one function of tensors of two dimensions."""

    def __init__(self, name):
        self.name, self.arguments, self.results, self.body = name, [], [], []
        self.shapes, self.count = {}, 0

    def argument(self, name, shape, attribute=""):
        value = f"arg_{name}"
        self.shapes[value] = (shape, "bf16")
        attribute = f", {attribute}" if attribute else ""
        self.arguments.append(f'%{value}: {self.type_of(value)} '
                              f'{{fp8.name = "{name}"{attribute}}}')
        return value

    def new(self, shape, element):
        self.count += 1
        name = f"v{self.count}"
        self.shapes[name] = (shape, element)
        return name

    def type_of(self, name):
        shape, element = self.shapes[name]
        return f"tensor<{'x'.join(map(str, shape))}x{element}>"

    def zeros(self, shape):
        empty, zeros = self.new(shape, "f32"), self.new(shape, "f32")
        kind = self.type_of(zeros)
        self.body += [f"  %{zeros}_c = arith.constant 0.0 : f32",
                      f"  %{empty} = tensor.empty() : {kind}",
                      f"  %{zeros} = linalg.fill ins(%{zeros}_c : f32) outs(%{empty} : {kind})"
                      f" -> {kind}"]
        return zeros

    def matmul(self, name, a, b, layout):
        """`layout` says for A and B whether rows (n) or columns (t) are innermost."""
        (m, k), (k_b, n) = self.shapes[a][0], self.shapes[b][0]
        m, k = (m, k) if layout[0] == "n" else (k, m)
        k_b, n = (k_b, n) if layout[1] == "n" else (n, k_b)
        assert k == k_b
        zeros, wide = self.zeros((m, n)), self.new((m, n), "f32")
        maps = (f"#a{'' if layout[0] == 'n' else '_columns'}, "
                f"#b{'' if layout[1] == 'n' else '_columns'}, #d")
        self.body.append(
            f'  %{wide} = linalg.matmul indexing_maps = [{maps}] {{fp8.name = "{name}"}} '
            f"ins(%{a}, %{b} : {self.type_of(a)}, {self.type_of(b)}) "
            f"outs(%{zeros} : {self.type_of(zeros)}) -> {self.type_of(wide)}")
        return wide

    def round(self, wide):
        value = self.new(self.shapes[wide][0], "bf16")
        self.body.append(f"  %{value} = arith.truncf %{wide} : {self.type_of(wide)} "
                         f"to {self.type_of(value)}")
        return value

    def linear(self, name, a, b, layout):
        return self.round(self.matmul(name, a, b, layout))

    def elementwise(self, shape, operands, body, results=("bf16",)):
        """`operands` by the names that `body` has for them in f32, with what they run
        along: "full", "rows" or "columns"; body makes %out0, %out1 ... in f32."""
        values = [self.new(shape, element) for element in results]
        empties = [f"{value}_empty" for value in values]
        kinds = [self.type_of(value) for value in values]
        for empty, kind in zip(empties, kinds):
            self.body.append(f"  %{empty} = tensor.empty() : {kind}")
        self.generic(values, kinds, operands, empties, ["full"] * len(results), body,
                     results, ["parallel", "parallel"])
        return values

    def reduce(self, along, operands, body, summand="%out0"):
        """The sums of %out0 over each of the "rows" or "columns"."""
        shape = self.shapes[operands[0][1]][0]
        zeros = self.zeros((shape[0] if along == "rows" else shape[1],))
        value = self.new(self.shapes[zeros][0], "f32")
        kinds = ["parallel", "reduction"] if along == "rows" else ["reduction", "parallel"]
        self.generic([value], [self.type_of(value)], operands, [zeros], [along],
                     body + f"    %sum = arith.addf %old0, {summand} : f32\n", ["sum"], kinds)
        return value

    def generic(self, values, kinds, operands, inits, places, body, results, iterators):
        """One linalg.generic that makes `values` of types `kinds`, along `places`. `results`
        says of each what it is: %out0, ... in "f32" or rounded to "bf16", or the "sum"."""
        maps = ", ".join(f"#{place}" for place in [o[2] for o in operands] + list(places))
        names = ", ".join(f"%{value}" for _, value, _ in operands)
        types = ", ".join(self.type_of(value) for _, value, _ in operands)
        elements = [self.shapes[value][1] for _, value, _ in operands]
        arguments = [f"%{name}{'_in' if element == 'bf16' else ''}: {element}"
                     for (name, _, _), element in zip(operands, elements)]
        arguments += [f"%old{i}: {self.shapes[value][1]}" for i, value in enumerate(values)]
        lines = [f"    %{name} = arith.extf %{name}_in : bf16 to f32"
                 for (name, _, _), element in zip(operands, elements) if element == "bf16"]
        yields = []
        for i, (result, value) in enumerate(zip(results, values)):
            if result == "bf16":
                body += f"    %rounded{i} = arith.truncf %out{i} : f32 to bf16\n"
                yields.append(f"%rounded{i}")
            else:
                yields.append("%sum" if result == "sum" else f"%out{i}")
        kind = ", ".join(kinds)
        self.body += [
            f"  {', '.join('%' + value for value in values)} = linalg.generic "
            f"{{indexing_maps = [{maps}], iterator_types = [" +
            ", ".join(f'"{iterator}"' for iterator in iterators) + "]} "
            f"ins({names} : {types}) outs({', '.join('%' + init for init in inits)} : {kind}) {{",
            f"  ^bb0({', '.join(arguments)}):", *lines, *body.splitlines(),
            f"    linalg.yield {', '.join(yields)} : "
            f"{', '.join(self.shapes[value][1] for value in values)}",
            f"  }} -> {kind if len(kinds) == 1 else '(' + kind + ')'}"]

    def result(self, name, value):
        self.results.append((name, value))

    def text(self):
        results = ", ".join(f'{self.type_of(value)} {{fp8.name = "{name}"}}'
                            for name, value in self.results)
        values = ", ".join(f"%{value}" for _, value in self.results)
        types = ", ".join(self.type_of(value) for _, value in self.results)
        return (f"func.func @{self.name}({', '.join(self.arguments)})\n    -> ({results}) {{\n" +
                "\n".join(self.body) + f"\n  return {values} : {types}\n}}\n")


def linear_step(name, m, n, k):
    """A linear layer's y = x @ transpose(w), dx = dy @ w and dw = transpose(dy) @ x."""
    f = Builder(name)
    x, w = f.argument("x", (m, k)), f.argument("w", (n, k), "fp8.weight")
    dy = f.argument("dy", (m, n), "fp8.grad")
    f.result("y", f.linear("linear", x, w, "nt"))
    f.result("dx", f.linear("linear.dgrad", dy, w, "nn"))
    f.result("dw", f.linear("linear.wgrad", dy, x, "tn"))
    return f.text()


def projections_forward(name, m, k, columns):
    """What is made of x, by name: `columns` says of how many columns."""
    f = Builder(name)
    x = f.argument("x", (m, k))
    for part, n in columns.items():
        w = f.argument(f"w_{part}", (n, k), "fp8.weight")
        f.result(part, f.linear(part, x, w, "nt"))
    return f.text()


def swiglu(f, gate, up, shape):
    return f.elementwise(shape, [("g", gate, "full"), ("u", up, "full")], SILU +
                         "    %silu = arith.mulf %g, %sigmoid : f32\n"
                         "    %out0 = arith.mulf %silu, %u : f32\n")[0]


def swiglu_forward(name, m, n, k):
    """y = (silu(x @ transpose(w_gate)) * (x @ transpose(w_up))) @ transpose(w_down)."""
    f = Builder(name)
    x, w_gate = f.argument("x", (m, k)), f.argument("w_gate", (n, k), "fp8.weight")
    w_up = f.argument("w_up", (n, k), "fp8.weight")
    w_down = f.argument("w_down", (k, n), "fp8.weight")
    gate, up = f.linear("gate", x, w_gate, "nt"), f.linear("up", x, w_up, "nt")
    f.result("y", f.linear("down", swiglu(f, gate, up, (m, n)), w_down, "nt"))
    return f.text()


def norm_mlp_step(name, m, n, k, eps=1e-5):
    """RMSNorm and the SwiGLU MLP forward, and the gradients of all their arguments."""
    f = Builder(name)
    x, w_norm = f.argument("x", (m, k)), f.argument("w_norm", (k,))
    w_gate, w_up = (f.argument(w, (n, k), "fp8.weight") for w in ("w_gate", "w_up"))
    w_down = f.argument("w_down", (k, n), "fp8.weight")
    dy = f.argument("dy", (m, k), "fp8.grad")
    # Forward.
    squares = f.reduce("rows", [("x", x, "full")], "    %out0 = arith.mulf %x, %x : f32\n")
    inverse = (f"    %per = arith.constant {1 / k:.9e} : f32\n"
               f"    %eps = arith.constant {eps:.9e} : f32\n"
               "    %mean = arith.mulf %ss, %per : f32\n"
               "    %moved = arith.addf %mean, %eps : f32\n"
               "    %r = math.rsqrt %moved : f32\n")
    norm = [("x", x, "full"), ("ss", squares, "rows"), ("w", w_norm, "columns")]
    h = f.elementwise((m, k), norm, inverse + "    %scaled = arith.mulf %x, %r : f32\n"
                      "    %out0 = arith.mulf %scaled, %w : f32\n")[0]
    gate, up = f.linear("gate", h, w_gate, "nt"), f.linear("up", h, w_up, "nt")
    hidden = swiglu(f, gate, up, (m, n))
    f.result("y", f.linear("down", hidden, w_down, "nt"))
    # Backward.
    dhidden = f.linear("down.dgrad", dy, w_down, "nn")
    f.result("dw_down", f.linear("down.wgrad", dy, hidden, "tn"))
    dgate, dup = f.elementwise(
        (m, n), [("d", dhidden, "full"), ("g", gate, "full"), ("u", up, "full")], SILU +
        "    %silu = arith.mulf %g, %sigmoid : f32\n"
        "    %rest = arith.subf %one, %sigmoid : f32\n"
        "    %inner = arith.mulf %g, %rest : f32\n"
        "    %slope = arith.addf %one, %inner : f32\n"
        "    %dsilu = arith.mulf %sigmoid, %slope : f32\n"
        "    %du = arith.mulf %d, %u : f32\n"
        "    %out0 = arith.mulf %du, %dsilu : f32\n"
        "    %out1 = arith.mulf %d, %silu : f32\n", ("bf16", "bf16"))
    f.result("dw_gate", f.linear("gate.wgrad", dgate, h, "tn"))
    f.result("dw_up", f.linear("up.wgrad", dup, h, "tn"))
    dh_gate, dh_up = (f.linear("gate.dgrad", dgate, w_gate, "nn"),
                      f.linear("up.dgrad", dup, w_up, "nn"))
    dh = f.elementwise((m, k), [("p", dh_gate, "full"), ("q", dh_up, "full")],
                       "    %out0 = arith.addf %p, %q : f32\n")[0]
    # h = x r w with r = rsqrt(mean(x^2) + eps).
    dot = f.reduce("rows", [("d", dh, "full"), ("x", x, "full"), ("w", w_norm, "columns")],
                   "    %dw = arith.mulf %d, %w : f32\n    %out0 = arith.mulf %dw, %x : f32\n")
    dx = f.elementwise((m, k), [("d", dh, "full"), ("dot", dot, "rows"), *norm], inverse +
                       "    %dw = arith.mulf %d, %w : f32\n"
                       "    %r2 = arith.mulf %r, %r : f32\n"
                       "    %dmean = arith.mulf %dot, %per : f32\n"
                       "    %c = arith.mulf %dmean, %r2 : f32\n"
                       "    %xc = arith.mulf %x, %c : f32\n"
                       "    %left = arith.subf %dw, %xc : f32\n"
                       "    %out0 = arith.mulf %left, %r : f32\n")[0]
    f.result("dx", dx)
    dnorm = f.reduce("columns", [("d", dh, "full"), ("x", x, "full"), ("ss", squares, "rows")],
                     inverse + "    %xr = arith.mulf %x, %r : f32\n"
                     "    %out0 = arith.mulf %d, %xr : f32\n")
    f.result("dw_norm", f.round(dnorm))
    return f.text()


def gelu_mlp_step(name, m, n, k):
    """Two linears with biases and GELU (its tanh form) between them, and all gradients."""
    f = Builder(name)
    x, w_up = f.argument("x", (m, k)), f.argument("w_up", (n, k), "fp8.weight")
    b_up = f.argument("b_up", (n,))
    w_down = f.argument("w_down", (k, n), "fp8.weight")
    b_down = f.argument("b_down", (k,))
    dy = f.argument("dy", (m, k), "fp8.grad")
    pre = f.elementwise((m, n), [("p", f.matmul("up", x, w_up, "nt"), "full"),
                                 ("b", b_up, "columns")],
                        "    %out0 = arith.addf %p, %b : f32\n")[0]
    inner = ("    %c0 = arith.constant 0.7978845608 : f32\n"
             "    %c1 = arith.constant 0.044715 : f32\n"
             "    %half = arith.constant 0.5 : f32\n"
             "    %one = arith.constant 1.0 : f32\n"
             "    %x2 = arith.mulf %x, %x : f32\n"
             "    %cx2 = arith.mulf %x2, %c1 : f32\n"
             "    %poly = arith.addf %one, %cx2 : f32\n"
             "    %xc = arith.mulf %x, %c0 : f32\n"
             "    %z = arith.mulf %xc, %poly : f32\n"
             "    %t = math.tanh %z : f32\n"
             "    %t1 = arith.addf %one, %t : f32\n"
             "    %ht = arith.mulf %half, %t1 : f32\n")
    hidden = f.elementwise((m, n), [("x", pre, "full")], inner +
                           "    %out0 = arith.mulf %x, %ht : f32\n")[0]
    y = f.elementwise((m, k), [("p", f.matmul("down", hidden, w_down, "nt"), "full"),
                               ("b", b_down, "columns")],
                      "    %out0 = arith.addf %p, %b : f32\n")[0]
    f.result("y", y)
    f.result("dw_down", f.linear("down.wgrad", dy, hidden, "tn"))
    f.result("db_down", f.round(f.reduce("columns", [("d", dy, "full")], "", "%d")))
    dhidden = f.linear("down.dgrad", dy, w_down, "nn")
    dpre = f.elementwise((m, n), [("d", dhidden, "full"), ("x", pre, "full")], inner +
                         "    %tt = arith.mulf %t, %t : f32\n"
                         "    %sech = arith.subf %one, %tt : f32\n"
                         "    %three = arith.constant 3.0 : f32\n"
                         "    %cx23 = arith.mulf %cx2, %three : f32\n"
                         "    %dpoly = arith.addf %one, %cx23 : f32\n"
                         "    %dz = arith.mulf %dpoly, %c0 : f32\n"
                         "    %hx = arith.mulf %half, %x : f32\n"
                         "    %s = arith.mulf %hx, %sech : f32\n"
                         "    %sdz = arith.mulf %s, %dz : f32\n"
                         "    %slope = arith.addf %ht, %sdz : f32\n"
                         "    %out0 = arith.mulf %d, %slope : f32\n")[0]
    f.result("dw_up", f.linear("up.wgrad", dpre, x, "tn"))
    f.result("db_up", f.round(f.reduce("columns", [("d", dpre, "full")], "", "%d")))
    f.result("dx", f.linear("up.dgrad", dpre, w_up, "nn"))
    return f.text()
