"""Random functions of linalg and tensor operations that no generated kernel takes as they are, as
what is around the products of other people's models. They are elementwise functions with broadcast
operands, masks and integers, transposes, concatenations, slices, pads, gathers, scatters of
slices, reductions along any dimensions. The same for the same seed; each also with small extents of the
same remainders by 8."""

import math
import random
from dataclasses import dataclass, field

BYTES = {"f32": 4, "bf16": 2, "f16": 2, "f64": 8, "i64": 8, "i32": 4, "i8": 1, "i1": 1}
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "i64": "int64", "i32": "int32",
          "i8": "int8", "i1": "bool"}
EXTENTS = [3, 4, 7, 12, 16, 32, 49, 64, 77, 80, 96, 128, 192, 197, 256, 384, 512, 577, 768, 1024, 1152,
           2048, 3072, 4096]
ELEMENTS = ["f32", "bf16", "bf16", "f16", "i32", "i64", "i8"]
TABLE_ROWS = 4096
FILE = 10  # Functions of a program.


@dataclass
class LoopFunction:
    """A function and what it has to move."""

    name: str
    kind: str
    text: str
    arguments: list  # Extents, element and how many numbers an index may be.
    results: list  # Extents and element.
    extra: int = 0  # Bytes that it reads beyond its arguments, or less.
    eager: object = None  # The same by PyTorch, of `torch` and the arguments; None where it has no such operation.
    bytes: int = field(init=False)

    def __post_init__(self):
        self.bytes = self.extra + sum(math.prod(extents) * BYTES[element]
                                      for extents, element, *_ in [*self.arguments, *self.results])


def spell(extents, element):
    return f"tensor<{'x'.join(map(str, [*extents, element]))}>"


def spell_map(rank, results):
    dims = ", ".join(f"d{i}" for i in range(rank))
    return f"affine_map<({dims}) -> ({', '.join(results)})>"


def make_place(offsets, sizes, strides):
    return tuple(slice(offset, offset + size * step, step) for offset, size, step in zip(offsets, sizes, strides))


def copy(torch, x):
    """In memory of its own, in the order of its dimensions."""
    return x.clone(memory_format=torch.contiguous_format)


def shrink(extent):
    return extent if extent <= 24 else 16 + extent % 24


class Writer:
    """Draws one function. Small extents are those of the same draw."""

    def __init__(self, seed, is_small, size):
        self.rng, self.is_small, self.size = random.Random(seed), is_small, size
        self.lines, self.arguments, self.count, self.extra, self.eager = [], [], 0, 0, None

    def draw_extents(self, rank, element, inner=None):
        """With so many bytes, the outermost as long as that takes."""
        extents = [self.rng.choice(EXTENTS) for _ in range(rank - 1)]
        if inner:
            extents[-1] = inner
        while math.prod(extents) * BYTES[element] * 64 > self.size:
            extents[extents.index(max(extents))] //= 4
        first = max(2, self.size // (BYTES[element] * math.prod(extents)))
        first -= self.rng.choice([0, 0, 1]) if first > 2 else 0
        return [shrink(extent) for extent in [first, *extents]] if self.is_small else [first, *extents]

    def argument(self, extents, element, limit=None):
        self.arguments.append((list(extents), element, limit))
        return f"%a{len(self.arguments) - 1}"

    def value(self):
        self.count += 1
        return f"%v{self.count}"

    def write(self, text):
        name = self.value()
        self.lines.append(f"{name} = {text}")
        return name

    def empty(self, extents, element):
        return self.write(f"tensor.empty() : {spell(extents, element)}")

    def constant(self, text, element):
        return self.write(f"arith.constant {text} : {element}")

    def fill(self, text, extents, element):
        return self.write(f"linalg.fill ins({self.constant(text, element)} : {element}) "
                          f"outs({self.empty(extents, element)} : {spell(extents, element)}) -> "
                          f"{spell(extents, element)}")

    def generic(self, extents, inputs, output, element, body, kinds=None):
        """`inputs` are names, types and results of maps; `output` has the same."""
        rank = len(extents)
        kinds = kinds or ["parallel"] * rank
        maps = ", ".join(spell_map(rank, results) for *_, results in [*inputs, output])
        names = [f"%x{i}" for i in range(len(inputs))]
        arguments = ", ".join(f"{name}: {kind.rsplit('x')[-1].rstrip('>')}"
                              for name, (_, kind, _) in zip(names, inputs))
        ins = (f"ins({', '.join(name for name, *_ in inputs)} : "
               f"{', '.join(kind for _, kind, _ in inputs)}) ") if inputs else ""
        comma = ", " if inputs else ""
        return self.write(
            f"linalg.generic {{indexing_maps = [{maps}], iterator_types = "
            f"[{', '.join(f'{chr(34)}{kind}{chr(34)}' for kind in kinds)}]}} {ins}"
            f"outs({output[0]} : {output[1]}) {{\n^bb0({arguments}{comma}%y: {element}):\n{body}\n}} -> {output[1]}")

    # ===--- Kinds ---===

    def elementwise(self):
        """With broadcast operands, a mask, and another type behind it."""
        element = self.rng.choice(["f32", "bf16", "f16", "i32", "i64", "f64"])
        result = self.rng.choice([element, element, "f32" if element in ("bf16", "f16") else element])
        rank = self.rng.randint(1, 4)
        extents = self.draw_extents(rank, element)
        dims = [f"d{i}" for i in range(rank)]
        inputs = [(self.argument(extents, element), spell(extents, element), dims)]
        for _ in range(self.rng.randint(0, 2)):
            kept = [self.rng.random() < 0.6 for _ in range(rank)]
            shape = [extent if keep else 1 for extent, keep in zip(extents, kept)]
            inputs.append((self.argument(shape, element), spell(shape, element),
                           [dim if keep else "0" for dim, keep in zip(dims, kept)]))
        mask = [extent if self.rng.random() < 0.6 else 1 for extent in extents]
        inputs.append((self.argument(mask, "i1"), spell(mask, "i1"),
                       [dim if size > 1 or whole == 1 else "0"
                        for dim, size, whole in zip(dims, mask, extents)]))
        is_float = "f" in element
        body, last, names = [], "%x0", []
        for i in range(1, len(inputs) - 1):
            name = self.rng.choice(["addf", "mulf"] if is_float else ["addi", "muli"])
            names.append(name)
            body.append(f"%b{i} = arith.{name} {last}, %x{i} : {element}")
            last = f"%b{i}"
        zero = "0.0" if is_float else "0"
        body += [f"%zero = arith.constant {zero} : {element}",
                 f"%kept = arith.select %x{len(inputs) - 1}, {last}, %zero : {element}"]
        last = "%kept"
        if result != element:
            body.append(f"%wide = arith.extf %kept : {element} to {result}")
            last = "%wide"
        body.append(f"linalg.yield {last} : {result}")

        def compute(torch, x, *others):
            for name, other in zip(names, others):
                x = x + other if name[:3] == "add" else x * other
            return torch.where(others[-1], x, 0).to(getattr(torch, DTYPES[result]))

        self.eager = compute
        output = (self.empty(extents, result), spell(extents, result), dims)
        return self.generic(extents, inputs, output, result, "\n".join(body)), extents, result

    def broadcast(self):
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        dims = sorted(self.rng.sample(range(rank), self.rng.randint(1, rank - 1)))
        kept = [extent for i, extent in enumerate(extents) if i not in dims]
        name = self.argument(kept, element)
        ones = [1 if i in dims else extent for i, extent in enumerate(extents)]
        self.eager = lambda torch, x: x.view(ones).expand(extents).contiguous()
        return self.write(
            f"linalg.broadcast ins({name} : {spell(kept, element)}) outs("
            f"{self.empty(extents, element)} : {spell(extents, element)}) dimensions = {dims}"), extents, element

    def transpose(self):
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        order = list(range(rank))
        while order == sorted(order):
            self.rng.shuffle(order)
        result = [extents[i] for i in order]
        name = self.argument(extents, element)
        self.eager = lambda torch, x: copy(torch, x.permute(order))
        return self.write(
            f"linalg.transpose ins({name} : {spell(extents, element)}) outs("
            f"{self.empty(result, element)} : {spell(result, element)}) permutation = {order}"), result, element

    def turned(self):
        """A sum with what lies in another order."""
        element = self.rng.choice(["i32", "f32", "bf16"])
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        order = list(range(rank))
        while order == sorted(order):
            self.rng.shuffle(order)
        other = [extents[i] for i in order]
        dims = [f"d{i}" for i in range(rank)]
        inputs = [(self.argument(extents, element), spell(extents, element), dims),
                  (self.argument(other, element), spell(other, element), [f"d{i}" for i in order])]
        name = "addi" if element == "i32" else "addf"
        back = [order.index(i) for i in range(rank)]
        self.eager = lambda torch, x, y: x + y.permute(back)
        output = (self.empty(extents, element), spell(extents, element), dims)
        return self.generic(extents, inputs, output, element,
                            f"%b = arith.{name} %x0, %x1 : {element}\nlinalg.yield %b : {element}"), extents, element

    def concat(self):
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        dim = self.rng.randrange(rank)
        parts = [self.rng.randint(1, 4) for _ in range(self.rng.randint(2, 3))]
        sizes = [max(1, extents[dim] * part // sum(parts)) for part in parts]
        shapes = [[*extents[:dim], size, *extents[dim + 1:]] for size in sizes]
        names = [self.argument(shape, element) for shape in shapes]
        result = [*extents[:dim], sum(sizes), *extents[dim + 1:]]
        self.eager = lambda torch, *parts: torch.cat(parts, dim)
        return self.write(
            f"tensor.concat dim({dim}) {', '.join(names)} : ({', '.join(spell(s, element) for s in shapes)}) -> "
            f"{spell(result, element)}"), result, element

    def slice(self):
        """Which is copied, as it is a result."""
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        offsets, sizes, strides = [], [], []
        for extent in extents:
            step = 1 if extent < 4 else self.rng.choice([1, 1, 1, 1, 1, 2])
            offset = self.rng.choice([0, 0, extent // 4, extent // 2])
            offsets.append(offset)
            strides.append(step)
            sizes.append(max(1, (extent - offset) // step))
        name = self.argument(extents, element)
        read = math.prod(sizes) * (2 if strides[-1] > 1 else 1)
        place = make_place(offsets, sizes, strides)
        self.eager = lambda torch, x: copy(torch, x[place])
        self.extra = BYTES[element] * (read - math.prod(extents))
        return self.write(f"tensor.extract_slice {name}[{', '.join(map(str, offsets))}] [{', '.join(map(str, sizes))}] "
                          f"[{', '.join(map(str, strides))}] : {spell(extents, element)} to "
                          f"{spell(sizes, element)}"), sizes, element

    def pad(self):
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        low = [self.rng.choice([0, 0, 1, 8]) for _ in extents]
        high = [self.rng.choice([0, 0, 1, 3, 8]) for _ in extents]
        result = [a + b + c for a, b, c in zip(low, extents, high)]
        name = self.argument(extents, element)
        amounts = [amount for pair in reversed(list(zip(low, high))) for amount in pair]
        self.eager = lambda torch, x: torch.nn.functional.pad(x, amounts)
        arguments = ", ".join(f"%i{i}: index" for i in range(rank))
        zero = self.constant("0.0" if "f" in element else "0", element)
        return self.write(f"tensor.pad {name} low[{', '.join(map(str, low))}] high[{', '.join(map(str, high))}] {{\n"
                          f"^bb0({arguments}):\ntensor.yield {zero} : {element}\n}} : {spell(extents, element)} to "
                          f"{spell(result, element)}"), result, element

    def insert(self):
        """A slice of a new tensor."""
        element = self.rng.choice(ELEMENTS)
        rank = self.rng.randint(2, 4)
        extents = self.draw_extents(rank, element)
        offsets = [self.rng.choice([0, extent // 4]) for extent in extents]
        sizes = [extent - offset for extent, offset in zip(extents, offsets)]
        into, part = self.argument(extents, element), self.argument(sizes, element)
        place = make_place(offsets, sizes, [1] * rank)

        def compute(torch, x, y):
            x = x.clone()
            x[place] = y
            return x

        self.eager = compute
        self.extra = -BYTES[element] * math.prod(sizes)
        return self.write(f"tensor.insert_slice {part} into {into}[{', '.join(map(str, offsets))}] "
                          f"[{', '.join(map(str, sizes))}] [{', '.join('1' for _ in sizes)}] : {spell(sizes, element)} "
                          f"into {spell(extents, element)}"), extents, element

    def gather(self):
        """Rows by their index, in types that no stream has, or masked by their place."""
        element = self.rng.choice(["i32", "i64", "f32", "bf16"])
        extents = self.draw_extents(self.rng.randint(3, 4), element)
        width, places = extents[-1], extents[:-1]
        rows = 32 if self.is_small else TABLE_ROWS
        table = self.argument([rows, width], element)
        index = self.argument(places, "i64", rows)
        self.extra = BYTES[element] * (math.prod(extents) - rows * width)
        self.eager = lambda torch, x, i: torch.where((i == 0).unsqueeze(-1), 1, x[i])
        rank = len(extents)
        body = (f"%row = arith.index_cast %x0 : i64 to index\n%column = linalg.index {rank - 1} : index\n"
                f"%got = tensor.extract {table}[%row, %column] : {spell([rows, width], element)}\n"
                f"%one = arith.constant {'1.0' if 'f' in element else '1'} : {element}\n"
                f"%first = arith.constant 0 : i64\n%is = arith.cmpi eq, %x0, %first : i64\n"
                f"%b = arith.select %is, %one, %got : {element}\nlinalg.yield %b : {element}")
        dims = [f"d{i}" for i in range(rank)]
        output = (self.empty(extents, element), spell(extents, element), dims)
        return self.generic(extents, [(index, spell(places, "i64"), dims[:-1])], output, element, body), extents, element

    def triangle(self):
        """A mask by an element's place, as attention has it."""
        rank = self.rng.randint(2, 4)
        element = self.rng.choice(["f32", "bf16", "i1"])
        extents = self.draw_extents(rank, element)
        dims = [f"d{i}" for i in range(rank)]
        self.eager = lambda torch: (
            torch.ones(extents, dtype=torch.bool, device="cuda").tril() if element == "i1" else torch.full(
                extents, -1e4, dtype=getattr(torch, DTYPES[element]), device="cuda").triu(1))
        body = (f"%i = linalg.index {rank - 2} : index\n%j = linalg.index {rank - 1} : index\n"
                f"%is = arith.cmpi ule, %j, %i : index\n")
        if element == "i1":
            body += "linalg.yield %is : i1"
        else:
            body += (f"%low = arith.constant -1.0e+04 : {element}\n%zero = arith.constant 0.0 : {element}\n"
                     f"%b = arith.select %is, %zero, %low : {element}\nlinalg.yield %b : {element}")
        output = (self.empty(extents, element), spell(extents, element), dims)
        return self.generic(extents, [], output, element, body), extents, element

    def reduce(self):
        """Along some dimensions; sums of numbers that are exact in any order."""
        element, kind = self.rng.choice([("f32", "addf"), ("f32", "maximumf"), ("bf16", "maximumf"), ("bf16", "wide"),
                                         ("i32", "addi"), ("i64", "maxsi"), ("f64", "addf"), ("i8", "ori")])
        rank = self.rng.randint(1, 4)
        extents = self.draw_extents(rank, element)
        dims = sorted(self.rng.sample(range(rank), self.rng.randint(1, max(1, rank - 1))))
        kept = [i for i in range(rank) if i not in dims]
        result = "f32" if kind == "wide" else element
        shape = [extents[i] for i in kept]
        name = self.argument(extents, element)
        init = {"maximumf": "-3.0e+38", "addf": "0.0", "wide": "0.0", "maxsi": "-1000"}.get(kind, "0")
        output = self.fill(init, shape, result)
        body = f"%b = arith.{kind} %x0, %y : {result}\nlinalg.yield %b : {result}"
        if kind == "wide":
            body = (f"%wide = arith.extf %x0 : {element} to f32\n%b = arith.addf %wide, %y : f32\n"
                    "linalg.yield %b : f32")
        if kind in ("maximumf", "maxsi"):
            self.eager = lambda torch, x: x.amax(dims)
        elif kind != "ori":
            self.eager = lambda torch, x: x.sum(dims, dtype=getattr(torch, DTYPES[result]))
        all_dims = [f"d{i}" for i in range(rank)]
        return self.generic(extents, [(name, spell(extents, element), all_dims)],
                            (output, spell(shape, result), [all_dims[i] for i in kept]), result, body,
                            ["reduction" if i in dims else "parallel" for i in range(rank)]), shape, result


KINDS = ["elementwise", "broadcast", "transpose", "turned", "concat", "slice", "pad", "insert", "gather",
         "triangle", "reduce", "reduce", "elementwise", "transpose"]


def make_function(seed, is_small=False, size=1 << 26):
    """`size` is of its tensor in bytes."""
    kind = KINDS[seed % len(KINDS)]
    writer = Writer(seed, is_small, size)
    value, extents, element = getattr(writer, kind)()
    name = f"{kind}_{seed}"
    arguments = ", ".join(f"%a{i}: {spell(shape, of)}" for i, (shape, of, _) in enumerate(writer.arguments))
    text = (f"func.func @{name}({arguments}) -> {spell(extents, element)} {{\n" + "\n".join(writer.lines) +
            f"\nreturn {value} : {spell(extents, element)}\n}}\n")
    return LoopFunction(name, kind, text, writer.arguments, [(extents, element)], writer.extra, writer.eager)


def get_batches(first, count):
    """Seeds of each program."""
    seeds = list(range(first, first + count))
    return [seeds[i:i + FILE] for i in range(0, count, FILE)]
