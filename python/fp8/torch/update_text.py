"""Steps of optimizers as programs: a parameter, its moments and the codes of a weight in one pass.

What is computed of an element is written once (update_rules.py); its types, the codes and the parameters of a
call come from an Update.
"""

from collections import namedtuple

from fp8 import casts
from fp8.torch import update_random
from fp8.torch.program_text import write_block
from fp8.torch.update_rules import Body, Rule

__all__ = ["Part", "Rule", "Target", "Update", "write"]

# The codes of a weight: a shard_programs.Codes, what the weight is rounded to before it is quantized,
# whether scales are those of a state, and whether there are codes in the forward's order alone.
Target = namedtuple("Target", "codes element is_delayed has_one_order", defaults=(False,))

# How a parameter that programs compute with in f32 is kept: as numbers of its type, rounded to the nearest; as bf16 that is
# rounded stochastically; as bf16 and the 16 bits between that and an f32; or as the codes of its Target alone, which are
# rounded stochastically. The third has its moments in f32: it is an f32, but for where it is.
NEAREST, DRAWN, SPLIT, CODES = None, "drawn", "split", "codes"

# A parameter: its sizes as a matrix, the type of it and of its gradient, a Target or None, how it is kept, whether its
# moments are codes, and the type of the gradient, if that is another one.
Part = namedtuple("Part", "rows columns element target master coded gradient", defaults=(None, NEAREST, False, None))

# What a program computes: a Rule, of several Parts. That of kind "turn" has only their targets.
Update = namedtuple("Update", "rule parts")

# Elements of a moment that share a factor, and what their codes are.
MOMENT_BLOCK, MOMENT_FORMAT = (1, 128), "f8E4M3FN"

# Elements from which on a launch more is less than what codes on their way cost.
LEAST_TURNED = 1 << 22

_FORMATS = {"e4m3": "f8E4M3FN", "e5m2": "f8E5M2"}
_LARGEST = {"bf16": 3.3895313892515355e38, "f16": 65504.0}
_ONE = "tensor<1x1xf32>"
# Where elements are, and what those of a row, a column, a block or all have in common.
_MAPS = "".join(f"#{name} = affine_map<(m, n) -> ({places})>\n" for name, places in (
    ("full", "m, n"), ("one", "0, 0"), ("rows", "m, 0"), ("columns", "0, n"),
    ("groups", f"0, n floordiv {update_random.GROUP}"), ("grid_w_w", "0, 0"),
    ("grid_1_128", "m, n floordiv 128"), ("grid_128_128", "m floordiv 128, n floordiv 128")))


class _Writer:
    """The text of one parameter of an Update; names end in its number."""

    def __init__(self, rule, part, number):
        self.rule, self.part, self.number = rule, part, number
        self.arguments, self.lines, self.factors, self.taken = [], [], rule.factors, {}

    @property
    def moment(self):
        """The type of moments that are no codes."""
        return "f32" if self.part.master == SPLIT else self.part.element

    def name(self, name):
        return f"%{name}_{self.number}"

    def size(self, element, rows=None, columns=None):
        return f"{rows or self.part.rows}x{columns or self.part.columns}x{element}"

    def take(self, name, kind):
        self.arguments.append((f"{name}_{self.number}", kind))
        return self.name(name)

    def change(self, name, element, sizes=()):
        """An argument that the program changes, as it is before."""
        size = self.size(element, *sizes)
        memory = self.take(name, f"memref<{size}>")
        self.lines.append(f"  {self.name(name + '_old')} = bufferization.to_tensor {memory} restrict writable : "
                          f"memref<{size}> to tensor<{size}>")
        return self.name(name + "_old")

    def store(self, value, name, sizes, element):
        kind = "x".join(map(str, sizes)) + f"x{element}"
        self.lines.append(f"  bufferization.materialize_in_destination {value} in restrict writable %{name}_{self.number} : "
                          f"(tensor<{kind}>, memref<{kind}>) -> ()")

    def write_alone(self):
        """Codes of a weight that stays as it is."""
        weight = self.take("param", f"tensor<{self.size(self.part.element)}>")
        self.write_codes(weight if self.part.target.element == self.part.element else self.round(weight))

    def write_turned(self):
        """Codes in the other order, of those that a step has written."""
        target, grid = self.part.target, self.find_grid(self.part.target.codes.forward)
        code, block = _FORMATS[target.codes.format], target.codes.forward
        codes, factors = f"tensor<{self.size(code)}>", f"tensor<{grid[0]}x{grid[1]}xf32>"
        given, value = (self.take("codes", codes), self.take("inverse", factors)), self.name("value")
        self.lines.append(f"  {value} = fp8.assemble {given[0]}, {given[1]} : {codes}, {factors} -> {self.write_kind(code, block)}")
        codes, _ = self.disassemble(*self.turn(value, code, block, "turned"), "_1")
        sizes = self.part.columns, self.part.rows
        self.take("codes_1", f"memref<{sizes[0]}x{sizes[1]}x{code}>")
        self.store(codes, "codes_1", sizes, code)

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

    # What a linalg.generic of elements takes.

    def add_input(self, operand, name, element, places="#full", sizes=None):
        rows, columns = sizes or (self.part.rows, self.part.columns)
        self.inputs.append((operand, f"tensor<{rows}x{columns}x{element}>", places, f"{self.name('v_' + name)}: {element}"))

    def add_places(self):
        """Takes what random numbers are made from: the row and column of each element, and the parameter's number."""
        columns = self.part.columns
        sizes = {"place_rows": (self.part.rows, 1), "place_groups": (1, -(-columns // update_random.GROUP)),
                 "place_columns": (1, columns), "number": (1, 1)}
        for (name, each), places in zip(sizes.items(), ("#rows", "#groups", "#columns", "#one")):
            if self.name(name) not in self.taken:
                self.taken[self.name(name)] = self.take(name, f"tensor<{each[0]}x{each[1]}xf32>")
            self.add_input(self.name(name), name, "f32", places, each)

    def draw(self, body):
        names = ("place_rows", "place_groups", "place_columns", "number")
        return update_random.draw(body, *[self.name(f"v_{name}") for name in names], "%v_count")

    def begin_step(self):
        """Makes what the linalg.generic of a step takes, and what it writes to."""
        part, rule = self.part, self.rule
        self.inputs, element = [], part.element
        is_first = "first" in rule.options  # A new buffer is not read.
        gradient = part.gradient or element
        self.add_input(self.take("grad", f"tensor<{self.size(gradient)}>"), "grad", gradient)
        self.elements, self.kept = [], []
        if not rule.has_param:
            self.take("update", f"memref<{self.size('bf16')}>")
            self.elements.append("bf16")
        elif part.master == CODES:
            self.read_codes("param", self.part.target.codes.forward, _FORMATS[part.target.codes.format])
            self.elements.append("f32")
        else:
            for name in ("param", "low")[:1 + (part.master == SPLIT)]:
                self.add_input(self.change(name, element), name, element)
                self.elements.append(element)
        for name in rule.moments:
            if part.coded:
                self.read_codes(name, MOMENT_BLOCK, MOMENT_FORMAT, is_first)
            elif is_first:
                self.take(name, f"memref<{self.size(self.moment)}>")
            else:
                self.add_input(self.change(name, self.moment), name, self.moment)
            self.elements.append("f32" if part.coded else self.moment)
        self.narrow = part.target.element if part.target and part.master != CODES and part.target.element != element else None
        self.elements += [self.narrow] * (self.narrow is not None)
        if part.master == DRAWN:
            self.add_places()
        self.results = [f"tensor<{self.size(each)}>" for each in self.elements]
        self.empties = [self.name(f"empty{i}") for i in range(len(self.results))]
        self.lines += [f"  {name} = tensor.empty() : {each}" for name, each in zip(self.empties, self.results)]

    def read_codes(self, name, block, code, is_first=False):
        """Numbers that are kept as codes, as the step takes them."""
        grid = self.find_grid(block)
        factors = f"{grid[0]}x{grid[1]}xf32"
        if is_first:
            self.take(f"{name}_codes", f"memref<{self.size(code)}>")
            return
        codes = self.change(f"{name}_codes", code)
        # New ones go elsewhere: other threads may be reading them.
        inverse = self.take(f"{name}_inverse", f"tensor<{factors}>")
        scaled = f"!fp8.scaled<{self.size(code)}, block = {write_block(block)}, scale = f32>"
        self.lines += [
            f"  {self.name(name + '_a')} = fp8.assemble {codes}, {inverse} : tensor<{self.size(code)}>, tensor<{factors}> -> {scaled}",
            f"  {self.name(name + '_d')} = fp8.dequantize {self.name(name + '_a')} : {scaled} -> tensor<{self.size('f32')}>"]
        self.add_input(self.name(name + "_d"), name, "f32")

    def write_body(self, body):
        """What is yielded for each of the results."""
        part, rule, element = self.part, self.rule, self.part.element
        given = {each[3].partition(":")[0]: each[3].partition(": ")[2] for each in self.inputs}

        def read(name):
            value = self.name(f"v_{name}")
            return body.widen(value, given[value]) if value in given else None

        moments = {name: read(name) for name in rule.moments}
        if part.coded:  # Roots of squares have half as many octaves, and are kept in their place.
            moments = {name: body.mul(value, value) if value and "sq" in name else value for name, value in moments.items()}
        is_split = part.master == SPLIT and rule.has_param
        param = update_random.join(body, self.name("v_param"), self.name("v_low")) if is_split else read("param")
        first, *others = rule.write(body, param, read("grad"), moments, {name: f"%v_{name}" for name in self.factors})
        if part.coded:
            root = body.rough_sqrt if rule.is_rough else body.sqrt
            others = [root(value) if "sq" in name else value for name, value in zip(rule.moments, others)]
        else:
            others = [body.round(value, self.moment) for value in others]
        if not rule.has_param:
            return [body.round(first, "bf16"), *others]
        if part.master == SPLIT:
            own = update_random.write_halves(body, first)
        elif part.master == DRAWN:
            own = [update_random.write_bf16(body, first, self.draw(body))]
        else:
            own = [first if part.master == CODES else body.round(first, element)]
        narrow = [body.emit(f"arith.truncf {own[0]}", f"{element} to {self.narrow}")] if self.narrow else []
        return [*own, *others, *narrow]

    def end_step(self, result):
        """Stores results of the linalg.generic."""
        part, sizes, names = self.part, (self.part.rows, self.part.columns), iter(range(len(self.results)))
        kept = "param" if self.rule.has_param else "update"
        weight = f"{result}#{next(names)}"
        if part.master != CODES:
            self.store(weight, kept, sizes, self.elements[0])
        if part.master == SPLIT and self.rule.has_param:
            self.store(f"{result}#{next(names)}", "low", sizes, part.element)
        for shift, name in zip((0, 12, 12), self.rule.moments):
            value = f"{result}#{next(names)}"
            if part.coded:
                self.store_moment(value, name, shift)
            else:
                self.store(value, name, sizes, self.moment)
        if part.target is not None:
            self.write_codes(f"{result}#{next(names)}" if self.narrow else weight)

    def store_moment(self, value, name, shift):
        """A moment as codes, which are rounded stochastically: of what changes by less than their step in each step
        the nearest would stay what they are."""
        grid, suffix = self.find_grid(MOMENT_BLOCK), f"_{name}"
        scale, inverse = self.write_powers(self.measure(value, suffix, MOMENT_BLOCK, "f32"), suffix, grid)
        moved = self.dither(value, scale, suffix, MOMENT_BLOCK, shift, "sq" in name)
        codes = self.disassemble(self.quantize_moved(moved, suffix, MOMENT_FORMAT), self.write_kind(MOMENT_FORMAT), suffix)[0]
        self.store(codes, f"{name}_codes", (self.part.rows, self.part.columns), MOMENT_FORMAT)
        self.take(f"{name}_inverse_new", f"memref<{grid[0]}x{grid[1]}xf32>")
        self.store(inverse, f"{name}_inverse_new", grid, "f32")

    def write_powers(self, amax, suffix, grid):
        """Powers of two by which moments are scaled, and their inverses, by sums of bits: each row has its own."""
        kind, made = f"tensor<{grid[0]}x{grid[1]}xf32>", self.name("powers" + suffix)
        body = Body()
        scale, inverse = update_random.write_powers(body, "%in")
        self.lines += [
            f"  {made}_e = tensor.empty() : {kind}",
            f"  {made}:2 = linalg.generic {{indexing_maps = [#full, #full, #full], iterator_types = "
            f'["parallel", "parallel"]}} ins({amax} : {kind}) outs({made}_e, {made}_e : {kind}, {kind}) {{',
            "  ^bb0(%in: f32, %out0: f32, %out1: f32):", *body.lines, f"    linalg.yield {scale}, {inverse} : f32, f32",
            f"  }} -> ({kind}, {kind})"]
        return f"{made}#0", f"{made}#1"

    def dither(self, value, scale, suffix, block, shift, keeps_positive=False):
        """Numbers by scales moved to those that codes have, and by 2^-120."""
        outer, self.inputs = self.inputs, []
        grid, rows, columns = self.find_grid(block), *block
        places = f"#grid_{rows or 'w'}_{columns or 'w'}"
        self.add_input(value, "x", "f32")
        self.add_input(scale, "s", "f32", places, grid)
        self.add_places()
        body = Body()
        moved = update_random.dither(body, self.name("v_x"), self.name("v_s"), self.draw(body), shift, keeps_positive)
        kind, made, empty = f"tensor<{self.size('f32')}>", self.name("moved" + suffix), self.name("moved_e" + suffix)
        count = ("%count", _ONE, "#one", "%v_count: f32")
        operands, kinds, maps, arguments = zip(*self.inputs, count)
        self.inputs = outer
        self.lines += [
            f"  {empty} = tensor.empty() : {kind}",
            f"  {made} = linalg.generic {{indexing_maps = [{', '.join(maps)}, #full], iterator_types = "
            f'["parallel", "parallel"]}} ins({", ".join(operands)} : {", ".join(kinds)}) outs({empty} : {kind}) {{',
            f"  ^bb0({', '.join(arguments)}, %out: f32):", *body.lines, f"    linalg.yield {moved} : f32", f"  }} -> {kind}"]
        return made

    def write_codes(self, weight):
        target, rows, columns = self.part.target, self.part.rows, self.part.columns
        code, is_master = _FORMATS[target.codes.format], self.part.master == CODES
        element = "f32" if is_master else target.element
        blocks = {"": target.codes.forward, **({} if target.has_one_order else {"_1": target.codes.backward})}
        quantized = {}
        for suffix, block in blocks.items():
            if block not in quantized:
                quantized[block] = self.quantize(
                    weight, suffix, block, code, element, target.is_delayed, make_rule(target.codes, block, element),
                    shift=12 if is_master else None)
            (value, moved), grid = quantized[block], self.find_grid(block)
            sizes, kind = (rows, columns), self.write_kind(code, block)
            # What is as long the other way round need not be copied for that.
            inverse, is_line = None, 1 in grid
            if not target.is_delayed and (not suffix or is_line and block != target.codes.forward):
                inverse = self.disassemble(value, kind, f"{suffix}_f")[1]
            if suffix:
                value, kind = self.turn(value, code, block, "turned")
                sizes = sizes[::-1]
            codes, own_inverse = self.disassemble(value, kind, suffix)
            if moved:
                moved, kind = self.turn(moved, code, (None, None), "turned_moved") if suffix else (moved, self.write_kind(code))
                codes = self.disassemble(moved, kind, f"{suffix}_m")[0]
            own_codes = f"codes{suffix}"
            if is_master and not suffix:
                own_codes = "param_codes"
            else:
                self.take(own_codes, f"memref<{sizes[0]}x{sizes[1]}x{code}>")
            self.store(codes, own_codes, sizes, code)
            if suffix and not (target.is_delayed or is_line):
                inverse, grid = own_inverse, grid[::-1]
            if inverse:
                own = "param_inverse_new" if is_master and not suffix else f"inverse{suffix}"
                self.take(own, f"memref<{grid[0]}x{grid[1]}xf32>")
                self.store(inverse, own, grid, "f32")

    def write_kind(self, code, block=(None, None), sizes=()):
        return f"!fp8.scaled<{self.size(code, *sizes)}, block = {write_block(block)}, scale = f32>"

    def turn(self, value, code, block, name):
        """Codes in the other order, and their type."""
        self.lines.append(f"  {self.name(name)} = fp8.transpose {value} permutation = [1, 0] : "
                          f"{self.write_kind(code, block)[len('!fp8.scaled'):]}")
        return self.name(name), self.write_kind(code, block[::-1], (self.part.columns, self.part.rows))

    def disassemble(self, value, kind, suffix):
        codes, inverse = self.name(f"c{suffix}"), self.name(f"i{suffix}")
        self.lines.append(f"  {codes}, {inverse} = fp8.disassemble {value} : {kind}")
        return codes, inverse

    def find_grid(self, block):
        sizes = self.part.rows, self.part.columns
        return tuple(1 if each is None else -(-size // each) for size, each in zip(sizes, block))

    def measure(self, value, suffix, block, element, nan=""):
        amax = self.name("amax" + suffix)
        self.lines.append(f"  {amax} = fp8.amax {value} block = {write_block(block)}{nan} : tensor<{self.size(element)}>")
        return amax

    def quantize(self, weight, suffix, block, code, element, is_delayed=False, rule=(), shift=None):
        """The codes of a matrix with scales of its own, or of a state; with `shift` after moving each number to one of the
        two codes around it, by random bits from there on."""
        grid = self.find_grid(block)
        kind = f"tensor<{grid[0]}x{grid[1]}xf32>"
        scale, factor = (self.name(each + suffix) for each in ("scale", "factor"))
        nan, rule = casts.write_rule(rule)
        amax = self.measure(weight, suffix, block, element, nan)
        if is_delayed:
            self.take("scale", kind), self.take("factor", kind), self.take("row", f"memref<{grid[0]}x{grid[1]}xf32>")
            self.store(amax, "row", grid, "f32")
            # What the codes are multiplied with, beside them: that of the state becomes the next step's.
            self.take("inverse", f"memref<{grid[0]}x{grid[1]}xf32>")
            self.store(self.name("factor"), "inverse", grid, "f32")
        else:
            self.lines.append(f"  {scale}, {factor} = fp8.compute_scale {amax} "
                              f"format = {code} scale_type = f32 {rule} : {kind}")
        if shift is not None:
            moved = self.quantize_moved(self.dither(weight, scale, suffix, block, shift), suffix, code)
        else:
            moved = None
        # Nothing but the factors is taken of this where there are codes of what was moved.
        return self.write_quantize(weight, scale, factor, suffix, block, code, element), moved

    def quantize_moved(self, moved, suffix, code):
        """The codes of what was moved, which is by 2^-120, and so has one scale."""
        suffix = "_moved" + suffix
        up, down = (self.name(each + suffix) for each in ("up", "down"))
        self.lines += [f"  {name} = arith.constant dense<{number!r}> : {_ONE}" for name, number in (
            (up, 1 / update_random.DOWN), (down, update_random.DOWN))]
        return self.write_quantize(moved, up, down, suffix, (None, None), code, "f32")

    def write_quantize(self, value, scale, factor, suffix, block, code, element):
        grid, made = self.find_grid(block), self.name("q" + suffix)
        kind = f"tensor<{grid[0]}x{grid[1]}xf32>"
        self.lines.append(f"  {made} = fp8.quantize {value} scale({scale}, {factor} : {kind}, {kind}) : "
                          f"tensor<{self.size(element)}> -> <{self.size(code)}, block = {write_block(block)}, scale = f32>")
        return made


def make_rule(codes, block, element):
    """Pairs of a scale's rule for a weight's values of a type, as linear layers quantize them."""
    is_narrow = block == (128, 128) and element != "f32"
    return (*codes.rule, *[("overflow", f"{_LARGEST[element]:.9e}")] * is_narrow) if is_narrow else codes.rule


def _write_step(writer):
    """A parameter's step as a linalg.generic, and what becomes of its results."""
    writer.begin_step()
    body = Body()
    yielded = writer.write_body(body)
    inputs = writer.inputs + [(f"%{name}", _ONE, "#one", f"%v_{name}: f32") for name in writer.factors]
    operands, kinds, maps, arguments = map(list, zip(*inputs))
    maps += ["#full"] * len(writer.results)
    arguments += [f"%out{i}: {each}" for i, each in enumerate(writer.elements)]
    result, results = writer.name("new"), ", ".join(writer.results)
    writer.lines += [
        f"  {result}:{len(writer.results)} = linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = "
        f'["parallel", "parallel"]}} ins({", ".join(operands)} : {", ".join(kinds)}) '
        f"outs({', '.join(writer.empties)} : {results}) {{", f"  ^bb0({', '.join(arguments)}):", *body.lines,
        f"    linalg.yield {', '.join(yielded)} : {', '.join(writer.elements)}", f"  }} -> ({results})"]
    writer.end_step(result)


_WRITES = {"none": _Writer.write_alone, "turn": _Writer.write_turned}


def divide_orders(part):
    """The Part of a step whose codes in the other order are written behind it, or the same. A pass that rounds moments stochastically
    has no time to turn codes on their way, and one over codes alone moves two bytes an element; `current` has a second pass anyway,
    and with blocks of 128x128 a step is slower so."""
    target = part.target
    if target is None or target.has_one_order or not (target.is_delayed and part.coded) or part.rows * part.columns < LEAST_TURNED:
        return part
    return part._replace(target=target._replace(has_one_order=True))


def write(update):
    """The text of a program with a function `update`, and the names of its arguments: those of each parameter
    with its number behind them, then the factors, each a tensor of one f32."""
    writers = [_Writer(update.rule, part, number) for number, part in enumerate(update.parts)]
    for writer in writers:
        _WRITES.get(update.rule.kind, _write_step)(writer)
    lines = [line for writer in writers for line in writer.lines]
    arguments = [argument for writer in writers for argument in writer.arguments]
    arguments += [(name, _ONE) for name in update.rule.factors]
    # What is rounded stochastically need not be exact before.
    exact = "" if "drawn" in update.rule.options else "fp8.exact, "
    text = (_MAPS + f"module attributes {{{exact}fp8_gpu.disjoint}} {{\n"
            f"func.func @update({', '.join(f'%{name}: {kind}' for name, kind in arguments)}) {{\n"
            + "\n".join(lines) + "\n  return\n}\n}\n")
    return text, tuple(name for name, _ in arguments)
