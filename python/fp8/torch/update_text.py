"""Steps of optimizers as programs: a parameter, its moments and the codes of a weight in one pass.

What is computed of an element is written once, in f32, with the roundings of torch.optim's fused
forms on a CPU with FMA; its types, the codes and the parameters of a call come from an Update.
"""

from collections import namedtuple

from fp8 import casts
from fp8.torch.program_text import write_block

# The codes of a weight: a shard_programs.Codes, what the weight is rounded to before it is quantized,
# and whether scales are those of a state.
Target = namedtuple("Target", "codes element is_delayed")


# A parameter: its sizes as a matrix, its type, and a Target or None.
Part = namedtuple("Part", "rows columns element target", defaults=(None,))

# What a program computes: a Rule, of several Parts.
Update = namedtuple("Update", "rule parts")


_FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
_LARGEST = {"bf16": 3.3895313892515355e38, "f16": 65504.0}
_ONE = "tensor<1x1xf32>"


class _Body:
    """Arithmetic on elements, a line for each operation."""

    def __init__(self):
        self.lines, self._count = [], 0

    def emit(self, text, kind="f32"):
        self._count += 1
        self.lines.append(f"    %e{self._count} = {text} : {kind}")
        return f"%e{self._count}"

    def widen(self, value, element):
        return value if element == "f32" else self.emit(f"arith.extf {value}", f"{element} to f32")

    def round(self, value, element):
        return value if element == "f32" else self.emit(f"arith.truncf {value}", f"f32 to {element}")

    def __getattr__(self, name):
        operation = {"add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf",
                     "max": "arith.maximumf", "fma": "math.fma", "sqrt": "math.sqrt", "neg": "arith.negf"}[name]
        return lambda *values: self.emit(f"{operation} {', '.join(values)}")


class Rule(namedtuple("Rule", "kind options", defaults=((),))):
    """The arithmetic of an optimizer: `kind` is adamw, adam, sgd, or none, which writes codes alone.

    Options: "decay", "maximize", "amsgrad", "nesterov"; "first", of SGD, whose buffer is not there yet;
    "momentum", of SGD; "late", with a beta1 of up to 1/2; "scaled", with GradScaler's factor and flag;
    "clipped", with a factor of all gradients.
    """

    __slots__ = ()

    @property
    def moments(self):
        """Names of a parameter's tensors in the optimizer's state."""
        if self.kind in ("adam", "adamw"):
            return ("exp_avg", "exp_avg_sq", *["max_exp_avg_sq"] * ("amsgrad" in self.options))
        return ("momentum_buffer",) * ("momentum" in self.options)

    @property
    def factors(self):
        """Numbers that all parameters share, in the order of arguments."""
        own = {"adamw": ("decay", "lerp", "beta2", "square", "step_size", "root", "eps"),
               "adam": ("decay", "lerp", "beta2", "square", "step_size", "root", "eps"),
               "sgd": ("decay", "momentum", "damp", "step_size"), "none": ()}[self.kind]
        return (*own, *["grad_scale", "found_inf"] * ("scaled" in self.options),
                *["clip"] * ("clipped" in self.options))

    def write(self, body, p, g, moments, factors):
        """The parameter and the moments behind the step."""
        if "scaled" in self.options and None in moments.values():
            none = body.emit("arith.constant 0.0")  # A buffer that is not there yet.
            moments = {name: none if value is None else value for name, value in moments.items()}
        old = p, *moments.values()
        if "scaled" in self.options:
            g = body.div(g, factors["grad_scale"])
        if "clipped" in self.options:
            g = body.mul(g, factors["clip"])
        if "maximize" in self.options:
            g = body.neg(g)
        compute = self._write_sgd if self.kind == "sgd" else self._write_adam
        new = compute(body, p, g, moments, factors)
        if "scaled" in self.options:
            zero = body.emit("arith.constant 0.0")
            keeps = body.emit(f"arith.cmpf one, {factors['found_inf']}, {zero}")
            new = [body.emit(f"arith.select {keeps}, {before}, {after}") for before, after in zip(old, new)]
        return new

    def _write_adam(self, body, p, g, moments, factors):
        mean, square, *most = moments.values()
        if self.kind == "adamw":
            p = body.mul(p, factors["decay"])
        elif "decay" in self.options:
            g = body.fma(p, factors["decay"], g)
        mean = body.fma(body.sub(g, mean), factors["lerp"], g if "late" in self.options else mean)
        square = body.fma(body.mul(factors["square"], g), g, body.mul(factors["beta2"], square))
        most = [body.max(each, square) for each in most]
        root = body.sqrt((most or [square])[0])
        below = body.add(body.div(root, factors["root"]), factors["eps"])
        p = body.sub(p, body.div(body.mul(factors["step_size"], mean), below))
        return [p, mean, square, *most]

    def _write_sgd(self, body, p, g, moments, factors):
        if "decay" in self.options:
            g = body.fma(p, factors["decay"], g)
        kept = []
        if "momentum" in self.options:
            buffer = g
            if "first" not in self.options:
                before = body.mul(moments["momentum_buffer"], factors["momentum"])
                buffer = body.fma(g, factors["damp"], before)
            kept = [buffer]
            g = body.fma(buffer, factors["momentum"], g) if "nesterov" in self.options else buffer
        return [body.fma(g, factors["step_size"], p), *kept]


class _Writer:
    """The text of one parameter of an Update; names end in its number."""

    def __init__(self, rule, part, number):
        self.rule, self.part, self.number = rule, part, number
        self.arguments, self.lines, self.factors = [], [], rule.factors

    def name(self, name):
        return f"%{name}_{self.number}"

    def size(self, element, rows=None, columns=None):
        return f"{rows or self.part.rows}x{columns or self.part.columns}x{element}"

    def take(self, name, kind):
        self.arguments.append((f"{name}_{self.number}", kind))
        return self.name(name)

    def change(self, name, element, sizes=()):
        """An argument that the program changes, as it is before."""
        memory = self.take(name, f"memref<{self.size(element, *sizes)}>")
        self.lines.append(f"  {self.name(name + '_old')} = bufferization.to_tensor {memory} restrict writable : "
                          f"memref<{self.size(element)}> to tensor<{self.size(element)}>")
        return self.name(name + "_old")

    def store(self, value, name, sizes, element):
        kind = "x".join(map(str, sizes)) + f"x{element}"
        self.lines.append(f"  bufferization.materialize_in_destination {value} in restrict writable %{name}_{self.number} : "
                          f"(tensor<{kind}>, memref<{kind}>) -> ()")

    def write_alone(self):
        """Codes of a weight that stays as it is."""
        weight = self.take("param", f"tensor<{self.size(self.part.element)}>")
        self.write_codes(weight if self.part.target.element == self.part.element else self.round(weight))

    def round(self, weight):
        kind, narrow = (f"tensor<{self.size(each)}>" for each in (self.part.element, self.part.target.element))
        self.lines += [
            f"  {self.name('narrow_e')} = tensor.empty() : {narrow}",
            f"  {self.name('narrow')} = linalg.generic {{indexing_maps = [#full, #full], iterator_types = "
            f'["parallel", "parallel"]}} ins({weight} : {kind}) outs({self.name("narrow_e")} : {narrow}) {{',
            f"  ^bb0(%in: {self.part.element}, %out: {self.part.target.element}):",
            f"    %r = arith.truncf %in : {self.part.element} to {self.part.target.element}",
            f"    linalg.yield %r : {self.part.target.element}", f"  }} -> {narrow}"]
        return self.name("narrow")

    def begin_step(self):
        """Makes what the linalg.generic of a step takes, and what it writes to."""
        part, rule = self.part, self.rule
        self.names, element = ("param", *rule.moments), part.element
        self.kept = self.names[:1] if "first" in rule.options else self.names  # A new buffer is not read.
        olds = [self.change(name, element) for name in self.kept]
        for name in self.names[len(self.kept):]:
            self.take(name, f"memref<{self.size(element)}>")
        kind = f"tensor<{self.size(element)}>"
        self.inputs = [self.take("grad", kind), *olds]
        self.narrow = part.target.element if part.target and part.target.element != element else None
        self.elements = [element] * len(self.names) + [self.narrow] * (self.narrow is not None)
        self.results = [f"tensor<{self.size(each)}>" for each in self.elements]
        self.empties = [self.name(f"empty{i}") for i in range(len(self.results))]
        self.lines += [f"  {name} = tensor.empty() : {each}" for name, each in zip(self.empties, self.results)]

    def write_body(self, body):
        """What is yielded for each of the results."""
        element = self.part.element
        values = {name: body.widen(self.name(f"v_{name}"), element) for name in ("grad", *self.kept)}
        new = self.rule.write(body, values["param"], values["grad"],
                              {name: values.get(name) for name in self.rule.moments},
                              {name: f"%v_{name}" for name in self.factors})
        new = [body.round(value, element) for value in new]
        if self.narrow:
            new.append(body.emit(f"arith.truncf {new[0]}", f"{element} to {self.narrow}"))
        return new

    def end_step(self, result, first):
        """Stores results of a linalg.generic, from the number `first` on."""
        for i, name in enumerate(self.names):
            self.store(f"{result}#{first + i}", name, (self.part.rows, self.part.columns), self.part.element)
        if self.part.target is not None:
            self.write_codes(f"{result}#{first + len(self.results) - 1 if self.narrow else first}")

    def write_codes(self, weight):
        target, rows, columns = self.part.target, self.part.rows, self.part.columns
        code, element = _FORMATS[target.codes.format], target.element
        blocks = {"": target.codes.forward, "_1": target.codes.backward}
        quantized = {}
        for suffix, block in blocks.items():
            if block not in quantized:
                quantized[block] = self.quantize(weight, suffix, block, code)
            value, kind = quantized[block], f"!fp8.scaled<{self.size(code)}, block = {write_block(block)}, scale = f32>"
            sizes, grid = (rows, columns), self.find_grid(block)
            # What is as long the other way round need not be copied for that.
            inverse, is_line = None, 1 in grid
            if not target.is_delayed and (not suffix or is_line and block != target.codes.forward):
                inverse = self.disassemble(value, kind, f"{suffix}_f")[1]
            if suffix:
                turned = self.name("turned")
                self.lines.append(f"  {turned} = fp8.transpose {value} permutation = [1, 0] : {kind[len('!fp8.scaled'):]}")
                sizes, value = sizes[::-1], turned
                kind = (f"!fp8.scaled<{self.size(code, columns, rows)}, block = {write_block(block[::-1])}, "
                        f"scale = f32>")
            codes, own = self.disassemble(value, kind, suffix)
            self.take(f"codes{suffix}", f"memref<{sizes[0]}x{sizes[1]}x{code}>")
            self.store(codes, f"codes{suffix}", sizes, code)
            if suffix and not (target.is_delayed or is_line):
                inverse, grid = own, grid[::-1]
            if inverse:
                self.take(f"inverse{suffix}", f"memref<{grid[0]}x{grid[1]}xf32>")
                self.store(inverse, f"inverse{suffix}", grid, "f32")

    def disassemble(self, value, kind, suffix):
        codes, inverse = self.name(f"c{suffix}"), self.name(f"i{suffix}")
        self.lines.append(f"  {codes}, {inverse} = fp8.disassemble {value} : {kind}")
        return codes, inverse

    def find_grid(self, block):
        sizes = self.part.rows, self.part.columns
        return tuple(1 if each is None else -(-size // each) for size, each in zip(sizes, block))

    def quantize(self, weight, suffix, block, code):
        target, grid = self.part.target, self.find_grid(block)
        source, kind = f"tensor<{self.size(target.element)}>", f"tensor<{grid[0]}x{grid[1]}xf32>"
        names = {each: self.name(each + suffix) for each in ("amax", "scale", "factor", "q")}
        nan, rule = casts.write_rule(make_rule(target.codes, block, target.element))
        self.lines.append(f"  {names['amax']} = fp8.amax {weight} block = {write_block(block)}{nan} : {source}")
        if target.is_delayed:
            self.take("scale", kind), self.take("factor", kind), self.take("row", f"memref<{grid[0]}x{grid[1]}xf32>")
            self.store(names["amax"], "row", grid, "f32")
        else:
            self.lines.append(f"  {names['scale']}, {names['factor']} = fp8.compute_scale {names['amax']} "
                              f"format = {code} scale_type = f32 {rule} : {kind}")
        self.lines.append(f"  {names['q']} = fp8.quantize {weight} scale({names['scale']}, {names['factor']} : {kind}, "
                          f"{kind}) : {source} -> <{self.size(code)}, block = {write_block(block)}, scale = f32>")
        return names["q"]


def make_rule(codes, block, element):
    """Pairs of a scale's rule for a weight's values of a type, as linear layers quantize them."""
    is_narrow = block == (128, 128) and element != "f32"
    return (*codes.rule, *[("overflow", f"{_LARGEST[element]:.9e}")] * is_narrow) if is_narrow else codes.rule


# Parameters of fewer elements take no longer together than a launch.
_FEW = 65536


def _write_steps(writers):
    """Steps of parameters of one size as one linalg.generic: one launch."""
    for writer in writers:
        writer.begin_step()
    lines = [line for writer in writers for line in writer.lines]
    first, body = writers[0], _Body()
    yielded = [value for writer in writers for value in writer.write_body(body)]
    taken = [f"{writer.name(f'v_{name}')}: {writer.part.element}" for writer in writers
             for name in ("grad", *writer.kept)]
    inputs = [name for writer in writers for name in writer.inputs]
    kinds = [f"tensor<{first.size(first.part.element)}>"] * len(inputs) + [_ONE] * len(first.factors)
    results = [kind for writer in writers for kind in writer.results]
    elements = [element for writer in writers for element in writer.elements]
    maps = ["#full"] * len(inputs) + ["#one"] * len(first.factors) + ["#full"] * len(results)
    taken += [f"%v_{name}: f32" for name in first.factors] + [f"%out{i}: {each}" for i, each in enumerate(elements)]
    inputs += [f"%{name}" for name in first.factors]
    empties = [name for writer in writers for name in writer.empties]
    result = first.name("new")
    count = f":{len(results)}" if len(results) > 1 else ":1"
    lines += [
        f"  {result}{count} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = "
        f'["parallel", "parallel"]}} ins({", ".join(inputs)} : {", ".join(kinds)}) '
        f"outs({', '.join(empties)} : {', '.join(results)}) {{", f"  ^bb0({', '.join(taken)}):", *body.lines,
        f"    linalg.yield {', '.join(yielded)} : {', '.join(elements)}", f"  }} -> ({', '.join(results)})"]
    place = 0
    for writer in writers:
        writer.lines = []
        writer.end_step(result, place)
        lines += writer.lines
        place += len(writer.results)
    return lines


def _list_together(writers):
    """Lists of those whose steps are one launch."""
    lists = []
    for writer in writers:
        part = writer.part
        is_small = part.target is None and part.rows * part.columns <= _FEW
        if is_small and lists and lists[-1][0].part == part:
            lists[-1].append(writer)
        else:
            lists.append([writer])
    return lists


def write(update):
    """The text of a program with a function `update`, and the names of its arguments: those of each parameter
    with its number behind them, then the factors, each a tensor of one f32."""
    writers, lines = [_Writer(update.rule, part, number) for number, part in enumerate(update.parts)], []
    if update.rule.kind == "none":
        for writer in writers:
            writer.write_alone()
            lines += writer.lines
    else:
        for each in _list_together(writers):
            lines += _write_steps(each)
    arguments = [argument for writer in writers for argument in writer.arguments]
    arguments += [(name, _ONE) for name in update.rule.factors]
    text = ("#full = affine_map<(m, n) -> (m, n)>\n#one = affine_map<(m, n) -> (0, 0)>\n"
            "module attributes {fp8.exact} {\n"
            f"func.func @update({', '.join(f'%{name}: {kind}' for name, kind in arguments)}) {{\n"
            + "\n".join(lines) + "\n  return\n}\n}\n")
    return text, tuple(name for name, _ in arguments)
